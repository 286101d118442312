/* The cotangent of an operand of a contraction, as contractions.
 *
 * With out[o] = sum over s of X[X(o,s)] * Y[Y(o,s)], the cotangent of X is
 *     dX[p] = sum over all (o,s) with X(o,s) = p of ct[o] * Y[Y(o,s)].
 * So the indices that make up p become the result's, and all others are summed. What
 * one dimension of X looks like decides how:
 *     p = base                   at one place: an axis of extent 1, padded
 *     p = base + c*i             i is an axis, spread by c
 *     p = base + c*i + d*j, c > d*(extent of j - 1)    i and j are axes, made one (channels of
 *                                groups, windows that do not overlap)
 *     p = base + i + d*j         i = p - base - d*j wherever i stands: a convolution with the
 *                                taps turned round; outside of ct it gives zeros
 *     p = base + c*i + d*j       the same for each phase p = c*q + f, with the taps j that
 *                                meet it; phases are interleaved (no zeros are multiplied)
 *     anything else              one index is written out, and the results added
 * Where it is put together of several, the op `adjoint` behind it says of what, so that its own
 * cotangent need not go by the pieces.
 * source: Dumoulin & Visin, A guide to convolution arithmetic (2016), section 4. */
#include <assert.h>
#include <string.h>
#include "op.h"

enum { MAX_LIVE = 2 * MAX_INDICES + 2 * MAX_RANK, MAX_PHASES = 1024 };

typedef struct Adjoint {
    Graph *g;
    Ref ct, other;
    int n; /* indices; one with extent 1 is dead and stands in no map */
    int64_t extent[MAX_LIVE];
    int n_ct, n_other, n_target;
    MapDim ct_map[MAX_RANK], other_map[MAX_RANK], target[MAX_RANK];
    int64_t size[MAX_RANK]; /* of the target */
    bool *in_pieces;        /* becomes true where it is more than one contraction */
} Adjoint;

static Ref adjoint(const Adjoint *from);

/* ---- substitution ------------------------------------------------------------ */

static bool replace_all(MapDim *m, int n, int index, const MapDim *by)
{
    for (int i = 0; i < n; i++)
        if (!map_replace(&m[i], index, by))
            return false;
    return true;
}

/* Puts `by` where `index` stands, everywhere; the index is then dead. */
static bool replace(Adjoint *a, int index, const MapDim *by)
{
    a->extent[index] = 1;
    return replace_all(a->ct_map, a->n_ct, index, by) &&
           replace_all(a->other_map, a->n_other, index, by) &&
           replace_all(a->target, a->n_target, index, by);
}

static int new_index(Adjoint *a, int64_t extent)
{
    assert(a->n < MAX_LIVE);
    a->extent[a->n] = extent;
    return a->n++;
}

/* Indices of extent 1 are dropped. Those that run down in the target are turned round. */
static void tidy(Adjoint *a)
{
    const MapDim zero = map_const(0);
    for (int i = 0; i < a->n; i++)
        if (a->extent[i] == 1)
            replace(a, i, &zero);
    for (int d = 0; d < a->n_target; d++)
        for (int t = 0; t < a->target[d].n; t++) {
            int i = a->target[d].index[t];
            if (a->target[d].coef[t] > 0)
                continue;
            int64_t extent = a->extent[i];
            int turned = new_index(a, extent);
            MapDim down = map_term(map_const(extent - 1), turned, -1);
            bool fits = replace(a, i, &down);
            assert(fits);
            (void)fits;
            t = -1; /* the terms have moved */
        }
}

/* ---- what a dimension of the target looks like --------------------------------- */

