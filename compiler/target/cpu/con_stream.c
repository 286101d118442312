/* Memory that is far is asked for while tiles are computed, a few lines every few steps: where it
 * is met all at once, when a panel is packed or a tile is stored, the processor waits for it, and
 * where a tile asks for many lines at once, what it needs itself has to wait. The tiles of a panel
 * of columns ask for the next panel, each for its part of it; those of the first panel for rows,
 * too: there each tile packs its own, and asks for those of the next; rows that are packed in
 * slices (con_slices.c) are shared out to all tiles of the block before. And each tile that is the
 * last of its sums asks for what its epilogue meets. */
#include "con.h"

enum { LINE = 64, PAGE = 4096, FEW = 4 }; /* tiles of a panel, in which there is no time */

static bool is_large(const ConPlan *p, const Side *s)
{
    int64_t n = s == &p->rows ? p->n_rows : p->n_cols;
    return p->n_k >= 64 && n * p->n_k * p->es > p->mach->l2_bytes / 4;
}

bool con_is_far(const ConPlan *p, const Side *s)
{
    bool regular = (s->plain || s->k_panel > 0) && !s->in_place;
    return regular && (s->pack == PACK_ROW || s->pack == PACK_K) && is_large(p, s);
}

static int64_t lines_of(int64_t bytes)
{
    return (bytes + LINE - 1) / LINE;
}

/* Of panels along k (panels.h): what is packed of one lies in one piece. So many tiles share a
 * piece out, and each asks for so many lines of it. 0: there are too few tiles. */
static int64_t tiles_of_piece(const ConPlan *p)
{
    int64_t pieces = (p->kc + p->cols.k_panel - 1) / p->cols.k_panel;
    return p->mc / pieces;
}

static int64_t piece_lines(const ConPlan *p)
{
    int64_t lines = p->nr * lines_of(p->cols.k_panel * p->es), n = tiles_of_piece(p);
    return (lines + n - 1) / n;
}

/* Along k, columns are shared out to tiles, and a line of each has ASK_STEPS of k; across, steps of
 * k are. Two tiles, as of 16 to 28 rows, are enough: 24 rows by 768 x 3072 weights take a quarter
 * less on one core of an Intel Xeon. A single one is over before lines come. */
static void plan_cols(ConPlan *p)
{
    const Side *s = &p->cols;
    int times = p->mc >= 16 ? 1 : p->mc >= 8 ? 2 : p->mc >= 4 ? 4 : 8;
    Ask across = {(int)lines_of(p->nr * p->es), times, CACHE_2, false};
    if (p->mc < 2 || p->col_panels < 2)
        return;
    if (p->cols_once) {
        if (p->col_panels * con_panel_bytes(p, s) > p->mach->l2_bytes / 4)
            p->ask[ASK_COLS] = across;
        return;
    }
    bool apart = s->panel > 0 || (s->plain && s->ks * s->es >= PAGE);
    bool far = con_is_far(p, s) || (s->in_place && apart && is_large(p, s));
    if (!far)
        return;
    if (!s->in_place && s->k_panel > 0) {
        int64_t asks = p->kc / ASK_STEPS;
        if (tiles_of_piece(p) > 0 && asks > 0)
            p->ask[ASK_COLS] = (Ask){(int)((piece_lines(p) + asks - 1) / asks), 1, CACHE_2, false};
        return;
    }
    Ask along_k = {(int)((p->nr + p->mc - 1) / p->mc), 1, CACHE_2, false};
    p->ask[ASK_COLS] = s->pack == PACK_K && !s->in_place ? along_k : across;
}

bool con_in_blocks(const ConPlan *p)
{
    const Side *r = &p->rows, *c = &p->cols;
    return p->chains && r->in_place && c->in_place && r->plain && r->ks == 1 && c->plain;
}

/* Rows of a panel lie along k: the next panel's are asked for, a line of each at a time (6,400 rows
 * of 150 k by 16 columns 85 to 147 GFLOP/s on an Intel Xeon); across it: their next line of each k.
 * Tiles of a block share out all columns of the next one. */
