/* Merging of nested PAR loops: [i < 64][j < 10] with every address of the form
 * c * (10*i + j) is one loop of 640, with no short rows and no masks but one. */
#include <string.h>
#include "tree.h"

static int64_t coef_of(const KAff *x, Val v)
{
    for (int i = 0; i < x->n; i++)
        if (x->t[i].v == v)
            return x->t[i].coef;
    return 0;
}

static bool is_loop(KOp op)
{
    return op == KI_PAR || op == KI_SEQ || op == KI_RED;
}

static bool is_pure(const Kernel *k, const KInst *i)
{
    if (i->op == KI_LOAD)
        return k->buf.at[k->access.at[i->aux].buf].mode == K_IN;
    return i->op != KI_STORE && kop_class((KOp)i->op) != K_CLASS_RED &&
           kop_class((KOp)i->op) != K_CLASS_VAR && !is_loop((KOp)i->op) && i->op != KI_END;
}

static int end_of(const Kernel *k, Val loop)
{
    int i = (int)loop;
    while (k->inst.at[i].op != KI_END || k->inst.at[i].aux != (int32_t)loop)
        i++;
    return i;
}

/* The PAR that `outer` holds with nothing but pure values beside it, or 0. */
static Val only_child(const Kernel *k, Val outer)
{
    int end = end_of(k, outer), i = (int)outer + 1;
    while (i < end && is_pure(k, &k->inst.at[i]))
        i++;
    if (i == end || k->inst.at[i].op != KI_PAR)
        return 0;
    Val inner = (Val)i;
    for (i = end_of(k, inner) + 1; i < end; i++)
        if (!is_pure(k, &k->inst.at[i]))
            return 0;
    return inner;
}

static bool fits(const KAff *x, Val outer, Val inner, int64_t extent)
{
    return coef_of(x, outer) == coef_of(x, inner) * extent;
}

static bool can_merge(const Kernel *k, Val outer, Val inner)
{
    if (k->inst.at[outer].reach != K_ALL || k->inst.at[inner].reach != K_ALL)
        return false;
    int64_t extent = k->inst.at[inner].imm.i;
    for (int i = 0; i < k->access.n; i++) {
        const KAccess *a = &k->access.at[i];
        if (!fits(&a->at, outer, inner, extent))
            return false;
        for (int b = 0; b < a->n_bounds; b++)
            if (!fits(&a->bound[b].e, outer, inner, extent))
                return false;
    }
    for (int i = 0; i < k->affine.n; i++)
        if (!fits(&k->affine.at[i], outer, inner, extent))
            return false;
    return true;
}

static void drop_term(KAff *x, Val v)
{
    int n = 0;
    for (int i = 0; i < x->n; i++)
        if (x->t[i].v != v)
            x->t[n++] = x->t[i];
    x->n = n;
}

static Kernel *copy(const Kernel *k, Arena *arena)
{
    Kernel *c = NEW(arena, Kernel);
    *c = *k;
    c->inst.at = NEW_ARRAY(arena, KInst, k->inst.n);
    memcpy(c->inst.at, k->inst.at, (size_t)k->inst.n * sizeof(KInst));
    c->access.at = NEW_ARRAY(arena, KAccess, k->access.n);
    c->affine.at = NEW_ARRAY(arena, KAff, k->affine.n);
    if (k->affine.n > 0)
        memcpy(c->affine.at, k->affine.at, (size_t)k->affine.n * sizeof(KAff));
    for (int i = 0; i < k->access.n; i++) {
        KAccess *a = &c->access.at[i];
        *a = k->access.at[i];
        a->bound = NEW_ARRAY(arena, KBound, a->n_bounds);
        if (a->n_bounds > 0)
            memcpy(a->bound, k->access.at[i].bound, (size_t)a->n_bounds * sizeof(KBound));
    }
    return c;
}

static void merge(Kernel *k, Val outer, Val inner)
{
    k->inst.at[inner].imm.i *= k->inst.at[outer].imm.i;
    k->inst.at[outer].imm.i = 1;
    for (int i = 0; i < k->access.n; i++) {
        KAccess *a = &k->access.at[i];
        drop_term(&a->at, outer);
        for (int b = 0; b < a->n_bounds; b++)
            drop_term(&a->bound[b].e, outer);
    }
    for (int i = 0; i < k->affine.n; i++)
        drop_term(&k->affine.at[i], outer);
}

const Kernel *tree_merge(const Kernel *k, Arena *arena)
{
    Kernel *c = copy(k, arena);
    for (Val v = (Val)c->inst.n; v-- > 1;) { /* inner loops first */
        Val inner = c->inst.at[v].op == KI_PAR ? only_child(c, v) : 0;
        if (inner != 0 && can_merge(c, v, inner))
            merge(c, v, inner);
    }
    return c;
}
