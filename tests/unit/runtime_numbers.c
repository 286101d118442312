/* Sizes, elements, checksums, numbers in text. */
#include <check.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/internal.h"

START_TEST(checked_sizes)
{
    int64_t r = 7;
    ck_assert(size_add(INT64_MAX - 1, 1, &r) && r == INT64_MAX);
    ck_assert(!size_add(INT64_MAX, 1, &r) && !size_add(1, -2, &r) && r == INT64_MAX);
    ck_assert(size_sub(3, 3, &r) && r == 0);
    ck_assert(!size_sub(3, 4, &r) && !size_sub(INT64_MIN, 1, &r));
    ck_assert(size_mul(INT64_C(1) << 40, 1 << 22, &r) && r == INT64_C(1) << 62);
    ck_assert(!size_mul(INT64_C(1) << 40, 1 << 23, &r) && !size_mul(-1, 1, &r));
    ck_assert(size_mul(0, INT64_MAX, &r) && r == 0);
    ck_assert(size_align(65, 64, &r) && r == 128);
    ck_assert(size_align(64, 64, &r) && r == 64 && size_align(0, 64, &r) && r == 0);
    ck_assert(!size_align(INT64_MAX, 64, &r) && !size_align(1, 0, &r) && !size_align(1, 3, &r));
    ck_assert(!size_align(-1, 8, &r));
    ck_assert(range_inside(0, 0, 0) && range_inside(3, 2, 5) && !range_inside(4, 2, 5));
    ck_assert(!range_inside(-1, 1, 5) && !range_inside(1, -1, 5));
    ck_assert(!range_inside(INT64_MAX, INT64_MAX, 5));
}
END_TEST

START_TEST(shapes_have_limits)
{
    int64_t elems, bytes, most[] = {GRADC_MAX_DIM, 1 << 5}, zero[] = {0, GRADC_MAX_DIM};
    ck_assert(gr_shape_size(GRADC_F32, 2, most, &elems, &bytes));
    ck_assert_int_eq(bytes, GRADC_MAX_TENSOR_BYTES);
    most[1]++;
    ck_assert(!gr_shape_size(GRADC_F32, 2, most, &elems, &bytes));
    most[0] = GRADC_MAX_DIM + 1;
    ck_assert(!gr_shape_size(GRADC_U8, 1, most, &elems, &bytes));
    ck_assert(gr_shape_size(GRADC_F64, 2, zero, &elems, &bytes) && bytes == 0);
    zero[0] = -1;
    ck_assert(!gr_shape_size(GRADC_F64, 2, zero, &elems, &bytes));
    int64_t ones[GRADC_MAX_RANK + 1] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    ck_assert(gr_shape_size(GRADC_BOOL, GRADC_MAX_RANK, ones, &elems, &bytes) && bytes == 1);
    ck_assert(!gr_shape_size(GRADC_BOOL, GRADC_MAX_RANK + 1, ones, &elems, &bytes));
    ck_assert(gr_shape_size(GRADC_I64, 0, NULL, &elems, &bytes) && bytes == 8 && elems == 1);
    ck_assert(!gr_shape_size(8, 0, NULL, &elems, &bytes));
    ck_assert(!gr_shape_size(-1, 0, NULL, &elems, &bytes));
    ck_assert(gradc_dtype_name(8) == NULL && gradc_dtype_bytes(-1) == 0);
    ck_assert_str_eq(gradc_dtype_name(GRADC_BF16), "bf16");
}
END_TEST

