/* Staging: where a window slides over an operand (convolution and the gradient of its
 * input), each element is packed once for every place of the window, through a section
 * that may have bounds to check and a chain of operations to do. Instead, a few rows of
 * the section's values are computed once into lane scratch, padding included, and each
 * panel is copied from there: one distance for each k, from a table, and no bounds.
 *
 *     row:  all places x of a pair (f, d) of sliding indices, for one place y of the next
 *           pair and one value of the other free indices; rows are numbered through
 *     stage[block of the other k][row][x]
 *
 * A window with step 2 has its even places first, then the odd ones, so that lanes lie
 * side by side. Columns of a panel are runs of a row: a vector is a load and a blend for each
 * run that it reaches into. */
#include <stdlib.h>
#include "con.h"

enum { MAX_WIDTH = STAGE_STRIPS * 64, MOST_UNROLLED = 96 /* instructions */ };

/* ---- rows ---------------------------------------------------------------------------- */

static Lv number(Con *c, Lv slot)
{
    return ir_load(c->ir, c->ir->i64, slot, 8);
}

/* The flat free index's row at the first place y, and place in its run. */
static Lv row_of_free(Con *c, const Side *s, Lv free, Lv *in_run)
{
    Ir *ir = c->ir;
    const Stage *g = &s->stage;
    Lv n = ir_int(ir, g->x.n_f), line = LLVMBuildUDiv(ir->b, free, n, "");
    *in_run = LLVMBuildSub(ir->b, free, ir_mul(ir, line, g->x.n_f), "");
    if (g->pairs == 1)
        return line;
    Lv image = LLVMBuildUDiv(ir->b, line, ir_int(ir, g->y.n_f), "");
    Lv y = LLVMBuildSub(ir->b, line, ir_mul(ir, image, g->y.n_f), "");
    Lv in_image = ir_mul(ir, y, g->y.s);
    return ir_add(ir, ir_mul(ir, image, g->y.n), in_image);
}

Val con_set_place(Con *c, const Slide *w, Lv at)
{
    Ir *ir = c->ir;
    bool by_free = w->s == 1;
    Lv place = ir_add(ir, at, ir_int(ir, w->lowest));
    if (!by_free && w->t < 0)
        place = LLVMBuildNeg(ir->b, place, "");
    c->g.value[w->f] = by_free ? place : ir_int(ir, 0);
    c->g.value[w->d] = by_free ? ir_int(ir, 0) : place;
    return by_free ? w->f : w->d;
}

/* Stores lanes at places x.. of a row. */
static void store_places(Con *c, const Stage *g, Lv value, Lv row, Lv x)
{
    Ir *ir = c->ir;
    int n = c->p->vl, pick[64];
    if (g->step == 1) {
        con_store_packed(c, value, row, x);
        return;
    }
    Lv half = LLVMBuildLShr(ir->b, x, ir_int(ir, 1), "");
    for (int odd = 0; odd < 2; odd++) {
        for (int l = 0; l < n / 2; l++)
            pick[l] = 2 * l + odd;
        Lv at = ir_add(ir, half, ir_int(ir, odd * g->plane));
        con_store_packed(c, ir_shuffle(ir, value, value, pick, n / 2), row, at);
    }
}

/* A row of the other free indices `digit`, at place y of the next pair; `next`: the index of the
 * block whose same row is asked for, or 0. */
typedef struct Line {
    Walk others;
    Lv digit[K_MAX_DIMS], y, to;
    Val next;
} Line;

/* The vector of places from x on. */
static void stage_places(Con *c, Side *s, Line *l, Lv x)
{
    Ir *ir = c->ir;
    const Stage *g = &s->stage;
    walk_set(&l->others, &c->g, l->digit);
    if (g->pairs == 2)
        con_set_place(c, &g->y, l->y);
    Lv live = g->x.n % c->p->vl == 0 ? NULL : LLVMBuildSub(ir->b, ir_int(ir, g->x.n), x, "");
    gen_vector(&c->g, c->p->vl, g->x.s == 1 ? g->x.f : g->x.d, live);
    con_set_place(c, &g->x, x);
    if (l->next != 0 && c->p->ask[ASK_NEXT].n == 0) /* far from what is read now */
        con_prefetch_along(c, s, g->x.s == 1 ? g->x.f : g->x.d, l->next);
    store_places(c, g, con_value(c, s), l->to, x);
    gen_scalar(&c->g);
}

