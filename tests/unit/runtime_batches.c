/* Orders, draws, batches, windows. */
#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/gradc.h"

static gradc_error error;

START_TEST(an_order_has_every_row_once)
{
    static const int64_t counts[] = {1, 2, 3, 5, 255, 256, 257, 1000, 4097, 60000};
    int64_t n = counts[_i];
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        uint8_t *seen = calloc(1, (size_t)n);
        int64_t fixed = 0;
        for (int64_t k = 0; k < n; k++) {
            int64_t row = gradc_shuffled(42, epoch, n, k);
            ck_assert(row >= 0 && row < n && seen[row] == 0);
            seen[row] = 1;
            fixed += row == k;
        }
        ck_assert_int_lt(fixed, n <= 5 ? n + 1 : 12); /* one is expected */
        free(seen);
    }
}
END_TEST

/* The same on every machine and in every version: these numbers must never change. */
START_TEST(orders_and_draws_are_fixed)
{
    static const int64_t order[] = {3, 9, 0, 5, 1, 4, 6, 8, 2, 7},
                         draws[] = {334, 852, 488, 634, 774, 303, 661, 557, 856, 649};
    for (int64_t k = 0; k < 10; k++) {
        ck_assert_int_eq(gradc_shuffled(1, 2, 10, k), order[k]);
        ck_assert_int_eq(gradc_draw(UINT64_MAX, k, 1000), draws[k]);
    }
    ck_assert_int_eq(gradc_shuffled(1, 2, GRADC_MAX_DIM, GRADC_MAX_DIM - 1), INT64_C(83630430797));
    ck_assert_int_eq(gradc_shuffled(1, 2, 10, 10), -1);
    ck_assert_int_eq(gradc_shuffled(1, 2, 10, -1), -1);
    ck_assert_int_eq(gradc_shuffled(1, 2, 0, 0), -1);
    ck_assert_int_eq(gradc_draw(1, 2, 0), -1);
}
END_TEST

/* All 24 orders of four rows about equally often: chi-square with 23 degrees of freedom. */
START_TEST(small_orders_are_uniform)
{
    enum { EPOCHS = 24000 };
    int64_t counts[256] = {0};
    for (int64_t epoch = 0; epoch < EPOCHS; epoch++) {
        int64_t code = 0;
        for (int64_t k = 0; k < 4; k++)
            code = code * 4 + gradc_shuffled(7, epoch, 4, k);
        counts[code]++;
    }
    double chi = 0;
    int kinds = 0;
    for (int code = 0; code < 256; code++)
        if (counts[code] > 0) {
            kinds++;
            chi += pow((double)counts[code] - 1000, 2) / 1000;
        }
    ck_assert_int_eq(kinds, 24);
    ck_assert_msg(chi < 49.7, "chi-square %g", chi); /* p = 0.001 */
}
END_TEST

/* Where row k goes, and where its neighbour goes: both uniform over 16 parts of 1,000 rows. */
START_TEST(larger_orders_look_uniform)
{
    enum { N = 1000, PARTS = 16, EPOCHS = 400 };
    static int64_t place[PARTS][PARTS], step[PARTS];
    for (int64_t epoch = 0; epoch < EPOCHS; epoch++)
        for (int64_t k = 0; k < N; k++) {
            int64_t row = gradc_shuffled(3, epoch, N, k),
                    next = gradc_shuffled(3, epoch, N, (k + 1) % N);
            place[k * PARTS / N][row * PARTS / N]++;
            step[(next - row + N) % N * PARTS / N]++;
        }
    double chi = 0, chi_step = 0;
    for (int64_t a = 0; a < PARTS; a++) {
        double expected = 0;
        for (int64_t b = 0; b < PARTS; b++)
            expected += (double)place[a][b] / (double)PARTS;
        for (int64_t b = 0; b < PARTS; b++)
            chi += pow((double)place[a][b] - expected, 2) / expected;
        chi_step += pow((double)step[a] - (double)(EPOCHS * N) / (double)PARTS, 2) /
                    ((double)(EPOCHS * N) / (double)PARTS);
    }
    ck_assert_msg(chi < 320, "places: %g", chi); /* about 225 degrees of freedom */
    ck_assert_msg(chi_step < 60, "steps: %g", chi_step);
}
END_TEST

