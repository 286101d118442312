/* Comparisons, logic, choice, conversion. */
#include <math.h>
#include "../graph/op.h"

static const char discrete[] = "its result is true or false; to choose among values use `where`";

static bool shape_bool(Shape *s)
{
    if (!shape_same(s))
        return false;
    if (s->type.dtype == BOOL)
        return true;
    return shape_error(s, E0221, "`%s` takes bool, and this is %s", op_word(s->op),
                       shape_text(s, 0));
}

static bool shape_order(Shape *s)
{
    if (s->n_args > 0 && shape_arg(s, 0)->dtype == BOOL)
        return shape_error(s, E0221, "`%s` takes numbers, and this is %s", op_word(s->op),
                           shape_text(s, 0));
    return shape_compare(s);
}

/* ---- comparisons ----------------------------------------------------------------- */

/* A number compared with an x that is limited elsewhere: 6 < max(x, 0) is 6 < x. NaN is neither
 * less nor equal with its limit nor without.   gives: x, or `limited` itself. */
static Ref without_limit(const Graph *g, Ref number, Ref limited)
{
    bool low = op_of(g, limited) == OP_max;
    double c, limit;
    if ((!low && op_of(g, limited) != OP_min) || !const_value(g, number, &c))
        return limited;
    for (int i = 0; i < 2; i++)
        if (const_value(g, arg(g, limited, i), &limit) && (low ? limit < c : limit > c))
            return arg(g, limited, 1 - i);
    return limited;
}

static Ref limits_simple(Graph *g, Ref n)
{
    OpId op = op_of(g, n);
    Ref x = arg(g, n, 0), y = arg(g, n, 1);
    Ref left = without_limit(g, y, x), right = without_limit(g, x, y);
    return left == x && right == y ? NONE : g_binary(g, op, left, right);
}

static Val eq_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    return k_binary(elem_kernel(e), KI_EQ, x[0], x[1]);
}

const Op op_eq = {
    .name = "eq",
    .infix = "==",
    .n_args = 2,
    .kind = OP_POINTWISE,
    .shape = shape_compare,
    .simple = limits_simple,
    .scalar = eq_scalar,
    .nondiff = discrete,
    .doc = "True where x equals y; NaN equals nothing.",
    .example = "eq(i32[2,3], i32[2,3]); eq(f32[4], f32[4]); eq(bool[4], bool[4])",
};

static Val ne_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    return k_binary(elem_kernel(e), KI_NE, x[0], x[1]);
}

const Op op_ne = {
    .name = "ne",
    .infix = "!=",
    .n_args = 2,
    .kind = OP_POINTWISE,
    .shape = shape_compare,
    .scalar = ne_scalar,
    .nondiff = discrete,
    .doc = "True where x differs from y; NaN differs from everything.",
    .example = "ne(i32[2,3], i32[2,3]); ne(f32[4], f32[4])",
};

static Val lt_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    return k_binary(elem_kernel(e), KI_LT, x[0], x[1]);
}

const Op op_lt = {
    .name = "lt",
    .infix = "<",
    .n_args = 2,
    .kind = OP_POINTWISE,
    .shape = shape_order,
    .simple = limits_simple,
    .scalar = lt_scalar,
    .nondiff = discrete,
    .doc = "True where x is less than y.",
    .example = "lt(f32[2,3], f32[2,3]); lt(i64[3], i64[3])",
};

static Val le_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    return k_binary(elem_kernel(e), KI_LE, x[0], x[1]);
}

const Op op_le = {
    .name = "le",
    .infix = "<=",
    .n_args = 2,
    .kind = OP_POINTWISE,
    .shape = shape_order,
    .simple = limits_simple,
    .scalar = le_scalar,
    .nondiff = discrete,
    .doc = "True where x is less than y or equal.",
    .example = "le(f32[2,3], f32[2,3]); le(i32[3], i32[3])",
};

/* ---- logic ------------------------------------------------------------------------ */

static Val and_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    return k_binary(elem_kernel(e), KI_AND, x[0], x[1]);
}

