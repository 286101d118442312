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

static void pull(Slots *x, int32_t i)
{
    for (i /= 2; i > 0; i /= 2) {
        int64_t a = x->top[2 * i], b = x->top[2 * i + 1];
        x->top[i] = (a > b ? a : b) + x->add[i];
    }
}

static void give(Slots *x, int32_t i, int64_t bytes)
{
    x->top[i] += bytes;
    x->add[i] += bytes;
}

/* Adds bytes to all slots of [from, to]. */
static void add_bytes(Slots *x, int32_t from, int32_t to, int64_t bytes)
{
    if (from > to || bytes == 0)
        return;
    int32_t l = from + x->n, r = to + x->n + 1;
    for (; l < r; l /= 2, r /= 2) {
        if (l & 1)
            give(x, l++, bytes);
        if (r & 1)
            give(x, --r, bytes);
    }
    pull(x, from + x->n);
    pull(x, to + x->n);
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
    if (i > 0)
        add_bytes(x, slots_end(x, v, i - 1) + 1, before, -bytes);
    add_bytes(x, slot, slots_end(x, v, i), bytes);
    add_bytes(x, slot, slot, x->p->node[v].scratch);
    read_inputs(x, v, slot, true);
    x->node[slot] = v;
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
    add_bytes(x, slot, slot, -x->p->node[v].scratch);
    add_bytes(x, slot, slots_end(x, v, i), -bytes);
    int32_t before = i > 0 ? slots_end(x, v, i - 1) : 0;
    list_delete(run, slot);
    if (i > 0)
        add_bytes(x, before + 1, slots_end(x, v, i - 1), bytes);
    x->node[slot] = -1;
    x->cost -= x->p->node[v].cost;
    x->n_run--;
    note_count(x, v);
}

bool slots_add(Slots *x, int32_t v, int32_t slot)
{
    if (!has_inputs(x, v, slot))
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

void slots_undo(Slots *x)
{
    while (x->change.n > 0) {
        SlotChange c = x->change.at[--x->change.n];
        if (c.added)
            remove_run(x, c.node, c.slot);
        else
            add_run(x, c.node, c.slot);
    }
}

/* ---- whole schedules ------------------------------------------------------------------------ */

enum { SLOTS_PER_RUN = 12, MOST_SLOTS = 1 << 20 };

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
    x->add = NEW_ARRAY(a, int64_t, 2 * (int64_t)x->n);
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
    memset(x->add, 0, 2 * (size_t)x->n * sizeof *x->add);
    x->cost = 0;
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
