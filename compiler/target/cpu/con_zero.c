/* Sums of a tile that are of no terms. */
#include "con.h"

/* The sum over no k at all. */
void con_zero_tile(Con *c, Lv t)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    Lt vec = ir_vec(p->type == F64 ? ir->f64 : ir->f32, p->vl);
    for (int64_t at = 0; at < (int64_t)p->mr * p->nv; at++)
        ir_store(ir, LLVMConstNull(vec), ir_off(ir, t, at * p->vl * p->es), p->es);
}

/* Columns of a tile from the limit on: one row after the other. */
void con_zero_cols(Con *c, Lv t, Lv col0)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    Lt one = p->type == F64 ? ir->f64 : ir->f32;
    Lv rest = LLVMBuildSub(ir->b, c->g.limit, col0, ""), nr = ir_int(ir, p->nr);
    IrIf f = ir_if(ir, con_less(c, rest, nr));
    IrLoop i = ir_loop(ir, ir_int(ir, 0), ir_int(ir, p->mr), 1, false);
    IrLoop j = ir_loop(ir, rest, nr, 1, false);
    Lv at = ir_add(ir, ir_mul(ir, i.i, p->nr), j.i);
    ir_store(ir, LLVMConstNull(one), ir_at_byte(ir, t, ir_mul(ir, at, p->es)), p->es);
    ir_loop_end(ir, &j);
    ir_loop_end(ir, &i);
    ir_end_if(ir, &f);
}

void con_zero_rows(Con *c, Lv t, Lv row0)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    Lt vec = ir_vec(p->type == F64 ? ir->f64 : ir->f32, p->vl);
    Lv rest = LLVMBuildSub(ir->b, c->g.limit, row0, ""), mr = ir_int(ir, p->mr);
    IrLoop i = ir_loop(ir, ir_min(ir, rest, mr), mr, 1, true);
    Lv line = ir_at_byte(ir, t, ir_mul(ir, i.i, (int64_t)p->nr * p->es));
    for (int v = 0; v < p->nv; v++)
        ir_store(ir, LLVMConstNull(vec), ir_off(ir, line, (int64_t)v * p->vl * p->es), p->es);
    ir_loop_end(ir, &i);
}
