/* Contractions of the shapes that models have, for tests and measurements. */
#ifndef GRADC_TESTS_CPU_SHAPES_H
#define GRADC_TESTS_CPU_SHAPES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kernel/kernel.h"

static inline KAff at2(Val i, int64_t c, Val j, int64_t d)
{
    return k_aff_add(k_aff_val(i, c), k_aff_val(j, d));
}

/* What a matmul may have around it. */
enum {
    TRANSPOSE_A = 1,
    TRANSPOSE_B = 2,
    PROLOGUE = 4,
    EPILOGUE = 8,
    TRANSPOSE_C = 16,
    TELLS_TRUE = 32,  /* says whether all sums are smaller than 1e3, */
    TELLS_FALSE = 64, /* or than a number that some are not */
    ADDS = 128,       /* to what has been stored */
    LIMITED_M = 256,  /* about two of three rows; ... */
    LIMITED_N = 512,
    LONG = 1024,       /* an epilogue of many operations */
    LONG_B = 2048,     /* a prologue of columns of many operations */
    STORES_SUM = 4096, /* besides what the epilogue makes of it */
};

typedef struct Matmul {
    int64_t batch, m, n, k;
    int form;
    int64_t leaf;
} Matmul;

/* Of bf16: in pairs, where leaves are even. */
static inline Kernel *make_matmul(Arena *arena, DType t, const Matmul *shape)
{
    int64_t batch = shape->batch, m = shape->m, n = shape->n, kk = shape->k, leaf = shape->leaf;
    int form = shape->form;
    Kernel *k = kernel_new(arena, K_CONTRACT, "matmul");
    int out = k_buf(k, t, batch * m * n, (form & (EPILOGUE | ADDS)) != 0 ? K_INOUT : K_OUT);
    int a = k_buf(k, t, batch * m * kk, K_IN), b = k_buf(k, t, batch * kk * n, K_IN);
    int bias = k_buf(k, t, n, K_IN);
    Val z = k_dim(k, K_B, batch), i = k_dim(k, K_M, m), j = k_dim(k, K_N, n);
    Val p = k_dim(k, K_K, kk);
    k_section_a(k);
    KAff at = (form & TRANSPOSE_A) != 0 ? at2(i, 1, p, m) : at2(i, kk, p, 1);
    Val x = k_load(k, a, k_aff_add(at, k_aff_val(z, m * kk)));
    if ((form & PROLOGUE) != 0)
        x = k_binary(k, KI_MAX, x, k_const(k, t, 0));
    k_section_b(k, x);
    at = (form & TRANSPOSE_B) != 0 ? at2(p, 1, j, kk) : at2(p, n, j, 1);
    Val y = k_load(k, b, k_aff_add(at, k_aff_val(z, kk * n)));
    if ((form & PROLOGUE) != 0)
        y = k_binary(k, KI_MUL, y, k_const(k, t, 0.7));
    for (int o = 0; (form & LONG_B) != 0 && o < 20; o++)
        y = k_fma(k, y, k_const(k, t, o % 2 == 0 ? -0.7 : 0.9), y);
    Val sum = k_epilogue(k, y, t == BF16 ? F32 : t, t == BF16 ? (leaf + 1) / 2 * 2 : leaf);
    if (t == BF16) {
        k_in_pairs(k);
        sum = k_cast(k, t, sum);
    }
    KAff to = (form & TRANSPOSE_C) != 0 ? at2(i, 1, j, m) : at2(i, n, j, 1);
    to = k_aff_add(to, k_aff_val(z, m * n));
    if ((form & STORES_SUM) != 0)
        k_store(k, k_buf(k, t, batch * m * n, K_OUT), to, sum);
    if ((form & EPILOGUE) != 0) {
        sum = k_binary(k, KI_ADD, sum, k_load(k, bias, k_aff_val(j, 1)));
        sum = k_fma(k, sum, k_const(k, t, -0.01), k_load(k, out, to));
    }
    for (int o = 0; (form & LONG) != 0 && o < 20; o++)
        sum = k_fma(k, sum, k_const(k, t, o % 2 == 0 ? -0.7 : 0.9),
                    o % 5 == 0 ? k_load(k, bias, k_aff_val(j, 1)) : sum);
    if ((form & ADDS) != 0)
        sum = k_binary(k, KI_ADD, sum, k_load(k, out, to));
    k_store(k, out, to, sum);
    if ((form & (LIMITED_M | LIMITED_N)) != 0) {
        bool rows = (form & LIMITED_M) != 0;
        int64_t all = rows ? m : n;
        k->limit = (KLimit){true, k_buf(k, I32, 1, K_IN), 0, all * 2 / 3, all};
        k_reach(k, rows ? i : j, K_LIMITED);
    }
    if ((form & (TELLS_TRUE | TELLS_FALSE)) != 0) {
        Val size = k_unary(k, KI_ABS, k->con.e_from);
        DType chain = (DType)k->inst.at[size].dtype;
        Val most = k_const(k, chain, (form & TELLS_TRUE) != 0 ? 1e3 : 1e-3);
        Val less = k_binary(k, KI_LT, size, most);
        k_all(k, k_buf(k, BOOL, 1, K_OUT), less);
    }
    k_finish(k);
    return k;
}

