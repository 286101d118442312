/* What several kernels of an object share: tiles of contractions, zeros. */
#include "units.h"

void ir_in_object(Lv made)
{
    LLVMSetLinkage(made, LLVMExternalLinkage);
    LLVMSetVisibility(made, LLVMHiddenVisibility);
}

/* In a module of its own, if no kernel before has made it. */
static bool begin_shared(Ir *ir, const char *name, IrShared *s)
{
    ir_in_object(s->made);
    if (units_has(ir->units, name))
        return false;
    s->m = ir->m;
    ir->m = LLVMModuleCreateWithNameInContext(UNIT_SOURCE, ir->c);
    return true;
}

bool ir_shared_function(Ir *ir, const char *name, Lt result, const Lt *arg, int n, IrShared *s)
{
    Lt type = ir_type_of(ir, result, arg, n);
    *s = (IrShared){.name = name, .outer = ir->fn, .here = ir_here(ir)};
    s->made = LLVMGetNamedFunction(ir->m, name);
    if (s->made != NULL)
        return false;
    if (ir->units != NULL) {
        s->made = LLVMAddFunction(ir->m, name, type);
        if (!begin_shared(ir, name, s))
            return false;
    }
    Lv fn = ir_function(ir, name, result, arg, n);
    if (ir->units != NULL)
        ir_in_object(fn);
    else
        s->made = fn;
    return true;
}

static Lv add_constant(Ir *ir, const char *name, Lt type)
{
    Lv x = LLVMAddGlobal(ir->m, type, name);
    LLVMSetGlobalConstant(x, 1);
    LLVMSetAlignment(x, 64);
    return x;
}

bool ir_shared_data(Ir *ir, const char *name, Lt type, IrShared *s)
{
    *s = (IrShared){.name = name, .outer = ir->fn, .here = ir_here(ir)};
    s->made = LLVMGetNamedGlobal(ir->m, name);
    if (s->made != NULL)
        return false;
    s->made = add_constant(ir, name, type);
    if (ir->units == NULL) {
        LLVMSetLinkage(s->made, LLVMPrivateLinkage);
        return true;
    }
    if (!begin_shared(ir, name, s))
        return false;
    ir_in_object(add_constant(ir, name, type));
    return true;
}

void ir_shared_end(Ir *ir, IrShared *s)
{
    if (s->m != NULL) {
        lines_frames(ir);
        units_add(ir->units, ir, s->name);
        LLVMDisposeModule(ir->m);
        ir->m = s->m;
    }
    ir->fn = s->outer;
    ir_at(ir, s->here);
}
