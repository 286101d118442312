/* Parts of an axis, and axes put together: slice, pad, concat. */
#include <math.h>
#include <string.h>
#include "../graph/op.h"

static void copy_index(KAff *to, const KAff *from, int n)
{
    if (n > 0)
        memcpy(to, from, (size_t)n * sizeof *to);
}

/* ---- slice ------------------------------------------------------------------------------ */

enum { PAD_AXIS, LO, HI, VALUE };

static bool slice_shape(Shape *s)
{
    s->type = *shape_arg(s, 0);
    if (!shape_axis(s, "axis", s->type.rank))
        return false;
    int64_t n = s->type.dim[s->attr[SLICE_AXIS].i], last;
    int64_t start = s->attr[SLICE_START].i, size = s->attr[SLICE_SIZE].i,
            step = s->attr[SLICE_STEP].i;
    int64_t stride = step < 0 ? -step : step;
    bool fits = step != 0 && step != INT64_MIN && size >= 0 && start >= 0 && start <= n;
    if (fits && size > 0) {
        fits = start < n && mul_size(size - 1, stride, &last) && last <= n;
        fits = fits && (step > 0 ? start + last < n : start - last >= 0);
    }
    s->type.dim[s->attr[SLICE_AXIS].i] = size;
    return fits || shape_error(s, E0223,
                               "%lld elements from %lld on by %lld do not lie in the "
                               "%lld of axis %lld of %s",
                               (long long)size, (long long)start, (long long)step, (long long)n,
                               (long long)s->attr[SLICE_AXIS].i, shape_text(s, 0));
}

static Val slice_elem(Elem *e, Ref n, const KAff *idx)
{
    const Graph *g = elem_graph(e);
    const Attr *a = node(g, n)->attr;
    KAff at[MAX_RANK];
    copy_index(at, idx, rank(g, n));
    KAff steps = k_aff_scale(idx[a[SLICE_AXIS].i], a[SLICE_STEP].i);
    at[a[SLICE_AXIS].i] = k_aff_offset(steps, a[SLICE_START].i);
    return elem_at(e, arg(g, n, 0), at);
}

static void slice_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    const Attr *a = node(g, n)->attr;
    int axis = (int)a[SLICE_AXIS].i;
    int64_t start = a[SLICE_START].i, step = a[SLICE_STEP].i, size = a[SLICE_SIZE].i;
    int64_t extent = dim(g, arg(g, n, 0), axis);
    if (step < 0) {
        ct = g_flip(g, ct, axis);
        start += (size - 1) * step;
        step = -step;
    }
    d[0] = g_spread(g, ct, axis, 1, &step, start, extent);
}

/* First and last element along the axis. */
static void slice_ends(const Attr *a, int64_t *first, int64_t *last)
{
    int64_t end = a[SLICE_START].i + (a[SLICE_SIZE].i - 1) * a[SLICE_STEP].i;
    *first = a[SLICE_STEP].i > 0 ? a[SLICE_START].i : end;
    *last = a[SLICE_STEP].i > 0 ? end : a[SLICE_START].i;
}

/* What lies within x's own elements is a slice of x. */
static Ref slice_of_pad(Graph *g, Ref n)
{
    const Attr *a = node(g, n)->attr;
    Ref padded = arg(g, n, 0), x = arg(g, padded, 0);
    int axis = (int)a[SLICE_AXIS].i;
    int64_t lo = attr(g, padded, LO)->i, first, last;
    slice_ends(a, &first, &last);
    if (first < lo || last >= lo + dim(g, x, axis))
        return NONE;
    return g_slice(g, x, axis, a[SLICE_START].i - lo, a[SLICE_SIZE].i, a[SLICE_STEP].i);
}

/* What lies within one operand is a slice of that. */
static Ref slice_of_concat(Graph *g, Ref n)
{
    const Attr *a = node(g, n)->attr;
    Ref all = arg(g, n, 0);
    int axis = (int)a[SLICE_AXIS].i;
    int64_t from = 0, first, last;
    if (attr(g, all, 0)->i != axis || a[SLICE_SIZE].i == 0)
        return NONE;
    slice_ends(a, &first, &last);
    for (int i = 0; i < node(g, all)->n_args; i++) {
        Ref x = arg(g, all, i);
        int64_t to = from + dim(g, x, axis);
        if (first >= from && last < to)
            return g_slice(g, x, axis, a[SLICE_START].i - from, a[SLICE_SIZE].i, a[SLICE_STEP].i);
        from = to;
    }
    return NONE;
}

