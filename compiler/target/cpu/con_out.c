/* The epilogue: pointwise over a finished tile, which is still in the first cache. */
#include <string.h>
#include "con.h"

static Val sum_of(const Kernel *k)
{
    for (Val v = k->con.e_from - 1; v < k->con.e_to; v++)
        if (k->inst.at[v].op == KI_SUM)
            return v;
    return 0;
}

static void load_sum(Con *c, Val sum, Lv at)
{
    Gen *g = &c->g;
    if (sum == 0)
        return;
    g->value[sum] = ir_load(c->ir, gen_type(g, c->p->type, g->width), at, c->p->es);
    g->vary[sum] = g->width > 1;
}

void con_section(Con *c, Lv at)
{
    Gen *g = &c->g;
    const KContract *con = &g->k->con;
    Val sum = sum_of(g->k);
    load_sum(c, sum, at);
    for (Val v = con->e_from; v < con->e_to; v++)
        if (v != sum && !(c->stored && g->k->inst.at[v].op == KI_STORE))
            gen_inst(g, v);
    if (con->all != 0)
        gen_all(g, con->all_buf, con->all);
}

/* A group of columns, `width` or fewer, of all the tile's rows. */
typedef struct Out {
    Lv tile, row0, rows, col0; /* first column of the tile */
    Lv col;                    /* first column of the group, in the tile */
    int width;
    /* The tile as lines of lanes: of rows, or, turned, of columns. */
    const Walk *lines, *lanes;
    int64_t pitch;   /* elements of a line */
    int64_t n_lanes; /* all there are: if no line of a tile has fewer than a whole group's */
    int64_t apart;   /* tiles begin at multiples of so many lanes */
} Out;

Val con_paired(const Kernel *k, const Walk *lines, const Walk *lanes)
{
    Val pair = lines->n > 0 && lines->extent[lines->n - 1] == 2 ? lines->dim[lines->n - 1] : 0;
    int stores = 0;
    for (Val v = k->con.e_from; v < k->con.e_to && pair != 0; v++) {
        const KInst *i = &k->inst.at[v];
        if (i->op != KI_STORE)
            continue;
        const KAccess *a = &k->access.at[i->aux];
        stores++;
        if (con_coef(&a->at, lanes->lane) != 2 || con_coef(&a->at, pair) != 1)
            pair = 0;
    }
    return stores > 0 ? pair : 0;
}

/* Line i of the tile, where the lanes' indices are those of its column `col`: sets the line's;
 * where its sums are. */
static Lv set_line(Con *c, const Out *o, Lv i, Lv col)
{
    Ir *ir = c->ir;
    Lv digit[K_MAX_DIMS];
    walk_decode(o->lines, ir, ir_add(ir, o->row0, i), digit);
    walk_set(o->lines, &c->g, digit);
    Lv line = ir_at_byte(ir, o->tile, ir_mul(ir, i, o->pitch * c->p->es));
    return ir_at_byte(ir, line, ir_mul(ir, col, c->p->es));
}

static void emit_line(Con *c, const Out *o, Lv i, Lv col)
{
    con_section(c, set_line(c, o, i, col));
}

/* A long epilogue is computed for two lines at once, an instruction of one after the same of the
 * other: in a line they wait for each other, and a core looks only some hundred ahead. */
static bool interleaves(const Con *c)
{
    enum { LONG = 16, MANY_VREGS = 32 };
    const KContract *con = &c->g.k->con;
    if (c->p->mach->n_vregs < MANY_VREGS || c->g.width == 1 || c->g.live != NULL)
        return false;
    int n = 0;
    for (Val v = con->e_from; v < con->e_to; v++) {
        const KInst *i = &c->g.k->inst.at[v];
        n += i->op != KI_LOAD && i->op != KI_STORE && i->op != KI_CONST && i->op != KI_SUM;
    }
    return n >= LONG && !c->stored && con->all == 0;
}

