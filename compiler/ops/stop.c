/* Ops whose derivative is what the model says. */
#include "../graph/op.h"

/* ---- none ------------------------------------------------------------------------- */

static Val same_scalar(Elem *e, Ref n, const Val *x)
{
    (void)e, (void)n;
    return x[0];
}

static void no_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    (void)g, (void)n, (void)ct;
    d[0] = REF_ZERO;
}

Ref simple_once_reversed(Graph *g, Ref n)
{
    return graph_is_primal(g) ? NONE : arg(g, n, 0);
}

const Op op_stop_gradient = {
    .name = "stop_gradient",
    .n_args = 1,
    .kind = OP_POINTWISE,
    .shape = shape_same,
    .simple = simple_once_reversed,
    .scalar = same_scalar,
    .vjp = no_vjp,
    .doc = "x, as if it were a constant: its derivative is 0 because that is what it is for.",
    .example = "stop_gradient(f32[2,3])",
    .given = true,
};

/* ---- one of its own ----------------------------------------------------------------- */

enum { ACTIVE, REVERSE };

/* A result for each active operand, of its type. */
static bool results_fit(Shape *s)
{
    const Graph *b = s->attr[REVERSE].body;
    int64_t n = 0, active = s->attr[ACTIVE].i;
    for (int i = 0; i < b->root.n; i++) {
        if (b->root.at[i].kind != ROOT_RESULT || ++n > active)
            continue;
        const Type *t = type_of(b, b->root.at[i].ref);
        if (!type_same(t, shape_arg(s, (int)n)))
            return shape_error(s, E0220, "a vjp gives %s as the cotangent of %s",
                               type_text(&s->g->cx->perm, t), shape_text(s, (int)n));
    }
    return n == active || shape_error(s, E0223, "a vjp gives %lld cotangents of %lld operands",
                                      (long long)n, (long long)active);
}

/* Argument 0 of the rule is the cotangent, the others are the operands. */
static bool rule_args_fit(Shape *s)
{
    const Graph *b = s->attr[REVERSE].body;
    for (Ref r = 1; r < (Ref)b->node.n; r++) {
        if (op_of(b, r) != OP_arg)
            continue;
        int64_t i = attr(b, r, 0)->i;
        if (i < 0 || i >= s->n_args)
            return shape_error(s, E0223, "a vjp has no argument %lld", (long long)i);
        if (!type_same(type_of(b, r), shape_arg(s, (int)i)))
            return shape_error(s, E0220, "a vjp takes %s, and is given %s",
                               type_text(&s->g->cx->perm, type_of(b, r)), shape_text(s, (int)i));
    }
    return true;
}

static bool custom_shape(Shape *s)
{
    int64_t active = s->attr[ACTIVE].i;
    if (active < 0 || active >= s->n_args)
        return shape_error(s, E0223, "`custom_vjp` of %lld operands has %d", (long long)active,
                           s->n_args - 1);
    for (int i = 0; i < s->n_args; i++)
        if (shape_arg(s, i)->rank < 0 || (i <= active && !shape_float(s, i)))
            return shape_error(s, E0221, "`custom_vjp` takes floats, and this is %s",
                               shape_text(s, i));
    s->type = *shape_arg(s, 0);
    return rule_args_fit(s) && results_fit(s);
}

Val elem_of_first(Elem *e, Ref n, const KAff *idx)
{
    return elem_at(e, arg(elem_graph(e), n, 0), idx);
}

/* The rule's nodes, put where the cotangent is. */
static void custom_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    const Graph *b = attr(g, n, REVERSE)->body;
    int result = 1;
    ArenaMark mark = arena_mark(&g->cx->scratch);
    Ref *map = NEW_ARRAY(&g->cx->scratch, Ref, b->node.n);
    for (Ref r = 1; r < (Ref)b->node.n; r++) {
        int64_t i = op_of(b, r) == OP_arg ? attr(b, r, 0)->i : -1;
        if (i < 0)
            map[r] = graph_copy_node(g, b, r, map);
        else
            map[r] = i == 0 ? ct : arg(g, n, (int)i);
    }
    for (int i = 0; i < b->root.n; i++)
        if (b->root.at[i].kind == ROOT_RESULT)
            d[result++] = map[b->root.at[i].ref];
    arena_reset(&g->cx->scratch, mark);
}

const Op op_custom_vjp = {
    .name = "custom_vjp",
    .n_args = -1,
    .kind = OP_VIEW,
    .attrs = {{"active", ATTR_INT}, {"reverse", ATTR_BODY}},
    .shape = custom_shape,
    .simple = simple_once_reversed,
    .elem = elem_of_first,
    .vjp = custom_vjp,
    .doc =
        "Its first operand, whose gradient goes by a rule to the `active` ones behind it; the "
        "rest is what the rule reads besides. The rule's argument 0 is the cotangent, argument i "
        "is operand i; its results are cotangents of the active operands. Nothing goes to "
        "the first operand itself.",
    .example = "custom_vjp(f32[3], f32[3], i32, active = 1, reverse = {"
               " %1 = arg(index = 0, dtype = f32, shape = [3])"
               " %2 = arg(index = 1, dtype = f32, shape = [3]) %3 = mul(%1, %2) result %3 })",
    .given = true,
};
