/* IDX files (MNIST and its kin): big-endian.
 * source: LeCun, Cortes, Burges, "The MNIST database of handwritten digits", file format. */
#include "internal.h"

#include <string.h>

typedef struct Kind {
    int32_t dtype; /* of the array that it becomes */
    int64_t bytes; /* of one element in the file */
} Kind;

static bool find_kind(uint8_t code, Kind *out)
{
    switch (code) {
    case 0x08: /* u8 */
        *out = (Kind){GRADC_U8, 1};
        return true;
    case 0x09: /* i8 */
        *out = (Kind){GRADC_I32, 1};
        return true;
    case 0x0B: /* i16 */
        *out = (Kind){GRADC_I32, 2};
        return true;
    case 0x0C: /* i32 */
        *out = (Kind){GRADC_I32, 4};
        return true;
    case 0x0D: /* f32 */
        *out = (Kind){GRADC_F32, 4};
        return true;
    case 0x0E: /* f64 */
        *out = (Kind){GRADC_F64, 8};
        return true;
    default:
        return false;
    }
}

static uint64_t big_endian(const uint8_t *p, int64_t bytes)
{
    uint64_t v = 0;
    for (int64_t i = 0; i < bytes; i++)
        v = v << 8 | p[i];
    return v;
}

bool gr_looks_idx(const uint8_t *bytes, int64_t n)
{
    Kind k;
    return n >= 4 && bytes[0] == 0 && bytes[1] == 0 && bytes[3] >= 1 &&
           bytes[3] <= GRADC_MAX_RANK && find_kind(bytes[2], &k);
}

/* Whole elements, each into its place; sign and width are set right on the way. */
static void unpack(const uint8_t *from, uint8_t code, Kind k, gradc_array *a)
{
    for (int64_t i = 0; i < a->elems; i++, from += k.bytes) {
        uint64_t v = big_endian(from, k.bytes);
        uint32_t w = (uint32_t)v;
        if (code == 0x09)
            w = (uint32_t)(int32_t)(int8_t)(uint8_t)v;
        if (code == 0x0B)
            w = (uint32_t)(int32_t)(int16_t)(uint16_t)v;
        if (k.dtype == GRADC_F64)
            memcpy((char *)a->data + i * 8, &v, 8);
        else
            memcpy((char *)a->data + i * 4, &w, 4);
    }
}

static int read_head(const char *name, const uint8_t *b, int64_t n, gradc_array *a, Kind *kind,
                     gradc_error *e)
{
    if (n < 4 || b[0] != 0 || b[1] != 0)
        return gr_fail_at(e, GRADC_FORMAT, 0, "%s: no IDX file: it does not begin with two zeros",
                          name);
    if (!find_kind(b[2], kind))
        return gr_fail_at(e, GRADC_FORMAT, 2, "%s: IDX element type 0x%02x is unknown", name, b[2]);
    a->dtype = kind->dtype;
    a->rank = b[3];
    if (a->rank < 1 || a->rank > GRADC_MAX_RANK)
        return gr_fail_at(e, GRADC_FORMAT, 3, "%s: IDX with %d dimensions; 1 to 8 are read", name,
                          b[3]);
    if (n < 4 + 4 * (int64_t)a->rank)
        return gr_fail_at(e, GRADC_FORMAT, n, "%s: ends inside the IDX header", name);
    for (int32_t i = 0; i < a->rank; i++)
        a->shape[i] = (int64_t)big_endian(b + 4 + 4 * i, 4);
    return GRADC_OK;
}

int gradc_idx_parse(const char *name, const void *bytes, size_t size, gradc_array *out,
                    gradc_error *e)
{
    gradc_array a = {0};
    Kind kind = {0};
    int64_t elems, memory, need, n = (int64_t)size;
    if (out == NULL || name == NULL || (size > 0 && bytes == NULL) || size > INT64_MAX)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "gradc_idx_parse: an argument is missing");
    *out = a;
    int status = read_head(name, bytes, n, &a, &kind, e);
    if (status != GRADC_OK)
        return status;
    int64_t head = 4 + 4 * (int64_t)a.rank;
    if (!gr_shape_size(a.dtype, a.rank, a.shape, &elems, &memory) ||
        !size_mul(elems, kind.bytes, &need) || need != n - head) {
        char text[GR_SHAPE_TEXT];
        return gr_fail_at(e, GRADC_FORMAT, head, "%s: %lld bytes of data for %s", name,
                          (long long)(n - head),
                          gr_shape_text(text, sizeof text, a.dtype, a.rank, a.shape));
    }
    status = gr_array_new(a.dtype, a.rank, a.shape, out, e);
    if (status != GRADC_OK || elems == 0)
        return status;
    const uint8_t *data = (const uint8_t *)bytes + head;
    if (a.dtype == GRADC_U8)
        memcpy(out->data, data, (size_t)need);
    else
        unpack(data, ((const uint8_t *)bytes)[2], kind, out);
    return status;
}
