/* Contractions by name: matmul, convolution, einsum. All are `contract` with index
 * maps; no operand is broadcast, copied or unfolded. */
#include <string.h>
#include "op.h"

Ref g_contract(Graph *g, Ref x, Ref y, const int64_t *extent, int n_out, int n, const MapDim *x_map,
               const MapDim *y_map)
{
    if (x == NONE || y == NONE)
        return NONE;
    const Attr a[] = {
        {.kind = ATTR_INTS, .n = n, .ints = extent},
        {.kind = ATTR_INT, .i = n_out},
        {.kind = ATTR_MAP, .n = rank(g, x), .map = x_map},
        {.kind = ATTR_MAP, .n = rank(g, y), .map = y_map},
    };
    return g_node(g, OP_contract, (Ref[]){x, y}, 2, a);
}

/* A contraction under construction: result axes come first, then summed indices. */
typedef struct Indices {
    int64_t extent[MAX_INDICES];
    int n;
} Indices;

static int new_index(Indices *s, int64_t extent)
{
    s->extent[s->n] = extent;
    return s->n++;
}

static MapDim pure(int index)
{
    return map_term(map_const(0), index, 1);
}

/* ---- matmul ---------------------------------------------------------------- */

static int batches(const Type *t)
{
    return t->rank > 2 ? t->rank - 2 : 0;
}

/* One batch axis of the result, `from_last` axes before the matrices; false if the
 * extents of the operands do not match. */
static bool batch_axis(Indices *s, const Type *tx, const Type *ty, int from_last, MapDim *xm,
                       MapDim *ym)
{
    int ax = batches(tx) - from_last, ay = batches(ty) - from_last;
    int64_t ex = ax >= 0 ? tx->dim[ax] : 1, ey = ay >= 0 ? ty->dim[ay] : 1;
    if (ex != ey && ex != 1 && ey != 1)
        return false;
    int i = new_index(s, ex == 1 ? ey : ex);
    if (ax >= 0)
        xm[ax] = ex == 1 ? map_const(0) : pure(i);
    if (ay >= 0)
        ym[ay] = ey == 1 ? map_const(0) : pure(i);
    return true;
}

static Ref cannot_multiply(Graph *g, Ref x, Ref y, const char *which, int64_t ex, int64_t ey)
{
    return g_error(g, E0203, "cannot multiply %s by %s: %s sizes %lld and %lld differ",
                   type_text(&g->cx->perm, type_of(g, x)), type_text(&g->cx->perm, type_of(g, y)),
                   which, (long long)ex, (long long)ey);
}

Ref g_matmul(Graph *g, Ref x, Ref y)
{
    if (x == NONE || y == NONE)
        return NONE;
    Type tx = *type_of(g, x), ty = *type_of(g, y);
    if (tx.rank < 1 || ty.rank < 1)
        return g_error(g, E0203, "cannot multiply %s by %s: `@` takes matrices, not scalars",
                       type_text(&g->cx->perm, &tx), type_text(&g->cx->perm, &ty));
    int kx = tx.rank - 1, ky = ty.rank >= 2 ? ty.rank - 2 : 0;
    if (tx.dim[kx] != ty.dim[ky])
        return cannot_multiply(g, x, y, "inner", tx.dim[kx], ty.dim[ky]);
    Indices s = {.n = 0};
    MapDim xm[MAX_RANK], ym[MAX_RANK];
    int nb = batches(&tx) > batches(&ty) ? batches(&tx) : batches(&ty);
    for (int b = nb; b >= 1; b--)
        if (!batch_axis(&s, &tx, &ty, b, xm, ym))
            return cannot_multiply(g, x, y, "batch", tx.dim[batches(&tx) - b],
                                   ty.dim[batches(&ty) - b]);
    if (tx.rank >= 2)
        xm[kx - 1] = pure(new_index(&s, tx.dim[kx - 1]));
    if (ty.rank >= 2)
        ym[ky + 1] = pure(new_index(&s, ty.dim[ky + 1]));
    int n_out = s.n;
    xm[kx] = ym[ky] = pure(new_index(&s, tx.dim[kx]));
    return g_contract(g, x, y, s.extent, n_out, s.n, xm, ym);
}

