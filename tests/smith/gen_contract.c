/* Policies: contractions, layers, indexing. */
#include "gen.h"

#include <math.h>
#include <string.h>

/* The bounds of a sum of n products. */
static Var summed(const Var *x, const Var *y, double n, int rank, const int64_t *dim)
{
    Var v = shaped(x, rank, dim);
    v.trained = x->trained || y->trained;
    v.hi = magnitude(x) * magnitude(y) * n, v.lo = -v.hi;
    return v;
}

/* ---- products of matrices --------------------------------------------------------- */

bool make_matmul(Gen *g)
{
    Var *x = gen_pick(g, has_axes);
    if (x == NULL || x->rank - x->batch < 1)
        return false;
    int64_t n = gen_extent(g), k = x->dim[x->rank - 1], dim[MAX_RANK];
    bool turned = gen_chance(g, 40);
    const int64_t shape[] = {turned ? n : k, turned ? k : n};
    Var *w = gen_param(g, x->t, 2, shape);
    memcpy(dim, x->dim, sizeof dim);
    dim[x->rank - 1] = n;
    Var v = summed(x, w, (double)k, x->rank, dim);
    v.batch = x->batch;
    const char *form = turned ? "%s @ transpose(%s)" : "%s @ %s";
    return gen_let(g, v, form, x->name, w->name) != NULL;
}

/* x with its own transpose (attention's scores), or with a value of the same batches. */
bool make_batched(Gen *g)
{
    Var *x = gen_pick(g, is_matrix);
    if (x == NULL || x->rank - x->batch < 2)
        return false;
    int64_t dim[MAX_RANK];
    int r = x->rank;
    memcpy(dim, x->dim, sizeof dim);
    bool outer = gen_chance(g, 50);
    int64_t m = x->dim[r - 2], k = x->dim[r - 1];
    dim[r - 2] = dim[r - 1] = outer ? m : k;
    Var v = summed(x, x, (double)(outer ? k : m), r, dim);
    v.batch = x->batch;
    const char *form = outer ? "%s @ transpose(%s * 0.5)" : "transpose(%s) @ %s";
    return gen_let(g, v, form, x->name, x->name) != NULL;
}

bool make_einsum(Gen *g)
{
    static const char *const spec[] = {"ij,jk->ik", "ij,kj->ki", "ij,jk->k",
                                       "ij,ij->j",  "ij,kl->jl", "ij,jk->jik"};
    Var *x = gen_pick(g, is_matrix);
    if (x == NULL || x->rank != 2 || x->batch)
        return false;
    int s = gen_int(g, 0, 5);
    int64_t i = x->dim[0], j = x->dim[1], k = gen_extent(g), l = gen_int(g, 1, 3);
    const int64_t other[][2] = {{j, k}, {k, j}, {j, k}, {i, j}, {k, l}, {j, k}};
    const int64_t to[][3] = {{i, k}, {k, i}, {k}, {j}, {j, l}, {j, i, k}};
    static const int rank[] = {2, 2, 1, 1, 2, 3};
    const double n[] = {(double)j, (double)j, (double)(i * j), (double)i, (double)(i * k), 1};
    Var *w = gen_param(g, x->t, 2, other[s]);
    Var v = summed(x, w, n[s], rank[s], to[s]);
    v.batch = false;
    return gen_let(g, v, "einsum(\"%s\", %s, %s)", spec[s], x->name, w->name) != NULL;
}

/* ---- convolutions ----------------------------------------------------------------- */

/* Any value as x[N, C, L] or x[N, C, H, W]. */
static Var *as_picture(Gen *g, int axes)
{
    Var *x = gen_pick(g, has_axes);
    if (x == NULL)
        return NULL;
    if (x->rank == axes + 2)
        return x;
    int64_t dim[MAX_RANK] = {x->batch ? x->dim[0] : 1, 1, 1, 1};
    int64_t left = elems(x) / dim[0];
    dim[1] = left % 2 == 0 ? 2 : left % 3 == 0 ? 3 : 1;
    left /= dim[1];
    if (axes == 2)
        dim[2] = left % 4 == 0 ? 4 : left % 5 == 0 ? 5 : left % 3 == 0 ? 3 : 1;
    dim[axes + 1] = axes == 2 ? left / dim[2] : left;
    Var v = shaped(x, axes + 2, dim);
    v.batch = x->batch;
    return gen_let(g, v, "reshape(%s, %s)", x->name, gen_shape(g, axes + 2, dim, v.batch));
}

