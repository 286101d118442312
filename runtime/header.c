/* The JSON header of a safetensors file, read strictly.
 * source: github.com/huggingface/safetensors, README, "Format" and attacks/README.md. */
#include "safetensors.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int32_t dtype;
} dtypes[] = {
    {"F32", GRADC_F32}, {"F64", GRADC_F64}, {"F16", GRADC_F16}, {"BF16", GRADC_BF16},
    {"I32", GRADC_I32}, {"I64", GRADC_I64}, {"U8", GRADC_U8},   {"BOOL", GRADC_BOOL},
};

typedef struct Builder {
    gradc_tensors *t;
    char *free_text; /* next free byte of t->strings */
    gradc_error *e;
} Builder;

static const char *keep(Builder *b, const char *s, size_t n)
{
    char *to = b->free_text;
    memcpy(to, s, n);
    to[n] = '\0';
    b->free_text = to + n + 1;
    return to;
}

static int bad_tensor(const Builder *b, const char *name, const char *what)
{
    return gr_fail(b->e, GRADC_FORMAT, "%s: tensor '%.200s': %s", b->t->path, name, what);
}

static bool take_dtype(const json_t *value, int32_t *dtype)
{
    const char *s = json_string_value(value);
    for (size_t i = 0; s != NULL && i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (strcmp(s, dtypes[i].name) == 0) {
            *dtype = dtypes[i].dtype;
            return true;
        }
    return false;
}

/* A list of at most `most` integers >= 0; their number, or -1. */
static int32_t take_sizes(const json_t *list, size_t most, int64_t *out)
{
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n > most)
        return -1;
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(list, i);
        if (!json_is_integer(v) || json_integer_value(v) < 0)
            return -1;
        out[i] = (int64_t)json_integer_value(v);
    }
    return (int32_t)n;
}

static int take_tensor(Builder *b, const char *name, size_t name_n, const json_t *value)
{
    gradc_named *x = &b->t->list[b->t->n];
    int64_t range[2], size;
    if (name_n > GRADC_MAX_NAME_BYTES)
        return bad_tensor(b, name, "a name of more than 512 bytes");
    if (!json_is_object(value) || json_object_size(value) != 3)
        return bad_tensor(b, name, "not just dtype, shape and data_offsets");
    if (!take_dtype(json_object_get(value, "dtype"), &x->dtype))
        return bad_tensor(b, name, "no dtype, or none that is known here");
    x->rank = take_sizes(json_object_get(value, "shape"), GRADC_MAX_RANK, x->shape);
    if (x->rank < 0)
        return bad_tensor(b, name, "no shape, or not one of at most 8 sizes");
    if (!gr_shape_size(x->dtype, x->rank, x->shape, &x->elems, &x->bytes))
        return bad_tensor(b, name, "a shape beyond 2^40 in a dimension or 2^47 bytes in all");
    if (take_sizes(json_object_get(value, "data_offsets"), 2, range) != 2)
        return bad_tensor(b, name, "no data_offsets, or not two sizes");
    if (!size_sub(range[1], range[0], &size) || size != x->bytes) {
        char text[GR_SHAPE_TEXT];
        return gr_fail(
            b->e, GRADC_FORMAT, "%s: tensor '%.200s': bytes %lld to %lld, but %s needs %lld",
            b->t->path, name, (long long)range[0], (long long)range[1],
            gr_shape_text(text, sizeof text, x->dtype, x->rank, x->shape), (long long)x->bytes);
    }
    b->t->begin[b->t->n++] = range[0];
    x->name = keep(b, name, name_n);
    return GRADC_OK;
}

static int take_metadata(Builder *b, json_t *object)
{
    const char *key;
    size_t key_n;
    json_t *value;
    if (!json_is_object(object))
        return gr_fail(b->e, GRADC_FORMAT, "%s: __metadata__ is not an object", b->t->path);
    json_object_keylen_foreach(object, key, key_n, value)
    {
        size_t n = json_string_length(value);
        if (!json_is_string(value))
            return gr_fail(b->e, GRADC_FORMAT, "%s: __metadata__: '%.200s' is not a string",
                           b->t->path, key);
        if (key_n > GRADC_MAX_STRING_BYTES || n > GRADC_MAX_STRING_BYTES)
            return gr_fail(b->e, GRADC_FORMAT, "%s: __metadata__: '%.200s' is over 65536 bytes",
                           b->t->path, key);
        gradc_pair *pair = &b->t->pairs[b->t->n_pairs++];
        pair->key = keep(b, key, key_n);
        pair->value = keep(b, json_string_value(value), n);
    }
    return GRADC_OK;
}

/* Allocates for what the object holds. Every string is in the JSON with two quotes around it, so
 * they fit, with a NUL each, into as many bytes as the JSON has. */
static bool make_room(Builder *b, const json_t *root, int64_t json_bytes)
{
    gradc_tensors *t = b->t;
    const json_t *metadata = json_object_get(root, "__metadata__");
    int64_t n = (int64_t)json_object_size(root) + 1;
    int64_t n_pairs = (int64_t)json_object_size(metadata) + 1;
    t->list = gr_new(n, sizeof *t->list);
    t->begin = gr_new(n, sizeof *t->begin);
    t->by_name = gr_new(n, sizeof *t->by_name);
    t->pairs = gr_new(n_pairs, sizeof *t->pairs);
    t->by_key = gr_new(n_pairs, sizeof *t->by_key);
    t->strings = gr_alloc(json_bytes);
    b->free_text = t->strings;
    return t->list != NULL && t->begin != NULL && t->by_name != NULL && t->pairs != NULL &&
           t->by_key != NULL && t->strings != NULL;
}

