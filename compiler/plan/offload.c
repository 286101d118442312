/* Where transfers stand among the steps of a plan. */
#include "offload.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "place.h"

/* One stay of a value outside of the block: steps are those that are given. */
typedef struct Stay {
    int32_t value;
    int32_t stored; /* by this step, or by a stay before */
    int32_t before; /* the last use; -1: none but `stored` */
    int32_t after;  /* the next use: the value has to be there before this step */
    bool goes;      /* out: the first stay of the value */
    int32_t leaves; /* wait for the way out before this step */
    int32_t enters; /* begin the way in before this step ... */
    double begins;  /* ... at this time */
} Stay;

typedef struct Moving {
    Plan *p;
    Arena *arena;
    double *time;   /* by step: ns at which it begins, with nothing to wait for */
    int32_t fixed;  /* the first step that changes what lasts: transfers are over before */
    VEC(Stay) stay; /* by STEP_IN */
    VEC(PlanStep) made;
} Moving;

static bool is_in(const int32_t *list, int32_t n, int32_t v)
{
    for (int32_t i = 0; i < n; i++)
        if (list[i] == v)
            return true;
    return false;
}

static bool reads(const PlanStep *s, int32_t v)
{
    return is_in(s->read, s->n_reads, v);
}

static bool stores(const PlanStep *s, int32_t v)
{
    return is_in(s->write, s->n_writes, v);
}

/* ---- time ------------------------------------------------------------------------- */

double offload_duration(const Plan *p, int32_t value)
{
    const CostModel *m = p->cost != NULL ? p->cost : &cost_time;
    return (double)TRANSFER_NS + (double)p->value[value].bytes / m->store;
}

static double *times_of(const Plan *p, Arena *arena)
{
    double *time = NEW_ARRAY(arena, double, p->n_steps + 1);
    for (int32_t s = 0; s < p->n_steps; s++) {
        bool runs = p->step[s].kind == STEP_RUN;
        time[s + 1] = time[s] + (runs ? (double)plan_step_cost(p, &p->step[s]) : 0);
    }
    return time;
}

/* The first step that writes pinned storage, be it skipped or not. */
static int32_t first_change(const Plan *p)
{
    for (int32_t s = 0; s < p->n_steps; s++) {
        if (p->step[s].guarded)
            return s;
        for (int32_t i = 0; i < p->step[s].n_writes; i++)
            if (p->value[p->step[s].write[i]].pinned)
                return s;
    }
    return p->n_steps;
}

/* ---- what the model asks ------------------------------------------------------------- */

PlanStep offload_step(const Plan *p, StepKind kind, int32_t value)
{
    static const char *const what[] = {
        [STEP_OUT] = "write out", [STEP_IN] = "read in", [STEP_WAIT] = "wait for"};
    const PlanValue *v = &p->value[value];
    PlanStep s = {.kind = kind, .group = -1, .node = v->node, .origin = v->origin};
    int32_t **list = kind == STEP_IN ? &s.write : &s.read;
    *list = NEW_ARRAY(p->arena, int32_t, 1);
    **list = value;
    *(kind == STEP_IN ? &s.n_writes : &s.n_reads) = 1;
    s.label = arena_printf(p->arena, "%s %s", what[kind], v->name == NULL ? "?" : v->name);
    return s;
}

/* The use before which the value comes in; -1: none. */
static int32_t use_to_come_in_for(const Plan *p, int32_t v, const double *time, int32_t reverse)
{
    int32_t last = -1, at = -1;
    double longest = 0;
    for (int32_t s = 0; s < p->n_steps; s++) {
        bool used = reads(&p->step[s], v), stored = stores(&p->step[s], v);
        if (used && last >= 0 && s >= reverse && time[s] - time[last + 1] > longest) {
            longest = time[s] - time[last + 1];
            at = s;
        }
        if (used || stored)
            last = s;
    }
    return at;
}

bool offload_asked(Plan *p)
{
    ArenaMark mark = arena_mark(p->arena);
    int32_t *before = NEW_ARRAY(p->arena, int32_t, p->n_values), n = 0, reverse = 0;
    double *time = times_of(p, p->arena);
    while (reverse < p->n_steps && !p->step[reverse].reverse)
        reverse++;
    for (int32_t v = 0; v < p->n_values; v++) {
        const PlanValue *value = &p->value[v];
        bool can = value->offload && !value->pinned && value->bytes > 0;
        before[v] = can ? use_to_come_in_for(p, v, time, reverse) : -1;
        n += before[v] >= 0;
    }
    if (n == 0) {
        arena_reset(p->arena, mark);
        return false;
    }
    PlanStep *made = NEW_ARRAY(p->arena, PlanStep, p->n_steps + n);
    int32_t m = 0;
    for (int32_t s = 0; s < p->n_steps; s++) {
        for (int32_t v = 0; v < p->n_values; v++)
            if (before[v] == s)
                made[m++] = offload_step(p, STEP_IN, v);
        made[m++] = p->step[s];
    }
    p->step = made;
    p->n_steps = m;
    return true;
}

