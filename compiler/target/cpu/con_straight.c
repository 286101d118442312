/* Where an epilogue does no more than store sums, each row of a tile side by side, whole tiles are
 * summed right there: there is no way by scratch, and between blocks of k the sums rest where they
 * will be. Nothing else reads or writes those elements meanwhile: an output that shares memory
 * shares it with what its own epilogue reads. What it says of the sums (KContract.all) follows from
 * them alone, and is said once they are whole. */
#include "con.h"

static const KAccess *only_store(const ConPlan *p)
{
    const Kernel *k = p->k;
    const KAccess *store = NULL;
    for (Val v = k->con.e_from; v < k->con.e_to; v++) {
        const KInst *i = &k->inst.at[v];
        bool told = k->con.all != 0 && i->op != KI_STORE && i->op != KI_LOAD;
        if (i->op == KI_SUM || told)
            continue;
        if (i->op != KI_STORE || store != NULL || k->inst.at[i->a].op != KI_SUM)
            return NULL;
        store = &k->access.at[i->aux];
    }
    return store;
}

/* Its place is known before the sum. */
static bool by_indices(const ConPlan *p, const KAccess *a)
{
    for (int t = 0; t < a->at.n; t++)
        if (p->k->inst.at[a->at.t[t].v].op != KI_DIM)
            return false;
    return a->n_bounds == 0;
}

static int64_t pitch_of(const ConPlan *p, const KAccess *a)
{
    return p->out_rows.lane != 0 ? con_coef(&a->at, p->out_rows.lane) * p->es : 0;
}

bool con_stores_sums(const ConPlan *p)
{
    const KAccess *a = only_store(p);
    return a != NULL && by_indices(p, a);
}

void con_straight_plan(ConPlan *p)
{
    const KAccess *a = only_store(p);
    bool whole = p->row_reach == K_ALL && p->col_reach != K_ZERO && p->k_reach == K_ALL;
    bool tiles = !p->direct && !p->window.is && !p->turned && !p->sums && !p->pairs;
    if (!con_stores_sums(p) || !whole || !tiles || p->n_k == 0)
        return;
    const Walk *r = &p->out_rows, *c = &p->out_cols;
    p->straight = p->k->buf.at[a->buf].dtype == p->type && c->lane != 0 &&
                  (c->run == c->total || c->run == p->nr) && con_coef(&a->at, c->lane) == 1 &&
                  r->run == r->total && p->n_cols >= p->nr;
}

int con_narrow(const ConPlan *p)
{
    int64_t rest = p->n_cols % p->nr;
    bool narrow = p->straight && p->col_reach == K_ALL && rest > 0 && rest % p->vl == 0;
    return narrow ? (int)(rest / p->vl) : 0;
}

bool con_all_straight(const ConPlan *p)
{
    return p->straight && p->col_reach == K_ALL && (p->n_cols % p->nr == 0 || con_narrow(p) > 0);
}

Lv con_straight_at(Con *c, Lv row0, Lv col0, int64_t *pitch)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    const KAccess *a = only_store(p);
    Lv digit[K_MAX_DIMS];
    gen_scalar(&c->g);
    walk_decode(&p->out_rows, ir, row0, digit);
    walk_set(&p->out_rows, &c->g, digit);
    walk_decode(&p->out_cols, ir, col0, digit);
    walk_set(&p->out_cols, &c->g, digit);
    *pitch = pitch_of(p, a);
    return ir_at_byte(ir, c->g.buf[a->buf], ir_mul(ir, gen_affine(&c->g, &a->at), p->es));
}
