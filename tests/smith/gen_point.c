/* Policies: one element at a time. */
#include "gen.h"

#include <math.h>
#include <string.h>

/* ---- functions of one value ------------------------------------------------------- */

typedef struct Unary {
    const char *form; /* %s is the operand */
    double lo, hi;    /* of the result; for those that follow their operand 0, 0 */
} Unary;

bool make_unary(Gen *g)
{
    static const Unary table[] = {
        {"sin(%s)", -1, 1},
        {"cos(%s)", -1, 1},
        {"tanh(%s)", -1, 1},
        {"sigmoid(%s)", 0, 1},
        {"erf(%s)", -1, 1},
        {"exp(%s)", 0, 0},
        {"expm1(%s)", 0, 0},
        {"relu(%s)", 0, 0},
        {"abs(%s)", 0, 0},
        {"-%s", 0, 0},
        {"nn.gelu(%s)", 0, 0},
        {"nn.silu(%s)", 0, 0},
        {"nn.softplus(%s)", 0, 0},
        {"exp(%s)", 0, 0},
        {"+%s", 0, 0},
        {"nn.gelu_tanh(%s)", 0, 0},
        {"relu(%s)", 0, 0},
        {"expm1(%s)", 0, 0},
        {"nn.log_sigmoid(%s)", 0, 0},
        {"nn.leaky_relu(%s, 0.2)", 0, 0},
        {"nn.elu(%s)", 0, 0},
        {"nn.hard_swish(%s)", 0, 0},
    };
    Var *x = gen_pick(g, is_float);
    if (x == NULL)
        return false;
    const Unary *u = &table[gen_int(g, 0, (int)(sizeof table / sizeof *table) - 1)];
    Var v = *x;
    v.lo = u->lo, v.hi = u->hi;
    if (u->lo == 0 && u->hi == 0) { /* bounds that hold for each of them */
        bool grows = strstr(u->form, "exp") != NULL;
        bool signless = strncmp(u->form, "exp(", 4) == 0;
        v.lo = signless ? exp(x->lo) : strncmp(u->form, "relu(", 5) == 0 ? 0 : -magnitude(x) - 0.8;
        v.hi = grows ? exp(x->hi) : magnitude(x) + 0.8;
    }
    return gen_let(g, v, u->form, x->name) != NULL;
}

/* Functions that are not everywhere: their operand is moved to where they are. */
bool make_domain(Gen *g)
{
    static const char *const form[] = {"sqrt(%s)",  "rsqrt(%s)", "log(%s)",
                                       "log1p(%s)", "1 / (%s)",  "(%s)^-2"};
    Var *x = gen_pick(g, is_float);
    if (x == NULL)
        return false;
    int k = gen_int(g, 0, 7) % 6; /* sqrt and rsqrt more often */
    bool inside = x->lo >= 0.3;
    double lo = inside ? x->lo : 0.5, hi = inside ? x->hi : magnitude(x) * magnitude(x) + 0.5;
    const char *operand =
        inside ? x->name : arena_printf(g->body.arena, "%s * %s + 0.5", x->name, x->name);
    Var v = *x;
    const double at[2] = {lo, hi};
    double y[2];
    for (int i = 0; i < 2; i++)
        y[i] = k == 0   ? sqrt(at[i])
               : k == 1 ? 1 / sqrt(at[i])
               : k == 2 ? log(at[i])
               : k == 3 ? log1p(at[i])
               : k == 4 ? 1 / at[i]
                        : 1 / (at[i] * at[i]);
    v.lo = fmin(y[0], y[1]), v.hi = fmax(y[0], y[1]);
    return gen_let(g, v, "%s", arena_printf(g->body.arena, form[k], operand)) != NULL;
}

/* ---- two values ------------------------------------------------------------------- */

static void product_bounds(Var *v, const Var *x, const Var *y)
{
    double p[] = {x->lo * y->lo, x->lo * y->hi, x->hi * y->lo, x->hi * y->hi};
    v->lo = v->hi = p[0];
    for (int i = 1; i < 4; i++) {
        v->lo = fmin(v->lo, p[i]);
        v->hi = fmax(v->hi, p[i]);
    }
}

static bool quotient(Gen *g, const Var *x, const Var *y, Var v)
{
    if (y->lo >= 0.3) {
        v.hi = magnitude(x) / y->lo, v.lo = -v.hi;
        return gen_let(g, v, "%s / %s", x->name, y->name) != NULL;
    }
    v.hi = magnitude(x) / 0.5, v.lo = -v.hi;
    return gen_let(g, v, "%s / (0.5 + %s^2)", x->name, y->name) != NULL;
}

