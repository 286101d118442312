/* Values as what is wanted of them: sizes, axes, tensors. */
#include "eval.h"

#include <math.h>
#include <string.h>

static bool wrong_kind(Build *b, const Value *v, Span span, const char *what, const char *wanted)
{
    if (v->kind == VALUE_POISON)
        return false;
    if (v->kind == VALUE_TENSOR) {
        Diag *d =
            complain(b, E0207, span, "%s must be known when the model is compiled, and this is %s",
                     what, value_text(&b->cx->perm, v));
        diag_help(b->cx, d,
                  "for a choice between values use `where`; sizes come from `dim` and "
                  "`shape`");
        return false;
    }
    complain(b, E0209, span, "%s is %s, and this is %s", what, wanted, value_kind_text(v));
    return false;
}

bool want_int(Build *b, const Value *v, Span span, const char *what, int64_t *out)
{
    if (v->kind == VALUE_FLOAT) {
        const char *whole = v->f == floor(v->f) && fabs(v->f) < 1e15 ? ".0" : "";
        Diag *d = complain(b, E0209, span, "%s is an integer, and this is %s%s", what,
                           value_text(&b->cx->perm, v), whole);
        bool written = v->text != NULL && *whole != 0;
        diag_help(b->cx, d, "%s",
                  written ? "an integer is written without a point"
                          : "`//` divides integers and rounds down");
        return false;
    }
    if (v->kind != VALUE_INT)
        return wrong_kind(b, v, span, what, "an integer");
    *out = v->i;
    return true;
}

bool want_number(Build *b, const Value *v, Span span, const char *what, double *out)
{
    if (!value_is_number(v))
        return wrong_kind(b, v, span, what, "a number");
    *out = value_number(v);
    return true;
}

bool want_bool(Build *b, const Value *v, Span span, const char *what, bool *out)
{
    if (v->kind != VALUE_BOOL)
        return wrong_kind(b, v, span, what, "true or false");
    *out = v->b;
    return true;
}

bool want_string(Build *b, const Value *v, Span span, const char *what, const char **out)
{
    if (v->kind != VALUE_STRING)
        return wrong_kind(b, v, span, what, "a string");
    *out = v->s;
    return true;
}

bool want_dtype(Build *b, const Value *v, Span span, DType *out)
{
    if (v->kind == VALUE_TENSOR) {
        *out = type_of(v->graph, v->ref)->dtype;
        return true;
    }
    if (v->kind == VALUE_FILL) {
        Diag *d = complain(b, E0209, span, "a constant has no type until it meets a tensor");
        diag_help(b->cx, d, "with its type it is made as `zeros([2, 3], f32)`");
        return false;
    }
    if (v->kind != VALUE_DTYPE)
        return wrong_kind(b, v, span, "this", "a type such as f32");
    *out = v->dtype;
    return true;
}

bool want_ints(Build *b, const Value *v, Span span, const char *what, int64_t *out, int max, int *n)
{
    *n = 1;
    if (!value_is_items(v))
        return want_int(b, v, span, what, out);
    if (v->n > max) {
        complain(b, E0209, span, "%s has at most %d integers, and these are %d", what, max, v->n);
        return false;
    }
    *n = v->n;
    for (int i = 0; i < v->n; i++)
        if (!want_int(b, v->item[i], span, what, &out[i]))
            return false;
    return true;
}

bool want_shape(Build *b, const Value *v, Span span, int64_t *dim, int *rank)
{
    if (!want_ints(b, v, span, "a shape", dim, MAX_RANK, rank))
        return false;
    for (int i = 0; i < *rank; i++)
        if (dim[i] < 0) {
            complain(b, E0208, span, "a size is not negative, and this is %lld", (long long)dim[i]);
            return false;
        }
    return true;
}

bool want_each(Build *b, const Value *v, Span span, const char *what, int64_t *out, int n)
{
    int got;
    if (!want_ints(b, v, span, what, out, MAX_RANK, &got))
        return false;
    if (!value_is_items(v)) {
        for (int i = 1; i < n; i++)
            out[i] = out[0];
    } else if (got != n) {
        const char *each = n == 1 ? "" : arena_printf(&b->arena, " or %d", n);
        complain(b, E0209, span, "%s is one integer%s, and these are %d", what, each, got);
        return false;
    }
    return true;
}

