/* Loads and stores of the interpreter: addresses, bounds, element formats. */
#include <assert.h>
#include <string.h>
#include "denormals.h"
#include "interp.h"

/* A lane whose access fails its bounds. */
#define OUTSIDE INT64_MIN

static int64_t wrap_mad(int64_t sum, int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)sum + (uint64_t)a * (uint64_t)b);
}

void interp_affine(const Affine *x, const Reg *r, int n, int64_t *to)
{
    int64_t base = x->base;
    for (int i = 0; i < x->n_uniform; i++)
        base = wrap_mad(base, x->uniform[i].coef, r[x->uniform[i].reg].i[0]);
    for (int l = 0; l < n; l++)
        to[l] = wrap_mad(base, x->step, l);
    for (int i = 0; i < x->n_varying; i++) {
        int64_t coef = x->varying[i].coef;
        const int64_t *v = r[x->varying[i].reg].i;
        for (int l = 0; l < n; l++)
            to[l] = wrap_mad(to[l], coef, v[l]);
    }
}

/* Element offsets of n lanes, or OUTSIDE. */
static void locate(const Access *a, const Reg *r, int n, int64_t *at)
{
    interp_affine(&a->at, r, n, at);
    for (int i = 0; i < a->n_bounds; i++) {
        const Bound *b = &a->bound[i];
        int64_t e[STRIP];
        interp_affine(&b->e, r, n, e);
        for (int l = 0; l < n; l++)
            if (e[l] < b->lo || e[l] >= b->hi)
                at[l] = OUTSIDE;
    }
    for (int l = 0; l < n; l++)
        assert(at[l] == OUTSIDE ? a->n_bounds > 0 : (uint64_t)at[l] < (uint64_t)a->elems);
}

#define LOAD_AS(T, field, convert)                                                                 \
    for (int l = 0; l < n; l++)                                                                    \
        if (at[l] != OUTSIDE)                                                                      \
            to->field[l] = convert(((const T *)from)[at[l]]);                                      \
    break;
#define STORE_AS(T, field, convert)                                                                \
    for (int l = 0; l < n; l++)                                                                    \
        if (at[l] != OUTSIDE)                                                                      \
            ((T *)to)[at[l]] = (T)convert(from->field[l]);                                         \
    break;
#define AS_IS(x)    (x)
#define NOT_ZERO(x) ((x) != 0)

/* Elements of an exact buffer: as in memory. */
static void load_exact(const Access *a, const void *from, const int64_t *at, Reg *to, int n)
{
    switch (a->dtype) {
    case F32:
        LOAD_AS(float, f, AS_IS)
    case F64:
        LOAD_AS(double, d, AS_IS)
    case F16:
        LOAD_AS(uint16_t, f, f16_to_f32)
    case BF16:
        LOAD_AS(uint16_t, f, bf16_to_f32)
    case I32:
        LOAD_AS(int32_t, i, AS_IS)
    case I64:
        LOAD_AS(int64_t, i, AS_IS)
    case U8:
        LOAD_AS(uint8_t, i, AS_IS)
    default:
        LOAD_AS(uint8_t, i, NOT_ZERO)
    }
}

static void store_exact(const Access *a, void *to, const int64_t *at, const Reg *from, int n)
{
    switch (a->dtype) {
    case F32:
        STORE_AS(float, f, AS_IS)
    case F64:
        STORE_AS(double, d, AS_IS)
    case F16:
        STORE_AS(uint16_t, f, f32_to_f16)
    case BF16:
        STORE_AS(uint16_t, f, f32_to_bf16)
    case I32:
        STORE_AS(int32_t, i, AS_IS)
    case I64:
        STORE_AS(int64_t, i, AS_IS)
    default:
        STORE_AS(uint8_t, i, AS_IS)
    }
}

/* Wide buffers: doubles, or int64_t whatever the integer. */
static void load_wide(const Access *a, const void *from, const int64_t *at, Reg *to, int n)
{
    switch (interp_type(K_WIDE, a->dtype)) {
    case TD:
        LOAD_AS(double, d, AS_IS)
    default:
        LOAD_AS(int64_t, i, AS_IS)
    }
}

