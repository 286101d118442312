/* Rules of the language that the grammar does not state: which statement may stand
 * where, and what may be said only once. They hold in code that is never reached,
 * too, so they are looked at here and not when a graph is built. */
#include "ast.h"
#include "parse.h"

#include <string.h>

typedef struct Check {
    Ctx *cx;
    const Item *item; /* the definition we are in */
    int scans;        /* scans around this statement */
    bool in_vjp;
} Check;

static void check_expr(Check *c, const Expr *e);
static void check_body(Check *c, const Body *b);

/* ---- said once ----------------------------------------------------------- */

static void report_twice(Check *c, const char *what, Name again, Name first)
{
    Diag *d = diag_error(c->cx, E0108, again.span, "%s `%s` is given twice", what, again.text);
    diag_note(c->cx, d, first.span, "the first is here");
}

/* Each name at most once. Quadratic only up to the first repetition. */
static void check_once(Check *c, const char *what, const Args *list)
{
    ArenaMark mark = arena_mark(&c->cx->scratch);
    Interns seen = {.arena = &c->cx->scratch};
    for (int i = 0; i < list->n; i++) {
        Name n = list->at[i].name;
        uint32_t before = seen.n;
        if (n.text != NULL)
            intern(&seen, n.text);
        if (n.text == NULL || seen.n > before)
            continue;
        int first = 0;
        while (list->at[first].name.text != n.text)
            first++;
        report_twice(c, what, n, list->at[first].name);
    }
    arena_reset(&c->cx->scratch, mark);
}

static void check_names_once(Check *c, const Names *list)
{
    for (int i = 1; i < list->n && list->n <= 64; i++)
        for (int j = 0; j < i; j++)
            if (list->at[i].text == list->at[j].text) {
                report_twice(c, "the name", list->at[i], list->at[j]);
                return;
            }
}

/* ---- expressions --------------------------------------------------------- */

static void check_call(Check *c, const Expr *e)
{
    const Args *args = &e->call.args;
    const Arg *keyword = NULL;
    for (int i = 0; i < args->n; i++) {
        const Arg *a = &args->at[i];
        if (a->name.text != NULL) {
            keyword = a;
        } else if (keyword != NULL) {
            Diag *d = diag_error(c->cx, E0107, a->span,
                                 "an argument without a name behind one with a name");
            diag_range(d, keyword->span);
            break;
        }
    }
    check_once(c, "the argument", args);
    for (int i = 0; i < args->n; i++)
        check_expr(c, args->at[i].value);
    for (int i = 0; e->call.path != NULL && i < e->call.path->index.n; i++)
        check_expr(c, e->call.path->index.at[i]);
}

static void check_subscripts(Check *c, const Expr *e)
{
    const Subscript *dots = NULL;
    for (int i = 0; i < e->index.subscript.n; i++) {
        const Subscript *s = &e->index.subscript.at[i];
        if (s->kind == SUBSCRIPT_ELLIPSIS && dots != NULL) {
            Diag *d = diag_error(c->cx, E0108, s->span, "`...` is given twice in one index");
            diag_range(d, dots->span);
        }
        dots = s->kind == SUBSCRIPT_ELLIPSIS ? s : dots;
        check_expr(c, s->at);
        check_expr(c, s->from);
        check_expr(c, s->to);
        check_expr(c, s->step);
    }
    check_expr(c, e->index.base);
}

static void check_scan(Check *c, const Expr *e)
{
    check_once(c, "the carried value", &e->scan.init);
    check_names_once(c, &e->scan.item);
    check_expr(c, e->scan.over);
    check_expr(c, e->scan.to);
    for (int i = 0; i < e->scan.init.n; i++)
        check_expr(c, e->scan.init.at[i].value);
    c->scans++;
    check_body(c, &e->scan.body);
    c->scans--;
}

