/* Whether the lanes of a contraction are better laid along images: see con_images.c. */
#include <stdlib.h>
#include "con.h"

/* ---- what is met --------------------------------------------------------------------------- */

/* The slowest index of a role, where it fills half of a vector. Gives its place, or -1. */
static int find_lane(const ConPlan *p, KRole role)
{
    const KContract *c = &p->k->con;
    for (int d = 0; d < c->n[role]; d++) {
        int64_t extent = p->k->inst.at[c->dim[role][d]].imm.i;
        if (extent > 1)
            return extent >= p->vl / 2 ? d : -1;
    }
    return -1;
}

/* Places that some bound cuts off are 0. */
static bool leaves_out(const ConPlan *p, const Lanes *l)
{
    const KInst *i = &p->k->inst.at[l->many.value];
    bool some = l->in_x.to - l->in_x.from < l->x.n || l->in_y.to - l->in_y.from < l->y.n;
    bool any = l->in_x.from < l->in_x.to && l->in_y.from < l->in_y.to;
    return i->op == KI_LOAD && p->k->access.at[i->aux].otherwise == 0 && some && any &&
           llabs(l->x.t) == 1 && llabs(l->y.t) == 1 && p->n_k >= p->vl;
}

/* Terms of a window that one of the results [f0, f1] at least meets within bounds. */
static int64_t terms_met(const Lanes *l, const Slide *w, const Inner *in, int64_t f0, int64_t f1)
{
    if (!l->leaves_out)
        return w->n_d;
    int64_t lo = w->t > 0 ? in->from - w->s * f1 : w->s * f0 + w->n_d - in->to;
    int64_t hi = w->t > 0 ? in->to - w->s * f0 : w->s * f1 + w->n_d - in->from;
    lo = lo < 0 ? 0 : lo;
    hi = hi > w->n_d ? w->n_d : hi;
    return hi > lo ? hi - lo : w->n_d;
}

/* ---- the tile ------------------------------------------------------------------------------ */

static double larger(double x, double y)
{
    return x > y ? x : y;
}

bool con_images_in_turn(const Lanes *l, int64_t rows, int64_t cols)
{
    enum { LONGEST = 160 }; /* multiply-adds */
    return l->x.n_d * rows * cols <= LONGEST;
}

/* A line of tiles of `rows` rows, in cycles for a line of terms of a block. */
static double line_cycles(const ConPlan *p, const Lanes *l, int64_t rows, int64_t nv)
{
    double sum = 0;
    for (int64_t x = 0; x < l->x.n_f; x += nv) {
        int64_t rest = l->x.n_f - x, cols = rest < nv ? rest : nv;
        double loop = con_images_in_turn(l, rows, cols) ? 1 : 2; /* around a line of terms */
        double fma = (double)(rows * cols) * (p->mach->fma ? 0.5 : 1);
        double loads = (double)(rows + cols + 2) * (cols == 1 ? 0.54 : 0.5); /* and stepping on */
        double step = larger(larger(fma, loads), 4.4);
        sum += loop + step * (double)terms_met(l, &l->x, &l->in_x, x, x + cols - 1);
    }
    return sum;
}

/* Of all panels of rows, for a line of terms of a block. */
static double cut_tile(ConPlan *p, Lanes *l)
{
    enum { MOST_COLS = 8 };
    double best = -1;
    int64_t each = l->each.total;
    for (int nv = 1; nv <= MOST_COLS && nv <= l->x.n_f; nv++) {
        int most = con_most_rows(p->mach, nv);
        most = most > CON_LANES_MOST / nv ? CON_LANES_MOST / nv : most;
        if (most < 1)
            break;
        int64_t panels = (each + most - 1) / most, height = each / panels, taller = each % panels;
        double cycles = (double)taller * line_cycles(p, l, height + 1, nv) +
                        (double)(panels - taller) * line_cycles(p, l, height, nv);
        if (best >= 0 && cycles >= best)
            continue;
        best = cycles;
        l->tile_cols = nv;
        p->row_panels = panels;
        p->height = height;
        p->taller = taller;
        p->mr = (int)(height + (taller > 0));
    }
    return best;
}

/* ---- pieces -------------------------------------------------------------------------------- */

/* Bytes of lane scratch. */
static int64_t lay_out(const ConPlan *p, Lanes *l)
{
    int64_t vec = (int64_t)p->vl * p->es, at = 0;
    l->rows = l->y.s * (l->lines_f - 1) + llabs(l->y.t) * (l->y.n_d - 1) + 1;
    l->pitch = l->x.n;
    l->outs = l->lines_f * l->x.n_f;
    l->line = align_up(l->outs, p->vl) + p->vl;
    l->apart = l->outs + p->vl;
    l->panel_bytes = (p->n_k + p->vl + 1) * p->mr * p->es;
    l->a_at = at;
    at += align_up(l->panel_bytes * p->row_panels + vec, 64);
    l->b_at = at;
    at += (l->blocks.total * l->rows * l->pitch + p->vl) * vec;
    l->o_at = at;
    at += l->apart * p->mr * vec;
    l->t_at = at;
    at += l->line * vec;
    return align_up(at, 64);
}