/* Row `r`, for the block of other k whose indices are set. */
static void stage_row(Con *c, Side *s, Lv r, Lv to, Val next)
{
    Ir *ir = c->ir;
    const Stage *g = &s->stage;
    Line l = {.others = s->free, .to = to, .next = next};
    l.others.n -= g->pairs;
    Lv image = LLVMBuildUDiv(ir->b, r, ir_int(ir, g->y.n), "");
    walk_decode(&l.others, ir, image, l.digit);
    l.y = LLVMBuildSub(ir->b, r, ir_mul(ir, image, g->y.n), "");
    int64_t vectors = (g->x.n + c->p->vl - 1) / c->p->vl;
    if (vectors * (s->to - s->from) <= MOST_UNROLLED) { /* places are constants: so are masks */
        for (int64_t v = 0; v < vectors; v++)
            stage_places(c, s, &l, ir_int(ir, v * c->p->vl));
        return;
    }
    IrLoop x = ir_loop(ir, ir_int(ir, 0), ir_int(ir, g->x.n), c->p->vl, false);
    stage_places(c, s, &l, x.i);
    ir_loop_end(ir, &x);
}

/* Rows from..to of blocks k0..k1 of the other k; the rows of a block follow one another
 * in memory, most often. */
static void stage_rows(Con *c, Side *s, Lv from, Lv to, Lv k0, Lv k1)
{
    Ir *ir = c->ir;
    const Stage *g = &s->stage;
    Walk others = s->k;
    others.n -= g->k_pairs;
    int64_t row_bytes = g->pitch * c->p->es;
    IrLoop b = ir_loop(ir, k0, k1, 1, false);
    Lv digit[K_MAX_DIMS], block = LLVMBuildSub(ir->b, b.i, k0, "");
    walk_decode(&others, ir, b.i, digit);
    Lv at = ir_off(ir, c->scratch, g->at);
    at = ir_at_byte(ir, at, ir_mul(ir, block, g->rows * row_bytes));
    IrLoop r = ir_loop(ir, from, to, 1, false);
    walk_set(&others, &c->g, digit);
    Lv row = LLVMBuildSub(ir->b, r.i, from, "");
    stage_row(c, s, r.i, ir_at_byte(ir, at, ir_mul(ir, row, row_bytes)),
              others.n > 0 ? others.dim[others.n - 1] : 0);
    ir_loop_end(ir, &r);
    ir_loop_end(ir, &b);
}

void con_stage_reset(Con *c, Side *s)
{
    Ir *ir = c->ir;
    if (s->in_place || s->pack != PACK_STAGE || c->p->n_k == 0)
        return;
    if (s->stage.from == NULL) {
        s->stage.from = ir_slot(ir, ir->i64, 8);
        s->stage.to = ir_slot(ir, ir->i64, 8);
    }
    ir_store(ir, ir_int(ir, 0), s->stage.from, 8);
    ir_store(ir, ir_int(ir, 0), s->stage.to, 8);
}

/* The panel's rows are staged after this; gives the first staged one. */
static Lv ensure(Con *c, Side *s, Lv first, Lv last, Lv k0, Lv k1)
{
    Ir *ir = c->ir;
    const Stage *g = &s->stage;
    Lv staged_from = number(c, g->from), staged_to = number(c, g->to);
    Lv low = LLVMBuildICmp(ir->b, LLVMIntSLT, first, staged_from, "");
    Lv high = LLVMBuildICmp(ir->b, LLVMIntSGT, last, staged_to, "");
    IrIf f = ir_if(ir, LLVMBuildOr(ir->b, low, high, ""));
    Lv end = ir_min(ir, ir_add(ir, first, ir_int(ir, g->rows)), ir_int(ir, g->n_rows));
    ir_store(ir, first, g->from, 8);
    ir_store(ir, end, g->to, 8);
    stage_rows(c, s, first, end, k0, k1);
    ir_end_if(ir, &f);
    return number(c, g->from);
}