START_TEST(draws_are_uniform)
{
    enum { N = 100000, PARTS = 50 };
    int64_t counts[PARTS] = {0};
    double chi = 0;
    for (int64_t k = 0; k < N; k++) {
        int64_t v = gradc_draw(11, k, PARTS);
        ck_assert(v >= 0 && v < PARTS);
        counts[v]++;
    }
    for (int i = 0; i < PARTS; i++)
        chi += pow((double)counts[i] - (double)N / (double)PARTS, 2) / ((double)N / (double)PARTS);
    ck_assert_msg(chi < 86, "chi-square %g", chi);
}
END_TEST

static gradc_array image, label;

static void make_data(int64_t rows)
{
    int64_t shape[3] = {rows, 2, 3};
    ck_assert_int_eq(gradc_array_make(GRADC_U8, 3, shape, &image, &error), GRADC_OK);
    ck_assert_int_eq(gradc_array_make(GRADC_I32, 1, shape, &label, &error), GRADC_OK);
    for (int64_t i = 0; i < rows; i++) {
        memset((uint8_t *)image.data + 6 * i, (int)i, 6);
        ((int32_t *)label.data)[i] = (int32_t)i;
    }
}

static void free_data(void)
{
    gradc_array_free(&image);
    gradc_array_free(&label);
}

static gradc_batches *open_batches(gradc_batch_options o)
{
    const gradc_array *arrays[] = {&image, &label};
    gradc_batches *b;
    o.struct_size = sizeof o;
    ck_assert_msg(gradc_batches_open(arrays, 2, &o, &b, &error) == GRADC_OK, "%s", error.text);
    return b;
}

START_TEST(batches_cover_an_epoch)
{
    bool shuffle = _i & 1, drop = _i & 2;
    make_data(23);
    gradc_batches *b = open_batches(
        (gradc_batch_options){.rows = 5, .seed = 9, .shuffle = shuffle, .drop_last = drop});
    ck_assert_int_eq(gradc_batches_count(b), drop ? 4 : 5);
    int32_t first[23];
    for (int epoch = 0; epoch < 3; epoch++) {
        uint8_t pixels[30], seen[23] = {0};
        int32_t labels[5];
        void *buffers[] = {pixels, labels};
        int64_t rows, total = 0, batches = 0;
        while (gradc_batches_next(b, buffers, &rows) == GRADC_OK && rows > 0) {
            ck_assert(rows == 5 || (batches == 4 && rows == 3));
            for (int64_t r = 0; r < 5; r++) {
                ck_assert(pixels[6 * r] == labels[r] && pixels[6 * r + 5] == labels[r]);
                if (r >= rows) /* filled with its own rows */
                    ck_assert_int_eq(labels[r], labels[r - rows]);
                else
                    ck_assert_int_eq(seen[labels[r]]++, 0);
                if (!shuffle && r < rows)
                    ck_assert_int_eq(labels[r], total + r);
            }
            if (epoch == 0)
                memcpy(first + total, labels, (size_t)rows * sizeof *labels);
            else if (shuffle && total == 0)
                ck_assert(memcmp(first, labels, sizeof labels) != 0);
            total += rows;
            batches++;
        }
        ck_assert_int_eq(total, drop ? 20 : 23);
        ck_assert_int_eq(batches, gradc_batches_count(b));
    }
    gradc_position at;
    gradc_batches_position(b, &at);
    ck_assert(at.epoch == 3 && at.row == 0 && at.seed == 9);
    gradc_batches_close(b);
    free_data();
}
END_TEST

