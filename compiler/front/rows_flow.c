/* How the rows of a batch pass through each op. What is not understood is lost: then the
 * model takes whole batches only. */
#include "rows.h"

#include <string.h>

static const Flow lost = {.lost = true};

static const Flow *flow(const Followed *f, Ref r)
{
    return &f->flow.at[r];
}

static const Flow *operand(const Followed *f, Ref r, int i)
{
    return flow(f, arg(f->g, r, i));
}

static bool has_rows(const Flow *x)
{
    for (int i = 0; i < MAX_RANK; i++)
        if (x->per[i] != 0)
            return true;
    return x->lost;
}

/* Draws whose rows are mixed are draws like others. */
static void soften(Flow *x, bool soft)
{
    if (soft && x->lost)
        *x = (Flow){.lost = false};
}

bool flow_same(const Flow *x, const Flow *y)
{
    for (int i = 0; i < MAX_RANK; i++)
        if (x->per[i] != y->per[i] || x->zero[i] != y->zero[i])
            return false;
    return x->lost == y->lost && x->soft == y->soft;
}

Flow flow_join(const Flow *x, const Flow *y, int rank)
{
    Flow z = *x;
    z.lost = x->lost || y->lost;
    z.soft = (x->soft || !has_rows(x)) && (y->soft || !has_rows(y)) && (x->soft || y->soft);
    for (int i = 0; i < rank; i++) {
        if (x->per[i] != 0 && y->per[i] != 0 && x->per[i] != y->per[i])
            return lost;
        z.per[i] = x->per[i] != 0 ? x->per[i] : y->per[i];
        z.zero[i] = z.per[i] != 0 && x->zero[i] && y->zero[i] && x->per[i] == y->per[i];
    }
    return z;
}

/* ---- elements at the same index ------------------------------------------ */

/* f(0) = 0 */
static bool keeps_zero(OpId op)
{
    switch (op) {
    case OP_neg:
    case OP_abs:
    case OP_sign:
    case OP_sqrt:
    case OP_relu:
    case OP_sin:
    case OP_tanh:
    case OP_erf:
    case OP_expm1:
    case OP_log1p:
    case OP_floor:
    case OP_ceil:
    case OP_round:
    case OP_cast:
    case OP_stop_gradient:
    case OP_add:
    case OP_sub:
    case OP_min:
    case OP_max:
        return true;
    default:
        return false;
    }
}

static bool is_zero_at(const Followed *f, Ref r, int i, int axis)
{
    return operand(f, r, i)->zero[axis] || const_is(f->g, arg(f->g, r, i), 0);
}

static const Mask *mask_of(const Followed *f, Ref r)
{
    for (int i = 0; i < f->mask.n; i++)
        if (f->mask.at[i].ref == r)
            return &f->mask.at[i];
    return NULL;
}

/* where(row is valid, x, y): behind the valid rows it is y. */
static Flow flow_mask(const Followed *f, Ref r, const Mask *m)
{
    Flow z = flow_join(operand(f, r, 1), operand(f, r, 2), rank(f->g, r));
    if (z.lost)
        return z;
    bool zero = const_is(f->g, arg(f->g, r, 2), 0);
    z.per[m->axis] = zero ? m->per : operand(f, r, 2)->per[m->axis];
    z.zero[m->axis] = zero;
    for (int i = 0; i < rank(f->g, r); i++)
        if (i != m->axis)
            z.zero[i] = z.per[i] != 0 && operand(f, r, 1)->zero[i] && is_zero_at(f, r, 2, i);
    return z;
}

static Flow flow_pointwise(const Followed *f, Ref r)
{
    const Graph *g = f->g;
    OpId op = op_of(g, r);
    int n = node(g, r)->n_args, first = op == OP_where;
    const Mask *m = op == OP_where ? mask_of(f, arg(g, r, 0)) : NULL;
    if (m != NULL)
        return flow_mask(f, r, m);
    Flow z = *operand(f, r, 0);
    for (int i = 1; i < n; i++)
        z = flow_join(&z, operand(f, r, i), rank(g, r));
    for (int axis = 0; axis < rank(g, r); axis++) {
        bool all = true, any = false;
        for (int i = first; i < n; i++) {
            bool zero = is_zero_at(f, r, i, axis);
            all = all && zero;
            any = any || zero;
        }
        bool zero = (keeps_zero(op) && all) || (op == OP_where && all) || (op == OP_mul && any) ||
                    (op == OP_div && is_zero_at(f, r, 0, axis));
        z.zero[axis] = z.per[axis] != 0 && zero;
    }
    return z;
}

