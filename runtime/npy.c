/* npy files. source: numpy/lib/format.py, "NPY format". */
#include "file.h"

#include <string.h>

static const char magic[] = "\x93NUMPY";
enum { MAGIC = 6 };

/* What numpy writes for each dtype; single bytes have no order, hence '|'. */
static const char *const descr[] = {
    [GRADC_F32] = "<f4", [GRADC_F64] = "<f8", [GRADC_F16] = "<f2", [GRADC_BF16] = NULL,
    [GRADC_I32] = "<i4", [GRADC_I64] = "<i8", [GRADC_U8] = "|u1",  [GRADC_BOOL] = "|b1",
};
enum { DTYPES = sizeof descr / sizeof descr[0] };

/* The header's Python literal and a place in it. */
typedef struct Literal {
    const char *name, *text;
    int64_t n, at;
    int64_t offset; /* of text in the file */
    gradc_error *e;
} Literal;

static int bad(const Literal *p, const char *what)
{
    return gr_fail_at(p->e, GRADC_FORMAT, p->offset + p->at, "%s: npy header, byte %lld: %s",
                      p->name, (long long)(p->offset + p->at), what);
}

static void blanks(Literal *p)
{
    while (p->at < p->n && p->text[p->at] == ' ')
        p->at++;
}

/* Takes the text `s` after blanks if it is next. */
static bool take(Literal *p, const char *s)
{
    int64_t n = (int64_t)strlen(s);
    blanks(p);
    if (!range_inside(p->at, n, p->n) || memcmp(p->text + p->at, s, (size_t)n) != 0)
        return false;
    p->at += n;
    return true;
}

/* A string without escapes, in either kind of quotes, into out. */
static bool take_string(Literal *p, char *out, int64_t room)
{
    blanks(p);
    if (p->at >= p->n || (p->text[p->at] != '\'' && p->text[p->at] != '"'))
        return false;
    char quote = p->text[p->at++];
    int64_t n = 0;
    while (p->at < p->n && p->text[p->at] != quote && p->text[p->at] != '\\' && n < room - 1)
        out[n++] = p->text[p->at++];
    out[n] = '\0';
    if (p->at >= p->n || p->text[p->at] != quote)
        return false;
    p->at++;
    return true;
}

/* Decimal without sign or leading zeros. */
static bool take_size(Literal *p, int64_t *out)
{
    int64_t v = 0, digits = 0;
    blanks(p);
    int64_t begin = p->at;
    for (; p->at < p->n && p->text[p->at] >= '0' && p->text[p->at] <= '9'; p->at++, digits++)
        if (!size_mul(v, 10, &v) || !size_add(v, p->text[p->at] - '0', &v))
            return false;
    *out = v;
    return digits > 0 && (digits == 1 || p->text[begin] != '0');
}

static int take_dtype(Literal *p, gradc_array *a)
{
    char s[8];
    if (take(p, "["))
        return bad(p, "records (structured types) are not read");
    if (!take_string(p, s, sizeof s))
        return bad(p, "descr is not a short string");
    for (int32_t i = 0; i < DTYPES; i++)
        if (descr[i] != NULL && strcmp(s, descr[i]) == 0) {
            a->dtype = i;
            return GRADC_OK;
        }
    if (strchr(s, 'O') != NULL)
        return bad(p, "holds Python objects (pickles), which are never read");
    if (s[0] == '>')
        return bad(p, "big-endian data are not read");
    return bad(p, "a type other than f2 f4 f8 i4 i8 u1 b1");
}

static int take_shape(Literal *p, gradc_array *a)
{
    if (!take(p, "("))
        return bad(p, "shape is not a tuple");
    while (!take(p, ")")) {
        if (a->rank == GRADC_MAX_RANK)
            return bad(p, "more than 8 dimensions");
        if (!take_size(p, &a->shape[a->rank++]))
            return bad(p, "a size that is not a number of 0 to 2^40");
        if (take(p, ","))
            continue;
        if (a->rank == 1 || !take(p, ")")) /* (3) is no tuple in Python */
            return bad(p, "',' or ')' expected");
        return GRADC_OK;
    }
    return GRADC_OK;
}

