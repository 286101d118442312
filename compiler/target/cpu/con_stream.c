/* Operands that come from afar are asked for while tiles are computed: one line for each k of a
 * tile. Where they are packed all at once, the processor waits for memory; where a tile asks for
 * many lines at once, what it needs itself has to wait. So the tiles of a panel of columns ask for
 * the next panel, but those of the first panel for rows: there each tile packs its own, and asks
 * for those of the next. */
#include "con.h"

enum { NEAR = 16 }; /* places of a stream's step, before it jumps */

bool con_is_far(const ConPlan *p, const Side *s)
{
    bool packed = s->plain && !s->in_place && (s->pack == PACK_ROW || s->pack == PACK_K);
    int64_t n = s == &p->rows ? p->n_rows : p->n_cols;
    return packed && p->n_k > 64 && n * p->n_k * p->es > p->mach->l2_bytes / 2;
}

void con_stream_plan(ConPlan *p)
{
    enum { FEW = 4 }; /* tiles of a panel, in which there is no time */
    /* Measured there alone: 3 % less time on Zen 5, as much more on Granite Rapids. */
    bool pays = p->mach->arch == ARCH_X86_64 && p->mach->l2_bytes < CON_LARGE_CACHE;
    if (!pays || p->pairs || p->direct || p->window.is || p->mc < FEW)
        return;
    p->cols.streams = p->col_reach == K_ALL && p->col_panels > 1 && con_is_far(p, &p->cols);
    p->rows.streams = p->row_reach == K_ALL && con_is_far(p, &p->rows);
}

/* Along the panel's width from `r` on, along k from `k` on. */
static ConStream stream_at(Con *c, Side *s, Lv r, Lv k)
{
    int64_t es = c->p->es, wide = s->pack == PACK_K ? s->rs : s->ks;
    int64_t jump = s->pack == PACK_K ? NEAR * es : NEAR * s->ks * es;
    return (ConStream){con_address(c, s, r, k), ir_int(c->ir, wide * es), ir_int(c->ir, jump)};
}

/* The tiles that ask for a panel of columns: for a line of each k, or for NEAR columns. */
static int64_t tiles_asking(const ConPlan *p)
{
    int64_t each = p->cols.pack == PACK_K ? NEAR : 64 / p->es;
    return (p->nr + each - 1) / each;
}

ConStream con_stream_cols(Con *c, Lv panel, Lv k, Lv tile)
{
    Ir *ir = c->ir;
    ConPlan *p = c->p;
    int64_t each = p->cols.pack == PACK_K ? NEAR : 64 / p->es;
    Lv col = ir_add(ir, ir_mul(ir, panel, p->nr), ir_mul(ir, tile, each));
    ConStream s = stream_at(c, &p->cols, col, k);
    Lv asks = con_less(c, tile, ir_int(ir, tiles_asking(p))), none = ir_int(ir, 0);
    s.at = LLVMBuildSelect(ir->b, asks, s.at, c->scratch, "");
    s.step = LLVMBuildSelect(ir->b, asks, s.step, none, "");
    s.jump = LLVMBuildSelect(ir->b, asks, s.jump, none, "");
    return s;
}

ConStream con_stream_rows(Con *c, Lv panel, Lv k)
{
    Ir *ir = c->ir;
    ConPlan *p = c->p;
    Lv count, row = con_row_of(c, panel, &count);
    if (p->rows.pack == PACK_ROW) /* its first line is the last one of the panel before */
        row = ir_add(ir, row, ir_add(ir, count, ir_int(ir, -1)));
    return stream_at(c, &p->rows, row, k);
}

void con_stream_ask(Ir *ir, const ConStream *s, Lv k)
{
    enum { DATA = 1, SECOND = 2 };
    Lv near = LLVMBuildAnd(ir->b, k, ir_int(ir, NEAR - 1), "");
    Lv far = LLVMBuildUDiv(ir->b, k, ir_int(ir, NEAR), "");
    Lv offset =
        ir_add(ir, LLVMBuildMul(ir->b, near, s->step, ""), LLVMBuildMul(ir->b, far, s->jump, ""));
    Lv arg[] = {ir_at_byte(ir, s->at, offset), ir_int32(ir, 0), ir_int32(ir, SECOND),
                ir_int32(ir, DATA)};
    ir_intrinsic(ir, "llvm.prefetch", &ir->ptr, 1, arg, 4);
}
