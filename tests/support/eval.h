/* A second opinion on graphs: every op by its definition, in double, with plain loops
 * over elements. It shares nothing with kernels or lowering and is not fast. */
#ifndef GRADC_TESTS_EVAL_H
#define GRADC_TESTS_EVAL_H

#include "graph/op.h"

/* Elements in row-major order, integers and bool too; a tuple has members instead. */
typedef struct Value {
    int64_t n;
    double *x;
    int n_members;
    struct Value *member;
} Value;

/* What the outside gives: by number of input, slot, body argument. */
typedef struct Feed {
    const Value *input, *slot, *arg;
} Feed;

/* The value of every node, by Ref. */
Value *eval_graph(const Graph *g, const Feed *feed, Arena *a);
/* Set by it: an argmax or argmin chose between elements that are apart by rounding only, and
 * arithmetic of another precision may choose otherwise. */
extern bool eval_near_tie;

Value value_new(const Type *t, Arena *a);

/* ---- random tests ----------------------------------------------------------- */

/* splitmix64 */
uint64_t next_bits(uint64_t *state);
double next_real(uint64_t *state, double lo, double hi);
int next_int(uint64_t *state, int lo, int hi); /* both included */

/* Values for every input of g: floats in [lo, hi], integers likewise, bool either. */
Value *random_inputs(const Graph *g, int n, double lo, double hi, uint64_t *state, Arena *a);
int count_inputs(const Graph *g);

/* Compares <w, J u> by central differences with <J' w, u> by pullback(), for random x, u
 * and w over all float inputs of g and the values ys. Gives the worst error over `samples`,
 * relative to the larger of the two and at least 1e-3; `order` 2 does so for the gradient
 * itself. Draws at which one-sided differences disagree (kinks) are drawn again. */
typedef struct GradCheck {
    int samples, order;
    double lo, hi; /* of the inputs */
    uint64_t seed;
    int redrawn; /* out: how often */
    bool failed; /* out: pullback() refused */
    bool zero;   /* out: all gradients were REF_ZERO */
} GradCheck;
double gradcheck(Graph *g, const Ref *ys, int n_ys, GradCheck *how);

#endif
