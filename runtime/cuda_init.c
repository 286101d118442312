/* A handle of an object of the target cuda: made, and closed. */
#include <stdatomic.h>
#include <string.h>

#include "cuda_state.h"

enum { STAGE_ALIGN = 64, DEVICE_ALIGN = 256 };

/* ---- closing ----------------------------------------------------------------------------------
 */

static void release_memory(State *s)
{
    const Driver *d = &s->gpu->driver;
    for (int k = 0; k < GR_STAGES; k++)
        if (s->stage[k].done != NULL)
            d->cuEventDestroy_v2(s->stage[k].done);
    gr_cuda_drop_marks(s);
    if (s->own != NULL)
        d->cuStreamDestroy_v2(s->own);
    if (s->memory != 0)
        d->cuMemFree_v2(s->memory);
    if (s->pinned != NULL)
        d->cuMemFreeHost(s->pinned);
}

/* Where that fails once, it is tried again: else the device's memory stays taken as long as
 * somebody else holds the context. */
static bool can_enter(const State *s)
{
    const Driver *d = &s->gpu->driver;
    return s->context != NULL && (d->cuCtxPushCurrent_v2(s->context) == CU_OK ||
                                  d->cuCtxPushCurrent_v2(s->context) == CU_OK);
}

/* Whatever there is of it. Failures of the driver have been told of, or there is nobody to tell. */
static void release(State *s)
{
    CuContext old;
    if (can_enter(s)) {
        gr_cuda_drain(s);
        gr_cuda_drop_graphs(s);
        release_memory(s);
        gr_cuda_unload(s);
        s->gpu->driver.cuCtxPopCurrent_v2(&old);
    }
    if (s->context != NULL)
        s->gpu->driver.cuDevicePrimaryCtxRelease_v2(s->gpu->device);
    gr_free(s->mark);
    gr_free(s->module);
    gr_free(s->function);
    gr_free(s->value);
    gr_free(s->argument);
    gr_free(s->at);
    gr_free(s->there);
    gr_free(s->brought);
    gr_free(s);
}

static int settle_all(State *s)
{
    CuContext old;
    int status = CU(s, cuCtxPushCurrent_v2, s->context);
    if (status != GRADC_OK)
        return status;
    status = gr_cuda_settle(s);
    int popped = CU(s, cuCtxPopCurrent_v2, &old);
    if (status == GRADC_OK)
        status = popped;
    return status == GRADC_OK ? gr_cuda_tell(s) : status;
}

int gr_cuda_close(void *g)
{
    gradc_cuda_handle *h = g;
    int32_t free_now = 0;
    if (!atomic_compare_exchange_strong((_Atomic int32_t *)&h->busy, &free_now, 1))
        return GRADC_BAD_STATE;
    State *s = h->state;
    if (s == NULL) { /* another thread was faster */
        atomic_store((_Atomic int32_t *)&h->busy, 0);
        return GRADC_BAD_STATE;
    }
    int status = s->lost ? GRADC_OK : settle_all(s);
    if (status == GRADC_OK && !s->lost)
        gr_cuda_say(h, GRADC_OK, "the handle of %s has been closed", s->p->ident);
    h->state = NULL;
    release(s);
    atomic_store((_Atomic int32_t *)&h->busy, 0);
    return status;
}

/* ---- memory -------------------------------------------------------------------------------------
 */

/* Says how much is missing, and what a plan may have. */
static int refuse_memory(State *s, int64_t free_bytes, int64_t total, int64_t fits)
{
    const gradc_cuda_device *d = &s->gpu->about;
    int64_t need = s->p->device_bytes, missing = need > free_bytes ? need - free_bytes : 0;
    char plan[120] = ", and no plan fits";
    if (fits > 0)
        snprintf(plan, sizeof plan,
                 "; a plan of at most %lld bytes fits: `gradc build --budget %lld`",
                 (long long)fits, (long long)fits);
    return gr_cuda_say(s->g, GRADC_MEMORY,
                       "%s needs %lld bytes on device %d (%s), where %lld of %lld are free: %lld "
                       "are missing%s",
                       s->p->ident, (long long)need, d->device, d->name, (long long)free_bytes,
                       (long long)total, (long long)missing, plan);
}

static int allocate_device(State *s)
{
    int64_t need = s->p->device_bytes, behind = need - s->p->arena_bytes;
    size_t free_bytes = 0, total = 0;
    int status = CU(s, cuMemGetInfo_v2, &free_bytes, &total);
    if (status != GRADC_OK)
        return status;
    CuResult r = s->gpu->driver.cuMemAlloc_v2(&s->memory, (size_t)need);
    if (r == CU_OK && s->memory % DEVICE_ALIGN != 0)
        return gr_cuda_check(s, CU_MISALIGNED, "cuMemAlloc_v2");
    if (r != CU_OUT_OF_MEMORY)
        return gr_cuda_given(s, r, &s->memory, sizeof s->memory, "cuMemAlloc_v2");
    return refuse_memory(s, (int64_t)free_bytes, (int64_t)total, (int64_t)free_bytes - behind);
}

