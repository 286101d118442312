/* Live ranges, storage shared in place, reports and the budget. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "unit/plan_nets.h"

static Arena arena;
static Make m;

static void start(void)
{
    arena = (Arena){0};
    m = (Make){.arena = &arena};
}

static void stop(void)
{
    arena_free(&arena);
}

static int32_t value(const char *name, int64_t bytes)
{
    return make_value(&m, name, ROLE_ACTIVATION, bytes);
}

/* A step that reads and writes these; -1: none. */
static void step(int32_t read, int32_t also, int32_t write)
{
    make_step(&m, arena_printf(&arena, "step %d", m.step.n));
    if (read >= 0)
        make_read(&m, read);
    if (also >= 0)
        make_read(&m, also);
    if (write >= 0)
        make_write(&m, write);
}

static Plan *planned(void)
{
    Plan *p = make_plan(&m);
    plan_liveness(p);
    plan_place(p);
    const char *wrong = plan_check(p, &arena);
    ck_assert_msg(wrong == NULL, "%s", wrong);
    return p;
}

/* "v 3-9" for each range, and "=2" where it takes over the storage of range 2. */
static const char *ranges(const Plan *p)
{
    Text t;
    text_init(&t, &arena);
    for (int32_t r = 0; r < p->n_ranges; r++) {
        const PlanRange *range = &p->range[r];
        text_add(&t, "%s%s %d-%d", r > 0 ? ", " : "", p->value[range->value].name, range->from,
                 range->to);
        if (range->storage != r)
            text_add(&t, " =%d", range->storage);
    }
    return t.at;
}

/* ---- ranges ------------------------------------------------------------------------ */

START_TEST(ranges_follow_the_steps)
{
    int32_t a = value("a", 64), b = value("b", 64), unread = value("unread", 64);
    int32_t end = value("end", 64), none = value("none", 0);
    m.value.at[end].to_end = true;
    step(-1, -1, a);
    step(a, -1, end);
    step(a, none, b);
    step(b, -1, unread);
    step(b, -1, none);
    step(-1, -1, -1);
    Plan *p = planned();
    ck_assert_str_eq(ranges(p), "a 0-2, end 1-5, b 2-4, unread 3-3");
    ck_assert_int_eq(p->step[2].n_frees, 1);
    ck_assert_int_eq(p->step[2].frees[0], 0);
    ck_assert_int_eq(p->step[5].n_frees, 1);
    ck_assert_int_eq(p->value[none].offset, -1);
    ck_assert_int_eq(p->live_peak, 3 * 64);
    ck_assert_int_eq(p->peak_step, 2);
}
END_TEST

START_TEST(a_value_stored_again_has_two_ranges)
{
    int32_t a = value("a", 64), b = value("b", 64);
    m.value.at[a].to_end = true;
    step(-1, -1, a);
    step(a, -1, b);
    step(b, -1, -1);
    step(-1, -1, a);
    step(a, -1, -1);
    step(-1, -1, -1);
    Plan *p = planned();
    ck_assert_str_eq(ranges(p), "a 0-1, b 1-2, a 3-5");
    ck_assert_int_eq(p->value[a].offset, p->range[2].offset);
}
END_TEST

START_TEST(pinned_values_and_inputs_have_none)
{
    int32_t w = make_pinned(&m, "w", ROLE_PARAM, 100);
    int32_t x = make_value(&m, "x", ROLE_INPUT, 0);
    int32_t staged = make_value(&m, "staged", ROLE_STAGING, 100);
    int32_t unread = make_value(&m, "unread", ROLE_STAGING, 100), a = value("a", 64);
    step(w, x, -1);
    step(w, staged, a);
    make_write(&m, w);
    m.step.at[1].guarded = true;
    m.step.at[0].guarded = false;
    Plan *p = planned();
    ck_assert_str_eq(ranges(p), "staged 0-1, a 1-1");
    ck_assert_int_eq(p->value[w].offset, 0);
    ck_assert_int_eq(p->value[x].offset, -1);
    ck_assert_int_eq(p->value[unread].offset, -1);
    ck_assert_int_eq(p->peak, 128 + 128 + 64);
}
END_TEST

