/* scan: a loop that stays a loop. Its body is a graph of its own; what the body reads of
 * the graphs around it becomes an argument. */
#include "eval.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_CARRIES = 64, MAX_SEQUENCES = 64 };

/* One scan under construction. */
typedef struct ScanForm {
    const Expr *e;
    int axis;
    bool down;
    int64_t count;
    int n_carries, n_sequences; /* sequences: without the index */
    const Arg *carry[MAX_CARRIES];
    Ref given[MAX_CARRIES + MAX_SEQUENCES + 1]; /* carries, sequences, index: around */
    Level level;
} ScanForm;

/* ---- what goes in -------------------------------------------------------- */

static bool is_option(const char *name)
{
    return strcmp(name, "axis") == 0 || strcmp(name, "reverse") == 0;
}

void help_scan_option(Build *b, Diag *d, const char *name)
{
    if (is_option(name))
        diag_help(b->cx, d, "`%s` is an option of `scan`: what is carried has another name", name);
}

/* An option has been reported, for a value that it does not take: it may be meant for a carry. */
static bool refused(Build *b, const Arg *option)
{
    Diag *last = b->cx->diag.n > 0 ? b->cx->diag.at[b->cx->diag.n - 1] : NULL;
    if (last != NULL && last->span.from == option->span.from)
        help_scan_option(b, last, option->name.text);
    return false;
}

static const Arg *option(const Expr *e, const char *name)
{
    for (int i = 0; i < e->scan.init.n; i++)
        if (strcmp(e->scan.init.at[i].name.text, name) == 0)
            return &e->scan.init.at[i];
    return NULL;
}

static bool read_reverse(Build *b, ScanForm *s)
{
    const Arg *a = option(s->e, "reverse");
    return a == NULL || want_bool(b, eval(b, a->value), a->span, "`reverse`", &s->down) ||
           refused(b, a);
}

/* from .. to: the sequence is the numbers. */
static bool range_sequence(Build *b, ScanForm *s)
{
    const Expr *e = s->e;
    int64_t from, to;
    const Value *first = eval(b, e->scan.over), *last = eval(b, e->scan.to);
    if (!want_int(b, first, e->scan.over->span, "the start of a range", &from) ||
        !want_int(b, last, e->scan.to->span, "the end of a range", &to))
        return false;
    if (e->scan.item.n != 1) {
        complain(b, E0215, e->scan.over->span, "%d names for one number", e->scan.item.n);
        return false;
    }
    const Arg *axis = option(e, "axis");
    if (axis != NULL) {
        complain(b, E0222, axis->span, "a range has no axes");
        return refused(b, axis);
    }
    if (to > from && (from < INT32_MIN || to > (int64_t)INT32_MAX + 1)) {
        bool low = from < INT32_MIN;
        complain(b, E0204, low ? e->scan.over->span : e->scan.to->span,
                 "the numbers of a range are i32, and %" PRId64 " is beyond", low ? from : to - 1);
        return false;
    }
    s->count = to > from ? to - from : 0;
    if (s->count > (int64_t)INT32_MAX + 1) {
        complain(b, E0911, e->scan.to->span, "a range of %" PRId64 " numbers, more than 2^31",
                 s->count);
        return false;
    }
    at(b, e->scan.over->span);
    Type t = type_make(I32, 1, &s->count);
    Ref numbers = g_iota(b->g, t, 0);
    if (numbers != NONE && s->count > 0 && from != 0) {
        Ref base = g_full_int(b->g, t, from);
        numbers = g_add(b->g, numbers, base);
    }
    s->given[s->n_carries] = numbers;
    s->n_sequences = 1;
    return numbers != NONE;
}

/* The sequence with its axis in front. */
static Ref front(Graph *g, Ref x, int axis)
{
    int perm[MAX_RANK];
    perm[0] = axis;
    for (int i = 1; i < rank(g, x); i++)
        perm[i] = i - (i <= axis);
    return g_transpose(g, x, perm);
}

static bool one_sequence(Build *b, ScanForm *s, const Value *v, int i)
{
    Span where = s->e->scan.over->span;
    Ref x = want_tensor(b, v, where, F32);
    if (x == NONE)
        return false;
    const Arg *a = option(s->e, "axis");
    int axis = 0;
    const Value *which = a == NULL ? value_int(&b->arena, 0) : eval(b, a->value);
    if (!want_axis(b, which, a == NULL ? where : a->span, rank(b->g, x), &axis))
        return a != NULL && refused(b, a);
    int64_t n = dim(b->g, x, axis);
    if (i > 0 && n != s->count) {
        complain(b, E0309, where,
                 "the first sequence has %lld steps along axis %d, and this one, "
                 "%s, has %lld",
                 (long long)s->count, s->axis, type_text(&b->cx->perm, type_of(b->g, x)),
                 (long long)n);
        return false;
    }
    s->axis = i == 0 ? axis : s->axis;
    s->count = n;
    at(b, where);
    s->given[s->n_carries + i] = front(b->g, x, axis);
    return true;
}

