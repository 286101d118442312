/* The parser on its own: golden trees, layouts and diagnostics, limits, the worked
 * layout rules, and single edits that must give one error on their line. */
#include <check.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "embedded.h"
#include "front/ast.h"

#define GOLDEN SOURCE_DIR "/tests/golden/parse/"

/* ---- helpers ------------------------------------------------------------- */

typedef struct Run {
    Ctx cx;
    Ast *ast;
} Run;

static void run_text(Run *r, const char *path, const char *text, size_t n)
{
    ctx_init(&r->cx);
    r->ast = parse(&r->cx, source_add(&r->cx, path, text, n, false));
    ck_assert((r->ast == NULL) == (r->cx.n_errors > 0));
}

static void run(Run *r, const char *text)
{
    run_text(r, "m.model", text, strlen(text));
}

static const char *tree(Run *r)
{
    Text t;
    text_init(&t, &r->cx.perm);
    ast_print(&t, r->ast);
    return t.at;
}

static const char *layout(Run *r)
{
    Text t;
    text_init(&t, &r->cx.perm);
    ast_format(&r->cx, &t, r->ast);
    return t.at;
}

static const char *messages(Run *r)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    diag_print(&r->cx, f);
    fclose(f);
    const char *copy = arena_strndup(&r->cx.perm, text, n);
    free(text);
    return copy;
}

/* A whole file, or NULL; the caller frees it. */
static char *read_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return NULL;
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    char *text = malloc((size_t)size + 1);
    ck_assert_ptr_nonnull(text);
    *n = fread(text, 1, (size_t)size, f);
    text[*n] = '\0';
    fclose(f);
    return text;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* ---- golden -------------------------------------------------------------- */

/* Compares with NAME.ext if there is such a file. Returns whether there is. */
static bool compare(const char *name, const char *ext, const char *got)
{
    char path[4096];
    size_t n = 0;
    snprintf(path, sizeof path, GOLDEN "%.*s%s", (int)(strlen(name) - 6), name, ext);
    char *expected = read_file(path, &n);
    if (expected == NULL)
        return false;
    char *status = strstr(expected, "exit status ");
    if (status != NULL)
        *status = '\0';
    ck_assert_msg(strcmp(expected, got) == 0, "%s%s: got\n%s", name, ext, got);
    free(expected);
    return true;
}

static int check_golden(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, GOLDEN "%s", name);
    size_t n = 0;
    char *text = read_file(path, &n);
    ck_assert_ptr_nonnull(text);
    Run r;
    run_text(&r, name, text, n);
    int compared = compare(name, ".err", messages(&r));
    if (r.ast != NULL)
        compared += compare(name, ".ast", tree(&r)) + compare(name, ".fmt", layout(&r));
    ck_assert_msg(compared > 0, "%s: nothing to compare with:\n%s", name, messages(&r));
    ctx_free(&r.cx);
    free(text);
    return compared;
}

START_TEST(golden_files_agree)
{
    DIR *d = opendir(GOLDEN);
    ck_assert_ptr_nonnull(d);
    int n = 0;
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d))
        if (ends_with(e->d_name, ".model"))
            n += check_golden(e->d_name);
    closedir(d);
    ck_assert_int_ge(n, 25);
}
END_TEST

/* ---- layout -------------------------------------------------------------- */

static void check_layout(const char *path, const char *text, size_t n)
{
    Run r, again;
    run_text(&r, path, text, n);
    ck_assert_msg(r.ast != NULL, "%s", messages(&r));
    run_text(&again, "layout", layout(&r), strlen(layout(&r)));
    ck_assert_msg(again.ast != NULL, "%s", messages(&again));
    ck_assert_str_eq(tree(&r), tree(&again));
    ck_assert_str_eq(layout(&r), layout(&again));
    ctx_free(&r.cx);
    ctx_free(&again.cx);
}

START_TEST(the_library_has_canonical_layout)
{
    for (const LibraryFile *f = library_file; f->name != NULL; f++) {
        check_layout(f->name, f->text, f->bytes);
        Run r;
        run_text(&r, f->name, f->text, f->bytes);
        ck_assert_str_eq(layout(&r), f->text);
        ctx_free(&r.cx);
    }
}
END_TEST

START_TEST(layouts_read_back)
{
    DIR *d = opendir(GOLDEN);
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        if (!ends_with(e->d_name, ".model") || strncmp(e->d_name, "bad_", 4) == 0)
            continue;
        char path[4096];
        size_t n = 0;
        snprintf(path, sizeof path, GOLDEN "%s", e->d_name);
        char *text = read_file(path, &n);
        check_layout(path, text, n);
        free(text);
    }
    closedir(d);
}
END_TEST

/* ---- the tree ------------------------------------------------------------ */

START_TEST(comments_above_are_documentation)
{
    Run r;
    run(&r, "# not this\n\n# the first\n#   line\nmodel m {\n    # of x\n    input x : f32\n"
            "    loss x # not this\n}\n");
    ck_assert_str_eq(r.ast->item.at[0]->doc, "the first\n  line");
    const Stmts *s = &r.ast->item.at[0]->def.body.stmt;
    ck_assert_str_eq(s->at[0]->doc, "of x");
    ck_assert_ptr_null(s->at[1]->doc);
    ctx_free(&r.cx);
}
END_TEST