/* Vectors of RFC 3720, B.4, and pieces. */
START_TEST(crc32c_vectors)
{
    uint8_t b[32];
    memset(b, 0, sizeof b);
    ck_assert_uint_eq(gr_crc32c(0, b, 32), 0x8A9136AAu);
    memset(b, 0xFF, sizeof b);
    ck_assert_uint_eq(gr_crc32c(0, b, 32), 0x62A8AB43u);
    for (int i = 0; i < 32; i++)
        b[i] = (uint8_t)i;
    ck_assert_uint_eq(gr_crc32c(0, b, 32), 0x46DD794Eu);
    for (int i = 0; i < 32; i++)
        b[i] = (uint8_t)(31 - i);
    ck_assert_uint_eq(gr_crc32c(0, b, 32), 0x113FDB5Cu);
    ck_assert_uint_eq(gr_crc32c(0, "123456789", 9), 0xE3069283u);
    ck_assert_uint_eq(gr_crc32c(0, NULL, 0), 0);
    for (int cut = 0; cut <= 32; cut++)
        ck_assert_uint_eq(gr_crc32c(gr_crc32c(0, b, cut), b + cut, 32 - cut), 0x113FDB5Cu);
}
END_TEST

/* All halves there and back; NaNs stay NaNs of the same sign. */
START_TEST(halves_round_trip)
{
    for (uint32_t h = 0; h < 0x10000; h++) {
        float f = gr_float_from_f16((uint16_t)h), b = gr_float_from_bf16((uint16_t)h);
        uint16_t back = gr_f16_from_float(f), back_b = gr_bf16_from_float(b);
        if (isnan(f))
            ck_assert((back & 0xFE00) == (0x7E00 | (h & 0x8000)));
        else
            ck_assert_uint_eq(back, h);
        if (isnan(b))
            ck_assert((back_b & 0x7FC0) == 0x7FC0);
        else if ((h & 0x7F80) == 0) /* denormals of bf16 are far above those of double */
            ck_assert_uint_eq(back_b, h);
        else
            ck_assert_uint_eq(back_b, h);
    }
}
END_TEST

static uint64_t step(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return *state >> 11;
}

/* The nearest of all halves, ties to the even one: found by bisection over the finite ones. */
static uint16_t nearest(double v, float (*value)(uint16_t), uint16_t infinity)
{
    uint16_t low = 0, high = infinity;
    double a = fabs(v);
    while (high - low > 1) {
        uint16_t middle = (uint16_t)((low + high) / 2);
        if ((double)value(middle) <= a)
            low = middle;
        else
            high = middle;
    }
    double below = (double)value(low);
    double above = high < infinity ? (double)value(high)
                                   : 2 * (double)value(low) - (double)value((uint16_t)(low - 1));
    double middle = (below + above) / 2;
    uint16_t r = a > middle || (a == middle && (low & 1) != 0) ? high : low;
    return (uint16_t)(r | (signbit(v) ? 0x8000 : 0));
}

START_TEST(halves_round_to_nearest_even)
{
    uint64_t s = 1;
    for (int i = 0; i < 100000; i++) {
        int exponent = (int)(step(&s) % 44) - 26;
        double v = ldexp((double)(step(&s) % 8192), exponent - 12); /* many exact ties */
        if (i % 2 == 0)
            v += ldexp((double)step(&s), exponent - 60);
        if (i % 3 == 0)
            v = -v;
        ck_assert_uint_eq(gr_f16_from_double(v), nearest(v, gr_float_from_f16, 0x7C00));
        ck_assert_uint_eq(gr_bf16_from_double(v), nearest(v, gr_float_from_bf16, 0x7F80));
    }
    ck_assert_uint_eq(gr_f16_from_double(65519.999), 0x7BFF);
    ck_assert_uint_eq(gr_f16_from_double(65520), 0x7C00);
    ck_assert_uint_eq(gr_f16_from_double(-1e300), 0xFC00);
    ck_assert_uint_eq(gr_f16_from_double(0x1p-25), 0);
    ck_assert_uint_eq(gr_f16_from_double(0x1.8p-25), 1);
    ck_assert_uint_eq(gr_bf16_from_double(DBL_TRUE_MIN), 0);
    ck_assert_uint_eq(gr_bf16_from_double(-0.0), 0x8000);
    /* once, not by way of float: 1 + 2^-11 + 2^-40 is above the tie */
    ck_assert_uint_eq(gr_f16_from_double(1 + 0x1p-11 + 0x1p-40), 0x3C01);
}
END_TEST

