/* Statements, in their order. */
#include "eval.h"

/* ---- bindings ------------------------------------------------------------ */

/* name[i] = value, by constant index. */
struct Table {
    VEC(const Value *) key;
    VEC(const Value *) value;
};

static Table *table_of(Build *b, const LeftSide *t)
{
    const Binding *found = scope_find(b, t->name.text);
    if (found != NULL && found->value->kind == VALUE_TABLE)
        return found->value->table;
    if (found != NULL && found->value->kind != VALUE_POISON) {
        Diag *d = complain(b, E0209, t->span, "`%s` is %s, and its parts can't be set",
                           t->name.text, value_kind_text(found->value));
        diag_note(b->cx, d, found->at, "`%s` is bound here", t->name.text);
        diag_help(b->cx, d, "`name[i] = x` keeps one value for each i, under a name of its own");
        return NULL;
    }
    if (found != NULL)
        return NULL;
    Value *v = NEW(&b->arena, Value);
    v->kind = VALUE_TABLE;
    v->table = NEW(&b->arena, Table);
    bind(b, t->name, v, BIND_LOCAL);
    return v->table;
}

/* The constant index of a table: one value, or a tuple of several. */
static const Value *table_key(Build *b, const Exprs *index)
{
    const Value *key[MAX_RANK];
    if (index->n > MAX_RANK) {
        complain(b, E0206, index->at[0]->span, "more than %d indices", MAX_RANK);
        return &value_poison;
    }
    for (int i = 0; i < index->n; i++) {
        key[i] = eval(b, index->at[i]);
        if (key[i]->kind != VALUE_POISON && !value_is_const(key[i])) {
            complain(b, E0207, index->at[i]->span,
                     "the index of a table is a constant, and this "
                     "is %s",
                     value_text(&b->cx->perm, key[i]));
            return &value_poison;
        }
    }
    return value_items(&b->arena, VALUE_TUPLE, key, index->n);
}

static int table_place(const Table *t, const Value *key)
{
    for (int i = 0; i < t->key.n; i++)
        if (value_equal(t->key.at[i], key))
            return i;
    return -1;
}

static void table_set(Build *b, const LeftSide *to, const Value *v)
{
    Table *t = table_of(b, to);
    const Value *key = table_key(b, &to->index);
    if (t == NULL || key->kind == VALUE_POISON)
        return;
    int i = table_place(t, key);
    if (i >= 0) {
        t->value.at[i] = v;
        return;
    }
    vec_push(&b->arena, &t->key, key);
    vec_push(&b->arena, &t->value, v);
}

const Value *table_get(Build *b, const Table *t, const Value *key, Span span, const char *name)
{
    if (key->kind == VALUE_POISON)
        return key;
    int i = table_place(t, key);
    if (i >= 0)
        return t->value.at[i];
    const char *text = value_text(&b->cx->perm, key->n == 1 ? key->item[0] : key);
    complain(b, E0205, span, "nothing was kept under `%s[%s]`", name, text);
    return &value_poison;
}

/* A constant keeps its value. */
static bool may_bind(Build *b, Name name)
{
    const Binding *found = scope_find(b, name.text);
    if (found == NULL || found->kind != BIND_CONST || found->at.from == name.span.from)
        return true;
    Diag *d =
        complain(b, E0313, name.span, "`%s` is a constant, and can't be bound again", name.text);
    diag_note(b->cx, d, found->at, "it is bound here");
    return false;
}

static void assign_one(Build *b, const LeftSide *t, const Value *v)
{
    if (t->index.n > 0)
        table_set(b, t, v);
    else if (may_bind(b, t->name))
        bind(b, t->name, v, BIND_LOCAL);
}

static bool right_count(Build *b, int names, const Value *v, Span span)
{
    if (v->kind == VALUE_POISON)
        return false;
    if (value_is_items(v) && v->n == names)
        return true;
    if (value_is_items(v)) {
        complain(b, E0215, span, "%d names for %d values", names, v->n);
    } else {
        Diag *d =
            complain(b, E0215, span, "%d names for one value, %s", names,
                     v->kind == VALUE_TENSOR ? value_text(&b->cx->perm, v) : value_kind_text(v));
        if (v->kind == VALUE_TENSOR)
            diag_help(b->cx, d, "`split(x, %d, axis = 0)` gives parts of a tensor", names);
    }
    return false;
}

