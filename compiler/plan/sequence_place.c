/* Offsets for a schedule: a packing problem with one item for each output and each
 * scratch. Packing is pack.h's; for many items, which that gives less care, large ones
 * first into the lowest gap are tried here. */
#include <stdlib.h>
#include <string.h>

#include "../base/intern.h"
#include "pack.h"
#include "sequence.h"

/* One item for each output, then one for each scratch; of what has no bytes, none. */
static void make_items(const Problem *p, const Sequence *s, Pack *k)
{
    for (int32_t t = 0; t < s->n; t++)
        if (p->node[s->node[t]].bytes > 0)
            k->item[k->n++] =
                (PackItem){.from = t, .to = s->retain[t], .size = p->node[s->node[t]].bytes};
    for (int32_t t = 0; t < s->n; t++)
        if (p->node[s->node[t]].scratch > 0)
            k->item[k->n++] = (PackItem){.from = t, .to = t, .size = p->node[s->node[t]].scratch};
}

static void set_offsets(const Problem *p, Sequence *s, const Pack *k)
{
    int32_t i = 0;
    for (int32_t t = 0; t < s->n; t++) {
        bool some = p->node[s->node[t]].bytes > 0;
        s->offset[t] = p->pinned + (some ? k->item[i++].offset : 0);
    }
    for (int32_t t = 0; t < s->n; t++) {
        bool some = p->node[s->node[t]].scratch > 0;
        s->scratch_offset[t] = some ? p->pinned + k->item[i++].offset : -1;
    }
}

/* ---- large first ----------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    const PackItem *x = *(const PackItem *const *)a, *y = *(const PackItem *const *)b;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    if (x->to - x->from != y->to - y->from)
        return x->to - x->from > y->to - y->from ? -1 : 1;
    return (x->from > y->from) - (x->from < y->from);
}

typedef struct Placed {
    int32_t from, to;
    int64_t offset, end;
} Placed;

/* The lowest gap between those that are there together with `it`; they are sorted. */
static int64_t lowest_gap(const Placed *at, int32_t n, const PackItem *it)
{
    int64_t low = 0;
    for (int32_t i = 0; i < n; i++) {
        if (at[i].to < it->from || at[i].from > it->to)
            continue;
        if (at[i].offset - low >= it->size)
            return low;
        low = at[i].end > low ? at[i].end : low;
    }
    return low;
}

enum { MOST_LARGE = 30000 }; /* it looks at all pairs: a second */

typedef struct Packing {
    Pack *k;
    PackItem **order;
    Placed *placed;
    int64_t *offset;
} Packing;

/* Packs in this order; returns the height. */
static int64_t pack_in_order(Packing *g)
{
    int64_t height = 0;
    for (int32_t i = 0; i < g->k->n; i++) {
        const PackItem *it = g->order[i];
        int64_t at = lowest_gap(g->placed, i, it);
        int32_t j = i;
        for (; j > 0 && g->placed[j - 1].offset > at; j--)
            continue;
        memmove(&g->placed[j + 1], &g->placed[j], (size_t)(i - j) * sizeof *g->placed);
        g->placed[j] = (Placed){it->from, it->to, at, at + it->size};
        g->offset[it - g->k->item] = at;
        height = at + it->size > height ? at + it->size : height;
    }
    return height;
}

static void keep_lower(Packing *g, int64_t height)
{
    if (height >= g->k->height)
        return;
    g->k->height = height;
    for (int32_t i = 0; i < g->k->n; i++)
        g->k->item[i].offset = g->offset[i];
}

/* ---- orders by search ----------------------------------------------------------------- */

static int32_t draw(uint64_t *random, int32_t n)
{
    *random = hash_mix(*random + 1);
    return (int32_t)((*random >> 33) % (uint64_t)n);
}

/* Moves entry `from` of the order to `to`. */
static void shift(PackItem **order, int32_t from, int32_t to)
{
    PackItem *it = order[from];
    for (; from > to; from--)
        order[from] = order[from - 1];
    for (; from < to; from++)
        order[from] = order[from + 1];
    order[from] = it;
}

/* One that ends above the goal, by drawing; any one if there is none. */
static int32_t too_high(const Packing *g, uint64_t *random)
{
    int32_t i = draw(random, g->k->n);
    for (int32_t tries = 0; tries < g->k->n; tries++, i = (i + 1) % g->k->n)
        if (g->offset[g->order[i] - g->k->item] + g->order[i]->size > g->k->goal)
            return i;
    return i;
}

/* Packs again and again with one item at another place of the order, and goes on from
 * what is no higher. */
static void search_orders(Packing *g, int64_t height, int64_t work)
{
    uint64_t random = 1;
    int32_t n = g->k->n;
    for (int64_t left = work; left > 0 && g->k->height > g->k->goal;
         left -= (int64_t)n * n / 2 + n) {
        int32_t from = draw(&random, 3) > 0 ? too_high(g, &random) : draw(&random, n);
        int32_t to = draw(&random, from + 1 < n ? from + 1 : n);
        shift(g->order, from, to);
        int64_t now = pack_in_order(g);
        keep_lower(g, now);
        if (now <= height)
            height = now;
        else
            shift(g->order, to, from);
    }
}

static void large_first(Pack *k, int64_t work)
{
    if (k->n > MOST_LARGE)
        return;
    Packing g = {.k = k};
    g.order = NEW_ARRAY(k->arena, PackItem *, k->n);
    g.placed = NEW_ARRAY(k->arena, Placed, k->n + 1);
    g.offset = NEW_ARRAY(k->arena, int64_t, k->n);
    for (int32_t i = 0; i < k->n; i++)
        g.order[i] = &k->item[i];
    qsort(g.order, (size_t)k->n, sizeof *g.order, by_size);
    int64_t height = pack_in_order(&g);
    keep_lower(&g, height);
    search_orders(&g, height, work);
}

/* ---- all of it --------------------------------------------------------------------------- */

static void pack(Pack *k, int64_t enough, int64_t work, int64_t eject)
{
    pack_bound(k);
    k->goal = enough > k->bound ? enough : k->bound;
    pack_quick(k);
    if (k->height > k->goal)
        large_first(k, 4 * work);
    if (k->height > k->goal)
        pack_lowest(k, work, 1);
    if (k->height > k->goal)
        pack_eject(k, eject);
}

void sequence_place(const Problem *p, Sequence *s, PlaceWork work, Arena *out)
{
    s->offset = NEW_ARRAY(out, int64_t, s->n);
    s->scratch_offset = NEW_ARRAY(out, int64_t, s->n);
    ArenaMark mark = arena_mark(out);
    Pack k = {.arena = out, .n_sections = s->n};
    k.item = NEW_ARRAY(out, PackItem, 2 * s->n);
    make_items(p, s, &k);
    if (k.n > 0)
        pack(&k, s->enough - p->pinned, work.all, work.eject);
    set_offsets(p, s, &k);
    s->arena = p->pinned + (k.n > 0 ? k.height : 0);
    s->placed = true;
    arena_reset(out, mark);
}
