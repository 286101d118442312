/* Kernel instructions one by one: values at the edges of each type, conversions,
 * lanes and folds, variables, memory, contractions, tangents. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kernel/kernel.h"

static Ctx cx;

static void setup(void)
{
    ctx_init(&cx);
}

static void teardown(void)
{
    ctx_free(&cx);
}

/* The kernel that a text says, verified. */
static Kernel *kernel_of(const char *text)
{
    Kernel *k = kernel_read(&cx, &cx.perm, source_add(&cx, "test", text, strlen(text), false));
    if (k == NULL)
        diag_print(&cx, stdout);
    ck_assert_msg(k != NULL, "%s", text);
    const char *bad = kernel_verify(k, &cx.scratch);
    ck_assert_msg(bad == NULL, "%s\n%s", bad, text);
    return k;
}

#define MEM(...) ((const KMem[]){__VA_ARGS__})
#define DATA(p)                                                                                    \
    {                                                                                              \
        .data = (p)                                                                                \
    }
#define RUN(text, ...) kernel_run(kernel_of(text), K_EXACT, MEM(__VA_ARGS__), &cx.scratch)

/* ---- integers ----------------------------------------------------------------------- */

static const struct {
    const char *op;
    DType t;
    int64_t x, y, r;
} integer[] = {
    {"add", I32, INT32_MAX, 1, INT32_MIN},
    {"add", I64, INT64_MAX, 1, INT64_MIN},
    {"add", U8, 200, 100, 44},
    {"sub", I32, INT32_MIN, 1, INT32_MAX},
    {"sub", U8, 3, 5, 254},
    {"mul", I32, 65536, 65536, 0},
    {"mul", I32, 123456789, 987654321, -67153019},
    {"mul", I64, INT64_MAX, 3, INT64_MAX - 2},
    {"mul", U8, 16, 17, 16},
    {"div", I32, -7, 2, -3},
    {"div", I32, 7, 0, 0},
    {"div", I32, INT32_MIN, -1, INT32_MIN},
    {"div", I64, INT64_MIN, -1, INT64_MIN},
    {"div", I64, 7, -2, -3},
    {"div", U8, 250, 3, 83},
    {"rem", I32, -7, 2, -1},
    {"rem", I32, 7, 0, 0},
    {"rem", I32, INT32_MIN, -1, 0},
    {"rem", I64, INT64_MIN, -1, 0},
    {"rem", U8, 250, 7, 5},
    {"min", I32, -1, 1, -1},
    {"min", U8, 255, 1, 1},
    {"max", I64, INT64_MIN, -1, -1},
    {"max", U8, 255, 1, 255},
    {"and", I32, -2, 7, 6},
    {"or", I64, INT64_MIN, 1, INT64_MIN + 1},
    {"xor", I32, -1, 5, -6},
    {"xor", BOOL, 1, 1, 0},
    {"and", BOOL, 1, 0, 0},
    {"or", BOOL, 0, 1, 1},
    {"shl", I32, 1, 31, INT32_MIN},
    {"shl", I64, 3, 63, INT64_MIN},
    {"shr", I32, -1, 28, 15},
    {"shr", I64, -1, 60, 15},
    {"sar", I32, INT32_MIN, 31, -1},
    {"sar", I32, -8, 1, -4},
    {"sar", I64, INT64_MIN, 62, -2},
    {"mulhi", I32, -1, -1, -2},
    {"mulhi", I32, 65536, 65536, 1},
};
enum { N_INTEGER = sizeof integer / sizeof integer[0] };

static void to_memory(DType t, int64_t x, void *p)
{
    if (t == I64)
        memcpy(p, &x, 8);
    else if (t == I32)
        memcpy(p, &(int32_t){(int32_t)x}, 4);
    else
        memcpy(p, &(uint8_t){(uint8_t)x}, 1);
}

static int64_t from_memory(DType t, const void *p)
{
    int64_t l;
    int32_t i;
    memcpy(&l, p, 8);
    memcpy(&i, p, 4);
    return t == I64 ? l : t == I32 ? i : *(const uint8_t *)p;
}

START_TEST(integers)
{
    DType t = integer[_i].t;
    const char *n = dtype_name(t), *op = integer[_i].op;
    Kernel *k = kernel_of(arena_printf(&cx.perm,
                                       "loop t { b0: in %s[1] b1: in %s[1] b2: out %s[1]\n"
                                       "%%1: %s = load b0[0] %%2: %s = load b1[0]\n"
                                       "%%3: %s = %s %%1, %%2 store b2[0], %%3 }",
                                       n, n, n, n, n, n, op));
    int64_t x = 0, y = 0, r = 0;
    to_memory(t, integer[_i].x, &x);
    to_memory(t, integer[_i].y, &y);
    kernel_run(k, K_EXACT, MEM(DATA(&x), DATA(&y), DATA(&r)), &cx.scratch);
    ck_assert_msg(from_memory(t, &r) == integer[_i].r, "%s %s", op, n);
    int64_t a = integer[_i].x, b = integer[_i].y, c = 0;
    for (int mode = K_WIDE; mode <= K_DUAL; mode += K_DUAL - K_WIDE) {
        kernel_run(k, (KMode)mode, MEM(DATA(&a), DATA(&b), DATA(&c)), &cx.scratch);
        ck_assert_msg(c == integer[_i].r, "%s %s: %lld", op, n, (long long)c);
    }
}
END_TEST

