/* Broken kernels: each is refused, with the message that tells what is wrong. */
#include <check.h>
#include <stdio.h>
#include <string.h>
#include "kernel/kernel.h"

#define IN_OUT     "b0: in f32[8] b1: out f32[8] b2: in i32[8] "
#define LOOP(body) "loop t { " IN_OUT body " }"
#define CON(head, a, b, e)                                                                         \
    "contract t { b0: in f32[64] b1: out f32[64] " head " a { " a " } b { " b " } epilogue { " e   \
    " } }"
#define MNK "dim m i < 8 dim n j < 8 dim k k < 8"
#define A   "%1: f32 = load b0[8*i + k] give %1"
#define B   "%2: f32 = load b0[8*k + j] give %2"
/* All sums are less than 1: says buffer b2, declared so. */
#define ALL(b2, e, all)                                                                            \
    "contract t { b0: in f32[64] b1: out f32[64] " b2 " " MNK " a { " A " } b { " B                \
    " } epilogue { " E " %4: f32 = const 1 %5: bool = lt %3, %4 " e " } " all " }"
#define E "%3: f32 = sum store b1[8*i + j], %3"

static const struct {
    const char *text, *message;
} broken[] = {
    /* scopes */
    {LOOP("par i < 8 { %1: f32 = load b0[i] } store b1[0], %1"), "%2 is not in scope"},
    {LOOP("par i < 8 { %1: f32 = load b0[i] } par j < 8 { store b1[j], %1 }"), "not in scope"},
    {LOOP("par i < 8 { %1: f32 = load b0[i] } %2: f32 = load b0[i]"), "index %1 is closed"},
    {LOOP("par i < 8 { %1: i32 = load b2[i] } %2: f32 = load b0[%1]"), "%2 is not in scope"},
    /* what an operand is */
    {LOOP("par i < 8 { %1: f32 = neg i store b1[i], %1 }"), "%1 is no value"},
    {LOOP("%1: f32 = acc add %2: f32 = neg %1"), "%1 is no value"},
    {LOOP("%1: f32 = const 1 into %1, %1"), "no accumulator"},
    {LOOP("%1: f32 = const 1 %2: f32 = get %1"), "no variable"},
    {LOOP("%1: i32 = const 1 %2: i32 = var %1 %3: f32 = load b0[%2]"), "is no value"},
    /* types */
    {LOOP("%1: f32 = const 1 %2: i32 = const 1 %3: f32 = add %1, %2"), "f32 and i32"},
    {LOOP("%1: f32 = const 1 %2: f64 = add %1, %1"), "gives f32, not f64"},
    {LOOP("%1: f32 = const 1 %2: f32 = and %1, %1"), "not on f32"},
    {LOOP("%1: i32 = const 1 %2: i32 = sqrt %1"), "not on i32"},
    {LOOP("%1: u8 = const 1 %2: u8 = shl %1, %1"), "not on u8"},
    {LOOP("%1: i64 = const 1 %2: i64 = mulhi %1, %1"), "not on i64"},
    {LOOP("%1: bool = const 1 %2: bool = add %1, %1"), "not on bool"},
    {LOOP("%1: f32 = const 1 %2: f32 = lt %1, %1"), "gives bool, not f32"},
    {LOOP("%1: f32 = const 1 %2: f32 = select %1, %1, %1"), "the condition is f32"},
    {LOOP("%1: f32 = const 1 %2: i64 = bitcast %1"), "from f32 to i64"},
    {LOOP("%1: f64 = index 3"), "not on f64"},
    {LOOP("%1: i32 = const 1 %2: i32 = random %1, %1, %1"), "not on i32"},
    {LOOP("%1: f16 = acc add"), "not on f16"},
    {LOOP("%1: f32 = acc and"), "not on f32"},
    {LOOP("%1: f32 = acc sub"), "no accumulator has"},
    {LOOP("%1: f32 = acc add %2: i32 = const 1 into %1, %2"), "f32 and i32"},
    {LOOP("%1: f32 = const 1 %2: f32 = var %1 %3: i32 = const 1 set %2, %3"), "f32 and i32"},
    {LOOP("%1: i32 = const 3000000000"), "does not fit i32"},
    {LOOP("%1: u8 = const -1"), "does not fit u8"},
    {LOOP("%1: bool = const 2"), "does not fit bool"},
    /* accumulators and variables */
    {LOOP("%1: f32 = acc add par i < 8 { %2: f32 = load b0[i] into %1, %2 }"), "the par loop %2"},
    {LOOP("%1: f32 = acc add %2: f32 = fold %1 into %1, %2"), "fed after its fold"},
    {LOOP("%1: f32 = acc add seq i < 8 { %2: f32 = load b0[i] into %1, %2 %3: f32 = fold %1 }"),
     "feeds accumulator %1"},
    {LOOP("%1: f32 = const 0 %2: f32 = var %1 par i < 8 { set %2, %1 }"), "is no seq"},
    {LOOP("%1: f32 = const 0 %2: f32 = var %1 red i < 8 { set %2, %1 }"), "is no seq"},
    /* memory */
    {LOOP("par i < 9 { %1: f32 = load b0[i] }"), "elements 0 to 8 of b0, which has 8"},
    {LOOP("par i < 8 { %1: f32 = load b0[i - 1] }"), "elements -1 to 6 of b0"},
    {LOOP("par i < 9 { par j < 3 { %1: f32 = load b0[i + j - 1] if 0 <= i + j < 9 else 0 } }"),
     "allow element -1 of b0, which has 8"},
    {LOOP("par i < 100 { %1: f32 = load b0[i] if 0 <= i < 9 else 0 }"), "allow element 8 of b0"},
    {LOOP("par i < 8 { %1: i32 = load b0[i] }"), "i32 from or to b0, which is f32"},
    {LOOP("%1: f32 = const 0 store b0[0], %1"), "b0 is an input"},
    {LOOP("%1: f32 = load b1[0]"), "b1 is read before anything is stored"},
    {"loop t { b0: local f32[8] b1: out f32[1] %1: f32 = load b0[3] store b1[0], %1 }",
     "b0 is read before"},
    {LOOP("par i < 8 { %1: i32 = load b2[i] if 0 <= i < 3 else 0.5 }"), "0.5 is no i32"},
    {LOOP("%1: f32 = const 0 %2: f32 = load b0[%1]"), "neither a loop"},
    {LOOP("par i < 8 { %1: f32 = load b0[i] store b1[0], %1 }"), "par loop %1 store to one"},
    {LOOP("par i < 8 { %1: i32 = load b2[i] %2: f32 = load b0[i] store b1[%1], %2 }"),
     "par loop %1 store to one"},
    /* limits */
    {LOOP("limit b0[0] + 1 mean 4 par i < 8, limit { }"), "no element of an integer input"},
    {LOOP("limit b2[8] + 1 mean 4 par i < 8, limit { }"), "no element of an integer input"},
    {LOOP("limit b2[0] + 1 mean 0 par i < 8, limit { }"), "no element of an integer input"},
    {LOOP("par i < 8, limit { }"), "cannot have this limit"},
    {LOOP("limit b2[0] + 1 mean 4 seq i < 8, limit { }"), "cannot have this limit"},
    {LOOP("limit b2[0] + 1 mean 4 par i < 8, zero from limit { }"), "cannot have this limit"},
    {CON("b2: in i32[1] limit b2[0] + 1 mean 4 dim m i < 8 dim n j < 8 dim k k < 8, zero from "
         "limit",
         A, B, E),
     "cannot have this limit"},
    {CON("b2: in i32[1] limit b2[0] + 1 mean 4 dim m i < 8, limit dim m l < 2 dim n j < 8 dim k "
         "k < 8",
         A, B, E),
     "cannot have this limit"},
    /* contractions */
    {LOOP("%1: f32 = sum"), "only in a contraction"},
    {CON(MNK, A, B, "%3: f32 = sum %4: f32 = acc add"), "not in a contraction"},
    {CON(MNK, "par l < 8 { } " A, B, E), "not in a contraction"},
    {CON(MNK, "%1: f32 = load b0[8*i + j] give %1", B, E), "is not seen in section a"},
    {CON(MNK, A, "%2: f32 = load b0[8*i + j] give %2", E), "is not seen in section b"},
    {CON(MNK, A, B, "%3: f32 = sum store b1[8*i + k], %3"), "is not seen in the epilogue"},
    {CON(MNK, A, "%2: f32 = neg %1 give %2", E), "%4 is not in scope"},
    {CON(MNK, A, "%2: f32 = load b0[8*k + j] give %1", E), "section b gives %4, which it does"},
    {CON(MNK, A, "%2: f64 = const 1 give %2", E), "section b gives f64, but the sum is f32"},
    {CON(MNK, A " ", B, "%3: i32 = sum"), "the sum is i32"},
    {CON(MNK, A, B, "%3: f32 = sum store b1[i], %3"), "dim %2 store to one element"},
    {CON(MNK, A, B, E " %4: f32 = sum"), "only at the start"},
    {CON(MNK " %9: i32 = index i", A, B, E), "index before section a"},
    {"contract t { b0: local f32[8] " MNK " a { " A " } b { " B " } epilogue { %3: f32 = sum } }",
     "has no local buffers"},
    {CON(MNK, "%1: f32 = const 1 store b1[0], %1 give %1", B, E), "only in the epilogue"},
    {ALL("b2: in bool[1]", "", "all b2, %5"), "b2 of `all` is no output of bool"},
    {ALL("b2: out u8[1]", "", "all b2, %5"), "b2 of `all` is no output of bool"},
    {ALL("b2: out bool[0]", "", "all b2, %5"), "b2 of `all` is no output of bool"},
    {ALL("b2: out bool[64]", "store b2[8*i + j], %5", "all b2, %5"), "is touched otherwise, too"},
    {ALL("b2: out bool[1]", "", "all b2, %4"), "no bool of the epilogue"},
    {ALL("b2: out bool[1]", "", "all b2, %1"), "no bool of the epilogue"},
    {ALL("b2: out bool[1]", "", "all b2, %2"), "no bool of the epilogue"},
};
enum { N_BROKEN = sizeof broken / sizeof broken[0] };

