/* Which outputs may take the memory of which inputs, by the kernel's text: b0 in, b1 out. */
#include <check.h>
#include <string.h>

#include "pass/cluster.h"

#define LOOP(n_in, n_out, body)                                                                    \
    "loop t { b0: in f32[" #n_in "] b1: out f32[" #n_out "] b2: in f32[64] " body " }"
#define CON(a, e)                                                                                  \
    "contract t { b0: in f32[64] b1: out f32[64] b2: in f32[64] dim m i < 8 dim n j < 8 "          \
    "dim k k < 8 a { " a " give %1 } b { %2: f32 = load b2[8*k + j] give %2 } epilogue { %3: f32 " \
    "= sum " e " } }"

static const struct {
    bool may;
    const char *text;
} kernels[] = {
    /* element by element */
    {true, LOOP(64, 64, "par i < 64 { %1: f32 = load b0[i] %2: f32 = neg %1 store b1[i], %2 }")},
    {true, LOOP(64, 64,
                "par i < 8 { par j < 8 { %1: f32 = load b0[8*i + j] store b1[8*i + j], "
                "%1 } }")},
    /* transposed, turned, shifted: an element is written before it is read */
    {false, LOOP(64, 64,
                 "par i < 8 { par j < 8 { %1: f32 = load b0[i + 8*j] store b1[8*i + j], "
                 "%1 } }")},
    {false, LOOP(64, 64, "par i < 64 { %1: f32 = load b0[-1*i + 63] store b1[i], %1 }")},
    {false, LOOP(64, 64,
                 "par i < 64 { %1: f32 = load b0[i - 1] if 1 <= i < 64 else 0 store "
                 "b1[i], %1 }")},
    /* an element that each iteration of a loop reads again */
    {false, LOOP(1, 1,
                 "seq i < 8 { %1: f32 = load b0[0] %2: f32 = load b2[i] %3: f32 = mul %1, "
                 "%2 store b1[0], %3 }")},
    {false, LOOP(8, 8,
                 "par i < 8 { seq j < 8 { %1: f32 = load b0[i] %2: f32 = load b2[8*i + j] "
                 "%3: f32 = mul %1, %2 store b1[i], %3 } }")},
    /* all of a row is read before the row is written */
    {true, LOOP(64, 64,
                "par i < 8 { %1: f32 = acc add red j < 8 { %2: f32 = load b0[8*i + j] "
                "into %1, %2 } %3: f32 = fold %1 par l < 8 { store b1[8*i + l], %3 } }")},
    {false, LOOP(64, 8, "%1: f32 = acc add par i < 8 { %2: f32 = load b0[8*i] store b1[i], %2 }")},
    {false, LOOP(64, 64,
                 "par i < 8 { %1: f32 = acc add red j < 8 { %2: f32 = load b0[i + 8*j] "
                 "into %1, %2 } %3: f32 = fold %1 par l < 8 { store b1[8*i + l], %3 } }")},
    /* a value beside a PAR loop is read for each piece of the loop */
    {false, LOOP(1, 8,
                 "%1: f32 = load b0[0] par i < 8 { %2: f32 = load b2[i] %3: f32 = mul %1, "
                 "%2 store b1[i], %3 }")},
    {false, LOOP(64, 64,
                 "par i < 8 { %1: f32 = load b0[8*i] par j < 8 { store b1[8*i + j], %1 } "
                 "}")},
    /* ... unless that loop has another beside it, and so is no piece of the grid's */
    {true, LOOP(64, 64,
                "par i < 8 { %1: f32 = load b0[8*i] %2: f32 = acc max red l < 8 { %3: f32 = load "
                "b0[8*i + l] into %2, %3 } %4: f32 = fold %2 %5: f32 = sub %4, %1 par j < 8 { "
                "store b1[8*i + j], %5 } }")},
    {false,
     LOOP(64, 64,
          "par i < 8 { %1: f32 = load b0[8*i + 1] %2: f32 = acc max red l < 8 { %3: f32 = "
          "load b0[8*i + l + 1] if 0 <= 8*i + l + 1 < 64 else 0 into %2, %3 } %4: f32 = fold "
          "%2 %5: f32 = sub %4, %1 par j < 8 { store b1[8*i + j], %5 } }")},
    {true, LOOP(64, 64,
                "par i < 8 { %1: f32 = load b0[8*i + 1] %2: f32 = acc max red l < 8 { %3: f32 = "
                "load b0[8*i + l + 1] if 0 <= l < 7 else 0 into %2, %3 } %4: f32 = fold %2 "
                "%5: f32 = sub %4, %1 par j < 8 { store b1[8*i + j], %5 } }")},
    {true, LOOP(1, 1,
                "%1: f32 = load b0[0] par i < 1 { %2: f32 = load b2[i] %3: f32 = mul %1, %2 "
                "store b1[i], %3 }")},
    /* columns of a matrix, whose rows are anywhere: those of another grid iteration are not met */
    {true, LOOP(64, 64,
                "par i < 4 { seq v < 8 { par j < 2 { %1: f32 = load b0[8*v + 2*i + j] "
                "store b1[8*v + 2*i + j], %1 } } seq u < 3 { par j < 2 { %2: f32 = load "
                "b2[2*u + j] store b1[16*u + 2*i + j + 8], %2 } } }")},
    {false, LOOP(64, 64,
                 "par i < 4 { seq v < 8 { par j < 3 { %1: f32 = load b0[7*v + 2*i + j] "
                 "store b1[7*v + 2*i + j], %1 } } seq u < 3 { par j < 2 { %2: f32 = load "
                 "b2[2*u + j] store b1[16*u + 2*i + j + 8], %2 } } }")},
    {false, LOOP(64, 64,
                 "par i < 4 { seq v < 4 { par j < 2 { %1: f32 = load b0[8*v + 2*i + j] "
                 "store b1[8*v + 2*i + j], %1 } } seq u < 3 { par j < 2 { %2: f32 = load "
                 "b2[2*u + j] store b1[12*u + 2*i + j], %2 } } }")},
    /* an element of the row, by an index that its bounds keep in the row, before the row's loops */
    {true, LOOP(64, 64,
                "par i < 8 { %6: i64 = index i %7: f32 = load b0[8*i + %6] if 0 <= %6 < 8 else 0 "
                "%1: f32 = acc add red j < 8 { %2: f32 = load b0[8*i + j] into %1, %2 } "
                "%3: f32 = fold %1 %4: f32 = sub %3, %7 par l < 8 { store b1[8*i + l], %4 } }")},
    {false, LOOP(64, 64,
                 "par i < 8 { %6: i64 = index i %1: f32 = acc add red j < 8 { %2: f32 = load "
                 "b0[8*i + j] into %1, %2 } %3: f32 = fold %1 par l < 8 { store b1[8*i + l], %3 } "
                 "%7: f32 = load b0[8*i + %6] if 0 <= %6 < 8 else 0 store b1[8*i], %7 }")},
    {false, LOOP(64, 64,
                 "par i < 8 { %6: i64 = index i %7: f32 = load b0[8*i + %6 - 1] if 0 <= %6 < 8, "
                 "1 <= 8*i + %6 < 64 else 0 %1: f32 = acc add red j < 8 { %2: f32 = load "
                 "b0[8*i + j] into %1, %2 } %3: f32 = fold %1 %4: f32 = sub %3, %7 par l < 8 { "
                 "store b1[8*i + l], %4 } }")},
    {false, LOOP(64, 64,
                 "par i < 8 { %6: i64 = index i %7: f32 = load b0[%6] if 0 <= %6 < 64 else 0 "
                 "%1: f32 = acc add red j < 8 { %2: f32 = load b0[8*i + j] into %1, %2 } "
                 "%3: f32 = fold %1 %4: f32 = sub %3, %7 par l < 8 { store b1[8*i + l], %4 } }")},
    /* contractions: what the epilogue reads and writes, never a factor */
    {true, CON("%1: f32 = load b2[8*i + k]",
               "%4: f32 = load b0[8*i + j] %5: f32 = add %3, %4 store b1[8*i + j], %5")},
    {false, CON("%1: f32 = load b0[8*i + k]", "store b1[8*i + j], %3")},
    {false, CON("%1: f32 = load b2[8*i + k]",
                "%4: f32 = load b0[i + 8*j] %5: f32 = add %3, %4 store b1[8*i + j], %5")},
};
enum { N_KERNELS = sizeof kernels / sizeof *kernels };

