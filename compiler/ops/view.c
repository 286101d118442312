/* Views: each element of the result is an element of an operand, found by an index
 * map. Windows: window.c. */
#include <math.h>
#include <string.h>
#include "../graph/op.h"

static void copy_index(KAff *to, const KAff *from, int n)
{
    if (n > 0)
        memcpy(to, from, (size_t)n * sizeof *to);
}

/* "[2,3]" of an attribute, for messages */
static const char *dims_text(const Shape *s, const Attr *a)
{
    Text t;
    text_init(&t, &s->g->cx->perm);
    text_char(&t, '[');
    for (int i = 0; i < a->n; i++)
        text_add(&t, "%s%lld", i == 0 ? "" : ",", (long long)a->ints[i]);
    text_char(&t, ']');
    return t.at;
}

static bool no_tuple(Shape *s)
{
    if (shape_arg(s, 0)->rank >= 0)
        return true;
    return shape_error(s, E0221, "`%s` takes no tuple", op_word(s->op));
}

/* A view of one number repeated is that number repeated; of the same type as x: x. */
static Ref plain_simple(Graph *g, Ref n)
{
    Ref x = arg(g, n, 0), from = x;
    Type t = *type_of(g, n);
    if (type_same(&t, type_of(g, x)))
        return op_of(g, n) == OP_reshape || op_of(g, n) == OP_broadcast ? x : NONE;
    while (op_of(g, from) == OP_broadcast || op_of(g, from) == OP_reshape)
        from = arg(g, from, 0);
    bool direct = op_of(g, n) == OP_broadcast && from == x;
    if (rank(g, from) != 0 || direct)
        return NONE;
    return g_broadcast(g, from, t.rank, t.dim);
}

/* ---- reshape ----------------------------------------------------------------------- */

static bool reshape_shape(Shape *s)
{
    const Attr *shape = shape_attr(s, "shape");
    const Type *x = shape_arg(s, 0);
    if (!no_tuple(s))
        return false;
    s->type = type_make(x->dtype, shape->n, shape->ints);
    if (shape->n > MAX_RANK || !type_fits(&s->type))
        return true; /* reported by the caller */
    if (type_elems(&s->type) == type_elems(x))
        return true;
    return shape_error(s, E0223, "cannot reshape %s of %lld elements to %s of %lld",
                       shape_text(s, 0), (long long)type_elems(x), dims_text(s, shape),
                       (long long)type_elems(&s->type));
}

/* Axes [from, to) of the result and of x that have the same product: cut so that each
 * group is as small as can be, and an axis that is only renamed stays alone. */
typedef struct Group {
    int from, to, x_from, x_to;
} Group;

static bool next_group(const Type *r, const Type *x, Group *p)
{
    p->from = p->to;
    p->x_from = p->x_to;
    if (p->from == r->rank && p->x_from == x->rank)
        return false;
    int64_t here = 1, there = 1;
    do {
        bool more = p->to < r->rank && (here <= there || p->x_to == x->rank);
        if (more)
            here *= r->dim[p->to++];
        else
            there *= x->dim[p->x_to++];
    } while (here != there);
    return true;
}

/* Row-major offset within the group, taken apart by x's axes. */
static bool group_index(Elem *e, const Type *r, const Type *x, const Group *p, const KAff *idx,
                        KAff *at)
{
    KAff offset = k_aff(0);
    int64_t stride = 1;
    for (int i = p->to - 1; i >= p->from; i--) {
        if (r->dim[i] != 1)
            offset = k_aff_add(offset, k_aff_scale(idx[i], stride));
        stride *= r->dim[i];
    }
    int first = p->x_from;
    while (first < p->x_to && x->dim[first] == 1)
        at[first++] = k_aff(0);
    for (int i = p->x_to - 1; i > first; i--) {
        KAff q;
        if (!elem_divide(e, &offset, x->dim[i], &q, &at[i]))
            return false;
        offset = q;
    }
    if (first < p->x_to)
        at[first] = offset;
    return true;
}

static Val reshape_elem(Elem *e, Ref n, const KAff *idx)
{
    const Graph *g = elem_graph(e);
    Ref x = arg(g, n, 0);
    KAff at[MAX_RANK] = {0};
    Group p = {0};
    bool empty = type_elems(type_of(g, n)) == 0; /* no element is ever asked for */
    while (!empty && next_group(type_of(g, n), type_of(g, x), &p))
        if (!group_index(e, type_of(g, n), type_of(g, x), &p, idx, at))
            return 0;
    return elem_at(e, x, at);
}

static void reshape_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    Type t = *type_of(g, arg(g, n, 0));
    d[0] = g_reshape(g, ct, t.rank, t.dim);
}

