#include "eval.h"
Graph *build_accumulate(Ctx *cx, Model *m, Graph *g)
{
    (void)cx, (void)m;
    return g;
}
