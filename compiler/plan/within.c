/* An entry within a byte budget: its steps as a planning problem (within_problem.h), and
 * schedules of that back as plans. A schedule is judged by the plan that comes of it. */
#include "within.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "check_sequence.h"
#include "offload.h"
#include "place.h"
#include "recompute.h"
#include "within_problem.h"

/* Of placing one schedule. */
enum { PLACE_WORK_EACH = 100000, PLACE_WORK_MAX = 4000000 };

/* One problem of the steps: what may leave the block is part of it. */
typedef struct Way {
    const Within *w;
    const Plan *once; /* whose steps, each once */
    Steps steps;
    const StepNode *node; /* by node of the problem: its step */
    Problem *problem;
    Planner *planner;
} Way;

/* Nothing may leave; anything, for little or for all of the time that it takes; or what is
 * quickly moved beside being computed. */
enum { WAYS = 4 };

struct Within {
    Plan *p;
    Plan first; /* what p was at first */
    Plan once;  /* ... of its steps alone, without transfers */
    PlanEffort effort;
    Steps steps;
    bool known, can; /* steps may run again */
    Way way[WAYS];
    int n_ways;
    Arena arena;
};

/* ---- from a schedule to a plan --------------------------------------------------- */

static void put_step(Plan *q, const PlanStep *s, int32_t run)
{
    q->step[q->n_steps] = *s;
    q->step[q->n_steps++].run = run;
}

/* The step's values come in. */
static void put_entries(Plan *q, const Way *way, int32_t s)
{
    const PlanStep *step = &way->once->step[s];
    for (int32_t i = 0; i < step->n_writes; i++)
        if (way->steps.used[step->write[i]] && q->value[step->write[i]].bytes > 0)
            q->step[q->n_steps++] = offload_step(q, STEP_IN, step->write[i]);
}

static int32_t count_steps(const Way *way, const Sequence *s)
{
    int32_t n = 0;
    for (int32_t i = 0; i < s->n; i++) {
        StepNode at = way->node[s->node[i]];
        n += at.has                         ? way->once->step[at.step].n_writes
             : at.step == way->steps.update ? way->once->n_steps - at.step
                                            : 1;
    }
    return n;
}

static void put_steps(const Way *way, const Sequence *s, Plan *q)
{
    const Plan *once = way->once;
    int32_t *runs = NEW_ARRAY(q->arena, int32_t, once->n_steps);
    q->n_steps = 0;
    for (int32_t i = 0; i < s->n; i++) {
        StepNode at = way->node[s->node[i]];
        if (at.has) { /* at first, that is what has just been computed */
            if (i == 0 || s->node[i - 1] != s->node[i] - 1)
                put_entries(q, way, at.step);
            continue;
        }
        int32_t to = at.step == way->steps.update ? once->n_steps : at.step + 1;
        for (int32_t k = at.step; k < to; k++)
            put_step(q, &once->step[k], runs[at.step]);
        runs[at.step]++;
    }
}

static bool has_entries(const Plan *p)
{
    for (int32_t s = 0; s < p->n_steps; s++)
        if (p->step[s].kind == STEP_IN)
            return true;
    return false;
}

/* Ranges and offsets of the steps, with what the model offloads, and what is kept of its parts.
 * `enough` is the schedule's, `limit` offload_place()'s. */
static void place(const Within *w, Plan *q, int64_t enough, int64_t limit)
{
    int64_t work = w->effort == EFFORT_MAX ? PLACE_WORK_MAX : PLACE_WORK_EACH;
    offload_asked(q);
    if (has_entries(q)) {
        offload_place(q, limit, work);
    } else {
        plan_liveness(q);
        plan_place_within(q, enough, work);
    }
    if (q->n_parts > 0)
        plan_parts(q);
}

static Plan *plan_of(const Way *way, const Sequence *s, int64_t limit, Arena *out)
{
    Plan *q = NEW(out, Plan);
    *q = *way->once;
    q->arena = out;
    q->value = NEW_ARRAY(out, PlanValue, q->n_values);
    memcpy(q->value, way->once->value, sizeof *q->value * (size_t)q->n_values);
    q->step = NEW_ARRAY(out, PlanStep, count_steps(way, s));
    put_steps(way, s, q);
    place(way->w, q, s->enough, limit);
    return q;
}

/* ---- the judge --------------------------------------------------------------------- */

/* It is the plan that is there already. */
static bool runs_once(const Way *way, const Sequence *s)
{
    const Within *w = way->w;
    bool once = w->first.store_bytes == 0 && w->first.n_parts == 0 && way->once == &w->once;
    once = once && way->problem->n == w->steps.n && s->n == w->steps.n;
    for (int32_t v = 0; v < s->n && once; v++)
        once = s->node[v] == v;
    return once;
}

/* As many bytes as it takes at the least, whatever is waited for. What keeps too much of a part
 * takes more than any budget for which steps run again. */