/* Lines i and i + 1: each has its own values. */
static void emit_two(Con *c, const Out *o, Lv i, Lv col)
{
    Gen *g = &c->g;
    const KContract *con = &g->k->con;
    Val sum = sum_of(g->k);
    Lv *value[2] = {g->value, NEW_ARRAY(c->arena, Lv, g->k->inst.n)};
    memcpy(value[1], value[0], (size_t)g->k->inst.n * sizeof(Lv));
    for (int t = 0; t < 2; t++) {
        g->value = value[t];
        load_sum(c, sum, set_line(c, o, ir_add(c->ir, i, ir_int(c->ir, t)), col));
    }
    for (Val v = con->e_from; v < con->e_to; v++)
        for (int t = 0; v != sum && t < 2; t++) {
            g->value = value[t];
            gen_inst(g, v);
        }
    g->value = value[0];
}

static void emit_lines(Con *c, const Out *o, Lv col)
{
    Ir *ir = c->ir;
    if (!interleaves(c)) {
        IrLoop l = ir_loop(ir, ir_int(ir, 0), o->rows, 1, false);
        emit_line(c, o, l.i, col);
        ir_loop_end(ir, &l);
        return;
    }
    Lv odd = LLVMBuildAnd(ir->b, o->rows, ir_int(ir, 1), "");
    Lv even = LLVMBuildSub(ir->b, o->rows, odd, "");
    IrLoop l = ir_loop(ir, ir_int(ir, 0), even, 2, true); /* a last tile may have one line */
    emit_two(c, o, l.i, col);
    ir_loop_end(ir, &l);
    IrIf alone = ir_if(ir, LLVMBuildICmp(ir->b, LLVMIntNE, odd, ir_int(ir, 0), ""));
    emit_line(c, o, even, col);
    ir_end_if(ir, &alone);
}

/* Two lines at a time; the first and the last one alone if their partner is not in the tile. */
static void emit_pairs(Con *c, const Out *o, Val pair)
{
    Ir *ir = c->ir;
    Lv one = ir_int(ir, 1), zero = ir_int(ir, 0);
    Lv odd = LLVMBuildAnd(ir->b, o->row0, one, "");
    Lv rest = LLVMBuildAnd(ir->b, LLVMBuildSub(ir->b, o->rows, odd, ""), one, "");
    Lv last = LLVMBuildSub(ir->b, o->rows, rest, "");
    IrIf first = ir_if(ir, LLVMBuildICmp(ir->b, LLVMIntNE, odd, zero, ""));
    emit_line(c, o, zero, o->col);
    ir_end_if(ir, &first);
    IrLoop l = ir_loop(ir, odd, last, 2, true);
    c->g.pair = pair;
    for (c->g.turn = 0; c->g.turn < 2; c->g.turn++)
        emit_line(c, o, ir_add(ir, l.i, ir_int(ir, c->g.turn)), o->col);
    c->g.pair = 0;
    ir_loop_end(ir, &l);
    IrIf alone = ir_if(ir, LLVMBuildICmp(ir->b, LLVMIntNE, rest, zero, ""));
    emit_line(c, o, last, o->col);
    ir_end_if(ir, &alone);
}

static void emit_lanes(Con *c, const Out *o, Lv *digit, Lv live)
{
    Val pair = c->stored ? 0 : con_paired(c->g.k, o->lines, o->lanes);
    gen_vector(&c->g, o->width, o->lanes->lane, live);
    walk_set(o->lanes, &c->g, digit);
    if (pair != 0)
        emit_pairs(c, o, pair);
    else
        emit_lines(c, o, o->col);
    gen_scalar(&c->g);
}

/* Where the columns of a group don't follow one another in memory. */
static void emit_each(Con *c, const Out *o, Lv count)
{
    Ir *ir = c->ir;
    Lv digit[K_MAX_DIMS];
    gen_scalar(&c->g);
    IrLoop j = ir_loop(ir, ir_int(ir, 0), count, 1, false);
    Lv at = ir_add(ir, o->col, j.i);
    walk_decode(o->lanes, ir, ir_add(ir, o->col0, at), digit);
    walk_set(o->lanes, &c->g, digit);
    emit_lines(c, o, at);
    ir_loop_end(ir, &j);
}

