/* Declarations: inputs, parameters, state, and the slots of the counters. */
#include "eval.h"

#include <string.h>

/* ---- types --------------------------------------------------------------- */

static bool eval_dtype(Build *b, const TypeExpr *t, DType *out)
{
    if (t->of != NULL) {
        const Value *v = eval(b, t->of);
        return want_dtype(b, v, t->of->span, out);
    }
    if (dtype_find(t->dtype.text, out))
        return true;
    const char *known[N_DTYPES];
    for (int i = 0; i < N_DTYPES; i++)
        known[i] = dtype_name((DType)i);
    Diag *d = complain(b, E0210, t->dtype.span, "there is no type `%s`", t->dtype.text);
    suggest(b, d, t->dtype.text, known, N_DTYPES);
    if (d->help == NULL)
        diag_help(b->cx, d, "the types are f32, f64, f16, bf16, i32, i64, u8 and bool");
    return false;
}

/* One entry of `[out, 3 * n, size]`: an integer, or a list of them. */
static bool eval_dim(Build *b, const Expr *e, Type *t)
{
    int64_t dim[MAX_RANK];
    int n;
    const Value *v = eval(b, e);
    if (!want_ints(b, v, e->span, "a size", dim, MAX_RANK, &n))
        return false;
    for (int i = 0; i < n; i++) {
        if (dim[i] < 0) {
            complain(b, E0208, e->span, "a size is not negative, and this is %lld",
                     (long long)dim[i]);
            return false;
        }
        if (t->rank == MAX_RANK) {
            complain(b, E0910, e->span, "more than %d axes", MAX_RANK);
            return false;
        }
        t->dim[t->rank++] = dim[i];
    }
    return true;
}

bool eval_type(Build *b, const TypeExpr *t, Type *out)
{
    *out = type_scalar(F32);
    bool fine = eval_dtype(b, t, &out->dtype);
    for (int i = 0; i < t->dim.n; i++)
        fine = eval_dim(b, t->dim.at[i], out) && fine;
    if (!fine || type_fits(out))
        return fine;
    complain(b, E0911, t->span, "%s is more than 128 TiB, or has an axis of more than 2^40",
             type_text(&b->cx->perm, out));
    return false;
}

/* ---- inputs -------------------------------------------------------------- */

static int32_t find_input(const Pinned *p, const char *name)
{
    for (int32_t i = 0; i < p->input.n; i++)
        if (p->input.at[i].name == name)
            return i;
    return -1;
}

static bool eval_range(Build *b, const Stmt *s, const Type *t, GraphInput *in)
{
    if (s->declare.low == NULL)
        return true;
    const Value *low = eval(b, s->declare.low), *high = eval(b, s->declare.high);
    if (!want_int(b, low, s->declare.low->span, "the start of a range", &in->lo) ||
        !want_int(b, high, s->declare.high->span, "the end of a range", &in->hi))
        return false;
    Span both = span_join(s->declare.low->span, s->declare.high->span);
    if (!dtype_is_int(t->dtype)) {
        complain(b, E0214, both, "only integers have a range, and this is %s",
                 type_text(&b->cx->perm, t));
        return false;
    }
    if (in->lo >= in->hi) {
        complain(b, E0214, both, "nothing lies in %lld..%lld", (long long)in->lo,
                 (long long)in->hi);
        return false;
    }
    in->ranged = true;
    return true;
}

/* Is the first extent written `batch`, the model's argument? */
static bool is_batch(const Build *b, const TypeExpr *t)
{
    if (b->m->batch == 0 || t->dim.n == 0)
        return false;
    const Expr *first = t->dim.at[0];
    return first->kind == EXPR_NAME && first->name.module.text == NULL &&
           strcmp(first->name.name.text, "batch") == 0;
}

/* Each name once in a build. */
static bool declared_before(Build *b, Name name, const char *full)
{
    int32_t i = map_get(&b->declared_at, full);
    if (i < 0)
        return false;
    Diag *d = complain(b, E0302, name.span, "a second `%s`", full);
    diag_note(b->cx, d, user_span(b, b->declared.at[i].at), "the first is declared here");
    diag_help(b->cx, d, "what is declared in a loop belongs into a `block`, called `as name[i]`");
    return true;
}

