/* Which values have their channels last. Models write [N, C, s...], and so their convolutions sum
 * and multiply along rows of places. Where each channel has a kernel of its own (depthwise), lanes
 * along the channels are better: no place needs its neighbours in other lanes, and rows may be
 * short. So what such a convolution reads and gives lies as [N, s..., C], and with it what is
 * computed element by element from that, and what convolutions of one place a window give and
 * read, as far as that reaches. Reverse mode then makes cotangents that lie alike.
 *
 * Everything else reads a transposed view. A sum over the terms of a convolution has their order
 * still, and so every value of the forward pass has the same bits. */
#include "pass.h"

typedef struct Channels {
    const Graph *from;
    Graph *to;
    bool *last; /* by Ref: channels are last */
    Ref *map;   /* the copy as the model has it, NONE: not made yet */
    Ref *lying; /* the copy with channels last, NONE: not made yet */
} Channels;

/* ---- what is what -------------------------------------------------------------- */

/* A plain index, that is, one with nothing beside it that moves. */
static bool is_only(const MapDim *m, const int64_t *extent, int index)
{
    bool found = false;
    for (int t = 0; t < m->n; t++) {
        if (m->index[t] == index)
            found = m->coef[t] == 1;
        else if (extent[m->index[t]] != 1)
            return false;
    }
    return found && m->base == 0;
}

/* x[N, C, s...] and weights, of which the x map's first entries are indices 0 and `channel`, and
 * the result begins with N. */
static bool reads_batch(const Graph *g, Ref r)
{
    const Attr *extent = attr(g, r, CONTRACT_EXTENT), *x = attr(g, r, CONTRACT_X),
               *y = attr(g, r, CONTRACT_Y);
    if (op_of(g, r) != OP_contract || x->n < 3 || x->n != y->n)
        return false;
    for (int d = 0; d < y->n; d++)
        if (map_coef(&y->map[d], 0) != 0)
            return false;
    return is_only(&x->map[0], extent->ints, 0);
}

/* [N, C, M, s...], of C groups of one channel. */
static bool is_depthwise(const Graph *g, Ref r)
{
    enum { LEAST = 8 }; /* channels that are worth their lanes */
    if (op_of(g, r) != OP_contract || !reads_batch(g, r))
        return false;
    const Attr *extent = attr(g, r, CONTRACT_EXTENT), *x = attr(g, r, CONTRACT_X);
    return attr(g, r, CONTRACT_N_OUT)->i == x->n + 1 && dim(g, r, 1) >= LEAST &&
           is_only(&x->map[1], extent->ints, 1) &&
           map_coef(&attr(g, r, CONTRACT_Y)->map[0], 1) != 0;
}

/* The reshape of one to [N, C M, s...]. */
static bool is_regrouped(const Graph *g, Ref r)
{
    if (op_of(g, r) != OP_reshape || !is_depthwise(g, arg(g, r, 0)))
        return false;
    Ref of = arg(g, r, 0);
    if (rank(g, r) != rank(g, of) - 1 || dim(g, r, 0) != dim(g, of, 0))
        return false;
    for (int d = 2; d < rank(g, r); d++)
        if (dim(g, r, d) != dim(g, of, d + 1))
            return false;
    return true;
}

/* [N, O, s...] of a convolution in one group. */
static bool is_dense(const Graph *g, Ref r)
{
    if (op_of(g, r) != OP_contract || !reads_batch(g, r))
        return false;
    const Attr *x = attr(g, r, CONTRACT_X), *y = attr(g, r, CONTRACT_Y);
    if (attr(g, r, CONTRACT_N_OUT)->i != x->n || map_coef(&y->map[0], 1) == 0)
        return false;
    for (int d = 1; d < x->n; d++)
        if (map_coef(&x->map[d], 1) != 0)
            return false;
    return true;
}

/* ... whose windows have one place. */
static bool is_of_places(const Graph *g, Ref r)
{
    if (!is_dense(g, r))
        return false;
    const Attr *extent = attr(g, r, CONTRACT_EXTENT);
    for (int i = (int)attr(g, r, CONTRACT_N_OUT)->i + 1; i < extent->n; i++)
        if (extent->ints[i] != 1)
            return false;
    return true;
}

