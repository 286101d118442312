/* The plan's checker: a good plan passes, and each of many broken ones is refused for
 * the right reason. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "support/few.h"
#include "unit/plan_make.h"

static Arena arena;

static void start(void)
{
    arena = (Arena){0};
}

static void stop(void)
{
    arena_free(&arena);
}

/* ---- a plan with a bit of everything ------------------------------------------------ */

enum { W, M, X, A, B, C, T, LOSS, G, FINITE, TOKENS };
enum { EMBED, RELU, NORM, MEAN, AGAIN, BACK, CHECK, UPDATE };

static void reads(Make *m, int n, const int *value)
{
    for (int i = 0; i < n; i++)
        make_read(m, value[i]);
}

static void step(Make *m, const char *label, int n, const int *read, int write)
{
    make_step(m, label);
    reads(m, n, read);
    make_write(m, write);
}

static Plan *good_plan(void)
{
    Make m = {.arena = &arena, .base = 1024, .threads_max = 2};
    make_pinned(&m, "w", ROLE_PARAM, 256);
    make_pinned(&m, "m", ROLE_OPTIMIZER, 256);
    make_value(&m, "x", ROLE_STAGING, 100);
    make_value(&m, "a", ROLE_ACTIVATION, 1000);
    make_value(&m, "b", ROLE_ACTIVATION, 1000);
    make_value(&m, "c", ROLE_ACTIVATION, 500);
    make_value(&m, "t", ROLE_ACTIVATION, 64);
    m.value.at[make_value(&m, "loss", ROLE_OUTPUT, 4)].to_end = true;
    make_value(&m, "g", ROLE_GRADIENT, 256);
    make_value(&m, "finite", ROLE_ACTIVATION, 1);
    make_value(&m, "tokens", ROLE_INPUT, 0);

    step(&m, "embed", 3, (int[]){X, W, TOKENS}, A);
    m.step.at[EMBED].lane_bytes = 100;
    step(&m, "relu", 1, (int[]){A}, B);
    make_inplace(&m, A, B);
    step(&m, "norm", 1, (int[]){B}, C);
    make_write(&m, T);
    m.step.at[NORM].workspace = 300;
    step(&m, "mean", 2, (int[]){C, T}, LOSS);
    step(&m, "again", 1, (int[]){B}, T);
    step(&m, "back", 3, (int[]){T, C, B}, G);
    make_inplace(&m, B, G);
    step(&m, "check", 2, (int[]){G, LOSS}, FINITE);
    step(&m, "update", 4, (int[]){G, FINITE, W, M}, W);
    make_write(&m, M);
    m.step.at[UPDATE].guarded = true;
    Plan *p = make_plan(&m);
    plan_liveness(p);
    plan_place(p);
    return p;
}

/* The last range of a value; of T, which has two, the first is range_of(T) - 1st. */
static PlanRange *last_range(Plan *p, int value)
{
    PlanRange *r = NULL;
    for (int i = 0; i < p->n_ranges; i++)
        if (p->range[i].value == value)
            r = &p->range[i];
    return r;
}

static PlanRange *first_range(Plan *p, int value)
{
    for (int i = 0; i < p->n_ranges; i++)
        if (p->range[i].value == value)
            return &p->range[i];
    return NULL;
}

static void move(Plan *p, PlanRange *r, int64_t offset)
{
    r->offset = offset;
    p->value[r->value].offset = offset;
}

static PlanRange *add_range(Plan *p, PlanRange added)
{
    PlanRange *more = NEW_ARRAY(&arena, PlanRange, p->n_ranges + 1);
    memcpy(more, p->range, (size_t)p->n_ranges * sizeof *more);
    p->range = more;
    more[p->n_ranges] = added;
    return &more[p->n_ranges++];
}