static Kernel *read_text(Ctx *cx, const char *text)
{
    Kernel *k = kernel_read(cx, &cx->perm, source_add(cx, "test", text, strlen(text), false));
    if (k == NULL)
        diag_print(cx, stdout);
    ck_assert_msg(k != NULL, "%s", text);
    return k;
}

START_TEST(broken_kernels)
{
    Ctx cx;
    ctx_init(&cx);
    const char *text = broken[_i].text, *message = broken[_i].message;
    const char *bad = kernel_verify(read_text(&cx, text), &cx.scratch);
    ck_assert_msg(bad != NULL, "accepted: %s", text);
    ck_assert_msg(strstr(bad, message) != NULL, "`%s` instead of `%s`: %s", bad, message, text);
    ctx_free(&cx);
}
END_TEST

/* ---- what no text can say ---------------------------------------------------------- */

static Kernel *sound(Ctx *cx)
{
    return read_text(cx, LOOP("par i < 8 { %1: f32 = load b0[i] %2: f32 = neg %1 store b1[i], %2 "
                              "}"));
}

static void open_end(Kernel *k)
{
    k->inst.n--;
}

static void stray_end(Kernel *k)
{
    vec_push(k->arena, &k->inst, ((KInst){.op = KI_END, .aux = 1}));
}

