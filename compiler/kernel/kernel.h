/* Kernels: what a step runs, and the only thing that targets, the interpreter
 * and the cost model ever see. The order of arithmetic is part of a kernel: every
 * target must give the bits that the exact interpreter gives.
 *
 * A kernel is a list of instructions in SSA form; a Val is the index of the
 * instruction that makes it. Two kinds:
 *
 * K_LOOP       a list of nested loops, closed by END:
 *     PAR  iterations are independent: a target may run them in any order, in
 *          vectors and on lanes. The kernel's grid is the outermost PAR and each PAR that is
 *          all there is in the one around it, but for values that do not depend on what is stored.
 *     SEQ  iterations run in index order (backwards with aux 1).
 *     RED  an inner loop that feeds accumulators in K_LANES virtual lanes.
 *
 *   Accumulators. ACC opens one, INTO feeds it, FOLD reads it (once fed, it is
 *   fed no more after FOLD). An INTO inside a RED loop goes to lane
 *   (index of the innermost RED loop) mod K_LANES of the dtype; outside of any
 *   RED loop that lies inside the ACC's scope, always to lane 0. Each lane starts at the
 *   identity and takes its elements in program order. FOLD of an accumulator
 *   that no RED loop feeds is lane 0; else lanes are combined in the tree
 *   l[i] = op(l[i], l[i+w]) for w = K_LANES/2 ... 1 and lane 0 is the result.
 *   Identities: ADD 0 (positive zero), MUL 1, MIN +inf or the largest integer, MAX -inf
 *   or the smallest, AND true, OR false. The combination is op(lane, value) in this
 *   operand order, with MIN and MAX as in kinst.def.
 *
 *   Variables. VAR opens one, GET reads, SET writes: recurrences, argmax.
 *   A VAR or ACC belongs to the loop it is opened in. No PAR lies between an ACC and
 *   its INTO, and nothing but SEQ between a VAR and its SET.
 *
 * K_CONTRACT   C[b,m,n] = epilogue(sum over k of A(b,m,k) * B(b,k,n)).
 *   Each of b, m, n, k is a list of sub-indices (DIM instructions), the last one
 *   moving fastest. Section A computes an element from b, m, k indices; section B
 *   from b, k, n; the epilogue runs once for each (b, m, n), reads SUM, and stores. The
 *   sum is one chain  s = fma(a, b, s)  from s = 0 over k in index order, in the
 *   contraction's dtype. With leaf > 0 the flattened k range is cut into leaves of
 *   that length (the last may be short); each leaf is its own chain from 0, and
 *   leaves are added left to right: ((l0 + l1) + l2) + ... .
 *   An operand outside of its bounds is its access's `otherwise` and is multiplied
 *   like any other value.
 *   With `all`, element 0 of a bool buffer is afterwards whether a value of the epilogue was true
 *   wherever the epilogue ran. Nothing else in the kernel touches that buffer, and whoever calls
 *   the kernel sets the element to true before: then lanes only ever store false to it.
 *   With `side_sum` = 1 (of A) or 2 (of B) elements 0, 1, ... of a buffer of the chain's dtype are
 *   afterwards, for each m (n), sums of that operand's elements over k in index order, from 0. The
 *   operand has no b index, and nothing else in the kernel touches that buffer. Targets alone make
 *   such kernels, of two that follow one another.
 *   With `pairs` both operands are bf16, and k goes two by two from the start of each leaf, the
 *   second of two first: s = fmz(a[k], b[k], fmz(a[k+1], b[k+1], s)); a last k without a partner
 *   is s = fmz(a[k], b[k], s). fmz is fma in f32, where a denormal operand is a zero of its sign,
 *   and so is a result that would be below 2^-126 if exponents had no end: what VDPBF16PS computes.
 *
 * Limits. A kernel may have one limit: max(1, an element of an integer buffer + a constant),
 * known when it runs. Iterations of a K_LIMITED loop (PAR, RED) or DIM (M, N, K) from the limit
 * on are none: what they would have stored is not stored, what they would have added is not added.
 * A K_ZERO DIM (M, N) goes all the way, but from the limit on its sums are 0, of no terms. A
 * limited DIM is the only one of its role. So kernels leave out columns that a mask hides.
 *
 * Values. Loops and DIMs stand in affine expressions only (INDEX makes a value of
 * one). f16 and bf16 instructions are the f32 ones, rounded; a CAST between a half
 * type and anything but f32 goes through f32. Which NaN an instruction gives (sign,
 * payload) is no part of its meaning.
 *
 * Memory. Buffers are the operands of a call, numbered 0..n_bufs-1. Where a
 * caller makes an output share memory with an input, each iteration of the grid
 * reads what it needs of the shared elements before it writes them. A LOCAL buffer is
 * scratch of one grid iteration (it keeps a row on chip); its contents are
 * undefined at the start of each. A K_OUT or K_LOCAL buffer may be read after a
 * store to it that comes before in the text. Iterations of a PAR store to different
 * elements: a store's address or bounds have a term of every PAR around it (of a
 * LOCAL buffer: of every PAR that is not of the grid). An indirect access must find
 * its element inside of the buffer; who lowers it sees to that. */
