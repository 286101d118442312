/* Step lists of whole nets, as a compiler makes them: forward, backward, update. */
#ifndef GRADC_TESTS_PLAN_NETS_H
#define GRADC_TESTS_PLAN_NETS_H

#include "plan_make.h"

/* What the reverse step of an op reads, and what its steps may do. */
enum {
    NET_IN = 1,        /* reads the other input (the only one, if there is but one) */
    NET_OUT = 2,       /* reads the output */
    NET_POINTWISE = 4, /* may work in place */
    NET_SUM = 8,       /* the cotangent is handed on as it is: no reverse step */
    NET_WORKSPACE = 16
};

typedef struct NetOp {
    int32_t in[2], out, param, gradient;
    int flags;
} NetOp;

typedef struct Net {
    Make m;
    VEC(NetOp) op;
    int32_t *ct; /* by value: its cotangent so far, or -1 */
} Net;

static inline int32_t net_value(Net *net, char kind, Role role, int64_t bytes)
{
    return make_value(&net->m, make_name(&net->m, kind, net->m.value.n), role, bytes);
}

/* A forward step. b: a second input, or -1. param: bytes of weights, 0 for none. */
static inline int32_t net_op(Net *net, int32_t a, int32_t b, int64_t bytes, int64_t param,
                             int flags)
{
    Make *m = &net->m;
    NetOp op = {.in = {a, b}, .param = -1, .gradient = -1, .flags = flags};
    if (param > 0)
        op.param = make_pinned(m, make_name(m, 'w', m->value.n), ROLE_PARAM, param);
    op.out = net_value(net, 'a', ROLE_ACTIVATION, bytes);
    PlanStep *step = make_step(m, make_name(m, 'f', m->step.n));
    step->lane_bytes = 4096;
    step->workspace = (flags & NET_WORKSPACE) != 0 ? bytes / 4 + 100 : 0;
    make_write(m, op.out);
    for (int i = 0; i < 2 && op.in[i] >= 0; i++) {
        make_read(m, op.in[i]);
        if ((flags & (NET_POINTWISE | NET_SUM)) != 0)
            make_inplace(m, op.in[i], op.out);
    }
    if (op.param >= 0)
        make_read(m, op.param);
    vec_push(m->arena, &net->op, op);
    return op.out;
}

/* One more part of the cotangent of `value`: a chain of adds, in place. */
static inline void net_add(Net *net, int32_t value, int32_t part)
{
    int32_t sum = net->ct[value];
    net->ct[value] = part;
    if (sum < 0)
        return;
    int32_t both = net_value(net, 'd', ROLE_ACTIVATION, net->m.value.at[part].bytes);
    make_step(&net->m, make_name(&net->m, 'b', net->m.step.n));
    make_read(&net->m, sum);
    make_read(&net->m, part);
    make_write(&net->m, both);
    make_inplace(&net->m, sum, both);
    make_inplace(&net->m, part, both);
    net->ct[value] = both;
}

static inline void net_reverse_input(Net *net, const NetOp *op, int i)
{
    Make *m = &net->m;
    int32_t ct = net->ct[op->out];
    if ((op->flags & NET_SUM) != 0) {
        net_add(net, op->in[i], ct);
        return;
    }
    int32_t d = net_value(net, 'd', ROLE_ACTIVATION, m->value.at[op->in[i]].bytes);
    PlanStep *step = make_step(m, make_name(m, 'b', m->step.n));
    step->lane_bytes = 4096;
    make_read(m, ct);
    if ((op->flags & NET_IN) != 0)
        make_read(m, op->in[op->in[1] >= 0 ? 1 - i : 0]);
    if ((op->flags & NET_OUT) != 0)
        make_read(m, op->out);
    if (op->param >= 0)
        make_read(m, op->param);
    make_write(m, d);
    if ((op->flags & NET_POINTWISE) != 0)
        make_inplace(m, ct, d);
    net_add(net, op->in[i], d);
}

