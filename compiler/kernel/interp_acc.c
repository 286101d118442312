/* Accumulators of the interpreter: virtual lanes and the tree that folds them
 * (the rules are in kernel.h). */
#include <math.h>
#include <string.h>
#include "interp.h"

/* Identity of the operation: lanes start at it. */
static double identity_float(KOp op)
{
    switch (op) {
    case KI_MUL:
        return 1;
    case KI_MIN:
        return INFINITY;
    case KI_MAX:
        return -INFINITY;
    default:
        return 0;
    }
}

static int64_t identity_int(KOp op, DType t)
{
    int64_t lowest = t == I32 ? INT32_MIN : t == I64 ? INT64_MIN : 0;
    int64_t highest = t == I32 ? INT32_MAX : t == I64 ? INT64_MAX : t == U8 ? 255 : 1;
    switch (op) {
    case KI_MUL:
        return 1;
    case KI_MIN:
        return highest;
    case KI_MAX:
        return lowest;
    case KI_AND:
        return 1; /* true */
    default:
        return 0;
    }
}

void interp_acc(Machine *m, const Op *o)
{
    KOp op = (KOp)o->aux;
    Reg *r = &m->code->reg[o->r];
    for (int l = 0; l < STRIP; l++) {
        if (o->type == TF)
            r->f[l] = (float)identity_float(op);
        else if (o->type == TD)
            r->d[l] = identity_float(op);
        else
            r->i[l] = identity_int(op, (DType)o->dtype);
    }
    if (m->code->tan != NULL)
        for (int l = 0; l < STRIP; l++)
            m->code->tan[o->r].d[l] = 0;
}

/* acc[(first + l) mod lanes] = op(that, v[l]), for l in order. */
#define FEED(T, expr)                                                                              \
    for (int l = 0, i = first; l < n; l++, i = i + 1 == lanes ? 0 : i + 1) {                       \
        T x = acc[i], y = v[l];                                                                    \
        acc[i] = (expr);                                                                           \
    }                                                                                              \
    break;

static void feed_f32(KOp op, float *acc, const float *v, int first, int lanes, int n)
{
    switch (op) {
    case KI_MUL:
        FEED(float, x *y)
    case KI_MIN:
        FEED(float, x < y ? x : y)
    case KI_MAX:
        FEED(float, x > y ? x : y)
    default:
        FEED(float, x + y)
    }
}

static void feed_f64(KOp op, double *acc, const double *v, int first, int lanes, int n)
{
    switch (op) {
    case KI_MUL:
        FEED(double, x *y)
    case KI_MIN:
        FEED(double, x < y ? x : y)
    case KI_MAX:
        FEED(double, x > y ? x : y)
    default:
        FEED(double, x + y)
    }
}

static void feed_int(KOp op, DType t, int64_t *acc, const int64_t *v, int first, int lanes, int n)
{
    switch (op) {
    case KI_MUL:
        FEED(int64_t, interp_wrap(t, (int64_t)((uint64_t)x * (uint64_t)y)))
    case KI_MIN:
        FEED(int64_t, x < y ? x : y)
    case KI_MAX:
        FEED(int64_t, x > y ? x : y)
    case KI_AND:
        FEED(int64_t, x & y)
    case KI_OR:
        FEED(int64_t, x | y)
    default:
        FEED(int64_t, interp_wrap(t, (int64_t)((uint64_t)x + (uint64_t)y)))
    }
}

/* Tangent of op(x, y). */
static double combine_tangent(KOp op, double x, double dx, double y, double dy)
{
    switch (op) {
    case KI_MUL:
        return dx * y + x * dy;
    case KI_MIN:
        return x < y ? dx : dy;
    case KI_MAX:
        return x > y ? dx : dy;
    default:
        return dx + dy;
    }
}

/* Lanes first, first+1, ... (mod lanes) of acc take n lanes of v; tangents first,
 * while the primal is still the old one, and so one by one. */
static void take(Machine *m, const Op *o, int32_t acc, int first, int lanes, int32_t v, int n)
{
    KOp op = (KOp)o->aux;
    Reg *r = m->code->reg, *t = m->code->tan;
    if (o->type == TF)
        feed_f32(op, r[acc].f, r[v].f, first, lanes, n);
    else if (o->type == TI)
        feed_int(op, (DType)o->dtype, r[acc].i, r[v].i, first, lanes, n);
    else if (t == NULL)
        feed_f64(op, r[acc].d, r[v].d, first, lanes, n);
    for (int l = 0; t != NULL && o->type == TD && l < n; l++) {
        int i = (first + l) % lanes;
        double *x = &r[acc].d[i], *dx = &t[acc].d[i];
        *dx = combine_tangent(op, *x, *dx, r[v].d[l], t[v].d[l]);
        feed_f64(op, x, &r[v].d[l], 0, 1, 1);
    }
}

void interp_into(Machine *m, const Op *o, int n)
{
    int lanes = o->lanes ? (int)o->extent : STRIP;
    int first = o->lanes ? (int)((uint64_t)m->code->reg[o->c].i[0] % (uint64_t)lanes) : 0;
    take(m, o, o->a, first, lanes, o->b, n);
}

/* Lanes [w, 2w) of the register onto lanes [0, w). */
static void halve(Machine *m, const Op *o, int w)
{
    Reg *r = m->code->reg, *t = m->code->tan;
    Reg upper = r[o->r], upper_t = t != NULL ? t[o->r] : upper;
    size_t each = o->type == TF ? sizeof(float) : sizeof(double), n = (size_t)w * each;
    memmove(&upper, (char *)&upper + n, n);
    memmove(&upper_t, (char *)&upper_t + (size_t)w * sizeof(double), (size_t)w * sizeof(double));
    r[0] = upper; /* register 0 stands for no operand */
    if (t != NULL)
        t[0] = upper_t;
    take(m, o, o->r, 0, STRIP, 0, w);
}

void interp_fold(Machine *m, const Op *o, int n)
{
    Reg *r = m->code->reg, *t = m->code->tan;
    r[o->r] = r[o->a]; /* a copy: the accumulator may be folded again */
    if (t != NULL)
        t[o->r] = t[o->a];
    for (int w = o->lanes ? (int)o->extent / 2 : 0; w >= 1; w /= 2)
        halve(m, o, w);
    for (int l = 1; o->splat && l < n; l++) {
        if (o->type == TF)
            r[o->r].f[l] = r[o->r].f[0];
        else
            r[o->r].i[l] = r[o->r].i[0];
        if (t != NULL)
            t[o->r].d[l] = t[o->r].d[0];
    }
}
