/* Selecting a model's tensors and writing them as a sealed file. */
#include "model.h"

#include <string.h>

int gr_model_check(const gradc_model *m, const void *g, gradc_error *e)
{
    if (m == NULL || g == NULL)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "no model or no handle given");
    size_t least = offsetof(gradc_model, offload_bytes); /* objects before there was offloading */
    if (m->abi != GRADC_ABI || m->struct_size < least)
        return gr_fail(e, GRADC_BAD_ABI,
                       "the model's object has ABI %lu (table of %lu bytes), this library %d "
                       "(%lu bytes)",
                       (unsigned long)m->abi, (unsigned long)m->struct_size, GRADC_ABI,
                       (unsigned long)least);
    if (m->name == NULL || m->hash == NULL || m->version == NULL || m->read == NULL ||
        m->write == NULL || m->error == NULL || m->n_tensors < 0 ||
        (m->n_tensors > 0 && m->tensors == NULL))
        return gr_fail(e, GRADC_BAD_ARGUMENT, "the model's table is not complete");
    return GRADC_OK;
}

int gr_select(Selection *s, const gradc_model *m, Wanted wanted, gradc_error *e)
{
    *s = (Selection){.m = m};
    s->list = gr_new((int64_t)m->n_tensors + 1, sizeof *s->list);
    s->index = gr_new((int64_t)m->n_tensors + 1, sizeof *s->index);
    if (s->list == NULL || s->index == NULL)
        return gr_fail_memory(e, "a list of tensors", m->n_tensors);
    for (int32_t i = 0; i < m->n_tensors; i++) {
        const gradc_tensor *x = &m->tensors[i];
        if (!wanted(x))
            continue;
        gradc_named *to = &s->list[s->n];
        *to = (gradc_named){.name = x->name, .dtype = x->dtype, .rank = x->rank};
        memcpy(to->shape, x->shape, sizeof to->shape);
        if (x->name == NULL || x->rank < 0 || x->rank > GRADC_MAX_RANK ||
            !gr_shape_size(x->dtype, x->rank, x->shape, &to->elems, &to->bytes) ||
            to->bytes != x->bytes)
            return gr_fail(e, GRADC_BAD_ARGUMENT, "tensor %d of model '%s' has no size that agrees",
                           (int)i, m->name);
        s->index[s->n++] = i;
        if (to->bytes > s->most_bytes)
            s->most_bytes = to->bytes;
    }
    return GRADC_OK;
}

void gr_select_free(Selection *s)
{
    gr_free(s->list);
    gr_free(s->index);
    *s = (Selection){0};
}

/* ---- writing ---- */

typedef struct Sealer {
    const Selection *s;
    const void *g;
    const Sealing *how;
    void *buffer;  /* one tensor */
    uint32_t *crc; /* by place in the selection */
    gradc_pair *pairs;
    int64_t n_pairs;
    Text text; /* keys and values of the checksums */
    Layout layout;
    gradc_error *e;
} Sealer;

static int fetch(Sealer *z, int64_t k)
{
    const Selection *s = z->s;
    int status = s->m->read(z->g, s->index[k], z->buffer, (size_t)s->list[k].bytes);
    if (status == GRADC_OK)
        return GRADC_OK;
    const char *why = s->m->error(z->g);
    return gr_fail(z->e, status, "cannot take '%.200s' from the model: %.500s", s->list[k].name,
                   why != NULL ? why : gradc_strerror(status));
}

/* Refuses what is not finite, before any file is touched, and sums up. */
static int first_pass(Sealer *z)
{
    for (int64_t k = 0; k < z->s->n; k++) {
        const gradc_named *x = &z->s->list[k];
        int status = fetch(z, k);
        if (status != GRADC_OK)
            return status;
        int64_t bad = -1;
        /* A run-time scalar is NaN where the caller has not set it (lr: the schedule's). */
        bool scalar = z->s->m->tensors[z->s->index[k]].role == GRADC_SCALAR;
        if ((z->how->flags & GRADC_ALLOW_NONFINITE) == 0 && !scalar)
            bad = gr_nonfinite(x->dtype, z->buffer, x->elems);
        if (bad >= 0)
            return gr_fail_at(z->e, GRADC_NONFINITE, bad,
                              "'%.200s' holds NaN or infinity at element %lld: not saved", x->name,
                              (long long)bad);
        z->crc[k] = gr_crc32c(0, z->buffer, x->bytes);
    }
    return GRADC_OK;
}

