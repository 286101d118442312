/* Whether the lanes of a contraction are better laid along a batch index: see con_lanes.c. */
#include <stdlib.h>
#include "con.h"

enum { MOST_RESULTS = 14 }; /* of a tile */

/* The fastest batch index with enough of them. */
static Val find_lane(const ConPlan *p)
{
    const KContract *c = &p->k->con;
    for (int d = c->n[K_B]; d-- > 0;)
        if (p->k->inst.at[c->dim[K_B][d]].imm.i >= p->vl / 2)
            return c->dim[K_B][d];
    return 0;
}

/* The lane as the only index of a role. */
static Walk lane_walk(const ConPlan *p, const Lanes *l, KRole role, Arena *arena)
{
    Kernel *k = NEW(arena, Kernel);
    *k = *p->k;
    k->con.n[role] = 1;
    k->con.dim[role][0] = l->lane;
    Walk w = {.k = k, .role = role, .n = 1, .lane = l->lane, .run = l->extent, .total = l->extent};
    w.dim[0] = l->lane;
    w.extent[0] = l->extent;
    return w;
}

/* swap: `one` is b. */
static bool find_sides(const ConPlan *p, Lanes *l, bool swap, Arena *arena)
{
    enum { FEW = 64 };
    Side a, b;
    con_sides(p->k, &a, &b);
    l->one = swap ? b : a;
    l->many = swap ? a : b;
    l->each = l->one.free;
    l->one.free = lane_walk(p, l, swap ? K_N : K_M, arena);
    return l->each.total <= FEW;
}

/* Staged lines serve all of `each`, unless there would be few units. */
static void cut_each(const ConPlan *p, Lanes *l)
{
    enum { UNITS = 8 };
    int64_t units = p->n_batch / l->extent * l->groups * l->others.total, each = l->each.total;
    int64_t parts = (UNITS + units - 1) / units;
    parts = parts > each ? each : parts;
    l->each_n = (each + parts - 1) / parts;
    l->parts = (each + l->each_n - 1) / l->each_n;
}

/* One term, and so no window: some of the fastest free index at a time. */
static bool split_free(Lanes *l)
{
    enum { MOST = 64 };
    const Walk *f = &l->many.free;
    int64_t extent = f->extent[f->n - 1], most = extent < MOST ? extent : MOST;
    for (l->split = most; extent % l->split != 0;)
        l->split--;
    l->x = (Slide){.f = f->dim[f->n - 1], .n_f = l->split, .n_d = 1, .s = 1, .t = 1};
    l->x.n = l->split;
    l->pairs = 1;
    l->along_only = true;
    l->others = *f;
    l->others.extent[f->n - 1] /= l->split;
    l->others.total /= l->split;
    l->blocks = l->many.k;
    return true;
}

/* A window of one place in a line: all of the fastest free index. */
static bool slide_over_lines(Lanes *l)
{
    const Walk *f = &l->many.free, *k = &l->many.k;
    int64_t n = f->extent[f->n - 1];
    l->x = (Slide){.f = f->dim[f->n - 1], .n_f = n, .n_d = 1, .s = 1, .t = 1, .n = n};
    l->pairs = 2;
    l->along_only = true;
    l->others = *f;
    l->others.n -= 2;
    l->others.total /= n * l->y.n_f;
    l->blocks = *k;
    l->blocks.n--;
    l->blocks.total /= l->y.n_d;
    return true;
}

bool con_lanes_windows(const ConPlan *p, Lanes *l)
{
    const Side *s = &l->many;
    l->y = (Slide){.n_f = 1, .n_d = 1, .s = 1, .t = 1, .n = 1};
    if (s->k.n == 0 && s->free.n > 0)
        return split_free(l);
    Slide y;
    bool lines = con_find_slide_of(p->k, s, 2, 1, &y) && con_one_names_all(&y, false);
    bool places = con_find_slide(p->k, s, 1, &l->x) && con_one_names_all(&l->x, true);
    /* Without bounds a window slides over either, as far as addresses go: the one that overlaps. */
    if (lines && (!places || y.n * l->x.n_f <= l->x.n * y.n_f)) {
        l->y = y;
        return slide_over_lines(l);
    }
    if (!places)
        return false;
    l->pairs = 1;
    if (con_find_slide(p->k, s, 2, &y) && con_one_names_all(&y, false)) {
        l->y = y;
        l->pairs = 2;
    }
    l->others = s->free;
    l->others.n -= l->pairs;
    l->others.total /= l->x.n_f * l->y.n_f;
    l->blocks = s->k;
    l->blocks.n -= l->pairs;
    l->blocks.total /= l->x.n_d * l->y.n_d;
    return true;
}

