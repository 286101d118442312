/* Arenas, growing arrays and text, numbers as text, names, diagnostics. */
#include <check.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/utf8.h"

/* ---- arenas and arrays --------------------------------------------------- */

START_TEST(arena_gives_zeroed_aligned_memory)
{
    Arena a = {0};
    for (size_t n = 0; n < 3000; n += 7) {
        unsigned char *p = arena_alloc(&a, n);
        ck_assert_uint_eq((uintptr_t)p % 16, 0);
        size_t zeros = 0;
        while (zeros < n && p[zeros] == 0)
            zeros++;
        ck_assert_uint_eq(zeros, n);
        memset(p, 0xff, n);
    }
    arena_free(&a);
}
END_TEST

START_TEST(arena_reset_gives_memory_back_zeroed)
{
    Arena a = {0};
    char *kept = arena_strdup(&a, "kept");
    ArenaMark mark = arena_mark(&a);
    for (int i = 0; i < 100; i++) {
        char *p = arena_alloc(&a, 10000);
        ck_assert_int_eq(p[9999], 0);
        memset(p, 1, 10000);
        if (i % 10 == 9)
            arena_reset(&a, mark);
    }
    ck_assert_str_eq(kept, "kept");
    arena_free(&a);
}
END_TEST

START_TEST(vec_keeps_what_is_pushed)
{
    Arena a = {0};
    VEC(int) v = {0};
    VEC(double) w = {0};
    for (int i = 0; i < 10000; i++) {
        vec_push(&a, &v, i);
        if (i % 3 == 0) /* so that neither always grows in place */
            vec_push(&a, &w, i);
    }
    for (int i = 0; i < v.n; i++)
        ck_assert_int_eq(v.at[i], i);
    for (int i = 0; i < w.n; i++)
        ck_assert(w.at[i] == 3 * i);
    arena_free(&a);
}
END_TEST

/* Exit status of a child in which the n-th block is refused. */
static int status_when_block_fails(int64_t n)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (freopen("/dev/null", "w", stderr) == NULL)
            _exit(9);
        arena_fail_at(n);
        Arena a = {0};
        for (int i = 0; i < 10; i++)
            memset(arena_alloc(&a, 4 << 20), 1, 4 << 20);
        arena_free(&a);
        _exit(0);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

START_TEST(out_of_memory_ends_with_status_4)
{
    for (int64_t n = 1; n <= 10; n++)
        ck_assert_int_eq(status_when_block_fails(n), 4);
    ck_assert_int_eq(status_when_block_fails(11), 0);
}
END_TEST

START_TEST(sizes_are_checked)
{
    int64_t r;
    ck_assert(mul_size(INT64_MAX, 1, &r) && r == INT64_MAX);
    ck_assert(mul_size(0, INT64_MAX, &r) && r == 0);
    ck_assert(!mul_size(INT64_MAX / 2 + 1, 2, &r));
    ck_assert(!mul_size(-1, 2, &r));
    ck_assert(add_size(INT64_MAX - 1, 1, &r) && r == INT64_MAX);
    ck_assert(!add_size(INT64_MAX, 1, &r));
    ck_assert_int_eq(align_up(0, 64), 0);
    ck_assert_int_eq(align_up(65, 64), 128);
}
END_TEST

/* ---- numbers ------------------------------------------------------------- */

static const char *double_text(Arena *a, double x)
{
    Text t;
    text_init(&t, a);
    text_double(&t, x);
    return t.at;
}

static const char *float_text(Arena *a, float x)
{
    Text t;
    text_init(&t, a);
    text_float(&t, x);
    return t.at;
}

static const struct {
    double x;
    const char *text;
} doubles[] = {
    {0.1, "0.1"},
    {1e-5, "1e-05"},
    {0.0001, "0.0001"},
    {100, "100"},
    {1e15, "1000000000000000"},
    {1e16, "1e+16"},
    {123456.789, "123456.789"},
    {1.0 / 3, "0.3333333333333333"},
    {9007199254740993.0, "9007199254740992"},
    {0x1p-44, "5.684341886080802e-14"}, /* not the nearest 16 digits */
    {4.9406564584124654e-324, "5e-324"},
    {DBL_MIN, "2.2250738585072014e-308"},
    {DBL_MAX, "1.7976931348623157e+308"},
    {1e23, "1e+23"},
    {-0.0, "-0"},
    {-2.5, "-2.5"},
};

