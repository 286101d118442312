/* safetensors files from memory, byte for byte as the reference implementation writes them. */
#include "safetensors.h"

#include <stdlib.h>
#include <string.h>

/* Names in the file, and the rank by which the reference sorts (large alignment first).
 * source: safetensors/src/tensor.rs, `enum Dtype` and `prepare`. */
static const struct {
    const char *name;
    int32_t rank;
} dtypes[] = {
    [GRADC_I64] = {"I64", 0}, [GRADC_F64] = {"F64", 1},   [GRADC_F32] = {"F32", 2},
    [GRADC_I32] = {"I32", 3}, [GRADC_BF16] = {"BF16", 4}, [GRADC_F16] = {"F16", 5},
    [GRADC_U8] = {"U8", 6},   [GRADC_BOOL] = {"BOOL", 7},
};

typedef struct Key {
    const char *name;
    int32_t dtype_rank;
    int64_t index;
} Key;

static int compare_names(const void *pa, const void *pb)
{
    const Key *a = pa, *b = pb;
    return strcmp(a->name, b->name);
}

static int compare_keys(const void *pa, const void *pb)
{
    const Key *a = pa, *b = pb;
    if (a->dtype_rank != b->dtype_rank)
        return a->dtype_rank < b->dtype_rank ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* Length of the UTF-8 character at s, or 0 if it is none (also: surrogates, overlong forms). */
static size_t character(const unsigned char *s)
{
    if (s[0] < 0x80)
        return 1;
    size_t n = s[0] >= 0xC2 && s[0] < 0xE0 ? 2 : (s[0] & 0xF0) == 0xE0 ? 3 : 4;
    if (n == 4 && (s[0] < 0xF0 || s[0] > 0xF4))
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    unsigned second = s[1];
    bool bad = (s[0] == 0xE0 && second < 0xA0) || (s[0] == 0xED && second > 0x9F) ||
               (s[0] == 0xF0 && second < 0x90) || (s[0] == 0xF4 && second > 0x8F);
    return bad ? 0 : n;
}

static bool is_text(const char *s, size_t most)
{
    if (s == NULL || strlen(s) > most)
        return false;
    for (const unsigned char *p = (const unsigned char *)s; *p != '\0';) {
        size_t n = character(p);
        if (n == 0)
            return false;
        p += n;
    }
    return true;
}

static int check_tensor(Layout *l, int64_t i, gradc_error *e)
{
    const gradc_named *x = &l->list[i];
    int64_t elems;
    if (!is_text(x->name, GRADC_MAX_NAME_BYTES) || strcmp(x->name, "__metadata__") == 0)
        return gr_fail(e, GRADC_BAD_ARGUMENT,
                       "tensor %lld: its name is not UTF-8 of at most 512 bytes, or reserved",
                       (long long)i);
    if (!gr_shape_size(x->dtype, x->rank, x->shape, &elems, &l->bytes[i]))
        return gr_fail(e, GRADC_BAD_ARGUMENT, "tensor '%.200s' has a shape that is not possible",
                       x->name);
    return GRADC_OK;
}

static int sort(Layout *l, Key *keys, gradc_error *e)
{
    size_t n = (size_t)l->n;
    for (int64_t i = 0; i < l->n; i++) {
        int status = check_tensor(l, i, e);
        if (status != GRADC_OK)
            return status;
        keys[i] = (Key){l->list[i].name, dtypes[l->list[i].dtype].rank, i};
    }
    qsort(keys, n, sizeof *keys, compare_names);
    for (size_t i = 1; i < n; i++)
        if (strcmp(keys[i - 1].name, keys[i].name) == 0)
            return gr_fail(e, GRADC_BAD_ARGUMENT, "two tensors are named '%.200s'", keys[i].name);
    qsort(keys, n, sizeof *keys, compare_keys);
    for (int64_t i = 0; i < l->n; i++)
        l->order[i] = keys[i].index;
    return GRADC_OK;
}

static int check_pairs(const Layout *l, gradc_error *e)
{
    Key *keys = gr_new(l->n_pairs + 1, sizeof *keys);
    int status = GRADC_OK;
    if (keys == NULL)
        return gr_fail_memory(e, "metadata", l->n_pairs);
    for (int64_t i = 0; i < l->n_pairs && status == GRADC_OK; i++) {
        const gradc_pair *p = &l->pairs[i];
        keys[i].name = p->key;
        if (!is_text(p->key, GRADC_MAX_STRING_BYTES) || !is_text(p->value, GRADC_MAX_STRING_BYTES))
            status = gr_fail(e, GRADC_BAD_ARGUMENT,
                             "metadata %lld is not UTF-8 of at most 65536 bytes", (long long)i);
    }
    if (status == GRADC_OK) {
        qsort(keys, (size_t)l->n_pairs, sizeof *keys, compare_names);
        for (int64_t i = 1; i < l->n_pairs && status == GRADC_OK; i++)
            if (strcmp(keys[i - 1].name, keys[i].name) == 0)
                status = gr_fail(e, GRADC_BAD_ARGUMENT, "metadata key '%.200s' is given twice",
                                 keys[i].name);
    }
    gr_free(keys);
    return status;
}

static void put_pairs(Text *t, const Layout *l)
{
    if (l->n_pairs == 0)
        return;
    gr_text_puts(t, "\"__metadata__\":{");
    for (int64_t i = 0; i < l->n_pairs; i++) {
        if (i > 0)
            gr_text_puts(t, ",");
        gr_text_json(t, l->pairs[i].key);
        gr_text_puts(t, ":");
        gr_text_json(t, l->pairs[i].value);
    }
    gr_text_puts(t, "}");
    if (l->n > 0)
        gr_text_puts(t, ",");
}

static void put_tensor(Text *t, const gradc_named *x, int64_t begin, int64_t end)
{
    gr_text_json(t, x->name);
    gr_text_puts(t, ":{\"dtype\":\"");
    gr_text_puts(t, dtypes[x->dtype].name);
    gr_text_puts(t, "\",\"shape\":[");
    for (int32_t i = 0; i < x->rank; i++) {
        if (i > 0)
            gr_text_puts(t, ",");
        gr_text_int(t, x->shape[i]);
    }
    gr_text_puts(t, "],\"data_offsets\":[");
    gr_text_int(t, begin);
    gr_text_puts(t, ",");
    gr_text_int(t, end);
    gr_text_puts(t, "]}");
}

static int build_head(Layout *l, gradc_error *e)
{
    Text *t = &l->head;
    int64_t begin = 0;
    gr_text_add(t, "\0\0\0\0\0\0\0\0", 8);
    gr_text_puts(t, "{");
    put_pairs(t, l);
    for (int64_t i = 0; i < l->n; i++) {
        int64_t end;
        if (!size_add(begin, l->bytes[l->order[i]], &end))
            return gr_fail(e, GRADC_BAD_ARGUMENT, "the tensors are more than 2^63 bytes");
        if (i > 0)
            gr_text_puts(t, ",");
        put_tensor(t, &l->list[l->order[i]], begin, end);
        begin = end;
    }
    gr_text_puts(t, "}");
    while (!t->failed && t->n % 8 != 0)
        gr_text_puts(t, " ");
    if (t->failed)
        return gr_fail_memory(e, "a header", t->n);
    int64_t json = t->n - 8;
    if (json > GRADC_MAX_HEADER_BYTES)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "a header of %lld bytes; %d are the limit",
                       (long long)json, GRADC_MAX_HEADER_BYTES);
    for (int i = 0; i < 8; i++)
        t->bytes[i] = (char)(json >> (8 * i) & 0xFF);
    return GRADC_OK;
}

