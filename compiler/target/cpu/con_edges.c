/* Terms of padding, left out of the sums of a window whose rows are read where they lie. The
 * gradient of a convolution's weights is a sum over images and places, and all terms of a weight
 * whose input lies outside of the image are 0: of 3 x 3 weights and padding 1, a 24th of all terms
 * where images have 16 lines, for lines and for columns. Such terms are the same for all weights of
 * one offset (y, x) in the window, so a panel's rows are summed offset by offset, each over a
 * rectangle of the image; their sums rest where those of the whole panel would.
 *
 *     for some lines of an image, or some images, so that the first cache holds what is met
 *         for each offset of the window
 *             a tile: rows of that offset, over images, lines, places of its rectangle
 *
 * The chain of a result is that of any tile: k in order. A term that is left out would have added
 * 0 times an element of the columns. That changes a sum in two cases alone: if that element is
 * infinite or NaN, and if the sum is -0, which only underflow makes of one that begins with +0. In
 * the first case the sums of an offset that leaves nothing out are infinite or NaN, too, as there
 * is one whose rectangle is the image. So both can be seen in the sums; then all of the unit is
 * summed again, with all terms. */
#include <assert.h>
#include "con.h"

/* ---- plan -------------------------------------------------------------------------- */

static bool fails(const KBound *b, int64_t x)
{
    return x < b->lo || x >= b->hi;
}

/* Of one index of the window: the terms [from, to) of the other one that lie within bounds. */
static Inner terms_within(const ConPlan *p, const Slide *w, int64_t f)
{
    Inner in = {0, w->n_d};
    const KBound *b;
    for (int i = 0; (b = con_bound(p->k, p->rows.from, p->rows.to, i)) != NULL; i++) {
        int64_t d = con_coef(&b->e, w->d), at = b->e.base + con_coef(&b->e, w->f) * f;
        while (d != 0 && in.from < in.to && fails(b, at + d * in.from))
            in.from++;
        while (d != 0 && in.from < in.to && fails(b, at + d * (in.to - 1)))
            in.to--;
    }
    return in;
}

/* Every bound of the rows is of one of the two pairs, and outside of it rows are 0. */
static bool bounds_are_plain(const ConPlan *p, const Slide *x, const Slide *y)
{
    const KBound *b;
    for (int i = 0; (b = con_bound(p->k, p->rows.from, p->rows.to, i)) != NULL; i++) {
        bool of_x = con_coef(&b->e, x->f) != 0 && con_coef(&b->e, x->d) != 0;
        bool of_y = con_coef(&b->e, y->f) != 0 && con_coef(&b->e, y->d) != 0;
        if (b->e.n != 2 || of_x == of_y || !gen_is_zero_outside(p->k, p->rows.value, b))
            return false;
    }
    return true;
}

/* What is stored may be stored again, and nothing of it is read before. */
static bool only_stores(const ConPlan *p)
{
    const KContract *c = &p->k->con;
    for (Val v = c->e_from; v < c->e_to; v++)
        if (p->k->inst.at[v].op == KI_LOAD)
            return false;
    return c->side_sum == 0;
}

/* x: places of a line; y: lines. */
static bool find_slides(const ConPlan *p, Slide *x, Slide *y)
{
    return con_find_slide(p->k, &p->rows, 1, x) && con_find_slide(p->k, &p->rows, 2, y);
}

/* As much of an image, or as many, as takes a third of the first cache in columns, of which
 * con_edges_rows() knows the width. */
static void cut_image(const ConPlan *p, const Slide *x, const Slide *y, Edges *g)
{
    int64_t enough = p->mach->l1_bytes / 3 / (p->nr * p->es);
    g->images_at_once = g->image < enough ? enough / g->image : 1;
    g->lines_at_once = y->n_d;
    while (g->lines_at_once % 2 == 0 && g->lines_at_once / 2 * x->n_d >= enough)
        g->lines_at_once /= 2;
}

/* Terms, and lines of them, of all offsets; false: one has none in a piece of the image, or none
 * has all. */
