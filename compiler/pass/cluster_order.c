/* In which order groups run: what is read is written before, and what is overwritten has
 * been read. */
#include "cluster_build.h"

#include <assert.h>

typedef struct Edge {
    int from, to;
} Edge;

typedef struct Edges {
    VEC(Edge) e;
} Edges;

static void add_edge(Build *b, Edges *es, int from, int to)
{
    Edge e = {from, to};
    if (from >= 0 && to >= 0 && from != to)
        vec_push(b->c->arena, &es->e, e);
}

/* Group `reader` reads r: after the group that computes it, before the one that
 * overwrites it (`writer`, by slot). */
static void add_read(Build *b, Edges *es, const int *writer, Ref r, int reader)
{
    add_edge(b, es, b->c->group_of[r], reader);
    if (op_of(b->g, r) == OP_slot)
        add_edge(b, es, reader, writer[attr(b->g, r, 0)->i]);
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

/* Kahn's algorithm; among what is ready, unguarded groups first, then the oldest. */
bool order_groups(Build *b, bool **finished)
{
    Clusters *c = b->c;
    Edges es = {0};
    edges_of(b, &es);
    int n = c->group.n;
    int *wait = NEW_ARRAY(c->arena, int, n), *first = NEW_ARRAY(c->arena, int, n + 1);
    int *to = NEW_ARRAY(c->arena, int, es.e.n);
    for (int i = 0; i < es.e.n; i++) {
        wait[es.e.at[i].to]++;
        first[es.e.at[i].from + 1]++;
    }
    for (int i = 0; i < n; i++)
        first[i + 1] += first[i];
    int *fill = NEW_ARRAY(c->arena, int, n);
    for (int i = 0; i < es.e.n; i++) {
        int f = es.e.at[i].from;
        to[first[f] + fill[f]++] = es.e.at[i].to;
    }
    bool *done = *finished = NEW_ARRAY(c->arena, bool, n);
    c->order.n = 0;
    for (int guarded = 0; guarded < 2; guarded++) {
        bool moved = true;
        while (moved) {
            moved = false;
            for (int i = 0; i < n; i++) {
                if (done[i] || wait[i] > 0 || (c->group.at[i].guarded && !guarded))
                    continue;
                done[i] = true;
                moved = true;
                vec_push(c->arena, &c->order, i);
                for (int j = first[i]; j < first[i + 1]; j++)
                    wait[to[j]]--;
            }
        }
    }
    return c->order.n == n;
}

/* ---- results that can't go to their slots at once ------------------------------ */

/* The group keeps its results apart, and copies put them into their slots. */
static void defer_group(Build *b, int at)
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

void defer_slots(Build *b, const bool *done)
{
    Clusters *c = b->c;
    int at = -1;
    for (int i = 0; i < c->group.n && at < 0; i++)
        for (int j = 0; j < c->group.at[i].out.n && !done[i]; j++)
            if (c->group.at[i].out.at[j].slot >= 0 && !c->group.at[i].copies)
                at = i;
    assert(at >= 0);
    defer_group(b, at);
}
