/* Random valid kernels, for whatever runs kernels to be compared with K_EXACT. */
#ifndef GRADC_TESTS_KERNEL_RANDOM_H
#define GRADC_TESTS_KERNEL_RANDOM_H

#include "kernel/kernel.h"

enum { RANDOM_MAX_BUFS = 64, RANDOM_INDICES = 16 };

typedef enum RandomStyle {
    RANDOM_ANY,   /* all dtypes and instructions */
    RANDOM_PAIRS, /* ... and contractions in f32 are of bf16 in pairs */
    RANDOM_SMOOTH /* f64, differentiable but for a few kinks, values of moderate size */
} RandomStyle;

/* How many seeds a test takes that usually takes n: many more under GRADC_FULL,
 * fewer under GRADC_SHORT. */
int kernel_random_seeds(int n);

/* The same seed gives the same kernel anywhere. Odd seeds give more contractions
 * than even ones. In each kernel: every buffer that an indirect access takes its
 * index from holds integers in [0, RANDOM_INDICES), see kernel_random_data. */
Kernel *kernel_random(Arena *arena, uint64_t seed, RandomStyle style);

/* The judge runs a RED loop in strips, one instruction after the other: an accumulator of floats
 * that is fed twice in it takes its elements in another order than kernel.h says. */
bool kernel_random_feeds_twice(const Kernel *k);

/* A moderate float, in [-2, 2). */
double kernel_random_float(uint64_t *state);
/* Elements for every buffer, as K_EXACT has them in memory: mem[i].data, in
 * `arena`; NULL for LOCAL buffers. Integer inputs hold [0, RANDOM_INDICES); floats of
 * RANDOM_ANY now and then zeros of both signs, denormals, infinities, NaN. */
void kernel_random_data(const Kernel *k, uint64_t seed, RandomStyle style, Arena *arena,
                        KMem mem[RANDOM_MAX_BUFS]);
/* What kernel.h asks of who calls a kernel's code: KContract.all is true before. */
void kernel_random_set_all(const Kernel *k, const KMem *exact);
/* Copies of exact data as the wide modes have it; tangents zero. */
void kernel_random_widen(const Kernel *k, const KMem *exact, Arena *arena,
                         KMem wide[RANDOM_MAX_BUFS]);
/* Whether every element of the outputs has the same bits (any NaN equals any
 * other). Else false, with the place in words. */
bool kernel_random_equal(const Kernel *k, const KMem *x, const KMem *y, char where[160]);

#endif