static void add_pair(Sealer *z, const char *key, const char *value)
{
    z->pairs[z->n_pairs++] = (gradc_pair){key, value};
}

enum { FIXED_PAIRS = 6 };

static int make_pairs(Sealer *z)
{
    const gradc_model *m = z->s->m;
    int64_t n;
    if (!size_add(z->s->n, FIXED_PAIRS + z->how->n_pairs, &n))
        return gr_fail_memory(z->e, "metadata", z->s->n);
    z->pairs = gr_new(n, sizeof *z->pairs);
    if (z->pairs == NULL)
        return gr_fail_memory(z->e, "metadata", n);
    for (int64_t k = 0; k < z->s->n; k++) {
        char digits[GR_CRC_DIGITS + 1];
        gr_crc_text(digits, z->crc[k]);
        gr_text_puts(&z->text, GR_TENSOR_CRC);
        gr_text_puts(&z->text, z->s->list[k].name);
        gr_text_add(&z->text, "\0", 1);
        gr_text_add(&z->text, digits, GR_CRC_DIGITS + 1);
    }
    if (z->text.failed)
        return gr_fail_memory(z->e, "metadata", z->text.n);
    add_pair(z, GR_HEADER_CRC, "00000000"); /* first: its place is fixed */
    add_pair(z, GR_KIND, z->how->kind);
    add_pair(z, GR_FORMAT, "1");
    add_pair(z, "gradc.model", m->name);
    add_pair(z, "gradc.hash", m->hash);
    add_pair(z, "gradc.version", m->version);
    for (int64_t i = 0; i < z->how->n_pairs; i++)
        add_pair(z, z->how->pairs[i].key, z->how->pairs[i].value);
    const char *p = z->text.bytes;
    for (int64_t k = 0; k < z->s->n; k++) {
        const char *value = p + strlen(p) + 1;
        add_pair(z, p, value);
        p = value + GR_CRC_DIGITS + 1;
    }
    return GRADC_OK;
}

static int second_pass(Sealer *z)
{
    Save save;
    const Layout *l = &z->layout;
    int status = gr_save_begin(&save, z->how->path, z->e);
    if (status == GRADC_OK)
        status = gr_save_write(&save, l->head.bytes, l->head.n, z->e);
    for (int64_t i = 0; i < l->n && status == GRADC_OK; i++) {
        int64_t k = l->order[i];
        status = fetch(z, k);
        if (status == GRADC_OK && gr_crc32c(0, z->buffer, l->bytes[k]) != z->crc[k])
            status = gr_fail(z->e, GRADC_BAD_STATE, "'%.200s' changed while it was saved",
                             l->list[k].name);
        if (status == GRADC_OK)
            status = gr_save_write(&save, z->buffer, l->bytes[k], z->e);
    }
    return gr_save_end(&save, status, z->how->keep_previous, z->e);
}

static int seal(Sealer *z)
{
    enum { LINE = 64 };
    z->buffer = gr_aligned(z->s->most_bytes + 1, LINE);
    z->crc = gr_new(z->s->n + 1, sizeof *z->crc);
    if (z->buffer == NULL || z->crc == NULL)
        return gr_fail_memory(z->e, "a copy of one tensor", z->s->most_bytes);
    int status = first_pass(z);
    if (status == GRADC_OK)
        status = make_pairs(z);
    if (status != GRADC_OK)
        return status;
    z->layout =
        (Layout){.list = z->s->list, .n = z->s->n, .pairs = z->pairs, .n_pairs = z->n_pairs};
    status = gr_layout_make(&z->layout, z->e);
    if (status != GRADC_OK)
        return status;
    gr_layout_seal(&z->layout);
    return second_pass(z);
}

int gr_seal(const Selection *s, const void *g, const Sealing *how, gradc_error *e)
{
    Sealer z = {.s = s, .g = g, .how = how, .e = e};
    int status = seal(&z);
    gr_layout_free(&z.layout);
    gr_text_free(&z.text);
    gr_free(z.pairs);
    gr_free(z.crc);
    gr_free(z.buffer);
    return status;
}
