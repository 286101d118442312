/* From what to keep at one moment to a schedule. */
#ifndef GRADC_PLAN_DECODE_H
#define GRADC_PLAN_DECODE_H

#include "bound.h"

typedef enum DecodeHow {
    RUN_ONCE_MORE, /* what runs again stays as long as anything may read it */
    RUN_FOR_EACH   /* what runs again goes once no node of the order reads it any more */
} DecodeHow;

/* Runs the nodes in this order (each once); what is not kept after the moment runs again
 * right before it is read. NULL where that takes too many executions. */
Sequence *decode(const Problem *p, const int32_t *order, const KeepSet *keep, DecodeHow how,
                 Arena *out);

/* Parts of the nodes up to the moment, to run again one part after the other, from the last to the
 * first. What runs again for a part is not there for those before it, but for what crosses
 * between parts, which stays from the first time on. */
typedef struct DecodeParts {
    const int32_t *part;  /* by node: rising; -1 after the moment */
    const bool *crossing; /* by node: a later part reads it */
} DecodeParts;

/* decode() with RUN_ONCE_MORE, for each part. */
Sequence *decode_parts(const Problem *p, const int32_t *order, const KeepSet *keep,
                       const DecodeParts *parts, Arena *out);

/* The cheapest schedule within the budget that comes from this keep-set, or from smaller
 * ones for the same moment: what runs again takes room as well. NULL if none is found;
 * *lowest, if not NULL, becomes the one with the fewest bytes that was seen. */
Sequence *decode_within(const Problem *p, const int32_t *order, const KeepSet *keep, int64_t budget,
                        int64_t *work, Sequence **lowest, Arena *out);

#endif