static int take_key(Literal *p, gradc_array *a, bool *fortran, unsigned *seen)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    char key[16];
    unsigned k = 0;
    if (!take_string(p, key, sizeof key))
        return bad(p, "a key expected");
    while (k < 3 && strcmp(key, keys[k]) != 0)
        k++;
    if (k == 3 || (*seen & 1u << k) != 0)
        return bad(p, "a key that is unknown or there twice");
    *seen |= 1u << k;
    if (!take(p, ":"))
        return bad(p, "':' expected");
    if (k == 0)
        return take_dtype(p, a);
    if (k == 2)
        return take_shape(p, a);
    *fortran = take(p, "True");
    return *fortran || take(p, "False") ? GRADC_OK : bad(p, "neither True nor False");
}

/* { 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } and blanks up to a newline. */
static int take_header(Literal *p, gradc_array *a, bool *fortran)
{
    unsigned seen = 0;
    if (!take(p, "{"))
        return bad(p, "'{' expected");
    while (!take(p, "}")) {
        int status = take_key(p, a, fortran, &seen);
        if (status != GRADC_OK)
            return status;
        if (!take(p, ",") && (p->at >= p->n || p->text[p->at] != '}'))
            return bad(p, "',' or '}' expected");
    }
    if (seen != 7)
        return bad(p, "descr, fortran_order or shape is missing");
    blanks(p);
    if (p->at != p->n - 1 || p->text[p->at] != '\n')
        return bad(p, "does not end with blanks and a newline");
    return GRADC_OK;
}

/* Column-major `from` into row-major `to`: walks `to` in order. */
static void transpose(const gradc_array *a, const char *from, char *to)
{
    int64_t unit = gradc_dtype_bytes(a->dtype), at[GRADC_MAX_RANK] = {0}, stride[GRADC_MAX_RANK];
    int64_t step = unit, offset = 0;
    for (int32_t d = 0; d < a->rank; d++) {
        stride[d] = step;
        step *= a->shape[d]; /* at most a->bytes, which was checked */
    }
    for (int64_t i = 0; i < a->elems; i++) {
        memcpy(to + i * unit, from + offset, (size_t)unit);
        for (int32_t d = a->rank - 1; d >= 0; d--) {
            offset += stride[d];
            if (++at[d] < a->shape[d])
                break;
            offset -= stride[d] * a->shape[d];
            at[d] = 0;
        }
    }
}

/* Where the header begins and how long it is. */
static int measure(const char *name, const uint8_t *b, int64_t n, int64_t *begin, int64_t *length,
                   gradc_error *e)
{
    if (!gr_looks_npy(b, n))
        return gr_fail_at(e, GRADC_FORMAT, 0, "%s: no npy file: it does not begin with \\x93NUMPY",
                          name);
    if (n < 10 || b[6] < 1 || b[6] > 3 || b[7] != 0)
        return gr_fail_at(e, GRADC_FORMAT, 6, "%s: npy version %d.%d; 1.0, 2.0 and 3.0 are read",
                          name, n > 6 ? b[6] : 0, n > 7 ? b[7] : 0);
    *begin = b[6] == 1 ? 10 : 12;
    *length = b[8] | b[9] << 8;
    if (n < *begin)
        return gr_fail_at(e, GRADC_FORMAT, n, "%s: ends inside the npy header", name);
    if (b[6] > 1)
        *length |= (int64_t)b[10] << 16 | (int64_t)b[11] << 24;
    if (*length > GRADC_MAX_NPY_HEADER)
        return gr_fail_at(e, GRADC_FORMAT, 8, "%s: an npy header of %lld bytes; %d are the limit",
                          name, (long long)*length, GRADC_MAX_NPY_HEADER);
    if (!range_inside(*begin, *length, n))
        return gr_fail_at(e, GRADC_FORMAT, n, "%s: ends inside the npy header", name);
    return GRADC_OK;
}