START_TEST(doubles_print_shortest)
{
    Arena a = {0};
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++)
        ck_assert_str_eq(double_text(&a, doubles[i].x), doubles[i].text);
    ck_assert_str_eq(double_text(&a, (double)INFINITY), "inf");
    ck_assert_str_eq(double_text(&a, -(double)INFINITY), "-inf");
    ck_assert_str_eq(double_text(&a, (double)NAN), "nan");
    ck_assert_str_eq(float_text(&a, 0.1f), "0.1");
    ck_assert_str_eq(float_text(&a, 16777216.0f), "16777216");
    ck_assert_str_eq(float_text(&a, 1e-45f), "1e-45");
    arena_free(&a);
}
END_TEST

static uint64_t draw(uint64_t *state)
{
    return hash_mix(*state += 0x9e3779b97f4a7c15u);
}

static void check_round_trips(int n)
{
    uint64_t state = 1;
    for (int i = 0; i < n; i++) {
        Arena a = {0};
        uint64_t bits = draw(&state);
        uint32_t half = (uint32_t)bits;
        double x, x_again = 0;
        float y, y_again = 0;
        memcpy(&x, &bits, sizeof x);
        memcpy(&y, &half, sizeof y);
        const char *tx = double_text(&a, x), *ty = float_text(&a, y);
        if (isfinite(x))
            ck_assert_msg(read_double(tx, strlen(tx), &x_again) && x_again == x, "%s", tx);
        if (isfinite(y))
            ck_assert_msg(read_float(ty, strlen(ty), &y_again) && y_again == y, "%s", ty);
        arena_free(&a);
    }
}

START_TEST(numbers_read_back)
{
    check_round_trips(20000);
}
END_TEST

START_TEST(numbers_know_no_locale)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    const char *set = NULL;
    for (int i = 0; i < 4 && set == NULL; i++)
        set = setlocale(LC_NUMERIC, names[i]);
    if (set == NULL) {
        puts("skipped: base: no locale with a decimal comma is installed");
        return;
    }
    Arena a = {0};
    ck_assert_str_eq(double_text(&a, 1234.5), "1234.5");
    double x = 0;
    ck_assert(read_double("1234.5", 6, &x) && x == 1234.5);
    ck_assert(!read_double("1234,5", 6, &x));
    check_round_trips(1000);
    arena_free(&a);
    setlocale(LC_NUMERIC, "C");
}
END_TEST

START_TEST(what_is_no_number_is_refused)
{
    static const char *const bad[] = {"", "x", "1x", "0x10", "1e", "--1", "inf", "nan", "1 "};
    double x;
    float y;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_msg(!read_double(bad[i], strlen(bad[i]), &x), "%s", bad[i]);
        ck_assert_msg(!read_float(bad[i], strlen(bad[i]), &y), "%s", bad[i]);
    }
    /* one rounding: by way of double this is 1 + 2^-23 */
    ck_assert(read_float("1.00000005960464477539", 22, &y) && y == 1.0f);
}
END_TEST

/* ---- text ---------------------------------------------------------------- */

START_TEST(text_is_escaped)
{
    Arena a = {0};
    Text json, c;
    text_init(&json, &a);
    text_init(&c, &a);
    text_json(&json, "a\"b\\\n\x01\xc3\xa9\xff");
    text_c(&c, "a\"b\\\n\x01?\x33");
    ck_assert_str_eq(json.at, "a\\\"b\\\\\\n\\u0001\xc3\xa9\\ufffd");
    ck_assert_str_eq(c.at, "a\\\"b\\\\\\n\\001\\0773");
    arena_free(&a);
}
END_TEST

