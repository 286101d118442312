/* The plan of an entry: which value lives from when to when, and where.
 *
 * pass/cluster.c says what one kernel computes (a group); the plan orders steps,
 * each a run of a group, decides which stored values share storage, and places
 * all of them in the one block. A value may be stored by several steps (computed
 * again), each store opening a live range of its own: recomputation is a scheduling
 * fact. within.c makes plans that run steps again, others store each value once. A value that
 * goes out of the block and comes in again has two live ranges, too: offload.h.
 *
 * Nothing here sees a Graph or a Kernel: a plan can be made and checked from a file. */
#ifndef GRADC_PLAN_PLAN_H
#define GRADC_PLAN_PLAN_H

#include "../kernel/program.h"

/* Something that needs bytes. Pinned values (slots) have their offset from the
 * start and live for ever; constants and the caller's inputs take none. */
typedef struct PlanValue {
    const char *name;
    Role role;
    int64_t bytes;  /* 0: not in the block */
    bool pinned;    /* lives in pinned storage at `offset`, in every entry */
    int64_t offset; /* pinned: given; else an output of place() */
    bool to_end;    /* a result that is read after the last step */
    bool kept;      /* the model says so: it is never computed again */
    bool offload;   /* the model says so: it is out of the block until the reverse pass */
    bool reverse;   /* of the reverse pass */
    uint32_t node;  /* of the graph that was planned, for who knows it; 0: none */
    int64_t store;  /* of a value that goes out: where it is meanwhile, in bytes */
    const Origin *origin;
} PlanValue;

/* One store of a value, and its live range: steps from..to, inclusive. */
typedef struct PlanRange {
    int32_t value;
    int32_t from, to;
    int32_t storage; /* ranges of one storage share their bytes (in place); id of the first.
                      * A smaller one leaves the storage's tail free for others. */
    int64_t offset;  /* bytes from the start of the block, of its storage */
} PlanRange;

/* The step may write `write` over `read`, if that value dies here. */
typedef struct PlanInPlace {
    int32_t read, write; /* values */
} PlanInPlace;

/* A transfer is begun by a step, and is over with a later one: the bytes of its value are read
 * (STEP_OUT) or written (STEP_IN) by somebody else until then. Transfers run one after another,
 * in the order in which they begin. */
typedef enum StepKind {
    STEP_RUN, /* of a group */
    STEP_OUT, /* begins to copy read[0] out of the block */
    STEP_IN,  /* begins to copy write[0] into it again */
    STEP_WAIT /* until the transfer of read[0] that has begun last is over */
} StepKind;

typedef struct PlanStep {
    StepKind kind;
    const char *label; /* "h.3.attn.c_attn: contract" */
    int32_t group;     /* into the clusters, or -1 */
    uint32_t node;     /* what it is about, likewise */
    int32_t run;       /* how often the same group has run before */
    int32_t n_reads, n_writes, n_inplace;
    int32_t *read, *write; /* values */
    PlanInPlace *inplace;
    int64_t workspace;        /* bytes of a loop step's body, of all turns that may run at once,
                               * alive during this step only */
    int64_t workspace_offset; /* by place() */
    int64_t lane_bytes; /* scratch of one lane; that of all of them lies behind the workspace */
    int64_t lanes;      /* that need it at once; 0: as many as there may be */
    double flops, bytes_moved;
    double chain;      /* the part of flops that is of contractions; and ... */
    double work;       /* ... instructions of all else: integers, comparisons too */
    double ns;         /* measured, by who can; 0: what the cost model says */
    struct Plan *body; /* a loop: its steps, ... */
    int64_t count;     /* ... so many times */
    bool apart;        /* ... that lanes could take as whole turns: none needs another */
    int64_t turns;     /* that may run at once, each with its part of the workspace; 0: 1 */
    bool guarded;      /* skipped when the step is not finite */
    bool reverse;      /* of the reverse pass */
    const Origin *origin;
    int32_t n_frees;
    int32_t *frees; /* ranges that end here; by plan_liveness() */
} PlanStep;

/* What is kept of a part of the model, if there are such (diag.h). */
typedef struct PlanPart {
    const BudgetPart *part;
    int64_t kept; /* bytes */
} PlanPart;

