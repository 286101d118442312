/* Graphs as text (grammar/gir.md). What is printed reads back as the same graph, but
 * for origins. */
#include <string.h>
#include "op.h"

static void indent(Text *to, int depth)
{
    for (int i = 0; i < depth; i++)
        text_put(to, "    ", 4);
}

/* ---- attributes --------------------------------------------------------------------- */

/* "2*i2+i4-1": terms by index, then the offset unless it is 0 and there are terms. */
static void print_map(Text *to, const MapDim *m)
{
    for (int t = 0; t < m->n; t++) {
        int64_t c = m->coef[t];
        if (c < 0)
            text_char(to, '-');
        else if (t > 0)
            text_char(to, '+');
        if (c != 1 && c != -1)
            text_add(to, "%llu*", (unsigned long long)(c < 0 ? -c : c));
        text_add(to, "i%d", m->index[t]);
    }
    if (m->n == 0)
        text_add(to, "%lld", (long long)m->base);
    else if (m->base != 0)
        text_add(to, "%+lld", (long long)m->base);
}

static void print_element(Text *to, DType t, const char *at)
{
    float f;
    double d;
    uint16_t half;
    int32_t i;
    int64_t l;
    switch (t) {
    case F32:
        memcpy(&f, at, sizeof f);
        text_float(to, f);
        break;
    case F64:
        memcpy(&d, at, sizeof d);
        text_double(to, d);
        break;
    case F16:
    case BF16:
        memcpy(&half, at, sizeof half);
        text_float(to, t == F16 ? f16_to_f32(half) : bf16_to_f32(half));
        break;
    case I32:
        memcpy(&i, at, sizeof i);
        text_add(to, "%d", i);
        break;
    case I64:
        memcpy(&l, at, sizeof l);
        text_add(to, "%lld", (long long)l);
        break;
    default:
        text_add(to, "%d", *(const uint8_t *)at);
    }
}

static void print_data(Text *to, DType t, const Attr *a)
{
    int each = dtype_bytes(t);
    for (int i = 0; i + each <= a->n; i += each) {
        if (i > 0)
            text_put(to, ", ", 2);
        print_element(to, t, (const char *)a->data + i);
    }
}

static void print_list(Text *to, DType t, const Attr *a)
{
    text_char(to, '[');
    if (a->kind == ATTR_DATA)
        print_data(to, t, a);
    for (int i = 0; a->kind != ATTR_DATA && i < a->n; i++) {
        if (i > 0)
            text_put(to, ", ", 2);
        if (a->kind == ATTR_INTS)
            text_add(to, "%lld", (long long)a->ints[i]);
        else
            print_map(to, &a->map[i]);
    }
    text_char(to, ']');
}

void graph_print_attr(const Graph *g, Ref r, int i, Text *to)
{
    const Attr *a = attr(g, r, i);
    DType t;
    switch (a->kind) {
    case ATTR_INT:
        text_add(to, "%lld", (long long)a->i);
        break;
    case ATTR_BOOL:
        text_add(to, "%s", a->i != 0 ? "true" : "false");
        break;
    case ATTR_FLOAT: /* shortest: a constant has been rounded to its type already */
        t = type_of(g, r)->dtype;
        if (dtype_is_float(t) && t != F64 && (double)(float)a->f == a->f)
            text_float(to, (float)a->f);
        else
            text_double(to, a->f);
        break;
    case ATTR_DTYPE:
        text_add(to, "%s", dtype_name((DType)a->i));
        break;
    case ATTR_NAME:
        text_char(to, '"');
        text_json(to, a->name);
        text_char(to, '"');
        break;
    case ATTR_BODY:
        text_add(to, "{...}");
        break;
    default:
        print_list(to, type_of(g, r)->dtype, a);
    }
}

/* ---- nodes and roots -------------------------------------------------------------------- */

static void print_nodes(const Graph *g, Ref from, Ref end, Text *to, int depth);

static void print_body(const Graph *body, Text *to, int depth)
{
    text_put(to, "{\n", 2);
    print_nodes(body, 1, (Ref)body->node.n, to, depth + 1);
    indent(to, depth);
    text_char(to, '}');
}

static void print_type(const Graph *g, Ref r, Text *to)
{
    ArenaMark mark = arena_mark(&g->cx->scratch);
    if (rank(g, r) >= 0)
        text_add(to, "%s", type_text(&g->cx->scratch, type_of(g, r)));
    else
        text_add(to, "tuple");
    arena_reset(&g->cx->scratch, mark);
}

static void print_node(const Graph *g, Ref r, Text *to, int depth)
{
    const Op *op = optab[op_of(g, r)];
    int n_args = node(g, r)->n_args;
    const char *sep = "";
    indent(to, depth);
    text_add(to, "%%%u = %s(", r, op->name);
    for (int i = 0; i < n_args; i++) {
        text_add(to, arg(g, r, i) == NONE ? "%s_" : "%s%%%u", sep, arg(g, r, i));
        sep = ", ";
    }
    for (int i = 0; i < op_attrs(op); i++) {
        text_add(to, "%s%s = ", sep, op->attrs[i].name);
        if (attr(g, r, i)->kind == ATTR_BODY)
            print_body(attr(g, r, i)->body, to, depth);
        else
            graph_print_attr(g, r, i, to);
        sep = ", ";
    }
    text_put(to, ") : ", 4);
    print_type(g, r, to);
    text_char(to, '\n');
}

static void print_root(const Root *r, Text *to, int depth)
{
    indent(to, depth);
    text_add(to, "%s", root_kind_name(r->kind));
    if (r->name != NULL) {
        text_put(to, " \"", 2);
        text_json(to, r->name);
        text_char(to, '"');
    }
    text_add(to, " %%%u", r->ref);
    if (r->slot >= 0)
        text_add(to, " slot %d", r->slot);
    if (r->input >= 0)
        text_add(to, " input %d", r->input);
    if (r->guarded)
        text_add(to, " guarded");
    text_char(to, '\n');
}

static void print_nodes(const Graph *g, Ref from, Ref end, Text *to, int depth)
{
    for (Ref r = from; r < end; r++) {
        if (r == g->n_primal && r != NONE) {
            indent(to, depth);
            text_add(to, "reverse\n");
        }
        print_node(g, r, to, depth);
    }
    if (end != NONE && end == g->n_primal && end == (Ref)g->node.n) {
        indent(to, depth);
        text_add(to, "reverse\n");
    }
    for (int i = 0; i < g->root.n; i++)
        if (g->root.at[i].ref >= from && g->root.at[i].ref < end)
            print_root(&g->root.at[i], to, depth);
}

void graph_print_part(const Graph *g, Ref from, Ref end, Text *to)
{
    text_put(to, "graph \"", 7);
    text_json(to, g->name);
    text_put(to, "\" {\n", 4);
    print_nodes(g, from, end, to, 1);
    text_put(to, "}\n", 2);
}

void graph_print(const Graph *g, Text *to)
{
    graph_print_part(g, 1, (Ref)g->node.n, to);
}
