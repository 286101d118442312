/* Matrices in panels: which kernels may stay as they are, which parameters of a model lie so, and
 * that the caller sees rows. That bits stay the same, cpu_contract and gradc-smith tell. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "compile.h"
#include "cpu/wide.h"
#include "target/cpu/panels.h"

/* ---- elementwise kernels ----------------------------------------------------------------- */

#define LOOP(body)                                                                                 \
    "loop t { b0: in f32[768] b1: out f32[768] b2: in f32[1] b3: out bool[12] " body " }"

static const struct {
    bool is;
    const char *what, *text;
} kernels[] = {
    {true, "an element for an element",
     LOOP("par i < 12 { par j < 64 { %3: f32 = load b0[64*i + j] store b1[64*i + j], %3 } }")},
    {true, "with a number",
     LOOP("%1: f32 = load b2[0] par i < 768 { %3: f32 = load b0[i] "
          "%4: f32 = mul %1, %3 store b1[i], %4 }")},
    {true, "whether all are",
     LOOP("%1: bool = acc and seq i < 12 { red j < 64 { "
          "%4: f32 = load b0[64*i + j] %5: bool = lt %4, %4 into %1, %5 } } "
          "%9: bool = fold %1 store b3[0], %9")},
    {false, "a sum",
     LOOP("%1: f32 = acc add red i < 768 { %3: f32 = load b0[i] into %1, %3 } "
          "%6: f32 = fold %1 store b1[0], %6")},
    {false, "whether all of a row are",
     LOOP("par i < 12 { %2: bool = acc and red j < 64 { %4: f32 = load b0[64*i + j] "
          "%5: bool = lt %4, %4 into %2, %5 } %8: bool = fold %2 store b3[i], %8 }")},
    {false, "whether some row's all are",
     LOOP("%1: bool = acc or seq i < 12 { %3: bool = acc and red j < 64 { "
          "%5: f32 = load b0[64*i + j] %6: bool = lt %5, %5 into %3, %6 } %9: bool = fold %3 "
          "into %1, %9 } %12: bool = fold %1 store b3[0], %12")},
    {false, "a part", LOOP("par i < 700 { %2: f32 = load b0[i] store b1[i], %2 }")},
    {false, "turned",
     LOOP("par i < 12 { par j < 64 { %3: f32 = load b0[64*i + j] "
          "store b1[i + 12*j], %3 } }")},
    {false, "by place", LOOP("par i < 768 { %2: f32 = index i store b1[i], %2 }")},
    {false, "the last one",
     LOOP("seq i < 768 { %2: f32 = load b0[i] %3: bool = lt %2, %2 "
          "store b3[0], %3 }")},
    {false, "each twice, others never",
     LOOP("par i < 12 { par j < 64 { %3: f32 = load b0[2*i + 2*j] store b1[64*i + j], %3 } }")},
    {false, "one number for all",
     LOOP("%1: f32 = load b2[0] %2: bool = lt %1, %1 store b3[0], %2")},
};
enum { N_KERNELS = sizeof kernels / sizeof *kernels };

START_TEST(elementwise)
{
    Ctx cx;
    bool which[4];
    ctx_init(&cx);
    const char *text = kernels[_i].text;
    Kernel *k = kernel_read(&cx, &cx.perm, source_add(&cx, "test", text, strlen(text), false));
    diag_print(&cx, stdout);
    ck_assert_msg(k != NULL, "%s: can't be read", kernels[_i].what);
    ck_assert_msg(panels_elementwise(k, which) == kernels[_i].is, "%s", kernels[_i].what);
    ctx_free(&cx);
}
END_TEST

/* ---- a model ------------------------------------------------------------------------------ */

/* `given` is an output, and so is all that moves along with it; of `part` there are rows that
 * nothing multiplies, which does no harm; `narrow` is no wider than a panel. */
