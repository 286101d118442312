/* What follows the gradients in a step: clipping, the optimizer, the finite flag that
 * guards every assignment, and the counters. */
#include "eval.h"

#include <math.h>
#include <string.h>

typedef struct Grad {
    int32_t slot;
    Ref ref;
} Grad;

typedef struct Updating {
    Build *b;
    VEC(Grad) grad; /* of trained parameters, in the order of the roots */
    Ref loss, finite;
} Updating;

/* Takes the gradients out of the roots: a step does not keep them. */
static void take_gradients(Updating *u)
{
    Graph *g = u->b->g;
    int kept = 0;
    for (int i = 0; i < g->root.n; i++) {
        const Root r = g->root.at[i];
        if (r.kind == ROOT_GRADIENT && r.slot >= 0)
            vec_push(&u->b->arena, &u->grad, ((Grad){r.slot, r.ref}));
        if (r.kind == ROOT_LOSS)
            u->loss = r.ref;
        if (r.kind != ROOT_GRADIENT && r.kind != ROOT_OTHER)
            g->root.at[kept++] = r;
    }
    g->root.n = kept;
}

static void assign_slot(Updating *u, int32_t slot, Ref r, bool guarded)
{
    Graph *g = u->b->g;
    graph_root(g, ROOT_ASSIGN, u->b->m->pinned.slot.at[slot].name, r, slot, -1);
    g->root.at[g->root.n - 1].guarded = guarded;
}

/* ---- clipping and the finite flag ---------------------------------------- */

/* The sum of all squares, gradient after gradient; f64 if one of them is. */
static Ref squares(Updating *u)
{
    Graph *g = u->b->g;
    DType t = F32;
    for (int i = 0; i < u->grad.n; i++)
        if (type_of(g, u->grad.at[i].ref)->dtype == F64)
            t = F64;
    Ref total = NONE;
    for (int i = 0; i < u->grad.n; i++) {
        Ref x = g_cast(g, t, u->grad.at[i].ref);
        Ref square = g_mul(g, x, x);
        Ref sum = g_sum_all(g, square);
        total = total == NONE ? sum : g_add(g, total, sum);
    }
    return total;
}

static bool is_scaled(const Updating *u)
{
    return u->b->m->train.clip == CLIP_NORM && u->grad.n > 0;
}

/* Every gradient times min(1, limit / (norm + 1e-6)), as PyTorch's clip_grad_norm_. */
static void clip_norm(Updating *u, Ref total)
{
    Graph *g = u->b->g;
    Type t = *type_of(g, total);
    Ref norm = g_unary(g, OP_sqrt, total);
    Ref tiny = g_const(g, t.dtype, 1e-6);
    Ref above = g_add(g, norm, tiny);
    Ref limit = g_const(g, t.dtype, u->b->m->train.clip_at);
    Ref ratio = g_div(g, limit, above);
    Ref one = g_const(g, t.dtype, 1);
    Ref factor = g_binary(g, OP_min, one, ratio);
    for (int i = 0; i < u->grad.n; i++) {
        Grad *x = &u->grad.at[i];
        Ref f = g_cast(g, type_of(g, x->ref)->dtype, factor);
        f = g_broadcast_like(g, f, x->ref);
        x->ref = g_mul(g, x->ref, f);
    }
}

static void clip_value(Updating *u)
{
    Graph *g = u->b->g;
    double limit = u->b->m->train.clip_at;
    for (int i = 0; i < u->grad.n; i++) {
        Grad *x = &u->grad.at[i];
        Ref high = g_full(g, *type_of(g, x->ref), limit);
        Ref low = g_full(g, *type_of(g, x->ref), -limit);
        Ref capped = g_binary(g, OP_min, x->ref, high);
        x->ref = g_binary(g, OP_max, capped, low);
    }
}

/* loss and gradients are finite; total: the sum of the gradients' squares, if known. */
static void make_flag(Updating *u, Ref total)
{
    Graph *g = u->b->g;
    Guard guard = u->b->m->train.guard;
    if (guard == GUARD_OFF)
        return;
    u->finite = g_unary(g, OP_is_finite, u->loss);
    if (guard == GUARD_GRADIENTS && total != NONE) {
        Ref ok = g_unary(g, OP_is_finite, total);
        u->finite = g_binary(g, OP_and, u->finite, ok);
    }
    for (int i = 0; i < u->grad.n && guard == GUARD_GRADIENTS && total == NONE; i++) {
        Ref ok = g_all_finite(g, u->grad.at[i].ref);
        u->finite = g_binary(g, OP_and, u->finite, ok);
    }
    graph_root(g, ROOT_FINITE, "finite", u->finite, -1, -1);
}

