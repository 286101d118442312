/* The functions that the object exports. Each finds the caller's gradc_cuda by the handle, and
 * hands its arguments over. */
#include <assert.h>
#include <stddef.h>
#include <string.h>
#include "../../../runtime/cuda_abi.h"
#include "object.h"

/* $NAME, $MAGIC, ... are replaced. Offsets are those of gradc_cuda_handle (magic 0, cuda 16, state
 * 24, says 32, text 64), gradc_options (abi 8, cuda 48) and gradc_cuda, which are asserted below.
 */
_Static_assert(offsetof(gradc_cuda_handle, cuda) == 16 &&
                   offsetof(gradc_cuda_handle, state) == 24 &&
                   offsetof(gradc_cuda_handle, says) == 32 &&
                   offsetof(gradc_cuda_handle, text) == 64 &&
                   sizeof(gradc_cuda_handle) == HANDLE_BYTES,
               "the handle is as the text has it");
_Static_assert(offsetof(gradc_options, cuda) == 48 && sizeof(gradc_options) == 56 &&
                   offsetof(gradc_cuda, tables) == 8 && offsetof(gradc_cuda, init) == 24 &&
                   sizeof(gradc_cuda) == 80,
               "options are as the text has them");
static const char common[] =
    "; the functions of the handle's options; NULL: it is no handle, or closed\n"
    "define private ptr @gradc.calls(ptr %g) nounwind {\n"
    "  %a = ptrtoint ptr %g to i64\n"
    "  %low = and i64 %a, 63\n"
    "  %odd = icmp ne i64 %low, 0\n"
    "  %null = icmp eq ptr %g, null\n"
    "  %bad = or i1 %odd, %null\n"
    "  br i1 %bad, label %none, label %magic\n"
    "magic:\n"
    "  %m = load i64, ptr %g\n"
    "  %ours = icmp eq i64 %m, $MAGIC\n"
    "  br i1 %ours, label %state, label %none\n"
    "state:\n"
    "  %sp = getelementptr i8, ptr %g, i64 24\n"
    "  %s = load ptr, ptr %sp\n"
    "  %closed = icmp eq ptr %s, null\n"
    "  br i1 %closed, label %none, label %some\n"
    "some:\n"
    "  %cp = getelementptr i8, ptr %g, i64 16\n"
    "  %c = load ptr, ptr %cp\n"
    "  ret ptr %c\n"
    "none:\n"
    "  ret ptr null\n"
    "}\n"
    "\n"
    "define private i32 @gradc.refused(ptr %g) nounwind {\n"
    "  %null = icmp eq ptr %g, null\n"
    "  %s = select i1 %null, i32 1, i32 8\n"
    "  ret i32 %s\n"
    "}\n"
    "\n"
    "define i64 @$NAME_arena_bytes() nounwind {\n"
    "  ret i64 $BLOCK\n"
    "}\n"
    "define i64 @$NAME_arena_align() nounwind {\n"
    "  ret i64 64\n"
    "}\n"
    "\n"
    "define i32 @$NAME_init(ptr %g, i64 %bytes, ptr %o, ptr %out) nounwind {\n"
    "  %no_out = icmp eq ptr %out, null\n"
    "  br i1 %no_out, label %argument, label %clear\n"
    "clear:\n"
    "  store ptr null, ptr %out\n"
    "  %no_g = icmp eq ptr %g, null\n"
    "  br i1 %no_g, label %argument, label %align\n"
    "align:\n"
    "  %a = ptrtoint ptr %g to i64\n"
    "  %low = and i64 %a, 63\n"
    "  %odd = icmp ne i64 %low, 0\n"
    "  br i1 %odd, label %misaligned, label %head\n"
    "head:\n"
    "  %tiny = icmp ult i64 %bytes, $BLOCK\n"
    "  br i1 %tiny, label %small, label %begin\n"
    "begin:\n"
    "  store i64 $FAILED, ptr %g\n"
    "  %cp = getelementptr i8, ptr %g, i64 16\n"
    "  store ptr null, ptr %cp\n"
    "  %stp = getelementptr i8, ptr %g, i64 24\n"
    "  store ptr null, ptr %stp\n"
    "  %tp = getelementptr i8, ptr %g, i64 32\n"
    "  store ptr null, ptr %tp\n"
    "  %no_o = icmp eq ptr %o, null\n"
    "  br i1 %no_o, label %bare, label %size\n"
    "size:\n"
    "  %s = load i64, ptr %o\n"
    "  %oldest = icmp ult i64 %s, 40\n" /* 40: without a store; 48: without a GPU */
    "  %older = icmp ult i64 %s, 56\n"
    "  %part = and i64 %s, 7\n"
    "  %odd_size = icmp ne i64 %part, 0\n"
    "  %between = and i1 %older, %odd_size\n"
    "  %short_o = or i1 %oldest, %between\n"
    "  br i1 %short_o, label %other, label %version\n"
    "version:\n"
    "  %ap = getelementptr i8, ptr %o, i64 8\n"
    "  %v = load i32, ptr %ap\n"
    "  %same = icmp eq i32 %v, $ABI\n"
    "  br i1 %same, label %newer, label %other\n"
    "newer:\n"
    "  br i1 %older, label %bare, label %device\n"
    "device:\n"
    "  %dp = getelementptr i8, ptr %o, i64 48\n"
    "  %c = load ptr, ptr %dp\n"
    "  %no_c = icmp eq ptr %c, null\n"
    "  br i1 %no_c, label %bare, label %tables\n"
    "tables:\n"
    "  %cs = load i64, ptr %c\n"
    "  %short = icmp ult i64 %cs, 80\n"
    "  br i1 %short, label %foreign, label %number\n"
    "number:\n"
    "  %np = getelementptr i8, ptr %c, i64 8\n"
    "  %n = load i32, ptr %np\n"
    "  %known = icmp eq i32 %n, $TABLES\n"
    "  br i1 %known, label %call, label %foreign\n"
    "call:\n"
    "  %fp = getelementptr i8, ptr %c, i64 24\n"
    "  %f = load ptr, ptr %fp\n"
    "  %r = call i32 %f(ptr %c, ptr @gradc.program, ptr %g, ptr %o)\n"
    "  %good = icmp eq i32 %r, 0\n"
    "  br i1 %good, label %give, label %end\n"
    "give:\n"
    "  store ptr %g, ptr %out\n"
    "  br label %end\n"
    "end:\n"
    "  ret i32 %r\n"
    "bare:\n"
    "  store ptr $T_BARE, ptr %tp\n"
    "  ret i32 14\n"
    "other:\n"
    "  store ptr $T_OTHER, ptr %tp\n"
    "  ret i32 2\n"
    "foreign:\n"
    "  store ptr $T_FOREIGN, ptr %tp\n"
    "  ret i32 2\n"
    "argument:\n"
    "  ret i32 1\n"
    "misaligned:\n"
    "  ret i32 4\n"
    "small:\n"
    "  ret i32 3\n"
    "}\n"
    "\n"
    "define ptr @$NAME_error(ptr %g) nounwind {\n"
    "  %null = icmp eq ptr %g, null\n"
    "  br i1 %null, label %none, label %look\n"
    "look:\n"
    "  %a = ptrtoint ptr %g to i64\n"
    "  %low = and i64 %a, 63\n"
    "  %odd = icmp ne i64 %low, 0\n"
    "  br i1 %odd, label %strange, label %magic\n"
    "magic:\n"
    "  %m = load i64, ptr %g\n"
    "  %ours = icmp eq i64 %m, $MAGIC\n"
    "  %failed = icmp eq i64 %m, $FAILED\n"
    "  %known = or i1 %ours, %failed\n"
    "  br i1 %known, label %text, label %strange\n"
    "text:\n"
    "  %tp = getelementptr i8, ptr %g, i64 32\n"
    "  %says = load ptr, ptr %tp\n"
    "  %own = icmp eq ptr %says, null\n"
    "  %t = getelementptr i8, ptr %g, i64 64\n"
    "  %p = select i1 %own, ptr %t, ptr %says\n"
    "  ret ptr %p\n"
    "none:\n"
    "  ret ptr $T_NULL\n"
    "strange:\n"
    "  ret ptr $T_STRANGE\n"
    "}\n"
    "\n"
    "define ptr @$NAME_tensors(ptr %g, ptr %count) nounwind {\n"
    "  %null = icmp eq ptr %count, null\n"
    "  br i1 %null, label %end, label %put\n"
    "put:\n"
    "  store i64 $TENSORS, ptr %count\n"
    "  br label %end\n"
    "end:\n"
    "  ret ptr $LIST\n"
    "}\n"
    "\n"
    "define i32 @$NAME_find(ptr %name) nounwind {\n"
    "entry:\n"
    "  %null = icmp eq ptr %name, null\n"
    "  br i1 %null, label %none, label %test\n"
    "test:\n"
    "  %i = phi i32 [ 0, %entry ], [ %i1, %next ]\n"
    "  %more = icmp ult i32 %i, $TENSORS\n"
    "  br i1 %more, label %one, label %none\n"
    "one:\n"
    "  %k = zext i32 %i to i64\n"
    "  %at = mul i64 %k, $ROW\n"
    "  %row = getelementptr i8, ptr $LIST, i64 %at\n"
    "  %s = load ptr, ptr %row\n"
    "  br label %compare\n"
    "compare:\n"
    "  %j = phi i64 [ 0, %one ], [ %j1, %same ]\n"
    "  %p = getelementptr i8, ptr %s, i64 %j\n"
    "  %q = getelementptr i8, ptr %name, i64 %j\n"
    "  %x = load i8, ptr %p\n"
    "  %y = load i8, ptr %q\n"
    "  %equal = icmp eq i8 %x, %y\n"
    "  br i1 %equal, label %same, label %next\n"
    "same:\n"
    "  %j1 = add i64 %j, 1\n"
    "  %end = icmp eq i8 %x, 0\n"
    "  br i1 %end, label %found, label %compare\n"
    "next:\n"
    "  %i1 = add i32 %i, 1\n"
    "  br label %test\n"
    "found:\n"
    "  ret i32 %i\n"
    "none:\n"
    "  ret i32 -1\n"
    "}\n";

