/* Scans within scans, so that the reverse needs fewer bytes: what n steps of a scan keep is
 * kept for one run of k steps at a time, and computed again from the carries at its beginning
 * (Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016; with more levels: Griewank,
 * Walther, Revolve, 2000). One level takes two forward passes and about 2 sqrt(n) of what
 * n takes; each further level takes another forward pass.
 *
 * The steps and their order are those of the scan, and the reverse adds up cotangents in one
 * chain over all runs: no bit changes. So a run has a length that divides the number of steps,
 * and a body whose own sums could take another order is left alone. */
#include "pass.h"

#include <math.h>

/* A scan as it was, and its body. */
typedef struct Whole {
    Scan is;
    const Graph *body;
    int n_args, n_results;
} Whole;

/* The divisor of n that is nearest to n^(1/parts), by ratio; 1 < it < n, or 1. */
static int64_t outer_count(int64_t n, int parts)
{
    double want = pow((double)n, 1.0 / parts), best = INFINITY;
    int64_t count = 1;
    for (int64_t d = 2; d <= n / d; d++) {
        const int64_t pair[] = {d, n / d};
        for (int i = 0; i < 2 && n % d == 0; i++) {
            double off = fabs(log((double)pair[i] / want));
            if (off < best - 1e-9) { /* of two that are as near the smaller */
                best = off;
                count = pair[i];
            }
        }
    }
    return count;
}

static bool is_sequence(const Whole *w, int i)
{
    return i >= w->is.carries && i < w->is.carries + w->is.sequences;
}

/* x[n, ...] -> x[count, n / count, ...]. */
static Ref in_runs(Graph *g, Ref x, int64_t count)
{
    Type t = *type_of(g, x);
    int64_t dim[MAX_RANK];
    dim[0] = count;
    dim[1] = t.dim[0] / count;
    for (int a = 1; a < t.rank; a++)
        dim[a + 1] = t.dim[a];
    return g_reshape(g, x, t.rank + 1, dim);
}

/* And back. */
static Ref in_one(Graph *g, Ref x)
{
    Type t = *type_of(g, x);
    int64_t dim[MAX_RANK];
    dim[0] = t.dim[0] * t.dim[1];
    for (int a = 2; a < t.rank; a++)
        dim[a - 1] = t.dim[a];
    return g_reshape(g, x, t.rank - 1, dim);
}

static void build_scan(Graph *g, const Whole *w, const Ref *arg, Scan is, int levels, Ref *result,
                       Arena *a);

/* A body that is a scan over one run; it has the same results. */
static Graph *body_of_runs(Graph *g, const Whole *w, const Ref *arg, Scan run, int levels, Arena *a)
{
    Graph *body = g_body(g);
    Ref *inner = NEW_ARRAY(a, Ref, w->n_args), *result = NEW_ARRAY(a, Ref, w->n_results);
    for (int i = 0; i < w->n_args; i++) {
        Type t = *type_of(g, arg[i]);
        for (int d = 0; is_sequence(w, i) && d + 1 < t.rank; d++)
            t.dim[d] = t.dim[d + 1];
        t.rank -= is_sequence(w, i);
        inner[i] = g_body_arg(body, i, t);
    }
    build_scan(body, w, inner, run, levels, result, a);
    for (int i = 0; i < w->n_results; i++)
        graph_root(body, ROOT_RESULT, NULL, result[i], -1, -1);
    return body;
}

