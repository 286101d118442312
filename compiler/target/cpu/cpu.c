/* The CPU target: one object by LLVM, in a few straight steps. */
#include <assert.h>
#include <string.h>
#include "../../../runtime/abi.h"
#include "chain.h"
#include "join.h"
#include "model.h"
#include "side_sums.h"
#include "units.h"

enum { DEFAULT_THREADS = 8 };
enum { SET_BYTES = 4096 };     /* one way of a first cache: 32 KiB of 8 ways, 48 of 12, 64 of 16 */
enum { TELLS_FROM = 1 << 18 }; /* less is read once more in no time */

/* ---- capabilities ----------------------------------------------------------------- */

typedef struct CpuOptions {
    const Machine *mach;
    int32_t threads_max;
} CpuOptions;

/* The same kernel asked about twice is planned twice: it is cheap. */
static KernelFn plan_kernel(const CpuOptions *o, const Kernel *k)
{
    Arena arena = {0};
    const Kernel *x = kernel_expand(&arena, k, o->mach->exponents);
    KernelFn f = x->kind == K_LOOP ? plan_loop_kernel(o->mach, x, &arena)
                                   : plan_contraction(o->mach, x, &arena);
    arena_free(&arena);
    return f;
}

/* A kernel that runs alone has the scratch of all lanes. */
static int64_t lane_scratch(const void *options, const Kernel *k)
{
    const CpuOptions *o = options;
    KernelFn f = plan_kernel(o, k);
    int64_t lanes = f.chunks > 1 ? 1 : o->threads_max;
    return align_up((f.scratch + lanes - 1) / lanes, BLOCK_ALIGN);
}

static int64_t turn_scratch(const void *options, const Kernel *k)
{
    return align_up(plan_kernel(options, k).scratch, BLOCK_ALIGN);
}

static int64_t kernel_lanes(const void *options, const Kernel *k, int64_t *bytes)
{
    const CpuOptions *o = options;
    KernelFn f = plan_kernel(o, k);
    *bytes = align_up(f.scratch, BLOCK_ALIGN);
    return f.chunks <= 1 ? 1 : f.chunks < o->threads_max ? f.chunks : o->threads_max;
}

static const Caps *cpu_caps(Ctx *cx, const TargetOptions *o, Arena *arena)
{
    object_start();
    const Machine *m = machine_find(cx, o, arena);
    if (m == NULL)
        return NULL;
    CpuOptions *kept = NEW(arena, CpuOptions);
    kept->mach = m;
    kept->threads_max = o->threads_max > 0 ? o->threads_max : DEFAULT_THREADS;
    Caps *c = NEW(arena, Caps);
    *c = (Caps){.local_bytes = m->l2_bytes / 2,
                .bf16_pairs = m->dots,
                .prologue_insts = 12,
                .rests = true,
                .joins_again = true,
                .set_bytes = o->set_bytes > 0 ? o->set_bytes : SET_BYTES,
                .epilogue_insts = 64,
                .chains_from = chain_least(m, o),
                .tells_from = o->tells_from > 0 ? o->tells_from : TELLS_FROM,
                .lane_scratch = lane_scratch,
                .turn_scratch = turn_scratch,
                .lanes = kernel_lanes,
                .options = kept};
    return c;
}

/* ---- emission ------------------------------------------------------------------------ */

static void find_origins(const Call *call, int32_t n, const Origin **first)
{
    for (const Call *c = call; n-- > 0; c++) {
        if (c->kind != CALL_KERNEL)
            find_origins(c->body, c->n_body, first);
        else if (first[c->kernel] == NULL)
            first[c->kernel] = c->origin;
    }
}

static void find_all_origins(Model *m)
{
    const Program *p = m->p;
    m->origin = NEW_ARRAY(m->arena, const Origin *, p->kernel.n);
    for (int i = 0; i < p->entry.n; i++)
        find_origins(p->entry.at[i].call, p->entry.at[i].n_calls, m->origin);
}

static const char *kernel_name(const Model *m, int i)
{
    return arena_printf(m->arena, "%s.k%d_%s", m->name, i, m->p->kernel.at[i]->name);
}

static KernelFn emit_kernel(const Model *m, Ir *ir, int i, const char *name)
{
    const Kernel *k = kernel_expand(m->arena, m->p->kernel.at[i], ir->mach->exponents);
    return k->kind == K_LOOP ? emit_loop_kernel(ir, k, name, m->arena)
                             : emit_contraction(ir, k, name, m->arena);
}

