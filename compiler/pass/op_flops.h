/* What one element of a pointwise op computes. */
#ifndef GRADC_PASS_OP_FLOPS_H
#define GRADC_PASS_OP_FLOPS_H

#include "elem.h"

/* By op and type, one more than what is known; 0: not yet. */
typedef struct OpFlops {
    float of[N_OPS][N_DTYPES];
} OpFlops;

/* Flops of a pointwise op, counted from a kernel that holds nothing else; 0 of other nodes. */
float op_flops(OpFlops *known, const Graph *g, Ref r);

#endif
