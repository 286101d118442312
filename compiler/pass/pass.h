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

/* r is a statistic of rows or a weight of channels: few elements, that many others read. */
static inline bool graph_spreads(const Graph *g, Ref r)
{
    return op_of(g, r) == OP_broadcast &&
           type_elems(type_of(g, arg(g, r, 0))) < type_elems(type_of(g, r));
}

/* A copy of the primal graph g that stores its f32 values as `half`, F16 or BF16, but for what
 * needs more: narrow.c says which. Every root keeps its type, and so does every slot and input.
 * loss_scale is that of vjp(). The caller frees it. requires: simplify().   breaks: every Ref. */
Graph *narrow(const Graph *g, DType half, double loss_scale);

/* A copy of the primal graph g in which values around depthwise convolutions lie as [N, s..., C]
 * (channels.c says which): no bit of them changes. NULL: there is no such convolution. The caller
 * frees it. */
Graph *channels_last(const Graph *g);

/* A copy of the primal graph g in which relus that only a pooling by maxima reads stand behind it
 * (pools.c). Every value is the same, but for the sign of a zero. NULL: there is none. The caller
 * frees it. */
Graph *relus_behind_pools(const Graph *g);

/* Appends the reverse graph of the ROOT_LOSS: a ROOT_GRADIENT for each trained
 * parameter slot of `pin` that the loss depends on (a report if it depends on
 * none of a trained parameter: E04xx warning), and for each input declared `with grad`.
 * Inside, cotangents are those of loss_scale times the loss, a power of two, so that those of
 * f16 values do not vanish; the gradients are divided by it, which is exact.
 * requires: a verified primal graph with one scalar loss.   keeps: every Ref. */
bool vjp(Ctx *cx, Graph *g, const Pinned *pin, double loss_scale);

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
/* No sum in the body takes another order if more, or less, of its values is stored. */
bool has_fixed_order(const Graph *body);

/* Of a scan: the last steps, of which what the reverse reads is kept, and the first ones, which
 * run again in `runs` runs of `run` steps. runs 0: all steps are kept. */
typedef struct KeptSteps {
    int64_t kept, runs, run;
} KeptSteps;
enum { KEEP_ALL = 4096 };
/* What is best for a scan of `count` steps that may keep the bytes of `share` / KEEP_ALL of them;
 * a run's beginning takes those of one. Where that is not possible, the least bytes. More of a
 * share never keep fewer steps. */
KeptSteps kept_steps(int64_t count, int64_t share);
/* A copy of the joint graph in which scans keep so much, if a reverse scan is alone in reading
 * something that they stack. No bit changes. *all: sums over the scans; of `run` that of all steps
 * that run again. NULL: there is no such scan, or each keeps all. The caller frees it. */
Graph *keep_steps(const Graph *g, int64_t share, int deepest, KeptSteps *all);
bool can_keep_steps(const Graph *g, int deepest);

/* Where rows of values that are far larger than what they are made of do not read each other,
 * computes some rows at a time: in place of the primal graph *g there is another one, with
 * scans for that. Regions with a matrix of `from` elements or more are so cut that no value in
 * them has more than from / CHUNKS_OF_LEAST, as far as `levels` nested scans allow. Where `from` is
 * CHUNK_DEFAULT, scores of attention are cut from CHUNK_SCORES_FROM on, 128 by 128, where that is
 * as fast, and others from CHUNK_FROM on, 8,192 by 8,192, where that is smaller; but if `wide` is
 * not 0, scores into four chunks or chunks of so many elements, and what is far larger into eight.
 * False: there is none.   keeps: the bits of each row; what is summed over rows is the sum of the
 * chunks' sums. */
bool chunk_rows(Graph **g, int64_t from, int64_t wide, int levels);
enum { CHUNKS_OF_LEAST = 32, CHUNK_DEFAULT = -1 };
enum { CHUNK_SCORES_FROM = 1 << 14, CHUNK_FROM = 1 << 26 };
/* ... of any size, in so many slices or as near to that as can be, along axes over which nothing
 * is summed (batch, heads).   keeps: all bits. */
bool chunk_slices(Graph **g, int64_t slices, int levels);
bool can_chunk_slices(const Graph *g, int64_t slices, int levels);
/* A simplified copy of the joint graph g in which scans over chunks whose reverse needs nothing
 * that is made of them compute a chunk and its reverse in one walk, where that saves a contraction.
 * No bit changes. NULL: there is none. The caller frees it. */
Graph *merge_chunks(Ctx *cx, const Graph *g);
/* Is a contraction with so many results, each a sum of `terms`, summed in leaves? group.c */
bool contract_in_leaves(int64_t results, int64_t terms);

/* Asks that values of parts which are to keep less are computed again, before vjp() and narrow(),
 * which make of that what they make of `recompute`.   keeps: every Ref. */
void ask_parts(Graph *g);
/* Is a value of this origin one of those? */
bool part_drops(const Origin *o);

/* A copy of the joint graph g in which products of the reverse pass with few results and many terms
 * are sums of several products (leaves.c). NULL: there are none. The caller frees it.
 * breaks: the order of those sums. */
Graph *sum_in_leaves(const Graph *g);
/* Products at the most, in place of one of this type with so many results, each a sum of so many
 * terms, that reads so many elements; 1: it stays one. As many are made as divide what is cut. */
int64_t most_leaves(DType t, int64_t results, int64_t terms, int64_t read);

/* A copy of the graph g in which what products of many turns of a scan would transpose, each for
 * itself, is transposed before the scan (transpose_once.c). No bit changes. NULL: there is none.
 * The caller frees it. */
Graph *transpose_once(const Graph *g);

/* A copy of the graph g in which scans take slices of what they read, and put together what they
 * give, in their steps (sink_views.c). No bit changes; what is kept of a value that was sliced is
 * all of it, or nothing. NULL: there is nothing of it. The caller frees it. */
Graph *sink_views(const Graph *g);

/* A copy of the graph g in which bodies of scans hand on what scans within them give as it is, and
 * it is reshaped where it is picked (bare_results.c). NULL: all do. The caller frees it. */
Graph *bare_results(const Graph *g);

/* A copy of the joint graph g in which the reverse pass computes again what the model says
 * (`recompute`). NULL: it asks for nothing. The caller frees it.
 * requires: vjp(); simplify() and cluster() know of the second computations by their origins. */
Graph *replay(const Graph *g);
/* ... what is `lost`, by node of the forward pass, in place of that; what is `early`, by node of
 * the reverse pass, is made in the forward pass, behind what it reads there (NULL: none is). Early
 * truth values of the same `bits`, at most 8, are kept as bits of one byte (NONE: apart). */
Graph *replay_lost(const Graph *g, const bool *lost, const bool *early, const Ref *bits);
/* A copy of the joint graph g in which the reverse pass computes elementwise values and views again
 * where that keeps fewer bytes, in at most a share of the time of the whole graph (1: whatever it
 * takes); no contraction, reduction or scan. No bit changes. NULL: there are none. The caller frees
 * it. `halves`: narrow() has made g, and its steps are computed again whatever that takes.
 * requires: what replay() does, which comes before. */
Graph *drop_light(const Graph *g, double share, bool halves);
/* Its steps (steps.c), by node of the forward pass, in the arena. */
bool *graph_steps(const Graph *g, Arena *a);

#endif
