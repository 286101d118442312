/* Views of all elements: reshape, transpose, broadcast. Parts and joins: slice.c;
 * windows: window.c. */
#include "../graph/op.h"

/* "[2,3]" of an attribute, for messages */
static const char *dims_text(const Shape *s, const Attr *a)
{
    Text t;
    text_init(&t, &s->g->cx->perm);
    text_char(&t, '[');
    for (int i = 0; i < a->n; i++)
        text_add(&t, "%s%lld", i == 0 ? "" : ",", (long long)a->ints[i]);
    text_char(&t, ']');
    return t.at;
}

static bool no_tuple(Shape *s)
{
    if (shape_arg(s, 0)->rank >= 0)
        return true;
    return shape_error(s, E0221, "`%s` takes no tuple", op_word(s->op));
}

/* A view of one number repeated is that number repeated; of the same type as x: x. */
static Ref plain_simple(Graph *g, Ref n)
{
    Ref x = arg(g, n, 0), from = repeated_scalar(g, x);
    Type t = *type_of(g, n);
    if (type_same(&t, type_of(g, x)))
        return op_of(g, n) == OP_reshape || op_of(g, n) == OP_broadcast ? x : NONE;
    if (from == NONE || (op_of(g, n) == OP_broadcast && from == x))
        return NONE;
    return g_broadcast(g, from, t.rank, t.dim);
}

/* ---- reshape ----------------------------------------------------------------------- */

static bool reshape_shape(Shape *s)
{
    const Attr *shape = shape_attr(s, "shape");
    const Type *x = shape_arg(s, 0);
    if (!no_tuple(s))
        return false;
    s->type = type_make(x->dtype, shape->n, shape->ints);
    if (shape->n > MAX_RANK || !type_fits(&s->type))
        return true; /* reported by the caller */
    if (type_elems(&s->type) == type_elems(x))
        return true;
    return shape_error(s, E0223, "cannot reshape %s of %lld elements to %s of %lld",
                       shape_text(s, 0), (long long)type_elems(x), dims_text(s, shape),
                       (long long)type_elems(&s->type));
}

/* Axes [from, to) of the result and of x that have the same product: cut so that each
 * group is as small as can be, and an axis that is only renamed stays alone. */
typedef struct Group {
    int from, to, x_from, x_to;
} Group;

static bool next_group(const Type *r, const Type *x, Group *p)
{
    p->from = p->to;
    p->x_from = p->x_to;
    if (p->from == r->rank && p->x_from == x->rank)
        return false;
    int64_t here = 1, there = 1;
    do {
        bool more = p->to < r->rank && (here <= there || p->x_to == x->rank);
        if (more)
            here *= r->dim[p->to++];
        else
            there *= x->dim[p->x_to++];
    } while (here != there);
    return true;
}

/* Row-major offset within the group, taken apart by x's axes. */
static bool group_index(Elem *e, const Type *r, const Type *x, const Group *p, const KAff *idx,
                        KAff *at)
{
    KAff offset = k_aff(0);
    int64_t stride = 1;
    for (int i = p->to - 1; i >= p->from; i--) {
        if (r->dim[i] != 1)
            offset = k_aff_add(offset, k_aff_scale(idx[i], stride));
        stride *= r->dim[i];
    }
    int first = p->x_from;
    while (first < p->x_to && x->dim[first] == 1)
        at[first++] = k_aff(0);
    for (int i = p->x_to - 1; i > first; i--) {
        KAff q;
        if (!elem_divide(e, &offset, x->dim[i], &q, &at[i]))
            return false;
        offset = q;
    }
    if (first < p->x_to)
        at[first] = offset;
    return true;
}

static Val reshape_elem(Elem *e, Ref n, const KAff *idx)
{
    const Graph *g = elem_graph(e);
    Ref x = arg(g, n, 0);
    KAff at[MAX_RANK] = {0};
    Group p = {0};
    bool empty = type_elems(type_of(g, n)) == 0; /* no element is ever asked for */
    while (!empty && next_group(type_of(g, n), type_of(g, x), &p))
        if (!group_index(e, type_of(g, n), type_of(g, x), &p, idx, at))
            return 0;
    return elem_at(e, x, at);
}

static void reshape_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    Type t = *type_of(g, arg(g, n, 0));
    d[0] = g_reshape(g, ct, t.rank, t.dim);
}

static Ref reshape_simple(Graph *g, Ref n)
{
    Ref x = arg(g, n, 0), plain = plain_simple(g, n);
    Type t = *type_of(g, n);
    if (plain != NONE || op_of(g, x) != OP_reshape)
        return plain;
    return g_reshape(g, arg(g, x, 0), t.rank, t.dim);
}

const Op op_reshape = {
    .name = "reshape",
    .n_args = 1,
    .kind = OP_VIEW,
    .attrs = {{"shape", ATTR_INTS}},
    .shape = reshape_shape,
    .simple = reshape_simple,
    .elem = reshape_elem,
    .vjp = reshape_vjp,
    .doc = "The same elements in row-major order, in another shape.",
    .example = "reshape(f32[2,6], shape = [3,4]); reshape(f32[2,3,4], shape = [6,4]); "
               "reshape(f32[6,4], shape = [2,3,1,4]); reshape(f32[1], shape = []); "
               "reshape(f32[0,3], shape = [5,0])",
};

