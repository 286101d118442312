#include "feed.h"

#include <math.h>
#include <string.h>

static int failed(const gradc_error *e)
{
    say("%s", e->text);
    return e->status == GRADC_IO || e->status == GRADC_FORMAT ? EXIT_FILE : EXIT_INPUT;
}

static int64_t row_elems(const gradc_model *m, int32_t i)
{
    const gradc_tensor *t = &m->inputs[i];
    int64_t rows = m->batch_rows * m->accumulate;
    return rows > 0 ? t->elems / rows : t->elems;
}

/* An element that the input cannot take: its row in the file, for batches are shuffled. */
static int refuse_element(const gradc_tensor *t, const gradc_array *a, int64_t at, const char *path)
{
    int64_t rows = a->rank > 0 ? a->shape[0] : 1, per_row = a->elems / rows;
    char element[40] = "", number[32];
    if (per_row > 1)
        snprintf(element, sizeof element, ", element %lld", (long long)(at % per_row + 1));
    if (dtype_is_float((DType)a->dtype))
        gradc_format(number, sizeof number, dtype_value((DType)a->dtype, a->data, at), 0);
    else
        snprintf(number, sizeof number, "%lld",
                 (long long)dtype_integer((DType)a->dtype, a->data, at));
    if (a->dtype == t->dtype)
        say("%s: row %lld%s (the first is 1): %s is outside of %lld..%lld, the range of input %s",
            path, (long long)(at / per_row + 1), element, number, (long long)t->lo,
            (long long)t->hi, t->name);
    else
        say("%s: row %lld%s (the first is 1): %s does not fit into %s, the type of input %s", path,
            (long long)(at / per_row + 1), element, number, gradc_dtype_name(t->dtype), t->name);
    return EXIT_INPUT;
}

/* The first of the elements that is outside of the input's range, which only integers have, or -1.
 */
static int64_t outside(const gradc_tensor *t, const gradc_array *a, int64_t from, int64_t to)
{
    for (int64_t i = from; i < to && t->lo != t->hi; i++) {
        int64_t x = dtype_integer((DType)a->dtype, a->data, i);
        if (x < t->lo || x >= t->hi)
            return i;
    }
    return -1;
}

/* The first number that may be another one than the integer that was written, or -1. */
static int64_t beyond_doubles(const gradc_array *a)
{
    for (int64_t i = 0; i < a->elems; i++)
        if (fabs(dtype_value((DType)a->dtype, a->data, i)) >= 0x1p53)
            return i;
    return -1;
}

/* The first number that is infinite in its new type only, or -1. */
static int64_t overflowed(const gradc_array *from, const gradc_array *to)
{
    for (int64_t i = 0; i < to->elems && dtype_is_float((DType)to->dtype); i++)
        if (isinf(dtype_value((DType)to->dtype, to->data, i)) &&
            isfinite(dtype_value((DType)from->dtype, from->data, i)))
            return i;
    return -1;
}

/* An array for input i: the elements of a row must be as many; dtypes are cast. */
static int take_array(Feed *f, int32_t i, gradc_array *a, const char *path)
{
    const gradc_tensor *t = &f->model->inputs[i];
    gradc_error e = {0};
    int64_t rows = a->rank > 0 ? a->shape[0] : 1;
    if (rows == 0) {
        say("%s: there are no rows in it", path);
        return EXIT_INPUT;
    }
    int64_t per_row = a->elems / rows;
    if (per_row != row_elems(f->model, i)) {
        say("%s: %lld numbers a row, but a row of input %s has %lld", path, (long long)per_row,
            t->name, (long long)row_elems(f->model, i));
        return EXIT_INPUT;
    }
    if (a->dtype == t->dtype) {
        f->array[i] = *a;
        memset(a, 0, sizeof *a);
    } else {
        int64_t wide = t->dtype == GRADC_I64 && gradc_is_table(path) ? beyond_doubles(a) : -1;
        if (wide >= 0) {
            say("%s: row %lld (the first is 1): a number of more than the 53 bits that those of a "
                "table have; give input %s as .npy",
                path, (long long)(wide / per_row + 1), t->name);
            return EXIT_INPUT;
        }
        int st = gradc_array_cast(a, t->dtype, &f->array[i], &e);
        if (st != GRADC_OK)
            return st == GRADC_RANGE ? refuse_element(t, a, e.position, path) : failed(&e);
        int64_t over = overflowed(a, &f->array[i]);
        if (over >= 0)
            return refuse_element(t, a, over, path);
    }
    int64_t bad = outside(t, &f->array[i], 0, f->array[i].elems);
    return bad < 0 ? EXIT_OK : refuse_element(t, &f->array[i], bad, path);
}