static void later_operand(Kernel *k)
{
    k->inst.at[3].a = 4;
}

static void no_operand(Kernel *k)
{
    k->inst.at[3].a = 0;
}

static void no_buffer(Kernel *k)
{
    k->access.at[0].buf = 7;
}

static void no_access(Kernel *k)
{
    k->inst.at[2].aux = 9;
}

static void zero_coefficient(Kernel *k)
{
    k->access.at[0].at.t[0].coef = 0;
}

static void terms_out_of_order(Kernel *k)
{
    KAff *x = &k->access.at[0].at;
    x->t[x->n++] = x->t[0];
}

static void negative_extent(Kernel *k)
{
    k->inst.at[1].imm.i = -1;
}

static void unknown_instruction(Kernel *k)
{
    k->inst.at[3].op = 200;
}

static void unrounded_constant(Kernel *k)
{
    k->inst.at[3] = (KInst){.op = KI_CONST, .dtype = F32, .imm.f = 0.1};
}

static void far_elements(Kernel *k)
{
    k->access.at[0].at.t[0].coef = INT64_MAX;
}

static const struct {
    void (*breaks)(Kernel *);
    const char *message;
} damage[] = {
    {open_end, "the loop is not closed"},
    {stray_end, "not the innermost one"},
    {later_operand, "is not made before it"},
    {no_operand, "is not made before it"},
    {no_buffer, "no buffer b7"},
    {no_access, "no such access"},
    {zero_coefficient, "coefficient 0"},
    {terms_out_of_order, "not in order"},
    {negative_extent, "negative"},
    {unknown_instruction, "no such instruction"},
    {unrounded_constant, "not rounded to f32"},
    {far_elements, "beyond 64 bits"},
};
enum { N_DAMAGE = sizeof damage / sizeof damage[0] };

