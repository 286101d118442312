/* What kernels touch slab by slab (target/cpu/slabs.h): which buffers do, by how much, and that
 * small values are put apart in a plan where there is room. */
#include <check.h>
#include <string.h>

#include "kernel/kernel.h"
#include "plan/plan.h"
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

/* ---- small values apart ----------------------------------------------------------------- */

enum { N_STEPS = 4, N_VALUES = 7, LAST = 6 };

/* A chain of large values, each read by the next step, and small ones beside them; the last step
 * needs more than any other, so that there is room before it. */
static void make_plan(Plan *p, Arena *a)
{
    static int32_t read[N_STEPS][2] = {{-1, -1}, {0, 1}, {2, 3}, {4, 5}};
    static int32_t write[N_STEPS][2] = {{0, 1}, {2, 3}, {4, 5}, {LAST, -1}};
    *p = (Plan){.arena = a, .n_values = N_VALUES, .n_steps = N_STEPS, .threads_max = 1};
    p->value = NEW_ARRAY(a, PlanValue, N_VALUES);
    p->step = NEW_ARRAY(a, PlanStep, N_STEPS);
    for (int i = 0; i < N_VALUES; i++)
        p->value[i] = (PlanValue){
            .name = "v", .role = ROLE_ACTIVATION, .bytes = i % 2 == 0 ? 1 << 20 : 64, .offset = -1};
    p->value[LAST].bytes = 4 << 20;
    for (int s = 0; s < N_STEPS; s++) {
        p->step[s] = (PlanStep){.label = "s", .group = -1};
        p->step[s].n_reads = s > 0 ? 2 : 0;
        p->step[s].n_writes = s < N_STEPS - 1 ? 2 : 1;
        p->step[s].read = read[s];
        p->step[s].write = write[s];
    }
}

static bool overlap(const Plan *p, int32_t x, int32_t y)
{
    const PlanRange *a = &p->range[x], *b = &p->range[y];
    return a->offset < b->offset + p->value[b->value].bytes &&
           b->offset < a->offset + p->value[a->value].bytes;
}

START_TEST(small_ones_are_apart)
{
    Arena a = {0}, scratch = {0};
    Plan p;
    make_plan(&p, &a);
    plan_liveness(&p);
    plan_place(&p);
    int64_t peak = p.peak;
    plan_part_small(&p);
    ck_assert_int_eq(p.peak, peak);
    const char *wrong = plan_check(&p, &scratch);
    ck_assert_msg(wrong == NULL, "%s", wrong);
    for (int32_t x = 0; x < p.n_ranges; x++)
        for (int32_t y = 0; y < x; y++)
            ck_assert_msg(p.value[p.range[x].value].bytes > 64 || !overlap(&p, x, y),
                          "%d lies where %d does", x, y);
    arena_free(&scratch);
    arena_free(&a);
}
END_TEST

Suite *suite_cpu_slabs(void);
Suite *suite_cpu_slabs(void)
{
    Suite *s = suite_create("cpu_slabs");
    TCase *t = tcase_create("slabs");
    tcase_add_loop_test(t, steps, 0, N_CASES);
    tcase_add_test(t, small_ones_are_apart);
    suite_add_tcase(s, t);
    return s;
}
