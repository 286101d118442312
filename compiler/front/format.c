/* The tree in canonical layout: `gradc fmt`. Comments stay where they were, but
 * those inside of a statement that goes over several lines move above it; of
 * several empty lines one stays. */
#include "format.h"

#include <string.h>

static void put_body(Format *f, const Body *b);

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
    format_put(f, word);
    layout_end_cell(&f->out);
}

static void put_declaration(Format *f, const Stmt *s)
{
    format_put(f, s->kind == STMT_INPUT ? "input " : s->kind == STMT_PARAM ? "param " : "state ");
    format_names(f, &s->declare.name);
    layout_end_cell(&f->out);
    format_put(f, ": ");
    format_type(f, &s->declare.type);
    if (s->declare.init != NULL) {
        layout_end_cell(&f->out);
        format_put(f, "= ");
        format_expr(f, s->declare.init);
    }
    if (s->declare.low != NULL || s->declare.with_grad)
        layout_end_cell(&f->out);
    if (s->declare.low != NULL) {
        format_put(f, "in ");
        format_range(f, s->declare.low, s->declare.high);
    }
    if (s->declare.with_grad)
        format_put(f, s->declare.low != NULL ? " with grad" : "with grad");
}

static void put_binding(Format *f, const Stmt *s)
{
    static const char *const memory[] = {"", "keep ", "recompute ", "offload "};
    format_put(f, memory[s->bind.memory]);
    for (int i = 0; i < s->bind.target.n; i++) {
        const LeftSide *t = &s->bind.target.at[i];
        format_put(f, i > 0 ? ", " : "");
        format_put(f, t->name.text);
        if (t->index.n == 0)
            continue;
        format_open(f, "[");
        format_exprs(f, &t->index);
        format_close(f, "]");
    }
    format_put(f, " = ");
    format_expr(f, s->bind.value);
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
        format_put(f, "const ");
        format_put(f, s->named.name.text);
        format_put(f, " = ");
        format_expr(f, s->named.value);
        break;
    case STMT_BIND:
        put_binding(f, s);
        break;
    case STMT_UPDATE:
        format_put(f, s->named.name.text);
        format_put(f, " <- ");
        format_expr(f, s->named.value);
        break;
    case STMT_INPUT:
    case STMT_PARAM:
    case STMT_STATE:
        put_declaration(f, s);
        break;
    case STMT_FOR:
        format_put(f, "for ");
        format_names(f, &s->loop.item);
        format_put(f, " in ");
        format_range(f, s->loop.over, s->loop.to);
        break;
    case STMT_IF:
        format_put(f, "if ");
        format_expr(f, s->arm.at[0].condition);
        break;
    case STMT_BUDGET:
        format_put(f, "budget ");
        format_expr(f, s->budget.bytes);
        break;
    case STMT_LOSS:
        put_word(f, "loss");
        format_expr(f, s->loss);
        break;
    case STMT_OUTPUT:
        put_word(f, "output");
        format_args(f, &s->output);
        break;
    case STMT_METRIC:
        put_word(f, "metric");
        format_put(f, s->named.name.text);
        format_put(f, " = ");
        format_expr(f, s->named.value);
        break;
    case STMT_RETURN:
    case STMT_EMIT:
        format_put(f, s->kind == STMT_RETURN ? "return " : "emit ");
        format_exprs(f, &s->values);
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
        format_put(f, " else ");
        if (a->condition != NULL) {
            format_put(f, "if ");
            format_expr(f, a->condition);
            format_put(f, " ");
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
        format_put(f, " ");
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
    format_put(f, "{");
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
    format_put(f, "}");
}

/* ---- files --------------------------------------------------------------- */

static void put_formals(Format *f, const Args *args)
{
    format_open(f, "(");
    format_args(f, args);
    format_close(f, ")");
}

static void put_definition(Format *f, const Item *item)
{
    static const char *const word[] = {
        [ITEM_MODEL] = "model ", [ITEM_FN] = "fn ", [ITEM_BLOCK] = "block "};
    format_put(f, word[item->kind]);
    format_put(f, item->name.text);
    if (item->kind != ITEM_MODEL || item->def.arg.n > 0)
        put_formals(f, &item->def.arg);
    format_put(f, " ");
    put_body(f, &item->def.body);
    if (item->def.has_vjp) {
        format_put(f, " vjp");
        put_formals(f, &item->def.vjp_arg);
        format_put(f, " ");
        put_body(f, &item->def.vjp_body);
    }
}

static void put_train(Format *f, const Item *item)
{
    format_put(f, "train ");
    format_put(f, item->name.text);
    format_put(f, " {");
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
        format_exprs(f, &s->value);
        layout_end_cell(&f->out);
        comment_behind(f, s->span.to);
    }
    comments_before(f, item->span.to - 1);
    f->indent--;
    f->first = false;
    layout_line(&f->out, LINE_PLAIN, f->indent);
    format_put(f, "}");
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
        format_put(f, "use ");
        format_put(f, item->name.text);
    } else if (item->kind == ITEM_CONST) {
        format_put(f, "const ");
        format_put(f, item->name.text);
        format_put(f, " = ");
        format_expr(f, item->value);
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
