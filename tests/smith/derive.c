/* Gradients by other means: forward mode by the kernels' own rules, and differences.
 *
 * What is judged are twins of the model, in other types. In double nothing is rounded, so
 * that reverse and forward mode give the same number but for the order of sums. In the
 * twin that keeps f32, all arithmetic is in double too, but numbers that are folded, or that
 * a rule brings with it (2/sqrt(pi)), have been rounded; its casts stay, and `precision`, whose
 * numbers are halves.
 *
 * Derivatives are taken beside the first values: a bias of zeros puts relu on its kink,
 * where the rules of ops and those of kernels may both be right and differ. */
#include "bench.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What may be moved: parameters, and inputs whose gradient is wanted. */
typedef struct Place {
    const char *name;
    int32_t buffer, gradient;
    int32_t input; /* -1: a parameter */
    int64_t n;
    double *from, *u;
} Place;

typedef struct Derive {
    Verdict *v;
    uint64_t seed;
    Ctx cx;
    Arena arena;
    Output out;
    const Program *p;
    const void **in;
    Judge *judge;
    int32_t loss;
    int n;
    Place place[256];
    double norm; /* of all gradients */
} Derive;

/* ---- twins ------------------------------------------------------------------------ */

/* The text with f64 in place of halves, and of f32 too where `all`. */
const char *twin_text(Arena *a, const char *text, bool all)
{
    static const char *const narrow[] = {"f16", "bf16", "f32"};
    Text t;
    text_init(&t, a);
    while (*text != '\0') {
        size_t line = strncmp(text, "    precision ", 14) == 0 ? strcspn(text, "\n") : 0;
        text_put(&t, text, all ? 0 : line);
        text += line;
        size_t n = 0;
        while (isalnum((unsigned char)text[n]) || text[n] == '_')
            n++;
        bool here = false;
        for (int i = 0; i < 2 + all; i++)
            here |= strlen(narrow[i]) == n && strncmp(text, narrow[i], n) == 0;
        n = n == 0 ? 1 : n;
        text_put(&t, here ? "f64" : text, here ? 3 : n);
        text += n;
    }
    return t.at;
}

static bool compile_twin(Derive *d, const char *text, uint64_t seed)
{
    ctx_init(&d->cx);
    d->cx.verify = true;
    d->out.arena = &d->arena;
    int32_t source = source_add(&d->cx, "twin.model", text, strlen(text), false);
    Options o = {.entry = {true, [ENTRY_GRAD] = true, [ENTRY_STEP] = true}, .threads_max = 1};
    o.target = (TargetOptions){.target = "cpu", .threads_max = 1};
    o.chunk_from = chunk_from(seed);
    if (!compile_graphs(&d->cx, source, &o, false, &d->out) ||
        !compile_program(&d->cx, &o, &d->out))
        return false;
    d->p = d->out.program;
    return true;
}

/* ---- places ----------------------------------------------------------------------- */

static int32_t loss_of(const Program *p)
{
    for (int i = 0; i < p->entry.n; i++)
        for (int k = 0; strcmp(p->entry.at[i].name, "grad") == 0 && k < p->entry.at[i].n_results;
             k++)
            if (strcmp(p->entry.at[i].result[k].name, "loss") == 0)
                return p->entry.at[i].result[k].buffer;
    return -1;
}

static int32_t buffer_of_input(const Program *p, int32_t input)
{
    for (int32_t i = 0; i < p->buffer.n; i++)
        if (p->buffer.at[i].role == ROLE_INPUT && p->buffer.at[i].input == input)
            return i;
    return -1;
}

static void find_places(Derive *d)
{
    const Program *p = d->p;
    for (int i = 0; i < p->tensor.n && d->n < 256; i++) {
        const Tensor *t = &p->tensor.at[i];
        if (t->role != ROLE_GRADIENT || (t->of < 0 && t->of_input < 0))
            continue;
        Place x = {.name = t->name, .gradient = t->buffer, .input = t->of < 0 ? t->of_input : -1};
        x.buffer = x.input < 0 ? p->tensor.at[t->of].buffer : buffer_of_input(p, x.input);
        x.n = p->buffer.at[t->buffer].elems;
        x.from = NEW_ARRAY(&d->arena, double, x.n);
        x.u = NEW_ARRAY(&d->arena, double, x.n);
        if (x.buffer >= 0)
            d->place[d->n++] = x;
    }
}

/* Moves what pinned storage holds of floats: parameters and state. */
static void leave_kinks(Derive *d)
{
    uint64_t rng = d->seed + 11;
    for (int32_t i = 0; i < d->p->buffer.n; i++) {
        const Buffer *b = &d->p->buffer.at[i];
        if ((b->role != ROLE_PARAM && b->role != ROLE_STATE) || !dtype_is_float(b->dtype))
            continue;
        double *at = judge_data(d->judge, i);
        for (int64_t k = 0; k < b->elems; k++)
            at[k] += random_real(&rng, -0.05, 0.05);
    }
}

static bool start(Derive *d, KMode mode)
{
    d->judge = judge_open(d->p, mode, &d->arena);
    if (d->p->seed >= 0)
        *(int64_t *)judge_data(d->judge, d->p->seed) = (int64_t)d->seed;
    if (judge_run(d->judge, "init", NULL, 0) != RUN_OK)
        return false;
    leave_kinks(d);
    return true;
}

