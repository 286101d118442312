/* Gradients of contractions, windows and slices in all their shapes, against differences. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pass/pass.h"
#include "support/eval.h"

static Ctx cx;
static Graph *g;

static void start(void)
{
    ctx_init(&cx);
    g = graph_new(&cx, "test");
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

static Ref input(Type t)
{
    return g_input(g, count_inputs(g), t);
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

/* ---- contractions ------------------------------------------------------------------------ */

static double multiplications(Ref from)
{
    double sum = 0;
    for (Ref r = from; r < (Ref)g->node.n; r++) {
        double each = 1;
        if (op_of(g, r) != OP_contract)
            continue;
        for (int i = 0; i < attr(g, r, 0)->n; i++)
            each *= (double)attr(g, r, 0)->ints[i];
        sum += each;
    }
    return sum;
}

START_TEST(matmul_of_all_ranks)
{
    const int64_t x[][4] = {{3}, {2, 3}, {4, 2, 3}, {5, 1, 2, 3}, {1, 2, 3}};
    const int64_t y[][4] = {{3}, {3, 2}, {4, 3, 2}, {4, 3, 1}, {1, 3, 2}};
    const int x_rank[] = {1, 2, 3, 4, 3}, y_rank[] = {1, 2, 3, 3, 3};
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++)
            for (int order = 1; order <= 2; order++) {
                renew();
                Ref a = input(f32(x_rank[i], x[i])), b = input(f32(y_rank[j], y[j]));
                check_gradient(g_matmul(g, a, b), order, -1, 1, (uint64_t)(9 * i + j));
            }
}
END_TEST

START_TEST(einsum_of_many_kinds)
{
    const char *const spec[] = {"ij,jk->ik", "ij,kj->ki", "bij,bkj->bik", "i,j->ij",
                                "ij,ij->",   "ijk,k->ji", "ij,ji->i",     "ij,kl->il"};
    const int64_t extent[] = {2, 3, 4, 2, 3, 4}; /* i j k l .. and b */
    for (int s = 0; s < 8; s++)
        for (int order = 1; order <= 2; order++) {
            renew();
            Type t[2] = {type_scalar(F32), type_scalar(F32)};
            int which = 0;
            for (const char *c = spec[s]; *c != '-'; c++) {
                if (*c == ',')
                    which++;
                else
                    t[which].dim[t[which].rank++] = *c == 'b' ? 3 : extent[*c - 'i'];
            }
            Ref a = input(t[0]), b = input(t[1]);
            check_gradient(g_einsum(g, spec[s], a, b), order, -1, 1, (uint64_t)s);
        }
}
END_TEST

/* x[i,i] * y[i] */
START_TEST(a_diagonal)
{
    Ref x = input(SHAPE(3, 3)), y = input(SHAPE(3));
    check_gradient(g_einsum(g, "ii,i->i", x, y), 1, -1, 1, 1);
}
END_TEST

/* More summed letters than a kernel has loops for. */
START_TEST(many_letters)
{
    Ref x = input(SHAPE(2, 1, 2, 2, 2)), y = input(SHAPE(2, 1, 2, 2));
    check_gradient(g_einsum(g, "abcde,fghi->", x, y), 1, -1, 1, 1);
    renew();
    Ref u = input(SHAPE(2, 1, 2, 2, 2, 2)), v = input(SHAPE(2, 2, 2, 1, 2));
    check_gradient(g_einsum(g, "abcdee,fcghi->c", u, v), 1, -1, 1, 2);
}
END_TEST

typedef struct Conv {
    int spatial;
    int64_t groups, x[5], w[5], stride[3], lo[3], hi[3], dilation[3];
} Conv;

static Conv random_conv(int spatial, uint64_t *s)
{
    Conv c = {.spatial = spatial, .groups = next_int(s, 1, 3)};
    int64_t in = next_int(s, 1, 2), out = next_int(s, 1, 2);
    c.x[0] = next_int(s, 1, 2);
    c.x[1] = c.groups * in;
    c.w[0] = c.groups * out;
    c.w[1] = in;
    for (int i = 0; i < spatial; i++) {
        c.w[i + 2] = next_int(s, 1, 3);
        c.stride[i] = next_int(s, 1, 3);
        c.dilation[i] = next_int(s, 1, 3);
        c.lo[i] = next_int(s, 0, 2);
        c.hi[i] = next_int(s, 0, 2);
        int64_t span = c.dilation[i] * (c.w[i + 2] - 1) + 1;
        c.x[i + 2] = span + next_int(s, 0, spatial == 1 ? 9 : 3);
    }
    return c;
}