typedef struct Conv {
    int64_t batch, in, out, size;
    int64_t kernel; /* < 0: so many lines of one place (not of gradients of weights) */
    int64_t stride;
    int64_t pad; /* < 0: so many places before an image alone (likewise) */
    int64_t dilation;
} Conv;

static inline int64_t conv_lines(const Conv *c)
{
    return c->kernel < 0 ? -c->kernel : c->kernel;
}

static inline int64_t conv_pad(const Conv *c)
{
    return c->pad < 0 ? -c->pad : c->pad;
}

static inline int64_t conv_out(const Conv *c)
{
    int64_t places = c->size + conv_pad(c) + (c->pad < 0 ? 0 : c->pad);
    return (places - c->dilation * (conv_lines(c) - 1) - 1) / c->stride + 1;
}

/* y[b,o,h,w] = sum over i, u, v of W[o,i,u,v] x[b,i,h*s+u*d-p,w*s+v*d-p] */
static inline Kernel *make_conv_forward(Arena *arena, const Conv *c, bool bytes)
{
    Kernel *k = kernel_new(arena, K_CONTRACT, "conv");
    int64_t o = conv_out(c), kk = conv_lines(c), wide = c->kernel < 0 ? 1 : kk, in = c->size;
    int y = k_buf(k, F32, c->batch * c->out * o * o, K_OUT);
    int w = k_buf(k, F32, c->out * c->in * kk * wide, K_IN);
    int x = k_buf(k, bytes ? U8 : F32, c->batch * c->in * in * in, K_IN);
    Val z = k_dim(k, K_B, c->batch), m = k_dim(k, K_M, c->out);
    Val h = k_dim(k, K_N, o), v = k_dim(k, K_N, o);
    Val i = k_dim(k, K_K, c->in), r = k_dim(k, K_K, kk), q = k_dim(k, K_K, wide);
    k_section_a(k);
    KAff at = k_aff_add(at2(m, c->in * kk * wide, i, kk * wide), at2(r, wide, q, 1));
    Val a = k_load(k, w, at);
    k_section_b(k, a);
    KAff row = k_aff_offset(at2(h, c->stride, r, c->dilation), -conv_pad(c));
    KAff col = k_aff_offset(at2(v, c->stride, q, c->dilation), -conv_pad(c));
    KBound bound[] = {{row, 0, in}, {col, 0, in}};
    at = k_aff_add(at2(z, c->in * in * in, i, in * in), k_aff_add(k_aff_scale(row, in), col));
    Val b = c->pad != 0 ? k_load_bounded(k, x, at, bound, 2, 0) : k_load(k, x, at);
    if (bytes)
        b = k_binary(k, KI_MUL, k_cast(k, F32, b), k_const(k, F32, 1.0 / 255));
    Val sum = k_epilogue(k, b, F32, 0);
    sum = k_binary(k, KI_MAX, sum, k_const(k, F32, 0));
    k_store(k, y, k_aff_add(at2(z, c->out * o * o, m, o * o), at2(h, o, v, 1)), sum);
    k_finish(k);
    return k;
}

/* Windows of k places along a row of a * b + k - 1, which is folded into a lines of b:
 * y[h,o,g] = sum over i of x[g*b+h+i] W[o,i]. Lines follow one another where they are read, and not
 * where their results are stored. */
