/* Reverse mode: numbers of textbooks, loops, activity, and what is reported. Contractions and
 * views: vjp_shapes.c; the rules of single ops: ops.c, from their rows. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "pass/pass.h"
#include "support/eval.h"

static Ctx cx;
static Graph *g;
static Pinned pin;

static void start(void)
{
    ctx_init(&cx);
    g = graph_new(&cx, "test");
    pin = (Pinned){.arena = &cx.perm, .step_counter = -1, .skipped_counter = -1, .seed = -1};
}

static void stop(void)
{
    graph_free(g);
    ctx_free(&cx);
}

static Type f32(int rank, const int64_t *dim)
{
    return type_make(F32, rank, dim);
}

#define SHAPE(...) f32((int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[]){__VA_ARGS__})

static Ref param(const char *name, Type t)
{
    return g_slot(g, pinned_add(&pin, name, SLOT_PARAM, t, NULL), t);
}

static Ref input(Type t)
{
    return g_input(g, count_inputs(g), t);
}

static Value scalar(double x)
{
    Type t = type_scalar(F32);
    Value v = value_new(&t, &cx.perm);
    v.x[0] = x;
    return v;
}

static Value of(int n, const double *x)
{
    Value v = {.n = n, .x = NEW_ARRAY(&cx.perm, double, n)};
    memcpy(v.x, x, (size_t)n * sizeof *x);
    return v;
}

#define VALUES(...) of((int)(sizeof((double[]){__VA_ARGS__}) / 8), (double[]){__VA_ARGS__})

static Ref gradient(const char *name)
{
    for (int i = 0; i < g->root.n; i++)
        if (g->root.at[i].kind == ROOT_GRADIENT && strcmp(g->root.at[i].name, name) == 0)
            return g->root.at[i].ref;
    return NONE;
}

static void loss_is(Ref r)
{
    graph_root(g, ROOT_LOSS, "loss", r, -1, -1);
}

static int count(OpId op, Ref from)
{
    int n = 0;
    for (Ref r = from; r < (Ref)g->node.n; r++)
        n += op_of(g, r) == op;
    return n;
}

static void check_gradient(Ref y, int order, double lo, double hi, uint64_t seed)
{
    GradCheck how = {.samples = 3, .order = order, .lo = lo, .hi = hi, .seed = seed};
    double err = gradcheck(g, &y, 1, &how);
    diag_print(&cx, stdout);
    ck_assert(!how.failed && !how.zero);
    ck_assert_msg(err < (order == 1 ? 1e-6 : 1e-5), "off by %g", err);
    const char *bad = graph_verify(g, &cx.perm);
    ck_assert_msg(bad == NULL, "%s", bad);
}

static void renew(void)
{
    graph_free(g);
    g = graph_new(&cx, "test");
}

/* ---- textbooks -------------------------------------------------------------------- */

START_TEST(square_of_a_line)
{
    Type t = type_scalar(F32);
    pin.input.at = &(GraphInput){.name = "x", .type = t, .with_grad = true};
    pin.input.n = 1;
    Ref x = g_input(g, 0, t), W = param("W", t), b = param("b", t);
    Ref product = g_mul(g, W, x);
    Ref line = g_add(g, product, b);
    Ref two = g_const(g, F32, 2);
    Ref loss = g_pow(g, line, two);
    loss_is(loss);
    ck_assert(vjp(&cx, g, &pin, 1));
    const Value in[] = {scalar(3)}, slot[] = {scalar(2), scalar(1)};
    Value *v = eval_graph(g, &(Feed){.input = in, .slot = slot}, &cx.perm);
    ck_assert(v[loss].x[0] == 49);
    ck_assert(v[gradient("W")].x[0] == 42);
    ck_assert(v[gradient("x")].x[0] == 28);
    ck_assert(v[gradient("b")].x[0] == 14);
    ck_assert_ptr_null(graph_verify(g, &cx.perm));
}
END_TEST

