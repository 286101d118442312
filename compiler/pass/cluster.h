/* Groups: what one kernel computes. cluster() decides which nodes have a buffer of
 * their own (are stored) and which are computed where they are read (inlined), and
 * builds the kernel of each group, from which all costs are counted. */
#ifndef GRADC_PASS_CLUSTER_H
#define GRADC_PASS_CLUSTER_H

#include "elem.h"

typedef enum GroupKind {
    GROUP_LOOP,     /* pointwise chains and row kernels */
    GROUP_CONTRACT, /* a contraction with prologues and an epilogue */
    GROUP_OPAQUE,   /* an op's own kernel */
    GROUP_SCAN      /* a loop step with a body */
} GroupKind;

/* A value that a group stores: in a buffer of its own, or (slot >= 0) as the new
 * value of pinned storage. Of a contraction, one may be whether `all` is true everywhere. */
typedef struct GroupOut {
    Ref ref;
    int32_t slot;
    Ref all; /* a node of the main node's shape, or NONE */
} GroupOut;

/* Kernel buffer i of a group: a node's value that is read, or out number `out`. */
typedef struct GroupOperand {
    Ref ref;
    int32_t out; /* -1: read */
} GroupOperand;

typedef struct Clusters Clusters;

typedef struct Group {
    GroupKind kind;
    Ref anchor; /* the contraction, opaque op or scan; else the main node */
    Ref main;   /* its shape gives the loops */
    VEC(GroupOut) out;
    VEC(Ref) private; /* stored nodes that only this group reads: they need no memory */
    float weight; /* flops, or nodes, of an element of all that its loops store or keep private */
    bool guarded; /* nothing but guarded assignments depends on it */
    bool copies;  /* its outs are in memory already: they only go to a slot */
    Kernel *kernel;
    double ns;          /* measured of the kernel; 0: nobody has */
    int64_t lane_bytes; /* scratch of one lane that it wants of all lanes, the most of a body's; */
    int64_t lanes, own_bytes; /* ... so many at most want so much each; 0: all want the former */
    VEC(GroupOperand) operand;
    Clusters *body; /* GROUP_SCAN */
} Group;

struct Clusters {
    Arena *arena;
    Arena *scratch; /* kernels in the making and their traces; gone when all are made */
    const Graph *g;
    const Caps *caps;
    VEC(Group) group;
    VEC(int32_t) order; /* live groups in execution order */
    const Tails *tails; /* of a body; NULL: none */
    bool *stored;       /* by Ref: has memory of its own (sources too) */
    int32_t *group_of;  /* by Ref: the group that computes a stored node, or -1 */
    int64_t *pitch;     /* by Ref: elements from row to row of a stored node, 0: of its last axis;
                         * NULL: so of all of them */
};

/* requires: a verified, simplified graph.   gives: groups in a legal order, each
 * with a verified kernel.   fails: never on a verified graph. */
Clusters *cluster(Ctx *cx, const Graph *g, const Caps *caps, Arena *arena);

/* The node whose memory a reshape of it is in, or rows of it that lie together ... */
Ref memory_of(const Graph *g, const bool *stored, Ref r);
/* ... from this element on. */
int64_t memory_shift(const Graph *g, const bool *stored, Ref r);

/* How a stored node reads other stored nodes, seen from its own loops. */
typedef struct Trace {
    Trouble trouble;
    Ref store_first;
    int n_loops;
    Axis axis[MAX_AXES];
    int n_axes;
    VEC(Request) request; /* at no bounds, indices over the loops of `axis` */
    Kernel *kernel;
} Trace;

/* Builds a throwaway kernel that computes `r` alone, reading every other stored node. */
void trace_node(const Clusters *c, Ref r, const Ref *here, int n_here, Trace *t);

/* Builds the group's kernel. FINE, or what must change first. */
Trouble group_lower(Clusters *c, Group *gr, Ref *store_first);

/* Merges loops that move together: par i { par j { x[N*i + j] } } is one loop. */
Kernel *kernel_coalesce(Arena *arena, Arena *scratch, const Kernel *k);

/* May buffer `out` be the same memory as buffer `in`? True if each element of `in`
 * is read in the iteration that overwrites it, or in an earlier loop of the same row. */
bool kernel_inplace(const Kernel *k, int in, int out);

#endif
