/* GPUs on paper: occupancy by hand, and what the time model says of kernels that are limited by one
 * thing each. */
#include <check.h>

#include "target/cuda/gpu.h"

static double occupancy(int32_t threads, int32_t registers, int64_t shared)
{
    GpuUse u = {.launch = {.blocks = 1, .threads = threads},
                .registers = registers,
                .shared_bytes = shared};
    return gpu_occupancy(gpu_find("h100"), &u);
}

/* source: by hand of the tables in CUDA C++ Programming Guide, "Compute Capabilities" */
START_TEST(occupancy_by_hand)
{
    ck_assert_double_eq(occupancy(256, 32, 0), 1);          /* 8 blocks: 64 warps */
    ck_assert_double_eq(occupancy(256, 33, 0), 48.0 / 64);  /* 40 registers: 6 blocks */
    ck_assert_double_eq(occupancy(256, 128, 0), 16.0 / 64); /* 2 */
    ck_assert_double_eq(occupancy(256, 129, 0), 8.0 / 64);  /* 136 registers: 1 */
    ck_assert_double_eq(occupancy(32, 16, 0), 0.5);         /* 32 blocks at most */
    ck_assert_double_eq(occupancy(16, 16, 0), 0.5);         /* half a warp takes one */
    ck_assert_double_eq(occupancy(256, 32, 47 << 10), 0.5); /* 48 KiB with the system's: 4 */
    ck_assert_double_eq(occupancy(256, 32, 16896), 1);      /* 17.5 of 228 KiB: 13, of which 8 */
    ck_assert_double_eq(occupancy(1024, 64, 0), 0.5);       /* all registers: 1 block */
    ck_assert_double_eq(occupancy(1024, 72, 0), 0);         /* more than there are */
}
END_TEST

/* y = x + 1, n times. */
static Kernel *add_one(Arena *arena, int64_t n)
{
    Kernel *k = kernel_new(arena, K_LOOP, "add_one");
    int x = k_buf(k, F32, n, K_IN), y = k_buf(k, F32, n, K_OUT);
    Val i = k_par(k, n), v = k_load(k, x, k_aff_val(i, 1));
    k_store(k, y, k_aff_val(i, 1), k_binary(k, KI_ADD, v, k_const(k, F32, 1)));
    k_end(k, i);
    k_finish(k);
    return k;
}

START_TEST(times_by_hand)
{
    Arena arena = {0};
    const Gpu *g = gpu_find("h200");
    GpuLimit limit;
    const Kernel *few = add_one(&arena, 256), *many = add_one(&arena, 1 << 28);
    Launch one = {.blocks = 1, .threads = 256}, all = {.blocks = 1 << 20, .threads = 256};
    double bytes = 8.0 * (1 << 28) / (0.9 * 4800);
    ck_assert_double_eq_tol(gpu_time(g, many, &all, &limit), 2000 + bytes, 1);
    ck_assert_int_eq(limit, GPU_BYTES);
    ck_assert_double_eq_tol(gpu_time(g, many, &one, &limit), 2000 + 132 * bytes, 1);
    ck_assert_double_eq_tol(gpu_time(g, few, &one, &limit), 2000 + 132 * 2048 / (0.9 * 4800), 1);
    ck_assert_int_eq(limit, GPU_LAUNCH);
    arena_free(&arena);
}
END_TEST

START_TEST(names)
{
    ck_assert(gpu_find("") == NULL && gpu_find("H100") == NULL);
    for (int i = 0; i < n_gpus; i++) {
        ck_assert(gpu_find(gpus[i].name) == &gpus[i]);
        ck_assert(gpus[i].processors > 0 && gpus[i].memory > 0 && gpus[i].f64 > 0);
    }
    ck_assert(gpu_of_device("NVIDIA H200") == gpu_find("h200"));
    ck_assert(gpu_of_device("NVIDIA GH200 480GB") == NULL);
    ck_assert(gpu_of_device("NVIDIA A100-SXM4-40GB") == gpu_find("a100-40"));
    ck_assert(gpu_of_device("NVIDIA A100-SXM4-80GB") == gpu_find("a100"));
    ck_assert(gpu_of_device("NVIDIA H100 80GB HBM3") == gpu_find("h100"));
    ck_assert(gpu_of_device("NVIDIA H100 PCIe") == NULL); /* of another memory */
}
END_TEST

Suite *suite_cuda_gpu(void);
Suite *suite_cuda_gpu(void)
{
    Suite *s = suite_create("cuda_gpu");
    TCase *t = tcase_create("gpus");
    tcase_add_test(t, occupancy_by_hand);
    tcase_add_test(t, times_by_hand);
    tcase_add_test(t, names);
    suite_add_tcase(s, t);
    return s;
}