START_TEST(a_good_plan_passes)
{
    Plan *p = good_plan();
    const char *wrong = plan_check(p, &arena);
    ck_assert_msg(wrong == NULL, "%s", wrong);
    ck_assert_int_eq(last_range(p, B)->storage, first_range(p, A)->storage);
    ck_assert_int_eq(last_range(p, G)->storage, first_range(p, A)->storage);
    ck_assert_int_eq(p->peak, p->live_peak);
}
END_TEST

/* Updates between steps of the reverse pass: `m` changes before the forward pass runs again, for
 * the gradient of `w`, which changes at the end, or `first` does. */
static Plan *early_plan(int first)
{
    int second = first == W ? M : W;
    Make m = {.arena = &arena, .base = 1024, .threads_max = 2};
    make_pinned(&m, "w", ROLE_PARAM, 256);
    make_pinned(&m, "m", ROLE_OPTIMIZER, 256);
    make_value(&m, "x", ROLE_STAGING, 100);
    make_value(&m, "a", ROLE_ACTIVATION, 1000);
    make_value(&m, "b", ROLE_GRADIENT, 256);
    make_value(&m, "c", ROLE_GRADIENT, 256);
    make_value(&m, "t", ROLE_ACTIVATION, 64);
    m.value.at[make_value(&m, "loss", ROLE_OUTPUT, 4)].to_end = true;
    make_value(&m, "g", ROLE_GRADIENT, 256);
    m.value.at[make_value(&m, "finite", ROLE_ACTIVATION, 1)].to_end = true;
    step(&m, "forward", 2, (int[]){X, W}, A);
    step(&m, "mean", 1, (int[]){A}, LOSS);
    make_write(&m, FINITE);
    step(&m, "back", 2, (int[]){LOSS, FINITE}, B);
    step(&m, "update", 3, (int[]){B, M, FINITE}, first);
    step(&m, "forward", 2, (int[]){X, W}, A);
    m.step.at[4].run = 1;
    step(&m, "back", 2, (int[]){A, FINITE}, C);
    step(&m, "update", 2, (int[]){C, FINITE}, second);
    m.step.at[2].guarded = m.step.at[3].guarded = true;
    m.step.at[5].guarded = m.step.at[6].guarded = true;
    Plan *p = make_plan(&m);
    plan_liveness(p);
    plan_place(p);
    return p;
}

START_TEST(steps_run_again_between_updates)
{
    const char *wrong = plan_check(early_plan(M), &arena);
    ck_assert_msg(wrong == NULL, "%s", wrong);
    wrong = plan_check(early_plan(W), &arena);
    ck_assert_str_eq(wrong, "step 4 reads `w`, which step 3 has changed");
    Plan *p = early_plan(M);
    p->step[5].guarded = false;
    p->step[5].read[0] = B;
    wrong = plan_check(p, &arena);
    ck_assert_msg(wrong != NULL, "what may be skipped is read by what is not");
}
END_TEST

/* ---- broken ones ---------------------------------------------------------------------- */

static void negative_steps(Plan *p)
{
    p->n_steps = -1;
}

static void no_size(Plan *p)
{
    p->threads_max = -1;
}

static void negative_bytes(Plan *p)
{
    p->value[C].bytes = -4;
}

static void pinned_outside(Plan *p)
{
    p->value[M].offset = p->base - 128;
}

static void pinned_overlap(Plan *p)
{
    p->value[M].offset = p->value[W].offset + 64;
}

static void unknown_value(Plan *p)
{
    p->step[MEAN].read[1] = 99;
}

static void unknown_pair(Plan *p)
{
    p->step[RELU].inplace[0].read = -1;
}

static void unknown_range(Plan *p)
{
    p->step[RELU].frees[0] = 77;
}

static void workspace_size(Plan *p)
{
    p->step[NORM].workspace = -1;
}

static void lane_size(Plan *p)
{
    p->step[NORM].lane_bytes = -1;
}

static void lanes_of_no_size(Plan *p)
{
    p->step[NORM].lane_bytes = INT64_MAX / 3;
}

