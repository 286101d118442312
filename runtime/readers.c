/* Arrays from paths: the file into memory, unpacked, then to the parser of its format. */
#include "file.h"

#include <string.h>

typedef int (*Parse)(const char *name, const void *bytes, size_t n, gradc_array *out,
                     gradc_error *e);

static int read_with(const char *path, Parse parse, gradc_array *out, gradc_error *e)
{
    uint8_t *bytes;
    int64_t n;
    if (out == NULL)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "no array to fill");
    *out = (gradc_array){0};
    int status = gr_read_all(path, &bytes, &n, e);
    if (status != GRADC_OK)
        return status;
    status = parse(path, bytes, (size_t)n, out, e);
    gr_free(bytes);
    return status;
}

int gradc_npy_read(const char *path, gradc_array *out, gradc_error *e)
{
    return read_with(path, gradc_npy_parse, out, e);
}

int gradc_idx_read(const char *path, gradc_array *out, gradc_error *e)
{
    return read_with(path, gradc_idx_parse, out, e);
}

int gradc_csv_read(const char *path, const gradc_csv_options *options, gradc_array *out,
                   gradc_error *e)
{
    uint8_t *bytes;
    int64_t n;
    if (out == NULL)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "no array to fill");
    *out = (gradc_array){0};
    int status = gr_read_all(path, &bytes, &n, e);
    if (status != GRADC_OK)
        return status;
    status = gradc_csv_parse(path, bytes, (size_t)n, options, out, e);
    gr_free(bytes);
    return status;
}

static int parse_bytes(const char *name, const void *bytes, size_t n, gradc_array *out,
                       gradc_error *e)
{
    int64_t shape[1] = {(int64_t)n};
    (void)name;
    int status = gr_array_new(GRADC_U8, 1, shape, out, e);
    if (status == GRADC_OK && n > 0)
        memcpy(out->data, bytes, n);
    return status;
}

int gradc_bytes_read(const char *path, gradc_array *out, gradc_error *e)
{
    return read_with(path, parse_bytes, out, e);
}

static bool ends_with(const char *s, size_t n, const char *end)
{
    size_t k = strlen(end);
    return n >= k && memcmp(s + n - k, end, k) == 0;
}

int gradc_is_table(const char *path)
{
    size_t n = path != NULL ? strlen(path) : 0;
    if (ends_with(path, n, ".gz"))
        n -= 3;
    return ends_with(path, n, ".csv") || ends_with(path, n, ".tsv") || ends_with(path, n, ".dat");
}

static int parse_any(const char *name, const void *bytes, size_t n, gradc_array *out,
                     gradc_error *e)
{
    static const char zip[] = {'P', 'K', 3, 4};
    if (gradc_is_table(name))
        return gradc_csv_parse(name, bytes, n, NULL, out, e);
    if (n >= sizeof zip && memcmp(bytes, zip, sizeof zip) == 0)
        return gr_fail(e, GRADC_FORMAT,
                       "%s: an archive (.npz): unpack it, and give one of its .npy files", name);
    if (gr_looks_npy(bytes, (int64_t)n))
        return gradc_npy_parse(name, bytes, n, out, e);
    if (gr_looks_idx(bytes, (int64_t)n))
        return gradc_idx_parse(name, bytes, n, out, e);
    return parse_bytes(name, bytes, n, out, e);
}

int gradc_array_read(const char *path, gradc_array *out, gradc_error *e)
{
    return read_with(path, parse_any, out, e);
}
