/* Making the nodes of the tree, and finding the comment that documents them. */
#include "tree.h"

#include <string.h>

/* ---- expressions --------------------------------------------------------- */

static int depth_of(const Expr *e)
{
    return e == NULL ? 0 : e->depth;
}

/* A node over children of at most this depth. */
static Expr *new_expr(Parser *p, Span at, ExprKind kind, int below)
{
    Expr *e = NEW(p->arena, Expr);
    e->kind = kind;
    e->span = at;
    if (below >= MAX_EXPR_DEPTH) {
        syntax_too_deep(p, at);
        below = 0;
    }
    e->depth = (int16_t)(below + 1);
    return e;
}

static int deepest(int depth, const Expr *e)
{
    return depth_of(e) > depth ? depth_of(e) : depth;
}

static int deepest_of(int depth, const Exprs *list)
{
    for (int i = 0; i < list->n; i++)
        depth = deepest(depth, list->at[i]);
    return depth;
}

static int deepest_arg(const Args *list)
{
    int depth = 0;
    for (int i = 0; i < list->n; i++)
        depth = deepest(depth, list->at[i].value);
    return depth;
}

Expr *tree_string(Parser *p, Span at, const char *text)
{
    Expr *e = new_expr(p, at, EXPR_STRING, 0);
    e->string = text;
    return e;
}

Expr *tree_bool(Parser *p, Span at, bool value)
{
    Expr *e = new_expr(p, at, EXPR_BOOL, 0);
    e->boolean = value;
    return e;
}

Expr *tree_name(Parser *p, Span at, Name module, Name name)
{
    Expr *e = new_expr(p, at, EXPR_NAME, 0);
    e->name.module = module;
    e->name.name = name;
    return e;
}

Expr *tree_op(Parser *p, Span at, Operator op, Span op_at, Expr *left, Expr *right)
{
    Expr *e = new_expr(p, at, EXPR_BINARY, deepest(depth_of(left), right));
    if (left == NULL)
        e->kind = EXPR_UNARY;
    e->op.op = op;
    e->op.at = op_at;
    e->op.left = left;
    e->op.right = right;
    return e;
}

static bool is_comparison(const Expr *e)
{
    return e->kind == EXPR_BINARY && !e->parens &&
           operator_precedence(e->op.op) == operator_precedence(OPERATOR_EQ);
}

Expr *tree_compare(Parser *p, Span at, Operator op, Span op_at, Expr *left, Expr *right)
{
    if (is_comparison(left) && !p->stopped) {
        Diag *d = diag_error(p->cx, E0109, op_at, "comparisons do not chain");
        diag_range(d, left->op.at);
        diag_help(p->cx, d, "join two comparisons with `and`");
    }
    return tree_op(p, at, op, op_at, left, right);
}

Expr *tree_call(Parser *p, Span at, Name module, Name name, const Args *args)
{
    Expr *e = new_expr(p, at, EXPR_CALL, deepest_arg(args));
    e->call.module = module;
    e->call.name = name;
    e->call.args = *args;
    return e;
}

Expr *tree_as(Parser *p, Span at, Expr *call, Path *path, bool share)
{
    (void)p;
    call->span = at;
    call->call.path = path;
    path->share = share;
    return call;
}

Expr *tree_index(Parser *p, Span at, Expr *base, const Subscripts *subscripts)
{
    int depth = base->depth;
    for (int i = 0; i < subscripts->n; i++) {
        const Subscript *s = &subscripts->at[i];
        depth = deepest(deepest(deepest(deepest(depth, s->at), s->from), s->to), s->step);
    }
    Expr *e = new_expr(p, at, EXPR_INDEX, depth);
    e->index.base = base;
    e->index.subscript = *subscripts;
    return e;
}

Expr *tree_items(Parser *p, Span at, ExprKind kind, const Exprs *items)
{
    Expr *e = new_expr(p, at, kind, deepest_of(0, items));
    e->items = *items;
    return e;
}

Expr *tree_parens(Expr *e, Span at)
{
    e->span = at;
    e->parens = true;
    return e;
}

Expr *tree_scan(Parser *p, Span at, const Names *item, Expr *over, Expr *to, const Args *init,
                const Body *body)
{
    Expr *e = new_expr(p, at, EXPR_SCAN, deepest(deepest(deepest_arg(init), over), to));
    e->scan.item = *item;
    e->scan.over = over;
    e->scan.to = to;
    e->scan.init = *init;
    e->scan.body = *body;
    return e;
}

Path *tree_path(Parser *p, Span at, Name name)
{
    Path *path = NEW(p->arena, Path);
    path->name = name;
    path->span = at;
    return path;
}

Subscript tree_slice(Span at, Expr *from, Expr *to, Expr *step)
{
    return (Subscript){SUBSCRIPT_SLICE, NULL, from, to, step, at};
}

