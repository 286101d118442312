/* Panels of a far operand whose neighbours lie side by side, packed several at once: a few steps
 * of k of one panel, of the next, and so on. One panel alone is a short piece of each line of
 * memory, in a page of its own; together they are pieces as long as a processor fetches ahead
 * by itself, and each page is looked up once. */
#include "con.h"

enum { GROUP = 4, SLICE = 8 };

void con_slices_plan(ConPlan *p)
{
    p->group = 1;
    if (p->pairs || p->direct || p->window.is)
        return;
    p->rows.sliced = p->ask[ASK_ROWS].n == 0 && p->row_reach == K_ALL && p->rows.pack == PACK_ROW &&
                     con_is_far(p, &p->rows);
    p->cols.sliced = (p->cols_once || p->ask[ASK_COLS].n == 0) && p->col_reach == K_ALL &&
                     p->cols.pack == PACK_ROW && con_is_far(p, &p->cols);
    if (p->cols.sliced)
        p->group = p->col_panels < GROUP ? p->col_panels : GROUP;
}

/* Vectors that are stored to the end of a panel of rows reach over it. */
int64_t con_panel_bytes(const ConPlan *p, const Side *s)
{
    if (s == &p->cols)
        return con_steps(p, p->cols_once ? p->n_k : p->kc) * p->nr * p->es;
    return con_steps(p, p->kc) * p->mr * p->es + (s->sliced ? p->vl * p->es : 0);
}

Lv con_packed_once(Con *c, Lv panel, Lv k0)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    Lv at = ir_mul(ir, panel, con_panel_bytes(p, &p->cols));
    at = ir_add(ir, at, ir_mul(ir, con_steps_of(c, k0), p->nr * p->es));
    return ir_at_byte(ir, ir_off(ir, c->scratch, p->b_at), at);
}

void con_pack_slices(Con *c, Side *s, Lv from, Lv to, Lv k0, Lv kn, Lv dst)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    bool rows = s == &p->rows;
    int width = rows ? p->mr : p->nr;
    IrLoop k = ir_loop(ir, ir_int(ir, 0), kn, SLICE, false);
    Lv n = ir_min(ir, LLVMBuildSub(ir->b, kn, k.i, ""), ir_int(ir, SLICE));
    IrLoop l = ir_loop(ir, from, to, 1, false);
    Lv count, first = rows ? con_row_of(c, l.i, &count) : con_col_of(c, l.i, &count);
    Lv panel = ir_mul(ir, LLVMBuildSub(ir->b, l.i, from, ""), con_panel_bytes(p, s));
    Lv at = ir_add(ir, panel, ir_mul(ir, k.i, width * p->es));
    con_pack(c, s, width, first, count, ir_add(ir, k0, k.i), n, ir_at_byte(ir, dst, at));
    ir_loop_end(ir, &l);
    ir_loop_end(ir, &k);
}
