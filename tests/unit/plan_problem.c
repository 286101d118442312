/* Bare planning problems: reading, bounds and plans beside the optimum of small ones,
 * found by exhaustion; random ones at many budgets, all checked. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/check_sequence.h"
#include "plan/recompute.h"
#include "plan/segments.h"
#include "support/few.h"

/* A sanitizer build looks at a few of them. */
static uint64_t problems(uint64_t normal)
{
    return few_of(normal, 5);
}

/* tests/full.sh plans 17,000 of them, each within six budgets, in shards from SEED. */
static uint64_t first_seed(void)
{
    const char *s = getenv("SEED");
    return getenv("GRADC_FULL") != NULL && s != NULL ? strtoull(s, NULL, 10) * 100000 : 0;
}

static uint64_t random_problems(void)
{
    const char *n = getenv("PLANNED_PROBLEMS");
    return n != NULL ? strtoull(n, NULL, 10) : problems(25);
}

/* ---- random problems --------------------------------------------------------------- */

typedef struct Draw {
    uint64_t seed;
} Draw;

static int64_t draw(Draw *d, int64_t n)
{
    d->seed = hash_mix(d->seed + 0x9e3779b97f4a7c15u);
    return (int64_t)(d->seed >> 33) % n;
}

/* A DAG of n nodes; most of them pure, some with scratch, some kept until the end. */
static Problem *random_problem(Arena *a, uint64_t seed, int32_t n, int64_t large)
{
    ProblemMake m = {.arena = a};
    Draw d = {seed};
    int64_t wide = 1 + draw(&d, 3);
    for (int32_t v = 0; v < n; v++) {
        ProblemNode node = {.name = arena_printf(a, "n%d", v), .pure = draw(&d, 12) > 0};
        node.cost = draw(&d, large);
        node.bytes = draw(&d, large);
        node.scratch = draw(&d, 5) == 0 ? draw(&d, large) : 0;
        node.keep = draw(&d, 10) == 0;
        problem_node(&m, node);
        for (int64_t i = v > 0 ? draw(&d, wide + 1) : 0; i > 0; i--) {
            int64_t near = v < 5 ? v : 5;
            bool far = draw(&d, 4) == 0;
            problem_input(&m, (int32_t)(far ? draw(&d, v) : v - 1 - draw(&d, near)));
        }
    }
    return problem_end(&m, draw(&d, 2) * 17);
}

/* ---- the optimum, by exhaustion ------------------------------------------------------ */

enum { SMALL = 7, STATES = 1 << (2 * SMALL), COSTS = 12 /* of a node: less than that */ };
#define NO_WAY INT64_MAX

typedef struct Reached {
    int state;
    int32_t next; /* of the same cost; -1: none */
} Reached;

typedef struct Exact {
    const Problem *p;
    int64_t budget;
    int64_t best[STATES]; /* by what is there, what has run */
    bool settled[STATES];
    int32_t of_cost[COSTS]; /* the last reached of a cost, modulo COSTS; -1: none */
    int32_t n;
    Reached reached[STATES * SMALL + 1];
} Exact;

static int64_t bytes_there(const Exact *x, int there)
{
    int64_t bytes = x->p->pinned;
    for (int32_t v = 0; v < x->p->n; v++)
        bytes += (there >> v & 1) * x->p->node[v].bytes;
    return bytes;
}

static void reach(Exact *x, int state, int64_t cost)
{
    if (cost >= x->best[state])
        return;
    x->best[state] = cost;
    x->reached[x->n] = (Reached){state, x->of_cost[cost % COSTS]};
    x->of_cost[cost % COSTS] = x->n++;
}

/* The next state of least cost that is not settled; -1: all that can be reached are. */
static int nearest_state(Exact *x, int64_t *cost)
{
    for (int empty = 0; empty < COSTS; empty++, ++*cost)
        for (int32_t *at = &x->of_cost[*cost % COSTS]; *at >= 0;) {
            int state = x->reached[*at].state;
            *at = x->reached[*at].next;
            if (!x->settled[state])
                return state;
        }
    return -1;
}