/* x=[1,2], W1 3x2, b1, relu, W2, b2, target 1, half the square. */
START_TEST(two_three_one_network)
{
    Ref x = input(SHAPE(2)), W1 = param("W1", SHAPE(3, 2)), b1 = param("b1", SHAPE(3));
    Ref W2 = param("W2", SHAPE(3)), b2 = param("b2", type_scalar(F32));
    Ref product = g_matmul(g, W1, x);
    Ref z = g_add(g, product, b1);
    Ref h = g_unary(g, OP_relu, z);
    Ref dot = g_matmul(g, W2, h);
    Ref y = g_add(g, dot, b2);
    Ref one = g_const(g, F32, 1);
    Ref miss = g_sub(g, y, one);
    Ref square = g_mul(g, miss, miss);
    Ref loss = g_scale(g, square, 0.5);
    loss_is(loss);
    ck_assert(vjp(&cx, g, &pin, 1));
    /* the first unit is 0 in real numbers: relu'(0) = 0 */
    const Value in[] = {VALUES(1, 2)};
    const Value slot[] = {VALUES(0.5, -0.3, 0.2, 0.8, -0.4, 0.6), VALUES(0.1, -0.2, 0),
                          VALUES(0.3, -0.5, 0.7), scalar(0.1)};
    slot[1].x[0] = -(0.5 * 1 + -0.3 * 2);
    Value *v = eval_graph(g, &(Feed){.input = in, .slot = slot}, &cx.perm);
    const double dW1[] = {0, 0, 0.57, 1.14, -0.798, -1.596}, db1[] = {0, 0.57, -0.798};
    const double dW2[] = {0, -1.824, -0.912};
    ck_assert_double_eq_tol(v[y].x[0], -0.14, 1e-12);
    ck_assert_double_eq_tol(v[loss].x[0], 0.6498, 1e-12);
    ck_assert_double_eq_tol(v[gradient("b2")].x[0], -1.14, 1e-12);
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq_tol(v[gradient("W1")].x[i], dW1[i], 1e-12);
    for (int i = 0; i < 3; i++) {
        ck_assert_double_eq_tol(v[gradient("b1")].x[i], db1[i], 1e-12);
        ck_assert_double_eq_tol(v[gradient("W2")].x[i], dW2[i], 1e-12);
    }
}
END_TEST

/* What is chosen where there is no derivative. */
START_TEST(kinks_are_as_documented)
{
    Ref x = input(SHAPE(3)), y = input(SHAPE(3));
    Ref ones = g_full(g, SHAPE(3), 1);
    const OpId unary[] = {OP_relu, OP_abs};
    Ref d[2], ds[8];
    int n = 0;
    for (int i = 0; i < 2; i++) {
        Ref z = g_unary(g, unary[i], x);
        ck_assert(pullback(&cx, g, &z, &ones, 1, &x, 1, &ds[n++]));
    }
    Ref larger = g_binary(g, OP_max, x, y);
    ck_assert(pullback(&cx, g, &larger, &ones, 1, (Ref[]){x, y}, 2, d));
    Ref top = g_reduce(g, OP_reduce_max, x, 0, false);
    Ref one = g_const(g, F32, 1);
    ck_assert(pullback(&cx, g, &top, &one, 1, &x, 1, &ds[n]));
    const Value in[] = {VALUES(0, -1, 0), VALUES(0, 3, -2)};
    Value *v = eval_graph(g, &(Feed){.input = in}, &cx.perm);
    const double relu[] = {0, 0, 0}, abs[] = {0, -1, 0}, max_x[] = {0.5, 0, 1};
    const double max_y[] = {0.5, 1, 0}, first[] = {1, 0, 0};
    for (int i = 0; i < 3; i++) {
        ck_assert(v[ds[0]].x[i] == relu[i] && v[ds[1]].x[i] == abs[i]);
        ck_assert(v[d[0]].x[i] == max_x[i] && v[d[1]].x[i] == max_y[i]);
        ck_assert(v[ds[2]].x[i] == first[i]);
    }
}
END_TEST

START_TEST(powers_of_zero)
{
    Ref x = input(SHAPE(5)), y = input(SHAPE(5));
    Ref p = g_node(g, OP_pow, (Ref[]){x, y}, 2, NULL);
    Ref ones = g_full(g, SHAPE(5), 1), d[2];
    ck_assert(pullback(&cx, g, &p, &ones, 1, (Ref[]){x, y}, 2, d));
    const Value in[] = {VALUES(0, 0, 0, 0, -2), VALUES(0, 1, 2, -1, 3)};
    Value *v = eval_graph(g, &(Feed){.input = in}, &cx.perm);
    const double dx[] = {0, 1, 0, -INFINITY, 12};
    for (int i = 0; i < 5; i++)
        ck_assert(v[d[0]].x[i] == dx[i]);
    for (int i = 0; i < 4; i++)
        ck_assert(v[d[1]].x[i] == 0);
    ck_assert(isnan(v[d[1]].x[4]));
}
END_TEST