START_TEST(utf8_is_decoded_strictly)
{
    static const struct {
        const char *bytes;
        int32_t code_point;
        int n;
    } cases[] = {
        {"A", 'A', 1},
        {"\xc3\xa9", 0xe9, 2},
        {"\xe2\x82\xac", 0x20ac, 3},
        {"\xf0\x9f\x98\x80", 0x1f600, 4},
        {"\xc0\x80", -1, 1},
        {"\xed\xa0\x80", -1, 1},
        {"\xf4\x90\x80\x80", -1, 1},
        {"\xe2\x82", -1, 1},
        {"\x80", -1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *p = cases[i].bytes;
        ck_assert_int_eq(utf8_next(&p, p + strlen(p)), cases[i].code_point);
        ck_assert_int_eq(p - cases[i].bytes, cases[i].n);
    }
}
END_TEST

START_TEST(equal_names_are_one_pointer)
{
    Arena a = {0};
    Interns t = {.arena = &a};
    const char *first = intern(&t, "x");
    for (int i = 0; i < 5000; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i % 2500);
        ck_assert_str_eq(intern(&t, name), name);
    }
    ck_assert_uint_eq(t.n, 2501);
    ck_assert_ptr_eq(intern_n(&t, "xyz", 1), first);
    ck_assert_ptr_ne(intern(&t, "xyz"), first);
    arena_free(&a);
}
END_TEST

/* ---- diagnostics --------------------------------------------------------- */

/* What is printed, in cx's memory. */
static const char *printed(Ctx *cx)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    diag_print(cx, f);
    fclose(f);
    const char *copy = arena_strndup(&cx->perm, text, n);
    free(text);
    return copy;
}

static Span span_of(Ctx *cx, int32_t source, const char *word)
{
    const char *text = cx->source.at[source]->text, *at = strstr(text, word);
    int32_t from = (int32_t)(at - text);
    return (Span){source, from, from + (int32_t)strlen(word)};
}

static const char model_text[] = "w = 1\n\ty = nn.linear(x, 64) @ w\n";

START_TEST(diagnostics_show_the_place)
{
    Ctx cx;
    ctx_init(&cx);
    int32_t s = source_add(&cx, "m.model", model_text, strlen(model_text), false);
    Diag *d = diag_error(&cx, E0101, span_of(&cx, s, "@"), "cannot multiply %s", "these");
    diag_range(d, span_of(&cx, s, "x, 64"));
    diag_note(&cx, d, span_of(&cx, s, "w = 1"), "w is declared here");
    Origin call = {
        span_of(&cx, s, "nn.linear(x, 64)"), NULL, "fc1", MEMORY_PLANNED, WALKS_IF_ALONE, NULL};
    Origin inner = {span_of(&cx, s, "@"), &call, NULL, MEMORY_PLANNED, WALKS_IF_ALONE, NULL};
    d->origin = &inner;
    ck_assert_str_eq(printed(&cx), "m.model:2:23: error[E0101]: cannot multiply these\n"
                                   "    2 |  y = nn.linear(x, 64) @ w\n"
                                   "      |                ~~~~~  ^\n"
                                   "m.model:1:1: note: w is declared here\n"
                                   "   in nn.linear, called at m.model:2:6\n"
                                   "   help: `gradc explain E0101`\n");
    diag_help(&cx, d, "do \"this\"");
    cx.json = true;
    ck_assert_str_eq(printed(&cx),
                     "{\"severity\":\"error\",\"code\":\"E0101\",\"file\":\"m.model\",\"line\":2,"
                     "\"column\":23,\"end_line\":2,\"end_column\":24,"
                     "\"message\":\"cannot multiply these\",\"ranges\":[{\"file\":\"m.model\","
                     "\"line\":2,\"column\":16,\"end_line\":2,\"end_column\":21}],\"notes\":[{"
                     "\"file\":\"m.model\",\"line\":1,\"column\":1,\"end_line\":1,\"end_column\":6,"
                     "\"message\":\"w is declared here\"}],\"calls\":[{\"in\":\"nn.linear\","
                     "\"file\":\"m.model\",\"line\":2,\"column\":6,\"end_line\":2,"
                     "\"end_column\":22}],\"help\":\"do \\\"this\\\"\"}\n");
    ctx_free(&cx);
}
END_TEST

START_TEST(carets_stand_under_wide_characters)
{
    Ctx cx;
    ctx_init(&cx);
    static const char text[] = "\xe5\xb1\xb1 e\xcc\x81 q";
    int32_t s = source_add(&cx, "w", text, strlen(text), false);
    diag_error(&cx, E0101, span_of(&cx, s, "q"), "here");
    ck_assert_str_eq(printed(&cx), "w:1:5: error[E0101]: here\n"
                                   "    1 | \xe5\xb1\xb1 e\xcc\x81 q\n"
                                   "      |      ^\n"
                                   "   help: `gradc explain E0101`\n");
    ctx_free(&cx);
}
END_TEST