START_TEST(a_plan_without_steps_is_a_plan)
{
    make_pinned(&m, "w", ROLE_PARAM, 100);
    m.value.at[make_value(&m, "x", ROLE_STAGING, 64)].to_end = true;
    Plan *p = planned();
    ck_assert_int_eq(p->n_ranges, 0);
    ck_assert_int_eq(p->peak, 128);
    Text t;
    text_init(&t, &arena);
    plan_print(NULL, p, true, &t);
    plan_json(NULL, p, &t);
}
END_TEST

START_TEST(workspace_and_lanes_are_in_the_peak)
{
    int32_t a = value("a", 100);
    m.base = 1000;
    m.threads_max = 3;
    step(-1, -1, a);
    step(a, -1, -1);
    m.step.at[0].lane_bytes = 65;
    m.step.at[1].lane_bytes = 10;
    m.step.at[1].workspace = 1;
    Plan *p = planned();
    ck_assert_int_eq(plan_lanes_bytes(p, &p->step[0]), 3 * 128);
    ck_assert_int_eq(plan_own_bytes(p, &p->step[1]), 64 + 3 * 64);
    ck_assert_int_eq(plan_lanes_offset(&p->step[1]), p->step[1].workspace_offset + 64);
    ck_assert_int_eq(p->live_peak, 1024 + 128 + 3 * 128);
    ck_assert_int_eq(p->peak, p->live_peak);
    ck_assert_int_eq(p->peak_step, 0);
}
END_TEST

/* ---- in place ------------------------------------------------------------------------- */

START_TEST(a_dying_value_is_overwritten)
{
    int32_t a = value("a", 1000), b = value("b", 1020), c = value("c", 1020);
    step(-1, -1, a);
    step(a, -1, b); /* as many blocks, though more bytes */
    make_inplace(&m, a, b);
    step(b, -1, c);
    make_inplace(&m, b, c);
    step(b, c, -1); /* b is read again: c needs its own */
    Plan *p = planned();
    ck_assert_str_eq(ranges(p), "a 0-1, b 1-3 =0, c 2-3");
    ck_assert_int_eq(p->live_peak, 2048);
    ck_assert_int_eq(p->peak, 2048);
}
END_TEST

START_TEST(results_and_pinned_values_are_not)
{
    int32_t w = make_pinned(&m, "w", ROLE_PARAM, 64);
    int32_t a = value("a", 64), b = value("b", 64), c = value("c", 64);
    m.value.at[a].to_end = true;
    step(-1, -1, a);
    step(w, -1, b);
    make_inplace(&m, w, b);
    step(a, b, c); /* the last step: a ends there, but is read by the caller */
    make_inplace(&m, a, c);
    make_write(&m, w);
    make_inplace(&m, b, w);
    ck_assert_str_eq(ranges(planned()), "a 0-2, b 1-2, c 2-2");
}
END_TEST

START_TEST(what_is_stored_in_the_step_is_not)
{
    int32_t a = value("a", 64), b = value("b", 64);
    step(-1, -1, a);
    step(a, -1, a); /* the new a over the old one; b must not lie over the new one */
    make_write(&m, b);
    make_inplace(&m, a, b);
    make_inplace(&m, a, a);
    Plan *p = planned();
    ck_assert_str_eq(ranges(p), "a 0-1, a 1-1 =0, b 1-1");
}
END_TEST

START_TEST(the_largest_savings_win)
{
    int32_t a = value("a", 1024), b = value("b", 512);
    int32_t small = value("small", 256), large = value("large", 1024), mid = value("mid", 512);
    step(-1, -1, a);
    make_write(&m, b);
    step(a, b, small);
    make_write(&m, large);
    make_write(&m, mid);
    make_inplace(&m, a, small);
    make_inplace(&m, b, small);
    make_inplace(&m, a, mid);
    make_inplace(&m, b, mid);
    make_inplace(&m, a, large);
    step(small, large, -1);
    make_read(&m, mid);
    Plan *p = planned();
    ck_assert_str_eq(ranges(p), "a 0-1, b 0-1, small 1-2, large 1-2 =0, mid 1-2 =1");
    ck_assert_int_eq(p->peak, 1024 + 512 + 256);
}
END_TEST

