/* A region becomes a scan: its operands are cut along their rows, its body is the region with
 * fewer rows, and what others read of it is put together again. */
#include "chunk.h"

enum { PLACES = MAX_RANK + 1 }; /* a node is read whole, or along one of its axes */

typedef struct Given {
    Ref ref; /* in the graph as it was */
    int axis;
    Ref outer; /* the scan's operand */
} Given;

struct Chunker {
    const Region *v; /* at hand */
    const Graph *g;
    Graph *to, *body;
    Arena *a;
    Ref *map;     /* by node: in `to` */
    Ref done;     /* nodes up to this one are there */
    bool *wanted; /* by place: the body reads it so */
    Ref *inner;   /* by place: in the body */
    VEC(Given) sequence, same;
    VEC(Ref) result; /* nodes of the region that others read */
    const Chunks *is;
};

static size_t place(Ref r, int axis)
{
    return (size_t)r * PLACES + (size_t)(axis + 1);
}

/* ---- operands of the scan --------------------------------------------------------------- */

/* Can this be computed in the body, of what it is made of? want: its operands' axes. */
static bool is_built(const Chunker *c, Ref r, int axis, int want[])
{
    const Graph *g = c->g;
    if (is_in(c->v, r))
        return operand_axes(g, r, axis, want);
    if (!c->v->free[r])
        return false;
    for (int i = 0; axis == WHOLE && i < node(g, r)->n_args; i++)
        want[i] = WHOLE;
    if (op_of(g, r) == OP_iota)
        return axis != attr(g, r, op_attr(&op_iota, "axis"))->i;
    return axis == WHOLE || operand_axes(g, r, axis, want);
}

/* By place, from users to operands. */
static void find_wanted(Chunker *c)
{
    const Graph *g = c->g;
    for (Ref r = c->v->last; r >= 1; r--) {
        if (is_in(c->v, r))
            c->wanted[place(r, c->v->axis[r])] = true;
        int *want = NEW_ARRAY(c->a, int, node(g, r)->n_args);
        for (int axis = WHOLE; axis < MAX_RANK; axis++)
            if (c->wanted[place(r, axis)] && is_built(c, r, axis, want))
                for (int i = 0; i < node(g, r)->n_args; i++)
                    c->wanted[place(arg(g, r, i), want[i])] = true;
    }
}

static int64_t count_chunks(const Region *v)
{
    return (v->extent + v->rows - 1) / v->rows;
}

/* The last row again and again behind x, up to whole chunks: what is made of a row once more is as
 * finite as it was, whatever it is, and nobody reads it. */
static Ref fill_up(const Chunker *c, Ref x, int axis)
{
    Graph *g = c->to;
    Type t = *type_of(g, x);
    int64_t more = count_chunks(c->v) * c->v->rows - t.dim[axis];
    if (more == 0)
        return x;
    Ref last = g_slice(g, x, axis, t.dim[axis] - 1, 1, 1);
    t.dim[axis] = more;
    Ref part[] = {x, g_broadcast(g, last, t.rank, t.dim)};
    return g_concat(g, part, 2, axis);
}

/* Numbers of rows; behind the last one, that one's. */
static Ref number_rows(const Chunker *c, DType t)
{
    Graph *g = c->to;
    int64_t n = count_chunks(c->v) * c->v->rows;
    Ref all = g_iota(g, type_make(t, 1, &n), 0);
    if (n == c->v->extent)
        return all;
    Ref last = g_const_int(g, t, c->v->extent - 1);
    last = g_broadcast(g, last, 1, &n);
    return g_binary(g, OP_min, all, last);
}

/* x[.., n, ..] -> x[n / rows, .., rows, ..], for a whole number of chunks. */
static Ref cut(const Chunker *c, Ref x, int axis)
{
    Graph *g = c->to;
    Type t = *type_of(g, x);
    int64_t size[MAX_RANK + 1];
    int perm[MAX_RANK + 1] = {axis};
    for (int a = 0; a <= t.rank; a++) {
        size[a] = a <= axis ? t.dim[a] : t.dim[a - 1];
        if (a > 0)
            perm[a] = a <= axis ? a - 1 : a;
    }
    size[axis] = t.dim[axis] / c->v->rows;
    size[axis + 1] = c->v->rows;
    x = g_reshape(g, x, t.rank + 1, size);
    return g_move_axes(g, x, perm);
}

