/* Loop kernels of every shape, type and operation, for whatever runs kernels to be compared with
 * the exact interpreter. */
#ifndef GRADC_TESTS_CPU_LOOPS_H
#define GRADC_TESTS_CPU_LOOPS_H

#include "cpu/fill.h"
#include "cpu/shapes.h"

/* out = relu(x * 2 + b[j]), rows of `n`. */
static inline Kernel *bias_relu(Arena *arena, int64_t m, int64_t n)
{
    Kernel *k = kernel_new(arena, K_LOOP, "bias_relu");
    int out = k_buf(k, F32, m * n, K_OUT), x = k_buf(k, F32, m * n, K_IN);
    int b = k_buf(k, F32, n, K_IN);
    Val i = k_par(k, m), j = k_par(k, n);
    Val v = k_load(k, x, at2(i, n, j, 1)), w = k_load(k, b, k_aff_val(j, 1));
    v = k_fma(k, v, k_const(k, F32, 2), w);
    v = k_binary(k, KI_MAX, v, k_const(k, F32, 0));
    k_store(k, out, at2(i, n, j, 1), v);
    k_end(k, i);
    k_finish(k);
    return k;
}

/* y = x transposed. */
static inline Kernel *transpose(Arena *arena, DType t, int64_t m, int64_t n)
{
    Kernel *k = kernel_new(arena, K_LOOP, "transpose");
    int out = k_buf(k, t, m * n, K_OUT), x = k_buf(k, t, m * n, K_IN);
    Val i = k_par(k, m), j = k_par(k, n);
    k_store(k, out, at2(i, n, j, 1), k_load(k, x, at2(i, 1, j, m)));
    k_end(k, i);
    k_finish(k);
    return k;
}

/* Running sums along the rows, or the columns, of an m x n matrix. */
static inline Kernel *running_sums(Arena *arena, int64_t m, int64_t n, bool columns)
{
    Kernel *k = kernel_new(arena, K_LOOP, "running_sums");
    int out = k_buf(k, F32, m * n, K_OUT), x = k_buf(k, F32, m * n, K_IN);
    Val i = k_par(k, columns ? n : m), sum = k_var(k, k_const(k, F32, 0));
    Val j = k_seq(k, columns ? m : n);
    KAff at = columns ? at2(j, n, i, 1) : at2(i, n, j, 1);
    Val next = k_binary(k, KI_ADD, k_get(k, sum), k_load(k, x, at));
    k_set(k, sum, next);
    k_store(k, out, at, next);
    k_end(k, i);
    k_finish(k);
    return k;
}

/* Softmax of rows, kept in a LOCAL buffer between its passes. */
static inline Kernel *softmax(Arena *arena, DType t, int64_t m, int64_t n)
{
    Kernel *k = kernel_new(arena, K_LOOP, "softmax");
    int out = k_buf(k, t, m * n, K_OUT), x = k_buf(k, t, m * n, K_IN);
    int row = k_buf(k, t, n, K_LOCAL);
    Val i = k_par(k, m);
    Val top = k_acc(k, t, KI_MAX), j = k_red(k, n);
    k_into(k, top, k_load(k, x, at2(i, n, j, 1)));
    k_end(k, j);
    Val big = k_fold(k, top), sum = k_acc(k, t, KI_ADD);
    j = k_red(k, n);
    Val e = k_unary(k, KI_EXP, k_binary(k, KI_SUB, k_load(k, x, at2(i, n, j, 1)), big));
    k_store(k, row, k_aff_val(j, 1), e);
    k_into(k, sum, e);
    k_end(k, j);
    Val s = k_fold(k, sum);
    j = k_par(k, n);
    k_store(k, out, at2(i, n, j, 1), k_binary(k, KI_DIV, k_load(k, row, k_aff_val(j, 1)), s));
    k_end(k, j);
    k_end(k, i);
    k_finish(k);
    return k;
}