/* ---- convolution ------------------------------------------------------------ */

static Ref wrong_channels(Graph *g, Ref x, Ref w, int64_t groups)
{
    return g_error(g, E0203,
                   "cannot convolve %s with %s in %lld groups: %lld channels in, %lld out, and "
                   "the weight takes %lld",
                   type_text(&g->cx->perm, type_of(g, x)), type_text(&g->cx->perm, type_of(g, w)),
                   (long long)groups, (long long)dim(g, x, 1), (long long)dim(g, w, 0),
                   (long long)(groups * dim(g, w, 1)));
}

static bool in_range(int64_t x, int64_t least)
{
    return x >= least && x <= (int64_t)1 << 40;
}

/* Extents of the result's spatial axes; false after a report. */
static bool conv_extents(Graph *g, Ref x, Ref w, const int64_t *stride, const int64_t *lo,
                         const int64_t *hi, const int64_t *dilation, int64_t *out)
{
    for (int a = 0; a < rank(g, x) - 2; a++) {
        int64_t size = dim(g, w, a + 2), span;
        if (!in_range(stride[a], 1) || !in_range(dilation[a], 1) || !in_range(lo[a], 0) ||
            !in_range(hi[a], 0)) {
            g_error(g, E0223,
                    "stride and dilation are at least 1, padding at least 0, not %lld, %lld, %lld "
                    "and %lld",
                    (long long)stride[a], (long long)dilation[a], (long long)lo[a],
                    (long long)hi[a]);
            return false;
        }
        int64_t room = dim(g, x, a + 2) + lo[a] + hi[a];
        if (size < 1 || !mul_size(dilation[a], size - 1, &span) || span >= room) {
            g_error(g, E0223, "a kernel of %lld taps, %lld apart, does not fit into %lld elements",
                    (long long)size, (long long)dilation[a], (long long)room);
            return false;
        }
        out[a] = (room - span - 1) / stride[a] + 1;
    }
    return true;
}

/* The same the other way round. */
static bool conv_transpose_extents(Graph *g, Ref x, Ref w, const int64_t *stride,
                                   const int64_t *padding, const int64_t *extra,
                                   const int64_t *dilation, int64_t *out)
{
    for (int a = 0; a < rank(g, x) - 2; a++) {
        int64_t span, size = dim(g, w, a + 2), n = dim(g, x, a + 2);
        if (!in_range(stride[a], 1) || !in_range(dilation[a], 1) || !in_range(padding[a], 0) ||
            !in_range(extra[a], 0) || extra[a] >= stride[a]) {
            g_error(g, E0223,
                    "stride and dilation are at least 1, padding at least 0, output padding less "
                    "than stride, not %lld, %lld, %lld and %lld",
                    (long long)stride[a], (long long)dilation[a], (long long)padding[a],
                    (long long)extra[a]);
            return false;
        }
        bool fits = size >= 1 && mul_size(dilation[a], size - 1, &span) && in_range(span, 0) &&
                    n >= 1 && mul_size(stride[a], n - 1, &out[a]) && in_range(out[a], 0);
        out[a] = fits ? out[a] + span + 1 + extra[a] - 2 * padding[a] : 0;
        if (out[a] < 1) {
            g_error(g, E0223, "%lld elements, %lld taps and a padding of %lld leave no element",
                    (long long)n, (long long)size, (long long)padding[a]);
            return false;
        }
    }
    return true;
}