static void note_declared(Build *b, const Declared *d)
{
    vec_push(&b->arena, &b->declared, *d);
    map_set(&b->arena, &b->declared_at, d->name, b->declared.n - 1);
}

static void input_one(Build *b, const Stmt *s, Name name, const GraphInput *proto)
{
    if (declared_before(b, name, name.text)) {
        bind(b, name, &value_poison, BIND_INPUT);
        return;
    }
    Pinned *p = &b->m->pinned;
    int32_t i = find_input(p, name.text);
    at(b, name.span);
    if (i < 0) {
        GraphInput in = *proto;
        in.name = name.text;
        in.origin = b->g->origin;
        vec_push(p->arena, &p->input, in);
        vec_push(p->arena, &b->m->inferred, false);
        i = p->input.n - 1;
    }
    if (!type_same(&p->input.at[i].type, &proto->type)) {
        complain(b, E0312, s->declare.type.span, "`%s` is %s in training, and %s otherwise",
                 name.text,
                 type_text(&b->cx->perm, b->training ? &proto->type : &p->input.at[i].type),
                 type_text(&b->cx->perm, b->training ? &p->input.at[i].type : &proto->type));
        bind(b, name, &value_poison, BIND_INPUT);
        return;
    }
    const Value *v = made(b, g_input(b->g, i, proto->type));
    bind(b, name, v, BIND_INPUT);
    note_declared(b, &(Declared){name.text, name.span, proto->type, v});
}

void declare_input(Build *b, const Stmt *s)
{
    GraphInput in = {.with_grad = s->declare.with_grad, .batch_axis = -1, .doc = s->doc};
    bool fine = eval_type(b, &s->declare.type, &in.type) && eval_range(b, s, &in.type, &in);
    if (fine && in.with_grad && !dtype_is_float(in.type.dtype)) {
        complain(b, E0331, s->declare.type.span, "only floats have a gradient, and this is %s",
                 type_text(&b->cx->perm, &in.type));
        fine = false;
    }
    if (is_batch(b, &s->declare.type))
        in.batch_axis = 0;
    for (int i = 0; i < s->declare.name.n; i++) {
        if (fine)
            input_one(b, s, s->declare.name.at[i], &in);
        else
            bind(b, s->declare.name.at[i], &value_poison, BIND_INPUT);
    }
}

/* ---- first values -------------------------------------------------------- */

static bool report_init(Build *b, const Stmt *s, Name name)
{
    Diag *d = complain(b, E0305, name.span, "`%s` has no first value", name.text);
    diag_help(b->cx, d,
              s->kind == STMT_STATE ? "say what it begins with: `= zeros`"
                                    : "say what it begins with: `= zeros`, `= "
                                      "normal(std = 0.02)`, `= kaiming_uniform(fan = n)`");
    return false;
}

static bool literal_init(Build *b, const Value *v, Span span, const Type *t, Init *out)
{
    int64_t dim[MAX_RANK];
    int r = shape_of(v, dim);
    Type is = type_make(t->dtype, r < 0 ? 0 : r, dim);
    if (r < 0 || !type_same(&is, t)) {
        if (r < 0)
            complain(b, E0306, span, "the lists of a first value have equal lengths");
        else
            complain(b, E0306, span, "a first value of shape %s for %s",
                     type_text(&b->cx->perm, &is) + strlen(dtype_name(t->dtype)),
                     type_text(&b->cx->perm, t));
        return false;
    }
    Type type;
    void *data; /* made again by init: now only for its mistakes */
    *out = (Init){.kind = INIT_LITERAL, .items = v};
    return literal_data(b, v, t->dtype, span, &type, &data);
}

