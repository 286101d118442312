/* Inside of the planner: searches, the least budget, and plans for budgets above it. */
#ifndef GRADC_PLAN_LADDER_H
#define GRADC_PLAN_LADDER_H

#include "polish.h"
#include "recompute.h"
#include "segments.h"

enum { MOST_RUNGS = 64 };

/* How far to go; moves are those of local search. */
typedef struct LadderEffort {
    int64_t least_moves;
    int64_t rung_moves;  /* at each rung */
    int64_t order_moves; /* for an order in which nothing runs again */
    int64_t thin_moves;  /* where placing leaves holes: to make the schedule thin; 0: it isn't */
    int32_t rungs;       /* parts of what running every node once takes */
    int32_t rung_step;   /* by_rule: of 80 parts */
    bool is_long;        /* a search is so long that what it finds is as thin as can be */
    bool by_rule;        /* schedules that come from rules are improved little: a large problem */
} LadderEffort;

struct Planner {
    const Problem *p;
    PlanJudge judge;
    LadderEffort effort;
    Arena *out;
    int64_t room;                /* of a budget, left for holes */
    Sequence *base;              /* the given order, placed */
    Sequence *low;               /* see planner_low; or NULL */
    Sequence *least;             /* the one with the smallest arena; NULL before it is looked for */
    Segmented segmented;         /* n is 0 before they are looked for */
    Sequence *near;              /* a cheaper one that takes little more, placed; or NULL */
    Sequence *rung[MOST_RUNGS];  /* from the least budget up, each no dearer than the last */
    Sequence *begun[MOST_RUNGS]; /* what the rung was made from */
    Sequence *fit[MOST_RUNGS];   /* where placing leaves holes: one that has the rung's bytes */
    bool tried[MOST_RUNGS];      /* it has been placed */
    int32_t n_rungs;
};

Planner planner_new(const Problem *p, PlanJudge judge, LadderEffort effort, Arena *out);

/* Finds the bytes of s, where they are not known. */
void planner_place(Planner *g, Sequence *s);

/* Searches from this schedule for one that takes aim.budget; where placing leaves holes,
 * for less. NULL if none is found, or one whose bytes without holes are too many. */
Sequence *planner_search(Planner *g, const Sequence *from, PolishAim aim);

/* A schedule with few bytes that is soon found, placed: what the least is at the most. */
Sequence *planner_low(Planner *g);

#endif