/* ---- views --------------------------------------------------------------- */

/* One group of axes of a reshape whose sizes have the same product: rows may only run
 * along the slowest of them. */
static bool flow_group(const Flow *x, const Type *from, int a, int a_end, const Type *to, int o,
                       int o_end, Flow *z)
{
    while (a < a_end && from->dim[a] == 1)
        a++;
    while (o < o_end && to->dim[o] == 1)
        o++;
    for (int i = a + 1; i < a_end; i++)
        if (x->per[i] != 0 && from->dim[i] != 1)
            return false;
    if (a == a_end || x->per[a] == 0 || o == o_end)
        return true;
    int64_t inner = 1, outer = 1;
    for (int i = a + 1; i < a_end; i++)
        inner *= from->dim[i];
    for (int i = o + 1; i < o_end; i++)
        outer *= to->dim[i];
    int64_t per = x->per[a] * inner;
    if (outer == 0 || per % outer != 0)
        return false;
    z->per[o] = per / outer;
    z->zero[o] = x->zero[a];
    return true;
}

static Flow flow_reshape(const Followed *f, Ref r)
{
    const Type *from = type_of(f->g, arg(f->g, r, 0)), *to = type_of(f->g, r);
    const Flow *x = operand(f, r, 0);
    Flow z = {.lost = x->lost};
    int a = 0, o = 0;
    if (!has_rows(x) || type_elems(from) == 0)
        return z;
    while (a < from->rank || o < to->rank) {
        int a_from = a, o_from = o;
        int64_t in = a < from->rank ? from->dim[a++] : 1, out = o < to->rank ? to->dim[o++] : 1;
        while (in != out) {
            if (in < out && a < from->rank)
                in *= from->dim[a++];
            else if (out < in && o < to->rank)
                out *= to->dim[o++];
            else
                return lost;
        }
        if (!flow_group(x, from, a_from, a, to, o_from, o, &z))
            return lost;
    }
    return z;
}

static Flow flow_transpose(const Followed *f, Ref r)
{
    const Flow *x = operand(f, r, 0);
    Flow z = {.lost = x->lost};
    const int64_t *perm = attr(f->g, r, 0)->ints;
    for (int i = 0; i < rank(f->g, r); i++) {
        z.per[i] = x->per[perm[i]];
        z.zero[i] = x->zero[perm[i]];
    }
    return z;
}

static Flow flow_broadcast(const Followed *f, Ref r)
{
    const Flow *x = operand(f, r, 0);
    Ref from = arg(f->g, r, 0);
    int more = rank(f->g, r) - rank(f->g, from);
    Flow z = {.lost = x->lost};
    for (int i = 0; i < rank(f->g, from); i++) {
        if (x->per[i] != 0 && dim(f->g, from, i) != dim(f->g, r, i + more))
            return lost;
        z.per[i + more] = x->per[i];
        z.zero[i + more] = x->zero[i];
    }
    return z;
}

/* attr 0: the axis. Along others nothing changes. */
static Flow flow_slice(const Followed *f, Ref r)
{
    const Flow *x = operand(f, r, 0);
    int axis = (int)attr(f->g, r, 0)->i;
    bool first_rows = attr(f->g, r, 1)->i == 0 && attr(f->g, r, 3)->i == 1;
    if (x->per[axis] != 0 && !first_rows)
        return lost;
    return *x;
}

static Flow flow_pad(const Followed *f, Ref r)
{
    const Flow *x = operand(f, r, 0);
    Flow z = *x;
    if (x->per[attr(f->g, r, 0)->i] != 0)
        return lost;
    if (attr(f->g, r, 3)->f != 0)
        memset(z.zero, 0, sizeof z.zero);
    return z;
}

static Flow flow_concat(const Followed *f, Ref r)
{
    Flow z = *operand(f, r, 0);
    for (int i = 1; i < node(f->g, r)->n_args; i++)
        z = flow_join(&z, operand(f, r, i), rank(f->g, r));
    return z.per[attr(f->g, r, 0)->i] != 0 ? lost : z;
}

