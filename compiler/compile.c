/* THE PIPELINE, read top to bottom.
 *
 * .model text -> tree -> a graph for each entry -> its reverse graph -> groups, one kernel
 * each -> a plan in one block of memory -> a program -> an object file. */
#include "compile.h"

#include <string.h>

#include "kernel/denormals.h"
#include "pass/lower.h"
#include "pass/pass.h"

const char *entry_name(EntryKind e)
{
    static const char *const name[] = {"init", "eval", "grad", "step"};
    return name[e];
}

static void dump_tree(Ctx *cx, const Ast *ast)
{
    Text t;
    if (cx->dump == NULL || strcmp(cx->dump, "ast") != 0)
        return;
    text_init(&t, &cx->scratch);
    ast_print(&t, ast);
    fputs(t.at, cx->dump_to);
}

/* Verifies a graph where asked, and prints it under --dump=NAME. */
static bool inspect(Ctx *cx, const char *stage, const Graph *g)
{
    if (cx->dump != NULL && (strcmp(cx->dump, stage) == 0 || strcmp(cx->dump, "all") == 0)) {
        Arena apart = {0}; /* printing resets the context's scratch */
        Text t;
        text_init(&t, &apart);
        graph_print(g, &t);
        fprintf(cx->dump_to, "# %s, %s\n%s", g->name, stage, t.at);
        arena_free(&apart);
    }
    if (!cx->verify)
        return true;
    const char *wrong = graph_verify(g, &cx->scratch);
    if (wrong != NULL)
        diag_error(cx, E0990, NO_SPAN, "%s graph of %s: %s", stage, g->name, wrong);
    return wrong == NULL;
}

static bool loops_fit(Graph *g)
{
    Ref deepest = NONE;
    int depth = g_loop_depth(g, &deepest);
    if (depth <= MAX_LOOP_DEPTH)
        return true;
    g->origin = node(g, deepest)->origin;
    g_error(g, E0901, "scans are nested %d deep here, and at most %d can be", depth,
            MAX_LOOP_DEPTH);
    return false;
}

static bool is_assigned(const Graph *g, int64_t slot)
{
    for (int i = 0; i < g->root.n; i++)
        if (g->root.at[i].kind == ROOT_ASSIGN && g->root.at[i].slot == slot)
            return true;
    return false;
}

/* What is read after the last step, or stored, has to be a value of its own: an input or a
 * literal has no memory in the block, and storage that gets a new value loses the old one. */
static bool lacks_memory(const Graph *g, const Root *r)
{
    switch (op_of(g, r->ref)) {
    case OP_input:
    case OP_literal:
        return r->kind != ROOT_ASSIGN && r->kind != ROOT_FINITE;
    case OP_slot:
        return attr(g, r->ref, 0)->i != r->slot && is_assigned(g, attr(g, r->ref, 0)->i);
    default:
        return false;
    }
}

static void own_results(Graph *g)
{
    for (int i = 0; i < g->root.n; i++) {
        Root *r = &g->root.at[i];
        if (!lacks_memory(g, r))
            continue;
        Type t = *type_of(g, r->ref);
        Attr shape = {.kind = ATTR_INTS, .n = t.rank, .ints = t.dim};
        g->origin = node(g, r->ref)->origin;
        Ref copy = g_node(g, OP_reshape, &r->ref, 1, &shape);
        g->root.at[i].ref = copy;
    }
}

/* `precision`: f32 values that can be are stored as halves. */
static void store_less(Ctx *cx, const Model *m, Graph **g)
{
    Precision p = model_precision(m);
    if (p.type == F32)
        return;
    Graph *less = narrow(*g, p.type, p.loss_scale);
    graph_free(*g);
    *g = less;
    simplify(cx, less);
}

/* Puts `other` in place of *g, which is freed; false: it is NULL, and nothing changes. */
static bool take_graph(Graph **g, Graph *other)
{
    if (other == NULL)
        return false;
    graph_free(*g);
    *g = other;
    return true;
}

/* How deep scans may be nested, before there are micro-batches around them. */
static int room_for_scans(const Model *m, EntryKind e)
{
    return MAX_LOOP_DEPTH - (model_loops(m, e) > 1);
}

static int64_t wide_elems(const Options *o)
{
    const Target *t = o->target.target != NULL ? target_find(o->target.target) : NULL;
    return t == NULL ? 0 : o->chunk_wide > 0 ? o->chunk_wide : t->wide_elems;
}

