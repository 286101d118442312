/* `precision bf16` and `precision f16`: the values that an entry stores are of the half type, and
 * parameters, optimizer, state, gradients of parameters, loss and metrics stay f32. The pass is of
 * the primal graph; casts are nodes like others, so reverse mode casts cotangents back, and fusion
 * computes them where they are read. f64, integers and what the model itself says to be of a half
 * type are left alone. An f32 value becomes one of three:
 *
 *   GIVEN   made of inputs, parameters, draws and numbers alone: f32, as it is
 *   HALF    rounded to the half type
 *   WIDE    f32: made by a reduction, or for one
 *
 * contractions        take halves and give a half; their sums are f32 inside (kernel.h)
 * rows of a table     gathered from parameters: HALF
 * reductions, running f32 of the values' casts: WIDE. The largest and the smallest of halves
 *   sums, scatter_add   are halves
 * pointwise ops       of halves, and numbers that are halves: in the half type. Of a half and an
 *                       f32 value: in f32, and rounded. Of no half: f32
 * steps               pointwise ops outside of scans, of one half and of what is f32 or has few
 *                       elements, that pointwise ops and reductions alone read: f32, unrounded, as
 *                       1 + tanh(x) is no better than its worst step. The half is kept (steps.c)
 * views               the type of what they show
 * what reductions     pointwise ops and views that nothing but reductions read, the loss and
 *   alone read          metrics included, or values of this kind: in f32 of the values' casts,
 *                       and again in the reverse pass, so that the halves are what is kept. But a
 *                       product and a parameter (x @ w + b) are a half, as the product alone is
 * scans               what is carried on, or is the same in every step, is f32; sequences are what
 *                       they are outside, and their bodies likewise
 * adjoint             as the contractions that it is put together of
 * custom_vjp          f32 operands, and a rule as it was, for the cotangent of the loss without its
 *                       scale; its value is what that of any fn would be
 *
 * source: Micikevicius et al., Mixed Precision Training (2018): f32 copies, sums and loss scale. */
#include "pass.h"

#include <math.h>

typedef enum Width { GIVEN, WIDE, HALF } Width;

/* What is known of the arguments of a scan's body. */
typedef struct Outside {
    const Width *width; /* as the body sees them */
    const bool *fixed;
    int carried; /* results that are f32: the first ones */
} Outside;

/* A graph or a body that is copied; arrays are by Ref of `from`. */
typedef struct Level {
    DType half;
    double loss_scale;
    Arena *arena;
    const Graph *from;
    Graph *to;
    const Outside *outside; /* NULL: the graph itself */
    bool *given;            /* GIVEN, unless it is rounded */
    bool *fixed;            /* made of parameters and numbers */
    bool *product;          /* a view of a contraction */
    bool *reduced;          /* reductions alone read it */
    bool *inner;            /* nothing but pointwise ops and reductions read it */
    Width *width;
    Ref *of;  /* WIDE, and made of this half, as a step of such a chain; or NONE */
    Ref *map; /* the copy, in its own type */
    Ref *as_wide, *as_half, *as_stored; /* its casts; NONE: not yet made */
    Ref *read;                          /* what the node that is copied reads */
} Level;

static bool is_f32(const Graph *g, Ref r)
{
    return r != NONE && type_of(g, r)->rank >= 0 && type_of(g, r)->dtype == F32;
}

static bool is_real(const Graph *g, Ref r)
{
    return type_of(g, r)->rank < 0 || dtype_is_float(type_of(g, r)->dtype);
}

static OpKind kind_of(const Graph *g, Ref r)
{
    return optab[op_of(g, r)]->kind;
}

/* Rows of a table of parameters. A table of numbers is no such thing: a weight for each class. */
static bool is_lookup(const Level *l, Ref r)
{
    const Graph *g = l->from;
    return op_of(g, r) == OP_gather && is_f32(g, r) && l->fixed[arg(g, r, 0)] &&
           l->given[arg(g, r, 0)] && rank(g, arg(g, r, 0)) >= 2;
}