static Ref build_conv(const Conv *c)
{
    Ref x = input(f32(c->spatial + 2, c->x)), w = input(f32(c->spatial + 2, c->w));
    return g_conv(g, x, w, c->stride, c->lo, c->hi, c->dilation, c->groups);
}

static void check_convs(int spatial, int n, int order)
{
    uint64_t s = (uint64_t)(spatial + 10 * order);
    for (int i = 0; i < n; i++) {
        renew();
        Conv c = random_conv(spatial, &s);
        check_gradient(build_conv(&c), order, -1, 1, s);
    }
}

/* Row-major offset of at[] in an array of these extents; -1 outside. */
static int64_t offset(const int64_t *dim, const int64_t *at)
{
    int64_t n = 0;
    for (int i = 0; i < 5; i++) {
        if (at[i] < 0 || at[i] >= dim[i])
            return -1;
        n = n * dim[i] + at[i];
    }
    return n;
}

/* Element o[N, O, p...] by the definition. */
static double conv_element(const Conv *c, const Value *in, const int64_t *o)
{
    int64_t group = o[1] / (c->w[0] / c->groups), tap[5] = {o[1]};
    double sum = 0;
    for (tap[1] = 0; tap[1] < c->w[1]; tap[1]++)
        for (tap[2] = 0; tap[2] < c->w[2]; tap[2]++)
            for (tap[3] = 0; tap[3] < c->w[3]; tap[3]++)
                for (tap[4] = 0; tap[4] < c->w[4]; tap[4]++) {
                    int64_t at[5] = {o[0], group * c->w[1] + tap[1]};
                    for (int i = 0; i < 3; i++)
                        at[i + 2] =
                            o[i + 2] * c->stride[i] + tap[i + 2] * c->dilation[i] - c->lo[i];
                    int64_t x = offset(c->x, at);
                    sum += x < 0 ? 0 : in[0].x[x] * in[1].x[offset(c->w, tap)];
                }
    return sum;
}

static void check_definition(Conv c, uint64_t *s)
{
    renew();
    Ref y = build_conv(&c);
    Type t = *type_of(g, y);
    Value *in = random_inputs(g, 2, -1, 1, s, &cx.perm);
    Value v = eval_graph(g, &(Feed){.input = in}, &cx.perm)[y];
    for (int i = c.spatial; i < 3; i++) /* axes of one element */
        c.x[i + 2] = c.w[i + 2] = c.stride[i] = c.dilation[i] = t.dim[i + 2] = 1;
    int64_t o[5], n = 0;
    for (o[0] = 0; o[0] < t.dim[0]; o[0]++)
        for (o[1] = 0; o[1] < t.dim[1]; o[1]++)
            for (o[2] = 0; o[2] < t.dim[2]; o[2]++)
                for (o[3] = 0; o[3] < t.dim[3]; o[3]++)
                    for (o[4] = 0; o[4] < t.dim[4]; o[4]++, n++)
                        ck_assert_double_eq_tol(v.x[n], conv_element(&c, in, o), 1e-12);
    ck_assert_int_eq(n, v.n);
}

START_TEST(convolutions_by_definition)
{
    uint64_t s = 4;
    for (int i = 0; i < 120; i++)
        check_definition(random_conv(1 + i % 3, &s), &s);
}
END_TEST

START_TEST(convolutions)
{
    check_convs(1, 150, 1);
    check_convs(2, 40, 1);
    check_convs(3, 8, 1);
}
END_TEST

START_TEST(convolutions_twice)
{
    check_convs(1, 60, 2);
    check_convs(2, 8, 2);
}
END_TEST

/* A gradient of a strided convolution multiplies no zeros that dilation would put in: as
 * many products as the convolution, but for the borders. */
