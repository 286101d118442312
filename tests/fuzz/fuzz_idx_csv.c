/* IDX, CSV, gzip and numbers; the first byte says which, the second is for options. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(int status, gradc_array *a, const gradc_error *e)
{
    int64_t elems, bytes;
    if (status != GRADC_OK) {
        if (status != GRADC_FORMAT || a->data != NULL || e->text[0] == '\0')
            abort();
        return;
    }
    if (!gr_shape_size(a->dtype, a->rank, a->shape, &elems, &bytes) || elems != a->elems ||
        bytes != a->bytes)
        abort();
    gr_crc32c(0, a->data, a->bytes);
    gradc_array_free(a);
}

static void csv(uint8_t choice, const uint8_t *data, size_t n)
{
    static const int32_t separators[] = {0, ',', ';', '\t', ' '};
    gradc_array a;
    gradc_error e;
    gradc_csv_options o = {.struct_size = sizeof o,
                           .dtype = choice & 1 ? GRADC_F64 : GRADC_F32,
                           .header = (choice >> 1) % 3 - 1,
                           .separator = separators[(choice >> 3) % 5]};
    check(gradc_csv_parse("fuzz", data, n, &o, &a, &e), &a, &e);
}

/* A number must be what strtod makes of it, and print so that it reads back. */
static void number(const uint8_t *data, size_t n)
{
    char text[512], back[40];
    double v, w;
    if (n >= sizeof text)
        n = sizeof text - 1;
    memcpy(text, data, n);
    text[n] = '\0';
    int64_t used = gr_parse_number(text, (int64_t)n, &v);
    if (used <= 0)
        return;
    text[used] = '\0';
    if (strtod(text, NULL) != v || !isfinite(v))
        abort();
    gradc_format(back, sizeof back, v, 0);
    if (gr_parse_number(back, (int64_t)strlen(back), &w) != (int64_t)strlen(back) || v != w)
        abort();
}

static void gzip(const uint8_t *data, size_t n)
{
    enum { LIMIT = 1 << 16 };
    uint8_t *out;
    int64_t out_n;
    gradc_error e;
    if (gr_gunzip("fuzz", data, (int64_t)n, LIMIT, GRADC_MAX_UNPACK_RATIO, &out, &out_n, &e) !=
        GRADC_OK)
        return;
    if (out_n > LIMIT || out_n > (int64_t)n * GRADC_MAX_UNPACK_RATIO)
        abort();
    gr_crc32c(0, out, out_n);
    gr_free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    gradc_array a;
    gradc_error e;
    if (n < 2)
        return 0;
    switch (data[0] % 4) {
    case 0:
        check(gradc_idx_parse("fuzz", data + 2, n - 2, &a, &e), &a, &e);
        break;
    case 1:
        csv(data[1], data + 2, n - 2);
        break;
    case 2:
        gzip(data + 2, n - 2);
        break;
    default:
        number(data + 2, n - 2);
        break;
    }
    return 0;
}
