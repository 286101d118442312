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

enum { LARGE = 2000 }; /* nodes */

/* ---- effort -------------------------------------------------------------------------- */

/* A move takes 1 us in small problems and 3 us in large ones. */
static Effort effort_of(const Problem *p, PlanEffort effort)
{
    bool max = effort == EFFORT_MAX;
    Effort e = {.starts = max ? 8 : 2, .place_work = max ? 6000000 : 2000000};
    int64_t all = p->n <= 100 ? 1500000 : p->n <= 500 ? 2000000 : 3000000;
    all = max ? all : all / 10;
    e.moves = all / 2 / e.starts;
    e.rung_moves = all / 80;
    e.least_moves = all / 24;
    e.order_moves = all / 16;
    e.bound = (BoundEffort){INT64_C(3000000000), 16, p->n <= 500 ? 60 : p->n <= LARGE ? 8 : 1};
    if (!max)
        e.bound = (BoundEffort){INT64_C(1000000000), 8, p->n <= 500 ? 20 : 1};
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
        aim.budget -= (s->arena - budget + 1) / 2;
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

/* Asks for smaller and smaller arenas, in steps that become smaller as well. */
static Sequence *squeeze(Planning *g, Sequence *s, int64_t range)
{
    int64_t step = range / 4;
    for (int i = 0; i < 6 && step > s->arena / 500; i++) {
        PolishAim aim = {.budget = s->arena - step,
                         .moves = g->effort.least_moves / 2,
                         .hot = 1e-2,
                         .cold = 1e-5,
                         .seed = (uint64_t)i};
        int64_t before = s->arena;
        Sequence *less = search(g, s, aim);
        if (less != NULL && less->max_live <= before - step)
            s = smaller(g, s, less);
        if (s->arena > before - step)
            step /= 2;
    }
    return s;
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
    s = squeeze(g, s, s->arena - most);
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
        int64_t rung = g->p->pinned + bytes / RUNGS * i + bytes % RUNGS * i / RUNGS;
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

static int64_t share_of(const Planning *g, double percent)
{
    double bytes = (double)(g->r->store_all - g->p->pinned) * percent / 100;
    return g->p->pinned + (bytes < 4e18 ? (int64_t)bytes : INT64_C(4000000000000000000));
}

static int64_t bytes_of(const Planning *g, BudgetAsked asked)
{
    if (asked.kind == BUDGET_SHARE)
        return share_of(g, asked.share);
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

/* Many short searches from different schedules, then longer ones from the best. */
static void search_at_budget(Planning *g, const Sequence *lowest)
{
    static const double hot[] = {1e-3, 1e-1, 1e-4, 1e-2, 3e-2, 3e-3, 3e-4, 3e-1};
    const Sequence *plan = g->r->plan;
    const Sequence *from[] = {plan, g->base, plan, g->order, lowest, g->base, plan, g->order};
    int32_t starts = g->effort.starts;
    for (int k = 0; k < starts + 2 && g->r->plan->cost > enough(g); k++) {
        bool last = k >= starts;
        PolishAim aim = {.budget = g->r->budget,
                         .enough = enough(g),
                         .moves = last ? g->effort.moves * starts / 4 : g->effort.moves,
                         .hot = last ? hot[2 * (k - starts)] : hot[k % 8],
                         .cold = 1e-6,
                         .seed = (uint64_t)k};
        const Sequence *start = last || from[k % 8] == NULL ? g->r->plan : from[k % 8];
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

/* In large problems what comes from the keep-sets is nearly always as good as can be:
 * a short search fills the bytes that are left. */
static bool nearly_done(Planning *g)
{
    PolishAim aim = {.budget = g->r->budget, .enough = enough(g), .moves = 300000};
    if (g->r->plan->cost > enough(g))
        offer(g, search(g, g->r->plan, aim));
    return g->r->plan->cost <= g->p->cost_base + g->r->bound + g->p->cost_base / 5000;
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
    if (g->p->n > LARGE && r->plan != NULL && nearly_done(g))
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