static const char model_text[] = "model m {\n"
                                 "    input x : f32[7, 64]\n"
                                 "    param far : f32[64, 128] = normal(std = 0.1)\n"
                                 "    param turned : f32[96, 128] = normal(std = 0.1)\n"
                                 "    param stack : f32[2, 96, 96] = normal(std = 0.1)\n"
                                 "    param odd : f32[96, 65] = normal(std = 0.1)\n"
                                 "    param narrow : f32[96, 16] = normal(std = 0.1)\n"
                                 "    param picked : f32[65, 128] = normal(std = 0.1)\n"
                                 "    z = tanh(x @ far) @ transpose(turned)\n"
                                 "    for i in 0..2 { z = tanh(z @ stack[i]) }\n"
                                 "    a = mean((z @ odd @ picked)^2) + mean((z @ narrow)^2)\n"
                                 "    loss mean(z^2) + a\n"
                                 "}\n"
                                 "train m { optimizer sgd(lr = 0.1, momentum = 0.9) }\n";

/* Products of many turns of a loop read `hidden`, of few `seldom`; those by `tall` have many rows;
 * `once` is as large as these. */
static const char turns_text[] = "model m {\n"
                                 "    input x : f32[8, 24, 128]\n"
                                 "    param once : f32[128, 128] = normal(std = 0.1)\n"
                                 "    param hidden : f32[128, 128] = normal(std = 0.1)\n"
                                 "    param seldom : f32[160, 160] = normal(std = 0.1)\n"
                                 "    param tall : f32[144, 144] = normal(std = 0.1)\n"
                                 "    hs, h = scan v in x @ once, h = zeros([24, 128]) {\n"
                                 "        h = tanh(v + h @ hidden)\n"
                                 "        emit h\n"
                                 "    }\n"
                                 "    ks, k = scan v in hs[0:7], k = zeros([24, 160]) {\n"
                                 "        k = tanh(sum(v) + k @ seldom)\n"
                                 "        emit k\n"
                                 "    }\n"
                                 "    ls, l = scan v in hs, l = zeros([100, 144]) {\n"
                                 "        l = tanh(sum(v) + l @ tall)\n"
                                 "        emit l\n"
                                 "    }\n"
                                 "    loss mean(hs^2) + mean(ks^2) + mean(ls^2)\n"
                                 "}\n"
                                 "train m { optimizer sgd(lr = 0.1, momentum = 0.9) }\n";

typedef struct Fixture {
    Ctx cx;
    Output out;
    Arena arena;
    Loaded *loaded;
    const gradc_model *m;
    void *block, *g;
} Fixture;

static void set_up(Fixture *f, const char *text, const TargetOptions *target)
{
    memset(f, 0, sizeof *f);
    ctx_init(&f->cx);
    f->cx.verify = true;
    f->out.arena = &f->arena;
    Options o = {.entry = {true, true, true, true}, .threads_max = 2};
    o.target = *target;
    int32_t source = source_add(&f->cx, "m.model", text, strlen(text), false);
    bool ok = compile(&f->cx, source, &o, &f->out);
    diag_print(&f->cx, stderr);
    ck_assert(ok);
    f->loaded = cpu_load(&f->cx, &f->out.object, "m");
    ck_assert(f->loaded != NULL);
    f->m = loaded_model(f->loaded);
    f->block = aligned_alloc(64, (size_t)f->m->arena_bytes);
    ck_assert_int_eq(f->m->init(f->block, (size_t)f->m->arena_bytes, NULL, &f->g), GRADC_OK);
}

static void tear_down(Fixture *f)
{
    cpu_unload(f->loaded);
    free(f->block);
    for (int e = 0; e < N_ENTRIES; e++)
        if (f->out.graph[e] != NULL)
            graph_free(f->out.graph[e]);
    ctx_free(&f->cx);
    arena_free(&f->arena);
}

static int find(const Fixture *f, const char *name, int32_t role)
{
    for (int32_t i = 0; i < f->m->n_tensors; i++)
        if (strcmp(f->m->tensors[i].name, name) == 0 && f->m->tensors[i].role == role)
            return i;
    ck_abort_msg("there is no tensor %s", name);
}