bool make_binary(Gen *g)
{
    Var *x = gen_pick(g, is_float), *y = x == NULL ? NULL : gen_partner(g, x);
    if (y == NULL)
        return false;
    Var v = join(x, y);
    switch (gen_int(g, 0, 6)) {
    case 0:
        v.lo = x->lo + y->lo, v.hi = x->hi + y->hi;
        return gen_let(g, v, "%s + %s", x->name, y->name) != NULL;
    case 1:
        v.lo = x->lo - y->hi, v.hi = x->hi - y->lo;
        return gen_let(g, v, "%s - %s", x->name, y->name) != NULL;
    case 2:
        return quotient(g, x, y, v);
    case 3:
        v.lo = fmax(x->lo, y->lo), v.hi = fmax(x->hi, y->hi);
        return gen_let(g, v, "max(%s, %s)", x->name, y->name) != NULL;
    case 4:
        v.lo = fmin(x->lo, y->lo), v.hi = fmin(x->hi, y->hi);
        return gen_let(g, v, "min(%s, %s)", x->name, y->name) != NULL;
    case 5:
        product_bounds(&v, x, y);
        return gen_let(g, v, "%s * %s", y->name, x->name) != NULL;
    default:
        product_bounds(&v, x, y);
        return gen_let(g, v, "%s * %s", x->name, y->name) != NULL;
    }
}

bool make_power(Gen *g)
{
    Var *x = gen_pick(g, is_float), *y = x == NULL ? NULL : gen_partner(g, x);
    if (y == NULL)
        return false;
    Var v = join(x, y);
    if (gen_chance(g, 40)) {
        int n = gen_int(g, 2, 5);
        v = *x;
        v.hi = pow(magnitude(x), n), v.lo = n % 2 ? -v.hi : 0;
        return gen_let(g, v, "%s^%d", x->name, n) != NULL;
    }
    double base = magnitude(x) * magnitude(x) + 0.5;
    v.lo = 0, v.hi = pow(fmax(base, 2), magnitude(y));
    return gen_let(g, v, "(%s^2 + 0.5)^%s", x->name, y->name) != NULL;
}

/* A number that is far from the places where functions have a kink. */
bool make_number(Gen *g)
{
    Var *x = gen_pick(g, is_float);
    if (x == NULL)
        return false;
    Var v = *x;
    double c = gen_real(g, 0.15, 1.9);
    if (gen_chance(g, 30)) {
        v.lo = x->lo - c, v.hi = x->hi - c;
        return gen_let(g, v, "%s - %g", x->name, c) != NULL;
    }
    v.lo = c - x->hi, v.hi = c - x->lo;
    if (gen_chance(g, 40))
        return gen_let(g, v, "%g - %s", c, x->name) != NULL;
    v.lo = fmin(x->lo * c, 0), v.hi = fmax(x->hi * c, 0);
    return gen_let(g, v, "%s * %g", x->name, c) != NULL;
}

/* A row of numbers that the program carries with it. */
bool make_listed(Gen *g)
{
    static const char *const form[] = {"%s * %s]", "%s + %s]", "%s / %s]"};
    Var *x = gen_pick(g, has_axes);
    int64_t n = x == NULL ? 0 : x->dim[x->rank - 1];
    if (x == NULL || n < 2 || n > 8 || x->rank - x->batch < 1)
        return false;
    Text t;
    text_init(&t, g->body.arena);
    for (int64_t i = 0; i < n; i++)
        text_add(&t, "%s%g", i == 0 ? "[" : ", ", gen_real(g, 0.5, 1.9));
    Var v = *x;
    v.hi = 2 * magnitude(x) + 2, v.lo = -v.hi;
    return gen_let(g, v, form[gen_int(g, 0, 2)], x->name, t.at) != NULL;
}

/* A function with a rule of its own, which is the right one. */
bool make_rule(Gen *g)
{
    Var *x = gen_pick(g, is_float);
    if (x == NULL)
        return false;
    Var v = *x;
    double m = magnitude(x);
    if (gen_chance(g, 50)) {
        v.hi = m * m * m, v.lo = -v.hi;
        return gen_let(g, v, "cubed(%s)", x->name) != NULL;
    }
    v.lo = -m, v.hi = m;
    return gen_let(g, v, "modulated(%s, %s * 0.5)", x->name, x->name) != NULL;
}

/* ---- bool ------------------------------------------------------------------------- */

static const char *comparison(Gen *g)
{
    static const char *const op[] = {"<", "<=", ">", ">=", "==", "!="};
    return op[gen_int(g, 0, 5)];
}

static Var *compare(Gen *g)
{
    Var *x = gen_pick(g, gen_chance(g, 30) ? is_int : is_float);
    Var *y = x == NULL ? NULL : gen_partner(g, x);
    if (x == NULL)
        return NULL;
    Var v = y == NULL ? *x : join(x, y);
    v.t = BOOL;
    v.lo = 0, v.hi = 1;
    if (dtype_is_float(x->t) && gen_chance(g, 30)) {
        Var one = *x;
        one.t = BOOL;
        one.lo = 0, one.hi = 1;
        return gen_let(g, one, "is_finite(%s)", x->name);
    }
    if (y == NULL)
        return gen_let(g, v, "%s %s %d", x->name, comparison(g), gen_int(g, -2, 4));
    return gen_let(g, v, "%s %s %s", x->name, comparison(g), y->name);
}

