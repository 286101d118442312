/* Which loops move along the lanes: the cheapest choice by a count of vector and
 * scalar operations, one loop at most on each path from the root. */
#include "tree.h"

typedef struct Cost {
    const Tree *t;
    const Machine *m;
    Val lane; /* 0: scalar code */
    int width;
    bool masked; /* some lanes are dead */
} Cost;

int64_t tree_coef(const KAff *x, Val v)
{
    for (int i = 0; i < x->n; i++)
        if (x->t[i].v == v)
            return x->t[i].coef;
    return 0;
}

/* A term other than the lane's own index varies with the lane. */
static bool irregular(const Tree *t, const KAff *x, Val lane)
{
    for (int i = 0; i < x->n; i++)
        if (x->t[i].v != lane && tree_depends(t, x->t[i].v, lane))
            return true;
    return false;
}

static double registers(const Cost *c, DType t)
{
    int bytes = t == F64 || t == I64 ? 8 : 4; /* small types are widened */
    return (c->width * bytes + c->m->vec_bytes - 1) / c->m->vec_bytes;
}

/* A variable goes from one iteration of the loop to the next. */
static bool carries(const Tree *t, Val loop)
{
    for (Val v = 1; v < (Val)t->k->inst.n; v++) {
        const KInst *i = &t->k->inst.at[v];
        if (i->op == KI_SET && tree_depends(t, i->b, loop) && !tree_depends(t, i->a, loop))
            return true;
    }
    return false;
}

/* Running sums along a line: one row at a time is read as quickly as memory gives it, and the rows
 * of several lanes drive each other's lines out of the caches. */
static bool runs_along(const Tree *t, const KAff *x)
{
    for (int i = 0; i < x->n; i++) {
        int64_t c = x->t[i].coef;
        Val loop = x->t[i].v;
        if ((c == 1 || c == -1) && t->k->inst.at[loop].op == KI_SEQ && carries(t, loop))
            return true;
    }
    return false;
}

static double access_cost(const Cost *c, const KAccess *a, bool store)
{
    DType t = c->t->k->buf.at[a->buf].dtype;
    double bounds = 0.5 * a->n_bounds, each = c->width * (1 + bounds);
    if (c->lane == 0)
        return 1 + bounds;
    bool masks = dtype_bytes(t) >= 4 ? c->m->masked : c->m->masked_small;
    if (c->masked || a->n_bounds > 0)
        each *= 1.5;
    int64_t stride = tree_coef(&a->at, c->lane);
    if (irregular(c->t, &a->at, c->lane))
        return 4 * each;
    if (stride == 0 && !store)
        return 1 + bounds;
    if (stride == 0 && c->t->k->buf.at[a->buf].mode == K_LOCAL) /* each lane's own, side by side */
        return registers(c, t) + bounds;
    if (stride == 1 && (masks || !c->masked))
        return registers(c, t) * ((store ? 1.5 : 1.0) + bounds + c->masked);
    if (stride == 2 && !store && !c->masked && a->n_bounds == 0 && dtype_bytes(t) >= 4)
        return registers(c, t) * (4 + bounds);
    if (stride == 2 && machine_masks_pairs(c->m, t, c->width))
        return 6 + bounds;
    return (runs_along(c->t, &a->at) ? 5 : 2.5) * each;
}

/* One link of the chain along the lanes, and another one across them: loop.c. */
static bool is_tiled(const Cost *c, const KInst *load)
{
    bool links = false;
    for (int i = 0; i < c->t->n_chain; i++)
        links = links || c->t->chain[i]->v == c->lane;
    for (int i = 0; links && i < c->t->n_chain; i++)
        if (tree_is_tile(c->t, load, c->lane, c->t->chain[i]->v) &&
            c->t->k->inst.at[c->t->chain[i]->v].imm.i >= TILE_ROWS)
            return true;
    return false;
}

static double op_weight(KOp op)
{
    switch (op) {
    case KI_DIV:
    case KI_REM:
    case KI_SQRT:
        return 5;
    case KI_CAST:
    case KI_MULHI:
        return 2;
    default:
        return 1;
    }
}

static double inst_cost(const Cost *c, Val v)
{
    const KInst *i = &c->t->k->inst.at[v];
    if (c->lane != 0 && is_tiled(c, i))
        return 6 * registers(c, (DType)i->dtype);
    if (i->op == KI_LOAD || i->op == KI_STORE)
        return access_cost(c, &c->t->k->access.at[i->aux], i->op == KI_STORE);
    if (c->lane == 0 || !tree_depends(c->t, v, c->lane))
        return op_weight((KOp)i->op);
    if (i->op == KI_INTO && c->t->red_of[v] != 0 && c->t->red_of[v] != c->lane)
        return 4 * registers(c, (DType)i->dtype); /* lanes of vectors, in memory */
    return op_weight((KOp)i->op) * registers(c, (DType)i->dtype);
}