void assign(Build *b, const LeftSides *t, const Value *v, Span span)
{
    if (t->n == 1) {
        assign_one(b, &t->at[0], v);
        return;
    }
    bool parts = right_count(b, t->n, v, span);
    for (int i = 0; i < t->n; i++)
        assign_one(b, &t->at[i], parts ? v->item[i] : &value_poison);
}

bool unpack(Build *b, const Names *names, const Value *v, Span span)
{
    if (names->n == 1) {
        bind(b, names->at[0], v, BIND_LOCAL);
        return true;
    }
    bool parts = right_count(b, names->n, v, span);
    for (int i = 0; i < names->n; i++)
        bind(b, names->at[i], parts ? v->item[i] : &value_poison, BIND_LOCAL);
    return parts;
}

/* Nodes that were there before, too; storage is kept anyway. Gives how many nodes it is. */
static int keep_value(Build *b, const Value *v, Memory memory)
{
    int n = 0;
    for (int i = 0; value_is_items(v) && i < v->n; i++)
        n += keep_value(b, v->item[i], memory);
    if (v->kind != VALUE_TENSOR || optab[op_of(v->graph, v->ref)]->kind == OP_SOURCE)
        return n;
    Node *x = &v->graph->node.at[v->ref];
    Origin o = *x->origin;
    o.memory = memory;
    x->origin = origin_find(b->m, o);
    return n + 1;
}

static void exec_bind(Build *b, const Stmt *s)
{
    Span all = span_join(s->bind.target.at[0].span, s->bind.target.at[s->bind.target.n - 1].span);
    Memory outer = b->memory;
    if (s->bind.memory == MEMORY_RECOMPUTE)
        b->memory = s->bind.memory;
    const Value *v = eval(b, s->bind.value);
    b->memory = outer;
    bool keep = s->bind.memory == MEMORY_KEEP || s->bind.memory == MEMORY_OFFLOAD;
    int kept = keep ? keep_value(b, v, s->bind.memory) : 1;
    if (kept == 0 && s->bind.memory == MEMORY_OFFLOAD && v->kind != VALUE_POISON)
        diag_warning(b->cx, E0602, user_span(b, s->span),
                     "`offload` has no effect: nothing is computed here");
    assign(b, &s->bind.target, v, all);
}

static void exec_const(Build *b, const Stmt *s)
{
    const Value *v = eval(b, s->named.value);
    if (v->kind != VALUE_POISON && !value_is_const(v)) {
        complain(b, E0207, s->named.value->span, "`const %s` is %s", s->named.name.text,
                 value_text(&b->cx->perm, v));
        v = &value_poison;
    }
    if (may_bind(b, s->named.name))
        bind(b, s->named.name, v, BIND_CONST);
}

/* ---- control ------------------------------------------------------------- */

static bool exec_range(Build *b, const Stmt *s)
{
    int64_t from, to;
    const Value *first = eval(b, s->loop.over), *last = eval(b, s->loop.to);
    bool known = want_int(b, first, s->loop.over->span, "the start of a range", &from);
    known = want_int(b, last, s->loop.to->span, "the end of a range", &to) && known;
    if (!known) {
        for (int i = 0; i < s->loop.item.n; i++)
            bind(b, s->loop.item.at[i], &value_poison, BIND_LOCAL);
        return exec(b, &s->loop.body); /* once, for the mistakes in it */
    }
    for (int64_t i = from; i < to && !b->stop; i++) {
        b->steps++;
        if (too_large(b, s->span))
            return false;
        unpack(b, &s->loop.item, value_int(&b->arena, i), s->loop.over->span);
        if (exec(b, &s->loop.body))
            return true;
    }
    return false;
}

