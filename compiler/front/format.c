/* The tree in canonical layout: `gradc fmt`. Comments stay where they were, but
 * those inside of a statement that goes over several lines move above it; of
 * several empty lines one stays. */
#include "ast.h"
#include "layout.h"

#include <string.h>

typedef struct Format {
    const Ast *ast;
    const Source *source;
    Layout out;
    int indent;
    int next;   /* comment not yet written */
    bool first; /* nothing stands in this body yet */
} Format;

static void put_expr(Format *f, const Expr *e);
static void put_body(Format *f, const Body *b);

static void put(Format *f, const char *text)
{
    text_put(&f->out.cell, text, strlen(text));
}

/* ---- expressions --------------------------------------------------------- */

static void open_bracket(Format *f, const char *bracket)
{
    put(f, bracket);
    f->out.depth++;
}

static void close_bracket(Format *f, const char *bracket)
{
    f->out.depth--;
    put(f, bracket);
}

static void put_comma(Format *f, int i)
{
    if (i == 0)
        return;
    put(f, ", ");
    layout_break(&f->out);
}

static void put_exprs(Format *f, const Exprs *list)
{
    for (int i = 0; i < list->n; i++) {
        put_comma(f, i);
        put_expr(f, list->at[i]);
    }
}

static void put_names(Format *f, const Names *list)
{
    for (int i = 0; i < list->n; i++) {
        put(f, i > 0 ? ", " : "");
        put(f, list->at[i].text);
    }
}

static void put_args(Format *f, const Args *list)
{
    for (int i = 0; i < list->n; i++) {
        const Arg *a = &list->at[i];
        put_comma(f, i);
        if (a->name.text != NULL)
            put(f, a->name.text);
        if (a->name.text != NULL && a->value != NULL)
            put(f, " = ");
        if (a->value != NULL)
            put_expr(f, a->value);
    }
}

static void put_qualified(Format *f, Name module, Name name)
{
    if (module.text != NULL) {
        put(f, module.text);
        put(f, ".");
    }
    put(f, name.text);
}

static void put_string(Format *f, const char *s)
{
    put(f, "\"");
    for (; *s != '\0'; s++) {
        if (*s == '"' || *s == '\\')
            put(f, "\\");
        text_char(&f->out.cell, *s);
    }
    put(f, "\"");
}

static void put_operation(Format *f, const Expr *e)
{
    const char *op = operator_spelling(e->op.op);
    if (e->op.left == NULL) {
        put(f, op);
        put(f, e->op.op == OPERATOR_NOT ? " " : "");
    } else {
        put_expr(f, e->op.left);
        bool tight = e->op.op == OPERATOR_POW;
        put(f, tight ? "" : " ");
        if (!tight)
            layout_break(&f->out);
        put(f, op);
        put(f, tight ? "" : " ");
    }
    put_expr(f, e->op.right);
}

static void put_path(Format *f, const Path *path)
{
    put(f, path->share ? " share " : " as ");
    put(f, path->name.text);
    for (int i = 0; i < path->index.n; i++) {
        open_bracket(f, "[");
        put_expr(f, path->index.at[i]);
        close_bracket(f, "]");
    }
}

static void put_subscript(Format *f, const Subscript *s)
{
    if (s->kind == SUBSCRIPT_AT)
        put_expr(f, s->at);
    if (s->kind == SUBSCRIPT_ELLIPSIS)
        put(f, "...");
    if (s->kind != SUBSCRIPT_SLICE)
        return;
    if (s->from != NULL)
        put_expr(f, s->from);
    put(f, ":");
    if (s->to != NULL)
        put_expr(f, s->to);
    if (s->step != NULL) {
        put(f, ":");
        put_expr(f, s->step);
    }
}

static void put_index(Format *f, const Expr *e)
{
    put_expr(f, e->index.base);
    open_bracket(f, "[");
    for (int i = 0; i < e->index.subscript.n; i++) {
        put_comma(f, i);
        put_subscript(f, &e->index.subscript.at[i]);
    }
    close_bracket(f, "]");
}

static void put_range(Format *f, const Expr *from, const Expr *to)
{
    put_expr(f, from);
    if (to != NULL) {
        put(f, "..");
        put_expr(f, to);
    }
}

