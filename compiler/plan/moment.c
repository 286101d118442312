#include "moment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef __int128 Wide;

/* ---- the network ---------------------------------------------------------------------- */

/* Descendants of the moment and itself go to after[]. */
static void find_sides(Moment *m, bool *after)
{
    const Problem *p = m->p;
    m->before[m->node] = after[m->node] = true;
    for (int32_t v = m->node; v >= 0; v--)
        for (int32_t i = p->input_at[v]; m->before[v] && i < p->input_at[v + 1]; i++)
            m->before[p->input[i]] = true;
    m->before[m->node] = false;
    for (int32_t v = m->node; v < p->n; v++)
        for (int32_t i = p->user_at[v]; after[v] && i < p->user_at[v + 1]; i++)
            after[p->user[i]] = true;
    for (int32_t i = p->input_at[m->node]; i < p->input_at[m->node + 1]; i++)
        m->read[p->input[i]] = true;
}

/* What matters: what is needed, and what that is computed from. */
static void find_cells(Moment *m, const bool *after)
{
    const Problem *p = m->p;
    bool *matters = NEW_ARRAY(m->arena, bool, p->n);
    for (int32_t v = p->n; v-- > 0;) {
        if (after[v])
            continue;
        m->needed[v] = p->node[v].keep;
        for (int32_t i = p->user_at[v]; i < p->user_at[v + 1]; i++) {
            int32_t user = p->user[i];
            m->needed[v] |= after[user] && user != m->node;
            matters[v] |= matters[user];
        }
        matters[v] |= m->needed[v];
    }
    for (int32_t v = 0; v < p->n; v++) {
        m->index[v] = matters[v] ? m->n : -1;
        if (!matters[v])
            continue;
        m->cell[m->n++] = v;
        m->bytes += p->node[v].bytes;
    }
}

static int32_t count_edges(const Moment *m)
{
    const Problem *p = m->p;
    int32_t n = 0;
    for (int32_t i = 0; i < m->n; i++)
        n += p->input_at[m->cell[i] + 1] - p->input_at[m->cell[i]];
    return n;
}

static void build(Moment *m)
{
    const Problem *p = m->p;
    int32_t edges = count_edges(m), source = 2 * m->n, sink = source + 1;
    Flow *f = &m->flow;
    flow_init(f, 2 * m->n + 2, 3 * m->n + edges, source, sink, m->arena);
    m->edge = NEW_ARRAY(m->arena, int32_t, edges);
    for (int32_t i = 0; i < m->n; i++) {
        flow_arc(f, source, 2 * i);
        flow_arc(f, 2 * i, 2 * i + 1);
    }
    m->first_edge = f->n_arcs;
    for (int32_t i = 0; i < m->n; i++)
        for (int32_t j = p->input_at[m->cell[i]]; j < p->input_at[m->cell[i] + 1]; j++) {
            m->edge[(f->n_arcs - m->first_edge) / 2] = j;
            flow_arc(f, 2 * m->index[p->input[j]] + 1, 2 * i);
        }
    m->first_need = f->n_arcs;
    for (int32_t i = 0; i < m->n; i++)
        if (m->needed[m->cell[i]])
            flow_arc(f, 2 * i + 1, sink);
    flow_ready(f, m->arena);
    m->reached = NEW_ARRAY(m->arena, bool, f->n);
}

void moment_init(Moment *m, const Problem *p, int32_t node, int64_t budget, int64_t *work, Arena *a)
{
    *m = (Moment){.p = p, .arena = a, .node = node, .work = work};
    m->index = NEW_ARRAY(a, int32_t, p->n);
    m->cell = NEW_ARRAY(a, int32_t, p->n);
    m->before = NEW_ARRAY(a, bool, p->n);
    m->needed = NEW_ARRAY(a, bool, p->n);
    m->read = NEW_ARRAY(a, bool, p->n);
    m->decided = NEW_ARRAY(a, uint8_t, p->n);
    bool *after = NEW_ARRAY(a, bool, p->n);
    find_sides(m, after);
    find_cells(m, after);
    build(m);
    m->room = budget - problem_working_set(p, node);
    m->scale = 1;
    while (m->scale * p->cost_base < FLOW_MOST / 16 && m->scale < INT64_C(1) << 50)
        m->scale *= 2;
    for (int32_t v = 0; v < p->n; v++)
        m->divisor = common_divisor(m->divisor, p->node[v].cost);
    m->divisor = m->divisor > 0 ? m->divisor : 1;
}

