/* Scalar operations of the interpreter, n lanes at a time. The arithmetic is
 * that of the C types: it must be strict, with neither excess precision nor
 * contraction, for the exact mode is the reference of every target. */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>
#include "interp.h"

_Static_assert(FLT_EVAL_METHOD == 0, "float arithmetic must be rounded to float");

int64_t interp_wrap(DType t, int64_t x)
{
    switch (t) {
    case I32:
        return (int32_t)(uint32_t)(uint64_t)x;
    case U8:
        return x & 255;
    case BOOL:
        return x & 1;
    default:
        return x;
    }
}

/* Two's complement arithmetic that wraps. */
static int64_t wrap_add(int64_t x, int64_t y)
{
    return (int64_t)((uint64_t)x + (uint64_t)y);
}

static int64_t wrap_sub(int64_t x, int64_t y)
{
    return (int64_t)((uint64_t)x - (uint64_t)y);
}

static int64_t wrap_mul(int64_t x, int64_t y)
{
    return (int64_t)((uint64_t)x * (uint64_t)y);
}

static int64_t wrap_div(int64_t x, int64_t y)
{
    if (y == 0)
        return 0;
    return y == -1 ? wrap_sub(0, x) : x / y;
}

static int64_t wrap_rem(int64_t x, int64_t y)
{
    return y == 0 || y == -1 ? 0 : x % y;
}

static int64_t shift_left(DType t, int64_t x, int64_t by)
{
    return (int64_t)((uint64_t)x << (by & (t == I32 ? 31 : 63)));
}

static int64_t shift_right(DType t, int64_t x, int64_t by)
{
    return t == I32 ? (int64_t)((uint32_t)x >> (by & 31)) : (int64_t)((uint64_t)x >> (by & 63));
}

static int64_t shift_arithmetic(DType t, int64_t x, int64_t by)
{
    int64_t s = by & (t == I32 ? 31 : 63);
    return x < 0 ? ~(~x >> s) : x >> s;
}

static int64_t mul_high(int64_t x, int64_t y)
{
    return (int64_t)((uint64_t)(uint32_t)x * (uint32_t)y >> 32);
}

/* philox4x32-10, first word. Salmon, Moraes, Dror & Shaw, "Parallel random
 * numbers: as easy as 1, 2, 3", SC11, section 4.3. */
int32_t interp_philox(uint64_t key, uint64_t lo, uint64_t hi)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = (uint32_t)lo, c1 = (uint32_t)(lo >> 32);
    uint32_t c2 = (uint32_t)hi, c3 = (uint32_t)(hi >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p = (uint64_t)c0 * 0xD2511F53u, q = (uint64_t)c2 * 0xCD9E8D57u;
        uint32_t n0 = (uint32_t)(q >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p >> 32) ^ c3 ^ k1;
        c0 = n0;
        c1 = (uint32_t)q;
        c2 = n2;
        c3 = (uint32_t)p;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (int32_t)c0;
}

/* ---- conversions ------------------------------------------------------------ */

/* Truncates and saturates, and NaN gives 0; to bool it is x != 0, as of NaN. */
static int64_t to_int(DType t, double x)
{
    if (t == BOOL)
        return x != 0;
    if (x != x)
        return 0;
    switch (t) {
    case U8:
        return x <= 0 ? 0 : x >= 255 ? 255 : (int64_t)x;
    case I32:
        return x <= INT32_MIN ? INT32_MIN : x >= INT32_MAX ? INT32_MAX : (int64_t)x;
    default: /* 2^63 itself does not fit */
        return x < -0x1p63 ? INT64_MIN : x >= 0x1p63 ? INT64_MAX : (int64_t)x;
    }
}

static float round_to(DType t, float x)
{
    if (t == F16)
        return f16_to_f32(f32_to_f16(x));
    return t == BF16 ? bf16_to_f32(f32_to_bf16(x)) : x;
}

/* To f32, f16, bf16 in the exact mode; halves are rounded from f32. */
static void cast_to_float(const Op *o, const Reg *a, Reg *r, int n)
{
    DType t = (DType)o->dtype;
    for (int l = 0; l < n; l++) {
        float x = o->type == TF ? a->f[l] : o->type == TD ? (float)a->d[l] : (float)a->i[l];
        r->f[l] = round_to(t, x);
    }
}

