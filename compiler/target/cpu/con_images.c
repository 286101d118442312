/* Lanes along images: an index that one operand alone has, whose others a window slides over. The
 * other operand (weights) is the same for all of them, so a vector has one place of vl images, and
 * a tile is rows of weights by places of a line: no line is padded to whole vectors, and terms that
 * meet no place within bounds can be left out, line by line of the window.
 *
 *     pack the weights, in panels of rows                           [k][row]
 *     for a group of vl images, some lines of results
 *         stage the lines that they meet, transposed                [block][line][place][image]
 *         for each panel of rows
 *             for each line of results, each tile of it: chains of fma in registers
 *             for each row: transpose the results, and the epilogue of each image
 *
 * Where there are other batch indices (groups of channels), weights are packed for each unit.
 *
 * The chain of a result is that of any tile: k in order. A term that is left out would have added
 * a weight times 0. That changes a sum in two cases alone, for which the tile is computed with all
 * terms: if a weight is infinite or NaN, and if the sum is -0, which only underflow makes of one
 * that begins with +0. */
#include "con.h"

/* ---- the tile ------------------------------------------------------------------------------ */

typedef struct Tile {
    Con *c;
    int rows, cols;
    Lv acc[CON_LANES_MOST];
} Tile;

/* One term: `a` holds one element of each row, `b` the places of the columns. */
static void add_term(Tile *t, Lv a, Lv b)
{
    Con *c = t->c;
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    Lt elem = p->type == F64 ? ir->f64 : ir->f32;
    int64_t vec = (int64_t)p->vl * p->es;
    Lv y[CON_LANES_MOST];
    for (int j = 0; j < t->cols; j++)
        y[j] = ir_load(ir, con_vector_type(c), ir_off(ir, b, j * p->lanes->x.s * vec), p->es);
    for (int i = 0; i < t->rows; i++) {
        Lv x = ir_splat(ir, ir_load(ir, elem, ir_off(ir, a, (int64_t)i * p->es), p->es), p->vl);
        for (int j = 0; j < t->cols; j++) {
            Lv *sum = &t->acc[i * t->cols + j];
            *sum = con_dot(ir, p, x, y[j], *sum);
        }
    }
}

/* i1: one of the sums is -0, where that has to be known. */
static Lv some_minus_zero(const Tile *t)
{
    Con *c = t->c;
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    if (!p->lanes->leaves_out)
        return LLVMConstNull(ir->i1);
    Lt bits = ir_vec(p->type == F64 ? ir->i64 : ir->i32, p->vl);
    Lv minus = LLVMBuildBitCast(ir->b, LLVMBuildFNeg(ir->b, LLVMConstNull(con_vector_type(c)), ""),
                                bits, "");
    Lv any = NULL;
    for (int i = 0; i < t->rows * t->cols; i++) {
        Lv x = LLVMBuildBitCast(ir->b, t->acc[i], bits, "");
        Lv is = LLVMBuildICmp(ir->b, LLVMIntEQ, x, minus, "");
        any = any == NULL ? is : LLVMBuildOr(ir->b, any, is, "");
    }
    Lt flags = LLVMTypeOf(any);
    return ir_intrinsic(ir, "llvm.vector.reduce.or", &flags, 1, &any, 1);
}

/* A line of terms: all of them one after another, or, where a tile may meet fewer, n in a loop. */
static void add_line(Tile *t, Lv a, Lv b, Lv n)
{
    Con *c = t->c;
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    const Lanes *l = p->lanes;
    int64_t a_step = (int64_t)p->mr * p->es, b_step = l->x.t * p->vl * p->es;
    if (n == NULL) {
        for (int64_t i = 0; i < l->x.n_d; i++)
            add_term(t, ir_off(ir, a, i * a_step), ir_off(ir, b, i * b_step));
        return;
    }
    ConChain x = con_open_chain(ir, n, a, b, t->acc, t->rows * t->cols);
    add_term(t, x.at[0], x.at[1]);
    con_close_chain(ir, &x, ir_off(ir, x.at[0], a_step), ir_off(ir, x.at[1], b_step));
}

