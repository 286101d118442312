/* What this gradc and this machine are, for `gradc doctor`. */
#include "../target.h"

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

const char *cpu_llvm_version(Arena *arena)
{
    unsigned major, minor, patch;
    LLVMGetVersion(&major, &minor, &patch);
    return arena_printf(arena, "%u.%u.%u", major, minor, patch);
}

const char *cpu_host_name(Arena *arena)
{
    char *name = LLVMGetHostCPUName();
    const char *copy = arena_strdup(arena, name);
    LLVMDisposeMessage(name);
    return copy;
}
