/* Orders of steps with fewer live bytes. */
#include <check.h>
#include <string.h>

#include "plan/order.h"
#include "unit/plan_nets.h"

static Arena arena;
static Make m;
static const OrderWaits nothing;

static void start(void)
{
    arena = (Arena){0};
    m = (Make){.arena = &arena, .threads_max = 1};
}

static void stop(void)
{
    arena_free(&arena);
}

static int32_t value(const char *name, int64_t bytes)
{
    return make_value(&m, name, ROLE_ACTIVATION, bytes);
}

static void step(const char *name, int32_t read, int32_t also, int32_t write)
{
    make_step(&m, name);
    if (read >= 0)
        make_read(&m, read);
    if (also >= 0)
        make_read(&m, also);
    make_write(&m, write);
}

static Plan *planned(void)
{
    Plan *p = make_plan(&m);
    plan_liveness(p);
    return p;
}

/* The plan in this order. */
static const Plan *ordered(const Plan *p, const int32_t *order)
{
    Plan *q = NEW(&arena, Plan);
    *q = *p;
    q->value = NEW_ARRAY(&arena, PlanValue, p->n_values);
    memcpy(q->value, p->value, sizeof *p->value * (size_t)p->n_values);
    q->step = NEW_ARRAY(&arena, PlanStep, p->n_steps);
    for (int32_t i = 0; i < p->n_steps; i++)
        q->step[i] = p->step[order[i]];
    plan_liveness(q);
    plan_place(q);
    const char *wrong = plan_check(q, &arena);
    ck_assert_msg(wrong == NULL, "%s", wrong);
    return q;
}

static const char *labels(const Plan *p)
{
    Text t;
    text_init(&t, &arena);
    for (int32_t s = 0; s < p->n_steps; s++)
        text_add(&t, "%s%s", s > 0 ? " " : "", p->step[s].label);
    return t.at;
}

/* relu(x w): the derivative is written over the relu's values once nothing reads them any more. */
static void make_layer(void)
{
    int32_t h = value("h", 4096), ct = value("ct", 4096), dx = value("dx", 4096);
    int32_t dw = value("dw", 256);
    m.value.at[dx].to_end = m.value.at[dw].to_end = true;
    step("relu", -1, -1, h);
    step("ct", h, -1, ct);
    step("data", ct, h, dx);
    make_inplace(&m, h, dx);
    step("weight", ct, h, dw);
}

START_TEST(what_is_written_over_is_read_first)
{
    make_layer();
    const Plan *p = planned();
    ck_assert_int_eq(p->live_peak, 3 * 4096 + 256);
    const int32_t *order = plan_order(p, &nothing, &arena);
    ck_assert_ptr_nonnull(order);
    const Plan *q = ordered(p, order);
    ck_assert_str_eq(labels(q), "relu ct weight data");
    ck_assert_int_eq(q->peak, 2 * 4096 + 256);
}
END_TEST

START_TEST(steps_wait_for_what_no_value_says)
{
    make_layer();
    OrderWaits waits = {0};
    vec_push(&arena, &waits.from, 2);
    vec_push(&arena, &waits.to, 3);
    ck_assert_ptr_null(plan_order(planned(), &waits, &arena));
}
END_TEST

/* A table's gradient is larger than what it is made of, and read at the end alone; another time
 * what it is made of is larger. */
START_TEST(a_large_result_waits)
{
    int32_t a = value("a", 64), b = value("b", 64), big = value("big", 1 << 20);
    int32_t mid = value("mid", 1 << 20), end = value("end", 64);
    m.value.at[end].to_end = true;
    step("a", -1, -1, a);
    step("big", a, -1, big);
    step("mid", a, -1, mid);
    step("b", mid, -1, b);
    step("end", big, b, end);
    const Plan *p = planned();
    const int32_t *order = plan_order(p, &nothing, &arena);
    ck_assert_ptr_nonnull(order);
    ck_assert_str_eq(labels(ordered(p, order)), "a mid b big end");
}
END_TEST

START_TEST(a_few_bytes_are_worth_no_order)
{
    make_layer();
    int32_t given = make_value(&m, "given", ROLE_STAGING, 1 << 20);
    m.value.at[given].to_end = true;
    ck_assert_ptr_null(plan_order(planned(), &nothing, &arena));
}
END_TEST

/* The update comes after all that decides whether there is one. */
START_TEST(guarded_steps_stay_at_the_end)
{
    make_layer();
    int32_t w = make_pinned(&m, "w", ROLE_PARAM, 256);
    step("update", 3, -1, w);
    m.step.at[m.step.n - 1].guarded = true;
    const Plan *p = planned();
    const int32_t *order = plan_order(p, &nothing, &arena);
    ck_assert_ptr_nonnull(order);
    ck_assert_str_eq(labels(ordered(p, order)), "relu ct weight data update");
}
END_TEST

START_TEST(what_is_offloaded_stays_in_order)
{
    make_layer();
    m.value.at[0].offload = true;
    ck_assert_ptr_null(plan_order(planned(), &nothing, &arena));
}
END_TEST

/* Of random plans, orders hold, and take fewer bytes. */
START_TEST(orders_of_random_plans_hold)
{
    int found = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        Make random = {.arena = &arena, .seed = seed, .once = true};
        Plan *p = make_random_of(random, 40);
        plan_liveness(p);
        const int32_t *order = plan_order(p, &nothing, &arena);
        if (order == NULL)
            continue;
        found++;
        ck_assert_int_lt(ordered(p, order)->live_peak, p->live_peak);
    }
    ck_assert_int_gt(found, 20);
}
END_TEST

Suite *suite_plan_order(void);
Suite *suite_plan_order(void)
{
    Suite *s = suite_create("plan_order");
    TCase *c = tcase_create("plan_order");
    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, start, stop);
    tcase_add_test(c, what_is_written_over_is_read_first);
    tcase_add_test(c, steps_wait_for_what_no_value_says);
    tcase_add_test(c, a_large_result_waits);
    tcase_add_test(c, a_few_bytes_are_worth_no_order);
    tcase_add_test(c, guarded_steps_stay_at_the_end);
    tcase_add_test(c, what_is_offloaded_stays_in_order);
    tcase_add_test(c, orders_of_random_plans_hold);
    suite_add_tcase(s, c);
    return s;
}