static void leave(Exact *x, int state)
{
    int there = state & ((1 << SMALL) - 1), ran = state >> SMALL;
    const Problem *p = x->p;
    for (int32_t v = 0; v < p->n; v++) {
        bool inputs = true;
        for (int32_t i = p->input_at[v]; i < p->input_at[v + 1]; i++)
            inputs = inputs && (there >> p->input[i] & 1);
        int with = there | 1 << v;
        if (there >> v & 1)
            reach(x, ran << SMALL | (there & ~(1 << v)), x->best[state]);
        else if (inputs && (p->node[v].pure || !(ran >> v & 1)) &&
                 bytes_there(x, with) + p->node[v].scratch <= x->budget)
            reach(x, (ran | 1 << v) << SMALL | with, x->best[state] + p->node[v].cost);
    }
}

/* Shortest path over all states; NO_WAY if no schedule keeps to the budget.
 * source: R. Dial, Algorithm 360: Shortest-path forest with topological ordering, CACM 12 (1969) */
static int64_t optimum(Exact *x, const Problem *p, int64_t budget)
{
    x->p = p;
    x->budget = budget;
    for (int s = 0; s < STATES; s++) {
        x->best[s] = NO_WAY;
        x->settled[s] = false;
    }
    for (int c = 0; c < COSTS; c++)
        x->of_cost[c] = -1;
    x->n = 0;
    reach(x, 0, 0);
    for (int64_t cost = 0;;) {
        int at = nearest_state(x, &cost);
        if (at < 0)
            return NO_WAY;
        bool done = at >> SMALL == (1 << p->n) - 1;
        for (int32_t v = 0; v < p->n; v++)
            done = done && (!p->node[v].keep || (at >> v & 1));
        if (done)
            return x->best[at];
        x->settled[at] = true;
        leave(x, at);
    }
}

/* ---- against the checker ----------------------------------------------------------------- */

static PlanClaim claim_of(const Problem *p, const Recompute *r)
{
    const Sequence *s = r->plan;
    return (PlanClaim){.budget = r->budget,
                       .peak = s->max_live,
                       .arena = s->arena,
                       .max_live = s->max_live,
                       .cost_base = p->cost_base,
                       .cost_plan = s->cost,
                       .bound = r->bound,
                       .n = s->n,
                       .node = s->node,
                       .retain = s->retain,
                       .offset = s->offset,
                       .scratch_offset = s->scratch_offset,
                       .proof = &r->proof};
}

static Recompute *plan_of(const Problem *p, int64_t budget, Arena *a, const char *what)
{
    Recompute *r =
        recompute(p, (BudgetAsked){.kind = BUDGET_BYTES, .bytes = budget}, EFFORT_DEFAULT, a);
    if (r->outcome == PLAN_FOUND) {
        PlanClaim c = claim_of(p, r);
        const char *wrong = check_sequence(p, &c, a);
        ck_assert_msg(wrong == NULL, "%s: %s", what, wrong);
    } else {
        ck_assert_int_gt(r->least, budget);
    }
    return r;
}

START_TEST(small_problems_against_the_optimum)
{
    static Exact x;
    int plans = 0, best = 0, refused = 0, proved = 0, tight = 0, missed = 0;
    for (uint64_t seed = 1; seed <= problems(250); seed++) {
        Arena a = {0};
        const Problem *p = random_problem(&a, seed, 4 + (int32_t)(seed % 4), COSTS);
        const Sequence *base = sequence_base(p, &a);
        for (int64_t budget = base->max_live - 1; budget > base->max_live / 2; budget -= 3) {
            const char *what = arena_printf(&a, "seed %d, budget %d", (int)seed, (int)budget);
            Recompute *r = plan_of(p, budget, &a, what);
            int64_t exact = optimum(&x, p, budget);
            if (exact == NO_WAY) {
                ck_assert_msg(r->outcome != PLAN_FOUND, "%s: no plan, but one is found", what);
                refused++;
                proved += r->outcome == PLAN_IMPOSSIBLE;
                continue;
            }
            ck_assert_msg(r->outcome != PLAN_IMPOSSIBLE, "%s: there is a plan", what);
            ck_assert_msg(r->bound <= exact - p->cost_base, "%s: bound %d above %d", what,
                          (int)r->bound, (int)(exact - p->cost_base));
            tight += r->bound == exact - p->cost_base;
            plans++;
            missed += r->outcome == PLAN_NOT_FOUND;
            if (r->outcome != PLAN_FOUND)
                continue;
            ck_assert_msg(r->plan->cost >= exact, "%s: below the optimum", what);
            best += r->plan->cost == exact;
        }
        arena_free(&a);
    }
    printf("plan: %d small problems: %d optimal plans, %d not found, %d tight bounds; %d of %d "
           "impossible ones proved\n",
           plans, best, missed, tight, proved, refused);
}
END_TEST