START_TEST(a_storage_changes_hands_to_save_more)
{
    /* x fits both, y only the first: x must take the second, the larger one. */
    int32_t a = value("a", 512), b = value("b", 1024), x = value("x", 512), y = value("y", 512);
    step(-1, -1, a);
    make_write(&m, b);
    step(a, b, x);
    make_write(&m, y);
    make_inplace(&m, a, x);
    make_inplace(&m, b, x);
    make_inplace(&m, a, y);
    step(x, y, -1);
    ck_assert_str_eq(ranges(planned()), "a 0-1, b 0-1, x 1-2 =1, y 1-2 =0");
}
END_TEST

START_TEST(the_tail_of_a_larger_storage_is_free)
{
    int32_t a = value("a", 1024), b = value("b", 64), c = value("c", 960);
    step(-1, -1, a);
    step(a, -1, b);
    make_inplace(&m, a, b);
    step(b, -1, c);
    step(b, c, -1);
    Plan *p = planned();
    ck_assert_str_eq(ranges(p), "a 0-1, b 1-3 =0, c 2-3");
    ck_assert_int_eq(p->live_peak, 1024);
    ck_assert_int_eq(p->peak, 1024);
}
END_TEST

/* ---- reports ----------------------------------------------------------------------------- */

static Plan *small_plan(void)
{
    m.base = 1024;
    m.threads_max = 2;
    int32_t w = make_pinned(&m, "w", ROLE_PARAM, 4000);
    int32_t x = make_value(&m, "x", ROLE_INPUT, 0);
    int32_t h = value("h", 3 << 20), r = value("h.relu", 3 << 20);
    int32_t loss = make_value(&m, "loss", ROLE_OUTPUT, 4);
    int32_t g = make_value(&m, "w.grad", ROLE_GRADIENT, 4000);
    m.value.at[loss].to_end = true;
    make_step(&m, "h: contract");
    m.step.at[0].flops = 1e6;
    make_read(&m, x);
    make_read(&m, w);
    make_write(&m, h);
    step(h, -1, r);
    make_inplace(&m, h, r);
    step(r, -1, loss);
    step(r, loss, g);
    m.step.at[3].workspace = 100000;
    m.step.at[3].lane_bytes = 4096;
    step(g, w, w);
    m.step.at[4].guarded = true;
    return planned();
}

START_TEST(bytes_by_role_add_up)
{
    Plan *p = small_plan();
    int64_t bytes[N_ROLES], sum = 0;
    plan_by_role(p, -1, bytes);
    for (int r = 0; r < N_ROLES; r++)
        sum += bytes[r];
    ck_assert_int_eq(sum, p->live_peak);
    ck_assert_int_eq(bytes[ROLE_PARAM], 4000);
    ck_assert_int_eq(bytes[ROLE_ACTIVATION], 3 << 20);
    ck_assert_int_eq(bytes[ROLE_GRADIENT], 4000);
    ck_assert_int_eq(bytes[ROLE_OUTPUT], 4);
    ck_assert_int_eq(bytes[ROLE_WORKSPACE], 100000);
    ck_assert_int_eq(bytes[ROLE_LANES], 2 * 4096);
    ck_assert_int_eq(bytes[ROLE_HANDLE], 1024);
    ck_assert_int_eq(bytes[ROLE_PADDING], 32 + 60 + 32 + 32);
    plan_by_role(p, 0, bytes);
    ck_assert_int_eq(bytes[ROLE_WORKSPACE], 0);
    ck_assert_int_eq(bytes[ROLE_GRADIENT], 0);
}
END_TEST

START_TEST(bytes_by_role_of_random_plans_add_up)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        Plan *p = make_random(&arena, seed, 30);
        plan_liveness(p);
        int64_t bytes[N_ROLES], sum = 0;
        plan_by_role(p, -1, bytes);
        for (int r = 0; r < N_ROLES; r++) {
            ck_assert_int_ge(bytes[r], 0);
            sum += bytes[r];
        }
        ck_assert_int_eq(sum, p->live_peak);
    }
}
END_TEST

