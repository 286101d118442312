/* Floating-point mode and processor check. They run on any processor of the
 * architecture: nothing here may use what it checks for. */
#include <string.h>
#include "support.h"

static Lv begin(Ir *ir, const char *name)
{
    Lv fn = support_fn(ir, name);
    ir_begin(ir, fn);
    return fn;
}

/* ---- the floating-point mode ---------------------------------------------------- */

/* MXCSR: all exceptions masked, to nearest, denormals kept (its default); or FTZ and DAZ. */
enum { MXCSR_DEFAULT = 0x1f80, MXCSR_FLUSH = 0x9fc0 };

static Lv call_void(Ir *ir, const char *name, Lv arg)
{
    return ir_intrinsic(ir, name, NULL, 0, &arg, 1);
}

static void define_fp_x86(Ir *ir)
{
    begin(ir, "gradc.fp_set");
    Lv old = ir_slot(ir, ir->i32, 4), new = ir_slot(ir, ir->i32, 4);
    call_void(ir, "llvm.x86.sse.stmxcsr", old);
    ir_store(ir, ir_int32(ir, ir->mach->flush ? MXCSR_FLUSH : MXCSR_DEFAULT), new, 4);
    call_void(ir, "llvm.x86.sse.ldmxcsr", new);
    LLVMBuildRet(ir->b, LLVMBuildZExt(ir->b, ir_load(ir, ir->i32, old, 4), ir->i64, ""));
    Lv fn = begin(ir, "gradc.fp_restore");
    Lv slot = ir_slot(ir, ir->i32, 4);
    ir_store(ir, LLVMBuildTrunc(ir->b, LLVMGetParam(fn, 0), ir->i32, ""), slot, 4);
    call_void(ir, "llvm.x86.sse.ldmxcsr", slot);
    LLVMBuildRetVoid(ir->b);
}

static void define_fp_arm(Ir *ir)
{
    begin(ir, "gradc.fp_set");
    Lv old = ir_intrinsic(ir, "llvm.aarch64.get.fpcr", NULL, 0, NULL, 0);
    call_void(ir, "llvm.aarch64.set.fpcr", ir_int(ir, 0));
    LLVMBuildRet(ir->b, old);
    Lv fn = begin(ir, "gradc.fp_restore");
    call_void(ir, "llvm.aarch64.set.fpcr", LLVMGetParam(fn, 0));
    LLVMBuildRetVoid(ir->b);
}

/* ---- the processor ---------------------------------------------------------------- */

typedef struct FeatureBit {
    const char *name;
    uint32_t leaf, sub;
    int reg, bit;
} FeatureBit;

static const FeatureBit features[N_FEATURES] = {
#define FEATURE(id, name, leaf, sub, reg, bit) {name, leaf, sub, reg, bit},
#include "features.def"
#undef FEATURE
};

static Lv assembly(const char *code, const char *constraints, Lt type)
{
    char a[16], b[96];
    strcpy(a, code);
    strcpy(b, constraints);
    return LLVMGetInlineAsm(type, a, strlen(a), b, strlen(b), 1, 0, LLVMInlineAsmDialectATT, 0);
}

/* { eax, ebx, ecx, edx } */
static Lv cpuid(Ir *ir, uint32_t leaf, uint32_t sub)
{
    Lt four[] = {ir->i32, ir->i32, ir->i32, ir->i32}, two[] = {ir->i32, ir->i32};
    Lt type = LLVMFunctionType(LLVMStructTypeInContext(ir->c, four, 4, 0), two, 2, 0);
    Lv code =
        assembly("cpuid", "={ax},={bx},={cx},={dx},{ax},{cx},~{dirflag},~{fpsr},~{flags}", type);
    Lv arg[] = {ir_int32(ir, (int32_t)leaf), ir_int32(ir, (int32_t)sub)};
    return LLVMBuildCall2(ir->b, type, code, arg, 2, "");
}

static Lv xgetbv(Ir *ir)
{
    Lt two[] = {ir->i32, ir->i32}, one[] = {ir->i32};
    Lt type = LLVMFunctionType(LLVMStructTypeInContext(ir->c, two, 2, 0), one, 1, 0);
    Lv code = assembly("xgetbv", "={ax},={dx},{cx},~{dirflag},~{fpsr},~{flags}", type);
    Lv arg[] = {ir_int32(ir, 0)};
    return LLVMBuildExtractValue(ir->b, LLVMBuildCall2(ir->b, type, code, arg, 1, ""), 0, "");
}

