/* Which sums: loops over k, one element after the other, that store what they give side by side. A
 * contraction a few calls behind packs the same elements, computed by the same instructions. */
#include "side_sums.h"

#include <string.h>
#include "con.h"
#include "room.h"

enum { REACH = 4, MAX_LOADS = 6 };

/* ---- kernels that are sums ------------------------------------------------------------- */

/* Loops over results, then over terms, outermost first. */
typedef struct Sum {
    const Kernel *k;
    int n_free, n_terms;
    Val free[K_MAX_DIMS], term[K_MAX_DIMS], acc, value, fold;
    const KAccess *to;
} Sum;

static bool add_loop(const Kernel *k, Val v, Val *loop, int *n)
{
    const KInst *i = &k->inst.at[v];
    if (*n == K_MAX_DIMS || i->reach != K_ALL || i->aux != 0)
        return false;
    loop[(*n)++] = v;
    return true;
}

static bool read_inst(Sum *s, Val v, int *ended)
{
    const KInst *i = &s->k->inst.at[v];
    switch ((KOp)i->op) {
    case KI_PAR:
        return s->acc == 0 && add_loop(s->k, v, s->free, &s->n_free);
    case KI_SEQ:
        return s->acc != 0 && s->value == 0 && *ended == 0 &&
               add_loop(s->k, v, s->term, &s->n_terms);
    case KI_ACC:
        if (s->acc != 0 || i->aux != KI_ADD || i->dtype != F32)
            return false;
        s->acc = v;
        return true;
    case KI_INTO:
        if (s->acc == 0 || i->a != s->acc || s->value != 0 || *ended > 0)
            return false;
        s->value = i->b;
        return true;
    case KI_FOLD:
        if (s->fold != 0 || s->value == 0 || *ended != s->n_terms)
            return false;
        s->fold = v;
        return true;
    case KI_STORE:
        if (s->to != NULL || s->fold == 0 || i->a != s->fold || *ended != s->n_terms)
            return false;
        s->to = &s->k->access.at[i->aux];
        return s->to->n_bounds == 0;
    case KI_END:
        ++*ended;
        return s->value != 0;
    case KI_RED:
    case KI_VAR:
    case KI_GET:
    case KI_SET:
        return false;
    default:
        return true;
    }
}

static bool is_sum(const Kernel *k, Sum *s)
{
    int ended = 0;
    *s = (Sum){.k = k};
    if (k->kind != K_LOOP || k->limit.is)
        return false;
    for (Val v = 1; v < (Val)k->inst.n; v++)
        if (!read_inst(s, v, &ended))
            return false;
    return s->to != NULL && s->n_terms > 0;
}

/* ---- the same elements --------------------------------------------------------------------- */

/* Two kernels' accesses that must meet the same elements, and what their buffers are. */
typedef struct Match {
    const Kernel *x, *y;
    const Operand **x_op, **y_op; /* by KBuf */
    int n;
    const KAccess *x_at[MAX_LOADS], *y_at[MAX_LOADS];
} Match;

static bool same_operand(const Operand *x, const Operand *y)
{
    return x != NULL && y != NULL && x->buffer == y->buffer && x->base == y->base &&
           memcmp(x->step, y->step, sizeof x->step) == 0;
}

static bool same_load(Match *m, const KAccess *x, const KAccess *y)
{
    if (m->n == MAX_LOADS || x->n_bounds > 0 || y->n_bounds > 0 || x->at.base != y->at.base ||
        !same_operand(m->x_op[x->buf], m->y_op[y->buf]))
        return false;
    m->x_at[m->n] = x;
    m->y_at[m->n++] = y;
    return true;
}