/* One table for all inputs: its columns in the order of the inputs. */
static int take_table(Feed *f, gradc_array *a, const char *path)
{
    int64_t total = 0, at = 0, columns = a->rank == 2 ? a->shape[1] : 1;
    for (int32_t i = 0; i < f->model->n_inputs; i++)
        total += row_elems(f->model, i);
    if (total != columns) {
        say("%s: %lld columns, but a row of all inputs has %lld", path, (long long)columns,
            (long long)total);
        return EXIT_INPUT;
    }
    for (int32_t i = 0; i < f->model->n_inputs; i++) {
        gradc_array part = {0};
        gradc_error e = {0};
        int64_t n = row_elems(f->model, i);
        if (gradc_array_columns(a, at, n, &part, &e) != GRADC_OK)
            return failed(&e);
        int status = take_array(f, i, &part, path);
        gradc_array_free(&part);
        if (status != EXIT_OK)
            return status;
        at += n;
    }
    return EXIT_OK;
}

/* The last byte is no token, the first no next one. */
static int check_text(const gradc_model *m, const gradc_array *a, const char *path)
{
    for (int i = 0; i < 2; i++) {
        const gradc_tensor *t = &m->inputs[i];
        int64_t bad = outside(t, a, i, a->elems - (i == 0));
        if (bad < 0)
            continue;
        say("%s: byte %lld (the first is 1) is %d, outside of %lld..%lld, the range of input %s",
            path, (long long)bad + 1, ((const uint8_t *)a->data)[bad], (long long)t->lo,
            (long long)t->hi, t->name);
        return EXIT_INPUT;
    }
    return EXIT_OK;
}

/* Windows need two inputs of whole numbers, [batch, context]: tokens and next tokens. */
static int take_text(Feed *f, gradc_array *a, const char *path)
{
    const gradc_model *m = f->model;
    bool fits = m->n_inputs == 2 && m->inputs[0].rank == 2 && m->inputs[0].dtype == GRADC_I32 &&
                m->inputs[1].rank == 2 && m->inputs[1].dtype == GRADC_I32 &&
                m->inputs[0].shape[1] == m->inputs[1].shape[1];
    if (!fits) {
        say("%s: a text needs a model of two inputs, tokens and next tokens, both i32[batch, n]",
            path);
        return EXIT_INPUT;
    }
    int status = check_text(m, a, path);
    if (status != EXIT_OK)
        return status;
    f->windows = true;
    f->text = *a;
    memset(a, 0, sizeof *a);
    return EXIT_OK;
}

static bool is_wide(const gradc_tensor *t)
{
    return t->dtype == GRADC_F64 || t->dtype == GRADC_I32 || t->dtype == GRADC_I64;
}

/* Of input i, or -1: of all of them. Numbers of a table have 53 bits where an input takes more than
 * the 24 that f32 has. */
static int read_array(const gradc_model *m, int32_t i, const char *path, gradc_array *a,
                      gradc_error *e)
{
    bool wide = i >= 0 && is_wide(&m->inputs[i]);
    for (int32_t k = 0; k < m->n_inputs && i < 0; k++)
        wide = wide || is_wide(&m->inputs[k]);
    const gradc_csv_options doubles = {.struct_size = sizeof doubles, .dtype = GRADC_F64};
    return wide && gradc_is_table(path) ? gradc_csv_read(path, &doubles, a, e)
                                        : gradc_array_read(path, a, e);
}

static int read_one(Feed *f, const char *spec)
{
    Values v = {.tensor = f->model->inputs, .n = f->model->n_inputs};
    const char *equals = strchr(spec, '=');
    const char *path = equals != NULL ? equals + 1 : spec;
    char name[GRADC_MAX_NAME_BYTES] = "";
    if (equals != NULL)
        snprintf(name, sizeof name, "%.*s", (int)(equals - spec), spec);
    int32_t i = values_find(&v, name);
    bool text = i < 0 && strcmp(name, "text") == 0;
    if (equals != NULL && i < 0 && !text) {
        say("--data: the model has no input `%s`", name);
        return EXIT_INPUT;
    }
    gradc_array a = {0};
    gradc_error e = {0};
    int st = text ? gradc_bytes_read(path, &a, &e) : read_array(f->model, i, path, &a, &e);
    if (st != GRADC_OK)
        return failed(&e);
    int status = text     ? take_text(f, &a, path)
                 : i >= 0 ? take_array(f, i, &a, path)
                          : take_table(f, &a, path);
    gradc_array_free(&a);
    return status;
}

