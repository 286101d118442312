#include "ladder.h"

#include "decode.h"

/* ---- one search --------------------------------------------------------------------------- */

void planner_place(Planner *g, Sequence *s)
{
    if (!s->placed)
        g->judge.place(g->judge.of, s);
}

enum { MOST_REPAIRS = 6, FEW_REPAIRS = 2, THINNER = 2 };

/* Runs what s runs, in an order in which fewer bytes are there on average: that leaves room for
 * placing. NULL if what was tried does not fit either. */
static Sequence *thinned(Planner *g, const Sequence *s, int64_t budget)
{
    PolishAim aim = {
        .moves = g->effort.thin_moves, .hot = 1e-2, .cold = 1e-5, .thin = 1, .order_only = true};
    for (int i = 0; i < THINNER && aim.moves > 0; i++) {
        aim.budget = budget - (budget - g->p->pinned) / 40 * i;
        aim.seed = (uint64_t)i;
        Sequence *thin = polish(g->p, s, aim, g->out);
        thin->enough = budget;
        if (thin->max_live <= budget)
            planner_place(g, thin);
        if (thin->placed && thin->arena <= budget)
            return thin;
    }
    return NULL;
}

/* Buffers of many sizes that come and go leave holes: as many bytes as were too few last time are
 * left for them. */
static Sequence *search_with_room(Planner *g, const Sequence *from, PolishAim aim)
{
    int64_t budget = aim.budget, all = budget - g->p->pinned;
    aim.budget = budget - g->room;
    Sequence *s = polish(g->p, from, aim, g->out);
    if (s->max_live > budget)
        return s;
    s->enough = budget;
    planner_place(g, s);
    bool is_thin = g->effort.is_long && aim.thin > 0 && !aim.order_only;
    Sequence *fit = s->arena <= budget ? s : is_thin ? NULL : thinned(g, s, budget);
    int64_t more = g->room + all / 50, most = all / 6;
    g->room = fit != NULL ? g->room - g->room / 4 : more < most ? more : most;
    return fit;
}

Sequence *planner_search(Planner *g, const Sequence *from, PolishAim aim)
{
    if (g->effort.thin_moves > 0)
        return search_with_room(g, from, aim);
    int64_t budget = aim.budget;
    for (int i = 0; i < (g->effort.by_rule ? FEW_REPAIRS : MOST_REPAIRS); i++) {
        Sequence *s = polish(g->p, from, aim, g->out);
        if (s->max_live > aim.budget)
            return s;
        s->enough = g->effort.by_rule ? budget : 0;
        planner_place(g, s);
        if (s->arena <= budget)
            return s;
        aim.budget -= (s->arena - budget + 1) / (g->effort.by_rule ? 1 : 2);
        aim.moves = aim.moves > 40000 ? aim.moves / 2 : aim.moves;
        aim.hot /= 4;
        if (!g->effort.by_rule || from->max_live > aim.budget) /* else it is filled less */
            from = s;
    }
    return NULL;
}

/* ---- the least budget --------------------------------------------------------------------- */

static double thinness(const Planner *g)
{
    return g->effort.thin_moves > 0 ? 1 : 0;
}

enum { PART_OF_HOLES = 512 };

static Sequence *smaller(Planner *g, Sequence *a, Sequence *b)
{
    planner_place(g, b);
    return a == NULL || b->arena < a->arena || (b->arena == a->arena && b->cost < a->cost) ? b : a;
}

static int64_t most_at_once(const Problem *p)
{
    int64_t most = 0;
    for (int32_t v = 0; v < p->n; v++)
        most = problem_working_set(p, v) > most ? problem_working_set(p, v) : most;
    return most;
}

/* Offsets of one that comes from a rule: they are the same whatever is asked, and few of a deep
 * net's bytes are left for holes, which is cheaper than to place again and again. */
static void place_segmented(Planner *g, Sequence *s)
{
    if (!s->placed && g->effort.by_rule)
        s->enough = s->max_live + (s->max_live - g->p->pinned) / PART_OF_HOLES;
    planner_place(g, s);
}

/* What comes near the least by segments; more than one, for placing leaves holes. To place is
 * slow: those that need the fewest bytes come first, and no other can be better than what has
 * been placed. */
