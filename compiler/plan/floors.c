/* Floors and what follows from raising them.
 *
 * Raising a floor raises items, and a section whose items have all risen raises its
 * floor; but a floor that rises to the lowest of its items raises no item any more, so
 * that one round draws all conclusions. Loops run over neighbouring sections, item by
 * item: that is several times faster than section by section. */
#include "floors.h"

#include <stdlib.h>

#include "../base/intern.h"

int64_t floors_slack(const Floors *f, int32_t s)
{
    return f->target - f->floor[s] - f->rest[s];
}

/* ---- undo -------------------------------------------------------------------------- */

static void save_floors(Floors *f, int32_t from, int32_t to)
{
    for (int32_t s = from; s <= to; s++) {
        vec_push(f->arena, &f->saved, f->floor[s]);
        vec_push(f->arena, &f->saved, (int64_t)f->candidates[s]);
    }
    vec_push(f->arena, &f->undo, ((FloorUndo){UNDO_FLOORS, from, to, 0}));
}

static void restore_floors(Floors *f, int32_t from, int32_t to)
{
    f->saved.n -= 2 * (to - from + 1);
    const int64_t *at = &f->saved.at[f->saved.n];
    for (int32_t s = from; s <= to; s++, at += 2) {
        f->floor[s] = at[0];
        f->candidates[s] = (int32_t)at[1];
    }
}

/* ---- taking an item out, and back --------------------------------------------------- */

/* Calls for each run of sections where the item has one height. */
typedef void Run(Floors *f, int32_t item, int32_t from, int32_t to, int64_t height);

static void each_run(Floors *f, int32_t item, Run *run)
{
    const PackItem *it = &f->pack->item[f->item[item].pack];
    int32_t from = it->from;
    int64_t height = it->size;
    for (int32_t i = 0; i < it->n_parts; i++) {
        run(f, item, from, it->part[i].from - 1, height);
        from = it->part[i].from;
        height = it->part[i].size;
    }
    run(f, item, from, it->to, height);
}

static void take_run(Floors *f, int32_t item, int32_t from, int32_t to, int64_t height)
{
    int64_t floor = f->item[item].low + height;
    for (int32_t s = from; s <= to; s++) {
        f->floor[s] = floor;
        f->rest[s] -= height;
        f->open[s]--;
        f->candidates[s] = 0;
    }
}

static void give_run(Floors *f, int32_t item, int32_t from, int32_t to, int64_t height)
{
    (void)item;
    for (int32_t s = from; s <= to; s++) {
        f->rest[s] += height;
        f->open[s]++;
    }
}

static void link_item(Floors *f, int32_t item, bool in)
{
    FloorItem *it = &f->item[item];
    int32_t behind = in ? item : it->next, ahead = in ? item : it->before;
    if (it->before >= 0)
        f->item[it->before].next = behind;
    else
        f->head = behind;
    if (it->next >= 0)
        f->item[it->next].before = ahead;
    it->placed = !in;
    f->starting[it->from] ^= it->hash;
    for (int32_t s = it->from; s < it->to; s++)
        f->crossing[s] += in ? 1 : -1;
}

void floors_undo(Floors *f, int32_t mark)
{
    while (f->undo.n > mark) {
        FloorUndo u = f->undo.at[--f->undo.n];
        if (u.what == UNDO_LOW) {
            f->item[u.index].low = u.old;
        } else if (u.what == UNDO_FLOORS) {
            restore_floors(f, u.index, u.to);
        } else {
            link_item(f, u.index, true);
            each_run(f, u.index, give_run);
        }
    }
}

/* ---- conclusions ---------------------------------------------------------------------- */

typedef struct Hull {
    int32_t from, to;
} Hull;

static bool over(const FloorItem *it, int32_t from, int32_t to)
{
    return it->from <= to && from <= it->to;
}

static int32_t highest_floor(const Floors *f, int32_t from, int32_t to)
{
    int32_t high = from;
    for (int32_t s = from + 1; s <= to; s++)
        high = f->floor[s] > f->floor[high] ? s : high;
    return high;
}

