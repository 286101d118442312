/* What one element of a pointwise op computes. */
#include "op_flops.h"

float op_flops(OpFlops *known, const Graph *g, Ref r)
{
    const Node *n = node(g, r);
    const Op *op = optab[n->op];
    if (op->kind != OP_POINTWISE)
        return 0;
    float *at = &known->of[n->op][n->type.dtype];
    if (*at > 0 && !op->by_number)
        return *at - 1;
    Arena arena = {0};
    Elem e;
    Val x[8] = {0};
    Kernel *k = kernel_new(&arena, K_LOOP, "weight");
    elem_init(&e, k, g, &arena, NULL);
    for (int i = 0; i < n->n_args; i++) {
        DType t = type_of(g, arg(g, r, i))->dtype;
        int buf = k_buf(k, t, 1, K_IN);
        x[i] = k_load(k, buf, k_aff(0));
    }
    int out = k_buf(k, n->type.dtype, 1, K_OUT);
    k_store(k, out, k_aff(0), op->scalar(&e, r, x));
    k_finish(k);
    *at = (float)kernel_cost(k).flops + 1;
    arena_free(&arena);
    return *at - 1;
}
