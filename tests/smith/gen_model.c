/* Policies with statements of their own, and the model around all of them. */
#include "gen.h"

#include <math.h>
#include <string.h>

/* ---- draws, state, derivatives ---------------------------------------------------- */

bool make_draw(Gen *g)
{
    Var *x = gen_pick(g, is_float);
    if (x == NULL || g->plain)
        return false;
    const char *shape = arena_printf(g->body.arena, "shape(%s), %s", x->name, dtype_name(x->t));
    Var v = *x;
    switch (gen_int(g, 0, 2)) {
    case 0:
        v.lo -= 0.5, v.hi += 0.5;
        return gen_let(g, v, "%s + uniform(%s, low = -0.5, high = 0.5)", x->name, shape) != NULL;
    case 1:
        v.lo -= 2, v.hi += 2;
        return gen_let(g, v, "%s - normal(%s, std = 0.3)", x->name, shape) != NULL;
    default:
        v.lo = fmin(v.lo, 0.25), v.hi = fmax(v.hi, 0.25);
        return gen_let(g, v, "where(bernoulli(shape(%s), 0.7), %s, 0.25)", x->name, x->name) !=
               NULL;
    }
}

bool make_dropout(Gen *g)
{
    Var *x = gen_pick(g, is_float);
    if (x == NULL || g->in_scan || g->plain)
        return false;
    Var v = *x;
    v.lo = fmin(2 * v.lo, 0), v.hi = fmax(2 * v.hi, 0);
    return gen_let(g, v, "nn.dropout(%s, 0.5)", x->name) != NULL;
}

/* Elements of the state at other places: what is written over it must not be read after. */
static const char *old_state(Gen *g, const Var *s)
{
    Arena *a = g->declared.arena;
    bool square = s->rank == 2 && s->dim[0] == s->dim[1];
    if (s->rank == 0 || s->dim[0] < 2)
        return s->name;
    if (square && gen_chance(g, 50))
        return arena_printf(a, "transpose(%s)", s->name);
    switch (gen_int(g, 0, 4)) {
    case 0:
        return arena_printf(a, "%s[::-1]", s->name);
    case 1:
        return arena_printf(a, "concat([%s[1:], %s[:1]])", s->name, s->name);
    case 2:
        return arena_printf(a, "cumsum(%s, axis = 0) / %lld", s->name, (long long)s->dim[0]);
    default:
        return s->name;
    }
}

/* A running value: what the step before has left is read, and a new one is set. */
bool make_state(Gen *g)
{
    Var *x = gen_pick(g, is_float);
    if (x == NULL || x->batch || g->in_scan)
        return false;
    Var v = *x;
    v.trained = false;
    v.lo = fmin(v.lo, 0), v.hi = fmax(v.hi, 0);
    Var *state = gen_name(g, v);
    text_add(&g->declared, "    state %s : %s%s = zeros\n", state->name, dtype_name(x->t),
             gen_shape(g, x->rank, x->dim, false));
    gen_line(g, "%s <- 0.5 * %s + 0.5 * stop_gradient(%s)", state->name, old_state(g, state),
             x->name);
    return true;
}

bool make_derivative(Gen *g)
{
    static const char *const of[] = {"%s^3",     "sin(%s) * 2", "exp(%s * 0.5)",
                                     "tanh(%s)", "sigmoid(%s)", "log1p(%s^2)"};
    Var *x = gen_pick(g, is_float);
    if (x == NULL || g->in_scan || x->t == F16 || x->t == BF16)
        return false;
    Var v = *x;
    v.hi = 3 * magnitude(x) * magnitude(x) + exp(magnitude(x) / 2) + 2, v.lo = -v.hi;
    const char *y = arena_printf(g->body.arena, of[gen_int(g, 0, 5)], x->name);
    return gen_let(g, v, "grad(sum(%s), %s)", y, x->name) != NULL;
}

/* ---- scan ------------------------------------------------------------------------- */

static const struct {
    Policy *make;
    int weight;
} inner[] = {
    {make_unary, 6},  {make_binary, 6}, {make_number, 2},   {make_matmul, 2}, {make_reduce, 2},
    {make_choose, 1}, {make_slice, 1},  {make_softmax, 1},  {make_domain, 1}, {make_transpose, 1},
    {make_draw, 1},   {make_concat, 1}, {make_integers, 1},
};