/* ---- random ones --------------------------------------------------------------------------- */

START_TEST(random_problems_at_many_budgets)
{
    int plans = 0, refused = 0;
    uint64_t first = first_seed();
    for (uint64_t seed = first + 1; seed <= first + random_problems(); seed++) {
        Arena a = {0};
        const Problem *p = random_problem(&a, seed + 1000, 8 + (int32_t)(seed % 40), 1000);
        const Sequence *base = sequence_base(p, &a);
        for (int i = 9; i >= 4; i--) {
            int64_t budget = base->max_live * i / 10;
            Recompute *r = plan_of(p, budget, &a, arena_printf(&a, "seed %d", (int)seed));
            plans += r->outcome == PLAN_FOUND;
            refused += r->outcome != PLAN_FOUND;
        }
        arena_free(&a);
    }
    printf("plan: %d plans of random problems, %d refused\n", plans, refused);
    ck_assert_int_gt(plans, getenv("GRADC_SHORT") != NULL ? 5 : 50);
}
END_TEST

START_TEST(more_memory_never_costs_more)
{
    for (uint64_t seed = 1; seed <= problems(6); seed++) {
        Arena a = {0};
        const Problem *p = random_problem(&a, seed + 5000, 20 + 2 * (int32_t)seed, 100);
        int64_t cost = INT64_MAX, full = sequence_base(p, &a)->max_live;
        for (int i = 1; i <= 20; i++) {
            Recompute *r = plan_of(p, full * i / 20, &a, "a rung");
            if (r->outcome != PLAN_FOUND) {
                ck_assert_msg(cost == INT64_MAX, "seed %d: less memory was enough", (int)seed);
                continue;
            }
            ck_assert_msg(r->plan->cost <= cost, "seed %d: rung %d costs more", (int)seed, i);
            cost = r->plan->cost;
        }
        arena_free(&a);
    }
}
END_TEST

/* Layers of `wide` nodes; each reads three of the layer before. */
static Problem *layers(Arena *a, uint64_t seed, int32_t n, int32_t wide)
{
    ProblemMake m = {.arena = a};
    Draw d = {seed};
    for (int32_t v = 0; v < n; v++) {
        ProblemNode node = {.name = arena_printf(a, "n%d", v), .pure = true};
        node.cost = 1 + draw(&d, 1000);
        node.bytes = 1 + draw(&d, 2000);
        problem_node(&m, node);
        for (int32_t i = 0; i < 3 && v >= wide; i++)
            problem_input(&m, v / wide * wide - 1 - (int32_t)draw(&d, wide));
    }
    return problem_end(&m, 0);
}

/* Buffers of all sizes that come and go: holes decide whether a schedule fits. */
START_TEST(layers_are_reordered_and_fit_without_much_room)
{
    for (uint64_t seed = 1; seed <= problems(5); seed++) {
        Arena a = {0};
        const Problem *p = layers(&a, seed, 120, 12);
        const Sequence *given = sequence_base(p, &a);
        Recompute *r = plan_of(p, given->max_live / 100 * 80, &a, "layers");
        ck_assert_int_eq(r->outcome, PLAN_FOUND);
        ck_assert_int_le(r->plan->cost, p->cost_base + p->cost_base / 50);
        arena_free(&a);
    }
}
END_TEST

