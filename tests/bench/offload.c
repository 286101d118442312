/* How much of the transfers to a slow disk computing hides: the disk is memory behind functions
 * that sleep as long as it would take.
 *
 *   offload BYTES-A-SECOND STEPS
 *
 * Prints one line, and ends with 1 where bytes are not those of the plan, or a loss is not that of
 * a store that does not sleep. */
#define _GNU_SOURCE
#include <gradc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "offload.h"

static double rate; /* bytes a ns; 0: no limit */
static char disk[OFFLOAD_OFFLOAD_BYTES];

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void take_time(int64_t n)
{
    int64_t ns = rate > 0 ? (int64_t)((double)n / rate) : 0;
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    nanosleep(&t, NULL);
}

static int read_disk(void *context, int64_t at, void *bytes, int64_t n)
{
    (void)context;
    take_time(n);
    memcpy(bytes, disk + at, (size_t)n);
    return 0;
}

static int write_disk(void *context, int64_t at, const void *bytes, int64_t n)
{
    (void)context;
    take_time(n);
    memcpy(disk + at, bytes, (size_t)n);
    return 0;
}

typedef struct Run {
    double ms;
    float loss;
    gradc_store_counts counts;
    int status;
} Run;

static Run run(gradc_pool *pool, const float *x, const float *y, int steps)
{
    Run r = {0};
    gradc_store_calls calls = {.struct_size = sizeof calls, .read = read_disk, .write = write_disk};
    gradc_store *store;
    gradc_options o = {.struct_size = sizeof o, .abi = GRADC_ABI, .seed = 1};
    offload_inputs in = {0, x, y};
    offload *g;
    void *block = gradc_alloc(OFFLOAD_ARENA_BYTES, OFFLOAD_ARENA_ALIGN);
    gradc_pool_use(pool, &o);
    r.status = gradc_store_open(&calls, &store, NULL);
    gradc_store_use(store, &o);
    if (r.status == GRADC_OK)
        r.status = offload_init(block, OFFLOAD_ARENA_BYTES, &o, &g);
    double start = now_ms();
    for (int i = 0; i < steps && r.status == GRADC_OK; i++)
        r.status = offload_step(g, &in, &r.loss);
    r.ms = (now_ms() - start) / steps;
    gradc_store_count(store, &r.counts);
    gradc_store_close(store);
    gradc_free(block);
    return r;
}

int main(int argc, char **argv)
{
    int steps = argc > 2 ? atoi(argv[2]) : 10;
    double bytes = argc > 1 ? atof(argv[1]) : 5e8;
    int64_t n = offload_model.inputs[0].elems;
    float *x = gradc_alloc(n * 4, 64), *y = gradc_alloc(n * 4, 64);
    gradc_pool *pool;
    if (steps < 1 || x == NULL || y == NULL || gradc_pool_open(1, 0, &pool, NULL) != GRADC_OK)
        return 1;
    for (int64_t i = 0; i < n; i++) {
        x[i] = (float)gradc_draw(1, i, 2000) / 1000 - 1;
        y[i] = (float)gradc_draw(2, i, 2000) / 1000 - 1;
    }
    Run fast = run(pool, x, y, steps);
    rate = bytes / 1e9;
    Run slow = run(pool, x, y, steps);
    gradc_pool_close(pool);
    int right = fast.status == GRADC_OK && slow.status == GRADC_OK &&
                memcmp(&fast.loss, &slow.loss, sizeof fast.loss) == 0 &&
                slow.counts.written == steps * (int64_t)OFFLOAD_OFFLOAD_STEP_OUT &&
                slow.counts.read == steps * (int64_t)OFFLOAD_OFFLOAD_STEP_IN;
    printf("%6.0f MB/s: block %6.1f MiB, store %5.1f MiB; a step moves %5.1f MiB out and %5.1f MiB "
           "in, "
           "as planned; %6.1f ms, of them %5.1f of transfers, %5.1f ms waited for: %5.1f %% "
           "hidden%s\n",
           bytes / 1e6, OFFLOAD_ARENA_BYTES / 1048576.0, OFFLOAD_OFFLOAD_BYTES / 1048576.0,
           OFFLOAD_OFFLOAD_STEP_OUT / 1048576.0, OFFLOAD_OFFLOAD_STEP_IN / 1048576.0, slow.ms,
           slow.counts.transfer_s * 1e3 / steps, slow.counts.waited_s * 1e3 / steps,
           100 * (1 - slow.counts.waited_s / slow.counts.transfer_s), right ? "" : " WRONG");
    return !right;
}