static Kernel *kernel_of(Ctx *cx, const char *text)
{
    Kernel *k = kernel_read(cx, &cx->perm, source_add(cx, "test", text, strlen(text), false));
    diag_print(cx, stdout);
    ck_assert_msg(k != NULL, "%s", text);
    const char *bad = kernel_verify(k, &cx->scratch);
    ck_assert_msg(bad == NULL, "%s: %s", text, bad);
    return k;
}

START_TEST(only_where_nothing_is_read_later)
{
    Ctx cx;
    ctx_init(&cx);
    const char *text = kernels[_i].text;
    Kernel *k = kernel_of(&cx, text);
    ck_assert_msg(kernel_inplace(k, 0, 1) == kernels[_i].may, "%s", text);
    ctx_free(&cx);
}
END_TEST

/* Of b0 and b1 in one memory: what is left. */
static const struct {
    const char *text, *left; /* of its instructions; NULL: all */
} copies[] = {
    {LOOP(64, 64,
          "seq v < 8 { par j < 8 { %1: f32 = load b0[8*v + j] store b1[8*v + j], %1 } } "
          "par j < 8 { %2: f32 = load b2[j] store b1[j + 8], %2 }"),
     "  par i < 8 {\n    %2: f32 = load b2[i]\n    store b1[i + 8], %2\n  }\n"},
    /* what else is done with the value stays, and what goes to another place */
    {LOOP(64, 64, "par i < 32 { %1: f32 = load b0[i] store b1[i], %1 store b1[i + 32], %1 }"),
     "  par i < 32 {\n    %2: f32 = load b0[i]\n    store b1[i + 32], %2\n  }\n"},
    {LOOP(64, 64, "par i < 63 { %1: f32 = load b0[i + 1] store b1[i], %1 }"), NULL},
    {LOOP(64, 64, "par i < 64 { %1: f32 = load b2[i] store b1[i], %1 }"), NULL},
    {LOOP(64, 64, "par i < 64 { %1: f32 = load b0[i] if 0 <= i < 9 else 0 store b1[i], %1 }"),
     NULL},
    {LOOP(64, 64, "par i < 64 { %1: f32 = load b0[i] %2: f32 = neg %1 store b1[i], %2 }"), NULL},
};
enum { N_COPIES = sizeof copies / sizeof *copies };

