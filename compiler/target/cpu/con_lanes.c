/* Lanes along a batch index: where operands share an index that nothing is summed over (channels of
 * a depthwise convolution), and one of them has no other (weights; in the gradient of those, the
 * cotangent). A tile of rows by columns would be one row high, and a line of few columns fills no
 * vector. Here a vector has one result of vl channels:
 *
 *     for a group of vl channels, other free indices (images), some lines of results
 *         for other k (images), some lines of terms
 *             pack `one`                        [k][channel]
 *             stage the lines of `many` that the window meets, transposed   [row][x][channel]
 *             for a tile of results: chains of fma in registers
 *         transpose the results, and the epilogue of each channel
 *
 * The chain of a result is that of any tile: k in order, leaves folded left to right. */
#include "con.h"

static Lv vector_at(Con *c, int64_t base, Lv vectors)
{
    Ir *ir = c->ir;
    Lv at = ir_off(ir, c->scratch, base);
    return ir_at_byte(ir, at, ir_mul(ir, vectors, (int64_t)c->p->vl * c->p->es));
}

static Lt vector_type(const Con *c)
{
    return ir_vec(c->p->type == F64 ? c->ir->f64 : c->ir->f32, c->p->vl);
}

static Lv minus(Con *c, Lv x, Lv y)
{
    return LLVMBuildSub(c->ir->b, x, y, "");
}

/* ---- the tile --------------------------------------------------------------------------- */

enum { MAX_RESULTS = 16 };

typedef struct Tile {
    Con *c;
    const Lanes *l;
    int lines, cols;
    Lv acc[MAX_RESULTS];
} Tile;

static int64_t result_bytes(const Tile *t, int i)
{
    const Lanes *l = t->l;
    int64_t vectors = i / t->cols * l->x.n_f + i % t->cols;
    return vectors * t->c->p->vl * t->c->p->es;
}

/* From result 0's element of `many` to that of result i, for the same term. */
static int64_t staged_bytes(const Tile *t, int i)
{
    const Lanes *l = t->l;
    int64_t vectors = i / t->cols * l->y.s * l->pitch + i % t->cols * l->x.s;
    return vectors * t->c->p->vl * t->c->p->es;
}

static void begin_sums(Tile *t, Lv out, Lv resume)
{
    Con *c = t->c;
    Ir *ir = c->ir;
    Lt vec = vector_type(c);
    Lv old[MAX_RESULTS], zero = LLVMConstNull(vec);
    Lb fresh = ir_here(ir), again = ir_block(ir, "again"), start = ir_block(ir, "start");
    ir_cond(ir, resume, again, start);
    ir_at(ir, again);
    for (int i = 0; i < t->lines * t->cols; i++)
        old[i] = ir_load(ir, vec, ir_off(ir, out, result_bytes(t, i)), c->p->es);
    ir_br(ir, start);
    ir_at(ir, start);
    for (int i = 0; i < t->lines * t->cols; i++) {
        t->acc[i] = LLVMBuildPhi(ir->b, vec, "");
        LLVMAddIncoming(t->acc[i], &zero, &fresh, 1);
        LLVMAddIncoming(t->acc[i], &old[i], &again, 1);
    }
}

static void add_term(Tile *t, Lv a, Lv b)
{
    Con *c = t->c;
    Ir *ir = c->ir;
    Lt vec = vector_type(c);
    Lv x = ir_load(ir, vec, a, c->p->es);
    for (int i = 0; i < t->lines * t->cols; i++) {
        Lv y = ir_load(ir, vec, ir_off(ir, b, staged_bytes(t, i)), c->p->es);
        Lv arg[] = {x, y, t->acc[i]};
        t->acc[i] = c->p->mach->fma
                        ? ir_intrinsic(ir, "llvm.fma", &vec, 1, arg, 3)
                        : LLVMBuildFAdd(ir->b, LLVMBuildFMul(ir->b, x, y, ""), t->acc[i], "");
    }
}

/* A loop that counts down from n > 0, with sums and two addresses that it hands on. */
typedef struct Chain {
    Lb head;
    Lv left, at[2], sum[MAX_RESULTS];
} Chain;

static Lv handed_on(Ir *ir, Lv first, Lb before)
{
    Lv phi = LLVMBuildPhi(ir->b, LLVMTypeOf(first), "");
    LLVMAddIncoming(phi, &first, &before, 1);
    return phi;
}