static bool count_terms(const ConPlan *p, const Slide *x, const Slide *y, Edges *g)
{
    bool whole_x = false, whole_y = false;
    int64_t terms = 0, lines = 0;
    for (int64_t f = 0; f < x->n_f; f++) {
        Inner in = terms_within(p, x, f);
        if (in.from >= in.to)
            return false;
        terms += in.to - in.from;
        whole_x |= in.to - in.from == x->n_d;
    }
    for (int64_t f = 0; f < y->n_f; f++) {
        Inner in = terms_within(p, y, f);
        for (int64_t l = 0; l < y->n_d; l += g->lines_at_once)
            if (in.from >= l + g->lines_at_once || in.to <= l)
                return false;
        lines += in.to - in.from;
        whole_y |= in.to - in.from == y->n_d;
    }
    g->lines = lines * x->n_f;
    g->terms = lines * terms;
    return whole_x && whole_y && g->terms < g->offsets * g->image;
}

bool con_edges_rows(ConPlan *p, int most)
{
    enum { MOST_ROWS = 256 };
    const Walk *f = &p->rows.free, *k = &p->rows.k;
    Edges *g = &p->window.edges;
    Slide x, y;
    bool one_more = k->n == 2 || k->n == 3; /* index, at most, than those of the window: images */
    if (p->k->limit.is || p->pairs || p->n_k == 0 || f->n < 3 || !one_more ||
        p->n_cols % p->nr != 0 || !find_slides(p, &x, &y) || !bounds_are_plain(p, &x, &y) ||
        !only_stores(p))
        return false;
    g->offsets = x.n_f * y.n_f;
    g->line = x.n_d;
    g->image = x.n_d * y.n_d;
    cut_image(p, &x, &y, g);
    most = most > CON_LANES_MOST / p->nv ? CON_LANES_MOST / p->nv : most;
    con_window_cut(p, g->offsets, f->extent[f->n - 3], most);
    g->is = p->mr <= MOST_ROWS && count_terms(p, &x, &y, g);
    return g->is;
}

double con_edges_cycles(const ConPlan *p, int64_t rows)
{
    const double line = 3; /* around each */
    const Edges *g = &p->window.edges;
    double unit = p->mach->fma ? 0.5 : 1.0, n = (double)rows, nv = p->nv;
    double fma = n * nv * unit, loads = (n + nv) * (p->nv == 1 ? 0.54 : 0.5), cycles = 4.4;
    cycles = fma > cycles ? fma : cycles;
    cycles = loads > cycles ? loads : cycles;
    return ((double)g->terms * cycles + (double)g->lines * line) / (double)g->image;
}

/* ---- the tile ----------------------------------------------------------------------- */

typedef struct Tile {
    Con *c;
    int rows;
    int64_t a_row, b_k; /* bytes: from row to row, from k to k */
    ConStream ask[MAX_ASKS];
    Lv acc[CON_LANES_MOST];
} Tile;

enum { ARG_A, ARG_B, ARG_C, ARG_IMAGES, ARG_LINES, ARG_TERMS, ARG_RESUME, ARGS };

/* Bytes from k to k along a digit of the rows, 0 being that of places in a line. */
static int64_t k_step(const ConPlan *p, int digit)
{
    const Walk *k = &p->rows.k;
    return k->n > digit ? p->window.k_step[k->n - 1 - digit] * p->es : 0;
}

static Lv row_of_sums(const Tile *t, Lv sums, int row, int v)
{
    const ConPlan *p = t->c->p;
    int64_t at = row * p->window.edges.offsets * p->nr + v * p->vl;
    return ir_off(t->c->ir, sums, at * p->es);
}

static void begin_sums(Tile *t, Lv sums, Lv resume)
{
    Ir *ir = t->c->ir;
    Lt vec = con_vector_type(t->c);
    int nv = t->c->p->nv;
    Lb fresh = ir_here(ir), again = ir_block(ir, "again"), start = ir_block(ir, "start");
    ir_cond(ir, resume, again, start);
    ir_at(ir, again);
    for (int i = 0; i < t->rows * nv; i++)
        t->acc[i] = ir_load(ir, vec, row_of_sums(t, sums, i / nv, i % nv), t->c->p->es);
    ir_br(ir, start);
    ir_at(ir, start);
    for (int i = 0; i < t->rows * nv; i++) {
        Lv sum = con_handed_on(ir, LLVMConstNull(vec), fresh);
        LLVMAddIncoming(sum, &t->acc[i], &again, 1);
        t->acc[i] = sum;
    }
}

