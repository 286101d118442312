/* Contraction kernels: the loops around the tile (con.h has the picture). */
#include "con.h"

typedef struct Range {
    Lv from, to;
} Range;

/* What one tile needs to know of the loops around it. */
typedef struct Place {
    Lv k0, kn, resume, fold, first_leaf, last; /* i1: resume..last */
    Lv row_from, row_to, col_from, col_to;     /* panels of the blocks */
    Lv pitch;                                  /* of rows of a straight tile, or NULL */
    Lines plus;                                /* what is added to such a tile, or at is NULL */
    int vectors;                               /* of such a tile: con_narrow(), or 0: nv */
    Lv table;                                  /* of a direct plan: con_stage_direct(); ... */
    Lv base;                                   /* of a window: con_window_base(), _table() */
    ConStream ask[MAX_ASKS];                   /* what the tile asks for */
} Place;

static Lv equal(Con *c, Lv x, Lv y)
{
    return LLVMBuildICmp(c->ir->b, LLVMIntEQ, x, y, "");
}

static Lv scratch_at(Con *c, int64_t offset)
{
    return ir_off(c->ir, c->scratch, offset);
}

static int64_t tile_bytes(const ConPlan *p)
{
    return align_up((int64_t)p->mr * p->nr * p->es, 64);
}

static Range within(Con *c, Range r, Lv end)
{
    return (Range){r.from, ir_min(c->ir, r.to, end)};
}

static Lv sum_end(Con *c)
{
    Lv all = ir_int(c->ir, c->p->n_k);
    return c->p->k_reach == K_ALL ? all : ir_min(c->ir, c->g.limit, all);
}

/* ---- one tile -------------------------------------------------------------------- */

static void sum_edges(Con *c, int rows, int64_t b_k, Lv a, Lv b, Lv t, const Place *at)
{
    Ir *ir = c->ir;
    const Window *w = &c->p->window;
    Lv image = ir_int(ir, w->edges.image);
    Lv in_table = LLVMBuildURem(ir->b, at->k0, ir_int(ir, w->table), "");
    ConEdgesPanel panel = {.a = a,
                           .b = b,
                           .sums = t,
                           .b_k = b_k,
                           .image0 = LLVMBuildUDiv(ir->b, in_table, image, ""),
                           .images = LLVMBuildUDiv(ir->b, at->kn, image, ""),
                           .resume = at->resume,
                           .ask = at->ask};
    con_edges_panel(c, rows, &panel);
}

static void call_tile(Con *c, int rows, bool packed_b, Lv a, Lv b, Lv t, const Place *at)
{
    const ConPlan *p = c->p;
    const Side *r = &p->rows, *s = &p->cols;
    int step = p->pairs ? 2 : 1; /* of k */
    ConStrides by = {.a_row = p->es, .a_k = (int64_t)p->mr * p->es, .b_k = (int64_t)p->nr * p->es};
    if (r->in_place) {
        by.a_row = r->rs * r->es;
        by.a_k = r->ks * r->es * step;
    }
    if (!packed_b) {
        by.b_k = p->direct ? 0 : s->ks * s->es * step;
        by.apart = p->pairs;
    }
    if (p->window.edges.is) {
        sum_edges(c, rows, by.b_k, a, b, t, at);
        return;
    }
    if (p->window.is) {
        rows *= (int)p->window.inner;
        by.a_row = by.a_k = 0; /* the tile knows */
    }
    by.c_apart = at->pitch != NULL;
    by.plus = at->plus.at != NULL;
    Lv fn = con_tile(c->ir, p, rows, at->vectors > 0 ? at->vectors : p->nv, by);
    Lv arg[CON_TILE_ARGS] = {a, b, t, con_steps_of(c, at->kn), at->resume};
    int n = 5;
    if (p->direct || p->window.is)
        arg[n++] = at->table;
    if (by.c_apart)
        arg[n++] = at->pitch;
    if (by.plus) {
        arg[n++] = at->plus.at;
        arg[n++] = ir_int(c->ir, at->plus.pitch);
    }
    for (int i = 0; i < MAX_ASKS; i++) {
        if (p->ask[i].n == 0)
            continue;
        arg[n++] = at->ask[i].at;
        arg[n++] = at->ask[i].step;
        arg[n++] = at->ask[i].gap;
    }
    ir_call(c->ir, fn, arg, n);
}

