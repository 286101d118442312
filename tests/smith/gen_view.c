/* Policies: views and reductions. */
#include "gen.h"

#include <math.h>
#include <string.h>

/* ---- views ------------------------------------------------------------------------ */

/* Moves a factor of one axis to a new one, joins two neighbours, or makes it flat. */
bool make_reshape(Gen *g)
{
    Var *x = gen_pick(g, has_axes);
    if (x == NULL)
        return false;
    int64_t dim[MAX_RANK];
    int rank = 0, first = x->batch, at = gen_axis(g, x, false), way = gen_int(g, 0, 2);
    if (at < 0)
        return false;
    for (int i = 0; i < x->rank; i++) {
        int64_t by = x->dim[i] % 2 == 0 ? 2 : x->dim[i] % 3 == 0 ? 3 : x->dim[i];
        if (i == at && way == 0 && x->rank < 5) {
            dim[rank++] = by;
            dim[rank++] = x->dim[i] / by;
        } else if (rank > first && (way == 2 || (way == 1 && i == at))) {
            dim[rank - 1] *= x->dim[i];
        } else {
            dim[rank++] = x->dim[i];
        }
    }
    Var v = shaped(x, rank, dim);
    v.batch = x->batch;
    return gen_let(g, v, "reshape(%s, %s)", x->name, gen_shape(g, rank, dim, v.batch)) != NULL;
}