/* The function  i1 (ptr one, ptr many, ptr out, i64 lines, i64 terms):  so many lines of terms of
 * each block; tells of -0. `all`: of a line, all terms. */
static Lv tile_function(Con *c, int rows, int cols, bool all)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    const Lanes *l = p->lanes;
    const char *name = arena_printf(
        ir->arena, "gradc.images.%s.%dx%d%s.%d.%d.%lld.%lld.%lld.%lld.%lld.%lld.%lld.%lld.%lld",
        dtype_name(p->type), rows, cols, all ? ".all" : "", p->mr, l->leaves_out, (long long)l->x.s,
        (long long)l->x.t, (long long)l->y.t, (long long)l->pitch, (long long)l->rows,
        (long long)l->apart, (long long)l->blocks.total, (long long)l->x.n_d, (long long)l->y.n_d);
    const Lt arg[] = {ir->ptr, ir->ptr, ir->ptr, ir->i64, ir->i64};
    IrShared s;
    if (!ir_shared_function(ir, name, ir->i1, arg, 5, &s))
        return s.made;
    Lv fn = ir->fn, one = LLVMGetParam(fn, 0), many = LLVMGetParam(fn, 1);
    ir_use_target(ir, fn);
    Tile t = {.c = c, .rows = rows, .cols = cols};
    int sums = rows * cols;
    for (int i = 0; i < sums; i++)
        t.acc[i] = LLVMConstNull(con_vector_type(c));
    int64_t vec = (int64_t)p->vl * p->es, a_line = l->x.n_d * p->mr * p->es;
    ConChain b = con_open_chain(ir, ir_int(ir, l->blocks.total), one, many, t.acc, sums);
    ConChain y = con_open_chain(ir, LLVMGetParam(fn, 3), b.at[0], b.at[1], t.acc, sums);
    add_line(&t, y.at[0], y.at[1], all ? NULL : LLVMGetParam(fn, 4));
    con_close_chain(ir, &y, ir_off(ir, y.at[0], a_line),
                    ir_off(ir, y.at[1], l->y.t * l->pitch * vec));
    con_close_chain(ir, &b, ir_off(ir, b.at[0], l->y.n_d * a_line),
                    ir_off(ir, b.at[1], l->rows * l->pitch * vec));
    for (int i = 0; i < sums; i++) {
        int64_t to = i / cols * l->apart + i % cols;
        ir_store(ir, t.acc[i], ir_off(ir, LLVMGetParam(fn, 2), to * vec), p->es);
    }
    LLVMBuildRet(ir->b, some_minus_zero(&t));
    ir_shared_end(ir, &s);
    return s.made;
}

/* ---- tiles --------------------------------------------------------------------------------- */

/* A panel of rows. */
typedef struct Panel {
    Lv at, row0, count;
    Lv finite; /* i1: all of it */
} Panel;

/* Terms of one index of the window. */
typedef struct Terms {
    Lv from, n;
} Terms;

/* Those that one of the results [f0, f1] at least meets within bounds; if there are none, or `some`
 * is false: all. */
