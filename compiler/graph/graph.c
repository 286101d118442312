/* Nodes, roots, bodies, pinned storage, origins. */
#include <assert.h>
#include <string.h>
#include "op.h"

/* ---- graphs ---------------------------------------------------------------- */

Graph *graph_new(Ctx *cx, const char *name)
{
    Arena arena = {0};
    Graph *g = NEW(&arena, Graph);
    g->arena = arena; /* the graph lies in its own arena */
    g->cx = cx;
    g->name = intern(&cx->names, name);
    vec_push(&g->arena, &g->node, (Node){.op = OP_NONE});
    return g;
}

void graph_free(Graph *g)
{
    for (int i = 0; i < g->body.n; i++)
        graph_free(g->body.at[i]);
    Arena arena = g->arena;
    arena_free(&arena);
}

Graph *g_body(Graph *outer)
{
    Graph *body = graph_new(outer->cx, "body");
    body->outer = outer;
    body->origin = outer->origin;
    vec_push(&outer->arena, &outer->body, body);
    return body;
}

/* ---- nodes ----------------------------------------------------------------- */

static void *copy(Arena *a, const void *from, size_t n, size_t size)
{
    void *to = arena_array(a, n, size);
    if (n > 0)
        memcpy(to, from, n * size);
    return to;
}

static Attr copy_attr(Graph *g, const Attr *from)
{
    Attr a = *from;
    size_t n = (size_t)a.n;
    if (a.kind == ATTR_INTS)
        a.ints = copy(&g->arena, a.ints, n, sizeof *a.ints);
    else if (a.kind == ATTR_MAP)
        a.map = copy(&g->arena, a.map, n, sizeof *a.map);
    else if (a.kind == ATTR_DATA)
        a.data = copy(&g->arena, a.data, n, 1);
    return a;
}

static const Attr *copy_attrs(Graph *g, const Op *op, const Attr *attrs)
{
    int n = op_attrs(op);
    if (n == 0)
        return NULL;
    Attr *to = NEW_ARRAY(&g->arena, Attr, n);
    for (int i = 0; i < n; i++)
        to[i] = copy_attr(g, &attrs[i]);
    return to;
}

static Ref append(Graph *g, const Shape *s, OpId op)
{
    Node n = {.op = op, .type = s->type, .n_args = s->n_args, .origin = g->origin};
    n.args = (uint32_t)g->arg.n;
    for (int i = 0; i < s->n_args; i++)
        vec_push(&g->arena, &g->arg, s->args[i]);
    n.attr = copy_attrs(g, s->op, s->attr);
    vec_push(&g->arena, &g->node, n);
    return (Ref)(g->node.n - 1);
}

static void report(const Graph *g, const Shape *s)
{
    Span at = g->origin != NULL ? g->origin->span : NO_SPAN;
    Diag *d = diag_error(g->cx, s->code, at, "%s", s->problem);
    d->origin = g->origin;
}

/* Operands are moved out of the way first: they may point into g->arg, which grows. */
Ref g_node(Graph *g, OpId op, const Ref *args, int n_args, const Attr *attrs)
{
    ArenaMark mark = arena_mark(&g->cx->scratch);
    Shape s = {.g = g, .op = optab[op], .n_args = n_args, .attr = attrs};
    s.args = copy(&g->cx->scratch, args, (size_t)n_args, sizeof *args);
    bool known = true;
    for (int i = 0; i < n_args; i++) {
        assert(args[i] < (Ref)g->node.n);
        known = known && (args[i] != NONE || op == OP_tuple);
    }
    Ref made = NONE;
    if (known && shape_infer(&s))
        made = append(g, &s, op);
    else if (known)
        report(g, &s);
    arena_reset(&g->cx->scratch, mark);
    return made;
}

Ref g_error(Graph *g, Code code, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    Shape s = {.code = code, .problem = arena_vprintf(&g->cx->perm, format, ap)};
    va_end(ap);
    report(g, &s);
    return NONE;
}

/* A body of its own for a copied node: adjoints extend bodies. */
Graph *g_copy_body(Graph *to, const Graph *from)
{
    Graph *body = g_body(to);
    ArenaMark mark = arena_mark(&to->cx->scratch);
    Ref *map = NEW_ARRAY(&to->cx->scratch, Ref, from->node.n);
    for (Ref r = 1; r < (Ref)from->node.n; r++)
        map[r] = graph_copy_node(body, from, r, map);
    for (int i = 0; i < from->root.n; i++) {
        Root root = from->root.at[i];
        root.ref = map[root.ref];
        vec_push(&body->arena, &body->root, root);
    }
    arena_reset(&to->cx->scratch, mark);
    return body;
}

