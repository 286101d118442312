/* The state of the search for a packing: what is placed, and what follows for the rest.
 *
 * Every section has a floor, below which nothing more is put, and a rest, the bytes of
 * its items that are not placed. An item lies at least as high as the highest floor
 * under it; a floor on which no item can lie rises to the lowest that one can; where
 * floor + rest is above the target, there is no packing. */
#ifndef GRADC_PLAN_FLOORS_H
#define GRADC_PLAN_FLOORS_H

#include "../base/vec.h"
#include "pack.h"

typedef struct FloorItem {
    int32_t from, to;     /* sections */
    int32_t pack;         /* index in the Pack */
    int32_t class;        /* the first item that is exactly like it */
    int32_t next, before; /* items that are not placed, by `from`; -1 at the ends */
    bool placed;
    int64_t size, least; /* in its first section, in its last */
    int64_t low;         /* it lies there, or can't lie lower */
    int64_t key;         /* candidates are tried by falling keys */
    uint64_t hash;
} FloorItem;

/* One entry of the undo stack; ranges of floors and candidates are kept in `saved`. */
typedef struct FloorUndo {
    enum { UNDO_LOW, UNDO_PLACED, UNDO_FLOORS } what;
    int32_t index, to; /* of the item; first and last section */
    int64_t old;
} FloorUndo;

typedef struct Floors {
    Arena *arena;
    const Pack *pack;
    int32_t n, n_sections, head;
    int64_t target, unit; /* all sizes are multiples of unit */
    int64_t work;         /* elementary operations that are left */
    FloorItem *item;      /* by `from` */
    /* By section: */
    int64_t *floor, *rest;
    int32_t *open;       /* items that are not placed */
    int32_t *candidates; /* of these, those that can lie on the floor */
    int32_t *crossing;   /* of these, those that reach into the next section */
    uint64_t *starting;  /* hash of the open ones that start here */
    int64_t *blame;      /* how often there was no packing because of it, of late */
    int64_t *lowest;     /* scratch */
    VEC(FloorUndo) undo;
    VEC(int64_t) saved;
} Floors;

void floors_init(Floors *f, const Pack *k, Arena *arena);

/* Puts the item as low as it can lie, and draws the conclusions.
 * requires: nothing that is not placed fits below it.
 * false: there is no packing. Either way floors_undo() takes it back. */
bool floors_place(Floors *f, int32_t item);

/* Nothing shall lie below `to` in this section. */
bool floors_raise(Floors *f, int32_t section, int64_t to);

/* Back to what was when f->undo.n was `mark`. */
void floors_undo(Floors *f, int32_t mark);

/* Bytes that section s may still waste. */
int64_t floors_slack(const Floors *f, int32_t s);

#endif