/* Some units for each lane of threads, whose lines fit into a part of the second cache. */
static bool cut_lines(const ConPlan *p, Lanes *l, int64_t *bytes)
{
    enum { UNITS = 8 };
    int64_t units = p->n_batch / l->extent * l->groups * l->others.total, y = l->y.n_f;
    l->parts = (UNITS + units - 1) / units;
    l->parts = l->parts > y ? y : l->parts;
    for (;; l->parts++) {
        l->lines_f = (y + l->parts - 1) / l->parts;
        *bytes = lay_out(p, l);
        if (*bytes <= p->mach->l2_bytes / 4 || l->lines_f == 1)
            break;
    }
    l->parts = (y + l->lines_f - 1) / l->lines_f;
    return *bytes <= p->mach->l2_bytes / 4;
}

/* Cycles for a byte that comes from beyond the second cache, or goes there, while no tile is at
 * work: images are staged, and results put, between the tiles. */
static const double FAR_BYTE = 0.06;

/* Of all units. */
static double images_cycles(const ConPlan *p, const Lanes *l, double line, double load)
{
    double vl = (double)p->vl, bounds = con_open_bounds(p->k, &l->many);
    double lines = 0, blocks = (double)l->blocks.total, parts = (double)l->parts;
    for (int64_t y = 0; y < l->y.n_f; y++)
        lines += (double)terms_met(l, &l->y, &l->in_y, y, y);
    int64_t in_y = l->in_y.to - l->in_y.from, first = l->leaves_out ? l->in_x.from : 0;
    double rows = (double)(l->leaves_out && l->rows > in_y ? in_y : l->rows);
    double places = (double)align_up(l->x.n - first, p->vl);
    double stage = blocks * rows * parts * places * (3.5 + load + 2 * bounds);
    double outs = (double)(l->y.n_f * l->x.n_f), each = (double)l->each.total;
    double out = each * (outs * 7 + vl * 6 * parts);
    double units = (double)(l->groups * l->others.total) * (double)p->n_batch / (double)l->extent;
    double pack = (double)p->n_k * each * l->one.pack_cycles * (l->once ? 1 : units * parts);
    double vectors = blocks * (double)(l->y.n * l->x.n) + each * outs;
    double bytes = vectors * units * vl * p->es;
    double far = bytes > (double)p->mach->l2_bytes ? FAR_BYTE * bytes : 0;
    return units * (stage + lines * blocks * line + out) + pack + far;
}

static bool is_window(const Lanes *l)
{
    return !l->along_only && l->split == 0 && l->pairs == 2 && l->x.n_d * l->y.n_d > 1;
}

/* With this role's slowest index along the lanes; `to`: a copy of the plan. */
static bool plan_images(ConPlan *to, KRole role, Arena *arena)
{
    int d = find_lane(to, role);
    if (d < 0 || to->k->con.n[K_B] == K_MAX_DIMS)
        return false;
    Kernel *k = NEW(arena, Kernel);
    Lanes *l = NEW(arena, Lanes);
    *k = *to->k;
    *l = (Lanes){.images = true, .lane = k->con.dim[role][d]};
    con_move_dim(k, role, d, K_B);
    l->extent = k->inst.at[l->lane].imm.i;
    l->once = k->con.n[K_B] == 1;
    to->k = k;
    to->lanes = l;
    to->n_batch *= l->extent;
    Side a, b;
    con_sides(k, &a, &b);
    l->one = role == K_N ? a : b;
    l->many = role == K_N ? b : a;
    l->each = l->one.free;
    if (!con_lanes_windows(to, l) || !is_window(l))
        return false;
    con_along_plan(to, l);
    double load = con_vector_cycles(to, &l->many, l->x.s == 1 ? l->x.f : l->x.d);
    if (l->many_along || l->out_along || load < 0)
        return false;
    con_find_inner(to, l);
    l->leaves_out = leaves_out(to, l);
    l->groups = (l->extent + to->vl - 1) / to->vl;
    double line = cut_tile(to, l);
    if (line < 0 || !cut_lines(to, l, &to->scratch))
        return false;
    con_choose_pack(to, &l->one, to->mr);
    to->cycles = images_cycles(to, l, line, load);
    const KContract *c = &k->con;
    to->out_cols = walk_of(k, role, c->e_from, c->e_to);
    to->out_rows = walk_of(k, role == K_N ? K_M : K_N, c->e_from, c->e_to);
    to->n_units = to->n_batch / l->extent * l->groups * l->others.total * l->parts;
    to->nv = 1;
    to->n_cols = 1;
    to->nr = 0;
    to->direct = to->turned = false;
    to->window = (Window){0};
    return true;
}

bool con_images_plan(ConPlan *p, Arena *arena)
{
    if (p->pairs || p->vl < 4 || p->n_k == 0 || p->k->limit.is || p->sums)
        return false;
    bool is = false;
    const ConPlan from = *p;
    for (int many = K_M; many <= K_N; many++) {
        ConPlan to = from;
        if (plan_images(&to, (KRole)many, arena) && to.cycles < p->cycles) {
            *p = to;
            is = true;
        }
    }
    return is;
}