static gradc_array make(int32_t dtype, int32_t rank, int64_t a, int64_t b)
{
    int64_t shape[2] = {a, b};
    gradc_array x;
    ck_assert_int_eq(gradc_array_make(dtype, rank, shape, &x, NULL), GRADC_OK);
    return x;
}

START_TEST(casts)
{
    gradc_array a = make(GRADC_F64, 1, 5, 0), b;
    gradc_error e;
    double v[5] = {0, -2, 255, 3e9, NAN}, part[5] = {0, 1, 2, 2.5, 3};
    memcpy(a.data, v, sizeof v);
    ck_assert_int_eq(gradc_array_cast(&a, GRADC_I64, &b, &e), GRADC_RANGE);
    ck_assert(e.position == 4 && b.data == NULL);
    ck_assert_int_eq(gradc_array_cast(&a, GRADC_I32, &b, &e), GRADC_RANGE);
    ck_assert_int_eq(e.position, 3);
    ck_assert_int_eq(gradc_array_cast(&a, GRADC_U8, &b, &e), GRADC_RANGE);
    ck_assert_int_eq(e.position, 1);
    ck_assert_int_eq(gradc_array_cast(&a, GRADC_BOOL, &b, &e), GRADC_OK);
    ck_assert(memcmp(b.data, "\0\1\1\1\1", 5) == 0);
    gradc_array_free(&b);
    for (int32_t d = GRADC_F32; d <= GRADC_BF16; d++) {
        ck_assert_int_eq(gradc_array_cast(&a, d, &b, &e), GRADC_OK);
        gradc_array c;
        ck_assert_int_eq(gradc_array_cast(&b, GRADC_F64, &c, &e), GRADC_OK);
        ck_assert(isnan(((double *)c.data)[4]) && ((double *)c.data)[0] == 0);
        ck_assert(fabs(((double *)c.data)[1] + 2) < 0.01);
        gradc_array_free(&b);
        gradc_array_free(&c);
    }
    memcpy(a.data, part, sizeof part);
    for (int32_t d = GRADC_I32; d <= GRADC_U8; d++) { /* nothing is cut */
        ck_assert_int_eq(gradc_array_cast(&a, d, &b, &e), GRADC_RANGE);
        ck_assert_int_eq(e.position, 3);
    }
    gradc_array_free(&a);
    a = make(GRADC_I64, 1, 4, 0);
    int64_t w[4] = {0, 255, 256, INT64_MIN};
    memcpy(a.data, w, sizeof w);
    ck_assert_int_eq(gradc_array_cast(&a, GRADC_U8, &b, &e), GRADC_RANGE);
    ck_assert_int_eq(e.position, 2);
    ck_assert_int_eq(gradc_array_cast(&a, GRADC_I32, &b, &e), GRADC_RANGE);
    ck_assert_int_eq(e.position, 3);
    ck_assert_int_eq(gradc_array_cast(&a, GRADC_F32, &b, &e), GRADC_OK);
    ck_assert(((float *)b.data)[3] == -0x1p63f);
    gradc_array_free(&b);
    ((int64_t *)a.data)[1] = INT64_C(0x1010000000000001); /* above the tie that its double is */
    ck_assert_int_eq(gradc_array_cast(&a, GRADC_BF16, &b, &e), GRADC_OK);
    ck_assert_int_eq(((uint16_t *)b.data)[1], 0x5d81);
    gradc_array_free(&b);
    ck_assert_int_eq(gradc_array_cast(&a, 99, &b, &e), GRADC_BAD_ARGUMENT);
    gradc_array_free(&a);
    a = make(GRADC_I32, 1, 2, 0);
    ((int32_t *)a.data)[1] = -5;
    ck_assert_int_eq(gradc_array_cast(&a, GRADC_I64, &b, &e), GRADC_OK);
    ck_assert(((int64_t *)b.data)[0] == 0 && ((int64_t *)b.data)[1] == -5);
    gradc_array_free(&b);
    ck_assert_int_eq(gradc_array_cast(&a, GRADC_BOOL, &b, &e), GRADC_OK);
    ck_assert(memcmp(b.data, "\0\1", 2) == 0);
    gradc_array_free(&b);
    ck_assert_int_eq(gradc_array_cast(&a, GRADC_I32, &b, &e), GRADC_OK);
    ck_assert(memcmp(a.data, b.data, 8) == 0);
    gradc_array_free(&b);
    gradc_array_free(&a);
    a = make(GRADC_F64, 1, 2, 0);
    ((double *)a.data)[0] = 0x1p63;
    ck_assert_int_eq(gradc_array_cast(&a, GRADC_I64, &b, &e), GRADC_RANGE);
    ((double *)a.data)[0] = -0x1p63;
    ck_assert_int_eq(gradc_array_cast(&a, GRADC_I64, &b, &e), GRADC_OK);
    ck_assert_int_eq(((int64_t *)b.data)[0], INT64_MIN);
    gradc_array_free(&b);
    ((double *)a.data)[0] = -0x1.8p63;
    ck_assert_int_eq(gradc_array_cast(&a, GRADC_I64, &b, &e), GRADC_RANGE);
    ((double *)a.data)[0] = 3e9;
    ck_assert_int_eq(gradc_array_cast(&a, GRADC_I32, &b, &e), GRADC_RANGE);
    gradc_array_free(&a);
}
END_TEST

