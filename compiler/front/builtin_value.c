/* Functions of elements: reductions, choices, indexing, contractions, derivatives. */
#include "eval.h"

#include <math.h>
#include <string.h>

/* ---- reductions ---------------------------------------------------------- */

typedef struct Reduce {
    Ref x;
    bool axes[MAX_RANK];
    bool keep;
} Reduce;

static bool reduce_args(Build *b, const CallArgs *c, int axis, DType if_constant, Reduce *r)
{
    r->keep = false;
    r->x = want_tensor(b, c->value[0], c->at[0], if_constant);
    if (r->x == NONE)
        return false;
    if (!want_axes(b, c->value[axis], c->at[axis], rank(b->g, r->x), r->axes))
        return false;
    const Value *keep = c->value[axis + 1];
    return keep == NULL || want_bool(b, keep, c->at[axis + 1], "`keep`", &r->keep);
}

static Missing identity(OpId op, DType t)
{
    switch (op) {
    case OP_prod:
    case OP_all:
        return (Missing){1, 1};
    case OP_reduce_max:
        return (Missing){-INFINITY, t == I32 ? INT32_MIN : t == U8 ? 0 : INT64_MIN};
    case OP_reduce_min:
        return (Missing){INFINITY, t == I32 ? INT32_MAX : t == U8 ? UINT8_MAX : INT64_MAX};
    default:
        return (Missing){0, 0};
    }
}

/* Last axis first; rows that are not there are left out. */
static Ref reduce(Build *b, OpId op, const Reduce *r)
{
    Ref x = r->x;
    for (int axis = rank(b->g, x) - 1; axis >= 0 && x != NONE; axis--) {
        if (!r->axes[axis])
            continue;
        if (rows_varies(b, x, axis))
            x = rows_mask(b, x, axis, identity(op, type_of(b->g, x)->dtype));
        x = g_reduce(b->g, op, x, axis, r->keep);
    }
    return x;
}

/* Said here, while the tensor still has the shape that the model gave it. */
static bool any_to_choose(Build *b, OpId op, const CallArgs *c, const Reduce *r)
{
    bool chooses = op == OP_reduce_max || op == OP_reduce_min;
    for (int axis = 0; axis < rank(b->g, r->x) && chooses; axis++)
        if (r->axes[axis] && dim(b->g, r->x, axis) == 0) {
            complain(b, E0223, c->call->span,
                     "`%s` of axis %d of %s: there is no element to choose", c->name, axis,
                     type_text(&b->cx->perm, type_of(b->g, r->x)));
            return false;
        }
    return true;
}

static const Value *reduction(Build *b, OpId op, const CallArgs *c, int axis, DType if_constant)
{
    Reduce r;
    if (!reduce_args(b, c, axis, if_constant, &r) || !any_to_choose(b, op, c, &r))
        return &value_poison;
    at(b, c->call->span);
    return made(b, reduce(b, op, &r));
}

static bool all_numbers(const Value *v)
{
    for (int i = 0; value_is_items(v) && i < v->n; i++)
        if (!value_is_number(v->item[i]))
            return false;
    return value_is_items(v) && v->n > 0;
}

/* A list of numbers put together by an operator. */
static const Value *fold_list(Build *b, Operator op, const CallArgs *c)
{
    Spans s = {c->call->span, c->call->span, c->at[0], c->at[0]};
    const Value *v = c->value[0]->item[0];
    for (int i = 1; i < c->value[0]->n; i++)
        v = arith_binary(b, op, v, c->value[0]->item[i], &s);
    return v;
}

static const Value *bi_sum(Build *b, const CallArgs *c)
{
    if (all_numbers(c->value[0]) && c->value[1] == NULL)
        return fold_list(b, OPERATOR_ADD, c);
    return reduction(b, OP_sum, c, 1, F32);
}

static const Value *bi_prod(Build *b, const CallArgs *c)
{
    if (all_numbers(c->value[0]) && c->value[1] == NULL)
        return fold_list(b, OPERATOR_MUL, c);
    return reduction(b, OP_prod, c, 1, F32);
}

static const Value *bi_product(Build *b, const CallArgs *c)
{
    if (value_is_number(c->value[0]))
        return c->value[0];
    if (value_is_items(c->value[0]) && c->value[0]->n == 0)
        return value_int(&b->arena, 1);
    return bi_prod(b, c);
}