#ifndef GRADC_KERNEL_KERNEL_H
#define GRADC_KERNEL_KERNEL_H

#include "../base/diag.h"
#include "dtype.h"

typedef uint32_t Val; /* index into Kernel.inst; 0 is none */

typedef enum KOp {
#define KI(name, text, args, class) KI_##name,
#include "kinst.def"
#undef KI
    N_KOPS
} KOp;

/* The class column of kinst.def. */
typedef enum KClass {
    K_CLASS_VALUE,
    K_CLASS_UNARY,
    K_CLASS_BINARY,
    K_CLASS_TERNARY,
    K_CLASS_MATH,
    K_CLASS_MEM,
    K_CLASS_LOOP,
    K_CLASS_RED,
    K_CLASS_VAR
} KClass;

/* Virtual lanes of a RED loop, on every target. */
static inline int k_lanes(DType t)
{
    return t == F64 || t == I64 ? 8 : 16;
}

enum { K_MAX_TERMS = 12, K_MAX_DIMS = 8 };

/* base + sum of coef * value; a value is a loop's index, a DIM, or (an indirect
 * access) any i32 or i64 value. Terms are sorted by Val, no coefficient is 0. */
typedef struct KTerm {
    Val v;
    int64_t coef;
} KTerm;

typedef struct KAff {
    int64_t base;
    int32_t n;
    KTerm t[K_MAX_TERMS];
} KAff;

/* lo <= e < hi */
typedef struct KBound {
    KAff e;
    int64_t lo, hi;
} KBound;

/* Element `at` of a buffer; where a bound fails a load gives `otherwise` and a
 * store does nothing, and the memory is not touched. */
typedef struct KAccess {
    int32_t buf;
    int32_t n_bounds;
    KAff at;
    KBound *bound;
    double otherwise;
} KAccess;

/* How far a loop or DIM goes. */
typedef enum KReach { K_ALL, K_LIMITED, K_ZERO } KReach;

typedef struct KInst {
    uint8_t op;    /* KOp */
    uint8_t dtype; /* of the result; STORE, INTO, SET: of the value */
    uint8_t reach; /* KReach of a loop or DIM */
    int32_t aux;   /* access, affine, role, accumulator's operation, loop */
    Val a, b, c;
    union {
        double f;
        int64_t i;
    } imm;
} KInst;

typedef enum KBufMode { K_IN, K_OUT, K_INOUT, K_LOCAL } KBufMode;

typedef struct KBuf {
    DType dtype;
    KBufMode mode;
    int64_t elems;
} KBuf;

/* max(1, element `at` of buffer buf + plus), which is `mean` on average over the runs. */
typedef struct KLimit {
    bool is; /* the kernel has one */
    int32_t buf;
    int64_t at, plus, mean;
} KLimit;

typedef enum KKind { K_LOOP, K_CONTRACT } KKind;
typedef enum KRole { K_B, K_M, K_N, K_K } KRole;
typedef enum KSection { K_IN_DIMS, K_IN_A, K_IN_B, K_IN_EPILOGUE } KSection;

/* Sections of a contraction: instructions [0, body) are DIMs and constants. */
typedef struct KContract {
    DType dtype;            /* of the chain: F32 or F64 */
    int32_t n[4];           /* sub-indices by KRole */
    Val dim[4][K_MAX_DIMS]; /* their DIM instructions, slowest first */
    Val a_from, a_to, a;    /* section A: instructions [a_from, a_to), its value */
    Val b_from, b_to, b;
    Val e_from, e_to; /* epilogue */
    int64_t leaf;     /* 0: one chain */
    bool pairs;       /* of bf16; then leaves are even */
    Val all;          /* a bool of the epilogue; 0: none */
    int32_t all_buf;  /* ... the buffer that tells whether all of it is true */
    int side_sum;     /* 1: of A, 2: of B, whose sums over k are given, too; 0: of neither */
    int32_t side_sum_buf;
} KContract;

typedef struct KConstAt {
    Val v;
    int32_t before; /* the one before it in its bucket, from 1 */
} KConstAt;

/* Constants of the instructions before `seen` whose scope is open there. */
typedef struct KKnown {
    Val seen;
    VEC(KConstAt) at;
    int32_t bucket[64]; /* the last one of it, from 1 */
} KKnown;

