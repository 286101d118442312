/* The CUDA target: what it can do, and what it makes of a Program. */
#include "object.h"

enum {
    LOCAL_BYTES = 32 << 10, /* shared memory that LOCAL buffers of a kernel may take */
    PROLOGUE_INSTS = 12,
    EPILOGUE_INSTS = 64,
    MOST_LAUNCHES = 1 << 16, /* 2 us each: 0.13 s and more of nothing else; and there are up to
                              * nine graphs of a handle, which take host memory by the node */
    TOO_MANY = 1 << 30,
    FEW_RESULTS = 1024,   /* of 16 threads each */
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
    if (o->flush) {
        diag_error(cx, E0709, NO_SPAN,
                   "objects for `cuda` keep denormals, which cost no time there");
        return NULL;
    }
    Caps *c = NEW(arena, Caps);
    *c = (Caps){.local_bytes = LOCAL_BYTES,
                .joins_again = true,
                .prologue_insts = PROLOGUE_INSTS,
                .epilogue_insts = EPILOGUE_INSTS,
                .few_results = FEW_RESULTS,
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

/* Saturates far above any bound. */
static int64_t count_launches(const Call *call, int32_t n)
{
    int64_t all = 0;
    for (const Call *c = call; n-- > 0 && all <= MOST_LAUNCHES; c++) {
        int64_t times = c->kind == CALL_LOOP ? c->count : 1;
        int64_t inner = c->kind == CALL_KERNEL ? 1 : count_launches(c->body, c->n_body);
        if (inner > 0 && times > MOST_LAUNCHES)
            times = MOST_LAUNCHES + 1;
        all += times * inner;
    }
    return all < TOO_MANY ? all : TOO_MANY;
}

/* An entry is captured as one graph, with a node for each launch. */
static bool check_launches(Ctx *cx, const Program *p)
{
    for (int e = 0; e < p->entry.n; e++) {
        const Entry *x = &p->entry.at[e];
        if (count_launches(x->call, x->n_calls) <= MOST_LAUNCHES)
            continue;
        Diag *d = diag_error(cx, E0708, NO_SPAN,
                             "entry `%s` would be a CUDA graph of more than %d launches", x->name,
                             MOST_LAUNCHES);
        diag_help(cx, d,
                  "each turn of a scan, a chunk or a micro-batch is launches of its own: shorter "
                  "scans, a larger or no --chunk, a smaller `accumulate`, or a higher --budget");
        return false;
    }
    return true;
}

/* A grid of one dimension ends there. */
static bool check_blocks(Ctx *cx, const Program *p, const CudaImages *m)
{
    for (int i = 0; i < p->kernel.n; i++) {
        if (m->launch[i].blocks <= INT32_MAX)
            continue;
        Diag *d = diag_error(cx, E0708, NO_SPAN, "kernel %s would need %lld blocks, and %d can be",
                             m->name[i], (long long)m->launch[i].blocks, INT32_MAX);
        diag_help(cx, d, "--chunk, micro-batches and a smaller batch make kernels smaller");
        return false;
    }
    return true;
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
    if (!o->no_object && !check_launches(cx, p))
        return false;
    CudaImages *images = NEW(arena, CudaImages);
    if (!cuda_compile(cx, p, o, arena, images))
        return false;
    out->images = images;
    out->n_parts = images->n_parts;
    out->n_cached = images->n_cached;
    return o->no_object || (check_blocks(cx, p, images) && cu_object(cx, p, o, arena, images, out));
}

const Target target_cuda = {
    .name = "cuda", .wide_elems = WIDE_ELEMS, .caps = cuda_caps, .emit = cuda_emit};
