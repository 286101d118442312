/* From a module to the bytes of an object file. */
#include <string.h>
#include <llvm-c/Analysis.h>
#include <llvm-c/Error.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include "object.h"

void object_start(void)
{
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeAArch64AsmParser();
}

static bool refuse(Ctx *cx, const char *what, char *message)
{
    diag_error(cx, E0702, NO_SPAN, "%s: %s", what, message != NULL ? message : "no reason given");
    if (message != NULL)
        LLVMDisposeMessage(message);
    return false;
}

static LLVMTargetMachineRef open_machine(const Machine *m, char **message)
{
    LLVMTargetRef target;
    if (LLVMGetTargetFromTriple(m->triple, &target, message))
        return NULL;
    /* Functions name what they may use; all else is code for any processor. */
    const char *base = m->arch == ARCH_X86_64 ? "x86-64" : "generic";
    return LLVMCreateTargetMachine(target, m->triple, base, "", LLVMCodeGenLevelDefault,
                                   LLVMRelocPIC, LLVMCodeModelSmall);
}

static bool verify(Ctx *cx, Ir *ir)
{
    char *message = NULL;
    if (LLVMVerifyModule(ir->m, LLVMReturnStatusAction, &message))
        return refuse(cx, "the module is malformed", message);
    LLVMDisposeMessage(message);
    return true;
}

/* The code is built in its final form; slots become registers here. */
static bool optimise(Ctx *cx, Ir *ir, LLVMTargetMachineRef tm)
{
    LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
    LLVMErrorRef e =
        LLVMRunPasses(ir->m, "globaldce,function(mem2reg,early-cse,loop-mssa(licm))", tm, o);
    LLVMDisposePassBuilderOptions(o);
    if (e == NULL)
        return true;
    char *text = LLVMGetErrorMessage(e);
    diag_error(cx, E0702, NO_SPAN, "passes: %s", text);
    LLVMDisposeErrorMessage(text);
    return false;
}

static unsigned char *emit(Ctx *cx, Ir *ir, LLVMTargetMachineRef tm, LLVMCodeGenFileType kind,
                           Arena *arena, size_t *n)
{
    char *message = NULL;
    LLVMMemoryBufferRef buffer;
    if (LLVMTargetMachineEmitToMemoryBuffer(tm, ir->m, kind, &message, &buffer)) {
        refuse(cx, "the object can't be written", message);
        return NULL;
    }
    *n = LLVMGetBufferSize(buffer);
    unsigned char *bytes = arena_alloc(arena, *n + 1);
    memcpy(bytes, LLVMGetBufferStart(buffer), *n);
    LLVMDisposeMemoryBuffer(buffer);
    return bytes;
}

static bool emit_all(Ctx *cx, Ir *ir, LLVMTargetMachineRef tm, const TargetOptions *o, Arena *arena,
                     ObjectFile *out)
{
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(tm);
    LLVMSetModuleDataLayout(ir->m, layout);
    LLVMDisposeTargetData(layout);
    LLVMSetTarget(ir->m, ir->mach->triple);
    if (!verify(cx, ir) || !optimise(cx, ir, tm))
        return false;
    if (o->want_ir) {
        char *text = LLVMPrintModuleToString(ir->m);
        out->ir = arena_strdup(arena, text);
        LLVMDisposeMessage(text);
    }
    if (o->want_asm) { /* of a copy: emission changes the module */
        LLVMModuleRef kept = ir->m;
        ir->m = LLVMCloneModule(kept);
        size_t n;
        out->assembly = (const char *)emit(cx, ir, tm, LLVMAssemblyFile, arena, &n);
        LLVMDisposeModule(ir->m);
        ir->m = kept;
        if (out->assembly == NULL)
            return false;
    }
    out->bytes = emit(cx, ir, tm, LLVMObjectFile, arena, &out->n_bytes);
    return out->bytes != NULL;
}

bool object_emit(Ctx *cx, Ir *ir, const TargetOptions *o, Arena *arena, ObjectFile *out)
{
    char *message = NULL;
    LLVMTargetMachineRef tm = open_machine(ir->mach, &message);
    if (tm == NULL)
        return refuse(cx, "this LLVM has no such target", message);
    bool ok = emit_all(cx, ir, tm, o, arena, out);
    LLVMDisposeTargetMachine(tm);
    out->cpu = arena_printf(arena, "cpu:%s", ir->mach->cpu);
    return ok;
}

bool cpu_emit_kernels(Ctx *cx, const TargetOptions *o, Kernel *const *k, int n, Arena *arena,
                      KernelFn *fn, ObjectFile *out)
{
    object_start();
    const Machine *m = machine_find(cx, o, arena);
    if (m == NULL)
        return false;
    Ir ir;
    ir_open(&ir, "kernels", m, arena);
    for (int i = 0; i < n; i++) {
        const char *name = arena_printf(arena, "k%d", i);
        const Kernel *x = kernel_expand(arena, k[i]);
        fn[i] = x->kind == K_LOOP ? emit_loop_kernel(&ir, x, name, arena)
                                  : emit_contraction(&ir, x, name, arena);
        LLVMSetLinkage(fn[i].fn, LLVMExternalLinkage);
    }
    bool ok = object_emit(cx, &ir, o, arena, out);
    ir_close(&ir);
    return ok;
}