/* And back, without what fill_up() has added. */
static Ref put_together(const Chunker *c, Ref x, int axis)
{
    Graph *g = c->to;
    int perm[MAX_RANK + 1];
    for (int a = 0; a < rank(g, x); a++)
        perm[a] = a < axis ? a + 1 : a == axis ? 0 : a;
    x = g_move_axes(g, x, perm);
    x = g_merge_axes(g, x, axis);
    return dim(g, x, axis) == c->v->extent ? x : g_slice(g, x, axis, 0, c->v->extent, 1);
}

static bool is_index(const Chunker *c, Ref r)
{
    return op_of(c->g, r) == OP_iota;
}

static void give(Chunker *c, Ref r, int axis)
{
    Given x = {.ref = r, .axis = axis};
    c->to->origin = node(c->g, r)->origin;
    if (axis == WHOLE) {
        x.outer = c->map[r];
        vec_push(c->a, &c->same, x);
        return;
    }
    if (is_index(c, r)) {
        Ref all = number_rows(c, type_of(c->g, r)->dtype);
        x.outer = cut(c, all, 0);
    } else {
        Ref all = fill_up(c, c->map[r], axis);
        x.outer = cut(c, all, axis);
    }
    vec_push(c->a, &c->sequence, x);
}

static void find_given(Chunker *c)
{
    for (Ref r = 1; r < c->v->last; r++) {
        int *want = NEW_ARRAY(c->a, int, node(c->g, r)->n_args);
        for (int axis = WHOLE; axis < MAX_RANK; axis++)
            if (c->wanted[place(r, axis)] && !is_in(c->v, r) && !is_built(c, r, axis, want))
                give(c, r, axis);
    }
}

/* ---- the body ------------------------------------------------------------------------------ */

static void add_arg(Chunker *c, const Given *x, int number)
{
    Type t = *type_of(c->to, x->outer);
    if (x->axis != WHOLE) {
        t.rank--;
        for (int a = 0; a < t.rank; a++)
            t.dim[a] = t.dim[a + 1];
    }
    c->body->origin = node(c->g, x->ref)->origin;
    Ref r = g_body_arg(c->body, number, t);
    if (x->axis != WHOLE && is_index(c, x->ref)) { /* [rows], along its axis of an iota */
        Type whole = *type_of(c->g, x->ref);
        int64_t size[MAX_RANK];
        whole.dim[x->axis] = c->v->rows;
        for (int a = 0; a < whole.rank; a++)
            size[a] = a == x->axis ? c->v->rows : 1;
        r = g_reshape(c->body, r, whole.rank, size);
        r = g_broadcast(c->body, r, whole.rank, whole.dim);
    }
    c->inner[place(x->ref, x->axis)] = r;
}

static void build_body(Chunker *c)
{
    const Graph *g = c->g;
    c->body = g_body(c->to);
    for (int i = 0; i < c->sequence.n; i++)
        add_arg(c, &c->sequence.at[i], i);
    for (int i = 0; i < c->same.n; i++)
        add_arg(c, &c->same.at[i], c->sequence.n + i);
    for (Ref r = 1; r <= c->v->last; r++) {
        int n = node(g, r)->n_args, *want = NEW_ARRAY(c->a, int, n);
        Ref *args = NEW_ARRAY(c->a, Ref, n);
        for (int axis = WHOLE; axis < MAX_RANK; axis++) {
            Ref *to = &c->inner[place(r, axis)];
            if (!c->wanted[place(r, axis)] || *to != NONE || !is_built(c, r, axis, want))
                continue;
            for (int i = 0; i < n; i++)
                args[i] = c->inner[place(arg(g, r, i), want[i])];
            *to = copy_rows(c->body, g, r, args, axis, c->v->rows);
        }
    }
    for (int i = 0; i < c->result.n; i++) {
        Ref r = c->result.at[i];
        graph_root(c->body, ROOT_RESULT, NULL, c->inner[place(r, c->v->axis[r])], -1, -1);
    }
    Chunks inner = {.most = c->v->most,
                    .slices = c->is->slices,
                    .fewest = c->is->fewest,
                    .levels = c->is->levels - 1,
                    .wider = c->v->wider,
                    .by_rows = c->is->by_rows};
    chunk_graph(&c->body, c->to, &inner);
}