static Lv has_bits(Ir *ir, Lv x, uint32_t bits)
{
    Lv mask = ir_int32(ir, (int32_t)bits);
    return LLVMBuildICmp(ir->b, LLVMIntEQ, LLVMBuildAnd(ir->b, x, mask, ""), mask, "");
}

/* Registers that the operating system saves: XCR0, or 0 where it saves none. */
static Lv saved_state(Ir *ir)
{
    Lv slot = ir_slot(ir, ir->i32, 4);
    ir_store(ir, ir_int32(ir, 0), slot, 4);
    Lv ecx = LLVMBuildExtractValue(ir->b, cpuid(ir, 1, 0), 2, "");
    IrIf f = ir_if(ir, has_bits(ir, ecx, UINT32_C(1) << 27));
    ir_store(ir, xgetbv(ir), slot, 4);
    ir_end_if(ir, &f);
    return ir_load(ir, ir->i32, slot, 4);
}

/* The leaf's registers, zeros where the processor has no such leaf, or subleaf. */
static void read_leaf(Ir *ir, uint32_t leaf, uint32_t sub, Lv *slot)
{
    Lv top = LLVMBuildExtractValue(ir->b, cpuid(ir, leaf & 0x80000000u, 0), 0, "");
    for (int r = 0; r < 4; r++) {
        slot[r] = ir_slot(ir, ir->i32, 4);
        ir_store(ir, ir_int32(ir, 0), slot[r], 4);
    }
    Lv known = LLVMBuildICmp(ir->b, LLVMIntUGE, top, ir_int32(ir, (int32_t)leaf), "");
    IrIf f = ir_if(ir, known);
    Lv regs = cpuid(ir, leaf, sub);
    for (unsigned r = 0; r < 4; r++)
        ir_store(ir, LLVMBuildExtractValue(ir->b, regs, r, ""), slot[r], 4);
    ir_end_if(ir, &f);
}

/* Bits of XCR0 that a feature's registers want: none, xmm and ymm, or zmm too. */
static uint32_t state_of(int f)
{
    if (f >= FEATURE_AVX512F)
        return 0xe6;
    return f >= FEATURE_AVX && f <= FEATURE_AVX2 ? 6 : 0;
}

static Lv missing_x86(Ir *ir)
{
    enum { N_LEAVES = 4 };
    static const uint32_t leaf[N_LEAVES][2] = {{1, 0}, {7, 0}, {0x80000001u, 0}, {7, 1}};
    int n = machine_has(ir->mach, FEATURE_AVX512BF16) ? N_LEAVES : N_LEAVES - 1;
    Lv slot[N_LEAVES][4], state = saved_state(ir), missing = ir_int32(ir, 0);
    for (int l = 0; l < n; l++)
        read_leaf(ir, leaf[l][0], leaf[l][1], slot[l]);
    for (int f = 0; f < N_FEATURES; f++) {
        if (!machine_has(ir->mach, (Feature)f))
            continue;
        int l = 0;
        while (leaf[l][0] != features[f].leaf || leaf[l][1] != features[f].sub)
            l++;
        Lv reg = ir_load(ir, ir->i32, slot[l][features[f].reg], 4);
        Lv has = has_bits(ir, reg, UINT32_C(1) << features[f].bit);
        has = LLVMBuildAnd(ir->b, has, has_bits(ir, state, state_of(f)), "");
        Lv bit = LLVMBuildSelect(ir->b, has, ir_int32(ir, 0), ir_int32(ir, 1 << f), "");
        missing = LLVMBuildOr(ir->b, missing, bit, "");
    }
    return missing;
}

static void define_feature_name(Ir *ir)
{
    Lv fn = begin(ir, "gradc.feature_name");
    ir_attribute(ir, fn, SUPPORT_QUICK, "");
    Lv name = ir_string(ir, "?");
    for (int f = 0; f < N_FEATURES; f++) {
        if (!machine_has(ir->mach, (Feature)f))
            continue;
        Lv same = LLVMBuildICmp(ir->b, LLVMIntEQ, LLVMGetParam(fn, 0), ir_int32(ir, f), "");
        name = LLVMBuildSelect(ir->b, same, ir_string(ir, features[f].name), name, "");
    }
    LLVMBuildRet(ir->b, name);
}

void platform_define(Ir *ir)
{
    bool x86 = ir->mach->arch == ARCH_X86_64;
    if (x86)
        define_fp_x86(ir);
    else
        define_fp_arm(ir);
    ir_attribute(ir, begin(ir, "gradc.cpu_missing"), SUPPORT_QUICK, "");
    LLVMBuildRet(ir->b, x86 && ir->mach->need != 0 ? missing_x86(ir) : ir_int32(ir, 0));
    define_feature_name(ir);
}