START_TEST(twenty_errors_in_order_then_one_more)
{
    Ctx cx;
    ctx_init(&cx);
    int32_t s = source_add(&cx, "m", model_text, strlen(model_text), false);
    for (int i = 30; i > 0; i--) {
        Diag *d = diag_error(&cx, E0101, (Span){s, i, i + 1}, "number %d", i);
        diag_help(&cx, d, "none");
        diag_note(&cx, d, (Span){s, 0, 1}, "a note");
    }
    ck_assert_int_eq(cx.diag.n, MAX_ERRORS + 1);
    const char *text = printed(&cx), *last = text + strlen(text);
    ck_assert_ptr_nonnull(strstr(text, "number 30"));
    ck_assert_ptr_null(strstr(text, "number 10\n"));
    ck_assert(strstr(text, "number 11") < strstr(text, "number 12"));
    static const char end[] = "gradc: error[E0000]: too many errors: only the first 20 are shown\n";
    ck_assert_str_eq(last - strlen(end), end);
    ctx_free(&cx);
}
END_TEST

START_TEST(the_same_complaint_is_kept_once)
{
    Ctx cx;
    ctx_init(&cx);
    int32_t s = source_add(&cx, "m", "x", 1, false);
    for (int i = 0; i < 3; i++)
        diag_warning(&cx, E0101, (Span){s, 0, 1}, "again");
    diag_error(&cx, E0101, (Span){s, 0, 1}, "other");
    ck_assert_int_eq(cx.diag.n, 2);
    ck_assert_int_eq(cx.n_errors, 1);
    ctx_free(&cx);
}
END_TEST

START_TEST(every_code_is_explained)
{
    for (int c = 0; c < N_CODES; c++) {
        const char *id = code_id((Code)c), *text = code_explanation((Code)c);
        ck_assert_int_eq(code_find(id), c);
        ck_assert_msg(text != NULL, "%s: nothing in codes_text.def", id);
        ck_assert_msg(text[strlen(text) - 1] == '\n', "%s: no line end", id);
        ck_assert_msg(strlen(code_title((Code)c)) > 0, "%s: no title", id);
        if (c > 0)
            ck_assert_msg(strcmp(code_id((Code)(c - 1)), id) < 0, "%s: out of order", id);
    }
    ck_assert_int_eq(code_find("E9999"), N_CODES);
}
END_TEST

START_TEST(nearest_words_are_found)
{
    static const char *const words[] = {"linear", "transpose", "for", "if"};
    ck_assert_str_eq(nearest("transpsoe", words, 4), "transpose");
    ck_assert_str_eq(nearest("liner", words, 4), "linear");
    ck_assert_str_eq(nearest("fro", words, 4), "for");
    ck_assert_ptr_null(nearest("x", words, 4));
    ck_assert_ptr_null(nearest("linear", words, 4)); /* it is there */
    ck_assert_ptr_null(nearest("something", words, 4));
}
END_TEST

Suite *suite_base(void);
Suite *suite_base(void)
{
    Suite *s = suite_create("base");
    TCase *t = tcase_create("memory");
    tcase_add_test(t, arena_gives_zeroed_aligned_memory);
    tcase_add_test(t, arena_reset_gives_memory_back_zeroed);
    tcase_add_test(t, vec_keeps_what_is_pushed);
    tcase_add_test(t, out_of_memory_ends_with_status_4);
    tcase_add_test(t, sizes_are_checked);
    suite_add_tcase(s, t);
    t = tcase_create("text");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, doubles_print_shortest);
    tcase_add_test(t, numbers_read_back);
    tcase_add_test(t, numbers_know_no_locale);
    tcase_add_test(t, what_is_no_number_is_refused);
    tcase_add_test(t, text_is_escaped);
    tcase_add_test(t, utf8_is_decoded_strictly);
    tcase_add_test(t, equal_names_are_one_pointer);
    suite_add_tcase(s, t);
    t = tcase_create("diagnostics");
    tcase_add_test(t, diagnostics_show_the_place);
    tcase_add_test(t, carets_stand_under_wide_characters);
    tcase_add_test(t, twenty_errors_in_order_then_one_more);
    tcase_add_test(t, the_same_complaint_is_kept_once);
    tcase_add_test(t, every_code_is_explained);
    tcase_add_test(t, nearest_words_are_found);
    suite_add_tcase(s, t);
    return s;
}
