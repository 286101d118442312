/* The generator's hands: choices, variables, statements. */
#include "gen.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

uint64_t random_bits(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

double random_real(uint64_t *state, double lo, double hi)
{
    return lo + (hi - lo) * (double)(random_bits(state) >> 11) * 0x1p-53;
}

int64_t random_below(uint64_t *state, int64_t n)
{
    return (int64_t)(random_bits(state) % (uint64_t)n);
}

int gen_int(Gen *g, int lo, int hi)
{
    return lo + (int)random_below(&g->rng, hi - lo + 1);
}

bool gen_chance(Gen *g, int percent)
{
    return gen_int(g, 0, 99) < percent;
}

double gen_real(Gen *g, double lo, double hi)
{
    return round(random_real(&g->rng, lo, hi) * 100) / 100;
}

int64_t gen_extent(Gen *g)
{
    static const int64_t extent[] = {1, 2, 2, 3, 3, 3, 4, 5, 5, 7, 7, 8, 17, 33};
    static const int64_t large[] = {1, 2, 3, 8, 16, 17, 24, 31, 32, 48, 64, 100, 130, 384};
    _Static_assert(sizeof extent == sizeof large, "one index serves both");
    return (g->large ? large : extent)[gen_int(g, 0, (int)(sizeof extent / sizeof *extent) - 1)];
}

int64_t gen_most(const Gen *g)
{
    return g->large ? 200000 : 3000;
}

/* ---- operands --------------------------------------------------------------------- */

bool is_float(const Var *v)
{
    return dtype_is_float(v->t);
}

bool is_int(const Var *v)
{
    return v->t == I32 || v->t == I64;
}

bool is_bool(const Var *v)
{
    return v->t == BOOL;
}

bool has_axes(const Var *v)
{
    return is_float(v) && v->rank >= 1;
}

bool is_matrix(const Var *v)
{
    return is_float(v) && v->rank >= 2;
}

int64_t elems(const Var *v)
{
    int64_t n = 1;
    for (int i = 0; i < v->rank; i++)
        n *= v->dim[i];
    return n;
}

double magnitude(const Var *v)
{
    return fmax(fabs(v->lo), fabs(v->hi));
}

/* The newest one that fits (a chain), or any (a diamond where it was used before). */
Var *gen_pick(Gen *g, Filter *f)
{
    Var *found[MAX_VARS];
    int n = 0;
    for (int i = 0; i < g->n; i++)
        if (f(&g->var[i]))
            found[n++] = &g->var[i];
    if (n == 0)
        return NULL;
    Var *v = gen_chance(g, g->chain) ? found[n - 1] : found[gen_int(g, 0, n - 1)];
    if (v->uses > 2)
        v = found[gen_int(g, 0, n - 1)];
    v->uses++;
    return v;
}

/* NumPy's rule for two shapes, without growing either into the batch by chance. */
static bool meets(const Var *x, const Var *y)
{
    if (y->t != x->t || (y->batch && !x->batch) || (x->batch && y->rank == x->rank && !y->batch))
        return false;
    for (int i = 1; i <= x->rank && i <= y->rank; i++) {
        int64_t p = x->dim[x->rank - i], q = y->dim[y->rank - i];
        if (p != q && p != 1 && q != 1)
            return false;
    }
    return !(y->batch && y->rank != x->rank) && !(x->batch && y->rank > x->rank);
}

Var join(const Var *x, const Var *y)
{
    int rank = x->rank > y->rank ? x->rank : y->rank;
    Var v = *x;
    v.rank = rank;
    v.trained = x->trained || y->trained;
    for (int i = 1; i <= rank; i++) {
        int64_t p = i <= x->rank ? x->dim[x->rank - i] : 1;
        int64_t q = i <= y->rank ? y->dim[y->rank - i] : 1;
        v.dim[rank - i] = p == 1 ? q : p;
    }
    return v;
}

static int64_t joined_elems(const Var *x, const Var *y)
{
    Var v = join(x, y);
    return elems(&v);
}

/* A parameter with some axes of x: left out in front, or of extent 1. */
static Var *broadcast_param(Gen *g, const Var *x)
{
    int64_t dim[MAX_RANK];
    int skip = x->batch ? 1 : gen_int(g, 0, x->rank), rank = x->rank - skip;
    for (int i = 0; i < rank; i++)
        dim[i] = gen_chance(g, 25) ? 1 : x->dim[skip + i];
    return gen_param(g, x->t, rank, dim);
}

Var *gen_partner(Gen *g, const Var *x)
{
    Var *found[MAX_VARS];
    int n = 0;
    for (int i = 0; i < g->n; i++) {
        Var *y = &g->var[i];
        if (y != x && meets(x, y) && joined_elems(x, y) <= gen_most(g))
            found[n++] = y;
    }
    Var *y = n > 0 && gen_chance(g, 75) ? found[gen_int(g, 0, n - 1)] : NULL;
    if (y == NULL && dtype_is_float(x->t))
        y = broadcast_param(g, x);
    if (y != NULL)
        y->uses++;
    return y;
}

int gen_axis(Gen *g, const Var *x, bool also_batch)
{
    int first = x->batch && !also_batch ? 1 : 0;
    return x->rank > first ? gen_int(g, first, x->rank - 1) : -1;
}

/* ---- statements ------------------------------------------------------------------- */

const char *gen_shape(Gen *g, int rank, const int64_t *dim, bool batch)
{
    Text t;
    text_init(&t, g->body.arena);
    text_put(&t, "", 0);
    for (int i = 0; i < rank; i++) {
        text_add(&t, i == 0 ? "[" : ", ");
        if (i == 0 && batch)
            text_add(&t, "batch");
        else
            text_add(&t, "%lld", (long long)dim[i]);
    }
    text_add(&t, rank > 0 ? "]" : "");
    return t.at;
}

Var shaped(const Var *like, int rank, const int64_t *dim)
{
    Var v = *like;
    v.rank = rank;
    memcpy(v.dim, dim, sizeof(int64_t) * (size_t)rank);
    v.batch = like->batch && rank > 0 && dim[0] == like->dim[0];
    return v;
}

Var *gen_name(Gen *g, Var type)
{
    assert(g->n < MAX_VARS);
    Var *v = &g->var[g->n++];
    *v = type;
    v->uses = 0;
    snprintf(v->name, sizeof v->name, "v%d", g->named++);
    return v;
}

void gen_line(Gen *g, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    text_add(&g->body, "%*s%s\n", 4 * g->indent, "", arena_vprintf(g->body.arena, format, ap));
    va_end(ap);
}

/* Halves of more than that lose what quotients and forward mode look at. */
static const double most = 4;

Var *gen_let(Gen *g, Var type, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    const char *text = arena_vprintf(g->body.arena, format, ap);
    va_end(ap);
    if (elems(&type) > gen_most(g) || type.rank > 5)
        return NULL;
    if (dtype_is_float(type.t) && magnitude(&type) > most) {
        double by = 2 / magnitude(&type);
        by = by > 0.01 ? floor(by * 1000) / 1000 : by;
        text = arena_printf(g->body.arena, "(%s) * %.3g", text, by);
        type.lo *= by;
        type.hi *= by;
    }
    static const char *const word[] = {"", "keep ", "recompute ", "offload "};
    int w = gen_chance(g, 8) ? gen_int(g, 1, 3) : 0;
    Var *v = gen_name(g, type);
    gen_line(g, "%s%s = %s  # %s%s", word[w], v->name, text, dtype_name(v->t),
             gen_shape(g, v->rank, v->dim, v->batch));
    return v;
}

/* ---- declarations ----------------------------------------------------------------- */

static const char *first_values(Gen *g, Var *v)
{
    Arena *a = g->body.arena;
    switch (gen_int(g, 0, 5)) {
    case 0:
        v->lo = gen_real(g, 0.3, 0.8), v->hi = gen_real(g, 1, 1.7);
        return arena_printf(a, "uniform(low = %g, high = %g)", v->lo, v->hi);
    case 1:
        v->lo = -1.4, v->hi = 1.4;
        return "normal(std = 0.3)";
    case 2:
        v->lo = -1.2, v->hi = 1.8;
        return "normal(mean = 0.3, std = 0.25)";
    case 3:
        if (v->rank == 2)
            return v->lo = -1, v->hi = 1, "xavier_uniform(3, 3)";
        return v->lo = v->hi = 1, "ones";
    default:
        v->lo = -1, v->hi = 1;
        return "uniform(low = -1, high = 1)";
    }
}

Var *gen_param(Gen *g, DType t, int rank, const int64_t *dim)
{
    Var like = {.t = t, .trained = true};
    Var *v = gen_name(g, shaped(&like, rank, dim));
    const char *first = first_values(g, v);
    if (rank == 1 && dim[0] <= 3 && gen_chance(g, 50)) {
        static const char *const list[] = {"[0.75]", "[0.5, -0.25]", "[0.1, -0.3, 0.7]"};
        first = list[dim[0] - 1];
        v->lo = -0.3, v->hi = 0.75;
    }
    text_add(&g->declared, "    param %s : %s%s = %s\n", v->name, dtype_name(t),
             gen_shape(g, rank, dim, false), first);
    return v;
}

Var *gen_input(Gen *g, DType t, int rank, const int64_t *dim, int64_t range)
{
    Var like = {.t = t, .lo = -1, .hi = 1};
    Var v = shaped(&like, rank, dim);
    v.batch = g->batch > 0 && rank > 0 && dim[0] == g->batch && gen_chance(g, 80);
    if (!dtype_is_float(t)) {
        v.lo = range > 0 || t == BOOL ? 0 : -9;
        v.hi = range > 0 ? (double)range - 1 : t == BOOL ? 1 : 9;
    }
    bool with_grad = dtype_is_float(t) && gen_chance(g, 30);
    v.trained = with_grad;
    Var *made = gen_name(g, v);
    text_add(&g->declared, "    input %s : %s%s", made->name, dtype_name(t),
             gen_shape(g, rank, dim, v.batch));
    if (range > 0)
        text_add(&g->declared, " in 0..%lld", (long long)range);
    text_add(&g->declared, with_grad ? " with grad\n" : "\n");
    return made;
}