/* Of one contraction or, put together, of several. */
static bool is_product(const Graph *g, Ref r)
{
    return kind_of(g, r) == OP_CONTRACT || op_of(g, r) == OP_adjoint;
}

/* ---- what the values are made of -------------------------------------------------- */

static void find_given(Level *l)
{
    const Graph *g = l->from;
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        OpKind kind = kind_of(g, r);
        l->given[r] = kind != OP_CONTRACT && kind != OP_SCAN;
        l->fixed[r] = op_of(g, r) != OP_input;
        l->product[r] = is_product(g, r);
        if (op_of(g, r) == OP_arg) {
            int64_t i = attr(g, r, 0)->i;
            l->given[r] = l->outside->width[i] == GIVEN;
            l->fixed[r] = l->outside->fixed[i];
        }
        for (int i = 0; i < node(g, r)->n_args; i++) {
            Ref a = arg(g, r, i);
            if (a == NONE)
                continue;
            l->given[r] = l->given[r] && (l->given[a] || !is_real(g, a));
            l->fixed[r] = l->fixed[r] && l->fixed[a];
            l->product[r] =
                l->product[r] || (kind == OP_VIEW && node(g, r)->n_args == 1 && l->product[a]);
        }
        l->given[r] = l->given[r] && !is_lookup(l, r);
    }
}

/* x @ w + b: products, and what is fixed. */
static bool ends_product(const Level *l, Ref r)
{
    const Graph *g = l->from;
    bool product = false, fixed = false;
    if (kind_of(g, r) != OP_POINTWISE)
        return false;
    for (int i = 0; i < node(g, r)->n_args; i++) {
        Ref a = arg(g, r, i);
        if (!l->product[a] && !l->fixed[a])
            return false;
        product = product || l->product[a];
        fixed = fixed || !l->product[a];
    }
    return product && fixed;
}

/* ---- what they are read by ---------------------------------------------------------- */

typedef struct Readers {
    bool *wide, *half; /* by Ref: some reader wants it in f32, some does not */
} Readers;

static void note_root(const Level *l, Readers *of, const Root *root, int result)
{
    if (root->kind == ROOT_RESULT && result >= l->outside->carried)
        return;
    of->wide[root->ref] = true;
}

/* What reader n makes of its operand i, if it says anything: a comparison takes both. */
static void note_reader(const Level *l, Readers *of, Ref n, int i)
{
    const Graph *g = l->from;
    const Op *op = optab[op_of(g, n)];
    Ref a = arg(g, n, i);
    bool wide = op->kind == OP_OPAQUE || op->kind == OP_TUPLE;
    bool half = is_product(g, n);
    if (op->kind == OP_SCAN) {
        Scan is = scan_of(g, n);
        half = i >= is.carries && i < is.carries + is.sequences;
        wide = !half;
    } else if (op->kind == OP_REDUCE && !op->selects) {
        wide = is_f32(g, n);
    } else if (!wide && !half && is_f32(g, n)) {
        wide = l->reduced[n];
        half = !wide;
    } else if (!wide && !half) {
        wide = is_real(g, n);
    }
    of->wide[a] = of->wide[a] || wide;
    of->half[a] = of->half[a] || half;
}

static void find_reduced(Level *l)
{
    const Graph *g = l->from;
    Readers of = {NEW_ARRAY(l->arena, bool, g->node.n), NEW_ARRAY(l->arena, bool, g->node.n)};
    for (int i = 0, result = 0; i < g->root.n; i++) {
        note_root(l, &of, &g->root.at[i], result);
        result += g->root.at[i].kind == ROOT_RESULT;
    }
    for (Ref r = (Ref)g->node.n - 1; r >= 1; r--) {
        OpKind kind = kind_of(g, r);
        bool may =
            !is_product(g, r) && (kind == OP_POINTWISE || kind == OP_VIEW || kind == OP_REDUCE);
        l->reduced[r] = may && is_f32(g, r) && of.wide[r] && !of.half[r] && !ends_product(l, r);
        for (int i = 0; i < node(g, r)->n_args; i++)
            if (is_f32(g, arg(g, r, i)))
                note_reader(l, &of, r, i);
    }
}