/* ---- panels -------------------------------------------------------------------------- */

Lv con_table(Con *c, Lv *at, int64_t n)
{
    Ir *ir = c->ir;
    Lv table = LLVMAddGlobal(ir->m, LLVMArrayType(ir->i32, (unsigned)n), "gradc.window");
    LLVMSetInitializer(table, LLVMConstArray(ir->i32, at, (unsigned)n));
    LLVMSetLinkage(table, LLVMPrivateLinkage);
    LLVMSetGlobalConstant(table, 1);
    return table;
}

/* By k: bytes from a panel's place at the window's lowest corner. */
static Lv distances(Con *c, const Side *s)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    const Stage *g = &s->stage;
    Lv *at = NEW_ARRAY(c->arena, Lv, p->n_k);
    for (int64_t k = 0; k < p->n_k; k++) {
        int64_t x = g->x.t * (k % g->x.n_d) - g->x.lowest, rest = k / g->x.n_d;
        int64_t y = g->y.t * (rest % g->y.n_d) - g->y.lowest, block = rest / g->y.n_d;
        int64_t elems = (block * g->rows + y) * g->pitch + x % g->step * g->plane + x / g->step;
        at[k] = ir_int32(ir, elems * p->es);
    }
    return con_table(c, at, p->n_k);
}

/* A vector of the panel's width: where its lanes are staged, at the lowest corner. Its lanes lie in
 * n runs, each from run[i] on; lanes before before[i] are those of earlier runs. */
typedef struct Strip {
    int n;
    Lv run[STAGE_RUNS], before[STAGE_RUNS];
    Lv over; /* it needs more than run 0 */
} Strip;

static Lv place_bytes(Con *c, const Side *s, Lv row, Lv in_run, Lv from)
{
    Ir *ir = c->ir;
    Lv elems = ir_mul(ir, LLVMBuildSub(ir->b, row, from, ""), s->stage.pitch);
    return ir_mul(ir, ir_add(ir, elems, in_run), c->p->es);
}

static Lv lanes_below(Con *c, Lv n)
{
    Ir *ir = c->ir;
    Lv all = ir_splat(ir, LLVMBuildTrunc(ir->b, n, ir->i32, ""), c->p->vl);
    return LLVMBuildICmp(ir->b, LLVMIntSLT, ir_iota(ir, ir->i32, c->p->vl, 1), all, "");
}

static Strip strip_at(Con *c, const Side *s, Lv base, Lv r0, Lv count, int at, Lv from)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    Strip t = {.n = con_stage_runs(p, &s->stage), .over = LLVMConstInt(ir->i1, 0, 0)};
    Lv in_run, none, vl = ir_int(ir, p->vl), last = ir_add(ir, count, ir_int(ir, -1));
    Lv first = ir_add(ir, r0, ir_min(ir, ir_int(ir, at), last)); /* lane 0 must exist */
    Lv row = row_of_free(c, s, first, &in_run);
    t.run[0] = ir_at_byte(ir, base, place_bytes(c, s, row, in_run, from));
    Lv split = LLVMBuildSub(ir->b, ir_int(ir, s->stage.x.n_f), in_run, "");
    Lv live = ir_min(ir, LLVMBuildSub(ir->b, count, ir_int(ir, at), ""), vl);
    for (int i = 1; i < t.n; i++) {
        Lv reached = LLVMBuildICmp(ir->b, LLVMIntSGT, live, split, "");
        row = row_of_free(c, s, ir_add(ir, first, split), &none);
        Lv back = LLVMBuildNeg(ir->b, split, "");
        Lv next = ir_at_byte(ir, base, place_bytes(c, s, row, back, from));
        t.run[i] = LLVMBuildSelect(ir->b, reached, next, t.run[0], "");
        t.before[i] = lanes_below(c, split);
        t.over = LLVMBuildOr(ir->b, t.over, reached, "");
        split = ir_add(ir, split, ir_int(ir, s->stage.x.n_f));
    }
    return t;
}

static Lv load_staged(Con *c, Lt type, Lv at, Lv distance)
{
    Lv x = ir_load(c->ir, type, ir_at_byte(c->ir, at, distance), c->p->es);
    gen_mark_scratch(c->ir, x);
    return x;
}

