/* gradc run: compile in memory, evaluate once, print loss, outputs and gradients. */
#include "values.h"

#include <math.h>
#include <string.h>

enum { PRINTED = 8 };

static int fill_inputs(Cli *c, Values *in)
{
    const char *s;
    for (int i = 0; (s = cli_nth(c, OPT_IN, i)) != NULL; i++) {
        const char *equals = strchr(s, '=');
        if (equals == NULL || equals == s)
            return usage_error(c, "--in wants NAME=FILE.npy or NAME=1.5,2, not `%s`", s);
        char *name = arena_strndup(&c->cx->perm, s, (size_t)(equals - s));
        int status = inputs_fill(in, name, equals + 1);
        if (status != EXIT_OK)
            return status;
    }
    return EXIT_OK;
}

static void add_number(Text *t, const gradc_tensor *tensor, const void *data, int64_t i, bool json)
{
    if (json && !isfinite(dtype_value((DType)tensor->dtype, data, i)))
        text_add(t, "null");
    else
        add_element(t, (DType)tensor->dtype, data, i);
}

static double norm_of(const gradc_tensor *t, const void *data)
{
    double sum = 0;
    for (int64_t i = 0; i < t->elems; i++) {
        double x = dtype_value((DType)t->dtype, data, i);
        sum += x * x;
    }
    return sqrt(sum);
}

static void print_text(Text *t, const char *name, const gradc_tensor *tensor, const void *data)
{
    text_add(t, "%-24s", name);
    if (tensor->rank > 0 || tensor->elems != 1)
        text_add(t, " [");
    else
        text_add(t, " ");
    for (int64_t i = 0; i < tensor->elems && i < PRINTED; i++) {
        if (i > 0)
            text_add(t, ", ");
        add_number(t, tensor, data, i, false);
    }
    if (tensor->elems > PRINTED)
        text_add(t, ", ...");
    if (tensor->rank > 0 || tensor->elems != 1) {
        text_add(t, "]  shape [");
        for (int i = 0; i < tensor->rank; i++)
            text_add(t, "%s%lld", i > 0 ? "," : "", (long long)tensor->shape[i]);
        text_add(t, "], norm ");
        text_float(t, (float)norm_of(tensor, data));
    }
}

static void print_json(Text *t, const char *name, const gradc_tensor *tensor, const void *data)
{
    text_add(t, "\"");
    text_json(t, name);
    text_add(t, "\": ");
    if (tensor->rank == 0) {
        add_number(t, tensor, data, 0, true);
        return;
    }
    text_add(t, "{\"shape\": [");
    for (int i = 0; i < tensor->rank; i++)
        text_add(t, "%s%lld", i > 0 ? ", " : "", (long long)tensor->shape[i]);
    text_add(t, "], \"data\": [");
    for (int64_t i = 0; i < tensor->elems; i++) {
        if (i > 0)
            text_add(t, ", ");
        add_number(t, tensor, data, i, true);
    }
    text_add(t, "]}");
}

typedef struct Gradients {
    int32_t n;
    const gradc_tensor **tensor;
    void **data;
    bool *unused; /* the loss does not use it: zeros, which the object does not keep */
} Gradients;

static int32_t gradient_of(const gradc_model *m, const char *name)
{
    for (int32_t i = 0; i < m->n_tensors; i++)
        if (m->tensors[i].role == GRADC_GRADIENT && strcmp(m->tensors[i].name, name) == 0)
            return i;
    return -1;
}

static bool is_frozen(const Session *s, const char *name)
{
    const Pinned *pin = model_pinned(s->out.model);
    int32_t slot = pinned_find(pin, name);
    return slot >= 0 && pin->slot.at[slot].frozen;
}

static bool is_param(const gradc_model *m, const char *name)
{
    for (int32_t i = 0; i < m->n_tensors; i++)
        if (m->tensors[i].role == GRADC_PARAM && strcmp(m->tensors[i].name, name) == 0)
            return true;
    return false;
}

static void add_gradient(Arena *a, const Session *s, Gradients *g, const gradc_tensor *t, int32_t i)
{
    void *data = arena_alloc(a, (size_t)t->bytes + 1);
    if (i >= 0 && s->model->read(s->handle, i, data, (size_t)t->bytes) != GRADC_OK)
        return;
    g->tensor[g->n] = t;
    g->data[g->n] = data;
    g->unused[g->n++] = i < 0;
}

/* Of every parameter that is trained, then of the inputs. */
static Gradients read_gradients(Arena *a, const Session *s)
{
    const gradc_model *m = s->model;
    Gradients g = {.tensor = arena_array(a, (size_t)m->n_tensors, sizeof *g.tensor),
                   .data = arena_array(a, (size_t)m->n_tensors, sizeof *g.data),
                   .unused = NEW_ARRAY(a, bool, m->n_tensors)};
    for (int32_t i = 0; i < m->n_tensors && m->grad != NULL; i++) {
        const gradc_tensor *t = &m->tensors[i];
        if (t->role == GRADC_PARAM && !is_frozen(s, t->name))
            add_gradient(a, s, &g, t, gradient_of(m, t->name));
    }
    for (int32_t i = 0; i < m->n_tensors; i++)
        if (m->tensors[i].role == GRADC_GRADIENT && !is_param(m, m->tensors[i].name))
            add_gradient(a, s, &g, &m->tensors[i], i);
    return g;
}