/* What two values say together. */
static bool both_or_either(Gen *g)
{
    Var *x = gen_pick(g, is_float), *y = x == NULL ? NULL : gen_partner(g, x);
    if (y == NULL)
        return false;
    Var v = join(x, y);
    v.t = BOOL;
    v.lo = 0, v.hi = 1;
    double p = gen_real(g, -0.5, 0.5), q = gen_real(g, -0.5, 0.5);
    return gen_let(g, v, "%s > %g %s %s <= %g", x->name, p, gen_chance(g, 30) ? "and" : "or",
                   y->name, q) != NULL;
}

bool make_logic(Gen *g)
{
    if (gen_chance(g, 30))
        return both_or_either(g);
    Var *x = gen_chance(g, 60) ? gen_pick(g, is_bool) : NULL;
    if (x == NULL)
        return compare(g) != NULL;
    Var *y = gen_partner(g, x);
    if (y == NULL || gen_chance(g, 30))
        return gen_let(g, *x, "not %s", x->name) != NULL;
    return gen_let(g, join(x, y), "%s %s %s", x->name, gen_chance(g, 35) ? "and" : "or", y->name) !=
           NULL;
}

bool make_choose(Gen *g)
{
    Var *x = gen_pick(g, is_float), *y = x == NULL ? NULL : gen_partner(g, x);
    if (y == NULL)
        return false;
    Var v = join(x, y), as_bool = v;
    as_bool.t = BOOL;
    v.lo = fmin(x->lo, y->lo), v.hi = fmax(x->hi, y->hi);
    Var *c = gen_chance(g, 70) ? gen_partner(g, &as_bool) : NULL;
    if (c == NULL)
        return gen_let(g, v, "where(%s > %g, %s, %s)", x->name, gen_real(g, -0.5, 0.5), x->name,
                       y->name) != NULL;
    Var all = join(&v, c);
    all.trained = v.trained;
    return gen_let(g, all, "where(%s, %s, %s)", c->name, x->name, y->name) != NULL;
}

/* ---- steps, types ----------------------------------------------------------------- */

bool make_stepped(Gen *g)
{
    static const char *const f[] = {"floor", "ceil", "round", "sign"};
    Var *x = gen_pick(g, is_float);
    if (x == NULL)
        return false;
    Var v = *x;
    v.lo = 3 * x->lo - 1, v.hi = 3 * x->hi + 1;
    return gen_let(g, v, "%s(stop_gradient(%s) * 3)", f[gen_int(g, 0, 3)], x->name) != NULL;
}

bool make_detach(Gen *g)
{
    Var *x = gen_pick(g, is_float);
    if (x == NULL || x->trained)
        return false;
    return gen_let(g, *x, "stop_gradient(%s)", x->name) != NULL;
}

bool make_cast(Gen *g)
{
    static const DType to[] = {F32, F64, F16, BF16, F32, F64, I32, I64};
    Var *x = gen_pick(g, gen_chance(g, 60) ? is_float : gen_chance(g, 50) ? is_int : is_bool);
    DType t = to[gen_int(g, 0, 7)];
    if (x == NULL || x->t == t)
        return false;
    Var v = *x;
    v.t = t;
    bool cut = dtype_is_float(x->t) != dtype_is_float(t) || x->t == BOOL;
    if (dtype_is_float(x->t) && !dtype_is_float(t)) {
        v.lo = 5 * x->lo - 1, v.hi = 5 * x->hi + 1;
        return gen_let(g, v, "cast(stop_gradient(%s) * 5, %s)", x->name, dtype_name(t)) != NULL;
    }
    return gen_let(g, v, cut ? "cast(stop_gradient(%s), %s)" : "cast(%s, %s)", x->name,
                   dtype_name(t)) != NULL;
}

static bool integer_division(Gen *g, const Var *x, Var v)
{
    static const char *const form[] = {"%s // %d", "%s %% %d"};
    v.lo = -magnitude(x), v.hi = magnitude(x);
    return gen_let(g, v, form[gen_int(g, 0, 1)], x->name, gen_int(g, 2, 5)) != NULL;
}

bool make_integers(Gen *g)
{
    static const char *const form[] = {"%s + %s",     "%s - %s",  "%s * %s", "min(%s, %s)",
                                       "max(%s, %s)", "%s // %s", "%s %% %s"};
    Var *x = gen_pick(g, is_int), *y = x == NULL ? NULL : gen_partner(g, x);
    if (x == NULL) {
        const int64_t dim[] = {gen_extent(g), gen_extent(g)};
        return gen_input(g, gen_chance(g, 50) ? I32 : I64, gen_int(g, 0, 2), dim, 0) != NULL;
    }
    if (y == NULL)
        return integer_division(g, x, *x);
    Var v = join(x, y);
    v.hi = fmax(magnitude(x) + magnitude(y), magnitude(x) * magnitude(y)), v.lo = -v.hi;
    if (v.hi > 1e6)
        return integer_division(g, x, *x);
    return gen_let(g, v, "%s",
                   arena_printf(g->body.arena, form[gen_int(g, 0, 6)], x->name, y->name)) != NULL;
}