/* All sections of the open items over [from, to] that are lower than `high`. */
static Hull hull_of(Floors *f, int32_t from, int32_t to, int64_t high)
{
    Hull h = {from, to};
    int32_t n = 0;
    for (int32_t i = f->head; i >= 0 && f->item[i].from <= to; i = f->item[i].next, n++) {
        const FloorItem *it = &f->item[i];
        if (it->to < from || it->low >= high)
            continue;
        h.from = it->from < h.from ? it->from : h.from;
        h.to = it->to > h.to ? it->to : h.to;
    }
    f->work -= n;
    return h;
}

/* The floor of s is too high. */
static bool fail_at(Floors *f, int32_t s)
{
    f->blame[s]++;
    return false;
}

static void uncount(Floors *f, const FloorItem *it, int32_t from, int32_t to)
{
    for (int32_t s = from; s <= to; s++)
        f->candidates[s] -= f->floor[s] == it->low;
}

static void count(Floors *f, const FloorItem *it, int32_t from, int32_t to)
{
    for (int32_t s = from; s <= to; s++)
        f->candidates[s] += f->floor[s] == it->low;
}

/* Item i is over [from, to], whose floors are new and have no candidates counted. */
static bool raise_item(Floors *f, int32_t i, int32_t from, int32_t to)
{
    FloorItem *it = &f->item[i];
    int32_t left = it->from > from ? it->from : from, right = it->to < to ? it->to : to;
    int32_t highest = highest_floor(f, left, right);
    int64_t low = f->floor[highest];
    f->work -= (it->to - it->from) / 4 + 4;
    if (low > it->low) {
        uncount(f, it, it->from, left - 1);
        uncount(f, it, right + 1, it->to);
        vec_push(f->arena, &f->undo, ((FloorUndo){UNDO_LOW, i, 0, it->low}));
        it->low = low;
        if (low + it->size > f->target)
            return fail_at(f, highest);
    }
    count(f, it, left, right);
    return true;
}

static bool is_bare(const Floors *f, int32_t s)
{
    return f->open[s] > 0 && f->candidates[s] == 0;
}

/* Where no item can lie on its floor, the floor rises. lowest[]: the lowest item of
 * each such section, -1 elsewhere. */
static bool lift_floors(Floors *f, Hull h)
{
    while (h.from <= h.to && !is_bare(f, h.from))
        h.from++;
    while (h.from <= h.to && !is_bare(f, h.to))
        h.to--;
    for (int32_t s = h.from; s <= h.to; s++)
        f->lowest[s] = is_bare(f, s) ? INT64_MAX : -1;
    int32_t i;
    for (i = f->head; i >= 0 && f->item[i].from <= h.to; i = f->item[i].next) {
        const FloorItem *it = &f->item[i];
        int32_t left = it->from > h.from ? it->from : h.from;
        int32_t right = it->to < h.to ? it->to : h.to;
        for (int32_t s = left; s <= right; s++)
            f->lowest[s] = it->low < f->lowest[s] ? it->low : f->lowest[s];
        f->work -= right > left ? (right - left) / 4 : 0;
    }
    for (int32_t s = h.from; s <= h.to; s++) {
        if (f->lowest[s] < 0)
            continue;
        f->floor[s] = f->lowest[s];
        if (floors_slack(f, s) < 0)
            return fail_at(f, s);
    }
    for (i = f->head; i >= 0 && f->item[i].from <= h.to; i = f->item[i].next) {
        const FloorItem *it = &f->item[i];
        int32_t left = it->from > h.from ? it->from : h.from;
        int32_t right = it->to < h.to ? it->to : h.to;
        for (int32_t s = left; s <= right; s++)
            f->candidates[s] += f->lowest[s] == it->low;
    }
    return true;
}

/* The floors of [from, to] have just been raised; nothing else has been done. */
static bool conclude(Floors *f, Hull h, int32_t from, int32_t to)
{
    for (int32_t s = from; s <= to; s++)
        if (floors_slack(f, s) < 0)
            return fail_at(f, s);
    for (int32_t i = f->head; i >= 0 && f->item[i].from <= to; i = f->item[i].next)
        if (over(&f->item[i], from, to) && !raise_item(f, i, from, to))
            return false;
    return lift_floors(f, h);
}

