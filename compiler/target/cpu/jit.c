/* The very bytes of an object, linked into this process by LLVM's ORC. */
#include <string.h>
#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include "../facts.h"
#include "object.h"

struct Loaded {
    LLVMOrcLLJITRef jit;
    const struct gradc_model *model;
};

static bool failed(Ctx *cx, LLVMErrorRef e)
{
    if (e == NULL)
        return false;
    char *text = LLVMGetErrorMessage(e);
    diag_error(cx, E0702, NO_SPAN, "loading the object: %s", text);
    LLVMDisposeErrorMessage(text);
    return true;
}

static bool add_object(Ctx *cx, Loaded *l, const ObjectFile *object)
{
    const char *bytes = (const char *)object->bytes;
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRangeCopy(bytes, object->n_bytes, "model");
    LLVMOrcJITDylibRef main = LLVMOrcLLJITGetMainJITDylib(l->jit);
    return !failed(cx, LLVMOrcLLJITAddObjectFile(l->jit, main, buffer));
}

void *loaded_symbol(Loaded *l, const char *name)
{
    LLVMOrcExecutorAddress address = 0;
    LLVMErrorRef e = LLVMOrcLLJITLookup(l->jit, &address, name);
    if (e != NULL) {
        LLVMConsumeError(e);
        return NULL;
    }
    return (void *)(uintptr_t)address;
}

Loaded *cpu_load(Ctx *cx, const ObjectFile *object, const char *model)
{
    object_start();
    Loaded *l = NEW(&cx->perm, Loaded);
    if (failed(cx, LLVMOrcCreateLLJIT(&l->jit, NULL)))
        return NULL;
    if (!add_object(cx, l, object)) {
        cpu_unload(l);
        return NULL;
    }
    if (model == NULL)
        return l;
    char *name = arena_printf(&cx->perm, "%s_model", name_identifier(&cx->perm, model));
    l->model = loaded_symbol(l, name);
    if (l->model == NULL) {
        diag_error(cx, E0702, NO_SPAN, "the object has no symbol %s", name);
        cpu_unload(l);
        return NULL;
    }
    return l;
}

const struct gradc_model *loaded_model(const Loaded *l)
{
    return l->model;
}

void cpu_unload(Loaded *l)
{
    if (l == NULL || l->jit == NULL)
        return;
    LLVMErrorRef e = LLVMOrcDisposeLLJIT(l->jit);
    if (e != NULL)
        LLVMConsumeError(e);
    l->jit = NULL;
}