static double body_cost(const Cost *c, const Node *in)
{
    double sum = 0;
    for (const Node *n = in->first; n != NULL; n = n->next)
        sum += n->loop ? (double)c->t->k->inst.at[n->v].imm.i * (1 + body_cost(c, n))
                       : inst_cost(c, n->v);
    return sum;
}

/* ---- what may be a vector ------------------------------------------------------- */

typedef struct Rules {
    const Tree *t;
    const Node *loop;
    int lanes[2];     /* INTO of accumulators with 8 and with 16 lanes */
    bool nested[2];   /* one of them in an inner loop, or beside another one */
    bool wide_values; /* doubles */
    int work;         /* operations in the loop */
    bool ok;
} Rules;

static bool opened_inside(const Rules *r, const Node *in, Val v)
{
    for (const Node *n = in->first; n != NULL; n = n->next)
        if (n->loop ? opened_inside(r, n, v) : n->v == v)
            return true;
    return false;
}

/* A store in a RED loop: iterations must be independent all the same. */
static bool free_of_carry(const Rules *r, const KAccess *store, const Node *in)
{
    if (tree_coef(&store->at, r->loop->v) == 0 || irregular(r->t, &store->at, r->loop->v))
        return false;
    for (const Node *n = in->first; n != NULL; n = n->next) {
        const KInst *i = &r->t->k->inst.at[n->v];
        if (n->loop) {
            if (!free_of_carry(r, store, n))
                return false;
        } else if (i->op == KI_LOAD || i->op == KI_STORE) {
            const KAccess *a = &r->t->k->access.at[i->aux];
            if (a->buf == store->buf && !k_aff_equal(&a->at, &store->at))
                return false;
        }
    }
    return true;
}

/* Another INTO feeds the same accumulator from here. */
static bool feeds_twice(const Rules *r, const Node *in, Val into)
{
    const KInst *k = r->t->k->inst.at;
    for (const Node *n = in->first; n != NULL; n = n->next) {
        if (n->loop ? feeds_twice(r, n, into)
                    : n->v != into && k[n->v].op == KI_INTO && k[n->v].a == k[into].a)
            return true;
    }
    return false;
}

/* All lanes would store to one element of a LOCAL buffer: only those of the chain have their own.
 */
static bool shares_local(const Rules *r, const KInst *store)
{
    const Tree *t = r->t;
    const KAccess *a = &t->k->access.at[store->aux];
    if (t->k->buf.at[a->buf].mode != K_LOCAL || tree_coef(&a->at, r->loop->v) != 0)
        return false;
    for (int i = 0; i < t->n_chain; i++)
        if (t->chain[i] == r->loop)
            return false;
    return true;
}

static void check_inst(Rules *r, const Node *n)
{
    const Tree *t = r->t;
    const KInst *i = &t->k->inst.at[n->v];
    bool red = t->k->inst.at[r->loop->v].op == KI_RED;
    r->work++;
    r->wide_values |= i->dtype == F64;
    if (i->op == KI_SET && !opened_inside(r, r->loop, i->a))
        r->ok = false;
    if (i->op == KI_STORE && red && !free_of_carry(r, &t->k->access.at[i->aux], r->loop))
        r->ok = false;
    if (i->op == KI_STORE && shares_local(r, i))
        r->ok = false;
    if (i->op != KI_INTO || opened_inside(r, r->loop, i->a))
        return;
    if (t->red_of[n->v] != r->loop->v)
        r->ok = false;
    int many = k_lanes((DType)i->dtype) == 16;
    r->lanes[many]++;
    r->nested[many] |= n->parent != r->loop || feeds_twice(r, r->loop, n->v);
}

static void check_body(Rules *r, const Node *in)
{
    for (const Node *n = in->first; n != NULL && r->ok; n = n->next) {
        if (n->loop)
            check_body(r, n);
        else
            check_inst(r, n);
    }
}

/* Registers run out in long bodies: half as many lanes, and no spills. */
enum { LONG_BODY = 28 };

static int natural_width(const Rules *r, const Machine *m)
{
    int width = m->vec_bytes == 16 ? 8 : 16;
    if (m->vec_bytes == 32 && r->work > LONG_BODY)
        width = 8;
    return r->wide_values ? width / 2 : width;
}

