#include "recompute.h"

#include "decode.h"
#include "ladder.h"

/* How far to go; moves are those of local search. */
typedef struct Effort {
    int64_t moves; /* at the budget itself, for each start */
    int64_t last_moves;
    int64_t long_moves; /* of the first of search_with_holes(); 0: there is none */
    LadderEffort ladder;
    int32_t starts;
    PlaceWork place_work;
    BoundEffort bound;
} Effort;

typedef struct Planning {
    const Problem *p;
    Effort effort;
    Planner ladder;
    Arena *out;
    Recompute *r;
    Sequence *base;  /* the given order */
    Sequence *order; /* the best order found, nothing twice */
} Planning;

enum { SMALL = 100, MIDDLING = 300, LARGE = 2000 }; /* nodes */

/* ---- its own judge ------------------------------------------------------------------- */

typedef struct Placer {
    const Problem *p;
    PlaceWork work;
    Arena *out;
} Placer;

static void place_by(void *of, Sequence *s)
{
    const Placer *to = of;
    sequence_place(to->p, s, to->work, to->out);
}

/* ---- effort -------------------------------------------------------------------------- */

/* A move takes 1 us in small problems and 3 us in large ones, and more where nodes have many
 * inputs. */
static Effort effort_of(const Problem *p, PlanEffort effort)
{
    bool max = effort == EFFORT_MAX;
    Effort e = {.starts = max ? 12 : 3, .place_work = {max ? 6000000 : 2000000, 0}};
    int64_t all = p->n <= 100 ? 1500000 : p->n <= 500 ? 2000000 : 3000000;
    int64_t two_each = 2 * (int64_t)p->n, edges = p->input_at[p->n];
    all = edges > two_each ? all / edges * two_each : all;
    all = max ? all : all / 10;
    e.moves = max ? all / 16 : all / 4;
    e.last_moves = all / 8;
    e.ladder = (LadderEffort){.least_moves = all / 24, .rung_moves = all / 80, .rungs = 20};
    if (edges > two_each + p->n / 4) { /* buffers live for all kinds of times */
        e.ladder.thin_moves = (max ? 100 : 20) * (int64_t)(p->n < LARGE ? p->n : LARGE);
        e.place_work.all = max ? 20000000 : 4000000;
        e.ladder.is_long = max && p->n > MIDDLING;
        e.long_moves = max && p->n > SMALL ? all / 2 : 0;
    }
    if (e.ladder.is_long) {
        e.place_work.eject = 20000000;
        e.ladder.least_moves = all / 10;
    }
    e.ladder.order_moves = all / 16;
    e.bound = (BoundEffort){INT64_C(3000000000), 16, p->n <= 500 ? 1000 : p->n <= LARGE ? 8 : 1};
    if (!max)
        e.bound = (BoundEffort){INT64_C(1000000000), 8, p->n <= 500 ? 20 : 1};
    if (p->n <= SMALL)
        e.bound.cases = 500;
    return e;
}

/* The cost of a plan that need not be improved: in large problems a gap of 0.01 % does, in
 * middling ones of 0.001 %. */
static int64_t enough(const Planning *g)
{
    int64_t base = g->p->cost_base;
    int64_t slack = g->p->n > LARGE ? base / 10000 : g->p->n > 100 ? base / 100000 : 0;
    return g->p->cost_base + g->r->bound + slack;
}

/* ---- impossible ------------------------------------------------------------------------ */

/* A node whose inputs, output and scratch alone are more than the budget. */
static bool too_large_node(Planning *g)
{
    int64_t most = 0;
    int32_t at = 0;
    for (int32_t v = 0; v < g->p->n; v++)
        if (problem_working_set(g->p, v) > most) {
            most = problem_working_set(g->p, v);
            at = v;
        }
    if (most <= g->r->budget)
        return false;
    g->r->outcome = PLAN_IMPOSSIBLE;
    g->r->why = arena_printf(g->out, "node %d (`%s`) needs %lld bytes while it runs", at,
                             g->p->node[at].name, (long long)most);
    return true;
}