START_TEST(cutting_arrays)
{
    gradc_array a = make(GRADC_I32, 2, 4, 3), b;
    gradc_error e;
    for (int i = 0; i < 12; i++)
        ((int32_t *)a.data)[i] = i;
    ck_assert_int_eq(gradc_array_rows(&a, 1, 2, &b, &e), GRADC_OK);
    ck_assert(b.shape[0] == 2 && ((int32_t *)b.data)[0] == 3 && b.bytes == 24);
    gradc_array_free(&b);
    ck_assert_int_eq(gradc_array_rows(&a, 4, 0, &b, &e), GRADC_OK);
    ck_assert(b.elems == 0 && b.data == NULL);
    ck_assert_int_eq(gradc_array_rows(&a, 3, 2, &b, &e), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_array_rows(&a, -1, 1, &b, &e), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_array_rows(&a, 1, INT64_MAX, &b, &e), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_array_columns(&a, 1, 2, &b, &e), GRADC_OK);
    ck_assert(b.rank == 2 && b.shape[1] == 2 && ((int32_t *)b.data)[3] == 5);
    gradc_array_free(&b);
    ck_assert_int_eq(gradc_array_columns(&a, 2, -1, &b, &e), GRADC_OK);
    ck_assert(b.rank == 1 && b.shape[0] == 4 && ((int32_t *)b.data)[3] == 11);
    gradc_array_free(&b);
    ck_assert_int_eq(gradc_array_columns(&a, 2, 2, &b, &e), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_array_columns(&a, 3, -1, &b, &e), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_array_rows(&a, 0, 1, &a, &e), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_array_rows(NULL, 0, 1, &b, &e), GRADC_BAD_ARGUMENT);
    int64_t shape[3] = {2, -1, 3}, two_open[2] = {-1, -1}, wrong[2] = {5, -1};
    ck_assert_int_eq(gradc_array_reshape(&a, 3, shape, &e), GRADC_OK);
    ck_assert(a.rank == 3 && a.shape[1] == 2);
    ck_assert_int_eq(gradc_array_reshape(&a, 2, two_open, &e), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_array_reshape(&a, 2, wrong, &e), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(a.rank, 3);
    a.bytes--; /* not what the library made */
    ck_assert_int_eq(gradc_array_rows(&a, 0, 1, &b, &e), GRADC_BAD_ARGUMENT);
    gradc_array_free(&a);
    gradc_array_free(&a);
    gradc_array_free(NULL);
    gradc_array none = {0};
    ck_assert_int_eq(gradc_array_rows(&none, 0, 0, &b, &e), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_array_make(GRADC_F32, 0, NULL, &a, &e), GRADC_OK);
    ck_assert_int_eq(gradc_array_rows(&a, 0, 1, &b, &e), GRADC_BAD_ARGUMENT); /* a scalar */
    ck_assert_int_eq(gradc_array_columns(&a, 0, 1, &b, &e), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_array_columns(NULL, 0, 1, &b, &e), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_array_cast(NULL, GRADC_F32, &b, &e), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_array_cast(&a, GRADC_F32, NULL, &e), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_array_reshape(NULL, 0, NULL, &e), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_array_reshape(&a, 1, NULL, &e), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_array_reshape(&a, 9, shape, &e), GRADC_BAD_ARGUMENT);
    gradc_array_free(&a);
    int64_t empty[2] = {0, 3}, open_empty[2] = {-1, 0};
    ck_assert_int_eq(gradc_array_make(GRADC_F32, 2, empty, &a, &e), GRADC_OK);
    ck_assert_int_eq(gradc_array_columns(&a, 0, 2, &b, &e), GRADC_OK);
    ck_assert(b.elems == 0 && b.shape[1] == 2);
    ck_assert_int_eq(gradc_array_reshape(&a, 2, open_empty, &e), GRADC_OK); /* [1,0] */
    gradc_array_free(&a);
    ck_assert_int_eq(gradc_array_make(GRADC_F32, 1, NULL, &a, &e), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_array_make(GRADC_F32, -1, NULL, &a, &e), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_array_make(GRADC_F32, 0, NULL, NULL, &e), GRADC_BAD_ARGUMENT);
    int64_t huge[1] = {GRADC_MAX_DIM + 1};
    ck_assert_int_eq(gradc_array_make(GRADC_U8, 1, huge, &a, &e), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_array_make(GRADC_U8, 9, huge, &a, &e), GRADC_BAD_ARGUMENT);
}
END_TEST

static double parsed(const char *s)
{
    double v = -77;
    int64_t n = (int64_t)strlen(s);
    ck_assert_msg(gr_parse_number(s, n, &v) == n, "%s", s);
    return v;
}

START_TEST(numbers_are_read_as_strtod_reads_them)
{
    static const char *const text[] = {
        "0",
        "-0",
        "1",
        "+1",
        "1.",
        ".5",
        "-.5e1",
        "1e0",
        "1E+5",
        "1e-5",
        "0.1",
        "123456789012345",
        "9007199254740993",
        "1.7976931348623157e308",
        "2.2250738585072014e-308",
        "4.9e-324",
        "2.4703282292062328e-324",
        "0.000000000000000000000000000000000000001",
        "1e22",
        "1e23",
        "8.5e-5",
        "6.631236846766476e-316",
        "0e99999999999",
        "0.0000e-5",
        "123456789012345678901234567890",
        "3.14159265358979323846264338327950288",
        "1e-99999999999",
        "-0.0e99999999999",
        "00e7",
        "9007199254740992.99999999999999999999999999999999999999999999999999999999999999999999",
        "000000000000000000000000000000000000000001",
        "1e-400",
        "0.30000000000000004",
    };
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++) {
        double want = strtod(text[i], NULL), got = parsed(text[i]);
        ck_assert_msg(memcmp(&want, &got, sizeof want) == 0, "%s: %a, not %a", text[i], got, want);
    }
    uint64_t s = 3;
    for (int i = 0; i < 100000; i++) {
        char line[64];
        uint64_t bits = step(&s) << 13 ^ step(&s);
        double v;
        memcpy(&v, &bits, sizeof v);
        if (!isfinite(v))
            continue;
        snprintf(line, sizeof line, "%.*g", (int)(step(&s) % 17) + 1, v);
        if (!isfinite(strtod(line, NULL))) /* rounded up beyond the largest */
            continue;
        ck_assert_msg(parsed(line) == strtod(line, NULL), "%s", line);
    }
    double v;
    static const char *const none[] = {"", "-", ".", "e5", "nan", "inf", "-.", "+e1", "x"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        ck_assert_int_eq(gr_parse_number(none[i], (int64_t)strlen(none[i]), &v), 0);
    ck_assert_int_eq(gr_parse_number("1e400", 5, &v), -1);
    ck_assert_int_eq(gr_parse_number("1e999999999999", 14, &v), -1);
    ck_assert_int_eq(gr_parse_number("1E+", 3, &v), 1);
    ck_assert_int_eq(gr_parse_number("1e", 2, &v), 1);
    ck_assert_int_eq(gr_parse_number("0x10", 4, &v), 1);
    ck_assert_int_eq(gr_parse_number("1.2.3", 5, &v), 3);
}
END_TEST

/* 800 digits are kept; what is beyond only says "more". */
START_TEST(long_numbers_round_once)
{
    char line[2000] = "9007199254740993."; /* a tie, to 9007199254740992 */
    memset(line + 17, '0', 1500);
    line[1517] = '\0';
    ck_assert(parsed(line) == 9007199254740992.0);
    line[1516] = '1';
    ck_assert(parsed(line) == 9007199254740994.0);
    memset(line, '7', 1000);
    memcpy(line + 1000, "e-999", 6);
    ck_assert(parsed(line) == strtod(line, NULL));
}
END_TEST

START_TEST(numbers_are_written_to_read_back)
{
    char s[40];
    ck_assert_str_eq(gradc_format(s, sizeof s, 0.1, 0), "0.1");
    ck_assert_str_eq(gradc_format(s, sizeof s, 0.1f, 0), "0.10000000149011612");
    ck_assert_str_eq(gradc_format(s, sizeof s, 0.1f, -1), "0.1");
    ck_assert_str_eq(gradc_format(s, sizeof s, 1234567, 3), "1.23e+06");
    ck_assert_str_eq(gradc_format(s, sizeof s, -2.5, 2), "-2.5");
    ck_assert_str_eq(gradc_format(s, sizeof s, 100, 0), "100");
    ck_assert_str_eq(gradc_format(s, sizeof s, 1.5e-5, 0), "0.000015");
    ck_assert_str_eq(gradc_format(s, sizeof s, 1e-6, 0), "1e-06");
    ck_assert_str_eq(gradc_format(s, sizeof s, 9007199254740992, 0), "9007199254740992");
    ck_assert_str_eq(gradc_format(s, sizeof s, -2e5, -1), "-200000");
    ck_assert_str_eq(gradc_format(s, sizeof s, NAN, 0), "nan");
    ck_assert_str_eq(gradc_format(s, sizeof s, -INFINITY, 4), "-inf");
    ck_assert_str_eq(gradc_format(s, 4, 0.123456, 0), "0.1");
    ck_assert_str_eq(gradc_format(s, sizeof s, 0.1, 99), "0.10000000000000001");
    strcpy(s, "kept");
    ck_assert_str_eq(gradc_format(s, 0, 1, 0), "kept");
    ck_assert_str_eq(gradc_format(s, sizeof s, DBL_MAX, 0), "1.7976931348623157e+308");
    uint64_t state = 9;
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = step(&state) << 13 ^ step(&state);
        double v;
        memcpy(&v, &bits, sizeof v);
        if (isfinite(v))
            ck_assert(parsed(gradc_format(s, sizeof s, v, 0)) == v);
        float f = (float)v;
        if (isfinite(f))
            ck_assert((float)parsed(gradc_format(s, sizeof s, (double)f, -1)) == f);
    }
}
END_TEST