typedef struct Kernel {
    Arena *arena;
    KKind kind;
    const char *name; /* for symbols and listings: "matmul_relu"; [a-z0-9_]* */
    VEC(KInst) inst;  /* inst 0 is NONE */
    VEC(KBuf) buf;
    VEC(KAccess) access;
    VEC(KAff) affine; /* operands of INDEX */
    KContract con;    /* K_CONTRACT only */
    KLimit limit;
    VEC(Val) open;    /* builder: loops not yet closed */
    KSection section; /* builder: where a contraction stands */
    KKnown known;     /* builder: its constants */
} Kernel;

/* ---- building (build.c) ------------------------------------------------- */

Kernel *kernel_new(Arena *arena, KKind kind, const char *name);
int k_buf(Kernel *k, DType t, int64_t elems, KBufMode mode);

KAff k_aff(int64_t base);
KAff k_aff_val(Val v, int64_t coef);
KAff k_aff_add(KAff x, KAff y); /* asserts that the terms fit */
KAff k_aff_scale(KAff x, int64_t by);
KAff k_aff_offset(KAff x, int64_t by);
bool k_aff_equal(const KAff *x, const KAff *y);
/* Smallest and largest value over all loops; false if a term is not an index. */
bool k_aff_range(const Kernel *k, const KAff *x, int64_t *lo, int64_t *hi);

Val k_const(Kernel *k, DType t, double x);
Val k_const_int(Kernel *k, DType t, int64_t x);
Val k_index(Kernel *k, DType t, KAff x); /* i32 or i64 */
Val k_load(Kernel *k, int buf, KAff at);
Val k_load_bounded(Kernel *k, int buf, KAff at, const KBound *bound, int n, double otherwise);
void k_store(Kernel *k, int buf, KAff at, Val v);
void k_store_bounded(Kernel *k, int buf, KAff at, const KBound *bound, int n, Val v);
Val k_unary(Kernel *k, KOp op, Val a);
Val k_binary(Kernel *k, KOp op, Val a, Val b);
Val k_fma(Kernel *k, Val a, Val b, Val c);
Val k_select(Kernel *k, Val cond, Val a, Val b);
Val k_cast(Kernel *k, DType t, Val a);
Val k_bitcast(Kernel *k, DType t, Val a);
Val k_random(Kernel *k, Val key, Val counter_lo, Val counter_hi);

Val k_par(Kernel *k, int64_t extent); /* each of these gives the index */
Val k_seq(Kernel *k, int64_t extent);
Val k_seq_down(Kernel *k, int64_t extent);
Val k_red(Kernel *k, int64_t extent);
void k_end(Kernel *k, Val loop);       /* closes loops up to and including this one */
Val k_acc(Kernel *k, DType t, KOp op); /* op: KI_ADD MUL MIN MAX AND OR */
void k_into(Kernel *k, Val acc, Val v);
Val k_fold(Kernel *k, Val acc);
Val k_var(Kernel *k, Val init);
Val k_get(Kernel *k, Val var);
void k_set(Kernel *k, Val var, Val v);

/* A contraction is built in this order: dims, A, B, epilogue. */
Val k_dim(Kernel *k, KRole role, int64_t extent);
void k_section_a(Kernel *k);
void k_section_b(Kernel *k, Val a_value);
Val k_epilogue(Kernel *k, Val b_value, DType sum, int64_t leaf); /* gives SUM */
void k_in_pairs(Kernel *k);            /* the chain, from here on; asserts that it can be */
void k_all(Kernel *k, int buf, Val v); /* of the epilogue, once */
/* A loop or DIM that has been made, of a kernel whose limit is set. */
void k_reach(Kernel *k, Val v, KReach reach);
void k_finish(Kernel *k); /* both kinds; asserts that all is closed */

/* Iterations of a loop or DIM, on average: those of a K_ZERO DIM that have terms. */
static inline int64_t k_steps(const Kernel *k, const KInst *i)
{
    return i->reach != K_ALL && k->limit.mean < i->imm.i ? k->limit.mean : i->imm.i;
}

/* ---- text (print.c, read.c), verification, cost -------------------------- */

void kernel_print(const Kernel *k, Text *to);
Kernel *kernel_read(Ctx *cx, Arena *arena, int32_t source); /* NULL after reporting */
/* NULL, or what is wrong: types, dominance, loops, bounds that allow an access
 * outside of its buffer. */
const char *kernel_verify(const Kernel *k, Arena *scratch);

/* ---- copies (copy.c) ------------------------------------------------------ */

/* A copy without the instructions whose `to`, by Val, is 0; the others get the number that it gives
 * them (1, 2, ... without a gap). NULL: all of them, as they are. */
