/* One kernel as CUDA C++, and several in one text. */
#include "embedded.h"
#include "cuda.h"

/* Arguments in the order of the buffers; what a kernel only reads is const. */
void cu_kernel_head(Printer *p, const char *name, const char *bounds, bool guarded)
{
    const Kernel *k = p->k;
    Text t;
    text_init(&t, p->arena);
    for (int b = 0; b < k->buf.n; b++) {
        if (k->buf.at[b].mode != K_LOCAL)
            text_add(&t, "%s%s%s *b%d", t.n > 0 ? ", " : "",
                     k->buf.at[b].mode == K_IN ? "const " : "", cu_memory_type(k->buf.at[b].dtype),
                     b);
    }
    if (guarded)
        text_add(&t, "%sconst u8 *guard", t.n > 0 ? ", " : "");
    cu_line(p, "extern \"C\" __global__ void __launch_bounds__(%s)", bounds);
    cu_line(p, "%s(%s)", name, t.at != NULL ? t.at : "");
    cu_line(p, "{");
    p->depth++;
}

void cu_kernel_begin(Printer *p, bool guarded)
{
    const KLimit *l = &p->k->limit;
    if (guarded) {
        cu_line(p, "if (*guard == 0)");
        cu_line(p, "    return;");
    }
    if (!l->is)
        return;
    cu_line(p, "const i64 asked = b%d[%lld] + %lldll, limit = asked > 1 ? asked : 1;", l->buf,
            (long long)l->at, (long long)l->plus);
}

Launch cu_kernel(Text *to, Arena *arena, const Kernel *k, const Naming *as, Math *math)
{
    Printer p = cu_printer(to, arena, k, math);
    p.wide = p.wide || as->wide;
    return k->kind == K_LOOP ? cu_loop_kernel(&p, as->name, as->guarded)
                             : cu_contraction(&p, as->name, as->guarded);
}

void cu_text(Text *to, const Math *math, const Text *kernels)
{
    text_put(to, cuda_prelude, cuda_prelude_bytes);
    text_add(to, "\n/* ---- functions ---- */\n\n");
    text_put(to, math->text.at, math->text.n);
    text_add(to, "/* ---- kernels ---- */\n\n");
    text_put(to, kernels->at, kernels->n);
}

void cuda_kernels_text(Kernel *const *k, int n, bool wide, Arena *arena, Text *to, Launch *launch)
{
    Math math = {.arena = arena};
    Text kernels;
    text_init(&math.text, arena);
    text_init(&kernels, arena);
    for (int i = 0; i < n; i++) {
        Naming as = {.name = arena_printf(arena, "k%d", i), .wide = wide};
        launch[i] = cu_kernel(&kernels, arena, k[i], &as, &math);
        text_char(&kernels, '\n');
    }
    cu_text(to, &math, &kernels);
}
