/* Chunks and their reverse in one walk.
 *
 * A scan F over independent chunks is `lean`: its reverse B computes a chunk again, contractions
 * too. Where nothing that B reads depends on F, but for what F stacks for it, there is no reason
 * to wait: one scan M does for each chunk what F did and what B did, so that it is computed once,
 * and is still in the caches. So it is with a loss that is a mean over rows: the cotangent of each
 * row is known before the first row is.
 *
 * M goes the way of B, whose sums are a chain; F's steps are independent. No bit changes.
 * source: fused linear cross-entropy losses (Liger Kernel, 2024) for the gradient in the same walk;
 *         here it follows from the graph, whatever the loss is. */
#include "pass.h"

typedef struct Merge {
    Ctx *cx;
    const Graph *g;
    Graph *to;
    Ref f, b;
    Scan of_f, of_b;
    bool *after; /* by node: it depends on F */
    Ref *map;    /* by node: its copy, NONE: not yet made */
    Arena arena;
    VEC(Ref) pending;
    VEC(Ref) carry, sequence, same; /* operands of M, as nodes of g */
} Merge;

static bool is_chunks(const Graph *g, Ref r)
{
    return op_of(g, r) == OP_scan && scan_of(g, r).lean && scan_of(g, r).carries == 0 &&
           scan_of(g, r).count > 1;
}

static bool is_sequence(const Scan *is, int i)
{
    return i >= is->carries && i < is->carries + is->sequences;
}

/* Operand i of B is the slices of what F stacks. */
static bool is_stack_of_f(const Merge *m, int i)
{
    Ref x = arg(m->g, m->b, i);
    return is_sequence(&m->of_b, i) && op_of(m->g, x) == OP_pick && arg(m->g, x, 0) == m->f;
}

static void find_after(Merge *m)
{
    const Graph *g = m->g;
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        m->after[r] = r == m->f;
        for (int i = 0; i < node(g, r)->n_args; i++)
            m->after[r] = m->after[r] || m->after[arg(g, r, i)];
    }
}

/* B goes over the same chunks, and needs nothing of F but its own chunk's values. */
static bool can_merge(Merge *m, Ref b)
{
    const Graph *g = m->g;
    if (op_of(g, b) != OP_scan || scan_of(g, b).count != m->of_f.count)
        return false;
    m->b = b;
    m->of_b = scan_of(g, b);
    bool reads = false;
    for (int i = 0; i < node(g, b)->n_args; i++) {
        if (m->after[arg(g, b, i)] && !is_stack_of_f(m, i))
            return false;
        for (int j = 0; j < m->of_f.sequences && is_sequence(&m->of_b, i); j++)
            reads = reads || arg(g, b, i) == arg(g, m->f, j);
    }
    return reads;
}

/* ---- one body ----------------------------------------------------------------------- */

static int find_ref(const Ref *at, int n, Ref r)
{
    for (int i = 0; i < n; i++)
        if (at[i] == r)
            return i;
    return -1;
}

static void list_operands(Merge *m)
{
    const Graph *g = m->g;
    m->carry.n = m->sequence.n = m->same.n = 0; /* those of the B before, which did not serve */
    for (int i = 0; i < node(g, m->b)->n_args; i++) {
        Ref x = arg(g, m->b, i);
        if (i < m->of_b.carries)
            vec_push(&m->arena, &m->carry, x);
        else if (!is_sequence(&m->of_b, i))
            vec_push(&m->arena, &m->same, x);
        else if (!is_stack_of_f(m, i))
            vec_push(&m->arena, &m->sequence, x);
    }
    for (int i = 0; i < node(g, m->f)->n_args; i++) {
        Ref x = arg(g, m->f, i);
        bool slices = is_sequence(&m->of_f, i);
        if (slices && find_ref(m->sequence.at, m->sequence.n, x) < 0)
            vec_push(&m->arena, &m->sequence, x);
        else if (!slices && find_ref(m->same.at, m->same.n, x) < 0)
            vec_push(&m->arena, &m->same, x);
    }
}

