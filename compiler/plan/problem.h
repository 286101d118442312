/* A bare planning problem: nodes with a cost and the bytes of their one output.
 *
 * Order in the arrays is a valid order of execution: inputs are earlier nodes. Views
 * and values written in place have been collapsed before. Knows nothing of where it
 * comes from: a file (problem_read), a program, a test. */
#ifndef GRADC_PLAN_PROBLEM_H
#define GRADC_PLAN_PROBLEM_H

#include "../base/diag.h"

/* With these no sum of 64 bits overflows, however often a plan runs a node. */
enum { MAX_COST_LOG2 = 56, MAX_BYTES_LOG2 = 60, MAX_NODES = 1 << 20, MAX_EDGES = 1 << 24 };

typedef struct ProblemNode {
    const char *name;
    int64_t cost;    /* of running it once, in any unit */
    int64_t bytes;   /* of its output */
    int64_t scratch; /* bytes needed while it runs, and no longer */
    bool pure;       /* false: it has to run exactly once */
    bool keep;       /* its output has to be there at the end */
    /* Where this is the last read of its input `over`, which is not kept until the end, it
     * writes over that, and so many bytes fewer are there while it runs. 0: it can't. */
    int32_t over;
    int64_t over_bytes;
} ProblemNode;

typedef struct Problem {
    int32_t n;
    ProblemNode *node;
    int32_t *input_at, *input; /* of node v: input[input_at[v] .. input_at[v + 1]), each once */
    int32_t *user_at, *user;   /* likewise, who reads v */
    int32_t *stop_at, *stop;   /* once one of stop[] has run, v may not run any more */
    int32_t *halt_at, *halt;   /* the same turned around: whom v stops */
    int64_t pinned;            /* bytes that are there all the time */
    int64_t cost_base;         /* of running every node once */
} Problem;

/* Once `by` has run, `node` may not: it reads what `by` changes. */
typedef struct ProblemStop {
    int32_t node, by;
} ProblemStop;

/* Collects nodes, in order. */
typedef struct ProblemMake {
    Arena *arena;
    VEC(ProblemNode) node;
    VEC(int32_t) input_at, input;
    VEC(ProblemStop) stop;
} ProblemMake;

void problem_node(ProblemMake *m, ProblemNode node);
/* An input of the newest node; what is given twice counts once.
 * requires: an earlier node. */
void problem_input(ProblemMake *m, int32_t input);
/* requires: `by` is a later node, and not pure. */
void problem_stop(ProblemMake *m, int32_t node, int32_t by);
/* Gives the problem, in the arena of `m`. */
Problem *problem_end(ProblemMake *m, int64_t pinned);

/* Reads a problem from JSON (planner's file format):
 *   {"nodes": [{"name": "a", "cost": 12, "bytes": 64, "inputs": [0], "scratch": 0,
 *               "pure": true, "keep_until_end": false}, ...], "pinned_bytes": 0}
 * fails: NULL, after reporting E0610 with a position, or the node's index and name. */
Problem *problem_read(Ctx *cx, const char *path, const char *text, size_t bytes, Arena *out);

/* Bytes that must be there while v runs: pinned, inputs, output, scratch. */
int64_t problem_working_set(const Problem *p, int32_t v);

#endif
