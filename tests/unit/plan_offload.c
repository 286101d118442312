/* Values that leave the block: which schedules of transfers the checker refuses, where the
 * planner puts them, and what that saves. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "plan/offload.h"
#include "plan/place.h"
#include "plan/within.h"
#include "support/few.h"
#include "unit/plan_make.h"

static Arena arena;

static void start(void)
{
    arena = (Arena){0};
}

static void stop(void)
{
    arena_free(&arena);
}

/* ---- written schedules -------------------------------------------------------------------- */

enum { PINNED, H, K, BYTES = 1000 };

static int32_t value_of(char name)
{
    return name == 'k' ? K : H;
}

/* s: store it, r: read it, g: the same guarded, u: write what lasts, o: out, i: in, w: wait. */
static void script_step(Make *m, char verb, char name)
{
    static const char verbs[] = "roiw";
    const char *kind = strchr(verbs, verb);
    PlanStep *s = make_step(m, arena_printf(&arena, "%c%c", verb, name));
    s->kind = kind == NULL ? STEP_RUN : (StepKind)(kind - verbs);
    s->guarded = verb == 'g';
    if (verb == 'u')
        make_write(m, PINNED);
    else if (verb == 's' || verb == 'i')
        make_write(m, value_of(name));
    else
        make_read(m, value_of(name));
}

/* "sh oh wh ..." with ranges and places. */
static Plan *script(const char *text)
{
    Make m = {.arena = &arena, .base = 1024, .threads_max = 1};
    make_pinned(&m, "last", ROLE_PARAM, 64);
    make_value(&m, "h", ROLE_ACTIVATION, BYTES);
    make_value(&m, "k", ROLE_ACTIVATION, BYTES);
    m.value.at[K].store = 1024;
    for (const char *p = text; *p != 0; p += p[2] == ' ' ? 3 : 2)
        script_step(&m, p[0], p[1]);
    Plan *p = make_plan(&m);
    p->store_bytes = 2048;
    plan_liveness(p);
    plan_place(p);
    return p;
}

static const struct Script {
    const char *steps, *wrong;
} scripts[] = {
    {"sh oh wh sk rk ih wh rh", NULL},
    {"sh oh rh wh sk ih rk wh rh", NULL},
    {"sh sk oh ok rk wh wk ik ih wk rk wh rh", NULL},
    {"sh oh wh ih wh rh ih wh rh", NULL},
    {"sh oh wh ih wh rh uh gh", NULL},
    {"sh ih wh rh", "reads `h` in, which is not out"},
    {"sh oh ih wh wh rh", "reads `h` in, which is not out"},
    {"sh oh wh ih rh wh", "reads `h`, which is not known to be in yet"},
    {"sh oh wh ih wh rh oh wh", "writes `h` out a second time"},
    {"sh wh rh", "of which no transfer has begun"},
    {"sh oh wh wh ih wh rh", "of which no transfer has begun"},
    {"sh oh wh ih wh wh rh", "of which no transfer has begun"},
    {"sh oh wh rh", "goes out, and never comes in"},
    {"sh oh rh", "nothing waits for the transfer of `h`"},
    {"sh oh wh ih", "nothing waits for the transfer of `h`"},
    {"sh oh sh wh ih wh rh", "which has been stored anew"},
    {"sh oh wh ih ih wh rh", "stores `h` while it comes in"},
    {"sh oh wh ih sh wh rh", "stores `h` while it comes in"},
    {"sh uh oh wh ih wh rh", "after what lasts has been changed"},
    {"sh oh wh uh ih wh rh", "after what lasts has been changed"},
    {"sh sk oh wh gk ih wh rh", "after what lasts has been changed"},
};

START_TEST(a_schedule_is_judged)
{
    const struct Script *s = &scripts[_i];
    const char *wrong = plan_check(script(s->steps), &arena);
    if (s->wrong == NULL)
        ck_assert_msg(wrong == NULL, "%s: %s", s->steps, wrong);
    else
        ck_assert_msg(wrong != NULL && strstr(wrong, s->wrong) != NULL, "%s: %s", s->steps, wrong);
}
END_TEST

/* ---- broken ones ------------------------------------------------------------------------- */

/* h is leaving in steps 1 to 3 and coming in 5 to 7; k is there in steps 2 to 6. */
static Plan *good_plan(void)
{
    return script("sh oh sk wh rk ih rk wh rh");
}

