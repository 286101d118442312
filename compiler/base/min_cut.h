/* The minimum cut of a network: which nodes to part from the sink so that what the edges between
 * carry is least. */
#ifndef GRADC_BASE_MIN_CUT_H
#define GRADC_BASE_MIN_CUT_H

#include "vec.h"

/* More than any sum of capacities that are finite. */
#define CUT_NEVER INT64_C(1000000000000000000)

typedef struct CutEdge {
    int32_t to;
    int32_t next; /* of the same node, or -1; edge i ^ 1 is edge i backwards */
    int64_t left; /* of its capacity */
} CutEdge;

typedef struct Cut {
    Arena *arena;
    int32_t n, source, sink; /* nodes are 0..n-1 */
    int32_t *first;          /* by node: its first edge, or -1 */
    VEC(CutEdge) edge;
} Cut;

Cut cut_open(Arena *arena, int32_t n, int32_t source, int32_t sink);
/* capacity >= 0; CUT_NEVER: the edge is not to be cut. */
void cut_edge(Cut *c, int32_t from, int32_t to, int64_t capacity);
/* By node: it is on the sink's side of the minimum cut; of several, of the one that lies nearest
 * to the sink.   requires: a path of edges that are not to be cut does not join the two.
 * source: Dinic's algorithm (1970), blocking flows in layers. */
const bool *cut_solve(Cut *c);

#endif