/* The variant for this panel's height. */
static void call_height(Con *c, bool packed_b, Lv panel, Lv a, Lv b, Lv t, const Place *at)
{
    const ConPlan *p = c->p;
    if (p->n_k == 0) {
        con_zero_tile(c, t);
        return;
    }
    if (p->taller == 0) {
        call_tile(c, (int)p->height, packed_b, a, b, t, at);
        return;
    }
    IrIf f = ir_if(c->ir, con_less(c, con_in_segment(c, panel), ir_int(c->ir, p->taller)));
    call_tile(c, (int)p->height + 1, packed_b, a, b, t, at);
    ir_else(c->ir, &f);
    call_tile(c, (int)p->height, packed_b, a, b, t, at);
    ir_end_if(c->ir, &f);
}

/* Where all or some of the tile's sums are of no terms. */
static void sum_tile(Con *c, bool packed_b, Lv row_panel, Lv col_panel, Lv a, Lv b, Lv t,
                     const Place *at)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    bool rows = p->row_reach == K_ZERO, cols = p->col_reach == K_ZERO;
    if (!rows && !cols) {
        call_height(c, packed_b, row_panel, a, b, t, at);
        return;
    }
    Lv none, row0 = con_row_of(c, row_panel, &none), col0 = con_col_of(c, col_panel, &none);
    Lv some = con_less(c, rows ? row0 : col0, c->g.limit);
    if (rows && cols)
        some = LLVMBuildAnd(ir->b, some, con_less(c, col0, c->g.limit), "");
    IrIf f = ir_if(ir, some);
    call_height(c, packed_b, row_panel, a, b, t, at);
    if (rows)
        con_zero_rows(c, t, row0);
    if (cols)
        con_zero_cols(c, t, col0);
    ir_else(ir, &f);
    con_zero_tile(c, t);
    ir_end_if(ir, &f);
}

static Lv packed_rows(Con *c, const Place *at, Lv panel)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    Lv n = LLVMBuildSub(ir->b, panel, at->row_from, "");
    return ir_at_byte(ir, scratch_at(c, p->a_at), ir_mul(ir, n, con_panel_bytes(p, &p->rows)));
}

/* Storage of a tile between blocks of k. */
static Lv tile_at(Con *c, int64_t base, bool each, const Place *at, Lv row, Lv col)
{
    Ir *ir = c->ir;
    Lv p = scratch_at(c, base);
    if (!each)
        return p;
    Lv i = LLVMBuildSub(ir->b, row, at->row_from, ""),
       j = LLVMBuildSub(ir->b, col, at->col_from, "");
    Lv n = con_rests_once(c->p) ? i : ir_add(ir, ir_mul(ir, i, c->p->nc), j);
    return ir_at_byte(ir, p, ir_mul(ir, n, tile_bytes(c->p)));
}

/* s = first ? t : s + t */
static void fold_leaf(Con *c, Lv s, Lv t, const Place *at)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    Lt vec = ir_vec(p->type == F64 ? ir->f64 : ir->f32, p->vl);
    IrIf f = ir_if(ir, at->fold);
    Lv end = ir_int(ir, (int64_t)p->mr * p->nr * p->es);
    IrLoop l = ir_loop(ir, ir_int(ir, 0), end, (int64_t)p->vl * p->es, false);
    Lv to = ir_at_byte(ir, s, l.i);
    Lv x = ir_load(ir, vec, ir_at_byte(ir, t, l.i), p->es), old = ir_load(ir, vec, to, p->es);
    Lv sum = LLVMBuildFAdd(ir->b, old, x, "");
    ir_store(ir, LLVMBuildSelect(ir->b, at->first_leaf, x, sum, ""), to, p->es);
    ir_loop_end(ir, &l);
    ir_end_if(ir, &f);
}

