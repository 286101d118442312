/* What the steps of a scan may write over.
 *
 * A step that stacks a value which is all that it needs of a sequence's slice need not have other
 * memory for it: the slice of the stack lies over the slice of the sequence, as a new carry lies
 * over the old one. Where one of both is a carry's stack, which has a row more than there are
 * steps, the other one gets a row more, too, so that slices of one step lie together. Whether
 * memory is shared is for the plan to say: a sequence that is read later is not written over. */
#include "lower_level.h"

/* ---- in the body ------------------------------------------------------------------------- */

static bool reads_arg(const Clusters *c, const Group *gr, int64_t i)
{
    for (int j = 0; j < gr->operand.n; j++) {
        Ref r = gr->operand.at[j].ref;
        if (gr->operand.at[j].out < 0 && op_of(c->g, r) == OP_arg && attr(c->g, r, 0)->i == i)
            return true;
    }
    if (gr->kind == GROUP_SCAN)
        for (int j = 0; j < node(c->g, gr->anchor)->n_args; j++) {
            Ref r = memory_of(c->g, c->stored, arg(c->g, gr->anchor, j));
            if (op_of(c->g, r) == OP_arg && attr(c->g, r, 0)->i == i)
                return true;
        }
    return false;
}

static bool is_free(const Clusters *body, int result, int64_t i);

/* May the scan, of which r is what it stacks or a carry's last value, write r over argument i? Its
 * steps may read slices of that which they write over. */
static bool scan_overwrites(const Clusters *c, const Group *scan, Ref r, int64_t i)
{
    const Graph *g = c->g;
    const Scan is = scan_of(g, scan->anchor);
    int64_t result = attr(g, r, 0)->i;
    for (int j = 0; j < node(g, scan->anchor)->n_args; j++) {
        Ref x = arg(g, scan->anchor, j), memory = memory_of(g, c->stored, x);
        if (op_of(g, memory) != OP_arg || attr(g, memory, 0)->i != i)
            continue;
        bool sequence = j >= is.carries && j < is.carries + is.sequences;
        int64_t n = type_elems(type_of(g, r));
        bool alike = type_elems(type_of(g, x)) == n && type_elems(type_of(g, memory)) == n;
        if (result < is.carries || !sequence || !alike || !is_free(scan->body, (int)result, j))
            return false;
    }
    return true;
}

/* May the group write r over argument i of its body? */
static bool overwrites_arg(const Clusters *c, const Group *gr, Ref r, int64_t i)
{
    if (gr->kind == GROUP_SCAN)
        return scan_overwrites(c, gr, r, i);
    int out = -1;
    for (int j = 0; j < gr->operand.n; j++)
        if (gr->operand.at[j].out >= 0 && gr->out.at[gr->operand.at[j].out].ref == r)
            out = j;
    if (out < 0)
        return false;
    for (int j = 0; j < gr->operand.n; j++) {
        Ref a = gr->operand.at[j].ref;
        if (gr->operand.at[j].out < 0 && op_of(c->g, a) == OP_arg && attr(c->g, a, 0)->i == i &&
            !kernel_inplace(gr->kernel, j, out))
            return false;
    }
    return true;
}

static bool read_after(const Clusters *c, const Group *own, int64_t i)
{
    bool after = false;
    for (int j = 0; j < c->order.n; j++) {
        const Group *gr = &c->group.at[c->order.at[j]];
        if (after && reads_arg(c, gr, i))
            return true;
        after |= gr == own;
    }
    return false;
}

/* A carry of the inner scan begins with the old carry i, all of it, which it reads nowhere else:
 * both are in one memory. */
static bool goes_on(const Clusters *c, const Group *inner, Ref pick, int i)
{
    const Graph *g = c->g;
    int64_t at = attr(g, pick, 0)->i;
    if (at >= attr(g, inner->anchor, SCAN_CARRIES)->i)
        return false;
    Ref init = arg(g, inner->anchor, (int)at);
    if (op_of(g, init) != OP_arg || attr(g, init, 0)->i != i)
        return false;
    for (int j = 0; j < node(g, inner->anchor)->n_args; j++) {
        Ref r = memory_of(g, c->stored, arg(g, inner->anchor, j));
        if (j != at && op_of(g, r) == OP_arg && attr(g, r, 0)->i == i)
            return false;
    }
    return true;
}