/* Bytes of lane scratch. */
static int64_t lay_out(const ConPlan *p, Lanes *l)
{
    int64_t vec = (int64_t)p->vl * p->es, at = 0;
    l->rows = l->y.s * (l->lines_f - 1) + llabs(l->y.t) * (l->lines_d - 1) + 1;
    l->pitch = l->many_along ? l->x.n : align_up(l->x.n, p->vl);
    l->outs = l->lines_f * l->x.n_f;
    l->line = align_up(l->outs, p->vl) + p->vl;
    bool all_terms = l->blocks.total == 1 && l->lines_d == l->y.n_d;
    l->at_once = all_terms && l->out_along && !p->sums;
    l->apart = (l->at_once ? l->tile_lines * l->x.n_f : l->outs) + p->vl;
    l->once = !l->one_along && all_terms && p->k->con.n[K_B] == 1;
    l->packed = l->lines_d * l->x.n_d + p->vl + 1; /* whole vectors are packed */
    l->a_at = at;
    at += l->one_along ? 0 : l->packed * (l->once ? l->groups * l->each.total : 1) * vec;
    l->b_at = at;
    at += l->rows * l->pitch * vec;
    l->o_at = at;
    at += l->apart * l->room * vec;
    l->s_at = at;
    at += p->sums ? l->apart * l->room * vec : 0;
    l->t_at = at;
    at += l->out_along ? 0 : l->line * vec;
    return align_up(at, 64);
}

/* As many lines as a part of the second cache has room for; with all lines results of all of `each`
 * if they fit, so that a lane stages once for all its units. */
static bool cut_lines(const ConPlan *p, Lanes *l, int64_t *bytes)
{
    l->lines_f = l->y.n_f;
    l->lines_d = l->y.n_d;
    l->room = l->each.total;
    if (lay_out(p, l) > p->mach->l2_bytes / 4)
        l->room = l->each_n;
    while ((*bytes = lay_out(p, l)) > p->mach->l2_bytes / 4 && (l->lines_f > 1 || l->lines_d > 1)) {
        int64_t *longer = l->lines_f > l->lines_d ? &l->lines_f : &l->lines_d;
        *longer = (*longer + 1) / 2;
    }
    return *bytes <= p->mach->l2_bytes / 2;
}

static void cut_tile(const ConPlan *p, Lanes *l)
{
    enum { MANY_VREGS = 32 };
    int64_t window = l->x.n_f * l->y.n_f;
    if (p->mach->n_vregs >= MANY_VREGS && window > MOST_RESULTS && window <= CON_LANES_MOST) {
        l->tile_cols = (int)l->x.n_f;
        l->tile_lines = (int)l->y.n_f;
        return;
    }
    int64_t most = p->mach->n_vregs - (p->mach->fma ? 2 : 3);
    most = most < MOST_RESULTS ? most : MOST_RESULTS;
    int64_t parts = (l->x.n_f + most - 1) / most;
    l->tile_cols = (int)((l->x.n_f + parts - 1) / parts);
    int64_t lines = parts == 1 ? most / l->tile_cols : 1;
    l->tile_lines = (int)(lines < l->y.n_f ? lines : l->y.n_f);
}