/* ---- the scan -------------------------------------------------------------------------------- */

static void find_results(Chunker *c)
{
    const Graph *g = c->g;
    bool *read = NEW_ARRAY(c->a, bool, g->node.n);
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        for (int i = 0; !is_in(c->v, r) && i < node(g, r)->n_args; i++)
            read[arg(g, r, i)] = true;
    for (int i = 0; i < g->root.n; i++)
        read[g->root.at[i].ref] = true;
    for (Ref r = 1; r <= c->v->last; r++)
        if (is_in(c->v, r) && read[r])
            vec_push(c->a, &c->result, r);
}

static void build_scan(Chunker *c)
{
    c->wanted = NEW_ARRAY(c->a, bool, (size_t)c->g->node.n *PLACES);
    c->inner = NEW_ARRAY(c->a, Ref, (size_t)c->g->node.n * PLACES);
    find_results(c);
    find_wanted(c);
    find_given(c);
    build_body(c);
    Ref *args = NEW_ARRAY(c->a, Ref, c->sequence.n + c->same.n);
    for (int i = 0; i < c->sequence.n; i++)
        args[i] = c->sequence.at[i].outer;
    for (int i = 0; i < c->same.n; i++)
        args[c->sequence.n + i] = c->same.at[i].outer;
    Scan is = {.sequences = c->sequence.n, .count = count_chunks(c->v), .lean = true};
    c->to->origin = node(c->g, c->v->seed)->origin;
    Ref scan = g_scan(c->to, c->body, args, c->sequence.n + c->same.n, is);
    for (int i = 0; i < c->result.n; i++) {
        Ref r = c->result.at[i];
        c->to->origin = node(c->g, r)->origin;
        Ref all = g_pick(c->to, scan, i);
        c->map[r] = put_together(c, all, c->v->axis[r]);
    }
}

/* By node: it is computed of what the region gives. */
static bool *find_later(const Chunker *c)
{
    bool *later = NEW_ARRAY(c->a, bool, c->v->last + 1);
    for (Ref r = c->v->first; r <= c->v->last; r++)
        for (int i = 0; i < node(c->g, r)->n_args; i++)
            later[r] = later[r] || later[arg(c->g, r, i)] || is_in(c->v, arg(c->g, r, i));
    return later;
}

static void copy_around(Chunker *c, const bool *later, bool which)
{
    for (Ref r = c->done + 1; r <= c->v->last; r++)
        if (!is_in(c->v, r) && later[r] == which)
            c->map[r] = graph_copy_node(c->to, c->g, r, c->map);
}

Chunker *chunks_open(Graph *to, const Graph *g, const Chunks *is, Arena *a)
{
    Chunker *c = NEW(a, Chunker);
    *c = (Chunker){.g = g, .to = to, .a = a, .is = is};
    c->map = NEW_ARRAY(a, Ref, g->node.n);
    return c;
}

void chunks_add(Chunker *c, const Region *v)
{
    Arena scratch = {0}, *a = c->a;
    c->v = v;
    c->a = &scratch;
    c->sequence.at = c->same.at = NULL;
    c->sequence.n = c->sequence.cap = c->same.n = c->same.cap = 0;
    c->result.at = NULL;
    c->result.n = c->result.cap = 0;
    const bool *later = find_later(c);
    copy_around(c, later, false); /* what it reads, and whatever else stands before */
    build_scan(c);
    copy_around(c, later, true);
    c->done = v->last;
    c->a = a;
    arena_free(&scratch);
}

void chunks_close(Chunker *c)
{
    for (Ref r = c->done + 1; r < (Ref)c->g->node.n; r++)
        c->map[r] = graph_copy_node(c->to, c->g, r, c->map);
    graph_copy_roots(c->to, c->g, c->map);
}