static void add_term(Tile *t, Lv a, Lv b)
{
    Ir *ir = t->c->ir;
    const ConPlan *p = t->c->p;
    Lt vec = con_vector_type(t->c), elem = p->type == F64 ? ir->f64 : ir->f32;
    Lv col[CON_LANES_MOST];
    for (int v = 0; v < p->nv; v++)
        col[v] = ir_load(ir, vec, ir_off(ir, b, (int64_t)v * p->vl * p->es), p->es);
    for (int i = 0; i < t->rows; i++) {
        Lv x = ir_splat(ir, ir_load(ir, elem, ir_off(ir, a, i * t->a_row), p->es), p->vl);
        for (int v = 0; v < p->nv; v++) {
            Lv *sum = &t->acc[i * p->nv + v];
            *sum = con_dot(ir, p, x, col[v], *sum);
        }
    }
}

/* Lines to ask for while the line of terms at hand is summed up. */
static void ask(Tile *t, Lv line)
{
    Ir *ir = t->c->ir;
    for (int s = 0; s < MAX_ASKS; s++) {
        const Ask *a = &t->c->p->ask[s];
        const ConStream *x = &t->ask[s];
        if (a->n == 0)
            continue;
        Lv at = ir_at_byte(ir, x->at, LLVMBuildMul(ir->b, line, x->step, ""));
        for (int i = 0; i < a->n; i++, at = ir_at_byte(ir, at, x->gap))
            con_prefetch(ir, at, a->cache, a->write);
    }
}

static const char *tile_name(const Tile *t)
{
    const ConPlan *p = t->c->p;
    Ir *ir = t->c->ir;
    const char *name =
        arena_printf(ir->arena, "gradc.edges.%s.%dx%d.%lld.%lld.%lld.%lld.b%lld.%lld.%lld.%lld",
                     dtype_name(p->type), t->rows, p->nr, (long long)t->a_row,
                     (long long)k_step(p, 0), (long long)k_step(p, 1), (long long)k_step(p, 2),
                     (long long)t->b_k, (long long)p->window.edges.line,
                     (long long)p->window.edges.image, (long long)p->window.edges.offsets);
    for (int s = 0; s < MAX_ASKS; s++)
        if (p->ask[s].n > 0)
            name = arena_printf(ir->arena, "%s.asks%d", name, p->ask[s].n);
    return name;
}

/* The function  void (ptr a, ptr b, ptr c, i64 images, i64 lines, i64 terms, i1 resume)  with
 * c[rows] (+)= a * b, over images, lines of each, terms of each of those, and an ask's (ptr, i64,
 * i64) each. */
