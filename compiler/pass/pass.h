/* The passes, one .c each; compile.c calls them in order. */
#ifndef GRADC_PASS_PASS_H
#define GRADC_PASS_PASS_H

#include "../graph/op.h"
#include "../kernel/program.h"

/* Rewrites the graph in place until nothing changes, keeping the bits of every
 * root: constant folding with the exact interpreter, common subexpressions
 * (not across block instances), identities such as x+0 (where exact), x*1,
 * reshape of reshape, transpose of transpose, cast to the same type, where of
 * a constant condition, pick of tuple; then drops dead nodes and renumbers.
 * keeps: the order of roots. */
void simplify(Ctx *cx, Graph *g);
/* Its parts. By Ref: a root needs it. */
bool *graph_live(const Graph *g, Arena *a);
/* The value of n, if its operands are constants and it is small (fold.c); or NONE. */
Ref fold_constant(Ctx *cx, Graph *g, Ref n);
/* Simplifies bodies and drops what is not used of them; true if something was. */
bool simplify_scans(Ctx *cx, Graph *g);

/* Appends the reverse graph of the ROOT_LOSS: a ROOT_GRADIENT for each trained
 * parameter slot of `pin` that the loss depends on (a report if it depends on
 * none of a trained parameter: E04xx warning), and for each input declared `with grad`.
 * requires: a verified primal graph with one scalar loss.   keeps: every Ref. */
bool vjp(Ctx *cx, Graph *g, const Pinned *pin);

/* So that differences see what a gradient sees, a copy of the primal graph g of one of two
 * kinds: `store` keeps what stop_gradient is taken of, at every step of every scan, in new
 * state slots, and does nothing else; its counterpart, made after it, reads them in
 * place of every stop_gradient and gives the loss alone. The caller frees both. */
Graph *freeze_stops(const Graph *g, Pinned *pinned, bool store);

/* A copy of the primal graph in which scans are cut into runs, `levels` times over, or as often
 * as leaves them nested at most `deepest` deep; their reverse keeps less and computes more,
 * and no bit changes. NULL: there is none to cut. The caller frees it. */
Graph *split_scans(const Graph *g, int levels, int deepest);
bool can_split_scans(const Graph *g, int deepest);

/* A copy of the joint graph g in which the reverse pass computes again what the model says
 * (`recompute`). NULL: it asks for nothing. The caller frees it.
 * requires: vjp(); simplify() and cluster() know of the second computations by their origins. */
Graph *replay(const Graph *g);

#endif
