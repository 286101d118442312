/* An entry within a byte budget: its steps as a planning problem, and back.
 *
 * Steps that only compute (all before the first that changes pinned storage) may run
 * again and in another order; the update stays where it is, as the end. A problem has one
 * output per node, and knows nothing of writing in place, so it asks for more bytes
 * than the steps need: a schedule is judged by the plan that comes of it. */
#include "within.h"

#include <string.h>

#include "place.h"
#include "polish.h"

enum {
    RUNGS = 32,
    LEAST_MOVES = 30000, /* to find the smallest, for each of three starts */
    RUNG_MOVES = 3000,
    PLACE_WORK_EACH = 1000000 /* of placing one rung */
};

typedef struct Within {
    const Plan *p;
    Arena *arena;
    int64_t budget;
    int32_t n_pure;  /* steps that may run again; the first ones */
    int32_t *writer; /* by value: the step that stores it, or -1 */
    Problem *problem;
    Plan *best; /* the cheapest within the budget, or NULL */
    int64_t best_cost;
    int64_t least; /* peak of all that were tried */
} Within;

static int64_t block_bytes(int64_t bytes)
{
    return align_up(bytes, BLOCK_ALIGN);
}

/* ---- the problem ----------------------------------------------------------- */

static bool changes_pinned(const Plan *p, const PlanStep *s)
{
    for (int32_t i = 0; i < s->n_writes; i++)
        if (p->value[s->write[i]].pinned)
            return true;
    return s->guarded;
}

static int64_t given_bytes(const Plan *p)
{
    int64_t sum = 0;
    for (int32_t v = 0; v < p->n_values; v++)
        if (!p->value[v].pinned &&
            (p->value[v].role == ROLE_INPUT || p->value[v].role == ROLE_STAGING))
            sum += block_bytes(p->value[v].bytes);
    return sum;
}

static void find_writers(Within *w)
{
    const Plan *p = w->p;
    w->writer = NEW_ARRAY(w->arena, int32_t, p->n_values);
    for (int32_t v = 0; v < p->n_values; v++)
        w->writer[v] = -1;
    for (int32_t s = 0; s < p->n_steps; s++)
        for (int32_t i = 0; i < p->step[s].n_writes; i++)
            w->writer[p->step[s].write[i]] = s;
    while (w->n_pure < p->n_steps && !changes_pinned(p, &p->step[w->n_pure]))
        w->n_pure++;
}

/* By value: a step of the end reads it. */
static bool *read_at_end(const Within *w)
{
    bool *read = NEW_ARRAY(w->arena, bool, w->p->n_values);
    for (int32_t s = w->n_pure; s < w->p->n_steps; s++)
        for (int32_t i = 0; i < w->p->step[s].n_reads; i++)
            read[w->p->step[s].read[i]] = true;
    return read;
}

static void make_problem(Within *w)
{
    const Plan *p = w->p;
    ProblemMake m = {.arena = w->arena};
    bool *kept = read_at_end(w);
    for (int32_t s = 0; s < w->n_pure; s++) {
        const PlanStep *st = &p->step[s];
        ProblemNode node = {.name = st->label, .cost = plan_step_cost(st), .pure = true};
        node.scratch = block_bytes(st->workspace);
        for (int32_t i = 0; i < st->n_writes; i++) {
            const PlanValue *v = &p->value[st->write[i]];
            node.bytes += block_bytes(v->bytes);
            node.keep = node.keep || v->to_end || kept[st->write[i]];
        }
        problem_node(&m, node);
        for (int32_t i = 0; i < st->n_reads; i++)
            if (w->writer[st->read[i]] >= 0 && w->writer[st->read[i]] < s)
                problem_input(&m, w->writer[st->read[i]]);
    }
    int64_t pinned = block_bytes(p->base) + p->threads_max * p->lane_bytes + given_bytes(p);
    w->problem = problem_end(&m, pinned);
}

/* ---- back ------------------------------------------------------------------- */

