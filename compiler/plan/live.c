/* Live ranges, shared storage and frees of a plan whose steps are in order.
 *
 * Three walks over the steps. The first counts the ranges, the second opens and
 * extends them; then every last read is known, and the third decides, step by step,
 * which writes take over the storage of a value that dies there.
 *
 * Sizes are rounded up to BLOCK_ALIGN here as in the placement, so that live_peak
 * is a bound that a placement without holes reaches. */
#include "plan.h"

#include <assert.h>
#include <stdlib.h>

static int64_t block_bytes(int64_t bytes)
{
    return align_up(bytes, BLOCK_ALIGN);
}

/* Values that have ranges; pinned ones live for ever, 0 bytes are not in the block. */
static bool has_ranges(const PlanValue *v)
{
    return !v->pinned && v->bytes > 0;
}

/* Filled by the caller before the first step runs. */
static bool is_given(const PlanValue *v)
{
    return v->role == ROLE_INPUT || v->role == ROLE_STAGING;
}

typedef struct Pair Pair;

typedef struct Live {
    Plan *p;
    int32_t n_given;  /* ranges [0, n_given) are open before the first step */
    int32_t *current; /* by value: the range that a read means, or -1 */
    int32_t *taker;   /* by range: the one that takes over its storage, or -1 */
    int32_t *visited; /* by range: the write that last tried to take it */
    Pair *pair;       /* of the step at hand */
    int32_t n_pairs;
} Live;

/* ---- ranges ---------------------------------------------------------------- */

typedef enum Seen { UNSEEN, READ_FIRST, WRITTEN } Seen;

static bool meet(const Plan *p, Seen *seen, int32_t value, Seen how)
{
    if (!has_ranges(&p->value[value]))
        return false;
    bool first = seen[value] == UNSEEN;
    if (first)
        seen[value] = how;
    return how == WRITTEN || first;
}

/* Marks how each value is first met; returns how many ranges there will be. */
static int32_t count_ranges(const Plan *p, Seen *seen)
{
    int32_t n = 0;
    for (int32_t s = 0; s < p->n_steps; s++) {
        const PlanStep *step = &p->step[s];
        for (int32_t i = 0; i < step->n_reads; i++)
            n += meet(p, seen, step->read[i], READ_FIRST);
        for (int32_t i = 0; i < step->n_writes; i++)
            n += meet(p, seen, step->write[i], WRITTEN);
    }
    for (int32_t v = 0; v < p->n_values && p->n_steps > 0; v++)
        if (p->value[v].to_end && is_given(&p->value[v]))
            n += meet(p, seen, v, READ_FIRST);
    return n;
}

static int32_t open_range(Plan *p, int32_t value, int32_t step)
{
    int32_t r = p->n_ranges++;
    p->range[r] = (PlanRange){.value = value, .from = step, .to = step, .storage = r, .offset = -1};
    return r;
}

/* Ranges of what is there before the first step, in the order of the values. */
static void open_given(Live *l, const Seen *seen)
{
    Plan *p = l->p;
    for (int32_t v = 0; v < p->n_values; v++) {
        l->current[v] = -1;
        if (!p->value[v].pinned)
            p->value[v].offset = -1;
        if (seen[v] == READ_FIRST) {
            assert(is_given(&p->value[v]) && "every value is written before it is read");
            l->current[v] = open_range(p, v, 0);
        }
    }
    l->n_given = p->n_ranges;
}

static void open_and_extend(Live *l)
{
    Plan *p = l->p;
    for (int32_t s = 0; s < p->n_steps; s++) {
        const PlanStep *step = &p->step[s];
        for (int32_t i = 0; i < step->n_reads; i++)
            if (l->current[step->read[i]] >= 0)
                p->range[l->current[step->read[i]]].to = s;
        for (int32_t i = 0; i < step->n_writes; i++)
            if (has_ranges(&p->value[step->write[i]]))
                l->current[step->write[i]] = open_range(p, step->write[i], s);
    }
    for (int32_t v = 0; v < p->n_values; v++)
        if (p->value[v].to_end && l->current[v] >= 0)
            p->range[l->current[v]].to = p->n_steps - 1;
}