bool make_transpose(Gen *g)
{
    Var *x = gen_pick(g, is_matrix);
    if (x == NULL || x->rank - x->batch < 2)
        return false;
    int64_t perm[MAX_RANK], dim[MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        perm[i] = i;
    for (int i = x->rank - 1; i > x->batch; i--) {
        int j = gen_int(g, x->batch, i);
        int64_t keep = perm[i];
        perm[i] = perm[j];
        perm[j] = keep;
    }
    for (int i = 0; i < x->rank; i++)
        dim[i] = x->dim[perm[i]];
    Var v = shaped(x, x->rank, dim);
    v.batch = x->batch;
    return gen_let(g, v, "transpose(%s, %s)", x->name, gen_shape(g, x->rank, perm, false)) != NULL;
}

static const char *colons(Gen *g, int n)
{
    Text t;
    text_init(&t, g->body.arena);
    text_put(&t, "", 0);
    for (int i = 0; i < n; i++)
        text_add(&t, ":, ");
    return t.at;
}

/* x[a:b], with steps either way, or one element. */
bool make_slice(Gen *g)
{
    Var *x = gen_pick(g, has_axes);
    int axis = x == NULL ? -1 : gen_axis(g, x, false);
    if (axis < 0)
        return false;
    int64_t dim[MAX_RANK], n = x->dim[axis];
    memcpy(dim, x->dim, sizeof dim);
    const char *skip = colons(g, axis);
    int64_t lo = random_below(&g->rng, n), step = gen_int(g, 1, 3);
    if (gen_chance(g, 25)) {
        memmove(dim + axis, dim + axis + 1, sizeof(int64_t) * (size_t)(x->rank - axis - 1));
        Var v = shaped(x, x->rank - 1, dim);
        v.batch = x->batch;
        int64_t at = gen_chance(g, 50) ? lo : lo - n;
        return gen_let(g, v, "%s[%s%lld]", x->name, skip, (long long)at) != NULL;
    }
    dim[axis] = gen_chance(g, 50) ? (n - lo + step - 1) / step : (lo + step) / step;
    bool down = dim[axis] != (n - lo + step - 1) / step;
    Var v = shaped(x, x->rank, dim);
    v.batch = x->batch;
    if (down)
        return gen_let(g, v, "%s[%s%lld::-%lld]", x->name, skip, (long long)lo, (long long)step) !=
               NULL;
    if (step == 1)
        return gen_let(g, v, "%s[%s%lld:]", x->name, skip, (long long)lo) != NULL;
    return gen_let(g, v, "%s[%s%lld::%lld]", x->name, skip, (long long)lo, (long long)step) != NULL;
}

bool make_pad(Gen *g)
{
    Var *x = gen_pick(g, has_axes);
    int axis = x == NULL ? -1 : gen_axis(g, x, false);
    if (axis < 0)
        return false;
    int lo = gen_int(g, 0, 2), hi = gen_int(g, 0, 3);
    double value = gen_chance(g, 60) ? 0 : gen_real(g, -1, 1);
    Var v = *x;
    v.dim[axis] += lo + hi;
    v.lo = fmin(v.lo, value), v.hi = fmax(v.hi, value);
    return gen_let(g, v, "pad(%s, %d, lo = %d, hi = %d, value = %g)", x->name, axis, lo, hi,
                   value) != NULL;
}

/* A value, a slice of it and something else of its shape, one after the other; or stacked. */
bool make_concat(Gen *g)
{
    Var *x = gen_pick(g, has_axes);
    int axis = x == NULL ? -1 : gen_axis(g, x, false);
    if (axis < 0)
        return false;
    Var v = *x;
    if (gen_chance(g, 35) && x->rank < 4) {
        int at = gen_int(g, x->batch, x->rank);
        memmove(v.dim + at + 1, v.dim + at, sizeof(int64_t) * (size_t)(x->rank - at));
        v.dim[at] = 3;
        v.rank++;
        v.lo = fmin(fmin(v.lo, 2 * v.lo), -v.hi), v.hi = fmax(fmax(v.hi, 2 * v.hi), -v.lo);
        return gen_let(g, v, "stack([%s, %s * 2, -%s], axis = %d)", x->name, x->name, x->name,
                       at) != NULL;
    }
    v.dim[axis] = 2 * x->dim[axis] + 1;
    v.hi = magnitude(x) + 1, v.lo = -v.hi;
    int64_t thin[MAX_RANK];
    memcpy(thin, x->dim, sizeof thin);
    thin[axis] = 1;
    Var *p = x->batch ? NULL : gen_param(g, x->t, x->rank, thin);
    v.trained |= p != NULL;
    if (p == NULL)
        v.dim[axis]--;
    return gen_let(g, v, "concat([%s, %s%s1 - %s], axis = %d)", x->name, p != NULL ? p->name : "",
                   p != NULL ? ", " : "", x->name, axis) != NULL;
}

bool make_split(Gen *g)
{
    Var *x = gen_pick(g, has_axes);
    int axis = x == NULL ? -1 : gen_axis(g, x, false);
    if (axis < 0 || x->dim[axis] < 2)
        return false;
    Var v = *x, w = *x;
    v.dim[axis] = x->dim[axis] / 2;
    w.dim[axis] = x->dim[axis] - v.dim[axis];
    Var *p = gen_name(g, v), *q = gen_name(g, w);
    gen_line(g, "%s, %s = split(%s, [%lld, %lld], axis = %d)", p->name, q->name, x->name,
             (long long)v.dim[axis], (long long)w.dim[axis], axis);
    return true;
}

bool make_window(Gen *g)
{
    Var *x = gen_pick(g, has_axes);
    int axis = x == NULL ? -1 : gen_axis(g, x, false);
    if (axis < 0 || x->rank > 4)
        return false;
    int64_t size = gen_int(g, 1, 3), stride = gen_int(g, 1, 3), dilation = gen_int(g, 1, 2);
    int64_t lo = gen_int(g, 0, 1), hi = gen_int(g, 0, 2);
    int64_t span = x->dim[axis] + lo + hi - dilation * (size - 1) - 1;
    if (span < 0)
        return false;
    Var v = *x;
    memmove(v.dim + axis + 1, v.dim + axis, sizeof(int64_t) * (size_t)(x->rank - axis));
    v.dim[axis] = span / stride + 1;
    v.dim[axis + 1] = size;
    v.rank++;
    v.lo = fmin(v.lo, 0), v.hi = fmax(v.hi, 0);
    return gen_let(g, v,
                   "window(%s, %d, %lld, stride = %lld, dilation = %lld, lo = %lld, hi = %lld)",
                   x->name, axis, (long long)size, (long long)stride, (long long)dilation,
                   (long long)lo, (long long)hi) != NULL;
}

bool make_flip(Gen *g)
{
    Var *x = gen_pick(g, has_axes);
    int axis = x == NULL ? -1 : gen_axis(g, x, false);
    if (axis < 0)
        return false;
    Var v = *x;
    if (gen_chance(g, 50))
        return gen_let(g, v, "flip(%s, %d)", x->name, axis) != NULL;
    int n = gen_int(g, 2, 3);
    v.dim[axis] *= n;
    return gen_let(g, v, "repeat(%s, %d, axis = %d)", x->name, n, axis) != NULL;
}

bool make_insert(Gen *g)
{
    Var *x = gen_pick(g, is_float);
    if (x == NULL || x->rank > 3)
        return false;
    int axis = gen_int(g, x->batch, x->rank);
    Var v = *x;
    memmove(v.dim + axis + 1, v.dim + axis, sizeof(int64_t) * (size_t)(x->rank - axis));
    v.dim[axis] = 1;
    v.rank++;
    return gen_let(g, v, "insert_axis(%s, %d)", x->name, axis) != NULL;
}

bool make_broadcast(Gen *g)
{
    Var *x = gen_pick(g, is_float);
    if (x == NULL || x->batch || x->rank > 3)
        return false;
    int64_t dim[MAX_RANK];
    dim[0] = gen_extent(g);
    for (int i = 0; i < x->rank; i++)
        dim[i + 1] = x->dim[i] == 1 ? gen_extent(g) : x->dim[i];
    Var v = shaped(x, x->rank + 1, dim);
    v.batch = false;
    return gen_let(g, v, "broadcast(%s, %s)", x->name, gen_shape(g, v.rank, dim, false)) != NULL;
}

/* ---- reductions ------------------------------------------------------------------- */

typedef struct Axes {
    char text[40]; /* "axis = [0, 2]" */
    int64_t count; /* elements that become one */
    Var result;
} Axes;

/* Any axes, also the batch's where all are taken or its mean is meant. */
static Axes some_axes(Gen *g, const Var *x, bool keep, bool batch_too)
{
    Axes a = {.count = 1, .result = *x};
    Text t;
    text_init(&t, g->body.arena);
    int n = 0;
    bool taken[MAX_RANK] = {false};
    int must = gen_axis(g, x, batch_too);
    for (int i = 0; i < x->rank; i++)
        taken[i] = i == must || (gen_chance(g, 35) && (batch_too || i > 0 || !x->batch));
    a.result.rank = 0;
    for (int i = 0; i < x->rank; i++) {
        if (taken[i]) {
            text_add(&t, "%s%d", n++ ? ", " : "", gen_chance(g, 30) ? i - x->rank : i);
            a.count *= x->dim[i];
        }
        if (!taken[i] || keep)
            a.result.dim[a.result.rank++] = taken[i] ? 1 : x->dim[i];
    }
    snprintf(a.text, sizeof a.text, n == 1 ? "axis = %s" : "axis = [%s]", n ? t.at : "");
    a.result.batch = x->batch && !taken[0];
    return a;
}

bool make_reduce(Gen *g)
{
    static const char *const f[] = {"sum", "mean", "max", "min", "min", "logsumexp"};
    Var *x = gen_pick(g, has_axes);
    if (x == NULL)
        return false;
    bool keep = gen_chance(g, 40);
    int k = gen_int(g, 0, 5);
    Axes a = some_axes(g, x, keep, k < 2);
    if (a.count == 1 && gen_axis(g, x, k < 2) < 0)
        return false;
    if (k == 5 && strchr(a.text, '[') != NULL)
        k = 0;
    Var v = a.result;
    double n = (double)a.count;
    if (k == 0)
        v.lo *= n, v.hi *= n;
    if (k == 5)
        v.hi += log(n);
    return gen_let(g, v, "%s(%s, %s%s)", f[k], x->name, a.text, keep ? ", keep = true" : "") !=
           NULL;
}

bool make_prod(Gen *g)
{
    Var *x = gen_pick(g, has_axes);
    int axis = x == NULL ? -1 : gen_axis(g, x, false);
    if (axis < 0 || x->dim[axis] > 7)
        return false;
    Var v = *x;
    v.dim[axis] = 1;
    v.hi = pow(fmax(magnitude(x), 1), (double)x->dim[axis]), v.lo = -v.hi;
    return gen_let(g, v, "prod(%s, axis = %d, keep = true)", x->name, axis) != NULL;
}

bool make_cumsum(Gen *g)
{
    Var *x = gen_pick(g, has_axes);
    int axis = x == NULL ? -1 : gen_axis(g, x, false);
    if (axis < 0)
        return false;
    Var v = *x;
    double n = (double)x->dim[axis];
    v.lo = fmin(x->lo, x->lo * n), v.hi = fmax(x->hi, x->hi * n);
    return gen_let(g, v, "cumsum(%s, %d%s)", x->name, axis,
                   gen_chance(g, 40) ? ", reverse = true" : "") != NULL;
}

bool make_softmax(Gen *g)
{
    Var *x = gen_pick(g, has_axes);
    int axis = x == NULL ? -1 : gen_axis(g, x, false);
    if (axis < 0)
        return false;
    Var v = *x;
    if (gen_chance(g, 35)) {
        v.hi = 0, v.lo = -(x->hi - x->lo) - log((double)x->dim[axis]);
        return gen_let(g, v, "log_softmax(%s, axis = %d)", x->name, axis) != NULL;
    }
    v.lo = 0, v.hi = 1;
    return gen_let(g, v, "softmax(%s, axis = %d)", x->name, axis) != NULL;
}

bool make_arg(Gen *g)
{
    Var *x = gen_pick(g, has_axes);
    int axis = x == NULL ? -1 : gen_axis(g, x, false);
    if (axis < 0)
        return false;
    Var v = *x;
    memmove(v.dim + axis, v.dim + axis + 1, sizeof(int64_t) * (size_t)(x->rank - axis - 1));
    v.rank--;
    v.t = I32;
    v.lo = 0, v.hi = (double)x->dim[axis] - 1;
    return gen_let(g, v, "%s(stop_gradient(%s), axis = %d)",
                   gen_chance(g, 50) ? "argmax" : "argmin", x->name, axis) != NULL;
}

static bool is_bools(const Var *v)
{
    return is_bool(v) && v->rank > v->batch;
}

bool make_any(Gen *g)
{
    Var *x = gen_pick(g, is_bools);
    if (x == NULL)
        return make_logic(g);
    bool keep = gen_chance(g, 50);
    Axes a = some_axes(g, x, keep, false);
    return gen_let(g, a.result, "%s(%s, %s%s)", gen_chance(g, 50) ? "any" : "all", x->name, a.text,
                   keep ? ", keep = true" : "") != NULL;
}
