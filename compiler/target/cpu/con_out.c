/* The epilogue: pointwise over a finished tile, which is still in the first cache. */
#include "con.h"

static Val sum_of(const Kernel *k)
{
    for (Val v = k->con.e_from - 1; v < k->con.e_to; v++)
        if (k->inst.at[v].op == KI_SUM)
            return v;
    return 0;
}

static void emit_section(Con *c, Lv at)
{
    Gen *g = &c->g;
    const KContract *con = &g->k->con;
    Val sum = sum_of(g->k);
    if (sum != 0) {
        g->value[sum] = ir_load(c->ir, gen_type(g, c->p->type, g->width), at, c->p->es);
        g->vary[sum] = g->width > 1;
    }
    for (Val v = con->e_from; v < con->e_to; v++)
        if (v != sum)
            gen_inst(g, v);
}

typedef struct Out {
    Lv row[K_MAX_DIMS]; /* digits of the row */
    Lv col0, line;      /* first column, address of the tile's row */
    int width;
} Out;

static Lv element_at(Con *c, const Out *o, Lv col)
{
    return ir_at_byte(c->ir, o->line, ir_mul(c->ir, col, c->p->es));
}

static void emit_lanes(Con *c, Out *o, Lv col, Lv live)
{
    Lv digit[K_MAX_DIMS];
    walk_decode(&c->p->out_cols, c->ir, ir_add(c->ir, o->col0, col), digit);
    gen_vector(&c->g, o->width, c->p->out_cols.lane, live);
    walk_set(&c->p->out_rows, &c->g, o->row);
    walk_set(&c->p->out_cols, &c->g, digit);
    emit_section(c, element_at(c, o, col));
    gen_scalar(&c->g);
}

/* Where the columns of a vector don't follow one another in memory. */
static void emit_each(Con *c, Out *o, Lv col, Lv count)
{
    Ir *ir = c->ir;
    Lv digit[K_MAX_DIMS];
    IrLoop l = ir_loop(ir, ir_int(ir, 0), count, 1, false);
    Lv at = ir_add(ir, col, l.i);
    gen_scalar(&c->g);
    walk_decode(&c->p->out_cols, ir, ir_add(ir, o->col0, at), digit);
    walk_set(&c->p->out_rows, &c->g, o->row);
    walk_set(&c->p->out_cols, &c->g, digit);
    emit_section(c, element_at(c, o, at));
    ir_loop_end(ir, &l);
}

static void emit_group(Con *c, Out *o, Lv col, Lv cols)
{
    Ir *ir = c->ir;
    const Walk *w = &c->p->out_cols;
    Lv rest = LLVMBuildSub(ir->b, cols, col, ""), width = ir_int(ir, o->width);
    Lv count = ir_min(ir, rest, width);
    IrIf run = {NULL, NULL}, full;
    bool broken = w->run != w->total;
    if (broken) {
        Lv at = LLVMBuildURem(ir->b, ir_add(ir, o->col0, col), ir_int(ir, w->run), "");
        Lv fits = LLVMBuildICmp(ir->b, LLVMIntSLE, ir_add(ir, at, count), ir_int(ir, w->run), "");
        run = ir_if(ir, fits);
    }
    if (c->p->n_cols % o->width == 0) {
        emit_lanes(c, o, col, NULL);
    } else {
        full = ir_if(ir, LLVMBuildICmp(ir->b, LLVMIntSGE, rest, width, ""));
        emit_lanes(c, o, col, NULL);
        ir_else(ir, &full);
        emit_lanes(c, o, col, rest);
        ir_end_if(ir, &full);
    }
    if (broken) {
        ir_else(ir, &run);
        emit_each(c, o, col, count);
        ir_end_if(ir, &run);
    }
}

void con_epilogue(Con *c, Lv tile, Lv row0, Lv rows, Lv col0, Lv cols)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    Out o = {.col0 = col0, .width = p->nv % 2 == 0 ? 2 * p->vl : p->vl};
    IrLoop r = ir_loop(ir, ir_int(ir, 0), rows, 1, false);
    walk_decode(&p->out_rows, ir, ir_add(ir, row0, r.i), o.row);
    o.line = ir_at_byte(ir, tile, ir_mul(ir, r.i, (int64_t)p->nr * p->es));
    if (o.width == p->nr) {
        emit_group(c, &o, ir_int(ir, 0), cols);
    } else {
        IrLoop g = ir_loop(ir, ir_int(ir, 0), cols, o.width, false);
        emit_group(c, &o, g.i, cols);
        ir_loop_end(ir, &g);
    }
    ir_loop_end(ir, &r);
}
