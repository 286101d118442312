/* A small Program made by hand: h = relu(x W + b[k]), squared error against t, two
 * micro-batches, sgd under a guard; all that an emitted object must handle. */
#ifndef GRADC_TESTS_CPU_TINY_H
#define GRADC_TESTS_CPU_TINY_H

#include <string.h>
#include "runtime/abi.h"
#include "target/target.h"

enum { TINY_ROWS = 4, TINY_IN = 3, TINY_OUT = 2, TINY_KINDS = 3, TINY_TIMES = 2 };

typedef struct Tiny {
    Program *p;
    Arena *a;
    int64_t top;
    int32_t w, b, lr, gw, gb, h, d, loss, total, flag, x, t, k, mask;
} Tiny;

static inline KAff tiny_at(Val i, int64_t c, Val j, int64_t d)
{
    return k_aff_add(k_aff_val(i, c), k_aff_val(j, d));
}

static inline int32_t tiny_buffer(Tiny *s, const char *name, DType t, Role role, int64_t rows,
                                  int64_t cols)
{
    Buffer b = {.name = name,
                .dtype = t,
                .role = role,
                .rank = cols > 0 ? 2 : 1,
                .elems = rows,
                .input = -1,
                .storage = -1};
    b.shape[0] = rows;
    b.shape[1] = cols;
    if (cols > 0)
        b.elems *= cols;
    if (rows == 1 && cols == 0)
        b.rank = 0;
    b.bytes = b.elems * dtype_bytes(t);
    b.offset = s->top;
    s->top += align_up(b.bytes, 64);
    vec_push(s->a, &s->p->buffer, b);
    return s->p->buffer.n - 1;
}

static inline int32_t tiny_input(Tiny *s, const char *name, DType t, int64_t cols)
{
    int64_t rows = TINY_ROWS * TINY_TIMES;
    Input in = {.name = name, .dtype = t, .rank = cols > 0 ? 2 : 1, .rows = rows};
    in.shape[0] = rows;
    in.shape[1] = cols;
    in.elems = cols > 0 ? rows * cols : rows;
    in.doc = "an input */ of \"the\" model";
    in.ranged = t == I32;
    in.hi = t == I32 ? TINY_KINDS : 0;
    vec_push(s->a, &s->p->input, in);
    int32_t staged = tiny_buffer(s, name, t, ROLE_STAGING, rows, cols);
    int32_t b = tiny_buffer(s, name, t, ROLE_INPUT, rows, cols);
    s->top = s->p->buffer.at[b].offset;
    s->p->buffer.at[b].offset = -1;
    s->p->buffer.at[b].input = s->p->buffer.at[staged].input = s->p->input.n - 1;
    return b;
}

typedef struct TinyCalls {
    VEC(Call) at;
} TinyCalls;

static inline void tiny_call(Tiny *s, TinyCalls *c, Kernel *k, const Operand *op, int n)
{
    Call x = {.kind = CALL_KERNEL, .kernel = program_kernel(s->p, k), .n_ops = n};
    x.op = NEW_ARRAY(s->a, Operand, n);
    memcpy(x.op, op, (size_t)n * sizeof *op);
    vec_push(s->a, &c->at, x);
}

#define OP(b)            ((Operand){.buffer = (b)})
#define OP_STEP(b, step) ((Operand){(b), 0, {(step)}})

/* out = i * scale + base */
static inline Kernel *tiny_ramp(Tiny *s, DType t, int64_t n, double scale, double base)
{
    Kernel *k = kernel_new(s->a, K_LOOP, "ramp");
    int out = k_buf(k, t, n, K_OUT);
    Val i = k_par(k, n);
    Val v = k_cast(k, t, k_index(k, I32, k_aff_val(i, 1)));
    v = k_binary(k, KI_MUL, v, k_const(k, t, scale));
    k_store(k, out, k_aff_val(i, 1), k_binary(k, KI_ADD, v, k_const(k, t, base)));
    k_end(k, i);
    k_finish(k);
    return k;
}