static Ref slice_simple(Graph *g, Ref n)
{
    const Attr *a = node(g, n)->attr;
    Ref x = arg(g, n, 0), scalar = repeated_scalar(g, x);
    int axis = (int)a[SLICE_AXIS].i;
    if (scalar != NONE) {
        Type t = *type_of(g, n);
        return g_broadcast(g, scalar, t.rank, t.dim);
    }
    if (a[SLICE_STEP].i == 1 && a[SLICE_SIZE].i == dim(g, x, axis))
        return x;
    const Attr *b = node(g, x)->attr;
    if (op_of(g, x) == OP_concat)
        return slice_of_concat(g, n);
    if (a[SLICE_SIZE].i == 0 || (op_of(g, x) != OP_slice && op_of(g, x) != OP_pad) ||
        b[SLICE_AXIS].i != axis)
        return NONE;
    if (op_of(g, x) == OP_pad)
        return slice_of_pad(g, n);
    return g_slice(g, arg(g, x, 0), axis, b[SLICE_START].i + b[SLICE_STEP].i * a[SLICE_START].i,
                   a[SLICE_SIZE].i, b[SLICE_STEP].i * a[SLICE_STEP].i);
}

const Op op_slice = {
    .name = "slice",
    .n_args = 1,
    .kind = OP_VIEW,
    .attrs = {{"axis", ATTR_INT}, {"start", ATTR_INT}, {"size", ATTR_INT}, {"step", ATTR_INT}},
    .shape = slice_shape,
    .simple = slice_simple,
    .elem = slice_elem,
    .vjp = slice_vjp,
    .doc = "Elements start + i*step, i < size, of an axis; step may be negative.",
    .example = "slice(f32[2,5], axis = 1, start = 1, size = 3, step = 1); "
               "slice(f32[7], axis = 0, start = 1, size = 3, step = 2); "
               "slice(f32[4,2], axis = 0, start = 3, size = 4, step = -1); "
               "slice(f32[7], axis = 0, start = 5, size = 2, step = -3); "
               "slice(f32[3], axis = 0, start = 3, size = 0, step = 1)",
};

/* ---- pad --------------------------------------------------------------------------------- */

static bool pad_shape(Shape *s)
{
    const int64_t most = (int64_t)1 << 40;
    s->type = *shape_arg(s, 0);
    if (!shape_axis(s, "axis", s->type.rank))
        return false;
    int64_t lo = s->attr[LO].i, hi = s->attr[HI].i;
    if (lo < 0 || hi < 0 || lo > most || hi > most)
        return shape_error(s, E0223, "cannot add %lld elements before and %lld after %s",
                           (long long)lo, (long long)hi, shape_text(s, 0));
    s->type.dim[s->attr[PAD_AXIS].i] += lo + hi;
    return shape_value(s, "value");
}

static Val pad_elem(Elem *e, Ref n, const KAff *idx)
{
    const Graph *g = elem_graph(e);
    const Attr *a = node(g, n)->attr;
    KAff at[MAX_RANK];
    copy_index(at, idx, rank(g, n));
    at[a[PAD_AXIS].i] = k_aff_offset(idx[a[PAD_AXIS].i], -a[LO].i);
    return elem_at_bounded(e, arg(g, n, 0), at, a[VALUE].f);
}

static void pad_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    const Attr *a = node(g, n)->attr;
    int axis = (int)a[PAD_AXIS].i;
    d[0] = g_slice(g, ct, axis, a[LO].i, dim(g, arg(g, n, 0), axis), 1);
}

/* Equal bits; a NaN equals none, to be safe. */
static bool same_number(double x, double y)
{
    return x == y && (signbit(x) != 0) == (signbit(y) != 0);
}

static Ref pad_simple(Graph *g, Ref n)
{
    const Attr *a = node(g, n)->attr;
    Ref x = arg(g, n, 0);
    int axis = (int)a[PAD_AXIS].i;
    double value;
    if (a[LO].i == 0 && a[HI].i == 0)
        return x;
    /* Integers are known as doubles, which have 53 bits. */
    bool exact =
        const_value(g, x, &value) && (dtype_is_float(type_of(g, x)->dtype) || fabs(value) < 0x1p53);
    if (exact && same_number(value, a[VALUE].f))
        return g_full(g, *type_of(g, n), value);
    const Attr *b = node(g, x)->attr;
    if (op_of(g, x) != OP_pad || b[PAD_AXIS].i != axis || !same_number(b[VALUE].f, a[VALUE].f))
        return NONE;
    return g_pad(g, arg(g, x, 0), axis, a[LO].i + b[LO].i, a[HI].i + b[HI].i, a[VALUE].f);
}

const Op op_pad = {
    .name = "pad",
    .n_args = 1,
    .kind = OP_VIEW,
    .attrs = {{"axis", ATTR_INT}, {"lo", ATTR_INT}, {"hi", ATTR_INT}, {"value", ATTR_FLOAT}},
    .shape = pad_shape,
    .simple = pad_simple,
    .elem = pad_elem,
    .vjp = pad_vjp,
    .doc = "An axis with `lo` elements of a value before it and `hi` after.",
    .example = "pad(f32[2,3], axis = 1, lo = 1, hi = 2, value = 0); "
               "pad(f32[3], axis = 0, lo = 2, hi = 0, value = -inf); "
               "pad(f32[0], axis = 0, lo = 1, hi = 1, value = 1); "
               "pad(i32[2], axis = 0, lo = 0, hi = 1, value = 7)",
};

