/* The front end: what its graphs compute, in double, against what it should be. Texts of
 * graphs and messages are golden tests. */
#include "front_run.h"

#include <dirent.h>

#include "embedded.h"

/* ---- first values and draws ---------------------------------------------- */

START_TEST(first_values)
{
    Run r, other;
    const char *text = "model m {\n"
                       "    param a : f32[4000] = uniform(low = -2, high = 6)\n"
                       "    param b : f32[4000] = normal(mean = 3, std = 0.5)\n"
                       "    param c : f32[64, 50] = kaiming_uniform(fan = 50, a = sqrt(5))\n"
                       "    param d : f32[2, 2] = [[1, 2], [3, 4.5]]\n"
                       "    param e, f : f32[100] = normal\n"
                       "    state s : i32[2] = [7, -7]\n"
                       "    loss sum(a) + sum(b) + sum(c) + sum(d) + sum(e * f) + cast(s[0], f32)\n"
                       "}\n";
    run_open(&r, text, NULL);
    double sum = 0, square = 0, least = 9, most = -9, bound = 0;
    for (int i = 0; i < 4000; i++) {
        least = fmin(least, run_slot(&r, "a")->x[i]);
        most = fmax(most, run_slot(&r, "a")->x[i]);
        sum += run_slot(&r, "b")->x[i] / 4000;
        square += pow(run_slot(&r, "b")->x[i] - 3, 2) / 4000;
    }
    for (int i = 0; i < 64 * 50; i++)
        bound = fmax(bound, fabs(run_slot(&r, "c")->x[i]));
    ck_assert(least >= -2 && least < -1.9 && most < 6 && most > 5.9);
    ck_assert_double_eq_tol(sum, 3, 0.05);
    ck_assert_double_eq_tol(square, 0.25, 0.03);
    ck_assert(bound <= 1 / sqrt(50) && bound > 0.99 / sqrt(50));
    close_to(run_slot(&r, "d")->x[3], 4.5);
    close_to(run_slot(&r, "s")->x[1], -7);
    ck_assert(run_slot(&r, "e")->x[0] != run_slot(&r, "f")->x[0]);
    /* They depend on the name and the seed alone. */
    run_open(&other,
             "model m {\n"
             "    param f : f32[100] = normal\n"
             "    param a : f32[4000] = uniform(low = -2, high = 6)\n"
             "    loss sum(a) + sum(f)\n"
             "}\n",
             NULL);
    ck_assert(run_slot(&other, "f")->x[9] == run_slot(&r, "f")->x[9]);
    ck_assert(run_slot(&other, "a")->x[9] == run_slot(&r, "a")->x[9]);
    run_init(&other, 2);
    ck_assert(run_slot(&other, "f")->x[9] != run_slot(&r, "f")->x[9]);
    run_close(&r);
    run_close(&other);
}
END_TEST

START_TEST(draws_differ_by_step_use_and_iteration)
{
    Run r;
    run_open(&r,
             "block noise(x) {\n    return x * uniform([4])\n}\n"
             "model m {\n"
             "    param w : f32[4] = ones\n"
             "    a = noise(w) as n\n"
             "    b = noise(w) share n\n"
             "    c = noise(w)\n"
             "    s = scan i in 0..3, s = 0 {\n"
             "        s = 0 * s + cast(i, f32)\n"
             "        emit uniform([4])\n"
             "    }\n"
             "    u, _last = s\n"
             "    output a, b, c, u\n"
             "    loss sum(a + b + c)\n"
             "}\n"
             "train m {\n    optimizer sgd(lr = 0)\n}\n",
             NULL);
    double seen[64];
    int n = 0;
    for (int step = 0; step < 2; step++) {
        static const char *const name[] = {"a", "b", "c", "u"};
        Value *v = run_entry(&r, ENTRY_STEP);
        for (int k = 0; k < 4; k++) {
            const Value *x = &v[run_root(&r, ENTRY_STEP, ROOT_OUTPUT, name[k])->ref];
            for (int64_t i = 0; i < x->n; i++)
                seen[n++] = x->x[i];
        }
        run_step(&r, NULL);
    }
    ck_assert_int_eq(n, 2 * (12 + 12));
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            ck_assert_msg(seen[i] != seen[j], "draws %d and %d are equal", i, j);
    run_close(&r);
}
END_TEST

/* ---- equal programs ------------------------------------------------------ */

