/* What graphs are expected to take, before there are kernels: flops and elements, and how fast a
 * machine that stands for all goes through them (cost_time, of the planner). */
#include "graph_cost.h"

#include "../plan/plan.h"

static double elems(const Graph *g, Ref r)
{
    return type_of(g, r)->rank < 0 ? 0 : (double)type_elems(type_of(g, r));
}

static double contract_ns(const Graph *g, Ref r)
{
    const Attr *extent = attr(g, r, CONTRACT_EXTENT);
    double flops = 2;
    for (int i = 0; i < extent->n; i++)
        flops *= (double)extent->ints[i];
    return flops / cost_time.flops;
}

double node_ns(OpFlops *known, const Graph *g, Ref r)
{
    switch (optab[op_of(g, r)]->kind) {
    case OP_POINTWISE:
        return op_flops(known, g, r) * elems(g, r) / cost_time.work;
    case OP_REDUCE:
        return elems(g, arg(g, r, 0)) / cost_time.work;
    case OP_CONTRACT:
        return contract_ns(g, r);
    case OP_SCAN:
        return (double)attr(g, r, SCAN_COUNT)->i * graph_ns(known, attr(g, r, SCAN_BODY)->body);
    default:
        return 0;
    }
}

double graph_ns(OpFlops *known, const Graph *g)
{
    double ns = 0;
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        ns += node_ns(known, g, r);
    return ns;
}
