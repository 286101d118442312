/* Greedy packing: several orders of the items, each packed in several ways.
 *
 * No single order is good for every net. Long-lived first, each on top of what is
 * there, is exact for values that are kept for the backward pass (their lives are
 * nested); large first into the tightest gap suits short-lived values of mixed sizes. */
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

typedef enum Order { BY_LIFE, BY_SIZE, BY_AREA, BY_START, BY_END, N_ORDERS } Order;

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
    case N_ORDERS:
        break;
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

typedef struct Placed {
    int64_t offset, size;
    int32_t from, to;
    int32_t item, n_parts;
} Placed;

/* Of the gaps between items that are alive together with `it`, the one that it
 * fills best (or the lowest that it fits in); on top of all of them if none. */
static int64_t find_gap(const Pack *k, const PackItem *it, const Placed *placed, int32_t n,
                        bool best)
{
    int64_t low = 0, at = -1, least = INT64_MAX;
    for (int32_t i = 0; i < n; i++) {
        const Placed *p = &placed[i];
        if (p->from > it->to || p->to < it->from)
            continue;
        int64_t gap = p->offset - low;
        if (gap >= it->size && gap < least) {
            least = gap;
            at = low;
            if (!best || gap == it->size)
                return at;
        }
        int64_t size = p->size;
        if (p->n_parts > 0 && it->from > p->from)
            size = pack_size(&k->item[p->item], it->from);
        low = p->offset + size > low ? p->offset + size : low;
    }
    return at >= 0 ? at : low;
}

static int32_t place_of(const Placed *placed, int32_t n, int64_t offset)
{
    int32_t low = 0, high = n;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (placed[middle].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Each item into a gap. Stops at `limit`: a packing that high is of no use. */
static int64_t fill_gaps(const Pack *k, const Key *key, bool best, int64_t limit, int64_t *offset,
                         Placed *placed)
{
    int64_t height = 0;
    for (int32_t i = 0; i < k->n && height < limit; i++) {
        const PackItem *it = &k->item[key[i].item];
        int64_t at = find_gap(k, it, placed, i, best);
        int32_t j = place_of(placed, i, at);
        memmove(&placed[j + 1], &placed[j], (size_t)(i - j) * sizeof *placed);
        placed[j] = (Placed){at, it->size, it->from, it->to, key[i].item, it->n_parts};
        offset[key[i].item] = at;
        height = at + it->size > height ? at + it->size : height;
    }
    return height;
}

static void keep_lower(Pack *k, const int64_t *offset, int64_t height)
{
    if (height >= k->height)
        return;
    k->height = height;
    for (int32_t i = 0; i < k->n; i++)
        k->item[i].offset = offset[i];
}

/* Filling gaps looks at all pairs: with very many items, only a few orders. */
enum { MANY_ITEMS = 6000, ORDERS_OF_MANY = 1 };

void pack_greedy(Pack *k)
{
    ArenaMark mark = arena_mark(k->arena);
    Key *key = NEW_ARRAY(k->arena, Key, k->n);
    int64_t *offset = NEW_ARRAY(k->arena, int64_t, k->n);
    int64_t *top = NEW_ARRAY(k->arena, int64_t, k->n_sections);
    Placed *placed = NEW_ARRAY(k->arena, Placed, k->n);
    int32_t filled = k->n > MANY_ITEMS ? ORDERS_OF_MANY : N_ORDERS;
    k->height = INT64_MAX;
    for (Order o = 0; o < N_ORDERS && k->height > k->bound; o++) {
        sort_items(k, o, key);
        keep_lower(k, offset, stack(k, key, offset, top));
    }
    for (Order o = 0; o < N_ORDERS && k->height > k->bound; o++) {
        if ((int32_t)o >= filled)
            break;
        sort_items(k, o, key);
        for (int best = 0; best < 2 && k->height > k->bound; best++)
            keep_lower(k, offset, fill_gaps(k, key, best != 0, k->height, offset, placed));
    }
    arena_reset(k->arena, mark);
}
