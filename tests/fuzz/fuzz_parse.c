/* libFuzzer: any bytes are either refused with a diagnostic, or a tree whose
 * canonical layout reads back as the same tree and is its own layout. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "front/ast.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void must(bool holds, const char *what, const char *text)
{
    if (holds)
        return;
    fprintf(stderr, "%s:\n%s\n", what, text);
    abort();
}

static const char *tree_text(Ctx *cx, const Ast *ast)
{
    Text t;
    text_init(&t, &cx->perm);
    ast_print(&t, ast);
    return t.at;
}

static Text layout(Ctx *cx, const Ast *ast)
{
    Text t;
    text_init(&t, &cx->perm);
    ast_format(cx, &t, ast);
    return t;
}

static void check_layout(Ctx *cx, const Ast *ast)
{
    Text once = layout(cx, ast);
    const Ast *again = parse(cx, source_add(cx, "layout", once.at, once.n, false));
    if (again == NULL)
        diag_print(cx, stderr);
    must(again != NULL, "the layout does not read back", once.at);
    must(strcmp(tree_text(cx, ast), tree_text(cx, again)) == 0, "the layout is another tree",
         once.at);
    must(strcmp(once.at, layout(cx, again).at) == 0, "the layout has another layout", once.at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    Ctx cx;
    ctx_init(&cx);
    const Ast *ast = parse(&cx, source_add(&cx, "fuzz", (const char *)data, bytes, false));
    if (ast != NULL)
        check_layout(&cx, ast);
    must((ast == NULL) == (cx.n_errors > 0), "no tree, and no error", "");
    FILE *nowhere = fopen("/dev/null", "w");
    cx.json = bytes % 2 == 1;
    if (nowhere != NULL && cx.diag.n > 0)
        diag_print(&cx, nowhere);
    if (nowhere != NULL)
        fclose(nowhere);
    ctx_free(&cx);
    return 0;
}