/* Axes from `at` on move by one. */
static Flow moved(const Flow *x, int at, int by)
{
    Flow z = {.lost = x->lost, .soft = x->soft};
    for (int i = 0; i < MAX_RANK; i++) {
        int to = i < at ? i : i + by;
        if (to >= 0 && to < MAX_RANK && !(by < 0 && i == at)) {
            z.per[to] = x->per[i];
            z.zero[to] = x->zero[i];
        }
    }
    return z;
}

static Flow flow_window(const Followed *f, Ref r)
{
    const Flow *x = operand(f, r, 0);
    int axis = (int)attr(f->g, r, 0)->i;
    if (x->per[axis] != 0)
        return lost;
    Flow z = moved(x, axis + 1, 1);
    if (attr(f->g, r, 6)->f != 0)
        memset(z.zero, 0, sizeof z.zero);
    return z;
}

/* ---- reductions and indices ---------------------------------------------- */

static Flow flow_reduce(const Followed *f, Ref r)
{
    const Flow *x = operand(f, r, 0);
    OpId op = op_of(f->g, r);
    int axis = (int)attr(f->g, r, 0)->i;
    /* Of bytes, 0 is the least: neither the largest nor the first of equals changes. */
    bool least = type_of(f->g, arg(f->g, r, 0))->dtype == U8;
    bool neutral = op == OP_sum || (least && (op == OP_reduce_max || op == OP_argmax));
    if (x->per[axis] != 0 && !(neutral && x->zero[axis]))
        return lost;
    Flow z = *x;
    z.per[axis] = 0;
    z.zero[axis] = false;
    if (op != OP_sum && op != OP_reduce_max && op != OP_reduce_min)
        memset(z.zero, 0, sizeof z.zero);
    bool keep = rank(f->g, r) == rank(f->g, arg(f->g, r, 0));
    return keep ? z : moved(&z, axis, -1);
}

static Flow flow_gather(const Followed *f, Ref r)
{
    const Flow *table = operand(f, r, 0), *index = operand(f, r, 1);
    int n = rank(f->g, arg(f->g, r, 1));
    if (table->per[0] != 0 || table->lost || index->lost)
        return lost;
    Flow z = {.lost = false};
    for (int i = 0; i < rank(f->g, r); i++)
        z.per[i] = i < n ? index->per[i] : table->per[i - n + 1];
    return z;
}

static Flow flow_scatter(const Followed *f, Ref r)
{
    const Flow *base = operand(f, r, 0), *update = operand(f, r, 2);
    int n = rank(f->g, arg(f->g, r, 1));
    if (base->per[0] != 0 || update->lost)
        return lost;
    Flow z = *base;
    for (int i = 0; i < rank(f->g, arg(f->g, r, 2)); i++) {
        if (update->per[i] == 0)
            continue;
        if (i < n && !update->zero[i])
            return lost;
        if (i >= n && z.per[i - n + 1] != 0 && z.per[i - n + 1] != update->per[i])
            return lost;
        if (i >= n)
            z.per[i - n + 1] = update->per[i];
    }
    memset(z.zero, 0, sizeof z.zero);
    return z;
}

static Flow flow_take_along(const Followed *f, Ref r)
{
    const Flow *x = operand(f, r, 0);
    int axis = (int)attr(f->g, r, 0)->i;
    if (x->per[axis] != 0)
        return lost;
    Flow z = moved(x, axis, -1), index = *operand(f, r, 1);
    memcpy(index.zero, z.zero, sizeof z.zero); /* it only chooses */
    z = flow_join(&z, &index, rank(f->g, r));
    for (int i = 0; i < rank(f->g, r); i++)
        z.zero[i] = false;
    return z;
}

static Flow flow_cumsum(const Followed *f, Ref r)
{
    const Flow *x = operand(f, r, 0);
    int axis = (int)attr(f->g, r, 0)->i;
    bool down = attr(f->g, r, 1)->i != 0;
    if (x->per[axis] != 0 && down && !x->zero[axis])
        return lost;
    Flow z = *x;
    if (!down)
        z.zero[axis] = false;
    return z;
}

/* ---- contractions -------------------------------------------------------- */

typedef struct Index {
    int64_t per;
    bool zero;
} Index;

