/* The object against the exact interpreter, bit for bit. */
#include "bench.h"
#include "kernel/denormals.h"
#include "pass/pass.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

const char *fault_name(Fault f)
{
    static const char *const name[] = {
        "none",   "compile", "plan",   "init",    "grad",    "eval",     "step",   "status",
        "atomic", "guard",   "finite", "defined", "forward", "quotient", "target", "crash"};
    return name[f];
}

bool fault(Verdict *v, Fault f, const char *format, ...)
{
    if (v->fault != FAULT_NONE)
        return false;
    v->fault = f;
    va_list ap;
    va_start(ap, format);
    vsnprintf(v->text, sizeof v->text, format, ap);
    va_end(ap);
    return false;
}

/* ---- memory with an edge ---------------------------------------------------------- */

void *guarded(int64_t bytes, int64_t align, int fill)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t whole = ((size_t)bytes + page - 1) / page * page;
    char *at = mmap(NULL, whole + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || mprotect(at + page, whole, PROT_READ | PROT_WRITE) != 0) {
        perror("gradc-smith: mmap");
        exit(70);
    }
    memset(at + page, fill, whole);
    size_t slack = (whole - (size_t)bytes) / (size_t)align * (size_t)align;
    return at + page + slack;
}

enum { BLOCK_FILL = 0x77 };

/* What lies between the page before and the block is as it was. */
static bool edge_intact(const char *block, int fill)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const char *from = (const char *)((uintptr_t)block / page * page);
    for (const char *p = from; p < block; p++)
        if (*p != (char)fill)
            return false;
    return true;
}

/* Of one model in eight denormals are flushed, where there are such objects. */
static bool flushes(uint64_t seed)
{
    return seed % 8 == 3 && denormals_can_flush();
}

/* ---- inputs ----------------------------------------------------------------------- */

static void draw_element(uint64_t *rng, const Input *in, void *data, int64_t i)
{
    double x = random_real(rng, -1, 1);
    int64_t lo = in->ranged ? in->lo : in->dtype == BOOL || in->dtype == U8 ? 0 : -9;
    int64_t hi = in->ranged ? in->hi : in->dtype == BOOL ? 2 : in->dtype == U8 ? 256 : 10;
    int64_t k = lo + random_below(rng, hi - lo);
    switch (in->dtype) {
    case F32:
        ((float *)data)[i] = (float)x;
        break;
    case F64:
        ((double *)data)[i] = x;
        break;
    case F16:
        ((uint16_t *)data)[i] = f32_to_f16((float)x);
        break;
    case BF16:
        ((uint16_t *)data)[i] = f32_to_bf16((float)x);
        break;
    case I32:
        ((int32_t *)data)[i] = (int32_t)k;
        break;
    case I64:
        ((int64_t *)data)[i] = k;
        break;
    default:
        ((uint8_t *)data)[i] = (uint8_t)k;
    }
}

static gradc_block *new_block(Arena *a, int32_t n)
{
    return arena_alloc(a, sizeof(gradc_block) + sizeof(void *) * (size_t)n);
}

const void **draw_inputs(const Program *p, uint64_t seed, Arena *a)
{
    uint64_t rng = seed ^ 0x5eed;
    const void **all = NEW_ARRAY(a, const void *, p->input.n);
    for (int i = 0; i < p->input.n; i++) {
        const Input *in = &p->input.at[i];
        void *data = guarded(in->elems * dtype_bytes(in->dtype), 8, 0);
        for (int64_t k = 0; k < in->elems; k++)
            draw_element(&rng, in, data, k);
        all[i] = data;
    }
    return all;
}

/* Every fourth float goes to where results of the next operation are denormal, or is it itself. */
static void make_small(const Input *in, void *data)
{
    for (int64_t i = 0; i < in->elems; i += 4) {
        if (in->dtype == F32)
            ((float *)data)[i] *= i % 8 == 0 ? 0x1p-130F : 0x1p-125F;
        else if (in->dtype == F64)
            ((double *)data)[i] *= i % 8 == 0 ? 0x1p-1030 : 0x1p-1021;
    }
}

