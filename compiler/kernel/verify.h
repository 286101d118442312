/* What the files of the verifier share. Each check gives NULL or a message. */
#ifndef GRADC_KERNEL_VERIFY_H
#define GRADC_KERNEL_VERIFY_H

#include "kernel.h"

enum { MAX_NEST = 32 };

/* The walk over the instructions, in order. */
typedef struct Verifier {
    const Kernel *k;
    Arena *arena;
    Val at; /* the instruction looked at */
    int depth;
    Val loop[MAX_NEST]; /* enclosing loops */
    Val *loop_of;       /* by Val: innermost loop around it, 0: none */
    Val *into;          /* by ACC: the last INTO; by VAR unused */
    bool *folded;       /* by ACC */
    bool *written;      /* by buffer: a store came before */
    int grid;           /* loops of the grid: loop[0..grid) */
    KSection section;
} Verifier;

static inline const KInst *inst_of(const Verifier *v, Val x)
{
    return &v->k->inst.at[x];
}
static inline bool is_loop_op(int op)
{
    return op == KI_PAR || op == KI_SEQ || op == KI_RED;
}

const char *verify_complain(const Verifier *v, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Whether x is in scope: made before, in a loop that is still open, and in a
 * section that is seen from here. */
bool verify_in_scope(const Verifier *v, Val x);
const char *verify_types(const Verifier *v, const KInst *i);
const char *verify_affine(const Verifier *v, const KAff *x);
const char *verify_access(Verifier *v, const KInst *i);

#endif
