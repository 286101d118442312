/* Schedules of deep nets that come from rules: what they keep and run again, node for node, and
 * that more bytes never cost more time. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/decode.h"
#include "plan/polish.h"
#include "plan/recompute.h"
#include "plan/segments.h"
#include "support/few.h"

/* ---- a net ---------------------------------------------------------------------------- */

static const char *name_of(Arena *a, char kind, int32_t i)
{
    return arena_printf(a, "%c%d", kind, i);
}

/* f0 .. f(n-1) one after the other; then b(n-1) .. b0, of which b(i) reads b(i+1), what f(i) reads
 * and its output. Every node is pure, costs 100 forward and 200 back, and has `bytes`. */
static Problem *chain(Arena *a, int32_t n, int64_t bytes)
{
    ProblemMake m = {.arena = a};
    for (int32_t v = 0; v < 2 * n; v++) {
        int32_t i = v < n ? v : 2 * n - 1 - v;
        problem_node(&m, (ProblemNode){.name = name_of(a, v < n ? 'f' : 'b', i),
                                       .cost = v < n ? 100 : 200,
                                       .bytes = v < n ? bytes : 1,
                                       .pure = true,
                                       .keep = v == 2 * n - 1});
        if (v > 0)
            problem_input(&m, v - 1);
        if (v >= n && i < v - 1)
            problem_input(&m, i);
        if (v >= n && i > 0)
            problem_input(&m, i - 1);
    }
    return problem_end(&m, 0);
}

/* Layers of a small border, a wide value, and a narrow one that is dear: forward and back. */
static Problem *layers(Arena *a, int32_t n)
{
    ProblemMake m = {.arena = a};
    enum { EACH = 3 };
    static const int64_t bytes[EACH] = {50, 200, 20}, cost[EACH] = {30, 20, 90};
    int32_t half = EACH * n;
    for (int32_t v = 0; v < 2 * half; v++) {
        int32_t i = v < half ? v : 2 * half - 1 - v;
        problem_node(&m, (ProblemNode){.name = name_of(a, v < half ? 'f' : 'b', i),
                                       .cost = (v < half ? 1 : 2) * cost[i % EACH],
                                       .bytes = v < half ? bytes[i % EACH] : 30,
                                       .pure = true,
                                       .keep = v == 2 * half - 1});
        if (v > 0)
            problem_input(&m, v - 1);
        if (v >= half && i < v - 1)
            problem_input(&m, i);
    }
    return problem_end(&m, 64);
}

static int32_t most_runs(const Problem *p, const Sequence *s, Arena *a)
{
    int32_t most = 0, *runs = NEW_ARRAY(a, int32_t, p->n);
    for (int32_t t = 0; t < s->n; t++)
        most = ++runs[s->node[t]] > most ? runs[s->node[t]] : most;
    return most;
}

static const char *order_of(const Problem *p, const Sequence *s, Arena *a)
{
    Text t;
    text_init(&t, a);
    for (int32_t i = 0; i < s->n; i++)
        text_add(&t, "%s%s", i > 0 ? " " : "", p->node[s->node[i]].name);
    text_char(&t, 0);
    return t.at;
}

/* ---- decode ----------------------------------------------------------------------------- */

/* Of eight nodes f1 and f5 are kept as cuts, and f3 lies between. */
START_TEST(parts_run_again_one_after_the_other)
{
    Arena a = {0};
    Problem *p = chain(&a, 8, 10);
    bool kept[16] = {[3] = true}, crossing[16] = {[1] = true, [3] = true, [5] = true};
    int32_t part[16] = {0, 0, 1, 1, 2, 2, 3, 3, -1, -1, -1, -1, -1, -1, -1, -1};
    KeepSet keep = {.moment = 7, .kept = kept};
    DecodeParts parts = {.part = part, .crossing = crossing};
    Sequence *s = decode_parts(p, sequence_base(p, &a)->node, &keep, &parts, &a);
    ck_assert_ptr_nonnull(s);
    ck_assert_str_eq(order_of(p, s, &a), "f0 f1 f2 f3 f4 f5 f6 f7 "
                                         "f4 f5 f6 b7 b6 f4 b5 b4 "
                                         "f0 f1 f2 b3 b2 f0 b1 b0");
    arena_free(&a);
}
END_TEST