static void place_by(void *of, Sequence *s)
{
    const Way *way = of;
    Arena scratch = {0};
    s->placed = true;
    s->arena = way->w->once.peak;
    if (!runs_once(way, s)) {
        const Plan *q = plan_of(way, s, -1, &scratch);
        int64_t over = plan_parts_over(q);
        s->arena = over > 0 ? way->w->once.peak + over : q->peak;
    }
    arena_free(&scratch);
}

/* ---- */

/* The steps as they were before transfers, with places. */
static Plan plain(const Plan *p)
{
    Plan q = *p;
    if (p->plain == NULL || p->plain == p->step)
        return q;
    q.value = NEW_ARRAY(p->arena, PlanValue, p->n_values);
    memcpy(q.value, p->value, sizeof *q.value * (size_t)p->n_values);
    q.step = NEW_ARRAY(p->arena, PlanStep, p->n_plain);
    memcpy(q.step, p->plain, sizeof *q.step * (size_t)p->n_plain);
    q.n_steps = p->n_plain;
    q.store_bytes = 0;
    plan_liveness(&q);
    plan_place(&q);
    return q;
}

Within *within_open(Plan *p, PlanEffort effort, Arena *out)
{
    Within *w = NEW(out, Within);
    w->p = p;
    w->first = *p;
    w->once = plain(p);
    w->effort = effort;
    return w;
}

void within_close(Within *w)
{
    arena_free(&w->arena);
}

/* An update: it changes pinned storage and gives nothing else, or is skipped with those. */
static bool may_be_late(const Plan *p, const PlanStep *step)
{
    bool only = step->n_writes > 0;
    for (int32_t i = 0; i < step->n_writes; i++)
        only = only && p->value[step->write[i]].pinned;
    return only || step->guarded;
}

/* By step: nothing that stays where it is reads what it gives, or changes what it reads. */
static bool *find_late(const Plan *p, Arena *out)
{
    bool *late = NEW_ARRAY(out, bool, p->n_steps);
    bool *changed = NEW_ARRAY(out, bool, p->n_values), *read = NEW_ARRAY(out, bool, p->n_values);
    for (int32_t s = p->n_steps; s-- > 0;) {
        const PlanStep *step = &p->step[s];
        late[s] = may_be_late(p, step);
        for (int32_t i = 0; i < step->n_reads; i++)
            late[s] = late[s] && !changed[step->read[i]];
        for (int32_t i = 0; i < step->n_writes; i++)
            late[s] = late[s] && !read[step->write[i]];
        for (int32_t i = 0; i < step->n_reads && !late[s]; i++)
            read[step->read[i]] = read[step->read[i]] || !p->value[step->read[i]].pinned;
        for (int32_t i = 0; i < step->n_writes && !late[s]; i++)
            changed[step->write[i]] = changed[step->write[i]] || p->value[step->write[i]].pinned;
    }
    return late;
}

/* Its steps, updates last: no transfer begins after the first of them, for it may fail. */
static const Plan *updates_last(const Plan *p, Arena *out)
{
    Plan *q = NEW(out, Plan);
    const bool *late = find_late(p, out);
    *q = *p;
    q->step = NEW_ARRAY(out, PlanStep, p->n_steps);
    q->n_steps = 0;
    for (int last = 0; last < 2; last++)
        for (int32_t s = 0; s < p->n_steps; s++)
            if (late[s] == (last != 0))
                q->step[q->n_steps++] = p->step[s];
    return q;
}

static void add_way(Within *w, const Plan *once, double dear, double price)
{
    Way *way = &w->way[w->n_ways++];
    *way = (Way){.w = w, .once = once};
    steps_find(&way->steps, once, &w->arena);
    if (dear > 0)
        steps_may_leave(&way->steps, dear, price, &w->arena);
    way->node = steps_of_nodes(&way->steps, &w->arena);
    way->problem = steps_problem(&way->steps, &w->arena);
    way->planner = planner_open(way->problem, (PlanJudge){way, place_by}, w->effort, &w->arena);
}

/* Whether there is anything to plan; what is needed for it is made once. */
static bool can_plan(Within *w)
{
    static const double little = 0.125;
    if (w->known || w->once.n_steps == 0)
        return w->can;
    w->known = true;
    w->can = steps_find(&w->steps, &w->once, &w->arena);
    if (!w->can)
        return false;
    add_way(w, &w->once, 0, 1);
    if (w->once.may_offload) {
        const Plan *last = updates_last(&w->once, &w->arena);
        add_way(w, last, INFINITY, little);
        add_way(w, last, INFINITY, 1);
        add_way(w, last, 1, little);
    }
    return true;
}

/* The way with the smallest peak that is found, or NULL: that is the first plan. */
static Way *least_way(Within *w, int64_t *least)
{
    Way *best = NULL;
    *least = w->first.peak;
    for (int i = 0; can_plan(w) && i < w->n_ways; i++) {
        int64_t bytes = planner_least(w->way[i].planner)->arena;
        if (bytes < *least) {
            *least = bytes;
            best = &w->way[i];
        }
    }
    return best;
}

