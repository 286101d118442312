/* Random numbers: philox of (seed, key) at counter (element, step). A draw depends on
 * nothing else: neither order, nor threads, nor recomputation change it. The key is an
 * operand, so that the draws of all layers have one kernel. Elements are numbered in their
 * order, or as a fourth operand says: of a part of a draw, as in the whole of it.
 * source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011). */
#include "../graph/op.h"

enum { SEED, STEP, KEY, ELEMENT };
#define RANDOM_ATTRS                                                                               \
    {                                                                                              \
        {"dtype", ATTR_DTYPE},                                                                     \
        {                                                                                          \
            "shape", ATTR_INTS                                                                     \
        }                                                                                          \
    }
/* Of the second stream of a draw that needs two. */
#define SECOND 0x9e3779b97f4a7c15u

static bool random_shape(Shape *s)
{
    if (s->n_args != ELEMENT && s->n_args != ELEMENT + 1)
        return shape_error(s, E0223, "`%s` takes seed, step, key, and numbers of elements or none",
                           op_word(s->op));
    for (int i = 0; i < ELEMENT; i++)
        if (shape_arg(s, i)->rank != 0 || shape_arg(s, i)->dtype != I64)
            return shape_error(s, E0221, "`%s` takes seed, step and key as i64, not %s",
                               op_word(s->op), shape_text(s, i));
    if (!shape_declared(s))
        return false;
    Type number = s->type;
    number.dtype = I64;
    return s->n_args == ELEMENT || type_same(shape_arg(s, ELEMENT), &number) ||
           shape_error(s, E0220, "elements of `%s` are numbered by %s, not %s", op_word(s->op),
                       type_text(&s->g->cx->perm, &number), shape_text(s, ELEMENT));
}

static bool bits_shape(Shape *s)
{
    if (!random_shape(s))
        return false;
    return s->type.dtype == I32 ||
           shape_error(s, E0221, "`random_bits` gives i32, not %s", dtype_name(s->type.dtype));
}

static bool real_shape(Shape *s)
{
    if (!random_shape(s))
        return false;
    return dtype_is_float(s->type.dtype) || shape_error(s, E0221, "`%s` gives floats, not %s",
                                                        op_word(s->op), dtype_name(s->type.dtype));
}

/* The number of the element in the draw. */
static Val element(Elem *e, Ref n, const KAff *idx)
{
    const Graph *g = elem_graph(e);
    if (node(g, n)->n_args > ELEMENT)
        return elem_at(e, arg(g, n, ELEMENT), idx);
    KAff number = k_aff(0);
    int64_t stride = 1;
    for (int i = rank(g, n) - 1; i >= 0; i--) {
        number = k_aff_add(number, k_aff_scale(idx[i], stride));
        stride *= dim(g, n, i);
    }
    return k_index(elem_kernel(e), I64, number);
}

/* 32 bits of the element; stream: 0, or SECOND. */
static Val bits(Elem *e, Ref n, const KAff *idx, uint64_t stream)
{
    const Graph *g = elem_graph(e);
    Kernel *k = elem_kernel(e);
    KAff none[1] = {{0}};
    Val seed = elem_at(e, arg(g, n, SEED), none);
    Val step = elem_at(e, arg(g, n, STEP), none);
    Val key = elem_at(e, arg(g, n, KEY), none);
    if (seed == 0 || step == 0 || key == 0)
        return 0;
    Val mixed = k_binary(k, KI_XOR, seed, key);
    if (stream != 0) {
        Val other = k_const_int(k, I64, (int64_t)stream);
        mixed = k_binary(k, KI_XOR, mixed, other);
    }
    Val number = element(e, n, idx);
    return number == 0 ? 0 : k_random(k, mixed, number, step);
}

/* (bits >> 8) * 2^-24: each of them is a float, below 1. */
static Val unit(Kernel *k, DType t, Val b)
{
    Val eight = k_const_int(k, I32, 8);
    Val high = k_binary(k, KI_SHR, b, eight);
    Val whole = k_cast(k, t, high);
    Val scale = k_const(k, t, 0x1p-24);
    return k_binary(k, KI_MUL, whole, scale);
}

