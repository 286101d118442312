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
 * side by side. Columns of a panel are runs of a row: a vector is one load, or two and a
 * blend where it reaches from the end of a run into the next one. */
#include <assert.h>
#include "con.h"

enum { STAGE_BYTES = 48 * 1024, MAX_STRIPS = 16, MAX_TABLE = 16384, MAX_WIDTH = MAX_STRIPS * 64 };

static int64_t absolute(int64_t x)
{
    return x < 0 ? -x : x;
}

/* ---- the plan ---------------------------------------------------------------------- */

/* s*f + t*d for all affine expressions of the section. */
static bool slides(const Kernel *k, const Side *side, Slide *w)
{
    const KAff *x;
    w->s = 0;
    for (int i = 0; (x = con_affine(k, side->from, side->to, i)) != NULL; i++) {
        int64_t f = con_coef(x, w->f), d = con_coef(x, w->d);
        if (f == 0 && d == 0)
            continue;
        if (f == 0 || d == 0)
            return false;
        if (w->s == 0) {
            int64_t by = common_divisor(absolute(f), absolute(d));
            w->s = absolute(f) / by;
            w->t = (f < 0 ? -d : d) / by;
        }
        if (f * w->t != d * w->s)
            return false;
    }
    return w->s != 0;
}

static bool find_slide(const Kernel *k, const Side *side, int back, Slide *w)
{
    const Walk *f = &side->free, *d = &side->k;
    if (f->n < back || d->n < back)
        return false;
    *w = (Slide){.f = f->dim[f->n - back],
                 .d = d->dim[d->n - back],
                 .n_f = f->extent[f->n - back],
                 .n_d = d->extent[d->n - back]};
    if (!slides(k, side, w))
        return false;
    w->lowest = w->t < 0 ? w->t * (w->n_d - 1) : 0;
    w->n = w->s * (w->n_f - 1) + absolute(w->t) * (w->n_d - 1) + 1;
    return true;
}

/* Each place can be named by one of the two indices alone. */
static bool one_names_all(const Slide *w, bool lanes)
{
    return w->s == 1 || w->t == 1 || (!lanes && w->t == -1);
}

/* Rows that the panel with the widest reach needs. */
static int64_t reach(const Stage *g, int width)
{
    int64_t lines = (width - 2) / g->x.n_f + 2, images = (width - 2) / (g->x.n_f * g->y.n_f) + 1;
    int64_t window = absolute(g->y.t) * (g->y.n_d - 1) + 1;
    int64_t jump = window > g->y.s ? window - g->y.s : 0;
    return (lines - 1) * g->y.s + images * jump + window;
}

/* Fills in g from its first two members. */
static bool stage_of(const ConPlan *p, const Side *s, int width, Stage *g)
{
    g->y = (Slide){.n_f = 1, .n_d = 1, .s = 1, .t = 1, .n = 1};
    if (!find_slide(p->k, s, 1, &g->x) || !one_names_all(&g->x, true))
        return false;
    if (g->pairs == 2 && (!find_slide(p->k, s, 2, &g->y) || !one_names_all(&g->y, false)))
        return false;
    g->step = (int)(g->along_k ? g->x.t : g->x.s);
    if (g->step < 1 || g->step > 2)
        return false;
    int64_t window = g->x.n_d * g->y.n_d, others = p->n_k / window;
    g->n_rows = s->free.total / (g->x.n_f * g->y.n_f) * g->y.n;
    bool whole = p->kc % window == 0 && p->leaf % window == 0;
    g->blocks = whole ? p->kc / window : (p->kc + window - 2) / window + 1;
    g->blocks = g->blocks > others ? others : g->blocks;
    g->plane = align_up((g->x.n + g->step - 1) / g->step, p->vl);
    g->pitch = g->plane * g->step;
    int64_t row = g->blocks * g->pitch * p->es, least = reach(g, width);
    int64_t room = p->mach->l2_bytes / 4, most = room / row < 3 * least ? room / row : 3 * least;
    g->rows = STAGE_BYTES / row > most ? STAGE_BYTES / row : most;
    g->rows = g->rows < least ? least : g->rows > g->n_rows ? g->n_rows : g->rows;
    /* A panel's last vectors reach over their run, the last of all over the end. */
    g->bytes = align_up(row * g->rows + (g->pitch + 2 * p->vl) * p->es, 64);
    bool table = p->n_k <= MAX_TABLE && others * g->rows * g->pitch * p->es < INT32_MAX;
    return (table || g->along_k) && g->bytes <= room + room / 4 && width <= MAX_STRIPS * p->vl;
}