static void inner_statements(Gen *g, int n)
{
    int all = 0;
    for (size_t i = 0; i < sizeof inner / sizeof *inner; i++)
        all += inner[i].weight;
    for (int i = 0; i < n; i++) {
        int at = gen_int(g, 0, all - 1);
        size_t k = 0;
        while (at >= inner[k].weight)
            at -= inner[k++].weight;
        inner[k].make(g);
    }
}

/* A term that broadcasts with anything of its type, made of a value of any shape. */
static const char *term(Gen *g, const Var *v, DType t)
{
    const char *cast =
        v->t == t ? v->name : arena_printf(g->body.arena, "cast(%s, %s)", v->name, dtype_name(t));
    return arena_printf(g->body.arena, "mean(%s)", cast);
}

typedef struct Carry {
    Var *first;
    char name[16];
} Carry;

enum { MAX_EMITS = 3 };

/* What a scan gives: stacks of emitted values, then the last carries. */
typedef struct Results {
    int id, n_emits, n_carries;
    Var out[MAX_EMITS];
    Carry carry[2];
} Results;

static const char *name_of_stack(Gen *g, const Results *s, int i)
{
    return arena_printf(g->body.arena, i == 0 ? "s%d" : "s%d_%d", s->id, i);
}

static void begin_body(Gen *g)
{
    g->in_scan = true;
    g->indent++;
}

/* A value to emit; it has the axis that it is stacked along, or 0. */
static Var emitted(Gen *g, Var v)
{
    return v.rank > 0
               ? v
               : *gen_let(g, shaped(&v, 1, (const int64_t[]){1}), "reshape(%s, [1])", v.name);
}

/* New carries, and emitted values, among them carries as they were and as they are; then the body's
 * variables go. */
static void end_body(Gen *g, Results *s, int mark)
{
    Var *last = gen_pick(g, is_float);
    const char *emit = "";
    int old = gen_chance(g, 40) ? gen_int(g, 0, s->n_carries - 1) : -1;
    Var before = {0};
    if (old >= 0) {
        Var v = *s->carry[old].first;
        v.trained = true;
        v.lo = fmin(v.lo, -1), v.hi = fmax(v.hi, 1);
        before = *gen_let(g, v, "%s", s->carry[old].name);
    }
    for (int i = 0; i < s->n_carries; i++)
        gen_line(g, "%s = tanh(%s * 0.7 + %s)", s->carry[i].name, s->carry[i].name,
                 term(g, last, s->carry[i].first->t));
    for (int i = 0; i < s->n_emits; i++) {
        bool is_old = old >= 0 && i == s->n_emits - 1;
        s->out[i] = emitted(g, is_old ? before : *gen_pick(g, is_float));
        emit = arena_printf(g->body.arena, "%s%s %s", emit, i > 0 ? "," : "", s->out[i].name);
    }
    gen_line(g, "emit%s", emit);
    g->in_scan = false;
    g->indent--;
    g->n = mark;
    gen_line(g, "}");
}

/* Names for what the scan gives; half of the stacks are read as they are. */
static void name_results(Gen *g, const Results *s, int64_t count, int axis)
{
    for (int i = 0; i < s->n_emits; i++) {
        Var all = s->out[i];
        memmove(all.dim + axis + 1, all.dim + axis, sizeof(int64_t) * (size_t)(all.rank - axis));
        all.dim[axis] = count;
        all.rank++;
        all.batch = s->out[i].batch && axis > 0;
        all.trained = true;
        if (all.rank > 5 || elems(&all) > gen_most(g))
            continue;
        const char *stack = name_of_stack(g, s, i);
        if (gen_chance(g, 50))
            gen_let(g, all, "%s * 0.9", stack);
        else
            snprintf(gen_name(g, all)->name, sizeof all.name, "%s", stack);
    }
    for (int i = 0; i < s->n_carries; i++) {
        Var v = *s->carry[i].first;
        v.lo = -1, v.hi = 1;
        v.trained = true;
        gen_let(g, v, "%s", s->carry[i].name);
    }
}

static int draw_carries(Gen *g, Carry *c)
{
    int n = gen_int(g, 1, 2);
    for (int i = 0; i < n; i++) {
        int64_t dim[] = {gen_int(g, 1, 5), gen_extent(g)};
        Var *x = gen_chance(g, 50) ? gen_pick(g, is_float) : NULL;
        c[i].first = x != NULL && elems(x) < 200 ? x : gen_param(g, g->main, gen_int(g, 0, 2), dim);
        snprintf(c[i].name, sizeof c[i].name, "h%d_%d", g->named, i);
    }
    return n;
}