static void lanes_not_aligned(Plan *p)
{
    p->step[EMBED].workspace_offset += 4;
}

static void lanes_in_pinned(Plan *p)
{
    p->step[EMBED].workspace_offset = 960;
}

static void lanes_grown(Plan *p)
{
    p->step[EMBED].lane_bytes = p->peak;
}

static void range_of_nothing(Plan *p)
{
    last_range(p, C)->value = 50;
}

static void range_of_pinned(Plan *p)
{
    last_range(p, C)->value = W;
}

static void range_of_an_input(Plan *p)
{
    last_range(p, C)->value = TOKENS;
}

static void range_backwards(Plan *p)
{
    last_range(p, C)->from = 6;
}

static void range_too_long(Plan *p)
{
    last_range(p, LOSS)->to = p->n_steps;
}

static void storage_unknown(Plan *p)
{
    last_range(p, B)->storage = 100;
}

static void storage_of_another(Plan *p)
{
    last_range(p, G)->storage = (int32_t)(last_range(p, B) - p->range);
}

static void storage_apart(Plan *p)
{
    move(p, last_range(p, B), last_range(p, B)->offset + 64);
}

static void not_aligned(Plan *p)
{
    move(p, last_range(p, C), last_range(p, C)->offset + 32);
}

static void in_pinned(Plan *p)
{
    move(p, last_range(p, C), 1024);
}

static void in_lanes(Plan *p)
{
    p->step[EMBED].workspace_offset = last_range(p, A)->offset;
}

static void behind_the_peak(Plan *p)
{
    p->peak -= 64;
}

static void peak_too_high(Plan *p)
{
    p->peak += 64;
}

static void live_peak_wrong(Plan *p)
{
    p->live_peak += 64;
}

static void peak_step_wrong(Plan *p)
{
    p->peak_step++;
}

static void never_stored(Plan *p)
{
    p->step[EMBED].n_writes = 0;
}

static void stored_twice(Plan *p)
{
    p->step[NORM].write[0] = T;
}

static void starts_late(Plan *p)
{
    last_range(p, C)->from++;
}

static void a_range_too_many(Plan *p)
{
    add_range(p, (PlanRange){.value = T,
                             .from = 6,
                             .to = 6,
                             .storage = p->n_ranges,
                             .offset = last_range(p, T)->offset});
    make_end_at(&arena, p, last_range(p, T), 6);
}

static void freed_early(Plan *p)
{
    make_end_at(&arena, p, last_range(p, C), MEAN);
}

static void freed_late(Plan *p)
{
    make_end_at(&arena, p, last_range(p, C), CHECK);
}

static void free_missing(Plan *p)
{
    p->step[BACK].n_frees--;
}

static void free_of_the_living(Plan *p)
{
    p->step[MEAN].frees[0] = (int32_t)(last_range(p, LOSS) - p->range);
}

static void free_twice(Plan *p)
{
    ck_assert_int_ge(p->step[BACK].n_frees, 2);
    p->step[BACK].frees[1] = p->step[BACK].frees[0];
}

static void over_the_living(Plan *p)
{
    move(p, last_range(p, C), last_range(p, B)->offset);
}

static void over_a_sibling(Plan *p)
{
    move(p, first_range(p, T), last_range(p, C)->offset);
}

static void in_place_undeclared(Plan *p)
{
    p->step[RELU].n_inplace = 0;
}

static void in_place_of_the_unread(Plan *p)
{
    p->step[RELU].n_reads = 0;
    make_end_at(&arena, p, first_range(p, A), RELU);
}

static void in_place_read_later(Plan *p)
{
    p->step[NORM].read[0] = A;
}

static void in_place_but_apart(Plan *p)
{
    PlanRange *b = last_range(p, B);
    b->storage = (int32_t)(b - p->range);
    last_range(p, G)->storage = b->storage;
}

static void in_place_too_large(Plan *p)
{
    p->value[B].bytes = 1025;
    p->peak = 1 << 20;
}

