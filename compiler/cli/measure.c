/* Times kernels alone: a program whose `eval` runs one of them, again and again, under a flag of
 * its own, in an object that is built and loaded like any other. */
#define _GNU_SOURCE
#include "timing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../runtime/gradc.h"

/* How often a kernel runs in one call: on several sets of operands, and on each set again. */
typedef struct Rounds {
    int64_t set_bytes, sets, repeats;
} Rounds;

typedef struct Bench {
    Cli *c;
    Ctx *cx;
    Arena arena;
    Program *p;
    Rounds *rounds; /* by kernel */
    int64_t flags;  /* offset: one for each kernel */
    int64_t top;    /* ... of the operands, which all kernels share */
    Loaded *loaded;
    const gradc_model *model;
    gradc_pool *pool;
    unsigned char *block;
    void *handle;
} Bench;

/* ---- the program ----------------------------------------------------------------------- */

/* Long enough that a call of the entry is nothing beside it, and no longer than need be. */
static const double enough_ns = 1e5, most_ns = 5e6;

static int64_t operand_bytes(const KBuf *b)
{
    return align_up(b->elems * dtype_bytes(b->dtype), BLOCK_ALIGN);
}

static Rounds rounds_of(const Kernel *k, int64_t spread)
{
    Rounds r = {.sets = 1, .repeats = 1};
    KCost cost = kernel_cost(k);
    double compute = cost.contract_flops / cost_time.flops + cost.work / cost_time.work;
    double move = (cost.bytes_read + cost.bytes_written) / cost_time.bytes;
    double each = (compute > move ? compute : move) + cost_time.call;
    for (int i = 0; i < k->buf.n; i++)
        if (k->buf.at[i].mode != K_LOCAL)
            r.set_bytes += operand_bytes(&k->buf.at[i]);
    if (r.set_bytes > 0 && r.set_bytes < spread)
        r.sets = spread / r.set_bytes;
    if ((double)r.sets * each > most_ns)
        r.sets = (int64_t)(most_ns / each) + 1;
    if ((double)r.sets * each < enough_ns)
        r.repeats = (int64_t)(enough_ns / each / (double)r.sets) + 1;
    return r;
}

static int32_t add_buffer(Bench *b, const char *name, DType t, Role role, int64_t elems, int64_t at)
{
    Buffer x = {.name = name,
                .dtype = t,
                .role = role,
                .rank = 1,
                .shape = {elems},
                .elems = elems,
                .bytes = elems * dtype_bytes(t),
                .offset = at,
                .input = -1,
                .storage = -1};
    vec_push(&b->arena, &b->p->buffer, x);
    return b->p->buffer.n - 1;
}

/* The sets follow one another, the kernel's operands inside of each. */
static Call kernel_call(Bench *b, int at)
{
    const Kernel *k = b->p->kernel.at[at];
    Call c = {.kind = CALL_KERNEL, .kernel = at};
    c.op = NEW_ARRAY(&b->arena, Operand, k->buf.n);
    int64_t offset = b->top;
    for (int i = 0; i < k->buf.n; i++) {
        const KBuf *buf = &k->buf.at[i];
        if (buf->mode == K_LOCAL)
            continue;
        Operand *o = &c.op[c.n_ops++];
        o->buffer = add_buffer(b, "operand", buf->dtype, ROLE_ACTIVATION, buf->elems, offset);
        o->step[1] = b->rounds[at].set_bytes / dtype_bytes(buf->dtype);
        offset += operand_bytes(buf);
    }
    return c;
}

static Call *boxed(Bench *b, Call c)
{
    Call *box = NEW(&b->arena, Call);
    *box = c;
    return box;
}

static Call guarded(Bench *b, int at, int32_t flags)
{
    const Rounds *r = &b->rounds[at];
    Call sets = {.kind = CALL_LOOP, .count = r->sets, .n_body = 1};
    sets.body = boxed(b, kernel_call(b, at));
    Call repeats = {.kind = CALL_LOOP, .count = r->repeats, .n_body = 1, .body = boxed(b, sets)};
    Call guard = {.kind = CALL_GUARD, .flag = {.buffer = flags, .base = at}, .n_body = 1};
    guard.body = boxed(b, repeats);
    return guard;
}

