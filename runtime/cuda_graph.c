/* Launches of an entry, and the graphs that they are captured in. */
#include "cuda_state.h"

/* ---- launches -------------------------------------------------------------------------------- */

static int launch(State *s, const gradc_cuda_op *op, const int64_t *index, CuStream stream)
{
    const gradc_cuda_kernel *k = &s->p->kernel[op->kernel];
    for (int32_t i = 0; i < k->args; i++) {
        const gradc_cuda_operand *x = &s->p->operand[op->first + i];
        int64_t at = x->offset;
        for (int d = 0; x->moves >= 0 && d < GRADC_CUDA_DEPTH; d++)
            at += s->p->steps[x->moves].step[d] * index[d];
        s->value[i] = s->memory + (CuPointer)at;
    }
    CuResult r =
        s->gpu->driver.cuLaunchKernel(s->function[op->kernel], (unsigned)k->blocks, 1, 1,
                                      (unsigned)k->threads, 1, 1, 0, stream, s->argument, NULL);
    if (r == CU_OK && s->gpu->plain)
        r = s->gpu->driver.cuStreamSynchronize(stream);
    if (r == CU_OK)
        return s->watched != NULL ? gr_cuda_mark(s, op, stream) : GRADC_OK;
    char what[160];
    snprintf(what, sizeof what, "cuLaunchKernel of %.120s", k->name);
    return gr_cuda_check(s, r, what);
}

static int launch_list(State *s, const gradc_cuda_op *op, int64_t n, int depth, int64_t *index,
                       CuStream stream)
{
    int status = GRADC_OK;
    for (int64_t i = 0; i < n && status == GRADC_OK; i++) {
        if (op[i].kernel >= 0) {
            status = launch(s, &op[i], index, stream);
            continue;
        }
        for (int64_t t = 0; t < op[i].count && status == GRADC_OK; t++) {
            index[depth] = t;
            status = launch_list(s, &op[i + 1], op[i].body, depth + 1, index, stream);
        }
        index[depth] = 0;
        i += op[i].body;
    }
    return status;
}

int gr_cuda_launch_all(State *s, const gradc_cuda_entry *e, CuStream stream)
{
    int64_t index[GRADC_CUDA_DEPTH + 1] = {0};
    return launch_list(s, e->op, e->ops, 0, index, stream);
}

/* ---- what goes to and fro ----------------------------------------------------------------------
 */

int gr_cuda_upload_one(State *s, const gradc_cuda_entry *e, int32_t i, const Stage *stage,
                       CuStream stream)
{
    const gradc_cuda_input *x = &e->input[i];
    int64_t bytes = x->reads * gradc_dtype_bytes(s->p->model->inputs[i].dtype);
    if (bytes == 0)
        return GRADC_OK;
    return CU(s, cuMemcpyHtoDAsync_v2, s->memory + (CuPointer)x->slot, gr_cuda_staged(s, stage, i),
              (size_t)bytes, stream);
}

int gr_cuda_upload_rows(State *s, const Stage *stage, CuStream stream)
{
    if (s->p->rows < 0)
        return GRADC_OK;
    return CU(s, cuMemcpyHtoDAsync_v2, s->memory + (CuPointer)s->p->rows, &stage->left->rows,
              sizeof stage->left->rows, stream);
}

int gr_cuda_fetch_left(State *s, const gradc_cuda_entry *e, const Stage *stage, CuStream stream)
{
    int status = GRADC_OK;
    if (s->p->loss >= 0 && e->output[s->p->loss].given) {
        const gradc_cuda_output *x = &e->output[s->p->loss];
        status = CU(s, cuMemcpyDtoHAsync_v2, stage->left->loss, s->memory + (CuPointer)x->offset,
                    (size_t)x->bytes, stream);
    }
    if (status == GRADC_OK && e->finite >= 0)
        status = CU(s, cuMemcpyDtoHAsync_v2, &stage->left->finite, s->memory + (CuPointer)e->finite,
                    1, stream);
    return status;
}

/* ---- graphs
 * -------------------------------------------------------------------------------------- */

static int launch_staged(State *s, const gradc_cuda_entry *e, const Stage *stage)
{
    int status = GRADC_OK;
    for (int32_t i = 0; i < s->p->model->n_inputs && status == GRADC_OK; i++)
        status = gr_cuda_upload_one(s, e, i, stage, s->own);
    if (status == GRADC_OK)
        status = gr_cuda_upload_rows(s, stage, s->own);
    if (status == GRADC_OK)
        status = gr_cuda_launch_all(s, e, s->own);
    return status == GRADC_OK ? gr_cuda_fetch_left(s, e, stage, s->own) : status;
}

/* stage: NULL for kernels alone. A capture that has begun is ended, whatever happens in it. */
static int capture(State *s, const gradc_cuda_entry *e, const Stage *stage, CuGraphExec *to)
{
    const Driver *d = &s->gpu->driver;
    CuGraph graph = NULL;
    int status = CU(s, cuStreamBeginCapture_v2, s->own, CU_CAPTURE_THREAD);
    if (status != GRADC_OK)
        return status;
    status = stage != NULL ? launch_staged(s, e, stage) : gr_cuda_launch_all(s, e, s->own);
    CuResult ended = d->cuStreamEndCapture(s->own, &graph);
    if (status == GRADC_OK)
        status = gr_cuda_given(s, ended, &graph, sizeof graph, "cuStreamEndCapture");
    if (status == GRADC_OK)
        status = CU_NEW(s, cuGraphInstantiateWithFlags, to, graph, 0);
    if (graph != NULL)
        d->cuGraphDestroy(graph);
    return status;
}

int gr_cuda_capture(State *s)
{
    int status = GRADC_OK;
    for (int e = GRADC_CUDA_EVAL; e < GRADC_CUDA_ENTRIES && status == GRADC_OK; e++)
        for (int k = 0; k < GR_STAGES && status == GRADC_OK && s->p->entry[e] != NULL; k++)
            status = capture(s, s->p->entry[e], &s->stage[k], &s->graph[e][k]);
    return status;
}

int gr_cuda_capture_bare(State *s, int32_t entry, CuGraphExec *graph)
{
    return capture(s, s->p->entry[entry], NULL, graph);
}

void gr_cuda_drop_graphs(State *s)
{
    const Driver *d = &s->gpu->driver;
    for (int e = 0; e < GRADC_CUDA_ENTRIES; e++) {
        for (int k = 0; k < GR_STAGES; k++)
            if (s->graph[e][k] != NULL)
                d->cuGraphExecDestroy(s->graph[e][k]);
        if (s->bare[e] != NULL)
            d->cuGraphExecDestroy(s->bare[e]);
    }
}
