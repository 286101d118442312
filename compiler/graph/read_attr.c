/* Values of attributes in the text of a graph. */
#include "read.h"

#include <math.h>
#include <string.h>

static bool read_number(Reader *r, DType t, double *out)
{
    bool minus = read_token(r, "-");
    if (read_token(r, "inf")) {
        *out = minus ? -INFINITY : INFINITY;
        return true;
    }
    if (read_token(r, "nan")) {
        *out = NAN;
        return true;
    }
    int32_t from = r->at;
    while (r->at < r->end && strchr("0123456789.eE+-", r->text[r->at]) != NULL &&
           r->text[r->at] != '\0')
        r->at++;
    const char *text = r->text + from;
    size_t n = (size_t)(r->at - from);
    if (!(t == F64 ? read_double(text, n, out) : read_to_odd(text, n, out))) {
        r->at = from;
        return read_error(r, "a number");
    }
    *out = minus ? -*out : *out;
    return true;
}

/* Calls `each` for the elements of "[a, b, c]". */
static void read_list(Reader *r, void (*each)(Reader *r, void *to), void *to)
{
    read_expect(r, "[");
    for (bool first = true; !r->failed && !read_token(r, "]"); first = false) {
        if (!first && !read_expect(r, ","))
            return;
        each(r, to);
    }
}

typedef struct Ints {
    VEC(int64_t) v;
} Ints;

static void one_int(Reader *r, void *to)
{
    Ints *ints = to;
    int64_t i = 0;
    read_int(r, &i);
    vec_push(&r->cx->perm, &ints->v, i);
}

typedef struct Maps {
    VEC(MapDim) v;
} Maps;

/* One term of a map: "2*i3", "i3" or "2", behind its sign. */
static bool read_term(Reader *r, int64_t sign, MapDim *m)
{
    int64_t c = 1, index = 0;
    bool has_index = read_token(r, "i");
    if (!has_index) {
        if (!read_int(r, &c) || c < 0 || c > INT64_C(1) << 50)
            return read_error(r, "a coefficient up to 2^50");
        has_index = read_token(r, "*");
        if (has_index && !read_expect(r, "i"))
            return false;
    }
    if (!has_index) {
        m->base += sign * c;
        return true;
    }
    if (!read_int(r, &index) || index < 0 || index >= MAX_INDICES)
        return read_error(r, "an index from i0 to i15");
    if (m->n == sizeof m->coef / sizeof *m->coef && map_coef(m, (int)index) == 0)
        return read_error(r, "at most 4 indices in a map");
    *m = map_term(*m, (int)index, sign * c);
    return true;
}

static void one_map(Reader *r, void *to)
{
    Maps *maps = to;
    MapDim m = map_const(0);
    bool minus = read_token(r, "-"), more = true;
    while (more && read_term(r, minus ? -1 : 1, &m)) {
        minus = read_token(r, "-");
        more = minus || read_token(r, "+");
    }
    vec_push(&r->cx->perm, &maps->v, m);
}

/* ---- elements ------------------------------------------------------------------------- */

typedef struct Data {
    DType dtype;
    Text bytes;
} Data;

static void put_float(Data *d, double x)
{
    float f = (float)x;
    uint16_t half = d->dtype == F16 ? f64_to_f16(x) : f64_to_bf16(x);
    if (d->dtype == F64)
        text_put(&d->bytes, (const char *)&x, sizeof x);
    else if (d->dtype == F32)
        text_put(&d->bytes, (const char *)&f, sizeof f);
    else
        text_put(&d->bytes, (const char *)&half, sizeof half);
}

static void put_int(Data *d, int64_t x)
{
    int32_t i = (int32_t)x;
    uint8_t byte = d->dtype == BOOL ? x != 0 : (uint8_t)x;
    if (d->dtype == I64)
        text_put(&d->bytes, (const char *)&x, sizeof x);
    else if (d->dtype == I32)
        text_put(&d->bytes, (const char *)&i, sizeof i);
    else
        text_put(&d->bytes, (const char *)&byte, sizeof byte);
}

static void one_element(Reader *r, void *to)
{
    Data *d = to;
    double x = 0;
    int64_t i = 0;
    if (dtype_is_float(d->dtype)) {
        if (read_number(r, d->dtype, &x))
            put_float(d, x);
    } else if (read_int(r, &i)) {
        put_int(d, i);
    }
}

/* ---- attributes ------------------------------------------------------------------------ */

/* The dtype among the attributes read so far: elements and constants are of it. */
static DType dtype_so_far(const Op *op, const Attr *attr)
{
    int i = op_attr(op, "dtype");
    return i < 0 ? F64 : (DType)attr[i].i;
}

static void read_lists(Reader *r, const Op *op, Attr *a, const Attr *attr)
{
    Ints ints = {.v = {0}};
    Maps maps = {.v = {0}};
    Data data = {.dtype = dtype_so_far(op, attr)};
    if (a->kind == ATTR_INTS) {
        read_list(r, one_int, &ints);
        a->n = ints.v.n;
        a->ints = ints.v.at;
    } else if (a->kind == ATTR_MAP) {
        read_list(r, one_map, &maps);
        a->n = maps.v.n;
        a->map = maps.v.at;
    } else {
        text_init(&data.bytes, &r->cx->perm);
        read_list(r, one_element, &data);
        a->n = (int32_t)data.bytes.n;
        a->data = data.bytes.at;
    }
}

static void read_scalar(Reader *r, const Op *op, Attr *a, const Attr *attr)
{
    DType t = F32;
    if (a->kind == ATTR_BOOL) {
        const char *word = read_word(r);
        a->i = strcmp(word, "true") == 0;
        if (a->i == 0 && strcmp(word, "false") != 0)
            read_error(r, "true or false before this");
    } else if (a->kind == ATTR_DTYPE) {
        if (!dtype_find(read_word(r), &t))
            read_error(r, "an element type before this");
        a->i = t;
    } else if (a->kind == ATTR_FLOAT && dtype_is_float(dtype_so_far(op, attr))) {
        read_number(r, dtype_so_far(op, attr), &a->f);
        a->f = dtype_round(dtype_so_far(op, attr), a->f);
    } else { /* the value of an integer constant, too */
        a->kind = ATTR_INT;
        read_int(r, &a->i);
    }
}

void read_attr(Reader *r, const Op *op, int i, Attr *attr)
{
    Attr *a = &attr[i];
    switch (a->kind) {
    case ATTR_INTS:
    case ATTR_MAP:
    case ATTR_DATA:
        read_lists(r, op, a, attr);
        break;
    case ATTR_NAME:
        a->name = read_string(r);
        break;
    case ATTR_BODY:
        a->body = read_body(r);
        break;
    default:
        read_scalar(r, op, a, attr);
    }
}
