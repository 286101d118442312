/* Small values, and what steps have alone, are moved to where nothing lies for a few steps before
 * them and behind them: then steps that follow one another can overlap in time, as in the chains of
 * the CPU target. Where there is no such place they stay, and so does the peak. */
#include <stdlib.h>

#include "plan.h"

enum { SMALL = 64 << 10, WINDOW = 8 /* steps */ };

/* Bytes [lo, hi) of the block in steps from..to. */
typedef struct Item {
    int32_t from, to;
    int64_t lo, hi;
    int32_t storage; /* -1: what a step has alone */
    bool again;      /* of a value that has other storages, too */
} Item;

typedef struct Apart {
    Plan *p;
    Item *item;
    Item **order; /* by where they begin */
    int32_t n;
} Apart;

static int by_place(const void *a, const void *b)
{
    const Item *x = *(Item *const *)a, *y = *(Item *const *)b;
    return (x->lo > y->lo) - (x->lo < y->lo);
}

static void list_items(Apart *a)
{
    const Plan *p = a->p;
    int32_t *item = NEW_ARRAY(p->arena, int32_t, p->n_ranges);   /* by storage */
    int32_t *ranges = NEW_ARRAY(p->arena, int32_t, p->n_values); /* of each value */
    for (int32_t r = 0; r < p->n_ranges; r++)
        ranges[p->range[r].value]++;
    for (int32_t r = 0; r < p->n_ranges; r++) {
        const PlanRange *x = &p->range[r];
        int64_t bytes = align_up(p->value[x->value].bytes, BLOCK_ALIGN);
        if (x->storage == r) { /* those that take it over have no more bytes, and come later */
            item[r] = a->n;
            a->item[a->n++] = (Item){x->from, x->to, x->offset, x->offset + bytes, r, false};
        }
        Item *it = &a->item[item[x->storage]];
        it->to = x->to > it->to ? x->to : it->to;
        it->again |= ranges[x->value] > 1;
    }
    for (int32_t s = 0; s < p->n_steps; s++) {
        int64_t at = p->step[s].workspace_offset, bytes = plan_own_bytes(p, &p->step[s]);
        if (bytes > 0)
            a->item[a->n++] = (Item){s, s, at, at + bytes, -1, p->step[s].workspace > 0};
    }
}

/* Where it meets nothing of w steps before and behind it: where it is, else the lowest place; -1:
 * nowhere. */
static int64_t find_place(const Apart *a, const Item *it, int32_t w)
{
    int64_t bytes = it->hi - it->lo, at = align_up(a->p->base, BLOCK_ALIGN), lowest = -1;
    bool stays = true;
    for (int32_t i = 0; i < a->n; i++) {
        const Item *x = a->order[i];
        if (x == it || x->from > it->to + w || x->to < it->from - w)
            continue;
        if (lowest < 0 && x->lo - at >= bytes)
            lowest = at;
        stays = stays && (x->hi <= it->lo || it->hi <= x->lo);
        at = x->hi > at ? x->hi : at;
    }
    if (lowest < 0 && a->p->peak - at >= bytes)
        lowest = at;
    return stays ? it->lo : lowest;
}

static void move_to(Apart *a, Item *it, int64_t at)
{
    int32_t i = 0;
    while (a->order[i] != it)
        i++;
    it->hi += at - it->lo;
    it->lo = at;
    for (; i + 1 < a->n && a->order[i + 1]->lo < at; i++)
        a->order[i] = a->order[i + 1];
    for (; i > 0 && a->order[i - 1]->lo > at; i--)
        a->order[i] = a->order[i - 1];
    a->order[i] = it;
}

/* gives: the item's place from now on, or -1: that has not changed. */
static int64_t move(Apart *a, Item *it)
{
    for (int32_t w = WINDOW; w > 0; w--) {
        int64_t at = find_place(a, it, w);
        if (at < 0)
            continue;
        move_to(a, it, at);
        return at;
    }
    return -1;
}

void plan_part_small(Plan *p)
{
    ArenaMark mark = arena_mark(p->arena);
    Apart a = {.p = p};
    a.item = NEW_ARRAY(p->arena, Item, p->n_ranges + p->n_steps);
    list_items(&a);
    a.order = NEW_ARRAY(p->arena, Item *, a.n);
    for (int32_t i = 0; i < a.n; i++)
        a.order[i] = &a.item[i];
    qsort(a.order, (size_t)a.n, sizeof *a.order, by_place);
    int64_t *moved = NEW_ARRAY(p->arena, int64_t, p->n_ranges); /* by storage: to there, or 0 */
    for (int32_t i = 0; i < a.n; i++) {
        Item *it = &a.item[i];
        if (it->again || it->hi == it->lo || (it->storage >= 0 && it->hi - it->lo > SMALL))
            continue;
        int64_t at = move(&a, it);
        if (at > 0 && it->storage >= 0)
            moved[it->storage] = at;
        else if (at > 0)
            p->step[it->from].workspace_offset = at;
    }
    for (int32_t r = 0; r < p->n_ranges; r++)
        if (moved[p->range[r].storage] > 0)
            p->value[p->range[r].value].offset = p->range[r].offset = moved[p->range[r].storage];
    arena_reset(p->arena, mark);
}
