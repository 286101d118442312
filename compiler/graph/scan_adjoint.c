/* The reverse of a scan.
 *
 * pullback() runs inside the body itself, with the cotangents of the results as further
 * arguments; what it appends is then moved into a body of its own:
 *
 *     reverse carries   cotangents of the carries, and the sums of the cotangents of
 *                       operands that are the same in every iteration
 *     reverse sequences cotangents of what the body stacked, its own sequences, and residuals:
 *                       primal values that the reverse body reads, which the forward
 *                       scan then stacks as further results
 *     copied            constants, and what can be had of them and of the operands
 *                       that stay the same (dropout masks, transposed weights); what
 *                       `recompute` computes, of a lean scan all of the body; but chunks,
 *                       whose steps are independent, keep sums and maxima of rows
 *
 * The forward body is cut back to its own nodes and only gets more results. */
#include <assert.h>
#include <string.h>
#include "scan_adjoint.h"

/* ---- what is wanted ------------------------------------------------------------- */

/* The node of each operand in the body, NONE where it is not read. */
static void find_args(Reverse *v)
{
    Graph *b = v->body;
    for (Ref r = 1; r < (Ref)b->node.n; r++)
        if (op_of(b, r) == OP_arg && v->arg[attr(b, r, 0)->i] == NONE)
            v->arg[attr(b, r, 0)->i] = r;
    for (Ref r = 1; r < (Ref)b->node.n; r++)
        if (op_of(b, r) == OP_arg && v->arg[attr(b, r, 0)->i] != r) /* again: read the first */
            for (int i = 0; i < b->arg.n; i++)
                if (b->arg.at[i] == r)
                    b->arg.at[i] = v->arg[attr(b, r, 0)->i];
    for (int i = 0; i < b->root.n; i++)
        if (op_of(b, b->root.at[i].ref) == OP_arg)
            b->root.at[i].ref = v->arg[attr(b, b->root.at[i].ref, 0)->i];
}

static int list_wanted(const Reverse *v, Ref *xs)
{
    int n = 0;
    for (int i = 0; i < v->n_args; i++)
        if (v->wanted[i] && v->arg[i] != NONE)
            xs[n++] = v->arg[i];
    return n;
}

/* A carry is wanted if its first value is, or if what comes back depends on something
 * wanted. */
static void close_wanted(Reverse *v)
{
    Ref *xs = NEW_ARRAY(v->scratch, Ref, v->n_args);
    for (bool more = true; more;) {
        int n = list_wanted(v, xs);
        bool *dep = depends_on(v->body, xs, n, v->scratch);
        more = false;
        for (int i = 0; i < v->is.carries; i++) {
            Ref back = result(v->body, i);
            if (!v->wanted[i] && dep[back] && dtype_is_float(type_of(v->body, back)->dtype))
                more = v->wanted[i] = true;
        }
    }
}

/* ---- the reverse of one iteration, inside the body -------------------------------- */

/* Arguments for the cotangents of results. A carry that is wanted always has one; what is
 * stacked has one if its cotangent is not zero. */
static void add_seeds(Reverse *v)
{
    for (int i = 0; i < v->results; i++) {
        Ref r = result(v->body, i);
        bool given = arg(v->g, v->ct, i) != NONE;
        if (is_carry(v, i) ? v->wanted[i] : given)
            v->seed[i] = g_body_arg(v->body, v->n_args + i, *type_of(v->body, r));
    }
}

static bool pull_back(Reverse *v)
{
    Ref *ys = NEW_ARRAY(v->scratch, Ref, v->results), *cts = NEW_ARRAY(v->scratch, Ref, v->results);
    Ref *xs = NEW_ARRAY(v->scratch, Ref, v->n_args), *ds = NEW_ARRAY(v->scratch, Ref, v->n_args);
    int n_ys = 0;
    for (int i = 0; i < v->results; i++)
        if (v->seed[i] != NONE) {
            ys[n_ys] = result(v->body, i);
            cts[n_ys++] = v->seed[i];
        }
    int n_xs = list_wanted(v, xs);
    bool fine = pullback(v->g->cx, v->body, ys, cts, n_ys, xs, n_xs, ds);
    for (int i = 0, x = 0; i < v->n_args; i++)
        v->d[i] = v->wanted[i] && v->arg[i] != NONE ? ds[x++] : REF_ZERO;
    v->all = (Ref)v->body->node.n;
    return fine;
}