/* Cycles for an element of a panel: the copy. */
static double copy_cycles(const ConPlan *p, const Stage *g, int width)
{
    double vectors = (double)((width + p->vl - 1) / p->vl);
    if (g->along_k) { /* a load for each row, three shuffles and a store for each k */
        double used = (double)g->x.n_d / (double)align_up(g->x.n_d, p->vl);
        return (width * 1.0 + vectors * p->vl * 3) / (width * p->vl * used);
    }
    if (g->x.n_f < p->vl)
        return 1.5;
    double crossing = (double)(width - 1) / (double)g->x.n_f;
    return (1.5 + vectors * (1 + 0.7 * (crossing > 1 ? 1 : crossing))) / width;
}

/* The same with its part of the rows' values; -1: they are better not computed so. */
static double stage_cycles(const ConPlan *p, const Side *s, const Stage *g, int width)
{
    double load = con_vector_cycles(p, s, g->x.s == 1 ? g->x.f : g->x.d);
    if (load < 0)
        return -1;
    double places = (double)(g->pitch * g->y.n * g->blocks);
    double packed = (double)(g->x.n_f * g->y.n_f) * (double)p->kc;
    int64_t window = absolute(g->y.t) * (g->y.n_d - 1) + 1;
    double again = g->rows < g->n_rows ? 1 + (double)window / (double)g->rows : 1;
    double one = (4 + load + con_open_bounds(p->k, s)) / p->vl * places / packed * again;
    return one + copy_cycles(p, g, width);
}

void con_stage_plan(const ConPlan *p, Side *s, int width)
{
    for (int form = 0; form < 4 && p->n_k > 0; form++) {
        Stage g = {.pairs = 1 + form % 2, .along_k = form >= 2};
        if (!stage_of(p, s, width, &g))
            continue;
        double cycles = stage_cycles(p, s, &g, width);
        if (cycles < 0 || cycles >= s->pack_cycles)
            continue;
        s->pack = PACK_STAGE;
        s->pack_cycles = cycles;
        s->stage = g;
    }
}

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
    return ir_add(ir, ir_mul(ir, image, g->y.n), ir_mul(ir, y, g->y.s));
}

/* Sets the indices of a pair to place `at` (0: the lowest). Gives the one that moves. */
static Val set_place(Con *c, const Slide *w, Lv at)
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

/* Row `r`, for the block of other k whose indices are set. */
static void stage_row(Con *c, Side *s, Lv r, Lv to)
{
    Ir *ir = c->ir;
    const Stage *g = &s->stage;
    Walk others = s->free;
    others.n -= g->pairs;
    Lv digit[K_MAX_DIMS], n = ir_int(ir, g->x.n);
    Lv image = LLVMBuildUDiv(ir->b, r, ir_int(ir, g->y.n), "");
    walk_decode(&others, ir, image, digit);
    IrLoop x = ir_loop(ir, ir_int(ir, 0), n, c->p->vl, false);
    walk_set(&others, &c->g, digit);
    if (g->pairs == 2)
        set_place(c, &g->y, LLVMBuildSub(ir->b, r, ir_mul(ir, image, g->y.n), ""));
    Lv live = g->x.n % c->p->vl == 0 ? NULL : LLVMBuildSub(ir->b, n, x.i, "");
    gen_vector(&c->g, c->p->vl, g->x.s == 1 ? g->x.f : g->x.d, live);
    set_place(c, &g->x, x.i);
    store_places(c, g, con_value(c, s), to, x.i);
    gen_scalar(&c->g);
    ir_loop_end(ir, &x);
}

