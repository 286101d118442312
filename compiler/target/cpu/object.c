/* From a module to the bytes of an object file. */
#include <string.h>
#include <llvm-c/Analysis.h>
#include <llvm-c/Error.h>
#include <llvm-c/Target.h>
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

/* ---- of any thread ------------------------------------------------------------------- */

/* The code is built in its final form; slots become registers here. */
static const char passes[] = "globaldce,function(mem2reg,early-cse,loop-mssa(licm))";

/* Functions name what they may use; all else is code for any processor. */
static const char *const base_cpu[] = {[ARCH_X86_64] = "x86-64", [ARCH_AARCH64] = "generic"};

static const LLVMCodeGenOptLevel level[] = {LLVMCodeGenLevelDefault, LLVMCodeGenLevelNone};
static const LLVMRelocMode reloc = LLVMRelocPIC;
static const LLVMCodeModel code_model = LLVMCodeModelSmall;

void object_recipe(Blake2b *b, bool quick)
{
    unsigned choice[6] = {(unsigned)level[quick], (unsigned)reloc, (unsigned)code_model};
    LLVMGetVersion(&choice[3], &choice[4], &choice[5]);
    blake2b_add(b, choice, sizeof choice);
    blake2b_add(b, passes, sizeof passes);
    for (size_t i = 0; i < sizeof base_cpu / sizeof *base_cpu; i++)
        blake2b_add(b, base_cpu[i], strlen(base_cpu[i]) + 1);
}

static bool refuse(Refusal *r, const char *what, char *message)
{
    *r = (Refusal){what, message};
    return false;
}

LLVMTargetMachineRef object_machine(const Machine *m, bool quick, Refusal *r)
{
    LLVMTargetRef target;
    char *message = NULL;
    LLVMTargetMachineRef tm = NULL;
    if (!LLVMGetTargetFromTriple(m->triple, &target, &message))
        tm = LLVMCreateTargetMachine(target, m->triple, base_cpu[m->arch], "", level[quick], reloc,
                                     code_model);
    if (tm == NULL)
        refuse(r, "this LLVM has no such target", message);
    return tm;
}

static bool verify(LLVMModuleRef m, Refusal *r)
{
    char *message = NULL;
    if (LLVMVerifyModule(m, LLVMReturnStatusAction, &message))
        return refuse(r, "the module is malformed", message);
    LLVMDisposeMessage(message);
    return true;
}

static bool optimise(LLVMModuleRef m, LLVMTargetMachineRef tm, Refusal *r)
{
    LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
    LLVMErrorRef e = LLVMRunPasses(m, passes, tm, o);
    LLVMDisposePassBuilderOptions(o);
    if (e == NULL)
        return true;
    char *text = LLVMGetErrorMessage(e);
    refuse(r, "passes", LLVMCreateMessage(text));
    LLVMDisposeErrorMessage(text);
    return false;
}

bool object_prepare(LLVMModuleRef m, const Machine *mach, LLVMTargetMachineRef tm, Refusal *r)
{
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(tm);
    LLVMSetModuleDataLayout(m, layout);
    LLVMDisposeTargetData(layout);
    LLVMSetTarget(m, mach->triple);
    return verify(m, r) && optimise(m, tm, r);
}

LLVMMemoryBufferRef object_code(LLVMModuleRef m, LLVMTargetMachineRef tm, LLVMCodeGenFileType kind,
                                Refusal *r)
{
    char *message = NULL;
    LLVMMemoryBufferRef buffer;
    if (!LLVMTargetMachineEmitToMemoryBuffer(tm, m, kind, &message, &buffer))
        return buffer;
    refuse(r, "the object can't be written", message);
    return NULL;
}

/* ---- a module as it is ------------------------------------------------------------------ */

bool object_refuse(Ctx *cx, Refusal *r)
{
    diag_error(cx, E0702, NO_SPAN, "%s: %s", r->what,
               r->message != NULL ? r->message : "no reason given");
    if (r->message != NULL)
        LLVMDisposeMessage(r->message);
    r->message = NULL;
    return false;
}

static unsigned char *emit(LLVMModuleRef m, LLVMTargetMachineRef tm, LLVMCodeGenFileType kind,
                           Arena *arena, size_t *n, Refusal *r)
{
    LLVMMemoryBufferRef buffer = object_code(m, tm, kind, r);
    if (buffer == NULL)
        return NULL;
    *n = LLVMGetBufferSize(buffer);
    unsigned char *bytes = arena_alloc(arena, *n + 1);
    memcpy(bytes, LLVMGetBufferStart(buffer), *n);
    LLVMDisposeMemoryBuffer(buffer);
    return bytes;
}

static bool emit_texts(Ir *ir, LLVMTargetMachineRef tm, const TargetOptions *o, Arena *arena,
                       ObjectFile *out, Refusal *r)
{
    if (o->want_ir) {
        char *text = LLVMPrintModuleToString(ir->m);
        out->ir = arena_strdup(arena, text);
        LLVMDisposeMessage(text);
    }
    if (o->want_asm) { /* of a copy: emission changes the module */
        LLVMModuleRef copy = LLVMCloneModule(ir->m);
        size_t n;
        out->assembly = (const char *)emit(copy, tm, LLVMAssemblyFile, arena, &n, r);
        LLVMDisposeModule(copy);
        if (out->assembly == NULL)
            return false;
    }
    return true;
}

bool object_emit(Ctx *cx, Ir *ir, const TargetOptions *o, bool code, Arena *arena, ObjectFile *out)
{
    Refusal r = {0};
    LLVMTargetMachineRef tm = object_machine(ir->mach, false, &r);
    bool ok = tm != NULL && object_prepare(ir->m, ir->mach, tm, &r) &&
              emit_texts(ir, tm, o, arena, out, &r);
    if (ok && code) {
        out->bytes = emit(ir->m, tm, LLVMObjectFile, arena, &out->n_bytes, &r);
        ok = out->bytes != NULL;
    }
    if (tm != NULL)
        LLVMDisposeTargetMachine(tm);
    return ok || object_refuse(cx, &r);
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
        const Kernel *x = kernel_expand(arena, k[i], m->exponents);
        fn[i] = x->kind == K_LOOP ? emit_loop_kernel(&ir, x, name, arena)
                                  : emit_contraction(&ir, x, name, arena);
        LLVMSetLinkage(fn[i].fn, LLVMExternalLinkage);
    }
    bool ok = object_emit(cx, &ir, o, true, arena, out);
    ir_close(&ir);
    return ok;
}
