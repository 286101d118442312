/* Loop kernels: the object's bits are the exact interpreter's. */
#include "cpu/check.h"

static Arena arena;

static KAff at2(Val i, int64_t c, Val j, int64_t d)
{
    return k_aff_add(k_aff_val(i, c), k_aff_val(j, d));
}

/* out = relu(x * 2 + b[j]), rows of `n`. */
static Kernel *bias_relu(int64_t m, int64_t n)
{
    Kernel *k = kernel_new(&arena, K_LOOP, "bias_relu");
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
static Kernel *transpose(DType t, int64_t m, int64_t n)
{
    Kernel *k = kernel_new(&arena, K_LOOP, "transpose");
    int out = k_buf(k, t, m * n, K_OUT), x = k_buf(k, t, m * n, K_IN);
    Val i = k_par(k, m), j = k_par(k, n);
    k_store(k, out, at2(i, n, j, 1), k_load(k, x, at2(i, 1, j, m)));
    k_end(k, i);
    k_finish(k);
    return k;
}

/* Softmax of rows, kept in a LOCAL buffer between its passes. */
static Kernel *softmax(DType t, int64_t m, int64_t n)
{
    Kernel *k = kernel_new(&arena, K_LOOP, "softmax");
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

/* Sums over rows: a SEQ or a RED loop inside of the columns. */
static Kernel *column_sums(DType t, int64_t m, int64_t n, bool red, KOp op)
{
    Kernel *k = kernel_new(&arena, K_LOOP, red ? "column_red" : "column_seq");
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
static Kernel *total(DType t, int64_t n, KOp op)
{
    Kernel *k = kernel_new(&arena, K_LOOP, "total");
    int out = k_buf(k, t, 1, K_OUT), x = k_buf(k, t, n, K_IN);
    Val acc = k_acc(k, t, op), i = k_red(k, n);
    k_into(k, acc, k_load(k, x, k_aff_val(i, 1)));
    k_end(k, i);
    k_store(k, out, k_aff(0), k_fold(k, acc));
    k_finish(k);
    return k;
}

/* Padding by `pad` on both sides, with a stride: bounds that fail. */
static Kernel *padded(DType t, int64_t m, int64_t n, int64_t pad, int64_t stride)
{
    Kernel *k = kernel_new(&arena, K_LOOP, "padded");
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
static Kernel *embedding(DType index, int64_t m, int64_t n)
{
    Kernel *k = kernel_new(&arena, K_LOOP, "embedding");
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
static Kernel *pick(int64_t m)
{
    Kernel *k = kernel_new(&arena, K_LOOP, "pick");
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
static Kernel *scatter_add(int64_t m, int64_t n)
{
    Kernel *k = kernel_new(&arena, K_LOOP, "scatter_add");
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
static Kernel *argmax(int64_t m, int64_t n)
{
    Kernel *k = kernel_new(&arena, K_LOOP, "argmax");
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
static Kernel *cumulative(int64_t m, int64_t n)
{
    Kernel *k = kernel_new(&arena, K_LOOP, "cumulative");
    int out = k_buf(k, F32, m * n, K_OUT), x = k_buf(k, F32, m * n, K_IN);
    Val i = k_par(k, m), sum = k_var(k, k_const(k, F32, 0)), j = k_seq_down(k, n);
    k_set(k, sum, k_binary(k, KI_ADD, k_get(k, sum), k_load(k, x, at2(i, n, j, 1))));
    k_store(k, out, at2(i, n, j, 1), k_get(k, sum));
    k_end(k, i);
    k_finish(k);
    return k;
}

/* RED in RED: the outer one feeds a lane that is not known beforehand. */
static Kernel *nested(int64_t m, int64_t n)
{
    Kernel *k = kernel_new(&arena, K_LOOP, "nested");
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

static Kernel *cast_kernel(DType from, DType to, int64_t n)
{
    Kernel *k = kernel_new(&arena, K_LOOP, "cast");
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

static Kernel *binary_kernel(KOp op, DType t, int64_t n)
{
    Kernel *k = kernel_new(&arena, K_LOOP, kop_text(op));
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

static Kernel *unary_kernel(KOp op, DType t, int64_t n)
{
    Kernel *k = kernel_new(&arena, K_LOOP, kop_text(op));
    int out = k_buf(k, t, n, K_OUT), x = k_buf(k, t, n, K_IN);
    Val i = k_par(k, n), v = k_load(k, x, k_aff_val(i, 1));
    if (op == KI_FLOOR || op == KI_RINT)
        v = k_binary(k, KI_MUL, v, k_const(k, t, 2.5));
    k_store(k, out, k_aff_val(i, 1), k_unary(k, op, v));
    k_end(k, i);
    k_finish(k);
    return k;
}

typedef VEC(Kernel *) Kernels;

/* y[2j] = x[2j+1], y[2j+1] = x[2j] + x[2j+1], in rows of n pairs. */
static Kernel *pairs(DType t, int64_t m, int64_t n)
{
    Kernel *k = kernel_new(&arena, K_LOOP, "pairs");
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

static void add(Kernels *s, Kernel *k)
{
    const char *wrong = kernel_verify(k, &arena);
    ck_assert_msg(wrong == NULL, "%s: %s", k->name, wrong);
    vec_push(&arena, s, k);
}

static void add_shapes(Kernels *s)
{
    static const int64_t size[] = {1, 2, 7, 8, 15, 16, 17, 33, 100};
    for (int i = 0; i < 9; i++) {
        int64_t n = size[i], m = size[(i * 4 + 3) % 9];
        add(s, bias_relu(m, n));
        add(s, transpose(F32, m, n));
        add(s, softmax(F32, m, n));
        add(s, column_sums(F32, m, n, false, KI_ADD));
        add(s, column_sums(F32, m, n, true, KI_ADD));
        add(s, total(F32, m * n, KI_ADD));
        add(s, total(F64, m * n, KI_MUL));
        add(s, padded(F32, m, n, 3, 1));
        add(s, padded(U8, m, n, 2, 2));
        add(s, padded(F32, m, 2 * n, 3, 2));
        add(s, padded(F64, m, 2 * n, 1, 2));
        for (int t = F32; t <= I64; t++)
            add(s, pairs((DType)t, m, n));
        add(s, embedding(I32, m, n));
        add(s, pick(n));
        add(s, scatter_add(m, n));
        add(s, argmax(m, n));
        add(s, cumulative(m, n));
        add(s, nested(m, n));
    }
}

static void add_types(Kernels *s)
{
    for (int t = 0; t < N_DTYPES; t++) {
        add(s, transpose((DType)t, 5, 19));
        add(s, padded((DType)t, 3, 37, 4, 1));
        for (int to = 0; to < N_DTYPES; to++)
            if (to != t)
                add(s, cast_kernel((DType)t, (DType)to, 53));
    }
    for (int t = F32; t <= F64; t++) {
        add(s, column_sums((DType)t, 21, 19, true, KI_MAX));
        add(s, column_sums((DType)t, 21, 19, false, KI_MIN));
        add(s, total((DType)t, 1000, KI_ADD));
    }
    add(s, total(I64, 77, KI_MIN));
    add(s, total(I32, 77, KI_MAX));
    add(s, total(BOOL, 77, KI_AND));
    add(s, total(BOOL, 77, KI_OR));
    add(s, column_sums(BOOL, 9, 40, true, KI_OR));
    add(s, embedding(I64, 9, 20));
}

static void add_operations(Kernels *s)
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
            add(s, binary_kernel(both[o], floats[t], 37));
        for (int t = 0; t < 3; t++)
            add(s, binary_kernel(both[o], ints[t], 37));
    }
    for (int o = 0; o < 7; o++)
        for (int t = 0; t < 2; t++)
            add(s, binary_kernel(whole[o], ints[t], 37));
    add(s, binary_kernel(KI_MULHI, I32, 37));
    add(s, softmax(F64, 3, 21));
    for (int o = 0; o < 11; o++)
        for (int t = 0; t < 2; t++)
            add(s, unary_kernel(one[o], floats[t], 37));
}

static void check_all(const char *cpu, void (*fill)(Kernels *))
{
    Kernels s = {0};
    fill(&s);
    TargetOptions o = {.cpu = cpu};
    check_kernels(&o, s.at, s.n);
    arena_free(&arena);
}

START_TEST(shapes_native)
{
    check_all("native", add_shapes);
}
END_TEST

START_TEST(types_native)
{
    check_all("native", add_types);
}
END_TEST

START_TEST(operations_native)
{
    check_all("native", add_operations);
}
END_TEST

/* Baseline has no fma: another class of numerics where a kernel uses it. */
START_TEST(types_baseline)
{
    check_all("baseline", add_types);
}
END_TEST

Suite *suite_cpu_loop(void)
{
    Suite *s = suite_create("cpu_loop");
    TCase *t = tcase_create("bits");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, shapes_native);
    tcase_add_test(t, types_native);
    tcase_add_test(t, operations_native);
    tcase_add_test(t, types_baseline);
    suite_add_tcase(s, t);
    return s;
}
