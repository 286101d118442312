/* Affine expressions of loop indices: arithmetic and ranges. */
#include <assert.h>
#include "kernel.h"

KAff k_aff(int64_t base)
{
    return (KAff){.base = base};
}

KAff k_aff_val(Val v, int64_t coef)
{
    KAff x = {.n = coef != 0};
    if (coef != 0)
        x.t[0] = (KTerm){v, coef};
    return x;
}

/* Appends a term; a zero coefficient is dropped. */
static void put(KAff *x, Val v, int64_t coef)
{
    if (coef == 0)
        return;
    assert(x->n < K_MAX_TERMS);
    x->t[x->n++] = (KTerm){v, coef};
}

KAff k_aff_add(KAff x, KAff y)
{
    KAff sum = {.base = x.base + y.base};
    int i = 0, j = 0;
    while (i < x.n || j < y.n) {
        if (j == y.n || (i < x.n && x.t[i].v < y.t[j].v)) {
            put(&sum, x.t[i].v, x.t[i].coef);
            i++;
        } else if (i == x.n || y.t[j].v < x.t[i].v) {
            put(&sum, y.t[j].v, y.t[j].coef);
            j++;
        } else {
            put(&sum, x.t[i].v, x.t[i].coef + y.t[j].coef);
            i++, j++;
        }
    }
    return sum;
}

KAff k_aff_scale(KAff x, int64_t by)
{
    if (by == 0)
        return k_aff(0);
    x.base *= by;
    for (int i = 0; i < x.n; i++)
        x.t[i].coef *= by;
    return x;
}

KAff k_aff_offset(KAff x, int64_t by)
{
    x.base += by;
    return x;
}

bool k_aff_equal(const KAff *x, const KAff *y)
{
    if (x->base != y->base || x->n != y->n)
        return false;
    for (int i = 0; i < x->n; i++)
        if (x->t[i].v != y->t[i].v || x->t[i].coef != y->t[i].coef)
            return false;
    return true;
}

/* *sum += coef * steps, for steps >= 0; false when that leaves the range of int64. */
static bool add_steps(int64_t *sum, int64_t coef, int64_t steps)
{
    if (steps != 0 && (coef > INT64_MAX / steps || coef < -(INT64_MAX / steps)))
        return false;
    int64_t d = coef * steps;
    if (d > 0 ? *sum > INT64_MAX - d : *sum < INT64_MIN - d)
        return false;
    *sum += d;
    return true;
}

bool k_aff_range(const Kernel *k, const KAff *x, int64_t *lo, int64_t *hi)
{
    *lo = *hi = x->base;
    for (int i = 0; i < x->n; i++) {
        const KInst *v = &k->inst.at[x->t[i].v];
        if (v->op != KI_PAR && v->op != KI_SEQ && v->op != KI_RED && v->op != KI_DIM)
            return false;
        int64_t last = v->imm.i > 0 ? v->imm.i - 1 : 0;
        if (!add_steps(x->t[i].coef > 0 ? hi : lo, x->t[i].coef, last))
            return false;
    }
    return true;
}
