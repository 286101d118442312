/* Puts the text of support_text.c, with its constants, into a module. */
#include <string.h>
#include <llvm-c/IRReader.h>
#include "support.h"

typedef struct Word {
    const char *name;
    const char *value;
} Word;

static const Word *find_word(const Word *words, const char *at)
{
    const Word *best = NULL;
    for (const Word *w = words; w->name != NULL; w++) {
        size_t n = strlen(w->name);
        if (strncmp(w->name, at, n) == 0 && (best == NULL || n > strlen(best->name)))
            best = w;
    }
    return best;
}

static char *replace_words(Arena *arena, const char *from, const Word *words)
{
    Text t;
    text_init(&t, arena);
    for (const char *p = from; *p != 0; p++) {
        const Word *w = *p == '$' ? find_word(words, p + 1) : NULL;
        if (w == NULL) {
            text_char(&t, *p);
            continue;
        }
        text_put(&t, w->value, strlen(w->value));
        p += strlen(w->name);
    }
    return t.at;
}

/* "$S(text)" becomes the name of a constant that is added at the end. */
static char *replace_strings(Arena *arena, const char *from)
{
    Text t, strings;
    text_init(&t, arena);
    text_init(&strings, arena);
    int n = 0;
    for (const char *p = from; *p != 0; p++) {
        if (strncmp(p, "$S(", 3) != 0) {
            text_char(&t, *p);
            continue;
        }
        const char *end = strchr(p, ')');
        size_t len = (size_t)(end - p) - 3;
        text_add(&t, "@gradc.text.%d", n);
        text_add(&strings,
                 "@gradc.text.%d = private unnamed_addr constant [%zu x i8] c\"%.*s\\00\"\n", n++,
                 len + 1, (int)len, p + 3);
        p = end;
    }
    text_put(&t, strings.at, strings.n);
    return t.at;
}

static const char *number(Arena *arena, int64_t x)
{
    return arena_printf(arena, "%lld", (long long)x);
}

/* Declarations of the text that the emitter defines are made local here. */
static void open_module(Ir *ir, LLVMModuleRef m, const Machine *mach)
{
    LLVMDisposeModule(ir->m);
    ir->m = m;
    LLVMSetTarget(m, mach->triple);
    for (Lv fn = LLVMGetFirstFunction(m); fn != NULL; fn = LLVMGetNextFunction(fn)) {
        size_t n;
        const char *name = LLVMGetValueName2(fn, &n);
        if (strncmp(name, "gradc.", 6) != 0)
            continue;
        if (!LLVMIsDeclaration(fn))
            ir_local(ir, fn);
    }
}

bool support_open(Ctx *cx, Ir *ir, const Machine *mach, Arena *a, const SupportConstants *k)
{
    const Word words[] = {
        {"MAGIC", number(a, (int64_t)k->magic)},
        {"FAILED", number(a, (int64_t)~k->magic)},
        {"NAME", k->name},
        {"ARENA", number(a, k->arena_bytes)},
        {"PINNED", number(a, k->pinned_bytes)},
        {"SEED", number(a, k->seed)},
        {"HAS_SEED", k->seed >= 0 ? "true" : "false"},
        {"STORE", number(a, k->store_bytes)},
        {"OFFLOADS", k->store_bytes > 0 ? "true" : "false"},
        {"THREADS", number(a, k->threads_max)},
        {"ABI", number(a, k->abi)},
        {NULL, NULL},
    };
    const char *whole = arena_printf(a, "%s\n%s", support_text, support_calls);
    const char *full = replace_strings(a, replace_words(a, whole, words));
    ir_open(ir, k->name, mach, a);
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRangeCopy(full, strlen(full), "support");
    LLVMModuleRef m;
    char *message = NULL;
    if (LLVMParseIRInContext(ir->c, buffer, &m, &message)) {
        diag_error(cx, E0702, NO_SPAN, "support: %s", message != NULL ? message : "unreadable");
        LLVMDisposeMessage(message);
        ir_close(ir);
        return false;
    }
    open_module(ir, m, mach);
    return true;
}

Lv support_fn(Ir *ir, const char *name)
{
    return LLVMGetNamedFunction(ir->m, name);
}

/* ---- what no step waits for ------------------------------------------------------------ */

static bool is_quick(Lv fn)
{
    const LLVMAttributeIndex function = UINT32_MAX;
    return LLVMGetStringAttributeAtIndex(fn, function, SUPPORT_QUICK, strlen(SUPPORT_QUICK)) !=
           NULL;
}

static bool is_called_quickly(Lv fn)
{
    for (LLVMUseRef u = LLVMGetFirstUse(fn); u != NULL; u = LLVMGetNextUse(u)) {
        Lv user = LLVMGetUser(u);
        if (LLVMIsAInstruction(user) != NULL &&
            is_quick(LLVMGetBasicBlockParent(LLVMGetInstructionParent(user))))
            return true;
    }
    return false;
}

/* Functions that are quick, or those that are not, are of another module. */
static void declare(LLVMModuleRef m, bool quick)
{
    for (Lv fn = LLVMGetFirstFunction(m); fn != NULL; fn = LLVMGetNextFunction(fn))
        if (is_quick(fn) == quick && LLVMGetIntrinsicID(fn) == 0) {
            ir_in_object(fn);
            if (!LLVMIsDeclaration(fn))
                LLVMSetLinkage(fn, LLVMAvailableExternallyLinkage);
        }
}

/* Those that stay are called by the other module. */
LLVMModuleRef support_split(Ir *ir)
{
    LLVMModuleRef quick = LLVMCloneModule(ir->m);
    declare(quick, false);
    for (Lv fn = LLVMGetFirstFunction(quick); fn != NULL; fn = LLVMGetNextFunction(fn))
        if (is_quick(fn))
            ir_in_object(fn);
    declare(ir->m, true);
    return quick;
}

void support_show(Ir *ir)
{
    for (Lv fn = LLVMGetFirstFunction(ir->m); fn != NULL; fn = LLVMGetNextFunction(fn))
        if (!is_quick(fn) && LLVMGetIntrinsicID(fn) == 0 && is_called_quickly(fn))
            ir_in_object(fn);
}
