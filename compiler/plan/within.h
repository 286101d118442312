/* Fewer bytes for more time: steps of an entry that run again. */
#ifndef GRADC_PLAN_WITHIN_H
#define GRADC_PLAN_WITHIN_H

#include "budget.h"
#include "plan.h"

/* Plans of the steps of one plan, for any budget. Every kernel computes what it did, so no
 * bit of a result changes. */
typedef struct Within Within;

/* requires: plan_liveness() and plan_place() of p, which may change as within_plan() says. */
Within *within_open(Plan *p, PlanEffort effort, Arena *out);
void within_close(Within *w);

/* The smallest peak that is found, whatever the budget. */
int64_t within_least(Within *w);

/* Sets p->budget.bound, or p->budget.impossible: what is proved of all plans within the
 * budget, of these steps in any order, run as often as one likes. An independent checker has
 * added up the proof. requires: within_plan() with this budget. */
void within_prove(Within *w, int64_t budget);

/* Where the plan's peak is above the budget, a plan in which some steps run again takes its
 * place, the cheapest that is found. More bytes never cost more time.
 * gives: p->budget.
 * fails: false, where that is above the budget; the plan stays as it was. */
bool within_plan(Within *w, int64_t budget);

#endif