/* h = relu(x W + b[k]) */
static inline Kernel *tiny_forward(Tiny *s)
{
    Kernel *k = kernel_new(s->a, K_CONTRACT, "matmul_relu");
    int h = k_buf(k, F32, TINY_ROWS * TINY_OUT, K_OUT);
    int x = k_buf(k, F32, TINY_ROWS * TINY_IN, K_IN), w = k_buf(k, F32, TINY_IN * TINY_OUT, K_IN);
    int b = k_buf(k, F32, TINY_KINDS * TINY_OUT, K_IN), kind = k_buf(k, I32, TINY_ROWS, K_IN);
    Val i = k_dim(k, K_M, TINY_ROWS), j = k_dim(k, K_N, TINY_OUT), p = k_dim(k, K_K, TINY_IN);
    k_section_a(k);
    k_section_b(k, k_load(k, x, tiny_at(i, TINY_IN, p, 1)));
    Val sum = k_epilogue(k, k_load(k, w, tiny_at(p, TINY_OUT, j, 1)), F32, 0);
    Val r = k_load(k, kind, k_aff_val(i, 1));
    sum = k_binary(k, KI_ADD, sum, k_load(k, b, tiny_at(j, 1, r, TINY_OUT)));
    k_store(k, h, tiny_at(i, TINY_OUT, j, 1), k_binary(k, KI_MAX, sum, k_const(k, F32, 0)));
    k_finish(k);
    return k;
}

/* d = 2 (h - t) where h > 0; total += sum (h - t)^2 */
static inline Kernel *tiny_error(Tiny *s)
{
    Kernel *k = kernel_new(s->a, K_LOOP, "error");
    int n = TINY_ROWS * TINY_OUT;
    int d = k_buf(k, F32, n, K_OUT), total = k_buf(k, F32, 1, K_INOUT);
    int h = k_buf(k, F32, n, K_IN), t = k_buf(k, F32, n, K_IN);
    Val acc = k_acc(k, F32, KI_ADD), i = k_red(k, n);
    Val x = k_load(k, h, k_aff_val(i, 1));
    Val e = k_binary(k, KI_SUB, x, k_load(k, t, k_aff_val(i, 1)));
    Val zero = k_const(k, F32, 0);
    Val g = k_select(k, k_binary(k, KI_LT, zero, x), k_binary(k, KI_ADD, e, e), zero);
    k_store(k, d, k_aff_val(i, 1), g);
    k_into(k, acc, k_binary(k, KI_MUL, e, e));
    k_end(k, i);
    k_store(k, total, k_aff(0), k_binary(k, KI_ADD, k_load(k, total, k_aff(0)), k_fold(k, acc)));
    k_finish(k);
    return k;
}

/* gw += x' d */
static inline Kernel *tiny_gradient(Tiny *s)
{
    Kernel *k = kernel_new(s->a, K_CONTRACT, "matmul_add");
    int g = k_buf(k, F32, TINY_IN * TINY_OUT, K_INOUT);
    int x = k_buf(k, F32, TINY_ROWS * TINY_IN, K_IN), d = k_buf(k, F32, TINY_ROWS * TINY_OUT, K_IN);
    Val i = k_dim(k, K_M, TINY_IN), j = k_dim(k, K_N, TINY_OUT), p = k_dim(k, K_K, TINY_ROWS);
    k_section_a(k);
    k_section_b(k, k_load(k, x, tiny_at(i, 1, p, TINY_IN)));
    Val sum = k_epilogue(k, k_load(k, d, tiny_at(p, TINY_OUT, j, 1)), F32, 0);
    KAff at = tiny_at(i, TINY_OUT, j, 1);
    k_store(k, g, at, k_binary(k, KI_ADD, k_load(k, g, at), sum));
    k_finish(k);
    return k;
}

/* flag = all finite; loss = total / rows; skipped += !flag */
static inline Kernel *tiny_finite(Tiny *s)
{
    Kernel *k = kernel_new(s->a, K_LOOP, "finite");
    int flag = k_buf(k, BOOL, 1, K_OUT), loss = k_buf(k, F32, 1, K_OUT);
    int skipped = k_buf(k, I64, 1, K_INOUT), total = k_buf(k, F32, 1, K_IN);
    int rows = k_buf(k, I64, 1, K_IN), g = k_buf(k, F32, TINY_IN * TINY_OUT, K_IN);
    Val all = k_acc(k, BOOL, KI_AND), i = k_red(k, TINY_IN * TINY_OUT);
    Val big = k_const(k, F32, 3e38), x = k_unary(k, KI_ABS, k_load(k, g, k_aff_val(i, 1)));
    k_into(k, all, k_binary(k, KI_LE, x, big));
    k_end(k, i);
    Val n = k_cast(k, F32, k_load(k, rows, k_aff(0)));
    Val l = k_binary(k, KI_DIV, k_load(k, total, k_aff(0)), n);
    Val ok = k_binary(k, KI_AND, k_fold(k, all), k_binary(k, KI_LE, k_unary(k, KI_ABS, l), big));
    k_store(k, flag, k_aff(0), ok);
    k_store(k, loss, k_aff(0), l);
    Val more = k_select(k, ok, k_const_int(k, I64, 0), k_const_int(k, I64, 1));
    k_store(k, skipped, k_aff(0), k_binary(k, KI_ADD, k_load(k, skipped, k_aff(0)), more));
    k_finish(k);
    return k;
}

