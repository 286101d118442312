#include "chain.h"

/* Which kernels may: no byte that one of them writes is touched by another one, unless both have it
 * in slabs, of the same bytes, that begin at the same place. A kernel may be called before one that
 * precedes it if neither touches what the other one writes. */

enum { LEAST_UNITS = 8, MANY_UNITS = 64 };

/* All chains that there can be, of however little: tests ask for that. */
static bool takes_all(const Model *m)
{
    return m->o->chains_from > 0;
}

/* A byte that is read from the second cache in place of a farther one: tried on an Intel Xeon, 4
 * MiB of a convolution's result that sums over its pictures read next, 1,990 us apart, 1,880 in a
 * chain. */
static const double CYCLES_A_BYTE = 0.06;

/* Bytes [lo, hi) of the block. */
typedef struct Touch {
    int64_t lo, hi;
    bool writes, in_slabs, is_scratch;
} Touch;

typedef struct Touches {
    Touch *at;
    int n;
} Touches;

static Touches touches_of(const Model *m, const Call *call)
{
    const Kernel *k = m->p->kernel.at[call->kernel];
    const KernelFn *f = &m->kernel[call->kernel];
    Touches t = {.at = NEW_ARRAY(m->arena, Touch, call->n_ops + 1)};
    int op = 0;
    for (int i = 0; i < k->buf.n; i++) {
        const KBuf *kb = &k->buf.at[i];
        if (kb->mode == K_LOCAL)
            continue;
        const Operand *o = &call->op[op++];
        const Buffer *b = &m->p->buffer.at[o->buffer];
        if (b->role == ROLE_CONSTANT || fact_is_input(b)) /* read, and in no block */
            continue;
        int64_t size = dtype_bytes(kb->dtype), lo = b->offset + o->base * size;
        t.at[t.n++] = (Touch){.lo = lo,
                              .hi = lo + kb->elems * size,
                              .writes = kb->mode != K_IN,
                              .in_slabs = f->slabs != NULL && f->slabs->step[i] > 0};
    }
    if (f->scratch > 0) {
        int64_t lo = model_scratch(m, call);
        int64_t bytes = model_lanes(m, call) * model_lane_bytes(m, call);
        t.at[t.n++] = (Touch){.lo = lo, .hi = lo + bytes, .writes = true, .is_scratch = true};
    }
    return t;
}

/* What is scratch of both is nothing that one hands to the other. */
static bool meet(const Touch *x, const Touch *y)
{
    return x->lo < y->hi && y->lo < x->hi && (x->writes || y->writes) &&
           !(x->is_scratch && y->is_scratch);
}

static bool same_slabs(const Touch *x, const Touch *y)
{
    return x->in_slabs && y->in_slabs && x->lo == y->lo && x->hi == y->hi;
}

static bool has_slabs(const Touches *t, const Touch *x)
{
    for (int i = 0; i < t->n; i++)
        if (same_slabs(&t->at[i], x))
            return true;
    return false;
}

/* Bytes of one's slabs that the other one writes; -1: they meet elsewhere, too. */
static int64_t shared(const Touches *x, const Touches *y, bool slabs)
{
    int64_t bytes = 0;
    for (int i = 0; i < x->n; i++)
        for (int j = 0; j < y->n; j++) {
            if (!meet(&x->at[i], &y->at[j]))
                continue;
            if (!slabs || !same_slabs(&x->at[i], &y->at[j]))
                return -1;
            bytes += x->at[i].hi - x->at[i].lo;
        }
    return bytes;
}

static bool moves(const Model *m, const Call *call)
{
    for (int i = 0; i < call->n_ops; i++) {
        if (m->p->buffer.at[call->op[i].buffer].turns > 1)
            return true;
        for (int d = 0; d < MAX_LOOP_DEPTH; d++)
            if (call->op[i].step[d] != 0)
                return true;
    }
    return false;
}

/* Nothing makes a flag true before the chain that a member tells its results by. */
static bool may_join(const Model *m, const Call *call)
{
    const KernelFn *f = &m->kernel[call->kernel];
    const Kernel *k = m->p->kernel.at[call->kernel];
    bool tells = k->kind == K_CONTRACT && k->con.all != 0;
    return f->slabs != NULL && !tells && (f->chunks > 1 || takes_all(m)) &&
           f->scratch <= model_lane_bytes(m, call) && !moves(m, call);
}

static int64_t scratch_of(const Model *m, const Call *call)
{
    return m->kernel[call->kernel].scratch;
}

/* Lanes, of which there may be 2, 4 or 8, have about as much each: an eighth more at most. */
static bool is_even(int64_t units)
{
    bool even = units >= LEAST_UNITS;
    for (int64_t lanes = 2; lanes <= 8; lanes *= 2)
        even = even && (units + lanes - 1) / lanes * lanes * 8 <= units * 9;
    return even;
}

/* Units of slabs, of which there are n, that begin where each kernel's units do; at most so many
 * units, if there can be as few.   fails: false, where there would be too few. */
static bool cut(const Model *m, Chain *c, int64_t n, int64_t most, double cycles)
{
    int64_t by = 1;
    for (int i = 0; i < c->n; i++) {
        const Slabs *s = m->kernel[c->call[i]->kernel].slabs;
        int64_t units = s->extent / n * s->units, each = s->each / common_divisor(s->each, units);
        by = by / common_divisor(by, each) * each;
        if (by > n)
            return false;
    }
    int64_t all = (n + by - 1) / by;
    by *= (all + most - 1) / most;
    c->n_units = (n + by - 1) / by;
    int64_t chunks = takes_all(m) ? c->n_units : emit_chunks(cycles, c->n_units);
    int64_t lanes = model_lanes(m, c->scratch); /* that have scratch, or as many pieces */
    c->chunks = lanes < m->p->threads_max && lanes < chunks ? lanes : chunks;
    for (int i = 0; i < c->n; i++) {
        const Slabs *s = m->kernel[c->call[i]->kernel].slabs;
        c->units[i] = by * (s->extent / n) * s->units / s->each;
    }
    return takes_all(m) || (is_even(c->n_units) && c->chunks > 1);
}

