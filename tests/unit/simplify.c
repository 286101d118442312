/* simplify(): what it makes of small graphs, and that it changes no bit of a result. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "pass/pass.h"
#include "support/eval.h"

static Ctx cx;

static void start(void)
{
    ctx_init(&cx);
}

static void stop(void)
{
    ctx_free(&cx);
}

static Graph *read(const char *statements)
{
    char *text = arena_printf(&cx.perm, "graph \"g\" { %s }", statements);
    Graph *g = graph_read(&cx, source_add(&cx, "test.gir", text, strlen(text), false));
    if (g == NULL)
        diag_print(&cx, stdout);
    ck_assert_msg(g != NULL, "%s", text);
    return g;
}

static const char *printed(const Graph *g)
{
    Text t;
    text_init(&t, &cx.perm);
    graph_print(g, &t);
    return t.at;
}

/* ---- pairs ---------------------------------------------------------------------- */

#define X "%1 = input(index = 0, dtype = f32, shape = [2,6]) "
#define K "%1 = input(index = 0, dtype = i32, shape = [6]) "
#define U "%1 = input(index = 0, dtype = u8, shape = [6]) "
#define Y "%2 = input(index = 1, dtype = f32, shape = [2,6]) "
#define FULL(n, v)                                                                                 \
    "%" n "0 = const(dtype = f32, value = " v ") %" n " = broadcast(%" n "0, shape = [2,6]) "

