/* The CUDA target: what it can do, and what it makes of a Program. */
#include "object.h"

enum {
    LOCAL_BYTES = 32 << 10, /* shared memory that LOCAL buffers of a kernel may take */
    PROLOGUE_INSTS = 12,
    EPILOGUE_INSTS = 64,
    WIDE_ELEMS = 1 << 26, /* 128 MiB of halves: 50 us of memory and more, for launches of 2 us */
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

/* Values that the model offloads would be moved between kernels by the host. */
static bool refuse_offload(Ctx *cx)
{
    Diag *d = diag_error(cx, E0707, NO_SPAN, "objects for `cuda` offload no values");
    diag_help(cx, d, "there is one of the model without `offload`, and without --offload");
    return false;
}

static bool cuda_emit(Ctx *cx, const Program *p, const TargetOptions *o, Arena *arena,
                      ObjectFile *out)
{
    *out = (ObjectFile){.cpu = "cuda", .n_kernels = p->kernel.n};
    if (o->want_cuda)
        out->cuda = cu_whole_text(cx, p, arena);
    if (o->no_object && !o->want_images)
        return true;
    if (p->store_bytes > 0 && !o->no_object)
        return refuse_offload(cx);
    CudaImages *images = NEW(arena, CudaImages);
    if (!cuda_compile(cx, p, o, arena, images))
        return false;
    out->images = images;
    out->n_parts = images->n_parts;
    out->n_cached = images->n_cached;
    return o->no_object || cu_object(cx, p, o, arena, images, out);
}

const Target target_cuda = {
    .name = "cuda", .wide_elems = WIDE_ELEMS, .caps = cuda_caps, .emit = cuda_emit};