int64_t within_least(Within *w)
{
    int64_t least;
    least_way(w, &least);
    return least;
}

static const PlanStep *least_step(Within *w)
{
    int64_t least;
    const Way *way = least_way(w, &least);
    if (way == NULL)
        return &w->first.step[w->first.peak_step];
    const Plan *q = plan_of(way, planner_least(way->planner), -1, w->p->arena);
    return &q->step[q->peak_step];
}

/* The cheaper of `best` (NULL: none yet) and what the way finds within `bytes`. */
static Plan *cheaper(Within *w, const Way *way, int64_t bytes, int64_t budget, Plan *best)
{
    Sequence *s = planner_ladder(way->planner, bytes);
    Plan *q = s == NULL ? NULL : plan_of(way, s, budget, w->p->arena);
    bool fits = q != NULL && q->peak <= budget && plan_parts_over(q) == 0;
    return fits && (best == NULL || plan_cost(q, true) < plan_cost(best, true)) ? q : best;
}

/* Of what may leave. */
static int64_t most_to_move(const Way *way)
{
    int64_t most = 0;
    for (int32_t v = 0; v < way->problem->n; v++)
        if (way->node[v].has && way->problem->node[v].bytes > most)
            most = way->problem->node[v].bytes;
    return most;
}

bool within_plan(Within *w, int64_t budget)
{
    PlanBudget b = {.bytes = budget, .once = w->first.peak};
    if (w->first.peak <= budget || w->once.n_steps == 0) {
        w->p->budget = b;
        return w->first.peak <= budget;
    }
    b.least = within_least(w);
    b.least_at = least_step(w);
    Plan *best = NULL;
    for (int i = 0; can_plan(w) && i < w->n_ways; i++) {
        best = cheaper(w, &w->way[i], budget, budget, best);
        if (i > 0) /* with room to move before there is need */
            best = cheaper(w, &w->way[i], budget - most_to_move(&w->way[i]), budget, best);
    }
    if (best != NULL)
        *w->p = *best;
    w->p->budget = b;
    return best != NULL;
}

/* ---- proofs -------------------------------------------------------------------------- */

/* The node that needs the most while it runs. */
static int32_t largest_node(Within *w)
{
    int32_t at = 0;
    for (int32_t v = 1; v < w->steps.n; v++)
        if (steps_working_set(&w->steps, v, &w->arena) >
            steps_working_set(&w->steps, at, &w->arena))
            at = v;
    return at;
}

/* The bound of one moment, as the checker adds it up; INT64_MAX: no plan keeps to the budget. */
static int64_t bound_of(Within *w, int32_t moment, int64_t budget, BoundEffort effort)
{
    ArenaMark mark = arena_mark(&w->arena);
    const Problem *r = steps_relaxed(&w->steps, moment, &w->arena);
    const Bound *b = bound_at(r, moment, budget, INT64_MAX, effort, &w->arena);
    const char *error;
    int64_t bound = check_proof(r, &b->proof, budget, &w->arena, &error);
    assert(error == NULL);
    arena_reset(&w->arena, mark);
    return bound;
}

enum { MOMENTS = 24 };

/* Every so many nodes, of those at which the plan that runs every step once has too much. */
static void find_bound(Within *w, int64_t budget, PlanBudget *b)
{
    bool max = w->effort == EFFORT_MAX;
    BoundEffort e = {.work = max ? INT64_C(1000000000) : INT64_C(50000000), .cases = max ? 60 : 4};
    const Sequence *s = sequence_base(w->way[0].problem, &w->arena);
    int32_t n = 0, moments = max ? 4 * MOMENTS : MOMENTS;
    for (int32_t v = 0; v < s->n; v++)
        n += s->live[v] > budget;
    for (int32_t v = 0, i = 0; v < s->n && b->impossible == NULL; v++) {
        if (s->live[v] <= budget)
            continue;
        bool look = n <= moments || i * (int64_t)moments / n != (i + 1) * (int64_t)moments / n;
        int64_t bound = look ? bound_of(w, v, budget, e) : 0;
        i++;
        if (bound == INT64_MAX) {
            b->impossible = "what can't run again does not fit beside";
            b->impossible_at = &w->once.step[v];
        } else if (bound > b->bound) {
            b->bound = bound;
        }
    }
}

void within_prove(Within *w, int64_t budget)
{
    PlanBudget *b = &w->p->budget;
    bool moves = w->once.may_offload || w->first.store_bytes > 0;
    if (w->first.peak <= budget || !can_plan(w))
        return;
    int32_t at = largest_node(w);
    int64_t most = steps_working_set(&w->steps, at, &w->arena);
    if (most <= budget && moves) /* the proof is of values that stay in the block */
        return;
    b->tried = true;
    if (most <= budget) {
        find_bound(w, budget, b);
        return;
    }
    b->impossible_at = &w->once.step[at];
    b->impossible = arena_printf(w->p->arena, "%lld bytes are needed at once by", (long long)most);
}