static Chain open_chain(Tile *t, Lv n, Lv a, Lv b)
{
    Ir *ir = t->c->ir;
    Chain h = {.head = ir_block(ir, "chain")};
    Lb before = ir_here(ir);
    ir_br(ir, h.head);
    ir_at(ir, h.head);
    h.left = handed_on(ir, n, before);
    h.at[0] = handed_on(ir, a, before);
    h.at[1] = handed_on(ir, b, before);
    for (int i = 0; i < t->lines * t->cols; i++)
        t->acc[i] = h.sum[i] = handed_on(ir, t->acc[i], before);
    return h;
}

static void close_chain(Tile *t, Chain *h, Lv a, Lv b)
{
    Ir *ir = t->c->ir;
    Lb here = ir_here(ir), after = ir_block(ir, "after");
    Lv left = ir_add(ir, h->left, ir_int(ir, -1));
    LLVMAddIncoming(h->left, &left, &here, 1);
    LLVMAddIncoming(h->at[0], &a, &here, 1);
    LLVMAddIncoming(h->at[1], &b, &here, 1);
    for (int i = 0; i < t->lines * t->cols; i++)
        LLVMAddIncoming(h->sum[i], &t->acc[i], &here, 1);
    ir_cond(ir, LLVMBuildICmp(ir->b, LLVMIntNE, left, ir_int(ir, 0), ""), h->head, after);
    ir_at(ir, after);
}

/* The function  void (ptr one, ptr many, ptr out, i64 lines, i64 terms of each, i1 resume). */
static Lv tile_fn(Con *c, int lines, int cols)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    const Lanes *l = p->lanes;
    const char *name = arena_printf(ir->arena, "gradc.lanes.%s.%dx%d.%lld.%lld.%lld.%lld.%lld.%lld",
                                    dtype_name(p->type), lines, cols, (long long)l->x.s,
                                    (long long)l->x.t, (long long)l->y.s, (long long)l->y.t,
                                    (long long)l->pitch, (long long)l->x.n_f);
    const Lt arg[] = {ir->ptr, ir->ptr, ir->ptr, ir->i64, ir->i64, ir->i1};
    IrShared s;
    if (!ir_shared_function(ir, name, ir->none, arg, 6, &s))
        return s.made;
    Lv fn = ir->fn;
    ir_use_target(ir, fn);
    Tile t = {.c = c, .l = l, .lines = lines, .cols = cols};
    Lv out = LLVMGetParam(fn, 2);
    int64_t vec = (int64_t)p->vl * p->es;
    begin_sums(&t, out, LLVMGetParam(fn, 5));
    Chain y = open_chain(&t, LLVMGetParam(fn, 3), LLVMGetParam(fn, 0), LLVMGetParam(fn, 1));
    Chain x = open_chain(&t, LLVMGetParam(fn, 4), y.at[0], y.at[1]);
    add_term(&t, x.at[0], x.at[1]);
    Lv next = ir_off(ir, x.at[0], vec);
    close_chain(&t, &x, next, ir_off(ir, x.at[1], l->x.t * vec));
    close_chain(&t, &y, next, ir_off(ir, y.at[1], l->y.t * l->pitch * vec));
    for (int i = 0; i < lines * cols; i++)
        ir_store(ir, t.acc[i], ir_off(ir, out, result_bytes(&t, i)), p->es);
    LLVMBuildRetVoid(ir->b);
    ir_shared_end(ir, &s);
    return s.made;
}

/* Terms that follow one another, in `lines` of so many. */
typedef struct Terms {
    Lv one, many; /* many: of result 0 */
    Lv lines, terms, resume;
} Terms;

static void call_tile(Con *c, const Terms *t, int lines, int cols, Lv line, Lv col)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    int64_t vec = (int64_t)c->p->vl * c->p->es;
    Lv in_line = ir_mul(ir, col, l->x.s * vec);
    Lv from = ir_add(ir, ir_mul(ir, line, l->y.s * l->pitch * vec), in_line);
    Lv to = ir_add(ir, ir_mul(ir, line, l->x.n_f), col);
    Lv arg[] = {
        t->one,   ir_at_byte(ir, t->many, from), vector_at(c, l->o_at, to), t->lines, t->terms,
        t->resume};
    ir_call(ir, tile_fn(c, lines, cols), arg, 6);
}

static void line_of_tiles(Con *c, const Terms *t, int lines, Lv line)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    int64_t cols = l->tile_cols, whole = l->x.n_f / cols * cols;
    IrLoop x = ir_loop(ir, ir_int(ir, 0), ir_int(ir, whole), cols, false);
    call_tile(c, t, lines, (int)cols, line, x.i);
    ir_loop_end(ir, &x);
    if (whole < l->x.n_f)
        call_tile(c, t, lines, (int)(l->x.n_f - whole), line, ir_int(ir, whole));
}

