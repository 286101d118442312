/* What kernels touch slab by slab (target/cpu/slabs.h): which buffers do, by how much, and that
 * small values are put apart in a plan where there is room. */
#include <check.h>
#include <string.h>

#include "kernel/kernel.h"
#include "target/cpu/slabs.h"

enum { N_BUFS = 3 };

/* Of loops the first index is the outermost one. */
static const struct {
    const char *what, *text;
    int64_t step[N_BUFS];
} cases[] = {
    {"rows, their sums, and what all of them read",
     "loop t { b0: in f32[160] b1: in f32[20] b2: out f32[8] par i < 8 { %1: f32 = acc add "
     "red k < 20 { %2: f32 = load b0[20*i + k] %3: f32 = load b1[k] %4: f32 = mul %2, %3 "
     "into %1, %4 } %5: f32 = fold %1 store b2[i], %5 } }",
     {20, 0, 1}},
    {"columns",
     "loop t { b0: in f32[160] b1: in f32[8] b2: out f32[8] par i < 8 { %1: f32 = acc add "
     "red k < 20 { %2: f32 = load b0[i + 8*k] into %1, %2 } %3: f32 = load b1[i] "
     "%4: f32 = fold %1 %5: f32 = add %3, %4 store b2[i], %5 } }",
     {0, 1, 1}},
    {"neighbours, but for a bound those of other rows, too",
     "loop t { b0: in f32[160] b1: in f32[160] b2: out f32[160] par i < 8 { par k < 20 { "
     "%1: f32 = load b0[20*i + k - 1] if 0 <= k - 1 < 20 else 0 "
     "%2: f32 = load b1[20*i + k - 1] if 0 <= 20*i + k - 1 < 160 else 0 "
     "%3: f32 = add %1, %2 store b2[20*i + k], %3 } } }",
     {20, 0, 20}},
    {"a window with halves of lines",
     "loop t { b0: in f32[96] b1: in f32[1] b2: out f32[96] par i < 4 { par y < 4 { par x < 6 { "
     "par d < 3 { %1: f32 = load b0[24*i + 6*y + 6*d + x - 6] if 0 <= y + d - 1 < 4 else 0 "
     "%2: f32 = load b1[0] %3: f32 = add %1, %2 store b2[24*i + 6*y + x] if 1 <= d < 2, %3 "
     "} } } } }",
     {24, 0, 24}},
    {"two places of one buffer",
     "loop t { b0: in f32[160] b1: in f32[160] b2: out f32[8] par i < 8 { "
     "%1: f32 = load b0[20*i] %2: f32 = load b0[20*i + 19] %3: f32 = load b1[20*i] "
     "%4: f32 = load b1[3] %5: f32 = add %1, %2 %6: f32 = add %3, %4 %7: f32 = add %5, %6 "
     "store b2[i], %7 } }",
     {20, 0, 1}},
    {"by an index that is read, and backwards",
     "loop t { b0: in f32[8] b1: in i32[8] b2: out f32[8] par i < 8 { %1: i32 = load b1[i] "
     "%2: f32 = load b0[%1] if 0 <= %1 < 8 else 0 store b2[7 - i], %2 } }",
     {0, 1, 0}},
    {"there is more behind the last slab",
     "loop t { b0: in f32[168] b1: in f32[160] b2: out f32[8] par i < 8 { "
     "%1: f32 = load b0[20*i + 3] %2: f32 = load b1[20*i + 20] if 0 <= i < 7 else 0 "
     "%3: f32 = add %1, %2 store b2[i], %3 } }",
     {0, 0, 1}},
};
enum { N_CASES = sizeof cases / sizeof cases[0] };

START_TEST(steps)
{
    Ctx cx;
    ctx_init(&cx);
    const char *text = cases[_i].text;
    Kernel *k = kernel_read(&cx, &cx.perm, source_add(&cx, "test", text, strlen(text), false));
    diag_print(&cx, stdout);
    ck_assert_msg(k != NULL, "%s: can't be read", cases[_i].what);
    Arena scratch = {0};
    const char *wrong = kernel_verify(k, &scratch);
    ck_assert_msg(wrong == NULL, "%s: %s", cases[_i].what, wrong);
    Val v = 1;
    while (k->inst.at[v].op != KI_PAR)
        v++;
    const Slabs *s = slabs_of(k, v, 1, 1, &cx.perm);
    ck_assert_int_eq(s->extent, k->inst.at[v].imm.i);
    for (int i = 0; i < N_BUFS; i++)
        ck_assert_msg(s->step[i] == cases[_i].step[i], "%s: b%d moves by %lld", cases[_i].what, i,
                      (long long)s->step[i]);
    arena_free(&scratch);
    ctx_free(&cx);
}
END_TEST

Suite *suite_cpu_slabs(void);
Suite *suite_cpu_slabs(void)
{
    Suite *s = suite_create("cpu_slabs");
    TCase *t = tcase_create("slabs");
    tcase_add_loop_test(t, steps, 0, N_CASES);
    suite_add_tcase(s, t);
    return s;
}