/* x @ w + b, and not 2 * (x @ w): beside the product there is a parameter, not numbers alone. */
static bool ends_layer(const Level *l, Ref r)
{
    bool numbers = true;
    for (int i = 0; i < node(l->from, r)->n_args; i++) {
        double x;
        Ref a = arg(l->from, r, i);
        numbers = numbers && (l->product[a] || const_value(l->from, a, &x));
    }
    return !numbers && ends_product(l, r);
}

/* Not of bodies: what their reverse reads of each step is stacked as it is. */
static void find_inner(Level *l)
{
    const Graph *g = l->from;
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        l->inner[r] = l->outside == NULL && is_f32(g, r) && kind_of(g, r) == OP_POINTWISE &&
                      !l->reduced[r] && !ends_layer(l, r);
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        for (int i = 0; i < node(g, r)->n_args; i++)
            if (kind_of(g, r) != OP_POINTWISE && kind_of(g, r) != OP_REDUCE)
                l->inner[arg(g, r, i)] = false;
}

/* ---- casts ---------------------------------------------------------------------------- */

/* The node's origin, by which something else is asked of it. */
static void ask(Graph *g, Ref r, Memory memory)
{
    const Origin *o = node(g, r)->origin;
    if (r == NONE || (o == NULL ? MEMORY_PLANNED : o->memory) == memory)
        return;
    Origin *asked = NEW(&g->cx->perm, Origin);
    *asked = o != NULL ? *o : (Origin){.span = NO_SPAN};
    asked->memory = memory;
    g->node.at[r].origin = asked;
}

/* A cast belongs to its value: all readers share it. */
static Ref cast(Level *l, Ref r, DType t, Memory memory, Ref *known)
{
    if (*known != NONE)
        return *known;
    l->to->origin = node(l->to, l->map[r])->origin;
    *known = g_cast(l->to, t, l->map[r]);
    const Origin *o = l->to->origin;
    if (o == NULL || o->memory != MEMORY_RECOMPUTE)
        ask(l->to, *known, memory);
    return *known;
}

static Ref wide_of(Level *l, Ref r)
{
    return l->width[r] == HALF ? cast(l, r, F32, MEMORY_PLANNED, &l->as_wide[r]) : l->map[r];
}

static Ref half_of(Level *l, Ref r)
{
    return l->width[r] == HALF ? l->map[r] : cast(l, r, l->half, MEMORY_PLANNED, &l->as_half[r]);
}

/* An f32 value that a contraction reads is kept as what the contraction reads. */
static Ref factor_of(Level *l, Ref r)
{
    return l->width[r] == WIDE ? cast(l, r, l->half, MEMORY_STORED, &l->as_stored[r])
                               : half_of(l, r);
}

/* A number that the half type has. */
static bool is_exact(const Level *l, Ref r)
{
    double x;
    return const_value(l->from, r, &x) && (dtype_round(l->half, x) == x || isnan(x));
}

/* ---- copies ------------------------------------------------------------------------------ */

static Ref copy_of(Level *l, Ref r, Ref as(Level *l, Ref a))
{
    const Graph *g = l->from;
    for (int i = 0; i < node(g, r)->n_args; i++) {
        Ref a = arg(g, r, i);
        l->read[a] = is_f32(g, a) && as != NULL ? as(l, a) : l->map[a];
    }
    return graph_copy_node(l->to, g, r, l->read);
}

static void set(Level *l, Ref r, Ref copy, Width width)
{
    l->map[r] = copy;
    l->width[r] = width;
}