static Lv tile_function(Con *c, int rows, int64_t b_k)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    const Edges *g = &p->window.edges;
    Tile t = {.c = c, .rows = rows, .b_k = b_k};
    t.a_row = con_window_row(p, (int)g->offsets) * p->es;
    Lt arg[ARGS + 3 * MAX_ASKS] = {ir->ptr, ir->ptr, ir->ptr, ir->i64, ir->i64, ir->i64, ir->i1};
    int n = ARGS;
    for (int s = 0; s < MAX_ASKS; s++) {
        if (p->ask[s].n == 0)
            continue;
        arg[n++] = ir->ptr;
        arg[n++] = ir->i64;
        arg[n++] = ir->i64;
    }
    IrShared shared;
    if (!ir_shared_function(ir, tile_name(&t), ir->none, arg, n, &shared))
        return shared.made;
    Lv fn = ir->fn, sums = LLVMGetParam(fn, ARG_C), lines = LLVMGetParam(fn, ARG_LINES);
    ir_use_target(ir, fn);
    unsigned from = ARGS;
    for (int s = 0; s < MAX_ASKS; s++) {
        if (p->ask[s].n == 0)
            continue;
        t.ask[s] = (ConStream){LLVMGetParam(fn, from), LLVMGetParam(fn, from + 1),
                               LLVMGetParam(fn, from + 2)};
        from += 3;
    }
    begin_sums(&t, sums, LLVMGetParam(fn, ARG_RESUME));
    int all = rows * p->nv;
    ConChain i = con_open_chain(ir, LLVMGetParam(fn, ARG_IMAGES), LLVMGetParam(fn, ARG_A),
                                LLVMGetParam(fn, ARG_B), t.acc, all);
    ConChain y = con_open_chain(ir, lines, i.at[0], i.at[1], t.acc, all);
    if (con_streams(p)) {
        Lv image = LLVMBuildSub(ir->b, LLVMGetParam(fn, ARG_IMAGES), i.left, "");
        Lv line = LLVMBuildSub(ir->b, lines, y.left, "");
        ask(&t, ir_add(ir, ir_mul(ir, image, g->image / g->line), line));
    }
    ConChain x = con_open_chain(ir, LLVMGetParam(fn, ARG_TERMS), y.at[0], y.at[1], t.acc, all);
    add_term(&t, x.at[0], x.at[1]);
    con_close_chain(ir, &x, ir_off(ir, x.at[0], k_step(p, 0)), ir_off(ir, x.at[1], b_k));
    con_close_chain(ir, &y, ir_off(ir, y.at[0], k_step(p, 1)), ir_off(ir, y.at[1], g->line * b_k));
    con_close_chain(ir, &i, ir_off(ir, i.at[0], k_step(p, 2)), ir_off(ir, i.at[1], g->image * b_k));
    for (int j = 0; j < all; j++)
        ir_store(ir, t.acc[j], row_of_sums(&t, sums, j / p->nv, j % p->nv), p->es);
    LLVMBuildRetVoid(ir->b);
    ir_shared_end(ir, &shared);
    return shared.made;
}

/* ---- a panel ------------------------------------------------------------------------- */

/* By offset: its lines, the terms of each, and bytes from the panel's first row to its own. */
enum { FROM_LINE, TO_LINE, FROM_TERM, TO_TERM, AT_ROW, FIELDS };

static Lv rectangles(Con *c)
{
    const ConPlan *p = c->p;
    const Edges *g = &p->window.edges;
    Slide x, y;
    find_slides(p, &x, &y);
    Lv *of = NEW_ARRAY(c->arena, Lv, g->offsets * FIELDS);
    for (int64_t i = 0; i < g->offsets; i++) {
        Inner lines = terms_within(p, &y, i / x.n_f), terms = terms_within(p, &x, i % x.n_f);
        const int64_t field[FIELDS] = {lines.from, lines.to, terms.from, terms.to,
                                       con_window_row(p, (int)i) * p->es};
        for (int j = 0; j < FIELDS; j++)
            of[i * FIELDS + j] = ir_int32(c->ir, field[j]);
    }
    return con_table(c, of, g->offsets * FIELDS);
}

static Lv field(Con *c, Lv table, Lv offset, int which)
{
    Ir *ir = c->ir;
    Lv at = ir_at_byte(ir, table,
                       ir_mul(ir, ir_add(ir, ir_mul(ir, offset, FIELDS), ir_int(ir, which)), 4));
    return LLVMBuildSExt(ir->b, ir_load(ir, ir->i32, at, 4), ir->i64, "");
}

static Lv larger(Con *c, Lv x, Lv y)
{
    return LLVMBuildSelect(c->ir->b, con_less(c, x, y), y, x, "");
}

/* A piece of a panel's sums: of `offset`, the images from `image` on, the lines from `line` on. */
typedef struct Piece {
    Lv fn, table; /* the tile, rectangles() */
    Lv image, line, offset;
    Lv from_line, lines, from, terms; /* of its rectangle */
} Piece;

