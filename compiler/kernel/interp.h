/* The interpreter's inside: a kernel decoded for one mode, and what runs it.
 *
 * An innermost PAR or RED loop runs in strips: each instruction of its body is
 * done for up to STRIP iterations before the next one, so that what is decoded
 * once is used 32 times. A register holds one strip. Outside of such loops
 * strips have length 1. Values from outside of a strip loop are copied to all
 * lanes (SPLAT) on entry; constants are in all lanes from the start.
 *
 * Registers hold a float for f32, f16 and bf16, a double for f64, and int64_t
 * for integers (wrapped to their dtype) and bool. In the wide modes every float
 * dtype is a double. */
#ifndef GRADC_KERNEL_INTERP_H
#define GRADC_KERNEL_INTERP_H

#include "kernel.h"

enum { STRIP = 32 };

typedef union Reg {
    float f[STRIP];
    double d[STRIP];
    int64_t i[STRIP];
} Reg;

typedef enum RegType { TF, TD, TI, N_REGTYPES } RegType;

/* Decoded operations are KOp and these. */
enum { X_SPLAT = N_KOPS };

typedef struct Op {
    uint8_t op;
    uint8_t type;       /* RegType of the first operand (of the value, for VALUE and MEM) */
    uint8_t dtype;      /* of the result, in the mode's mapping */
    uint8_t from;       /* CAST, BITCAST: dtype of the operand */
    bool strip;         /* loops: runs in strips */
    bool down;          /* SEQ: last to first */
    bool limited;       /* loops: ends at the limit */
    bool lanes;         /* INTO: to the lane of `c`, a loop's index; FOLD: lanes are combined */
    bool splat;         /* FOLD: in a strip, of an accumulator from outside of it */
    int32_t r, a, b, c; /* registers */
    int32_t aux;        /* access, affine; ACC, INTO, FOLD: the operation; loops: body */
    int32_t end;        /* loops: first operation after the body */
    int64_t extent;
} Op;

typedef struct Term {
    int32_t reg;
    int64_t coef;
} Term;

/* base + sum of uniform terms (lane 0) + step * lane + sum of varying terms. */
typedef struct Affine {
    int64_t base, step;
    int32_t n_uniform, n_varying;
    Term *uniform, *varying;
} Affine;

typedef struct Bound {
    Affine e;
    int64_t lo, hi;
} Bound;

typedef struct Access {
    int32_t buf, n_bounds;
    DType dtype; /* of the elements in memory, in the mode's mapping */
    int64_t elems;
    Affine at;
    Bound *bound;
    double otherwise;
} Access;

typedef struct Fill {
    int32_t reg;
    KInst inst;
} Fill;

typedef struct KCode {
    const Kernel *k; /* as decoded: expanded in K_EXACT */
    KMode mode;
    bool flush; /* K_EXACT: denormals.h */
    Arena *arena;
    VEC(Op) op;
    VEC(Access) access;
    VEC(Affine) affine;
    VEC(Fill) fill; /* constants */
    int32_t n_regs;
    int32_t *reg_of;               /* by Val, while decoding */
    Reg *reg, *tan;                /* tan: K_DUAL only */
    int32_t section[4];            /* contraction: A, B, epilogue are [section[i], section[i+1]) */
    int32_t reg_a, reg_b, reg_sum; /* reg_sum -1: not read */
    int32_t reg_all;               /* likewise */
} KCode;

/* Decodes (and, in K_EXACT, expands) k for runs in one mode; lives in `arena`. */
KCode *kcode_new(const Kernel *k, KMode mode, Arena *arena);
/* One run; LOCAL buffers are taken from `scratch`. */
void kcode_run(KCode *c, const KMem *mem, Arena *scratch);

/* One run's memory. */
typedef struct Machine {
    KCode *code;
    KMem *mem;     /* by buffer */
    int64_t limit; /* of a kernel that has one */
} Machine;

RegType interp_type(KMode mode, DType t);
DType interp_dtype(KMode mode, DType t);

/* Operations [from, to) for n lanes. */
void interp_ops(Machine *m, int32_t from, int32_t to, int n);
void interp_contract(Machine *m, Arena *scratch);
/* interp_alu.c: one scalar operation, n lanes. */
void interp_alu(const Op *o, Reg *r, int n);

int64_t interp_wrap(DType t, int64_t x);
int32_t interp_philox(uint64_t key, uint64_t lo, uint64_t hi);
/* interp_dual.c: tangents of a scalar operation that has just run. */
void interp_tangent(const Op *o, const Reg *r, Reg *t, int n);
/* interp_mem.c */
void interp_load(Machine *m, const Op *o, int n);
void interp_flush(DType t, Reg *r, int n); /* n lanes of a register, in K_EXACT */
void interp_store(Machine *m, const Op *o, int n);
void interp_affine(const Affine *x, const Reg *r, int n, int64_t *to);
/* interp_acc.c */
void interp_acc(Machine *m, const Op *o);
void interp_into(Machine *m, const Op *o, int n);
void interp_fold(Machine *m, const Op *o, int n);
/* interp_fma.c: z = x*y + z, rounded once; with the hardware's fma where it is. */
void interp_fma_f32(const float *x, const float *y, const float *z, float *r, int n);
void interp_fma_f64(const double *x, const double *y, const double *z, double *r, int n);
/* acc[i][j] = fma(a[i][p], b[p][j], acc[i][j]) for p in order, i < m, p < k, and
 * j < n (rounded up to whole strips). Rows of a have TILE_K elements, the
 * others TILE_N. */
enum { TILE_M = 128, TILE_N = 128, TILE_K = 256 };
void interp_chain_f32(const float *a, const float *b, float *acc, int m, int n, int k);
void interp_chain_f64(const double *a, const double *b, double *acc, int m, int n, int k);
/* interp_pairs.c: the same in pairs of k, as kernel.h says. */
float interp_fmz(float a, float b, float c); /* of bf16 a and b, anywhere */
void interp_chain_pairs(const float *a, const float *b, float *acc, int m, int n, int k);

#endif