/* Of x^-4 and again: nothing on the way is beyond what x^-5 and x^-6 are. */
START_TEST(negative_powers)
{
    Ref x = input(SHAPE(3)), four = g_full(g, SHAPE(3), -4), d[2];
    Ref p = g_pow(g, x, four), ones = g_full(g, SHAPE(3), 1);
    ck_assert(pullback(&cx, g, &p, &ones, 1, &x, 1, &d[0]));
    ck_assert(pullback(&cx, g, &d[0], &ones, 1, &x, 1, &d[1]));
    const Value in[] = {VALUES(1e-51, 1e51, -2)};
    Value *v = eval_graph(g, &(Feed){.input = in}, &cx.perm);
    const double first[] = {-4e255, -4e-255, 0.125}, second[] = {2e307, 2e-305, 0.3125};
    for (int i = 0; i < 3; i++) {
        ck_assert(fabs(v[d[0]].x[i] / first[i] - 1) < 1e-14);
        ck_assert(fabs(v[d[1]].x[i] / second[i] - 1) < 1e-14);
    }
}
END_TEST

/* ---- sums and activity -------------------------------------------------------------- */

START_TEST(uses_are_summed_once)
{
    Ref x = input(SHAPE(3)), sum = NONE;
    for (int i = 0; i < 5; i++) {
        Ref y = g_unary(g, OP_sin, x);
        sum = i == 0 ? y : g_add(g, sum, y);
    }
    Ref end = (Ref)g->node.n, w = input(SHAPE(3)), d;
    ck_assert(pullback(&cx, g, &sum, &w, 1, &x, 1, &d));
    ck_assert_int_eq(count(OP_add, end), 4);
}
END_TEST

/* Cotangents of the parts of a split are joined, not padded and added. */
START_TEST(parts_are_joined)
{
    Ref x = input(SHAPE(2, 9)), ys[3], ws[3], d;
    for (int i = 0; i < 3; i++)
        ys[i] = g_slice(g, x, 1, 3 * i, 3, 1);
    for (int i = 0; i < 3; i++)
        ws[i] = input(SHAPE(2, 3));
    ck_assert(pullback(&cx, g, ys, ws, 3, &x, 1, &d));
    graph_root(g, ROOT_OTHER, "d", d, -1, -1);
    simplify(&cx, g);
    ck_assert_int_eq(count(OP_concat, 1), 1);
    ck_assert_int_eq(count(OP_add, 1) + count(OP_pad, 1), 0);
    ck_assert_int_eq(node(g, g->root.at[0].ref)->n_args, 3);
}
END_TEST

START_TEST(only_active_values_get_cotangents)
{
    Ref x = input(SHAPE(4)), data = input(SHAPE(4)), w = param("w", SHAPE(4));
    Ref heavy = g_unary(g, OP_exp, data); /* does not depend on w */
    Ref scaled = g_mul(g, heavy, w);
    Ref aside = g_unary(g, OP_tanh, w); /* does not reach the loss */
    graph_root(g, ROOT_OUTPUT, "aside", aside, -1, -1);
    Ref sum = g_add(g, scaled, x);
    loss_is(g_sum_all(g, sum));
    ck_assert(vjp(&cx, g, &pin, 1));
    Ref end = g->n_primal;
    simplify(&cx, g);
    (void)end;
    ck_assert_int_eq(count(OP_mul, g->n_primal), 0); /* 1 * exp(data) is exp(data) */
    ck_assert_int_eq(op_of(g, gradient("w")), OP_exp);
}
END_TEST

