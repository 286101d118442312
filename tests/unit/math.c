/* The polynomials of expand.c against the C library: every function in f32 over
 * a sample of all floats (all 2^32 of them with GRADC_FULL=1), in f64 over
 * samples, and the special values of each. Prints the largest error in ulp. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kernel/kernel.h"

enum { BLOCK = 1 << 14 };

typedef struct Function {
    KOp op;
    double (*judge)(double);
    long double (*fine)(long double); /* for f64 */
    double lo, hi;                    /* f64: where samples are drawn */
    double f32_ulp, f64_ulp;          /* what is promised */
} Function;

static const Function function[] = {
    {KI_EXP, exp, expl, -746, 710, 2, 4},      {KI_LOG, log, logl, 0, 1e300, 2, 4},
    {KI_EXPM1, expm1, expm1l, -60, 710, 2, 4}, {KI_LOG1P, log1p, log1pl, -1, 1e300, 2, 4},
    {KI_SIN, sin, sinl, -1e300, 1e300, 2, 4},  {KI_COS, cos, cosl, -1e300, 1e300, 2, 4},
    {KI_TANH, tanh, tanhl, -25, 25, 2, 4},     {KI_ERF, erf, erfl, -7, 7, 2, 4},
};
enum { N_FUNCTIONS = sizeof function / sizeof function[0] };

/* Many under GRADC_FULL, few under GRADC_SHORT. */
static int count(int full, int normal)
{
    if (getenv("GRADC_FULL") != NULL)
        return full;
    return getenv("GRADC_SHORT") != NULL ? (normal + 9) / 10 : normal;
}

/* out[i] = op(in[i], in2[i]), BLOCK elements, decoded once for the suite's runs. */
static Kernel *elementwise(Arena *a, KOp op, DType t)
{
    Kernel *k = kernel_new(a, K_LOOP, kop_text(op));
    int x = k_buf(k, t, BLOCK, K_IN), y = kop_args(op) > 1 ? k_buf(k, t, BLOCK, K_IN) : 0;
    int out = k_buf(k, t, BLOCK, K_OUT);
    Val i = k_par(k, BLOCK);
    Val v = k_load(k, x, k_aff_val(i, 1));
    if (kop_args(op) == 1) {
        v = k_unary(k, op, v);
    } else {
        Val w = k_load(k, y, k_aff_val(i, 1));
        v = k_binary(k, op, v, w);
    }
    k_store(k, out, k_aff_val(i, 1), v);
    k_end(k, i);
    k_finish(k);
    return k;
}

