/* Batches of rows of several arrays, and windows of a token text. */
#include "internal.h"

#include <string.h>

struct gradc_batches {
    const gradc_array *arrays[GRADC_MAX_ARRAYS];
    int64_t row_bytes[GRADC_MAX_ARRAYS];
    int32_t n;
    int64_t total; /* rows of the data */
    gradc_batch_options o;
    int64_t epoch, row;
};

static int add_array(gradc_batches *b, const gradc_array *a, gradc_error *e)
{
    int64_t elems, bytes;
    if (a == NULL || a->rank < 1 || !gr_shape_size(a->dtype, a->rank, a->shape, &elems, &bytes) ||
        bytes != a->bytes || (bytes > 0 && a->data == NULL))
        return gr_fail(e, GRADC_BAD_ARGUMENT, "array %d is not one, or a scalar", (int)b->n);
    if (b->n == 0)
        b->total = a->shape[0];
    if (a->shape[0] != b->total)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "array %d has %lld rows, array 0 has %lld", (int)b->n,
                       (long long)a->shape[0], (long long)b->total);
    if (b->total == 0)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "the arrays have no rows");
    b->row_bytes[b->n] = bytes / b->total;
    b->arrays[b->n++] = a;
    return GRADC_OK;
}

static int fill(gradc_batches *b, const gradc_array *const *arrays, int32_t n,
                const gradc_batch_options *o, gradc_error *e)
{
    b->o = *o;
    if (o->rows < 1 || o->rows > GRADC_MAX_DIM)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "batches of %lld rows", (long long)o->rows);
    for (int32_t i = 0; i < n; i++) {
        int status = add_array(b, arrays[i], e);
        if (status != GRADC_OK)
            return status;
    }
    if (o->drop_last != 0 && b->total < o->rows)
        return gr_fail(e, GRADC_BAD_ARGUMENT,
                       "%lld rows give no full batch of %lld, and partial ones are dropped",
                       (long long)b->total, (long long)o->rows);
    return GRADC_OK;
}

int gradc_batches_open(const gradc_array *const *arrays, int32_t n, const gradc_batch_options *o,
                       gradc_batches **out, gradc_error *e)
{
    if (out == NULL || o == NULL || arrays == NULL || n < 1 || n > GRADC_MAX_ARRAYS)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "gradc_batches_open: needs 1 to %d arrays",
                       GRADC_MAX_ARRAYS);
    *out = NULL;
    int status = gr_check_size(o->struct_size, sizeof *o, "gradc_batch_options", e);
    if (status != GRADC_OK)
        return status;
    gradc_batches *b = gr_new(1, sizeof *b);
    if (b == NULL)
        return gr_fail_memory(e, "batches", (int64_t)sizeof *b);
    status = fill(b, arrays, n, o, e);
    if (status != GRADC_OK) {
        gr_free(b);
        return status;
    }
    *out = b;
    return gr_ok(e);
}

void gradc_batches_close(gradc_batches *b)
{
    gr_free(b);
}

int64_t gradc_batches_count(const gradc_batches *b)
{
    int64_t full = b->total / b->o.rows;
    return full + (b->o.drop_last == 0 && b->total % b->o.rows != 0);
}

/* Rows of the next batch; 0 at the end of an epoch. */
static int64_t rows_ahead(const gradc_batches *b)
{
    int64_t left = b->total - b->row;
    if (left >= b->o.rows)
        return b->o.rows;
    return b->o.drop_last != 0 ? 0 : left;
}

/* Row `row` of the data to place i of every buffer. */
static void copy_row(const gradc_batches *b, int64_t row, int64_t i, void *const *buffers)
{
    for (int32_t k = 0; k < b->n; k++) {
        int64_t bytes = b->row_bytes[k];
        if (buffers[k] != NULL && bytes > 0)
            memcpy((char *)buffers[k] + i * bytes, (const char *)b->arrays[k]->data + row * bytes,
                   (size_t)bytes);
    }
}

/* A position that was asked for may be the last one there is. */
static int64_t next_epoch(int64_t epoch)
{
    return epoch < INT64_MAX ? epoch + 1 : 0;
}

int gradc_batches_next(gradc_batches *b, void *const *buffers, int64_t *rows)
{
    if (b == NULL || buffers == NULL || rows == NULL)
        return GRADC_BAD_ARGUMENT;
    *rows = rows_ahead(b);
    if (*rows == 0) {
        b->row = 0;
        b->epoch = next_epoch(b->epoch);
        return GRADC_OK;
    }
    for (int64_t i = 0; i < b->o.rows; i++) {
        int64_t row = b->row + i % *rows; /* a partial batch is filled with its own rows */
        if (b->o.shuffle != 0)
            row = gradc_shuffled(b->o.seed, b->epoch, b->total, row);
        copy_row(b, row, i, buffers);
    }
    b->row += *rows;
    return GRADC_OK;
}

void gradc_batches_position(const gradc_batches *b, gradc_position *at)
{
    *at = (gradc_position){.seed = b->o.seed, .epoch = b->epoch, .row = b->row};
}

int gradc_batches_seek(gradc_batches *b, const gradc_position *at)
{
    if (b == NULL || at == NULL || at->epoch < 0 || at->row < 0 || at->row > b->total)
        return GRADC_BAD_ARGUMENT;
    b->o.seed = at->seed;
    b->epoch = at->epoch;
    b->row = at->row;
    return GRADC_OK;
}

/* ---- windows ---- */

struct gradc_windows {
    const gradc_array *text;
    gradc_window_options o;
    int64_t places;       /* a window may begin at o.begin .. o.begin + places - 1 */
    int64_t epoch, batch; /* batches given out in this epoch */
};