/* Where an operand of one of the two scans is among those of M. */
static int place_of(const Merge *m, const Scan *is, int i, Ref x)
{
    if (i < is->carries)
        return i;
    if (is_sequence(is, i))
        return m->carry.n + find_ref(m->sequence.at, m->sequence.n, x);
    return m->carry.n + m->sequence.n + find_ref(m->same.at, m->same.n, x);
}

/* in[i]: an argument of the new body for each operand of `scan`. */
static Ref *body_args(Merge *m, Graph *body, Ref scan, const Scan *is)
{
    const Graph *g = m->g;
    Ref *in = NEW_ARRAY(&m->arena, Ref, node(g, scan)->n_args);
    for (int i = 0; i < node(g, scan)->n_args; i++) {
        Type t = *type_of(g, arg(g, scan, i));
        if (scan == m->b && is_stack_of_f(m, i))
            continue;
        if (is_sequence(is, i)) {
            t.rank--;
            for (int a = 0; a < t.rank; a++)
                t.dim[a] = t.dim[a + 1];
        }
        in[i] = g_body_arg(body, place_of(m, is, i, arg(g, scan, i)), t);
    }
    return in;
}

/* What `scan` does in a step, appended to the body; gives its results there. */
static Ref *copy_steps(Merge *m, Graph *body, Ref scan, const Ref *in)
{
    const Graph *from = attr(m->g, scan, SCAN_BODY)->body;
    Ref *map = NEW_ARRAY(&m->arena, Ref, from->node.n);
    for (Ref r = 1; r < (Ref)from->node.n; r++)
        map[r] = op_of(from, r) == OP_arg ? in[attr(from, r, 0)->i]
                                          : graph_copy_node(body, from, r, map);
    Ref *result = NEW_ARRAY(&m->arena, Ref, from->root.n);
    for (int i = 0; i < from->root.n; i++)
        result[i] = map[from->root.at[i].ref];
    return result;
}

static Graph *merge_first(Ctx *cx, const Graph *g, Graph *outer);

/* Chunks of chunks are merged likewise. Results: those of B, then those of F. */
static Graph *merged_body(Merge *m)
{
    const Graph *g = m->g;
    Graph *body = g_body(m->to);
    Ref *in = body_args(m, body, m->f, &m->of_f);
    Ref *of_f = copy_steps(m, body, m->f, in);
    in = body_args(m, body, m->b, &m->of_b);
    for (int i = 0; i < node(g, m->b)->n_args; i++)
        if (is_stack_of_f(m, i))
            in[i] = of_f[attr(g, arg(g, m->b, i), 0)->i];
    Ref *of_b = copy_steps(m, body, m->b, in);
    for (int i = 0; i < tuple_size(g, m->b); i++)
        graph_root(body, ROOT_RESULT, NULL, of_b[i], -1, -1);
    for (int i = 0; i < tuple_size(g, m->f); i++)
        graph_root(body, ROOT_RESULT, NULL, of_f[i], -1, -1);
    simplify(m->cx, body);
    for (Graph *next; (next = merge_first(m->cx, body, m->to)) != NULL;)
        body = next;
    return body;
}

/* ---- the graph around it -------------------------------------------------------------- */

static void copy_one(Merge *m, Ref r)
{
    const Graph *g = m->g;
    Ref from = op_of(g, r) == OP_pick ? arg(g, r, 0) : NONE;
    if (from != NONE && from == m->f) {
        m->to->origin = node(g, r)->origin;
        m->map[r] = g_pick(m->to, m->map[from], tuple_size(g, m->b) + (int)attr(g, r, 0)->i);
    } else {
        m->map[r] = graph_copy_node(m->to, g, r, m->map);
    }
}

