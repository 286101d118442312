/* Contraction kernels: one template for matmul in any transposition, batched
 * matmul, convolution and its two gradients.
 *
 * The output is cut into tiles of `mr` rows by `nr` columns that live in vector
 * registers while k runs; columns lie along the lanes. Rows are m and columns n,
 * or the other way round where that stores or packs better (a*b = b*a, so bits are
 * the same). An operand is read in place where its addresses are regular, else it
 * is packed, through its access function, into panels: [k][mr] and [k][nr].
 *
 *     for a block of columns, a block of rows
 *         for a block of k            accumulators rest in scratch between them
 *             pack the rows' panels
 *             for each panel of columns: pack it
 *                 for each panel of rows: tile; at the end of k: epilogue
 */
#ifndef GRADC_TARGET_CPU_CON_H
#define GRADC_TARGET_CPU_CON_H

#include "emit.h"
#include "gen.h"

/* The sub-indices of a role as a section sees them: trailing ones whose affine
 * terms all agree are one digit, `run` long, carried by the Val `lane`. */
typedef struct Walk {
    const Kernel *k;
    KRole role;
    int n;               /* digits: slowest first, the run last */
    Val dim[K_MAX_DIMS]; /* the DIM that gets the digit */
    int64_t extent[K_MAX_DIMS];
    int64_t run, total;
    Val lane; /* 0 when the role has one element */
} Walk;
Walk walk_of(const Kernel *k, KRole role, Val from, Val to);
/* Digits of a flat index; sets the DIMs' values in g. */
void walk_decode(const Walk *w, Ir *ir, Lv flat, Lv *digit);
void walk_set(const Walk *w, Gen *g, Lv *digit);
/* Steps by `by` within the run (by <= rest of it), with carries. */
void walk_advance(const Walk *w, Ir *ir, Lv *digit, Lv by);

typedef enum PackMode {
    PACK_ROW, /* vectors along the panel's width */
    PACK_K,   /* vectors along k, transposed in registers */
    PACK_SCALAR
} PackMode;

/* One factor. */
typedef struct Side {
    Val from, to, value;
    Walk free, k;
    bool plain; /* one load, regular in both indices: element at base + r*rs + k*ks */
    int32_t access;
    int64_t rs, ks;
    bool in_place;
    PackMode pack;
    double pack_cycles; /* per element */
} Side;

typedef struct ConPlan {
    const Kernel *k; /* batch indices moved into n or m where an operand ignores them */
    const Machine *mach;
    DType type;
    int es;             /* bytes of an element */
    int vl, nv, nr, mr; /* lanes of a vector, vectors and columns of a tile, its rows */
    bool swap;          /* rows are n */
    Side rows, cols;
    Walk out_rows, out_cols;
    int64_t n_rows, n_cols, n_k, n_batch;
    /* Rows fall into panels of `height` + 1 (the first `taller` ones) and `height`. */
    int64_t row_panels, height, taller, col_panels;
    int64_t leaf, kc;  /* k falls into leaves, those into blocks of kc */
    int64_t mc, nc;    /* panels of a block of rows, of columns */
    bool split_cols;   /* threads share panels of columns, else of rows */
    bool sums, chains; /* per-tile storage of sums of leaves; of unfinished chains */
    int64_t a_at, b_at, t_at, s_at, scratch; /* offsets in lane scratch */
    int64_t n_units;
    double cycles;
} ConPlan;
void con_plan(ConPlan *p, const Kernel *k, const Machine *m, Arena *arena);

typedef struct Con {
    Gen g;
    Ir *ir;
    ConPlan *p;
    Arena *arena;
    Lv scratch;
} Con;

/* con_pack.c: rows [r0, r0+count) of a side, k in [k0, k0+kn), to dst[k][width]. */
void con_pack(Con *c, Side *s, int width, Lv r0, Lv count, Lv k0, Lv kn, Lv dst);
/* Address of element (r, k) of a plain side. */
Lv con_address(Con *c, Side *s, Lv r, Lv k);
/* con_tile.c: the function  void (ptr a, ptr b, ptr c, i64 k, i1 resume)  with
 * c[rows][nr] (+)= a * b, strides in elements. */
Lv con_tile(Ir *ir, const ConPlan *p, int rows, int64_t a_row, int64_t a_k, int64_t b_k);
/* con_out.c: the epilogue of one tile. */
void con_epilogue(Con *c, Lv tile, Lv row0, Lv rows, Lv col0, Lv cols);

#endif