static bool is_pointwise(const Graph *g, Ref r)
{
    const Op *op = optab[op_of(g, r)];
    if (op->kind != OP_POINTWISE || rank(g, r) < 3)
        return false;
    for (int i = 0; i < op_attrs(op); i++)
        if (op->attrs[i].kind == ATTR_INTS || op->attrs[i].kind == ATTR_BODY)
            return false;
    return true;
}

/* ---- how far that reaches --------------------------------------------------------- */

static bool mark(Channels *c, Ref r)
{
    bool can = is_pointwise(c->from, r) || is_dense(c->from, r) || is_regrouped(c->from, r);
    if (!can || c->last[r])
        return false;
    return c->last[r] = true;
}

/* Among a node and its operands; true: something is new. */
static bool spread(Channels *c, Ref r)
{
    const Graph *g = c->from;
    bool more = false;
    if (is_pointwise(g, r)) {
        for (int i = 0; i < node(g, r)->n_args && !c->last[r]; i++)
            more |= c->last[arg(g, r, i)] && mark(c, r);
        for (int i = 0; i < node(g, r)->n_args && c->last[r]; i++)
            more |= mark(c, arg(g, r, i));
    } else if (is_of_places(g, r)) {
        more |= c->last[arg(g, r, 0)] && mark(c, r);
        more |= c->last[r] && mark(c, arg(g, r, 0));
    }
    return more;
}

static bool find(Channels *c)
{
    const Graph *g = c->from;
    bool some = false, more = true;
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        if (is_regrouped(g, r)) {
            some = mark(c, r);
            mark(c, arg(g, arg(g, r, 0), 0));
        }
    while (some && more) {
        more = false;
        for (Ref r = 1; r < (Ref)g->node.n; r++)
            more |= spread(c, r);
        for (Ref r = (Ref)g->node.n; r-- > 1;)
            more |= spread(c, r);
    }
    return some;
}

/* ---- the copy -------------------------------------------------------------------- */

static Ref move_channels(Graph *g, Ref x, bool to_last)
{
    int n = rank(g, x), perm[MAX_RANK] = {0};
    for (int d = 2; d < n; d++)
        perm[to_last ? d - 1 : d] = to_last ? d : d - 1;
    perm[to_last ? n - 1 : 1] = to_last ? 1 : n - 1;
    return g_transpose(g, x, perm);
}

static Ref as_written(Channels *c, Ref r)
{
    if (c->map[r] == NONE)
        c->map[r] = move_channels(c->to, c->lying[r], false);
    return c->map[r];
}

/* What is repeated is moved, and not what that makes. */
static Ref broadcast_lying(Channels *c, Ref r)
{
    const Type *t = type_of(c->from, r);
    Ref x = as_written(c, arg(c->from, r, 0));
    int64_t size[MAX_RANK] = {t->dim[0]};
    for (int d = 2; d < t->rank; d++)
        size[d - 1] = t->dim[d];
    size[t->rank - 1] = t->dim[1];
    if (rank(c->to, x) > 0 && rank(c->to, x) < t->rank)
        return NONE;
    if (rank(c->to, x) > 0)
        x = move_channels(c->to, x, true);
    return g_broadcast(c->to, x, t->rank, size);
}

static Ref as_lying(Channels *c, Ref r)
{
    if (c->lying[r] == NONE && op_of(c->from, r) == OP_broadcast)
        c->lying[r] = broadcast_lying(c, r);
    if (c->lying[r] == NONE)
        c->lying[r] = move_channels(c->to, as_written(c, r), true);
    return c->lying[r];
}