/* Where the tile reads its rows. */
static Lv rows_at(Con *c, Lv panel, Lv row0, const Place *at)
{
    ConPlan *p = c->p;
    return p->window.is       ? con_window_at(c, at->base, row0)
           : p->rows.in_place ? con_address(c, &p->rows, row0, at->k0)
                              : packed_rows(c, at, panel);
}

/* By way of scratch. */
static void emit_stored(Con *c, Lv row_panel, Lv col_panel, Lv b, bool packed_b, const Place *at)
{
    Ir *ir = c->ir;
    ConPlan *p = c->p;
    Lv rows, cols, row0 = con_row_of(c, row_panel, &rows), col0 = con_col_of(c, col_panel, &cols);
    Lv a = rows_at(c, row_panel, row0, at);
    Lv t = tile_at(c, p->t_at, p->chains, at, row_panel, col_panel);
    if (p->ahead)
        con_out_ahead(c, row0, rows, col0, cols);
    sum_tile(c, packed_b, row_panel, col_panel, a, b, t, at);
    Lv s = t;
    if (p->sums) {
        s = tile_at(c, p->s_at, true, at, row_panel, col_panel);
        fold_leaf(c, s, t, at);
    }
    bool always = !p->sums && !p->chains;
    IrIf f = {NULL, NULL}, right = {NULL, NULL};
    if (!always)
        f = ir_if(ir, at->last);
    if (p->window.edges.is)
        right = ir_if(ir, con_edges_check(c, s, rows));
    con_epilogue(c, s, row0, rows, col0, cols);
    if (p->window.edges.is)
        ir_end_if(ir, &right);
    if (!always)
        ir_end_if(ir, &f);
}

/* Where its sums are stored; of fewer vectors than nv, where `vectors` says so. */
static void emit_straight(Con *c, Lv row_panel, Lv col_panel, Lv b, bool packed_b, const Place *at,
                          int vectors)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    Place here = *at;
    Lv rows, cols, row0 = con_row_of(c, row_panel, &rows), col0 = con_col_of(c, col_panel, &cols);
    Lines to = con_straight_at(c, row0, col0, &here.plus);
    here.pitch = ir_int(ir, to.pitch);
    here.vectors = vectors;
    sum_tile(c, packed_b, row_panel, col_panel, rows_at(c, row_panel, row0, at), b, to.at, &here);
    if (p->k->con.all != 0 || p->finishes) {
        IrIf done = ir_if(ir, at->last);
        con_finish(c, to.at, row0, rows, col0, vectors > 0 ? vectors : p->nv, to.pitch);
        ir_end_if(ir, &done);
    }
}

/* No row, no column of it lies beyond the last one or the limit. */
static Lv is_whole(Con *c, Lv row_panel, Lv col_panel)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    Lv none, rows, cols, row0 = con_row_of(c, row_panel, &rows);
    con_col_of(c, col_panel, &cols);
    Lv whole = equal(c, cols, ir_int(ir, p->nr));
    if (p->row_reach != K_LIMITED)
        return whole;
    Lv next = con_row_of(c, ir_add(ir, row_panel, ir_int(ir, 1)), &none);
    return LLVMBuildAnd(ir->b, whole, equal(c, ir_add(ir, row0, rows), next), "");
}

static void emit_tile(Con *c, Lv row_panel, Lv col_panel, Lv b, bool packed_b, const Place *at)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    int narrow = con_narrow(p);
    if (!p->straight) {
        emit_stored(c, row_panel, col_panel, b, packed_b, at);
        return;
    }
    if (con_all_straight(p) && narrow == 0) {
        emit_straight(c, row_panel, col_panel, b, packed_b, at, 0);
        return;
    }
    IrIf f = ir_if(ir, is_whole(c, row_panel, col_panel));
    emit_straight(c, row_panel, col_panel, b, packed_b, at, 0);
    ir_else(ir, &f);
    if (narrow > 0)
        emit_straight(c, row_panel, col_panel, b, packed_b, at, narrow);
    else
        emit_stored(c, row_panel, col_panel, b, packed_b, at);
    ir_end_if(ir, &f);
}

/* ---- blocks ------------------------------------------------------------------------ */

