/* The pipeline, and what it gives. */
#ifndef GRADC_COMPILE_H
#define GRADC_COMPILE_H

#include "front/build.h"
#include "front/parse.h"
#include "kernel/program.h"
#include "pass/cluster.h"
#include "plan/budget.h"
#include "plan/curve.h"
#include "plan/plan.h"
#include "target/target.h"

/* Fewer bytes for more time: one of the programs that compute the same. */
typedef struct Form {
    int32_t scan_levels; /* scans are cut into runs, so deep: split_scans() */
    int32_t kept;        /* of a scan's steps, in parts of KEEP_ALL: keep_steps(); 0: all */
    int32_t slices;      /* wide values are computed in so many slices: chunk_slices(); 0: whole */
    int64_t split;       /* a batch is taken as so many micro-batches: model_splits(); 0: one */
    int32_t keeps_light; /* entries, 1 << e each: elementwise values are kept, but for those that
                          * the plan runs again; 0: those that take little time never are */
    bool remakes_light;  /* none of them is, in no entry: drop_light() */
} Form;
/* ... in both entries that have a reverse pass. */
enum { KEEPS_LIGHT = 1 << ENTRY_GRAD | 1 << ENTRY_STEP };
enum { FEW_SLICES = 8, MANY_SLICES = 64 };

struct Options;
struct Output;

/* What is timed, as `o` has it but without a budget. */
typedef struct TimedModel {
    int32_t source;
    const struct Options *o;
    const char *hash; /* of the model */
} TimedModel;

/* A program that keeps to a budget, timed as a whole. */
typedef struct TimedPlan {
    char key[33]; /* hash of what it runs, in hexadecimal digits */
    Form form;
    int64_t budget;      /* bytes that it was planned for, ... */
    int64_t peak;        /* ... and that it needs */
    double ratio[4];     /* by entry: of calls to those of the program without a budget; 0: none */
    const char *untimed; /* why it was not timed; NULL: it was */
} TimedPlan;

/* Says what things take on a machine, which the command line can find out. Where a function
 * fails, that is reported, and it gives false. */
typedef struct KernelTimer {
    void *of;
    /* ns[i] of each kernel, whose operands lie about in `spread` bytes; 0: they stay where they
     * are. */
    bool (*time)(void *of, Ctx *cx, Kernel *const *kernel, int n, int64_t spread, double *ns);
    /* ns[e] of one call of each entry of the model without a budget; 0: it was not timed. */
    bool (*whole)(void *of, Ctx *cx, const TimedModel *m, double ns[4]);
    /* Key and ratios of the program in `out`, for entries whose ratio is not given yet, or why
     * they are not timed.   requires: form, budget and peak of x. */
    bool (*plan)(void *of, Ctx *cx, const TimedModel *m, const struct Output *out, TimedPlan *x);
    /* The i-th of the programs that were timed of this model; NULL after the last. */
    const TimedPlan *(*known)(void *of, const TimedModel *m, int i);
    void (*close)(void *of); /* what was kept for further questions */
} KernelTimer;

typedef struct Options {
    const char *model;    /* of several in a file; NULL: the last */
    const Define *define; /* -D name=value */
    int n_defines;
    const char *precision; /* f32, bf16 or f16, whatever the model says; NULL: that */
    bool entry[4];         /* by EntryKind: asked for; `grad` for `step` without a `train` */
    BudgetAsked budget;    /* of the whole block */
    bool tells;            /* with a budget: kernels are those of none (Caps) */
    bool offload;          /* with a budget: values may be out of the block meanwhile */
    bool allow_split;      /* with a budget: the batch may be taken as micro-batches */
    PlanEffort effort;
    const CostModel *cost;    /* of steps; NULL: cost_time */
    const KernelTimer *timer; /* ... by kernel, in place of that; NULL: none */
    bool prove;               /* what the budget costs at the least */
    bool only_prove;          /* ... and no plan is looked for */
    bool exists[4];           /* in some form, a plan of the entry: that there is none in this one
                               * is not to be proved */
    bool guard_loss;          /* whatever `train` says: model_guard_loss() */
    int64_t enough;           /* ns: no plan is looked for that costs so much; 0: no limit */
    bool once;                /* ... nor one in which steps run again */
    const char *unsplit;      /* why no form splits the batch, though it was allowed; or NULL */
    int64_t beside[4];        /* ns: Plan.beside of the entries */
    int64_t once_peak[4];     /* PlanBudget.once of the entries; 0: of the form itself */
    int64_t within;           /* bytes that plans keep to, in place of the budget; 0: that */
    Form form;                /* without a budget; with one, where compile_planned() begins */
    int64_t chunk_from;       /* chunk_rows(): matrices of so many elements are computed in row
                               * chunks; 0: none; or CHUNK_DEFAULT */
    int64_t chunk_wide;       /* ... then a target's wide_elems; 0: its own */
    int32_t threads_max;      /* lanes that the block has scratch for */
    TargetOptions target;
} Options;