Ref g_conv(Graph *g, Ref x, Ref w, const int64_t *stride, const int64_t *lo, const int64_t *hi,
           const int64_t *dilation, int64_t groups)
{
    int64_t out[MAX_RANK];
    if (x == NONE || w == NONE)
        return NONE;
    if (rank(g, x) < 3 || rank(g, x) > 5 || rank(g, w) != rank(g, x))
        return g_error(g, E0223,
                       "a convolution takes x[N,C,..] and weight[O,C,..] of 3 to 5 axes, "
                       "not %s and %s",
                       type_text(&g->cx->perm, type_of(g, x)),
                       type_text(&g->cx->perm, type_of(g, w)));
    int64_t O = dim(g, w, 0), Cg = dim(g, w, 1);
    if (groups < 1 || O % groups != 0 || dim(g, x, 1) != groups * Cg)
        return wrong_channels(g, x, w, groups);
    if (!conv_extents(g, x, w, stride, lo, hi, dilation, out))
        return NONE;
    Indices s = {.n = 0};
    int spatial = rank(g, x) - 2;
    MapDim xm[MAX_RANK], wm[MAX_RANK];
    xm[0] = pure(new_index(&s, dim(g, x, 0)));
    int group = groups > 1 ? new_index(&s, groups) : -1;
    wm[0] = pure(new_index(&s, O / groups));
    for (int a = 0; a < spatial; a++)
        xm[a + 2] = map_term(map_const(-lo[a]), new_index(&s, out[a]), stride[a]);
    int n_out = s.n;
    xm[1] = wm[1] = pure(new_index(&s, Cg));
    for (int a = 0; a < spatial; a++) {
        int tap = new_index(&s, dim(g, w, a + 2));
        xm[a + 2] = map_term(xm[a + 2], tap, dilation[a]);
        wm[a + 2] = pure(tap);
    }
    if (groups > 1) {
        xm[1] = map_term(xm[1], group, Cg);
        wm[0] = map_term(wm[0], group, O / groups);
    }
    int64_t shape[MAX_RANK] = {dim(g, x, 0), O};
    memcpy(shape + 2, out, (size_t)spatial * sizeof *out);
    Ref y = g_contract(g, x, w, s.extent, n_out, s.n, xm, wm);
    return g_reshape(g, y, 2 + spatial, shape);
}

/* The contraction of a convolution, whose axes may have been regrouped behind it. */
static Ref contraction_of(Graph *g, Ref conv)
{
    return op_of(g, conv) == OP_contract ? conv : arg(g, conv, 0);
}

/* The input gradient of a convolution from the result back to x. */
Ref g_conv_transpose(Graph *g, Ref x, Ref w, const int64_t *stride, const int64_t *padding,
                     const int64_t *extra, const int64_t *dilation, int64_t groups)
{
    if (x == NONE || w == NONE)
        return NONE;
    if (rank(g, x) < 3 || rank(g, x) > 5 || rank(g, w) != rank(g, x))
        return g_error(g, E0223,
                       "a transposed convolution takes x[N,C,..] and weight[C,O,..] of 3 to 5 "
                       "axes, not %s and %s",
                       type_text(&g->cx->perm, type_of(g, x)),
                       type_text(&g->cx->perm, type_of(g, w)));
    if (groups < 1 || groups > (int64_t)1 << 40 || dim(g, x, 1) != dim(g, w, 0) ||
        dim(g, x, 1) % groups != 0)
        return g_error(g, E0203, "cannot convolve %s transposed with %s in %lld groups",
                       type_text(&g->cx->perm, type_of(g, x)),
                       type_text(&g->cx->perm, type_of(g, w)), (long long)groups);
    Type t = *type_of(g, x);
    if (!mul_size(groups, dim(g, w, 1), &t.dim[1]) ||
        !conv_transpose_extents(g, x, w, stride, padding, extra, dilation, t.dim + 2))
        return NONE;
    Ref to = g_full(g, t, 0); /* for its shape: the gradient does not read it */
    Ref conv = g_conv(g, to, w, stride, padding, padding, dilation, groups);
    if (conv == NONE)
        return NONE;
    Ref n = contraction_of(g, conv);
    Ref ct = g_reshape(g, x, rank(g, n), type_of(g, n)->dim);
    Ref y = g_contract_adjoint(g, n, ct, 0);
    return y == REF_ZERO ? to : y; /* sums of nothing */
}