/* ---- one price ---------------------------------------------------------------------------- */

typedef struct Price {
    int64_t price;
    int32_t shift;
} Price;

/* About `x` (scaled cost per byte), with 40 bits. */
static Price price_of(double x)
{
    int exponent;
    frexp(x, &exponent);
    int shift = 40 - exponent;
    shift = shift < 0 ? 0 : shift > 60 ? 60 : shift;
    double n = ldexp(x, shift);
    return (Price){n < 1 ? 1 : n > 1e18 ? INT64_C(1) << 59 : (int64_t)n, shift};
}

static double value_of(Price price)
{
    return ldexp((double)price.price, -price.shift);
}

static int64_t keep_limit(const Moment *m, int32_t v, Price price)
{
    if (m->decided[v] == NOT_KEPT)
        return FLOW_MOST;
    if (m->read[v] || m->decided[v] == KEPT)
        return 0;
    Wide limit = ((Wide)price.price * m->p->node[v].bytes) >> price.shift;
    return limit > FLOW_MOST ? FLOW_MOST : (int64_t)limit;
}

/* `free_again`: what is pure runs again for nothing. */
static int64_t in_limit(const Moment *m, int32_t v, bool free_again)
{
    if (!m->before[v])
        return 0;
    if (!m->p->node[v].pure)
        return FLOW_MOST;
    return free_again ? 0 : m->scale * m->p->node[v].cost;
}

static int64_t run(Moment *m, Price price, bool free_again)
{
    Flow *f = &m->flow;
    for (int32_t e = m->first_edge; e < f->n_arcs; e += 2) {
        f->left[e] = FLOW_MOST;
        f->left[e + 1] = 0;
    }
    for (int32_t i = 0; i < m->n; i++) {
        f->left[4 * i] = in_limit(m, m->cell[i], free_again);
        f->left[4 * i + 1] = 0;
        f->left[4 * i + 2] = keep_limit(m, m->cell[i], price);
        f->left[4 * i + 3] = FLOW_MOST;
    }
    return flow_run(f, m->work);
}

static Cut cut_of(Moment *m)
{
    Cut c = {0};
    c.kept = NEW_ARRAY(m->arena, bool, m->p->n);
    c.again = NEW_ARRAY(m->arena, bool, m->p->n);
    flow_reached(&m->flow, m->reached);
    for (int32_t i = 0; i < m->n; i++) {
        int32_t v = m->cell[i];
        c.again[v] = !m->reached[2 * i];
        c.kept[v] = m->reached[2 * i] && !m->reached[2 * i + 1];
        if (c.kept[v] && !m->read[v] && m->decided[v] != KEPT)
            c.bytes += m->p->node[v].bytes;
        if (c.again[v] && m->before[v])
            c.cost += m->p->node[v].cost;
    }
    return c;
}

/* Keeps all that is needed. */
static Cut keep_all(Moment *m)
{
    Cut c = {0};
    c.kept = NEW_ARRAY(m->arena, bool, m->p->n);
    c.again = NEW_ARRAY(m->arena, bool, m->p->n);
    for (int32_t i = 0; i < m->n; i++) {
        int32_t v = m->cell[i];
        c.kept[v] = m->needed[v];
        if (c.kept[v] && !m->read[v] && m->decided[v] != KEPT)
            c.bytes += m->p->node[v].bytes;
    }
    return c;
}

/* ---- the best price ---------------------------------------------------------------------------
 */

/* The extra cost that a flow proves, as checked; *exact before rounding. */
static int64_t bound_of(const Moment *m, int64_t flow, Price price, double *exact)
{
    Wide over = ((Wide)flow << price.shift) - (Wide)price.price * m->room;
    Wide unit = ((Wide)m->scale << price.shift) * m->divisor;
    *exact = (double)over / (double)unit;
    if (over <= 0)
        return 0;
    return (int64_t)((over + unit - 1) / unit) * m->divisor;
}