int feed_read(Cli *c, const gradc_model *m, OptionId option, Feed *f)
{
    memset(f, 0, sizeof *f);
    f->model = m;
    if (m->n_inputs > 64)
        return usage_error(c, "train takes models of at most 64 inputs");
    const char *spec;
    for (int n = 0; (spec = cli_nth(c, option, n)) != NULL; n++) {
        int status = read_one(f, spec);
        if (status != EXIT_OK)
            return status;
    }
    if (f->windows) {
        f->end = f->text.elems;
        return EXIT_OK;
    }
    for (int32_t i = 0; i < m->n_inputs; i++) {
        const gradc_array *a = &f->array[i];
        if (a->data == NULL)
            return usage_error(c, "input %s has no data: --%s %s=FILE", m->inputs[i].name,
                               option == OPT_VALID ? "valid" : "data", m->inputs[i].name);
        if (a->shape[0] != f->array[0].shape[0]) {
            say("input %s has %lld rows of data, %s has %lld", m->inputs[i].name,
                (long long)a->shape[0], m->inputs[0].name, (long long)f->array[0].shape[0]);
            return EXIT_INPUT;
        }
    }
    f->end = f->array[0].shape[0];
    return EXIT_OK;
}

void feed_split(Feed *from, Feed *tail, double fraction)
{
    *tail = *from;
    int64_t n = from->end - from->begin;
    tail->begin = from->end = from->begin + n - (int64_t)((double)n * fraction);
}

static gradc_array part_of(const Feed *f, int32_t i)
{
    gradc_array a = f->array[i];
    int64_t bytes = a.bytes / (a.shape[0] > 0 ? a.shape[0] : 1);
    a.data = (char *)a.data + bytes * f->begin;
    a.elems = a.elems / (a.shape[0] > 0 ? a.shape[0] : 1) * (f->end - f->begin);
    a.bytes = bytes * (f->end - f->begin);
    a.shape[0] = f->end - f->begin;
    return a;
}

int feed_open(Feed *f, int64_t rows, uint64_t seed, bool shuffle)
{
    gradc_error e = {0};
    if (f->windows) {
        gradc_window_options o = {.struct_size = sizeof o,
                                  .rows = rows,
                                  .seed = seed,
                                  .context = f->model->inputs[0].shape[1],
                                  .begin = f->begin,
                                  .end = f->end,
                                  .in_order = !shuffle};
        return gradc_windows_open(&f->text, &o, &f->cut, &e) == GRADC_OK ? EXIT_OK : failed(&e);
    }
    static gradc_array part[2][64];
    const gradc_array *list[64];
    for (int32_t i = 0; i < f->model->n_inputs; i++) {
        part[shuffle][i] = part_of(f, i);
        list[i] = &part[shuffle][i];
    }
    gradc_batch_options o = {.struct_size = sizeof o,
                             .rows = rows,
                             .seed = seed,
                             .shuffle = shuffle,
                             .drop_last = f->model->accumulate > 1};
    int st = gradc_batches_open(list, f->model->n_inputs, &o, &f->batches, &e);
    return st == GRADC_OK ? EXIT_OK : failed(&e);
}

bool feed_next(Feed *f, Values *in)
{
    int64_t rows = 0;
    int st = f->windows ? gradc_windows_next(f->cut, in->block->data[0], in->block->data[1], &rows)
                        : gradc_batches_next(f->batches, in->block->data, &rows);
    in->block->rows = rows;
    return st == GRADC_OK && rows > 0;
}

int64_t feed_batches(const Feed *f)
{
    return f->windows ? gradc_windows_count(f->cut) : gradc_batches_count(f->batches);
}

void feed_position(const Feed *f, gradc_position *at)
{
    if (f->windows)
        gradc_windows_position(f->cut, at);
    else
        gradc_batches_position(f->batches, at);
}

int feed_seek(Feed *f, const gradc_position *at)
{
    int st = f->windows ? gradc_windows_seek(f->cut, at) : gradc_batches_seek(f->batches, at);
    if (st == GRADC_OK)
        return EXIT_OK;
    say("the checkpoint's place in the data is not in this data");
    return EXIT_INPUT;
}

void feed_close(Feed *f, bool owns_data)
{
    gradc_batches_close(f->batches);
    gradc_windows_close(f->cut);
    if (!owns_data)
        return;
    gradc_array_free(&f->text);
    for (int i = 0; i < 64; i++)
        gradc_array_free(&f->array[i]);
}
