/* Trains digits.model on 1,437 of the handwritten digits, drawn by chance, and tests it on 360. */
#include <stdio.h>
#include <stdlib.h>
#include "digits.h"
#include "gradc.h"

int main(int argc, char **argv)
{
    enum { ALL = 1797, TRAIN = 1437, BATCH = 64 };
    static float x[ALL * 64], loss, accuracy, right;
    static int32_t y[ALL];
    gradc_array table, image, column, label;
    gradc_batches *all;
    digits *g;
    gradc_batch_options bo = {.struct_size = sizeof bo, .rows = ALL, .seed = 1, .shuffle = 1};
    gradc_error e;
    char path[4096];
    int64_t rows, steps = argc > 2 ? atoll(argv[2]) : 1000;
    snprintf(path, sizeof path, "%s/digits.csv.gz", argc > 1 ? argv[1] : "examples/data");
    if (gradc_csv_read(path, NULL, &table, &e) || gradc_array_columns(&table, 0, 64, &image, &e) ||
        gradc_array_columns(&table, 64, -1, &column, &e) ||
        gradc_array_cast(&column, GRADC_I32, &label, &e) ||
        gradc_batches_open((const gradc_array *[]){&image, &label}, 2, &bo, &all, &e) ||
        gradc_batches_next(all, (void *[]){x, y}, &rows))
        return fprintf(stderr, "%s\n", e.text), 1;
    void *block = gradc_alloc(DIGITS_ARENA_BYTES, DIGITS_ARENA_ALIGN);
    if (digits_init(block, DIGITS_ARENA_BYTES, NULL, &g))
        return fprintf(stderr, "%s\n", digits_error(g)), 1;
    for (int64_t i = 0, at = 0; i < steps; i++, at = (at + BATCH) % (TRAIN - BATCH))
        if (digits_step(g, &(digits_inputs){.image = x + at * 64, .label = y + at}, &loss))
            return fprintf(stderr, "%s\n", digits_error(g)), 1;
    for (int64_t at = TRAIN; at < ALL; at += BATCH) {
        digits_inputs in = {ALL - at < BATCH ? ALL - at : BATCH, x + at * 64, y + at};
        if (digits_eval(g, &in, &(digits_outputs){.accuracy = &accuracy}))
            return fprintf(stderr, "%s\n", digits_error(g)), 1;
        right += accuracy * (float)in.rows / (ALL - TRAIN) * 100;
    }
    printf("loss %.4f, accuracy %.1f %% of unseen digits\n", (double)loss, (double)right);
}