START_TEST(integer_unary)
{
    int32_t x[4] = {INT32_MIN, -5, 5, 0}, neg[4], abs[4];
    uint8_t u[2] = {5, 0}, nu[2], au[2];
    RUN("loop t { b0: in i32[4] b1: out i32[4] b2: out i32[4] b3: in u8[2] b4: out u8[2] b5: out "
        "u8[2] par i < 4 { %1: i32 = load b0[i] %2: i32 = neg %1 %3: i32 = abs %1 store b1[i], %2 "
        "store b2[i], %3 } par j < 2 { %1: u8 = load b3[j] %2: u8 = neg %1 %3: u8 = abs %1 store "
        "b4[j], %2 store b5[j], %3 } }",
        DATA(x), DATA(neg), DATA(abs), DATA(u), DATA(nu), DATA(au));
    ck_assert(neg[0] == INT32_MIN && neg[1] == 5 && neg[2] == -5 && neg[3] == 0);
    ck_assert(abs[0] == INT32_MIN && abs[1] == 5 && abs[2] == 5 && abs[3] == 0);
    ck_assert(nu[0] == 251 && nu[1] == 0 && au[0] == 5);
}
END_TEST

/* ---- floats -------------------------------------------------------------------------- */

/* One float instruction on f32 (exact) and f64 (exact and wide). */
static void float_op(const char *op, double x, double y, float *r32, double *r64, double *wide)
{
    int args = strcmp(op, "sqrt") == 0 || strcmp(op, "floor") == 0 || strcmp(op, "rint") == 0 ||
                       strcmp(op, "abs") == 0 || strcmp(op, "neg") == 0
                   ? 1
                   : 2;
    float xf = (float)x, yf = (float)y;
    for (int d = 0; d < 2; d++) {
        const char *n = d == 0 ? "f32" : "f64";
        Kernel *k = kernel_of(arena_printf(&cx.perm,
                                           "loop t { b0: in %s[1] b1: in %s[1] b2: out %s[1]\n"
                                           "%%1: %s = load b0[0] %%2: %s = load b1[0]\n"
                                           "%%3: %s = %s %s store b2[0], %%3 }",
                                           n, n, n, n, n, n, op, args == 1 ? "%1" : "%1, %2"));
        if (d == 0) {
            kernel_run(k, K_EXACT, MEM(DATA(&xf), DATA(&yf), DATA(r32)), &cx.scratch);
            continue;
        }
        kernel_run(k, K_EXACT, MEM(DATA(&x), DATA(&y), DATA(r64)), &cx.scratch);
        kernel_run(k, K_WIDE, MEM(DATA(&x), DATA(&y), DATA(wide)), &cx.scratch);
    }
}

static const struct {
    const char *op;
    double x, y, r;
} real[] = {
    {"min", NAN, 1, 1},
    {"min", 1, NAN, NAN},
    {"max", NAN, 1, 1},
    {"max", 1, NAN, NAN},
    {"min", -0.0, 0.0, 0.0},
    {"min", 0.0, -0.0, -0.0},
    {"max", -0.0, 0.0, 0.0},
    {"max", 0.0, -0.0, -0.0},
    {"min", 2, 3, 2},
    {"max", 2, 3, 3},
    {"div", 1, 0.0, INFINITY},
    {"div", 1, -0.0, -INFINITY},
    {"div", 0, 0, NAN},
    {"sub", INFINITY, INFINITY, NAN},
    {"mul", 0x1p-126, 0.5, 0x1p-127},
    {"sqrt", -1, 0, NAN},
    {"sqrt", -0.0, 0, -0.0},
    {"sqrt", 0x1p-148, 0, 0x1p-74},
    {"floor", -0.5, 0, -1},
    {"floor", -0.0, 0, -0.0},
    {"floor", 2.75, 0, 2},
    {"rint", 0.5, 0, 0},
    {"rint", 1.5, 0, 2},
    {"rint", 2.5, 0, 2},
    {"rint", -0.25, 0, -0.0},
    {"abs", -0.0, 0, 0.0},
    {"abs", -INFINITY, 0, INFINITY},
    {"neg", 0.0, 0, -0.0},
};
enum { N_REAL = sizeof real / sizeof real[0] };

static bool same(double x, double y)
{
    return isnan(x) ? isnan(y) : x == y && !signbit(x) == !signbit(y);
}

START_TEST(floats)
{
    float r32;
    double r64, wide;
    float_op(real[_i].op, real[_i].x, real[_i].y, &r32, &r64, &wide);
    ck_assert_msg(same(r32, real[_i].r) && same(r64, real[_i].r) && same(wide, real[_i].r),
                  "%s(%g, %g): %g %g %g", real[_i].op, real[_i].x, real[_i].y, r32, r64, wide);
}
END_TEST

/* Each f32 instruction is rounded to f32, fma once; in wide mode nothing is. */
START_TEST(rounding)
{
    float x[3] = {1 + 0x1p-23f, 1 + 0x1p-23f, -1}, r[3];
    double w[3] = {1 + 0x1p-23, 1 + 0x1p-23, -1}, v[3];
    Kernel *k = kernel_of("loop t { b0: in f32[3] b1: out f32[3] %1: f32 = load b0[0] %2: f32 = "
                          "load b0[1] %3: f32 = load b0[2] %4: f32 = mul %1, %2 %5: f32 = add %4, "
                          "%3 %6: f32 = fma %1, %2, %3 store b1[0], %4 store b1[1], %5 store "
                          "b1[2], %6 }");
    kernel_run(k, K_EXACT, MEM(DATA(x), DATA(r)), &cx.scratch);
    ck_assert(r[0] == 1 + 0x1p-22f && r[1] == 0x1p-22f && r[2] == 0x1p-22f + 0x1p-46f);
    kernel_run(k, K_WIDE, MEM(DATA(w), DATA(v)), &cx.scratch);
    ck_assert(v[1] == 0x1p-22 + 0x1p-46 && v[2] == v[1]);
}
END_TEST

