/* Values of functions that rest in an output: which ones do, and that the kernel leaves the same
 * bits. */
#include <check.h>
#include <string.h>

#include "kernel/kernel.h"

/* b0: 8 rows of 20 elements, read; b1: as many, written; b2: 8 sums; b3: factors. */
#define ROWS(body)                                                                                 \
    "loop t { b0: in f32[160] b1: out f32[160] b2: out f32[8] b3: in f32[160] par i < 8 { " body   \
    " } }"
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

enum { N_ROWS = 8, N_COLUMNS = 20, N_ELEMS = N_ROWS * N_COLUMNS };

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

typedef struct Bytes {
    float in[N_ELEMS], out[N_ELEMS], sum[N_ROWS], by[N_ELEMS];
} Bytes;

static void run(const Kernel *k, Bytes *m, Arena *scratch)
{
    const KMem mem[] = {{m->in, NULL}, {m->out, NULL}, {m->sum, NULL}, {m->by, NULL}};
    memset(m, 0, sizeof *m);
    for (int i = 0; i < N_ELEMS; i++) {
        m->in[i] = (float)((i * 37) % 101) / 17 - 3;
        m->by[i] = (float)((i * 53) % 89) / 13 - 2;
    }
    kernel_run(k, K_EXACT, mem, scratch);
}

START_TEST(values_rest)
{
    Ctx cx;
    Arena scratch = {0};
    Bytes whole, rested;
    ctx_init(&cx);
    const char *text = cases[_i].text;
    Kernel *k = kernel_read(&cx, &cx.perm, source_add(&cx, "test", text, strlen(text), false));
    ck_assert_msg(k != NULL, "%s: can't be read", cases[_i].what);
    const char *wrong = kernel_verify(k, &scratch);
    ck_assert_msg(wrong == NULL, "%s: %s", cases[_i].what, wrong);
    Kernel *r = kernel_rest(&cx.perm, k);
    wrong = kernel_verify(r, &scratch);
    ck_assert_msg(wrong == NULL, "%s, rested: %s", cases[_i].what, wrong);
    ck_assert_msg(n_exps(k) - n_exps(r) == cases[_i].fewer, "%s: %d exponentials of %d are left",
                  cases[_i].what, n_exps(r), n_exps(k));
    ck_assert(cases[_i].fewer > 0 || r == k);
    run(k, &whole, &scratch);
    run(r, &rested, &scratch);
    ck_assert_msg(memcmp(&whole, &rested, sizeof whole) == 0, "%s: other bits", cases[_i].what);
    arena_free(&scratch);
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
