/* Builder calls: sources, pointwise ops, reductions, indexing, control. Views: views.c;
 * contractions: matmul.c. An operand that is NONE (already reported) gives NONE. */
#include <assert.h>
#include <math.h>
#include <string.h>
#include "op.h"

static Attr of_int(int64_t i)
{
    return (Attr){.kind = ATTR_INT, .i = i};
}

static Attr of_dtype(DType t)
{
    return (Attr){.kind = ATTR_DTYPE, .i = t};
}

static Attr of_shape(const Type *t)
{
    return (Attr){.kind = ATTR_INTS, .n = t->rank, .ints = t->dim};
}

/* ---- sources --------------------------------------------------------------- */

static Ref numbered(Graph *g, OpId op, int32_t index, Type t)
{
    const Attr a[] = {of_int(index), of_dtype(t.dtype), of_shape(&t)};
    return g_node(g, op, NULL, 0, a);
}

Ref g_input(Graph *g, int32_t index, Type t)
{
    return numbered(g, OP_input, index, t);
}

Ref g_slot(Graph *g, int32_t slot, Type t)
{
    return numbered(g, OP_slot, slot, t);
}

Ref g_body_arg(Graph *body, int i, Type t)
{
    return numbered(body, OP_arg, i, t);
}

Ref g_const(Graph *g, DType t, double x)
{
    if (!dtype_is_float(t))
        return g_const_int(g, t, (int64_t)x);
    const Attr a[] = {of_dtype(t), {.kind = ATTR_FLOAT, .f = dtype_round(t, x)}};
    return g_node(g, OP_const, NULL, 0, a);
}

Ref g_const_int(Graph *g, DType t, int64_t x)
{
    if (dtype_is_float(t))
        return g_const(g, t, (double)x);
    const Attr a[] = {of_dtype(t), of_int(x)};
    return g_node(g, OP_const, NULL, 0, a);
}

Ref g_full(Graph *g, Type t, double x)
{
    Ref c = g_const(g, t.dtype, x);
    return g_broadcast(g, c, t.rank, t.dim);
}

Ref g_full_int(Graph *g, Type t, int64_t x)
{
    Ref c = g_const_int(g, t.dtype, x);
    return g_broadcast(g, c, t.rank, t.dim);
}

Ref g_zeros(Graph *g, const Type *t)
{
    return g_full(g, *t, 0);
}

Ref g_literal(Graph *g, Type t, const void *elements)
{
    const Attr a[] = {of_dtype(t.dtype), of_shape(&t), {.kind = ATTR_DATA, .data = elements}};
    Attr sized[3];
    memcpy(sized, a, sizeof a);
    assert(type_fits(&t) && type_bytes(&t) <= INT32_MAX);
    sized[2].n = (int32_t)type_bytes(&t);
    return g_node(g, OP_literal, NULL, 0, sized);
}

Ref g_iota(Graph *g, Type t, int axis)
{
    const Attr a[] = {of_dtype(t.dtype), of_shape(&t), of_int(axis)};
    return g_node(g, OP_iota, NULL, 0, a);
}

static Ref random_node(Graph *g, OpId op, const Type *t, Ref seed, Ref step, uint64_t key)
{
    const Attr a[] = {of_dtype(t->dtype), of_shape(t)};
    Ref stream = g_literal(g, type_scalar(I64), &key);
    return g_node(g, op, (Ref[]){seed, step, stream}, 3, a);
}

Ref g_random_bits(Graph *g, Type t, Ref seed, Ref step, uint64_t key)
{
    return random_node(g, OP_random_bits, &t, seed, step, key);
}

Ref g_uniform(Graph *g, Type t, Ref seed, Ref step, uint64_t key)
{
    return random_node(g, OP_uniform, &t, seed, step, key);
}

Ref g_normal(Graph *g, Type t, Ref seed, Ref step, uint64_t key)
{
    return random_node(g, OP_normal, &t, seed, step, key);
}

/* ---- pointwise ------------------------------------------------------------- */

Ref g_unary(Graph *g, OpId op, Ref x)
{
    return g_node(g, op, &x, 1, NULL);
}

Ref g_binary(Graph *g, OpId op, Ref x, Ref y)
{
    if (op == OP_pow)
        return g_pow(g, x, y);
    return g_node(g, op, (Ref[]){x, y}, 2, NULL);
}

Ref g_add(Graph *g, Ref x, Ref y)
{
    return g_binary(g, OP_add, x, y);
}

Ref g_sub(Graph *g, Ref x, Ref y)
{
    return g_binary(g, OP_sub, x, y);
}

Ref g_mul(Graph *g, Ref x, Ref y)
{
    return g_binary(g, OP_mul, x, y);
}