/* Row after row as many loops as no set of 64 bits can name. */
static inline Kernel *many_loops(Arena *arena, int64_t m, int64_t n)
{
    enum { LOOPS = 70 };
    Kernel *k = kernel_new(arena, K_LOOP, "many_loops");
    int out = k_buf(k, F32, m * n, K_OUT), x = k_buf(k, F32, m * n, K_IN);
    int row = k_buf(k, F32, n, K_LOCAL);
    Val i = k_par(k, m), j = k_par(k, n);
    k_store(k, row, k_aff_val(j, 1), k_load(k, x, at2(i, n, j, 1)));
    k_end(k, j);
    for (int l = 0; l < LOOPS; l++) {
        Val sum = k_acc(k, F32, KI_ADD);
        j = k_red(k, n);
        Val old = k_load(k, row, k_aff_val(j, 1));
        k_into(k, sum, old);
        k_store(k, row, k_aff_val(j, 1), k_binary(k, KI_SUB, old, k_const(k, F32, 0.125)));
        k_end(k, j);
        Val all = k_fold(k, sum);
        j = k_par(k, n);
        Val now = k_load(k, row, k_aff_val(j, 1));
        now = k_binary(k, KI_ADD, now, k_binary(k, KI_MUL, all, k_const(k, F32, 0x1p-7)));
        k_store(k, row, k_aff_val(j, 1), now);
        k_end(k, j);
    }
    j = k_par(k, n);
    k_store(k, out, at2(i, n, j, 1), k_load(k, row, k_aff_val(j, 1)));
    k_end(k, i);
    k_finish(k);
    return k;
}

/* Sums over rows: a SEQ or a RED loop inside of the columns. */
static inline Kernel *column_sums(Arena *arena, DType t, int64_t m, int64_t n, bool red, KOp op)
{
    Kernel *k = kernel_new(arena, K_LOOP, red ? "column_red" : "column_seq");
    int out = k_buf(k, t, n, K_OUT), x = k_buf(k, t, m * n, K_IN);
    Val j = k_par(k, n), acc = k_acc(k, t, op);
    Val i = red ? k_red(k, m) : k_seq(k, m);
    k_into(k, acc, k_load(k, x, at2(i, n, j, 1)));
    k_end(k, i);
    k_store(k, out, k_aff_val(j, 1), k_fold(k, acc));
    k_end(k, j);
    k_finish(k);
    return k;
}

/* One number from all: no grid. */
static inline Kernel *total(Arena *arena, DType t, int64_t n, KOp op)
{
    Kernel *k = kernel_new(arena, K_LOOP, "total");
    int out = k_buf(k, t, 1, K_OUT), x = k_buf(k, t, n, K_IN);
    Val acc = k_acc(k, t, op), i = k_red(k, n);
    k_into(k, acc, k_load(k, x, k_aff_val(i, 1)));
    k_end(k, i);
    k_store(k, out, k_aff(0), k_fold(k, acc));
    k_finish(k);
    return k;
}

/* Padding by `pad` on both sides, with a stride: bounds that fail. */
static inline Kernel *padded(Arena *arena, DType t, int64_t m, int64_t n, int64_t pad,
                             int64_t stride)
{
    Kernel *k = kernel_new(arena, K_LOOP, "padded");
    int64_t wide = (n + 2 * pad) / stride;
    int out = k_buf(k, t, m * wide, K_OUT), x = k_buf(k, t, m * n, K_IN);
    Val i = k_par(k, m), j = k_par(k, wide);
    KBound b = {k_aff_offset(k_aff_val(j, stride), -pad), 0, n};
    KAff at = k_aff_offset(at2(i, n, j, stride), -pad);
    k_store(k, out, at2(i, wide, j, 1), k_load_bounded(k, x, at, &b, 1, t == BOOL ? 1 : 3));
    k_end(k, i);
    k_finish(k);
    return k;
}

/* Rows of a table chosen by an index. */
static inline Kernel *embedding(Arena *arena, DType index, int64_t m, int64_t n)
{
    Kernel *k = kernel_new(arena, K_LOOP, "embedding");
    int out = k_buf(k, F32, m * n, K_OUT), x = k_buf(k, F32, 7 * n, K_IN);
    int at = k_buf(k, index, m, K_IN);
    Val i = k_par(k, m), j = k_par(k, n);
    Val r = k_load(k, at, k_aff_val(i, 1));
    KAff e = k_aff_offset(k_aff_add(k_aff_val(r, n), k_aff_val(j, 1)), 3 * n);
    k_store(k, out, at2(i, n, j, 1), k_load(k, x, e));
    k_end(k, i);
    k_finish(k);
    return k;
}