static void all_tiles(Con *c, const Terms *t, Lv n_lines)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    Lv rest = LLVMBuildURem(ir->b, n_lines, ir_int(ir, l->tile_lines), "");
    Lv whole = minus(c, n_lines, rest);
    IrLoop y = ir_loop(ir, ir_int(ir, 0), whole, l->tile_lines, true);
    line_of_tiles(c, t, l->tile_lines, y.i);
    ir_loop_end(ir, &y);
    if (l->tile_lines == 1)
        return;
    IrLoop z = ir_loop(ir, whole, n_lines, 1, true);
    line_of_tiles(c, t, 1, z.i);
    ir_loop_end(ir, &z);
}

/* ---- operands ------------------------------------------------------------------------------ */

/* What the loops around have chosen. */
typedef struct Piece {
    Lv lane0, live;       /* channels */
    Lv *other, *block;    /* digits of other free indices and of other k */
    Lv line0, lines;      /* of results */
    Lv term0, term_lines; /* lines of terms of the block */
} Piece;

/* The first place y that is staged. */
static Lv first_place(Con *c, const Piece *at)
{
    Ir *ir = c->ir;
    const Slide *y = &c->p->lanes->y;
    Lv last = ir_add(ir, ir_add(ir, at->term0, at->term_lines), ir_int(ir, -1));
    Lv in_window = ir_mul(ir, y->t < 0 ? last : at->term0, y->t);
    Lv place = ir_add(ir, ir_mul(ir, at->line0, y->s), in_window);
    return ir_add(ir, place, ir_int(ir, -y->lowest));
}

/* vl places of a line of all channels: vectors along the places, transposed. */
static void stage_places(Con *c, const Piece *at, Lv place, Lv x, Lv to)
{
    Ir *ir = c->ir;
    Lanes *l = c->p->lanes;
    int vl = c->p->vl;
    Lv v[64], last = ir_add(ir, at->live, ir_int(ir, -1));
    Lv live = l->x.n % vl == 0 ? NULL : minus(c, ir_int(ir, l->x.n), x);
    gen_vector(&c->g, vl, l->x.s == 1 ? l->x.f : l->x.d, live);
    walk_set(&l->others, &c->g, at->other);
    walk_set(&l->blocks, &c->g, at->block);
    if (l->pairs == 2)
        con_set_place(c, &l->y, place);
    con_set_place(c, &l->x, x);
    for (int j = 0; j < vl; j++) {
        c->g.value[l->lane] = ir_add(ir, at->lane0, ir_min(ir, ir_int(ir, j), last));
        v[j] = con_value(c, &l->many);
    }
    gen_scalar(&c->g);
    con_transpose(c, v, vl);
    for (int j = 0; j < vl; j++)
        con_store_packed(c, v[j], to, ir_mul(ir, ir_add(ir, x, ir_int(ir, j)), vl));
}

static void stage_lines(Con *c, const Piece *at)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    Lv first = first_place(c, at);
    Lv n = ir_add(
        ir, ir_mul(ir, ir_add(ir, at->lines, ir_int(ir, -1)), l->y.s),
        ir_mul(ir, ir_add(ir, at->term_lines, ir_int(ir, -1)), l->y.t < 0 ? -l->y.t : l->y.t));
    IrLoop y = ir_loop(ir, ir_int(ir, 0), ir_add(ir, n, ir_int(ir, 1)), 1, false);
    Lv to = vector_at(c, l->b_at, ir_mul(ir, y.i, l->pitch));
    IrLoop x = ir_loop(ir, ir_int(ir, 0), ir_int(ir, l->x.n), c->p->vl, false);
    stage_places(c, at, ir_add(ir, first, y.i), x.i, to);
    ir_loop_end(ir, &x);
    ir_loop_end(ir, &y);
}

/* ---- chains -------------------------------------------------------------------------------- */

