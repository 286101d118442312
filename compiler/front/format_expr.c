/* Expressions and types in canonical layout. */
#include "format.h"

#include <string.h>

void format_put(Format *f, const char *text)
{
    text_put(&f->out.cell, text, strlen(text));
}

void format_open(Format *f, const char *bracket)
{
    format_put(f, bracket);
    f->out.depth++;
}

void format_close(Format *f, const char *bracket)
{
    f->out.depth--;
    format_put(f, bracket);
}

static void put_comma(Format *f, int i)
{
    if (i == 0)
        return;
    format_put(f, ", ");
    layout_break(&f->out);
}

void format_exprs(Format *f, const Exprs *list)
{
    for (int i = 0; i < list->n; i++) {
        put_comma(f, i);
        format_expr(f, list->at[i]);
    }
}

void format_names(Format *f, const Names *list)
{
    for (int i = 0; i < list->n; i++) {
        format_put(f, i > 0 ? ", " : "");
        format_put(f, list->at[i].text);
    }
}

void format_args(Format *f, const Args *list)
{
    for (int i = 0; i < list->n; i++) {
        const Arg *a = &list->at[i];
        put_comma(f, i);
        if (a->name.text != NULL)
            format_put(f, a->name.text);
        if (a->name.text != NULL && a->value != NULL)
            format_put(f, " = ");
        if (a->value != NULL)
            format_expr(f, a->value);
    }
}

static void put_qualified(Format *f, Name module, Name name)
{
    if (module.text != NULL) {
        format_put(f, module.text);
        format_put(f, ".");
    }
    format_put(f, name.text);
}

static void put_string(Format *f, const char *s)
{
    format_put(f, "\"");
    for (; *s != '\0'; s++) {
        if (*s == '"' || *s == '\\')
            format_put(f, "\\");
        text_char(&f->out.cell, *s);
    }
    format_put(f, "\"");
}

static void put_operation(Format *f, const Expr *e)
{
    const char *op = operator_spelling(e->op.op);
    if (e->op.left == NULL) {
        format_put(f, op);
        format_put(f, e->op.op == OPERATOR_NOT ? " " : "");
    } else {
        format_expr(f, e->op.left);
        bool tight = e->op.op == OPERATOR_POW;
        format_put(f, tight ? "" : " ");
        if (!tight)
            layout_break(&f->out);
        format_put(f, op);
        format_put(f, tight ? "" : " ");
    }
    format_expr(f, e->op.right);
}

static void put_path(Format *f, const Path *path)
{
    format_put(f, path->share ? " share " : " as ");
    format_put(f, path->name.text);
    for (int i = 0; i < path->index.n; i++) {
        format_open(f, "[");
        format_expr(f, path->index.at[i]);
        format_close(f, "]");
    }
}

static void put_subscript(Format *f, const Subscript *s)
{
    if (s->kind == SUBSCRIPT_AT)
        format_expr(f, s->at);
    if (s->kind == SUBSCRIPT_ELLIPSIS)
        format_put(f, "...");
    if (s->kind != SUBSCRIPT_SLICE)
        return;
    if (s->from != NULL)
        format_expr(f, s->from);
    format_put(f, ":");
    if (s->to != NULL)
        format_expr(f, s->to);
    if (s->step != NULL) {
        format_put(f, ":");
        format_expr(f, s->step);
    }
}

static void put_index(Format *f, const Expr *e)
{
    format_expr(f, e->index.base);
    format_open(f, "[");
    for (int i = 0; i < e->index.subscript.n; i++) {
        put_comma(f, i);
        put_subscript(f, &e->index.subscript.at[i]);
    }
    format_close(f, "]");
}

void format_range(Format *f, const Expr *from, const Expr *to)
{
    format_expr(f, from);
    if (to != NULL) {
        format_put(f, "..");
        format_expr(f, to);
    }
}

static void put_plain(Format *f, const Expr *e)
{
    switch (e->kind) {
    case EXPR_NUMBER:
        format_put(f, e->number.text);
        break;
    case EXPR_STRING:
        put_string(f, e->string);
        break;
    case EXPR_BOOL:
        format_put(f, e->boolean ? "true" : "false");
        break;
    case EXPR_NAME:
        put_qualified(f, e->name.module, e->name.name);
        break;
    case EXPR_UNARY:
    case EXPR_BINARY:
        put_operation(f, e);
        break;
    case EXPR_CALL:
        put_qualified(f, e->call.module, e->call.name);
        format_open(f, "(");
        format_args(f, &e->call.args);
        format_close(f, ")");
        if (e->call.path != NULL)
            put_path(f, e->call.path);
        break;
    case EXPR_INDEX:
        put_index(f, e);
        break;
    case EXPR_TUPLE:
        format_exprs(f, &e->items);
        break;
    case EXPR_LIST:
        format_open(f, "[");
        format_exprs(f, &e->items);
        format_close(f, "]");
        break;
    case EXPR_SCAN:
        format_put(f, "scan ");
        format_names(f, &e->scan.item);
        format_put(f, " in ");
        format_range(f, e->scan.over, e->scan.to);
        format_put(f, e->scan.init.n > 0 ? ", " : "");
        format_args(f, &e->scan.init);
        break;
    }
}

void format_expr(Format *f, const Expr *e)
{
    if (!e->parens) {
        put_plain(f, e);
        return;
    }
    format_open(f, "(");
    put_plain(f, e);
    format_close(f, ")");
}

void format_type(Format *f, const TypeExpr *t)
{
    if (t->of != NULL) {
        format_open(f, "type(");
        format_expr(f, t->of);
        format_close(f, ")");
    } else {
        format_put(f, t->dtype.text);
    }
    if (t->has_dims) {
        format_open(f, "[");
        format_exprs(f, &t->dim);
        format_close(f, "]");
    }
}