static void find_rectangle(Con *c, Piece *o)
{
    Ir *ir = c->ir;
    const Edges *g = &c->p->window.edges;
    Lv all = ir_load(ir, ir->i1, c->all_terms, 1), zero = ir_int(ir, 0);
    Lv from_line = field(c, o->table, o->offset, FROM_LINE);
    Lv to_line = field(c, o->table, o->offset, TO_LINE);
    Lv from = field(c, o->table, o->offset, FROM_TERM), to = field(c, o->table, o->offset, TO_TERM);
    Lv lines = ir_int(ir, g->image / g->line),
       end = ir_add(ir, o->line, ir_int(ir, g->lines_at_once));
    o->from_line = larger(c, LLVMBuildSelect(ir->b, all, zero, from_line, ""), o->line);
    to_line = ir_min(ir, LLVMBuildSelect(ir->b, all, lines, to_line, ""), end);
    o->lines = LLVMBuildSub(ir->b, to_line, o->from_line, "");
    o->from = LLVMBuildSelect(ir->b, all, zero, from, "");
    to = LLVMBuildSelect(ir->b, all, ir_int(ir, g->line), to, "");
    o->terms = LLVMBuildSub(ir->b, to, o->from, "");
}

static void sum_piece(Con *c, const ConEdgesPanel *at, Piece *o)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    const Edges *g = &p->window.edges;
    find_rectangle(c, o);
    Lv image = ir_add(ir, at->image0, o->image); /* of the table's */
    Lv a = ir_at_byte(ir, at->a, field(c, o->table, o->offset, AT_ROW));
    a = ir_at_byte(ir, a, ir_mul(ir, image, k_step(p, 2)));
    a = ir_at_byte(ir, a, ir_mul(ir, o->from_line, k_step(p, 1)));
    a = ir_at_byte(ir, a, ir_mul(ir, o->from, k_step(p, 0)));
    Lv line = ir_add(ir, ir_mul(ir, o->image, g->image / g->line), o->from_line);
    Lv k = ir_add(ir, ir_mul(ir, line, g->line), o->from);
    Lv b = ir_at_byte(ir, at->b, ir_mul(ir, k, at->b_k));
    Lv sums = ir_at_byte(ir, at->sums, ir_mul(ir, o->offset, (int64_t)p->nr * p->es));
    Lv before = LLVMBuildOr(ir->b, o->image, o->line, "");
    Lv begun = LLVMBuildICmp(ir->b, LLVMIntNE, before, ir_int(ir, 0), "");
    Lv images = LLVMBuildSub(ir->b, at->images, o->image, "");
    Lv arg[ARGS + 3 * MAX_ASKS] = {a,
                                   b,
                                   sums,
                                   ir_min(ir, images, ir_int(ir, g->images_at_once)),
                                   o->lines,
                                   o->terms,
                                   LLVMBuildOr(ir->b, at->resume, begun, "")};
    int n = ARGS;
    Lv asked = ir_add(ir, ir_mul(ir, o->offset, p->kc / g->line), line);
    for (int s = 0; s < MAX_ASKS; s++) {
        if (p->ask[s].n == 0)
            continue;
        const ConStream *x = &at->ask[s];
        arg[n++] = ir_at_byte(ir, x->at, LLVMBuildMul(ir->b, asked, x->step, ""));
        arg[n++] = x->step;
        arg[n++] = x->gap;
    }
    ir_call(ir, o->fn, arg, n);
}

void con_edges_panel(Con *c, int rows, const ConEdgesPanel *at)
{
    Ir *ir = c->ir;
    const Edges *g = &c->p->window.edges;
    Lv zero = ir_int(ir, 0);
    Piece o = {.fn = tile_function(c, rows, at->b_k), .table = rectangles(c)};
    IrLoop i = ir_loop(ir, zero, at->images, g->images_at_once, false);
    IrLoop y = ir_loop(ir, zero, ir_int(ir, g->image / g->line), g->lines_at_once, false);
    IrLoop f = ir_loop(ir, zero, ir_int(ir, g->offsets), 1, false);
    o.image = i.i;
    o.line = y.i;
    o.offset = f.i;
    sum_piece(c, at, &o);
    ir_loop_end(ir, &f);
    ir_loop_end(ir, &y);
    ir_loop_end(ir, &i);
}

/* ---- what leaving out changes ------------------------------------------------------------ */

