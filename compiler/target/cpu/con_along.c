/* Lanes along a batch index whose neighbours lie together in memory (channels that are last):
 * nothing is transposed. What lies within all bounds is staged, and given out, with no thought of
 * them. See con_lanes.c. */
#include "con.h"

/* ---- plan -------------------------------------------------------------------------------- */

static bool is_lane_run(const Kernel *k, const KInst *i, Val lane)
{
    int64_t c = con_coef(&k->access.at[i->aux].at, lane);
    return c == 1 || (c == 0 && i->op == KI_LOAD);
}

/* Every access of a section has its lanes side by side, or the same for all. */
static bool lies_along(const Kernel *k, Val from, Val to, Val lane)
{
    for (Val v = from; v < to; v++) {
        const KInst *i = &k->inst.at[v];
        if ((i->op == KI_LOAD || i->op == KI_STORE) && !is_lane_run(k, i, lane))
            return false;
    }
    return true;
}

/* ... or a few elements apart, as several results of a channel are. */
static bool lies_apart(const Kernel *k, Val from, Val to, Val lane)
{
    enum { MOST = 8 };
    for (Val v = from; v < to; v++) {
        const KInst *i = &k->inst.at[v];
        if (i->op != KI_LOAD && i->op != KI_STORE)
            continue;
        int64_t c = con_coef(&k->access.at[i->aux].at, lane), least = i->op == KI_STORE ? 1 : 0;
        if (c < least || c > MOST)
            return false;
    }
    return true;
}

static bool has(const KAff *x, Val v)
{
    return v != 0 && con_coef(x, v) != 0;
}

/* At place p of w, all other indices 0. */
static int64_t at_place(const KBound *b, const Slide *w, int64_t p)
{
    int64_t place = p + w->lowest, turned = w->t < 0 ? -place : place;
    return b->e.base + (w->s == 1 ? con_coef(&b->e, w->f) * place : con_coef(&b->e, w->d) * turned);
}

static bool is_within(const KBound *b, const Slide *w, int64_t p)
{
    int64_t x = at_place(b, w, p);
    return x >= b->lo && x < b->hi;
}

/* Cuts off the places that are outside. */
static void cut(const KBound *b, const Slide *w, Inner *in)
{
    while (in->from < in->to && !is_within(b, w, in->from))
        in->from++;
    while (in->from < in->to && !is_within(b, w, in->to - 1))
        in->to--;
}

/* The places where no bound of the section that moves with them can fail. */
void con_find_inner(const ConPlan *p, Lanes *l)
{
    const Kernel *k = p->k;
    l->in_x = (Inner){0, l->x.n};
    l->in_y = (Inner){0, l->y.n};
    l->n_sure = 0;
    const KBound *bound;
    for (int b = 0; (bound = con_bound(k, l->many.from, l->many.to, b)) != NULL; b++) {
        bool of_x = has(&bound->e, l->x.f) || has(&bound->e, l->x.d);
        bool of_y = has(&bound->e, l->y.f) || has(&bound->e, l->y.d);
        int others = bound->e.n;
        for (int t = 0; t < bound->e.n; t++) {
            Val of = bound->e.t[t].v;
            others -= of == l->x.f || of == l->x.d || of == l->y.f || of == l->y.d;
        }
        if (!of_x && !of_y)
            continue;
        if ((of_x && of_y) || others > 0 || l->n_sure == MAX_SURE || l->split > 0) {
            l->in_x.to = l->in_y.to = l->n_sure = 0;
            return;
        }
        cut(bound, of_x ? &l->x : &l->y, of_x ? &l->in_x : &l->in_y);
        l->sure[l->n_sure++] = bound;
    }
}

/* A factor without free indices that is read where it lies. */
static void find_one(const ConPlan *p, Lanes *l)
{
    const Kernel *k = p->k;
    const KInst *i = &k->inst.at[l->one.value];
    if (i->op != KI_LOAD || i->dtype != p->type || con_open_bounds(k, &l->one) > 0 ||
        l->extent % p->vl != 0 || l->x.d == 0 || k->inst.at[l->x.d].imm.i != l->x.n_d)
        return;
    const KAff *at = &k->access.at[i->aux].at;
    for (int t = 0; t < at->n; t++)
        if (k->inst.at[at->t[t].v].op != KI_DIM)
            return;
    if (con_coef(at, l->lane) != 1)
        return;
    l->one_along = true;
    l->one_x = con_coef(at, l->x.d);
    l->one_y = l->y.d != 0 ? con_coef(at, l->y.d) : 0;
}

/* What a section meets is too much to be in the second cache still, among what kernels before this
 * one have met: lines are asked for ahead. */
static bool is_far(const ConPlan *p, Val from, Val to)
{
    int64_t bytes = 0;
    for (Val v = from; v < to; v++) {
        const KInst *i = &p->k->inst.at[v];
        if (i->op == KI_LOAD || i->op == KI_STORE)
            bytes += p->k->buf.at[p->k->access.at[i->aux].buf].elems * p->es;
    }
    return bytes > p->mach->l2_bytes / 4;
}

