/* The tree: reading a file into it, the table of operators, looking up. */
#include "ast.h"

#include "model.tab.h"
#include "parse.h"

const char *operator_spelling(Operator op)
{
    static const char *const spelling[] = {
#define X(id, spelling, precedence) spelling,
        FOR_EACH_OPERATOR(X)
#undef X
    };
    return spelling[op];
}

int operator_precedence(Operator op)
{
    static const int precedence[] = {
#define X(id, spelling, precedence) precedence,
        FOR_EACH_OPERATOR(X)
#undef X
    };
    return precedence[op];
}

const Item *ast_find(const Ast *ast, const char *name)
{
    for (int i = 0; i < ast->item.n; i++) {
        const Item *item = ast->item.at[i];
        bool names = item->kind != ITEM_TRAIN && item->kind != ITEM_USE;
        if (names && item->name.text == name)
            return item;
    }
    return NULL;
}

Ast *parse(Ctx *cx, int32_t source)
{
    const Source *s = cx->source.at[source];
    Parser p = {.cx = cx,
                .arena = &cx->perm,
                .file = source,
                .text = s->text,
                .bytes = s->bytes,
                .stmt_start = true,
                .unclosed = NO_SPAN,
                .extra = NO_SPAN};
    int errors = cx->n_errors;
    p.told_before = errors;
    p.ast = NEW(p.arena, Ast);
    p.ast->source = source;
    if (!scan_check(&p))
        return NULL;
    ArenaMark mark = arena_mark(&cx->scratch);
    scan_begin(&p);
    model_parse(&p);
    scan_end(&p);
    arena_reset(&cx->scratch, mark);
    if (cx->n_errors == errors)
        check_tree(cx, p.ast);
    return cx->n_errors == errors ? p.ast : NULL;
}