static void store_wide(const Access *a, void *to, const int64_t *at, const Reg *from, int n)
{
    switch (interp_type(K_WIDE, a->dtype)) {
    case TD:
        STORE_AS(double, d, AS_IS)
    default:
        STORE_AS(int64_t, i, AS_IS)
    }
}

/* Lanes outside of the bounds. */
static void fill(const Access *a, KMode mode, const int64_t *at, Reg *to, int n)
{
    RegType type = interp_type(mode, a->dtype);
    for (int l = 0; l < n; l++) {
        if (at[l] != OUTSIDE)
            continue;
        if (type == TF)
            to->f[l] = (float)a->otherwise;
        else if (type == TD)
            to->d[l] = a->otherwise;
        else
            to->i[l] = (int64_t)a->otherwise;
    }
}

static void load_tangent(const double *from, const int64_t *at, Reg *to, int n)
{
    for (int l = 0; l < n; l++)
        to->d[l] = at[l] != OUTSIDE && from != NULL ? from[at[l]] : 0;
}

/* Whether n lanes are n elements in a row, of the size that registers hold them
 * in; *from is the first. */
static bool in_a_row(const Access *a, const KCode *c, int n, int64_t *from)
{
    bool as_is = c->mode != K_EXACT || a->dtype == F32 || a->dtype == F64 || a->dtype == I64;
    if (!as_is || a->n_bounds > 0 || a->at.n_varying > 0 || (a->at.step != 1 && n > 1))
        return false;
    interp_affine(&a->at, c->reg, 1, from);
    assert(*from >= 0 && *from + n <= a->elems);
    return true;
}

static size_t elem_size(const Access *a, const KCode *c)
{
    return c->mode == K_EXACT && a->dtype == F32 ? sizeof(float) : sizeof(double);
}

static void load(Machine *m, const Op *o, int n)
{
    KCode *c = m->code;
    const Access *a = &c->access.at[o->aux];
    int64_t at[STRIP];
    if (c->mode != K_DUAL && in_a_row(a, c, n, at)) {
        size_t each = elem_size(a, c);
        memcpy(&c->reg[o->r], (const char *)m->mem[a->buf].data + (size_t)at[0] * each,
               (size_t)n * each);
        return;
    }
    locate(a, c->reg, n, at);
    (c->mode == K_EXACT ? load_exact : load_wide)(a, m->mem[a->buf].data, at, &c->reg[o->r], n);
    if (a->n_bounds > 0)
        fill(a, c->mode, at, &c->reg[o->r], n);
    if (c->mode == K_DUAL && dtype_is_float(a->dtype))
        load_tangent(m->mem[a->buf].tangent, at, &c->tan[o->r], n);
}

void interp_flush(DType t, Reg *r, int n)
{
    for (int l = 0; l < n && (t == F32 || t == BF16); l++)
        r->f[l] = flush_f32(r->f[l]);
    for (int l = 0; l < n && t == F64; l++)
        r->d[l] = flush_f64(r->d[l]);
}

void interp_load(Machine *m, const Op *o, int n)
{
    KCode *c = m->code;
    load(m, o, n);
    if (c->flush)
        interp_flush(c->access.at[o->aux].dtype, &c->reg[o->r], n);
}

void interp_store(Machine *m, const Op *o, int n)
{
    KCode *c = m->code;
    const Access *a = &c->access.at[o->aux];
    int64_t at[STRIP];
    if (c->mode != K_DUAL && in_a_row(a, c, n, at)) {
        size_t each = elem_size(a, c);
        memcpy((char *)m->mem[a->buf].data + (size_t)at[0] * each, &c->reg[o->a], (size_t)n * each);
        return;
    }
    locate(a, c->reg, n, at);
    (c->mode == K_EXACT ? store_exact : store_wide)(a, m->mem[a->buf].data, at, &c->reg[o->a], n);
    double *tangent = m->mem[a->buf].tangent;
    if (c->mode != K_DUAL || !dtype_is_float(a->dtype) || tangent == NULL)
        return;
    for (int l = 0; l < n; l++)
        if (at[l] != OUTSIDE)
            tangent[at[l]] = c->tan[o->a].d[l];
}