START_TEST(strided_gradients_multiply_no_zeros)
{
    const Conv c = {.spatial = 2,
                    .groups = 1,
                    .x = {2, 8, 32, 32},
                    .w = {8, 8, 3, 3},
                    .stride = {2, 2},
                    .lo = {1, 1},
                    .hi = {1, 1},
                    .dilation = {1, 1}};
    Ref y = build_conv(&c), w = input(*type_of(g, y)), d[2];
    double forward = multiplications(1);
    Ref end = (Ref)g->node.n, xs[2] = {NONE, NONE};
    for (Ref r = 1, n = 0; r < end && n < 2; r++)
        if (op_of(g, r) == OP_input)
            xs[n++] = r;
    ck_assert(pullback(&cx, g, &y, &w, 1, xs, 2, d));
    double reverse = multiplications(end);
    ck_assert_msg(reverse <= 2.01 * forward, "%g against %g", reverse, forward);
    ck_assert_int_eq(count(OP_contract, end), 5); /* four phases, and the weight's */
}
END_TEST

START_TEST(stride_one_is_one_contraction)
{
    const Conv c = {.spatial = 2,
                    .groups = 1,
                    .x = {2, 3, 9, 9},
                    .w = {4, 3, 3, 3},
                    .stride = {1, 1},
                    .lo = {1, 1},
                    .hi = {1, 1},
                    .dilation = {2, 1}};
    Ref y = build_conv(&c), w = input(*type_of(g, y)), d[2];
    Ref end = (Ref)g->node.n;
    Ref x = arg(g, y, 0), k = arg(g, y, 1);
    ck_assert(pullback(&cx, g, &y, &w, 1, (Ref[]){x, k}, 2, d));
    ck_assert_int_eq(count(OP_contract, end), 2);
    ck_assert_int_eq(g->node.n - (int)end, 2); /* and nothing around them */
}
END_TEST

/* Transposed: x has the channels of the convolution's result. */
static Ref build_transposed(const Conv *c, const int64_t *extra)
{
    int64_t shape[5];
    memcpy(shape, c->x, sizeof shape);
    shape[1] = c->w[0];
    Ref x = input(f32(c->spatial + 2, shape)), w = input(f32(c->spatial + 2, c->w));
    return g_conv_transpose(g, x, w, c->stride, c->lo, extra, c->dilation, c->groups);
}

START_TEST(transposed_convolutions)
{
    uint64_t s = 77;
    int told = 0;
    for (int i = 0; i < 150; i++) {
        renew();
        Conv c = random_conv(1 + i % 3, &s);
        int64_t extra[3];
        for (int a = 0; a < c.spatial; a++) {
            int64_t span = c.dilation[a] * (c.w[a + 2] - 1);
            extra[a] = next_int(&s, 0, (int)c.stride[a] - 1);
            c.x[a + 2] = next_int(&s, 1, 4);
            c.lo[a] = c.lo[a] * 2 > span ? 0 : c.lo[a]; /* what is left has an element */
        }
        Ref y = build_transposed(&c, extra);
        told += count(OP_adjoint, 1) > 0;
        check_gradient(y, c.spatial == 1 ? 1 + i % 2 : 1, -1, 1, s);
    }
    ck_assert_msg(told > 50, "%d of several contractions", told);
}
END_TEST

/* The gradients of a transposed convolution are a convolution and its weight's, however many
 * phases it was put together of; once the reverse stands, nothing is left of what told so. */
START_TEST(transposed_gradients_are_two_contractions)
{
    const Conv c = {.spatial = 2,
                    .groups = 1,
                    .x = {2, 0, 5, 5},
                    .w = {6, 8, 4, 4},
                    .stride = {2, 2},
                    .lo = {1, 1},
                    .dilation = {1, 1}};
    const int64_t none[2] = {0};
    Ref y = build_transposed(&c, none), ct = input(*type_of(g, y)), d[2];
    Ref end = (Ref)g->node.n;
    ck_assert_int_eq(count(OP_contract, 1), 5); /* four phases, and one that is not read */
    ck_assert_int_eq(op_of(g, y), OP_adjoint);
    Ref xs[2] = {arg(g, y, 1), arg(g, y, 2)};
    ck_assert(pullback(&cx, g, &y, &ct, 1, xs, 2, d));
    ck_assert_int_eq(count(OP_contract, end), 2);
    ck_assert_int_eq(g->node.n - (int)end, 2); /* and nothing around them */
    graph_root(g, ROOT_OUTPUT, "y", y, -1, -1);
    for (int i = 0; i < 2; i++)
        graph_root(g, ROOT_OUTPUT, i == 0 ? "dx" : "dw", d[i], -1, -1);
    simplify(&cx, g);
    ck_assert_int_eq(count(OP_adjoint, 1), 1); /* grad() of a model has more to come */
    g->n_primal = (Ref)g->node.n - 2;
    simplify(&cx, g);
    ck_assert_int_eq(count(OP_adjoint, 1), 0);
    ck_assert_int_eq(count(OP_contract, 1), 6);
}
END_TEST

