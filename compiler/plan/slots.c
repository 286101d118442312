#include "slots.h"

#include <assert.h>
#include <string.h>

/* ---- lists ------------------------------------------------------------------------- */

int32_t slots_before(const SlotList *list, int32_t slot)
{
    int32_t low = 0, high = list->n;
    while (low < high) {
        int32_t middle = (low + high) / 2;
        if (list->at[middle] < slot)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

static void list_insert(Slots *x, SlotList *list, int32_t slot)
{
    if (list->n == list->cap)
        list->at = vec_grow(x->arena, list->at, sizeof *list->at, &list->cap);
    int32_t i = list->n++;
    for (; i > 0 && list->at[i - 1] > slot; i--)
        list->at[i] = list->at[i - 1];
    list->at[i] = slot;
}

static void list_delete(SlotList *list, int32_t slot)
{
    int32_t i = slots_before(list, slot) + 1;
    assert(i < list->n && list->at[i] == slot);
    list->n--;
    memmove(&list->at[i], &list->at[i + 1], (size_t)(list->n - i) * sizeof *list->at);
}

/* ---- bytes by slot -------------------------------------------------------------------- */

/* Whether the most below node i has changed. */
static bool pull(Slots *x, int32_t i)
{
    int64_t a = x->top[2 * i], b = x->top[2 * i + 1], old = x->top[i];
    x->top[i] = (a > b ? a : b) + x->add[i];
    return x->top[i] != old;
}

static void give(Slots *x, int32_t i, int64_t bytes)
{
    x->top[i] += bytes;
    if (i < x->n)
        x->add[i] += bytes;
}

/* Adds bytes to all slots of [from, to]. What is above both ends changes last, and only
 * as long as there is something to change. */
static void add_bytes(Slots *x, int32_t from, int32_t to, int64_t bytes)
{
    if (from > to || bytes == 0)
        return;
    x->area += (double)bytes * (to - from + 1);
    int32_t l = from + x->n, r = to + x->n + 1;
    for (; l < r; l /= 2, r /= 2) {
        if (l & 1)
            give(x, l++, bytes);
        if (r & 1)
            give(x, --r, bytes);
    }
    l = (from + x->n) / 2;
    r = (to + x->n) / 2;
    for (; l != r; l /= 2, r /= 2) {
        pull(x, l);
        pull(x, r);
    }
    pull(x, l); /* may have been given bytes itself: says nothing about what is above */
    for (l /= 2; l > 0 && pull(x, l); l /= 2)
        continue;
}

int32_t slots_peak_slot(const Slots *x, uint64_t random)
{
    int32_t i = 1;
    while (i < x->n) {
        int64_t a = x->top[2 * i], b = x->top[2 * i + 1];
        i = a > b || (a == b && (random & 1)) ? 2 * i : 2 * i + 1;
        random = random >> 1 | random << 63;
    }
    return i - x->n;
}

/* ---- one execution ------------------------------------------------------------------------ */

int32_t slots_end(const Slots *x, int32_t v, int32_t i)
{
    const SlotList *run = &x->run[v], *use = &x->use[v];
    bool last = i + 1 == run->n;
    if (last && x->p->node[v].keep)
        return x->n - 1;
    int32_t j = last ? use->n - 1 : slots_before(use, run->at[i + 1]);
    return j >= 0 && use->at[j] > run->at[i] ? use->at[j] : run->at[i];
}

static void note_count(Slots *x, int32_t v)
{
    bool twice = x->run[v].n > 1;
    if (twice && x->where[v] < 0) {
        x->where[v] = x->n_twice;
        x->twice[x->n_twice++] = v;
    } else if (!twice && x->where[v] >= 0) {
        int32_t last = x->twice[--x->n_twice];
        x->twice[x->where[v]] = last;
        x->where[last] = x->where[v];
        x->where[v] = -1;
    }
}

static bool has_inputs(const Slots *x, int32_t v, int32_t slot)
{
    const Problem *p = x->p;
    for (int32_t i = p->input_at[v]; i < p->input_at[v + 1]; i++) {
        const SlotList *run = &x->run[p->input[i]];
        if (run->n == 0 || run->at[0] >= slot)
            return false;
    }
    return true;
}

/* Nothing that v reads has been changed before the slot, and nothing that reads what v
 * changes runs after it. */
static bool in_time(const Slots *x, int32_t v, int32_t slot)
{
    const Problem *p = x->p;
    for (int32_t i = p->stop_at[v]; i < p->stop_at[v + 1]; i++) {
        const SlotList *run = &x->run[p->stop[i]];
        if (run->n > 0 && run->at[0] < slot)
            return false;
    }
    for (int32_t i = p->halt_at[v]; i < p->halt_at[v + 1]; i++) {
        const SlotList *run = &x->run[p->halt[i]];
        if (run->n > 0 && run->at[run->n - 1] > slot)
            return false;
    }
    return true;
}

/* An output of u is read for the last time in the slot (or, -1, no longer there): the
 * reader may write over it. */
static void end_in(Slots *x, int32_t u, int32_t slot, int sign)
{
    int32_t v = x->node[slot];
    if (v >= 0 && x->p->node[v].over == u && x->p->node[v].over_bytes > 0)
        add_bytes(x, slot, slot, -sign * x->p->node[v].over_bytes);
}

static void move_end(Slots *x, int32_t u, int32_t before, int32_t after)
{
    if (before == after)
        return;
    end_in(x, u, before, -1);
    end_in(x, u, after, 1);
}

static void read_inputs(Slots *x, int32_t v, int32_t slot, bool add)
{
    const Problem *p = x->p;
    for (int32_t i = p->input_at[v]; i < p->input_at[v + 1]; i++) {
        int32_t u = p->input[i], j = slots_before(&x->run[u], slot);
        int32_t before = slots_end(x, u, j);
        if (add)
            list_insert(x, &x->use[u], slot);
        else
            list_delete(&x->use[u], slot);
        int32_t after = slots_end(x, u, j);
        move_end(x, u, before, after);
        if (after > before)
            add_bytes(x, before + 1, after, p->node[u].bytes);
        else
            add_bytes(x, after + 1, before, -p->node[u].bytes);
    }
}

static void add_run(Slots *x, int32_t v, int32_t slot)
{
    SlotList *run = &x->run[v];
    int64_t bytes = x->p->node[v].bytes;
    int32_t i = slots_before(run, slot) + 1;
    int32_t before = i > 0 ? slots_end(x, v, i - 1) : 0;
    list_insert(x, run, slot);
    if (i > 0) {
        move_end(x, v, before, slots_end(x, v, i - 1));
        add_bytes(x, slots_end(x, v, i - 1) + 1, before, -bytes);
    }
    end_in(x, v, slots_end(x, v, i), 1);
    add_bytes(x, slot, slots_end(x, v, i), bytes);
    add_bytes(x, slot, slot, x->p->node[v].scratch);
    x->node[slot] = v;
    read_inputs(x, v, slot, true);
    x->cost += x->p->node[v].cost;
    x->n_run++;
    note_count(x, v);
}

static void remove_run(Slots *x, int32_t v, int32_t slot)
{
    SlotList *run = &x->run[v];
    int64_t bytes = x->p->node[v].bytes;
    int32_t i = slots_before(run, slot) + 1;
    read_inputs(x, v, slot, false);
    x->node[slot] = -1;
    add_bytes(x, slot, slot, -x->p->node[v].scratch);
    end_in(x, v, slots_end(x, v, i), -1);
    add_bytes(x, slot, slots_end(x, v, i), -bytes);
    int32_t before = i > 0 ? slots_end(x, v, i - 1) : 0;
    list_delete(run, slot);
    if (i > 0) {
        move_end(x, v, before, slots_end(x, v, i - 1));
        add_bytes(x, before + 1, slots_end(x, v, i - 1), bytes);
    }
    x->cost -= x->p->node[v].cost;
    x->n_run--;
    note_count(x, v);
}

bool slots_add(Slots *x, int32_t v, int32_t slot)
{
    int64_t most = INT64_C(1) << 62;
    if (!has_inputs(x, v, slot) || !in_time(x, v, slot) || x->p->node[v].cost > most - x->cost)
        return false;
    add_run(x, v, slot);
    vec_push(x->arena, &x->change, ((SlotChange){v, slot, true}));
    return true;
}

bool slots_remove(Slots *x, int32_t v, int32_t slot)
{
    const SlotList *run = &x->run[v], *use = &x->use[v];
    if (run->n == 1)
        return false;
    if (run->at[0] == slot && use->n > 0 && use->at[0] < run->at[1])
        return false;
    remove_run(x, v, slot);
    vec_push(x->arena, &x->change, ((SlotChange){v, slot, false}));
    return true;
}

void slots_keep(Slots *x)
{
    x->change.n = 0;
}

void slots_undo(Slots *x, int mark)
{
    while (x->change.n > mark) {
        SlotChange c = x->change.at[--x->change.n];
        if (c.added)
            remove_run(x, c.node, c.slot);
        else
            add_run(x, c.node, c.slot);
    }
}

/* ---- whole schedules ------------------------------------------------------------------------ */

enum { SLOTS_PER_RUN = 8, MOST_SLOTS = 1 << 20 };

void slots_init(Slots *x, const Problem *p, const Sequence *s, Arena *a)
{
    *x = (Slots){.p = p, .arena = a, .n = 64};
    int64_t wanted = SLOTS_PER_RUN * (int64_t)s->n;
    while (x->n < wanted && (x->n < MOST_SLOTS || x->n < 2 * s->n))
        x->n *= 2;
    x->node = NEW_ARRAY(a, int32_t, x->n);
    x->run = NEW_ARRAY(a, SlotList, p->n);
    x->use = NEW_ARRAY(a, SlotList, p->n);
    x->twice = NEW_ARRAY(a, int32_t, p->n);
    x->where = NEW_ARRAY(a, int32_t, p->n);
    x->top = NEW_ARRAY(a, int64_t, 2 * (int64_t)x->n);
    x->add = NEW_ARRAY(a, int64_t, x->n);
    slots_load(x, s->node, s->n);
}

void slots_load(Slots *x, const int32_t *node, int32_t n)
{
    for (int32_t t = 0; t < x->n; t++)
        x->node[t] = -1;
    for (int32_t v = 0; v < x->p->n; v++) {
        x->run[v].n = x->use[v].n = 0;
        x->where[v] = -1;
    }
    memset(x->top, 0, 2 * (size_t)x->n * sizeof *x->top);
    memset(x->add, 0, (size_t)x->n * sizeof *x->add);
    x->cost = 0;
    x->area = 0;
    x->n_run = x->n_twice = x->change.n = 0;
    assert(n < x->n);
    for (int32_t i = 0; i < n; i++)
        add_run(x, node[i], (int32_t)((int64_t)(2 * i + 1) * x->n / (2 * n)));
}

int32_t slots_order(const Slots *x, int32_t *node)
{
    int32_t n = 0;
    for (int32_t t = 0; t < x->n; t++)
        if (x->node[t] >= 0)
            node[n++] = x->node[t];
    return n;
}
