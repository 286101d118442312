/* Contractions: the object's bits are the exact interpreter's. */
#include "cpu/check.h"

static Arena arena;

typedef VEC(Kernel *) Kernels;

static KAff at2(Val i, int64_t c, Val j, int64_t d)
{
    return k_aff_add(k_aff_val(i, c), k_aff_val(j, d));
}

static void add(Kernels *s, Kernel *k)
{
    const char *wrong = kernel_verify(k, &arena);
    ck_assert_msg(wrong == NULL, "%s: %s", k->name, wrong);
    vec_push(&arena, s, k);
}

/* What a matmul may have around it. */
enum { TRANSPOSE_A = 1, TRANSPOSE_B = 2, PROLOGUE = 4, EPILOGUE = 8, TRANSPOSE_C = 16 };

static Kernel *matmul(DType t, int64_t batch, int64_t m, int64_t n, int64_t kk, int form,
                      int64_t leaf)
{
    Kernel *k = kernel_new(&arena, K_CONTRACT, "matmul");
    int out = k_buf(k, t, batch * m * n, (form & EPILOGUE) != 0 ? K_INOUT : K_OUT);
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
    Val sum = k_epilogue(k, y, t, leaf);
    KAff to = (form & TRANSPOSE_C) != 0 ? at2(i, 1, j, m) : at2(i, n, j, 1);
    to = k_aff_add(to, k_aff_val(z, m * n));
    if ((form & EPILOGUE) != 0) {
        sum = k_binary(k, KI_ADD, sum, k_load(k, bias, k_aff_val(j, 1)));
        sum = k_fma(k, sum, k_const(k, t, -0.01), k_load(k, out, to));
    }
    k_store(k, out, to, sum);
    k_finish(k);
    return k;
}

typedef struct Conv {
    int64_t batch, in, out, size, kernel, stride, pad, dilation;
} Conv;

static int64_t conv_out(const Conv *c)
{
    return (c->size + 2 * c->pad - c->dilation * (c->kernel - 1) - 1) / c->stride + 1;
}

/* y[b,o,h,w] = sum over i, u, v of W[o,i,u,v] x[b,i,h*s+u*d-p,w*s+v*d-p] */
static Kernel *conv_forward(const Conv *c, bool bytes)
{
    Kernel *k = kernel_new(&arena, K_CONTRACT, "conv");
    int64_t o = conv_out(c), kk = c->kernel, in = c->size;
    int y = k_buf(k, F32, c->batch * c->out * o * o, K_OUT);
    int w = k_buf(k, F32, c->out * c->in * kk * kk, K_IN);
    int x = k_buf(k, bytes ? U8 : F32, c->batch * c->in * in * in, K_IN);
    Val z = k_dim(k, K_B, c->batch), m = k_dim(k, K_M, c->out);
    Val h = k_dim(k, K_N, o), v = k_dim(k, K_N, o);
    Val i = k_dim(k, K_K, c->in), r = k_dim(k, K_K, kk), q = k_dim(k, K_K, kk);
    k_section_a(k);
    KAff at = k_aff_add(at2(m, c->in * kk * kk, i, kk * kk), at2(r, kk, q, 1));
    Val a = k_load(k, w, at);
    k_section_b(k, a);
    KAff row = k_aff_offset(at2(h, c->stride, r, c->dilation), -c->pad);
    KAff col = k_aff_offset(at2(v, c->stride, q, c->dilation), -c->pad);
    KBound bound[] = {{row, 0, in}, {col, 0, in}};
    at = k_aff_add(at2(z, c->in * in * in, i, in * in), k_aff_add(k_aff_scale(row, in), col));
    Val b = c->pad > 0 ? k_load_bounded(k, x, at, bound, 2, 0) : k_load(k, x, at);
    if (bytes)
        b = k_binary(k, KI_MUL, k_cast(k, F32, b), k_const(k, F32, 1.0 / 255));
    Val sum = k_epilogue(k, b, F32, 0);
    sum = k_binary(k, KI_MAX, sum, k_const(k, F32, 0));
    k_store(k, y, k_aff_add(at2(z, c->out * o * o, m, o * o), at2(h, o, v, 1)), sum);
    k_finish(k);
    return k;
}

/* dx[b,i,h,w] = sum over o, u, v of W[o,i,u,v] dy[b,o,h+p-u*d,w+p-v*d]; stride 1. */
static Kernel *conv_data(const Conv *c)
{
    Kernel *k = kernel_new(&arena, K_CONTRACT, "conv_data");
    int64_t o = conv_out(c), kk = c->kernel, in = c->size;
    int dx = k_buf(k, F32, c->batch * c->in * in * in, K_OUT);
    int w = k_buf(k, F32, c->out * c->in * kk * kk, K_IN);
    int dy = k_buf(k, F32, c->batch * c->out * o * o, K_IN);
    Val z = k_dim(k, K_B, c->batch), m = k_dim(k, K_M, c->in);
    Val h = k_dim(k, K_N, in), v = k_dim(k, K_N, in);
    Val i = k_dim(k, K_K, c->out), r = k_dim(k, K_K, kk), q = k_dim(k, K_K, kk);
    k_section_a(k);
    KAff at = k_aff_add(at2(i, c->in * kk * kk, m, kk * kk), at2(r, kk, q, 1));
    Val a = k_load(k, w, at);
    k_section_b(k, a);
    KAff row = k_aff_offset(at2(h, 1, r, -c->dilation), c->pad);
    KAff col = k_aff_offset(at2(v, 1, q, -c->dilation), c->pad);
    KBound bound[] = {{row, 0, o}, {col, 0, o}};
    at = k_aff_add(at2(z, c->out * o * o, i, o * o), k_aff_add(k_aff_scale(row, o), col));
    Val b = k_load_bounded(k, dy, at, bound, 2, 0);
    Val sum = k_epilogue(k, b, F32, 0);
    k_store(k, dx, k_aff_add(at2(z, c->in * in * in, m, in * in), at2(h, in, v, 1)), sum);
    k_finish(k);
    return k;
}

