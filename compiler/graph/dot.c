/* Graphs for programs: Graphviz and JSON. */
#include <math.h>
#include <string.h>
#include "op.h"

/* ---- Graphviz ----------------------------------------------------------------------- */

/* Node names are prefixed by their graph's path, so that bodies can be drawn inside. */
static void dot_graph(const Graph *g, const char *prefix, Text *to);

static void dot_node(const Graph *g, const char *prefix, Ref r, Text *to)
{
    const Op *op = optab[op_of(g, r)];
    ArenaMark mark = arena_mark(&g->cx->scratch);
    const char *type = rank(g, r) < 0 ? "" : type_text(&g->cx->scratch, type_of(g, r));
    bool reverse = g->n_primal != 0 && r >= g->n_primal;
    text_add(to, "    %s%u [label=\"%%%u %s\\n%s\"%s];\n", prefix, r, r, op->name, type,
             reverse ? ", color=red" : "");
    for (int i = 0; i < node(g, r)->n_args; i++)
        if (arg(g, r, i) != NONE)
            text_add(to, "    %s%u -> %s%u;\n", prefix, arg(g, r, i), prefix, r);
    for (int i = 0; i < op_attrs(op); i++) {
        if (attr(g, r, i)->kind != ATTR_BODY)
            continue;
        const char *inner = arena_printf(&g->cx->scratch, "%s%u_", prefix, r);
        text_add(to, "    subgraph cluster_%s%u { label=\"body of %%%u\";\n", prefix, r, r);
        dot_graph(attr(g, r, i)->body, inner, to);
        text_add(to, "    }\n");
    }
    arena_reset(&g->cx->scratch, mark);
}

static void dot_graph(const Graph *g, const char *prefix, Text *to)
{
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        dot_node(g, prefix, r, to);
    for (int i = 0; i < g->root.n; i++) {
        const Root *root = &g->root.at[i];
        text_add(to, "    %sroot%d [shape=plaintext, label=\"%s ", prefix, i,
                 root_kind_name(root->kind));
        text_json(to, root->name == NULL ? "" : root->name);
        text_add(to, "\"];\n    %s%u -> %sroot%d;\n", prefix, root->ref, prefix, i);
    }
}

void graph_dot(const Graph *g, Text *to)
{
    text_add(to, "digraph \"");
    text_json(to, g->name);
    text_add(to, "\" {\n    node [shape=box, fontname=monospace];\n");
    dot_graph(g, "n", to);
    text_add(to, "}\n");
}

/* ---- JSON ----------------------------------------------------------------------------- */

static void json_graph(const Graph *g, Text *to);

static void json_string(Text *to, const char *s)
{
    text_char(to, '"');
    text_json(to, s);
    text_char(to, '"');
}

/* Numbers, booleans and lists of integers as such; all else as its text. */
static void json_attr(const Graph *g, Ref r, int i, Text *to)
{
    const Attr *a = attr(g, r, i);
    bool plain = a->kind == ATTR_INT || a->kind == ATTR_BOOL || a->kind == ATTR_INTS ||
                 (a->kind == ATTR_FLOAT && isfinite(a->f));
    if (a->kind == ATTR_BODY) {
        json_graph(a->body, to);
    } else if (plain || a->kind == ATTR_NAME) {
        graph_print_attr(g, r, i, to);
    } else {
        ArenaMark mark = arena_mark(&g->cx->scratch);
        Text value;
        text_init(&value, &g->cx->scratch);
        graph_print_attr(g, r, i, &value);
        json_string(to, value.at);
        arena_reset(&g->cx->scratch, mark);
    }
}

static void json_node(const Graph *g, Ref r, Text *to)
{
    const Op *op = optab[op_of(g, r)];
    ArenaMark mark = arena_mark(&g->cx->scratch);
    text_add(to, "{\"id\": %u, \"op\": \"%s\", \"type\": \"%s\", \"args\": [", r, op->name,
             type_text(&g->cx->scratch, type_of(g, r)));
    for (int i = 0; i < node(g, r)->n_args; i++)
        text_add(to, "%s%u", i == 0 ? "" : ", ", arg(g, r, i));
    text_add(to, "], \"attrs\": {");
    for (int i = 0; i < op_attrs(op); i++) {
        text_add(to, "%s\"%s\": ", i == 0 ? "" : ", ", op->attrs[i].name);
        json_attr(g, r, i, to);
    }
    text_add(to, "}, \"path\": ");
    json_string(to, origin_path(&g->cx->scratch, node(g, r)->origin));
    text_add(to, ", \"reverse\": %s}", g->n_primal != 0 && r >= g->n_primal ? "true" : "false");
    arena_reset(&g->cx->scratch, mark);
}

static void json_root(const Root *root, Text *to)
{
    text_add(to, "{\"kind\": \"%s\", \"name\": ", root_kind_name(root->kind));
    json_string(to, root->name == NULL ? "" : root->name);
    text_add(to, ", \"ref\": %u, \"slot\": %d, \"input\": %d, \"guarded\": %s}", root->ref,
             root->slot, root->input, root->guarded ? "true" : "false");
}

static void json_graph(const Graph *g, Text *to)
{
    text_add(to, "{\"name\": ");
    json_string(to, g->name);
    text_add(to, ", \"nodes\": [");
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        text_add(to, r == 1 ? "\n" : ",\n");
        json_node(g, r, to);
    }
    text_add(to, "],\n\"roots\": [");
    for (int i = 0; i < g->root.n; i++) {
        text_add(to, i == 0 ? "\n" : ",\n");
        json_root(&g->root.at[i], to);
    }
    text_add(to, "]}");
}

void graph_json(const Graph *g, Text *to)
{
    json_graph(g, to);
    text_char(to, '\n');
}
