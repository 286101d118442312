/* Kernels as text. tests/golden/kernel/text: NAME.kernel is read, verified and
 * printed as NAME.out; what is printed reads and prints as itself. NAME.bad is
 * refused as NAME.err says. UPDATE=1 writes what is expected. Random damage of good
 * texts must neither crash nor be refused without a message. */
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kernel/kernel.h"

#define FOLDER SOURCE_DIR "/tests/golden/kernel/text/"

static Ctx cx;

static void setup(void)
{
    ctx_init(&cx);
}

static void teardown(void)
{
    ctx_free(&cx);
}

static char *slurp(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return arena_strdup(&cx.perm, "");
    char *text = arena_alloc(&cx.perm, 1 << 16);
    size_t n = fread(text, 1, (1 << 16) - 1, f);
    fclose(f);
    text[n] = '\0';
    return text;
}

/* Compares with the file of that name, or writes it. */
static void expect_file(const char *name, const char *text)
{
    const char *path = arena_printf(&cx.perm, FOLDER "%s", name);
    if (getenv("UPDATE") != NULL) {
        FILE *f = fopen(path, "wb");
        ck_assert(f != NULL);
        fputs(text, f);
        fclose(f);
    }
    ck_assert_msg(strcmp(slurp(path), text) == 0, "%s differs; it is now:\n%s", name, text);
}

static const char *printed(const Kernel *k)
{
    Text t;
    text_init(&t, &cx.perm);
    kernel_print(k, &t);
    return t.at;
}

static Kernel *read_text(const char *name, const char *text)
{
    return kernel_read(&cx, &cx.perm, source_add(&cx, name, text, strlen(text), false));
}

