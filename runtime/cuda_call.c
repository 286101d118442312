/* Entries of an object of the target cuda: a call, and waiting for calls. */
#include <stdatomic.h>
#include <string.h>

#include "cuda_state.h"

/* ---- the handle ---------------------------------------------------------------------------- */

int gr_cuda_enter(void *g, State **s)
{
    gradc_cuda_handle *h = g;
    int32_t free_now = 0;
    if (!atomic_compare_exchange_strong((_Atomic int32_t *)&h->busy, &free_now, 1))
        return GRADC_BAD_STATE;
    *s = h->state;
    if (*s == NULL) { /* another thread has closed it meanwhile */
        atomic_store((_Atomic int32_t *)&h->busy, 0);
        return GRADC_BAD_STATE;
    }
    if ((*s)->lost) { /* the text is that of the first failure */
        int status = (*s)->lost_status;
        atomic_store((_Atomic int32_t *)&h->busy, 0);
        return status;
    }
    CuResult r = (*s)->gpu->driver.cuCtxPushCurrent_v2((*s)->context);
    int status = gr_cuda_check(*s, r, "cuCtxPushCurrent_v2");
    if (status != GRADC_OK)
        atomic_store((_Atomic int32_t *)&h->busy, 0);
    else
        h->text[0] = 0;
    return status;
}

void gr_cuda_drain(const State *s)
{
    if (s->lost && s->stream != NULL)
        s->gpu->driver.cuStreamSynchronize(s->stream);
}

int gr_cuda_leave(State *s, int status)
{
    CuContext old;
    gr_cuda_drain(s);
    int popped = CU(s, cuCtxPopCurrent_v2, &old);
    atomic_store((_Atomic int32_t *)&s->g->busy, 0);
    return popped == GRADC_OK ? status : popped; /* whose sentence is there */
}

/* ---- what calls have left ---------------------------------------------------------------------
 */

/* requires: the call is done */
static void look_at(State *s, Stage *stage)
{
    if (!stage->used)
        return;
    stage->used = false;
    if (stage->left->finite == 0) {
        s->first_refused = s->refused++ == 0 ? s->calls : s->first_refused;
    }
    s->calls++;
    if (stage->entry == GRADC_CUDA_EVAL)
        return;
    memcpy(s->loss, stage->left->loss, sizeof s->loss);
    s->has_loss = s->p->loss >= 0;
}

int gr_cuda_settle(State *s)
{
    int status = CU(s, cuStreamSynchronize, s->stream);
    for (int k = 0; k < GR_STAGES && status == GRADC_OK; k++)
        look_at(s, &s->stage[(s->next + k) % GR_STAGES]); /* the older one first */
    return status;
}

/* A stage that no call uses any more. */
static int take_stage(State *s, Stage **stage)
{
    *stage = &s->stage[s->next];
    if (!(*stage)->used)
        return GRADC_OK;
    int status = CU(s, cuEventSynchronize, (*stage)->done);
    if (status == GRADC_OK)
        look_at(s, *stage);
    return status;
}

int gr_cuda_tell(State *s)
{
    int64_t refused = s->refused, first = s->first_refused, calls = s->calls;
    s->refused = s->calls = 0;
    if (refused == 0)
        return GRADC_OK;
    return gr_cuda_say(
        s->g, GRADC_NONFINITE,
        "%lld of the last %lld calls changed nothing, the first of them number %lld: "
        "a gradient or the loss was NaN or infinite",
        (long long)refused, (long long)calls, (long long)first + 1);
}

/* ---- checks -----------------------------------------------------------------------------------
 */

static int check_outputs(State *s, const gradc_cuda_entry *e, const gradc_block *out, bool *any)
{
    *any = false;
    for (int32_t i = 0; i < s->p->model->n_outputs; i++) {
        if (gr_cuda_data(out, i) == NULL)
            continue;
        *any = true;
        if (!e->output[i].given)
            return gr_cuda_say(s->g, GRADC_BAD_ARGUMENT,
                               "output %.200s is not computed by this call",
                               s->p->model->outputs[i].name);
    }
    return GRADC_OK;
}

/* Inputs that only loss and metrics need may be missing where those are not asked for. */
static bool is_lenient(const State *s, const gradc_cuda_entry *e, const gradc_block *out)
{
    for (int32_t i = 0; i < s->p->model->n_outputs && e->lenient; i++)
        if (s->p->model->outputs[i].role != GRADC_OUTPUT && gr_cuda_data(out, i) != NULL)
            return false;
    return e->lenient != 0;
}

/* Nothing is computed that could be asked for, and inputs are missing. */
static bool is_idle(const State *s, const Feed *f)
{
    const gradc_model *m = s->p->model;
    bool lacks = false;
    for (int32_t i = 0; i < m->n_outputs; i++)
        if (m->outputs[i].role == GRADC_OUTPUT)
            return false;
    for (int32_t i = 0; i < m->n_inputs; i++)
        lacks |= f->e->input[i].reads > 0 && gr_cuda_data(f->in, i) == NULL;
    return f->lenient && lacks;
}

/* ---- a call -------------------------------------------------------------------------------------
 */