static Ref reshape_simple(Graph *g, Ref n)
{
    Ref x = arg(g, n, 0), plain = plain_simple(g, n);
    Type t = *type_of(g, n);
    if (plain != NONE || op_of(g, x) != OP_reshape)
        return plain;
    return g_reshape(g, arg(g, x, 0), t.rank, t.dim);
}

const Op op_reshape = {
    .name = "reshape",
    .n_args = 1,
    .kind = OP_VIEW,
    .attrs = {{"shape", ATTR_INTS}},
    .shape = reshape_shape,
    .simple = reshape_simple,
    .elem = reshape_elem,
    .vjp = reshape_vjp,
    .doc = "The same elements in row-major order, in another shape.",
    .example = "reshape(f32[2,6], shape = [3,4]); reshape(f32[2,3,4], shape = [6,4]); "
               "reshape(f32[6,4], shape = [2,3,1,4]); reshape(f32[1], shape = []); "
               "reshape(f32[0,3], shape = [5,0])",
};

/* ---- transpose ------------------------------------------------------------------------ */

static bool transpose_shape(Shape *s)
{
    const Attr *perm = shape_attr(s, "perm");
    const Type *x = shape_arg(s, 0);
    bool seen[MAX_RANK] = {false};
    bool fits = no_tuple(s) && perm->n == x->rank;
    s->type = *x;
    for (int i = 0; fits && i < perm->n; i++) {
        int64_t p = perm->ints[i];
        fits = p >= 0 && p < x->rank && !seen[p];
        if (fits) {
            seen[p] = true;
            s->type.dim[i] = x->dim[p];
        }
    }
    return fits || shape_error(s, E0222, "%s has no order of axes %s", shape_text(s, 0),
                               dims_text(s, perm));
}

static Val transpose_elem(Elem *e, Ref n, const KAff *idx)
{
    const Graph *g = elem_graph(e);
    KAff at[MAX_RANK];
    for (int i = 0; i < rank(g, n); i++)
        at[attr(g, n, 0)->ints[i]] = idx[i];
    return elem_at(e, arg(g, n, 0), at);
}

static void transpose_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    int back[MAX_RANK];
    for (int i = 0; i < rank(g, n); i++)
        back[attr(g, n, 0)->ints[i]] = i;
    d[0] = g_transpose(g, ct, back);
}

static Ref transpose_simple(Graph *g, Ref n)
{
    Ref x = arg(g, n, 0), plain = plain_simple(g, n);
    const int64_t *p = attr(g, n, 0)->ints;
    int perm[MAX_RANK];
    bool moved = false;
    for (int i = 0; i < rank(g, n); i++)
        moved = moved || p[i] != i;
    if (plain != NONE || !moved)
        return moved ? plain : x;
    if (op_of(g, x) != OP_transpose)
        return NONE;
    for (int i = 0; i < rank(g, n); i++)
        perm[i] = (int)attr(g, x, 0)->ints[p[i]];
    return g_transpose(g, arg(g, x, 0), perm);
}

const Op op_transpose = {
    .name = "transpose",
    .n_args = 1,
    .kind = OP_VIEW,
    .attrs = {{"perm", ATTR_INTS}},
    .shape = transpose_shape,
    .simple = transpose_simple,
    .elem = transpose_elem,
    .vjp = transpose_vjp,
    .doc = "Axis i of the result is axis perm[i] of x.",
    .example = "transpose(f32[2,3], perm = [1,0]); transpose(f32[2,3,4], perm = [2,0,1])",
};

/* ---- broadcast ------------------------------------------------------------------------- */

static bool broadcast_shape(Shape *s)
{
    const Attr *shape = shape_attr(s, "shape");
    const Type *x = shape_arg(s, 0);
    if (!no_tuple(s))
        return false;
    s->type = type_make(x->dtype, shape->n, shape->ints);
    if (shape->n > MAX_RANK)
        return true; /* reported by the caller */
    int more = shape->n - x->rank;
    bool fits = more >= 0;
    for (int i = 0; fits && i < x->rank; i++)
        fits = x->dim[i] == 1 || x->dim[i] == shape->ints[i + more];
    return fits ||
           shape_error(s, E0220, "cannot repeat %s to %s", shape_text(s, 0), dims_text(s, shape));
}

static Val broadcast_elem(Elem *e, Ref n, const KAff *idx)
{
    const Graph *g = elem_graph(e);
    Ref x = arg(g, n, 0);
    int more = rank(g, n) - rank(g, x);
    KAff at[MAX_RANK];
    for (int i = 0; i < rank(g, x); i++)
        at[i] = dim(g, x, i) == 1 ? k_aff(0) : idx[i + more];
    return elem_at(e, x, at);
}

static void broadcast_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    Type t = *type_of(g, arg(g, n, 0));
    d[0] = g_sum_to(g, ct, &t);
}