static int check_windows(gradc_windows *w, gradc_error *e)
{
    const gradc_array *a = w->text;
    gradc_window_options *o = &w->o;
    int64_t last;
    if (a == NULL || a->rank != 1 || a->data == NULL ||
        (a->dtype != GRADC_U8 && a->dtype != GRADC_I32 && a->dtype != GRADC_I64))
        return gr_fail(e, GRADC_BAD_ARGUMENT, "a token text is u8[n], i32[n] or i64[n], n > 0");
    if (o->begin == 0 && o->end == 0)
        o->end = a->shape[0];
    if (o->begin < 0 || o->end > a->shape[0] || o->begin >= o->end)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "tokens %lld to %lld, of %lld", (long long)o->begin,
                       (long long)o->end, (long long)a->shape[0]);
    if (o->rows < 1 || o->rows > GRADC_MAX_DIM || o->context < 1 ||
        !size_add(o->begin, o->context, &last) || last >= o->end)
        return gr_fail(e, GRADC_BAD_ARGUMENT,
                       "windows of %lld tokens and the next one do not fit into %lld tokens",
                       (long long)o->context, (long long)(o->end - o->begin));
    w->places = o->end - o->begin - o->context;
    return GRADC_OK;
}

int gradc_windows_open(const gradc_array *text, const gradc_window_options *o, gradc_windows **out,
                       gradc_error *e)
{
    if (out == NULL || o == NULL)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "gradc_windows_open: an argument is missing");
    *out = NULL;
    int status = gr_check_size(o->struct_size, sizeof *o, "gradc_window_options", e);
    if (status != GRADC_OK)
        return status;
    gradc_windows *w = gr_new(1, sizeof *w);
    if (w == NULL)
        return gr_fail_memory(e, "windows", (int64_t)sizeof *w);
    w->text = text;
    w->o = *o;
    status = check_windows(w, e);
    if (status != GRADC_OK) {
        gr_free(w);
        return status;
    }
    *out = w;
    return gr_ok(e);
}

void gradc_windows_close(gradc_windows *w)
{
    gr_free(w);
}

/* Windows of one pass in order: places 0, context, 2 context… */
static int64_t windows_in_order(const gradc_windows *w)
{
    return (w->places - 1) / w->o.context + 1;
}

int64_t gradc_windows_count(const gradc_windows *w)
{
    if (w->o.in_order != 0)
        return (windows_in_order(w) - 1) / w->o.rows + 1;
    int64_t batch, n = 1;
    if (size_mul(w->o.rows, w->o.context, &batch))
        n = (w->o.end - w->o.begin) / batch;
    return n > 0 ? n : 1;
}

/* Tokens p .. p+context-1 as i32; false if one does not fit. */
static bool copy_tokens(const gradc_windows *w, int64_t p, int32_t *to)
{
    int64_t unit = gradc_dtype_bytes(w->text->dtype);
    const char *from = (const char *)w->text->data + p * unit;
    return gr_convert(w->text->dtype, from, GRADC_I32, to, w->o.context) == w->o.context;
}

/* Rows of the next batch in order, and 0 at the end. */
static int64_t windows_ahead(const gradc_windows *w)
{
    int64_t done, left = windows_in_order(w);
    if (!size_mul(w->batch, w->o.rows, &done) || done >= left)
        return 0;
    return left - done < w->o.rows ? left - done : w->o.rows;
}

/* The rows of the next batch have numbers. */
static bool can_number(const gradc_windows *w)
{
    int64_t done;
    return size_mul(w->batch, w->o.rows, &done) && done <= INT64_MAX - w->o.rows;
}

int gradc_windows_next(gradc_windows *w, int32_t *tokens, int32_t *next, int64_t *rows)
{
    if (w == NULL || tokens == NULL || rows == NULL)
        return GRADC_BAD_ARGUMENT;
    const gradc_window_options *o = &w->o;
    int64_t valid = o->in_order != 0 ? windows_ahead(w) : o->rows;
    *rows = 0;
    if (valid == 0 || !can_number(w)) {
        w->batch = 0;
        w->epoch = next_epoch(w->epoch);
    }
    if (valid == 0)
        return GRADC_OK;
    for (int64_t r = 0; r < o->rows; r++) {
        int64_t k = w->batch * o->rows + r % valid;
        int64_t place = o->in_order != 0
                            ? k * o->context
                            : gradc_draw(gr_mix(o->seed, (uint64_t)w->epoch, 0), k, w->places);
        int64_t p = o->begin + place;
        if (!copy_tokens(w, p, tokens + r * o->context) ||
            (next != NULL && !copy_tokens(w, p + 1, next + r * o->context)))
            return GRADC_RANGE;
    }
    *rows = valid;
    w->batch++;
    return GRADC_OK;
}

void gradc_windows_position(const gradc_windows *w, gradc_position *at)
{
    *at = (gradc_position){.seed = w->o.seed, .epoch = w->epoch, .row = w->batch};
}

int gradc_windows_seek(gradc_windows *w, const gradc_position *at)
{
    int64_t furthest;
    if (w == NULL || at == NULL || at->epoch < 0 || at->row < 0 ||
        !size_mul(at->row, w->o.rows, &furthest) || !size_mul(furthest, w->o.context, &furthest) ||
        (w->o.in_order != 0 && at->row > gradc_windows_count(w)))
        return GRADC_BAD_ARGUMENT;
    w->o.seed = at->seed;
    w->epoch = at->epoch;
    w->batch = at->row;
    return GRADC_OK;
}
