/* May a batch be taken as micro-batches, one after the other? Two graphs of an entry are built,
 * of the whole batch and of one micro-batch, and read side by side, node by node: they are the
 * same ops in the same order, sizes apart. Of each value it is found how the one of the whole
 * batch comes of those of the micro-batches (Part). What is not understood is MIXED, and no
 * loss, metric or output may depend on it. split_flow.c: the rules of the ops.
 *
 * The gradient needs no rules: where the loss is the mean of the micro-batches' losses, its
 * gradient is the mean of theirs. */
#include "split.h"

#include <string.h>

/* ---- two graphs side by side ---------------------------------------------------- */

int row_axis(const Pair *p, Ref r)
{
    const Type *w = type_of(p->whole, r), *m = type_of(p->micro, r);
    int axis = NO_ROWS;
    for (int i = 0; i < w->rank; i++) {
        if (w->dim[i] == m->dim[i])
            continue;
        if (axis >= 0 || w->dim[i] != m->dim[i] * p->split)
            return OTHER_ROWS;
        axis = i;
    }
    return axis;
}

bool same_attr(const Pair *p, Ref r, int i)
{
    const Attr *x = attr(p->whole, r, i), *y = attr(p->micro, r, i);
    if (x->kind != y->kind || x->n != y->n)
        return false;
    switch (x->kind) {
    case ATTR_FLOAT:
        return memcmp(&x->f, &y->f, sizeof x->f) == 0;
    case ATTR_INTS:
        return memcmp(x->ints, y->ints, sizeof *x->ints * (size_t)x->n) == 0;
    case ATTR_DATA:
        return memcmp(x->data, y->data, (size_t)x->n) == 0;
    case ATTR_NAME:
        return x->name == y->name;
    case ATTR_INT:
    case ATTR_BOOL:
    case ATTR_DTYPE:
        return x->i == y->i;
    default:
        return false;
    }
}

static bool same_node(const Pair *p, Ref r)
{
    const Node *w = node(p->whole, r), *m = node(p->micro, r);
    bool same = w->op == m->op && w->n_args == m->n_args && w->type.dtype == m->type.dtype &&
                w->type.rank == m->type.rank;
    for (int i = 0; same && i < w->n_args; i++)
        same = arg(p->whole, r, i) == arg(p->micro, r, i);
    return same;
}

bool same_graph(const Pair *p)
{
    bool same = p->whole->node.n == p->micro->node.n && p->whole->root.n == p->micro->root.n;
    for (Ref r = 1; same && r < (Ref)p->whole->node.n; r++)
        same = same_node(p, r);
    for (int i = 0; same && i < p->whole->root.n; i++)
        same = p->whole->root.at[i].ref == p->micro->root.at[i].ref;
    return same;
}

Part mixed(const Pair *p, Ref r, const char *why)
{
    return (Part){.kind = PART_MIXED, .why = why, .at = node(p->whole, r)->origin};
}

/* ---- what an entry gives --------------------------------------------------------- */

/* "mixes rows, in `bn1` (net.model:7)" */
static const char *why_text(const Pair *p, const char *what, const Part *part)
{
    Ctx *cx = p->build->cx;
    const Origin *o = part->at;
    const char *path = o == NULL ? "" : origin_path(&cx->perm, o);
    const char *in = path[0] == 0 ? "" : arena_printf(&cx->perm, ", in `%s`", path);
    while (o != NULL && (o->span.file < 0 || cx->source.at[o->span.file]->library))
        o = o->parent;
    if (o == NULL)
        return arena_printf(&cx->perm, "%s %s%s", what, part->why, in);
    int line, column;
    source_position(cx->source.at[o->span.file], o->span.from, &line, &column);
    return arena_printf(&cx->perm, "%s %s%s (%s:%d)", what, part->why, in,
                        cx->source.at[o->span.file]->path, line);
}

bool is_mean(const Pair *p, Ref r)
{
    const Part *x = &p->part[r];
    if (row_axis(p, r) != NO_ROWS)
        return false;
    return x->zero || (x->kind == PART_SUM && x->power == -1) ||
           (x->kind == PART_EACH && x->power == 0);
}

