/* The placement problem on its own, as a file: buffers with given lives, as low as can
 * be. The format is MiniMalloc's: comma-separated, one buffer a line under a header,
 *
 *     id,lower,upper,size
 *     b1,0,3,4
 *
 * where a buffer is alive in [lower, upper). Columns stand in any order; `buffer` and
 * `buffer_id` are ids, `begin` and `start` are lower, `end` is the last instant (upper
 * - 1). There may be `alignment`; `offset` and `hint` are not looked at; `gaps` must be
 * empty.
 *
 * source: github.com/google/minimalloc (Moffitt, ASPLOS 2023), its README and converter. */
#ifndef GRADC_PLAN_PLACEMENT_H
#define GRADC_PLAN_PLACEMENT_H

#include "../base/diag.h"
#include "pack.h"

typedef struct PlacedBuffer {
    const char *id;
    int32_t id_bytes;
    Span at; /* of the id */
    int64_t lower, upper, size, alignment;
    int64_t offset; /* the result */
} PlacedBuffer;

typedef struct Placement {
    int32_t n;
    PlacedBuffer *buffer;
    int64_t max_live;  /* no height is lower */
    int64_t alignment; /* the least that suits all */
} Placement;

/* Reads a source. In the arena.
 * fails: NULL, after reporting the first mistake (E0620). */
Placement *placement_read(Ctx *cx, int32_t source, Arena *a);

typedef enum PlacementAnswer {
    PLACEMENT_FOUND,
    PLACEMENT_IMPOSSIBLE,
    PLACEMENT_NOT_FOUND
} PlacementAnswer;

typedef struct Placed {
    PlacementAnswer answer;
    int64_t height; /* of the offsets, in any case */
    bool proved;    /* found: no height is lower */
} Placed;

/* Offsets of at most `capacity` (0: as low as can be), as far as `work` elementary operations
 * go. */
Placed placement_solve(Placement *p, int64_t capacity, int64_t work, Arena *scratch);

/* Two buffers that overlap in bytes and time, or NULL; sharing no code with the above. */
const char *placement_check(const Placement *p, int64_t height, Arena *a);

/* MiniMalloc's output: what was read, and a column `offset`. */
void placement_write(const Placement *p, Text *to);

#endif
