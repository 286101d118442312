/* Contraction kernels: one template for matmul in any transposition, batched
 * matmul, convolution and its two gradients.
 *
 * The output is cut into tiles of `mr` rows by `nr` columns that live in vector
 * registers while k runs; columns lie along the lanes. Rows are m and columns n,
 * or the other way round where that stores or packs better (a*b = b*a, so bits are
 * the same). An operand is read in place where its addresses are regular, else it
 * is packed, through its access function, into panels: [k][mr] and [k][nr]. Columns that a
 * window slides over may instead be read where their rows are staged (con_stage.c): then
 * each line of them is padded to whole vectors, and lanes of padding are not stored.
 *
 * Of bf16 pairs (KContract.pairs) an element of a panel is two of k: [k/2][mr] of 4 bytes each,
 * which a tile multiplies and adds at once (con_pairs.c). Blocks of k then begin at even k.
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
/* All affine expressions of a section, one after the other: NULL at the end. */
const KAff *con_affine(const Kernel *k, Val from, Val to, int index);
const KBound *con_bound(const Kernel *k, Val from, Val to, int index); /* likewise, of its loads */
int64_t con_coef(const KAff *x, Val v);
bool con_of_dims(const Kernel *k, const KAff *x); /* its value is known where indices are set */

typedef enum PackMode {
    PACK_ROW,   /* vectors along the panel's width */
    PACK_K,     /* vectors along k, transposed in registers */
    PACK_STAGE, /* from staged rows: either of these (con_stage.c) */
    PACK_SCALAR
} PackMode;

/* A free index f and an index d of k that every affine of a section meets as one place,
 * s*f + t*d (times some factor): a window that slides. f, d 0: one place, 0. */
typedef struct Slide {
    Val f, d;
    int64_t n_f, n_d, s, t;
    int64_t lowest, n; /* places are lowest..lowest+n-1 */
} Slide;

/* Rows of a side's values by place, computed once, that panels are then copied from. A
 * row is all places x of one (other free indices, y); the rows are numbered through. */
typedef struct Stage {
    bool elements; /* what reads them takes one element at a time */
    bool along_k;  /* vectors of a panel lie along k, transposed in registers */
    int step;      /* places from one lane to the next: 1 or 2 */
    int pairs;     /* sliding indices: x, then y */
    int k_pairs;   /* ... of k: x has none where a window is one place wide */
    Slide x, y;
    int64_t n_rows;       /* all there are */
    int64_t rows, blocks; /* staged at a time: rows, of each of so many other k */
    int64_t plane, pitch; /* elements: of a row's even (step 1: all) places, of a row */
    int64_t bytes, at;    /* in lane scratch */
    Lv from, to;          /* slots: the rows that are staged */
} Stage;

/* One factor. */
typedef struct Side {
    Val from, to, value;
    Walk free, k;
    bool regular; /* one load within its bounds: its places are affine in all digits */
    bool plain;   /* ... and in both flat indices: element at base + r*rs + k*ks */
    int32_t access;
    int64_t rs, ks;
    /* A matrix in panels (panels.h): a flat free index (k) moves by rs (ks) within so many, from
     * one panel to the next by the jump; by the other one, rows of panels follow one another. 0: it
     * is none. */
    int64_t panel, jump, k_panel, k_jump;
    int es;      /* bytes of an element where it lies */
    bool is_row; /* what has no partner is paired with -0, of columns with +0 */
    bool in_place;
    bool sliced; /* several panels are packed at once, a few k at a time (con_slices.c) */
    PackMode pack;
    double pack_cycles; /* per element */
    Stage stage;        /* PACK_STAGE */
} Side;

/* Lanes along a batch index, for which a result has few terms or there are few results
 * (con_lanes.c). */
