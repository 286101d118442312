/* The planner of bare problems: a schedule within a budget, what it costs, and a proof
 * of how much less any other could cost. */
#ifndef GRADC_PLAN_RECOMPUTE_H
#define GRADC_PLAN_RECOMPUTE_H

#include "bound.h"

typedef enum BudgetKind { BUDGET_BYTES, BUDGET_LEAST, BUDGET_SHARE } BudgetKind;

/* What the user asks for: bytes; the least that is found; a share of what storing all
 * values takes, pinned bytes apart. */
typedef struct BudgetAsked {
    BudgetKind kind;
    int64_t bytes;
    double share;
} BudgetAsked;

typedef enum PlanEffort { EFFORT_DEFAULT, EFFORT_MAX } PlanEffort;

typedef enum PlanOutcome {
    PLAN_FOUND,
    PLAN_IMPOSSIBLE, /* proved: `why` says by what */
    PLAN_NOT_FOUND
} PlanOutcome;

typedef struct Recompute {
    PlanOutcome outcome;
    int64_t budget;    /* in bytes */
    int64_t store_all; /* arena of running every node once, in the given order */
    Sequence *plan;    /* with offsets; NULL unless found */
    int64_t bound;     /* of the extra cost */
    Certificate proof; /* of the bound, or of the impossibility where it has a moment */
    int64_t least;     /* budget that is known to work, if not found */
    const char *why;
} Recompute;

/* Everything is deterministic: the same problem and budget give the same plan. */
Recompute *recompute(const Problem *p, BudgetAsked asked, PlanEffort effort, Arena *out);

/* The report, as one JSON object with schedule, offsets and proof, or as a few lines.
 * requires: a plan. */
void recompute_json(const Problem *p, const Recompute *r, double seconds, Text *to);
void recompute_print(const Problem *p, const Recompute *r, double seconds, Text *to);
/* The proof alone. */
void certificate_json(const Certificate *c, Text *to);

#endif