static Terms terms_met(Con *c, const Slide *w, const Inner *in, Lv f0, Lv f1, Lv some)
{
    Ir *ir = c->ir;
    Lv zero = ir_int(ir, 0), all = ir_int(ir, w->n_d);
    if (!c->p->lanes->leaves_out)
        return (Terms){zero, all};
    Lv first = ir_mul(ir, w->t > 0 ? f1 : f0, w->s), last = ir_mul(ir, w->t > 0 ? f0 : f1, w->s);
    Lv lo, hi;
    if (w->t > 0) {
        lo = LLVMBuildSub(ir->b, ir_int(ir, in->from), first, "");
        hi = LLVMBuildSub(ir->b, ir_int(ir, in->to), last, "");
    } else {
        lo = ir_add(ir, first, ir_int(ir, w->n_d - in->to));
        hi = ir_add(ir, last, ir_int(ir, w->n_d - in->from));
    }
    lo = LLVMBuildSelect(ir->b, con_less(c, lo, zero), zero, lo, "");
    hi = ir_min(ir, hi, all);
    Lv fewer = LLVMBuildAnd(ir->b, con_less(c, lo, hi), some, "");
    lo = LLVMBuildSelect(ir->b, fewer, lo, zero, "");
    hi = LLVMBuildSelect(ir->b, fewer, hi, all, "");
    return (Terms){lo, LLVMBuildSub(ir->b, hi, lo, "")};
}

/* Place of a term, of result f. */
static Lv place_of(Con *c, const Slide *w, Lv f, Lv term)
{
    Ir *ir = c->ir;
    Lv at = ir_add(ir, ir_mul(ir, f, w->s), ir_mul(ir, term, w->t));
    return ir_add(ir, at, ir_int(ir, -w->lowest));
}

/* A tile at (line, col) of the piece, of these terms. Gives whether a sum is -0. */
static Lv call_tile(Con *c, const Panel *p, int rows, int cols, Lv line, Lv col, Terms y, Terms x)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    Lv k = ir_add(ir, ir_mul(ir, y.from, l->x.n_d), x.from);
    Lv one = ir_at_byte(ir, p->at, ir_mul(ir, k, (int64_t)c->p->mr * c->p->es));
    Lv row = place_of(c, &l->y, line, y.from), place = place_of(c, &l->x, col, x.from);
    Lv many = con_lanes_at(c, l->b_at, ir_add(ir, ir_mul(ir, row, l->pitch), place));
    Lv out = con_lanes_at(c, l->o_at, ir_add(ir, ir_mul(ir, line, l->x.n_f), col));
    Lv arg[] = {one, many, out, y.n, x.n};
    bool in_turn = con_images_in_turn(l, rows, cols);
    if (!l->leaves_out || !in_turn)
        return ir_call(ir, tile_function(c, rows, cols, in_turn), arg, 5);
    Lv minus_zero = ir_slot(ir, ir->i1, 1);
    IrIf all = ir_if(ir, LLVMBuildICmp(ir->b, LLVMIntEQ, x.n, ir_int(ir, l->x.n_d), ""));
    ir_store(ir, ir_call(ir, tile_function(c, rows, cols, true), arg, 5), minus_zero, 1);
    ir_else(ir, &all);
    ir_store(ir, ir_call(ir, tile_function(c, rows, cols, false), arg, 5), minus_zero, 1);
    ir_end_if(ir, &all);
    return ir_load(ir, ir->i1, minus_zero, 1);
}

static void tile_of(Con *c, const LanesPiece *at, const Panel *p, int rows, int cols, Lv line,
                    Lv col)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    Lv f = ir_add(ir, at->line0, line), last = ir_add(ir, col, ir_int(ir, cols - 1));
    Terms y = terms_met(c, &l->y, &l->in_y, f, f, p->finite);
    Terms x = terms_met(c, &l->x, &l->in_x, col, last, p->finite);
    Lv minus_zero = call_tile(c, p, rows, cols, line, col, y, x);
    if (!l->leaves_out)
        return;
    IrIf again = ir_if(ir, minus_zero);
    Lv zero = ir_int(ir, 0);
    y = (Terms){zero, ir_int(ir, l->y.n_d)};
    x = (Terms){zero, ir_int(ir, l->x.n_d)};
    call_tile(c, p, rows, cols, line, col, y, x);
    ir_end_if(ir, &again);
}

