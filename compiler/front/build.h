/* From the tree to verified graphs: names are resolved, constants computed, functions
 * and blocks expanded, shapes checked, broadcasting made explicit. */
#ifndef GRADC_FRONT_BUILD_H
#define GRADC_FRONT_BUILD_H

#include "ast.h"
#include "graph/graph.h"

/* -D layers=12 */
typedef struct Define {
    const char *name, *value;
} Define;

/* A resolved model: definitions, arguments, pinned storage, training. */
typedef struct Model Model;

/* What values are stored as (pass/narrow.c): f32 is the types of the model. */
typedef struct Precision {
    DType type;        /* F32, BF16 or F16 */
    double loss_scale; /* a power of two; 1 but for F16 */
} Precision;
/* f32, bf16 or f16, this with the scale that is used where none is given. */
bool precision_find(const char *name, Precision *p);

typedef enum EntryKind { ENTRY_INIT, ENTRY_EVAL, ENTRY_GRAD, ENTRY_STEP } EntryKind;

/* The last model of the file; model_open_named: the one of that name (NULL: the last), whose
 * batch is taken as `split` micro-batches (1, or a divisor of the batch; see model_splits()).
 * Lives in `arena`; the tree must live as long.
 * fails: NULL, after reporting: no such model, a wrong -D, a `use` without a file. */
Model *model_open(Ctx *cx, const Ast *ast, const Define *d, int n, Arena *arena);
Model *model_open_named(Ctx *cx, const Ast *ast, const char *name, const Define *d, int n,
                        int64_t split, Arena *arena);

/* Storage and inputs of all entries that were built so far. */
const Pinned *model_pinned(const Model *m);
Pinned *model_storage(Model *m);           /* the same, for a pass that adds slots */
int64_t model_accumulate(const Model *m);  /* batches of a step, at least 1 */
Precision model_precision(const Model *m); /* what `train` says, or was set instead */
void model_set_precision(Model *m, DType type);
/* As if `guard loss` stood in `train`.   gives: false, where it has less to look at already. */
bool model_guard_loss(Model *m);
int64_t model_batch(const Model *m); /* rows of a batch; 0: there is no batch */
int64_t model_split(const Model *m); /* micro-batches of a batch, at least 1 */
/* Micro-batches that the entry goes through; 1: it is no loop. */
int64_t model_loops(const Model *m, EntryKind e);
bool model_trains(const Model *m); /* it has a `train` definition */
const char *model_name(const Model *m);
/* The comments above the model, its `train`, and its loss, output or metric of this name (of the
 * entries that were built so far), or NULL. */
const char *model_doc(const Model *m);
const char *model_train_doc(const Model *m);
const char *model_result_doc(const Model *m, const char *name);
/* Runs of `budget BYTES { ... }`, of all entries that were built so far. */
int32_t model_n_parts(const Model *m);
BudgetPart *model_part(const Model *m, int32_t i);
/* Every `name = value` of the model and of the functions and blocks of its file: the statement,
 * and whether it stands in the body of a scan. */
typedef void BindingFound(void *of, const char *name, Span statement, bool in_loop);
void model_bindings(const Model *m, BindingFound *found, void *of);
/* 64 hex digits of the model's and library's trees, the arguments, and what is pinned. */
void model_hash(const Model *m, char hex[65]);

/* The primal graph of a micro-batch. ENTRY_INIT: a ROOT_ASSIGN, unguarded, for every slot
 * but the seed and the number of rows, which the caller sets; it knows the slots of the
 * entries built before.
 * fails: NULL, after reporting all mistakes that can be found. */
Graph *build(Ctx *cx, Model *m, EntryKind e);

/* Of an entry with model_loops() > 1, after vjp(): a new graph, whose scan runs g once for each
 * micro-batch; g becomes its body and is freed with it. */
Graph *build_accumulate(Ctx *cx, Model *m, EntryKind e, Graph *g);

/* Why the batch of this model, given as to model_open_named(), can't be taken as `split`
 * micro-batches in these entries, by EntryKind; NULL: it can, and the results are those of the
 * whole batch but for rounding and for draws. What is reported on the way is taken back.
 * requires: split > 1 divides the batch. */
const char *model_splits(Ctx *cx, const Model *m, const Define *d, int n, int64_t split,
                         const bool entry[4]);

/* ENTRY_STEP, after vjp(): clipping, optimizer, schedules, the finite flag, counters. The
 * ROOT_GRADIENTs become guarded ROOT_ASSIGNs. fails: false, after reporting. */
bool build_update(Ctx *cx, Model *m, Graph *g);

/* A graph of the learning rate alone, ROOT_OTHER, as ENTRY_STEP takes it from the slots; with no
 * root if the optimizer has none. The caller frees it.
 * requires: build_update() of this model has been fine. */
Graph *build_rate(Ctx *cx, Model *m);

/* The text of a definition of the standard library, with the comment above it: `nn.linear`,
 * or a name of `prelude` alone. In cx->perm; NULL: there is none. */
const char *library_definition(Ctx *cx, const char *name);

/* grammar/functions.md: the functions that gradc knows. */
void functions_manual(Text *to);

#endif