/* ---- transpose ------------------------------------------------------------------------ */

static bool transpose_shape(Shape *s)
{
    const Attr *perm = shape_attr(s, "perm");
    const Type *x = shape_arg(s, 0);
    bool seen[MAX_RANK] = {false};
    bool fits = no_tuple(s) && perm->n == x->rank;
    s->type = *x;
    for (int i = 0; fits && i < perm->n; i++) {
        int64_t p = perm->ints[i];
        fits = p >= 0 && p < x->rank && !seen[p];
        if (fits) {
            seen[p] = true;
            s->type.dim[i] = x->dim[p];
        }
    }
    return fits || shape_error(s, E0222, "%s has no order of axes %s", shape_text(s, 0),
                               dims_text(s, perm));
}

static Val transpose_elem(Elem *e, Ref n, const KAff *idx)
{
    const Graph *g = elem_graph(e);
    KAff at[MAX_RANK];
    for (int i = 0; i < rank(g, n); i++)
        at[attr(g, n, 0)->ints[i]] = idx[i];
    return elem_at(e, arg(g, n, 0), at);
}

static void transpose_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    int back[MAX_RANK];
    for (int i = 0; i < rank(g, n); i++)
        back[attr(g, n, 0)->ints[i]] = i;
    d[0] = g_transpose(g, ct, back);
}

static Ref transpose_simple(Graph *g, Ref n)
{
    Ref x = arg(g, n, 0), plain = plain_simple(g, n);
    const int64_t *p = attr(g, n, 0)->ints;
    int perm[MAX_RANK];
    bool moved = false;
    for (int i = 0; i < rank(g, n); i++)
        moved = moved || p[i] != i;
    if (plain != NONE || !moved)
        return moved ? plain : x;
    if (op_of(g, x) != OP_transpose)
        return NONE;
    for (int i = 0; i < rank(g, n); i++)
        perm[i] = (int)attr(g, x, 0)->ints[p[i]];
    return g_transpose(g, arg(g, x, 0), perm);
}

const Op op_transpose = {
    .name = "transpose",
    .n_args = 1,
    .kind = OP_VIEW,
    .attrs = {{"perm", ATTR_INTS}},
    .shape = transpose_shape,
    .simple = transpose_simple,
    .elem = transpose_elem,
    .vjp = transpose_vjp,
    .doc = "Axis i of the result is axis perm[i] of x.",
    .example = "transpose(f32[2,3], perm = [1,0]); transpose(f32[2,3,4], perm = [2,0,1])",
};

/* ---- broadcast ------------------------------------------------------------------------- */

static bool broadcast_shape(Shape *s)
{
    const Attr *shape = shape_attr(s, "shape");
    const Type *x = shape_arg(s, 0);
    if (!no_tuple(s))
        return false;
    s->type = type_make(x->dtype, shape->n, shape->ints);
    if (shape->n > MAX_RANK)
        return true; /* reported by the caller */
    int more = shape->n - x->rank;
    bool fits = more >= 0;
    for (int i = 0; fits && i < x->rank; i++)
        fits = x->dim[i] == 1 || x->dim[i] == shape->ints[i + more];
    return fits ||
           shape_error(s, E0220, "cannot repeat %s to %s", shape_text(s, 0), dims_text(s, shape));
}

static Val broadcast_elem(Elem *e, Ref n, const KAff *idx)
{
    const Graph *g = elem_graph(e);
    Ref x = arg(g, n, 0);
    int more = rank(g, n) - rank(g, x);
    KAff at[MAX_RANK];
    for (int i = 0; i < rank(g, x); i++)
        at[i] = dim(g, x, i) == 1 ? k_aff(0) : idx[i + more];
    return elem_at(e, x, at);
}

static void broadcast_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    Type t = *type_of(g, arg(g, n, 0));
    d[0] = g_sum_to(g, ct, &t);
}

static Ref broadcast_simple(Graph *g, Ref n)
{
    Ref x = arg(g, n, 0), plain = plain_simple(g, n);
    Type t = *type_of(g, n);
    if (plain != NONE || op_of(g, x) != OP_broadcast)
        return plain;
    return g_broadcast(g, arg(g, x, 0), t.rank, t.dim);
}

const Op op_broadcast = {
    .name = "broadcast",
    .n_args = 1,
    .kind = OP_VIEW,
    .attrs = {{"shape", ATTR_INTS}},
    .shape = broadcast_shape,
    .simple = broadcast_simple,
    .elem = broadcast_elem,
    .vjp = broadcast_vjp,
    .doc = "Repeated to a shape by NumPy's rule: axes are matched from the last, extent 1 is "
           "repeated.",
    .example = "broadcast(f32[3], shape = [2,3]); broadcast(f32[2,1,3], shape = [4,2,5,3]); "
               "broadcast(f32, shape = [2]); broadcast(f32[1], shape = [0])",
};
