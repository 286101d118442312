/* Kernels as objects run them: emitted, linked into the process, shared out to the pool. */
#define _GNU_SOURCE
#include <sched.h>
#include <time.h>
#include "gradc.h"
#include "rates.h"

/* In pages that are as large as those of an object's block. */
static void *aligned(int64_t bytes)
{
    enum { LARGE = 4 << 20 };
    void *p = gradc_alloc(bytes + 64 < LARGE ? LARGE : bytes + 64, 64);
    if (p == NULL) {
        fprintf(stderr, "no memory for %lld bytes\n", (long long)bytes);
        exit(1);
    }
    return p;
}

float *memory_filled(int64_t elems, unsigned seed)
{
    float *p = aligned(elems * 4);
    for (int64_t i = 0; i < elems; i++) {
        seed = seed * 1664525u + 1013904223u;
        p[i] = (float)((int)(seed >> 8) - (1 << 23)) * 0x1p-23f;
    }
    return p;
}

static void own_operands(Runner *x, const Kernel *k)
{
    for (int i = 0; i < k->buf.n; i++) {
        int64_t bytes = k->buf.at[i].elems * dtype_bytes(k->buf.at[i].dtype);
        x->buf[i] = aligned(bytes);
        for (int64_t e = 0; e < bytes / 4; e++)
            ((float *)x->buf[i])[e] = (float)(e % 17) * 0.01f;
    }
    x->n_own = k->buf.n;
}

Runner runner_new(Rates *r, Kernel *k, void *const *buf)
{
    Runner x = {.each = k->kind == K_LOOP ? 4 : 1};
    ObjectFile object = {0};
    if (!cpu_emit_kernels(&r->cx, &r->o, &k, 1, &r->arena, &x.fn, &object)) {
        diag_print(&r->cx, stderr);
        exit(1);
    }
    x.loaded = cpu_load(&r->cx, &object, NULL);
    *(void **)&x.code = loaded_symbol(x.loaded, "k0");
    x.scratch_bytes = align_up(x.fn.scratch, 4096) + 64; /* as the block's layout has it */
    x.scratch = aligned(x.scratch_bytes * r->lanes);
    if (buf == NULL)
        own_operands(&x, k);
    for (int i = 0; buf != NULL && i < k->buf.n; i++)
        x.buf[i] = buf[i];
    return x;
}

void runner_free(Runner *x)
{
    for (int i = 0; i < x->n_own; i++)
        gradc_free(x->buf[i]);
    gradc_free(x->scratch);
    cpu_unload(x->loaded);
}

typedef struct Shared {
    Runner *x;
    int64_t count;
} Shared;

static void piece(void *arg, int64_t i, int32_t lane)
{
    Shared *s = arg;
    Runner *x = s->x;
    int64_t n = x->fn.n_units;
    x->code(x->buf, x->scratch + lane * x->scratch_bytes, n * i / s->count, n * (i + 1) / s->count);
}

void runner_call(Rates *r, Runner *x)
{
    Shared s = {x, r->lanes * x->each};
    if (r->lanes == 1 || x->fn.chunks <= 1) {
        x->code(x->buf, x->scratch, 0, x->fn.n_units);
        return;
    }
    s.count = s.count < x->fn.chunks ? s.count : x->fn.chunks;
    gradc_pool_parallel_for(r->pool, s.count, piece, &s);
}

void lanes_open(Rates *r, int lanes)
{
    gradc_error e;
    r->lanes = lanes;
    if (lanes > 1 && gradc_pool_open(lanes, 0, &r->pool, &e) != GRADC_OK) {
        fprintf(stderr, "no pool of %d lanes: %s\n", lanes, e.text);
        exit(1);
    }
    cpu_set_t all, first;
    CPU_ZERO(&first);
    if (lanes == 1 || sched_getaffinity(0, sizeof all, &all) != 0)
        return;
    int cpu = 0;
    while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET((size_t)cpu, &all))
        cpu++;
    CPU_SET((size_t)cpu, &first);
    sched_setaffinity(0, sizeof first, &first);
}

void lanes_close(Rates *r)
{
    gradc_pool_close(r->pool);
    r->pool = NULL;
    r->lanes = 1;
}

double seconds_now(const Rates *r)
{
    struct timespec t;
    clock_gettime(r->lanes == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, by_value);
    return n % 2 != 0 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}
