/* A loop or DIM as two: i = inner * i0 + i1. */
#include "kernel.h"

#include <string.h>

typedef struct Split {
    const Kernel *k;
    Kernel *n;
    Val v, end; /* the loop and its END; of a DIM there is none */
    int64_t inner;
} Split;

static Val renamed(const Split *s, Val v)
{
    return v + (v > s->v) + (s->end != 0 && v > s->end);
}

static bool split_aff(const Split *s, const KAff *from, KAff *to)
{
    KAff x = {.base = from->base};
    for (int i = 0; i < from->n; i++) {
        Val v = from->t[i].v;
        int64_t c = from->t[i].coef;
        if (x.n + (v == s->v) >= K_MAX_TERMS)
            return false;
        x.t[x.n++] = (KTerm){renamed(s, v), v == s->v ? c * s->inner : c};
        if (v == s->v)
            x.t[x.n++] = (KTerm){v + 1, c};
    }
    *to = x;
    return true;
}

static bool split_accesses(Split *s)
{
    const Kernel *k = s->k;
    Kernel *n = s->n;
    for (int i = 0; i < k->affine.n; i++) {
        KAff x;
        if (!split_aff(s, &k->affine.at[i], &x))
            return false;
        vec_push(n->arena, &n->affine, x);
    }
    for (int i = 0; i < k->access.n; i++) {
        KAccess a = k->access.at[i];
        if (!split_aff(s, &k->access.at[i].at, &a.at))
            return false;
        a.bound = NEW_ARRAY(n->arena, KBound, a.n_bounds);
        for (int j = 0; j < a.n_bounds; j++) {
            a.bound[j] = k->access.at[i].bound[j];
            if (!split_aff(s, &k->access.at[i].bound[j].e, &a.bound[j].e))
                return false;
        }
        vec_push(n->arena, &n->access, a);
    }
    return true;
}

static void push_split(Split *s, KInst i)
{
    int64_t extent = i.imm.i;
    i.imm.i = extent / s->inner;
    vec_push(s->n->arena, &s->n->inst, i);
    i.imm.i = s->inner;
    vec_push(s->n->arena, &s->n->inst, i);
}

static void copy_instructions(Split *s)
{
    for (Val v = 1; v < (Val)s->k->inst.n; v++) {
        KInst i = s->k->inst.at[v];
        i.a = renamed(s, i.a);
        i.b = renamed(s, i.b);
        i.c = renamed(s, i.c);
        if (v == s->v) {
            push_split(s, i);
            continue;
        }
        if (i.op == KI_END && i.aux == (int32_t)s->v) {
            KInst of_inner = i;
            of_inner.aux++;
            vec_push(s->n->arena, &s->n->inst, of_inner);
        } else if (i.op == KI_END) {
            i.aux = (int32_t)renamed(s, (Val)i.aux);
        }
        vec_push(s->n->arena, &s->n->inst, i);
    }
}

static bool split_dims(Split *s)
{
    KContract *c = &s->n->con;
    *c = s->k->con;
    Val *at[] = {&c->a_from, &c->a_to,   &c->a,    &c->b_from, &c->b_to,
                 &c->b,      &c->e_from, &c->e_to, &c->all};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        *at[i] = renamed(s, *at[i]);
    for (int r = K_B; r <= K_K; r++) {
        int n = 0;
        for (int d = 0; d < s->k->con.n[r]; d++) {
            Val v = s->k->con.dim[r][d];
            if (n + (v == s->v) >= K_MAX_DIMS)
                return false;
            c->dim[r][n++] = renamed(s, v);
            if (v == s->v)
                c->dim[r][n++] = v + 1;
        }
        c->n[r] = n;
    }
    return true;
}

/* Elements keep their lanes, and those of an instruction's operands are what they were. */
static bool can_split(const Kernel *k, Val v, int64_t inner)
{
    const KInst *i = &k->inst.at[v];
    bool loop = i->op == KI_PAR || i->op == KI_RED || (i->op == KI_SEQ && i->aux == 0);
    bool lanes = i->op != KI_RED || inner % k_lanes(F32) == 0;
    return (loop || i->op == KI_DIM) && lanes && i->reach == K_ALL && inner > 0 &&
           i->imm.i % inner == 0;
}

Kernel *kernel_split(Arena *arena, const Kernel *k, Val v, int64_t inner)
{
    if (!can_split(k, v, inner))
        return NULL;
    Split s = {.k = k, .n = kernel_new(arena, k->kind, k->name), .v = v, .inner = inner};
    for (Val e = v + 1; e < (Val)k->inst.n && s.end == 0; e++)
        if (k->inst.at[e].op == KI_END && k->inst.at[e].aux == (int32_t)v)
            s.end = e;
    for (int i = 0; i < k->buf.n; i++)
        k_buf(s.n, k->buf.at[i].dtype, k->buf.at[i].elems, k->buf.at[i].mode);
    s.n->limit = k->limit;
    if (!split_accesses(&s) || (k->kind == K_CONTRACT && !split_dims(&s)))
        return NULL;
    copy_instructions(&s);
    return s.n;
}
