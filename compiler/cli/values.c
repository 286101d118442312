#include "values.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static Values values_make(Arena *a, const gradc_tensor *t, int32_t n)
{
    Values v = {.tensor = t, .n = n};
    v.block = arena_alloc(a, sizeof(gradc_block) + sizeof(void *) * (size_t)(n + 1));
    for (int32_t i = 0; i < n; i++)
        v.block->data[i] = arena_alloc(a, (size_t)t[i].bytes + 1);
    return v;
}

static double unit(uint64_t seed, int64_t i)
{
    return (double)(hash_mix(seed ^ hash_mix((uint64_t)i)) >> 11) * 0x1p-53;
}

static double draw_normal(uint64_t seed, int64_t i)
{
    double u = 1 - unit(seed, 2 * i), w = unit(seed, 2 * i + 1);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * w);
}

/* One of the input's range. */
static int64_t draw_integer(const gradc_tensor *t, uint64_t seed, int64_t i)
{
    uint64_t n = t->lo != t->hi         ? (uint64_t)t->hi - (uint64_t)t->lo
                 : t->dtype == GRADC_U8 ? 256
                                        : 2;
    double at = floor(unit(seed, i) * (double)n);
    return (int64_t)((uint64_t)t->lo + (at < (double)n ? (uint64_t)at : n - 1));
}

static void put_integer(const gradc_tensor *t, void *data, int64_t i, int64_t x)
{
    if (t->dtype == GRADC_I64)
        ((int64_t *)data)[i] = x;
    else if (t->dtype == GRADC_I32)
        ((int32_t *)data)[i] = (int32_t)x;
    else
        ((uint8_t *)data)[i] = (uint8_t)x;
}

static void put(const gradc_tensor *t, void *data, int64_t i, double x)
{
    switch (t->dtype) {
    case GRADC_F32:
        ((float *)data)[i] = (float)x;
        break;
    case GRADC_F64:
        ((double *)data)[i] = x;
        break;
    case GRADC_F16:
        ((uint16_t *)data)[i] = f64_to_f16(x);
        break;
    case GRADC_BF16:
        ((uint16_t *)data)[i] = f64_to_bf16(x);
        break;
    default:
        put_integer(t, data, i, (int64_t)x);
        break;
    }
}

/* The number is one of the input's type. */
static bool fits(const gradc_tensor *t, double x)
{
    const double two63 = 9223372036854775808.0;
    switch (t->dtype) {
    case GRADC_I32:
        return x == floor(x) && x >= INT32_MIN && x <= INT32_MAX;
    case GRADC_I64:
        return x == floor(x) && x >= -two63 && x < two63;
    case GRADC_U8:
        return x == floor(x) && x >= 0 && x <= UINT8_MAX;
    case GRADC_BOOL:
        return x == 0 || x == 1;
    default:
        return !isfinite(x) || isfinite(dtype_round((DType)t->dtype, x));
    }
}

static void draw_input(const gradc_tensor *t, void *data, uint64_t seed)
{
    for (int64_t i = 0; i < t->elems; i++)
        if (t->dtype <= GRADC_BF16)
            put(t, data, i, draw_normal(seed, i));
        else
            put_integer(t, data, i, draw_integer(t, seed, i));
}

Values inputs_make(Arena *a, const gradc_model *m, uint64_t seed, int64_t rows_factor)
{
    (void)rows_factor;
    Values v = values_make(a, m->inputs, m->n_inputs);
    for (int32_t i = 0; i < v.n; i++) {
        uint64_t key = hash_bytes(HASH_START ^ seed, v.tensor[i].name, strlen(v.tensor[i].name));
        draw_input(&v.tensor[i], v.block->data[i], key);
    }
    return v;
}

Values results_make(Arena *a, const gradc_model *m)
{
    return values_make(a, m->outputs, m->n_outputs);
}

int32_t values_find(const Values *v, const char *name)
{
    for (int32_t i = 0; i < v->n; i++)
        if (strcmp(v->tensor[i].name, name) == 0)
            return i;
    return -1;
}

static int no_input(const Values *v, const char *name)
{
    const char *names[64];
    int n = 0;
    for (int32_t i = 0; i < v->n && n < 64; i++)
        names[n++] = v->tensor[i].name;
    const char *near = nearest(name, names, n);
    if (near != NULL)
        say("the model has no input `%s`; did you mean `%s`?", name, near);
    else
        say("the model has no input `%s`", name);
    return EXIT_INPUT;
}