static inline void net_reverse(Net *net, NetOp *op)
{
    Make *m = &net->m;
    if (op->param >= 0) {
        op->gradient = net_value(net, 'g', ROLE_GRADIENT, m->value.at[op->param].bytes);
        make_step(m, make_name(m, 'b', m->step.n));
        make_read(m, net->ct[op->out]);
        make_read(m, op->in[0]);
        make_write(m, op->gradient);
    }
    for (int i = 0; i < 2 && op->in[i] >= 0; i++)
        if (m->value.at[op->in[i]].role != ROLE_INPUT)
            net_reverse_input(net, op, i);
}

/* Loss of `last`, reverse, and a guarded update of every parameter. */
static inline Plan *net_finish(Net *net, int32_t last)
{
    Make *m = &net->m;
    int32_t loss = net_op(net, last, -1, 4, 0, NET_IN);
    m->value.at[loss].to_end = true;
    int32_t n = m->value.n;
    net->ct = NEW_ARRAY(m->arena, int32_t, n);
    for (int32_t v = 0; v < n; v++)
        net->ct[v] = -1;
    net->ct[loss] = net_op(net, loss, -1, 4, 0, 0);
    net->op.n--; /* the cotangent of the loss is no op to reverse */
    for (int i = net->op.n - 1; i >= 0; i--)
        net_reverse(net, &net->op.at[i]);
    int32_t finite = net_value(net, 'k', ROLE_ACTIVATION, 1);
    make_step(m, "finite");
    for (int i = 0; i < net->op.n; i++)
        if (net->op.at[i].gradient >= 0)
            make_read(m, net->op.at[i].gradient);
    make_write(m, finite);
    for (int i = 0; i < net->op.n; i++) {
        if (net->op.at[i].gradient < 0)
            continue;
        make_step(m, "update")->guarded = true;
        make_read(m, net->op.at[i].gradient);
        make_read(m, finite);
        make_read(m, net->op.at[i].param);
        make_write(m, net->op.at[i].param);
    }
    return make_plan(m);
}

static inline Net net_new(Arena *a)
{
    return (Net){.m = {.arena = a, .base = 1024, .threads_max = 8}};
}

static inline Plan *net_mlp(Arena *a, int layers)
{
    Net net = net_new(a);
    int64_t width = 4 * 256 * 64;
    int32_t x = make_value(&net.m, "x", ROLE_INPUT, 0);
    for (int i = 0; i < layers; i++) {
        x = net_op(&net, x, -1, width, 256 * 256 * 4, 0);
        x = net_op(&net, x, -1, width, 0, NET_OUT | NET_POINTWISE);
    }
    return net_finish(&net, net_op(&net, x, -1, 4 * 64 * 10, 256 * 10 * 4, 0));
}

/* rows: batch times context; the score matrix is explicit. */
static inline Plan *net_gpt(Arena *a, int layers, int64_t rows, int64_t ctx, int64_t heads,
                            int64_t width)
{
    Net net = net_new(a);
    int64_t act = 4 * rows * width, scores = 4 * rows * ctx * heads;
    int32_t tokens = make_value(&net.m, "tokens", ROLE_INPUT, 0);
    int32_t x = net_op(&net, tokens, -1, act, 256 * width * 4, 0);
    for (int i = 0; i < layers; i++) {
        int32_t n = net_op(&net, x, -1, act, 8 * width, NET_IN);
        int32_t qkv = net_op(&net, n, -1, 3 * act, 12 * width * width, 0);
        int32_t s = net_op(&net, qkv, -1, scores, 0, NET_IN);
        int32_t p = net_op(&net, s, -1, scores, 0, NET_OUT | NET_POINTWISE);
        int32_t o = net_op(&net, p, qkv, act, 0, NET_IN);
        int32_t y = net_op(&net, o, -1, act, 4 * width * width, 0);
        x = net_op(&net, x, y, act, 0, NET_SUM);
        n = net_op(&net, x, -1, act, 8 * width, NET_IN);
        int32_t h = net_op(&net, n, -1, 4 * act, 16 * width * width, 0);
        int32_t u = net_op(&net, h, -1, 4 * act, 0, NET_IN | NET_POINTWISE);
        y = net_op(&net, u, -1, act, 16 * width * width, NET_WORKSPACE);
        x = net_op(&net, x, y, act, 0, NET_SUM);
    }
    return net_finish(&net, net_op(&net, x, -1, 4 * rows * 256, 256 * width * 4, 0));
}