/* ... and nothing else of what is below, nor is anything above refused. */
static void least_is_the_border(const Problem *p, Arena *a, const char *what)
{
    static const int64_t off[] = {1, 17, 60, 400};
    Recompute *r = recompute(p, (BudgetAsked){.kind = BUDGET_LEAST}, EFFORT_DEFAULT, a);
    ck_assert_int_eq(r->outcome, PLAN_FOUND);
    ck_assert_int_le(r->plan->arena, r->budget);
    ck_assert_int_eq(plan_of(p, r->budget, a, what)->outcome, PLAN_FOUND);
    for (size_t i = 0; i < sizeof off / sizeof *off; i++) {
        ck_assert_int_eq(plan_of(p, r->budget + off[i], a, what)->outcome, PLAN_FOUND);
        Recompute *less = plan_of(p, r->budget - off[i], a, what);
        ck_assert_msg(less->outcome != PLAN_FOUND, "%s: %d bytes below the least", what,
                      (int)off[i]);
        ck_assert_int_eq(less->least, r->budget);
    }
}

START_TEST(the_least_budget_works_and_less_does_not)
{
    for (uint64_t seed = 1; seed <= problems(10); seed++) {
        Arena a = {0};
        const char *what = arena_printf(&a, "seed %d", (int)seed);
        least_is_the_border(random_problem(&a, seed + 7000, 16, 600), &a, what);
        if (seed <= 2)
            least_is_the_border(layers(&a, seed, (int32_t)few_of(60, 4), 10), &a, what);
        arena_free(&a);
    }
}
END_TEST

/* ---- reading ----------------------------------------------------------------------------------
 */

typedef struct Malformed {
    const char *text, *says;
} Malformed;

#define NODE(rest)                                                                                 \
    "{\"nodes\": [{\"name\": \"a\", \"cost\": 1, \"bytes\": 2, \"inputs\": []}, " rest
#define SECOND(rest) NODE("{\"name\": \"b\", " rest "}]}")