/* Terms from `k` on, of a piece that begins with k0, in result 0's window. */
static Terms terms_at(Con *c, const Piece *at, Lv k0, Lv k)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    Lv ahead = minus(c, k, k0), n = ir_int(ir, l->x.n_d);
    Lv line = LLVMBuildUDiv(ir->b, ahead, n, ""), x = LLVMBuildURem(ir->b, ahead, n, "");
    Lv row = ir_mul(ir, line, l->y.t);
    if (l->y.t < 0) /* the last line of terms meets the first one that is staged */
        row = ir_add(ir, row, ir_mul(ir, ir_add(ir, at->term_lines, ir_int(ir, -1)), -l->y.t));
    Lv place = ir_add(ir, ir_mul(ir, x, l->x.t), ir_int(ir, -l->x.lowest));
    return (Terms){.one = vector_at(c, l->a_at, ahead),
                   .many = vector_at(c, l->b_at, ir_add(ir, ir_mul(ir, row, l->pitch), place))};
}

/* s = first ? o : s + o */
static void fold_sums(Con *c, Lv n, Lv first)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    Lt vec = vector_type(c);
    IrLoop i = ir_loop(ir, ir_int(ir, 0), n, 1, false);
    Lv to = vector_at(c, l->s_at, i.i);
    Lv x = ir_load(ir, vec, vector_at(c, l->o_at, i.i), c->p->es);
    Lv sum = LLVMBuildFAdd(ir->b, ir_load(ir, vec, to, c->p->es), x, "");
    ir_store(ir, LLVMBuildSelect(ir->b, first, x, sum, ""), to, c->p->es);
    ir_loop_end(ir, &i);
}

/* A leaf's part of the terms [k0, end): whole lines where leaves are; else the rest of a line. */
static Lv leaf_part(Con *c, const Piece *at, Lv k0, Lv k, Lv end)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    const Lanes *l = p->lanes;
    Lv leaf = ir_int(ir, p->leaf), line = ir_int(ir, l->x.n_d), one = ir_int(ir, 1);
    Lv leaf_end = ir_mul(ir, ir_add(ir, LLVMBuildUDiv(ir->b, k, leaf, ""), one), p->leaf);
    Lv to = ir_min(ir, leaf_end, end);
    bool whole = p->leaf % l->x.n_d == 0;
    if (!whole)
        to = ir_min(ir, to,
                    ir_mul(ir, ir_add(ir, LLVMBuildUDiv(ir->b, k, line, ""), one), l->x.n_d));
    Terms t = terms_at(c, at, k0, k);
    Lv n = minus(c, to, k), in_leaf = LLVMBuildURem(ir->b, k, leaf, "");
    t.lines = whole ? LLVMBuildUDiv(ir->b, n, line, "") : one;
    t.terms = whole ? line : n;
    t.resume = LLVMBuildICmp(ir->b, LLVMIntNE, in_leaf, ir_int(ir, 0), "");
    all_tiles(c, &t, at->lines);
    Lv ends = LLVMBuildICmp(ir->b, LLVMIntEQ, to, leaf_end, "");
    Lv last = LLVMBuildICmp(ir->b, LLVMIntEQ, to, ir_int(ir, p->n_k), "");
    IrIf f = ir_if(ir, LLVMBuildOr(ir->b, ends, last, ""));
    fold_sums(c, ir_mul(ir, at->lines, l->x.n_f), con_less(c, k, leaf));
    ir_end_if(ir, &f);
    return to;
}

static void leaf_parts(Con *c, const Piece *at, Lv k0, Lv end)
{
    Ir *ir = c->ir;
    Lb before = ir_here(ir), head = ir_block(ir, "leaf"), after = ir_block(ir, "leaves");
    ir_br(ir, head);
    ir_at(ir, head);
    Lv k = handed_on(ir, k0, before), next = leaf_part(c, at, k0, k, end);
    Lb here = ir_here(ir);
    LLVMAddIncoming(k, &next, &here, 1);
    ir_cond(ir, con_less(c, next, end), head, after);
    ir_at(ir, after);
}

/* Some lines of terms of a block. */
static void some_terms(Con *c, const Piece *at, Lv block)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    Lanes *l = p->lanes;
    Lv line = ir_add(ir, ir_mul(ir, block, l->y.n_d), at->term0);
    Lv k0 = ir_mul(ir, line, l->x.n_d), kn = ir_mul(ir, at->term_lines, l->x.n_d);
    con_pack(c, &l->one, p->vl, at->lane0, at->live, k0, kn, ir_off(ir, c->scratch, l->a_at));
    stage_lines(c, at);
    if (p->sums) {
        leaf_parts(c, at, k0, ir_add(ir, k0, kn));
        return;
    }
    Terms t = terms_at(c, at, k0, k0);
    t.lines = at->term_lines;
    t.terms = ir_int(ir, l->x.n_d);
    t.resume = LLVMBuildICmp(ir->b, LLVMIntNE, k0, ir_int(ir, 0), "");
    all_tiles(c, &t, at->lines);
}

