#include "shard.h"

#include <string.h>

/* A view of a parameter that is not split yet: which of its axes each axis is. */
typedef struct View {
    int32_t slot; /* -1: it is none */
    int8_t axis[MAX_RANK];
} View;

typedef struct Sharding {
    const Graph *g;
    const Pinned *pin;
    Shard *s;
    View *view;    /* by Ref */
    bool *decided; /* by slot */
} Sharding;

int64_t shard_bytes(const Shard *s, const Graph *g, Ref r)
{
    int64_t bytes = type_bytes(type_of(g, r));
    return s->axis[r] == WHOLE ? bytes : bytes / s->ways;
}

static bool divides(const Sharding *x, int64_t extent)
{
    return extent > 0 && extent % x->s->ways == 0;
}

/* The axis of operand i, of which views of a parameter follow what was decided. */
static int axis_of(const Sharding *x, Ref r)
{
    const View *v = &x->view[r];
    if (v->slot < 0)
        return x->s->axis[r];
    for (int i = 0; i < rank(x->g, r); i++)
        if (x->s->slot_axis[v->slot] != WHOLE && v->axis[i] == x->s->slot_axis[v->slot])
            return i;
    return WHOLE;
}

static int operand_axis(const Sharding *x, Ref r, int i)
{
    return axis_of(x, arg(x->g, r, i));
}

static bool is_open(const Sharding *x, Ref r)
{
    return x->view[r].slot >= 0 && !x->decided[x->view[r].slot];
}

/* Splits the parameter behind r along r's axis, if it divides. */
static bool decide(Sharding *x, Ref r, int axis)
{
    const View *v = &x->view[r];
    if (!is_open(x, r) || axis < 0 || v->axis[axis] < 0)
        return false;
    int64_t extent = x->pin->slot.at[v->slot].type.dim[v->axis[axis]];
    x->decided[v->slot] = true;
    if (!divides(x, extent)) {
        x->s->why[v->slot] = arena_printf(x->pin->arena, "%lld is no multiple of %lld",
                                          (long long)extent, (long long)x->s->ways);
        return false;
    }
    x->s->slot_axis[v->slot] = v->axis[axis];
    return true;
}

static void gather_operand(Sharding *x, Ref r, int i)
{
    if (operand_axis(x, r, i) != WHOLE)
        x->s->gathered[r] += type_bytes(type_of(x->g, arg(x->g, r, i)));
}

static int gather_all(Sharding *x, Ref r)
{
    for (int i = 0; i < node(x->g, r)->n_args; i++)
        if (arg(x->g, r, i) != NONE)
            gather_operand(x, r, i);
    return WHOLE;
}

static int sum_over_ranks(Sharding *x, Ref r)
{
    x->s->reduced[r] += type_bytes(type_of(x->g, r));
    return WHOLE;
}

/* ---- contractions ------------------------------------------------------------------- */

static int index_of(const Sharding *x, Ref r, int which, int axis)
{
    const MapDim *m = axis < 0 ? NULL : &attr(x->g, r, CONTRACT_X + which)->map[axis];
    return m != NULL && m->n == 1 && m->coef[0] == 1 && m->base == 0 ? m->index[0] : -1;
}

/* The axis of the operand that index i walks alone. */
static int axis_at(const Sharding *x, Ref r, int which, int i)
{
    for (int a = 0; a < rank(x->g, arg(x->g, r, which)); a++)
        if (i >= 0 && index_of(x, r, which, a) == i)
            return a;
    return -1;
}

static bool reads_index(const Sharding *x, Ref r, int which, int i)
{
    const Attr *map = attr(x->g, r, CONTRACT_X + which);
    for (int a = 0; a < map->n; a++)
        for (int t = 0; t < map->map[a].n; t++)
            if (map->map[a].index[t] == i)
                return true;
    return false;
}

/* By columns: the longest axis of the weight that is one of the result's and not the other's. */
static int column_axis(const Sharding *x, Ref r, int which)
{
    Ref w = arg(x->g, r, which);
    int best = -1;
    for (int a = 0; a < rank(x->g, w); a++) {
        int i = index_of(x, r, which, a);
        bool column =
            i >= 0 && i < attr(x->g, r, CONTRACT_N_OUT)->i && !reads_index(x, r, 1 - which, i);
        bool better = best < 0 ||
                      (divides(x, dim(x->g, w, a)) && !divides(x, dim(x->g, w, best))) ||
                      (divides(x, dim(x->g, w, a)) == divides(x, dim(x->g, w, best)) &&
                       dim(x->g, w, a) > dim(x->g, w, best));
        if (column && better)
            best = a;
    }
    return best;
}