static inline Kernel *make_folded(Arena *arena, DType type, int64_t a, int64_t b, int64_t out,
                                  int64_t places)
{
    Kernel *k = kernel_new(arena, K_CONTRACT, "folded");
    int y = k_buf(k, type, b * out * a, K_OUT);
    int x = k_buf(k, type, a * b + places - 1, K_IN), w = k_buf(k, type, out * places, K_IN);
    Val g = k_dim(k, K_M, a), h = k_dim(k, K_M, b);
    Val o = k_dim(k, K_N, out), i = k_dim(k, K_K, places);
    k_section_a(k);
    Val left = k_load(k, x, k_aff_add(at2(g, b, h, 1), k_aff_val(i, 1)));
    k_section_b(k, left);
    Val right = k_load(k, w, at2(o, places, i, 1));
    Val sum = k_epilogue(k, right, type, 0);
    k_store(k, y, k_aff_add(at2(h, out * a, o, a), k_aff_val(g, 1)), sum);
    k_finish(k);
    return k;
}

/* Outer products: of each of `batch` numbers with m of its own, put down in b columns of a,
 * y[m,h,z,g,0] = x[z] w[z,m]. Lanes lie along the batch, results apart from each other. */
static inline Kernel *make_outer(Arena *arena, DType type, int64_t batch, int64_t a, int64_t b,
                                 int64_t m)
{
    Kernel *k = kernel_new(arena, K_CONTRACT, "outer");
    int y = k_buf(k, type, 2 * batch * a * b * m, K_OUT);
    int x = k_buf(k, type, batch, K_IN), w = k_buf(k, type, batch * m, K_IN);
    Val z = k_dim(k, K_B, batch), g = k_dim(k, K_M, a), h = k_dim(k, K_M, b);
    Val o = k_dim(k, K_N, m), i = k_dim(k, K_K, 1);
    k_section_a(k);
    Val left = k_load(k, x, at2(z, 1, i, 1));
    k_section_b(k, left);
    Val right = k_load(k, w, k_aff_add(at2(z, m, o, 1), k_aff_val(i, 1)));
    Val sum = k_epilogue(k, right, type, 0);
    KAff at = k_aff_add(at2(z, a, g, 1), at2(h, batch * a, o, batch * a * b));
    k_store(k, y, k_aff_scale(at, 2), sum);
    k_finish(k);
    return k;
}

/* As conv_forward, of max(x * scale[i], 0.5) in the middle of padding: a chain that a select
 * cuts off where its loads are outside of their bounds. */
static inline Kernel *make_conv_chain(Arena *arena, const Conv *c)
{
    Kernel *k = kernel_new(arena, K_CONTRACT, "conv_chain");
    int64_t o = conv_out(c), kk = conv_lines(c), wide = c->kernel < 0 ? 1 : kk, in = c->size;
    int y = k_buf(k, F32, c->batch * c->out * o * o, K_OUT);
    int w = k_buf(k, F32, c->out * c->in * kk * wide, K_IN);
    int x = k_buf(k, F32, c->batch * c->in * in * in, K_IN), s = k_buf(k, F32, c->in, K_IN);
    Val z = k_dim(k, K_B, c->batch), m = k_dim(k, K_M, c->out);
    Val h = k_dim(k, K_N, o), v = k_dim(k, K_N, o);
    Val i = k_dim(k, K_K, c->in), r = k_dim(k, K_K, kk), q = k_dim(k, K_K, wide);
    k_section_a(k);
    KAff at = k_aff_add(at2(m, c->in * kk * wide, i, kk * wide), at2(r, wide, q, 1));
    Val a = k_load(k, w, at);
    k_section_b(k, a);
    KAff row = k_aff_offset(at2(h, c->stride, r, c->dilation), -conv_pad(c));
    KAff col = k_aff_offset(at2(v, c->stride, q, c->dilation), -conv_pad(c));
    KBound bound[] = {{row, 0, in}, {col, 0, in}};
    at = k_aff_add(at2(z, c->in * in * in, i, in * in), k_aff_add(k_aff_scale(row, in), col));
    Val b = k_load_bounded(k, x, at, bound, 2, 0);
    b = k_binary(k, KI_MUL, b, k_load_bounded(k, s, k_aff_val(i, 1), bound, 2, 0));
    b = k_binary(k, KI_MAX, b, k_const(k, F32, 0.5));
    Val zero = k_const_int(k, I64, 0), end = k_const_int(k, I64, in);
    Val ri = k_index(k, I64, row), ci = k_index(k, I64, col);
    Val ok = k_binary(k, KI_AND, k_binary(k, KI_LE, zero, ri), k_binary(k, KI_LT, ri, end));
    ok = k_binary(k, KI_AND, ok, k_binary(k, KI_LE, zero, ci));
    ok = k_binary(k, KI_AND, ok, k_binary(k, KI_LT, ci, end));
    Val sum = k_epilogue(k, k_select(k, ok, b, k_const(k, F32, -1)), F32, 0);
    k_store(k, y, k_aff_add(at2(z, c->out * o * o, m, o * o), at2(h, o, v, 1)), sum);
    k_finish(k);
    return k;
}

