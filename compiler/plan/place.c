/* Offsets for every storage, and for what each step has alone.
 *
 * Above pinned storage that is a packing problem (pack.h) with one item for each storage and each
 * step that has workspace or lanes with scratch, times cut down to the sections that matter. */
#include "plan.h"

#include <assert.h>

#include "pack.h"
#include "place.h"

static int64_t block_bytes(int64_t bytes)
{
    return align_up(bytes, BLOCK_ALIGN);
}

typedef struct Placing {
    Plan *p;
    Pack pack;
    int32_t *section;  /* by step */
    int32_t *item_of;  /* by range: the item of its storage */
    int32_t *space_of; /* by step: the item of what it has alone, or -1 */
    int32_t *next;     /* by range: the one that takes over its storage, or -1 */
    PackPart *part;
    int32_t n_parts;
} Placing;

/* ---- items ------------------------------------------------------------------- */

/* When range r holds its storage alone: while it is being written over another
 * value, the storage is that value's still. */
static int32_t sole_from(const Plan *p, int32_t r)
{
    return p->range[r].from + (p->range[r].storage != r);
}

/* Finds who takes over from whom: the ranges of a storage follow one another. */
static void chain_storages(Placing *pl, int32_t *last)
{
    const Plan *p = pl->p;
    for (int32_t r = 0; r < p->n_ranges; r++) {
        int32_t storage = p->range[r].storage;
        pl->next[r] = -1;
        if (storage != r)
            pl->next[last[storage]] = r;
        last[storage] = r;
    }
}

/* A step begins a section if something starts there after something has ended:
 * between two such steps, the last one has all that the others have. */
static void cut_sections(Placing *pl, bool *starts, bool *ends)
{
    const Plan *p = pl->p;
    for (int32_t r = 0; r < p->n_ranges; r++)
        if (sole_from(p, r) <= p->range[r].to)
            starts[sole_from(p, r)] = ends[p->range[r].to] = true;
    for (int32_t s = 0; s < p->n_steps; s++)
        if (plan_own_bytes(p, &p->step[s]) > 0)
            starts[s] = ends[s] = true;
    int32_t section = 0;
    bool ended = false;
    for (int32_t s = 0; s < p->n_steps; s++) {
        if (ended && starts[s]) {
            section++;
            ended = false;
        }
        pl->section[s] = section;
        ended = ended || ends[s];
    }
    pl->pack.n_sections = section + 1;
}

/* The item of the storage that range `first` opens. */
static PackItem storage_item(Placing *pl, int32_t first)
{
    const Plan *p = pl->p;
    PackItem it = {.from = pl->section[p->range[first].from], .part = &pl->part[pl->n_parts]};
    it.size = block_bytes(p->value[p->range[first].value].bytes);
    int64_t size = it.size;
    int32_t to = p->range[first].to;
    for (int32_t r = pl->next[first]; r >= 0; r = pl->next[r]) {
        int64_t bytes = block_bytes(p->value[p->range[r].value].bytes);
        if (bytes < size && sole_from(p, r) <= p->range[r].to) {
            pl->part[pl->n_parts++] = (PackPart){pl->section[sole_from(p, r)], bytes};
            it.n_parts++;
            size = bytes;
        }
        to = p->range[r].to;
    }
    it.to = pl->section[to];
    return it;
}

static void make_items(Placing *pl)
{
    const Plan *p = pl->p;
    Pack *k = &pl->pack;
    for (int32_t r = 0; r < p->n_ranges; r++) {
        if (p->range[r].storage != r)
            continue;
        for (int32_t i = r; i >= 0; i = pl->next[i])
            pl->item_of[i] = k->n;
        k->item[k->n++] = storage_item(pl, r);
    }
    for (int32_t s = 0; s < p->n_steps; s++) {
        pl->space_of[s] = -1;
        int64_t bytes = plan_own_bytes(p, &p->step[s]);
        if (bytes <= 0)
            continue;
        pl->space_of[s] = k->n;
        k->item[k->n++] = (PackItem){.from = pl->section[s], .to = pl->section[s], .size = bytes};
    }
}

/* ---- from items back to the plan ----------------------------------------------- */

static void set_offsets(const Placing *pl, int64_t floor)
{
    Plan *p = pl->p;
    const PackItem *item = pl->pack.item;
    for (int32_t r = 0; r < p->n_ranges; r++) {
        p->range[r].offset = floor + item[pl->item_of[r]].offset;
        p->value[p->range[r].value].offset = p->range[r].offset;
    }
    for (int32_t s = 0; s < p->n_steps; s++)
        p->step[s].workspace_offset =
            pl->space_of[s] < 0 ? floor : floor + item[pl->space_of[s]].offset;
    p->peak = floor + pl->pack.height;
}

/* Looks at items that lie there already, for an elementary operation of the search. */
enum { LOOKS_EACH = 100 };

static void place(Plan *p, int64_t enough, int64_t work, int64_t looks)
{
    int64_t floor = block_bytes(p->base);
    ArenaMark mark = arena_mark(p->arena);
    Placing pl = {.p = p, .pack = {.arena = p->arena, .looks = looks}};
    pl.section = NEW_ARRAY(p->arena, int32_t, p->n_steps);
    pl.item_of = NEW_ARRAY(p->arena, int32_t, p->n_ranges);
    pl.next = NEW_ARRAY(p->arena, int32_t, p->n_ranges);
    pl.part = NEW_ARRAY(p->arena, PackPart, p->n_ranges);
    pl.space_of = NEW_ARRAY(p->arena, int32_t, p->n_steps);
    pl.pack.item = NEW_ARRAY(p->arena, PackItem, p->n_ranges + p->n_steps);
    chain_storages(&pl, NEW_ARRAY(p->arena, int32_t, p->n_ranges));
    cut_sections(&pl, NEW_ARRAY(p->arena, bool, p->n_steps + 1),
                 NEW_ARRAY(p->arena, bool, p->n_steps + 1));
    make_items(&pl);
    pack_bound(&pl.pack);
    if (enough - floor > pl.pack.goal)
        pl.pack.goal = enough - floor;
    pack_lowest(&pl.pack, work, BLOCK_ALIGN);
    set_offsets(&pl, floor);
    arena_reset(p->arena, mark);
}

void plan_place_within(Plan *p, int64_t enough, int64_t work)
{
    place(p, enough, work, LOOKS_EACH * work);
}

void plan_place_effort(Plan *p, int64_t work)
{
    place(p, 0, work, 0);
}

void plan_place(Plan *p)
{
    plan_place_effort(p, PLACE_WORK);
}