Ref graph_copy_node(Graph *to, const Graph *from, Ref r, const Ref *map)
{
    const Node *n = node(from, r);
    ArenaMark mark = arena_mark(&to->cx->scratch);
    Ref *args = NEW_ARRAY(&to->cx->scratch, Ref, n->n_args);
    for (int i = 0; i < n->n_args; i++) {
        args[i] = map[arg(from, r, i)];
        if (args[i] == NONE && arg(from, r, i) != NONE) /* a gradient would lack a part */
            diag_error(to->cx, E0990, NO_SPAN, "%s: %%%u is made of what is not there yet",
                       from->name, r);
    }
    Attr attrs[MAX_ATTRS];
    int n_attrs = op_attrs(optab[n->op]);
    to->origin = n->origin;
    for (int i = 0; i < n_attrs; i++) {
        attrs[i] = n->attr[i];
        if (attrs[i].kind == ATTR_BODY)
            attrs[i].body = g_copy_body(to, attrs[i].body);
    }
    Ref made = g_node(to, n->op, args, n->n_args, attrs);
    arena_reset(&to->cx->scratch, mark);
    return made;
}

void graph_copy_roots(Graph *to, const Graph *from, const Ref *map)
{
    for (int i = 0; i < from->root.n; i++) {
        Root root = from->root.at[i];
        root.ref = map[root.ref];
        vec_push(&to->arena, &to->root, root);
    }
    to->origin = from->origin;
}

void graph_root(Graph *g, RootKind kind, const char *name, Ref r, int32_t slot, int32_t input)
{
    Root root = {.kind = kind, .ref = r, .slot = slot, .input = input};
    root.name = name == NULL ? NULL : intern(&g->cx->names, name);
    vec_push(&g->arena, &g->root, root);
}

const char *root_kind_name(RootKind k)
{
    static const char *const name[] = {
        [ROOT_LOSS] = "loss",         [ROOT_OUTPUT] = "output", [ROOT_METRIC] = "metric",
        [ROOT_GRADIENT] = "gradient", [ROOT_ASSIGN] = "assign", [ROOT_FINITE] = "finite",
        [ROOT_RESULT] = "result",     [ROOT_OTHER] = "other",
    };
    return name[k];
}

/* ---- tuples ---------------------------------------------------------------- */

static const Graph *body_of(const Graph *g, Ref tuple)
{
    int i = op_attr(optab[op_of(g, tuple)], "body");
    return i < 0 ? NULL : attr(g, tuple, i)->body;
}

static Ref body_result(const Graph *body, int i)
{
    for (int r = 0; r < body->root.n; r++)
        if (body->root.at[r].kind == ROOT_RESULT && i-- == 0)
            return body->root.at[r].ref;
    return NONE;
}

int tuple_size(const Graph *g, Ref tuple)
{
    const Graph *body = body_of(g, tuple);
    if (body == NULL)
        return node(g, tuple)->n_args;
    int n = 0;
    for (int r = 0; r < body->root.n; r++)
        n += body->root.at[r].kind == ROOT_RESULT;
    return n;
}

Type tuple_type(const Graph *g, Ref tuple, int i)
{
    const Graph *body = body_of(g, tuple);
    if (body == NULL)
        return *type_of(g, arg(g, tuple, i));
    Type t = *type_of(body, body_result(body, i));
    const Op *op = optab[op_of(g, tuple)];
    if (i < attr(g, tuple, op_attr(op, "carries"))->i || t.rank == MAX_RANK)
        return t;
    Type stacked = type_make(t.dtype, 1, &attr(g, tuple, op_attr(op, "count"))->i);
    for (int a = 0; a < t.rank; a++)
        stacked.dim[++stacked.rank - 1] = t.dim[a];
    return stacked;
}

int g_loop_depth(const Graph *g, Ref *deepest)
{
    int most = 0;
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        if (op_of(g, r) != OP_scan)
            continue;
        int depth = 1 + g_loop_depth(attr(g, r, SCAN_BODY)->body, NULL);
        if (depth > most && deepest != NULL)
            *deepest = r;
        most = depth > most ? depth : most;
    }
    return most;
}

const Node *g_kept_in(const Graph *body)
{
    for (Ref r = 1; r < (Ref)body->node.n; r++) {
        const Node *found = origin_is_kept(node(body, r)->origin) ? node(body, r) : NULL;
        if (found == NULL && op_of(body, r) == OP_scan)
            found = g_kept_in(attr(body, r, SCAN_BODY)->body);
        if (found != NULL)
            return found;
    }
    return NULL;
}

/* ---- pinned storage -------------------------------------------------------- */

int32_t pinned_find(const Pinned *p, const char *name)
{
    for (int32_t i = 0; i < p->slot.n; i++)
        if (strcmp(p->slot.at[i].name, name) == 0)
            return i;
    return -1;
}

int32_t pinned_add(Pinned *p, const char *name, SlotKind kind, Type type, const Origin *o)
{
    Slot s = {.name = arena_strdup(p->arena, name), .kind = kind, .type = type, .of = -1};
    s.origin = o;
    vec_push(p->arena, &p->slot, s);
    return p->slot.n - 1;
}

/* ---- origins --------------------------------------------------------------- */

const Origin *origin_instance(const Origin *o)
{
    while (o != NULL && o->name == NULL)
        o = o->parent;
    return o;
}

const char *origin_path(Arena *a, const Origin *o)
{
    o = origin_instance(o);
    if (o == NULL)
        return "";
    const char *outer = origin_path(a, o->parent);
    return *outer == '\0' ? o->name : arena_printf(a, "%s.%s", outer, o->name);
}