static void check_expr(Check *c, const Expr *e)
{
    if (e == NULL)
        return;
    switch (e->kind) {
    case EXPR_UNARY:
    case EXPR_BINARY:
        check_expr(c, e->op.left);
        check_expr(c, e->op.right);
        break;
    case EXPR_CALL:
        check_call(c, e);
        break;
    case EXPR_INDEX:
        check_subscripts(c, e);
        break;
    case EXPR_TUPLE:
    case EXPR_LIST:
        for (int i = 0; i < e->items.n; i++)
            check_expr(c, e->items.at[i]);
        break;
    case EXPR_SCAN:
        check_scan(c, e);
        break;
    case EXPR_NUMBER:
    case EXPR_STRING:
    case EXPR_BOOL:
    case EXPR_NAME:
        break;
    }
}

/* ---- statements ---------------------------------------------------------- */

static void misplaced(Check *c, const Stmt *s, const char *what, const char *help)
{
    Diag *d = diag_error(c->cx, E0106, s->span, "%s", what);
    diag_help(c->cx, d, "%s", help);
}

/* What a statement says about the place it may stand in. */
static void check_place(Check *c, const Stmt *s)
{
    ItemKind in = c->item->kind;
    switch (s->kind) {
    case STMT_INPUT:
    case STMT_LOSS:
    case STMT_OUTPUT:
    case STMT_METRIC:
        if (c->scans > 0)
            misplaced(c, s, "inside of a `scan`", "this belongs to the model around it");
        else if (in != ITEM_MODEL)
            misplaced(c, s, "only a model has inputs, outputs, metrics and a loss",
                      in == ITEM_FN ? "a fn takes arguments and returns values"
                                    : "a block takes arguments and returns values");
        break;
    case STMT_PARAM:
    case STMT_STATE:
    case STMT_UPDATE:
        if (in == ITEM_FN)
            misplaced(c, s, "a fn has no parameters and no state", "make it a `block`");
        break;
    case STMT_RETURN:
        if (in == ITEM_MODEL)
            misplaced(c, s, "a model returns nothing", "use `output` or `loss`");
        else if (c->scans > 0)
            misplaced(c, s, "`return` inside of a `scan`", "each step gives its value by `emit`");
        break;
    case STMT_EMIT:
        if (c->scans == 0)
            misplaced(c, s, "`emit` outside of a `scan`", "a fn or block ends with `return`");
        break;
    default:
        break;
    }
}

static void check_declaration(Check *c, const Stmt *s)
{
    check_names_once(c, &s->declare.name);
    check_expr(c, s->declare.type.of);
    for (int i = 0; i < s->declare.type.dim.n; i++)
        check_expr(c, s->declare.type.dim.at[i]);
    check_expr(c, s->declare.init);
    check_expr(c, s->declare.low);
    check_expr(c, s->declare.high);
}

static void check_binding(Check *c, const Stmt *s)
{
    const LeftSides *t = &s->bind.target;
    for (int i = 0; i < t->n; i++)
        for (int j = 0; j < t->at[i].index.n; j++)
            check_expr(c, t->at[i].index.at[j]);
    for (int i = 1; i < t->n && t->n <= 64; i++)
        for (int j = 0; j < i; j++)
            if (t->at[i].index.n + t->at[j].index.n == 0 &&
                t->at[i].name.text == t->at[j].name.text)
                report_twice(c, "the name", t->at[i].name, t->at[j].name);
    check_expr(c, s->bind.value);
}

static void check_stmt(Check *c, const Stmt *s)
{
    check_place(c, s);
    switch (s->kind) {
    case STMT_CONST:
    case STMT_UPDATE:
    case STMT_METRIC:
        check_expr(c, s->named.value);
        break;
    case STMT_BIND:
        check_binding(c, s);
        break;
    case STMT_INPUT:
    case STMT_PARAM:
    case STMT_STATE:
        check_declaration(c, s);
        break;
    case STMT_FOR:
        check_names_once(c, &s->loop.item);
        check_expr(c, s->loop.over);
        check_expr(c, s->loop.to);
        check_body(c, &s->loop.body);
        break;
    case STMT_IF:
        for (int i = 0; i < s->arm.n; i++) {
            check_expr(c, s->arm.at[i].condition);
            check_body(c, &s->arm.at[i].body);
        }
        break;
    case STMT_BUDGET:
        check_expr(c, s->budget.bytes);
        check_body(c, &s->budget.body);
        break;
    case STMT_LOSS:
        check_expr(c, s->loss);
        break;
    case STMT_OUTPUT:
        for (int i = 0; i < s->output.n; i++)
            check_expr(c, s->output.at[i].value);
        break;
    case STMT_RETURN:
    case STMT_EMIT:
        for (int i = 0; i < s->values.n; i++)
            check_expr(c, s->values.at[i]);
        break;
    }
}