static int shard_contract(Sharding *x, Ref r)
{
    int index[2];
    for (int which = 0; which < 2; which++) {
        Ref w = arg(x->g, r, which);
        if (!is_open(x, w))
            continue;
        int other = index_of(x, r, 1 - which, operand_axis(x, r, 1 - which));
        int rows = axis_at(x, r, which, other);
        decide(x, w, rows >= 0 ? rows : other < 0 ? column_axis(x, r, which) : -1);
    }
    for (int which = 0; which < 2; which++) {
        index[which] = index_of(x, r, which, operand_axis(x, r, which));
        if (index[which] < 0)
            gather_operand(x, r, which);
    }
    if (index[0] >= 0 && index[1] >= 0 && index[0] != index[1]) {
        gather_operand(x, r, 1);
        index[1] = -1;
    }
    int i = index[0] >= 0 ? index[0] : index[1];
    if (i < 0)
        return WHOLE;
    return i < attr(x->g, r, CONTRACT_N_OUT)->i ? i : sum_over_ranks(x, r);
}

/* ---- elements at the same index, views ------------------------------------------------ */

static int shard_pointwise(Sharding *x, Ref r)
{
    int axis = WHOLE;
    for (int i = 0; i < node(x->g, r)->n_args; i++) {
        int own = operand_axis(x, r, i);
        if (axis == WHOLE)
            axis = own;
        else if (own != WHOLE && own != axis)
            gather_operand(x, r, i);
    }
    for (int i = 0; i < node(x->g, r)->n_args && axis != WHOLE; i++)
        decide(x, arg(x->g, r, i), axis); /* a bias goes with the columns */
    return axis;
}

/* The axis of `to` at which the same elements are split evenly; WHOLE: none is. */
static int reshaped_axis(const Sharding *x, const Type *from, int axis, const Type *to)
{
    int64_t before = 1, at = 1;
    for (int i = 0; i < axis; i++)
        before *= from->dim[i];
    for (int i = 0; i < to->rank; i++) {
        if (at == before && to->dim[i] > 1)
            return divides(x, to->dim[i]) ? i : WHOLE;
        at *= to->dim[i];
    }
    return WHOLE;
}

static int shard_reshape(Sharding *x, Ref r)
{
    int axis = operand_axis(x, r, 0);
    if (axis == WHOLE)
        return WHOLE;
    int to = reshaped_axis(x, type_of(x->g, arg(x->g, r, 0)), axis, type_of(x->g, r));
    return to != WHOLE ? to : gather_all(x, r);
}

static int shard_transpose(Sharding *x, Ref r)
{
    int axis = operand_axis(x, r, 0);
    for (int i = 0; i < rank(x->g, r) && axis != WHOLE; i++)
        if (attr(x->g, r, 0)->ints[i] == axis)
            return i;
    return WHOLE;
}

static int shard_broadcast(Sharding *x, Ref r)
{
    int axis = operand_axis(x, r, 0);
    return axis == WHOLE ? WHOLE : axis + rank(x->g, r) - rank(x->g, arg(x->g, r, 0));
}

/* Of an axis that is made of equal pieces (queries, keys, values), each rank has a part of every
 * one. */
static int shard_slice(Sharding *x, Ref r)
{
    enum { AXIS, START, SIZE, STEP };
    int axis = operand_axis(x, r, 0);
    const Attr *a = attr(x->g, r, 0);
    if (axis == WHOLE || a[AXIS].i != axis)
        return axis;
    int64_t whole = dim(x->g, arg(x->g, r, 0), axis);
    bool piece = a[STEP].i == 1 && a[SIZE].i > 0 && whole % a[SIZE].i == 0 &&
                 a[START].i % a[SIZE].i == 0 && divides(x, a[SIZE].i);
    return piece ? axis : gather_all(x, r);
}

static int shard_concat(Sharding *x, Ref r)
{
    int axis = operand_axis(x, r, 0), along = (int)attr(x->g, r, 0)->i;
    for (int i = 1; i < node(x->g, r)->n_args; i++)
        if (operand_axis(x, r, i) != axis)
            return gather_all(x, r);
    bool even = axis != along || divides(x, dim(x->g, r, along));
    return even ? axis : gather_all(x, r);
}

/* What works along attr 0, the axis, and adds `more` axes behind it. */
static int shard_along(Sharding *x, Ref r, int more)
{
    int axis = operand_axis(x, r, 0), along = (int)attr(x->g, r, 0)->i;
    if (axis == along)
        return gather_all(x, r);
    return axis > along ? axis + more : axis;
}

static int shard_reduce(Sharding *x, Ref r)
{
    int axis = operand_axis(x, r, 0), along = (int)attr(x->g, r, 0)->i;
    bool keep = rank(x->g, r) == rank(x->g, arg(x->g, r, 0));
    if (axis == along)
        return sum_over_ranks(x, r);
    return axis > along && !keep ? axis - 1 : axis;
}

