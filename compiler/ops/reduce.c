/* Reductions over one axis. Several axes are several nodes (g_reduce_axes), the last
 * axis first, so that pooling finds the first maximum in row-major order. */
#include <math.h>
#include "../graph/op.h"

enum { AXIS = REDUCE_AXIS, KEEP = REDUCE_KEEP };
#define REDUCE_ATTRS                                                                               \
    {                                                                                              \
        {"axis", ATTR_INT},                                                                        \
        {                                                                                          \
            "keep", ATTR_BOOL                                                                      \
        }                                                                                          \
    }

static int axis_of(const Graph *g, Ref n)
{
    return (int)attr(g, n, AXIS)->i;
}

static void drop_axis(Type *t, int axis)
{
    t->rank--;
    for (int i = axis; i < t->rank; i++)
        t->dim[i] = t->dim[i + 1];
    t->dim[t->rank] = 0;
}

static bool reduce_shape(Shape *s)
{
    s->type = *shape_arg(s, 0);
    if (!shape_axis(s, "axis", s->type.rank))
        return false;
    int axis = (int)s->attr[AXIS].i;
    if (s->attr[KEEP].i != 0)
        s->type.dim[axis] = 1;
    else
        drop_axis(&s->type, axis);
    return true;
}

static bool sum_shape(Shape *s)
{
    DType t = shape_arg(s, 0)->dtype;
    if (dtype_is_half(t))
        return shape_error(s, E0221, "`%s` is done in f32, and this is %s; cast it first",
                           op_word(s->op), shape_text(s, 0));
    if (t != BOOL)
        return reduce_shape(s);
    return shape_error(s, E0221, "`%s` takes numbers, and this is %s; cast it first",
                       op_word(s->op), shape_text(s, 0));
}

static bool none_to_choose(Shape *s, int axis)
{
    return shape_error(s, E0223, "`%s` of axis %d of %s: there is no element to choose",
                       op_word(s->op), axis, shape_text(s, 0));
}

static bool extreme_shape(Shape *s)
{
    if (!sum_shape(s))
        return false;
    int axis = (int)s->attr[AXIS].i;
    return shape_arg(s, 0)->dim[axis] > 0 || none_to_choose(s, axis);
}

static bool all_shape(Shape *s)
{
    if (shape_arg(s, 0)->dtype == BOOL)
        return reduce_shape(s);
    return shape_error(s, E0221, "`all` takes bool, and this is %s", shape_text(s, 0));
}

static Val reduce(Elem *e, Ref n, KOp op, const KAff *idx)
{
    Ref x = arg(elem_graph(e), n, 0);
    return elem_reduce(e, n, x, axis_of(elem_graph(e), n), op, idx);
}

/* A reduced value where its operand was: the axis is there again, repeated. */
static Ref spread_back(Graph *g, Ref n, Ref reduced)
{
    Ref x = arg(g, n, 0);
    if (attr(g, n, KEEP)->i == 0)
        reduced = g_insert_axis(g, reduced, axis_of(g, n));
    return g_broadcast_like(g, reduced, x);
}

/* One element is its own product, and its own maximum; its sum is 0 + x, where -0 is
 * lost. */
static Ref single_simple(Graph *g, Ref n)
{
    Ref x = arg(g, n, 0);
    if (dim(g, x, axis_of(g, n)) != 1)
        return NONE;
    Type t = *type_of(g, n);
    return g_reshape(g, x, t.rank, t.dim);
}

/* ---- sums and products ---------------------------------------------------------- */

static Val sum_elem(Elem *e, Ref n, const KAff *idx)
{
    return reduce(e, n, KI_ADD, idx);
}

static void sum_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    d[0] = spread_back(g, n, ct);
}

const Op op_sum = {
    .name = "sum",
    .n_args = 1,
    .kind = OP_REDUCE,
    .attrs = REDUCE_ATTRS,
    .shape = sum_shape,
    .elem = sum_elem,
    .vjp = sum_vjp,
    .doc =
        "The sum over an axis, 0 over no elements. f16 and bf16 are cast to f32 first and rounded "
        "at the end (g_reduce does so).",
    .example = "sum(f32[2,3], axis = 1, keep = false); sum(f32[2,3], axis = 0, keep = true); "
               "sum(f32[2,37,3], axis = 1, keep = false); sum(i32[4], axis = 0, keep = false); "
               "sum(f32[0,3], axis = 0, keep = false)",
};

