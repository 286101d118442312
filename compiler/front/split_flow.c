/* How the parts of a batch pass through each op. */
#include "split.h"

#include <math.h>
#include <string.h>

static const Part each = {.kind = PART_EACH};

static const Part *operand(const Pair *p, Ref r, int i)
{
    return &p->part[arg(p->whole, r, i)];
}

static int operand_axis(const Pair *p, Ref r, int i)
{
    return row_axis(p, arg(p->whole, r, i));
}

/* What the model asks of the op, but for sizes. */
static bool same_settings(const Pair *p, Ref r)
{
    OpId op = op_of(p->whole, r);
    for (int i = 0; i < op_attrs(optab[op]); i++)
        if (strcmp(optab[op]->attrs[i].name, "shape") != 0 &&
            optab[op]->attrs[i].kind != ATTR_BODY && !same_attr(p, r, i))
            return false;
    return true;
}

static Part sized(const Pair *p, Ref r)
{
    return mixed(p, r, "depends on the size of `batch`");
}

static Part rows_meet(const Pair *p, Ref r)
{
    return mixed(p, r, "reads several rows of the batch at once");
}

static Part not_linear(const Pair *p, Ref r)
{
    return mixed(p, r, "is not linear in a sum or mean over the rows of the batch");
}

static bool is_plain(const Part *x)
{
    return x->kind == PART_EACH && x->power == 0;
}

/* Of x + y, and of a choice of the two. What is the same in all micro-batches is the mean of
 * itself. */
static Part join(const Pair *p, Ref r, const Part *x, const Part *y)
{
    if (x->kind == PART_MIXED || y->kind == PART_MIXED)
        return x->kind == PART_MIXED ? *x : *y;
    if (x->zero || y->zero)
        return x->zero ? *y : *x;
    Part a = *x, b = *y;
    if (a.kind != b.kind && row_axis(p, r) == NO_ROWS) {
        Part *same = a.kind == PART_EACH ? &a : &b;
        *same = (Part){.kind = PART_SUM, .power = same->power - 1};
    }
    if (a.kind == b.kind && a.power == b.power)
        return a;
    return mixed(p, r, "adds values that grow with the number of rows in different ways");
}

static Part join_from(const Pair *p, Ref r, int first)
{
    Part x = *operand(p, r, first);
    for (int i = first + 1; i < node(p->whole, r)->n_args; i++)
        x = join(p, r, &x, operand(p, r, i));
    return x;
}

/* ---- sources --------------------------------------------------------------------- */

static Part part_across(const Pair *p, Ref r, int64_t which)
{
    for (int i = 0; i < p->whole->root.n; i++) {
        const Root *root = &p->whole->root.at[i];
        if (root->kind != ROOT_OTHER || which-- > 0)
            continue;
        const Part *x = &p->part[root->ref];
        return is_mean(p, root->ref) ? each : x->kind == PART_MIXED ? *x : sized(p, r);
    }
    return sized(p, r);
}

static Part part_input(const Pair *p, Ref r)
{
    int64_t i = attr(p->whole, r, 0)->i;
    const Pinned *pin = &p->build->m->pinned;
    if (i >= pin->input.n)
        return part_across(p, r, ACROSS_INPUT - i);
    bool rows = pin->input.at[i].batch_axis == 0;
    if (row_axis(p, r) == (rows ? 0 : NO_ROWS))
        return each;
    return mixed(p, r, "reads an input of which `batch` is not the first size alone");
}

static double number(const Graph *g, Ref r)
{
    const Attr *a = attr(g, r, 1);
    return a->kind == ATTR_FLOAT ? a->f : (double)a->i;
}

/* The same. Where all rows are there, also so many times as much as the batch is larger: its
 * size, or one over it. */
static Part part_const(const Pair *p, Ref r)
{
    enum { MOST = 3 };
    double w = number(p->whole, r), m = number(p->micro, r), k = (double)p->split;
    if (w == m || (isnan(w) && isnan(m)))
        return (Part){.kind = PART_EACH, .zero = w == 0};
    for (int power = -MOST; power <= MOST && !p->counts_rows; power++)
        if (fabs(m * pow(k, power) - w) <= 1e-15 * fabs(w))
            return (Part){.kind = PART_EACH, .power = power};
    return sized(p, r);
}

static Part part_slot(const Pair *p, Ref r)
{
    bool rows = attr(p->whole, r, 0)->i == p->build->m->pinned.rows && p->counts_rows;
    return (Part){.kind = PART_EACH, .power = rows};
}

