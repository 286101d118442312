/* The op table, from the list of names. */
#include <string.h>
#include "op.h"

const Op *const optab[N_OPS] = {
#define OP(name) [OP_##name] = &op_##name,
#include "ops.def"
#undef OP
};

const char *op_word(const Op *op)
{
    return op->infix != NULL ? op->infix : op->word != NULL ? op->word : op->name;
}

OpId op_find(const char *name)
{
    for (int i = OP_NONE + 1; i < N_OPS; i++)
        if (strcmp(optab[i]->name, name) == 0)
            return (OpId)i;
    return OP_NONE;
}

int op_attrs(const Op *op)
{
    int n = 0;
    while (n < MAX_ATTRS && op->attrs[n].name != NULL)
        n++;
    return n;
}

int op_attr(const Op *op, const char *name)
{
    for (int i = 0; i < op_attrs(op); i++)
        if (strcmp(op->attrs[i].name, name) == 0)
            return i;
    return -1;
}
