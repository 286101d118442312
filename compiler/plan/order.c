/* The order of steps, for fewer live bytes at once.
 *
 * From the order that it is given, by moves that each leave a better one: a step goes to another
 * place, and takes along what has to run before it, or after it. Only steps around the peak are
 * moved, for no other move lowers it: what reads a value for the last time that is live there goes
 * before it, what stores a value that is read later goes behind it. A move is judged by liveness as
 * a whole, with storage that is shared in place: the derivative of a relu, say, can be written over
 * the relu's values once the weights' gradient has been computed of them, and not before.
 *
 * Where little is gained steps stay where they are, so that caches find what they did.
 * source: Ahn et al., Ordering chaos (Serenity, MLSys 2020), for what an order alone can save. */
#include "order.h"

#include <string.h>

enum {
    ORDER_WORK = 12000000, /* in steps, values and ranges looked at */
    NEAR = 12,             /* steps on either side of the peak that are moved, whatever they do */
    SHARE = 64,            /* a value is worth a move if it is such a part of the peak */
    HEIGHTS = 16,          /* live bytes within such a part of the peak count as well */
    LEAST = 128            /* less than such a part of what is not pinned is not worth an order */
};

typedef struct Search {
    const Plan *p;
    int32_t n;               /* steps that may be moved: those before the guarded ones */
    int32_t *first, *before; /* before[first[s] .. first[s + 1]): steps that s has to wait for */
    int32_t *order;          /* best so far; by place */
    int32_t *place;          /* ... by step */
    int32_t *tried;          /* the order that is judged */
    bool *moved;             /* by step: goes along with the one that is moved */
    Plan trial;
    int64_t floor;      /* bytes from which on they count, ... */
    int64_t peak, over; /* of the best: most live bytes; and how far all steps are above `floor` */
    int32_t at;         /* ... and the place of the peak */
    int64_t work;
    Arena arena;
} Search;

/* ---- who waits for whom --------------------------------------------------------- */

static void wait_for(Arena *a, OrderWaits *w, int32_t from, int32_t to)
{
    if (from < 0 || from == to)
        return;
    vec_push(a, &w->from, from);
    vec_push(a, &w->to, to);
}

/* Values are read after they are stored, and stored anew after they have been read. */
static void find_waits(const Plan *p, int32_t n, OrderWaits *w, Arena *a)
{
    typedef VEC(int32_t) Readers;
    int32_t *writer = NEW_ARRAY(a, int32_t, p->n_values);
    Readers *readers = NEW_ARRAY(a, Readers, p->n_values);
    for (int32_t v = 0; v < p->n_values; v++)
        writer[v] = -1;
    for (int32_t s = 0; s < n; s++) {
        const PlanStep *step = &p->step[s];
        for (int32_t i = 0; i < step->n_reads; i++) {
            wait_for(a, w, writer[step->read[i]], s);
            vec_push(a, &readers[step->read[i]], s);
        }
        for (int32_t i = 0; i < step->n_writes; i++) {
            int32_t v = step->write[i];
            wait_for(a, w, writer[v], s);
            for (int32_t k = 0; k < readers[v].n; k++)
                wait_for(a, w, readers[v].at[k], s);
            writer[v] = s;
            readers[v].n = 0;
        }
    }
}

static void sort_waits(Search *o, const OrderWaits *w)
{
    int32_t *fill = NEW_ARRAY(&o->arena, int32_t, o->n);
    o->first = NEW_ARRAY(&o->arena, int32_t, o->n + 1);
    o->before = NEW_ARRAY(&o->arena, int32_t, w->to.n);
    for (int32_t i = 0; i < w->to.n; i++)
        o->first[w->to.at[i] + 1]++;
    for (int32_t s = 0; s < o->n; s++)
        o->first[s + 1] += o->first[s];
    for (int32_t i = 0; i < w->to.n; i++) {
        int32_t s = w->to.at[i];
        o->before[o->first[s] + fill[s]++] = w->from.at[i];
    }
}

static bool waits_for_moved(const Search *o, int32_t s)
{
    for (int32_t i = o->first[s]; i < o->first[s + 1]; i++)
        if (o->moved[o->before[i]])
            return true;
    return false;
}

/* ---- judging ---------------------------------------------------------------------- */