static void clip(Updating *u)
{
    Ref total = is_scaled(u) ? squares(u) : NONE;
    make_flag(u, total);
    if (total != NONE)
        clip_norm(u, total);
    if (u->b->m->train.clip == CLIP_VALUE)
        clip_value(u);
}

/* ---- the optimizer ------------------------------------------------------- */

typedef struct Optimizer {
    Module *in;
    const Item *item;
    const Expr *call;
    int n; /* arguments: p, g and those of the setting */
    const Value **value;
    Span *span;
    int lr; /* which is the learning rate, or -1 */
} Optimizer;

/* An f64 where every parameter is: a rate that is rounded to f32 would be all that is inexact. */
static DType rate_type(const Model *m)
{
    bool some = false;
    for (int i = 0; i < m->pinned.slot.n; i++) {
        const Slot *slot = &m->pinned.slot.at[i];
        if (slot->kind == SLOT_PARAM && slot->type.dtype != F64)
            return F32;
        some |= slot->kind == SLOT_PARAM;
    }
    return some ? F64 : F32;
}

/* The slot `lr`: the caller may set a rate; as long as it is NaN the schedule holds. */
static Ref learning_rate(Build *b, const Value *schedule, Span span)
{
    Type t = type_scalar(rate_type(b->m));
    if (b->m->lr < 0) {
        int n = b->m->pinned.slot.n;
        int32_t slot = model_slot(b->m, "lr", SLOT_SCALAR, &t, NULL);
        if (slot < n) {
            Diag *d = complain(b, E0302, b->m->pinned.slot.at[slot].origin->span,
                               "`lr` is the learning rate, which a program may set");
            diag_help(b->cx, d, "give the %s another name",
                      b->m->pinned.slot.at[slot].kind == SLOT_PARAM ? "parameter" : "state");
            return NONE;
        }
        b->m->lr = slot;
        b->m->init.at[b->m->lr].a = (double)NAN;
        b->m->pinned.slot.at[b->m->lr].doc = "learning rate; NaN: that of the schedule";
    }
    Ref rate = want_tensor(b, schedule, span, t.dtype);
    if (rate == NONE)
        return NONE;
    const Type *is = type_of(b->g, rate);
    if (is->rank != 0 || !dtype_is_float(is->dtype)) {
        complain(b, E0508, span, "the learning rate is one number, and this is %s",
                 type_text(&b->cx->perm, is));
        return NONE;
    }
    at(b, span);
    rate = g_cast(b->g, t.dtype, rate);
    Ref set = g_slot(b->g, b->m->lr, t);
    Ref known = g_binary(b->g, OP_eq, set, set); /* not NaN */
    return g_where(b->g, known, set, rate);
}

/* What the setting gives, once for all parameters. */
static bool eval_setting(Build *b, Optimizer *o)
{
    const Args *formal = &o->item->def.arg;
    o->n = formal->n;
    o->value = NEW_ARRAY(&b->arena, const Value *, o->n);
    o->span = NEW_ARRAY(&b->arena, Span, o->n);
    o->lr = -1;
    if (!eval_arguments(b, o->item, 2, o->call, o->value, o->span))
        return false;
    for (int i = 2; i < o->n; i++) {
        if (o->value[i] == NULL)
            continue;
        if (o->value[i]->kind == VALUE_POISON)
            return false;
        if (strcmp(formal->at[i].name.text, "lr") == 0)
            o->lr = i;
    }
    if (o->lr < 0)
        return true;
    Ref lr = learning_rate(b, o->value[o->lr], o->span[o->lr]);
    o->value[o->lr] = value_tensor(&b->arena, b->g, lr);
    return lr != NONE;
}

static bool report_result(Build *b, const Optimizer *o, const Value *v, const Slot *s)
{
    if (v->kind == VALUE_POISON)
        return false;
    Diag *d =
        complain(b, E0508, o->call->span, "`%s` returns %s for %s, which is %s", o->item->name.text,
                 value_text(&b->cx->perm, v), s->name, type_text(&b->cx->perm, &s->type));
    diag_note(b->cx, d, o->item->name.span, "`%s` is defined here", o->item->name.text);
    return false;
}

