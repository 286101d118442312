#include "slabs.h"

static int64_t coef_of(const KAff *x, Val v)
{
    for (int i = 0; i < x->n; i++)
        if (x->t[i].v == v)
            return x->t[i].coef;
    return 0;
}

/* Elements from where a slab begins to where an access is: x + [lo, hi]. */
typedef struct Place {
    const Kernel *k;
    KAff x;
    int64_t lo, hi, step; /* of the slab, so many */
} Place;

/* How far it may be outside of the slab; -1: nobody knows. */
static int64_t outside(const Place *p)
{
    int64_t lo, hi;
    if (!k_aff_range(p->k, &p->x, &lo, &hi))
        return -1;
    lo += p->lo;
    hi += p->hi - p->step + 1;
    return (lo < 0 ? -lo : 0) + (hi > 0 ? hi : 0);
}

/* Where the bound holds a multiple of what is bound can take its place in x, if that says more. */
static void use_bound(Place *p, const KBound *b, Val v)
{
    if (coef_of(&b->e, v) != 0 || b->hi <= b->lo || p->x.n + b->e.n > K_MAX_TERMS)
        return;
    for (int i = 0; i < b->e.n; i++) {
        int64_t of = coef_of(&p->x, b->e.t[i].v), by = b->e.t[i].coef;
        if (of == 0 || of % by != 0)
            continue;
        int64_t times = of / by, first = times * b->lo, last = times * (b->hi - 1);
        Place with = *p;
        with.x = k_aff_add(p->x, k_aff_scale(b->e, -times));
        with.lo += first < last ? first : last;
        with.hi += first < last ? last : first;
        int64_t before = outside(p), after = outside(&with);
        if (after >= 0 && after < before) {
            *p = with;
            return;
        }
    }
}

/* From one value of v to the next the place moves by so much, and by less within one; 0: not so. */
static int64_t step_of(const Kernel *k, const KAccess *a, Val v)
{
    Place p = {.k = k, .x = a->at, .step = coef_of(&a->at, v)};
    if (p.step <= 0 || p.x.n == K_MAX_TERMS)
        return 0;
    p.x = k_aff_add(p.x, k_aff_val(v, -p.step));
    for (int i = 0; i < a->n_bounds; i++)
        use_bound(&p, &a->bound[i], v);
    return outside(&p) == 0 ? p.step : 0;
}

Slabs *slabs_of(const Kernel *k, Val v, int64_t units, int64_t each, Arena *arena)
{
    Slabs *s = NEW(arena, Slabs);
    s->extent = k->inst.at[v].imm.i;
    s->units = units;
    s->each = each;
    s->step = NEW_ARRAY(arena, int64_t, k->buf.n);
    bool *met = NEW_ARRAY(arena, bool, k->buf.n);
    for (int i = 0; i < k->access.n; i++) {
        const KAccess *a = &k->access.at[i];
        int64_t step = step_of(k, a, v);
        s->step[a->buf] = met[a->buf] && s->step[a->buf] != step ? 0 : step;
        met[a->buf] = true;
    }
    for (int i = 0; i < k->buf.n; i++)
        if (s->step[i] * s->extent != k->buf.at[i].elems) /* places behind the last slab */
            s->step[i] = 0;
    return s;
}