START_TEST(comparisons)
{
    float x[6] = {1, 2, NAN, 0.0f, INFINITY, 1}, y[6] = {2, 1, 1, -0.0f, INFINITY, NAN};
    static const bool expected[4][6] = {{0, 0, 0, 1, 1, 0},  /* eq */
                                        {1, 1, 1, 0, 0, 1},  /* ne: true if unordered */
                                        {1, 0, 0, 0, 0, 0},  /* lt */
                                        {1, 0, 0, 1, 1, 0}}; /* le */
    uint8_t r[24];
    RUN("loop t { b0: in f32[6] b1: in f32[6] b2: out bool[24] par i < 6 { %1: f32 = load b0[i] "
        "%2: f32 = load b1[i] %3: bool = eq %1, %2 %4: bool = ne %1, %2 %5: bool = lt %1, %2 %6: "
        "bool = le %1, %2 store b2[i], %3 store b2[i + 6], %4 store b2[i + 12], %5 store b2[i + "
        "18], %6 } }",
        DATA(x), DATA(y), DATA(r));
    for (int i = 0; i < 24; i++)
        ck_assert_msg(r[i] == expected[i / 6][i % 6], "%d", i);
}
END_TEST

/* ---- conversions ----------------------------------------------------------------------- */

START_TEST(float_to_int)
{
    enum { N = 10 };
    double x[N] = {NAN, INFINITY, -INFINITY, 2.9, -2.9, 2147483647.5, -2147483649.0, 1e19, 256, -1};
    int32_t i[N];
    int64_t l[N];
    uint8_t u[N], b[N];
    Kernel *k = kernel_of(
        "loop t { b0: in f64[10] b1: out i32[10] b2: out i64[10] b3: out u8[10] b4: out bool[10] "
        "par i < 10 { %1: f64 = load b0[i] %2: i32 = cast %1 %3: i64 = cast %1 %4: u8 = cast %1 "
        "%5: bool = cast %1 store b1[i], %2 store b2[i], %3 store b3[i], %4 store b4[i], %5 } }");
    kernel_run(k, K_EXACT, MEM(DATA(x), DATA(i), DATA(l), DATA(u), DATA(b)), &cx.scratch);
    const int32_t ei[N] = {0,         INT32_MAX, INT32_MIN, 2,   -2,
                           INT32_MAX, INT32_MIN, INT32_MAX, 256, -1};
    const int64_t el[N] = {0,          INT64_MAX,   INT64_MIN, 2,   -2,
                           2147483647, -2147483649, INT64_MAX, 256, -1};
    const uint8_t eu[N] = {0, 255, 0, 2, 0, 255, 0, 255, 255, 0};
    for (int n = 0; n < N; n++)
        ck_assert_msg(i[n] == ei[n] && l[n] == el[n] && u[n] == eu[n] && b[n] == (n != 0), "%g: %d",
                      x[n], i[n]);
}
END_TEST

START_TEST(int_to_others)
{
    int64_t x[4] = {(INT64_C(1) << 40) + 255, -1, 16777217, INT64_MAX};
    int32_t i[4];
    uint8_t u[4], b[4];
    float f[4];
    RUN("loop t { b0: in i64[4] b1: out i32[4] b2: out u8[4] b3: out bool[4] b4: out f32[4] par i "
        "< 4 { %1: i64 = load b0[i] %2: i32 = cast %1 %3: u8 = cast %1 %4: bool = cast %1 %5: f32 "
        "= cast %1 store b1[i], %2 store b2[i], %3 store b3[i], %4 store b4[i], %5 } }",
        DATA(x), DATA(i), DATA(u), DATA(b), DATA(f));
    ck_assert(i[0] == 255 && u[0] == 255 && b[0] == 1 && i[1] == -1 && u[1] == 255);
    ck_assert(f[2] == 16777216 && f[3] == 0x1p63f && i[3] == -1);
}
END_TEST

START_TEST(bitcasts)
{
    float x = -0.0f;
    int32_t i = 0x7f800001;
    double d = 1;
    int32_t xi;
    int64_t di;
    float fi;
    Kernel *k = kernel_of("loop t { b0: in f32[1] b1: in i32[1] b2: in f64[1] b3: out i32[1] b4: "
                          "out f32[1] b5: out i64[1] %1: f32 = load b0[0] %2: i32 = bitcast %1 "
                          "store b3[0], %2 %3: i32 = load b1[0] %4: f32 = bitcast %3 store b4[0], "
                          "%4 %5: f64 = load b2[0] %6: i64 = bitcast %5 store b5[0], %6 }");
    kernel_run(k, K_EXACT, MEM(DATA(&x), DATA(&i), DATA(&d), DATA(&xi), DATA(&fi), DATA(&di)),
               &cx.scratch);
    ck_assert(xi == INT32_MIN && isnan(fi) && di == 0x3ff0000000000000);
    double wx = 1.5, wf;
    int64_t wi = 0x40000000, wxi;
    kernel_run(k, K_WIDE, MEM(DATA(&wx), DATA(&wi), DATA(&d), DATA(&wxi), DATA(&wf), DATA(&di)),
               &cx.scratch);
    ck_assert(wxi == 0x3fc00000 && wf == 2 && di == 0x3ff0000000000000);
}
END_TEST

/* Rounding to a half type, by searching for the nearest of its values. */
static double nearest_half(double x, int fraction, int lowest, double largest)
{
    int e;
    if (isnan(x) || isinf(x) || x == 0)
        return x;
    frexp(x, &e);
    int unit = e - 1 < lowest ? lowest - fraction : e - 1 - fraction;
    double r = ldexp(rint(ldexp(x, -unit)), unit);
    return fabs(r) > largest ? copysign(INFINITY, x) : r;
}