/* w -= lr gw */
static inline Kernel *tiny_sgd(Tiny *s)
{
    Kernel *k = kernel_new(s->a, K_LOOP, "sgd");
    int64_t n = TINY_IN * TINY_OUT;
    int w = k_buf(k, F32, n, K_INOUT), g = k_buf(k, F32, n, K_IN), lr = k_buf(k, F32, 1, K_IN);
    Val i = k_par(k, n);
    Val r = k_unary(k, KI_NEG, k_load(k, lr, k_aff(0)));
    Val x = k_fma(k, r, k_load(k, g, k_aff_val(i, 1)), k_load(k, w, k_aff_val(i, 1)));
    k_store(k, w, k_aff_val(i, 1), x);
    k_end(k, i);
    k_finish(k);
    return k;
}

static inline Kernel *tiny_count(Tiny *s)
{
    Kernel *k = kernel_new(s->a, K_LOOP, "count");
    int n = k_buf(k, I64, 1, K_INOUT);
    k_store(k, n, k_aff(0), k_binary(k, KI_ADD, k_load(k, n, k_aff(0)), k_const_int(k, I64, 1)));
    k_finish(k);
    return k;
}

static inline void tiny_tensor(Tiny *s, const char *name, Role role, int32_t buffer, int32_t of)
{
    Tensor t = {.name = name, .role = role, .buffer = buffer, .of = of, .of_input = -1};
    vec_push(s->a, &s->p->tensor, t);
}

static inline void tiny_entry(Tiny *s, const char *name, const TinyCalls *c, bool updates)
{
    Entry e = {.name = name, .n_calls = c->at.n, .call = c->at.at, .updates = updates};
    e.finite = updates ? s->flag : -1;
    Result *r = NEW_ARRAY(s->a, Result, 2);
    bool step = strcmp(name, "eval") != 0;
    r[0] = (Result){"loss", s->loss, true, GRADC_LOSS, NULL};
    r[1] = (Result){"h", s->h, true, GRADC_OUTPUT, NULL};
    if (strcmp(name, "init") != 0) {
        e.result = step ? r : r + 1;
        e.n_results = 1;
    }
    vec_push(s->a, &s->p->entry, e);
}

/* Zeros the sums, then both micro-batches. */
static inline void tiny_backward(Tiny *s, TinyCalls *c)
{
    Kernel *zero = tiny_ramp(s, F32, TINY_IN * TINY_OUT, 0, 0), *none = tiny_ramp(s, F32, 1, 0, 0);
    tiny_call(s, c, zero, (Operand[]){OP(s->gw)}, 1);
    tiny_call(s, c, none, (Operand[]){OP(s->total)}, 1);
    TinyCalls body = {0};
    Operand x = OP_STEP(s->x, TINY_ROWS * TINY_IN), t = OP_STEP(s->t, TINY_ROWS * TINY_OUT);
    Operand k = OP_STEP(s->k, TINY_ROWS);
    tiny_call(s, &body, tiny_forward(s), (Operand[]){OP(s->h), x, OP(s->w), OP(s->b), k}, 5);
    tiny_call(s, &body, tiny_error(s), (Operand[]){OP(s->d), OP(s->total), OP(s->h), t}, 4);
    tiny_call(s, &body, tiny_gradient(s), (Operand[]){OP(s->gw), x, OP(s->d)}, 3);
    Call loop = {.kind = CALL_LOOP, .count = TINY_TIMES, .n_body = body.at.n, .body = body.at.at};
    vec_push(s->a, &c->at, loop);
    Operand f[] = {OP(s->flag),  OP(s->loss),    OP(s->p->skipped_counter),
                   OP(s->total), OP(s->p->rows), OP(s->gw)};
    tiny_call(s, c, tiny_finite(s), f, 6);
}