static inline int32_t net_conv(Net *net, int32_t x, int64_t bytes, int64_t from, int64_t to)
{
    int32_t y = net_op(net, x, -1, bytes, 36 * from * to, NET_WORKSPACE);
    y = net_op(net, y, -1, bytes, 8 * to, NET_IN);
    return net_op(net, y, -1, bytes, 0, NET_OUT | NET_POINTWISE);
}

/* Stages of residual blocks; sizes halve from stage to stage. */
static inline Plan *net_resnet(Arena *a, int blocks, int64_t batch)
{
    Net net = net_new(a);
    int64_t channels = 16, side = 32;
    int32_t x = make_value(&net.m, "x", ROLE_INPUT, 0);
    x = net_conv(&net, x, 4 * batch * channels * side * side, 3, channels);
    for (int stage = 0; stage < 3; stage++) {
        for (int i = 0; i < blocks; i++) {
            int64_t bytes = 4 * batch * channels * side * side;
            int32_t y = net_conv(&net, x, bytes, channels, channels);
            y = net_op(&net, y, -1, bytes, 36 * channels * channels, 0);
            y = net_op(&net, y, -1, bytes, 8 * channels, NET_IN);
            x = net_op(&net, x, y, bytes, 0, NET_SUM);
            x = net_op(&net, x, -1, bytes, 0, NET_OUT | NET_POINTWISE);
        }
        side /= 2;
        x = net_conv(&net, x, 8 * batch * channels * side * side, channels, 2 * channels);
        channels *= 2;
    }
    return net_finish(&net, net_op(&net, x, -1, 4 * batch * 10, 40 * channels, 0));
}

/* Down and up again, with a skip from each level: lives that are long and nested. */
static inline Plan *net_unet(Arena *a, int levels, int64_t batch)
{
    Net net = net_new(a);
    int64_t bytes = 4 * batch * 32 * 64 * 64, channels = 32;
    int32_t skip[16];
    int32_t x = make_value(&net.m, "x", ROLE_INPUT, 0);
    for (int i = 0; i < levels; i++) {
        x = net_conv(&net, x, bytes, i == 0 ? 3 : channels, channels);
        skip[i] = x = net_conv(&net, x, bytes, channels, channels);
        x = net_op(&net, x, -1, bytes / 4, 0, NET_IN | NET_OUT);
        bytes /= 2;
        channels *= 2;
    }
    for (int i = levels - 1; i >= 0; i--) {
        bytes *= 2;
        channels /= 2;
        x = net_op(&net, x, -1, bytes, 16 * channels * channels, 0);
        x = net_op(&net, x, skip[i], 2 * bytes, 0, NET_IN);
        x = net_conv(&net, x, bytes, 2 * channels, channels);
    }
    return net_finish(&net, x);
}

/* A cell, unrolled: many small values. */
static inline Plan *net_rnn(Arena *a, int steps)
{
    Net net = net_new(a);
    int64_t bytes = 4 * 32 * 100;
    int32_t x = make_value(&net.m, "x", ROLE_INPUT, 0);
    int32_t h = net_op(&net, x, -1, bytes, 0, 0), c = net_op(&net, x, -1, bytes, 0, 0);
    for (int i = 0; i < steps; i++) {
        int32_t gates = net_op(&net, h, -1, 4 * bytes, 0, 0);
        gates = net_op(&net, gates, -1, 4 * bytes, 0, NET_OUT | NET_POINTWISE);
        int32_t keep = net_op(&net, gates, c, bytes, 0, NET_IN | NET_POINTWISE);
        int32_t in = net_op(&net, gates, -1, bytes, 0, NET_IN);
        c = net_op(&net, keep, in, bytes, 0, NET_SUM);
        int32_t t = net_op(&net, c, -1, bytes, 0, NET_OUT | NET_POINTWISE);
        h = net_op(&net, t, gates, bytes, 0, NET_IN);
    }
    return net_finish(&net, net_op(&net, h, -1, 4 * 32 * 50, 4 * 100 * 50, 0));
}

#endif
