/* Gradients by other means: forward mode by the kernels' own rules, and differences. */
#include "bench.h"

#include <math.h>
#include <string.h>

/* What may be moved: parameters, and inputs whose gradient is wanted. */
typedef struct Place {
    const char *name;
    int32_t buffer, gradient;
    int32_t input; /* -1: a parameter */
    int64_t n;
    double *from, *u, *gradient_at;
} Place;

typedef struct Derive {
    Bench *b;
    Judge *judge;
    int32_t loss;
    int n;
    Place place[256];
    double norm; /* of all gradients */
} Derive;

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
    const Program *p = d->b->p;
    Arena *a = &d->b->arena;
    for (int i = 0; i < p->tensor.n && d->n < 256; i++) {
        const Tensor *t = &p->tensor.at[i];
        if (t->role != ROLE_GRADIENT || (t->of < 0 && t->of_input < 0))
            continue;
        Place x = {.name = t->name, .gradient = t->buffer, .input = t->of < 0 ? t->of_input : -1};
        x.buffer = x.input < 0 ? p->tensor.at[t->of].buffer : buffer_of_input(p, x.input);
        x.n = p->buffer.at[t->buffer].elems;
        x.from = NEW_ARRAY(a, double, x.n);
        x.u = NEW_ARRAY(a, double, x.n);
        x.gradient_at = NEW_ARRAY(a, double, x.n);
        if (x.buffer >= 0)
            d->place[d->n++] = x;
    }
}

static bool start(Derive *d, KMode mode)
{
    Bench *b = d->b;
    d->judge = judge_open(b->p, mode, &b->arena);
    if (b->p->seed >= 0)
        *(int64_t *)judge_data(d->judge, b->p->seed) = (int64_t)b->seed;
    return judge_run(d->judge, "init", NULL, 0) == RUN_OK;
}

static void directions(Derive *d, uint64_t seed)
{
    double all = 0;
    for (int i = 0; i < d->n; i++)
        for (int64_t k = 0; k < d->place[i].n; k++) {
            double u = random_real(&seed, -1, 1);
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
        Place *x = &d->place[i];
        memcpy(x->gradient_at, judge_data(d->judge, x->gradient), sizeof(double) * (size_t)x->n);
        for (int64_t k = 0; k < x->n; k++) {
            dot += x->gradient_at[k] * x->u[k];
            norm += x->gradient_at[k] * x->gradient_at[k];
        }
    }
    d->norm = sqrt(norm);
    return dot;
}

/* What the two may differ by. Everything is in double, but numbers that are folded, or that
 * a rule brings with it (2/sqrt(pi)), are rounded to their dtype. */
static double tolerance(const Bench *b)
{
    static const double unit[N_DTYPES] = {[F32] = 2e-7, [F64] = 1e-9, [F16] = 2e-3, [BF16] = 2e-2};
    double most = 1e-9;
    const Graph *g = b->out.graph[ENTRY_GRAD];
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        if (type_of(g, r)->rank >= 0)
            most = fmax(most, unit[type_of(g, r)->dtype]);
    return most;
}

/* ---- forward mode ----------------------------------------------------------------- */

static void check_forward(Derive *d)
{
    Verdict *v = d->b->v;
    if (!start(d, K_DUAL))
        return;
    for (int i = 0; i < d->n; i++) {
        double *t = judge_tangent(d->judge, d->place[i].buffer);
        if (t != NULL)
            memcpy(t, d->place[i].u, sizeof(double) * (size_t)d->place[i].n);
    }
    if (judge_run(d->judge, "grad", d->b->in, 0) != RUN_OK)
        return;
    double tangent = judge_tangent(d->judge, d->loss)[0], dot = product(d);
    double error = fabs(tangent - dot) / fmax(d->norm, 1e-3);
    v->worst_forward = fmax(v->worst_forward, error);
    if (!(error <= tolerance(d->b)))
        fault(v, FAULT_FORWARD, "<w, J u> is %.15g and <J'w, u> is %.15g", tangent, dot);
}

/* ---- differences ------------------------------------------------------------------ */

/* The loss with every place moved by h along u; inputs in floats narrower than double are
 * left alone, for they would be rounded. */
static double moved(Derive *d, double h)
{
    for (int i = 0; i < d->n; i++) {
        Place *x = &d->place[i];
        double *at = judge_data(d->judge, x->buffer);
        for (int64_t k = 0; x->input < 0 && k < x->n; k++)
            at[k] = x->from[k] + h * x->u[k];
    }
    if (judge_run(d->judge, "grad", d->b->in, 0) != RUN_OK)
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
    /* where it is smooth the second difference falls with h, and so does near - far */
    return fabs(near - far) <= 1e-4 * fmax(d->norm, 1e-2) && bend <= 0.7 * wide + 1e-7 * d->norm;
}

static void check_quotients(Derive *d)
{
    Verdict *v = d->b->v;
    if (!start(d, K_WIDE))
        return;
    for (int i = 0; i < d->n; i++) {
        Place *x = &d->place[i];
        memset(x->u, 0, x->input < 0 ? 0 : sizeof(double) * (size_t)x->n);
        if (x->input < 0)
            memcpy(x->from, judge_data(d->judge, x->buffer), sizeof(double) * (size_t)x->n);
    }
    for (int tries = 0; tries < 6; tries++) {
        double error;
        directions(d, d->b->seed + 77 + (uint64_t)tries);
        for (int i = 0; i < d->n; i++)
            if (d->place[i].input >= 0)
                memset(d->place[i].u, 0, sizeof(double) * (size_t)d->place[i].n);
        if (!sample(d, &error)) {
            v->redrawn++;
            continue;
        }
        v->quotients++;
        v->worst_quotient = fmax(v->worst_quotient, error);
        if (!(error <= 1e-6 + tolerance(d->b)))
            fault(v, FAULT_QUOTIENT, "the quotient is off by %.3g of the gradient's norm %.3g",
                  error, d->norm);
        return;
    }
}

void check_derivatives(Bench *b)
{
    Derive *d = NEW(&b->arena, Derive);
    d->b = b;
    d->loss = loss_of(b->p);
    if (d->loss < 0 || b->out.graph[ENTRY_GRAD] == NULL)
        return;
    find_places(d);
    directions(d, b->seed + 5);
    check_forward(d);
    if (b->v->fault == FAULT_NONE)
        check_quotients(d);
}