/* x[index[i]] for each i: a gather of single elements. */
static inline Kernel *pick(Arena *arena, int64_t m)
{
    Kernel *k = kernel_new(arena, K_LOOP, "pick");
    int out = k_buf(k, F32, m, K_OUT), x = k_buf(k, F32, 7 * m, K_IN), at = k_buf(k, I32, m, K_IN);
    Val i = k_par(k, m), r = k_load(k, at, k_aff_val(i, 1));
    KAff e = k_aff_offset(k_aff_add(k_aff_val(i, 7), k_aff_val(r, 1)), 3);
    KBound b = {k_aff_val(r, 1), -2, 3};
    k_store(k, out, k_aff_val(i, 1), k_load_bounded(k, x, e, &b, 1, -1));
    k_end(k, i);
    k_finish(k);
    return k;
}

/* Adds rows of x to the rows that an index names, in order. */
static inline Kernel *scatter_add(Arena *arena, int64_t m, int64_t n)
{
    Kernel *k = kernel_new(arena, K_LOOP, "scatter_add");
    int out = k_buf(k, F32, 7 * n, K_INOUT), x = k_buf(k, F32, m * n, K_IN);
    int at = k_buf(k, I32, m, K_IN);
    Val j = k_par(k, n), i = k_seq(k, m), r = k_load(k, at, k_aff_val(i, 1));
    KAff e = k_aff_offset(k_aff_add(k_aff_val(r, n), k_aff_val(j, 1)), 3 * n);
    Val sum = k_binary(k, KI_ADD, k_load(k, out, e), k_load(k, x, at2(i, n, j, 1)));
    k_store(k, out, e, sum);
    k_end(k, j);
    k_finish(k);
    return k;
}

/* Position of the largest of each row, by variables. */
static inline Kernel *argmax(Arena *arena, int64_t m, int64_t n)
{
    Kernel *k = kernel_new(arena, K_LOOP, "argmax");
    int out = k_buf(k, I32, m, K_OUT), x = k_buf(k, F32, m * n, K_IN);
    Val i = k_par(k, m);
    Val best = k_var(k, k_const(k, F32, -100)), where = k_var(k, k_const_int(k, I32, 0));
    Val j = k_seq(k, n), v = k_load(k, x, at2(i, n, j, 1)), old = k_get(k, best);
    Val more = k_binary(k, KI_LT, old, v);
    k_set(k, best, k_select(k, more, v, old));
    k_set(k, where, k_select(k, more, k_index(k, I32, k_aff_val(j, 1)), k_get(k, where)));
    k_end(k, j);
    k_store(k, out, k_aff_val(i, 1), k_get(k, where));
    k_end(k, i);
    k_finish(k);
    return k;
}

/* Running sums from the end. */
static inline Kernel *cumulative(Arena *arena, int64_t m, int64_t n)
{
    Kernel *k = kernel_new(arena, K_LOOP, "cumulative");
    int out = k_buf(k, F32, m * n, K_OUT), x = k_buf(k, F32, m * n, K_IN);
    Val i = k_par(k, m), sum = k_var(k, k_const(k, F32, 0)), j = k_seq_down(k, n);
    k_set(k, sum, k_binary(k, KI_ADD, k_get(k, sum), k_load(k, x, at2(i, n, j, 1))));
    k_store(k, out, at2(i, n, j, 1), k_get(k, sum));
    k_end(k, i);
    k_finish(k);
    return k;
}

