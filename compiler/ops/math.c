/* Pointwise transcendental functions and roots. A rule reads the result where that
 * serves (exp, tanh, sigmoid, sqrt), so that x itself need not be kept. */
#include <math.h>
#include "../graph/op.h"

static Val number(Elem *e, Val like_this, double x)
{
    Kernel *k = elem_kernel(e);
    return k_const(k, (DType)k->inst.at[like_this].dtype, x);
}

static Ref full_like(Graph *g, Ref x, double value)
{
    return g_full(g, *type_of(g, x), value);
}

/* ---- roots ------------------------------------------------------------------------ */

static Val sqrt_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    return k_unary(elem_kernel(e), KI_SQRT, x[0]);
}

/* ct / (2 sqrt x) */
static void sqrt_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    Ref half = g_scale(g, ct, 0.5);
    d[0] = g_div(g, half, n);
}

const Op op_sqrt = {
    .name = "sqrt",
    .n_args = 1,
    .kind = OP_POINTWISE,
    .shape = shape_same_float,
    .scalar = sqrt_scalar,
    .vjp = sqrt_vjp,
    .doc = "The square root; NaN below 0.",
    .example = "sqrt(f32[2,3])",
    .domain = {0.2, 3},
    .kinks = "at 0 the derivative is infinite",
};

static Val rsqrt_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    Kernel *k = elem_kernel(e);
    Val root = k_unary(k, KI_SQRT, x[0]);
    Val one = number(e, x[0], 1);
    return k_binary(k, KI_DIV, one, root);
}

/* -ct/2 * y^3 */
static void rsqrt_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    Ref half = g_scale(g, ct, -0.5);
    Ref square = g_mul(g, n, n);
    Ref cube = g_mul(g, square, n);
    d[0] = g_mul(g, half, cube);
}

const Op op_rsqrt = {
    .name = "rsqrt",
    .n_args = 1,
    .kind = OP_POINTWISE,
    .shape = shape_same_float,
    .scalar = rsqrt_scalar,
    .vjp = rsqrt_vjp,
    .doc = "1 / sqrt(x)",
    .example = "rsqrt(f32[2,3])",
    .domain = {0.2, 3},
};

/* ---- exponentials and logarithms ------------------------------------------------------ */

static Val exp_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    return k_unary(elem_kernel(e), KI_EXP, x[0]);
}

static void exp_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    d[0] = g_mul(g, ct, n);
}

const Op op_exp = {
    .name = "exp",
    .n_args = 1,
    .kind = OP_POINTWISE,
    .shape = shape_same_float,
    .scalar = exp_scalar,
    .vjp = exp_vjp,
    .doc = "e^x",
    .example = "exp(f32[2,3])",
};

static Val log_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    return k_unary(elem_kernel(e), KI_LOG, x[0]);
}

static void log_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    d[0] = g_div(g, ct, arg(g, n, 0));
}

const Op op_log = {
    .name = "log",
    .n_args = 1,
    .kind = OP_POINTWISE,
    .shape = shape_same_float,
    .scalar = log_scalar,
    .vjp = log_vjp,
    .doc = "The natural logarithm; -inf at 0, NaN below.",
    .example = "log(f32[2,3])",
    .domain = {0.2, 3},
};

static Val log1p_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    return k_unary(elem_kernel(e), KI_LOG1P, x[0]);
}

static void log1p_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    Ref x = arg(g, n, 0);
    Ref one = full_like(g, x, 1);
    Ref more = g_add(g, x, one);
    d[0] = g_div(g, ct, more);
}

const Op op_log1p = {
    .name = "log1p",
    .n_args = 1,
    .kind = OP_POINTWISE,
    .shape = shape_same_float,
    .scalar = log1p_scalar,
    .vjp = log1p_vjp,
    .doc = "log(1 + x), exact near 0.",
    .example = "log1p(f32[2,3])",
    .domain = {-0.5, 2},
};

static Val expm1_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    return k_unary(elem_kernel(e), KI_EXPM1, x[0]);
}

static void expm1_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    Ref one = full_like(g, n, 1);
    Ref slope = g_add(g, n, one);
    d[0] = g_mul(g, ct, slope);
}

