/* One graph, an entry's or a body's, on its way from groups to calls; known to lower*.c
 * alone. */
#ifndef GRADC_PASS_LOWER_LEVEL_H
#define GRADC_PASS_LOWER_LEVEL_H

#include "lower.h"

/* Where a node's elements are. */
typedef struct Place {
    int32_t buffer; /* -1: not yet known */
    int64_t base;
    int64_t step[MAX_LOOP_DEPTH];
} Place;

/* Picks of one scan whose memory is one value: lower_stacks.c. NONE: no such. */
typedef struct CarryStack {
    Ref before, after; /* what a carry was before each step, and after it */
} CarryStack;

/* The scan may write what it stacks as `result` over `sequence`, slice by slice. */
typedef struct Over {
    Ref scan, sequence, result;
} Over;

/* One graph (an entry's or a body's) being lowered. */
typedef struct Level {
    struct Level *outer;
    const Clusters *c;
    const Graph *g;
    int depth;
    int64_t offset;         /* of this level's values in the block: a body's workspace */
    bool apart, has_stacks; /* of carries: there are to be none; there are some */
    int64_t store;          /* of those that are offloaded, in the store; -1: not yet known */
    Place *place;           /* by Ref: at the step that is emitted */
    Plan *plan;
    int32_t *value;        /* by Ref: PlanValue, or -1 */
    int32_t *buffer_of;    /* by PlanValue: at the step that is emitted */
    int32_t *range_buffer; /* by PlanRange; -1: none */
    int32_t next_range;    /* the first that no emitted step has opened */
    int32_t *slot_value;   /* by slot, entry level only */
    VEC(PlanValue) values;
    VEC(Ref) value_ref;
    struct Level **body; /* by group */
    int32_t **carry; /* by group of a scan, by carry: the value of one that no pick reads, or -1 */
    int32_t **swap;  /* likewise: the value that keeps what another carry was, or -1 */
    CarryStack **stack; /* likewise */
    VEC(Over) over;
    Ref *within;    /* by Ref: the pick in whose memory it is, itself too, or NONE ... */
    int64_t *shift; /* ... from this element on */
    Ref *result_of; /* body, by Ref: nonzero if the node is written to result i: i + 1 */
} Level;

/* In which groups ran before plan_order(). */
typedef struct OldOrder {
    Clusters *c;
    int32_t *order;
} OldOrder;

typedef struct Lowering {
    Ctx *cx;
    Program *p;
    const Pinned *pin;
    Arena *arena;
    const char *entry;
    const CostModel *cost;
    const Caps *caps;
    int64_t spare_bytes;                /* in place of inputs that the entry may lack */
    int64_t turn_bytes;                 /* scratch that a lane may have for whole turns of a loop */
    int64_t scratch, lane_bytes, lanes; /* of the entry's step whose calls are made (Call) */
    int in_turns;                       /* of loops around them: lanes take whole turns */
    int64_t store_bytes;                /* of the levels that have their place in the store */
    bool moves;                         /* better orders are looked for */
    VEC(OldOrder) moved;
} Lowering;

typedef struct Calls {
    VEC(Call) at;
} Calls;

/* ---- lower.c -------------------------------------------------------------- */

int32_t lower_buffer(Program *p, const char *name, Role role, const Type *t, int64_t offset);
int32_t lower_input_buffer(const Pinned *pin, int64_t i);
/* The flag without which no guarded step runs, or NONE. */
Ref level_finite(const Level *l);

/* ---- lower_plan.c: values, steps and their plan --------------------------- */

/* The level of an entry with its plan, in the block from `base` on, and those of all bodies. Where
 * carries in stacks take more than without, for the old values and the new ones are not read at
 * the same time, there are none. Groups may be put into another order. */
Level *level_of_entry(Lowering *lo, Clusters *c, int64_t base);
/* Under cx->verify; a plan that does not hold is reported as E0990. */
void check_plan(Lowering *lo, const Plan *p);
/* The pick of a scan's result i that the group stores, or NONE. */
Ref pick_of(const Group *gr, const Graph *g, int64_t i);
const Root *result_root(const Graph *body, int i);
int count_results(const Graph *body);
/* The carry whose old value is the body's new carry i, or -1. */
int64_t old_carry(const Graph *body, int i, int64_t carries);

/* ---- lower_stacks.c: carries in stacks, and stacks over sequences --------- */

/* Finds both, of all scans.   requires: nothing has a value yet. */
void level_share(Lowering *lo, Level *l);
/* Is the pick one of those that would share memory with what a carry was, or is then? */
bool level_stacks(const Level *l, const Group *gr, Ref pick);
/* The node that has the memory r is in, from element level_shift() on. */
Ref level_memory(const Level *l, Ref r);
int64_t level_shift(const Level *l, Ref r);
/* Of all that is in the memory of r. */
Type level_type(const Level *l, Ref r);

/* ---- lower_over.c: what the steps of a scan may write over ----------------- */

/* A group of the body can write result i, r, straight to its final place: an emitted slice
 * always, a carry if nobody reads the old one from then on. */
bool body_writes_direct(const Clusters *c, Ref r, int i, int64_t carries);
/* ... r is the last value of a carry of a scan within: the first value of that, which a kernel of
 * the body can write to the same place, for nobody else reads it; or NONE. */
Ref body_begins_direct(const Clusters *c, Ref r);
/* Appends what the scan of the group may write over to l->over.
 * requires: the stacks of its carries are known, and so are their rows. */
void level_over(Lowering *lo, Level *l, const Group *gr, int at);

/* ---- lower_calls.c: buffers of what is planned, and calls ------------------ */

/* Buffers of the planned ranges, `at` bytes up. */
void level_place_values(Lowering *lo, Level *l, int64_t at);
/* Buffers of slots, inputs and literals. */
void level_place_sources(Lowering *lo, Level *l);
/* Where r is.   requires: it has memory. */
Place level_place(const Lowering *lo, const Level *l, Ref r);
/* Calls of all steps; guarded ones under branches on what level_finite() gives. */
void level_emit(Lowering *lo, Level *l, Calls *cs);

#endif