typedef struct Inner {
    int64_t from, to;
} Inner;
enum { MAX_SURE = 16 };
enum { CON_LANES_MOST = 28 }; /* results of a tile, in 32 registers */
typedef struct Lanes {
    Val lane;
    int64_t extent;
    /* one: of few free indices, or none, which are `each`; its `free` is the lane's. many: with a
     * window */
    Side one, many;
    Walk each;
    int64_t each_n, parts; /* so many of `each` in a unit, and parts of it; images: of the lines */
    int64_t room;          /* ... there is room for at once: for all of them, or each_n */
    int pairs;             /* sliding indices of it: x, then y */
    Slide x, y;
    Walk others, blocks;       /* its other free indices, its other k */
    int64_t lines_f, lines_d;  /* at a time: lines of results, lines of terms of each block */
    int64_t rows, pitch;       /* of what is staged of it, in vectors */
    int64_t outs, line;        /* results at a time; elements of a line of them, transposed */
    int64_t apart;             /* vectors from the results for one of `each` to the next one's */
    int tile_lines, tile_cols; /* results in registers */
    bool at_once;    /* a tile's results are whole: an epilogue follows each line of tiles */
    bool along_only; /* no window slides over x: only where the lane's neighbours lie together */
    int64_t split;   /* there is no window: x is that many of the fastest free index; else 0 */
    /* The lane's neighbours lie side by side (con_along.c): of `many`, in the epilogue, of `one`,
     * whose elements are so far apart from one term to the next, from one line of them. */
    bool many_along, out_along, one_along;
    bool out_apart; /* ... a few elements apart */
    bool far;       /* `many` is asked for a line ahead, ... */
    bool out_far;   /* ... what the epilogue meets, before a tile */
    int64_t one_x, one_y;
    bool once;              /* `one` is packed for all units of the same lanes: */
    int64_t groups, packed; /* ... so many, vectors of each, and of each of `each` */
    Inner in_x, in_y;       /* places within these bounds: */
    const KBound *sure[MAX_SURE];
    int n_sure;
    bool images;         /* lanes along those (con_images.c): `one` is the same for all of them, */
    int64_t panel_bytes; /* ... a panel of rows of it takes so many; */
    bool leaves_out;     /* ... outside of in_x, in_y `many` is 0, and terms are left out */
    int64_t a_at, b_at, o_at, s_at, t_at; /* offsets in lane scratch */
} Lanes;

/* Of a window's rows, terms of padding are left out (con_edges.c). */
typedef struct Edges {
    bool is;
    int64_t offsets;                       /* of the window: so many rows of each panel's piece */
    int64_t line, image;                   /* k's of a line of results, of an image */
    int64_t images_at_once, lines_at_once; /* of which the first cache holds what a tile meets */
    int64_t lines, terms;                  /* of all offsets, in one image */
} Edges;

/* Rows that are read where they lie, one element at a time (con_window.c). */
typedef struct Window {
    bool is, staged;         /* staged: else in the operand itself */
    int64_t inner;           /* rows of all of the faster digits: panels are whole so many, ... */
    int64_t segment, pieces; /* ... cut from segments of rows, in so many panels each, ... */
    int more;                /* ... so many beyond the fewest that registers hold */
    int64_t free_step[K_MAX_DIMS], k_step[K_MAX_DIMS]; /* elements, by digit of the walks */
    int64_t table; /* k's that the table of distances has: a block of k lies within so many */
    Edges edges;
} Window;

/* What tiles ask for while they are computed (con_stream.c): every ASK_STEPS steps n lines, so many
 * times. */
typedef enum ConCache { CACHE_1, CACHE_2 } ConCache;
enum {
    ASK_COLS,
    ASK_ROWS,
    ASK_BLOCK,
    ASK_NEXT,
    MAX_NEXT = 3,
    ASK_OUT = ASK_NEXT + MAX_NEXT,
    MAX_OUT_ASKS = 2,
    MAX_ASKS = ASK_OUT + MAX_OUT_ASKS
};
enum { ASK_STEPS = 16 };
typedef struct Ask {
    int n, times;
    ConCache cache;
    bool write;
} Ask;

