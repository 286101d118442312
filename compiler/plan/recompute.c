#include "recompute.h"

#include "decode.h"
#include "polish.h"

/* How far to go; moves are those of local search. */
typedef struct Effort {
    int64_t moves;      /* at the budget itself, for each start */
    int64_t rung_moves; /* at each rung of the ladder */
    int64_t least_moves;
    int64_t order_moves;
    int32_t starts;
    int64_t place_work;
    BoundEffort bound;
} Effort;

typedef struct Planning {
    const Problem *p;
    Effort effort;
    Arena *out;
    Recompute *r;
    Sequence *base;  /* the given order */
    Sequence *order; /* the best order found, nothing twice */
    Sequence *least; /* the one with the smallest arena; NULL before it is looked for */
} Planning;

/* ---- effort -------------------------------------------------------------------------- */

/* A move takes 0.5 us in small problems and 2 us in large ones. */
static Effort effort_of(const Problem *p, PlanEffort effort)
{
    bool max = effort == EFFORT_MAX;
    Effort e = {.starts = max ? 4 : 2, .place_work = max ? 32000000 : 4000000};
    int64_t all = p->n <= 100 ? 2000000 : p->n <= 500 ? 4000000 : p->n <= 5000 ? 8000000 : 4000000;
    all = max ? all : all / 10;
    e.moves = all / 2 / e.starts;
    e.rung_moves = all / 60;
    e.least_moves = all / 8;
    e.order_moves = all / 8;
    e.bound = (BoundEffort){INT64_C(3000000000), 16, p->n <= 500 ? 60 : p->n <= 2000 ? 8 : 1};
    if (!max)
        e.bound = (BoundEffort){INT64_C(1000000000), 8, p->n <= 500 ? 20 : 1};
    return e;
}

/* The cost of a plan that need not be improved: in large problems a gap of 0.005 % does. */
static int64_t enough(const Planning *g)
{
    int64_t slack = g->p->n > 2000 ? g->p->cost_base / 20000 : 0;
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
    if (s->offset == NULL)
        sequence_place(g->p, s, g->effort.place_work, g->out);
    if (s->arena > r->budget)
        return false;
    r->plan = s;
    return true;
}

enum { MOST_REPAIRS = 6 };

