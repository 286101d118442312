/* Whether an operand's windows are worth staging, and what is staged: see con_stage.c. */
#include <stdlib.h>
#include "con.h"

enum { STAGE_BYTES = 48 * 1024, MAX_TABLE = 16384 };

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
            int64_t by = common_divisor(llabs(f), llabs(d));
            w->s = llabs(f) / by;
            w->t = (f < 0 ? -d : d) / by;
        }
        if (f * w->t != d * w->s)
            return false;
    }
    return w->s != 0;
}

bool con_find_slide(const Kernel *k, const Side *side, int back, Slide *w)
{
    return con_find_slide_of(k, side, back, back, w);
}

bool con_find_slide_of(const Kernel *k, const Side *side, int back_f, int back_d, Slide *w)
{
    const Walk *f = &side->free, *d = &side->k;
    if (f->n < back_f || d->n < back_d)
        return false;
    *w = (Slide){.f = f->dim[f->n - back_f],
                 .d = d->dim[d->n - back_d],
                 .n_f = f->extent[f->n - back_f],
                 .n_d = d->extent[d->n - back_d]};
    if (!slides(k, side, w))
        return false;
    w->lowest = w->t < 0 ? w->t * (w->n_d - 1) : 0;
    w->n = w->s * (w->n_f - 1) + llabs(w->t) * (w->n_d - 1) + 1;
    return true;
}

bool con_one_names_all(const Slide *w, bool lanes)
{
    return w->s == 1 || w->t == 1 || (!lanes && w->t == -1);
}

/* Rows that the panel with the widest reach needs. */
int64_t con_stage_reach(const Stage *g, int64_t width)
{
    width = width < 2 ? 2 : width;
    int64_t lines = (width - 2) / g->x.n_f + 2, images = (width - 2) / (g->x.n_f * g->y.n_f) + 1;
    int64_t window = llabs(g->y.t) * (g->y.n_d - 1) + 1;
    int64_t jump = window > g->y.s ? window - g->y.s : 0;
    return (lines - 1) * g->y.s + images * jump + window;
}

/* A panel's last vectors reach over their run, the last of all over the end. */
void con_stage_bytes(const ConPlan *p, Stage *g)
{
    int64_t elems = g->blocks * g->pitch * g->rows + g->pitch + 2 * p->vl;
    g->bytes = align_up(elems * p->es, 64);
}

/* A window of one place in a line, which slides over lines: all of the fastest free index. */
static bool find_lines(const ConPlan *p, const Side *s, Stage *g)
{
    const Walk *f = &s->free;
    if (g->pairs != 2 || g->elements || g->along_k || !con_find_slide_of(p->k, s, 2, 1, &g->y) ||
        !con_one_names_all(&g->y, false))
        return false;
    g->x = (Slide){.f = f->dim[f->n - 1], .n_f = f->run, .n_d = 1, .s = 1, .t = 1, .n = f->run};
    g->k_pairs = 1;
    return true;
}

static bool find_slides(const ConPlan *p, const Side *s, Stage *g)
{
    g->y = (Slide){.n_f = 1, .n_d = 1, .s = 1, .t = 1, .n = 1};
    g->k_pairs = g->pairs;
    if (!con_find_slide(p->k, s, 1, &g->x) || !con_one_names_all(&g->x, true))
        return find_lines(p, s, g);
    return g->pairs == 1 || (con_find_slide(p->k, s, 2, &g->y) && con_one_names_all(&g->y, false));
}

