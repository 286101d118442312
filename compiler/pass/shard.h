/* Tensor parallelism on paper: which axis of each value is dealt out over the ranks of a group,
 * and what they have to tell each other. Nothing is compiled from it. */
#ifndef GRADC_PASS_SHARD_H
#define GRADC_PASS_SHARD_H

#include "../graph/op.h"

enum { WHOLE = -1 };

typedef struct Shard {
    int64_t ways;
    int *axis;         /* by Ref: the axis that is split; WHOLE: each rank has all of it */
    int *slot_axis;    /* by slot */
    const char **why;  /* by slot: why it stays whole though an op wants it in parts; or NULL */
    int64_t *reduced;  /* by Ref: bytes that are summed over the ranks to make it whole */
    int64_t *gathered; /* by Ref: bytes that are put together for it */
} Shard;

/* Weights are split where a contraction first reads them: along an axis of the result if the other
 * operand is whole (by columns), along the axis that is summed if that is split there (by rows;
 * the result is summed over the ranks); tables by their rows. A split goes through what works
 * on each index of the axis alone. Where it can't go on, the value is gathered; a reduction along
 * the axis is summed over the ranks.
 * slot_of: by Ref: the slot whose value the node is, or -1.
 * source: Shoeybi et al., Megatron-LM (2019), section 3; Narayanan et al. (2021) for the table. */
Shard *shard(const Graph *g, const int32_t *slot_of, const Pinned *pin, int64_t ways, Arena *a);

/* Bytes of a value on one rank. */
int64_t shard_bytes(const Shard *s, const Graph *g, Ref r);

#endif
