/* Affine expressions, loads and stores as CUDA C++. */
#include <assert.h>
#include <string.h>
#include "cuda.h"

enum { INT_BITS = 31 };

/* ---- how wide indices are --------------------------------------------------------------- */

static bool is_index(const Kernel *k, Val v)
{
    return cu_is_loop(k, v) || k->inst.at[v].op == KI_DIM;
}

/* No partial sum of the direct terms leaves 31 bits, each as it is written. */
static bool fits(const Kernel *k, const KAff *x)
{
    const double most = (double)((INT64_C(1) << INT_BITS) - 1);
    double sum = (double)(x->base < 0 ? -x->base : x->base);
    for (int i = 0; i < x->n; i++) {
        double coef = (double)x->t[i].coef, size = coef < 0 ? -coef : coef;
        if (!is_index(k, x->t[i].v))
            continue;
        sum += size * (double)k->inst.at[x->t[i].v].imm.i;
    }
    return sum < most;
}

/* Product of the extents of the grid, of a role: flat indices run over that. */
static bool spaces_fit(const Kernel *k)
{
    double all = 1;
    for (Val v = 1; v < (Val)k->inst.n; v++)
        if (is_index(k, v) && k->inst.at[v].imm.i > 0 &&
            (k->inst.at[v].op == KI_PAR || k->kind == K_CONTRACT))
            all *=
                k->kind == K_CONTRACT && k->inst.at[v].aux == K_K ? 1 : (double)k->inst.at[v].imm.i;
    double chain = 1;
    for (int i = 0; i < k->con.n[K_K]; i++)
        chain *= (double)k->inst.at[k->con.dim[K_K][i]].imm.i;
    const double most = 2e9; /* tiles reach a little beyond the end */
    return all < most && chain < most;
}

bool cu_needs_wide(const Kernel *k)
{
    bool narrow = spaces_fit(k);
    for (int i = 0; i < k->affine.n; i++)
        narrow = narrow && fits(k, &k->affine.at[i]);
    for (int i = 0; i < k->access.n; i++) {
        narrow = narrow && fits(k, &k->access.at[i].at);
        for (int b = 0; b < k->access.at[i].n_bounds; b++)
            narrow = narrow && fits(k, &k->access.at[i].bound[b].e);
    }
    for (Val v = 1; v < (Val)k->inst.n; v++)
        narrow = narrow && (!is_index(k, v) || k->inst.at[v].imm.i < INT32_MAX - 512);
    return !narrow;
}

const char *cu_index_type(const Printer *p)
{
    return p->wide ? "i64" : "int";
}

/* ---- affine expressions -----------------------------------------------------------------------
 */

static void add_sign(Text *t, int64_t coef)
{
    if (t->n > 0)
        text_add(t, coef < 0 ? " - " : " + ");
    else if (coef < 0)
        text_char(t, '-');
}

static const char *size_of(Printer *p, int64_t x, bool wide)
{
    return cu_printf(p, wide ? "%lldll" : "%lld", (long long)(x < 0 ? -x : x));
}

/* The terms that are indices or i32 values, and the base. */
static const char *narrow_terms(Printer *p, const KAff *x)
{
    Text t;
    text_init(&t, p->arena);
    for (int pass = 0; pass < 2; pass++) /* values first: what follows them is 64 bits wide */
        for (int i = 0; i < x->n; i++) {
            Val v = x->t[i].v;
            int64_t coef = x->t[i].coef;
            bool index = is_index(p->k, v);
            if (index != (pass == 1) || (!index && p->k->inst.at[v].dtype == I64))
                continue;
            add_sign(&t, coef);
            if (coef != 1 && coef != -1)
                text_add(&t, "%s * ", size_of(p, coef, p->wide || !index));
            else if (!index)
                text_add(&t, "(i64)");
            text_add(&t, "%s", cu_operand(p, v));
        }
    if (t.n == 0 || x->base != 0) {
        add_sign(&t, x->base);
        text_add(&t, "%s", size_of(p, x->base, p->wide));
    }
    return t.at;
}

/* Only the sum has to be in its buffer: i64 values may be anything before their bounds are
 * looked at, and wrap. */