static void put_plain(Format *f, const Expr *e)
{
    switch (e->kind) {
    case EXPR_NUMBER:
        put(f, e->number.text);
        break;
    case EXPR_STRING:
        put_string(f, e->string);
        break;
    case EXPR_BOOL:
        put(f, e->boolean ? "true" : "false");
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
        open_bracket(f, "(");
        put_args(f, &e->call.args);
        close_bracket(f, ")");
        if (e->call.path != NULL)
            put_path(f, e->call.path);
        break;
    case EXPR_INDEX:
        put_index(f, e);
        break;
    case EXPR_TUPLE:
        put_exprs(f, &e->items);
        break;
    case EXPR_LIST:
        open_bracket(f, "[");
        put_exprs(f, &e->items);
        close_bracket(f, "]");
        break;
    case EXPR_SCAN:
        put(f, "scan ");
        put_names(f, &e->scan.item);
        put(f, " in ");
        put_range(f, e->scan.over, e->scan.to);
        put(f, e->scan.init.n > 0 ? ", " : "");
        put_args(f, &e->scan.init);
        break;
    }
}

static void put_expr(Format *f, const Expr *e)
{
    if (!e->parens) {
        put_plain(f, e);
        return;
    }
    open_bracket(f, "(");
    put_plain(f, e);
    close_bracket(f, ")");
}

static void put_type(Format *f, const TypeExpr *t)
{
    if (t->of != NULL) {
        open_bracket(f, "type(");
        put_expr(f, t->of);
        close_bracket(f, ")");
    } else {
        put(f, t->dtype.text);
    }
    if (t->has_dims) {
        open_bracket(f, "[");
        put_exprs(f, &t->dim);
        close_bracket(f, "]");
    }
}

/* ---- comments and empty lines -------------------------------------------- */

static bool line_is_empty(const char *text, int32_t from, int32_t to)
{
    while (from < to && strchr(" \t\r", text[from]) != NULL)
        from++;
    return from == to;
}

/* The line above the one that holds `at` is empty. */
static bool empty_line_above(const Format *f, int32_t at)
{
    const char *text = f->source->text;
    while (at > 0 && text[at - 1] != '\n')
        at--;
    if (at == 0)
        return false;
    int32_t end = at - 1, start = end;
    while (start > 0 && text[start - 1] != '\n')
        start--;
    return line_is_empty(text, start, end);
}

/* What begins at `at` comes next: keep an empty line that stands above it. */
static void keep_empty_line(Format *f, int32_t at)
{
    if (!f->first && empty_line_above(f, at))
        layout_empty(&f->out);
    f->first = false;
}

/* Writes the comments that stand before `at`. */
static void comments_before(Format *f, int32_t at)
{
    const Comments *all = &f->ast->comment;
    for (; f->next < all->n && all->at[f->next].span.from < at; f->next++) {
        Span s = all->at[f->next].span;
        keep_empty_line(f, s.from);
        layout_comment(&f->out, f->indent, f->source->text + s.from, (size_t)(s.to - s.from));
    }
}

/* A comment on the line that ends at `at` goes behind the last line written. */
static void comment_behind(Format *f, int32_t at)
{
    if (f->next == f->ast->comment.n)
        return;
    Span s = f->ast->comment.at[f->next].span;
    if (s.from < at || !line_is_empty(f->source->text, at, s.from))
        return;
    layout_comment_behind(&f->out, f->source->text + s.from, (size_t)(s.to - s.from));
    f->next++;
}

/* ---- statements ---------------------------------------------------------- */

/* Begins a statement whose first line reaches to `to` in the source. */
static void begin(Format *f, LineKind kind, int32_t from, int32_t to)
{
    comments_before(f, from);
    keep_empty_line(f, from);
    comments_before(f, to);
    layout_line(&f->out, kind, f->indent);
}

/* A word and what follows it: two cells, so that they can stand in columns. */
static void put_word(Format *f, const char *word)
{
    put(f, word);
    layout_end_cell(&f->out);
}