static void emit_group(Con *c, const Out *of, Lv cols)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    const Walk *w = of->lanes;
    Out group = *of, *o = &group;
    Lv rest = LLVMBuildSub(ir->b, cols, o->col, ""), width = ir_int(ir, o->width);
    Lv in_line, first = ir_add(ir, o->col0, o->col);
    if (p->direct) { /* the rest of its line; the tile's columns count padding */
        first = con_line(c, first, &in_line);
        o->col0 = LLVMBuildSub(ir->b, first, o->col, "");
        rest = LLVMBuildSub(ir->b, ir_int(ir, p->line), in_line, "");
    }
    Lv count = ir_min(ir, rest, width), digit[K_MAX_DIMS];
    walk_decode(w, ir, first, digit);
    IrIf run = {NULL, NULL}, full;
    bool broken = p->direct
                      ? w->run % p->line != 0
                      : w->run != w->total && (w->run % o->width != 0 || o->apart % o->width != 0);
    if (broken) {
        Lv end = ir_add(ir, digit[w->n - 1], count);
        run = ir_if(ir, LLVMBuildICmp(ir->b, LLVMIntSLE, end, ir_int(ir, w->run), ""));
    }
    if ((p->direct ? p->line : o->n_lanes) % o->width == 0 && p->col_reach != K_LIMITED) {
        emit_lanes(c, o, digit, NULL);
    } else {
        full = ir_if(ir, LLVMBuildICmp(ir->b, LLVMIntSGE, rest, width, ""));
        emit_lanes(c, o, digit, NULL);
        ir_else(ir, &full);
        emit_lanes(c, o, digit, rest);
        ir_end_if(ir, &full);
    }
    if (broken) {
        ir_else(ir, &run);
        emit_each(c, o, count);
        ir_end_if(ir, &run);
    }
}

static void all_groups(Con *c, Out *o, Lv lanes)
{
    Ir *ir = c->ir;
    if (o->width == o->pitch) {
        emit_group(c, o, lanes);
        return;
    }
    IrLoop g = ir_loop(ir, ir_int(ir, 0), lanes, o->width, false);
    o->col = g.i;
    emit_group(c, o, lanes);
    ir_loop_end(ir, &g);
}

/* A vector of columns of so many rows, vl of them at most: lines `pitch` apart. */
static void turn_block(Con *c, Lv from, int rows, Lv to, int64_t pitch)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    int vl = p->vl;
    Lt vec = con_vector_type(c);
    Lv x[64];
    for (int i = 0; i < vl; i++)
        x[i] = i < rows ? ir_load(ir, vec, ir_off(ir, from, (int64_t)i * p->nr * p->es), p->es)
                        : LLVMGetPoison(vec);
    ir_transpose(c->ir, x, vl);
    for (int i = 0; i < vl; i++)
        con_store_packed(c, x[i], to, ir_int(ir, i * pitch));
}

/* Lines of the tile's columns, from vl x vl blocks of it; what is beyond its rows is not stored. */
static void turn(Con *c, Lv tile, Lv to, int64_t pitch)
{
    enum { WRITTEN_OUT = 4 }; /* blocks */
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    int vl = p->vl, whole = p->mr / vl > WRITTEN_OUT ? p->mr / vl * vl : 0;
    int64_t block = (int64_t)vl * p->es;
    IrLoop v = ir_loop(ir, ir_int(ir, 0), ir_int(ir, p->nv), 1, false);
    Lv from = ir_at_byte(ir, tile, ir_mul(ir, v.i, block));
    Lv lines = ir_at_byte(ir, to, ir_mul(ir, v.i, block * pitch));
    if (whole > 0) {
        IrLoop r = ir_loop(ir, ir_int(ir, 0), ir_int(ir, whole), vl, false);
        Lv row = ir_at_byte(ir, from, ir_mul(ir, r.i, (int64_t)p->nr * p->es));
        turn_block(c, row, vl, ir_at_byte(ir, lines, ir_mul(ir, r.i, p->es)), pitch);
        ir_loop_end(ir, &r);
    }
    for (int r = whole; r < p->mr; r += vl)
        turn_block(c, ir_off(ir, from, (int64_t)r * p->nr * p->es), p->mr - r,
                   ir_off(ir, lines, (int64_t)r * p->es), pitch);
    ir_loop_end(ir, &v);
}

