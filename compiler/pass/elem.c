#include "tails.h"

#include <assert.h>
#include <math.h>
#include <string.h>

void axis_init(Axis *a, int64_t extent)
{
    memset(a, 0, sizeof *a);
    a->extent = extent;
    a->n = 1;
    a->factor[0] = extent;
}

bool axis_cut(Axis *axes, int n, Val v, int64_t by)
{
    for (int i = 0; i < n; i++) {
        Axis *a = &axes[i];
        for (int f = 0; f < a->n; f++) {
            if (a->loop[f] != v || v == 0)
                continue;
            if (a->n == MAX_FACTORS || by <= 1 || a->factor[f] % by != 0 || a->factor[f] == by)
                return false;
            for (int j = a->n; j > f + 1; j--)
                a->factor[j] = a->factor[j - 1];
            a->factor[f] /= by;
            a->factor[f + 1] = by;
            a->n++;
            return true;
        }
    }
    return false;
}

KAff axis_index(const Axis *a)
{
    KAff x = k_aff(0);
    int64_t stride = 1;
    for (int f = a->n - 1; f >= 0; f--) {
        if (a->loop[f] != 0)
            x = k_aff_add(x, k_aff_val(a->loop[f], stride));
        stride *= a->factor[f];
    }
    return x;
}

bool ref_is_source(const Graph *g, Ref r)
{
    OpId op = op_of(g, r);
    return op == OP_input || op == OP_slot || op == OP_arg || op == OP_literal;
}

void elem_init(Elem *e, Kernel *k, const Graph *g, Arena *arena, const bool *stored)
{
    memset(e, 0, sizeof *e);
    e->k = k;
    e->g = g;
    e->arena = arena;
    e->stored = stored;
    e->next_guard = 1;
}

Kernel *elem_kernel(Elem *e)
{
    return e->k;
}

const Graph *elem_graph(Elem *e)
{
    return e->g;
}

int elem_mark(const Elem *e)
{
    return e->memo.n;
}

/* Its place is one of the nest's loops. */
static bool is_of_nest(const Elem *e, const Memo *m)
{
    for (int a = 0; a < rank(e->g, m->ref); a++)
        for (int i = 0; i < m->idx[a].n; i++)
            if (m->idx[a].t[i].v >= e->nest_end)
                return false;
    return true;
}

/* Nothing runs the kernel of a trace, so what is asked for once at a place of the nest need not be
 * followed again, from whatever loop that was: each reduction would be for all those behind it. */
void elem_forget(Elem *e, int mark)
{
    int n = mark;
    for (int i = mark; i < e->memo.n && e->tracing; i++)
        if (is_of_nest(e, &e->memo.at[i]))
            e->memo.at[n++] = e->memo.at[i];
    e->memo.n = n;
}

void elem_trace(Elem *e)
{
    e->tracing = true;
    e->nest_end = (Val)e->k->inst.n;
}

/* True if r is read from memory by this kernel. */
static bool is_loaded(const Elem *e, Ref r)
{
    if (!e->stored[r])
        return false;
    for (int i = 0; i < e->n_here; i++)
        if (e->here[i] == r)
            return false;
    return true;
}

int elem_buffer(Elem *e, Ref r)
{
    for (int i = 0; i < e->operand.n; i++)
        if (e->operand.at[i] == r && e->operand_out.at[i] < 0)
            return i;
    const Type *t = type_of(e->g, r);
    int buf = k_buf(e->k, t->dtype, type_elems(t), K_IN);
    assert(buf == e->operand.n);
    vec_push(e->arena, &e->operand, r);
    vec_push(e->arena, &e->operand_out, -1);
    return buf;
}

int elem_out_buffer(Elem *e, Ref r, int out, DType t, int64_t elems)
{
    int buf = k_buf(e->k, t, elems, K_OUT);
    assert(buf == e->operand.n);
    vec_push(e->arena, &e->operand, r);
    vec_push(e->arena, &e->operand_out, out);
    return buf;
}

/* k_aff_add asserts that the terms fit; this asks first. */
static bool add_fits(const KAff *x, const KAff *y)
{
    return x->n + y->n <= K_MAX_TERMS;
}

KAff elem_linear(const Type *t, const KAff *idx)
{
    KAff at = k_aff(0);
    int64_t stride = 1;
    for (int a = t->rank - 1; a >= 0; a--) {
        if (t->dim[a] != 1)
            at = k_aff_add(at, k_aff_scale(idx[a], stride));
        stride *= t->dim[a];
    }
    return at;
}

