/* Reverse mode: one sweep from the last node to the first, in which each op's rule turns the
 * cotangent of its result into cotangents of its operands.
 *
 * A value's cotangents are added as they come, so that one running sum is held and not
 * one for each use: the order of the adds is that of the reverse nodes.
 *
 * Activity. Only what depends on an x gets a cotangent, and only what reaches a y has one to
 * hand on. A value that is no float has no derivative. Where it chooses (where, gather) the
 * derivative is that of what is chosen; where it is made a float again (cast), the derivative is 0
 * in most places and missing in the others: this is reported, with the op that lost it. */
#include <assert.h>
#include <string.h>
#include "pass.h"

/* A tuple is taken for floats. */
static bool is_real(const Graph *g, Ref r)
{
    const Type *t = type_of(g, r);
    return t->rank < 0 || dtype_is_float(t->dtype);
}

static bool has_real_operand(const Graph *g, Ref r)
{
    for (int i = 0; i < node(g, r)->n_args; i++)
        if (is_real(g, arg(g, r, i)))
            return true;
    return false;
}

static void follow(const Graph *g, bool *dep, Arena *a);

/* By result of a scan, of whose operands dep[] tells: what the body makes of those. What a carry
 * depends on in one step it does in the next: until nothing changes. */
static bool *results_depend(const Graph *g, Ref scan, const bool *dep, Arena *a)
{
    const Graph *body = attr(g, scan, SCAN_BODY)->body;
    int n = node(g, scan)->n_args, carries = scan_of(g, scan).carries;
    bool *operand = NEW_ARRAY(a, bool, n), *result = NEW_ARRAY(a, bool, body->root.n);
    bool *inside = NEW_ARRAY(a, bool, body->node.n);
    for (int i = 0; i < n; i++)
        operand[i] = dep[arg(g, scan, i)];
    for (bool more = true; more;) {
        memset(inside, 0, sizeof *inside * (size_t)body->node.n);
        for (Ref r = 1; r < (Ref)body->node.n; r++)
            inside[r] =
                op_of(body, r) == OP_arg && attr(body, r, 0)->i < n && operand[attr(body, r, 0)->i];
        follow(body, inside, a);
        more = false;
        for (int i = 0, k = 0; i < body->root.n; i++) {
            if (body->root.at[i].kind != ROOT_RESULT)
                continue;
            result[k] = inside[body->root.at[i].ref] || (k < carries && operand[k]);
            more = more || (k < carries && result[k] && !operand[k]);
            if (k < carries)
                operand[k] = result[k];
            k++;
        }
    }
    return result;
}

/* The rest of dep[], of which nodes on whom something is to depend are set. */
static void follow(const Graph *g, bool *dep, Arena *a)
{
    bool **of_scan = NEW_ARRAY(a, bool *, g->node.n);
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        if (op_of(g, r) == OP_stop_gradient) /* the path ends here, whatever comes before */
            continue;
        if (op_of(g, r) == OP_pick && op_of(g, arg(g, r, 0)) == OP_scan) {
            Ref scan = arg(g, r, 0);
            if (dep[scan] && of_scan[scan] == NULL)
                of_scan[scan] = results_depend(g, scan, dep, a);
            dep[r] = dep[r] || (dep[scan] && of_scan[scan][attr(g, r, 0)->i]);
            continue;
        }
        bool only_real = is_real(g, r) && has_real_operand(g, r);
        for (int i = 0; i < node(g, r)->n_args && !dep[r]; i++) {
            Ref x = arg(g, r, i);
            dep[r] = dep[x] && (is_real(g, x) || !only_real);
        }
    }
}

bool *depends_on(const Graph *g, const Ref *xs, int n_xs, Arena *a)
{
    bool *dep = NEW_ARRAY(a, bool, g->node.n);
    for (int i = 0; i < n_xs; i++)
        dep[xs[i]] = true;
    follow(g, dep, a);
    return dep;
}

typedef struct Sweep {
    Ctx *cx;
    Graph *g;
    Ref end; /* nodes before the sweep */
    const bool *dep;
    Ref *ct;    /* by node; NONE: none so far */
    bool *seen; /* by node: report_lost() has been there */
    bool failed;
} Sweep;

/* ---- what has no derivative ------------------------------------------------------ */

/* After a report the sweep goes on with zeros, to find all others. */
static void go_on(Sweep *s, Ref x)
{
    Type t = *type_of(s->g, x);
    if (s->ct[x] == NONE && s->dep[x] && is_real(s->g, x) && t.rank >= 0)
        s->ct[x] = g_zeros(s->g, &t);
}