/* Order of a dimension's terms, falling coefficients. */
static void sort_terms(const MapDim *m, int *order)
{
    for (int i = 0; i < m->n; i++) {
        int at = i;
        for (; at > 0 && m->coef[order[at - 1]] < m->coef[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

/* True if two values of the indices can be at one place. */
static bool overlaps(const Adjoint *a, const MapDim *m)
{
    int order[4];
    sort_terms(m, order);
    int64_t span = 1;
    for (int i = m->n - 1; i >= 0; i--) {
        if (m->coef[order[i]] < span)
            return true;
        span += m->coef[order[i]] * (a->extent[m->index[order[i]]] - 1);
    }
    return false;
}

static bool is_shared(const Adjoint *a, int index)
{
    int n = 0;
    for (int d = 0; d < a->n_target; d++)
        n += map_coef(&a->target[d], index) != 0;
    return n > 1;
}

/* A dimension that cannot become axes of the result as it is, or -1. */
static int troublesome(const Adjoint *a)
{
    int axes = 0, most = -1;
    for (int d = 0; d < a->n_target; d++) {
        const MapDim *m = &a->target[d];
        if (overlaps(a, m))
            return d;
        for (int t = 0; t < m->n; t++)
            if (is_shared(a, m->index[t]))
                return d;
        axes += m->n;
        if (m->n > 1)
            most = d;
    }
    return axes > MAX_RANK ? most : -1;
}

/* True if outside of [0, extent) the index leads out of an operand, so that the
 * product is 0 there. */
static bool is_bounded_by(const MapDim *m, int n, const Type *t, int index, int64_t extent)
{
    for (int d = 0; d < n; d++) {
        if (m[d].n != 1 || m[d].index[0] != index || t->dim[d] != extent)
            continue;
        if ((m[d].coef[0] == 1 && m[d].base == 0) ||
            (m[d].coef[0] == -1 && m[d].base == extent - 1))
            return true;
    }
    return false;
}

static bool is_bounded(const Adjoint *a, int index)
{
    int64_t extent = a->extent[index];
    return is_bounded_by(a->ct_map, a->n_ct, type_of(a->g, a->ct), index, extent) ||
           is_bounded_by(a->other_map, a->n_other, type_of(a->g, a->other), index, extent);
}

/* ---- phases -------------------------------------------------------------------- */

/* p = base + c*i + d*j, solved for i. */
typedef struct Window {
    int dim, i, j;
    int64_t base, c, d, step; /* step: j moves by it within a phase */
} Window;

/* The longest bounded index of a dimension with two terms; false if there is none. */
static bool find_window(const Adjoint *a, int d, Window *w)
{
    const MapDim *m = &a->target[d];
    if (m->n != 2 || is_shared(a, m->index[0]) || is_shared(a, m->index[1]))
        return false;
    int best = -1;
    for (int t = 0; t < 2; t++)
        if (is_bounded(a, m->index[t]) &&
            (best < 0 || a->extent[m->index[t]] > a->extent[m->index[best]]))
            best = t;
    if (best < 0)
        return false;
    *w = (Window){.dim = d, .i = m->index[best], .j = m->index[1 - best], .base = m->base};
    w->c = m->coef[best];
    w->d = m->coef[1 - best];
    w->step = w->c / common_divisor(w->c, w->d);
    return true;
}

/* The first j that meets the phase: (phase - base - d*j) divisible by c; or -1. */
static int64_t first_tap(const Adjoint *a, const Window *w, int64_t phase)
{
    for (int64_t j = 0; j < w->step && j < a->extent[w->j]; j++)
        if ((phase - w->base - w->d * j) % w->c == 0)
            return j;
    return -1;
}

/* dX at p = c*q + phase, by q; REF_ZERO if no tap meets it; NONE if maps get too long. */
static Ref one_phase(const Adjoint *from, const Window *w, int64_t phase)
{
    int64_t j0 = first_tap(from, w, phase);
    if (j0 < 0)
        return REF_ZERO;
    Adjoint a = *from;
    int64_t taps = (a.extent[w->j] - j0 + w->step - 1) / w->step;
    a.size[w->dim] = (a.size[w->dim] + w->c - 1) / w->c;
    int q = new_index(&a, a.size[w->dim]), tap = new_index(&a, taps);
    MapDim j = map_term(map_const(j0), tap, w->step);
    MapDim i = map_term(map_const((phase - w->base - w->d * j0) / w->c), q, 1);
    i = map_term(i, tap, -(w->d * w->step / w->c));
    if (!replace(&a, w->i, &i) || !replace(&a, w->j, &j))
        return NONE;
    a.target[w->dim] = map_term(map_const(0), q, 1);
    return adjoint(&a);
}

static Ref by_phases(const Adjoint *a, const Window *w)
{
    *a->in_pieces |= w->c > 1;
    ArenaMark mark = arena_mark(&a->g->cx->scratch);
    Ref *piece = NEW_ARRAY(&a->g->cx->scratch, Ref, w->c);
    Ref all = REF_ZERO;
    for (int64_t f = 0; f < w->c && all != NONE; f++) {
        piece[f] = one_phase(a, w, f);
        if (piece[f] == NONE)
            all = NONE;
    }
    if (all != NONE)
        all = g_interleave(a->g, piece, w->c, w->dim, a->size[w->dim]);
    arena_reset(&a->g->cx->scratch, mark);
    return all;
}

/* ---- the general case, and the plain one ----------------------------------------- */

/* Writes out the shortest index of dimension d. */
static Ref by_values(const Adjoint *from, int d)
{
    const MapDim *m = &from->target[d];
    int index = m->index[0];
    for (int t = 1; t < m->n; t++)
        if (from->extent[m->index[t]] < from->extent[index])
            index = m->index[t];
    Ref sum = REF_ZERO;
    *from->in_pieces = true;
    for (int64_t v = 0; v < from->extent[index]; v++) {
        Adjoint a = *from;
        const MapDim value = map_const(v);
        replace(&a, index, &value);
        Ref x = adjoint(&a);
        if (x != REF_ZERO)
            sum = sum == REF_ZERO ? x : g_add(a.g, sum, x);
    }
    return sum;
}

/* Numbers the indices anew: the result's axes, then what is summed. */
static int number(const Adjoint *a, int *number_of, int64_t *extent, int *n_out)
{
    int n = 0;
    memset(number_of, -1, (size_t)a->n * sizeof *number_of);
    for (int d = 0; d < a->n_target; d++) {
        int order[4];
        sort_terms(&a->target[d], order);
        for (int t = 0; t < a->target[d].n; t++) {
            int i = a->target[d].index[order[t]];
            extent[n] = a->extent[i];
            number_of[i] = n++;
        }
    }
    *n_out = n;
    for (int i = 0; i < a->n; i++)
        if (number_of[i] < 0 && a->extent[i] != 1) {
            assert(n < MAX_INDICES);
            extent[n] = a->extent[i];
            number_of[i] = n++;
        }
    return n;
}

static void renumber(const MapDim *from, int n, const int *number_of, MapDim *to)
{
    for (int d = 0; d < n; d++) {
        to[d] = map_const(from[d].base);
        for (int t = 0; t < from[d].n; t++)
            to[d] = map_term(to[d], number_of[from[d].index[t]], from[d].coef[t]);
    }
}

/* The result's axes put where they belong in the target. */
static Ref assemble(const Adjoint *a, Ref x)
{
    Graph *g = a->g;
    int axis = 0;
    for (int d = 0; d < a->n_target; d++) {
        const MapDim *m = &a->target[d];
        int64_t coef[4];
        int order[4];
        sort_terms(m, order);
        for (int t = 0; t < m->n; t++)
            coef[t] = m->coef[order[t]];
        if (m->n > 0)
            x = g_spread(g, x, axis++, m->n, coef, m->base, a->size[d]);
    }
    for (int d = 0; d < a->n_target; d++)
        if (a->target[d].n == 0) {
            x = g_insert_axis(g, x, d);
            x = g_fit(g, x, d, a->target[d].base, a->size[d]);
        }
    return x;
}

static Ref plain(const Adjoint *a)
{
    int number_of[MAX_LIVE], n_out;
    int64_t extent[MAX_LIVE];
    MapDim ct_map[MAX_RANK], other_map[MAX_RANK];
    int n = number(a, number_of, extent, &n_out);
    renumber(a->ct_map, a->n_ct, number_of, ct_map);
    renumber(a->other_map, a->n_other, number_of, other_map);
    Ref x = g_contract(a->g, a->ct, a->other, extent, n_out, n, ct_map, other_map);
    return assemble(a, x);
}

/* True if some index, or the target, has no values at all. */
static bool is_empty(const Adjoint *a)
{
    for (int i = 0; i < a->n; i++)
        if (a->extent[i] == 0)
            return true;
    for (int d = 0; d < a->n_target; d++)
        if (a->size[d] == 0)
            return true;
    return false;
}

static Ref adjoint(const Adjoint *from)
{
    if (is_empty(from))
        return REF_ZERO;
    Adjoint a = *from;
    tidy(&a);
    int d = troublesome(&a);
    if (d < 0)
        return plain(&a);
    Window w;
    if (a.n_target < MAX_RANK && find_window(&a, d, &w) && w.c <= MAX_PHASES) {
        Ref x = by_phases(&a, &w);
        if (x != NONE)
            return x;
    }
    return by_values(&a, d);
}

/* y, and what it is: the cotangent of an operand of contraction n, given ct. */
static Ref with_origin(Graph *g, Ref y, Ref n, Ref ct, int which)
{
    const Attr a[] = {
        [CONTRACT_EXTENT] = *attr(g, n, CONTRACT_EXTENT),
        [CONTRACT_N_OUT] = *attr(g, n, CONTRACT_N_OUT),
        [CONTRACT_X] = *attr(g, n, CONTRACT_X + which),
        [CONTRACT_Y] = *attr(g, n, CONTRACT_Y - which),
    };
    return g_node(g, OP_adjoint, (Ref[]){y, ct, arg(g, n, 1 - which)}, 3, a);
}

Ref g_contract_adjoint(Graph *g, Ref n, Ref ct, int which)
{
    const Attr *extent = attr(g, n, CONTRACT_EXTENT);
    const Attr *mine = attr(g, n, CONTRACT_X + which), *its = attr(g, n, CONTRACT_Y - which);
    bool in_pieces = false;
    Adjoint a = {.g = g, .ct = ct, .other = arg(g, n, 1 - which), .n = extent->n};
    a.in_pieces = &in_pieces;
    Ref x = arg(g, n, which);
    memcpy(a.extent, extent->ints, (size_t)extent->n * sizeof *a.extent);
    a.n_ct = rank(g, n);
    for (int i = 0; i < a.n_ct; i++)
        a.ct_map[i] = map_term(map_const(0), i, 1);
    a.n_other = its->n;
    memcpy(a.other_map, its->map, (size_t)its->n * sizeof *its->map);
    a.n_target = mine->n;
    memcpy(a.target, mine->map, (size_t)mine->n * sizeof *mine->map);
    memcpy(a.size, type_of(g, x)->dim, (size_t)rank(g, x) * sizeof *a.size);
    Ref y = adjoint(&a);
    bool told = in_pieces && y != REF_ZERO && y != NONE && graph_is_primal(g);
    return told ? with_origin(g, y, n, ct, which) : y;
}