/* The contraction r with its results' axes in the order `at`, by index. */
static Ref contract_lying(Channels *c, Ref r, const int *at)
{
    const Graph *g = c->from;
    const Attr *extent = attr(g, r, CONTRACT_EXTENT), *x = attr(g, r, CONTRACT_X),
               *y = attr(g, r, CONTRACT_Y);
    int64_t size[MAX_INDICES];
    MapDim x_map[MAX_RANK], y_map[MAX_RANK];
    bool lies = c->last[arg(g, r, 0)];
    for (int i = 0; i < extent->n; i++)
        size[at[i]] = extent->ints[i];
    for (int d = 0; d < x->n; d++) {
        int to = !lies || d == 0 ? d : d == 1 ? x->n - 1 : d - 1;
        x_map[to] = map_const(x->map[d].base);
        y_map[d] = map_const(y->map[d].base);
        for (int t = 0; t < x->map[d].n; t++)
            x_map[to] = map_term(x_map[to], at[x->map[d].index[t]], x->map[d].coef[t]);
        for (int t = 0; t < y->map[d].n; t++)
            y_map[d] = map_term(y_map[d], at[y->map[d].index[t]], y->map[d].coef[t]);
    }
    Ref from = lies ? as_lying(c, arg(g, r, 0)) : as_written(c, arg(g, r, 0));
    Ref weights = as_written(c, arg(g, r, 1));
    c->to->origin = node(g, r)->origin;
    return g_contract(c->to, from, weights, size, (int)attr(g, r, CONTRACT_N_OUT)->i, extent->n,
                      x_map, y_map);
}

/* Places of the result's axes: N, places, then `channels` axes. */
static Ref contract_last(Channels *c, Ref r, int channels)
{
    int at[MAX_INDICES], n_out = (int)attr(c->from, r, CONTRACT_N_OUT)->i;
    for (int i = 0; i < MAX_INDICES; i++)
        at[i] = i;
    for (int i = 1; i < n_out; i++)
        at[i] = i <= channels ? n_out - 1 - channels + i : i - channels;
    return contract_lying(c, r, at);
}

static Ref pointwise_last(Channels *c, Ref r)
{
    const Node *n = node(c->from, r);
    ArenaMark mark = arena_mark(&c->to->cx->scratch);
    Ref *args = NEW_ARRAY(&c->to->cx->scratch, Ref, n->n_args);
    for (int i = 0; i < n->n_args; i++)
        args[i] = as_lying(c, arg(c->from, r, i));
    c->to->origin = n->origin;
    Ref made = g_node(c->to, n->op, args, n->n_args, n->attr);
    arena_reset(&c->to->cx->scratch, mark);
    return made;
}

static Ref regrouped_last(Channels *c, Ref r)
{
    const Type *t = type_of(c->from, r);
    int64_t size[MAX_RANK] = {t->dim[0]};
    for (int d = 2; d < t->rank; d++)
        size[d - 1] = t->dim[d];
    size[t->rank - 1] = t->dim[1];
    Ref x = contract_last(c, arg(c->from, r, 0), 2);
    c->to->origin = node(c->from, r)->origin;
    return g_reshape(c->to, x, t->rank, size);
}

static void copy_node(Channels *c, Ref r)
{
    const Graph *g = c->from;
    c->to->origin = node(g, r)->origin;
    if (!c->last[r]) {
        for (int i = 0; i < node(g, r)->n_args; i++)
            as_written(c, arg(g, r, i));
        c->map[r] = graph_copy_node(c->to, g, r, c->map);
    } else if (is_pointwise(g, r)) {
        c->lying[r] = pointwise_last(c, r);
    } else {
        c->lying[r] = is_dense(g, r) ? contract_last(c, r, 1) : regrouped_last(c, r);
    }
}

Graph *channels_last(const Graph *g)
{
    Arena arena = {0};
    Channels c = {.from = g};
    c.last = NEW_ARRAY(&arena, bool, g->node.n);
    c.map = NEW_ARRAY(&arena, Ref, g->node.n);
    c.lying = NEW_ARRAY(&arena, Ref, g->node.n);
    if (find(&c)) {
        c.to = graph_new(g->cx, g->name);
        for (Ref r = 1; r < (Ref)g->node.n; r++)
            copy_node(&c, r);
        for (int i = 0; i < g->root.n; i++)
            as_written(&c, g->root.at[i].ref);
        graph_copy_roots(c.to, g, c.map);
    }
    arena_free(&arena);
    return c.to;
}