START_TEST(unused_parameters_are_warned_about)
{
    Type t = type_scalar(F32);
    pin.input.at = &(GraphInput){.name = "x", .type = t, .with_grad = true};
    pin.input.n = 1;
    Ref a = param("a", t), b = param("b", t), c = param("c", t), x = g_input(g, 0, t);
    pin.slot.at[2].frozen = true;
    Ref stopped = g_stop_gradient(g, b);
    Ref product = g_mul(g, a, stopped);
    Ref sum = g_add(g, product, c);
    (void)x;
    loss_is(sum);
    ck_assert(vjp(&cx, g, &pin, 1));
    ck_assert_int_eq(cx.n_warnings, 2);
    ck_assert_str_eq(cx.diag.at[0]->text, "the loss does not depend on the parameter `b`");
    ck_assert_str_eq(cx.diag.at[1]->text, "the loss does not depend on the input `x`");
    ck_assert_int_eq(gradient("b"), NONE);
    ck_assert_int_eq(gradient("c"), NONE);
    ck_assert(const_is(g, gradient("x"), 0));
}
END_TEST

START_TEST(a_slot_read_twice_has_one_gradient)
{
    Type t = type_scalar(F32);
    Ref a = param("a", t), again = g_slot(g, 0, t);
    loss_is(g_mul(g, a, again));
    ck_assert(vjp(&cx, g, &pin, 1));
    ck_assert_int_eq(g->root.n, 2);
    Value *v = eval_graph(g, &(Feed){.slot = (Value[]){scalar(5)}}, &cx.perm);
    ck_assert(v[gradient("a")].x[0] == 10);
}
END_TEST

/* ---- what is reported ------------------------------------------------------------------ */

/* Reads a graph whose loss is its ROOT_LOSS and whose parameters are slots 0.. */
static bool vjp_of(const char *text)
{
    int32_t source = source_add(&cx, "test.gir", text, strlen(text), false);
    graph_free(g);
    g = graph_read(&cx, source);
    if (g == NULL) {
        diag_print(&cx, stdout);
        ck_abort_msg("not read");
    }
    for (Ref r = 1; r < (Ref)g->node.n; r++) { /* the reader drops them at the end */
        Origin *o = NEW(&cx.perm, Origin);
        o->span = (Span){source, (int32_t)r, (int32_t)r + 1};
        g->node.at[r].origin = o;
        if (op_of(g, r) == OP_slot)
            pinned_add(&pin, "p", SLOT_PARAM, *type_of(g, r), NULL);
    }
    return vjp(&cx, g, &pin, 1);
}

START_TEST(all_offending_uses_are_reported_at_once)
{
    bool fine = vjp_of("graph \"g\" {\n"
                       "%1 = slot(index = 0, dtype = f32, shape = [3])\n"
                       "%2 = floor(%1)\n"
                       "%3 = argmax(%1, axis = 0)\n"
                       "%4 = cast(%3, dtype = f32)\n"
                       "%5 = sum(%2, axis = 0)\n"
                       "%6 = add(%4, %5)\n"
                       "%7 = round(%1)\n"
                       "%8 = sum(%7, axis = 0)\n"
                       "%9 = mul(%6, %8)\n"
                       "%10 = sign(%1)\n" /* reaches no loss */
                       "loss %9 output %10 }");
    ck_assert(!fine);
    ck_assert_int_eq(cx.n_errors, 3);
    bool seen[16] = {false};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(cx.diag.at[i]->code, E0410);
        seen[cx.diag.at[i]->span.from] = true;
        ck_assert_ptr_nonnull(cx.diag.at[i]->help);
    }
    ck_assert(seen[2] && seen[3] && seen[7]);
}
END_TEST

START_TEST(a_stopped_path_may_hold_anything)
{
    bool fine = vjp_of("graph \"g\" {\n"
                       "%1 = slot(index = 0, dtype = f32, shape = [3])\n"
                       "%2 = stop_gradient(%1)\n"
                       "%3 = floor(%2)\n"
                       "%4 = argmax(%2, axis = 0)\n"
                       "%5 = cast(%4, dtype = f32)\n"
                       "%6 = mul(%1, %3)\n"
                       "%7 = sum(%6, axis = 0)\n"
                       "%8 = add(%7, %5)\n"
                       "loss %8 }");
    ck_assert(fine);
    ck_assert_int_eq(cx.n_errors, 0);
}
END_TEST

