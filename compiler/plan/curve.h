/* What each budget costs: the curve of an entry from the least to every step once. */
#ifndef GRADC_PLAN_CURVE_H
#define GRADC_PLAN_CURVE_H

#include "within.h"

enum { CURVE_POINTS = 25 };

typedef struct CurvePoint {
    int64_t budget, peak;
    double overhead; /* extra time, as predicted, in parts of that without */
    double bound;    /* no plan within the budget has less */
    int32_t levels;  /* as in PlanBudget; 0 of a curve_of() */
    int64_t kept_steps, again_steps;
} CurvePoint;

typedef struct Curve {
    const char *entry;
    int64_t pinned, once; /* bytes that no plan avoids; with every step run once */
    int32_t n;            /* 1 where nothing is saved, else CURVE_POINTS */
    bool has_forms;       /* scans are kept in part, or cut; nothing is proved */
    CurvePoint at[CURVE_POINTS];
} Curve;

/* Budgets at equal distances, the least first, each with the best of n plans of the entry, whose
 * first is that without a budget; they end as the plans that run every step once. */
enum { MOST_CURVED = 2 };
Curve curve_of(Plan *const *plan, int n, PlanEffort effort, Arena *arena);

/* A table, one JSON object, a picture: time over bytes, the bound below it. */
void curve_print(const Curve *c, Text *to);
void curve_json(const Curve *c, Text *to);
void curve_svg(const Curve *c, Text *to);

#endif
