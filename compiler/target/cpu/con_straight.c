/* Where an epilogue does no more than store sums, or sums and what it reads beside them, each row
 * of a tile side by side, whole tiles are summed right there: there is no way by scratch, and
 * between blocks of k the sums rest where they will be. Nothing else reads or writes those elements
 * meanwhile: an output that shares memory shares it with what its own epilogue reads, element by
 * element, and what is added has to be one block's. What it says of the sums (KContract.all)
 * follows from them alone, and is said once they are whole.
 *
 * An epilogue that does more can have its sums rest there, too, and make of them what it stores
 * once they are whole: a layer's bias and activation. What it reads may then share no memory with
 * what it stores, whose elements are gone by then. */
#include "con.h"

typedef struct Stored {
    const KAccess *to;   /* NULL: the epilogue does more */
    const KAccess *plus; /* what is added; NULL: nothing */
} Stored;

static bool adds_to_sum(const Kernel *k, const KInst *add, Val load)
{
    Val other = add->a == load ? add->b : add->a;
    return load != 0 && (add->a == load || add->b == load) && k->inst.at[other].op == KI_SUM;
}

static Stored stored_of(const ConPlan *p)
{
    const Kernel *k = p->k;
    Stored s = {NULL, NULL};
    Val load = 0, sum = 0; /* what is loaded; the sum of both */
    for (Val v = k->con.e_from; v < k->con.e_to; v++) {
        const KInst *i = &k->inst.at[v];
        bool told = k->con.all != 0 && i->op != KI_STORE && i->op != KI_LOAD;
        if (i->op == KI_SUM || told)
            continue;
        if (i->op == KI_LOAD && k->con.all == 0 && load == 0 && s.to == NULL) {
            load = v;
            s.plus = &k->access.at[i->aux];
        } else if (i->op == KI_ADD && sum == 0 && adds_to_sum(k, i, load)) {
            sum = v;
        } else if (i->op == KI_STORE && s.to == NULL &&
                   (load != 0 ? i->a == sum : k->inst.at[i->a].op == KI_SUM)) {
            s.to = &k->access.at[i->aux];
        } else {
            return (Stored){NULL, NULL};
        }
    }
    return s;
}

/* Its place is known before the sum. */
static bool by_indices(const ConPlan *p, const KAccess *a)
{
    return a->n_bounds == 0 && con_of_dims(p->k, &a->at);
}

bool con_stores_sums(const ConPlan *p)
{
    Stored s = stored_of(p);
    return s.to != NULL && s.plus == NULL && by_indices(p, s.to);
}

/* Each of its elements is read for several results: none of those can be stored in its place. */
static bool is_shared(const ConPlan *p, const KAccess *a)
{
    const KContract *c = &p->k->con;
    bool shared = false;
    for (int role = K_B; role <= K_N; role++)
        for (int d = 0; d < c->n[role]; d++)
            shared = shared || (p->k->inst.at[c->dim[role][d]].imm.i > 1 &&
                                con_coef(&a->at, c->dim[role][d]) == 0);
    return shared && by_indices(p, a);
}

/* A vector of it is one of a tile's rows. */
static bool beside(const ConPlan *p, const KAccess *a)
{
    return by_indices(p, a) && p->k->buf.at[a->buf].dtype == p->type &&
           con_coef(&a->at, p->out_cols.lane) == 1;
}

static bool reaches_all(const ConPlan *p)
{
    return p->col_reach == K_ALL && p->row_reach == K_ALL;
}

const KAccess *con_rests_in(const ConPlan *p)
{
    const Kernel *k = p->k;
    const KAccess *in = NULL;
    for (Val v = k->con.e_from; v < k->con.e_to; v++) {
        const KInst *i = &k->inst.at[v];
        const KAccess *a = i->op == KI_LOAD || i->op == KI_STORE ? &k->access.at[i->aux] : NULL;
        if (i->op == KI_LOAD && !is_shared(p, a))
            return NULL;
        if (i->op == KI_STORE && in == NULL && beside(p, a))
            in = a;
    }
    return reaches_all(p) ? in : NULL;
}

void con_straight_plan(ConPlan *p)
{
    Stored s = stored_of(p);
    const Walk *r = &p->out_rows, *c = &p->out_cols;
    bool whole = p->row_reach != K_ZERO && p->col_reach != K_ZERO && p->k_reach == K_ALL;
    bool tiles = !p->direct && !p->window.is && !p->turned && !p->sums && !p->pairs;
    bool lines = (c->run == c->total || c->run == p->nr) && r->run == r->total;
    if (!whole || !tiles || !lines || p->n_k == 0 || c->lane == 0 || p->n_cols < p->nr)
        return;
    bool stores = s.to != NULL && beside(p, s.to), alone = stores && s.plus == NULL;
    p->plus = stores && !alone && beside(p, s.plus) && !p->chains;
    p->finishes = !alone && p->chains && con_rests_in(p) != NULL;
    p->straight = alone || p->plus || p->finishes;
}

int con_narrow(const ConPlan *p)
{
    int64_t rest = p->n_cols % p->nr;
    return p->straight && reaches_all(p) && rest > 0 && rest % p->vl == 0 ? (int)(rest / p->vl) : 0;
}

bool con_all_straight(const ConPlan *p)
{
    return p->straight && reaches_all(p) && (p->n_cols % p->nr == 0 || con_narrow(p) > 0);
}

bool con_rests_once(const ConPlan *p)
{
    return p->straight && reaches_all(p);
}

static Lines lines_of(Con *c, const KAccess *a)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    int64_t pitch = p->out_rows.lane != 0 ? con_coef(&a->at, p->out_rows.lane) * p->es : 0;
    Lv first = ir_mul(ir, gen_affine(&c->g, &a->at), p->es);
    return (Lines){ir_at_byte(ir, c->g.buf[a->buf], first), pitch};
}

Lines con_straight_at(Con *c, Lv row0, Lv col0, Lines *plus)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    Stored s = stored_of(p);
    Lv digit[K_MAX_DIMS];
    gen_scalar(&c->g);
    walk_decode(&p->out_rows, ir, row0, digit);
    walk_set(&p->out_rows, &c->g, digit);
    walk_decode(&p->out_cols, ir, col0, digit);
    walk_set(&p->out_cols, &c->g, digit);
    if (p->plus)
        *plus = lines_of(c, s.plus);
    return lines_of(c, p->finishes ? con_rests_in(p) : s.to);
}
