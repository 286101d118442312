/* What the text and the JSON of a plan have in common. */
#ifndef GRADC_PLAN_REPORT_H
#define GRADC_PLAN_REPORT_H

#include "plan.h"

/* "gpt.model:14" of the innermost place that is not in the library; NULL if there is
 * none, or cx is NULL. */
const char *report_line(const Ctx *cx, const Origin *o, Arena *arena);

/* 13002752 as "13,002,752". */
const char *report_exact(Arena *a, int64_t n);

/* The range that r takes its storage over from, or -1: the one before it there. */
int32_t *report_taken(const Plan *p, Arena *arena);

/* Why the value is stored through this range, or is pinned. */
const char *report_reason(const Plan *p, const PlanRange *r, Arena *arena);
const char *report_pinned_reason(const Plan *p, int32_t value, Arena *arena);

/* Of a role, in pictures: "#4e79a7". */
const char *report_color(Role role);

#endif
