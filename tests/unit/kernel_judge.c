/* Programs and the judge, on a hand-made program: y = x w over two micro-batches
 * of two rows, a sum of y weighted by an integer input, and a guarded update. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "kernel/program.h"

enum { X, LABEL, W, Y, SUM, FLAG, SCALE, ROWS, X_STAGED, LABEL_STAGED, N_BUFFERS };
enum { INPUTS = 2, ROW = 3, BATCH = 2, MICRO = 2 };

static Ctx cx;
static Program *p;

static Kernel *kernel_of(const char *text)
{
    Kernel *k = kernel_read(&cx, &cx.perm, source_add(&cx, "test", text, strlen(text), false));
    if (k == NULL)
        diag_print(&cx, stdout);
    ck_assert_msg(k != NULL, "%s", text);
    const char *bad = kernel_verify(k, &cx.scratch);
    ck_assert_msg(bad == NULL, "%s: %s", bad, text);
    return k;
}

static int32_t add_kernel(const char *text)
{
    return program_kernel(p, kernel_of(text));
}

static void add_buffer(const char *name, DType t, Role role, int64_t elems, int64_t offset,
                       int32_t input, const void *literal)
{
    Buffer b = {.name = name,
                .dtype = t,
                .role = role,
                .rank = 1,
                .shape = {elems},
                .elems = elems,
                .bytes = elems * dtype_bytes(t),
                .offset = offset,
                .input = input,
                .storage = p->buffer.n,
                .literal = literal};
    vec_push(&cx.perm, &p->buffer, b);
}

static const float scale[1] = {0.5f};

static void add_buffers(void)
{
    add_buffer("x", F32, ROLE_INPUT, MICRO * BATCH * ROW, -1, 0, NULL);
    add_buffer("label", I32, ROLE_INPUT, MICRO * BATCH, -1, 1, NULL);
    add_buffer("w", F32, ROLE_PARAM, ROW, 1024, -1, NULL);
    add_buffer("y", F32, ROLE_ACTIVATION, BATCH, 1088, -1, NULL);
    add_buffer("sum", F32, ROLE_OUTPUT, 1, 1152, -1, NULL);
    add_buffer("flag", BOOL, ROLE_ACTIVATION, 1, 1216, -1, NULL);
    add_buffer("scale", F32, ROLE_CONSTANT, 1, -1, -1, scale);
    add_buffer("rows", I64, ROLE_STATE, 1, 1040, -1, NULL);
    add_buffer("x staged", F32, ROLE_STAGING, MICRO * BATCH * ROW, 1280, 0, NULL);
    add_buffer("label staged", I32, ROLE_STAGING, MICRO * BATCH, 1344, 1, NULL);
}

static void add_inputs(void)
{
    Input x = {.name = "x", .dtype = F32, .rank = 2, .shape = {MICRO * BATCH, ROW}};
    x.elems = MICRO * BATCH * ROW;
    x.rows = MICRO * BATCH;
    Input label = {.name = "label", .dtype = I32, .rank = 1, .shape = {MICRO * BATCH}};
    label.elems = label.rows = MICRO * BATCH;
    label.ranged = true;
    label.hi = 10;
    vec_push(&cx.perm, &p->input, x);
    vec_push(&cx.perm, &p->input, label);
}

static Call call(int32_t kernel, int32_t n, const Operand *op)
{
    Operand *copy = NEW_ARRAY(&cx.perm, Operand, n);
    memcpy(copy, op, (size_t)n * sizeof *op);
    return (Call){.kind = CALL_KERNEL, .kernel = kernel, .n_ops = n, .op = copy};
}

static Call *calls(int32_t n, const Call *c)
{
    Call *copy = NEW_ARRAY(&cx.perm, Call, n);
    memcpy(copy, c, (size_t)n * sizeof *c);
    return copy;
}

#define AT(b)                                                                                      \
    {                                                                                              \
        .buffer = (b)                                                                              \
    }
#define OPS(...)                                                                                   \
    (const Operand[])                                                                              \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static void add_entry(const char *name, int32_t n, const Call *c)
{
    Entry e = {.name = name, .n_calls = n, .call = calls(n, c), .finite = -1};
    vec_push(&cx.perm, &p->entry, e);
}

static void add_entries(void)
{
    int32_t fill = add_kernel("loop fill { b0: out f32[3] par i < 3 { %1: i32 = index i + 1 %2: "
                              "f32 = cast %1 store b0[i], %2 } }");
    int32_t zero = add_kernel("loop zero { b0: out f32[1] %1: f32 = const 0 store b0[0], %1 }");
    int32_t dot = add_kernel("loop dot { b0: in f32[6] b1: in f32[3] b2: out f32[2] par i < 2 { "
                             "%1: f32 = acc add red j < 3 { %2: f32 = load b0[3*i + j] %3: f32 = "
                             "load b1[j] %4: f32 = mul %2, %3 into %1, %4 } %5: f32 = fold %1 "
                             "store b2[i], %5 } }");
    int32_t sum = add_kernel("loop sum { b0: in f32[2] b1: in i32[2] b2: inout f32[1] seq i < 2 { "
                             "%1: f32 = load b0[i] %2: i32 = load b1[i] %3: f32 = cast %2 %4: f32 "
                             "= load b2[0] %5: f32 = fma %1, %3, %4 store b2[0], %5 } }");
    int32_t test = add_kernel("loop test { b0: in f32[1] b1: out bool[1] %1: f32 = load b0[0] %2: "
                              "f32 = sub %1, %1 %3: bool = eq %2, %2 store b1[0], %3 }");
    int32_t update = add_kernel("loop update { b0: inout f32[3] b1: in f32[1] b2: in f32[1] b3: in "
                                "i64[1] %1: f32 = load b1[0] %2: f32 = load b2[0] %3: i64 = load "
                                "b3[0] %4: f32 = cast %3 %5: f32 = div %1, %4 par i < 3 { %6: f32 "
                                "= load b0[i] %7: f32 = neg %5 %8: f32 = fma %7, %2, %6 store "
                                "b0[i], %8 } }");
    add_entry("init", 1, (Call[]){call(fill, 1, OPS(AT(W)))});
    Call body[] = {
        call(dot, 3, OPS({.buffer = X, .step = {BATCH * ROW}}, AT(W), AT(Y))),
        call(sum, 3, OPS(AT(Y), {.buffer = LABEL, .step = {BATCH}}, AT(SUM))),
    };
    Call guarded[] = {call(update, 4, OPS(AT(W), AT(SUM), AT(SCALE), AT(ROWS)))};
    Call loop = {.kind = CALL_LOOP, .count = MICRO, .n_body = 2, .body = calls(2, body)};
    Call guard = {.kind = CALL_GUARD, .flag = AT(FLAG), .n_body = 1, .body = calls(1, guarded)};
    add_entry(
        "step", 4,
        (Call[]){call(zero, 1, OPS(AT(SUM))), loop, call(test, 2, OPS(AT(SUM), AT(FLAG))), guard});
    add_entry("eval", 3,
              (Call[]){call(zero, 1, OPS(AT(SUM))), call(dot, 3, OPS(AT(X), AT(W), AT(Y))),
                       call(sum, 3, OPS(AT(Y), AT(LABEL), AT(SUM)))});
}

static void setup(void)
{
    ctx_init(&cx);
    p = NEW(&cx.perm, Program);
    p->arena = &cx.perm;
    p->name = "linear";
    p->pinned_bytes = 1088;
    p->arena_bytes = 1408;
    p->batch_rows = BATCH;
    p->accumulate = MICRO;
    p->rows = ROWS;
    add_buffers();
    add_inputs();
    add_entries();
}

static void teardown(void)
{
    ctx_free(&cx);
}

static float x[MICRO * BATCH * ROW] = {1, 2, 3, -1, 0, 2, 0.5f, 0.25f, 1, 3, -2, 1};
static int32_t label[MICRO * BATCH] = {1, 2, 3, 4};

/* The weighted sum over `all` rows, of which the first `rows` are there, and the last of those in
 * place of the others; weights w. The program masks nothing. */