/* What the rows of an operand say of the contraction's indices. */
static bool flow_operand(const Followed *f, Ref r, int which, Index *index)
{
    const Flow *x = operand(f, r, which);
    const MapDim *map = attr(f->g, r, 2 + which)->map;
    if (x->lost)
        return false;
    for (int i = 0; i < rank(f->g, arg(f->g, r, which)); i++) {
        if (x->per[i] == 0)
            continue;
        if (map[i].n != 1 || map[i].coef[0] != 1 || map[i].base != 0)
            return false;
        Index *to = &index[map[i].index[0]];
        if (to->per != 0 && to->per != x->per[i])
            return false;
        to->per = x->per[i];
        to->zero = to->zero || x->zero[i];
    }
    return true;
}

static Flow flow_contract(const Followed *f, Ref r)
{
    Index index[MAX_INDICES] = {{0, false}};
    int n = attr(f->g, r, 0)->n, n_out = (int)attr(f->g, r, 1)->i;
    if (!flow_operand(f, r, 0, index) || !flow_operand(f, r, 1, index))
        return lost;
    Flow z = {.lost = false};
    for (int i = 0; i < n; i++) {
        if (i >= n_out && index[i].per != 0 && !index[i].zero)
            return lost;
        if (i < n_out) {
            z.per[i] = index[i].per;
            z.zero[i] = index[i].zero;
        }
    }
    return z;
}

/* ---- scans --------------------------------------------------------------- */

static bool slice_flow(const Flow *x, Flow *out)
{
    *out = x->per[0] != 0 ? lost : moved(x, 0, -1);
    return !out->lost;
}

static const Graph *scan_body(const Graph *g, Ref r)
{
    return attr(g, r, SCAN_BODY)->body;
}

/* Follows the body with these flows of its arguments. */
static Followed *follow_body(Rows *rows, const Followed *outer, Ref r, const Flow *args)
{
    const Graph *body = scan_body(outer->g, r);
    Followed *built = rows_of(rows, body), *f = NEW(&rows->b->arena, Followed);
    f->g = body;
    f->arg = args;
    f->mask.at = built->mask.at;
    f->mask.n = built->mask.n;
    f->begun.at = built->begun.at;
    f->begun.n = built->begun.n;
    rows_follow(rows, f);
    return f;
}

static Flow result_flow(const Followed *body, int which)
{
    int n = 0;
    for (int i = 0; i < body->g->root.n; i++)
        if (body->g->root.at[i].kind == ROOT_RESULT && n++ == which)
            return *flow(body, body->g->root.at[i].ref);
    return lost;
}

/* What a carry has in one step it has in the next: until nothing is added. */
static Flow flow_scan(Rows *rows, Followed *f, Ref r)
{
    const Graph *g = f->g;
    int n = node(g, r)->n_args, carries = (int)attr(g, r, 0)->i, sequences = (int)attr(g, r, 1)->i;
    int n_results = tuple_size(g, r);
    Flow *args = NEW_ARRAY(&rows->b->arena, Flow, n);
    Flow *out = NEW_ARRAY(&rows->b->arena, Flow, n_results);
    Flow z = {.lost = false};
    for (int i = 0; i < n; i++) {
        args[i] = *operand(f, r, i);
        if (i >= carries && i < carries + sequences)
            slice_flow(operand(f, r, i), &args[i]);
        soften(&args[i], operand(f, r, i)->soft);
        z.lost = z.lost || args[i].lost;
    }
    bool changed = !z.lost;
    Followed *body = NULL;
    while (changed) {
        body = follow_body(rows, f, r, args);
        changed = false;
        for (int i = 0; i < carries; i++) {
            Flow now = result_flow(body, i);
            Flow both = flow_join(&args[i], &now, MAX_RANK);
            changed = changed || (!flow_same(&both, &args[i]) && !both.lost);
            z.lost = z.lost || both.lost;
            args[i] = both;
        }
        changed = changed && !z.lost;
    }
    for (int i = 0; i < n_results && !z.lost; i++) {
        Flow res = result_flow(body, i);
        out[i] = i < carries ? args[i] : moved(&res, 0, 1);
        out[i].soft = i < carries ? args[i].soft : res.soft;
    }
    vec_push(&rows->b->arena, &f->scan, r);
    vec_push(&rows->b->arena, &f->result, z.lost ? NULL : out);
    return z;
}