/* In f32, whatever the operands are. */
static void in_f32(Level *l, Ref r)
{
    Ref made = copy_of(l, r, wide_of);
    if (l->reduced[r] && !l->given[r]) {
        const Origin *o = node(l->to, made)->origin;
        if (o == NULL || o->memory == MEMORY_PLANNED)
            ask(l->to, made, MEMORY_RECOMPUTE);
    }
    set(l, r, made, l->given[r] ? GIVEN : WIDE);
}

/* `made` in f32, rounded: what is asked is asked of the half. */
static void round_off(Level *l, Ref r, Ref made)
{
    const Origin *o = node(l->to, made)->origin;
    if (origin_is_kept(o))
        ask(l->to, made, MEMORY_PLANNED);
    l->to->origin = o;
    Ref rounded = g_cast(l->to, l->half, made);
    set(l, r, rounded, HALF);
}

/* The half that r is made of, as a step of a chain, where it reads operand a; or NONE. The model's
 * own halves count, too. */
static Ref half_behind(const Level *l, Ref a)
{
    const Graph *g = l->from;
    if (graph_spreads(g, a))
        return NONE;
    return l->width[a] == HALF || dtype_is_half(type_of(g, a)->dtype) ? a : l->of[a];
}

static void narrow_pointwise(Level *l, Ref r)
{
    const Graph *g = l->from;
    bool any = false, all = true, one = true;
    Ref of = NONE;
    for (int i = 0; i < node(g, r)->n_args; i++) {
        Ref a = arg(g, r, i), half = half_behind(l, a);
        one = one && (of == NONE || half == NONE || half == of);
        of = half != NONE ? half : of;
        if (!is_f32(g, a))
            continue;
        any = any || l->width[a] == HALF || (l->of[a] != NONE && l->width[l->of[a]] == HALF);
        all = all && (l->width[a] == HALF || is_exact(l, a));
    }
    all = all && any;
    if (!is_f32(g, r)) {
        Ref made = copy_of(l, r, all ? half_of : wide_of);
        set(l, r, made, WIDE);
    } else if (!any || l->reduced[r] || (l->inner[r] && one && of != NONE)) {
        l->of[r] = one ? of : NONE;
        in_f32(l, r);
    } else if (all) {
        Ref made = copy_of(l, r, half_of);
        set(l, r, made, HALF);
    } else {
        Ref made = copy_of(l, r, wide_of);
        round_off(l, r, made);
    }
}

static void narrow_view(Level *l, Ref r)
{
    const Graph *g = l->from;
    bool any = false;
    for (int i = 0; i < node(g, r)->n_args; i++)
        any = any || (is_f32(g, arg(g, r, i)) && l->width[arg(g, r, i)] == HALF);
    if (is_lookup(l, r) && !l->reduced[r]) {
        Ref made = copy_of(l, r, NULL);
        round_off(l, r, made);
    } else if (any && !l->reduced[r]) {
        Ref made = copy_of(l, r, half_of);
        set(l, r, made, HALF);
    } else {
        in_f32(l, r);
    }
}

static void narrow_reduction(Level *l, Ref r)
{
    const Graph *g = l->from;
    bool half = is_f32(g, arg(g, r, 0)) && l->width[arg(g, r, 0)] == HALF;
    if (!is_f32(g, r)) { /* which one: the halves tell as well */
        Ref made = copy_of(l, r, NULL);
        set(l, r, made, WIDE);
    } else if (half && optab[op_of(g, r)]->selects && !l->reduced[r]) {
        Ref made = copy_of(l, r, wide_of);
        round_off(l, r, made); /* exact; a reduction is stored, and is to be so as a half */
        const Origin *o = node(l->to, made)->origin;
        if (o == NULL || o->memory == MEMORY_PLANNED)
            ask(l->to, l->map[r], MEMORY_STORED);
    } else {
        Ref made = copy_of(l, r, wide_of);
        set(l, r, made, l->given[r] ? GIVEN : WIDE);
    }
}

