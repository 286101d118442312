/* The CUDA target: what it can do, and what it makes of a Program. */
#include "images.h"

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

/* What the text leads to, where that is asked for; the whole text is for readers. */
static bool cuda_emit(Ctx *cx, const Program *p, const TargetOptions *o, Arena *arena,
                      ObjectFile *out)
{
    *out = (ObjectFile){.cpu = "cuda", .n_kernels = p->kernel.n};
    if (o->want_cuda)
        out->cuda = cu_whole_text(cx, p, arena);
    if (o->want_images) {
        CudaImages *images = NEW(arena, CudaImages);
        if (!cuda_compile(cx, p, o, arena, images))
            return false;
        out->images = images;
        out->n_parts = images->n_parts;
        out->n_cached = images->n_cached;
    }
    if (o->want_cuda || o->want_images)
        return true;
    Diag *d = diag_error(cx, E0707, NO_SPAN, "this gradc makes no object for `cuda`");
    diag_help(cx, d, "`build --target cuda --emit cuda` writes the kernels as CUDA C++");
    return false;
}

const Target target_cuda = {.name = "cuda", .caps = cuda_caps, .emit = cuda_emit};