/* Of its time, which a step may take longer for elementwise values that are computed again. */
static double light_share(const Form *f, EntryKind e)
{
    static const double by_default = 0.025;
    return f->remakes_light ? 1 : (f->keeps_light >> e & 1) != 0 ? 0 : by_default;
}

/* What scans read and hand on, as their kernels want it. */
static void settle_scans(Ctx *cx, const Options *o, Graph **g)
{
    const Target *t = target_find(o->target.target != NULL ? o->target.target : "cpu");
    bool packs = t != NULL && t->packs && o->budget.kind == BUDGET_NONE;
    if (packs && take_graph(g, transpose_once(*g))) /* more bytes, less time */
        simplify(cx, *g);
    while (take_graph(g, sink_views(*g))) /* no copies of parts; one scan deeper each time */
        simplify(cx, *g);
    if (take_graph(g, bare_results(*g))) /* no copies of what inner scans give */
        simplify(cx, *g);
}

static bool keep_last_steps(int room, EntryKind e, int32_t share, Output *all)
{
    KeptSteps steps;
    if (!take_graph(&all->graph[e], keep_steps(all->graph[e], share, room, &steps)))
        return false;
    all->kept_steps[e] = steps.kept;
    all->again_steps[e] = steps.run;
    return true;
}

/* The graph of one entry, from the tree to forward, backward and update. `all` owns it
 * from the start, so that a failure leaves nothing behind. */
static bool entry_graph(Ctx *cx, const Options *o, EntryKind e, bool primal_only, Output *all)
{
    Model *m = all->model;
    Graph **out = &all->graph[e];
    const int room = room_for_scans(m, e);
    Graph *g = *out = build(cx, m, e); /* tree -> primal graph             */
    if (g == NULL)
        return false;
    simplify(cx, g); /* fold, share, drop dead nodes     */
    ask_parts(g);    /* parts that keep less than before */
    if (e != ENTRY_INIT)
        store_less(cx, m, out);               /* f32 as bf16 or f16, with casts   */
    if (take_graph(out, channels_last(*out))) /* of depthwise convolutions */
        simplify(cx, *out);
    if (take_graph(out, relus_behind_pools(*out))) /* fewer elements, and less to keep */
        simplify(cx, *out);
    g = *out;
    if (!inspect(cx, "primal", g))
        return false;
    if (!loops_fit(g))
        return false;
    if (chunk_rows(out, o->chunk_from, wide_elems(o), room)) /* wide values, some rows at a time */
        simplify(cx, g = *out);
    if (o->budget.kind != BUDGET_NONE && can_chunk_slices(g, FEW_SLICES, room))
        all->has_slices = true;
    if (chunk_slices(out, o->form.slices, room)) /* fewer bytes, more time */
        simplify(cx, g = *out);
    if (e == ENTRY_EVAL && !primal_only && model_loops(m, e) > 1) {
        g = *out = build_accumulate(cx, m, e, g);
        if (g == NULL || !loops_fit(g))
            return false;
        simplify(cx, g);
    }
    if (e == ENTRY_INIT || e == ENTRY_EVAL || primal_only) {
        settle_scans(cx, o, out);
        own_results(*out);
        return true;
    }
    all->has_runs = all->has_runs || can_split_scans(g, room);
    if (o->form.scan_levels > 0 &&
        take_graph(out, split_scans(g, o->form.scan_levels, room))) /* fewer bytes, more time */
        g = *out; /* not simplified yet: cotangents are to be added in the same order */
    if (!vjp(cx, g, model_pinned(m), model_precision(m).loss_scale)) /* append the reverse graph */
        return false; /* an op has no derivative          */
    simplify(cx, g);
    if (take_graph(out, merge_chunks(cx, g))) /* chunks and their reverse in one walk */
        g = *out;
    if (take_graph(out, sum_in_leaves(g))) /* lanes share what one tile would have summed */
        simplify(cx, g = *out);
    if (take_graph(out, replay(g))) /* what the model asks to recompute */
        simplify(cx, g = *out);
    double share = light_share(&o->form, e);
    bool halves = dtype_is_half(model_precision(m).type);
    if (share > 0 && take_graph(out, drop_light(g, share, halves))) { /* fewer bytes, more time */
        all->has_light = share < 1;
        all->is_light[e] = share == 1;
        simplify(cx, g = *out);
    }
    all->has_kept = all->has_kept || (o->form.scan_levels == 0 && can_keep_steps(g, room));
    if (o->form.kept > 0 &&
        keep_last_steps(room, e, o->form.kept, all)) /* fewer bytes, more time */
        simplify(cx, *out);
    settle_scans(cx, o, out);
    if (!inspect(cx, "reverse", g = *out))
        return false;
    if (model_loops(m, e) > 1)
        g = *out = build_accumulate(cx, m, e, g); /* micro-batches: a loop around it */
    if (g == NULL || !loops_fit(g) || (e == ENTRY_STEP && !build_update(cx, m, g)))
        return false; /* clipping, optimizer, finite flag */
    simplify(cx, g);
    own_results(g);
    return inspect(cx, "joint", g);
}