START_TEST(what_is_there_is_not_stored_again)
{
    Ctx cx;
    ctx_init(&cx);
    const char *text = copies[_i].text;
    Kernel *k = kernel_of(&cx, text);
    Kernel *n = kernel_without_self_copies(&cx.perm, k, 0, 1);
    const char *bad = kernel_verify(n, &cx.scratch);
    ck_assert_msg(bad == NULL, "%s: %s", text, bad);
    Text t;
    text_init(&t, &cx.perm);
    kernel_print(n, &t);
    ck_assert_msg((n == k) == (copies[_i].left == NULL), "%s", t.at);
    ck_assert_msg(n == k || strstr(t.at, copies[_i].left) != NULL, "%s", t.at);
    ck_assert_msg(n == k || strstr(t.at, "seq") == NULL, "%s", t.at);
    ctx_free(&cx);
}
END_TEST

#define SUMS(dim, epilogue)                                                                        \
    "contract sums { b0: in f32[64] b1: in f32[64] b2: in f32[64] b3: out f32[64] b4: in i32[1] "  \
    "limit b4[0] + 1 mean 4 " dim " dim n j < 8 dim k k < 8 "                                      \
    "a { %1: f32 = load b0[i + 8*k] give %1 } b { %2: f32 = load b1[j + 8*k] give %2 } "           \
    "epilogue { %3: f32 = sum " epilogue " } }"
#define TO_END "dim m i < 8, zero from limit"

/* Of b2 and b3 in one memory: are sums of no terms left out? */
static const struct {
    const char *text;
    bool left_out;
} sums[] = {
    {SUMS(TO_END, "%4: f32 = load b2[8*i + j] %5: f32 = add %4, %3 store b3[8*i + j], %5"), true},
    {SUMS(TO_END, "%4: f32 = load b2[8*i + j] %5: f32 = add %3, %4 store b3[8*i + j], %5"), true},
    {SUMS(TO_END, "%4: f32 = load b2[8*j + i] %5: f32 = add %4, %3 store b3[8*i + j], %5"), false},
    {SUMS(TO_END, "%4: f32 = load b1[8*i + j] %5: f32 = add %4, %3 store b3[8*i + j], %5"), false},
    {SUMS(TO_END, "%4: f32 = load b2[8*i + j] %5: f32 = sub %4, %3 store b3[8*i + j], %5"), false},
    {SUMS(TO_END, "%4: f32 = add %3, %3 store b3[8*i + j], %4"), false},
    {SUMS(TO_END, "store b3[8*i + j], %3"), false},
};
enum { N_SUMS = sizeof sums / sizeof *sums };

START_TEST(nothing_is_not_added)
{
    Ctx cx;
    ctx_init(&cx);
    Kernel *k = kernel_of(&cx, sums[_i].text);
    Kernel *n = kernel_without_zero_sums(&cx.perm, k, 2, 3);
    const char *bad = kernel_verify(n, &cx.scratch);
    ck_assert_msg(bad == NULL, "%s: %s", sums[_i].text, bad);
    Text t;
    text_init(&t, &cx.perm);
    kernel_print(n, &t);
    ck_assert_msg((strstr(t.at, "dim m i < 8, limit\n") != NULL) == sums[_i].left_out, "%s", t.at);
    ck_assert_msg((n == k) != sums[_i].left_out, "%s", t.at);
    ctx_free(&cx);
}
END_TEST

Suite *suite_inplace(void)
{
    Suite *s = suite_create("inplace");
    TCase *t = tcase_create("all");
    tcase_add_loop_test(t, only_where_nothing_is_read_later, 0, N_KERNELS);
    tcase_add_loop_test(t, what_is_there_is_not_stored_again, 0, N_COPIES);
    tcase_add_loop_test(t, nothing_is_not_added, 0, N_SUMS);
    suite_add_tcase(s, t);
    return s;
}