static Flow flow_pick(const Followed *f, Ref r)
{
    Ref from = arg(f->g, r, 0);
    int64_t which = attr(f->g, r, 0)->i;
    if (op_of(f->g, from) == OP_tuple)
        return *operand(f, from, (int)which);
    for (int i = 0; i < f->scan.n; i++)
        if (f->scan.at[i] == from)
            return f->result.at[i] == NULL ? *flow(f, from) : f->result.at[i][which];
    return lost;
}

/* An argument of a body; while the body is built, a carry is taken to be as it begins. */
static Flow flow_arg(Rows *rows, const Followed *f, Ref r)
{
    int i = (int)attr(f->g, r, 0)->i;
    if (f->arg != NULL)
        return f->arg[i];
    const Level *l = f->level;
    if (l == NULL)
        return lost;
    Followed *outer = rows_of(rows, l->around);
    rows_follow(rows, outer);
    if (l->index != NONE && i == l->fixed - 1)
        return (Flow){.lost = false};
    Ref from = i < l->fixed ? l->given[i] : l->captured.at[i - l->fixed];
    Flow z = *flow(outer, from);
    if (i >= l->carries && i < l->fixed)
        slice_flow(flow(outer, from), &z);
    soften(&z, flow(outer, from)->soft);
    return z;
}

static Flow flow_input(const Rows *rows, const Followed *f, Ref r)
{
    Flow z = {.lost = false};
    int64_t i = attr(f->g, r, 0)->i;
    const Pinned *p = &rows->b->m->pinned;
    if (i < p->input.n && p->input.at[i].batch_axis == 0)
        z.per[0] = 1;
    return z;
}

/* ---- all ----------------------------------------------------------------- */

static bool operands_lost(const Followed *f, Ref r)
{
    for (int i = 0; i < node(f->g, r)->n_args; i++)
        if (arg(f->g, r, i) != NONE && operand(f, r, i)->lost)
            return true;
    return false;
}

static bool is_begun(const Followed *f, Ref r)
{
    for (int i = 0; i < f->begun.n; i++)
        if (f->begun.at[i] == r)
            return true;
    return false;
}

static Flow flow_op(Rows *rows, Followed *f, Ref r)
{
    if (is_begun(f, r))
        return (Flow){.per = {1}, .soft = true};
    switch (op_of(f->g, r)) {
    case OP_input:
        return flow_input(rows, f, r);
    case OP_arg:
        return flow_arg(rows, f, r);
    case OP_reshape:
        return flow_reshape(f, r);
    case OP_transpose:
        return flow_transpose(f, r);
    case OP_broadcast:
        return flow_broadcast(f, r);
    case OP_slice:
        return flow_slice(f, r);
    case OP_pad:
        return flow_pad(f, r);
    case OP_concat:
        return flow_concat(f, r);
    case OP_window:
        return flow_window(f, r);
    case OP_sum:
    case OP_prod:
    case OP_reduce_max:
    case OP_reduce_min:
    case OP_all:
        return flow_reduce(f, r);
    case OP_argmax:
    case OP_argmin:
        return flow_reduce(f, r);
    case OP_gather:
        return flow_gather(f, r);
    case OP_scatter_add:
        return flow_scatter(f, r);
    case OP_take_along:
        return flow_take_along(f, r);
    case OP_cumsum:
        return flow_cumsum(f, r);
    case OP_contract:
        return flow_contract(f, r);
    case OP_scan:
        return flow_scan(rows, f, r);
    case OP_custom_vjp:
    case OP_adjoint:
        return *operand(f, r, 0);
    case OP_pick:
        return flow_pick(f, r);
    case OP_tuple:
        return (Flow){.lost = false};
    default:
        return optab[op_of(f->g, r)]->kind == OP_POINTWISE && node(f->g, r)->n_args > 0
                   ? flow_pointwise(f, r)
                   : (Flow){.lost = false};
    }
}

Flow flow_of_node(Rows *rows, Followed *f, Ref r)
{
    OpId op = op_of(f->g, r);
    if (op != OP_tuple && op != OP_pick && operands_lost(f, r))
        return lost;
    Flow z = flow_op(rows, f, r);
    bool any = false, soft = true;
    for (int i = 0; i < node(f->g, r)->n_args; i++) {
        const Flow *x = operand(f, r, i);
        any = any || has_rows(x);
        soft = soft && (x->soft || !has_rows(x));
    }
    if (any) {
        soften(&z, soft);
        z.soft = soft && has_rows(&z);
    }
    return z;
}
