/* Maximum flow in a network with integer capacities.
 *
 * source: Dinitz, Algorithm for solution of a problem of maximum flow (1970), with
 * distances to the sink and current arcs. */
#ifndef GRADC_PLAN_FLOW_H
#define GRADC_PLAN_FLOW_H

#include "../base/arena.h"

/* No capacity is above this, and no sum of capacities out of the source either. */
#define FLOW_MOST (INT64_C(1) << 60)

/* Arcs come in pairs: 2i leads there, 2i + 1 back. */
typedef struct Flow {
    int32_t n, n_arcs, source, sink;
    int32_t *to;    /* by arc */
    int64_t *left;  /* by arc: capacity that is left */
    int32_t *first; /* by node, n + 1: where its arcs are in out[] */
    int32_t *out;   /* arcs by node */
    int32_t *level; /* by node: distance to the sink, -1 if it can't be reached */
    int32_t *current, *queue, *path;
} Flow;

void flow_init(Flow *f, int32_t n, int32_t max_pairs, int32_t source, int32_t sink, Arena *a);
/* Adds a pair of arcs; returns the one that leads from u to v. */
int32_t flow_arc(Flow *f, int32_t u, int32_t v);
/* After the last arc, before the first flow. */
void flow_ready(Flow *f, Arena *a);

/* Adds as much flow as fits to what is there; returns how much that is. *work falls by
 * the arcs that are looked at; below 0 the flow that is there is not a maximum. */
int64_t flow_run(Flow *f, int64_t *work);

/* Which nodes the source still reaches: a minimum cut after flow_run. */
void flow_reached(Flow *f, bool *reached);

#endif
