/* safetensors files into memory. */
#include "safetensors.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bytes from a file or from memory. */
typedef struct Source {
    Input *file; /* or NULL: */
    const char *bytes;
    int64_t size, at;
} Source;

static int source_read(Source *s, void *to, int64_t n, gradc_error *e)
{
    if (s->file != NULL)
        return gr_read(s->file, to, n, e);
    memcpy(to, s->bytes + s->at, (size_t)n);
    s->at += n;
    return GRADC_OK;
}

static int64_t little_endian(const uint8_t b[8])
{
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--)
        v = v << 8 | b[i];
    return v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

/* One block for all tensors, each at a multiple of 64 bytes. */
static int read_data(gradc_tensors *t, Source *s, gradc_error *e)
{
    enum { LINE = 64 };
    int64_t total = 0;
    for (int64_t i = 0; i < t->n; i++)
        if (!size_add(total, t->list[i].bytes, &total) || !size_align(total, LINE, &total))
            return gr_fail(e, GRADC_FORMAT, "%s: more data than can be addressed", t->path);
    if (total == 0)
        return GRADC_OK;
    t->data = gr_aligned(total, LINE);
    if (t->data == NULL)
        return gr_fail_memory(e, t->path, total);
    int64_t at = 0;
    for (int64_t i = 0; i < t->n; i++) {
        void *to = (char *)t->data + at;
        if (t->list[i].bytes == 0)
            continue;
        int status = source_read(s, to, t->list[i].bytes, e);
        if (status != GRADC_OK)
            return status;
        t->list[i].data = to;
        if (!size_add(at, t->list[i].bytes, &at) || !size_align(at, LINE, &at))
            return gr_fail(e, GRADC_FORMAT, "%s: more data than can be addressed", t->path);
    }
    return GRADC_OK;
}

/* ---- checksums ---- */

void gr_crc_text(char out[GR_CRC_DIGITS + 1], uint32_t crc)
{
    snprintf(out, GR_CRC_DIGITS + 1, "%08lx", (unsigned long)crc);
}

/* Where the digits of the header's checksum are, behind the 8 bytes of length. */
enum { DIGITS_AT = 8 + (int)sizeof GR_SEALED_BEGIN - 1 };

uint32_t gr_header_crc(const char *head, int64_t n)
{
    static const char zeros[] = "00000000";
    uint32_t crc = gr_crc32c(0, head, DIGITS_AT);
    crc = gr_crc32c(crc, zeros, GR_CRC_DIGITS);
    return gr_crc32c(crc, head + DIGITS_AT + GR_CRC_DIGITS, n - DIGITS_AT - GR_CRC_DIGITS);
}

static int check_header_crc(gradc_tensors *t, const char *head, int64_t n, gradc_error *e)
{
    const size_t begin = sizeof GR_SEALED_BEGIN - 1;
    char digits[GR_CRC_DIGITS + 1];
    bool reserved = false;
    for (int64_t i = 0; i < t->n_pairs; i++)
        reserved |= strncmp(t->pairs[i].key, GR_RESERVED, sizeof GR_RESERVED - 1) == 0;
    if (!reserved)
        return GRADC_OK;
    t->sealed = true;
    gr_crc_text(digits, 0);
    if (n >= DIGITS_AT + GR_CRC_DIGITS && memcmp(head + 8, GR_SEALED_BEGIN, begin) == 0) {
        gr_crc_text(digits, gr_header_crc(head, n));
        if (memcmp(head + DIGITS_AT, digits, GR_CRC_DIGITS) == 0)
            return GRADC_OK;
    }
    return gr_fail_at(e, GRADC_FORMAT, 0,
                      "%s: the header is damaged, or another program changed it: its checksum is "
                      "not %s",
                      t->path, digits);
}

static int check_tensor_crcs(const gradc_tensors *t, gradc_error *e)
{
    char key[sizeof GR_TENSOR_CRC + GRADC_MAX_NAME_BYTES], digits[GR_CRC_DIGITS + 1];
    for (int64_t i = 0; t->sealed && i < t->n; i++) {
        const gradc_named *x = &t->list[i];
        snprintf(key, sizeof key, "%s%s", GR_TENSOR_CRC, x->name);
        const char *want = gradc_tensors_value(t, key);
        gr_crc_text(digits, gr_crc32c(0, x->data, x->bytes));
        if (want == NULL || strcmp(want, digits) != 0)
            return gr_fail_at(e, GRADC_FORMAT, t->begin[i],
                              "%s: tensor '%.200s' is damaged: its checksum is %s, not %s", t->path,
                              x->name, digits, want == NULL ? "given" : want);
    }
    return GRADC_OK;
}

/* ---- reading ---- */

static int read_head(gradc_tensors *t, Source *s, char **head, int64_t *n, gradc_error *e)
{
    uint8_t length[8];
    if (s->size < 8)
        return gr_fail_at(e, GRADC_FORMAT, 0, "%s: %lld bytes are too few for a safetensors file",
                          t->path, (long long)s->size);
    int status = source_read(s, length, 8, e);
    if (status != GRADC_OK)
        return status;
    int64_t json = little_endian(length), total;
    if (json > GRADC_MAX_HEADER_BYTES)
        return gr_fail_at(e, GRADC_FORMAT, 0, "%s: a header of %lld bytes; %d are the limit",
                          t->path, (long long)json, GRADC_MAX_HEADER_BYTES);
    if (!size_add(json, 8, &total) || total > s->size)
        return gr_fail_at(e, GRADC_FORMAT, 0,
                          "%s: a header of %lld bytes in a file of %lld: cut off, or no "
                          "safetensors file",
                          t->path, (long long)json, (long long)s->size);
    *head = gr_alloc(total);
    if (*head == NULL)
        return gr_fail_memory(e, t->path, total);
    memcpy(*head, length, 8);
    *n = total;
    return source_read(s, *head + 8, json, e);
}

