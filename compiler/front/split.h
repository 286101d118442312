/* What two graphs, of a whole batch and of one of its micro-batches, have to do with each other.
 * Known to split.c and split_flow.c only. */
#ifndef GRADC_FRONT_SPLIT_H
#define GRADC_FRONT_SPLIT_H

#include "eval.h"

/* How the value of a whole batch comes of those of its k micro-batches m_0, m_1, ... Micro-batch
 * j has 1 / s_j of the batch's rows: s_j = k where all of them are there. */
typedef enum PartKind {
    /* s_j^power * m_j, for each j: along the axis of its rows the whole's j-th part, and where it
     * has no rows, all of it */
    PART_EACH,
    PART_SUM,   /* the sum of s_j^power * m_j over j: at a power of -1 the mean over the rows */
    PART_PLACE, /* numbers of rows, from 0 up in each */
    PART_MIXED  /* in no way that is known */
} PartKind;

typedef struct Part {
    PartKind kind;
    int power;
    bool zero;        /* everywhere, so at any power */
    const char *why;  /* MIXED: what is done that this is not known of, a verb first */
    const Origin *at; /* ... and where */
} Part;

typedef struct ScanParts {
    Ref scan;
    const Part *result;
} ScanParts;

/* Two graphs, node by node the same but for sizes. */
typedef struct Pair {
    Build *build;
    const Graph *whole, *micro;
    int64_t split;     /* micro-batches of a batch: k */
    bool counts_rows;  /* partial batches are taken */
    Part *part;        /* by Ref, as far as is known */
    const Part *given; /* bodies: of their arguments */
    VEC(ScanParts) scan;
} Pair;

/* The axis that is k times as long in the whole; NO_ROWS: all are the same; OTHER_ROWS: several
 * are not, or by another factor. */
enum { NO_ROWS = -1, OTHER_ROWS = -2 };
int row_axis(const Pair *p, Ref r);
bool same_attr(const Pair *p, Ref r, int i);
bool same_graph(const Pair *p);
Part mixed(const Pair *p, Ref r, const char *why);
/* The whole's number is the mean of the micro-batches'. */
bool is_mean(const Pair *p, Ref r);
/* All nodes, in order. requires: same_graph(). */
void follow_parts(Pair *p);

#endif
