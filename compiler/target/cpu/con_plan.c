/* The plan of a contraction: which index lies along the lanes, the tile, what is
 * packed and how, blocks from the caches. Constants are cycles on a core with two
 * fma units, good enough to rank the choices. */
#include <assert.h>
#include <string.h>
#include "con.h"

enum { LINE = 64 }; /* bytes of a cache line */

/* A limited dim is the only one of its role. */
static KReach role_reach(const Kernel *k, KRole role)
{
    return k->con.n[role] == 1 ? (KReach)k->inst.at[k->con.dim[role][0]].reach : K_ALL;
}

/* ---- batch indices that only one operand knows ---------------------------------- */

static bool reads(const Kernel *k, Val from, Val to, Val dim)
{
    for (Val v = from; v < to; v++) {
        const KInst *i = &k->inst.at[v];
        const KAff *x = i->op == KI_INDEX ? &k->affine.at[i->aux] : NULL;
        const KAccess *a = i->op == KI_LOAD ? &k->access.at[i->aux] : NULL;
        for (int t = 0; x != NULL && t < x->n; t++)
            if (x->t[t].v == dim)
                return true;
        for (int t = 0; a != NULL && t < a->at.n; t++)
            if (a->at.t[t].v == dim)
                return true;
        for (int b = 0; a != NULL && b < a->n_bounds; b++)
            for (int t = 0; t < a->bound[b].e.n; t++)
                if (a->bound[b].e.t[t].v == dim)
                    return true;
    }
    return false;
}

void con_move_dim(Kernel *k, KRole from, int d, KRole to)
{
    KContract *c = &k->con;
    Val v = c->dim[from][d];
    memmove(&c->dim[from][d], &c->dim[from][d + 1], (size_t)(c->n[from] - d - 1) * sizeof(Val));
    c->n[from]--;
    memmove(&c->dim[to][1], &c->dim[to][0], (size_t)c->n[to] * sizeof(Val));
    c->dim[to][0] = v;
    c->n[to]++;
}

/* A batch index that A ignores is one more (slow) index of n, and the other way
 * round: more columns for the same packed rows. The order of m, n and batch is free. */
static const Kernel *spread_batch(const Kernel *k, Arena *arena)
{
    Kernel *copy = NEW(arena, Kernel);
    *copy = *k;
    KContract *c = &copy->con;
    bool m_ends = role_reach(k, K_M) != K_ALL, n_ends = role_reach(k, K_N) != K_ALL;
    for (int d = c->n[K_B]; d-- > 0;) {
        Val v = c->dim[K_B][d];
        if (!n_ends && !reads(k, c->a_from, c->a_to, v) && c->n[K_N] < K_MAX_DIMS)
            con_move_dim(copy, K_B, d, K_N);
        else if (!m_ends && !reads(k, c->b_from, c->b_to, v) && c->n[K_M] < K_MAX_DIMS)
            con_move_dim(copy, K_B, d, K_M);
    }
    return copy;
}

/* ---- the tile ---------------------------------------------------------------------- */

int con_most_rows(const Machine *m, int nv)
{
    int spare = m->fma ? 1 : 2;  /* the broadcast; a product */
    if (m->arch == ARCH_AARCH64) /* which loads elements in pairs, ahead of the one in use */
        spare = 3;
    int rows = (m->n_vregs - nv - spare) / nv;
    int single = nv + 1 + spare; /* one row takes b from memory */
    if (rows < 1 && single <= m->n_vregs)
        rows = 1;
    return rows;
}

static double larger(double x, double y)
{
    return x > y ? x : y;
}

/* Cycles of one step of a tile of so many rows: multiplications, loads, the latency of a chain, and
 * the second cache where a panel of columns is too long for the first. */
