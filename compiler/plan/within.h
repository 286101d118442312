/* Fewer bytes for more time: steps of an entry that run again. */
#ifndef GRADC_PLAN_WITHIN_H
#define GRADC_PLAN_WITHIN_H

#include "plan.h"

/* Where the plan's peak is above the budget, a plan of the same steps in which some run
 * again takes its place, the cheapest that is found. Every kernel computes what it did, so no bit
 * of a result changes.
 * requires: plan_liveness() and plan_place().
 * gives: *least, the smallest peak that is found, whatever the budget.
 * fails: false, where that is above the budget; the plan stays as it was. */
bool plan_within(Plan *p, int64_t budget, int64_t *least);

#endif