static void report(Sweep *s, Ref r)
{
    const Op *op = optab[op_of(s->g, r)];
    const Origin *o = node(s->g, r)->origin;
    const char *why = op->nondiff != NULL ? op->nondiff : "its result is not a float";
    size_t reason = strcspn(why, ";"); /* what stands behind it is advice */
    bool turned = op_of(s->g, r) == OP_lt || op_of(s->g, r) == OP_le; /* x > y is y < x */
    const char *what = turned ? "a comparison" : arena_printf(&s->cx->scratch, "`%s`", op_word(op));
    Diag *d = diag_error(s->cx, E0410, o != NULL ? o->span : NO_SPAN,
                         "no gradient can pass %s: %.*s", what, (int)reason, why);
    d->origin = o;
    diag_help(s->cx, d, "say `stop_gradient` if none is wanted%s", why + reason);
    s->failed = true;
    for (int i = 0; i < node(s->g, r)->n_args; i++)
        go_on(s, arg(s->g, r, i));
}

/* Reports each op behind r that made something else of a float. */
static void report_lost(Sweep *s, Ref r)
{
    bool lost = false;
    if (s->seen[r])
        return;
    s->seen[r] = true;
    for (int i = 0; i < node(s->g, r)->n_args; i++) {
        Ref x = arg(s->g, r, i);
        if (s->dep[x] && is_real(s->g, x))
            lost = true;
        else if (s->dep[x])
            report_lost(s, x);
    }
    if (lost)
        report(s, r);
}

/* ---- the sweep -------------------------------------------------------------------- */

static Ref add_members(Graph *g, Ref x, Ref y)
{
    int n = node(g, x)->n_args;
    ArenaMark mark = arena_mark(&g->cx->scratch);
    Ref *sum = NEW_ARRAY(&g->cx->scratch, Ref, n);
    for (int i = 0; i < n; i++) {
        Ref a = arg(g, x, i), b = arg(g, y, i);
        sum[i] = a == NONE ? b : b == NONE ? a : g_add_parts(g, a, b);
    }
    Ref all = g_tuple(g, sum, n);
    arena_reset(&g->cx->scratch, mark);
    return all;
}

static void add_cotangent(Sweep *s, Ref x, Ref d)
{
    Graph *g = s->g;
    assert(type_of(g, x)->rank < 0 || type_same(type_of(g, x), type_of(g, d)));
    if (s->ct[x] == NONE)
        s->ct[x] = d;
    else if (type_of(g, x)->rank < 0)
        s->ct[x] = add_members(g, s->ct[x], d);
    else
        s->ct[x] = g_add_parts(g, s->ct[x], d);
}

/* Hands the cotangent of r on to its operands. */
static void apply_rule(Sweep *s, Ref r)
{
    Graph *g = s->g;
    const Op *op = optab[op_of(g, r)];
    int n = node(g, r)->n_args;
    ArenaMark mark = arena_mark(&s->cx->scratch);
    Ref *d = NEW_ARRAY(&s->cx->scratch, Ref, n);
    for (int i = 0; i < n; i++) {
        Ref x = arg(g, r, i);
        d[i] = s->dep[x] && is_real(g, x) ? REF_ZERO : NONE;
    }
    /* What is asked of a value is not asked of its cotangent. */
    g->origin = origin_unkept(s->cx, node(g, r)->origin);
    op->vjp(g, r, s->ct[r], d);
    for (int i = 0; i < n; i++) {
        Ref x = arg(g, r, i);
        if (!s->dep[x] || !is_real(g, x) || d[i] == REF_ZERO)
            continue;
        if (d[i] != NONE) {
            add_cotangent(s, x, d[i]);
        } else { /* reported */
            s->failed = true;
            go_on(s, x);
        }
    }
    arena_reset(&s->cx->scratch, mark);
}

static bool has_dependent_operand(const Sweep *s, Ref r)
{
    for (int i = 0; i < node(s->g, r)->n_args; i++)
        if (s->dep[arg(s->g, r, i)])
            return true;
    return false;
}

/* What a gradient is taken by may come from an op that has none: the way ends there. */
static void visit(Sweep *s, Ref r)
{
    const Op *op = optab[op_of(s->g, r)];
    if (!has_dependent_operand(s, r))
        return;
    if (!has_real_operand(s->g, r))
        report_lost(s, r);
    else if (op->vjp == NULL)
        report(s, r);
    else
        apply_rule(s, r);
}

bool pullback(Ctx *cx, Graph *g, const Ref *ys, const Ref *cts, int n_ys, const Ref *xs, int n_xs,
              Ref *ds)
{
    const Origin *origin = g->origin;
    ArenaMark mark = arena_mark(&cx->scratch);
    Sweep s = {.cx = cx, .g = g, .end = (Ref)g->node.n};
    s.dep = depends_on(g, xs, n_xs, &cx->scratch);
    s.ct = NEW_ARRAY(&cx->scratch, Ref, s.end);
    s.seen = NEW_ARRAY(&cx->scratch, bool, s.end);
    for (int i = 0; i < n_ys; i++)
        if (cts[i] != NONE && cts[i] != REF_ZERO && s.dep[ys[i]])
            add_cotangent(&s, ys[i], cts[i]);
    for (Ref r = s.end - 1; r >= 1; r--)
        if (s.ct[r] != NONE && s.dep[r])
            visit(&s, r);
    for (int i = 0; i < n_xs; i++)
        ds[i] = s.ct[xs[i]] != NONE ? s.ct[xs[i]] : REF_ZERO;
    arena_reset(&cx->scratch, mark);
    g->origin = origin;
    return !s.failed;
}