/* What a unit touches stays in a core's cache. */
static bool is_near(const Model *m, const Chain *c, const Touches *t)
{
    int64_t bytes = 0;
    for (int i = 0; i < c->n; i++)
        for (int j = 0; j < t[i].n; j++) {
            bool counts = t[i].at[j].in_slabs;
            for (int x = 0; x < i && counts; x++)
                counts = !has_slabs(&t[x], &t[i].at[j]);
            bytes += counts ? (t[i].at[j].hi - t[i].at[j].lo) / c->n_units : 0;
        }
    return bytes <= m->ir.mach->l2_bytes / 4 * 3;
}

/* Of what each call of the kernels begins with. */
static double again_cycles(const Model *m, const Chain *c)
{
    double again = 0;
    for (int i = 0; i < c->n; i++)
        again += m->kernel[c->call[i]->kernel].slabs->again * (double)c->n_units;
    return again;
}

static void add(const Model *m, Chain *c, const Call *call)
{
    c->call[c->n++] = call;
    c->n_ops += call->n_ops;
    if (c->n == 1 || scratch_of(m, call) > scratch_of(m, c->scratch))
        c->scratch = call;
}

int64_t chain_least(const Machine *m, const TargetOptions *o)
{
    return o->chains_from > 0 ? o->chains_from : m->l2_bytes / 2;
}

/* A chain that is being made. */
typedef struct Maker {
    const Model *m;
    Chain chain;
    Touches in[CHAIN_MOST];       /* what its kernels touch, ... */
    Touches between[CHAIN_REACH]; /* ... and those that are to follow it */
    int n_between;
    int64_t slabs; /* that all of its kernels have in common */
    double saved, cycles;
} Maker;

/* Bytes that it reads of what the chain writes, or the other way round; -1: it cannot join. */
static int64_t handed_on(const Maker *k, const Call *call, const Touches *t)
{
    int64_t bytes = 0;
    if (!may_join(k->m, call))
        return -1;
    for (int i = 0; i < k->n_between; i++)
        if (shared(&k->between[i], t, false) < 0)
            return -1;
    for (int i = 0; i < k->chain.n; i++) {
        int64_t of = shared(&k->in[i], t, true);
        if (of < 0)
            return -1;
        bytes += of;
    }
    return bytes;
}

/* Adds the call, if that saves more than it takes. */
static bool join(Maker *k, const Call *call, const Touches *t, int64_t bytes)
{
    const Model *m = k->m;
    const KernelFn *f = &m->kernel[call->kernel];
    int64_t slabs = common_divisor(k->slabs, f->slabs->extent);
    double saved = k->saved + CYCLES_A_BYTE * (double)bytes, cycles = k->cycles + f->cycles;
    k->in[k->chain.n] = *t;
    for (int64_t most = MANY_UNITS; most >= LEAST_UNITS; most /= 2) {
        Chain longer = k->chain;
        add(m, &longer, call);
        if (!cut(m, &longer, slabs, most, cycles))
            continue;
        if (!is_near(m, &longer, k->in))
            return false;
        if (again_cycles(m, &longer) > saved / 2 && !takes_all(m))
            continue;
        k->chain = longer;
        k->slabs = slabs;
        k->saved = saved;
        k->cycles = cycles;
        return true;
    }
    return false;
}

bool chain_find(const Model *m, const Call *call, int32_t n, const bool *taken, Chain *chain)
{
    int64_t least = chain_least(m->ir.mach, m->o);
    if (!may_join(m, call))
        return false;
    const KernelFn *first = &m->kernel[call->kernel];
    Maker k = {.m = m, .slabs = first->slabs->extent, .cycles = first->cycles};
    k.in[0] = touches_of(m, call);
    add(m, &k.chain, call);
    for (int j = 1; j < n && j <= CHAIN_REACH && k.chain.n < CHAIN_MOST; j++) {
        if (taken[j])
            continue;
        Touches t = touches_of(m, call + j);
        int64_t bytes = handed_on(&k, call + j, &t);
        if (bytes < least || !join(&k, call + j, &t, bytes))
            k.between[k.n_between++] = t;
    }
    *chain = k.chain;
    return k.chain.n > 1;
}

void chain_emit(const Model *m, Ir *ir, const Chain *chain, Lv fn)
{
    Lv bufs = LLVMGetParam(fn, 0), scratch = LLVMGetParam(fn, 1);
    IrLoop u = ir_loop(ir, LLVMGetParam(fn, 2), LLVMGetParam(fn, 3), 1, true);
    int64_t ops = 0;
    for (int i = 0; i < chain->n; i++) {
        const KernelFn *f = &m->kernel[chain->call[i]->kernel];
        Lv from = ir_mul(ir, u.i, chain->units[i]);
        Lv to = ir_add(ir, from, ir_int(ir, chain->units[i]));
        if (chain->units[i] * chain->n_units != f->n_units)
            to = ir_min(ir, to, ir_int(ir, f->n_units));
        Lv arg[] = {ir_off(ir, bufs, 8 * ops), scratch, from, to};
        ir_call(ir, f->fn, arg, 4);
        ops += chain->call[i]->n_ops;
    }
    ir_loop_end(ir, &u);
    LLVMBuildRetVoid(ir->b);
}