static bool linear_fits(const Type *t, const KAff *idx)
{
    KAff at = k_aff(0);
    for (int a = t->rank - 1; a >= 0; a--) {
        if (!add_fits(&at, &idx[a]))
            return false;
        if (t->dim[a] != 1)
            at = k_aff_add(at, idx[a]);
    }
    return true;
}

static const Memo *memo_find(const Elem *e, Ref r, int rank, const KAff *idx)
{
    for (int i = e->memo.n - 1; i >= 0; i--) {
        const Memo *m = &e->memo.at[i];
        if (m->ref != r || m->guard != e->guard)
            continue;
        bool same = true;
        for (int a = 0; a < rank && same; a++)
            same = k_aff_equal(&m->idx[a], &idx[a]);
        if (same)
            return m;
    }
    return NULL;
}

static KAff *keep_index(Elem *e, int rank, const KAff *idx)
{
    KAff *copy = NEW_ARRAY(e->arena, KAff, rank);
    for (int a = 0; a < rank; a++)
        copy[a] = idx[a];
    return copy;
}

static void memo_add(Elem *e, Ref r, int rank, const KAff *idx, Val v)
{
    Memo m = {.ref = r, .guard = e->guard, .val = v, .idx = keep_index(e, rank, idx)};
    vec_push(e->arena, &e->memo, m);
}

static void request_add(Elem *e, Ref r, int rank, const KAff *idx)
{
    Request q = {
        .ref = r, .bounded = e->guard != 0, .depth = e->k->open.n, .idx = keep_index(e, rank, idx)};
    vec_push(e->arena, &e->request, q);
}

static Val load_linear(Elem *e, Ref r, KAff at)
{
    int buf = elem_buffer(e, r);
    int n = e->bound.n - e->first_bound;
    if (n == 0)
        return k_load(e->k, buf, at);
    return k_load_bounded(e->k, buf, at, e->bound.at + e->first_bound, n, e->otherwise);
}

static Val in_trouble(Elem *e, Trouble t)
{
    if (e->trouble == FINE)
        e->trouble = t;
    return 0;
}

/* A reshape of something in memory has the same row-major offsets: no index is
 * taken apart. */
static Ref same_memory(const Elem *e, Ref r)
{
    while (op_of(e->g, r) == OP_reshape && !is_loaded(e, r))
        r = arg(e->g, r, 0);
    return r;
}

static Val elem_pointwise(Elem *e, Ref r, const Op *op, const KAff *idx)
{
    Val x[8] = {0};
    int n = node(e->g, r)->n_args;
    assert(n <= 8);
    for (int i = 0; i < n; i++) {
        x[i] = elem_at(e, arg(e->g, r, i), idx);
        if (e->trouble != FINE)
            return 0;
    }
    return op->scalar(e, r, x);
}

static Val elem_make(Elem *e, Ref r, const KAff *idx)
{
    const Op *op = optab[op_of(e->g, r)];
    Ref base = same_memory(e, r);
    if (is_loaded(e, base)) {
        if (!linear_fits(type_of(e->g, r), idx))
            return in_trouble(e, TOO_MANY_TERMS);
        return load_linear(e, base, elem_linear(type_of(e->g, r), idx));
    }
    if (op->kind == OP_POINTWISE)
        return elem_pointwise(e, r, op, idx);
    if (op->elem == NULL) {
        e->store_first = r;
        return in_trouble(e, WANTS_STORE);
    }
    Val v = op->elem(e, r, idx);
    if (e->trouble != FINE && e->store_first == NONE && op->kind == OP_VIEW)
        e->store_first = arg(e->g, r, 0); /* should the cut not be possible */
    return v;
}

/* Bounds of the axes that idx can leave; false if an index is not affine in loops,
 * whose range is then unknown. */
static int bounds_of(const Elem *e, Ref r, const KAff *idx, KBound *b)
{
    int n = 0;
    const Type *t = type_of(e->g, r);
    for (int a = 0; a < t->rank; a++) {
        int64_t lo, hi;
        if (k_aff_range(e->k, &idx[a], &lo, &hi) && lo >= 0 && hi < t->dim[a])
            continue;
        b[n++] = (KBound){.e = idx[a], .lo = 0, .hi = t->dim[a]};
    }
    return n;
}

/* Under guards that are not about this element: it is there, and it does not matter what is made
 * of it where they fail. */
static Val elem_beyond_guards(Elem *e, Ref r, const KAff *idx)
{
    int32_t guard = e->guard;
    int first = e->first_bound;
    e->guard = 0;
    e->first_bound = e->bound.n;
    Val v = elem_at(e, r, idx);
    e->guard = guard;
    e->first_bound = first;
    return v;
}