START_TEST(choosing_is_differentiable)
{
    ck_assert(vjp_of("graph \"g\" {\n"
                     "%1 = slot(index = 0, dtype = f32, shape = [3])\n"
                     "%2 = argmax(%1, axis = 0)\n"
                     "%3 = take_along(%1, %2, axis = 0)\n"
                     "%4 = broadcast(%3, shape = [3])\n"
                     "%5 = lt(%1, %4)\n"
                     "%6 = where(%5, %1, %4)\n"
                     "%7 = floor(%1)\n"
                     "%8 = stop_gradient(%7)\n"
                     "%9 = add(%6, %8)\n"
                     "%10 = sum(%9, axis = 0)\n"
                     "loss %10 }"));
    ck_assert_int_eq(cx.n_errors, 0);
}
END_TEST

START_TEST(offenders_in_a_loop_are_reported)
{
    ck_assert(!vjp_of("graph \"g\" {\n"
                      "%1 = slot(index = 0, dtype = f32, shape = [3])\n"
                      "%2 = input(index = 0, dtype = f32, shape = [4,3])\n"
                      "%3 = floor(%1)\n"
                      "%4 = scan(%1, %2, %3, carries = 1, sequences = 1, count = 4, body = {\n"
                      "  %1 = arg(index = 0, dtype = f32, shape = [3])\n"
                      "  %2 = arg(index = 1, dtype = f32, shape = [3])\n"
                      "  %3 = arg(index = 2, dtype = f32, shape = [3])\n"
                      "  %4 = ceil(%1) %5 = floor(%2) %6 = add(%4, %5) %7 = mul(%6, %3)\n"
                      "  result %7 })\n"
                      "%5 = pick(%4, index = 0)\n"
                      "%6 = sum(%5, axis = 0)\n"
                      "loss %6 }"));
    /* floor of the parameter and ceil of the carry; floor of the input is harmless */
    ck_assert_int_eq(cx.n_errors, 2);
}
END_TEST

/* round(x), through which the gradient passes as if it were x; and twice that gradient. */
START_TEST(a_rule_of_ones_own)
{
    for (int stopped = 0; stopped < 2; stopped++) {
        renew();
        Ref x = input(SHAPE(2));
        Ref rounded = g_unary(g, OP_round, x);
        Graph *rule = g_body(g);
        Ref ct = g_body_arg(rule, 0, SHAPE(2));
        Ref twice = g_scale(rule, ct, 2);
        graph_root(rule, ROOT_RESULT, NULL, twice, -1, -1);
        Ref y = g_custom_vjp(g, rule, rounded, &x, 1, 1);
        Ref square = g_mul(g, y, y), w = g_full(g, SHAPE(2), 1), d;
        ck_assert(pullback(&cx, g, &square, &w, 1, &x, 1, &d));
        graph_root(g, ROOT_OTHER, "d", d, -1, -1);
        g->n_primal = d; /* as after vjp() */
        if (stopped)
            simplify(&cx, g);
        ck_assert_ptr_null(graph_verify(g, &cx.perm));
        ck_assert_int_eq(count(OP_custom_vjp, 1), !stopped);
        const Value in[] = {VALUES(1.4, -2.6)};
        Value *v = eval_graph(g, &(Feed){.input = in}, &cx.perm);
        ck_assert(v[g->root.at[0].ref].x[0] == 4 && v[g->root.at[0].ref].x[1] == -12);
    }
}
END_TEST

/* ---- loops ----------------------------------------------------------------------------------- */

/* h = tanh(h U + x), T steps; gives all h and the last one. */
static Ref recurrence(int T, bool down, bool lean, Ref *last)
{
    Ref h0 = input(SHAPE(2, 3)), xs = input(SHAPE(T, 2, 3)), U = input(SHAPE(3, 3));
    Graph *b = g_body(g);
    Ref h = g_body_arg(b, 0, SHAPE(2, 3)), x = g_body_arg(b, 1, SHAPE(2, 3));
    Ref u = g_body_arg(b, 2, SHAPE(3, 3));
    Ref product = g_matmul(b, h, u);
    Ref sum = g_add(b, product, x);
    Ref new = g_unary(b, OP_tanh, sum);
    graph_root(b, ROOT_RESULT, NULL, new, -1, -1);
    graph_root(b, ROOT_RESULT, NULL, new, -1, -1);
    Ref scan = g_scan(g, b, (Ref[]){h0, xs, U}, 3,
                      (Scan){.carries = 1, .sequences = 1, .count = T, .down = down, .lean = lean});
    *last = g_pick(g, scan, 0);
    return g_pick(g, scan, 1);
}

