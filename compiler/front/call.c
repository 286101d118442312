/* Calls: which definition is meant, its arguments, the names of what a block owns. */
#include "eval.h"

#include <string.h>

/* ---- call paths ---------------------------------------------------------- */

Instance *child_named(const Instance *in, const char *name)
{
    int32_t i = map_get(&in->child_at, name);
    return i < 0 ? NULL : in->child.at[i];
}

/* "h.0" of `as h[0]`; NULL after a report. */
static const char *path_name(Build *b, const Path *p)
{
    Text t;
    text_init(&t, &b->arena);
    text_add(&t, "%s", p->name.text);
    for (int i = 0; i < p->index.n; i++) {
        int64_t at;
        const Value *v = eval(b, p->index.at[i]);
        if (!want_int(b, v, p->index.at[i]->span, "the index of a name", &at))
            return NULL;
        text_add(&t, ".%lld", (long long)at);
    }
    return intern(&b->cx->names, t.at);
}

/* The block's name, numbered from the second on. */
static const char *default_name(Build *b, const Instance *in, const Item *item)
{
    const char *name = item->name.text;
    Instance *first = child_named(in, name);
    for (int i = first == NULL ? 0 : first->numbered + 1; child_named(in, name) != NULL; i++) {
        name = intern(&b->cx->names, copy_text(b, "%s_%d", item->name.text, i + 1));
        first->numbered = i;
    }
    return name;
}

static void report_twice(Build *b, const Expr *e, const char *name, const Instance *first)
{
    Diag *d = complain(b, E0301, e->call.path->span, "a second `%s`", name);
    diag_note(b->cx, d, user_span(b, first->at), "the first is made here");
    diag_help(b->cx, d, "`share %s` uses the parameters of the first again", name);
}

static bool can_share(Build *b, const Expr *e, const Item *item, const char *name,
                      const Instance *first)
{
    if (first == NULL) {
        const char *known[64];
        int n = 0;
        for (; n < b->frame->instance->child.n && n < 64; n++)
            known[n] = b->frame->instance->child.at[n]->name;
        Diag *d = complain(b, E0303, e->call.path->span, "there is no `%s` to share", name);
        suggest(b, d, name, known, n);
        return false;
    }
    if (first->item == item)
        return true;
    Diag *d = complain(b, E0303, e->call.path->span, "`%s` is a `%s`, and this is a `%s`", name,
                       first->item->name.text, item->name.text);
    diag_note(b->cx, d, user_span(b, first->at), "`%s` is made here", name);
    return false;
}

static Instance *instance_new(Build *b, const Expr *e, const Item *item)
{
    Instance *in = b->frame->instance;
    const Path *path = e->call.path;
    const char *name = path == NULL ? default_name(b, in, item) : path_name(b, path);
    if (name == NULL)
        return NULL;
    bool shares = path != NULL && path->share;
    const Instance *first = child_named(in, name);
    if (shares && !can_share(b, e, item, name, first))
        return NULL;
    if (!shares && first != NULL) {
        report_twice(b, e, name, first);
        return NULL;
    }
    Instance *new = NEW(&b->arena, Instance);
    new->name = name;
    new->prefix = copy_text(b, "%s%s.", in->prefix, name);
    new->item = item;
    new->at = e->span;
    new->shared = shares || in->shared;
    new->first = first;
    new->use = shares ? ++child_named(in, name)->shares : in->use;
    if (!shares) {
        vec_push(&b->arena, &in->child, new);
        map_set(&b->arena, &in->child_at, name, in->child.n - 1);
    }
    return new;
}

/* ---- arguments ----------------------------------------------------------- */

static int formal_named(const Args *formal, const char *name)
{
    for (int i = 0; i < formal->n; i++)
        if (formal->at[i].name.text == name)
            return i;
    return -1;
}

static void unknown_argument(Build *b, const Item *item, const Arg *a)
{
    const char *known[64];
    int n = 0;
    for (; n < item->def.arg.n && n < 64; n++)
        known[n] = item->def.arg.at[n].name.text;
    Diag *d = complain(b, E0125, a->name.span, "`%s` has no argument `%s`", item->name.text,
                       a->name.text);
    diag_note(b->cx, d, item->name.span, "`%s` is defined here", item->name.text);
    suggest(b, d, a->name.text, known, n);
}

/* Puts the arguments of the call in the order of the definition. */
static bool match_arguments(Build *b, const Item *item, int skip, const Expr *e, const Arg **given)
{
    const Args *formal = &item->def.arg;
    bool fine = true;
    for (int i = 0; i < e->call.args.n; i++) {
        const Arg *a = &e->call.args.at[i];
        int to = a->name.text == NULL ? i + skip : formal_named(formal, a->name.text);
        if (a->name.text != NULL && to < skip) {
            unknown_argument(b, item, a);
            fine = false;
        } else if (to >= formal->n) {
            Diag *d = complain(b, E0125, a->span, "`%s` takes %d argument%s, and this is one more",
                               item->name.text, formal->n - skip, formal->n - skip == 1 ? "" : "s");
            diag_note(b->cx, d, item->name.span, "`%s` is defined here", item->name.text);
            return false;
        } else if (given[to] != NULL) {
            Diag *d = complain(b, E0108, a->span, "the argument `%s` is given twice",
                               formal->at[to].name.text);
            diag_range(d, given[to]->span);
            fine = false;
        } else {
            given[to] = a;
        }
    }
    return fine;
}