void con_along_plan(const ConPlan *p, Lanes *l)
{
    const KContract *c = &p->k->con;
    l->far = is_far(p, l->many.from, l->many.to);
    l->out_far = is_far(p, c->e_from, c->e_to);
    l->many_along = lies_along(p->k, l->many.from, l->many.to, l->lane);
    l->out_apart = !lies_along(p->k, c->e_from, c->e_to, l->lane);
    l->out_along = !l->out_apart || lies_apart(p->k, c->e_from, c->e_to, l->lane);
    if (l->many_along)
        con_find_inner(p, l);
    find_one(p, l);
}

/* ---- code -------------------------------------------------------------------------------- */

static Lv vectors_on(Con *c, Lv at, Lv vectors)
{
    return ir_at_byte(c->ir, at, ir_mul(c->ir, vectors, (int64_t)c->p->vl * c->p->es));
}

static void begin_lanes(Con *c, const LanesPiece *at)
{
    const Lanes *l = c->p->lanes;
    gen_vector(&c->g, c->p->vl, l->lane, l->extent % c->p->vl == 0 ? NULL : at->live);
}

/* Places [from, to) of a line. */
static void stage_run(Con *c, const LanesPiece *at, Lv y, int64_t from, int64_t to, Lv dst)
{
    Ir *ir = c->ir;
    Lanes *l = c->p->lanes;
    if (from >= to)
        return;
    IrLoop x = ir_loop(ir, ir_int(ir, from), ir_int(ir, to), 1, false);
    begin_lanes(c, at);
    con_lanes_set(c, at, y, x.i);
    c->g.value[l->lane] = at->lane0;
    if (l->far && l->pairs == 2)
        con_prefetch_section(c, l->many.from, l->many.to, l->y.s == 1 ? l->y.f : l->y.d, 1);
    con_store_packed(c, con_value(c, &l->many), dst, ir_mul(ir, x.i, c->p->vl));
    gen_scalar(&c->g);
    ir_loop_end(ir, &x);
}

/* Line y, to dst: outside of all bounds, or not. */
void con_along_stage(Con *c, const LanesPiece *at, Lv y, Lv dst)
{
    Ir *ir = c->ir;
    Lanes *l = c->p->lanes;
    const Inner *in_x = &l->in_x, *in_y = &l->in_y;
    if (in_x->from >= in_x->to || in_y->from >= in_y->to) {
        stage_run(c, at, y, 0, l->x.n, dst);
        return;
    }
    Lv past = LLVMBuildSub(ir->b, y, ir_int(ir, in_y->from), "");
    Lv lines = ir_int(ir, in_y->to - in_y->from);
    IrIf f = ir_if(ir, LLVMBuildICmp(ir->b, LLVMIntULT, past, lines, ""));
    stage_run(c, at, y, 0, in_x->from, dst);
    c->g.sure = l->sure;
    c->g.n_sure = l->n_sure;
    stage_run(c, at, y, in_x->from, in_x->to, dst);
    c->g.n_sure = 0;
    stage_run(c, at, y, in_x->to, l->x.n, dst);
    ir_else(ir, &f);
    stage_run(c, at, y, 0, l->x.n, dst);
    ir_end_if(ir, &f);
}

/* Sets the indices of the epilogue to a column. */
static void set_result(Con *c, const LanesPiece *at, Lv column)
{
    const ConPlan *p = c->p;
    Lv digit[K_MAX_DIMS];
    walk_decode(&p->out_cols, c->ir, column, digit);
    walk_set(&p->out_cols, &c->g, digit);
    walk_decode(&p->out_rows, c->ir, at->each, digit);
    walk_set(&p->out_rows, &c->g, digit);
    c->g.value[p->lanes->lane] = at->lane0;
}

/* Asks for what the epilogue of n results from column `first` on will meet. */
void con_along_ask(Con *c, const LanesPiece *at, Lv first, int64_t n)
{
    Ir *ir = c->ir;
    const KContract *k = &c->p->k->con;
    IrLoop i = ir_loop(ir, ir_int(ir, 0), ir_int(ir, n), 1, false);
    set_result(c, at, ir_add(ir, first, i.i));
    con_prefetch_section(c, k->e_from, k->e_to, c->p->lanes->lane, 0);
    ir_loop_end(ir, &i);
}

/* The epilogue of n results from column `first` on, which lie at `from`. */
void con_along_put(Con *c, const LanesPiece *at, Lv from, Lv first, Lv n)
{
    Ir *ir = c->ir;
    IrLoop i = ir_loop(ir, ir_int(ir, 0), n, 1, false);
    begin_lanes(c, at);
    set_result(c, at, ir_add(ir, first, i.i));
    con_section(c, vectors_on(c, from, i.i));
    gen_scalar(&c->g);
    ir_loop_end(ir, &i);
}

/* Where the terms of a block begin, of a factor that is read where it lies. */
Lv con_along_one(Con *c, const LanesPiece *at)
{
    const Lanes *l = c->p->lanes;
    const KAccess *a = &c->g.k->access.at[c->g.k->inst.at[l->one.value].aux];
    walk_set(&l->blocks, &c->g, at->block);
    c->g.value[l->x.d] = ir_int(c->ir, 0);
    if (l->pairs == 2)
        c->g.value[l->y.d] = at->term0;
    c->g.value[l->lane] = at->lane0;
    return ir_at_byte(c->ir, c->g.buf[a->buf], ir_mul(c->ir, gen_affine(&c->g, &a->at), c->p->es));
}