static const Value *larger(const Value *x, const Value *y, OpId op)
{
    bool ints = x->kind == VALUE_INT && y->kind == VALUE_INT;
    bool less = ints ? x->i < y->i : value_number(x) < value_number(y);
    return less == (op == OP_max) ? y : x;
}

static const Value *extreme(Build *b, const CallArgs *c, OpId op, OpId reduce_op)
{
    const Value *x = c->value[0], *y = c->value[1];
    if (y == NULL && all_numbers(x) && c->value[2] == NULL) {
        const Value *v = x->item[0];
        for (int i = 1; i < x->n; i++)
            v = larger(v, x->item[i], op);
        return v;
    }
    if (y == NULL)
        return reduction(b, reduce_op, c, 2, F32);
    if (c->value[2] != NULL || c->value[3] != NULL) {
        complain(b, E0125, c->call->span, "`%s` takes two values, or one and an axis", c->name);
        return &value_poison;
    }
    if (value_is_number(x) && value_is_number(y))
        return larger(x, y, op);
    DType t = F32;
    Ref r[2];
    if (!unify(b, c->value, c->at, 2, -1, &t, r, c->name, c->call->span))
        return &value_poison;
    at(b, c->call->span);
    return made(b, g_binary(b->g, op, r[0], r[1]));
}

static const Value *bi_max(Build *b, const CallArgs *c)
{
    return extreme(b, c, OP_max, OP_reduce_max);
}

static const Value *bi_min(Build *b, const CallArgs *c)
{
    return extreme(b, c, OP_min, OP_reduce_min);
}

static const Value *bi_all(Build *b, const CallArgs *c)
{
    return reduction(b, OP_all, c, 1, BOOL);
}

static const Value *bi_any(Build *b, const CallArgs *c)
{
    Reduce r;
    if (!reduce_args(b, c, 1, BOOL, &r))
        return &value_poison;
    at(b, c->call->span);
    r.x = g_unary(b->g, OP_not, r.x);
    if (r.x == NONE)
        return made(b, NONE);
    Ref none = reduce(b, OP_all, &r);
    return made(b, g_unary(b->g, OP_not, none));
}

/* How many elements each result is made of; *rows: times this node (NONE: 1). */
static int64_t count(Build *b, const Reduce *r, Ref *rows)
{
    int64_t n = 1;
    *rows = NONE;
    for (int axis = 0; axis < rank(b->g, r->x); axis++) {
        if (!r->axes[axis])
            continue;
        Ref valid = rows_valid(b, r->x, axis);
        if (valid == NONE)
            n *= dim(b->g, r->x, axis);
        else
            *rows = *rows == NONE ? valid : g_mul(b->g, *rows, valid);
    }
    return n;
}

static Ref count_node(Build *b, int64_t n, Ref rows, DType t)
{
    if (rows == NONE)
        return g_const(b->g, t, (double)n);
    Ref all = rows;
    if (n != 1) {
        Ref times = g_const_int(b->g, I64, n);
        all = g_mul(b->g, rows, times);
    }
    return g_cast(b->g, t, all);
}

static const Value *bi_mean(Build *b, const CallArgs *c)
{
    Reduce r;
    Ref rows;
    if (all_numbers(c->value[0]) && c->value[1] == NULL) {
        Spans s = {c->call->span, c->call->span, c->at[0], c->at[0]};
        const Value *sum = fold_list(b, OPERATOR_ADD, c);
        return arith_binary(b, OPERATOR_DIV, sum, value_int(&b->arena, c->value[0]->n), &s);
    }
    if (want_float(b, c->value[0], c->at[0], "`mean`") == NONE || !reduce_args(b, c, 1, F32, &r))
        return &value_poison;
    at(b, c->call->span);
    int64_t n = count(b, &r, &rows);
    DType t = type_of(b->g, r.x)->dtype;
    Ref sum = reduce(b, OP_sum, &r);
    Ref by = count_node(b, n, rows, t);
    by = g_broadcast_like(b->g, by, sum);
    return made(b, g_div(b->g, sum, by));
}

/* The number of elements along the axes: of valid rows only, if rows are counted. */
static const Value *bi_count(Build *b, const CallArgs *c)
{
    Reduce r;
    Ref rows;
    if (!reduce_args(b, c, 1, F32, &r))
        return &value_poison;
    at(b, c->call->span);
    int64_t n = count(b, &r, &rows);
    if (rows == NONE)
        return value_int(&b->arena, n);
    DType t = type_of(b->g, r.x)->dtype;
    return made(b, count_node(b, n, rows, dtype_is_float(t) ? t : F32));
}