START_TEST(batches_go_on_where_they_stopped)
{
    make_data(23);
    gradc_batch_options o = {.rows = 4, .seed = 5, .shuffle = 1};
    gradc_batches *a = open_batches(o);
    for (int stop = 0; stop < 20; stop++) {
        int32_t from_a[4], from_b[4];
        void *buffers_a[] = {NULL, from_a}, *buffers_b[] = {NULL, from_b};
        int64_t rows_a, rows_b;
        gradc_position at;
        gradc_batches_position(a, &at);
        o.seed = 999; /* seek brings the seed too */
        gradc_batches *b = open_batches(o);
        ck_assert_int_eq(gradc_batches_seek(b, &at), GRADC_OK);
        for (int k = 0; k < 9; k++) {
            ck_assert_int_eq(gradc_batches_next(a, buffers_a, &rows_a), GRADC_OK);
            ck_assert_int_eq(gradc_batches_next(b, buffers_b, &rows_b), GRADC_OK);
            ck_assert_int_eq(rows_a, rows_b);
            ck_assert(rows_a == 0 || memcmp(from_a, from_b, sizeof from_a) == 0);
        }
        gradc_batches_close(b);
        ck_assert_int_eq(gradc_batches_seek(a, &at), GRADC_OK);
        gradc_batches_next(a, buffers_a, &rows_a);
    }
    gradc_position bad[] = {{1, -1, 0}, {1, 0, -1}, {1, 0, 24}};
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(gradc_batches_seek(a, &bad[i]), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_batches_seek(NULL, &bad[0]), GRADC_BAD_ARGUMENT);
    int64_t rows;
    ck_assert_int_eq(gradc_batches_next(a, NULL, &rows), GRADC_BAD_ARGUMENT);
    gradc_batches_close(a);
    gradc_batches_close(NULL);
    free_data();
}
END_TEST

START_TEST(batches_refuse)
{
    make_data(3);
    gradc_array short_one, scalar = {0};
    ck_assert_int_eq(gradc_array_rows(&label, 0, 2, &short_one, &error), GRADC_OK);
    ck_assert_int_eq(gradc_array_make(GRADC_F32, 0, NULL, &scalar, &error), GRADC_OK);
    const gradc_array *both[] = {&image, &short_one}, *one[] = {&scalar}, *none[] = {NULL};
    const gradc_array *many[GRADC_MAX_ARRAYS + 1];
    gradc_batch_options o = {.struct_size = sizeof o, .rows = 2};
    gradc_batches *b;
    ck_assert_int_eq(gradc_batches_open(both, 2, &o, &b, &error), GRADC_BAD_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.text, "array 1 has 2 rows, array 0 has 3"));
    ck_assert_int_eq(gradc_batches_open(one, 1, &o, &b, &error), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_batches_open(none, 1, &o, &b, &error), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_batches_open(both, 0, &o, &b, &error), GRADC_BAD_ARGUMENT);
    for (int i = 0; i <= GRADC_MAX_ARRAYS; i++)
        many[i] = &label;
    ck_assert_int_eq(gradc_batches_open(many, GRADC_MAX_ARRAYS + 1, &o, &b, &error),
                     GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_batches_open(many, GRADC_MAX_ARRAYS, &o, &b, &error), GRADC_OK);
    gradc_batches_close(b);
    gradc_array empty, damaged = label;
    int64_t none_of[1] = {0};
    ck_assert_int_eq(gradc_array_make(GRADC_F32, 1, none_of, &empty, &error), GRADC_OK);
    both[0] = &empty;
    ck_assert_int_eq(gradc_batches_open(both, 1, &o, &b, &error), GRADC_BAD_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.text, "no rows"));
    damaged.bytes--;
    both[0] = &damaged;
    ck_assert_int_eq(gradc_batches_open(both, 1, &o, &b, &error), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_batches_open(NULL, 1, &o, &b, &error), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_batches_open(many, 1, NULL, &b, &error), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_batches_open(many, 1, &o, NULL, &error), GRADC_BAD_ARGUMENT);
    o.rows = GRADC_MAX_DIM + 1;
    ck_assert_int_eq(gradc_batches_open(many, 1, &o, &b, &error), GRADC_BAD_ARGUMENT);
    o.rows = 0;
    ck_assert_int_eq(gradc_batches_open(many, 1, &o, &b, &error), GRADC_BAD_ARGUMENT);
    o.rows = 4;
    o.drop_last = 1;
    ck_assert_int_eq(gradc_batches_open(many, 1, &o, &b, &error), GRADC_BAD_ARGUMENT);
    o.struct_size = 0;
    ck_assert_int_eq(gradc_batches_open(many, 1, &o, &b, &error), GRADC_BAD_ABI);
    gradc_array_free(&short_one);
    gradc_array_free(&scalar);
    free_data();
}
END_TEST