static void pack_panel_of_rows(Con *c, Lv panel, const Place *at)
{
    ConPlan *p = c->p;
    Lv count, row0 = con_row_of(c, panel, &count);
    con_pack(c, &p->rows, p->mr, row0, count, at->k0, at->kn, packed_rows(c, at, panel));
}

/* A straight tile begins with what it has stored before, so the one before asks for that. */
static void begin_out_asks(Con *c, Lv row_panel, Lv col_panel, Place *at)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    Lv none, row = row_panel, col = col_panel, one = ir_int(ir, 1);
    if (p->straight && p->chains) {
        row = ir_add(ir, row, one);
        Lv more = con_less(c, row, at->row_to);
        col = LLVMBuildSelect(ir->b, more, col, ir_add(ir, col, one), "");
        row = LLVMBuildSelect(ir->b, more, row, at->row_from, "");
    }
    for (int i = 0; i < MAX_OUT_ASKS && p->ask[ASK_OUT + i].n > 0; i++) {
        ConStream out = con_stream_out(c, i, con_row_of(c, row, &none), con_col_of(c, col, &none));
        at->ask[ASK_OUT + i] = p->straight ? out : con_stream_if(c, at->last, &out);
    }
}

static Lv tile_in_block(Con *c, Lv row_panel, Lv col_panel, const Place *at)
{
    Ir *ir = c->ir;
    Lv rows = LLVMBuildSub(ir->b, at->row_to, at->row_from, "");
    Lv before = LLVMBuildMul(ir->b, LLVMBuildSub(ir->b, col_panel, at->col_from, ""), rows, "");
    return ir_add(ir, before, LLVMBuildSub(ir->b, row_panel, at->row_from, ""));
}

/* Rows of the first panel of columns are packed one tile ahead of being read; what comes after the
 * last panel of columns is the first one of the next block of k. */
static void begin_asks(Con *c, Lv row_panel, Lv col_panel, Place *at)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    Lv one = ir_int(ir, 1);
    if (p->ask[ASK_ROWS].n > 0) {
        Lv first = equal(c, col_panel, at->col_from);
        if (!p->rows.in_place) {
            IrIf f = ir_if(ir, first);
            pack_panel_of_rows(c, row_panel, at);
            ir_end_if(ir, &f);
        }
        ConStream rows = con_stream_rows(c, ir_add(ir, row_panel, one), at->k0);
        at->ask[ASK_ROWS] = con_stream_if(c, first, &rows);
    }
    if (p->ask[ASK_BLOCK].n > 0) {
        Lv next = LLVMBuildSelect(ir->b, at->last, ir_int(ir, 0), ir_add(ir, at->k0, at->kn), "");
        Lv rows = LLVMBuildSelect(ir->b, at->last, at->row_to, at->row_from, "");
        Lv tile = tile_in_block(c, row_panel, col_panel, at);
        ConStream block = con_stream_block(c, rows, next, at->kn, tile);
        at->ask[ASK_BLOCK] = con_stream_if(c, con_less(c, rows, c->rows_end), &block);
    }
    if (p->ask[ASK_COLS].n > 0 && con_in_blocks(p)) {
        Lv tile = tile_in_block(c, row_panel, col_panel, at), next = ir_add(ir, at->k0, at->kn);
        at->ask[ASK_COLS] = con_stream_cols(c, ir_int(ir, 0), next, at->kn, tile);
    } else if (p->ask[ASK_COLS].n > 0) {
        Lv next = ir_add(ir, col_panel, one), more = con_less(c, next, at->col_to);
        Lv k = LLVMBuildSelect(ir->b, more, at->k0, ir_add(ir, at->k0, at->kn), "");
        next = LLVMBuildSelect(ir->b, more, next, at->col_from, "");
        Lv tile = LLVMBuildSub(ir->b, row_panel, at->row_from, "");
        at->ask[ASK_COLS] = con_stream_cols(c, next, k, at->kn, tile);
    }
    for (int i = 0; i < MAX_NEXT && p->ask[ASK_NEXT + i].n > 0; i++) {
        ConAsker tile = {row_panel, col_panel, at->col_from,
                         tile_in_block(c, row_panel, col_panel, at), ir_add(ir, at->k0, at->kn)};
        at->ask[ASK_NEXT + i] = con_stream_next(c, i, &tile);
    }
    begin_out_asks(c, row_panel, col_panel, at);
}