/* What came of a budget; by within.h. */
typedef struct PlanBudget {
    int64_t bytes;            /* the budget; 0: there was none */
    int64_t within;           /* what it was planned for instead, since that is faster; 0: that */
    int64_t once;             /* the peak with every step run once, in the first form */
    int32_t levels;           /* of runs within runs that scans are cut into; then */
    int64_t kept_steps;       /* of scans that keep some of their steps: how many, and ... */
    int64_t again_steps;      /* ... how many run again; or 0 */
    int32_t slices;           /* that wide values are computed in; 0: whole */
    bool has_slices;          /* they could be: a bound is one of whole values */
    int64_t cost_once;        /* what plan_cost() without again is in the first form, or 0 */
    int64_t rows, split;      /* a batch of so many rows is taken as `split` micro-batches; or 0 */
    int64_t cost_whole;       /* ... and what keeps to the budget without that; 0: nothing does */
    const char *unsplit;      /* why it may not be taken so, though it was allowed; or NULL */
    double ratio;             /* of calls to those without a budget, as measured; 0: it was not */
    const char *untimed;      /* why it was not, where others are; or NULL */
    int64_t least;            /* the smallest peak that was found; 0: none was looked for */
    const PlanStep *least_at; /* most is live there, at the least */
    bool tried;               /* a proof was looked for: */
    int64_t bound;            /* the extra time is at least this, in ns */
    const char *impossible;   /* why no plan keeps to the budget, or NULL */
    const PlanStep *impossible_at;
} PlanBudget;

/* What steps take: the longer of computing and moving bytes, and a call. */
typedef struct CostModel {
    double flops, bytes; /* in a ns; bytes 0: moving them takes no time */
    double call;         /* ns */
    double work;         /* in a ns; 0: flops are all there is, and all are alike */
    const char *from;    /* who says so: "measured on ..."; NULL: the default */
    double store;        /* bytes in a ns, into the store of offloaded values or out of it */
} CostModel;

/* The same everywhere: of memory outside of the block, and of a file. */
#define STORE_HOST_RATE 8.0
#define STORE_FILE_RATE 1.0

/* A machine that is the same everywhere, so that plans do not depend on where they are made. Its
 * rates are to one another as those of kernels that were timed: loops of all kinds (draws, exp,
 * sums, masks) do 45 to 70 instructions in a ns where contractions do 65 to 90 flops. */
extern const CostModel cost_time;
/* A flop takes a ns, and nothing else takes time. */
extern const CostModel cost_flops;

typedef struct Plan {
    Arena *arena;
    const char *entry;
    int32_t n_values, n_steps, n_ranges;
    PlanValue *value;
    PlanStep *step;        /* in execution order */
    const PlanStep *plain; /* what it was made of: each step once, no transfers */
    int32_t n_plain;
    PlanRange *range;
    int64_t base;         /* first byte after the handle and pinned storage */
    int64_t base_staging; /* bytes before that which no value has: copies of inputs */
    int64_t threads_max;
    int64_t live_peak;   /* most bytes live at a step, whatever their place; with base and lanes */
    int64_t peak;        /* bytes of the block that the entry needs */
    int32_t peak_step;   /* the first step at which live_peak is reached */
    int64_t store_bytes; /* that offloaded values take outside of the block */
    bool may_offload;    /* within a budget, whatever the model says */
    bool light;          /* ... no contraction or scan runs again */
    bool pairs;          /* sums of bf16 go in pairs: a class of numerics of its own */
    bool flush;          /* denormals are flushed: a class of numerics of its own */
    bool remade;         /* elementwise values are computed again in the reverse pass */
    PlanBudget budget;
    const CostModel *cost; /* NULL: cost_time */
    int64_t guard_loss;    /* the peak under `guard loss`, if that is smaller; 0: not known */
    int64_t beside;        /* ns: what the entry took as a whole, less the sum of its steps; 0: that
                            * was not measured */
    int32_t n_parts;
    PlanPart *part; /* by plan_parts() */
} Plan;

/* What a step alone has, at its workspace_offset: the workspace, and behind it the scratch of each
 * lane. */
static inline int64_t plan_lanes_bytes(const Plan *p, const PlanStep *s)
{
    return (s->lanes > 0 ? s->lanes : p->threads_max) * align_up(s->lane_bytes, BLOCK_ALIGN);
}
static inline int64_t plan_own_bytes(const Plan *p, const PlanStep *s)
{
    return align_up(s->workspace, BLOCK_ALIGN) + plan_lanes_bytes(p, s);
}
static inline int64_t plan_lanes_offset(const PlanStep *s)
{
    return s->workspace_offset + align_up(s->workspace, BLOCK_ALIGN);
}

/* Live ranges, frees and shared storage of the given order of steps; live_peak and peak_step.
 * Values that are not in the block get offset -1.
 * requires: every value is written before it is read (pinned, inputs, staging: from the
 *           start); all bytes together below 2^62. */
void plan_liveness(Plan *p);

