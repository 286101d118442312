/* A proof that no plan within a budget costs less than some bound: what the planner
 * dumps, and the checker believes only after adding it up.
 *
 * Take a node b, the moment. In every schedule there is the instant at which b runs for
 * the first time. Its ancestors A have run by then, its descendants D have not. Of the
 * others, V (everything but b and D), let k[v] say that v's output is there at this
 * instant, and r[v] that v runs (again) later on. Then
 *
 *   k[v] + r[v] >= 1       for v in V that has a reader in D, or has to be there at the end
 *   k[u] + r[u] >= r[v]    for u an input of v; both in V
 *   sum of bytes k[v] over v in V that b does not read  <=  room
 *   room = budget - pinned - bytes of b, its inputs and its scratch
 *
 * and the extra cost is at least the sum of c(v) r[v] over A; what is not pure can't
 * have r[v] = 1 if it is in A. With a price for the bytes of k this is a minimum cut,
 * and any flow of it is a bound (weak duality):
 *
 *   S -> v_in       at most scale * c(v)                  0 if v is not in A
 *   v_in -> v_out   at most price * bytes(v) / 2^shift    0 if b reads v
 *   v_out -> v_in   unlimited
 *   u_out -> v_in   unlimited, u an input of v
 *   v_out -> T      unlimited, v needed
 *
 *   extra cost >= (flow - price * room / 2^shift) / scale
 *
 * rounded up to a multiple of the greatest common divisor of all costs. Where no flow
 * comes in over a pure node, it is without limit: there is no plan.
 *
 * A node v that is decided splits the case in two: it is kept (no price, and room falls
 * by its bytes, unless b reads it) or not kept (its v_in -> v_out is unlimited). A case
 * whose room is negative is closed. The bound is the least of the cases that are left. */
#ifndef GRADC_PLAN_CERTIFICATE_H
#define GRADC_PLAN_CERTIFICATE_H

#include "problem.h"

typedef struct FlowOn {
    int32_t at; /* a node, or an index of Problem.input */
    int64_t amount;
} FlowOn;

typedef VEC(FlowOn) Flows;

/* One case of the proof, a leaf of a tree of decisions. */
typedef struct ProofCase {
    int64_t price;
    int32_t shift;
    Flows in;   /* S -> v_in, by node */
    Flows keep; /* v_in -> v_out, less v_out -> v_in: may be negative */
    Flows edge; /* u_out -> v_in, by index of Problem.input */
    Flows need; /* v_out -> T, by node */
} ProofCase;

/* The tree in preorder: a node that is decided, followed by the tree of "kept" and that
 * of "not kept"; or -1, a case, whose proof is the next one in `proof`; or -2, a case
 * that is closed since its room is negative. */
enum { PROOF_CASE = -1, PROOF_CLOSED = -2 };

typedef struct Certificate {
    int64_t bound;  /* of the extra cost */
    int32_t moment; /* -1: nothing is proved, the bound is 0 */
    int64_t scale;
    VEC(int32_t) tree;
    VEC(ProofCase) proof;
} Certificate;

#endif