static void print_results(const Cli *c, const Session *s, const Values *out, const Gradients *g)
{
    Text t;
    text_init(&t, &c->cx->scratch);
    bool json = c->cx->json;
    (void)s;
    if (json)
        text_add(&t, "{");
    for (int32_t i = 0; i < out->n; i++) {
        if (json && i > 0)
            text_add(&t, ", ");
        (json ? print_json : print_text)(&t, out->tensor[i].name, &out->tensor[i],
                                         out->block->data[i]);
        if (!json)
            text_char(&t, '\n');
    }
    if (json)
        text_add(&t, "%s\"gradients\": {", out->n > 0 ? ", " : "");
    for (int32_t i = 0; i < g->n; i++) {
        if (json && i > 0)
            text_add(&t, ", ");
        if (json) {
            print_json(&t, g->tensor[i]->name, g->tensor[i], g->data[i]);
            continue;
        }
        print_text(&t, arena_printf(&c->cx->scratch, "d %s", g->tensor[i]->name), g->tensor[i],
                   g->data[i]);
        text_add(&t, g->unused[i] ? "  (the loss does not use it)\n" : "\n");
    }
    if (json)
        text_add(&t, "}}\n");
    fputs(t.at, stdout);
}

static gradc_named named_of(const gradc_tensor *t, const void *data)
{
    gradc_named n = {.name = t->name,
                     .dtype = t->dtype,
                     .rank = t->rank,
                     .elems = t->elems,
                     .bytes = t->bytes,
                     .data = data};
    memcpy(n.shape, t->shape, sizeof n.shape);
    return n;
}

static int save_named(Arena *a, const char *path, const gradc_tensor *const *t, void *const *data,
                      int32_t n)
{
    gradc_named *list = NEW_ARRAY(a, gradc_named, n);
    for (int32_t i = 0; i < n; i++)
        list[i] = named_of(t[i], data[i]);
    gradc_error e = {0};
    if (gradc_tensors_write(path, list, n, NULL, 0, &e) == GRADC_OK)
        return EXIT_OK;
    say("%s", e.text);
    return EXIT_FILE;
}

static int save_files(Cli *c, Session *s, const Values *out, const Gradients *g)
{
    const char *path = cli_value(c, OPT_SAVE_OUT, NULL);
    int status = EXIT_OK;
    if (path != NULL) {
        const gradc_tensor **t = arena_array(&s->arena, (size_t)out->n, sizeof *t);
        for (int32_t i = 0; i < out->n; i++)
            t[i] = &out->tensor[i];
        status = save_named(&s->arena, path, t, out->block->data, out->n);
    }
    path = cli_value(c, OPT_GRADS_OUT, NULL);
    if (path != NULL && status == EXIT_OK)
        status = save_named(&s->arena, path, g->tensor, g->data, g->n);
    path = cli_value(c, OPT_WEIGHTS_OUT, NULL);
    gradc_error e = {0};
    if (path != NULL && status == EXIT_OK &&
        gradc_weights_save(s->model, s->handle, path, &e) != GRADC_OK) {
        say("%s", e.text);
        status = EXIT_FILE;
    }
    return status;
}

static int evaluate(Cli *c, Session *s, Values *in, Values *out, Gradients *g)
{
    const gradc_model *m = s->model;
    if (!cli_has(c, OPT_STEP)) {
        int (*entry)(void *, const gradc_block *, gradc_block *) =
            m->grad != NULL ? m->grad : m->eval;
        int st = entry(s->handle, in->block, out->block);
        if (st != GRADC_OK)
            return session_failed(s, m->grad != NULL ? "grad" : "eval", st);
        *g = read_gradients(&s->arena, s);
        return EXIT_OK;
    }
    if (m->step == NULL)
        return usage_error(c, "--step: the model has no `train` section");
    if (m->grad != NULL) { /* a step has no gradients left */
        int st = m->grad(s->handle, in->block, out->block);
        if (st != GRADC_OK)
            return session_failed(s, "grad", st);
        *g = read_gradients(&s->arena, s);
    }
    int st = m->step(s->handle, in->block, out->block);
    return st == GRADC_OK ? EXIT_OK : session_failed(s, "step", st);
}

int command_run(Cli *c)
{
    Session s;
    int status = session_open(c, &s, true);
    int64_t seed, rows;
    if (status == EXIT_OK)
        status = cli_integer(c, OPT_SEED, 0, 0, INT64_MAX, &seed);
    if (status == EXIT_OK)
        status = cli_integer(c, OPT_ROWS, 0, 1, INT64_MAX, &rows);
    if (status == EXIT_OK && rows > 0 && s.model->batch_rows == 0)
        status = usage_error(c, "--rows is of a batch, and the model has no argument `batch` that "
                                "leads its inputs");
    if (status == EXIT_OK) {
        Values in = inputs_make(&s.arena, s.model, (uint64_t)seed, 1);
        Values out = results_make(&s.arena, s.model);
        Gradients g = {0};
        in.block->rows = rows;
        status = fill_inputs(c, &in);
        if (status == EXIT_OK)
            status = evaluate(c, &s, &in, &out, &g);
        if (status == EXIT_OK) {
            print_results(c, &s, &out, &g);
            status = save_files(c, &s, &out, &g);
        }
    }
    session_close(&s);
    return status;
}