bool compile_has_entry(const Options *o, const Model *m, EntryKind e)
{
    if (e == ENTRY_STEP)
        return o->entry[e] && model_trains(m);
    return o->entry[e] || (e == ENTRY_GRAD && o->entry[ENTRY_STEP] && !model_trains(m));
}

/* Constants are folded as objects compute. */
static bool begin_numerics(Ctx *cx, const TargetOptions *o)
{
    cx->flush = o->flush;
    if (!o->flush || denormals_can_flush())
        return true;
    Diag *d = diag_error(cx, E0709, NO_SPAN, "no constants can be folded with denormals flushed");
    diag_help(cx, d, "that takes an x86-64 processor with fma, whatever the object is for");
    return false;
}

bool compile_graphs(Ctx *cx, int32_t source, const Options *o, bool primal_only, Output *out)
{
    static const EntryKind order[] = {ENTRY_EVAL, ENTRY_GRAD, ENTRY_STEP, ENTRY_INIT};
    Ast *ast = parse(cx, source); /* .model text -> tree              */
    if (ast == NULL || !begin_numerics(cx, &o->target))
        return false;
    dump_tree(cx, ast);
    out->form = o->form;
    out->source = source;
    out->model =
        model_open_named(cx, ast, o->model, o->define, o->n_defines, o->form.split, out->arena);
    if (out->model == NULL)
        return false;
    Precision p;
    if (o->precision != NULL && precision_find(o->precision, &p))
        model_set_precision(out->model, p.type);
    if (o->guard_loss && !model_guard_loss(out->model))
        return false;
    for (int i = 0; i < N_ENTRIES; i++) { /* init last: it knows every slot   */
        EntryKind e = order[i];
        if (!compile_has_entry(o, out->model, e))
            continue;
        if (!entry_graph(cx, o, e, primal_only, out))
            return false;
    }
    return true;
}

bool compile_again(Ctx *cx, const Options *o, Output *out)
{
    static const EntryKind order[] = {ENTRY_GRAD, ENTRY_STEP};
    for (int i = 0; i < 2; i++) {
        Graph **g = &out->graph[order[i]];
        if (*g == NULL)
            continue;
        graph_free(*g);
        *g = NULL;
        if (!entry_graph(cx, o, order[i], false, out))
            return false;
    }
    return compile_program(cx, o, out);
}

static Program *new_program(const Options *o, const Output *out)
{
    Program *p = NEW(out->arena, Program);
    p->arena = out->arena;
    p->name = model_name(out->model);
    p->doc = model_doc(out->model);
    p->train_doc = model_train_doc(out->model);
    p->accumulate = model_accumulate(out->model);
    p->precision = model_precision(out->model).type;
    p->loss_scale = model_precision(out->model).loss_scale;
    p->flush = o->target.flush;
    p->batch_rows = model_batch(out->model);
    model_hash(out->model, p->hash);
    return p;
}

static void document_results(Program *p, const Model *m)
{
    for (int i = 0; i < p->result.n; i++)
        p->result.at[i].doc = model_result_doc(m, p->result.at[i].name);
}

/* What the model offloads, and no reverse pass reads. */
static void say_not_offloaded(Ctx *cx, const Plan *p)
{
    for (int32_t v = 0; v < p->n_values; v++) {
        const PlanValue *value = &p->value[v];
        if (value->offload && !value->reverse && !plan_offloads(p, v))
            diag_warning(cx, E0602, value->origin->span,
                         "`offload` has no effect here: no reverse pass reads the value later");
    }
    for (int32_t s = 0; s < p->n_steps; s++)
        if (p->step[s].body != NULL && p->step[s].body->store_bytes > 0)
            say_not_offloaded(cx, p->step[s].body);
}

