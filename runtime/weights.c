/* A model's weights by name, and what loading them shares with checkpoints. */
#include "model.h"

#include <stdarg.h>
#include <string.h>

/* Everything that does not fit, in one sentence: kinds of trouble with some names each. */
typedef struct Report {
    char text[800];
    size_t n;
    int64_t found; /* of the current kind */
    bool any;
} Report;

static void report_put(Report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void report_put(Report *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int k = vsnprintf(r->text + r->n, sizeof r->text - r->n, format, args);
    va_end(args);
    if (k > 0)
        r->n += (size_t)k;
    if (r->n >= sizeof r->text)
        r->n = sizeof r->text - 1;
}

/* Makes place for the next name; false when this kind has had enough of them. */
static bool report_next(Report *r, const char *kind)
{
    enum { NAMES = 5 };
    if (r->found++ == 0)
        report_put(r, "%s%s ", r->any ? "; " : "", kind);
    else if (r->found <= NAMES)
        report_put(r, ", ");
    r->any = true;
    return r->found <= NAMES;
}

static void report_end(Report *r)
{
    enum { NAMES = 5 };
    if (r->found > NAMES)
        report_put(r, " and %lld more", (long long)(r->found - NAMES));
    r->found = 0;
}

static bool same_shape(const gradc_named *a, const gradc_named *b)
{
    return a->rank == b->rank &&
           (a->rank == 0 || memcmp(a->shape, b->shape, (size_t)a->rank * sizeof a->shape[0]) == 0);
}

static bool fits(const gradc_named *file, const gradc_named *model, uint32_t flags)
{
    bool castable =
        (flags & GRADC_ALLOW_CAST) != 0 && gr_is_float(file->dtype) && gr_is_float(model->dtype);
    return same_shape(file, model) && (file->dtype == model->dtype || castable);
}

static void report_missing(Report *r, const Selection *s, const gradc_tensors *t, uint32_t flags)
{
    for (int64_t k = 0; k < s->n && (flags & GRADC_ALLOW_MISSING) == 0; k++)
        if (gradc_tensors_find(t, s->list[k].name) == NULL && report_next(r, "the file lacks"))
            report_put(r, "'%.100s'", s->list[k].name);
    report_end(r);
}

static void report_different(Report *r, const Selection *s, const gradc_tensors *t, uint32_t flags)
{
    char in_file[GR_SHAPE_TEXT], in_model[GR_SHAPE_TEXT];
    for (int64_t k = 0; k < s->n; k++) {
        const gradc_named *x = gradc_tensors_find(t, s->list[k].name), *y = &s->list[k];
        if (x != NULL && !fits(x, y, flags) && report_next(r, "different are"))
            report_put(r, "'%.100s' (%s in the file, %s in the model)", x->name,
                       gr_shape_text(in_file, sizeof in_file, x->dtype, x->rank, x->shape),
                       gr_shape_text(in_model, sizeof in_model, y->dtype, y->rank, y->shape));
    }
    report_end(r);
}

static int report_extra(Report *r, const Selection *s, const gradc_tensors *t, gradc_error *e)
{
    bool *used = gr_new(t->n + 1, sizeof *used);
    if (used == NULL)
        return gr_fail_memory(e, "a list of tensors", t->n);
    for (int64_t k = 0; k < s->n; k++) {
        const gradc_named *x = gradc_tensors_find(t, s->list[k].name);
        if (x != NULL)
            used[x - t->list] = true;
    }
    for (int64_t i = 0; i < t->n; i++)
        if (!used[i] && report_next(r, "the model lacks"))
            report_put(r, "'%.100s'", t->list[i].name);
    report_end(r);
    gr_free(used);
    return GRADC_OK;
}

static int put_all(const Selection *s, void *g, const gradc_tensors *t, void *buffer,
                   gradc_error *e)
{
    for (int64_t k = 0; k < s->n; k++) {
        const gradc_named *x = gradc_tensors_find(t, s->list[k].name), *y = &s->list[k];
        if (x == NULL)
            continue;
        const void *data = x->data;
        if (x->dtype != y->dtype) {
            gr_convert(x->dtype, x->data, y->dtype, buffer, x->elems);
            data = buffer;
        }
        int status = s->m->write(g, s->index[k], data != NULL ? data : buffer, (size_t)y->bytes);
        if (status != GRADC_OK) {
            const char *why = s->m->error(g);
            return gr_fail(e, status, "cannot put '%.200s' into the model: %.500s", y->name,
                           why != NULL ? why : gradc_strerror(status));
        }
    }
    return gr_ok(e);
}

int gr_unseal(const Selection *s, void *g, const char *path, const gradc_tensors *t, uint32_t flags,
              gradc_error *e)
{
    enum { LINE = 64 };
    Report r = {.n = 0};
    report_missing(&r, s, t, flags);
    report_different(&r, s, t, flags);
    if ((flags & GRADC_ALLOW_EXTRA) == 0) {
        int status = report_extra(&r, s, t, e);
        if (status != GRADC_OK)
            return status;
    }
    if (r.any)
        return gr_fail(e, GRADC_MISMATCH, "%.150s does not fit model '%.50s': %s", path, s->m->name,
                       r.text);
    void *buffer = gr_aligned(s->most_bytes + 1, LINE); /* before the first write: all or none */
    if (buffer == NULL)
        return gr_fail_memory(e, "a copy of one tensor", s->most_bytes);
    int status = put_all(s, g, t, buffer, e);
    gr_free(buffer);
    return status;
}

/* Counters are no weights: a fine-tuning run begins at step 0. */
static bool is_weight(const gradc_tensor *x)
{
    return x->role == GRADC_PARAM || (x->role == GRADC_STATE && gr_is_float(x->dtype));
}

int gradc_weights_load(const gradc_model *m, void *g, const char *path, uint32_t flags,
                       gradc_error *e)
{
    Selection s = {0};
    gradc_tensors *t = NULL;
    int status = gr_model_check(m, g, e);
    if (status == GRADC_OK)
        status = gradc_tensors_read(path, &t, e);
    if (status == GRADC_OK)
        status = gr_select(&s, m, is_weight, e);
    if (status == GRADC_OK) {
        if (gr_is_kind(t, "checkpoint"))
            flags |= GRADC_ALLOW_EXTRA;
        status = gr_unseal(&s, g, path, t, flags, e);
    }
    gr_select_free(&s);
    gradc_tensors_free(t);
    return status;
}

int gradc_weights_save(const gradc_model *m, const void *g, const char *path, gradc_error *e)
{
    Selection s = {0};
    Sealing how = {.path = path, .kind = "weights", .flags = GRADC_ALLOW_NONFINITE};
    int status = gr_model_check(m, g, e);
    if (status == GRADC_OK)
        status = gr_select(&s, m, is_weight, e);
    if (status == GRADC_OK)
        status = gr_seal(&s, g, &how, e);
    gr_select_free(&s);
    return status;
}
