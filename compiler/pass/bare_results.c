/* What a scan's body hands on of a scan within it, as that one gives it.
 *
 * A reshaped result of the inner scan is a copy of it. If the result of the body is what the inner
 * scan gives, the steps of that write it straight to what the outer scan stacks
 * (body_writes_direct()), and what is picked of the outer one is reshaped, which takes nothing. */
#include "pass.h"

/* What r is a reshape of, if that is what a scan gives and can be stacked; else r. */
static Ref bare(const Graph *g, Ref r)
{
    Ref x = r;
    while (op_of(g, x) == OP_reshape)
        x = arg(g, x, 0);
    return op_of(g, x) == OP_pick && rank(g, x) < MAX_RANK ? x : r;
}

/* By root of the body: bare ones of what is stacked. */
static Ref bare_root(const Graph *body, int root, int64_t carries)
{
    int64_t result = 0;
    for (int i = 0; i < root; i++)
        result += body->root.at[i].kind == ROOT_RESULT;
    const Root *r = &body->root.at[root];
    return r->kind == ROOT_RESULT && result >= carries ? bare(body, r->ref) : r->ref;
}

static bool any_reshaped(const Graph *g)
{
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        if (op_of(g, r) != OP_scan)
            continue;
        const Graph *body = attr(g, r, SCAN_BODY)->body;
        for (int i = 0; i < body->root.n; i++)
            if (bare_root(body, i, scan_of(g, r).carries) != body->root.at[i].ref)
                return true;
        if (any_reshaped(body))
            return true;
    }
    return false;
}

static void copy_into(Graph *to, const Graph *g, Arena *a);

static Ref copy_scan(Graph *to, const Graph *g, Ref scan, const Ref *map, Arena *a)
{
    const Scan is = scan_of(g, scan);
    int n = node(g, scan)->n_args;
    Ref *args = NEW_ARRAY(a, Ref, n);
    for (int i = 0; i < n; i++)
        args[i] = map[arg(g, scan, i)];
    Graph *body = g_body(to);
    copy_into(body, attr(g, scan, SCAN_BODY)->body, a);
    for (int i = 0; i < body->root.n; i++)
        body->root.at[i].ref = bare_root(body, i, is.carries);
    to->origin = node(g, scan)->origin;
    return g_scan(to, body, args, n, is);
}

static Ref copy_pick(Graph *to, const Graph *g, Ref pick, const Ref *map)
{
    const Type *t = type_of(g, pick);
    Ref r = graph_copy_node(to, g, pick, map);
    return g_reshape(to, r, t->rank, t->dim);
}

static void copy_into(Graph *to, const Graph *g, Arena *a)
{
    Ref *map = NEW_ARRAY(a, Ref, g->node.n);
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        if (r == g->n_primal)
            to->n_primal = (Ref)to->node.n;
        if (op_of(g, r) == OP_scan)
            map[r] = copy_scan(to, g, r, map, a);
        else if (op_of(g, r) == OP_pick)
            map[r] = copy_pick(to, g, r, map);
        else
            map[r] = graph_copy_node(to, g, r, map);
    }
    graph_copy_roots(to, g, map);
}

Graph *bare_results(const Graph *g)
{
    if (!any_reshaped(g))
        return NULL;
    Arena scratch = {0};
    Graph *to = graph_new(g->cx, g->name);
    copy_into(to, g, &scratch);
    arena_free(&scratch);
    return to;
}
