/* The one contraction: matmul in every transposition, batched; convolution in 1, 2 and 3
 * dimensions with stride, padding, dilation and groups, and its two gradients. */
#include "../graph/op.h"

static bool wrong(Shape *s, const char *what)
{
    return shape_error(s, E0223, "`contract`: %s", what);
}

/* Of the operand `of`: indices ascending and known, products of coefficients and extents within
 * bounds. */
static bool map_shape(Shape *s, int which, int of)
{
    const Attr *map = &s->attr[which], *extent = &s->attr[CONTRACT_EXTENT];
    const int64_t most = (int64_t)1 << 50;
    if (map->n != shape_arg(s, of)->rank)
        return wrong(s, "an index map has one entry for each axis of its operand");
    for (int d = 0; d < map->n; d++) {
        const MapDim *m = &map->map[d];
        if (m->base < -most || m->base > most)
            return wrong(s, "an offset is too large");
        for (int t = 0; t < m->n; t++) {
            int64_t reach, c = m->coef[t] < 0 ? -m->coef[t] : m->coef[t];
            if (m->index[t] < 0 || m->index[t] >= extent->n ||
                (t > 0 && m->index[t] <= m->index[t - 1]))
                return wrong(s, "indices of a map are ascending and below the number of extents");
            if (c <= 0 || c > most || !mul_size(c, extent->ints[m->index[t]], &reach) ||
                reach > most)
                return wrong(s, "a coefficient is 0 or too large");
        }
    }
    return true;
}

static bool extents_fit(Shape *s)
{
    const Attr *extent = &s->attr[CONTRACT_EXTENT];
    int64_t n_out = s->attr[CONTRACT_N_OUT].i;
    if (extent->n > MAX_INDICES || n_out < 0 || n_out > extent->n || n_out > MAX_RANK)
        return shape_error(s, E0910, "a contraction has at most %d indices, %d in its result",
                           MAX_INDICES, MAX_RANK);
    if (extent->n - n_out > MAX_SUMMED)
        return shape_error(s, E0910, "a contraction sums over at most %d indices", MAX_SUMMED);
    for (int i = 0; i < extent->n; i++)
        if (extent->ints[i] < 0 || extent->ints[i] > (int64_t)1 << 40)
            return wrong(s, "an extent is negative or too large");
    return true;
}

static bool contract_shape(Shape *s)
{
    const Type *x = shape_arg(s, 0), *y = shape_arg(s, 1);
    if (x->rank < 0 || y->rank < 0 || !dtype_is_float(x->dtype) || x->dtype != y->dtype)
        return shape_error(s, E0220, "cannot multiply %s by %s: both must be floats of one type",
                           shape_text(s, 0), shape_text(s, 1));
    if (!extents_fit(s))
        return false;
    s->type = type_make(x->dtype, (int)s->attr[CONTRACT_N_OUT].i, s->attr[CONTRACT_EXTENT].ints);
    return map_shape(s, CONTRACT_X, 0) && map_shape(s, CONTRACT_Y, 1);
}

static void contract_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    d[0] = g_contract_adjoint(g, n, ct, 0);
    d[1] = g_contract_adjoint(g, n, ct, 1);
}

/* The order of an operand's axes is the map's business; a sum of nothing is 0. */
static Ref contract_simple(Graph *g, Ref n)
{
    const Attr *a = node(g, n)->attr;
    MapDim map[2][MAX_RANK];
    Ref x[2];
    bool turned = false;
    for (int i = 0; i < a[CONTRACT_EXTENT].n; i++)
        if (a[CONTRACT_EXTENT].ints[i] == 0)
            return g_full(g, *type_of(g, n), 0);
    for (int which = 0; which < 2; which++) {
        x[which] = arg(g, n, which);
        bool here = op_of(g, x[which]) == OP_transpose;
        for (int d = 0; d < a[CONTRACT_X + which].n; d++)
            map[which][here ? attr(g, x[which], 0)->ints[d] : d] = a[CONTRACT_X + which].map[d];
        turned = turned || here;
        if (here)
            x[which] = arg(g, x[which], 0);
    }
    if (!turned)
        return NONE;
    return g_contract(g, x[0], x[1], a[CONTRACT_EXTENT].ints, (int)a[CONTRACT_N_OUT].i,
                      a[CONTRACT_EXTENT].n, map[0], map[1]);
}