START_TEST(half_types)
{
    for (uint32_t h = 0; h < 65536; h++) {
        float f = f16_to_f32((uint16_t)h), b = bf16_to_f32((uint16_t)h);
        ck_assert(isnan(f) || f32_to_f16(f) == h);
        ck_assert(isnan(b) || f32_to_bf16(b) == h);
        ck_assert(isnan(f) == ((h & 0x7fff) > 0x7c00) && isnan(b) == ((h & 0x7fff) > 0x7f80));
    }
    ck_assert(isnan(f16_to_f32(f32_to_f16(NAN))) && isnan(bf16_to_f32(f32_to_bf16(NAN))));
    for (uint64_t i = 0; i < 2000000; i++) {
        uint32_t u = (uint32_t)(i * 2147 + i % 13);
        float x;
        memcpy(&x, &u, sizeof x);
        double f = nearest_half(x, 10, -14, 65504), b = nearest_half(x, 7, -126, 0x1.fep127);
        ck_assert_msg(same(f16_to_f32(f32_to_f16(x)), f), "f16 of %a", x);
        ck_assert_msg(same(bf16_to_f32(f32_to_bf16(x)), b), "bf16 of %a", x);
    }
    ck_assert(f32_to_f16(65520) == 0x7c00 && f32_to_f16(65519.996f) == 0x7bff);
    ck_assert(f32_to_f16(0x1p-25f) == 0 && f32_to_f16(0x1.8p-25f) == 1);
}
END_TEST

/* Arithmetic on f16 is f32's, each result rounded; what is compared is exact. */
START_TEST(half_arithmetic)
{
    uint16_t x[2] = {f32_to_f16(1.0f), f32_to_f16(0x1p-11f)}, r[5];
    double wide[2] = {1, 0x1p-11}, w[5];
    Kernel *k = kernel_of("loop t { b0: in f16[2] b1: out f16[5] %1: f16 = load b0[0] %2: f16 = "
                          "load b0[1] %3: f16 = add %1, %2 store b1[0], %3 %4: f16 = exp %1 store "
                          "b1[1], %4 %5: f64 = cast %1 %6: f16 = cast %5 store b1[2], %6 %7: bool "
                          "= lt %2, %1 %8: f16 = select %7, %2, %1 store b1[3], %8 %9: f16 = sub "
                          "%3, %1 store b1[4], %9 }");
    kernel_run(k, K_EXACT, MEM(DATA(x), DATA(r)), &cx.scratch);
    ck_assert(f16_to_f32(r[0]) == 1 && f16_to_f32(r[1]) == 2.71875f);
    ck_assert(f16_to_f32(r[2]) == 1 && r[3] == x[1] && r[4] == 0);
    kernel_run(k, K_WIDE, MEM(DATA(wide), DATA(w)), &cx.scratch);
    ck_assert(w[0] == 1 + 0x1p-11 && w[1] == exp(1.0) && w[4] == 0x1p-11);
}
END_TEST

/* ---- reductions ------------------------------------------------------------------------- */

/* n values of very different size, so that the order of additions shows. */
static void ragged(float *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = ldexpf((float)(i * 37 % 101) - 50.5f, i * 7 % 23 - 11);
}

static float folded(const float *lane)
{
    float l[16];
    memcpy(l, lane, sizeof l);
    for (int w = 8; w >= 1; w /= 2)
        for (int i = 0; i < w; i++)
            l[i] += l[i + w];
    return l[0];
}

START_TEST(lanes_of_f32)
{
    float x[100], r, lane[16];
    for (int n = 0; n <= 100; n++) {
        ragged(x, 100);
        memset(lane, 0, sizeof lane);
        for (int i = 0; i < n; i++)
            lane[i % 16] += x[i];
        RUN(arena_printf(&cx.perm,
                         "loop t { b0: in f32[100] b1: out f32[1] %%1: f32 = acc add red i < %d { "
                         "%%2: f32 = load b0[i] into %%1, %%2 } %%3: f32 = fold %%1 store b1[0], "
                         "%%3 }",
                         n),
            DATA(x), DATA(&r));
        ck_assert_msg(memcmp(&r, &(float){folded(lane)}, 4) == 0, "n %d", n);
    }
}
END_TEST

START_TEST(lanes_of_f64)
{
    double x[41], r, l[8] = {0};
    for (int i = 0; i < 41; i++) {
        x[i] = ldexp(i * 37 % 101 - 50.5, i * 11 % 60);
        l[i % 8] += x[i];
    }
    for (int w = 4; w >= 1; w /= 2)
        for (int i = 0; i < w; i++)
            l[i] += l[i + w];
    RUN("loop t { b0: in f64[41] b1: out f64[1] %1: f64 = acc add red i < 41 { %2: f64 = load "
        "b0[i] into %1, %2 } %3: f64 = fold %1 store b1[0], %3 }",
        DATA(x), DATA(&r));
    ck_assert(r == l[0]);
}
END_TEST