static void narrow_contraction(Level *l, Ref r)
{
    Ref made = copy_of(l, r, factor_of);
    set(l, r, made, HALF);
}

/* ---- bodies ------------------------------------------------------------------------------ */

static void narrow_level(Level *l);

static Graph *narrow_body(Level *l, const Graph *body, const Outside *outside)
{
    Level in = *l;
    in.from = body;
    in.to = g_body(l->to);
    in.outside = outside;
    narrow_level(&in);
    return in.to;
}

static void narrow_scan(Level *l, Ref r)
{
    const Graph *g = l->from;
    int n = node(g, r)->n_args;
    Scan is = scan_of(g, r);
    Width *width = NEW_ARRAY(l->arena, Width, n);
    bool *fixed = NEW_ARRAY(l->arena, bool, n);
    Ref *args = NEW_ARRAY(l->arena, Ref, n);
    for (int i = 0; i < n; i++) {
        Ref a = arg(g, r, i);
        bool sequence = i >= is.carries && i < is.carries + is.sequences;
        args[i] = is_f32(g, a) && !sequence ? wide_of(l, a) : l->map[a];
        width[i] = i < is.carries                               ? WIDE
                   : is_real(g, a) && !sequence && !l->given[a] ? WIDE
                                                                : l->width[a];
        fixed[i] = i >= is.carries && l->fixed[a];
    }
    const Outside outside = {.width = width, .fixed = fixed, .carried = is.carries};
    l->to->origin = node(g, r)->origin;
    Graph *body = narrow_body(l, attr(g, r, SCAN_BODY)->body, &outside);
    l->to->origin = node(g, r)->origin;
    Ref made = g_scan(l->to, body, args, n, is);
    set(l, r, made, WIDE);
}

/* A result of a scan is what its body gives. */
static void narrow_pick(Level *l, Ref r)
{
    Ref made = copy_of(l, r, NULL);
    bool half = is_f32(l->from, r) && type_of(l->to, made)->dtype == l->half;
    set(l, r, made, half ? HALF : WIDE);
}

/* A rule as it was, around which the loss scale is taken off, and put on again: what it gives
 * need not be in proportion to what it is given. By a power of two, so exact. */
static Graph *copy_rule(Level *l, const Graph *rule)
{
    Graph *to = g_body(l->to);
    Ref *map = NEW_ARRAY(l->arena, Ref, rule->node.n);
    for (Ref r = 1; r < (Ref)rule->node.n; r++) {
        map[r] = graph_copy_node(to, rule, r, map);
        if (l->loss_scale != 1 && op_of(rule, r) == OP_arg && attr(rule, r, 0)->i == 0)
            map[r] = g_scale(to, map[r], 1 / l->loss_scale);
    }
    for (int i = 0; i < rule->root.n; i++) {
        Root root = rule->root.at[i];
        root.ref = map[root.ref];
        to->origin = node(to, root.ref)->origin;
        if (l->loss_scale != 1 && root.kind == ROOT_RESULT)
            root.ref = g_scale(to, root.ref, l->loss_scale);
        vec_push(&to->arena, &to->root, root);
    }
    return to;
}

static void narrow_custom(Level *l, Ref r)
{
    const Graph *g = l->from;
    int n = node(g, r)->n_args;
    Ref *args = NEW_ARRAY(l->arena, Ref, n);
    Attr attrs[MAX_ATTRS];
    for (int i = 0; i < n; i++)
        args[i] = is_f32(g, arg(g, r, i)) ? wide_of(l, arg(g, r, i)) : l->map[arg(g, r, i)];
    l->to->origin = node(g, r)->origin;
    for (int i = 0; i < op_attrs(optab[op_of(g, r)]); i++) {
        attrs[i] = *attr(g, r, i);
        if (attrs[i].kind == ATTR_BODY)
            attrs[i].body = copy_rule(l, attrs[i].body);
    }
    Ref made = g_node(l->to, op_of(g, r), args, n, attrs);
    if (is_f32(g, r) && l->width[arg(g, r, 0)] == HALF && !l->reduced[r])
        round_off(l, r, made);
    else
        set(l, r, made, l->given[r] ? GIVEN : WIDE);
}