static Lv distance_at(Con *c, Lv table, Lv k)
{
    Ir *ir = c->ir;
    Lv x = ir_load(ir, ir->i32, ir_at_byte(ir, table, ir_mul(ir, k, 4)), 4);
    gen_mark_operand(ir, x);
    return LLVMBuildSExt(ir->b, x, ir->i64, "");
}

/* The partner of k; `has` NULL: there always is one. */
typedef struct Partner {
    Lv has, distance;
} Partner;

static Partner partner_of(Con *c, Lv table, Lv k, Lv kn)
{
    Ir *ir = c->ir;
    Partner y = {NULL, NULL};
    if (!c->p->pairs)
        return y;
    Lv next = ir_add(ir, k, ir_int(ir, 1));
    if (con_lacks_partner(c->p)) { /* the table may end here */
        y.has = con_has_partner(c, k, kn);
        next = LLVMBuildSelect(ir->b, y.has, next, k, "");
    }
    y.distance = distance_at(c, table, next);
    return y;
}

static Lv with_partner(Con *c, const Side *s, const Partner *of, Lv x, Lv y)
{
    return con_pair(c, x, of->has == NULL ? y : con_partner(c, s, of->has, y));
}

static Lv staged_strip(Con *c, const Strip *strip, bool joined, Lv distance)
{
    Lt vec = ir_vec(c->p->type == F64 ? c->ir->f64 : c->ir->f32, c->p->vl);
    Lv x = load_staged(c, vec, strip->run[0], distance);
    for (int i = 1; joined && i < strip->n; i++) {
        Lv next = load_staged(c, vec, strip->run[i], distance);
        x = LLVMBuildSelect(c->ir->b, strip->before[i], x, next, "");
    }
    return x;
}

/* Whole vectors are stored, as in con_pack.c. */
static void copy_strips(Con *c, const Side *s, int width, const Strip *strip, bool joined, Lv table,
                        Lv kn, Lv dst)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    IrLoop k = ir_loop(ir, ir_int(ir, 0), kn, p->pairs ? 2 : 1, false);
    Lv distance = distance_at(c, table, k.i);
    Partner y = partner_of(c, table, k.i, kn);
    Lv row = p->pairs ? LLVMBuildLShr(ir->b, k.i, ir_int(ir, 1), "") : k.i;
    Lv line = ir_mul(ir, row, width);
    for (int j = 0; j * p->vl < width; j++) {
        Lv x = staged_strip(c, &strip[j], joined, distance);
        if (p->pairs)
            x = with_partner(c, s, &y, x, staged_strip(c, &strip[j], joined, y.distance));
        con_store_packed(c, x, dst, ir_add(ir, line, ir_int(ir, j * p->vl)));
    }
    ir_loop_end(ir, &k);
}

static void copy_vectors(Con *c, const Side *s, int width, Lv base, Lv r0, Lv count, Lv from,
                         Lv table, Lv kn, Lv dst)
{
    Ir *ir = c->ir;
    Strip strip[STAGE_STRIPS];
    Lv over = LLVMConstInt(ir->i1, 0, 0);
    for (int j = 0; j * c->p->vl < width; j++) {
        strip[j] = strip_at(c, s, base, r0, count, j * c->p->vl, from);
        over = LLVMBuildOr(ir->b, over, strip[j].over, "");
    }
    if (s->stage.x.n_f < c->p->vl) { /* most do */
        copy_strips(c, s, width, strip, true, table, kn, dst);
        return;
    }
    IrIf f = ir_if(ir, over);
    copy_strips(c, s, width, strip, true, table, kn, dst);
    ir_else(ir, &f);
    copy_strips(c, s, width, strip, false, table, kn, dst);
    ir_end_if(ir, &f);
}

