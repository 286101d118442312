/* gradc-smith: random valid models, and what must be true of each.
 *
 * A model is a function of its seed. Values carry an interval of where their elements lie,
 * so that results stay finite and functions stay inside of their domains; sizes are small
 * and often odd (1, 2, 3, 5, 7, 17, 33); the policies (one function for each kind of
 * statement, gen_*.c) make chains, diamonds, broadcasts, shared weights, reductions over
 * any axes, views of views, contractions of all kinds, gathers, scans with nested bodies,
 * draws, state, gradients inside of the loss, and training with every optimizer.
 *
 * What is checked (check.c): the object, the very bytes that a build writes, gives the bits
 * of the exact interpreter for first values, loss, outputs, gradients, parameters and
 * optimizer after steps, in a block between guard pages, at 1, 2, 3 and 8 lanes whose
 * chunks run in random order, and so do, of one model in four, the object within a byte
 * budget, of those with scans, the objects whose scans are cut into runs, and keep the last of
 * their steps, and of those with attention, the object that computes it in slices; a step that
 * meets NaN changes nothing; one model in eight flushes denormals, and its inputs have some; of
 * three in four, parameters lie in panels of a column, of 3 or of a tile's where they can; of one
 * in four, rows of what is computed in row chunks lie apart; of three in four, kernels are in all
 * chains that there can be (target/cpu/chain.h); plans replay; gradients agree with
 * forward mode and with central differences (derive.c), and a step with what its ops are defined to
 * give (step.c).
 *
 *   gradc-smith run [--seed N] [--count N] [--jobs N] [--demand]
 *   gradc-smith show SEED          prints the model
 *   gradc-smith export [--seed N] [--count N]   models without draws, for jax_check.py
 *   gradc-smith check FILE...      checks models that somebody else has written
 *   gradc-smith reduce SEED|FILE   a smaller model that fails in the same way
 *   gradc-smith work [--seed N] [--count N]     what kernels compute, of models of work.c
 *   gradc-smith nets [--seed N] [--count N] [--jobs N] [--reduce]   as `run`, of ordinary nets
 *   gradc-smith net SEED|FILE...   as `check`
 *
 * Nets are gen_net.c's, and, of odd seeds, models of larger sizes: their objects for several
 * processors give the same bits (targets.c).
 *
 * The objects of a model have most of their kernels in common: where GRADC_CACHE is a folder, a
 * kernel is compiled once. */
#ifndef GRADC_SMITH_SMITH_H
#define GRADC_SMITH_SMITH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "graph/graph.h"

typedef enum Fault {
    FAULT_NONE,
    FAULT_COMPILE, /* refused, though it is valid */
    FAULT_PLAN,    /* the checker of plans complains */
    FAULT_INIT,    /* first values differ */
    FAULT_GRAD,    /* loss, outputs or gradients differ */
    FAULT_EVAL,
    FAULT_STEP,
    FAULT_STATUS,   /* object and judge return different statuses */
    FAULT_ATOMIC,   /* a step that failed changed something */
    FAULT_GUARD,    /* something outside of the block was written */
    FAULT_FINITE,   /* NaN or infinity in the loss: the generator's mistake */
    FAULT_DEFINED,  /* a step against the definitions of its ops */
    FAULT_FORWARD,  /* reverse mode against forward mode */
    FAULT_QUOTIENT, /* ... against central differences */
    FAULT_TARGET,   /* objects for two processors differ */
    FAULT_CRASH,    /* a signal; in the child, so that the others go on */
    N_FAULTS
} Fault;
const char *fault_name(Fault f);

/* What a child has found; in memory that the parent shares. */
typedef struct Verdict {
    Fault fault;
    int signal;
    char text[500];
    int32_t used[N_OPS]; /* nodes of the graphs, bodies included */
    int32_t primal;      /* nodes that compute something, before reverse mode */
    bool scan;
    int32_t quotients, redrawn;
    int32_t failed_steps;   /* that met NaN, as they should */
    int32_t budgets, again; /* compiled within one; steps that run again there */
    int32_t offloaded;      /* ... and values leave the block */
    int32_t cut;            /* with scans that are cut into runs */
    int32_t kept;           /* ... of which only the last steps are kept */
    int32_t slices;         /* with wide values that are computed in slices */
    int32_t light;          /* with elementwise values that are computed again */
    int32_t chunked;        /* that are in row chunks from the start */
    int32_t panels;         /* with parameters in panels */
    int32_t chains;         /* with kernels in chains */
    int32_t objects;        /* compared with another one's bits */
    int32_t
        ties; /* steps that are off their definition where an argmax, or all, is up to rounding */
    double worst_forward, worst_quotient;
} Verdict;

typedef enum Draw {
    DRAW_ALL,
    DRAW_PLAIN, /* without draws, which nobody else can repeat, and without training */
    DRAW_LARGE  /* of sizes that only check_targets() can run */
} Draw;
/* The text of a model; in `a`. */
const char *generate(uint64_t seed, Draw draw, Arena *a);
/* gen_net.c: likewise, of a net. */
const char *net_text(uint64_t seed, Arena *a);

/* export.c: prints the model, its data and what the object gives, as one line of JSON. */
void export_model(const char *text, uint64_t seed, Verdict *v);

/* Of a model's text, with what the seed draws; `loud`: the compiler's messages are printed. */
typedef void Check(const char *text, uint64_t seed, bool loud, Verdict *v);
/* check.c: every check. */
Check check_model;
/* targets.c: its objects for several processors. */
Check check_targets;
/* One of them in a process of its own, for models that crash the compiler. */
void check_apart(Check *check, const char *text, uint64_t seed, bool loud, Verdict *v);

/* A smaller text that fails with the same fault. */
const char *reduce(Check *check, const char *text, uint64_t seed, Fault fault, Arena *a);

/* work.c: gives the exit status. */
int work(uint64_t seed, int count);

/* splitmix64 */
uint64_t random_bits(uint64_t *state);
double random_real(uint64_t *state, double lo, double hi);
int64_t random_below(uint64_t *state, int64_t n);

#endif