static gradc_windows *open_windows(const gradc_array *text, gradc_window_options o)
{
    gradc_windows *w;
    o.struct_size = sizeof o;
    ck_assert_msg(gradc_windows_open(text, &o, &w, &error) == GRADC_OK, "%s", error.text);
    return w;
}

static gradc_array text_of(int32_t dtype, int64_t n)
{
    gradc_array bytes, text;
    ck_assert_int_eq(gradc_array_make(GRADC_U8, 1, &n, &bytes, &error), GRADC_OK);
    for (int64_t i = 0; i < n; i++)
        ((uint8_t *)bytes.data)[i] = (uint8_t)i;
    ck_assert_int_eq(gradc_array_cast(&bytes, dtype, &text, &error), GRADC_OK);
    gradc_array_free(&bytes);
    return text;
}

START_TEST(random_windows)
{
    static const int32_t dtypes[] = {GRADC_U8, GRADC_I32, GRADC_I64};
    gradc_array text = text_of(dtypes[_i], 100);
    gradc_windows *w = open_windows(
        &text, (gradc_window_options){.rows = 3, .context = 8, .begin = 10, .end = 50, .seed = 4});
    int32_t tokens[24], next[24], again[24];
    int64_t rows, low = 100, high = 0;
    gradc_position at;
    for (int k = 0; k < 200; k++) {
        gradc_windows_position(w, &at);
        ck_assert_int_eq(at.row, k);
        ck_assert_int_eq(gradc_windows_next(w, tokens, next, &rows), GRADC_OK);
        ck_assert_int_eq(rows, 3);
        for (int i = 0; i < 24; i++) {
            ck_assert_int_eq(next[i], tokens[i] + 1);
            ck_assert(i % 8 == 0 || tokens[i] == tokens[i - 1] + 1);
            low = tokens[i] < low ? tokens[i] : low;
            high = next[i] > high ? next[i] : high;
        }
        ck_assert_int_eq(gradc_windows_seek(w, &at), GRADC_OK);
        ck_assert_int_eq(gradc_windows_next(w, again, NULL, &rows), GRADC_OK);
        ck_assert(memcmp(tokens, again, sizeof again) == 0);
    }
    ck_assert(low == 10 && high == 49); /* both ends are drawn, and nothing beyond */
    ck_assert_int_eq(gradc_windows_count(w), 1);
    gradc_windows_close(w);
    gradc_array_free(&text);
}
END_TEST

START_TEST(windows_in_order)
{
    gradc_array text = text_of(GRADC_U8, 30);
    /* windows at 0, 4, … 24 and the last that has a next token: 7 windows, 3 batches */
    gradc_windows *w =
        open_windows(&text, (gradc_window_options){.rows = 3, .context = 4, .in_order = 1});
    int32_t tokens[12], next[12];
    int64_t rows;
    static const int64_t want[] = {3, 3, 1, 0, 3};
    ck_assert_int_eq(gradc_windows_count(w), 3);
    for (int k = 0; k < 5; k++) {
        ck_assert_int_eq(gradc_windows_next(w, tokens, next, &rows), GRADC_OK);
        ck_assert_int_eq(rows, want[k]);
        for (int64_t r = 0; r < rows; r++)
            ck_assert_int_eq(tokens[4 * r], (k % 4) * 12 + 4 * r);
        if (rows == 1)
            ck_assert(memcmp(tokens, tokens + 4, 16) == 0); /* filled */
    }
    gradc_position at = {.row = 4};
    ck_assert_int_eq(gradc_windows_seek(w, &at), GRADC_BAD_ARGUMENT);
    at.row = INT64_MAX;
    ck_assert_int_eq(gradc_windows_seek(w, &at), GRADC_BAD_ARGUMENT);
    gradc_windows_close(w);
    gradc_array_free(&text);
}
END_TEST