static const Malformed malformed[] = {
    {"", "1:0: unexpected token near end of file"},
    {"{\"nodes\": [", "1:11: ']' expected near end of file"},
    {"{\"nodes\": [\n{\"name\": }]}", "2:10: unexpected token near '}'"},
    {"{\"nodes\": []} x", "1:15: end of file expected near 'x'"},
    {"{\"nodes\": [], \"nodes\": []}", "duplicate object key"},
    {"{\"nodes\": [{\"name\": \"a\", \"cost\": 99999999999999999999}]}", "too big integer"},
    {"7", "the problem is an integer, but has to be an object"},
    {"[]", "the problem is an array, but has to be an object"},
    {"{}", "the problem has no `nodes`"},
    {"{\"nodes\": 1}", "`nodes` is an integer, but has to be an array"},
    {"{\"nodes\": []}", "`nodes` is empty: there is nothing to plan"},
    {"{\"nodes\": [], \"pinned\": 1}", "the problem has the unknown key `pinned`"},
    {"{\"nodes\": [], \"pinned_bytes\": -1}", "the problem: `pinned_bytes` is negative: -1"},
    {"{\"nodes\": [], \"pinned_bytes\": 9000000000000000000}", "the sizes overflow"},
    {NODE("3]}"), "node 1 is an integer, but has to be an object"},
    {NODE("{\"cost\": 1}]}"), "node 1 has no `name`"},
    {NODE("{\"name\": 4}]}"), "node 1: `name` is an integer, but has to be a string"},
    {NODE("{\"name\": \"a\", \"cost\": 1}]}"), "node 1 has the name `a`, as node 0 has"},
    {SECOND("\"bytes\": 1, \"inputs\": []"), "node 1 (`b`) has no `cost`"},
    {SECOND("\"cost\": 1, \"inputs\": []"), "node 1 (`b`) has no `bytes`"},
    {SECOND("\"cost\": 1, \"bytes\": 1"), "node 1 (`b`) has no `inputs`"},
    {SECOND("\"cost\": -5, \"bytes\": 1, \"inputs\": []"), "node 1 (`b`): `cost` is negative: -5"},
    {SECOND("\"cost\": 1, \"bytes\": -6, \"inputs\": []"), "node 1 (`b`): `bytes` is negative: -6"},
    {SECOND("\"cost\": 1, \"bytes\": 1, \"scratch\": -1, \"inputs\": []"), "`scratch` is negative"},
    {SECOND("\"cost\": 1.5, \"bytes\": 1, \"inputs\": []"),
     "node 1 (`b`): `cost` is a real, but has to be an integer"},
    {SECOND("\"cost\": \"1\", \"bytes\": 1, \"inputs\": []"), "`cost` is a string"},
    {SECOND("\"cost\": 1, \"bytes\": null, \"inputs\": []"), "`bytes` is null"},
    {SECOND("\"cost\": 1, \"bytes\": 1, \"inputs\": 0"), "`inputs` is an integer"},
    {SECOND("\"cost\": 1, \"bytes\": 1, \"inputs\": [\"a\"]"), "an input is a string"},
    {SECOND("\"cost\": 1, \"bytes\": 1, \"inputs\": [1]"), "node 1 (`b`) reads itself"},
    {SECOND("\"cost\": 1, \"bytes\": 1, \"inputs\": [7]"), "reads node 7, which is missing"},
    {SECOND("\"cost\": 1, \"bytes\": 1, \"inputs\": [-1]"), "reads node -1, which is missing"},
    {"{\"nodes\": [{\"name\": \"a\", \"cost\": 1, \"bytes\": 1, \"inputs\": [1]}, "
     "{\"name\": \"b\", \"cost\": 1, \"bytes\": 1, \"inputs\": [0]}]}",
     "node 0 (`a`) reads node 1, which comes later: that is a cycle"},
    {SECOND("\"cost\": 1, \"bytes\": 1, \"inputs\": [], \"pure\": 1"), "`pure` is an integer"},
    {SECOND("\"cost\": 1, \"bytes\": 1, \"inputs\": [], \"purr\": true"),
     "node 1 (`b`) has the unknown key `purr`; did you mean `pure`?"},
    {SECOND("\"cost\": 72057594037927936, \"bytes\": 1, \"inputs\": []"), "the costs overflow"},
    {SECOND("\"cost\": 1, \"bytes\": 1152921504606846975, \"inputs\": []"), "the sizes overflow"},
};

START_TEST(malformed_problems_are_named)
{
    const Malformed *m = &malformed[_i];
    Ctx cx;
    Arena a = {0};
    ctx_init(&cx);
    ck_assert_ptr_null(problem_read(&cx, "p.json", m->text, strlen(m->text), &a));
    ck_assert_int_eq(cx.n_errors, 1);
    ck_assert_int_eq(cx.diag.at[0]->code, E0610);
    ck_assert_msg(strstr(cx.diag.at[0]->text, m->says) != NULL, "%s, not %s", cx.diag.at[0]->text,
                  m->says);
    ctx_free(&cx);
    arena_free(&a);
}
END_TEST

START_TEST(codes_are_explained)
{
    Code codes[] = {E0610, E0611, E0612, E0613};
    for (int i = 0; i < 4; i++)
        ck_assert_ptr_nonnull(code_explanation(codes[i]));
}
END_TEST

/* ---- broken plans
 * -------------------------------------------------------------------------------- */

/* a -> b -> c -> d, and d reads a as well; b is run again. */
typedef struct Broken {
    PlanClaim c;
    int32_t node[8], retain[8];
    int64_t offset[8], scratch[8];
} Broken;

static Problem *chain(Arena *a)
{
    ProblemMake m = {.arena = a};
    problem_node(&m, (ProblemNode){.name = "a", .cost = 5, .bytes = 4, .pure = false});
    problem_node(&m, (ProblemNode){.name = "b", .cost = 3, .bytes = 8, .pure = true});
    problem_input(&m, 0);
    problem_node(&m, (ProblemNode){.name = "c", .cost = 7, .bytes = 8, .scratch = 2, .pure = true});
    problem_input(&m, 1);
    problem_node(&m, (ProblemNode){.name = "d", .cost = 2, .bytes = 2, .pure = true});
    problem_input(&m, 2);
    problem_node(&m, (ProblemNode){.name = "e", .cost = 1, .bytes = 1, .pure = true, .keep = true});
    problem_input(&m, 1);
    problem_input(&m, 3);
    return problem_end(&m, 10);
}