/* Where runs are much shorter than a vector. */
static void copy_elements(Con *c, const Side *s, int width, Lv base, Lv r0, Lv count, Lv from,
                          Lv table, Lv kn, Lv dst)
{
    Ir *ir = c->ir;
    Lt elem = c->p->type == F64 ? ir->f64 : ir->f32;
    IrLoop r = ir_loop(ir, ir_int(ir, 0), count, 1, false);
    Lv in_run, row = row_of_free(c, s, ir_add(ir, r0, r.i), &in_run);
    Lv at = ir_at_byte(ir, base, place_bytes(c, s, row, in_run, from));
    IrLoop k = ir_loop(ir, ir_int(ir, 0), kn, c->p->pairs ? 2 : 1, false);
    Lv x = load_staged(c, elem, at, distance_at(c, table, k.i)), line = k.i;
    if (c->p->pairs) {
        Partner y = partner_of(c, table, k.i, kn);
        x = with_partner(c, s, &y, x, load_staged(c, elem, at, y.distance));
        line = LLVMBuildLShr(ir->b, k.i, ir_int(ir, 1), "");
    }
    con_store_packed(c, x, dst, ir_add(ir, ir_mul(ir, line, width), r.i));
    ir_loop_end(ir, &k);
    ir_loop_end(ir, &r);
}

/* The place of a free index's element at k = 0. */
static Lv column_at(Con *c, const Side *s, Lv base, Lv free, Lv from)
{
    Ir *ir = c->ir;
    const Stage *g = &s->stage;
    Lv in_run, row = row_of_free(c, s, free, &in_run), x = ir_mul(ir, in_run, g->x.s);
    if (g->step == 2) {
        Lv odd = LLVMBuildAnd(ir->b, x, ir_int(ir, 1), "");
        x = ir_add(ir, LLVMBuildLShr(ir->b, x, ir_int(ir, 1), ""), ir_mul(ir, odd, g->plane));
    }
    return ir_at_byte(ir, base, place_bytes(c, s, row, x, from));
}

/* Up to vl consecutive k of all the panel's columns: whole vectors are stored, and what
 * is too much of them is written over by the next ones. */
static void copy_block(Con *c, int width, Lv *column, Lv distance, Lv to)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    int lanes = p->vl, groups = (width + lanes - 1) / lanes;
    Lt vec = ir_vec(p->type == F64 ? ir->f64 : ir->f32, lanes);
    Lv x[MAX_WIDTH];
    for (int j = 0; j < groups * lanes; j++)
        x[j] = j < width ? load_staged(c, vec, column[j], distance) : LLVMGetPoison(vec);
    for (int g = 0; g < groups; g++)
        ir_transpose(c->ir, x + g * lanes, lanes);
    for (int j = 0; j < lanes; j++)
        for (int g = 0; g < groups; g++)
            con_store_packed(c, x[g * lanes + j], to, ir_int(ir, j * width + g * lanes));
}

/* Loops over blocks of the other k, lines of the window, and vectors of a line. */
static void copy_transposed(Con *c, const Side *s, int width, Lv base, Lv r0, Lv count, Lv from,
                            Lv k0, Lv kn, Lv dst)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    const Stage *g = &s->stage;
    Lv column[MAX_WIDTH], last = ir_add(ir, count, ir_int(ir, -1));
    for (int j = 0; j < width; j++)
        column[j] = column_at(c, s, base, ir_add(ir, r0, ir_min(ir, ir_int(ir, j), last)), from);
    Lv n = ir_int(ir, g->x.n_d), end = ir_add(ir, k0, kn), one = ir_int(ir, 1);
    Lv first_line = LLVMBuildUDiv(ir->b, k0, n, "");
    Lv end_line = ir_add(ir, LLVMBuildUDiv(ir->b, ir_add(ir, end, ir_int(ir, -1)), n, ""), one);
    IrLoop l = ir_loop(ir, first_line, end_line, 1, false);
    Lv block = LLVMBuildUDiv(ir->b, l.i, ir_int(ir, g->y.n_d), "");
    Lv y = LLVMBuildSub(ir->b, l.i, ir_mul(ir, block, g->y.n_d), "");
    Lv in_block = ir_mul(ir, y, g->y.t);
    Lv row = ir_add(ir, ir_mul(ir, block, g->rows), in_block);
    row = ir_add(ir, row, ir_int(ir, -g->y.lowest));
    Lv line = ir_mul(ir, row, g->pitch), start = ir_mul(ir, l.i, g->x.n_d);
    Lv skip = LLVMBuildSub(ir->b, k0, start, ""); /* of the first line */
    Lv begin = LLVMBuildSelect(ir->b, LLVMBuildICmp(ir->b, LLVMIntSGT, skip, ir_int(ir, 0), ""),
                               skip, ir_int(ir, 0), "");
    IrLoop x = ir_loop(ir, begin, ir_min(ir, n, LLVMBuildSub(ir->b, end, start, "")), p->vl, false);
    Lv distance = ir_mul(ir, ir_add(ir, line, x.i), p->es);
    Lv k = LLVMBuildSub(ir->b, ir_add(ir, start, x.i), k0, "");
    copy_block(c, width, column, distance,
               ir_at_byte(ir, dst, ir_mul(ir, k, (int64_t)width * p->es)));
    ir_loop_end(ir, &x);
    ir_loop_end(ir, &l);
}

