/* The verifier: accesses. Terms in scope, elements inside of their buffer,
 * parallel iterations that store to different elements. */
#include <math.h>
#include "verify.h"

static bool is_index_op(int op)
{
    return is_loop_op(op) || op == KI_DIM;
}

static const char *const section_text[] = {"the head", "section a", "section b", "the epilogue"};

/* Whether this section of a contraction runs over indices of the role. */
static bool section_has(KSection s, KRole role)
{
    switch (s) {
    case K_IN_A:
        return role != K_N;
    case K_IN_B:
        return role != K_M;
    default:
        return role != K_K;
    }
}

const char *verify_affine(const Verifier *v, const KAff *x)
{
    if (x->n < 0 || x->n > K_MAX_TERMS)
        return verify_complain(v, "an expression has too many terms");
    for (int i = 0; i < x->n; i++) {
        Val t = x->t[i].v;
        if (i > 0 && t <= x->t[i - 1].v)
            return verify_complain(v, "the terms of an expression are not in order");
        if (x->t[i].coef == 0)
            return verify_complain(v, "a term has the coefficient 0");
        if (!verify_in_scope(v, t) && !(t < v->at && is_loop_op(inst_of(v, t)->op)))
            return verify_complain(v, "index %%%u is not in scope here", t);
        const KInst *ti = inst_of(v, t);
        if (is_loop_op(ti->op)) { /* around this instruction */
            bool open = false;
            for (int d = 0; d < v->depth; d++)
                open = open || v->loop[d] == t;
            if (!open)
                return verify_complain(v, "the loop of index %%%u is closed", t);
        } else if (ti->op == KI_DIM) {
            if (!section_has(v->section, (KRole)ti->aux))
                return verify_complain(v, "dim %%%u is not seen in %s", t,
                                       section_text[v->section]);
        } else if ((ti->dtype != I32 && ti->dtype != I64) ||
                   kop_class((KOp)ti->op) == K_CLASS_LOOP) {
            return verify_complain(v, "index %%%u is neither a loop, a dim, i32 nor i64", t);
        } else if (ti->op == KI_ACC || ti->op == KI_VAR || ti->op == KI_STORE ||
                   ti->op == KI_INTO || ti->op == KI_SET) {
            return verify_complain(v, "index %%%u is no value", t);
        }
    }
    return NULL;
}

/* ---- elements outside of the buffer ------------------------------------------------ */

enum { MAX_INDICES = 16, MAX_POINTS = 4096 };

/* The indices that an access depends on, and one point of their space. */
typedef struct Points {
    int n;
    Val index[MAX_INDICES];
    int64_t extent[MAX_INDICES];
    int64_t value[MAX_INDICES];
} Points;

/* Collects indices; false if a term is another value, or there are too many. */
static bool collect(const Kernel *k, const KAff *x, Points *p)
{
    for (int i = 0; i < x->n; i++) {
        const KInst *t = &k->inst.at[x->t[i].v];
        int at = 0;
        if (!is_index_op(t->op))
            return false;
        while (at < p->n && p->index[at] != x->t[i].v)
            at++;
        if (at == MAX_INDICES)
            return false;
        p->index[at] = x->t[i].v;
        p->extent[at] = t->imm.i;
        p->n = at == p->n ? p->n + 1 : p->n;
    }
    return true;
}

static int64_t value_at(const KAff *x, const Points *p)
{
    uint64_t sum = (uint64_t)x->base;
    for (int i = 0; i < x->n; i++)
        for (int j = 0; j < p->n; j++)
            if (p->index[j] == x->t[i].v)
                sum += (uint64_t)x->t[i].coef * (uint64_t)p->value[j];
    return (int64_t)sum;
}

/* The number of values tried for an index of this extent, of which `choice` is
 * one: all of a short one, else both ends, their neighbours and the middle. */