bool compile_program(Ctx *cx, const Options *o, Output *out)
{
    const Target *target = target_find(o->target.target);
    const Caps *all = target == NULL ? NULL : target->caps(cx, &o->target, out->arena);
    if (all == NULL)
        return false;
    Program *p = out->program = new_program(o, out);
    Caps *caps = NEW(out->arena, Caps);
    *caps = *all;
    caps->bf16_pairs = all->bf16_pairs && p->precision == BF16; /* they flush what is denormal */
    /* What has a kernel of its own is dropped sooner; no bit depends on it. */
    if (o->budget.kind != BUDGET_NONE && !o->tells) {
        caps->tells_from = 0;
        caps->joins_again = false;
    }
    Clusters *c[N_ENTRIES] = {NULL};
    int64_t lane_bytes = 0;
    for (int e = 0; e < N_ENTRIES; e++) {
        if (out->graph[e] == NULL)
            continue;
        c[e] = cluster(cx, out->graph[e], caps, out->arena); /* groups and their kernels */
        int64_t lanes = lower_lane_bytes(c[e], caps, o->threads_max);
        lane_bytes = lanes > lane_bytes ? lanes : lane_bytes;
    }
    if (!compile_timed(cx, o, c)) /* what kernels take, if measured   */
        return false;
    lower_pinned(p, model_pinned(out->model), (const Clusters *const *)c, N_ENTRIES);
    p->threads_max = o->threads_max;
    Lowered *l[N_ENTRIES] = {NULL};
    for (int e = 0; e < N_ENTRIES; e++) { /* order, live ranges, offsets      */
        if (c[e] == NULL)
            continue;
        l[e] = lower_plan(cx, p, c[e], model_pinned(out->model), entry_name((EntryKind)e), o->cost,
                          lane_bytes);
        out->plan[e] = lower_plan_of(l[e]);
        out->plan[e]->may_offload = o->offload;
        out->plan[e]->light = o->budget.kind == BUDGET_LIGHT;
        out->plan[e]->remade = out->is_light[e];
        out->plan[e]->flush = o->target.flush;
        out->plan[e]->beside = o->beside[e];
    }
    bool changed = false;
    if (!compile_parts(cx, out, &changed)) /* parts that keep more than they may */
        return false;
    if (changed)
        return compile_again(cx, o, out);
    if (!compile_within(cx, o, out)) /* steps that run again          */
        return false;
    for (int e = 0; e < N_ENTRIES; e++)
        if (l[e] != NULL && o->budget.kind == BUDGET_NONE && out->plan[e]->store_bytes == 0)
            plan_turns(out->plan[e]);
    for (int e = 0; e < N_ENTRIES; e++)
        if (l[e] != NULL)
            lower_calls(l[e]); /* steps -> calls                   */
    share_kernels(p, caps);
    lower_finish(p);
    const char *wrong = program_verify(p, &cx->scratch);
    if (wrong != NULL)
        diag_error(cx, E0990, NO_SPAN, "%s", wrong);
    const Plan *trains = out->plan[out->plan[ENTRY_STEP] != NULL ? ENTRY_STEP : ENTRY_GRAD];
    if (trains != NULL)
        say_not_offloaded(cx, trains);
    document_results(p, out->model);
    return cx->n_errors == 0;
}

bool compile_differences(Ctx *cx, int32_t source, const Options *o, Output *out)
{
    Options only = *o;
    for (int e = 0; e < N_ENTRIES; e++)
        only.entry[e] = e == ENTRY_INIT || e == ENTRY_GRAD;
    if (!compile_graphs(cx, source, &only, false, out))
        return false;
    Model *m = out->model;
    Graph *g = build(cx, m, ENTRY_GRAD);
    if (g != NULL && model_precision(m).type != F32) {
        simplify(cx, g);
        store_less(cx, m, &g); /* numbers are rounded as in `grad` */
    }
    if (g != NULL && model_loops(m, ENTRY_GRAD) > 1)
        g = build_accumulate(cx, m, ENTRY_GRAD, g);
    if (g == NULL)
        return false;
    Graph *stored = out->graph[ENTRY_STEP] = freeze_stops(g, model_storage(m), true);
    Graph *frozen = out->graph[ENTRY_EVAL] = freeze_stops(g, model_storage(m), false);
    graph_free(g);
    simplify(cx, stored);
    simplify(cx, frozen);
    out->fixed = true;
    return compile_program(cx, &only, out);
}

bool compile(Ctx *cx, int32_t source, const Options *o, Output *out)
{
    if (!compile_planned(cx, source, o, out))
        return false;
    return target_emit(cx, out->program, &o->target, &out->object); /* LLVM IR -> object */
}

void output_free_graphs(Output *out)
{
    for (int e = 0; e < N_ENTRIES; e++)
        if (out->graph[e] != NULL)
            graph_free(out->graph[e]);
}

void output_free(Output *out)
{
    output_free_graphs(out);
    arena_free(out->arena);
}
