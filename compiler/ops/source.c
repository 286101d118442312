/* Values that are not computed: what the caller gives, what lives between calls,
 * constants, indices. */
#include <string.h>
#include "../graph/op.h"

/* The value at attribute `i` of a constant. */
static Val const_elem(Elem *e, Ref n, const KAff *idx)
{
    (void)idx;
    const Graph *g = elem_graph(e);
    DType t = type_of(g, n)->dtype;
    const Attr *a = attr(g, n, 1);
    if (a->kind == ATTR_INT)
        return k_const_int(elem_kernel(e), t, a->i);
    return k_const(elem_kernel(e), t, a->f);
}

static bool const_shape(Shape *s)
{
    s->type = type_scalar((DType)shape_attr(s, "dtype")->i);
    return true;
}

static bool literal_shape(Shape *s)
{
    if (!shape_declared(s))
        return false;
    if (!type_fits(&s->type))
        return true; /* the limits are reported by the caller */
    int64_t bytes = shape_attr(s, "data")->n;
    if (bytes == type_bytes(&s->type))
        return true;
    return shape_error(s, E0223, "%lld bytes of elements are given for %s", (long long)bytes,
                       type_text(&s->g->cx->perm, &s->type));
}

static bool iota_shape(Shape *s)
{
    int64_t axis = shape_attr(s, "axis")->i;
    if (!shape_declared(s))
        return false;
    if (s->type.dtype != I32 && s->type.dtype != I64)
        return shape_error(s, E0221, "`iota` gives i32 or i64, not %s", dtype_name(s->type.dtype));
    if (axis < 0 || axis >= s->type.rank)
        return shape_error(s, E0222, "%s has no axis %lld", type_text(&s->g->cx->perm, &s->type),
                           (long long)axis);
    if (s->type.dtype == I32 && s->type.dim[axis] > (int64_t)INT32_MAX + 1)
        return shape_error(s, E0911, "an i32 cannot count an axis of %lld",
                           (long long)s->type.dim[axis]);
    return true;
}

static Val iota_elem(Elem *e, Ref n, const KAff *idx)
{
    const Graph *g = elem_graph(e);
    return k_index(elem_kernel(e), type_of(g, n)->dtype, idx[attr(g, n, 2)->i]);
}

#define DECLARED                                                                                   \
    {"dtype", ATTR_DTYPE},                                                                         \
    {                                                                                              \
        "shape", ATTR_INTS                                                                         \
    }
#define NUMBERED                                                                                   \
    {                                                                                              \
        {"index", ATTR_INT}, DECLARED                                                              \
    }
static const char no_operands[] = "it depends on nothing";

const Op op_input = {
    .name = "input",
    .n_args = 0,
    .kind = OP_SOURCE,
    .attrs = NUMBERED,
    .shape = shape_declared,
    .nondiff = no_operands,
    .doc = "A tensor that the caller gives, by its number.",
    .example = "input(index = 0, dtype = f32, shape = [2,3])",
};

const Op op_slot = {
    .name = "slot",
    .n_args = 0,
    .kind = OP_SOURCE,
    .attrs = NUMBERED,
    .shape = shape_declared,
    .nondiff = no_operands,
    .doc = "Pinned storage (a parameter, a state), by its number: its value before this step.",
    .example = "slot(index = 0, dtype = f32, shape = [2,3])",
};

const Op op_arg = {
    .name = "arg",
    .n_args = 0,
    .kind = OP_SOURCE,
    .attrs = NUMBERED,
    .shape = shape_declared,
    .nondiff = no_operands,
    .doc = "An argument of the body it stands in, by its number.",
    .example = "arg(index = 0, dtype = f32, shape = [2,3])",
};

const Op op_const = {
    .name = "const",
    .n_args = 0,
    .kind = OP_SOURCE,
    .attrs = {{"dtype", ATTR_DTYPE}, {"value", ATTR_FLOAT}},
    .shape = const_shape,
    .elem = const_elem,
    .nondiff = no_operands,
    .doc = "One number, rounded once to its type.",
    .example = "const(dtype = f32, value = 0.1); const(dtype = i64, value = -3); "
               "const(dtype = bool, value = 1); const(dtype = f64, value = -inf)",
};

const Op op_literal = {
    .name = "literal",
    .n_args = 0,
    .kind = OP_SOURCE,
    .attrs = {DECLARED, {"data", ATTR_DATA}},
    .shape = literal_shape,
    .nondiff = no_operands,
    .doc = "A tensor of known numbers, in row-major order.",
    .example = "literal(dtype = f32, shape = [2,2], data = [1, 0.5, -0, 3]); "
               "literal(dtype = i32, shape = [3], data = [1, -2, 3])",
};

const Op op_iota = {
    .name = "iota",
    .n_args = 0,
    .kind = OP_SOURCE,
    .attrs = {DECLARED, {"axis", ATTR_INT}},
    .shape = iota_shape,
    .elem = iota_elem,
    .nondiff = no_operands,
    .doc = "The index of each element along an axis.",
    .example =
        "iota(dtype = i32, shape = [3,4], axis = 1); iota(dtype = i64, shape = [5], axis = 0)",
};
