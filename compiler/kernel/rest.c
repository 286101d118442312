/* What two or more loops over a row compute of the same elements, as e^(x - max) of a softmax and
 * of its reverse, is computed by the first one and rests in an output until the last one, which
 * stores what it makes of it there. */
#include "same_loop.h"

#include <string.h>

enum { MOST_ELEMS = 1 << 14 }; /* of a row in the caches */

typedef struct Rest {
    const Kernel *k;
    Val red, red_end, math; /* the first loop; the value */
    Val last, last_end;     /* the last loop */
    Val *read;              /* by Val: it is the value in a later loop, whose Val this is */
    int n_reads;
} Rest;

/* It reads what the kernel writes. */
static bool may_change(const Kernel *k, Val v)
{
    const KInst *i = &k->inst.at[v];
    return i->op == KI_LOAD && k->buf.at[k->access.at[i->aux].buf].mode != K_IN;
}

/* The loop, if it goes over the same elements, computes the value as well. */
static void find_read(Rest *r, Arena *scratch, Val loop)
{
    const Kernel *k = r->k;
    const KInst *first = &k->inst.at[r->red], *i = &k->inst.at[loop];
    LoopPair p = {.k = k, .red = r->red, .red_end = r->red_end, .par = loop};
    p.par_end = loop_end(k, loop);
    if (i->op == KI_SEQ || i->imm.i != first->imm.i || i->reach != first->reach ||
        loop_holds_one(k, loop, p.par_end))
        return;
    p.as = NEW_ARRAY(scratch, Val, k->inst.n);
    p.as[loop] = r->red;
    for (Val v = loop + 1; v < p.par_end; v++) {
        if (may_change(k, v) || !loop_plain(&k->inst.at[v]) || !loop_same(&p, v) ||
            p.as[v] != r->math)
            continue;
        r->read[v] = loop;
        r->n_reads++;
        r->last = loop;
        r->last_end = p.par_end;
    }
}

static void find_reads(Rest *r, Arena *scratch)
{
    const Kernel *k = r->k;
    for (Val v = r->red_end + 1; v < (Val)k->inst.n && k->inst.at[v].op != KI_END; v++) {
        if (kop_class((KOp)k->inst.at[v].op) != K_CLASS_LOOP)
            continue;
        find_read(r, scratch, v);
        v = loop_end(k, v);
    }
}

static int count_touches(const Kernel *k, int buf)
{
    int n = 0;
    for (Val v = 1; v < (Val)k->inst.n; v++) {
        const KInst *i = &k->inst.at[v];
        n += (i->op == KI_LOAD || i->op == KI_STORE) && k->access.at[i->aux].buf == buf;
    }
    return n;
}

/* Known where the first loop is: nothing but that loop's index, and what stands before it. */
static bool is_place(const Rest *r, const KAff *x)
{
    bool moves = false;
    for (int i = 0; i < x->n; i++) {
        moves = moves || x->t[i].v == r->last;
        if (x->t[i].v != r->last && x->t[i].v > r->red)
            return false;
    }
    return moves;
}

/* What the last loop stores to an output that nothing else touches, behind the value; or 0. */
static Val find_place(const Rest *r)
{
    const Kernel *k = r->k;
    Val value = 0;
    for (Val v = r->last + 1; v < r->last_end; v++)
        value = r->read[v] != 0 ? v : value;
    for (Val v = value + 1; v < r->last_end; v++) {
        const KInst *i = &k->inst.at[v];
        if (i->op != KI_STORE)
            continue;
        const KAccess *a = &k->access.at[i->aux];
        const KBuf *b = &k->buf.at[a->buf];
        if (b->mode == K_OUT && b->dtype == k->inst.at[r->math].dtype && a->n_bounds == 0 &&
            is_place(r, &a->at) && count_touches(k, a->buf) == 1)
            return v;
    }
    return 0;
}

/* The access of the last loop's store, in the loop `to`. */
static int32_t add_access(Kernel *x, Arena *arena, const Rest *r, Val store, Val to)
{
    KAccess a = x->access.at[x->inst.at[store].aux];
    KAff at = k_aff(a.at.base);
    for (int i = 0; i < a.at.n; i++) {
        Val v = a.at.t[i].v == r->last ? to : a.at.t[i].v;
        at = k_aff_add(at, k_aff_val(v, a.at.t[i].coef));
    }
    a.at = at;
    vec_push(arena, &x->access, a);
    return x->access.n - 1;
}

static Kernel *let_rest(Arena *arena, Arena *scratch, const Rest *r, Val store)
{
    Kernel *x = kernel_copy(scratch, r->k, NULL);
    uint8_t type = x->inst.at[r->math].dtype;
    for (Val v = r->red_end; v < r->last_end; v++) {
        if (r->read[v] == 0)
            continue;
        int32_t at = add_access(x, scratch, r, store, r->read[v]);
        x->inst.at[v] = (KInst){.op = KI_LOAD, .dtype = type, .aux = at};
    }
    int32_t at = add_access(x, scratch, r, store, r->red);
    KInst put = {.op = KI_STORE, .dtype = type, .aux = at, .a = r->math};
    vec_push(scratch, &x->inst, put);
    return loop_put(arena, scratch, x, r->red_end);
}

static Kernel *rest_of(Arena *arena, Arena *scratch, Kernel *k, Val red)
{
    Rest r = {.k = k, .red = red, .red_end = loop_end(k, red)};
    if (loop_holds_one(k, red, r.red_end) || k->inst.at[red].imm.i > MOST_ELEMS)
        return k;
    for (r.math = red + 1; r.math < r.red_end; r.math++) {
        if (kop_class((KOp)k->inst.at[r.math].op) != K_CLASS_MATH)
            continue;
        r.read = NEW_ARRAY(scratch, Val, k->inst.n);
        r.n_reads = 0;
        find_reads(&r, scratch);
        Val store = r.n_reads > 0 && k->inst.at[r.last].op == KI_PAR ? find_place(&r) : 0;
        if (store != 0)
            return let_rest(arena, scratch, &r, store);
    }
    return k;
}

Kernel *kernel_rest(Arena *arena, Kernel *k)
{
    Arena scratch = {0};
    for (Val v = 1; k->kind == K_LOOP && v < (Val)k->inst.n; v++)
        if (k->inst.at[v].op == KI_RED)
            k = rest_of(arena, &scratch, k, v);
    arena_free(&scratch);
    return k;
}
