/* Kernels for buffers whose elements lie in another order, or further apart: no instruction changes
 * and no order of sums, only where elements are. */
#ifndef GRADC_KERNEL_PANELS_H
#define GRADC_KERNEL_PANELS_H

#include "kernel.h"

/* Matrices [rows][cols], one after the other, each as [cols / width][rows][pitch]. */
typedef struct Panels {
    int64_t rows, cols, width; /* width 0: row by row */
    int64_t pitch;             /* elements from line to line of a panel; 0: width */
} Panels;

/* A copy of the kernel whose buffers lie so, by KBuf; NULL where one of them can't. */
const Kernel *panels_kernel(Arena *arena, const Kernel *k, const Panels *of);
/* Whether all that moves with its loops is whole matrices, element by element: then it need not
 * change if they all lie alike. moves[]: by KBuf, which those are. */
bool panels_elementwise(const Kernel *k, bool *moves);

#endif
