/* From a module to the bytes of an object file. */
#ifndef GRADC_TARGET_CPU_OBJECT_H
#define GRADC_TARGET_CPU_OBJECT_H

#include "emit.h"

/* Optimises and emits what `ir` holds into out->bytes (and .ir, .assembly when
 * wanted), kept in arena.   fails: false, after a report of LLVM's error. */
bool object_emit(Ctx *cx, Ir *ir, const TargetOptions *o, Arena *arena, ObjectFile *out);
/* Once a process: the targets that this LLVM has been built with. */
void object_start(void);

/* Kernels alone, as exported functions k0, k1, ... of the signature in emit.h, for
 * tests and measurements. `fn` gets what emit_* said of each. */
bool cpu_emit_kernels(Ctx *cx, const TargetOptions *o, Kernel *const *k, int n, Arena *arena,
                      KernelFn *fn, ObjectFile *out);

#endif