static bool exec_for(Build *b, const Stmt *s)
{
    if (s->loop.to != NULL)
        return exec_range(b, s);
    const Value *list = eval(b, s->loop.over);
    if (!value_is_items(list)) {
        if (list->kind != VALUE_POISON) {
            Diag *d = complain(b, E0207, s->loop.over->span,
                               "`for` goes over a range or a list, and this is %s",
                               value_kind_text(list));
            diag_help(b->cx, d, "`for i in 0..n` counts; over an axis of a tensor goes `scan`");
        }
        for (int i = 0; i < s->loop.item.n; i++)
            bind(b, s->loop.item.at[i], &value_poison, BIND_LOCAL);
        return exec(b, &s->loop.body);
    }
    for (int i = 0; i < list->n && !b->stop; i++) {
        b->steps++;
        unpack(b, &s->loop.item, list->item[i], s->loop.over->span);
        if (exec(b, &s->loop.body))
            return true;
    }
    return false;
}

static bool exec_if(Build *b, const Stmt *s)
{
    for (int i = 0; i < s->arm.n; i++) {
        const Arm *a = &s->arm.at[i];
        bool yes = true;
        if (a->condition != NULL) {
            const Value *v = eval(b, a->condition);
            if (!want_bool(b, v, a->condition->span, "the condition of `if`", &yes))
                return exec(b, &a->body); /* for its names and mistakes */
        }
        if (yes)
            return exec(b, &a->body);
    }
    return false;
}

static void exec_return(Build *b, const Stmt *s)
{
    if (s->values.n == 1) {
        b->frame->result = eval(b, s->values.at[0]);
        return;
    }
    ArenaMark mark = arena_mark(&b->cx->scratch);
    const Value **v = NEW_ARRAY(&b->cx->scratch, const Value *, s->values.n);
    bool poisoned = false;
    for (int i = 0; i < s->values.n; i++) {
        v[i] = eval(b, s->values.at[i]);
        poisoned = poisoned || v[i]->kind == VALUE_POISON;
    }
    b->frame->result =
        poisoned ? &value_poison : value_items(&b->arena, VALUE_TUPLE, v, s->values.n);
    arena_reset(&b->cx->scratch, mark);
}

static void exec_emit(Build *b, const Stmt *s)
{
    for (int i = 0; i < s->values.n; i++) {
        vec_push(&b->arena, &b->level->emitted, eval(b, s->values.at[i]));
        vec_push(&b->arena, &b->level->emitted_by, s->values.at[i]);
    }
}

/* ---- state --------------------------------------------------------------- */

Update *pending_update(Build *b, int32_t slot)
{
    for (int i = 0; i < b->update.n; i++)
        if (b->update.at[i].slot == slot)
            return &b->update.at[i];
    return NULL;
}

static bool updates_state(Build *b, const Stmt *s, const Binding *found)
{
    const char *name = s->named.name.text;
    if (found == NULL) {
        complain(b, E0120, s->named.name.span, "there is no state `%s` here", name);
    } else if (found->kind != BIND_STATE) {
        Diag *d = complain(b, E0307, s->named.name.span, "`%s` is no state", name);
        diag_note(b->cx, d, found->at, "`%s` is bound here", name);
        diag_help(b->cx, d, "`<-` sets state for the next step; `=` binds a name now");
    } else if (b->level != NULL) {
        Diag *d = complain(b, E0311, s->span, "`%s` is set inside of a `scan`", name);
        diag_help(b->cx, d, "carry the value through the scan, and set the state behind it");
    } else {
        return true;
    }
    return false;
}

