/* Inside of the checker; the planner includes nothing of this. */
#ifndef GRADC_PLAN_CHECK_H
#define GRADC_PLAN_CHECK_H

#include "bytemap.h"
#include "plan.h"

/* What is known of a range during the replay. */
typedef struct Track {
    int32_t last_use; /* step of the last read so far, or of the store */
    bool opened, took_over, counted, freed;
    bool guarded; /* its store may be skipped */
    bool given;   /* it is there before the first step */
    bool late;    /* the reverse pass reads it */
} Track;

/* What is known of a value that leaves the block. */
typedef struct Away {
    bool leaving, entering; /* a transfer of it has begun, and has not been waited for */
    bool is_out;            /* all of it is in the store */
    bool came;              /* it has begun to come in */
    int32_t range;          /* that of the last transfer */
} Away;

typedef struct Check {
    const Plan *p;
    Arena *arena;
    const char *error;
    int64_t end;       /* of the highest byte, rounded up */
    ByteMap map;       /* writers: ranges, or workspace_of(step) */
    int32_t *order;    /* ranges by value, then by first step */
    int32_t *next;     /* by value: where in order[] its next store is */
    int32_t *current;  /* by value: the range that a read means, or -1 */
    int32_t *place_of; /* by value: the first pinned value in the same place */
    int32_t *writer;   /* by value that is a place: the value stored there last, or -1 */
    int32_t *written;  /* by value that is a place: the step of that store */
    Track *track;      /* by range */
    Away *away;        /* by value */
    bool changed;      /* a step has written pinned storage, or might have */
    int64_t live, live_peak;
    int32_t peak_step;
} Check;

/* Keeps the first complaint; returns false. */
bool check_fail(Check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

const char *check_name(const Check *c, int32_t value);
const char *check_range_name(const Check *c, int32_t range);
/* A writer of the map: "`x`", "the workspace of step 3". */
const char *check_writer_name(const Check *c, int32_t writer);

int64_t check_range_bytes(const Check *c, int32_t range);
int64_t check_whole_blocks(int64_t bytes);
/* What step s alone has: workspace, and scratch of all lanes. */
int64_t check_own_bytes(const Check *c, int32_t s);

/* Not pinned, not of the caller: has ranges. */
bool check_in_block(const PlanValue *v);

/* What is kept of the parts of the model, from Track.late, which a replay has found. */
bool check_parts(Check *c);
int64_t check_part_bytes(Check *c, const BudgetPart *part);
/* Replays a plan, and gives what is kept of this part; *error: NULL, or what is wrong. */
int64_t plan_check_part(const Plan *p, const BudgetPart *part, Arena *scratch, const char **error);

enum { FIRST_WORKSPACE = -2 };
static inline int32_t workspace_of(int32_t step)
{
    return FIRST_WORKSPACE - step;
}

/* All that can be said of a plan without running it: indices, sizes, alignment,
 * bounds, pinned storage. gives: c->end, c->place_of. */
bool check_form(Check *c);

/* check_transfer.c. The form of transfers, and where values are in the store. */
bool check_transfers(Check *c);
/* Before the reads of step s, and after its writes. */
bool check_begin_transfer(Check *c, int32_t s);
bool check_end_transfer(Check *c, int32_t s);
/* When all steps have run. */
bool check_all_over(Check *c);

#endif