static void judge(Search *o, const int32_t *order, int64_t *peak, int64_t *over, int32_t *at)
{
    const Plan *p = o->p;
    Plan *q = &o->trial;
    ArenaMark mark = arena_mark(&o->arena);
    for (int32_t i = 0; i < o->n; i++)
        q->step[i] = p->step[order[i]];
    q->arena = &o->arena;
    plan_liveness(q);
    const int64_t *live = plan_live(q, &o->arena);
    *peak = q->live_peak;
    *at = q->peak_step;
    *over = 0;
    for (int32_t s = 0; s < p->n_steps; s++)
        *over += live[s] > o->floor ? live[s] - o->floor : 0;
    o->work -= p->n_steps + p->n_values + q->n_ranges;
    arena_reset(&o->arena, mark);
}

static void take_order(Search *o, const int32_t *order)
{
    if (order != o->order)
        memcpy(o->order, order, sizeof *order * (size_t)o->n);
    for (int32_t i = 0; i < o->n; i++)
        o->place[o->order[i]] = i;
}

/* Is the order in o->tried better? Then it is the best. */
static bool try_order(Search *o)
{
    int64_t peak, over;
    int32_t at;
    judge(o, o->tried, &peak, &over, &at);
    if (peak > o->peak || (peak == o->peak && over >= o->over))
        return false;
    o->peak = peak;
    o->over = over;
    o->at = at;
    take_order(o, o->tried);
    return true;
}

/* ---- moves --------------------------------------------------------------------------- */

/* The step at place `from` to place `to`, before it, with all in between that it waits for. */
static bool pull(Search *o, int32_t from, int32_t to)
{
    if (from <= to || from >= o->n)
        return false;
    memset(o->moved, 0, sizeof *o->moved * (size_t)o->n);
    o->moved[o->order[from]] = true;
    for (int32_t i = from; i >= to; i--)
        for (int32_t k = o->first[o->order[i]];
             o->moved[o->order[i]] && k < o->first[o->order[i] + 1]; k++)
            o->moved[o->before[k]] = true;
    if (o->moved[o->order[to]])
        return false;
    int32_t n = to;
    memcpy(o->tried, o->order, sizeof *o->order * (size_t)o->n);
    for (int moved = 1; moved >= 0; moved--)
        for (int32_t i = to; i <= from; i++)
            if (o->moved[o->order[i]] == (moved != 0))
                o->tried[n++] = o->order[i];
    return try_order(o);
}

/* The step at place `from` to place `to`, behind it, with all in between that waits for it. */
static bool push(Search *o, int32_t from, int32_t to)
{
    if (from >= to || to >= o->n)
        return false;
    memset(o->moved, 0, sizeof *o->moved * (size_t)o->n);
    o->moved[o->order[from]] = true;
    for (int32_t i = from + 1; i <= to; i++)
        o->moved[o->order[i]] = waits_for_moved(o, o->order[i]);
    if (o->moved[o->order[to]])
        return false;
    int32_t n = from;
    memcpy(o->tried, o->order, sizeof *o->order * (size_t)o->n);
    for (int moved = 0; moved < 2; moved++)
        for (int32_t i = from; i <= to; i++)
            if (o->moved[o->order[i]] == (moved != 0))
                o->tried[n++] = o->order[i];
    return try_order(o);
}

/* The first place that the step at `at` could have. */
static int32_t earliest(const Search *o, int32_t at)
{
    int32_t s = o->order[at], to = 0;
    for (int32_t i = o->first[s]; i < o->first[s + 1]; i++)
        if (o->place[o->before[i]] >= to)
            to = o->place[o->before[i]] + 1;
    return to;
}

static int32_t latest(Search *o, int32_t at)
{
    memset(o->moved, 0, sizeof *o->moved * (size_t)o->n);
    o->moved[o->order[at]] = true;
    int32_t to = at + 1;
    while (to < o->n && !waits_for_moved(o, o->order[to]))
        to++;
    return to - 1;
}

/* A value of some size: where it is first stored, and last read; places. */
typedef struct ValueSpan {
    int32_t from, next, to; /* stored; first read behind the peak; last read */
} ValueSpan;

static bool move_value(Search *o, const ValueSpan *v)
{
    int32_t at = o->at;
    if (v->to > at && pull(o, v->to, at))
        return true;
    if (v->from == at && v->next > at + 1 && push(o, at, v->next - 1))
        return true;
    if (v->from >= at || v->next <= at)
        return false;
    return push(o, v->from, at) || (v->next < o->n && push(o, v->from, v->next - 1));
}

