/* The lower bound of what a budget costs, with its proof, and what to keep. */
#ifndef GRADC_PLAN_BOUND_H
#define GRADC_PLAN_BOUND_H

#include "certificate.h"
#include "sequence.h"

/* Keep these values at the moment, and run the others again: where a decoder begins. */
typedef struct KeepSet {
    int32_t moment;
    const bool *kept; /* by node */
    int64_t bound;    /* of the moment */
} KeepSet;

typedef struct Bound {
    bool impossible; /* proof: no plan keeps to the budget */
    int64_t bound;   /* of the extra cost */
    Certificate proof;
    VEC(KeepSet) keep; /* the moments with the highest bounds first */
} Bound;

/* How far to go, in arcs looked at, moments tried, and cases of a proof. */
typedef struct BoundEffort {
    int64_t work;
    int32_t moments, cases;
} BoundEffort;

/* Bound of the extra cost of a plan of p within the budget. `order` is any schedule
 * that runs each node once. A bound of `enough` is not improved.
 * source: Lagrangian duality with a minimum cut inside, after the project selection of
 * Picard, Maximal closure of a graph (1976); cases by branch and bound. */
Bound *bound_find(const Problem *p, const Sequence *order, int64_t budget, int64_t enough,
                  BoundEffort effort, Arena *out);

/* Bound of one moment. */
Bound *bound_at(const Problem *p, int32_t moment, int64_t budget, int64_t enough,
                BoundEffort effort, Arena *out);

/* What to keep at this moment under this budget: for a decoder that needs more bytes
 * elsewhere, and asks for less. NULL if there is nothing that fits. */
const bool *bound_keep(const Problem *p, int32_t moment, int64_t budget, int64_t *work, Arena *out);

#endif