/* Behind the last epoch, and the last batch of random windows, counting begins anew. */
START_TEST(positions_end)
{
    gradc_array text = text_of(GRADC_U8, 3);
    const gradc_position last = {.epoch = INT64_MAX, .row = INT64_MAX}, turn = {.epoch = INT64_MAX};
    gradc_position at;
    int32_t token;
    int64_t rows;
    for (int32_t in_order = 0; in_order < 2; in_order++) {
        gradc_windows *w = open_windows(
            &text, (gradc_window_options){.rows = 1, .context = 1, .in_order = in_order});
        ck_assert_int_eq(gradc_windows_seek(w, in_order ? &turn : &last), GRADC_OK);
        for (int k = 0; k <= 2 * in_order; k++)
            ck_assert_int_eq(gradc_windows_next(w, &token, NULL, &rows), GRADC_OK);
        ck_assert_int_eq(rows, !in_order);
        gradc_windows_position(w, &at);
        ck_assert_int_eq(at.epoch, 0);
        ck_assert_int_eq(at.row, !in_order);
        gradc_windows_close(w);
    }
    gradc_array_free(&text);
}
END_TEST

START_TEST(windows_refuse)
{
    gradc_array text = text_of(GRADC_I64, 9), floats = text_of(GRADC_F32, 9);
    gradc_windows *w;
    gradc_window_options o = {.struct_size = sizeof o, .rows = 1, .context = 8};
    ck_assert_int_eq(gradc_windows_open(&text, &o, &w, &error), GRADC_OK);
    int32_t tokens[8];
    int64_t rows;
    ((int64_t *)text.data)[3] = INT64_C(1) << 31;
    ck_assert_int_eq(gradc_windows_next(w, tokens, NULL, &rows), GRADC_RANGE);
    gradc_windows_close(w);
    gradc_windows_close(NULL);
    ck_assert_int_eq(gradc_windows_open(&floats, &o, &w, &error), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_windows_open(NULL, &o, &w, &error), GRADC_BAD_ARGUMENT);
    o.context = 9;
    ck_assert_int_eq(gradc_windows_open(&text, &o, &w, &error), GRADC_BAD_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.text, "9 tokens and the next one"));
    o.context = INT64_MAX;
    ck_assert_int_eq(gradc_windows_open(&text, &o, &w, &error), GRADC_BAD_ARGUMENT);
    o.context = 2;
    o.end = 10;
    ck_assert_int_eq(gradc_windows_open(&text, &o, &w, &error), GRADC_BAD_ARGUMENT);
    static const int64_t parts[][4] = {/* rows, context, begin, end */
                                       {0, 2, 0, 0}, {GRADC_MAX_DIM + 1, 2, 0, 0},
                                       {1, 0, 0, 0}, {1, 2, -1, 5},
                                       {1, 2, 5, 5}, {1, 2, 6, 5},
                                       {1, 2, 7, 9}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        o.rows = parts[i][0];
        o.context = parts[i][1];
        o.begin = parts[i][2];
        o.end = parts[i][3];
        ck_assert_int_eq(gradc_windows_open(&text, &o, &w, &error), GRADC_BAD_ARGUMENT);
    }
    ck_assert_int_eq(gradc_windows_open(&text, NULL, &w, &error), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_windows_open(&text, &o, NULL, &error), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_windows_next(NULL, tokens, NULL, &rows), GRADC_BAD_ARGUMENT);
    o.struct_size = 1;
    ck_assert_int_eq(gradc_windows_open(&text, &o, &w, &error), GRADC_BAD_ABI);
    gradc_array_free(&text);
    gradc_array_free(&floats);
}
END_TEST

Suite *suite_runtime_batches(void);

Suite *suite_runtime_batches(void)
{
    Suite *s = suite_create("runtime_batches");
    TCase *c = tcase_create("batches");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, an_order_has_every_row_once, 0, 10);
    tcase_add_test(c, orders_and_draws_are_fixed);
    tcase_add_test(c, small_orders_are_uniform);
    tcase_add_test(c, larger_orders_look_uniform);
    tcase_add_test(c, draws_are_uniform);
    tcase_add_loop_test(c, batches_cover_an_epoch, 0, 4);
    tcase_add_test(c, batches_go_on_where_they_stopped);
    tcase_add_test(c, batches_refuse);
    tcase_add_loop_test(c, random_windows, 0, 3);
    tcase_add_test(c, windows_in_order);
    tcase_add_test(c, positions_end);
    tcase_add_test(c, windows_refuse);
    suite_add_tcase(s, c);
    return s;
}
