/* Operators on constants: exactly for integers, and in double for the others. */
#include "eval.h"

#include <math.h>

static const Value *overflow(Build *b, const Spans *s)
{
    complain(b, E0008, s->op, "the result does not fit into 64 bits");
    return &value_poison;
}

static bool int_add(int64_t x, int64_t y, int64_t *out)
{
    if (y > 0 ? x > INT64_MAX - y : x < INT64_MIN - y)
        return false;
    *out = x + y;
    return true;
}

static bool int_mul(int64_t x, int64_t y, int64_t *out)
{
    if (x == 0 || y == 0) {
        *out = 0;
        return true;
    }
    if (x == INT64_MIN || y == INT64_MIN)
        return false;
    uint64_t ux = (uint64_t)(x < 0 ? -x : x), uy = (uint64_t)(y < 0 ? -y : y);
    if (ux > (uint64_t)INT64_MAX / uy)
        return false;
    *out = x * y;
    return true;
}

/* Rounded down, as the remainder has the sign of y. */
static int64_t int_floor_div(int64_t x, int64_t y)
{
    int64_t q = x / y;
    return q - (x % y != 0 && (x < 0) != (y < 0));
}

static bool int_pow(int64_t x, int64_t n, int64_t *out)
{
    *out = 1;
    for (int64_t i = 0; i < n; i++) {
        if (!int_mul(*out, x, out))
            return false;
        if (*out == 0 || (*out == 1 && x == 1))
            return true;
        if (i > 128 && (x == -1))
            break;
    }
    if (x == -1)
        *out = n % 2 == 0 ? 1 : -1;
    return true;
}

static const Value *division_by_zero(Build *b, const Spans *s)
{
    Diag *d = complain(b, E0208, s->op, "a constant is divided by 0");
    mark_range(b, d, s->right);
    return &value_poison;
}

const Value *fold_result(Build *b, double z, bool of_finite, Span at)
{
    if (isnan(z)) {
        complain(b, E0208, at, "the result of these constants is not a number");
        return &value_poison;
    }
    if (isinf(z) && of_finite) {
        Diag *d = complain(b, E0008, at, "the result of these constants is beyond 1.8e308");
        diag_help(b->cx, d, "what is beyond every number is `inf`");
        return &value_poison;
    }
    return value_float(&b->arena, z);
}

/* With the sign of y, as of tensors (arith.c). */
static double float_mod(double x, double y)
{
    double q = floor(x / y), rem = q == 0 ? x - q : x - y * q;
    return rem != 0 && (rem < 0) != (y < 0) ? rem + y : rem;
}

/* y is not 0 where it divides. */
static double float_result(Operator op, double x, double y)
{
    switch (op) {
    case OPERATOR_ADD:
        return x + y;
    case OPERATOR_SUB:
        return x - y;
    case OPERATOR_MUL:
        return x * y;
    case OPERATOR_POW:
        return pow(x, y);
    case OPERATOR_DIV:
        return x / y;
    case OPERATOR_FLOORDIV:
        return floor(x / y);
    default:
        return float_mod(x, y);
    }
}

static const Value *fold_floats(Build *b, Operator op, double x, double y, const Spans *s)
{
    bool divides = op == OPERATOR_DIV || op == OPERATOR_FLOORDIV || op == OPERATOR_MOD;
    if ((divides && y == 0) || (op == OPERATOR_POW && x == 0 && y < 0))
        return division_by_zero(b, s);
    return fold_result(b, float_result(op, x, y), isfinite(x) && isfinite(y), s->op);
}

static const Value *fold_ints(Build *b, Operator op, int64_t x, int64_t y, const Spans *s)
{
    int64_t z = 0;
    bool fits = true;
    bool divides = op == OPERATOR_FLOORDIV || op == OPERATOR_MOD;
    if (divides && y == 0)
        return division_by_zero(b, s);
    if (divides && y == -1) { /* x / -1 may not fit */
        if (op == OPERATOR_MOD)
            return value_int(&b->arena, 0);
        fits = int_mul(x, -1, &z);
        return fits ? value_int(&b->arena, z) : overflow(b, s);
    }
    switch (op) {
    case OPERATOR_ADD:
        fits = int_add(x, y, &z);
        break;
    case OPERATOR_SUB:
        fits = y != INT64_MIN && int_add(x, -y, &z);
        break;
    case OPERATOR_MUL:
        fits = int_mul(x, y, &z);
        break;
    case OPERATOR_FLOORDIV:
        z = int_floor_div(x, y);
        break;
    case OPERATOR_MOD:
        z = x % y;
        z += z != 0 && (z < 0) != (y < 0) ? y : 0;
        break;
    default: /* POW */
        if (y < 0)
            return fold_floats(b, op, (double)x, (double)y, s);
        fits = int_pow(x, y, &z);
        break;
    }
    return fits ? value_int(&b->arena, z) : overflow(b, s);
}

