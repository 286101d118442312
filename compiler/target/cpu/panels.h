/* Matrices in panels: a parameter that products read from far memory, its gradient and its moments
 * lie in the order in which products read them, so that nothing packs them on the way.
 *
 * Of a matrix [rows][cols] the columns fall into panels of `width`: [cols / width][rows][width],
 * one matrix after the other. Tiles with lanes along the columns read a panel as it lies; those
 * with sums along them pack it from whole lines. Kernels are rewritten for that: no instruction
 * changes and no order of sums, only where elements lie. Who reads or writes a tensor by name sees
 * it row by row. */
#ifndef GRADC_TARGET_CPU_PANELS_H
#define GRADC_TARGET_CPU_PANELS_H

#include "../../kernel/panels.h"
#include "../../kernel/program.h"
#include "emit.h"

/* The program with matrices in panels, each lane's scratch at most what p has for it; p itself
 * where none are. *of: by buffer. */
const Program *panels_program(const Machine *m, const TargetOptions *o, const Program *p,
                              Arena *arena, const Panels **of);

#endif
