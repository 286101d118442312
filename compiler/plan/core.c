/* The core of a packing: the few sections where most bytes are alive.
 *
 * In a large net nearly all of the others have room to spare, and most items cross all
 * of the core, so that together they are one item of it. A search over the core is
 * therefore small, however large the net; what is not in the core goes into the
 * gaps. What that leaves too high takes a larger core. */
#include <stdlib.h>
#include <string.h>

#include "pack.h"

/* An item as the core sees it. */
typedef struct Seen {
    int32_t from, to; /* sections of the core */
    int32_t life;     /* outside of the core, too */
    int32_t item;
    bool alone; /* it has parts */
} Seen;

typedef struct Core {
    Pack *k;
    Pack core;
    int32_t *section; /* by section, and one more: the first of the core from there on */
    int64_t *wish;    /* by item */
    Seen *seen;
    int32_t n_seen;
    int32_t *group; /* by index into seen: item of the core */
    PackPart *part; /* of all items of the core */
} Core;

/* ---- which sections -------------------------------------------------------------------- */

static int falling(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* The `most` fullest, and those that are as full as the last of these. */
static void choose_sections(Core *c, const int64_t *live, int32_t most)
{
    int32_t n = c->k->n_sections;
    int64_t *sorted = NEW_ARRAY(c->k->arena, int64_t, n);
    memcpy(sorted, live, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, falling);
    int64_t least = sorted[most < n ? most - 1 : n - 1];
    c->core.n_sections = 0;
    for (int32_t s = 0; s < n; s++) {
        c->section[s] = c->core.n_sections;
        c->core.n_sections += live[s] >= least;
    }
    c->section[n] = c->core.n_sections;
}

/* ---- items ------------------------------------------------------------------------------- */

/* Those that are alive at the same times in the core side by side, long lives first. */
static int by_life(const void *a, const void *b)
{
    const Seen *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    if (x->alone != y->alone)
        return x->alone ? 1 : -1;
    if (x->life != y->life)
        return x->life > y->life ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

static void see_items(Core *c)
{
    for (int32_t i = 0; i < c->k->n; i++) {
        const PackItem *it = &c->k->item[i];
        Seen in = {c->section[it->from], c->section[it->to + 1] - 1, it->to - it->from, i,
                   it->n_parts > 0};
        c->wish[i] = -1;
        if (in.from <= in.to)
            c->seen[c->n_seen++] = in;
    }
    qsort(c->seen, (size_t)c->n_seen, sizeof *c->seen, by_life);
}

/* Parts that begin between two sections of the core are one. Returns where the next
 * item's go. */
static PackPart *cut_parts(const Core *c, const PackItem *it, PackItem *in, PackPart *part)
{
    in->part = part;
    for (int32_t i = 0; i < it->n_parts; i++) {
        PackPart p = {c->section[it->part[i].from], it->part[i].size};
        if (p.from <= in->from)
            in->size = p.size;
        else if (in->n_parts > 0 && part[in->n_parts - 1].from == p.from)
            part[in->n_parts - 1] = p;
        else if (p.from <= in->to)
            part[in->n_parts++] = p;
    }
    return part + in->n_parts;
}

static bool together(const Seen *x, const Seen *y)
{
    return x->from == y->from && x->to == y->to && !x->alone && !y->alone;
}

static void make_items(Core *c)
{
    PackPart *part = c->part;
    c->core.n = 0;
    for (int32_t i = 0; i < c->n_seen; i++) {
        const Seen *s = &c->seen[i];
        const PackItem *it = &c->k->item[s->item];
        if (i == 0 || !together(s, s - 1)) {
            PackItem *in = &c->core.item[c->core.n++];
            *in = (PackItem){.from = s->from, .to = s->to, .size = it->size};
            part = cut_parts(c, it, in, part);
        } else {
            c->core.item[c->core.n - 1].size += it->size;
        }
        c->group[i] = c->core.n - 1;
    }
}

/* ---- all of it ---------------------------------------------------------------------------- */

static void set_wishes(Core *c)
{
    int64_t at = 0;
    for (int32_t i = 0; i < c->n_seen; i++) {
        if (i == 0 || c->group[i] != c->group[i - 1])
            at = c->core.item[c->group[i]].offset;
        c->wish[c->seen[i].item] = at;
        at += c->k->item[c->seen[i].item].size;
    }
}

static Core core_new(Pack *k)
{
    Core c = {.k = k, .core.arena = k->arena};
    int32_t n_parts = 0;
    for (int32_t i = 0; i < k->n; i++)
        n_parts += k->item[i].n_parts;
    c.section = NEW_ARRAY(k->arena, int32_t, k->n_sections + 1);
    c.wish = NEW_ARRAY(k->arena, int64_t, k->n);
    c.seen = NEW_ARRAY(k->arena, Seen, k->n);
    c.group = NEW_ARRAY(k->arena, int32_t, k->n);
    c.part = NEW_ARRAY(k->arena, PackPart, n_parts);
    c.core.item = NEW_ARRAY(k->arena, PackItem, k->n);
    return c;
}

void pack_core(Pack *k, int64_t work)
{
    enum { FIRST = 24, GROWTH = 3 };
    ArenaMark mark = arena_mark(k->arena);
    const int64_t *live = pack_live(k);
    Core c = core_new(k);
    for (int32_t most = FIRST; k->height > k->goal && most < k->n_sections; most *= GROWTH) {
        c.n_seen = 0;
        choose_sections(&c, live, most);
        see_items(&c);
        make_items(&c);
        if (pack_search(&c.core, k->goal, work) != PACK_FOUND)
            break; /* a larger core is harder */
        set_wishes(&c);
        pack_wishes(k, c.wish);
    }
    arena_reset(k->arena, mark);
}
