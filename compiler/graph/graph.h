/* The tensor DAG of one entry.
 *
 * A Ref is an index into Graph.node; NONE is 0. Operands precede users, so array
 * order is topological order; the reverse graph follows the primal one in the same
 * array. Only simplify() renumbers. No `Node *` is held across a builder call, for
 * the array may move. The graph says what, a schedule says when. */
#ifndef GRADC_GRAPH_GRAPH_H
#define GRADC_GRAPH_GRAPH_H

#include "../kernel/kernel.h"

typedef uint32_t Ref;
enum { NONE = 0 };
#define REF_ZERO UINT32_MAX /* a cotangent that is zero; never stored in a graph */

enum { MAX_RANK = 8, MAX_ATTRS = 8, MAX_INDICES = 16, MAX_SUMMED = 8 };

typedef enum OpId {
    OP_NONE,
#define OP(name) OP_##name,
#include "ops.def"
#undef OP
    N_OPS
} OpId;

/* The type of a value. rank 0 is a scalar; rank -1 a tuple (scan, `tuple`) of
 * dim[0] values: tuple_type() has theirs. */
typedef struct Type {
    DType dtype;
    int32_t rank;
    int64_t dim[MAX_RANK];
} Type;

typedef struct Graph Graph;

/* One dimension of an operand of `contract`: base + sum of coef * index. */
typedef struct MapDim {
    int64_t base;
    int32_t n;
    int32_t index[4]; /* numbers of the contraction's indices, ascending */
    int64_t coef[4];
} MapDim;

typedef enum AttrKind {
    ATTR_NONE,
    ATTR_INT,   /* i */
    ATTR_BOOL,  /* i */
    ATTR_FLOAT, /* f: rounded to the node's dtype once, where it is used; the value of
                 * an integer `const` is an ATTR_INT instead */
    ATTR_DTYPE, /* i */
    ATTR_INTS,  /* n, ints */
    ATTR_NAME,  /* name, interned */
    ATTR_MAP,   /* n, map: one MapDim for each dimension of an operand */
    ATTR_DATA,  /* n bytes, data: elements of the node's dtype */
    ATTR_BODY   /* body: graph of a scan */
} AttrKind;

typedef struct Attr {
    AttrKind kind;
    int32_t n;
    union {
        int64_t i;
        double f;
        const int64_t *ints;
        const char *name;
        const MapDim *map;
        const void *data;
        Graph *body;
    };
} Attr;

typedef struct Node {
    OpId op;
    Type type;
    int32_t n_args;
    uint32_t args;    /* first index into Graph.arg */
    const Attr *attr; /* in the order of the op's row; NULL: none */
    const Origin *origin;
} Node;

/* What an entry gives or changes. A root keeps its node alive. */
typedef enum RootKind {
    ROOT_LOSS,
    ROOT_OUTPUT,
    ROOT_METRIC,
    ROOT_GRADIENT, /* of a slot or of an input */
    ROOT_ASSIGN,   /* the slot's new value, committed after the last reader of the old one */
    ROOT_FINITE,   /* bool: false means that no guarded ROOT_ASSIGN happens */
    ROOT_RESULT,   /* body graphs: the i-th result */
    ROOT_OTHER     /* what a test or a tool wants to look at */
} RootKind;

typedef struct Root {
    RootKind kind;
    const char *name;
    Ref ref;
    int32_t slot;  /* GRADIENT, ASSIGN: index into Pinned, or -1 */
    int32_t input; /* GRADIENT of an input: its index, or -1 */
    bool guarded;  /* ASSIGN: only if the step is finite */
} Root;

struct Graph {
    Ctx *cx;
    Arena arena; /* nodes, attributes, bodies: freed by graph_free */
    const char *name;
    VEC(Node) node; /* node 0 is NONE */
    VEC(Ref) arg;
    VEC(Root) root;
    const Origin *origin; /* given to nodes that are built now */
    Ref n_primal;         /* nodes below are the primal graph; 0 before vjp() */
    Graph *outer;         /* body graphs: the graph of the scan */
    VEC(Graph *) body;    /* made for this graph's nodes, and freed with it */
};

