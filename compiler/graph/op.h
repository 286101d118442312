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
    OP_TUPLE /* tuple, pick: no code */
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
/* What was learnt inside a loop is forgotten at its end: an op that opens loops itself
 * takes a mark before k_seq() and forgets before k_end(). */
int elem_mark(const Elem *e);
void elem_forget(Elem *e, int mark);
/* Attributes of the reductions over one axis. */
enum { REDUCE_AXIS, REDUCE_KEEP };
/* The element idx of the reduction n of x: a RED loop over x's axis if it is the fastest one,
 * else a SEQ loop. A reduction of a reduction by the same op that nothing else reads is one
 * walk, the axes of n outside. MIN and MAX of floats give NaN if an element is NaN. */
Val elem_reduce(Elem *e, Ref n, Ref x, int axis, KOp op, const KAff *idx);

/* What a shape rule sees; it fills `type` or says what is wrong. */
typedef struct Shape {
    const Graph *g;
    const struct Op *op;
    const Ref *args;
    int n_args;
    const Attr *attr;
    Type type; /* the result */
    Code code; /* what is wrong, for whoever asked to report */
    const char *problem;
} Shape;
const Type *shape_arg(const Shape *s, int i);
const char *shape_text(const Shape *s, int i); /* "f32[2,3]" of an operand, for messages */
/* Notes what is wrong and returns false; g_node() reports it at the graph's current
 * origin. */
bool shape_error(Shape *s, Code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Applies the op's rule and the limits of types. */
bool shape_infer(Shape *s);

typedef struct Op {
    const char *name;
    const char *infix; /* "+", or NULL */
    const char *word;  /* the function that a model calls, where it is not the name; or NULL */
    int n_args;        /* -1: any number */
    OpKind kind;
    AttrSpec attrs[MAX_ATTRS];
    bool (*shape)(Shape *s);
    /* d[i] = cotangent of argument i; REF_ZERO, or NONE after a report. Before the call
     * it is REF_ZERO where it is wanted and NONE elsewhere, which only scan looks at. ct:
     * cotangent of n; for a tuple a `tuple` node whose members may be NONE for zero. */
    void (*vjp)(Graph *g, Ref n, Ref ct, Ref d[]);
    const char *nondiff; /* why there is no vjp */
    /* A value with the same bits that costs less than n, or NONE. May build nodes; they
     * must be simpler, for simplify() asks again. NULL: none is known. */
    Ref (*simple)(Graph *g, Ref n);
    Val (*scalar)(Elem *e, Ref n, const Val *x); /* OP_POINTWISE */
    bool by_number; /* the work of an element depends on whether operands are known numbers */
    Val (*elem)(Elem *e, Ref n, const KAff *idx);       /* OP_VIEW, OP_REDUCE, OP_SOURCE */
    void (*kernel)(Elem *e, Ref n, const int *out_buf); /* OP_OPAQUE */
    /* tests, manual */
    const char *doc, *source;
    const char *example; /* "sum(f32[2,3], axis = 1)": types stand for operands; several by ';' */
    double domain[2];    /* random operands are drawn from here; 0,0: -1..1 */
    const char *kinks;   /* where it is not differentiable and what is chosen there */
    bool given;          /* the derivative is what is said, whatever the value is */
    bool selects;        /* OP_REDUCE: each element of the result is one of the operand's */
} Op;

extern const Op *const optab[N_OPS];
#define OP(name) extern const Op op_##name;
#include "ops.def"
#undef OP

const char *op_word(const Op *op);           /* as the user writes it: "+", "exp" */
OpId op_find(const char *name);              /* OP_NONE: none */
int op_attrs(const Op *op);                  /* how many attributes it has */
int op_attr(const Op *op, const char *name); /* -1: none */

/* Shape rules used by several ops. */
bool shape_same(Shape *s); /* all operands of one type, the result too */
bool shape_same_float(Shape *s);
bool shape_compare(Shape *s);  /* bool result */
bool shape_declared(Shape *s); /* attributes `dtype` and `shape` say it */
bool shape_axis(Shape *s, const char *attr_name, int n_axes); /* 0 <= attr < n_axes */
bool shape_float(Shape *s, int i);                            /* operand i has a float dtype */
bool shape_value(Shape *s, const char *attr_name); /* the number is one of s->type's dtype */
const Attr *shape_attr(const Shape *s, const char *name);

/* Of ops that are their first operand, and say how it is differentiated: once the reverse graph
 * stands, nobody asks any more. */
Ref simple_once_reversed(Graph *g, Ref n);
Val elem_of_first(Elem *e, Ref n, const KAff *idx);

/* ---- reverse mode (pass/vjp.c) -------------------------------------------
 * Here, and not in pass.h, because the front end (grad(y, x)) and the rule of scan call it. */

/* Cotangents of xs, given those of ys (REF_ZERO or NONE: zero). Appends nodes; gives
 * REF_ZERO where y does not depend on x. The rules of each op, summed over uses
 * in the order of the nodes. Used by vjp() and by grad(y, x) of the language.
 * fails: false, after reporting every use of an op without a derivative that
 *        lies on a path from xs to ys.
 * source: Griewank & Walther, Evaluating Derivatives (2008), reverse mode. */
bool pullback(Ctx *cx, Graph *g, const Ref *ys, const Ref *cts, int n_ys, const Ref *xs, int n_xs,
              Ref *ds);

/* By Ref: does its value depend on one of xs? A float does so through its floats; only
 * one that is made of no float at all (a cast) does so through integers, and
 * pullback() reports it. */
bool *depends_on(const Graph *g, const Ref *xs, int n_xs, Arena *a);

#endif
