/* Micro-batches: the graph of one becomes the body of a scan over all of them. Its inputs
 * are slices of larger ones; loss, gradients and metrics are summed by carries and
 * divided at the end; state goes from one micro-batch to the next.
 *
 * The rows of a partial batch end within some micro-batch. It counts by the share of its
 * rows that are there, and the ones behind it count nothing and leave state as it is. A
 * share of 1 multiplies, and whole batches divide, without a rounding: they cost no bits. */
#include "eval.h"

#include <string.h>

/* What a body reads that is given from around it, by argument number. */
typedef struct Given {
    OpId op; /* OP_input or OP_slot */
    int32_t index;
    Type type;
    Ref outer; /* of the graph around */
} Given;

typedef struct Accumulate {
    Model *m;
    Graph *g, *outer; /* one micro-batch; the step */
    Arena *arena;
    int64_t n;       /* micro-batches; `split` of them are a batch */
    bool partial;    /* rows are counted */
    VEC(Ref) across; /* by number: the averages, in `outer` */
} Accumulate;

typedef struct Givens {
    VEC(Given) at;
} Givens;

static bool is_source(const Graph *g, Ref r)
{
    return op_of(g, r) == OP_input || op_of(g, r) == OP_slot;
}

static int32_t index_of(const Graph *g, Ref r)
{
    return (int32_t)attr(g, r, 0)->i;
}

static int find_source(const Givens *s, OpId op, int32_t index)
{
    for (int i = 0; i < s->at.n; i++)
        if (s->at.at[i].op == op && s->at.at[i].index == index)
            return i;
    return -1;
}

static bool is_sliced(const Accumulate *a, OpId op, int32_t index)
{
    const Pinned *p = &a->m->pinned;
    if (op == OP_slot) /* draws differ from micro-batch to micro-batch */
        return index == p->step_counter || (a->partial && index == p->rows);
    return index < p->input.n && p->input.at[index].batch_axis == 0;
}

/* ---- what is given ------------------------------------------------------- */

/* [n * batch, ...] as n slices. */
static Ref sliced_input(Accumulate *a, int32_t index, const Type *t)
{
    Type all = *t;
    all.dim[0] *= a->n;
    Ref x = g_input(a->outer, index, all);
    int64_t dim[MAX_RANK + 1] = {a->n};
    memcpy(dim + 1, t->dim, sizeof *dim * (size_t)t->rank);
    return g_reshape(a->outer, x, t->rank + 1, dim);
}

/* step * n + 0, 1, ... */
static Ref draw_steps(Accumulate *a, int32_t slot)
{
    Graph *o = a->outer;
    Type t = type_make(I64, 1, &a->n);
    Ref step = g_slot(o, slot, type_scalar(I64));
    Ref times = g_const_int(o, I64, a->n);
    Ref first = g_mul(o, step, times);
    Ref base = g_broadcast(o, first, 1, &a->n);
    Ref which = g_iota(o, t, 0);
    return g_add(o, base, which);
}

static Ref limited(Graph *g, OpId op, Ref x, int64_t limit)
{
    Ref to = g_const_int(g, I64, limit);
    to = g_broadcast_like(g, to, x);
    return g_binary(g, op, x, to);
}

/* Rows of each micro-batch, from `least` to all; of the step's rows, those that the
 * micro-batches before have not taken. */
static Ref rows_each(Accumulate *a, int64_t least)
{
    Graph *o = a->outer;
    Ref rows = g_slot(o, a->m->pinned.rows, type_scalar(I64));
    rows = g_broadcast(o, rows, 1, &a->n);
    Ref which = g_iota(o, type_make(I64, 1, &a->n), 0);
    Ref batch = g_const_int(o, I64, a->m->batch);
    batch = g_broadcast(o, batch, 1, &a->n);
    Ref before = g_mul(o, which, batch);
    Ref left = g_sub(o, rows, before);
    left = limited(o, OP_min, left, a->m->batch);
    return limited(o, OP_max, left, least);
}

/* rows / batch, in double */
static Ref in_batches(Accumulate *a, Ref rows)
{
    Graph *o = a->outer;
    rows = g_cast(o, F64, rows);
    Ref batch = g_const(o, F64, (double)a->m->batch);
    batch = g_broadcast_like(o, batch, rows);
    return g_div(o, rows, batch);
}