/* Rows from..to of blocks k0..k1 of the other k; the rows of a block follow one another
 * in memory, most often. */
static void stage_rows(Con *c, Side *s, Lv from, Lv to, Lv k0, Lv k1)
{
    Ir *ir = c->ir;
    const Stage *g = &s->stage;
    Walk others = s->k;
    others.n -= g->pairs;
    int64_t row_bytes = g->pitch * c->p->es;
    IrLoop b = ir_loop(ir, k0, k1, 1, false);
    Lv digit[K_MAX_DIMS], block = LLVMBuildSub(ir->b, b.i, k0, "");
    walk_decode(&others, ir, b.i, digit);
    Lv at = ir_off(ir, c->scratch, g->at);
    at = ir_at_byte(ir, at, ir_mul(ir, block, g->rows * row_bytes));
    IrLoop r = ir_loop(ir, from, to, 1, false);
    walk_set(&others, &c->g, digit);
    Lv row = LLVMBuildSub(ir->b, r.i, from, "");
    stage_row(c, s, r.i, ir_at_byte(ir, at, ir_mul(ir, row, row_bytes)));
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
    Lv table = LLVMAddGlobal(ir->m, LLVMArrayType(ir->i32, (unsigned)p->n_k), "gradc.window");
    LLVMSetInitializer(table, LLVMConstArray(ir->i32, at, (unsigned)p->n_k));
    LLVMSetLinkage(table, LLVMPrivateLinkage);
    LLVMSetGlobalConstant(table, 1);
    return table;
}

/* A vector of the panel's width: where its lanes are staged, at the lowest corner; from
 * lane `split` on they are those of `next`. */
typedef struct Strip {
    Lv here, next, split, over, first;
} Strip;

static Lv place_bytes(Con *c, const Side *s, Lv row, Lv in_run, Lv from)
{
    Ir *ir = c->ir;
    Lv elems = ir_mul(ir, LLVMBuildSub(ir->b, row, from, ""), s->stage.pitch);
    return ir_mul(ir, ir_add(ir, elems, in_run), c->p->es);
}

static Strip strip_at(Con *c, const Side *s, Lv base, Lv r0, Lv count, int at, Lv from)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    Strip t;
    Lv in_run, none, vl = ir_int(ir, p->vl), last = ir_add(ir, count, ir_int(ir, -1));
    Lv first = ir_add(ir, r0, ir_min(ir, ir_int(ir, at), last)); /* lane 0 must exist */
    Lv row = row_of_free(c, s, first, &in_run);
    t.here = ir_at_byte(ir, base, place_bytes(c, s, row, in_run, from));
    t.split = LLVMBuildSub(ir->b, ir_int(ir, s->stage.x.n_f), in_run, "");
    Lv live = ir_min(ir, LLVMBuildSub(ir->b, count, ir_int(ir, at), ""), vl);
    t.over = LLVMBuildICmp(ir->b, LLVMIntSGT, live, t.split, "");
    row = row_of_free(c, s, ir_add(ir, first, t.split), &none);
    Lv back = LLVMBuildNeg(ir->b, t.split, "");
    Lv next = ir_at_byte(ir, base, place_bytes(c, s, row, back, from));
    t.next = LLVMBuildSelect(ir->b, t.over, next, t.here, "");
    Lv n = ir_splat(ir, LLVMBuildTrunc(ir->b, t.split, ir->i32, ""), p->vl);
    t.first = LLVMBuildICmp(ir->b, LLVMIntSLT, ir_iota(ir, ir->i32, p->vl, 1), n, "");
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