static const Value *copy_value(Arena *a, const Value *v)
{
    Value *copy = NEW(a, Value);
    *copy = *v;
    if (value_is_items(v)) {
        const Value **item = NEW_ARRAY(a, const Value *, v->n);
        for (int i = 0; i < v->n; i++)
            item[i] = copy_value(a, v->item[i]);
        copy->item = item;
    }
    return copy;
}

static bool init_of(Build *b, const Value *v, Span span, const Type *t, Init *out)
{
    double f;
    int64_t i;
    if (v->kind == VALUE_POISON)
        return false;
    if (value_is_items(v))
        return literal_init(b, v, span, t, out);
    if (v->kind == VALUE_INIT) {
        *out = (Init){.kind = v->init.kind, .a = v->init.a, .b = v->init.b};
        out->i = v->init.kind == INIT_FILL ? (int64_t)v->init.a : 0;
        if (v->init.kind == INIT_FILL)
            return true;
        if (dtype_is_float(t->dtype))
            return draws_fit(b, t->dtype, v->init.kind, v->init.a, v->init.b, span);
        complain(b, E0306, span, "only floats are drawn, and this is %s",
                 type_text(&b->cx->perm, t));
        return false;
    }
    if (!value_is_number(v) && v->kind != VALUE_BOOL) {
        Diag *d = complain(b, E0305, span,
                           "a first value is a constant or an initialiser, and "
                           "this is %s",
                           value_kind_text(v));
        diag_help(b->cx, d,
                  "the initialisers are zeros, ones, uniform, normal, uniform_fan, "
                  "kaiming_*, xavier_*");
        return false;
    }
    if (!number_as(b, v, t->dtype, span, &f, &i))
        return false;
    *out = (Init){.kind = INIT_FILL, .a = f, .i = i};
    return true;
}

static bool eval_init(Build *b, const Stmt *s, const Type *t, Init *out)
{
    if (s->declare.init == NULL)
        return report_init(b, s, s->declare.name.at[0]);
    bool outer = b->in_init;
    b->in_init = true;
    const Value *v = eval(b, s->declare.init);
    b->in_init = outer;
    return init_of(b, v, s->declare.init->span, t, out);
}

/* ---- parameters and state ------------------------------------------------ */

static SlotKind slot_kind(const Build *b, const Stmt *s)
{
    if (b->updating)
        return SLOT_OPTIMIZER;
    return s->kind == STMT_PARAM ? SLOT_PARAM : SLOT_STATE;
}

/* "h.0.attn.c_attn.weight", "adamw.m:wte" */
static const char *slot_name(Build *b, Name name)
{
    const char *text;
    if (b->updating)
        text = copy_text(b, "%s.%s:%s", b->optimizer, name.text, b->m->pinned.slot.at[b->of].name);
    else
        text = copy_text(b, "%s%s", b->frame->instance->prefix, name.text);
    return intern(&b->cx->names, text);
}

static bool owns(const Instance *in, const char *name)
{
    for (int i = 0; i < in->own.n; i++)
        if (in->own.at[i] == name)
            return true;
    return false;
}

void report_shared(Build *b, const Instance *in)
{
    const Stmt *s = in->suspect;
    Diag *d = complain(b, E0306, in->at, "%s%s is %s, and would be %s here", in->prefix,
                       s->declare.name.at[0].text, type_text(&b->cx->perm, &in->was),
                       type_text(&b->cx->perm, &in->is));
    if (in->first != NULL)
        diag_note(b->cx, d, user_span(b, in->first->at), "%s was made here", in->name);
}

/* The parameters of a shared block are those of its first use. Where the shape differs,
 * the first operation that does not fit reports it in its own words. */
static void shared_slot(Build *b, const Stmt *s, Name name, const char *full, const Type *t)
{
    int32_t i = map_get(&b->declared_at, full);
    if (i < 0) {
        Diag *d = complain(b, E0303, name.span, "`%s` was not made by the first use", full);
        const Instance *first = b->frame->instance->first;
        if (first != NULL)
            diag_note(b->cx, d, user_span(b, first->at), "%s was made here", first->name);
        bind(b, name, &value_poison, BIND_PARAM);
        return;
    }
    const Declared *d = &b->declared.at[i];
    Instance *in = b->frame->instance;
    if (!type_same(&d->type, t) && in->suspect == NULL) {
        in->suspect = s;
        in->was = d->type;
        in->is = *t;
    }
    int32_t slot = map_get(&b->m->slots, full);
    const Update *before = pending_update(b, slot);
    const Value *v = before == NULL ? d->value : value_tensor(&b->arena, b->top, before->ref);
    bind_slot(b, name, v, s->kind == STMT_STATE ? BIND_STATE : BIND_PARAM, slot);
}

