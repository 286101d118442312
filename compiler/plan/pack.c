/* Greedy packing: several orders of the items, each packed in two ways, and repair.
 *
 * No single order is good for every net. Long-lived first, each on top of what is
 * there, is exact for values that are kept for the backward pass (their lives are
 * nested); large first into the tightest gap suits short-lived values of mixed sizes.
 * Small holes that are left are closed by packing again with what ended too high in
 * front. */
#include "pack.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int64_t pack_size(const PackItem *it, int32_t section)
{
    int64_t size = it->size;
    for (int32_t i = 0; i < it->n_parts && it->part[i].from <= section; i++)
        size = it->part[i].size;
    return size;
}

void pack_bound(Pack *k)
{
    ArenaMark mark = arena_mark(k->arena);
    int64_t *change = NEW_ARRAY(k->arena, int64_t, k->n_sections + 1);
    for (int32_t i = 0; i < k->n; i++) {
        const PackItem *it = &k->item[i];
        int64_t size = it->size;
        change[it->from] += size;
        for (int32_t j = 0; j < it->n_parts; j++) {
            change[it->part[j].from] += it->part[j].size - size;
            size = it->part[j].size;
        }
        change[it->to + 1] -= size;
    }
    int64_t live = 0;
    k->bound = 0;
    for (int32_t s = 0; s < k->n_sections; s++) {
        live += change[s];
        if (live > k->bound)
            k->bound = live;
    }
    arena_reset(k->arena, mark);
}

/* ---- orders ------------------------------------------------------------------ */

typedef struct Key {
    int64_t first, second;
    int32_t item;
} Key;