static void plan_in_place(ConPlan *p)
{
    Side *r = &p->rows;
    if (!r->in_place || !r->plain || !is_large(p, r))
        return;
    if (con_in_blocks(p)) {
        int64_t tiles = p->row_panels * p->col_panels, times = (ASK_STEPS + tiles - 1) / tiles;
        p->ask[ASK_ROWS] = (Ask){p->mr, 1, CACHE_1, false};
        p->ask[ASK_COLS] = (Ask){(int)lines_of(p->n_cols * p->es), (int)times, CACHE_2, false};
    } else if (r->rs == 1 && r->ks * r->es >= PAGE && p->mc >= FEW) {
        p->ask[ASK_ROWS] = (Ask){1, ASK_STEPS, CACHE_1, false};
    } else if (r->ks == 1 && p->row_panels >= FEW) {
        p->ask[ASK_ROWS] = (Ask){p->mr, 1, CACHE_1, false};
    }
}

static bool streams(const ConPlan *p)
{
    return p->mach->arch == ARCH_X86_64 && !p->pairs && !p->window.is;
}

static bool has_far_rows(const ConPlan *p)
{
    return p->row_reach == K_ALL && p->rows.plain && con_is_far(p, &p->rows);
}

/* Where slices of all panels have room, they read longer pieces (con_slices.c): GPT-2's logits
 * in reverse 150 GFLOP/s, not 135, on Granite Rapids; on Zen 5 this takes 3 % less time. */
static bool has_sliced_rows(const ConPlan *p)
{
    return p->rows.pack == PACK_ROW && p->mach->l2_bytes >= CON_LARGE_CACHE;
}

/* A block's rows, of one k after the other, lie in so many lines each; those are in so many parts,
 * one for all steps of a tile. */
static int64_t block_lines(const ConPlan *p)
{
    return lines_of(p->mc * p->mr * p->es);
}

static int64_t block_parts(const ConPlan *p)
{
    int64_t asks = p->kc / ASK_STEPS;
    return (block_lines(p) + asks - 1) / asks;
}

int con_block_asks(const ConPlan *p)
{
    enum { MOST = 8, ALL_BUT = 16 };
    bool next = p->mc < p->row_panels || p->chains;
    if (!streams(p) || p->direct || !has_far_rows(p) || !has_sliced_rows(p) || !next ||
        p->kc < ASK_STEPS)
        return 0;
    int64_t tiles = p->mc * p->nc, parts = p->kc * block_parts(p);
    int64_t n = (parts - parts / ALL_BUT + tiles - 1) / tiles;
    return n <= MOST ? (int)n : 0;
}

static void plan_rows(ConPlan *p)
{
    const Side *s = &p->rows;
    Ask along_k = {p->mr, 1, CACHE_2, false}, across = {1, ASK_STEPS, CACHE_2, false};
    if (p->mc < FEW || !has_far_rows(p))
        return;
    int asks = con_block_asks(p);
    if (asks > 0)
        p->ask[ASK_BLOCK] = (Ask){asks, 1, CACHE_2, false};
    else if (!has_sliced_rows(p))
        p->ask[ASK_ROWS] = s->pack == PACK_K ? along_k : across;
}

void con_stream_plan(ConPlan *p)
{
    if (p->mach->arch == ARCH_X86_64 && !p->pairs)
        con_next_plan(p);
    if (!streams(p))
        return;
    if (!p->direct) {
        plan_cols(p);
        plan_rows(p);
        plan_in_place(p);
    }
    con_out_plan(p);
}

bool con_streams(const ConPlan *p)
{
    for (int i = 0; i < MAX_ASKS; i++)
        if (p->ask[i].n > 0)
            return true;
    return false;
}

ConStream con_no_stream(Con *c)
{
    Lv none = ir_int(c->ir, 0);
    return (ConStream){c->scratch, none, none};
}