Kernel *kernel_copy(Arena *arena, const Kernel *k, const Val *to);
/* Marks the values and indices that an instruction reads. */
void k_use_operands(const Kernel *k, const KInst *in, bool *used);
/* Of a loop kernel whose buffers `in` and `out` are one memory: one that does not store what is
 * there already; k itself where it stores no such thing. */
Kernel *kernel_without_self_copies(Arena *arena, Kernel *k, int in, int out);
/* ... which has no -0: k without sums of no terms that are added to what is there. */
Kernel *kernel_without_zero_sums(Arena *arena, Kernel *k, int in, int out);
/* The PAR loops of the grid, outermost first, `most` of them at most; gives their number. */
int kernel_grid(const Kernel *k, Val *par, int most);
/* A kernel in which no PAR loop stores just what a RED loop before it, of as many steps in the same
 * loop, computes: the RED loop stores it; k itself where there is none (join.c). */
Kernel *kernel_join(Arena *arena, Kernel *k);
/* A kernel in which no nest of loops sums up elements that the nest before it does, too, unless it
 * needs what that gives: one walk has both sums; k itself where there is none (walk.c). */
Kernel *kernel_share_walks(Arena *arena, Kernel *k);
/* A kernel in which what a RED loop computes by a transcendental function, and one or more loops
 * over the same elements behind it, too, rests in an output that the last of them, a PAR loop,
 * stores to; k itself where there is none (rest.c). */
Kernel *kernel_rest(Arena *arena, Kernel *k);
/* A kernel in which what loops over the same elements compute at some length, one after another, is
 * held for the others by the first one, in LOCAL buffers of `bytes` at most; k itself where there
 * is nothing of the kind (hold.c). */
Kernel *kernel_hold(Arena *arena, Kernel *k, int64_t bytes);
/* A kernel in which what a PAR loop reads through an index, from a buffer that is only read, comes
 * before the loops in it; k itself where there is nothing of the kind (hoist.c). */
Kernel *kernel_hoist(Arena *arena, Kernel *k);

/* A copy in which loop or DIM v, which goes all the way, is two: v of extent / inner, and v + 1, of
 * `inner`, in it. NULL where it can't be (split.c): an extent that is no multiple, a RED loop whose
 * elements would change lanes, too many terms or DIMs. */
Kernel *kernel_split(Arena *arena, const Kernel *k, Val v, int64_t inner);

typedef struct KCost {
    double flops;                     /* adds, muls, divs, sqrts: 1; fma: 2; math: as expanded */
    double bytes_read, bytes_written; /* distinct elements of each buffer touched, not LOCAL */
    double work;           /* instructions that compute, the chain apart; a division: 4 */
    double contract_flops; /* the part of flops that is the contraction's chain */
} KCost;
KCost kernel_cost(const Kernel *k);

uint64_t kernel_hash(const Kernel *k);
bool kernel_same(const Kernel *x, const Kernel *y); /* but for their names */

/* A copy in which every MATH instruction is a polynomial of the other ones, the
 * same on every target (expand.c: methods, errors in ulp, sources), and in which
 * half types are left only in LOAD, STORE, CONST, SELECT, variables, and CASTs from
 * and to f32, which convert as dtype.h does. `exponents`: with EXPONENT, FRACTION
 * and SCALE, for a target that has instructions for them; the results have the same bits. */
Kernel *kernel_expand(Arena *arena, const Kernel *k, bool exponents);

/* ---- the judge (interp.c) ------------------------------------------------ */

/* K_WIDE   floats in double, MATH by the C library: the judge of accuracy.
 * K_EXACT  each instruction rounded to its dtype, MATH expanded: the judge of
 *          bits; CPU objects equal it. Between denormals_begin(true) and
 *          denormals_end() it is that of objects which flush denormals.
 * K_DUAL   as K_WIDE, and each float carries a tangent: forward mode by about
 *          30 scalar rules, the independent judge of every vjp. */
typedef enum KMode { K_WIDE, K_EXACT, K_DUAL } KMode;

/* A buffer for k_run. K_EXACT: elements as in memory. K_WIDE, K_DUAL: `data` is
 * double per element for float dtypes, int64_t for the others; K_DUAL also has
 * `tangent`, double per element, for float dtypes. */
typedef struct KMem {
    void *data;
    double *tangent;
} KMem;

/* Runs all of a verified kernel; LOCAL buffers are taken from `scratch` (full of
 * NaN at first), and mem[i] of a LOCAL buffer is ignored. A NULL tangent is zero, or
 * not wanted. An access outside of its buffer ends in an assertion. */
void kernel_run(const Kernel *k, KMode mode, const KMem *mem, Arena *scratch);

const char *kop_text(KOp op);
int kop_args(KOp op);
KClass kop_class(KOp op);

#endif
