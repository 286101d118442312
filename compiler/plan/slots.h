/* A schedule that can be changed: executions in numbered slots, most of them empty.
 *
 * Which execution a read means, how long each output stays, how many bytes are there in
 * each slot and the most of all slots follow every change at once. */
#ifndef GRADC_PLAN_SLOTS_H
#define GRADC_PLAN_SLOTS_H

#include "sequence.h"

/* Slots in rising order. */
typedef struct SlotList {
    int32_t *at;
    int32_t n, cap;
} SlotList;

typedef struct SlotChange {
    int32_t node, slot;
    bool added;
} SlotChange;

typedef struct Slots {
    const Problem *p;
    Arena *arena;
    int32_t n;              /* slots, a power of two */
    int32_t n_run;          /* executions */
    int32_t *node;          /* by slot; -1: empty */
    SlotList *run;          /* by node: where it runs */
    SlotList *use;          /* by node: where it is read */
    int32_t *twice, *where; /* nodes that run more than once; by node, where in it, or -1 */
    int32_t n_twice;
    int64_t *top, *add; /* tree over slots: the most bytes below, what to add to all below */
    int64_t cost;
    double area;            /* bytes that are there, summed over all slots */
    VEC(SlotChange) change; /* since slots_keep */
} Slots;

/* Slots for s and for schedules a few times longer, with s in them. */
void slots_init(Slots *x, const Problem *p, const Sequence *s, Arena *a);
/* Spreads another schedule, or its own, evenly over the slots. */
void slots_load(Slots *x, const int32_t *node, int32_t n);
/* The nodes in order; returns how many. requires: room for x->n_run. */
int32_t slots_order(const Slots *x, int32_t *node);

/* Adds or removes one execution. false, and nothing is changed, where an input or a
 * reader would be without a value, v would never run, or run too late. requires: the slot is empty;
 * v runs there. */
bool slots_add(Slots *x, int32_t v, int32_t slot);
bool slots_remove(Slots *x, int32_t v, int32_t slot);

/* Changes become final, or are taken back until x->change.n is `mark` again. */
void slots_keep(Slots *x);
void slots_undo(Slots *x, int mark);

/* The most bytes of all slots, pinned ones apart, and a slot that has them. */
static inline int64_t slots_peak(const Slots *x)
{
    return x->top[1];
}
int32_t slots_peak_slot(const Slots *x, uint64_t random);

/* The last of the list below `slot`: its index, -1 if there is none. */
int32_t slots_before(const SlotList *list, int32_t slot);
/* The last slot in which the output of run i of v is there. */
int32_t slots_end(const Slots *x, int32_t v, int32_t i);

#endif
