/* Trains fashion.model on Fashion-MNIST and tests it: FOLDER [STEPS]. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "fashion.h"
#include "gradc.h"

enum { EPOCHS = 3, BATCH = 64 };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int load(const char *folder, const char *part, gradc_array *image, gradc_array *label)
{
    char path[4096];
    gradc_error e;
    gradc_array bytes;
    snprintf(path, sizeof path, "%s/%s-images-idx3-ubyte.gz", folder, part);
    int status = gradc_idx_read(path, image, &e);
    snprintf(path, sizeof path, "%s/%s-labels-idx1-ubyte.gz", folder, part);
    if (status == GRADC_OK)
        status = gradc_idx_read(path, &bytes, &e);
    if (status == GRADC_OK)
        status = gradc_array_cast(&bytes, GRADC_I32, label, &e);
    if (status != GRADC_OK)
        fprintf(stderr, "%s\n", e.text);
    return status;
}

/* The part of the test pictures that is recognised; -1 after a message. */
static double test(fashion *g, const gradc_array *image, const gradc_array *label)
{
    double right = 0;
    for (int64_t at = 0; at < label->shape[0]; at += BATCH) {
        int64_t left = label->shape[0] - at;
        float accuracy;
        fashion_inputs in = {.rows = left < BATCH ? left : BATCH,
                             .image = (const uint8_t *)image->data + at * 784,
                             .label = (const int32_t *)label->data + at};
        if (fashion_eval(g, &in, &(fashion_outputs){.accuracy = &accuracy}) != GRADC_OK) {
            fprintf(stderr, "%s\n", fashion_error(g));
            return -1;
        }
        right += (double)accuracy * (double)in.rows;
    }
    return right / (double)label->shape[0];
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
    long steps = argc > 2 ? atol(argv[2]) : 0;
    gradc_array image, label, test_image, test_label;
    if (load(folder, "train", &image, &label) || load(folder, "t10k", &test_image, &test_label))
        return 1;

    gradc_error e;
    gradc_pool *pool;
    gradc_options o = {.struct_size = sizeof o, .abi = GRADC_ABI, .seed = 1};
    if (gradc_pool_open(0, 0, &pool, &e) != GRADC_OK)
        return fprintf(stderr, "%s\n", e.text), 1;
    gradc_pool_use(pool, &o);
    fashion *g;
    void *block = gradc_alloc(FASHION_ARENA_BYTES, FASHION_ARENA_ALIGN);
    if (block == NULL || fashion_init(block, FASHION_ARENA_BYTES, &o, &g) != GRADC_OK)
        return fprintf(stderr, "fashion_init failed\n"), 1;

    const gradc_array *data[] = {&image, &label};
    gradc_batch_options bo = {.struct_size = sizeof bo, .rows = BATCH, .seed = 1, .shuffle = 1};
    gradc_batches *batches;
    gradc_progress_options po = {
        .struct_size = sizeof po, .out = stderr, .epochs = EPOCHS, .metric = "accuracy"};
    gradc_progress *progress;
    if (gradc_batches_open(data, 2, &bo, &batches, &e) != GRADC_OK)
        return fprintf(stderr, "%s\n", e.text), 1;
    po.steps = steps > 0 ? steps : EPOCHS * gradc_batches_count(batches);
    if (gradc_progress_open(&po, &progress, &e) != GRADC_OK)
        return fprintf(stderr, "%s\n", e.text), 1;

    static uint8_t x[BATCH * 784];
    static int32_t y[BATCH];
    gradc_progress_values v = {.epoch = 1, .lr = NAN};
    double start = seconds();
    while (v.step < po.steps) {
        fashion_inputs in = {.image = x, .label = y};
        float loss, accuracy;
        fashion_outputs out = {.loss = &loss, .accuracy = &accuracy};
        if (gradc_batches_next(batches, (void *[]){x, y}, &in.rows) != GRADC_OK)
            return 1;
        if (in.rows == 0) {
            v.epoch++;
            continue;
        }
        if (fashion_step_outputs(g, &in, &out) != GRADC_OK)
            return fprintf(stderr, "%s\n", fashion_error(g)), 1;
        v.step++;
        v.samples += in.rows;
        v.loss = (double)loss;
        v.metric = (double)accuracy;
        gradc_progress_step(progress, &v);
    }
    double time = seconds() - start;
    gradc_progress_close(progress);
    double accuracy = test(g, &test_image, &test_label);
    if (accuracy < 0)
        return 1;
    printf("test accuracy %.2f %%, %.0f samples/s, %.0f s of training, arena of %u bytes\n",
           100 * accuracy, (double)v.samples / time, time, FASHION_ARENA_BYTES);
    return 0;
}
