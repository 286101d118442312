/* Lanes along a batch index: where operands share an index that nothing is summed over (channels of
 * a depthwise convolution), and one of them has no other, or few (weights; in the gradient of
 * those, the cotangent). A tile of rows by columns would be one row high, and a line of few columns
 * fills no vector. Here a vector has one result of vl channels:
 *
 *     for a group of vl channels, other free indices (images), some lines of results
 *         for other k (images), some lines of terms
 *             stage the lines of `many` that the window meets, transposed   [row][x][channel]
 *             for each free index of `one`
 *                 pack `one`                        [k][channel]
 *                 for a tile of results: chains of fma in registers
 *         for each: transpose the results, and the epilogue of each channel
 *
 * Where channels lie together in memory nothing is transposed (con_along.c), and the epilogue
 * follows each line of tiles, whose results no cache but the first has seen, if they have all of
 * their terms.
 *
 * The chain of a result is that of any tile: k in order, leaves folded left to right. */
#include "con.h"

Lv con_lanes_at(Con *c, int64_t base, Lv vectors)
{
    Ir *ir = c->ir;
    Lv at = ir_off(ir, c->scratch, base);
    return ir_at_byte(ir, at, ir_mul(ir, vectors, (int64_t)c->p->vl * c->p->es));
}

static Lv minus(Con *c, Lv x, Lv y)
{
    return LLVMBuildSub(c->ir->b, x, y, "");
}

/* Column of a line's first result, as the epilogue counts them. */
static Lv first_column(Con *c, const LanesPiece *at, Lv line)
{
    const Lanes *l = c->p->lanes;
    Lv lines = ir_add(c->ir, ir_mul(c->ir, at->flat, l->y.n_f), line);
    return ir_mul(c->ir, lines, l->x.n_f);
}

/* The epilogue of so many lines of results that lie along. */
static void put_lines(Con *c, const LanesPiece *at, Lv line, Lv lines)
{
    const Lanes *l = c->p->lanes;
    Lv sums = con_lanes_at(c, c->p->sums ? l->s_at : l->o_at, at->outs);
    con_along_put(c, at, sums, first_column(c, at, line), ir_mul(c->ir, lines, l->x.n_f));
}

/* ---- the tiles of a piece ----------------------------------------------------------------- */

/* Terms that follow one another, in `lines` of so many. */
typedef struct Terms {
    Lv one, many; /* many: of result 0 */
    Lv outs;      /* LanesPiece.outs */
    Lv lines, terms, resume;
} Terms;

static void call_tile(Con *c, const Terms *t, int lines, int cols, Lv line, Lv col)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    int64_t vec = (int64_t)c->p->vl * c->p->es;
    Lv in_line = ir_mul(ir, col, l->x.s * vec);
    Lv from = ir_add(ir, ir_mul(ir, line, l->y.s * l->pitch * vec), in_line);
    Lv out_line = l->at_once ? ir_int(ir, 0) : ir_mul(ir, line, l->x.n_f);
    Lv to = ir_add(ir, t->outs, ir_add(ir, out_line, col));
    Lv arg[] = {
        t->one,   ir_at_byte(ir, t->many, from), con_lanes_at(c, l->o_at, to), t->lines, t->terms,
        t->resume};
    ir_call(ir, con_lanes_tile(c, lines, cols), arg, 6);
}

/* What the epilogue of a tile's results will meet. */
static void ask_ahead(Con *c, const LanesPiece *at, int lines, int cols, Lv line, Lv col)
{
    Lv first = ir_add(c->ir, first_column(c, at, ir_add(c->ir, at->line0, line)), col);
    for (int i = 0; i < lines; i++)
        con_along_ask(c, at, ir_add(c->ir, first, ir_int(c->ir, i * c->p->lanes->x.n_f)), cols);
}

static void one_tile(Con *c, const Terms *t, const LanesPiece *at, int lines, int cols, Lv line,
                     Lv col)
{
    if (c->p->lanes->at_once && c->p->lanes->out_far)
        ask_ahead(c, at, lines, cols, line, col);
    call_tile(c, t, lines, cols, line, col);
}

