/* Gradients against differences, along random directions. */
#include <math.h>
#include <string.h>

#include "eval.h"

enum { MAX_VALUES = 64, MAX_REDRAWS = 200 };

/* ---- random numbers ------------------------------------------------------------ */

uint64_t next_bits(uint64_t *state)
{
    *state += 0x9E3779B97F4A7C15u;
    return hash_mix(*state);
}

double next_real(uint64_t *state, double lo, double hi)
{
    return lo + (hi - lo) * ((double)(next_bits(state) >> 11) * 0x1p-53);
}

int next_int(uint64_t *state, int lo, int hi)
{
    return lo + (int)(next_bits(state) % (uint64_t)(hi - lo + 1));
}

static void fill(Value *v, DType t, double lo, double hi, uint64_t *state)
{
    for (int64_t i = 0; i < v->n; i++) {
        if (t == BOOL)
            v->x[i] = next_int(state, 0, 1);
        else if (dtype_is_float(t))
            v->x[i] = next_real(state, lo, hi);
        else
            v->x[i] = next_int(state, t == U8 && lo < 0 ? 0 : (int)lo, (int)hi);
    }
}

int count_inputs(const Graph *g)
{
    int n = 0;
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        if (op_of(g, r) == OP_input && attr(g, r, 0)->i >= n)
            n = (int)attr(g, r, 0)->i + 1;
    return n;
}

Value *random_inputs(const Graph *g, int n, double lo, double hi, uint64_t *state, Arena *a)
{
    Value *v = NEW_ARRAY(a, Value, n);
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        if (op_of(g, r) != OP_input || v[attr(g, r, 0)->i].x != NULL)
            continue;
        Value *input = &v[attr(g, r, 0)->i];
        *input = value_new(type_of(g, r), a);
        fill(input, type_of(g, r)->dtype, lo, hi, state);
    }
    return v;
}

/* ---- inner products ---------------------------------------------------------------- */

typedef struct Check {
    Graph *g;
    GradCheck *how;
    int n_inputs; /* with those of the cotangents */
    Ref x[MAX_VALUES], y[MAX_VALUES], w[MAX_VALUES], d[MAX_VALUES];
    int n_x, n_y;
} Check;

static const Value *input_of(const Check *c, const Value *in, Ref r)
{
    return &in[attr(c->g, r, 0)->i];
}

/* What is infinite from the start (padding) does not count. */
static double dot(const Value *x, const Value *y)
{
    double sum = 0;
    for (int64_t i = 0; i < x->n; i++)
        sum += isinf(x->x[i]) ? 0 : x->x[i] * y->x[i];
    return sum;
}

/* <w, y> at x + step*u */
static double measure(const Check *c, const Value *in, const Value *u, double step, Arena *a)
{
    Value *moved = NEW_ARRAY(a, Value, c->n_inputs);
    memcpy(moved, in, (size_t)c->n_inputs * sizeof *moved);
    for (int i = 0; i < c->n_x; i++) {
        int64_t input = attr(c->g, c->x[i], 0)->i;
        moved[input].x = NEW_ARRAY(a, double, in[input].n);
        for (int64_t j = 0; j < in[input].n; j++)
            moved[input].x[j] = in[input].x[j] + step * u[i].x[j];
    }
    Value *v = eval_graph(c->g, &(Feed){.input = moved}, a);
    double sum = 0;
    for (int i = 0; i < c->n_y; i++)
        sum += dot(&v[c->y[i]], input_of(c, in, c->w[i]));
    return sum;
}

/* <J' w, u> */
static double reverse(const Check *c, const Value *in, const Value *u, Arena *a)
{
    Value *v = eval_graph(c->g, &(Feed){.input = in}, a);
    double sum = 0;
    for (int i = 0; i < c->n_x; i++)
        if (c->d[i] != REF_ZERO)
            sum += dot(&v[c->d[i]], &u[i]);
    return sum;
}

/* The error of one draw, or -1 where one-sided differences disagree. */
static double one_draw(Check *c, uint64_t *state, Arena *a)
{
    const double h = 1e-5;
    Value *in = random_inputs(c->g, c->n_inputs, c->how->lo, c->how->hi, state, a);
    Value *u = NEW_ARRAY(a, Value, c->n_x);
    for (int i = 0; i < c->n_x; i++) {
        u[i] = value_new(type_of(c->g, c->x[i]), a);
        fill(&u[i], F64, -1, 1, state);
    }
    double at = measure(c, in, u, 0, a), up = measure(c, in, u, h, a),
           down = measure(c, in, u, -h, a);
    double forward = (up - at) / h, backward = (at - down) / h, central = (up - down) / (2 * h);
    double scale = fmax(fabs(central), 1e-3);
    if (fabs(forward - backward) > 1e-2 * fmax(scale, 1))
        return -1;
    /* Richardson: the error of the difference falls from h^2 to h^4. */
    double finer = (measure(c, in, u, h / 2, a) - measure(c, in, u, -h / 2, a)) / h;
    central = (4 * finer - central) / 3;
    double got = reverse(c, in, u, a);
    return fabs(got - central) / fmax(fmax(fabs(got), fabs(central)), 1e-3);
}

/* ---- the check ------------------------------------------------------------------------- */

static Ref new_input(Check *c, const Type *t)
{
    Type type = *t;
    return g_input(c->g, c->n_inputs++, type);
}

/* Cotangents are inputs like others, so that the gradient can be differentiated, too. */
static bool pull(Check *c)
{
    for (int i = 0; i < c->n_y; i++)
        c->w[i] = new_input(c, type_of(c->g, c->y[i]));
    return pullback(c->g->cx, c->g, c->y, c->w, c->n_y, c->x, c->n_x, c->d);
}

static void next_order(Check *c)
{
    int n = 0;
    for (int i = 0; i < c->n_y && c->n_x < MAX_VALUES; i++)
        c->x[c->n_x++] = c->w[i];
    for (int i = 0; i < c->n_x - c->n_y; i++)
        if (c->d[i] != REF_ZERO)
            c->y[n++] = c->d[i];
    c->n_y = n;
}

static void find_inputs(Check *c)
{
    c->n_inputs = count_inputs(c->g);
    for (Ref r = 1; r < (Ref)c->g->node.n && c->n_x < MAX_VALUES; r++)
        if (op_of(c->g, r) == OP_input && dtype_is_float(type_of(c->g, r)->dtype))
            c->x[c->n_x++] = r;
}

double gradcheck(Graph *g, const Ref *ys, int n_ys, GradCheck *how)
{
    Check c = {.g = g, .how = how, .n_y = n_ys};
    uint64_t state = how->seed;
    double worst = 0;
    memcpy(c.y, ys, (size_t)n_ys * sizeof *ys);
    find_inputs(&c);
    bool fine = pull(&c);
    if (fine && how->order == 2) {
        next_order(&c);
        fine = pull(&c);
    }
    how->failed = !fine;
    how->zero = true;
    for (int i = 0; fine && i < c.n_x; i++)
        how->zero = how->zero && c.d[i] == REF_ZERO;
    for (int i = 0; fine && i < how->samples; i++) {
        Arena a = {0};
        double err = one_draw(&c, &state, &a);
        arena_free(&a);
        if (err < 0 && ++how->redrawn < MAX_REDRAWS)
            i--;
        else if (!(err <= worst)) /* NaN counts */
            worst = err;
    }
    return worst;
}