ConStream con_stream_if(Con *c, Lv cond, const ConStream *x)
{
    LLVMBuilderRef b = c->ir->b;
    ConStream no = con_no_stream(c);
    return (ConStream){LLVMBuildSelect(b, cond, x->at, no.at, ""),
                       LLVMBuildSelect(b, cond, x->step, no.step, ""),
                       LLVMBuildSelect(b, cond, x->gap, no.gap, "")};
}

ConStream con_stream_cols(Con *c, Lv panel, Lv k0, Lv kn, Lv tile)
{
    Ir *ir = c->ir;
    ConPlan *p = c->p;
    Side *s = &p->cols;
    const Ask *ask = &p->ask[ASK_COLS];
    Lv col = ir_mul(ir, panel, p->nr);
    bool packs = !s->in_place && !p->cols_once; /* the panel that is asked for */
    if (packs && s->k_panel > 0) {
        Lv tiles = ir_int(ir, tiles_of_piece(p)), part = LLVMBuildURem(ir->b, tile, tiles, "");
        Lv k = ir_mul(ir, LLVMBuildUDiv(ir->b, tile, tiles, ""), s->k_panel);
        Lv at = ir_at_byte(ir, con_address(c, s, col, ir_add(ir, k0, k)),
                           ir_mul(ir, part, piece_lines(p) * LINE));
        ConStream x = {at, ir_int(ir, (int64_t)ask->n * LINE), ir_int(ir, LINE)};
        return con_stream_if(c, con_less(c, k, kn), &x);
    }
    if (packs && s->pack == PACK_K) {
        Lv from = ir_mul(ir, tile, ask->n);
        ConStream x = {con_address(c, s, ir_add(ir, col, from), k0), ir_int(ir, ASK_STEPS * p->es),
                       ir_int(ir, s->rs * p->es)};
        return con_stream_if(c, con_less(c, from, ir_int(ir, p->nr)), &x);
    }
    Lv each = ir_mul(ir, LLVMBuildUDiv(ir->b, kn, ir_int(ir, ASK_STEPS), ""), ask->times);
    Lv from = LLVMBuildMul(ir->b, tile, each, "");
    Lv k = ir_add(ir, k0, from);
    ConStream x = {p->cols_once ? con_packed_once(c, panel, k) : con_address(c, s, col, k),
                   ir_int(ir, (p->cols_once ? p->nr : s->ks) * p->es), ir_int(ir, LINE)};
    return con_stream_if(c, con_less(c, from, kn), &x);
}

ConStream con_stream_rows(Con *c, Lv panel, Lv k0)
{
    Ir *ir = c->ir;
    ConPlan *p = c->p;
    Side *s = &p->rows;
    Lv count, row = con_row_of(c, panel, &count);
    if (s->in_place ? s->ks == 1 : s->pack == PACK_K)
        return (ConStream){con_address(c, s, row, k0), ir_int(ir, ASK_STEPS * p->es),
                           ir_int(ir, s->rs * p->es)};
    /* Its first line is the last one of the panel before. */
    row = ir_add(ir, row, ir_add(ir, count, ir_int(ir, -1)));
    return (ConStream){con_address(c, s, row, k0), ir_int(ir, s->ks * p->es), ir_int(ir, 0)};
}

ConStream con_stream_block(Con *c, Lv panel, Lv k0, Lv kn, Lv tile)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    Side *s = &c->p->rows;
    int64_t asks = p->kc / ASK_STEPS, n = block_parts(p);
    int64_t step = block_lines(p) * LINE / (asks * n); /* at most a line: none is left out */
    Lv parts = ir_int(ir, n), part = LLVMBuildURem(ir->b, tile, parts, "");
    Lv k = ir_mul(ir, LLVMBuildUDiv(ir->b, tile, parts, ""), p->ask[ASK_BLOCK].n);
    Lv count, row = con_row_of(c, panel, &count);
    Lv at = con_address(c, s, row, ir_add(ir, k0, k));
    ConStream x = {ir_at_byte(ir, at, ir_mul(ir, part, asks * step)), ir_int(ir, step),
                   ir_int(ir, s->ks * s->es)};
    return con_stream_if(c, con_less(c, k, kn), &x);
}
