/* Windows along an axis: what pooling reduces over. */
#include <string.h>
#include "../graph/op.h"

enum { AXIS, SIZE, STRIDE, DILATION, LO, HI, FILL };

static bool is_count(int64_t x, int64_t least)
{
    return x >= least && x <= (int64_t)1 << 40;
}

static bool window_shape(Shape *s)
{
    const Attr *a = s->attr;
    Type x = *shape_arg(s, 0);
    if (!shape_axis(s, "axis", x.rank))
        return false;
    if (x.rank == MAX_RANK)
        return shape_error(s, E0910, "`window` would have %d axes, more than %d", x.rank + 1,
                           MAX_RANK);
    int axis = (int)a[AXIS].i;
    int64_t span;
    if (!is_count(a[SIZE].i, 1) || !is_count(a[STRIDE].i, 1) || !is_count(a[DILATION].i, 1) ||
        !is_count(a[LO].i, 0) || !is_count(a[HI].i, 0))
        return shape_error(s, E0223,
                           "size, stride and dilation of a window are at least 1, its "
                           "padding at least 0");
    int64_t room = x.dim[axis] + a[LO].i + a[HI].i;
    if (!mul_size(a[DILATION].i, a[SIZE].i - 1, &span) || span >= room)
        return shape_error(s, E0223,
                           "a window of %lld elements, %lld apart, does not fit into %lld",
                           (long long)a[SIZE].i, (long long)a[DILATION].i, (long long)room);
    s->type = x;
    s->type.rank++;
    for (int i = x.rank; i > axis + 1; i--)
        s->type.dim[i] = x.dim[i - 1];
    s->type.dim[axis] = (room - span - 1) / a[STRIDE].i + 1;
    s->type.dim[axis + 1] = a[SIZE].i;
    return shape_value(s, "fill");
}

static Val window_elem(Elem *e, Ref n, const KAff *idx)
{
    const Graph *g = elem_graph(e);
    const Attr *a = node(g, n)->attr;
    int axis = (int)a[AXIS].i;
    KAff at[MAX_RANK];
    for (int i = 0; i < rank(g, n) - 1; i++)
        at[i] = idx[i + (i > axis)];
    KAff start = k_aff_scale(idx[axis], a[STRIDE].i);
    KAff tap = k_aff_scale(idx[axis + 1], a[DILATION].i);
    at[axis] = k_aff_offset(k_aff_add(start, tap), -a[LO].i);
    return elem_at_bounded(e, arg(g, n, 0), at, a[FILL].f);
}

/* Tap r of every window: axis `axis + 1` at r. */
static Ref one_tap(Graph *g, Ref ct, int axis, int64_t r)
{
    Ref tap = g_slice(g, ct, axis + 1, r, 1, 1);
    return g_merge_axes(g, tap, axis);
}

/* Cotangents of elements stride*q + phase, by q: the taps that meet them. Tap r of
 * window p is element stride*p + dilation*r - lo, so that q = p + (dilation*r - lo - phase)/stride.
 */
static Ref one_phase(Graph *g, const Attr *a, Ref ct, int64_t phase, int64_t extent)
{
    int axis = (int)a[AXIS].i;
    int64_t size = (extent + a[STRIDE].i - 1) / a[STRIDE].i;
    Ref sum = REF_ZERO;
    for (int64_t r = 0; r < a[SIZE].i; r++) {
        int64_t at = a[DILATION].i * r - a[LO].i - phase;
        if (at % a[STRIDE].i != 0)
            continue;
        Ref tap = one_tap(g, ct, axis, r);
        Ref placed = g_fit(g, tap, axis, at / a[STRIDE].i, size);
        sum = sum == REF_ZERO ? placed : g_add(g, sum, placed);
    }
    return sum;
}

static void window_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    const Attr *a = node(g, n)->attr;
    int axis = (int)a[AXIS].i;
    int64_t extent = dim(g, arg(g, n, 0), axis), stride = a[STRIDE].i;
    if (stride > a[DILATION].i * (a[SIZE].i - 1)) {
        const int64_t coef[] = {stride, a[DILATION].i};
        d[0] = g_spread(g, ct, axis, 2, coef, -a[LO].i, extent);
        return;
    }
    ArenaMark mark = arena_mark(&g->cx->scratch);
    Ref *piece = NEW_ARRAY(&g->cx->scratch, Ref, stride);
    for (int64_t phase = 0; phase < stride; phase++)
        piece[phase] = one_phase(g, a, ct, phase, extent);
    d[0] = g_interleave(g, piece, stride, axis, extent);
    arena_reset(&g->cx->scratch, mark);
}

const Op op_window = {
    .name = "window",
    .n_args = 1,
    .kind = OP_VIEW,
    .attrs = {{"axis", ATTR_INT},
              {"size", ATTR_INT},
              {"stride", ATTR_INT},
              {"dilation", ATTR_INT},
              {"lo", ATTR_INT},
              {"hi", ATTR_INT},
              {"fill", ATTR_FLOAT}},
    .shape = window_shape,
    .elem = window_elem,
    .vjp = window_vjp,
    .doc = "Windows along an axis: extent E becomes (windows, size), with windows = "
           "floor((E + lo + hi - dilation*(size-1) - 1) / stride) + 1. Outside of x it is `fill`.",
    .example =
        "window(f32[6], axis = 0, size = 2, stride = 2, dilation = 1, lo = 0, hi = 0, fill = 0); "
        "window(f32[2,7], axis = 1, size = 3, stride = 2, dilation = 1, lo = 1, hi = 1, fill = 0); "
        "window(f32[7,2], axis = 0, size = 3, stride = 1, dilation = 2, lo = 1, hi = 0, fill = 0); "
        "window(f32[9], axis = 0, size = 3, stride = 3, dilation = 2, lo = 0, hi = 2, fill = 1); "
        "window(f32[8], axis = 0, size = 2, stride = 3, dilation = 2, lo = 1, hi = 0, fill = 0)",
    .source = "Dumoulin & Visin, A guide to convolution arithmetic (2016), relationship 6",
};