typedef struct Conv {
    int64_t out, groups, kernel[2], stride[2], padding[2], dilation[2];
} Conv;

static bool draw_conv(Gen *g, const Var *x, int axes, Conv *c, int64_t *dim)
{
    c->groups = x->dim[1] > 1 && gen_chance(g, 35) ? x->dim[1] : 1;
    c->out = c->groups * gen_int(g, 1, 3);
    dim[0] = x->dim[0];
    dim[1] = c->out;
    for (int i = 0; i < axes; i++) {
        c->kernel[i] = gen_int(g, 1, 3);
        c->stride[i] = gen_int(g, 1, 2);
        c->padding[i] = gen_int(g, 0, 2);
        c->dilation[i] = gen_int(g, 1, 2);
        int64_t span = x->dim[i + 2] + 2 * c->padding[i] - c->dilation[i] * (c->kernel[i] - 1) - 1;
        if (span < 0)
            return false;
        dim[i + 2] = span / c->stride[i] + 1;
    }
    return true;
}

/* The same settings, from coarse to fine. */
static bool draw_transposed(Gen *g, const Var *x, int axes, Conv *c, int64_t *extra, int64_t *dim)
{
    if (!draw_conv(g, x, axes, c, dim))
        return false;
    for (int i = 0; i < axes; i++) {
        extra[i] = gen_int(g, 0, (int)c->stride[i] - 1);
        dim[i + 2] = (x->dim[i + 2] - 1) * c->stride[i] - 2 * c->padding[i] +
                     c->dilation[i] * (c->kernel[i] - 1) + extra[i] + 1;
        if (dim[i + 2] < 1 || dim[i + 2] > 40)
            return false;
    }
    return true;
}

static bool make_transposed(Gen *g, const Var *x, int axes)
{
    Conv c;
    int64_t dim[MAX_RANK], extra[2];
    if (!draw_transposed(g, x, axes, &c, extra, dim))
        return false;
    const int64_t shape[] = {x->dim[1], c.out / c.groups, c.kernel[0], c.kernel[1]};
    Var *w = gen_param(g, x->t, axes + 2, shape);
    double taps = (double)(x->dim[1] * shape[2] * (axes == 2 ? shape[3] : 1));
    Var v = summed(x, w, taps, axes + 2, dim);
    v.batch = x->batch;
    return gen_let(g, v,
                   "conv_transpose(%s, %s, stride = %s, padding = %s, output_padding = %s, "
                   "dilation = %s, groups = %lld)",
                   x->name, w->name, gen_shape(g, axes, c.stride, false),
                   gen_shape(g, axes, c.padding, false), gen_shape(g, axes, extra, false),
                   gen_shape(g, axes, c.dilation, false), (long long)c.groups) != NULL;
}

bool make_conv(Gen *g)
{
    int axes = gen_int(g, 1, 2);
    Var *x = as_picture(g, axes);
    Conv c;
    int64_t dim[MAX_RANK];
    if (x != NULL && gen_chance(g, 25))
        return make_transposed(g, x, axes);
    if (x == NULL || !draw_conv(g, x, axes, &c, dim))
        return false;
    const int64_t shape[] = {c.out, x->dim[1] / c.groups, c.kernel[0], c.kernel[1]};
    Var *w = gen_param(g, x->t, axes + 2, shape);
    Var v = summed(x, w, (double)(shape[1] * shape[2] * (axes == 2 ? shape[3] : 1)), axes + 2, dim);
    v.batch = x->batch;
    return gen_let(g, v, "conv(%s, %s, stride = %s, padding = %s, dilation = %s, groups = %lld)",
                   x->name, w->name, gen_shape(g, axes, c.stride, false),
                   gen_shape(g, axes, c.padding, false), gen_shape(g, axes, c.dilation, false),
                   (long long)c.groups) != NULL;
}

/* ---- layers of the library -------------------------------------------------------- */

