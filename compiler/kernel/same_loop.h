/* What join.c, walk.c, rest.c and hold.c share: what two loops over the same elements have in
 * common, and how changes follow one another. */
#ifndef GRADC_KERNEL_SAME_LOOP_H
#define GRADC_KERNEL_SAME_LOOP_H

#include "kernel.h"

/* A RED loop, and a loop behind it in the same loop. */
typedef struct LoopPair {
    const Kernel *k;
    Val red, red_end, par, par_end;
    Val *as; /* by Val of the second loop: the same value in the RED loop, or 0 */
} LoopPair;

Val loop_end(const Kernel *k, Val loop);
/* Is value x of the second loop there in the RED loop? Values that it is made of have been asked
 * for. */
bool loop_same(const LoopPair *p, Val x);
/* Neither a loop's begin or end, nor what has an effect. */
bool loop_plain(const KInst *i);
bool loop_holds_one(const Kernel *k, Val loop, Val end);
/* A copy of x, in which its last instruction is the last one of the loop that ends at `end`, and
 * values behind that which nothing needs are left out. */
Kernel *loop_put(Arena *arena, Arena *scratch, Kernel *x, Val end);

/* Gives k itself, or it with one change more; `scratch` lasts until all are made. */
typedef Kernel *LoopChange(Arena *arena, Arena *scratch, Kernel *k);
/* A loop kernel after one change and another, until there is none. */
Kernel *loop_change_all(Arena *arena, Kernel *k, LoopChange *change);

#endif