static bool missing(Build *b, const Item *item, const Expr *e, const Arg *formal)
{
    Diag *d = complain(b, E0112, e->span, "`%s` is not given its argument `%s`", item->name.text,
                       formal->name.text);
    diag_note(b->cx, d, item->name.span, "`%s` is defined here", item->name.text);
    return false;
}

bool eval_arguments(Build *b, const Item *item, int skip, const Expr *e, const Value **value,
                    Span *span)
{
    const Args *formal = &item->def.arg;
    ArenaMark mark = arena_mark(&b->cx->scratch);
    const Arg **given = NEW_ARRAY(&b->cx->scratch, const Arg *, formal->n);
    bool fine = match_arguments(b, item, skip, e, given);
    for (int i = skip; i < formal->n; i++) {
        value[i] = NULL;
        span[i] = NO_SPAN;
        if (given[i] != NULL) {
            value[i] = eval(b, given[i]->value);
            span[i] = given[i]->value->span;
        } else if (fine && formal->at[i].value == NULL) {
            fine = missing(b, item, e, &formal->at[i]);
        }
    }
    arena_reset(&b->cx->scratch, mark);
    return fine;
}

/* In the frame of what is called: defaults may name arguments before them. */
static void bind_arguments(Build *b, const Item *item, const Value **value, const Span *span)
{
    for (int i = 0; i < item->def.arg.n; i++) {
        const Arg *formal = &item->def.arg.at[i];
        value[i] = value[i] != NULL ? value[i] : eval(b, formal->value);
        bind_argument(b, formal->name, value[i], span[i]);
    }
}

/* ---- calling ------------------------------------------------------------- */

static bool recursive(Build *b, const Item *item, const Expr *e)
{
    const Frame *f = b->frame;
    while (f != NULL && f->item != item)
        f = f->caller;
    if (f == NULL)
        return false;
    const char *cycle = item->name.text;
    for (const Frame *c = b->frame; c != f; c = c->caller)
        cycle = arena_printf(&b->cx->perm, "%s -> %s", c->item->name.text, cycle);
    Diag *d = complain(b, E0902, e->span, "`%s` calls itself (%s -> %s)", item->name.text,
                       item->name.text, cycle);
    diag_note(b->cx, d, item->name.span, "`%s` is defined here", item->name.text);
    diag_help(b->cx, d, "what is repeated is written with `for` or `scan`");
    return true;
}

const Value *run_item(Build *b, Module *in, const Item *item, const Value **value, const Span *span,
                      Span call, Instance *instance)
{
    Scope scope = {0};
    Frame frame = {.caller = b->frame,
                   .module = in,
                   .item = item,
                   .call = call,
                   .scope = &scope,
                   .instance = instance};
    const char *name = instance != b->frame->instance ? instance->name : NULL;
    frame.origin = origin_at(b->m, call, b->frame->origin, name);
    b->frame = &frame;
    bind_arguments(b, item, value, span);
    bool returned = exec(b, &item->def.body);
    b->frame = frame.caller;
    if (returned || b->stop)
        return returned ? frame.result : &value_poison;
    Diag *d = complain(b, E0129, call, "`%s` returns nothing", item->name.text);
    diag_note(b->cx, d, item->name.span, "`%s` is defined here", item->name.text);
    return &value_poison;
}

static const Value *call_item(Build *b, Module *in, const Item *item, const Expr *e,
                              Instance *instance)
{
    ArenaMark mark = arena_mark(&b->cx->scratch);
    const Value **value = NEW_ARRAY(&b->cx->scratch, const Value *, item->def.arg.n);
    Span *span = NEW_ARRAY(&b->cx->scratch, Span, item->def.arg.n);
    const Value *result = &value_poison;
    if (eval_arguments(b, item, 0, e, value, span) && !b->stop)
        result = run_item(b, in, item, value, span, e->span, instance);
    arena_reset(&b->cx->scratch, mark);
    return result;
}

static const Value *call_block(Build *b, Module *in, const Item *item, const Expr *e)
{
    for (const Frame *f = b->frame; f != NULL; f = f->caller)
        if (f->item->kind == ITEM_FN) {
            Diag *d = complain(b, E0310, e->span, "the fn `%s` calls the block `%s`",
                               f->item->name.text, item->name.text);
            diag_note(b->cx, d, f->item->name.span, "`%s` is defined here", f->item->name.text);
            diag_help(b->cx, d, "a fn owns no parameters: make it a `block`");
            return &value_poison;
        }
    Instance *instance = instance_new(b, e, item);
    if (instance == NULL)
        return &value_poison;
    int errors = b->cx->n_errors;
    const Value *v = call_item(b, in, item, e, instance);
    if (instance->suspect == NULL || v->kind == VALUE_POISON || b->cx->n_errors > errors)
        return v;
    report_shared(b, instance);
    return &value_poison;
}

