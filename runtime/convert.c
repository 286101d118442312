/* Elements of one dtype to another. Half formats are integer code: the same bits everywhere. */
#include "internal.h"

#include <string.h>

static uint32_t bits_of_float(float v)
{
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    return u;
}

static float float_of_bits(uint32_t u)
{
    float v;
    memcpy(&v, &u, sizeof v);
    return v;
}

static uint64_t bits_of_double(double v)
{
    uint64_t u;
    memcpy(&u, &v, sizeof u);
    return u;
}

/* Shifts right by n, to nearest even. */
static uint64_t round_shift(uint64_t m, int n)
{
    if (n <= 0)
        return m;
    if (n > 63)
        return 0;
    uint64_t half = UINT64_C(1) << (n - 1);
    uint64_t rest = m & ((half << 1) - 1);
    uint64_t q = m >> n;
    return q + (rest > half || (rest == half && (q & 1) != 0));
}

/* A double rounded once to a format of 16 bits with `man` mantissa bits and exponent bias `bias`.
 * Every dtype but i64 passes through here by way of double, which holds all of them exactly, so no
 * value is rounded twice. */
static uint16_t narrow(double v, int man, int bias)
{
    uint64_t u = bits_of_double(v);
    uint32_t sign = (uint32_t)(u >> 48) & 0x8000u;
    int exponent = (int)(u >> 52 & 0x7FF);
    uint64_t mantissa = u & ((UINT64_C(1) << 52) - 1);
    uint32_t max_exponent = (uint32_t)(2 * bias + 1);
    uint32_t infinity = max_exponent << man;
    if (exponent == 0x7FF) {
        uint32_t quiet = 1u << (man - 1);
        uint32_t payload = (uint32_t)(mantissa >> (52 - man));
        return (uint16_t)(sign | infinity | (mantissa != 0 ? quiet | payload : 0));
    }
    if (exponent == 0)
        return (uint16_t)sign; /* far below the smallest of either format */
    mantissa |= UINT64_C(1) << 52;
    int e = exponent - 1023 + bias;
    uint64_t r;
    if (e >= 1) /* a carry out of the mantissa moves into the exponent, as it should */
        r = round_shift(mantissa, 52 - man) + ((uint64_t)(e - 1) << man);
    else
        r = round_shift(mantissa, 52 - man + 1 - e);
    return (uint16_t)(sign | (r >= infinity ? infinity : (uint32_t)r));
}

uint16_t gr_f16_from_double(double v)
{
    return narrow(v, 10, 15);
}

uint16_t gr_bf16_from_double(double v)
{
    return narrow(v, 7, 127);
}

uint16_t gr_f16_from_float(float v)
{
    return gr_f16_from_double((double)v);
}

uint16_t gr_bf16_from_float(float v)
{
    return gr_bf16_from_double((double)v);
}

float gr_float_from_bf16(uint16_t h)
{
    return float_of_bits((uint32_t)h << 16);
}

float gr_float_from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t exponent = h >> 10 & 31u, mantissa = h & 0x3FFu;
    if (exponent == 31)
        return float_of_bits(sign | 0x7F800000u | mantissa << 13);
    if (exponent != 0)
        return float_of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
    float tiny = (float)mantissa * 0x1p-24f;
    return float_of_bits(sign | bits_of_float(tiny));
}

/* Any element is either a double (exactly) or an int64_t. */
typedef struct Element {
    bool integer;
    double real;
    int64_t whole;
} Element;

static Element fetch(int32_t dtype, const void *in, int64_t i)
{
    const char *p = (const char *)in + i * gradc_dtype_bytes(dtype);
    float f32;
    uint16_t half;
    int32_t i32;
    Element x = {.integer = !gr_is_float(dtype)};
    switch (dtype) {
    case GRADC_F64:
        memcpy(&x.real, p, sizeof x.real);
        break;
    case GRADC_F32:
        memcpy(&f32, p, sizeof f32);
        x.real = (double)f32;
        break;
    case GRADC_F16:
        memcpy(&half, p, sizeof half);
        x.real = (double)gr_float_from_f16(half);
        break;
    case GRADC_BF16:
        memcpy(&half, p, sizeof half);
        x.real = (double)gr_float_from_bf16(half);
        break;
    case GRADC_I64:
        memcpy(&x.whole, p, sizeof x.whole);
        break;
    case GRADC_I32:
        memcpy(&i32, p, sizeof i32);
        x.whole = i32;
        break;
    default:
        x.whole = *(const uint8_t *)p;
        break;
    }
    return x;
}