Lv con_stage_window(Con *c, Side *s, Lv first, Lv last, Lv k0, Lv kn, Lv *from)
{
    Ir *ir = c->ir;
    const Stage *g = &s->stage;
    Lv window = ir_int(ir, g->x.n_d * g->y.n_d), none;
    Lv block = LLVMBuildUDiv(ir->b, k0, window, "");
    Lv last_k = ir_add(ir, ir_add(ir, k0, kn), ir_int(ir, -1));
    Lv end = ir_add(ir, LLVMBuildUDiv(ir->b, last_k, window, ""), ir_int(ir, 1));
    Lv low = row_of_free(c, s, first, &none), high = row_of_free(c, s, last, &none);
    high = ir_add(ir, high, ir_int(ir, llabs(g->y.t) * (g->y.n_d - 1) + 1));
    *from = ensure(c, s, low, high, block, end);
    int64_t block_bytes = g->rows * g->pitch * c->p->es;
    Lv back = LLVMBuildNeg(ir->b, ir_mul(ir, block, block_bytes), "");
    return ir_at_byte(ir, ir_off(ir, c->scratch, g->at), back);
}

Lv con_line(Con *c, Lv padded, Lv *in_line)
{
    Ir *ir = c->ir;
    Lv n = ir_int(ir, c->p->padded), line = LLVMBuildUDiv(ir->b, padded, n, "");
    *in_line = LLVMBuildSub(ir->b, padded, ir_mul(ir, line, c->p->padded), "");
    return ir_add(ir, ir_mul(ir, line, c->p->line), *in_line);
}

Lv con_stage_direct(Con *c, Side *s, Lv col0, Lv cols, Lv k0, Lv kn, Lv to)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    Lv none, from, in_run, end = ir_add(ir, ir_add(ir, col0, cols), ir_int(ir, -p->vl));
    Lv first = con_line(c, col0, &none), last = con_line(c, end, &none);
    Lv base = con_stage_window(c, s, first, last, k0, kn, &from);
    for (int v = 0; v < p->nv; v++) {
        Lv at = ir_min(ir, ir_add(ir, col0, ir_int(ir, v * p->vl)), end); /* it must exist */
        Lv row = row_of_free(c, s, con_line(c, at, &none), &in_run);
        Lv place = ir_at_byte(ir, base, place_bytes(c, s, row, in_run, from));
        ir_store(ir, place, ir_off(ir, to, v * 8), 8);
    }
    return ir_at_byte(ir, distances(c, s), ir_mul(ir, k0, 4));
}

void con_stage_pack(Con *c, Side *s, int width, Lv r0, Lv count, Lv k0, Lv kn, Lv dst)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    const Stage *g = &s->stage;
    Lv last = ir_add(ir, ir_add(ir, r0, count), ir_int(ir, -1)), from;
    Lv base = con_stage_window(c, s, r0, last, k0, kn, &from);
    if (g->along_k) {
        copy_transposed(c, s, width, base, r0, count, from, k0, kn, dst);
        return;
    }
    Lv table = ir_at_byte(ir, distances(c, s), ir_mul(ir, k0, 4));
    if (con_stage_runs(p, g) > STAGE_RUNS)
        copy_elements(c, s, width, base, r0, count, from, table, kn, dst);
    else
        copy_vectors(c, s, width, base, r0, count, from, table, kn, dst);
}
