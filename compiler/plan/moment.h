/* The instant at which one node runs for the first time, as a minimum cut: what has to
 * be kept or run again after it. certificate.h has the mathematics. */
#ifndef GRADC_PLAN_MOMENT_H
#define GRADC_PLAN_MOMENT_H

#include "certificate.h"
#include "flow.h"

typedef enum Decided { OPEN = 0, KEPT = 1, NOT_KEPT = 2 } Decided;

/* Node v of the problem, if it matters, is cell index[v]; its nodes in the network are
 * 2 cell and 2 cell + 1. */
typedef struct Moment {
    const Problem *p;
    Arena *arena;
    int32_t node; /* the moment */
    int32_t n;    /* cells */
    int32_t *index, *cell;
    bool *before, *needed, *read; /* by node */
    uint8_t *decided;             /* by node: Decided */
    int64_t room;                 /* with what is decided to be kept taken off */
    int64_t bytes;                /* of all cells */
    int64_t scale;
    int64_t divisor; /* of all costs */
    Flow flow;
    int32_t first_edge, first_need; /* arcs: in and keep by cell come first */
    int32_t *edge;                  /* index in Problem.input, of each arc of an edge */
    bool *reached;
    int64_t *work; /* of flow_run */
} Moment;

/* One cut: what is kept at the moment, and what runs again. */
typedef struct Cut {
    bool *kept, *again; /* by node */
    int64_t bytes;      /* kept, less what takes no room, and what is decided */
    int64_t cost;       /* of what runs again */
} Cut;

typedef struct MomentBound {
    bool impossible; /* what can't run again does not fit */
    int64_t bound;   /* of the extra cost */
    int64_t price;   /* that proves it */
    int32_t shift;
    Cut fits, over; /* the cuts on both sides of the room; `fits` may be unknown */
    bool has_fit;
} MomentBound;

void moment_init(Moment *m, const Problem *p, int32_t node, int64_t budget, int64_t *work,
                 Arena *a);

/* The best bound of one price (the case of what is decided). The cuts are in the arena. */
MomentBound moment_bound(Moment *m, bool quick);

/* The flow of this price, as a case of the proof. */
ProofCase moment_proof(Moment *m, const MomentBound *b, Arena *out);

#endif
