/* Trains digits.model on 1,437 handwritten digits and tests it on the other 360. */
#include <stdio.h>
#include <stdlib.h>
#include "digits.h"
#include "gradc.h"

int main(int argc, char **argv)
{
    char path[4096];
    gradc_error e;
    gradc_array table, image, pixels, label;
    snprintf(path, sizeof path, "%s/digits.csv.gz", argc > 1 ? argv[1] : "examples/data");
    if (gradc_csv_read(path, NULL, &table, &e) || gradc_array_columns(&table, 0, 64, &image, &e) ||
        gradc_array_columns(&table, 64, 1, &pixels, &e) ||
        gradc_array_cast(&pixels, GRADC_I32, &label, &e)) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    int64_t n = table.shape[0], train = n * 4 / 5;
    digits *g;
    void *block = gradc_alloc(DIGITS_ARENA_BYTES, digits_arena_align());
    gradc_options o = {.struct_size = sizeof o, .abi = GRADC_ABI, .seed = 1};
    if (digits_init(block, DIGITS_ARENA_BYTES, &o, &g) != GRADC_OK)
        return 1;
    float *x = image.data, loss = 0, accuracy, right = 0;
    int32_t *y = label.data;
    int64_t steps = argc > 2 ? atoll(argv[2]) : 30 * (train / 64);
    for (int64_t i = 0; i < steps; i++) {
        int64_t at = i % (train / 64) * 64;
        if (digits_step(g, &(digits_inputs){.image = x + at * 64, .label = y + at}, &loss))
            return fprintf(stderr, "%s\n", digits_error(g)), 1;
    }
    for (int64_t at = train; at < n; at += 64) {
        digits_inputs in = {.rows = n - at < 64 ? n - at : 64, .image = x + at * 64, .label = y + at};
        if (digits_eval(g, &in, &(digits_outputs){.accuracy = &accuracy}))
            return fprintf(stderr, "%s\n", digits_error(g)), 1;
        right += accuracy * (float)in.rows;
    }
    printf("loss %.4f, accuracy %.1f %% of %lld unseen digits, %u bytes\n", (double)loss,
           (double)(100 * right / (float)(n - train)), (long long)(n - train), DIGITS_ARENA_BYTES);
    return 0;
}