static Ref given(Accumulate *a, const Given *s)
{
    if (s->op == OP_input && s->index > ACROSS_INPUT - a->across.n)
        return a->across.at[ACROSS_INPUT - s->index];
    if (!is_sliced(a, s->op, s->index))
        return s->op == OP_input ? g_input(a->outer, s->index, s->type)
                                 : g_slot(a->outer, s->index, s->type);
    if (s->op == OP_input)
        return sliced_input(a, s->index, &s->type);
    if (s->index == a->m->pinned.step_counter)
        return draw_steps(a, s->index);
    return rows_each(a, 1); /* never a mean over nothing: what comes of it is left out */
}

/* Adds what the nodes of `need` (NULL: all) read: slices or not. */
static void add_sources(Accumulate *a, const bool *need, bool sliced, Givens *to)
{
    for (Ref r = 1; r < (Ref)a->g->node.n; r++) {
        if ((need != NULL && !need[r]) || !is_source(a->g, r))
            continue;
        Given s = {op_of(a->g, r), index_of(a->g, r), *type_of(a->g, r), NONE};
        if (is_sliced(a, s.op, s.index) != sliced || find_source(to, s.op, s.index) >= 0)
            continue;
        s.outer = given(a, &s);
        vec_push(a->arena, &to->at, s);
    }
}

/* The share of its rows that each micro-batch has, as one more sequence.
 * gives: its argument number; -1 where rows are not counted. */
static int add_share(Accumulate *a, Givens *to)
{
    if (!a->partial)
        return -1;
    Ref rows = rows_each(a, 0);
    Given s = {.op = OP_NONE, .index = -1, .type = type_scalar(F64)};
    s.outer = in_batches(a, rows);
    vec_push(a->arena, &to->at, s);
    return to->at.n - 1;
}

static Ref *outer_refs(Accumulate *a, const Givens *s)
{
    Ref *refs = NEW_ARRAY(a->arena, Ref, s->at.n);
    for (int i = 0; i < s->at.n; i++)
        refs[i] = s->at.at[i].outer;
    return refs;
}

/* ---- across: a scan that comes first ------------------------------------- */

static bool *needed_for(Accumulate *a, Ref r)
{
    bool *need = NEW_ARRAY(a->arena, bool, a->g->node.n);
    need[r] = true;
    for (; r > NONE; r--)
        for (int i = 0; need[r] && i < node(a->g, r)->n_args; i++)
            need[arg(a->g, r, i)] = true;
    return need;
}

static Ref mean_of(Accumulate *a, Ref sum)
{
    DType t = type_of(a->outer, sum)->dtype;
    Ref by = NONE;
    if (a->partial) {
        by = g_slot(a->outer, a->m->pinned.rows, type_scalar(I64));
        by = in_batches(a, by);
        by = g_cast(a->outer, t, by);
    } else {
        by = g_const(a->outer, t, (double)a->n);
    }
    by = g_broadcast_like(a->outer, by, sum);
    return g_div(a->outer, sum, by);
}

/* ---- in the body: what a micro-batch counts ------------------------------ */

/* `now` where the micro-batch has rows, else `before`. */
static Ref if_any(Graph *g, int share, Ref now, Ref before)
{
    if (share < 0)
        return now;
    Ref part = g_body_arg(g, share, type_scalar(F64));
    Ref zero = g_const(g, F64, 0);
    Ref any = g_binary(g, OP_lt, zero, part);
    any = g_broadcast_like(g, any, now);
    return g_where(g, any, now, before);
}

static Ref times_share(Graph *g, int share, Ref x)
{
    if (share < 0)
        return x;
    Ref part = g_body_arg(g, share, type_scalar(F64));
    part = g_cast(g, type_of(g, x)->dtype, part);
    part = g_broadcast_like(g, part, x);
    return g_mul(g, x, part);
}

static Ref summed(Graph *g, int share, Ref sum, Ref x)
{
    x = times_share(g, share, x);
    Ref next = g_add(g, sum, x);
    return if_any(g, share, next, sum);
}