typedef struct Lies {
    const char *name;
    int32_t role;
    bool panels;
} Lies;

static void lie(const Fixture *f, const Lies *of, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int64_t offset = f->m->tensors[find(f, of[i].name, of[i].role)].offset;
        ck_assert_msg((offset < 0) == of[i].panels, "%s at %lld", of[i].name, (long long)offset);
    }
}

static const TargetOptions all_of_16 = {
    .target = "cpu", .threads_max = 2, .panels_from = 1, .panel_width = 16};

START_TEST(which_parameters)
{
    static const Lies of[] = {
        {"far", GRADC_PARAM, true},
        {"sgd.velocity:far", GRADC_OPTIMIZER, true},
        {"turned", GRADC_PARAM, true},
        {"sgd.velocity:turned", GRADC_OPTIMIZER, true},
        {"picked", GRADC_PARAM, true},
        {"odd", GRADC_PARAM, false},
        {"sgd.velocity:odd", GRADC_OPTIMIZER, false},
        {"narrow", GRADC_PARAM, false},
    };
    Fixture f;
    set_up(&f, model_text, &all_of_16);
    lie(&f, of, sizeof of / sizeof *of);
    tear_down(&f);
}
END_TEST

/* A first cache holds none of the three, a second one all. */
START_TEST(which_of_a_loop)
{
    static const TargetOptions wide = {
        .target = "cpu", .threads_max = 2, .cpu = "baseline", .panel_width = 16};
    static const Lies of[] = {
        {"once", GRADC_PARAM, false},
        {"hidden", GRADC_PARAM, true},
        {"sgd.velocity:hidden", GRADC_OPTIMIZER, true},
        {"seldom", GRADC_PARAM, false},
        {"tall", GRADC_PARAM, false},
    };
    Fixture f;
    set_up(&f, turns_text, &wide);
    lie(&f, of, sizeof of / sizeof *of);
    tear_down(&f);
}
END_TEST

/* Where in the block these numbers follow one another. */
static const float *seen(const Fixture *f, float first, int n)
{
    const float *p = f->block;
    for (int64_t i = 0; i + n <= f->m->arena_bytes / 4; i++) {
        int same = 0;
        while (same < n && p[i + same] == first + (float)same)
            same++;
        if (same == n)
            return p + i;
    }
    return NULL;
}

START_TEST(the_caller_sees_rows)
{
    enum { MATRICES = 2, ROWS = 96, COLS = 96, WIDTH = 16, N = MATRICES * ROWS * COLS };
    static float set[N], got[N];
    Fixture f;
    set_up(&f, model_text, &all_of_16);
    int stack = find(&f, "stack", GRADC_PARAM);
    for (int i = 0; i < N; i++)
        set[i] = (float)(1000 + i);
    ck_assert_int_eq(f.m->write(f.g, stack, set, sizeof set), GRADC_OK);
    ck_assert_int_eq(f.m->read(f.g, stack, got, sizeof got), GRADC_OK);
    ck_assert(memcmp(set, got, sizeof set) == 0);
    const float *first = seen(&f, 1000, WIDTH);
    ck_assert(first != NULL);
    for (int i = 0; i < N; i++) {
        int matrix = i / (ROWS * COLS), row = i / COLS % ROWS, col = i % COLS;
        int at = ((matrix * (COLS / WIDTH) + col / WIDTH) * ROWS + row) * WIDTH + col % WIDTH;
        ck_assert_msg(first[at] == set[i], "element %d", i);
    }
    tear_down(&f);
}
END_TEST

Suite *suite_cpu_panels(void);
Suite *suite_cpu_panels(void)
{
    Suite *s = suite_create("cpu_panels");
    TCase *t = tcase_create("panels");
    tcase_add_loop_test(t, elementwise, 0, N_KERNELS);
    tcase_add_test(t, which_parameters);
    tcase_add_test(t, which_of_a_loop);
    tcase_add_test(t, the_caller_sees_rows);
    suite_add_tcase(s, t);
    return s;
}
