/* Pointwise arithmetic. Rules use conditions (where), not factors of 0 and 1, so that
 * nothing meets 0*inf and the second derivative has no op without a rule. */
#include <math.h>
#include <stdlib.h>
#include "../graph/op.h"

static Ref full_like(Graph *g, Ref x, double value)
{
    return g_full(g, *type_of(g, x), value);
}

static DType dtype_at(Elem *e, Val x)
{
    return (DType)elem_kernel(e)->inst.at[x].dtype;
}

static Val number(Elem *e, Val like_this, double x)
{
    return k_const(elem_kernel(e), dtype_at(e, like_this), x);
}

static bool shape_number(Shape *s)
{
    if (!shape_same(s))
        return false;
    if (s->type.dtype != BOOL)
        return true;
    return shape_error(s, E0221, "`%s` takes numbers, and this is %s", op_word(s->op),
                       shape_text(s, 0));
}

/* ---- + - * / ----------------------------------------------------------------- */

static Val add_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    return k_binary(elem_kernel(e), KI_ADD, x[0], x[1]);
}

static void add_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    (void)g, (void)n;
    d[0] = d[1] = ct;
}

/* x + -0 is x; but -0 + 0 is 0. x + -y is x - y. */
static Ref add_simple(Graph *g, Ref n)
{
    for (int i = 0; i < 2; i++) {
        Ref x = arg(g, n, 1 - i), y = arg(g, n, i);
        if (const_is_zero(g, y, true))
            return x;
        if (op_of(g, y) == OP_neg)
            return g_sub(g, x, arg(g, y, 0));
    }
    return NONE;
}

const Op op_add = {
    .name = "add",
    .infix = "+",
    .n_args = 2,
    .kind = OP_POINTWISE,
    .shape = shape_number,
    .simple = add_simple,
    .scalar = add_scalar,
    .vjp = add_vjp,
    .doc = "x + y. Integers wrap.",
    .example = "add(f32[2,3], f32[2,3]); add(i32[4], i32[4])",
};

static Val sub_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    return k_binary(elem_kernel(e), KI_SUB, x[0], x[1]);
}

static void sub_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    (void)n;
    d[0] = ct;
    d[1] = g_neg(g, ct);
}

/* x - 0 is x; but -0 - -0 is 0. x - -y is x + y. */
static Ref sub_simple(Graph *g, Ref n)
{
    Ref x = arg(g, n, 0), y = arg(g, n, 1);
    if (const_is_zero(g, y, false))
        return x;
    return op_of(g, y) == OP_neg ? g_add(g, x, arg(g, y, 0)) : NONE;
}

const Op op_sub = {
    .name = "sub",
    .infix = "-",
    .n_args = 2,
    .kind = OP_POINTWISE,
    .shape = shape_number,
    .simple = sub_simple,
    .scalar = sub_scalar,
    .vjp = sub_vjp,
    .doc = "x - y. Integers wrap.",
    .example = "sub(f32[2,3], f32[2,3]); sub(i64[4], i64[4])",
};

static Val mul_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    return k_binary(elem_kernel(e), KI_MUL, x[0], x[1]);
}

static void mul_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    d[0] = g_mul(g, ct, arg(g, n, 1));
    d[1] = g_mul(g, ct, arg(g, n, 0));
}

static Ref mul_simple(Graph *g, Ref n)
{
    for (int i = 0; i < 2; i++)
        if (const_is(g, arg(g, n, i), 1))
            return arg(g, n, 1 - i);
    return NONE;
}

const Op op_mul = {
    .name = "mul",
    .infix = "*",
    .n_args = 2,
    .kind = OP_POINTWISE,
    .shape = shape_number,
    .simple = mul_simple,
    .scalar = mul_scalar,
    .vjp = mul_vjp,
    .doc = "x * y. Integers wrap.",
    .example = "mul(f32[2,3], f32[2,3]); mul(i32[4], i32[4])",
};

static Val div_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    return k_binary(elem_kernel(e), KI_DIV, x[0], x[1]);
}

/* dy = -(ct / y) * n, where n = x / y is at hand. */
static void div_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    d[0] = g_div(g, ct, arg(g, n, 1));
    Ref down = g_neg(g, d[0]);
    d[1] = g_mul(g, down, n);
}

/* x / y is x * (1/y) where y is a power of two: both are exact but for one rounding. Not
 * where 1/y is beyond the smallest type. */
static Ref div_simple(Graph *g, Ref n)
{
    enum { MOST = 14 };
    double y;
    int exponent;
    if (!const_value(g, arg(g, n, 1), &y))
        return NONE;
    if (y == 1)
        return arg(g, n, 0);
    if (!dtype_is_float(type_of(g, n)->dtype) || fabs(frexp(y, &exponent)) != 0.5 ||
        abs(exponent - 1) > MOST)
        return NONE;
    Ref inverse = g_full(g, *type_of(g, n), 1 / y);
    return g_mul(g, arg(g, n, 0), inverse);
}