/* No slice of argument i, a sequence, is read when, or after, the result is written over it. */
static bool is_free(const Clusters *body, int result, int64_t i)
{
    Ref r = result_root(body->g, result)->ref;
    if (ref_is_source(body->g, r) || body->group_of[r] < 0)
        return false;
    const Group *own = &body->group.at[body->group_of[r]];
    for (int j = 0; j < body->g->root.n; j++) { /* results that are copied, at the end */
        Ref root = body->g->root.at[j].ref;
        if (op_of(body->g, root) == OP_arg && attr(body->g, root, 0)->i == i)
            return false;
    }
    Ref first = body_begins_direct(body, r);
    const Group *maker = first == NONE ? own : &body->group.at[body->group_of[first]];
    if (first != NONE && reads_arg(body, maker, i))
        return false;
    return !read_after(body, maker, i) && overwrites_arg(body, own, r, i);
}

bool body_writes_direct(const Clusters *c, Ref r, int i, int64_t carries)
{
    if (ref_is_source(c->g, r) || !c->stored[r] || c->group_of[r] < 0)
        return false;
    const Group *own = &c->group.at[c->group_of[r]];
    if (own->kind == GROUP_SCAN)
        return i >= carries || (goes_on(c, own, r, i) && !read_after(c, own, i));
    return i >= carries || (!read_after(c, own, i) && overwrites_arg(c, own, r, i));
}

/* Somebody besides carries of the scan, which begin before its first step, reads the stored r. */
static bool read_elsewhere(const Clusters *c, Ref scan, Ref r)
{
    for (int i = 0; i < c->g->root.n; i++)
        if (memory_of(c->g, c->stored, c->g->root.at[i].ref) == r)
            return true;
    for (int i = 0; i < c->group.n; i++) {
        const Group *gr = &c->group.at[i];
        for (int j = 0; j < gr->operand.n; j++)
            if (gr->operand.at[j].out < 0 && memory_of(c->g, c->stored, gr->operand.at[j].ref) == r)
                return true;
        int first = gr->anchor == scan ? (int)scan_of(c->g, scan).carries : 0;
        for (int j = first; gr->kind == GROUP_SCAN && j < node(c->g, gr->anchor)->n_args; j++)
            if (memory_of(c->g, c->stored, arg(c->g, gr->anchor, j)) == r)
                return true;
    }
    return false;
}

Ref body_begins_direct(const Clusters *c, Ref r)
{
    const Group *own = &c->group.at[c->group_of[r]];
    if (own->kind != GROUP_SCAN || attr(c->g, r, 0)->i >= scan_of(c->g, own->anchor).carries)
        return NONE;
    Ref first = arg(c->g, own->anchor, (int)attr(c->g, r, 0)->i);
    if (ref_is_source(c->g, first) || !c->stored[first] || c->group_of[first] < 0 ||
        read_elsewhere(c, own->anchor, first))
        return NONE;
    const Group *maker = &c->group.at[c->group_of[first]];
    for (int i = 0; i < maker->out.n; i++)
        if (maker->out.at[i].ref == first && maker->out.at[i].slot >= 0)
            return NONE;
    return maker->kernel != NULL ? first : NONE;
}

/* ---- the rows of stacks ------------------------------------------------------------------- */

typedef struct Site {
    const Level *l;
    const Group *gr;
    Scan is;
    const CarryStack *stack; /* by carry */
    int result;              /* number of the one at hand, ... */
    Ref pick;                /* ... and its pick */
    int64_t slice;           /* elements of it that a step stacks */
} Site;

static bool is_wanted(const Site *s, int i)
{
    return i < s->is.carries ? s->stack[i].before == NONE : pick_of(s->gr, s->l->g, i) != NONE;
}

/* A group of the body writes result i to the stack, and nowhere else. */
static bool is_direct(const Site *s, int i)
{
    const Clusters *body = s->gr->body;
    Ref r = result_root(body->g, i)->ref;
    for (int j = 0; j < i; j++)
        if (result_root(body->g, j)->ref == r && is_wanted(s, j) &&
            body_writes_direct(body, r, j, s->is.carries))
            return false;
    return is_wanted(s, i) && body_writes_direct(body, r, i, s->is.carries);
}

/* Stacked from element `to` of memory on, of which each operand of the scan that is there begins
 * `moved` elements further than it does now. What a step reads lies where it writes, or where later
 * steps do: so it lies beside the first value of a carry's stack, too, which is there from the
 * beginning on, in the row that no step writes. */
