/* Contraction kernels, tangents of single instructions, and what a kernel costs. */
#include "kernel_run.h"

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

Suite *suite_kernel_contract(void);
Suite *suite_kernel_contract(void)
{
    Suite *s = suite_create("kernel_contract");
    TCase *t = tcase_create("contractions");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 0);
    tcase_add_loop_test(t, tangent_rules, 0, N_RULES);
    tcase_add_loop_test(t, matrix_product, 0, 3);
    tcase_add_test(t, convolution);
    tcase_add_test(t, empty_sums);
    tcase_add_test(t, tangents_that_end);
    tcase_add_test(t, tangents_of_a_contraction);
    tcase_add_test(t, costs);
    suite_add_tcase(s, t);
    return s;
}
