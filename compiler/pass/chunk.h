/* Row chunks: what chunk.c, chunk_axis.c and chunk_build.c say to each other. */
#ifndef GRADC_PASS_CHUNK_H
#define GRADC_PASS_CHUNK_H

#include "pass.h"

enum {
    WHOLE = -1, /* an operand all of which is read, whatever the rows */
    MIXED = -2  /* rows read each other */
};

/* What is asked for. */
typedef struct Chunks {
    int64_t from;        /* matrices of so many elements, cut down to `most` ... */
    int64_t most;        /* elements of a value in a body */
    int64_t scores_from; /* ... scores, which a second product weighs, from here on to as many
                          * rows as run best; 0: as others */
    int64_t
        slices; /* ... or, not 0: regions of any size, in so many slices, where no bit changes */
    int64_t fewest; /* rows of a chunk of logits, or those are left whole: weights pass through the
                     * caches once a chunk */
    int64_t wide;   /* ... or, not 0: regions by their own size, into chunks of so many elements */
    int levels;     /* how deep scans may be nested */
    int wider;      /* of a body: the region's; else 0 */
    bool by_rows;   /* of scores: masks hide columns from some rows, not from a head */
} Chunks;

/* Nodes that are computed for some rows at a time. */
typedef struct Region {
    const Graph *g;
    Ref seed;
    int wider;     /* values are wide that have more elements than 1 / wider of the seed's */
    int32_t *axis; /* by node: which of its axes are the rows; MIXED: it is not in the region */
    bool *free;    /* by node: made of constants alone, by one element at a time */
    int64_t extent, rows; /* all rows, and those of a chunk; the last one is filled up */
    int64_t most;         /* elements of a value in the body; above that it is chunked in turn */
    Ref first, last;      /* nodes of it */
    bool scores;          /* two products: scores, and what they weigh */
} Region;

static inline bool is_in(const Region *v, Ref r)
{
    return v->axis[r] != MIXED;
}

/* A graph that is searched for regions. */
typedef struct Search {
    const Graph *g;
    Arena *a;
    uint32_t *first_user; /* by node: into user[]; the last entry ends the list */
    Ref *user;
    bool *rooted, *free;
    bool *cut; /* by node: a region before this one reads it row by row; below reshapes */
    VEC(Ref) pending;
    VEC(Ref) joined;      /* nodes of the region, as they came */
    bool *before, *after; /* by node, from the region's first to its last: an operand of some of
                           * it needs it, or it needs some of it */
} Search;

static inline int64_t elems(const Graph *g, Ref r)
{
    return rank(g, r) < 0 ? 0 : type_elems(type_of(g, r));
}

/* What regions cut that come before others of the same graph. */
void mark_cut(Search *s, const Region *v);
/* Nothing that has a gradient is read by all rows. */
bool sums_nothing(Search *s, const Region *v);
/* ... and then, with v->rows at a time: no bit of a value or of a cotangent changes. */
bool keeps_bits(Search *s, const Region *v);

/* Which axes of its operands the rows along axis a of r are made of: want[i] is an axis, or
 * WHOLE.   fails: false: rows read each other, or the op has no rule. */
bool operand_axes(const Graph *g, Ref r, int a, int want[]);
/* The axis of r that the rows along `axis` of its operand i become, or MIXED. */
int result_axis(const Graph *g, Ref r, int i, int axis);
/* Appends a copy of r to a body, with `rows` elements along axis a. */
Ref copy_rows(Graph *body, const Graph *from, Ref r, const Ref *args, int a, int64_t rows);

bool is_draw(const Graph *g, Ref r);
enum { NUMBERED_DRAW = 4 }; /* operands of a draw that says the numbers of its elements */
/* As graph_copy_node(), of a draw, into such a one. */
Ref number_draw(Graph *to, const Graph *from, Ref r, const Ref *map);

/* A copy of a graph, in which regions are scans over chunks; `to` is empty. Each region begins
 * behind the last node of the one before. */
typedef struct Chunker Chunker;
Chunker *chunks_open(Graph *to, const Graph *g, const Chunks *is, Arena *a);
void chunks_add(Chunker *c, const Region *v);
void chunks_close(Chunker *c);
/* In place of *g another graph, if there is something to chunk; `outer`: *g is a body of it. */
bool chunk_graph(Graph **g, Graph *outer, const Chunks *is);

#endif
