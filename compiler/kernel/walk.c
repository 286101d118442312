/* Sums over the same elements, one loop nest after another, share one walk: the sums of a batch
 * norm's reverse pass read a cotangent three times, which no near cache holds. Each accumulator
 * takes the same elements in the same order, so no bit changes. */
#include "same_loop.h"

#include <string.h>

enum { MOST_LOOPS = 8, MOST_BODY = 64 };

/* Loops one in another with nothing beside them, and what the innermost one does. */
typedef struct Nest {
    int n;
    Val loop[MOST_LOOPS];
    Val from, to; /* of the body: the innermost loop's END */
    Val end;      /* of the outermost loop */
} Nest;

static bool is_loop(const KInst *i)
{
    return kop_class((KOp)i->op) == K_CLASS_LOOP && i->op != KI_END;
}

/* Only sums come of it. */
static bool is_sums(const Kernel *k, const Nest *n)
{
    int sums = 0;
    for (Val v = n->from; v < n->to; v++) {
        if (k->inst.at[v].op == KI_INTO)
            sums++;
        else if (!loop_plain(&k->inst.at[v]))
            return false;
    }
    return sums > 0;
}

/* The nest that begins with this loop. */
static bool find_nest(const Kernel *k, Val loop, Nest *n)
{
    n->n = 0;
    n->end = loop_end(k, loop);
    for (Val v = loop; is_loop(&k->inst.at[v]); v++) {
        if (n->n == MOST_LOOPS || k->inst.at[v].op == KI_PAR)
            return false;
        n->loop[n->n++] = v;
    }
    n->from = n->loop[n->n - 1] + 1;
    n->to = loop_end(k, n->loop[n->n - 1]);
    return n->end == n->to + (Val)(n->n - 1) && is_sums(k, n);
}

static bool same_loops(const Kernel *k, const Nest *x, const Nest *y)
{
    for (int i = 0; i < x->n && i < y->n; i++) {
        const KInst *a = &k->inst.at[x->loop[i]], *b = &k->inst.at[y->loop[i]];
        if (a->op != b->op || a->imm.i != b->imm.i || a->reach != b->reach || a->aux != b->aux)
            return false;
    }
    return x->n == y->n;
}

typedef struct Walk {
    LoopPair pair; /* red: the first body; as: what the second one need not do again */
    Nest first, second;
    bool *early; /* by Val: stands between the nests, and is to stand before them */
} Walk;

/* Where the nests stand together, v is known. */
static bool is_known(const Walk *w, Val v)
{
    return v < w->first.loop[0] || (v >= w->second.loop[0] && v < w->second.to) || w->early[v];
}

static bool affine_known(const Walk *w, const KAff *x)
{
    for (int i = 0; i < x->n; i++)
        if (!is_known(w, x->t[i].v))
            return false;
    return true;
}

static bool place_known(const Walk *w, const KAccess *a)
{
    bool known = affine_known(w, &a->at);
    for (int b = 0; b < a->n_bounds; b++)
        known = known && affine_known(w, &a->bound[b].e);
    return known;
}

/* Stored between the nests. */
static bool is_stored(const Walk *w, int buf)
{
    const Kernel *k = w->pair.k;
    for (Val v = w->first.end; v < w->second.loop[0]; v++)
        if (k->inst.at[v].op == KI_STORE && k->access.at[k->inst.at[v].aux].buf == buf)
            return true;
    return false;
}

/* The first nest feeds this accumulator, too, and all of its elements come before. */
static bool is_fed(const Walk *w, Val acc)
{
    for (Val v = w->first.from; v < w->first.to; v++)
        if (w->pair.k->inst.at[v].op == KI_INTO && w->pair.k->inst.at[v].a == acc)
            return true;
    return false;
}

static bool inst_known(const Walk *w, Val v)
{
    const Kernel *k = w->pair.k;
    const KInst *i = &k->inst.at[v];
    if (!is_known(w, i->a) || !is_known(w, i->b) || !is_known(w, i->c))
        return false;
    if (i->op == KI_INDEX)
        return affine_known(w, &k->affine.at[i->aux]);
    if (i->op == KI_INTO)
        return !is_fed(w, i->a);
    const KAccess *a = i->op == KI_LOAD ? &k->access.at[i->aux] : NULL;
    return a == NULL || (place_known(w, a) && !is_stored(w, a->buf));
}

/* Between the nests there are no loops: results of the first one, constants and accumulators of the
 * second, which can as well be before both. */
