/* Two models and two handles of each in one program: interleaved calls give what each
 * gives alone. Both headers are in one source: their common part agrees. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "digits.h"
#include "line.h"

enum { STEPS = 20, HANDLES = 2 };

static float image[2][DIGITS_BATCH_ROWS * 64];
static int32_t label[2][DIGITS_BATCH_ROWS];
static double x[2][LINE_BATCH_ROWS * 10], y[2][LINE_BATCH_ROWS];

static void fill(void)
{
    uint32_t r = 3;
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < DIGITS_BATCH_ROWS * 64; i++)
            image[k][i] = (float)((r = r * 1664525u + 1013904223u) >> 28);
        for (size_t i = 0; i < DIGITS_BATCH_ROWS; i++)
            label[k][i] = (int32_t)(((r = r * 1664525u + 1013904223u) >> 8) % 10);
        for (size_t i = 0; i < LINE_BATCH_ROWS * 10; i++)
            x[k][i] = (double)((r = r * 1664525u + 1013904223u) >> 8) / (1 << 24);
        for (size_t i = 0; i < LINE_BATCH_ROWS; i++)
            y[k][i] = x[k][i * 10] - 2 * x[k][i * 10 + 3] + k;
    }
}

/* Handle k of each model: its own seed, its own data. */
typedef struct Pair {
    digits *d;
    line *l;
    void *block[2];
    float dloss[STEPS];
    double lloss[STEPS];
} Pair;

static void open_pair(Pair *p, int k)
{
    gradc_options o = {.struct_size = sizeof o, .abi = GRADC_ABI, .seed = (uint64_t)k};
    p->block[0] = aligned_alloc(DIGITS_ARENA_ALIGN, DIGITS_ARENA_BYTES);
    p->block[1] = aligned_alloc(LINE_ARENA_ALIGN, LINE_ARENA_BYTES);
    if (digits_init(p->block[0], DIGITS_ARENA_BYTES, &o, &p->d) != GRADC_OK ||
        line_init(p->block[1], LINE_ARENA_BYTES, &o, &p->l) != GRADC_OK)
        exit(1);
}

static int step_digits(Pair *p, int k, int i)
{
    return digits_step(p->d, &(digits_inputs){.image = image[k], .label = label[k]}, &p->dloss[i]);
}

static int step_line(Pair *p, int k, int i)
{
    return line_step(p->l, &(line_inputs){.x = x[k], .y = y[k]}, &p->lloss[i]);
}

int main(void)
{
    static Pair alone[HANDLES], mixed[HANDLES];
    int bad = 0;
    fill();
    for (int k = 0; k < HANDLES; k++) {
        open_pair(&alone[k], k);
        for (int i = 0; i < STEPS; i++)
            bad |= step_digits(&alone[k], k, i);
        for (int i = 0; i < STEPS; i++)
            bad |= step_line(&alone[k], k, i);
    }
    for (int k = 0; k < HANDLES; k++)
        open_pair(&mixed[k], k);
    for (int i = 0; i < STEPS; i++)
        for (int k = HANDLES; k-- > 0;)
            bad |= step_line(&mixed[k], k, i) | step_digits(&mixed[k], k, i);
    int failed = bad != 0;
    for (int k = 0; k < HANDLES; k++) {
        failed += memcmp(alone[k].dloss, mixed[k].dloss, sizeof alone[k].dloss) != 0;
        failed += memcmp(alone[k].lloss, mixed[k].lloss, sizeof alone[k].lloss) != 0;
        /* What lives between calls lies at the start; the handle itself is 1024 bytes. */
        for (int32_t t = 0; t < digits_model.n_tensors; t++) {
            const gradc_tensor *of = &digits_model.tensors[t];
            if (of->offset >= 0)
                failed += memcmp((char *)alone[k].block[0] + of->offset,
                                 (char *)mixed[k].block[0] + of->offset, (size_t)of->bytes) != 0;
        }
    }
    failed += memcmp(mixed[0].dloss, mixed[1].dloss, sizeof mixed[0].dloss) == 0;
    failed += digits_step((digits *)mixed[0].block[1],
                          &(digits_inputs){.image = image[0], .label = label[0]},
                          mixed[0].dloss) != GRADC_BAD_STATE;
    if (failed > 0)
        printf("FAILED: two models and two handles of each: %d differences\n", failed);
    printf("passed=%d failed=%d skipped=0\n", failed == 0, failed > 0);
    return failed > 0;
}
