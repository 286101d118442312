/* Kernels for matrices in panels: loops and DIMs are split until each index moves along a matrix,
 * a row, panels or within one, then its coefficients are those of panels. */
#include "panels.h"

/* ---- places ------------------------------------------------------------------------------ */

static bool is_index(const Kernel *k, Val v)
{
    const KInst *i = &k->inst.at[v];
    return i->op == KI_DIM || (kop_class((KOp)i->op) == K_CLASS_LOOP && i->op != KI_END);
}

/* By how much more than `inner` places an index goes along what has so many. */
static bool too_long(const Kernel *k, Val v, int64_t inner)
{
    int64_t e = k->inst.at[v].imm.i;
    return e > inner && e % inner == 0;
}

/* Where to split the kernel for this access: an index that goes on along the next row or matrix, or
 * over panels. 0: nowhere. */
static Val find_split(const Kernel *k, const KAff *x, const Panels *p, int64_t *inner)
{
    for (int i = 0; i < x->n; i++) {
        Val v = x->t[i].v;
        int64_t c = x->t[i].coef;
        if (!is_index(k, v))
            continue;
        *inner = c == p->cols ? p->rows : c == 1 ? p->cols : 0;
        if (*inner > 0 && too_long(k, v, *inner))
            return v;
        *inner = p->width;
        if (c == 1 && p->width > 1 && too_long(k, v, *inner))
            return v;
    }
    return 0;
}

/* A place as matrix, panel, line of that and column of the line, each an expression of its own. */
typedef struct Place {
    KAff matrix, line, panel, col;
} Place;

/* The range of x where the bounds of the access hold. */
static bool range_of(const Kernel *k, const KAccess *a, const KAff *x, int64_t *lo, int64_t *hi)
{
    if (!k_aff_range(k, x, lo, hi))
        return false;
    for (int i = 0; i < a->n_bounds; i++) {
        const KBound *b = &a->bound[i];
        KAff apart = k_aff_add(*x, k_aff_scale(b->e, -1));
        if (apart.n > 0)
            continue;
        int64_t first = b->lo + apart.base, last = b->hi - 1 + apart.base;
        *lo = *lo < first ? first : *lo;
        *hi = *hi > last ? last : *hi;
    }
    return true;
}

static bool is_part(const Kernel *k, const KAccess *a, const KAff *x, int64_t n)
{
    int64_t lo, hi;
    return range_of(k, a, x, &lo, &hi) && lo >= 0 && hi < n;
}

static bool find_place(const Kernel *k, const KAccess *a, const Panels *p, Place *at)
{
    const KAff *x = &a->at;
    int64_t size = p->rows * p->cols, base = x->base;
    const int64_t unit[] = {size, p->cols, p->width, 1};
    KAff *const part[] = {&at->matrix, &at->line, &at->panel, &at->col};
    *at = (Place){k_aff(base / size), k_aff(base % size / p->cols),
                  k_aff(base % p->cols / p->width), k_aff(base % p->width)};
    for (int i = 0; i < x->n; i++) {
        int u = 0;
        while (x->t[i].coef % unit[u] != 0)
            u++;
        *part[u] = k_aff_add(*part[u], k_aff_val(x->t[i].v, x->t[i].coef / unit[u]));
    }
    return base >= 0 && is_part(k, a, &at->matrix, INT64_MAX) &&
           is_part(k, a, &at->line, p->rows) && is_part(k, a, &at->panel, p->cols / p->width) &&
           is_part(k, a, &at->col, p->width);
}

static int64_t pitch_of(const Panels *p)
{
    return p->pitch > 0 ? p->pitch : p->width;
}

static KAff in_panels(const Place *at, const Panels *p)
{
    int64_t panel = p->rows * pitch_of(p);
    KAff x = k_aff_scale(at->matrix, p->cols / p->width * panel);
    x = k_aff_add(x, k_aff_scale(at->panel, panel));
    x = k_aff_add(x, k_aff_scale(at->line, pitch_of(p)));
    return k_aff_add(x, at->col);
}

