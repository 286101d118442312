/* Placement with a limit of one's own; plan_place() is for everybody else. */
#ifndef GRADC_PLAN_PLACE_H
#define GRADC_PLAN_PLACE_H

#include "plan.h"

/* A few tenths of a second at the most, where no packing without holes is found. */
enum { PLACE_WORK = 32000000 };

/* plan_place(), where the search may take `work` elementary operations. */
void plan_place_effort(Plan *p, int64_t work);
/* ... of many plans of which one is taken: a peak of `enough` bytes is not lowered, and the quick
 * ways take no longer than that either. */
void plan_place_within(Plan *p, int64_t enough, int64_t work);

#endif
