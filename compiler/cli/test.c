/* gradc test: this model's gradients against central differences, in double precision by
 * the wide interpreter, and the object's bits at several thread counts, which are those of the
 * exact interpreter. */
#include "../kernel/denormals.h"
#include "values.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

/* Of tensors up to this size each element is moved, too, until that has taken so many flops, which
 * is some seconds of products and a minute of other loops: the larger a model is, the more of its
 * tensors are moved as a whole alone. */
enum { ELEMENT_LIMIT = 64 };
static const double element_flops = 3e10;

/* A gradient may differ from the quotient by this much of the global norm. */
static const double tolerance = 1e-5, step_size = 2e-6, kink = 1e-1;

/* The checks of one gradient; errors are NaN once one was. */
typedef struct Errors {
    const char *name;
    bool input;    /* else a parameter */
    bool elements; /* each was moved alone */
    int checks, redrawn;
    double absolute, relative; /* worst; relative to the global norm */
} Errors;

typedef struct Check {
    Cli *c;
    const Program *p;
    Judge *judge;
    const void **in;
    const char *entry; /* that differences are taken of */
    int32_t loss;
    double global_norm, here; /* the loss at the point of the test */
    double loss_flops;        /* of one loss */
    double flops_left;        /* for elements one by one */
    Arena *arena;
    int failures, checks, redrawn;
    int unmoved; /* small tensors whose elements there was no time for */
    double worst;
    const char *worst_name;
    VEC(Errors) tensor;
} Check;

static bool loss_at(Check *k, double *loss)
{
    if (judge_run(k->judge, k->entry, k->in, 0) != 0)
        return false;
    *loss = *(const double *)judge_data(k->judge, k->loss);
    return true;
}

static double direction(uint64_t seed, int64_t i)
{
    return (double)(int64_t)(hash_mix(seed ^ hash_mix((uint64_t)i + 1)) >> 11) * 0x1p-52 - 1;
}

static void move(double *x, const double *from, const double *u, int64_t n, double by)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = from[i] + by * u[i];
}

typedef struct Sides {
    double central, jump; /* the quotient; right less left quotient */
} Sides;

static bool sides_at(Check *k, double *x, const double *from, const double *u, int64_t n, double h,
                     Sides *s)
{
    double up = 0, down = 0;
    move(x, from, u, n, h);
    bool ok = loss_at(k, &up);
    move(x, from, u, n, -h);
    ok = ok && loss_at(k, &down);
    s->central = (up - down) / (2 * h);
    s->jump = (up - k->here) / h - (k->here - down) / h;
    return ok;
}

/* The quotient along u. Where the function is smooth, the one-sided quotients differ by h f'',
 * which halves with h; where they do not, a kink lies between them and they say nothing. */
static int quotient(Check *k, double *x, const double *from, const double *u, int64_t n,
                    double *value, bool *straddles)
{
    Sides wide = {0}, narrow = {0};
    bool ok = sides_at(k, x, from, u, n, step_size, &wide) &&
              sides_at(k, x, from, u, n, step_size / 2, &narrow);
    if (!ok)
        return EXIT_INPUT;
    *value = narrow.central;
    *straddles = fabs(wide.jump - 2 * narrow.jump) > kink * tolerance * k->global_norm + 1e-9;
    return EXIT_OK;
}

/* Errors are at least 0, and NaN is the worst. */
static double worse(double x, double y)
{
    return isnan(x) || y <= x ? x : y;
}

static void compare(Check *k, Errors *e, double got, double want)
{
    double absolute = fabs(got - want), error = absolute / fmax(k->global_norm, 1e-12);
    k->checks++;
    e->checks++;
    e->absolute = worse(e->absolute, absolute);
    e->relative = worse(e->relative, error);
    if (!isnan(k->worst) && !(error <= k->worst)) {
        k->worst = error;
        k->worst_name = e->name;
    }
    if (!(error <= tolerance))
        k->failures++;
}

static int check_direction(Check *k, Errors *e, double *x, const double *from, const double *grad,
                           const double *u, int64_t n)
{
    double dot = 0, q;
    bool straddles;
    for (int64_t i = 0; i < n; i++)
        dot += grad[i] * u[i];
    int status = quotient(k, x, from, u, n, &q, &straddles);
    if (status != EXIT_OK)
        return status;
    if (straddles) {
        k->redrawn++;
        e->redrawn++;
        return EXIT_OK;
    }
    compare(k, e, dot, q);
    return EXIT_OK;
}

/* What t is the gradient of: a tensor, or an input that wants one. */
static int32_t moved_buffer(const Program *p, const Tensor *t)
{
    if (t->of >= 0)
        return p->tensor.at[t->of].buffer;
    for (int32_t i = 0; i < p->buffer.n; i++)
        if (p->buffer.at[i].role == ROLE_INPUT && p->buffer.at[i].input == t->of_input)
            return i;
    return -1;
}