/* dW[o,i,u,v] = sum over b, h, w of dy[b,o,h,w] x[b,i,h*s+u*d-p,w*s+v*d-p] */
static Kernel *conv_weight(const Conv *c, int64_t leaf)
{
    Kernel *k = kernel_new(&arena, K_CONTRACT, "conv_weight");
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
    Val b = c->pad > 0 ? k_load_bounded(k, x, at, bound, 2, 0) : k_load(k, x, at);
    Val sum = k_epilogue(k, b, F32, leaf);
    k_store(k, dw, k_aff_add(at2(m, c->in * kk * kk, i, kk * kk), at2(r, kk, q, 1)), sum);
    k_finish(k);
    return k;
}

/* Rows of a table chosen by an index, times b: an indirect access in a section. */
static Kernel *embedding_matmul(int64_t m, int64_t n, int64_t kk)
{
    Kernel *k = kernel_new(&arena, K_CONTRACT, "embedding_matmul");
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

static const int64_t sizes[] = {1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 64, 100, 127};

static void add_sweep(Kernels *s)
{
    uint64_t seed = 1;
    for (int form = 0; form < 32; form++)
        for (int i = 0; i < 6; i++) {
            int64_t m = sizes[draw(&seed) % 14], n = sizes[draw(&seed) % 14];
            int64_t kk = sizes[draw(&seed) % 14];
            int64_t leaf = i < 4 ? 0 : 1 + (int64_t)(draw(&seed) % 40);
            add(s, matmul(i == 3 ? F64 : F32, i == 2 ? 3 : 1, m, n, kk, form, leaf));
        }
}

static void add_blocked(Kernels *s)
{
    add(s, matmul(F32, 1, 200, 70, 1300, 0, 0));
    add(s, matmul(F32, 1, 70, 200, 1300, TRANSPOSE_A | TRANSPOSE_B, 0));
    add(s, matmul(F32, 1, 230, 50, 1300, EPILOGUE, 700));
    add(s, matmul(F64, 1, 210, 33, 1300, PROLOGUE | TRANSPOSE_B, 600));
    add(s, matmul(F32, 1, 64, 256, 784, TRANSPOSE_B, 0));
    add(s, matmul(F32, 1, 256, 784, 64, TRANSPOSE_A | EPILOGUE, 0));
    add(s, matmul(F32, 1, 64, 10, 256, TRANSPOSE_B | EPILOGUE, 0));
    add(s, matmul(F32, 1, 1, 500, 300, 0, 0));
    add(s, matmul(F32, 1, 500, 1, 300, 0, 0));
    add(s, matmul(F32, 1, 1, 500, 300, TRANSPOSE_B, 0));
    add(s, matmul(F32, 2, 20, 30, 0, 0, 0));
    add(s, embedding_matmul(30, 40, 50));
}

static void add_convolutions(Kernels *s)
{
    static const Conv conv[] = {
        {2, 3, 8, 12, 3, 1, 0, 1}, {3, 4, 7, 9, 3, 1, 1, 1},  {2, 5, 6, 11, 3, 2, 1, 1},
        {1, 2, 5, 15, 5, 1, 2, 2}, {2, 3, 4, 20, 3, 1, 0, 1}, {5, 2, 3, 6, 1, 1, 0, 1},
        {2, 6, 33, 7, 3, 1, 1, 1}, {1, 1, 8, 28, 3, 1, 0, 1}, {3, 17, 16, 5, 3, 2, 1, 1},
    };
    for (int i = 0; i < 9; i++) {
        add(s, conv_forward(&conv[i], false));
        add(s, conv_forward(&conv[i], true));
        if (conv[i].stride == 1)
            add(s, conv_data(&conv[i]));
        add(s, conv_weight(&conv[i], 0));
        add(s, conv_weight(&conv[i], 50));
    }
}

static void check_all(const char *cpu, void (*fill)(Kernels *))
{
    Kernels s = {0};
    fill(&s);
    TargetOptions o = {.cpu = cpu};
    check_kernels(&o, s.at, s.n);
    arena_free(&arena);
}

START_TEST(sweep)
{
    check_all("native", add_sweep);
}
END_TEST

START_TEST(blocked)
{
    check_all("native", add_blocked);
}
END_TEST

START_TEST(convolutions)
{
    check_all("native", add_convolutions);
}
END_TEST

Suite *suite_cpu_contract(void)
{
    Suite *s = suite_create("cpu_contract");
    TCase *t = tcase_create("bits");
    tcase_set_timeout(t, 600);
    tcase_add_test(t, sweep);
    tcase_add_test(t, blocked);
    tcase_add_test(t, convolutions);
    suite_add_tcase(s, t);
    return s;
}