static double tile_cycles(const ConPlan *p, int64_t rows)
{
    double unit = p->mach->fma ? 0.5 : 1.0, latency = p->pairs ? 6.4 : 4.4;
    double mr = (double)rows, cycles = larger(mr * p->nv * unit, (mr + p->nv) * 0.5);
    if (p->window.is) /* distances; as many loads as multiplications are never all overlapped */
        cycles = larger(cycles, (mr + p->nv + 2) * (p->nv == 1 ? 0.54 : 0.5));
    if (p->direct) /* vectors that lie across two lines of the cache, distances */
        return larger(larger(cycles, (mr + 1) * 0.5 + p->nv * 2.0), 4.4);
    if (p->pairs && p->cols.in_place) /* two loads, and what makes pairs of them */
        cycles += p->nv * 1.5;
    if (p->nr * con_steps(p, p->kc) * p->es > p->mach->l1_bytes * 4 / 5)
        cycles = larger(cycles, p->nr * p->es / 20.0);
    return larger(cycles, latency);
}

/* In the mean of all panels: pieces of a window's line have `height` + 1 or `height` rows. */
static double mean_cycles(const ConPlan *p)
{
    const Window *w = &p->window;
    if (!w->is)
        return tile_cycles(p, p->mr);
    double tall, low;
    if (w->edges.is) {
        tall = con_edges_cycles(p, p->height + 1);
        low = con_edges_cycles(p, p->height);
    } else {
        tall = tile_cycles(p, w->inner * (p->height + 1));
        low = tile_cycles(p, w->inner * p->height);
    }
    return low + (tall - low) * (double)p->taller / (double)w->pieces;
}

static int64_t ceil_div(int64_t x, int64_t y)
{
    return (x + y - 1) / y;
}

static void cut_rows(ConPlan *p)
{
    enum { MOST = 14 };
    int most = con_most_rows(p->mach, p->nv);
    p->row_panels = ceil_div(p->n_rows, most < MOST ? most : MOST);
    p->height = p->n_rows / p->row_panels;
    p->taller = p->n_rows % p->row_panels;
    p->mr = (int)(p->height + (p->taller > 0));
}

static void cut_cols(ConPlan *p)
{
    p->nr = p->nv * p->vl;
    p->col_panels = ceil_div(p->n_cols, p->nr);
}

/* Neighbours along these lanes lie apart in what the epilogue stores. */
static bool strided_output(const ConPlan *p, const Walk *lanes)
{
    const KContract *c = &p->k->con;
    for (Val v = c->e_from; v < c->e_to; v++) {
        const KInst *i = &p->k->inst.at[v];
        if (i->op == KI_STORE && lanes->lane != 0)
            return con_coef(&p->k->access.at[i->aux].at, lanes->lane) != 1;
    }
    return false;
}

/* More for each result than a vector of them takes: runs of them that end before a vector does are
 * stored one by one. */
static double scattered_cycles(const ConPlan *p)
{
    const Walk *w = &p->out_cols;
    if (w->run < p->vl && w->run < w->total)
        return 2;
    if (!strided_output(p, w))
        return 0;
    return con_paired(p->k, &p->out_rows, w) != 0 ? 0.25 : 2;
}

/* Transposed, then a vector of rows for each column. */
static double turned_cycles(const ConPlan *p)
{
    return p->nr * (double)ceil_div(p->mr, p->vl) * 8;
}

/* Columns are stored apart, and rows side by side: a tile is transposed before. */
static bool is_turned(const ConPlan *p)
{
    bool rows = p->out_rows.run == p->out_rows.total && !strided_output(p, &p->out_rows);
    return strided_output(p, &p->out_cols) && rows && p->row_reach == K_ALL &&
           turned_cycles(p) < p->mr * p->nr * scattered_cycles(p);
}

bool con_wide_steps(const ConPlan *p, const Side *s)
{
    return s->plain && s->rs == 1 && s->ks * s->es >= 4096 && p->n_k > 64;
}