/* Everything a command may want to look at. Lives in `arena`. */
typedef struct Output {
    Arena *arena;
    int32_t source;
    Model *model;
    Graph *graph[4]; /* by EntryKind: the joint graph, or NULL */
    Plan *plan[4];
    Program *program;
    ObjectFile object; /* after target_emit */
    int64_t budget;    /* in bytes, 0: none */
    bool over;         /* every step run once needs more than the budget */
    bool fixed;        /* graphs are not what compile_again() would make of the model */
    bool dear;         /* no plan was looked for: Options.enough */
    bool has_runs;     /* scans can be cut into runs */
    bool has_kept;     /* ... or keep only some of their steps; of each entry how many: */
    int64_t kept_steps[4], again_steps[4];
    bool has_slices;  /* wide values can be computed in slices */
    bool has_light;   /* elementwise values are computed again that need not be: keeps_light */
    bool is_light[4]; /* by EntryKind: as with remakes_light */
    bool has_forms;   /* other forms are to be tried, but for keeps_light */
    Form form;        /* which this is */
} Output;

enum { N_ENTRIES = 4 };
const char *entry_name(EntryKind e);

/* Is the entry asked for? Without a `train`, `grad` takes the place of `step`. */
bool compile_has_entry(const Options *o, const Model *m, EntryKind e);

/* .model text -> checked graphs: all that `gradc check` and `gradc show` need. With
 * `primal_only` the reverse graph is left out.
 * fails: false, after reporting. */
bool compile_graphs(Ctx *cx, int32_t source, const Options *o, bool primal_only, Output *out);

/* Graphs -> plans and a program.
 * fails: false: the budget is below the smallest peak (E0601, both figures). */
bool compile_program(Ctx *cx, const Options *o, Output *out);

/* Options.timer: asked about the kernels of all groups. fails: false, after a report. */
bool compile_timed(Ctx *cx, const Options *o, Clusters *const *c);

/* What is kept of the parts of the model, in the plans of steps that run once. *changed: where
 * that is more than a part may keep, it is to keep less, and compile_again() makes graphs, a
 * program and plans of that. fails: false, after reporting a part that can't keep less. */
bool compile_parts(Ctx *cx, Output *out, bool *changed);
bool compile_again(Ctx *cx, const Options *o, Output *out);

/* Plans within the budget, in place of those of which it has less: steps run again.
 * fails: false, after reporting the entry that needs more. */
bool compile_within(Ctx *cx, const Options *o, Output *out);

/* compile_graphs() and compile_program(). Where a budget asks for it, in the form that is the
 * cheapest of those that fit; which forms there are does not depend on the budget, but for how many
 * steps of scans are kept, which more bytes never make fewer: so that they never cost more time.
 * What takes less time than without a budget costs none (plan_extra()), for where a step keeps to
 * the budget as it is without one, that is its plan. */
bool compile_planned(Ctx *cx, int32_t source, const Options *o, Output *out);

/* What budgets of the entry cost; `whole` is the output without one. Where there are scans that
 * may keep some of their steps or be cut, each budget is planned in all forms and nothing is
 * proved; else steps run again, with keeps_light or without, and the bound is that of every plan of
 * either.
 * fails: false, after a report. */
bool compile_curve(Ctx *cx, const Options *o, EntryKind entry, const Output *whole, Curve *c);

/* The program that `gradc test` takes differences of: `grad` is the model's own; `step`
 * stores the values behind each stop_gradient, `eval` is the loss of training with those
 * held. With accumulation there are only `init` and `grad`.
 * fails: as compile_graphs() and compile_program(). */
bool compile_differences(Ctx *cx, int32_t source, const Options *o, Output *out);

/* The whole pipeline: .model text to an object file and its header. */
bool compile(Ctx *cx, int32_t source, const Options *o, Output *out);

void output_free(Output *out);
/* ... but for its arena, where another one lives too. */
void output_free_graphs(Output *out);

#endif