static const char *heads_of_carries(Gen *g, const Carry *c, int n)
{
    Text t;
    text_init(&t, g->body.arena);
    for (int i = 0; i < n; i++)
        text_add(&t, ", %s = %s", c[i].name, c[i].first->name);
    return t.at;
}

static void live_carries(Gen *g, const Carry *c, int n)
{
    for (int i = 0; i < n; i++) {
        Var v = *c[i].first;
        v.trained = true;
        v.lo = fmin(v.lo, -1), v.hi = fmax(v.hi, 1);
        Var *live = gen_name(g, v);
        memcpy(live->name, c[i].name, sizeof live->name);
    }
}

static const char *names_of_results(Gen *g, const Results *s)
{
    Text t;
    text_init(&t, g->body.arena);
    for (int i = 0; i < s->n_emits; i++)
        text_add(&t, "%s%s", i > 0 ? ", " : "", name_of_stack(g, s, i));
    for (int i = 0; i < s->n_carries; i++)
        text_add(&t, ", %s", s->carry[i].name);
    return t.at;
}

/* But for `recompute`: no word may be in the body then, where others are drawn. */
static const char *word_of_scan(Gen *g)
{
    static const char *const word[] = {"", "keep ", "offload "};
    return word[gen_chance(g, 15) ? gen_int(g, 1, 2) : 0];
}

static Results draw_results(Gen *g)
{
    Results s = {.id = g->named++, .n_emits = gen_chance(g, 50) ? 1 : gen_int(g, 2, MAX_EMITS)};
    s.n_carries = draw_carries(g, s.carry);
    return s;
}

/* May x be walked along the axis? Its batch stays whole. */
static bool has_steps(const Var *x, int axis)
{
    return has_axes(x) && x->rank > axis && !(x->batch && axis == 0) && x->dim[axis] <= 9;
}

/* The newest value of so many steps, or NULL. */
static Var *find_beside(Gen *g, int64_t steps, int axis)
{
    for (int i = g->n; i-- > 0;)
        if (has_steps(&g->var[i], axis) && g->var[i].dim[axis] == steps)
            return &g->var[i];
    return NULL;
}

static void name_slice(Gen *g, const Var *of, int axis, const char *name)
{
    Var slice = *of;
    memmove(slice.dim + axis, slice.dim + axis + 1,
            sizeof(int64_t) * (size_t)(of->rank - axis - 1));
    slice.rank--;
    snprintf(gen_name(g, slice)->name, sizeof slice.name, "%s", name);
}

/* Steps through the slices of a value, or of two. */
bool make_scan(Gen *g)
{
    Var *first = gen_pick(g, has_axes);
    if (first == NULL || g->in_scan || g->n > MAX_VARS - 60)
        return false;
    int axis = gen_chance(g, 60) && first->rank > 1 ? 1 : 0;
    if (!has_steps(first, axis))
        return false;
    Var x = *first, *found = gen_chance(g, 60) ? find_beside(g, x.dim[axis], axis) : NULL, y = {0};
    if (found != NULL)
        y = *found;
    Results s = draw_results(g);
    int mark = g->n;
    int64_t count = x.dim[axis];
    const char *item = arena_printf(g->body.arena, "g%d", s.id);
    const char *item_y = arena_printf(g->body.arena, "g%d_1", s.id);
    const char *heads = heads_of_carries(g, s.carry, s.n_carries);
    if (found != NULL)
        gen_line(g, "%s%s = scan %s, %s in (%s, %s), axis = %d%s {", word_of_scan(g),
                 names_of_results(g, &s), item, item_y, x.name, y.name, axis, heads);
    else
        gen_line(g, "%s%s = scan %s in %s, axis = %d%s {", word_of_scan(g), names_of_results(g, &s),
                 item, x.name, axis, heads);
    begin_body(g);
    live_carries(g, s.carry, s.n_carries);
    name_slice(g, &x, axis, item);
    if (found != NULL)
        name_slice(g, &y, axis, item_y);
    inner_statements(g, gen_int(g, 2, 5));
    end_body(g, &s, mark);
    name_results(g, &s, count, axis);
    return true;
}