const Op op_div = {
    .name = "div",
    .infix = "/",
    .n_args = 2,
    .kind = OP_POINTWISE,
    .shape = shape_number,
    .simple = div_simple,
    .scalar = div_scalar,
    .vjp = div_vjp,
    .doc = "x / y. Integers: cut towards zero, and x / 0 = 0.",
    .example = "div(f32[2,3], f32[2,3]); div(i32[4], i32[4])",
    .domain = {0.5, 2},
};

static bool rem_shape(Shape *s)
{
    if (!shape_same(s))
        return false;
    if (dtype_is_int(s->type.dtype))
        return true;
    return shape_error(s, E0221, "`%s` takes integers, and this is %s", op_word(s->op),
                       shape_text(s, 0));
}

static Val rem_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    return k_binary(elem_kernel(e), KI_REM, x[0], x[1]);
}

const Op op_rem = {
    .name = "rem",
    .infix = "%",
    .n_args = 2,
    .kind = OP_POINTWISE,
    .shape = rem_shape,
    .scalar = rem_scalar,
    .nondiff = "it is for integers",
    .doc = "x - y * (x / y) of integers, with the sign of x; x % 0 = 0.",
    .example = "rem(i32[4], i32[4]); rem(i64[4], i64[4])",
};

/* ---- one operand ---------------------------------------------------------------- */

static Val neg_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    return k_unary(elem_kernel(e), KI_NEG, x[0]);
}

static void neg_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    (void)n;
    d[0] = g_neg(g, ct);
}

static Ref neg_simple(Graph *g, Ref n)
{
    Ref x = arg(g, n, 0);
    return op_of(g, x) == OP_neg ? arg(g, x, 0) : NONE;
}

const Op op_neg = {
    .name = "neg",
    .n_args = 1,
    .kind = OP_POINTWISE,
    .shape = shape_number,
    .simple = neg_simple,
    .scalar = neg_scalar,
    .vjp = neg_vjp,
    .doc = "-x",
    .example = "neg(f32[2,3]); neg(i32[3])",
};

static Val abs_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    return k_unary(elem_kernel(e), KI_ABS, x[0]);
}

static void abs_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    Ref x = arg(g, n, 0);
    Ref zero = full_like(g, x, 0);
    Ref down = g_neg(g, ct);
    Ref positive = g_node(g, OP_lt, (Ref[]){zero, x}, 2, NULL);
    Ref negative = g_node(g, OP_lt, (Ref[]){x, zero}, 2, NULL);
    Ref not_up = g_where(g, negative, down, zero);
    d[0] = g_where(g, positive, ct, not_up);
}

/* |-x| is |x|, but not of u8: there is no -x below 0, and |x| is x. */
static Ref abs_simple(Graph *g, Ref n)
{
    Ref x = arg(g, n, 0);
    if (op_of(g, x) == OP_abs || type_of(g, x)->dtype == U8)
        return x;
    return op_of(g, x) == OP_neg ? g_unary(g, OP_abs, arg(g, x, 0)) : NONE;
}

const Op op_abs = {
    .name = "abs",
    .n_args = 1,
    .kind = OP_POINTWISE,
    .shape = shape_number,
    .simple = abs_simple,
    .scalar = abs_scalar,
    .vjp = abs_vjp,
    .doc = "|x|",
    .example = "abs(f32[2,3]); abs(i32[3])",
    .kinks = "at 0 the derivative is 0",
};

static Val sign_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    Kernel *k = elem_kernel(e);
    Val zero = number(e, x[0], 0);
    Val one = number(e, x[0], 1);
    Val minus = number(e, x[0], -1);
    Val negative = k_binary(k, KI_LT, x[0], zero);
    Val positive = k_binary(k, KI_LT, zero, x[0]);
    Val down = k_select(k, negative, minus, x[0]);
    return k_select(k, positive, one, down);
}

const Op op_sign = {
    .name = "sign",
    .n_args = 1,
    .kind = OP_POINTWISE,
    .shape = shape_number,
    .scalar = sign_scalar,
    .nondiff = "its slope is 0 wherever it has one",
    .doc = "1, -1, or x itself where it is 0 or NaN.",
    .example = "sign(f32[2,3]); sign(i32[3])",
};

/* ---- the larger and the smaller ---------------------------------------------------- */

/* KI_MAX gives b where a is NaN. */
static Val extreme(Elem *e, KOp op, const Val *x)
{
    Kernel *k = elem_kernel(e);
    Val m = k_binary(k, op, x[0], x[1]);
    if (!dtype_is_float(dtype_at(e, x[0])))
        return m;
    Val nan = k_binary(k, KI_NE, x[0], x[0]);
    return k_select(k, nan, x[0], m);
}

static Val max_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    return extreme(e, KI_MAX, x);
}