/* Room for each input on a stage, behind what a call leaves there. */
static int allocate_stages(State *s)
{
    const gradc_model *m = s->p->model;
    int64_t bytes = (int64_t)sizeof(Left);
    s->at = gr_new(m->n_inputs + 1, sizeof *s->at);
    s->there = gr_new(m->n_inputs + 1, sizeof *s->there);
    s->brought = gr_new(m->n_inputs + 1, sizeof *s->brought);
    if (s->at == NULL || s->there == NULL || s->brought == NULL)
        return gr_cuda_say(s->g, GRADC_MEMORY, "no memory for a table of inputs");
    for (int32_t i = 0; i < m->n_inputs; i++) {
        s->at[i] = bytes - (int64_t)sizeof(Left);
        bytes += (m->inputs[i].bytes + STAGE_ALIGN - 1) / STAGE_ALIGN * STAGE_ALIGN;
    }
    int status =
        CU_NEW(s, cuMemHostAlloc, &s->pinned, (size_t)(GR_STAGES * bytes), CU_HOST_PORTABLE);
    if (status != GRADC_OK)
        return status;
    memset(s->pinned, 0, (size_t)(GR_STAGES * bytes));
    for (int k = 0; k < GR_STAGES && status == GRADC_OK; k++) {
        s->stage[k].left = (Left *)(void *)((char *)s->pinned + k * bytes);
        status = CU_NEW(s, cuEventCreate, &s->stage[k].done, CU_EVENT_NO_TIMING);
    }
    return status;
}

/* ---- making
 * --------------------------------------------------------------------------------------- */

static int put_seed(State *s, uint64_t seed)
{
    if (s->p->seed < 0)
        return GRADC_OK;
    CuPointer at = s->memory + (CuPointer)s->p->seed;
    int status = CU(s, cuMemsetD32Async, at, (uint32_t)seed, 1, s->stream);
    return status == GRADC_OK
               ? CU(s, cuMemsetD32Async, at + 4, (uint32_t)(seed >> 32), 1, s->stream)
               : status;
}

/* Zeros, literal tensors, the seed; then parameters are made. */
static int begin_values(State *s, uint64_t seed)
{
    const gradc_cuda_program *p = s->p;
    int status = CU(s, cuMemsetD8Async, s->memory, 0, (size_t)p->pinned_bytes, s->stream);
    if (status == GRADC_OK && p->constant_bytes > 0)
        status = CU(s, cuMemcpyHtoDAsync_v2, s->memory + (CuPointer)p->constants, p->constant,
                    (size_t)p->constant_bytes, s->stream);
    if (status == GRADC_OK)
        status = put_seed(s, seed);
    if (status == GRADC_OK && p->entry[GRADC_CUDA_INIT] != NULL)
        status = gr_cuda_launch_all(s, p->entry[GRADC_CUDA_INIT], s->stream);
    return status == GRADC_OK ? CU(s, cuStreamSynchronize, s->stream) : status;
}

static int refuse_tables(State *s)
{
    return gr_cuda_say(s->g, GRADC_BAD_ABI, "%s has tables of version %d, and libgradc %s knows %d",
                       s->p->ident, s->p->tables, GRADC_VERSION, GRADC_CUDA_TABLES);
}

static int make_in_context(State *s, uint64_t seed)
{
    int status = gr_cuda_load(s);
    if (status == GRADC_OK)
        status = allocate_device(s);
    if (status == GRADC_OK)
        status = allocate_stages(s);
    if (status == GRADC_OK)
        status = CU_NEW(s, cuStreamCreate, &s->own, CU_STREAM_NON_BLOCKING);
    s->stream = s->gpu->stream != NULL ? s->gpu->stream : s->own;
    if (status == GRADC_OK)
        status = begin_values(s, seed);
    if (status == GRADC_OK && !s->gpu->plain)
        status = gr_cuda_capture(s);
    return status;
}

static int make(State *s, uint64_t seed)
{
    CuContext old;
    int status = CU_NEW(s, cuDevicePrimaryCtxRetain, &s->context, s->gpu->device);
    if (status == GRADC_OK)
        status = CU(s, cuCtxPushCurrent_v2, s->context);
    if (status != GRADC_OK)
        return status;
    status = make_in_context(s, seed);
    int popped = CU(s, cuCtxPopCurrent_v2, &old);
    return popped == GRADC_OK ? status : popped;
}

int gr_cuda_init(const gradc_cuda *c, const gradc_cuda_program *p, void *block,
                 const gradc_options *o)
{
    gradc_cuda_handle *h = block;
    h->busy = 0;
    h->cuda = c;
    h->state = NULL;
    h->text[0] = 0;
    State *s = gr_new(1, sizeof *s);
    if (s == NULL)
        return gr_cuda_say(h, GRADC_MEMORY, "no memory for a handle");
    s->gpu = (const Gpu *)(const void *)c;
    s->p = p;
    s->g = h;
    int status = p->tables == GRADC_CUDA_TABLES ? make(s, o->seed) : refuse_tables(s);
    if (status != GRADC_OK) {
        release(s);
        return status;
    }
    h->state = s;
    h->magic = p->magic;
    return GRADC_OK;
}
