/* Short names for LLVM's C interface: one Ir is a module being built. */
#ifndef GRADC_TARGET_CPU_IR_H
#define GRADC_TARGET_CPU_IR_H

#include <llvm-c/Core.h>
#include "machine.h"

typedef LLVMValueRef Lv;
typedef LLVMTypeRef Lt;
typedef LLVMBasicBlockRef Lb;

typedef struct Ir {
    LLVMContextRef c;
    LLVMModuleRef m;
    LLVMBuilderRef b;
    const Machine *mach;
    Arena *arena;
    struct Units *units; /* where what kernels share is compiled by itself; NULL: it is in m */
    Lt i1, i8, i16, i32, i64, f32, f64, ptr, none;
    Lv fn; /* the function being built */
} Ir;

void ir_open(Ir *ir, const char *module, const Machine *mach, Arena *arena);
void ir_close(Ir *ir);

/* A local function with its entry block, where the builder then stands. */
Lv ir_function(Ir *ir, const char *name, Lt result, const Lt *arg, int n);
/* Makes a declared function local and opens its body. */
void ir_begin(Ir *ir, Lv fn);
void ir_local(Ir *ir, Lv fn);
Lt ir_type_of(Ir *ir, Lt result, const Lt *arg, int n);
/* What several kernels of an object share has a name that says all about it. False: it is
 * there already, as s->made; else its body, or initializer, is to be built, up to ir_shared_end().
 */
typedef struct IrShared {
    Lv made, outer;
    Lb here;
    LLVMModuleRef m;
    const char *name;
} IrShared;
bool ir_shared_function(Ir *ir, const char *name, Lt result, const Lt *arg, int n, IrShared *s);
bool ir_shared_data(Ir *ir, const char *name, Lt type, IrShared *s);
void ir_shared_end(Ir *ir, IrShared *s);
/* Visible in the object, but not outside of it. */
void ir_in_object(Lv made);
/* Code of this function may use all of the target's instruction sets. */
void ir_use_target(Ir *ir, Lv fn);
void ir_attribute(Ir *ir, Lv fn, const char *key, const char *value);
Lb ir_block(Ir *ir, const char *name);
void ir_at(Ir *ir, Lb block);
Lb ir_here(Ir *ir);
void ir_br(Ir *ir, Lb to);
void ir_cond(Ir *ir, Lv cond, Lb yes, Lb no);
/* A slot in the function's entry block. */
Lv ir_slot(Ir *ir, Lt type, int align);

Lt ir_vec(Lt elem, int n); /* the element itself when n == 1 */
Lv ir_int(Ir *ir, int64_t x);
Lv ir_int32(Ir *ir, int64_t x);
Lv ir_splat(Ir *ir, Lv x, int n);
/* <from, from+step, ...> of type. */
Lv ir_iota(Ir *ir, Lt elem, int n, int64_t step);
Lv ir_add(Ir *ir, Lv x, Lv y);
Lv ir_mul(Ir *ir, Lv x, int64_t by);
/* min of two signed integers */
Lv ir_min(Ir *ir, Lv x, Lv y);
Lv ir_at_byte(Ir *ir, Lv p, Lv offset); /* p + offset bytes */
Lv ir_off(Ir *ir, Lv p, int64_t bytes);
Lv ir_load(Ir *ir, Lt type, Lv p, int align);
void ir_store(Ir *ir, Lv x, Lv p, int align);
Lv ir_shuffle(Ir *ir, Lv x, Lv y, const int *lane, int n); /* lane -1: any */
/* ir_transpose.c: n vectors of n lanes, n a power of 2 up to 64. */
void ir_transpose(Ir *ir, Lv *x, int n);
Lv ir_call(Ir *ir, Lv fn, const Lv *arg, int n);
/* A call of an LLVM intrinsic overloaded on `type`s. */
Lv ir_intrinsic(Ir *ir, const char *name, const Lt *type, int n_types, const Lv *arg, int n);
Lv ir_op1(Ir *ir, const char *intrinsic, Lv x);
Lv ir_op2(Ir *ir, const char *intrinsic, Lv x, Lv y);
/* A private constant of bytes, with its terminating NUL. */
Lv ir_string(Ir *ir, const char *s);

/* for (i = from; i < to; i += step), to > from unless `guard`. The builder is in
 * the body after ir_loop, behind the loop after ir_loop_end. What does not
 * depend on the body may be built before `hoist`. */
typedef struct IrLoop {
    Lb head, exit;
    Lv i, hoist, to;
    int64_t step;
} IrLoop;
IrLoop ir_loop(Ir *ir, Lv from, Lv to, int64_t step, bool guard);
void ir_loop_end(Ir *ir, IrLoop *l);

/* if (cond) { ... } [else { ... }] */
typedef struct IrIf {
    Lb no, end;
} IrIf;
IrIf ir_if(Ir *ir, Lv cond);
void ir_else(Ir *ir, IrIf *s);
void ir_end_if(Ir *ir, IrIf *s);

#endif
