/* 20 steps of digits on drawn data; prints the bits of each loss and of the
 * parameters. Needs nothing but the object, so that it runs on any machine. With
 * REFUSED: expects that init names what this processor lacks. */
#include <stdio.h>
#include <string.h>
#include "digits.h"

#if defined(__GNUC__)
__attribute__((aligned(64)))
#endif
static char block[DIGITS_ARENA_BYTES];

int main(void)
{
    static float image[DIGITS_BATCH_ROWS * 64];
    static int32_t label[DIGITS_BATCH_ROWS];
    uint32_t r = 1, sum = 0;
    digits *g;
    int s = digits_init(block, sizeof block, NULL, &g);
#ifdef REFUSED
    printf("%s\n", digits_error((const digits *)block));
    return s == GRADC_CPU && g == NULL && strstr(digits_error((const digits *)block), "lacks") ? 0
                                                                                               : 1;
#endif
    if (s != GRADC_OK)
        return printf("%s\n", digits_error((const digits *)block)), 1;
    for (int i = 0; i < 20; i++) {
        float loss;
        uint32_t bits;
        for (size_t k = 0; k < DIGITS_BATCH_ROWS * 64; k++)
            image[k] = (float)((r = r * 1664525u + 1013904223u) >> 28);
        for (size_t k = 0; k < DIGITS_BATCH_ROWS; k++)
            label[k] = (int32_t)(((r = r * 1664525u + 1013904223u) >> 8) % 10);
        if (digits_step(g, &(digits_inputs){.image = image, .label = label}, &loss) != GRADC_OK)
            return printf("%s\n", digits_error(g)), 1;
        memcpy(&bits, &loss, sizeof bits);
        printf("%08x\n", (unsigned)bits);
    }
    for (int32_t t = 0; t < digits_model.n_tensors; t++) {
        const gradc_tensor *of = &digits_model.tensors[t];
        for (int64_t k = 0; of->offset >= 0 && k < of->bytes; k++)
            sum = sum * 31 + (unsigned char)block[of->offset + k];
    }
    printf("state %08x\n", (unsigned)sum);
    return 0;
}
