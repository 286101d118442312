/* grammar/ops.md, printed from the op table. */
#include <string.h>
#include "op.h"

static const char *const kind_text[] = {
    [OP_SOURCE] = "source",    [OP_POINTWISE] = "pointwise",  [OP_VIEW] = "view",
    [OP_REDUCE] = "reduction", [OP_CONTRACT] = "contraction", [OP_OPAQUE] = "kernel of its own",
    [OP_SCAN] = "loop",        [OP_TUPLE] = "no code",
};

static const char *const attr_text[] = {
    [ATTR_INT] = "integer",   [ATTR_BOOL] = "true or false",    [ATTR_FLOAT] = "number",
    [ATTR_DTYPE] = "type",    [ATTR_INTS] = "list of integers", [ATTR_NAME] = "name",
    [ATTR_MAP] = "index map", [ATTR_DATA] = "list of numbers",  [ATTR_BODY] = "body",
};

static void signature(const Op *op, Text *to)
{
    text_add(to, "%s, ", kind_text[op->kind]);
    if (op->n_args < 0)
        text_add(to, "any number of operands");
    else
        text_add(to, "%d operand%s", op->n_args, op->n_args == 1 ? "" : "s");
    for (int i = 0; i < op_attrs(op); i++)
        text_add(to, "%s `%s` (%s)", i == 0 ? "; attributes" : ",", op->attrs[i].name,
                 attr_text[op->attrs[i].kind]);
    if (strcmp(op_word(op), op->name) != 0)
        text_add(to, "; written `%s`", op_word(op));
    text_add(to, ".\n\n");
}

static void examples(const char *s, Text *to)
{
    text_add(to, "```\n");
    while (*s != '\0') {
        size_t n = strcspn(s, ";");
        text_put(to, s, n);
        text_char(to, '\n');
        s += n;
        s += strspn(s, "; ");
    }
    text_add(to, "```\n");
}

static void entry(const Op *op, Text *to)
{
    text_add(to, "\n## %s\n\n%s\n\n", op->name, op->doc);
    signature(op, to);
    examples(op->example, to);
    if (op->nondiff != NULL)
        text_add(to, "\nNo derivative: %s.\n", op->nondiff);
    if (op->given)
        text_add(to, "\nThe derivative is what is said here, whatever the value is.\n");
    if (op->kinks != NULL)
        text_add(to, "\nDerivative: %s.\n", op->kinks);
    if (op->source != NULL)
        text_add(to, "\nSource: %s.\n", op->source);
}

void ops_manual(Text *to)
{
    text_add(to,
             "# Ops\n\n"
             "Every op of the graph, printed from the op table (`compiler/graph/ops.def`, rows in\n"
             "`compiler/ops/`); a test fails when this page is stale. In an example a type stands\n"
             "for an operand. The text form of graphs is in `gir.md`.\n");
    for (int i = OP_NONE + 1; i < N_OPS; i++)
        entry(optab[i], to);
}