/* Searches from this schedule; where placing leaves holes, for less than the budget. */
static Sequence *search(Planning *g, const Sequence *from, PolishAim aim)
{
    int64_t budget = aim.budget;
    for (int i = 0; i < MOST_REPAIRS; i++) {
        Sequence *s = polish(g->p, from, aim, g->out);
        if (s->max_live > aim.budget)
            return s;
        sequence_place(g->p, s, g->effort.place_work, g->out);
        if (s->arena <= budget)
            return s;
        aim.budget -= s->arena - budget;
        aim.moves = aim.moves > 40000 ? aim.moves / 2 : aim.moves;
        aim.hot /= 4;
        from = s;
    }
    return NULL;
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

/* ---- the least budget --------------------------------------------------------------------- */

static Sequence *smaller(Planning *g, Sequence *a, Sequence *b)
{
    sequence_place(g->p, b, g->effort.place_work, g->out);
    return a == NULL || b->arena < a->arena || (b->arena == a->arena && b->cost < a->cost) ? b : a;
}

/* The schedule with the smallest arena that is found, made cheaper without taking more.
 * It is the same for every budget: its arena always works, and less is always refused. */
static Sequence *find_least(Planning *g)
{
    const Problem *p = g->p;
    if (g->least != NULL)
        return g->least;
    int64_t most = 0;
    for (int32_t v = 0; v < p->n; v++)
        most = problem_working_set(p, v) > most ? problem_working_set(p, v) : most;
    Sequence *s = g->base;
    for (int i = 0; i < 3 && s->arena > most; i++) {
        PolishAim aim = {.budget = most,
                         .enough = INT64_MAX,
                         .moves = g->effort.least_moves,
                         .hot = 3e-2,
                         .cold = 1e-5,
                         .seed = (uint64_t)i};
        s = smaller(g, s, polish(p, i == 2 ? s : g->base, aim, g->out));
    }
    PolishAim aim = {
        .budget = s->arena, .moves = g->effort.least_moves, .hot = 1e-3, .cold = 1e-6, .seed = 3};
    Sequence *cheaper = search(g, s, aim);
    if (cheaper != NULL && cheaper->max_live <= s->arena)
        s = smaller(g, s, cheaper);
    return g->least = s;
}

/* ---- the ladder ----------------------------------------------------------------------------- */

enum { RUNGS = 20 };

/* Plans for twentieths of what storing all takes, from the least budget up to this one.
 * Each begins with the one below and is no worse, so that more memory never costs more. */
static void climb(Planning *g, Sequence *least)
{
    int64_t bytes = g->r->store_all - g->p->pinned, budget = g->r->budget;
    Sequence *s = least;
    offer(g, s);
    for (int i = 1; i < RUNGS; i++) {
        int64_t rung = g->p->pinned + (int64_t)((double)bytes * i / RUNGS);
        if (rung > budget)
            break;
        if (rung <= s->arena)
            continue;
        PolishAim aim = {.budget = rung,
                         .enough = g->p->cost_base,
                         .moves = g->effort.rung_moves,
                         .hot = 1e-2,
                         .cold = 1e-6,
                         .seed = (uint64_t)i};
        Sequence *next = search(g, s, aim);
        if (next != NULL && next->offset != NULL && next->arena <= rung && next->cost < s->cost)
            s = next;
        offer(g, s);
    }
}

/* ---- pipeline ----------------------------------------------------------------------------------
 */

static int64_t bytes_of(const Planning *g, BudgetAsked asked)
{
    if (asked.kind == BUDGET_SHARE)
        return g->p->pinned +
               (int64_t)((double)(g->r->store_all - g->p->pinned) * asked.share / 100);
    return asked.bytes;
}

static Sequence *best_order(Planning *g)
{
    PolishAim aim = {.budget = g->r->budget,
                     .enough = g->p->cost_base,
                     .moves = g->effort.order_moves,
                     .hot = 3e-2,
                     .cold = 1e-5,
                     .order_only = true};
    Sequence *s = search(g, g->base, aim);
    return s != NULL ? s : g->base;
}

static void search_at_budget(Planning *g, const Sequence *lowest)
{
    static const double hot[] = {1e-2, 1e-1, 3e-2, 3e-3};
    const Sequence *from[4] = {g->r->plan, g->order, g->base, lowest};
    for (int k = 0; k < g->effort.starts && (g->r->plan == NULL || g->r->plan->cost > enough(g));
         k++) {
        PolishAim aim = {.budget = g->r->budget,
                         .enough = enough(g),
                         .moves = g->effort.moves,
                         .hot = hot[k % 4],
                         .cold = 1e-6,
                         .seed = (uint64_t)k};
        const Sequence *start = from[k % 4] != NULL ? from[k % 4] : g->base;
        offer(g, search(g, start, aim));
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

static void solve(Planning *g, bool least_asked)
{
    Recompute *r = g->r;
    if (least_asked)
        r->budget = find_least(g)->arena;
    if (!too_large_node(g) && offer(g, g->base))
        return;
    Bound *b = find_bound(g, 1, INT64_MAX);
    if (r->outcome == PLAN_IMPOSSIBLE || too_much_kept(g, b)) {
        r->least = find_least(g)->arena;
        return;
    }
    Sequence *lowest = try_keep_sets(g, b, g->base);
    if (g->p->n > 2000 && r->plan != NULL && r->plan->cost <= enough(g))
        return;
    Sequence *least = find_least(g);
    r->least = least->arena;
    if (r->least > r->budget) {
        r->plan = NULL;
        return;
    }
    g->order = best_order(g);
    if (offer(g, g->order) && r->plan->cost <= enough(g))
        return;
    climb(g, least);
    search_at_budget(g, lowest);
    if (r->plan->cost > g->p->cost_base + r->bound)
        find_bound(g, g->effort.bound.cases, r->plan->cost - g->p->cost_base);
}

Recompute *recompute(const Problem *p, BudgetAsked asked, PlanEffort effort, Arena *out)
{
    Recompute *r = NEW(out, Recompute);
    Planning g = {.p = p, .effort = effort_of(p, effort), .out = out, .r = r};
    r->proof.moment = -1;
    g.base = g.order = sequence_base(p, out);
    sequence_place(p, g.base, g.effort.place_work, out);
    r->store_all = r->least = g.base->arena;
    r->budget = bytes_of(&g, asked);
    r->outcome = PLAN_NOT_FOUND;
    solve(&g, asked.kind == BUDGET_LEAST);
    if (r->plan != NULL)
        r->outcome = PLAN_FOUND;
    return r;
}
