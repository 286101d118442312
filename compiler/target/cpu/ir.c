/* Short names for LLVM's C interface. */
#include <assert.h>
#include <string.h>
#include "ir.h"

/* LLVMAttributeFunctionIndex without its sign conversion. */
static const LLVMAttributeIndex FUNCTION = UINT32_MAX;

void ir_open(Ir *ir, const char *module, const Machine *mach, Arena *arena)
{
    LLVMContextRef c = LLVMContextCreate();
    *ir = (Ir){.c = c, .mach = mach, .arena = arena};
    ir->m = LLVMModuleCreateWithNameInContext(module, c);
    ir->b = LLVMCreateBuilderInContext(c);
    ir->i1 = LLVMInt1TypeInContext(c);
    ir->i8 = LLVMInt8TypeInContext(c);
    ir->i16 = LLVMInt16TypeInContext(c);
    ir->i32 = LLVMInt32TypeInContext(c);
    ir->i64 = LLVMInt64TypeInContext(c);
    ir->f32 = LLVMFloatTypeInContext(c);
    ir->f64 = LLVMDoubleTypeInContext(c);
    ir->ptr = LLVMPointerTypeInContext(c, 0);
    ir->none = LLVMVoidTypeInContext(c);
}

void ir_close(Ir *ir)
{
    LLVMDisposeBuilder(ir->b);
    LLVMDisposeModule(ir->m);
    LLVMContextDispose(ir->c);
}

/* ---- functions and blocks ----------------------------------------------------- */

void ir_attribute(Ir *ir, Lv fn, const char *key, const char *value)
{
    LLVMAttributeRef a = LLVMCreateStringAttribute(ir->c, key, (unsigned)strlen(key), value,
                                                   (unsigned)strlen(value));
    LLVMAddAttributeAtIndex(fn, FUNCTION, a);
}

static void enum_attribute(Ir *ir, Lv fn, const char *name)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(fn, FUNCTION, LLVMCreateEnumAttribute(ir->c, kind, 0));
}

Lt ir_type_of(Ir *ir, Lt result, const Lt *arg, int n)
{
    enum { MOST = 24 };
    (void)ir;
    Lt copy[MOST];
    assert(n <= MOST);
    for (int i = 0; i < n; i++)
        copy[i] = arg[i];
    return LLVMFunctionType(result, copy, (unsigned)n, 0);
}

void ir_local(Ir *ir, Lv fn)
{
    LLVMSetLinkage(fn, LLVMInternalLinkage);
    enum_attribute(ir, fn, "nounwind");
    /* Frames are small by construction: no probe, which would be a symbol to link. */
    if (ir->mach->format == FORMAT_COFF)
        ir_attribute(ir, fn, "no-stack-arg-probe", "");
}

void ir_begin(Ir *ir, Lv fn)
{
    ir_local(ir, fn);
    ir->fn = fn;
    ir_at(ir, ir_block(ir, "entry"));
    LLVMSetCurrentDebugLocation2(ir->b, NULL);
}

Lv ir_function(Ir *ir, const char *name, Lt result, const Lt *arg, int n)
{
    Lv fn = LLVMAddFunction(ir->m, name, ir_type_of(ir, result, arg, n));
    ir_begin(ir, fn);
    return fn;
}

void ir_use_target(Ir *ir, Lv fn)
{
    const Machine *m = ir->mach;
    ir_attribute(ir, fn, "tune-cpu", m->tune);
    if (m->features[0] != 0)
        ir_attribute(ir, fn, "target-features", m->features);
    if (m->vec_bytes == 64) {
        ir_attribute(ir, fn, "prefer-vector-width", "512");
        ir_attribute(ir, fn, "min-legal-vector-width", "512");
    }
    if (m->flush) /* results, operands; source: LLVM LangRef, denormal-fp-math */
        ir_attribute(ir, fn, "denormal-fp-math", "preserve-sign,preserve-sign");
}

Lb ir_block(Ir *ir, const char *name)
{
    return LLVMAppendBasicBlockInContext(ir->c, ir->fn, name);
}

void ir_at(Ir *ir, Lb block)
{
    LLVMPositionBuilderAtEnd(ir->b, block);
}

Lb ir_here(Ir *ir)
{
    return LLVMGetInsertBlock(ir->b);
}

