/* The CPU target: one object by LLVM, in a few straight steps. */
#include <assert.h>
#include <string.h>
#include "../../../runtime/abi.h"
#include "model.h"

enum { DEFAULT_THREADS = 8 };

/* ---- capabilities ----------------------------------------------------------------- */

typedef struct CpuOptions {
    const Machine *mach;
    int32_t threads_max;
} CpuOptions;

/* Bytes of one lane. A kernel that runs alone has the scratch of all lanes.
 * The same kernel asked about twice is planned twice: it is cheap. */
static int64_t lane_scratch(const void *options, const Kernel *k)
{
    const CpuOptions *o = options;
    Arena arena = {0};
    const Kernel *x = kernel_expand(&arena, k);
    KernelFn f = x->kind == K_LOOP ? plan_loop_kernel(o->mach, x, &arena)
                                   : plan_contraction(o->mach, x, &arena);
    arena_free(&arena);
    int64_t lanes = f.chunks > 1 ? 1 : o->threads_max;
    return align_up((f.scratch + lanes - 1) / lanes, BLOCK_ALIGN);
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
                .prologue_insts = 12,
                .epilogue_insts = 64,
                .lane_scratch = lane_scratch,
                .options = kept};
    return c;
}

/* ---- emission ------------------------------------------------------------------------ */

static void find_origins(const Call *call, int32_t n, const Origin **first)
{
    for (const Call *c = call; c < call + n; c++) {
        if (c->kind != CALL_KERNEL)
            find_origins(c->body, c->n_body, first);
        else if (first[c->kernel] == NULL)
            first[c->kernel] = c->origin;
    }
}

static void emit_kernels(Model *m)
{
    const Program *p = m->p;
    const Origin **first = NEW_ARRAY(m->arena, const Origin *, p->kernel.n);
    for (int i = 0; i < p->entry.n; i++)
        find_origins(p->entry.at[i].call, p->entry.at[i].n_calls, first);
    m->kernel = NEW_ARRAY(m->arena, KernelFn, p->kernel.n);
    for (int i = 0; i < p->kernel.n; i++) {
        const Kernel *k = kernel_expand(m->arena, p->kernel.at[i]);
        const char *name = arena_printf(m->arena, "%s.k%d_%s", m->name, i, k->name);
        KernelFn *fn = &m->kernel[i];
        *fn = k->kind == K_LOOP ? emit_loop_kernel(&m->ir, k, name, m->arena)
                                : emit_contraction(&m->ir, k, name, m->arena);
        assert(fn->scratch <= p->lane_bytes * (fn->chunks > 1 ? 1 : p->threads_max));
        lines_function(m->lines, fn->fn, name, first[i]);
    }
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
        .lanes = p->lanes_offset,
        .lane_bytes = p->lane_bytes,
        .threads_max = p->threads_max,
        .abi = GRADC_ABI,
    };
}

static bool cpu_emit(Ctx *cx, const Program *p, const TargetOptions *o, Arena *arena,
                     ObjectFile *out)
{
    object_start();
    *out = (ObjectFile){0};
    const Machine *mach = machine_find(cx, o, arena);
    if (mach == NULL)
        return false;
    Model m = {.cx = cx, .p = p, .o = o, .arena = arena};
    m.name = name_identifier(arena, p->name);
    SupportConstants k = constants_of(&m);
    if (!support_open(cx, &m.ir, mach, arena, &k))
        return false;
    m.lines = lines_open(&m);
    platform_define(&m.ir);
    emit_constants(&m);
    emit_kernels(&m);
    model_tables(&m);
    lines_close(m.lines);
    out->header = model_header(&m);
    out->n_kernels = p->kernel.n;
    bool ok = object_emit(cx, &m.ir, o, arena, out);
    ir_close(&m.ir);
    return ok;
}

const Target target_cpu = {.name = "cpu", .caps = cpu_caps, .emit = cpu_emit};