static const Value *call_definition(Build *b, Module *in, const Item *item, const Expr *e)
{
    if (recursive(b, item, e))
        return &value_poison;
    if (item->kind == ITEM_BLOCK)
        return call_block(b, in, item, e);
    if (item->kind != ITEM_FN) {
        complain(b, E0121, e->span, "`%s` is a %s, and can't be called", item->name.text,
                 item->kind == ITEM_MODEL ? "model" : "constant");
        return &value_poison;
    }
    if (e->call.path != NULL) {
        Diag *d = complain(b, E0304, e->call.path->span, "the fn `%s` has no parameters to name",
                           item->name.text);
        diag_note(b->cx, d, item->name.span, "`%s` is defined here", item->name.text);
        return &value_poison;
    }
    if (item->def.has_vjp)
        return call_custom(b, in, item, e);
    return call_item(b, in, item, e, b->frame->instance);
}

/* ---- what is meant ------------------------------------------------------- */

enum { MAX_CANDIDATES = 1024 };

static int function_names(const Build *b, const Module *in, const char **out, int n)
{
    (void)b;
    for (int i = 0; i < in->ast->item.n && n < MAX_CANDIDATES; i++)
        if (in->ast->item.at[i]->kind == ITEM_FN || in->ast->item.at[i]->kind == ITEM_BLOCK)
            out[n++] = in->ast->item.at[i]->name.text;
    return n;
}

/* A module that the file uses and that has this function. */
static const char *module_with(const Build *b, const char *name)
{
    for (int i = 0; i < b->m->module.n; i++) {
        const Module *in = b->m->module.at[i];
        if (*in->name != 0 && in != b->m->train_library && module_item(in, name) != NULL)
            return in->name;
    }
    return NULL;
}

static const Value *unknown_function(Build *b, const Expr *e)
{
    const char *candidate[MAX_CANDIDATES];
    const char *name = e->call.name.text;
    Diag *d = complain(b, E0121, e->call.name.span, "there is no function `%s`", name);
    const char *in = module_with(b, name);
    if (in != NULL) {
        diag_help(b->cx, d, "did you mean `%s.%s`?", in, name);
        return &value_poison;
    }
    int n = function_names(b, b->frame->module, candidate, 0);
    n = function_names(b, b->m->prelude, candidate, n);
    n += builtin_names(candidate + n, MAX_CANDIDATES - n);
    suggest(b, d, name, candidate, n);
    if (d->help == NULL && strcmp(name, "linear") != 0 &&
        module_find(b->m, b->frame->module, "nn") == NULL)
        diag_help(b->cx, d, "layers and losses are in `nn`: `use nn`, and `nn.%s`", name);
    return &value_poison;
}

static const Value *call_in_module(Build *b, const Expr *e)
{
    const char *module = e->call.module.text, *name = e->call.name.text;
    Module *in = module_find(b->m, b->frame->module, module);
    if (in == NULL)
        return unknown_module(b, e->call.module, name);
    const Item *item = module_item(in, name);
    if (item != NULL)
        return call_definition(b, in, item, e);
    const char *candidate[MAX_CANDIDATES];
    Diag *d = complain(b, E0121, e->call.name.span, "there is no `%s` in `%s`", name, module);
    int n = function_names(b, in, candidate, 0);
    const char *near = nearest(name, candidate, n);
    if (builtin_find(name) != NULL || op_find(name) != OP_NONE ||
        module_item(b->m->prelude, name) != NULL)
        diag_help(b->cx, d, "`%s` is known everywhere: write it without `%s.`", name, module);
    else if (near != NULL)
        diag_help(b->cx, d, "did you mean `%s.%s`?", module, near);
    return &value_poison;
}

const Value *eval_call(Build *b, const Expr *e)
{
    if (e->call.module.text != NULL)
        return call_in_module(b, e);
    const char *name = e->call.name.text;
    const Item *item = module_item(b->frame->module, name);
    if (item != NULL)
        return call_definition(b, b->frame->module, item, e);
    const Builtin *f = builtin_find(name);
    if (f != NULL)
        return builtin_call(b, f, e);
    item = b->updating ? module_item(b->m->train_library, name) : NULL;
    if (item != NULL) /* schedules */
        return call_definition(b, b->m->train_library, item, e);
    item = module_item(b->m->prelude, name);
    if (item != NULL)
        return call_definition(b, b->m->prelude, item, e);
    OpId op = op_find(name);
    if (op != OP_NONE && optab[op]->kind != OP_SOURCE && optab[op]->kind != OP_TUPLE &&
        optab[op]->kind != OP_SCAN && optab[op]->kind != OP_CONTRACT)
        return op_call(b, op, e);
    return unknown_function(b, e);
}
