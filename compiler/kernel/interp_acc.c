/* Accumulators of the interpreter: virtual lanes and the tree that folds them
 * (the rules are in kernel.h). */
#include <math.h>
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
    case KI_AND: /* true; for integers all ones */
        return t == BOOL ? 1 : int_wrap(t, -1);
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

static float combine_f32(KOp op, float x, float y)
{
    switch (op) {
    case KI_MUL:
        return x * y;
    case KI_MIN:
        return x < y ? x : y;
    case KI_MAX:
        return x > y ? x : y;
    default:
        return x + y;
    }
}

static double combine_f64(KOp op, double x, double y)
{
    switch (op) {
    case KI_MUL:
        return x * y;
    case KI_MIN:
        return x < y ? x : y;
    case KI_MAX:
        return x > y ? x : y;
    default:
        return x + y;
    }
}

static int64_t combine_int(KOp op, DType t, int64_t x, int64_t y)
{
    switch (op) {
    case KI_MUL:
        return int_wrap(t, (int64_t)((uint64_t)x * (uint64_t)y));
    case KI_MIN:
        return x < y ? x : y;
    case KI_MAX:
        return x > y ? x : y;
    case KI_AND:
        return x & y;
    case KI_OR:
        return x | y;
    default:
        return int_wrap(t, (int64_t)((uint64_t)x + (uint64_t)y));
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

/* Lane i of acc takes lane j of v; the tangent first, while the primal is old. */
static void take(Machine *m, const Op *o, int32_t acc, int i, int32_t v, int j)
{
    KOp op = (KOp)o->aux;
    Reg *r = m->code->reg, *t = m->code->tan;
    if (t != NULL && o->type == TD)
        t[acc].d[i] = combine_tangent(op, r[acc].d[i], t[acc].d[i], r[v].d[j], t[v].d[j]);
    if (o->type == TF)
        r[acc].f[i] = combine_f32(op, r[acc].f[i], r[v].f[j]);
    else if (o->type == TD)
        r[acc].d[i] = combine_f64(op, r[acc].d[i], r[v].d[j]);
    else
        r[acc].i[i] = combine_int(op, (DType)o->dtype, r[acc].i[i], r[v].i[j]);
}

void interp_into(Machine *m, const Op *o, int n)
{
    if (!o->lanes) {
        for (int l = 0; l < n; l++)
            take(m, o, o->a, l, o->b, l);
        return;
    }
    uint64_t first = (uint64_t)m->code->reg[o->c].i[0], lanes = (uint64_t)o->extent;
    for (int l = 0; l < n; l++)
        take(m, o, o->a, (int)((first + (uint64_t)l) % lanes), o->b, l);
}

void interp_fold(Machine *m, const Op *o, int n)
{
    Reg *r = m->code->reg, *t = m->code->tan;
    if (o->lanes) { /* in a copy: the accumulator may be folded again */
        r[o->r] = r[o->a];
        if (t != NULL)
            t[o->r] = t[o->a];
        for (int w = (int)o->extent / 2; w >= 1; w /= 2)
            for (int i = 0; i < w; i++)
                take(m, o, o->r, i, o->r, i + w);
    } else {
        r[o->r] = r[o->a];
        if (t != NULL)
            t[o->r] = t[o->a];
    }
    for (int l = 1; o->splat && l < n; l++) {
        if (o->type == TF)
            r[o->r].f[l] = r[o->r].f[0];
        else
            r[o->r].i[l] = r[o->r].i[0];
        if (t != NULL)
            t[o->r].d[l] = t[o->r].d[0];
    }
}