/* Apart from elem_at(), which calls itself: this takes 2 KiB of the stack. */
static __attribute__((noinline)) bool is_inside(const Elem *e, Ref r, const KAff *idx)
{
    KBound b[MAX_RANK];
    return bounds_of(e, r, idx, b) == 0;
}

Val elem_at(Elem *e, Ref r, const KAff *idx)
{
    if (e->trouble != FINE)
        return 0;
    int n = rank(e->g, r);
    if (e->guard != 0 && e->selects && is_inside(e, r, idx))
        return elem_beyond_guards(e, r, idx);
    if (e->tracing)
        request_add(e, r, n, idx);
    if (r == e->sum_of && e->sum != 0)
        return e->sum;
    const Memo *m = memo_find(e, r, n, idx);
    if (m != NULL)
        return m->val;
    Val v = elem_make(e, r, idx);
    if (e->trouble != FINE)
        return 0;
    memo_add(e, r, n, idx, v);
    return v;
}

/* Only views lie between r and the memory it is read from. */
static bool is_plain_read(const Elem *e, Ref r)
{
    for (;;) {
        if (is_loaded(e, r))
            return true;
        OpId op = op_of(e->g, r);
        if (op != OP_reshape && op != OP_transpose && op != OP_slice && op != OP_broadcast)
            return false;
        r = arg(e->g, r, 0);
    }
}

static Val in_bounds(Elem *e, const KBound *b, int n)
{
    Kernel *k = e->k;
    Val all = 0;
    for (int i = 0; i < n; i++) {
        Val x = k_index(k, I64, b[i].e);
        Val lo = k_const_int(k, I64, b[i].lo);
        Val hi = k_const_int(k, I64, b[i].hi);
        Val above = k_binary(k, KI_LE, lo, x);
        Val below = k_binary(k, KI_LT, x, hi);
        Val both = k_binary(k, KI_AND, above, below);
        all = all == 0 ? both : k_binary(k, KI_AND, all, both);
    }
    return all;
}

Val elem_at_bounded(Elem *e, Ref r, const KAff *idx, double otherwise)
{
    if (e->trouble != FINE)
        return 0;
    KBound b[MAX_RANK];
    int n = bounds_of(e, r, idx, b);
    if (n == 0)
        return elem_at(e, r, idx);
    bool plain = is_plain_read(e, r) && e->bound.n == e->first_bound;
    int32_t guard = e->guard;
    double old = e->otherwise;
    bool selects = e->selects;
    int n_bounds = e->bound.n;
    for (int i = 0; i < n; i++)
        vec_push(e->arena, &e->bound, b[i]);
    e->guard = e->next_guard++;
    e->otherwise = plain ? otherwise : 0;
    e->selects = !plain;
    int mark = elem_mark(e);
    Val v = elem_at(e, r, idx);
    elem_forget(e, mark);
    e->guard = guard;
    e->otherwise = old;
    e->selects = selects;
    e->bound.n = n_bounds;
    if (e->trouble != FINE || plain)
        return v;
    Val inside = in_bounds(e, b, n);
    DType t = type_of(e->g, r)->dtype;
    Val fill =
        dtype_is_float(t) ? k_const(e->k, t, otherwise) : k_const_int(e->k, t, (int64_t)otherwise);
    return k_select(e->k, inside, v, fill);
}

static int64_t loop_extent(const Elem *e, Val v)
{
    const KInst *in = &e->k->inst.at[v];
    bool loop = in->op == KI_PAR || in->op == KI_SEQ || in->op == KI_RED || in->op == KI_DIM;
    return loop ? in->imm.i : 0;
}

/* Finds the loop that, cut in two, makes x divisible; else says "store". */
static bool want_cut(Elem *e, const KAff *x, int64_t by)
{
    for (int i = 0; i < x->n; i++) {
        int64_t coef = x->t[i].coef;
        if (coef <= 0 || coef % by == 0 || by % coef != 0)
            continue;
        int64_t cut = by / coef, extent = loop_extent(e, x->t[i].v);
        if (extent > cut && extent % cut == 0) {
            e->trouble = WANTS_CUT;
            e->cut_loop = x->t[i].v;
            e->cut_by = cut;
            return false;
        }
    }
    e->trouble = WANTS_STORE;
    return false;
}

