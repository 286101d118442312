/* Names and what they stand for; the place of a mistake; values that cross into the
 * body of a scan. */
#include "eval.h"

#include <string.h>

/* ---- one run ------------------------------------------------------------- */

Build build_begin(Model *m, EntryKind e, Graph *g)
{
    Build b = {.cx = m->cx, .m = m, .entry = e, .g = g, .top = g, .of = -1};
    b.training = e == ENTRY_STEP || e == ENTRY_GRAD;
    b.n_errors = m->cx->n_errors;
    m->builds++;
    return b;
}

void build_end(Build *b)
{
    arena_free(&b->arena);
}

bool too_large(Build *b, Span span)
{
    if (b->stop)
        return true;
    if (b->steps <= MAX_STEPS && b->g->node.n <= MAX_NODES)
        return false;
    Diag *d = complain(b, E0912, span, "the model becomes too large here: more than %d %s",
                       b->g->node.n > MAX_NODES ? MAX_NODES : MAX_STEPS,
                       b->g->node.n > MAX_NODES ? "nodes" : "steps of expansion");
    diag_help(b->cx, d, "`for` repeats its body in the graph; `scan` does not");
    return b->stop = true;
}

const char *copy_text(Build *b, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    const char *text = arena_vprintf(&b->arena, format, ap);
    va_end(ap);
    return text;
}

/* ---- places -------------------------------------------------------------- */

static const Origin *origin_of(const Build *b, Span span)
{
    const Origin *parent = b->frame == NULL ? NULL : b->frame->origin;
    return origin_find(
        b->m, (Origin){.span = span, .parent = parent, .memory = b->memory, .part = b->part});
}

void at(Build *b, Span span)
{
    b->g->origin = origin_of(b, span);
}

static bool in_library(const Build *b, Span s)
{
    return s.file >= 0 && b->cx->source.at[s.file]->library;
}

Span user_span(const Build *b, Span s)
{
    for (const Frame *f = b->frame; f != NULL && in_library(b, s); f = f->caller)
        s = f->call;
    return s;
}

static Diag *report(Build *b, bool warning, Code code, Span span, const char *format, va_list ap)
{
    const char *text = arena_vprintf(&b->cx->perm, format, ap);
    Span at = user_span(b, span);
    Diag *d = warning ? diag_warning(b->cx, code, at, "%s", text)
                      : diag_error(b->cx, code, at, "%s", text);
    d->origin = origin_of(b, span);
    return d;
}

Diag *complain(Build *b, Code code, Span span, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    Diag *d = report(b, false, code, span, format, ap);
    va_end(ap);
    return d;
}

Diag *caution(Build *b, Code code, Span span, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    Diag *d = report(b, true, code, span, format, ap);
    va_end(ap);
    return d;
}

const char *short_text(const Build *b, Span span)
{
    enum { LONGEST = 24 };
    if (span.file < 0 || in_library(b, span) || span.to - span.from > LONGEST)
        return "x";
    const char *text = b->cx->source.at[span.file]->text + span.from;
    size_t n = (size_t)(span.to - span.from);
    return memchr(text, '\n', n) != NULL ? "x" : arena_strndup(&b->cx->perm, text, n);
}

void mark_range(Build *b, Diag *d, Span span)
{
    if (span.file >= 0 && !in_library(b, span))
        diag_range(d, span);
}

static bool same_report(const Diag *x, const Diag *y)
{
    return x->code == y->code && x->span.file == y->span.file && x->span.from == y->span.from &&
           x->span.to == y->span.to && strcmp(x->text, y->text) == 0;
}

/* Where the complaint was made before, it goes. */
void move_report(Build *b)
{
    Ctx *cx = b->cx;
    if (cx->diag.n == 0)
        return;
    Diag *d = cx->diag.at[cx->diag.n - 1];
    Span moved = user_span(b, d->span);
    if (moved.file == d->span.file && moved.from == d->span.from && moved.to == d->span.to)
        return;
    d->span = moved;
    for (int i = 0; i < cx->diag.n - 1; i++)
        if (same_report(cx->diag.at[i], d)) {
            cx->diag.n--;
            cx->n_errors--;
            return;
        }
}

const Value *made(Build *b, Ref r)
{
    if (r == NONE)
        move_report(b);
    return value_tensor(&b->arena, b->g, r);
}

void suggest(Build *b, Diag *d, const char *word, const char *const *candidate, int n)
{
    const char *near = nearest(word, candidate, n);
    if (near != NULL)
        diag_help(b->cx, d, "did you mean `%s`?", near);
}

/* ---- bindings ------------------------------------------------------------ */

enum { MANY_NAMES = 16 }; /* are found by hash */

static Binding *find_in(const Scope *s, const char *name)
{
    int32_t i = s->binding.n - 1;
    if (i >= MANY_NAMES)
        i = map_get(&s->at, name);
    else
        while (i >= 0 && s->binding.at[i].name != name)
            i--;
    return i < 0 ? NULL : &s->binding.at[i];
}

const Binding *scope_find(const Build *b, const char *name)
{
    for (const Scope *s = b->frame->scope; s != NULL; s = s->outer) {
        const Binding *found = find_in(s, name);
        if (found != NULL)
            return found;
    }
    return NULL;
}

static void put_binding(Build *b, const Binding *binding)
{
    Scope *s = b->frame->scope;
    Binding *old = find_in(s, binding->name);
    if (old != NULL) {
        *old = *binding;
        return;
    }
    vec_push(&b->arena, &s->binding, *binding);
    for (int32_t i = s->at.n; i < s->binding.n && s->binding.n > MANY_NAMES; i++)
        map_set(&b->arena, &s->at, s->binding.at[i].name, i);
}