/* One operand is known: it decides, or the other does. */
static Ref known(const Graph *g, Ref n, bool decides)
{
    for (int i = 0; i < 2; i++) {
        double x;
        if (const_value(g, arg(g, n, i), &x))
            return (x != 0) == decides ? arg(g, n, i) : arg(g, n, 1 - i);
    }
    return arg(g, n, 0) == arg(g, n, 1) ? arg(g, n, 0) : NONE;
}

static Ref and_simple(Graph *g, Ref n)
{
    return known(g, n, false);
}

static Ref or_simple(Graph *g, Ref n)
{
    return known(g, n, true);
}

static Ref not_simple(Graph *g, Ref n)
{
    Ref x = arg(g, n, 0);
    return op_of(g, x) == OP_not ? arg(g, x, 0) : NONE;
}

const Op op_and = {
    .name = "and",
    .infix = "and",
    .n_args = 2,
    .kind = OP_POINTWISE,
    .shape = shape_bool,
    .simple = and_simple,
    .scalar = and_scalar,
    .nondiff = discrete,
    .doc = "True where both are.",
    .example = "and(bool[2,3], bool[2,3])",
};

static Val or_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    return k_binary(elem_kernel(e), KI_OR, x[0], x[1]);
}

const Op op_or = {
    .name = "or",
    .infix = "or",
    .n_args = 2,
    .kind = OP_POINTWISE,
    .shape = shape_bool,
    .simple = or_simple,
    .scalar = or_scalar,
    .nondiff = discrete,
    .doc = "True where at least one is.",
    .example = "or(bool[2,3], bool[2,3])",
};

static Val not_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    Kernel *k = elem_kernel(e);
    Val yes = k_const_int(k, BOOL, 1);
    return k_binary(k, KI_XOR, x[0], yes);
}

const Op op_not = {
    .name = "not",
    .n_args = 1,
    .kind = OP_POINTWISE,
    .shape = shape_bool,
    .simple = not_simple,
    .scalar = not_scalar,
    .nondiff = discrete,
    .doc = "True where x is not.",
    .example = "not(bool[2,3])",
};

static bool is_finite_shape(Shape *s)
{
    if (!shape_same_float(s))
        return false;
    s->type.dtype = BOOL;
    return true;
}

/* |x| < inf, which NaN is not. */
static Val is_finite_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    Kernel *k = elem_kernel(e);
    Val size = k_unary(k, KI_ABS, x[0]);
    Val limit = k_const(k, (DType)k->inst.at[x[0]].dtype, INFINITY);
    return k_binary(k, KI_LT, size, limit);
}

const Op op_is_finite = {
    .name = "is_finite",
    .n_args = 1,
    .kind = OP_POINTWISE,
    .shape = is_finite_shape,
    .scalar = is_finite_scalar,
    .nondiff = discrete,
    .doc = "True where x is neither infinite nor NaN.",
    .example = "is_finite(f32[2,3])",
};

/* ---- choice ------------------------------------------------------------------------ */

static bool where_shape(Shape *s)
{
    Type cond = *shape_arg(s, 0);
    s->type = *shape_arg(s, 1);
    if (cond.dtype != BOOL)
        return shape_error(s, E0221, "the condition of `where` is bool, not %s", shape_text(s, 0));
    if (!type_same(shape_arg(s, 1), shape_arg(s, 2)))
        return shape_error(s, E0220, "`where` chooses between %s and %s", shape_text(s, 1),
                           shape_text(s, 2));
    cond.dtype = s->type.dtype;
    if (!type_same(&cond, &s->type))
        return shape_error(s, E0220, "`where` has the condition %s for %s", shape_text(s, 0),
                           shape_text(s, 1));
    return true;
}

static Val where_scalar(Elem *e, Ref n, const Val *x)
{
    (void)n;
    return k_select(elem_kernel(e), x[0], x[1], x[2]);
}

static void where_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    Ref cond = arg(g, n, 0);
    Ref zero = g_full(g, *type_of(g, ct), 0);
    d[1] = g_where(g, cond, ct, zero);
    d[2] = g_where(g, cond, zero, ct);
}