/* Places in memory where both operands can be read as they lie. */
static void choose_in_place(ConPlan *p)
{
    enum { SHORT_K = 256 };
    Side *r = &p->rows, *c = &p->cols;
    int64_t bytes = c->ks * c->es;
    bool aliased = bytes % 1024 == 0 && p->n_k > 32; /* few sets of the first cache */
    bool often = p->row_panels > 2 || con_wide_steps(p, c);
    int64_t piece = p->nr * c->es + (bytes % LINE != 0 ? LINE : 0); /* some reach into one more */
    bool fits = p->n_k * piece <= p->mach->l1_bytes;
    /* Lines that follow one another: panels of a block of k of them are as far as packed ones. */
    fits = fits || (p->mach->l2_bytes >= CON_LARGE_CACHE && bytes <= 4 * LINE && p->n_k > SHORT_K);
    c->in_place = c->plain && c->rs == 1 && p->n_cols >= p->nr && !(often && (aliased || !fits));
    c->in_place = c->in_place || (c->panel > 0 && c->panel == p->nr);
    int64_t walked = p->n_rows * p->n_k * r->es;
    bool far = r->ks != 1 && r->ks * r->es >= 4096 && p->n_k > 64;
    /* Each tile of a panel of columns walks through as many pages; a processor looks up some 64
     * of them at once. */
    enum { PAGE = 4096, PAGES = 64 };
    int64_t step = r->ks == 1 ? 0 : r->ks * r->es < PAGE ? r->ks * r->es : PAGE;
    bool paged = p->n_cols > p->nr && step * p->n_k > PAGES * PAGE;
    r->in_place = r->plain && !con_wide_steps(p, r) && !paged &&
                  (p->n_cols <= 4 * p->nr || (walked <= p->mach->l2_bytes && !far));
    if (p->pairs) { /* rows lie as pairs, columns are made to by each tile */
        r->in_place = r->in_place && r->ks == 1 && !con_lacks_partner(p);
        c->in_place = c->in_place && p->row_panels <= 2 && !con_lacks_partner(p);
    }
}

static int64_t at_least_1(int64_t x)
{
    return x < 1 ? 1 : x;
}

/* Blocks of k that are whole in the two fastest sub-indices stage whole images. */
static int64_t fast_k(const ConPlan *p)
{
    const Walk *k = p->rows.k.n > p->cols.k.n ? &p->rows.k : &p->cols.k;
    return k->n < 2 ? 1 : k->extent[k->n - 1] * k->extent[k->n - 2];
}

/* Rows of a matrix that are packed lie a power of 2 or so apart, in few sets of the second cache:
 * of 16 ways a quarter is theirs. */
static int64_t most_in_sets(const ConPlan *p)
{
    enum { WAYS = 16, LEAST = 192 };
    const Side *s = &p->cols;
    int64_t step = s->ks * s->es;
    if (!s->plain || s->rs != 1 || step % LINE != 0)
        return p->n_k;
    int64_t sets = p->mach->l2_bytes / LINE / WAYS, same = step / LINE;
    while (sets % 2 == 0 && same % 2 == 0) {
        sets /= 2;
        same /= 2;
    }
    int64_t most = sets * WAYS / 4;
    return most > LEAST ? most : LEAST;
}

static int64_t larger_of(int64_t x, int64_t y)
{
    return at_least_1(x > y ? x : y);
}

/* Where nothing is packed, several panels of rows read each panel of columns: blocks of it stay in
 * a third of the first cache. Each tile then rests somewhere, so there are to be few. */
static void cut_in_place(ConPlan *p)
{
    enum { FEW_COLS = 2, FEW_ROWS = 16 };
    int64_t line = p->nr * p->es, lines = p->mach->l1_bytes / 3 / line;
    lines = lines / (LINE / p->es) * (LINE / p->es); /* whole lines of what lies along k */
    bool few = p->row_panels <= FEW_ROWS && p->col_panels <= FEW_COLS;
    if (few && p->row_panels > 2 && p->leaf * line > p->mach->l1_bytes && lines > 0)
        p->kc = lines;
}

/* Sums rest where they will be, so that blocks of k may be short: panels of columns stay in the
 * first cache. Not where each block would send the results to memory and back, if at least panels
 * of rows of all k stay there. */
static bool rest_where_stored(const ConPlan *p)
{
    enum { FEW_ROWS = 512, FAR_BYTES = 32 << 20 };
    bool far = p->n_rows * p->n_cols * p->es >= FAR_BYTES;
    bool near = p->mr * p->n_k * p->es <= p->mach->l1_bytes * 3 / 4;
    bool rest = con_stores_sums(p) || con_rests_in(p) != NULL;
    return p->n_rows > FEW_ROWS && !(far && near) && rest;
}