/* ---- einsum ----------------------------------------------------------------- */

/* Reads the letters of one operand into its map; new letters become summed indices. */
static const char *read_letters(Graph *g, const char *spec, Ref x, Indices *s, char *letter,
                                MapDim *map)
{
    int axis = 0;
    for (; *spec >= 'A' && *spec <= 'z'; spec++, axis++) {
        int64_t extent = axis < rank(g, x) ? dim(g, x, axis) : -1;
        int i = 0;
        while (i < s->n && letter[i] != *spec)
            i++;
        if (extent < 0 || (i == MAX_INDICES))
            return NULL;
        if (i == s->n)
            letter[new_index(s, extent)] = *spec;
        if (s->extent[i] < 0)
            s->extent[i] = extent;
        if (s->extent[i] != extent)
            return NULL;
        map[axis] = pure(i);
    }
    return axis == rank(g, x) ? spec : NULL;
}

/* Letters that neither the result nor the other operand has, which x has once, are summed up, and
 * leave its part of the spec. */
static Ref sum_alone(Graph *g, Ref x, const char *spec, const char *other, const char *out,
                     char *left)
{
    bool alone[MAX_RANK] = {false};
    int n = rank(g, x), n_left = 0;
    for (int a = 0; a < n; a++) {
        const char *rest = other;
        while (*rest != spec[a] && *rest >= 'A' && *rest <= 'z')
            rest++;
        alone[a] = *rest != spec[a] && strchr(out, spec[a]) == NULL;
        for (int i = 0; i < n; i++)
            alone[a] = alone[a] && (i == a || spec[i] != spec[a]);
        if (!alone[a])
            left[n_left++] = spec[a];
    }
    left[n_left] = '\0';
    return n_left < n ? g_reduce_axes(g, OP_sum, x, alone, false) : x;
}

Ref g_einsum(Graph *g, const char *spec, Ref x, Ref y)
{
    if (x == NONE || y == NONE)
        return NONE;
    Indices s = {.n = 0};
    char letter[MAX_INDICES];
    MapDim xm[MAX_RANK], ym[MAX_RANK];
    const char *arrow = strstr(spec, "->");
    for (const char *c = arrow == NULL ? "" : arrow + 2; *c != '\0' && s.n < MAX_RANK; c++)
        letter[new_index(&s, -1)] = *c;
    int n_out = s.n;
    const char *second = read_letters(g, spec, x, &s, letter, xm), *rest = NULL;
    if (second != NULL && *second == ',')
        rest = read_letters(g, ++second, y, &s, letter, ym);
    bool whole = rest != NULL && rest == arrow && strlen(arrow) == (size_t)n_out + 2;
    for (int i = 0; i < n_out; i++)
        whole = whole && s.extent[i] >= 0;
    if (!whole)
        return g_error(g, E0203, "`%s` does not fit %s and %s", spec,
                       type_text(&g->cx->perm, type_of(g, x)),
                       type_text(&g->cx->perm, type_of(g, y)));
    if (s.n - n_out > MAX_SUMMED) { /* fewer letters than that are left */
        char left[2][MAX_RANK + 1];
        x = sum_alone(g, x, spec, second, arrow + 2, left[0]);
        y = sum_alone(g, y, second, spec, arrow + 2, left[1]);
        return g_einsum(g, arena_printf(&g->cx->perm, "%s,%s%s", left[0], left[1], arrow), x, y);
    }
    return g_contract(g, x, y, s.extent, n_out, s.n, xm, ym);
}
