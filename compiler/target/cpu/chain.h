/* Chains: kernels that follow one another slab by slab (slabs.h), so that what one has made of a
 * slab is in a core's cache when the next one reads it. A chain is a function as a kernel's is,
 *
 *     void NAME.ENTRY.chainI(ptr bufs, ptr scratch, i64 begin, i64 end)
 *
 * whose unit is so many slabs: for each of them it calls its kernels, one after the other. `bufs`
 * are the operands of all of them. The kernels are what they are without it, and so are the bits:
 * any kernel's units may run in any order. */
#ifndef GRADC_TARGET_CPU_CHAIN_H
#define GRADC_TARGET_CPU_CHAIN_H

#include "model.h"

enum { CHAIN_MOST = 4, CHAIN_REACH = 8 };

typedef struct Chain {
    int n;
    const Call *call[CHAIN_MOST]; /* in their order */
    int64_t units[CHAIN_MOST]; /* of each kernel in a unit of the chain; its last may have less */
    int64_t n_units, chunks;
    int32_t n_ops;
    const Call *scratch; /* the one that has the most, whose place all of them use */
} Chain;

/* Bytes that one kernel hands on to the next one, from which on that is worth a chain. */
int64_t chain_least(const Machine *m, const TargetOptions *o);
/* The chain that begins with call[0], of kernels among call[0 .. n), which are all kernels, none of
 * them one that `taken` says is in another chain. Those between are to be called after it.
 * fails: false, where there is none. */
bool chain_find(const Model *m, const Call *call, int32_t n, const bool *taken, Chain *chain);
void chain_emit(const Model *m, Ir *ir, const Chain *chain, Lv fn);

#endif
