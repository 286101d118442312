/* Forward mode: the tangent of each scalar operation. These rules know nothing
 * of the ones in ops/, so that they can judge them.
 *
 * Conventions: MIN and MAX pass the tangent of the operand they choose; |x| has
 * derivative 0 at 0; floor, rint, comparisons, integers and bits have none. */
#include <math.h>
#include "interp.h"

static double abs_rule(double x, double dx)
{
    return x > 0 ? dx : x < 0 ? -dx : 0;
}

/* x^y: a part that is multiplied by a zero tangent is left out, for its factor
 * need not be finite (log 0, log of a negative base). */
static double pow_rule(double x, double dx, double y, double dy, double r)
{
    double t = 0;
    if (dx != 0)
        t += y == 0 ? 0 : y * pow(x, y - 1) * dx;
    if (dy != 0)
        t += r == 0 ? 0 : r * log(x) * dy;
    return t;
}

static double unary_rule(KOp op, double x, double dx, double r)
{
    switch (op) {
    case KI_NEG:
        return -dx;
    case KI_ABS:
        return abs_rule(x, dx);
    case KI_SQRT:
        return dx / (2 * r);
    case KI_EXP:
        return r * dx;
    case KI_LOG:
        return dx / x;
    case KI_EXPM1:
        return (r + 1) * dx;
    case KI_LOG1P:
        return dx / (1 + x);
    case KI_SIN:
        return cos(x) * dx;
    case KI_COS:
        return -sin(x) * dx;
    case KI_TANH:
        return (1 - r * r) * dx;
    case KI_ERF:
        return 1.12837916709551257390 * exp(-x * x) * dx; /* 2/sqrt(pi) */
    case KI_GET:
    case KI_VAR:
        return dx;
    default: /* FLOOR, RINT */
        return 0;
    }
}

static double binary_rule(KOp op, double x, double dx, double y, double dy, double r)
{
    switch (op) {
    case KI_ADD:
        return dx + dy;
    case KI_SUB:
        return dx - dy;
    case KI_MUL:
        return dx * y + x * dy;
    case KI_DIV:
        return (dx - r * dy) / y;
    case KI_MIN:
        return x < y ? dx : dy;
    case KI_MAX:
        return x > y ? dx : dy;
    default:
        return pow_rule(x, dx, y, dy, r);
    }
}

void interp_tangent(const Op *o, const Reg *r, Reg *t, int n)
{
    if (!dtype_is_float((DType)o->dtype))
        return;
    const double *x = r[o->a].d, *y = r[o->b].d;
    const double *dx = t[o->a].d, *dy = t[o->b].d, *dz = t[o->c].d;
    double *d = t[o->r].d;
    KOp op = (KOp)o->op;
    for (int l = 0; l < n; l++) {
        if ((int)o->op == X_SPLAT)
            d[l] = dx[0];
        else if (op == KI_SELECT)
            d[l] = r[o->a].i[l] != 0 ? dy[l] : dz[l];
        else if (op == KI_FMA)
            d[l] = dx[l] * y[l] + x[l] * dy[l] + dz[l];
        else if (op == KI_CAST)
            d[l] = o->type == TI ? 0 : dx[l];
        else if (op == KI_INDEX || op == KI_BITCAST)
            d[l] = 0;
        else if (kop_args(op) == 2 && op != KI_SET)
            d[l] = binary_rule(op, x[l], dx[l], y[l], dy[l], r[o->r].d[l]);
        else
            d[l] = unary_rule(op, x[l], dx[l], r[o->r].d[l]);
    }
}
