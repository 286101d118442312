/* Reading and adding at computed indices, and running sums. An index that lies outside
 * reads 0 and adds nothing: that pair is its own transpose, and no memory is touched. */
#include <string.h>
#include "../graph/op.h"

static bool is_index(const Type *t)
{
    return t->rank >= 0 && (t->dtype == I32 || t->dtype == I64);
}

static bool needs_index(Shape *s, int i)
{
    if (is_index(shape_arg(s, i)))
        return true;
    return shape_error(s, E0221, "the index of `%s` is i32 or i64, not %s", op_word(s->op),
                       shape_text(s, i));
}

/* ---- gather ----------------------------------------------------------------------- */

/* [V, t...] at [i...] -> [i..., t...] */
static bool gathered(Shape *s, const Type *table, const Type *index, Type *out)
{
    *out = *index;
    out->dtype = table->dtype;
    out->rank = index->rank + table->rank - 1;
    if (table->rank < 1)
        return shape_error(s, E0222, "`%s` needs a table with an axis, not %s", op_word(s->op),
                           shape_text(s, 0));
    for (int i = 1; i < table->rank && index->rank + i <= MAX_RANK; i++)
        out->dim[index->rank + i - 1] = table->dim[i];
    return true;
}

static bool gather_shape(Shape *s)
{
    return needs_index(s, 1) && gathered(s, shape_arg(s, 0), shape_arg(s, 1), &s->type);
}

static Val gather_elem(Elem *e, Ref n, const KAff *idx)
{
    const Graph *g = elem_graph(e);
    Ref table = arg(g, n, 0), index = arg(g, n, 1);
    KAff at[MAX_RANK];
    Val row = elem_at(e, index, idx);
    if (row == 0)
        return 0;
    at[0] = elem_index_of(e, row);
    for (int i = 1; i < rank(g, table); i++)
        at[i] = idx[rank(g, index) + i - 1];
    return elem_at_bounded(e, table, at, 0);
}

/* Half types are added up in f32, like any sum. */
static void gather_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    Type table = *type_of(g, arg(g, n, 0));
    DType t = table.dtype;
    if (dtype_is_half(t))
        table.dtype = F32;
    Ref update = dtype_is_half(t) ? g_cast(g, F32, ct) : ct;
    Ref zero = g_zeros(g, &table);
    Ref sum = g_scatter_add(g, zero, arg(g, n, 1), update);
    d[0] = dtype_is_half(t) ? g_cast(g, t, sum) : sum;
}

const Op op_gather = {
    .name = "gather",
    .n_args = 2,
    .kind = OP_VIEW,
    .shape = gather_shape,
    .elem = gather_elem,
    .vjp = gather_vjp,
    .doc = "Rows of a table: result[i..., t...] = table[index[i...], t...]; 0 where the index is "
           "outside.",
    .example = "gather(f32[5,3], i32[4]); gather(f32[5], i64[2,3]); gather(f32[4,2,3], i32[]); "
               "gather(f32[3,2], i32[0])",
    .domain = {0, 4},
};

/* ---- scatter_add -------------------------------------------------------------------- */

static bool scatter_shape(Shape *s)
{
    Type update;
    if (!needs_index(s, 1) || !gathered(s, shape_arg(s, 0), shape_arg(s, 1), &update))
        return false;
    if (shape_arg(s, 0)->dtype == BOOL)
        return shape_error(s, E0221, "`scatter_add` adds numbers, and this is %s",
                           shape_text(s, 0));
    s->type = *shape_arg(s, 0);
    if (type_same(&update, shape_arg(s, 2)))
        return true;
    return shape_error(s, E0220, "`scatter_add` to %s at %s takes %s, not %s", shape_text(s, 0),
                       shape_text(s, 1), type_text(&s->g->cx->perm, &update), shape_text(s, 2));
}

/* The loops of a scatter: columns of the table are independent, rows are not. */
typedef struct Scatter {
    Elem *e;
    Kernel *k;
    Ref base, index, update;
    int out;
    int n_base, n_index;
    KAff at[MAX_RANK]; /* axes 1.. of the table: grid loops */
    int64_t width;     /* the last axis goes on inside, this many at a time */
    KAff chunk;
} Scatter;

/* The largest divisor of n that is at most 64: columns that one iteration of the grid
 * takes, enough for vectors. */
static int64_t chunk_width(int64_t n)
{
    int64_t w = n < 64 ? n : 64;
    while (w > 1 && n % w != 0)
        w--;
    return w < 1 ? 1 : w;
}

/* Opens the inner loop over columns; gives 0 where there is none. */
static Val open_columns(Scatter *s)
{
    if (s->n_base == 1)
        return 0;
    Val j = k_par(s->k, s->width);
    s->at[s->n_base - 1] = k_aff_add(s->chunk, k_aff_val(j, 1));
    return j;
}