/* x and y are computed by the same instructions. */
static bool same_value(Match *m, Val x, Val y)
{
    if (x == 0 || y == 0)
        return x == y;
    const KInst *i = &m->x->inst.at[x], *j = &m->y->inst.at[y];
    if (i->op != j->op || i->dtype != j->dtype)
        return false;
    if (i->op == KI_CONST)
        return i->imm.i == j->imm.i;
    if (i->op == KI_LOAD)
        return same_load(m, &m->x->access.at[i->aux], &m->y->access.at[j->aux]);
    KClass class = kop_class((KOp)i->op);
    return (class == K_CLASS_UNARY || class == K_CLASS_BINARY || class == K_CLASS_TERNARY) &&
           same_value(m, i->a, j->a) && same_value(m, i->b, j->b) && same_value(m, i->c, j->c);
}

/* Indices, outermost first, and by how far each moves every access; those that are one index are
 * one, so that two kernels' are alike where they meet the same elements in the same order. */
typedef struct Index {
    int64_t extent, step[MAX_LOADS + 1];
} Index;
typedef struct Indices {
    int n;
    Index at[K_MAX_DIMS];
} Indices;

static void add_index(Indices *x, const Index *i, int n_steps)
{
    if (i->extent == 1)
        return;
    Index *outer = x->n > 0 ? &x->at[x->n - 1] : NULL;
    bool one = outer != NULL;
    for (int s = 0; s < n_steps && one; s++)
        one = outer->step[s] == i->step[s] * i->extent;
    if (!one) {
        x->at[x->n++] = *i;
        return;
    }
    int64_t extent = outer->extent * i->extent;
    *outer = *i;
    outer->extent = extent;
}

static bool same_indices(const Indices *x, const Indices *y, int n_steps)
{
    bool same = x->n == y->n;
    for (int i = 0; i < x->n && same; i++) {
        same = x->at[i].extent == y->at[i].extent;
        for (int s = 0; s < n_steps; s++)
            same = same && x->at[i].step[s] == y->at[i].step[s];
    }
    return same;
}

/* Of the loops or DIMs v[]; the last step is that of `to`, or in flat order where that is NULL. */
static Indices indices_of(const Kernel *k, const Val *v, int n, const KAccess *const *at, int n_at,
                          const KAccess *to)
{
    Indices x = {0};
    int64_t flat = 1;
    for (int i = 0; i < n; i++)
        flat *= k->inst.at[v[i]].imm.i;
    for (int i = 0; i < n; i++) {
        Index one = {.extent = k->inst.at[v[i]].imm.i};
        for (int s = 0; s < n_at; s++)
            one.step[s] = con_coef(&at[s]->at, v[i]);
        flat /= one.extent;
        one.step[n_at] = to != NULL ? con_coef(&to->at, v[i]) : flat;
        add_index(&x, &one, n_at + 1);
    }
    return x;
}

/* No term of an access but those of these indices. */
static bool only_of(const KAff *x, const Val *v, int n, const Val *w, int n_w)
{
    for (int t = 0; t < x->n; t++) {
        bool found = false;
        for (int i = 0; i < n; i++)
            found = found || x->t[t].v == v[i];
        for (int i = 0; i < n_w; i++)
            found = found || x->t[t].v == w[i];
        if (!found)
            return false;
    }
    return true;
}

/* Whether the sum's elements are those of A (1) or B (2), in the order of k, and its results lie in
 * the order of m (n). */
static bool is_of(const Sum *s, Match m, int side)
{
    const KContract *c = &m.y->con;
    KRole role = side == 1 ? K_M : K_N;
    if (!same_value(&m, s->value, side == 1 ? c->a : c->b) || m.n == 0 || s->to->at.base != 0 ||
        !only_of(&s->to->at, s->free, s->n_free, NULL, 0))
        return false;
    for (int i = 0; i < m.n; i++)
        if (!only_of(&m.x_at[i]->at, s->free, s->n_free, s->term, s->n_terms) ||
            !only_of(&m.y_at[i]->at, c->dim[role], c->n[role], c->dim[K_K], c->n[K_K]))
            return false;
    Indices free = indices_of(m.x, s->free, s->n_free, m.x_at, m.n, s->to);
    Indices rows = indices_of(m.y, c->dim[role], c->n[role], m.y_at, m.n, NULL);
    static const KAccess nowhere; /* no term moves it */
    Indices terms = indices_of(m.x, s->term, s->n_terms, m.x_at, m.n, &nowhere);
    Indices k = indices_of(m.y, c->dim[K_K], c->n[K_K], m.y_at, m.n, &nowhere);
    return same_indices(&free, &rows, m.n + 1) && same_indices(&terms, &k, m.n + 1);
}