/* ---- stays --------------------------------------------------------------------------- */

static bool has_gone(const Moving *m, int32_t value)
{
    for (int32_t i = 0; i < m->stay.n; i++)
        if (m->stay.at[i].value == value)
            return true;
    return false;
}

/* The first step at which the value's bytes are not in use any more. */
static int32_t free_from(const Stay *y)
{
    return (y->before > y->stored ? y->before : y->stored) + 1;
}

/* Of the bare STEP_IN at s. Nothing comes in for nobody. */
static void find_stay(Moving *m, int32_t s)
{
    const Plan *p = m->p;
    Stay y = {.value = p->step[s].write[0], .stored = -1, .before = -1, .after = p->n_steps};
    for (int32_t i = s; i-- > 0 && y.stored < 0;) {
        if (y.before < 0 && reads(&p->step[i], y.value))
            y.before = i;
        if (stores(&p->step[i], y.value))
            y.stored = i;
    }
    assert(y.stored >= 0 && "what comes in has gone out");
    for (int32_t i = s + 1; i < p->n_steps && y.after == p->n_steps; i++) {
        if (reads(&p->step[i], y.value))
            y.after = i;
        else if (stores(&p->step[i], y.value))
            return;
    }
    if (y.after == p->n_steps && !p->value[y.value].to_end)
        return;
    y.after = y.after < m->fixed ? y.after : m->fixed;
    if (free_from(&y) > y.after)
        return;
    y.goes = !has_gone(m, y.value);
    vec_push(m->arena, &m->stay, y);
}