static const Value *arg_extreme(Build *b, const CallArgs *c, OpId op)
{
    Ref x = want_tensor(b, c->value[0], c->at[0], F32);
    if (x == NONE)
        return &value_poison;
    int r = rank(b->g, x), axis = 0;
    if (c->value[1] == NULL && r != 1) {
        complain(b, E0112, c->call->span, "`%s` of %s is not given its axis", c->name,
                 type_text(&b->cx->perm, type_of(b->g, x)));
        return &value_poison;
    }
    if (c->value[1] != NULL && !want_axis(b, c->value[1], c->at[1], r, &axis))
        return &value_poison;
    at(b, c->call->span);
    if (rows_varies(b, x, axis))
        x = rows_mask(
            b, x, axis,
            identity(op == OP_argmax ? OP_reduce_max : OP_reduce_min, type_of(b->g, x)->dtype));
    const Attr a = {.kind = ATTR_INT, .i = axis};
    return made(b, g_node(b->g, op, &x, 1, &a));
}

static const Value *bi_argmax(Build *b, const CallArgs *c)
{
    return arg_extreme(b, c, OP_argmax);
}

static const Value *bi_argmin(Build *b, const CallArgs *c)
{
    return arg_extreme(b, c, OP_argmin);
}

static const Value *bi_cumsum(Build *b, const CallArgs *c)
{
    int axis;
    bool down = false;
    Ref x = want_tensor(b, c->value[0], c->at[0], F32);
    if (x == NONE || !want_axis(b, c->value[1], c->at[1], rank(b->g, x), &axis))
        return &value_poison;
    if (c->value[2] != NULL && !want_bool(b, c->value[2], c->at[2], "`reverse`", &down))
        return &value_poison;
    at(b, c->call->span);
    if (rows_varies(b, x, axis))
        x = rows_mask(b, x, axis, (Missing){0, 0});
    return made(b, g_cumsum(b->g, x, axis, down));
}

/* ---- choices, conversions ------------------------------------------------ */

static const Value *bi_where(Build *b, const CallArgs *c)
{
    const Value *cond = c->value[0];
    if (cond->kind == VALUE_BOOL)
        return cond->b ? c->value[1] : c->value[2];
    if (cond->kind != VALUE_TENSOR || type_of(cond->graph, cond->ref)->dtype != BOOL) {
        Diag *d = complain(b, E0211, c->at[0], "the condition of `where` is bool, and this is %s",
                           value_text(&b->cx->perm, cond));
        diag_help(b->cx, d, "compare it: `x != 0`");
        return &value_poison;
    }
    DType t = F32;
    Ref r[3];
    if (!unify(b, c->value, c->at, 3, 0, &t, r, "where", c->call->span))
        return &value_poison;
    at(b, c->call->span);
    return made(b, g_where(b->g, r[0], r[1], r[2]));
}

static const Value *bi_cast(Build *b, const CallArgs *c)
{
    DType t;
    if (!want_dtype(b, c->value[1], c->at[1], &t))
        return &value_poison;
    Ref x = want_tensor(b, c->value[0], c->at[0], t);
    if (x == NONE)
        return &value_poison;
    at(b, c->call->span);
    return made(b, type_of(b->g, x)->dtype == t ? x : g_cast(b->g, t, x));
}

static const Value *bi_stop_gradient(Build *b, const CallArgs *c)
{
    if (c->value[0]->kind != VALUE_TENSOR)
        return c->value[0];
    Ref x = use(b, c->value[0]);
    at(b, c->call->span);
    return made(b, g_stop_gradient(b->g, x));
}

/* ---- indexing ------------------------------------------------------------ */

static Ref index_tensor(Build *b, const Value *v, Span span)
{
    Ref r = want_tensor(b, v, span, I32);
    if (r == NONE)
        return NONE;
    DType t = type_of(b->g, r)->dtype;
    at(b, span);
    if (t == U8)
        return g_cast(b->g, I32, r);
    if (dtype_is_int(t))
        return r;
    complain(b, E0212, span, "an index is of integers, and this is %s",
             type_text(&b->cx->perm, type_of(b->g, r)));
    return NONE;
}