void ir_br(Ir *ir, Lb to)
{
    LLVMBuildBr(ir->b, to);
}

void ir_cond(Ir *ir, Lv cond, Lb yes, Lb no)
{
    LLVMBuildCondBr(ir->b, cond, yes, no);
}

Lv ir_slot(Ir *ir, Lt type, int align)
{
    Lb here = ir_here(ir), entry = LLVMGetEntryBasicBlock(ir->fn);
    LLVMMetadataRef line = LLVMGetCurrentDebugLocation2(ir->b);
    Lv first = LLVMGetFirstInstruction(entry);
    if (first != NULL)
        LLVMPositionBuilderBefore(ir->b, first);
    else
        ir_at(ir, entry);
    Lv slot = LLVMBuildAlloca(ir->b, type, "");
    LLVMSetAlignment(slot, (unsigned)align);
    ir_at(ir, here);
    LLVMSetCurrentDebugLocation2(ir->b, line);
    return slot;
}

/* ---- values ------------------------------------------------------------------- */

Lt ir_vec(Lt elem, int n)
{
    return n == 1 ? elem : LLVMVectorType(elem, (unsigned)n);
}

Lv ir_int(Ir *ir, int64_t x)
{
    return LLVMConstInt(ir->i64, (unsigned long long)x, 1);
}

Lv ir_int32(Ir *ir, int64_t x)
{
    return LLVMConstInt(ir->i32, (unsigned long long)x, 1);
}

Lv ir_splat(Ir *ir, Lv x, int n)
{
    if (n == 1)
        return x;
    if (LLVMIsConstant(x)) {
        Lv lane[64];
        for (int i = 0; i < n; i++)
            lane[i] = x;
        return LLVMConstVector(lane, (unsigned)n);
    }
    Lt vec = ir_vec(LLVMTypeOf(x), n);
    Lv one = LLVMBuildInsertElement(ir->b, LLVMGetPoison(vec), x, ir_int32(ir, 0), "");
    Lv zero = LLVMConstNull(ir_vec(ir->i32, n));
    return LLVMBuildShuffleVector(ir->b, one, LLVMGetPoison(vec), zero, "");
}

Lv ir_iota(Ir *ir, Lt elem, int n, int64_t step)
{
    (void)ir;
    Lv lane[64];
    for (int i = 0; i < n; i++)
        lane[i] = LLVMConstInt(elem, (unsigned long long)(step * i), 1);
    return n == 1 ? lane[0] : LLVMConstVector(lane, (unsigned)n);
}

Lv ir_add(Ir *ir, Lv x, Lv y)
{
    return LLVMBuildAdd(ir->b, x, y, "");
}

static bool is_zero(Lv x)
{
    return LLVMIsAConstantInt(x) != NULL && LLVMConstIntGetSExtValue(x) == 0;
}

Lv ir_mul(Ir *ir, Lv x, int64_t by)
{
    return by == 1 ? x : LLVMBuildMul(ir->b, x, LLVMConstInt(LLVMTypeOf(x), (uint64_t)by, 1), "");
}

Lv ir_min(Ir *ir, Lv x, Lv y)
{
    Lv less = LLVMBuildICmp(ir->b, LLVMIntSLT, x, y, "");
    return LLVMBuildSelect(ir->b, less, x, y, "");
}

Lv ir_at_byte(Ir *ir, Lv p, Lv offset)
{
    return is_zero(offset) ? p : LLVMBuildGEP2(ir->b, ir->i8, p, &offset, 1, "");
}

Lv ir_off(Ir *ir, Lv p, int64_t bytes)
{
    return ir_at_byte(ir, p, ir_int(ir, bytes));
}

Lv ir_load(Ir *ir, Lt type, Lv p, int align)
{
    Lv x = LLVMBuildLoad2(ir->b, type, p, "");
    LLVMSetAlignment(x, (unsigned)align);
    return x;
}

void ir_store(Ir *ir, Lv x, Lv p, int align)
{
    LLVMSetAlignment(LLVMBuildStore(ir->b, x, p), (unsigned)align);
}