START_TEST(recurrent_cell)
{
    for (int i = 0; i < 8; i++) {
        renew();
        Ref last, all = recurrence(i / 2 + 1, i % 2 == 1, i > 3, &last);
        Ref sum = g_sum_all(g, all);
        Ref end = g_sum_all(g, last);
        Ref y = i < 4 ? g_add(g, sum, end) : i % 2 == 0 ? end : sum;
        check_gradient(y, 1, -1, 1, (uint64_t)i);
        renew();
        all = recurrence(i / 2 + 1, i % 2 == 1, i > 3, &last);
        check_gradient(i % 2 == 0 ? all : last, 2, -1, 1, (uint64_t)i);
    }
}
END_TEST

/* The same after simplify, which drops unused parts of both loops; bits stay. */
START_TEST(a_loop_keeps_its_bits)
{
    Ref last, all = recurrence(5, false, false, &last);
    graph_root(g, ROOT_OTHER, "all", all, -1, -1);
    Ref w = g_full(g, *type_of(g, last), 1), d;
    Ref U = 3;
    ck_assert_int_eq(op_of(g, U), OP_input);
    uint64_t s = 1;
    Value *in = random_inputs(g, 3, -1, 1, &s, &cx.perm);
    Value before = eval_graph(g, &(Feed){.input = in}, &cx.perm)[all];
    ck_assert(pullback(&cx, g, &last, &w, 1, &U, 1, &d));
    graph_root(g, ROOT_OTHER, "dU", d, -1, -1);
    Value *v = eval_graph(g, &(Feed){.input = in}, &cx.perm);
    ck_assert_mem_eq(v[all].x, before.x, (size_t)before.n * sizeof(double));
    Value dU = v[d];
    simplify(&cx, g);
    ck_assert_ptr_null(graph_verify(g, &cx.perm));
    v = eval_graph(g, &(Feed){.input = in}, &cx.perm);
    ck_assert_mem_eq(v[g->root.at[0].ref].x, before.x, (size_t)before.n * sizeof(double));
    ck_assert_mem_eq(v[g->root.at[1].ref].x, dU.x, (size_t)dU.n * sizeof(double));
    ck_assert_int_eq(count(OP_scan, 1), 2);
    /* The reverse carries the cotangents of h and U, and stacks nothing. */
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        if (op_of(g, r) == OP_scan && attr(g, r, 3)->i != 0)
            ck_assert_int_eq(tuple_size(g, r), 2);
}
END_TEST

typedef struct Recurred {
    Value value[4];  /* the last state, gradients of all inputs */
    int64_t stacked; /* elements that the scans of the graph itself stack */
} Recurred;

static int64_t count_stacked(void)
{
    int64_t n = 0;
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        for (int i = 0; op_of(g, r) == OP_scan && i < tuple_size(g, r); i++) {
            Type t = tuple_type(g, r, i);
            n += i < scan_of(g, r).carries ? 0 : type_elems(&t);
        }
    return n;
}

/* In place of the graph there is one whose scans keep less. */
static void keep_less(int64_t share)
{
    KeptSteps all;
    Graph *less = keep_steps(g, share, 4, &all);
    ck_assert_ptr_nonnull(less);
    graph_free(g);
    g = less;
    simplify(&cx, g);
}

