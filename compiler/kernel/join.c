/* A loop that stores, element by element, what a sum over the same elements has just computed
 * becomes part of that sum's loop: exp(x - max) of a softmax, the rows of a norm's gradient. */
#include "same_loop.h"

#include <string.h>

Val loop_end(const Kernel *k, Val loop)
{
    Val v = loop + 1;
    while (k->inst.at[v].op != KI_END || k->inst.at[v].aux != (int32_t)loop)
        v++;
    return v;
}

/* x with values of the PAR loop replaced by those of the RED loop. */
static KAff renamed(const LoopPair *p, const KAff *x)
{
    KAff y = k_aff(x->base);
    for (int i = 0; i < x->n; i++) {
        Val v = x->t[i].v;
        y = k_aff_add(y, k_aff_val(p->as[v] != 0 ? p->as[v] : v, x->t[i].coef));
    }
    return y;
}

static bool same_aff(const LoopPair *p, const KAff *x, const KAff *y)
{
    KAff z = renamed(p, x);
    return k_aff_equal(&z, y);
}

static bool same_place(const LoopPair *p, const KAccess *x, const KAccess *y)
{
    bool same = x->buf == y->buf && x->n_bounds == y->n_bounds && same_aff(p, &x->at, &y->at) &&
                memcmp(&x->otherwise, &y->otherwise, sizeof x->otherwise) == 0;
    for (int i = 0; i < x->n_bounds && same; i++)
        same = x->bound[i].lo == y->bound[i].lo && x->bound[i].hi == y->bound[i].hi &&
               same_aff(p, &x->bound[i].e, &y->bound[i].e);
    return same;
}

static bool same_operand(const LoopPair *p, Val x, Val y)
{
    const KInst *a = &p->k->inst.at[x], *b = &p->k->inst.at[y];
    if (x == y || p->as[x] == y)
        return true;
    return a->op == KI_CONST && b->op == KI_CONST && a->dtype == b->dtype && a->imm.i == b->imm.i;
}

/* x of the PAR loop is what y of the RED loop is. */
static bool same_value(const LoopPair *p, Val x, Val y)
{
    const Kernel *k = p->k;
    const KInst *a = &k->inst.at[x], *b = &k->inst.at[y];
    if (a->op != b->op || a->dtype != b->dtype || a->imm.i != b->imm.i ||
        !same_operand(p, a->a, b->a) || !same_operand(p, a->b, b->b) ||
        !same_operand(p, a->c, b->c))
        return false;
    if (a->op == KI_LOAD)
        return same_place(p, &k->access.at[a->aux], &k->access.at[b->aux]);
    if (a->op == KI_INDEX)
        return same_aff(p, &k->affine.at[a->aux], &k->affine.at[b->aux]);
    return a->aux == b->aux;
}

bool loop_same(const LoopPair *p, Val x)
{
    for (Val y = p->red + 1; y < p->red_end && p->as[x] == 0; y++)
        if (same_value(p, x, y))
            p->as[x] = y;
    return p->as[x] != 0 || p->k->inst.at[x].op == KI_CONST;
}

bool loop_plain(const KInst *i)
{
    KClass is = kop_class((KOp)i->op);
    return is != K_CLASS_LOOP && is != K_CLASS_RED && is != K_CLASS_VAR && i->op != KI_END &&
           i->op != KI_STORE;
}

bool loop_holds_one(const Kernel *k, Val loop, Val end)
{
    for (Val v = loop + 1; v < end; v++)
        if (kop_class((KOp)k->inst.at[v].op) == K_CLASS_LOOP)
            return true;
    return false;
}

Kernel *loop_put(Arena *arena, Arena *scratch, Kernel *x, Val end)
{
    Val *to = NEW_ARRAY(scratch, Val, x->inst.n), next = 1, added = (Val)x->inst.n - 1;
    bool *used = NEW_ARRAY(scratch, bool, x->inst.n);
    for (Val v = (Val)x->inst.n; v-- > 1;) {
        const KInst *i = &x->inst.at[v];
        to[v] = v < end || !loop_plain(i) || used[v];
        if (to[v] != 0)
            k_use_operands(x, i, used);
    }
    for (Val v = 1; v < added; v++) {
        if (v == end)
            to[added] = next++;
        if (to[v] != 0)
            to[v] = next++;
    }
    return kernel_copy(arena, x, to);
}

