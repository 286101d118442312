/* Values of functions that rest in an output: which ones do, and that the kernel leaves the same
 * bits. */
#include "kernel_rows.h"

#define SUM                                                                                        \
    "%1: f32 = acc add red k < 20 { %2: f32 = load b0[20*i + k] %3: f32 = exp %2 into %1, %3 } "   \
    "%4: f32 = fold %1 "
#define DOT                                                                                        \
    "%11: f32 = acc add red l < 20 { %12: f32 = load b0[20*i + l] %13: f32 = exp %12 "             \
    "%14: f32 = load b3[20*i + l] %15: f32 = mul %13, %14 into %11, %15 } %16: f32 = fold %11 "    \
    "store b2[i], %16 "
#define ALL(stores)                                                                                \
    "par m < 20 { %21: f32 = load b0[20*i + m] %22: f32 = exp %21 %23: f32 = mul %22, %4 "         \
    "%24: f32 = sub %23, %16 " stores " }"

static const struct {
    int fewer; /* exponentials */
    const char *what, *text;
} cases[] = {
    {2, "a softmax and its reverse", ROWS(SUM DOT ALL("store b1[20*i + m], %24"))},
    {2, "where the place is another", ROWS(SUM DOT ALL("store b1[8*m + i], %24"))},
    {1, "one other loop",
     ROWS(SUM "par m < 20 { %21: f32 = load b0[20*i + m] %22: f32 = exp %21 "
              "%23: f32 = mul %22, %4 store b1[20*i + m], %23 }")},
    {0, "no elements of its own", ROWS(SUM DOT ALL("store b1[20*i + m] if 0 <= m < 19, %24"))},
    {0, "a place that is read",
     ROWS(SUM DOT ALL("store b1[20*i + m], %24 %25: f32 = load b1[20*i + m] "
                      "store b1[20*i + m], %25"))},
    {0, "stored before the value is there again",
     ROWS(SUM DOT "par m < 20 { %20: f32 = load b3[20*i + m] store b1[20*i + m], %20 "
                  "%21: f32 = load b0[20*i + m] %22: f32 = exp %21 }")},
    {0, "fewer steps",
     ROWS(SUM DOT "par m < 19 { %21: f32 = load b0[20*i + m] %22: f32 = exp %21 "
                  "%23: f32 = mul %22, %4 store b1[20*i + m], %23 }")},
    {0, "another value",
     ROWS(SUM DOT "par m < 20 { %21: f32 = load b3[20*i + m] %22: f32 = exp %21 "
                  "%23: f32 = mul %22, %4 store b1[20*i + m], %23 }")},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static int n_exps(const Kernel *k)
{
    int n = 0;
    for (Val v = 1; v < (Val)k->inst.n; v++)
        n += k->inst.at[v].op == KI_EXP;
    return n;
}

START_TEST(values_rest)
{
    Ctx cx;
    Kernel *k;
    ctx_init(&cx);
    Kernel *r = change_rows(&cx, cases[_i].what, cases[_i].text, kernel_rest, &k);
    ck_assert_msg(n_exps(k) - n_exps(r) == cases[_i].fewer, "%s: %d exponentials of %d are left",
                  cases[_i].what, n_exps(r), n_exps(k));
    ck_assert(cases[_i].fewer > 0 || r == k);
    ctx_free(&cx);
}
END_TEST

Suite *suite_kernel_rest(void)
{
    Suite *s = suite_create("kernel_rest");
    TCase *t = tcase_create("rest");
    tcase_add_loop_test(t, values_rest, 0, N_CASES);
    suite_add_tcase(s, t);
    return s;
}