static Sequence *least_segmented(Planner *g, Sequence *s)
{
    Sequence *sorted[MOST_SEGMENTED];
    if (g->segmented.n == 0)
        g->segmented = segmented(g->p, g->base, g->out);
    for (int32_t i = 0; i < g->segmented.n; i++) {
        int32_t j = i;
        for (; j > 0 && sorted[j - 1]->max_live > g->segmented.at[i]->max_live; j--)
            sorted[j] = sorted[j - 1];
        sorted[j] = g->segmented.at[i];
    }
    for (int32_t i = 0; i < g->segmented.n && sorted[i]->max_live < s->arena; i++) {
        place_segmented(g, sorted[i]);
        s = smaller(g, s, sorted[i]);
    }
    return s;
}

/* The thinnest order that is found, in which nothing runs again. */
static Sequence *least_order(Planner *g)
{
    PolishAim aim = {.budget = most_at_once(g->p),
                     .enough = INT64_MAX,
                     .moves = g->effort.order_moves,
                     .hot = 3e-2,
                     .cold = 1e-5,
                     .thin = 1,
                     .order_only = true};
    return smaller(g, g->base, polish(g->p, g->base, aim, g->out));
}

Sequence *planner_low(Planner *g)
{
    if (g->low == NULL)
        g->low = g->effort.thin_moves > 0 ? least_order(g) : least_segmented(g, g->base);
    return g->low;
}

/* Asks for smaller and smaller arenas, in steps that become smaller as well. */
static Sequence *squeeze(Planner *g, Sequence *s, int64_t range)
{
    int64_t step = range / 4;
    for (int i = 0; i < 6 && step > s->arena / 500; i++) {
        PolishAim aim = {.budget = s->arena - step,
                         .moves = g->effort.least_moves / 2,
                         .hot = 1e-2,
                         .cold = 1e-5,
                         .seed = (uint64_t)i,
                         .thin = thinness(g)};
        int64_t before = s->arena;
        Sequence *less = planner_search(g, s, aim);
        if (less != NULL && less->max_live <= before - step)
            s = smaller(g, s, less);
        if (s->arena > before - step)
            step /= 2;
    }
    return s;
}

/* Made cheaper without taking more. */
static Sequence *cheapen(Planner *g, Sequence *s)
{
    PolishAim aim = {.budget = s->arena,
                     .moves = g->effort.least_moves,
                     .hot = 1e-3,
                     .cold = 1e-6,
                     .seed = 3,
                     .fill = g->effort.by_rule};
    Sequence *cheaper = planner_search(g, s, aim);
    return cheaper != NULL && cheaper->max_live <= s->arena ? smaller(g, s, cheaper) : s;
}

/* The least leaves no room to fill: with a little more, much need not run again. */
static Sequence *near_least(Planner *g, const Sequence *s)
{
    PolishAim aim = {.budget = s->arena + (s->arena - g->p->pinned) / 64, .fill = true};
    Sequence *near = g->effort.by_rule ? planner_search(g, s, aim) : NULL;
    if (near != NULL) /* one whose holes are too many has not been placed */
        planner_place(g, near);
    return near;
}

/* Nodes of a chain: moves by chance do little for a deep net. */
enum { MOST_SQUEEZED = 2000 };

/* The same for every budget, whatever was asked before. */
static Sequence *find_least(Planner *g)
{
    const Problem *p = g->p;
    int64_t most = most_at_once(p);
    Sequence *s = g->effort.by_rule || g->effort.thin_moves > 0 ? planner_low(g) : g->base;
    bool is_chain = s->arena - most <= (g->base->arena - most) / 4;
    int starts = g->effort.is_long ? 1 : 3;
    for (int i = 0; i < starts && s->arena > most && !is_chain; i++) {
        PolishAim aim = {.budget = most,
                         .enough = INT64_MAX,
                         .moves = g->effort.least_moves,
                         .hot = 3e-2,
                         .cold = 1e-5,
                         .seed = (uint64_t)i,
                         .thin = thinness(g)};
        s = smaller(g, s, polish(p, i == 2 ? s : g->base, aim, g->out));
    }
    if (!g->effort.by_rule)
        s = least_segmented(g, s);
    if (!is_chain || p->n <= MOST_SQUEEZED)
        s = cheapen(g, squeeze(g, s, s->arena - most));
    return s;
}

Sequence *planner_least(Planner *g)
{
    if (g->least != NULL)
        return g->least;
    int64_t room = g->room;
    g->room = 0;
    g->least = find_least(g);
    g->near = near_least(g, g->least);
    g->room = room;
    return g->least;
}

enum { LOW_RUNGS = 28, LOW_STEP = 9 };
enum { KEEP_WORK = 4000000, KEEP_MOMENTS = 3, KEEP_EVERY = 4 };

/* ---- the ladder ----------------------------------------------------------------------------- */