static Ref average(Accumulate *a, Ref value)
{
    bool *need = needed_for(a, value);
    Graph *body = g_body(a->outer);
    Ref *map = NEW_ARRAY(a->arena, Ref, a->g->node.n);
    Type t = *type_of(a->g, value);
    Givens s = {{0}};
    Ref zero = g_const(a->outer, t.dtype, 0);
    vec_push(a->arena, &s.at, ((Given){.op = OP_NONE, .type = t, .outer = zero}));
    add_sources(a, need, true, &s);
    int share = add_share(a, &s), n_sequences = s.at.n - 1;
    add_sources(a, need, false, &s);
    Ref sum = g_body_arg(body, 0, t);
    for (Ref r = 1; r <= value; r++) {
        if (!need[r])
            continue;
        if (is_source(a->g, r))
            map[r] = g_body_arg(body, find_source(&s, op_of(a->g, r), index_of(a->g, r)),
                                *type_of(a->g, r));
        else
            map[r] = graph_copy_node(body, a->g, r, map);
    }
    Ref next = summed(body, share, sum, map[value]);
    graph_root(body, ROOT_RESULT, ACROSS_ROOT, next, -1, -1);
    Ref scan = g_scan(a->outer, body, outer_refs(a, &s), s.at.n,
                      (Scan){.carries = 1, .sequences = n_sequences, .count = a->n});
    Ref all = g_pick(a->outer, scan, 0);
    return mean_of(a, all);
}

static void averages(Accumulate *a)
{
    for (int i = 0; i < a->g->root.n; i++) {
        const Root r = a->g->root.at[i];
        if (r.kind == ROOT_OTHER && r.name != NULL && strcmp(r.name, ACROSS_ROOT) == 0) {
            Ref mean = average(a, r.ref);
            vec_push(a->arena, &a->across, mean);
        }
    }
}

/* ---- the step ------------------------------------------------------------ */

static bool is_batch_gradient(const Accumulate *a, const Root *r)
{
    return r->kind == ROOT_GRADIENT && r->input >= 0 &&
           a->m->pinned.input.at[r->input].batch_axis == 0;
}

static bool is_summed(const Accumulate *a, const Root *r)
{
    return r->kind == ROOT_LOSS || r->kind == ROOT_METRIC ||
           (r->kind == ROOT_GRADIENT && !is_batch_gradient(a, r));
}

static bool is_stacked(const Accumulate *a, const Root *r)
{
    return r->kind == ROOT_OUTPUT || is_batch_gradient(a, r);
}

/* Carries: a sum for each root that has one, and state. */
static Givens list_carries(Accumulate *a)
{
    Givens s = {{0}};
    for (int i = 0; i < a->g->root.n; i++) {
        const Root *r = &a->g->root.at[i];
        Given c = {.op = OP_NONE, .index = r->slot, .type = *type_of(a->g, r->ref)};
        if (is_summed(a, r)) {
            c.outer = g_zeros(a->outer, &c.type);
        } else if (r->kind == ROOT_ASSIGN) {
            c.op = OP_slot;
            c.outer = g_slot(a->outer, r->slot, c.type);
        } else {
            continue;
        }
        vec_push(a->arena, &s.at, c);
    }
    return s;
}

/* Inputs and slots of the micro-batch become arguments, in place. */
static void become_arguments(Accumulate *a, const Givens *s)
{
    for (Ref r = 1; r < (Ref)a->g->node.n; r++) {
        if (!is_source(a->g, r))
            continue;
        Node *n = &a->g->node.at[r];
        Attr *attrs = NEW_ARRAY(&a->g->arena, Attr, 3);
        memcpy(attrs, n->attr, sizeof *attrs * 3);
        attrs[0].i = find_source(s, n->op, index_of(a->g, r));
        n->attr = attrs;
        n->op = OP_arg;
    }
}

static Ref stacked_result(Accumulate *a, const Root *r, int share)
{
    if (share < 0 || r->kind == ROOT_OUTPUT)
        return r->ref;
    Ref x = times_share(a->g, share, r->ref), zero = g_zeros(a->g, type_of(a->g, r->ref));
    return if_any(a->g, share, x, zero);
}