/* The offset whose rectangle is the image. */
static int64_t whole_offset(const ConPlan *p)
{
    Slide x, y;
    find_slides(p, &x, &y);
    for (int64_t i = 0; i < p->window.edges.offsets; i++) {
        Inner lines = terms_within(p, &y, i / x.n_f), terms = terms_within(p, &x, i % x.n_f);
        if (lines.to - lines.from == y.n_d && terms.to - terms.from == x.n_d)
            return i;
    }
    assert(false && "con_edges_rows() has found one");
    return 0;
}

static Lv is_minus_zero(Con *c, Lv x)
{
    Ir *ir = c->ir;
    Lt bits = ir_vec(c->p->type == F64 ? ir->i64 : ir->i32, c->p->vl);
    Lv minus = LLVMBuildFNeg(ir->b, LLVMConstNull(LLVMTypeOf(x)), "");
    return LLVMBuildICmp(ir->b, LLVMIntEQ, LLVMBuildBitCast(ir->b, x, bits, ""),
                         LLVMBuildBitCast(ir->b, minus, bits, ""), "");
}

static Lv is_not_finite(Con *c, Lv x)
{
    Lv zero = LLVMConstNull(LLVMTypeOf(x));
    return LLVMBuildFCmp(c->ir->b, LLVMRealUNO, LLVMBuildFMul(c->ir->b, x, zero, ""), zero, "");
}

/* Makes c->again true if a sum of this row is so. */
static void note(Con *c, Lv row, Lv (*is)(Con *c, Lv x))
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    Lv any = NULL;
    for (int v = 0; v < p->nv; v++) {
        Lv at = ir_off(ir, row, (int64_t)v * p->vl * p->es);
        Lv one = is(c, ir_load(ir, con_vector_type(c), at, p->es));
        any = any == NULL ? one : LLVMBuildOr(ir->b, any, one, "");
    }
    Lt flags = LLVMTypeOf(any);
    Lv some = ir_intrinsic(ir, "llvm.vector.reduce.or", &flags, 1, &any, 1);
    ir_store(ir, LLVMBuildOr(ir->b, some, ir_load(ir, ir->i1, c->again, 1), ""), c->again, 1);
}

Lv con_edges_check(Con *c, Lv sums, Lv rows)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    int64_t line = (int64_t)p->nr * p->es, offsets = p->window.edges.offsets;
    IrLoop i = ir_loop(ir, ir_int(ir, 0), rows, 1, false);
    note(c, ir_at_byte(ir, sums, ir_mul(ir, i.i, line)), is_minus_zero);
    ir_loop_end(ir, &i);
    i = ir_loop(ir, ir_int(ir, whole_offset(p)), rows, offsets, false);
    note(c, ir_at_byte(ir, sums, ir_mul(ir, i.i, line)), is_not_finite);
    ir_loop_end(ir, &i);
    Lv again = ir_load(ir, ir->i1, c->again, 1), all = ir_load(ir, ir->i1, c->all_terms, 1);
    return LLVMBuildOr(ir->b, all, LLVMBuildNot(ir->b, again, ""), "");
}

ConEdgesUnit con_edges_begin(Con *c)
{
    Ir *ir = c->ir;
    ConEdgesUnit u = {ir_block(ir, "terms"), ir_block(ir, "summed")};
    c->again = ir_slot(ir, ir->i1, 1);
    c->all_terms = ir_slot(ir, ir->i1, 1);
    ir_store(ir, LLVMConstInt(ir->i1, 0, 0), c->all_terms, 1);
    ir_br(ir, u.head);
    ir_at(ir, u.head);
    ir_store(ir, LLVMConstInt(ir->i1, 0, 0), c->again, 1);
    return u;
}

void con_edges_end(Con *c, const ConEdgesUnit *u)
{
    Ir *ir = c->ir;
    Lv again = ir_load(ir, ir->i1, c->again, 1), all = ir_load(ir, ir->i1, c->all_terms, 1);
    ir_store(ir, again, c->all_terms, 1);
    ir_cond(ir, LLVMBuildAnd(ir->b, again, LLVMBuildNot(ir->b, all, ""), ""), u->head, u->end);
    LLVMMoveBasicBlockAfter(u->end, ir_here(ir));
    ir_at(ir, u->end);
}