void bind(Build *b, Name name, const Value *v, BindKind kind)
{
    put_binding(b, &(Binding){name.text, name.span, v, kind, NO_SPAN, -1});
}

void bind_argument(Build *b, Name name, const Value *v, Span given)
{
    put_binding(b, &(Binding){name.text, name.span, v, BIND_ARG, given, -1});
}

void bind_slot(Build *b, Name name, const Value *v, BindKind kind, int32_t slot)
{
    put_binding(b, &(Binding){name.text, name.span, v, kind, NO_SPAN, slot});
}

/* ---- looking up ---------------------------------------------------------- */

enum { MAX_CANDIDATES = 1024 };

static int visible_names(const Build *b, const char **out, int max)
{
    int n = 0;
    for (const Scope *s = b->frame->scope; s != NULL; s = s->outer)
        for (int i = 0; i < s->binding.n && n < max; i++)
            out[n++] = s->binding.at[i].name;
    const Ast *ast = b->frame->module->ast;
    for (int i = 0; i < ast->item.n && n < max; i++)
        if (ast->item.at[i]->kind == ITEM_CONST)
            out[n++] = ast->item.at[i]->name.text;
    return n;
}

static const Value *unknown_name(Build *b, const Expr *e)
{
    const char *candidate[MAX_CANDIDATES];
    const char *name = e->name.name.text;
    const Item *item = module_item(b->frame->module, name);
    OpId op = op_find(name);
    if (item != NULL || op != OP_NONE || builtin_find(name) != NULL) {
        Diag *d = complain(b, E0121, e->span, "`%s` is a function, not a value", name);
        diag_help(b->cx, d, "call it: `%s(...)`", name);
        return &value_poison;
    }
    Diag *d = complain(b, E0120, e->span, "there is no `%s` here", name);
    int n = visible_names(b, candidate, MAX_CANDIDATES);
    suggest(b, d, name, candidate, n);
    if (b->level != NULL)
        help_scan_option(b, d, name);
    return &value_poison;
}

const Value *unknown_module(Build *b, Name module, const char *member)
{
    const char *name = module.text;
    const Instance *in = b->frame->instance;
    if (scope_find(b, name) != NULL) {
        Diag *d = complain(b, E0122, module.span, "`%s` is a value, and has no members", name);
        const char *function = strcmp(member, "T") == 0 ? "transpose" : member;
        if (builtin_find(function) != NULL || op_find(function) != OP_NONE)
            diag_help(b->cx, d, "a function stands before what it takes: `%s(%s)`", function, name);
    } else if (in != NULL && child_named(in, name) != NULL) {
        Diag *d =
            complain(b, E0122, module.span, "`%s` is a block, whose parameters are its own", name);
        diag_help(b->cx, d, "what is read elsewhere, too, is a `param` of the model");
    } else {
        Diag *d = complain(b, E0122, module.span, "there is no `%s` here", name);
        diag_help(b->cx, d, "a file of definitions is made known by `use %s`", name);
    }
    return &value_poison;
}

static const Value *module_name(Build *b, const Expr *e)
{
    Module *in = module_find(b->m, b->frame->module, e->name.module.text);
    const char *module = e->name.module.text, *name = e->name.name.text;
    if (in == NULL)
        return unknown_module(b, e->name.module, name);
    const Item *item = module_item(in, name);
    if (item != NULL && item->kind == ITEM_CONST)
        return module_constant(b, in, item);
    if (item == NULL)
        complain(b, E0120, e->span, "there is no `%s` in `%s`", name, module);
    else
        complain(b, E0121, e->span, "`%s.%s` is a function, not a value", module, name);
    return &value_poison;
}

const Value *lookup(Build *b, const Expr *e)
{
    if (e->name.module.text != NULL)
        return module_name(b, e);
    const char *name = e->name.name.text;
    const Binding *found = scope_find(b, name);
    if (found != NULL)
        return found->value;
    const Item *item = module_item(b->frame->module, name);
    if (item != NULL && item->kind == ITEM_CONST)
        return module_constant(b, b->frame->module, item);
    const Value *known = item == NULL ? builtin_name(b, name) : NULL;
    return known != NULL ? known : unknown_name(b, e);
}

/* ---- values in bodies ---------------------------------------------------- */

/* `r`, of l->around, as an argument of the body. */
static Ref capture_one(Build *b, Level *l, Ref r)
{
    for (int i = 0; i < l->captured.n; i++)
        if (l->captured.at[i] == r)
            return l->arg.at[i];
    Type t = *type_of(l->around, r);
    const Origin *keep = l->body->origin;
    l->body->origin = node(l->around, r)->origin;
    Ref arg = g_body_arg(l->body, l->fixed + l->captured.n, t);
    l->body->origin = keep;
    vec_push(&b->arena, &l->captured, r);
    vec_push(&b->arena, &l->arg, arg);
    return arg;
}

Ref capture(Build *b, Level *l, Graph *from, Ref r)
{
    if (l == NULL)
        return NONE;
    r = l->around == from ? r : capture(b, l->outer, from, r);
    return r == NONE ? NONE : capture_one(b, l, r);
}

Ref use(Build *b, const Value *v)
{
    return v->graph == b->g ? v->ref : capture(b, b->level, v->graph, v->ref);
}