static Part part_iota(const Pair *p, Ref r)
{
    enum { AXIS = 2 };
    bool rows = attr(p->whole, r, AXIS)->i == row_axis(p, r);
    return (Part){.kind = rows ? PART_PLACE : PART_EACH};
}

/* Elements of rows are drawn one by one in either. First values are drawn once. */
static Part part_draw(const Pair *p, Ref r)
{
    for (int i = 0; i < node(p->whole, r)->n_args; i++)
        if (!is_plain(operand(p, r, i)))
            return sized(p, r);
    if (row_axis(p, r) >= 0 || p->build->entry == ENTRY_INIT)
        return each;
    return mixed(p, r, "draws once for all rows of the batch");
}

/* ---- elements at the same index ---------------------------------------------------- */

static Part part_product(const Pair *p, Ref r, int sign)
{
    const Part *x = operand(p, r, 0), *y = operand(p, r, 1);
    bool sums = x->kind == PART_SUM && y->kind == PART_SUM;
    if (x->zero || (y->zero && sign > 0))
        return (Part){.kind = PART_EACH, .zero = true};
    if (sums || (sign < 0 && y->kind == PART_SUM))
        return not_linear(p, r);
    PartKind kind = x->kind == PART_SUM || y->kind == PART_SUM ? PART_SUM : PART_EACH;
    return (Part){.kind = kind, .power = x->power + sign * y->power};
}

/* f(c x) = c f(x) for c > 0; `scales`: as much, or (a sign, a comparison) not at all. */
static Part part_homogeneous(const Pair *p, Ref r, bool scales)
{
    Part x = join_from(p, r, 0);
    if (x.kind == PART_PLACE)
        return rows_meet(p, r);
    if (x.kind == PART_SUM)
        return not_linear(p, r);
    if (x.kind == PART_EACH && !scales)
        x = each;
    return x;
}

/* place < rows * per: the rows that are there, as rows_mask() asks for them. */
static bool is_mask(const Pair *p, Ref r)
{
    const Graph *g = p->whole;
    Ref place = arg(g, r, 0), end = arg(g, r, 1);
    int axis = operand_axis(p, r, 0);
    double per = 1;
    if (operand(p, r, 0)->kind != PART_PLACE || op_of(g, end) != OP_broadcast)
        return false;
    end = arg(g, end, 0);
    if (op_of(g, end) == OP_mul && const_value(g, arg(g, end, 1), &per))
        end = arg(g, end, 0);
    bool rows = op_of(g, end) == OP_slot || op_of(g, end) == OP_arg;
    return rows && p->part[end].kind == PART_EACH && p->part[end].power == 1 && axis >= 0 &&
           per * (double)p->build->m->batch == (double)dim(g, place, axis);
}

static Part part_plain(const Pair *p, Ref r)
{
    for (int i = 0; i < node(p->whole, r)->n_args; i++) {
        if (operand(p, r, i)->kind == PART_SUM)
            return not_linear(p, r);
        if (operand(p, r, i)->power != 0)
            return sized(p, r);
    }
    return each;
}

static Part part_cast(const Pair *p, Ref r)
{
    bool to_float = dtype_is_float(type_of(p->whole, r)->dtype);
    return to_float ? *operand(p, r, 0) : part_plain(p, r);
}

static Part part_where(const Pair *p, Ref r)
{
    if (!is_plain(operand(p, r, 0)))
        return not_linear(p, r);
    return join_from(p, r, 1);
}

static Part part_pointwise(const Pair *p, Ref r)
{
    switch (op_of(p->whole, r)) {
    case OP_add:
    case OP_sub:
        return join_from(p, r, 0);
    case OP_neg:
    case OP_stop_gradient:
        return *operand(p, r, 0);
    case OP_mul:
        return part_product(p, r, 1);
    case OP_div:
        return part_product(p, r, -1);
    case OP_abs:
    case OP_relu:
    case OP_min:
    case OP_max:
        return part_homogeneous(p, r, true);
    case OP_lt:
        return is_mask(p, r) ? each : part_homogeneous(p, r, false);
    case OP_sign:
    case OP_eq:
    case OP_ne:
    case OP_le:
        return part_homogeneous(p, r, false);
    case OP_cast:
        return part_cast(p, r);
    case OP_where:
        return part_where(p, r);
    default:
        return part_plain(p, r);
    }
}

