/* In which order groups run: what is read is written before, and what is overwritten has
 * been read. New values of pinned storage are written as soon as they can be: what they are
 * made of is not kept any longer. */
#include "cluster_build.h"

#include <assert.h>
#include <string.h>

typedef struct Edge {
    int from, to;
    bool overwrites; /* `to` writes over what `from` reads */
} Edge;

typedef struct Edges {
    VEC(Edge) e;
} Edges;

static void add_edge(Build *b, Edges *es, int from, int to, bool overwrites)
{
    Edge e = {from, to, overwrites};
    if (from >= 0 && to >= 0 && from != to)
        vec_push(b->c->arena, &es->e, e);
}

/* Group `reader` reads r: after the group that computes it, before the one that
 * overwrites it (`writer`, by slot). */
static void add_read(Build *b, Edges *es, const int *writer, Ref r, int reader)
{
    add_edge(b, es, b->c->group_of[r], reader, false);
    if (op_of(b->g, r) == OP_slot)
        add_edge(b, es, reader, writer[attr(b->g, r, 0)->i], true);
}

static int slots_end(const Build *b)
{
    int64_t end = 0;
    for (Ref r = 1; r < (Ref)b->g->node.n; r++)
        if (op_of(b->g, r) == OP_slot && attr(b->g, r, 0)->i >= end)
            end = attr(b->g, r, 0)->i + 1;
    for (int i = 0; i < b->g->root.n; i++)
        if (b->g->root.at[i].slot >= end)
            end = b->g->root.at[i].slot + 1;
    return (int)end;
}

static void edges_of(Build *b, Edges *es)
{
    const Graph *g = b->g;
    Clusters *c = b->c;
    int n_slots = slots_end(b), *writer = NEW_ARRAY(c->arena, int, n_slots);
    for (int i = 0; i < n_slots; i++)
        writer[i] = -1;
    for (int i = 0; i < c->group.n; i++)
        for (int j = 0; j < c->group.at[i].out.n; j++)
            if (c->group.at[i].out.at[j].slot >= 0)
                writer[c->group.at[i].out.at[j].slot] = i;
    for (int i = 0; i < c->group.n; i++) {
        Group *gr = &c->group.at[i];
        for (int j = 0; j < gr->operand.n; j++)
            if (gr->operand.at[j].out < 0)
                add_read(b, es, writer, gr->operand.at[j].ref, i);
        if (gr->kind == GROUP_SCAN)
            for (int j = 0; j < node(g, gr->anchor)->n_args; j++)
                add_read(b, es, writer, memory_of(g, c->stored, arg(g, gr->anchor, j)), i);
    }
}

/* ---- what rows are added to ------------------------------------------------------ */

static bool only_scalars(const Build *b, const Group *gr);

/* The group of what the scatter adds rows to, or -1. */
static int base_of(const Build *b, const Group *gr)
{
    Ref base = op_of(b->g, gr->anchor) == OP_scatter_add ? arg(b->g, gr->anchor, 0) : NONE;
    return base != NONE ? b->c->group_of[base] : -1;
}

/* A number that is made of the base, as whether all of it is finite, is made before rows are added,
 * which then lie where the base does. Not a guarded one: what says whether it runs may need the
 * rows. */
static void numbers_first(Build *b, Edges *es)
{
    Clusters *c = b->c;
    int n = es->e.n;
    for (int i = 0; i < c->group.n; i++) {
        int from = base_of(b, &c->group.at[i]);
        for (int j = 0; j < n && from >= 0; j++) {
            int reader = es->e.at[j].to;
            bool number = es->e.at[j].from == from && !es->e.at[j].overwrites && reader != i &&
                          !c->group.at[reader].guarded && only_scalars(b, &c->group.at[reader]);
            if (number && !group_depends(b, reader, i))
                add_edge(b, es, reader, i, false);
        }
    }
}

/* ---- what runs early -------------------------------------------------------------- */

static bool is_scalar(const Build *b, Ref r)
{
    return type_elems(type_of(b->g, r)) == 1;
}

/* It leaves no bytes behind: all that it computes goes to slots. */
static bool only_updates(const Group *gr)
{
    for (int i = 0; i < gr->out.n; i++)
        if (gr->out.at[i].slot < 0)
            return false;
    return gr->out.n > 0 && gr->kind != GROUP_SCAN;
}

/* It computes nothing but numbers. */
static bool only_scalars(const Build *b, const Group *gr)
{
    for (int i = 0; i < gr->out.n; i++)
        if (!is_scalar(b, gr->out.at[i].ref))
            return false;
    return gr->kind != GROUP_SCAN;
}