static int64_t tried(int64_t extent, int64_t limit, int64_t choice, int64_t *value)
{
    if (extent <= limit) {
        *value = choice;
        return extent;
    }
    const int64_t some[] = {0, extent - 1, 1, extent - 2, extent / 2};
    *value = some[choice < 5 ? choice : 4];
    return limit < 5 ? limit : 5;
}

/* The next point; false after the last. */
static bool advance(Points *p, int64_t *choice, int64_t limit)
{
    for (int i = 0; i < p->n; i++) {
        int64_t count = tried(p->extent[i], limit, ++choice[i], &p->value[i]);
        if (choice[i] < count)
            return true;
        choice[i] = 0;
        tried(p->extent[i], limit, 0, &p->value[i]);
    }
    return false;
}

/* How many values an index may have so that the points stay few. */
static int64_t points_limit(const Points *p)
{
    double all = 1;
    for (int i = 0; i < p->n; i++)
        all *= (double)p->extent[i];
    if (all <= (double)MAX_POINTS)
        return INT64_MAX;
    for (int64_t limit = 5; limit > 2; limit--) {
        double some = 1;
        for (int i = 0; i < p->n; i++)
            some *= (double)(p->extent[i] < limit ? p->extent[i] : limit);
        if (some <= 16.0 * (double)MAX_POINTS)
            return limit;
    }
    return 2;
}

/* Looks for an iteration that passes the bounds and misses the buffer. Never a
 * false alarm; all iterations of small spaces are tried, else the borders. */
static const char *check_bounded(const Verifier *v, const KAccess *a, int64_t elems)
{
    Points p = {0};
    int64_t choice[MAX_INDICES] = {0};
    bool known = collect(v->k, &a->at, &p);
    for (int i = 0; known && i < a->n_bounds; i++)
        known = collect(v->k, &a->bound[i].e, &p);
    if (!known)
        return NULL;
    for (int i = 0; i < p.n; i++)
        if (p.extent[i] == 0)
            return NULL;
    int64_t limit = points_limit(&p);
    do {
        bool inside = true;
        for (int i = 0; inside && i < a->n_bounds; i++) {
            int64_t e = value_at(&a->bound[i].e, &p);
            inside = e >= a->bound[i].lo && e < a->bound[i].hi;
        }
        int64_t at = value_at(&a->at, &p);
        if (inside && (at < 0 || at >= elems))
            return verify_complain(v, "its bounds allow element %lld of b%d, which has %lld",
                                   (long long)at, a->buf, (long long)elems);
    } while (advance(&p, choice, limit));
    return NULL;
}

/* Loops of no iterations run nothing. */
static bool never_runs(const Verifier *v)
{
    for (int i = 0; i < v->depth; i++)
        if (inst_of(v, v->loop[i])->imm.i == 0)
            return true;
    const KContract *c = &v->k->con;
    for (int r = 0; v->k->kind == K_CONTRACT && r < 4; r++)
        for (int i = 0; i < c->n[r]; i++)
            if (inst_of(v, c->dim[r][i])->imm.i == 0 && section_has(v->section, (KRole)r))
                return true;
    return false;
}

static bool is_direct(const Kernel *k, const KAff *x)
{
    for (int i = 0; i < x->n; i++)
        if (!is_index_op(k->inst.at[x->t[i].v].op))
            return false;
    return true;
}

static const char *check_range(const Verifier *v, const KAccess *a, int64_t elems)
{
    int64_t lo, hi;
    if (never_runs(v) || !is_direct(v->k, &a->at))
        return NULL;
    bool known = k_aff_range(v->k, &a->at, &lo, &hi);
    if (known && lo >= 0 && hi < elems)
        return NULL;
    if (a->n_bounds > 0)
        return check_bounded(v, a, elems);
    if (!known)
        return verify_complain(v, "its elements lie beyond 64 bits");
    return verify_complain(v, "elements %lld to %lld of b%d, which has %lld", (long long)lo,
                           (long long)hi, a->buf, (long long)elems);
}

/* ---- races ---------------------------------------------------------------------------- */