static int launch_parts(State *s, int32_t entry, const Feed *f, const Stage *stage)
{
    int status = gr_cuda_upload(s, f, stage);
    if (status == GRADC_OK && s->gpu->lap != NULL)
        status = gr_cuda_launch_watched(s, f->e, s->stream);
    else if (status == GRADC_OK && s->gpu->plain)
        status = gr_cuda_launch_all(s, f->e, s->stream);
    else if (status == GRADC_OK) {
        if (s->bare[entry] == NULL)
            status = gr_cuda_capture_bare(s, entry, &s->bare[entry]);
        if (status == GRADC_OK)
            status = CU(s, cuGraphLaunch, s->bare[entry], s->stream);
    }
    return status == GRADC_OK ? gr_cuda_fetch_left(s, f->e, stage, s->stream) : status;
}

static int launch(State *s, int32_t entry, const Feed *f, Stage *stage)
{
    bool whole = !f->on_device && !s->gpu->plain && s->gpu->lap == NULL;
    CuGraphExec graph = s->graph[entry][stage - s->stage];
    int status = whole ? CU(s, cuGraphLaunch, graph, s->stream) : launch_parts(s, entry, f, stage);
    if (status == GRADC_OK)
        status = CU(s, cuEventRecord, stage->done, s->stream);
    stage->used = status == GRADC_OK;
    stage->entry = entry;
    return status;
}

static int fetch_outputs(State *s, const gradc_cuda_entry *e, const gradc_block *out)
{
    int status = GRADC_OK;
    for (int32_t i = 0; i < s->p->model->n_outputs && status == GRADC_OK; i++) {
        void *to = gr_cuda_data(out, i);
        if (to == NULL)
            continue;
        CuPointer from = s->memory + (CuPointer)e->output[i].offset;
        size_t n = (size_t)e->output[i].bytes;
        bool there;
        status = gr_cuda_where(s, to, &there);
        if (status != GRADC_OK)
            return status;
        status = there ? CU(s, cuMemcpyDtoDAsync_v2, (CuPointer)(uintptr_t)to, from, n, s->stream)
                       : CU(s, cuMemcpyDtoHAsync_v2, to, from, n, s->stream);
    }
    return status;
}

/* Waits for a call whose results are wanted: it and those before are looked at. */
static int finish(State *s, const Feed *f, Stage *stage)
{
    int status = CU(s, cuStreamSynchronize, s->stream);
    if (status != GRADC_OK)
        return status;
    Stage *other = &s->stage[(stage - s->stage + 1) % GR_STAGES];
    look_at(s, other);
    int64_t before = s->refused;
    look_at(s, stage);
    if (s->refused == before)
        return gr_cuda_tell(s);
    if (s->refused > 1) /* others, too: there is no one step to explain */
        return gr_cuda_tell(s);
    s->refused = s->calls = 0;
    return gr_cuda_blame(s, f, stage);
}

static int run(State *s, int32_t entry, Feed *f, Stage *stage, const gradc_block *out, bool wants)
{
    gr_cuda_fill(s, f, stage);
    s->has_gradients = false;
    int status = launch(s, entry, f, stage);
    if (status != GRADC_OK)
        return status;
    s->next = (s->next + 1) % GR_STAGES;
    s->has_gradients = entry == GRADC_CUDA_GRAD;
    if (!wants)
        return GRADC_OK;
    status = fetch_outputs(s, f->e, out);
    return status == GRADC_OK ? finish(s, f, stage) : status;
}

static int checked_call(State *s, int32_t entry, const gradc_block *in, const gradc_block *out)
{
    bool wants;
    Stage *stage;
    Feed f = {.e = s->p->entry[entry], .in = in};
    f.lenient = is_lenient(s, f.e, out);
    if (is_idle(s, &f))
        return GRADC_OK;
    int status = take_stage(s, &stage);
    if (status == GRADC_OK)
        status = gr_cuda_check_inputs(s, &f, stage);
    if (status == GRADC_OK)
        status = check_outputs(s, f.e, out, &wants);
    return status == GRADC_OK ? run(s, entry, &f, stage, out, wants) : status;
}

int gr_cuda_call(void *g, int32_t entry, const gradc_block *in, gradc_block *out)
{
    State *s;
    int status = gr_cuda_enter(g, &s);
    return status == GRADC_OK ? gr_cuda_leave(s, checked_call(s, entry, in, out)) : status;
}

/* ---- waiting
 * ------------------------------------------------------------------------------------- */

static int settled_loss(State *s, void *loss)
{
    int status = gr_cuda_settle(s);
    if (status != GRADC_OK)
        return status;
    if (loss != NULL && !s->has_loss)
        return gr_cuda_say(s->g, GRADC_BAD_STATE, "there is no loss: no step has been taken");
    if (loss != NULL)
        memcpy(loss, s->loss, (size_t)s->p->model->outputs[s->p->loss].bytes);
    return gr_cuda_tell(s);
}

int gr_cuda_wait(void *g, void *loss)
{
    State *s;
    int status = gr_cuda_enter(g, &s);
    return status == GRADC_OK ? gr_cuda_leave(s, settled_loss(s, loss)) : status;
}