static void rows_of_tiles(Con *c, Range rows, Lv col_panel, Lv b, bool packed_b, const Place *where)
{
    IrLoop l = ir_loop(c->ir, rows.from, rows.to, 1, false);
    Place here = *where, *at = &here;
    if (con_streams(c->p))
        begin_asks(c, l.i, col_panel, at);
    emit_tile(c, l.i, col_panel, b, packed_b, at);
    ir_loop_end(c->ir, &l);
}

/* ... but those that nothing is made of. */
static void pack_cols(Con *c, Lv col0, Lv cols, const Place *at, Lv to)
{
    IrIf f = {NULL, NULL};
    bool some = c->p->col_reach == K_ZERO;
    if (some)
        f = ir_if(c->ir, con_less(c, col0, c->g.limit));
    con_pack(c, &c->p->cols, c->p->nr, col0, cols, at->k0, at->kn, to);
    if (some)
        ir_end_if(c->ir, &f);
}

static void pack_all_cols(Con *c, Lv row_from)
{
    Ir *ir = c->ir;
    ConPlan *p = c->p;
    Lv zero = ir_int(ir, 0), panels = ir_int(ir, p->col_panels);
    c->leads = equal(c, row_from, zero);
    Place all = {.k0 = zero, .kn = sum_end(c)};
    con_stage_reset(c, &p->cols);
    IrLoop l = ir_loop(ir, zero, panels, p->group, false);
    Lv to = con_packed_once(c, l.i, zero);
    if (p->cols.sliced) {
        Lv end = ir_min(ir, ir_add(ir, l.i, ir_int(ir, p->group)), panels);
        con_pack_slices(c, &p->cols, l.i, end, all.k0, all.kn, to);
    } else {
        Lv cols, col0 = con_col_of(c, l.i, &cols);
        pack_cols(c, col0, cols, &all, to);
    }
    ir_loop_end(ir, &l);
}

static void column_panel(Con *c, Range rows, Lv panel, const Place *at)
{
    Ir *ir = c->ir;
    ConPlan *p = c->p;
    Lv cols, col0 = con_col_of(c, panel, &cols), packed = scratch_at(c, p->b_at);
    if (p->direct) {
        Place staged = *at;
        Lv base = ir_slot(ir, LLVMArrayType(ir->ptr, (unsigned)p->nv), 8);
        staged.table = con_stage_direct(c, &p->cols, col0, cols, at->k0, at->kn, base);
        rows_of_tiles(c, rows, panel, base, false, &staged);
        return;
    }
    if (con_sums_side(p, &p->cols) && p->cols.in_place)
        con_sum_in_place(c, &p->cols, col0, ir_add(ir, col0, cols), at->k0, at->kn);
    bool both = p->cols.in_place && p->n_cols % p->nr != 0 && con_narrow(p) == 0;
    IrIf f = {NULL, NULL};
    if (both)
        f = ir_if(ir, equal(c, cols, ir_int(ir, p->nr)));
    if (p->cols.in_place)
        rows_of_tiles(c, rows, panel, con_address(c, &p->cols, col0, at->k0), false, at);
    if (both)
        ir_else(ir, &f);
    if (both || !p->cols.in_place) {
        if (p->cols_once)
            packed = con_packed_once(c, panel, at->k0);
        else if (p->n_k > 0)
            pack_cols(c, col0, cols, at, packed);
        rows_of_tiles(c, rows, panel, packed, true, at);
    }
    if (both)
        ir_end_if(ir, &f);
}

/* Panels of columns that are packed together. */
static void column_group(Con *c, Range rows, Range cols, const Place *at)
{
    Ir *ir = c->ir;
    ConPlan *p = c->p;
    Lv packed = scratch_at(c, p->b_at);
    con_pack_slices(c, &p->cols, cols.from, cols.to, at->k0, at->kn, packed);
    IrLoop l = ir_loop(ir, cols.from, cols.to, 1, false);
    Lv panel = ir_mul(ir, LLVMBuildSub(ir->b, l.i, cols.from, ""), con_panel_bytes(p, &p->cols));
    rows_of_tiles(c, rows, l.i, ir_at_byte(ir, packed, panel), true, at);
    ir_loop_end(ir, &l);
}

