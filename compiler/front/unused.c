/* Warnings about values that are bound and never read: by the tree alone, so that what
 * only one entry uses is not reported. */
#include "eval.h"

typedef struct Walk {
    Ctx *cx;
    Arena *arena;
    NameMap read; /* names that some expression of the definition reads */
} Walk;

static void read_expr(Walk *w, const Expr *e);
static void read_body(Walk *w, const Body *body);

static void read_name(Walk *w, const char *name)
{
    map_set(w->arena, &w->read, name, 1);
}

static void read_all(Walk *w, const Exprs *list)
{
    for (int i = 0; i < list->n; i++)
        read_expr(w, list->at[i]);
}

static void read_args(Walk *w, const Args *list)
{
    for (int i = 0; i < list->n; i++)
        read_expr(w, list->at[i].value);
}

static void read_subscripts(Walk *w, const Subscripts *list)
{
    for (int i = 0; i < list->n; i++) {
        read_expr(w, list->at[i].at);
        read_expr(w, list->at[i].from);
        read_expr(w, list->at[i].to);
        read_expr(w, list->at[i].step);
    }
}

/* A carried name is read by the next step. */
static void read_scan(Walk *w, const Expr *e)
{
    read_expr(w, e->scan.over);
    read_expr(w, e->scan.to);
    read_args(w, &e->scan.init);
    for (int i = 0; i < e->scan.init.n; i++)
        read_name(w, e->scan.init.at[i].name.text);
    read_body(w, &e->scan.body);
}

static void read_expr(Walk *w, const Expr *e)
{
    if (e == NULL)
        return;
    switch (e->kind) {
    case EXPR_NAME:
        read_name(w, e->name.module.text == NULL ? e->name.name.text : e->name.module.text);
        break;
    case EXPR_UNARY:
    case EXPR_BINARY:
        read_expr(w, e->op.left);
        read_expr(w, e->op.right);
        break;
    case EXPR_CALL:
        if (e->call.module.text != NULL)
            read_name(w, e->call.module.text);
        read_args(w, &e->call.args);
        if (e->call.path != NULL)
            read_all(w, &e->call.path->index);
        break;
    case EXPR_INDEX:
        read_expr(w, e->index.base);
        read_subscripts(w, &e->index.subscript);
        break;
    case EXPR_TUPLE:
    case EXPR_LIST:
        read_all(w, &e->items);
        break;
    case EXPR_SCAN:
        read_scan(w, e);
        break;
    default:
        break;
    }
}

static void read_declaration(Walk *w, const Stmt *s)
{
    read_expr(w, s->declare.type.of);
    read_all(w, &s->declare.type.dim);
    read_expr(w, s->declare.init);
    read_expr(w, s->declare.low);
    read_expr(w, s->declare.high);
}

static void read_output(Walk *w, const Args *list)
{
    for (int i = 0; i < list->n; i++) {
        if (list->at[i].value == NULL)
            read_name(w, list->at[i].name.text);
        read_expr(w, list->at[i].value);
    }
}

static void read_stmt(Walk *w, const Stmt *s)
{
    switch (s->kind) {
    case STMT_CONST:
    case STMT_UPDATE:
    case STMT_METRIC:
        read_expr(w, s->named.value);
        break;
    case STMT_BIND:
        read_expr(w, s->bind.value);
        for (int i = 0; i < s->bind.target.n; i++)
            read_all(w, &s->bind.target.at[i].index);
        break;
    case STMT_INPUT:
    case STMT_PARAM:
    case STMT_STATE:
        read_declaration(w, s);
        break;
    case STMT_FOR:
        read_expr(w, s->loop.over);
        read_expr(w, s->loop.to);
        read_body(w, &s->loop.body);
        break;
    case STMT_IF:
        for (int i = 0; i < s->arm.n; i++) {
            read_expr(w, s->arm.at[i].condition);
            read_body(w, &s->arm.at[i].body);
        }
        break;
    case STMT_BUDGET:
        read_expr(w, s->budget.bytes);
        read_body(w, &s->budget.body);
        break;
    case STMT_LOSS:
        read_expr(w, s->loss);
        break;
    case STMT_OUTPUT:
        read_output(w, &s->output);
        break;
    case STMT_RETURN:
    case STMT_EMIT:
        read_all(w, &s->values);
        break;
    }
}

static void read_body(Walk *w, const Body *body)
{
    for (int i = 0; i < body->stmt.n; i++)
        read_stmt(w, body->stmt.at[i]);
}

/* ---- bindings without a reader ------------------------------------------- */

static bool is_read(const Walk *w, const char *name)
{
    return *name == '_' || map_get(&w->read, name) >= 0;
}

static void check_names(Walk *w, Name name, Span whole)
{
    if (is_read(w, name.text))
        return;
    Diag *d = diag_warning(w->cx, E0130, name.span, "`%s` is never used", name.text);
    diag_range(d, whole);
}

/* Of several names that are bound at once, one that is read is enough. */
static void check_bind(Walk *w, const Stmt *s)
{
    const LeftSides *t = &s->bind.target;
    for (int i = 0; i < t->n; i++)
        if (is_read(w, t->at[i].name.text))
            return;
    check_names(w, t->at[0].name, t->at[t->n - 1].span);
}

static void check_body(Walk *w, const Body *body);

static void check_scan(Walk *w, const Expr *e)
{
    if (e->kind == EXPR_SCAN)
        check_body(w, &e->scan.body);
}

static void check_stmt(Walk *w, const Stmt *s)
{
    switch (s->kind) {
    case STMT_BIND:
        check_bind(w, s);
        check_scan(w, s->bind.value);
        break;
    case STMT_CONST:
        check_names(w, s->named.name, s->named.name.span);
        break;
    case STMT_FOR:
        check_body(w, &s->loop.body);
        break;
    case STMT_IF:
        for (int i = 0; i < s->arm.n; i++)
            check_body(w, &s->arm.at[i].body);
        break;
    case STMT_BUDGET:
        check_body(w, &s->budget.body);
        break;
    default:
        break;
    }
}

static void check_body(Walk *w, const Body *body)
{
    for (int i = 0; i < body->stmt.n; i++)
        check_stmt(w, body->stmt.at[i]);
}

void warn_unused(Ctx *cx, const Ast *ast)
{
    for (int i = 0; i < ast->item.n; i++) {
        const Item *item = ast->item.at[i];
        if (item->kind != ITEM_MODEL && item->kind != ITEM_FN && item->kind != ITEM_BLOCK)
            continue;
        ArenaMark mark = arena_mark(&cx->scratch);
        Walk w = {.cx = cx, .arena = &cx->scratch};
        read_args(&w, &item->def.arg);
        read_body(&w, &item->def.body);
        read_body(&w, &item->def.vjp_body);
        check_body(&w, &item->def.body);
        check_body(&w, &item->def.vjp_body);
        arena_reset(&cx->scratch, mark);
    }
}