/* Of what it computes, something is read after the last step. */
static bool is_asked_for(const Build *b, const Group *gr)
{
    for (int i = 0; i < gr->out.n; i++)
        for (int j = 0; j < b->g->root.n; j++)
            if (b->g->root.at[j].ref == gr->out.at[i].ref && b->g->root.at[j].kind != ROOT_ASSIGN)
                return true;
    return false;
}

/* What the model offloads comes in before anything that lasts is changed, for a transfer may
 * fail: the later that is, the better. */
static bool offloads(const Graph *g)
{
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        const Origin *o = node(g, r)->origin;
        if (o != NULL && o->memory == MEMORY_OFFLOAD)
            return true;
    }
    return false;
}

/* By group: an update, or a number that only updates read. Neither takes bytes that count, and
 * what it reads is there already, so that no step has more bytes live if it runs sooner. */
static bool *find_early(const Build *b, const Edges *es)
{
    const Clusters *c = b->c;
    int n = c->group.n;
    bool *early = NEW_ARRAY(c->arena, bool, n), *other = NEW_ARRAY(c->arena, bool, n);
    if (offloads(b->g))
        return early;
    for (int i = 0; i < n; i++)
        early[i] = only_updates(&c->group.at[i]);
    for (bool more = true; more;) {
        memset(other, 0, sizeof *other * (size_t)n);
        for (int i = 0; i < es->e.n; i++)
            if (!es->e.at[i].overwrites && !early[es->e.at[i].to])
                other[es->e.at[i].from] = true;
        more = false;
        for (int i = 0; i < n; i++)
            if (!early[i] && !other[i] && only_scalars(b, &c->group.at[i]) &&
                !is_asked_for(b, &c->group.at[i]))
                early[i] = more = true;
    }
    return early;
}

/* Bytes of what the group reads that are not there in any case. */
static int64_t bytes_read(const Build *b, const Group *gr)
{
    int64_t bytes = 0;
    for (int i = 0; i < gr->operand.n; i++) {
        const GroupOperand *o = &gr->operand.at[i];
        Ref r = memory_of(b->g, b->c->stored, o->ref);
        if (o->out < 0 && b->c->group_of[r] >= 0)
            bytes += type_bytes(type_of(b->g, r));
    }
    return bytes;
}

/* By group: all that it computes is what rows are added to by an index, and takes more bytes than
 * what it is made of: it waits for those rows. They are the last part of a table's gradient. */
static bool *find_late(const Build *b, const Edges *es)
{
    const Clusters *c = b->c;
    int *readers = NEW_ARRAY(c->arena, int, c->group.n);
    bool *late = NEW_ARRAY(c->arena, bool, c->group.n);
    for (int i = 0; i < es->e.n; i++) /* numbers aside: they take no bytes that count */
        readers[es->e.at[i].from] +=
            !es->e.at[i].overwrites && !only_scalars(b, &c->group.at[es->e.at[i].to]);
    for (int i = 0; i < c->group.n; i++) {
        int from = base_of(b, &c->group.at[i]), outs = 0;
        if (from < 0 || readers[from] != 1)
            continue;
        const Group *gr = &c->group.at[from];
        for (int j = 0; j < gr->out.n; j++)
            outs += gr->out.at[j].all == NONE;
        Ref base = arg(b->g, c->group.at[i].anchor, 0);
        late[from] = gr->kind == GROUP_CONTRACT && outs == 1 &&
                     type_bytes(type_of(b->g, base)) > bytes_read(b, gr);
    }
    return late;
}

/* ---- the order -------------------------------------------------------------------- */

typedef struct Order {
    Clusters *c;
    int *wait;       /* by group: so many run before, and have not run */
    int *first, *to; /* by group f: to[first[f] .. first[f + 1]) wait for it */
    bool *done, *early, *late;
    bool guarded;  /* guarded groups may run */
    bool all_else; /* has run, and so late ones may */
} Order;

static Order order_init(Build *b, const Edges *es)
{
    Clusters *c = b->c;
    int n = c->group.n, *fill = NEW_ARRAY(c->arena, int, n);
    Order o = {.c = c, .early = find_early(b, es), .late = find_late(b, es)};
    o.wait = NEW_ARRAY(c->arena, int, n);
    o.first = NEW_ARRAY(c->arena, int, n + 1);
    o.to = NEW_ARRAY(c->arena, int, es->e.n);
    o.done = NEW_ARRAY(c->arena, bool, n);
    for (int i = 0; i < es->e.n; i++) {
        o.wait[es->e.at[i].to]++;
        o.first[es->e.at[i].from + 1]++;
    }
    for (int i = 0; i < n; i++)
        o.first[i + 1] += o.first[i];
    for (int i = 0; i < es->e.n; i++) {
        int f = es->e.at[i].from;
        o.to[o.first[f] + fill[f]++] = es->e.at[i].to;
    }
    return o;
}