static void line_of_tiles(Con *c, const Terms *t, const LanesPiece *at, int lines, Lv line)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    int64_t cols = l->tile_cols, whole = l->x.n_f / cols * cols;
    IrLoop x = ir_loop(ir, ir_int(ir, 0), ir_int(ir, whole), cols, false);
    one_tile(c, t, at, lines, (int)cols, line, x.i);
    ir_loop_end(ir, &x);
    if (whole < l->x.n_f)
        one_tile(c, t, at, lines, (int)(l->x.n_f - whole), line, ir_int(ir, whole));
}

static void some_lines(Con *c, const Terms *t, const LanesPiece *at, int lines, Lv line)
{
    line_of_tiles(c, t, at, lines, line);
    if (c->p->lanes->at_once)
        put_lines(c, at, ir_add(c->ir, at->line0, line), ir_int(c->ir, lines));
}

static void all_tiles(Con *c, const Terms *t, const LanesPiece *at)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    Lv rest = LLVMBuildURem(ir->b, at->lines, ir_int(ir, l->tile_lines), "");
    Lv whole = minus(c, at->lines, rest);
    IrLoop y = ir_loop(ir, ir_int(ir, 0), whole, l->tile_lines, true);
    some_lines(c, t, at, l->tile_lines, y.i);
    ir_loop_end(ir, &y);
    if (l->tile_lines == 1)
        return;
    IrLoop z = ir_loop(ir, whole, at->lines, 1, true);
    some_lines(c, t, at, 1, z.i);
    ir_loop_end(ir, &z);
}

/* ---- operands ------------------------------------------------------------------------------ */

/* The first place y that is staged. */
static Lv first_place(Con *c, const LanesPiece *at)
{
    Ir *ir = c->ir;
    const Slide *y = &c->p->lanes->y;
    Lv last = ir_add(ir, ir_add(ir, at->term0, at->term_lines), ir_int(ir, -1));
    Lv in_window = ir_mul(ir, y->t < 0 ? last : at->term0, y->t);
    Lv place = ir_add(ir, ir_mul(ir, at->line0, y->s), in_window);
    return ir_add(ir, place, ir_int(ir, -y->lowest));
}

void con_lanes_set(Con *c, const LanesPiece *at, Lv y, Lv x)
{
    Lanes *l = c->p->lanes;
    walk_set(&l->others, &c->g, at->other);
    walk_set(&l->blocks, &c->g, at->block);
    if (l->pairs == 2)
        con_set_place(c, &l->y, y);
    con_set_place(c, &l->x, x);
    if (l->split > 0) {
        Lv before = ir_mul(c->ir, at->other[l->others.n - 1], l->split);
        c->g.value[l->x.f] = ir_add(c->ir, before, x);
    }
}

/* vl places of a line of all channels: vectors along the places, transposed. */
void con_lanes_stage(Con *c, const LanesPiece *at, Lv place, Lv x, Lv to)
{
    Ir *ir = c->ir;
    Lanes *l = c->p->lanes;
    int vl = c->p->vl;
    Lv v[64], last = ir_add(ir, at->live, ir_int(ir, -1));
    int64_t first = l->leaves_out ? l->in_x.from : 0; /* of the line's places that are staged */
    Lv live = (l->x.n - first) % vl == 0 ? NULL : minus(c, ir_int(ir, l->x.n), x);
    gen_vector(&c->g, vl, l->x.s == 1 ? l->x.f : l->x.d, live);
    con_lanes_set(c, at, place, x);
    for (int j = 0; j < vl; j++) {
        c->g.value[l->lane] = ir_add(ir, at->lane0, ir_min(ir, ir_int(ir, j), last));
        v[j] = con_value(c, &l->many);
    }
    gen_scalar(&c->g);
    ir_transpose(c->ir, v, vl);
    for (int j = 0; j < vl; j++)
        con_store_packed(c, v[j], to, ir_mul(ir, ir_add(ir, x, ir_int(ir, j)), vl));
}