static Sequence *cheaper(Sequence *s, Sequence *next, int64_t budget)
{
    return next->max_live <= budget && next->cost < s->cost ? next : s;
}

/* From what to keep at the moments at which most is there: often nearly as good as can be,
 * where little has to run again. */
static Sequence *from_keep_sets(Planner *g, int64_t budget, Sequence *s)
{
    int64_t work = KEEP_WORK;
    Arena scratch = {0};
    BoundEffort e = {.work = work, .moments = KEEP_MOMENTS, .cases = 1};
    Bound *b = bound_find(g->p, g->base, budget, INT64_MAX, e, &scratch);
    for (int32_t i = 0; i < b->keep.n; i++) {
        Sequence *next =
            decode_within(g->p, g->base->node, &b->keep.at[i], budget, &work, NULL, g->out);
        s = next != NULL ? cheaper(s, next, budget) : s;
    }
    arena_free(&scratch);
    return s;
}

/* The least runs much again that need not where there is more room: what runs once is nearer. */
static PolishAim from_base(const Planner *g, PolishAim aim)
{
    aim.moves = g->effort.least_moves;
    aim.hot = 3e-3;
    return aim;
}

/* Of a deep net the first rungs are up to an eighth of the bytes, each the same part of the next:
 * there a little room saves much. Then come equal parts. */
static int64_t rung_bytes(const Planner *g, int64_t i)
{
    int64_t bytes = g->base->arena - g->p->pinned, n = g->effort.rungs;
    if (g->effort.by_rule && i < LOW_RUNGS) {
        bytes /= 8;
        for (; i > 0 && i < LOW_RUNGS - 1; i++)
            bytes -= bytes / LOW_STEP;
        return g->p->pinned + (i > 0 ? bytes : 0);
    }
    if (g->effort.by_rule) {
        i = 80 - (n - i) * g->effort.rung_step;
        n = 80;
    }
    return g->p->pinned + bytes / n * i + bytes % n * i / n;
}

/* Deep nets leave some bytes for holes, which is cheaper than to place again and again. */
static PolishAim rung_aim(const Planner *g, int32_t i)
{
    int64_t bytes = rung_bytes(g, i), holes = (bytes - g->p->pinned) / PART_OF_HOLES;
    return (PolishAim){.budget = g->effort.by_rule ? bytes - holes : bytes,
                       .enough = g->p->cost_base,
                       .moves = g->effort.rung_moves,
                       .hot = 1e-2,
                       .cold = 1e-6,
                       .seed = (uint64_t)i,
                       .fill = g->effort.by_rule};
}

/* The rung becomes what is made from s, if that is cheaper. */
static void fill_rung(Planner *g, int32_t i, Sequence *s, PolishAim aim)
{
    Sequence *filled = cheaper(s, polish(g->p, s, aim, g->out), aim.budget);
    if (g->begun[i] != NULL && filled->cost >= g->rung[i]->cost)
        return;
    g->begun[i] = s;
    g->rung[i] = filled;
}

/* Schedules for parts of what running every node once takes, from the least budget up to
 * this one. Each begins with the one below and is no dearer. */
static void climb(Planner *g, int64_t budget)
{
    for (; g->n_rungs < g->effort.rungs; g->n_rungs++) {
        int32_t i = g->n_rungs;
        PolishAim aim = rung_aim(g, i);
        if (i > 0 && rung_bytes(g, i) > budget)
            return;
        Sequence *s = i == 0 ? planner_least(g) : g->rung[i - 1];
        g->rung[i] = s;
        if (aim.budget <= planner_least(g)->arena)
            continue;
        bool by_rule = g->effort.by_rule, low = s == g->least;
        if ((by_rule && i >= LOW_RUNGS) || i % KEEP_EVERY == 0 || low)
            s = from_keep_sets(g, aim.budget, s);
        s = g->near != NULL ? cheaper(s, g->near, aim.budget) : s;
        Sequence *other = segmented_within(&g->segmented, aim.budget);
        if (by_rule && other != NULL) /* which leaves more to fill is not known before */
            fill_rung(g, i, other, aim);
        else if (other != NULL)
            s = cheaper(s, other, aim.budget);
        if (low && !by_rule)
            s = cheaper(s, polish(g->p, g->base, from_base(g, aim), g->out), aim.budget);
        if (s != g->begun[i])
            fill_rung(g, i, s, aim);
    }
}

