/* Panels of rows and of columns: where they begin, how many they have, where they end. */
#include "con.h"

Lv con_in_segment(Con *c, Lv panel)
{
    const ConPlan *p = c->p;
    return p->window.is ? LLVMBuildURem(c->ir->b, panel, ir_int(c->ir, p->window.pieces), "")
                        : panel;
}

static Lv row_of_window(Con *c, Lv panel, Lv *count)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    const Window *w = &p->window;
    Lv segment = LLVMBuildUDiv(ir->b, panel, ir_int(ir, w->pieces), "");
    Lv at = con_in_segment(c, panel), taller = ir_int(ir, p->taller);
    Lv more = LLVMBuildZExt(ir->b, con_less(c, at, taller), ir->i64, "");
    *count = ir_mul(ir, ir_add(ir, more, ir_int(ir, p->height)), w->inner);
    Lv tall = ir_min(ir, at, taller), piece = ir_add(ir, ir_mul(ir, at, p->height), tall);
    Lv in_it = ir_mul(ir, piece, w->inner);
    return ir_add(ir, ir_mul(ir, segment, w->segment), in_it);
}

Lv con_row_of(Con *c, Lv panel, Lv *count)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    Lv taller = ir_int(ir, p->taller);
    if (p->window.is)
        return row_of_window(c, panel, count);
    Lv more = LLVMBuildZExt(ir->b, con_less(c, panel, taller), ir->i64, "");
    *count = p->taller == 0 ? ir_int(ir, p->height) : ir_add(ir, more, ir_int(ir, p->height));
    Lv row = ir_mul(ir, panel, p->height);
    row = p->taller == 0 ? row : ir_add(ir, row, ir_min(ir, panel, taller));
    if (p->row_reach == K_LIMITED)
        *count = ir_min(ir, *count, LLVMBuildSub(ir->b, c->g.limit, row, ""));
    return row;
}

Lv con_col_of(Con *c, Lv panel, Lv *count)
{
    Ir *ir = c->ir;
    Lv col = ir_mul(ir, panel, c->p->nr);
    Lv rest = LLVMBuildSub(ir->b, ir_int(ir, c->p->n_cols), col, "");
    *count = c->p->n_cols % c->p->nr == 0 ? ir_int(ir, c->p->nr)
                                          : ir_min(ir, rest, ir_int(ir, c->p->nr));
    if (c->p->col_reach == K_LIMITED)
        *count = ir_min(ir, *count, LLVMBuildSub(ir->b, c->g.limit, col, ""));
    return col;
}

Lv con_row_panels_end(Con *c)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    Lv all = ir_int(ir, p->row_panels);
    if (p->row_reach == K_ALL)
        return all;
    Lv last = ir_add(ir, ir_min(ir, c->g.limit, ir_int(ir, p->n_rows)), ir_int(ir, -1));
    Lv small = LLVMBuildUDiv(ir->b, LLVMBuildSub(ir->b, last, ir_int(ir, p->taller), ""),
                             ir_int(ir, p->height), "");
    Lv tall = LLVMBuildUDiv(ir->b, last, ir_int(ir, p->height + 1), "");
    Lv is_tall = con_less(c, last, ir_int(ir, p->taller * (p->height + 1)));
    return ir_add(ir, LLVMBuildSelect(ir->b, is_tall, tall, small, ""), ir_int(ir, 1));
}

Lv con_col_panels_end(Con *c)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    Lv all = ir_int(ir, p->col_panels);
    if (p->col_reach == K_ALL)
        return all;
    Lv up = ir_add(ir, c->g.limit, ir_int(ir, p->nr - 1));
    return ir_min(ir, LLVMBuildUDiv(ir->b, up, ir_int(ir, p->nr), ""), all);
}