static const Value *bi_take_along(Build *b, const CallArgs *c)
{
    int axis;
    Ref x = want_tensor(b, c->value[0], c->at[0], F32);
    Ref index = x == NONE ? NONE : index_tensor(b, c->value[1], c->at[1]);
    if (index == NONE || !want_axis(b, c->value[2], c->at[2], rank(b->g, x), &axis))
        return &value_poison;
    if (!index_range(b, index, dim(b->g, x, axis), c->at[1], c->at[0]))
        return &value_poison;
    at(b, c->call->span);
    return made(b, g_take_along(b->g, x, index, axis));
}

static const Value *bi_gather(Build *b, const CallArgs *c)
{
    Ref x = want_tensor(b, c->value[0], c->at[0], F32);
    Ref index = x == NONE ? NONE : index_tensor(b, c->value[1], c->at[1]);
    if (index == NONE)
        return &value_poison;
    if (rank(b->g, x) > 0 && !index_range(b, index, dim(b->g, x, 0), c->at[1], c->at[0]))
        return &value_poison;
    at(b, c->call->span);
    return made(b, g_gather(b->g, x, index));
}

static const Value *bi_scatter_add(Build *b, const CallArgs *c)
{
    Ref x = want_tensor(b, c->value[0], c->at[0], F32);
    Ref index = x == NONE ? NONE : index_tensor(b, c->value[1], c->at[1]);
    if (index == NONE)
        return &value_poison;
    Ref update = want_tensor(b, c->value[2], c->at[2], type_of(b->g, x)->dtype);
    if (update == NONE)
        return &value_poison;
    if (rank(b->g, x) > 0 && !index_range(b, index, dim(b->g, x, 0), c->at[1], c->at[0]))
        return &value_poison;
    at(b, c->call->span);
    return made(b, g_scatter_add(b->g, x, index, update));
}

/* [...] -> [..., n]: 1 at the index, 0 elsewhere. */
static const Value *bi_one_hot(Build *b, const CallArgs *c)
{
    int64_t n;
    DType t = F32;
    Ref index = index_tensor(b, c->value[0], c->at[0]);
    if (index == NONE || !want_int(b, c->value[1], c->at[1], "the number of classes", &n))
        return &value_poison;
    if (c->value[2] != NULL && !want_dtype(b, c->value[2], c->at[2], &t))
        return &value_poison;
    if (!index_range(b, index, n, c->at[0], c->at[1]))
        return &value_poison;
    at(b, c->call->span);
    Ref last = g_insert_axis(b->g, index, rank(b->g, index));
    if (last == NONE)
        return made(b, NONE);
    Type wide = *type_of(b->g, last);
    wide.dim[wide.rank - 1] = n;
    Ref place = g_iota(b->g, wide, wide.rank - 1);
    Ref all = g_broadcast(b->g, last, wide.rank, wide.dim);
    Ref hot = g_binary(b->g, OP_eq, all, place);
    return made(b, g_cast(b->g, t, hot));
}

/* True where the last axis' index is at most that of the one before. */
static const Value *bi_lower_triangle(Build *b, const CallArgs *c)
{
    Ref x = want_tensor(b, c->value[0], c->at[0], F32);
    if (x == NONE)
        return &value_poison;
    int r = rank(b->g, x);
    if (r < 2) {
        complain(b, E0209, c->at[0], "`lower_triangle` takes matrices, and this is %s",
                 type_text(&b->cx->perm, type_of(b->g, x)));
        return &value_poison;
    }
    at(b, c->call->span);
    Type t = type_make(I32, 2, &type_of(b->g, x)->dim[r - 2]);
    Ref row = g_iota(b->g, t, 0);
    Ref column = g_iota(b->g, t, 1);
    return made(b, g_binary(b->g, OP_le, column, row));
}

/* ---- contractions -------------------------------------------------------- */

/* What both convolutions take: x, weight, settings of each axis, then groups. */
typedef struct ConvArgs {
    Ref x, w;
    int64_t each[4][MAX_RANK];
    int64_t groups;
} ConvArgs;