/* Of several lanes, or blocks, that meet the same elements one sums them up. */
static void begin_side_sums(Con *c, Range rows, Range cols, const Place *at)
{
    Ir *ir = c->ir;
    ConPlan *p = c->p;
    if (p->k->con.side_sum == 0)
        return;
    bool of_rows = con_sums_side(p, &p->rows);
    c->leads = equal(c, of_rows ? cols.from : rows.from, ir_int(ir, 0));
    if (!of_rows || !p->rows.in_place)
        return;
    Lv n, from = con_row_of(c, rows.from, &n);
    Lv last = con_row_of(c, ir_add(ir, rows.to, ir_int(ir, -1)), &n);
    con_sum_in_place(c, &p->rows, from, ir_add(ir, last, n), at->k0, at->kn);
}

static void k_block(Con *c, Range rows, Range cols, const Place *where)
{
    Ir *ir = c->ir;
    ConPlan *p = c->p;
    Place here = *where, *at = &here;
    con_stage_reset(c, &p->rows);
    con_stage_reset(c, &p->cols);
    begin_side_sums(c, rows, cols, at);
    if (p->window.is) {
        Lv count, first = con_row_of(c, rows.from, &count);
        Lv last = con_row_of(c, ir_add(ir, rows.to, ir_int(ir, -1)), &count);
        count = ir_add(ir, LLVMBuildSub(ir->b, last, first, ""), count);
        at->base = con_window_base(c, first, count, at->k0, at->kn);
        if (!p->window.edges.is)
            at->table = con_window_table(c, at->k0);
    } else if (p->rows.sliced && p->n_k > 0) {
        con_pack_slices(c, &p->rows, rows.from, rows.to, at->k0, at->kn, scratch_at(c, p->a_at));
    } else if (!p->rows.in_place && p->ask[ASK_ROWS].n == 0 && p->n_k > 0) {
        Range some = within(c, rows, con_row_panels_end(c));
        IrLoop l = ir_loop(ir, some.from, some.to, 1, p->row_reach != K_ALL);
        pack_panel_of_rows(c, l.i, at);
        ir_loop_end(ir, &l);
    }
    bool grouped = p->cols.sliced && !p->cols_once && p->n_k > 0;
    IrLoop l = ir_loop(ir, cols.from, cols.to, grouped ? p->group : 1, false);
    Range group = {l.i, ir_min(ir, ir_add(ir, l.i, ir_int(ir, p->group)), cols.to)};
    if (grouped)
        column_group(c, rows, group, at);
    else
        column_panel(c, rows, l.i, at);
    ir_loop_end(ir, &l);
}

/* Leaves of k, and blocks of a leaf. */
static void k_blocks(Con *c, Range rows, Range cols)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    Lv zero = ir_int(ir, 0), one = LLVMConstInt(ir->i1, 1, 0), no = LLVMConstInt(ir->i1, 0, 0);
    Place at = {.row_from = rows.from, .row_to = rows.to, .col_from = cols.from, .col_to = cols.to};
    if (!p->sums && !p->chains) {
        at.k0 = zero;
        at.kn = sum_end(c);
        at.resume = no;
        at.fold = at.first_leaf = at.last = one;
        k_block(c, rows, cols, &at);
        return;
    }
    Lv end = sum_end(c);
    IrLoop leaf = ir_loop(ir, zero, end, p->leaf, false);
    Lv leaf_end = ir_min(ir, ir_add(ir, leaf.i, ir_int(ir, p->leaf)), end);
    IrLoop k = ir_loop(ir, leaf.i, leaf_end, p->kc, false);
    Lv block_end = ir_min(ir, ir_add(ir, k.i, ir_int(ir, p->kc)), leaf_end);
    at.k0 = k.i;
    at.kn = LLVMBuildSub(ir->b, block_end, k.i, "");
    at.resume = con_less(c, leaf.i, k.i);
    at.fold = equal(c, block_end, leaf_end);
    at.first_leaf = equal(c, leaf.i, zero);
    at.last = equal(c, block_end, end);
    k_block(c, rows, cols, &at);
    ir_loop_end(ir, &k);
    ir_loop_end(ir, &leaf);
}

