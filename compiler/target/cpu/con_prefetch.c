/* Asking for memory before it is needed. */
#include "con.h"

void con_prefetch(Ir *ir, Lv at, ConCache cache, bool write)
{
    enum { DATA = 1, NEAREST = 3 };
    Lv arg[] = {at, ir_int32(ir, write), ir_int32(ir, cache == CACHE_1 ? NEAREST : NEAREST - 1),
                ir_int32(ir, DATA)};
    ir_intrinsic(ir, "llvm.prefetch", &ir->ptr, 1, arg, 4);
}

/* Its address is known where indices are set, and moves with one of them. */
static bool follows(const Kernel *k, const KAff *x, Val index)
{
    return con_of_dims(k, x) && con_coef(x, index) != 0;
}

/* Accesses of a section that do. */
static int moving(const Kernel *k, KOp op, Val from, Val to, Val index)
{
    int n = 0;
    for (Val v = from; v < to; v++) {
        const KInst *i = &k->inst.at[v];
        n += i->op == op && follows(k, &k->access.at[i->aux].at, index);
    }
    return n;
}

/* Of an access whose address moves with the index. */
static void prefetch_access(Con *c, const KAccess *a, Val index, int64_t ahead, bool write)
{
    Ir *ir = c->ir;
    const Kernel *k = c->g.k;
    if (!follows(k, &a->at, index))
        return;
    int bytes = dtype_bytes(k->buf.at[a->buf].dtype);
    Lv at = ir_add(ir, gen_affine(&c->g, &a->at), ir_int(ir, ahead * con_coef(&a->at, index)));
    con_prefetch(ir, ir_at_byte(ir, c->g.buf[a->buf], ir_mul(ir, at, bytes)), CACHE_1, write);
}

void con_prefetch_section(Con *c, Val from, Val to, Val index, int64_t ahead)
{
    const Kernel *k = c->g.k;
    for (Val v = from; v < to; v++) {
        const KInst *i = &k->inst.at[v];
        if (i->op == KI_LOAD || i->op == KI_STORE)
            prefetch_access(c, &k->access.at[i->aux], index, ahead, i->op == KI_STORE);
    }
}

void con_prefetch_along(Con *c, const Side *s, Val lane, Val index)
{
    const Kernel *k = c->g.k;
    for (Val v = s->from; v < s->to; v++) {
        const KInst *i = &k->inst.at[v];
        if (i->op == KI_LOAD && con_coef(&k->access.at[i->aux].at, lane) != 0)
            prefetch_access(c, &k->access.at[i->aux], index, 1, false);
    }
}

/* An epilogue meets lines of far memory. Parts of them, where rows of the tile are the columns of
 * what is stored, are worth an instruction each if the tile takes long enough. Whole ones are where
 * sums are short and the second cache holds more than their operands: elsewhere products got
 * slower. */
bool con_asks_ahead(const ConPlan *p)
{
    enum { SHORT = 512 };
    const KContract *c = &p->k->con;
    Val lane = p->turned ? p->out_rows.lane : p->out_cols.lane;
    int n = moving(p->k, KI_LOAD, c->e_from, c->e_to, lane) +
            moving(p->k, KI_STORE, c->e_from, c->e_to, lane);
    int64_t lines = p->turned ? p->nr : p->mr * ((p->nr * p->es + 63) / 64);
    int64_t cycles = p->n_k * p->mr * p->nv / 2, asking = n * lines * 3 / 2;
    bool far = n * p->n_rows * p->n_cols * p->n_batch * p->es > p->mach->l2_bytes;
    bool pays = p->turned || (p->mach->l2_bytes >= CON_LARGE_CACHE && p->n_k <= SHORT &&
                              !p->direct && !p->window.is && !p->pairs);
    return pays && far && !p->sums && !p->chains && asking * 8 <= cycles;
}