Ref g_div(Graph *g, Ref x, Ref y)
{
    return g_binary(g, OP_div, x, y);
}

Ref g_neg(Graph *g, Ref x)
{
    return g_unary(g, OP_neg, x);
}

Ref g_where(Graph *g, Ref cond, Ref x, Ref y)
{
    return g_node(g, OP_where, (Ref[]){cond, x, y}, 3, NULL);
}

Ref g_cast(Graph *g, DType t, Ref x)
{
    const Attr a = of_dtype(t);
    return g_node(g, OP_cast, &x, 1, &a);
}

Ref g_scale(Graph *g, Ref x, double by)
{
    if (x == NONE)
        return NONE;
    Ref c = g_full(g, *type_of(g, x), by);
    return g_mul(g, x, c);
}

Ref g_stop_gradient(Graph *g, Ref x)
{
    return g_unary(g, OP_stop_gradient, x);
}

/* x^n for n >= 1, by squaring. */
static Ref power(Graph *g, Ref x, int n)
{
    Ref result = NONE;
    for (Ref square = x;; square = g_mul(g, square, square)) {
        if (n % 2 == 1)
            result = result == NONE ? square : g_mul(g, result, square);
        n /= 2;
        if (n == 0)
            return result;
    }
}

/* x^-n stays a power, whose derivative is one, too: that of 1/x^n would have 1/x^2n in it. */
Ref g_pow(Graph *g, Ref x, Ref y)
{
    enum { MAX_POWER = 16 };
    double n;
    if (x == NONE || y == NONE)
        return NONE;
    bool small = type_same(type_of(g, x), type_of(g, y)) && const_value(g, y, &n);
    if (small && n == 0.5 && dtype_is_float(type_of(g, x)->dtype))
        return g_unary(g, OP_sqrt, x);
    if (small && n == 0)
        return g_full(g, *type_of(g, x), 1);
    if (small && n == -1 && dtype_is_float(type_of(g, x)->dtype)) {
        Ref one = g_full(g, *type_of(g, x), 1);
        return g_div(g, one, x);
    }
    if (!small || n != floor(n) || n < 0 || n > (double)MAX_POWER)
        return g_node(g, OP_pow, (Ref[]){x, y}, 2, NULL);
    return power(g, x, (int)n);
}

/* ---- reductions ------------------------------------------------------------ */

static Ref reduce_node(Graph *g, OpId op, Ref x, int axis, bool keep)
{
    const Attr a[] = {of_int(axis), {.kind = ATTR_BOOL, .i = keep}};
    return g_node(g, op, &x, 1, a);
}

/* f16 and bf16 are reduced in f32, and rounded once at the end. */
static Ref widen(Graph *g, Ref x, DType *narrow)
{
    *narrow = type_of(g, x)->dtype;
    return dtype_is_half(*narrow) ? g_cast(g, F32, x) : x;
}

static Ref narrow_again(Graph *g, Ref x, DType narrow)
{
    return dtype_is_half(narrow) ? g_cast(g, narrow, x) : x;
}

Ref g_reduce(Graph *g, OpId op, Ref x, int axis, bool keep)
{
    DType narrow;
    x = widen(g, x, &narrow);
    Ref sum = reduce_node(g, op, x, axis, keep);
    return narrow_again(g, sum, narrow);
}

/* From the last axis to the first: the first of equal maxima in row-major order is
 * then the first in each axis. */
Ref g_reduce_axes(Graph *g, OpId op, Ref x, const bool *axes, bool keep)
{
    DType narrow;
    bool any = false;
    for (int axis = 0; axis < rank(g, x); axis++)
        any = any || axes[axis];
    if (!any)
        return x;
    x = widen(g, x, &narrow);
    for (int axis = rank(g, x) - 1; axis >= 0; axis--)
        if (axes[axis])
            x = reduce_node(g, op, x, axis, keep);
    return narrow_again(g, x, narrow);
}

static const bool all_axes[MAX_RANK] = {true, true, true, true, true, true, true, true};

Ref g_sum_all(Graph *g, Ref x)
{
    return g_reduce_axes(g, OP_sum, x, all_axes, false);
}

Ref g_all_finite(Graph *g, Ref x)
{
    return g_reduce_axes(g, OP_all, g_unary(g, OP_is_finite, x), all_axes, false);
}

Ref g_sum_to(Graph *g, Ref x, const Type *t)
{
    DType narrow;
    if (x == NONE || rank(g, x) < t->rank || type_same(type_of(g, x), t))
        return x;
    Type to = *t;
    int more = rank(g, x) - to.rank;
    x = widen(g, x, &narrow);
    for (int axis = rank(g, x) - 1; axis >= more; axis--)
        if (to.dim[axis - more] == 1 && dim(g, x, axis) != 1)
            x = reduce_node(g, OP_sum, x, axis, true);
    for (int axis = more - 1; axis >= 0; axis--)
        x = reduce_node(g, OP_sum, x, axis, false);
    return narrow_again(g, x, narrow);
}