static void stage_lines(Con *c, const LanesPiece *at)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    Lv first = first_place(c, at);
    Lv n = ir_add(
        ir, ir_mul(ir, ir_add(ir, at->lines, ir_int(ir, -1)), l->y.s),
        ir_mul(ir, ir_add(ir, at->term_lines, ir_int(ir, -1)), l->y.t < 0 ? -l->y.t : l->y.t));
    IrLoop y = ir_loop(ir, ir_int(ir, 0), ir_add(ir, n, ir_int(ir, 1)), 1, false);
    Lv to = con_lanes_at(c, l->b_at, ir_mul(ir, y.i, l->pitch));
    if (l->many_along) {
        con_along_stage(c, at, ir_add(ir, first, y.i), to);
    } else {
        IrLoop x = ir_loop(ir, ir_int(ir, 0), ir_int(ir, l->x.n), c->p->vl, false);
        con_lanes_stage(c, at, ir_add(ir, first, y.i), x.i, to);
        ir_loop_end(ir, &x);
    }
    ir_loop_end(ir, &y);
}

/* ---- chains -------------------------------------------------------------------------------- */

/* Terms from `k` on, of a piece that begins with k0, in result 0's window. */
static Terms terms_at(Con *c, const LanesPiece *at, Lv k0, Lv k)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    Lv ahead = minus(c, k, k0), n = ir_int(ir, l->x.n_d);
    Lv line = LLVMBuildUDiv(ir->b, ahead, n, ""), x = LLVMBuildURem(ir->b, ahead, n, "");
    Lv row = ir_mul(ir, line, l->y.t);
    if (l->y.t < 0) /* the last line of terms meets the first one that is staged */
        row = ir_add(ir, row, ir_mul(ir, ir_add(ir, at->term_lines, ir_int(ir, -1)), -l->y.t));
    Lv place = ir_add(ir, ir_mul(ir, x, l->x.t), ir_int(ir, -l->x.lowest));
    int64_t from_line = l->one_along ? l->one_y : l->x.n_d * c->p->vl;
    int64_t from_term = l->one_along ? l->one_x : c->p->vl;
    Lv elems = ir_add(ir, ir_mul(ir, line, from_line), ir_mul(ir, x, from_term));
    Lv one = ir_at_byte(ir, at->one, ir_mul(ir, elems, c->p->es));
    return (Terms){.one = one,
                   .outs = at->outs,
                   .many = con_lanes_at(c, l->b_at, ir_add(ir, ir_mul(ir, row, l->pitch), place))};
}

/* s = first ? o : s + o, of n results from outs on */
static void fold_sums(Con *c, Lv outs, Lv n, Lv first)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    Lt vec = con_vector_type(c);
    IrLoop i = ir_loop(ir, outs, ir_add(ir, outs, n), 1, false);
    Lv to = con_lanes_at(c, l->s_at, i.i);
    Lv x = ir_load(ir, vec, con_lanes_at(c, l->o_at, i.i), c->p->es);
    Lv sum = LLVMBuildFAdd(ir->b, ir_load(ir, vec, to, c->p->es), x, "");
    ir_store(ir, LLVMBuildSelect(ir->b, first, x, sum, ""), to, c->p->es);
    ir_loop_end(ir, &i);
}

