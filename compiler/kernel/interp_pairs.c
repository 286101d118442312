/* The chain of bf16 pairs for the interpreter: kernel.h has the formula. On x86-64 its fmz is a
 * multiply-add under MXCSR's flush-to-zero and denormals-are-zero, which decide as the dot product
 * does; the portable form is tested against it.
 * source: Intel SDM volume 2, VDPBF16PS (rounding, DAZ and FTZ are fixed); which product is added
 * first, and that a result is tiny or not after rounding, is measured (tests/unit/kernel_pairs.c).
 */
#include <math.h>
#include "denormals.h"
#include "interp.h"
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

/* A product of halves is exact in f64. Its sum with c may not be, but then it is far from LEAST:
 * all below it round, in 24 bits, to less than 2^-126. */
static float fmz(float a, float b, float c)
{
    const double LEAST = 0x1p-126 - 0x1p-151;
    a = flush_f32(a);
    b = flush_f32(b);
    c = flush_f32(c);
    double exact = (double)a * b + c;
    if (exact != 0 && fabs(exact) < LEAST)
        return copysignf(0, exact < 0 ? -1.0F : 1.0F);
    return fmaf(a, b, c);
}

/* FMZ(x, y, z) of rows, k by k, each pair's second first. */
#define DEFINE(name, FMZ, attribute)                                                               \
    attribute static void row_##name(float x, const float *restrict y, float *restrict to, int n)  \
    {                                                                                              \
        for (int q = 0; q < n; q += STRIP)                                                         \
            for (int j = q; j < q + STRIP; j++)                                                    \
                to[j] = FMZ(x, y[j], to[j]);                                                       \
    }                                                                                              \
    attribute static void tile_##name(const float *a, const float *b, float *acc, int m, int n,    \
                                      int k)                                                       \
    {                                                                                              \
        for (int i = 0; i < m; i++)                                                                \
            for (int p = 0; p < k; p += 2) {                                                       \
                if (p + 1 < k)                                                                     \
                    row_##name(a[i * TILE_K + p + 1], b + (p + 1) * TILE_N, acc + i * TILE_N, n);  \
                row_##name(a[i * TILE_K + p], b + p * TILE_N, acc + i * TILE_N, n);                \
            }                                                                                      \
    }

DEFINE(portable, fmz, )

#if defined(__x86_64__) && defined(__GNUC__)

DEFINE(hardware, fmaf, __attribute__((target("avx2,fma"))))

enum { FLUSHES = 0x8040, QUIET = 0x1f80 };

/* The mode is set around the call of a function that is not inlined: nothing of it moves out. */
static void (*volatile const tile_flushed)(const float *, const float *, float *, int, int,
                                           int) = tile_hardware;

void interp_chain_pairs(const float *a, const float *b, float *acc, int m, int n, int k)
{
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
        tile_portable(a, b, acc, m, n, k);
        return;
    }
    unsigned before = _mm_getcsr();
    _mm_setcsr(QUIET | FLUSHES);
    tile_flushed(a, b, acc, m, n, k);
    _mm_setcsr(before);
}
#else
void interp_chain_pairs(const float *a, const float *b, float *acc, int m, int n, int k)
{
    tile_portable(a, b, acc, m, n, k);
}
#endif

float interp_fmz(float a, float b, float c)
{
    return fmz(a, b, c);
}
