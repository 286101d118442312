/* Element by element: turns the nodes of a group into one kernel.
 *
 * The loops of a kernel are "axes", made from the dimensions of a shape; an axis may
 * be cut into factors, so that every index map (a reshape above all) stays affine. Where
 * an index is not affine, elem_divide() notes the cut that would make it so, and
 * the kernel is started again with it; where no cut helps, it notes the node that must be
 * stored first. */
#ifndef GRADC_PASS_ELEM_H
#define GRADC_PASS_ELEM_H

#include "../graph/op.h"
#include "../kernel/program.h"

enum { MAX_FACTORS = 4, MAX_AXES = 2 * MAX_RANK };

/* One dimension of an iteration space, slowest factor first. */
typedef struct Axis {
    int64_t extent;
    int32_t n;
    int64_t factor[MAX_FACTORS];
    Val loop[MAX_FACTORS]; /* while a kernel is being built */
} Axis;

void axis_init(Axis *a, int64_t extent);
/* Cuts the factor whose loop is v into (extent/by, by). false: not possible. */
bool axis_cut(Axis *axes, int n, Val v, int64_t by);
KAff axis_index(const Axis *a);

/* Why a kernel could not be built as asked. */
typedef enum Trouble { FINE, WANTS_CUT, WANTS_STORE, TOO_MANY_TERMS } Trouble;

/* A request for an element of a stored node, as seen from a traced kernel. */
typedef struct Request {
    Ref ref;
    bool bounded; /* under a guard: may lie outside of the node */
    int depth;    /* loops around it */
    KAff *idx;    /* one per axis */
} Request;

typedef struct Memo {
    Ref ref;
    int32_t guard; /* bounds under which it was made */
    Val val;
    KAff *idx; /* one per axis */
} Memo;

typedef struct Tails Tails; /* tails.h */

struct Elem {
    Kernel *k;
    const Graph *g;
    Arena *arena;       /* memo, requests */
    const bool *stored; /* by Ref: has a buffer of its own when this kernel runs */
    const Ref *here;    /* nodes computed here though they are stored */
    int n_here;
    const Tails *tails; /* NULL: no column is hidden */
    Ref sum_of;         /* the contraction whose SUM is `sum` */
    Val sum;
    VEC(Ref) operand; /* kernel buffer i is operand.at[i] (outputs: the node, with OUT_BIT) */
    VEC(int32_t) operand_out; /* -1: read; else index into the group's outs */
    VEC(Memo) memo;
    VEC(KBound) bound; /* guards of every load now, ... */
    int first_bound;   /* ... from this one on */
    int32_t guard, next_guard;
    bool selects; /* ... where they fail, what has been made is not used */
    double otherwise;
    VEC(Request) request; /* tracing: what is read, and where the sum is wanted */
    bool tracing;
    Val nest_end; /* ... instructions before it are the nest's loops */
    Trouble trouble;
    Val cut_loop;
    int64_t cut_by;
    Ref store_first;
};

void elem_init(Elem *e, Kernel *k, const Graph *g, Arena *arena, const bool *stored);
/* From here on what is asked for is noted; the nest's loops are open. */
void elem_trace(Elem *e);
int elem_buffer(Elem *e, Ref r); /* kernel buffer that holds r, for reading */
int elem_out_buffer(Elem *e, Ref r, int out, DType t, int64_t elems);
KAff elem_linear(const Type *t, const KAff *idx); /* row-major offset */
/* The loop or DIM ends at the limit of the tails, or, `zero`, has sums of no terms from there. */
void elem_limit(Elem *e, Val v, KReach reach);
bool ref_is_source(const Graph *g, Ref r); /* has memory by nature: input, slot, arg, literal */

#endif