static void cast_to_double(const Op *o, const Reg *a, Reg *r, int n)
{
    for (int l = 0; l < n; l++)
        r->d[l] = o->type == TF ? (double)a->f[l] : o->type == TD ? a->d[l] : (double)a->i[l];
}

static void cast_to_int(const Op *o, const Reg *a, Reg *r, int n)
{
    DType t = (DType)o->dtype;
    for (int l = 0; l < n; l++) {
        if (o->type == TI)
            r->i[l] = t == BOOL ? a->i[l] != 0 : interp_wrap(t, a->i[l]);
        else
            r->i[l] = to_int(t, o->type == TF ? (double)a->f[l] : a->d[l]);
    }
}

static void cast(const Op *o, const Reg *a, Reg *r, int n)
{
    if (!dtype_is_float((DType)o->dtype))
        cast_to_int(o, a, r, n);
    else if (o->dtype == F64)
        cast_to_double(o, a, r, n);
    else
        cast_to_float(o, a, r, n);
}

static int64_t bits_f32(float x)
{
    int32_t i;
    memcpy(&i, &x, sizeof i);
    return i;
}

static float f32_bits(int64_t bits)
{
    int32_t i = (int32_t)bits;
    float x;
    memcpy(&x, &i, sizeof x);
    return x;
}

/* `from` is the kernel's dtype, whatever the register holds. */
static void bitcast(const Op *o, const Reg *a, Reg *r, int n)
{
    for (int l = 0; l < n; l++) {
        if (o->from == F32)
            r->i[l] = bits_f32(o->type == TF ? a->f[l] : (float)a->d[l]);
        else if (o->from == F64)
            memcpy(&r->i[l], &a->d[l], sizeof(double));
        else if (o->from == I64)
            memcpy(&r->d[l], &a->i[l], sizeof(double));
        else if (o->dtype == F32)
            r->f[l] = f32_bits(a->i[l]);
        else
            r->d[l] = f32_bits(a->i[l]);
    }
}

static float fraction(float x)
{
    int e;
    if (isnan(x) || x < 0)
        return NAN;
    return x == 0 || isinf(x) ? 1 : 2 * frexpf(x, &e);
}

/* By a double, which holds the product before it is rounded. */
static float scaled(float x, float y)
{
    enum { FAR = 400 }; /* more than floats are apart */
    if (isnan(y))
        return y;
    if (isinf(y))
        return isnan(x) ? (y > 0 ? y : 0) : x * (y > 0 ? y : 0);
    return (float)ldexp((double)x, (int)fmax(-FAR, fmin(floor((double)y), FAR)));
}

static void splat(const Op *o, const Reg *a, Reg *r, int n)
{
    for (int l = 0; l < n; l++) {
        if (o->type == TF)
            r->f[l] = a->f[0];
        else
            r->i[l] = a->i[0]; /* doubles too: a copy of 8 bytes */
    }
}

/* ---- the switch --------------------------------------------------------------- */

#define KEY(op, type) ((int)(op)*N_REGTYPES + (type))
/* z[l] = expr over x[l], y[l], w[l], by register type. */
#define LANES(op, type, in, R, expr)                                                               \
    case KEY(op, type):                                                                            \
        for (int l = 0; l < n; l++) {                                                              \
            in x = X_##type(a), y = X_##type(b);                                                   \
            (void)y;                                                                               \
            R(d)[l] = (expr);                                                                      \
        }                                                                                          \
        break;
#define X_TF(v)        (v)->f[l]
#define X_TD(v)        (v)->d[l]
#define X_TI(v)        (v)->i[l]
#define R_TF(v)        (v)->f
#define R_TD(v)        (v)->d
#define R_TI(v)        (v)->i
#define FLOAT(op, e)   LANES(op, TF, float, R_TF, e)
#define DOUBLE(op, e)  LANES(op, TD, double, R_TD, e)
#define INT(op, e)     LANES(op, TI, int64_t, R_TI, e)
#define BOTH(op, e)    FLOAT(op, e) DOUBLE(op, e)
#define COMPARE(op, e) LANES(op, TF, float, R_TI, e) LANES(op, TD, double, R_TI, e) INT(op, e)
#define SELECT_FROM(field)                                                                         \
    for (int l = 0; l < n; l++)                                                                    \
        d->field[l] = a->i[l] != 0 ? b->field[l] : c->field[l];                                    \
    break;