/* A call of the function at byte $AT of gradc_cuda. */
static const char forward[] = "define i32 @$NAME_$SUFFIX($TAKES) nounwind {\n"
                              "  %c = call ptr @gradc.calls(ptr %g)\n"
                              "  %null = icmp eq ptr %c, null\n"
                              "  br i1 %null, label %no, label %yes\n"
                              "yes:\n"
                              "  %fp = getelementptr i8, ptr %c, i64 $AT\n"
                              "  %f = load ptr, ptr %fp\n"
                              "  %r = call i32 %f($GIVES)\n"
                              "  ret i32 %r\n"
                              "no:\n"
                              "  %s = call i32 @gradc.refused(ptr %g)\n"
                              "  ret i32 %s\n"
                              "}\n";

/* int NAME_step(g, in, T *loss): outputs with nothing else in them. */
static const char loss_only[] =
    "define i32 @$NAME_$SUFFIX(ptr %g, ptr %in, ptr %loss) nounwind {\n"
    "  %out = alloca [$WORDS x i64]\n"
    "  store [$WORDS x i64] zeroinitializer, ptr %out\n"
    "  %p = getelementptr i8, ptr %out, i64 $LOSS\n"
    "  store ptr %loss, ptr %p\n"
    "  %r = call i32 @$NAME_$SUFFIX_outputs(ptr %g, ptr %in, ptr %out)\n"
    "  ret i32 %r\n"
    "}\n";