static bool update_one(Updating *u, const Optimizer *o, const Grad *grad)
{
    Build *b = u->b;
    Slot s = b->m->pinned.slot.at[grad->slot];
    const Value **value = NEW_ARRAY(&b->arena, const Value *, o->n);
    memcpy(value, o->value, sizeof *value * (size_t)o->n);
    at(b, o->call->span);
    value[0] = value_tensor(&b->arena, b->g, g_slot(b->g, grad->slot, s.type));
    value[1] = value_tensor(&b->arena, b->g, grad->ref);
    for (int i = 2; i < o->n; i++) /* run-time numbers take the parameter's type */
        if (value[i] != NULL && value[i]->kind == VALUE_TENSOR) {
            Ref cast = g_cast(b->g, s.type.dtype, value[i]->ref);
            value[i] = value_tensor(&b->arena, b->g, cast);
        }
    b->of = grad->slot;
    const Value *v = run_item(b, o->in, o->item, value, o->span, o->call->span, b->frame->instance);
    Ref r = v->kind == VALUE_TENSOR ? v->ref : NONE;
    if (r == NONE || !type_same(type_of(b->g, r), &s.type))
        return report_result(b, o, v, &s);
    assign_slot(u, grad->slot, r, b->m->train.guard != GUARD_OFF);
    return true;
}

static bool optimize(Updating *u)
{
    Build *b = u->b;
    Optimizer o = {.call = b->m->train.optimizer};
    o.item = find_optimizer(b, o.call, &o.in);
    if (o.item == NULL || !eval_setting(b, &o))
        return false;
    b->optimizer = o.item->name.text;
    for (int i = 0; i < u->grad.n; i++)
        if (!update_one(u, &o, &u->grad.at[i]))
            return false;
    for (int i = 0; i < b->update.n; i++)
        assign_slot(u, b->update.at[i].slot, b->update.at[i].ref, b->m->train.guard != GUARD_OFF);
    return true;
}

/* ---- counters ------------------------------------------------------------ */

static void count(Updating *u)
{
    Build *b = u->b;
    Graph *g = b->g;
    g->origin = NULL;
    Ref one = g_const_int(g, I64, 1);
    Ref next = g_add(g, step_value(b), one);
    assign_slot(u, b->m->pinned.step_counter, next, b->m->train.guard != GUARD_OFF);
    if (u->finite == NONE)
        return;
    Ref failed = g_unary(g, OP_not, u->finite);
    Ref add = g_cast(g, I64, failed);
    Ref skipped = g_slot(g, b->m->pinned.skipped_counter, type_scalar(I64));
    Ref more = g_add(g, skipped, add);
    assign_slot(u, b->m->pinned.skipped_counter, more, false);
}

static void guard_state(Updating *u)
{
    Graph *g = u->b->g;
    for (int i = 0; i < g->root.n; i++)
        if (g->root.at[i].kind == ROOT_ASSIGN)
            g->root.at[i].guarded = u->b->m->train.guard != GUARD_OFF;
}

bool build_update(Ctx *cx, Model *m, Graph *g)
{
    Build b = build_begin(m, ENTRY_STEP, g);
    Frame frame;
    Scope scope;
    Instance top;
    Updating u = {.b = &b};
    b.updating = true;
    enter_train(&b, &frame, &scope, &top);
    frame.call = m->train.optimizer->span;
    g->origin = origin_at(m, m->train.item->name.span, NULL, NULL);
    take_gradients(&u);
    guard_state(&u);
    clip(&u);
    bool fine = optimize(&u);
    if (fine)
        count(&u);
    fine = fine && cx->n_errors == b.n_errors;
    build_end(&b);
    return fine;
}

Graph *build_rate(Ctx *cx, Model *m)
{
    Graph *g = graph_new(cx, m->item->name.text);
    Build b = build_begin(m, ENTRY_STEP, g);
    Frame frame;
    Scope scope;
    Instance top;
    Optimizer o = {.call = m->train.optimizer};
    b.updating = true;
    enter_train(&b, &frame, &scope, &top);
    frame.call = o.call->span;
    g->origin = origin_at(m, m->train.item->name.span, NULL, NULL);
    o.item = find_optimizer(&b, o.call, &o.in);
    if (o.item != NULL && eval_setting(&b, &o) && o.lr >= 0)
        graph_root(g, ROOT_OTHER, "lr", o.value[o.lr]->ref, -1, -1);
    build_end(&b);
    return g;
}