static void put_declaration(Format *f, const Stmt *s)
{
    put(f, s->kind == STMT_INPUT ? "input " : s->kind == STMT_PARAM ? "param " : "state ");
    put_names(f, &s->declare.name);
    layout_end_cell(&f->out);
    put(f, ": ");
    put_type(f, &s->declare.type);
    if (s->declare.init != NULL) {
        layout_end_cell(&f->out);
        put(f, "= ");
        put_expr(f, s->declare.init);
    }
    if (s->declare.low != NULL || s->declare.with_grad)
        layout_end_cell(&f->out);
    if (s->declare.low != NULL) {
        put(f, "in ");
        put_range(f, s->declare.low, s->declare.high);
    }
    if (s->declare.with_grad)
        put(f, s->declare.low != NULL ? " with grad" : "with grad");
}

static void put_binding(Format *f, const Stmt *s)
{
    static const char *const memory[] = {"", "keep ", "recompute ", "offload "};
    put(f, memory[s->bind.memory]);
    for (int i = 0; i < s->bind.target.n; i++) {
        const LeftSide *t = &s->bind.target.at[i];
        put(f, i > 0 ? ", " : "");
        put(f, t->name.text);
        if (t->index.n == 0)
            continue;
        open_bracket(f, "[");
        put_exprs(f, &t->index);
        close_bracket(f, "]");
    }
    put(f, " = ");
    put_expr(f, s->bind.value);
}

static LineKind line_kind(const Stmt *s)
{
    switch (s->kind) {
    case STMT_INPUT:
        return LINE_INPUT;
    case STMT_PARAM:
        return LINE_PARAM;
    case STMT_STATE:
        return LINE_STATE;
    case STMT_LOSS:
    case STMT_OUTPUT:
    case STMT_METRIC:
        return LINE_RESULT;
    default:
        return LINE_PLAIN;
    }
}

/* The first line of a statement, without the brace of its body. */
static void put_head(Format *f, const Stmt *s)
{
    switch (s->kind) {
    case STMT_CONST:
        put(f, "const ");
        put(f, s->named.name.text);
        put(f, " = ");
        put_expr(f, s->named.value);
        break;
    case STMT_BIND:
        put_binding(f, s);
        break;
    case STMT_UPDATE:
        put(f, s->named.name.text);
        put(f, " <- ");
        put_expr(f, s->named.value);
        break;
    case STMT_INPUT:
    case STMT_PARAM:
    case STMT_STATE:
        put_declaration(f, s);
        break;
    case STMT_FOR:
        put(f, "for ");
        put_names(f, &s->loop.item);
        put(f, " in ");
        put_range(f, s->loop.over, s->loop.to);
        break;
    case STMT_IF:
        put(f, "if ");
        put_expr(f, s->arm.at[0].condition);
        break;
    case STMT_BUDGET:
        put(f, "budget ");
        put_expr(f, s->budget.bytes);
        break;
    case STMT_LOSS:
        put_word(f, "loss");
        put_expr(f, s->loss);
        break;
    case STMT_OUTPUT:
        put_word(f, "output");
        put_args(f, &s->output);
        break;
    case STMT_METRIC:
        put_word(f, "metric");
        put(f, s->named.name.text);
        put(f, " = ");
        put_expr(f, s->named.value);
        break;
    case STMT_RETURN:
    case STMT_EMIT:
        put(f, s->kind == STMT_RETURN ? "return " : "emit ");
        put_exprs(f, &s->values);
        break;
    }
}

/* The body on the first line of a statement, or NULL. */
static const Body *first_body(const Stmt *s)
{
    if (s->kind == STMT_FOR)
        return &s->loop.body;
    if (s->kind == STMT_BUDGET)
        return &s->budget.body;
    if (s->kind == STMT_IF)
        return &s->arm.at[0].body;
    if (s->kind == STMT_BIND && s->bind.value->kind == EXPR_SCAN)
        return &s->bind.value->scan.body;
    return NULL;
}

static void put_other_arms(Format *f, const Stmt *s)
{
    for (int i = 1; i < s->arm.n; i++) {
        const Arm *a = &s->arm.at[i];
        put(f, " else ");
        if (a->condition != NULL) {
            put(f, "if ");
            put_expr(f, a->condition);
            put(f, " ");
        }
        put_body(f, &a->body);
    }
}