/* A plan of it that is right: a b c d b e. */
static void right_plan(Broken *x)
{
    static const int32_t node[] = {0, 1, 2, 3, 1, 4}, retain[] = {4, 2, 3, 5, 5, 5};
    static const int64_t offset[] = {10, 14, 22, 14, 22, 16}, scratch[] = {-1, -1, 30, -1, -1, -1};
    memcpy(x->node, node, sizeof node);
    memcpy(x->retain, retain, sizeof retain);
    memcpy(x->offset, offset, sizeof offset);
    memcpy(x->scratch, scratch, sizeof scratch);
    x->c = (PlanClaim){.budget = 32,
                       .peak = 32,
                       .arena = 32,
                       .max_live = 32,
                       .cost_base = 18,
                       .cost_plan = 21,
                       .n = 6,
                       .node = x->node,
                       .retain = x->retain,
                       .offset = x->offset,
                       .scratch_offset = x->scratch};
}

enum { BROKEN = 38 };

/* Breaks the plan in one way; returns what the checker has to say. */
static const char *break_plan(Broken *x, int how)
{
    PlanClaim *c = &x->c;
    switch (how) {
    case 0: /* a missing operand */
        x->node[0] = 1;
        x->node[1] = 0;
        return "reads `a`, which has not run";
    case 1: /* freed early */
        x->retain[1] = 1;
        return "reads `b` of position 1, which is gone after position 1";
    case 2: /* one position too early */
        x->retain[0] = 3;
        return "reads `a` of position 0, which is gone";
    case 3:
        x->retain[4] = 4;
        return "reads `b`";
    case 4: /* retained for ever */
        x->retain[0] = 6;
        return "until position 6, of 6";
    case 5:
        x->retain[3] = 2;
        return "until position 2, of 6";
    case 6: /* what is not pure runs twice */
        x->node[4] = 0;
        x->retain[4] = 4;
        x->retain[1] = 5;
        return "not pure and runs 2 times";
    case 7: /* the result is not there at the end */
        c->n = 7;
        x->node[6] = 1;
        x->retain[6] = 6;
        x->offset[6] = x->offset[1];
        x->scratch[6] = -1;
        return "node 4 (`e`) is not there at the end";
    case 8:
        c->n = 5;
        return "position";
    case 9: /* a node that never runs */
        x->node[2] = 1;
        return "node 2 (`c`) never runs";
    case 10:
        x->node[3] = 5;
        return "runs node 5, which does not exist";
    case 11:
        x->node[3] = -1;
        return "runs node -1, which does not exist";
    case 12: /* overlaps: by one byte, wholly, with what is pinned */
        x->offset[1] = 13;
        return "writes over `a`";
    case 13:
        x->offset[2] = 21;
        return "writes over `b`";
    case 14:
        x->offset[4] = 15;
        return "writes over `d`";
    case 15:
        x->offset[5] = 22;
        return "writes over `b`";
    case 16:
        x->offset[0] = 9;
        return "below the pinned 10";
    case 17:
        x->offset[0] = 0;
        return "below the pinned 10";
    case 18:
        x->offset[3] = 12;
        return "writes over `a`";
    case 19: /* scratch over a live value, over its own output, below */
        x->scratch[2] = 14;
        return "writes over `b`";
    case 20:
        x->scratch[2] = 29;
        return "its own scratch";
    case 21:
        x->scratch[2] = -1;
        return "below the pinned 10";
    case 22:
        x->scratch[2] = 31;
        return "arena is 33, not 32";
    case 23: /* sums: each by one */
        c->peak++;
        return "peak is 32, not 33";
    case 24:
        c->peak--;
        return "peak is 32, not 31";
    case 25:
        c->max_live--;
        return "max_live is 32, not 31";
    case 26:
        c->arena--;
        return "arena is 32, not 31";
    case 27:
        c->budget--;
        return "above the budget of 31";
    case 28:
        c->cost_plan--;
        return "cost_plan is 21, not 20";
    case 29:
        c->cost_base++;
        return "cost_base is 18, not 19";
    case 30: /* a bound without a proof */
        c->bound = 1;
        return "only 0 is proved";
    case 31:
        c->bound = -1;
        return "only 0 is proved";
    case 32: /* far away */
        x->offset[2] = INT64_MAX - 3;
        return "that overflows";
    case 33:
        x->offset[2] = 1000;
        return "arena is 1008, not 32";
    case 34: /* the first b is still there: its bytes are d's by then */
        x->node[4] = 2;
        return "position";
    case 35: /* two in the wrong order */
        x->node[2] = 3;
        x->node[3] = 2;
        x->scratch[3] = 30;
        return "reads `c`, which has not run";
    case 36:
        x->node[5] = 3;
        return "never runs";
    default: /* runs without need: the cost has to say so */
        x->node[4] = 2;
        x->node[5] = 4;
        return "position";
    }
}

