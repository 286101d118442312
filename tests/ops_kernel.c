/* The kernels that rows give (scalar, elem, kernel), run by the interpreter, against the
 * definition of each op; and that they verify for every element type. No op by name. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pass/elem.h"
#include "support/eval.h"

enum { MAX_EXAMPLES = 16, TRIES = 40 };

static Ctx cx;

static void start(void)
{
    ctx_init(&cx);
}

static void stop(void)
{
    ctx_free(&cx);
}

/* The example's text with another type instead of f32; NULL if there is none left. */
static Graph *read_example(const Op *op, int which, const char *type)
{
    const char *s = op->example;
    for (; which > 0 && *s != '\0'; which--) {
        s += strcspn(s, ";");
        s += strspn(s, "; ");
    }
    if (*s == '\0')
        return NULL;
    Text text;
    text_init(&text, &cx.perm);
    for (size_t left = strcspn(s, ";"); left > 0; left--, s++) {
        bool here = left >= 3 && memcmp(s, "f32", 3) == 0;
        text_put(&text, here ? type : s, here ? strlen(type) : 1);
        s += here ? 2 : 0;
        left -= here ? 2 : 0;
    }
    return graph_read_example(&cx, text.at, text.n);
}

/* ---- one node as a kernel ------------------------------------------------------------- */

typedef struct Build {
    const Graph *g;
    Ref n;
    bool *stored;
    Axis axis[MAX_RANK];
    Elem *e;
    Kernel *k;
    int out;
} Build;

static void open_axes(Build *b, KAff *idx)
{
    for (int i = 0; i < rank(b->g, b->n); i++) {
        for (int f = 0; f < b->axis[i].n; f++)
            b->axis[i].loop[f] = k_par(b->k, b->axis[i].factor[f]);
        idx[i] = axis_index(&b->axis[i]);
    }
}

static void build_once(Build *b)
{
    const Op *op = optab[op_of(b->g, b->n)];
    const Type *t = type_of(b->g, b->n);
    b->k = kernel_new(&cx.perm, K_LOOP, "test");
    b->e = NEW(&cx.perm, Elem);
    elem_init(b->e, b->k, b->g, &cx.perm, b->stored);
    if (op->kind == OP_OPAQUE) {
        b->out = elem_out_buffer(b->e, b->n, 0, t->dtype, type_elems(t));
        op->kernel(b->e, b->n, &b->out);
        return;
    }
    KAff idx[MAX_RANK];
    open_axes(b, idx);
    Val v = elem_at(b->e, b->n, idx);
    if (b->e->trouble != FINE)
        return;
    b->out = elem_out_buffer(b->e, b->n, 0, t->dtype, type_elems(t));
    k_store(b->k, b->out, elem_linear(t, idx), v);
    if (t->rank > 0)
        k_end(b->k, b->axis[0].loop[0]);
}

/* False if the op has no kernel of its own (sources, contraction, loops). */
static bool build_kernel(Build *b, const Graph *g, Ref n)
{
    const Op *op = optab[op_of(g, n)];
    *b = (Build){.g = g, .n = n, .stored = NEW_ARRAY(&cx.perm, bool, g->node.n)};
    if (op->scalar == NULL && op->elem == NULL && op->kernel == NULL)
        return false;
    if (type_elems(type_of(g, n)) == 0)
        return false; /* simplify() leaves no such value to be computed */
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        b->stored[r] = r != n;
    for (int i = 0; i < rank(g, n); i++)
        axis_init(&b->axis[i], dim(g, n, i));
    for (int i = 0; i < TRIES; i++) {
        build_once(b);
        if (b->e->trouble != WANTS_CUT)
            break;
        ck_assert(axis_cut(b->axis, rank(g, n), b->e->cut_loop, b->e->cut_by));
    }
    ck_assert_msg(b->e->trouble == FINE, "%s: trouble %d", op->name, (int)b->e->trouble);
    k_finish(b->k);
    const char *bad = kernel_verify(b->k, &cx.perm);
    ck_assert_msg(bad == NULL, "%s: %s", op->name, bad);
    return true;
}

/* ---- runs ------------------------------------------------------------------------------- */

static void *wide_data(const Value *v, DType t)
{
    if (dtype_is_float(t)) {
        double *x = NEW_ARRAY(&cx.perm, double, v->n);
        if (v->n > 0)
            memcpy(x, v->x, (size_t)v->n * sizeof *x);
        return x;
    }
    int64_t *x = NEW_ARRAY(&cx.perm, int64_t, v->n);
    for (int64_t i = 0; i < v->n; i++)
        x[i] = (int64_t)v->x[i];
    return x;
}

static double wide_element(const void *data, DType t, int64_t i)
{
    return dtype_is_float(t) ? ((const double *)data)[i] : (double)((const int64_t *)data)[i];
}

