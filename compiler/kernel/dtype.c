/* Element types and the storage conversions of the two half formats. */
#include "dtype.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    int bytes;
} info[N_DTYPES] = {
    [F32] = {"f32", 4}, [F64] = {"f64", 8}, [F16] = {"f16", 2}, [BF16] = {"bf16", 2},
    [I32] = {"i32", 4}, [I64] = {"i64", 8}, [U8] = {"u8", 1},   [BOOL] = {"bool", 1},
};

const char *dtype_name(DType t)
{
    return t < N_DTYPES ? info[t].name : "?";
}

bool dtype_find(const char *name, DType *t)
{
    for (int i = 0; i < N_DTYPES; i++) {
        if (strcmp(info[i].name, name) == 0) {
            *t = (DType)i;
            return true;
        }
    }
    return false;
}

int dtype_bytes(DType t)
{
    return t < N_DTYPES ? info[t].bytes : 0;
}

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static float float_of(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

float f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exp = (h >> 10) & 31, frac = h & 0x3ff;
    if (exp == 31) /* infinity, or a NaN made quiet */
        return float_of(sign | 0x7f800000 | frac << 13 | (frac != 0 ? 0x400000 : 0));
    if (exp != 0)
        return float_of(sign | (exp + 112) << 23 | frac << 13);
    float tiny = (float)frac * 0x1p-24f; /* exact: a denormal f16 is a normal f32 */
    return float_of(sign | bits_of(tiny));
}

/* v shifted right by s in 1..31, rounded to nearest even. */
static uint32_t shift_even(uint32_t v, uint32_t s)
{
    uint32_t half = UINT32_C(1) << (s - 1), q = v >> s, rest = v & (2 * half - 1);
    return q + (rest > half || (rest == half && (q & 1)));
}

uint16_t f32_to_f16(float x)
{
    uint32_t u = bits_of(x), sign = u >> 16 & 0x8000, mag = u & 0x7fffffff;
    uint32_t r;
    if (mag > 0x7f800000) /* NaN: quiet, top bits of the payload */
        r = 0x7e00 | (mag >> 13 & 0x3ff);
    else if (mag >= 0x47800000) /* 2^16 and more */
        r = 0x7c00;
    else if (mag >= 0x38800000) /* normal; a carry moves into the exponent */
        r = shift_even(mag - (UINT32_C(112) << 23), 13);
    else if (mag >= 0x33000000) /* 2^-25 and more: denormal, or the tie with zero */
        r = shift_even((mag & 0x7fffff) | 0x800000, 126 - (mag >> 23));
    else
        r = 0;
    return (uint16_t)(sign | r);
}

float bf16_to_f32(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    if ((u & 0x7fffffff) > 0x7f800000)
        u |= 0x400000;
    return float_of(u);
}

uint16_t f32_to_bf16(float x)
{
    uint32_t u = bits_of(x);
    if ((u & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* The one of the two floats around x that is odd: what is rounded to a half next is rounded as x
 * would be. (Boldo and Melquiond, Emulation of FMA and correctly rounded sums: proved algorithms
 * using rounding to odd, 2008) */
static float to_odd(double x)
{
    float f = (float)x;
    uint32_t u = bits_of(f);
    if ((double)f == x || isnan(x) || isinf(f) || (u & 1) != 0)
        return f;
    return float_of(fabs((double)f) < fabs(x) ? u + 1 : u - 1);
}

uint16_t f64_to_f16(double x)
{
    return f32_to_f16(to_odd(x));
}

uint16_t f64_to_bf16(double x)
{
    return f32_to_bf16(to_odd(x));
}

double dtype_round(DType t, double x)
{
    switch (t) {
    case F32:
        return (float)x;
    case F16:
        return f16_to_f32(f64_to_f16(x));
    case BF16:
        return bf16_to_f32(f64_to_bf16(x));
    default:
        return x;
    }
}

int64_t dtype_integer(DType t, const void *x, int64_t i)
{
    switch (t) {
    case I32:
        return ((const int32_t *)x)[i];
    case I64:
        return ((const int64_t *)x)[i];
    default:
        assert(!dtype_is_float(t));
        return ((const uint8_t *)x)[i];
    }
}

double dtype_value(DType t, const void *x, int64_t i)
{
    switch (t) {
    case F32:
        return ((const float *)x)[i];
    case F64:
        return ((const double *)x)[i];
    case F16:
        return f16_to_f32(((const uint16_t *)x)[i]);
    case BF16:
        return bf16_to_f32(((const uint16_t *)x)[i]);
    default:
        return (double)dtype_integer(t, x, i);
    }
}

int64_t dtype_first_unlike(DType t, const void *x, const void *y, int64_t n)
{
    size_t each = (size_t)dtype_bytes(t);
    const char *p = x, *q = y;
    if (memcmp(p, q, (size_t)n * each) == 0)
        return -1;
    for (int64_t i = 0; i < n; i++)
        if (memcmp(p + (size_t)i * each, q + (size_t)i * each, each) != 0 &&
            !(isnan(dtype_value(t, p, i)) && isnan(dtype_value(t, q, i))))
            return i;
    return -1;
}