/* RED in RED: the outer one feeds a lane that is not known beforehand. */
static inline Kernel *nested(Arena *arena, int64_t m, int64_t n)
{
    Kernel *k = kernel_new(arena, K_LOOP, "nested");
    int out = k_buf(k, F32, 1, K_OUT), x = k_buf(k, F32, m * n, K_IN);
    Val all = k_acc(k, F32, KI_ADD), i = k_red(k, m);
    Val row = k_acc(k, F32, KI_MAX), j = k_red(k, n);
    k_into(k, row, k_load(k, x, at2(i, n, j, 1)));
    k_end(k, j);
    k_into(k, all, k_fold(k, row));
    k_end(k, i);
    k_store(k, out, k_aff(0), k_fold(k, all));
    k_finish(k);
    return k;
}

static inline Kernel *cast_kernel(Arena *arena, DType from, DType to, int64_t n)
{
    Kernel *k = kernel_new(arena, K_LOOP, "cast");
    int out = k_buf(k, to, n, K_OUT), x = k_buf(k, from, n, K_IN);
    Val i = k_par(k, n), v = k_load(k, x, k_aff_val(i, 1));
    if (from == F32) { /* infinities and NaN too */
        Val big = k_binary(k, KI_MUL, v, k_const(k, F32, 1e30));
        Val odd = k_binary(k, KI_LT, v, k_const(k, F32, 1));
        v = k_select(k, odd, v, k_binary(k, KI_MUL, big, k_const(k, F32, 1e30)));
        v = k_select(k, k_binary(k, KI_LT, v, k_const(k, F32, -1.8)),
                     k_binary(k, KI_DIV, k_binary(k, KI_SUB, v, v), k_const(k, F32, 0)), v);
    }
    k_store(k, out, k_aff_val(i, 1), k_cast(k, to, v));
    k_end(k, i);
    k_finish(k);
    return k;
}

static inline Kernel *binary_kernel(Arena *arena, KOp op, DType t, int64_t n)
{
    Kernel *k = kernel_new(arena, K_LOOP, kop_text(op));
    bool compares = op == KI_EQ || op == KI_NE || op == KI_LT || op == KI_LE;
    int out = k_buf(k, compares ? BOOL : t, n, K_OUT);
    int x = k_buf(k, t, n, K_IN), y = k_buf(k, t, n, K_IN);
    Val i = k_par(k, n);
    Val a = k_load(k, x, k_aff_val(i, 1)), b = k_load(k, y, k_aff_val(i, 1));
    if (op == KI_SHL || op == KI_SHR || op == KI_SAR)
        b = k_binary(k, KI_AND, b, k_const_int(k, t, 7));
    k_store(k, out, k_aff_val(i, 1), k_binary(k, op, a, b));
    k_end(k, i);
    k_finish(k);
    return k;
}

static inline Kernel *unary_kernel(Arena *arena, KOp op, DType t, int64_t n)
{
    Kernel *k = kernel_new(arena, K_LOOP, kop_text(op));
    int out = k_buf(k, t, n, K_OUT), x = k_buf(k, t, n, K_IN);
    Val i = k_par(k, n), v = k_load(k, x, k_aff_val(i, 1));
    if (op == KI_FLOOR || op == KI_RINT)
        v = k_binary(k, KI_MUL, v, k_const(k, t, 2.5));
    k_store(k, out, k_aff_val(i, 1), k_unary(k, op, v));
    k_end(k, i);
    k_finish(k);
    return k;
}

/* y[2j] = x[2j+1], y[2j+1] = x[2j] + x[2j+1], in rows of n pairs. */
static inline Kernel *pairs(Arena *arena, DType t, int64_t m, int64_t n)
{
    Kernel *k = kernel_new(arena, K_LOOP, "pairs");
    int y = k_buf(k, t, 2 * m * n, K_OUT), x = k_buf(k, t, 2 * m * n, K_IN);
    Val i = k_par(k, m), j = k_par(k, n);
    KAff even = at2(i, 2 * n, j, 2), odd = k_aff_offset(even, 1);
    Val a = k_load(k, x, even), b = k_load(k, x, odd);
    k_store(k, y, even, b);
    k_store(k, y, odd, k_binary(k, KI_ADD, a, b));
    k_end(k, i);
    k_finish(k);
    return k;
}

/* y = y where y < x, of four matrices of m x n that are put together: of every second row and
 * column of y another one, the last of them nowhere. */