START_TEST(spans_cover_what_was_read)
{
    Run r;
    static const char text[] = "fn f(x) {\n    y = -x^2 + g(x, n = 1) as h[0]\n    return y\n}\n";
    run(&r, text);
    const Item *f = r.ast->item.at[0];
    const Expr *e = f->def.body.stmt.at[0]->bind.value;
    ck_assert_int_eq(strncmp(text + e->span.from, "-x^2 + g(x, n = 1) as h[0]", 26), 0);
    ck_assert_int_eq(e->span.to - e->span.from, 26);
    const Expr *call = e->op.right;
    ck_assert_int_eq(strncmp(text + call->span.from, "g(x", 3), 0);
    ck_assert_int_eq(text[e->op.at.from], '+');
    ck_assert_int_eq(f->span.to, (int)strlen(text) - 1);
    ck_assert_ptr_eq(ast_find(r.ast, f->name.text), f);
    ctx_free(&r.cx);
}
END_TEST

START_TEST(numbers_keep_their_text)
{
    Run r;
    run(&r, "const a = [1e-3, 8MiB, 3, inf, 0.1]\n");
    const Exprs *e = &r.ast->item.at[0]->value->items;
    ck_assert(e->at[0]->number.value == 1e-3 && !e->at[0]->number.is_integer);
    ck_assert(e->at[1]->number.integer == 8 << 20 && e->at[1]->number.is_integer);
    ck_assert(e->at[2]->number.integer == 3);
    ck_assert(e->at[3]->number.value > 1e308 && !e->at[3]->number.is_integer);
    ck_assert_str_eq(e->at[4]->number.text, "0.1");
    ctx_free(&r.cx);
}
END_TEST

START_TEST(line_ends_and_marks_do_not_matter)
{
    Run unix_text, dos_text;
    run(&unix_text, "model m {\n    loss 1 # c\n}\n");
    run(&dos_text, "\xef\xbb\xbfmodel m {\r\n    loss 1 # c\r\n}");
    ck_assert_str_eq(tree(&unix_text), tree(&dos_text));
    ck_assert_str_eq(layout(&unix_text), layout(&dos_text));
    ctx_free(&unix_text.cx);
    ctx_free(&dos_text.cx);
}
END_TEST

/* ---- the reference ------------------------------------------------------- */

/* A block of grammar/language.md: a `model` is in canonical layout; a `model-error`
 * gives the code that its first line names, if that is one of syntax. */
static void check_example(const char *text, size_t n, bool good)
{
    Run r;
    run_text(&r, "example", text, n);
    if (good) {
        ck_assert_msg(r.ast != NULL, "%s", messages(&r));
        ck_assert_msg(strlen(layout(&r)) == n && memcmp(layout(&r), text, n) == 0, "%s",
                      layout(&r));
    } else if (r.ast == NULL) {
        ck_assert_int_eq(r.cx.n_errors, 1);
        ck_assert_int_eq(strncmp(text + 2, code_id(r.cx.diag.at[0]->code), 5), 0);
    }
    ctx_free(&r.cx);
}

START_TEST(examples_of_the_reference_are_read)
{
    size_t bytes = 0;
    char *page = read_file(SOURCE_DIR "/grammar/language.md", &bytes);
    ck_assert_ptr_nonnull(page);
    int good = 0, bad = 0;
    for (char *at = strstr(page, "```model"); at != NULL; at = strstr(at, "```model")) {
        bool is_good = at[8] == '\n';
        char *start = strchr(at, '\n') + 1, *end = strstr(start, "```");
        ck_assert_ptr_nonnull(end);
        check_example(start, (size_t)(end - start), is_good);
        good += is_good;
        bad += !is_good;
        at = end + 3;
    }
    ck_assert_int_ge(good, 12);
    ck_assert_int_ge(bad, 3);
    free(page);
}
END_TEST

/* ---- limits -------------------------------------------------------------- */

/* `fn f(x) { return` + n times open + "x" + n times close + `}` */
static bool nests(const char *open, const char *close, int n)
{
    Arena a = {0};
    Text t;
    text_init(&t, &a);
    text_add(&t, "fn f(x) {\n    return ");
    for (int i = 0; i < n; i++)
        text_add(&t, "%s", open);
    text_add(&t, "x");
    for (int i = 0; i < n; i++)
        text_add(&t, "%s", close);
    text_add(&t, "\n}\n");
    Run r;
    run_text(&r, "deep", t.at, t.n);
    bool ok = r.ast != NULL;
    if (ok)
        ck_assert_uint_gt(strlen(layout(&r)) + strlen(tree(&r)), 0);
    else
        ck_assert(r.cx.n_errors == 1 && r.cx.diag.at[0]->code == E0901);
    ctx_free(&r.cx);
    arena_free(&a);
    return ok;
}

