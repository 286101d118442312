/* Where copies of inputs lie: a hand-made Program, y = x scale, whose eval may lack the scale and
 * has bytes for it, which hold what the other entries compute. */
#include <check.h>
#include <string.h>
#include "target/facts.h"

enum { X, SCALE, SHIFT, W, Y, Z, X_COPY, SCALE_COPY, SHIFT_COPY };
enum { ROWS = 4 };
enum { AT_W = 1024, AT_X = 1088, PINNED = 1152, LANES = PINNED, SPARE = LANES + 64, AT_Y = 1280 };

static Ctx cx;
static Program *p;

static void add_buffer(const char *name, Role role, int64_t elems, int64_t offset, int32_t input)
{
    Buffer b = {.name = name,
                .dtype = F32,
                .role = role,
                .rank = 1,
                .shape = {elems},
                .elems = elems,
                .bytes = elems * dtype_bytes(F32),
                .offset = offset,
                .input = input,
                .storage = p->buffer.n};
    vec_push(&cx.perm, &p->buffer, b);
}

static void add_input(const char *name, int64_t elems, int64_t rows)
{
    Input in = {.name = name, .dtype = F32, .rank = 1, .shape = {elems}};
    in.elems = elems;
    in.rows = rows;
    vec_push(&cx.perm, &p->input, in);
}

static int32_t add_kernel(void)
{
    const char *text = "loop times { b0: in f32[4] b1: in f32[1] b2: in f32[1] b3: out f32[4] par "
                       "i < 4 { %1: f32 = load b0[i] %2: f32 = load b1[0] %3: f32 = load b2[0] %4: "
                       "f32 = fma %1, %2, %3 store b3[i], %4 } }";
    Kernel *k = kernel_read(&cx, &cx.perm, source_add(&cx, "test", text, strlen(text), false));
    ck_assert(k != NULL);
    return program_kernel(p, k);
}

static void add_entry(const char *name, int32_t kernel, int32_t to, int64_t spare_bytes)
{
    Call *c = NEW(&cx.perm, Call);
    *c = (Call){.kind = CALL_KERNEL, .kernel = kernel, .n_ops = 4};
    c->op = NEW_ARRAY(&cx.perm, Operand, 4);
    const int32_t buffer[] = {X, SCALE, SHIFT, to};
    for (int i = 0; i < 4; i++)
        c->op[i].buffer = buffer[i];
    Entry e = {.name = name, .n_calls = 1, .call = c, .finite = -1, .spare_bytes = spare_bytes};
    vec_push(&cx.perm, &p->entry, e);
}

static void setup(void)
{
    ctx_init(&cx);
    p = NEW(&cx.perm, Program);
    *p = (Program){.arena = &cx.perm, .name = "times", .pinned_bytes = PINNED, .threads_max = 1};
    p->batch_rows = ROWS;
    p->lanes_offset = LANES;
    p->lane_bytes = SPARE - LANES;
    p->arena_bytes = AT_Y + 64;
    p->rows = W; /* there is such a buffer */
    add_buffer("x", ROLE_INPUT, ROWS, -1, 0);
    add_buffer("scale", ROLE_INPUT, 1, -1, 1);
    add_buffer("shift", ROLE_INPUT, 1, -1, 2);
    add_buffer("w", ROLE_PARAM, 1, AT_W, -1);
    add_buffer("y", ROLE_OUTPUT, ROWS, AT_Y, -1);
    add_buffer("z", ROLE_ACTIVATION, ROWS, SPARE, -1);
    add_buffer("x", ROLE_STAGING, ROWS, AT_X, 0);
    add_buffer("scale", ROLE_STAGING, 1, SPARE, 1);
    add_buffer("shift", ROLE_STAGING, 1, SPARE, 2);
    add_input("x", ROWS, ROWS);
    add_input("scale", 1, 0);
    add_input("shift", 1, 0);
    int32_t times = add_kernel();
    add_entry("eval", times, Y, AT_Y - SPARE);
    add_entry("grad", times, Z, 0);
    add_entry("step", times, Z, 0);
}

static void teardown(void)
{
    ctx_free(&cx);
}

static Entry *entry(const char *name)
{
    return (Entry *)program_entry(p, name);
}

/* The check ends in these words; NULL: in nothing. */
static void check_says(const char *words)
{
    const char *said = storage_check(p, &cx.scratch);
    if (words == NULL)
        ck_assert_msg(said == NULL, "%s", said);
    else
        ck_assert_msg(said != NULL && strcmp(said, words) == 0, "%s", said);
}

/* What is right for eval is no room in the other entries. */
START_TEST(copies_are_the_entry_s)
{
    Use use[3];
    ck_assert_int_eq(fact_uses(p, entry("eval"), use), ROWS);
    ck_assert(use[0].staging == AT_X && use[1].staging == SPARE && use[2].staging == SPARE);
    ck_assert_int_eq(fact_uses(p, entry("step"), use), ROWS);
    ck_assert(use[0].staging == AT_X && use[1].staging == -1 && use[2].staging == -1);
    ck_assert(use[0].reads == ROWS && use[1].reads == 1);
    check_says(NULL);
    entry("eval")->spare_bytes = 0;
    fact_uses(p, entry("eval"), use);
    ck_assert(use[0].staging == AT_X && use[1].staging == -1 && use[2].staging == -1);
}
END_TEST