bool make_layer(Gen *g)
{
    Var *x = gen_pick(g, has_axes);
    if (x == NULL || x->rank - x->batch < 1)
        return false;
    Var v = *x;
    int64_t n = gen_extent(g);
    v.trained = true;
    v.hi = 2 * magnitude(x) + 1, v.lo = -v.hi;
    v.dim[x->rank - 1] = n;
    int id = g->blocks++;
    switch (gen_int(g, 0, 3)) {
    case 0:
        v.dim[x->rank - 1] = x->dim[x->rank - 1];
        return gen_let(g, v, "nn.swiglu(%s, %lld) as block%d", x->name, (long long)n, id) != NULL;
    case 1:
        return gen_let(g, v, "nn.mlp(%s, [4, %lld]) as block%d", x->name, (long long)n, id) != NULL;
    default:
        return gen_let(g, v, "nn.linear(%s, %lld%s) as block%d", x->name, (long long)n,
                       gen_chance(g, 30) ? ", bias = false" : "", id) != NULL;
    }
}

static bool is_sequence(const Var *v)
{
    return is_matrix(v) && v->rank - v->batch >= 2 && v->dim[v->rank - 1] % 2 == 0;
}

bool make_rotary(Gen *g)
{
    Var *x = gen_pick(g, is_sequence);
    if (x == NULL)
        return false;
    Var v = *x;
    v.hi = 2 * magnitude(x), v.lo = -v.hi;
    return gen_let(g, v, "nn.rotary(%s, base = %d, first = %d)", x->name, (int)gen_int(g, 2, 10000),
                   (int)gen_int(g, 0, 3)) != NULL;
}

/* Heads of two elements, two queries for each key. */
bool make_grouped(Gen *g)
{
    Var *x = gen_pick(g, is_sequence);
    if (x == NULL || x->rank != 3 || x->dim[2] % 8 != 0 || g->in_scan)
        return false;
    Var v = *x;
    v.trained = true;
    v.hi = 2 * magnitude(x) + 1, v.lo = -v.hi;
    int heads = (int)x->dim[2] / 2;
    return gen_let(g, v, "nn.grouped_attention(%s, %d, %d) as block%d", x->name, heads, heads / 2,
                   g->blocks++) != NULL;
}

/* One block called twice with the same weights, or in a loop with its own. */
bool make_shared(Gen *g)
{
    Var *x = gen_pick(g, has_axes);
    if (x == NULL || x->rank - x->batch < 1 || g->in_scan)
        return false;
    long long n = x->dim[x->rank - 1];
    int id = g->blocks++;
    Var v = *x;
    v.trained = true;
    v.lo = -1, v.hi = 1;
    if (gen_chance(g, 50)) {
        Var *y = gen_let(g, v, "tanh(nn.linear(%s, %lld) as block%d)", x->name, n, id);
        return gen_let(g, v, "tanh(nn.linear(%s + 0.5, %lld) share block%d)", y->name, n, id) !=
               NULL;
    }
    Var *y = gen_let(g, v, "tanh(%s)", x->name);
    gen_line(g, "for i in 0..%d {", gen_int(g, 2, 3));
    gen_line(g, "    %s = tanh(%s + (nn.linear(%s, %lld) as block%d[i]))", y->name, y->name,
             y->name, n, id);
    gen_line(g, "}");
    return true;
}

/* So many groups of x's channels; 0: x has none, or too few elements in each. */
static int64_t groups_of(Gen *g, const Var *x)
{
    int64_t n[8], count = 0;
    for (int64_t i = 1; x->rank >= 2 && i <= x->dim[1] && count < 8; i++)
        if (x->dim[1] % i == 0 && elems(x) / x->dim[0] / i >= 3)
            n[count++] = i;
    return count == 0 ? 0 : n[gen_int(g, 0, (int)count - 1)];
}

bool make_norm(Gen *g)
{
    enum { LAYER, RMS, BATCH, GROUP, INSTANCE };
    static const char *const f[] = {"layer", "rms", "batch", "group", "instance"};
    Var *x = gen_pick(g, has_axes);
    int k = gen_int(g, LAYER, INSTANCE);
    if (x == NULL || g->in_scan || x->rank - x->batch < 1)
        return false;
    int64_t groups = k == GROUP ? groups_of(g, x) : 0;
    bool channels = x->rank >= 2 && elems(x) / x->dim[1] >= 3;
    bool planes = x->rank >= 3 && elems(x) / x->dim[0] / x->dim[1] >= 3;
    if ((k == BATCH && !channels) || (k == GROUP && groups == 0) || (k == INSTANCE && !planes))
        k = LAYER;
    if ((k == LAYER || k == RMS) && x->dim[x->rank - 1] < 3)
        return false;
    Var v = *x;
    v.trained = v.trained || k != INSTANCE;
    v.hi = sqrt((double)elems(x)) + 0.1, v.lo = -v.hi;
    if (k == INSTANCE)
        return gen_let(g, v, "nn.instance_norm(%s, eps = 0.01)", x->name) != NULL;
    if (k == GROUP)
        return gen_let(g, v, "nn.group_norm(%s, %lld, eps = 0.01) as block%d", x->name,
                       (long long)groups, g->blocks++) != NULL;
    return gen_let(g, v, "nn.%s_norm(%s%s) as block%d", f[k], x->name,
                   k != BATCH ? ", eps = 0.01" : "", g->blocks++) != NULL;
}