/* Lanes of `loop` as a vector, or 0. */
static int lanes_for(const Tree *t, const Machine *m, const Node *loop)
{
    const KInst *i = &t->k->inst.at[loop->v];
    Rules r = {.t = t, .loop = loop, .ok = i->op != KI_SEQ && i->imm.i > 1};
    if (!r.ok)
        return 0;
    check_body(&r, loop);
    if (!r.ok)
        return 0;
    if (i->op == KI_PAR || r.lanes[0] + r.lanes[1] == 0)
        return natural_width(&r, m);
    if (r.lanes[1] > 0 && r.nested[0]) /* two lengths of lanes, in different orders */
        return 0;
    return r.lanes[1] > 0 ? 16 : 8;
}

/* ---- the choice -------------------------------------------------------------------- */

static void clear(Node *in)
{
    for (Node *n = in->first; n != NULL; n = n->next) {
        n->width = 0;
        if (n->loop)
            clear(n);
    }
}

/* Cycles of the loop along `width` lanes. */
static double vector_cost(const Cost *c, const Node *loop, int64_t extent, int width)
{
    Cost lanes = {c->t, c->m, loop->v, width, false};
    double cycles = (double)(extent / width) * (1 + body_cost(&lanes, loop));
    lanes.masked = true;
    if (extent % width != 0)
        cycles += 2 + body_cost(&lanes, loop);
    return cycles;
}

/* ---- columns ------------------------------------------------------------------------ */

/* What walks down columns of memory, line after line. */
typedef struct Down {
    const Tree *t;
    Val lane;
    int seq, work; /* loops down, and the most instructions of one: what is around them runs once */
    bool plain;    /* lanes lie side by side, in f32, and nothing else is a loop */
} Down;

static void look_down(Down *d, const Node *in)
{
    const Kernel *k = d->t->k;
    int work = 0;
    for (const Node *n = in->first; n != NULL; n = n->next) {
        const KInst *i = &k->inst.at[n->v];
        if (n->loop) {
            d->seq += i->op == KI_SEQ && i->imm.i > 4;
            d->plain = d->plain && i->op == KI_SEQ;
            look_down(d, n);
            continue;
        }
        work++;
        if (i->op != KI_LOAD && i->op != KI_STORE)
            continue;
        const KAccess *a = &k->access.at[i->aux];
        int64_t c = tree_coef(&a->at, d->lane);
        d->plain = d->plain && i->dtype == F32 && k->buf.at[a->buf].mode != K_LOCAL &&
                   (c == 0 || c == 1) && !irregular(d->t, &a->at, d->lane);
    }
    if (in->v != d->lane && work > d->work)
        d->work = work;
}

/* Sums down columns of a matrix meet a page of memory in each line: they take more of the line, as
 * many vectors as a short body has registers for. */
static int width_down(const Tree *t, const Machine *m, const Node *loop, int width)
{
    enum { VECTORS = 4, SHORT_BODY = 24 };
    int wide = VECTORS * m->vec_bytes / dtype_bytes(F32);
    const KInst *i = &t->k->inst.at[loop->v];
    Down d = {.t = t, .lane = loop->v, .plain = i->op == KI_PAR && i->reach == K_ALL};
    look_down(&d, loop);
    bool pays = d.plain && d.seq > 0 && d.work <= SHORT_BODY && m->n_vregs >= 32;
    return pays && wide > width && i->imm.i % wide == 0 ? wide : width;
}

/* Cycles of one run of `loop`; sets the widths below and of itself. */
static double choose(const Cost *c, Node *loop)
{
    double best = 0;
    for (Node *n = loop->first; n != NULL; n = n->next)
        best += n->loop ? choose(c, n) : inst_cost(c, n->v);
    if (loop->v == 0)
        return best;
    const KInst *i = &c->t->k->inst.at[loop->v];
    best = (double)i->imm.i * (1 + best);
    int width = lanes_for(c->t, c->m, loop), least = i->op == KI_PAR ? 4 : width;
    int chosen = 0;
    for (; width >= least && width > 1; width /= 2) {
        double cycles = vector_cost(c, loop, i->imm.i, width);
        if (cycles < best) {
            best = cycles;
            chosen = width;
        }
    }
    if (chosen > 0) {
        clear(loop);
        loop->width = width_down(c->t, c->m, loop, chosen);
    }
    return best;
}

void tree_choose_vectors(Tree *t, const Machine *m)
{
    Cost c = {t, m, 0, 1, false};
    t->cost = choose(&c, t->root);
}