START_TEST(broken_plans_are_refused)
{
    Arena a = {0};
    Broken x = {0};
    const Problem *p = chain(&a);
    right_plan(&x);
    ck_assert_msg(check_sequence(p, &x.c, &a) == NULL, "%s", check_sequence(p, &x.c, &a));
    const char *says = break_plan(&x, _i), *wrong = check_sequence(p, &x.c, &a);
    ck_assert_msg(wrong != NULL, "plan %d is not refused", _i);
    ck_assert_msg(strstr(wrong, says) != NULL, "plan %d: %s, not %s", _i, wrong, says);
    arena_free(&a);
}
END_TEST

/* A bound that is not zero, and its proof: every number of it matters or is refused. */
static Recompute *proved(Arena *a, const Problem **p)
{
    for (uint64_t seed = 1;; seed++) {
        *p = random_problem(a, seed, 12, 50);
        int64_t budget = sequence_base(*p, a)->max_live * 8 / 10;
        Recompute *r =
            recompute(*p, (BudgetAsked){.kind = BUDGET_BYTES, .bytes = budget}, EFFORT_DEFAULT, a);
        if (r->outcome == PLAN_FOUND && r->bound > 0 && r->proof.proof.n > 0)
            return r;
    }
}

START_TEST(broken_proofs_are_refused)
{
    Arena a = {0};
    const Problem *p;
    Recompute *r = proved(&a, &p);
    Certificate *k = &r->proof;
    ProofCase *c = &k->proof.at[0];
    const char *error;
    switch (_i) {
    case 0:
        c->in.at[0].amount += 1 << 20;
        break;
    case 1:
        c->in.n--;
        break;
    case 2:
        c->need.at[0].amount++;
        break;
    case 3:
        c->price *= 2;
        c->shift = 61;
        break;
    case 4:
        k->moment = 0;
        break;
    case 5:
        k->scale *= 1000;
        break;
    case 6:
        k->tree.n--;
        break;
    case 7:
        k->tree.at[0] = PROOF_CLOSED;
        break;
    case 8:
        k->moment = p->n;
        break;
    case 9:
        c->in.at[0].at = p->n;
        break;
    default:
        vec_push(&a, &k->tree, PROOF_CASE);
    }
    int64_t bound = check_proof(p, k, r->budget, &a, &error);
    ck_assert_msg(error != NULL || bound < r->bound, "proof %d is believed", _i);
    PlanClaim claim = claim_of(p, r);
    ck_assert_ptr_nonnull(check_sequence(p, &claim, &a));
    arena_free(&a);
}
END_TEST

START_TEST(reports_are_read_back)
{
    Ctx cx;
    Arena a = {0};
    const Problem *p;
    ctx_init(&cx);
    Recompute *r = proved(&a, &p);
    Text t;
    text_init(&t, &a);
    recompute_json(p, r, 0.5, &t);
    PlanClaim *c = claim_read(&cx, "r.json", t.at, t.n, &a);
    ck_assert_ptr_nonnull(c);
    ck_assert_ptr_null(check_sequence(p, c, &a));
    ck_assert_int_eq(c->bound, r->bound);
    ck_assert_ptr_null(claim_read(&cx, "r.json", t.at, t.n / 2, &a));
    ck_assert_ptr_null(claim_read(&cx, "r.json", "{}", 2, &a));
    ck_assert_int_eq(cx.diag.at[0]->code, E0610);
    ctx_free(&cx);
    arena_free(&a);
}
END_TEST