/* The rung has holes: made once more, with so much less. NULL: it has them still. */
static Sequence *fill_less(Planner *g, int32_t i, PolishAim aim)
{
    const Sequence *s = g->rung[i];
    for (int k = 0; k < FEW_REPAIRS; k++) {
        aim.budget -= s->arena - rung_bytes(g, i);
        if (g->begun[i] == NULL || g->begun[i]->max_live > aim.budget)
            return NULL;
        Sequence *less = polish(g->p, g->begun[i], aim, g->out);
        less->enough = rung_bytes(g, i);
        planner_place(g, less);
        if (less->arena <= rung_bytes(g, i))
            return less->cost >= g->rung[i]->cost ? less : NULL;
        s = less;
    }
    return NULL;
}

/* Offsets of a rung, and where they have holes, another schedule that has its bytes. It is no
 * cheaper than the rung, so that the cheapest of all can be looked for from above. */
static void place_rung(Planner *g, int32_t i)
{
    if (g->tried[i])
        return;
    g->tried[i] = true;
    int32_t lowest = i;
    while (lowest > 0 && g->rung[lowest - 1] == g->rung[i])
        lowest--;
    if ((g->effort.by_rule || g->effort.thin_moves > 0) && !g->rung[i]->placed)
        g->rung[i]->enough = rung_bytes(g, lowest);
    planner_place(g, g->rung[i]);
    if (g->rung[i]->arena <= rung_bytes(g, i))
        return;
    PolishAim aim = rung_aim(g, i);
    if (g->effort.by_rule) {
        g->fit[i] = fill_less(g, i, aim);
        return;
    }
    aim.budget -= g->rung[i]->arena - aim.budget;
    Sequence *fit = planner_search(g, g->rung[i], aim);
    if (fit != NULL && fit->placed && fit->cost >= g->rung[i]->cost)
        g->fit[i] = fit;
}

static Sequence *better(Sequence *best, Sequence *s, int64_t budget)
{
    return s != NULL && s->placed && s->arena <= budget && s->cost < best->cost ? s : best;
}

/* Of those that were found with the least, whatever the budget: with offsets that do not depend on
 * it either, one that fits will fit in more. */
static Sequence *cheapest_segmented(Planner *g, Sequence *best, int64_t budget)
{
    for (int32_t i = 0; i < g->segmented.n; i++) {
        Sequence *s = g->segmented.at[i];
        if (s->max_live > budget || s->cost >= best->cost)
            continue;
        place_segmented(g, s);
        best = better(best, s, budget);
    }
    return best;
}

Sequence *planner_ladder(Planner *g, int64_t budget)
{
    if (g->base->arena <= budget)
        return g->base;
    if (planner_least(g)->arena > budget)
        return NULL;
    climb(g, budget);
    Sequence *best = better(g->least, g->near, budget);
    for (int32_t i = g->n_rungs; i-- > 0 && g->rung[i]->cost < best->cost;) {
        place_rung(g, i);
        best = better(best, g->rung[i], budget);
        best = better(best, g->fit[i], budget);
    }
    return cheapest_segmented(g, best, budget);
}

/* ---- */

Planner planner_new(const Problem *p, PlanJudge judge, LadderEffort effort, Arena *out)
{
    Planner g = {.p = p, .judge = judge, .effort = effort, .out = out};
    g.base = sequence_base(p, out);
    planner_place(&g, g.base);
    return g;
}

/* By default in proportion to the rest of a build; else half a minute at the most. */
static int64_t moves_for(const Problem *p, PlanEffort effort, int64_t each, int64_t each_at_most)
{
    int64_t n = p->n > 50 ? p->n : 50, most = 150000;
    if (effort != EFFORT_MAX)
        return each * n;
    return each_at_most * n < most ? each_at_most * n : most;
}

enum { SHALLOW = 100, DEEP = 300, DEEPER = 1200 }; /* nodes */

Planner *planner_open(const Problem *p, PlanJudge judge, PlanEffort effort, Arena *out)
{
    Planner *g = NEW(out, Planner);
    bool small = p->n <= SHALLOW;
    LadderEffort e = {.least_moves = moves_for(p, effort, small ? 40 : 8, 400),
                      .rung_moves = moves_for(p, effort, small ? 20 : 2, 100),
                      .rungs = 40};
    if (effort != EFFORT_MAX && p->n > DEEP) {
        e.least_moves = 2400;
        e.rung_moves = 600;
        e.rung_step = p->n > DEEPER ? 4 : 2;
        e.rungs = LOW_RUNGS + 68 / e.rung_step;
        e.by_rule = true;
    }
    *g = planner_new(p, judge, e, out);
    return g;
}