static void cut_k(ConPlan *p)
{
    enum { FEW_ROWS = 512, SHORT = 512 }; /* packing a panel is a large part of using it */
    enum { NARROW = 32 };                 /* bytes of a register; those of 16 are not timed */
    bool room = p->n_rows <= 192 || p->mach->l2_bytes >= CON_LARGE_CACHE;
    int64_t most = room ? 1152 : 512, wanted = 384;
    bool large = p->mach->l2_bytes >= CON_LARGE_CACHE;
    if (large && rest_where_stored(p))
        most = SHORT;
    if (large && p->n_k > wanted && p->n_rows <= FEW_ROWS) {
        int64_t in_sets = most_in_sets(p);
        most = in_sets < most ? in_sets : most;
        wanted = in_sets < wanted ? in_sets : wanted;
    }
    if (p->mach->vec_bytes == NARROW && !large) { /* tiles of few rows use each line few times */
        int64_t in_half = p->mach->l1_bytes / 2 / (p->nr * p->es);
        wanted = in_half < wanted ? in_half : wanted;
        most = wanted + wanted / 4 < most ? wanted + wanted / 4 : most;
    }
    if (p->pairs) { /* of half the bytes */
        most *= 2;
        wanted *= 2;
    }
    int64_t leaf = p->k->con.leaf;
    p->leaf = leaf > 0 && leaf < p->n_k ? leaf : p->n_k;
    p->sums = p->leaf < p->n_k;
    p->kc = p->leaf;
    bool all_in_place = p->rows.in_place && p->cols.in_place && p->n_cols % p->nr == 0;
    if (p->leaf > most && !all_in_place) {
        int64_t window = fast_k(p);
        p->kc = ceil_div(p->leaf, ceil_div(p->leaf, wanted));
        if (window > 1 && window <= 1152 && p->leaf % window == 0)
            p->kc = window * at_least_1((wanted + window / 2) / window);
    }
    if (all_in_place)
        cut_in_place(p);
    if (p->pairs)
        p->kc = align_up(p->kc, 2);
    /* Both are extents of the last indices: one is a multiple of the other. */
    int64_t panel = larger_of(p->rows.k_panel, p->cols.k_panel);
    if (p->kc < p->leaf)
        p->kc = ceil_div(p->kc, panel) * panel;
    p->chains = p->kc < p->leaf;
    p->kc = at_least_1(p->kc); /* sums over nothing have blocks too */
}

/* ---- blocks ------------------------------------------------------------------------- */

/* Many rows of few columns: a block of few rows meets all columns before the next one, so that rows
 * come from memory once, and what is made of them goes there line by line. Each lane packs all
 * columns, so that rows are to be worth that. */
static void cut_rows_first(ConPlan *p)
{
    enum { MANY_ROWS = 8 };
    int64_t rows = p->n_rows * p->n_k * p->es, out = p->n_rows * p->n_cols * p->es;
    int64_t cols = p->col_panels * p->nr * p->n_k * p->es, l2 = p->mach->l2_bytes;
    bool whole = p->n_k > 0 && p->kc == p->n_k && !p->sums && !p->chains;
    bool many = p->row_panels >= MANY_ROWS && p->col_panels > 1 && cols <= l2 / 4;
    bool far = p->cols.in_place ? rows + out > l2 / 4 : rows > l2 / 2;
    bool staged = !p->rows.in_place && p->rows.pack == PACK_STAGE; /* more than a few at a time */
    if (p->window.is || p->direct || staged || p->pairs || p->k->limit.is || !whole || !many ||
        !far)
        return;
    int64_t panels = p->mach->l1_bytes / 2 / (p->mr * (p->n_k + p->n_cols) * p->es);
    p->mc = at_least_1(panels < p->row_panels ? panels : p->row_panels);
    p->cols_once = !p->cols.in_place;
}

/* Columns are packed once for all blocks of rows, where packing them for each would take a
 * hundredth of the time: x of a weight's gradient, which is normalised meanwhile. They are to be
 * few beside what else the kernel meets, for each lane has room for them. */
