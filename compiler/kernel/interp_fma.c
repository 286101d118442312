/* Rows of fused multiply-adds for the interpreter. The C library's fma is right
 * everywhere, but slow where it is a call; on x86-64 the same loops are also
 * compiled for processors that have the instruction. */
#include <math.h>
#include "interp.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_FMA()     __builtin_cpu_supports("fma")
#define WITH_HARDWARE __attribute__((target("avx2,fma")))
#else
#define HAS_FMA() 0
#define WITH_HARDWARE
#endif

/* Row operations and chains for one type, once portable and once for FMA. */
#define DEFINE(name, T, FMA, attribute)                                                            \
    attribute static void row_##name(const T *x, const T *y, const T *z, T *r, int n)              \
    {                                                                                              \
        for (int i = 0; i < n; i++)                                                                \
            r[i] = FMA(x[i], y[i], z[i]);                                                          \
    }                                                                                              \
    attribute static void tile_##name(const T *a, const T *restrict b, T *acc, int m, int n,       \
                                      int k)                                                       \
    {                                                                                              \
        for (int i = 0; i < m; i++) {                                                              \
            T *restrict to = acc + i * TILE_N;                                                     \
            for (int p = 0; p < k; p++) {                                                          \
                T x = a[i * TILE_K + p];                                                           \
                const T *y = b + p * TILE_N;                                                       \
                for (int q = 0; q < n; q += STRIP)                                                 \
                    for (int j = q; j < q + STRIP; j++)                                            \
                        to[j] = FMA(x, y[j], to[j]);                                               \
            }                                                                                      \
        }                                                                                          \
    }

DEFINE(f32, float, fmaf, )
DEFINE(f64, double, fma, )
DEFINE(f32_hardware, float, fmaf, WITH_HARDWARE)
DEFINE(f64_hardware, double, fma, WITH_HARDWARE)

void interp_fma_f32(const float *x, const float *y, const float *z, float *r, int n)
{
    (HAS_FMA() ? row_f32_hardware : row_f32)(x, y, z, r, n);
}

void interp_fma_f64(const double *x, const double *y, const double *z, double *r, int n)
{
    (HAS_FMA() ? row_f64_hardware : row_f64)(x, y, z, r, n);
}

void interp_chain_f32(const float *a, const float *b, float *acc, int m, int n, int k)
{
    (HAS_FMA() ? tile_f32_hardware : tile_f32)(a, b, acc, m, n, k);
}

void interp_chain_f64(const double *a, const double *b, double *acc, int m, int n, int k)
{
    (HAS_FMA() ? tile_f64_hardware : tile_f64)(a, b, acc, m, n, k);
}