/* Counts; the number itself takes part. */
bool make_counted_scan(Gen *g)
{
    static const int counts[] = {1, 2, 3, 4, 5, 6, 8, 9, 12};
    if (g->in_scan || g->n > MAX_VARS - 60)
        return false;
    Results s = draw_results(g);
    int mark = g->n, count = counts[gen_int(g, 0, 8)];
    gen_line(g, "%s%s = scan i%d in 0..%d%s {", word_of_scan(g), names_of_results(g, &s), s.id,
             count, heads_of_carries(g, s.carry, s.n_carries));
    begin_body(g);
    live_carries(g, s.carry, s.n_carries);
    Var i = {.t = F32, .hi = (double)count / 4};
    gen_let(g, i, "cast(i%d, f32) / 4", s.id);
    inner_statements(g, gen_int(g, 2, 5));
    end_body(g, &s, mark);
    name_results(g, &s, count, 0);
    return true;
}

/* ---- the model -------------------------------------------------------------------- */

static const struct {
    Policy *make;
    int weight;
} outer[] = {
    {make_unary, 22},   {make_domain, 12},    {make_binary, 20},   {make_power, 6},
    {make_number, 5},   {make_logic, 18},     {make_choose, 5},    {make_stepped, 9},
    {make_detach, 4},   {make_cast, 9},       {make_integers, 8},  {make_reduce, 10},
    {make_prod, 4},     {make_cumsum, 4},     {make_softmax, 5},   {make_arg, 5},
    {make_any, 7},      {make_reshape, 5},    {make_transpose, 5}, {make_slice, 7},
    {make_pad, 4},      {make_concat, 5},     {make_split, 3},     {make_window, 5},
    {make_flip, 3},     {make_insert, 2},     {make_broadcast, 3}, {make_matmul, 8},
    {make_batched, 4},  {make_einsum, 3},     {make_conv, 7},      {make_layer, 4},
    {make_rotary, 2},   {make_grouped, 3},    {make_norm, 5},      {make_shared, 3},
    {make_gather, 5},   {make_take, 5},       {make_scatter, 3},   {make_one_hot, 3},
    {make_triangle, 3}, {make_loss_rows, 2},  {make_draw, 6},      {make_dropout, 2},
    {make_state, 2},    {make_derivative, 3}, {make_scan, 3},      {make_counted_scan, 4},
    {make_listed, 5},   {make_rule, 4},       {make_attention, 3}, {make_heads, 3},
};

static void statement(Gen *g)
{
    int all = 0;
    for (size_t i = 0; i < sizeof outer / sizeof *outer; i++)
        all += outer[i].weight;
    for (int tries = 0; tries < 10; tries++) {
        int at = gen_int(g, 0, all - 1);
        size_t k = 0;
        while (at >= outer[k].weight)
            at -= outer[k++].weight;
        if (outer[k].make(g))
            return;
    }
}

static void first_variables(Gen *g)
{
    int n = gen_int(g, 1, 3);
    for (int i = 0; i < n; i++) {
        int64_t dim[4];
        int rank = gen_int(g, 1, 4);
        int64_t all = 1;
        for (int k = 0; k < rank; k++) {
            dim[k] = k == 0 && g->batch > 0 ? g->batch : gen_extent(g);
            if (all * dim[k] > 600)
                dim[k] = 2;
            all *= dim[k];
        }
        gen_input(g, g->main, rank, dim, 0);
        if (i == 0 || gen_chance(g, 30))
            gen_param(g, g->main, rank - 1, dim + 1);
    }
    if (gen_chance(g, 15)) {
        const int64_t dim[] = {gen_extent(g), gen_extent(g)};
        Var *bytes = gen_input(g, U8, 2, dim, 0);
        Var v = *bytes;
        v.t = g->main;
        v.lo = 0, v.hi = 1;
        gen_let(g, v, "cast(%s, %s) / 255", bytes->name, dtype_name(g->main));
    }
}