/* Why what the root gives is not that of the whole batch; NULL: it is. */
static const char *wrong_root(const Pair *p, const Root *r, EntryKind e)
{
    const Part *x = &p->part[r->ref];
    Ctx *cx = p->build->cx;
    const char *name = arena_printf(&cx->perm, "`%s`", r->name != NULL ? r->name : "loss");
    bool each = x->kind == PART_EACH && x->power == 0;
    if (r->kind == ROOT_OTHER)
        return NULL; /* of across(): looked at where it is used */
    if (x->kind == PART_MIXED)
        return why_text(p, r->kind == ROOT_LOSS ? "the loss" : name, x);
    if (r->kind == ROOT_ASSIGN && e == ENTRY_INIT)
        return each && row_axis(p, r->ref) == NO_ROWS
                   ? NULL
                   : arena_printf(&cx->perm, "the first value of %s depends on `batch`", name);
    if (r->kind == ROOT_ASSIGN)
        return arena_printf(&cx->perm, "the state %s is set once for all rows of a batch", name);
    if (r->kind == ROOT_OUTPUT && (!each || row_axis(p, r->ref) != 0))
        return arena_printf(&cx->perm, "the output %s has not a part for each row", name);
    if (r->kind != ROOT_OUTPUT && !is_mean(p, r->ref))
        return arena_printf(&cx->perm, "the %s %s is no mean over the rows of a batch",
                            root_kind_name(r->kind), name);
    return NULL;
}

static const char *last_text(const Ctx *cx)
{
    return cx->diag.n > 0 ? cx->diag.at[cx->diag.n - 1]->text : "it is refused";
}

static const char *compare(Ctx *cx, Model *whole, Model *micro, EntryKind e)
{
    Graph *w = build(cx, whole, e), *m = w == NULL ? NULL : build(cx, micro, e);
    const char *why = NULL;
    if (m == NULL) {
        why = arena_printf(&cx->perm, "by %lld rows: %s", (long long)micro->batch, last_text(cx));
    } else {
        Build b = build_begin(whole, e, w);
        Pair p = {.build = &b, .whole = w, .micro = m, .split = micro->split};
        p.counts_rows = whole->pinned.rows >= 0;
        if (p.counts_rows != (micro->pinned.rows >= 0) || !same_graph(&p))
            why = arena_printf(&cx->perm, "by %lld rows the model is another one",
                               (long long)micro->batch);
        else
            follow_parts(&p);
        for (int i = 0; i < w->root.n && why == NULL; i++)
            why = wrong_root(&p, &w->root.at[i], e);
        build_end(&b);
        graph_free(m);
    }
    if (w != NULL)
        graph_free(w);
    return why;
}

/* ---- what the caller sees --------------------------------------------------------- */

static bool same_input(const GraphInput *w, const GraphInput *m, int64_t split)
{
    Type t = m->type;
    if (w->batch_axis == 0)
        t.dim[0] *= split;
    return strcmp(w->name, m->name) == 0 && type_same(&w->type, &t) && w->ranged == m->ranged &&
           w->lo == m->lo && w->hi == m->hi && w->batch_axis == m->batch_axis;
}

/* The same storage and the same inputs. */
static const char *same_pinned(Ctx *cx, const Pinned *w, const Pinned *m, int64_t split)
{
    bool same = w->slot.n == m->slot.n && w->input.n == m->input.n;
    for (int i = 0; same && i < w->slot.n; i++)
        if (strcmp(w->slot.at[i].name, m->slot.at[i].name) != 0 ||
            !type_same(&w->slot.at[i].type, &m->slot.at[i].type))
            return arena_printf(&cx->perm, "the size of `%s` depends on `batch`",
                                w->slot.at[i].name);
    for (int i = 0; same && i < w->input.n; i++)
        if (!same_input(&w->input.at[i], &m->input.at[i], split))
            return arena_printf(&cx->perm, "the input `%s` has other sizes that depend on `batch`",
                                w->input.at[i].name);
    return same ? NULL : "it has other inputs or parameters where it has fewer rows";
}

static const char *refusal(Ctx *cx, const Model *of, const Define *d, int n, int64_t split,
                           const bool entry[4], Arena *arena)
{
    static const EntryKind order[] = {ENTRY_EVAL, ENTRY_GRAD, ENTRY_STEP, ENTRY_INIT};
    const char *name = of->item->name.text, *why = NULL;
    Model *whole = model_open_named(cx, of->own->ast, name, d, n, 1, arena);
    Model *micro =
        whole == NULL ? NULL : model_open_named(cx, of->own->ast, name, d, n, split, arena);
    if (micro == NULL)
        return arena_printf(&cx->perm, "by less rows: %s", last_text(cx));
    whole->apart = micro->apart = true;
    for (int i = 0; i < 4 && why == NULL; i++)
        if (entry[order[i]])
            why = compare(cx, whole, micro, order[i]);
    return why != NULL ? why : same_pinned(cx, &whole->pinned, &micro->pinned, split);
}

const char *model_splits(Ctx *cx, const Model *m, const Define *d, int n, int64_t split,
                         const bool entry[4])
{
    Arena arena = {0};
    int n_diags = cx->diag.n, errors = cx->n_errors, warnings = cx->n_warnings;
    const char *why = refusal(cx, m, d, n, split, entry, &arena);
    cx->diag.n = n_diags;
    cx->n_errors = errors;
    cx->n_warnings = warnings;
    arena_free(&arena);
    return why;
}