/* ---- moving --------------------------------------------------------------------------- */

/* The type that cotangents of an operand are added up in: f32, as all sums of halves. */
static Type sum_type(const Type *t)
{
    Type sum = *t;
    sum.dtype = dtype_is_half(t->dtype) ? F32 : t->dtype;
    return sum;
}

/* The reverse body's arguments: carries are numbered first, then sequences, the same. */
static int add_carries(Reverse *v, Ref *acc)
{
    int n = 0;
    for (int i = 0; i < v->is.carries; i++)
        if (v->seed[i] != NONE) {
            Type t = *type_of(v->body, v->seed[i]);
            v->map[v->seed[i]] = g_body_arg(v->back, n++, t);
        }
    for (int i = v->is.carries + v->is.sequences; i < v->n_args; i++)
        if (v->d[i] != REF_ZERO) {
            Type t = sum_type(type_of(v->body, v->arg[i]));
            acc[i] = g_body_arg(v->back, n++, t);
        }
    return n;
}

static void add_operands(Reverse *v, int n_carries)
{
    for (Ref r = 1; r < v->all; r++) {
        Place p = v->place[r];
        bool stacked = p.part == CT && !is_carry(v, p.index);
        if (stacked || p.part == SEQUENCE || p.part == RESIDUAL)
            vec_push(v->scratch, &v->sequence, r);
        else if (p.part == SAME)
            vec_push(v->scratch, &v->same, r);
    }
    int n = n_carries;
    for (int i = 0; i < v->sequence.n; i++) {
        Type t = *type_of(v->body, v->sequence.at[i]);
        v->map[v->sequence.at[i]] = g_body_arg(v->back, n++, t);
    }
    for (int i = 0; i < v->same.n; i++) {
        Type t = *type_of(v->body, v->same.at[i]);
        v->map[v->same.at[i]] = g_body_arg(v->back, n++, t);
    }
}

static void move_nodes(Reverse *v)
{
    for (Ref r = 1; r < v->all; r++)
        if (v->place[r].part == COPIED)
            v->map[r] = graph_copy_node(v->back, v->body, r, v->map);
}

static Ref moved_or_zero(Reverse *v, Ref r, const Type *t)
{
    Type type = *t;
    return r == REF_ZERO ? g_zeros(v->back, &type) : v->map[r];
}

static void result_of(Reverse *v, Ref r)
{
    graph_root(v->back, ROOT_RESULT, NULL, r, -1, -1);
}

/* ---- sums --------------------------------------------------------------------------------
 */

static int uses_of(const Graph *g, Ref r)
{
    int n = 0;
    for (int i = 0; i < g->arg.n; i++)
        n += g->arg.at[i] == r;
    for (int i = 0; i < g->root.n; i++)
        n += g->root.at[i].ref == r;
    return n;
}

static Ref body_arg(const Graph *body, int i)
{
    for (Ref r = 1; r < (Ref)body->node.n; r++)
        if (op_of(body, r) == OP_arg && attr(body, r, 0)->i == i)
            return r;
    return NONE;
}

/* The carry only adds up: its new value is the old one and something, by way of an inner
 * scan's carry, too, and nothing else reads the old one. */
static bool adds_up(const Graph *body, int carry)
{
    Ref old = body_arg(body, carry), new = result(body, carry);
    if (old == NONE || uses_of(body, old) != 1)
        return false;
    if (op_of(body, new) == OP_add || op_of(body, new) == OP_scatter_add)
        return arg(body, new, 0) == old;
    if (op_of(body, new) != OP_pick || op_of(body, arg(body, new, 0)) != OP_scan)
        return false;
    Ref scan = arg(body, new, 0);
    int i = (int)attr(body, new, 0)->i;
    return i < scan_of(body, scan).carries && arg(body, scan, i) == old &&
           adds_up(attr(body, scan, SCAN_BODY)->body, i);
}

static Ref as_type(Graph *g, DType t, Ref x)
{
    return type_of(g, x)->dtype == t ? x : g_cast(g, t, x);
}

static Ref plain_sum(Graph *g, Ref acc, Ref x)
{
    Ref wide = as_type(g, type_of(g, acc)->dtype, x);
    return g_add_parts(g, acc, wide);
}

/* acc + x. Where x is what an inner scan adds up from 0 on (of halves: rounded), that begins with
 * acc instead: one chain of sums, as if there were no scan within a scan. */