/* Literal tensors, in the object. */
static void emit_constants(Model *m)
{
    const Program *p = m->p;
    m->constant = NEW_ARRAY(m->arena, Lv, p->buffer.n);
    m->calls = NEW_ARRAY(m->arena, Lv, p->entry.n);
    for (int i = 0; i < p->buffer.n; i++) {
        const Buffer *b = &p->buffer.at[i];
        if (b->role != ROLE_CONSTANT)
            continue;
        unsigned n = (unsigned)(b->elems * dtype_bytes(b->dtype));
        Lv bytes = LLVMConstStringInContext(m->ir.c, b->literal, n, 1);
        Lv g = LLVMAddGlobal(m->ir.m, LLVMTypeOf(bytes), "gradc.literal");
        LLVMSetInitializer(g, bytes);
        LLVMSetLinkage(g, LLVMPrivateLinkage);
        LLVMSetGlobalConstant(g, 1);
        LLVMSetAlignment(g, 64);
        m->constant[i] = g;
    }
}

static int64_t offset_of(const Program *p, int32_t buffer)
{
    return buffer >= 0 && buffer < p->buffer.n ? p->buffer.at[buffer].offset : -1;
}

/* What init clears: whole words; beyond the last one there is only what a call fills. */
static int64_t pinned_bytes(const Program *p)
{
    int64_t n = p->pinned_bytes > HANDLE_BYTES ? p->pinned_bytes : HANDLE_BYTES;
    return align_up(n, 8) <= p->arena_bytes ? align_up(n, 8) : n;
}

static SupportConstants constants_of(const Model *m)
{
    const Program *p = m->p;
    uint64_t hash = hash_bytes(HASH_START, p->hash, strlen(p->hash));
    hash = hash_mix(hash_bytes(hash, p->name, strlen(p->name)));
    int64_t seed = offset_of(p, p->seed);
    return (SupportConstants){
        .magic = hash | 1,
        .name = m->name,
        .arena_bytes = p->arena_bytes,
        .store_bytes = m->p->store_bytes,
        .pinned_bytes = pinned_bytes(p),
        .seed = seed >= HANDLE_BYTES ? seed : -1,
        .threads_max = p->threads_max,
        .abi = GRADC_ABI,
    };
}

/* The module of entries and tables. */
static bool open_module(Model *m, const Machine *mach)
{
    SupportConstants k = constants_of(m);
    if (!support_open(m->cx, &m->ir, mach, m->arena, &k))
        return false;
    platform_define(&m->ir);
    m->kernel = NEW_ARRAY(m->arena, KernelFn, m->p->kernel.n);
    return true;
}

/* Lines and constants first, then kernels, which are there or declared, then the rest. */
static void begin_module(Model *m)
{
    m->lines = lines_open(m);
    emit_constants(m);
}

/* Of x86-64 and aarch64 alike; a program without products of halves is of the class that it would
 * be of on a processor without dot products. */
static const char *numerics(const Model *m)
{
    const char *class = m->ir.mach->fma ? "fma" : "mul-add";
    for (int i = 0; i < m->p->kernel.n && m->ir.mach->fma; i++)
        if (m->p->kernel.at[i]->con.pairs)
            class = "fma, bf16 pairs";
    return m->ir.mach->flush ? arena_printf(m->arena, "%s, denormals flushed", class) : class;
}

static const char *header_of(const Model *m)
{
    const char *upper = name_upper(m->arena, m->name);
    HeaderWords w = {.name = m->name,
                     .block = m->p->arena_bytes,
                     .what = "exact peak: parameters, state, gradients, activations, workspace",
                     .extra = m->o->header_extra};
    w.more =
        arena_printf(m->arena,
                     "#define %s_CPU \"%s\"\n"
                     "#define %s_NUMERICS \"%s\" /* objects of one class give the same bits */\n",
                     upper, m->ir.mach->cpu, upper, numerics(m));
    return header_text(m->p, &w, m->arena);
}

static void complete_module(Model *m)
{
    model_grain(m);
    model_tables(m);
    lines_close(m->lines);
    m->out->header = header_of(m);
}

/* All in one module: LLVM's text of it, and objects of formats that parts are not joined in. */
static bool emit_whole(Model *m, const Machine *mach)
{
    if (!open_module(m, mach))
        return false;
    begin_module(m);
    for (int i = 0; i < m->p->kernel.n; i++) {
        const char *name = kernel_name(m, i);
        m->kernel[i] = emit_kernel(m, &m->ir, i, name);
        lines_function(m->lines, m->kernel[i].fn, name, m->origin[i]);
    }
    complete_module(m);
    bool ok = object_emit(m->cx, &m->ir, m->o, mach->format != FORMAT_ELF, m->arena, m->out);
    ir_close(&m->ir);
    return ok;
}