static bool too_much_kept(Planning *g, const Bound *b)
{
    if (!b->impossible)
        return false;
    g->r->outcome = PLAN_IMPOSSIBLE;
    g->r->why = arena_printf(g->out, "what can't run again does not fit beside node %d (`%s`)",
                             b->proof.moment, g->p->node[b->proof.moment].name);
    return true;
}

/* ---- candidates -------------------------------------------------------------------------- */

/* Takes the schedule as the plan if it is cheaper, and fits with its offsets. */
static bool offer(Planning *g, Sequence *s)
{
    Recompute *r = g->r;
    if (s == NULL || s->max_live > r->budget || (r->plan != NULL && s->cost >= r->plan->cost))
        return false;
    if (!s->placed)
        s->enough = r->budget;
    planner_place(&g->ladder, s);
    if (s->arena > r->budget)
        return false;
    r->plan = s;
    return true;
}

/* From what to keep at the critical moments. Returns the one with the fewest bytes. */
static Sequence *try_keep_sets(Planning *g, const Bound *b, const Sequence *order)
{
    int64_t work = g->effort.bound.work;
    Sequence *lowest = NULL;
    for (int32_t i = 0; i < b->keep.n && i < 8; i++)
        offer(g, decode_within(g->p, order->node, &b->keep.at[i], g->r->budget, &work, &lowest,
                               g->out));
    return lowest;
}

/* ---- pipeline ----------------------------------------------------------------------------------
 */

static int64_t bytes_of(const Planning *g, BudgetAsked asked)
{
    if (asked.kind == BUDGET_SHARE)
        return budget_share(g->p->pinned, g->r->store_all, asked.share);
    return asked.bytes;
}

static Sequence *best_order(Planning *g)
{
    PolishAim aim = {.budget = g->r->budget,
                     .enough = g->p->cost_base,
                     .moves = g->effort.ladder.order_moves,
                     .hot = 3e-2,
                     .cold = 1e-5,
                     .thin = 1,
                     .order_only = true};
    Sequence *s = planner_search(&g->ladder, g->base, aim);
    return s != NULL ? s : g->base;
}

static bool is_good(const Planning *g)
{
    return g->r->plan != NULL && g->r->plan->cost <= enough(g);
}

/* Where a search begins, how hot, and what bytes weigh. */
typedef struct Start {
    const Sequence *from; /* NULL: the best so far */
    double hot, thin;
} Start;

static void search_from(Planning *g, Start at, int64_t moves, int32_t seed)
{
    const Sequence *best = g->r->plan;
    PolishAim aim = {.budget = g->r->budget,
                     .enough = enough(g),
                     .moves = moves,
                     .hot = at.hot,
                     .cold = 1e-6,
                     .seed = (uint64_t)seed,
                     .thin = at.thin};
    offer(g, planner_search(&g->ladder, at.from != NULL ? at.from : best, aim));
}

/* Many short searches from different schedules, then longer ones from the best. */
static void search_at_budget(Planning *g, const Sequence *lowest)
{
    const Sequence *plan = g->r->plan, *base = g->base, *order = g->order;
    const Start start[] = {{plan, 1e-3, 0},   {base, 1e-1, 0},  {base, 1e-2, 1},
                           {plan, 1e-4, 0},   {order, 1e-2, 0}, {plan, 3e-3, 1},
                           {lowest, 3e-2, 0}, {base, 3e-3, 0},  {order, 3e-2, 0.3},
                           {plan, 3e-4, 0},   {order, 3e-1, 0}, {NULL, 1e-2, 0.3}};
    static const Start last[] = {{NULL, 3e-3, 0.3}, {NULL, 1e-3, 0}, {NULL, 1e-4, 0}};
    enum { STARTS = sizeof start / sizeof *start, LAST = sizeof last / sizeof *last };
    for (int32_t k = 0; k < STARTS && k < g->effort.starts && !is_good(g); k++)
        search_from(g, start[k], g->effort.moves, k);
    for (int32_t k = 0; k < LAST && !is_good(g); k++)
        search_from(g, last[k], g->effort.last_moves, g->effort.starts + k);
}

enum { ROUNDS_WITH_HOLES = 12 };

/* Where placing leaves holes: one long search, then short ones that go on from what the last one
 * found, with a little more room for holes where that was not placed, and a little less where it
 * was. What is thin is placed more easily. */