static KMem *memory(const Build *b, const Value *v)
{
    KMem *mem = NEW_ARRAY(&cx.perm, KMem, b->k->buf.n);
    for (int i = 0; i < b->k->buf.n; i++) {
        Ref r = b->e->operand.at[i];
        if (i == b->out)
            mem[i].data = NEW_ARRAY(&cx.perm, double, type_elems(type_of(b->g, r)));
        else
            mem[i].data = wide_data(&v[r], type_of(b->g, r)->dtype);
    }
    return mem;
}

static bool close_to(double got, double want)
{
    if (isnan(want) || isinf(want))
        return isnan(want) ? isnan(got) != 0 : got == want;
    return fabs(got - want) <= 1e-12 * fmax(1, fabs(want));
}

static void domain_of(const Op *op, double *lo, double *hi)
{
    bool given = op->domain[0] != 0 || op->domain[1] != 0;
    *lo = given ? op->domain[0] : -1;
    *hi = given ? op->domain[1] : 1;
}

/* Some elements become what is special: zeros, infinities, NaN; and equal neighbours. */
static void add_special(const Graph *g, Value *in, uint64_t *s)
{
    const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1, -1};
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        if (op_of(g, r) != OP_input || !dtype_is_float(type_of(g, r)->dtype))
            continue;
        Value *v = &in[attr(g, r, 0)->i];
        for (int64_t i = 0; i < v->n; i++)
            if (next_int(s, 0, 3) == 0)
                v->x[i] = i > 0 && next_int(s, 0, 1) ? v->x[i - 1] : special[next_int(s, 0, 6)];
    }
}

static void compare(const Op *op, const Build *b, const Value *v, int example)
{
    KMem *mem = memory(b, v);
    Arena scratch = {0};
    kernel_run(b->k, K_WIDE, mem, &scratch);
    const Value *want = &v[b->n];
    for (int64_t i = 0; i < want->n; i++) {
        double got = wide_element(mem[b->out].data, type_of(b->g, b->n)->dtype, i);
        if (close_to(got, want->x[i]))
            continue;
        Text t;
        text_init(&t, &cx.perm);
        kernel_print(b->k, &t);
        ck_abort_msg("%s, example %d: element %lld is %.17g, not %.17g\n%s", op->name, example,
                     (long long)i, got, want->x[i], t.at);
    }
    arena_free(&scratch);
}

START_TEST(a_kernel_does_what_the_op_says)
{
    const Op *op = optab[_i];
    double lo, hi;
    uint64_t s = (uint64_t)_i;
    domain_of(op, &lo, &hi);
    for (int example = 0;; example++) {
        Graph *g = read_example(op, example, "f64");
        if (g == NULL)
            break;
        Build b;
        bool has_kernel = build_kernel(&b, g, g->root.at[0].ref);
        for (int sample = 0; has_kernel && sample < 20; sample++) {
            Value *in = random_inputs(g, count_inputs(g), lo, hi, &s, &cx.perm);
            if (sample >= 10)
                add_special(g, in, &s);
            compare(op, &b, eval_graph(g, &(Feed){.input = in}, &cx.perm), example);
        }
        graph_free(g);
    }
}
END_TEST

/* Kernels of every element type verify and run with each instruction rounded. */
START_TEST(kernels_of_all_types_verify)
{
    static const char *const type[] = {"f32", "f64", "f16", "bf16", "i32", "i64", "u8", "bool"};
    const Op *op = optab[_i];
    for (int t = 0; t < 8; t++)
        for (int example = 0; example < MAX_EXAMPLES; example++) {
            Graph *g = read_example(op, example, type[t]);
            if (g == NULL)
                continue; /* none of this number, or not for this type */
            Build b;
            if (build_kernel(&b, g, g->root.at[0].ref)) {
                KMem *mem = NEW_ARRAY(&cx.perm, KMem, b.k->buf.n);
                Arena scratch = {0};
                for (int i = 0; i < b.k->buf.n; i++)
                    mem[i].data = arena_alloc(&cx.perm, (size_t)(b.k->buf.at[i].elems + 1) * 8);
                kernel_run(b.k, K_EXACT, mem, &scratch);
                arena_free(&scratch);
            }
            graph_free(g);
        }
}
END_TEST

Suite *suite_ops_kernel(void);
Suite *suite_ops_kernel(void)
{
    Suite *s = suite_create("ops_kernel");
    TCase *c = tcase_create("kernels");
    tcase_add_checked_fixture(c, start, stop);
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, a_kernel_does_what_the_op_says, OP_NONE + 1, N_OPS);
    tcase_add_loop_test(c, kernels_of_all_types_verify, OP_NONE + 1, N_OPS);
    suite_add_tcase(s, c);
    return s;
}