static bool pays_once(const ConPlan *p)
{
    enum { FEW = 4 };
    const double share = 0.01, read = 0.1; /* from where they are packed */
    const Side *s = &p->cols;
    bool all = p->row_reach == K_ALL && p->col_reach == K_ALL;
    int64_t bytes = p->col_panels * p->nr * con_steps(p, p->n_k) * p->es;
    if (p->window.is || p->direct || s->in_place || s->pack == PACK_STAGE || !all ||
        p->mach->l2_bytes < CON_LARGE_CACHE ||
        bytes > p->n_rows * (p->n_k + p->n_cols) * p->es / FEW)
        return false;
    double again = (double)(ceil_div(p->row_panels, p->mc) - 1) * (s->pack_cycles - read);
    double tiles = (double)p->n_rows / (2.0 * p->vl); /* two multiply-adds a cycle */
    return again > tiles * share;
}

/* One element again, for another block: it is packed, or comes from where it lies while tiles are
 * computed, which are behind for memory alone. */
static double once_more(const ConPlan *p, const Side *s, int64_t n)
{
    if (!s->in_place)
        return s->pack_cycles;
    return n * p->n_k * p->es > p->mach->l2_bytes / 4 ? 0.1 : 0.02;
}

/* What is met again for each block, in cycles for one k. */
static double again_cycles(const ConPlan *p)
{
    double rows = once_more(p, &p->rows, p->n_rows), cols = once_more(p, &p->cols, p->n_cols);
    double row_blocks = (double)ceil_div(p->row_panels, p->mc);
    double col_blocks = (double)ceil_div(p->col_panels, p->nc);
    if (p->cols_once)
        row_blocks = 1;
    return (double)p->n_rows * rows * (col_blocks - 1) +
           (double)p->n_cols * cols * (row_blocks - 1);
}

/* Tiles that rest in scratch until their sums are whole leave room for few of them: fewer rows, or
 * fewer columns. */
static void cut_resting(ConPlan *p, int64_t l2)
{
    enum { LEAST = 8 };
    int64_t tile = p->mr * p->nr * p->es, mc = p->mc, best_mc = 0, best_nc = 0;
    double best = 0;
    for (int64_t blocks = ceil_div(p->row_panels, mc); best_mc == 0 || p->mc > LEAST; blocks++) {
        p->mc = ceil_div(p->row_panels, blocks);
        int64_t panels = at_least_1(l2 / (p->mc * tile));
        p->nc = ceil_div(p->col_panels, ceil_div(p->col_panels, panels));
        double cycles = again_cycles(p);
        if (best_mc == 0 || cycles < best) {
            best = cycles;
            best_mc = p->mc;
            best_nc = p->nc;
        }
    }
    p->mc = best_mc;
    p->nc = best_nc;
}

/* Blocks of rows, as even as can be, of which packed ones take so many bytes. Gives what is packed
 * again for them. */
static double cut_rows_within(ConPlan *p, int64_t bytes)
{
    int64_t panels = at_least_1(bytes / (p->mr * con_steps(p, p->kc) * p->es));
    p->mc = ceil_div(p->row_panels, ceil_div(p->row_panels, panels));
    if (!p->window.is)
        p->cols_once = pays_once(p);
    return again_cycles(p);
}

/* What far rows take that are met all at once, in cycles for one k. */
static double met_cycles(const ConPlan *p)
{
    bool met = p->mach->l2_bytes >= CON_LARGE_CACHE && con_is_far(p, &p->rows);
    return met ? (double)p->n_rows * p->es / 64.0 * 6 : 0;
}

static void cut_blocks(ConPlan *p)
{
    int64_t l2 = p->mach->l2_bytes / 2;
    if (p->mach->l2_bytes >= CON_LARGE_CACHE)
        l2 += l2 / 4;
    p->mc = p->row_panels;
    p->nc = p->col_panels;
    if (!p->rows.in_place || p->chains || p->sums) {
        double again = cut_rows_within(p, l2);
        double beside = cut_rows_within(p, l2 / 2); /* the next block, which is asked for */
        if (con_block_asks(p) == 0 || beside - again > met_cycles(p) / 2)
            cut_rows_within(p, l2);
    }
    cut_rows_first(p);
    if ((p->chains || p->sums) && !con_rests_once(p))
        cut_resting(p, l2);
    if (p->window.is)
        con_window_blocks(p);
}

/* ---- what it takes ---------------------------------------------------------------------- */

