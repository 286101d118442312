/* Local search on a schedule: what runs again, when, and in which order. */
#ifndef GRADC_PLAN_POLISH_H
#define GRADC_PLAN_POLISH_H

#include "sequence.h"

typedef struct PolishAim {
    int64_t budget; /* bytes, pinned ones included */
    int64_t enough; /* a plan of this cost is not improved */
    int64_t moves;
    double hot, cold; /* temperatures, in parts of cost_base; both 0: only improvements */
    uint64_t seed;
    double thin;     /* what bytes weigh in slots that are not full; 0: nothing. Buffers of a thin
                      * schedule are packed without holes more easily, and moves find a way */
    bool order_only; /* nothing runs more often than it does */
    bool fill;       /* first, what need not run again within the budget does not */
} PolishAim;

/* Searches from `from`, which need not keep to the budget. Returns the cheapest schedule
 * within it that was seen, or the one with the fewest bytes if there was none.
 * source: simulated annealing, Kirkpatrick, Gelatt & Vecchi (1983); on schedules with
 * recomputation it is FastSA's, whose tree over slots is used as well. */
Sequence *polish(const Problem *p, const Sequence *from, PolishAim aim, Arena *out);

#endif