static void search_with_holes(Planning *g)
{
    int64_t all = g->r->budget - g->p->pinned, room = all / 32, step = all / 40;
    const Sequence *from = g->base;
    PolishAim aim = {
        .enough = enough(g), .moves = g->effort.long_moves, .hot = 1e-2, .cold = 1e-6, .thin = 3};
    for (int32_t k = 0; k < ROUNDS_WITH_HOLES && !is_good(g); k++) {
        aim.budget = g->r->budget - room;
        aim.seed = (uint64_t)k;
        Sequence *s = polish(g->p, from, aim, g->out);
        bool fits = s->max_live <= g->r->budget;
        if (fits) {
            s->enough = g->r->budget;
            planner_place(&g->ladder, s);
            fits = s->arena <= g->r->budget;
            offer(g, s);
        }
        room += fits ? -step : step;
        room = room > 0 ? room : 0;
        step -= step / 6;
        from = s;
        aim.moves = g->effort.long_moves / 4;
        aim.hot = 1e-3;
    }
}

static Bound *find_bound(Planning *g, int32_t cases, int64_t enough_extra)
{
    BoundEffort e = g->effort.bound;
    e.cases = cases;
    Bound *b = bound_find(g->p, g->base, g->r->budget, enough_extra, e, g->out);
    if (b->bound > g->r->bound || b->impossible) {
        g->r->bound = b->bound;
        g->r->proof = b->proof;
    }
    return b;
}

/* In large problems what comes from the keep-sets is nearly always as good as can be:
 * a short search fills the bytes that are left. */
static bool nearly_done(Planning *g)
{
    PolishAim aim = {.budget = g->r->budget, .enough = enough(g), .moves = 300000};
    if (g->r->plan->cost > enough(g))
        offer(g, planner_search(&g->ladder, g->r->plan, aim));
    return g->r->plan->cost <= g->p->cost_base + g->r->bound + g->p->cost_base / 5000;
}

/* Below the least nothing is looked for, even where by luck it would be found: what is named as
 * the least that works is just that. */
static bool is_refused(Planning *g)
{
    if (g->r->budget >= planner_low(&g->ladder)->arena)
        return false;
    g->r->least = planner_least(&g->ladder)->arena;
    return g->r->budget < g->r->least;
}

static void solve(Planning *g, bool least_asked)
{
    Recompute *r = g->r;
    if (least_asked)
        r->budget = planner_least(&g->ladder)->arena;
    if (!too_large_node(g) && offer(g, g->base))
        return;
    Bound *b = find_bound(g, 1, INT64_MAX);
    if (r->outcome == PLAN_IMPOSSIBLE || too_much_kept(g, b)) {
        r->least = planner_least(&g->ladder)->arena;
        return;
    }
    if (is_refused(g))
        return;
    Sequence *lowest = try_keep_sets(g, b, g->base);
    if (g->p->n > LARGE && r->plan != NULL && nearly_done(g))
        return;
    g->order = best_order(g);
    if (offer(g, g->order) && r->plan->cost <= enough(g))
        return;
    offer(g, planner_ladder(&g->ladder, r->budget));
    if (!g->effort.ladder.is_long)
        search_at_budget(g, lowest);
    if (g->effort.long_moves > 0)
        search_with_holes(g);
    if (r->plan->cost > g->p->cost_base + r->bound)
        find_bound(g, g->effort.bound.cases, r->plan->cost - g->p->cost_base);
}

Recompute *recompute(const Problem *p, BudgetAsked asked, PlanEffort effort, Arena *out)
{
    Recompute *r = NEW(out, Recompute);
    Planning g = {.p = p, .effort = effort_of(p, effort), .out = out, .r = r};
    r->proof.moment = -1;
    Placer placer = {p, g.effort.place_work, out};
    g.ladder = planner_new(p, (PlanJudge){&placer, place_by}, g.effort.ladder, out);
    g.base = g.order = g.ladder.base;
    r->store_all = r->least = g.base->arena;
    r->budget = bytes_of(&g, asked);
    r->outcome = PLAN_NOT_FOUND;
    solve(&g, asked.kind == BUDGET_LEAST);
    if (r->plan != NULL)
        r->outcome = PLAN_FOUND;
    return r;
}