/* ---- views --------------------------------------------------------------------------- */

/* What comes to one row from all of them is another sum in each micro-batch. */
static Part part_broadcast(const Pair *p, Ref r)
{
    const Part *x = operand(p, r, 0);
    int from = operand_axis(p, r, 0), more = rank(p->whole, r);
    more -= rank(p->whole, arg(p->whole, r, 0));
    if (x->zero || (from == NO_ROWS && x->kind == PART_EACH))
        return *x;
    if (from >= 0)
        return row_axis(p, r) == from + more ? *x : rows_meet(p, r);
    if (row_axis(p, r) == NO_ROWS)
        return *x;
    return mixed(p, r, "gives each row a sum or mean over the rows of the batch");
}

/* Parts stay together if as many elements stand before the axis of the rows. */
static Part part_reshape(const Pair *p, Ref r)
{
    int from = operand_axis(p, r, 0), to = row_axis(p, r);
    const Type *x = type_of(p->micro, arg(p->micro, r, 0)), *y = type_of(p->micro, r);
    if (from == NO_ROWS || (to >= 0 && type_elems_before(x, from) == type_elems_before(y, to)))
        return *operand(p, r, 0);
    return rows_meet(p, r);
}

/* Something along attr 0, the axis; `fill` is put beside x. */
static Part part_along(const Pair *p, Ref r, double fill)
{
    const Part *x = operand(p, r, 0);
    if (operand_axis(p, r, 0) == attr(p->whole, r, 0)->i)
        return rows_meet(p, r);
    if (fill == 0 || is_plain(x))
        return fill == 0 ? *x : each;
    return not_linear(p, r);
}

static Part part_concat(const Pair *p, Ref r)
{
    if (row_axis(p, r) == attr(p->whole, r, 0)->i)
        return rows_meet(p, r);
    return join_from(p, r, 0);
}

/* ---- reductions and indices ------------------------------------------------------------ */

static Part part_sum(const Pair *p, Ref r)
{
    Part x = *operand(p, r, 0);
    if (operand_axis(p, r, 0) == attr(p->whole, r, REDUCE_AXIS)->i && !x.zero)
        x.kind = PART_SUM;
    return x;
}

static Part part_reduce(const Pair *p, Ref r)
{
    if (operand_axis(p, r, 0) == attr(p->whole, r, REDUCE_AXIS)->i)
        return rows_meet(p, r);
    OpId op = op_of(p->whole, r);
    bool scales = op == OP_reduce_max || op == OP_reduce_min;
    return scales ? part_homogeneous(p, r, true) : part_plain(p, r);
}

static Part part_gather(const Pair *p, Ref r)
{
    const Part *table = operand(p, r, 0), *index = operand(p, r, 1);
    if (operand_axis(p, r, 0) == 0)
        return rows_meet(p, r);
    if (table->kind == PART_SUM || !is_plain(index))
        return not_linear(p, r);
    return *table;
}

static Part part_scatter(const Pair *p, Ref r)
{
    const Part *base = operand(p, r, 0), *index = operand(p, r, 1);
    Part more = *operand(p, r, 2);
    int axis = operand_axis(p, r, 2);
    if (operand_axis(p, r, 0) == 0 || !is_plain(index))
        return rows_meet(p, r);
    if (axis >= 0 && axis < rank(p->whole, arg(p->whole, r, 1)) && !more.zero)
        more.kind = PART_SUM;
    return join(p, r, base, &more);
}

static Part part_take_along(const Pair *p, Ref r)
{
    const Part *x = operand(p, r, 0);
    if (operand_axis(p, r, 0) == attr(p->whole, r, 0)->i)
        return rows_meet(p, r);
    if (x->kind == PART_SUM || !is_plain(operand(p, r, 1)))
        return not_linear(p, r);
    return *x;
}

/* ---- contractions --------------------------------------------------------------------- */

static bool is_row_index(const Pair *p, Ref r, int i)
{
    return attr(p->whole, r, CONTRACT_EXTENT)->ints[i] !=
           attr(p->micro, r, CONTRACT_EXTENT)->ints[i];
}

static bool same_map_dim(const MapDim *x, const MapDim *y)
{
    size_t n = (size_t)x->n;
    return x->base == y->base && x->n == y->n &&
           memcmp(x->index, y->index, n * sizeof *x->index) == 0 &&
           memcmp(x->coef, y->coef, n * sizeof *x->coef) == 0;
}

