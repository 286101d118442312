/* Packing below a height that is given: one item after the other is put where the least is in
 * its way, and that is put elsewhere. What has been put often weighs more, so that the same few
 * do not push one another out for ever. For many items of mixed lives and sizes, where those who
 * fill one gap after the other leave holes that no order of the items closes.
 *
 * source: ejection chains, Glover (1996); weights that grow where a search gets stuck: Morris,
 * The breakout method (1993). */
#include <string.h>

#include "../base/intern.h"
#include "pack.h"

/* One that lies there: where it begins, or where it ends. */
typedef struct Edge {
    int64_t at;
    int32_t item, from, to;
} Edge;

typedef struct Edges {
    Edge *edge; /* rising */
    int32_t n;
} Edges;

typedef struct Eject {
    const Pack *k;
    int64_t target;
    int64_t *offset;  /* by item */
    int64_t *weight;  /* by item: how often it has been put, and one */
    Edges begin, end; /* of what lies there */
    int32_t *waiting; /* items that do not */
    int32_t n_waiting;
    uint64_t random;
    int64_t work;
} Eject;

/* ---- what lies there ------------------------------------------------------------------ */

/* The first edge at `at` or above. */
static int32_t edge_from(const Edges *e, int64_t at)
{
    int32_t low = 0, high = e->n;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (e->edge[middle].at < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void edge_add(Edges *e, Edge edge)
{
    int32_t i = edge_from(e, edge.at);
    memmove(&e->edge[i + 1], &e->edge[i], (size_t)(e->n - i) * sizeof *e->edge);
    e->edge[i] = edge;
    e->n++;
}

static void edge_remove(Edges *e, int64_t at, int32_t item)
{
    int32_t i = edge_from(e, at);
    while (e->edge[i].item != item)
        i++;
    e->n--;
    memmove(&e->edge[i], &e->edge[i + 1], (size_t)(e->n - i) * sizeof *e->edge);
}

static void put(Eject *x, int32_t item, int64_t at)
{
    const PackItem *it = &x->k->item[item];
    edge_add(&x->begin, (Edge){at, item, it->from, it->to});
    edge_add(&x->end, (Edge){at + it->size, item, it->from, it->to});
    x->offset[item] = at;
}

static void take(Eject *x, int32_t item)
{
    edge_remove(&x->begin, x->offset[item], item);
    edge_remove(&x->end, x->offset[item] + x->k->item[item].size, item);
    x->waiting[x->n_waiting++] = item;
}

/* ---- one step ---------------------------------------------------------------------------- */

static bool meet(const PackItem *it, const Edge *e)
{
    return e->from <= it->to && e->to >= it->from;
}

static uint64_t chance(Eject *x)
{
    return x->random = hash_mix(x->random + 1);
}

/* Where the least weighs of what is in the way: on the floor, or on something. */
static int64_t least_in_the_way(Eject *x, const PackItem *it)
{
    int64_t weight = 0, least = INT64_MAX, best = 0, y = 0;
    int32_t low = 0, high = 0;
    uint64_t equals = 0;
    while (y <= x->target - it->size) {
        for (; low < x->begin.n && x->begin.edge[low].at < y + it->size; low++)
            if (meet(it, &x->begin.edge[low]))
                weight += x->weight[x->begin.edge[low].item];
        for (; high < x->end.n && x->end.edge[high].at <= y; high++)
            if (meet(it, &x->end.edge[high]))
                weight -= x->weight[x->end.edge[high].item];
        equals = weight < least ? 1 : equals + (weight == least);
        if (weight < least || (weight == least && chance(x) % equals == 0))
            best = y;
        least = weight < least ? weight : least;
        while (high < x->end.n && !meet(it, &x->end.edge[high]))
            high++;
        if (high == x->end.n)
            break;
        y = x->end.edge[high].at;
    }
    x->work -= low + high;
    return best;
}

/* Puts one that waits; what lies in its way waits then. */
static void step(Eject *x)
{
    int32_t i = (int32_t)(chance(x) % (uint64_t)x->n_waiting);
    int32_t item = x->waiting[i];
    const PackItem *it = &x->k->item[item];
    x->waiting[i] = x->waiting[--x->n_waiting];
    int64_t at = least_in_the_way(x, it);
    for (int32_t j = 0; j < x->begin.n && x->begin.edge[j].at < at + it->size;) {
        const Edge *e = &x->begin.edge[j];
        if (meet(it, e) && e->at + x->k->item[e->item].size > at)
            take(x, e->item);
        else
            j++;
    }
    put(x, item, at);
    x->weight[item]++;
}

/* ---- lower and lower --------------------------------------------------------------------------
 */

/* What ends above the target waits. */
static void begin_at(Eject *x, int64_t target)
{
    const Pack *k = x->k;
    x->target = target;
    x->begin.n = x->end.n = x->n_waiting = 0;
    for (int32_t i = 0; i < k->n; i++) {
        x->weight[i] = 1;
        if (k->item[i].offset + k->item[i].size <= target)
            put(x, i, k->item[i].offset);
        else
            x->waiting[x->n_waiting++] = i;
    }
}

static bool reach(Eject *x, int64_t target, int64_t work)
{
    begin_at(x, target);
    x->work = work;
    while (x->n_waiting > 0 && x->work > 0)
        step(x);
    return x->n_waiting == 0;
}

static void keep(Pack *k, const Eject *x)
{
    k->height = 0;
    for (int32_t i = 0; i < k->n; i++) {
        int64_t end = x->offset[i] + k->item[i].size;
        k->item[i].offset = x->offset[i];
        k->height = end > k->height ? end : k->height;
    }
}

static bool has_parts(const Pack *k)
{
    int32_t i = 0;
    while (i < k->n && k->item[i].n_parts == 0)
        i++;
    return i < k->n;
}

/* Parts of what is above the goal that are asked for at once. */
enum { FIRST_PART = 4, LAST_PART = 32 };

void pack_eject(Pack *k, int64_t work)
{
    if (k->height <= k->goal || has_parts(k))
        return;
    ArenaMark mark = arena_mark(k->arena);
    Eject x = {.k = k, .random = 1};
    x.offset = NEW_ARRAY(k->arena, int64_t, k->n);
    x.weight = NEW_ARRAY(k->arena, int64_t, k->n);
    x.begin.edge = NEW_ARRAY(k->arena, Edge, k->n);
    x.end.edge = NEW_ARRAY(k->arena, Edge, k->n);
    x.waiting = NEW_ARRAY(k->arena, int32_t, k->n);
    int64_t last = k->goal > k->bound ? FIRST_PART : LAST_PART;
    for (int64_t part = FIRST_PART; part <= last && k->height > k->goal;) {
        int64_t less = (k->height - k->goal) / part;
        if (reach(&x, k->height - (less > 0 ? less : 1), work))
            keep(k, &x);
        else
            part *= 2;
    }
    arena_reset(k->arena, mark);
}