static float expected_sum(const float *w, int rows, int all)
{
    float sum = 0;
    for (int i = 0; i < all; i++) {
        int r = i < rows ? i : rows - 1;
        sum += (float)label[r] * (x[3 * r] * w[0] + x[3 * r + 1] * w[1] + x[3 * r + 2] * w[2]);
    }
    return sum;
}

START_TEST(exact_runs)
{
    const void *const in[INPUTS] = {x, label};
    for (int rows = 0; rows <= 4; rows++) {
        Judge *j = judge_open(p, K_EXACT, &cx.perm);
        ck_assert_int_eq(judge_run(j, "init", NULL, 0), RUN_OK);
        const float *w = judge_data(j, W);
        ck_assert(w[0] == 1 && w[1] == 2 && w[2] == 3);
        float before[3];
        memcpy(before, w, sizeof before);
        ck_assert_int_eq(judge_run(j, "step", in, rows), RUN_OK);
        int n = rows == 0 ? 4 : rows;
        float sum = expected_sum(before, n, MICRO * BATCH), now = *(float *)judge_data(j, SUM);
        ck_assert_msg(fabsf(sum - now) < 1e-5f, "%d rows: %g %g", rows, sum, now);
        ck_assert_int_eq(*(int64_t *)judge_data(j, ROWS), n);
        for (int i = 0; i < 3; i++)
            ck_assert(fabsf(w[i] - (before[i] - 0.5f * sum / (float)n)) < 1e-4f);
    }
}
END_TEST