static int take_all(Builder *b, json_t *root)
{
    const char *key;
    size_t key_n;
    json_t *value;
    int status = GRADC_OK;
    json_object_keylen_foreach(root, key, key_n, value)
    {
        if (strcmp(key, "__metadata__") == 0)
            status = take_metadata(b, value);
        else
            status = take_tensor(b, key, key_n, value);
        if (status != GRADC_OK)
            return status;
    }
    return GRADC_OK;
}

/* ---- order ---- */

typedef struct ByBegin {
    int64_t begin, bytes, index;
} ByBegin;

static int compare_begin(const void *pa, const void *pb)
{
    const ByBegin *a = pa, *b = pb;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    if (a->bytes != b->bytes) /* empty ones first: they end where they begin */
        return a->bytes < b->bytes ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

typedef struct ByName {
    const char *name;
    int64_t index;
} ByName;

static int compare_name(const void *pa, const void *pb)
{
    const ByName *a = pa, *b = pb;
    return strcmp(a->name, b->name);
}

/* Tensors must follow one another without hole or overlap and use up the data. */
static int check_cover(const gradc_tensors *t, int64_t data_bytes, gradc_error *e)
{
    int64_t at = 0;
    for (int64_t i = 0; i < t->n; i++) {
        if (t->begin[i] != at)
            return gr_fail(e, GRADC_FORMAT,
                           "%s: tensor '%.200s' begins at byte %lld of the data, not at %lld: %s",
                           t->path, t->list[i].name, (long long)t->begin[i], (long long)at,
                           t->begin[i] < at ? "tensors overlap" : "there is a hole");
        if (!size_add(at, t->list[i].bytes, &at) || at > data_bytes)
            return gr_fail(e, GRADC_FORMAT, "%s: tensor '%.200s' ends at byte %lld of %lld",
                           t->path, t->list[i].name, (long long)at, (long long)data_bytes);
    }
    if (at != data_bytes)
        return gr_fail(e, GRADC_FORMAT, "%s: the tensors cover %lld of %lld bytes of data", t->path,
                       (long long)at, (long long)data_bytes);
    return GRADC_OK;
}

static int sort_by_begin(gradc_tensors *t, gradc_error *e)
{
    ByBegin *keys = gr_new(t->n + 1, sizeof *keys);
    gradc_named *list = gr_new(t->n + 1, sizeof *list);
    if (keys == NULL || list == NULL) {
        gr_free(keys);
        gr_free(list);
        return gr_fail_memory(e, t->path, t->n);
    }
    for (int64_t i = 0; i < t->n; i++)
        keys[i] = (ByBegin){t->begin[i], t->list[i].bytes, i};
    qsort(keys, (size_t)t->n, sizeof *keys, compare_begin);
    for (int64_t i = 0; i < t->n; i++) {
        list[i] = t->list[keys[i].index];
        t->begin[i] = keys[i].begin;
    }
    gr_free(t->list);
    t->list = list;
    gr_free(keys);
    return GRADC_OK;
}

static void sort_names(ByName *keys, int64_t n, int64_t *order)
{
    qsort(keys, (size_t)n, sizeof *keys, compare_name);
    for (int64_t i = 0; i < n; i++)
        order[i] = keys[i].index;
}

/* So that a name or a key is found without going through a million. */
static int sort_by_name(gradc_tensors *t, gradc_error *e)
{
    int64_t most = t->n > t->n_pairs ? t->n : t->n_pairs;
    ByName *keys = gr_new(most + 1, sizeof *keys);
    if (keys == NULL)
        return gr_fail_memory(e, t->path, most);
    for (int64_t i = 0; i < t->n; i++)
        keys[i] = (ByName){t->list[i].name, i};
    sort_names(keys, t->n, t->by_name);
    for (int64_t i = 0; i < t->n_pairs; i++)
        keys[i] = (ByName){t->pairs[i].key, i};
    sort_names(keys, t->n_pairs, t->by_key);
    gr_free(keys);
    return GRADC_OK;
}

/* jansson's lexer calls a failed allocation a syntax error. If not even as much as the text can be
 * had now, memory was the reason. */
static bool no_memory(const json_error_t *why, int64_t n)
{
    void *probe = gr_alloc(n);
    bool none = probe == NULL || json_error_code(why) == json_error_out_of_memory;
    gr_free(probe);
    return none;
}

static int bad_json(const gradc_tensors *t, const json_error_t *why, int64_t n, gradc_error *e)
{
    if (no_memory(why, n))
        return gr_fail_memory(e, t->path, n);
    return gr_fail_at(e, GRADC_FORMAT, 8 + (int64_t)why->position,
                      "%s: the header is not JSON as the format has it, near byte %lld: %s",
                      t->path, 8 + (long long)why->position, why->text);
}

int gr_header_parse(gradc_tensors *t, const char *json, int64_t n, int64_t data_bytes,
                    gradc_error *e)
{
    json_error_t why;
    Builder b = {.t = t, .e = e};
    if (n < 2 || json[0] != '{') /* jansson alone would skip white space */
        return gr_fail_at(e, GRADC_FORMAT, 8, "%s: the header does not begin with '{'", t->path);
    json_t *root = json_loadb(json, (size_t)n, JSON_REJECT_DUPLICATES, &why);
    if (root == NULL)
        return bad_json(t, &why, n, e);
    int status = make_room(&b, root, n) ? take_all(&b, root) : gr_fail_memory(e, t->path, n);
    json_decref(root);
    if (status == GRADC_OK)
        status = sort_by_begin(t, e);
    if (status == GRADC_OK)
        status = check_cover(t, data_bytes, e);
    if (status == GRADC_OK)
        status = sort_by_name(t, e);
    return status;
}