static bool conv_args(Build *b, const CallArgs *c, const char *self, int n, const char *const *what,
                      const int *usual, ConvArgs *a)
{
    a->x = want_float(b, c->value[0], c->at[0], self);
    a->w = a->x == NONE ? NONE : want_float(b, c->value[1], c->at[1], self);
    if (a->w == NONE)
        return false;
    int axes = rank(b->g, a->x) - 2;
    for (int i = 0; i < n; i++) {
        for (int d = 0; d < MAX_RANK; d++)
            a->each[i][d] = usual[i];
        if (c->value[2 + i] != NULL && axes > 0 &&
            !want_each(b, c->value[2 + i], c->at[2 + i], what[i], a->each[i], axes))
            return false;
    }
    a->groups = 1;
    if (c->value[2 + n] != NULL &&
        !want_int(b, c->value[2 + n], c->at[2 + n], "`groups`", &a->groups))
        return false;
    at(b, c->call->span);
    DType t = type_of(b->g, a->w)->dtype;
    if (type_of(b->g, a->x)->dtype == t)
        return true;
    Diag *d = complain(b, E0220, c->call->span, "%s of %s and %s", self,
                       type_text(&b->cx->perm, type_of(b->g, a->x)),
                       type_text(&b->cx->perm, type_of(b->g, a->w)));
    diag_help(b->cx, d, "convert the input: `cast(x, %s)`", dtype_name(t));
    return false;
}

static const Value *bi_conv(Build *b, const CallArgs *c)
{
    static const char *const what[] = {"`stride`", "`padding`", "`dilation`"};
    static const int usual[] = {1, 0, 1};
    ConvArgs a;
    if (!conv_args(b, c, "`conv`", 3, what, usual, &a))
        return &value_poison;
    return made(b, g_conv(b->g, a.x, a.w, a.each[0], a.each[1], a.each[1], a.each[2], a.groups));
}

static const Value *bi_conv_transpose(Build *b, const CallArgs *c)
{
    static const char *const what[] = {"`stride`", "`padding`", "`output_padding`", "`dilation`"};
    static const int usual[] = {1, 0, 0, 1};
    ConvArgs a;
    if (!conv_args(b, c, "`conv_transpose`", 4, what, usual, &a))
        return &value_poison;
    return made(
        b, g_conv_transpose(b->g, a.x, a.w, a.each[0], a.each[1], a.each[2], a.each[3], a.groups));
}

/* Rows that a letter sums over are 0 where they are not there. */
static Ref einsum_operand(Build *b, const char *letters, const char *result, Ref x)
{
    for (int i = 0; letters[i] >= 'A' && letters[i] <= 'z' && i < rank(b->g, x); i++)
        if (strchr(result, letters[i]) == NULL && rows_varies(b, x, i))
            x = rows_mask(b, x, i, (Missing){0, 0});
    return x;
}

static const Value *bi_einsum(Build *b, const CallArgs *c)
{
    const char *spec;
    if (!want_string(b, c->value[0], c->at[0], "the spec of `einsum`", &spec))
        return &value_poison;
    Ref x = want_float(b, c->value[1], c->at[1], "`einsum`");
    Ref y = x == NONE ? NONE : want_float(b, c->value[2], c->at[2], "`einsum`");
    if (y == NONE)
        return &value_poison;
    at(b, c->call->span);
    const char *arrow = strstr(spec, "->"), *comma = strchr(spec, ',');
    if (arrow != NULL && comma != NULL && comma < arrow) {
        x = einsum_operand(b, spec, arrow + 2, x);
        y = einsum_operand(b, comma + 1, arrow + 2, y);
    }
    return made(b, g_einsum(b->g, spec, x, y));
}

/* ---- derivatives --------------------------------------------------------- */

enum { MAX_GRADS = 64 };

/* The tensors to derive by: one, or a tuple or list of them. */
static bool grad_operands(Build *b, const CallArgs *c, Ref *x, int *n)
{
    const Value *v = c->value[1];
    *n = value_is_items(v) ? v->n : 1;
    if (*n > MAX_GRADS) {
        complain(b, E0330, c->at[1], "`grad` is by at most %d tensors", MAX_GRADS);
        return false;
    }
    for (int i = 0; i < *n; i++) {
        const Value *one = value_is_items(v) ? v->item[i] : v;
        if (one->kind != VALUE_TENSOR || one->graph != b->g) {
            bool outside = one->kind == VALUE_TENSOR;
            Diag *d = complain(b, E0330, c->at[1], "`grad` is by a tensor%s, and this is %s",
                               outside ? " of the same scan" : "", value_text(&b->cx->perm, one));
            if (outside)
                diag_help(b->cx, d,
                          "what was made of it before the scan would be missed; let the scan carry "
                          "it, and derive by that");
            return false;
        }
        if (!dtype_is_float(type_of(b->g, one->ref)->dtype)) {
            complain(b, E0330, c->at[1], "`grad` is by a tensor of floats, and this is %s",
                     type_text(&b->cx->perm, type_of(b->g, one->ref)));
            return false;
        }
        x[i] = one->ref;
    }
    return true;
}