typedef struct ConPlan {
    const Kernel *k; /* batch indices moved into n or m where an operand ignores them */
    const Machine *mach;
    DType type;
    bool pairs;         /* of bf16: a panel's element, and a tile's step, is two of k */
    int es;             /* bytes of an element of a panel and of a tile */
    int vl, nv, nr, mr; /* lanes of a vector, vectors and columns of a tile, its rows */
    bool swap;          /* rows are n */
    Side rows, cols;
    Walk out_rows, out_cols;
    int64_t n_rows, n_cols, n_k, n_batch;
    KReach row_reach, col_reach, k_reach;
    /* Rows fall into panels of `height` + 1 (the first `taller` ones) and `height`; of a window,
     * those of each segment do, and they are counted in `inner` rows. */
    int64_t row_panels, height, taller, col_panels;
    int64_t leaf, kc; /* k falls into leaves, those into blocks of kc */
    int64_t mc, nc;   /* panels of a block of rows, of columns */
    int64_t group;    /* panels of columns that are packed at once */
    bool split_cols;  /* threads share panels of columns, else of rows */
    bool cols_once;   /* all panels of columns are packed before the first block */
    bool direct;      /* columns are read where they are staged: */
    int64_t line;     /* ... n_cols counts lines of so many, ... */
    int64_t padded;   /* ... which take so many each */
    Window window;
    bool ahead;        /* what the epilogue reads and writes is asked for before each tile */
    bool turned;       /* the epilogue's lanes lie along the tile's rows */
    bool straight;     /* whole tiles are summed where they are stored (con_straight.c) */
    bool plus;         /* ... and what the epilogue reads is added to them */
    bool finishes;     /* ... or it makes of them what it stores there */
    bool sums, chains; /* per-tile storage of sums of leaves; of unfinished chains */
    int64_t a_at, b_at, t_at, s_at, turn_at, scratch; /* offsets in lane scratch */
    int64_t n_units;
    double cycles;
    Lanes *lanes; /* or NULL: tiles */
    Ask ask[MAX_ASKS];
    Val next[MAX_NEXT];    /* of the operands, what ASK_NEXT and on ask for: loads */
    Val out[MAX_OUT_ASKS]; /* of the epilogue, what ASK_OUT and on ask for: loads, stores */
} ConPlan;
enum { CON_LARGE_CACHE = 2 << 20 }; /* bytes of a second cache that has room for long panels */
void con_plan(ConPlan *p, const Kernel *k, const Machine *m, Arena *arena);
/* con_pack.c: whether sums of this side are given (KContract.side_sum), and can be by this plan. */
bool con_sums_side(const ConPlan *p, const Side *s);
bool con_can_sum_side(const ConPlan *p);

typedef struct Con {
    Gen g;
    Ir *ir;
    ConPlan *p;
    Arena *arena;
    Lv scratch;
    bool stored;         /* what the epilogue stores is in memory: con_finish() */
    Lv rows_end;         /* of the panels of rows at hand */
    Lv again, all_terms; /* slots of i1, of a window's edges: con_edges_begin() */
    Lv leads; /* i1: the block at hand has the first panel of the side that is not summed up */
} Con;

static inline Lv con_less(const Con *c, Lv x, Lv y)
{
    return LLVMBuildICmp(c->ir->b, LLVMIntSLT, x, y, "");
}

enum { STAGE_STRIPS = 16, STAGE_RUNS = 6 }; /* vectors of a panel; runs that one may reach into */
/* con_stage_plan.c: whether panels of `width`, kc of k at a time, are better copied from
 * staged rows than packed as s->pack says; if so, says PACK_STAGE. */
void con_stage_plan(const ConPlan *p, Side *s, int width);
int con_stage_runs(const ConPlan *p, const Stage *g); /* that a vector may reach into */
/* For a tile that reads staged rows, `width` columns of them: fills in s->stage, pack_cycles.
 * fails: false, where there is no window. */
bool con_stage_direct_plan(const ConPlan *p, Side *s, int width);
bool con_find_slide(const Kernel *k, const Side *side, int back,
                    Slide *w); /* `back` from the fastest */
bool con_find_slide_of(const Kernel *k, const Side *side, int back_f, int back_d, Slide *w);
/* Each place can be named by one of the two indices alone. */
bool con_one_names_all(const Slide *w, bool lanes);
/* con_stage.c: sets the indices of a pair to place `at` (0: the lowest). Gives the one that
 * moves. */
Val con_set_place(Con *c, const Slide *w, Lv at);
/* con_stage.c: nothing is staged; before panels are packed from the lowest free index up. */
void con_stage_reset(Con *c, Side *s);
void con_stage_pack(Con *c, Side *s, int width, Lv r0, Lv count, Lv k0, Lv kn, Lv dst);
/* Of a direct plan: stages what the columns [col0, col0 + cols), padded ones among them, need
 * of these k. Puts the nv vectors' addresses for k = 0 of the table into to[]; gives the table
 * of distances from them, i32 by k from k0 on. */