/* What becomes of it; NULL: it stays as it is. */
static const struct Pair {
    const char *from, *to;
} pair[] = {
    /* identities that keep every bit */
    {X FULL("3", "1") "%4 = mul(%1, %3) other %4", X "other %1"},
    {X FULL("3", "1") "%4 = mul(%3, %1) other %4", X "other %1"},
    {X FULL("3", "1") "%4 = div(%1, %3) other %4", X "other %1"},
    {X FULL("3", "0") "%4 = sub(%1, %3) other %4", X "other %1"},
    {X FULL("3", "-0") "%4 = add(%3, %1) other %4", X "other %1"},
    {X "%2 = neg(%1) %3 = neg(%2) other %3", X "other %1"},
    {X "%2 = neg(%1) %3 = abs(%2) other %3", X "%2 = abs(%1) other %2"},
    {U "%2 = neg(%1) %3 = abs(%2) other %3", U "%2 = neg(%1) other %2"},
    {X "%2 = relu(%1) %3 = relu(%2) other %3", X "%2 = relu(%1) other %2"},
    {X "%2 = max(%1, %1) other %2", X "other %1"},
    {X "%2 = cast(%1, dtype = f32) other %2", X "other %1"},
    {X "%2 = cast(%1, dtype = f64) %3 = cast(%2, dtype = f32) other %3", X "other %1"},
    {K "%2 = cast(%1, dtype = f64) %3 = cast(%2, dtype = i32) other %3", K "other %1"},
    {K "%2 = cast(%1, dtype = f64) %3 = cast(%2, dtype = i64) other %3",
     K "%2 = cast(%1, dtype = i64) other %2"},
    {K "%2 = cast(%1, dtype = f64) %3 = cast(%2, dtype = bool) other %3",
     K "%2 = cast(%1, dtype = bool) other %2"},
    {K "%2 = cast(%1, dtype = f64) %3 = cast(%2, dtype = f32) other %3",
     K "%2 = cast(%1, dtype = f32) other %2"},
    {K "%2 = cast(%1, dtype = i64) %3 = cast(%2, dtype = u8) other %3",
     K "%2 = cast(%1, dtype = u8) other %2"},
    {U "%2 = cast(%1, dtype = f32) %3 = cast(%2, dtype = i32) other %3",
     U "%2 = cast(%1, dtype = i32) other %2"},
    {X Y "%3 = lt(%1, %2) %4 = not(%3) %5 = where(%4, %1, %2) other %5",
     X Y "%3 = lt(%1, %2) %4 = where(%3, %2, %1) other %4"},
    {X Y "%30 = const(dtype = bool, value = 1) %3 = broadcast(%30, shape = [2,6]) "
         "%4 = where(%3, %1, %2) other %4",
     X "other %1"},
    {X Y "%3 = lt(%1, %2) %4 = where(%3, %1, %1) other %4", X "other %1"},
    {X Y "%3 = neg(%2) %4 = add(%1, %3) other %4", X Y "%3 = sub(%1, %2) other %3"},
    {X Y "%3 = neg(%2) %4 = sub(%1, %3) other %4", X Y "%3 = add(%1, %2) other %3"},
    {X FULL("3", "-64") "%4 = div(%1, %3) other %4",
     X "%2 = const(dtype = f32, value = -0.015625) %3 = broadcast(%2, shape = [2,6]) "
       "%4 = mul(%1, %3) other %4"},
    /* and those that would not */
    {X FULL("3", "0") "%4 = add(%1, %3) other %4", NULL},
    {X FULL("3", "-0") "%4 = sub(%1, %3) other %4", NULL},
    {X FULL("3", "0") "%4 = mul(%1, %3) other %4", NULL},
    {X FULL("3", "3") "%4 = div(%1, %3) other %4", NULL},
    {X FULL("3", "0") "%4 = div(%1, %3) other %4", NULL},
    {X "%2 = sub(%1, %1) other %2", NULL},
    {X "%2 = div(%1, %1) other %2", NULL},
    {X "%2 = eq(%1, %1) other %2", NULL},
    {X "%2 = cast(%1, dtype = bf16) %3 = cast(%2, dtype = f32) other %3", NULL},
    {K "%2 = cast(%1, dtype = f64) %3 = cast(%2, dtype = u8) other %3", NULL},
    {K "%2 = cast(%1, dtype = f32) %3 = cast(%2, dtype = i64) other %3", NULL},
    {X "%2 = stop_gradient(%1) other %2", NULL},
    {X "%2 = slice(%1, axis = 0, size = 1, step = 1) %3 = sum(%2, axis = 0) other %3", NULL},
    {X FULL("3", "1e-40") "%4 = sub(%1, %3) other %4", NULL},
    /* views */
    {X "%2 = reshape(%1, shape = [12]) %3 = reshape(%2, shape = [3,4]) other %3",
     X "%2 = reshape(%1, shape = [3,4]) other %2"},
    {X "%2 = reshape(%1, shape = [12]) %3 = reshape(%2, shape = [2,6]) other %3", X "other %1"},
    {X "%2 = transpose(%1, perm = [1,0]) %3 = transpose(%2, perm = [1,0]) other %3", X "other %1"},
    {X "%2 = broadcast(%1, shape = [1,2,6]) %3 = broadcast(%2, shape = [4,2,6]) other %3",
     X "%2 = broadcast(%1, shape = [4,2,6]) other %2"},
    {X "%2 = slice(%1, axis = 1, size = 6, step = 1) other %2", X "other %1"},
    {X "%2 = slice(%1, axis = 1, start = 5, size = 3, step = -2) "
       "%3 = slice(%2, axis = 1, start = 2, size = 2, step = -1) other %3",
     X "%2 = slice(%1, axis = 1, start = 1, size = 2, step = 2) other %2"},
    {X "%2 = pad(%1, axis = 1, lo = 2, hi = 1, value = 0) "
       "%3 = slice(%2, axis = 1, start = 2, size = 6, step = 1) other %3",
     X "other %1"},
    {X "%2 = pad(%1, axis = 1, lo = 2, hi = 1, value = 3) "
       "%3 = pad(%2, axis = 1, lo = 1, hi = 0, value = 3) other %3",
     X "%2 = pad(%1, axis = 1, lo = 3, hi = 1, value = 3) other %2"},
    {X Y "%3 = concat(%1, %2, axis = 0) %4 = slice(%3, axis = 0, start = 2, size = 2, step = 1) "
         "other %4",
     "%1 = input(index = 1, dtype = f32, shape = [2,6]) other %1"},
    {X Y "%3 = concat(%1, %2, axis = 0) %4 = concat(%3, %1, axis = 0) other %4",
     X Y "%3 = concat(%1, %2, %1, axis = 0) other %3"},
    {X "%2 = slice(%1, axis = 1, size = 1, step = 1) %3 = reduce_max(%2, axis = 1) other %3",
     X "%2 = slice(%1, axis = 1, size = 1, step = 1) %3 = reshape(%2, shape = [2]) other %3"},
    {X Y "%3 = transpose(%1, perm = [1,0]) %4 = contract(%3, %2, extent = [6,6,2], out = 2, "
         "x = [i0, i2], y = [i2, i1]) other %4",
     X Y "%3 = contract(%1, %2, extent = [6,6,2], out = 2, x = [i2, i0], y = [i2, i1]) other %3"},
    /* tuples, nothing at all */
    {X Y "%3 = tuple(%1, %2) %4 = pick(%3, index = 1) other %4",
     "%1 = input(index = 1, dtype = f32, shape = [2,6]) other %1"},
    {X "%2 = slice(%1, axis = 0, size = 0, step = 1) %3 = exp(%2) other %3",
     "%1 = const(dtype = f32, value = 0) %2 = broadcast(%1, shape = [0,6]) other %2"},
    {"%1 = input(index = 0, dtype = f32, shape = [3,0]) "
     "%2 = contract(%1, %1, extent = [3,3,0], out = 2, x = [i0, i2], y = [i1, i2]) other %2",
     "%1 = const(dtype = f32, value = 0) %2 = broadcast(%1, shape = [3,3]) other %2"},
    /* common subexpressions, dead code */
    {X "%2 = exp(%1) %3 = exp(%1) %4 = add(%2, %3) other %4",
     X "%2 = exp(%1) %3 = add(%2, %2) other %3"},
    {X "%2 = exp(%1) %3 = sum(%1, axis = 0) %4 = sum(%1, axis = 1) other %4 other %3",
     X "%2 = sum(%1, axis = 0) %3 = sum(%1, axis = 1) other %3 other %2"},
    {"%1 = input(index = 0, dtype = i64) %2 = input(index = 1, dtype = i64) "
     "%3 = const(dtype = i64, value = 5) %4 = const(dtype = i64, value = 6) "
     "%5 = uniform(%1, %2, %3, dtype = f32, shape = [2]) "
     "%6 = uniform(%1, %2, %3, dtype = f32, shape = [2]) "
     "%7 = uniform(%1, %2, %4, dtype = f32, shape = [2]) %8 = add(%5, %6) %9 = add(%8, %7) "
     "other %9",
     "%1 = input(index = 0, dtype = i64) %2 = input(index = 1, dtype = i64) "
     "%3 = const(dtype = i64, value = 5) %4 = const(dtype = i64, value = 6) "
     "%5 = uniform(%1, %2, %3, dtype = f32, shape = [2]) "
     "%6 = uniform(%1, %2, %4, dtype = f32, shape = [2]) "
     "%7 = add(%5, %5) %8 = add(%7, %6) other %8"},
    /* constants */
    {"%1 = const(dtype = f32, value = 2) %2 = const(dtype = f32, value = 3) %3 = mul(%1, %2) "
     "%4 = sqrt(%3) other %4",
     "%1 = const(dtype = f32, value = 2.4494898) other %1"},
    {"%1 = const(dtype = i32, value = 2147483647) %2 = const(dtype = i32, value = 1) "
     "%3 = add(%1, %2) other %3",
     "%1 = const(dtype = i32, value = -2147483648) other %1"},
    {"%1 = const(dtype = i64, value = 9007199254740993) %2 = const(dtype = i64, value = 2) "
     "%3 = add(%1, %2) other %3",
     "%1 = const(dtype = i64, value = 9007199254740995) other %1"},
    {"%1 = const(dtype = f32, value = 0.1) %2 = cast(%1, dtype = f64) other %2",
     "%1 = const(dtype = f64, value = 0.10000000149011612) other %1"},
    {"%1 = const(dtype = f32, value = nan) %2 = cast(%1, dtype = bool) other %2",
     "%1 = const(dtype = bool, value = 1) other %1"},
    {"%1 = const(dtype = f32, value = 1) %2 = broadcast(%1, shape = [1000,1000]) %3 = exp(%2) "
     "%4 = neg(%3) other %4",
     "%1 = const(dtype = f32, value = -2.7182817) %2 = broadcast(%1, shape = [1000,1000]) "
     "other %2"},
    {"%1 = literal(dtype = f32, shape = [2,2], data = [1,2,3,4]) %2 = transpose(%1, perm = [1,0]) "
     "%3 = sum(%2, axis = 0) other %2 other %3",
     "%1 = literal(dtype = f32, shape = [2,2], data = [1,3,2,4]) "
     "%2 = literal(dtype = f32, shape = [2], data = [3,7]) other %1 other %2"},
    {"%1 = literal(dtype = f32, shape = [2], data = [1,2]) %2 = broadcast(%1, shape = [1000,2]) "
     "other %2",
     NULL},
    /* loops: a result that nobody picks, a carry that serves itself, an operand of it */
    {X Y "%3 = scan(%1, %2, %1, carries = 2, sequences = 0, count = 3, body = { "
         "%1 = arg(index = 0, dtype = f32, shape = [2,6]) %2 = arg(index = 1, dtype = f32, shape = "
         "[2,6]) "
         "%3 = arg(index = 2, dtype = f32, shape = [2,6]) %4 = sin(%1) %5 = mul(%2, %3) "
         "result %4 result %5 result %5 }) %4 = pick(%3, index = 0) other %4",
     X "%2 = scan(%1, carries = 1, sequences = 0, count = 3, body = { "
       "%1 = arg(index = 0, dtype = f32, shape = [2,6]) %2 = sin(%1) result %2 }) "
       "%3 = pick(%2, index = 0) other %3"},
    {X "%2 = scan(%1, carries = 1, sequences = 0, count = 0, body = { "
       "%1 = arg(index = 0, dtype = f32, shape = [2,6]) %2 = sin(%1) result %2 }) "
       "%3 = pick(%2, index = 0) other %3",
     X "other %1"},
};