/* ---- calls ---------------------------------------------------------------------------------- */

typedef struct Search {
    const Machine *m;
    const Program *from;
    Program *to;
    Arena *arena;
    int in_turns; /* loops around, whose turns lanes may take whole */
    bool any;
} Search;

static int64_t end_of(const Buffer *b)
{
    int64_t turns = b->turns > 1 ? b->turns * b->turn_bytes : b->bytes;
    return b->offset + (turns > b->bytes ? turns : b->bytes);
}

static bool meet(const Buffer *x, const Buffer *y)
{
    return x == y ||
           (x->offset >= 0 && y->offset >= 0 && x->offset < end_of(y) && y->offset < end_of(x));
}

/* The call touches no byte of what the sum gives, nor writes one that it reads. */
static bool lets_by(const Search *t, const Call *c, const Call *sum, const Operand *given)
{
    const Program *p = t->from;
    const Buffer *to = &p->buffer.at[given->buffer];
    const Kernel *k = p->kernel.at[c->kernel];
    Room room = room_of(p, c);
    if (to->offset < room.lo + room.lanes * room.bytes && room.lo < end_of(to))
        return false;
    const Operand **op = call_operands(t->from, c, t->arena);
    for (int i = 0; i < k->buf.n; i++) {
        if (op[i] == NULL)
            continue;
        const Buffer *b = &p->buffer.at[op[i]->buffer];
        if (meet(b, to))
            return false;
        for (int j = 0; j < sum->n_ops && k->buf.at[i].mode != K_IN; j++)
            if (meet(b, &p->buffer.at[sum->op[j].buffer]))
                return false;
    }
    return true;
}

/* What the kernel x of a call is planned as when it has the sum, too: still in the scratch that it
 * has without, which the block was laid out for, and worth it. By itself the sum reads its operand
 * once more.   source: 25 GB/s from far memory (an Intel Xeon). */
static bool suits(const Search *t, const Call *c, const Kernel *x, int64_t read)
{
    const double cycles_an_element = 0.4;
    Arena scratch = {0};
    const Kernel *k = t->from->kernel.at[c->kernel];
    Room room = room_of(t->from, c);
    KernelFn without =
        plan_contraction(t->m, kernel_expand(&scratch, k, t->m->exponents), &scratch);
    KernelFn with = plan_contraction(t->m, kernel_expand(&scratch, x, t->m->exponents), &scratch);
    bool fits = room_holds(&room, &with, t->from->threads_max, t->in_turns > 0);
    bool pays = with.cycles - without.cycles <= cycles_an_element * (double)read;
    arena_free(&scratch);
    return fits && pays;
}

/* k with the sums of a side, given to one buffer more; NULL where it does not pack it so. */
static Kernel *with_side_sum(const Search *t, const Kernel *k, int side, int64_t elems)
{
    Kernel *x = kernel_copy(t->arena, k, NULL);
    x->name = arena_printf(t->arena, "%s_sum", k->name);
    x->con.side_sum = side;
    x->con.side_sum_buf = k_buf(x, F32, elems, K_OUT);
    Arena scratch = {0};
    ConPlan plan;
    con_plan(&plan, kernel_expand(&scratch, x, t->m->exponents), t->m, &scratch);
    bool can = con_can_sum_side(&plan);
    arena_free(&scratch);
    return can ? x : NULL;
}

static int64_t elems_read(const Sum *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->n_free; i++)
        n *= s->k->inst.at[s->free[i]].imm.i;
    for (int i = 0; i < s->n_terms; i++)
        n *= s->k->inst.at[s->term[i]].imm.i;
    return n;
}

