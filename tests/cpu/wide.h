/* A Program big enough to be shared out: y = tanh(x W) by rows, then its rows' sums. */
#ifndef GRADC_TESTS_CPU_WIDE_H
#define GRADC_TESTS_CPU_WIDE_H

#include "cpu/tiny.h"

enum { WIDE_ROWS = 96, WIDE_IN = 300, WIDE_OUT = 260 };

static inline Kernel *wide_product(Tiny *s)
{
    Kernel *k = kernel_new(s->a, K_CONTRACT, "product");
    int y = k_buf(k, F32, WIDE_ROWS * WIDE_OUT, K_OUT);
    int x = k_buf(k, F32, WIDE_ROWS * WIDE_IN, K_IN), w = k_buf(k, F32, WIDE_OUT * WIDE_IN, K_IN);
    Val i = k_dim(k, K_M, WIDE_ROWS), j = k_dim(k, K_N, WIDE_OUT), p = k_dim(k, K_K, WIDE_IN);
    k_section_a(k);
    k_section_b(k, k_load(k, x, tiny_at(i, WIDE_IN, p, 1)));
    Val sum = k_epilogue(k, k_load(k, w, tiny_at(j, WIDE_IN, p, 1)), F32, 0);
    k_store(k, y, tiny_at(i, WIDE_OUT, j, 1), k_unary(k, KI_TANH, sum));
    k_finish(k);
    return k;
}

/* h = row sums of exp(y) / (1 + y y), by way of a LOCAL row */
static inline Kernel *wide_rows(Tiny *s)
{
    Kernel *k = kernel_new(s->a, K_LOOP, "rows");
    int h = k_buf(k, F32, WIDE_ROWS, K_OUT), y = k_buf(k, F32, WIDE_ROWS * WIDE_OUT, K_IN);
    int row = k_buf(k, F32, WIDE_OUT, K_LOCAL);
    Val i = k_par(k, WIDE_ROWS), j = k_par(k, WIDE_OUT);
    Val x = k_load(k, y, tiny_at(i, WIDE_OUT, j, 1));
    Val d = k_fma(k, x, x, k_const(k, F32, 1));
    k_store(k, row, k_aff_val(j, 1), k_binary(k, KI_DIV, k_unary(k, KI_EXP, x), d));
    k_end(k, j);
    Val acc = k_acc(k, F32, KI_ADD), r = k_red(k, WIDE_OUT);
    k_into(k, acc, k_load(k, row, k_aff_val(r, 1)));
    k_end(k, r);
    k_store(k, h, k_aff_val(i, 1), k_fold(k, acc));
    k_end(k, i);
    k_finish(k);
    return k;
}

static inline Tiny wide_program(Arena *a, const Caps *caps, int32_t threads_max)
{
    Program *p = NEW(a, Program);
    Tiny s = {.p = p, .a = a, .top = HANDLE_BYTES};
    *p = (Program){.arena = a,
                   .name = "wide",
                   .accumulate = 1,
                   .batch_rows = WIDE_ROWS,
                   .threads_max = threads_max,
                   .rows = -1,
                   .seed = -1};
    memset(p->hash, 'b', 64);
    s.w = tiny_buffer(&s, "w", F32, ROLE_PARAM, WIDE_OUT, WIDE_IN);
    p->pinned_bytes = s.top;
    s.d = tiny_buffer(&s, "y", F32, ROLE_ACTIVATION, WIDE_ROWS, WIDE_OUT);
    s.h = tiny_buffer(&s, "h", F32, ROLE_OUTPUT, WIDE_ROWS, 0);
    Buffer x = {.name = "x",
                .dtype = F32,
                .role = ROLE_INPUT,
                .rank = 2,
                .offset = -1,
                .elems = WIDE_ROWS * WIDE_IN,
                .storage = -1};
    vec_push(a, &p->buffer, x);
    s.x = p->buffer.n - 1;
    Input in = {.name = "x",
                .dtype = F32,
                .rank = 2,
                .rows = WIDE_ROWS,
                .shape = {WIDE_ROWS, WIDE_IN},
                .elems = WIDE_ROWS * WIDE_IN};
    vec_push(a, &p->input, in);
    tiny_tensor(&s, "w", ROLE_PARAM, s.w, -1);
    vec_push(a, &p->result, ((Result){"h", s.h, true, GRADC_OUTPUT, NULL}));
    TinyCalls init = {0}, eval = {0};
    tiny_call(&s, &init, tiny_ramp(&s, F32, WIDE_OUT * WIDE_IN, 1e-6, -0.02), (Operand[]){OP(s.w)},
              1);
    tiny_call(&s, &eval, wide_product(&s), (Operand[]){OP(s.d), OP(s.x), OP(s.w)}, 3);
    tiny_call(&s, &eval, wide_rows(&s), (Operand[]){OP(s.h), OP(s.d)}, 2);
    Entry e[] = {{.name = "init", .n_calls = init.at.n, .call = init.at.at, .finite = -1},
                 {.name = "eval", .n_calls = eval.at.n, .call = eval.at.at, .finite = -1}};
    e[1].result = p->result.at;
    e[1].n_results = 1;
    vec_push(a, &p->entry, e[0]);
    vec_push(a, &p->entry, e[1]);
    for (int i = 0; i < p->kernel.n; i++) {
        int64_t n = caps->lane_scratch(caps->options, p->kernel.at[i]);
        p->lane_bytes = n > p->lane_bytes ? n : p->lane_bytes;
    }
    p->lanes_offset = s.top;
    p->arena_bytes = s.top + p->lane_bytes * p->threads_max;
    return s;
}

#endif
