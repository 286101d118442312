/* Sequences of calls of the runtime with sensible and senseless arguments. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { SLOTS = 4, ROWS = 64 };

typedef struct Machine {
    const uint8_t *code;
    size_t n, at;
    gradc_array array[SLOTS];
    gradc_batches *batches;
    const gradc_array *held[2]; /* by batches */
    gradc_windows *windows;
    const gradc_array *text;
    gradc_progress *progress;
    gradc_pool *pool;
    int pools;
    int64_t rows, window_rows, context;
    gradc_error e;
} Machine;

static uint8_t byte(Machine *m)
{
    return m->at < m->n ? m->code[m->at++] : 0;
}

/* Mostly small, sometimes at the ends. */
static int64_t number(Machine *m)
{
    static const int64_t special[] = {INT64_MAX,     INT64_MIN, -1,      GRADC_MAX_DIM,
                                      INT64_MAX / 2, 1 << 30,   1000000, GRADC_MAX_DIM + 1};
    uint8_t b = byte(m);
    return b < 240 ? b % 17 : special[b & 7];
}

static void require(bool truth)
{
    if (!truth)
        abort();
}

static void check_array(const gradc_array *a)
{
    int64_t elems, bytes;
    require(gr_shape_size(a->dtype, a->rank, a->shape, &elems, &bytes) || a->data == NULL);
    gr_crc32c(0, a->data, a->bytes);
}

static bool in_use(const Machine *m, const gradc_array *a)
{
    return a == m->held[0] || a == m->held[1] || a == m->text;
}

/* A slot to overwrite, emptied; NULL if something still reads it. */
static gradc_array *target(Machine *m)
{
    gradc_array *a = &m->array[byte(m) % SLOTS];
    if (in_use(m, a))
        return NULL;
    gradc_array_free(a);
    return a;
}

static void arrays(Machine *m, uint8_t op)
{
    gradc_array *from = &m->array[byte(m) % SLOTS], *to = target(m);
    int64_t shape[GRADC_MAX_RANK], a = number(m), b = number(m);
    int32_t rank = (int32_t)(number(m) % 10), dtype = byte(m) % 9, status = GRADC_OK;
    int64_t elems, bytes;
    for (int i = 0; i < GRADC_MAX_RANK; i++)
        shape[i] = number(m);
    if (to == NULL)
        return;
    if (op == 0 && (!gr_shape_size(dtype, rank, shape, &elems, &bytes) || bytes < 1 << 16))
        status = gradc_array_make(dtype, rank, shape, to, &m->e);
    else if (op == 1)
        status = gradc_array_rows(from, a, b, to, &m->e);
    else if (op == 2)
        status = gradc_array_columns(from, a, b, to, &m->e);
    else if (op == 3)
        status = gradc_array_cast(from, dtype, to, &m->e);
    else if (op == 4 && !in_use(m, from))
        status = gradc_array_reshape(from, rank, shape, &m->e);
    require(status == GRADC_OK || m->e.text[0] != '\0');
    check_array(to);
    check_array(from);
}

static void close_batches(Machine *m)
{
    gradc_batches_close(m->batches);
    m->batches = NULL;
    m->held[0] = m->held[1] = NULL;
}

static void open_batches(Machine *m)
{
    gradc_batch_options o = {.struct_size = sizeof o - (byte(m) == 7),
                             .rows = number(m),
                             .seed = byte(m),
                             .shuffle = byte(m) & 1,
                             .drop_last = byte(m) & 1};
    const gradc_array *list[2] = {&m->array[byte(m) % SLOTS], &m->array[byte(m) % SLOTS]};
    close_batches(m);
    if (o.rows > ROWS)
        o.rows = ROWS;
    if (gradc_batches_open(list, 2, &o, &m->batches, &m->e) != GRADC_OK) {
        require(m->batches == NULL && m->e.text[0] != '\0');
        return;
    }
    memcpy(m->held, list, sizeof list);
    m->rows = o.rows;
}

static void next_batch(Machine *m)
{
    void *buffers[2] = {NULL, NULL};
    int64_t rows = -1;
    if (m->batches == NULL)
        return;
    for (int i = 0; i < 2; i++) {
        int64_t bytes = m->held[i]->bytes / m->held[i]->shape[0] * m->rows;
        if (bytes < 1 << 20)
            buffers[i] = malloc((size_t)bytes + 1); /* the sanitizer watches its end */
    }
    require(gradc_batches_next(m->batches, buffers, &rows) == GRADC_OK);
    require(rows >= 0 && rows <= m->rows);
    free(buffers[0]);
    free(buffers[1]);
}