int gradc_npy_parse(const char *name, const void *bytes, size_t n, gradc_array *out, gradc_error *e)
{
    gradc_array a = {0};
    int64_t begin = 0, length = 0;
    bool fortran = false;
    if (out == NULL || name == NULL || (n > 0 && bytes == NULL) || n > INT64_MAX)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "gradc_npy_parse: an argument is missing");
    *out = a;
    int status = measure(name, bytes, (int64_t)n, &begin, &length, e);
    if (status != GRADC_OK)
        return status;
    Literal p = {
        .name = name, .text = (const char *)bytes + begin, .n = length, .offset = begin, .e = e};
    status = take_header(&p, &a, &fortran);
    if (status != GRADC_OK)
        return status;
    int64_t have = (int64_t)n - begin - length;
    if (!gr_shape_size(a.dtype, a.rank, a.shape, &a.elems, &a.bytes) || a.bytes != have) {
        char text[GR_SHAPE_TEXT];
        return gr_fail_at(e, GRADC_FORMAT, begin + length, "%s: %lld bytes of data for %s", name,
                          (long long)have,
                          gr_shape_text(text, sizeof text, a.dtype, a.rank, a.shape));
    }
    status = gr_array_new(a.dtype, a.rank, a.shape, out, e);
    if (status != GRADC_OK || a.bytes == 0)
        return status;
    const char *data = (const char *)bytes + begin + length;
    if (fortran && a.rank > 1)
        transpose(&a, data, out->data);
    else
        memcpy(out->data, data, (size_t)a.bytes);
    return status;
}

bool gr_looks_npy(const uint8_t *bytes, int64_t n)
{
    return n >= MAGIC && memcmp(bytes, magic, MAGIC) == 0;
}

int gradc_npy_write(const char *path, const gradc_array *a, gradc_error *e)
{
    enum { ALIGN = 64, BEGIN = 10 };
    Text t = {0};
    Save s;
    int64_t elems, bytes;
    if (a == NULL || !gr_shape_size(a->dtype, a->rank, a->shape, &elems, &bytes) ||
        (bytes > 0 && a->data == NULL))
        return gr_fail(e, GRADC_BAD_ARGUMENT, "gradc_npy_write: no such array");
    if (descr[a->dtype] == NULL)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "npy files cannot hold %s; cast it to f32",
                       gradc_dtype_name(a->dtype));
    gr_text_add(&t, magic, MAGIC);
    gr_text_add(&t, "\1\0\0\0", 4);
    gr_text_puts(&t, "{'descr': '");
    gr_text_puts(&t, descr[a->dtype]);
    gr_text_puts(&t, "', 'fortran_order': False, 'shape': (");
    for (int32_t i = 0; i < a->rank; i++) {
        gr_text_int(&t, a->shape[i]);
        gr_text_puts(&t, i + 1 < a->rank ? ", " : a->rank == 1 ? "," : "");
    }
    gr_text_puts(&t, "), }");
    while (!t.failed && (t.n + 1) % ALIGN != 0)
        gr_text_puts(&t, " ");
    gr_text_puts(&t, "\n");
    if (t.failed) {
        gr_text_free(&t);
        return gr_fail_memory(e, "an npy header", 256);
    }
    t.bytes[8] = (char)((t.n - BEGIN) & 0xFF);
    t.bytes[9] = (char)((t.n - BEGIN) >> 8);
    int status = gr_save_begin(&s, path, e);
    if (status == GRADC_OK)
        status = gr_save_write(&s, t.bytes, t.n, e);
    if (status == GRADC_OK)
        status = gr_save_write(&s, a->data, bytes, e);
    gr_text_free(&t);
    return gr_save_end(&s, status, false, e);
}
