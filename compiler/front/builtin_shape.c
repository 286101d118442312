/* Functions of shapes: filled tensors, views, and parts of tensors. */
#include "eval.h"

#include <inttypes.h>
#include <string.h>

/* ---- filled tensors ------------------------------------------------------ */

/* Without a type it is still free, as a number is. */
static const Value *filled(Build *b, const CallArgs *c, const Value *number, int type)
{
    int64_t dim[MAX_RANK];
    int rank;
    DType t;
    if (!want_shape(b, c->value[0], c->at[0], dim, &rank))
        return &value_poison;
    Value *v = NEW(&b->arena, Value);
    v->kind = VALUE_FILL;
    v->fill.number = number;
    v->fill.rank = rank;
    int64_t *copy = NEW_ARRAY(&b->arena, int64_t, rank);
    memcpy(copy, dim, sizeof *dim * (size_t)rank);
    v->fill.dim = copy;
    if (c->value[type] == NULL)
        return v;
    if (!want_dtype(b, c->value[type], c->at[type], &t))
        return &value_poison;
    at(b, c->call->span);
    return made(b, constant(b, v, t, c->call->span));
}

static const Value *bi_zeros(Build *b, const CallArgs *c)
{
    return filled(b, c, value_int(&b->arena, 0), 1);
}

static const Value *bi_ones(Build *b, const CallArgs *c)
{
    return filled(b, c, value_int(&b->arena, 1), 1);
}

static const Value *bi_full(Build *b, const CallArgs *c)
{
    const Value *v = c->value[1];
    if (value_is_number(v) || v->kind == VALUE_BOOL)
        return filled(b, c, v, 2);
    complain(b, E0209, c->at[1], "`full` takes a number, and this is %s", value_kind_text(v));
    return &value_poison;
}

static const Value *bi_iota(Build *b, const CallArgs *c)
{
    int64_t dim[MAX_RANK];
    int rank, axis = 0;
    DType t = I32;
    if (!want_shape(b, c->value[0], c->at[0], dim, &rank))
        return &value_poison;
    if (c->value[1] != NULL && !want_axis(b, c->value[1], c->at[1], rank, &axis))
        return &value_poison;
    if (c->value[2] != NULL && !want_dtype(b, c->value[2], c->at[2], &t))
        return &value_poison;
    at(b, c->call->span);
    Ref r = g_iota(b->g, type_make(t == I64 ? I64 : I32, rank, dim), axis);
    if (r != NONE && t != I64 && t != I32)
        r = g_cast(b->g, t, r);
    return made(b, r);
}

/* ---- views --------------------------------------------------------------- */

/* One size may be -1: what is left. */
static bool complete_shape(Build *b, Ref x, int64_t *dim, int rank, Span span)
{
    int64_t n = type_elems(type_of(b->g, x)), known = 1;
    int open = -1;
    for (int i = 0; i < rank; i++) {
        if (dim[i] == -1 && open < 0)
            open = i;
        else if (dim[i] < 0 || !mul_size(known, dim[i], &known))
            known = -1;
        if (known < 0)
            break;
    }
    if (known > 0 && open >= 0 && n % known == 0) {
        dim[open] = n / known;
        known = n;
    }
    if (known == n && (open < 0 || dim[open] >= 0))
        return true;
    const char *is = type_text(&b->cx->perm, type_of(b->g, x));
    if (open < 0 && known >= 0)
        complain(b, E0216, span, "%s has %lld elements, and this has %lld", is, (long long)n,
                 (long long)known);
    else if (known > 0)
        complain(b, E0216, span, "%s has %lld elements, and that is no multiple of %lld", is,
                 (long long)n, (long long)known);
    else
        complain(b, E0216, span, "%s can't be given this shape", is);
    return false;
}

static const Value *bi_reshape(Build *b, const CallArgs *c)
{
    int64_t dim[MAX_RANK];
    int rank;
    Ref x = want_tensor(b, c->value[0], c->at[0], F32);
    if (x == NONE || !want_ints(b, c->value[1], c->at[1], "a shape", dim, MAX_RANK, &rank) ||
        !complete_shape(b, x, dim, rank, c->at[1]))
        return &value_poison;
    at(b, c->call->span);
    return made(b, g_reshape(b->g, x, rank, dim));
}

static bool permutation(Build *b, const CallArgs *c, int rank, int *perm)
{
    int64_t p[MAX_RANK];
    int n;
    bool seen[MAX_RANK] = {false};
    if (!want_ints(b, c->value[1], c->at[1], "the order of axes", p, MAX_RANK, &n))
        return false;
    bool fine = n == rank;
    for (int i = 0; i < n && fine; i++) {
        int64_t axis = p[i] < 0 ? p[i] + rank : p[i];
        fine = axis >= 0 && axis < rank && !seen[axis];
        if (fine)
            seen[perm[i] = (int)axis] = true;
    }
    if (!fine)
        complain(b, E0217, c->at[1], "the order names each of the %d axes once, and this is %s",
                 rank, value_text(&b->cx->perm, c->value[1]));
    return fine;
}