/* Each panel of columns meets rows in far memory, each k on a page of its own. */
static bool walks_far(const ConPlan *p)
{
    const Side *s = &p->rows;
    return s->in_place && s->ks * s->es >= 4096 &&
           p->n_rows * p->n_k * s->es > p->mach->l2_bytes / 4;
}

static double plan_cycles(ConPlan *p)
{
    double k = (double)p->n_k, panels = (double)p->row_panels * (double)p->col_panels;
    double tile = mean_cycles(p) * (double)con_steps(p, p->n_k);
    double out = p->turned ? turned_cycles(p) : p->mr * (p->nv * 3.0 + p->nr * scattered_cycles(p));
    if (p->turned && p->chains) /* from scratch into pieces of as many lines */
        out += p->nr * larger(1, p->mr * p->es / 64.0) * 12;
    if (p->col_reach == K_LIMITED) /* a loop over rows for each group of columns, if it is whole */
        out += (p->nv % 2 == 0 ? p->nv / 2 : p->nv) * 25;
    double blocks = (double)ceil_div(p->n_k, p->kc);
    double rest = (p->mr * p->nv * 2.0 + 20) * blocks; /* accumulators in and out */
    double cycles = panels * (tile + out + rest);
    if (con_wide_steps(p, &p->cols)) /* a miss for each line */
        cycles += 6 * k * (double)p->col_panels * larger(1, p->nr * p->es / 64.0);
    if (con_wide_steps(p, &p->rows))
        cycles += 6 * k * (double)p->row_panels * larger(1, p->mr * p->es / 64.0);
    if (walks_far(p))
        cycles += (double)p->col_panels * (double)p->n_rows * k * p->rows.es / 64.0 * 6;
    if (!p->rows.in_place)
        cycles += (double)p->n_rows * k * p->rows.pack_cycles;
    cycles += k * met_cycles(p);
    if (p->window.is && !p->cols_once && p->n_rows > 1024) /* again for each block */
        cycles += (double)p->n_rows / 1024 * (double)p->n_cols * k * p->cols.pack_cycles;
    int64_t cols = p->cols.pack == PACK_K ? p->col_panels * p->nr : p->n_cols; /* padding, too */
    if (!p->cols.in_place)
        cycles += (double)cols * k * p->cols.pack_cycles;
    if (!p->window.is)
        cycles += k * again_cycles(p);
    return cycles * (double)p->n_batch;
}

static void orient(ConPlan *p, bool swap)
{
    const Kernel *k = p->k;
    const KContract *c = &k->con;
    Side a, b;
    con_sides(k, &a, &b);
    Walk m = walk_of(k, K_M, c->e_from, c->e_to), n = walk_of(k, K_N, c->e_from, c->e_to);
    p->swap = swap;
    p->rows = swap ? b : a;
    p->cols = swap ? a : b;
    p->rows.is_row = true;
    p->out_rows = swap ? n : m;
    p->out_cols = swap ? m : n;
    p->row_reach = role_reach(k, swap ? K_N : K_M);
    p->col_reach = role_reach(k, swap ? K_M : K_N);
    p->k_reach = role_reach(k, K_K);
    p->n_rows = p->rows.free.total;
    p->n_cols = p->cols.free.total;
}

/* Of the cycles of a plan without that: with 64 bytes of a vector, in ResNet-8, tiles of two
 * vectors take as long as those of three, though they are predicted to take 5 % more. */
static const double WHOLE_SLABS = 0.94;

/* Columns are those of lines that are padded to whole vectors. */
static bool make_direct(ConPlan *p)
{
    Side *s = &p->cols;
    if (s->plain || !con_stage_direct_plan(p, s, p->nr))
        return false;
    p->line = s->stage.x.n_f;
    p->padded = align_up(p->line, p->vl);
    s->pack_cycles *= (double)p->line / (double)p->padded;
    p->n_cols = p->n_cols / p->line * p->padded;
    p->col_panels = ceil_div(p->n_cols, p->nr);
    return true;
}

/* Threads share panels of columns, where those are packed; where not, what has more of them. If
 * there are enough of both, pieces of rows that are stored line by line lie side by side, as those
 * do that an update shares out: a lane then meets what it has written. */
