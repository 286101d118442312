/* Rows that are read where they lie. Where a window slides over the rows' operand, an element of
 * row r at k lies at
 *
 *     base + steps of the digits of r + steps of the digits of k
 *
 * in the operand itself, where it is one load that stays within its bounds, or in lines of it that
 * are staged once for a block of rows (con_stage.c). A tile takes one element at a time of its
 * rows, so these need not lie side by side: nothing is packed. The rows of a panel are a piece of
 * one digit, with all of the faster ones, so the distances between them are constants; the
 * distance of each k comes from a table. */
#include <math.h>
#include <stdlib.h>
#include "con.h"

enum { MAX_TABLE = 16384, MOST_BLOCK = 1152, LEAST_BLOCK = 64, MOST_ROWS = 28 };

/* ---- plan -------------------------------------------------------------------------- */

static int64_t digits_from(const Walk *w, int first)
{
    int64_t n = 1;
    for (int i = first; i < w->n; i++)
        n *= w->extent[i];
    return n;
}

void con_window_cut(ConPlan *p, int64_t inner, int64_t n, int64_t most)
{
    Window *w = &p->window;
    w->is = true;
    w->inner = inner;
    w->pieces = (n + most - 1) / most + w->more;
    w->pieces = w->pieces > n ? n : w->pieces;
    w->segment = inner * n;
    p->height = n / w->pieces;
    p->taller = n % w->pieces;
    p->mr = (int)(inner * (p->height + (p->taller > 0)));
    p->row_panels = p->rows.free.total / w->segment * w->pieces;
}

bool con_window_rows(ConPlan *p, int most)
{
    const Walk *f = &p->rows.free;
    int64_t inner = 1;
    Slide x;
    if (p->k->limit.is || p->n_k == 0 || !con_find_slide(p->k, &p->rows, 1, &x))
        return false;
    int64_t t = llabs(x.t);
    /* No place is met twice, as s and t have no common divisor: better packed in a row. */
    if (x.s >= x.n_d || t >= x.n_f)
        return false;
    most = most > MOST_ROWS ? MOST_ROWS : most;
    int cut = f->n - 1;
    for (; cut > 0 && inner * f->extent[cut] <= most; cut--)
        inner *= f->extent[cut];
    con_window_cut(p, inner, f->extent[cut], most / inner);
    return true;
}

/* k's of the table: all, or the fastest digits as far as they go. */
static int64_t table_of(const ConPlan *p)
{
    const Walk *k = &p->rows.k;
    int first = k->n;
    for (int64_t n = 1; first > 0 && n * k->extent[first - 1] <= MAX_TABLE; first--)
        n *= k->extent[first - 1];
    return digits_from(k, first);
}

/* Whole images. */
static bool edges_k(ConPlan *p, int64_t most)
{
    int64_t image = p->window.edges.image, table = p->window.table;
    int64_t all = table == p->n_k ? p->leaf : common_divisor(p->leaf, table);
    if (image > most || p->leaf % image != 0 || all % image != 0)
        return false;
    int64_t images = all / image, blocks = (all + most - 1) / most;
    blocks = images < blocks ? images : blocks;
    int64_t each = (images + blocks - 1) / blocks;
    while (each * image > most || (table < p->n_k && images % each != 0))
        each--;
    p->kc = each * image;
    p->chains = p->kc < p->leaf;
    return true;
}

bool con_window_k(ConPlan *p)
{
    int64_t table = p->window.table = table_of(p);
    int64_t most = p->mach->l2_bytes / 4 / (p->nr * p->es);
    most = most > MOST_BLOCK ? MOST_BLOCK : most;
    if (p->window.edges.is)
        return edges_k(p, most);
    p->kc = p->leaf;
    if (table == p->n_k) { /* blocks may lie anywhere */
        int64_t blocks = (p->leaf + most - 1) / most;
        p->kc = (p->leaf + blocks - 1) / blocks;
    } else { /* blocks within the table */
        int64_t all = common_divisor(p->leaf, table);
        for (p->kc = all < most ? all : most; all % p->kc != 0;)
            p->kc--;
        if (p->kc < LEAST_BLOCK)
            return false;
    }
    p->chains = p->kc < p->leaf;
    return true;
}