static PlanRange *range_of(Plan *p, int32_t value, int nth)
{
    for (int32_t i = 0; i < p->n_ranges; i++)
        if (p->range[i].value == value && nth-- == 0)
            return &p->range[i];
    return NULL;
}

static void over_what_leaves(Plan *p)
{
    range_of(p, K, 0)->offset = p->value[K].offset = range_of(p, H, 0)->offset;
}

static void over_what_comes(Plan *p)
{
    range_of(p, H, 1)->offset = p->value[H].offset = range_of(p, K, 0)->offset;
}

static void free_too_early(Plan *p)
{
    make_end_at(&arena, p, range_of(p, H, 0), 1);
}

static void gone_before_it_is_in(Plan *p)
{
    make_end_at(&arena, p, range_of(p, H, 1), 6);
}

static void no_place(Plan *p)
{
    p->store_bytes = BYTES - 1;
}

static void odd_place(Plan *p)
{
    p->value[H].store = 4;
}

static void below_the_store(Plan *p)
{
    p->value[H].store = -64;
}

static void huge_store(Plan *p)
{
    p->store_bytes = INT64_MAX;
}

static void two_values(Plan *p)
{
    p->step[1].read = make_append(&(Make){.arena = &arena}, p->step[1].read, 1, K);
    p->step[1].n_reads = 2;
}

static void no_value(Plan *p)
{
    p->step[3].n_reads = 0;
}

static void reads_and_writes(Plan *p)
{
    p->step[5].read = p->step[5].write;
    p->step[5].n_reads = 1;
}

static void pinned_value(Plan *p)
{
    p->step[1].read[0] = PINNED;
}

static void works(Plan *p)
{
    p->step[1].workspace = 64;
}

static void may_be_skipped(Plan *p)
{
    p->step[3].guarded = true;
}

static void no_kind(Plan *p)
{
    p->step[3].kind = STEP_WAIT + 1;
}

static const struct Broken {
    void (*how)(Plan *p);
    const char *wrong;
} broken[] = {
    {over_what_leaves, "over `h`, which is live until step 3"},
    {over_what_comes, "over `k`, which is live until step 6"},
    {free_too_early, "reads `h`, which is freed after step 1"},
    {gone_before_it_is_in, "reads `h`, which is freed after step 6"},
    {no_place, "`h` has no place in the store"},
    {odd_place, "`h` has no place in the store"},
    {below_the_store, "`h` has"},
    {huge_store, "are no sizes"},
    {two_values, "is no transfer of one value"},
    {no_value, "is no transfer of one value"},
    {reads_and_writes, "is no transfer of one value"},
    {pinned_value, "which the plan does not place"},
    {works, "and does something else"},
    {may_be_skipped, "and does something else"},
    {no_kind, "is no transfer of one value"},
};

START_TEST(a_broken_plan_is_refused)
{
    Plan *p = good_plan();
    const char *wrong = plan_check(p, &arena);
    ck_assert_msg(wrong == NULL, "%s", wrong);
    broken[_i].how(p);
    wrong = plan_check(p, &arena);
    ck_assert_msg(wrong != NULL && strstr(wrong, broken[_i].wrong) != NULL, "%d: %s, not %s", _i,
                  wrong, broken[_i].wrong);
}
END_TEST

START_TEST(places_in_the_store_are_apart)
{
    Plan *p = script("sh sk oh ok wh wk ih ik wh wk rh rk");
    ck_assert_ptr_null(plan_check(p, &arena));
    p->value[K].store = 960;
    const char *wrong = plan_check(p, &arena);
    ck_assert_msg(wrong != NULL && strstr(wrong, "`k` lies over `h` in the store") != NULL, "%s",
                  wrong);
}
END_TEST

/* ---- the planner's ------------------------------------------------------------------------- */