static Val prod_elem(Elem *e, Ref n, const KAff *idx)
{
    return reduce(e, n, KI_MUL, idx);
}

/* [.., n, ..] -> [.., n, n, ..], in which row i has 1 instead of element i */
static Ref others(Graph *g, Ref x, int axis)
{
    Type t = *type_of(g, x), square = t;
    for (int i = square.rank++; i > axis; i--)
        square.dim[i] = square.dim[i - 1];
    Ref row = g_insert_axis(g, x, axis);
    Ref rows = g_broadcast(g, row, square.rank, square.dim);
    Type index = square;
    index.dtype = I64;
    Ref i = g_iota(g, index, axis);
    Ref j = g_iota(g, index, axis + 1);
    Ref same = g_node(g, OP_eq, (Ref[]){i, j}, 2, NULL);
    Ref one = g_full(g, square, 1);
    return g_where(g, same, one, rows);
}

/* For each element, the product of all others along the axis: those of its block of about sqrt(n),
 * times those of the other blocks. */
static Ref prod_others(Graph *g, Ref x, int axis)
{
    enum { SQUARE_MOST = 32 }; /* n * n is less than what blocks cost besides */
    int64_t n = dim(g, x, axis), size = 1;
    while (size * size < n)
        size++;
    if (n <= SQUARE_MOST)
        return g_reduce(g, OP_prod, others(g, x, axis), axis + 1, false);
    int64_t blocks = (n + size - 1) / size;
    Ref in_blocks = g_pad(g, x, axis, 0, blocks * size - n, 1);
    Type t = *type_of(g, in_blocks);
    for (int i = t.rank++; i > axis + 1; i--)
        t.dim[i] = t.dim[i - 1];
    t.dim[axis] = blocks;
    t.dim[axis + 1] = size;
    in_blocks = g_reshape(g, in_blocks, t.rank, t.dim);
    Ref within = prod_others(g, in_blocks, axis + 1);
    Ref beside = prod_others(g, g_reduce(g, OP_prod, in_blocks, axis + 1, false), axis);
    beside = g_broadcast_like(g, g_insert_axis(g, beside, axis + 1), within);
    return g_slice(g, g_merge_axes(g, g_mul(g, within, beside), axis), axis, 0, n, 1);
}

/* No division by a 0. */
static void prod_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    Ref x = arg(g, n, 0), slope = x;
    Type t = *type_of(g, x);
    int axis = axis_of(g, n);
    if (t.rank + 2 > MAX_RANK) { /* axes for blocks, and for the others of each element */
        int64_t size[] = {1, t.dim[axis], 1};
        for (int i = 0; i < t.rank; i++)
            if (i != axis)
                size[i < axis ? 0 : 2] *= t.dim[i];
        slope = g_reshape(g, x, 3, size);
        axis = 1;
    }
    slope = prod_others(g, slope, axis);
    slope = g_reshape(g, slope, t.rank, t.dim);
    Ref back = spread_back(g, n, ct);
    d[0] = g_mul(g, back, slope);
}

const Op op_prod = {
    .name = "prod",
    .n_args = 1,
    .kind = OP_REDUCE,
    .attrs = REDUCE_ATTRS,
    .shape = sum_shape,
    .simple = single_simple,
    .elem = prod_elem,
    .vjp = prod_vjp,
    .doc = "The product over an axis, 1 over no elements. Its gradient multiplies all the others "
           "for each element, which is right where one is 0; of more than 32 elements it does so "
           "in blocks.",
    .example = "prod(f32[2,3], axis = 1, keep = false); prod(f32[3,2], axis = 0, keep = true); "
               "prod(f32[2,37,2], axis = 1, keep = false); "
               "prod(f32[2,1,1,2,1,1,1,3], axis = 3, keep = false)",
    .domain = {-1.5, 1.5},
};

static Val all_elem(Elem *e, Ref n, const KAff *idx)
{
    return reduce(e, n, KI_AND, idx);
}

