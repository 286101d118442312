/* The checker of plans of bare problems. It shares no code with the planner. */
#ifndef GRADC_PLAN_CHECK_SEQUENCE_H
#define GRADC_PLAN_CHECK_SEQUENCE_H

#include "certificate.h"

/* What is said of a plan; nothing of it is believed. */
typedef struct PlanClaim {
    int64_t budget, peak, arena, max_live;
    int64_t cost_base, cost_plan;
    int64_t bound; /* of the extra cost: at most what the certificate proves */
    int32_t n;
    const int32_t *node, *retain;
    const int64_t *offset, *scratch_offset; /* -1: no scratch */
    const Certificate *proof;               /* NULL: the bound is 0 */
} PlanClaim;

/* Runs the plan, byte by byte, and adds up its proof. Returns NULL if all of it is
 * right, or a sentence about the first fault, in `out`. */
const char *check_sequence(const Problem *p, const PlanClaim *claim, Arena *out);

/* The part for the proof alone: the bound that it proves under `budget`, or -1 and a
 * sentence in *error. INT64_MAX: no plan keeps to the budget. */
int64_t check_proof(const Problem *p, const Certificate *proof, int64_t budget, Arena *out,
                    const char **error);

/* Reads a report, as `plan --problem --json` prints it, back as a claim. NULL after
 * reporting E0610 with what is wrong with its form. */
PlanClaim *claim_read(Ctx *cx, const char *path, const char *text, size_t bytes, Arena *out);

#endif