static Ref summed(Graph *g, Ref acc, Ref given)
{
    bool rounded = op_of(g, given) == OP_cast &&
                   type_of(g, given)->dtype != type_of(g, acc)->dtype &&
                   type_of(g, arg(g, given, 0))->dtype == type_of(g, acc)->dtype;
    Ref x = rounded ? arg(g, given, 0) : given;
    Ref scan = op_of(g, x) == OP_pick ? arg(g, x, 0) : NONE;
    if (scan == NONE || op_of(g, scan) != OP_scan || uses_of(g, given) > 0 ||
        uses_of(g, x) > rounded || !type_same(type_of(g, x), type_of(g, acc)))
        return plain_sum(g, acc, given);
    int i = (int)attr(g, x, 0)->i;
    if (i >= scan_of(g, scan).carries || !const_is_zero(g, arg(g, scan, i), false) ||
        !adds_up(attr(g, scan, SCAN_BODY)->body, i))
        return plain_sum(g, acc, given);
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        if (r != x && op_of(g, r) == OP_pick && arg(g, r, 0) == scan && attr(g, r, 0)->i == i)
            return plain_sum(g, acc, given);
    g->arg.at[node(g, scan)->args + (uint32_t)i] = acc;
    return x;
}

/* Another operand has the same cotangent. */
static bool is_shared(const Reverse *v, int operand)
{
    for (int i = 0; i < v->n_args; i++)
        if (i != operand && v->d[i] == v->d[operand])
            return true;
    return false;
}

/* New carries, then what is stacked: the cotangents of the sequences' slices. */
static void add_results(Reverse *v, const Ref *acc)
{
    for (int i = 0; i < v->is.carries; i++)
        if (v->seed[i] != NONE)
            result_of(v, moved_or_zero(v, v->d[i], type_of(v->body, v->seed[i])));
    for (int i = v->is.carries + v->is.sequences; i < v->n_args; i++)
        if (v->d[i] != REF_ZERO) {
            v->back->origin = node(v->body, v->d[i])->origin;
            Ref x = v->map[v->d[i]];
            Ref sum = is_shared(v, i) ? plain_sum(v->back, acc[i], x) : summed(v->back, acc[i], x);
            result_of(v, sum);
        }
    for (int i = v->is.carries; i < v->is.carries + v->is.sequences; i++)
        if (v->d[i] != REF_ZERO)
            result_of(v, v->map[v->d[i]]);
}

/* ---- the forward scan stacks what is read ------------------------------------------------ */

/* The result that stacks r, an old one if there is one. */
static int stack(Reverse *v, Ref r)
{
    for (int i = v->is.carries; i < v->results; i++)
        if (result(v->body, i) == r)
            return i;
    graph_root(v->body, ROOT_RESULT, NULL, r, -1, -1);
    return v->results++;
}

/* Drops the reverse nodes of the body. A pick of an inner scan's new result is
 * built again; nothing else that is stacked was among them. */
static void cut_body(Reverse *v, int n_arg)
{
    Graph *b = v->body;
    int n_picks = 0;
    Ref *tuple = NEW_ARRAY(v->scratch, Ref, v->sequence.n);
    int64_t *index = NEW_ARRAY(v->scratch, int64_t, v->sequence.n);
    for (int i = 0; i < v->sequence.n; i++) {
        Ref r = v->sequence.at[i];
        if (v->place[r].part != RESIDUAL || r < v->own)
            continue;
        tuple[n_picks] = arg(b, r, 0);
        index[n_picks++] = attr(b, r, 0)->i;
    }
    b->node.n = (int)v->own;
    b->arg.n = n_arg;
    for (int i = 0, p = 0; i < v->sequence.n; i++) {
        Ref r = v->sequence.at[i];
        if (v->place[r].part != RESIDUAL)
            continue;
        Ref value = r;
        if (r >= v->own) {
            b->origin = node(b, tuple[p])->origin;
            value = g_pick(b, tuple[p], (int)index[p]);
            p++;
        }
        v->place[r].index = stack(v, value);
    }
}

/* ---- the reverse scan ------------------------------------------------------------------------ */

/* What is stacked of a part's values is the part's. */
static Ref pick_stacked(Reverse *v, int i)
{
    const Origin *at = v->g->origin, *o = node(v->body, result(v->body, i))->origin;
    if (o != NULL && o->part != NULL)
        v->g->origin = o;
    Ref made = g_pick(v->g, v->n, i);
    v->g->origin = at;
    return made;
}

