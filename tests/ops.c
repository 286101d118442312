/* Every op from its row, and none by name. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/op.h"
#include "support/eval.h"

enum { SAMPLES = 20, MAX_EXAMPLES = 16 };

static Ctx cx;

static void start(void)
{
    ctx_init(&cx);
}

static void stop(void)
{
    ctx_free(&cx);
}

/* ---- examples --------------------------------------------------------------------- */

typedef struct Example {
    const char *at;
    size_t n;
} Example;

/* The parts between ';'. */
static int split_examples(const Op *op, Example *e)
{
    int n = 0;
    for (const char *s = op->example; *s != '\0' && n < MAX_EXAMPLES; n++) {
        s += strspn(s, " ");
        e[n] = (Example){s, strcspn(s, ";")};
        s += e[n].n;
        s += *s == ';';
    }
    return n;
}

static Graph *read_example(const Example *e)
{
    Graph *g = graph_read_example(&cx, e->at, e->n);
    if (g == NULL)
        diag_print(&cx, stdout);
    ck_assert_msg(g != NULL, "%.*s", (int)e->n, e->at);
    return g;
}

/* The values of an example that can have a gradient. */
static int float_values(Graph *g, Ref *ys, int max)
{
    Ref r = g->root.at[0].ref;
    int n = 0;
    if (rank(g, r) >= 0) {
        ys[0] = r;
        return dtype_is_float(type_of(g, r)->dtype);
    }
    for (int i = 0; i < tuple_size(g, r) && n < max; i++) {
        Ref value = g_pick(g, r, i);
        if (dtype_is_float(type_of(g, value)->dtype))
            ys[n++] = value;
    }
    return n;
}

static void domain_of(const Op *op, double *lo, double *hi)
{
    bool given = op->domain[0] != 0 || op->domain[1] != 0;
    *lo = given ? op->domain[0] : -1;
    *hi = given ? op->domain[1] : 1;
}

/* ---- rows --------------------------------------------------------------------------- */

static bool has_hook(const Op *op)
{
    switch (op->kind) {
    case OP_POINTWISE:
        return op->scalar != NULL;
    case OP_VIEW:
    case OP_REDUCE:
        return op->elem != NULL;
    case OP_OPAQUE:
        return op->kernel != NULL;
    default:
        return true;
    }
}

START_TEST(a_row_is_complete)
{
    const Op *op = optab[_i];
    ck_assert_ptr_nonnull(op->name);
    ck_assert_msg(op_find(op->name) == (OpId)_i, "%s: not found by its name", op->name);
    ck_assert_msg(op->doc != NULL && op->example != NULL && op->shape != NULL, "%s", op->name);
    ck_assert_msg((op->vjp == NULL) == (op->nondiff != NULL), "%s", op->name);
    ck_assert_msg(has_hook(op), "%s: nothing to lower it by", op->name);
    ck_assert_msg(op->domain[0] <= op->domain[1], "%s", op->name);
}
END_TEST

START_TEST(examples_read_verify_print_and_read_back)
{
    Example e[MAX_EXAMPLES];
    int n = split_examples(optab[_i], e);
    ck_assert_int_gt(n, 0);
    for (int i = 0; i < n; i++) {
        Graph *g = read_example(&e[i]);
        const char *bad = graph_verify(g, &cx.perm);
        ck_assert_msg(bad == NULL, "%s: %s", optab[_i]->name, bad);
        Text first, second;
        text_init(&first, &cx.perm);
        text_init(&second, &cx.perm);
        graph_print(g, &first);
        Graph *again = graph_read(&cx, source_add(&cx, "printed", first.at, first.n, false));
        if (again == NULL)
            diag_print(&cx, stdout);
        ck_assert_msg(again != NULL, "%s", first.at);
        graph_print(again, &second);
        ck_assert_str_eq(first.at, second.at);
        graph_free(again);
        graph_free(g);
    }
}
END_TEST

/* Operands of another type, too few, too many: refused with a message, or a verified node. */
START_TEST(wrong_operands_are_refused_in_words)
{
    const Op *op = optab[_i];
    Example e[MAX_EXAMPLES];
    split_examples(op, e);
    Graph *g = read_example(&e[0]);
    Ref r = g->root.at[0].ref;
    int n = node(g, r)->n_args;
    const Type types[] = {type_scalar(F64), type_make(I32, 2, (int64_t[]){3, 5}),
                          type_scalar(BOOL)};
    Ref args[8] = {NONE};
    for (int change = 0; change < n && n < 8; change++)
        for (int t = 0; t < 3; t++) {
            for (int i = 0; i < n; i++)
                args[i] = i == change ? g_input(g, 0, types[t]) : arg(g, r, i);
            int before = cx.diag.n;
            Ref made = g_node(g, (OpId)_i, args, n, node(g, r)->attr);
            if (made == NONE) {
                ck_assert_msg(cx.diag.n > before || cx.n_errors > 0, "%s: silent", op->name);
                ck_assert(cx.diag.n == before || strlen(cx.diag.at[before]->text) > 10);
            }
        }
    ck_assert_ptr_null(graph_verify(g, &cx.perm));
    graph_free(g);
}
END_TEST

