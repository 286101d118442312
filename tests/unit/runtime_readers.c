/* npy, IDX, CSV, raw bytes, gzip. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/internal.h"
#include "support/runtime_help.h"

static gradc_error error;

/* ---- npy ---- */

typedef struct Npy {
    uint8_t bytes[16384];
    size_t n;
} Npy;

/* A file with this header text, padded as numpy does, and `data` bytes 0, 1, 2… */
static Npy npy_of(int version, const char *header, size_t data)
{
    Npy f = {.n = 0};
    size_t begin = version == 1 ? 10 : 12, n = begin + strlen(header) + 1;
    n = (n + 63) / 64 * 64;
    memcpy(f.bytes, "\x93NUMPY", 6);
    f.bytes[6] = (uint8_t)version;
    size_t length = n - begin;
    for (size_t i = 0; i < begin - 8; i++)
        f.bytes[8 + i] = (uint8_t)(length >> (8 * i));
    memset(f.bytes + begin, ' ', length);
    memcpy(f.bytes + begin, header, strlen(header));
    f.bytes[n - 1] = '\n';
    for (size_t i = 0; i < data; i++)
        f.bytes[n + i] = (uint8_t)i;
    f.n = n + data;
    return f;
}

#define NPY(descr, order, shape)                                                                   \
    "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }"

static int parse_npy(const Npy *f, gradc_array *a)
{
    int status = gradc_npy_parse("n", f->bytes, f->n, a, &error);
    ck_assert(status == GRADC_OK || (a->data == NULL && error.text[0] != '\0'));
    return status;
}