/* Offsets of every range, and of what each step has alone, aligned to BLOCK_ALIGN.
 * gives: p->peak, as near to p->live_peak as the effort finds. Deterministic.
 * source: the placement part of MiniMalloc (Moffitt & Feldman, ASPLOS 2023) for the idea of
 *         searching over orders with lower bounds by time section. */
void plan_place(Plan *p);

/* Lets turns of loops run at once, up to one for each lane, each with its own workspace, as far as
 * the plan takes no more than a sixth more for it.   requires: plan_place(), no budget, nothing
 * offloaded. */
void plan_turns(Plan *p);

/* Moves small values, and what steps have alone, to where nothing lies for some steps more, as far
 * as there is room below p->peak.   requires: offsets; all of one level, nothing offloaded. */
void plan_part_small(Plan *p);

/* Bytes that are live at each step, workspace, lanes and base too; in `a`. */
int64_t *plan_live(const Plan *p, Arena *a);
void plan_find_peak(Plan *p); /* live_peak and peak_step */

/* Replays order, ranges, storage and offsets, sharing no code with the above.
 * NULL, or what is wrong ("step 12 reads `x` after step 9 wrote `y` over it"). */
const char *plan_check(const Plan *p, Arena *scratch);

/* What is kept of each part of the model, in p->part; of parts with a value in the plan or in a
 * body. A range counts with the part that its value lies in, and all parts around that, if the
 * reverse pass reads it, and it is there across the turn: what is there after the last step of the
 * forward pass and before the first of the reverse pass. Where steps of the two are mixed, the
 * most of all moments between the first of the reverse pass and the last of the forward pass.
 * Of bodies, the most of any counts.   requires: plan_liveness(). */
void plan_parts(Plan *p);
/* By how many bytes parts keep more than they may. */
int64_t plan_parts_over(const Plan *p);
/* By range: it counts with its parts. */
bool *plan_crossing(const Plan *p, Arena *out);
/* Is `inner` the part, or does it lie in it? */
static inline bool part_has(const BudgetPart *part, const BudgetPart *inner)
{
    while (inner != NULL && inner != part)
        inner = inner->outer;
    return inner == part;
}

/* Bytes live at `step` (-1: at p->peak_step), by role; ROLE_PADDING is what rounding
 * up to BLOCK_ALIGN adds, and pinned storage that the plan has no values for. The sum is
 * what is live at that step; p->peak less live_peak are holes. */
void plan_by_role(const Plan *p, int32_t step, int64_t bytes[N_ROLES]);

/* What a step is predicted to take, in nanoseconds of the plan's machine; and all steps: with
 * those that run again and the time that is waited for transfers, or without. Where the plan was
 * timed as a whole, the former is what that took, and plan_cost_of_steps() the sum. */
int64_t plan_step_cost(const Plan *p, const PlanStep *s);
int64_t plan_cost(const Plan *p, bool with_again);
/* What a budget costs: the difference of the two, in ns. Nothing, where the plan is predicted to
 * take less than the step without a budget; a batch that is split and what is measured may gain. */
int64_t plan_extra(const Plan *p);
int64_t plan_cost_of_steps(const Plan *p);

/* "the batch of 64 is taken as 4 micro-batches of 16: +3.00 % of time instead of +20.00 %", or why
 * it is not though that was allowed; NULL: neither. */
const char *plan_split_text(const Plan *p, Arena *a);

/* "of 1,000 steps of scans the last 404 are kept, and the first 596 run again", or that scans are
 * cut into runs; NULL: they are whole. */
const char *plan_scans_text(const Plan *p, Arena *a);

/* Whether the value is out of the block for a while. */
bool plan_offloads(const Plan *p, int32_t value);

/* Text: schedule with lifetimes, peak by role, the ten largest values; the JSON
 * has all of it. Lines of origins are given where `cx` has their sources (NULL: none). */
void plan_print(const Ctx *cx, const Plan *p, bool schedule, Text *to);
void plan_json(const Ctx *cx, const Plan *p, Text *to);
/* A picture: what is live at each step, by role, and the budget. */
void plan_svg(const Plan *p, Text *to);
/* One page that needs no other file: for each of n plans (NULL: left out) that picture, a map of
 * the block over the steps, and tables of all values and steps, in which one can search. */
void plan_html(const Ctx *cx, const char *title, const Plan *const *plan, int n, Text *to);

/* Whether the entry runs in `budget_bytes` (0 or less: no limit).
 * fails: false, after reporting the budget (set at `at`, or NO_SPAN), the smallest that is found
 *        to work, whether less is proved impossible, and which line sets that. Of several
 *        entries, ask about the one with the largest least. */
bool plan_fits(Ctx *cx, const Plan *p, int64_t budget_bytes, Span at);

#endif