/* Of the digits before the sliding ones, in units of `one`. */
static void other_steps(const Walk *w, int sliding, int64_t one, int64_t *step)
{
    for (int i = w->n - sliding; i-- > 0; one *= w->extent[i])
        step[i] = one;
}

static void steps_of_stage(ConPlan *p)
{
    const Side *s = &p->rows;
    const Stage *g = &s->stage;
    Window *w = &p->window;
    int f = s->free.n, k = s->k.n;
    w->free_step[f - 1] = g->x.s;
    w->k_step[k - 1] = g->x.t;
    if (g->pairs == 2) {
        w->free_step[f - 2] = g->y.s * g->pitch;
        w->k_step[k - 2] = g->y.t * g->pitch;
    }
    other_steps(&s->free, g->pairs, g->y.n * g->pitch, w->free_step);
    other_steps(&s->k, g->k_pairs, g->rows * g->pitch, w->k_step);
}

/* Lines to stage for so many panels, the first of which is a multiple of as many. */
static int64_t lines_for(const ConPlan *p, int64_t panels)
{
    const Window *w = &p->window;
    const Stage *g = &p->rows.stage;
    if (panels % w->pieces == 0) {
        int64_t lines = panels / w->pieces * (w->segment / g->x.n_f);
        if (lines % g->y.n_f == 0)
            return lines / g->y.n_f * g->y.n;
        if (g->y.n_f % lines == 0)
            return (lines - 1) * g->y.s + llabs(g->y.t) * (g->y.n_d - 1) + 1;
    }
    int64_t n = con_stage_reach(g, panels * p->mr);
    return n < g->n_rows ? n : g->n_rows;
}

/* Blocks of rows for which the fewest lines are staged in all. */
static void cut_staged(ConPlan *p)
{
    Stage *g = &p->rows.stage;
    int64_t fewest = -1, room = g->rows;
    p->mc = 1;
    for (int64_t panels = 1; panels <= p->row_panels; panels++) {
        int64_t lines = lines_for(p, panels);
        if (lines > room)
            continue;
        int64_t all = (p->row_panels + panels - 1) / panels * lines;
        if (fewest >= 0 && all > fewest)
            continue;
        fewest = all;
        p->mc = panels;
        g->rows = lines;
    }
    con_stage_bytes(p, g);
}

static void steps_in_place(ConPlan *p)
{
    const Side *s = &p->rows;
    const KAff *at = &p->k->access.at[s->access].at;
    for (int i = 0; i < s->free.n; i++)
        p->window.free_step[i] = con_coef(at, s->free.dim[i]);
    for (int i = 0; i < s->k.n; i++)
        p->window.k_step[i] = con_coef(at, s->k.dim[i]);
}

/* Distances in the table are 32 bits. */
static bool is_near(const ConPlan *p)
{
    const Walk *k = &p->rows.k;
    int64_t n = 1;
    double far = 0;
    for (int i = k->n; i-- > 0 && n < p->window.table; n *= k->extent[i])
        far += (double)(k->extent[i] - 1) * fabs((double)p->window.k_step[i]);
    return far * p->es < (double)INT32_MAX;
}

bool con_window_source(ConPlan *p)
{
    Side *s = &p->rows;
    Window *w = &p->window;
    w->staged = !s->regular;
    s->in_place = s->regular;
    s->pack_cycles = 0;
    if (w->staged) {
        const Stage *g = &s->stage;
        if (!con_stage_window_plan(p, s, p->mr) ||
            (double)g->blocks * (double)g->pitch * (double)g->rows * p->es > (double)INT32_MAX)
            return false;
    } else {
        steps_in_place(p);
        if (!is_near(p))
            return false;
    }
    int64_t bytes = p->col_panels * p->nr * p->n_k * p->es;
    p->cols_once = !p->cols.in_place && p->kc == p->n_k && bytes <= p->mach->l2_bytes / 2;
    return true;
}