/* A double that rounds to 16 bits as the integer does: beyond 53 bits, what is cut off makes it
 * odd. */
static double to_odd(int64_t whole)
{
    bool wide = whole > (int64_t)1 << 53 || whole < -((int64_t)1 << 53);
    if (wide && (whole & 0x3ff) != 0)
        whole = (whole & ~(int64_t)0x3ff) | 0x400;
    return (double)whole;
}

static bool store_float(int32_t dtype, void *out, int64_t i, Element x)
{
    char *p = (char *)out + i * gradc_dtype_bytes(dtype);
    double v = !x.integer ? x.real : dtype == GRADC_F64 ? (double)x.whole : to_odd(x.whole);
    /* int64 to float straight: by way of double it would be rounded twice */
    float narrowed = x.integer ? (float)x.whole : (float)x.real;
    uint16_t half;
    switch (dtype) {
    case GRADC_F64:
        memcpy(p, &v, sizeof v);
        break;
    case GRADC_F32:
        memcpy(p, &narrowed, sizeof narrowed);
        break;
    case GRADC_F16:
        half = gr_f16_from_double(v);
        memcpy(p, &half, sizeof half);
        break;
    default:
        half = gr_bf16_from_double(v);
        memcpy(p, &half, sizeof half);
        break;
    }
    return true;
}

static bool store_integer(int32_t dtype, void *out, int64_t i, Element x)
{
    int64_t v = x.whole;
    if (dtype == GRADC_BOOL) {
        ((uint8_t *)out)[i] = x.integer ? v != 0 : !(x.real == 0);
        return true;
    }
    if (!x.integer) {
        if (!(x.real >= -0x1p63 && x.real < 0x1p63))
            return false;
        v = (int64_t)x.real;
        if ((double)v != x.real)
            return false;
    }
    if (dtype == GRADC_U8) {
        ((uint8_t *)out)[i] = (uint8_t)v;
        return v >= 0 && v <= UINT8_MAX;
    }
    if (dtype == GRADC_I32) {
        ((int32_t *)out)[i] = (int32_t)v;
        return v >= INT32_MIN && v <= INT32_MAX;
    }
    ((int64_t *)out)[i] = v;
    return true;
}

int64_t gr_convert(int32_t from, const void *in, int32_t to, void *out, int64_t n)
{
    if (from == to) {
        if (n > 0)
            memcpy(out, in, (size_t)(n * gradc_dtype_bytes(from)));
        return n;
    }
    bool (*store)(int32_t, void *, int64_t, Element) =
        gr_is_float(to) ? store_float : store_integer;
    for (int64_t i = 0; i < n; i++)
        if (!store(to, out, i, fetch(from, in, i)))
            return i;
    return n;
}

int64_t gr_nonfinite(int32_t dtype, const void *data, int64_t n)
{
    uint64_t exponent;
    switch (dtype) {
    case GRADC_F32:
        for (int64_t i = 0; i < n; i++)
            if ((bits_of_float(((const float *)data)[i]) & 0x7F800000u) == 0x7F800000u)
                return i;
        return -1;
    case GRADC_F64:
        exponent = UINT64_C(0x7FF) << 52;
        for (int64_t i = 0; i < n; i++)
            if ((bits_of_double(((const double *)data)[i]) & exponent) == exponent)
                return i;
        return -1;
    case GRADC_F16:
    case GRADC_BF16:
        exponent = dtype == GRADC_F16 ? 0x7C00 : 0x7F80;
        for (int64_t i = 0; i < n; i++)
            if ((((const uint16_t *)data)[i] & exponent) == exponent)
                return i;
        return -1;
    default:
        return -1;
    }
}