/* A direction of length 1. */
static void draw_direction(Derive *d, uint64_t rng)
{
    double all = 0;
    for (int i = 0; i < d->n; i++)
        for (int64_t k = 0; k < d->place[i].n; k++) {
            double u = random_real(&rng, -1, 1);
            d->place[i].u[k] = u;
            all += u * u;
        }
    for (int i = 0; i < d->n; i++)
        for (int64_t k = 0; k < d->place[i].n; k++)
            d->place[i].u[k] /= sqrt(all);
}

/* <gradient, u>, and the norm of the gradient. */
static double product(Derive *d)
{
    double dot = 0, norm = 0;
    for (int i = 0; i < d->n; i++) {
        const Place *x = &d->place[i];
        const double *gradient = judge_data(d->judge, x->gradient);
        for (int64_t k = 0; k < x->n; k++) {
            dot += gradient[k] * x->u[k];
            norm += gradient[k] * gradient[k];
        }
    }
    d->norm = sqrt(norm);
    return dot;
}

/* ---- forward mode ----------------------------------------------------------------- */

static void check_forward(Derive *d, double tolerance)
{
    Verdict *v = d->v;
    draw_direction(d, d->seed + 5);
    if (!start(d, K_DUAL))
        return;
    for (int i = 0; i < d->n; i++) {
        double *t = judge_tangent(d->judge, d->place[i].buffer);
        if (t != NULL)
            memcpy(t, d->place[i].u, sizeof(double) * (size_t)d->place[i].n);
    }
    if (judge_run(d->judge, "grad", d->in, 0) != RUN_OK)
        return;
    double tangent = judge_tangent(d->judge, d->loss)[0], dot = product(d);
    double error = fabs(tangent - dot) / fmax(d->norm, 1e-3);
    v->worst_forward = fmax(v->worst_forward, error / tolerance);
    if (!(error <= tolerance))
        fault(v, FAULT_FORWARD, "<w, J u> is %.15g and <J'w, u> is %.15g", tangent, dot);
}

/* ---- differences ------------------------------------------------------------------ */

static void move(const Place *x, double *to, double h)
{
    for (int64_t k = 0; k < x->n; k++)
        to[k] = x->from[k] + h * x->u[k];
}

/* The loss with every place moved by h along u. */
static double moved(Derive *d, double h)
{
    for (int i = 0; i < d->n; i++) {
        const Place *x = &d->place[i];
        move(x, x->input < 0 ? judge_data(d->judge, x->buffer) : (void *)d->in[x->input], h);
    }
    if (judge_run(d->judge, "grad", d->in, 0) != RUN_OK)
        return NAN;
    return *(double *)judge_data(d->judge, d->loss);
}

/* One sample; false where a kink or a step lies in between. */
static bool sample(Derive *d, double *error)
{
    const double h = 1e-4;
    double here = moved(d, 0), want = product(d);
    double a = moved(d, h), b = moved(d, -h), c = moved(d, 2 * h), e = moved(d, -2 * h);
    double near = (a - b) / (2 * h), far = (c - e) / (4 * h);
    double bend = fabs((a - here) - (here - b)) / h, wide = fabs((c - here) - (here - e)) / (2 * h);
    double got = near + (near - far) / 3;
    *error = fabs(got - want) / fmax(d->norm, 1e-2);
    /* where it is smooth the second difference falls with h, and near - far with its square */
    return fabs(near - far) <= 1e-6 * fmax(d->norm, 1e-2) && bend <= 0.7 * wide + 1e-7 * d->norm;
}

static void check_quotients(Derive *d)
{
    Verdict *v = d->v;
    if (!start(d, K_WIDE))
        return;
    for (int i = 0; i < d->n; i++) {
        Place *x = &d->place[i];
        const void *from = x->input < 0 ? judge_data(d->judge, x->buffer) : d->in[x->input];
        memcpy(x->from, from, sizeof(double) * (size_t)x->n);
    }
    for (int tries = 0; tries < 6; tries++) {
        double error;
        draw_direction(d, d->seed + 77 + (uint64_t)tries);
        if (!sample(d, &error)) {
            v->redrawn++;
            continue;
        }
        v->quotients++;
        v->worst_quotient = fmax(v->worst_quotient, error);
        if (!(error <= 1e-6))
            fault(v, FAULT_QUOTIENT, "the quotient is off by %.3g of the gradient's norm %.3g",
                  error, d->norm);
        return;
    }
}

static void check_twin(const char *text, uint64_t seed, bool all, Verdict *v)
{
    Derive *d = calloc(1, sizeof *d);
    if (d == NULL)
        abort();
    d->v = v;
    d->seed = seed;
    if (!compile_twin(d, twin_text(&d->arena, text, all), seed)) {
        fault(v, FAULT_COMPILE, "the twin in f64 is refused");
        diag_print(&d->cx, stderr);
        return;
    }
    d->in = draw_inputs(d->p, seed, &d->arena);
    d->loss = loss_of(d->p);
    find_places(d);
    if (all && d->out.graph[ENTRY_STEP] != NULL && start(d, K_WIDE))
        check_step(d->p, d->out.graph[ENTRY_STEP], model_pinned(d->out.model)->slot.n, d->judge,
                   d->in, strstr(text, "optimizer lion(") != NULL, v);
    if (d->n > 0)
        check_forward(d, all ? 1e-10 : 1e-6);
    if (d->n > 0 && all && v->fault == FAULT_NONE)
        check_quotients(d);
}

void check_derivatives(const char *text, uint64_t seed, Verdict *v)
{
    check_twin(text, seed, false, v);
    if (v->fault == FAULT_NONE)
        check_twin(text, seed, true, v);
}