void interp_alu(const Op *o, Reg *r, int n)
{
    const Reg *a = &r[o->a], *b = &r[o->b], *c = &r[o->c];
    Reg *d = &r[o->r];
    DType t = (DType)o->dtype;
    switch (KEY(o->op, o->type)) {
        BOTH(KI_ADD, x + y)
        BOTH(KI_SUB, x - y)
        BOTH(KI_MUL, x * y)
        BOTH(KI_DIV, x / y)
        BOTH(KI_MIN, x < y ? x : y)
        BOTH(KI_MAX, x > y ? x : y)
        BOTH(KI_NEG, -x)
        FLOAT(KI_ABS, fabsf(x))
        DOUBLE(KI_ABS, fabs(x))
        FLOAT(KI_SQRT, sqrtf(x))
        DOUBLE(KI_SQRT, sqrt(x))
        FLOAT(KI_FLOOR, floorf(x))
        DOUBLE(KI_FLOOR, floor(x))
        FLOAT(KI_RINT, rintf(x))
        DOUBLE(KI_RINT, rint(x))
        FLOAT(KI_EXPONENT, logbf(x))
        FLOAT(KI_FRACTION, fraction(x))
        FLOAT(KI_SCALE, scaled(x, y))

        INT(KI_ADD, interp_wrap(t, wrap_add(x, y)))
        INT(KI_SUB, interp_wrap(t, wrap_sub(x, y)))
        INT(KI_MUL, interp_wrap(t, wrap_mul(x, y)))
        INT(KI_DIV, interp_wrap(t, wrap_div(x, y)))
        INT(KI_REM, interp_wrap(t, wrap_rem(x, y)))
        INT(KI_MIN, x < y ? x : y)
        INT(KI_MAX, x > y ? x : y)
        INT(KI_NEG, interp_wrap(t, wrap_sub(0, x)))
        INT(KI_ABS, interp_wrap(t, x < 0 ? wrap_sub(0, x) : x))
        INT(KI_AND, x & y)
        INT(KI_OR, x | y)
        INT(KI_XOR, x ^ y)
        INT(KI_SHL, interp_wrap(t, shift_left(t, x, y)))
        INT(KI_SHR, interp_wrap(t, shift_right(t, x, y)))
        INT(KI_SAR, shift_arithmetic(t, x, y))
        INT(KI_MULHI, interp_wrap(I32, mul_high(x, y)))

        COMPARE(KI_EQ, x == y)
        COMPARE(KI_NE, x != y)
        COMPARE(KI_LT, x < y)
        COMPARE(KI_LE, x <= y)

        DOUBLE(KI_EXP, exp(x))
        DOUBLE(KI_LOG, log(x))
        DOUBLE(KI_EXPM1, expm1(x))
        DOUBLE(KI_LOG1P, log1p(x))
        DOUBLE(KI_SIN, sin(x))
        DOUBLE(KI_COS, cos(x))
        DOUBLE(KI_TANH, tanh(x))
        DOUBLE(KI_ERF, erf(x))
        DOUBLE(KI_POW, pow(x, y))
        INT(KI_RANDOM, interp_philox((uint64_t)x, (uint64_t)y, (uint64_t)c->i[l]))

        FLOAT(KI_GET, x)
        DOUBLE(KI_GET, x)
        INT(KI_GET, x)
        FLOAT(KI_VAR, x)
        DOUBLE(KI_VAR, x)
        INT(KI_VAR, x)

    case KEY(KI_FMA, TF):
        interp_fma_f32(a->f, b->f, c->f, d->f, n);
        break;
    case KEY(KI_FMA, TD):
        interp_fma_f64(a->d, b->d, c->d, d->d, n);
        break;
    case KEY(KI_SELECT, TF):
        SELECT_FROM(f)
    case KEY(KI_SELECT, TD):
        SELECT_FROM(d)
    case KEY(KI_SELECT, TI):
        SELECT_FROM(i)
    case KEY(KI_CAST, TF):
    case KEY(KI_CAST, TD):
    case KEY(KI_CAST, TI):
        cast(o, a, d, n);
        break;
    case KEY(KI_BITCAST, TF):
    case KEY(KI_BITCAST, TD):
    case KEY(KI_BITCAST, TI):
        bitcast(o, a, d, n);
        break;
    case KEY(X_SPLAT, TF):
    case KEY(X_SPLAT, TD):
    case KEY(X_SPLAT, TI):
        splat(o, a, d, n);
        break;
    default:
        assert(false && "an operation that this register type does not have");
    }
}
