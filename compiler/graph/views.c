/* Builder calls for views: index maps over one operand. */
#include <string.h>
#include "op.h"

static Attr of_int(int64_t i)
{
    return (Attr){.kind = ATTR_INT, .i = i};
}

static Attr of_ints(int n, const int64_t *ints)
{
    return (Attr){.kind = ATTR_INTS, .n = n, .ints = ints};
}

static bool same_dims(const Type *t, int rank, const int64_t *dim)
{
    if (t->rank != rank)
        return false;
    for (int i = 0; i < rank; i++)
        if (t->dim[i] != dim[i])
            return false;
    return true;
}

Ref g_reshape(Graph *g, Ref x, int rank, const int64_t *dim)
{
    if (x == NONE || same_dims(type_of(g, x), rank, dim))
        return x;
    const Attr a = of_ints(rank, dim);
    return g_node(g, OP_reshape, &x, 1, &a);
}

Ref g_transpose(Graph *g, Ref x, const int *perm)
{
    int64_t p[MAX_RANK];
    bool moved = false;
    for (int i = 0; i < rank(g, x); i++) {
        p[i] = perm[i];
        moved = moved || perm[i] != i;
    }
    if (!moved)
        return x;
    const Attr a = of_ints(rank(g, x), p);
    return g_node(g, OP_transpose, &x, 1, &a);
}

Ref g_move_axes(Graph *g, Ref x, const int *perm)
{
    int64_t d[MAX_RANK];
    int last = -1;
    bool ascends = true; /* but for axes of one element */
    for (int i = 0; i < rank(g, x); i++) {
        d[i] = dim(g, x, perm[i]);
        ascends = ascends && (d[i] == 1 || perm[i] > last);
        last = d[i] == 1 ? last : perm[i];
    }
    return ascends ? g_reshape(g, x, rank(g, x), d) : g_transpose(g, x, perm);
}

Ref g_swap_last(Graph *g, Ref x)
{
    int perm[MAX_RANK], n = rank(g, x);
    for (int i = 0; i < n; i++)
        perm[i] = i;
    if (n < 2)
        return x;
    perm[n - 2] = n - 1;
    perm[n - 1] = n - 2;
    return g_transpose(g, x, perm);
}

Ref g_broadcast(Graph *g, Ref x, int rank, const int64_t *dim)
{
    if (x == NONE || same_dims(type_of(g, x), rank, dim))
        return x;
    const Attr a = of_ints(rank, dim);
    return g_node(g, OP_broadcast, &x, 1, &a);
}

Ref g_broadcast_like(Graph *g, Ref x, Ref like)
{
    if (like == NONE)
        return NONE;
    Type t = *type_of(g, like); /* the node may move */
    return g_broadcast(g, x, t.rank, t.dim);
}

Ref g_slice(Graph *g, Ref x, int axis, int64_t start, int64_t size, int64_t step)
{
    if (x == NONE || (start == 0 && step == 1 && axis < rank(g, x) && size == dim(g, x, axis)))
        return x;
    const Attr a[] = {of_int(axis), of_int(start), of_int(size), of_int(step)};
    return g_node(g, OP_slice, &x, 1, a);
}

Ref g_pad(Graph *g, Ref x, int axis, int64_t lo, int64_t hi, double value)
{
    if (lo == 0 && hi == 0)
        return x;
    const Attr a[] = {of_int(axis), of_int(lo), of_int(hi), {.kind = ATTR_FLOAT, .f = value}};
    return g_node(g, OP_pad, &x, 1, a);
}

Ref g_concat(Graph *g, const Ref *x, int n, int axis)
{
    if (n == 1)
        return x[0];
    const Attr a = of_int(axis);
    return g_node(g, OP_concat, x, n, &a);
}

Ref g_flip(Graph *g, Ref x, int axis)
{
    if (x == NONE || dim(g, x, axis) <= 1)
        return x;
    int64_t n = dim(g, x, axis);
    return g_slice(g, x, axis, n - 1, n, -1);
}

Ref g_window(Graph *g, Ref x, int axis, int64_t size, int64_t stride, int64_t dilation, int64_t lo,
             int64_t hi, double fill)
{
    const Attr a[] = {of_int(axis),
                      of_int(size),
                      of_int(stride),
                      of_int(dilation),
                      of_int(lo),
                      of_int(hi),
                      {.kind = ATTR_FLOAT, .f = fill}};
    return g_node(g, OP_window, &x, 1, a);
}

/* ---- what the rules of views are made of ------------------------------------ */

Ref g_insert_axis(Graph *g, Ref x, int axis)
{
    if (x == NONE)
        return NONE;
    Type t = *type_of(g, x);
    int64_t d[MAX_RANK + 1];
    for (int i = 0; i <= t.rank; i++)
        d[i] = i == axis ? 1 : t.dim[i - (i > axis)];
    return g_reshape(g, x, t.rank + 1, d);
}

Ref g_merge_axes(Graph *g, Ref x, int axis)
{
    if (x == NONE)
        return NONE;
    const Type *t = type_of(g, x);
    int64_t d[MAX_RANK];
    for (int i = 0; i + 1 < t->rank; i++)
        d[i] = i == axis ? t->dim[i] * t->dim[i + 1] : t->dim[i + (i > axis)];
    return g_reshape(g, x, t->rank - 1, d);
}

