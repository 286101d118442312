/* The text of a Program's kernels: whole, for readers, or in programs of some kernels each. */
#include "cuda.h"

/* ---- lines of the model ------------------------------------------------------------------ */

static const Origin *first_origin(const Call *call, int32_t n, int32_t kernel)
{
    for (const Call *c = call; n-- > 0; c++) {
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

/* ---- the text ---------------------------------------------------------------------------- */

CudaText *cu_text_open(Ctx *cx, const Program *p, Arena *arena)
{
    int n = p->kernel.n;
    CudaText *t = NEW(arena, CudaText);
    *t = (CudaText){.cx = cx, .p = p, .arena = arena};
    t->name = NEW_ARRAY(arena, const char *, n);
    t->launch = NEW_ARRAY(arena, Launch, n);
    t->guarded = NEW_ARRAY(arena, bool, n);
    cu_find_guarded(p, t->guarded);
    for (int i = 0; i < n; i++)
        t->name[i] = arena_printf(arena, "k%d_%s", i, p->kernel.at[i]->name);
    return t;
}

void cu_text_kernel(CudaText *t, int32_t i, Math *math, Text *to)
{
    put_line(t->cx, t->p, i, to);
    Naming as = {.name = t->name[i], .guarded = t->guarded[i]};
    t->launch[i] = cu_kernel(to, t->arena, t->p->kernel.at[i], &as, math);
    text_char(to, '\n');
}

void cu_text_launches(CudaText *t)
{
    Math math = {.arena = t->arena};
    Text kernels;
    text_init(&math.text, t->arena);
    text_init(&kernels, t->arena);
    for (int32_t i = 0; i < t->p->kernel.n; i++)
        cu_text_kernel(t, i, &math, &kernels);
}

const char *cu_whole_text(Ctx *cx, const Program *p, Arena *arena)
{
    CudaText *t = cu_text_open(cx, p, arena);
    Math math = {.arena = arena};
    Text kernels, to;
    text_init(&math.text, arena);
    text_init(&kernels, arena);
    text_init(&to, arena);
    for (int32_t i = 0; i < p->kernel.n; i++)
        cu_text_kernel(t, i, &math, &kernels);
    cu_launches(t, &kernels);
    cu_text(&to, &math, &kernels);
    return to.at;
}