static int read_all(gradc_tensors *t, Source *s, gradc_error *e)
{
    char *head = NULL;
    int64_t n = 0;
    int status = read_head(t, s, &head, &n, e);
    if (status == GRADC_OK)
        status = gr_header_parse(t, head + 8, n - 8, s->size - n, e);
    if (status == GRADC_OK)
        status = check_header_crc(t, head, n, e);
    gr_free(head);
    if (status == GRADC_OK)
        status = read_data(t, s, e);
    if (status == GRADC_OK)
        status = check_tensor_crcs(t, e);
    return status;
}

static int read_source(const char *path, Source *s, gradc_tensors **out, gradc_error *e)
{
    gradc_tensors *t = gr_new(1, sizeof *t);
    if (t == NULL)
        return gr_fail_memory(e, path, (int64_t)sizeof *t);
    t->path = path;
    int status = read_all(t, s, e);
    t->path = NULL; /* it was the caller's */
    if (status != GRADC_OK) {
        gradc_tensors_free(t);
        return status;
    }
    *out = t;
    return gr_ok(e);
}

int gradc_tensors_read(const char *path, gradc_tensors **out, gradc_error *e)
{
    Input in;
    if (out == NULL)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "gradc_tensors_read: no place for the result");
    *out = NULL;
    int status = gr_open(&in, path, e);
    if (status != GRADC_OK)
        return status;
    Source s = {.file = &in, .size = in.size};
    status = read_source(path, &s, out, e);
    gr_close(&in);
    return status;
}

int gradc_tensors_parse(const char *name, const void *bytes, size_t n, gradc_tensors **out,
                        gradc_error *e)
{
    if (out == NULL || name == NULL || (n > 0 && bytes == NULL) || n > INT64_MAX)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "gradc_tensors_parse: an argument is missing");
    *out = NULL;
    Source s = {.bytes = bytes, .size = (int64_t)n};
    return read_source(name, &s, out, e);
}

void gradc_tensors_free(gradc_tensors *t)
{
    if (t == NULL)
        return;
    gr_free(t->list);
    gr_free(t->begin);
    gr_free(t->by_name);
    gr_free(t->pairs);
    gr_free(t->by_key);
    gr_free(t->strings);
    gr_free(t->data);
    gr_free(t);
}

/* ---- looking up ---- */

int64_t gradc_tensors_count(const gradc_tensors *t)
{
    return t->n;
}

const gradc_named *gradc_tensors_at(const gradc_tensors *t, int64_t index)
{
    return index >= 0 && index < t->n ? &t->list[index] : NULL;
}

/* Index of the element of `list` that is called `name`, by its sorted order; -1: there is none. The
 * name is the first member of both kinds of elements. */
static int64_t find(const void *list, size_t element, const int64_t *order, int64_t n,
                    const char *name)
{
    int64_t low = 0, high = n;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        const char *there;
        memcpy(&there, (const char *)list + (size_t)order[middle] * element, sizeof there);
        int compared = strcmp(name, there);
        if (compared == 0)
            return order[middle];
        if (compared < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}

const gradc_named *gradc_tensors_find(const gradc_tensors *t, const char *name)
{
    int64_t i = find(t->list, sizeof *t->list, t->by_name, t->n, name);
    return i < 0 ? NULL : &t->list[i];
}

int64_t gradc_tensors_pairs(const gradc_tensors *t)
{
    return t->n_pairs;
}

const gradc_pair *gradc_tensors_pair(const gradc_tensors *t, int64_t index)
{
    return index >= 0 && index < t->n_pairs ? &t->pairs[index] : NULL;
}

const char *gradc_tensors_value(const gradc_tensors *t, const char *key)
{
    int64_t i = find(t->pairs, sizeof *t->pairs, t->by_key, t->n_pairs, key);
    return i < 0 ? NULL : t->pairs[i].value;
}

bool gr_value_int(const gradc_tensors *t, const char *key, int64_t *out)
{
    const char *s = gradc_tensors_value(t, key);
    char *end;
    if (s == NULL || (*s != '-' && (*s < '0' || *s > '9')))
        return false;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (*end != '\0' || errno != 0)
        return false;
    *out = v;
    return true;
}

bool gr_value_word(const gradc_tensors *t, const char *key, uint64_t *out)
{
    const char *s = gradc_tensors_value(t, key);
    char *end;
    if (s == NULL || *s < '0' || *s > '9')
        return false;
    errno = 0;
    unsigned long long v = strtoull(s, &end, 10);
    if (*end != '\0' || errno != 0)
        return false;
    *out = v;
    return true;
}

bool gr_is_kind(const gradc_tensors *t, const char *kind)
{
    const char *s = gradc_tensors_value(t, GR_KIND);
    return t->sealed && s != NULL && strcmp(s, kind) == 0;
}