/* A leaf's part of the terms [k0, end): whole lines where there are any, else the rest of one. */
static Lv leaf_part(Con *c, const LanesPiece *at, Lv k0, Lv k, Lv end)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    const Lanes *l = p->lanes;
    Lv leaf = ir_int(ir, p->leaf), line = ir_int(ir, l->x.n_d), one = ir_int(ir, 1);
    Lv leaf_end = ir_mul(ir, ir_add(ir, LLVMBuildUDiv(ir->b, k, leaf, ""), one), p->leaf);
    Lv to = ir_min(ir, leaf_end, end);
    Terms t = terms_at(c, at, k0, k);
    Lv n = minus(c, to, k), in_leaf = LLVMBuildURem(ir->b, k, leaf, "");
    t.lines = LLVMBuildUDiv(ir->b, n, line, "");
    t.terms = line;
    if (p->leaf % l->x.n_d != 0) {
        Lv in_line = LLVMBuildURem(ir->b, k, line, ""), zero = ir_int(ir, 0);
        Lv begins = LLVMBuildICmp(ir->b, LLVMIntEQ, in_line, zero, "");
        Lv some = LLVMBuildICmp(ir->b, LLVMIntUGE, n, line, "");
        Lv whole = LLVMBuildAnd(ir->b, begins, some, "");
        Lv part = ir_min(ir, n, minus(c, line, in_line));
        Lv lines = ir_mul(ir, t.lines, l->x.n_d);
        t.lines = LLVMBuildSelect(ir->b, whole, t.lines, one, "");
        t.terms = LLVMBuildSelect(ir->b, whole, line, part, "");
        to = ir_add(ir, k, LLVMBuildSelect(ir->b, whole, lines, part, ""));
    }
    t.resume = LLVMBuildICmp(ir->b, LLVMIntNE, in_leaf, ir_int(ir, 0), "");
    all_tiles(c, &t, at);
    Lv ends = LLVMBuildICmp(ir->b, LLVMIntEQ, to, leaf_end, "");
    Lv last = LLVMBuildICmp(ir->b, LLVMIntEQ, to, ir_int(ir, p->n_k), "");
    IrIf f = ir_if(ir, LLVMBuildOr(ir->b, ends, last, ""));
    fold_sums(c, at->outs, ir_mul(ir, at->lines, l->x.n_f), con_less(c, k, leaf));
    ir_end_if(ir, &f);
    return to;
}

static void leaf_parts(Con *c, const LanesPiece *at, Lv k0, Lv end)
{
    Ir *ir = c->ir;
    Lb before = ir_here(ir), head = ir_block(ir, "leaf"), after = ir_block(ir, "leaves");
    ir_br(ir, head);
    ir_at(ir, head);
    Lv k = con_handed_on(ir, k0, before), next = leaf_part(c, at, k0, k, end);
    Lb here = ir_here(ir);
    LLVMAddIncoming(k, &next, &here, 1);
    ir_cond(ir, con_less(c, next, end), head, after);
    ir_at(ir, after);
}

/* Where `one` is packed: room for all groups and each of `each`, or for one at a time. */
static Lv packed_at(Con *c, const LanesPiece *at)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    Lv which = ir_add(ir, ir_mul(ir, at->group, l->each.total), at->each);
    return con_lanes_at(c, l->a_at, ir_mul(ir, which, l->once ? l->packed : 0));
}

static void pack_one(Con *c, const LanesPiece *at, Lv k0, Lv kn)
{
    con_pack(c, &c->p->lanes->one, c->p->vl, at->lane0, at->live, k0, kn, at->one);
}

/* What is done for each of `each` in the unit. */
typedef void ForEach(Con *c, LanesPiece *at);

static void set_each(Con *c, LanesPiece *at, Lv each)
{
    const Walk *w = &c->p->lanes->each;
    Lv digit[K_MAX_DIMS];
    at->each = each;
    walk_decode(w, c->ir, each, digit);
    walk_set(w, &c->g, digit);
}

static void for_each(Con *c, LanesPiece *at, ForEach *f)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    at->outs = ir_int(ir, 0);
    if (l->each.total == 1) {
        set_each(c, at, ir_int(ir, 0));
        f(c, at);
        return;
    }
    IrLoop e = ir_loop(ir, at->each_from, at->each_to, 1, false);
    at->outs = ir_mul(ir, minus(c, e.i, at->each_from), l->apart);
    set_each(c, at, e.i);
    f(c, at);
    ir_loop_end(ir, &e);
}