/* The plan of a schedule, with its own ranges and offsets. */
static Plan *plan_of(const Within *w, const Sequence *s)
{
    Plan *q = NEW(w->p->arena, Plan);
    int32_t end = w->p->n_steps - w->n_pure;
    int32_t *runs = NEW_ARRAY(w->arena, int32_t, w->n_pure);
    *q = *w->p;
    q->value = NEW_ARRAY(q->arena, PlanValue, q->n_values);
    memcpy(q->value, w->p->value, sizeof *q->value * (size_t)q->n_values);
    q->n_steps = s->n + end;
    q->step = NEW_ARRAY(q->arena, PlanStep, q->n_steps);
    for (int32_t i = 0; i < s->n; i++) {
        q->step[i] = w->p->step[s->node[i]];
        q->step[i].run = runs[s->node[i]]++;
    }
    if (end > 0)
        memcpy(&q->step[s->n], &w->p->step[w->n_pure], sizeof *q->step * (size_t)end);
    plan_liveness(q);
    plan_place_effort(q, PLACE_WORK_EACH);
    return q;
}

/* Keeps the plan if it is within the budget, and cheaper. */
static void offer(Within *w, const Sequence *s)
{
    Plan *q = plan_of(w, s);
    w->least = q->peak < w->least ? q->peak : w->least;
    if (q->peak > w->budget || (w->best != NULL && s->cost >= w->best_cost))
        return;
    w->best = q;
    w->best_cost = s->cost;
}

/* ---- search ------------------------------------------------------------------ */

static const Sequence *smaller(const Sequence *a, const Sequence *b)
{
    return b->max_live < a->max_live || (b->max_live == a->max_live && b->cost < a->cost) ? b : a;
}

/* As few bytes as can be found, whatever the time. */
static const Sequence *find_least(const Within *w)
{
    const Sequence *base = sequence_base(w->problem, w->arena), *least = base;
    int64_t most = 0;
    for (int32_t v = 0; v < w->problem->n; v++)
        if (problem_working_set(w->problem, v) > most)
            most = problem_working_set(w->problem, v);
    PolishAim aim = {
        .budget = most, .enough = INT64_MAX, .moves = LEAST_MOVES, .hot = 3e-2, .cold = 1e-5};
    for (int i = 0; i < 3 && least->max_live > most; i++) {
        aim.seed = (uint64_t)i;
        least = smaller(least, polish(w->problem, i == 0 ? base : least, aim, w->arena));
    }
    return least;
}

/* Schedules for budgets of the problem from the least to storing all. What a rung gives
 * does not depend on the budget that is asked for, and the cheapest one that fits is
 * taken: more bytes never cost more time. Each rung begins with the one below. */
static void climb(Within *w, const Sequence *least, int64_t most)
{
    const Sequence *s = least;
    for (int i = 0; i < RUNGS; i++) {
        PolishAim aim = {.budget = least->max_live + (most - least->max_live) / RUNGS * i,
                         .enough = w->problem->cost_base,
                         .moves = RUNG_MOVES,
                         .hot = 3e-3,
                         .cold = 1e-6,
                         .seed = (uint64_t)i};
        const Sequence *next = polish(w->problem, s, aim, w->arena);
        if (next->max_live <= aim.budget && next->cost < s->cost)
            s = next;
        offer(w, s);
    }
}

bool plan_within(Plan *p, int64_t budget, int64_t *least)
{
    Arena scratch = {0};
    Within w = {.p = p, .arena = &scratch, .budget = budget, .least = p->peak};
    if (p->peak <= budget)
        return true;
    find_writers(&w);
    if (w.n_pure > 0) {
        make_problem(&w);
        int64_t all = sequence_base(w.problem, &scratch)->max_live;
        climb(&w, find_least(&w), all);
    }
    if (w.best != NULL)
        *p = *w.best;
    *least = w.least;
    arena_free(&scratch);
    return w.best != NULL;
}
