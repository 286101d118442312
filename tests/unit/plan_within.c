/* Plans of models within budgets, and what is proved of all of them: random steps, and of
 * few steps every order and every one that runs again. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/within.h"
#include "support/few.h"
#include "unit/plan_make.h"

/* A chain forward and back, as in a net: each step back reads what one step forward has
 * stored, one value or two, some of which may be written over. */
static Plan *chain_steps(Arena *a, uint64_t seed, int32_t half)
{
    Make m = {.arena = a, .base = 1024, .threads_max = 1, .seed = seed};
    int32_t forward[16], side[16], before = make_pinned(&m, "w", ROLE_PARAM, 64);
    for (int32_t i = 0; i < 2 * half; i++) {
        int32_t at = 2 * half - 1 - i;
        make_step(&m, make_name(&m, 's', i))->flops = 1000 * (1 + make_below(&m, 5));
        make_read(&m, before);
        int32_t read = before;
        before =
            make_value(&m, make_name(&m, 'v', i), ROLE_ACTIVATION, 64 * (1 + make_below(&m, 9)));
        make_write(&m, before);
        if (make_chance(&m, 50))
            make_inplace(&m, read, before);
        if (i >= half) {
            make_read(&m, forward[at]);
            if (side[at] >= 0)
                make_read(&m, side[at]);
            continue;
        }
        forward[i] = before;
        side[i] = make_chance(&m, 40) ? make_value(&m, "side", ROLE_ACTIVATION, 128) : -1;
        if (side[i] >= 0)
            make_write(&m, side[i]);
    }
    m.value.at[before].to_end = true;
    Plan *p = make_plan(&m);
    plan_liveness(p);
    plan_place(p);
    return p;
}

/* Steps with and without a price; some change pinned storage, the last ones may be guarded. */
static Plan *random_steps(Arena *a, uint64_t seed, int32_t n)
{
    Make m = {.arena = a, .base = 1024, .threads_max = 1, .seed = seed, .once = true};
    if (seed % 2 == 0)
        return chain_steps(a, seed, n < 16 ? n / 2 : 8);
    Plan *p = make_random_of(m, n);
    for (int32_t s = 0; s < n; s++) {
        p->step[s].flops = (double)(hash_mix(seed + (uint64_t)s) % 5 * 1000);
        p->step[s].guarded = seed % 3 == 0 && s > n - 3;
        for (int32_t i = 0; i < p->step[s].n_writes; i++)
            if (p->step[s].guarded)
                p->value[p->step[s].write[i]].to_end = false;
    }
    plan_liveness(p);
    plan_place(p);
    return p;
}

static int64_t extra(const Plan *p)
{
    return plan_cost(p, true) - plan_cost(p, false);
}

/* ---- random ones --------------------------------------------------------------------- */

static Within *opened(Arena *a, uint64_t seed, int32_t n, Plan **p)
{
    *p = random_steps(a, seed, n);
    return within_open(*p, EFFORT_DEFAULT, a);
}

/* The plan within the budget; checked, with a bound that is no more than its price. */
static int64_t price_within(Arena *a, uint64_t seed, int32_t n, int64_t budget)
{
    Plan *p;
    Within *w = opened(a, seed, n, &p);
    ck_assert_msg(within_plan(w, budget), "plan %d in %lld", (int)seed, (long long)budget);
    ck_assert_int_le(p->peak, budget);
    const char *wrong = plan_check(p, a);
    ck_assert_msg(wrong == NULL, "plan %d: %s", (int)seed, wrong);
    within_prove(w, p->peak < p->budget.once ? p->peak : budget);
    ck_assert_ptr_null(p->budget.impossible);
    ck_assert_int_le(p->budget.bound, extra(p));
    within_close(w);
    return extra(p);
}

START_TEST(budgets_are_met_or_refused)
{
    int saved = 0;
    for (uint64_t seed = 1; seed <= few_of(60, 4); seed++) {
        Arena a = {0};
        Plan *p;
        int32_t n = 5 + (int32_t)(seed % 40);
        Within *w = opened(&a, seed, n, &p);
        int64_t least = within_least(w), most = p->peak, before = INT64_MAX;
        ck_assert(least == most || !within_plan(w, least - 1));
        ck_assert_int_eq(p->peak, most);
        within_close(w);
        for (int i = 0; i <= 4; i++) {
            int64_t price = price_within(&a, seed, n, least + (most - least) * i / 4);
            ck_assert_int_le(price, before);
            before = price;
        }
        ck_assert_int_eq(before, 0);
        saved += least < most;
        arena_free(&a);
    }
    ck_assert_int_gt(saved, (int)few_of(20, 4));
}
END_TEST

/* ---- all of them ------------------------------------------------------------------------ */

enum { FEW = 6, MOST_RUNS = FEW + 3, MOST_PEAKS = 4096 };