/* Operands first. */
static void copy_with_operands(Merge *m, Ref wanted)
{
    vec_push(&m->arena, &m->pending, wanted);
    while (m->pending.n > 0) {
        Ref r = m->pending.at[m->pending.n - 1];
        int n = m->pending.n;
        for (int i = 0; m->map[r] == NONE && i < node(m->g, r)->n_args; i++)
            if (m->map[arg(m->g, r, i)] == NONE)
                vec_push(&m->arena, &m->pending, arg(m->g, r, i));
        if (m->pending.n > n)
            continue;
        if (m->map[r] == NONE)
            copy_one(m, r);
        m->pending.n--;
    }
}

static void build_merged(Merge *m)
{
    list_operands(m);
    int n = 0, all = m->carry.n + m->sequence.n + m->same.n;
    Ref *args = NEW_ARRAY(&m->arena, Ref, all);
    for (int i = 0; i < all; i++) {
        Ref x = i < m->carry.n                   ? m->carry.at[i]
                : i < m->carry.n + m->sequence.n ? m->sequence.at[i - m->carry.n]
                                                 : m->same.at[i - m->carry.n - m->sequence.n];
        copy_with_operands(m, x);
        args[n++] = m->map[x];
    }
    m->to->origin = node(m->g, m->f)->origin;
    Scan is = m->of_b;
    is.sequences = m->sequence.n;
    is.lean = true; /* as F is: chunks */
    m->map[m->f] = m->map[m->b] = g_scan(m->to, merged_body(m), args, n, is);
}

static void copy_graph(Merge *m)
{
    const Graph *g = m->g;
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        if (r == g->n_primal)
            m->to->n_primal = (Ref)m->to->node.n;
        if (r == m->f)
            build_merged(m);
        else if (m->map[r] == NONE)
            copy_with_operands(m, r);
    }
    graph_copy_roots(m->to, g, m->map);
}

/* Of this graph and of the bodies of its scans. */
static int count_contractions(const Graph *g)
{
    int n = 0;
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        n += op_of(g, r) == OP_scan ? count_contractions(attr(g, r, SCAN_BODY)->body)
                                    : optab[op_of(g, r)]->kind == OP_CONTRACT;
    return n;
}

/* NULL: it would not save a contraction. What is in `outer` is freed with it. */
static Graph *merge(Merge *m, Graph *outer)
{
    m->to = outer == NULL ? graph_new(m->g->cx, m->g->name) : g_body(outer);
    m->map = NEW_ARRAY(&m->arena, Ref, m->g->node.n);
    copy_graph(m);
    simplify(m->cx, m->to);
    if (count_contractions(m->to) < count_contractions(m->g))
        return m->to;
    if (outer == NULL)
        graph_free(m->to);
    return NULL;
}

/* A copy of g in which two that can be are merged, a body of `outer` where that is not
 * NULL. In a joint graph B is of the reverse pass. */
static Graph *merge_first(Ctx *cx, const Graph *g, Graph *outer)
{
    Graph *found = NULL;
    Ref end = (Ref)g->node.n, last = outer == NULL ? g->n_primal : end;
    for (Ref f = last - 1; f > 0 && found == NULL; f--) { /* the first B is the last F's reverse */
        if (!is_chunks(g, f))
            continue;
        Merge m = {.cx = cx, .g = g, .f = f, .of_f = scan_of(g, f)};
        m.after = NEW_ARRAY(&m.arena, bool, g->node.n);
        find_after(&m);
        for (Ref b = outer == NULL ? last : f + 1; b < end && found == NULL; b++)
            if (can_merge(&m, b))
                found = merge(&m, outer);
        arena_free(&m.arena);
    }
    return found;
}

Graph *merge_chunks(Ctx *cx, const Graph *g)
{
    Graph *merged = NULL;
    for (Graph *next; (next = merge_first(cx, merged == NULL ? g : merged, NULL)) != NULL;) {
        if (merged != NULL)
            graph_free(merged);
        merged = next;
    }
    return merged;
}
