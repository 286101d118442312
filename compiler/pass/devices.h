/* A step on several devices, on paper: what a rank of each pipeline stage holds, and what it sends.
 * The rules are in grammar/devices.md. */
#ifndef GRADC_PASS_DEVICES_H
#define GRADC_PASS_DEVICES_H

#include "../graph/graph.h"
#include "../plan/plan.h"

enum { MAX_STAGES = 64, MAX_WAYS = 1 << 20 };

typedef struct Devices {
    int64_t data, tensor, pipe; /* ranks = data * tensor * pipe */
    int64_t zero;               /* 0 to 3 */
} Devices;

/* What a rank holds, in bytes. */
typedef enum Hold {
    HOLD_PARAMETERS,
    HOLD_GRADIENTS,
    HOLD_OPTIMIZER,
    HOLD_STATE,
    HOLD_KEPT, /* activations from the forward to the reverse pass, of all micro-batches in flight
                */
    HOLD_TRANSIENT, /* what the step with the most needs beside one micro-batch's kept ones */
    HOLD_GATHERED,  /* ZeRO: what is whole for a moment */
    HOLD_INPUTS,
    N_HOLDS
} Hold;
const char *hold_name(Hold h);

/* What a rank gives to an exchange in a step, in bytes of the tensors, not of the wire. */
typedef enum Exchange {
    DATA_ALL_REDUCE,
    DATA_REDUCE_SCATTER,
    DATA_ALL_GATHER,
    TENSOR_ALL_REDUCE,
    TENSOR_ALL_GATHER,
    PIPE_SEND, /* to the stages before and after */
    TIED_ALL_REDUCE,
    N_EXCHANGES
} Exchange;
const char *exchange_name(Exchange x);

typedef struct Stage {
    const char *first, *last; /* its units: "h.0", "net.model:14" */
    int32_t n_units;
    double share;      /* of the predicted time of forward and reverse pass */
    int64_t in_flight; /* micro-batches whose activations are kept at once */
    int64_t kept_each; /* of one */
    int64_t held[N_HOLDS];
    int64_t sent[N_EXCHANGES];
} Stage;

typedef struct WholeParam {
    const char *name, *why;
} WholeParam;

typedef struct Spread {
    Devices devices;
    int64_t micro_batches; /* of a step, on each replica */
    int32_t n_stages, n_whole;
    Stage *stage;
    WholeParam *whole;     /* parameters that tensor ranks have whole, though an op wants parts */
    const char *too_short; /* why there are not so many stages; NULL: there are */
} Spread;

/* g, p: of the entry `grad`, which goes through `loops` micro-batches. */
Spread *devices_spread(const Graph *g, const Plan *p, const Pinned *pin, int64_t loops,
                       const Devices *d, Arena *a);

#endif
