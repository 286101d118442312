#include "tails.h"

#include <math.h>

/* What is known of the integers of a node. */
typedef struct Place {
    bool column; /* each is its index on the last axis + c */
    bool bound;  /* none is above the last row's number + c */
    int64_t c;
} Place;

typedef struct Search {
    const Graph *g;
    Tails *t;
    Place *place; /* by Ref */
    bool found;
} Search;

static int64_t last_dim(const Graph *g, Ref r)
{
    int n = rank(g, r);
    return n < 1 ? 0 : dim(g, r, n - 1);
}

/* A view whose last axis is that of its operand. */
static bool keeps_last(const Graph *g, Ref r)
{
    switch (op_of(g, r)) {
    case OP_reshape:
    case OP_broadcast:
        return last_dim(g, r) == last_dim(g, arg(g, r, 0));
    case OP_transpose:
        return attr(g, r, 0)->ints[rank(g, r) - 1] == rank(g, r) - 1;
    default:
        return false;
    }
}

static bool is_integer(const Graph *g, Ref r)
{
    return rank(g, r) >= 0 && (type_of(g, r)->dtype == I32 || type_of(g, r)->dtype == I64);
}

/* x + by * y, where one is a constant. */
static Place moved(const Search *s, Ref r, int by)
{
    const Graph *g = s->g;
    double n;
    Ref x = arg(g, r, 0), y = arg(g, r, 1);
    Place p = {0};
    if (const_value(g, y, &n) && fabs(n) < 1e9) {
        p = s->place[x];
        p.c += by * (int64_t)n;
    } else if (by > 0 && const_value(g, x, &n) && fabs(n) < 1e9) {
        p = s->place[y];
        p.c += (int64_t)n;
    }
    return p;
}

static Place find_place(const Search *s, Ref r)
{
    const Graph *g = s->g;
    Place p = {0};
    switch (op_of(g, r)) {
    case OP_iota:
        p.column = attr(g, r, op_attr(&op_iota, "axis"))->i == rank(g, r) - 1;
        return p;
    case OP_arg:
        p.bound = r == s->t->rows;
        return p;
    case OP_add:
        return moved(s, r, 1);
    case OP_sub:
        return moved(s, r, -1);
    case OP_cast:
        return is_integer(g, arg(g, r, 0)) ? s->place[arg(g, r, 0)] : p;
    case OP_reshape:
    case OP_broadcast:
    case OP_transpose:
        p = s->place[arg(g, r, 0)];
        p.column = p.column && keeps_last(g, r);
        return p;
    default:
        return p;
    }
}

/* ---- tails ------------------------------------------------------------------------------- */

/* One axis, and one limit that is late enough for all. */
static void set_mask(Search *s, Ref r, bool value, int64_t plus)
{
    Tails *t = s->t;
    if (s->found && t->extent != last_dim(s->g, r))
        return;
    t->plus = s->found && t->plus > plus ? t->plus : plus;
    t->extent = last_dim(s->g, r);
    s->found = true;
    t->is[r] = true;
    t->value[r] = value;
}

/* x < y, or x <= y with or_equal 1. */
static void compare(Search *s, Ref r, int or_equal)
{
    const Graph *g = s->g;
    Place x = s->place[arg(g, r, 0)], y = s->place[arg(g, r, 1)];
    if (x.column && y.bound) /* false once the column is above */
        set_mask(s, r, false, y.c - x.c + or_equal);
    else if (x.bound && y.column) /* true, likewise */
        set_mask(s, r, true, x.c - y.c + 1 - or_equal);
}

typedef struct Known {
    bool is;
    double x;
} Known;

static Known known(const Search *s, Ref r)
{
    Known k = {0};
    k.is = const_value(s->g, r, &k.x);
    if (!k.is && s->t->is[r])
        k = (Known){true, s->t->value[r]};
    return k;
}

static Known known_where(Known cond, Known x, Known y)
{
    if (cond.is)
        return cond.x != 0 ? x : y;
    return (Known){x.is && y.is && x.x == y.x, x.x};
}

/* A mask's number, or what a float of the type can be; others may be cut or wrap. */
static Known known_cast(DType t, Known x)
{
    if (dtype_is_float(t))
        return (Known){x.is, dtype_round(t, x.x)};
    return (Known){x.is && (x.x == 0 || x.x == 1), x.x};
}