START_TEST(no_copy_over_what_the_entry_has)
{
    entry("step")->spare_bytes = 64;
    check_says("step: `scale` is copied over `z`");
    entry("step")->spare_bytes = 0;
    p->buffer.at[Y].offset = SPARE;
    check_says("eval: `scale` is copied over `y`");
    p->buffer.at[Y].offset = AT_Y;
    p->buffer.at[X_COPY].offset = AT_W - 12;
    check_says("eval: `x` is copied over `the handle`");
    p->buffer.at[X_COPY].offset = AT_W;
    check_says("eval: `x` is copied over `w`");
    p->buffer.at[X_COPY].offset = AT_X;
    p->lanes_offset = AT_X;
    p->lane_bytes = SPARE - AT_X;
    check_says("eval: `x` is copied over `the scratch of lanes`");
}
END_TEST

/* Zeros may serve two inputs, but not what might be something else. */
START_TEST(copies_lie_apart)
{
    p->input.at[2].ranged = true;
    p->input.at[2].lo = 1;
    p->input.at[2].hi = 3;
    check_says("eval: `shift` is copied over the copy of `scale`");
    p->buffer.at[SHIFT_COPY].offset += 4;
    check_says(NULL);
    p->input.at[2].ranged = false;
    p->buffer.at[SCALE_COPY].offset = AT_X + 8;
    check_says("eval: `scale` is copied over the copy of `x`");
}
END_TEST

START_TEST(scratch_of_a_call_lies_apart)
{
    Call *eval = entry("eval")->call, *step = entry("step")->call;
    step->scratch = SPARE + 64; /* behind z, which is there */
    step->lane_bytes = 64;
    step->lanes = 1;
    check_says(NULL);
    step->scratch = SPARE;
    check_says("step: `times` has scratch of lanes over `z`");
    step->scratch = p->arena_bytes - 64;
    check_says(NULL);
    step->lanes = 2;
    check_says("step: `times` has no room for `the scratch of lanes`");
    step->lanes = 1;
    step->scratch = PINNED - 64;
    check_says("step: `times` has no room for `the scratch of lanes`");
    step->scratch = 0;
    eval->scratch = SPARE;
    eval->lane_bytes = 64;
    eval->lanes = 1;
    check_says("eval: `scale` is copied over `the scratch of lanes`");
}
END_TEST

START_TEST(what_is_written_has_storage)
{
    p->buffer.at[Z].offset = -1;
    check_says("grad: `times` writes, where it has no storage, `z`");
    p->buffer.at[Z].offset = p->arena_bytes;
    check_says("grad: `times` writes, where it has no storage, `z`");
    p->buffer.at[Z].offset = HANDLE_BYTES - 64;
    check_says("grad: `times` writes, where it has no storage, `z`");
    p->buffer.at[Z].offset = SPARE;
    p->buffer.at[Z].turns = 3; /* the last lane's is beyond the block */
    p->buffer.at[Z].turn_bytes = (p->arena_bytes - SPARE) / 2;
    check_says("grad: `times` writes, where it has no storage, `z`");
    p->buffer.at[Z].turns = 2;
    check_says(NULL);
    p->buffer.at[Z].turns = p->buffer.at[Z].turn_bytes = 0;
    entry("step")->call->op[3].buffer = X;
    check_says("step: `times` writes, where it has no storage, `x`");
}
END_TEST

/* It needs no room, wherever it is said to be. */
START_TEST(nothing_is_anywhere)
{
    Buffer *b = &p->buffer.at[Z];
    b->elems = b->bytes = 0;
    const int64_t at[] = {-1, 0, AT_W, AT_X + 4, SPARE, p->arena_bytes + 64};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        b->offset = at[i];
        entry("step")->spare_bytes = 64;
        check_says(NULL);
    }
}
END_TEST

/* It runs after a step that was not finite, on the step's inputs. */
START_TEST(grad_reads_what_step_has_checked)
{
    entry("step")->n_calls = 0;
    check_says("grad: `grad` reads more than `step` of `x`");
}
END_TEST

Suite *suite_storage(void)
{
    Suite *s = suite_create("storage");
    TCase *t = tcase_create("all");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, copies_are_the_entry_s);
    tcase_add_test(t, no_copy_over_what_the_entry_has);
    tcase_add_test(t, copies_lie_apart);
    tcase_add_test(t, scratch_of_a_call_lies_apart);
    tcase_add_test(t, what_is_written_has_storage);
    tcase_add_test(t, nothing_is_anywhere);
    tcase_add_test(t, grad_reads_what_step_has_checked);
    suite_add_tcase(s, t);
    return s;
}
