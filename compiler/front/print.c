/* The tree as S-expressions, one statement a line: what a test can compare, with
 * all structure explicit and nothing of the layout. */
#include "ast.h"

#include <string.h>

typedef struct Print {
    Text *to;
    int indent;
} Print;

static void print_expr(Print *p, const Expr *e);
static void print_body(Print *p, const Body *b);

static void put(Print *p, const char *text)
{
    text_put(p->to, text, strlen(text));
}

static void new_line(Print *p)
{
    text_char(p->to, '\n');
    for (int i = 0; i < p->indent; i++)
        put(p, "  ");
}

static void print_exprs(Print *p, const Exprs *list)
{
    for (int i = 0; i < list->n; i++) {
        put(p, " ");
        print_expr(p, list->at[i]);
    }
}

static void print_names(Print *p, const Names *list)
{
    put(p, " (");
    for (int i = 0; i < list->n; i++)
        text_add(p->to, "%s%s", i > 0 ? " " : "", list->at[i].text);
    put(p, ")");
}

/* "value", "(name value)" or "(name)" each. */
static void print_args(Print *p, const Args *list)
{
    for (int i = 0; i < list->n; i++) {
        const Arg *a = &list->at[i];
        put(p, " ");
        if (a->name.text != NULL)
            text_add(p->to, "(%s%s", a->name.text, a->value != NULL ? " " : "");
        if (a->value != NULL)
            print_expr(p, a->value);
        put(p, a->name.text != NULL ? ")" : "");
    }
}

static void print_name(Print *p, Name module, Name name)
{
    if (module.text != NULL)
        text_add(p->to, "%s.", module.text);
    put(p, name.text);
}

static void print_call(Print *p, const Expr *e)
{
    const Path *path = e->call.path;
    put(p, "(call ");
    print_name(p, e->call.module, e->call.name);
    print_args(p, &e->call.args);
    put(p, ")");
    if (path == NULL)
        return;
    text_add(p->to, ":%s:%s", path->share ? "share" : "as", path->name.text);
    for (int i = 0; i < path->index.n; i++) {
        put(p, "[");
        print_expr(p, path->index.at[i]);
        put(p, "]");
    }
}

static void print_optional(Print *p, const Expr *e)
{
    put(p, " ");
    if (e == NULL)
        put(p, "_");
    else
        print_expr(p, e);
}

static void print_subscript(Print *p, const Subscript *s)
{
    if (s->kind == SUBSCRIPT_ELLIPSIS) {
        put(p, " ...");
    } else if (s->kind == SUBSCRIPT_AT) {
        print_optional(p, s->at);
    } else {
        put(p, " (:");
        print_optional(p, s->from);
        print_optional(p, s->to);
        print_optional(p, s->step);
        put(p, ")");
    }
}

static void print_range(Print *p, const Expr *from, const Expr *to)
{
    put(p, to != NULL ? " (.." : "");
    print_optional(p, from);
    if (to != NULL) {
        print_optional(p, to);
        put(p, ")");
    }
}

static void print_scan(Print *p, const Expr *e)
{
    put(p, "(scan");
    print_names(p, &e->scan.item);
    print_range(p, e->scan.over, e->scan.to);
    print_args(p, &e->scan.init);
    print_body(p, &e->scan.body);
    put(p, ")");
}

static void print_expr(Print *p, const Expr *e)
{
    switch (e->kind) {
    case EXPR_NUMBER:
        put(p, e->number.text);
        break;
    case EXPR_STRING:
        put(p, "\"");
        text_json(p->to, e->string);
        put(p, "\"");
        break;
    case EXPR_BOOL:
        put(p, e->boolean ? "true" : "false");
        break;
    case EXPR_NAME:
        print_name(p, e->name.module, e->name.name);
        break;
    case EXPR_UNARY:
    case EXPR_BINARY:
        text_add(p->to, "(%s ", operator_spelling(e->op.op));
        if (e->op.left != NULL) {
            print_expr(p, e->op.left);
            put(p, " ");
        }
        print_expr(p, e->op.right);
        put(p, ")");
        break;
    case EXPR_CALL:
        print_call(p, e);
        break;
    case EXPR_INDEX:
        put(p, "(at ");
        print_expr(p, e->index.base);
        for (int i = 0; i < e->index.subscript.n; i++)
            print_subscript(p, &e->index.subscript.at[i]);
        put(p, ")");
        break;
    case EXPR_TUPLE:
    case EXPR_LIST:
        put(p, e->kind == EXPR_LIST ? "(list" : "(tuple");
        print_exprs(p, &e->items);
        put(p, ")");
        break;
    case EXPR_SCAN:
        print_scan(p, e);
        break;
    }
}

static void print_type(Print *p, const TypeExpr *t)
{
    put(p, " (type ");
    if (t->of != NULL) {
        put(p, "(of ");
        print_expr(p, t->of);
        put(p, ")");
    } else {
        put(p, t->dtype.text);
    }
    if (t->has_dims) {
        put(p, " [");
        print_exprs(p, &t->dim);
        put(p, " ]");
    }
    put(p, ")");
}