Lv con_stage_direct(Con *c, Side *s, Lv col0, Lv cols, Lv k0, Lv kn, Lv to);
/* The column that a padded one is, where it is no padding, and its place in the line. */
Lv con_line(Con *c, Lv padded, Lv *in_line);
/* con_side.c: cycles of a section's loads and arithmetic for vl lanes along `lane`, -1
 * where an index that moves with it makes each element a chase (lane 0: of one element alone);
 * bounds that can fail. */
double con_vector_cycles(const ConPlan *p, const Side *s, Val lane);
int con_open_bounds(const Kernel *k, const Side *s);
/* con_plan.c: from one k to the next a plain side's elements lie on another page. */
bool con_wide_steps(const ConPlan *p, const Side *s);
/* ... rows of a tile of nv vectors that registers have room for. */
int con_most_rows(const Machine *m, int nv);
/* ... the d-th index of a role becomes the slowest one of another. */
void con_move_dim(Kernel *k, KRole from, int d, KRole to);
/* con_side.c: the factors, with their free indices and those of k, and how they lie in memory. */
void con_sides(const Kernel *k, Side *a, Side *b);
/* con_side.c: how panels of `width` are packed best, but for staging. */
void con_choose_pack(const ConPlan *p, Side *s, int width);
/* con_pack.c: the section's value where g's indices stand; a store to packed memory. */
Lv con_value(Con *c, Side *s);
void con_store_packed(Con *c, Lv x, Lv dst, Lv elem);
/* con_pairs.c, of plans with pairs: of values at k and k + 1, f32 that are bf16, the halves that a
 * tile multiplies. */
Lv con_pair(Con *c, Lv x, Lv y);
/* ... of lanes that lie along k: neighbours are pairs. */
Lv con_pairs_along(Con *c, Lv x);
/* ... the partner of k: at k + 1 of kn, or what changes no sum. Can there be none? */
bool con_lacks_partner(const ConPlan *p);
Lv con_has_partner(Con *c, Lv k, Lv kn);
Lv con_partner(Con *c, const Side *s, Lv has, Lv y);
/* ... steps of a tile for so many k. */
int64_t con_steps(const ConPlan *p, int64_t k);
Lv con_steps_of(Con *c, Lv k);
/* ... s = s + a b of a tile's step. */
Lv con_dot(Ir *ir, const ConPlan *p, Lv a, Lv b, Lv s);
/* ... the nv vectors of columns where they lie, a line for each k. */
void con_pair_columns(Ir *ir, const ConPlan *p, Lv b, int64_t line, Lv *row);
/* con_pack.c: rows [r0, r0+count) of a side, k in [k0, k0+kn), to dst[k][width]. */
void con_pack(Con *c, Side *s, int width, Lv r0, Lv count, Lv k0, Lv kn, Lv dst);
/* Sums of free indices [from, to) of a side that nothing packs, by whoever leads. */
void con_sum_in_place(Con *c, Side *s, Lv from, Lv to, Lv k0, Lv kn);
/* Address of element (r, k) of a plain side. */
Lv con_address(Con *c, Side *s, Lv r, Lv k);
/* con_window.c, for a plan: cuts rows into panels of at most so many, the fewest and window.more;
 * false: no window. */
bool con_window_rows(ConPlan *p, int most);
/* ... in the plan: panels of `most` times `inner` rows at most, of segments of n times as many; as
 * many panels of each as there are such rows at most. */