Ref g_argmax(Graph *g, Ref x, int axis)
{
    const Attr a = of_int(axis);
    return g_node(g, OP_argmax, &x, 1, &a);
}

/* ---- indexing -------------------------------------------------------------- */

Ref g_gather(Graph *g, Ref table, Ref index)
{
    return g_node(g, OP_gather, (Ref[]){table, index}, 2, NULL);
}

Ref g_scatter_add(Graph *g, Ref base, Ref index, Ref update)
{
    return g_node(g, OP_scatter_add, (Ref[]){base, index, update}, 3, NULL);
}

Ref g_take_along(Graph *g, Ref x, Ref index, int axis)
{
    const Attr a = of_int(axis);
    return g_node(g, OP_take_along, (Ref[]){x, index}, 2, &a);
}

Ref g_cumsum(Graph *g, Ref x, int axis, bool down)
{
    const Attr a[] = {of_int(axis), {.kind = ATTR_BOOL, .i = down}};
    return g_node(g, OP_cumsum, &x, 1, a);
}

/* ---- tuples and loops ------------------------------------------------------ */

Ref g_tuple(Graph *g, const Ref *x, int n)
{
    return g_node(g, OP_tuple, x, n, NULL);
}

Ref g_pick(Graph *g, Ref tuple, int i)
{
    const Attr a = of_int(i);
    return g_node(g, OP_pick, &tuple, 1, &a);
}

Ref g_scan(Graph *g, Graph *body, const Ref *args, int n_args, Scan is)
{
    const Attr a[] = {
        [SCAN_CARRIES] = of_int(is.carries),
        [SCAN_SEQUENCES] = of_int(is.sequences),
        [SCAN_COUNT] = of_int(is.count),
        [SCAN_DOWN] = {.kind = ATTR_BOOL, .i = is.down},
        [SCAN_LEAN] = {.kind = ATTR_BOOL, .i = is.lean},
        [SCAN_BODY] = {.kind = ATTR_BODY, .body = body},
    };
    return g_node(g, OP_scan, args, n_args, a);
}

Scan scan_of(const Graph *g, Ref scan)
{
    return (Scan){.carries = (int)attr(g, scan, SCAN_CARRIES)->i,
                  .sequences = (int)attr(g, scan, SCAN_SEQUENCES)->i,
                  .count = attr(g, scan, SCAN_COUNT)->i,
                  .down = attr(g, scan, SCAN_DOWN)->i != 0,
                  .lean = attr(g, scan, SCAN_LEAN)->i != 0};
}

Ref g_custom_vjp(Graph *g, Graph *rule, Ref y, const Ref *xs, int n_xs, int active)
{
    const Attr a[] = {of_int(active), {.kind = ATTR_BODY, .body = rule}};
    ArenaMark mark = arena_mark(&g->cx->scratch);
    Ref *args = NEW_ARRAY(&g->cx->scratch, Ref, n_xs + 1);
    args[0] = y;
    for (int i = 0; i < n_xs; i++)
        args[i + 1] = xs[i];
    Ref made = g_node(g, OP_custom_vjp, args, n_xs + 1, a);
    arena_reset(&g->cx->scratch, mark);
    return made;
}

/* ---- known values ---------------------------------------------------------- */

bool const_value(const Graph *g, Ref x, double *value)
{
    while (op_of(g, x) == OP_broadcast || op_of(g, x) == OP_reshape ||
           op_of(g, x) == OP_transpose || op_of(g, x) == OP_slice)
        x = arg(g, x, 0);
    if (op_of(g, x) != OP_const)
        return false;
    const Attr *a = attr(g, x, 1);
    *value = a->kind == ATTR_INT ? (double)a->i : a->f;
    return true;
}

Ref repeated_scalar(const Graph *g, Ref x)
{
    while (op_of(g, x) == OP_broadcast || op_of(g, x) == OP_reshape)
        x = arg(g, x, 0);
    return rank(g, x) == 0 ? x : NONE;
}

bool const_is(const Graph *g, Ref x, double value)
{
    double is;
    return const_value(g, x, &is) && is == value;
}

bool const_is_zero(const Graph *g, Ref x, bool negative)
{
    double is;
    if (!const_value(g, x, &is) || is != 0)
        return false;
    return !dtype_is_float(type_of(g, x)->dtype) || (signbit(is) != 0) == negative;
}
