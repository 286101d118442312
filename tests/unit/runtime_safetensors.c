/* safetensors files: the format, and files that are not quite in it. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/internal.h"
#include "support/runtime_help.h"

static gradc_error error;

/* A file of this JSON, padded by nothing, and n bytes of data (1, 2, 3…). */
typedef struct File {
    uint8_t bytes[4096];
    size_t n;
} File;

static File file_of(const char *json, size_t data)
{
    File f = {.n = 8 + strlen(json) + data};
    for (int i = 0; i < 8; i++)
        f.bytes[i] = (uint8_t)((uint64_t)strlen(json) >> (8 * i));
    memcpy(f.bytes + 8, json, strlen(json));
    for (size_t i = 0; i < data; i++)
        f.bytes[f.n - data + i] = (uint8_t)(i + 1);
    return f;
}

static int parse(const File *f)
{
    gradc_tensors *t;
    int status = gradc_tensors_parse("t", f->bytes, f->n, &t, &error);
    ck_assert(status == GRADC_OK ? t != NULL : t == NULL && error.text[0] != '\0');
    ck_assert_int_eq(error.status, status);
    gradc_tensors_free(t);
    return status;
}

#define A "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"

START_TEST(good_headers)
{
    static const struct {
        const char *json;
        size_t data;
    } good[] = {
        {"{}", 0},
        {"{" A "}", 8},
        {"{" A "}   ", 8},
        {"{ " A " , \"b\" : {\"shape\":[],\"data_offsets\":[8,9],\"dtype\":\"U8\"}}", 9},
        {"{\"z\":{\"dtype\":\"F64\",\"shape\":[0,3],\"data_offsets\":[8,8]}," A "}", 8},
        {"{\"z\":{\"dtype\":\"F64\",\"shape\":[0,3],\"data_offsets\":[0,0]}," A "}", 8},
        {"{\"__metadata__\":{}," A "}", 8},
        {"{\"__metadata__\":{\"k\":\"v\",\"\":\"\"}," A "}", 8},
        {"{\"\":{\"dtype\":\"BOOL\",\"shape\":[1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1},
        {"{\"a\\u00e9\\\\\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        File f = file_of(good[i].json, good[i].data);
        ck_assert_msg(parse(&f) == GRADC_OK, "%s: %s", good[i].json, error.text);
    }
}
END_TEST

#define T(dtype, shape, offsets)                                                                   \
    "{\"a\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

START_TEST(bad_headers)
{
    static const struct {
        const char *json;
        size_t data;
        const char *says;
    } bad[] = {
        {" {" A "}", 8, "does not begin with '{'"},
        {"[]", 0, "does not begin with '{'"},
        {"", 0, "does not begin with '{'"},
        {"{" A "}x", 8, "JSON"},
        {"{" A "," A "}", 8, "duplicate"},
        {"{" A "}", 7, "of 7"},
        {"{" A "}", 9, "8 of 9"},
        {"{" A ",\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[9,10]}}", 10, "hole"},
        {"{" A ",\"b\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}", 8, "overlap"},
        {"{" A ",\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[7,9]}}", 9, "overlap"},
        {"{\"a\":3}", 0, "not just"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "not just"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":1}}", 8, "not just"},
        {T("\"F8\"", "[2]", "[0,8]"), 8, "dtype"},
        {T("32", "[2]", "[0,8]"), 8, "dtype"},
        {T("\"F32\"", "2", "[0,8]"), 8, "shape"},
        {T("\"F32\"", "[2.0]", "[0,8]"), 8, "shape"},
        {T("\"F32\"", "[2e0]", "[0,8]"), 8, "shape"},
        {T("\"F32\"", "[-2]", "[0,8]"), 8, "shape"},
        {T("\"F32\"", "[\"2\"]", "[0,8]"), 8, "shape"},
        {T("\"F32\"", "[true]", "[0,8]"), 8, "shape"},
        {T("\"F32\"", "[02]", "[0,8]"), 8, "JSON"},
        {T("\"U8\"", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), 1, "at most 8"},
        {T("\"U8\"", "[1099511627777]", "[0,1099511627777]"), 8, "2^40"},
        {T("\"F64\"", "[1099511627776,17]", "[0,8]"), 8, "2^47"},
        {T("\"U8\"", "[1099511627776,1099511627776,16]", "[0,8]"), 8, "2^47"},
        {T("\"U8\"", "[9223372036854775808]", "[0,8]"), 8, "JSON"},
        {T("\"U8\"", "[18446744073709551615]", "[0,8]"), 8, "JSON"},
        {T("\"F32\"", "[2]", "[0,8,8]"), 8, "two sizes"},
        {T("\"F32\"", "[2]", "[8]"), 8, "two sizes"},
        {T("\"F32\"", "[2]", "[8,0]"), 8, "needs 8"},
        {T("\"F32\"", "[2]", "[-8,0]"), 8, "two sizes"},
        {T("\"F32\"", "[3]", "[0,8]"), 8, "f32[3] needs 12"},
        {T("\"F32\"", "[2]", "[1,9]"), 9, "hole"},
        {T("\"F32\"", "[0]", "[8,8]"), 8, "hole"},
        {"{\"__metadata__\":[]," A "}", 8, "not an object"},
        {"{\"__metadata__\":{\"k\":1}," A "}", 8, "'k' is not a string"},
        {"{\"__metadata__\":{\"k\":\"\\u0000\"}," A "}", 8, "JSON"},
        {"{\"__metadata__\":{\"gradc.x\":\"1\"}," A "}", 8, "checksum"},
        {"{\"a\xff\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}", 8, "JSON"},
        {"{\"a\\u0000b\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}", 8, "JSON"},
        {"{'a':{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}", 8, "JSON"},
        {"{/**/" A "}", 8, "JSON"},
        {"{" A ",}", 8, "JSON"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        File f = file_of(bad[i].json, bad[i].data);
        ck_assert_msg(parse(&f) == GRADC_FORMAT, "%s was taken", bad[i].json);
        ck_assert_msg(strstr(error.text, bad[i].says) != NULL, "%s: %s", bad[i].json, error.text);
    }
}
END_TEST

/* The list of the format's attacks/README: huge length, giant JSON, overlap, outside, negative,
 * wrong sizes; a file that changes while it is mapped is not possible here, it is copied. */
START_TEST(attacks)
{
    File f = file_of("{" A "}", 8);
    static const uint64_t lengths[] = {
        UINT64_MAX, UINT64_C(1) << 63, INT64_MAX, GRADC_MAX_HEADER_BYTES + 1, 1 << 20, 4096};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        memcpy(f.bytes, &lengths[i], 8);
        ck_assert_int_eq(parse(&f), GRADC_FORMAT);
    }
    /* 100,000 nested arrays */
    size_t n = 200000;
    char *deep = malloc(n + 16);
    uint64_t length = n + 8;
    memcpy(deep, &length, 8);
    memcpy(deep + 8, "{\"a\":", 5);
    memset(deep + 13, '[', n);
    gradc_tensors *t;
    ck_assert_int_eq(gradc_tensors_parse("deep", deep, n + 16, &t, &error), GRADC_FORMAT);
    free(deep);
}
END_TEST

/* A header of exactly 16 MiB is read, of one byte more is not. */
START_TEST(header_limit)
{
    static const char json[] = "{" A "}";
    size_t n = 8 + GRADC_MAX_HEADER_BYTES + 8;
    uint8_t *b = malloc(n + 1);
    for (int more = 0; more < 2; more++) {
        uint64_t length = (uint64_t)GRADC_MAX_HEADER_BYTES + (uint64_t)more;
        memset(b, ' ', n + 1);
        memcpy(b, &length, 8);
        memcpy(b + 8, json, sizeof json - 1);
        gradc_tensors *t;
        int status = gradc_tensors_parse("limit", b, n + (size_t)more, &t, &error);
        ck_assert_msg(status == (more ? GRADC_FORMAT : GRADC_OK), "%s", error.text);
        gradc_tensors_free(t);
    }
    free(b);
}
END_TEST

/* name_bytes long in the name, text_bytes in a metadata value. */
static int parse_long(size_t name_bytes, size_t text_bytes)
{
    size_t room = name_bytes + text_bytes + 256;
    char *b = calloc(1, room), *name = calloc(1, name_bytes + 1), *text = calloc(1, text_bytes + 1);
    memset(name, 'n', name_bytes);
    memset(text, 't', text_bytes);
    int n = snprintf(b + 8, room - 8,
                     "{\"__metadata__\":{\"k\":\"%s\"},\"%s\":{\"dtype\":\"U8\",\"shape\":[0],"
                     "\"data_offsets\":[0,0]}}",
                     text, name);
    uint64_t length = (uint64_t)n;
    memcpy(b, &length, 8);
    gradc_tensors *t;
    int status = gradc_tensors_parse("long", b, 8 + (size_t)n, &t, &error);
    if (status == GRADC_OK)
        ck_assert(gradc_tensors_find(t, name) != NULL && gradc_tensors_value(t, "k") != NULL);
    gradc_tensors_free(t);
    free(b);
    free(name);
    free(text);
    return status;
}

START_TEST(string_limits)
{
    ck_assert_int_eq(parse_long(GRADC_MAX_NAME_BYTES, GRADC_MAX_STRING_BYTES), GRADC_OK);
    ck_assert_int_eq(parse_long(GRADC_MAX_NAME_BYTES + 1, 1), GRADC_FORMAT);
    ck_assert_int_eq(parse_long(1, GRADC_MAX_STRING_BYTES + 1), GRADC_FORMAT);
}
END_TEST

static gradc_named tensor(const char *name, int32_t dtype, const void *data, int32_t rank,
                          int64_t a, int64_t b)
{
    return (gradc_named){.name = name, .dtype = dtype, .rank = rank, .shape = {a, b}, .data = data};
}

/* The example of the reference implementation's own tests, byte for byte. */
START_TEST(bytes_of_the_reference)
{
    static const char head[] =
        "@\0\0\0\0\0\0\0{\"attn.0\":{\"dtype\":\"F32\",\"shape\":[1,2,3],\"data_offsets\":[0,24]}}";
    char *d = help_directory();
    const char *path = help_path(d, "a.safetensors");
    float v[6] = {0, 1, 2, 3, 4, 5};
    gradc_named x = {
        .name = "attn.0", .dtype = GRADC_F32, .rank = 3, .shape = {1, 2, 3}, .data = v};
    ck_assert_int_eq(gradc_tensors_write(path, &x, 1, NULL, 0, &error), GRADC_OK);
    int64_t n;
    uint8_t *b = help_read(path, &n);
    ck_assert_int_eq(n, 72 + 24);
    ck_assert(memcmp(b, head, 72) == 0 && memcmp(b + 72, v, 24) == 0);
    free(b);
    x.name = "attn0"; /* one byte less: padded to 8 with a blank */
    ck_assert_int_eq(gradc_tensors_write(path, &x, 1, NULL, 0, &error), GRADC_OK);
    b = help_read(path, &n);
    ck_assert(n == 72 + 24 && b[0] == 64 && b[71] == ' ' && b[70] == '}');
    free(b);
    ck_assert_int_eq(help_entries(d), 1);
    help_remove(d);
}
END_TEST

START_TEST(round_trip)
{
    char *d = help_directory();
    const char *path = help_path(d, "r.safetensors");
    uint8_t u8[3] = {1, 2, 3}, flag[1] = {1};
    uint16_t half[2] = {0x3C00, 0x4000};
    int32_t i32[2] = {-1, 7};
    int64_t i64[1] = {INT64_MIN};
    float f32[4] = {1, 2, 3, 4};
    double f64[2] = {0.5, -0.25};
    gradc_named list[] = {
        tensor("u", GRADC_U8, u8, 1, 3, 0),
        tensor("flag", GRADC_BOOL, flag, 0, 0, 0),
        tensor("h", GRADC_F16, half, 1, 2, 0),
        tensor("b", GRADC_BF16, half, 2, 1, 2),
        tensor("i", GRADC_I32, i32, 1, 2, 0),
        tensor("l", GRADC_I64, i64, 1, 1, 0),
        tensor("f.1", GRADC_F32, f32, 2, 2, 2),
        tensor("d", GRADC_F64, f64, 1, 2, 0),
        tensor("empty", GRADC_F32, NULL, 2, 0, 5),
        tensor("\"q\"\\\n\x01\xC3\xA9", GRADC_U8, u8, 1, 1, 0),
    };
    gradc_pair pairs[] = {{"format", "pt"}, {"note", "a \"b\"\t\xE2\x82\xAC"}};
    int64_t n = sizeof list / sizeof list[0];
    ck_assert_int_eq(gradc_tensors_write(path, list, n, pairs, 2, &error), GRADC_OK);
    gradc_tensors *t;
    ck_assert_msg(gradc_tensors_read(path, &t, &error) == GRADC_OK, "%s", error.text);
    ck_assert_int_eq(gradc_tensors_count(t), n);
    for (int64_t i = 0; i < n; i++) {
        const gradc_named *x = gradc_tensors_find(t, list[i].name);
        ck_assert(x != NULL && x->dtype == list[i].dtype && x->rank == list[i].rank);
        ck_assert(memcmp(x->shape, list[i].shape, sizeof x->shape) == 0);
        ck_assert_uint_eq((uintptr_t)x->data % 64, 0);
        ck_assert(x->bytes == 0 || memcmp(x->data, list[i].data, (size_t)x->bytes) == 0);
    }
    ck_assert_str_eq(gradc_tensors_at(t, 0)->name, "l"); /* the reference's order */
    ck_assert_str_eq(gradc_tensors_at(t, n - 1)->name, "flag");
    ck_assert(gradc_tensors_at(t, n) == NULL && gradc_tensors_at(t, -1) == NULL);
    ck_assert(gradc_tensors_find(t, "nothing") == NULL);
    ck_assert_int_eq(gradc_tensors_pairs(t), 2);
    ck_assert_str_eq(gradc_tensors_pair(t, 0)->key, "format");
    ck_assert_str_eq(gradc_tensors_value(t, "note"), pairs[1].value);
    ck_assert(gradc_tensors_value(t, "x") == NULL && gradc_tensors_pair(t, 2) == NULL);
    gradc_tensors_free(t);
    gradc_tensors_free(NULL);
    help_remove(d);
}
END_TEST

static int write_one(const char *name, const char *key)
{
    char *d = help_directory();
    gradc_named x = tensor(name, GRADC_U8, "x", 1, 1, 0);
    gradc_pair p = {key, ""};
    int status = gradc_tensors_write(help_path(d, "w"), &x, 1, &p, key != NULL, &error);
    ck_assert_int_eq(help_entries(d), status == GRADC_OK);
    help_remove(d);
    return status;
}

START_TEST(what_cannot_be_written)
{
    char name[GRADC_MAX_NAME_BYTES + 2] = {0}, *text = calloc(1, GRADC_MAX_STRING_BYTES + 2);
    memset(name, 'n', GRADC_MAX_NAME_BYTES);
    ck_assert_int_eq(write_one(name, NULL), GRADC_OK);
    name[GRADC_MAX_NAME_BYTES] = 'n';
    ck_assert_int_eq(write_one(name, NULL), GRADC_BAD_ARGUMENT);
    memset(text, 't', GRADC_MAX_STRING_BYTES);
    ck_assert_int_eq(write_one("n", text), GRADC_OK);
    text[GRADC_MAX_STRING_BYTES] = 't';
    ck_assert_int_eq(write_one("n", text), GRADC_BAD_ARGUMENT);
    free(text);
    static const char *const bad[] = {
        "\xff",     "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
        "\xE2\x82", "\x80",     "__metadata__", "\xF8\x88\x80\x80\x80"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_int_eq(write_one(bad[i], NULL), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(write_one("\xF4\x8F\xBF\xBF\xED\x9F\xBF\xE0\xA0\x80\xC2\x80", NULL), GRADC_OK);
    ck_assert_int_eq(write_one("n", "\xff"), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(write_one("n", "gradc.x"), GRADC_BAD_ARGUMENT);
    gradc_named two[2] = {tensor("a", GRADC_U8, "x", 1, 1, 0),
                          tensor("a", GRADC_F32, NULL, 1, 0, 0)};
    ck_assert_int_eq(gradc_tensors_write("x", two, 2, NULL, 0, &error), GRADC_BAD_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.text, "two tensors are named 'a'"));
    two[1] = tensor("b", 9, NULL, 1, 0, 0);
    ck_assert_int_eq(gradc_tensors_write("x", two, 2, NULL, 0, &error), GRADC_BAD_ARGUMENT);
    two[1] = tensor("b", GRADC_F32, NULL, 1, 1, 0);
    ck_assert_int_eq(gradc_tensors_write("x", two, 2, NULL, 0, &error), GRADC_BAD_ARGUMENT);
    gradc_pair same[2] = {{"k", "1"}, {"k", "2"}};
    ck_assert_int_eq(gradc_tensors_write("x", two, 1, same, 2, &error), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_tensors_write("x", two, -1, NULL, 0, &error), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_tensors_write("x", two, GRADC_MAX_TENSORS + 1, NULL, 0, &error),
                     GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_tensors_write("x", NULL, 1, NULL, 0, &error), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_tensors_write("x", two, 1, NULL, 1, &error), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_tensors_write("x", two, 1, same, -1, &error), GRADC_BAD_ARGUMENT);
    same[1] = (gradc_pair){"v", NULL};
    ck_assert_int_eq(gradc_tensors_write("x", two, 1, same, 2, &error), GRADC_BAD_ARGUMENT);
    two[1] = tensor(NULL, GRADC_F32, NULL, 1, 0, 0);
    ck_assert_int_eq(gradc_tensors_write("x", two, 2, NULL, 0, &error), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_tensors_write(NULL, two, 1, NULL, 0, &error), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_tensors_write("", two, 1, NULL, 0, &error), GRADC_BAD_ARGUMENT);
}
END_TEST

START_TEST(written_header_limit)
{
    enum { N = 300000 };
    gradc_named *list = calloc(N, sizeof *list);
    char(*names)[12] = calloc(N, sizeof *names);
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "%d", i);
        list[i] = tensor(names[i], GRADC_F32, NULL, 1, 0, 0);
    }
    ck_assert_int_eq(gradc_tensors_write("/none/x", list, N, NULL, 0, &error), GRADC_BAD_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.text, "16777216"));
    char *d = help_directory();
    gradc_tensors *t;
    ck_assert_int_eq(gradc_tensors_write(help_path(d, "x"), list, N / 2, NULL, 0, &error),
                     GRADC_OK);
    ck_assert_int_eq(gradc_tensors_read(help_path(d, "x"), &t, &error), GRADC_OK);
    ck_assert(gradc_tensors_count(t) == N / 2 && gradc_tensors_find(t, "149999") != NULL);
    gradc_tensors_free(t);
    help_remove(d);
    free(list);
    free(names);
}
END_TEST

static File small_file(void)
{
    return file_of("{\"__metadata__\":{\"k\":\"v\"},\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],"
                   "\"data_offsets\":[0,24]},\"b\":{\"dtype\":\"I64\",\"shape\":[1],"
                   "\"data_offsets\":[24,32]}} ",
                   32);
}

START_TEST(every_truncation_is_refused)
{
    File f = small_file();
    ck_assert_int_eq(parse(&f), GRADC_OK);
    size_t whole = f.n;
    for (f.n = 0; f.n < whole; f.n++)
        ck_assert_int_eq(parse(&f), GRADC_FORMAT);
    f.n = whole + 1;
    ck_assert_int_eq(parse(&f), GRADC_FORMAT);
}
END_TEST

/* A plain file has no checksum: a flip may rename a tensor or change metadata, and nothing else. */
START_TEST(every_header_flip_is_refused_or_only_renames)
{
    File f = small_file();
    size_t head = f.n - 32, taken = 0;
    for (size_t bit = 0; bit < 8 * head; bit++) {
        gradc_tensors *t;
        f.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (gradc_tensors_parse("flip", f.bytes, f.n, &t, &error) == GRADC_OK) {
            taken++;
            ck_assert_int_eq(gradc_tensors_count(t), 2);
            const gradc_named *w = gradc_tensors_at(t, 0), *b = gradc_tensors_at(t, 1);
            ck_assert(w->dtype == GRADC_F32 && w->shape[0] == 2 && w->shape[1] == 3);
            ck_assert(b->dtype == GRADC_I64 && b->shape[0] == 1 && b->rank == 1);
            bool renamed = strcmp(w->name, "w") != 0 || strcmp(b->name, "b") != 0;
            const char *v = gradc_tensors_value(t, "k");
            ck_assert(renamed || v == NULL || strcmp(v, "v") != 0);
        }
        gradc_tensors_free(t);
        f.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    ck_assert_uint_le(taken, 8 * 4); /* four letters can change */
}
END_TEST

START_TEST(arguments_and_paths)
{
    gradc_tensors *t = (gradc_tensors *)&error;
    ck_assert_int_eq(gradc_tensors_parse("x", NULL, 8, &t, &error), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_tensors_parse("x", "", 0, NULL, &error), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_tensors_parse("x", NULL, 0, &t, NULL), GRADC_FORMAT);
    ck_assert_int_eq(gradc_tensors_read(NULL, &t, &error), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_tensors_read("/nowhere/x", &t, &error), GRADC_IO);
    ck_assert(error.system != 0 && strstr(error.text, "/nowhere/x") != NULL && t == NULL);
    ck_assert_int_eq(gradc_tensors_read("/dev/null", &t, &error), GRADC_IO);
    ck_assert_int_eq(gradc_tensors_read("/", &t, &error), GRADC_IO);
    ck_assert_int_eq(gradc_tensors_read("x", NULL, &error), GRADC_BAD_ARGUMENT);
}
END_TEST

Suite *suite_runtime_safetensors(void);

Suite *suite_runtime_safetensors(void)
{
    Suite *s = suite_create("runtime_safetensors");
    TCase *c = tcase_create("safetensors");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, good_headers);
    tcase_add_test(c, bad_headers);
    tcase_add_test(c, attacks);
    tcase_add_test(c, header_limit);
    tcase_add_test(c, string_limits);
    tcase_add_test(c, bytes_of_the_reference);
    tcase_add_test(c, round_trip);
    tcase_add_test(c, what_cannot_be_written);
    tcase_add_test(c, written_header_limit);
    tcase_add_test(c, every_truncation_is_refused);
    tcase_add_test(c, every_header_flip_is_refused_or_only_renames);
    tcase_add_test(c, arguments_and_paths);
    suite_add_tcase(s, c);
    return s;
}
