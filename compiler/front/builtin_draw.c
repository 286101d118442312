/* Random numbers. With a shape it is a draw, new in every step; without one it is an
 * initialiser, to which the parameter gives its shape. */
#include "eval.h"

#include <math.h>

static bool number_or(Build *b, const CallArgs *c, int i, double otherwise, double *out)
{
    *out = otherwise;
    return c->value[i] == NULL || want_number(b, c->value[i], c->at[i], "this", out);
}

static bool drawn_type(Build *b, const CallArgs *c, int i, DType *t)
{
    *t = F32;
    if (c->value[i] == NULL)
        return true;
    if (!want_dtype(b, c->value[i], c->at[i], t))
        return false;
    if (dtype_is_float(*t))
        return true;
    complain(b, E0209, c->at[i], "only floats are drawn, not %s", dtype_name(*t));
    return false;
}

bool draws_fit(Build *b, DType t, InitKind kind, double x, double y, Span span)
{
    const double deviations = 7; /* a normal draw lies within: sqrt(2 ln 2^32) */
    bool uniform = kind == INIT_UNIFORM;
    double lo = uniform ? x : x - deviations * y, hi = uniform ? y : x + deviations * y;
    double by = uniform ? y - x : y; /* what a draw is multiplied by */
    if (isfinite(dtype_round(t, lo)) && isfinite(dtype_round(t, hi)) &&
        isfinite(dtype_round(t, by)))
        return true;
    if (uniform)
        complain(b, E0204, span, "from %g to %g is beyond the range of %s", x, y, dtype_name(t));
    else
        complain(b, E0204, span, "draws around %g of deviation %g are beyond the range of %s", x, y,
                 dtype_name(t));
    return false;
}

/* A shape [batch, ..], or of something with the rows of a batch. */
static bool begins_with_rows(const Value *shape)
{
    const Value *first = value_is_items(shape) && shape->n > 0 ? shape->item[0] : shape;
    return first->kind == VALUE_INT && first->rows;
}

static Ref draw_shape(Build *b, const CallArgs *c, OpId op, Type t)
{
    Ref r = draw(b, op, t, c->call->span);
    if (begins_with_rows(c->value[0]))
        rows_begin(b, r);
    return r;
}

/* Between x and y, or around x with deviation y. */
static const Value *drawn(Build *b, const CallArgs *c, InitKind kind, double x, double y)
{
    int64_t dim[MAX_RANK];
    int rank;
    DType t;
    if (!want_shape(b, c->value[0], c->at[0], dim, &rank) || !drawn_type(b, c, 1, &t) ||
        !draws_fit(b, t, kind, x, y, c->call->span))
        return &value_poison;
    bool uniform = kind == INIT_UNIFORM;
    double by = uniform ? y - x : y;
    Ref r = draw_shape(b, c, uniform ? OP_uniform : OP_normal, type_make(t, rank, dim));
    if (by != 1 && r != NONE)
        r = g_scale(b->g, r, by);
    if (x != 0 && r != NONE) {
        Ref base = g_full(b->g, *type_of(b->g, r), x);
        r = g_add(b->g, r, base);
    }
    return made(b, r);
}

static const Value *shape_or_init(Build *b, const CallArgs *c, InitKind kind, double x, double y)
{
    if (c->value[0] == NULL && !b->in_init && b->frame->module != b->m->prelude) {
        Diag *d =
            complain(b, E0112, c->call->span, "`%s` is not given its argument `shape`", c->name);
        diag_help(b->cx, d,
                  "as in `%s(shape(x))`; without one it is the first value of a parameter",
                  c->name);
        return &value_poison;
    }
    return value_init(&b->arena, kind, x, y);
}

static const Value *bi_uniform(Build *b, const CallArgs *c)
{
    double low, high;
    int at = b->in_init ? 0 : 2;
    if (!number_or(b, c, at, 0, &low) || !number_or(b, c, at + 1, 1, &high))
        return &value_poison;
    if (!(low <= high)) {
        complain(b, E0208, c->call->span, "nothing lies between %g and %g", low, high);
        return &value_poison;
    }
    if (b->in_init || c->value[0] == NULL)
        return shape_or_init(b, c, INIT_UNIFORM, low, high);
    return drawn(b, c, INIT_UNIFORM, low, high);
}

static const Value *bi_normal(Build *b, const CallArgs *c)
{
    double mean, std;
    int at = b->in_init ? 0 : 2;
    if (!number_or(b, c, at, 0, &mean) || !number_or(b, c, at + 1, 1, &std))
        return &value_poison;
    if (!(std >= 0)) {
        complain(b, E0208, c->at[at + 1], "a deviation is not negative, and this is %g", std);
        return &value_poison;
    }
    if (b->in_init || c->value[0] == NULL)
        return shape_or_init(b, c, INIT_NORMAL, mean, std);
    return drawn(b, c, INIT_NORMAL, mean, std);
}

/* True with probability p. */
static const Value *bi_bernoulli(Build *b, const CallArgs *c)
{
    int64_t dim[MAX_RANK];
    int rank;
    double p;
    if (!want_shape(b, c->value[0], c->at[0], dim, &rank) ||
        !want_number(b, c->value[1], c->at[1], "a probability", &p))
        return &value_poison;
    if (!(p >= 0 && p <= 1)) {
        complain(b, E0208, c->at[1], "a probability lies in 0..1, and this is %s",
                 value_text(&b->cx->perm, c->value[1]));
        return &value_poison;
    }
    Type t = type_make(F32, rank, dim);
    Ref x = draw_shape(b, c, OP_uniform, t);
    Ref limit = g_full(b->g, t, p);
    return made(b, x == NONE ? NONE : g_binary(b->g, OP_lt, x, limit));
}

const Builtin builtin_draw_table[] = {
    {"uniform", "shape?, type?, low?, high?", bi_uniform,
     "Draws from low (0) to high (1), new in every step. Of a shape that begins with `batch`, or "
     "with the rows of another value, those are left out that a partial batch lacks, as long as "
     "rows are not mixed. Without a shape: first values of a parameter.",
     "uniform([2, 3], low = -1)"},
    {"normal", "shape?, type?, mean?, std?", bi_normal,
     "Normal draws of this mean (0) and deviation (1), as `uniform`. Without a shape: first values "
     "of a parameter.",
     "normal(shape(x), std = 0.1)"},
    {"bernoulli", "shape, p", bi_bernoulli, "True with probability p.",
     "where(bernoulli(shape(x), 0.9), x, 0)"},
    {.name = NULL},
};