/* ---- storage shared in place ------------------------------------------------ */

/* A write that could take over the storage of a read. Bytes are rounded up. */
struct Pair {
    int32_t read, write; /* ranges */
    int64_t read_bytes, write_bytes;
    int32_t order;
};

/* Largest writes first, and for each the read that fits it best: the tail that
 * is left of a larger storage is free again, but a hole is hard to fill. */
static int by_saving(const void *a, const void *b)
{
    const Pair *x = a, *y = b;
    if (x->write_bytes != y->write_bytes)
        return x->write_bytes > y->write_bytes ? -1 : 1;
    if (x->write != y->write)
        return x->write < y->write ? -1 : 1;
    if (x->read_bytes != y->read_bytes)
        return x->read_bytes < y->read_bytes ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* The range that the step opens for the value, or -1; `first` is the first range
 * that any write of the step opens. */
static int32_t opened(const Plan *p, const PlanStep *step, int32_t first, int32_t value)
{
    for (int32_t i = 0, r = first; i < step->n_writes; i++) {
        if (!has_ranges(&p->value[step->write[i]]))
            continue;
        if (step->write[i] == value)
            return r;
        r++;
    }
    return -1;
}

/* Of a result that is read after the last step, the storage is not to be had. */
static bool dies_at(const Live *l, int32_t range, int32_t s)
{
    const PlanRange *r = &l->p->range[range];
    bool last_store = r->to == l->p->n_steps - 1 && l->p->value[r->value].to_end;
    return r->to == s && !last_store;
}

static void collect_pairs(Live *l, int32_t s, int32_t first)
{
    const Plan *p = l->p;
    const PlanStep *step = &p->step[s];
    l->n_pairs = 0;
    for (int32_t i = 0; i < step->n_inplace; i++) {
        int32_t read = l->current[step->inplace[i].read];
        int32_t write = opened(p, step, first, step->inplace[i].write);
        if (read < 0 || write < 0 || !dies_at(l, read, s))
            continue;
        Pair pair = {read, write, block_bytes(p->value[step->inplace[i].read].bytes),
                     block_bytes(p->value[step->inplace[i].write].bytes), i};
        if (pair.write_bytes <= pair.read_bytes)
            l->pair[l->n_pairs++] = pair;
    }
    qsort(l->pair, (size_t)l->n_pairs, sizeof *l->pair, by_saving);
}

/* Finds a storage for `write`, moving earlier writes to other storages if they
 * have one (an augmenting path); `attempt` is the write that began it. */
static bool take(Live *l, int32_t write, int32_t attempt)
{
    for (int32_t i = 0; i < l->n_pairs; i++) {
        int32_t read = l->pair[i].read;
        if (l->pair[i].write != write || l->visited[read] == attempt)
            continue;
        l->visited[read] = attempt;
        if (l->taker[read] < 0 || take(l, l->taker[read], attempt)) {
            l->taker[read] = write;
            return true;
        }
    }
    return false;
}

/* What a write saves depends on the write alone, so that taking the writes by
 * falling size, each if all before it keep a storage, saves the most there is
 * (the sets of writes that can be matched are a matroid). */
static void share_step(Live *l, int32_t s, int32_t first)
{
    collect_pairs(l, s, first);
    for (int32_t i = 0; i < l->n_pairs; i++)
        if (i == 0 || l->pair[i].write != l->pair[i - 1].write)
            take(l, l->pair[i].write, l->pair[i].write);
    for (int32_t i = 0; i < l->n_pairs; i++) {
        const Pair *pair = &l->pair[i];
        if (l->taker[pair->read] == pair->write)
            l->p->range[pair->write].storage = l->p->range[pair->read].storage;
    }
}

static void share(Live *l)
{
    Plan *p = l->p;
    for (int32_t v = 0; v < p->n_values; v++)
        l->current[v] = -1;
    for (int32_t r = 0; r < p->n_ranges; r++)
        l->taker[r] = l->visited[r] = -1;
    for (int32_t r = 0; r < l->n_given; r++)
        l->current[p->range[r].value] = r;
    int32_t next = l->n_given; /* stores are numbered in their order */
    for (int32_t s = 0; s < p->n_steps; s++) {
        const PlanStep *step = &p->step[s];
        if (step->n_inplace > 0)
            share_step(l, s, next);
        for (int32_t i = 0; i < step->n_writes; i++)
            if (has_ranges(&p->value[step->write[i]]))
                l->current[step->write[i]] = next++;
    }
}

/* ---- frees, lanes, peak ------------------------------------------------------ */

static void list_frees(Plan *p, int32_t *list)
{
    for (int32_t s = 0; s < p->n_steps; s++)
        p->step[s].n_frees = 0;
    for (int32_t r = 0; r < p->n_ranges; r++)
        p->step[p->range[r].to].n_frees++;
    for (int32_t s = 0; s < p->n_steps; s++) {
        p->step[s].frees = list;
        list += p->step[s].n_frees;
        p->step[s].n_frees = 0;
    }
    for (int32_t r = 0; r < p->n_ranges; r++) {
        PlanStep *step = &p->step[p->range[r].to];
        step->frees[step->n_frees++] = r;
    }
}

/* A range that takes over a storage counts from the next step on: in the step of
 * the write, the range that it takes over is counted, and is no smaller. */
int64_t *plan_live(const Plan *p, Arena *a)
{
    int64_t *live = NEW_ARRAY(a, int64_t, p->n_steps + 2);
    for (int32_t r = 0; r < p->n_ranges; r++) {
        const PlanRange *range = &p->range[r];
        bool taken_over = range->storage != r;
        live[range->from + taken_over] += block_bytes(p->value[range->value].bytes);
        live[range->to + 1] -= block_bytes(p->value[range->value].bytes);
    }
    int64_t sum = block_bytes(p->base);
    for (int32_t s = 0; s < p->n_steps; s++) {
        sum += live[s];
        live[s] = sum + plan_own_bytes(p, &p->step[s]);
    }
    return live;
}

/* gives: live_peak and peak_step. */
void plan_find_peak(Plan *p)
{
    ArenaMark mark = arena_mark(p->arena);
    const int64_t *live = plan_live(p, p->arena);
    p->live_peak = block_bytes(p->base);
    p->peak_step = 0;
    for (int32_t s = 0; s < p->n_steps; s++)
        if (live[s] > p->live_peak) {
            p->live_peak = live[s];
            p->peak_step = s;
        }
    arena_reset(p->arena, mark);
}

static int32_t most_inplace(const Plan *p)
{
    int32_t most = 0;
    for (int32_t s = 0; s < p->n_steps; s++)
        if (p->step[s].n_inplace > most)
            most = p->step[s].n_inplace;
    return most;
}

void plan_liveness(Plan *p)
{
    Live l = {.p = p, .current = NEW_ARRAY(p->arena, int32_t, p->n_values)};
    Seen *seen = NEW_ARRAY(p->arena, Seen, p->n_values);
    int32_t n = count_ranges(p, seen);
    p->range = NEW_ARRAY(p->arena, PlanRange, n);
    p->n_ranges = 0;
    int32_t *frees = NEW_ARRAY(p->arena, int32_t, n);
    open_given(&l, seen);
    open_and_extend(&l);
    assert(p->n_ranges == n);

    ArenaMark mark = arena_mark(p->arena);
    l.taker = NEW_ARRAY(p->arena, int32_t, n);
    l.visited = NEW_ARRAY(p->arena, int32_t, n);
    l.pair = NEW_ARRAY(p->arena, Pair, most_inplace(p));
    share(&l);
    list_frees(p, frees);
    plan_find_peak(p);
    arena_reset(p->arena, mark);
}
