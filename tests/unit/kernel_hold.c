/* Values that a row's loops compute again and again are held in LOCAL buffers: which ones are, in
 * how many buffers, and that the kernel leaves the same bits. */
#include "kernel_rows.h"

enum { ROOM = 4096 };

#define SUM(n)                                                                                     \
    "%1: f32 = acc add red k < " n " { %2: f32 = load b0[20*i + k] %3: f32 = exp %2 into %1, %3 "  \
    "} %4: f32 = fold %1 "
#define ALL(n, stores)                                                                             \
    "par m < " n " { %21: f32 = load b0[20*i + m] %22: f32 = exp %21 %23: f32 = mul %22, %4 "      \
    "store b1[20*i + m], %23 " stores " }"
/* Three links: each has the exponentials of those before it. */
#define CHAIN                                                                                      \
    "%1: f32 = acc add red k < 20 { %2: f32 = load b0[20*i + k] %3: f32 = exp %2 into %1, %3 } "   \
    "%4: f32 = fold %1 %5: f32 = acc add "                                                         \
    "red l < 20 { %6: f32 = load b0[20*i + l] %7: f32 = exp %6 %8: f32 = mul %7, %4 "              \
    "%9: f32 = exp %8 into %5, %9 } %10: f32 = fold %5 %11: f32 = acc add "                        \
    "red m < 20 { %12: f32 = load b0[20*i + m] %13: f32 = exp %12 %14: f32 = mul %13, %4 "         \
    "%15: f32 = exp %14 %16: f32 = mul %15, %10 %17: f32 = exp %16 into %11, %17 } "               \
    "%18: f32 = fold %11 "                                                                         \
    "par n < 20 { %19: f32 = load b0[20*i + n] %20: f32 = exp %19 %21: f32 = mul %20, %4 "         \
    "%22: f32 = exp %21 %23: f32 = mul %22, %10 %24: f32 = exp %23 %25: f32 = mul %24, %18 "       \
    "store b1[20*i + n], %25 }"
/* A value of n multiplications. */
#define TIMES(a, b)            "%" #b ": f32 = mul %" #a ", %" #a " "
#define FIVE(a, b, c, d, e, f) TIMES(a, b) TIMES(b, c) TIMES(c, d) TIMES(d, e) TIMES(e, f)

static const struct {
    int fewer, locals; /* instructions that compute; buffers */
    int64_t room;
    const char *what, *text;
} cases[] = {
    {1, 1, ROOM, "a softmax", ROWS(SUM("20") ALL("20", ""))},
    {0, 0, 64, "no room", ROWS(SUM("20") ALL("20", ""))},
    {0, 0, ROOM, "a row that registers hold", ROWS(SUM("16") ALL("16", ""))},
    {0, 0, ROOM, "fewer steps", ROWS(SUM("20") ALL("19", ""))},
    {9, 2, ROOM, "a chain, whose links take turns with two buffers", ROWS(CHAIN)},
    {1, 1, ROOM, "beside values of all rows",
     ROWS_BUFFERS "%9: f32 = load b3[0] par i < 8 { " SUM("20")
         ALL("20", "") "store b2[i], %9 } }"},
    {0, 0, ROOM, "what is in memory may have changed",
     ROWS("par j < 20 { %7: f32 = load b3[20*i + j] store b1[20*i + j], %7 } "
          "%1: f32 = acc add red k < 20 { %2: f32 = load b1[20*i + k] %3: f32 = exp %2 "
          "into %1, %3 store b1[20*i + k], %3 } %4: f32 = fold %1 "
          "par m < 20 { %21: f32 = load b1[20*i + m] %22: f32 = exp %21 %23: f32 = mul %22, %4 "
          "store b1[20*i + m], %23 }")},
    {1, 1, ROOM, "what has been stored before, and is not again",
     ROWS("par j < 20 { %7: f32 = load b3[20*i + j] store b1[20*i + j], %7 } "
          "%1: f32 = acc add red k < 20 { %2: f32 = load b1[20*i + k] %3: f32 = exp %2 "
          "into %1, %3 } %4: f32 = fold %1 "
          "par m < 20 { %21: f32 = load b1[20*i + m] %22: f32 = exp %21 %23: f32 = mul %22, %4 "
          "store b1[20*i + m], %23 }")},
    {15, 1, ROOM, "long without functions",
     ROWS("%1: f32 = acc add red k < 20 { %2: f32 = load b0[20*i + k] " FIVE(2, 3, 4, 5, 6, 7)
              FIVE(7, 8, 9, 10, 11, 12)
                  FIVE(12, 13, 14, 15, 16,
                       17) "into %1, %17 } %18: f32 = fold %1 par l < 20 { %22: f32 = load b0[20*i "
                           "+ l] " FIVE(22, 23, 24, 25, 26, 27) FIVE(27, 28, 29, 30, 31, 32)
                               FIVE(32, 33, 34, 35, 36,
                                    37) "%38: f32 = mul %37, %18 store b1[20*i + l], %38 }")},
    {0, 0, ROOM, "short",
     ROWS("%1: f32 = acc add red k < 20 { %2: f32 = load b0[20*i + k] " FIVE(
         2, 3, 4, 5, 6, 7) "into %1, %7 } %8: f32 = fold %1 "
                           "par l < 20 { %12: f32 = load b0[20*i + l] " FIVE(
                               12, 13, 14, 15, 16, 17) "%18: f32 = mul %17, %8 "
                                                       "store b1[20*i + l], %18 }")},
    {0, 0, ROOM, "rows of a loop that is not of the grid",
     ROWS_BUFFERS "%9: f32 = const 1 store b2[0], %9 par i < 8 { " SUM("20") ALL("20", "") " } }"},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static int n_computed(const Kernel *k)
{
    int n = 0;
    for (Val v = 1; v < (Val)k->inst.n; v++)
        n += k->inst.at[v].op == KI_EXP || k->inst.at[v].op == KI_MUL;
    return n;
}

static int n_locals(const Kernel *k)
{
    int n = 0;
    for (int b = 0; b < k->buf.n; b++)
        n += k->buf.at[b].mode == K_LOCAL;
    return n;
}

static int64_t room;

static Kernel *hold(Arena *arena, Kernel *k)
{
    return kernel_hold(arena, k, room);
}

START_TEST(values_are_held)
{
    Ctx cx;
    Kernel *k;
    ctx_init(&cx);
    room = cases[_i].room;
    Kernel *h = change_rows(&cx, cases[_i].what, cases[_i].text, hold, &k);
    ck_assert_msg(n_computed(k) - n_computed(h) == cases[_i].fewer, "%s: %d of %d are left",
                  cases[_i].what, n_computed(h), n_computed(k));
    ck_assert_msg(n_locals(h) == cases[_i].locals, "%s: %d buffers", cases[_i].what, n_locals(h));
    ck_assert(cases[_i].fewer > 0 || h == k);
    ctx_free(&cx);
}
END_TEST

Suite *suite_kernel_hold(void)
{
    Suite *s = suite_create("kernel_hold");
    TCase *t = tcase_create("hold");
    tcase_add_loop_test(t, values_are_held, 0, N_CASES);
    suite_add_tcase(s, t);
    return s;
}