/* As it prints: numbered from 1, with every attribute. */
static const char *normal(const char *statements)
{
    Graph *g = read(statements);
    const char *text = printed(g);
    graph_free(g);
    return text;
}

static int count_nodes(const char *statements)
{
    Graph *g = read(statements);
    int n = g->node.n;
    graph_free(g);
    return n;
}

START_TEST(small_graphs)
{
    Graph *g = read(pair[_i].from);
    simplify(&cx, g);
    ck_assert_ptr_null(graph_verify(g, &cx.perm));
    if (pair[_i].to != NULL)
        ck_assert_str_eq(printed(g), normal(pair[_i].to));
    else
        ck_assert_int_eq(g->node.n, count_nodes(pair[_i].from));
    const char *once = printed(g);
    simplify(&cx, g);
    ck_assert_str_eq(printed(g), once);
    graph_free(g);
}
END_TEST

/* ---- instances, gradients ----------------------------------------------------------- */

START_TEST(instances_of_a_block_stay_apart)
{
    const Origin a = {.span = NO_SPAN, .name = "h.0"}, b = {.span = NO_SPAN, .name = "h.1"};
    const Origin in_a = {.span = NO_SPAN, .parent = &a}, in_b = {.span = NO_SPAN, .parent = &b};
    Graph *g = graph_new(&cx, "g");
    Type t = type_make(F32, 1, (int64_t[]){3});
    const Origin *place[] = {&a, &in_a, &b, &in_b};
    for (int i = 0; i < 4; i++) {
        g->origin = place[i];
        Ref w = g_slot(g, 0, t);
        Ref y = g_unary(g, OP_exp, w);
        graph_root(g, ROOT_OTHER, "y", y, -1, -1);
    }
    simplify(&cx, g);
    ck_assert_int_eq(g->node.n - 1, 3); /* one slot, one exp for each instance */
    ck_assert_str_eq(origin_path(&cx.perm, node(g, 3)->origin), "h.1");
    graph_free(g);
}
END_TEST

