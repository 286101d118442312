/* From a module to the bytes of an object file. */
#ifndef GRADC_TARGET_CPU_OBJECT_H
#define GRADC_TARGET_CPU_OBJECT_H

#include <llvm-c/TargetMachine.h>
#include "../../base/blake2b.h"
#include "emit.h"

/* Why LLVM has not done it; the message is LLVM's, to be disposed of, or NULL. */
typedef struct Refusal {
    const char *what;
    char *message;
} Refusal;

/* Adds what is done with any module, all that its code depends on beside the module's own bytes
 * and the triple. */
void object_recipe(Blake2b *b, bool quick);

/* Of any thread, each with its own module in its own context. NULL, false: refused. */
/* quick: of code that is made quickly, and is slow. */
LLVMTargetMachineRef object_machine(const Machine *m, bool quick, Refusal *r);
/* Verifies and optimises. */
bool object_prepare(LLVMModuleRef m, const Machine *mach, LLVMTargetMachineRef tm, Refusal *r);
/* The module is used up. */
LLVMMemoryBufferRef object_code(LLVMModuleRef m, LLVMTargetMachineRef tm, LLVMCodeGenFileType kind,
                                Refusal *r);
/* Reports it, and disposes of the message.   gives: false. */
bool object_refuse(Ctx *cx, Refusal *r);

/* Optimises and emits what `ir` holds: into out->bytes if `code`, and .ir, .assembly when
 * wanted; kept in arena.   fails: false, after a report of LLVM's error. */
bool object_emit(Ctx *cx, Ir *ir, const TargetOptions *o, bool code, Arena *arena, ObjectFile *out);
/* Once a process: the targets that this LLVM has been built with. */
void object_start(void);

/* Kernels alone, as exported functions k0, k1, ... of the signature in emit.h, for
 * tests and measurements. `fn` gets what emit_* said of each. */
bool cpu_emit_kernels(Ctx *cx, const TargetOptions *o, Kernel *const *k, int n, Arena *arena,
                      KernelFn *fn, ObjectFile *out);

#endif