/* As of `grad(y, x[0])`, where y is made of x. */
static void warn_of_zero(Build *b, const CallArgs *c, int n)
{
    Diag *d =
        caution(b, E0411, c->at[1], "this gradient is 0: no gradient goes from the number to %s",
                n == 1 ? "the value" : "one of the values");
    diag_help(b->cx, d,
              "what an expression gives is a new value: give it a name, and use that in both");
}

static const Value *bi_grad(Build *b, const CallArgs *c)
{
    Ref x[MAX_GRADS], d[MAX_GRADS], y = want_float(b, c->value[0], c->at[0], "`grad`");
    const Value *result[MAX_GRADS];
    int n;
    if (y == NONE)
        return &value_poison;
    if (rank(b->g, y) != 0) {
        Diag *bad = complain(b, E0330, c->at[0], "`grad` is of one number, and this is %s",
                             type_text(&b->cx->perm, type_of(b->g, y)));
        diag_help(b->cx, bad, "take the sum: `grad(sum(y), x)`");
        return &value_poison;
    }
    if (!grad_operands(b, c, x, &n))
        return &value_poison;
    at(b, c->call->span);
    Ref one = g_const(b->g, type_of(b->g, y)->dtype, 1);
    if (!pullback(b->cx, b->g, &y, &one, 1, x, n, d))
        return made(b, NONE);
    at(b, c->call->span);
    bool zero = false;
    for (int i = 0; i < n; i++) {
        zero = zero || d[i] == REF_ZERO;
        result[i] = made(b, d[i] == REF_ZERO ? g_zeros(b->g, type_of(b->g, x[i])) : d[i]);
    }
    if (zero)
        warn_of_zero(b, c, n);
    return value_is_items(c->value[1]) ? value_items(&b->arena, VALUE_TUPLE, result, n) : result[0];
}

/* The parameter that r depends on, or -1. */
static int32_t depends_on_param(Build *b, Ref r)
{
    Graph *g = b->g;
    bool *reach = arena_alloc(&b->arena, (size_t)r + 1);
    reach[r] = true;
    for (Ref n = r; n > NONE; n--) {
        if (!reach[n])
            continue;
        if (op_of(g, n) == OP_slot) {
            int32_t slot = (int32_t)attr(g, n, 0)->i;
            if (b->m->pinned.slot.at[slot].kind == SLOT_PARAM)
                return slot;
        }
        for (int i = 0; i < node(g, n)->n_args; i++)
            reach[arg(g, n, i)] = true;
    }
    return -1;
}

/* The mean over all micro-batches: a first scan computes it, and here stands an input
 * that build_accumulate() replaces. */
static const Value *bi_across(Build *b, const CallArgs *c)
{
    Ref s = want_float(b, c->value[0], c->at[0], "`across`");
    if (s == NONE)
        return &value_poison;
    if (rank(b->g, s) != 0) {
        complain(b, E0330, c->at[0], "`across` takes one number, and this is %s",
                 type_text(&b->cx->perm, type_of(b->g, s)));
        return &value_poison;
    }
    int64_t loops = model_loops(b->m, b->training ? ENTRY_STEP : ENTRY_EVAL);
    if (loops == 1 && !b->m->apart)
        return made(b, s);
    int32_t slot = b->level == NULL ? depends_on_param(b, s) : -1;
    if (b->level != NULL || slot >= 0) {
        Diag *d = complain(b, E0510, c->call->span,
                           "`across` needs its value before the "
                           "micro-batches begin");
        if (slot >= 0)
            diag_note(b->cx, d, b->m->pinned.slot.at[slot].origin->span, "it depends on `%s`",
                      b->m->pinned.slot.at[slot].name);
        return &value_poison;
    }
    at(b, c->call->span);
    int32_t index = ACROSS_INPUT - b->across.n;
    vec_push(&b->arena, &b->across, s);
    return made(b, g_input(b->g, index, type_scalar(type_of(b->g, s)->dtype)));
}