bool floors_place(Floors *f, int32_t item)
{
    FloorItem *it = &f->item[item];
    Hull h = hull_of(f, it->from, it->to, it->low + it->size);
    save_floors(f, h.from, h.to);
    vec_push(f->arena, &f->undo, ((FloorUndo){UNDO_PLACED, item, 0, 0}));
    link_item(f, item, false);
    each_run(f, item, take_run);
    f->work -= (h.to - h.from) / 2 + 8;
    return conclude(f, h, it->from, it->to);
}

bool floors_raise(Floors *f, int32_t section, int64_t to)
{
    Hull h = hull_of(f, section, section, to);
    save_floors(f, h.from, h.to);
    f->floor[section] = to;
    f->candidates[section] = 0;
    return conclude(f, h, section, section);
}

/* ---- set up ------------------------------------------------------------------------------ */

static int64_t common_unit(const Pack *k)
{
    int64_t unit = 0;
    for (int32_t i = 0; i < k->n; i++) {
        unit = common_divisor(unit, k->item[i].size);
        for (int32_t j = 0; j < k->item[i].n_parts; j++)
            unit = common_divisor(unit, k->item[i].part[j].size);
    }
    return unit;
}

/* By start, and equal ones side by side. */
static int by_start(const void *a, const void *b)
{
    const FloorItem *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return (x->pack > y->pack) - (x->pack < y->pack);
}

static bool alike(const Floors *f, const FloorItem *x, const FloorItem *y)
{
    const PackItem *a = &f->pack->item[x->pack], *b = &f->pack->item[y->pack];
    return x->from == y->from && x->to == y->to && x->size == y->size && a->n_parts == 0 &&
           b->n_parts == 0;
}

static void fill_items(Floors *f)
{
    for (int32_t i = 0; i < f->n; i++) {
        const PackItem *p = &f->pack->item[i];
        f->item[i] = (FloorItem){.from = p->from, .to = p->to, .pack = i, .size = p->size};
        f->item[i].least = pack_size(p, p->to);
        f->item[i].hash = hash_mix(HASH_START ^ (uint64_t)i);
    }
    qsort(f->item, (size_t)f->n, sizeof *f->item, by_start);
    for (int32_t i = 0; i < f->n; i++) {
        FloorItem *it = &f->item[i];
        it->class = i > 0 && alike(f, it, it - 1) ? it[-1].class : i;
        it->before = i - 1;
        it->next = i + 1 < f->n ? i + 1 : -1;
    }
    f->head = f->n > 0 ? 0 : -1;
}

static void open_run(Floors *f, int32_t item, int32_t from, int32_t to, int64_t height)
{
    give_run(f, item, from, to, height);
    for (int32_t s = from; s <= to; s++)
        f->candidates[s]++;
}

void floors_init(Floors *f, const Pack *k, Arena *arena)
{
    int32_t n = k->n_sections;
    *f = (Floors){.arena = arena, .pack = k, .n = k->n, .n_sections = n};
    f->unit = common_unit(k);
    f->item = NEW_ARRAY(arena, FloorItem, k->n);
    f->floor = NEW_ARRAY(arena, int64_t, n);
    f->rest = NEW_ARRAY(arena, int64_t, n);
    f->blame = NEW_ARRAY(arena, int64_t, n);
    f->lowest = NEW_ARRAY(arena, int64_t, n);
    f->open = NEW_ARRAY(arena, int32_t, n);
    f->candidates = NEW_ARRAY(arena, int32_t, n);
    f->crossing = NEW_ARRAY(arena, int32_t, n);
    f->starting = NEW_ARRAY(arena, uint64_t, n);
    fill_items(f);
    for (int32_t i = 0; i < f->n; i++) {
        each_run(f, i, open_run);
        f->starting[f->item[i].from] ^= f->item[i].hash;
        for (int32_t s = f->item[i].from; s < f->item[i].to; s++)
            f->crossing[s]++;
    }
}