static bool between(Walk *w)
{
    const Kernel *k = w->pair.k;
    for (Val v = w->first.end + 1; v < w->second.loop[0]; v++) {
        const KInst *i = &k->inst.at[v];
        w->early[v] = i->op == KI_ACC || i->op == KI_CONST;
        if (is_loop(i) || i->op == KI_END || kop_class((KOp)i->op) == K_CLASS_VAR ||
            i->op == KI_INTO)
            return false;
    }
    return true;
}

/* The second nest can be part of the first, and both read something. */
static bool can_share(Walk *w)
{
    const Kernel *k = w->pair.k;
    const Nest *x = &w->first, *y = &w->second;
    bool alike = same_loops(k, x, y) && y->to - y->from + x->to - x->from <= MOST_BODY;
    if (!alike || !between(w))
        return false;
    LoopPair *p = &w->pair;
    p->red = x->from - 1;
    p->red_end = x->to;
    for (int i = 0; i < y->n; i++)
        p->as[y->loop[i]] = x->loop[i];
    int shared = 0;
    for (Val v = y->from; v < y->to; v++) {
        if (!inst_known(w, v))
            return false;
        if (k->inst.at[v].op != KI_INTO && k->inst.at[v].op != KI_CONST && loop_same(p, v))
            shared += k->inst.at[v].op == KI_LOAD;
    }
    return shared > 0;
}

static Val as_shared(const Walk *w, Val v)
{
    return w->pair.as[v] != 0 ? w->pair.as[v] : v;
}

static void rename_affine(const Walk *w, KAff *x)
{
    KAff y = k_aff(x->base);
    for (int i = 0; i < x->n; i++)
        y = k_aff_add(y, k_aff_val(as_shared(w, x->t[i].v), x->t[i].coef));
    *x = y;
}

static void rename_body(const Walk *w, Kernel *x)
{
    for (Val v = w->second.from; v < w->second.to; v++) {
        KInst *i = &x->inst.at[v];
        i->a = as_shared(w, i->a);
        i->b = as_shared(w, i->b);
        i->c = as_shared(w, i->c);
        if (i->op == KI_INDEX)
            rename_affine(w, &x->affine.at[i->aux]);
        if (i->op != KI_LOAD)
            continue;
        KAccess *a = &x->access.at[i->aux];
        rename_affine(w, &a->at);
        for (int b = 0; b < a->n_bounds; b++)
            rename_affine(w, &a->bound[b].e);
    }
}

static Kernel *share(Arena *arena, Arena *scratch, const Walk *w)
{
    const Kernel *k = w->pair.k;
    const Nest *x = &w->first, *y = &w->second;
    Kernel *renamed = kernel_copy(scratch, k, NULL);
    rename_body(w, renamed);
    Val *to = NEW_ARRAY(scratch, Val, k->inst.n), next = 1;
    for (Val v = 1; v < (Val)k->inst.n; v++) {
        for (Val e = x->end; v == x->loop[0] && e < y->loop[0]; e++)
            if (w->early[e])
                to[e] = next++;
        for (Val b = y->from; v == x->to && b < y->to; b++)
            if (w->pair.as[b] == 0)
                to[b] = next++;
        if (!w->early[v] && (v < y->loop[0] || v > y->end))
            to[v] = next++;
    }
    return kernel_copy(arena, renamed, to);
}

/* The loop behind `end` in the same loop, or 0. */
static Val next_loop(const Kernel *k, Val end)
{
    for (Val v = end + 1; v < (Val)k->inst.n && k->inst.at[v].op != KI_END; v++)
        if (is_loop(&k->inst.at[v]))
            return v;
    return 0;
}

static Kernel *share_one(Arena *arena, Arena *scratch, Kernel *k)
{
    for (Val v = 1; v < (Val)k->inst.n; v++) {
        Walk w = {.pair = {.k = k}};
        if (!is_loop(&k->inst.at[v]) || !find_nest(k, v, &w.first))
            continue;
        Val next = next_loop(k, w.first.end);
        if (next == 0 || !find_nest(k, next, &w.second))
            continue;
        w.pair.as = NEW_ARRAY(scratch, Val, k->inst.n);
        w.early = NEW_ARRAY(scratch, bool, k->inst.n);
        if (can_share(&w))
            return share(arena, scratch, &w);
    }
    return k;
}

Kernel *kernel_share_walks(Arena *arena, Kernel *k)
{
    return loop_change_all(arena, k, share_one);
}