static void put_stmt(Format *f, const Stmt *s)
{
    const Body *body = first_body(s);
    begin(f, line_kind(s), s->span.from, body != NULL ? body->span.from : s->span.to);
    put_head(f, s);
    if (body != NULL) {
        put(f, " ");
        put_body(f, body);
    }
    if (s->kind == STMT_IF)
        put_other_arms(f, s);
    layout_end_cell(&f->out);
    comment_behind(f, s->span.to);
}

/* `{`, the statements, and `}` on a line that is still open. */
static void put_body(Format *f, const Body *b)
{
    put(f, "{");
    layout_end_cell(&f->out);
    comment_behind(f, b->span.from + 1);
    f->indent++;
    f->first = true;
    for (int i = 0; i < b->stmt.n; i++)
        put_stmt(f, b->stmt.at[i]);
    comments_before(f, b->span.to - 1);
    f->indent--;
    f->first = false;
    layout_line(&f->out, LINE_PLAIN, f->indent);
    put(f, "}");
}

/* ---- files --------------------------------------------------------------- */

static void put_formals(Format *f, const Args *args)
{
    open_bracket(f, "(");
    put_args(f, args);
    close_bracket(f, ")");
}

static void put_definition(Format *f, const Item *item)
{
    static const char *const word[] = {
        [ITEM_MODEL] = "model ", [ITEM_FN] = "fn ", [ITEM_BLOCK] = "block "};
    put(f, word[item->kind]);
    put(f, item->name.text);
    if (item->kind != ITEM_MODEL || item->def.arg.n > 0)
        put_formals(f, &item->def.arg);
    put(f, " ");
    put_body(f, &item->def.body);
    if (item->def.has_vjp) {
        put(f, " vjp");
        put_formals(f, &item->def.vjp_arg);
        put(f, " ");
        put_body(f, &item->def.vjp_body);
    }
}

static void put_train(Format *f, const Item *item)
{
    put(f, "train ");
    put(f, item->name.text);
    put(f, " {");
    layout_end_cell(&f->out);
    int32_t brace = item->name.span.to;
    while (f->source->text[brace] != '{')
        brace++;
    comment_behind(f, brace + 1);
    f->indent++;
    f->first = true;
    for (int i = 0; i < item->setting.n; i++) {
        const Setting *s = &item->setting.at[i];
        begin(f, LINE_SETTING, s->span.from, s->span.to);
        put_word(f, s->name.text);
        put_exprs(f, &s->value);
        layout_end_cell(&f->out);
        comment_behind(f, s->span.to);
    }
    comments_before(f, item->span.to - 1);
    f->indent--;
    f->first = false;
    layout_line(&f->out, LINE_PLAIN, f->indent);
    put(f, "}");
}

static bool has_body(const Item *item)
{
    return item->kind != ITEM_USE && item->kind != ITEM_CONST;
}

static int32_t head_end(const Item *item)
{
    if (item->kind == ITEM_TRAIN)
        return item->name.span.to;
    return has_body(item) ? item->def.body.span.from : item->span.to;
}

static void put_item(Format *f, const Item *item)
{
    begin(f, LINE_PLAIN, item->span.from, head_end(item));
    if (item->kind == ITEM_USE) {
        put(f, "use ");
        put(f, item->name.text);
    } else if (item->kind == ITEM_CONST) {
        put(f, "const ");
        put(f, item->name.text);
        put(f, " = ");
        put_expr(f, item->value);
    } else if (item->kind == ITEM_TRAIN) {
        put_train(f, item);
    } else {
        put_definition(f, item);
    }
    layout_end_cell(&f->out);
    comment_behind(f, item->span.to);
}

void ast_format(const Ctx *cx, Text *to, const Ast *ast)
{
    Format f = {.ast = ast, .source = cx->source.at[ast->source], .first = true};
    Arena arena = {0};
    layout_init(&f.out, &arena);
    for (int i = 0; i < ast->item.n; i++) {
        const Item *item = ast->item.at[i];
        bool apart =
            i > 0 && (has_body(ast->item.at[i - 1]) || (has_body(item) && item->doc == NULL));
        if (apart)
            layout_empty(&f.out);
        put_item(&f, item);
    }
    comments_before(&f, f.source->bytes + 1);
    layout_write(&f.out, to);
    arena_free(&arena);
}