/* Pairs of models that say the same thing. */
static const char *const pairs[][2] = {
    {"h = x[0]\n    for i in 1..4 {\n        h = tanh(h * w + x[i])\n    }\n    loss sum(h)",
     "h = scan g in x[1:], h = x[0] {\n        h = tanh(h * w + g)\n    }\n    loss sum(h)"},
    {"s, _on = scan g in x, on = true {\n        emit where(on, g, 0)\n        on = false\n    }\n"
     "    loss sum(s * w)",
     "loss sum(x[0] * w)"},
    {"t = transpose(x)\n    s = 0\n    for i in 0..4 {\n        s = s * w[0] + t[:, 3 - i]\n    }\n"
     "    loss sum(s * s)",
     "s = scan g in transpose(x), axis = 1, reverse = true, s = zeros([3]) {\n"
     "        s = s * w[0] + g\n    }\n    loss sum(s * s)"},
    {"s = 0\n    for i in 0..4 {\n        p[i] = x[i] * w\n        s = s + p[i]\n    }\n"
     "    loss sum(s * stack([p[0], p[1], p[2], p[3]], axis = 1)[:, 2])",
     "ps, s = scan g in x, axis = 0, s = zeros([3]) {\n        s = s + g * w\n        emit g * w\n "
     "   }\n"
     "    loss sum(s * ps[2])"},
    {"loss mean(softmax(x * w))",
     "e = exp(x * w)\n    loss mean(e / sum(e, axis = -1, keep = true))"},
    {"loss sum(grad(sum(w^3 * x), w))", "loss sum(3 * w^2 * sum(x, axis = 0))"},
    {"a, b = grad(sum(w^3 * x), (w, x))\n    loss sum(a) + sum(b)",
     "loss sum(3 * w^2 * sum(x, axis = 0)) + 4 * sum(w^3)"},
    {"loss sum((x @ w)^2)", "loss sum(einsum(\"ij,j->i\", x, w)^2)"},
    {"loss sum(max(x, axis = 1) * w[0])", "loss sum(max(max(x[:, 0], x[:, 1]), x[:, 2]) * w[0])"},
    {"loss sum(repeat(w, 2, axis = 0) * concat([x[0], x[1]]))",
     "loss sum(concat([w[:1], w[:1], w[1:2], w[1:2], w[2:], w[2:]]) * flatten(x[:2]))"},
    {"loss sum(one_hot([2, 0], 3, f64) @ w)", "loss w[2] + w[0]"},
    {"loss sum(x[-9:0:-1]) + sum(x[2:2, ::-1][::-1]) + sum(w[::-2])", "loss w[2] + w[0]"},
    {"loss norm(w) + logsumexp(w)", "loss sqrt(sum(w * w)) + log(sum(exp(w)))"},
    {"m, v = moments(x * w, axis = 0)\n    loss sum(v^2 * w) + sum(m^3)",
     "y = x * w\n    m = mean(y, axis = 0)\n    v = mean((y - mean(y, axis = 0, keep = true))^2, "
     "axis = 0)\n    loss sum(v^2 * w) + sum(m^3)"},
    {"m, v = moments(tanh(x * w), axis = [0, 1])\n    loss sum(grad(v^2 + m, w)^2)",
     "y = tanh(x * w)\n    m = mean(y)\n    v = mean((y - m)^2)\n"
     "    loss sum(grad(v^2 + m, w)^2)"},
};
enum { N_PAIRS = sizeof pairs / sizeof *pairs };

START_TEST(equal_programs_give_equal_gradients)
{
    Run r[2];
    Arena a = {0};
    for (int i = 0; i < 2; i++)
        run_open(&r[i],
                 arena_printf(&a,
                              "model m {\n"
                              "    input x : f64[4, 3]\n"
                              "    param w : f64[3] = [0.5, -0.25, 2]\n"
                              "    %s\n}\n",
                              pairs[_i][i]),
                 NULL);
    Value *x = run_entry(&r[0], ENTRY_GRAD), *y = run_entry(&r[1], ENTRY_GRAD);
    const Root *lx = run_root(&r[0], ENTRY_GRAD, ROOT_LOSS, NULL);
    const Root *ly = run_root(&r[1], ENTRY_GRAD, ROOT_LOSS, NULL);
    close_to(x[lx->ref].x[0], y[ly->ref].x[0]);
    lx = run_root(&r[0], ENTRY_GRAD, ROOT_GRADIENT, "w");
    ly = run_root(&r[1], ENTRY_GRAD, ROOT_GRADIENT, "w");
    for (int i = 0; i < 3; i++)
        ck_assert_msg(fabs(x[lx->ref].x[i] - y[ly->ref].x[i]) < 1e-9, "%s: dw[%d] is %g and %g",
                      pairs[_i][0], i, x[lx->ref].x[i], y[ly->ref].x[i]);
    run_close(&r[0]);
    run_close(&r[1]);
    arena_free(&a);
}
END_TEST

/* ---- whole programs ------------------------------------------------------ */

