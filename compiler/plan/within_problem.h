/* The steps of an entry as planning problems; inside of within*.c. */
#ifndef GRADC_PLAN_WITHIN_PROBLEM_H
#define GRADC_PLAN_WITHIN_PROBLEM_H

#include "plan.h"
#include "problem.h"

/* A node for each step before the update, under its number, and one for the whole update: the
 * last steps, guarded ones that leave nothing but numbers behind, run in their order at the end.
 * A guarded step before them is a node like others: it reads the flag. */
typedef struct Steps {
    const Plan *p;
    int32_t update;  /* the first step of the update, or n_steps */
    int32_t n;       /* nodes, where nothing leaves the block */
    int32_t *writer; /* by value: the step that stores it; -1: pinned, or given by the caller */
    bool *used;      /* by value: something reads it, be it the caller at the end */
    bool *leaves;    /* by step: its values may go out and come in again; NULL: none may */
    double price;    /* ... for so much of the time of a transfer */
} Steps;

/* Which step a node of steps_problem() is. A step whose values may leave is two: one that
 * computes them, and one that has them. The latter runs first when they are computed, and again
 * where they come in, for which nothing else has to be in the block. */
typedef struct StepNode {
    int32_t step;
    bool has; /* the second of the two */
} StepNode;

/* Steps whose values may leave: what takes at most `dear` times as long to move as to compute.
 * gives: st->leaves. */
void steps_may_leave(Steps *st, double dear, double price, Arena *out);

/* false: a value is stored by two steps, or pinned storage read after it has changed, and no
 * step may run again. requires: pinned values lie apart. */
bool steps_find(Steps *st, const Plan *p, Arena *out);

/* For the search: its bytes are those of the plans, nearly. A step has one output, which is
 * there until the last of its values has been read. What writes pinned storage runs once, and
 * what reads that storage runs before. */
Problem *steps_problem(const Steps *st, Arena *out);
/* By node of that problem. */
StepNode *steps_of_nodes(const Steps *st, Arena *out);

/* For the proof of one moment (certificate.h): what is true of every plan of the steps at the
 * instant at which that node runs first is true of the problem, with no more bytes there and
 * the same cost; so that the bound of its extra cost is one of theirs.
 *
 * - Of the values that a step stores, those that a descendant of the moment reads, or the
 *   caller at the end, are there unless the step runs again. Of a step that has none, the
 *   smallest that is used is: the proof says only that somebody reads it.
 * - What is there while a step runs is counted value by value: those that it reads, its
 *   workspace, and the results that it may not write over any of those. As scratch it is
 *   what is missing from the nodes' own bytes, be it less than nothing.
 * - At the update all is there that its steps read and that was stored before it.
 * - In which order pinned storage is read and changed does not matter to it. */
Problem *steps_relaxed(const Steps *st, int32_t moment, Arena *out);

/* What must be there while a node runs, pinned bytes included. */
int64_t steps_working_set(const Steps *st, int32_t node, Arena *scratch);

#endif
