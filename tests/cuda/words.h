/* The set `words`: a kernel for everything that the target cuda writes of its own, by type, run
 * over values that are hard to get right.
 *
 *   each instruction     of kernel/kinst.def, on each type that the verifier lets it have: so the
 *                        functions of MATH, conversions, and the integers' words of prelude.cuh
 *   accumulators         each operation and type: lanes of a thread, of half a warp, of 8 threads
 *   shared work          shuffles, barriers, memory of a block
 *   contractions         chains and leaves
 *   accesses             bounds, by int and by i64
 *
 * What the exact interpreter makes of them are the golden vectors, words.txt. */
#ifndef GRADC_TESTS_CUDA_WORDS_H
#define GRADC_TESTS_CUDA_WORDS_H

#include "cpu/fill.h"

/* The first `each` of the kernels take all of their values element by element. */
typedef struct Words {
    Kernels kernels;
    int each;
} Words;

/* Adds all of them; ends with a sentence and status 3 if an instruction is in none of them. */
void words_add(Arena *arena, Words *w);
/* Fills buffer b of kernel i. */
void words_fill(const Words *w, int i, int b, void *to);
/* The head of words.txt: what the values are. */
void words_print_values(FILE *to);
/* A line of it, or some: what kernel i has left in a buffer of this type. */
void words_print(const Words *w, int i, const KBuf *b, const void *data, FILE *to);

#endif
