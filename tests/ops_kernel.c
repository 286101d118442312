/* The kernels that rows give (scalar, elem, kernel), run by the interpreter, against the
 * definition of each op; and that they verify for every element type. No op by name. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/eval.h"
#include "support/op_kernel.h"

enum { MAX_EXAMPLES = 16 };

static Ctx cx;

static void start(void)
{
    ctx_init(&cx);
}

static void stop(void)
{
    ctx_free(&cx);
}

/* One that verifies; false if the op has none of its own. */
static bool build_kernel(OpKernel *b, const Graph *g, Ref n)
{
    if (!op_kernel(&cx, b, g, n))
        return false;
    const char *bad = kernel_verify(b->k, &cx.perm);
    ck_assert_msg(bad == NULL, "%s: %s", optab[op_of(g, n)]->name, bad);
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

static KMem *memory(const OpKernel *b, const Value *v)
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

static void compare(const Op *op, const OpKernel *b, const Value *v, int example)
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
        Graph *g = op_example(&cx, op, example, "f64");
        if (g == NULL)
            break;
        OpKernel b;
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
            Graph *g = op_example(&cx, op, example, type[t]);
            if (g == NULL)
                continue; /* none of this number, or not for this type */
            OpKernel b;
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