void con_window_cut(ConPlan *p, int64_t inner, int64_t n, int64_t most);
/* ... blocks of k; false: they would be too short. */
bool con_window_k(ConPlan *p);
/* ... where rows are read, and what that costs; false: they are better packed. */
bool con_window_source(ConPlan *p);
void con_window_blocks(ConPlan *p); /* ... blocks of rows */
/* ... elements from a panel's first row to row `row` of it. */
int64_t con_window_row(const ConPlan *p, int row);
/* ... for a block: where row 0 is at the first k of k0's table, the table's entry of k0. */
Lv con_window_base(Con *c, Lv row0, Lv rows, Lv k0, Lv kn);
Lv con_window_table(Con *c, Lv k0);
Lv con_window_at(Con *c, Lv base, Lv row0); /* ... the same of row0 */
/* con_stage_plan.c: rows that a panel of `width` needs at most; staging for a window. */
int64_t con_stage_reach(const Stage *g, int64_t width);
bool con_stage_window_plan(const ConPlan *p, Side *s, int width);
void con_stage_bytes(const ConPlan *p, Stage *g); /* ... of so many rows */
/* con_stage.c: stages what the free indices [first, last] need of these k; gives where row
 * *from, the first that is staged, would be for block 0 of the other k. */
Lv con_stage_window(Con *c, Side *s, Lv first, Lv last, Lv k0, Lv kn, Lv *from);
Lv con_table(Con *c, Lv *at, int64_t n); /* a constant of i32s */
/* con_tile.c: the function  void (ptr a, ptr b, ptr c, i64 k, i1 resume)  with
 * c[rows][nr] (+)= a * b; k counts steps. Of a direct plan b has the addresses of the nv
 * vectors, and a last argument, ptr, has the distance of each k from there; of a window's plan it
 * has the distance of each k from a. */
/* ... One whose rows lie apart in c has one more, i64: bytes from one to the next; one that adds
 * has two more, ptr, i64: the same of what is added to c at the end. */
/* ... What it asks for are three more each, ptr, i64, i64: a ConStream. */
typedef struct ConStrides {
    int64_t a_row, a_k, b_k; /* bytes; a_k, b_k: of a step */
    bool apart;              /* pairs: columns lie a line for each k, so b_k / 2 from each other */
    bool c_apart, plus;      /* rows of c, by an argument; what is added to them */
} ConStrides;
enum { CON_TILE_ARGS = 9 + 3 * MAX_ASKS }; /* at most */
Lv con_tile(Ir *ir, const ConPlan *p, int rows, int vectors, ConStrides by);
/* con_stream.c: lines at `at`, `gap` bytes from each other; the next ones are `step` bytes on. */
typedef struct ConStream {
    Lv at, step, gap;
} ConStream;
bool con_is_far(const ConPlan *p, const Side *s); /* packed, from more than fits the second cache */
void con_stream_plan(ConPlan *p);
/* ... both operands are read where they lie, some k of all rows and columns after the other. */
bool con_in_blocks(const ConPlan *p);
bool con_streams(const ConPlan *p);
ConStream con_no_stream(Con *c);
ConStream con_stream_if(Con *c, Lv cond, const ConStream *x);
/* ... the tile-th tile of a panel of columns, for its part of this panel's [k0, k0 + kn). */
ConStream con_stream_cols(Con *c, Lv panel, Lv k0, Lv kn, Lv tile);
ConStream con_stream_rows(Con *c, Lv panel, Lv k0);
/* ... rows of the block that begins at this panel, by the tile-th tile of the block before, which
 * has kn steps. */
ConStream con_stream_block(Con *c, Lv panel, Lv k0, Lv kn, Lv tile);
/* ... lines of it that a tile asks for at once; 0: rows are not packed in slices, or there are too
 * few tiles. */
int con_block_asks(const ConPlan *p);
/* con_next.c: what the next block of k, or the next lines, are staged and packed from, in the plan;
 * the part that a tile asks for. */
void con_next_plan(ConPlan *p);
typedef struct ConAsker {
    Lv row_panel, col_panel;
    Lv col_from; /* first panel of the block's columns */
    Lv tile;     /* its place among the block's tiles */
    Lv next;     /* where the next block of k begins */
} ConAsker;
ConStream con_stream_next(Con *c, int i, const ConAsker *t);
/* con_edges.c, for a plan: as con_window_rows(), whose blocks of k are whole images; for one k, the
 * mean of cycles of a tile of so many rows of each offset. */