START_TEST(wide_runs)
{
    const void *const in[INPUTS] = {x, label};
    Judge *j = judge_open(p, K_WIDE, &cx.perm);
    judge_run(j, "init", NULL, 0);
    ck_assert_int_eq(judge_run(j, "step", in, 3), RUN_OK);
    const float w[3] = {1, 2, 3};
    ck_assert(fabs(*(double *)judge_data(j, SUM) - expected_sum(w, 3, MICRO * BATCH)) < 1e-12);
    ck_assert_int_eq(*(int64_t *)judge_data(j, ROWS), 3);
    ck_assert_int_eq(*(int64_t *)judge_data(j, FLAG), 1);
    ck_assert(*(double *)judge_data(j, SCALE) == 0.5);
}
END_TEST

/* eval reads one micro-batch; the rest of the inputs need not be there. */
START_TEST(fewer_rows_in_eval)
{
    float short_x[BATCH * ROW];
    int32_t short_label[BATCH];
    memcpy(short_x, x, sizeof short_x);
    memcpy(short_label, label, sizeof short_label);
    const void *const in[INPUTS] = {short_x, short_label};
    const float w[3] = {1, 2, 3};
    for (int mode = K_WIDE; mode <= K_DUAL; mode++) {
        Judge *j = judge_open(p, (KMode)mode, &cx.perm);
        judge_run(j, "init", NULL, 0);
        ck_assert_int_eq(judge_run(j, "eval", in, 0), RUN_OK);
        ck_assert_int_eq(judge_run(j, "eval", in, 3), RUN_BAD_ARGUMENT);
        ck_assert_int_eq(judge_run(j, "eval", in, 1), RUN_OK);
        double sum = mode == K_EXACT ? *(float *)judge_data(j, SUM) : *(double *)judge_data(j, SUM);
        ck_assert(fabs(sum - expected_sum(w, 1, BATCH)) < 1e-5);
    }
}
END_TEST

/* A loop's last turn that reads beyond its buffer, an operand that begins before it, and a value
 * that nothing makes. */
START_TEST(wrong_programs)
{
    ck_assert(program_verify(p, &cx.scratch) == NULL);
    Call *loop = &p->entry.at[1].call[1];
    loop->count++;
    const char *wrong = program_verify(p, &cx.scratch);
    ck_assert(wrong != NULL &&
              strstr(wrong, "touches elements 0 to 18 of x, which has 12") != NULL);
    loop->count--;
    p->entry.at[2].call[0].op[0].base = -1;
    wrong = program_verify(p, &cx.scratch);
    ck_assert(wrong != NULL && strstr(wrong, "touches elements -1 to 0 of sum") != NULL);
    p->entry.at[2].call[0].op[0].base = 0;
    p->entry.at[2].n_calls = 1; /* y is made by the second call, and read by the third */
    ck_assert(program_verify(p, &cx.scratch) == NULL);
    p->entry.at[2].call++;
    p->entry.at[2].call[0] = p->entry.at[2].call[1];
    ck_assert(strstr(program_verify(p, &cx.scratch), "reads y, which nothing makes") != NULL);
}
END_TEST

START_TEST(refusals)
{
    const void *const in[INPUTS] = {x, label};
    const void *const none[INPUTS] = {x, NULL};
    int32_t bad[4] = {1, 2, 10, 4};
    const void *const out[INPUTS] = {x, bad};
    Judge *j = judge_open(p, K_EXACT, &cx.perm);
    judge_run(j, "init", NULL, 0);
    judge_run(j, "step", in, 0);
    float before[3];
    memcpy(before, judge_data(j, W), sizeof before);
    ck_assert_int_eq(judge_run(j, "stop", in, 0), RUN_BAD_ARGUMENT);
    ck_assert_int_eq(judge_run(j, "step", in, 5), RUN_BAD_ARGUMENT);
    ck_assert_int_eq(judge_run(j, "step", in, -1), RUN_BAD_ARGUMENT);
    ck_assert_int_eq(judge_run(j, "step", none, 0), RUN_BAD_ARGUMENT);
    ck_assert_int_eq(judge_run(j, "step", NULL, 0), RUN_BAD_ARGUMENT);
    ck_assert_int_eq(judge_run(j, "step", out, 0), RUN_RANGE);
    ck_assert(memcmp(before, judge_data(j, W), sizeof before) == 0);
    /* beyond the valid rows nobody looks */
    ck_assert_int_eq(judge_run(j, "step", out, 2), RUN_OK);
    bad[0] = -1;
    ck_assert_int_eq(judge_run(j, "step", out, 2), RUN_RANGE);
}
END_TEST