START_TEST(the_manual_is_current)
{
    Text manual;
    text_init(&manual, &cx.perm);
    ops_manual(&manual);
    FILE *f = fopen(SOURCE_DIR "/grammar/ops.md", "rb");
    ck_assert_ptr_nonnull(f);
    char *page = arena_alloc(&cx.perm, manual.n + 2);
    size_t n = fread(page, 1, manual.n + 1, f);
    fclose(f);
    if (n != manual.n || memcmp(page, manual.at, n) != 0) {
        f = fopen(BUILD_DIR "/ops.md", "wb"); /* to be compared, and copied */
        if (f != NULL) {
            fwrite(manual.at, 1, manual.n, f);
            fclose(f);
        }
    }
    ck_assert_msg(n == manual.n && memcmp(page, manual.at, n) == 0,
                  "grammar/ops.md is stale; " BUILD_DIR "/ops.md is what it should be");
}
END_TEST

/* ---- gradients ------------------------------------------------------------------------ */

static void check_order(const Op *op, int order, double tolerance)
{
    Example e[MAX_EXAMPLES];
    int n = split_examples(op, e), n_zero = 0, n_checked = 0;
    for (int i = 0; i < n; i++) {
        Graph *g = read_example(&e[i]);
        Ref ys[16];
        int n_ys = float_values(g, ys, 16);
        GradCheck how = {.samples = SAMPLES, .order = order, .seed = (uint64_t)(31 * i + order)};
        domain_of(op, &how.lo, &how.hi);
        double err = gradcheck(g, ys, n_ys, &how);
        ck_assert_msg(!how.failed, "%s: %.*s is refused", op->name, (int)e[i].n, e[i].at);
        if (how.zero)
            n_zero++;
        else
            ck_assert_msg(err < tolerance, "%s: off by %g in order %d of %.*s", op->name, err,
                          order, (int)e[i].n, e[i].at);
        n_checked += n_ys > 0;
        graph_free(g);
    }
    (void)n_zero;
    ck_assert_msg(n_checked > 0, "%s has a vjp, and no example that gives a float", op->name);
}

START_TEST(vjp_agrees_with_differences)
{
    if (optab[_i]->vjp != NULL && !optab[_i]->given)
        check_order(optab[_i], 1, 1e-6);
}
END_TEST

START_TEST(vjp_of_vjp_agrees_with_differences)
{
    if (optab[_i]->vjp != NULL && !optab[_i]->given)
        check_order(optab[_i], 2, 1e-5);
}
END_TEST

/* ---- mutations ---------------------------------------------------------------------------- */

typedef enum Mutation { NONE_AT_ALL, NEGATE, DROP, TURN, N_MUTATIONS } Mutation;

static Ref mutate(Graph *g, Ref d, Mutation how)
{
    if (how == NEGATE)
        return g_neg(g, d);
    if (how == DROP)
        return REF_ZERO;
    for (int axis = 0; how == TURN && axis < rank(g, d); axis++)
        d = g_flip(g, d, axis); /* on a square, this transposes along both diagonals */
    return d;
}

/* One rule, called as pullback() would, with one cotangent changed. */
typedef struct Trial {
    Graph *g;
    Ref n, ct, y[16], w[16], d[16];
    int n_y, n_inputs;
} Trial;

static bool apply_rule(Trial *t, const Example *e)
{
    memset(t, 0, sizeof *t);
    t->g = read_example(e);
    t->n = t->g->root.at[0].ref;
    Graph *g = t->g;
    bool tuple = rank(g, t->n) < 0;
    int size = tuple ? tuple_size(g, t->n) : 1;
    t->n_inputs = count_inputs(g);
    t->n_y = size;
    Ref member[16] = {NONE};
    for (int i = 0; i < size; i++) {
        t->y[i] = tuple ? g_pick(g, t->n, i) : t->n;
        Type type = *type_of(g, t->y[i]);
        t->w[i] = NONE;
        if (dtype_is_float(type.dtype))
            t->w[i] = member[i] = g_input(g, t->n_inputs++, type);
    }
    if (!tuple && t->w[0] == NONE)
        return false;
    t->ct = tuple ? g_tuple(g, member, size) : t->w[0];
    for (int i = 0; i < node(g, t->n)->n_args; i++)
        t->d[i] = dtype_is_float(type_of(g, arg(g, t->n, i))->dtype) ? REF_ZERO : NONE;
    optab[op_of(g, t->n)]->vjp(g, t->n, t->ct, t->d);
    return true;
}

/* An operand that is an input, so that it can be moved on its own. */
static bool is_moved(const Trial *t, int i)
{
    Ref x = arg(t->g, t->n, i);
    return op_of(t->g, x) == OP_input && dtype_is_float(type_of(t->g, x)->dtype) &&
           type_elems(type_of(t->g, x)) > 0;
}