/* ---- kernels ------------------------------------------------------------------------------ */

static bool moves(const KAccess *a)
{
    bool any = a->at.n > 0;
    for (int b = 0; b < a->n_bounds; b++)
        any = any || a->bound[b].e.n > 0;
    return any;
}

/* All elements of its buffer, each once: an index that moves by one, one that moves by all of that
 * one's places, ... */
static bool is_whole(const Kernel *k, const KAccess *a)
{
    int64_t n = 1;
    int used = 0;
    for (bool found = true; found;) {
        found = false;
        for (int i = 0; i < a->at.n && !found; i++) {
            found = a->at.t[i].coef == n && is_index(k, a->at.t[i].v) &&
                    k->inst.at[a->at.t[i].v].imm.i > 1;
            if (found)
                n *= k->inst.at[a->at.t[i].v].imm.i;
        }
        used += found;
    }
    return used == a->at.n && a->at.base == 0 && a->n_bounds == 0 && n == k->buf.at[a->buf].elems;
}

/* Gives the same in whatever order elements come: sums don't, nor does what knows an element's
 * place, nor a sum of some of them. */
static bool any_order(const KInst *i, int depth)
{
    bool flag = i->op == KI_ACC && (i->aux == KI_AND || i->aux == KI_OR) && depth == 0;
    bool var = kop_class((KOp)i->op) == K_CLASS_VAR;
    return (i->op != KI_ACC || flag) && !var && i->op != KI_INDEX && i->reach == K_ALL;
}

bool panels_elementwise(const Kernel *k, bool *which)
{
    const KAff *place = NULL;
    bool fine = k->kind == K_LOOP;
    int depth = 0;
    for (int i = 0; i < k->buf.n; i++) {
        which[i] = false;
        fine = fine && k->buf.at[i].mode != K_LOCAL;
    }
    for (Val v = 1; v < (Val)k->inst.n && fine; v++) {
        const KInst *i = &k->inst.at[v];
        fine = any_order(i, depth);
        if (kop_class((KOp)i->op) == K_CLASS_LOOP)
            depth += i->op == KI_END ? -1 : 1;
        if (i->op != KI_LOAD && i->op != KI_STORE)
            continue;
        const KAccess *a = &k->access.at[i->aux];
        if (!moves(a)) { /* the last one would win */
            fine = fine && (i->op == KI_LOAD || depth == 0);
            continue;
        }
        fine = fine && is_whole(k, a) && (place == NULL || k_aff_equal(place, &a->at));
        place = &a->at;
        which[a->buf] = true;
    }
    return fine && place != NULL;
}

static const Kernel *split_all(Arena *arena, const Kernel *k, const Panels *of)
{
    for (int i = 0; i < k->access.n; i++) {
        const KAccess *a = &k->access.at[i];
        int64_t inner;
        Val v = of[a->buf].width > 0 ? find_split(k, &a->at, &of[a->buf], &inner) : 0;
        if (v == 0)
            continue;
        k = kernel_split(arena, k, v, inner);
        if (k == NULL)
            return NULL;
        i = -1; /* others may have changed */
    }
    return k;
}

const Kernel *panels_kernel(Arena *arena, const Kernel *k, const Panels *of)
{
    for (int i = 0; i < k->buf.n; i++)
        if (of[i].width > 0 && k->buf.at[i].elems % of[i].width != 0)
            return NULL;
    const Kernel *split = split_all(arena, k, of);
    if (split == NULL)
        return NULL;
    Kernel *n = kernel_copy(arena, split, NULL);
    for (int i = 0; i < n->buf.n; i++)
        if (of[i].width > 0)
            n->buf.at[i].elems = n->buf.at[i].elems / of[i].width * pitch_of(&of[i]);
    for (int i = 0; i < n->access.n; i++) {
        KAccess *a = &n->access.at[i];
        const Panels *p = &of[a->buf];
        Place at;
        if (p->width == 0)
            continue;
        if (!find_place(n, a, p, &at))
            return NULL;
        a->at = in_panels(&at, p);
    }
    return n;
}