/* Rows that nothing is added to are those of the base, and what is not finite stays so, whatever is
 * added: of the sum, few rows need to be looked at. The gradient of a table of embeddings, of which
 * a batch reads few rows, is of such a kind. */
static Ref all_simple(Graph *g, Ref n)
{
    Ref x = arg(g, n, 0);
    if (const_is(g, x, 1))
        return g_full(g, *type_of(g, n), 1);
    while (op_of(g, x) == OP_all)
        x = arg(g, x, 0);
    Ref sum = op_of(g, x) == OP_is_finite ? arg(g, x, 0) : NONE;
    if (sum == NONE || op_of(g, sum) != OP_scatter_add || rank(g, n) != 0)
        return single_simple(g, n);
    Ref index = arg(g, sum, 1), update = arg(g, sum, 2);
    if (2 * type_elems(type_of(g, update)) > type_elems(type_of(g, sum)))
        return single_simple(g, n);
    Ref base = g_all_finite(g, arg(g, sum, 0));
    return g_binary(g, OP_and, base, g_all_finite(g, g_gather(g, sum, index)));
}

const Op op_all = {
    .name = "all",
    .n_args = 1,
    .kind = OP_REDUCE,
    .attrs = REDUCE_ATTRS,
    .shape = all_shape,
    .simple = all_simple,
    .elem = all_elem,
    .nondiff = "its result is true or false",
    .doc = "True if all elements of an axis are.",
    .example = "all(bool[2,3], axis = 1, keep = false)",
};

/* ---- the largest and the smallest -------------------------------------------------- */

static Val reduce_max_elem(Elem *e, Ref n, const KAff *idx)
{
    return reduce(e, n, KI_MAX, idx);
}

static Val reduce_min_elem(Elem *e, Ref n, const KAff *idx)
{
    return reduce(e, n, KI_MIN, idx);
}

/* ct where the index is the chosen one. */
static Ref to_chosen(Graph *g, Ref n, Ref ct, OpId which)
{
    Ref x = arg(g, n, 0);
    const Attr axis = {.kind = ATTR_INT, .i = axis_of(g, n)};
    Type t = *type_of(g, x);
    Ref best = g_node(g, which, &x, 1, &axis);
    Ref back = g_insert_axis(g, best, (int)axis.i);
    Ref bests = g_broadcast(g, back, t.rank, t.dim);
    Type index = t;
    index.dtype = I32;
    Ref i = g_iota(g, index, (int)axis.i);
    Ref here = g_node(g, OP_eq, (Ref[]){i, bests}, 2, NULL);
    Ref cts = spread_back(g, n, ct);
    Ref zero = g_zeros(g, &t);
    return g_where(g, here, cts, zero);
}

static void reduce_max_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    d[0] = to_chosen(g, n, ct, OP_argmax);
}

static void reduce_min_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    d[0] = to_chosen(g, n, ct, OP_argmin);
}

const Op op_reduce_max = {
    .name = "reduce_max",
    .word = "max",
    .n_args = 1,
    .kind = OP_REDUCE,
    .attrs = REDUCE_ATTRS,
    .shape = extreme_shape,
    .simple = single_simple,
    .elem = reduce_max_elem,
    .vjp = reduce_max_vjp,
    .selects = true,
    .doc = "The largest element of an axis; NaN if one is.",
    .example = "reduce_max(f32[2,3], axis = 1, keep = false); "
               "reduce_max(f32[3,4], axis = 0, keep = true); "
               "reduce_max(i32[4], axis = 0, keep = false)",
    .kinks = "of equal elements the first gets the gradient",
};

const Op op_reduce_min = {
    .name = "reduce_min",
    .word = "min",
    .n_args = 1,
    .kind = OP_REDUCE,
    .attrs = REDUCE_ATTRS,
    .shape = extreme_shape,
    .simple = single_simple,
    .elem = reduce_min_elem,
    .vjp = reduce_min_vjp,
    .selects = true,
    .doc = "The smallest element of an axis; NaN if one is.",
    .example = "reduce_min(f32[2,3], axis = 1, keep = false); "
               "reduce_min(i32[4], axis = 0, keep = false)",
    .kinks = "of equal elements the first gets the gradient",
};