static bool touches(const Kernel *k, Val from, Val to, int buf)
{
    for (Val v = from; v < to; v++) {
        const KInst *i = &k->inst.at[v];
        if ((i->op == KI_LOAD || i->op == KI_STORE) && k->access.at[i->aux].buf == buf)
            return true;
    }
    return false;
}

static bool known_before(const LoopPair *p, const KAff *x)
{
    for (int i = 0; i < x->n; i++)
        if (p->as[x->t[i].v] == 0 && x->t[i].v > p->red)
            return false;
    return true;
}

/* The store of the PAR loop may be the last thing that the RED loop does. */
static bool may_move(const LoopPair *p, Val store)
{
    const Kernel *k = p->k;
    const KInst *i = &k->inst.at[store];
    const KAccess *a = &k->access.at[i->aux];
    bool known = known_before(p, &a->at) && (p->as[i->a] != 0 || i->a < p->red);
    for (int j = 0; j < a->n_bounds; j++)
        known = known && known_before(p, &a->bound[j].e);
    return known && !touches(k, p->red, p->par, a->buf);
}

/* The one store of the PAR loop, if all that it needs is in the RED loop; or 0. */
static Val moving_store(const LoopPair *p)
{
    const KInst *red = &p->k->inst.at[p->red], *par = &p->k->inst.at[p->par];
    Val store = p->par_end - 1;
    if (red->imm.i != par->imm.i || red->reach != par->reach || store <= p->par ||
        p->k->inst.at[store].op != KI_STORE)
        return 0;
    p->as[p->par] = p->red;
    for (Val v = p->par + 1; v < store; v++)
        if (!loop_plain(&p->k->inst.at[v]) || !loop_same(p, v))
            return 0;
    return may_move(p, store) ? store : 0;
}

/* A copy in which the store is the last instruction of the RED loop, and the PAR loop is none. */
static Kernel *join(Arena *arena, Arena *scratch, const LoopPair *p, Val store)
{
    const Kernel *k = p->k;
    Kernel *x = kernel_copy(scratch, k, NULL);
    KAccess *a = &x->access.at[x->inst.at[store].aux];
    Val *to = NEW_ARRAY(scratch, Val, k->inst.n), next = 1;
    if (p->as[x->inst.at[store].a] != 0)
        x->inst.at[store].a = p->as[x->inst.at[store].a];
    a->at = renamed(p, &a->at);
    for (int i = 0; i < a->n_bounds; i++)
        a->bound[i].e = renamed(p, &a->bound[i].e);
    for (Val v = 1; v < (Val)k->inst.n; v++) {
        if (v == p->red_end)
            to[store] = next++;
        if (v < p->par || v > p->par_end)
            to[v] = next++;
    }
    return kernel_copy(arena, x, to);
}

/* The PAR loops behind p->red in the loop that holds it, one after another. */
static Val find_par(LoopPair *p)
{
    const Kernel *k = p->k;
    for (Val v = p->red_end + 1; v < (Val)k->inst.n && k->inst.at[v].op != KI_END; v++) {
        if (kop_class((KOp)k->inst.at[v].op) != K_CLASS_LOOP)
            continue;
        p->par = v;
        p->par_end = loop_end(k, v);
        memset(p->as, 0, sizeof *p->as * (size_t)k->inst.n);
        Val store = k->inst.at[v].op == KI_PAR ? moving_store(p) : 0;
        if (store != 0)
            return store;
        v = p->par_end;
    }
    return 0;
}

static Kernel *join_one(Arena *arena, Arena *scratch, Kernel *k)
{
    LoopPair p = {.k = k, .as = NEW_ARRAY(scratch, Val, k->inst.n)};
    for (Val v = 1; v < (Val)k->inst.n; v++) {
        if (k->inst.at[v].op != KI_RED)
            continue;
        p.red = v;
        p.red_end = loop_end(k, v);
        Val store = loop_holds_one(k, v, p.red_end) ? 0 : find_par(&p);
        if (store != 0)
            return join(arena, scratch, &p, store);
    }
    return k;
}

Kernel *loop_change_all(Arena *arena, Kernel *k, LoopChange *change)
{
    Arena scratch = {0};
    Kernel *from = NULL;
    while (k->kind == K_LOOP && k != from) {
        from = k;
        k = change(arena, &scratch, from);
    }
    arena_free(&scratch);
    return k;
}

Kernel *kernel_join(Arena *arena, Kernel *k)
{
    return loop_change_all(arena, k, join_one);
}