const Builtin builtin_value_table[] = {
    {"sum", "x, axis?, keep?", bi_sum,
     "The sum along axes: one, a list, or all. `keep` leaves them with size 1.",
     "sum(x, axis = (0, 2), keep = true)"},
    {"prod", "x, axis?, keep?", bi_prod, "The product along axes.", "prod(x, axis = 0)"},
    {"product", "x, axis?, keep?", bi_product, "The product of a list's numbers.",
     "product([2, 3])"},
    {"mean", "x, axis?, keep?", bi_mean,
     "The mean along axes. Rows that a partial batch does not have are left out.",
     "mean(x, axis = -1)"},
    {"count", "x, axis?, keep?", bi_count,
     "How many elements a `mean` along these axes is over: a number, or a scalar where it depends "
     "on a partial batch.",
     "count(x, axis = all_but(1))"},
    {"max", "x, y?, axis?, keep?", bi_max,
     "The larger of two; of one value the largest along axes.",
     "max(x, 0) + max(x, axis = 2, keep = true)"},
    {"min", "x, y?, axis?, keep?", bi_min,
     "The smaller of two; of one value the smallest along axes.", "min(x, axis = 0)"},
    {"all", "x, axis?, keep?", bi_all, "True where all along the axes are.",
     "all(x > 0, axis = 1)"},
    {"any", "x, axis?, keep?", bi_any, "True where one along the axes is.", "any(x > 0)"},
    {"argmax", "x, axis?", bi_argmax,
     "The index (i32) of the largest along an axis; the first of equals.", "argmax(x, axis = -1)"},
    {"argmin", "x, axis?", bi_argmin, "The index of the smallest along an axis.",
     "argmin(x, axis = 0)"},
    {"cumsum", "x, axis, reverse?", bi_cumsum,
     "Running sums along an axis, with `reverse` from the end.", "cumsum(x, axis = 1)"},
    {"where", "condition, x, y", bi_where, "x where the condition is true, else y.",
     "where(x > 0, x, 0)"},
    {"cast", "x, type", bi_cast,
     "Another element type. Floats become integers by cutting, within their range.",
     "cast(x, i32)"},
    {"stop_gradient", "x", bi_stop_gradient, "x, but no gradient goes through it.",
     "stop_gradient(x)"},
    {"take_along", "x, index, axis", bi_take_along,
     "One element along an axis for each place: the index has the shape of x without that axis.",
     "take_along(x, i, axis = -1)"},
    {"gather", "x, index", bi_gather, "Rows of a table, as `table[index]`.", "gather(x[0], i)"},
    {"scatter_add", "x, index, y", bi_scatter_add, "x with the rows of y added at the index.",
     "scatter_add(x[0], i[0], x[1])"},
    {"one_hot", "x, classes, type?", bi_one_hot,
     "1 at the index, 0 elsewhere, along a new last axis; f32 if no type is given.",
     "one_hot(i, 5)"},
    {"lower_triangle", "x", bi_lower_triangle,
     "For the last two axes of x: true where the column is at most the row.",
     "where(lower_triangle(x), x, -inf)"},
    {"conv", "x, weight, stride?, padding?, dilation?, groups?", bi_conv,
     "Convolution of x[N, C, ...] with weight[O, C / groups, ...]; stride, padding and dilation "
     "are one number or one for each axis.",
     "conv(reshape(x, [1, 2, 3, 4]), ones([5, 2, 2, 2], f32), padding = 1)"},
    {"conv_transpose", "x, weight, stride?, padding?, output_padding?, dilation?, groups?",
     bi_conv_transpose,
     "What a convolution with these settings does to a gradient: x[N, C, ...] and weight[C, O / "
     "groups, ...] give [N, O, ...], each axis (n - 1) * stride - 2 * padding + dilation * (taps - "
     "1) + output_padding + 1 long.",
     "conv_transpose(reshape(x, [1, 2, 3, 4]), ones([2, 5, 2, 2], f32), stride = 2)"},
    {"einsum", "spec, x, y", bi_einsum,
     "Contraction by letters: those not in the result are summed.",
     "einsum(\"bij,bkj->bik\", x, x)"},
    {"grad", "y, x", bi_grad,
     "The gradient of the number y by x, a value like any other; by a tuple, a tuple.",
     "grad(sum(x^2), x)"},
    {"across", "x", bi_across,
     "The mean of a number over all micro-batches of a step; it depends on no parameter.",
     "across(mean(x))"},
    {.name = NULL},
};
