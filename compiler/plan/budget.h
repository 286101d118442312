/* What a user asks of the planner. */
#ifndef GRADC_PLAN_BUDGET_H
#define GRADC_PLAN_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* No limit; bytes; the least that is found; a share of what running every step once takes,
 * bytes that are there all the time apart; the least with which no contraction runs again. */
typedef enum BudgetKind {
    BUDGET_NONE,
    BUDGET_BYTES,
    BUDGET_LEAST,
    BUDGET_SHARE,
    BUDGET_LIGHT
} BudgetKind;

typedef struct BudgetAsked {
    BudgetKind kind;
    int64_t bytes;
    double share; /* in percent */
} BudgetAsked;

typedef enum PlanEffort { EFFORT_DEFAULT, EFFORT_MAX } PlanEffort;

static inline bool budget_is_least(const BudgetAsked *b)
{
    return b->kind == BUDGET_LEAST || b->kind == BUDGET_LIGHT;
}

/* Percent of the bytes between `pinned` and `all`, with `pinned`. */
static inline int64_t budget_share(int64_t pinned, int64_t all, double percent)
{
    double bytes = (double)(all - pinned) * percent / 100;
    return pinned + (bytes < 4e18 ? (int64_t)bytes : INT64_C(4000000000000000000));
}

#endif