static char *read_text(const char *path)
{
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "%s", path);
    char *text = calloc(1, 1 << 20);
    size_t n = fread(text, 1, (1 << 20) - 1, f);
    fclose(f);
    text[n] = '\0';
    return text;
}

static void build_file(const char *path)
{
    Run r;
    char *text = read_text(path);
    run_try(&r, path, text, NULL);
    ck_assert_msg(r.fine, "%s\n%s", path, run_messages(&r));
    ck_assert_msg(r.cx.n_warnings == 0, "%s\n%s", path, run_messages(&r));
    run_close(&r);
    free(text);
}

START_TEST(models_build)
{
    static const char *const folder[] = {
        SOURCE_DIR "/tests/run/", SOURCE_DIR "/tests/bench/models/", SOURCE_DIR "/examples/"};
    DIR *d = opendir(folder[_i]);
    int n = 0;
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        size_t length = strlen(e->d_name);
        if (length < 7 || strcmp(e->d_name + length - 6, ".model") != 0)
            continue;
        char path[1024];
        snprintf(path, sizeof path, "%s%s", folder[_i], e->d_name);
        build_file(path);
        n++;
    }
    if (d != NULL)
        closedir(d);
    ck_assert(_i == 2 || n > 0);
}
END_TEST

/* ```model blocks build; ```model-error ones begin with `# CODE`, their first error. */
static void manual_example(const char *text, bool good)
{
    Run r;
    run_try(&r, "example.model", text, NULL);
    if (good) {
        ck_assert_msg(r.fine, "%s\n%s", text, run_messages(&r));
    } else {
        ck_assert_msg(!r.fine, "%s", text);
        int i = 0;
        while (i < r.cx.diag.n && r.cx.diag.at[i]->warning)
            i++;
        const char *is = code_id(r.cx.diag.at[i]->code);
        ck_assert_msg(strncmp(text + 2, is, 5) == 0, "%s, and not:\n%s", is, text);
    }
    run_close(&r);
}

START_TEST(examples_of_the_reference_build)
{
    char *page = read_text(SOURCE_DIR "/grammar/language.md");
    int n = 0;
    for (char *p = page; (p = strstr(p, "```model")) != NULL;) {
        bool good = strncmp(p, "```model\n", 9) == 0;
        char *text = strchr(p, '\n') + 1, *end = strstr(text, "```");
        ck_assert_ptr_nonnull(end);
        *end = '\0';
        manual_example(text, good);
        p = end + 1;
        n++;
    }
    ck_assert_int_gt(n, 10);
    free(page);
}
END_TEST

START_TEST(the_functions_are_as_described)
{
    Arena a = {0};
    Text manual;
    text_init(&manual, &a);
    functions_manual(&manual);
    char *page = read_text(SOURCE_DIR "/grammar/functions.md");
    if (strcmp(page, manual.at) != 0) {
        FILE *f = fopen(BUILD_DIR "/functions.md", "wb"); /* to be compared, and copied */
        if (f != NULL) {
            fputs(manual.at, f);
            fclose(f);
        }
        ck_abort_msg("grammar/functions.md is stale; " BUILD_DIR
                     "/functions.md is what it should be");
    }
    int n = 0;
    for (char *row = strtok(page, "\n"); row != NULL; row = strtok(NULL, "\n")) {
        char *end = strrchr(row, '`');
        if (strncmp(row, "| `", 3) != 0 || end == NULL || strcmp(end, "` |") != 0)
            continue;
        *end = '\0';
        const char *example = strrchr(row, '`') + 1;
        Run r;
        run_try(&r, "example.model",
                arena_printf(&a,
                             "model m {\n    input x : f32[2, 3, 4]\n    input i : i32[2, 3]\n"
                             "    param w : f32 = 1\n    _ = %s\n    loss w\n}\n",
                             example),
                NULL);
        ck_assert_msg(r.fine, "%s\n%s", example, run_messages(&r));
        run_close(&r);
        n++;
    }
    ck_assert_int_gt(n, 40);
    free(page);
    arena_free(&a);
}
END_TEST

/* ---- limits -------------------------------------------------------------- */

/* A name is found at once, however many there are; so is one for a block that is given none. */
START_TEST(many_names)
{
    /* Under GRADC_SHORT a sanitizer takes its time. */
    const int names = getenv("GRADC_SHORT") != NULL ? 20000 : 200000;
    Run r;
    Text t;
    Arena a = {0};
    text_init(&t, &a);
    text_add(&t, "block b(x) {\n    return x\n}\nmodel m {\n    param x0 : f32 = 1\n");
    text_add(&t, "    for i in 0..%d {\n        x0 = b(x0)\n    }\n", names / 10);
    for (int i = 1; i < names; i++)
        text_add(&t, "    x%d = x%d\n", i, i / 2);
    text_add(&t, "    loss x%d\n}\n", names - 1);
    run_try(&r, "m.model", t.at, NULL);
    ck_assert_msg(r.fine, "%s", run_messages(&r));
    run_close(&r);
    arena_free(&a);
}
END_TEST

