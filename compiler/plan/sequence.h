/* A schedule: nodes in the order in which they run, some of them more than once.
 *
 * Each execution reads what the latest earlier execution of each of its inputs left.
 * Its own output is there until the last read that means it, or until the end; what may be
 * written over its input is, where that is read for the last time. */
#ifndef GRADC_PLAN_SEQUENCE_H
#define GRADC_PLAN_SEQUENCE_H

#include "problem.h"

typedef struct Sequence {
    int32_t n;
    int32_t *node;           /* by position */
    int32_t *retain;         /* by position: the last one at which this output is there */
    int64_t *live;           /* by position: bytes there, pinned and scratch included */
    int64_t max_live;        /* the largest of them */
    int64_t cost;            /* of all executions */
    int64_t *offset;         /* by position, in bytes; NULL before sequence_place */
    int64_t *scratch_offset; /* likewise; -1 where there is none */
    int64_t arena;           /* bytes in all; max_live if there is no hole */
    bool placed;             /* arena is known */
    int64_t enough;          /* no smaller arena is looked for; 0: as small as can be */
} Sequence;

/* The nodes in their own order, each once. */
Sequence *sequence_base(const Problem *p, Arena *out);

/* A schedule that runs node[0 .. n), of which retain, live, max_live and cost are found.
 * requires: every input of an execution has run before it.
 * keeps: a copy of node[]. */
Sequence *sequence_of(const Problem *p, const int32_t *node, int32_t n, Arena *out);

/* Elementary operations; and those of each step of pack_eject(). */
typedef struct PlaceWork {
    int64_t all, eject;
} PlaceWork;

/* Offsets for all outputs and scratch, as low as the work gets them:
 * gives offset, scratch_offset, arena. */
void sequence_place(const Problem *p, Sequence *s, PlaceWork work, Arena *out);

#endif
