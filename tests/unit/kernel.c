/* Loop kernels: lanes and folds, variables, memory. */
#include "kernel_run.h"

/* ---- reductions ------------------------------------------------------------------------- */

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

Suite *suite_kernel(void);
Suite *suite_kernel(void)
{
    Suite *s = suite_create("kernel");
    TCase *t = tcase_create("loops");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 0);
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
    suite_add_tcase(s, t);
    return s;
}