static bool is_impossible(Moment *m, MomentBound *b)
{
    Price one = {1, 0};
    bool some = false;
    for (int32_t i = 0; i < m->n; i++)
        some = some || (m->before[m->cell[i]] && !m->p->node[m->cell[i]].pure) ||
               m->decided[m->cell[i]] == NOT_KEPT;
    if (!some || run(m, one, true) <= m->room)
        return false;
    b->impossible = true;
    b->price = 1;
    return true;
}

static void consider(Moment *m, MomentBound *b, Price price, int64_t flow, double *best)
{
    double exact;
    int64_t bound = bound_of(m, flow, price, &exact);
    if (exact <= *best)
        return;
    *best = exact;
    b->bound = bound;
    b->price = price.price;
    b->shift = price.shift;
}

/* The cheapest cut, whatever its bytes: keeps all that is needed, or, where something is decided
 * not to be kept, runs that again. For a price so low that all bytes are worth half a unit of cost.
 */
static Cut cheapest(Moment *m, MomentBound *b, double *best)
{
    bool some = false;
    for (int32_t i = 0; i < m->n; i++)
        some = some || m->decided[m->cell[i]] == NOT_KEPT;
    if (!some)
        return keep_all(m);
    Price low = price_of((double)m->scale / (2 * (double)m->bytes + 2));
    int64_t flow = run(m, low, false);
    if (*m->work < 0)
        return keep_all(m);
    consider(m, b, low, flow, best);
    return cut_of(m);
}

enum { MOST_ROUNDS = 40 };

/* The lines of the two cuts meet where the next price is tried: the slope of the bound
 * is the bytes of the cut less the room. */
static void search_price(Moment *m, MomentBound *b, double best, bool quick)
{
    double scale = (double)m->scale;
    double price = scale * ((double)m->p->cost_base + 1) / (double)(b->over.bytes - m->room);
    for (int i = 0; i < MOST_ROUNDS && *m->work >= 0; i++) {
        Price at = price_of(price);
        int64_t flow = run(m, at, false);
        if (*m->work < 0)
            return;
        Cut cut = cut_of(m);
        consider(m, b, at, flow, &best);
        bool fits = cut.bytes <= m->room;
        Cut *side = fits ? &b->fits : &b->over;
        bool moved = fits ? !b->has_fit || cut.bytes != side->bytes || cut.cost != side->cost
                          : cut.bytes != side->bytes || cut.cost != side->cost;
        *side = cut;
        b->has_fit = b->has_fit || fits;
        if (!b->has_fit) {
            price = value_of(at) * 64;
            if (price * (double)m->bytes > (double)FLOW_MOST / 4)
                return;
            continue;
        }
        if (!moved || b->over.bytes <= b->fits.bytes || (quick && i > 6))
            return;
        price =
            scale * (double)(b->fits.cost - b->over.cost) / (double)(b->over.bytes - b->fits.bytes);
        if (price <= 0)
            return;
    }
}

/* ---- between the two cuts ---------------------------------------------------------------------
 */

/* Where the cuts differ, they do so in parts that have nothing to do with one another, and
 * each may be as in one cut or as in the other: equal layers all change at one price. */
typedef struct Part {
    int32_t root;
    int64_t bytes, cost; /* `over` less `fits`; `fits` less `over` */
} Part;

static int32_t root_of(int32_t *above, int32_t v)
{
    while (above[v] != v)
        v = above[v] = above[above[v]];
    return v;
}

static bool differs(const MomentBound *b, int32_t v)
{
    return b->over.kept[v] != b->fits.kept[v] || b->over.again[v] != b->fits.again[v];
}

static int32_t *find_parts(const Moment *m, const MomentBound *b)
{
    const Problem *p = m->p;
    int32_t *above = NEW_ARRAY(m->arena, int32_t, p->n);
    for (int32_t v = 0; v < p->n; v++)
        above[v] = v;
    for (int32_t i = 0; i < m->n; i++) {
        int32_t v = m->cell[i];
        for (int32_t j = p->input_at[v]; differs(b, v) && j < p->input_at[v + 1]; j++)
            if (differs(b, p->input[j]))
                above[root_of(above, v)] = root_of(above, p->input[j]);
    }
    return above;
}