/* Steps of values that are live at the peak, and not needed there. */
static bool move_values(Search *o)
{
    const Plan *p = o->p;
    ArenaMark mark = arena_mark(&o->arena);
    ValueSpan *span = NEW_ARRAY(&o->arena, ValueSpan, p->n_values);
    for (int32_t v = 0; v < p->n_values; v++)
        span[v] = (ValueSpan){-1, INT32_MAX, -1};
    for (int32_t i = 0; i < o->n; i++) {
        const PlanStep *step = &p->step[o->order[i]];
        for (int32_t k = 0; k < step->n_reads; k++) {
            ValueSpan *s = &span[step->read[k]];
            s->to = i;
            if (i > o->at && i < s->next)
                s->next = i;
        }
        for (int32_t k = 0; k < step->n_writes; k++)
            if (span[step->write[k]].from < 0)
                span[step->write[k]].from = i;
    }
    bool better = false;
    for (int32_t v = 0; v < p->n_values && !better && o->work > 0; v++)
        if (!p->value[v].pinned && p->value[v].bytes > o->peak / SHARE / 16 && span[v].from >= 0 &&
            span[v].from <= o->at && span[v].to >= o->at)
            better = move_value(o, &span[v]);
    arena_reset(&o->arena, mark);
    return better;
}

static bool move_near(Search *o)
{
    int32_t at = o->at;
    if (at >= o->n)
        return false;
    if (pull(o, at, earliest(o, at)) || push(o, at, latest(o, at)))
        return true;
    for (int32_t d = 1; d <= NEAR && o->work > 0; d++) {
        if (pull(o, at + d, at))
            return true;
        if (at >= d && push(o, at - d, at))
            return true;
    }
    return false;
}

/* ---- */

/* It stores nothing but pinned values and numbers. */
static bool is_update(const Plan *p, const PlanStep *s)
{
    for (int32_t i = 0; i < s->n_writes; i++)
        if (!p->value[s->write[i]].pinned && p->value[s->write[i]].bytes > BLOCK_ALIGN)
            return false;
    return s->guarded;
}

/* Steps that may be moved: those before the updates at the end. */
static int32_t count_free(const Plan *p)
{
    int32_t n = p->n_steps;
    while (n > 0 && is_update(p, &p->step[n - 1]))
        n--;
    return n;
}

static bool may_move(const Plan *p)
{
    for (int32_t v = 0; v < p->n_values; v++)
        if (p->value[v].offload)
            return false;
    return p->store_bytes == 0;
}

static void open_search(Search *o, const Plan *p, const OrderWaits *more)
{
    OrderWaits w = {0};
    o->p = p;
    o->n = count_free(p);
    o->work = ORDER_WORK;
    find_waits(p, o->n, &w, &o->arena);
    for (int32_t i = 0; i < more->to.n; i++)
        if (more->to.at[i] < o->n)
            wait_for(&o->arena, &w, more->from.at[i], more->to.at[i]);
    sort_waits(o, &w);
    o->order = NEW_ARRAY(&o->arena, int32_t, o->n);
    o->place = NEW_ARRAY(&o->arena, int32_t, o->n);
    o->tried = NEW_ARRAY(&o->arena, int32_t, o->n);
    o->moved = NEW_ARRAY(&o->arena, bool, o->n);
    o->trial = *p;
    o->trial.value = NEW_ARRAY(&o->arena, PlanValue, p->n_values);
    o->trial.step = NEW_ARRAY(&o->arena, PlanStep, p->n_steps);
    memcpy(o->trial.value, p->value, sizeof *p->value * (size_t)p->n_values);
    memcpy(o->trial.step, p->step, sizeof *p->step * (size_t)p->n_steps);
    for (int32_t i = 0; i < o->n; i++)
        o->order[i] = i;
    take_order(o, o->order);
}

static void set_floor(Search *o)
{
    o->floor = o->peak - o->peak / HEIGHTS;
    judge(o, o->order, &o->peak, &o->over, &o->at);
}

const int32_t *plan_order(const Plan *p, const OrderWaits *more, Arena *out)
{
    Search o = {0};
    if (p->n_steps < 3 || p->n_values == 0 || count_free(p) == 0 || !may_move(p))
        return NULL;
    open_search(&o, p, more);
    o.peak = p->live_peak;
    set_floor(&o);
    int64_t first = o.peak;
    while (o.work > 0 && (move_values(&o) || move_near(&o)))
        if (o.peak < o.floor + o.floor / HEIGHTS / 2)
            set_floor(&o);
    int32_t *order = NULL;
    if (first - o.peak > (first - p->base) / LEAST) {
        order = NEW_ARRAY(out, int32_t, p->n_steps);
        for (int32_t s = 0; s < p->n_steps; s++)
            order[s] = s < o.n ? o.order[s] : s;
    }
    arena_free(&o.arena);
    return order;
}
