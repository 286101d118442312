/* The planner: a schedule within a budget, what it costs, and a proof of how much less
 * any other could cost. It plans bare problems, and with another judge the entries of
 * models (within.h). */
#ifndef GRADC_PLAN_RECOMPUTE_H
#define GRADC_PLAN_RECOMPUTE_H

#include "bound.h"
#include "budget.h"

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

/* ---- with another judge ----------------------------------------------------------------- */

/* Says how many bytes a schedule takes where it is to be used, which the problem's own
 * bytes only come near to. */
typedef struct PlanJudge {
    void *of;
    void (*place)(void *of, Sequence *s); /* gives s->arena and s->placed */
} PlanJudge;

typedef struct Planner Planner;

/* What the planner remembers is the same for every budget: it may be asked for many. */
Planner *planner_open(const Problem *p, PlanJudge judge, PlanEffort effort, Arena *out);
/* The schedule with the fewest bytes that is found; less is refused. */
Sequence *planner_least(Planner *g);
/* The cheapest schedule within the budget of those that lie between the least and that of
 * running every node once; NULL below the least. More bytes never cost more: for a larger
 * budget the same ones are there to choose from, and others. */
Sequence *planner_ladder(Planner *g, int64_t budget);

/* ---- reports ------------------------------------------------------------------------------ */

/* The report, as one JSON object with schedule, offsets and proof, or as a few lines.
 * requires: a plan. */
void recompute_json(const Problem *p, const Recompute *r, double seconds, Text *to);
void recompute_print(const Problem *p, const Recompute *r, double seconds, Text *to);
/* The proof alone. */
void certificate_json(const Certificate *c, Text *to);

#endif