void con_window_blocks(ConPlan *p)
{
    enum { ENOUGH = 768 }; /* rows */
    const Window *w = &p->window;
    int64_t panels = ENOUGH / p->mr;
    p->mc = p->row_panels < panels ? p->row_panels : panels;
    if (!w->staged)
        return;
    cut_staged(p);
    steps_of_stage(p);
}

/* ---- addresses ---------------------------------------------------------------------- */

static int64_t dot(const Walk *w, const int64_t *step, int64_t flat)
{
    int64_t sum = 0;
    for (int i = w->n; i-- > 0; flat /= w->extent[i])
        sum += flat % w->extent[i] * step[i];
    return sum;
}

int64_t con_window_row(const ConPlan *p, int row)
{
    return dot(&p->rows.free, p->window.free_step, row);
}

static Lv decoded(Con *c, const Walk *w, const int64_t *step, Lv flat)
{
    Ir *ir = c->ir;
    Lv digit[K_MAX_DIMS], sum = ir_int(ir, 0);
    walk_decode(w, ir, flat, digit);
    for (int i = 0; i < w->n; i++)
        sum = ir_add(ir, sum, ir_mul(ir, digit[i], step[i]));
    return ir_mul(ir, sum, c->p->es);
}

Lv con_window_at(Con *c, Lv base, Lv row0)
{
    return ir_at_byte(c->ir, base, decoded(c, &c->p->rows.free, c->p->window.free_step, row0));
}

/* Stages what the rows [row0, row0 + rows) need; gives where row 0 would be at k = 0. */
static Lv staged_base(Con *c, Lv row0, Lv rows, Lv k0, Lv kn)
{
    Ir *ir = c->ir;
    Side *s = &c->p->rows;
    const Stage *g = &s->stage;
    Lv from, last = ir_add(ir, ir_add(ir, row0, rows), ir_int(ir, -1));
    Lv base = con_stage_window(c, s, row0, last, k0, kn, &from);
    int64_t corner = -g->x.lowest - g->y.lowest * g->pitch;
    Lv back = ir_mul(ir, LLVMBuildNeg(ir->b, from, ""), g->pitch);
    return ir_at_byte(ir, base, ir_mul(ir, ir_add(ir, back, ir_int(ir, corner)), c->p->es));
}

Lv con_window_base(Con *c, Lv row0, Lv rows, Lv k0, Lv kn)
{
    Ir *ir = c->ir;
    const Window *w = &c->p->window;
    Lv zero = ir_int(ir, 0);
    Lv base =
        w->staged ? staged_base(c, row0, rows, k0, kn) : con_address(c, &c->p->rows, zero, zero);
    if (w->table == c->p->n_k)
        return base;
    Lv before = ir_mul(ir, LLVMBuildUDiv(ir->b, k0, ir_int(ir, w->table), ""), w->table);
    return ir_at_byte(ir, base, decoded(c, &c->p->rows.k, w->k_step, before));
}

Lv con_window_table(Con *c, Lv k0)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    int64_t n = p->window.table;
    Lv *at = NEW_ARRAY(c->arena, Lv, n);
    for (int64_t k = 0; k < n; k++)
        at[k] = ir_int32(ir, dot(&p->rows.k, p->window.k_step, k) * p->es);
    Lv table = con_table(c, at, n);
    if (n < p->n_k)
        k0 = LLVMBuildURem(ir->b, k0, ir_int(ir, n), "");
    return ir_at_byte(ir, table, ir_mul(ir, k0, 4));
}