/* The number at s, also where an i64 is beyond what a double holds; false: it is not one of the
 * input's type. */
static bool take_number(const gradc_tensor *t, void *data, int64_t i, const char *s, char **end)
{
    errno = 0;
    double x = strtod(s, end);
    bool beyond = errno == ERANGE && isinf(x);
    char *whole_end;
    errno = 0;
    long long whole = strtoll(s, &whole_end, 10);
    bool is_whole = t->dtype == GRADC_I64 && whole_end == *end;
    if (*end == s || (**end != 0 && **end != ',') ||
        (is_whole ? errno != 0 : beyond || !fits(t, x)))
        return false;
    if (i < t->elems && is_whole)
        ((int64_t *)data)[i] = whole;
    else if (i < t->elems) {
        if (t->dtype != GRADC_F64 && isfinite(x)) /* else it would be rounded twice */
            read_to_odd(s, (size_t)(*end - s), &x);
        put(t, data, i, x);
    }
    return true;
}

static int fill_numbers(Values *v, int32_t i, const char *s)
{
    const gradc_tensor *t = &v->tensor[i];
    int64_t n = 0;
    while (*s != 0) {
        char *end;
        if (!take_number(t, v->block->data[i], n, s, &end)) {
            bool number = end != s && (*end == 0 || *end == ',');
            if (number)
                say("--in %s: %.*s is not a number of type %s", t->name, (int)(end - s), s,
                    gradc_dtype_name(t->dtype));
            else
                say("--in %s: `%s` is not a number", t->name, s);
            return EXIT_INPUT;
        }
        n++;
        s = *end == ',' ? end + 1 : end;
    }
    if (n == t->elems)
        return EXIT_OK;
    say("--in %s: %lld numbers for %lld elements", t->name, (long long)n, (long long)t->elems);
    return EXIT_INPUT;
}

static void shape_words(const int64_t *shape, int rank, char *out, size_t size)
{
    size_t n = 0;
    out[0] = 0;
    for (int i = 0; i < rank && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%lld", i > 0 ? "," : "", (long long)shape[i]);
}

static int fill_file(Values *v, int32_t i, const char *path)
{
    const gradc_tensor *t = &v->tensor[i];
    gradc_array a = {0};
    gradc_error e = {0};
    if (gradc_array_read(path, &a, &e) != GRADC_OK) {
        say("%s", e.text);
        return EXIT_FILE;
    }
    bool same =
        a.rank == t->rank && memcmp(a.shape, t->shape, sizeof(int64_t) * (size_t)a.rank) == 0;
    if (!same || a.dtype != t->dtype) {
        char want[160], have[160];
        shape_words(t->shape, t->rank, want, sizeof want);
        shape_words(a.shape, a.rank, have, sizeof have);
        say("%s: %s[%s] for input %s, which is %s[%s]", path, gradc_dtype_name(a.dtype), have,
            t->name, gradc_dtype_name(t->dtype), want);
        gradc_array_free(&a);
        return EXIT_INPUT;
    }
    memcpy(v->block->data[i], a.data, (size_t)a.bytes);
    gradc_array_free(&a);
    return EXIT_OK;
}

int inputs_fill(Values *v, const char *name, const char *from)
{
    int32_t i = values_find(v, name);
    if (i < 0)
        return no_input(v, name);
    bool number = from[0] == 0 || strchr("+-.0123456789", from[0]) != NULL || from[0] == 'i' ||
                  from[0] == 'n';
    size_t n = strlen(from);
    bool file = n > 4 && (strcmp(from + n - 4, ".npy") == 0 || strchr(from, '/') != NULL);
    return number && !file ? fill_numbers(v, i, from) : fill_file(v, i, from);
}

void add_element(Text *t, DType dtype, const void *data, int64_t i)
{
    if (!dtype_is_float(dtype))
        text_add(t, "%lld", (long long)dtype_integer(dtype, data, i));
    else if (dtype == F64)
        text_double(t, dtype_value(dtype, data, i));
    else
        text_float(t, (float)dtype_value(dtype, data, i));
}

EntryFn *entry_fn(const gradc_model *m, int entry)
{
    EntryFn *const fn[N_ENTRIES] = {
        [ENTRY_EVAL] = m->eval, [ENTRY_GRAD] = m->grad, [ENTRY_STEP] = m->step};
    return fn[entry];
}

int longest_entry(const gradc_model *m)
{
    return m->step != NULL ? ENTRY_STEP : m->grad != NULL ? ENTRY_GRAD : ENTRY_EVAL;
}
