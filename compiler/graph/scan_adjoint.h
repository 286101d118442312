/* The reverse of a scan while it is built; known to scan_adjoint.c and scan_places.c alone. */
#ifndef GRADC_GRAPH_SCAN_ADJOINT_H
#define GRADC_GRAPH_SCAN_ADJOINT_H

#include "op.h"

/* What a node of the body is to the reverse body. */
typedef enum Part {
    UNUSED,
    COPIED,   /* computed there, too */
    CT,       /* cotangent of result `index` */
    SEQUENCE, /* slice of the operand `index` */
    SAME,     /* operand `index`, the same in every iteration */
    RESIDUAL  /* stacked by the forward scan as result `index` */
} Part;

typedef struct Place {
    Part part;
    int index;
} Place;

typedef struct Reverse {
    Graph *g, *body, *back; /* around the scan, its body, the reverse body */
    Ref n, ct;
    Scan is;
    int n_args, results;
    Ref own, all;      /* nodes of the body itself; with those of the reverse */
    bool *wanted;      /* by operand: its cotangent is asked for */
    Ref *arg;          /* by operand: its node in the body, NONE if it reads none */
    Ref *seed;         /* by result: the argument that is its cotangent, or NONE */
    Ref *d;            /* by operand: its cotangent in the body */
    bool *varies;      /* by node: depends on a carry or a sequence */
    bool *whole;       /* by carry: stacked as it is, and no cast of it */
    Place *place;      /* by node */
    Ref *map;          /* by node: in the reverse body */
    VEC(Ref) sequence; /* reverse sequences, as nodes of the body */
    VEC(Ref) same;     /* reverse operands that stay the same, likewise */
    Arena *scratch;
} Reverse;

static inline bool is_carry(const Reverse *v, int i)
{
    return i < v->is.carries;
}

static inline bool is_sequence(const Reverse *v, int i)
{
    return i >= v->is.carries && i < v->is.carries + v->is.sequences;
}

/* Result i of a body, or NONE. */
static inline Ref result(const Graph *body, int i)
{
    for (int r = 0; r < body->root.n; r++)
        if (body->root.at[r].kind == ROOT_RESULT && i-- == 0)
            return body->root.at[r].ref;
    return NONE;
}

/* What each node of the body is to the reverse body, in v->place.
 * requires: pull_back() has been there. */
void find_places(Reverse *v);

#endif