static bool read_sequences(Build *b, ScanForm *s)
{
    const Expr *e = s->e;
    if (e->scan.to != NULL)
        return range_sequence(b, s);
    const Value *over = eval(b, e->scan.over);
    if (over->kind == VALUE_POISON)
        return false;
    int n = over->kind == VALUE_TUPLE ? over->n : 1;
    if (n != e->scan.item.n || n > MAX_SEQUENCES) {
        complain(b, E0215, e->scan.over->span, "%d name%s for %d sequence%s", e->scan.item.n,
                 e->scan.item.n == 1 ? "" : "s", n, n == 1 ? "" : "s");
        return false;
    }
    for (int i = 0; i < n; i++)
        if (!one_sequence(b, s, over->kind == VALUE_TUPLE ? over->item[i] : over, i))
            return false;
    s->n_sequences = n;
    return true;
}

static bool count_carries(Build *b, ScanForm *s)
{
    for (int i = 0; i < s->e->scan.init.n; i++) {
        const Arg *a = &s->e->scan.init.at[i];
        if (is_option(a->name.text))
            continue;
        if (s->n_carries == MAX_CARRIES) {
            complain(b, E0309, a->span, "more than %d carried values", MAX_CARRIES);
            return false;
        }
        s->carry[s->n_carries++] = a;
    }
    return true;
}

/* The type of the first of given[from .. to) that are floats, or else `t`. */
static DType float_type(const Graph *around, const ScanForm *s, int from, int to, DType t)
{
    for (int i = from; i < to; i++) {
        DType is = type_of(around, s->given[i])->dtype;
        if (dtype_is_float(is))
            return is;
    }
    return t;
}

static bool is_bool(const Value *v)
{
    if (v->kind == VALUE_FILL)
        return is_bool(v->fill.number);
    return v->kind == VALUE_BOOL || (value_is_items(v) && v->n > 0 && is_bool(v->item[0]));
}

/* A constant is a bool, or has the type of the sequences, if they are floats, or else `t`. */
static DType usual_type(const Graph *around, const ScanForm *s, const Value *v, DType t)
{
    if (is_bool(v))
        return BOOL;
    return float_type(around, s, s->n_carries, s->n_carries + s->n_sequences, t);
}

static bool read_carries(Build *b, ScanForm *s)
{
    for (int i = 0; i < s->n_carries; i++) {
        const Value *v = eval(b, s->carry[i]->value);
        DType t = usual_type(b->g, s, v, F32);
        s->given[i] = want_tensor(b, v, s->carry[i]->value->span, t);
        if (s->given[i] == NONE)
            return false;
    }
    return true;
}

/* ---- the body ------------------------------------------------------------ */

static Type slice_type(const Graph *g, Ref sequence)
{
    const Type *t = type_of(g, sequence);
    return type_make(t->dtype, t->rank - 1, t->dim + 1);
}

static void bind_arguments(Build *b, ScanForm *s)
{
    Level *l = &s->level;
    Graph *around = l->around;
    for (int i = 0; i < s->n_carries; i++) {
        at(b, s->carry[i]->span);
        Ref r = g_body_arg(l->body, i, *type_of(around, s->given[i]));
        bind(b, s->carry[i]->name, value_tensor(&b->arena, l->body, r), BIND_LOCAL);
    }
    for (int i = 0; i < s->n_sequences; i++) {
        at(b, s->e->scan.item.at[i].span);
        int n = s->n_carries + i;
        Ref r = g_body_arg(l->body, n, slice_type(around, s->given[n]));
        bind(b, s->e->scan.item.at[i], value_tensor(&b->arena, l->body, r), BIND_LOCAL);
    }
    at(b, s->e->span);
    l->index = g_body_arg(l->body, l->fixed - 1, type_scalar(I32));
}

static bool carry_result(Build *b, ScanForm *s, int i)
{
    const Arg *a = s->carry[i];
    const Binding *now = scope_find(b, a->name.text);
    Type want = *type_of(s->level.around, s->given[i]);
    Ref r = want_tensor(b, now->value, now->at, want.dtype);
    if (r == NONE)
        return false;
    if (rank(b->g, r) == 0 && now->value->kind != VALUE_TENSOR)
        r = g_broadcast(b->g, r, want.rank, want.dim);
    if (type_same(type_of(b->g, r), &want)) {
        graph_root(b->g, ROOT_RESULT, a->name.text, r, -1, -1);
        return true;
    }
    Diag *d = complain(b, E0308, now->at, "`%s` begins as %s and comes back as %s", a->name.text,
                       type_text(&b->cx->perm, &want), type_text(&b->cx->perm, type_of(b->g, r)));
    diag_note(b->cx, d, a->span, "it begins here");
    return false;
}

/* The type of a constant that is emitted: the carry's, if it is emitted by the name of one; or else
 * that of the floats around it. */