/* Neither g nor a graph around it has a reverse yet. */
static inline bool graph_is_primal(const Graph *g)
{
    while (g != NULL && g->n_primal == 0)
        g = g->outer;
    return g == NULL;
}

/* Storage that lives between calls, shared by the entries of a model. */
typedef enum SlotKind { SLOT_PARAM, SLOT_OPTIMIZER, SLOT_STATE, SLOT_SCALAR } SlotKind;

typedef struct Slot {
    const char *name; /* "h.0.attn.c_attn.weight", "adamw.m:wte" */
    SlotKind kind;
    Type type;
    bool frozen; /* a parameter that is not trained */
    int32_t of;  /* SLOT_OPTIMIZER: the parameter, else -1 */
    const Origin *origin;
    const char *doc;
} Slot;

typedef struct GraphInput {
    const char *name;
    Type type; /* of one micro-batch */
    bool with_grad;
    bool ranged;
    int64_t lo, hi;
    int32_t batch_axis; /* 0 where the leading dimension is the batch, else -1 */
    const Origin *origin;
    const char *doc;
} GraphInput;

typedef struct Pinned {
    Arena *arena;
    VEC(Slot) slot;
    VEC(GraphInput) input;
    int32_t step_counter, skipped_counter, seed, rows; /* slots, i64 scalars; -1: unused */
} Pinned;

int32_t pinned_find(const Pinned *p, const char *name); /* -1: none */
int32_t pinned_add(Pinned *p, const char *name, SlotKind kind, Type type, const Origin *o);

/* ---- reading ------------------------------------------------------------- */

static inline const Node *node(const Graph *g, Ref r)
{
    return &g->node.at[r];
}
static inline Ref arg(const Graph *g, Ref r, int i)
{
    return g->arg.at[g->node.at[r].args + (uint32_t)i];
}
static inline OpId op_of(const Graph *g, Ref r)
{
    return g->node.at[r].op;
}
static inline const Type *type_of(const Graph *g, Ref r)
{
    return &g->node.at[r].type;
}
static inline int64_t dim(const Graph *g, Ref r, int axis)
{
    return g->node.at[r].type.dim[axis];
}
static inline int rank(const Graph *g, Ref r)
{
    return g->node.at[r].type.rank;
}
static inline const Attr *attr(const Graph *g, Ref r, int i)
{
    return &g->node.at[r].attr[i];
}

/* ---- building ------------------------------------------------------------ */

Graph *graph_new(Ctx *cx, const char *name);
void graph_free(Graph *g);

/* Appends a node: checks the operands with the op's shape rule, which reports
 * at the current origin. Gives NONE after a report. Attributes are copied. */
Ref g_node(Graph *g, OpId op, const Ref *args, int n_args, const Attr *attrs);
/* Reports at the current origin; gives NONE. */
Ref g_error(Graph *g, Code code, const char *format, ...) __attribute__((format(printf, 3, 4)));
void graph_root(Graph *g, RootKind kind, const char *name, Ref r, int32_t slot, int32_t input);

Ref g_input(Graph *g, int32_t index, Type t);
Ref g_slot(Graph *g, int32_t slot, Type t); /* the value before this step */
Ref g_const(Graph *g, DType t, double x);   /* scalar */
Ref g_const_int(Graph *g, DType t, int64_t x);
Ref g_full(Graph *g, Type t, double x); /* broadcast of a scalar */
Ref g_full_int(Graph *g, Type t, int64_t x);
Ref g_literal(Graph *g, Type t, const void *elements);
Ref g_iota(Graph *g, Type t, int axis); /* index along an axis; i32 or i64 */

Ref g_unary(Graph *g, OpId op, Ref x);
Ref g_binary(Graph *g, OpId op, Ref x, Ref y); /* equal types: broadcast before */
Ref g_add(Graph *g, Ref x, Ref y);
Ref g_sub(Graph *g, Ref x, Ref y);
Ref g_mul(Graph *g, Ref x, Ref y);
Ref g_div(Graph *g, Ref x, Ref y);
Ref g_neg(Graph *g, Ref x);
Ref g_where(Graph *g, Ref cond, Ref x, Ref y);
Ref g_cast(Graph *g, DType t, Ref x);
Ref g_scale(Graph *g, Ref x, double by); /* x * const */
/* x^y, by multiplications or sqrt where y is a constant n, -n (n <= 16) or 0.5. */
Ref g_pow(Graph *g, Ref x, Ref y);
Ref g_zeros(Graph *g, const Type *t);