/* All lines where the lanes' indices are set. */
static void ahead_in_lines(Con *c, const Walk *lines, Val lane, Lv first, Lv n)
{
    Ir *ir = c->ir;
    const KContract *con = &c->g.k->con;
    Lv digit[K_MAX_DIMS];
    IrLoop i = ir_loop(ir, ir_int(ir, 0), n, 1, false);
    walk_decode(lines, ir, ir_add(ir, first, i.i), digit);
    walk_set(lines, &c->g, digit);
    con_prefetch_section(c, con->e_from, con->e_to, lane, 0);
    ir_loop_end(ir, &i);
}

void con_out_ahead(Con *c, Lv row0, Lv rows, Lv col0, Lv cols)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    Lv digit[K_MAX_DIMS], none;
    gen_scalar(&c->g);
    if (p->turned) { /* most lines have been asked for by the tile before */
        Lv last = ir_add(ir, ir_add(ir, row0, rows), ir_int(ir, -1));
        walk_decode(&p->out_rows, ir, last, digit);
        walk_set(&p->out_rows, &c->g, digit);
        ahead_in_lines(c, &p->out_cols, p->out_rows.lane, col0, cols);
        return;
    }
    IrLoop g = ir_loop(ir, ir_int(ir, 0), cols, 64 / p->es, false);
    Lv at = ir_add(ir, col0, g.i);
    walk_decode(&p->out_cols, ir, p->direct ? con_line(c, at, &none) : at, digit);
    walk_set(&p->out_cols, &c->g, digit);
    ahead_in_lines(c, &p->out_rows, p->out_cols.lane, row0, rows);
    ir_loop_end(ir, &g);
}

void con_finish(Con *c, Lv tile, Lv row0, Lv rows, Lv col0, int vectors, int64_t pitch)
{
    const ConPlan *p = c->p;
    Ir *ir = c->ir;
    int width = vectors % 2 == 0 ? 2 * p->vl : p->vl;
    Out o = {tile,         row0,         rows,          col0,  ir_int(ir, 0), width,
             &p->out_rows, &p->out_cols, pitch / p->es, p->nr, width};
    c->stored = !p->finishes;
    all_groups(c, &o, ir_int(ir, vectors * p->vl));
    c->stored = false;
}

void con_epilogue(Con *c, Lv tile, Lv row0, Lv rows, Lv col0, Lv cols)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    if (p->turned) {
        int64_t pitch = align_up(p->mr, p->vl);
        Lv to = ir_off(ir, c->scratch, p->turn_at);
        turn(c, tile, to, pitch);
        int64_t whole = p->taller == 0 ? p->mr : 1;
        Out o = {to,           col0,         cols,  row0,  ir_int(ir, 0), p->vl,
                 &p->out_cols, &p->out_rows, pitch, whole, whole};
        all_groups(c, &o, rows);
        return;
    }
    const Walk *w = &p->out_cols;
    bool wide = p->nv % 2 == 0 && (!p->direct || p->padded % (2 * p->vl) == 0);
    bool run_ends = w->run != w->total && w->run % (2 * p->vl) != 0 && w->run % p->vl == 0;
    wide = wide && (p->direct || !run_ends);
    int64_t apart = p->lanes != NULL ? p->lanes->x.n_f : p->nr;
    Out o = {tile,         row0,         rows,  col0,      ir_int(ir, 0), wide ? 2 * p->vl : p->vl,
             &p->out_rows, &p->out_cols, p->nr, p->n_cols, apart};
    all_groups(c, &o, cols);
}