static void make_program(Bench *b, Kernel *const *kernel, int n, int64_t spread)
{
    const TargetOptions *o = &b->c->options.target;
    const Caps *caps = target_find(o->target)->caps(b->cx, o, &b->arena);
    Program *p = b->p = NEW(&b->arena, Program);
    *p = (Program){.arena = &b->arena,
                   .name = "kernels",
                   .accumulate = 1,
                   .threads_max = o->threads_max,
                   .step_counter = -1,
                   .skipped_counter = -1,
                   .seed = -1,
                   .rows = -1};
    memset(p->hash, '0', sizeof p->hash - 1);
    b->flags = HANDLE_BYTES;
    p->pinned_bytes = p->lanes_offset = align_up(HANDLE_BYTES + n, BLOCK_ALIGN);
    b->rounds = NEW_ARRAY(&b->arena, Rounds, n);
    int64_t most = 0;
    for (int i = 0; i < n; i++) {
        vec_push(&b->arena, &p->kernel, kernel[i]);
        int64_t lane = caps->lane_scratch(caps->options, kernel[i]);
        p->lane_bytes = lane > p->lane_bytes ? lane : p->lane_bytes;
        b->rounds[i] = rounds_of(kernel[i], spread);
        int64_t bytes = b->rounds[i].sets * b->rounds[i].set_bytes;
        most = bytes > most ? bytes : most;
    }
    b->top = align_up(p->lanes_offset + p->lane_bytes * p->threads_max, BLOCK_ALIGN);
    p->arena_bytes = b->top + most;
    int32_t flags = add_buffer(b, "flags", BOOL, ROLE_STATE, n, b->flags);
    Entry init = {.name = "init", .finite = -1, .peak_bytes = p->arena_bytes}, eval = init;
    eval.name = "eval";
    eval.call = NEW_ARRAY(&b->arena, Call, n);
    for (eval.n_calls = 0; eval.n_calls < n; eval.n_calls++)
        eval.call[eval.n_calls] = guarded(b, eval.n_calls, flags);
    vec_push(&b->arena, &p->entry, init);
    vec_push(&b->arena, &p->entry, eval);
}

/* ---- in this process --------------------------------------------------------------------- */

static bool failed(Bench *b, Code code, const char *what)
{
    diag_error(b->cx, code, NO_SPAN, "timing %d kernels: %s", b->p->kernel.n, what);
    return false;
}

/* The bits of 0.5, over and over; integers and flags are 0. */
static void fill(const Buffer *x, void *to)
{
    const uint16_t half = x->dtype == BF16 ? 0x3f00 : 0x3800;
    memset(to, 0, (size_t)x->bytes);
    for (int64_t i = 0; i < x->elems && dtype_is_float(x->dtype); i++)
        if (x->dtype == F32)
            ((float *)to)[i] = 0.5F;
        else if (x->dtype == F64)
            ((double *)to)[i] = 0.5;
        else
            ((uint16_t *)to)[i] = half;
}

/* The operand that a kernel's limit is in: so that the limit is what it is on average. */
static void fill_limit(const Kernel *k, const Buffer *x, void *to)
{
    int64_t number = k->limit.mean - k->limit.plus;
    if (x->dtype == I32)
        ((int32_t *)to)[k->limit.at] = (int32_t)number;
    else
        ((int64_t *)to)[k->limit.at] = number;
}

static void fill_operands(Bench *b, int at)
{
    const Kernel *k = b->p->kernel.at[at];
    const Call *loops = b->p->entry.at[1].call[at].body;
    const Call *call = loops->body->body;
    const Rounds *r = &b->rounds[at];
    for (int i = 0, buf = 0; i < call->n_ops; i++, buf++) {
        const Buffer *x = &b->p->buffer.at[call->op[i].buffer];
        while (k->buf.at[buf].mode == K_LOCAL)
            buf++;
        for (int64_t set = 0; set < r->sets; set++) {
            unsigned char *to = b->block + x->offset + set * r->set_bytes;
            fill(x, to);
            if (k->limit.is && buf == k->limit.buf)
                fill_limit(k, x, to);
        }
    }
}

