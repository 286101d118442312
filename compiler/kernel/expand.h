/* Short names for building polynomials, shared by the expand files. */
#ifndef GRADC_KERNEL_EXPAND_H
#define GRADC_KERNEL_EXPAND_H

#include "kernel.h"

/* Where instructions go, and the float type that they compute in. */
typedef struct Fn {
    Kernel *k;
    DType t, i;     /* F32 with I32, or F64 with I64 */
    bool exponents; /* EXPONENT, FRACTION and SCALE are instructions */
} Fn;

static inline bool single(const Fn *f)
{
    return f->t == F32;
}
static inline Val num(const Fn *f, double x)
{
    return k_const(f->k, f->t, x);
}
static inline Val integer(const Fn *f, int64_t x)
{
    return k_const_int(f->k, f->i, x);
}
static inline Val add(const Fn *f, Val x, Val y)
{
    return k_binary(f->k, KI_ADD, x, y);
}
static inline Val sub(const Fn *f, Val x, Val y)
{
    return k_binary(f->k, KI_SUB, x, y);
}
static inline Val mul(const Fn *f, Val x, Val y)
{
    return k_binary(f->k, KI_MUL, x, y);
}
static inline Val quotient(const Fn *f, Val x, Val y)
{
    return k_binary(f->k, KI_DIV, x, y);
}
static inline Val fused(const Fn *f, Val x, Val y, Val z)
{
    return k_fma(f->k, x, y, z);
}
static inline Val both(const Fn *f, Val x, Val y)
{
    return k_binary(f->k, KI_AND, x, y);
}
static inline Val flip(const Fn *f, Val x, Val y)
{
    return k_binary(f->k, KI_XOR, x, y);
}
static inline Val less(const Fn *f, Val x, Val y)
{
    return k_binary(f->k, KI_LT, x, y);
}
static inline Val equal(const Fn *f, Val x, Val y)
{
    return k_binary(f->k, KI_EQ, x, y);
}
static inline Val choose(const Fn *f, Val cond, Val yes, Val no)
{
    return k_select(f->k, cond, yes, no);
}
static inline Val magnitude(const Fn *f, Val x)
{
    return k_unary(f->k, KI_ABS, x);
}
static inline Val negate(const Fn *f, Val x)
{
    return k_unary(f->k, KI_NEG, x);
}
static inline Val bits_of(const Fn *f, Val x)
{
    return k_bitcast(f->k, f->i, x);
}
static inline Val float_of(const Fn *f, Val bits)
{
    return k_bitcast(f->k, f->t, bits);
}

/* Bits of the fraction; bit patterns of 1 and of the sign. */
static inline int fraction_bits(const Fn *f)
{
    return single(f) ? 23 : 52;
}
static inline int64_t one_bits(const Fn *f)
{
    return single(f) ? INT64_C(0x3f800000) : INT64_C(0x3ff0000000000000);
}
static inline int64_t sign_bits(const Fn *f)
{
    return single(f) ? INT32_MIN : INT64_MIN;
}

/* c[0] + c[1] x + ... + c[n-1] x^(n-1), by fma. */
Val fn_poly(const Fn *f, Val x, const double *c, int n);
#define POLY(f, x, table)                                                                          \
    (single(f) ? fn_poly(f, x, table##_f32, (int)(sizeof table##_f32 / sizeof(double)))            \
               : fn_poly(f, x, table##_f64, (int)(sizeof table##_f64 / sizeof(double))))

/* At most `limit`, at least `limit`; NaN stays. */
Val fn_at_most(const Fn *f, Val x, double limit);
Val fn_at_least(const Fn *f, Val x, double limit);
/* x to the nearest integer n, by adding and subtracting 1.5 * 2^fraction_bits and
 * the bias of exponents. *field: the bits of 2^n, for n of a normal number. */
double fn_magic(const Fn *f);
Val fn_nearest_integer(const Fn *f, Val x_plus_magic, Val *field);
/* ln2 in two parts: the high one has so few bits that n * ln2_high and
 * x - n * ln2_high are exact for the n of an exponent and x next to n * ln2. */
static inline double ln2_high(const Fn *f)
{
    return single(f) ? 0x1.62e4p-1 : 0x1.62e42fep-1;
}
static inline double ln2_low(const Fn *f)
{
    return single(f) ? 0x1.7f7d1cf79abcap-20 : 0x1.f473de6af278fp-30;
}
/* e^x = 2^(step n) e^r with |r| <= step ln2 / 2. */
typedef struct Power {
    Val r;
    Val field; /* the bits of 2^n */
} Power;
Power fn_power_split(const Fn *f, Val x, int step);
/* y with the sign bit of x flipped in. */
Val fn_with_sign_of(const Fn *f, Val y, Val x);

/* x = 2^e * m with m in [2/3, 4/3) for f32, [sqrt(1/2), sqrt(2)) for f64; x > 0
 * and finite. */
typedef struct Split {
    Val m;
    Val e;     /* f32: 2^23 e */
    Val field; /* e << fraction_bits; without denormals of x */
} Split;
Split fn_split(const Fn *f, Val x, bool denormals);

Val expand_exp(const Fn *f, Val x);
Val expand_expm1(const Fn *f, Val x);
Val expand_tanh(const Fn *f, Val x);
Val expand_log(const Fn *f, Val x);
Val expand_log1p(const Fn *f, Val x);
Val expand_sin(const Fn *f, Val x);
Val expand_cos(const Fn *f, Val x);
Val expand_erf(const Fn *f, Val x);
Val expand_pow(const Fn *f, Val x, Val y);
Val expand_random(Kernel *k, Val key, Val lo, Val hi);

#endif