static const Value *bi_transpose(Build *b, const CallArgs *c)
{
    int perm[MAX_RANK];
    Ref x = want_tensor(b, c->value[0], c->at[0], F32);
    if (x == NONE)
        return &value_poison;
    int r = rank(b->g, x);
    if (c->value[1] == NULL && r < 2) {
        complain(b, E0217, c->at[0], "`transpose` swaps the last two axes, and this is %s",
                 type_text(&b->cx->perm, type_of(b->g, x)));
        return &value_poison;
    }
    if (c->value[1] != NULL && !permutation(b, c, r, perm))
        return &value_poison;
    at(b, c->call->span);
    return made(b, c->value[1] == NULL ? g_swap_last(b->g, x) : g_transpose(b->g, x, perm));
}

static const Value *bi_flatten(Build *b, const CallArgs *c)
{
    int from = 0, to;
    int64_t dim[MAX_RANK];
    Ref x = want_tensor(b, c->value[0], c->at[0], F32);
    if (x == NONE)
        return &value_poison;
    int r = rank(b->g, x), n = 0;
    to = r - 1;
    if (c->value[1] != NULL && !want_axis(b, c->value[1], c->at[1], r, &from))
        return &value_poison;
    if (c->value[2] != NULL && !want_axis(b, c->value[2], c->at[2], r, &to))
        return &value_poison;
    for (int i = 0; i < r; i++) {
        int64_t d = type_of(b->g, x)->dim[i];
        if (i > from && i <= to)
            dim[n - 1] *= d;
        else
            dim[n++] = d;
    }
    if (r == 0)
        dim[n++] = 1;
    at(b, c->call->span);
    return made(b, g_reshape(b->g, x, n, dim));
}

static const Value *bi_broadcast(Build *b, const CallArgs *c)
{
    int64_t dim[MAX_RANK];
    int rank;
    Ref x = want_tensor(b, c->value[0], c->at[0], F32);
    if (x == NONE || !want_shape(b, c->value[1], c->at[1], dim, &rank))
        return &value_poison;
    at(b, c->call->span);
    return made(b, g_broadcast(b->g, x, rank, dim));
}

static const Value *bi_insert_axis(Build *b, const CallArgs *c)
{
    int axis;
    Ref x = want_tensor(b, c->value[0], c->at[0], F32);
    if (x == NONE || !want_axis(b, c->value[1], c->at[1], rank(b->g, x) + 1, &axis))
        return &value_poison;
    at(b, c->call->span);
    return made(b, g_insert_axis(b->g, x, axis));
}

/* ---- parts put together and taken apart ---------------------------------- */

static bool want_tensors(Build *b, const CallArgs *c, Ref **out, int *n)
{
    const Value *list = c->value[0];
    if (!value_is_items(list) || list->n == 0) {
        complain(b, E0209, c->at[0], "`%s` takes a list of tensors, and this is %s", c->name,
                 value_is_items(list) ? "empty" : value_kind_text(list));
        return false;
    }
    *n = list->n;
    *out = NEW_ARRAY(&b->arena, Ref, list->n);
    DType t = F32;
    for (int i = list->n - 1; i >= 0; i--)
        if (list->item[i]->kind == VALUE_TENSOR)
            t = type_of(list->item[i]->graph, list->item[i]->ref)->dtype;
    for (int i = 0; i < list->n; i++) {
        (*out)[i] = want_tensor(b, list->item[i], c->at[0], t);
        if ((*out)[i] == NONE)
            return false;
    }
    return true;
}

static const Value *bi_concat(Build *b, const CallArgs *c)
{
    Ref *x;
    int n, axis = 0;
    if (!want_tensors(b, c, &x, &n))
        return &value_poison;
    if (c->value[1] != NULL && !want_axis(b, c->value[1], c->at[1], rank(b->g, x[0]), &axis))
        return &value_poison;
    at(b, c->call->span);
    return made(b, g_concat(b->g, x, n, axis));
}

static const Value *bi_stack(Build *b, const CallArgs *c)
{
    Ref *x;
    int n, axis = 0;
    if (!want_tensors(b, c, &x, &n))
        return &value_poison;
    if (c->value[1] != NULL && !want_axis(b, c->value[1], c->at[1], rank(b->g, x[0]) + 1, &axis))
        return &value_poison;
    for (int i = 1; i < n; i++)
        if (!type_same(type_of(b->g, x[0]), type_of(b->g, x[i]))) {
            complain(b, E0202, c->at[0], "`stack` of %s and %s",
                     type_text(&b->cx->perm, type_of(b->g, x[0])),
                     type_text(&b->cx->perm, type_of(b->g, x[i])));
            return &value_poison;
        }
    at(b, c->call->span);
    return made(b, g_stack(b->g, x, n, axis));
}