static Ref broadcast_simple(Graph *g, Ref n)
{
    Ref x = arg(g, n, 0), plain = plain_simple(g, n);
    Type t = *type_of(g, n);
    if (plain != NONE || op_of(g, x) != OP_broadcast)
        return plain;
    return g_broadcast(g, arg(g, x, 0), t.rank, t.dim);
}

const Op op_broadcast = {
    .name = "broadcast",
    .n_args = 1,
    .kind = OP_VIEW,
    .attrs = {{"shape", ATTR_INTS}},
    .shape = broadcast_shape,
    .simple = broadcast_simple,
    .elem = broadcast_elem,
    .vjp = broadcast_vjp,
    .doc = "Repeated to a shape by NumPy's rule: axes are matched from the last, extent 1 is "
           "repeated.",
    .example = "broadcast(f32[3], shape = [2,3]); broadcast(f32[2,1,3], shape = [4,2,5,3]); "
               "broadcast(f32, shape = [2]); broadcast(f32[1], shape = [0])",
};

/* ---- slice ------------------------------------------------------------------------------ */

enum { SLICE_AXIS, START, SIZE, STEP };
enum { PAD_AXIS, LO, HI, VALUE };

static bool slice_shape(Shape *s)
{
    s->type = *shape_arg(s, 0);
    if (!shape_axis(s, "axis", s->type.rank))
        return false;
    int64_t n = s->type.dim[s->attr[SLICE_AXIS].i], last;
    int64_t start = s->attr[START].i, size = s->attr[SIZE].i, step = s->attr[STEP].i;
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
    KAff steps = k_aff_scale(idx[a[SLICE_AXIS].i], a[STEP].i);
    at[a[SLICE_AXIS].i] = k_aff_offset(steps, a[START].i);
    return elem_at(e, arg(g, n, 0), at);
}

static void slice_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    const Attr *a = node(g, n)->attr;
    int axis = (int)a[SLICE_AXIS].i;
    int64_t start = a[START].i, step = a[STEP].i, size = a[SIZE].i;
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
    int64_t end = a[START].i + (a[SIZE].i - 1) * a[STEP].i;
    *first = a[STEP].i > 0 ? a[START].i : end;
    *last = a[STEP].i > 0 ? end : a[START].i;
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
    return g_slice(g, x, axis, a[START].i - lo, a[SIZE].i, a[STEP].i);
}

/* What lies within one operand is a slice of that. */
static Ref slice_of_concat(Graph *g, Ref n)
{
    const Attr *a = node(g, n)->attr;
    Ref all = arg(g, n, 0);
    int axis = (int)a[SLICE_AXIS].i;
    int64_t from = 0, first, last;
    if (attr(g, all, 0)->i != axis || a[SIZE].i == 0)
        return NONE;
    slice_ends(a, &first, &last);
    for (int i = 0; i < node(g, all)->n_args; i++) {
        Ref x = arg(g, all, i);
        int64_t to = from + dim(g, x, axis);
        if (first >= from && last < to)
            return g_slice(g, x, axis, a[START].i - from, a[SIZE].i, a[STEP].i);
        from = to;
    }
    return NONE;
}

static Ref slice_simple(Graph *g, Ref n)
{
    const Attr *a = node(g, n)->attr;
    Ref x = arg(g, n, 0), plain = plain_simple(g, n);
    int axis = (int)a[SLICE_AXIS].i;
    if (plain != NONE)
        return plain;
    if (a[STEP].i == 1 && a[SIZE].i == dim(g, x, axis))
        return x;
    const Attr *b = node(g, x)->attr;
    if (op_of(g, x) == OP_concat)
        return slice_of_concat(g, n);
    if (a[SIZE].i == 0 || (op_of(g, x) != OP_slice && op_of(g, x) != OP_pad) ||
        b[SLICE_AXIS].i != axis)
        return NONE;
    if (op_of(g, x) == OP_pad)
        return slice_of_pad(g, n);
    return g_slice(g, arg(g, x, 0), axis, b[START].i + b[STEP].i * a[START].i, a[SIZE].i,
                   b[STEP].i * a[STEP].i);
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
    if (const_value(g, x, &value) && same_number(value, a[VALUE].f))
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

/* Operand i if the index is below its end, else the next ones. */
static Val concat_elem(Elem *e, Ref n, const KAff *idx)
{
    const Graph *g = elem_graph(e);
    Kernel *k = elem_kernel(e);
    int axis = (int)attr(g, n, 0)->i, n_args = node(g, n)->n_args;
    KAff at[MAX_RANK];
    copy_index(at, idx, rank(g, n));
    int64_t end = dim(g, n, axis);
    Val value = 0;
    for (int i = n_args - 1; i >= 0; i--) {
        Ref x = arg(g, n, i);
        int64_t from = end - dim(g, x, axis);
        if (from == end)
            continue; /* it has no elements */
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