typedef struct Word {
    const char *name, *value;
} Word;

/* Words end with one whose name is NULL. */
static void put_words(Object *o, const char *from, const Word *word)
{
    for (const char *p = from; *p != 0; p++) {
        const Word *w = word;
        while (*p == '$' && w->name != NULL && strncmp(w->name, p + 1, strlen(w->name)) != 0)
            w++;
        if (*p != '$') {
            text_char(&o->to, *p);
            continue;
        }
        assert(w->name != NULL && "each word of the text has a value");
        text_put(&o->to, w->value, strlen(w->value));
        p += strlen(w->name);
    }
    text_char(&o->to, '\n');
}

static const char *number(Object *o, int64_t x)
{
    return arena_printf(o->arena, "%lld", (long long)x);
}

static const char *sentence(Object *o, const char *format)
{
    return cu_text_constant(o, arena_printf(o->arena, format, o->name));
}

static void put_common(Object *o)
{
    const Word word[] = {
        {"MAGIC", number(o, (int64_t)o->magic)},
        {"FAILED", number(o, (int64_t)~o->magic)},
        {"NAME", o->name},
        {"BLOCK", number(o, HANDLE_BYTES)},
        {"ABI", number(o, GRADC_ABI)},
        {"TABLES", number(o, GRADC_CUDA_TABLES)},
        {"TENSORS", number(o, o->p->tensor.n)},
        {"LIST", cu_table_ref(o, "gradc.tensors", o->p->tensor.n)},
        {"ROW", number(o, (int64_t)sizeof(gradc_tensor))},
        {"T_BARE", sentence(o, "%s computes on a GPU: gradc_options.cuda must be set, as "
                               "gradc_cuda_use() of libgradc does")},
        {"T_OTHER", sentence(o, "the options are of another version: struct_size and abi must be "
                                "set for %s")},
        {"T_FOREIGN", sentence(o, "gradc_options.cuda is of another version of gradc than %s")},
        {"T_NULL", sentence(o, "the handle is NULL: %s_init did not succeed")},
        {"T_STRANGE", sentence(o, "this is no handle of %s")},
        {NULL, NULL},
    };
    put_words(o, common, word);
}

