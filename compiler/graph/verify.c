/* Checks a graph: what every pass may rely on. */
#include <stdio.h>
#include <string.h>
#include "op.h"

typedef struct Check {
    const Graph *g;
    Arena *arena;
} Check;

static const char *wrong(const Check *c, Ref r, const char *what)
{
    OpId op = op_of(c->g, r);
    const char *name = op > OP_NONE && op < N_OPS ? optab[op]->name : "?";
    return arena_printf(c->arena, "%%%u = %s: %s", r, name, what);
}

static bool kind_fits(const AttrSpec *spec, const Attr *a)
{
    return a->kind == spec->kind || (spec->kind == ATTR_FLOAT && a->kind == ATTR_INT);
}

static const char *check_attrs(const Check *c, Ref r)
{
    const Op *op = optab[op_of(c->g, r)];
    int n = op_attrs(op);
    if (n > 0 && node(c->g, r)->attr == NULL)
        return wrong(c, r, "it has no attributes");
    for (int i = 0; i < n; i++) {
        const Attr *a = attr(c->g, r, i);
        if (!kind_fits(&op->attrs[i], a))
            return wrong(c, r, "an attribute is of another kind");
        if (a->kind != ATTR_BODY)
            continue;
        const char *inside = a->body->outer != c->g ? "its body belongs to another graph"
                                                    : graph_verify(a->body, c->arena);
        if (inside != NULL)
            return wrong(c, r, inside);
    }
    return NULL;
}

/* Operands come before, and the op's rule gives the type that the node has. */
static const char *check_node(const Check *c, Ref r)
{
    const Graph *g = c->g;
    const Node *n = node(g, r);
    if (n->op <= OP_NONE || n->op >= N_OPS)
        return wrong(c, r, "there is no such op");
    if (n->n_args < 0 || (int64_t)n->args + n->n_args > g->arg.n)
        return wrong(c, r, "its operands lie outside of the graph");
    for (int i = 0; i < n->n_args; i++)
        if (arg(g, r, i) >= r || (arg(g, r, i) == NONE && n->op != OP_tuple))
            return wrong(c, r, "an operand does not come before it");
    const char *bad = check_attrs(c, r);
    if (bad != NULL)
        return bad;
    Shape s = {.g = g, .op = optab[n->op], .n_args = n->n_args, .attr = n->attr};
    s.args = n->n_args > 0 ? &g->arg.at[n->args] : NULL;
    if (!shape_infer(&s))
        return wrong(c, r, s.problem);
    if (type_same(&s.type, &n->type))
        return NULL;
    return wrong(c, r,
                 arena_printf(c->arena, "its type is %s, and should be %s",
                              type_text(c->arena, &n->type), type_text(c->arena, &s.type)));
}

/* A slot's new value and its gradient are of its type, as far as the graph reads it. */
static const char *check_slot(const Check *c, const Root *root)
{
    const Graph *g = c->g;
    if (root->slot < 0)
        return NULL;
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        if (op_of(g, r) != OP_slot || attr(g, r, 0)->i != root->slot)
            continue;
        if (!type_same(type_of(g, r), type_of(g, root->ref)))
            return wrong(c, root->ref, "it is not of the type of the slot it is for");
        return NULL;
    }
    return NULL;
}

static const char *check_root(const Check *c, const Root *root)
{
    const Graph *g = c->g;
    if (root->ref == NONE || root->ref >= (Ref)g->node.n)
        return arena_printf(c->arena, "a root `%s` is no node", root_kind_name(root->kind));
    const Type *t = type_of(g, root->ref);
    if (root->kind == ROOT_LOSS && (t->rank != 0 || !dtype_is_float(t->dtype)))
        return wrong(c, root->ref, "the loss is not one float");
    if (root->kind == ROOT_FINITE && (t->rank != 0 || t->dtype != BOOL))
        return wrong(c, root->ref, "`finite` is not one bool");
    if (root->kind == ROOT_ASSIGN && root->slot < 0)
        return wrong(c, root->ref, "it is assigned to no slot");
    if (root->kind == ROOT_GRADIENT && (root->slot < 0) == (root->input < 0))
        return wrong(c, root->ref, "a gradient is of one slot or one input");
    if (t->rank < 0 && root->kind != ROOT_OTHER)
        return wrong(c, root->ref, "a root is no tuple");
    return check_slot(c, root);
}

const char *graph_verify(const Graph *g, Arena *scratch)
{
    Check c = {.g = g, .arena = scratch};
    if (g->node.n < 1 || g->n_primal > (Ref)g->node.n)
        return "the primal part is longer than the graph";
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        const char *bad = check_node(&c, r);
        if (bad != NULL)
            return bad;
    }
    int losses = 0;
    for (int i = 0; i < g->root.n; i++) {
        const char *bad = check_root(&c, &g->root.at[i]);
        if (bad != NULL)
            return bad;
        losses += g->root.at[i].kind == ROOT_LOSS;
    }
    return losses > 1 ? "there is more than one loss" : NULL;
}