/* The innermost RED loop says the lane, whatever lies in between. */
START_TEST(lanes_of_nested_loops)
{
    float x[5 * 20 * 3], r[3], inner[16] = {0}, outer[16] = {0}, none = 0;
    ragged(x, 300);
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 20; j++)
            for (int k = 0; k < 3; k++)
                inner[j % 16] += x[60 * i + 3 * j + k];
    for (int i = 0; i < 37; i++)
        for (int j = 0; j < 4; j++)
            outer[i % 16] += x[8 * i + j];
    for (int i = 0; i < 5; i++)
        none += x[i];
    RUN("loop t { b0: in f32[300] b1: out f32[3]\n"
        "%1: f32 = acc add red i < 5 { red j < 20 { seq k < 3 { %2: f32 = load b0[60*i + 3*j + k] "
        "into %1, %2 } } } %3: f32 = fold %1 store b1[0], %3\n"
        "%4: f32 = acc add red i < 37 { seq j < 4 { %5: f32 = load b0[8*i + j] into %4, %5 } } "
        "%6: f32 = fold %4 store b1[1], %6\n"
        "%7: f32 = acc add seq i < 5 { %8: f32 = load b0[i] into %7, %8 } %9: f32 = fold %7 store "
        "b1[2], %9 }",
        DATA(x), DATA(r));
    ck_assert(r[0] == folded(inner) && r[1] == folded(outer) && r[2] == none);
}
END_TEST

/* An accumulator inside of a RED loop is not fed by it: lane 0, and no tree. */
START_TEST(accumulator_inside)
{
    float x[64], r[32], expected = 0;
    ragged(x, 64);
    RUN("loop t { b0: in f32[64] b1: out f32[32] red i < 32 { %1: f32 = acc add %2: f32 = load "
        "b0[2*i] %3: f32 = load b0[2*i + 1] into %1, %2 into %1, %3 %4: f32 = fold %1 store b1[i], "
        "%4 } }",
        DATA(x), DATA(r));
    for (int i = 0; i < 32; i++) {
        expected = 0 + x[2 * i] + x[2 * i + 1];
        ck_assert(r[i] == expected);
    }
}
END_TEST

/* Folded inside of a parallel loop, once and again. */
START_TEST(fold_inside)
{
    float x[40], r[40], lane[16] = {0};
    ragged(x, 40);
    for (int i = 0; i < 40; i++)
        lane[i % 16] += x[i];
    RUN("loop t { b0: in f32[40] b1: out f32[40] %1: f32 = acc add red i < 40 { %2: f32 = load "
        "b0[i] into %1, %2 } par j < 40 { %3: f32 = fold %1 %4: f32 = fold %1 %5: f32 = min %3, %4 "
        "store b1[j], %5 } }",
        DATA(x), DATA(r));
    for (int i = 0; i < 40; i++)
        ck_assert(r[i] == folded(lane));
}
END_TEST

START_TEST(other_operations)
{
    int32_t x[50], r[4];
    uint8_t b[50], all[2];
    int32_t least = INT32_MAX, most = INT32_MIN;
    uint32_t sum = 0, product = 1;
    for (int i = 0; i < 50; i++) {
        x[i] = i * 1234567 % 1000003 - 500000;
        b[i] = i != 33;
        least = x[i] < least ? x[i] : least;
        most = x[i] > most ? x[i] : most;
        sum += (uint32_t)x[i];
        product *= (uint32_t)x[i];
    }
    RUN("loop t { b0: in i32[50] b1: in bool[50] b2: out i32[4] b3: out bool[2]\n"
        "%1: i32 = acc min %2: i32 = acc max %3: i32 = acc add %4: i32 = acc mul %5: bool = acc "
        "and %6: bool = acc or red i < 50 { %7: i32 = load b0[i] %8: bool = load b1[i] into %1, %7 "
        "into %2, %7 into %3, %7 into %4, %7 into %5, %8 into %6, %8 }\n"
        "%9: i32 = fold %1 %10: i32 = fold %2 %11: i32 = fold %3 %12: i32 = fold %4 %13: bool = "
        "fold %5 %14: bool = fold %6 store b2[0], %9 store b2[1], %10 store b2[2], %11 store "
        "b2[3], %12 store b3[0], %13 store b3[1], %14 }",
        DATA(x), DATA(b), DATA(r), DATA(all));
    ck_assert(r[0] == least && r[1] == most && (uint32_t)r[2] == sum && (uint32_t)r[3] == product);
    ck_assert(all[0] == 0 && all[1] == 1);
}
END_TEST

/* Nothing fed: the identity. */
START_TEST(identities)
{
    float f[4];
    uint8_t b[2];
    RUN("loop t { b0: out f32[4] b1: out bool[2] %1: f32 = acc add %2: f32 = acc mul %3: f32 = acc "
        "min %4: f32 = acc max %5: bool = acc and %6: bool = acc or red i < 0 { %7: f32 = const 9 "
        "into %1, %7 } %8: f32 = fold %1 %9: f32 = fold %2 %10: f32 = fold %3 %11: f32 = fold %4 "
        "%12: bool = fold %5 %13: bool = fold %6 store b0[0], %8 store b0[1], %9 store b0[2], %10 "
        "store b0[3], %11 store b1[0], %12 store b1[1], %13 }",
        DATA(f), DATA(b));
    ck_assert(same(f[0], 0.0) && f[1] == 1 && f[2] == INFINITY && f[3] == -INFINITY);
    ck_assert(b[0] == 1 && b[1] == 0);
}
END_TEST

/* ---- variables, memory --------------------------------------------------------------------- */

START_TEST(argmax)
{
    float x[3 * 70];
    int32_t r[3];
    for (int i = 0; i < 210; i++)
        x[i] = (float)(i * 71 % 113);
    RUN("loop argmax { b0: in f32[210] b1: out i32[3] par i < 3 { %1: f32 = const -inf %2: i32 = "
        "const 0 %3: f32 = var %1 %4: i32 = var %2 seq j < 70 { %5: f32 = load b0[70*i + j] %6: "
        "f32 = get %3 %7: i32 = get %4 %8: bool = lt %6, %5 %9: i32 = index j %10: f32 = select "
        "%8, %5, %6 %11: i32 = select %8, %9, %7 set %3, %10 set %4, %11 } %12: i32 = get %4 store "
        "b1[i], %12 } }",
        DATA(x), DATA(r));
    for (int i = 0; i < 3; i++) {
        int best = 0;
        for (int j = 1; j < 70; j++)
            best = x[70 * i + j] > x[70 * i + best] ? j : best;
        ck_assert_int_eq(r[i], best);
    }
}
END_TEST