/* Falling keys; the index decides between equals, for one result on every machine. */
static int by_key(const void *a, const void *b)
{
    const Key *x = a, *y = b;
    if (x->first != y->first)
        return x->first > y->first ? -1 : 1;
    if (x->second != y->second)
        return x->second > y->second ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

typedef enum Order { BY_LIFE, BY_AREA, BY_SIZE, BY_START, BY_END } Order;

static int64_t area(const PackItem *it)
{
    int64_t life = it->to - it->from + 1;
    return it->size > INT64_MAX / life ? INT64_MAX : it->size * life;
}

static Key key_of(const PackItem *it, Order order)
{
    int64_t life = it->to - it->from + 1;
    switch (order) {
    case BY_LIFE:
        return (Key){.first = life, .second = it->size};
    case BY_SIZE:
        return (Key){.first = it->size, .second = life};
    case BY_AREA:
        return (Key){.first = area(it), .second = it->size};
    case BY_START:
        return (Key){.first = -it->from, .second = life};
    case BY_END:
        return (Key){.first = it->to, .second = life};
    }
    return (Key){0};
}

static void sort_items(const Pack *k, Order order, Key *key)
{
    for (int32_t i = 0; i < k->n; i++) {
        key[i] = key_of(&k->item[i], order);
        key[i].item = i;
    }
    qsort(key, (size_t)k->n, sizeof *key, by_key);
}

/* ---- ways to pack -------------------------------------------------------------- */

/* Each item on top of everything that it meets: exact for nested lives. */
static int64_t stack(const Pack *k, const Key *key, int64_t *offset, int64_t *top)
{
    int64_t height = 0;
    memset(top, 0, (size_t)k->n_sections * sizeof *top);
    for (int32_t i = 0; i < k->n; i++) {
        const PackItem *it = &k->item[key[i].item];
        int64_t at = 0;
        for (int32_t s = it->from; s <= it->to; s++)
            at = top[s] > at ? top[s] : at;
        int64_t size = it->size;
        for (int32_t s = it->from, j = 0; s <= it->to; s++) {
            for (; j < it->n_parts && it->part[j].from == s; j++)
                size = it->part[j].size;
            top[s] = at + size;
        }
        offset[key[i].item] = at;
        height = at + it->size > height ? at + it->size : height;
    }
    return height;
}

/* What has been placed, by offset. Times lie apart, since they are all that is looked
 * at of most items. */
typedef struct Life {
    int32_t from, to;
} Life;

typedef struct Span {
    int64_t offset, size;
    int32_t item;
} Span;

typedef struct Greedy {
    Pack *k;
    int64_t *offset;  /* by item */
    int64_t *top;     /* by section */
    int64_t *urgency; /* by item */
    Key *key;
    Life *life; /* of what has been placed */
    Span *span;
    int64_t pairs; /* how many more pairs of items may be looked at */
} Greedy;

/* Of the gaps between the n placed items that are alive together with `it`, the one
 * that it fills best; on top of all of them if it fits in none. */
static int64_t find_gap(const Greedy *g, const PackItem *it, int32_t n)
{
    int64_t low = 0, at = -1, least = INT64_MAX;
    for (int32_t i = 0; i < n; i++) {
        if (g->life[i].from > it->to || g->life[i].to < it->from)
            continue;
        const Span *p = &g->span[i];
        int64_t gap = p->offset - low;
        if (gap >= it->size && gap < least) {
            least = gap;
            at = low;
        }
        int64_t size = p->size;
        if (g->k->item[p->item].n_parts > 0 && it->from > g->life[i].from)
            size = pack_size(&g->k->item[p->item], it->from);
        low = p->offset + size > low ? p->offset + size : low;
    }
    return at >= 0 ? at : low;
}

static int32_t place_of(const Span *span, int32_t n, int64_t offset)
{
    int32_t low = 0, high = n;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (span[middle].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert(Greedy *g, int32_t n, int32_t item, int64_t at)
{
    const PackItem *it = &g->k->item[item];
    int32_t j = place_of(g->span, n, at);
    memmove(&g->life[j + 1], &g->life[j], (size_t)(n - j) * sizeof *g->life);
    memmove(&g->span[j + 1], &g->span[j], (size_t)(n - j) * sizeof *g->span);
    g->life[j] = (Life){it->from, it->to};
    g->span[j] = (Span){at, it->size, item};
    g->offset[item] = at;
}

/* Drops what has ended before section `now`; returns how many are left. */
static int32_t drop_dead(Greedy *g, int32_t n, int32_t now)
{
    int32_t left = 0;
    for (int32_t i = 0; i < n; i++) {
        if (g->life[i].to < now)
            continue;
        g->life[left] = g->life[i];
        g->span[left++] = g->span[i];
    }
    return left;
}

enum { DROP_EVERY = 64 };

/* Each item into the gap that it fills best. In the order of starts, what is dead is
 * never met again. */
static int64_t fill_gaps(Greedy *g, bool by_start)
{
    int64_t height = 0;
    int32_t n = 0;
    for (int32_t i = 0; i < g->k->n; i++) {
        const PackItem *it = &g->k->item[g->key[i].item];
        if (by_start && i % DROP_EVERY == 0)
            n = drop_dead(g, n, it->from);
        int64_t at = find_gap(g, it, n);
        g->pairs -= n;
        insert(g, n++, g->key[i].item, at);
        height = at + it->size > height ? at + it->size : height;
    }
    return height;
}

/* Whether there is time to look at all pairs. */
static bool may_fill(const Greedy *g)
{
    return g->pairs >= (int64_t)g->k->n * g->k->n / 2;
}

/* Returns whether that is as low as can be. */
static bool keep_lower(Greedy *g, int64_t height)
{
    Pack *k = g->k;
    if (height < k->height) {
        k->height = height;
        for (int32_t i = 0; i < k->n; i++)
            k->item[i].offset = g->offset[i];
    }
    return k->height == k->bound;
}

/* ---- repair ---------------------------------------------------------------------- */

enum { ROUNDS = 32 };

/* Packs again and again, and what ends above the bound is more urgent the next time.
 * source: squeaky wheel optimization (Joslin & Clements, 1999). */
static bool repair(Greedy *g, Order order)
{
    Pack *k = g->k;
    sort_items(k, order, g->key);
    for (int32_t i = 0; i < k->n; i++)
        g->urgency[g->key[i].item] = k->n - i;
    for (int32_t round = 0; round < ROUNDS && may_fill(g); round++) {
        for (int32_t i = 0; i < k->n; i++)
            g->key[i] = (Key){g->urgency[i], k->item[i].size, i};
        qsort(g->key, (size_t)k->n, sizeof *g->key, by_key);
        if (keep_lower(g, fill_gaps(g, false)))
            return true;
        for (int32_t i = 0; i < k->n; i++)
            if (g->offset[i] + k->item[i].size > k->bound)
                g->urgency[i] += k->n / 4 + 1;
    }
    return false;
}

/* ---- all of it ------------------------------------------------------------------- */

/* Filling gaps looks at all pairs of items; this many take a tenth of a second. Where
 * one order takes more, the first is all there is. */
enum { MOST_PAIRS = 60000000 };

static Greedy greedy_new(Pack *k, int64_t pairs)
{
    Greedy g = {.k = k, .pairs = pairs};
    g.offset = NEW_ARRAY(k->arena, int64_t, k->n);
    g.top = NEW_ARRAY(k->arena, int64_t, k->n_sections);
    g.urgency = NEW_ARRAY(k->arena, int64_t, k->n);
    g.key = NEW_ARRAY(k->arena, Key, k->n);
    g.life = NEW_ARRAY(k->arena, Life, k->n);
    g.span = NEW_ARRAY(k->arena, Span, k->n);
    return g;
}

/* Of the nets that have been measured, most are packed exactly by the first of each. */
static bool stack_in_orders(Greedy *g)
{
    static const Order order[] = {BY_LIFE, BY_AREA, BY_SIZE};
    for (int i = 0; i < 3; i++) {
        sort_items(g->k, order[i], g->key);
        if (keep_lower(g, stack(g->k, g->key, g->offset, g->top)))
            return true;
    }
    return false;
}

static bool fill_in_orders(Greedy *g)
{
    static const Order order[] = {BY_START, BY_SIZE, BY_AREA, BY_END, BY_LIFE};
    for (int i = 0; i < 5 && (i == 0 || may_fill(g)); i++) {
        sort_items(g->k, order[i], g->key);
        if (keep_lower(g, fill_gaps(g, order[i] == BY_START)))
            return true;
    }
    return false;
}

void pack_greedy(Pack *k)
{
    ArenaMark mark = arena_mark(k->arena);
    Greedy g = greedy_new(k, MOST_PAIRS);
    k->height = INT64_MAX;
    if (!stack_in_orders(&g))
        fill_in_orders(&g);
    arena_reset(k->arena, mark);
}

void pack_repair(Pack *k, int64_t work)
{
    if (k->height == k->bound)
        return;
    ArenaMark mark = arena_mark(k->arena);
    Greedy g = greedy_new(k, work < MOST_PAIRS ? work : MOST_PAIRS);
    static const Order order[] = {BY_AREA, BY_LIFE, BY_SIZE};
    for (int i = 0; i < 3 && !repair(&g, order[i]); i++)
        continue;
    arena_reset(k->arena, mark);
}