static bool may_lie_over(const Site *s, Ref memory, int64_t to, int64_t moved)
{
    const Graph *g = s->l->g;
    int first = (int)s->is.carries, end = first + (int)s->is.sequences;
    for (int i = 0; i < node(g, s->gr->anchor)->n_args; i++) {
        Ref a = arg(g, s->gr->anchor, i);
        if (level_memory(s->l, a) != memory)
            continue;
        bool alike = i >= first && i < end && type_elems(type_of(g, a)) == s->slice * s->is.count;
        int64_t from = level_shift(s->l, a) + moved, ahead = s->is.down ? to - from : from - to;
        if (!alike || (ahead != 0 && ahead < s->slice) ||
            (ahead == 0 && !is_free(s->gr->body, s->result, i)))
            return false;
    }
    return true;
}

/* Something may lie over r, or r over something, as rows of both are now: neither may move. */
static bool is_over(const Level *l, Ref r)
{
    for (int i = 0; i < l->over.n; i++)
        if (l->over.at[i].result == r || level_memory(l, l->over.at[i].sequence) == r)
            return true;
    return false;
}

/* r, whose rows are steps, can have a row more, and begin `shift` elements further on. */
static bool can_grow(const Level *l, Ref r, int64_t rows, int64_t shift)
{
    const Graph *g = l->g;
    bool pick = op_of(g, r) == OP_pick;
    int at = l->c->group_of[r];
    if (at < 0 || rank(g, r) == 0 || dim(g, r, 0) != rows || l->result_of[r] != 0)
        return false;
    if (shift < 0 || shift > type_elems(type_of(g, r)) / rows) /* a part of rows that are far on */
        return false;
    if (pick && attr(g, r, 0)->i < attr(g, arg(g, r, 0), SCAN_CARRIES)->i)
        return false;
    for (int i = 0; i < g->root.n; i++)
        if (g->root.at[i].ref == r)
            return false;
    const Group *gr = &l->c->group.at[at];
    for (int i = 0; i < gr->out.n; i++)
        if (gr->out.at[i].ref == r && gr->out.at[i].slot >= 0)
            return false;
    return !is_over(l, r);
}

static void grow(Level *l, Ref r, int64_t shift)
{
    l->within[r] = r;
    l->shift[r] = shift;
}

/* Lays the result over the sequence a, if that may be. */
static bool lay_over(Level *l, const Site *s, Ref a)
{
    Ref memory = level_memory(l, a), own = level_memory(l, s->pick);
    int64_t from = level_shift(l, a), to = level_shift(l, s->pick);
    bool grown = l->within[memory] != NONE, mine = l->within[own] != NONE;
    bool whole = type_elems(type_of(l->g, memory)) == type_elems(type_of(l->g, a));
    if (l->c->group_of[memory] < 0 || memory == own ||
        dtype_bytes(type_of(l->g, a)->dtype) != dtype_bytes(type_of(l->g, s->pick)->dtype))
        return false;
    if (grown == mine)
        return may_lie_over(s, memory, to, 0);
    if (grown && can_grow(l, own, s->is.count, from) && may_lie_over(s, memory, from, 0)) {
        grow(l, own, from);
        return true;
    }
    if (mine && whole && can_grow(l, memory, s->is.count, to) && may_lie_over(s, memory, to, to)) {
        grow(l, memory, to);
        return true;
    }
    return false;
}

void level_over(Lowering *lo, Level *l, const Group *gr, int at)
{
    Site s = {.l = l, .gr = gr, .is = scan_of(l->g, gr->anchor), .stack = l->stack[at]};
    int n = count_results(gr->body->g);
    for (int i = (int)s.is.carries; i < n && s.is.count > 0; i++) {
        if (!is_direct(&s, i))
            continue;
        s.result = i;
        s.pick = pick_of(gr, l->g, i);
        s.slice = type_elems(type_of(l->g, s.pick)) / s.is.count;
        for (int j = 0; j < s.is.sequences && s.slice > 0; j++) {
            Ref a = arg(l->g, gr->anchor, (int)s.is.carries + j);
            Over o = {gr->anchor, a, level_memory(l, s.pick)};
            if (lay_over(l, &s, a))
                vec_push(lo->arena, &l->over, o);
        }
    }
}