START_TEST(deep_and_wide_models)
{
    Run r;
    Text t;
    Arena a = {0};
    text_init(&t, &a);
    text_add(&t, "use nn\nmodel m {\n    input x : f32[1, 2, 4]\n");
    for (int i = 0; i < 300; i++)
        text_add(&t, "    x = nn.block(x, heads = 2) as h[%d]\n", i);
    text_add(&t, "    loss mean(x");
    for (int i = 0; i < 900; i++)
        text_add(&t, " + %d", i);
    text_add(&t, ")\n}\n");
    run_try(&r, "m.model", t.at, NULL);
    ck_assert_msg(r.fine, "%s", run_messages(&r));
    int params = 0;
    for (int i = 0; i < pinned(&r)->slot.n; i++)
        params += pinned(&r)->slot.at[i].kind == SLOT_PARAM;
    ck_assert_int_eq(params, 300 * 12);
    run_close(&r);
    arena_free(&a);
}
END_TEST

/* Definitions that call one another, each through many operators. */
START_TEST(nesting_has_an_end)
{
    Run r;
    Text t;
    Arena a = {0};
    text_init(&t, &a);
    for (int i = 0; i < 40; i++) {
        text_add(&t, "fn f%d(x) {\n    return ", i);
        for (int k = 0; k < 200; k++)
            text_add(&t, "-(");
        text_add(&t, i == 39 ? "x" : "f%d(x)", i + 1);
        for (int k = 0; k < 200; k++)
            text_add(&t, ")");
        text_add(&t, "\n}\n");
    }
    text_add(&t, "model m {\n    param w : f32 = 1\n    loss f0(w)\n}\n");
    run_try(&r, "m.model", t.at, NULL);
    ck_assert(!r.fine);
    ck_assert_int_eq(r.cx.n_errors, 1);
    ck_assert_int_eq(r.cx.diag.at[0]->code, E0901);
    run_close(&r);
    arena_free(&a);
}
END_TEST

/* Another order, other names, another library would be another model; a comment is not. */
START_TEST(the_hash_is_of_what_matters)
{
    static const char *const text[] = {
        "model m(n = 3) {\n    param w : f32[n] = ones\n    loss sum(w)\n}\n",
        ("# a comment\nmodel m(n = 3) {\n    param w : f32[n] = ones  # another\n\n    loss "
         "sum(w)\n}\n"),
        "model m(n = 3) {\n    param w : f32[n] = ones\n    loss sum(w^2)\n}\n",
        "model m(n = 4) {\n    param w : f32[n] = ones\n    loss sum(w)\n}\n",
    };
    char hash[5][65];
    for (int i = 0; i < 5; i++) {
        Run r;
        run_open(&r, text[i < 4 ? i : 0], (Define[]){{i == 4 ? "n" : NULL, "5"}, {NULL, NULL}});
        model_hash(r.out.model, hash[i]);
        ck_assert_uint_eq(strlen(hash[i]), 64);
        run_close(&r);
    }
    ck_assert_str_eq(hash[0], hash[1]);
    for (int i = 2; i < 5; i++)
        for (int j = 0; j < i; j++)
            ck_assert_msg(j == 0 || j == 1 || strcmp(hash[i], hash[j]) != 0, "%d %d", i, j);
    ck_assert_str_ne(hash[0], hash[2]);
    ck_assert_str_ne(hash[0], hash[3]);
    ck_assert_str_ne(hash[0], hash[4]);
}
END_TEST

Suite *suite_front(void);
Suite *suite_front(void)
{
    Suite *s = suite_create("front");
    TCase *t = tcase_create("front");
    tcase_set_timeout(t, 120);
    suite_add_tcase(s, t);
    tcase_add_test(t, first_values);
    tcase_add_test(t, draws_differ_by_step_use_and_iteration);
    tcase_add_loop_test(t, equal_programs_give_equal_gradients, 0, N_PAIRS);
    tcase_add_loop_test(t, models_build, 0, 3);
    tcase_add_test(t, examples_of_the_reference_build);
    tcase_add_test(t, the_functions_are_as_described);
    tcase_add_test(t, deep_and_wide_models);
    tcase_add_test(t, nesting_has_an_end);
    tcase_add_test(t, the_hash_is_of_what_matters);
    TCase *wide = tcase_create("wide");
    tcase_set_timeout(wide, 20);
    suite_add_tcase(s, wide);
    tcase_add_test(wide, many_names);
    return s;
}