/* Whether the elements of a tensor are moved one by one. */
static bool moves_elements(Check *k, int64_t n)
{
    double flops = (double)n * 4 * k->loss_flops;
    bool moves = n <= ELEMENT_LIMIT && flops <= k->flops_left;
    k->flops_left -= moves ? flops : 0;
    k->unmoved += n <= ELEMENT_LIMIT && !moves;
    return moves;
}

static int check_tensor(Check *k, const Tensor *t, int64_t directions)
{
    const Buffer *b = &k->p->buffer.at[t->buffer];
    int32_t moved = moved_buffer(k->p, t);
    Errors e = {.name = t->of >= 0 ? k->p->tensor.at[t->of].name : k->p->input.at[t->of_input].name,
                .input = t->of < 0};
    assert(moved >= 0 && k->p->buffer.at[moved].elems == b->elems);
    double *x = judge_data(k->judge, moved);
    int64_t n = b->elems;
    double *from = NEW_ARRAY(k->arena, double, n), *u = NEW_ARRAY(k->arena, double, n);
    double *grad = NEW_ARRAY(k->arena, double, n);
    memcpy(from, x, sizeof(double) * (size_t)n);
    memcpy(grad, judge_data(k->judge, t->buffer), sizeof(double) * (size_t)n);
    int status = EXIT_OK;
    for (int64_t d = 0; d < directions && status == EXIT_OK; d++) {
        double length = 0;
        for (int64_t i = 0; i < n; i++) {
            u[i] = direction(hash_bytes(HASH_START, t->name, strlen(t->name)) + (uint64_t)d, i);
            length += u[i] * u[i];
        }
        for (int64_t i = 0; i < n; i++)
            u[i] /= sqrt(length);
        status = check_direction(k, &e, x, from, grad, u, n);
    }
    e.elements = moves_elements(k, n);
    for (int64_t i = 0; i < n && e.elements && status == EXIT_OK; i++) {
        memset(u, 0, sizeof(double) * (size_t)n);
        u[i] = 1;
        status = check_direction(k, &e, x, from, grad, u, n);
    }
    memcpy(x, from, sizeof(double) * (size_t)n);
    /* `grad` has left other gradients, if that is what was run */
    if (status == EXIT_OK && strcmp(k->entry, "eval") != 0 && !loss_at(k, &k->here))
        status = EXIT_INPUT;
    if (!cli_has(k->c, OPT_QUIET) && !k->c->cx->json)
        printf("%-40s %lld elements, worst %.2e of the global norm\n", e.name, (long long)n,
               e.relative);
    fflush(stdout); /* of a large model the next one takes its time */
    vec_push(k->arena, &k->tensor, e);
    return status;
}

static void global_norm(Check *k)
{
    double sum = 0;
    for (int i = 0; i < k->p->tensor.n; i++) {
        const Tensor *t = &k->p->tensor.at[i];
        if (t->role != ROLE_GRADIENT)
            continue;
        const double *g = judge_data(k->judge, t->buffer);
        for (int64_t j = 0; j < k->p->buffer.at[t->buffer].elems; j++)
            sum += g[j] * g[j];
    }
    k->global_norm = sqrt(sum);
}

/* First values, gradients, and what stop_gradient hides, at the point of the test. */
static bool set_out(Check *k)
{
    static const char *const first[] = {"init", "grad", "step", "eval"};
    for (int i = 0; i < 4; i++)
        if (program_entry(k->p, first[i]) != NULL && judge_run(k->judge, first[i], k->in, 0) != 0)
            return false;
    const Entry *e = program_entry(k->p, "eval");
    e = e == NULL ? program_entry(k->p, "grad") : e;
    k->entry = e->name;
    k->loss = e->n_results > 0 ? e->result[0].buffer : -1;
    judge_hold_inputs(k->judge);
    return k->loss >= 0;
}

static double flops_of(const Program *p, const Call *call, int32_t n)
{
    double sum = 0;
    for (const Call *c = call; n-- > 0; c++) {
        if (c->kind == CALL_KERNEL)
            sum += kernel_cost(p->kernel.at[c->kernel]).flops;
        sum += (c->kind == CALL_LOOP ? (double)c->count : 1) * flops_of(p, c->body, c->n_body);
    }
    return sum;
}