bool con_edges_rows(ConPlan *p, int most);
double con_edges_cycles(const ConPlan *p, int64_t rows);
/* ... A panel of rows, for a block of k: */
typedef struct ConEdgesPanel {
    Lv a, b, sums; /* where its first row (at k = 0 of the base), the columns, its sums are */
    int64_t b_k;   /* bytes from a k of the columns to the next one */
    Lv image0;     /* the block's first image, from the base on; */
    Lv images;     /* ... it has so many */
    Lv resume;     /* i1 */
    const ConStream *ask;
} ConEdgesPanel;
/* ... sums up so many rows of each offset. */
void con_edges_panel(Con *c, int rows, const ConEdgesPanel *at);
/* ... of final sums, so many rows: gives i1, whether they are what they are with all terms; else
 * the unit is summed up again. */
Lv con_edges_check(Con *c, Lv sums, Lv rows);
/* ... What is emitted between these sums up a unit, twice if need be. */
typedef struct ConEdgesUnit {
    Lb head, end;
} ConEdgesUnit;
ConEdgesUnit con_edges_begin(Con *c);
void con_edges_end(Con *c, const ConEdgesUnit *u);
/* con_zero.c: sums of no terms, of a tile at t: all; columns, rows from the limit on. */
void con_zero_tile(Con *c, Lv t);
void con_zero_cols(Con *c, Lv t, Lv col0);
void con_zero_rows(Con *c, Lv t, Lv row0);
/* con_slices.c: before blocks are laid out. */
void con_slices_plan(ConPlan *p);
/* Bytes from one packed panel to the next. */
int64_t con_panel_bytes(const ConPlan *p, const Side *s);
/* ... where columns are packed once, from k0 on. */
Lv con_packed_once(Con *c, Lv panel, Lv k0);
/* Packs the panels [from, to) to dst and on, for kn of k from k0 on. */
void con_pack_slices(Con *c, Side *s, Lv from, Lv to, Lv k0, Lv kn, Lv dst);
/* con_prefetch.c: of a cache line. */
void con_prefetch(Ir *ir, Lv at, ConCache cache, bool write);
/* ... what a section loads and stores where g's indices stand, but for `index`: that many ahead. */
void con_prefetch_section(Con *c, Val from, Val to, Val index, int64_t ahead);
/* ... what a side loads along the lane at the next value of `index`. */
void con_prefetch_along(Con *c, const Side *s, Val lane, Val index);
/* ... whether what an epilogue reads and writes is. */
bool con_asks_ahead(const ConPlan *p);
/* con_lanes_plan.c: makes p->lanes where that beats p->cycles, and the rest of p for it. */
bool con_lanes_plan(ConPlan *p, Arena *arena);
/* con_lanes.c: the units [begin, end). */
void con_lanes_units(Con *c, Lv begin, Lv end);
/* Of its units; NULL: none. */
Slabs *con_lanes_slabs(const ConPlan *p, Arena *arena);
/* What the loops around have chosen. */
typedef struct LanesPiece {
    Lv group; /* of channels: */
    Lv lane0, live;
    Lv *other, *block;     /* digits of other free indices and of other k */
    Lv flat, flat_block;   /* ... each in one number */
    Lv line0, lines;       /* of results */
    Lv term0, term_lines;  /* lines of terms of the block */
    Lv one;                /* con_along_one() */
    Lv each_from, each_to; /* of `each`: those at hand; ... */
    Lv each, outs;         /* one, and where its results lie, in vectors */
} LanesPiece;
/* ... so many vectors on from `base` in lane scratch. */
Lv con_lanes_at(Con *c, int64_t base, Lv vectors);
Lt con_vector_type(const Con *c); /* con_lanes_tile.c */
/* ... begins a unit: gives its part and sets at->other, for which there is room in `digit`. */
Lv con_lanes_unit(Con *c, Lv unit, LanesPiece *at, Lv *digit);
/* ... sets the indices of `many` to place x of line y. */
void con_lanes_set(Con *c, const LanesPiece *at, Lv y, Lv x);
/* ... stages places x, x + 1, ... of line y, transposed: a vector of them, to x vectors on. */
void con_lanes_stage(Con *c, const LanesPiece *at, Lv y, Lv x, Lv to);
/* ... the epilogue of the results of at->each, which lie at at->outs. */
void con_lanes_put(Con *c, LanesPiece *at);
/* con_lanes_plan.c: what slides in `many`, over the lane's other indices. fails: false. */
bool con_lanes_windows(const ConPlan *p, Lanes *l);
/* con_images_plan.c: as con_lanes_plan, with lanes along images. */
bool con_images_plan(ConPlan *p, Arena *arena);
/* All terms of a line of the window are written out, one after another, not in a loop. */
bool con_images_in_turn(const Lanes *l, int64_t rows, int64_t cols);
/* con_images.c: the units [begin, end). */
void con_images_units(Con *c, Lv begin, Lv end);
/* con_lanes_tile.c: the function
 * void (ptr one, ptr many, ptr out, i64 lines, i64 terms of each, i1 resume). */
