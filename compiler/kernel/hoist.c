/* What a row reads through an index comes before the row's loops: the logit of a label. Then the
 * loops may write over the row that it is an element of. */
#include "kernel.h"

typedef struct Hoist {
    const Kernel *k;
    Val *up;     /* by Val: the loop that directly holds it, or 0 */
    Val *inner;  /* by loop: the first loop directly in it, or 0 */
    bool *moves; /* by Val: it goes before the first loop beside it */
} Hoist;

static bool is_loop(const KInst *i)
{
    return kop_class((KOp)i->op) == K_CLASS_LOOP && i->op != KI_END;
}

static void find_loops(Hoist *h)
{
    Val now = 0;
    for (Val v = 1; v < (Val)h->k->inst.n; v++) {
        const KInst *i = &h->k->inst.at[v];
        if (i->op == KI_END)
            now = h->up[i->aux];
        h->up[v] = now;
        if (!is_loop(i))
            continue;
        if (h->inner[now] == 0)
            h->inner[now] = v;
        now = v;
    }
}

static bool is_indirect(const Kernel *k, const KAff *x)
{
    for (int i = 0; i < x->n; i++)
        if (!is_loop(&k->inst.at[x->t[i].v]))
            return true;
    return false;
}

static bool may_move(Hoist *h, Val v, Val before);

static bool all_may_move(Hoist *h, const KAff *x, Val before)
{
    for (int i = 0; i < x->n; i++)
        if (!may_move(h, x->t[i].v, before))
            return false;
    return true;
}

/* v, and what it is made of, is there before that loop or can be: it is made of what is only read.
 */
static bool may_move(Hoist *h, Val v, Val before)
{
    const Kernel *k = h->k;
    const KInst *i = &k->inst.at[v];
    KClass is = kop_class((KOp)i->op);
    if (v < before || h->moves[v])
        return true;
    if (h->up[v] != h->up[before] || is == K_CLASS_LOOP || is == K_CLASS_RED || is == K_CLASS_VAR)
        return false;
    if (i->op == KI_LOAD) {
        const KAccess *a = &k->access.at[i->aux];
        bool fine = k->buf.at[a->buf].mode == K_IN && all_may_move(h, &a->at, before);
        for (int j = 0; j < a->n_bounds; j++)
            fine = fine && all_may_move(h, &a->bound[j].e, before);
        return fine && (h->moves[v] = true);
    }
    bool fine = i->op == KI_INDEX ? all_may_move(h, &k->affine.at[i->aux], before)
                                  : may_move(h, i->a, before) && may_move(h, i->b, before) &&
                                        may_move(h, i->c, before);
    return fine && i->op != KI_STORE && (h->moves[v] = true);
}

static bool find_moves(Hoist *h)
{
    bool any = false;
    for (Val v = 1; v < (Val)h->k->inst.n; v++) {
        const KInst *i = &h->k->inst.at[v];
        Val first = h->inner[h->up[v]];
        if (i->op != KI_LOAD || h->up[v] == 0 || first == 0 || first > v || h->moves[v] ||
            !is_indirect(h->k, &h->k->access.at[i->aux].at))
            continue;
        any = may_move(h, v, first) || any;
    }
    return any;
}

/* Everything in its order, but what moves before the first loop beside it. */
static void number(const Hoist *h, Val *to)
{
    Val next = 1;
    for (Val v = 1; v < (Val)h->k->inst.n; v++) {
        if (h->moves[v])
            continue;
        if (is_loop(&h->k->inst.at[v]) && h->inner[h->up[v]] == v)
            for (Val m = v + 1; m < (Val)h->k->inst.n; m++)
                if (h->moves[m] && h->up[m] == h->up[v])
                    to[m] = next++;
        to[v] = next++;
    }
}

Kernel *kernel_hoist(Arena *arena, Kernel *k)
{
    if (k->kind != K_LOOP)
        return k;
    Arena scratch = {0};
    Hoist h = {.k = k};
    h.up = NEW_ARRAY(&scratch, Val, k->inst.n);
    h.inner = NEW_ARRAY(&scratch, Val, k->inst.n);
    h.moves = NEW_ARRAY(&scratch, bool, k->inst.n);
    find_loops(&h);
    if (find_moves(&h)) {
        Val *to = NEW_ARRAY(&scratch, Val, k->inst.n);
        number(&h, to);
        k = kernel_copy(arena, k, to);
    }
    arena_free(&scratch);
    return k;
}