static void make_blocks(Bench *b)
{
    b->in = draw_inputs(b->p, b->seed, &b->arena);
    for (int i = 0; i < b->p->input.n && b->p->flush; i++)
        make_small(&b->p->input.at[i], (void *)b->in[i]);
    b->in_block = new_block(&b->arena, b->p->input.n);
    for (int i = 0; i < b->p->input.n; i++)
        b->in_block->data[i] = (void *)b->in[i];
    b->out_block = new_block(&b->arena, b->m->n_outputs);
    for (int i = 0; i < b->m->n_outputs; i++)
        b->out_block->data[i] = guarded(b->m->outputs[i].bytes, 8, 0x5a);
}

/* ---- lanes ------------------------------------------------------------------------ */

typedef struct Lanes {
    uint64_t rng;
    int32_t n;
} Lanes;

/* Every chunk once, in random order, on a random lane. */
static void shuffled_for(void *context, int64_t count, gradc_body body, void *arg)
{
    Lanes *lanes = context;
    int64_t *order = malloc(sizeof(int64_t) * (size_t)(count + 1));
    if (order == NULL)
        abort();
    for (int64_t i = 0; i < count; i++) {
        int64_t j = random_below(&lanes->rng, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (int64_t i = 0; i < count; i++)
        body(arg, order[i], (int32_t)random_below(&lanes->rng, lanes->n));
    free(order);
}

/* ---- comparing -------------------------------------------------------------------- */

static bool same(Bench *b, Fault f, const char *entry, const char *name, const Buffer *want,
                 const void *got)
{
    const void *judged = judge_data(b->judge, (int32_t)(want - b->p->buffer.at));
    if (judged == NULL)
        return fault(b->v, f, "%s: the judge has no %s", entry, name);
    int64_t i = dtype_first_unlike(want->dtype, got, judged, want->elems);
    if (i < 0)
        return true;
    return fault(
        b->v, f,
        "%s: %s differs at element %lld of %lld: object %.9g, judge %.9g (%d lanes, %lld rows)",
        entry, name, (long long)i, (long long)want->elems, dtype_value(want->dtype, got, i),
        dtype_value(want->dtype, judged, i), b->lanes, (long long)b->in_block->rows);
}

const void *bench_tensor(Bench *b, void *g, int i, const char *entry)
{
    const Tensor *t = &b->p->tensor.at[i];
    size_t bytes = (size_t)b->p->buffer.at[t->buffer].bytes;
    void *got = arena_alloc(&b->arena, bytes + 1);
    if (b->m->read(g, i, got, bytes) == GRADC_OK)
        return got;
    fault(b->v, FAULT_STATUS, "reading %s after %s: %s", t->name, entry, b->m->error(g));
    return NULL;
}

/* Tensors of the given kind: pinned ones, or gradients. */
static bool same_tensors(Bench *b, Fault f, const char *entry, void *g, bool gradients)
{
    for (int i = 0; i < b->p->tensor.n; i++) {
        const Tensor *t = &b->p->tensor.at[i];
        const Buffer *x = &b->p->buffer.at[t->buffer];
        if ((x->role == ROLE_GRADIENT) != gradients)
            continue;
        const void *got = bench_tensor(b, g, i, entry);
        if (got == NULL || !same(b, f, entry, t->name, x, got))
            return false;
    }
    return true;
}

int bench_output(const Bench *b, const Result *r)
{
    for (int i = 0; i < b->m->n_outputs; i++)
        if (strcmp(b->m->outputs[i].name, r->name) == 0)
            return i;
    fault(b->v, FAULT_STATUS, "the object has no output %s", r->name);
    return 0;
}

static bool same_results(Bench *b, Fault f, const Entry *e)
{
    for (int i = 0; i < e->n_results; i++) {
        const Result *r = &e->result[i];
        if (r->wanted && !same(b, f, e->name, r->name, &b->p->buffer.at[r->buffer],
                               b->out_block->data[bench_output(b, r)]))
            return false;
    }
    return true;
}

/* Results that an entry does not compute may not be asked for. */
static gradc_block *wanted_results(Bench *b, const Entry *e)
{
    gradc_block *out = new_block(&b->arena, b->m->n_outputs);
    for (int i = 0; i < e->n_results; i++) {
        int at = bench_output(b, &e->result[i]);
        out->data[at] = e->result[i].wanted ? b->out_block->data[at] : NULL;
    }
    return out;
}

/* ---- running ---------------------------------------------------------------------- */

int bench_call(Bench *b, const Entry *e, void *g, RunEntry *call, int64_t rows)
{
    b->in_block->rows = rows;
    for (int i = 0; i < b->m->n_outputs; i++) /* nothing of the run before may be taken for new */
        memset(b->out_block->data[i], 0x5a, (size_t)b->m->outputs[i].bytes);
    return call(g, b->in_block, wanted_results(b, e));
}

static bool run_entry(Bench *b, Fault f, void *g, const char *name, RunEntry *call, int64_t rows)
{
    const Entry *e = program_entry(b->p, name);
    if (e == NULL || call == NULL)
        return true;
    int got = bench_call(b, e, g, call, rows);
    int want = judge_run(b->judge, name, b->in, rows);
    b->status = got;
    if (got != want && !(got == GRADC_NONFINITE && want == GRADC_OK))
        return fault(b->v, FAULT_STATUS, "%s, %lld rows: the object returns %d (%s), the judge %d",
                     name, (long long)rows, got, b->m->error(g), want);
    if (want != GRADC_OK)
        return true;
    return same_results(b, f, e) && same_tensors(b, f, name, g, false) &&
           (strcmp(name, "grad") != 0 || same_tensors(b, f, name, g, true));
}

static bool first_loss_is_finite(Bench *b)
{
    const Entry *e = program_entry(b->p, "grad");
    for (int i = 0; e != NULL && i < e->n_results; i++) {
        const Buffer *x = &b->p->buffer.at[e->result[i].buffer];
        if (strcmp(e->result[i].name, "loss") != 0 || x->dtype != F32)
            continue;
        float loss = *(float *)b->out_block->data[bench_output(b, &e->result[i])];
        if (!isfinite(loss))
            return fault(b->v, FAULT_FINITE, "the loss is %g", (double)loss);
    }
    return true;
}

static bool run_all(Bench *b, void *g, int64_t rows)
{
    return run_entry(b, FAULT_GRAD, g, "grad", b->m->grad, rows) && first_loss_is_finite(b) &&
           run_entry(b, FAULT_EVAL, g, "eval", b->m->eval, rows) &&
           run_entry(b, FAULT_STEP, g, "step", b->m->step, rows) &&
           run_entry(b, FAULT_STEP, g, "step", b->m->step, rows) &&
           run_entry(b, FAULT_GRAD, g, "grad", b->m->grad, rows);
}

/* ---- a step that fails ------------------------------------------------------------ */

/* All that lasts from call to call, but for what counts such steps. */
static void **snapshot(Bench *b, void *g)
{
    void **all = NEW_ARRAY(&b->arena, void *, b->p->tensor.n);
    for (int i = 0; i < b->p->tensor.n; i++) {
        const Buffer *x = &b->p->buffer.at[b->p->tensor.at[i].buffer];
        if (x->role == ROLE_GRADIENT || b->p->tensor.at[i].buffer == b->p->skipped_counter)
            continue;
        all[i] = arena_alloc(&b->arena, (size_t)x->bytes + 1);
        if (b->m->read(g, i, all[i], (size_t)x->bytes) != GRADC_OK)
            abort();
    }
    return all;
}

static void fill_with_nan(Bench *b)
{
    for (int i = 0; i < b->p->input.n; i++) {
        const Input *in = &b->p->input.at[i];
        if (dtype_is_float(in->dtype)) /* all bits set are a NaN in each of them */
            memset((void *)b->in[i], 0xff, (size_t)(in->elems * dtype_bytes(in->dtype)));
    }
}

static bool step_of_nan(Bench *b, void *g)
{
    if (program_entry(b->p, "step") == NULL)
        return true;
    void **before = snapshot(b, g);
    fill_with_nan(b);
    bool same_bits = run_entry(b, FAULT_STEP, g, "step", b->m->step, 0);
    if (!same_bits || b->status != GRADC_NONFINITE)
        return same_bits;
    void **after = snapshot(b, g);
    for (int i = 0; i < b->p->tensor.n; i++)
        if (after[i] != NULL &&
            memcmp(before[i], after[i], (size_t)b->p->buffer.at[b->p->tensor.at[i].buffer].bytes) !=
                0)
            return fault(b->v, FAULT_ATOMIC, "a step that failed changed %s",
                         b->p->tensor.at[i].name);
    b->v->failed_steps++;
    return true;
}

/* ---- all of them ------------------------------------------------------------------ */

static void seed_judge(Bench *b)
{
    b->judge = judge_open(b->p, K_EXACT, &b->arena);
    if (b->p->seed >= 0)
        *(uint64_t *)judge_data(b->judge, b->p->seed) = b->seed;
}

int bench_start(Bench *b, int32_t lanes, char **block, void **handle)
{
    b->lanes = lanes;
    Lanes *l = NEW(&b->arena, Lanes); /* the handle is used after this function, too */
    *l = (Lanes){b->seed + (uint64_t)lanes, lanes};
    gradc_options o = {.struct_size = sizeof o, .abi = GRADC_ABI, .seed = b->seed};
    o.threads = lanes;
    o.parallel_for = lanes > 1 ? shuffled_for : NULL;
    o.context = l;
    o.offload = late_store(b->m->offload_bytes, &b->arena);
    *block = guarded(b->m->arena_bytes, b->m->arena_align, BLOCK_FILL);
    return b->m->init(*block, (size_t)b->m->arena_bytes, &o, handle);
}

bool bench_edge(Bench *b, const char *block)
{
    return edge_intact(block, BLOCK_FILL) || fault(b->v, FAULT_GUARD, "bytes before the block");
}

static bool run_lanes(Bench *b, int32_t lanes, int64_t rows)
{
    char *block;
    int st = bench_start(b, lanes, &block, &b->handle);
    seed_judge(b);
    int want = judge_run(b->judge, "init", NULL, 0);
    if (st != want)
        return fault(b->v, FAULT_STATUS, "init returns %d (%s), the judge %d", st,
                     b->m->error(block), want);
    return same_tensors(b, FAULT_INIT, "init", b->handle, false) && run_all(b, b->handle, rows) &&
           bench_edge(b, block);
}

static void run_object(Bench *b)
{
    static const int32_t lanes[] = {1, 2, 3, 8};
    for (int i = 0; i < 4; i++)
        if (!run_lanes(b, lanes[i], 0))
            return;
    int64_t all = b->p->batch_rows * b->p->accumulate;
    if (all <= 1 || run_lanes(b, 2, 1 + (int64_t)(b->seed % (uint64_t)(all - 1))))
        step_of_nan(b, b->handle);
}

/* ---- compiling -------------------------------------------------------------------- */

static void count_ops(const Graph *g, Verdict *v, bool top)
{
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        OpId op = op_of(g, r);
        v->used[op]++;
        v->scan |= op == OP_scan;
        bool computes = op > OP_iota && op != OP_pick && op != OP_tuple;
        v->primal += top && r < g->n_primal && computes;
    }
    for (int i = 0; i < g->body.n; i++)
        count_ops(g->body.at[i], v, false);
}

static void first_message(const Ctx *cx, char *to, size_t n)
{
    snprintf(to, n, "no message");
    for (int i = cx->diag.n - 1; i >= 0; i--)
        if (!cx->diag.at[i]->warning)
            snprintf(to, n, "%s: %s", code_id(cx->diag.at[i]->code), cx->diag.at[i]->text);
}

/* What reverse mode takes away (stop_gradient) is in the primal graph; what only the first
 * values need (literal), in that of init. */
static void count_used(Bench *b, const char *text)
{
    Output out = {.arena = &b->arena};
    Options o = {.entry = {[ENTRY_GRAD] = true}};
    int32_t source = source_add(&b->cx, "primal.model", text, strlen(text), false);
    if (b->out.graph[ENTRY_GRAD] != NULL)
        count_ops(b->out.graph[ENTRY_GRAD], b->v, true);
    if (b->out.graph[ENTRY_INIT] != NULL)
        count_ops(b->out.graph[ENTRY_INIT], b->v, false);
    b->v->scan = false; /* row chunks are scans that no model has asked for */
    if (compile_graphs(&b->cx, source, &o, true, &out))
        count_ops(out.graph[ENTRY_GRAD], b->v, false);
    b->has_slices = out.graph[ENTRY_GRAD] != NULL &&
                    can_chunk_slices(out.graph[ENTRY_GRAD], FEW_SLICES, MAX_LOOP_DEPTH);
}

static bool has_bf16_dots(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
}

static TargetOptions target_as_built(const Bench *b)
{
    return (TargetOptions){.target = "cpu",
                           .cpu = b->cpu,
                           .threads_max = 8,
                           .no_lines = true,
                           .cache = getenv("GRADC_CACHE")};
}

static TargetOptions drawn_target(const Bench *b, const char *text)
{
    TargetOptions o = target_as_built(b);
    if (has_bf16_dots() && strstr(text, "precision bf16") != NULL && strlen(text) % 4 != 0)
        o.cpu = "znver4"; /* another class of numerics, on any host that has them */
    o.flush = flushes(b->seed);
    static const int32_t width[] = {0, 1, 3, 0}; /* the last one: as wide as tiles are here */
    o.panels_from = b->seed % 4 != 0;
    o.panel_width = width[b->seed % 4];
    o.set_bytes = b->seed % 4 == 0 ? 4 : 0; /* half of those with row chunks */
    o.tells_from = b->seed % 4 != 3;
    o.chains_from = b->seed % 4 != 2;
    return o;
}

static bool compiled(Bench *b, const char *text, BudgetAsked budget, Form form, bool loud)
{
    int32_t source = source_add(&b->cx, "smith.model", text, strlen(text), false);
    Options o = {.entry = {true, true, true, true}, .threads_max = 8, .budget = budget};
    o.form = form;
    o.chunk_from = b->chunk_from;
    o.prove = true;
    o.offload = b->offload;
    o.target = b->as_built ? target_as_built(b) : drawn_target(b, text);
    if (b->as_built)
        o.chunk_from = CHUNK_DEFAULT;
    o.precision = b->precision;
    bool ok = compile(&b->cx, source, &o, &b->out) && b->cx.n_errors == 0;
    if (ok)
        b->loaded = cpu_load(&b->cx, &b->out.object, b->out.program->name);
    if (loud)
        diag_print(&b->cx, stderr);
    if (ok && b->loaded != NULL)
        return true;
    char message[300];
    first_message(&b->cx, message, sizeof message);
    return fault(b->v, FAULT_COMPILE, "%s", message);
}

static bool plans_replay(Bench *b)
{
    for (int e = 0; e < N_ENTRIES; e++) {
        const char *wrong = b->out.plan[e] ? plan_check(b->out.plan[e], &b->cx.scratch) : NULL;
        if (wrong != NULL)
            return fault(b->v, FAULT_PLAN, "%s: %s", entry_name((EntryKind)e), wrong);
    }
    return true;
}

bool bench_open(Bench *b, const char *text, bool loud)
{
    b->out.arena = &b->arena;
    ctx_init(&b->cx);
    b->cx.verify = true;
    if (!compiled(b, text, (BudgetAsked){.kind = BUDGET_NONE}, (Form){0}, loud))
        return false;
    b->p = b->out.program;
    b->m = loaded_model(b->loaded);
    make_blocks(b);
    return true;
}

/* ---- within a budget ---------------------------------------------------------------- */

/* Steps that run again; and nothing is proved that its own plan contradicts. */
static int32_t runs_again(const Bench *b)
{
    int32_t n = 0;
    for (int e = 0; e < N_ENTRIES; e++) {
        const Plan *p = b->out.plan[e];
        for (int32_t s = 0; p != NULL && s < p->n_steps; s++)
            n += p->step[s].run > 0;
        if (p != NULL && p->budget.tried && p->budget.bound > plan_extra(p))
            fault(b->v, FAULT_PLAN, "%s costs less than is proved", p->entry);
    }
    return n;
}

static bool open_form(Bench *b, const char *text, BudgetAsked budget, Form form)
{
    b->out = (Output){.arena = &b->arena};
    b->loaded = NULL;
    ctx_init(&b->cx);
    b->cx.verify = true;
    return compiled(b, text, budget, form, false);
}

bool bench_open_again(Bench *b, const char *text, BudgetAsked budget)
{
    if (!open_form(b, text, budget, (Form){0}))
        return false;
    b->m = loaded_model(b->loaded);
    return true;
}

/* The object of a budget, by drawing or the least, against the judge of the program without. */
static bool run_within(Bench *without, const char *text)
{
    Bench *b = arena_alloc(&without->arena, sizeof *b);
    *b = *without;
    uint64_t rng = b->seed ^ 0xb0d9e7;
    BudgetAsked budget = {.kind = BUDGET_SHARE, .share = random_real(&rng, 0, 100)};
    Verdict refused = {.fault = FAULT_NONE};
    b->offload = random_below(&rng, 2) > 0;
    b->v = &refused;
    if (random_below(&rng, 2) > 0 || !open_form(b, text, budget, (Form){0})) {
        b->v = without->v;
        if (!open_form(b, text, (BudgetAsked){.kind = BUDGET_LEAST}, (Form){0}))
            return false;
    }
    b->v = without->v;
    b->m = loaded_model(b->loaded);
    b->v->budgets++;
    b->v->again += runs_again(b);
    b->v->offloaded += b->m->offload_bytes > 0;
    if (b->m->arena_bytes > b->p->arena_bytes)
        return fault(b->v, FAULT_PLAN, "more bytes with a budget than without");
    return plans_replay(b) && run_lanes(b, 1 + (int32_t)random_below(&rng, 8), 0);
}

/* The object in which elementwise values are computed again. */
static bool run_light(Bench *without, const char *text)
{
    Bench *b = arena_alloc(&without->arena, sizeof *b);
    *b = *without;
    uint64_t rng = b->seed ^ 0x119f7;
    int before = b->out.graph[ENTRY_GRAD]->node.n;
    if (!open_form(b, text, (BudgetAsked){.kind = BUDGET_LIGHT}, (Form){0}))
        return false;
    b->m = loaded_model(b->loaded);
    b->v->light += b->out.graph[ENTRY_GRAD]->node.n > before;
    if (b->m->arena_bytes > b->p->arena_bytes)
        return fault(b->v, FAULT_PLAN, "more bytes with elementwise values computed again");
    return plans_replay(b) && run_lanes(b, 1 + (int32_t)random_below(&rng, 8), 0);
}

static int lean_scans(const Graph *g)
{
    int n = 0;
    for (Ref r = 1; g != NULL && r < (Ref)g->node.n; r++)
        n += op_of(g, r) == OP_scan && scan_of(g, r).lean;
    return n;
}

/* The object in another form, against the judge of the program as it is. *counts: there is one. */
static bool run_form(Bench *without, const char *text, Form form, int32_t *counts)
{
    Bench *b = arena_alloc(&without->arena, sizeof *b);
    *b = *without;
    uint64_t rng = b->seed ^ 0xf0f3;
    int before = lean_scans(b->out.graph[ENTRY_GRAD]);
    if (!open_form(b, text, (BudgetAsked){.kind = BUDGET_NONE}, form))
        return false;
    if (lean_scans(b->out.graph[ENTRY_GRAD]) == before)
        return true;
    b->m = loaded_model(b->loaded);
    ++*counts;
    return plans_replay(b) && run_lanes(b, 1 + (int32_t)random_below(&rng, 8), 0);
}

/* The text without the words before its bindings. */
static const char *without_words(Bench *b, const char *text)
{
    static const char *const word[] = {"keep ", "recompute ", "offload "};
    Text t;
    text_init(&t, &b->arena);
    while (*text != '\0') {
        size_t indent = strspn(text, " ");
        text_add(&t, "%.*s", (int)indent, text);
        text += indent;
        for (size_t i = 0; indent > 0 && i < sizeof word / sizeof *word; i++)
            if (strncmp(text, word[i], strlen(word[i])) == 0)
                text += strlen(word[i]);
        size_t n = strcspn(text, "\n") + 1;
        n -= text[n - 1] == '\0';
        text_add(&t, "%.*s", (int)n, text);
        text += n;
    }
    return t.at;
}

/* Words change no bit: the object without them, against the judge of the program as it is. */
static bool run_plain(Bench *with, const char *text)
{
    Bench *b = arena_alloc(&with->arena, sizeof *b);
    *b = *with;
    uint64_t rng = b->seed ^ 0x3055;
    if (!open_form(b, without_words(b, text), (BudgetAsked){.kind = BUDGET_NONE}, (Form){0}))
        return false;
    b->m = loaded_model(b->loaded);
    return plans_replay(b) && run_lanes(b, 1 + (int32_t)random_below(&rng, 8), 0);
}

static bool run_forms(Bench *b, const char *text)
{
    uint64_t rng = b->seed ^ 0x5ca9;
    int32_t levels = 1 + (int32_t)random_below(&rng, 2);
    int32_t slices = 2 + (int32_t)random_below(&rng, 63);
    int32_t kept = 1 + (int32_t)random_below(&rng, KEEP_ALL - 1);
    if (b->v->scan && !run_form(b, text, (Form){.scan_levels = levels}, &b->v->cut))
        return false;
    if (b->v->scan && !run_form(b, text, (Form){.kept = kept}, &b->v->kept))
        return false;
    return !b->has_slices || run_form(b, text, (Form){.slices = slices}, &b->v->slices);
}

/* A parameter that the caller can't find row by row. */
static bool has_panels(const gradc_model *m)
{
    for (int32_t i = 0; i < m->n_tensors; i++)
        if (m->tensors[i].role == GRADC_PARAM && m->tensors[i].offset < 0)
            return true;
    return false;
}

int64_t chunk_from(uint64_t seed)
{
    return seed % 2 == 0 ? 32 : 0;
}

void check_model(const char *text, uint64_t seed, bool loud, Verdict *v)
{
    Bench *b = calloc(1, sizeof *b);
    if (b == NULL)
        abort();
    b->v = v;
    b->seed = seed;
    b->chunk_from = chunk_from(seed);
    if (!bench_open(b, text, loud))
        return;
    count_used(b, text);
    if (!plans_replay(b))
        return;
    if (seed % 4 == 0)
        run_within(b, text);
    if (seed % 8 == 1 || seed % 8 == 2) /* one of each two in chunks */
        run_light(b, text);
    if (seed % 4 == 3)
        run_plain(b, text);
    v->panels += has_panels(b->m);
    v->chains += b->out.object.n_chains > 0;
    v->chunked += b->chunk_from > 0 && lean_scans(b->out.graph[ENTRY_GRAD]) > 0;
    if (v->fault == FAULT_NONE)
        run_forms(b, text);
    run_object(b);
    if (v->fault == FAULT_NONE)
        check_derivatives(text, seed, v);
}

/* ---- a process for each model ----------------------------------------------------- */

/* The last line that the child has said: the assertion, or what a sanitizer found. */
static void last_words(FILE *f, char *to, size_t n)
{
    char line[400];
    rewind(f);
    while (fgets(line, sizeof line, f) != NULL)
        if (line[0] != '\n')
            snprintf(to, n, "%.*s", (int)strcspn(line, "\n"), line);
}

static void in_child(Check *check, const char *text, uint64_t seed, bool loud, Verdict *v,
                     FILE *said)
{
    if (!loud && dup2(fileno(said), 2) < 0)
        _exit(70);
    alarm(180); /* far more than any takes alone */
    check(text, seed, loud, v);
    fflush(NULL);
    _exit(0); /* everything goes with the process */
}

void check_apart(Check *check, const char *text, uint64_t seed, bool loud, Verdict *v)
{
    FILE *said = tmpfile();
    if (said == NULL) {
        perror("gradc-smith: tmpfile");
        exit(70);
    }
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        in_child(check, text, seed, loud, v, said);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("gradc-smith: fork");
        exit(70);
    }
    if (WIFSIGNALED(status)) {
        v->fault = FAULT_CRASH;
        v->signal = WTERMSIG(status);
        snprintf(v->text, sizeof v->text, "%s", strsignal(v->signal));
        last_words(said, v->text, sizeof v->text);
    } else if (WEXITSTATUS(status) != 0 && v->fault == FAULT_NONE) {
        fault(v, FAULT_CRASH, "exit status %d", WEXITSTATUS(status));
    }
    fclose(said);
}