/* The axis of the operand's rows is walked by one index, row by row, and nothing else is. */
static bool walks_rows(const Pair *p, Ref r, int which)
{
    const Attr *w = attr(p->whole, r, CONTRACT_X + which),
               *m = attr(p->micro, r, CONTRACT_X + which);
    int axis = operand_axis(p, r, which);
    for (int i = 0; i < w->n; i++) {
        const MapDim *d = &w->map[i];
        if (!same_map_dim(d, &m->map[i]))
            return false;
        bool alone = d->n == 1 && d->coef[0] == 1 && d->base == 0;
        for (int t = 0; t < d->n; t++)
            if (is_row_index(p, r, d->index[t]) != (i == axis) || (i == axis && !alone))
                return false;
        if (i == axis && d->n == 0)
            return false;
    }
    return axis != OTHER_ROWS;
}

static Part part_contract(const Pair *p, Ref r)
{
    Part x = part_product(p, r, 1);
    const Attr *w = attr(p->whole, r, CONTRACT_EXTENT), *m = attr(p->micro, r, CONTRACT_EXTENT);
    int n_rows = 0;
    bool summed = false;
    if (w->n != m->n || !same_attr(p, r, CONTRACT_N_OUT) || !walks_rows(p, r, 0) ||
        !walks_rows(p, r, 1))
        return rows_meet(p, r);
    for (int i = 0; i < w->n; i++)
        if (is_row_index(p, r, i)) {
            n_rows++;
            summed = i >= attr(p->whole, r, CONTRACT_N_OUT)->i;
        }
    if (n_rows > 1)
        return rows_meet(p, r);
    if (n_rows == 0 || x.zero || x.kind == PART_MIXED)
        return x;
    if (x.kind == PART_SUM)
        return not_linear(p, r);
    return (Part){.kind = summed ? PART_SUM : PART_EACH, .power = x.power};
}

/* ---- bodies ---------------------------------------------------------------------------- */

/* The parts of the body's results, given those of its arguments; NULL: it is another body. */
static Part *follow_body(const Pair *outer, const Graph *w, const Graph *m, const Part *given)
{
    Pair p = *outer;
    p.whole = w;
    p.micro = m;
    p.given = given;
    memset(&p.scan, 0, sizeof p.scan);
    if (!same_graph(&p))
        return NULL;
    follow_parts(&p);
    Part *result = NEW_ARRAY(&p.build->arena, Part, w->root.n + 1);
    int n = 0;
    for (int i = 0; i < w->root.n; i++)
        if (w->root.at[i].kind == ROOT_RESULT)
            result[n++] = p.part[w->root.at[i].ref];
    return result;
}

/* What a carry is in one step it is in the next: until nothing changes. */
static Part part_scan(Pair *p, Ref r)
{
    Scan s = scan_of(p->whole, r);
    int n = node(p->whole, r)->n_args;
    Part *given = NEW_ARRAY(&p->build->arena, Part, n + 1), *result = NULL;
    for (int i = 0; i < n; i++) {
        given[i] = *operand(p, r, i);
        if (i >= s.carries && i < s.carries + s.sequences && operand_axis(p, r, i) == 0)
            return rows_meet(p, r);
    }
    for (bool changed = true; changed;) {
        const Graph *w = attr(p->whole, r, SCAN_BODY)->body;
        result = follow_body(p, w, attr(p->micro, r, SCAN_BODY)->body, given);
        changed = false;
        for (int i = 0; i < s.carries && result != NULL; i++) {
            Part both = join(p, arg(p->whole, r, i), &given[i], &result[i]);
            changed = changed || both.kind != given[i].kind || both.power != given[i].power ||
                      both.zero != given[i].zero;
            given[i] = both;
        }
    }
    if (result == NULL)
        return sized(p, r);
    memcpy(result, given, sizeof *given * (size_t)s.carries);
    vec_push(&p->build->arena, &p->scan, ((ScanParts){r, result}));
    return each;
}

static Part part_pick(const Pair *p, Ref r)
{
    Ref from = arg(p->whole, r, 0);
    int64_t which = attr(p->whole, r, 0)->i;
    if (op_of(p->whole, from) == OP_tuple)
        return *operand(p, from, (int)which);
    for (int i = 0; i < p->scan.n; i++)
        if (p->scan.at[i].scan == from)
            return p->scan.at[i].result[which];
    return *operand(p, r, 0);
}