Ref g_reshape(Graph *g, Ref x, int rank, const int64_t *dim);
Ref g_transpose(Graph *g, Ref x, const int *perm); /* result axis i is axis perm[i] of x */
/* The same; a reshape, which moves nothing in memory, where only axes of one element move. */
Ref g_move_axes(Graph *g, Ref x, const int *perm);
Ref g_swap_last(Graph *g, Ref x); /* of rank >= 2 */
/* NumPy's rule: axes are matched from the last; extent 1 is repeated. */
Ref g_broadcast(Graph *g, Ref x, int rank, const int64_t *dim);
Ref g_broadcast_like(Graph *g, Ref x, Ref like);
/* Elements start + i*step, i < size, along an axis; step may be negative. */
enum { SLICE_AXIS, SLICE_START, SLICE_SIZE, SLICE_STEP };
Ref g_slice(Graph *g, Ref x, int axis, int64_t start, int64_t size, int64_t step);
Ref g_pad(Graph *g, Ref x, int axis, int64_t lo, int64_t hi, double value);
Ref g_concat(Graph *g, const Ref *x, int n, int axis);
Ref g_flip(Graph *g, Ref x, int axis);
/* by - 1 zeros after each element along an axis: extent E becomes E*by; 1 stays 1. */
Ref g_dilate(Graph *g, Ref x, int axis, int64_t by);
/* Extent `size` along an axis, in which x begins at `at` (may be negative): zeros
 * where x does not reach, and x cut where it is too long. */
Ref g_fit(Graph *g, Ref x, int axis, int64_t at, int64_t size);
/* Axes axis .. axis+n-1 become one of extent `size`, in which element (i0, i1, ..) stands
 * at base + sum of coef*i; zeros elsewhere. coef: positive, falling, no two elements at
 * one place. */
Ref g_spread(Graph *g, Ref x, int axis, int n, const int64_t *coef, int64_t base, int64_t size);
Ref g_insert_axis(Graph *g, Ref x, int axis); /* of extent 1 */
Ref g_merge_axes(Graph *g, Ref x, int axis);  /* axes axis and axis+1 become one */
/* Extent `size` along an axis, in which element n*q + f is element q of piece f; a piece
 * may be REF_ZERO (and becomes zeros). All REF_ZERO: REF_ZERO. */
Ref g_interleave(Graph *g, Ref *piece, int64_t n, int axis, int64_t size);
/* x + y of cotangents. Where both are zeros outside of parts that do not meet (slices), the parts
 * are joined and not added; rows that are added to zeros by an index (gather) are added to the
 * other. */
Ref g_add_parts(Graph *g, Ref x, Ref y);
/* Concatenation along a new axis. */
Ref g_stack(Graph *g, const Ref *x, int n, int axis);
/* Windows along an axis: extent E becomes (windows, size), windows =
 * floor((E + lo + hi - dilation*(size-1) - 1)/stride) + 1; outside of x: fill. */
Ref g_window(Graph *g, Ref x, int axis, int64_t size, int64_t stride, int64_t dilation, int64_t lo,
             int64_t hi, double fill);

Ref g_reduce(Graph *g, OpId op, Ref x, int axis, bool keep); /* sum prod max min all; one axis */
Ref g_reduce_axes(Graph *g, OpId op, Ref x, const bool *axes, bool keep);
Ref g_sum_all(Graph *g, Ref x);
Ref g_all_finite(Graph *g, Ref x);            /* one bool, of floats */
Ref g_sum_to(Graph *g, Ref x, const Type *t); /* the transpose of broadcasting */
Ref g_argmax(Graph *g, Ref x, int axis);      /* i32; the first of equals */

