/* Tensors of a handle whose values are on the device. */
#include <string.h>

#include "cuda_state.h"

static int check_cell(State *s, int32_t i, const void *memory, size_t bytes)
{
    const gradc_model *m = s->p->model;
    if (i < 0 || i >= m->n_tensors)
        return gr_cuda_say(s->g, GRADC_BAD_ARGUMENT, "there is no tensor %d", i);
    const gradc_tensor *t = &m->tensors[i];
    if (memory == NULL)
        return gr_cuda_say(s->g, GRADC_BAD_ARGUMENT, "the memory for %.200s is NULL", t->name);
    if ((int64_t)bytes != t->bytes)
        return gr_cuda_say(s->g, GRADC_BAD_ARGUMENT, "%.200s has %lld bytes, not %lld", t->name,
                           (long long)t->bytes, (long long)bytes);
    if (s->p->cell[i].late && !s->has_gradients)
        return gr_cuda_say(s->g, GRADC_BAD_STATE, "%.200s can be read after %s_grad only", t->name,
                           s->p->ident);
    return GRADC_OK;
}

static CuPointer place(const State *s, int32_t i)
{
    return s->memory + (CuPointer)s->p->cell[i].offset;
}

static int read_cell(State *s, int32_t i, void *to, size_t bytes)
{
    int status = check_cell(s, i, to, bytes);
    if (status == GRADC_OK && bytes > 0)
        status = CU(s, cuMemcpyDtoHAsync_v2, to, place(s, i), bytes, s->stream);
    return status == GRADC_OK ? CU(s, cuStreamSynchronize, s->stream) : status;
}

static int write_cell(State *s, int32_t i, const void *from, size_t bytes)
{
    int status = check_cell(s, i, from, bytes);
    if (status == GRADC_OK && bytes > 0)
        status = CU(s, cuMemcpyHtoDAsync_v2, place(s, i), from, bytes, s->stream);
    return status == GRADC_OK ? CU(s, cuStreamSynchronize, s->stream) : status;
}

int gr_cuda_read(void *g, int32_t tensor, void *to, size_t bytes)
{
    State *s;
    int status = gr_cuda_enter(g, &s);
    return status == GRADC_OK ? gr_cuda_leave(s, read_cell(s, tensor, to, bytes)) : status;
}

int gr_cuda_write(void *g, int32_t tensor, const void *from, size_t bytes)
{
    State *s;
    int status = gr_cuda_enter(g, &s);
    return status == GRADC_OK ? gr_cuda_leave(s, write_cell(s, tensor, from, bytes)) : status;
}

/* ---- scalars ------------------------------------------------------------------------------------
 */

/* The nearest integer within [lo, hi] towards zero; 0 for NaN. */
static int64_t saturated(double x, int64_t lo, int64_t hi)
{
    if (!(x == x))
        return 0;
    return x <= (double)lo ? lo : x >= (double)hi ? hi : (int64_t)x;
}

/* Bytes of the value in *bits; 0: it is of a type that can't be set. */
static size_t encode(int32_t dtype, double x, uint64_t *bits)
{
    float f = (float)x;
    int64_t i;
    *bits = 0;
    switch (dtype) {
    case GRADC_F32:
        memcpy(bits, &f, 4);
        return 4;
    case GRADC_F64:
        memcpy(bits, &x, 8);
        return 8;
    case GRADC_I32:
        *bits = (uint32_t)saturated(x, INT32_MIN, INT32_MAX);
        return 4;
    case GRADC_I64:
        i = saturated(x, INT64_MIN, INT64_MAX);
        memcpy(bits, &i, 8);
        return 8;
    default:
        return 0;
    }
}

/* By a fill, which takes the value when it is called: nothing has to wait. */
static int set_cell(State *s, int32_t i, double x)
{
    const gradc_model *m = s->p->model;
    if (i < 0 || i >= m->n_tensors)
        return gr_cuda_say(s->g, GRADC_BAD_ARGUMENT, "there is no tensor %d", i);
    uint64_t bits;
    size_t n = s->p->cell[i].scalar ? encode(m->tensors[i].dtype, x, &bits) : 0;
    if (n == 0)
        return gr_cuda_say(s->g, GRADC_BAD_ARGUMENT, "%.200s is not a scalar that can be set",
                           m->tensors[i].name);
    int status = CU(s, cuMemsetD32Async, place(s, i), (uint32_t)bits, 1, s->stream);
    if (status == GRADC_OK && n == 8)
        status = CU(s, cuMemsetD32Async, place(s, i) + 4, (uint32_t)(bits >> 32), 1, s->stream);
    return status;
}

int gr_cuda_set(void *g, int32_t tensor, double value)
{
    State *s;
    int status = gr_cuda_enter(g, &s);
    return status == GRADC_OK ? gr_cuda_leave(s, set_cell(s, tensor, value)) : status;
}