static void shared_without_reason(Plan *p)
{
    move(p, last_range(p, T), first_range(p, T)->offset);
    last_range(p, T)->storage = first_range(p, T)->storage;
}

static void workspace_over_the_living(Plan *p)
{
    p->step[NORM].workspace_offset = last_range(p, B)->offset;
}

static void workspace_over_a_result(Plan *p)
{
    p->step[NORM].workspace_offset = last_range(p, C)->offset;
}

static void workspace_in_between(Plan *p)
{
    freed_early(p);
    p->step[AGAIN].workspace = 64;
    p->step[AGAIN].workspace_offset = last_range(p, C)->offset;
}

static void stale_version(Plan *p)
{
    p->step[AGAIN].n_writes = 0;
}

static void result_freed(Plan *p)
{
    make_end_at(&arena, p, last_range(p, LOSS), CHECK);
}

static void result_overwritten(Plan *p)
{
    make_end_at(&arena, p, last_range(p, LOSS), CHECK);
    p->step[UPDATE].workspace = 64;
    p->step[UPDATE].workspace_offset = last_range(p, LOSS)->offset;
}

static void result_missing(Plan *p)
{
    p->value[T].to_end = true;
    p->step[NORM].n_writes = 1;
    p->step[AGAIN].n_writes = 0;
    p->step[MEAN].n_reads = 1;
    p->step[BACK].read[0] = C;
}

static void reads_a_guarded(Plan *p)
{
    p->step[BACK].guarded = true;
}

static void result_is_guarded(Plan *p)
{
    p->step[MEAN].guarded = p->step[CHECK].guarded = true;
}

static void value_elsewhere(Plan *p)
{
    p->value[T].offset = 0;
}

/* X becomes a second name of W's place, for its new value. */
static void alias_of_w(Plan *p)
{
    p->value[B].pinned = true;
    p->value[B].bytes = p->value[W].bytes;
    p->value[B].offset = p->value[W].offset;
    p->n_ranges = 0;
    for (int s = 0; s < p->n_steps; s++)
        p->step[s].n_reads = p->step[s].n_writes = p->step[s].n_frees = 0;
    p->value[LOSS].to_end = false;
}

static void old_state_read_late(Plan *p)
{
    alias_of_w(p);
    p->step[AGAIN].write[0] = B;
    p->step[AGAIN].n_writes = 1;
    p->step[UPDATE].read[0] = W;
    p->step[UPDATE].n_reads = 1;
}

static void state_written_twice(Plan *p)
{
    alias_of_w(p);
    p->step[UPDATE].write[0] = B;
    p->step[UPDATE].write[1] = W;
    p->step[UPDATE].n_writes = 2;
}

/* An update without a guard, and after it what reads the parameter, again. */
static void runs_again_after_a_change(Plan *p)
{
    p->step[AGAIN].write[0] = W;
    p->step[AGAIN].n_writes = 1;
    p->step[BACK] = p->step[EMBED];
    p->step[BACK].read++; /* W and TOKENS; X is gone */
    p->step[BACK].n_reads--;
    p->step[BACK].run = 1;
}

static void updates_twice(Plan *p)
{
    p->step[AGAIN].write[0] = W;
    p->step[AGAIN].n_writes = 1;
    p->step[BACK] = p->step[AGAIN];
    p->step[BACK].run = 1;
}

/* B and C lie in a part that may keep `bytes`; the reverse pass begins with AGAIN. */
static void has_part(Plan *p, int64_t bytes)
{
    BudgetPart *part = NEW(&arena, BudgetPart);
    Origin *origin = NEW(&arena, Origin);
    *part = (BudgetPart){.at = NO_SPAN, .bytes = bytes};
    *origin = (Origin){.span = NO_SPAN, .part = part};
    p->value[B].origin = p->value[C].origin = origin;
    p->step[AGAIN].reverse = p->step[BACK].reverse = p->step[CHECK].reverse = true;
    plan_parts(p);
}