START_TEST(stop_gradient_goes_after_vjp)
{
    Pinned pin = {.arena = &cx.perm};
    Graph *g = graph_new(&cx, "g");
    Type t = type_scalar(F32);
    Ref w = g_slot(g, pinned_add(&pin, "w", SLOT_PARAM, t, NULL), t);
    Ref s = g_unary(g, OP_sin, w);
    Ref stopped = g_stop_gradient(g, s);
    Ref y = g_mul(g, stopped, w);
    graph_root(g, ROOT_LOSS, "loss", y, -1, -1);
    simplify(&cx, g);
    ck_assert_int_eq(g->node.n - 1, 4);
    ck_assert(vjp(&cx, g, &pin, 1));
    simplify(&cx, g);
    ck_assert_int_eq(g->node.n - 1, 3); /* the gradient is sin(w) */
    ck_assert_int_eq(g->n_primal, 4);
    ck_assert_ptr_null(graph_verify(g, &cx.perm));
    graph_free(g);
}
END_TEST

/* ---- random graphs -------------------------------------------------------------------- */

static const double special[] = {0.0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, 0.5};

static Ref random_constant(Graph *g, const Type *t, uint64_t *s)
{
    Type type = *t;
    return g_full(g, type, special[next_int(s, 0, 7)]);
}