/* Puts the sum of call[i] into the contraction of call[j].   fails: false. */
static bool put(Search *t, const Sum *s, const Call *call, int i, int j, Call *to)
{
    const Program *p = t->from;
    const Kernel *k = p->kernel.at[call[j].kernel];
    if (k->kind != K_CONTRACT || k->con.dtype != F32 || k->limit.is || k->con.side_sum != 0)
        return false;
    Match m = {.x = s->k,
               .y = k,
               .x_op = call_operands(t->from, &call[i], t->arena),
               .y_op = call_operands(t->from, &call[j], t->arena)};
    int side = is_of(s, m, 1) ? 1 : is_of(s, m, 2) ? 2 : 0;
    const Operand *given = m.x_op[s->to->buf];
    if (side == 0 || p->buffer.at[given->buffer].offset < 0)
        return false;
    for (int c = i + 1; c <= j; c++)
        if (!lets_by(t, &call[c], &call[i], given))
            return false;
    Kernel *with = with_side_sum(t, k, side, s->k->buf.at[s->to->buf].elems);
    if (with == NULL || !suits(t, &call[j], with, elems_read(s)))
        return false;
    Operand *op = NEW_ARRAY(t->arena, Operand, call[j].n_ops + 1);
    memcpy(op, call[j].op, (size_t)call[j].n_ops * sizeof *op);
    op[call[j].n_ops] = *given;
    *to = call[j];
    to->op = op;
    to->n_ops++;
    to->kernel = program_kernel(t->to, with);
    if (to->label != NULL)
        to->label = arena_printf(t->arena, "%s_sum", to->label);
    t->any = true;
    return true;
}

/* Whether a contraction that follows takes the sum of call[i]; taken: those that have one. */
static bool has_gone(Search *t, const Call *call, int32_t n, int32_t i, Call *to, bool *taken)
{
    Sum s;
    if (!is_sum(t->from->kernel.at[call[i].kernel], &s))
        return false;
    for (int32_t j = i + 1; j < n && j <= i + REACH && call[j].kind == CALL_KERNEL; j++)
        if (!taken[j] && put(t, &s, call, i, j, &to[j])) {
            taken[j] = true;
            return true;
        }
    return false;
}

static Call *copy_calls(Search *t, const Call *call, int32_t n, int32_t *left)
{
    Call *to = NEW_ARRAY(t->arena, Call, n);
    bool *taken = NEW_ARRAY(t->arena, bool, n);
    *left = 0;
    for (int32_t i = 0; i < n; i++) {
        bool kernel = call[i].kind == CALL_KERNEL;
        if (kernel && has_gone(t, call, n, i, to, taken))
            continue;
        Call c = taken[i] ? to[i] : call[i];
        if (kernel && !taken[i])
            c.kernel = program_kernel(t->to, t->from->kernel.at[call[i].kernel]);
        bool turns = call[i].kind == CALL_LOOP && call[i].turns > 0;
        t->in_turns += turns;
        if (!kernel && call[i].n_body > 0)
            c.body = copy_calls(t, call[i].body, call[i].n_body, &c.n_body);
        t->in_turns -= turns;
        to[(*left)++] = c;
    }
    return to;
}

const Program *side_sums_program(const Machine *m, const Program *p, Arena *arena)
{
    Program *to = NEW(arena, Program);
    *to = *p;
    to->arena = arena;
    memset(&to->kernel, 0, sizeof to->kernel);
    memset(&to->entry, 0, sizeof to->entry);
    Search t = {.m = m, .from = p, .to = to, .arena = arena};
    for (int e = 0; e < p->entry.n; e++) {
        Entry x = p->entry.at[e];
        x.call = copy_calls(&t, x.call, x.n_calls, &x.n_calls);
        vec_push(arena, &to->entry, x);
    }
    return t.any ? to : p;
}
