/* What a node reads of a group that computes rows: elements at its own place, or a walk along the
 * row, of what can be computed again there for no more than its own element. */
#include "cluster_build.h"

const Trace *trace_of(Build *b, Ref r)
{
    if (!b->trace[r].done) {
        trace_node(b->c, r, &r, 1, &b->trace[r].t);
        b->trace[r].done = true;
    }
    return &b->trace[r].t;
}

bool is_row_read(const Build *b, const Trace *t, const Request *q)
{
    if (q->bounded)
        return false;
    const Type *type = type_of(b->g, q->ref);
    for (int a = 0; a < type->rank; a++) {
        if (type->dim[a] == 1)
            continue;
        if (a >= t->n_axes || t->axis[a].extent != type->dim[a])
            return false;
        KAff want = axis_index(&t->axis[a]);
        if (!k_aff_equal(&want, &q->idx[a]))
            return false;
    }
    return true;
}

/* q shows `from` with its own axes, but for ones of extent 1 at the end. [n] shown as [1, n] has
 * other ones: where a kernel has n rows, too, element i of it is computed in row i. */
static bool has_same_axes(const Graph *g, const Request *q, Ref from)
{
    const Type *shown = type_of(g, q->ref), *t = type_of(g, from);
    for (int a = 0; a < shown->rank || a < t->rank; a++)
        if ((a < shown->rank ? shown->dim[a] : 1) != (a < t->rank ? t->dim[a] : 1))
            return false;
    return true;
}

bool is_reduced(const Build *b, Ref r)
{
    const Graph *g = b->g;
    Ref x = op_of(g, r) == OP_cast ? arg(g, r, 0) : r;
    return optab[op_of(g, x)]->kind == OP_REDUCE && (x == r || !b->c->stored[x]);
}

/* Is q, which shows values of `from`, a walk along the row, by a reduction inside of it? Only what
 * can be computed again there may be read so: a value at each element, not a reduction. */
static bool is_walk_in_row(const Build *b, const Trace *t, const Request *q, Ref from)
{
    const Type *type = type_of(b->g, q->ref);
    OpKind kind = optab[op_of(b->g, from)]->kind;
    if (q->bounded || is_reduced(b, from) || (kind != OP_POINTWISE && kind != OP_VIEW))
        return false;
    for (int a = 0; a + 1 < type->rank; a++) {
        KAff want = a < t->n_axes ? axis_index(&t->axis[a]) : k_aff(0);
        if (type->dim[a] != 1 && !k_aff_equal(&want, &q->idx[a]))
            return false;
    }
    return type->rank > 0;
}

/* A stored value that the group computes. */
static bool is_ours(const Build *b, Ref r, const Group *gr)
{
    return b->c->stored[r] && b->c->group_of[r] >= 0 && &b->c->group.at[b->c->group_of[r]] == gr;
}

static bool shares_loop(const KAff *x, const KAff *y)
{
    for (int i = 0; i < x->n; i++)
        for (int j = 0; j < y->n; j++)
            if (x->t[i].v == y->t[j].v)
                return true;
    return false;
}

/* Axes of what q asks for along which it moves when node x, whose trace is t, moves along the axes
 * `walked`. */
static unsigned axes_moved(const Build *b, const Trace *t, const Request *q, unsigned walked)
{
    unsigned moved = 0;
    for (int a = 0; a < rank(b->g, q->ref); a++)
        for (int w = 0; w < t->n_axes; w++) {
            KAff along = axis_index(&t->axis[w]);
            if ((walked >> w & 1) != 0 && shares_loop(&q->idx[a], &along))
                moved |= 1u << a;
        }
    return moved;
}

/* Would x, computed again at each element along the axes `walked`, go through one of the group's
 * reductions each time? Those that stay where they are while x moves are in a register. */
static bool reduces_again(Build *b, Ref x, unsigned walked, const Group *gr)
{
    if (walked == 0 || is_reduced(b, x))
        return walked != 0;
    if (b->walk[x].stamp == b->stamp_now && (walked & ~b->walk[x].axes) == 0)
        return false; /* else the search would have ended there */
    b->walk[x].axes = walked | (b->walk[x].stamp == b->stamp_now ? b->walk[x].axes : 0);
    b->walk[x].stamp = b->stamp_now;
    const Trace *t = trace_of(b, x);
    for (int i = 0; i < t->request.n; i++) {
        const Request *q = &t->request.at[i];
        Ref from = memory_of(b->g, b->c->stored, q->ref);
        unsigned moved = is_ours(b, from, gr) ? axes_moved(b, t, q, walked) : 0;
        if (moved != 0 && from != q->ref) /* of another shape */
            moved = ~0u;
        if (from != x && reduces_again(b, from, moved, gr)) /* a trace begins with its own node */
            return true;
    }
    return t->trouble != FINE;
}

/* All that r takes of the group, computed where r is: walks multiply, as those of a sorting network
 * do, each of whose values is made of two at other places. */
static bool is_short_here(const Build *b, Ref r, const Group *gr)
{
    enum { INSTS_MOST = 600 };
    Ref *here = NEW_ARRAY(b->c->scratch, Ref, gr->out.n + 1);
    Trace t;
    for (int i = 0; i < gr->out.n; i++)
        here[i] = gr->out.at[i].ref;
    here[gr->out.n] = r;
    trace_node(b->c, r, here, gr->out.n + 1, &t);
    return t.trouble != FINE || t.kernel->inst.n <= INSTS_MOST;
}

bool reads_rows(Build *b, const Trace *t, const Group *gr)
{
    bool walks = false;
    for (int i = 0; i < t->request.n; i++) {
        const Request *q = &t->request.at[i];
        Ref from = memory_of(b->g, b->c->stored, q->ref);
        if (!is_ours(b, from, gr))
            continue;
        if (is_row_read(b, t, q) && has_same_axes(b->g, q, from))
            continue;
        if (!is_walk_in_row(b, t, q, from)) /* which is along the last axis */
            return false;
        walks = true;
        b->stamp_now++;
        if (reduces_again(b, from, from == q->ref ? 1u << (rank(b->g, from) - 1) : ~0u, gr))
            return false;
    }
    return !walks || is_short_here(b, t->request.at[0].ref, gr); /* its own node comes first */
}
