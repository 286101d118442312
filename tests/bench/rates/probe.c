/* Loops that show what the machine can do: written in LLVM's IR, as kernels are. */
#include "rates.h"

enum { MOST = 24 }; /* accumulators: two multiply-adds a cycle, of six cycles each, are 12 */

static int chains(const Machine *m)
{
    return m->n_vregs >= 32 ? MOST : MOST / 2;
}

static int lanes_of(const Machine *m)
{
    return m->vec_bytes / 4;
}

double probe_flops(const Rates *r)
{
    return 2.0 * chains(r->mach) * lanes_of(r->mach) * (r->halves && r->mach->dots ? 2 : 1);
}

static Lv dot(Ir *ir, Lv s, Lv x, Lv y)
{
    int bits = ir->mach->vec_bytes * 8;
    Lt halves = ir_vec(LLVMBFloatTypeInContext(ir->c), bits / 16);
    Lv arg[] = {s, LLVMBuildBitCast(ir->b, x, halves, ""), LLVMBuildBitCast(ir->b, y, halves, "")};
    const char *name = arena_printf(ir->arena, "llvm.x86.avx512bf16.dpbf16ps.%d", bits);
    return ir_intrinsic(ir, name, NULL, 0, arg, 3);
}

typedef struct Loop {
    Ir *ir;
    Lt vec;
    Lv to, from, n, fn;
} Loop;

/* Sums that are stored at the end, so that they are computed. */
static void multiply_adds(const Loop *p, bool dots)
{
    Ir *ir = p->ir;
    int n = chains(ir->mach), lanes = lanes_of(ir->mach);
    Lv phi[MOST], next[MOST], x = ir_load(ir, p->vec, p->from, 4);
    Lv y = ir_load(ir, p->vec, ir_off(ir, p->from, lanes * 4), 4);
    Lb before = ir_here(ir), head = ir_block(ir, "head"), done = ir_block(ir, "done");
    ir_br(ir, head);
    ir_at(ir, head);
    Lv i = LLVMBuildPhi(ir->b, ir->i64, "");
    for (int c = 0; c < n; c++) {
        phi[c] = LLVMBuildPhi(ir->b, p->vec, "");
        LLVMAddIncoming(phi[c], &x, &before, 1);
    }
    for (int c = 0; c < n; c++) {
        Lv arg[] = {phi[c], x, y};
        next[c] = dots ? dot(ir, phi[c], x, y) : ir_intrinsic(ir, "llvm.fma", &p->vec, 1, arg, 3);
        LLVMAddIncoming(phi[c], &next[c], &head, 1);
    }
    Lv left = ir_add(ir, i, ir_int(ir, -1));
    Lv rounds = p->n;
    LLVMAddIncoming(i, &rounds, &before, 1);
    LLVMAddIncoming(i, &left, &head, 1);
    ir_cond(ir, LLVMBuildICmp(ir->b, LLVMIntNE, left, ir_int(ir, 0), ""), head, done);
    ir_at(ir, done);
    for (int c = 0; c < n; c++)
        ir_store(ir, next[c], ir_off(ir, p->to, c * lanes * 4), 4);
}

static void walk(const Loop *p, ProbeKind kind)
{
    enum { AT_ONCE = 4 };
    Ir *ir = p->ir;
    int lanes = lanes_of(ir->mach);
    IrLoop l = ir_loop(ir, ir_int(ir, 0), p->n, lanes * AT_ONCE, false);
    Lv at = ir_mul(ir, l.i, 4);
    for (int v = 0; v < AT_ONCE; v++) {
        Lv to = ir_off(ir, ir_at_byte(ir, p->to, at), v * lanes * 4);
        Lv from = ir_off(ir, ir_at_byte(ir, p->from, at), v * lanes * 4), x;
        if (kind == PROBE_UPDATE) {
            Lv one = ir_splat(ir, LLVMConstReal(ir->f32, 1), lanes);
            x = LLVMBuildFAdd(ir->b, ir_load(ir, p->vec, to, 4), one, "");
        } else {
            Lt type = LLVMFunctionType(p->vec, (Lt[]){p->vec}, 1, 0);
            Lv arg = ir_load(ir, p->vec, from, 4);
            x = LLVMBuildCall2(ir->b, type, p->fn, &arg, 1, "");
        }
        ir_store(ir, x, to, 4);
    }
    ir_loop_end(ir, &l);
}

Probe probe_new(Rates *r, ProbeKind kind)
{
    Ir ir;
    ObjectFile object = {0};
    object_start();
    ir_open(&ir, "probe", r->mach, &r->arena);
    const Lt arg[] = {ir.ptr, ir.ptr, ir.i64, ir.ptr};
    Lv fn = ir_function(&ir, "probe", ir.none, arg, 4);
    LLVMSetLinkage(fn, LLVMExternalLinkage);
    ir_use_target(&ir, fn);
    Loop p = {.ir = &ir,
              .vec = ir_vec(ir.f32, lanes_of(r->mach)),
              .to = LLVMGetParam(fn, 0),
              .from = LLVMGetParam(fn, 1),
              .n = LLVMGetParam(fn, 2),
              .fn = LLVMGetParam(fn, 3)};
    if (kind == PROBE_FMA || kind == PROBE_DOT)
        multiply_adds(&p, kind == PROBE_DOT);
    else
        walk(&p, kind);
    LLVMBuildRetVoid(ir.b);
    Probe made = {NULL, NULL};
    if (object_emit(&r->cx, &ir, &r->o, true, &r->arena, &object))
        made.loaded = cpu_load(&r->cx, &object, NULL);
    ir_close(&ir);
    if (made.loaded == NULL) {
        diag_print(&r->cx, stderr);
        exit(1);
    }
    *(void **)&made.code = loaded_symbol(made.loaded, "probe");
    return made;
}

void probe_free(Probe *p)
{
    cpu_unload(p->loaded);
}