/* The cotangent of a value: the loss is a mean over the micro-batches. */
static Part cotangent(const Pair *p, Ref r)
{
    return (Part){.kind = row_axis(p, r) == NO_ROWS ? PART_SUM : PART_EACH, .power = -1};
}

/* The rule has to make cotangents of cotangents. */
static Part part_custom(Pair *p, Ref r)
{
    enum { ACTIVE, RULE };
    int n = node(p->whole, r)->n_args;
    Part *given = NEW_ARRAY(&p->build->arena, Part, n);
    for (int i = 0; i < n; i++) {
        given[i] = *operand(p, r, i);
        if (!is_plain(&given[i]))
            return mixed(p, r, "has a `vjp` of its own for a sum or mean over the rows");
    }
    given[0] = cotangent(p, r);
    const Part *d =
        follow_body(p, attr(p->whole, r, RULE)->body, attr(p->micro, r, RULE)->body, given);
    for (int i = 0; d != NULL && i < attr(p->whole, r, ACTIVE)->i; i++) {
        Part want = cotangent(p, arg(p->whole, r, i + 1));
        if (!d[i].zero && (d[i].kind != want.kind || d[i].power != want.power))
            d = NULL;
    }
    return d != NULL ? *operand(p, r, 0)
                     : mixed(p, r, "has a `vjp` that is not linear, row by row");
}

/* ---- all ------------------------------------------------------------------------------- */

static Part part_of_op(Pair *p, Ref r)
{
    switch (op_of(p->whole, r)) {
    case OP_input:
        return part_input(p, r);
    case OP_slot:
        return part_slot(p, r);
    case OP_arg:
        return p->given[attr(p->whole, r, 0)->i];
    case OP_const:
        return part_const(p, r);
    case OP_literal:
        return each;
    case OP_iota:
        return part_iota(p, r);
    case OP_broadcast:
        return part_broadcast(p, r);
    case OP_reshape:
        return part_reshape(p, r);
    case OP_transpose:
        return *operand(p, r, 0);
    case OP_slice:
        return part_along(p, r, 0);
    case OP_pad:
        return part_along(p, r, attr(p->whole, r, 3)->f);
    case OP_window:
        return part_along(p, r, attr(p->whole, r, 6)->f);
    case OP_cumsum:
        return part_along(p, r, 0);
    case OP_concat:
        return part_concat(p, r);
    case OP_sum:
        return part_sum(p, r);
    case OP_prod:
    case OP_reduce_max:
    case OP_reduce_min:
    case OP_all:
    case OP_argmax:
    case OP_argmin:
        return part_reduce(p, r);
    case OP_gather:
        return part_gather(p, r);
    case OP_scatter_add:
        return part_scatter(p, r);
    case OP_take_along:
        return part_take_along(p, r);
    case OP_contract:
        return part_contract(p, r);
    case OP_random_bits:
    case OP_uniform:
    case OP_normal:
        return part_draw(p, r);
    case OP_scan:
        return part_scan(p, r);
    case OP_pick:
        return part_pick(p, r);
    case OP_tuple:
        return each;
    case OP_custom_vjp:
        return part_custom(p, r);
    case OP_adjoint:
        return *operand(p, r, 0);
    default:
        return optab[op_of(p->whole, r)]->kind == OP_POINTWISE ? part_pointwise(p, r) : sized(p, r);
    }
}

static Part part_of(Pair *p, Ref r)
{
    OpId op = op_of(p->whole, r);
    for (int i = 0; op != OP_tuple && op != OP_pick && i < node(p->whole, r)->n_args; i++) {
        const Part *x = &p->part[arg(p->whole, r, i)];
        if (x->kind == PART_MIXED)
            return *x;
        if (x->kind == PART_PLACE && op != OP_lt)
            return rows_meet(p, r);
    }
    Part x = part_of_op(p, r);
    bool own = op == OP_const || op == OP_contract || op == OP_adjoint; /* have looked themselves */
    if (x.kind != PART_MIXED && !own && !same_settings(p, r))
        return sized(p, r);
    bool two = op != OP_scan && op != OP_tuple && row_axis(p, r) == OTHER_ROWS;
    return x.kind != PART_MIXED && two ? rows_meet(p, r) : x;
}

void follow_parts(Pair *p)
{
    p->part = NEW_ARRAY(&p->build->arena, Part, p->whole->node.n);
    for (Ref r = 1; r < (Ref)p->whole->node.n; r++)
        p->part[r] = part_of(p, r);
}