/* dx[b,i,h,w] = sum over o, u, v of W[o,i,u,v] dy[b,o,h+p-u*d,w+p-v*d]; stride 1. */
static inline Kernel *make_conv_data(Arena *arena, const Conv *c)
{
    Kernel *k = kernel_new(arena, K_CONTRACT, "conv_data");
    int64_t o = conv_out(c), kk = conv_lines(c), wide = c->kernel < 0 ? 1 : kk, in = c->size;
    int dx = k_buf(k, F32, c->batch * c->in * in * in, K_OUT);
    int w = k_buf(k, F32, c->out * c->in * kk * wide, K_IN);
    int dy = k_buf(k, F32, c->batch * c->out * o * o, K_IN);
    Val z = k_dim(k, K_B, c->batch), m = k_dim(k, K_M, c->in);
    Val h = k_dim(k, K_N, in), v = k_dim(k, K_N, in);
    Val i = k_dim(k, K_K, c->out), r = k_dim(k, K_K, kk), q = k_dim(k, K_K, wide);
    k_section_a(k);
    KAff at = k_aff_add(at2(i, c->in * kk * wide, m, kk * wide), at2(r, wide, q, 1));
    Val a = k_load(k, w, at);
    k_section_b(k, a);
    KAff row = k_aff_offset(at2(h, 1, r, -c->dilation), conv_pad(c));
    KAff col = k_aff_offset(at2(v, 1, q, -c->dilation), conv_pad(c));
    KBound bound[] = {{row, 0, o}, {col, 0, o}};
    at = k_aff_add(at2(z, c->out * o * o, i, o * o), k_aff_add(k_aff_scale(row, o), col));
    Val b = k_load_bounded(k, dy, at, bound, 2, 0);
    Val sum = k_epilogue(k, b, F32, 0);
    k_store(k, dx, k_aff_add(at2(z, c->in * in * in, m, in * in), at2(h, in, v, 1)), sum);
    k_finish(k);
    return k;
}

/* lo <= e < hi as a value. */
static inline Val index_within(Kernel *k, KAff e, int64_t lo, int64_t hi)
{
    Val i = k_index(k, I64, e), from = k_const_int(k, I64, lo), to = k_const_int(k, I64, hi);
    Val begun = k_binary(k, KI_LE, from, i), left = k_binary(k, KI_LT, i, to);
    return k_binary(k, KI_AND, begun, left);
}

/* 0.7 x, or, of a padded one, 0.7 x + 1 where it is not padding. */
static inline Val padded_window(Kernel *k, int x, KAff at, KAff row, KAff col, int64_t size)
{
    KBound bound[] = {{row, 0, size}, {col, 0, size}};
    int64_t lo, hi;
    bool inside = k_aff_range(k, &row, &lo, &hi) && lo >= 0 && hi < size;
    Val v = inside ? k_load(k, x, at) : k_load_bounded(k, x, at, bound, 2, 0);
    v = k_binary(k, KI_MUL, v, k_const(k, F32, 0.7));
    if (inside)
        return v;
    v = k_binary(k, KI_ADD, v, k_const(k, F32, 1));
    Val is = index_within(k, row, 0, size), also = index_within(k, col, 0, size);
    return k_select(k, k_binary(k, KI_AND, is, also), v, k_const(k, F32, 0));
}

/* dW[o,i,u,v] = sum over b, h, w of dy[b,o,h,w] x[b,i,h*s+u*d-p,w*s+v*d-p]; `computed`: of
 * padded_window() in place of x. */