static void print_declaration(Print *p, const Stmt *s)
{
    put(p, s->kind == STMT_INPUT ? "(input" : s->kind == STMT_PARAM ? "(param" : "(state");
    print_names(p, &s->declare.name);
    print_type(p, &s->declare.type);
    if (s->declare.init != NULL)
        print_optional(p, s->declare.init);
    if (s->declare.low != NULL)
        print_range(p, s->declare.low, s->declare.high);
    put(p, s->declare.with_grad ? " grad)" : ")");
}

static void print_binding(Print *p, const Stmt *s)
{
    static const char *const memory[] = {"", "keep ", "recompute ", "offload "};
    text_add(p->to, "(%s= (", memory[s->bind.memory]);
    for (int i = 0; i < s->bind.target.n; i++) {
        const LeftSide *t = &s->bind.target.at[i];
        text_add(p->to, "%s%s", i > 0 ? " " : "", t->name.text);
        for (int j = 0; j < t->index.n; j++) {
            put(p, "[");
            print_expr(p, t->index.at[j]);
            put(p, "]");
        }
    }
    put(p, ")");
    print_optional(p, s->bind.value);
    put(p, ")");
}

static void print_named(Print *p, const Stmt *s, const char *what)
{
    text_add(p->to, "(%s %s", what, s->named.name.text);
    print_optional(p, s->named.value);
    put(p, ")");
}

static void print_if(Print *p, const Stmt *s)
{
    put(p, "(if");
    for (int i = 0; i < s->arm.n; i++) {
        const Arm *a = &s->arm.at[i];
        if (i > 0) {
            new_line(p);
            put(p, a->condition != NULL ? "else if" : "else");
        }
        if (a->condition != NULL)
            print_optional(p, a->condition);
        print_body(p, &a->body);
    }
    put(p, ")");
}

static void print_stmt(Print *p, const Stmt *s)
{
    switch (s->kind) {
    case STMT_CONST:
        print_named(p, s, "const");
        break;
    case STMT_UPDATE:
        print_named(p, s, "<-");
        break;
    case STMT_METRIC:
        print_named(p, s, "metric");
        break;
    case STMT_BIND:
        print_binding(p, s);
        break;
    case STMT_INPUT:
    case STMT_PARAM:
    case STMT_STATE:
        print_declaration(p, s);
        break;
    case STMT_FOR:
        put(p, "(for");
        print_names(p, &s->loop.item);
        print_range(p, s->loop.over, s->loop.to);
        print_body(p, &s->loop.body);
        put(p, ")");
        break;
    case STMT_IF:
        print_if(p, s);
        break;
    case STMT_BUDGET:
        put(p, "(budget");
        print_optional(p, s->budget.bytes);
        print_body(p, &s->budget.body);
        put(p, ")");
        break;
    case STMT_LOSS:
        put(p, "(loss");
        print_optional(p, s->loss);
        put(p, ")");
        break;
    case STMT_OUTPUT:
        put(p, "(output");
        print_args(p, &s->output);
        put(p, ")");
        break;
    case STMT_RETURN:
    case STMT_EMIT:
        put(p, s->kind == STMT_RETURN ? "(return" : "(emit");
        print_exprs(p, &s->values);
        put(p, ")");
        break;
    }
}

static void print_body(Print *p, const Body *b)
{
    p->indent++;
    for (int i = 0; i < b->stmt.n; i++) {
        new_line(p);
        print_stmt(p, b->stmt.at[i]);
    }
    p->indent--;
}

static void print_item(Print *p, const Item *item)
{
    static const char *const word[] = {"use", "const", "model", "fn", "block", "train"};
    text_add(p->to, "(%s %s", word[item->kind], item->name.text);
    switch (item->kind) {
    case ITEM_USE:
        break;
    case ITEM_CONST:
        print_optional(p, item->value);
        break;
    case ITEM_TRAIN:
        p->indent++;
        for (int i = 0; i < item->setting.n; i++) {
            new_line(p);
            text_add(p->to, "(%s", item->setting.at[i].name.text);
            print_exprs(p, &item->setting.at[i].value);
            put(p, ")");
        }
        p->indent--;
        break;
    default:
        put(p, " (");
        print_args(p, &item->def.arg);
        put(p, " )");
        print_body(p, &item->def.body);
        if (item->def.has_vjp) {
            put(p, "\n  vjp (");
            print_args(p, &item->def.vjp_arg);
            put(p, " )");
            print_body(p, &item->def.vjp_body);
        }
        break;
    }
    put(p, ")\n");
}

void ast_print(Text *to, const Ast *ast)
{
    Print p = {.to = to};
    for (int i = 0; i < ast->item.n; i++)
        print_item(&p, ast->item.at[i]);
}
