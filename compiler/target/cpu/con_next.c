/* What is staged and packed next is asked for while the tiles of the block at hand are computed.
 *
 * Gradients of a convolution's weights sum over images, a few to a block of k; all channels of
 * those lie in one piece of memory, and the next block's in the next one. The tiles of a block
 * share out its lines.
 *
 * Convolutions whose columns, or rows, are read where their lines are staged (con_stage.c) meet
 * some lines of all channels at a time. Each of their panels asks for those that it would need were
 * it as many lines further on as are staged at a time; tiles of a panel of columns share out the
 * channels. */
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
static int64_t lines_of_block(const ConPlan *p, const Side *s, Val load)
{
    const KAccess *a = &p->k->access.at[p->k->inst.at[load].aux];
    const KBuf *b = &p->k->buf.at[a->buf];
    int64_t size = dtype_bytes(b->dtype), asks = p->mc * p->nc * asks_of_tile(p);
    if (b->elems * size <= p->mach->l2_bytes / 4 || !con_of_dims(p->k, &a->at))
        return 0;
    return (block_step(p, s, a) * size + asks * LINE - 1) / (asks * LINE);
}

static int64_t ceil_div(int64_t x, int64_t y)
{
    return (x + y - 1) / y;
}

/* ---- lines that are staged next ------------------------------------------------------------ */

enum { MOST = 8 }; /* lines at once */

/* The side whose lines are staged some at a time, for all k, which are channels and a window that
 * is smaller than an image; NULL: none. */
static const Side *lines_side(const ConPlan *p)
{
    const Side *s = p->direct ? &p->cols : &p->rows;
    const Stage *g = &s->stage;
    bool window = p->window.is && p->window.staged && !p->window.edges.is;
    bool staged = p->direct ? p->mc == p->row_panels : window;
    bool all = p->row_reach == K_ALL && p->col_reach == K_ALL && p->k_reach == K_ALL;
    bool is = staged && all && p->kc == p->n_k && g->pairs == 2 && g->k_pairs == 2 && s->k.n == 3 &&
              g->y.n_d < g->y.n_f && g->x.n_d < g->x.n_f;
    return is ? s : NULL;
}

/* Tiles that share out the channels of a panel's lines: of columns; each panel of rows has one. */
static int64_t tiles_of_panel(const ConPlan *p)
{
    return p->direct ? p->row_panels : 1;
}

/* Lines of memory of a channel that a panel meets; 0: it meets other ones than those before, or
 * near ones. */
static int64_t lines_of_panel(const ConPlan *p, const Side *s, Val load)
{
    const KAccess *a = &p->k->access.at[p->k->inst.at[load].aux];
    const KBuf *b = &p->k->buf.at[a->buf];
    int64_t size = dtype_bytes(b->dtype), line = con_coef(&a->at, s->stage.y.f);
    if (b->elems * size <= p->mach->l2_bytes / 4 || !con_of_dims(p->k, &a->at) || line <= 0 ||
        con_coef(&a->at, s->stage.x.f) == 0 || con_coef(&a->at, s->k.dim[0]) == 0)
        return 0;
    return p->direct ? ceil_div(line * size * p->nr, p->padded * LINE)
                     : ceil_div(line * size * p->mr, s->stage.x.n_f * LINE);
}

static void plan_lines(ConPlan *p, const Side *s)
{
    int64_t asks = tiles_of_panel(p) * ceil_div(p->n_k, ASK_STEPS);
    int64_t times = ceil_div(s->k.extent[0], asks);
    int n = 0;
    for (Val v = s->from; v < s->to && n < MAX_NEXT; v++) {
        int64_t lines = p->k->inst.at[v].op == KI_LOAD ? lines_of_panel(p, s, v) : 0;
        if (lines == 0 || lines * times > MOST)
            continue;
        p->ask[ASK_NEXT + n] = (Ask){(int)lines, (int)times, CACHE_2, false};
        p->next[n++] = v;
    }
}

/* The first of the side's free indices that are met as many lines further on as are staged at a
 * time. *some: i1, whether there are any. */
static Lv further_on(Con *c, Lv row_panel, Lv col_panel, Lv *some)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    if (!p->direct) {
        Lv panel = ir_add(ir, row_panel, ir_int(ir, p->mc)), none;
        *some = con_less(c, panel, ir_int(ir, p->row_panels));
        return con_row_of(c, panel, &none);
    }
    const Stage *g = &p->cols.stage;
    int64_t lines = g->rows > g->y.s ? g->rows / g->y.s : 1;
    Lv col = ir_add(ir, ir_mul(ir, col_panel, p->nr), ir_int(ir, lines * p->padded)), in_line;
    *some = con_less(c, col, ir_int(ir, p->n_cols));
    return con_line(c, col, &in_line);
}

static ConStream stream_lines(Con *c, int i, const ConAsker *t)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    const Side *s = lines_side(p);
    const KAccess *a = &p->k->access.at[p->k->inst.at[p->next[i]].aux];
    int64_t size = dtype_bytes(p->k->buf.at[a->buf].dtype);
    int64_t asked = ceil_div(p->n_k, ASK_STEPS) * p->ask[ASK_NEXT + i].times; /* by a tile */
    Lv digit[K_MAX_DIMS], some, channel = ir_int(ir, 0);
    if (tiles_of_panel(p) > 1)
        channel = ir_mul(ir, t->row_panel, asked);
    gen_scalar(&c->g);
    walk_decode(&s->free, ir, further_on(c, t->row_panel, t->col_panel, &some), digit);
    walk_set(&s->free, &c->g, digit);
    Lv middle[] = {channel, ir_int(ir, s->k.extent[1] / 2), ir_int(ir, s->k.extent[2] / 2)};
    walk_set(&s->k, &c->g, middle);
    Lv at = ir_mul(ir, gen_affine(&c->g, &a->at), size);
    ConStream x = {ir_at_byte(ir, c->g.buf[a->buf], at),
                   ir_int(ir, con_coef(&a->at, s->k.dim[0]) * size), ir_int(ir, LINE)};
    Lv mine = con_less(c, channel, ir_int(ir, s->k.extent[0]));
    if (!p->direct) /* its other tiles meet the same rows */
        mine = LLVMBuildICmp(ir->b, LLVMIntEQ, t->col_panel, t->col_from, "");
    return con_stream_if(c, LLVMBuildAnd(ir->b, some, mine, ""), &x);
}

/* ---- the next block of k ------------------------------------------------------------------- */

void con_next_plan(ConPlan *p)
{
    const Side *lines = lines_side(p);
    if (lines != NULL) {
        plan_lines(p, lines);
        return;
    }
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
            int64_t lines = load ? lines_of_block(p, side[s], v) : 0;
            if (lines == 0 || lines > MOST)
                continue;
            p->ask[ASK_NEXT + n] = (Ask){(int)lines, 1, CACHE_2, false};
            p->next[n++] = v;
        }
}

static ConStream stream_block(Con *c, int i, Lv k, Lv tile)
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

ConStream con_stream_next(Con *c, int i, const ConAsker *t)
{
    Ir *ir = c->ir;
    if (lines_side(c->p) != NULL)
        return stream_lines(c, i, t);
    ConStream x = stream_block(c, i, t->next, t->tile);
    return con_stream_if(c, con_less(c, t->next, ir_int(ir, c->p->n_k)), &x);
}