static inline Kernel *make_conv_weight_as(Arena *arena, const Conv *c, int64_t leaf, bool computed)
{
    Kernel *k = kernel_new(arena, K_CONTRACT, "conv_weight");
    int64_t o = conv_out(c), kk = c->kernel, in = c->size;
    int dw = k_buf(k, F32, c->out * c->in * kk * kk, K_OUT);
    int dy = k_buf(k, F32, c->batch * c->out * o * o, K_IN);
    int x = k_buf(k, F32, c->batch * c->in * in * in, K_IN);
    Val m = k_dim(k, K_M, c->out), i = k_dim(k, K_N, c->in);
    Val r = k_dim(k, K_N, kk), q = k_dim(k, K_N, kk);
    Val z = k_dim(k, K_K, c->batch), h = k_dim(k, K_K, o), v = k_dim(k, K_K, o);
    k_section_a(k);
    Val a = k_load(k, dy, k_aff_add(at2(z, c->out * o * o, m, o * o), at2(h, o, v, 1)));
    k_section_b(k, a);
    KAff row = k_aff_offset(at2(h, c->stride, r, c->dilation), -c->pad);
    KAff col = k_aff_offset(at2(v, c->stride, q, c->dilation), -c->pad);
    KBound bound[] = {{row, 0, in}, {col, 0, in}};
    KAff at = k_aff_add(at2(z, c->in * in * in, i, in * in), k_aff_add(k_aff_scale(row, in), col));
    Val b = computed     ? padded_window(k, x, at, row, col, in)
            : c->pad > 0 ? k_load_bounded(k, x, at, bound, 2, 0)
                         : k_load(k, x, at);
    Val sum = k_epilogue(k, b, F32, leaf);
    k_store(k, dw, k_aff_add(at2(m, c->in * kk * kk, i, kk * kk), at2(r, kk, q, 1)), sum);
    k_finish(k);
    return k;
}

static inline Kernel *make_conv_weight(Arena *arena, const Conv *c, int64_t leaf)
{
    return make_conv_weight_as(arena, c, leaf, false);
}

/* A depthwise convolution of c->in channels, c->out results of each (or one, if that is 0), or its
 * gradient: of the data (stride 1), of the weights. The operand with the window is b, or, `first`,
 * a. Channels lie outside of the planes, or fastest (CHANNELS_LAST); a window has rows of c->kernel
 * places, or of one (ONE_WIDE). */
enum { DEPTHWISE_FORWARD, DEPTHWISE_DATA, DEPTHWISE_WEIGHT, CHANNELS_LAST = 4, ONE_WIDE = 8 };

/* [z, ch, h, v] or [z, h, v, ch]; extents n of ch, size of h and v. */
static inline KAff depthwise_place(int what, KAff z, KAff ch, KAff h, KAff v, int64_t n,
                                   int64_t size)
{
    KAff place = k_aff_add(k_aff_scale(h, size), v);
    KAff image = k_aff_scale(z, n * size * size);
    if ((what & CHANNELS_LAST) != 0)
        return k_aff_add(image, k_aff_add(k_aff_scale(place, n), ch));
    return k_aff_add(image, k_aff_add(place, k_aff_scale(ch, size * size)));
}

static inline Kernel *make_depthwise(Arena *arena, int form, const Conv *c, int64_t leaf,
                                     bool first)
{
    Kernel *k = kernel_new(arena, K_CONTRACT, "depthwise");
    int what = form & 3;
    int64_t o = conv_out(c), kk = c->kernel, n = c->in, wide = (form & ONE_WIDE) != 0 ? 1 : kk;
    int64_t from = what == DEPTHWISE_DATA ? o : c->size, to = what == DEPTHWISE_DATA ? c->size : o;
    int64_t each = c->out > 0 ? c->out : 1;
    bool weight = what == DEPTHWISE_WEIGHT, data = what == DEPTHWISE_DATA;
    int64_t n_window = data ? n * each : n, n_inside = data ? n : n * each;
    KRole free = first ? K_M : K_N, of_window = weight ? free : K_K, of_plane = weight ? K_K : free;
    KRole of_each = data ? K_K : first ? K_N : K_M;
    int64_t taps = n * each * kk * wide;
    int out = k_buf(k, F32, weight ? taps : c->batch * n_inside * to * to, K_OUT);
    int one = k_buf(k, F32, weight ? c->batch * n * each * o * o : taps, K_IN);
    int x = k_buf(k, F32, c->batch * n_window * from * from, K_IN);
    int bias = k_buf(k, F32, n_inside, K_IN);
    Val ch = k_dim(k, K_B, n), z = 0, h = 0, v = 0, r = 0, q = 0, e = 0;
    for (KRole role = K_M; role <= K_K; role++) { /* in the order of roles */
        if (role == of_each && each > 1)
            e = k_dim(k, role, each);
        if (role == of_plane) {
            z = k_dim(k, role, c->batch);
            h = k_dim(k, role, to);
            v = k_dim(k, role, to);
        }
        if (role == of_window) {
            r = k_dim(k, role, kk);
            q = k_dim(k, role, wide);
        }
    }
    KAff few = k_aff_val(ch, 1), many = each > 1 ? at2(ch, each, e, 1) : few;
    KAff of_inside = data ? few : many, of_x = data ? many : few;
    int64_t step = data ? -c->dilation : c->dilation, pad = data ? c->pad : -c->pad;
    KAff row = k_aff_offset(at2(h, data ? 1 : c->stride, r, step), pad);
    KAff col = k_aff_offset(at2(v, data ? 1 : c->stride, q, step), pad), image = k_aff_val(z, 1);
    KAff inside =
        depthwise_place(form, image, of_inside, k_aff_val(h, 1), k_aff_val(v, 1), n_inside, to);
    KAff window = depthwise_place(form, image, of_x, row, col, n_window, from);
    KAff tap = k_aff_add(k_aff_scale(many, kk * wide), at2(r, wide, q, 1));
    k_section_a(k);
    Val a =
        first ? padded_window(k, x, window, row, col, from) : k_load(k, one, weight ? inside : tap);
    k_section_b(k, a);
    Val b =
        first ? k_load(k, one, weight ? inside : tap) : padded_window(k, x, window, row, col, from);
    Val sum = k_epilogue(k, b, F32, leaf);
    sum = k_binary(k, KI_ADD, sum, k_load(k, bias, of_inside));
    k_store(k, out, weight ? tap : inside, sum);
    k_finish(k);
    return k;
}

