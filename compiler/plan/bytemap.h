/* Who wrote each byte last; for the checker alone. */
#ifndef GRADC_PLAN_BYTEMAP_H
#define GRADC_PLAN_BYTEMAP_H

#include "../base/vec.h"

enum { NOBODY = -1 };

/* Bytes from `start` to the next segment's start were written by `writer`. */
typedef struct Segment {
    int64_t start;
    int32_t writer;
} Segment;

typedef struct ByteMap {
    Arena *arena;
    VEC(Segment) seg; /* ascending, the first at 0, the last without end */
} ByteMap;

void bytemap_init(ByteMap *m, Arena *arena);

/* Bytes [from, to) are now `writer`'s. */
void bytemap_write(ByteMap *m, int64_t from, int64_t to, int32_t writer);

/* Writers of [from, to), one a call: `*at` is the segment to go on with, -1 at first and
 * at the end. Returns the writer. requires: from < to. */
int32_t bytemap_next(const ByteMap *m, int64_t from, int64_t to, int32_t *at);

#endif
