/* Trains resnet8.model on Fashion-MNIST, its pictures set in 32x32 pixels of three
 * equal colours: FOLDER [STEPS]. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "gradc.h"
#include "resnet8.h"

enum { BATCH = 64, SIDE = 32, IN = 28, STEPS = 300, TESTED = 2048 };

static float x[BATCH * 3 * SIDE * SIDE];
static uint8_t bytes[BATCH * IN * IN];
static int32_t y[BATCH];

static int fail(const char *text)
{
    fprintf(stderr, "%s\n", text);
    return 1;
}

static int load(const char *folder, const char *part, gradc_array *image, gradc_array *label)
{
    char path[4096];
    gradc_error e;
    gradc_array raw;
    snprintf(path, sizeof path, "%s/%s-images-idx3-ubyte.gz", folder, part);
    int status = gradc_idx_read(path, image, &e);
    snprintf(path, sizeof path, "%s/%s-labels-idx1-ubyte.gz", folder, part);
    if (status == GRADC_OK)
        status = gradc_idx_read(path, &raw, &e);
    if (status == GRADC_OK)
        status = gradc_array_cast(&raw, GRADC_I32, label, &e);
    return status == GRADC_OK ? 0 : fail(e.text);
}

/* Pictures in the middle of a grey frame, from about -1 to 1. */
static void frame(int64_t rows)
{
    for (int64_t r = 0; r < rows; r++)
        for (int c = 0; c < 3; c++)
            for (int i = 0; i < SIDE * SIDE; i++) {
                int row = i / SIDE - 2, col = i % SIDE - 2;
                int inside = row >= 0 && row < IN && col >= 0 && col < IN;
                int v = inside ? bytes[(r * IN + row) * IN + col] : 0;
                x[(r * 3 + c) * SIDE * SIDE + i] = (float)v / 127.5f - 1;
            }
}

static int open_batches(gradc_array *image, gradc_array *label, int shuffle, gradc_batches **b)
{
    const gradc_array *data[] = {image, label};
    gradc_error e;
    gradc_batch_options o = {
        .struct_size = sizeof o, .rows = BATCH, .seed = 1, .shuffle = shuffle, .drop_last = 1};
    return gradc_batches_open(data, 2, &o, b, &e) == GRADC_OK ? 0 : fail(e.text);
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
    int64_t steps = argc > 2 ? atoll(argv[2]) : STEPS, rows;
    static gradc_array image, label, test_image, test_label;
    gradc_batches *train, *test;
    if (load(folder, "train", &image, &label) || load(folder, "t10k", &test_image, &test_label) ||
        open_batches(&image, &label, 1, &train) || open_batches(&test_image, &test_label, 0, &test))
        return 1;

    gradc_error e;
    gradc_pool *pool;
    gradc_progress *progress;
    gradc_progress_options po = {.struct_size = sizeof po, .out = stderr, .steps = steps};
    if (gradc_pool_open(0, 0, &pool, &e) != GRADC_OK ||
        gradc_progress_open(&po, &progress, &e) != GRADC_OK)
        return fail(e.text);
    resnet8 *g;
    gradc_options o = {.struct_size = sizeof o, .abi = GRADC_ABI, .seed = 1};
    gradc_pool_use(pool, &o);
    void *block = gradc_alloc(RESNET8_ARENA_BYTES, RESNET8_ARENA_ALIGN);
    if (block == NULL || resnet8_init(block, RESNET8_ARENA_BYTES, &o, &g) != GRADC_OK)
        return fail("resnet8_init failed");

    resnet8_inputs in = {.image = x, .label = y};
    gradc_progress_values v = {.epoch = 1, .metric = NAN, .lr = NAN};
    while (v.step < steps) {
        float loss;
        if (gradc_batches_next(train, (void *[]){bytes, y}, &rows) != GRADC_OK)
            return fail("no batch");
        if (rows == 0)
            continue;
        frame(rows);
        if (resnet8_step(g, &in, &loss) != GRADC_OK)
            return fail(resnet8_error(g));
        v.step++;
        v.samples += rows;
        v.loss = (double)loss;
        gradc_progress_step(progress, &v);
    }
    gradc_progress_close(progress);

    double right = 0;
    int64_t seen = 0;
    while (seen < TESTED && gradc_batches_next(test, (void *[]){bytes, y}, &rows) == GRADC_OK &&
           rows > 0) {
        float accuracy;
        frame(rows);
        if (resnet8_eval(g, &in, &(resnet8_outputs){.accuracy = &accuracy}) != GRADC_OK)
            return fail(resnet8_error(g));
        right += (double)accuracy * (double)rows;
        seen += rows;
    }
    printf("accuracy %.1f %% of %lld test pictures, arena of %u bytes\n",
           100 * right / (double)seen, (long long)seen, RESNET8_ARENA_BYTES);
    return 0;
}