int gr_layout_make(Layout *l, gradc_error *e)
{
    if (l->n < 0 || l->n > GRADC_MAX_TENSORS || (l->n > 0 && l->list == NULL) || l->n_pairs < 0 ||
        l->n_pairs > 2 * GRADC_MAX_TENSORS || (l->n_pairs > 0 && l->pairs == NULL))
        return gr_fail(e, GRADC_BAD_ARGUMENT, "%lld tensors and %lld metadata are not possible",
                       (long long)l->n, (long long)l->n_pairs);
    Key *keys = gr_new(l->n + 1, sizeof *keys);
    l->order = gr_new(l->n + 1, sizeof *l->order);
    l->bytes = gr_new(l->n + 1, sizeof *l->bytes);
    int status = GRADC_OK;
    if (keys == NULL || l->order == NULL || l->bytes == NULL)
        status = gr_fail_memory(e, "a list of tensors", l->n);
    if (status == GRADC_OK)
        status = sort(l, keys, e);
    gr_free(keys);
    if (status == GRADC_OK)
        status = check_pairs(l, e);
    if (status == GRADC_OK)
        status = build_head(l, e);
    return status;
}

void gr_layout_free(Layout *l)
{
    gr_free(l->order);
    gr_free(l->bytes);
    gr_text_free(&l->head);
    l->order = NULL;
    l->bytes = NULL;
}

void gr_layout_seal(Layout *l)
{
    char digits[GR_CRC_DIGITS + 1];
    gr_crc_text(digits, gr_header_crc(l->head.bytes, l->head.n));
    memcpy(l->head.bytes + 8 + sizeof GR_SEALED_BEGIN - 1, digits, GR_CRC_DIGITS);
}

static int write_layout(const Layout *l, const char *path, gradc_error *e)
{
    Save s;
    int status = gr_save_begin(&s, path, e);
    if (status == GRADC_OK)
        status = gr_save_write(&s, l->head.bytes, l->head.n, e);
    for (int64_t i = 0; i < l->n && status == GRADC_OK; i++) {
        int64_t k = l->order[i];
        status = gr_save_write(&s, l->list[k].data, l->bytes[k], e);
    }
    return gr_save_end(&s, status, false, e);
}

int gradc_tensors_write(const char *path, const gradc_named *tensors, int64_t count,
                        const gradc_pair *pairs, int64_t n_pairs, gradc_error *e)
{
    Layout l = {.list = tensors, .n = count, .pairs = pairs, .n_pairs = n_pairs};
    int status = gr_layout_make(&l, e);
    for (int64_t i = 0; i < count && status == GRADC_OK; i++)
        if (l.bytes[i] > 0 && tensors[i].data == NULL)
            status = gr_fail(e, GRADC_BAD_ARGUMENT, "tensor '%.200s' has no data", tensors[i].name);
    /* readers would take such a file for a damaged one of gradc's own */
    for (int64_t i = 0; i < n_pairs && status == GRADC_OK; i++)
        if (strncmp(pairs[i].key, GR_RESERVED, sizeof GR_RESERVED - 1) == 0)
            status =
                gr_fail(e, GRADC_BAD_ARGUMENT, "metadata key '%.200s' is reserved", pairs[i].key);
    if (status == GRADC_OK)
        status = write_layout(&l, path, e);
    gr_layout_free(&l);
    return status;
}