static bool splits_cols(const ConPlan *p)
{
    enum { FEW = 8, ENOUGH = 16 };
    int64_t rows = p->row_panels, cols = p->col_panels;
    if (p->cols_once || (cols < FEW && rows > cols))
        return false;
    if (!p->cols.in_place)
        return true;
    bool lines = rows >= ENOUGH && 2 * rows > cols && strided_output(p, &p->out_rows);
    return cols >= rows && !lines;
}

/* Rows that a window slides over are read one element at a time. `more`: panels of each segment
 * beyond the fewest. */
static bool make_window(ConPlan *p, bool swap, int nv, bool edges, int more)
{
    orient(p, swap);
    p->nv = nv;
    p->window.more = more;
    cut_cols(p);
    int most = con_most_rows(p->mach, nv);
    if (most < 1 || !(edges ? con_edges_rows(p, most) : con_window_rows(p, most)))
        return false;
    con_choose_pack(p, &p->cols, p->nr);
    choose_in_place(p);
    p->leaf = p->k->con.leaf > 0 && p->k->con.leaf < p->n_k ? p->k->con.leaf : p->n_k;
    p->sums = p->leaf < p->n_k;
    if (!con_window_k(p) || !con_window_source(p))
        return false;
    p->turned = strided_output(p, &p->out_cols);
    cut_blocks(p);
    p->cycles = plan_cycles(p);
    return true;
}

/* Cycles of the longer of two lanes beyond half of all units, where one more of them would be worth
 * sharing out: of three, one lane has two. Half of that counts, for programs that run on one lane
 * or on many. */
static double uneven_cycles(const ConPlan *p)
{
    int64_t units = p->n_batch * (splits_cols(p) ? p->col_panels : p->row_panels);
    bool even = units % 2 == 0 || emit_chunks(p->cycles, units + 1) == 1;
    return even ? 0 : p->cycles / (double)units / 4;
}

static bool beats(const ConPlan *p, const ConPlan *other)
{
    return p->cycles + uneven_cycles(p) < other->cycles + uneven_cycles(other);
}

static void consider_window(ConPlan *best, const ConPlan *try, bool swap, int nv, bool edges)
{
    ConPlan p = *try, finer = *try;
    if (!make_window(&p, swap, nv, edges, 0))
        return;
    if (uneven_cycles(&p) > 0 && make_window(&finer, swap, nv, edges, 1) && beats(&finer, &p))
        p = finer;
    if (best->cycles < 0 || (best->window.is ? beats(&p, best) : p.cycles < best->cycles))
        *best = p;
}

/* What is stored falls into so many pieces, one after the other, by this index. */
static bool stores_slabs(const ConPlan *p, Val by, int64_t slabs)
{
    const KContract *c = &p->k->con;
    for (Val v = c->e_from; v < c->e_to; v++) {
        const KInst *i = &p->k->inst.at[v];
        const KAccess *a = i->op == KI_STORE ? &p->k->access.at[i->aux] : NULL;
        if (a != NULL && con_coef(&a->at, by) * slabs == p->k->buf.at[a->buf].elems)
            return true;
    }
    return false;
}

/* Panels of what no cache holds end where the slowest of the columns' indices moves on, so that
 * other kernels can follow (chain.c). */
static bool ends_with_slabs(const ConPlan *p)
{
    const Walk *w = &p->cols.free;
    int64_t slabs = w->n > 1 ? w->extent[0] : 1;
    bool far = p->n_rows * p->n_cols * p->es >= p->mach->l2_bytes / 2;
    return far && p->mach->l2_bytes >= CON_LARGE_CACHE && slabs > 1 && p->n_cols % slabs == 0 &&
           p->n_cols / slabs % p->nr == 0 && stores_slabs(p, w->dim[0], slabs);
}