/* A recurrence, lean or cut into runs, or (`share` of KEEP_ALL) with some of its steps kept. */
static Recurred recur(int steps, bool down, bool lean, int levels, int64_t share)
{
    Recurred is;
    Ref last;
    renew();
    recurrence(steps, down, lean, &last);
    Ref y = g_sum_all(g, last), d[3];
    graph_root(g, ROOT_OTHER, "last", last, -1, -1);
    graph_root(g, ROOT_OTHER, "y", y, -1, -1);
    if (levels > 0) {
        Graph *runs = split_scans(g, levels, 4);
        ck_assert_ptr_nonnull(runs);
        graph_free(g);
        g = runs;
    }
    y = g->root.at[1].ref;
    Ref w = g_full(g, *type_of(g, y), 1);
    ck_assert(pullback(&cx, g, &y, &w, 1, (Ref[]){1, 2, 3}, 3, d));
    g->root.n = 1;
    for (int i = 0; i < 3; i++)
        graph_root(g, ROOT_OTHER, "d", d[i], -1, -1);
    simplify(&cx, g);
    if (share > 0)
        keep_less(share);
    ck_assert_ptr_null(graph_verify(g, &cx.perm));
    uint64_t s = 1;
    Value *in = random_inputs(g, 3, -1, 1, &s, &cx.perm);
    Value *v = eval_graph(g, &(Feed){.input = in}, &cx.perm);
    for (int i = 0; i < 4; i++)
        is.value[i] = v[g->root.at[i].ref];
    is.stacked = count_stacked();
    return is;
}

static void check_same(const Recurred *x, const double *kept)
{
    for (int i = 0; i < 4; i++) {
        ck_assert_mem_eq(x->value[i].x, kept, (size_t)x->value[i].n * sizeof(double));
        kept += x->value[i].n;
    }
}

enum { MOST_STEPS = 24, MOST_VALUES = 6 + 6 + MOST_STEPS * 6 + 9 };

/* Gives how many there are. */
static int copy_values(const Recurred *x, double *to)
{
    int n = 0;
    for (int i = 0; i < 4; i++)
        for (int e = 0; e < x->value[i].n; e++)
            to[n++] = x->value[i].x[e];
    return n;
}

/* However little is kept, no bit of a gradient changes. */
START_TEST(lean_loops_keep_their_bits)
{
    double kept[MOST_VALUES];
    Recurred all = recur(24, false, false, 0, 0);
    ck_assert_int_eq(copy_values(&all, kept), MOST_VALUES);
    Recurred lean = recur(24, false, true, 0, 0);
    check_same(&lean, kept);
    /* 24 carries, and 24 slices of the input's gradient, 6 elements each */
    ck_assert_int_eq(lean.stacked, 2 * 24 * 6);
    static const int64_t runs[] = {4, 3, 2};
    for (int levels = 1; levels < 4; levels++) {
        Recurred few = recur(24, false, false, levels, 0);
        check_same(&few, kept);
        ck_assert_int_eq(few.stacked, (runs[levels - 1] + 24) * 6);
    }
}
END_TEST

/* Nor where the last steps are kept and the first ones run again, of any number of steps. */
START_TEST(loops_that_keep_some_steps_keep_their_bits)
{
    static const int steps[] = {4, 5, 7, 23, 24};
    static const int64_t share[] = {1, KEEP_ALL / 3, KEEP_ALL / 2, 3 * KEEP_ALL / 4};
    double kept[MOST_VALUES];
    for (int i = 0; i < 5 * 4 * 2; i++) {
        int n = steps[i / 8];
        bool down = i % 2 == 1;
        KeptSteps of = kept_steps(n, share[i / 2 % 4]);
        if (of.runs == 0)
            continue;
        Recurred all = recur(n, down, false, 0, 0);
        copy_values(&all, kept);
        Recurred few = recur(n, down, false, 0, share[i / 2 % 4]);
        check_same(&few, kept);
        /* the slices of the input's gradient, n of 6 elements, are there in any case */
        int64_t a_step = all.stacked / n - 6;
        ck_assert_int_eq(few.stacked, of.kept * a_step + 6 * of.runs + 6 * n);
    }
}
END_TEST

/* Within the rows asked for, if that can be; and more rows never keep fewer steps. */
START_TEST(more_bytes_keep_more_steps)
{
    for (int64_t n = 0; n < 400; n += n < 40 ? 1 : 37) {
        KeptSteps last = {0};
        for (int64_t share = 1; share <= KEEP_ALL; share += 41) {
            KeptSteps s = kept_steps(n, share);
            int64_t rows = n * share / KEEP_ALL, need = s.kept + s.runs;
            ck_assert_int_eq(s.kept + s.runs * s.run, n);
            ck_assert(s.runs == 0 || (s.run >= 1 && s.run <= s.kept && need < n));
            ck_assert(last.kept + last.runs > rows || need <= rows || share == 1);
            ck_assert_int_ge(s.kept, last.kept);
            last = s;
        }
        ck_assert_int_eq(kept_steps(n, KEEP_ALL).runs, 0);
        KeptSteps s = kept_steps(n, 1);
        int64_t least = s.kept + s.runs; /* a root of n twice; what runs leave over is kept, too */
        ck_assert(n < 4 || least * least <= 9 * n);
    }
    ck_assert_int_eq(kept_steps(INT64_C(1) << 40, 1).kept, 268431360); /* in no time */
}
END_TEST

