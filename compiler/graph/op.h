/* The op table. An op is one line in ops.def and one row, a named-field
 * initialiser `const Op op_NAME`, beside its rules in ops/. Everything that
 * follows from a row: style.md's table in README's words is in grammar/ops.md. */
#ifndef GRADC_GRAPH_OP_H
#define GRADC_GRAPH_OP_H

#include "graph.h"

/* How lowering sees an op. */
typedef enum OpKind {
    OP_SOURCE,    /* no computation: input, slot, const, literal, iota, body argument */
    OP_POINTWISE, /* one element from the elements at the same index: `scalar` */
    OP_VIEW,      /* an index map over one operand (or select of several): `elem` */
    OP_REDUCE,    /* loops inside one element of the result: `elem` */
    OP_CONTRACT,  /* contract */
    OP_OPAQUE,    /* a kernel of its own, built by `kernel`: scatter_add, cumsum */
    OP_SCAN,
    OP_TUPLE      /* tuple, pick: no code */
} OpKind;

typedef struct AttrSpec {
    const char *name;
    AttrKind kind;
} AttrSpec;

/* Lowering's view of a kernel under construction (pass/elem.h implements it). */
typedef struct Elem Elem;
Kernel *elem_kernel(Elem *e);
const Graph *elem_graph(Elem *e);
/* The element of r at index idx[0..rank-1]. */
Val elem_at(Elem *e, Ref r, const KAff *idx);
/* As elem_at, but the index may be outside of r: there the result is `otherwise`. The
 * bounds are those of r's axes that idx can leave, and guard every load below. */
Val elem_at_bounded(Elem *e, Ref r, const KAff *idx, double otherwise);
/* Splits x = q*by + r, 0 <= r < by. Where that is not affine, lowering is told and
 * starts again with a loop split in two or an operand stored: returns false,
 * and the caller returns 0 at once. */
bool elem_divide(Elem *e, const KAff *x, int64_t by, KAff *q, KAff *r);
/* An integer value used as an index. */
KAff elem_index_of(Elem *e, Val v);
/* Loops in reductions, in the order that the kernel's semantics want: a loop over an axis
 * of r that is contiguous in it is RED, others SEQ. */
Val elem_reduce(Elem *e, Ref n, Ref x, int axis, KOp op, const KAff *idx);

/* What a shape rule sees; it fills `type` or says what is wrong. */
typedef struct Shape {
    Graph *g;
    const struct Op *op;
    const Ref *args;
    int n_args;
    const Attr *attr;
    Type type; /* the result */
} Shape;
const Type *shape_arg(const Shape *s, int i);
/* Reports at the graph's current origin, with the op's name; returns false. */
bool shape_error(Shape *s, Code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

typedef struct Op {
    const char *name;
    const char *infix;   /* "+", or NULL */
    int n_args;          /* -1: any number */
    OpKind kind;
    AttrSpec attrs[MAX_ATTRS];
    bool (*shape)(Shape *s);
    /* d[i] = cotangent of argument i, or REF_ZERO. ct: cotangent of n; for a tuple
     * a `tuple` node whose members may be NONE for zero. */
    void (*vjp)(Graph *g, Ref n, Ref ct, Ref d[]);
    const char *nondiff; /* why there is no vjp */
    Val (*scalar)(Elem *e, Ref n, const Val *x);               /* OP_POINTWISE */
    Val (*elem)(Elem *e, Ref n, const KAff *idx);              /* OP_VIEW, OP_REDUCE, OP_SOURCE */
    void (*kernel)(Elem *e, Ref n, const int *out_buf);        /* OP_OPAQUE */
    /* tests, manual */
    const char *doc, *source;
    const char *example;      /* "sum(f32[2,3], axis = 1)": types stand for operands; several by ';' */
    double domain[2];         /* random operands are drawn from here; 0,0: -1..1 */
    const char *kinks;        /* where it is not differentiable and what is chosen there */
} Op;

extern const Op *const optab[N_OPS];
#define OP(name) extern const Op op_##name;
#include "ops.def"
#undef OP

OpId op_find(const char *name); /* OP_NONE: none */

/* Shape rules used by several ops. */
bool shape_same(Shape *s);       /* all operands of one type, the result too */
bool shape_same_float(Shape *s);
bool shape_compare(Shape *s);    /* bool result */

#endif