/* Blocks of rows that begin at multiples of so many panels: what is staged has room for those. */
static void window_blocks(Con *c, Range rows, Range cols)
{
    Ir *ir = c->ir;
    Lv mc = ir_int(ir, c->p->mc);
    Lv from = LLVMBuildUDiv(ir->b, rows.from, mc, "");
    IrLoop i = ir_loop(ir, ir_mul(ir, from, c->p->mc), rows.to, c->p->mc, false);
    Lv begins = con_less(c, i.i, rows.from), to = ir_min(ir, ir_add(ir, i.i, mc), rows.to);
    Range r = {LLVMBuildSelect(ir->b, begins, rows.from, i.i, ""), to};
    k_blocks(c, r, cols);
    ir_loop_end(ir, &i);
}

static void all_blocks(Con *c, Range rows, Range cols)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    c->rows_end = rows.to;
    IrLoop j = ir_loop(ir, cols.from, cols.to, p->nc, false);
    Range jr = {j.i, ir_min(ir, ir_add(ir, j.i, ir_int(ir, p->nc)), cols.to)};
    if (p->window.is) {
        window_blocks(c, rows, jr);
    } else {
        IrLoop i = ir_loop(ir, rows.from, rows.to, p->mc, false);
        Range r = {i.i, ir_min(ir, ir_add(ir, i.i, ir_int(ir, p->mc)), rows.to)};
        k_blocks(c, r, jr);
        ir_loop_end(ir, &i);
    }
    ir_loop_end(ir, &j);
}

/* ... as far as they go, which may be nowhere for this unit. */
static void limited_blocks(Con *c, Range rows, Range cols)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    if (p->row_reach == K_LIMITED)
        rows = within(c, rows, con_row_panels_end(c));
    if (p->col_reach == K_LIMITED)
        cols = within(c, cols, con_col_panels_end(c));
    if (p->row_reach != K_LIMITED && p->col_reach != K_LIMITED) {
        all_blocks(c, rows, cols);
        return;
    }
    Lv any_row = con_less(c, rows.from, rows.to), any_col = con_less(c, cols.from, cols.to);
    Lv some = LLVMBuildAnd(ir->b, any_row, any_col, "");
    IrIf f = ir_if(ir, some);
    all_blocks(c, rows, cols);
    ir_end_if(ir, &f);
}

/* ---- units: panels of one batch after the other -------------------------------------- */

static void emit_units(Con *c, Lv begin, Lv end)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    int64_t panels = p->split_cols ? p->col_panels : p->row_panels;
    Range all_rows = {ir_int(ir, 0), ir_int(ir, p->row_panels)};
    Range all_cols = {ir_int(ir, 0), ir_int(ir, p->col_panels)};
    Lb before = ir_here(ir), head = ir_block(ir, "unit"), done = ir_block(ir, "done");
    ir_cond(ir, con_less(c, begin, end), head, done);
    ir_at(ir, head);
    Lv u = LLVMBuildPhi(ir->b, ir->i64, "");
    LLVMAddIncoming(u, &begin, &before, 1);
    Lv n = ir_int(ir, panels), b = LLVMBuildUDiv(ir->b, u, n, "");
    Lv start = ir_mul(ir, b, panels), from = LLVMBuildSub(ir->b, u, start, "");
    Lv to = ir_min(ir, LLVMBuildSub(ir->b, end, start, ""), n);
    /* Batch indices are decoded in full: their terms are scalars in every section. */
    Lv flat = b;
    for (int d = p->k->con.n[K_B]; d-- > 0;) {
        Val v = p->k->con.dim[K_B][d];
        Lv extent = ir_int(ir, p->k->inst.at[v].imm.i);
        c->g.value[v] = d > 0 ? LLVMBuildURem(ir->b, flat, extent, "") : flat;
        flat = d > 0 ? LLVMBuildUDiv(ir->b, flat, extent, "") : flat;
    }
    if (p->cols_once)
        pack_all_cols(c, from);
    Range some = {from, to};
    ConEdgesUnit summed = {NULL, NULL};
    if (p->window.edges.is)
        summed = con_edges_begin(c);
    limited_blocks(c, p->split_cols ? all_rows : some, p->split_cols ? some : all_cols);
    if (p->window.edges.is)
        con_edges_end(c, &summed);
    Lv next = ir_add(ir, u, LLVMBuildSub(ir->b, to, from, ""));
    Lb here = ir_here(ir);
    LLVMAddIncoming(u, &next, &here, 1);
    ir_cond(ir, con_less(c, next, end), head, done);
    LLVMMoveBasicBlockAfter(done, here);
    ir_at(ir, done);
}