static bool mentions(const KAff *x, Val index)
{
    for (int i = 0; i < x->n; i++)
        if (x->t[i].v == index)
            return true;
    return false;
}

/* A parallel loop whose index moves the store nowhere: its iterations write the
 * same element. Of a LOCAL buffer each iteration of the grid has its own. */
static const char *check_race(const Verifier *v, const KAccess *a, bool local)
{
    if (never_runs(v))
        return NULL;
    for (int d = local ? v->grid : 0; d < v->depth; d++) {
        const KInst *l = inst_of(v, v->loop[d]);
        bool told = mentions(&a->at, v->loop[d]);
        for (int i = 0; i < a->n_bounds; i++)
            told = told || mentions(&a->bound[i].e, v->loop[d]);
        if (l->op == KI_PAR && l->imm.i > 1 && !told)
            return verify_complain(v, "iterations of the par loop %%%u store to one element",
                                   v->loop[d]);
    }
    const KContract *c = &v->k->con;
    for (int r = 0; v->k->kind == K_CONTRACT && r < K_K; r++) {
        for (int i = 0; i < c->n[r]; i++) {
            bool told = mentions(&a->at, c->dim[r][i]);
            for (int b = 0; b < a->n_bounds; b++)
                told = told || mentions(&a->bound[b].e, c->dim[r][i]);
            if (inst_of(v, c->dim[r][i])->imm.i > 1 && !told)
                return verify_complain(v, "iterations of the dim %%%u store to one element",
                                       c->dim[r][i]);
        }
    }
    return NULL;
}

/* ---- one access ------------------------------------------------------------------------- */

static const char *check_otherwise(const Verifier *v, DType t, double x)
{
    bool fits = true;
    if (dtype_is_float(t))
        fits = isnan(x) || x == dtype_round(t, x);
    else
        fits = x == floor(x) &&
               x >= (t == I32   ? INT32_MIN
                     : t == I64 ? -0x1p63
                                : 0) &&
               x < (t == I32   ? 0x1p31
                    : t == I64 ? 0x1p63
                    : t == U8  ? 256
                               : 2);
    return fits ? NULL : verify_complain(v, "%g is no %s", x, dtype_name(t));
}

static const char *check_mode(Verifier *v, const KInst *i, const KAccess *a)
{
    KBufMode mode = v->k->buf.at[a->buf].mode;
    if (i->op == KI_STORE) {
        if (mode == K_IN)
            return verify_complain(v, "b%d is an input", a->buf);
        v->written[a->buf] = true;
        return NULL;
    }
    if ((mode == K_OUT || mode == K_LOCAL) && !v->written[a->buf])
        return verify_complain(v, "b%d is read before anything is stored to it", a->buf);
    return NULL;
}

const char *verify_access(Verifier *v, const KInst *i)
{
    const Kernel *k = v->k;
    if (i->aux < 0 || i->aux >= k->access.n)
        return verify_complain(v, "no such access");
    const KAccess *a = &k->access.at[i->aux];
    if (a->buf < 0 || a->buf >= k->buf.n)
        return verify_complain(v, "no buffer b%d", a->buf);
    const KBuf *b = &k->buf.at[a->buf];
    if ((DType)i->dtype != b->dtype)
        return verify_complain(v, "%s from or to b%d, which is %s", dtype_name((DType)i->dtype),
                               a->buf, dtype_name(b->dtype));
    const char *bad = check_mode(v, i, a);
    if (bad == NULL)
        bad = verify_affine(v, &a->at);
    for (int n = 0; bad == NULL && n < a->n_bounds; n++)
        bad = verify_affine(v, &a->bound[n].e);
    if (bad == NULL && i->op == KI_LOAD && a->n_bounds > 0)
        bad = check_otherwise(v, b->dtype, a->otherwise);
    if (bad == NULL)
        bad = check_range(v, a, b->elems);
    if (bad == NULL && i->op == KI_STORE)
        bad = check_race(v, a, b->mode == K_LOCAL);
    return bad;
}