START_TEST(the_locale_does_not_matter)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "C"};
    char s[40];
    size_t i = 0;
    while (setlocale(LC_ALL, names[i]) == NULL)
        i++;
    if (i == 3)
        printf("skipped: runtime_numbers: no locale with a decimal comma here\n");
    ck_assert_str_eq(gradc_format(s, sizeof s, 1234.5, 0), "1234.5");
    ck_assert(parsed("1234.5") == 1234.5);
    ck_assert(parsed("3.14159265358979323846264338327950288") == 3.14159265358979323846);
}
END_TEST

START_TEST(statuses_have_words)
{
    for (int status = GRADC_OK; status <= GRADC_DEVICE; status++)
        ck_assert(gradc_strerror(status) != NULL && strlen(gradc_strerror(status)) > 3);
    ck_assert_str_eq(gradc_strerror(-1), gradc_strerror(GRADC_DEVICE + 1));
    ck_assert_uint_eq(gradc_abi_version(), GRADC_ABI);
    ck_assert_str_eq(gradc_version(), GRADC_VERSION);
    gradc_error e;
    char longest[2000];
    memset(longest, 'x', sizeof longest);
    for (int cut = 0; cut < 4; cut++) { /* a text that is cut ends with a whole character */
        memcpy(longest + sizeof e.text - 1 - cut, "\xE2\x82\xAC", 3);
        longest[1999] = '\0';
        gr_fail(&e, GRADC_IO, "%s", longest);
        size_t n = strlen(e.text);
        ck_assert(n < sizeof e.text && (e.text[n - 1] == 'x' || e.text[n - 1] == '\xAC'));
        memset(longest, 'x', sizeof longest);
    }
    gr_fail(&e, GRADC_IO, "a\nb\x1b[31m");
    ck_assert_str_eq(e.text, "a?b?[31m");
    ck_assert_int_eq(gr_fail(NULL, GRADC_IO, "x"), GRADC_IO);
    ck_assert_int_eq(gr_fail_at(NULL, GRADC_IO, 3, "x"), GRADC_IO);
    ck_assert_int_eq(gr_fail_system(NULL, 2, "x"), GRADC_IO);
    ck_assert_int_eq(gr_fail_memory(NULL, "x", 1), GRADC_MEMORY);
    ck_assert_int_eq(gr_ok(NULL), GRADC_OK);
}
END_TEST