static bool may_run(const Order *o, int i)
{
    return !o->done[i] && o->wait[i] == 0 && (o->guarded || !o->c->group.at[i].guarded) &&
           (o->all_else || !o->late[i]);
}

/* The group, and then those that it makes ready and that run early: in the order itself they
 * wait for their turn. */
static void run_group(Order *o, int at)
{
    Clusters *c = o->c;
    int next = c->order.n;
    vec_push(c->arena, &c->order, at);
    o->done[at] = true;
    for (; next < c->order.n; next++) {
        int i = c->order.at[next];
        for (int j = o->first[i]; j < o->first[i + 1]; j++) {
            o->wait[o->to[j]]--;
            if (!o->early[o->to[j]] || !may_run(o, o->to[j]))
                continue;
            vec_push(c->arena, &c->order, o->to[j]);
            o->done[o->to[j]] = true;
        }
    }
}

/* A group that does not run as long as another one does not that waits for it in turn: it
 * writes over what that one reads, and need not do so at once. */
static int in_the_way(const Clusters *c, const Edges *es, const bool *done)
{
    int *before = NEW_ARRAY(c->arena, int, c->group.n); /* an edge from one that is not done */
    int at = -1, found = -1;
    for (int i = 0; i < es->e.n; i++)
        if (!done[es->e.at[i].from] && !done[es->e.at[i].to])
            before[at = es->e.at[i].to] = i;
    assert(at >= 0);
    for (int i = 0; i < c->group.n; i++) /* back into the circle, and then around it */
        at = es->e.at[before[at]].from;
    for (int i = 0; i < c->group.n; i++, at = es->e.at[before[at]].from)
        if (es->e.at[before[at]].overwrites && !c->group.at[at].copies && (found < 0 || at < found))
            found = at;
    assert(found >= 0);
    return found;
}

/* Kahn's algorithm: unguarded groups first, and then the oldest, but for what runs early or late.
 */
int order_groups(Build *b)
{
    Clusters *c = b->c;
    Edges es = {0};
    edges_of(b, &es);
    numbers_first(b, &es);
    Order o = order_init(b, &es);
    c->order.n = 0;
    for (int guarded = 0; guarded < 2; guarded++) {
        o.guarded = guarded != 0;
        for (int i = 0; i < c->group.n; i++)
            if (o.early[i] && may_run(&o, i))
                run_group(&o, i);
        o.all_else = false;
        for (bool moved = true; moved || !o.all_else;) {
            o.all_else = !moved;
            moved = false;
            for (int i = 0; i < c->group.n; i++)
                if (may_run(&o, i)) {
                    run_group(&o, i);
                    moved = true;
                    o.all_else = false;
                }
        }
    }
    return c->order.n == c->group.n ? -1 : in_the_way(c, &es, o.done);
}

/* ---- results that can't go to their slots at once ------------------------------ */

void defer_group(Build *b, int at)
{
    Clusters *c = b->c;
    int n = c->group.at[at].out.n;
    for (int j = 0; j < n; j++) {
        GroupOut o = c->group.at[at].out.at[j];
        if (o.slot < 0)
            continue;
        copy_group(b, o.ref, o.slot, c->group.at[at].guarded);
        bool stored = false;
        for (int k = 0; k < j; k++)
            stored |= c->group.at[at].out.at[k].ref == o.ref;
        c->group.at[at].out.at[j].slot = stored ? -2 : -1;
        c->stored[o.ref] = true;
        c->group_of[o.ref] = at;
    }
    Group *gr = &c->group.at[at];
    int kept = 0;
    for (int j = 0; j < gr->out.n; j++)
        if (gr->out.at[j].slot != -2)
            gr->out.at[kept++] = gr->out.at[j];
    gr->out.n = kept;
}

static bool reads_slot(const Clusters *c, const GroupOperand *o, int32_t slot)
{
    Ref r = memory_of(c->g, c->stored, o->ref);
    return o->out < 0 && op_of(c->g, r) == OP_slot && attr(c->g, r, 0)->i == slot;
}

/* Its kernel writes elements of a slot before it has read them for the last time. */
static bool overwrites_own_reads(const Clusters *c, const Group *gr)
{
    for (int j = 0; gr->kernel != NULL && j < gr->operand.n; j++) {
        int32_t out = gr->operand.at[j].out, slot = out < 0 ? -1 : gr->out.at[out].slot;
        for (int i = 0; i < gr->operand.n && slot >= 0; i++)
            if (reads_slot(c, &gr->operand.at[i], slot) && !kernel_inplace(gr->kernel, i, j))
                return true;
    }
    return false;
}

bool defer_overwrites(Build *b)
{
    bool any = false;
    int n = b->c->group.n; /* copies are added */
    for (int i = 0; i < n; i++)
        if (overwrites_own_reads(b->c, &b->c->group.at[i])) {
            defer_group(b, i);
            any = true;
        }
    return any;
}
