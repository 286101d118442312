/* What graphs are expected to take, before there are kernels. */
#ifndef GRADC_PASS_GRAPH_COST_H
#define GRADC_PASS_GRAPH_COST_H

#include "op_flops.h"

/* In ns, of a node and of all nodes; bodies of scans as often as they run. */
double node_ns(OpFlops *known, const Graph *g, Ref r);
double graph_ns(OpFlops *known, const Graph *g);

#endif