static bool load(Bench *b)
{
    ObjectFile object;
    TargetOptions target = b->c->options.target;
    target.want_ir = target.want_asm = false;
    target.no_lines = true;
    target.laps = false;
    gradc_options o = {.struct_size = sizeof o, .abi = GRADC_ABI};
    gradc_error e = {0};
    if (!target_emit(b->cx, b->p, &target, &object))
        return false;
    b->loaded = cpu_load(b->cx, &object, b->p->name);
    if (b->loaded == NULL)
        return false;
    b->model = loaded_model(b->loaded);
    if (b->c->timing_threads > 1) {
        if (gradc_pool_open(b->c->timing_threads, 0, &b->pool, &e) != GRADC_OK)
            return failed(b, E0616, e.text);
        gradc_pool_use(b->pool, &o);
    }
    b->block = gradc_alloc(b->model->arena_bytes, b->model->arena_align);
    if (b->block == NULL)
        return failed(b, E0617,
                      arena_printf(&b->cx->perm, "no memory for %lld bytes",
                                   (long long)b->model->arena_bytes));
    int st = b->model->init(b->block, (size_t)b->model->arena_bytes, &o, &b->handle);
    return st == GRADC_OK || failed(b, E0616, gradc_strerror(st));
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Rounds over all kernels, far apart in time for each; in a round, after a call that does not
 * count and brings caches to where they will be, some that do. Their median is the round's, and the
 * quietest round's the kernel's: others on the machine only ever add to it. */
enum { ROUNDS = 9, MOST_CALLS = 5 };
static const double round_ms = 2; /* more calls than one only within that */

double timing_clock(bool one_thread)
{
    struct timespec t;
    clock_gettime(one_thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* *ns: the least so far. */
static bool time_calls(Bench *b, double *ns)
{
    gradc_block in = {0}, out = {0};
    double call[MOST_CALLS], begin = 0;
    int n = 0;
    for (int i = -1; i < 1 || (i < MOST_CALLS && now_ms() - begin < round_ms); i++) {
        begin = i == 0 ? now_ms() : begin;
        double start = timing_clock(b->pool == NULL);
        int st = b->model->eval(b->handle, &in, &out);
        if (st != GRADC_OK)
            return failed(b, E0616, gradc_strerror(st));
        if (i >= 0)
            call[n++] = timing_clock(b->pool == NULL) - start;
    }
    qsort(call, (size_t)n, sizeof *call, ascending);
    *ns = call[n / 2] < *ns ? call[n / 2] : *ns;
    return true;
}

static bool time_round(Bench *b, double *ns)
{
    bool ok = true;
    for (int i = 0; i < b->p->kernel.n && ok; i++) {
        fill_operands(b, i);
        b->block[b->flags + i] = 1;
        ok = time_calls(b, &ns[i]);
        b->block[b->flags + i] = 0;
    }
    return ok && time_calls(b, &ns[b->p->kernel.n]); /* no kernel at all */
}

static bool time_all(Bench *b, Timing *timing)
{
    int n = b->p->kernel.n;
    double *ns = NEW_ARRAY(&b->arena, double, n + 1);
    for (int i = 0; i <= n; i++)
        ns[i] = INFINITY;
    for (int round = 0; round < ROUNDS; round++)
        if (!time_round(b, ns))
            return false;
    for (int i = 0; i < n; i++) {
        const Rounds *r = &b->rounds[i];
        double each = (ns[i] - ns[n]) / (double)(r->sets * r->repeats);
        timing[i].ns = each > 1 ? round(each * 10) / 10 : 1;
    }
    return true;
}

bool kernels_time(Cli *c, Ctx *cx, Kernel *const *kernel, Timing *timing, int n)
{
    Bench b = {.c = c, .cx = cx};
    make_program(&b, kernel, n, timing[0].spread);
    bool ok = load(&b) && time_all(&b, timing);
    gradc_pool_close(b.pool);
    gradc_free(b.block);
    if (b.loaded != NULL)
        cpu_unload(b.loaded);
    arena_free(&b.arena);
    return ok;
}