Lv ir_shuffle(Ir *ir, Lv x, Lv y, const int *lane, int n)
{
    Lv mask[64];
    for (int i = 0; i < n; i++)
        mask[i] = lane[i] < 0 ? LLVMGetPoison(ir->i32) : ir_int32(ir, lane[i]);
    return LLVMBuildShuffleVector(ir->b, x, y, LLVMConstVector(mask, (unsigned)n), "");
}

Lv ir_call(Ir *ir, Lv fn, const Lv *arg, int n)
{
    Lv copy[24];
    assert(n <= 24);
    for (int i = 0; i < n; i++)
        copy[i] = arg[i];
    Lt type = LLVMGlobalGetValueType(fn);
    return LLVMBuildCall2(ir->b, type, fn, copy, (unsigned)n, "");
}

Lv ir_intrinsic(Ir *ir, const char *name, const Lt *type, int n_types, const Lv *arg, int n)
{
    Lt types[4];
    for (int i = 0; i < n_types; i++)
        types[i] = type[i];
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    assert(id != 0);
    Lv fn = LLVMGetIntrinsicDeclaration(ir->m, id, types, (size_t)n_types);
    return ir_call(ir, fn, arg, n);
}

Lv ir_op1(Ir *ir, const char *intrinsic, Lv x)
{
    Lt type = LLVMTypeOf(x);
    return ir_intrinsic(ir, intrinsic, &type, 1, &x, 1);
}

Lv ir_op2(Ir *ir, const char *intrinsic, Lv x, Lv y)
{
    Lt type = LLVMTypeOf(x);
    Lv arg[] = {x, y};
    return ir_intrinsic(ir, intrinsic, &type, 1, arg, 2);
}

Lv ir_string(Ir *ir, const char *s)
{
    Lv text = LLVMConstStringInContext(ir->c, s, (unsigned)strlen(s), 0);
    Lv g = LLVMAddGlobal(ir->m, LLVMTypeOf(text), "");
    LLVMSetInitializer(g, text);
    LLVMSetLinkage(g, LLVMPrivateLinkage);
    LLVMSetGlobalConstant(g, 1);
    LLVMSetUnnamedAddress(g, LLVMGlobalUnnamedAddr);
    LLVMSetAlignment(g, 1);
    return g;
}

/* ---- structure ------------------------------------------------------------------ */

IrLoop ir_loop(Ir *ir, Lv from, Lv to, int64_t step, bool guard)
{
    IrLoop l = {.head = ir_block(ir, "loop"), .to = to, .step = step};
    Lb body = ir_block(ir, "body"), before = ir_here(ir);
    l.exit = ir_block(ir, "done");
    if (guard)
        ir_cond(ir, LLVMBuildICmp(ir->b, LLVMIntSLT, from, to, ""), l.head, l.exit);
    else
        ir_br(ir, l.head);
    ir_at(ir, l.head);
    l.i = LLVMBuildPhi(ir->b, ir->i64, "");
    LLVMAddIncoming(l.i, &from, &before, 1);
    l.hoist = LLVMBuildBr(ir->b, body);
    ir_at(ir, body);
    return l;
}

void ir_loop_end(Ir *ir, IrLoop *l)
{
    Lv next = LLVMBuildNSWAdd(ir->b, l->i, ir_int(ir, l->step), "");
    Lv more = LLVMBuildICmp(ir->b, LLVMIntSLT, next, l->to, "");
    Lb here = ir_here(ir);
    ir_cond(ir, more, l->head, l->exit);
    LLVMAddIncoming(l->i, &next, &here, 1);
    LLVMMoveBasicBlockAfter(l->exit, here);
    ir_at(ir, l->exit);
}

IrIf ir_if(Ir *ir, Lv cond)
{
    IrIf s = {.no = ir_block(ir, "else"), .end = ir_block(ir, "end")};
    Lb yes = ir_block(ir, "then");
    ir_cond(ir, cond, yes, s.no);
    ir_at(ir, yes);
    return s;
}

void ir_else(Ir *ir, IrIf *s)
{
    ir_br(ir, s->end);
    ir_at(ir, s->no);
    s->no = NULL;
}

void ir_end_if(Ir *ir, IrIf *s)
{
    ir_br(ir, s->end);
    if (s->no != NULL) {
        ir_at(ir, s->no);
        ir_br(ir, s->end);
    }
    LLVMMoveBasicBlockAfter(s->end, ir_here(ir));
    ir_at(ir, s->end);
}