static void part_keeps_too_much(Plan *p)
{
    has_part(p, 1024 + 512 - 1);
}

static void part_keeps_more_than_it_says(Plan *p)
{
    has_part(p, 2000);
    p->part[0].kept = 1024;
}

START_TEST(a_part_is_counted)
{
    Plan *p = good_plan();
    has_part(p, 1024 + 512);
    ck_assert_int_eq(p->n_parts, 1);
    ck_assert_int_eq(p->part[0].kept, 1024 + 512);
    ck_assert_ptr_null(plan_check(p, &arena));
    p->step[MEAN].reverse = true; /* T too is read there, but is in no part */
    plan_parts(p);
    ck_assert_int_eq(p->part[0].kept, 1024 + 512);
    p->step[BACK].reverse = false; /* then C waits for nothing */
    p->step[MEAN].reverse = false;
    plan_parts(p);
    ck_assert_int_eq(p->part[0].kept, 1024);
    ck_assert_ptr_null(plan_check(p, &arena));
}
END_TEST

static const struct Broken {
    const char *name;
    void (*change)(Plan *p);
    const char *message;
} broken[] = {
#define BROKEN(name, message)                                                                      \
    {                                                                                              \
#name, name, message                                                                       \
    }
    BROKEN(negative_steps, "the plan has a negative number of values, steps or ranges"),
    BROKEN(no_size, "base, lanes or peak of the plan are no sizes"),
    BROKEN(negative_bytes, "`c` has -4 bytes"),
    BROKEN(pinned_outside, "pinned `m` lies outside of pinned storage"),
    BROKEN(pinned_overlap, "pinned `m` lies over pinned `w`"),
    BROKEN(unknown_value, "step 3 names a value that does not exist"),
    BROKEN(unknown_pair, "step 1 names a value that does not exist"),
    BROKEN(unknown_range, "step 1 frees a range that does not exist"),
    BROKEN(workspace_size, "workspace or lane scratch of step 2 are no sizes"),
    BROKEN(lane_size, "workspace or lane scratch of step 2 are no sizes"),
    BROKEN(lanes_of_no_size, "workspace or lane scratch of step 2 are no sizes"),
    BROKEN(lanes_not_aligned, "the workspace of step 0 is not aligned"),
    BROKEN(lanes_in_pinned, "the workspace of step 0 lies at 960, in pinned storage"),
    BROKEN(lanes_grown, "the workspace of step 0 ends behind the peak"),
    BROKEN(range_of_nothing, "is of a value that does not exist"),
    BROKEN(range_of_pinned, "`w` has a range, but is not placed by the plan"),
    BROKEN(range_of_an_input, "`tokens` has a range, but is not placed by the plan"),
    BROKEN(range_backwards, "the range of `c` is from step 6 to step 5"),
    BROKEN(range_too_long, "the range of `loss` is from step 3 to step 8"),
    BROKEN(storage_unknown, "`b` is in storage 100, which is none"),
    BROKEN(storage_of_another, "`g` is in storage 2, which is none"),
    BROKEN(storage_apart, "`b` is not where its storage is"),
    BROKEN(not_aligned, "`c` is not aligned"),
    BROKEN(in_pinned, "`c` lies at 1024, in pinned storage"),
    BROKEN(in_lanes, "the workspace of step 0 lies over `a`, which is live"),
    BROKEN(behind_the_peak, "ends behind the peak"),
    BROKEN(peak_too_high, "the peak is given as"),
    BROKEN(live_peak_wrong, "bytes are live at step 2, but the plan says"),
    BROKEN(peak_step_wrong, "bytes are live at step 2, but the plan says"),
    BROKEN(never_stored, "step 1 reads `a`, which nothing has stored"),
    BROKEN(stored_twice, "step 2 stores `t`, but the plan has no range from there"),
    BROKEN(starts_late, "step 2 stores `c`, but the plan has no range from there"),
    BROKEN(a_range_too_many, "`t` is to live from step 6, which does not store it"),
    BROKEN(freed_early, "step 5 reads `c`, which is freed after step 3"),
    BROKEN(freed_late, "`c` is kept until step 6, but last used by step 5"),
    BROKEN(free_missing, "step 5 frees"),
    BROKEN(free_of_the_living, "step 3 frees `loss`, which is live until step 7"),
    BROKEN(free_twice, "twice"),
    BROKEN(over_the_living, "step 2 writes `c` over `b`, which is live until step 5"),
    BROKEN(over_a_sibling, "step 2 writes `t` over `c`, which is live until step 5"),
    BROKEN(in_place_undeclared, "step 1 writes `b` over `a`, and may not do so in place"),
    BROKEN(in_place_of_the_unread, "step 1 writes `b` over `a`, and may not do so in place"),
    BROKEN(in_place_read_later, "step 2 reads `a` after step 1 wrote `b` over it"),
    BROKEN(in_place_but_apart, "step 1 writes `b` over `a`, but they share no storage"),
    BROKEN(in_place_too_large, "step 1 writes `b` over `a`, which is smaller"),
    BROKEN(shared_without_reason, "step 4 stores `t` in the storage of `t` without taking it over"),
    BROKEN(workspace_over_the_living, "the workspace of step 2 lies over `b`, which is live"),
    BROKEN(workspace_over_a_result, "the workspace of step 2 lies over `c`, which is live"),
    BROKEN(workspace_in_between, "step 5 reads `c` after the workspace of step 4 was there"),
    BROKEN(stale_version, "step 5 reads `t`, which is freed after step 3"),
    BROKEN(result_freed, "`loss` is kept until step 6, but last used by step 7"),
    BROKEN(result_overwritten, "the caller reads `loss` after the workspace of step 7 was there"),
    BROKEN(result_missing, "nothing stores `t`, which is read after the last step"),
    BROKEN(reads_a_guarded, "step 6 reads `g`, but step 5 that stores it may be skipped"),
    BROKEN(result_is_guarded, "the caller reads `loss`, but step 3 that stores it may be skipped"),
    BROKEN(value_elsewhere, "`t` is said to lie at 0, but was last stored at"),
    BROKEN(old_state_read_late, "step 7 reads `w` after step 4 wrote `b` over it"),
    BROKEN(state_written_twice, "step 7 stores both `b` and `w` in one place"),
    BROKEN(runs_again_after_a_change, "step 5 reads `w`, which step 4 has changed"),
    BROKEN(updates_twice, "step 5 stores `w`, which step 4 has changed"),
    BROKEN(part_keeps_too_much, "part 0 keeps 1536 bytes, and may keep 1535"),
    BROKEN(part_keeps_more_than_it_says, "part 0 is said to keep 1024 bytes, and keeps 1536"),
#undef BROKEN
};