/* With one part for all, that is decode(); with more, no node is missing and less is there. */
START_TEST(parts_take_less_than_one)
{
    for (int32_t n = 16; n <= 64; n *= 2) {
        Arena a = {0};
        Problem *p = chain(&a, n, 10);
        int32_t *part = NEW_ARRAY(&a, int32_t, p->n), *one = NEW_ARRAY(&a, int32_t, p->n);
        bool *kept = NEW_ARRAY(&a, bool, p->n), *crossing = NEW_ARRAY(&a, bool, p->n);
        for (int32_t v = 0; v < p->n; v++) {
            part[v] = v < n ? v / 4 : -1;
            one[v] = v < n ? 0 : -1;
            kept[v] = v < n && v % 16 == 15;
            crossing[v] = v < n && v % 4 == 3;
        }
        KeepSet keep = {.moment = n - 1, .kept = kept};
        const int32_t *order = sequence_base(p, &a)->node;
        Sequence *plain = decode(p, order, &keep, RUN_ONCE_MORE, &a);
        Sequence *same = decode_parts(p, order, &keep, &(DecodeParts){one, crossing}, &a);
        Sequence *nested = decode_parts(p, order, &keep, &(DecodeParts){part, crossing}, &a);
        ck_assert_int_eq(same->n, plain->n);
        ck_assert(memcmp(same->node, plain->node, (size_t)plain->n * sizeof *plain->node) == 0);
        ck_assert_int_eq(most_runs(p, plain, &a), 2);
        ck_assert_int_eq(most_runs(p, nested, &a), 3);
        ck_assert_int_lt(nested->max_live, plain->max_live);
        arena_free(&a);
    }
}
END_TEST

/* ---- polish: fill ----------------------------------------------------------------------- */

static Sequence *filled(const Problem *p, const Sequence *from, int64_t budget, Arena *a)
{
    PolishAim aim = {.budget = budget, .enough = 0, .fill = true};
    return polish(p, from, aim, a);
}

/* Everything runs again; with room for all nothing does, and with room for one value the one that
 * is dearest by its bytes does not. */
START_TEST(fill_keeps_what_is_dear)
{
    Arena a = {0};
    Problem *p = layers(&a, 4);
    const Sequence *base = sequence_base(p, &a);
    bool *kept = NEW_ARRAY(&a, bool, p->n);
    for (int32_t v = 2; v < 12; v += 6)
        kept[v] = true;
    KeepSet keep = {.moment = 11, .kept = kept};
    Sequence *s = decode(p, base->node, &keep, RUN_ONCE_MORE, &a);
    ck_assert_int_gt(s->cost, p->cost_base);
    ck_assert_int_eq(filled(p, s, base->max_live, &a)->cost, p->cost_base);
    ck_assert_int_eq(filled(p, s, s->max_live, &a)->cost <= s->cost, 1);
    Sequence *one = filled(p, s, s->max_live + 20, &a);
    ck_assert_int_le(one->max_live, s->max_live + 20);
    ck_assert_int_le(one->cost, s->cost - 90);
    arena_free(&a);
}
END_TEST

START_TEST(fill_never_costs_more)
{
    Arena a = {0};
    Problem *p = layers(&a, 24);
    const Sequence *base = sequence_base(p, &a);
    Segmented g = segmented(p, base, &a);
    ck_assert_int_gt(g.n, 5);
    int64_t saved = 0;
    for (int32_t i = 0; i < g.n; i++)
        for (int64_t more = 0; more <= 400; more += 40) {
            Sequence *s = filled(p, g.at[i], g.at[i]->max_live + more, &a);
            ck_assert_int_le(s->max_live, g.at[i]->max_live + more);
            ck_assert_int_le(s->cost, g.at[i]->cost);
            saved += g.at[i]->cost - s->cost;
        }
    ck_assert_int_gt(saved, 0);
    arena_free(&a);
}
END_TEST

/* ---- segments --------------------------------------------------------------------------- */

/* n layers of b bytes at the border and w in all within one extra run: some schedule takes at most
 * sqrt(2 n b w), and what is at work in a layer; equal segments would take 2 sqrt(n b w). */