START_TEST(nesting_is_limited)
{
    ck_assert(nests("(", ")", 255)); /* and the brace of the fn: 256 */
    ck_assert(!nests("(", ")", 256));
    ck_assert(nests("[", "]", 255));
    ck_assert(!nests("f(", ")", 256));
    ck_assert(!nests("(", ")", 100000));
    ck_assert(nests("", " + 1", 999));
    ck_assert(!nests("", " + 1", 1000));
    ck_assert(nests("-", "", 999));
    ck_assert(!nests("-", "", 1000));
    ck_assert(!nests("-", "", 1000000));
    ck_assert(!nests("not ", "", 1000000));
    ck_assert(!nests("", "^1", 1000000));
    ck_assert(!nests("", "[0]", 1000000));
}
END_TEST

START_TEST(file_size_is_limited)
{
    size_t n = MAX_SOURCE_BYTES;
    char *text = malloc(n + 1);
    memset(text, ' ', n + 1);
    memcpy(text, "model m {\n    loss 1\n}\n", 23);
    Run r;
    run_text(&r, "large", text, n);
    ck_assert_ptr_nonnull(r.ast);
    ctx_free(&r.cx);
    run_text(&r, "larger", text, n + 1);
    ck_assert_int_eq(r.cx.diag.at[0]->code, E0001);
    ctx_free(&r.cx);
    free(text);
}
END_TEST

/* 10^5 statements, comments, arguments and mistakes take time in proportion. */
START_TEST(long_files_are_read)
{
    static const char *const part[] = {
        "    x = x + 1 # c\n", "    x = f(\n", "# a\n", "    } else {\n",
        "    x = (\n",         "    $\n",      "{\n"};
    const int parts =
        getenv("GRADC_SHORT") != NULL ? 10000 : 100000; /* a sanitizer takes its time */
    for (size_t k = 0; k < sizeof part / sizeof *part; k++) {
        Arena a = {0};
        Text t;
        text_init(&t, &a);
        text_add(&t, "fn f(x) {\n");
        for (int i = 0; i < parts; i++)
            text_add(&t, "%s", part[k]);
        text_add(&t, "    return x\n}\n");
        Run r;
        run_text(&r, "long", t.at, t.n);
        if (r.ast != NULL)
            ck_assert_uint_gt(strlen(layout(&r)), 0);
        ctx_free(&r.cx);
        arena_free(&a);
    }
}
END_TEST

/* ---- single edits -------------------------------------------------------- */

/* A character or a word of the library taken out or doubled: in how many of those
 * that no longer parse is there one error, on the edited line? */
typedef struct Tally {
    int one, other;
} Tally;

static void judge(Tally *tally, const char *text, size_t n, int line)
{
    Run r;
    run_text(&r, "edit", text, n);
    if (r.ast == NULL) {
        int at = 0, column = 0;
        source_position(r.cx.source.at[0], r.cx.diag.at[0]->span.from, &at, &column);
        if (r.cx.n_errors == 1 && at == line)
            tally->one++;
        else
            tally->other++;
    }
    ctx_free(&r.cx);
}

START_TEST(one_edit_is_one_error)
{
    const LibraryFile *f = library_file;
    while (strcmp(f->name, "nn") != 0)
        f++;
    Tally tally = {0, 0};
    const size_t each = getenv("GRADC_SHORT") != NULL ? 27 : 3;
    char *edited = malloc(f->bytes + 2);
    int line = 1;
    for (size_t i = 0; i < f->bytes; i++) {
        char c = f->text[i];
        line += i > 0 && f->text[i - 1] == '\n';
        if (strchr("()[]{}=,*+:\"", c) == NULL || i % each != 0)
            continue;
        memcpy(edited, f->text, i);
        memcpy(edited + i, f->text + i + 1, f->bytes - i - 1);
        judge(&tally, edited, f->bytes - 1, line);
        memcpy(edited, f->text, i + 1);
        memcpy(edited + i + 1, f->text + i, f->bytes - i);
        judge(&tally, edited, f->bytes + 1, line);
    }
    free(edited);
    ck_assert_int_ge(tally.one + tally.other, 1500 / (int)each);
    ck_assert_msg(tally.one >= 95 * (tally.one + tally.other) / 100, "%d of %d", tally.one,
                  tally.one + tally.other);
}
END_TEST

Suite *suite_parse(void);
Suite *suite_parse(void)
{
    Suite *s = suite_create("parse");
    TCase *t = tcase_create("text");
    tcase_add_test(t, golden_files_agree);
    tcase_add_test(t, the_library_has_canonical_layout);
    tcase_add_test(t, layouts_read_back);
    tcase_add_test(t, examples_of_the_reference_are_read);
    tcase_add_test(t, comments_above_are_documentation);
    tcase_add_test(t, spans_cover_what_was_read);
    tcase_add_test(t, numbers_keep_their_text);
    tcase_add_test(t, line_ends_and_marks_do_not_matter);
    suite_add_tcase(s, t);
    t = tcase_create("limits");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, nesting_is_limited);
    tcase_add_test(t, file_size_is_limited);
    tcase_add_test(t, long_files_are_read);
    tcase_add_test(t, one_edit_is_one_error);
    suite_add_tcase(s, t);
    return s;
}
