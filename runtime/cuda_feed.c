/* Inputs: checked, then staged for the device. */
#include "cuda_state.h"

#include <string.h>

int gr_cuda_where(State *s, const void *p, bool *there)
{
    int type = 0;
    CuPointer at = (CuPointer)(uintptr_t)p;
    CuResult r = s->gpu->driver.cuPointerGetAttribute(&type, CU_POINTER_MEMORY_TYPE, at);
    *there = r == CU_OK && type == CU_MEMORY_OF_DEVICE;
    if (r == CU_INVALID_VALUE) /* memory that the driver does not know of is the host's */
        return GRADC_OK;
    return gr_cuda_check(s, r, "cuPointerGetAttribute");
}

static int64_t valid_elems(const gradc_cuda_input *x, int64_t rows)
{
    int64_t n = x->row_elems * rows;
    return x->row_elems == 0 || n > x->reads ? x->reads : n;
}

static bool is_ranged(const gradc_tensor *t)
{
    return t->lo != t->hi;
}

static int64_t element(const gradc_tensor *t, const void *data, int64_t i)
{
    int32_t x;
    int64_t y;
    switch (t->dtype) {
    case GRADC_I32:
        memcpy(&x, (const char *)data + 4 * i, 4);
        return x;
    case GRADC_I64:
        memcpy(&y, (const char *)data + 8 * i, 8);
        return y;
    default:
        return ((const unsigned char *)data)[i];
    }
}

static int check_range(State *s, const gradc_tensor *t, const void *data, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t v = element(t, data, i);
        if (v < t->lo || v >= t->hi)
            return gr_cuda_say(s->g, GRADC_RANGE,
                               "input %.200s: element %lld is %lld, outside of %lld..%lld", t->name,
                               (long long)i, (long long)v, (long long)t->lo, (long long)t->hi);
    }
    return GRADC_OK;
}

/* Onto the stage, to be looked at there. */
static int bring(State *s, const Feed *f, int32_t i, const Stage *stage, size_t bytes)
{
    CuPointer from = (CuPointer)(uintptr_t)gr_cuda_data(f->in, i);
    int status = CU(s, cuMemcpyDtoHAsync_v2, gr_cuda_staged(s, stage, i), from, bytes, s->stream);
    return status == GRADC_OK ? CU(s, cuStreamSynchronize, s->stream) : status;
}

static int check_one(State *s, Feed *f, int32_t i, const Stage *stage)
{
    const gradc_tensor *t = &s->p->model->inputs[i];
    const gradc_cuda_input *x = &f->e->input[i];
    const void *data = gr_cuda_data(f->in, i);
    int64_t size = gradc_dtype_bytes(t->dtype), n = valid_elems(x, f->rows);
    s->there[i] = s->brought[i] = false;
    if (x->reads == 0 || (data == NULL && f->lenient))
        return GRADC_OK;
    if (data == NULL)
        return gr_cuda_say(s->g, GRADC_BAD_ARGUMENT, "input %.200s is NULL", t->name);
    if (((uintptr_t)data & (uintptr_t)(size - 1)) != 0)
        return gr_cuda_say(s->g, GRADC_BAD_ARGUMENT, "input %.200s is not aligned to its elements",
                           t->name);
    bool there;
    int status = gr_cuda_where(s, data, &there);
    s->there[i] = there && !is_ranged(t);
    s->brought[i] = there && is_ranged(t);
    f->on_device |= s->there[i];
    if (status == GRADC_OK && s->brought[i])
        status = bring(s, f, i, stage, (size_t)(n * size));
    if (status != GRADC_OK || !is_ranged(t))
        return status;
    return check_range(s, t, there ? gr_cuda_staged(s, stage, i) : data, n);
}

static int check_rows(State *s, Feed *f)
{
    int64_t full = f->e->full;
    f->rows = f->in != NULL ? f->in->rows : 0;
    if (f->rows < 0 || f->rows > full)
        return gr_cuda_say(s->g, GRADC_BAD_ARGUMENT, "rows is %lld, but a call takes 1 to %lld",
                           (long long)f->rows, (long long)full);
    f->rows = f->rows == 0 ? full : f->rows;
    if (s->p->rows < 0 && full > 0 && f->rows != full)
        return gr_cuda_say(s->g, GRADC_BAD_ARGUMENT,
                           "rows is %lld, and this entry takes no partial batch: it needs %lld",
                           (long long)f->rows, (long long)full);
    return GRADC_OK;
}