static float f32_of(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static double f64_of(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* Distance of got from the exact value, in units of the last place of float. */
static double error_f32(float got, double exact)
{
    if (isnan(exact) || isnan(got))
        return isnan(exact) && isnan(got) ? 0 : INFINITY;
    if (exact == 0 && got == 0)
        return !signbit(got) == !signbit(exact) ? 0 : INFINITY;
    if (isinf(got) || isinf((float)exact))
        return got == (float)exact ? 0 : fabs(exact) > 3.4028234e38 ? 1 : INFINITY;
    int e = exact == 0 ? -126 : ilogb(exact);
    return fabs((double)got - exact) / ldexp(1, (e < -126 ? -126 : e) - 23);
}

static double error_f64(double got, long double exact)
{
    if (isnan((double)exact) || isnan(got))
        return isnan((double)exact) && isnan(got) ? 0 : INFINITY;
    if (exact == 0 && got == 0)
        return !signbit(got) == !signbit(exact) ? 0 : INFINITY;
    if (isinf(got) || isinf((double)exact))
        return got == (double)exact ? 0 : fabsl(exact) > 1.797693134862315e308L ? 1 : INFINITY;
    int e = exact == 0 ? -1022 : ilogbl(exact);
    return (double)(fabsl((long double)got - exact) / ldexpl(1, (e < -1022 ? -1022 : e) - 52));
}

/* Largest error over floats first, first + step, ... below 2^32. */
static double sweep(const Function *f, uint64_t first, uint64_t step, float *where)
{
    static float in[BLOCK], out[BLOCK];
    Arena a = {0};
    const Kernel *k = kernel_expand(&a, elementwise(&a, f->op, F32), false);
    const KMem mem[] = {{in, NULL}, {out, NULL}};
    double worst = 0;
    for (uint64_t u = first; u < UINT64_C(1) << 32;) {
        int n = 0;
        for (; n < BLOCK; n++, u += step)
            in[n] = f32_of((uint32_t)(u < UINT64_C(1) << 32 ? u : first));
        kernel_run(k, K_EXACT, mem, &a);
        for (int i = 0; i < n; i++) {
            double exact = f->judge(in[i]);
            float nearest = (float)exact;
            if (memcmp(&nearest, &out[i], sizeof nearest) == 0 && worst >= 0.5)
                continue; /* most of 2^32: rounded right */
            double e = error_f32(out[i], exact);
            if (e > worst) {
                worst = e;
                *where = in[i];
            }
        }
    }
    arena_free(&a);
    return worst;
}

START_TEST(f32_functions)
{
    const Function *f = &function[_i];
    bool full = getenv("GRADC_FULL") != NULL;
    float where = 0;
    double worst = sweep(f, 0, full ? 1 : getenv("GRADC_SHORT") != NULL ? 20411 : 2039, &where);
    printf("math: %s f32: %.3f ulp at %a%s\n", kop_text(f->op), worst, where,
           full ? ", all floats" : "");
    ck_assert_msg(worst <= f->f32_ulp, "%s(%a): %g ulp", kop_text(f->op), where, worst);
}
END_TEST

static uint64_t seed = 1;

static uint64_t draw(void)
{
    return hash_mix(seed++ * 0x9e3779b97f4a7c15u);
}

/* Uniform in [lo, hi), or with any exponent between them, or near 1. */
static double sample(const Function *f)
{
    for (;;) {
        double u = (double)(draw() >> 11) * 0x1p-53, x;
        switch (draw() % 4) {
        case 0:
            x = f->lo + (f->hi - f->lo) * u;
            break;
        case 1:
            x = (u - 0.5) * 20;
            break;
        case 2:
            x = 1 + (u - 0.5) * ldexp(1, -(int)(draw() % 40));
            break;
        default:
            x = f64_of(draw());
            break;
        }
        if (x >= f->lo && x <= f->hi)
            return x;
    }
}

START_TEST(f64_functions)
{
    static double in[BLOCK], out[BLOCK];
    const Function *f = &function[_i];
    Arena a = {0};
    const Kernel *k = elementwise(&a, f->op, F64);
    const KMem mem[] = {{in, NULL}, {out, NULL}};
    double worst = 0, where = 0;
    for (int b = 0; b < count(4000, 40); b++) {
        for (int i = 0; i < BLOCK; i++)
            in[i] = sample(f);
        kernel_run(k, K_EXACT, mem, &a);
        for (int i = 0; i < BLOCK; i++) {
            double e = error_f64(out[i], f->fine(in[i]));
            if (e > worst) {
                worst = e;
                where = in[i];
            }
        }
    }
    arena_free(&a);
    printf("math: %s f64: %.3f ulp at %a\n", kop_text(f->op), worst, where);
    ck_assert_msg(worst <= f->f64_ulp, "%s(%a): %g ulp", kop_text(f->op), where, worst);
}
END_TEST

/* ---- special values ------------------------------------------------------------- */

static const double special[] = {0.0,       -0.0, 1.0,      -1.0,     2.0,       -2.0,  0.5,
                                 -0.5,      3.0,  -3.0,     1e30,     -1e30,     1e-30, INFINITY,
                                 -INFINITY, NAN,  0x1p-149, 33554433, -33554435, 1.5,   -2.5};
enum { N_SPECIAL = sizeof special / sizeof special[0] };

static const double edge[] = {
    0x1p-1074, -0x1p-1074, 0x1p-149, -0x1p-149, 0x1p-126, -0x1p-126, 0x1p-1022, 0x1p-130, -0x1p-130,
    1e-5, 88.7228, 88.7229, -103.9721, -87.3366, 709.782, 709.783, -745.13, -745.14, 3.4028235e38,
    -3.4028235e38, 1.79769313486231570e308,
    /* where log, tanh and log1p in f32 err most; seams of tanh */
    0x1.55712cp+0, 0x1.699b8p-1, 0x1.55c4aep-2, 0x1.62e43p-1, 0x1.62e42ep-1, 9.99999, 10.00001};
enum { N_EDGE = sizeof edge / sizeof edge[0] };

/* ---- by instructions for exponents, fractions and scales ------------------------- */

static const KOp by_exponents[] = {KI_EXP, KI_LOG};
enum { N_BY_EXPONENTS = sizeof by_exponents / sizeof *by_exponents };

/* The same bits as without them; NaN is NaN. */
static void same_by_exponents(KOp op, const float *x)
{
    static float out[2][BLOCK];
    Arena a = {0};
    const Kernel *plain = elementwise(&a, op, F32);
    int32_t size[2];
    for (int by = 0; by < 2; by++) {
        const Kernel *k = kernel_expand(&a, plain, by);
        size[by] = k->inst.n;
        kernel_run(k, K_EXACT, (const KMem[]){{(float *)(uintptr_t)x, NULL}, {out[by], NULL}}, &a);
    }
    ck_assert_int_lt(size[1], size[0]);
    for (int i = 0; i < BLOCK; i++)
        ck_assert_msg(memcmp(&out[0][i], &out[1][i], sizeof *x) == 0 ||
                          (isnan(out[0][i]) && isnan(out[1][i])),
                      "%s(%a): %a, and by exponents %a", kop_text(op), x[i], out[0][i], out[1][i]);
    arena_free(&a);
}

/* The j-th float behind that next to x, or before it. */
static float beside(double x, int j)
{
    float f = (float)x;
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return f32_of(u + (uint32_t)j);
}

START_TEST(functions_by_exponents)
{
    static float x[BLOCK];
    const KOp op = by_exponents[_i];
    const bool few = getenv("GRADC_SHORT") != NULL;
    const uint64_t step = getenv("GRADC_FULL") != NULL ? 1 : few ? 20411 : 2039;
    for (uint64_t u = 0; u < UINT64_C(1) << 32;) {
        for (int n = 0; n < BLOCK; n++, u += step)
            x[n] = f32_of((uint32_t)u);
        same_by_exponents(op, x);
    }
    for (int i = 0; i < BLOCK; i++) /* around 4/3 of each power of two */
        x[i] = ldexpf(0x1.555554p+0F + (float)(i % 4) * 0x1p-23F, i / 4 % 256 - 128);
    same_by_exponents(op, x);
    for (int i = 0; i < BLOCK; i++) /* whose exp is denormal, or next to that */
        x[i] = -87 - (float)i * (18.0F / (float)BLOCK);
    same_by_exponents(op, x);
    for (int i = 0; i < BLOCK; i++) /* around the halves of ln2, where its power is another */
        x[i] = beside((i / 32 - BLOCK / 64) * 0x1.62e42fefa39efp-2, i % 32 - 16);
    same_by_exponents(op, x);
    for (int i = 0; i < BLOCK; i++)
        x[i] = (float)(i % 2 == 0 ? special[i / 2 % N_SPECIAL] : edge[i / 2 % N_EDGE]);
    same_by_exponents(op, x);
}
END_TEST

/* ---- what all of them give for special values ------------------------------------ */

START_TEST(special_values)
{
    static float in[BLOCK], out[BLOCK];
    static double in64[BLOCK], out64[BLOCK];
    const Function *f = &function[_i];
    Arena a = {0};
    for (int i = 0; i < N_SPECIAL + N_EDGE; i++) {
        in64[i] = i < N_SPECIAL ? special[i] : edge[i - N_SPECIAL];
        in[i] = (float)in64[i];
    }
    kernel_run(elementwise(&a, f->op, F32), K_EXACT, (const KMem[]){{in, 0}, {out, 0}}, &a);
    kernel_run(elementwise(&a, f->op, F64), K_EXACT, (const KMem[]){{in64, 0}, {out64, 0}}, &a);
    for (int i = 0; i < N_SPECIAL + N_EDGE; i++) {
        double e = error_f32(out[i], f->judge(in[i])), e64 = error_f64(out64[i], f->fine(in64[i]));
        ck_assert_msg(e <= f->f32_ulp, "%s(%a) = %a in f32", kop_text(f->op), in[i], out[i]);
        ck_assert_msg(e64 <= f->f64_ulp, "%s(%a) = %a in f64", kop_text(f->op), in64[i], out64[i]);
    }
    arena_free(&a);
}
END_TEST

/* ---- pow ------------------------------------------------------------------------ */

/* x^y where the result is anywhere between the smallest and the largest. */
static void draw_power(double *x, double *y, double range, bool round_to_f32)
{
    double u = (double)(draw() >> 11) * 0x1p-53, log2x;
    log2x = (u - 0.5) * ldexp(range, -(int)(draw() % 30));
    *x = exp2(log2x);
    *y = (double)(draw() >> 11) * 0x1p-53 * range * 1.02 / log2x * (draw() % 2 != 0 ? 1 : -1);
    if (draw() % 4 == 0) {
        *x = -*x;
        *y = rint(*y);
    }
    if (round_to_f32) {
        *x = (float)*x;
        *y = (float)*y;
    }
}

START_TEST(pow_f32)
{
    static float x[BLOCK], y[BLOCK], out[BLOCK];
    Arena a = {0};
    const Kernel *k = elementwise(&a, KI_POW, F32);
    const KMem mem[] = {{x, NULL}, {y, NULL}, {out, NULL}};
    double worst = 0;
    for (int b = 0; b < count(4000, 40); b++) {
        for (int i = 0; i < BLOCK; i++) {
            double p, q;
            draw_power(&p, &q, 150, true);
            if (b == 0 && i < N_SPECIAL * N_SPECIAL) {
                p = special[i / N_SPECIAL];
                q = special[i % N_SPECIAL];
            }
            x[i] = (float)p;
            y[i] = (float)q;
        }
        kernel_run(k, K_EXACT, mem, &a);
        for (int i = 0; i < BLOCK; i++) {
            double e = error_f32(out[i], pow(x[i], y[i]));
            ck_assert_msg(e <= 2, "pow(%a, %a) = %a: %g ulp", x[i], y[i], out[i], e);
            worst = e > worst ? e : worst;
        }
    }
    arena_free(&a);
    printf("math: pow f32: %.3f ulp\n", worst);
}
END_TEST

START_TEST(pow_f64)
{
    static double x[BLOCK], y[BLOCK], out[BLOCK];
    Arena a = {0};
    const Kernel *k = elementwise(&a, KI_POW, F64);
    const KMem mem[] = {{x, NULL}, {y, NULL}, {out, NULL}};
    double worst = 0;
    for (int b = 0; b < count(2000, 20); b++) {
        for (int i = 0; i < BLOCK; i++)
            draw_power(&x[i], &y[i], 1080, false);
        for (int i = 0; b == 0 && i < N_SPECIAL * N_SPECIAL; i++) {
            x[i] = special[i / N_SPECIAL];
            y[i] = special[i % N_SPECIAL];
        }
        kernel_run(k, K_EXACT, mem, &a);
        for (int i = 0; i < BLOCK; i++) {
            double e = error_f64(out[i], powl(x[i], y[i]));
            ck_assert_msg(e <= 4, "pow(%a, %a) = %a: %g ulp", x[i], y[i], out[i], e);
            worst = e > worst ? e : worst;
        }
    }
    arena_free(&a);
    printf("math: pow f64: %.3f ulp\n", worst);
}
END_TEST

/* ---- random ----------------------------------------------------------------------- */

/* The known answers of Random123's kat_vectors, philox4x32 with 10 rounds, as
 * key (low word first), counter (words 0, 1 and 2, 3), first word. */
static const struct {
    uint64_t key, lo, hi;
    uint32_t word;
} known[] = {
    {0, 0, 0, 0x6627e8d5},
    {UINT64_MAX, UINT64_MAX, UINT64_MAX, 0x408f276d},
    {0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e, 0xd16cfe09},
};

START_TEST(random_bits)
{
    int64_t key = (int64_t)known[_i].key, lo = (int64_t)known[_i].lo, hi = (int64_t)known[_i].hi;
    Arena a = {0};
    Kernel *k = kernel_new(&a, K_LOOP, "random");
    int b0 = k_buf(k, I64, 1, K_IN), b1 = k_buf(k, I64, 1, K_IN), b2 = k_buf(k, I64, 1, K_IN);
    int out = k_buf(k, I32, 1, K_OUT);
    Val v0 = k_load(k, b0, k_aff(0)), v1 = k_load(k, b1, k_aff(0)), v2 = k_load(k, b2, k_aff(0));
    k_store(k, out, k_aff(0), k_random(k, v0, v1, v2));
    k_finish(k);
    int32_t exact = 0;
    int64_t wide = 0;
    kernel_run(k, K_EXACT, (KMem[]){{&key, 0}, {&lo, 0}, {&hi, 0}, {&exact, 0}}, &a);
    kernel_run(k, K_WIDE, (KMem[]){{&key, 0}, {&lo, 0}, {&hi, 0}, {&wide, 0}}, &a);
    ck_assert_uint_eq((uint32_t)exact, known[_i].word);
    ck_assert_int_eq(exact, wide);
    arena_free(&a);
}
END_TEST

Suite *suite_math(void)
{
    Suite *s = suite_create("math");
    TCase *f32 = tcase_create("f32"), *f64 = tcase_create("f64");
    tcase_set_timeout(f32, 0);
    tcase_set_timeout(f64, 0);
    tcase_add_loop_test(f32, f32_functions, 0, N_FUNCTIONS);
    tcase_add_loop_test(f64, f64_functions, 0, N_FUNCTIONS);
    tcase_add_loop_test(f32, special_values, 0, N_FUNCTIONS);
    tcase_add_loop_test(f32, functions_by_exponents, 0, N_BY_EXPONENTS);
    tcase_add_test(f32, pow_f32);
    tcase_add_test(f64, pow_f64);
    TCase *random = tcase_create("random");
    tcase_add_loop_test(random, random_bits, 0, 3);
    suite_add_tcase(s, random);
    suite_add_tcase(s, f32);
    suite_add_tcase(s, f64);
    return s;
}