START_TEST(segments_grow_as_a_root)
{
    for (int32_t n = 32; n <= 512; n *= 4) {
        Arena a = {0};
        Problem *p = layers(&a, n);
        const Sequence *base = sequence_base(p, &a);
        Segmented g = segmented(p, base, &a);
        int64_t least = INT64_MAX;
        for (int32_t i = 0; i < g.n; i++)
            if (most_runs(p, g.at[i], &a) == 2 && g.at[i]->max_live < least)
                least = g.at[i]->max_live;
        int64_t above = least - p->pinned - 400;
        ck_assert_msg(above * above <= INT64_C(2) * n * 20 * 270, "%d layers: %lld", n,
                      (long long)least);
        arena_free(&a);
    }
}
END_TEST

/* None is dearer than another that takes as much, and each is what running its nodes gives. */
START_TEST(segments_are_not_dominated)
{
    Arena a = {0};
    Problem *p = layers(&a, 100);
    const Sequence *base = sequence_base(p, &a);
    Segmented g = segmented(p, base, &a);
    for (int32_t i = 0; i < g.n; i++) {
        const Sequence *s = g.at[i], *again = sequence_of(p, s->node, s->n, &a);
        ck_assert_int_eq(again->max_live, s->max_live);
        ck_assert_int_eq(again->cost, s->cost);
        ck_assert_int_lt(s->max_live, base->max_live);
        for (int32_t j = 0; j < g.n; j++)
            ck_assert(i == j || g.at[j]->max_live > s->max_live || g.at[j]->cost > s->cost);
        Sequence *within = segmented_within(&g, s->max_live);
        ck_assert_ptr_eq(within, s);
    }
    ck_assert_ptr_null(segmented_within(&g, p->pinned));
    arena_free(&a);
}
END_TEST

/* ---- budgets ---------------------------------------------------------------------------- */

static void place(void *of, Sequence *s)
{
    sequence_place(((Problem *const *)of)[0], s, (PlaceWork){100000, 0}, ((Arena **)of)[1]);
}

/* Each budget with a planner of its own, as in a build. */
START_TEST(more_bytes_never_cost_more)
{
    static const int32_t depths[] = {20, 60, 210}; /* searched; by rule; fewer rungs */
    const int points = (int)few_of(_i < 2 ? 32 : 16, 4);
    Arena a = {0};
    Problem *p = layers(&a, depths[_i]);
    int64_t most = sequence_base(p, &a)->max_live, before = INT64_MAX, least;
    void *of[2] = {p, &a};
    least = planner_least(planner_open(p, (PlanJudge){of, place}, EFFORT_DEFAULT, &a))->arena;
    int cheaper = 0;
    for (int i = 0; i < points; i++) {
        int64_t extra = (most - least) * i / (points - 1), part = (most - least) * i / points / 16;
        int64_t budget = least + (i < points / 2 ? part : extra);
        Planner *g = planner_open(p, (PlanJudge){of, place}, EFFORT_DEFAULT, &a);
        Sequence *s = planner_ladder(g, budget);
        ck_assert_ptr_nonnull(s);
        ck_assert_int_le(s->arena, budget);
        ck_assert_msg(s->cost <= before, "%lld bytes: %lld after %lld", (long long)budget,
                      (long long)s->cost, (long long)before);
        cheaper += s->cost < before;
        before = s->cost;
    }
    ck_assert_int_gt(cheaper, points / 4);
    ck_assert_int_eq(before, p->cost_base);
    arena_free(&a);
}
END_TEST

Suite *suite_plan_deep(void)
{
    Suite *s = suite_create("plan_deep");
    TCase *t = tcase_create("rules");
    tcase_add_test(t, parts_run_again_one_after_the_other);
    tcase_add_test(t, parts_take_less_than_one);
    tcase_add_test(t, fill_keeps_what_is_dear);
    tcase_add_test(t, fill_never_costs_more);
    tcase_add_test(t, segments_grow_as_a_root);
    tcase_add_test(t, segments_are_not_dominated);
    suite_add_tcase(s, t);
    t = tcase_create("budgets");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, more_bytes_never_cost_more, 0, 3);
    suite_add_tcase(s, t);
    return s;
}