static void tiles_of_rows(Con *c, const LanesPiece *at, const Panel *p, int rows)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    int64_t cols = l->tile_cols, whole = l->x.n_f / cols * cols;
    IrLoop y = ir_loop(ir, ir_int(ir, 0), at->lines, 1, true);
    IrLoop x = ir_loop(ir, ir_int(ir, 0), ir_int(ir, whole), cols, false);
    tile_of(c, at, p, rows, (int)cols, y.i, x.i);
    ir_loop_end(ir, &x);
    if (whole < l->x.n_f)
        tile_of(c, at, p, rows, (int)(l->x.n_f - whole), y.i, ir_int(ir, whole));
    ir_loop_end(ir, &y);
}

static void all_tiles(Con *c, const LanesPiece *at, const Panel *p)
{
    Ir *ir = c->ir;
    int rows = c->p->mr;
    if (c->p->taller == 0) {
        tiles_of_rows(c, at, p, rows);
        return;
    }
    IrIf tall = ir_if(ir, LLVMBuildICmp(ir->b, LLVMIntEQ, p->count, ir_int(ir, rows), ""));
    tiles_of_rows(c, at, p, rows);
    ir_else(ir, &tall);
    tiles_of_rows(c, at, p, rows - 1);
    ir_end_if(ir, &tall);
}

/* ---- operands ------------------------------------------------------------------------------ */

static void zero_places(Con *c, Lv to, int64_t n)
{
    Ir *ir = c->ir;
    if (n == 0)
        return;
    IrLoop x = ir_loop(ir, ir_int(ir, 0), ir_int(ir, n), 1, false);
    con_store_packed(c, LLVMConstNull(con_vector_type(c)), to, ir_mul(ir, x.i, c->p->vl));
    ir_loop_end(ir, &x);
}

/* Places from `first` on. The last vector of them may reach over the line's end, into what is
 * staged after it. */
static void stage_places(Con *c, const LanesPiece *at, Lv place, int64_t first, Lv to)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    zero_places(c, to, first);
    IrLoop x = ir_loop(ir, ir_int(ir, first), ir_int(ir, l->x.n), c->p->vl, false);
    con_lanes_stage(c, at, place, x.i, to);
    ir_loop_end(ir, &x);
}

static void stage_line(Con *c, const LanesPiece *at, Lv place, Lv to)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    if (!l->leaves_out) {
        stage_places(c, at, place, 0, to);
        return;
    }
    Lv past = LLVMBuildSub(ir->b, place, ir_int(ir, l->in_y.from), "");
    Lv lines = ir_int(ir, l->in_y.to - l->in_y.from);
    IrIf within = ir_if(ir, LLVMBuildICmp(ir->b, LLVMIntULT, past, lines, ""));
    stage_places(c, at, place, l->in_x.from, to);
    ir_else(ir, &within);
    zero_places(c, to, l->x.n);
    ir_end_if(ir, &within);
}

/* All blocks of the lines that at->lines from at->line0 on meet. */
static void stage(Con *c, LanesPiece *at)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    Lv digit[K_MAX_DIMS], one = ir_int(ir, 1);
    Lv more = ir_mul(ir, LLVMBuildSub(ir->b, at->lines, one, ""), l->y.s);
    int64_t window = l->rows - l->y.s * (l->lines_f - 1);
    IrLoop b = ir_loop(ir, ir_int(ir, 0), ir_int(ir, l->blocks.total), 1, false);
    walk_decode(&l->blocks, ir, b.i, digit);
    at->block = digit;
    IrLoop y = ir_loop(ir, ir_int(ir, 0), ir_add(ir, more, ir_int(ir, window)), 1, false);
    Lv row = ir_add(ir, ir_mul(ir, b.i, l->rows), y.i);
    Lv place = ir_add(ir, ir_mul(ir, at->line0, l->y.s), y.i);
    stage_line(c, at, place, con_lanes_at(c, l->b_at, ir_mul(ir, row, l->pitch)));
    ir_loop_end(ir, &y);
    ir_loop_end(ir, &b);
}

