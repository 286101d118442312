/* The kernel that an op's row gives of its example. */
#ifndef TESTS_SUPPORT_OP_KERNEL_H
#define TESTS_SUPPORT_OP_KERNEL_H

#include "pass/elem.h"

typedef struct OpKernel {
    Ctx *cx;
    const Graph *g;
    Ref n;
    bool *stored;
    Axis axis[MAX_RANK];
    Elem *e;
    Kernel *k;
    int out; /* the buffer that it stores to */
} OpKernel;

/* The example's text with another type instead of f32; NULL if there is none left, or not for this
 * type. */
Graph *op_example(Ctx *cx, const Op *op, int which, const char *type);
/* False if the op has no kernel of its own (sources, contraction, loops). */
bool op_kernel(Ctx *cx, OpKernel *b, const Graph *g, Ref n);

#endif