static Ref where_simple(Graph *g, Ref n)
{
    Ref cond = arg(g, n, 0), x = arg(g, n, 1), y = arg(g, n, 2);
    double known_cond;
    if (x == y)
        return x;
    if (const_value(g, cond, &known_cond))
        return known_cond != 0 ? x : y;
    return op_of(g, cond) == OP_not ? g_where(g, arg(g, cond, 0), y, x) : NONE;
}

const Op op_where = {
    .name = "where",
    .n_args = 3,
    .kind = OP_POINTWISE,
    .shape = where_shape,
    .simple = where_simple,
    .scalar = where_scalar,
    .vjp = where_vjp,
    .doc = "x where the condition is true, else y. What is not chosen gets a gradient of exactly "
           "0; but where y itself is infinite or NaN, its own derivative may be, and 0*inf is NaN: "
           "choose the operand of such a function, too.",
    .example = "where(bool[2,3], f32[2,3], f32[2,3]); where(bool[3], i32[3], i32[3])",
};

/* ---- conversion ------------------------------------------------------------------------ */

static bool cast_shape(Shape *s)
{
    s->type = *shape_arg(s, 0);
    if (s->type.rank < 0)
        return shape_error(s, E0221, "`cast` takes no tuple");
    s->type.dtype = (DType)shape_attr(s, "dtype")->i;
    return true;
}

static Val cast_scalar(Elem *e, Ref n, const Val *x)
{
    return k_cast(elem_kernel(e), type_of(elem_graph(e), n)->dtype, x[0]);
}

static void cast_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    DType t = type_of(g, arg(g, n, 0))->dtype;
    if (dtype_is_float(t))
        d[0] = g_cast(g, t, ct);
}

/* True if every value of `narrow` is one of `wide`. */
static bool holds(DType wide, DType narrow)
{
    switch (wide) {
    case F64:
        return narrow == F32 || narrow == F16 || narrow == BF16 || narrow == I32;
    case F32:
        return narrow == F16 || narrow == BF16 || narrow == U8;
    case I64:
        return narrow == I32 || narrow == U8;
    case I32:
        return narrow == U8;
    default:
        return false;
    }
}

/* Whether a cast from `from` to t is the same by way of `wide`: what went through a wider type did
 * not change there. But of integers a float saturates, and an integer wraps, in a narrower type. */
static bool same_through(DType wide, DType from, DType t)
{
    bool saturates = dtype_is_float(wide) && dtype_is_int(from) && dtype_is_int(t);
    return holds(wide, from) && (!saturates || t == from || holds(t, from));
}

static Ref cast_simple(Graph *g, Ref n)
{
    Ref x = arg(g, n, 0);
    DType t = type_of(g, n)->dtype, wide = type_of(g, x)->dtype;
    if (wide == t)
        return x;
    if (op_of(g, x) != OP_cast || !same_through(wide, type_of(g, arg(g, x, 0))->dtype, t))
        return NONE;
    return g_cast(g, t, arg(g, x, 0));
}

const Op op_cast = {
    .name = "cast",
    .n_args = 1,
    .kind = OP_POINTWISE,
    .attrs = {{"dtype", ATTR_DTYPE}},
    .shape = cast_shape,
    .simple = cast_simple,
    .scalar = cast_scalar,
    .vjp = cast_vjp,
    .doc =
        "Another element type. Floats round to nearest even; f16 and bf16 are made from f32, "
        "which all else becomes first. Float to integer cuts and saturates, NaN gives 0; integer "
        "to integer wraps; to bool is x != 0, which NaN is.",
    .example =
        "cast(f32[2,3], dtype = f64); cast(f32[3], dtype = bf16); cast(i32[3], dtype = f32); "
        "cast(f32[3], dtype = i32); cast(bool[3], dtype = f32)",
    .kinks = "between integers and floats no gradient passes, and none is taken for 0: a float "
             "that depends on a parameter only through integers is reported",
};
