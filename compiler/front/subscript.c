/* x[i, a:b:c, ..., index]: as NumPy's basic indexing; an index tensor reads rows of a
 * table (gather). Lists, tuples and tables of values are indexed by constants. */
#include "eval.h"

#include <string.h>

/* ---- slices -------------------------------------------------------------- */

typedef struct Range {
    int64_t start, size, step;
} Range;

static int64_t clamp(int64_t x, int64_t lo, int64_t hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

/* Python's rules for slices of n elements; one of no elements begins inside of them, too. */
static Range python_range(int64_t n, bool has_from, int64_t from, bool has_to, int64_t to,
                          int64_t step)
{
    bool up = step > 0;
    int64_t lo = up ? 0 : -1, hi = up ? n : n - 1;
    from = !has_from ? (up ? lo : hi) : clamp(from < 0 ? from + n : from, lo, hi);
    to = !has_to ? (up ? hi : lo) : clamp(to < 0 ? to + n : to, lo, hi);
    int64_t length = up ? to - from : from - to, by = up ? step : -step;
    if (length <= 0)
        return (Range){from < 0 ? 0 : from, 0, step};
    return (Range){from, (length - 1) / by + 1, step};
}

static bool end_of(Build *b, const Expr *e, bool *has, int64_t *out)
{
    *has = e != NULL;
    if (e == NULL)
        return true;
    const Value *v = eval(b, e);
    return want_int(b, v, e->span, "the end of a slice", out);
}

static bool eval_range(Build *b, const Subscript *s, int64_t n, Range *out)
{
    bool has_from, has_to, has_step;
    int64_t from = 0, to = 0, step = 1;
    bool fine = end_of(b, s->from, &has_from, &from);
    fine = end_of(b, s->to, &has_to, &to) && fine;
    fine = end_of(b, s->step, &has_step, &step) && fine;
    if (!fine)
        return false;
    if (step == 0 || step == INT64_MIN) {
        complain(b, E0208, s->step->span, "the step of a slice is not 0");
        return false;
    }
    *out = python_range(n, has_from, from, has_to, to, step);
    return true;
}

static bool in_range(Build *b, int64_t i, int64_t n, Span span, const char *of)
{
    if (i >= -n && i < n)
        return true;
    complain(b, E0205, span, "index %lld is outside of the %lld elements of %s", (long long)i,
             (long long)n, of);
    return false;
}

/* ---- lists --------------------------------------------------------------- */

/* `at`: the value of the index, for SUBSCRIPT_AT. */
static const Value *list_part(Build *b, const Value *v, const Subscript *s, const Value *at)
{
    int64_t i;
    if (s->kind == SUBSCRIPT_ELLIPSIS)
        return v;
    if (s->kind == SUBSCRIPT_AT) {
        if (!want_int(b, at, s->span, "the index of a list", &i) ||
            !in_range(b, i, v->n, s->span, value_kind_text(v)))
            return &value_poison;
        return v->item[i < 0 ? i + v->n : i];
    }
    Range r;
    if (!eval_range(b, s, v->n, &r))
        return &value_poison;
    ArenaMark mark = arena_mark(&b->cx->scratch);
    const Value **part = NEW_ARRAY(&b->cx->scratch, const Value *, r.size);
    for (int64_t i = 0; i < r.size; i++)
        part[i] = v->item[r.start + i * r.step];
    v = value_items(&b->arena, v->kind, part, (int)r.size);
    arena_reset(&b->cx->scratch, mark);
    return v;
}

static const Value *table_subscript(Build *b, const Value *v, const Expr *e)
{
    const Value *key[MAX_RANK];
    int n = e->index.subscript.n < MAX_RANK ? e->index.subscript.n : MAX_RANK;
    for (int i = 0; i < n; i++) {
        const Subscript *s = &e->index.subscript.at[i];
        key[i] = s->kind == SUBSCRIPT_AT ? eval(b, s->at) : NULL;
        if (key[i] == NULL || !value_is_const(key[i])) {
            complain(b, E0207, s->span, "the index of a table is a constant");
            return &value_poison;
        }
    }
    const char *name = e->index.base->kind == EXPR_NAME ? e->index.base->name.name.text : "it";
    const Value *tuple = value_items(&b->arena, VALUE_TUPLE, key, n);
    return table_get(b, v->table, tuple, e->span, name);
}

/* ---- index tensors ------------------------------------------------------- */

/* Each element of r is one of its operand, an integer; in a narrower type it could wrap. */
static bool keeps_integers(const Graph *g, Ref r)
{
    OpId op = op_of(g, r);
    if (op != OP_reshape && op != OP_transpose && op != OP_slice && op != OP_broadcast &&
        op != OP_cast)
        return false;
    DType from = type_of(g, arg(g, r, 0))->dtype;
    return dtype_is_int(from) && dtype_bytes(type_of(g, r)->dtype) >= dtype_bytes(from);
}

/* The input whose elements the index has, unchanged; -1: there is none. */
static int input_of(const Build *b, const Level *l, const Graph *g, Ref r)
{
    while (keeps_integers(g, r))
        r = arg(g, r, 0);
    if (op_of(g, r) == OP_input)
        return (int)attr(g, r, 0)->i;
    if (op_of(g, r) != OP_arg || l == NULL)
        return -1;
    int i = (int)attr(g, r, 0)->i;
    if (i < l->carries)
        return -1;
    r = i < l->fixed ? l->given[i] : l->captured.at[i - l->fixed];
    return input_of(b, l->outer, l->around, r);
}

bool index_range(Build *b, Ref index, int64_t rows, Span span, Span table)
{
    int i = input_of(b, b->level, b->g, index);
    if (i < 0 || i >= b->m->pinned.input.n)
        return true; /* computed: the op keeps it inside */
    GraphInput *in = &b->m->pinned.input.at[i];
    bool *inferred = &b->m->inferred.at[i];
    if (!in->ranged || (*inferred && in->hi > rows)) {
        in->ranged = *inferred = true;
        in->lo = 0;
        in->hi = rows;
    }
    if (in->lo >= 0 && in->hi <= rows)
        return true;
    Diag *d =
        complain(b, E0213, span, "`%s` is in %lld..%lld, but there are only %lld rows to index",
                 in->name, (long long)in->lo, (long long)in->hi, (long long)rows);
    mark_range(b, d, table);
    diag_note(b->cx, d, in->origin->span, "`%s` is declared here", in->name);
    return false;
}

/* Moves `n` axes from `from` to `to`; the others keep their order. */
static Ref move_axes(Graph *g, Ref x, int from, int n, int to)
{
    int perm[MAX_RANK], rest = 0, r = rank(g, x);
    for (int i = 0; i < r; i++) {
        if (i >= to && i < to + n) {
            perm[i] = from + i - to;
            continue;
        }
        while (rest >= from && rest < from + n)
            rest++;
        perm[i] = rest++;
    }
    return g_transpose(g, x, perm);
}

static Ref gather_axis(Build *b, Ref x, Ref index, int axis)
{
    int n = rank(b->g, index);
    Ref front = move_axes(b->g, x, axis, 1, 0);
    Ref rows = g_gather(b->g, front, index);
    return rows == NONE ? NONE : move_axes(b->g, rows, 0, n, axis);
}

/* ---- tensors ------------------------------------------------------------- */

/* One step of x[...]: what is done to each axis. */
typedef struct Plan {
    Ref x;
    int axis;              /* of x */
    int64_t dim[MAX_RANK]; /* what is left */
    int n;
    Ref index; /* the index tensor, and the axis that it reads */
    int index_axis;
    Span index_at;
} Plan;

static bool subscript_tensor(Build *b, const Value *at_value, const Subscript *s, Plan *p)
{
    Ref index = want_tensor(b, at_value, s->span, I32);
    if (index == NONE)
        return false;
    DType t = type_of(b->g, index)->dtype;
    if (!dtype_is_int(t)) {
        Diag *d = complain(b, E0212, s->span, "an index is of integers, and this is %s",
                           type_text(&b->cx->perm, type_of(b->g, index)));
        diag_help(b->cx, d,
                  t == BOOL ? "for a choice by true and false use `where`"
                            : "convert it: `cast(x, i32)`");
        return false;
    }
    if (p->index != NONE) {
        complain(b, E0206, s->span, "a second index tensor: one at a time");
        return false;
    }
    at(b, s->span);
    p->index = t == U8 ? g_cast(b->g, I32, index) : index;
    p->index_axis = p->n;
    p->index_at = s->span;
    p->dim[p->n++] = dim(b->g, p->x, p->axis++);
    return true;
}

/* Constant indices as a tensor; negative ones count from the end. */
static const Value *index_list(Build *b, const Value *v, int64_t n, Span span, const char *of)
{
    int64_t i;
    if (!value_is_items(v)) {
        if (!want_int(b, v, span, "an index", &i) || !in_range(b, i, n, span, of))
            return &value_poison;
        return i < 0 ? value_int(&b->arena, i + n) : v;
    }
    const Value **item = NEW_ARRAY(&b->arena, const Value *, v->n);
    for (int k = 0; k < v->n; k++)
        item[k] = index_list(b, v->item[k], n, span, of);
    return value_items(&b->arena, VALUE_LIST, item, v->n);
}

static bool subscript_one(Build *b, const Subscript *s, Plan *p)
{
    int64_t n = dim(b->g, p->x, p->axis), i;
    if (s->kind == SUBSCRIPT_SLICE) {
        Range r;
        if (!eval_range(b, s, n, &r))
            return false;
        at(b, s->span);
        p->x = g_slice(b->g, p->x, p->axis++, r.start, r.size, r.step);
        p->dim[p->n++] = r.size;
        return p->x != NONE;
    }
    const Value *v = eval(b, s->at);
    const char *of = arena_printf(&b->cx->perm, "axis %d of %s", p->axis,
                                  type_text(&b->cx->perm, type_of(b->g, p->x)));
    if (value_is_items(v))
        v = index_list(b, v, n, s->span, of);
    if (v->kind == VALUE_TENSOR || value_is_items(v))
        return subscript_tensor(b, v, s, p);
    if (!want_int(b, v, s->span, "an index", &i) || !in_range(b, i, n, s->span, of))
        return false;
    at(b, s->span);
    p->x = g_slice(b->g, p->x, p->axis++, i < 0 ? i + n : i, 1, 1);
    return p->x != NONE;
}

static void skip_axes(Build *b, Plan *p, int n)
{
    for (int i = 0; i < n; i++)
        p->dim[p->n++] = dim(b->g, p->x, p->axis++);
}

static bool subscript_all(Build *b, const Expr *e, Plan *p)
{
    const Subscripts *list = &e->index.subscript;
    int r = rank(b->g, p->x), n = 0;
    for (int i = 0; i < list->n; i++)
        n += list->at[i].kind != SUBSCRIPT_ELLIPSIS;
    if (n > r) {
        complain(b, E0206, e->span, "%d indices for the %d axes of %s", n, r,
                 type_text(&b->cx->perm, type_of(b->g, p->x)));
        return false;
    }
    for (int i = 0; i < list->n; i++) {
        if (list->at[i].kind == SUBSCRIPT_ELLIPSIS)
            skip_axes(b, p, r - n);
        else if (!subscript_one(b, &list->at[i], p))
            return false;
    }
    skip_axes(b, p, r - p->axis);
    return true;
}

static const Value *tensor_subscript(Build *b, const Value *v, const Expr *e)
{
    Plan p = {.x = want_tensor(b, v, e->index.base->span, F32)};
    if (p.x == NONE || !subscript_all(b, e, &p))
        return &value_poison;
    at(b, e->span);
    Ref x = g_reshape(b->g, p.x, p.n, p.dim);
    if (p.index == NONE || x == NONE)
        return made(b, x);
    if (!index_range(b, p.index, p.dim[p.index_axis], p.index_at, e->index.base->span))
        return &value_poison;
    at(b, e->span);
    return made(b, gather_axis(b, x, p.index, p.index_axis));
}

/* A list of numbers read by an index tensor. */
static const Value *list_rows(Build *b, const Value *v, const Value *index, const Subscript *s,
                              const Expr *e)
{
    Ref table = want_tensor(b, v, e->index.base->span, F32);
    if (table == NONE)
        return &value_poison;
    Plan p = {.x = table};
    if (!subscript_tensor(b, index, s, &p) ||
        !index_range(b, p.index, v->n, s->span, e->index.base->span))
        return &value_poison;
    at(b, e->span);
    return made(b, g_gather(b->g, table, p.index));
}

static const Value *list_subscript(Build *b, const Value *v, const Expr *e)
{
    for (int i = 0; i < e->index.subscript.n; i++) {
        const Subscript *s = &e->index.subscript.at[i];
        const Value *index = s->kind == SUBSCRIPT_AT ? eval(b, s->at) : NULL;
        if (!value_is_items(v)) {
            if (v->kind != VALUE_POISON)
                complain(b, E0206, s->span, "%s has no parts", value_kind_text(v));
            return &value_poison;
        }
        if (index != NULL && index->kind == VALUE_TENSOR && e->index.subscript.n == 1)
            return list_rows(b, v, index, s, e);
        v = list_part(b, v, s, index);
    }
    return v;
}

const Value *eval_subscript(Build *b, const Expr *e)
{
    const Value *v = eval(b, e->index.base);
    if (v->kind == VALUE_POISON)
        return v;
    if (v->kind == VALUE_TABLE)
        return table_subscript(b, v, e);
    if (value_is_items(v))
        return list_subscript(b, v, e);
    if (v->kind == VALUE_TENSOR || v->kind == VALUE_FILL)
        return tensor_subscript(b, v, e);
    complain(b, E0206, e->span, "%s has no parts to index", value_kind_text(v));
    return &value_poison;
}
