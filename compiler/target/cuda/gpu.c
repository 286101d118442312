/* The table of GPUs, occupancy, and the time model. */
#include "gpu.h"

#include <string.h>

/* Dense rates at boost clock, and bandwidths, of the data sheets.
 * source: NVIDIA A100 Tensor Core GPU data sheet (SXM; 19.5 and 9.7 TFLOP/s; 1,555 and 2,039
 * GB/s); H100 data sheet (SXM: 67 and 34; 3.35 TB/s); H200 data sheet (SXM: 67 and 34; 4.8 TB/s);
 * multiprocessors: NVIDIA A100 and H100 architecture white papers; shared memory: CUDA C++
 * Programming Guide, "Technical Specifications per Compute Capability"; names of devices: as
 * nvidia-smi prints them */
const Gpu gpus[] = {
    {"a100", "A100 SXM 80 GB", "A100-SXM4-80GB", 80, 108, 2039, 19500, 9700, INT64_C(80) << 30,
     164 << 10},
    {"a100-40", "A100 SXM 40 GB", "A100-SXM4-40GB", 80, 108, 1555, 19500, 9700, INT64_C(40) << 30,
     164 << 10},
    {"h100", "H100 SXM 80 GB", "H100 80GB HBM3", 90, 132, 3350, 67000, 34000, INT64_C(80) << 30,
     228 << 10},
    {"h200", "H200 SXM 141 GB", "NVIDIA H200", 90, 132, 4800, 67000, 34000, INT64_C(141000000000),
     228 << 10},
};
const int n_gpus = sizeof gpus / sizeof *gpus;

/* Estimates, until they are measured with these kernels: from the end of a kernel of a graph to
 * where the next one has filled the device. The share of the bandwidth is what a copy reached on an
 * H200: 4.3 of 4.8 TB/s (gpu.md, 3.6). */
const double gpu_launch_ns = 2000, gpu_reached = 0.9;

const char *const gpu_limit[N_GPU_LIMITS] = {"launch", "bytes", "flops"};

/* Of compute capability 8.0 and 9.0. source: as above */
enum {
    WARP = 32,
    MOST_WARPS = 64,
    MOST_BLOCKS = 32,
    REGISTERS = 65536,
    REGISTER_UNIT = 256, /* of a warp */
    SHARED_UNIT = 128,
    SHARED_RESERVED = 1024 /* of a block, for the system */
};

const Gpu *gpu_find(const char *name)
{
    for (int i = 0; i < n_gpus; i++)
        if (strcmp(gpus[i].name, name) == 0)
            return &gpus[i];
    return NULL;
}

const Gpu *gpu_of_device(const char *name)
{
    for (int i = 0; i < n_gpus; i++)
        if (strstr(name, gpus[i].device) != NULL)
            return &gpus[i];
    return NULL;
}

double gpu_occupancy(const Gpu *g, const GpuUse *u)
{
    int64_t warps = (u->launch.threads + WARP - 1) / WARP;
    int64_t registers = align_up((int64_t)u->registers * WARP, REGISTER_UNIT) * warps;
    int64_t shared = align_up(u->shared_bytes + SHARED_RESERVED, SHARED_UNIT);
    int64_t blocks = MOST_BLOCKS;
    if (blocks > MOST_WARPS / warps)
        blocks = MOST_WARPS / warps;
    if (registers > 0 && blocks > REGISTERS / registers)
        blocks = REGISTERS / registers;
    if (blocks > g->shared_bytes / shared)
        blocks = g->shared_bytes / shared;
    return (double)(blocks * warps) / (double)MOST_WARPS;
}

static bool has_f64(const Kernel *k)
{
    for (int i = 0; i < k->buf.n; i++)
        if (k->buf.at[i].dtype == F64)
            return true;
    return false;
}

double gpu_time(const Gpu *g, const Kernel *k, const Launch *l, GpuLimit *limit)
{
    KCost cost = kernel_cost(k);
    double share = (double)l->blocks / g->processors;
    double rate = has_f64(k) ? g->f64 : g->f32;
    double bytes = (cost.bytes_read + cost.bytes_written) / (gpu_reached * g->memory);
    double flops = (cost.contract_flops + 2 * cost.work) / rate;
    double ns = (bytes > flops ? bytes : flops) / (share < 1 ? share : 1);
    *limit = ns < gpu_launch_ns ? GPU_LAUNCH : bytes > flops ? GPU_BYTES : GPU_FLOPS;
    return gpu_launch_ns + ns;
}