START_TEST(sums_from_the_end)
{
    float x[37], r[37], s = 0;
    ragged(x, 37);
    RUN("loop t { b0: in f32[37] b1: out f32[37] %1: f32 = const 0 %2: f32 = var %1 seq i < 37 "
        "down { %3: f32 = get %2 %4: f32 = load b0[i] %5: f32 = add %3, %4 set %2, %5 store b1[i], "
        "%5 } }",
        DATA(x), DATA(r));
    for (int i = 36; i >= 0; i--) {
        s += x[i];
        ck_assert(r[i] == s);
    }
}
END_TEST

START_TEST(bounds)
{
    float x[40], r[40 * 5], out[40];
    for (int i = 0; i < 40; i++)
        x[i] = (float)i + 1;
    memset(out, 0, sizeof out);
    RUN("loop t { b0: in f32[40] b1: out f32[200] b2: inout f32[40] par i < 40 { par j < 5 { %1: "
        "f32 = load b0[i + j - 2] if 0 <= i + j - 2 < 40 else -3.5 store b1[5*i + j], %1 } } par i "
        "< 40 { %2: f32 = load b0[i] store b2[i - 7] if 7 <= i < 21, %2 } }",
        DATA(x), DATA(r), DATA(out));
    for (int i = 0; i < 40; i++) {
        for (int j = 0; j < 5; j++) {
            int e = i + j - 2;
            ck_assert(r[5 * i + j] == (e >= 0 && e < 40 ? x[e] : -3.5f));
        }
        ck_assert(out[i] == (i < 14 ? x[i + 7] : 0));
    }
}
END_TEST

START_TEST(indirect)
{
    int32_t at[6] = {2, 0, 2, 1, 2, 0};
    float table[12], sum[12] = {0}, r[24], expected[12] = {0};
    for (int i = 0; i < 12; i++)
        table[i] = (float)i + 0.5f;
    RUN("loop t { b0: in i32[6] b1: in f32[12] b2: out f32[24] b3: inout f32[12] par i < 6 { par j "
        "< 4 { %1: i32 = load b0[i] %2: f32 = load b1[4*%1 + j] store b2[4*i + j], %2 } } seq i < "
        "6 { par j < 4 { %3: i32 = load b0[i] %4: f32 = load b1[j] %5: f32 = load b3[4*%3 + j] %6: "
        "f32 = add %5, %4 store b3[4*%3 + j], %6 } } }",
        DATA(at), DATA(table), DATA(r), DATA(sum));
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 4; j++) {
            ck_assert(r[4 * i + j] == table[4 * at[i] + j]);
            expected[4 * at[i] + j] += table[j];
        }
    ck_assert(memcmp(sum, expected, sizeof sum) == 0);
}
END_TEST

START_TEST(rows_on_chip)
{
    float x[3 * 50], r[3 * 50];
    ragged(x, 150);
    RUN("loop rows { b0: in f32[150] b1: out f32[150] b2: local f32[50] par i < 3 { %1: f32 = acc "
        "max red j < 50 { %2: f32 = load b0[50*i + j] %3: f32 = abs %2 store b2[j], %3 into %1, %3 "
        "} %4: f32 = fold %1 par j < 50 { %5: f32 = load b2[j] %6: f32 = div %5, %4 store b1[50*i "
        "+ j], %6 } } }",
        DATA(x), DATA(r), DATA(NULL));
    for (int i = 0; i < 3; i++) {
        float most = 0;
        for (int j = 0; j < 50; j++)
            most = fabsf(x[50 * i + j]) > most ? fabsf(x[50 * i + j]) : most;
        for (int j = 0; j < 50; j++)
            ck_assert(r[50 * i + j] == fabsf(x[50 * i + j]) / most);
    }
}
END_TEST

/* ---- contractions ------------------------------------------------------------------------------
 */

static float chain(const float *a, int64_t as, const float *b, int64_t bs, int n, int leaf)
{
    float total = 0;
    for (int from = 0; from < n; from += leaf) {
        float s = 0;
        for (int p = from; p < n && p < from + leaf; p++)
            s = fmaf(a[p * as], b[p * bs], s);
        total = from == 0 ? s : total + s;
    }
    return total;
}

START_TEST(matrix_product)
{
    enum { B = 2, M = 131, N = 33, K = 300 };
    static float a[B * M * K], b[B * K * N], r[B * M * N], bias[N], grad[B * M * N];
    ragged(a, B * M * K);
    ragged(b, B * K * N);
    ragged(bias, N);
    int leaf = _i == 0 ? 0 : _i == 1 ? 7 : 128;
    RUN(arena_printf(&cx.perm,
                     "contract mm { b0: in f32[%d] b1: in f32[%d] b2: in f32[%d] b3: out f32[%d] "
                     "b4: inout f32[%d] leaf %d dim b i < %d dim m j < %d dim n k < %d dim k l < "
                     "%d\n a { %%1: f32 = load b0[%d*i + %d*j + l] give %%1 }\n"
                     "b { %%2: f32 = load b1[%d*i + %d*l + k] give %%2 }\n"
                     "epilogue { %%3: f32 = sum %%4: f32 = load b2[k] %%5: f32 = add %%3, %%4 "
                     "store b3[%d*i + %d*j + k], %%5 %%6: f32 = load b4[%d*i + %d*j + k] %%7: f32 "
                     "= sub %%6, %%3 store b4[%d*i + %d*j + k], %%7 } }",
                     B * M * K, B * K * N, N, B * M * N, B * M * N, leaf, B, M, N, K, M * K, K,
                     K * N, N, M * N, N, M * N, N, M * N, N),
        DATA(a), DATA(b), DATA(bias), DATA(r), DATA(grad));
    for (int i = 0; i < B * M * N; i++) {
        int n = i % N, m = i / N % M, q = i / N / M;
        float s = chain(a + (q * M + m) * K, 1, b + q * K * N + n, N, K, leaf > 0 ? leaf : K);
        ck_assert_msg(r[i] == s + bias[n], "%d: %a %a", i, r[i], s);
    }
}
END_TEST