bool elem_divide(Elem *e, const KAff *x, int64_t by, KAff *q, KAff *r)
{
    if (e->trouble != FINE)
        return false;
    *q = k_aff(0);
    *r = k_aff(0);
    for (int i = 0; i < x->n; i++) {
        int64_t coef = x->t[i].coef;
        if (coef % by == 0)
            *q = k_aff_add(*q, k_aff_val(x->t[i].v, coef / by));
        else
            *r = k_aff_add(*r, k_aff_val(x->t[i].v, coef));
    }
    int64_t base = x->base % by;
    if (base < 0)
        base += by;
    r->base = base;
    q->base = (x->base - base) / by;
    int64_t lo, hi;
    if (k_aff_range(e->k, r, &lo, &hi) && lo >= 0 && hi < by)
        return true;
    return want_cut(e, x, by);
}

KAff elem_index_of(Elem *e, Val v)
{
    (void)e;
    return k_aff_val(v, 1);
}

/* True if `axis` is the fastest axis of t that moves at all. */
static bool is_fastest(const Type *t, int axis)
{
    for (int a = axis + 1; a < t->rank; a++)
        if (t->dim[a] != 1)
            return false;
    return true;
}

/* x is a reduction by the same op that this one alone reads: both are one walk over
 * several axes, with one accumulator. */
static bool goes_on(const Elem *e, Ref n, Ref x)
{
    return op_of(e->g, x) == op_of(e->g, n) && !e->stored[x];
}

/* Indices of a reduction's operand without its axis, from those of its result. */
static void operand_index(const Graph *g, Ref reduced, const KAff *idx, KAff *rest)
{
    int axis = (int)attr(g, reduced, REDUCE_AXIS)->i;
    int keep = attr(g, reduced, REDUCE_KEEP)->i != 0;
    int n = rank(g, arg(g, reduced, 0)) - 1;
    for (int i = 0; i < n; i++)
        rest[i] = idx[i + (keep && i >= axis)];
}

static void insert_index(int rank, int axis, const KAff *rest, KAff i, KAff *at)
{
    for (int a = 0, j = 0; a < rank; a++)
        at[a] = a == axis ? i : rest[j++];
}

void elem_limit(Elem *e, Val v, KReach reach)
{
    const Tails *t = e->tails;
    if (!e->k->limit.is)
        e->k->limit = (KLimit){true, elem_buffer(e, t->rows), t->last, t->plus, t->mean};
    k_reach(e->k, v, reach);
}

/* Opens the loops of a walk, gives the innermost operand and its index. */
static Val open_walk(Elem *e, Ref n, Ref *x, int axis, KAff *at)
{
    KAff rest[MAX_RANK];
    Val first = 0;
    operand_index(e->g, n, at, rest);
    for (;;) {
        const Type *t = type_of(e->g, *x);
        bool more = goes_on(e, n, *x);
        bool lanes = !more && is_fastest(t, axis);
        Val i = lanes ? k_red(e->k, t->dim[axis]) : k_seq(e->k, t->dim[axis]);
        first = first == 0 ? i : first;
        insert_index(t->rank, axis, rest, k_aff_val(i, 1), at);
        if (!more)
            return first;
        operand_index(e->g, *x, at, rest);
        axis = (int)attr(e->g, *x, REDUCE_AXIS)->i;
        *x = arg(e->g, *x, 0);
    }
}

Val elem_reduce(Elem *e, Ref n, Ref x, int axis, KOp op, const KAff *idx)
{
    Kernel *k = e->k;
    DType t = type_of(e->g, x)->dtype;
    bool nan_wins = dtype_is_float(t) && (op == KI_MIN || op == KI_MAX);
    Val acc = k_acc(k, t, op);
    Val any_nan = nan_wins ? k_acc(k, BOOL, KI_OR) : 0;
    int mark = elem_mark(e);
    KAff at[MAX_RANK + 1];
    memcpy(at, idx, sizeof(KAff) * (size_t)rank(e->g, n));
    Val first = open_walk(e, n, &x, axis, at);
    bool hidden = (op == KI_MAX && tail_is(e->tails, x, -INFINITY)) ||
                  (op == KI_ADD && tail_is(e->tails, x, 0));
    if (hidden && k->inst.at[first].op == KI_RED)
        elem_limit(e, first, K_LIMITED);
    Val v = elem_at(e, x, at);
    elem_forget(e, mark);
    if (e->trouble != FINE)
        return 0;
    k_into(k, acc, v);
    if (nan_wins)
        k_into(k, any_nan, k_binary(k, KI_NE, v, v));
    k_end(k, first);
    Val folded = k_fold(k, acc);
    if (!nan_wins)
        return folded;
    Val found = k_fold(k, any_nan);
    Val nan = k_const(k, t, NAN);
    return k_select(k, found, nan, folded);
}
