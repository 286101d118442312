/* The mode of the thread, and numbers that are flushed without it.
 * source: Intel SDM volume 1, section 10.2.3, MXCSR: DAZ is bit 6, FTZ bit 15. */
#include "denormals.h"

#include <math.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <xmmintrin.h>

enum { FLUSHES = 0x8040, FLUSHING = 0x1f80 | FLUSHES };

bool denormals_can_flush(void)
{
    return __builtin_cpu_supports("fma");
}

uint32_t denormals_begin(bool flush)
{
    uint32_t before = _mm_getcsr();
    if (flush && denormals_can_flush())
        _mm_setcsr(FLUSHING);
    return before;
}

void denormals_end(uint32_t before)
{
    _mm_setcsr(before);
}

bool denormals_flushed(void)
{
    return (_mm_getcsr() & FLUSHES) == FLUSHES;
}
#else
bool denormals_can_flush(void)
{
    return false;
}

uint32_t denormals_begin(bool flush)
{
    (void)flush;
    return 0;
}

void denormals_end(uint32_t before)
{
    (void)before;
}

bool denormals_flushed(void)
{
    return false;
}
#endif

float flush_f32(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    if ((u & 0x7f800000) != 0)
        return x;
    u &= 0x80000000;
    memcpy(&x, &u, sizeof x);
    return x;
}

double flush_f64(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    if ((u & UINT64_C(0x7ff0000000000000)) != 0)
        return x;
    u &= UINT64_C(1) << 63;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* Nothing is rounded, for that may depend on the mode. */
double flush_const(DType t, double x)
{
    if (t != F32 && t != BF16)
        return t == F64 ? flush_f64(x) : x;
    return fabs(x) < 0x1p-126 ? copysign(0, x) : x;
}
