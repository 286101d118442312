/* Constant folding. The value comes from a kernel of the node, run by the exact
 * interpreter: the same bits as at run time. */
#include <math.h>
#include <string.h>
#include "../kernel/denormals.h"
#include "elem.h"
#include "pass.h"

enum { MAX_FOLDED = 4096, SMALL = 64 };

/* The `const` node behind views, or NONE. */
static Ref constant_of(const Graph *g, Ref x)
{
    double value;
    if (!const_value(g, x, &value))
        return NONE;
    while (op_of(g, x) != OP_const)
        x = arg(g, x, 0);
    return x;
}

/* What is folded: a pointwise op of repeated numbers (as scalars), or an op of literals. */
typedef enum Case { NOT_CONSTANT, REPEATED, LITERALS } Case;

/* A cast to a half that rounds is left to run: without rounding, in double, the graph is then the
 * function that its gradient is of, and differences can judge it. */
static bool rounds(const Graph *g, Ref n)
{
    DType t = type_of(g, n)->dtype;
    double x;
    if (op_of(g, n) != OP_cast || !dtype_is_half(t))
        return false;
    return !const_value(g, arg(g, n, 0), &x) || (dtype_round(t, x) != x && !isnan(x));
}

static Case classify(const Graph *g, Ref n)
{
    const Op *op = optab[op_of(g, n)];
    int n_args = node(g, n)->n_args;
    int64_t literals = 0;
    if (n_args == 0 || (op->scalar == NULL && op->elem == NULL) || rounds(g, n))
        return NOT_CONSTANT;
    for (int i = 0; i < n_args; i++) {
        Ref x = arg(g, n, i);
        if (op_of(g, x) == OP_literal)
            literals += type_elems(type_of(g, x));
        else if (constant_of(g, x) == NONE)
            return NOT_CONSTANT;
    }
    int64_t elems = type_elems(type_of(g, n));
    if (literals == 0)
        return op->kind == OP_POINTWISE ? REPEATED : NOT_CONSTANT;
    return literals <= MAX_FOLDED && (elems <= literals || elems <= SMALL) ? LITERALS
                                                                           : NOT_CONSTANT;
}

/* The node alone in a graph of its own. */
static Ref isolate(Graph *to, const Graph *g, Ref n, Case how)
{
    int n_args = node(g, n)->n_args;
    Ref *args = NEW_ARRAY(&to->arena, Ref, n_args);
    for (int i = 0; i < n_args; i++) {
        Ref x = arg(g, n, i), c = constant_of(g, x);
        const Type *t = type_of(g, x);
        args[i] = graph_copy_node(to, g, c != NONE ? c : x, NULL);
        if (how == LITERALS && c != NONE)
            args[i] = g_broadcast(to, args[i], t->rank, t->dim);
    }
    return g_node(to, op_of(g, n), args, n_args, node(g, n)->attr);
}

/* In double it is another number, and that is left to run as well: see rounds(). */
static bool is_rounded(const Kernel *k, DType t, const void *data, Arena *a)
{
    uint16_t half;
    double wide;
    KMem mem = {&wide, NULL};
    if (!dtype_is_half(t))
        return false;
    memcpy(&half, data, sizeof half);
    kernel_run(k, K_WIDE, &mem, a);
    return wide != (double)(t == F16 ? f16_to_f32(half) : bf16_to_f32(half)) && !isnan(wide);
}

/* Elements of n, in row-major order, or NULL if its kernel would need more than one, or it is to be
 * left as it is. */
static void *evaluate(Ctx *cx, const Graph *g, Ref n)
{
    Arena *a = &cx->scratch;
    const Type *t = type_of(g, n);
    bool *stored = NEW_ARRAY(a, bool, g->node.n);
    for (Ref r = 1; r < n; r++)
        stored[r] = op_of(g, r) == OP_literal;
    Kernel *k = kernel_new(a, K_LOOP, "fold");
    Elem *e = NEW(a, Elem);
    elem_init(e, k, g, a, stored);
    KAff idx[MAX_RANK];
    Val first = 0;
    for (int i = 0; i < t->rank; i++) {
        Val loop = k_par(k, t->dim[i]);
        idx[i] = k_aff_val(loop, 1);
        first = i == 0 ? loop : first;
    }
    Val v = elem_at(e, n, idx);
    if (e->trouble != FINE)
        return NULL;
    int out = elem_out_buffer(e, n, 0, t->dtype, type_elems(t));
    k_store(k, out, elem_linear(t, idx), v);
    if (first != 0)
        k_end(k, first);
    k_finish(k);
    KMem *mem = NEW_ARRAY(a, KMem, k->buf.n);
    for (int i = 0; i < out; i++) {
        const Attr *data = attr(g, e->operand.at[i], op_attr(&op_literal, "data"));
        mem[i].data = arena_alloc(a, (size_t)data->n);
        memcpy(mem[i].data, data->data, (size_t)data->n);
    }
    mem[out].data = arena_alloc(a, (size_t)type_bytes(t));
    uint32_t mode = denormals_begin(cx->flush);
    kernel_run(k, K_EXACT, mem, a);
    denormals_end(mode);
    bool of_constants = out == 0 && t->rank == 0;
    return of_constants && is_rounded(k, t->dtype, mem[0].data, a) ? NULL : mem[out].data;
}

static bool all_equal(const char *data, int64_t n, size_t each)
{
    for (int64_t i = 1; i < n; i++)
        if (memcmp(data, data + (size_t)i * each, each) != 0)
            return false;
    return n > 0;
}

/* The first element as a scalar constant. */
static Ref number(Graph *g, DType t, const void *data)
{
    float f;
    double d;
    uint16_t half;
    int32_t i;
    int64_t l;
    switch (t) {
    case F32:
        memcpy(&f, data, sizeof f);
        return g_const(g, t, f);
    case F64:
        memcpy(&d, data, sizeof d);
        return g_const(g, t, d);
    case F16:
        memcpy(&half, data, sizeof half);
        return g_const(g, t, f16_to_f32(half));
    case BF16:
        memcpy(&half, data, sizeof half);
        return g_const(g, t, bf16_to_f32(half));
    case I32:
        memcpy(&i, data, sizeof i);
        return g_const_int(g, t, i);
    case I64:
        memcpy(&l, data, sizeof l);
        return g_const_int(g, t, l);
    default:
        return g_const_int(g, t, *(const uint8_t *)data);
    }
}

Ref fold_constant(Ctx *cx, Graph *g, Ref n)
{
    Case how = classify(g, n);
    if (how == NOT_CONSTANT)
        return NONE;
    ArenaMark mark = arena_mark(&cx->scratch);
    Graph *alone = graph_new(cx, "fold");
    Ref r = isolate(alone, g, n, how);
    void *data = r == NONE ? NULL : evaluate(cx, alone, r);
    Type t = *type_of(g, n), of = *type_of(alone, r);
    Ref value = NONE;
    if (data != NULL && all_equal(data, type_elems(&of), (size_t)dtype_bytes(of.dtype))) {
        value = number(g, of.dtype, data);
        value = g_broadcast(g, value, t.rank, t.dim);
    } else if (data != NULL && how == LITERALS) {
        value = g_literal(g, t, data);
    }
    graph_free(alone);
    arena_reset(&cx->scratch, mark);
    return value;
}
