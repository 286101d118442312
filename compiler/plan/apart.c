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
    int32_t n;
    Item *met; /* those that an item must not meet, by where they begin */
} Apart;

static int by_place(const void *a, const void *b)
{
    const Item *x = a, *y = b;
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

/* Items that are there in steps from..to, but for item i; how many. */
static int32_t find_met(Apart *a, int32_t i, int32_t from, int32_t to)
{
    int32_t n = 0;
    for (int32_t j = 0; j < a->n; j++)
        if (j != i && a->item[j].from <= to && from <= a->item[j].to)
            a->met[n++] = a->item[j];
    qsort(a->met, (size_t)n, sizeof *a->met, by_place);
    return n;
}

/* Where so many bytes meet none of the n: where they are, else the lowest place; -1: nowhere. */
static int64_t find_place(const Apart *a, const Item *it, int32_t n)
{
    int64_t bytes = it->hi - it->lo, at = align_up(a->p->base, BLOCK_ALIGN), lowest = -1;
    bool stays = true;
    for (int32_t j = 0; j <= n; j++) {
        int64_t end = j < n ? a->met[j].lo : a->p->peak;
        if (lowest < 0 && end - at >= bytes)
            lowest = at;
        if (j == n)
            break;
        stays = stays && (a->met[j].hi <= it->lo || it->hi <= a->met[j].lo);
        at = a->met[j].hi > at ? a->met[j].hi : at;
    }
    return stays ? it->lo : lowest;
}

/* gives: the item's new place, or -1. */
static int64_t move(Apart *a, Item *it)
{
    for (int32_t w = WINDOW; w > 0; w--) {
        int32_t n = find_met(a, (int32_t)(it - a->item), it->from - w, it->to + w);
        int64_t at = find_place(a, it, n);
        if (at < 0)
            continue;
        it->hi += at - it->lo;
        it->lo = at;
        return at;
    }
    return -1;
}

void plan_part_small(Plan *p)
{
    ArenaMark mark = arena_mark(p->arena);
    Apart a = {.p = p};
    a.item = NEW_ARRAY(p->arena, Item, p->n_ranges + p->n_steps);
    a.met = NEW_ARRAY(p->arena, Item, p->n_ranges + p->n_steps);
    list_items(&a);
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
