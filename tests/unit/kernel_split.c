/* Loops and DIMs as two: which can be, and that the kernel leaves the same bits. */
#include <check.h>
#include <string.h>

#include "kernel/kernel.h"

enum { N_ELEMS = 12 * 64 };

static const struct {
    const char *what;
    int64_t extent, inner; /* the first loop or DIM of this extent */
    bool splits;
    const char *text;
} cases[] = {
    {"PAR", 64, 16, true,
     "loop t { b0: in f32[768] b1: out f32[768] par i < 12 { par j < 64 { "
     "%3: f32 = load b0[64*i + j] store b1[64*i + j], %3 } } }"},
    {"the outer loop", 12, 4, true,
     "loop t { b0: in f32[768] b1: out f32[768] par i < 12 { par j < 64 { "
     "%3: f32 = load b0[64*i + j] store b1[64*i + j], %3 } } }"},
    {"RED keeps lanes", 64, 32, true,
     "loop t { b0: in f32[768] b1: out f32[768] par i < 12 { %2: f32 = acc add red j < 64 { "
     "%4: f32 = load b0[64*i + j] into %2, %4 } %7: f32 = fold %2 store b1[i], %7 } }"},
    {"RED would change lanes", 64, 8, false,
     "loop t { b0: in f32[768] b1: out f32[768] par i < 12 { %2: f32 = acc add red j < 64 { "
     "%4: f32 = load b0[64*i + j] into %2, %4 } %7: f32 = fold %2 store b1[i], %7 } }"},
    {"SEQ around RED", 12, 3, true,
     "loop t { b0: in f32[768] b1: out f32[768] %1: f32 = acc add seq i < 12 { red j < 64 { "
     "%4: f32 = load b0[64*i + j] into %1, %4 } } %8: f32 = fold %1 store b1[0], %8 }"},
    {"SEQ backwards", 12, 3, false,
     "loop t { b0: in f32[768] b1: out f32[768] %1: f32 = acc add seq i < 12 down { red j < 64 { "
     "%4: f32 = load b0[64*i + j] into %1, %4 } } %8: f32 = fold %1 store b1[0], %8 }"},
    {"INDEX and bounds", 64, 16, true,
     "loop t { b0: in f32[768] b1: out f32[768] par i < 12 { par j < 64 { "
     "%3: i32 = index 3*i + j %4: f32 = load b0[64*i + j - 2] if 0 <= j - 2 < 60 else 7 "
     "%5: f32 = cast %3 %6: f32 = add %4, %5 store b1[64*i + j], %6 } } }"},
    {"no multiple", 64, 24, false,
     "loop t { b0: in f32[768] b1: out f32[768] par i < 12 { par j < 64 { "
     "%3: f32 = load b0[64*i + j] store b1[64*i + j], %3 } } }"},
    {"DIM of n", 16, 8, true,
     "contract t { b0: in f32[768] b1: out f32[768] dim m i < 48 dim n j < 16 dim k k < 12 "
     "a { %4: f32 = load b0[12*i + k] give %4 } b { %5: f32 = load b0[j + 16*k] give %5 } "
     "epilogue { %6: f32 = sum store b1[16*i + j], %6 } }"},
    {"DIM of k, in leaves", 12, 4, true,
     "contract t { b0: in f32[768] b1: out f32[768] leaf 5 dim m i < 48 dim n j < 16 dim k k < 12 "
     "a { %4: f32 = load b0[12*i + k] give %4 } b { %5: f32 = load b0[j + 16*k] give %5 } "
     "epilogue { %6: f32 = sum store b1[16*i + j], %6 } }"},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static void run(const Kernel *k, float *in, float *out, Arena *scratch)
{
    const KMem mem[] = {{in, NULL}, {out, NULL}};
    for (int i = 0; i < N_ELEMS; i++) {
        in[i] = (float)((i * 37) % 101) / 17 - 3;
        out[i] = -1;
    }
    kernel_run(k, K_EXACT, mem, scratch);
}

static Val find(const Kernel *k, int64_t extent)
{
    for (Val v = 1; v < (Val)k->inst.n; v++) {
        const KInst *i = &k->inst.at[v];
        bool index = i->op == KI_DIM || (kop_class((KOp)i->op) == K_CLASS_LOOP && i->op != KI_END);
        if (index && i->imm.i == extent)
            return v;
    }
    ck_abort_msg("no such loop");
}

START_TEST(halves_give_the_same)
{
    Ctx cx;
    Arena scratch = {0};
    ctx_init(&cx);
    const char *text = cases[_i].text;
    Kernel *k = kernel_read(&cx, &cx.perm, source_add(&cx, "test", text, strlen(text), false));
    diag_print(&cx, stdout);
    ck_assert_msg(k != NULL, "%s: can't be read", cases[_i].what);
    Kernel *s = kernel_split(&cx.perm, k, find(k, cases[_i].extent), cases[_i].inner);
    ck_assert_msg((s != NULL) == cases[_i].splits, "%s", cases[_i].what);
    if (s != NULL) {
        static float in[N_ELEMS], before[N_ELEMS], after[N_ELEMS];
        const char *wrong = kernel_verify(s, &scratch);
        ck_assert_msg(wrong == NULL, "%s: %s", cases[_i].what, wrong);
        run(k, in, before, &scratch);
        run(s, in, after, &scratch);
        ck_assert_msg(memcmp(before, after, sizeof before) == 0, "%s: other bits", cases[_i].what);
    }
    arena_free(&scratch);
    ctx_free(&cx);
}
END_TEST

Suite *suite_kernel_split(void);
Suite *suite_kernel_split(void)
{
    Suite *s = suite_create("kernel_split");
    TCase *t = tcase_create("split");
    tcase_add_loop_test(t, halves_give_the_same, 0, N_CASES);
    suite_add_tcase(s, t);
    return s;
}
