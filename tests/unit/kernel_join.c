/* Stores that join the loop of a sum, sums that share a walk: which ones do, and that the kernel
 * leaves the same bits. */
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

typedef struct Case {
    int joins; /* loops fewer */
    const char *what, *text;
} Case;

static const Case cases[] = {
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

/* Two nests over a row, the second of which reads and sums what `body` says. */
#define TWO(between, body)                                                                         \
    ROWS("%1: f32 = acc add seq j < 5 { red k < 4 { %2: f32 = load b0[20*i + 4*j + k] "            \
         "into %1, %2 } } %3: f32 = fold %1 store b2[i], %3 " between                              \
         "seq m < 5 { red n < 4 { " body " } } %8: f32 = fold %4 store b1[i], %8")

static const Case walks[] = {
    {2, "the same elements",
     TWO("%4: f32 = acc add ", "%5: f32 = load b0[20*i + 4*m + n] "
                               "%6: f32 = mul %5, %5 into %4, %6")},
    {2, "constants between",
     TWO("%4: f32 = acc max %7: f32 = const 3 ", "%5: f32 = load b0[20*i + 4*m + n] "
                                                 "%6: f32 = sub %5, %7 into %4, %6")},
    {2, "another operand as well",
     TWO("%4: f32 = acc add ", "%5: f32 = load b0[20*i + 4*m + n] %9: f32 = load b0[4*m + n] "
                               "%6: f32 = mul %5, %9 into %4, %6")},
    {4, "three of them",
     TWO("%10: f32 = acc add seq p < 5 { red q < 4 { %11: f32 = load b0[20*i + 4*p + q] "
         "%12: f32 = neg %11 into %10, %12 } } %13: f32 = fold %10 store b1[i + 8], %13 "
         "%4: f32 = acc min ",
         "%5: f32 = load b0[20*i + 4*m + n] into %4, %5")},
    {0, "other elements", TWO("%4: f32 = acc add ", "%5: f32 = load b0[4*m + n] into %4, %5")},
    {0, "what the first sum gives",
     TWO("%4: f32 = acc add ", "%5: f32 = load b0[20*i + 4*m + n] %6: f32 = sub %5, %3 "
                               "into %4, %6")},
    {0, "what was stored between",
     TWO("store b1[20*i], %3 %4: f32 = acc add ",
         "%5: f32 = load b0[20*i + 4*m + n] %6: f32 = load b1[20*i] %7: f32 = add %5, %6 "
         "into %4, %7")},
    {0, "the other way round",
     ROWS("%1: f32 = acc add seq j < 20 { %2: f32 = load b0[20*i + j] into %1, %2 } "
          "%3: f32 = fold %1 store b2[i], %3 %4: f32 = acc add "
          "seq m < 20 down { %5: f32 = load b0[20*i + m] into %4, %5 } "
          "%8: f32 = fold %4 store b1[i], %8")},
    {0, "one accumulator, twice",
     ROWS("%1: f32 = acc add red k < 20 { %2: f32 = load b0[20*i + k] into %1, %2 } "
          "red m < 20 { %5: f32 = load b0[20*i + m] %6: f32 = mul %5, %5 into %1, %6 } "
          "%8: f32 = fold %1 store b1[i], %8")},
    {0, "a loop beside the inner one",
     TWO("%4: f32 = acc add ", "%5: f32 = load b0[20*i + 4*m + n] into %4, %5 } red o < 4 { "
                               "%9: f32 = load b0[20*i + 4*m + o] into %4, %9")},
    {0, "another length",
     ROWS("%1: f32 = acc add red k < 20 { %2: f32 = load b0[20*i + k] into %1, %2 } "
          "%3: f32 = fold %1 store b2[i], %3 %4: f32 = acc add "
          "red m < 19 { %5: f32 = load b0[20*i + m] into %4, %5 } %8: f32 = fold %4 "
          "store b1[i], %8")},
};
enum { N_WALKS = sizeof walks / sizeof *walks };

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

/* It gives the same bits, with as many loops fewer. */
static void check_pass(const Case *c, Kernel *(*pass)(Arena *, Kernel *))
{
    Ctx cx;
    Arena scratch = {0};
    Bytes whole, joined;
    ctx_init(&cx);
    Kernel *k =
        kernel_read(&cx, &cx.perm, source_add(&cx, "test", c->text, strlen(c->text), false));
    ck_assert_msg(k != NULL, "%s: can't be read", c->what);
    const char *wrong = kernel_verify(k, &scratch);
    ck_assert_msg(wrong == NULL, "%s: %s", c->what, wrong);
    Kernel *j = pass(&cx.perm, k);
    wrong = kernel_verify(j, &scratch);
    ck_assert_msg(wrong == NULL, "%s, joined: %s", c->what, wrong);
    ck_assert_msg(n_loops(k) - n_loops(j) == c->joins, "%s: %d loops of %d are left", c->what,
                  n_loops(j), n_loops(k));
    ck_assert(c->joins > 0 || j == k);
    run(k, &whole, &scratch);
    run(j, &joined, &scratch);
    ck_assert_msg(memcmp(&whole, &joined, sizeof whole) == 0, "%s: other bits", c->what);
    arena_free(&scratch);
    ctx_free(&cx);
}

START_TEST(stores_join_sums)
{
    check_pass(&cases[_i], kernel_join);
}
END_TEST

START_TEST(sums_share_walks)
{
    check_pass(&walks[_i], kernel_share_walks);
}
END_TEST

Suite *suite_kernel_join(void)
{
    Suite *s = suite_create("kernel_join");
    TCase *t = tcase_create("join");
    tcase_add_loop_test(t, stores_join_sums, 0, N_CASES);
    tcase_add_loop_test(t, sums_share_walks, 0, N_WALKS);
    suite_add_tcase(s, t);
    return s;
}