/* Of all; -1: each element would be a chase. */
static double lanes_cycles(const ConPlan *p, const Lanes *l)
{
    Val along = l->many_along ? l->lane : l->x.s == 1 ? l->x.f : l->x.d;
    double load = con_vector_cycles(p, &l->many, along);
    if (load < 0)
        return -1;
    double bounds = con_open_bounds(p->k, &l->many), vl = p->vl;
    double parts_f = (double)((l->y.n_f + l->lines_f - 1) / l->lines_f);
    double parts_d = (double)((l->y.n_d + l->lines_d - 1) / l->lines_d);
    double vectors = (double)(l->rows * l->pitch) * parts_f * parts_d * (double)l->blocks.total;
    double terms = (double)(l->x.n_d * l->y.n_d) * (double)l->blocks.total;
    double outs = (double)(l->x.n_f * l->y.n_f), lines = l->tile_lines, cols = l->tile_cols;
    double stage = vectors * (l->many_along ? 1 + load / 2 : 4.5 + load + 2 * bounds);
    double pack = l->one_along ? 0 : terms * vl * l->one.pack_cycles * parts_f;
    if (l->once)
        pack /= (double)l->others.total;
    double chain = (lines * cols + 1) * 0.5;
    double sum = outs * terms / (lines * cols) * (chain < 4.4 ? 4.4 : chain);
    double out = outs * 4;
    if (!l->out_along)
        out += vl * (outs / vl + 1) * 6;
    else if (l->out_apart)
        out += outs * vl;
    double others = (double)l->others.total * (double)p->n_batch / (double)l->extent;
    double staged = l->room > l->each_n ? 1 : (double)l->parts;
    double all = stage * staged + (pack + sum + out) * (double)l->each.total;
    return all * (double)l->groups * others;
}

/* Cycles of a plan with this operand as `one`; -1: there is none. */
static double plan_lanes(const ConPlan *p, Lanes *l, bool swap, int64_t *bytes, Arena *arena)
{
    if (!find_sides(p, l, swap, arena) || !con_lanes_windows(p, l))
        return -1;
    con_along_plan(p, l);
    l->groups = (l->extent + p->vl - 1) / p->vl;
    cut_each(p, l);
    cut_tile(p, l);
    if ((l->along_only && !l->many_along) || !cut_lines(p, l, bytes))
        return -1;
    con_choose_pack(p, &l->one, p->vl);
    return lanes_cycles(p, l);
}

bool con_lanes_plan(ConPlan *p, Arena *arena)
{
    Lanes best = {0};
    KRole many = K_M;
    Val lane = find_lane(p);
    if (p->pairs || lane == 0 || p->vl < 4 || p->n_k == 0 || p->k->limit.is)
        return false;
    for (int swap = 1; swap >= 0; swap--) {
        Lanes l = {.lane = lane, .extent = p->k->inst.at[lane].imm.i};
        int64_t bytes = 0;
        double cycles = plan_lanes(p, &l, swap == 1, &bytes, arena);
        if (cycles < 0 || cycles >= p->cycles)
            continue;
        p->cycles = cycles;
        p->scratch = bytes;
        best = l;
        many = swap == 1 ? K_M : K_N;
    }
    if (best.lane == 0)
        return false;
    p->lanes = NEW(arena, Lanes);
    *p->lanes = best;
    p->n_units = p->n_batch / best.extent * best.groups * best.parts * best.others.total;
    /* For the epilogue: a line of any length. */
    const KContract *c = &p->k->con;
    p->out_cols = walk_of(p->k, many, c->e_from, c->e_to);
    p->out_rows = walk_of(p->k, many == K_N ? K_M : K_N, c->e_from, c->e_to);
    p->nv = 1;
    p->n_cols = 1;
    p->nr = 0;
    p->direct = p->turned = false;
    p->window = (Window){0};
    return true;
}

/* The slowest index of the units: another batch index, or a free one of `many` (images). */
static Val slowest_index(const ConPlan *p)
{
    const Lanes *l = p->lanes;
    const KContract *c = &p->k->con;
    for (int d = 0; d < c->n[K_B]; d++)
        if (c->dim[K_B][d] != l->lane && p->k->inst.at[c->dim[K_B][d]].imm.i > 1)
            return c->dim[K_B][d];
    for (int d = 0; d < l->others.n; d++)
        if (l->others.extent[d] > 1)
            return l->others.extent[d] == p->k->inst.at[l->others.dim[d]].imm.i ? l->others.dim[d]
                                                                                : 0;
    return 0;
}

Slabs *con_lanes_slabs(const ConPlan *p, Arena *arena)
{
    const Lanes *l = p->lanes;
    Val v = l->images ? 0 : slowest_index(p); /* a unit is some lines of several images */
    if (v == 0)
        return NULL;
    Slabs *s = slabs_of(p->k, v, p->n_units / p->k->inst.at[v].imm.i, 1, arena);
    s->again = l->once ? (double)(p->n_k * l->extent * l->each.total) * l->one.pack_cycles : 0;
    return s;
}