Ref g_gather(Graph *g, Ref table, Ref index); /* [V, ...], [I...] -> [I..., ...] */
Ref g_scatter_add(Graph *g, Ref base, Ref index, Ref update);
Ref g_take_along(Graph *g, Ref x, Ref index, int axis); /* index: x without that axis */
/* Running sums along an axis; `down`: from the last to the first. */
Ref g_cumsum(Graph *g, Ref x, int axis, bool down);

/* The one contraction: out[o...] = sum over s of X[x_map(o, s)] * Y[y_map(o, s)].
 * Indices 0..n_out-1 are the result's axes, n_out..n-1 are summed, the last moving
 * fastest. An element outside of an operand is 0. Its attributes, by number: */
enum { CONTRACT_EXTENT, CONTRACT_N_OUT, CONTRACT_X, CONTRACT_Y };
Ref g_contract(Graph *g, Ref x, Ref y, const int64_t *extent, int n_out, int n, const MapDim *x_map,
               const MapDim *y_map);
/* The cotangent of operand `which` (0: x, 1: y) of a contract node: contractions again. In a
 * primal graph `adjoint`, with attributes of the same numbers, says what several of them are. */
Ref g_contract_adjoint(Graph *g, Ref n, Ref ct, int which);
Ref g_matmul(Graph *g, Ref x, Ref y); /* NumPy's rules, batches broadcast */
/* "bik,bkj->bij": a letter for each axis; letters not in the result are summed. */
Ref g_einsum(Graph *g, const char *spec, Ref x, Ref y);
/* x[N, C, s...], w[O, C/groups, k...] -> [N, O, p...]; one value per spatial axis. */
Ref g_conv(Graph *g, Ref x, Ref w, const int64_t *stride, const int64_t *lo, const int64_t *hi,
           const int64_t *dilation, int64_t groups);
/* x[N, C, p...], w[C, O/groups, k...] -> [N, O, s...]: the convolution's input gradient, with
 * `extra` elements at the end that no window may have reached. */
Ref g_conv_transpose(Graph *g, Ref x, Ref w, const int64_t *stride, const int64_t *padding,
                     const int64_t *extra, const int64_t *dilation, int64_t groups);

/* Draws keyed by (seed slot, step slot, key), by element. bits: i32, uniform over all
 * of them; uniform: floats, multiples of 2^-24 in [0, 1); normal: mean 0, deviation 1. */
Ref g_random_bits(Graph *g, Type t, Ref seed, Ref step, uint64_t key);
Ref g_uniform(Graph *g, Type t, Ref seed, Ref step, uint64_t key);
Ref g_normal(Graph *g, Type t, Ref seed, Ref step, uint64_t key);

Ref g_tuple(Graph *g, const Ref *x, int n); /* members may be NONE in a cotangent */
Ref g_pick(Graph *g, Ref tuple, int i);
int tuple_size(const Graph *g, Ref tuple);
Type tuple_type(const Graph *g, Ref tuple, int i);

/* scan: a body run `count` times. args: the initial carries, sequences (sliced along
 * axis 0), the rest are invariant. The body's `arg` nodes are numbered alike (a sequence
 * gives its slice), and its ROOT_RESULTs are the new carries, then one value for each
 * emitted sequence. Results (pick): final carries, then sequences stacked on axis 0. */
typedef struct Scan {
    int carries, sequences;
    int64_t count;
    bool down; /* slices and stacks go from the last to the first */
    bool lean; /* the reverse computes the body's values again, rather than read them; but without
                * carries not what is far smaller than what it is made of: sums of rows */
} Scan;
enum { SCAN_CARRIES, SCAN_SEQUENCES, SCAN_COUNT, SCAN_DOWN, SCAN_LEAN, SCAN_BODY };
Ref g_scan(Graph *g, Graph *body, const Ref *args, int n_args, Scan is);
Scan scan_of(const Graph *g, Ref scan);
/* How deep scans stand within each other; *deepest (or NULL): the outermost of those. */
int g_loop_depth(const Graph *g, Ref *deepest);
/* The first node of a body, or of one inside of it, that the model keeps or offloads: then the
 * loop runs once. NULL: there is none. */