const Op op_contract = {
    .name = "contract",
    .n_args = 2,
    .kind = OP_CONTRACT,
    .attrs = {{"extent", ATTR_INTS}, {"out", ATTR_INT}, {"x", ATTR_MAP}, {"y", ATTR_MAP}},
    .shape = contract_shape,
    .simple = contract_simple,
    .vjp = contract_vjp,
    .doc = "out[o...] = sum over s of X[x(o, s)] * Y[y(o, s)]: index i0 and so on have the given "
           "extents, the first `out` of them are the result's axes, the others are summed, the "
           "last moving fastest; an element outside of X or Y is 0. `@`, convolutions and their "
           "gradients are all this. f16 and bf16 are multiplied and added in f32, and the sum "
           "is rounded once.",
    .example =
        /* f32[2,3] @ f32[3,4] */
    "contract(f32[2,3], f32[3,4], extent = [2,4,3], out = 2, x = [i0, i2], y = [i2, i1]); "
    /* batched, the second transposed, one batch repeated */
    "contract(f32[2,3,4], f32[1,5,4], extent = [2,3,5,4], out = 3, x = [i0, i1, i3], "
    "y = [0, i2, i3]); "
    /* convolution: 7 wide, 3 taps, stride 2, padding 1 */
    "contract(f32[2,3,7], f32[4,3,3], extent = [2,4,4,3,3], out = 3, "
    "x = [i0, i3, 2*i2+i4-1], y = [i1, i3, i4]); "
    /* dilation 2, stride 1; depthwise, stride 3, dilation 2 */
    "contract(f32[1,2,6], f32[2,2,2], extent = [1,2,4,2,2], out = 3, "
    "x = [i0, i3, i2+2*i4], y = [i1, i3, i4]); "
    "contract(f32[1,2,8], f32[2,1,3], extent = [1,2,1,2,1,3], out = 4, "
    "x = [i0, i1+i4, 3*i3+2*i5-1], y = [i1+i2, i4, i5]); "
    /* groups: 2 of 2 channels in and 3 out, windows that do not overlap */
    "contract(f32[1,4,6], f32[6,2,2], extent = [1,2,3,3,2,2], out = 4, "
    "x = [i0, 2*i1+i4, 2*i3+i5], y = [3*i1+i2, i4, i5]); "
    /* a transposed read, an outer product, a dot product of nothing */
    "contract(f32[5], f32[5], extent = [5,5], out = 1, x = [-i1+4], y = [i0]); "
    "contract(f32[3], f32[0], extent = [3,0], out = 1, x = [i0], y = [i1]); "
    /* halves; a sum long enough for leaves */
    "contract(f16[3,70], f16[70,5], extent = [3,5,70], out = 2, x = [i0, i2], y = [i2, i1]); "
    "contract(bf16[2,2100], bf16[3,2100], extent = [2,3,2100], out = 2, x = [i0, i2], "
    "y = [i1, i2])",
    .source = "Dumoulin & Visin, A guide to convolution arithmetic (2016)",
};

/* ---- what a cotangent was made for -------------------------------------------------- */

enum { ADJOINT_OF, ADJOINT_CT, ADJOINT_OTHER };

static bool adjoint_shape(Shape *s)
{
    const Type *y = shape_arg(s, ADJOINT_OF), *ct = shape_arg(s, ADJOINT_CT);
    const Type *other = shape_arg(s, ADJOINT_OTHER);
    if (y->rank < 0 || ct->rank < 0 || other->rank < 0 || !dtype_is_float(y->dtype) ||
        ct->dtype != y->dtype || other->dtype != y->dtype)
        return shape_error(s, E0220, "`adjoint` takes floats of one type, not %s, %s and %s",
                           shape_text(s, ADJOINT_OF), shape_text(s, ADJOINT_CT),
                           shape_text(s, ADJOINT_OTHER));
    if (!extents_fit(s))
        return false;
    Type out = type_make(ct->dtype, (int)s->attr[CONTRACT_N_OUT].i, s->attr[CONTRACT_EXTENT].ints);
    if (!type_same(ct, &out))
        return shape_error(s, E0220, "`adjoint` takes the cotangent of %s, not %s",
                           type_text(&s->g->cx->perm, &out), shape_text(s, ADJOINT_CT));
    s->type = *y;
    return map_shape(s, CONTRACT_X, ADJOINT_OF) && map_shape(s, CONTRACT_Y, ADJOINT_OTHER);
}

/* The adjoint of an adjoint is the contraction itself. */
static void adjoint_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    const Attr *a = node(g, n)->attr;
    Ref y = g_contract(g, ct, arg(g, n, ADJOINT_OTHER), a[CONTRACT_EXTENT].ints,
                       (int)a[CONTRACT_N_OUT].i, a[CONTRACT_EXTENT].n, a[CONTRACT_X].map,
                       a[CONTRACT_Y].map);
    d[ADJOINT_OF] = REF_ZERO;
    d[ADJOINT_CT] = y;
    d[ADJOINT_OTHER] = g_contract_adjoint(g, y, arg(g, n, ADJOINT_CT), 1);
}

const Op op_adjoint = {
    .name = "adjoint",
    .n_args = 3,
    .kind = OP_VIEW,
    .attrs = {{"extent", ATTR_INTS}, {"out", ATTR_INT}, {"x", ATTR_MAP}, {"y", ATTR_MAP}},
    .shape = adjoint_shape,
    .simple = simple_once_reversed,
    .elem = elem_of_first,
    .vjp = adjoint_vjp,
    .doc = "Its first operand, which is put together as the cotangent of X in the contraction of "
           "X and Y, whose attributes these are: of a strided convolution, a transposed one. The "
           "second operand is the cotangent of the contraction's result, the third is Y. The "
           "gradient goes to these two by a contraction each, and by none of the pieces.",
    .example = "adjoint(f32[2,3,7], f32[2,4,4], f32[4,3,3], extent = [2,4,4,3,3], out = 3, "
               "x = [i0, i3, 2*i2+i4-1], y = [i1, i3, i4])",
    .given = true,
};