/* ---- concat -------------------------------------------------------------------------------- */

static bool concat_shape(Shape *s)
{
    if (s->n_args == 0)
        return shape_error(s, E0223, "`concat` joins at least one tensor");
    s->type = *shape_arg(s, 0);
    if (!shape_axis(s, "axis", s->type.rank))
        return false;
    int64_t axis = s->attr[0].i, sum = s->type.dim[axis];
    for (int i = 1; i < s->n_args; i++) {
        Type t = *shape_arg(s, i);
        if (t.rank == s->type.rank)
            sum += t.dim[axis];
        t.dim[axis] = s->type.dim[axis];
        if (!type_same(&t, &s->type))
            return shape_error(s, E0220, "cannot join %s and %s along axis %lld", shape_text(s, 0),
                               shape_text(s, i), (long long)axis);
    }
    s->type.dim[axis] = sum;
    return true;
}

/* Operand i if the index is below its end, else the next ones; but for operands in which it never
 * is. */
static Val concat_elem(Elem *e, Ref n, const KAff *idx)
{
    const Graph *g = elem_graph(e);
    Kernel *k = elem_kernel(e);
    int axis = (int)attr(g, n, 0)->i, n_args = node(g, n)->n_args;
    KAff at[MAX_RANK];
    copy_index(at, idx, rank(g, n));
    int64_t end = dim(g, n, axis), first, last;
    if (!k_aff_range(k, &idx[axis], &first, &last)) {
        first = 0;
        last = end - 1;
    }
    Val value = 0;
    for (int i = n_args - 1; i >= 0; i--) {
        Ref x = arg(g, n, i);
        int64_t from = end - dim(g, x, axis);
        if (from == end || first >= end || last < from) {
            end = from;
            continue;
        }
        at[axis] = k_aff_offset(idx[axis], -from);
        Val mine = elem_at_bounded(e, x, at, 0);
        if (mine == 0)
            return 0;
        if (value != 0) {
            Val here = k_index(k, I64, idx[axis]);
            Val limit = k_const_int(k, I64, end);
            Val is_mine = k_binary(k, KI_LT, here, limit);
            mine = k_select(k, is_mine, mine, value);
        }
        value = mine;
        end = from;
    }
    return value != 0 ? value : elem_at_bounded(e, arg(g, n, 0), at, 0);
}

static void concat_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    int axis = (int)attr(g, n, 0)->i, n_args = node(g, n)->n_args;
    int64_t start = 0;
    for (int i = 0; i < n_args; i++) {
        int64_t size = dim(g, arg(g, n, i), axis);
        d[i] = g_slice(g, ct, axis, start, size, 1);
        start += size;
    }
}

static bool is_concat(const Graph *g, Ref x, int axis)
{
    return op_of(g, x) == OP_concat && attr(g, x, 0)->i == axis;
}

/* Joined parts are joined at once; empty ones are left out. */
static Ref concat_simple(Graph *g, Ref n)
{
    int axis = (int)attr(g, n, 0)->i, n_args = node(g, n)->n_args, n_parts = 0;
    bool simpler = n_args == 1;
    for (int i = 0; i < n_args; i++) {
        Ref x = arg(g, n, i);
        bool nested = is_concat(g, x, axis);
        simpler = simpler || nested || dim(g, x, axis) == 0;
        n_parts += nested ? node(g, x)->n_args : 1;
    }
    if (!simpler || type_elems(type_of(g, n)) == 0)
        return NONE;
    ArenaMark mark = arena_mark(&g->cx->scratch);
    Ref *part = NEW_ARRAY(&g->cx->scratch, Ref, n_parts);
    n_parts = 0;
    for (int i = 0; i < n_args; i++) {
        Ref x = arg(g, n, i);
        bool nested = is_concat(g, x, axis);
        for (int j = 0; nested && j < node(g, x)->n_args; j++)
            part[n_parts++] = arg(g, x, j);
        if (!nested && dim(g, x, axis) > 0)
            part[n_parts++] = x;
    }
    Ref all = g_concat(g, part, n_parts, axis);
    arena_reset(&g->cx->scratch, mark);
    return all;
}

const Op op_concat = {
    .name = "concat",
    .n_args = -1,
    .kind = OP_VIEW,
    .attrs = {{"axis", ATTR_INT}},
    .shape = concat_shape,
    .simple = concat_simple,
    .elem = concat_elem,
    .vjp = concat_vjp,
    .doc = "Tensors one after the other along an axis.",
    .example = "concat(f32[2,3], f32[2,1], axis = 1); concat(f32[2], f32[0], f32[3], axis = 0); "
               "concat(f32[1,4], f32[2,4], f32[1,4], axis = 0)",
};