/* Operands of the reverse scan, in the order of its body's arguments. */
static int reverse_operands(Reverse *v, Ref *args)
{
    Graph *g = v->g;
    int n = 0;
    for (int i = 0; i < v->is.carries; i++)
        if (v->seed[i] != NONE) {
            Type t = *type_of(g, arg(g, v->n, i));
            Ref given = arg(g, v->ct, i);
            args[n++] = given == NONE ? g_zeros(g, &t) : given;
        }
    for (int i = v->is.carries + v->is.sequences; i < v->n_args; i++)
        if (v->d[i] != REF_ZERO) {
            Type t = sum_type(type_of(g, arg(g, v->n, i)));
            args[n++] = g_zeros(g, &t);
        }
    for (int i = 0; i < v->sequence.n; i++) {
        Place p = v->place[v->sequence.at[i]];
        if (p.part == CT)
            args[n++] = arg(g, v->ct, p.index);
        else if (p.part == SEQUENCE)
            args[n++] = arg(g, v->n, p.index);
        else
            args[n++] = pick_stacked(v, p.index);
    }
    for (int i = 0; i < v->same.n; i++)
        args[n++] = arg(g, v->n, v->place[v->same.at[i]].index);
    return n;
}

static void pick_results(Reverse *v, Ref scan, Ref d[])
{
    int n = 0;
    for (int i = 0; i < v->is.carries; i++)
        if (v->seed[i] != NONE)
            d[i] = g_pick(v->g, scan, n++);
    for (int i = v->is.carries + v->is.sequences; i < v->n_args; i++)
        if (v->d[i] != REF_ZERO) {
            d[i] = g_pick(v->g, scan, n++);
            d[i] = as_type(v->g, type_of(v->g, arg(v->g, v->n, i))->dtype, d[i]);
        }
    for (int i = v->is.carries; i < v->is.carries + v->is.sequences; i++)
        if (v->d[i] != REF_ZERO)
            d[i] = g_pick(v->g, scan, n++);
}

static void build_reverse(Reverse *v, int n_arg, Ref d[])
{
    Ref *acc = NEW_ARRAY(v->scratch, Ref, v->n_args);
    v->map = NEW_ARRAY(v->scratch, Ref, v->all);
    v->back = g_body(v->g);
    find_places(v);
    int n_carries = add_carries(v, acc);
    add_operands(v, n_carries);
    move_nodes(v);
    add_results(v, acc);
    cut_body(v, n_arg);
    v->g->node.at[v->n].type.dim[0] = v->results;
    Ref *args = NEW_ARRAY(v->scratch, Ref, n_carries + v->sequence.n + v->same.n);
    int n = reverse_operands(v, args);
    Scan is = {.carries = n_carries,
               .sequences = v->sequence.n,
               .count = v->is.count,
               .down = !v->is.down};
    Ref scan = g_scan(v->g, v->back, args, n, is);
    pick_results(v, scan, d);
}

void g_scan_adjoint(Graph *g, Ref n, Ref ct, Ref d[])
{
    Arena *scratch = &g->cx->scratch;
    ArenaMark mark = arena_mark(scratch);
    Reverse v = {.g = g, .body = attr(g, n, SCAN_BODY)->body, .n = n, .ct = ct, .scratch = scratch};
    v.is = scan_of(g, n);
    v.n_args = node(g, n)->n_args;
    v.results = tuple_size(g, n);
    assert(v.results == node(g, ct)->n_args);
    v.wanted = NEW_ARRAY(scratch, bool, v.n_args);
    v.arg = NEW_ARRAY(scratch, Ref, v.n_args);
    v.seed = NEW_ARRAY(scratch, Ref, v.results);
    v.d = NEW_ARRAY(scratch, Ref, v.n_args);
    for (int i = 0; i < v.n_args; i++) {
        DType t = type_of(g, arg(g, n, i))->dtype;
        v.wanted[i] = d[i] == REF_ZERO && dtype_is_float(t);
    }
    find_args(&v);
    close_wanted(&v);
    v.own = (Ref)v.body->node.n;
    int n_arg = v.body->arg.n;
    add_seeds(&v);
    if (pull_back(&v)) {
        build_reverse(&v, n_arg, d);
    } else {
        v.body->node.n = (int)v.own;
        v.body->arg.n = n_arg;
        for (int i = 0; i < v.n_args; i++)
            d[i] = v.wanted[i] ? NONE : d[i];
    }
    arena_reset(scratch, mark);
}
