/* Loops whose turns may run in any order: hand-made loops over copies from one buffer of the block
 * to another. */
#include <check.h>
#include <string.h>
#include "kernel/program.h"

enum { A, B, LANE, IN, N_BUFFERS };
enum { ELEMS = 64, TURNS = 4, EACH = 4, AT_A = 1024, AT_B = AT_A + 4 * ELEMS };

static Ctx cx;
static Program *p;
static Call call;  /* copies EACH elements */
static Call inner; /* a loop around it */
static Operand op[2];

static void add_buffer(Role role, int64_t offset, int64_t turn_bytes)
{
    Buffer b = {.name = "x",
                .dtype = F32,
                .role = role,
                .rank = 1,
                .shape = {ELEMS},
                .elems = ELEMS,
                .bytes = 4 * ELEMS,
                .offset = offset,
                .turns = turn_bytes > 0 ? 2 : 0,
                .turn_bytes = turn_bytes,
                .input = -1};
    vec_push(&cx.perm, &p->buffer, b);
}

static void setup(void)
{
    ctx_init(&cx);
    p = NEW(&cx.perm, Program);
    *p = (Program){.arena = &cx.perm, .name = "copies", .rows = -1};
    add_buffer(ROLE_ACTIVATION, AT_A, 0);
    add_buffer(ROLE_ACTIVATION, AT_B, 0);
    add_buffer(ROLE_WORKSPACE, AT_B + 4 * ELEMS, 4 * ELEMS);
    add_buffer(ROLE_INPUT, -1, 0);
    const char *text = "loop copy { b0: in f32[4] b1: out f32[4] par i < 4 { %1: f32 = load b0[i] "
                       "store b1[i], %1 } }";
    Kernel *k = kernel_read(&cx, &cx.perm, source_add(&cx, "test", text, strlen(text), false));
    ck_assert(k != NULL);
    memset(op, 0, sizeof op);
    call = (Call){.kind = CALL_KERNEL, .kernel = program_kernel(p, k), .n_ops = 2, .op = op};
    inner = (Call){.kind = CALL_LOOP, .count = 2, .n_body = 1, .body = &call};
}

static void teardown(void)
{
    ctx_free(&cx);
}

/* Turn i copies from element from + i * from_step to to + i * to_step. */
static void copies(int32_t from_buffer, int64_t from, int64_t from_step, int32_t to_buffer,
                   int64_t to, int64_t to_step)
{
    op[0] = (Operand){.buffer = from_buffer, .base = from, .step = {from_step}};
    op[1] = (Operand){.buffer = to_buffer, .base = to, .step = {to_step}};
}

static bool apart(Call *body)
{
    Call loop = {.kind = CALL_LOOP, .count = TURNS, .n_body = 1, .body = body};
    return program_turns_apart(p, &loop, 0);
}

START_TEST(slices_lie_apart)
{
    copies(A, 0, EACH, B, 0, EACH);
    ck_assert(apart(&call));
    copies(A, 0, 0, B, 12, -EACH); /* all read the same, and write from the end on */
    ck_assert(apart(&call));
    copies(B, 0, EACH, B, 32, EACH); /* two parts of one buffer */
    ck_assert(apart(&call));
    copies(A, 0, 2 * EACH, A, EACH, 2 * EACH); /* each within its own eight */
    ck_assert(apart(&call));
}
END_TEST

START_TEST(slices_that_touch)
{
    copies(A, 0, EACH, B, 0, 0); /* all write there */
    ck_assert(!apart(&call));
    copies(A, 0, EACH, B, 0, EACH - 1);
    ck_assert(!apart(&call));
    copies(B, 0, EACH, B, EACH, EACH); /* the next one reads what this one writes */
    ck_assert(!apart(&call));
    copies(B, EACH, EACH, B, 0, EACH); /* ... and the other way round */
    ck_assert(!apart(&call));
    copies(B, 12, -EACH, B, 0, EACH);
    ck_assert(!apart(&call));
    copies(A, ELEMS - EACH, 0, B, 0, EACH);
    ck_assert(apart(&call));
    p->buffer.at[B].offset = AT_A + 4 * (ELEMS - EACH); /* memory, not names */
    ck_assert(!apart(&call));
}
END_TEST

START_TEST(lanes_have_their_own)
{
    copies(A, 0, EACH, LANE, 0, 0);
    ck_assert(apart(&call));
    copies(LANE, 0, 0, B, 0, EACH);
    ck_assert(apart(&call));
    copies(IN, 0, EACH, B, 0, EACH); /* the caller's memory is nobody's in the block */
    ck_assert(apart(&call));
}
END_TEST

START_TEST(loops_within)
{
    copies(A, 0, 0, B, 0, 2 * EACH);
    op[1].step[1] = EACH;
    ck_assert(apart(&inner));
    op[1].step[1] = EACH + 1; /* reaches into what the next turn writes */
    ck_assert(!apart(&inner));
    op[1].step[1] = -EACH;
    op[1].base = EACH;
    ck_assert(apart(&inner));
    op[1].step[0] = EACH;
    ck_assert(!apart(&inner));
}
END_TEST

/* The loop is inside of another one, which moves both operands, one or none. */
START_TEST(loops_around)
{
    Call loop = {.kind = CALL_LOOP, .count = TURNS, .n_body = 1, .body = &call};
    op[0] = (Operand){.buffer = B, .base = 32, .step = {EACH, EACH}};
    op[1] = (Operand){.buffer = B, .base = 0, .step = {EACH, EACH}};
    ck_assert(program_turns_apart(p, &loop, 1));
    op[0].step[0] = 0; /* how far from what is written depends on the turn of the outer loop */
    ck_assert(!program_turns_apart(p, &loop, 1));
    op[0].buffer = A;
    ck_assert(program_turns_apart(p, &loop, 1));
    op[1].step[1] = 0;
    ck_assert(!program_turns_apart(p, &loop, 1));
}
END_TEST

START_TEST(what_else_is_done)
{
    copies(A, 0, EACH, B, 0, EACH);
    Call guard = {.kind = CALL_GUARD, .n_body = 1, .body = &call};
    guard.flag.buffer = A;
    ck_assert(apart(&guard));
    guard.flag.buffer = B; /* which the turns write */
    ck_assert(!apart(&guard));
    Call out = {.kind = CALL_OUT, .n_ops = 1, .op = op};
    ck_assert(!apart(&out));
}
END_TEST

/* Turns that are moved to the last valid row. */
START_TEST(rows_that_may_be_missing)
{
    Input in = {.name = "x", .dtype = F32, .rank = 1, .shape = {ELEMS}, .by_row = true};
    in.elems = ELEMS;
    in.rows = TURNS;
    vec_push(&cx.perm, &p->input, in);
    p->buffer.at[IN].input = 0;
    copies(IN, 0, EACH, B, 0, EACH);
    ck_assert(apart(&call));
    p->rows = A;
    ck_assert(!apart(&call));
}
END_TEST

Suite *suite_turns(void)
{
    Suite *s = suite_create("turns");
    TCase *t = tcase_create("turns");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, slices_lie_apart);
    tcase_add_test(t, slices_that_touch);
    tcase_add_test(t, lanes_have_their_own);
    tcase_add_test(t, loops_within);
    tcase_add_test(t, loops_around);
    tcase_add_test(t, what_else_is_done);
    tcase_add_test(t, rows_that_may_be_missing);
    suite_add_tcase(s, t);
    return s;
}