const Node *g_kept_in(const Graph *body);
Ref g_body_arg(Graph *body, int i, Type t);
Graph *g_body(Graph *outer);
Graph *g_copy_body(Graph *outer, const Graph *body);
/* The vjp of scan: a scan the other way. The forward scan is not rebuilt: its body gets
 * more results, the values that the reverse body reads, so that each Ref and each
 * earlier result stays what it was. */
void g_scan_adjoint(Graph *g, Ref n, Ref ct, Ref d[]);
/* Copies node r of `from`, with operands map[], into `to`; gives its Ref there.
 * fails: NONE, after reporting E0990, where an operand has no copy. */
Ref graph_copy_node(Graph *to, const Graph *from, Ref r, const Ref *map);
/* The roots of `from`, at map[], and its origin: the end of a copy. */
void graph_copy_roots(Graph *to, const Graph *from, const Ref *map);

Ref g_stop_gradient(Graph *g, Ref x);
/* y, whose gradient goes to the first `active` of xs by `rule` (a g_body): its argument 0 is
 * the cotangent of y, argument i + 1 is xs[i]; its ROOT_RESULTs are the cotangents. */
Ref g_custom_vjp(Graph *g, Graph *rule, Ref y, const Ref *xs, int n_xs, int active);

/* True if every element of x is the same known number (a constant, or a view of one). */
bool const_value(const Graph *g, Ref x, double *value);
Ref repeated_scalar(const Graph *g, Ref x);               /* the scalar that x repeats, or NONE */
bool const_is(const Graph *g, Ref x, double value);       /* -0 is 0: see const_is_zero */
bool const_is_zero(const Graph *g, Ref x, bool negative); /* an integer 0 has no sign */

/* ---- index maps of a contraction (map.c) ----------------------------------- */

MapDim map_const(int64_t base);
MapDim map_term(MapDim m, int index, int64_t coef); /* m + coef*index; drops what cancels */
int64_t map_coef(const MapDim *m, int index);       /* 0: it does not occur */
/* m with `index` replaced by the affine `by`; false if there are too many terms. */
bool map_replace(MapDim *m, int index, const MapDim *by);

/* ---- types --------------------------------------------------------------- */

Type type_make(DType t, int rank, const int64_t *dim);
Type type_scalar(DType t);
bool type_same(const Type *x, const Type *y);
int64_t type_elems(const Type *t);
/* Elements of the axes before this one, and of those behind it: 1, if there are none. */
int64_t type_elems_before(const Type *t, int axis);
int64_t type_elems_behind(const Type *t, int axis);
bool type_fits(const Type *t); /* rank <= 8, dim <= 2^40, <= 2^47 bytes */
int64_t type_bytes(const Type *t);
const char *type_text(Arena *a, const Type *t); /* "f32[64,128]" */

/* ---- text and checks ----------------------------------------------------- */

/* grammar/gir.md; `from` and `to` of graph_print_part bound the nodes (a part of a graph
 * does not read back). */
void graph_print(const Graph *g, Text *to);
void graph_print_part(const Graph *g, Ref from, Ref end, Text *to);
Graph *graph_read(Ctx *cx, int32_t source); /* NULL after reporting */
/* One op applied to types, as in Op.example: types become inputs, the value ROOT_OTHER. */
Graph *graph_read_example(Ctx *cx, const char *example, size_t bytes);
void graph_print_attr(const Graph *g, Ref r, int i, Text *to); /* its value; a body: "{...}" */
void graph_dot(const Graph *g, Text *to);
void graph_json(const Graph *g, Text *to);
const char *graph_verify(const Graph *g, Arena *scratch); /* NULL, or what is wrong */
const char *root_kind_name(RootKind k);
void ops_manual(Text *to); /* grammar/ops.md, from the op table */

/* The innermost block call of an origin: nodes of different instances are not
 * merged, nodes of equal instances of a block are of one class. */
const Origin *origin_instance(const Origin *o);
/* "h.3.attn", or "" */
const char *origin_path(Arena *a, const Origin *o);

#endif
