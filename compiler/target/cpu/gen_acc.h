/* Accumulators and variables of a loop kernel. */
#ifndef GRADC_TARGET_CPU_GEN_ACC_H
#define GRADC_TARGET_CPU_GEN_ACC_H

#include "gen.h"

void gen_acc_open(Gen *g, Val acc, bool wide);
/* `red`: innermost RED loop in the accumulator's scope, or 0. */
void gen_into(Gen *g, Val into, Val red);
void gen_fold(Gen *g, Val fold);
void gen_variable(Gen *g, Val v); /* VAR, GET, SET */

#endif