/* Another node of type f64[4,6], or of views of it and back. */
static Ref grow(Graph *g, const Ref *pool, int n, uint64_t *s)
{
    const OpId unary[] = {OP_neg, OP_abs, OP_relu, OP_sign, OP_floor, OP_stop_gradient};
    const OpId binary[] = {OP_add, OP_sub, OP_mul, OP_div, OP_max, OP_min};
    Ref x = pool[next_int(s, 0, n - 1)], y = pool[next_int(s, 0, n - 1)];
    Type t = *type_of(g, x);
    int64_t size = next_int(s, 1, 6);
    switch (next_int(s, 0, 12)) {
    case 0:
    case 1:
        return g_unary(g, unary[next_int(s, 0, 5)], x);
    case 2:
    case 3:
        return g_node(g, binary[next_int(s, 0, 5)], (Ref[]){x, y}, 2, NULL);
    case 4:
        y = random_constant(g, &t, s);
        return g_node(g, binary[next_int(s, 0, 5)], (Ref[]){x, y}, 2, NULL);
    case 5:
        return g_reshape(g, x, 2, (int64_t[]){6, 4});
    case 6:
        return g_swap_last(g, x);
    case 7: {
        Ref c = g_node(g, OP_lt, (Ref[]){x, y}, 2, NULL);
        Ref n_c = g_unary(g, OP_not, c);
        return g_where(g, next_int(s, 0, 1) ? c : n_c, x, y);
    }
    case 8:
        x = g_slice(g, x, 1, 6 - size, size, 1);
        return g_fit(g, x, 1, next_int(s, 0, 3), 6);
    case 9:
        x = g_flip(g, x, next_int(s, 0, 1));
        return x;
    case 10: {
        Ref parts[2] = {g_slice(g, x, 1, 0, size, 1), NONE};
        parts[1] = g_fit(g, y, 1, 0, 6 - size + 1);
        Ref all = g_concat(g, parts, 2, 1);
        return g_slice(g, all, 1, 0, 6, 1);
    }
    case 11:
        x = g_reduce(g, OP_reduce_max, x, 0, true);
        return g_broadcast(g, x, t.rank, t.dim);
    default:
        x = g_cast(g, F32, x);
        x = g_cast(g, F64, x);
        return x;
    }
}