/* A net of `half` layers forward and back; some values are to leave. */
static Plan *chain(Arena *a, uint64_t seed, int32_t half, int percent)
{
    Make m = {.arena = a, .base = 1024, .threads_max = 1, .seed = seed};
    int32_t forward[32], before = make_pinned(&m, "w", ROLE_PARAM, 64);
    for (int32_t i = 0; i < 2 * half; i++) {
        PlanStep *s = make_step(&m, make_name(&m, 's', i));
        s->flops = 1e6 * (1 + make_below(&m, 5));
        s->reverse = i >= half;
        make_read(&m, before);
        if (i >= half && forward[2 * half - 1 - i] != before)
            make_read(&m, forward[2 * half - 1 - i]);
        before = make_value(&m, make_name(&m, 'v', i), ROLE_ACTIVATION,
                            (int64_t)64 * (100 + make_below(&m, 900)));
        make_write(&m, before);
        if (i < half)
            m.value.at[forward[i] = before].offload = make_chance(&m, percent);
    }
    m.value.at[before].to_end = true;
    make_step(&m, "update")->guarded = true;
    make_read(&m, before);
    make_write(&m, 0);
    m.step.at[2 * half].reverse = true;
    return make_plan(&m);
}

static void stay(Plan *p)
{
    plan_liveness(p);
    plan_place(p);
}

/* The contents of the block, by 64 bytes: a value, or nothing that is known. A transfer is as
 * late as it may be. */
static void replay(const Plan *p)
{
    int64_t blocks = p->peak / 64 + 1;
    int32_t *at = NEW_ARRAY(p->arena, int32_t, blocks), range = 0;
    int32_t *current = NEW_ARRAY(p->arena, int32_t, p->n_values);
    bool *stored = NEW_ARRAY(p->arena, bool, p->n_values);
    StepKind *begun = NEW_ARRAY(p->arena, StepKind, p->n_values);
    for (int32_t s = 0; s < p->n_steps; s++) {
        const PlanStep *step = &p->step[s];
        for (; range < p->n_ranges && p->range[range].from <= s; range++)
            current[p->range[range].value] = range;
        for (int32_t i = 0; i < step->n_reads; i++) {
            int32_t v = step->read[i];
            if (p->value[v].pinned)
                continue;
            int64_t from = p->range[current[v]].offset / 64;
            bool arrives = step->kind == STEP_WAIT && begun[v] == STEP_IN;
            for (int64_t b = from; b < from + p->value[v].bytes / 64; b++) {
                ck_assert_int_eq(at[b], arrives ? -v : v);
                at[b] = v;
            }
            stored[v] |= step->kind == STEP_WAIT && begun[v] == STEP_OUT;
        }
        for (int32_t i = 0; i < step->n_writes; i++) {
            int32_t v = step->write[i];
            if (p->value[v].pinned)
                continue;
            ck_assert(step->kind != STEP_IN || stored[v]);
            int64_t from = p->range[current[v]].offset / 64;
            for (int64_t b = from; b < from + p->value[v].bytes / 64; b++)
                at[b] = step->kind == STEP_IN ? -v : v;
        }
        if (step->kind == STEP_OUT || step->kind == STEP_IN)
            begun[step->kind == STEP_OUT ? step->read[0] : step->write[0]] = step->kind;
    }
}

START_TEST(transfers_are_placed)
{
    int64_t before = 0, after = 0, tight = 0;
    int gone = 0;
    for (uint64_t seed = 1; seed <= few_of(120, 4); seed++) {
        Arena a = {0};
        CostModel slow = cost_time;
        slow.store = seed % 3 == 0 ? 0.01 : seed % 3 == 1 ? 1 : 100;
        int32_t half = 2 + (int32_t)(seed % 20);
        Plan *whole = chain(&a, seed, half, 60), *p = chain(&a, seed, half, 60);
        Plan *least = chain(&a, seed, half, 60);
        whole->cost = p->cost = least->cost = &slow;
        stay(whole);
        if (offload_asked(p)) {
            ck_assert(offload_asked(least));
            offload_place(p, 0, PLACE_WORK);
            offload_place(least, -1, PLACE_WORK);
            const char *wrong = plan_check(p, &a);
            ck_assert_msg(wrong == NULL, "seed %d: %s", (int)seed, wrong);
            wrong = plan_check(least, &a);
            ck_assert_msg(wrong == NULL, "seed %d: %s", (int)seed, wrong);
            replay(p);
            replay(least);
            ck_assert_int_le(least->live_peak, p->live_peak);
            ck_assert(offload_transfers(p, NULL).waited <=
                      offload_transfers(least, NULL).waited + 1e-3);
            gone++;
            before += whole->peak;
            after += p->peak;
            tight += least->peak;
        }
        arena_free(&a);
    }
    printf("offloaded: %d plans of %lld bytes; %lld where transfers are hidden, at least %lld\n",
           gone, (long long)before, (long long)after, (long long)tight);
    ck_assert_int_gt(gone, (int)few_of(90, 4));
    ck_assert_int_lt(after, before - before / 10);
}
END_TEST

