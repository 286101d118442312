/* An entry within a byte budget: its steps as a planning problem (within_problem.h), and
 * schedules of that back as plans. A schedule is judged by the plan that comes of it. */
#include "within.h"

#include <assert.h>
#include <string.h>

#include "check_sequence.h"
#include "place.h"
#include "recompute.h"
#include "within_problem.h"

/* Of placing one schedule. */
enum { PLACE_WORK_EACH = 100000, PLACE_WORK_MAX = 4000000 };

struct Within {
    Plan *p;
    Plan once; /* what p was at first */
    PlanEffort effort;
    Steps steps;
    bool can; /* steps may run again */
    Problem *problem;
    Planner *planner; /* NULL before it is needed */
    Arena arena;
};

/* ---- from a schedule to a plan --------------------------------------------------- */

static int32_t count_steps(const Within *w, const Sequence *s)
{
    int32_t n = s->n;
    for (int32_t i = 0; i < s->n; i++)
        if (s->node[i] == w->steps.update)
            n += w->once.n_steps - w->steps.update - 1;
    return n;
}

static void put_steps(const Within *w, const Sequence *s, Plan *q)
{
    int32_t *runs = NEW_ARRAY(q->arena, int32_t, w->steps.n), n = 0;
    for (int32_t i = 0; i < s->n; i++) {
        int32_t v = s->node[i], to = v == w->steps.update ? w->once.n_steps : v + 1;
        for (int32_t k = v; k < to; k++) {
            q->step[n] = w->once.step[k];
            q->step[n++].run = runs[v];
        }
        runs[v]++;
    }
}

/* With its own ranges; the offsets are still to be found. */
static Plan *plan_of(const Within *w, const Sequence *s, Arena *out)
{
    Plan *q = NEW(out, Plan);
    *q = w->once;
    q->arena = out;
    q->value = NEW_ARRAY(out, PlanValue, q->n_values);
    memcpy(q->value, w->once.value, sizeof *q->value * (size_t)q->n_values);
    q->n_steps = count_steps(w, s);
    q->step = NEW_ARRAY(out, PlanStep, q->n_steps);
    put_steps(w, s, q);
    plan_liveness(q);
    return q;
}

static void place(const Within *w, Plan *q, const Sequence *s)
{
    plan_place_within(q, s->enough, w->effort == EFFORT_MAX ? PLACE_WORK_MAX : PLACE_WORK_EACH);
}

/* ---- the judge --------------------------------------------------------------------- */

static bool runs_once(const Sequence *s, int32_t nodes)
{
    bool once = s->n == nodes;
    for (int32_t v = 0; v < nodes && once; v++)
        once = s->node[v] == v;
    return once;
}

static void place_by(void *of, Sequence *s)
{
    const Within *w = of;
    Arena scratch = {0};
    s->placed = true;
    s->arena = w->once.peak;
    if (w->p->n_parts > 0 || !runs_once(s, w->steps.n)) {
        Plan *q = plan_of(w, s, &scratch);
        place(w, q, s);
        s->arena = q->peak;
        if (q->n_parts > 0)
            plan_parts(q);
        if (plan_parts_over(q) > 0) /* more than any budget for which steps run again */
            s->arena = w->once.peak + plan_parts_over(q);
    }
    arena_free(&scratch);
}

/* ---- */

Within *within_open(Plan *p, PlanEffort effort, Arena *out)
{
    Within *w = NEW(out, Within);
    w->p = p;
    w->once = *p;
    w->effort = effort;
    return w;
}

void within_close(Within *w)
{
    arena_free(&w->arena);
}

/* Whether there is anything to plan; what is needed for it is made once. */
static bool can_plan(Within *w)
{
    if (w->problem != NULL || w->once.n_steps == 0)
        return w->can;
    w->can = steps_find(&w->steps, &w->once, &w->arena);
    if (!w->can)
        return false;
    w->problem = steps_problem(&w->steps, &w->arena);
    PlanJudge judge = {w, place_by};
    w->planner = planner_open(w->problem, judge, w->effort, &w->arena);
    return true;
}

int64_t within_least(Within *w)
{
    int64_t least = can_plan(w) ? planner_least(w->planner)->arena : w->once.peak;
    return least < w->once.peak ? least : w->once.peak;
}

/* The step of the least plan at which most is live. */
static const PlanStep *least_step(Within *w)
{
    if (!can_plan(w) || within_least(w) == w->once.peak)
        return &w->once.step[w->once.peak_step];
    const Plan *q = plan_of(w, planner_least(w->planner), w->p->arena);
    return &q->step[q->peak_step];
}

bool within_plan(Within *w, int64_t budget)
{
    PlanBudget b = {.bytes = budget, .once = w->once.peak};
    if (w->once.peak <= budget || w->once.n_steps == 0) {
        w->p->budget = b;
        return w->once.peak <= budget;
    }
    b.least = within_least(w);
    b.least_at = least_step(w);
    Sequence *s = b.least <= budget ? planner_ladder(w->planner, budget) : NULL;
    if (s != NULL) {
        Plan *q = plan_of(w, s, w->p->arena);
        place(w, q, s);
        *w->p = *q;
        if (q->n_parts > 0)
            plan_parts(w->p);
    }
    w->p->budget = b;
    return s != NULL;
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
    const Sequence *s = sequence_base(w->problem, &w->arena);
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
    if (w->once.peak <= budget || !can_plan(w))
        return;
    int32_t at = largest_node(w);
    int64_t most = steps_working_set(&w->steps, at, &w->arena);
    b->tried = true;
    if (most <= budget) {
        find_bound(w, budget, b);
        return;
    }
    b->impossible_at = &w->once.step[at];
    b->impossible = arena_printf(w->p->arena, "%lld bytes are needed at once by", (long long)most);
}
