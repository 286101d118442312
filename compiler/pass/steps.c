/* Steps in f32 of a chain of elementwise values from one half to the next, as narrow() leaves them:
 * kept, they take twice the bytes of the half that they are made of. */
#include "pass.h"

bool *graph_steps(const Graph *g, Arena *a)
{
    Ref *of = NEW_ARRAY(a, Ref, g->node.n); /* the half that it is made of, or NONE */
    bool *step = NEW_ARRAY(a, bool, g->node.n);
    for (Ref r = 1; r < g->n_primal; r++) {
        if (optab[op_of(g, r)]->kind != OP_POINTWISE)
            continue;
        bool one = true;
        for (int i = 0; i < node(g, r)->n_args; i++) {
            Ref x = arg(g, r, i), half = dtype_is_half(type_of(g, x)->dtype) ? x : of[x];
            half = graph_spreads(g, x) ? NONE : half;
            one = one && (of[r] == NONE || half == NONE || half == of[r]);
            of[r] = half != NONE ? half : of[r];
        }
        step[r] = one && of[r] != NONE && type_of(g, r)->dtype == F32;
        of[r] = step[r] ? of[r] : NONE;
    }
    return step;
}
