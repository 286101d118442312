/* Packing item by item, each into a gap between those that lie there already. */
#ifndef GRADC_PLAN_FILL_H
#define GRADC_PLAN_FILL_H

#include "pack.h"

enum { FILL_CHUNK = 32 };

typedef struct FillSpan {
    int64_t offset, size;
    int32_t item, n_parts;
} FillSpan;

/* Neighbours by offset. Times lie apart, since they are all that is looked at of most. */
typedef struct FillChunk {
    int32_t n;
    int32_t from[FILL_CHUNK], to[FILL_CHUNK];
    FillSpan span[FILL_CHUNK];
} FillChunk;

/* Of a chunk, apart from it: of most chunks nothing else is looked at. */
typedef struct FillSum {
    int32_t first, last; /* section in which one of them is alive */
    int64_t low, end;    /* the lowest offset of theirs, and the highest end */
} FillSum;

typedef struct Fill {
    const Pack *pack;
    int64_t *offset; /* by item: the result */
    int64_t looks;   /* at other items, so far */
    int32_t n_chunks, n_made;
    FillChunk **chunk; /* by offset */
    FillSum *sum;      /* of each */
    FillChunk *pool;
    /* By section: */
    int64_t *solid; /* below it there is no gap */
    int64_t *top;   /* highest end */
} Fill;

/* Memory for packings of k, in its arena. */
Fill fill_new(const Pack *k);

/* Each item of the order into the gap that it fills best; where it wishes to lie (by
 * item; NULL or less than 0: nowhere) if it can. Returns the height, or one of `limit` or more as
 * soon as there is no lower one: the offsets of the rest are then not found. */
int64_t fill_gaps(Fill *f, const int32_t *order, const int64_t *wish, int64_t limit);

#endif
