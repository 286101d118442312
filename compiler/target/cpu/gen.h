/* Values of a kernel as LLVM values, one at a time or `width` lanes at once.
 *
 * In a vector context one variable, `lane`, moves along the lanes: a loop's index,
 * or the fastest sub-index of a contraction's role. A value that depends on it (or
 * on another such value) varies and is a vector; all others stay scalars and are
 * splatted where a vector meets them. An affine expression is then a scalar, its
 * value at lane 0, and a constant stride, unless it has an indirect term. */
#ifndef GRADC_TARGET_CPU_GEN_H
#define GRADC_TARGET_CPU_GEN_H

#include "ir.h"

typedef struct Gen {
    Ir *ir;
    const Kernel *k;
    Lv *buf;           /* address of each buffer; LOCAL: in lane scratch */
    int width;         /* 1: scalar context */
    Val lane;          /* 0 in a scalar context */
    Lv live;           /* i64, lanes 0..live-1 exist; NULL: all */
    Lv from;           /* i64, the first lane that exists; NULL: lane 0 */
    Lv mask;           /* the same as <width x i1>; NULL: all */
    bool *raw;         /* by Val: may be denormal as it is made, and has to be flushed; or NULL */
    const bool *known; /* by Val: LLVM may know it; or NULL */
    Lv zero, zero_of;  /* of the function: an i64 that it cannot know */
    bool *careless;    /* by access: outside of its bounds it may give anything */
    Val pair;          /* a loop whose two turns are written out in a vector context, or 0; ... */
    int turn;          /* ... which of them this is */
    Lv *held;          /* by access: what the first turn stores once the second does */
    const Lv *tile;    /* by access: where its lanes lie side by side now, or NULL; NULL: nowhere */
    bool *local_by_lane; /* by buffer: LOCAL element e of lane l is at e*width + l */
    /* by Val */
    Lv *value; /* scalar, or vector where vary; indices: i64 at lane 0 */
    bool *vary;
    const KBound *const *sure; /* bounds that hold wherever code is made now */
    int n_sure;
    Lv *slot;               /* storage of ACC and VAR */
    bool *slot_wide;        /* ACC: one slot for each virtual lane */
    Lv limit;               /* i64, of a kernel that has one; gen_limit() loads it */
    Lv nowhere, nowhere_fn; /* a slot for stores of dead lanes, in this function */
} Gen;

void gen_init(Gen *g, Ir *ir, const Kernel *k, Arena *arena);
/* Enters a vector context of `width` lanes along `lane`; live NULL: all of them. */
void gen_vector(Gen *g, int width, Val lane, Lv live);
void gen_scalar(Gen *g);

void gen_limit(Gen *g);
/* Iterations of a loop or DIM: its extent, or the limit if that is less. */
Lv gen_end(Gen *g, Val v);

Lt gen_type(const Gen *g, DType t, int n);     /* in registers: f16, bf16 as float, bool as i1 */
Lt gen_mem_type(const Gen *g, DType t, int n); /* in memory: i16, i8 */
Lv gen_const(const Gen *g, DType t, double f, int64_t i);
Lv gen_get(Gen *g, Val v); /* scalar or vector, as it is */
Lv gen_vec(Gen *g, Val v); /* `width` lanes */

/* Emits LOAD, STORE, INDEX, CONST and all scalar operations (not loops, RED, VAR). */
void gen_inst(Gen *g, Val v);
/* gen_alu.c: op on operands of equal shape; x of dtype `from`, result of `t`. */
Lv gen_alu(Gen *g, KOp op, DType from, DType t, Lv x, Lv y, Lv z);
/* op(acc, x) of an accumulator. */
Lv gen_combine(Gen *g, KOp op, DType t, Lv acc, Lv x);
Lv gen_identity(Gen *g, KOp op, DType t);
/* gen_half.c: rounds a float to a half type; bits of it as i16, and back. */
Lv gen_round_half(Gen *g, DType t, Lv x);
Lv gen_half_bits(Gen *g, DType t, Lv x);
Lv gen_half_float(Gen *g, DType t, Lv bits);

/* gen_care.c: marks accesses, see there. */
void gen_find_careless(const Kernel *k, bool *careless, Arena *arena);
/* v, a float, is 0 where the bound of a load fails: of that load, or of what it is computed from.
 */
bool gen_is_zero_outside(const Kernel *k, Val v, const KBound *b);
bool gen_is_sure(const Gen *g, const KBound *b);
/* A comparison of an index with a constant that a bound which is sure implies. */
bool gen_surely(const Gen *g, Val v);

/* gen_flush.c */
void gen_find_raw(Gen *g, Arena *arena);
Lv gen_flushed(Gen *g, DType t, Lv x);
bool gen_hides(const Gen *g, Val v); /* LLVM may know all operands, and would fold them otherwise */
Lv gen_hidden(Gen *g, Lv x);         /* a float that it does not know */

/* gen_mem.c */
Lv gen_affine(Gen *g, const KAff *x); /* i64 at lane 0 */
int64_t gen_stride(const Gen *g, const KAff *x);
bool gen_irregular(const Gen *g, const KAff *x);
/* The affine's value on every lane, as dtype t (I32, I64). */
Lv gen_affine_lanes(Gen *g, const KAff *x, DType t);
/* Marks a load or store: lane scratch and the operands never share memory. */
void gen_mark_scratch(Ir *ir, Lv inst);
void gen_mark_operand(Ir *ir, Lv inst);
Lv gen_load(Gen *g, int32_t access);
/* Where lane l of an access that moves evenly along the lanes lies, or zeros where its bounds leave
 * it out; a dead lane is where the last live one is. */
Lv gen_line_of_lane(Gen *g, int32_t access, int l);
void gen_store(Gen *g, int32_t access, Lv x, bool vary);
/* Where v is false, stores that to element 0 of the buffer: KContract.all. */
void gen_all(Gen *g, int32_t buf, Val v);
/* Value as in memory, and back. */
Lv gen_to_mem(Gen *g, DType t, Lv x);
Lv gen_from_mem(Gen *g, DType t, Lv x);
/* KI_EXPONENT, KI_FRACTION or KI_SCALE of f32, where the machine has `exponents`; y: of the last,
 * else NULL. */
Lv gen_exponent(Gen *g, KOp op, Lv x, Lv y);
static inline int lanes_of(Lv x)
{
    Lt t = LLVMTypeOf(x);
    return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? (int)LLVMGetVectorSize(t) : 1;
}

#endif