/* ---- results --------------------------------------------------------------------------------- */

static void transpose_results(Con *c, int64_t from, Lv n)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    int vl = c->p->vl;
    IrLoop i = ir_loop(ir, ir_int(ir, 0), n, vl, false);
    Lv v[64], to = ir_off(ir, c->scratch, l->t_at);
    for (int j = 0; j < vl; j++)
        v[j] = ir_load(ir, vector_type(c), vector_at(c, from, ir_add(ir, i.i, ir_int(ir, j))),
                       c->p->es);
    con_transpose(c, v, vl);
    for (int j = 0; j < vl; j++)
        con_store_packed(c, v[j], to, ir_add(ir, i.i, ir_int(ir, j * l->line)));
    ir_loop_end(ir, &i);
}

static void put_results(Con *c, const Piece *at, Lv other)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    const Lanes *l = p->lanes;
    Lv n = ir_mul(ir, at->lines, l->x.n_f);
    Lv line = ir_add(ir, ir_mul(ir, other, l->y.n_f), at->line0);
    transpose_results(c, p->sums ? l->s_at : l->o_at, n);
    IrLoop j = ir_loop(ir, ir_int(ir, 0), at->live, 1, false);
    Lv from = ir_off(ir, c->scratch, l->t_at);
    from = ir_at_byte(ir, from, ir_mul(ir, j.i, l->line * p->es));
    c->g.value[l->lane] = ir_add(ir, at->lane0, j.i);
    con_epilogue(c, from, ir_int(ir, 0), ir_int(ir, 1), ir_mul(ir, line, l->x.n_f), n);
    ir_loop_end(ir, &j);
}

/* ---- units ------------------------------------------------------------------------------------
 */

static void all_terms(Con *c, Piece *at)
{
    Ir *ir = c->ir;
    const Lanes *l = c->p->lanes;
    Lv digit[K_MAX_DIMS];
    IrLoop b = ir_loop(ir, ir_int(ir, 0), ir_int(ir, l->blocks.total), 1, false);
    walk_decode(&l->blocks, ir, b.i, digit);
    at->block = digit;
    IrLoop d = ir_loop(ir, ir_int(ir, 0), ir_int(ir, l->y.n_d), l->lines_d, false);
    at->term0 = d.i;
    at->term_lines = ir_min(ir, minus(c, ir_int(ir, l->y.n_d), d.i), ir_int(ir, l->lines_d));
    some_terms(c, at, b.i);
    ir_loop_end(ir, &d);
    ir_loop_end(ir, &b);
}

static void emit_unit(Con *c, Lv unit)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    const Lanes *l = p->lanes;
    const KContract *con = &p->k->con;
    int64_t n_groups = (l->extent + p->vl - 1) / p->vl;
    Lv n = ir_int(ir, l->others.total), other = LLVMBuildURem(ir->b, unit, n, "");
    Lv flat = LLVMBuildUDiv(ir->b, unit, n, ""), digit[K_MAX_DIMS];
    Lv group = LLVMBuildURem(ir->b, flat, ir_int(ir, n_groups), "");
    flat = LLVMBuildUDiv(ir->b, flat, ir_int(ir, n_groups), "");
    for (int d = con->n[K_B]; d-- > 0;) {
        Val v = con->dim[K_B][d];
        if (v == l->lane)
            continue;
        Lv extent = ir_int(ir, p->k->inst.at[v].imm.i);
        c->g.value[v] = LLVMBuildURem(ir->b, flat, extent, "");
        flat = LLVMBuildUDiv(ir->b, flat, extent, "");
    }
    Piece at = {.lane0 = ir_mul(ir, group, p->vl), .other = digit};
    at.live = ir_min(ir, minus(c, ir_int(ir, l->extent), at.lane0), ir_int(ir, p->vl));
    walk_decode(&l->others, ir, other, digit);
    IrLoop f = ir_loop(ir, ir_int(ir, 0), ir_int(ir, l->y.n_f), l->lines_f, false);
    at.line0 = f.i;
    at.lines = ir_min(ir, minus(c, ir_int(ir, l->y.n_f), f.i), ir_int(ir, l->lines_f));
    all_terms(c, &at);
    put_results(c, &at, other);
    ir_loop_end(ir, &f);
}

void con_lanes_units(Con *c, Lv begin, Lv end)
{
    IrLoop u = ir_loop(c->ir, begin, end, 1, true);
    emit_unit(c, u.i);
    ir_loop_end(c->ir, &u);
}
