/* The CUDA target: kernels as CUDA C++, of the same Program as the object of the CPU target.
 *
 * The bits are those of the exact interpreter, whose order of arithmetic is part of a kernel
 * (kernel/kernel.h). What threads may share out is only what that order leaves open:
 *
 * Grid of a loop kernel. Nested PAR loops with nothing but pure values beside them (constants,
 *   loads of inputs, arithmetic) are its grid, as on the CPU; an iteration of all of them is an
 *   item. Items are independent: no two of them are ordered, and none waits for another.
 *
 * Teams. An item belongs to one thread, or to a team of threads:
 *   - one thread: pointwise kernels; sums of columns, where neighbouring items lie side by side in
 *     memory; loops that run in order (SEQ). A thread has all virtual lanes of a RED loop in an
 *     array, which is indexed by constants only, so that it is registers;
 *   - 16 threads (8 where an accumulator has 8 lanes), half of a warp: an item with a RED loop.
 *     Thread t takes the iterations t, t + 16, ..., which is virtual lane t, and FOLD is the tree
 *     of the lanes, by shuffles. A PAR loop inside of the item is shared out likewise;
 *   - a block of up to 256 threads: an item with a PAR loop and no accumulator in lanes (rows
 *     that SEQ loops scatter, a kernel of several PAR loops).
 *   All threads of a team run what lies outside of its shared loops, each for itself, and have the
 *   same values there; the first one stores. Threads of a team meet before one of them may read
 *   what another has written, or write what another has read (barrier.c). As an output may have
 *   the memory of an input, a store counts as one over each input.
 *   LOCAL buffers are shared memory of the team, or an array of the thread.
 *
 * Contractions. A block computes a tile of C for one b. Panels of A and B, which their sections
 *   compute, lie in shared memory, [k][m] and [k][n]; a thread has some rows by some columns of the
 *   tile in registers, and adds k by k: the chain in the order of k. Leaves of k are sums of their
 *   own, added when they end. No product is made for a k beyond the last, as even 0 * 0 may turn
 *   a sum of -0 into 0. The epilogue runs for each element, in the thread that has it.
 *   A tile never shows in the bits, so that its size is free (tile.c). Launch bounds say how many
 *   blocks are to share a multiprocessor, of an estimate of their registers.
 *
 * Limits. The limit is read where a kernel begins. Items beyond it end at once, loops end at it,
 *   a limited M or N cuts the tile's stores, a limited K its chain; sums of a K_ZERO DIM are 0.
 *
 * Values. f16 and bf16 are floats in registers, rounded after each operation; integers wrap by
 *   functions of prelude.cuh. exp, log and all MATH are functions printed from kernel_expand(), so
 *   the same polynomials as anywhere. min and max are comparisons, fma is fmaf(). Float literals
 *   are the shortest decimals that read back.
 *
 * Scans and micro-batches are CALL_LOOPs: launches, count times, with offsets that move. A guarded
 *   call has the flag as its last argument, and its threads end where that is false: so a step is
 *   one graph without a decision on the host.
 *
 * No float atomics, no order between blocks, no waiting for another block. */
#ifndef GRADC_TARGET_CUDA_CUDA_H
#define GRADC_TARGET_CUDA_CUDA_H

#include "../target.h"

/* What a launch of a kernel needs. */
typedef struct Launch {
    int64_t blocks; /* 0: there is nothing to do */
    int32_t threads;
    int64_t shared_bytes; /* of a block */
    int32_t resident;     /* blocks that a multiprocessor has registers for; 0: as it comes */
} Launch;

/* Where the text of one kernel goes, and what its values are called. */
typedef struct Printer {
    Text *to;
    Arena *arena;
    const Kernel *k;
    int depth;                   /* of indentation */
    bool wide;                   /* indices are i64, not int */
    const char **name;           /* by Val: of loops, DIMs and values */
    struct Math *math;           /* functions that the text needs */
    const struct LoopPlan *plan; /* of a loop kernel */
} Printer;