/* New carries, then what is stacked; the roots of the micro-batch are no roots any more. */
static void body_results(Accumulate *a, const Root *root, int n_roots, int share)
{
    Graph *g = a->g;
    g->root.n = 0;
    int carry = 0;
    for (int i = 0; i < n_roots; i++) {
        const Root *r = &root[i];
        if (!is_summed(a, r) && r->kind != ROOT_ASSIGN)
            continue;
        Ref before = g_body_arg(g, carry, *type_of(g, r->ref));
        Ref now =
            is_summed(a, r) ? summed(g, share, before, r->ref) : if_any(g, share, r->ref, before);
        graph_root(g, ROOT_RESULT, r->name, now, -1, -1);
        carry++;
    }
    for (int i = 0; i < n_roots; i++)
        if (is_stacked(a, &root[i])) {
            Ref x = stacked_result(a, &root[i], share);
            graph_root(g, ROOT_RESULT, root[i].name, x, -1, -1);
        }
}

/* [n, batch, ...] -> [n * batch, ...]. Of a split batch, in which everything is by rows, other
 * axes are joined to what the whole batch has: [n, per * rows, ...] -> [n / split, per * batch,
 * ...], of one batch without the first. */
static Ref unstacked(Accumulate *a, Ref x)
{
    Graph *o = a->outer;
    int64_t split = a->m->split, to[MAX_RANK];
    if (rank(o, x) >= 2 && dim(o, x, 1) == a->m->batch)
        return g_merge_axes(o, x, 0);
    if (split == 1)
        return x;
    int first = a->n == split ? 0 : 1, n = rank(o, x) - 1 + first;
    memcpy(to + first, &type_of(o, x)->dim[1], sizeof *to * (size_t)(n - first));
    to[0] = a->n / split;
    to[first] = split * dim(o, x, 1);
    return g_reshape(o, x, n, to);
}

static void outer_roots(Accumulate *a, Ref scan, int n_carries, const Root *root, int n_roots)
{
    int carry = 0, stacked = n_carries;
    for (int i = 0; i < n_roots; i++) {
        const Root *r = &root[i];
        Ref x;
        if (is_stacked(a, r)) {
            x = g_pick(a->outer, scan, stacked++);
            x = unstacked(a, x);
            x = r->kind == ROOT_OUTPUT ? x : mean_of(a, x);
        } else if (is_summed(a, r) || r->kind == ROOT_ASSIGN) {
            x = g_pick(a->outer, scan, carry++);
            x = r->kind == ROOT_ASSIGN ? x : mean_of(a, x);
        } else {
            continue;
        }
        graph_root(a->outer, r->kind, r->name, x, r->slot, r->input);
        a->outer->root.at[a->outer->root.n - 1].guarded = r->guarded;
    }
}

static void run_all(Accumulate *a)
{
    Givens s = list_carries(a);
    int n_carries = s.at.n, n_roots = a->g->root.n;
    Root *root = NEW_ARRAY(a->arena, Root, n_roots);
    memcpy(root, a->g->root.at, sizeof *root * (size_t)n_roots);
    add_sources(a, NULL, true, &s);
    int share = add_share(a, &s), n_sequences = s.at.n - n_carries;
    add_sources(a, NULL, false, &s);
    become_arguments(a, &s);
    a->g->outer = a->outer;
    vec_push(&a->outer->arena, &a->outer->body, a->g);
    body_results(a, root, n_roots, share);
    Ref scan = g_scan(a->outer, a->g, outer_refs(a, &s), s.at.n,
                      (Scan){.carries = n_carries, .sequences = n_sequences, .count = a->n});
    if (scan != NONE)
        outer_roots(a, scan, n_carries, root, n_roots);
}

static bool has_batch_input(const Pinned *p)
{
    for (int i = 0; i < p->input.n; i++)
        if (p->input.at[i].batch_axis == 0)
            return true;
    return false;
}

Graph *build_accumulate(Ctx *cx, Model *m, EntryKind e, Graph *g)
{
    Arena arena = {0};
    int errors = cx->n_errors;
    Accumulate a = {.m = m, .g = g, .arena = &arena, .n = model_loops(m, e)};
    const Item *item = m->train.item != NULL ? m->train.item : m->item;
    a.partial = m->pinned.rows >= 0 && has_batch_input(&m->pinned);
    a.outer = graph_new(cx, g->name);
    a.outer->origin = origin_at(m, item->name.span, NULL, NULL);
    g->origin = a.outer->origin;
    averages(&a);
    run_all(&a);
    arena_free(&arena);
    if (cx->n_errors == errors)
        return a.outer;
    if (g->outer != a.outer) /* not yet its body */
        graph_free(g);
    graph_free(a.outer);
    return NULL;
}
