/* The order of steps, for fewer live bytes at once. */
#ifndef GRADC_PLAN_ORDER_H
#define GRADC_PLAN_ORDER_H

#include "plan.h"

/* Step to[i] has to run after step from[i], whatever the plan says of their values. */
typedef struct OrderWaits {
    VEC(int32_t) from;
    VEC(int32_t) to;
} OrderWaits;

/* By place the step of p that is best run there, or NULL: no order is found in which the most that
 * is live at once is less. Updates at the end stay there. Deterministic; its effort is
 * limited.   requires: plan_liveness(); each step runs once, and nothing goes out of the block. */
const int32_t *plan_order(const Plan *p, const OrderWaits *more, Arena *out);

#endif
