/* From groups to a Program: buffers, live ranges, calls. */
#ifndef GRADC_PASS_LOWER_H
#define GRADC_PASS_LOWER_H

#include "cluster.h"
#include "../plan/plan.h"

/* Pinned storage, inputs and their staging: the same for all entries. Called
 * once, when every entry has been clustered; c: `n` entries, or NULL. */
void lower_pinned(Program *p, const Pinned *pin, const Clusters *const *c, int n);

/* Scratch of one lane that the groups' kernels want of the target, bodies too: in the groups.
 * gives: the most of all. */
int64_t lower_lane_bytes(Clusters *c, const Caps *caps, int64_t threads_max);

/* An entry whose steps are planned, and whose calls are still to be made. */
typedef struct Lowered Lowered;

/* Plans one entry: each step once, and what the model offloads out of the block meanwhile. Until
 * lower_calls() another plan of the same steps may take the place of *lower_plan_of(). `cost` is
 * that of the plan. lane_bytes: what a lane may take for whole turns of a loop. */
Lowered *lower_plan(Ctx *cx, Program *p, Clusters *c, const Pinned *pin, const char *entry,
                    const CostModel *cost, int64_t lane_bytes);
Plan *lower_plan_of(const Lowered *l);

/* Appends the entry to the program, by its plan.
 * fails: never, but for a compiler bug, which is reported as E0990 (under cx->verify). */
void lower_calls(Lowered *l);

/* Once all calls are made: many kernels that differ in where they begin become one, and their calls
 * begin there (share_kernels.c). */
void share_kernels(Program *p, const Caps *caps);

/* Totals over the entries. */
void lower_finish(Program *p);

#endif