/* A 3 by 3 convolution with stride 2 and padding 1, and a prologue on the input. */
START_TEST(convolution)
{
    enum { C = 3, H = 9, O = 4, P = 5 };
    float x[C * H * H], w[O * C * 9], r[O * P * P];
    ragged(x, C * H * H);
    ragged(w, O * C * 9);
    RUN("contract conv { b0: in f32[108] b1: in f32[243] b2: out f32[100]\n"
        "dim m i < 4 dim n j < 5 dim n k < 5 dim k l < 3 dim k m < 3 dim k n < 3\n"
        "a { %1: f32 = load b0[27*i + 9*l + 3*m + n] give %1 }\n"
        "b { %2: f32 = load b1[81*l + 9*m + n + 18*j + 2*k - 10] if 0 <= 2*j + m - 1 < 9, 0 <= 2*k "
        "+ n - 1 < 9 else -1 %3: f32 = abs %2 give %3 }\n"
        "epilogue { %4: f32 = sum store b2[25*i + 5*j + k], %4 } }",
        DATA(w), DATA(x), DATA(r));
    for (int i = 0; i < O * P * P; i++) {
        float s = 0;
        for (int p = 0; p < C * 9; p++) {
            int y = 2 * (i / P % P) + p / 3 % 3 - 1, z = 2 * (i % P) + p % 3 - 1;
            float v = y < 0 || y >= H || z < 0 || z >= H ? -1 : x[H * H * (p / 9) + H * y + z];
            s = fmaf(w[C * 9 * (i / P / P) + p], fabsf(v), s);
        }
        ck_assert_msg(r[i] == s, "%d", i);
    }
}
END_TEST

START_TEST(empty_sums)
{
    float a[4] = {1, 2, 3, 4}, r[4] = {9, 9, 9, 9};
    RUN("contract t { b0: in f32[4] b1: out f32[4] dim m i < 2 dim n j < 2 dim k k < 0 a { %1: f32 "
        "= load b0[i] give %1 } b { %2: f32 = load b0[j] give %2 } epilogue { %3: f32 = sum store "
        "b1[2*i + j], %3 } }",
        DATA(a), DATA(r));
    for (int i = 0; i < 4; i++)
        ck_assert(same(r[i], 0.0));
}
END_TEST

/* ---- tangents
 * ------------------------------------------------------------------------------------ */

static const struct {
    const char *op;
    double x, dx, y, dy, d;
} rule[] = {
    {"add", 2, 3, 5, 7, 10},
    {"sub", 2, 3, 5, 7, -4},
    {"mul", 2, 3, 5, 7, 29},
    {"div", 6, 3, 2, 1, (3 - 3 * 1) / 2.0},
    {"min", 1, 3, 2, 7, 3},
    {"min", 2, 3, 2, 7, 7}, /* a tie: the second operand, as the value */
    {"max", 1, 3, 2, 7, 7},
    {"max", 2, 3, 2, 7, 7},
    {"neg", 2, 3, 0, 0, -3},
    {"abs", -2, 3, 0, 0, -3},
    {"abs", 0, 3, 0, 0, 0},
    {"sqrt", 4, 3, 0, 0, 0.75},
    {"floor", 2.5, 3, 0, 0, 0},
    {"rint", 2.5, 3, 0, 0, 0},
    {"exp", 0, 3, 0, 0, 3},
    {"log", 2, 3, 0, 0, 1.5},
    {"expm1", 0, 3, 0, 0, 3},
    {"log1p", 1, 3, 0, 0, 1.5},
    {"sin", 0, 3, 0, 0, 3},
    {"cos", 0, 3, 0, 0, 0},
    {"tanh", 0, 3, 0, 0, 3},
    {"erf", 0, 3, 0, 0, 3 * 1.1283791670955126},
    {"pow", 3, 2, 2, 0, 12},
    {"pow", -3, 2, 2, 0, -12},
    {"pow", 0, 2, 2, 1, 0},
};
enum { N_RULES = sizeof rule / sizeof rule[0] };

START_TEST(tangent_rules)
{
    bool two = rule[_i].dy != 0 || strcmp(rule[_i].op, "pow") == 0;
    Kernel *k = kernel_of(arena_printf(&cx.perm,
                                       "loop t { b0: in f32[1] b1: in f32[1] b2: out f32[1] %%1: "
                                       "f32 = load b0[0] %%2: f32 = load b1[0] %%3: f32 = %s %s "
                                       "store b2[0], %%3 }",
                                       rule[_i].op, two ? "%1, %2" : "%1"));
    double x = rule[_i].x, dx = rule[_i].dx, y = rule[_i].y, dy = rule[_i].dy, r, dr;
    kernel_run(k, K_DUAL, MEM({&x, &dx}, {&y, &dy}, {&r, &dr}), &cx.scratch);
    ck_assert_msg(fabs(dr - rule[_i].d) < 1e-14, "%s at %g: %g", rule[_i].op, x, dr);
}
END_TEST

