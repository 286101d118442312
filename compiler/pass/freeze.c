#include "pass.h"

#include "../graph/op.h"

/* What every level of bodies shares. */
typedef struct Freeze {
    Pinned *pinned;
    Arena arena;
    bool store; /* what is stopped, rather than read it */
    int n;      /* slots so far */
} Freeze;

/* A graph or a body that is copied. What is stopped in it is a line of elements at every
 * level: a step of a scan stacks the lines of its steps to one. */
typedef struct Level {
    const Graph *from;
    Graph *to;
    bool top;
    int first, more; /* a body that reads: its own sequence for the first line, how many */
    VEC(Type) line;  /* types, in the order of nodes */
    VEC(Ref) stored; /* of `to` */
} Level;

static Type line_type(const Type *t)
{
    int64_t elems = type_elems(t);
    return type_make(t->dtype, 1, &elems);
}

/* The next line of this level, as what it was stored as. */
static Ref read_line(Freeze *f, Level *l, Type line)
{
    Ref r = l->top ? NONE : g_body_arg(l->to, l->first + l->line.n, line);
    vec_push(&f->arena, &l->line, line);
    if (!l->top)
        return r;
    const char *name = arena_printf(f->pinned->arena, "stopped:%d", f->n++);
    int32_t slot = pinned_find(f->pinned, name);
    return g_slot(l->to, slot, line);
}

static void store_line(Freeze *f, Level *l, Ref x)
{
    Type line = line_type(type_of(l->to, x));
    x = g_reshape(l->to, x, 1, line.dim);
    vec_push(&f->arena, &l->stored, x);
    vec_push(&f->arena, &l->line, line);
    if (!l->top)
        return;
    const char *name = arena_printf(f->pinned->arena, "stopped:%d", f->n++);
    int32_t slot = pinned_add(f->pinned, name, SLOT_STATE, line, node(l->to, x)->origin);
    graph_root(l->to, ROOT_ASSIGN, name, x, slot, -1);
}

static Ref freeze_stop(Freeze *f, Level *l, Ref r, const Ref *map)
{
    Ref x = map[arg(l->from, r, 0)];
    if (f->store) {
        store_line(f, l, x);
        return x;
    }
    const Type *t = type_of(l->from, r);
    Ref line = read_line(f, l, line_type(t));
    return g_reshape(l->to, line, t->rank, t->dim);
}

/* Lines of one step of this graph. */
static int count_lines(const Graph *g)
{
    int n = 0;
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        n += op_of(g, r) == OP_stop_gradient;
        if (op_of(g, r) == OP_scan)
            n += count_lines(attr(g, r, SCAN_BODY)->body);
    }
    return n;
}

static void copy_level(Freeze *f, Level *l);

/* The operands, with the lines that the body reads as more sequences. */
static Ref *scan_operands(Freeze *f, Level *l, Ref r, const Ref *map, const Level *body)
{
    int n = node(l->from, r)->n_args;
    int64_t count = attr(l->from, r, SCAN_COUNT)->i;
    Ref *refs = NEW_ARRAY(&f->arena, Ref, n + body->more);
    for (int i = 0; i < n; i++)
        refs[i < body->first ? i : i + body->more] = map[arg(l->from, r, i)];
    for (int i = 0; i < body->more; i++) {
        int64_t dim[] = {count, body->line.at[i].dim[0]};
        int64_t all = dim[0] * dim[1];
        Ref line = read_line(f, l, type_make(body->line.at[i].dtype, 1, &all));
        refs[body->first + i] = g_reshape(l->to, line, 2, dim);
    }
    return refs;
}

static Ref freeze_scan(Freeze *f, Level *l, Ref r, const Ref *map)
{
    const Graph *g = l->from, *steps = attr(g, r, SCAN_BODY)->body;
    Scan is = scan_of(g, r);
    int lines = count_lines(steps), results = tuple_size(g, r), n = node(g, r)->n_args;
    Level body = {.from = steps, .to = g_body(l->to), .first = is.carries + is.sequences};
    body.more = f->store ? 0 : lines;
    copy_level(f, &body);
    for (int i = 0; i < body.stored.n; i++)
        graph_root(body.to, ROOT_RESULT, NULL, body.stored.at[i], -1, -1);
    Ref *operands = scan_operands(f, l, r, map, &body);
    is.sequences += body.more;
    Ref scan = g_scan(l->to, body.to, operands, n + body.more, is);
    for (int i = 0; i < body.stored.n; i++) {
        Ref line = g_pick(l->to, scan, results + i);
        store_line(f, l, line);
    }
    return scan;
}

static Ref freeze_node(Freeze *f, Level *l, Ref r, const Ref *map)
{
    const Graph *g = l->from;
    OpId op = op_of(g, r);
    l->to->origin = node(g, r)->origin;
    if (op == OP_stop_gradient)
        return freeze_stop(f, l, r, map);
    if (op == OP_scan && count_lines(attr(g, r, SCAN_BODY)->body) > 0)
        return freeze_scan(f, l, r, map);
    if (op == OP_arg && attr(g, r, 0)->i >= l->first)
        return g_body_arg(l->to, (int)attr(g, r, 0)->i + l->more, *type_of(g, r));
    return graph_copy_node(l->to, g, r, map);
}

static void copy_level(Freeze *f, Level *l)
{
    Ref *map = NEW_ARRAY(&f->arena, Ref, l->from->node.n);
    for (Ref r = 1; r < (Ref)l->from->node.n; r++)
        map[r] = freeze_node(f, l, r, map);
    for (int i = 0; i < l->from->root.n; i++) {
        Root root = l->from->root.at[i];
        root.ref = map[root.ref];
        if (!l->top || (root.kind == ROOT_LOSS && !f->store))
            vec_push(&l->to->arena, &l->to->root, root);
    }
}

Graph *freeze_stops(const Graph *g, Pinned *pinned, bool store)
{
    Freeze f = {.pinned = pinned, .store = store};
    Level top = {.from = g, .to = graph_new(g->cx, g->name), .top = true};
    top.to->origin = g->origin;
    copy_level(&f, &top);
    arena_free(&f.arena);
    return top.to;
}