static bool is_order(Operator op)
{
    return op == OPERATOR_LT || op == OPERATOR_LE || op == OPERATOR_GT || op == OPERATOR_GE;
}

static bool ordered(Operator op, double x, double y)
{
    return op == OPERATOR_LT   ? x < y
           : op == OPERATOR_LE ? x <= y
           : op == OPERATOR_GT ? x > y
                               : x >= y;
}

static bool ordered_ints(Operator op, int64_t x, int64_t y)
{
    return op == OPERATOR_LT   ? x < y
           : op == OPERATOR_LE ? x <= y
           : op == OPERATOR_GT ? x > y
                               : x >= y;
}

const Value *fold_refused(Build *b, Operator op, const Value *l, const Value *r, const Spans *s)
{
    Diag *d = complain(b, E0209, s->op, "`%s` does not go with %s and %s", operator_spelling(op),
                       value_kind_text(l), value_kind_text(r));
    mark_range(b, d, s->left);
    mark_range(b, d, s->right);
    return &value_poison;
}

const Value *fold_concat(Build *b, const Value *l, const Value *r)
{
    ArenaMark mark = arena_mark(&b->cx->scratch);
    const Value **all = NEW_ARRAY(&b->cx->scratch, const Value *, l->n + r->n);
    for (int i = 0; i < l->n + r->n; i++)
        all[i] = i < l->n ? l->item[i] : r->item[i - l->n];
    const Value *v = value_items(&b->arena, l->kind, all, l->n + r->n);
    arena_reset(&b->cx->scratch, mark);
    return v;
}

const Value *fold_binary(Build *b, Operator op, const Value *l, const Value *r, const Spans *s)
{
    if (op == OPERATOR_EQ || op == OPERATOR_NE)
        return value_bool(&b->arena, value_equal(l, r) == (op == OPERATOR_EQ));
    if (l->kind == VALUE_BOOL && r->kind == VALUE_BOOL && op == OPERATOR_AND)
        return value_bool(&b->arena, l->b && r->b);
    if (l->kind == VALUE_BOOL && r->kind == VALUE_BOOL && op == OPERATOR_OR)
        return value_bool(&b->arena, l->b || r->b);
    if (value_is_items(l) && value_is_items(r) && op == OPERATOR_ADD)
        return fold_concat(b, l, r);
    if (!value_is_number(l) || !value_is_number(r) || op == OPERATOR_MATMUL || op == OPERATOR_AND ||
        op == OPERATOR_OR)
        return fold_refused(b, op, l, r, s);
    bool ints = l->kind == VALUE_INT && r->kind == VALUE_INT && op != OPERATOR_DIV;
    if (is_order(op))
        return value_bool(&b->arena, ints ? ordered_ints(op, l->i, r->i)
                                          : ordered(op, value_number(l), value_number(r)));
    if (ints)
        return fold_ints(b, op, l->i, r->i, s);
    return fold_floats(b, op, value_number(l), value_number(r), s);
}

bool fold_unary(OpId op, double x, double *y)
{
    switch (op) {
    case OP_sqrt:
        *y = sqrt(x);
        return true;
    case OP_rsqrt:
        *y = 1 / sqrt(x);
        return true;
    case OP_exp:
        *y = exp(x);
        return true;
    case OP_log:
        *y = log(x);
        return true;
    case OP_sin:
        *y = sin(x);
        return true;
    case OP_cos:
        *y = cos(x);
        return true;
    case OP_tanh:
        *y = tanh(x);
        return true;
    case OP_abs:
        *y = fabs(x);
        return true;
    case OP_relu:
        *y = x > 0 ? x : 0;
        return true;
    default:
        return false;
    }
}

const Value *fold_negated(Build *b, const Value *v, const Spans *s)
{
    if (v->kind == VALUE_INT)
        return v->i == INT64_MIN ? overflow(b, s) : value_int(&b->arena, -v->i);
    Value *minus = NEW(&b->arena, Value);
    *minus = *v;
    minus->f = -v->f; /* `text` stays: the digits are the same */
    return minus;
}