typedef struct All {
    const Plan *p;
    Arena *arena;
    int32_t order[MOST_RUNS];
    int64_t peak[MOST_PEAKS], price[MOST_PEAKS]; /* of every plan there is */
    int n;
} All;

static bool has_run(const All *all, int n, int32_t step)
{
    for (int i = 0; i < n; i++)
        if (all->order[i] == step)
            return true;
    return false;
}

static bool in_list(const int32_t *list, int32_t n, int32_t value)
{
    for (int32_t i = 0; i < n; i++)
        if (list[i] == value)
            return true;
    return false;
}

/* By definition: what it reads is stored or was there, and has not been changed; what changes
 * pinned storage, and the update, run once; the update is last. */
static bool may_run(const All *all, int n, int32_t s)
{
    const PlanStep *step = &all->p->step[s];
    bool again = has_run(all, n, s);
    for (int32_t k = 0; k < all->p->n_steps; k++) {
        const PlanStep *other = &all->p->step[k];
        bool ran = has_run(all, n, k);
        if ((ran && other->guarded && !step->guarded) ||
            (!ran && !other->guarded && step->guarded) ||
            (!ran && other->guarded && step->guarded && k < s))
            return false;
        for (int32_t i = 0; i < step->n_reads; i++) {
            bool stores = in_list(other->write, other->n_writes, step->read[i]);
            bool pinned = all->p->value[step->read[i]].pinned;
            if (k != s && stores && ran == pinned)
                return false;
        }
        for (int32_t i = 0; i < step->n_writes; i++)
            if (all->p->value[step->write[i]].pinned && k != s && !ran &&
                in_list(other->read, other->n_reads, step->write[i]))
                return false;
    }
    for (int32_t i = 0; i < step->n_writes; i++)
        again = again && !all->p->value[step->write[i]].pinned;
    return !has_run(all, n, s) || (again && !step->guarded);
}

static void note_plan(All *all, int n)
{
    ArenaMark mark = arena_mark(all->arena);
    Plan q = *all->p;
    q.n_steps = n;
    q.step = NEW_ARRAY(all->arena, PlanStep, n);
    for (int i = 0; i < n; i++) {
        q.step[i] = all->p->step[all->order[i]];
        q.step[i].run = has_run(all, i, all->order[i]);
    }
    plan_liveness(&q);
    all->peak[all->n] = q.live_peak;
    all->price[all->n++] = extra(&q);
    arena_reset(all->arena, mark);
}

static void list_plans(All *all, int n)
{
    bool whole = true;
    for (int32_t s = 0; s < all->p->n_steps; s++)
        whole = whole && has_run(all, n, s);
    if (all->n == MOST_PEAKS)
        return;
    if (whole)
        note_plan(all, n);
    for (int32_t s = 0; n < MOST_RUNS && s < all->p->n_steps; s++)
        if (may_run(all, n, s)) {
            all->order[n] = s;
            list_plans(all, n + 1);
        }
}

/* The least price within the budget, of all there are; -1: there is none. */
static int64_t least_price(const All *all, int64_t budget)
{
    int64_t least = -1;
    for (int i = 0; i < all->n; i++)
        if (all->peak[i] <= budget && (least < 0 || all->price[i] < least))
            least = all->price[i];
    return least;
}

START_TEST(what_is_proved_holds_of_all_plans)
{
    int proved = 0, impossible = 0;
    for (uint64_t seed = 1; seed <= few_of(80, 4); seed++) {
        Arena a = {0};
        All *all = NEW(&a, All);
        all->p = random_steps(&a, seed, FEW);
        all->arena = &a;
        list_plans(all, 0);
        for (int i = 0; i < all->n && i < 12; i++) {
            for (int less = 0; less < 2; less++) {
                Plan *p;
                Within *w = opened(&a, seed, FEW, &p);
                int64_t budget = all->peak[(i * 37) % all->n] - less;
                int64_t price = least_price(all, budget);
                within_plan(w, budget);
                within_prove(w, budget);
                if (price >= 0)
                    ck_assert_msg(p->budget.impossible == NULL && p->budget.bound <= price,
                                  "plan %d, %lld bytes: %s, %lld", (int)seed, (long long)budget,
                                  p->budget.impossible, (long long)p->budget.bound);
                proved += p->budget.bound > 0;
                impossible += p->budget.impossible != NULL;
                within_close(w);
            }
        }
        arena_free(&a);
    }
    printf("plan: %d bounds above 0 and %d impossible budgets hold\n", proved, impossible);
    ck_assert_int_gt(proved, (int)few_of(50, 4));
    ck_assert_int_gt(impossible, (int)few_of(50, 4));
}
END_TEST

Suite *suite_plan_within(void);
Suite *suite_plan_within(void)
{
    Suite *s = suite_create("plan_within");
    TCase *c = tcase_create("plan_within");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, budgets_are_met_or_refused);
    tcase_add_test(c, what_is_proved_holds_of_all_plans);
    suite_add_tcase(s, c);
    return s;
}
