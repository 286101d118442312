/* From groups to a Program: buffers, live ranges, calls. */
#ifndef GRADC_PASS_LOWER_H
#define GRADC_PASS_LOWER_H

#include "cluster.h"
#include "../plan/plan.h"

/* Pinned storage, inputs and their staging: the same for all entries. Called
 * once, when every entry's graph has been built. */
void lower_pinned(Program *p, const Pinned *pin);

/* Scratch of one lane that the groups' kernels want of the target, bodies too. */
int64_t lower_lane_bytes(const Clusters *c, const Caps *caps);

/* Lane scratch after pinned storage: the first byte free for entries follows. */
void lower_lanes(Program *p, int64_t lane_bytes, int32_t threads_max);

/* Plans one entry, for a block of `budget` bytes (0: no limit), and appends it to the program.
 * A budget that is too small is left for plan_fits() to report.
 * gives: its plan, checked under cx->verify.   fails: never, but for a compiler bug, which is
 * reported as E0990. */
Plan *lower_entry(Ctx *cx, Program *p, const Clusters *c, const Pinned *pin, const char *entry,
                  int64_t budget);

/* Totals over the entries. */
void lower_finish(Program *p);

#endif