enum { MAX_PARTS = 4096 };

/* Sizes of the parts along the axis. */
static bool part_sizes(Build *b, const CallArgs *c, int64_t extent, int64_t *size, int *n)
{
    if (!want_ints(b, c->value[1], c->at[1], "the number of parts", size, MAX_PARTS, n))
        return false;
    if (!value_is_items(c->value[1])) {
        int64_t parts = size[0];
        if (parts < 1 || parts > MAX_PARTS || extent % parts != 0) {
            complain(b, E0218, c->at[1], "an axis of %lld is not %lld equal parts",
                     (long long)extent, (long long)parts);
            return false;
        }
        *n = (int)parts;
        for (int i = 0; i < *n; i++)
            size[i] = extent / parts;
        return true;
    }
    int64_t sum = 0;
    for (int i = 0; i < *n; i++)
        if (size[i] < 0 || !add_size(sum, size[i], &sum)) {
            sum = -1;
            break;
        }
    if (sum == extent)
        return true;
    complain(b, E0218, c->at[1], "the parts of an axis of %lld are %s", (long long)extent,
             value_text(&b->cx->perm, c->value[1]));
    return false;
}

static const Value *bi_split(Build *b, const CallArgs *c)
{
    int axis = 0, n;
    Ref x = want_tensor(b, c->value[0], c->at[0], F32);
    if (x == NONE)
        return &value_poison;
    if (c->value[2] != NULL || rank(b->g, x) == 0) {
        const Value *zero = value_int(&b->arena, 0);
        if (!want_axis(b, c->value[2] == NULL ? zero : c->value[2],
                       c->value[2] == NULL ? c->at[0] : c->at[2], rank(b->g, x), &axis))
            return &value_poison;
    }
    int64_t *size = NEW_ARRAY(&b->arena, int64_t, MAX_PARTS);
    if (!part_sizes(b, c, dim(b->g, x, axis), size, &n))
        return &value_poison;
    at(b, c->call->span);
    const Value **part = NEW_ARRAY(&b->arena, const Value *, n);
    int64_t start = 0;
    for (int i = 0; i < n; i++) {
        part[i] = made(b, g_slice(b->g, x, axis, start, size[i], 1));
        start += size[i];
    }
    return value_items(&b->arena, VALUE_TUPLE, part, n);
}

static const Value *bi_flip(Build *b, const CallArgs *c)
{
    bool axes[MAX_RANK];
    Ref x = want_tensor(b, c->value[0], c->at[0], F32);
    if (x == NONE || !want_axes(b, c->value[1], c->at[1], rank(b->g, x), axes))
        return &value_poison;
    at(b, c->call->span);
    for (int i = 0; i < rank(b->g, x); i++)
        if (axes[i])
            x = g_flip(b->g, x, i);
    return made(b, x);
}

/* Each element of the axis n times, one behind the other. */
static const Value *bi_repeat(Build *b, const CallArgs *c)
{
    int64_t n;
    int axis;
    Ref x = want_tensor(b, c->value[0], c->at[0], F32);
    if (x == NONE || !want_int(b, c->value[1], c->at[1], "the count", &n) ||
        !want_axis(b, c->value[2], c->at[2], rank(b->g, x), &axis))
        return &value_poison;
    if (n < 0) {
        complain(b, E0208, c->at[1], "the count is not negative, and this is %lld", (long long)n);
        return &value_poison;
    }
    at(b, c->call->span);
    Ref apart = g_insert_axis(b->g, x, axis + 1);
    if (apart == NONE)
        return made(b, NONE);
    Type t = *type_of(b->g, apart);
    t.dim[axis + 1] = n;
    Ref many_times = g_broadcast(b->g, apart, t.rank, t.dim);
    return made(b, g_merge_axes(b->g, many_times, axis));
}

static bool optional_int(Build *b, const CallArgs *c, int i, const char *what, int64_t *out)
{
    return c->value[i] == NULL || want_int(b, c->value[i], c->at[i], what, out);
}

static bool optional_number(Build *b, const CallArgs *c, int i, const char *what, double *out)
{
    return c->value[i] == NULL || want_number(b, c->value[i], c->at[i], what, out);
}

/* What elements of x are where there is none: rounded once; an integer has to be one that a double
 * holds. */
