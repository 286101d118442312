/* What the parts of host.c share: the mock, data and handles. */
#ifndef GRADC_TESTS_CUDA_HOST_H
#define GRADC_TESTS_CUDA_HOST_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef HIDDEN
#define HIDDEN 8
#endif

#include "cuda_abi.h"
#include "digits.cuda.h"
#include "digits.h"
#include "gradc.h"

enum { ROWS = DIGITS_BATCH_ROWS, PIXELS = 64, CLASSES = 10, STEPS = 4 };

extern int passed, failed;

#define EXPECT(x)                                                                                  \
    do {                                                                                           \
        if (x)                                                                                     \
            passed++;                                                                              \
        else {                                                                                     \
            failed++;                                                                              \
            printf("FAILED: %s:%d: %s\n", __FILE__, __LINE__, #x);                                 \
        }                                                                                          \
    } while (0)

/* ---- the mock
 * ------------------------------------------------------------------------------------ */

typedef struct Mock {
    void *library;
    void (*fail)(long nth, long code);
    long (*calls)(void);
    const char *(*failed)(void);
    void (*counts)(long *bytes, long *launches, long *graphs);
    int (*device)(void);
    void (*lend)(void *p, size_t n);
    int (*allocate)(uint64_t *p, size_t n);
    int (*release)(uint64_t p);
    int (*retain)(void **context, int device);
    int (*drop)(int device);
    int (*push)(void *context);
    int (*pop)(void **context);
    int (*create)(void **stream, unsigned flags);
    int (*destroy)(void *stream);
    int (*synchronize)(void *stream);
    int (*copy)(uint64_t to, const void *from, size_t n, void *stream);
} Mock;

static inline void find(Mock *m, const char *name, void *to)
{
    void *at = dlsym(m->library, name);
    if (at == NULL)
        exit(2);
    memcpy(to, &at, sizeof at);
}

static inline Mock open_mock(void)
{
    Mock m = {.library = dlopen(getenv("GRADC_LIBCUDA"), RTLD_NOW)};
    if (m.library == NULL)
        exit(2);
    find(&m, "mock_fail", &m.fail);
    find(&m, "mock_calls", &m.calls);
    find(&m, "mock_failed", &m.failed);
    find(&m, "mock_counts", &m.counts);
    find(&m, "mock_device", &m.device);
    find(&m, "mock_lend", &m.lend);
    find(&m, "cuMemAlloc_v2", &m.allocate);
    find(&m, "cuMemFree_v2", &m.release);
    find(&m, "cuDevicePrimaryCtxRetain", &m.retain);
    find(&m, "cuDevicePrimaryCtxRelease_v2", &m.drop);
    find(&m, "cuCtxPushCurrent_v2", &m.push);
    find(&m, "cuCtxPopCurrent_v2", &m.pop);
    find(&m, "cuStreamCreate", &m.create);
    find(&m, "cuStreamDestroy_v2", &m.destroy);
    find(&m, "cuStreamSynchronize", &m.synchronize);
    find(&m, "cuMemcpyHtoDAsync_v2", &m.copy);
    return m;
}

/* ---- data
 * ---------------------------------------------------------------------------------------- */

extern float image[STEPS][ROWS * PIXELS];
extern int32_t label[STEPS][ROWS];

/* ---- handles
 * ---------------------------------------------------------------------------------------- */

/* Blocks are aligned by their types alone. */
typedef union Block {
    _Alignas(64) unsigned char bytes[DIGITS_CUDA_ARENA_BYTES];
} Block;

static inline gradc_options options(const gradc_cuda *gpu)
{
    gradc_options o = {.struct_size = sizeof o, .abi = GRADC_ABI, .seed = 3};
    gradc_cuda_use(gpu, &o);
    return o;
}

static inline int init(Block *b, const gradc_cuda *gpu, digits_cuda **g)
{
    gradc_options o = options(gpu);
    return digits_cuda_init(b, sizeof *b, &o, g);
}

static inline digits_cuda_inputs inputs(int s)
{
    return (digits_cuda_inputs){.image = image[s], .label = label[s]};
}

/* ---- host_sweep.c: each call of the driver fails once ---------------------------------------- */

typedef struct Watched {
    long launches, apart;
    double last;
    bool in_order; /* none begins before the one before it has ended */
} Watched;
void watched(void *of, int64_t op, double from, double to);

/* Each call gives nothing, and says that it has; each call fails with the code. */
void hollow(void);
void sweep(long code);

#endif