Lv con_lanes_tile(Con *c, int lines, int cols);
Lv con_handed_on(Ir *ir, Lv first, Lb before); /* a phi, in a loop's head */
/* ... A loop that counts down from n > 0, with sums and two addresses that it hands on. */
typedef struct ConChain {
    Lb head;
    int n_sums;
    Lv left, at[2], first[CON_LANES_MOST], *sum;
} ConChain;
ConChain con_open_chain(Ir *ir, Lv n, Lv a, Lv b, Lv *sum, int n_sums);
void con_close_chain(Ir *ir, ConChain *h, Lv a, Lv b);
/* con_along.c */
void con_along_plan(const ConPlan *p, Lanes *l);
void con_find_inner(const ConPlan *p, Lanes *l); /* in_x, in_y: of no places, where it can't tell */
void con_along_stage(Con *c, const LanesPiece *at, Lv y, Lv dst);
void con_along_ask(Con *c, const LanesPiece *at, Lv first, int64_t n);
void con_along_put(Con *c, const LanesPiece *at, Lv from, Lv first, Lv n);
Lv con_along_one(Con *c, const LanesPiece *at);
/* con_panel.c: first row, column of a panel, and how many it has. */
Lv con_row_of(Con *c, Lv panel, Lv *count);
Lv con_col_of(Con *c, Lv panel, Lv *count);
Lv con_in_segment(Con *c, Lv row_panel); /* its place there: its height depends on that */
/* ... the first panel that lies beyond the limit, or the end of all. */
Lv con_row_panels_end(Con *c);
Lv con_col_panels_end(Con *c);
/* con_out.c: the epilogue where g's indices stand, of the sums at `at`; of one tile. */
void con_section(Con *c, Lv at);
void con_epilogue(Con *c, Lv tile, Lv row0, Lv rows, Lv col0, Lv cols);
/* ... lines of which two fill what the lanes of one leave free, as a transposed convolution's that
 * has a stride of 2: their index, or 0. */
Val con_paired(const Kernel *k, const Walk *lines, const Walk *lanes);
/* ... of a straight tile of so many vectors, whose rows are `pitch` bytes apart: all of it if the
 * plan says that it finishes sums, else KContract.all. */
void con_finish(Con *c, Lv tile, Lv row0, Lv rows, Lv col0, int vectors, int64_t pitch);

/* con_straight.c: whether an epilogue only stores sums; of one that does more what they can rest in
 * meanwhile, or NULL; in the plan, before blocks are cut; where a tile is stored, and, if
 * plan.plus, what is added to it. */
bool con_stores_sums(const ConPlan *p);
const KAccess *con_rests_in(const ConPlan *p);
void con_straight_plan(ConPlan *p);
bool con_all_straight(const ConPlan *p); /* no tile is ever in scratch */
bool con_rests_once(const ConPlan *p);   /* ... or those of the last panel of columns alone are */
int con_narrow(const ConPlan *p);        /* vectors of the last panel of columns, or 0: all nv */
typedef struct Lines {                   /* of a tile: the first one, bytes from one to the next */
    Lv at;
    int64_t pitch;
} Lines;
Lines con_straight_at(Con *c, Lv row0, Lv col0, Lines *plus);
/* con_out_ask.c: what an epilogue meets of far memory, in the plan; where tile row0, col0 does. */
void con_out_plan(ConPlan *p);
ConStream con_stream_out(Con *c, int i, Lv row0, Lv col0);
/* ... before it is computed: asks for the memory that its epilogue reads and writes. */
void con_out_ahead(Con *c, Lv row0, Lv rows, Lv col0, Lv cols);

#endif