static int check_gradients(Check *k, int64_t directions)
{
    if (!set_out(k) || !loss_at(k, &k->here)) {
        say("the model cannot be evaluated on drawn inputs");
        return EXIT_INPUT;
    }
    global_norm(k);
    const Entry *entry = program_entry(k->p, k->entry);
    k->loss_flops = flops_of(k->p, entry->call, entry->n_calls);
    k->flops_left = element_flops;
    int status = EXIT_OK;
    for (int i = 0; i < k->p->tensor.n && status == EXIT_OK; i++) {
        const Tensor *t = &k->p->tensor.at[i];
        if (t->role == ROLE_GRADIENT)
            status = check_tensor(k, t, directions);
    }
    return status;
}

/* ---- the object's bits ----------------------------------------------------------------- */

typedef struct Agreement {
    bool threads;       /* the same bits at every thread count */
    bool asked;         /* the exact interpreter, whose class of numerics is the object's */
    const char *unlike; /* the first tensor or result that it has otherwise; NULL: none */
} Agreement;

/* What the object leaves after `grad`. */
typedef struct Left {
    void **tensor; /* by the model's tensors */
    Values out;
} Left;

static int run_object(Session *s, const Values *in, int32_t threads, Arena *a, Left *left)
{
    const gradc_model *m = s->model;
    gradc_pool *pool = NULL;
    gradc_error e = {0};
    gradc_options o = {.struct_size = sizeof o, .abi = GRADC_ABI};
    if (gradc_pool_open(threads, GRADC_POOL_SLEEPY, &pool, &e) != GRADC_OK) {
        say("%s", e.text);
        return EXIT_FILE;
    }
    gradc_pool_use(pool, &o);
    gradc_store_use(s->store, &o);
    int st = m->init(s->block, (size_t)m->arena_bytes, &o, &s->handle);
    left->out = results_make(a, m);
    left->tensor = NEW_ARRAY(a, void *, m->n_tensors);
    if (st == GRADC_OK)
        st = m->grad(s->handle, in->block, left->out.block);
    for (int32_t t = 0; t < m->n_tensors && st == GRADC_OK; t++) {
        left->tensor[t] = arena_alloc(a, (size_t)m->tensors[t].bytes + 1);
        st = m->read(s->handle, t, left->tensor[t], (size_t)m->tensors[t].bytes);
    }
    gradc_pool_close(pool);
    return st == GRADC_OK ? EXIT_OK : session_failed(s, "grad", st);
}

static uint64_t hash_left(const gradc_model *m, const Left *left)
{
    uint64_t h = HASH_START;
    for (int32_t t = 0; t < m->n_tensors; t++)
        h = hash_bytes(h, left->tensor[t], (size_t)m->tensors[t].bytes);
    return h;
}

static bool like(const Program *p, Judge *j, int32_t buffer, const void *got)
{
    const Buffer *b = &p->buffer.at[buffer];
    const void *want = judge_data(j, buffer);
    return want != NULL && dtype_first_unlike(b->dtype, got, want, b->elems) < 0;
}

static const char *first_unlike(const Program *p, Judge *j, const Left *left)
{
    for (int i = 0; i < p->tensor.n; i++)
        if (!like(p, j, p->tensor.at[i].buffer, left->tensor[i]))
            return p->tensor.at[i].name;
    const Entry *e = program_entry(p, "grad");
    for (int i = 0; i < e->n_results; i++) {
        const Result *r = &e->result[i];
        int32_t at = values_find(&left->out, r->name);
        if (r->wanted && (at < 0 || !like(p, j, r->buffer, left->out.block->data[at])))
            return r->name;
    }
    return NULL;
}

/* Of the program that was compiled, with the object's initial values and inputs. */
static void ask_interpreter(const Session *s, const void *const *in, bool flush, const Left *left,
                            Arena *a, Agreement *to)
{
    const Program *p = s->out.program;
    uint32_t mode = denormals_begin(flush);
    Judge *j = judge_open(p, K_EXACT, a);
    if (p->seed >= 0)
        *(uint64_t *)judge_data(j, p->seed) = 0; /* that of gradc_options here */
    bool ran = judge_run(j, "init", NULL, 0) == RUN_OK && judge_run(j, "grad", in, 0) == RUN_OK;
    denormals_end(mode);
    to->asked = true;
    to->unlike = ran ? first_unlike(p, j, left) : "grad";
}

static int check_object(Cli *c, Session *s, const Values *in, Arena *a, Agreement *to)
{
    static const int32_t counts[] = {1, 2, 3, 8};
    uint64_t first = 0;
    *to = (Agreement){.threads = true};
    for (int i = 0; i < 4 && counts[i] <= s->model->threads_max; i++) {
        Left left;
        int status = run_object(s, in, counts[i], a, &left);
        if (status != EXIT_OK)
            return status;
        uint64_t h = hash_left(s->model, &left);
        if (i == 0)
            first = h;
        to->threads = to->threads && h == first;
        if (i == 0 && s->out.object.is_exact)
            ask_interpreter(s, (const void *const *)in->block->data, c->options.target.flush, &left,
                            a, to);
    }
    return EXIT_OK;
}

