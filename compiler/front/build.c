/* One entry of a model, from start to end. */
#include "eval.h"

static const char *const entry_names[] = {"init", "eval", "grad", "step"};

static void enter(Build *b, Frame *frame, Scope *scope, Instance *top, const ModelArg *arg, int n)
{
    *scope = (Scope){0};
    *top = (Instance){.prefix = "", .item = b->m->item};
    *frame = (Frame){
        .module = b->m->own, .item = b->m->item, .scope = scope, .instance = top, .call = NO_SPAN};
    b->frame = frame;
    for (int i = 0; i < n; i++)
        bind(b, (Name){arg[i].name, arg[i].at}, arg[i].value, BIND_LOCAL);
}

void enter_model(Build *b, Frame *frame, Scope *scope, Instance *top)
{
    enter(b, frame, scope, top, b->m->arg.at, b->m->arg.n);
}

void enter_train(Build *b, Frame *frame, Scope *scope, Instance *top)
{
    enter(b, frame, scope, top, b->m->whole_arg.at, b->m->whole_arg.n);
}

/* Slots that every trained model has, and the number of valid rows. */
static void pin_counters(Model *m)
{
    Type i64 = type_scalar(I64);
    Pinned *p = &m->pinned;
    if (m->built)
        return;
    if (m->train.item != NULL) {
        p->seed = model_slot(m, "gradc.seed", SLOT_STATE, &i64, NULL);
        p->step_counter = model_slot(m, "gradc.step", SLOT_STATE, &i64, NULL);
        p->skipped_counter = model_slot(m, "gradc.skipped", SLOT_STATE, &i64, NULL);
    }
    if (m->batch > 0) {
        p->rows = model_slot(m, "gradc.rows", SLOT_STATE, &i64, NULL);
        m->init.at[p->rows].i = model_batch(m);
    }
}

static void commit_state(Build *b)
{
    for (int i = 0; i < b->update.n && b->entry == ENTRY_STEP; i++) {
        const Update *u = &b->update.at[i];
        graph_root(b->g, ROOT_ASSIGN, b->m->pinned.slot.at[u->slot].name, u->ref, u->slot, -1);
        b->g->root.at[b->g->root.n - 1].guarded = true;
    }
}

static void missing_loss(Build *b)
{
    bool gives = false;
    for (int i = 0; i < b->g->root.n; i++)
        gives = gives || b->g->root.at[i].kind == ROOT_OUTPUT;
    bool wanted = b->training || b->m->train.item != NULL || !gives;
    if (!wanted || b->loss_at.file >= 0)
        return;
    Diag *d = complain(b, E0320, b->m->item->name.span, "`%s` has no loss", b->m->item->name.text);
    if (b->m->train.item != NULL)
        diag_note(b->cx, d, b->m->train.item->name.span, "it is to be trained");
    diag_help(b->cx, d, "say what is to become small: `loss mean(...)`");
}

static void build_model(Build *b)
{
    exec(b, &b->m->item->def.body);
    if (b->stop)
        return;
    b->frame->scope->outer = NULL;
    if (b->loss != NONE) {
        graph_root(b->g, ROOT_LOSS, "loss", b->loss, -1, -1);
        Root loss = b->g->root.at[b->g->root.n - 1]; /* first of all */
        for (int i = b->g->root.n - 1; i > 0; i--)
            b->g->root.at[i] = b->g->root.at[i - 1];
        b->g->root.at[0] = loss;
    }
    missing_loss(b);
    commit_state(b);
}

static void keep_across(Build *b)
{
    for (int i = 0; i < b->across.n; i++)
        graph_root(b->g, ROOT_OTHER, ACROSS_ROOT, b->across.at[i], -1, -1);
}

/* One try; with `rows`, partial batches are told apart. */
static Graph *build_once(Model *m, EntryKind e, bool rows)
{
    Graph *g = graph_new(m->cx, entry_names[e]);
    Build b = build_begin(m, e, g);
    Frame frame;
    Scope scope;
    Instance top;
    b.loss_at = NO_SPAN;
    enter_model(&b, &frame, &scope, &top);
    b.rows = rows ? rows_new(&b) : NULL;
    if (e == ENTRY_INIT)
        build_init(&b);
    else
        build_model(&b);
    if (rows && !b.stop && m->cx->n_errors == b.n_errors)
        rows_check(&b);
    keep_across(&b);
    bool fine = m->cx->n_errors == b.n_errors && !b.stop;
    build_end(&b);
    if (fine)
        return g;
    graph_free(g);
    return NULL;
}

Graph *build(Ctx *cx, Model *m, EntryKind e)
{
    pin_counters(m);
    if (e == ENTRY_INIT && !m->built) { /* to learn what there is */
        Graph *probe = build(cx, m, ENTRY_EVAL);
        if (probe == NULL)
            return NULL;
        graph_free(probe);
    }
    bool rows = e != ENTRY_INIT && m->pinned.rows >= 0;
    Graph *g = build_once(m, e, rows);
    if (g != NULL && rows && m->rows_lost) {
        graph_free(g);
        m->pinned.rows = -1;
        g = build_once(m, e, false);
    }
    if (g != NULL && !m->built && !train_unmatched(m)) {
        graph_free(g);
        return NULL;
    }
    if (g == NULL && e == ENTRY_EVAL) { /* mistakes that only training meets */
        Graph *other = build_once(m, ENTRY_GRAD, false);
        if (other != NULL)
            graph_free(other);
    }
    m->built = m->built || g != NULL;
    return g;
}