START_TEST(guards)
{
    float infinite[MICRO * BATCH * ROW];
    memcpy(infinite, x, sizeof x);
    infinite[0] = INFINITY;
    const void *const in[INPUTS] = {infinite, label};
    Judge *j = judge_open(p, K_EXACT, &cx.perm);
    judge_run(j, "init", NULL, 0);
    ck_assert_int_eq(judge_run(j, "step", in, 0), RUN_OK);
    const float *w = judge_data(j, W);
    ck_assert(w[0] == 1 && w[1] == 2 && w[2] == 3 && *(uint8_t *)judge_data(j, FLAG) == 0);
}
END_TEST

START_TEST(tangents)
{
    const void *const in[INPUTS] = {x, label};
    Judge *j = judge_open(p, K_DUAL, &cx.perm);
    judge_run(j, "init", NULL, 0);
    double *dw = judge_tangent(j, W), *dx = judge_tangent(j, X);
    ck_assert(judge_tangent(j, LABEL) == NULL);
    dw[1] = 1;
    dx[0] = 2;
    ck_assert_int_eq(judge_run(j, "eval", in, 0), RUN_OK);
    double d =
        (double)label[0] * ((double)x[1] + 2) + (double)label[1] * (double)x[4]; /* w[0] is 1 */
    ck_assert(fabs(*judge_tangent(j, SUM) - d) < 1e-12);
}
END_TEST

/* The exact mode runs at the planned offsets: two buffers that overlap disturb
 * one another, and what is read before it is written is NaN. */
START_TEST(placement_shows)
{
    const void *const in[INPUTS] = {x, label};
    const float w[3] = {1, 2, 3};
    p->buffer.at[SUM].offset = p->buffer.at[Y].offset;
    Judge *j = judge_open(p, K_EXACT, &cx.perm);
    judge_run(j, "init", NULL, 0);
    ck_assert_int_eq(judge_run(j, "step", in, 0), RUN_OK);
    ck_assert(fabsf(*(float *)judge_data(j, SUM) - expected_sum(w, 4, 4)) > 1e-3f);
    j = judge_open(p, K_EXACT, &cx.perm);
    ck_assert(isnan(*(float *)judge_data(j, Y)) && *(float *)judge_data(j, W) == 0);
}
END_TEST

START_TEST(shared_storage)
{
    p->buffer.at[SUM].storage = p->buffer.at[Y].storage;
    Judge *j = judge_open(p, K_WIDE, &cx.perm);
    ck_assert(judge_data(j, SUM) == judge_data(j, Y) && judge_data(j, SUM) != judge_data(j, W));
}
END_TEST

START_TEST(kernels_are_shared)
{
    int n = p->kernel.n;
    Kernel *again = kernel_of("loop nought { b0: out f32[1] %1: f32 = const 0 store b0[0], %1 }");
    ck_assert_int_eq(program_kernel(p, again), 1);
    ck_assert_int_eq(p->kernel.n, n);
    Kernel *other = kernel_of("loop zero { b0: out f32[1] %1: f32 = const 1 store b0[0], %1 }");
    ck_assert_int_eq(program_kernel(p, other), n);
}
END_TEST

START_TEST(listing)
{
    Text t;
    text_init(&t, &cx.perm);
    program_print(p, &t);
    static const char *const line[] = {
        "program linear, 1408 bytes, 1088 of them pinned",
        "  #2 w: f32[3] parameters at 1024, 12 bytes",
        "  #6 scale: f32[1] constants\n",
        "  loop t0 < 2 {\n    dot(x#0 + 6*t0, w#2, y#3) kernel 2",
        "  guard flag#5 {\n    update(w#2, sum#4, scale#6, rows#7) kernel 5\n  }\n",
        "# kernel 1\nloop zero {\n",
    };
    for (size_t i = 0; i < sizeof line / sizeof line[0]; i++)
        ck_assert_msg(strstr(t.at, line[i]) != NULL, "no `%s` in\n%s", line[i], t.at);
}
END_TEST

START_TEST(role_names)
{
    for (int r = 0; r < N_ROLES; r++)
        ck_assert(role_name((Role)r) != NULL && role_name((Role)r)[0] != '\0');
}
END_TEST

Suite *suite_kernel_judge(void)
{
    Suite *s = suite_create("kernel_judge");
    TCase *t = tcase_create("all");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, exact_runs);
    tcase_add_test(t, wide_runs);
    tcase_add_test(t, fewer_rows_in_eval);
    tcase_add_test(t, wrong_programs);
    tcase_add_test(t, refusals);
    tcase_add_test(t, guards);
    tcase_add_test(t, tangents);
    tcase_add_test(t, placement_shows);
    tcase_add_test(t, shared_storage);
    tcase_add_test(t, kernels_are_shared);
    tcase_add_test(t, listing);
    tcase_add_test(t, role_names);
    suite_add_tcase(s, t);
    return s;
}
