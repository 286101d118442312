/* A last batch may be short of rows. The graph is built for whole batches; this follows,
 * node by node, where the rows of the batch went, so that what adds them up can leave out
 * those that are not there. Known to rows.c and rows_flow.c only. */
#ifndef GRADC_FRONT_ROWS_H
#define GRADC_FRONT_ROWS_H

#include "eval.h"

/* How a value depends on the rows. Index i of axis a belongs to row i / per[a], if per[a] is
 * not 0: from (valid rows) * per[a] on, there is nothing of meaning, or (zero) exact zeros. */
typedef struct Flow {
    int64_t per[MAX_RANK];
    bool zero[MAX_RANK];
    bool lost; /* rows were mixed so that they can't be told apart */
    bool soft; /* its rows are those of draws: where they are mixed all of them count, not fewer */
} Flow;

/* True where index i of an axis is below (valid rows) * per. */
typedef struct Mask {
    Ref ref;
    int axis;
    int64_t per;
} Mask;

/* What is known of one graph. */
typedef struct Followed {
    const Graph *g;
    VEC(Flow) flow; /* by Ref, as far as it was asked for */
    VEC(Mask) mask;
    VEC(Ref) begun;     /* draws whose first axis is that of the batch */
    const Flow *arg;    /* a body whose scan is built: of its arguments */
    const Level *level; /* a body under construction */
    VEC(Ref) scan;      /* scans, and the flows of their results */
    VEC(const Flow *) result;
} Followed;

struct Rows {
    Build *b;
    VEC(Followed *) graph;
};

Followed *rows_of(Rows *rows, const Graph *g);
/* Follows all nodes of the graph that there are. */
void rows_follow(Rows *rows, Followed *f);
/* The flow of one node whose operands are known. */
Flow flow_of_node(Rows *rows, Followed *f, Ref r);
/* Where either has rows, the result has. */
Flow flow_join(const Flow *x, const Flow *y, int rank);
bool flow_same(const Flow *x, const Flow *y);

#endif