/* Where none may stand, that is all there is to say of it. */
static bool may_return(const Check *c)
{
    return c->item->kind != ITEM_MODEL && c->scans == 0;
}

static void check_body(Check *c, const Body *b)
{
    for (int i = 0; i < b->stmt.n; i++) {
        const Stmt *s = b->stmt.at[i];
        if (i > 0 && b->stmt.at[i - 1]->kind == STMT_RETURN && may_return(c)) {
            Diag *d = diag_error(c->cx, E0110, s->span, "nothing is done behind a `return`");
            diag_note(c->cx, d, b->stmt.at[i - 1]->span, "the `return` is here");
        }
        check_stmt(c, s);
    }
}

/* ---- definitions --------------------------------------------------------- */

/* Arguments with a default come last; a model's all have one. */
static void check_formals(Check *c, const Item *item, const Args *args)
{
    const Arg *with_default = NULL;
    for (int i = 0; i < args->n; i++) {
        const Arg *a = &args->at[i];
        if (a->value != NULL)
            with_default = a;
        else if (item->kind == ITEM_MODEL)
            diag_help(c->cx,
                      diag_error(c->cx, E0111, a->span, "the model's argument `%s` has no default",
                                 a->name.text),
                      "a default makes the model complete; `-D %s=...` changes it", a->name.text);
        else if (with_default != NULL)
            diag_range(diag_error(c->cx, E0107, a->span,
                                  "`%s` has no default, but stands behind one that has",
                                  a->name.text),
                       with_default->span);
        check_expr(c, a->value);
    }
    check_once(c, "the argument", args);
}

static void check_item(Check *c, const Item *item)
{
    c->item = item;
    switch (item->kind) {
    case ITEM_CONST:
        check_expr(c, item->value);
        break;
    case ITEM_MODEL:
    case ITEM_BLOCK:
    case ITEM_FN:
        check_formals(c, item, &item->def.arg);
        check_body(c, &item->def.body);
        check_formals(c, item, &item->def.vjp_arg);
        check_body(c, &item->def.vjp_body);
        break;
    case ITEM_TRAIN:
        for (int i = 0; i < item->setting.n; i++)
            for (int j = 0; j < item->setting.at[i].value.n; j++)
                check_expr(c, item->setting.at[i].value.at[j]);
        break;
    case ITEM_USE:
        break;
    }
}

/* Definitions share one set of names; `use` and `train` have one each. */
static int name_space(const Item *item)
{
    return item->kind == ITEM_USE ? 0 : item->kind == ITEM_TRAIN ? 1 : 2;
}

static void check_definitions(Check *c, const Ast *ast)
{
    ArenaMark mark = arena_mark(&c->cx->scratch);
    Interns seen[3];
    for (int i = 0; i < 3; i++)
        seen[i] = (Interns){.arena = &c->cx->scratch};
    for (int i = 0; i < ast->item.n; i++) {
        const Item *item = ast->item.at[i];
        Interns *set = &seen[name_space(item)];
        uint32_t before = set->n;
        intern(set, item->name.text);
        if (set->n > before)
            continue;
        int first = 0;
        while (ast->item.at[first]->name.text != item->name.text ||
               name_space(ast->item.at[first]) != name_space(item))
            first++;
        report_twice(c, item->kind == ITEM_TRAIN ? "the training of" : "the definition of",
                     item->name, ast->item.at[first]->name);
    }
    arena_reset(&c->cx->scratch, mark);
}

void check_tree(Ctx *cx, const Ast *ast)
{
    Check c = {.cx = cx};
    for (int i = 0; i < ast->item.n; i++)
        check_item(&c, ast->item.at[i]);
    check_definitions(&c, ast);
}