static inline Kernel *interleaved(Arena *arena, DType t, int64_t m, int64_t n)
{
    Kernel *k = kernel_new(arena, K_LOOP, "interleaved");
    int y = k_buf(k, t, 4 * m * n, K_INOUT);
    Val i = k_par(k, m), row = k_par(k, 2), j = k_par(k, n), col = k_par(k, 2);
    Val x[2], zero = k_const(k, I32, 0), one = k_const(k, t, 1);
    for (int r = 0; r < 2; r++) {
        int buf = k_buf(k, t, m * n, K_IN);
        KBound b[] = {{k_aff_val(row, 1), r, r + 1}, {k_aff_val(col, 1), 0, 1 + (r == 0)}};
        x[r] = k_load_bounded(k, buf, at2(i, n, j, 1), b, 2, 1);
    }
    Val first = k_binary(k, KI_EQ, k_index(k, I32, k_aff_val(row, 1)), zero);
    KAff at = k_aff_add(at2(i, 4 * n, row, 2 * n), at2(j, 2, col, 1));
    Val old = k_load(k, y, at), new = k_select(k, first, x[0], x[1]);
    new = k_select(k, k_binary(k, KI_EQ, k_index(k, I32, k_aff_val(col, 1)), zero), new,
                   k_binary(k, KI_ADD, new, one));
    k_store(k, y, at, k_select(k, k_binary(k, KI_LT, old, new), old, new));
    k_end(k, i);
    k_finish(k);
    return k;
}

/* Sums down columns of two matrices, half of the columns of each, and of their products with a
 * number of each row. */
static inline Kernel *joined_columns(Arena *arena, int64_t m, int64_t n)
{
    Kernel *k = kernel_new(arena, K_LOOP, "joined_columns");
    int y = k_buf(k, F32, n, K_OUT), a = k_buf(k, F32, m * (n / 2), K_IN);
    int b = k_buf(k, F32, m * (n - n / 2), K_IN), c = k_buf(k, F32, m, K_IN);
    Val i = k_par(k, n), acc = k_acc(k, F32, KI_ADD), j = k_seq(k, m);
    KBound left = {k_aff_val(i, 1), 0, n / 2}, right = {k_aff_val(i, 1), n / 2, n};
    Val x = k_load_bounded(k, a, at2(j, n / 2, i, 1), &left, 1, 0);
    KAff at = k_aff_offset(at2(j, n - n / 2, i, 1), -(n / 2));
    Val z = k_load_bounded(k, b, at, &right, 1, 0);
    Val first = k_binary(k, KI_LT, k_index(k, I32, k_aff_val(i, 1)), k_const_int(k, I32, n / 2));
    Val v = k_select(k, first, x, z);
    k_into(k, acc, k_binary(k, KI_MUL, v, k_load(k, c, k_aff_val(j, 1))));
    k_end(k, j);
    k_store(k, y, k_aff_val(i, 1), k_fold(k, acc));
    k_end(k, i);
    k_finish(k);
    return k;
}

/* Some operands lie along the rows and others across them, batch after batch; `limited`: a limit of
 * the rows (1), of the columns (2) or none (0), and less than all of them. */
static inline Kernel *crossed(Arena *arena, int64_t m, int64_t n, int limited)
{
    enum { BATCH = 3 };
    Kernel *k = kernel_new(arena, K_LOOP, "crossed");
    int out = k_buf(k, F32, BATCH * m * n, K_OUT), y = k_buf(k, F32, BATCH * m * n, K_IN);
    int x = k_buf(k, F32, BATCH * m * n, K_IN), z = k_buf(k, I32, m * n, K_IN);
    int w = k_buf(k, F32, m, K_IN);
    if (limited > 0)
        k->limit = (KLimit){true, k_buf(k, I32, 1, K_IN), 0, m * 2 / 3, m};
    Val b = k_par(k, BATCH), i = k_par(k, m);
    Val factor = k_load(k, w, k_aff_val(i, 1));
    Val j = k_par(k, n);
    KAff along = k_aff_add(k_aff_val(b, m * n), at2(i, n, j, 1));
    KAff across = k_aff_add(k_aff_val(b, m * n), at2(i, 1, j, m));
    Val v = k_binary(k, KI_MUL, k_load(k, x, across), factor);
    v = k_binary(k, KI_ADD, v, k_load(k, y, along));
    v = k_binary(k, KI_ADD, v, k_cast(k, F32, k_load(k, z, at2(i, 1, j, m))));
    k_store(k, out, along, v);
    if (limited > 0)
        k_reach(k, limited == 1 ? i : j, K_LIMITED);
    k_end(k, b);
    k_finish(k);
    return k;
}