/* ---- gradients of a loss ------------------------------------------------------------- */

/* The nodes whose cotangents an entry gives. */
typedef struct Wanted {
    VEC(Ref) x;
    Ref *d; /* of loss_scale times the loss */
    double loss_scale;
} Wanted;

static bool is_trained(const Pinned *pin, int64_t slot)
{
    return pin->slot.at[slot].kind == SLOT_PARAM && !pin->slot.at[slot].frozen;
}

static bool is_wanted(const Pinned *pin, int64_t input)
{
    return input < pin->input.n && pin->input.at[input].with_grad;
}

static void collect(const Graph *g, const Pinned *pin, Arena *a, Wanted *w)
{
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        bool slot = op_of(g, r) == OP_slot && is_trained(pin, attr(g, r, 0)->i);
        bool input = op_of(g, r) == OP_input && is_wanted(pin, attr(g, r, 0)->i);
        if (slot || input)
            vec_push(a, &w->x, r);
    }
    w->d = NEW_ARRAY(a, Ref, w->x.n);
}

/* Without the loss scale; in f32 at least, where it is exact. */
static Ref unscaled(Graph *g, Ref d, double loss_scale)
{
    if (d == REF_ZERO || loss_scale == 1)
        return d;
    DType t = type_of(g, d)->dtype;
    if (t == F32 || t == F64)
        return g_scale(g, d, 1 / loss_scale);
    Ref wide = g_cast(g, F32, d);
    wide = g_scale(g, wide, 1 / loss_scale);
    return g_cast(g, t, wide);
}

/* The sum over the nodes that read one slot or input; REF_ZERO: the loss has no gradient. */
static Ref gradient_of(Graph *g, const Wanted *w, OpId op, int64_t index)
{
    Ref sum = REF_ZERO;
    for (int i = 0; i < w->x.n; i++) {
        Ref x = w->x.at[i];
        if (op_of(g, x) != op || attr(g, x, 0)->i != index || w->d[i] == REF_ZERO)
            continue;
        sum = sum == REF_ZERO ? w->d[i] : g_add_parts(g, sum, w->d[i]);
    }
    return unscaled(g, sum, w->loss_scale);
}

static void warn_unused(Ctx *cx, const char *what, const char *name, const Origin *o)
{
    Diag *d = diag_warning(cx, E0411, o != NULL ? o->span : NO_SPAN,
                           "the loss does not depend on the %s `%s`", what, name);
    d->origin = o;
}

static void add_slots(Ctx *cx, Graph *g, const Pinned *pin, const Wanted *w)
{
    for (int32_t i = 0; i < pin->slot.n; i++) {
        if (!is_trained(pin, i))
            continue;
        const Slot *slot = &pin->slot.at[i];
        g->origin = slot->origin;
        Ref d = gradient_of(g, w, OP_slot, i);
        if (d == REF_ZERO)
            warn_unused(cx, "parameter", slot->name, slot->origin);
        else
            graph_root(g, ROOT_GRADIENT, slot->name, d, i, -1);
    }
}

/* A gradient that was asked for is given, even if it is zero. */
static void add_inputs(Ctx *cx, Graph *g, const Pinned *pin, const Wanted *w)
{
    for (int32_t i = 0; i < pin->input.n; i++) {
        const GraphInput *in = &pin->input.at[i];
        if (!in->with_grad)
            continue;
        g->origin = in->origin;
        Ref d = gradient_of(g, w, OP_input, i);
        if (d == REF_ZERO) {
            warn_unused(cx, "input", in->name, in->origin);
            d = g_zeros(g, &in->type);
        }
        graph_root(g, ROOT_GRADIENT, in->name, d, -1, i);
    }
}

static Ref find_loss(const Graph *g)
{
    for (int i = 0; i < g->root.n; i++)
        if (g->root.at[i].kind == ROOT_LOSS)
            return g->root.at[i].ref;
    return NONE;
}

bool vjp(Ctx *cx, Graph *g, const Pinned *pin, double loss_scale)
{
    const Origin *origin = g->origin;
    ArenaMark mark = arena_mark(&cx->scratch);
    Wanted w = {.loss_scale = loss_scale};
    Ref loss = find_loss(g);
    assert(loss != NONE && rank(g, loss) == 0 && dtype_is_float(type_of(g, loss)->dtype));
    collect(g, pin, &cx->scratch, &w);
    g->n_primal = (Ref)g->node.n;
    g->origin = node(g, loss)->origin;
    Ref seed = g_const(g, type_of(g, loss)->dtype, loss_scale);
    bool fine = pullback(cx, g, &loss, &seed, 1, w.x.at, w.x.n, w.d);
    if (fine) {
        add_slots(cx, g, pin, &w);
        add_inputs(cx, g, pin, &w);
    }
    arena_reset(&cx->scratch, mark);
    g->origin = origin;
    return fine;
}