static void consider(ConPlan *best, ConPlan p, bool swap, int nv, bool direct)
{
    orient(&p, swap);
    p.nv = nv;
    if (con_most_rows(p.mach, nv) < 1)
        return;
    cut_rows(&p);
    cut_cols(&p);
    con_choose_pack(&p, &p.rows, p.mr);
    con_choose_pack(&p, &p.cols, p.nr);
    choose_in_place(&p);
    p.direct = direct;
    p.cols.in_place &= !direct;
    cut_k(&p);
    if (!p.rows.in_place)
        con_stage_plan(&p, &p.rows, p.mr);
    if (direct && (p.k->limit.is || !make_direct(&p)))
        return;
    if (!direct && !p.cols.in_place)
        con_stage_plan(&p, &p.cols, p.nr);
    p.turned = !direct && is_turned(&p);
    con_straight_plan(&p);
    cut_blocks(&p);
    p.cycles = plan_cycles(&p);
    if (direct && ends_with_slabs(&p))
        p.cycles *= WHOLE_SLABS;
    if (best->cycles < 0 || p.cycles < best->cycles)
        *best = p;
}

/* ---- memory ------------------------------------------------------------------------- */

static int64_t stage_at(Side *s, int64_t at)
{
    s->stage.at = at;
    return !s->in_place && s->pack == PACK_STAGE ? s->stage.bytes : 0;
}

static void lay_out(ConPlan *p)
{
    int64_t tile = align_up((int64_t)p->mr * p->nr * p->es, 64), at = 0;
    int64_t tiles = p->mc * (con_rests_once(p) ? 1 : p->nc);
    /* Packing stores whole vectors, up to vl rows of a panel too many. */
    int64_t slack = p->vl + 1;
    p->a_at = at;
    if (!p->rows.in_place && !p->window.is)
        at += align_up(p->mc * con_panel_bytes(p, &p->rows) + slack * p->mr * p->es + 64, 64);
    p->b_at = at;
    bool some = p->n_cols % p->nr != 0 && con_narrow(p) == 0; /* the last panel alone */
    if (!p->direct && (!p->cols.in_place || some))
        at += align_up((p->cols_once ? p->col_panels : p->group) * con_panel_bytes(p, &p->cols) +
                           slack * p->nr * p->es,
                       64);
    at += stage_at(&p->rows, at);
    at += stage_at(&p->cols, at);
    p->t_at = at;
    /* Where sums are only stored the room of one tile is not used either, but left: with less
     * scratch the search for orders of steps ends where budgets are larger. */
    if (!p->plus || !con_all_straight(p))
        at += tile * (p->chains && !con_all_straight(p) ? tiles : 1);
    p->s_at = at;
    if (p->sums)
        at += tile * tiles;
    p->turn_at = at;
    if (p->turned)
        at += align_up(p->mr, p->vl) * p->nr * p->es;
    p->scratch = at;
}

void con_plan(ConPlan *p, const Kernel *k, const Machine *m, Arena *arena)
{
    ConPlan try = {.k = spread_batch(k, arena), .mach = m, .type = k->con.dtype, .cycles = -1};
    try.pairs = k->con.pairs;
    try.es = dtype_bytes(try.type);
    try.vl = m->vec_bytes / try.es;
    try.n_batch = walk_of(try.k, K_B, 0, 0).total;
    try.n_k = walk_of(try.k, K_K, 0, 0).total;
    int64_t outputs = walk_of(try.k, K_M, 0, 0).total * walk_of(try.k, K_N, 0, 0).total;
    if (outputs * try.n_batch == 0) {
        *p = try;
        return;
    }
    static const int vectors[] = {1, 2, 3, 4, 6, 8, 12};
    *p = try;
    for (int swap = 0; swap < 2; swap++)
        for (int v = 0; v < 7; v++)
            for (int direct = 0; direct < (try.pairs ? 1 : 2); direct++)
                consider(p, try, swap == 1, vectors[v], direct == 1);
    for (int swap = 0; swap < 2 && !try.pairs; swap++)
        for (int v = 0; v < 7; v++)
            for (int edges = 0; edges < 2; edges++)
                consider_window(p, &try, swap == 1, vectors[v], edges == 1);
    assert(p->cycles >= 0);
    bool lanes = con_lanes_plan(p, arena);
    if (con_images_plan(p, arena) || lanes)
        return;
    con_stream_plan(p);
    con_slices_plan(p);
    lay_out(p);
    p->ahead = p->ask[ASK_OUT].n == 0 && con_asks_ahead(p);
    p->split_cols = splits_cols(p);
    p->n_units = p->n_batch * (p->split_cols ? p->col_panels : p->row_panels);
}
