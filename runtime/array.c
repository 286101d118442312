/* Arrays in memory: make, cut, cast, reshape. */
#include "internal.h"

#include <string.h>

static const struct {
    const char *name;
    int64_t bytes;
} dtypes[] = {
    [GRADC_F32] = {"f32", 4},   [GRADC_F64] = {"f64", 8},   [GRADC_F16] = {"f16", 2},
    [GRADC_BF16] = {"bf16", 2}, [GRADC_I32] = {"i32", 4},   [GRADC_I64] = {"i64", 8},
    [GRADC_U8] = {"u8", 1},     [GRADC_BOOL] = {"bool", 1},
};

static bool known_dtype(int32_t dtype)
{
    return dtype >= 0 && dtype < (int32_t)(sizeof dtypes / sizeof dtypes[0]);
}

const char *gradc_dtype_name(int32_t dtype)
{
    return known_dtype(dtype) ? dtypes[dtype].name : NULL;
}

int64_t gradc_dtype_bytes(int32_t dtype)
{
    return known_dtype(dtype) ? dtypes[dtype].bytes : 0;
}

bool gr_shape_size(int32_t dtype, int32_t rank, const int64_t *shape, int64_t *elems,
                   int64_t *bytes)
{
    int64_t n = 1, size;
    if (!known_dtype(dtype) || rank < 0 || rank > GRADC_MAX_RANK)
        return false;
    for (int32_t i = 0; i < rank; i++)
        if (shape[i] < 0 || shape[i] > GRADC_MAX_DIM || !size_mul(n, shape[i], &n))
            return false;
    if (!size_mul(n, dtypes[dtype].bytes, &size) || size > GRADC_MAX_TENSOR_BYTES)
        return false;
    *elems = n;
    *bytes = size;
    return true;
}

char *gr_shape_text(char *out, size_t size, int32_t dtype, int32_t rank, const int64_t *shape)
{
    const char *name = gradc_dtype_name(dtype);
    size_t n = 0;
    int k = snprintf(out, size, "%s[", name != NULL ? name : "?");
    for (int32_t i = 0; k > 0 && i < rank && i < GRADC_MAX_RANK; i++) {
        n += (size_t)k;
        if (n >= size)
            return out;
        k = snprintf(out + n, size - n, "%s%lld", i > 0 ? "," : "", (long long)shape[i]);
    }
    n += (size_t)k;
    if (n < size)
        snprintf(out + n, size - n, "]");
    return out;
}

int gr_array_new(int32_t dtype, int32_t rank, const int64_t *shape, gradc_array *out,
                 gradc_error *e)
{
    enum { LINE = 64 };
    gradc_array a = {.dtype = dtype, .rank = rank};
    *out = (gradc_array){0};
    if (rank < 0 || rank > GRADC_MAX_RANK || (rank > 0 && shape == NULL))
        return gr_fail(e, GRADC_BAD_ARGUMENT, "an array of rank %d, or without a shape", (int)rank);
    if (!gr_shape_size(dtype, rank, shape, &a.elems, &a.bytes)) {
        char text[GR_SHAPE_TEXT];
        return gr_fail(e, GRADC_BAD_ARGUMENT, "an array %s is not possible",
                       gr_shape_text(text, sizeof text, dtype, rank, shape));
    }
    if (rank > 0)
        memcpy(a.shape, shape, (size_t)rank * sizeof *shape);
    if (a.bytes > 0) {
        a.data = gr_aligned(a.bytes, LINE);
        if (a.data == NULL)
            return gr_fail_memory(e, "an array", a.bytes);
    }
    *out = a;
    return gr_ok(e);
}

int gradc_array_make(int32_t dtype, int32_t rank, const int64_t *shape, gradc_array *out,
                     gradc_error *e)
{
    if (out == NULL)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "gradc_array_make: no array to fill");
    int status = gr_array_new(dtype, rank, shape, out, e);
    if (status == GRADC_OK && out->bytes > 0)
        memset(out->data, 0, (size_t)out->bytes);
    return status;
}

void gradc_array_free(gradc_array *a)
{
    if (a == NULL)
        return;
    gr_free(a->data);
    *a = (gradc_array){0};
}

/* Whether `a` is what the functions of this library make. */
static bool sound(const gradc_array *a)
{
    int64_t elems, bytes;
    return a != NULL && gr_shape_size(a->dtype, a->rank, a->shape, &elems, &bytes) &&
           elems == a->elems && bytes == a->bytes && (bytes == 0 || a->data != NULL);
}