static const char printed[] =
    "entry step: 5 steps, 3.11 MiB (3,263,104 bytes)\n"
    "most is live at step 3, step 3: 3.11 MiB (3,263,104 bytes); holes: 0 bytes\n"
    "\n"
    "schedule (= pinned storage, # values, workspace and lanes)\n"
    "   step        live\n"
    "      0    3.00 MiB  ###############################   h: contract\n"
    "      1    3.00 MiB  ###############################   step 1\n"
    "      2    3.00 MiB  ###############################   step 2\n"
    ">     3    3.11 MiB  ################################  step 3, workspace 97.7 KiB\n"
    "      4    8.94 KiB                                    step 4, guarded\n"
    "\n"
    "lifetimes\n"
    "          steps        size          at byte  value\n"
    "            0-1    3.00 MiB            5,056  h\n"
    "            1-3    3.00 MiB            5,056  h.relu, over h\n"
    "            2-4         4 B        3,263,040  loss, a result\n"
    "            3-4    3.91 KiB        3,259,008  w.grad\n"
    "\n"
    "peak by role\n"
    "  parameters        3.91 KiB               4,000     0.1 %\n"
    "  gradients         3.91 KiB               4,000     0.1 %\n"
    "  activations       3.00 MiB           3,145,728    96.4 %\n"
    "  outputs                4 B                   4     0.0 %\n"
    "  workspace         97.7 KiB             100,000     3.1 %\n"
    "  lane scratch      8.00 KiB               8,192     0.3 %\n"
    "  handle            1.00 KiB               1,024     0.0 %\n"
    "  padding              156 B                 156     0.0 %\n"
    "  all               3.11 MiB           3,263,104   100.0 %\n"
    "\n"
    "largest values\n"
    "        size               bytes          steps  role            value\n"
    "    3.00 MiB           3,145,728            0-1  activations     h\n"
    "    3.00 MiB           3,145,728            1-3  activations     h.relu\n"
    "    3.91 KiB               4,000         always  parameters      w\n"
    "    3.91 KiB               4,000            3-4  gradients       w.grad\n"
    "         4 B                   4            2-4  outputs         loss\n";

START_TEST(the_text_is_for_people)
{
    Text t;
    text_init(&t, &arena);
    plan_print(NULL, small_plan(), true, &t);
    ck_assert_str_eq(t.at, printed);
}
END_TEST

START_TEST(lines_of_the_model_are_named)
{
    Ctx cx;
    ctx_init(&cx);
    const char *text = "model m {\n    y = nn.relu(x)\n}\n", *library = "fn relu(x) = max(x, 0)\n";
    int32_t model = source_add(&cx, "m.model", text, strlen(text), false);
    int32_t nn = source_add(&cx, "nn.model", library, strlen(library), true);
    Origin call = {.span = {model, 14, 18}}, inside = {.span = {nn, 13, 16}, .parent = &call};
    int32_t a = value("a", 64);
    step(-1, -1, a);
    m.value.at[a].origin = &inside;
    Text t;
    text_init(&t, &arena);
    Plan *p = planned();
    plan_print(&cx, p, false, &t);
    ck_assert_msg(strstr(t.at, "  a  m.model:2\n") != NULL, "%s", t.at);
    plan_json(&cx, p, &t);
    ck_assert_msg(strstr(t.at, "\"line\": \"m.model:2\"") != NULL, "%s", t.at);
    ctx_free(&cx);
}
END_TEST

START_TEST(the_json_has_all_of_it)
{
    static const char *const part[] = {
        "{\n  \"entry\": \"step\",\n  \"peak\": 3263104,\n  \"cost_ns\": ",
        "  \"live_peak\": 3263104,\n",
        "  \"peak_step\": 3,\n  \"holes\": 0,\n",
        "\"parameters\": 4000, ",
        "    {\"label\": \"h: contract\", \"run\": 0, \"live\": 3150784, \"reads\": [1, 0], "
        "\"writes\": [2], ",
        "\"frees\": [], \"workspace\": 0, ",
        "\"flops\": 1000000, \"bytes_moved\": 0, \"cost_ns\": 50, \"guarded\": false}",
        "    {\"name\": \"h.relu\", \"role\": \"activations\", \"bytes\": 3145728, ",
        "\"line\": null, \"kept\": false, \"reverse\": false}",
        "    {\"value\": 3, \"from\": 1, \"to\": 3, \"offset\": ",
        "\"storage\": 0, \"over\": 0, \"reason\": \"steps 2 (step 2) and 3 (step 3) read it; to "
        "compute it again would take 0.05 us\"}",
        "]\n}\n",
    };
    Text t;
    text_init(&t, &arena);
    plan_json(NULL, small_plan(), &t);
    const char *at = t.at;
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        at = strstr(at, part[i]);
        ck_assert_msg(at != NULL, "%s\nis not in\n%s", part[i], t.at);
    }
}
END_TEST