START_TEST(a_broken_plan_is_refused)
{
    const struct Broken *b = &broken[_i];
    Plan *p = good_plan();
    b->change(p);
    const char *wrong = plan_check(p, &arena);
    ck_assert_msg(wrong != NULL, "%s is accepted", b->name);
    ck_assert_msg(strstr(wrong, b->message) != NULL, "%s: %s\n instead of: %s", b->name, wrong,
                  b->message);
}
END_TEST

/* ---- random changes, judged pair by pair ----------------------------------------------- */

static int64_t whole(int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static bool apart(int64_t a, int64_t a_bytes, int64_t b, int64_t b_bytes)
{
    return a_bytes == 0 || b_bytes == 0 || a + a_bytes <= b || b + b_bytes <= a;
}

static bool pair_is_good(const Plan *p, const PlanRange *a, const PlanRange *b)
{
    int64_t a_bytes = p->value[a->value].bytes, b_bytes = p->value[b->value].bytes;
    if (a->storage == b->storage)
        return a->offset == b->offset;
    return a->to < b->from || b->to < a->from || apart(a->offset, a_bytes, b->offset, b_bytes);
}

/* What step s alone has. */
static int64_t own_bytes(const Plan *p, int s)
{
    return whole(p->step[s].workspace) + p->threads_max * whole(p->step[s].lane_bytes);
}

/* Of a plan whose offsets alone may be wrong: all pairs, and the bounds. */
static bool offsets_are_good(const Plan *p)
{
    int64_t end = whole(p->base);
    for (int i = 0; i < p->n_ranges; i++) {
        const PlanRange *r = &p->range[i];
        int64_t bytes = p->value[r->value].bytes;
        if (r->offset < p->base)
            return false;
        for (int j = 0; j < i; j++)
            if (!pair_is_good(p, r, &p->range[j]))
                return false;
        for (int s = r->from; s <= r->to; s++)
            if (!apart(r->offset, bytes, p->step[s].workspace_offset, own_bytes(p, s)))
                return false;
        end = r->offset + whole(bytes) > end ? r->offset + whole(bytes) : end;
    }
    for (int s = 0; s < p->n_steps; s++) {
        int64_t from = p->step[s].workspace_offset, bytes = own_bytes(p, s);
        if (bytes > 0 && from < p->base)
            return false;
        end = bytes > 0 && from + bytes > end ? from + bytes : end;
    }
    return end == p->peak;
}

/* Moves one storage or workspace by a few blocks. */
static void move_something(Make *m, Plan *p)
{
    int64_t by = 64 * (1 + make_below(m, make_chance(m, 50) ? 3 : 200));
    by = make_chance(m, 50) ? by : -by;
    int32_t s = make_below(m, p->n_steps);
    if (p->n_ranges == 0 || (p->step[s].workspace > 0 && make_chance(m, 40))) {
        p->step[s].workspace_offset += by;
        return;
    }
    int32_t storage = p->range[make_below(m, p->n_ranges)].storage;
    for (int i = 0; i < p->n_ranges; i++)
        if (p->range[i].storage == storage)
            p->range[i].offset += by;
    for (int i = 0; i < p->n_ranges; i++)
        p->value[p->range[i].value].offset = p->range[i].offset;
}

START_TEST(moved_values_are_judged_as_by_pairs)
{
    int good = 0, bad = 0;
    const int plans = (int)few_of(3000, 5);
    for (uint64_t seed = 1; seed <= (uint64_t)plans; seed++) {
        Arena a = {0};
        Make m = {.arena = &a, .seed = seed * 7};
        Plan *p = make_random(&a, seed, 1 + (int32_t)(seed % 25));
        plan_liveness(p);
        plan_place(p);
        ck_assert_msg(offsets_are_good(p), "seed %d", (int)seed);
        move_something(&m, p);
        const char *wrong = plan_check(p, &a);
        ck_assert_msg((wrong == NULL) == offsets_are_good(p), "seed %d: %s", (int)seed,
                      wrong == NULL ? "accepted" : wrong);
        good += wrong == NULL;
        bad += wrong != NULL;
        arena_free(&a);
    }
    printf("plan checker: %d moved values refused, %d accepted, as by pairs\n", bad, good);
    ck_assert_int_gt(bad, plans / 3);
    ck_assert_int_gt(good, plans / 30);
}
END_TEST

Suite *suite_plan_check(void);
Suite *suite_plan_check(void)
{
    Suite *s = suite_create("plan_check");
    TCase *c = tcase_create("plan_check");
    tcase_add_checked_fixture(c, start, stop);
    tcase_set_timeout(c, 120);
    tcase_add_test(c, a_good_plan_passes);
    tcase_add_test(c, a_part_is_counted);
    tcase_add_test(c, steps_run_again_between_updates);
    tcase_add_loop_test(c, a_broken_plan_is_refused, 0, (int)(sizeof broken / sizeof *broken));
    tcase_add_test(c, moved_values_are_judged_as_by_pairs);
    suite_add_tcase(s, c);
    return s;
}