/* A line of the text, indented. */
void cu_line(Printer *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* ... that opens a brace, and one that closes it. */
void cu_open(Printer *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cu_close(Printer *p);
const char *cu_printf(Printer *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Begins kernel `k`: names for all of its values. */
Printer cu_printer(Text *to, Arena *arena, const Kernel *k, struct Math *math);

/* ---- value.c: scalar instructions ---------------------------------------------------- */

const char *cu_type(DType t);        /* in registers: "float" */
const char *cu_memory_type(DType t); /* in memory: "u16" */
/* A value as an operand: its name, or a literal. */
const char *cu_operand(Printer *p, Val v);
/* The right side of a scalar instruction, LOADs and INDEXes among them. */
const char *cu_expression(Printer *p, Val v);
/* op(x, y) of an accumulator of type t; its first value. */
const char *cu_combine(Printer *p, KOp op, DType t, const char *x, const char *y);
const char *cu_identity(Printer *p, KOp op, DType t);
/* "Add": the op as a type of prelude.cuh. */
const char *cu_combiner(KOp op);
const char *cu_integer(Printer *p, DType t, int64_t x);
const char *cu_literal(Printer *p, DType t, double x);

/* ---- memory.c: affine expressions, loads, stores ---------------------------------------- */

const char *cu_affine(Printer *p, const KAff *x);
const char *cu_load(Printer *p, int32_t access);
/* `only`: a condition that comes first, or NULL. */
void cu_store(Printer *p, int32_t access, Val v, const char *only);
/* Whether indices and offsets of the kernel need 64 bits. */
bool cu_needs_wide(const Kernel *k);
/* Type of indices: "int" or "i64". */
const char *cu_index_type(const Printer *p);

/* ---- math.c: MATH as functions -------------------------------------------------------------- */

/* What has been printed of them so far. */
typedef struct Math {
    Arena *arena;
    Text text;
    bool has[N_KOPS][2]; /* f32, f64 */
} Math;
/* Name of the function; its text is put to m->text first. t: F32, F64; I32 of RANDOM. */
const char *cu_math(Math *m, KOp op, DType t);

/* ---- plan.c: who runs what of a loop kernel ---------------------------------------------------
 */

enum { CU_MAX_CHAIN = 16, CU_LANES = 16 };

typedef struct LoopPlan {
    const Kernel *k;
    Val *end_of;  /* by Val: END of a loop */
    Val *red_of;  /* by Val, INTO: the RED loop that says its lane, or 0 */
    bool *wide;   /* by Val, ACC: it has virtual lanes */
    bool *feeds;  /* by Val, RED: some wide accumulator is fed by it */
    bool *shared; /* by Val, PAR and RED: the team shares it out */
    bool *ours;   /* by Val, ACC: opened by the whole team */
    int32_t n_chain;
    Val chain[CU_MAX_CHAIN]; /* the grid, outermost first */
    int64_t items;
    int32_t team;    /* threads of an item */
    int32_t lanes;   /* turns of a RED loop that feeds are team * (lanes / team) long: 8 or 16 */
    int32_t teams;   /* of a block */
    int32_t threads; /* of a block */
    int64_t local_bytes; /* LOCAL buffers of a team in shared memory */
} LoopPlan;

LoopPlan *cu_plan_loop(const Kernel *k, Arena *arena);
bool cu_is_loop(const Kernel *k, Val v);
/* Accumulators of this type have their lanes in so many places of a thread. */
int32_t cu_slots(const LoopPlan *plan, DType t, bool ours);

/* ---- barrier.c: where a team meets --------------------------------------------------------------
 */

/* What threads of the team have touched since they met, by buffer. */
typedef struct Touched {
    const Kernel *k;
    bool *read, *written;
} Touched;
Touched cu_touched(const Kernel *k, Arena *arena);
/* Instructions [from, to) are next: gives whether the team has to meet first, and adds them. */
bool cu_must_meet(Touched *t, Val from, Val to);
/* Around a loop that the team runs together, [from, to): what its turns leave to one another. */
void cu_touch(Touched *t, Val from, Val to);

/* ---- kernels
 * ------------------------------------------------------------------------------------- */

typedef struct Naming {
    const char *name;
    bool guarded; /* a flag is its last argument */
    bool wide;    /* indices of 64 bits, whatever they reach */
} Naming;

/* Prints kernel `k` under this name. */
Launch cu_loop_kernel(Printer *p, const char *name, bool guarded);
Launch cu_contraction(Printer *p, const char *name, bool guarded);
Launch cu_kernel(Text *to, Arena *arena, const Kernel *k, const Naming *as, Math *math);
/* The first lines of either: bounds of a launch ("256, 2"), name, arguments; the guard and the
 * limit. */
void cu_kernel_head(Printer *p, const char *name, const char *bounds, bool guarded);
void cu_kernel_begin(Printer *p, bool guarded);

/* The whole text: prelude, functions, kernels. */
void cu_text(Text *to, const Math *math, const Text *kernels);
/* n kernels in one text that stands alone, called k0, k1, ...; to[i]: what launches them need. */
void cuda_kernels_text(Kernel *const *k, int n, bool wide, Arena *arena, Text *to, Launch *launch);

/* ---- text.c -------------------------------------------------------------------------------- */

/* A Program's kernels as text; arrays by index into Program.kernel. */
typedef struct CudaText {
    Ctx *cx;
    const Program *p;
    Arena *arena;
    const char **name;
    Launch *launch; /* of those that have been printed */
    bool *guarded;
} CudaText;

CudaText *cu_text_open(Ctx *cx, const Program *p, Arena *arena);
/* Prints kernel `i`, and the line of the model that it comes from. */
void cu_text_kernel(CudaText *t, int32_t i, Math *math, Text *to);
/* Finds t->launch of all kernels. */
void cu_text_launches(CudaText *t);
/* All of them in one text, with what each entry launches. */
const char *cu_whole_text(Ctx *cx, const Program *p, Arena *arena);

/* ---- launches.c
 * ------------------------------------------------------------------------------------ */

/* guarded[i]: kernel i is called under a CALL_GUARD. */
void cu_find_guarded(const Program *p, bool *guarded);
/* One of these is called outside of guards, too: with a flag there that is always true. */
bool cu_runs_both(const Program *p, const bool *guarded);
/* What each entry launches, as a comment. */
void cu_launches(const CudaText *t, Text *to);

#endif