static int check_arguments(const gradc_array *a, gradc_array *out, const char *what, gradc_error *e)
{
    if (out == NULL || out == a)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "%s: needs another array to fill", what);
    if (sound(a))
        return GRADC_OK;
    *out = (gradc_array){0};
    return gr_fail(e, GRADC_BAD_ARGUMENT, "%s: the array's size and shape disagree", what);
}

int gradc_array_rows(const gradc_array *a, int64_t first, int64_t count, gradc_array *out,
                     gradc_error *e)
{
    int status = check_arguments(a, out, "gradc_array_rows", e);
    if (status != GRADC_OK)
        return status;
    *out = (gradc_array){0};
    if (a->rank < 1)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "gradc_array_rows: a scalar has no rows");
    if (!range_inside(first, count, a->shape[0]))
        return gr_fail(e, GRADC_BAD_ARGUMENT, "gradc_array_rows: %lld rows from %lld, of %lld",
                       (long long)count, (long long)first, (long long)a->shape[0]);
    int64_t shape[GRADC_MAX_RANK];
    memcpy(shape, a->shape, sizeof shape);
    shape[0] = count;
    status = gr_array_new(a->dtype, a->rank, shape, out, e);
    if (status == GRADC_OK && out->bytes > 0) {
        int64_t row_bytes = a->bytes / a->shape[0];
        memcpy(out->data, (const char *)a->data + first * row_bytes, (size_t)out->bytes);
    }
    return status;
}

int gradc_array_columns(const gradc_array *a, int64_t first, int64_t count, gradc_array *out,
                        gradc_error *e)
{
    int status = check_arguments(a, out, "gradc_array_columns", e);
    if (status != GRADC_OK)
        return status;
    *out = (gradc_array){0};
    bool single = count < 0;
    if (single)
        count = 1;
    if (a->rank != 2 || !range_inside(first, count, a->shape[1])) {
        char text[GR_SHAPE_TEXT];
        return gr_fail(e, GRADC_BAD_ARGUMENT, "gradc_array_columns: %lld columns from %lld, of %s",
                       (long long)count, (long long)first,
                       gr_shape_text(text, sizeof text, a->dtype, a->rank, a->shape));
    }
    int64_t shape[2] = {a->shape[0], count};
    status = gr_array_new(a->dtype, single ? 1 : 2, shape, out, e);
    if (status != GRADC_OK || out->bytes == 0)
        return status;
    int64_t unit = gradc_dtype_bytes(a->dtype);
    int64_t to_bytes = count * unit, from_bytes = a->shape[1] * unit;
    const char *from = (const char *)a->data + first * unit;
    char *to = out->data;
    for (int64_t i = 0; i < a->shape[0]; i++)
        memcpy(to + i * to_bytes, from + i * from_bytes, (size_t)to_bytes);
    return status;
}

int gradc_array_cast(const gradc_array *a, int32_t dtype, gradc_array *out, gradc_error *e)
{
    int status = check_arguments(a, out, "gradc_array_cast", e);
    if (status != GRADC_OK)
        return status;
    status = gr_array_new(dtype, a->rank, a->shape, out, e);
    if (status != GRADC_OK)
        return status;
    int64_t done = gr_convert(a->dtype, a->data, dtype, out->data, a->elems);
    if (done == a->elems)
        return status;
    gradc_array_free(out);
    return gr_fail_at(e, GRADC_RANGE, done, "element %lld does not fit into %s", (long long)done,
                      gradc_dtype_name(dtype));
}

int gradc_array_reshape(gradc_array *a, int32_t rank, const int64_t *shape, gradc_error *e)
{
    if (!sound(a) || rank < 0 || rank > GRADC_MAX_RANK || (rank > 0 && shape == NULL))
        return gr_fail(e, GRADC_BAD_ARGUMENT, "gradc_array_reshape: no such array or rank");
    int64_t wanted[GRADC_MAX_RANK] = {0}, elems, bytes;
    int32_t open = -1;
    for (int32_t i = 0; i < rank; i++) {
        wanted[i] = shape[i];
        if (shape[i] == -1 && open < 0) {
            open = i;
            wanted[i] = 1;
        }
    }
    bool possible = gr_shape_size(a->dtype, rank, wanted, &elems, &bytes);
    if (possible && open >= 0 && elems > 0) {
        wanted[open] = a->elems / elems;
        possible = gr_shape_size(a->dtype, rank, wanted, &elems, &bytes);
    }
    if (!possible || elems != a->elems) {
        char text[GR_SHAPE_TEXT];
        return gr_fail(e, GRADC_BAD_ARGUMENT, "%lld elements do not fill %s", (long long)a->elems,
                       gr_shape_text(text, sizeof text, a->dtype, rank, shape));
    }
    a->rank = rank;
    memcpy(a->shape, wanted, sizeof wanted);
    return gr_ok(e);
}