static Panel panel_at(Con *c, Lv panel)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    Panel p = {
        .at = ir_at_byte(ir, ir_off(ir, c->scratch, l->a_at), ir_mul(ir, panel, l->panel_bytes))};
    p.row0 = con_row_of(c, panel, &p.count);
    return p;
}

/* Packs all panels. Gives whether all of their elements are finite: where 0 times each is 0. */
static Lv pack(Con *c)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    Lt vec = con_vector_type(c), elem = p->type == F64 ? ir->f64 : ir->f32;
    IrLoop i = ir_loop(ir, ir_int(ir, 0), ir_int(ir, p->row_panels), 1, true);
    Panel to = panel_at(c, i.i);
    con_pack(c, &p->lanes->one, p->mr, to.row0, to.count, ir_int(ir, 0), ir_int(ir, p->n_k), to.at);
    ir_loop_end(ir, &i);
    if (!p->lanes->leaves_out)
        return NULL;
    Lv sum = ir_slot(ir, vec, p->es * p->vl);
    ir_store(ir, LLVMConstNull(vec), sum, p->es);
    i = ir_loop(ir, ir_int(ir, 0), ir_int(ir, p->row_panels), 1, true);
    to = panel_at(c, i.i);
    int64_t n = p->n_k * p->mr, last = n - p->vl;
    IrLoop e = ir_loop(ir, ir_int(ir, 0), ir_int(ir, n), p->vl, true);
    Lv from = ir_at_byte(ir, to.at, ir_mul(ir, ir_min(ir, e.i, ir_int(ir, last)), p->es));
    Lv zero = LLVMBuildFMul(ir->b, ir_load(ir, vec, from, p->es), LLVMConstNull(vec), "");
    ir_store(ir, LLVMBuildFAdd(ir->b, ir_load(ir, vec, sum, p->es), zero, ""), sum, p->es);
    ir_loop_end(ir, &e);
    ir_loop_end(ir, &i);
    Lv arg[] = {LLVMConstReal(elem, 0), ir_load(ir, vec, sum, p->es)};
    Lv all = ir_intrinsic(ir, "llvm.vector.reduce.fadd", &vec, 1, arg, 2);
    return LLVMBuildFCmp(ir->b, LLVMRealOEQ, all, LLVMConstReal(elem, 0), "");
}

/* ---- units --------------------------------------------------------------------------------- */

static void put_rows(Con *c, LanesPiece *at, const Panel *p)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    IrLoop r = ir_loop(ir, ir_int(ir, 0), p->count, 1, true);
    Lv digit[K_MAX_DIMS];
    at->each = ir_add(ir, p->row0, r.i);
    at->outs = ir_mul(ir, r.i, l->apart);
    walk_decode(&l->each, ir, at->each, digit);
    walk_set(&l->each, &c->g, digit);
    con_lanes_put(c, at);
    ir_loop_end(ir, &r);
}

static void emit_unit(Con *c, Lv unit, Lv finite)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    LanesPiece at;
    Lv digit[K_MAX_DIMS], part = con_lanes_unit(c, unit, &at, digit);
    at.line0 = ir_mul(ir, part, l->lines_f);
    Lv rest = LLVMBuildSub(ir->b, ir_int(ir, l->y.n_f), at.line0, "");
    at.lines = ir_min(ir, rest, ir_int(ir, l->lines_f));
    stage(c, &at);
    if (!l->once)
        finite = pack(c);
    IrLoop i = ir_loop(ir, ir_int(ir, 0), ir_int(ir, c->p->row_panels), 1, true);
    Panel p = panel_at(c, i.i);
    p.finite = finite;
    all_tiles(c, &at, &p);
    put_rows(c, &at, &p);
    ir_loop_end(ir, &i);
}

void con_images_units(Con *c, Lv begin, Lv end)
{
    Lv finite = c->p->lanes->once ? pack(c) : NULL;
    IrLoop u = ir_loop(c->ir, begin, end, 1, true);
    emit_unit(c, u.i, finite);
    ir_loop_end(c->ir, &u);
}