/* ---- what it says ------------------------------------------------------------------------ */

static void put_error(Text *t, const char *key, double error)
{
    if (isfinite(error))
        text_add(t, "\"%s\": %.3e", key, error);
    else
        text_add(t, "\"%s\": null", key);
}

static void report_json(const Check *k, const Agreement *object)
{
    Text t;
    text_init(&t, k->arena);
    text_add(&t, "{\"checks\": %d, \"failed\": %d, \"redrawn\": %d, ", k->checks, k->failures,
             k->redrawn);
    put_error(&t, "worst", k->worst);
    text_add(&t, ", \"threads_agree\": %s, \"interpreter_agrees\": %s, \"gradients\": [",
             object->threads ? "true" : "false",
             !object->asked           ? "null"
             : object->unlike == NULL ? "true"
                                      : "false");
    for (int i = 0; i < k->tensor.n; i++) {
        const Errors *e = &k->tensor.at[i];
        text_add(&t, "%s{\"name\": \"", i > 0 ? ", " : "");
        text_json(&t, e->name);
        text_add(&t, "\", \"of\": \"%s\", \"by_element\": %s, \"checks\": %d, \"redrawn\": %d, ",
                 e->input ? "input" : "parameter", e->elements ? "true" : "false", e->checks,
                 e->redrawn);
        put_error(&t, "worst_absolute", e->absolute);
        text_add(&t, ", ");
        put_error(&t, "worst_relative", e->relative);
        text_add(&t, "}");
    }
    text_add(&t, "]}\n");
    fputs(t.at, stdout);
}

static void report_object(const Agreement *object)
{
    printf("1, 2, 3 and 8 threads: %s\n", object->threads ? "the same bits" : "DIFFERENT BITS");
    if (!object->asked)
        printf(
            "the exact interpreter was not asked: this object is of another class of numerics\n");
    else if (object->unlike == NULL)
        printf("the exact interpreter: the same bits\n");
    else
        printf("the exact interpreter: OTHER BITS, first in %s\n", object->unlike);
}

static int report(const Check *k, const Agreement *object)
{
    if (k->checks == 0)
        say(k->redrawn > 0
                ? "nothing was compared: a kink lies between the two sides of every difference"
                : "nothing was compared: the loss depends on nothing that has a gradient");
    if (k->c->cx->json)
        report_json(k, object);
    else
        printf("%d checks, %d failed, %d at kinks; worst error %.2e of the global norm%s%s\n",
               k->checks, k->failures, k->redrawn, k->worst, k->worst_name ? ", in " : "",
               k->worst_name ? k->worst_name : "");
    if (!k->c->cx->json && k->unmoved > 0)
        printf("%d small tensors were not moved element by element: a loss takes %.0f Mflop\n",
               k->unmoved, k->loss_flops * 1e-6);
    if (!k->c->cx->json)
        report_object(object);
    if (!k->c->cx->json && k->p->precision != F32)
        printf("%s values were not rounded for the differences, but for the bits they were\n",
               dtype_name(k->p->precision));
    bool sound = object->threads && object->unlike == NULL;
    return k->failures == 0 && k->checks > 0 && sound ? EXIT_OK : EXIT_INPUT;
}

int command_test(Cli *c)
{
    Session s;
    int status = session_open(c, &s, true);
    int64_t directions, seed;
    if (status == EXIT_OK)
        status = cli_integer(c, OPT_DIRECTIONS, 3, 1, 1000, &directions);
    if (status == EXIT_OK)
        status = cli_integer(c, OPT_SEED, 0, 0, INT64_MAX, &seed);
    if (status == EXIT_OK && s.model->grad == NULL)
        status = usage_error(c, "the model has no loss");
    if (status == EXIT_OK) {
        Values in = inputs_make(&s.arena, s.model, (uint64_t)seed, 1);
        Output differences = {.arena = &s.arena};
        Check k = {.c = c, .arena = &s.arena};
        k.in = (const void **)in.block->data;
        Agreement object;
        c->options.form = s.out.form;
        /* the same text again: its warnings have been printed */
        if (!compile_differences(c->cx, s.source, &c->options, &differences))
            status = finish(c, false);
        if (status == EXIT_OK) {
            k.p = differences.program;
            k.judge = judge_open(k.p, K_WIDE, &s.arena);
            status = check_gradients(&k, directions);
        }
        if (status == EXIT_OK)
            status = check_object(c, &s, &in, &s.arena, &object);
        if (status == EXIT_OK)
            status = report(&k, &object);
        output_free_graphs(&differences);
    }
    session_close(&s);
    return status;
}
