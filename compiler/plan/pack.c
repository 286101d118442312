/* Greedy packing: several orders of the items, each packed in two ways, and repair.
 *
 * No single order is good for every net. Long-lived first, each on top of what is
 * there, is exact for values that are kept for the backward pass (their lives are
 * nested); by start into the tightest gap suits what comes and goes. Where neither
 * leaves no hole, those go first with whom most bytes are alive. Small holes that are
 * left are closed by packing again with what ended too high in front. */
#include "pack.h"

#include <stdlib.h>
#include <string.h>

#include "fill.h"

int64_t pack_size(const PackItem *it, int32_t section)
{
    int64_t size = it->size;
    for (int32_t i = 0; i < it->n_parts && it->part[i].from <= section; i++)
        size = it->part[i].size;
    return size;
}

int64_t *pack_live(const Pack *k)
{
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
    for (int32_t s = 1; s < k->n_sections; s++)
        change[s] += change[s - 1];
    return change;
}

void pack_bound(Pack *k)
{
    ArenaMark mark = arena_mark(k->arena);
    const int64_t *live = pack_live(k);
    k->bound = 0;
    for (int32_t s = 0; s < k->n_sections; s++)
        k->bound = live[s] > k->bound ? live[s] : k->bound;
    k->least = k->goal = k->bound;
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

/* The two by crowd begin where most bytes are alive: there no hole is allowed, and the
 * fewer are alive, the more freely the rest may lie. */
typedef enum Order {
    BY_CROWD_LIFE,
    BY_CROWD_SIZE,
    BY_LIFE,
    BY_AREA,
    BY_SIZE,
    BY_START,
    BY_END
} Order;

static int64_t area(const PackItem *it)
{
    int64_t life = it->to - it->from + 1;
    return it->size > INT64_MAX / life ? INT64_MAX : it->size * life;
}

/* crowd: most bytes alive while the item is. */
static Key key_of(const PackItem *it, int64_t crowd, Order order)
{
    int64_t life = it->to - it->from + 1;
    switch (order) {
    case BY_CROWD_LIFE:
        return (Key){.first = crowd, .second = life};
    case BY_CROWD_SIZE:
        return (Key){.first = crowd, .second = it->size};
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

/* ---- state ----------------------------------------------------------------------- */

typedef struct Greedy {
    Pack *k;
    int64_t *offset;  /* by item: of the stack */
    int64_t *top;     /* by section */
    int64_t *urgency; /* by item */
    int64_t *crowd;   /* by item: most bytes alive while it is; NULL before it is asked for */
    Key *key;
    int32_t *order;
    Fill fill;
    int64_t looks; /* as many may be taken in all */
} Greedy;

static Greedy greedy_new(Pack *k, int64_t looks)
{
    Greedy g = {.k = k, .looks = looks, .fill = fill_new(k)};
    g.offset = NEW_ARRAY(k->arena, int64_t, k->n);
    g.top = NEW_ARRAY(k->arena, int64_t, k->n_sections);
    g.urgency = NEW_ARRAY(k->arena, int64_t, k->n);
    g.key = NEW_ARRAY(k->arena, Key, k->n);
    g.order = NEW_ARRAY(k->arena, int32_t, k->n);
    return g;
}

static void find_crowds(Greedy *g)
{
    const Pack *k = g->k;
    const int64_t *live = pack_live(k);
    g->crowd = NEW_ARRAY(k->arena, int64_t, k->n);
    for (int32_t i = 0; i < k->n; i++) {
        int64_t most = 0;
        for (int32_t s = k->item[i].from; s <= k->item[i].to; s++)
            most = live[s] > most ? live[s] : most;
        g->crowd[i] = most;
    }
}

static void sort_keys(Greedy *g)
{
    for (int32_t i = 0; i < g->k->n; i++)
        g->key[i].item = i;
    qsort(g->key, (size_t)g->k->n, sizeof *g->key, by_key);
    for (int32_t i = 0; i < g->k->n; i++)
        g->order[i] = g->key[i].item;
}

static void sort_items(Greedy *g, Order order)
{
    bool by_crowd = order == BY_CROWD_LIFE || order == BY_CROWD_SIZE;
    if (by_crowd && g->crowd == NULL)
        find_crowds(g);
    for (int32_t i = 0; i < g->k->n; i++)
        g->key[i] = key_of(&g->k->item[i], by_crowd ? g->crowd[i] : 0, order);
    sort_keys(g);
}

/* Returns whether that is low enough. */
static bool keep_lower(Greedy *g, const int64_t *offset, int64_t height)
{
    Pack *k = g->k;
    if (height < k->height) {
        k->height = height;
        for (int32_t i = 0; i < k->n; i++)
            k->item[i].offset = offset[i];
    }
    return k->height <= k->goal;
}

/* ---- stacks ---------------------------------------------------------------------- */

/* Each item on top of everything that it meets: exact for nested lives. */
static int64_t stack(Greedy *g)
{
    const Pack *k = g->k;
    int64_t *top = g->top;
    int64_t height = 0;
    memset(top, 0, (size_t)k->n_sections * sizeof *top);
    for (int32_t i = 0; i < k->n; i++) {
        const PackItem *it = &k->item[g->order[i]];
        int64_t at = 0;
        for (int32_t s = it->from; s <= it->to; s++)
            at = top[s] > at ? top[s] : at;
        int64_t size = it->size;
        for (int32_t s = it->from, j = 0; s <= it->to; s++) {
            for (; j < it->n_parts && it->part[j].from == s; j++)
                size = it->part[j].size;
            top[s] = at + size;
        }
        g->offset[g->order[i]] = at;
        height = at + it->size > height ? at + it->size : height;
    }
    return height;
}

static void stack_in_orders(Greedy *g, const Order *order, int n)
{
    for (int i = 0; i < n && g->k->height > g->k->goal; i++) {
        sort_items(g, order[i]);
        keep_lower(g, g->offset, stack(g));
    }
}

/* ---- gaps ------------------------------------------------------------------------ */

/* So many looks take a tenth of a second. */
enum { MOST_LOOKS = 40000000 };

static bool fill(Greedy *g, int64_t limit)
{
    int64_t height = fill_gaps(&g->fill, g->order, NULL, limit);
    return keep_lower(g, g->fill.offset, height);
}

/* Whether there is time to look at all pairs. */
static bool may_fill(const Greedy *g)
{
    return g->looks - g->fill.looks >= (int64_t)g->k->n * g->k->n / 2;
}

/* In each order, as long as there is time; the first of all takes little. */
static void fill_in_orders(Greedy *g, const Order *order, int n)
{
    for (int i = 0; i < n && g->k->height > g->k->goal; i++) {
        if (order[i] != BY_START && !may_fill(g))
            return;
        sort_items(g, order[i]);
        fill(g, g->k->height);
    }
}

/* ---- repair ---------------------------------------------------------------------- */

enum { ROUNDS = 32 };

/* Packs again and again, and what ends above the goal is more urgent the next time.
 * source: squeaky wheel optimization (Joslin & Clements, 1999). */
static bool repair(Greedy *g, Order order)
{
    Pack *k = g->k;
    sort_items(g, order);
    for (int32_t i = 0; i < k->n; i++)
        g->urgency[g->order[i]] = k->n - i;
    for (int32_t round = 0; round < ROUNDS && may_fill(g); round++) {
        for (int32_t i = 0; i < k->n; i++)
            g->key[i] = (Key){g->urgency[i], k->item[i].size, i};
        sort_keys(g);
        if (fill(g, INT64_MAX))
            return true;
        for (int32_t i = 0; i < k->n; i++)
            if (g->fill.offset[i] + k->item[i].size > k->goal)
                g->urgency[i] += k->n / 4 + 1;
    }
    return false;
}

/* ---- all of it ------------------------------------------------------------------- */

void pack_quick(Pack *k)
{
    static const Order stacked[] = {BY_LIFE};
    static const Order filled[] = {BY_START, BY_CROWD_LIFE, BY_CROWD_SIZE};
    ArenaMark mark = arena_mark(k->arena);
    Greedy g = greedy_new(k, k->looks > 0 ? k->looks : MOST_LOOKS);
    k->height = INT64_MAX;
    stack_in_orders(&g, stacked, 1);
    fill_in_orders(&g, filled, 3);
    arena_reset(k->arena, mark);
}

void pack_greedy(Pack *k)
{
    static const Order stacked[] = {BY_AREA, BY_SIZE};
    static const Order filled[] = {BY_SIZE, BY_AREA, BY_END, BY_LIFE};
    if (k->height <= k->goal)
        return;
    ArenaMark mark = arena_mark(k->arena);
    Greedy g = greedy_new(k, k->looks > 0 ? k->looks : MOST_LOOKS);
    stack_in_orders(&g, stacked, 2);
    fill_in_orders(&g, filled, 4);
    arena_reset(k->arena, mark);
}

void pack_wishes(Pack *k, const int64_t *wish)
{
    ArenaMark mark = arena_mark(k->arena);
    Greedy g = greedy_new(k, MOST_LOOKS);
    sort_items(&g, BY_CROWD_LIFE);
    int64_t height = fill_gaps(&g.fill, g.order, wish, k->height);
    keep_lower(&g, g.fill.offset, height);
    arena_reset(k->arena, mark);
}

void pack_repair(Pack *k, int64_t work)
{
    static const Order order[] = {BY_CROWD_SIZE, BY_CROWD_LIFE, BY_AREA, BY_LIFE, BY_SIZE};
    ArenaMark mark = arena_mark(k->arena);
    Greedy g = greedy_new(k, work < MOST_LOOKS ? work : MOST_LOOKS);
    for (int i = 0; i < 5 && k->height > k->goal && !repair(&g, order[i]); i++)
        continue;
    arena_reset(k->arena, mark);
}