/* y = x transposed, with `pad` columns on both sides: lanes of a tile of which some are outside.
 * Padding along the tile's rows (`across`), or that is not 0, is no tile. */
static inline Kernel *padded_transpose(Arena *arena, int64_t m, int64_t n, int64_t pad, bool across,
                                       double value)
{
    Kernel *k = kernel_new(arena, K_LOOP, "padded_transpose");
    int64_t tall = across ? m + 2 * pad : m, wide = across ? n : n + 2 * pad;
    int out = k_buf(k, F32, tall * wide, K_OUT), x = k_buf(k, F32, m * n, K_IN);
    Val i = k_par(k, tall), j = k_par(k, wide);
    KBound b = {k_aff_offset(k_aff_val(across ? i : j, 1), -pad), 0, across ? m : n};
    KAff at = k_aff_offset(at2(i, 1, j, m), -(across ? pad : pad * m));
    k_store(k, out, at2(i, wide, j, 1), k_load_bounded(k, x, at, &b, 1, value));
    k_end(k, i);
    k_finish(k);
    return k;
}

/* Tiles with rows and lanes that are all there, or not; places that are apart by a power of 2. */
static inline void add_crossed(Arena *arena, Kernels *s)
{
    static const int64_t size[] = {1, 3, 4, 8, 15, 16, 17, 32, 37, 64};
    for (int i = 0; i < 10; i++)
        for (int j = 0; j < 10; j++) {
            add_kernel(arena, s, transpose(arena, (i + j) % 2 != 0 ? F32 : I32, size[i], size[j]));
            add_kernel(arena, s, crossed(arena, size[i], size[j], (i + j) % 3));
            add_kernel(arena, s,
                       padded_transpose(arena, size[i], size[j], 1 + j, i % 4 == 3,
                                        j % 4 == 3 ? -0.0 : 0));
        }
    add_kernel(arena, s, crossed(arena, 48, 1024, 0));
    add_kernel(arena, s, crossed(arena, 1024, 40, 1));
}

static inline void add_shapes(Arena *arena, Kernels *s)
{
    static const int64_t size[] = {1, 2, 7, 8, 15, 16, 17, 33, 100};
    for (int i = 0; i < 9; i++) {
        int64_t n = size[i], m = size[(i * 4 + 3) % 9];
        add_kernel(arena, s, bias_relu(arena, m, n));
        add_kernel(arena, s, transpose(arena, F32, m, n));
        add_kernel(arena, s, softmax(arena, F32, m, n));
        add_kernel(arena, s, column_sums(arena, F32, m, n, false, KI_ADD));
        add_kernel(arena, s, column_sums(arena, F32, m, n, true, KI_ADD));
        add_kernel(arena, s, total(arena, F32, m * n, KI_ADD));
        add_kernel(arena, s, total(arena, F64, m * n, KI_MUL));
        add_kernel(arena, s, padded(arena, F32, m, n, 3, 1));
        add_kernel(arena, s, padded(arena, U8, m, n, 2, 2));
        add_kernel(arena, s, padded(arena, F32, m, 2 * n, 3, 2));
        add_kernel(arena, s, padded(arena, F64, m, 2 * n, 1, 2));
        for (int t = F32; t <= I64; t++)
            add_kernel(arena, s, pairs(arena, (DType)t, m, n));
        for (int t = F32; t <= I64; t++)
            add_kernel(arena, s, interleaved(arena, (DType)t, m, n));
        add_kernel(arena, s, embedding(arena, I32, m, n));
        add_kernel(arena, s, pick(arena, n));
        add_kernel(arena, s, scatter_add(arena, m, n));
        add_kernel(arena, s, argmax(arena, m, n));
        add_kernel(arena, s, cumulative(arena, m, n));
        add_kernel(arena, s, nested(arena, m, n));
    }
    add_kernel(arena, s, many_loops(arena, 5, 21));
    add_kernel(arena, s, many_loops(arena, 40, 5));
    /* items that take long, in small blocks of the target cuda */
    add_kernel(arena, s, column_sums(arena, F32, 300, 600, false, KI_ADD));
    add_kernel(arena, s, column_sums(arena, F32, 5000, 5, true, KI_ADD));
    /* as wide as several vectors */
    static const int64_t wide[] = {64, 96, 128, 320, 64 * 7 + 16};
    for (int i = 0; i < 5; i++) {
        add_kernel(arena, s, column_sums(arena, F32, 37, wide[i], false, KI_ADD));
        add_kernel(arena, s, column_sums(arena, F32, 37, wide[i], false, KI_MAX));
        add_kernel(arena, s, joined_columns(arena, 21, wide[i]));
    }
}

