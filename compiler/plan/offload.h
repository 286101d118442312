/* Values that are out of the block for a while: the third choice beside keeping a value and
 * computing it again.
 *
 * A value goes out once, as soon as it is stored, and may come in several times. Between two
 * uses of it there are, in this order: STEP_OUT (the first time), STEP_WAIT, STEP_IN,
 * STEP_WAIT. Where they stand among the other steps decides how much of a transfer computing
 * hides: the model of time is that of plan_step_cost(), with transfers one after another at
 * CostModel.store. */
#ifndef GRADC_PLAN_OFFLOAD_H
#define GRADC_PLAN_OFFLOAD_H

#include "plan.h"

/* A transfer of the value, or a wait for it. */
PlanStep offload_step(const Plan *p, StepKind kind, int32_t value);

/* Puts a STEP_IN before the first use in the reverse pass of each value with PlanValue.offload,
 * where that follows its longest time without a use. requires: steps that store it once.
 * gives: false, and nothing has changed, if there is no such value. */
bool offload_asked(Plan *p);

/* From steps with bare STEP_IN, anywhere between the two uses that they are about, a plan with
 * places: transfers begin as early, and are waited for as late, as `limit` bytes of the block
 * allow, and budgets of parts. 0 is a limit that leaves most of what can be saved; below 0 it takes
 * the fewest bytes, whatever has to be waited for. gives: p->step, store_bytes, and all that
 * plan_liveness() and plan_place() give; `work` is plan_place_effort()'s. */
void offload_place(Plan *p, int64_t limit, int64_t work);

/* ns that a transfer of the value takes; waking up who makes it is most of a small one. */
enum { TRANSFER_NS = 5000 };
double offload_duration(const Plan *p, int32_t value);

/* What transfers cost, by that model. */
typedef struct Transfers {
    int64_t out_bytes, in_bytes; /* that go out, and come in: all iterations of loops */
    double busy, waited;         /* ns that transfers take, and that are waited for them */
} Transfers;

/* waited (by value, in ns; may be NULL) gets what is waited for each of the plan's own. */
Transfers offload_transfers(const Plan *p, double *waited);

/* What is said of it, or NULL where the plan moves nothing: "offloaded: ..." */
const char *offload_text(const Plan *p, Arena *a);
/* "written out after step 3, in again ..."; NULL: it stays in the block. */
const char *offload_value_text(const Plan *p, int32_t value, Arena *a);

#endif