/* ---- indices ---------------------------------------------------------------------- */

static bool is_index(const Var *v)
{
    return is_int(v) && v->lo >= 0 && v->hi < 40 && v->rank < 3;
}

static Var *new_index(Gen *g, int64_t range)
{
    const int64_t dim[] = {g->batch > 0 && gen_chance(g, 50) ? g->batch : gen_extent(g),
                           gen_int(g, 1, 4)};
    return gen_input(g, gen_chance(g, 60) ? I32 : I64, gen_int(g, 0, 2), dim, range);
}

bool make_gather(Gen *g)
{
    Var *index = gen_chance(g, 50) ? gen_pick(g, is_index) : NULL;
    int64_t rows = index != NULL ? (int64_t)index->hi + 1 : gen_extent(g);
    if (index == NULL)
        index = new_index(g, rows);
    int64_t dim[MAX_RANK] = {rows, gen_extent(g)}, to[MAX_RANK];
    int r = gen_int(g, 1, 2);
    Var *table = gen_param(g, g->main, r, dim);
    memcpy(to, index->dim, sizeof to);
    if (r == 2)
        to[index->rank] = dim[1];
    Var v = shaped(table, index->rank + r - 1, to);
    v.batch = index->batch;
    const char *form = gen_chance(g, 60) ? "%s[%s]" : "gather(%s, %s)";
    return gen_let(g, v, form, table->name, index->name) != NULL;
}

/* An index of one element for each place of the other axes. */
bool make_take(Gen *g)
{
    Var *x = gen_pick(g, has_axes);
    int axis = x == NULL ? -1 : gen_axis(g, x, false);
    if (axis < 0)
        return false;
    int64_t dim[MAX_RANK];
    memcpy(dim, x->dim, sizeof dim);
    memmove(dim + axis, dim + axis + 1, sizeof(int64_t) * (size_t)(x->rank - axis - 1));
    Var v = shaped(x, x->rank - 1, dim);
    v.batch = x->batch;
    if (gen_chance(g, 40))
        return gen_let(g, v, "take_along(%s, argmin(stop_gradient(%s), axis = %d), axis = %d)",
                       x->name, x->name, axis, axis) != NULL;
    Var *index = gen_input(g, I32, x->rank - 1, dim, x->dim[axis]);
    if (index->batch != v.batch)
        return false;
    return gen_let(g, v, "take_along(%s, %s, axis = %d)", x->name, index->name, axis) != NULL;
}

bool make_scatter(Gen *g)
{
    Var *x = gen_pick(g, has_axes);
    if (x == NULL || x->batch || x->rank > 3)
        return false;
    int64_t n = gen_extent(g), dim[MAX_RANK];
    Var *index = gen_input(g, I32, 1, &n, x->dim[0]);
    if (index->batch)
        return false;
    memcpy(dim, x->dim, sizeof dim);
    dim[0] = n;
    Var *update = gen_param(g, x->t, x->rank, dim);
    Var v = *x;
    v.trained = true;
    v.hi = magnitude(x) + magnitude(update) * (double)(n < 3 ? n : 3), v.lo = -v.hi;
    return gen_let(g, v, "scatter_add(%s, %s, %s)", x->name, index->name, update->name) != NULL;
}

bool make_one_hot(Gen *g)
{
    Var *index = gen_chance(g, 70) ? gen_pick(g, is_index) : NULL;
    if (index == NULL)
        index = new_index(g, gen_int(g, 2, 6));
    int64_t n = (int64_t)index->hi + 1;
    Var v = *index;
    v.t = g->main;
    v.trained = false;
    v.lo = 0, v.hi = 1;
    v.dim[v.rank++] = n;
    return gen_let(g, v, "one_hot(%s, %lld, %s)", index->name, (long long)n, dtype_name(v.t)) !=
           NULL;
}