static double outcome(const Trial *t, Value *in, Arena *a)
{
    Value *v = eval_graph(t->g, &(Feed){.input = in}, a);
    double sum = 0;
    for (int i = 0; i < t->n_y; i++)
        for (int64_t j = 0; t->w[i] != NONE && j < v[t->y[i]].n; j++)
            sum += isinf(v[t->y[i]].x[j]) ? 0 : v[t->y[i]].x[j] * v[t->w[i]].x[j];
    return sum;
}

/* How far the cotangent of operand i is from differences, after a mutation. */
static double operand_error(const Trial *t, int i, Ref d, uint64_t *state, double lo, double hi)
{
    const double h = 1e-5;
    Arena a = {0};
    Value *in = random_inputs(t->g, t->n_inputs, lo, hi, state, &a);
    Value *x = &in[attr(t->g, arg(t->g, t->n, i), 0)->i];
    Value *v = eval_graph(t->g, &(Feed){.input = in}, &a);
    double along = 0;
    double *u = NEW_ARRAY(&a, double, x->n);
    for (int64_t j = 0; j < x->n; j++) {
        u[j] = next_real(state, -1, 1);
        along += d == REF_ZERO ? 0 : v[d].x[j] * u[j];
    }
    for (int64_t j = 0; j < x->n; j++)
        x->x[j] += h * u[j];
    double up = outcome(t, in, &a);
    for (int64_t j = 0; j < x->n; j++)
        x->x[j] -= 2 * h * u[j];
    double difference = (up - outcome(t, in, &a)) / (2 * h);
    arena_free(&a);
    return fabs(difference - along) / fmax(fabs(difference), 1e-3);
}

static double worst_of(const Op *op, const Trial *t, int i, Mutation how)
{
    double lo, hi, worst = 0;
    uint64_t state = (uint64_t)i + 7;
    domain_of(op, &lo, &hi);
    Ref d = mutate(t->g, t->d[i], how);
    for (int sample = 0; sample < 5; sample++)
        worst = fmax(worst, operand_error(t, i, d, &state, lo, hi));
    return worst;
}

/* Each change of each cotangent of a rule is seen in some example. A cotangent of one
 * element, or equal elements, cannot be turned; some other example must show it. */
START_TEST(a_wrong_vjp_is_found)
{
    const Op *op = optab[_i];
    Example e[MAX_EXAMPLES];
    int n = split_examples(op, e);
    double seen[16][N_MUTATIONS] = {{0}};
    bool is_used[16] = {false};
    if (op->vjp == NULL || op->given)
        return;
    for (int k = 0; k < n; k++) {
        Trial t;
        bool has_rule = apply_rule(&t, &e[k]);
        for (int i = 0; has_rule && i < node(t.g, t.n)->n_args; i++) {
            if (!is_moved(&t, i) || t.d[i] == REF_ZERO || t.d[i] == NONE)
                continue;
            is_used[i] = true;
            for (Mutation how = NEGATE; how < N_MUTATIONS; how++)
                seen[i][how] = fmax(seen[i][how], worst_of(op, &t, i, how));
        }
        graph_free(t.g);
    }
    for (int i = 0; i < 16; i++)
        for (Mutation how = NEGATE; is_used[i] && how < N_MUTATIONS; how++)
            ck_assert_msg(seen[i][how] > 1e-2, "%s: change %d of cotangent %d is not seen",
                          op->name, (int)how, i);
}
END_TEST

/* A rule that gives nothing says so. */
START_TEST(rules_give_something)
{
    const Op *op = optab[_i];
    Example e[MAX_EXAMPLES];
    bool gives = op->vjp == NULL || op->given;
    int n = split_examples(op, e);
    for (int k = 0; !gives && k < n; k++) {
        Trial t;
        bool has_rule = apply_rule(&t, &e[k]);
        for (int i = 0; has_rule && i < node(t.g, t.n)->n_args; i++)
            gives = gives || (t.d[i] != REF_ZERO && t.d[i] != NONE);
        graph_free(t.g);
    }
    ck_assert_msg(gives, "%s", op->name);
}
END_TEST

Suite *suite_ops(void);
Suite *suite_ops(void)
{
    Suite *s = suite_create("ops");
    TCase *c = tcase_create("rows");
    tcase_add_checked_fixture(c, start, stop);
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, a_row_is_complete, OP_NONE + 1, N_OPS);
    tcase_add_loop_test(c, examples_read_verify_print_and_read_back, OP_NONE + 1, N_OPS);
    tcase_add_loop_test(c, wrong_operands_are_refused_in_words, OP_NONE + 1, N_OPS);
    tcase_add_test(c, the_manual_is_current);
    tcase_add_loop_test(c, vjp_agrees_with_differences, OP_NONE + 1, N_OPS);
    tcase_add_loop_test(c, vjp_of_vjp_agrees_with_differences, OP_NONE + 1, N_OPS);
    tcase_add_loop_test(c, a_wrong_vjp_is_found, OP_NONE + 1, N_OPS);
    tcase_add_loop_test(c, rules_give_something, OP_NONE + 1, N_OPS);
    suite_add_tcase(s, c);
    return s;
}