int gr_cuda_check_inputs(State *s, Feed *f, const Stage *stage)
{
    int status = check_rows(s, f);
    for (int32_t i = 0; i < s->p->model->n_inputs && status == GRADC_OK; i++)
        status = check_one(s, f, i, stage);
    return status;
}

/* ---- onto the stage -----------------------------------------------------------------------------
 */

/* Elements that are missing: zeros, or the lowest value of a range without zero. */
static void fill_rest(const gradc_tensor *t, unsigned char *to, int64_t n)
{
    int64_t size = gradc_dtype_bytes(t->dtype), v = t->lo > 0 || t->hi <= 0 ? t->lo : 0;
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * size, &v, (size_t)size); /* machines are little-endian */
}

/* Rows that are missing are the last one that is there. */
static void repeat_row(unsigned char *to, int64_t have, int64_t row, int64_t all)
{
    for (int64_t at = have; at < all; at += row)
        memcpy(to + at, to + have - row, (size_t)(all - at < row ? all - at : row));
}

static void fill_one(State *s, const Feed *f, int32_t i, const Stage *stage)
{
    const gradc_tensor *t = &s->p->model->inputs[i];
    const gradc_cuda_input *x = &f->e->input[i];
    const void *data = gr_cuda_data(f->in, i);
    unsigned char *to = gr_cuda_staged(s, stage, i);
    int64_t size = gradc_dtype_bytes(t->dtype), n = data != NULL ? valid_elems(x, f->rows) : 0;
    if (n > 0 && !s->brought[i])
        memcpy(to, data, (size_t)(n * size));
    if (x->repeats && n > 0)
        repeat_row(to, n * size, x->row_elems * size, x->reads * size);
    else
        fill_rest(t, to + n * size, x->reads - n);
}

void gr_cuda_fill(State *s, const Feed *f, const Stage *stage)
{
    stage->left->rows = f->rows;
    stage->left->finite = 1;
    for (int32_t i = 0; i < s->p->model->n_inputs; i++)
        if (f->e->input[i].reads > 0 && !s->there[i])
            fill_one(s, f, i, stage);
}

/* ---- into the slots
 * ------------------------------------------------------------------------------- */

/* The valid rows, and after them the last one again, or zeros. */
static int copy_on_device(State *s, const Feed *f, int32_t i)
{
    const gradc_cuda_input *x = &f->e->input[i];
    int64_t size = gradc_dtype_bytes(s->p->model->inputs[i].dtype), row = x->row_elems * size;
    int64_t have = valid_elems(x, f->rows) * size, all = x->reads * size;
    CuPointer from = (CuPointer)(uintptr_t)gr_cuda_data(f->in, i);
    CuPointer to = s->memory + (CuPointer)x->slot;
    int status = CU(s, cuMemcpyDtoDAsync_v2, to, from, (size_t)have, s->stream);
    if (status == GRADC_OK && have < all && !x->repeats)
        return CU(s, cuMemsetD8Async, to + (CuPointer)have, 0, (size_t)(all - have), s->stream);
    for (int64_t at = have; at < all && status == GRADC_OK; at += row) {
        int64_t n = all - at < row ? all - at : row;
        status = CU(s, cuMemcpyDtoDAsync_v2, to + (CuPointer)at, from + (CuPointer)(have - row),
                    (size_t)n, s->stream);
    }
    return status;
}

int gr_cuda_upload(State *s, const Feed *f, const Stage *stage)
{
    int status = gr_cuda_upload_rows(s, stage, s->stream);
    for (int32_t i = 0; i < s->p->model->n_inputs && status == GRADC_OK; i++) {
        if (f->e->input[i].reads == 0)
            continue;
        status = s->there[i] ? copy_on_device(s, f, i)
                             : gr_cuda_upload_one(s, f->e, i, stage, s->stream);
    }
    return status;
}