static void exec_update(Build *b, const Stmt *s)
{
    const Value *v = eval(b, s->named.value);
    const Binding *found = scope_find(b, s->named.name.text);
    if (found != NULL && found->value->kind == VALUE_POISON)
        return;
    if (!updates_state(b, s, found))
        return;
    const Slot *slot = &b->m->pinned.slot.at[found->slot];
    Type want = slot->type;
    Ref r = want_tensor(b, v, s->named.value->span, want.dtype);
    if (r == NONE)
        return;
    if (rank(b->g, r) == 0 && v->kind != VALUE_TENSOR)
        r = g_broadcast(b->g, r, want.rank, want.dim);
    if (!type_same(type_of(b->g, r), &want)) {
        Diag *d = complain(b, E0306, s->named.value->span, "`%s` is %s, and this is %s",
                           s->named.name.text, type_text(&b->cx->perm, &want),
                           type_text(&b->cx->perm, type_of(b->g, r)));
        diag_note(b->cx, d, found->at, "`%s` is declared here", s->named.name.text);
        return;
    }
    Update *before = pending_update(b, found->slot);
    if (before != NULL && b->frame->instance->shared) { /* the second use goes on from the first */
        before->ref = r;
        return;
    }
    if (before != NULL) {
        Diag *d = complain(b, E0307, s->span, "`%s` is set twice in one step", slot->name);
        diag_note(b->cx, d, before->at, "the first time is here");
        return;
    }
    vec_push(&b->arena, &b->update, ((Update){found->slot, r, s->span}));
}

/* ---- all ----------------------------------------------------------------- */

/* What asks the planner for something that it can't do yet. */
/* The same part as in an earlier build: the n-th run of this statement in this call. */
static BudgetPart *part_of(Build *b, Span at, int64_t bytes)
{
    const Origin *from = b->frame == NULL ? NULL : b->frame->origin;
    Model *m = b->m;
    for (int i = 0; i < m->part.n; i++) {
        BudgetPart *p = m->part.at[i];
        if (p->build == m->builds || p->from != from || p->at.file != at.file ||
            p->at.from != at.from || p->outer != b->part || p->bytes != bytes)
            continue;
        p->build = m->builds;
        return p;
    }
    BudgetPart *p = NEW(&b->cx->perm, BudgetPart);
    *p = (BudgetPart){.at = at, .bytes = bytes, .outer = b->part, .from = from, .id = m->part.n};
    p->build = m->builds;
    p->least = INT64_MAX;
    vec_push(m->arena, &m->part, p);
    return p;
}

/* What stands in the library is none of a user's parts: nothing there has any. */
static bool exec_budget(Build *b, const Stmt *s)
{
    int64_t bytes = 0;
    BudgetPart *outer = b->part;
    const Value *v = eval(b, s->budget.bytes);
    if (want_int(b, v, s->budget.bytes->span, "a budget in bytes", &bytes)) {
        if (bytes < 0)
            complain(b, E0208, s->budget.bytes->span, "a budget is not negative, and this is %lld",
                     (long long)bytes);
        else
            b->part = part_of(b, span_join(s->span, s->budget.bytes->span), bytes);
    }
    bool returns = exec(b, &s->budget.body);
    b->part = outer;
    return returns;
}

static bool exec_stmt(Build *b, const Stmt *s)
{
    switch (s->kind) {
    case STMT_CONST:
        exec_const(b, s);
        break;
    case STMT_BIND:
        exec_bind(b, s);
        break;
    case STMT_UPDATE:
        exec_update(b, s);
        break;
    case STMT_INPUT:
        declare_input(b, s);
        break;
    case STMT_PARAM:
    case STMT_STATE:
        declare_slot(b, s);
        break;
    case STMT_FOR:
        return exec_for(b, s);
    case STMT_IF:
        return exec_if(b, s);
    case STMT_BUDGET:
        return exec_budget(b, s);
    case STMT_LOSS:
        exec_loss(b, s);
        break;
    case STMT_OUTPUT:
        exec_output(b, s);
        break;
    case STMT_METRIC:
        exec_metric(b, s);
        break;
    case STMT_RETURN:
        exec_return(b, s);
        return true;
    case STMT_EMIT:
        exec_emit(b, s);
        break;
    }
    return false;
}

bool exec(Build *b, const Body *body)
{
    for (int i = 0; i < body->stmt.n && !b->stop; i++)
        if (exec_stmt(b, body->stmt.at[i]))
            return true;
    return false;
}
