/* What a kernel touches, slab by slab: as its outermost index moves on, its units move on through
 * some of its buffers, and each reads or writes but its own slab of those. Then another kernel
 * that moves through the same buffer in the same way can follow at once (chain.c). */
#ifndef GRADC_TARGET_CPU_SLABS_H
#define GRADC_TARGET_CPU_SLABS_H

#include "../../kernel/kernel.h"

typedef struct Slabs {
    int64_t extent;      /* of the outermost index, in whose order the units are */
    int64_t units, each; /* so many units are `each` values of it */
    int64_t *step;       /* by buffer: elements from one value's slab to the next one's, which is
                          * where it ends; 0: the kernel may touch any of it at any time */
    double again;        /* cycles of what each call of the kernel's function begins with */
} Slabs;

/* Of a kernel whose outermost index is v, from its accesses and their bounds; no `again`. Rows that
 * a contraction stages ahead may be of a later slab: nothing is made of those. Never NULL. */
Slabs *slabs_of(const Kernel *k, Val v, int64_t units, int64_t each, Arena *arena);

#endif