/* Whole vectors are stored, as in con_pack.c. */
static void copy_strips(Con *c, int width, const Strip *strip, bool joined, Lv table, Lv kn, Lv dst)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    Lt vec = ir_vec(p->type == F64 ? ir->f64 : ir->f32, p->vl);
    IrLoop k = ir_loop(ir, ir_int(ir, 0), kn, 1, false);
    Lv distance = distance_at(c, table, k.i), line = ir_mul(ir, k.i, width);
    for (int j = 0; j * p->vl < width; j++) {
        Lv x = load_staged(c, vec, strip[j].here, distance);
        if (joined) {
            Lv next = load_staged(c, vec, strip[j].next, distance);
            x = LLVMBuildSelect(ir->b, strip[j].first, x, next, "");
        }
        con_store_packed(c, x, dst, ir_add(ir, line, ir_int(ir, j * p->vl)));
    }
    ir_loop_end(ir, &k);
}

static void copy_vectors(Con *c, const Side *s, int width, Lv base, Lv r0, Lv count, Lv from,
                         Lv table, Lv kn, Lv dst)
{
    Ir *ir = c->ir;
    Strip strip[MAX_STRIPS];
    Lv over = LLVMConstInt(ir->i1, 0, 0);
    for (int j = 0; j * c->p->vl < width; j++) {
        strip[j] = strip_at(c, s, base, r0, count, j * c->p->vl, from);
        over = LLVMBuildOr(ir->b, over, strip[j].over, "");
    }
    IrIf f = ir_if(ir, over);
    copy_strips(c, width, strip, true, table, kn, dst);
    ir_else(ir, &f);
    copy_strips(c, width, strip, false, table, kn, dst);
    ir_end_if(ir, &f);
}

/* Where runs are shorter than a vector. */
static void copy_elements(Con *c, const Side *s, int width, Lv base, Lv r0, Lv count, Lv from,
                          Lv table, Lv kn, Lv dst)
{
    Ir *ir = c->ir;
    Lt elem = c->p->type == F64 ? ir->f64 : ir->f32;
    IrLoop r = ir_loop(ir, ir_int(ir, 0), count, 1, false);
    Lv in_run, row = row_of_free(c, s, ir_add(ir, r0, r.i), &in_run);
    Lv at = ir_at_byte(ir, base, place_bytes(c, s, row, in_run, from));
    IrLoop k = ir_loop(ir, ir_int(ir, 0), kn, 1, false);
    Lv x = load_staged(c, elem, at, distance_at(c, table, k.i));
    con_store_packed(c, x, dst, ir_add(ir, ir_mul(ir, k.i, width), r.i));
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
        con_transpose(c, x + g * lanes, lanes);
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
    Lv row = ir_add(ir, ir_mul(ir, block, g->rows), ir_mul(ir, y, g->y.t));
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

void con_stage_pack(Con *c, Side *s, int width, Lv r0, Lv count, Lv k0, Lv kn, Lv dst)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    const Stage *g = &s->stage;
    Lv window = ir_int(ir, g->x.n_d * g->y.n_d), none;
    Lv block = LLVMBuildUDiv(ir->b, k0, window, "");
    Lv last_k = ir_add(ir, ir_add(ir, k0, kn), ir_int(ir, -1));
    Lv end = ir_add(ir, LLVMBuildUDiv(ir->b, last_k, window, ""), ir_int(ir, 1));
    Lv first = row_of_free(c, s, r0, &none);
    Lv last = row_of_free(c, s, ir_add(ir, ir_add(ir, r0, count), ir_int(ir, -1)), &none);
    last = ir_add(ir, last, ir_int(ir, absolute(g->y.t) * (g->y.n_d - 1) + 1));
    Lv from = ensure(c, s, first, last, block, end);
    int64_t block_bytes = g->rows * g->pitch * p->es;
    Lv back = LLVMBuildNeg(ir->b, ir_mul(ir, block, block_bytes), "");
    Lv base = ir_at_byte(ir, ir_off(ir, c->scratch, g->at), back);
    if (g->along_k) {
        copy_transposed(c, s, width, base, r0, count, from, k0, kn, dst);
        return;
    }
    Lv table = ir_at_byte(ir, distances(c, s), ir_mul(ir, k0, 4));
    if (g->x.n_f < p->vl)
        copy_elements(c, s, width, base, r0, count, from, table, kn, dst);
    else
        copy_vectors(c, s, width, base, r0, count, from, table, kn, dst);
}
