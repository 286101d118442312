/* A fn with a vjp of its own. Its value is computed as that of any fn, and then handed to
 * the op custom_vjp, whose body is the rule: no gradient reaches the value itself. */
#include "eval.h"

enum { MAX_ACTIVE = 16 };
enum { Y, FIRST }; /* arguments of the rule: the cotangent of Y, then what is active */

typedef struct Custom {
    Module *in;
    const Item *item;
    const Expr *call;
    const Value **value; /* of the arguments; NULL: the default, until the value is computed */
    Span *span;
    int n_active;
    int active[MAX_ACTIVE];    /* which arguments are float tensors */
    Ref given[MAX_ACTIVE + 1]; /* by the rule's arguments */
    Level level;
} Custom;

static bool find_active(Build *b, Custom *c)
{
    for (int i = 0; i < c->item->def.arg.n; i++) {
        const Value *v = c->value[i];
        if (v->kind != VALUE_TENSOR || !dtype_is_float(type_of(v->graph, v->ref)->dtype))
            continue;
        if (c->n_active == MAX_ACTIVE) {
            complain(b, E0430, c->item->name.span, "more than %d arguments with a gradient",
                     MAX_ACTIVE);
            return false;
        }
        c->given[FIRST + c->n_active] = use(b, v);
        c->active[c->n_active++] = i;
    }
    return true;
}

static bool run_forward(Build *b, Custom *c)
{
    const Value *y =
        run_item(b, c->in, c->item, c->value, c->span, c->call->span, b->frame->instance);
    if (y->kind == VALUE_TENSOR && dtype_is_float(type_of(y->graph, y->ref)->dtype)) {
        c->given[Y] = use(b, y);
        return true;
    }
    if (y->kind != VALUE_POISON)
        complain(b, E0430, c->item->name.span,
                 "`%s` has a vjp, and so returns one tensor of floats, "
                 "not %s",
                 c->item->name.text, value_text(&b->cx->perm, y));
    return false;
}

/* In the frame of the rule: the arguments of the fn, and the cotangent. */
static void bind_rule(Build *b, Custom *c)
{
    Level *l = &c->level;
    const Args *formal = &c->item->def.arg;
    for (int i = 0; i < formal->n; i++) {
        const Value *v = c->value[i];
        for (int a = 0; a < c->n_active; a++)
            if (c->active[a] == i) {
                at(b, formal->at[i].span);
                Ref r = g_body_arg(l->body, FIRST + a, *type_of(l->around, c->given[FIRST + a]));
                v = value_tensor(&b->arena, l->body, r);
            }
        bind(b, formal->at[i].name, v, BIND_ARG);
    }
    const Arg *ct = &c->item->def.vjp_arg.at[0];
    at(b, ct->span);
    Ref r = g_body_arg(l->body, Y, *type_of(l->around, c->given[Y]));
    bind(b, ct->name, value_tensor(&b->arena, l->body, r), BIND_ARG);
}

static bool rule_result(Build *b, Custom *c, const Value *v, int i)
{
    const Arg *formal = &c->item->def.arg.at[c->active[i]];
    Span where = c->item->def.vjp_body.span;
    Type want = *type_of(c->level.around, c->given[FIRST + i]);
    Ref r = want_tensor(b, v, (Span){where.file, where.from, where.from + 1}, want.dtype);
    if (r == NONE)
        return false;
    if (rank(b->g, r) == 0 && v->kind != VALUE_TENSOR)
        r = g_broadcast(b->g, r, want.rank, want.dim);
    if (type_same(type_of(b->g, r), &want)) {
        graph_root(b->g, ROOT_RESULT, formal->name.text, r, -1, -1);
        return true;
    }
    Diag *d =
        complain(b, E0430, c->item->name.span, "the vjp of `%s` returns %s for `%s`, which is %s",
                 c->item->name.text, type_text(&b->cx->perm, type_of(b->g, r)), formal->name.text,
                 type_text(&b->cx->perm, &want));
    diag_note(b->cx, d, (Span){where.file, where.from, where.from + 1}, "the vjp is here");
    return false;
}

static bool rule_results(Build *b, Custom *c, bool returned, const Value *v)
{
    if (b->stop || (returned && v->kind == VALUE_POISON))
        return false;
    int n = !returned ? 0 : value_is_items(v) ? v->n : 1;
    bool of_all = n == c->item->def.arg.n; /* those of numbers lead nowhere */
    if (n != c->n_active && !of_all) {
        Diag *d = complain(b, E0430, c->item->name.span,
                           "the vjp of `%s` returns %d value%s for %d "
                           "argument%s",
                           c->item->name.text, n, n == 1 ? "" : "s", c->n_active,
                           c->n_active == 1 ? "" : "s");
        diag_help(b->cx, d,
                  "it returns a cotangent for each argument, or for each that is a tensor "
                  "of floats");
        return false;
    }
    for (int i = 0; i < c->n_active; i++) {
        const Value *mine = value_is_items(v) ? v->item[of_all ? c->active[i] : i] : v;
        if (!rule_result(b, c, mine, i))
            return false;
    }
    return true;
}

static bool run_rule(Build *b, Custom *c)
{
    Level *l = &c->level;
    if (c->item->def.vjp_arg.n != 1) {
        complain(b, E0430, c->item->name.span,
                 "the vjp of `%s` has %d arguments, not one: the "
                 "cotangent of the result",
                 c->item->name.text, c->item->def.vjp_arg.n);
        return false;
    }
    *l = (Level){.outer = b->level, .around = b->g, .body = g_body(b->g), .given = c->given};
    l->fixed = l->carries = FIRST + c->n_active;
    Scope scope = {0};
    Frame frame = {.caller = b->frame,
                   .module = c->in,
                   .item = c->item,
                   .call = c->call->span,
                   .scope = &scope,
                   .instance = b->frame->instance};
    frame.origin = origin_at(b->m, c->call->span, b->frame->origin, NULL);
    b->frame = &frame;
    b->level = l;
    b->g = l->body;
    bind_rule(b, c);
    bool returned = exec(b, &c->item->def.vjp_body);
    bool fine = rule_results(b, c, returned, frame.result);
    b->g = l->around;
    b->level = l->outer;
    b->frame = frame.caller;
    return fine;
}

const Value *call_custom(Build *b, Module *in, const Item *item, const Expr *e)
{
    Custom c = {.in = in, .item = item, .call = e};
    c.value = NEW_ARRAY(&b->arena, const Value *, item->def.arg.n);
    c.span = NEW_ARRAY(&b->arena, Span, item->def.arg.n);
    if (!eval_arguments(b, item, 0, e, c.value, c.span) || !run_forward(b, &c) ||
        !find_active(b, &c) || !run_rule(b, &c))
        return &value_poison;
    int n = c.n_active + c.level.captured.n;
    Ref *xs = NEW_ARRAY(&b->arena, Ref, n);
    for (int i = 0; i < n; i++)
        xs[i] = i < c.n_active ? c.given[FIRST + i] : c.level.captured.at[i - c.n_active];
    at(b, e->span);
    return made(b, g_custom_vjp(b->g, c.level.body, c.given[Y], xs, n, c.n_active));
}