static KernelFn plan_of(const ConPlan *p)
{
    return (KernelFn){.n_units = p->n_units,
                      .chunks = emit_chunks(p->cycles, p->n_units),
                      .scratch = p->scratch,
                      .cycles = p->cycles};
}

static Val slowest(const Kernel *k, KRole role)
{
    for (int d = 0; d < k->con.n[role]; d++)
        if (k->inst.at[k->con.dim[role][d]].imm.i > 1)
            return k->con.dim[role][d];
    return 0;
}

static double pack_again(const Side *s, int64_t elems)
{
    return s->in_place ? 0 : (double)elems * s->pack_cycles;
}

/* Units of one batch after the other, or the panels that lanes share. */
static Slabs *slabs_of_plan(const ConPlan *p, Arena *arena)
{
    const Kernel *k = p->k;
    if (p->lanes != NULL)
        return con_lanes_slabs(p, arena);
    KRole rows = p->swap ? K_N : K_M, cols = p->swap ? K_M : K_N;
    Val v = slowest(k, p->n_batch > 1 ? K_B : p->split_cols ? cols : rows);
    if (p->n_units == 0 || v == 0 || k->limit.is)
        return NULL;
    int64_t extent = k->inst.at[v].imm.i, units = p->n_units / extent, each = 1;
    double again = 0;
    if (p->n_batch == 1 && p->split_cols) {
        units = p->n_cols / extent;
        each = p->nr;
        again = p->window.is ? 0 : pack_again(&p->rows, p->n_rows * p->n_k);
        if (p->n_cols % extent != 0)
            return NULL;
    } else if (p->n_batch == 1) {
        again = pack_again(&p->cols, p->n_cols * p->n_k);
        if (!p->window.is) {
            units = p->n_rows / extent;
            each = p->height;
        }
        if (p->window.is ? p->n_rows / extent % p->window.segment != 0 : p->taller > 0)
            return NULL;
    }
    Slabs *s = slabs_of(k, v, units, each, arena);
    s->again = again;
    return s;
}

KernelFn plan_contraction(const Machine *m, const Kernel *k, Arena *arena)
{
    ConPlan p;
    con_plan(&p, k, m, arena);
    return plan_of(&p);
}

KernelFn emit_contraction(Ir *ir, const Kernel *k, const char *name, Arena *arena)
{
    ConPlan *p = NEW(arena, ConPlan);
    con_plan(p, k, ir->mach, arena);
    Con c = {.ir = ir, .p = p, .arena = arena};
    gen_init(&c.g, ir, p->k, arena);
    KernelFn out = plan_of(p);
    out.slabs = slabs_of_plan(p, arena);
    out.fn = emit_kernel_begin(ir, p->k, name, c.g.buf);
    c.scratch = LLVMGetParam(out.fn, 1);
    gen_limit(&c.g);
    if (p->lanes != NULL)
        con_lanes_units(&c, LLVMGetParam(out.fn, 2), LLVMGetParam(out.fn, 3));
    else if (p->n_units > 0)
        emit_units(&c, LLVMGetParam(out.fn, 2), LLVMGetParam(out.fn, 3));
    LLVMBuildRetVoid(ir->b);
    return out;
}
