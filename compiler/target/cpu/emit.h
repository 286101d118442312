/* The emitter's parts. A kernel becomes one function
 *
 *     void NAME.kI_name(ptr bufs, ptr scratch, i64 begin, i64 end)
 *
 * that does the units [begin, end) of the kernel's work: `bufs` are the operands'
 * addresses in the order of the kernel's buffers without the LOCAL ones, `scratch` the
 * lane's own memory. Units may be done in any order and cut anywhere. */
#ifndef GRADC_TARGET_CPU_EMIT_H
#define GRADC_TARGET_CPU_EMIT_H

#include "ir.h"
#include "slabs.h"

typedef struct KernelFn {
    Lv fn;
    int64_t n_units;
    int64_t chunks;     /* pieces worth sharing out; 1: it runs alone */
    int64_t scratch;    /* bytes */
    double cycles;      /* as predicted, on one lane */
    const Slabs *slabs; /* of a kernel that has been emitted; NULL: there are none */
} KernelFn;

/* k is expanded. `name` is the symbol. */
KernelFn emit_loop_kernel(Ir *ir, const Kernel *k, const char *name, Arena *arena);
KernelFn emit_contraction(Ir *ir, const Kernel *k, const char *name, Arena *arena);
/* The same without code: fn is NULL. k as emitted. */
KernelFn plan_loop_kernel(const Machine *m, const Kernel *k, Arena *arena);
KernelFn plan_contraction(const Machine *m, const Kernel *k, Arena *arena);

/* Opens the kernel's function and loads the operands' addresses into buf[]. */
Lv emit_kernel_begin(Ir *ir, const Kernel *k, const char *name, Lv *buf);
/* Pieces for work of so many cycles. */
int64_t emit_chunks(double cycles, int64_t n_units);

#endif
