/* Several values under one Ref: results of a scan, and cotangents of such results. */
#include "../graph/op.h"

static bool tuple_shape(Shape *s)
{
    s->type = (Type){.rank = -1, .dim = {s->n_args}};
    return true;
}

static void tuple_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    int n_args = node(g, n)->n_args;
    for (int i = 0; i < n_args; i++)
        d[i] = arg(g, ct, i) == NONE ? REF_ZERO : arg(g, ct, i);
}

const Op op_tuple = {
    .name = "tuple",
    .n_args = -1,
    .kind = OP_TUPLE,
    .shape = tuple_shape,
    .vjp = tuple_vjp,
    .doc = "Several values as one; `pick` takes them out again.",
    .example = "tuple(f32[2], f32[3,1])",
};

static bool pick_shape(Shape *s)
{
    int64_t i = shape_attr(s, "index")->i;
    if (shape_arg(s, 0)->rank >= 0)
        return shape_error(s, E0221, "`pick` takes a tuple, not %s", shape_text(s, 0));
    if (i < 0 || i >= tuple_size(s->g, s->args[0]))
        return shape_error(s, E0222, "a tuple of %d values has no value %lld",
                           tuple_size(s->g, s->args[0]), (long long)i);
    s->type = tuple_type(s->g, s->args[0], (int)i);
    return true;
}

/* A tuple that has ct in its place, and zeros elsewhere. */
static void pick_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    ArenaMark mark = arena_mark(&g->cx->scratch);
    int size = tuple_size(g, arg(g, n, 0));
    Ref *member = NEW_ARRAY(&g->cx->scratch, Ref, size);
    member[attr(g, n, 0)->i] = ct;
    d[0] = g_tuple(g, member, size);
    arena_reset(&g->cx->scratch, mark);
}

static Ref pick_simple(Graph *g, Ref n)
{
    Ref tuple = arg(g, n, 0);
    int i = (int)attr(g, n, 0)->i;
    if (op_of(g, tuple) == OP_tuple)
        return arg(g, tuple, i);
    int count = op_attr(optab[op_of(g, tuple)], "count");
    int carries = op_attr(optab[op_of(g, tuple)], "carries");
    bool never_runs = count >= 0 && attr(g, tuple, count)->i == 0;
    return never_runs && i < attr(g, tuple, carries)->i ? arg(g, tuple, i) : NONE;
}

const Op op_pick = {
    .name = "pick",
    .n_args = 1,
    .kind = OP_TUPLE,
    .attrs = {{"index", ATTR_INT}},
    .shape = pick_shape,
    .simple = pick_simple,
    .vjp = pick_vjp,
    .doc = "One value of a tuple.",
    .example = "pick(tuple(f32[2], f32[3,1]), index = 1)",
};
