/* Objects for the host of another target: LLVM's text of tables and of functions that use them. */
#include <string.h>
#include <llvm-c/IRReader.h>
#include "object.h"

static bool read_text(Ctx *cx, Ir *ir, const char *text)
{
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRangeCopy(text, strlen(text), "host");
    LLVMModuleRef m;
    char *message = NULL;
    if (LLVMParseIRInContext(ir->c, buffer, &m, &message)) {
        diag_error(cx, E0702, NO_SPAN, "host code: %s", message != NULL ? message : "unreadable");
        LLVMDisposeMessage(message);
        return false;
    }
    LLVMDisposeModule(ir->m);
    ir->m = m;
    LLVMSetTarget(m, ir->mach->triple);
    return true;
}

bool cpu_host_object(Ctx *cx, const char *name, const char *text, const TargetOptions *o,
                     Arena *arena, ObjectFile *out)
{
    object_start();
    TargetOptions any = *o;
    any.cpu = "baseline"; /* nothing of it takes time */
    const Machine *mach = machine_find(cx, &any, arena);
    if (mach == NULL)
        return false;
    Ir ir;
    ir_open(&ir, name, mach, arena);
    bool ok = read_text(cx, &ir, text) && object_emit(cx, &ir, &any, true, arena, out);
    ir_close(&ir);
    return ok;
}
