/* Which value was not finite, of a step that has changed nothing. */
#include <math.h>
#include <string.h>

#include "cuda_state.h"

/* The first NaN or infinity of n elements, in words. */
static bool blame(State *s, const char *what, const gradc_tensor *t, const void *data)
{
    int64_t at = gr_nonfinite(t->dtype, data, t->elems);
    if (at < 0)
        return false;
    const unsigned char *x = (const unsigned char *)data + at * gradc_dtype_bytes(t->dtype);
    double v = NAN;
    gr_convert(t->dtype, x, GRADC_F64, &v, 1);
    char where[40] = "";
    if (t->elems > 1)
        snprintf(where, sizeof where, " at element %lld", (long long)at);
    gr_cuda_say(s->g, GRADC_NONFINITE, "%.300s is %s%s: nothing was changed", what,
                isnan(v) ? "NaN" : "infinite", where);
    return true;
}

/* *found: there is one in gradient i. */
static int blame_gradient(State *s, int32_t i, bool *found)
{
    const gradc_tensor *t = &s->p->model->tensors[i];
    void *data = gr_alloc(t->bytes);
    char what[300];
    if (data == NULL)
        return GRADC_OK; /* it is not known, then */
    snprintf(what, sizeof what, "the gradient %.200s", t->name);
    CuPointer from = s->memory + (CuPointer)s->p->cell[i].offset;
    int status = CU(s, cuMemcpyDtoHAsync_v2, data, from, (size_t)t->bytes, s->stream);
    if (status == GRADC_OK)
        status = CU(s, cuStreamSynchronize, s->stream);
    gr_cuda_drain(s);
    *found = status == GRADC_OK && blame(s, what, t, data);
    gr_free(data);
    return status;
}

/* A step keeps no gradients. As it has changed nothing, `grad` gives the same ones. */
static int run_grad(State *s, const Feed *f, const Stage *stage)
{
    Feed again = *f;
    again.e = s->p->entry[GRADC_CUDA_GRAD];
    int status = gr_cuda_upload(s, &again, stage);
    return status == GRADC_OK ? gr_cuda_launch_all(s, again.e, s->stream) : status;
}

int gr_cuda_blame(State *s, const Feed *f, const Stage *stage)
{
    const gradc_model *m = s->p->model;
    if (s->p->loss >= 0 && blame(s, "the loss", &m->outputs[s->p->loss], stage->left->loss))
        return GRADC_NONFINITE;
    if (s->p->entry[GRADC_CUDA_GRAD] == NULL)
        return gr_cuda_say(s->g, GRADC_NONFINITE,
                           "a gradient is NaN or infinite: nothing was changed");
    bool found = false;
    int status = run_grad(s, f, stage);
    for (int32_t i = 0; i < m->n_tensors && status == GRADC_OK && !found; i++)
        if (m->tensors[i].role == GRADC_GRADIENT && gr_is_float(m->tensors[i].dtype))
            status = blame_gradient(s, i, &found);
    if (status != GRADC_OK || found)
        return found ? GRADC_NONFINITE : status;
    return gr_cuda_say(s->g, GRADC_NONFINITE,
                       "the norm of all gradients is infinite: nothing was changed");
}