TypeExpr *tree_type(Parser *p, Span at, Name name, Expr *of, const Exprs *dims)
{
    TypeExpr *t = NEW(p->arena, TypeExpr);
    t->span = at;
    t->of = of;
    if (of == NULL)
        t->dtype = name;
    else if (strcmp(name.text, "type") != 0 && !p->stopped)
        diag_error(p->cx, E0101, name.span, "expected a type, got the call `%s(...)`", name.text);
    t->has_dims = dims != NULL;
    if (dims != NULL)
        t->dim = *dims;
    return t;
}

/* ---- the comment above --------------------------------------------------- */

/* Index after the last comment that begins before `from`. */
static int comments_before(const Ast *ast, int32_t from)
{
    int low = 0, high = ast->comment.n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (ast->comment.at[middle].span.from < from)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Between the two is one line end and nothing else that shows. */
static bool adjoins(const Parser *p, int32_t from, int32_t to)
{
    int lines = 0;
    for (int32_t i = from; i < to; i++) {
        if (p->text[i] == '\n')
            lines++;
        else if (strchr(" \t\r", p->text[i]) == NULL)
            return false;
    }
    return lines == 1;
}

/* Text of the comment lines that stand directly above, without their `# `. */
static const char *doc_above(Parser *p, int32_t from)
{
    int last = comments_before(p->ast, from), first = last;
    int32_t below = from;
    while (first > 0) {
        const Comment *c = &p->ast->comment.at[first - 1];
        if (!c->own_line || !adjoins(p, c->span.to, below))
            break;
        below = c->span.from;
        first--;
    }
    if (first == last)
        return NULL;
    Text t;
    text_init(&t, p->arena);
    for (int i = first; i < last; i++) {
        Span s = p->ast->comment.at[i].span;
        int32_t start = s.from + 1;
        start += start < s.to && p->text[start] == ' ';
        if (i > first)
            text_char(&t, '\n');
        text_put(&t, p->text + start, (size_t)(s.to - start));
    }
    return t.at;
}

/* ---- statements and definitions ------------------------------------------ */

Stmt *tree_stmt(Parser *p, Span at, StmtKind kind)
{
    Stmt *s = NEW(p->arena, Stmt);
    s->kind = kind;
    s->span = at;
    s->doc = doc_above(p, at.from);
    return s;
}

Stmt *tree_named(Parser *p, Span at, StmtKind kind, Name name, Expr *value)
{
    Stmt *s = tree_stmt(p, at, kind);
    s->named.name = name;
    s->named.value = value;
    return s;
}

Stmt *tree_declare(Parser *p, Span at, StmtKind kind, const Names *names, const TypeExpr *type)
{
    Stmt *s = tree_stmt(p, at, kind);
    s->declare.name = *names;
    s->declare.type = *type;
    return s;
}

Body *tree_body(Parser *p, Span at, const Stmts *stmts)
{
    Body *b = NEW(p->arena, Body);
    b->stmt = *stmts;
    b->span = at;
    return b;
}

void tree_arm(Parser *p, Stmt *s, Expr *condition, const Body *body, Span at)
{
    if (s->arm.n > 0 && s->arm.at[s->arm.n - 1].condition == NULL && !p->stopped) {
        Diag *d = diag_error(p->cx, E0106, at, "nothing can follow the `else` of an `if`");
        diag_note(p->cx, d, s->arm.at[s->arm.n - 1].span, "the `else` is here");
    }
    vec_push(p->arena, &s->arm, ((Arm){condition, *body, at}));
}

Item *tree_item(Parser *p, Span at, ItemKind kind, Name name)
{
    Item *i = NEW(p->arena, Item);
    i->kind = kind;
    i->span = at;
    i->name = name;
    i->doc = doc_above(p, at.from);
    vec_push(p->arena, &p->ast->item, i);
    return i;
}

void tree_setting(Parser *p, Settings *to, Name name, const Exprs *value, Span at)
{
    static const char *const known[] = {"optimizer", "clip",   "accumulate",
                                        "precision", "freeze", "guard"};
    enum { N_KNOWN = sizeof known / sizeof *known };
    int i = 0;
    while (i < N_KNOWN && strcmp(known[i], name.text) != 0)
        i++;
    if (i == N_KNOWN && !p->stopped) {
        Diag *d = diag_error(p->cx, E0501, name.span, "`train` has no setting `%s`", name.text);
        const char *near = nearest(name.text, known, N_KNOWN);
        if (near != NULL)
            diag_help(p->cx, d, "did you mean `%s`?", near);
        else
            diag_help(p->cx, d,
                      "the settings are optimizer, clip, accumulate, precision, "
                      "freeze and guard");
    }
    vec_push(p->arena, to, ((Setting){name, *value, at}));
}
