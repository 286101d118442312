/* Functions that give constants: sizes of shapes, element types, lists. */
#include "eval.h"

static bool shape_wanted(Build *b, const CallArgs *c, int64_t *dim, int *rank)
{
    *rank = shape_of(c->value[0], dim);
    if (*rank >= 0)
        return true;
    complain(b, E0209, c->at[0], "`%s` takes a tensor, and this is %s", c->name,
             value_kind_text(c->value[0]));
    return false;
}

/* The size of an axis, which may be that of the batch. */
static const Value *size_value(Build *b, const Value *x, int axis, int64_t size)
{
    bool rows = size == b->m->batch && rows_along(b, x, axis);
    return rows ? value_rows(&b->arena, size) : value_int(&b->arena, size);
}

static const Value *bi_dim(Build *b, const CallArgs *c)
{
    int64_t dim[MAX_RANK];
    int rank, axis;
    if (!shape_wanted(b, c, dim, &rank) || !want_axis(b, c->value[1], c->at[1], rank, &axis))
        return &value_poison;
    return size_value(b, c->value[0], axis, dim[axis]);
}

static const Value *bi_shape(Build *b, const CallArgs *c)
{
    int64_t dim[MAX_RANK];
    int rank;
    if (!shape_wanted(b, c, dim, &rank))
        return &value_poison;
    const Value *size[MAX_RANK];
    for (int i = 0; i < rank; i++)
        size[i] = size_value(b, c->value[0], i, dim[i]);
    return value_items(&b->arena, VALUE_LIST, size, rank);
}

static const Value *bi_rank(Build *b, const CallArgs *c)
{
    int64_t dim[MAX_RANK];
    int rank;
    return shape_wanted(b, c, dim, &rank) ? value_int(&b->arena, rank) : &value_poison;
}

static const Value *bi_size(Build *b, const CallArgs *c)
{
    int64_t dim[MAX_RANK], n = 1;
    int rank;
    if (!shape_wanted(b, c, dim, &rank))
        return &value_poison;
    for (int i = 0; i < rank; i++)
        n *= dim[i];
    return value_int(&b->arena, n);
}

static const Value *bi_type(Build *b, const CallArgs *c)
{
    DType t;
    if (value_is_number(c->value[0])) {
        complain(b, E0209, c->at[0], "a constant has no type until it meets a tensor");
        return &value_poison;
    }
    return want_dtype(b, c->value[0], c->at[0], &t) ? value_dtype(&b->arena, t) : &value_poison;
}

static const Value *bi_len(Build *b, const CallArgs *c)
{
    if (value_is_items(c->value[0]))
        return value_int(&b->arena, c->value[0]->n);
    Diag *d = complain(b, E0209, c->at[0], "`len` is of a list, and this is %s",
                       value_kind_text(c->value[0]));
    if (c->value[0]->kind == VALUE_TENSOR)
        diag_help(b->cx, d, "the size of an axis is `dim(x, 0)`, that of all `size(x)`");
    return &value_poison;
}

static const Value *bi_ceil_div(Build *b, const CallArgs *c)
{
    int64_t x, y;
    if (!want_int(b, c->value[0], c->at[0], "this", &x) ||
        !want_int(b, c->value[1], c->at[1], "the divisor", &y))
        return &value_poison;
    if (y < 1) {
        complain(b, E0208, c->at[1], "the divisor is at least 1, and this is %lld", (long long)y);
        return &value_poison;
    }
    return value_int(&b->arena, x / y + (x % y > 0));
}

static const Value *bi_all_but(Build *b, const CallArgs *c)
{
    for (int i = 0; i < c->n; i++) {
        int64_t axis;
        if (!want_int(b, c->value[i], c->at[i], "an axis", &axis))
            return &value_poison;
    }
    return value_items(&b->arena, VALUE_ALL_BUT, c->value, c->n);
}

static const Value *many(Build *b, const Value *v, int64_t n, Span span)
{
    enum { MOST = 65536 };
    if (n < 0 || n > MOST) {
        complain(b, E0208, span, "a list has 0 to %d elements, not %lld", MOST, (long long)n);
        return &value_poison;
    }
    ArenaMark mark = arena_mark(&b->cx->scratch);
    const Value **item = NEW_ARRAY(&b->cx->scratch, const Value *, n);
    for (int64_t i = 0; i < n; i++)
        item[i] = v;
    const Value *list = value_items(&b->arena, VALUE_LIST, item, (int)n);
    arena_reset(&b->cx->scratch, mark);
    return list;
}

static const Value *bi_repeated(Build *b, const CallArgs *c)
{
    int64_t n;
    if (!want_int(b, c->value[1], c->at[1], "the count", &n))
        return &value_poison;
    return many(b, c->value[0], n, c->at[1]);
}

/* One value, or a list of n, as a list of n. */
static const Value *bi_each(Build *b, const CallArgs *c)
{
    int64_t n;
    const Value *v = c->value[0];
    if (!want_int(b, c->value[1], c->at[1], "the count", &n))
        return &value_poison;
    if (!value_is_items(v))
        return many(b, v, n, c->at[1]);
    if (v->n == n)
        return v;
    complain(b, E0215, c->at[0], "one value or %lld are wanted, and these are %d", (long long)n,
             v->n);
    return &value_poison;
}

const Builtin builtin_size_table[] = {
    {"dim", "x, axis", bi_dim, "The size of an axis.", "dim(x, -1)"},
    {"shape", "x", bi_shape, "All sizes, as a list.", "reshape(x, shape(x))"},
    {"rank", "x", bi_rank, "The number of axes.", "rank(x) - 2"},
    {"size", "x", bi_size,
     "The number of elements, as compiled; `count` leaves out rows that a partial batch lacks.",
     "size(x)"},
    {"type", "x", bi_type, "The element type, for `cast`, `zeros` and types.", "cast(i, type(x))"},
    {"len", "x", bi_len, "The number of a list's elements.", "len([4, 5, 6])"},
    {"ceil_div", "x, y", bi_ceil_div, "x / y rounded up, of integers.", "ceil_div(7, 2)"},
    {"all_but", "...", bi_all_but, "As an `axis` argument: all axes but these.",
     "mean(x, axis = all_but(1))"},
    {"repeated", "x, n", bi_repeated, "A list of n times x.", "[1, 4] + repeated(1, 2)"},
    {"each", "x, n", bi_each, "n times x as a list; a list of n stays as it is.", "each(3, 2)"},
    {.name = NULL},
};