START_TEST(blocks_are_aligned_and_zero)
{
    char *p = gradc_alloc(1000, 4096);
    ck_assert_uint_eq((uintptr_t)p % 4096, 0);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(p[i], 0);
    gradc_free(p);
    enum { LARGE = 5 << 20, LARGE_PAGE = 2 << 20 };
    p = gradc_alloc(LARGE, 64); /* lies in large pages, if there are any */
    ck_assert_ptr_nonnull(p);
    ck_assert_uint_eq((uintptr_t)p % LARGE_PAGE, 0);
    ck_assert(p[0] == 0 && memcmp(p, p + 1, LARGE - 1) == 0);
    gradc_free(p);
    p = gradc_alloc(0, 0);
    ck_assert(p != NULL && (uintptr_t)p % 64 == 0);
    gradc_free(p);
    ck_assert_ptr_null(gradc_alloc(-1, 64));
    ck_assert_ptr_null(gradc_alloc(64, 3));
    ck_assert_ptr_null(gradc_alloc(INT64_MAX, 64));
    gradc_free(NULL);
}
END_TEST

Suite *suite_runtime_numbers(void);

Suite *suite_runtime_numbers(void)
{
    Suite *s = suite_create("runtime_numbers");
    TCase *c = tcase_create("numbers");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, checked_sizes);
    tcase_add_test(c, shapes_have_limits);
    tcase_add_test(c, crc32c_vectors);
    tcase_add_test(c, halves_round_trip);
    tcase_add_test(c, halves_round_to_nearest_even);
    tcase_add_test(c, casts);
    tcase_add_test(c, cutting_arrays);
    tcase_add_test(c, numbers_are_read_as_strtod_reads_them);
    tcase_add_test(c, long_numbers_round_once);
    tcase_add_test(c, numbers_are_written_to_read_back);
    tcase_add_test(c, the_locale_does_not_matter);
    tcase_add_test(c, statuses_have_words);
    tcase_add_test(c, blocks_are_aligned_and_zero);
    suite_add_tcase(s, c);
    return s;
}