static void put_forward(Object *o, const char *suffix, size_t at, const char *takes,
                        const char *gives)
{
    const Word word[] = {{"NAME", o->name},
                         {"SUFFIX", suffix},
                         {"TAKES", takes},
                         {"GIVES", gives},
                         {"AT", number(o, (int64_t)at)},
                         {NULL, NULL}};
    put_words(o, forward, word);
}

static void put_loss_only(Object *o, const char *suffix)
{
    int32_t loss = fact_loss(o->p);
    const Word word[] = {{"NAME", o->name},
                         {"SUFFIX", suffix},
                         {"WORDS", number(o, o->p->result.n + 2)},
                         /* without a loss, where nobody looks */
                         {"LOSS", number(o, 8 * (1 + (loss >= 0 ? loss : o->p->result.n)))},
                         {NULL, NULL}};
    put_words(o, loss_only, word);
}

void cu_functions(Object *o)
{
    static const char *const entry[GRADC_CUDA_ENTRIES] = {NULL, "eval", "grad", "step"};
    put_common(o);
    for (int e = GRADC_CUDA_EVAL; e < GRADC_CUDA_ENTRIES; e++) {
        if (program_entry(o->p, entry[e]) == NULL)
            continue;
        const char *suffix = entry[e];
        if (e != GRADC_CUDA_EVAL) {
            put_loss_only(o, suffix);
            suffix = arena_printf(o->arena, "%s_outputs", suffix);
        }
        put_forward(o, suffix, offsetof(gradc_cuda, call), "ptr %g, ptr %in, ptr %out",
                    arena_printf(o->arena, "ptr %%g, i32 %d, ptr %%in, ptr %%out", e));
    }
    put_forward(o, "wait", offsetof(gradc_cuda, wait), "ptr %g, ptr %loss", "ptr %g, ptr %loss");
    static const char move[] = "ptr %g, i32 %t, ptr %p, i64 %n";
    put_forward(o, "read", offsetof(gradc_cuda, read), move, move);
    put_forward(o, "write", offsetof(gradc_cuda, write), move, move);
    put_forward(o, "set", offsetof(gradc_cuda, set), "ptr %g, i32 %t, double %x",
                "ptr %g, i32 %t, double %x");
    put_forward(o, "close", offsetof(gradc_cuda, close), "ptr %g", "ptr %g");
}