START_TEST(npy_good)
{
    static const struct {
        const char *header;
        size_t data;
        int32_t dtype, rank;
    } good[] = {
        {NPY("<f4", "False", "(2, 3)"), 24, GRADC_F32, 2},
        {NPY("<f8", "False", "(3,)"), 24, GRADC_F64, 1},
        {NPY("<f2", "False", "()"), 2, GRADC_F16, 0},
        {NPY("<i4", "True", "(2, 3)"), 24, GRADC_I32, 2},
        {NPY("<i8", "False", "(0, 3)"), 0, GRADC_I64, 2},
        {NPY("|u1", "False", "(5,)"), 5, GRADC_U8, 1},
        {NPY("|b1", "True", "(5,)"), 5, GRADC_BOOL, 1},
        {"{\"shape\": (1,1,1,1,1,1,1,1,),\"descr\":\"|u1\",\"fortran_order\":False}", 1, GRADC_U8,
         8},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        for (int version = 1; version <= 3; version++) {
            gradc_array a;
            Npy f = npy_of(version, good[i].header, good[i].data);
            ck_assert_msg(parse_npy(&f, &a) == GRADC_OK, "%s: %s", good[i].header, error.text);
            ck_assert(a.dtype == good[i].dtype && a.rank == good[i].rank);
            ck_assert_int_eq(a.bytes, (int64_t)good[i].data);
            gradc_array_free(&a);
        }
}
END_TEST

START_TEST(npy_bad)
{
    static const struct {
        const char *header;
        size_t data;
        const char *says;
    } bad[] = {
        {NPY("<f4", "False", "(2, 3)"), 23, "23 bytes of data for f32[2,3]"},
        {NPY("<f4", "False", "(2, 3)"), 25, "25 bytes"},
        {NPY("|O", "False", "(2,)"), 16, "pickles"},
        {NPY("O", "False", "(2,)"), 16, "pickles"},
        {NPY(">f4", "False", "(2,)"), 8, "big-endian"},
        {NPY("<u1", "False", "(2,)"), 2, "other than"},
        {NPY("<U4", "False", "(2,)"), 32, "other than"},
        {NPY("<f4444444444", "False", "(2,)"), 8, "short string"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", 8, "records"},
        {NPY("<f4", "0", "(2,)"), 8, "neither True nor False"},
        {NPY("<f4", "False", "(2)"), 8, "','"},
        {NPY("<f4", "False", "(2,,)"), 8, "size"},
        {NPY("<f4", "False", "(,)"), 4, "size"},
        {NPY("<f4", "False", "(02,)"), 8, "size"},
        {NPY("<f4", "False", "(-2,)"), 8, "size"},
        {NPY("<f4", "False", "(2.0,)"), 8, "','"},
        {NPY("<f4", "False", "[2]"), 8, "tuple"},
        {NPY("|u1", "False", "(1,1,1,1,1,1,1,1,1)"), 1, "8 dimensions"},
        {NPY("|u1", "False", "(1099511627777,)"), 8, "bytes of data"},
        {NPY("|u1", "False", "(99999999999999999999,)"), 8, "size"},
        {NPY("<f4", "False", "(4611686018427387904, 4)"), 0, "0 bytes of data"},
        {"{'descr': '<f4', 'shape': (2,), }", 8, "missing"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 8, "twice"},
        {"{'descr': '<f4', 'x': 1, 'fortran_order': False, 'shape': (2,), }", 8, "unknown"},
        {"{'descr': '<f4' 'fortran_order': False, 'shape': (2,), }", 8, "','"},
        {"{'descr' '<f4', 'fortran_order': False, 'shape': (2,), }", 8, "':'"},
        {"{descr: '<f4', 'fortran_order': False, 'shape': (2,), }", 8, "key"},
        {"['descr']", 8, "'{'"},
        {"", 8, "'{'"},
        {NPY("<f4", "False", "(2,)") " x", 8, "blanks"},
        {NPY("<f4", "False", "(2,)") "\t", 8, "blanks"},
        {NPY("<f4", "False", "(2,)") "\n", 8, "blanks"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        gradc_array a;
        Npy f = npy_of(1, bad[i].header, bad[i].data);
        ck_assert_msg(parse_npy(&f, &a) == GRADC_FORMAT, "%s was taken", bad[i].header);
        ck_assert_msg(strstr(error.text, bad[i].says) != NULL, "%s: %s", bad[i].header, error.text);
    }
}
END_TEST

START_TEST(npy_fortran_order)
{
    gradc_array a;
    Npy f = npy_of(1, NPY("|u1", "True", "(2, 3, 4)"), 24);
    ck_assert_int_eq(parse_npy(&f, &a), GRADC_OK);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 4; k++)
                ck_assert_int_eq(((uint8_t *)a.data)[(i * 3 + j) * 4 + k], i + 2 * j + 6 * k);
    gradc_array_free(&a);
}
END_TEST

START_TEST(npy_header_limit)
{
    gradc_array a;
    for (size_t more = 0; more < 2; more++) {
        Npy f = npy_of(1, NPY("|u1", "False", "(2,)"), 0);
        size_t length = GRADC_MAX_NPY_HEADER + more;
        memset(f.bytes + 10 + strlen(NPY("|u1", "False", "(2,)")), ' ', length);
        f.bytes[8] = (uint8_t)length;
        f.bytes[9] = (uint8_t)(length >> 8);
        f.bytes[10 + length - 1] = '\n';
        f.n = 10 + length + 2;
        ck_assert_msg(parse_npy(&f, &a) == (more ? GRADC_FORMAT : GRADC_OK), "%s", error.text);
        gradc_array_free(&a);
    }
    Npy f = npy_of(2, NPY("|u1", "False", "(2,)"), 2);
    memset(f.bytes + 8, 0xff, 4);
    ck_assert_int_eq(parse_npy(&f, &a), GRADC_FORMAT);
    ck_assert_ptr_nonnull(strstr(error.text, "4294967295"));
}
END_TEST

START_TEST(npy_truncations_and_flips)
{
    gradc_array a;
    Npy f = npy_of(1, NPY("<f4", "False", "(2, 10)"), 80);
    size_t whole = f.n, head = f.n - 80;
    for (f.n = 0; f.n < whole; f.n++)
        ck_assert_int_eq(parse_npy(&f, &a), GRADC_FORMAT);
    for (size_t bit = 0; bit < 8 * head; bit++) {
        f.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        ck_assert_msg(parse_npy(&f, &a) == GRADC_FORMAT, "bit %zu of the header", bit);
        f.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    ck_assert_int_eq(parse_npy(&f, &a), GRADC_OK);
    gradc_array_free(&a);
    f = npy_of(3, NPY("<f4", "False", "(2, 10)"), 80);
    whole = f.n;
    for (f.n = 0; f.n < whole; f.n++)
        ck_assert_int_eq(parse_npy(&f, &a), GRADC_FORMAT);
    ck_assert_int_eq(gradc_npy_parse("x", NULL, 1, &a, &error), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_npy_parse(NULL, "", 0, &a, &error), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_npy_parse("x", "", 0, NULL, &error), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_npy_parse("x", NULL, 0, &a, &error), GRADC_FORMAT);
    ck_assert_int_eq(gradc_npy_read("x", NULL, &error), GRADC_BAD_ARGUMENT);
}
END_TEST

START_TEST(npy_round_trip)
{
    char *d = help_directory();
    const char *path = help_path(d, "a.npy");
    for (int32_t dtype = GRADC_F32; dtype <= GRADC_BOOL; dtype++)
        for (int32_t rank = 0; rank <= 3; rank++) {
            gradc_array a, b;
            int64_t shape[3] = {2, 1, 3};
            ck_assert_int_eq(gradc_array_make(dtype, rank, shape, &a, &error), GRADC_OK);
            for (int64_t i = 0; i < a.bytes; i++)
                ((uint8_t *)a.data)[i] = (uint8_t)(i * 37);
            int status = gradc_npy_write(path, &a, &error);
            ck_assert_int_eq(status, dtype == GRADC_BF16 ? GRADC_BAD_ARGUMENT : GRADC_OK);
            if (status == GRADC_OK) {
                ck_assert_msg(gradc_npy_read(path, &b, &error) == GRADC_OK, "%s", error.text);
                ck_assert(b.dtype == dtype && b.rank == rank && b.bytes == a.bytes);
                ck_assert(memcmp(a.shape, b.shape, sizeof a.shape) == 0);
                ck_assert(memcmp(a.data, b.data, (size_t)a.bytes) == 0);
                gradc_array_free(&b);
            }
            gradc_array_free(&a);
        }
    ck_assert_int_eq(help_entries(d), 1);
    help_remove(d);
    ck_assert_int_eq(gradc_npy_write("x", NULL, &error), GRADC_BAD_ARGUMENT);
    gradc_array no_data = {.dtype = GRADC_F32, .rank = 1, .shape = {2}}, no_rank = {.rank = 9};
    ck_assert_int_eq(gradc_npy_write("x", &no_data, &error), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_npy_write("x", &no_rank, &error), GRADC_BAD_ARGUMENT);
}
END_TEST

/* ---- IDX ---- */

static int parse_idx(const uint8_t *b, size_t n, gradc_array *a)
{
    int status = gradc_idx_parse("i", b, n, a, &error);
    ck_assert(status == GRADC_OK || (a->data == NULL && error.text[0] != '\0'));
    return status;
}

START_TEST(idx_types)
{
    gradc_array a;
    static const uint8_t u8[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255};
    ck_assert_int_eq(parse_idx(u8, sizeof u8, &a), GRADC_OK);
    ck_assert(a.dtype == GRADC_U8 && a.rank == 2 && a.shape[1] == 3);
    ck_assert_int_eq(((uint8_t *)a.data)[5], 255);
    gradc_array_free(&a);
    static const uint8_t i8[] = {0, 0, 9, 1, 0, 0, 0, 2, 255, 127};
    ck_assert_int_eq(parse_idx(i8, sizeof i8, &a), GRADC_OK);
    ck_assert(a.dtype == GRADC_I32 && ((int32_t *)a.data)[0] == -1 &&
              ((int32_t *)a.data)[1] == 127);
    gradc_array_free(&a);
    static const uint8_t i16[] = {0, 0, 11, 1, 0, 0, 0, 2, 0x80, 0, 1, 2};
    ck_assert_int_eq(parse_idx(i16, sizeof i16, &a), GRADC_OK);
    ck_assert(((int32_t *)a.data)[0] == -32768 && ((int32_t *)a.data)[1] == 258);
    gradc_array_free(&a);
    static const uint8_t i32[] = {0, 0, 12, 1, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfe};
    ck_assert_int_eq(parse_idx(i32, sizeof i32, &a), GRADC_OK);
    ck_assert(a.dtype == GRADC_I32 && ((int32_t *)a.data)[0] == -2);
    gradc_array_free(&a);
    static const uint8_t f32[] = {0, 0, 13, 1, 0, 0, 0, 1, 0x3f, 0xc0, 0, 0};
    ck_assert_int_eq(parse_idx(f32, sizeof f32, &a), GRADC_OK);
    ck_assert(a.dtype == GRADC_F32 && ((float *)a.data)[0] == 1.5f);
    gradc_array_free(&a);
    static const uint8_t f64[] = {0, 0, 14, 1, 0, 0, 0, 1, 0xbf, 0xf8, 0, 0, 0, 0, 0, 0};
    ck_assert_int_eq(parse_idx(f64, sizeof f64, &a), GRADC_OK);
    ck_assert(a.dtype == GRADC_F64 && ((double *)a.data)[0] == -1.5);
    gradc_array_free(&a);
    static const uint8_t empty[] = {0, 0, 13, 2, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};
    ck_assert_int_eq(parse_idx(empty, sizeof empty, &a), GRADC_OK);
    ck_assert(a.elems == 0 && a.shape[1] == 4294967295);
    gradc_array_free(&a);
}
END_TEST

START_TEST(idx_truncations_flips_and_limits)
{
    gradc_array a;
    uint8_t b[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};
    for (size_t n = 0; n < sizeof b; n++)
        ck_assert_int_eq(parse_idx(b, n, &a), GRADC_FORMAT);
    for (size_t bit = 0; bit < 8 * 12; bit++) {
        b[bit / 8] ^= (uint8_t)(1 << bit % 8);
        /* the format has no redundancy between u8 (8) and i8 (9) */
        ck_assert_int_eq(parse_idx(b, sizeof b, &a), bit == 16 ? GRADC_OK : GRADC_FORMAT);
        gradc_array_free(&a);
        b[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    uint8_t ranks[4 + 4 * 9 + 1] = {0, 0, 8, 8};
    for (int i = 0; i < 9; i++)
        ranks[4 + 4 * i + 3] = 1;
    ck_assert_int_eq(parse_idx(ranks, 4 + 4 * 8 + 1, &a), GRADC_OK);
    gradc_array_free(&a);
    ranks[3] = 9;
    ck_assert_int_eq(parse_idx(ranks, sizeof ranks, &a), GRADC_FORMAT);
    uint8_t huge[20] = {0, 0, 14, 4};
    ck_assert_int_eq(gradc_idx_parse("x", NULL, 1, &a, &error), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_idx_parse(NULL, "", 0, &a, &error), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_idx_parse("x", "", 0, NULL, &error), GRADC_BAD_ARGUMENT);
    memset(huge + 4, 0xff, 16);
    ck_assert_int_eq(parse_idx(huge, sizeof huge, &a), GRADC_FORMAT);
}
END_TEST

/* ---- CSV ---- */

static int parse_csv(const char *text, const gradc_csv_options *o, gradc_array *a)
{
    int status = gradc_csv_parse("t.csv", text, strlen(text), o, a, &error);
    ck_assert(status == GRADC_OK || (a->data == NULL && error.text[0] != '\0'));
    return status;
}

START_TEST(csv_good)
{
    static const char *const good[] = {
        "1,2,3\n4,5,6\n",
        "1,2,3\r\n4,5,6",
        "a,b,c\n1,2,3\n4,5,6\n\n\n",
        "\357\273\2771;2;3\n4;5;6\n",
        "1\t2\t3\n4\t5\t6\n",
        "1 2 3\n4 5 6\n",
        "  1   2 3  \n\n \t\n4 5\t6\n",
        " 1 , 2,3 \n 4,5 ,6\n",
        "x y, z w, v\n1, 2, 3\n4, 5, 6\n",
        "150,4,setosa,versicolor\n1,2,3\n4,5,6\n",
        "+1e0;0.2E1;3.0\n4.;.5e1;6",
        "data\n1 2 3\n4 5 6\n",
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        gradc_array a;
        ck_assert_msg(parse_csv(good[i], NULL, &a) == GRADC_OK, "%s: %s", good[i], error.text);
        ck_assert(a.dtype == GRADC_F32 && a.rank == 2 && a.shape[0] == 2 && a.shape[1] == 3);
        for (int k = 0; k < 6; k++)
            ck_assert(((float *)a.data)[k] == (float)(k + 1));
        gradc_array_free(&a);
    }
}
END_TEST

START_TEST(csv_bad)
{
    static const struct {
        const char *text;
        int64_t line, column;
        const char *says;
    } bad[] = {
        {"", 1, 0, "no line"},
        {"\n \n\r\n", 4, 0, "no line"},
        {"a,b\n", 2, 0, "after the header"},
        {"1,2\n3,x\n", 2, 2, "not a number: 'x'"},
        {"1,2\n3,4x\n", 2, 2, "not a number: '4x'"},
        {"1,2\n3,\n", 2, 2, "nothing"},
        {"1,2\n,3\n", 2, 1, "nothing"},
        {"h,i\n1,2\n\n3\n", 4, 2, "fewer"},
        {"1,2\n3,4,5\n", 2, 3, "more"},
        {"1,2\n3,4,\n", 2, 3, "more"},
        {"1,2\n3,nan\n", 2, 2, "not a number"},
        {"1,2\n3,inf\n", 2, 2, "not a number"},
        {"1,2\n3,1e400\n", 2, 2, "range of a double"},
        {"1,2\n3,1e39\n", 2, 2, "range of f32"},
        {"1,2\n\"3\",4\n", 2, 1, "not a number"},
        {"1,2\n3,a text that is far too long to be shown whole\n", 2, 2, "too long to '"},
        {"1 2\n3 4 5\n", 2, 3, "more"},
        {"1 2\n3 4x\n", 2, 2, "not a number"},
        {"a b\n", 2, 0, "after the header"},
        {"1,5;2,5\n3,5;4,5\n", 2, 1, "not a number: '3,5'"},
        {"1\n2,3\n", 2, 2, "more"},
        {"1 2\n3\0504\n", 2, 1, "not a number"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        gradc_array a;
        ck_assert_msg(parse_csv(bad[i].text, NULL, &a) == GRADC_FORMAT, "%s was taken",
                      bad[i].text);
        ck_assert_msg(strstr(error.text, bad[i].says) != NULL, "%s: %s", bad[i].text, error.text);
        ck_assert_msg(error.position == bad[i].line && error.column == bad[i].column,
                      "%s: line %lld, column %lld", bad[i].text, (long long)error.position,
                      (long long)error.column);
    }
}
END_TEST

/* Anywhere: what begins like a header, too. */
START_TEST(csv_with_a_byte_of_value_0)
{
    static const struct {
        const char *text;
        size_t n;
        int64_t line, column;
    } bad[] = {{"a,b\0\n1,2\n", 9, 1, 2}, {"1,2\n3,\0004\n", 9, 2, 2},
               {"1,2\n\0\n", 6, 2, 1},    {"1 2\n3 4\n 5 6\0", 13, 3, 2},
               {"\0", 1, 1, 1},           {"1,2\n3,4\n\0,5\n", 12, 3, 1}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        gradc_array a;
        ck_assert_int_eq(gradc_csv_parse("t.csv", bad[i].text, bad[i].n, NULL, &a, &error),
                         GRADC_FORMAT);
        ck_assert_msg(strstr(error.text, "a byte of value 0") != NULL, "%s", error.text);
        ck_assert_msg(error.position == bad[i].line && error.column == bad[i].column,
                      "%zu: line %lld, column %lld", i, (long long)error.position,
                      (long long)error.column);
    }
}
END_TEST

START_TEST(csv_options)
{
    gradc_array a;
    gradc_csv_options o = {.struct_size = sizeof o, .dtype = GRADC_F64, .header = 1};
    ck_assert_int_eq(parse_csv("1,2\n3,0.1\n", &o, &a), GRADC_OK);
    ck_assert(a.dtype == GRADC_F64 && a.shape[0] == 1 && ((double *)a.data)[1] == 0.1);
    gradc_array_free(&a);
    o.header = -1;
    ck_assert_int_eq(parse_csv("a,b\n1,2\n", &o, &a), GRADC_FORMAT);
    ck_assert(error.position == 1 && error.column == 1);
    o.header = 0;
    o.separator = ';';
    ck_assert_int_eq(parse_csv("1;2\n3,4;5\n", &o, &a), GRADC_FORMAT);
    ck_assert(error.position == 2 && error.column == 1);
    o.separator = 'x';
    ck_assert_int_eq(parse_csv("1\n", &o, &a), GRADC_BAD_ARGUMENT);
    o.separator = 0;
    o.dtype = GRADC_I32;
    ck_assert_int_eq(parse_csv("1\n", &o, &a), GRADC_BAD_ARGUMENT);
    o.dtype = GRADC_F32;
    o.header = 2;
    ck_assert_int_eq(parse_csv("1\n", &o, &a), GRADC_BAD_ARGUMENT);
    o.struct_size = 8;
    ck_assert_int_eq(parse_csv("1\n", &o, &a), GRADC_BAD_ABI);
    ck_assert_int_eq(gradc_csv_parse("x", NULL, 3, NULL, &a, &error), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_csv_parse(NULL, "1", 1, NULL, &a, &error), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_csv_parse("x", "1", 1, NULL, NULL, &error), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_csv_parse("x", "1,x", 3, NULL, &a, NULL), GRADC_FORMAT);
    o = (gradc_csv_options){.struct_size = sizeof o, .separator = -3};
    ck_assert_int_eq(parse_csv("1\n", &o, &a), GRADC_BAD_ARGUMENT);
    o.separator = 300;
    ck_assert_int_eq(parse_csv("1\n", &o, &a), GRADC_BAD_ARGUMENT);
    o.separator = '\t';
    o.header = 1;
    ck_assert_int_eq(parse_csv("a\tb\n1\t2\n", &o, &a), GRADC_OK);
    gradc_array_free(&a);
    o.header = -2;
    ck_assert_int_eq(parse_csv("1\n", &o, &a), GRADC_BAD_ARGUMENT);
    o = (gradc_csv_options){.struct_size = sizeof o, .header = -1, .separator = ','};
    ck_assert_int_eq(parse_csv("1,2\n", &o, &a), GRADC_OK);
    gradc_array_free(&a);
}
END_TEST

START_TEST(csv_column_limit)
{
    gradc_array a;
    for (size_t more = 0; more < 2; more++) {
        size_t columns = GRADC_MAX_COLUMNS + more;
        char *text = malloc(2 * columns);
        for (size_t i = 0; i < columns; i++)
            memcpy(text + 2 * i, "1,", 2);
        text[2 * columns - 1] = '\n';
        ck_assert_int_eq(gradc_csv_parse("wide", text, 2 * columns, NULL, &a, &error),
                         more ? GRADC_FORMAT : GRADC_OK);
        gradc_array_free(&a);
        free(text);
    }
}
END_TEST

/* What is allocated is bounded by the file, not by its number of lines times columns. */
START_TEST(csv_is_no_memory_bomb)
{
    size_t wide = 200000, lines = 2000000;
    char *text = malloc(2 * wide + lines);
    for (size_t i = 0; i < wide; i++)
        memcpy(text + 2 * i, "1,", 2);
    text[2 * wide - 1] = '\n';
    memset(text + 2 * wide, '\n', lines);
    gradc_array a;
    ck_assert_int_eq(gradc_csv_parse("bomb", text, 2 * wide + lines, NULL, &a, &error), GRADC_OK);
    ck_assert(a.shape[0] == 1 && a.shape[1] == (int64_t)wide);
    gradc_array_free(&a);
    free(text);
}
END_TEST

/* ---- gzip and paths ---- */

static int gunzip(const uint8_t *b, int64_t n, int64_t limit, int64_t ratio, int64_t *out_n)
{
    uint8_t *out;
    int status = gr_gunzip("g.gz", b, n, limit, ratio, &out, out_n, &error);
    ck_assert(status == GRADC_OK || out == NULL);
    gr_free(out);
    return status;
}

START_TEST(gzip_limits)
{
    char *d = help_directory();
    const char *path = help_path(d, "z.gz");
    int64_t n, out_n, size = 100000;
    uint8_t *zeros = calloc(1, (size_t)size);
    help_write_gz(path, zeros, size);
    uint8_t *b = help_read(path, &n);
    ck_assert_int_eq(gunzip(b, n, size, INT64_MAX, &out_n), GRADC_OK);
    ck_assert_int_eq(out_n, size);
    ck_assert_int_eq(gunzip(b, n, size - 1, INT64_MAX, &out_n), GRADC_FORMAT);
    ck_assert_ptr_nonnull(strstr(error.text, "99999"));
    int64_t ratio = (size + n - 1) / n; /* the smallest that lets it through */
    ck_assert_int_eq(gunzip(b, n, INT64_MAX, ratio, &out_n), GRADC_OK);
    ck_assert_int_eq(gunzip(b, n, INT64_MAX, ratio - 1, &out_n), GRADC_FORMAT);
    for (int64_t cut = 0; cut < n; cut++)
        ck_assert_int_eq(gunzip(b, cut, size, 1 << 20, &out_n), GRADC_FORMAT);
    for (int64_t i = 0; i < 8 * n; i++) { /* time and unused bits say nothing */
        b[i / 8] ^= (uint8_t)(1 << i % 8);
        if (gunzip(b, n, size, 1 << 20, &out_n) == GRADC_OK)
            ck_assert_int_eq(out_n, size);
        b[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    uint8_t *two = malloc((size_t)(2 * n + 3));
    memcpy(two, b, (size_t)n);
    memcpy(two + n, b, (size_t)n);
    memcpy(two + 2 * n, "xyz", 3);
    ck_assert_int_eq(gunzip(two, 2 * n, 2 * size, 1 << 20, &out_n), GRADC_OK);
    ck_assert_int_eq(out_n, 2 * size);
    ck_assert_int_eq(gunzip(two, 2 * n, 2 * size - 1, 1 << 20, &out_n), GRADC_FORMAT);
    ck_assert_int_eq(gunzip(two, 2 * n + 3, 3 * size, 1 << 20, &out_n), GRADC_FORMAT);
    free(two);
    /* a bomb of the real limit: 1000 times its size and more */
    size = 64 << 20;
    zeros = realloc(zeros, (size_t)size);
    memset(zeros, 0, (size_t)size);
    help_write_gz(path, zeros, size);
    gradc_array a;
    ck_assert_int_eq(gradc_bytes_read(path, &a, &error), GRADC_FORMAT);
    ck_assert_ptr_nonnull(strstr(error.text, "its size allows"));
    free(zeros);
    free(b);
    help_remove(d);
}
END_TEST

START_TEST(any_file_by_what_it_is)
{
    char *d = help_directory();
    gradc_array a;
    static const uint8_t idx[] = {0, 0, 8, 1, 0, 0, 0, 2, 5, 6};
    Npy npy = npy_of(1, NPY("<i4", "False", "(2,)"), 8);
    help_write_gz(help_path(d, "x-ubyte.gz"), idx, sizeof idx);
    help_write(help_path(d, "x-ubyte"), idx, sizeof idx);
    help_write(help_path(d, "x.npy"), npy.bytes, (int64_t)npy.n);
    help_write(help_path(d, "x.csv"), "1,2\n", 4);
    help_write_gz(help_path(d, "x.tsv.gz"), "1\t2\n", 4);
    help_write(help_path(d, "x.txt"), "1,2\n", 4);
    help_write(help_path(d, "empty"), "", 0);
    static const struct {
        const char *name;
        int32_t dtype;
        int64_t elems;
    } files[] = {{"x-ubyte.gz", GRADC_U8, 2}, {"x-ubyte", GRADC_U8, 2},   {"x.npy", GRADC_I32, 2},
                 {"x.csv", GRADC_F32, 2},     {"x.tsv.gz", GRADC_F32, 2}, {"x.txt", GRADC_U8, 4},
                 {"empty", GRADC_U8, 0}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const char *path = help_path(d, files[i].name);
        ck_assert_msg(gradc_array_read(path, &a, &error) == GRADC_OK, "%s", error.text);
        ck_assert(a.dtype == files[i].dtype && a.elems == files[i].elems);
        gradc_array_free(&a);
    }
    help_write(help_path(d, "x.npz"), "PK\3\4....", 8);
    ck_assert_int_eq(gradc_array_read(help_path(d, "x.npz"), &a, &error), GRADC_FORMAT);
    ck_assert_ptr_nonnull(strstr(error.text, "x.npz: an archive (.npz)"));
    ck_assert_int_eq(gradc_idx_read(help_path(d, "x-ubyte.gz"), &a, &error), GRADC_OK);
    gradc_array_free(&a);
    ck_assert_int_eq(gradc_csv_read(help_path(d, "x.tsv.gz"), NULL, &a, &error), GRADC_OK);
    gradc_array_free(&a);
    ck_assert_int_eq(gradc_npy_read(help_path(d, "x.csv"), &a, &error), GRADC_FORMAT);
    ck_assert_int_eq(gradc_csv_read(help_path(d, "none"), NULL, &a, &error), GRADC_IO);
    ck_assert_int_eq(gradc_csv_read(help_path(d, "none"), NULL, NULL, &error), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_idx_read(d, &a, &error), GRADC_IO);
    ck_assert_int_eq(mkfifo(help_path(d, "fifo"), 0600), 0); /* must not wait for a writer */
    ck_assert_int_eq(gradc_bytes_read(help_path(d, "fifo"), &a, &error), GRADC_IO);
    ck_assert_ptr_nonnull(strstr(error.text, "not a regular file"));
    help_remove(d);
}
END_TEST

Suite *suite_runtime_readers(void);

Suite *suite_runtime_readers(void)
{
    Suite *s = suite_create("runtime_readers");
    TCase *c = tcase_create("readers");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, npy_good);
    tcase_add_test(c, npy_bad);
    tcase_add_test(c, npy_fortran_order);
    tcase_add_test(c, npy_header_limit);
    tcase_add_test(c, npy_truncations_and_flips);
    tcase_add_test(c, npy_round_trip);
    tcase_add_test(c, idx_types);
    tcase_add_test(c, idx_truncations_flips_and_limits);
    tcase_add_test(c, csv_good);
    tcase_add_test(c, csv_bad);
    tcase_add_test(c, csv_with_a_byte_of_value_0);
    tcase_add_test(c, csv_options);
    tcase_add_test(c, csv_column_limit);
    tcase_add_test(c, csv_is_no_memory_bomb);
    tcase_add_test(c, gzip_limits);
    tcase_add_test(c, any_file_by_what_it_is);
    suite_add_tcase(s, c);
    return s;
}