/* ---- all of it ------------------------------------------------------------------------------ */

static void narrow_source(Level *l, Ref r)
{
    const Graph *g = l->from;
    if (op_of(g, r) != OP_arg) {
        set(l, r, copy_of(l, r, NULL), GIVEN);
        return;
    }
    int64_t i = attr(g, r, 0)->i;
    Type t = *type_of(g, r);
    Width width = l->outside->width[i];
    if (is_f32(g, r) && width == HALF)
        t.dtype = l->half;
    l->to->origin = node(g, r)->origin;
    Ref made = g_body_arg(l->to, (int)i, t);
    set(l, r, made, width);
}

static void narrow_node(Level *l, Ref r)
{
    const Graph *g = l->from;
    if (op_of(g, r) == OP_custom_vjp) {
        narrow_custom(l, r);
        return;
    }
    switch (is_product(g, r) ? OP_CONTRACT : kind_of(g, r)) {
    case OP_SOURCE:
        narrow_source(l, r);
        break;
    case OP_POINTWISE:
        narrow_pointwise(l, r);
        break;
    case OP_VIEW:
        narrow_view(l, r);
        break;
    case OP_REDUCE:
        narrow_reduction(l, r);
        break;
    case OP_CONTRACT:
        if (is_f32(g, r))
            narrow_contraction(l, r);
        else
            set(l, r, copy_of(l, r, NULL), WIDE);
        break;
    case OP_SCAN:
        narrow_scan(l, r);
        break;
    case OP_TUPLE:
        if (op_of(g, r) == OP_pick)
            narrow_pick(l, r);
        else
            in_f32(l, r);
        break;
    default: /* an op with a kernel of its own: sums */
        in_f32(l, r);
    }
}

static void copy_roots(Level *l)
{
    int result = 0;
    for (int i = 0; i < l->from->root.n; i++) {
        Root root = l->from->root.at[i];
        bool emitted = root.kind == ROOT_RESULT && result++ >= l->outside->carried;
        root.ref = is_f32(l->from, root.ref) && !emitted ? wide_of(l, root.ref) : l->map[root.ref];
        vec_push(&l->to->arena, &l->to->root, root);
    }
}

static void narrow_level(Level *l)
{
    int n = l->from->node.n;
    const Origin *origin = l->to->origin;
    l->given = NEW_ARRAY(l->arena, bool, n);
    l->fixed = NEW_ARRAY(l->arena, bool, n);
    l->product = NEW_ARRAY(l->arena, bool, n);
    l->reduced = NEW_ARRAY(l->arena, bool, n);
    l->inner = NEW_ARRAY(l->arena, bool, n);
    l->width = NEW_ARRAY(l->arena, Width, n);
    l->of = NEW_ARRAY(l->arena, Ref, n);
    l->map = NEW_ARRAY(l->arena, Ref, n);
    l->as_wide = NEW_ARRAY(l->arena, Ref, n);
    l->as_half = NEW_ARRAY(l->arena, Ref, n);
    l->as_stored = NEW_ARRAY(l->arena, Ref, n);
    l->read = NEW_ARRAY(l->arena, Ref, n);
    find_given(l);
    find_reduced(l);
    find_inner(l);
    for (Ref r = 1; r < (Ref)n; r++)
        narrow_node(l, r);
    copy_roots(l);
    l->to->origin = origin;
}

Graph *narrow(const Graph *g, DType half, double loss_scale)
{
    Arena arena = {0};
    Level top = {.half = half, .loss_scale = loss_scale, .arena = &arena, .from = g};
    top.to = graph_new(g->cx, g->name);
    narrow_level(&top);
    top.to->origin = g->origin;
    arena_free(&arena);
    return top.to;
}