/* Some lines of terms of a block, which have been staged. */
static void some_terms(Con *c, LanesPiece *at)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    Lanes *l = p->lanes;
    Lv line = ir_add(ir, ir_mul(ir, at->flat_block, l->y.n_d), at->term0);
    Lv k0 = ir_mul(ir, line, l->x.n_d), kn = ir_mul(ir, at->term_lines, l->x.n_d);
    at->one = l->one_along ? con_along_one(c, at) : packed_at(c, at);
    if (!l->one_along && !l->once)
        pack_one(c, at, k0, kn);
    if (p->sums) {
        leaf_parts(c, at, k0, ir_add(ir, k0, kn));
        return;
    }
    Terms t = terms_at(c, at, k0, k0);
    t.lines = at->term_lines;
    t.terms = ir_int(ir, l->x.n_d);
    t.resume = LLVMBuildICmp(ir->b, LLVMIntNE, k0, ir_int(ir, 0), "");
    all_tiles(c, &t, at);
}

/* ---- results --------------------------------------------------------------------------------- */

static void transpose_results(Con *c, int64_t from, Lv outs, Lv n)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    int vl = c->p->vl;
    IrLoop i = ir_loop(ir, ir_int(ir, 0), n, vl, false);
    Lv v[64], to = ir_off(ir, c->scratch, l->t_at);
    for (int j = 0; j < vl; j++)
        v[j] = ir_load(ir, con_vector_type(c),
                       con_lanes_at(c, from, ir_add(ir, ir_add(ir, outs, i.i), ir_int(ir, j))),
                       c->p->es);
    ir_transpose(c->ir, v, vl);
    for (int j = 0; j < vl; j++)
        con_store_packed(c, v[j], to, ir_add(ir, i.i, ir_int(ir, j * l->line)));
    ir_loop_end(ir, &i);
}

void con_lanes_put(Con *c, LanesPiece *at)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    const Lanes *l = p->lanes;
    if (l->out_along) {
        put_lines(c, at, at->line0, at->lines);
        return;
    }
    Lv n = ir_mul(ir, at->lines, l->x.n_f);
    transpose_results(c, p->sums ? l->s_at : l->o_at, at->outs, n);
    IrLoop j = ir_loop(ir, ir_int(ir, 0), at->live, 1, false);
    Lv from = ir_off(ir, c->scratch, l->t_at);
    from = ir_at_byte(ir, from, ir_mul(ir, j.i, l->line * p->es));
    c->g.value[l->lane] = ir_add(ir, at->lane0, j.i);
    con_epilogue(c, from, at->each, ir_int(ir, 1), first_column(c, at, at->line0), n);
    ir_loop_end(ir, &j);
}

/* ---- units -------------------------------------------------------------------------------- */

static void all_terms(Con *c, LanesPiece *at)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    Lv digit[K_MAX_DIMS];
    IrLoop b = ir_loop(ir, ir_int(ir, 0), ir_int(ir, l->blocks.total), 1, false);
    walk_decode(&l->blocks, ir, b.i, digit);
    at->block = digit;
    at->flat_block = b.i;
    IrLoop d = ir_loop(ir, ir_int(ir, 0), ir_int(ir, l->y.n_d), l->lines_d, false);
    at->term0 = d.i;
    at->term_lines = ir_min(ir, minus(c, ir_int(ir, l->y.n_d), d.i), ir_int(ir, l->lines_d));
    stage_lines(c, at);
    for_each(c, at, some_terms);
    ir_loop_end(ir, &d);
    ir_loop_end(ir, &b);
}

/* Group of channels, part of `each` and other free indices of a unit; sets the other batch
 * indices. Parts that follow one another are of the same staged lines. */
static Lv split_unit(Con *c, Lv unit, Lv *part, Lv *other)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    const Lanes *l = p->lanes;
    const KContract *con = &p->k->con;
    Lv parts = ir_int(ir, l->parts), others = ir_int(ir, l->others.total);
    Lv groups = ir_int(ir, l->groups), flat = LLVMBuildUDiv(ir->b, unit, parts, "");
    *part = LLVMBuildURem(ir->b, unit, parts, "");
    Lv group = LLVMBuildURem(ir->b, flat, groups, "");
    flat = LLVMBuildUDiv(ir->b, flat, groups, "");
    *other = LLVMBuildURem(ir->b, flat, others, "");
    flat = LLVMBuildUDiv(ir->b, flat, others, "");
    for (int d = con->n[K_B]; d-- > 0;) {
        Val v = con->dim[K_B][d];
        if (v == l->lane)
            continue;
        Lv extent = ir_int(ir, p->k->inst.at[v].imm.i);
        c->g.value[v] = LLVMBuildURem(ir->b, flat, extent, "");
        flat = LLVMBuildUDiv(ir->b, flat, extent, "");
    }
    return group;
}