START_TEST(damaged_kernels)
{
    Ctx cx;
    ctx_init(&cx);
    Kernel *k = sound(&cx);
    const char *bad = kernel_verify(k, &cx.scratch);
    ck_assert_msg(bad == NULL, "%s", bad);
    damage[_i].breaks(k);
    bad = kernel_verify(k, &cx.scratch);
    ck_assert_msg(bad != NULL && strstr(bad, damage[_i].message) != NULL, "`%s` instead of `%s`",
                  bad, damage[_i].message);
    ctx_free(&cx);
}
END_TEST

/* Sound kernels that lie near the border. */
static const char *const fine[] = {
    LOOP("par i < 9 { par j < 3 { %1: f32 = load b0[i + j - 1] if 0 <= i + j - 1 < 8 else 0 } }"),
    LOOP("par i < 0 { %1: f32 = load b0[i + 1000] }"),
    LOOP("par i < 1 { %1: f32 = load b0[i] store b1[3], %1 }"),
    LOOP("seq i < 8 { %1: i32 = load b2[i] %2: f32 = load b0[i] store b1[%1], %2 }"),
    LOOP("par i < 8 { %1: f32 = acc add red j < 8 { %2: f32 = load b0[j] into %1, %2 } %3: f32 = "
         "fold %1 %4: f32 = fold %1 store b1[i], %4 }"),
    LOOP("par i < 100 { %1: f32 = load b0[0] store b1[i] if 5 <= i < 6, %1 }"),
    "loop t { b0: local f32[4] b1: out f32[12] par i < 3 { red j < 4 { %1: f32 = const 1 store "
    "b0[j], %1 } par j < 4 { %2: f32 = load b0[j] store b1[4*i + j], %2 } } }",
    CON("%9: f32 = const 2 " MNK, A, "give %9", E),
    CON("dim m i < 8 dim n j < 8 dim n k < 1", "%1: f32 = const 1 give %1",
        "%2: f32 = load b0[j] give %2", E),
};
enum { N_FINE = sizeof fine / sizeof fine[0] };

START_TEST(sound_kernels)
{
    Ctx cx;
    ctx_init(&cx);
    const char *bad = kernel_verify(read_text(&cx, fine[_i]), &cx.scratch);
    ck_assert_msg(bad == NULL, "%s: %s", bad, fine[_i]);
    ctx_free(&cx);
}
END_TEST

Suite *suite_kernel_verify(void)
{
    Suite *s = suite_create("kernel_verify");
    TCase *t = tcase_create("all");
    tcase_add_loop_test(t, broken_kernels, 0, N_BROKEN);
    tcase_add_loop_test(t, damaged_kernels, 0, N_DAMAGE);
    tcase_add_loop_test(t, sound_kernels, 0, N_FINE);
    suite_add_tcase(s, t);
    return s;
}