static DType wide_of(DType t)
{
    return t == F64 ? F64 : F32;
}

static Val bits_elem(Elem *e, Ref n, const KAff *idx)
{
    return bits(e, n, idx, 0);
}

static Val uniform_elem(Elem *e, Ref n, const KAff *idx)
{
    DType t = type_of(elem_graph(e), n)->dtype;
    Val b = bits(e, n, idx, 0);
    if (b == 0)
        return 0;
    Val u = unit(elem_kernel(e), wide_of(t), b);
    return k_cast(elem_kernel(e), t, u);
}

/* sqrt(-2 log u) cos(2 pi v), u in (0, 1], v in [0, 1).
 * source: Box & Muller, A note on the generation of random normal deviates (1958). */
static Val normal_elem(Elem *e, Ref n, const KAff *idx)
{
    Kernel *k = elem_kernel(e);
    DType t = type_of(elem_graph(e), n)->dtype, wide = wide_of(t);
    Val first = bits(e, n, idx, 0);
    Val second = bits(e, n, idx, SECOND);
    if (first == 0 || second == 0)
        return 0;
    Val from_zero = unit(k, wide, first);
    Val one = k_const(k, wide, 1);
    Val u = k_binary(k, KI_SUB, one, from_zero);
    Val log = k_unary(k, KI_LOG, u);
    Val minus_two = k_const(k, wide, -2);
    Val square = k_binary(k, KI_MUL, minus_two, log);
    Val radius = k_unary(k, KI_SQRT, square);
    Val v = unit(k, wide, second);
    Val turn = k_const(k, wide, 6.283185307179586477);
    Val angle = k_binary(k, KI_MUL, turn, v);
    Val across = k_unary(k, KI_COS, angle);
    Val z = k_binary(k, KI_MUL, radius, across);
    return k_cast(k, t, z);
}

static const char no_floats[] = "a draw depends on the seed, the step and its place alone";

const Op op_random_bits = {
    .name = "random_bits",
    .n_args = -1,
    .kind = OP_VIEW,
    .attrs = RANDOM_ATTRS,
    .shape = bits_shape,
    .elem = bits_elem,
    .nondiff = no_floats,
    .doc = "32 random bits for each element, keyed by (seed, step, key, element). A fourth operand "
           "numbers the elements of a part of a draw as in the whole one.",
    .example = "random_bits(i64, i64, i64, dtype = i32, shape = [2,3]); "
               "random_bits(i64, i64, i64, i64[2,3], dtype = i32, shape = [2,3])",
    .source = "Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011)",
};

const Op op_uniform = {
    .name = "uniform",
    .n_args = -1,
    .kind = OP_VIEW,
    .attrs = RANDOM_ATTRS,
    .shape = real_shape,
    .elem = uniform_elem,
    .nondiff = no_floats,
    .doc = "Uniform multiples of 2^-24 in [0, 1); f16 and bf16 round them, and may give 1.",
    .example = "uniform(i64, i64, i64, dtype = f32, shape = [2,3]); "
               "uniform(i64, i64, i64, i64[2,3], dtype = f32, shape = [2,3])",
    .source = "Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011)",
};

const Op op_normal = {
    .name = "normal",
    .n_args = -1,
    .kind = OP_VIEW,
    .attrs = RANDOM_ATTRS,
    .shape = real_shape,
    .elem = normal_elem,
    .nondiff = no_floats,
    .doc = "Normal with mean 0 and deviation 1, from two draws of 24 bits: none is beyond 5.8.",
    .example = "normal(i64, i64, i64, dtype = f32, shape = [2,3]); "
               "normal(i64, i64, i64, i64[2,3], dtype = f32, shape = [2,3])",
    .source = "Box & Muller, A note on the generation of random normal deviates (1958)",
};