/* A table that is split by its rows gives a row on one rank and nothing on the others. */
static int shard_gather(Sharding *x, Ref r)
{
    decide(x, arg(x->g, r, 0), 0);
    gather_operand(x, r, 1);
    int axis = operand_axis(x, r, 0);
    if (axis == 0)
        return sum_over_ranks(x, r);
    return axis == WHOLE ? WHOLE : axis - 1 + rank(x->g, arg(x->g, r, 1));
}

static int shard_op(Sharding *x, Ref r)
{
    switch (op_of(x->g, r)) {
    case OP_contract:
        return shard_contract(x, r);
    case OP_reshape:
        return shard_reshape(x, r);
    case OP_transpose:
        return shard_transpose(x, r);
    case OP_broadcast:
        return shard_broadcast(x, r);
    case OP_slice:
        return shard_slice(x, r);
    case OP_concat:
        return shard_concat(x, r);
    case OP_pad:
    case OP_cumsum:
        return shard_along(x, r, 0);
    case OP_window:
        return shard_along(x, r, 1);
    case OP_gather:
        return shard_gather(x, r);
    case OP_take_along: /* of a whole index: each rank has it of some rows */
        return shard_reduce(x, r);
    case OP_custom_vjp:
    case OP_adjoint:
        return operand_axis(x, r, 0);
    default:
        break;
    }
    OpKind kind = optab[op_of(x->g, r)]->kind;
    if (kind == OP_REDUCE)
        return shard_reduce(x, r);
    return kind == OP_POINTWISE ? shard_pointwise(x, r) : gather_all(x, r);
}

/* Views of parameters that are nothing else. */
static View view_of(const Sharding *x, Ref r, const int32_t *slot_of)
{
    View none = {.slot = -1}, v = none;
    OpId op = op_of(x->g, r);
    int n = rank(x->g, r);
    if (slot_of[r] >= 0 && x->pin->slot.at[slot_of[r]].kind == SLOT_PARAM) {
        v.slot = slot_of[r];
        for (int i = 0; i < n; i++)
            v.axis[i] = (int8_t)i;
        return v;
    }
    Ref from = node(x->g, r)->n_args > 0 ? arg(x->g, r, 0) : NONE;
    if (from == NONE || x->view[from].slot < 0)
        return none;
    const View *f = &x->view[from];
    v.slot = f->slot;
    if (op == OP_cast)
        return *f;
    for (int i = 0; i < n; i++)
        v.axis[i] = -1;
    if (op == OP_transpose) {
        for (int i = 0; i < n; i++)
            v.axis[i] = f->axis[attr(x->g, r, 0)->ints[i]];
        return v;
    }
    int more = n - rank(x->g, from);
    if (op == OP_broadcast) {
        for (int i = more; i < n; i++)
            v.axis[i] =
                dim(x->g, r, i) == dim(x->g, from, i - more) ? f->axis[i - more] : (int8_t)-1;
        return v;
    }
    if (op != OP_reshape)
        return none;
    for (int i = 0, k = 0; i < n; i++) { /* axes of 1 come and go */
        while (k < rank(x->g, from) && dim(x->g, from, k) == 1 && dim(x->g, r, i) != 1)
            k++;
        if (k < rank(x->g, from) && dim(x->g, from, k) == dim(x->g, r, i))
            v.axis[i] = f->axis[k++];
        else if (dim(x->g, r, i) != 1)
            return none;
    }
    return v;
}

Shard *shard(const Graph *g, const int32_t *slot_of, const Pinned *pin, int64_t ways, Arena *a)
{
    Shard *s = NEW(a, Shard);
    *s = (Shard){.ways = ways,
                 .axis = NEW_ARRAY(a, int, g->node.n),
                 .slot_axis = NEW_ARRAY(a, int, pin->slot.n),
                 .why = NEW_ARRAY(a, const char *, pin->slot.n),
                 .reduced = NEW_ARRAY(a, int64_t, g->node.n),
                 .gathered = NEW_ARRAY(a, int64_t, g->node.n)};
    Sharding x = {.g = g, .pin = pin, .s = s};
    x.view = NEW_ARRAY(a, View, g->node.n);
    x.decided = NEW_ARRAY(a, bool, pin->slot.n);
    for (int i = 0; i < pin->slot.n; i++)
        s->slot_axis[i] = WHOLE;
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        x.view[r] = view_of(&x, r, slot_of);
        bool source = optab[op_of(g, r)]->kind == OP_SOURCE || x.view[r].slot >= 0;
        s->axis[r] = ways == 1 || source ? WHOLE : shard_op(&x, r);
    }
    for (Ref r = 1; r < (Ref)g->node.n; r++) /* decided by a later op */
        if (x.view[r].slot >= 0)
            s->axis[r] = axis_of(&x, r);
    for (int i = 0; i < pin->slot.n; i++)
        if (ways > 1 && pin->slot.at[i].kind == SLOT_PARAM && !x.decided[i] && s->why[i] == NULL &&
            pin->slot.at[i].type.rank >= 2)
            s->why[i] = "no product splits it";
    return s;
}