const char *cu_affine(Printer *p, const KAff *x)
{
    const char *sum = NULL;
    KAff rest = *x;
    rest.n = 0;
    for (int i = 0; i < x->n; i++) {
        Val v = x->t[i].v;
        if (is_index(p->k, v) || p->k->inst.at[v].dtype != I64) {
            rest.t[rest.n++] = x->t[i];
            continue;
        }
        const char *one = cu_operand(p, v);
        if (x->t[i].coef != 1)
            one = cu_printf(p, "mul(%s, %s)", cu_integer(p, I64, x->t[i].coef), one);
        sum = sum == NULL ? one : cu_printf(p, "add(%s, %s)", sum, one);
    }
    if (sum != NULL && rest.n == 0 && rest.base == 0)
        return sum;
    const char *narrow = narrow_terms(p, &rest);
    return sum == NULL ? narrow : cu_printf(p, "add(%s, (i64)(%s))", sum, narrow);
}

/* ---- bounds
 * ---------------------------------------------------------------------------------------- */

/* An i32 value alone. */
static bool is_plain(const Printer *p, const KAff *x)
{
    return x->n == 1 && x->base == 0 && x->t[0].coef == 1 && p->k->inst.at[x->t[0].v].dtype == I32;
}

static bool is_wide(const Printer *p, const KAff *x)
{
    if (is_plain(p, x) && !is_index(p->k, x->t[0].v))
        return false;
    for (int i = 0; i < x->n; i++)
        if (!is_index(p->k, x->t[i].v))
            return true;
    return p->wide;
}

static const char *bound(Printer *p, const KBound *b)
{
    const char *e = is_plain(p, &b->e) ? cu_operand(p, b->e.t[0].v) : cu_affine(p, &b->e);
    int64_t lo, hi;
    bool wide = is_wide(p, &b->e), known = k_aff_range(p->k, &b->e, &lo, &hi);
    DType t = wide ? I64 : I32;
    bool above = known && lo >= b->lo, below = known && hi < b->hi;
    if (above && below)
        return NULL;
    if (known && (hi < b->lo || lo >= b->hi))
        return "false";
    if (above)
        return cu_printf(p, "%s < %s", e, cu_integer(p, t, b->hi));
    if (below)
        return cu_printf(p, "%s >= %s", e, cu_integer(p, t, b->lo));
    return cu_printf(p, wide ? "within((i64)(%s), %s, %s)" : "within(%s, %s, %s)", e,
                     cu_integer(p, t, b->lo), cu_integer(p, t, b->hi));
}

static const char *both(Printer *p, const char *x, const char *y)
{
    return x == NULL ? y : y == NULL ? x : cu_printf(p, "%s && %s", x, y);
}

/* All bounds that may fail, or NULL. */
static const char *bounds(Printer *p, const KAccess *a)
{
    const char *all = NULL;
    for (int i = 0; i < a->n_bounds; i++)
        all = both(p, all, bound(p, &a->bound[i]));
    return all;
}

/* ---- loads and stores
 * --------------------------------------------------------------------------------- */

static const char *from_memory(Printer *p, DType t, const char *x)
{
    if (dtype_is_half(t))
        return cu_printf(p, "%s_value(%s)", dtype_name(t), x);
    return t == BOOL ? cu_printf(p, "%s != 0", x) : x;
}

static const char *element(Printer *p, const KAccess *a)
{
    return cu_printf(p, "b%d[%s]", a->buf, cu_affine(p, &a->at));
}

const char *cu_load(Printer *p, int32_t access)
{
    const KAccess *a = &p->k->access.at[access];
    DType t = p->k->buf.at[a->buf].dtype;
    const char *x = from_memory(p, t, element(p, a)), *inside = bounds(p, a);
    if (inside == NULL)
        return x;
    return cu_printf(p, "%s ? %s : %s", inside, x, cu_literal(p, t, a->otherwise));
}

void cu_store(Printer *p, int32_t access, Val v, const char *only)
{
    const KAccess *a = &p->k->access.at[access];
    DType t = p->k->buf.at[a->buf].dtype;
    const char *x = cu_operand(p, v), *when = both(p, only, bounds(p, a));
    if (dtype_is_half(t))
        x = cu_printf(p, "%s_bits(%s)", dtype_name(t), x);
    if (when != NULL)
        cu_line(p, "if (%s)", when);
    cu_line(p, "%s%s = %s;", when != NULL ? "    " : "", element(p, a), x);
}