static int by_store(const void *a, const void *b)
{
    const Stay *x = *(const Stay *const *)a, *y = *(const Stay *const *)b;
    if (x->stored != y->stored)
        return x->stored < y->stored ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

static int by_need(const void *a, const void *b)
{
    const Stay *x = *(const Stay *const *)a, *y = *(const Stay *const *)b;
    if (x->after != y->after)
        return x->after > y->after ? -1 : 1;
    return (x->value < y->value) - (x->value > y->value);
}

/* The last step that begins at `t` or before, of those in [from, to]. */
static int32_t step_before(const Moving *m, double t, int32_t from, int32_t to)
{
    int32_t s = to;
    while (s > from && m->time[s] > t)
        s--;
    return s;
}

/* Ways in, the last one first: each is over when its value is needed, and when the next one has
 * to begin. `slow` is how many times as long as in the model they may take. */
static void place_entries(Moving *m, Stay **y, double slow)
{
    double next = m->time[m->p->n_steps];
    qsort(y, (size_t)m->stay.n, sizeof *y, by_need);
    for (int32_t i = 0; i < m->stay.n; i++) {
        double ends = m->time[y[i]->after] < next ? m->time[y[i]->after] : next;
        next = y[i]->begins = ends - slow * offload_duration(m->p, y[i]->value);
        y[i]->enters = slow > 0 ? step_before(m, next, free_from(y[i]), y[i]->after) : y[i]->after;
    }
}

/* Ways out, the first one first. They are over before the way in begins, whatever they take. */
static void place_exits(Moving *m, Stay **y, double slow)
{
    double idle = 0;
    qsort(y, (size_t)m->stay.n, sizeof *y, by_store);
    for (int32_t i = 0; i < m->stay.n; i++) {
        if (!y[i]->goes)
            continue;
        double from = m->time[y[i]->stored + 1];
        idle = (idle > from ? idle : from) + slow * offload_duration(m->p, y[i]->value);
        int32_t s = free_from(y[i]);
        while (slow > 0 && s < y[i]->enters && m->time[s] < idle)
            s++;
        y[i]->leaves = s < y[i]->enters ? s : y[i]->enters;
    }
}

/* ---- the steps ------------------------------------------------------------------------ */

static void make(Moving *m, StepKind kind, int32_t value)
{
    PlanStep s = offload_step(m->p, kind, value);
    vec_push(m->arena, &m->made, s);
}

static int by_beginning(const void *a, const void *b)
{
    const Stay *x = *(const Stay *const *)a, *y = *(const Stay *const *)b;
    if (x->begins != y->begins)
        return x->begins < y->begins ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

/* What happens between step s - 1 and step s: what goes out takes no bytes, and what has gone
 * makes room for what comes in. */
static void make_transfers(Moving *m, Stay **y, int32_t s)
{
    for (int32_t i = 0; i < m->stay.n; i++)
        if (y[i]->goes && y[i]->stored + 1 == s)
            make(m, STEP_OUT, y[i]->value);
    for (int32_t i = 0; i < m->stay.n; i++)
        if (y[i]->goes && y[i]->leaves == s)
            make(m, STEP_WAIT, y[i]->value);
    for (int32_t i = 0; i < m->stay.n; i++)
        if (y[i]->enters == s)
            make(m, STEP_IN, y[i]->value);
    for (int32_t i = 0; i < m->stay.n; i++)
        if (y[i]->after == s)
            make(m, STEP_WAIT, y[i]->value);
}

static void assign_stores(Plan *p, const Moving *m)
{
    p->store_bytes = 0;
    for (int32_t i = 0; i < m->stay.n; i++)
        if (m->stay.at[i].goes) {
            PlanValue *v = &p->value[m->stay.at[i].value];
            v->store = p->store_bytes;
            p->store_bytes += align_up(v->bytes, BLOCK_ALIGN);
        }
}

/* Another plan of the same values, with transfers that may take `slow` times as long. */
static Plan moved(const Plan *from, double slow, int64_t work)
{
    Plan p = *from;
    Moving m = {.p = &p, .arena = p.arena};
    p.value = NEW_ARRAY(p.arena, PlanValue, p.n_values);
    memcpy(p.value, from->value, sizeof *p.value * (size_t)p.n_values);
    m.time = times_of(&p, p.arena);
    m.fixed = first_change(&p);
    for (int32_t s = 0; s < p.n_steps; s++)
        if (p.step[s].kind == STEP_IN)
            find_stay(&m, s);
    Stay **y = NEW_ARRAY(p.arena, Stay *, m.stay.n);
    for (int32_t i = 0; i < m.stay.n; i++)
        y[i] = &m.stay.at[i];
    place_entries(&m, y, slow);
    place_exits(&m, y, slow);
    assign_stores(&p, &m);
    qsort(y, (size_t)m.stay.n, sizeof *y, by_beginning);
    for (int32_t s = 0; s <= p.n_steps; s++) {
        make_transfers(&m, y, s);
        if (s < p.n_steps && p.step[s].kind == STEP_RUN)
            vec_push(p.arena, &m.made, p.step[s]);
    }
    p.step = m.made.at;
    p.n_steps = m.made.n;
    plan_liveness(&p);
    plan_place_effort(&p, work);
    plan_parts(&p);
    return p;
}

/* Is q, of transfers that may be slower, better than the best so far? What comes in before the
 * forward pass is over is kept of its part. */
static bool is_better(const Plan *q, double slow, const Plan *best, int64_t limit)
{
    int64_t over = plan_parts_over(q);
    if (best == NULL || over != plan_parts_over(best))
        return best == NULL || over < plan_parts_over(best);
    if (best->peak > limit && q->peak < best->peak)
        return true;
    double waits = offload_transfers(q, NULL).waited, least = offload_transfers(best, NULL).waited;
    return q->peak <= limit && (waits < least || (waits == least && slow > 1));
}

/* Where nothing else is asked, three quarters of what leaving can save are saved. */
static int64_t limit_of(const Plan *p, const Plan *tight, int64_t work)
{
    Plan stays = *p;
    stays.value = NEW_ARRAY(p->arena, PlanValue, p->n_values);
    memcpy(stays.value, p->value, sizeof *p->value * (size_t)p->n_values);
    VEC(PlanStep) step = {0};
    for (int32_t s = 0; s < p->n_steps; s++)
        if (p->step[s].kind == STEP_RUN)
            vec_push(p->arena, &step, p->step[s]);
    stays.step = step.at;
    stays.n_steps = step.n;
    plan_liveness(&stays);
    plan_place_effort(&stays, work);
    int64_t saved = stays.peak - tight->peak;
    return saved > 0 ? tight->peak + saved / 4 : tight->peak;
}

void offload_place(Plan *p, int64_t limit, int64_t work)
{
    static const double slow[] = {0, 0.5, 1, 2, 4};
    enum { WAYS = sizeof slow / sizeof *slow };
    Plan way[WAYS], *best = NULL;
    for (int i = 0; i < (limit < 0 ? 1 : WAYS); i++) {
        way[i] = moved(p, slow[i], work);
        if (limit == 0)
            limit = limit_of(p, &way[0], work);
        if (is_better(&way[i], slow[i], best, limit))
            best = &way[i];
    }
    *p = *best;
}
