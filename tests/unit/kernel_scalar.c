/* Kernel instructions one by one: values at the edges of each type, conversions. */
#include "kernel_run.h"

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
        ck_assert_msg(i[n] == ei[n] && l[n] == el[n] && u[n] == eu[n] && b[n] == 1, "%g: %d", x[n],
                      i[n]);
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

START_TEST(elements_of_arrays)
{
    const float f[] = {1.5f, NAN, 0, 2}, g[] = {1.5f, -NAN, -0.0f, 2};
    const uint16_t half[] = {0x3e00, 0x7e00};
    const int64_t whole[] = {-3, INT64_C(1) << 40};
    const uint8_t byte[] = {0, 200};
    ck_assert_int_eq(dtype_first_unlike(F32, f, g, 2), -1); /* of NaN, any */
    ck_assert_int_eq(dtype_first_unlike(F32, f, g, 4), 2);
    ck_assert_int_eq(dtype_first_unlike(I64, whole, whole + 1, 1), 0);
    ck_assert_int_eq(dtype_first_unlike(U8, byte, byte, 2), -1);
    ck_assert_double_eq(dtype_value(F32, f, 0), 1.5);
    ck_assert_double_eq(dtype_value(F16, half, 0), 1.5);
    ck_assert(isnan(dtype_value(F16, half, 1)));
    ck_assert_double_eq(dtype_value(I64, whole, 1), 0x1p40);
    ck_assert_double_eq(dtype_value(U8, byte, 1), 200);
    const int64_t odd[] = {(INT64_C(1) << 53) + 1, INT64_MAX};
    ck_assert(dtype_integer(I64, odd, 0) == odd[0] && dtype_integer(I64, odd, 1) == INT64_MAX);
    ck_assert_int_eq(dtype_integer(U8, byte, 1), 200);
}
END_TEST

/* Just below and above the middle between two halves, where a float would be the middle itself. */
START_TEST(doubles_become_halves)
{
    for (uint32_t h = 0; h < 0x7f80; h++) {
        double lo = bf16_to_f32((uint16_t)h), hi = bf16_to_f32((uint16_t)(h + 1));
        double middle = h < 0x7f7f ? (lo + hi) / 2 : lo + ldexp(1, 119);
        ck_assert_int_eq(f64_to_bf16(middle * (1 - 0x1p-40)), h);
        ck_assert_int_eq(f64_to_bf16(-middle * (1 + 0x1p-40)), 0x8000 + h + 1);
        ck_assert_int_eq(f64_to_bf16(middle), h + (h & 1));
        ck_assert_int_eq(f64_to_bf16(lo), h);
        if (h >= 0x7c00)
            continue;
        lo = f16_to_f32((uint16_t)h);
        hi = h < 0x7bff ? f16_to_f32((uint16_t)(h + 1)) : 65536;
        middle = (lo + hi) / 2;
        ck_assert_int_eq(f64_to_f16(-middle * (1 - 0x1p-40)), 0x8000 + h);
        ck_assert_int_eq(f64_to_f16(middle * (1 + 0x1p-40)), h + 1);
        ck_assert_int_eq(f64_to_f16(middle), h + (h & 1));
        ck_assert_int_eq(f64_to_f16(lo), h);
    }
    ck_assert(f64_to_f16(1e300) == 0x7c00 && f64_to_bf16(-1e300) == 0xff80);
    ck_assert(f64_to_f16(-1e-300) == 0x8000 && f64_to_bf16(1e-300) == 0);
    ck_assert(isnan(f16_to_f32(f64_to_f16(NAN))) && isnan(bf16_to_f32(f64_to_bf16(NAN))));
}
END_TEST

Suite *suite_kernel_scalar(void);
Suite *suite_kernel_scalar(void)
{
    Suite *s = suite_create("kernel_scalar");
    TCase *t = tcase_create("scalars");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 0);
    tcase_add_test(t, elements_of_arrays);
    tcase_add_test(t, doubles_become_halves);
    tcase_add_loop_test(t, integers, 0, N_INTEGER);
    tcase_add_loop_test(t, floats, 0, N_REAL);
    tcase_add_test(t, integer_unary);
    tcase_add_test(t, rounding);
    tcase_add_test(t, comparisons);
    tcase_add_test(t, float_to_int);
    tcase_add_test(t, int_to_others);
    tcase_add_test(t, bitcasts);
    tcase_add_test(t, half_types);
    tcase_add_test(t, half_arithmetic);
    suite_add_tcase(s, t);
    return s;
}
