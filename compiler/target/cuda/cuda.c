/* The CUDA target: what it can do, and the text of a whole model. */
#include "cuda.h"

enum {
    LOCAL_BYTES = 32 << 10, /* shared memory that LOCAL buffers of a kernel may take */
    PROLOGUE_INSTS = 12,
    EPILOGUE_INSTS = 64,
};

/* No scratch: shared memory is no part of the arena. */
static int64_t lane_scratch(const void *options, const Kernel *k)
{
    (void)options;
    (void)k;
    return 0;
}

static const Caps *cuda_caps(Ctx *cx, const TargetOptions *o, Arena *arena)
{
    (void)cx;
    (void)o;
    Caps *c = NEW(arena, Caps);
    *c = (Caps){.local_bytes = LOCAL_BYTES,
                .prologue_insts = PROLOGUE_INSTS,
                .epilogue_insts = EPILOGUE_INSTS,
                .lane_scratch = lane_scratch};
    return c;
}

/* ---- lines of the model ----------------------------------------------------------------- */

static const Origin *first_origin(const Call *call, int32_t n, int32_t kernel)
{
    for (const Call *c = call; c < call + n; c++) {
        if (c->kind == CALL_KERNEL && c->kernel == kernel && c->origin != NULL)
            return c->origin;
        const Origin *o = c->kind == CALL_KERNEL ? NULL : first_origin(c->body, c->n_body, kernel);
        if (o != NULL)
            return o;
    }
    return NULL;
}

/* The kernel's first call: the place of the model that is nearest to its reader, which is outside
 * of the library. */
static void put_line(Ctx *cx, const Program *p, int32_t kernel, Text *to)
{
    const Origin *o = NULL;
    for (int e = 0; e < p->entry.n && o == NULL; e++)
        o = first_origin(p->entry.at[e].call, p->entry.at[e].n_calls, kernel);
    while (o != NULL && o->parent != NULL &&
           (o->span.file < 0 || cx->source.at[o->span.file]->library))
        o = o->parent;
    if (o == NULL || o->span.file < 0 || o->span.file >= cx->source.n)
        return;
    const Source *s = cx->source.at[o->span.file];
    int line, column;
    source_position(s, o->span.from, &line, &column);
    text_add(to, "#line %d \"", line);
    text_c(to, s->path);
    text_add(to, "\"\n");
}

/* ---- the text ---------------------------------------------------------------------------------
 */

static const char *whole_text(Ctx *cx, const Program *p, Arena *arena)
{
    int n = p->kernel.n;
    Math math = {.arena = arena};
    Text kernels, to;
    text_init(&math.text, arena);
    text_init(&kernels, arena);
    text_init(&to, arena);
    Launch *launch = NEW_ARRAY(arena, Launch, n);
    const char **name = NEW_ARRAY(arena, const char *, n);
    bool *guarded = NEW_ARRAY(arena, bool, n);
    cu_find_guarded(p, guarded);
    for (int i = 0; i < n; i++) {
        const Kernel *k = p->kernel.at[i];
        name[i] = arena_printf(arena, "k%d_%s", i, k->name);
        put_line(cx, p, i, &kernels);
        Naming as = {.name = name[i], .guarded = guarded[i]};
        launch[i] = cu_kernel(&kernels, arena, k, &as, &math);
        text_char(&kernels, '\n');
    }
    cu_launches(p, name, launch, &kernels);
    cu_text(&to, &math, &kernels);
    return to.at;
}

static bool cuda_emit(Ctx *cx, const Program *p, const TargetOptions *o, Arena *arena,
                      ObjectFile *out)
{
    *out = (ObjectFile){.cpu = "cuda", .n_kernels = p->kernel.n};
    if (!o->want_cuda) {
        Diag *d = diag_error(cx, E0703, NO_SPAN, "this gradc makes no object for `cuda`");
        diag_help(cx, d, "`build --target cuda --emit cuda` writes the kernels as CUDA C++");
        return false;
    }
    out->cuda = whole_text(cx, p, arena);
    return true;
}

const Target target_cuda = {.name = "cuda", .caps = cuda_caps, .emit = cuda_emit};
