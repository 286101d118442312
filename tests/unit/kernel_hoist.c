/* Loads through an index that come before the loops of their row: which ones do, and that the
 * kernel leaves the same bits. */
#include <check.h>
#include <string.h>

#include "kernel/kernel.h"

/* b0: 8 rows of 20 elements, read; b1: as many, written; b2: 8 sums; b3: an index; b4: scratch. */
#define ROWS(body)                                                                                 \
    "loop t { b0: in f32[160] b1: out f32[160] b2: out f32[8] b3: in i32[8] b4: local f32[20] "    \
    "par i < 8 { " body " } }"
#define SUM                                                                                        \
    "%1: f32 = acc add red k < 20 { %2: f32 = load b0[20*i + k] into %1, %2 } %4: f32 = fold %1 "
#define PICK  "%5: f32 = load b0[20*i + %6] if 0 <= %6 < 20 else 0 "
#define STORE "%7: f32 = sub %5, %4 store b2[i], %7 "

enum { N_ROWS = 8, N_COLUMNS = 20, N_ELEMS = N_ROWS * N_COLUMNS };

static const struct {
    bool moves;
    const char *what, *text;
} cases[] = {
    {true, "an element of the row", ROWS(SUM "%6: i32 = load b3[i] " PICK STORE)},
    {true, "by an index that is computed",
     ROWS(SUM "%8: i32 = load b3[i] %9: i32 = const 1 %6: i32 = add %8, %9 " PICK STORE)},
    {true, "by an index that is there", ROWS("%6: i32 = load b3[i] " SUM PICK STORE)},
    {true, "by an index that is found through one",
     ROWS(SUM "%8: i32 = load b3[i] %6: i32 = load b3[%8] if 0 <= %8 < 8 else 0 " PICK STORE)},
    {false, "it is before all loops", ROWS("%6: i32 = load b3[i] " PICK SUM STORE)},
    {false, "without an index", ROWS(SUM "%5: f32 = load b0[20*i + 3] " STORE)},
    {false, "by an index that the loop finds", ROWS(SUM "%6: i32 = cast %4 " PICK STORE)},
    {false, "of what the kernel writes",
     ROWS("par m < 20 { %9: f32 = const 1 store b1[20*i + m], %9 } %6: i32 = load b3[i] "
          "%5: f32 = load b1[20*i + %6] if 0 <= %6 < 20 else 0 %4: f32 = const 2 " STORE)},
    {false, "of scratch",
     ROWS("par m < 20 { %9: f32 = const 1 store b4[m], %9 } %6: i32 = load b3[i] "
          "%5: f32 = load b4[%6] if 0 <= %6 < 20 else 0 %4: f32 = const 2 " STORE)},
    {false, "inside of another loop",
     ROWS(SUM "par n < 1 { %6: i32 = load b3[i] " PICK STORE " }")},
};
enum { N_CASES = sizeof cases / sizeof *cases };

typedef struct Bytes {
    float in[N_ELEMS], out[N_ELEMS], sum[N_ROWS], scratch[N_COLUMNS];
    int32_t index[N_ROWS];
} Bytes;

static void run(const Kernel *k, Bytes *m, Arena *scratch)
{
    const KMem mem[] = {
        {m->in, NULL}, {m->out, NULL}, {m->sum, NULL}, {m->index, NULL}, {m->scratch, NULL}};
    memset(m, 0, sizeof *m);
    for (int i = 0; i < N_ELEMS; i++)
        m->in[i] = (float)((i * 37) % 101) / 17 - 3;
    for (int i = 0; i < N_ROWS; i++)
        m->index[i] = i * 7 % 23 - 1; /* some are outside */
    kernel_run(k, K_EXACT, mem, scratch);
}

/* A load through an index, before the first loop in the row. */
static bool comes_first(const Kernel *k)
{
    int depth = 0;
    for (Val v = 1; v < (Val)k->inst.n; v++) {
        const KInst *i = &k->inst.at[v];
        depth += kop_class((KOp)i->op) == K_CLASS_LOOP && i->op != KI_END;
        if (depth > 1)
            return false;
        for (int t = 0; i->op == KI_LOAD && t < k->access.at[i->aux].at.n; t++)
            if (kop_class((KOp)k->inst.at[k->access.at[i->aux].at.t[t].v].op) != K_CLASS_LOOP)
                return true;
    }
    return false;
}

START_TEST(picked_elements_come_first)
{
    Ctx cx;
    Arena scratch = {0};
    Bytes before, after;
    ctx_init(&cx);
    const char *text = cases[_i].text;
    Kernel *k = kernel_read(&cx, &cx.perm, source_add(&cx, "test", text, strlen(text), false));
    diag_print(&cx, stdout);
    ck_assert_msg(k != NULL, "%s: can't be read", cases[_i].what);
    const char *wrong = kernel_verify(k, &scratch);
    ck_assert_msg(wrong == NULL, "%s: %s", cases[_i].what, wrong);
    Kernel *h = kernel_hoist(&cx.perm, k);
    wrong = kernel_verify(h, &scratch);
    ck_assert_msg(wrong == NULL, "%s, moved: %s", cases[_i].what, wrong);
    ck_assert_msg((h != k) == cases[_i].moves, "%s", cases[_i].what);
    ck_assert_msg(h == k || comes_first(h), "%s: it is not the first", cases[_i].what);
    run(k, &before, &scratch);
    run(h, &after, &scratch);
    ck_assert_msg(memcmp(&before, &after, sizeof before) == 0, "%s: other bits", cases[_i].what);
    arena_free(&scratch);
    ctx_free(&cx);
}
END_TEST

Suite *suite_kernel_hoist(void);
Suite *suite_kernel_hoist(void)
{
    Suite *s = suite_create("kernel_hoist");
    TCase *t = tcase_create("hoist");
    tcase_add_loop_test(t, picked_elements_come_first, 0, N_CASES);
    suite_add_tcase(s, t);
    return s;
}