static Known known_of(OpId op, DType t, const Known *x)
{
    const Known no = {0}, zero = {true, 0};
    const bool both = x[0].is && x[1].is, low = x[0].is && x[0].x == -INFINITY;
    switch (op) {
    case OP_not:
        return (Known){x[0].is, x[0].x == 0};
    case OP_neg:
        return (Known){x[0].is, -x[0].x};
    case OP_exp:
        return (Known){low, 0};
    case OP_cast:
        return known_cast(t, x[0]);
    case OP_stop_gradient:
        return x[0];
    case OP_where:
        return known_where(x[0], x[1], x[2]);
    case OP_and:
        return (x[0].is && x[0].x == 0) || (x[1].is && x[1].x == 0)
                   ? zero
                   : (Known){both, both && x[0].x != 0 && x[1].x != 0};
    case OP_or:
        return (x[0].is && x[0].x != 0) || (x[1].is && x[1].x != 0) ? (Known){true, 1}
                                                                    : (Known){both, 0};
    case OP_mul:
        return (x[0].is && x[0].x == 0) || (x[1].is && x[1].x == 0)
                   ? zero
                   : (Known){both, both ? x[0].x * x[1].x : 0};
    case OP_div:
        return x[0].is && x[0].x == 0 ? zero : no;
    case OP_add:
        return low || (x[1].is && x[1].x == -INFINITY) ? (Known){true, -INFINITY}
                                                       : (Known){both, both ? x[0].x + x[1].x : 0};
    case OP_sub:
        return low ? x[0] : (Known){both, both ? x[0].x - x[1].x : 0};
    default:
        return no;
    }
}

static void find_tail(Search *s, Ref r)
{
    const Graph *g = s->g;
    Known x[3] = {{0}}, k;
    OpId op = op_of(g, r);
    if (rank(g, r) < 1)
        return;
    if (op == OP_lt || op == OP_le) {
        compare(s, r, op == OP_le);
        return;
    }
    if (optab[op]->kind == OP_VIEW) {
        Ref of = arg(g, r, 0);
        k = (Known){keeps_last(g, r) && s->t->is[of], s->t->value[of]};
    } else {
        for (int i = 0; i < node(g, r)->n_args && i < 3; i++)
            x[i] = known(s, arg(g, r, i));
        k = optab[op]->kind == OP_POINTWISE ? known_of(op, (DType)type_of(g, r)->dtype, x)
                                            : (Known){0};
    }
    double constant;
    bool whole = !k.is || isnan(k.x) || const_value(g, r, &constant);
    s->t->is[r] = !whole && last_dim(g, r) == s->t->extent;
    s->t->value[r] = k.x;
}

/* ---- rows --------------------------------------------------------------------------------- */

/* The scan's operand is all of 0, 1, 2, .., or up to some number that is there again then: a step's
 * slice is numbers of rows, of which none is above the last one. */
static bool numbers_rows(const Graph *g, Ref x)
{
    double most;
    while (op_of(g, x) == OP_reshape ||
           (op_of(g, x) == OP_min && const_value(g, arg(g, x, 1), &most)))
        x = arg(g, x, 0);
    return op_of(g, x) == OP_iota && rank(g, x) == 1;
}

static Ref find_rows(const Graph *outer, Ref scan, const Graph *body)
{
    const Scan is = scan_of(outer, scan);
    for (Ref r = 1; r < (Ref)body->node.n; r++) {
        if (op_of(body, r) != OP_arg || !is_integer(body, r) || rank(body, r) < 1)
            continue;
        int64_t i = attr(body, r, 0)->i;
        bool sliced = i >= is.carries && i < is.carries + is.sequences;
        if (sliced && numbers_rows(outer, arg(outer, scan, (int)i)))
            return r;
    }
    return NONE;
}

/* Of max(1, rows * (step + 1) - 1 + plus), at most the extent. */
static int64_t mean_of(const Tails *t, int64_t rows, int64_t count)
{
    double sum = 0;
    for (int64_t i = 1; i <= count; i++) {
        int64_t at = rows * i - 1 + t->plus;
        at = at > t->extent ? t->extent : at < 1 ? 1 : at;
        sum += (double)at;
    }
    int64_t mean = (int64_t)(sum / (double)count + 0.5);
    return mean < 1 ? 1 : mean;
}

const Tails *tails_find(const Graph *outer, Ref scan, Arena *arena)
{
    const Graph *g = attr(outer, scan, SCAN_BODY)->body;
    const int64_t count = scan_of(outer, scan).count;
    Ref rows = find_rows(outer, scan, g);
    if (rows == NONE || count < 2 || type_elems(type_of(g, rows)) < 1)
        return NULL;
    Tails *t = NEW(arena, Tails);
    *t = (Tails){.rows = rows, .last = type_elems(type_of(g, rows)) - 1};
    t->is = NEW_ARRAY(arena, bool, g->node.n);
    t->value = NEW_ARRAY(arena, double, g->node.n);
    t->carries = scan_of(outer, scan).carries;
    t->from_zero = NEW_ARRAY(arena, bool, t->carries);
    for (int64_t i = 0; i < t->carries; i++)
        t->from_zero[i] = const_is_zero(outer, arg(outer, scan, (int)i), false);
    Search s = {.g = g, .t = t, .place = NEW_ARRAY(arena, Place, g->node.n)};
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        if (is_integer(g, r))
            s.place[r] = find_place(&s, r);
        find_tail(&s, r);
    }
    t->mean = s.found ? mean_of(t, t->last + 1, count) : 0;
    return s.found && t->mean < t->extent ? t : NULL;
}

/* ---- what is not read need not be stored ---------------------------------------------------- */