static DType emitted_type(const ScanForm *s, const Value *v, const Expr *e)
{
    const Graph *around = s->level.around;
    for (int i = 0; e->kind == EXPR_NAME && i < s->n_carries; i++)
        if (e->name.module.text == NULL && e->name.name.text == s->carry[i]->name.text)
            return type_of(around, s->given[i])->dtype;
    return usual_type(around, s, v, float_type(around, s, 0, s->n_carries, F32));
}

static bool emitted_result(Build *b, ScanForm *s, const Value *v, const Expr *e)
{
    Ref r = want_tensor(b, v, e->span, emitted_type(s, v, e));
    if (r == NONE)
        return false;
    if (rank(b->g, r) < s->axis) {
        complain(b, E0222, e->span, "%s can't be stacked along axis %d",
                 type_text(&b->cx->perm, type_of(b->g, r)), s->axis);
        return false;
    }
    graph_root(b->g, ROOT_RESULT, "emit", r, -1, -1);
    return true;
}

static bool body_results(Build *b, ScanForm *s)
{
    bool fine = true;
    for (int i = 0; i < s->n_carries; i++)
        fine = carry_result(b, s, i) && fine;
    for (int i = 0; i < s->level.emitted.n; i++)
        if (!emitted_result(b, s, s->level.emitted.at[i], s->level.emitted_by.at[i]))
            return false;
    return fine;
}

static bool run_body(Build *b, ScanForm *s)
{
    Scope scope = {.outer = b->frame->scope};
    Level *l = &s->level;
    l->outer = b->level;
    l->around = b->g;
    l->body = g_body(b->g);
    l->carries = s->n_carries;
    l->given = s->given;
    l->fixed = s->n_carries + s->n_sequences + 1;
    b->frame->scope = &scope;
    b->level = l;
    b->g = l->body;
    bind_arguments(b, s);
    exec(b, &s->e->scan.body);
    bool fine = !b->stop && body_results(b, s);
    b->g = l->around;
    b->level = l->outer;
    b->frame->scope = scope.outer;
    return fine;
}

/* ---- what comes out ------------------------------------------------------ */

/* Axis 0 of a stacked value goes to where the sequences have it. */
static Ref back(Graph *g, Ref x, int axis)
{
    int perm[MAX_RANK];
    for (int i = 0; i < rank(g, x); i++)
        perm[i] = i == axis ? 0 : i + (i < axis);
    return g_transpose(g, x, perm);
}

static const Value *results(Build *b, ScanForm *s, Ref scan)
{
    int n_emitted = s->level.emitted.n, n = 0;
    const Value *v[2 * MAX_CARRIES + MAX_RANK];
    for (int i = 0; i < n_emitted && n < MAX_CARRIES; i++) {
        Ref stacked = g_pick(b->g, scan, s->n_carries + i);
        v[n++] = made(b, stacked == NONE ? NONE : back(b->g, stacked, s->axis));
    }
    for (int i = 0; i < s->n_carries; i++)
        v[n++] = made(b, g_pick(b->g, scan, i));
    if (n == 1)
        return v[0];
    return value_items(&b->arena, VALUE_TUPLE, v, n);
}

/* Results of a loop are computed again by all of it. */
static bool words_agree(Build *b, const ScanForm *s)
{
    const Node *kept = b->memory == MEMORY_RECOMPUTE ? g_kept_in(s->level.body) : NULL;
    if (kept == NULL)
        return true;
    const char *word = kept->origin->memory == MEMORY_OFFLOAD ? "offload" : "keep";
    Diag *d = complain(b, E0604, s->e->span,
                       "`recompute` is to run this scan again, and `%s` in its body not", word);
    diag_note(b->cx, d, kept->origin->span, "`%s` is of this", word);
    diag_help(b->cx, d,
              "`recompute` before a binding in the body computes that again, step by step");
    return false;
}

static const Value *finish(Build *b, ScanForm *s)
{
    Level *l = &s->level;
    if (!words_agree(b, s))
        return &value_poison;
    int n = l->fixed + l->captured.n;
    Ref *args = NEW_ARRAY(&b->arena, Ref, n);
    at(b, s->e->span);
    s->given[l->fixed - 1] = g_iota(b->g, type_make(I32, 1, &s->count), 0);
    for (int i = 0; i < n; i++)
        args[i] = i < l->fixed ? s->given[i] : l->captured.at[i - l->fixed];
    Ref scan = g_scan(b->g, l->body, args, n,
                      (Scan){.carries = s->n_carries,
                             .sequences = s->n_sequences + 1,
                             .count = s->count,
                             .down = s->down});
    return scan == NONE ? made(b, scan) : results(b, s, scan);
}

const Value *eval_scan(Build *b, const Expr *e)
{
    ScanForm s = {.e = e};
    if (!count_carries(b, &s) || !read_reverse(b, &s) || !read_sequences(b, &s) ||
        !read_carries(b, &s) || !run_body(b, &s))
        return &value_poison;
    return finish(b, &s);
}