/* The scan with so many levels around it, as far as its count can be divided. */
static void build_scan(Graph *g, const Whole *w, const Ref *arg, Scan is, int levels, Ref *result,
                       Arena *a)
{
    int64_t count = levels > 0 ? outer_count(is.count, levels + 1) : 1;
    Ref *args = NEW_ARRAY(a, Ref, w->n_args), scan;
    for (int i = 0; i < w->n_args; i++)
        args[i] = count > 1 && is_sequence(w, i) ? in_runs(g, arg[i], count) : arg[i];
    if (count > 1) {
        Scan run = is;
        run.count = is.count / count;
        is.count = count;
        is.lean = true;
        Graph *body = body_of_runs(g, w, args, run, levels - 1, a);
        scan = g_scan(g, body, args, w->n_args, is);
    } else {
        scan = g_scan(g, g_copy_body(g, w->body), args, w->n_args, is);
    }
    for (int i = 0; i < w->n_results; i++) {
        result[i] = g_pick(g, scan, i);
        if (count > 1 && i >= w->is.carries)
            result[i] = in_one(g, result[i]);
    }
}

/* A reduction of a reduction adds up in one walk or in two, as the inner one is stored or
 * not, which is another order; and what a body stores depends on what its reverse reads. */
bool has_fixed_order(const Graph *body)
{
    for (Ref r = 1; r < (Ref)body->node.n; r++) {
        OpId op = op_of(body, r);
        if (op == OP_scan && !has_fixed_order(attr(body, r, SCAN_BODY)->body))
            return false;
        if (optab[op]->kind == OP_REDUCE && op_of(body, arg(body, r, 0)) == op)
            return false;
    }
    return true;
}

/* Room for more axes, in what it reads and what it stacks. */
static bool can_split(const Graph *g, Ref r, int levels)
{
    Scan is = scan_of(g, r);
    const Graph *body = attr(g, r, SCAN_BODY)->body;
    /* what `keep` asks for is stacked over all steps, which runs would not do */
    if (!has_fixed_order(body) || g_kept_in(body) != NULL)
        return false;
    for (int i = is.carries; i < is.carries + is.sequences; i++)
        if (type_of(g, arg(g, r, i))->rank + levels > MAX_RANK)
            return false;
    for (int i = is.carries; i < tuple_size(g, r); i++)
        if (tuple_type(g, r, i).rank + levels > MAX_RANK)
            return false;
    return !is.lean && outer_count(is.count, 2) > 1;
}

/* How many levels this node can have. */
static int levels_of(const Graph *g, Ref r, int levels, int deepest)
{
    if (op_of(g, r) != OP_scan)
        return 0;
    int room = deepest - 1 - g_loop_depth(attr(g, r, SCAN_BODY)->body, NULL);
    for (levels = levels < room ? levels : room; levels > 0; levels--)
        if (can_split(g, r, levels))
            return levels;
    return 0;
}

static Ref split(Graph *to, const Graph *g, Ref r, const Ref *map, int levels, Arena *a)
{
    Whole w = {.is = scan_of(g, r), .body = attr(g, r, SCAN_BODY)->body};
    w.n_args = node(g, r)->n_args;
    w.n_results = tuple_size(g, r);
    Ref *args = NEW_ARRAY(a, Ref, w.n_args), *result = NEW_ARRAY(a, Ref, w.n_results);
    for (int i = 0; i < w.n_args; i++)
        args[i] = map[arg(g, r, i)];
    build_scan(to, &w, args, w.is, levels, result, a);
    return g_tuple(to, result, w.n_results);
}

bool can_split_scans(const Graph *g, int deepest)
{
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        if (levels_of(g, r, 1, deepest) > 0)
            return true;
    return false;
}

Graph *split_scans(const Graph *g, int levels, int deepest)
{
    if (levels < 1 || !can_split_scans(g, deepest))
        return NULL;
    Arena scratch = {0};
    Graph *to = graph_new(g->cx, g->name);
    Ref *map = NEW_ARRAY(&scratch, Ref, g->node.n);
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        to->origin = node(g, r)->origin;
        int n = levels_of(g, r, levels, deepest);
        map[r] = n > 0 ? split(to, g, r, map, n, &scratch) : graph_copy_node(to, g, r, map);
    }
    graph_copy_roots(to, g, map);
    arena_free(&scratch);
    return to;
}
