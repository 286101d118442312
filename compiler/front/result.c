/* Statements that say what a model gives: `loss`, `output` and `metric`. */
#include "eval.h"

#include <string.h>

/* For the header; every entry says the same. */
static void keep_doc(Build *b, const char *name, const Stmt *s)
{
    if (s->doc != NULL && model_result_doc(b->m, name) == NULL)
        vec_push(b->m->arena, &b->m->documented, ((Documented){name, s->doc}));
}

void exec_loss(Build *b, const Stmt *s)
{
    const Value *v = eval(b, s->loss);
    if (v->kind == VALUE_POISON) {
        b->loss_at = s->span;
        return;
    }
    if (b->loss_at.file >= 0) {
        Diag *d = complain(b, E0321, s->span, "a second loss");
        diag_note(b->cx, d, b->loss_at, "the first is here");
        diag_help(b->cx, d, "add them: `loss first + 0.1 * second`");
        return;
    }
    b->loss_at = s->span;
    Ref r = want_tensor(b, v, s->loss->span, F32);
    if (r == NONE)
        return;
    const Type *t = type_of(b->g, r);
    if (t->rank != 0 || !dtype_is_float(t->dtype)) {
        Diag *d = complain(b, E0322, s->loss->span, "the loss is one float, and this is %s",
                           type_text(&b->cx->perm, t));
        diag_help(b->cx, d,
                  t->rank != 0 ? "take the mean: `loss mean(...)`" : "convert it: `cast(x, f32)`");
        return;
    }
    b->loss = r;
    keep_doc(b, "loss", s);
}

static bool name_taken(Build *b, Name name)
{
    for (int i = 0; i < b->top->root.n; i++) {
        const Root *r = &b->top->root.at[i];
        if ((r->kind == ROOT_OUTPUT || r->kind == ROOT_METRIC) && r->name == name.text) {
            Diag *d = complain(b, E0323, name.span, "a second output or metric `%s`", name.text);
            diag_note(b->cx, d, node(b->top, r->ref)->origin->span, "the first is computed here");
            return true;
        }
    }
    if (strcmp(name.text, "loss") != 0)
        return false;
    complain(b, E0323, name.span, "`loss` is the name of the loss");
    return true;
}

void exec_output(Build *b, const Stmt *s)
{
    for (int i = 0; i < s->output.n; i++) {
        const Arg *a = &s->output.at[i];
        Expr by_name = {.kind = EXPR_NAME, .span = a->span, .name = {.name = a->name}};
        by_name.name.module.span = NO_SPAN;
        const Value *v = a->value != NULL ? eval(b, a->value) : lookup(b, &by_name);
        Ref r = want_tensor(b, v, a->span, F32);
        if (r == NONE || name_taken(b, a->name))
            continue;
        graph_root(b->g, ROOT_OUTPUT, a->name.text, r, -1, -1);
        keep_doc(b, a->name.text, s);
    }
}

void exec_metric(Build *b, const Stmt *s)
{
    Ref r = want_tensor(b, eval(b, s->named.value), s->named.value->span, F32);
    if (r == NONE || name_taken(b, s->named.name))
        return;
    const Type *t = type_of(b->g, r);
    if (t->rank != 0 || !dtype_is_float(t->dtype)) {
        Diag *d = complain(b, E0324, s->named.value->span, "a metric is one float, and this is %s",
                           type_text(&b->cx->perm, t));
        diag_help(b->cx, d,
                  t->rank != 0 ? "take the mean, or make it an `output`"
                               : "convert it: `cast(x, f32)`");
        return;
    }
    graph_root(b->g, ROOT_METRIC, s->named.name.text, r, -1, -1);
    keep_doc(b, s->named.name.text, s);
}