static inline void tiny_entries(Tiny *s)
{
    TinyCalls init = {0}, step = {0}, grad = {0}, eval = {0}, update = {0};
    tiny_call(s, &init, tiny_ramp(s, F32, TINY_IN * TINY_OUT, 0.25, -0.5), (Operand[]){OP(s->w)},
              1);
    tiny_call(s, &init, tiny_ramp(s, F32, TINY_KINDS * TINY_OUT, 0.125, 0), (Operand[]){OP(s->b)},
              1);
    tiny_call(s, &init, tiny_ramp(s, F32, 1, 0, 0.05), (Operand[]){OP(s->lr)}, 1);
    tiny_backward(s, &step);
    tiny_call(s, &update, tiny_sgd(s), (Operand[]){OP(s->w), OP(s->gw), OP(s->lr)}, 3);
    tiny_call(s, &update, tiny_count(s), (Operand[]){OP(s->p->step_counter)}, 1);
    Call guard = {
        .kind = CALL_GUARD, .flag = OP(s->flag), .n_body = update.at.n, .body = update.at.at};
    vec_push(s->a, &step.at, guard);
    tiny_backward(s, &grad);
    Operand e[] = {OP(s->h), OP(s->x), OP(s->w), OP(s->b), OP(s->k)};
    tiny_call(s, &eval, tiny_forward(s), e, 5);
    tiny_entry(s, "init", &init, false);
    tiny_entry(s, "step", &step, true);
    tiny_entry(s, "grad", &grad, false);
    tiny_entry(s, "eval", &eval, false);
}

static inline Tiny tiny_program(Arena *a, const char *name, const Caps *caps)
{
    Program *p = NEW(a, Program);
    Tiny s = {.p = p, .a = a, .top = HANDLE_BYTES};
    *p = (Program){.arena = a,
                   .name = name,
                   .doc = "a model\nmade by hand",
                   .accumulate = TINY_TIMES,
                   .batch_rows = TINY_ROWS,
                   .threads_max = 4};
    memset(p->hash, 'a', 64);
    s.w = tiny_buffer(&s, "w", F32, ROLE_PARAM, TINY_IN, TINY_OUT);
    s.b = tiny_buffer(&s, "b", F32, ROLE_PARAM, TINY_KINDS, TINY_OUT);
    s.lr = tiny_buffer(&s, "lr", F32, ROLE_SCALAR, 1, 0);
    p->step_counter = tiny_buffer(&s, "step", I64, ROLE_STATE, 1, 0);
    p->skipped_counter = tiny_buffer(&s, "skipped", I64, ROLE_STATE, 1, 0);
    p->seed = tiny_buffer(&s, "seed", I64, ROLE_STATE, 1, 0);
    p->rows = tiny_buffer(&s, "rows", I64, ROLE_STATE, 1, 0);
    s.x = tiny_input(&s, "x", F32, TINY_IN);
    s.t = tiny_input(&s, "t", F32, TINY_OUT);
    s.k = tiny_input(&s, "class", I32, 0);
    p->pinned_bytes = s.top;
    s.gw = tiny_buffer(&s, "w", F32, ROLE_GRADIENT, TINY_IN, TINY_OUT);
    s.h = tiny_buffer(&s, "h", F32, ROLE_OUTPUT, TINY_ROWS, TINY_OUT);
    s.d = tiny_buffer(&s, "d", F32, ROLE_ACTIVATION, TINY_ROWS, TINY_OUT);
    s.total = tiny_buffer(&s, "total", F32, ROLE_ACTIVATION, 1, 0);
    s.loss = tiny_buffer(&s, "loss", F32, ROLE_OUTPUT, 1, 0);
    s.flag = tiny_buffer(&s, "finite", BOOL, ROLE_ACTIVATION, 1, 0);
    tiny_tensor(&s, "w", ROLE_PARAM, s.w, -1);
    tiny_tensor(&s, "b", ROLE_PARAM, s.b, -1);
    tiny_tensor(&s, "step", ROLE_STATE, p->step_counter, -1);
    tiny_tensor(&s, "skipped", ROLE_STATE, p->skipped_counter, -1);
    tiny_tensor(&s, "lr", ROLE_SCALAR, s.lr, -1);
    tiny_tensor(&s, "w", ROLE_GRADIENT, s.gw, 0);
    vec_push(a, &p->result, ((Result){"loss", s.loss, true, GRADC_LOSS, NULL}));
    vec_push(a, &p->result, ((Result){"h", s.h, true, GRADC_OUTPUT, NULL}));
    tiny_entries(&s);
    for (int i = 0; i < p->kernel.n; i++) {
        int64_t n = caps->lane_scratch(caps->options, p->kernel.at[i]);
        p->lane_bytes = n > p->lane_bytes ? n : p->lane_bytes;
    }
    p->lanes_offset = s.top;
    p->arena_bytes = s.top + p->lane_bytes * p->threads_max;
    return s;
}

#endif