static Val min_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    return extreme(e, KI_MIN, x);
}

/* d[0] = ct but where low < high, d[1] = ct but where high < low; half of it each where
 * they are equal. */
static void chosen(Graph *g, Ref ct, Ref low, Ref high, Ref d[])
{
    Ref zero = full_like(g, ct, 0);
    Ref half = g_scale(g, ct, 0.5);
    Ref equal = g_node(g, OP_eq, (Ref[]){low, high}, 2, NULL);
    Ref below = g_node(g, OP_lt, (Ref[]){low, high}, 2, NULL);
    Ref above = g_node(g, OP_lt, (Ref[]){high, low}, 2, NULL);
    Ref first = g_where(g, below, zero, ct);
    Ref second = g_where(g, above, zero, ct);
    d[0] = g_where(g, equal, half, first);
    d[1] = g_where(g, equal, half, second);
}

static void max_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    Ref x = arg(g, n, 0), y = arg(g, n, 1);
    chosen(g, ct, x, y, d);
}

static void min_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    Ref x = arg(g, n, 0), y = arg(g, n, 1);
    chosen(g, ct, y, x, d); /* x is left out where y is less */
}

static Ref same_simple(Graph *g, Ref n)
{
    return arg(g, n, 0) == arg(g, n, 1) ? arg(g, n, 0) : NONE;
}

#define TIES "where both are equal each gets half, as in PyTorch and JAX"

const Op op_min = {
    .name = "min",
    .n_args = 2,
    .kind = OP_POINTWISE,
    .shape = shape_number,
    .simple = same_simple,
    .scalar = min_scalar,
    .vjp = min_vjp,
    .doc = "The smaller of x and y; NaN if one is.",
    .example = "min(f32[2,3], f32[2,3]); min(i32[3], i32[3])",
    .kinks = TIES,
};

const Op op_max = {
    .name = "max",
    .n_args = 2,
    .kind = OP_POINTWISE,
    .shape = shape_number,
    .simple = same_simple,
    .scalar = max_scalar,
    .vjp = max_vjp,
    .doc = "The larger of x and y; NaN if one is.",
    .example = "max(f32[2,3], f32[2,3]); max(i32[3], i32[3])",
    .kinks = TIES,
};

static Val relu_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    Val zero = number(e, x[0], 0);
    return k_binary(elem_kernel(e), KI_MAX, zero, x[0]);
}

static void relu_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    /* The result is positive where x is; asking it, x need not be kept. */
    Ref zero = full_like(g, n, 0);
    Ref on = g_node(g, OP_lt, (Ref[]){zero, n}, 2, NULL);
    d[0] = g_where(g, on, ct, zero);
}

static Ref relu_simple(Graph *g, Ref n)
{
    Ref x = arg(g, n, 0);
    return op_of(g, x) == OP_relu ? x : NONE;
}

const Op op_relu = {
    .name = "relu",
    .n_args = 1,
    .kind = OP_POINTWISE,
    .shape = shape_number,
    .simple = relu_simple,
    .scalar = relu_scalar,
    .vjp = relu_vjp,
    .doc = "x where it is positive, else 0; NaN stays.",
    .example = "relu(f32[2,3]); relu(i32[3])",
    .kinks = "at 0 the derivative is 0",
};

/* ---- steps -------------------------------------------------------------------------- */

static Val floor_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    return k_unary(elem_kernel(e), KI_FLOOR, x[0]);
}

static Val ceil_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    Kernel *k = elem_kernel(e);
    Val down = k_unary(k, KI_NEG, x[0]);
    Val lower = k_unary(k, KI_FLOOR, down);
    return k_unary(k, KI_NEG, lower);
}

static Val round_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    return k_unary(elem_kernel(e), KI_RINT, x[0]);
}

static const char steps[] = "its slope is 0 wherever it has one; to let it pass as if nothing were "
                            "rounded, write x + stop_gradient(round(x) - x)";

const Op op_floor = {
    .name = "floor",
    .n_args = 1,
    .kind = OP_POINTWISE,
    .shape = shape_same_float,
    .scalar = floor_scalar,
    .nondiff = steps,
    .doc = "The largest integer that is not above x.",
    .example = "floor(f32[2,3])",
    .domain = {-3, 3},
};

const Op op_ceil = {
    .name = "ceil",
    .n_args = 1,
    .kind = OP_POINTWISE,
    .shape = shape_same_float,
    .scalar = ceil_scalar,
    .nondiff = steps,
    .doc = "The smallest integer that is not below x.",
    .example = "ceil(f32[2,3])",
    .domain = {-3, 3},
};

const Op op_round = {
    .name = "round",
    .n_args = 1,
    .kind = OP_POINTWISE,
    .shape = shape_same_float,
    .scalar = round_scalar,
    .nondiff = steps,
    .doc = "The nearest integer, the even one of two.",
    .example = "round(f32[2,3])",
    .domain = {-3, 3},
};