static KAff offset_of(const Scatter *s)
{
    const Type *t = type_of(elem_graph(s->e), s->base);
    KAff at = k_aff(0);
    int64_t stride = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        at = k_aff_add(at, k_aff_scale(s->at[i], stride));
        stride *= t->dim[i];
    }
    return at;
}

static void close_columns(Scatter *s, Val j, int mark)
{
    elem_forget(s->e, mark);
    if (j != 0)
        k_end(s->k, j);
}

/* out[v, t] = base[v, t] */
static bool scatter_start(Scatter *s)
{
    int mark = elem_mark(s->e);
    Val v = k_seq(s->k, dim(elem_graph(s->e), s->base, 0));
    s->at[0] = k_aff_val(v, 1);
    Val j = open_columns(s);
    Val x = elem_at(s->e, s->base, s->at);
    if (x != 0)
        k_store(s->k, s->out, offset_of(s), x);
    close_columns(s, j, mark);
    k_end(s->k, v);
    return x != 0;
}

/* out[index[i], t] += update[i, t], i in row-major order */
static void scatter_rows(Scatter *s)
{
    const Graph *g = elem_graph(s->e);
    Kernel *k = s->k;
    KAff from[MAX_RANK];
    int mark = elem_mark(s->e);
    Val first = 0;
    for (int i = 0; i < s->n_index; i++) {
        Val loop = k_seq(k, dim(g, s->index, i));
        first = i == 0 ? loop : first;
        from[i] = k_aff_val(loop, 1);
    }
    Val row = elem_at(s->e, s->index, from);
    if (row != 0) {
        KBound in_table = {.e = elem_index_of(s->e, row), .lo = 0, .hi = dim(g, s->base, 0)};
        s->at[0] = in_table.e;
        int inner = elem_mark(s->e);
        Val j = open_columns(s);
        for (int i = 1; i < s->n_base; i++)
            from[s->n_index + i - 1] = s->at[i];
        Val x = elem_at(s->e, s->update, from);
        if (x != 0) {
            Val old = k_load_bounded(k, s->out, offset_of(s), &in_table, 1, 0);
            Val sum = k_binary(k, KI_ADD, old, x);
            k_store_bounded(k, s->out, offset_of(s), &in_table, 1, sum);
        }
        close_columns(s, j, inner);
    }
    elem_forget(s->e, mark);
    if (first != 0)
        k_end(k, first);
}

static void scatter_kernel(Elem *e, Ref n, const int *out_buf)
{
    const Graph *g = elem_graph(e);
    Scatter s = {.e = e, .k = elem_kernel(e), .out = out_buf[0]};
    s.base = arg(g, n, 0);
    s.index = arg(g, n, 1);
    s.update = arg(g, n, 2);
    s.n_base = rank(g, s.base);
    s.n_index = rank(g, s.index);
    s.k->buf.at[s.out].mode = K_INOUT; /* it reads what it has written */
    Val grid = 0;
    for (int i = 1; i < s.n_base; i++) {
        bool last = i == s.n_base - 1;
        int64_t extent = dim(g, s.base, i);
        s.width = last ? chunk_width(extent) : 1;
        Val loop = k_par(s.k, extent / s.width);
        s.at[i] = s.chunk = k_aff_val(loop, s.width);
        grid = i == 1 ? loop : grid;
    }
    if (scatter_start(&s))
        scatter_rows(&s);
    if (grid != 0)
        k_end(s.k, grid);
}

static void scatter_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    d[0] = ct;
    d[2] = g_gather(g, ct, arg(g, n, 1));
}

const Op op_scatter_add = {
    .name = "scatter_add",
    .n_args = 3,
    .kind = OP_OPAQUE,
    .shape = scatter_shape,
    .kernel = scatter_kernel,
    .vjp = scatter_vjp,
    .doc = "base with update[i..., t...] added to its row index[i...], in the order of i; what has "
           "an index outside is left out.",
    .example = "scatter_add(f32[5,3], i32[4], f32[4,3]); scatter_add(f32[5], i64[2,3], f32[2,3]); "
               "scatter_add(f32[4,2,3], i32[], f32[2,3]); scatter_add(f32[3,2], i32[0], f32[0,2]); "
               "scatter_add(f32[3,130], i32[2], f32[2,130])",
    .domain = {0, 4},
};

/* ---- take_along ------------------------------------------------------------------------ */

static bool take_shape(Shape *s)
{
    Type want = *shape_arg(s, 0);
    if (!needs_index(s, 1) || !shape_axis(s, "axis", want.rank))
        return false;
    want.rank--;
    for (int i = (int)s->attr[0].i; i < want.rank; i++)
        want.dim[i] = want.dim[i + 1];
    s->type = want;
    want.dtype = shape_arg(s, 1)->dtype;
    if (type_same(&want, shape_arg(s, 1)))
        return true;
    return shape_error(s, E0220, "to take from axis %lld of %s, the index is %s, not %s",
                       (long long)s->attr[0].i, shape_text(s, 0), type_text(&s->g->cx->perm, &want),
                       shape_text(s, 1));
}