const Op op_expm1 = {
    .name = "expm1",
    .n_args = 1,
    .kind = OP_POINTWISE,
    .shape = shape_same_float,
    .scalar = expm1_scalar,
    .vjp = expm1_vjp,
    .doc = "e^x - 1, exact near 0.",
    .example = "expm1(f32[2,3])",
};

/* ---- angles ----------------------------------------------------------------------------- */

static Val sin_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    return k_unary(elem_kernel(e), KI_SIN, x[0]);
}

static void sin_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    Ref slope = g_unary(g, OP_cos, arg(g, n, 0));
    d[0] = g_mul(g, ct, slope);
}

const Op op_sin = {
    .name = "sin",
    .n_args = 1,
    .kind = OP_POINTWISE,
    .shape = shape_same_float,
    .scalar = sin_scalar,
    .vjp = sin_vjp,
    .doc = "The sine of radians.",
    .example = "sin(f32[2,3])",
    .domain = {-3, 3},
};

static Val cos_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    return k_unary(elem_kernel(e), KI_COS, x[0]);
}

static void cos_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    Ref slope = g_unary(g, OP_sin, arg(g, n, 0));
    Ref up = g_mul(g, ct, slope);
    d[0] = g_neg(g, up);
}

const Op op_cos = {
    .name = "cos",
    .n_args = 1,
    .kind = OP_POINTWISE,
    .shape = shape_same_float,
    .scalar = cos_scalar,
    .vjp = cos_vjp,
    .doc = "The cosine of radians.",
    .example = "cos(f32[2,3])",
    .domain = {-3, 3},
};

/* ---- curves of neurons -------------------------------------------------------------------- */

static Val tanh_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    return k_unary(elem_kernel(e), KI_TANH, x[0]);
}

/* ct * (1 - y*y) */
static void tanh_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    Ref one = full_like(g, n, 1);
    Ref square = g_mul(g, n, n);
    Ref slope = g_sub(g, one, square);
    d[0] = g_mul(g, ct, slope);
}

const Op op_tanh = {
    .name = "tanh",
    .n_args = 1,
    .kind = OP_POINTWISE,
    .shape = shape_same_float,
    .scalar = tanh_scalar,
    .vjp = tanh_vjp,
    .doc = "The hyperbolic tangent.",
    .example = "tanh(f32[2,3])",
    .domain = {-2, 2},
};

/* With t = e^-|x|, which cannot overflow: 1/(1+t) for x >= 0, else t/(1+t). */
static Val sigmoid_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    Kernel *k = elem_kernel(e);
    Val size = k_unary(k, KI_ABS, x[0]);
    Val down = k_unary(k, KI_NEG, size);
    Val t = k_unary(k, KI_EXP, down);
    Val one = number(e, x[0], 1);
    Val zero = number(e, x[0], 0);
    Val sum = k_binary(k, KI_ADD, one, t);
    Val up = k_binary(k, KI_LE, zero, x[0]);
    Val top = k_select(k, up, one, t);
    return k_binary(k, KI_DIV, top, sum);
}

/* ct * y * (1 - y) */
static void sigmoid_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    Ref one = full_like(g, n, 1);
    Ref rest = g_sub(g, one, n);
    Ref slope = g_mul(g, n, rest);
    d[0] = g_mul(g, ct, slope);
}

const Op op_sigmoid = {
    .name = "sigmoid",
    .n_args = 1,
    .kind = OP_POINTWISE,
    .shape = shape_same_float,
    .scalar = sigmoid_scalar,
    .vjp = sigmoid_vjp,
    .doc = "1 / (1 + e^-x), without overflow.",
    .example = "sigmoid(f32[2,3])",
    .domain = {-3, 3},
};

static Val erf_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    return k_unary(elem_kernel(e), KI_ERF, x[0]);
}