static bool axis_in(Build *b, int64_t axis, Span span, int rank, int *out)
{
    if (axis < -rank || axis >= rank) {
        if (rank == 0)
            complain(b, E0222, span, "there is no axis %lld: this is a scalar", (long long)axis);
        else
            complain(b, E0222, span, "there is no axis %lld: the axes are 0 to %d, or -%d to -1",
                     (long long)axis, rank - 1, rank);
        return false;
    }
    *out = (int)(axis < 0 ? axis + rank : axis);
    return true;
}

bool want_axis(Build *b, const Value *v, Span span, int rank, int *axis)
{
    int64_t i;
    return want_int(b, v, span, "an axis", &i) && axis_in(b, i, span, rank, axis);
}

bool want_axes(Build *b, const Value *v, Span span, int rank, bool *axes)
{
    int64_t list[MAX_RANK];
    int n = 0, axis;
    bool but = v != NULL && v->kind == VALUE_ALL_BUT;
    for (int i = 0; i < MAX_RANK; i++)
        axes[i] = v == NULL || but;
    if (v == NULL)
        return true;
    if (but) {
        for (int i = 0; i < v->n; i++) {
            if (!want_axis(b, v->item[i], span, rank, &axis))
                return false;
            axes[axis] = false;
        }
        return true;
    }
    if (!want_ints(b, v, span, "an axis", list, MAX_RANK, &n))
        return false;
    for (int i = 0; i < n; i++) {
        if (!axis_in(b, list[i], span, rank, &axis))
            return false;
        if (axes[axis]) {
            complain(b, E0108, span, "axis %d is given twice", axis);
            return false;
        }
        axes[axis] = true;
    }
    return true;
}

/* ---- shapes -------------------------------------------------------------- */

/* Nested lists of one shape, `depth` of them around; -1 where they are ragged or hold
 * something else. */
static int items_shape(const Value *v, int64_t dim[MAX_RANK], int depth)
{
    if (value_is_number(v) || v->kind == VALUE_BOOL)
        return 0;
    if (!value_is_items(v) || v->n == 0 || depth == MAX_RANK)
        return -1;
    int64_t first[MAX_RANK], other[MAX_RANK];
    int r = items_shape(v->item[0], first, depth + 1);
    for (int i = 1; i < v->n && r >= 0; i++)
        if (items_shape(v->item[i], other, depth + 1) != r ||
            memcmp(first, other, sizeof *dim * (size_t)r) != 0)
            return -1;
    dim[0] = v->n;
    for (int i = 0; i < r; i++)
        dim[i + 1] = first[i];
    return r < 0 ? -1 : r + 1;
}

int shape_of(const Value *v, int64_t *dim)
{
    if (v->kind == VALUE_TENSOR) {
        const Type *t = type_of(v->graph, v->ref);
        memcpy(dim, t->dim, sizeof t->dim);
        return t->rank;
    }
    if (v->kind == VALUE_FILL) {
        memcpy(dim, v->fill.dim, sizeof *dim * (size_t)v->fill.rank);
        return v->fill.rank;
    }
    if (!value_is_items(v))
        return value_is_number(v) || v->kind == VALUE_BOOL ? 0 : -1;
    return items_shape(v, dim, 0);
}

/* ---- constants as elements ----------------------------------------------- */

/* A double that rounds to a float or a half as the integer does: beyond 53 bits, what is cut off
 * makes it odd. */
static double to_odd(int64_t i)
{
    bool wide = i > (int64_t)1 << 53 || i < -((int64_t)1 << 53);
    if (wide && (i & 0x3ff) != 0)
        i = (i & ~(int64_t)0x3ff) | 0x400;
    return (double)i;
}

/* A double that rounds to the type as the number does that is written. */
static double rounded(const Value *v, DType t)
{
    double x;
    if (v->kind == VALUE_INT)
        return t == F64 ? (double)v->i : to_odd(v->i);
    if (v->text != NULL && t != F64 && read_to_odd(v->text, strlen(v->text), &x))
        return copysign(x, v->f);
    return v->f;
}

static bool fits_int(int64_t i, DType t)
{
    return t == I64 || (t == I32 && i >= INT32_MIN && i <= INT32_MAX) ||
           (t == U8 && i >= 0 && i <= 255);
}