START_TEST(dropout_in_a_loop_is_drawn_again)
{
    Ref h0 = input(SHAPE(4)), seed = g_input(g, 1, type_scalar(I64));
    Ref step = g_input(g, 2, type_scalar(I64));
    Graph *b = g_body(g);
    Ref h = g_body_arg(b, 0, SHAPE(4)), s = g_body_arg(b, 1, type_scalar(I64));
    Ref k = g_body_arg(b, 2, type_scalar(I64));
    Ref u = g_uniform(b, SHAPE(4), s, k, 99);
    Ref half = g_full(b, SHAPE(4), 0.5);
    Ref keep = g_node(b, OP_lt, (Ref[]){u, half}, 2, NULL);
    Ref zero = g_full(b, SHAPE(4), 0);
    Ref kept = g_where(b, keep, h, zero);
    Ref grown = g_unary(b, OP_sin, kept);
    Ref new = g_add(b, grown, h);
    graph_root(b, ROOT_RESULT, NULL, new, -1, -1);
    Ref scan = g_scan(g, b, (Ref[]){h0, seed, step}, 3,
                      (Scan){.carries = 1, .sequences = 0, .count = 3, .down = false});
    Ref last = g_pick(g, scan, 0);
    check_gradient(last, 1, -1, 1, 4);
    /* Nothing but the carry is stacked: the mask is drawn again. */
    ck_assert_int_le(tuple_size(g, scan), 2);
}
END_TEST

/* ---- size -------------------------------------------------------------------------------------
 */

START_TEST(a_long_graph_takes_linear_time)
{
    Ref x = input(SHAPE(4)), y = x;
    for (int i = 0; i < 50000; i++) {
        Ref s = g_unary(g, OP_sin, y);
        y = g_mul(g, s, y);
    }
    clock_t from = clock();
    Ref w = g_full(g, SHAPE(4), 1), d;
    ck_assert(pullback(&cx, g, &y, &w, 1, &x, 1, &d));
    double seconds = (double)(clock() - from) / CLOCKS_PER_SEC;
    ck_assert_msg(seconds < 2, "%g s", seconds);
}
END_TEST

Suite *suite_vjp(void);
Suite *suite_vjp(void)
{
    Suite *s = suite_create("vjp");
    TCase *c = tcase_create("vjp");
    tcase_add_checked_fixture(c, start, stop);
    tcase_set_timeout(c, 240);
    tcase_add_test(c, square_of_a_line);
    tcase_add_test(c, two_three_one_network);
    tcase_add_test(c, kinks_are_as_documented);
    tcase_add_test(c, powers_of_zero);
    tcase_add_test(c, negative_powers);
    tcase_add_test(c, uses_are_summed_once);
    tcase_add_test(c, parts_are_joined);
    tcase_add_test(c, only_active_values_get_cotangents);
    tcase_add_test(c, unused_parameters_are_warned_about);
    tcase_add_test(c, a_slot_read_twice_has_one_gradient);
    tcase_add_test(c, all_offending_uses_are_reported_at_once);
    tcase_add_test(c, a_stopped_path_may_hold_anything);
    tcase_add_test(c, choosing_is_differentiable);
    tcase_add_test(c, offenders_in_a_loop_are_reported);
    tcase_add_test(c, a_rule_of_ones_own);
    tcase_add_test(c, recurrent_cell);
    tcase_add_test(c, a_loop_keeps_its_bits);
    tcase_add_test(c, lean_loops_keep_their_bits);
    tcase_add_test(c, loops_that_keep_some_steps_keep_their_bits);
    tcase_add_test(c, more_bytes_keep_more_steps);
    tcase_add_test(c, dropout_in_a_loop_is_drawn_again);
    tcase_add_test(c, a_long_graph_takes_linear_time);
    suite_add_tcase(s, c);
    return s;
}