/* ---- parts ------------------------------------------------------------------------------ */

/* The kernel in a module of its own, which says nothing of the model; gives its unit. */
static int32_t add_kernel(Model *m, Units *u, int i)
{
    Ir ir;
    ir_open(&ir, UNIT_SOURCE, m->ir.mach, m->arena);
    ir.units = u;
    m->kernel[i] = emit_kernel(m, &ir, i, UNIT_KERNEL);
    ir_in_object(m->kernel[i].fn);
    lines_frames(&ir);
    int32_t unit = units_add(u, &ir, UNIT_KERNEL);
    ir_close(&ir);
    const Lt arg[] = {m->ir.ptr, m->ir.ptr, m->ir.i64, m->ir.i64};
    Lt type = ir_type_of(&m->ir, m->ir.none, arg, 4);
    m->kernel[i].fn = LLVMAddFunction(m->ir.m, kernel_name(m, i), type);
    ir_in_object(m->kernel[i].fn);
    return unit;
}

/* unit[i] is that of kernel i; the last one is the module with the tables, whose sections are to
 * stand first. */
static bool join_units(Model *m, const Units *u, const int32_t *unit)
{
    int n = units_count(u);
    JoinPart *part = NEW_ARRAY(m->arena, JoinPart, n);
    for (int i = 0; i < n; i++) {
        const Unit *x = units_at(u, i);
        part[(i + 1) % n] =
            (JoinPart){.bytes = x->part.bytes, .n = x->part.n_bytes, .defines = x->name};
        m->out->n_cached += x->part.kept;
    }
    m->out->n_parts = n;
    for (int i = 0; i < m->p->kernel.n; i++) {
        JoinPart *x = &part[unit[i] + 1];
        x->as = kernel_name(m, i);
        x->path = lines_place(m, m->origin[i], &x->line);
    }
    JoinLines lines = {.producer = LINES_PRODUCER};
    if (lines_wanted(m))
        lines.path = m->cx->source.at[0]->path;
    const char *wrong = join_parts(part, n, lines.path != NULL ? &lines : NULL, m->arena,
                                   &m->out->bytes, &m->out->n_bytes);
    if (wrong != NULL)
        diag_error(m->cx, E0702, NO_SPAN, "joining parts: %s", wrong);
    return wrong == NULL;
}

/* What no step waits for, compiled in a hurry and by itself. */
static void add_quick(const Model *m, Units *u)
{
    Ir ir = m->ir;
    ir.m = support_split(&ir);
    lines_frames(&ir);
    units_add_quick(u, &ir, "gradc.quick");
    LLVMDisposeModule(ir.m);
}

static bool emit_parts(Model *m, const Machine *mach)
{
    if (!open_module(m, mach))
        return false;
    Units *u = units_open(mach, m->o, m->arena);
    add_quick(m, u);
    begin_module(m);
    int32_t *unit = NEW_ARRAY(m->arena, int32_t, m->p->kernel.n);
    for (int i = 0; i < m->p->kernel.n; i++)
        unit[i] = add_kernel(m, u, i);
    complete_module(m);
    support_show(&m->ir);
    units_add(u, &m->ir, m->name);
    bool ok = units_finish(m->cx, u) && join_units(m, u, unit);
    units_close(u);
    ir_close(&m->ir);
    return ok;
}

static bool cpu_emit(Ctx *cx, const Program *p, const TargetOptions *o, Arena *arena,
                     ObjectFile *out)
{
    object_start();
    *out = (ObjectFile){0};
    const Machine *mach = machine_find(cx, o, arena);
    if (mach == NULL)
        return false;
    Model m = {.cx = cx, .o = o, .arena = arena, .out = out};
    m.p = side_sums_program(mach, panels_program(mach, o, p, arena, &m.panels), arena);
    out->program = m.p;
    out->n_kernels = m.p->kernel.n;
    m.name = name_identifier(arena, p->name);
    out->cpu = arena_printf(arena, "cpu:%s", mach->cpu);
    out->is_exact = mach->fma;
    find_all_origins(&m);
    bool parts = mach->format == FORMAT_ELF;
    if (!parts || o->want_ir || o->want_asm) {
        Model whole = m;
        if (!emit_whole(&whole, mach))
            return false;
    }
    return !parts || emit_parts(&m, mach);
}

const Target target_cpu = {.name = "cpu", .packs = true, .caps = cpu_caps, .emit = cpu_emit};