static Graph *random_graph(uint64_t *s)
{
    Graph *g = graph_new(&cx, "random");
    Type t = type_make(F64, 2, (int64_t[]){4, 6});
    Ref pool[64];
    int n = 2;
    pool[0] = g_input(g, 0, t);
    pool[1] = random_constant(g, &t, s);
    while (n < 40) {
        Ref r = grow(g, pool, n, s);
        ck_assert(r != NONE);
        Type made = *type_of(g, r);
        if (made.dim[0] != 4)
            r = next_int(s, 0, 1) ? g_reshape(g, r, 2, t.dim)
                                  : g_reshape(g, g_swap_last(g, r), 2, t.dim);
        pool[n++] = r;
    }
    for (int i = 0; i < 4; i++)
        graph_root(g, ROOT_OTHER, "y", pool[n - 1 - i], -1, -1);
    return g;
}

static bool same_bits(const Value *x, const Value *y)
{
    for (int64_t i = 0; i < x->n; i++)
        if (!(isnan(x->x[i]) && isnan(y->x[i])) && memcmp(&x->x[i], &y->x[i], 8) != 0)
            return false;
    return x->n == y->n;
}

START_TEST(random_graphs_keep_their_bits)
{
    uint64_t s = 77;
    int64_t before = 0, after = 0;
    for (int k = 0; k < 400; k++) {
        Arena a = {0};
        Graph *g = random_graph(&s);
        Value *in = random_inputs(g, 1, -2, 2, &s, &a);
        for (int i = 0; i < 24; i += 3)
            in[0].x[i] = special[next_int(&s, 0, 7)];
        Value old[4], *v = eval_graph(g, &(Feed){.input = in}, &a);
        for (int i = 0; i < 4; i++)
            old[i] = v[g->root.at[i].ref];
        before += g->node.n;
        const char *text = printed(g);
        simplify(&cx, g);
        after += g->node.n;
        const char *bad = graph_verify(g, &a);
        ck_assert_msg(bad == NULL, "%s\n%s", bad, text);
        v = eval_graph(g, &(Feed){.input = in}, &a);
        for (int i = 0; i < 4; i++)
            ck_assert_msg(same_bits(&old[i], &v[g->root.at[i].ref]), "root %d\n%s\n%s", i, text,
                          printed(g));
        graph_free(g);
        arena_free(&a);
    }
    ck_assert_msg(after < before * 2 / 3, "%lld of %lld", (long long)after, (long long)before);
}
END_TEST

START_TEST(a_large_graph_takes_linear_time)
{
    Graph *g = graph_new(&cx, "large");
    Type t = type_make(F32, 1, (int64_t[]){8});
    Ref x = g_input(g, 0, t), y = x;
    for (int i = 0; i < 25000; i++) {
        Ref one = g_full(g, t, i);
        Ref a = g_mul(g, y, one);
        Ref b = g_unary(g, i % 2 ? OP_sin : OP_neg, a);
        y = g_add(g, b, x);
    }
    graph_root(g, ROOT_OTHER, "y", y, -1, -1);
    ck_assert_int_gt(g->node.n, 100000);
    clock_t from = clock();
    simplify(&cx, g);
    double seconds = (double)(clock() - from) / CLOCKS_PER_SEC;
    ck_assert_msg(seconds < 2, "%g s", seconds);
    graph_free(g);
}
END_TEST

Suite *suite_simplify(void);
Suite *suite_simplify(void)
{
    Suite *s = suite_create("simplify");
    TCase *c = tcase_create("simplify");
    tcase_add_checked_fixture(c, start, stop);
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, small_graphs, 0, (int)(sizeof pair / sizeof *pair));
    tcase_add_test(c, instances_of_a_block_stay_apart);
    tcase_add_test(c, stop_gradient_goes_after_vjp);
    tcase_add_test(c, random_graphs_keep_their_bits);
    tcase_add_test(c, a_large_graph_takes_linear_time);
    suite_add_tcase(s, c);
    return s;
}
