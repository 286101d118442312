/* Inside of the generator: a model under construction. */
#ifndef GRADC_SMITH_GEN_H
#define GRADC_SMITH_GEN_H

#include "graph/graph.h"
#include "smith.h"

enum { MAX_VARS = 240 };

/* A value that the model has a name for. */
typedef struct Var {
    char name[16];
    DType t;
    int rank;
    int64_t dim[MAX_RANK];
    double lo, hi; /* its elements lie here, as far as is known */
    bool trained;  /* depends on a parameter */
    bool batch;    /* its first axis is the batch: left alone, so that rows stay rows */
    int uses;
} Var;

typedef struct Gen {
    uint64_t rng;
    Text declared, body;
    Var var[MAX_VARS];
    int n;     /* live variables: var[0..n-1] */
    int named; /* next number for a name */
    int indent;
    DType main;    /* of most floats */
    int64_t batch; /* 0: none */
    int chain;     /* percent: the newest value is the operand */
    bool in_scan;
    bool plain; /* no draws, no training */
    bool large; /* sizes of which a target makes something */
    int blocks;
} Gen;

/* ---- random choices ---- */
int gen_int(Gen *g, int lo, int hi); /* both included */
bool gen_chance(Gen *g, int percent);
double gen_real(Gen *g, double lo, double hi); /* of two decimals: it is printed */
int64_t gen_extent(Gen *g);

/* ---- choosing operands ---- */
typedef bool Filter(const Var *v);
bool is_float(const Var *v);
bool is_int(const Var *v);
bool is_bool(const Var *v);
bool has_axes(const Var *v);      /* floats of rank >= 1 */
bool is_matrix(const Var *v);     /* floats of rank >= 2 */
Var *gen_pick(Gen *g, Filter *f); /* NULL: there is none */
/* A value of the same type that broadcasts with x, made if need be. */
Var *gen_partner(Gen *g, const Var *x);
Var join(const Var *x, const Var *y);                /* the type of x + y */
int gen_axis(Gen *g, const Var *x, bool also_batch); /* -1: none */
int64_t elems(const Var *v);
int64_t gen_most(const Gen *g); /* elements of a value */
double magnitude(const Var *v);

/* ---- declarations and statements ---- */
Var *gen_param(Gen *g, DType t, int rank, const int64_t *dim);
Var *gen_input(Gen *g, DType t, int rank, const int64_t *dim, int64_t range);
Var shaped(const Var *like, int rank, const int64_t *dim);
/* `vN = expression`, scaled where it could grow; NULL where the result is too large. */
Var *gen_let(Gen *g, Var type, const char *format, ...) __attribute__((format(printf, 3, 4)));
void gen_line(Gen *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds a live variable without a statement. */
Var *gen_name(Gen *g, Var type);
const char *gen_shape(Gen *g, int rank, const int64_t *dim, bool batch); /* "[2,3]", or "" */

/* ---- one statement of a kind; false where nothing fits ---- */
typedef bool Policy(Gen *g);
Policy make_unary, make_domain, make_binary, make_power, make_choose, make_logic, make_stepped,
    make_listed, make_rule;
Policy make_reduce, make_prod, make_cumsum, make_softmax, make_arg, make_any;
Policy make_reshape, make_transpose, make_slice, make_pad, make_concat, make_split, make_window,
    make_flip, make_insert, make_broadcast;
Policy make_matmul, make_batched, make_einsum, make_conv, make_layer, make_norm;
Policy make_rotary, make_grouped;
Policy make_gather, make_take, make_scatter, make_one_hot, make_triangle, make_loss_rows,
    make_attention, make_heads;
Policy make_cast, make_integers, make_number, make_draw, make_dropout, make_state, make_derivative,
    make_detach;
Policy make_scan, make_counted_scan, make_shared;

#endif