/* A causal softmax: -inf goes through exp and disappears. */
bool make_triangle(Gen *g)
{
    Var *x = gen_pick(g, is_matrix);
    if (x == NULL || x->rank - x->batch < 2)
        return false;
    Var v = *x;
    if (gen_chance(g, 30)) {
        v.lo = fmin(v.lo, 0), v.hi = fmax(v.hi, 0);
        return gen_let(g, v, "where(lower_triangle(%s), %s, 0)", x->name, x->name) != NULL;
    }
    v.lo = 0, v.hi = 1;
    return gen_let(g, v, "softmax(where(lower_triangle(%s), %s, -inf))", x->name, x->name) != NULL;
}

/* Scores of all pairs along an axis: far more than what they are made of, so that the compiler
 * takes some rows at a time. */
bool make_attention(Gen *g)
{
    Var *x = gen_pick(g, is_matrix);
    if (x == NULL || x->t == F16 || x->t == BF16 || g->in_scan || x->rank + 2 > MAX_RANK)
        return false;
    int r = x->rank;
    int64_t dim[MAX_RANK];
    memcpy(dim, x->dim, sizeof dim);
    dim[r] = 1;
    Var v = shaped(x, r + 1, dim);
    v.batch = x->batch;
    v.lo = x->lo, v.hi = x->hi;
    bool drops = !g->plain && gen_chance(g, 30);
    if (drops)
        v.lo = fmin(2 * v.lo, 0), v.hi = fmax(2 * v.hi, 0);
    const char *n = x->name;
    return gen_let(g, v,
                   "nn.attend(insert_axis(%s, %d), insert_axis(%s * 0.5, %d), "
                   "insert_axis(%s, %d), %s%s)",
                   n, r, n, r, n, r, gen_chance(g, 50) ? "true" : "false",
                   drops ? ", 0.5" : "") != NULL;
}

/* Cross-entropy with labels, one value for each row. */
bool make_loss_rows(Gen *g)
{
    Var *x = gen_pick(g, is_matrix);
    if (x == NULL || x->t == F16 || x->t == BF16 || g->in_scan)
        return false;
    Var *label = gen_input(g, I32, x->rank - 1, x->dim, x->dim[x->rank - 1]);
    if (label->batch != x->batch)
        return false;
    Var v = shaped(x, x->rank - 1, x->dim);
    v.batch = x->batch;
    v.lo = 0, v.hi = x->hi - x->lo + 4;
    return gen_let(g, v, "nn.cross_entropy(%s, %s%s)", x->name, label->name,
                   gen_chance(g, 30) ? ", smoothing = 0.1" : "") != NULL;
}

/* Several heads over the same rows, each so wide that the compiler takes some rows at a time
 * (chunk.c): those of one head meet those of the others, and the reverse of all. */
bool make_heads(Gen *g)
{
    static const char *const form[] = {"sum(softmax(%s) * %s, axis = -1)",
                                       "mean(tanh(%s) * %s, axis = -1)",
                                       "max(%s, axis = -1) + sum(0.1 * %s, axis = -1)"};
    Var *x = gen_pick(g, is_matrix);
    if (x == NULL || x->t == F16 || x->t == BF16 || g->in_scan)
        return false;
    int64_t dim[MAX_RANK], width = x->dim[x->rank - 1] * 6 + gen_int(g, 0, 5);
    memcpy(dim, x->dim, sizeof dim);
    dim[x->rank - 1] = width;
    Var wide = shaped(x, x->rank, dim), row = shaped(x, x->rank - 1, x->dim);
    wide.batch = row.batch = x->batch;
    wide.trained = row.trained = true;
    wide.hi = magnitude(x) * 2, wide.lo = -wide.hi;
    if (elems(&wide) > gen_most(g))
        return false;
    int heads = gen_int(g, 2, 4), id = g->blocks;
    for (int i = 0; i < heads; i++) {
        bool again = i > 0 && gen_chance(g, 25);
        Var *y = gen_let(g, wide, "nn.linear(%s, %lld) %s block%d", x->name, (long long)width,
                         again ? "share" : "as", again ? id : g->blocks++);
        row.hi = magnitude(y) * 2, row.lo = -row.hi;
        y->uses++;
        const char *e = form[gen_int(g, 0, 2)];
        gen_let(g, row, e, y->name, y->name);
    }
    return true;
}