/* Fills in g from its first members. */
static bool stage_of(const ConPlan *p, const Side *s, int width, Stage *g)
{
    if (!find_slides(p, s, g))
        return false;
    g->step = g->elements ? 1 : (int)(g->along_k ? g->x.t : g->x.s);
    if (g->step < 1 || g->step > 2)
        return false;
    int64_t window = g->x.n_d * g->y.n_d, others = p->n_k / window;
    g->n_rows = s->free.total / (g->x.n_f * g->y.n_f) * g->y.n;
    bool whole = p->kc % window == 0 && p->leaf % window == 0;
    g->blocks = whole ? p->kc / window : (p->kc + window - 2) / window + 1;
    g->blocks = g->blocks > others ? others : g->blocks;
    g->plane = align_up((g->x.n + g->step - 1) / g->step, p->vl);
    g->pitch = g->plane * g->step;
    int64_t row = g->blocks * g->pitch * p->es, least = con_stage_reach(g, width);
    int64_t room = p->mach->l2_bytes / 4, most = room / row < 3 * least ? room / row : 3 * least;
    most = g->elements ? room / row : most;
    g->rows = STAGE_BYTES / row > most ? STAGE_BYTES / row : most;
    g->rows = g->rows < least ? least : g->rows > g->n_rows ? g->n_rows : g->rows;
    con_stage_bytes(p, g);
    bool table = p->n_k <= MAX_TABLE && others * g->rows * g->pitch * p->es < INT32_MAX;
    return (table || g->along_k || g->elements) && g->bytes <= room + room / 4 &&
           width <= STAGE_STRIPS * p->vl;
}

/* That a vector may reach into. */
int con_stage_runs(const ConPlan *p, const Stage *g)
{
    return p->vl == 1 ? 1 : (int)((p->vl - 2) / g->x.n_f + 2);
}

/* Cycles for an element of a panel: the copy. Each run that a vector reaches into is loaded and
 * blended; loads of a whole line lie across two of them. */
static double copy_cycles(const ConPlan *p, const Stage *g, int width)
{
    double vectors = (double)((width + p->vl - 1) / p->vl);
    if (g->along_k) { /* a load for each row, three shuffles and a store for each k */
        double used = (double)g->x.n_d / (double)align_up(g->x.n_d, p->vl);
        return (width * 1.0 + vectors * p->vl * 3) / (width * p->vl * used);
    }
    if (con_stage_runs(p, g) > STAGE_RUNS)
        return 1.5;
    double crossing = (double)(width - 1) / (double)g->x.n_f, blends = con_stage_runs(p, g) - 1;
    double blend = p->vl * p->es == 64 ? 1.4 : 0.7;
    return (1.5 + vectors * (1 + blend * (crossing > 1 ? blends : crossing))) / width;
}

/* A panel's part of the rows' values, for each element; -1: they are better not computed so. */
static double value_cycles(const ConPlan *p, const Side *s, const Stage *g)
{
    double load = con_vector_cycles(p, s, g->x.s == 1 ? g->x.f : g->x.d);
    if (load < 0)
        return -1;
    double places = (double)(g->pitch * g->y.n * g->blocks);
    double packed = (double)(g->x.n_f * g->y.n_f) * (double)p->kc;
    int64_t window = llabs(g->y.t) * (g->y.n_d - 1) + 1;
    double again = g->rows < g->n_rows ? 1 + (double)window / (double)g->rows : 1;
    return (4 + load + con_open_bounds(p->k, s)) / p->vl * places / packed * again;
}

void con_stage_plan(const ConPlan *p, Side *s, int width)
{
    /* Pairs are made of two lines of columns, not of neighbours in a line of k. */
    int forms = p->pairs ? 2 : 4;
    for (int form = 0; form < forms && p->n_k > 0; form++) {
        Stage g = {.pairs = 1 + form % 2, .along_k = form >= 2};
        if (!stage_of(p, s, width, &g))
            continue;
        double values = value_cycles(p, s, &g), cycles = values + copy_cycles(p, &g, width);
        if (values < 0 || cycles >= s->pack_cycles)
            continue;
        s->pack = PACK_STAGE;
        s->pack_cycles = cycles;
        s->stage = g;
    }
}

static bool stage_uncopied(const ConPlan *p, Side *s, int width, bool elements)
{
    bool found = false;
    for (int pairs = 1; pairs <= 2 && p->n_k > 0; pairs++) {
        Stage g = {.elements = elements, .pairs = pairs};
        double cycles = stage_of(p, s, width, &g) ? value_cycles(p, s, &g) : -1;
        if (cycles < 0 || (found && cycles >= s->pack_cycles))
            continue;
        found = true;
        s->pack = PACK_STAGE;
        s->pack_cycles = cycles;
        s->stage = g;
    }
    return found;
}

bool con_stage_direct_plan(const ConPlan *p, Side *s, int width)
{
    return stage_uncopied(p, s, width, false);
}

bool con_stage_window_plan(const ConPlan *p, Side *s, int width)
{
    return stage_uncopied(p, s, width, true);
}