START_TEST(the_page_has_all_of_it)
{
    static const char *const part[] = {
        "<!DOCTYPE html>\n",
        "<title>a &lt;b&gt; &amp; &quot;c&quot;</title>",
        "<h2>entry step: 3263104 bytes, 5 steps</h2>",
        "<svg ",
        "</svg>\n",
        " data-range=\"0\"><title>h, 3145728 bytes</title></rect>\n",
        "<title>workspace of step 3</title>",
        "<title>lane scratch of step 3</title>",
        "<tr data-range=\"1\"><td>h.relu</td><td>activations</td><td class=\"n\">3145728</td>",
        "<td>steps 2 (step 2) and 3 (step 3) read it; to compute it again would take 0.05 us</td>"
        "<td>h</td></tr>",
        "<td>w</td><td>parameters</td>",
        "<td>it lives between calls; steps 0 (h: contract) and 4 (step 4) read it; step 4 (step 4) "
        "writes it</td>",
        "<td>h: contract</td><td class=\"n\">1</td><td class=\"n\">3150784</td>",
        "</script>\n</body></html>\n",
    };
    Text t;
    text_init(&t, &arena);
    const Plan *plan[] = {NULL, small_plan()};
    plan_html(NULL, "a <b> & \"c\"", plan, 2, &t);
    const char *at = t.at;
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        at = strstr(at, part[i]);
        ck_assert_msg(at != NULL, "%s\nis not on the page, or too early", part[i]);
    }
    ck_assert(strstr(t.at, "http://www.w3.org/2000/svg") != NULL); /* a name, not a file */
    ck_assert(strstr(t.at, "src=") == NULL && strstr(t.at, "href=") == NULL);
}
END_TEST

START_TEST(a_budget_is_met_or_refused)
{
    Ctx cx;
    ctx_init(&cx);
    Plan *p = small_plan();
    ck_assert(plan_fits(&cx, p, 0, NO_SPAN));
    ck_assert(plan_fits(&cx, p, p->peak, NO_SPAN));
    ck_assert_int_eq(cx.n_errors, 0);
    ck_assert(!plan_fits(&cx, p, p->peak - 1, NO_SPAN));
    ck_assert(!plan_fits(&cx, p, 1 << 20, NO_SPAN));
    ck_assert_int_eq(cx.n_errors, 2);
    const Diag *d = cx.diag.at[1];
    ck_assert_int_eq(d->code, E0601);
    ck_assert_str_eq(d->text, "the budget is 1.00 MiB (1,048,576 bytes), but entry `step` needs "
                              "3.11 MiB (3,263,104 bytes)");
    ck_assert_str_eq(d->help, "the smallest budget that works is 3263104 bytes");
    ck_assert_ptr_nonnull(code_explanation(E0601));
    ctx_free(&cx);
}
END_TEST

Suite *suite_plan(void);
Suite *suite_plan(void)
{
    Suite *s = suite_create("plan");
    TCase *c = tcase_create("plan");
    tcase_add_checked_fixture(c, start, stop);
    tcase_add_test(c, ranges_follow_the_steps);
    tcase_add_test(c, a_value_stored_again_has_two_ranges);
    tcase_add_test(c, pinned_values_and_inputs_have_none);
    tcase_add_test(c, a_plan_without_steps_is_a_plan);
    tcase_add_test(c, workspace_and_lanes_are_in_the_peak);
    tcase_add_test(c, a_dying_value_is_overwritten);
    tcase_add_test(c, results_and_pinned_values_are_not);
    tcase_add_test(c, what_is_stored_in_the_step_is_not);
    tcase_add_test(c, the_largest_savings_win);
    tcase_add_test(c, a_storage_changes_hands_to_save_more);
    tcase_add_test(c, the_tail_of_a_larger_storage_is_free);
    tcase_add_test(c, bytes_by_role_add_up);
    tcase_add_test(c, bytes_by_role_of_random_plans_add_up);
    tcase_add_test(c, the_text_is_for_people);
    tcase_add_test(c, lines_of_the_model_are_named);
    tcase_add_test(c, the_json_has_all_of_it);
    tcase_add_test(c, the_page_has_all_of_it);
    tcase_add_test(c, a_budget_is_met_or_refused);
    suite_add_tcase(s, c);
    return s;
}