static bool optional_element(Build *b, const CallArgs *c, int i, Ref x, const char *what,
                             double *out)
{
    const Value *v = c->value[i];
    DType t = type_of(b->g, x)->dtype;
    int64_t whole;
    if (v != NULL && value_is_number(v) && dtype_is_float(t)) {
        bool fits = number_as(b, v, t, c->at[i], out, &whole);
        *out = dtype_round(t, *out);
        return fits;
    }
    if (!optional_number(b, c, i, what, out))
        return false;
    if (v == NULL || v->kind != VALUE_INT || (*out < 0x1p63 && (int64_t)*out == v->i))
        return true;
    Diag *d = complain(b, E0204, c->at[i], "%s is %" PRId64 ", which takes more than 53 bits", what,
                       v->i);
    diag_help(b->cx, d, "such numbers can be joined to a tensor: `concat`");
    return false;
}

static const Value *bi_pad(Build *b, const CallArgs *c)
{
    int axis;
    int64_t lo = 0, hi = 0;
    double value = 0;
    Ref x = want_tensor(b, c->value[0], c->at[0], F32);
    if (x == NONE || !want_axis(b, c->value[1], c->at[1], rank(b->g, x), &axis) ||
        !optional_int(b, c, 2, "`lo`", &lo) || !optional_int(b, c, 3, "`hi`", &hi) ||
        !optional_element(b, c, 4, x, "`value`", &value))
        return &value_poison;
    at(b, c->call->span);
    return made(b, g_pad(b->g, x, axis, lo, hi, value));
}

static const Value *bi_window(Build *b, const CallArgs *c)
{
    int axis;
    int64_t size, stride = 1, dilation = 1, lo = 0, hi = 0;
    double fill = 0;
    Ref x = want_tensor(b, c->value[0], c->at[0], F32);
    if (x == NONE || !want_axis(b, c->value[1], c->at[1], rank(b->g, x), &axis) ||
        !want_int(b, c->value[2], c->at[2], "the size of a window", &size) ||
        !optional_int(b, c, 3, "`stride`", &stride) ||
        !optional_int(b, c, 4, "`dilation`", &dilation) || !optional_int(b, c, 5, "`lo`", &lo) ||
        !optional_int(b, c, 6, "`hi`", &hi) || !optional_element(b, c, 7, x, "`fill`", &fill))
        return &value_poison;
    at(b, c->call->span);
    return made(b, g_window(b->g, x, axis, size, stride, dilation, lo, hi, fill));
}

const Builtin builtin_shape_table[] = {
    {"zeros", "shape, type?", bi_zeros,
     "A tensor of zeros. Without a type it takes that of what it meets, as numbers do.",
     "zeros([2, 3], f32)"},
    {"ones", "shape, type?", bi_ones, "A tensor of ones.", "x + ones([3, 1])"},
    {"full", "shape, value, type?", bi_full, "A tensor of one number.", "full([2, 3], 0.5, f32)"},
    {"iota", "shape, axis?, type?", bi_iota, "0, 1, 2, ... along an axis; i32 if no type is given.",
     "iota([3, 4], axis = 1)"},
    {"reshape", "x, shape", bi_reshape,
     "The same elements in another shape; one size may be -1: what is left.",
     "reshape(x, [6, -1])"},
    {"transpose", "x, axes?", bi_transpose,
     "The axes in this order; without one the last two are swapped.", "transpose(x, [0, 2, 1])"},
    {"flatten", "x, from?, to?", bi_flatten, "Axes `from` to `to` (both included) become one.",
     "flatten(x, from = 1)"},
    {"broadcast", "x, shape", bi_broadcast,
     "Repeated to a shape by NumPy's rule; operators do it by themselves.",
     "broadcast(x[0, 0], [2, 4])"},
    {"insert_axis", "x, axis", bi_insert_axis, "A new axis of size 1.", "insert_axis(x, 0)"},
    {"concat", "x, axis?", bi_concat,
     "Tensors of a list, one behind the other along an axis (the first).",
     "concat([x, x], axis = -1)"},
    {"stack", "x, axis?", bi_stack, "Tensors of a list along a new axis.",
     "stack([x, x], axis = 1)"},
    {"split", "x, parts, axis?", bi_split,
     "Equal parts along an axis (the first), or parts of these sizes, as a tuple.",
     "split(x, [1, 3], axis = -1)"},
    {"flip", "x, axis", bi_flip, "Axes in reverse order.", "flip(x, axis = [0, 2])"},
    {"repeat", "x, n, axis", bi_repeat, "Each element of an axis n times.",
     "repeat(x, 2, axis = 1)"},
    {"pad", "x, axis, lo?, hi?, value?", bi_pad,
     "`lo` elements of `value` (0) before an axis, `hi` behind it.", "pad(x, -1, lo = 1, hi = 2)"},
    {"window", "x, axis, size, stride?, dilation?, lo?, hi?, fill?", bi_window,
     "Windows along an axis, which becomes two: their number, and `size`. Outside of x is `fill`.",
     "max(window(x, 2, 2, stride = 2), axis = 3)"},
    {.name = NULL},
};