/* Address x, in a value with rows of n: the loop or DIM that is its column, or 0. */
static Val column_of(const Kernel *k, const KAff *x, int64_t n)
{
    Val column = 0;
    if (x->base % n != 0)
        return 0;
    for (int i = 0; i < x->n; i++) {
        const KInst *v = &k->inst.at[x->t[i].v];
        bool loops = v->op == KI_PAR || v->op == KI_RED || v->op == KI_DIM;
        if (x->t[i].coef % n == 0)
            continue;
        if (column != 0 || !loops || x->t[i].coef != 1 || v->imm.i != n)
            return 0;
        column = x->t[i].v;
    }
    return column;
}

/* Does the kernel read no column of the buffer beyond its limit? */
static bool reads_within(const Kernel *k, int buf, int64_t n)
{
    for (Val v = 1; v < (Val)k->inst.n; v++) {
        const KInst *i = &k->inst.at[v];
        if (i->op != KI_LOAD || k->access.at[i->aux].buf != buf)
            continue;
        Val column = column_of(k, &k->access.at[i->aux].at, n);
        uint8_t reach = k->inst.at[column].reach; /* inst 0 has none */
        bool factor = k->kind == K_CONTRACT && v < k->con.e_from;
        if (reach != K_LIMITED && !(reach == K_ZERO && factor))
            return false;
    }
    return true;
}

static bool is_rooted(const Clusters *c, Ref r)
{
    for (int i = 0; i < c->g->root.n; i++)
        if (memory_of(c->g, c->stored, c->g->root.at[i].ref) == r)
            return true;
    return false;
}

/* Does nobody read columns of the stored r beyond the limit? */
static bool is_read_within(const Clusters *c, Ref r)
{
    const int64_t n = c->tails->extent;
    if (last_dim(c->g, r) != n || is_rooted(c, r))
        return false;
    for (int i = 0; i < c->group.n; i++) {
        const Group *gr = &c->group.at[i];
        for (int a = 0; gr->kind == GROUP_SCAN && a < node(c->g, gr->anchor)->n_args; a++)
            if (memory_of(c->g, c->stored, arg(c->g, gr->anchor, a)) == r)
                return false;
        for (int o = 0; o < gr->operand.n && gr->kernel != NULL; o++) {
            const GroupOperand *x = &gr->operand.at[o];
            bool mine = x->out >= 0 && gr->out.at[x->out].ref == r; /* read after it is stored */
            if ((mine || (x->out < 0 && x->ref == r)) && !reads_within(gr->kernel, o, n))
                return false;
        }
    }
    return true;
}

static Val end_of(const Kernel *k, Val loop)
{
    Val v = loop;
    while (k->inst.at[v].op != KI_END || k->inst.at[v].aux != (int32_t)loop)
        v++;
    return v;
}

/* Is `loop` the column of all that is stored in [from, to), and is no column of that read beyond
 * the limit? */
static bool stores_unread(const Clusters *c, const Group *gr, Val loop, Val from, Val to)
{
    const Kernel *k = gr->kernel;
    bool some = false;
    for (Val v = from; v < to; v++) {
        const KInst *i = &k->inst.at[v];
        if (i->op != KI_STORE)
            continue;
        const KAccess *a = &k->access.at[i->aux];
        const GroupOperand *x = &gr->operand.at[a->buf];
        if (x->out < 0 || gr->out.at[x->out].slot >= 0 ||
            column_of(k, &a->at, c->tails->extent) != loop ||
            !is_read_within(c, gr->out.at[x->out].ref))
            return false;
        some = true;
    }
    return some;
}

static void set_limited(Clusters *c, Group *gr, Val v)
{
    Kernel *k = gr->kernel;
    const Tails *t = c->tails;
    if (!k->limit.is) {
        const Type *rows = type_of(c->g, t->rows);
        int buf = k_buf(k, rows->dtype, type_elems(rows), K_IN);
        GroupOperand o = {.ref = t->rows, .out = -1};
        vec_push(c->arena, &gr->operand, o);
        k->limit = (KLimit){true, buf, t->last, t->plus, t->mean};
    }
    k_reach(k, v, K_LIMITED);
}

static void limit_group(Clusters *c, Group *gr)
{
    const Kernel *k = gr->kernel;
    for (Val v = 1; v < (Val)k->inst.n; v++) {
        const KInst *i = &k->inst.at[v];
        if (i->imm.i != c->tails->extent)
            continue;
        if (i->op == KI_PAR && stores_unread(c, gr, v, v + 1, end_of(k, v)))
            set_limited(c, gr, v);
        else if (i->op == KI_DIM && (i->aux == K_M || i->aux == K_N) && k->con.n[i->aux] == 1 &&
                 stores_unread(c, gr, v, k->con.e_from, k->con.e_to))
            set_limited(c, gr, v);
    }
}

void limit_stores(Clusters *c)
{
    for (int i = c->order.n - 1; i >= 0; i--) {
        Group *gr = &c->group.at[c->order.at[i]];
        if (gr->kernel != NULL && gr->kind != GROUP_OPAQUE)
            limit_group(c, gr);
    }
}