/* ---- segments ------------------------------------------------------------------------ */

/* A chain of n nodes, and back: each reads what the one before has and its counterpart's. */
static Problem *there_and_back(Arena *a, int32_t n)
{
    ProblemMake m = {.arena = a};
    for (int32_t v = 0; v < 2 * n; v++) {
        problem_node(&m, (ProblemNode){.name = "v", .cost = 1, .bytes = 1, .pure = true});
        if (v > 0)
            problem_input(&m, v - 1);
        if (v >= n)
            problem_input(&m, 2 * n - 1 - v);
    }
    return problem_end(&m, 0);
}

/* Two passes forward keep about 2 sqrt(n), three a little less; what is found is a front of bytes
 * and cost. */
START_TEST(segments_of_a_chain)
{
    Arena a = {0};
    for (int32_t n = 16; n <= 4096; n *= 4) {
        Problem *p = there_and_back(&a, n);
        Sequence *base = sequence_base(p, &a);
        Segmented s = segmented(p, base, &a);
        int64_t least = base->max_live;
        double root = 2 * sqrt(n);
        ck_assert_int_gt(s.n, 1);
        for (int32_t i = 0; i < s.n; i++) {
            least = s.at[i]->max_live < least ? s.at[i]->max_live : least;
            ck_assert_int_le(s.at[i]->cost, 4 * n);
            for (int32_t k = 0; k < i; k++)
                ck_assert(s.at[k]->max_live > s.at[i]->max_live || s.at[k]->cost > s.at[i]->cost);
        }
        ck_assert_msg((double)least <= 1.25 * root + 4, "%d nodes: %d bytes", n, (int)least);
    }
    arena_free(&a);
}
END_TEST

/* Nothing to cut, nothing that could run again, nothing at all. */
START_TEST(segments_of_little)
{
    Arena a = {0};
    ProblemMake none = {.arena = &a}, fixed = {.arena = &a};
    Problem *p = problem_end(&none, 64);
    ck_assert_int_eq(segmented(p, sequence_base(p, &a), &a).n, 0);
    p = there_and_back(&a, 1);
    ck_assert_int_eq(segmented(p, sequence_base(p, &a), &a).n, 0);
    for (int32_t v = 0; v < 30; v++) {
        problem_node(&fixed, (ProblemNode){.name = "v", .cost = 1, .bytes = 1, .keep = true});
        if (v > 0)
            problem_input(&fixed, v - 1);
    }
    p = problem_end(&fixed, 0);
    ck_assert_int_eq(segmented(p, sequence_base(p, &a), &a).n, 0);
    arena_free(&a);
}
END_TEST

Suite *suite_plan_problem(void)
{
    Suite *s = suite_create("plan_problem");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, getenv("GRADC_FULL") != NULL ? 36000 : 300);
    tcase_add_test(t, small_problems_against_the_optimum);
    tcase_add_test(t, random_problems_at_many_budgets);
    tcase_add_test(t, more_memory_never_costs_more);
    tcase_add_test(t, layers_are_reordered_and_fit_without_much_room);
    tcase_add_test(t, the_least_budget_works_and_less_does_not);
    tcase_add_loop_test(t, malformed_problems_are_named, 0, sizeof malformed / sizeof *malformed);
    tcase_add_test(t, codes_are_explained);
    tcase_add_loop_test(t, broken_plans_are_refused, 0, BROKEN);
    tcase_add_loop_test(t, broken_proofs_are_refused, 0, 11);
    tcase_add_test(t, reports_are_read_back);
    tcase_add_test(t, segments_of_a_chain);
    tcase_add_test(t, segments_of_little);
    suite_add_tcase(s, t);
    return s;
}
