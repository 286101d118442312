/* Stores that join the loop of a sum: which ones do, and that the kernel leaves the same bits. */
#include <check.h>
#include <string.h>

#include "kernel/kernel.h"

/* b0: 8 rows of 20 elements, read; b1: as many, written; b2: 8 sums; b3: an index. */
#define ROWS(body)                                                                                 \
    "loop t { b0: in f32[160] b1: out f32[160] b2: out f32[8] b3: in i32[8] par i < 8 { " body     \
    " } }"
#define SUM "%1: f32 = acc add red k < 20 { %2: f32 = load b0[20*i + k] %3: f32 = exp %2 "
#define END "into %1, %3 } %4: f32 = fold %1 store b2[i], %4 "

enum { N_ROWS = 8, N_COLUMNS = 20, N_ELEMS = N_ROWS * N_COLUMNS };

static const struct {
    int joins; /* loops fewer */
    const char *what, *text;
} cases[] = {
    {1, "what is summed",
     ROWS(SUM END "par l < 20 { %5: f32 = load b0[20*i + l] %6: f32 = exp %5 "
                  "store b1[20*i + l], %6 }")},
    {1, "what is on the way to it",
     ROWS(SUM END "par l < 20 { %5: f32 = load b0[20*i + l] "
                  "store b1[20*i + l], %5 }")},
    {1, "where the place is another",
     ROWS(SUM END "par l < 20 { %5: f32 = load b0[20*i + l] "
                  "%6: f32 = exp %5 store b1[8*l + i], %6 }")},
    {1, "constants of its own",
     ROWS("%1: f32 = acc add red k < 20 { %2: f32 = load b0[20*i + k] %7: f32 = const 2 "
          "%3: f32 = mul %2, %7 " END "%8: f32 = const 2 par l < 20 { %5: f32 = load b0[20*i + l] "
          "%6: f32 = mul %5, %8 store b1[20*i + l], %6 }")},
    {1, "bounds that say the same",
     ROWS(
         "%1: f32 = acc add red k < 20 { %3: f32 = load b0[20*i + k - 1] if 1 <= k < 20 else 3 " END
         "par l < 20 { %5: f32 = load b0[20*i + l - 1] if 1 <= l < 20 else 3 "
         "store b1[20*i + l] if 2 <= l < 20, %5 }")},
    {1, "of the second sum",
     ROWS(SUM END "%7: f32 = acc add red m < 20 { %8: f32 = load b0[20*i + m] %9: f32 = sub %8, %4 "
                  "into %7, %9 } %10: f32 = fold %7 store b2[i], %10 "
                  "par n < 20 { %5: f32 = load b0[20*i + n] %6: f32 = sub %5, %4 "
                  "store b1[20*i + n], %6 }")},
    {1, "of the first sum, behind the second",
     ROWS(SUM END "%7: f32 = acc add red m < 20 { %8: f32 = load b0[20*i + m] %9: f32 = sub %8, %4 "
                  "into %7, %9 } %10: f32 = fold %7 store b2[i], %10 "
                  "par n < 20 { %5: f32 = load b0[20*i + n] %6: f32 = exp %5 "
                  "store b1[20*i + n], %6 }")},
    {0, "the sum itself is in it",
     ROWS(SUM END "par l < 20 { %5: f32 = load b0[20*i + l] %6: f32 = sub %5, %4 "
                  "store b1[20*i + l], %6 }")},
    {0, "fewer steps",
     ROWS(SUM END "par l < 19 { %5: f32 = load b0[20*i + l] %6: f32 = exp %5 "
                  "store b1[20*i + l], %6 }")},
    {0, "other elements",
     ROWS(SUM END "par l < 20 { %5: f32 = load b0[20*i - l + 19] "
                  "%6: f32 = exp %5 store b1[20*i + l], %6 }")},
    {0, "another bound",
     ROWS(
         "%1: f32 = acc add red k < 20 { %3: f32 = load b0[20*i + k - 1] if 1 <= k < 20 else 3 " END
         "par l < 20 { %5: f32 = load b0[20*i + l - 1] if 1 <= l < 20 else 4 "
         "store b1[20*i + l], %5 }")},
    {0, "another constant",
     ROWS("%1: f32 = acc add red k < 20 { %2: f32 = load b0[20*i + k] %7: f32 = const 2 "
          "%3: f32 = mul %2, %7 " END "%8: f32 = const 3 par l < 20 { %5: f32 = load b0[20*i + l] "
          "%6: f32 = mul %5, %8 store b1[20*i + l], %6 }")},
    {0, "a place that is known later",
     ROWS(SUM END "%5: i32 = load b3[i] par l < 20 { %6: f32 = load b0[20*i + l] "
                  "store b1[20*i + l] if 0 <= %5 < 1, %6 }")},
    {0, "what it writes is written before",
     ROWS(SUM END "store b1[20*i + 3], %4 par l < 20 { %5: f32 = load b0[20*i + l] "
                  "%6: f32 = exp %5 store b1[20*i + l], %6 }")},
    {0, "what it writes is read before",
     ROWS("par m < 20 { %9: f32 = const 1 store b1[20*i + m], %9 } " SUM END
          "%7: f32 = load b1[20*i] store b2[i], %7 par l < 20 { %5: f32 = load b0[20*i + l] "
          "%6: f32 = exp %5 store b1[20*i + l], %6 }")},
    {0, "two stores",
     ROWS(SUM END "par l < 20 { %5: f32 = load b0[20*i + l] store b1[20*i + l], %5 "
                  "%6: f32 = exp %5 store b1[20*i + l], %6 }")},
    {0, "in another loop",
     ROWS(SUM END "par m < 1 { par l < 20 { %5: f32 = load b0[20*i + l] %6: f32 = exp %5 "
                  "store b1[20*i + l], %6 } }")},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static int n_loops(const Kernel *k)
{
    int n = 0;
    for (Val v = 1; v < (Val)k->inst.n; v++)
        n += kop_class((KOp)k->inst.at[v].op) == K_CLASS_LOOP && k->inst.at[v].op != KI_END;
    return n;
}

typedef struct Bytes {
    float in[N_ELEMS], out[N_ELEMS], sum[N_ROWS];
    int32_t index[N_ROWS];
} Bytes;

static void run(const Kernel *k, Bytes *m, Arena *scratch)
{
    const KMem mem[] = {{m->in, NULL}, {m->out, NULL}, {m->sum, NULL}, {m->index, NULL}};
    memset(m, 0, sizeof *m);
    for (int i = 0; i < N_ELEMS; i++)
        m->in[i] = (float)((i * 37) % 101) / 17 - 3;
    for (int i = 0; i < N_ROWS; i++)
        m->index[i] = i % 3;
    kernel_run(k, K_EXACT, mem, scratch);
}

START_TEST(stores_join_sums)
{
    Ctx cx;
    Arena scratch = {0};
    Bytes whole, joined;
    ctx_init(&cx);
    const char *text = cases[_i].text;
    Kernel *k = kernel_read(&cx, &cx.perm, source_add(&cx, "test", text, strlen(text), false));
    ck_assert_msg(k != NULL, "%s: can't be read", cases[_i].what);
    const char *wrong = kernel_verify(k, &scratch);
    ck_assert_msg(wrong == NULL, "%s: %s", cases[_i].what, wrong);
    Kernel *j = kernel_join(&cx.perm, k);
    wrong = kernel_verify(j, &scratch);
    ck_assert_msg(wrong == NULL, "%s, joined: %s", cases[_i].what, wrong);
    ck_assert_msg(n_loops(k) - n_loops(j) == cases[_i].joins, "%s: %d loops of %d are left",
                  cases[_i].what, n_loops(j), n_loops(k));
    ck_assert(cases[_i].joins > 0 || j == k);
    run(k, &whole, &scratch);
    run(j, &joined, &scratch);
    ck_assert_msg(memcmp(&whole, &joined, sizeof whole) == 0, "%s: other bits", cases[_i].what);
    arena_free(&scratch);
    ctx_free(&cx);
}
END_TEST

Suite *suite_kernel_join(void)
{
    Suite *s = suite_create("kernel_join");
    TCase *t = tcase_create("join");
    tcase_add_loop_test(t, stores_join_sums, 0, N_CASES);
    suite_add_tcase(s, t);
    return s;
}