static int by_bytes(const void *a, const void *b)
{
    const Part *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return (x->root > y->root) - (x->root < y->root);
}

static int64_t bytes_kept(const Moment *m, const Cut *c, int32_t v)
{
    bool free = m->read[v] || m->decided[v] == KEPT;
    return c->kept[v] && !free ? m->p->node[v].bytes : 0;
}

static int64_t cost_again(const Moment *m, const Cut *c, int32_t v)
{
    return c->again[v] && m->before[v] ? m->p->node[v].cost : 0;
}

/* Takes parts of `over` into `fits`, the largest first, as long as there is room. */
static void fill(Moment *m, MomentBound *b)
{
    int32_t *above = find_parts(m, b), *number = NEW_ARRAY(m->arena, int32_t, m->p->n);
    Part *part = NEW_ARRAY(m->arena, Part, m->n);
    bool *taken = NEW_ARRAY(m->arena, bool, m->p->n);
    int32_t n = 0;
    for (int32_t i = 0; i < m->n; i++)
        if (differs(b, m->cell[i]) && above[m->cell[i]] == m->cell[i]) {
            number[m->cell[i]] = n;
            part[n++].root = m->cell[i];
        }
    for (int32_t i = 0; i < m->n; i++) {
        int32_t v = m->cell[i];
        if (!differs(b, v))
            continue;
        Part *at = &part[number[root_of(above, v)]];
        at->bytes += bytes_kept(m, &b->over, v) - bytes_kept(m, &b->fits, v);
        at->cost += cost_again(m, &b->fits, v) - cost_again(m, &b->over, v);
    }
    qsort(part, (size_t)n, sizeof *part, by_bytes);
    for (int32_t i = 0; i < n; i++) {
        if (part[i].cost <= 0 || part[i].bytes > m->room - b->fits.bytes)
            continue;
        b->fits.bytes += part[i].bytes;
        b->fits.cost -= part[i].cost;
        taken[part[i].root] = true;
    }
    for (int32_t i = 0; i < m->n; i++) {
        int32_t v = m->cell[i];
        if (!differs(b, v) || !taken[root_of(above, v)])
            continue;
        b->fits.kept[v] = b->over.kept[v];
        b->fits.again[v] = b->over.again[v];
    }
}

MomentBound moment_bound(Moment *m, bool quick)
{
    MomentBound b = {0};
    if (is_impossible(m, &b))
        return b;
    double best = 0;
    b.over = cheapest(m, &b, &best);
    if (b.over.bytes <= m->room) {
        b.fits = b.over;
        b.has_fit = true;
        return b;
    }
    search_price(m, &b, best, quick);
    if (b.has_fit)
        fill(m, &b);
    return b;
}

/* ---- the proof ----------------------------------------------------------------------------------
 */

static void add_flow(Flows *to, int32_t at, int64_t amount, Arena *out)
{
    if (amount != 0)
        vec_push(out, to, ((FlowOn){at, amount}));
}

ProofCase moment_proof(Moment *m, const MomentBound *b, Arena *out)
{
    ProofCase k = {.price = b->price, .shift = b->shift};
    const Flow *f = &m->flow;
    int64_t unlimited = INT64_MAX / 2;
    if (b->price == 0)
        return k;
    *m->work = *m->work < 0 ? 0 : *m->work;
    int64_t saved = *m->work;
    *m->work = unlimited;
    run(m, (Price){b->price, b->shift}, b->impossible);
    *m->work = saved;
    for (int32_t i = 0; i < m->n; i++) {
        int32_t v = m->cell[i];
        add_flow(&k.in, v, f->left[4 * i + 1], out);
        add_flow(&k.keep, v, f->left[4 * i + 3] - FLOW_MOST, out);
    }
    for (int32_t e = m->first_edge; e < m->first_need; e += 2)
        add_flow(&k.edge, m->edge[(e - m->first_edge) / 2], f->left[e + 1], out);
    for (int32_t e = m->first_need; e < f->n_arcs; e += 2)
        add_flow(&k.need, m->cell[f->to[e + 1] / 2], f->left[e + 1], out);
    return k;
}