static void open_windows(Machine *m)
{
    gradc_window_options o = {.struct_size = sizeof o,
                              .rows = number(m),
                              .context = number(m),
                              .begin = number(m),
                              .end = number(m),
                              .seed = byte(m),
                              .in_order = byte(m) & 1};
    gradc_windows_close(m->windows);
    m->windows = NULL;
    m->text = &m->array[byte(m) % SLOTS];
    if (o.rows > ROWS)
        o.rows = ROWS;
    if (gradc_windows_open(m->text, &o, &m->windows, &m->e) != GRADC_OK)
        m->text = NULL;
    m->window_rows = o.rows;
    m->context = o.context;
}

static void next_windows(Machine *m)
{
    int64_t rows = -1;
    if (m->windows == NULL || m->context > 1 << 12)
        return;
    size_t bytes = (size_t)(m->window_rows * m->context) * sizeof(int32_t);
    int32_t *tokens = malloc(bytes), *next = malloc(bytes);
    int status = gradc_windows_next(m->windows, tokens, next, &rows);
    require(status == GRADC_OK || status == GRADC_RANGE);
    require(rows >= 0 && rows <= m->window_rows);
    free(tokens);
    free(next);
}

static void seek(Machine *m)
{
    gradc_position at = {.seed = byte(m), .epoch = number(m), .row = number(m)}, now;
    if (m->batches != NULL && gradc_batches_seek(m->batches, &at) == GRADC_OK) {
        gradc_batches_position(m->batches, &now);
        require(now.seed == at.seed && now.epoch == at.epoch && now.row == at.row);
    }
    if (m->windows != NULL)
        gradc_windows_seek(m->windows, &at);
}

static void count_up(void *arg, int64_t i, int32_t lane)
{
    (void)lane;
    ((uint8_t *)arg)[i]++;
}

static void pool(Machine *m)
{
    uint8_t seen[256] = {0};
    int64_t count = number(m);
    if (m->pool == NULL && m->pools++ < 1)
        gradc_pool_open((int32_t)number(m) % 4, byte(m) & 3, &m->pool, &m->e);
    if (count > 256)
        count = 256;
    gradc_pool_parallel_for(m->pool, count, count_up, seen);
    for (int64_t i = 0; i < 256; i++)
        require(seen[i] == (i < count));
}

static void progress(Machine *m)
{
    static FILE *sink;
    char text[16] = {0};
    if (sink == NULL)
        sink = fopen("/dev/null", "w");
    gradc_progress_options o = {.struct_size = sizeof o,
                                .out = sink,
                                .mode = byte(m) % 6,
                                .every = (int32_t)number(m),
                                .steps = number(m)};
    if (m->progress == NULL)
        gradc_progress_open(&o, &m->progress, &m->e);
    gradc_progress_values v = {.epoch = number(m), .step = number(m), .samples = number(m)};
    memcpy(&v.loss, text, sizeof v.loss);
    for (int i = 0; i < 8; i++)
        ((uint8_t *)&v.loss)[i] = byte(m);
    v.metric = -v.loss;
    gradc_progress_step(m->progress, &v);
    for (int i = 0; i < 15; i++)
        text[i] = (char)byte(m);
    gradc_progress_say(m->progress, text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    Machine m = {.code = data, .n = n};
    for (int calls = 0; m.at < m.n && calls < 64; calls++) {
        uint8_t op = byte(&m) % 16;
        if (op < 6)
            arrays(&m, op);
        else if (op < 8)
            open_batches(&m);
        else if (op < 10)
            next_batch(&m);
        else if (op == 10)
            open_windows(&m);
        else if (op < 13)
            next_windows(&m);
        else if (op == 13)
            seek(&m);
        else if (op == 14)
            progress(&m);
        else if (data[0] % 64 == 0)
            pool(&m);
    }
    close_batches(&m);
    gradc_windows_close(m.windows);
    gradc_progress_close(m.progress);
    gradc_pool_close(m.pool);
    for (int i = 0; i < SLOTS; i++)
        gradc_array_free(&m.array[i]);
    return 0;
}