START_TEST(nothing_leaves_that_is_not_needed_later)
{
    Plan *p = chain(&arena, 3, 6, 0);
    int32_t n = p->n_steps;
    ck_assert(!offload_asked(p));
    ck_assert_int_eq(p->n_steps, n);
    stay(p);
    Transfers t = offload_transfers(p, NULL);
    ck_assert(t.out_bytes == 0 && t.in_bytes == 0 && t.busy == 0 && t.waited == 0);
    ck_assert_ptr_null(offload_text(p, &arena));
}
END_TEST

/* A machine on which the figures can be told by hand. */
START_TEST(time_is_that_of_a_queue)
{
    static const CostModel unit = {.flops = 1, .store = 1};
    Plan *p = script("sh oh sk wh rk ih rk wh rh");
    p->cost = &unit;
    p->step[2].flops = 2000; /* sk */
    p->step[6].flops = 500;
    Transfers t = offload_transfers(p, NULL);
    double each = BYTES + TRANSFER_NS;
    ck_assert_int_eq(t.out_bytes, BYTES);
    ck_assert_int_eq(t.in_bytes, BYTES);
    ck_assert_double_eq_tol(t.busy, 2 * each, 1e-6);
    ck_assert_double_eq_tol(t.waited, each - 2000 + each - 500, 1e-6);
    ck_assert_int_eq(plan_cost(p, true) - plan_cost(p, false), (int64_t)t.waited);
}
END_TEST

START_TEST(a_budget_may_offload)
{
    int found = 0, cheaper = 0, lower = 0;
    for (uint64_t seed = 1; seed <= few_of(40, 4); seed++) {
        int64_t least[2], cost[2] = {0, 0}, budget = 0;
        bool fits[2];
        for (int may = 1; may >= 0; may--) {
            Arena a = {0};
            Plan *p = chain(&a, seed, 6 + (int32_t)(seed % 10), seed % 2 == 0 ? 0 : 20);
            p->plain = p->step;
            p->n_plain = p->n_steps;
            p->may_offload = may;
            if (offload_asked(p))
                offload_place(p, 0, PLACE_WORK);
            else
                stay(p);
            Within *w = within_open(p, EFFORT_DEFAULT, &a);
            least[may] = within_least(w);
            const char *first = plan_check(p, &a); /* which stays, where there is no need */
            ck_assert_msg(first == NULL, "seed %d: %s", (int)seed, first);
            budget = budget > 0 ? budget : (least[may] + p->peak) / 2;
            fits[may] = within_plan(w, budget);
            if (fits[may]) {
                const char *wrong = plan_check(p, &a);
                ck_assert_msg(wrong == NULL, "seed %d: %s", (int)seed, wrong);
                ck_assert_int_le(p->peak, budget);
                replay(p);
                cost[may] = plan_cost(p, true);
            }
            within_close(w);
            arena_free(&a);
        }
        ck_assert(fits[1] || !fits[0]);
        ck_assert_int_le(least[1], least[0]);
        found += fits[1];
        lower += least[1] < least[0];
        if (fits[0]) {
            ck_assert_int_le(cost[1], cost[0]);
            cheaper += cost[1] < cost[0];
        }
    }
    printf("budgets that may offload: %d met, %d cheaper, %d with a smaller least\n", found,
           cheaper, lower);
    ck_assert_int_gt(found, (int)few_of(30, 4));
    ck_assert_int_gt(cheaper + lower, (int)few_of(20, 4));
}
END_TEST

Suite *suite_plan_offload(void);
Suite *suite_plan_offload(void)
{
    Suite *s = suite_create("plan_offload");
    TCase *c = tcase_create("plan_offload");
    tcase_add_checked_fixture(c, start, stop);
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, a_schedule_is_judged, 0, (int)(sizeof scripts / sizeof *scripts));
    tcase_add_loop_test(c, a_broken_plan_is_refused, 0, (int)(sizeof broken / sizeof *broken));
    tcase_add_test(c, places_in_the_store_are_apart);
    tcase_add_test(c, transfers_are_placed);
    tcase_add_test(c, nothing_leaves_that_is_not_needed_later);
    tcase_add_test(c, time_is_that_of_a_queue);
    tcase_add_test(c, a_budget_may_offload);
    suite_add_tcase(s, c);
    return s;
}