/* g_dilate with two other axes made one, where there is no room for one more. */
static Ref dilate_merged(Graph *g, Ref x, int axis, int64_t by)
{
    Type t = *type_of(g, x);
    int pair = axis > 1 ? 0 : t.rank - 2;
    Ref flat = g_merge_axes(g, x, pair);
    Ref spread = g_dilate(g, flat, axis - (pair < axis), by);
    t.dim[axis] *= by;
    return g_reshape(g, spread, t.rank, t.dim);
}

/* [.., E, ..] -> [.., E, 1, ..] -> [.., E, by, ..] -> [.., E*by, ..] */
Ref g_dilate(Graph *g, Ref x, int axis, int64_t by)
{
    if (x == NONE || by == 1 || dim(g, x, axis) <= 1)
        return x;
    if (rank(g, x) == MAX_RANK)
        return dilate_merged(g, x, axis, by);
    Ref spread = g_insert_axis(g, x, axis + 1);
    Ref padded = g_pad(g, spread, axis + 1, 0, by - 1, 0);
    return g_merge_axes(g, padded, axis);
}

Ref g_fit(Graph *g, Ref x, int axis, int64_t at, int64_t size)
{
    if (x == NONE)
        return NONE;
    int64_t n = dim(g, x, axis), from = at < 0 ? -at : 0, to = size - at < n ? size - at : n;
    if (from >= to) {
        Type t = *type_of(g, x);
        t.dim[axis] = size;
        return g_zeros(g, &t);
    }
    Ref part = g_slice(g, x, axis, from, to - from, 1);
    return g_pad(g, part, axis, at + from, size - at - to, 0);
}

Ref g_stack(Graph *g, const Ref *x, int n, int axis)
{
    ArenaMark mark = arena_mark(&g->cx->scratch);
    Ref *piece = NEW_ARRAY(&g->cx->scratch, Ref, n);
    for (int i = 0; i < n; i++)
        piece[i] = g_insert_axis(g, x[i], axis);
    Ref all = g_concat(g, piece, n, axis);
    arena_reset(&g->cx->scratch, mark);
    return all;
}

Ref g_spread(Graph *g, Ref x, int axis, int n, const int64_t *coef, int64_t base, int64_t size)
{
    if (x == NONE)
        return NONE;
    int64_t unit = coef[n - 1];
    for (int i = n - 2; i >= 0; i--) {
        int at = axis + i;
        if (coef[i] % unit != 0) {
            x = g_dilate(g, x, at + 1, unit);
            unit = 1;
        }
        x = g_fit(g, x, at + 1, 0, coef[i] / unit);
        x = g_merge_axes(g, x, at);
    }
    x = g_dilate(g, x, axis, unit);
    return g_fit(g, x, axis, base, size);
}

Ref g_interleave(Graph *g, Ref *piece, int64_t n, int axis, int64_t size)
{
    int64_t some = 0, last = 0;
    for (int64_t f = 0; f < n; f++)
        if (piece[f] != REF_ZERO) {
            some++;
            last = f;
        }
    if (some == 0)
        return REF_ZERO;
    if (some == 1) {
        Ref x = g_dilate(g, piece[last], axis, n);
        return g_fit(g, x, axis, last, size);
    }
    Type t = *type_of(g, piece[last]);
    for (int64_t f = 0; f < n; f++)
        if (piece[f] == REF_ZERO)
            piece[f] = g_zeros(g, &t);
    Ref all = g_stack(g, piece, (int)n, axis + 1);
    Ref flat = g_merge_axes(g, all, axis);
    return g_fit(g, flat, axis, 0, size);
}

/* A part of an axis: x is `of` at [at, at + size), zeros elsewhere. */
typedef struct Part {
    Ref of;
    int axis;
    int64_t at, size;
} Part;

static bool is_part(const Graph *g, Ref x, Part *p)
{
    if (op_of(g, x) != OP_pad || attr(g, x, 3)->f != 0)
        return false;
    *p = (Part){.of = arg(g, x, 0), .axis = (int)attr(g, x, 0)->i, .at = attr(g, x, 1)->i};
    p->size = dim(g, p->of, p->axis);
    return true;
}

/* Sums of rows by an index (the cotangent of a table that rows are taken from). */
static bool begins_with_zeros(const Graph *g, Ref x)
{
    return op_of(g, x) == OP_scatter_add && const_is_zero(g, arg(g, x, 0), false);
}

static Ref scatter_onto(Graph *g, Ref base, Ref x)
{
    return g_scatter_add(g, base, arg(g, x, 1), arg(g, x, 2));
}

Ref g_add_parts(Graph *g, Ref x, Ref y)
{
    Part p, q;
    if (begins_with_zeros(g, y))
        return scatter_onto(g, x, y);
    if (begins_with_zeros(g, x))
        return scatter_onto(g, y, x);
    if (!is_part(g, x, &p) || !is_part(g, y, &q) || p.axis != q.axis)
        return g_add(g, x, y);
    if (q.at < p.at) {
        Part swap = p;
        p = q;
        q = swap;
    }
    if (p.at + p.size > q.at)
        return g_add(g, x, y);
    int64_t extent = dim(g, x, p.axis);
    Ref both[2] = {NONE, q.of};
    both[0] = g_pad(g, p.of, p.axis, 0, q.at - p.at - p.size, 0);
    Ref joined = g_concat(g, both, 2, p.axis);
    return g_pad(g, joined, p.axis, p.at, extent - q.at - q.size, 0);
}
