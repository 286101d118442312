/* How rows go through ops: which rows of its operands a row of a value is made of. */
#include <string.h>
#include "chunk.h"

static int attr_int(const Graph *g, Ref r, const char *name)
{
    return (int)attr(g, r, op_attr(optab[op_of(g, r)], name))->i;
}

/* The axis of x before which as many elements stand as before axis a of r. */
static int reshaped_axis(const Graph *g, Ref r, Ref x, int a)
{
    int64_t before = 1, seen = 1;
    for (int i = 0; i < a; i++)
        before *= dim(g, r, i);
    for (int p = 0; p < rank(g, x); p++) {
        if (seen == before && dim(g, x, p) == dim(g, r, a))
            return p;
        seen *= dim(g, x, p);
    }
    return MIXED;
}

static int broadcast_axis(const Graph *g, Ref r, Ref x, int a)
{
    int p = a - (rank(g, r) - rank(g, x));
    return p < 0 || dim(g, x, p) != dim(g, r, a) ? WHOLE : p;
}

/* Of an operand of a contraction: the one axis that is index a, and nothing else. */
static int mapped_axis(const Graph *g, Ref r, int which, int a)
{
    const Attr *map = attr(g, r, op_attr(&op_contract, which == 0 ? "x" : "y"));
    int axis = WHOLE;
    for (int d = 0; d < map->n; d++) {
        const MapDim *m = &map->map[d];
        if (map_coef(m, a) == 0)
            continue;
        bool plain = m->n == 1 && m->base == 0 && m->coef[0] == 1;
        if (!plain || axis != WHOLE || dim(g, arg(g, r, which), d) != dim(g, r, a))
            return MIXED;
        axis = d;
    }
    return axis;
}

static bool all_along(const Graph *g, Ref r, int a, int want[])
{
    for (int i = 0; i < node(g, r)->n_args; i++)
        want[i] = a;
    return true;
}

static bool reduced_axes(const Graph *g, Ref r, int a, int want[])
{
    int axis = attr_int(g, r, "axis");
    bool keep = rank(g, r) == rank(g, arg(g, r, 0));
    want[0] = keep || a < axis ? a : a + 1;
    return !keep || a != axis;
}

static bool gathered_axes(const Graph *g, Ref r, int a, int want[])
{
    int n = rank(g, arg(g, r, 1));
    want[0] = a < n ? WHOLE : a - n + 1;
    want[1] = a < n ? a : WHOLE;
    return true;
}

static bool windowed_axes(const Graph *g, Ref r, int a, int want[])
{
    int axis = attr_int(g, r, "axis");
    want[0] = a < axis ? a : a - 1;
    return a != axis && a != axis + 1;
}

/* Draws are numbered: seed, step and key are the same for all. */
static bool drawn_axes(const Graph *g, Ref r, int a, int want[])
{
    int n = node(g, r)->n_args;
    for (int i = 0; i < n; i++)
        want[i] = i == n - 1 ? a : WHOLE;
    return is_draw(g, r) && n == NUMBERED_DRAW;
}

bool operand_axes(const Graph *g, Ref r, int a, int want[])
{
    if (optab[op_of(g, r)]->kind == OP_POINTWISE && op_of(g, r) != OP_custom_vjp)
        return all_along(g, r, a, want);
    switch (op_of(g, r)) {
    case OP_sum:
    case OP_prod:
    case OP_reduce_max:
    case OP_reduce_min:
    case OP_all:
    case OP_argmax:
    case OP_argmin:
        return reduced_axes(g, r, a, want);
    case OP_transpose:
        want[0] = (int)attr(g, r, 0)->ints[a];
        return true;
    case OP_reshape:
        want[0] = reshaped_axis(g, r, arg(g, r, 0), a);
        return want[0] != MIXED;
    case OP_broadcast:
        want[0] = broadcast_axis(g, r, arg(g, r, 0), a);
        return true;
    case OP_slice:
    case OP_pad:
    case OP_concat:
    case OP_cumsum:
        all_along(g, r, a, want);
        return a != attr_int(g, r, "axis");
    case OP_window:
        return windowed_axes(g, r, a, want);
    case OP_gather:
        return gathered_axes(g, r, a, want);
    case OP_take_along:
        want[0] = a < attr_int(g, r, "axis") ? a : a + 1;
        want[1] = a;
        return true;
    case OP_random_bits:
    case OP_uniform:
    case OP_normal:
        return drawn_axes(g, r, a, want);
    case OP_contract:
        want[0] = mapped_axis(g, r, 0, a);
        want[1] = mapped_axis(g, r, 1, a);
        return want[0] != MIXED && want[1] != MIXED;
    default:
        return false;
    }
}

int result_axis(const Graph *g, Ref r, int i, int axis)
{
    ArenaMark mark = arena_mark(&g->cx->scratch);
    int *want = NEW_ARRAY(&g->cx->scratch, int, node(g, r)->n_args), found = MIXED;
    for (int a = 0; found == MIXED && a < rank(g, r); a++)
        if (operand_axes(g, r, a, want) && want[i] == axis)
            found = a;
    arena_reset(&g->cx->scratch, mark);
    return found;
}

Ref copy_rows(Graph *body, const Graph *from, Ref r, const Ref *args, int a, int64_t rows)
{
    static const char *const sized[] = {"shape", "extent"};
    const Op *op = optab[op_of(from, r)];
    Attr attrs[MAX_ATTRS];
    int64_t size[MAX_INDICES];
    for (int i = 0; i < op_attrs(op); i++)
        attrs[i] = *attr(from, r, i);
    for (size_t s = 0; a != WHOLE && s < sizeof sized / sizeof *sized; s++) {
        int i = op_attr(op, sized[s]);
        if (i < 0)
            continue;
        memcpy(size, attrs[i].ints, sizeof *size * (size_t)attrs[i].n);
        size[a] = rows;
        attrs[i].ints = size;
    }
    body->origin = origin_unkept(body->cx, node(from, r)->origin); /* all of it is kept, outside */
    return g_node(body, op_of(from, r), args, node(from, r)->n_args, attrs);
}

bool is_draw(const Graph *g, Ref r)
{
    return op_of(g, r) == OP_random_bits || op_of(g, r) == OP_uniform || op_of(g, r) == OP_normal;
}

/* By element of a type: its place among all. */
static Ref places(Graph *g, const Type *of)
{
    Type t = *of;
    t.dtype = I64;
    int64_t stride = 1;
    Ref sum = NONE;
    for (int a = t.rank - 1; a >= 0; a--) {
        Ref index = g_iota(g, t, a);
        Ref by = g_const_int(g, I64, stride);
        by = g_broadcast(g, by, t.rank, t.dim);
        index = g_mul(g, index, by);
        sum = sum == NONE ? index : g_add(g, index, sum);
        stride *= t.dim[a];
    }
    return sum;
}

Ref number_draw(Graph *to, const Graph *from, Ref r, const Ref *map)
{
    Ref args[NUMBERED_DRAW];
    if (node(from, r)->n_args == NUMBERED_DRAW || rank(from, r) == 0)
        return graph_copy_node(to, from, r, map);
    to->origin = node(from, r)->origin;
    for (int i = 0; i < NUMBERED_DRAW - 1; i++)
        args[i] = map[arg(from, r, i)];
    args[NUMBERED_DRAW - 1] = places(to, type_of(from, r));
    return g_node(to, op_of(from, r), args, NUMBERED_DRAW, node(from, r)->attr);
}
