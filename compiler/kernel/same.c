/* Equality and hash of kernels, but for their names. Fields are taken one by one:
 * padding is no part of a kernel. */
#include <string.h>
#include "kernel.h"

static uint64_t hash_int(uint64_t h, int64_t x)
{
    return hash_bytes(h, &x, sizeof x);
}

static uint64_t hash_affine(uint64_t h, const KAff *x)
{
    h = hash_int(hash_int(h, x->base), x->n);
    for (int i = 0; i < x->n; i++)
        h = hash_int(hash_int(h, x->t[i].v), x->t[i].coef);
    return h;
}

static uint64_t hash_access(uint64_t h, const KAccess *a)
{
    h = hash_affine(hash_int(hash_int(h, a->buf), a->n_bounds), &a->at);
    for (int i = 0; i < a->n_bounds; i++) {
        const KBound *b = &a->bound[i];
        h = hash_int(hash_int(hash_affine(h, &b->e), b->lo), b->hi);
    }
    return hash_bytes(h, &a->otherwise, sizeof a->otherwise);
}

static uint64_t hash_inst(uint64_t h, const KInst *i)
{
    const int64_t word[] = {i->op, i->dtype, i->reach, i->aux, i->a, i->b, i->c, i->imm.i};
    return hash_bytes(h, word, sizeof word);
}

static uint64_t hash_contract(uint64_t h, const KContract *c)
{
    const int64_t word[] = {c->dtype, c->a_from, c->a_to,    c->a,        c->b_from,
                            c->b_to,  c->b,      c->e_from,  c->e_to,     c->leaf,
                            c->pairs, c->all,    c->all_buf, c->side_sum, c->side_sum_buf};
    return hash_bytes(h, word, sizeof word);
}

static uint64_t hash_limit(uint64_t h, const KLimit *l)
{
    const int64_t word[] = {l->buf, l->at, l->plus, l->mean};
    return l->is ? hash_bytes(h, word, sizeof word) : h;
}

uint64_t kernel_hash(const Kernel *k)
{
    uint64_t h = hash_int(hash_int(HASH_START, k->kind), k->inst.n);
    h = hash_limit(h, &k->limit);
    for (int i = 0; i < k->inst.n; i++)
        h = hash_inst(h, &k->inst.at[i]);
    for (int i = 0; i < k->buf.n; i++) {
        const KBuf *b = &k->buf.at[i];
        h = hash_int(hash_int(hash_int(h, b->dtype), b->mode), b->elems);
    }
    for (int i = 0; i < k->access.n; i++)
        h = hash_access(h, &k->access.at[i]);
    for (int i = 0; i < k->affine.n; i++)
        h = hash_affine(h, &k->affine.at[i]);
    return hash_mix(k->kind == K_CONTRACT ? hash_contract(h, &k->con) : h);
}

static bool same_access(const KAccess *x, const KAccess *y)
{
    if (x->buf != y->buf || x->n_bounds != y->n_bounds || !k_aff_equal(&x->at, &y->at) ||
        memcmp(&x->otherwise, &y->otherwise, sizeof x->otherwise) != 0)
        return false;
    for (int i = 0; i < x->n_bounds; i++) {
        const KBound *a = &x->bound[i], *b = &y->bound[i];
        if (a->lo != b->lo || a->hi != b->hi || !k_aff_equal(&a->e, &b->e))
            return false;
    }
    return true;
}

static bool same_inst(const KInst *x, const KInst *y)
{
    return x->op == y->op && x->dtype == y->dtype && x->reach == y->reach && x->aux == y->aux &&
           x->a == y->a && x->b == y->b && x->c == y->c && x->imm.i == y->imm.i;
}

/* The dims follow from the instructions. */
static bool same_contract(const KContract *x, const KContract *y)
{
    return x->dtype == y->dtype && x->a_from == y->a_from && x->a_to == y->a_to && x->a == y->a &&
           x->b_from == y->b_from && x->b_to == y->b_to && x->b == y->b && x->e_from == y->e_from &&
           x->e_to == y->e_to && x->leaf == y->leaf && x->pairs == y->pairs && x->all == y->all &&
           x->all_buf == y->all_buf && x->side_sum == y->side_sum &&
           x->side_sum_buf == y->side_sum_buf;
}

static bool same_limit(const KLimit *x, const KLimit *y)
{
    return x->is == y->is && (!x->is || (x->buf == y->buf && x->at == y->at && x->plus == y->plus &&
                                         x->mean == y->mean));
}

bool kernel_same(const Kernel *x, const Kernel *y)
{
    if (x->kind != y->kind || !same_limit(&x->limit, &y->limit) || x->inst.n != y->inst.n ||
        x->buf.n != y->buf.n || x->access.n != y->access.n || x->affine.n != y->affine.n)
        return false;
    for (int i = 0; i < x->inst.n; i++)
        if (!same_inst(&x->inst.at[i], &y->inst.at[i]))
            return false;
    for (int i = 0; i < x->buf.n; i++) {
        const KBuf *a = &x->buf.at[i], *b = &y->buf.at[i];
        if (a->dtype != b->dtype || a->mode != b->mode || a->elems != b->elems)
            return false;
    }
    for (int i = 0; i < x->access.n; i++)
        if (!same_access(&x->access.at[i], &y->access.at[i]))
            return false;
    for (int i = 0; i < x->affine.n; i++)
        if (!k_aff_equal(&x->affine.at[i], &y->affine.at[i]))
            return false;
    return x->kind == K_LOOP || same_contract(&x->con, &y->con);
}