/* What the diagnostics say. */
static const char *complaints(void)
{
    FILE *f = tmpfile();
    static char text[8192];
    diag_print(&cx, f);
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

static void check_good(const char *name)
{
    Kernel *k = read_text(name, slurp(arena_printf(&cx.perm, FOLDER "%s", name)));
    ck_assert_msg(k != NULL, "%s: %s", name, complaints());
    const char *bad = kernel_verify(k, &cx.scratch), *text = printed(k);
    ck_assert_msg(bad == NULL, "%s: %s", name, bad);
    expect_file(arena_printf(&cx.perm, "%.*s.out", (int)strlen(name) - 7, name), text);
    Kernel *again = read_text("again", text);
    ck_assert_msg(again != NULL, "%s: %s", name, complaints());
    ck_assert_str_eq(printed(again), text);
    ck_assert(kernel_same(k, again) && kernel_hash(k) == kernel_hash(again));
}

static void check_bad(const char *name)
{
    ck_assert_msg(read_text(name, slurp(arena_printf(&cx.perm, FOLDER "%s", name))) == NULL,
                  "%s is read", name);
    expect_file(arena_printf(&cx.perm, "%.*s.err", (int)strlen(name) - 4, name), complaints());
}

static bool ends(const char *name, const char *with)
{
    size_t n = strlen(name), m = strlen(with);
    return n > m && strcmp(name + n - m, with) == 0;
}

START_TEST(golden_files)
{
    DIR *d = opendir(FOLDER);
    int good = 0, bad = 0;
    ck_assert(d != NULL);
    for (const struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        teardown();
        setup();
        if (ends(e->d_name, ".kernel")) {
            check_good(e->d_name);
            good++;
        } else if (ends(e->d_name, ".bad")) {
            check_bad(e->d_name);
            bad++;
        }
    }
    closedir(d);
    ck_assert(good >= 4 && bad >= 10);
}
END_TEST

/* Kernels that differ in one thing are not the same. */
START_TEST(differences)
{
    static const char *const text[] = {
        "loop t { b0: inout f32[8] par i < 8 { %1: f32 = load b0[i] store b0[i], %1 } }",
        "loop t { b0: inout f32[9] par i < 8 { %1: f32 = load b0[i] store b0[i], %1 } }",
        "loop t { b0: inout f64[8] par i < 8 { %1: f64 = load b0[i] store b0[i], %1 } }",
        "loop t { b0: inout f32[8] par i < 7 { %1: f32 = load b0[i] store b0[i], %1 } }",
        "loop t { b0: inout f32[8] seq i < 8 { %1: f32 = load b0[i] store b0[i], %1 } }",
        "loop t { b0: inout f32[8] seq i < 8 down { %1: f32 = load b0[i] store b0[i], %1 } }",
        "loop t { b0: inout f32[8] par i < 8 { %1: f32 = load b0[i] if 0 <= i < 8 else 0 store "
        "b0[i], %1 } }",
        "loop t { b0: inout f32[8] par i < 8 { %1: f32 = load b0[i] if 0 <= i < 8 else 1 store "
        "b0[i], %1 } }",
        "loop t { b0: inout f32[8] par i < 8 { %1: f32 = load b0[-i + 7] store b0[i], %1 } }",
        "loop t { b0: inout f32[8] par i < 8 { %1: f32 = const 0 store b0[i], %1 } }",
        "loop t { b0: inout f32[8] par i < 8 { %1: f32 = const -0 store b0[i], %1 } }",
    };
    enum { N = sizeof text / sizeof text[0] };
    Kernel *k[N];
    for (int i = 0; i < N; i++)
        k[i] = read_text("difference", text[i]);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            ck_assert_msg(kernel_same(k[i], k[j]) == (i == j), "%d %d", i, j);
    Kernel *renamed = read_text("renamed", text[0]);
    renamed->name = "other";
    ck_assert(kernel_same(k[0], renamed) && kernel_hash(k[0]) == kernel_hash(renamed));
}
END_TEST

static uint64_t state;

static uint64_t draw(void)
{
    return hash_mix(state += 0x9e3779b97f4a7c15u);
}

/* One to three bytes replaced, removed or doubled. */
static void damage(char *text)
{
    static const char some[] = "0123456789ijk%{}[]<=+-*,: bxf\n";
    for (int times = 1 + (int)(draw() % 3); times > 0; times--) {
        size_t n = strlen(text), at = draw() % (n + 1);
        switch (draw() % 3) {
        case 0:
            text[at] = at < n ? some[draw() % (sizeof some - 1)] : '\0';
            break;
        case 1:
            memmove(text + at, text + at + (at < n), n - at + 1);
            break;
        default:
            memmove(text + at + 1, text + at, n - at + 1);
            text[at] = some[draw() % (sizeof some - 1)];
            break;
        }
    }
}

START_TEST(damaged_texts)
{
    static const char *const name[] = {"softmax.kernel", "matmul.kernel", "conv.kernel",
                                       "recurrence.kernel"};
    char *good = slurp(arena_printf(&cx.perm, FOLDER "%s", name[_i]));
    char *text = arena_alloc(&cx.perm, strlen(good) + 16);
    int refused = 0;
    state = (uint64_t)_i;
    for (int n = 0; n < 3000; n++) {
        strcpy(text, good);
        damage(text);
        Ctx one;
        ctx_init(&one);
        int32_t source = source_add(&one, "damaged", text, strlen(text), false);
        Kernel *k = kernel_read(&one, &one.perm, source);
        ck_assert_msg((k == NULL) == (one.n_errors == 1), "%d errors:\n%s", one.n_errors, text);
        ck_assert(k != NULL || one.diag.at[0]->code == E0190);
        refused += k == NULL;
        if (k != NULL) {
            Text t;
            text_init(&t, &one.perm);
            kernel_print(k, &t);
            kernel_verify(k, &one.scratch);
        }
        ctx_free(&one);
    }
    ck_assert_msg(refused > 1000, "%d", refused);
}
END_TEST

Suite *suite_kernel_text(void)
{
    Suite *s = suite_create("kernel_text");
    TCase *t = tcase_create("all");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 0);
    tcase_add_test(t, golden_files);
    tcase_add_test(t, differences);
    tcase_add_loop_test(t, damaged_texts, 0, 4);
    suite_add_tcase(s, t);
    return s;
}
