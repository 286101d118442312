/* Models in tests of the front: text to graphs, and graphs evaluated in double. */
#ifndef GRADC_TESTS_FRONT_RUN_H
#define GRADC_TESTS_FRONT_RUN_H

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compile.h"
#include "support/eval.h"

typedef struct Run {
    Ctx cx;
    Arena arena;
    Output out;
    bool fine;
    Value *slot, *input;
    int64_t rows; /* of a call; 0: all */
} Run;

static inline const char *run_messages(Run *r)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    diag_print(&r->cx, f);
    fclose(f);
    const char *copy = arena_strndup(&r->cx.perm, text, n);
    free(text);
    return copy;
}

/* Builds every entry in this form; `define` ends with a NULL name. */
static inline void run_form(Run *r, const char *path, const char *text, const Define *define,
                            Form form)
{
    memset(r, 0, sizeof *r);
    ctx_init(&r->cx);
    r->cx.verify = true;
    r->out.arena = &r->arena;
    Options o = {.define = define, .entry = {true, true, true, true}, .form = form};
    while (define != NULL && define[o.n_defines].name != NULL)
        o.n_defines++;
    int32_t source = source_add(&r->cx, path, text, strlen(text), false);
    r->fine = compile_graphs(&r->cx, source, &o, false, &r->out);
    ck_assert_msg(r->fine == (r->cx.n_errors == 0), "%s\n%s", text, run_messages(r));
}

static inline void run_try(Run *r, const char *path, const char *text, const Define *define)
{
    run_form(r, path, text, define, (Form){0});
}

static inline void run_close(Run *r)
{
    for (int e = 0; e < N_ENTRIES; e++)
        if (r->out.graph[e] != NULL)
            graph_free(r->out.graph[e]);
    arena_free(&r->arena);
    ctx_free(&r->cx);
}

static inline const Pinned *pinned(Run *r)
{
    return model_pinned(r->out.model);
}

/* Values of the slots after `init`, with this seed. */
static inline void run_init(Run *r, double seed)
{
    const Pinned *p = pinned(r);
    r->slot = NEW_ARRAY(&r->arena, Value, p->slot.n);
    for (int i = 0; i < p->slot.n; i++)
        r->slot[i] = value_new(&p->slot.at[i].type, &r->arena);
    if (p->seed >= 0)
        r->slot[p->seed].x[0] = seed;
    const Graph *g = r->out.graph[ENTRY_INIT];
    Value *v = eval_graph(g, &(Feed){.slot = r->slot}, &r->arena);
    for (int i = 0; i < g->root.n; i++) {
        ck_assert_int_eq(g->root.at[i].kind, ROOT_ASSIGN);
        r->slot[g->root.at[i].slot] = v[g->root.at[i].ref];
    }
}

/* Inputs of the whole step, drawn; `rows` of each batch are the same for every batch size. */
static inline void run_inputs(Run *r, uint64_t seed)
{
    const Pinned *p = pinned(r);
    r->input = NEW_ARRAY(&r->arena, Value, p->input.n);
    for (int i = 0; i < p->input.n; i++) {
        const GraphInput *in = &p->input.at[i];
        Type t = in->type;
        if (in->batch_axis == 0)
            t.dim[0] = model_batch(r->out.model) * model_accumulate(r->out.model);
        uint64_t state = seed * 1000 + (uint64_t)i;
        r->input[i] = value_new(&t, &r->arena);
        for (int64_t k = 0; k < r->input[i].n; k++)
            r->input[i].x[k] = dtype_is_float(t.dtype) ? next_real(&state, -1, 1)
                               : in->ranged ? next_int(&state, (int)in->lo, (int)in->hi - 1)
                                            : next_int(&state, 0, 3);
    }
}

static inline Value *run_entry(Run *r, EntryKind e)
{
    int32_t rows = pinned(r)->rows;
    int64_t all =
        model_batch(r->out.model) * (e == ENTRY_EVAL ? 1 : model_accumulate(r->out.model));
    if (rows >= 0)
        r->slot[rows].x[0] = (double)(r->rows > 0 ? r->rows : all);
    return eval_graph(r->out.graph[e], &(Feed){.input = r->input, .slot = r->slot}, &r->arena);
}

static inline Value *run_open(Run *r, const char *text, const Define *define)
{
    run_try(r, "m.model", text, define);
    ck_assert_msg(r->fine, "%s\n%s", text, run_messages(r));
    run_init(r, 1);
    run_inputs(r, 7);
    return r->input;
}

/* Commits what a step assigns; false if it is not finite. */
static inline bool run_step(Run *r, double *loss)
{
    const Graph *g = r->out.graph[ENTRY_STEP];
    Value *v = run_entry(r, ENTRY_STEP), *next = NEW_ARRAY(&r->arena, Value, pinned(r)->slot.n);
    bool finite = true;
    memcpy(next, r->slot, sizeof *next * (size_t)pinned(r)->slot.n);
    for (int i = 0; i < g->root.n; i++)
        if (g->root.at[i].kind == ROOT_FINITE)
            finite = v[g->root.at[i].ref].x[0] != 0;
    for (int i = 0; i < g->root.n; i++) {
        const Root *root = &g->root.at[i];
        if (root->kind == ROOT_LOSS && loss != NULL)
            *loss = v[root->ref].x[0];
        if (root->kind == ROOT_ASSIGN && (finite || !root->guarded))
            next[root->slot] = v[root->ref];
    }
    r->slot = next;
    return finite;
}

static inline Value *run_slot(Run *r, const char *name)
{
    int32_t i = pinned_find(pinned(r), name);
    ck_assert_msg(i >= 0, "there is no %s", name);
    return &r->slot[i];
}

static inline const Root *run_root(Run *r, EntryKind e, RootKind kind, const char *name)
{
    const Graph *g = r->out.graph[e];
    for (int i = 0; i < g->root.n; i++)
        if (g->root.at[i].kind == kind && (name == NULL || strcmp(g->root.at[i].name, name) == 0))
            return &g->root.at[i];
    ck_abort_msg("no root %s", name == NULL ? "of this kind" : name);
    return NULL;
}

static inline void close_to(double is, double want)
{
    ck_assert_double_eq_tol(is, want, 1e-9 * fmax(1, fabs(want)));
}

#endif
