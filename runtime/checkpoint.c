/* Training checkpoints: sealed files with a place in the run. */
#include "model.h"

#include <string.h>

static bool is_state(const gradc_tensor *x)
{
    return x->role == GRADC_PARAM || x->role == GRADC_STATE || x->role == GRADC_SCALAR ||
           x->role == GRADC_OPTIMIZER;
}

static int check_info(const gradc_checkpoint *info, gradc_error *e)
{
    if (info == NULL)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "no gradc_checkpoint given");
    return gr_check_size(info->struct_size, sizeof *info, "gradc_checkpoint", e);
}

/* ---- saving ---- */

int gradc_checkpoint_save(const gradc_model *m, const void *g, const char *path,
                          const gradc_checkpoint *info, uint32_t flags, gradc_error *e)
{
    char step[24], seed[24], data_seed[24], epoch[24], row[24];
    const gradc_pair pairs[] = {
        {"gradc.step", step},        {"gradc.seed", seed},    {"gradc.data.seed", data_seed},
        {"gradc.data.epoch", epoch}, {"gradc.data.row", row},
    };
    Selection s = {0};
    Sealing how = {.path = path,
                   .kind = "checkpoint",
                   .pairs = pairs,
                   .n_pairs = (int64_t)(sizeof pairs / sizeof pairs[0]),
                   .flags = flags,
                   .keep_previous = true};
    int status = gr_model_check(m, g, e);
    if (status == GRADC_OK)
        status = check_info(info, e);
    if (status == GRADC_OK && path == NULL)
        status = gr_fail(e, GRADC_BAD_ARGUMENT, "no path given");
    if (status != GRADC_OK)
        return status;
    snprintf(step, sizeof step, "%lld", (long long)info->step);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)info->seed);
    snprintf(data_seed, sizeof data_seed, "%llu", (unsigned long long)info->position.seed);
    snprintf(epoch, sizeof epoch, "%lld", (long long)info->position.epoch);
    snprintf(row, sizeof row, "%lld", (long long)info->position.row);
    status = gr_select(&s, m, is_state, e);
    if (status == GRADC_OK) {
        gr_remove_stale(path);
        status = gr_seal(&s, g, &how, e);
    }
    gr_select_free(&s);
    return status;
}

/* ---- loading ---- */

static bool copy_value(const gradc_tensors *t, const char *key, char *out, size_t size)
{
    const char *s = gradc_tensors_value(t, key);
    if (s == NULL)
        return false;
    snprintf(out, size, "%s", s);
    return true;
}

static int read_info(const gradc_tensors *t, const char *path, gradc_checkpoint *info,
                     gradc_error *e)
{
    int64_t format;
    gradc_checkpoint c = {.struct_size = info->struct_size};
    if (!gr_is_kind(t, "checkpoint"))
        return gr_fail(e, GRADC_FORMAT, "%s is a safetensors file, but no checkpoint of gradc",
                       path);
    if (!gr_value_int(t, GR_FORMAT, &format) || format != GR_FORMAT_VERSION)
        return gr_fail(e, GRADC_FORMAT, "%s: not of format %d, which this library reads", path,
                       GR_FORMAT_VERSION);
    c.format = (int32_t)format;
    if (!gr_value_int(t, "gradc.step", &c.step) || !gr_value_word(t, "gradc.seed", &c.seed) ||
        !gr_value_word(t, "gradc.data.seed", &c.position.seed) ||
        !gr_value_int(t, "gradc.data.epoch", &c.position.epoch) ||
        !gr_value_int(t, "gradc.data.row", &c.position.row) ||
        !copy_value(t, "gradc.model", c.model, sizeof c.model) ||
        !copy_value(t, "gradc.hash", c.hash, sizeof c.hash) ||
        !copy_value(t, "gradc.version", c.version, sizeof c.version))
        return gr_fail(e, GRADC_FORMAT, "%s: step, seed, data position, model or hash is missing",
                       path);
    *info = c;
    return GRADC_OK;
}

static int load_one(const Selection *s, void *g, const char *path, gradc_checkpoint *info,
                    gradc_error *e)
{
    gradc_tensors *t = NULL;
    gradc_checkpoint c = *info;
    int status = gradc_tensors_read(path, &t, e);
    if (status == GRADC_OK)
        status = read_info(t, path, &c, e);
    if (status == GRADC_OK && strcmp(gradc_tensors_value(t, "gradc.hash"), s->m->hash) != 0)
        status = gr_fail(e, GRADC_MISMATCH,
                         "%.200s was saved by model '%.60s' with hash %.12s, this is '%.60s' with "
                         "%.12s; its weights alone can be loaded with gradc_weights_load",
                         path, c.model, c.hash, s->m->name, s->m->hash);
    if (status == GRADC_OK)
        status = gr_unseal(s, g, path, t, 0, e);
    if (status == GRADC_OK)
        *info = c;
    gradc_tensors_free(t);
    return status;
}

/* `why` is what was wrong with `path`. Out of memory says nothing of the file before it, so that is
 * then the status. */
static int load_previous(const Selection *s, void *g, const char *path, gradc_checkpoint *info,
                         const gradc_error *why, gradc_error *e)
{
    gradc_error second;
    char *previous = gr_previous_name(path);
    if (previous == NULL)
        return gr_fail_memory(e, "a path", (int64_t)strlen(path));
    int status = load_one(s, g, previous, info, &second);
    if (status == GRADC_OK) {
        info->from_previous = 1;
        gr_fail(e, GRADC_OK, "took %.200s, because: %.600s", previous, why->text);
    } else {
        status = status == GRADC_MEMORY ? status : why->status;
        gr_fail_at(e, status, why->position, "%.600s; and %.300s", why->text, second.text);
        if (e != NULL)
            e->system = why->system;
    }
    gr_free(previous);
    return status;
}

int gradc_checkpoint_load(const gradc_model *m, void *g, const char *path, gradc_checkpoint *info,
                          gradc_error *e)
{
    Selection s = {0};
    gradc_error why;
    int status = gr_model_check(m, g, e);
    if (status == GRADC_OK)
        status = check_info(info, e);
    if (status == GRADC_OK && path == NULL)
        status = gr_fail(e, GRADC_BAD_ARGUMENT, "no path given");
    if (status != GRADC_OK)
        return status;
    gr_remove_stale(path);
    status = gr_select(&s, m, is_state, &why);
    if (status == GRADC_OK)
        status = load_one(&s, g, path, info, &why);
    if (status == GRADC_IO || status == GRADC_FORMAT)
        status = load_previous(&s, g, path, info, &why, e);
    else if (e != NULL)
        *e = why;
    gr_select_free(&s);
    return status;
}

int gradc_checkpoint_peek(const char *path, gradc_checkpoint *info, gradc_error *e)
{
    gradc_tensors *t = NULL;
    int status = check_info(info, e);
    if (status == GRADC_OK)
        status = gradc_tensors_read(path, &t, e);
    if (status == GRADC_OK)
        status = read_info(t, path, info, e);
    gradc_tensors_free(t);
    return status;
}