/* ---- where they are ------------------------------------------------------------------ */

static bool arg_shape(Shape *s)
{
    s->type = *shape_arg(s, 0);
    if (!shape_axis(s, "axis", s->type.rank))
        return false;
    int axis = (int)s->attr[AXIS].i;
    int64_t extent = s->type.dim[axis];
    if (s->type.dtype == BOOL)
        return shape_error(s, E0221, "`%s` takes numbers, and this is %s", op_word(s->op),
                           shape_text(s, 0));
    if (extent == 0)
        return none_to_choose(s, axis);
    if (extent > INT32_MAX)
        return shape_error(s, E0911, "`%s` gives i32, too small for an axis of %lld",
                           op_word(s->op), (long long)extent);
    drop_axis(&s->type, axis);
    s->type.dtype = I32;
    return true;
}

/* True where x is to replace `best`: it is beyond it, or the first NaN. */
static Val is_better(Kernel *k, Val x, Val best, bool largest)
{
    Val beyond = largest ? k_binary(k, KI_LT, best, x) : k_binary(k, KI_LT, x, best);
    if (!dtype_is_float((DType)k->inst.at[x].dtype))
        return beyond;
    Val nan = k_binary(k, KI_NE, x, x);
    Val number = k_binary(k, KI_EQ, best, best);
    Val first = k_binary(k, KI_AND, nan, number);
    return k_binary(k, KI_OR, beyond, first);
}

/* The first element is the best so far: then no start value can be confused with one. */
static Val arg_elem(Elem *e, Ref n, const KAff *idx, bool largest)
{
    const Graph *g = elem_graph(e);
    Kernel *k = elem_kernel(e);
    Ref x = arg(g, n, 0);
    KAff at[MAX_RANK];
    int axis = axis_of(g, n);
    for (int i = 0; i < rank(g, x); i++)
        at[i] = i == axis ? k_aff(0) : idx[i - (i > axis)];
    Val start = elem_at(e, x, at);
    if (start == 0)
        return 0;
    Val best = k_var(k, start);
    Val none = k_const_int(k, I32, 0);
    Val where = k_var(k, none);
    int mark = elem_mark(e);
    Val i = k_seq(k, dim(g, x, axis));
    at[axis] = k_aff_val(i, 1);
    Val value = elem_at(e, x, at);
    if (value != 0) {
        Val old = k_get(k, best);
        Val better = is_better(k, value, old, largest);
        Val old_place = k_get(k, where);
        Val place = k_index(k, I32, at[axis]);
        Val new_best = k_select(k, better, value, old);
        Val new_place = k_select(k, better, place, old_place);
        k_set(k, best, new_best);
        k_set(k, where, new_place);
    }
    elem_forget(e, mark);
    k_end(k, i);
    return value == 0 ? 0 : k_get(k, where);
}

static Val argmax_elem(Elem *e, Ref n, const KAff *idx)
{
    return arg_elem(e, n, idx, true);
}

static Val argmin_elem(Elem *e, Ref n, const KAff *idx)
{
    return arg_elem(e, n, idx, false);
}

static const char chosen_index[] =
    "its result is an index, which changes in steps; to choose among values take the index as one "
    "(take_along, gather), or choose softly (softmax)";

const Op op_argmax = {
    .name = "argmax",
    .n_args = 1,
    .kind = OP_REDUCE,
    .attrs = {{"axis", ATTR_INT}},
    .shape = arg_shape,
    .elem = argmax_elem,
    .nondiff = chosen_index,
    .doc = "The index (i32) of the largest element of an axis: the first of equals, or the first "
           "NaN.",
    .example = "argmax(f32[2,3], axis = 1); argmax(i32[4], axis = 0)",
};

const Op op_argmin = {
    .name = "argmin",
    .n_args = 1,
    .kind = OP_REDUCE,
    .attrs = {{"axis", ATTR_INT}},
    .shape = arg_shape,
    .elem = argmin_elem,
    .nondiff = chosen_index,
    .doc = "The index (i32) of the smallest element of an axis: the first of equals, or the first "
           "NaN.",
    .example = "argmin(f32[2,3], axis = 1); argmin(i32[4], axis = 0)",
};
