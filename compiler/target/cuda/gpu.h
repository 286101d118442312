/* GPUs by name, and what a kernel is expected to take on one: so that a plan for a GPU can be made
 * on a machine that has none. Nothing here asks a device.
 *
 * The model: a kernel takes
 *     LAUNCH + max(bytes / (REACHED * memory), chain / flops + 2 work / flops) / share
 * bytes: what kernel_cost() counts, each element once, all of it from memory; chain: flops of a
 * contraction; work: its other instructions, of which a lane makes one where it makes an fma of two
 * flops; share: of the multiprocessors that have a block, at most 1. That is a kernel at its best:
 * caches help none, and none waits for its own loads. */
#ifndef GRADC_TARGET_CUDA_GPU_H
#define GRADC_TARGET_CUDA_GPU_H

#include "cuda.h"

typedef struct Gpu {
    const char *name, *title; /* "h100", "H100 SXM 80 GB" */
    const char *device;       /* what the driver calls it has this in it */
    int arch;                 /* 10 * major + minor */
    int32_t processors;
    double memory;        /* bytes a ns */
    double f32, f64;      /* flops a ns, an fma being two, without tensor cores */
    int64_t memory_bytes; /* of the device */
    int64_t shared_bytes; /* of a multiprocessor */
} Gpu;

extern const Gpu gpus[];
extern const int n_gpus;
const Gpu *gpu_find(const char *name); /* NULL: not known */
const Gpu *gpu_of_device(const char *name);

/* What a kernel needs. registers 0: not known. */
typedef struct GpuUse {
    Launch launch;
    int32_t registers;
    int64_t shared_bytes; /* of a block */
} GpuUse;

/* Warps that a multiprocessor runs at once, of the most that it can: 0 to 1.
 * requires: registers. */
double gpu_occupancy(const Gpu *g, const GpuUse *u);

typedef enum GpuLimit { GPU_LAUNCH, GPU_BYTES, GPU_FLOPS, N_GPU_LIMITS } GpuLimit;
extern const char *const gpu_limit[N_GPU_LIMITS];

/* ns of one launch, and what most of it goes into. */
double gpu_time(const Gpu *g, const Kernel *k, const Launch *l, GpuLimit *limit);
/* Of the model, for reports: ns, and a share of the bandwidth. */
extern const double gpu_launch_ns, gpu_reached;

#endif
