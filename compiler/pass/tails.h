/* Tails: what a mask hides of the last axis of values in a scan's body.
 *
 * Where rows are numbered by a slice of an iota, a comparison of columns with them, as a causal
 * mask has it, is the same for all columns from the last row's number on; `where` makes -inf or 0
 * of that, exp makes 0 of -inf, and products keep 0. Sums over such columns, and products with
 * them, may end there. That 0 * x is 0 holds for finite x alone: what is hidden is not multiplied,
 * and so infinities and NaN do not come through a mask. */
#ifndef GRADC_PASS_TAILS_H
#define GRADC_PASS_TAILS_H

#include "cluster.h"

struct Tails {
    Ref rows;       /* the body's argument that numbers rows: i32 or i64, ascending */
    int64_t last;   /* its last element, to which ... */
    int64_t plus;   /* ... this is added: there the tails begin, or at column 1 if that is later */
    int64_t extent; /* of the axis */
    int64_t mean;   /* where they begin, on average over the scan's steps */
    bool *is;       /* by Ref: it has a tail, ... */
    double *value;  /* ... all of this value */
    int64_t carries;
    bool *from_zero; /* by carry: its first value is 0 */
};

/* NULL: there are none. */
const Tails *tails_find(const Graph *outer, Ref scan, Arena *arena);
static inline bool tail_is(const Tails *t, Ref r, double value)
{
    return t != NULL && t->is[r] && t->value[r] == value;
}

/* Kernels of groups in order of execution: what is stored and not read beyond the limit is not
 * computed there. */
void limit_stores(Clusters *c);

#endif