/* ---- windows and slices ------------------------------------------------------------------- */

START_TEST(windows)
{
    uint64_t s = 5;
    for (int i = 0; i < 200; i++) {
        renew();
        int64_t size = next_int(&s, 1, 4), dilation = next_int(&s, 1, 3);
        int64_t stride = next_int(&s, 1, 5), lo = next_int(&s, 0, 2), hi = next_int(&s, 0, 2);
        int64_t extent = dilation * (size - 1) + 1 + next_int(&s, 0, 8);
        int axis = next_int(&s, 0, 1);
        int64_t dims[2] = {2, 2};
        dims[axis] = extent;
        Ref x = input(f32(2, dims));
        Ref y = g_window(g, x, axis, size, stride, dilation, lo, hi, 0);
        check_gradient(y, 1 + i % 2, -1, 1, s);
    }
}
END_TEST

START_TEST(max_pooling_gives_the_gradient_to_the_first)
{
    Ref x = input(SHAPE(1, 2, 2));
    Ref rows = g_window(g, x, 1, 2, 2, 1, 0, 0, -INFINITY);
    Ref both = g_window(g, rows, 3, 2, 2, 1, 0, 0, -INFINITY);
    const bool axes[MAX_RANK] = {false, false, true, false, true};
    Ref top = g_reduce_axes(g, OP_reduce_max, both, axes, false);
    Ref w = g_full(g, *type_of(g, top), 1), d;
    ck_assert(pullback(&cx, g, &top, &w, 1, &x, 1, &d));
    double x_values[] = {1, 7, 7, 7};
    const Value in[] = {{.n = 4, .x = x_values}};
    Value *v = eval_graph(g, &(Feed){.input = in}, &cx.perm);
    const double expected[] = {0, 1, 0, 0};
    for (int i = 0; i < 4; i++)
        ck_assert(v[d].x[i] == expected[i]);
}
END_TEST

START_TEST(slices)
{
    uint64_t s = 3;
    for (int i = 0; i < 200; i++) {
        renew();
        int64_t step = next_int(&s, 1, 4), size = next_int(&s, 1, 5);
        int64_t span = (size - 1) * step + 1, before = next_int(&s, 0, 3);
        int64_t extent = before + span + next_int(&s, 0, 3);
        bool down = next_int(&s, 0, 1) == 1;
        Ref x = input(SHAPE(extent, 2));
        Ref y = g_slice(g, x, 0, down ? before + span - 1 : before, size, down ? -step : step);
        check_gradient(y, 1, -1, 1, s);
    }
}
END_TEST

START_TEST(eight_axes)
{
    const int64_t d[8] = {2, 1, 2, 1, 2, 1, 1, 3};
    for (int axis = 0; axis < 8; axis++) {
        renew();
        Ref x = input(f32(8, d));
        Ref all = g_slice(g, x, axis, dim(g, x, axis) - 1, (dim(g, x, axis) + 1) / 2, -2);
        Ref y = g_unary(g, OP_sin, all);
        check_gradient(y, 1, -1, 1, 3);
    }
}
END_TEST

Suite *suite_vjp_shapes(void);
Suite *suite_vjp_shapes(void)
{
    Suite *s = suite_create("vjp_shapes");
    TCase *c = tcase_create("shapes");
    tcase_add_checked_fixture(c, start, stop);
    tcase_set_timeout(c, 240);
    tcase_add_test(c, matmul_of_all_ranks);
    tcase_add_test(c, einsum_of_many_kinds);
    tcase_add_test(c, a_diagonal);
    tcase_add_test(c, many_letters);
    tcase_add_test(c, convolutions_by_definition);
    tcase_add_test(c, convolutions);
    tcase_add_test(c, convolutions_twice);
    tcase_add_test(c, strided_gradients_multiply_no_zeros);
    tcase_add_test(c, stride_one_is_one_contraction);
    tcase_add_test(c, transposed_convolutions);
    tcase_add_test(c, transposed_gradients_are_two_contractions);
    tcase_add_test(c, windows);
    tcase_add_test(c, max_pooling_gives_the_gradient_to_the_first);
    tcase_add_test(c, slices);
    tcase_add_test(c, eight_axes);
    suite_add_tcase(s, c);
    return s;
}