static void slot_one(Build *b, const Stmt *s, Name name, const Type *t, const Init *init)
{
    const char *full = slot_name(b, name);
    Instance *in = b->frame->instance;
    if (in->shared && !b->updating && !owns(in, full)) {
        vec_push(&b->arena, &in->own, full);
        shared_slot(b, s, name, full, t);
        return;
    }
    if (declared_before(b, name, full)) {
        bind(b, name, &value_poison, BIND_PARAM);
        return;
    }
    at(b, name.span);
    Model *m = b->m;
    bool new = map_get(&m->slots, full) < 0;
    int32_t slot = model_slot(m, full, slot_kind(b, s), t, b->g->origin);
    if (new) {
        m->pinned.slot.at[slot].doc = s->doc;
        m->pinned.slot.at[slot].of = b->of;
        m->init.at[slot] = *init;
        if (init->items != NULL)
            m->init.at[slot].items = copy_value(m->arena, init->items);
        if (s->kind == STMT_PARAM && !b->updating)
            train_freeze(m, slot);
    } else if (!type_same(&m->pinned.slot.at[slot].type, t)) {
        complain(b, E0312, s->declare.type.span, "`%s` is %s in one entry and %s in another", full,
                 type_text(&b->cx->perm, &m->pinned.slot.at[slot].type),
                 type_text(&b->cx->perm, t));
    }
    Value v = {.kind = VALUE_TENSOR, .graph = b->top};
    b->top->origin = b->g->origin;
    v.ref = g_slot(b->top, slot, *t);
    const Value *kept = value_tensor(&b->arena, b->top, v.ref);
    bind_slot(b, name, kept, s->kind == STMT_STATE ? BIND_STATE : BIND_PARAM, slot);
    note_declared(b, &(Declared){full, name.span, *t, kept});
}

void declare_slot(Build *b, const Stmt *s)
{
    Type t;
    Init init = {.kind = INIT_FILL};
    bool fine = eval_type(b, &s->declare.type, &t);
    if (fine && s->kind == STMT_PARAM && !dtype_is_float(t.dtype)) {
        Diag *d = complain(b, E0331, s->declare.type.span,
                           "a parameter is of floats, and this is %s", type_text(&b->cx->perm, &t));
        diag_help(b->cx, d,
                  "what a step changes by itself is `state`; what never changes is a "
                  "constant");
        fine = false;
    }
    fine = fine && eval_init(b, s, &t, &init);
    for (int i = 0; i < s->declare.name.n; i++) {
        if (fine)
            slot_one(b, s, s->declare.name.at[i], &t, &init);
        else
            bind(b, s->declare.name.at[i], &value_poison, BIND_PARAM);
    }
}

/* ---- counters ------------------------------------------------------------ */

static Ref counter(Build *b, int32_t *slot, const char *name)
{
    Type t = type_scalar(I64);
    if (*slot < 0)
        *slot = model_slot(b->m, name, SLOT_STATE, &t, NULL);
    const Origin *keep = b->top->origin;
    b->top->origin = NULL;
    Ref r = g_slot(b->top, *slot, t);
    b->top->origin = keep;
    return r;
}

Ref seed_value(Build *b)
{
    if (b->seed == NONE)
        b->seed = counter(b, &b->m->pinned.seed, "gradc.seed");
    return b->seed;
}

Ref step_value(Build *b)
{
    if (b->step_number == NONE)
        b->step_number = counter(b, &b->m->pinned.step_counter, "gradc.step");
    return b->step_number;
}
