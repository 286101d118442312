/* Memory that is far is asked for while tiles are computed, a few lines every few steps: where it
 * is met all at once, when a panel is packed or a tile is stored, the processor waits for it, and
 * where a tile asks for many lines at once, what it needs itself has to wait. The tiles of a panel
 * of columns ask for the next panel, each for its part of it; those of the first panel for rows,
 * too: there each tile packs its own, and asks for those of the next. And each tile that is the
 * last of its sums asks for what its epilogue meets. */
#include "con.h"

enum { LINE = 64, FEW = 4 }; /* tiles of a panel, in which there is no time */

bool con_is_far(const ConPlan *p, const Side *s)
{
    bool packed = s->plain && !s->in_place && (s->pack == PACK_ROW || s->pack == PACK_K);
    int64_t n = s == &p->rows ? p->n_rows : p->n_cols;
    return packed && p->n_k > 64 && n * p->n_k * p->es > p->mach->l2_bytes / 2;
}

static int64_t lines_of(int64_t bytes)
{
    return (bytes + LINE - 1) / LINE;
}

/* Along k, columns are shared out to tiles, and a line of each has ASK_STEPS of k; across, steps of
 * k are. */
static void plan_cols(ConPlan *p)
{
    const Side *s = &p->cols;
    if (p->mc < FEW || p->col_reach != K_ALL || p->col_panels < 2 || !con_is_far(p, s))
        return;
    int times = p->mc >= 16 ? 1 : p->mc >= 8 ? 2 : 4;
    Ask along_k = {(int)((p->nr + p->mc - 1) / p->mc), 1, CACHE_2, false};
    Ask across = {(int)lines_of(p->nr * p->es), times, CACHE_2, false};
    p->ask[ASK_COLS] = s->pack == PACK_K ? along_k : across;
}

static void plan_rows(ConPlan *p)
{
    const Side *s = &p->rows;
    if (p->mc < FEW || p->row_reach != K_ALL || !con_is_far(p, s))
        return;
    /* Where slices of all panels have room, they read longer pieces (con_slices.c): GPT-2's logits
     * in reverse 150 GFLOP/s, not 135, on Granite Rapids; on Zen 5 this takes 3 % less time. */
    bool sliced = s->pack == PACK_ROW && p->mach->l2_bytes >= CON_LARGE_CACHE;
    Ask along_k = {p->mr, 1, CACHE_2, false}, across = {1, ASK_STEPS, CACHE_2, false};
    if (!sliced)
        p->ask[ASK_ROWS] = s->pack == PACK_K ? along_k : across;
}

void con_stream_plan(ConPlan *p)
{
    if (p->mach->arch != ARCH_X86_64 || p->pairs || p->window.is)
        return;
    if (!p->direct) {
        plan_cols(p);
        plan_rows(p);
    }
    con_out_plan(p);
}

bool con_streams(const ConPlan *p)
{
    for (int i = 0; i < MAX_ASKS; i++)
        if (p->ask[i].n > 0)
            return true;
    return false;
}

ConStream con_no_stream(Con *c)
{
    Lv none = ir_int(c->ir, 0);
    return (ConStream){c->scratch, none, none};
}

ConStream con_stream_if(Con *c, Lv cond, const ConStream *x)
{
    LLVMBuilderRef b = c->ir->b;
    ConStream no = con_no_stream(c);
    return (ConStream){LLVMBuildSelect(b, cond, x->at, no.at, ""),
                       LLVMBuildSelect(b, cond, x->step, no.step, ""),
                       LLVMBuildSelect(b, cond, x->gap, no.gap, "")};
}

ConStream con_stream_cols(Con *c, Lv panel, Lv k0, Lv kn, Lv tile)
{
    Ir *ir = c->ir;
    ConPlan *p = c->p;
    Side *s = &p->cols;
    const Ask *ask = &p->ask[ASK_COLS];
    Lv col = ir_mul(ir, panel, p->nr);
    if (s->pack == PACK_K) {
        Lv from = ir_mul(ir, tile, ask->n);
        ConStream x = {con_address(c, s, ir_add(ir, col, from), k0), ir_int(ir, ASK_STEPS * p->es),
                       ir_int(ir, s->rs * p->es)};
        return con_stream_if(c, con_less(c, from, ir_int(ir, p->nr)), &x);
    }
    Lv each = ir_mul(ir, LLVMBuildUDiv(ir->b, kn, ir_int(ir, ASK_STEPS), ""), ask->times);
    Lv from = LLVMBuildMul(ir->b, tile, each, "");
    ConStream x = {con_address(c, s, col, ir_add(ir, k0, from)), ir_int(ir, s->ks * p->es),
                   ir_int(ir, LINE)};
    return con_stream_if(c, con_less(c, from, kn), &x);
}

ConStream con_stream_rows(Con *c, Lv panel, Lv k0)
{
    Ir *ir = c->ir;
    ConPlan *p = c->p;
    Side *s = &p->rows;
    Lv count, row = con_row_of(c, panel, &count);
    if (s->pack == PACK_K)
        return (ConStream){con_address(c, s, row, k0), ir_int(ir, ASK_STEPS * p->es),
                           ir_int(ir, s->rs * p->es)};
    /* Its first line is the last one of the panel before. */
    row = ir_add(ir, row, ir_add(ir, count, ir_int(ir, -1)));
    return (ConStream){con_address(c, s, row, k0), ir_int(ir, s->ks * p->es), ir_int(ir, 0)};
}
