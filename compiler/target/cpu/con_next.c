/* What the next block of k is staged and packed from is asked for while the tiles of the block at
 * hand are computed. Gradients of a convolution's weights sum over images, a few to a block; all
 * channels of those lie in one piece of memory, and the next block's in the next one. The tiles of
 * a block share out its lines. */
#include <stdlib.h>
#include "con.h"

enum { LINE = 64 };

/* Elements from what an access meets in a block of k to what it meets in the next one, where each
 * of those is one piece of memory; else 0. */
static int64_t block_step(const ConPlan *p, const Side *s, const KAccess *a)
{
    int64_t covered = 1, step = 0, reach = 1;
    for (int d = s->k.n; d-- > 0 && step == 0;) {
        int64_t coef = con_coef(&a->at, s->k.dim[d]), extent = s->k.extent[d];
        int64_t n = p->kc / covered; /* values of this index in a block, if it is the slowest */
        if (p->kc % covered != 0 || (n < extent && extent % n != 0))
            return 0;
        if (n < extent)
            step = coef * n;
        reach += llabs(coef) * ((n < extent ? n : extent) - 1);
        covered *= extent;
    }
    for (int d = 0; d < s->free.n; d++)
        reach += llabs(con_coef(&a->at, s->free.dim[d])) * (s->free.extent[d] - 1);
    bool dense = step * 10 >= reach * 9 && reach * 10 >= step * 9;
    return dense ? step : 0;
}

/* Of a window's edges each line of terms of each offset asks, else every ASK_STEPS terms. */
static int64_t asks_of_tile(const ConPlan *p)
{
    const Edges *g = &p->window.edges;
    return g->is ? p->kc / g->line * g->offsets : p->kc / ASK_STEPS;
}

/* Lines of a load's piece that a tile asks for at once; 0: it is in no such pieces, or near. */
static int64_t lines_at_once(const ConPlan *p, const Side *s, Val load)
{
    const KAccess *a = &p->k->access.at[p->k->inst.at[load].aux];
    const KBuf *b = &p->k->buf.at[a->buf];
    int64_t size = dtype_bytes(b->dtype), asks = p->mc * p->nc * asks_of_tile(p);
    if (b->elems * size <= p->mach->l2_bytes / 4 || !con_of_dims(p->k, &a->at))
        return 0;
    return (block_step(p, s, a) * size + asks * LINE - 1) / (asks * LINE);
}

void con_next_plan(ConPlan *p)
{
    enum { MOST = 8 };
    bool all = p->row_reach == K_ALL && p->col_reach == K_ALL && p->k_reach == K_ALL;
    bool together = p->mc == p->row_panels && p->nc == p->col_panels; /* one block of results */
    if (!p->window.is || !all || !together || p->kc < ASK_STEPS || p->kc >= p->n_k ||
        p->leaf % p->kc != 0)
        return;
    const Side *side[] = {&p->rows, &p->cols};
    int n = 0;
    for (int s = 0; s < 2; s++)
        for (Val v = side[s]->from; v < side[s]->to && n < MAX_NEXT; v++) {
            bool load = p->k->inst.at[v].op == KI_LOAD;
            int64_t lines = load ? lines_at_once(p, side[s], v) : 0;
            if (lines == 0 || lines > MOST)
                continue;
            p->ask[ASK_NEXT + n] = (Ask){(int)lines, 1, CACHE_2, false};
            p->next[n++] = v;
        }
}

ConStream con_stream_next(Con *c, int i, Lv k, Lv tile)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    Val v = p->next[i];
    const Side *s = v >= p->rows.from && v < p->rows.to ? &p->rows : &p->cols;
    const KAccess *a = &p->k->access.at[p->k->inst.at[v].aux];
    int64_t size = dtype_bytes(p->k->buf.at[a->buf].dtype);
    int64_t at_once = (int64_t)p->ask[ASK_NEXT + i].n * LINE;
    Lv digit[K_MAX_DIMS];
    gen_scalar(&c->g);
    walk_decode(&s->k, ir, k, digit);
    walk_set(&s->k, &c->g, digit);
    walk_decode(&s->free, ir, ir_int(ir, 0), digit);
    walk_set(&s->free, &c->g, digit);
    Lv from = ir_mul(ir, tile, at_once * asks_of_tile(p));
    Lv at = ir_add(ir, ir_mul(ir, gen_affine(&c->g, &a->at), size), from);
    ConStream x = {ir_at_byte(ir, c->g.buf[a->buf], at), ir_int(ir, at_once), ir_int(ir, LINE)};
    return con_stream_if(c, con_less(c, from, ir_int(ir, block_step(p, s, a) * size)), &x);
}