/* ct * 2/sqrt(pi) * e^(-x*x) */
/* In f32 for halves: the number is none. */
static void erf_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    const double two_over_root_pi = 1.1283791670955125739;
    Ref x = arg(g, n, 0);
    DType t = type_of(g, x)->dtype;
    if (dtype_is_half(t)) {
        x = g_cast(g, F32, x);
        ct = g_cast(g, F32, ct);
    }
    Ref square = g_mul(g, x, x);
    Ref down = g_neg(g, square);
    Ref bell = g_unary(g, OP_exp, down);
    Ref slope = g_scale(g, bell, two_over_root_pi);
    Ref back = g_mul(g, ct, slope);
    d[0] = dtype_is_half(t) ? g_cast(g, t, back) : back;
}

const Op op_erf = {
    .name = "erf",
    .n_args = 1,
    .kind = OP_POINTWISE,
    .shape = shape_same_float,
    .scalar = erf_scalar,
    .vjp = erf_vjp,
    .doc = "The error function.",
    .example = "erf(f32[2,3])",
    .domain = {-2, 2},
    .source = "Abramowitz & Stegun (1964), 7.1.1",
};

/* ---- powers --------------------------------------------------------------------------------- */

/* 1/x^n for n >= 1, by squaring. */
static Val inverse_power(Kernel *k, Val x, Val one, int n)
{
    Val power = n % 2 == 1 ? x : one;
    for (Val square = x; (n /= 2) != 0;) {
        square = k_binary(k, KI_MUL, square, square);
        if (n % 2 == 1)
            power = power == one ? square : k_binary(k, KI_MUL, power, square);
    }
    return k_binary(k, KI_DIV, one, power);
}

/* Twice as far as g_pow() goes, for derivatives. */
static Val pow_scalar(Elem *e, Ref n, const Val *x)
{
    enum { MAX_POWER = 32 };
    const Graph *g = elem_graph(e);
    double y;
    if (!const_value(g, arg(g, n, 1), &y) || y >= 0 || y < -MAX_POWER || y != floor(y))
        return k_binary(elem_kernel(e), KI_POW, x[0], x[1]);
    Val one = number(e, x[0], 1);
    return inverse_power(elem_kernel(e), x[0], one, (int)-y);
}

/* y * x^(y-1), and 0 where y is 0, though x^-1 may be infinite. */
static Ref pow_by_base(Graph *g, Ref x, Ref y)
{
    Ref zero = full_like(g, y, 0);
    Ref one = full_like(g, y, 1);
    Ref constant = g_node(g, OP_eq, (Ref[]){y, zero}, 2, NULL);
    Ref less = g_sub(g, y, one);
    Ref exponent = g_where(g, constant, one, less);
    Ref power = g_node(g, OP_pow, (Ref[]){x, exponent}, 2, NULL);
    Ref slope = g_mul(g, y, power);
    return g_where(g, constant, zero, slope);
}

/* n * log x, and 0 where x is 0, though log x is -inf and n may be infinite. */
static Ref pow_by_exponent(Graph *g, Ref n, Ref x)
{
    Ref zero = full_like(g, x, 0);
    Ref one = full_like(g, x, 1);
    Ref at_zero = g_node(g, OP_eq, (Ref[]){x, zero}, 2, NULL);
    Ref base = g_where(g, at_zero, one, x);
    Ref log = g_unary(g, OP_log, base);
    Ref power = g_where(g, at_zero, zero, n);
    return g_mul(g, power, log);
}

static void pow_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    Ref x = arg(g, n, 0), y = arg(g, n, 1);
    Ref by_x = pow_by_base(g, x, y);
    Ref by_y = pow_by_exponent(g, n, x);
    d[0] = g_mul(g, ct, by_x);
    d[1] = g_mul(g, ct, by_y);
}

const Op op_pow = {
    .name = "pow",
    .infix = "^",
    .n_args = 2,
    .kind = OP_POINTWISE,
    .shape = shape_same_float,
    .scalar = pow_scalar,
    .vjp = pow_vjp,
    .doc = "x to the power y, as C's pow. A constant exponent n, -n (n up to 16) or 0.5 becomes "
           "multiplications, a division or a root.",
    .example = "pow(f32[2,3], f32[2,3])",
    .domain = {0.3, 2},
    .by_number = true,
    .kinks = "by x where y is 0: 0; by y where x is 0: 0; by y where x is below 0: NaN",
};