static Val take_elem(Elem *e, Ref n, const KAff *idx)
{
    const Graph *g = elem_graph(e);
    Ref x = arg(g, n, 0);
    int axis = (int)attr(g, n, 0)->i;
    KAff at[MAX_RANK];
    Val i = elem_at(e, arg(g, n, 1), idx);
    if (i == 0)
        return 0;
    for (int a = 0; a < rank(g, x); a++)
        at[a] = a == axis ? elem_index_of(e, i) : idx[a - (a > axis)];
    return elem_at_bounded(e, x, at, 0);
}

/* ct where the index along the axis is the one that was taken. */
static void take_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    int axis = (int)attr(g, n, 0)->i;
    Type t = *type_of(g, arg(g, n, 0)), index = t;
    index.dtype = type_of(g, arg(g, n, 1))->dtype;
    Ref taken = g_insert_axis(g, arg(g, n, 1), axis);
    Ref takens = g_broadcast(g, taken, t.rank, t.dim);
    Ref i = g_iota(g, index, axis);
    Ref here = g_node(g, OP_eq, (Ref[]){i, takens}, 2, NULL);
    Ref column = g_insert_axis(g, ct, axis);
    Ref cts = g_broadcast(g, column, t.rank, t.dim);
    Ref zero = g_zeros(g, &t);
    d[0] = g_where(g, here, cts, zero);
}

const Op op_take_along = {
    .name = "take_along",
    .n_args = 2,
    .kind = OP_VIEW,
    .attrs = {{"axis", ATTR_INT}},
    .shape = take_shape,
    .elem = take_elem,
    .vjp = take_vjp,
    .doc = "One element of an axis for each place of the others; 0 where the index is outside.",
    .example = "take_along(f32[4,5], i32[4], axis = 1); take_along(f32[5,2,3], i64[2,3], axis = 0)",
    .domain = {0, 4},
};

/* ---- cumsum ------------------------------------------------------------------------------ */

enum { CUMSUM_AXIS, DOWN };

static bool cumsum_shape(Shape *s)
{
    s->type = *shape_arg(s, 0);
    if (s->type.dtype == BOOL)
        return shape_error(s, E0221, "`cumsum` takes numbers, and this is %s", shape_text(s, 0));
    return shape_axis(s, "axis", s->type.rank);
}

static void cumsum_kernel(Elem *e, Ref n, const int *out_buf)
{
    const Graph *g = elem_graph(e);
    Kernel *k = elem_kernel(e);
    const Type *t = type_of(g, n);
    int axis = (int)attr(g, n, CUMSUM_AXIS)->i;
    DType wide = dtype_is_half(t->dtype) ? F32 : t->dtype;
    KAff at[MAX_RANK], offset = k_aff(0);
    Val first = 0;
    for (int i = 0; i < t->rank; i++) {
        if (i == axis)
            continue;
        Val loop = k_par(k, t->dim[i]);
        at[i] = k_aff_val(loop, 1);
        first = first == 0 ? loop : first;
    }
    Val zero = k_const(k, wide, 0);
    Val sum = k_var(k, zero);
    bool down = attr(g, n, DOWN)->i != 0;
    int mark = elem_mark(e);
    Val i = down ? k_seq_down(k, t->dim[axis]) : k_seq(k, t->dim[axis]);
    at[axis] = k_aff_val(i, 1);
    Val x = elem_at(e, arg(g, n, 0), at);
    if (x != 0) {
        Val old = k_get(k, sum);
        Val wide_x = k_cast(k, wide, x);
        Val new = k_binary(k, KI_ADD, old, wide_x);
        k_set(k, sum, new);
        int64_t stride = 1;
        for (int a = t->rank - 1; a >= 0; a--) {
            offset = k_aff_add(offset, k_aff_scale(at[a], stride));
            stride *= t->dim[a];
        }
        Val rounded = k_cast(k, t->dtype, new);
        k_store(k, out_buf[0], offset, rounded);
    }
    elem_forget(e, mark);
    k_end(k, first != 0 ? first : i);
}

static void cumsum_vjp(Graph *g, Ref n, Ref ct, Ref d[])
{
    int axis = (int)attr(g, n, CUMSUM_AXIS)->i;
    d[0] = g_cumsum(g, ct, axis, attr(g, n, DOWN)->i == 0);
}

const Op op_cumsum = {
    .name = "cumsum",
    .n_args = 1,
    .kind = OP_OPAQUE,
    .attrs = {{"axis", ATTR_INT}, {"down", ATTR_BOOL}},
    .shape = cumsum_shape,
    .kernel = cumsum_kernel,
    .vjp = cumsum_vjp,
    .doc = "Running sums along an axis; `down`: from the last element to the first.",
    .example = "cumsum(f32[2,5], axis = 1, down = false); cumsum(f32[4,3], axis = 0, down = true); "
               "cumsum(i32[5], axis = 0, down = false)",
};