/* Every value that nothing has read goes into the loss, so that all of the model counts. */
static void finish_loss(Gen *g)
{
    static const char *const form[] = {"mean(%s^2)", "sum(%s * 0.1)", "mean(%s)", "mean(sin(%s))"};
    Text t;
    text_init(&t, g->body.arena);
    int outputs = 0, terms = 0;
    for (int i = 0; i < g->n; i++) {
        Var *v = &g->var[i];
        const char *name = v->name;
        if (v->uses > 0 && !(i == g->n - 1 && terms == 0))
            continue;
        if (outputs < 5 && gen_chance(g, 40) && ++outputs)
            gen_line(g, "output o%d = %s", i, name);
        if (!dtype_is_float(v->t))
            name = arena_printf(t.arena, "cast(stop_gradient(%s), f32) * 0.01", name);
        else if (v->t != F32)
            name = arena_printf(t.arena, "cast(%s, f32)", name);
        const char *e =
            arena_printf(t.arena, form[gen_int(g, 0, 3)], arena_printf(t.arena, "(%s)", name));
        Var scalar = {.t = F32, .trained = v->trained, .lo = -4, .hi = 4};
        text_add(&t, "%s%s", terms++ ? " + " : "", gen_let(g, scalar, "%s", e)->name);
        g->var[g->n - 1].uses = 1;
    }
    if (gen_chance(g, 40))
        gen_line(g, "metric seen = %s", g->var[g->n - 1].name);
    gen_line(g, "loss %s", t.at);
}

static const char *rate(Gen *g)
{
    static const char *const form[] = {"0.01", "cosine(from = 0.02, to = 0.001, steps = 10)",
                                       "warmup_cosine(peak = 0.02, warmup = 2, steps = 10)",
                                       "linear(from = 0.02, to = 0.001, steps = 10)"};
    return form[gen_int(g, 0, 3)];
}

static void train(Gen *g, Text *t)
{
    static const char *const optimizer[] = {
        "sgd(lr = %s)",
        "sgd(lr = %s, momentum = 0.9, nesterov = true)",
        "sgd(lr = %s, momentum = 0.9, weight_decay = 0.01)",
        "adam(lr = %s)",
        "adamw(lr = %s, weight_decay = 0.1)",
        "lion(lr = %s)",
        "rmsprop(lr = %s)",
        "adagrad(lr = %s)",
    };
    text_add(t, "\ntrain m {\n    optimizer ");
    text_add(t, "%s\n", arena_printf(t->arena, optimizer[gen_int(g, 0, 7)], rate(g)));
    if (gen_chance(g, 40))
        text_add(t, gen_chance(g, 60) ? "    clip global_norm(%g)\n" : "    clip value(%g)\n",
                 gen_real(g, 0.05, 1));
    if (gen_chance(g, 40))
        text_add(t, "    guard %s\n", gen_chance(g, 50) ? "loss" : "off");
    if (g->batch > 1 && gen_chance(g, 30))
        text_add(t, "    accumulate %d\n", gen_int(g, 2, 3));
    if (gen_chance(g, 40))
        text_add(t, gen_chance(g, 60) ? "    precision bf16\n" : "    precision f16(scale = %d)\n",
                 1 << gen_int(g, 0, 10));
    text_add(t, "}\n");
}

/* What make_rule calls. */
static const char rules[] =
    "\nfn cubed(x) {\n    return x^3\n} vjp(ct) {\n    return ct * x^2 * 3\n}\n"
    "\nfn modulated(x, y) {\n    return x * sin(y)\n} vjp(ct) {\n"
    "    return (ct * sin(y), ct * x * cos(y))\n}\n";

const char *generate(uint64_t seed, Draw draw, Arena *a)
{
    static const DType floats[] = {F32, F32, F32, F32, F32, F32, F64, F64, F16, BF16};
    Gen *g = NEW(a, Gen);
    uint64_t named = seed;
    g->rng = random_bits(&seed); /* far from the streams of the seeds beside it */
    g->indent = 1;
    g->plain = draw == DRAW_PLAIN;
    g->large = draw == DRAW_LARGE;
    g->main = floats[gen_int(g, 0, 9)];
    g->batch = gen_chance(g, 45) ? gen_int(g, 2, 7) : 0;
    g->chain = gen_int(g, 10, 80);
    text_init(&g->declared, a);
    text_init(&g->body, a);
    first_variables(g);
    int n = gen_int(g, 8, 34);
    for (int i = 0; i < n && g->n < MAX_VARS - 80; i++)
        statement(g);
    finish_loss(g);
    Text t;
    text_init(&t, a);
    text_add(&t, "# seed %llu\nuse nn\n%s\nmodel m", (unsigned long long)named, rules);
    if (g->batch > 0)
        text_add(&t, "(batch = %lld)", (long long)g->batch);
    text_add(&t, " {\n%s\n%s}\n", g->declared.at, g->body.at);
    if (!g->plain && gen_chance(g, 80))
        train(g, &t);
    return t.at;
}
