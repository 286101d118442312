/* Loads whose value outside of their bounds does not matter.
 *
 * Padding makes a chain of operations `select(inside, f(x, ...), 0)`, where every load
 * of the chain has the bounds that `inside` spells out. What such a load gives outside
 * is thrown away by the select: no blend is wanted, and a load that does not depend on
 * the lane stays one scalar. */
#include "gen.h"

enum { MAX_CONDITIONS = 16 };

/* lo <= e, or e < hi */
typedef struct Condition {
    const KAff *e;
    bool low;
    int64_t limit;
} Condition;

typedef struct Conditions {
    Condition at[MAX_CONDITIONS];
    int n;
} Conditions;

static const KInst *inst(const Kernel *k, Val v)
{
    return &k->inst.at[v];
}

/* The terms of a conjunction that compare an index with a constant. */
static void collect(const Kernel *k, Val v, Conditions *c)
{
    const KInst *i = inst(k, v);
    if (i->op == KI_AND && i->dtype == BOOL) {
        collect(k, i->a, c);
        collect(k, i->b, c);
        return;
    }
    if ((i->op != KI_LT && i->op != KI_LE) || c->n == MAX_CONDITIONS)
        return;
    const KInst *a = inst(k, i->a), *b = inst(k, i->b);
    int64_t strict = i->op == KI_LT;
    if (a->op == KI_CONST && b->op == KI_INDEX)
        c->at[c->n++] = (Condition){&k->affine.at[b->aux], true, a->imm.i + strict};
    else if (a->op == KI_INDEX && b->op == KI_CONST)
        c->at[c->n++] = (Condition){&k->affine.at[a->aux], false, b->imm.i + 1 - strict};
}

/* x = y + *shift for all indices */
static bool shifted(const KAff *x, const KAff *y, int64_t *shift)
{
    KAff z = *x;
    z.base = y->base;
    *shift = x->base - y->base;
    return k_aff_equal(&z, y);
}

static bool implied(const Kernel *k, const KBound *b, const Conditions *c)
{
    int64_t lo, hi, shift;
    bool low = false, high = false;
    if (k_aff_range(k, &b->e, &lo, &hi)) {
        low = lo >= b->lo;
        high = hi < b->hi;
    }
    for (int i = 0; i < c->n; i++) {
        const Condition *d = &c->at[i];
        if (!shifted(&b->e, d->e, &shift))
            continue;
        low |= d->low && d->limit + shift >= b->lo;
        high |= !d->low && d->limit + shift <= b->hi;
    }
    return low && high;
}

static bool uses_twice(const Kernel *k, const KInst *i, Val v)
{
    const Val arg[] = {i->a, i->b, i->c};
    int n = 0;
    for (int j = 0; j < kop_args((KOp)i->op); j++)
        n += arg[j] == v;
    (void)k;
    return n > 1;
}

/* Marks values that nothing but the true side of `select` sees, backwards. */
static void mark_cone(const Kernel *k, Val select, bool *only, Arena *arena)
{
    bool *other = NEW_ARRAY(arena, bool, k->inst.n);
    const KInst *s = inst(k, select);
    if (k->kind == K_CONTRACT)
        other[k->con.all] = true;
    if (uses_twice(k, s, s->b))
        return;
    only[s->b] = true;
    /* Users follow their operands: a value is inside if all of its users are. */
    for (Val v = (Val)k->inst.n; v-- > 1;) {
        const KInst *i = inst(k, v);
        const Val arg[] = {i->a, i->b, i->c};
        bool inside = v != select && only[v] && !other[v] && i->op != KI_STORE;
        for (int j = 0; j < kop_args((KOp)i->op); j++) {
            if (v == select && j == 1)
                continue;
            *(inside ? &only[arg[j]] : &other[arg[j]]) = true;
        }
        for (int t = 0; i->op == KI_LOAD && t < k->access.at[i->aux].at.n; t++)
            other[k->access.at[i->aux].at.t[t].v] = true;
        only[v] = only[v] && !other[v];
    }
}

void gen_find_careless(const Kernel *k, bool *careless, Arena *arena)
{
    ArenaMark mark = arena_mark(arena);
    const KContract *con = &k->con;
    for (Val v = 1; v < (Val)k->inst.n; v++) {
        Conditions c = {.n = 0};
        if (inst(k, v)->op != KI_SELECT)
            continue;
        collect(k, inst(k, v)->a, &c);
        if (c.n == 0)
            continue;
        bool *only = NEW_ARRAY(arena, bool, k->inst.n);
        mark_cone(k, v, only, arena);
        for (Val l = 1; l < v; l++) {
            const KInst *i = inst(k, l);
            bool given = k->kind == K_CONTRACT && (l == con->a || l == con->b || l == con->all);
            if (i->op != KI_LOAD || !only[l] || given)
                continue;
            const KAccess *a = &k->access.at[i->aux];
            bool all = true;
            for (int b = 0; b < a->n_bounds; b++)
                all &= implied(k, &a->bound[b], &c);
            careless[i->aux] |= all;
        }
    }
    arena_reset(arena, mark);
}

bool gen_is_zero_outside(const Kernel *k, Val v, const KBound *b)
{
    const KInst *i = inst(k, v), *otherwise = inst(k, i->c);
    Conditions c = {.n = 0};
    if (i->op == KI_LOAD) {
        const KAccess *a = &k->access.at[i->aux];
        return a->otherwise == 0 && b >= a->bound && b < a->bound + a->n_bounds;
    }
    if (i->op != KI_SELECT || otherwise->op != KI_CONST || otherwise->imm.f != 0)
        return false;
    collect(k, i->a, &c);
    return implied(k, b, &c);
}

/* ---- what is known for a while --------------------------------------------------------- */

bool gen_is_sure(const Gen *g, const KBound *b)
{
    for (int i = 0; i < g->n_sure; i++)
        if (g->sure[i] == b)
            return true;
    return false;
}

bool gen_surely(const Gen *g, Val v)
{
    Conditions c = {.n = 0};
    int64_t shift;
    KOp op = (KOp)inst(g->k, v)->op;
    if (g->n_sure == 0 || (op != KI_LT && op != KI_LE))
        return false;
    collect(g->k, v, &c);
    for (int i = 0; i < g->n_sure && c.n == 1; i++) {
        const KBound *b = g->sure[i];
        if (shifted(c.at[0].e, &b->e, &shift) &&
            (c.at[0].low ? b->lo + shift >= c.at[0].limit : b->hi + shift <= c.at[0].limit))
            return true;
    }
    return false;
}