/* Results of two rows between one another, as a transposed convolution of stride 2 has them:
 * out[i, l, 2 j + e] = sum over k of x[i, k, j] w[k, l, e], plus bias[l]; j < line, l < channels.
 * x is a, or, `second`, b. */
static inline Kernel *make_interleaved(Arena *arena, int64_t n, int64_t line, int64_t channels,
                                       int64_t kk, bool second)
{
    Kernel *k = kernel_new(arena, K_CONTRACT, "interleaved");
    int out = k_buf(k, F32, n * channels * 2 * line, K_OUT);
    int x = k_buf(k, F32, n * kk * line, K_IN), w = k_buf(k, F32, kk * channels * 2, K_IN);
    int bias = k_buf(k, F32, channels, K_IN);
    Val i = 0, j = 0, l = 0, e = 0;
    for (KRole role = K_M; role <= K_N; role++) {
        if ((role == K_N) == second) {
            i = k_dim(k, role, n);
            j = k_dim(k, role, line);
        } else {
            l = k_dim(k, role, channels);
            e = k_dim(k, role, 2);
        }
    }
    Val p = k_dim(k, K_K, kk);
    KAff of_x = k_aff_add(at2(i, kk * line, p, line), k_aff_val(j, 1));
    KAff of_w = k_aff_add(at2(p, channels * 2, l, 2), k_aff_val(e, 1));
    k_section_a(k);
    Val a = k_load(k, second ? w : x, second ? of_w : of_x);
    k_section_b(k, a);
    Val b = k_load(k, second ? x : w, second ? of_x : of_w);
    Val sum = k_epilogue(k, b, F32, 0);
    sum = k_binary(k, KI_ADD, sum, k_load(k, bias, k_aff_val(l, 1)));
    k_store(k, out, k_aff_add(at2(i, channels * 2 * line, l, 2 * line), at2(j, 2, e, 1)), sum);
    k_finish(k);
    return k;
}

/* Rows of a table chosen by an index, times b: an indirect access in a section. */
static inline Kernel *make_embedding_matmul(Arena *arena, int64_t m, int64_t n, int64_t kk)
{
    Kernel *k = kernel_new(arena, K_CONTRACT, "embedding_matmul");
    int out = k_buf(k, F32, m * n, K_OUT), table = k_buf(k, F32, 7 * kk, K_IN);
    int index = k_buf(k, I32, m, K_IN), b = k_buf(k, F32, kk * n, K_IN);
    Val i = k_dim(k, K_M, m), j = k_dim(k, K_N, n), p = k_dim(k, K_K, kk);
    k_section_a(k);
    Val r = k_load(k, index, k_aff_val(i, 1));
    Val a = k_load(k, table, k_aff_offset(k_aff_add(k_aff_val(p, 1), k_aff_val(r, kk)), 3 * kk));
    k_section_b(k, a);
    Val y = k_load(k, b, at2(p, n, j, 1));
    Val sum = k_epilogue(k, y, F32, 0);
    k_store(k, out, at2(i, n, j, 1), sum);
    k_finish(k);
    return k;
}

#endif