/* No tangent passes through integers and comparisons; SELECT passes the chosen one's;
 * a NULL tangent is zero. */
START_TEST(tangents_that_end)
{
    double x[2] = {2.5, 4}, dx[2] = {3, 7}, r[4], dr[4] = {9, 9, 9, 9}, c = 1;
    Kernel *k = kernel_of("loop t { b0: in f32[2] b1: in f32[1] b2: out f32[4] %1: f32 = load "
                          "b0[0] %2: f32 = load b0[1] %3: i32 = cast %1 %4: f32 = cast %3 store "
                          "b2[0], %4 %5: bool = lt %1, %2 %6: f32 = cast %5 store b2[1], %6 %7: "
                          "f32 = select %5, %2, %1 store b2[2], %7 %8: f32 = load b1[0] %9: f32 = "
                          "mul %8, %1 store b2[3], %9 }");
    kernel_run(k, K_DUAL, MEM({x, dx}, {&c, NULL}, {r, dr}), &cx.scratch);
    ck_assert(dr[0] == 0 && dr[1] == 0 && dr[2] == 7 && dr[3] == 3);
    kernel_run(k, K_DUAL, MEM({x, dx}, {&c, NULL}, {r, NULL}), &cx.scratch);
    ck_assert(r[3] == 2.5);
}
END_TEST

START_TEST(tangents_of_a_contraction)
{
    double a[6] = {1, 2, 3, 4, 5, 6}, da[6] = {1, 0, 2, 0, 1, 1}, b[6] = {1, -1, 2, 0.5, 3, 1};
    double db[6] = {0, 1, 0, 2, 0, 1}, r[4], dr[4];
    Kernel *k = kernel_of("contract t { b0: in f32[6] b1: in f32[6] b2: out f32[4] leaf 2 dim m i "
                          "< 2 dim n j < 2 dim k k < 3 a { %1: f32 = load b0[3*i + k] give %1 } b "
                          "{ %2: f32 = load b1[2*k + j] give %2 } epilogue { %3: f32 = sum store "
                          "b2[2*i + j], %3 } }");
    kernel_run(k, K_DUAL, MEM({a, da}, {b, db}, {r, dr}), &cx.scratch);
    for (int i = 0; i < 4; i++) {
        double d = 0;
        for (int p = 0; p < 3; p++)
            d += da[3 * (i / 2) + p] * b[2 * p + i % 2] + a[3 * (i / 2) + p] * db[2 * p + i % 2];
        ck_assert(fabs(dr[i] - d) < 1e-13);
    }
}
END_TEST

/* ---- cost
 * ------------------------------------------------------------------------------------------ */

START_TEST(costs)
{
    KCost c = kernel_cost(kernel_of(
        "contract mm { b0: in f32[600] b1: in f32[1000] b2: in f32[20] b3: out f32[1200] dim m i < "
        "60 dim n j < 20 dim k k < 10 a { %1: f32 = load b0[10*i + k] give %1 } b { %2: f32 = load "
        "b1[5*k + 50*j] give %2 } epilogue { %3: f32 = sum %4: f32 = load b2[j] %5: f32 = add %3, "
        "%4 store b3[20*i + j], %5 } }"));
    ck_assert(c.contract_flops == 2.0 * 60 * 20 * 10 && c.flops == c.contract_flops + 1200);
    ck_assert(c.bytes_read == 4 * (600 + 200 + 20) && c.bytes_written == 4 * 1200);
    c = kernel_cost(kernel_of(
        "loop t { b0: in f32[1000] b1: out f32[900] par i < 30 { par j < 30 { %1: f32 = load b0[i "
        "+ j] %2: f32 = load b0[i + j + 1] %3: f32 = fma %1, %2, %1 %4: f32 = sqrt %3 store "
        "b1[30*i + j], %4 } } }"));
    ck_assert(c.flops == 900 * 3 && c.contract_flops == 0);
    ck_assert(c.bytes_read == 4 * 59 && c.bytes_written == 4 * 900);
}
END_TEST

Suite *suite_kernel(void)
{
    Suite *s = suite_create("kernel");
    TCase *t = tcase_create("instructions");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 0);
    tcase_add_loop_test(t, integers, 0, N_INTEGER);
    tcase_add_loop_test(t, floats, 0, N_REAL);
    tcase_add_loop_test(t, tangent_rules, 0, N_RULES);
    tcase_add_loop_test(t, matrix_product, 0, 3);
    tcase_add_test(t, integer_unary);
    tcase_add_test(t, rounding);
    tcase_add_test(t, comparisons);
    tcase_add_test(t, float_to_int);
    tcase_add_test(t, int_to_others);
    tcase_add_test(t, bitcasts);
    tcase_add_test(t, half_types);
    tcase_add_test(t, half_arithmetic);
    tcase_add_test(t, lanes_of_f32);
    tcase_add_test(t, lanes_of_f64);
    tcase_add_test(t, lanes_of_nested_loops);
    tcase_add_test(t, accumulator_inside);
    tcase_add_test(t, fold_inside);
    tcase_add_test(t, other_operations);
    tcase_add_test(t, identities);
    tcase_add_test(t, argmax);
    tcase_add_test(t, sums_from_the_end);
    tcase_add_test(t, bounds);
    tcase_add_test(t, indirect);
    tcase_add_test(t, rows_on_chip);
    tcase_add_test(t, convolution);
    tcase_add_test(t, empty_sums);
    tcase_add_test(t, tangents_that_end);
    tcase_add_test(t, tangents_of_a_contraction);
    tcase_add_test(t, costs);
    suite_add_tcase(s, t);
    return s;
}