bool number_as(Build *b, const Value *v, DType t, Span span, double *f, int64_t *i)
{
    *f = 0;
    *i = 0;
    if (v->kind == VALUE_BOOL && t == BOOL) {
        *i = v->b;
        return true;
    }
    if (value_is_number(v) && dtype_is_float(t)) {
        *f = rounded(v, t);
        if (*f != 0 && dtype_round(t, *f) == 0) /* what keeps a divisor from being 0, say */
            caution(b, E0204, span, "%s is 0 in %s", value_text(&b->cx->perm, v), dtype_name(t));
        if (!isfinite(*f) || isfinite(dtype_round(t, *f)))
            return true;
        Diag *d = complain(b, E0204, span, "%s is beyond the range of %s",
                           value_text(&b->cx->perm, v), dtype_name(t));
        diag_help(b->cx, d, "what is beyond every number is `inf`");
        return false;
    }
    if (v->kind == VALUE_INT && dtype_is_int(t) && fits_int(v->i, t)) {
        *i = v->i;
        return true;
    }
    Diag *d = complain(b, E0204, span, "%s is not a value of %s", value_text(&b->cx->perm, v),
                       dtype_name(t));
    if (value_is_number(v))
        diag_help(b->cx, d, "convert the other side: `cast(x, f32)`");
    return false;
}

static void store(void *data, int64_t at, DType t, double f, int64_t i)
{
    switch (t) {
    case F32:
        ((float *)data)[at] = (float)f;
        break;
    case F64:
        ((double *)data)[at] = f;
        break;
    case F16:
        ((uint16_t *)data)[at] = f64_to_f16(f);
        break;
    case BF16:
        ((uint16_t *)data)[at] = f64_to_bf16(f);
        break;
    case I32:
        ((int32_t *)data)[at] = (int32_t)i;
        break;
    case I64:
        ((int64_t *)data)[at] = i;
        break;
    default:
        ((uint8_t *)data)[at] = (uint8_t)i;
        break;
    }
}

static bool store_items(Build *b, const Value *v, DType t, Span span, void *data, int64_t *at)
{
    double f;
    int64_t i;
    if (value_is_items(v)) {
        for (int k = 0; k < v->n; k++)
            if (!store_items(b, v->item[k], t, span, data, at))
                return false;
        return true;
    }
    if (!number_as(b, v, t, span, &f, &i))
        return false;
    store(data, (*at)++, t, f, i);
    return true;
}

bool literal_data(Build *b, const Value *v, DType t, Span span, Type *type, void **data)
{
    int64_t dim[MAX_RANK], n = 0;
    int rank = shape_of(v, dim);
    if (rank < 0) {
        complain(b, E0209, span, "a tensor is made of numbers in lists of equal length");
        return false;
    }
    *type = type_make(t, rank, dim);
    *data = arena_alloc(&b->arena, (size_t)type_bytes(type));
    return store_items(b, v, t, span, *data, &n);
}

static Ref number_node(Build *b, const Value *v, DType t, Span span)
{
    double f;
    int64_t i;
    if (!number_as(b, v, t, span, &f, &i))
        return NONE;
    return dtype_is_float(t) ? g_const(b->g, t, f) : g_const_int(b->g, t, i);
}

Ref constant(Build *b, const Value *v, DType t, Span span)
{
    if (value_is_items(v)) {
        Type type;
        void *data;
        if (!literal_data(b, v, t, span, &type, &data))
            return NONE;
        return g_literal(b->g, type, data);
    }
    if (v->kind == VALUE_FILL) {
        Ref c = number_node(b, v->fill.number, t, span);
        return c == NONE ? NONE : g_broadcast(b->g, c, v->fill.rank, v->fill.dim);
    }
    return number_node(b, v, t, span);
}

Ref want_tensor(Build *b, const Value *v, Span span, DType if_constant)
{
    int64_t dim[MAX_RANK];
    if (v->kind == VALUE_TENSOR)
        return use(b, v);
    if (v->kind == VALUE_POISON)
        return NONE;
    if (shape_of(v, dim) < 0) {
        complain(b, E0209, span, "a tensor is wanted here, and this is %s", value_kind_text(v));
        return NONE;
    }
    at(b, span);
    return constant(b, v, if_constant, span);
}

Ref want_float(Build *b, const Value *v, Span span, const char *what)
{
    Ref r = want_tensor(b, v, span, F32);
    if (r == NONE || dtype_is_float(type_of(b->g, r)->dtype))
        return r;
    Diag *d = complain(b, E0220, span, "%s takes floats, and this is %s", what,
                       type_text(&b->cx->perm, type_of(b->g, r)));
    diag_help(b->cx, d, "convert it first: `cast(%s, f32)`", short_text(b, span));
    return NONE;
}
