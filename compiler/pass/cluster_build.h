/* The state of clustering one graph; known to cluster*.c alone. */
#ifndef GRADC_PASS_CLUSTER_BUILD_H
#define GRADC_PASS_CLUSTER_BUILD_H

#include "cluster.h"
#include "op_flops.h"

typedef struct Build {
    Ctx *cx;
    Clusters *c;
    const Graph *g;
    float *weight;      /* flops of one element, computed from stored operands */
    float *length;      /* ... nodes, of whatever kind */
    bool *divides;      /* ... a division or a root among them */
    bool *draws;        /* ... a random number */
    int32_t *reads;     /* places that read it, looking through views */
    int32_t *uses;      /* nodes and roots that read it */
    int32_t *contracts; /* contractions that read it */
    bool *scanned;      /* a scan reads it */
    int32_t *reduces;   /* reductions that do */
    uint8_t *wide;  /* operands of its size in memory that it is computed from: 0, 1, 2 or more */
    uint8_t *lies;  /* which way what it is computed from lies in memory: cluster_across.c */
    bool *expanded; /* read many times by one reader */
    bool *slid;     /* contractions' windows slide over what is made of it element by element */
    int64_t *most_read; /* elements of the largest view of it */
    bool *guarded;      /* only guarded assignments depend on it */
    bool *assigned;     /* it is a new value of pinned storage */
    bool *forced;       /* must be stored, found by a failed kernel */
    bool *alone;        /* joins no other group, likewise */
    Ref *reader;        /* the only node that reads it, or NONE */
    int32_t *update;    /* by Ref: the last group of nothing but updates that reads it, or -1 */
    int32_t *sums;      /* by Ref: the last group of reductions that reads it, or -1 */
    uint8_t
        *fresh; /* made from a contraction's result that nothing else reads: its element's bytes */
    OpFlops op_flops;
    int32_t *stamp; /* of groups, for path searches */
    int32_t stamp_now;
    struct {
        int32_t stamp;
        unsigned axes;    /* along which it has been looked at, in that search */
    } * walk;             /* by Ref */
    Ref *top;             /* by group: the highest node of it and of all that it depends on */
    VEC(int32_t) * users; /* by group: those that read what it stores */
    VEC(Ref) * leaf;      /* by Ref: the stored nodes that a stored node reads */
    bool long_chains;     /* what is computed element by element may be too much for one kernel */
    Ref *beside;          /* by Ref: the contraction whose result it is met with, or NONE */
    struct {
        bool done;
        Trace t;
    } * trace;
} Build;

/* A mask made of random numbers: a byte that takes long. */
static inline bool is_drawn(const Build *b, Ref r)
{
    return b->draws[r] && dtype_bytes(type_of(b->g, r)->dtype) == 1;
}

/* ---- cluster_rows.c: what a kernel of rows may read of itself ------------- */

/* Made when it is first asked for. */
const Trace *trace_of(Build *b, Ref r);
/* Is q the element of its node in the row of r's loops: axis i at loop i? */
bool is_row_read(const Build *b, const Trace *t, const Request *q);
/* A reduction, or an index that is narrowed where it is found. */
bool is_reduced(const Build *b, Ref r);
/* What has the trace t reads the group's values row by row only, none of which is reduced again for
 * each element. */
bool reads_rows(Build *b, const Trace *t, const Group *gr);

/* ---- cluster_store.c: which nodes have memory ---------------------------- */

void count_reads(Build *b);
void find_guarded(Build *b);
/* What `keep` stores, and what replay() has to be stored. */
void force_kept(Build *b);
/* gives: c->stored. */
void choose_stored(Build *b);

/* ---- cluster_across.c: transposed operands of reductions ------------------ */

/* gives: b->lies[r].   requires: those of its operands. */
void find_lies(Build *b, Ref r);
/* Stores what the reduction r goes through across its lines, if there is something along them. */
void store_across_lines(Build *b, Ref r);

/* ---- cluster_group.c: which of them share a kernel ------------------------ */

/* gives: c->group, c->group_of. */
void make_groups(Build *b);
/* Does group `from` need what group `on` computes? */
bool group_depends(Build *b, int from, int on);
/* What only its own group reads needs no memory: a row's value is known once for the
 * row, an element of it is computed again where another pass over the row wants it. */
void drop_private(Build *b);
/* A group that copies the stored r to a slot. */
void copy_group(Build *b, Ref r, int32_t slot, bool guarded);

/* ---- pitch.c: how far apart rows are -------------------------------------- */

/* gives: c->pitch, and kernels for it.   requires: a body whose groups have their kernels. */
void pitch_rows(Clusters *c);

/* ---- cluster_order.c ------------------------------------------------------ */

/* gives: c->order. -1, or, where groups overwrite what others still read, in a circle, one
 * that has to keep its results apart. */
int order_groups(Build *b);
/* The group keeps its results apart, and copies put them into their slots. */
void defer_group(Build *b, int at);
/* Likewise every group whose own kernel overwrites what it still reads. True if any:
 * their kernels have to be made again. */
bool defer_overwrites(Build *b);

#endif