static inline void add_types(Arena *arena, Kernels *s)
{
    for (int t = 0; t < N_DTYPES; t++) {
        add_kernel(arena, s, transpose(arena, (DType)t, 5, 19));
        add_kernel(arena, s, padded(arena, (DType)t, 3, 37, 4, 1));
        for (int to = 0; to < N_DTYPES; to++)
            if (to != t)
                add_kernel(arena, s, cast_kernel(arena, (DType)t, (DType)to, 53));
    }
    for (int t = F32; t <= F64; t++) {
        add_kernel(arena, s, column_sums(arena, (DType)t, 21, 19, true, KI_MAX));
        add_kernel(arena, s, column_sums(arena, (DType)t, 21, 19, false, KI_MIN));
        add_kernel(arena, s, total(arena, (DType)t, 1000, KI_ADD));
    }
    add_kernel(arena, s, total(arena, I64, 77, KI_MIN));
    add_kernel(arena, s, total(arena, I32, 77, KI_MAX));
    add_kernel(arena, s, total(arena, BOOL, 77, KI_AND));
    add_kernel(arena, s, total(arena, BOOL, 77, KI_OR));
    add_kernel(arena, s, column_sums(arena, BOOL, 9, 40, true, KI_OR));
    add_kernel(arena, s, embedding(arena, I64, 9, 20));
}

static inline void add_operations(Arena *arena, Kernels *s)
{
    static const DType floats[] = {F32, F64, F16, BF16};
    static const DType ints[] = {I32, I64, U8};
    static const KOp both[] = {KI_ADD, KI_SUB, KI_MUL, KI_DIV, KI_MIN,
                               KI_MAX, KI_EQ,  KI_NE,  KI_LT,  KI_LE};
    static const KOp whole[] = {KI_REM, KI_AND, KI_OR, KI_XOR, KI_SHL, KI_SHR, KI_SAR};
    static const KOp one[] = {KI_NEG,  KI_ABS, KI_SQRT, KI_FLOOR, KI_RINT, KI_EXP,
                              KI_TANH, KI_LOG, KI_ERF,  KI_SIN,   KI_COS};
    for (int o = 0; o < 10; o++) {
        for (int t = 0; t < 4; t++)
            add_kernel(arena, s, binary_kernel(arena, both[o], floats[t], 37));
        for (int t = 0; t < 3; t++)
            add_kernel(arena, s, binary_kernel(arena, both[o], ints[t], 37));
    }
    for (int o = 0; o < 7; o++)
        for (int t = 0; t < 2; t++)
            add_kernel(arena, s, binary_kernel(arena, whole[o], ints[t], 37));
    add_kernel(arena, s, binary_kernel(arena, KI_MULHI, I32, 37));
    add_kernel(arena, s, softmax(arena, F64, 3, 21));
    for (int o = 0; o < 11; o++)
        for (int t = 0; t < 2; t++)
            add_kernel(arena, s, unary_kernel(arena, one[o], floats[t], 37));
}

#endif