static LanesPiece piece_of(Con *c, Lv group)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    const Lanes *l = p->lanes;
    LanesPiece at = {.lane0 = ir_mul(ir, group, p->vl)};
    at.live = ir_min(ir, minus(c, ir_int(ir, l->extent), at.lane0), ir_int(ir, p->vl));
    at.group = group;
    return at;
}

Lv con_lanes_unit(Con *c, Lv unit, LanesPiece *at, Lv *digit)
{
    Lv part, other, group = split_unit(c, unit, &part, &other);
    *at = piece_of(c, group);
    at->other = digit;
    at->flat = other;
    walk_decode(&c->p->lanes->others, c->ir, other, digit);
    return part;
}

/* So many units from `unit` on, of the same staged lines. */
static void emit_units(Con *c, Lv unit, Lv n)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    LanesPiece at;
    Lv digit[K_MAX_DIMS], part = con_lanes_unit(c, unit, &at, digit);
    at.each_from = ir_mul(ir, part, l->each_n);
    Lv to = ir_add(ir, at.each_from, ir_mul(ir, n, l->each_n));
    at.each_to = ir_min(ir, to, ir_int(ir, l->each.total));
    IrLoop f = ir_loop(ir, ir_int(ir, 0), ir_int(ir, l->y.n_f), l->lines_f, false);
    at.line0 = f.i;
    at.lines = ir_min(ir, minus(c, ir_int(ir, l->y.n_f), f.i), ir_int(ir, l->lines_f));
    all_terms(c, &at);
    if (!l->at_once)
        for_each(c, &at, con_lanes_put);
    ir_loop_end(ir, &f);
}

/* For the groups of these units, each of which is met again and again. */
static void pack_once(Con *c, Lv begin, Lv end)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    Lv groups = ir_int(ir, l->groups), parts = ir_int(ir, l->parts);
    Lv first = LLVMBuildUDiv(ir->b, begin, parts, "");
    Lv last = LLVMBuildUDiv(ir->b, ir_add(ir, end, ir_int(ir, l->parts - 1)), parts, "");
    IrLoop i = ir_loop(ir, ir_int(ir, 0), ir_min(ir, minus(c, last, first), groups), 1, true);
    LanesPiece at = piece_of(c, LLVMBuildURem(ir->b, ir_add(ir, first, i.i), groups, ""));
    IrLoop e = ir_loop(ir, ir_int(ir, 0), ir_int(ir, l->each.total), 1, false);
    set_each(c, &at, e.i);
    at.one = packed_at(c, &at);
    pack_one(c, &at, ir_int(ir, 0), ir_int(ir, c->p->n_k));
    ir_loop_end(ir, &e);
    ir_loop_end(ir, &i);
}

void con_lanes_units(Con *c, Lv begin, Lv end)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    if (l->images) {
        con_images_units(c, begin, end);
        return;
    }
    if (l->once)
        pack_once(c, begin, end);
    Lb before = ir_here(ir), head = ir_block(ir, "units"), done = ir_block(ir, "done");
    ir_cond(ir, con_less(c, begin, end), head, done);
    ir_at(ir, head);
    Lv u = con_handed_on(ir, begin, before), parts = ir_int(ir, l->parts), n = ir_int(ir, 1);
    if (l->room > l->each_n)
        n = ir_min(ir, minus(c, parts, LLVMBuildURem(ir->b, u, parts, "")), minus(c, end, u));
    emit_units(c, u, n);
    Lv next = ir_add(ir, u, n);
    Lb here = ir_here(ir);
    LLVMAddIncoming(u, &next, &here, 1);
    ir_cond(ir, con_less(c, next, end), head, done);
    LLVMMoveBasicBlockAfter(done, here);
    ir_at(ir, done);
}
