/* Sums that a contraction has in passing: of an operand over k, in index order, of whose elements
 * it packs each once (KContract.side_sum). Gradients of biases are such sums, of the cotangents of
 * which a product makes those of weights; by themselves they read them from far memory once more.
 * The bits are those of the kernel that the sum is without it. */
#ifndef GRADC_TARGET_CPU_SIDE_SUMS_H
#define GRADC_TARGET_CPU_SIDE_SUMS_H

#include "../../kernel/program.h"
#include "machine.h"

/* The program with such sums in the contractions that follow them; p itself where there are none.
 */
const Program *side_sums_program(const Machine *m, const Program *p, Arena *arena);

#endif
