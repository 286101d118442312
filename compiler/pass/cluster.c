/* Which nodes are stored, and which stored nodes share a kernel. Everything here
 * depends on the graph and its shapes alone, never on a budget: what is fused decides
 * the order of a row reduction's operands, and so the bits. */
#include "cluster.h"

#include <assert.h>
#include <string.h>

enum {
    INLINE_SHARED = 8,     /* flops: a value read in several places is stored above this */
    INLINE_EXPANDED = 4,   /* ... read many times through a broadcast or window */
    INLINE_MOST = 400,     /* an expression this long is cut */
    SCALAR_MOST = 32,      /* ... a scalar one: sums over all parameters share kernels */
    TOP_LEVEL_ELEMS = 8192 /* a row kernel without row loops: one lane does all of it */
};

typedef struct Build {
    Ctx *cx;
    Clusters *c;
    const Graph *g;
    float *weight;      /* flops of one element, computed from stored operands */
    int32_t *reads;     /* places that read it, looking through views */
    int32_t *contracts; /* contractions that read it */
    bool *expanded;     /* read many times by one reader */
    bool *guarded;      /* only guarded assignments depend on it */
    bool *forced;       /* must be stored, found by a failed kernel */
    bool *alone;        /* joins no other group, likewise */
    Ref *reader;        /* the only node that reads it, or NONE */
    bool *fresh;        /* made from a contraction's result that nothing else reads */
    float op_weight[N_OPS][N_DTYPES];
    int32_t *stamp; /* of groups, for path searches */
    int32_t stamp_now;
    VEC(Ref) * leaf; /* by Ref: the stored nodes that a stored node reads */
    struct {
        bool done;
        Trace t;
    } * trace;
} Build;

Ref memory_of(const Graph *g, const bool *stored, Ref r)
{
    while (!stored[r] && op_of(g, r) == OP_reshape)
        r = arg(g, r, 0);
    return r;
}

/* ---- which nodes are stored -------------------------------------------- */

/* Flops of a pointwise op, counted from a kernel that holds nothing else. */
static float op_flops(Build *b, Ref r)
{
    const Graph *g = b->g;
    const Node *n = node(g, r);
    const Op *op = optab[n->op];
    if (op->kind != OP_POINTWISE)
        return 0;
    float *known = &b->op_weight[n->op][n->type.dtype];
    if (*known > 0)
        return *known - 1;
    Elem e;
    Val x[8] = {0};
    Kernel *k = kernel_new(b->c->arena, K_LOOP, "weight");
    elem_init(&e, k, g, b->c->arena, b->c->stored);
    for (int i = 0; i < n->n_args; i++) {
        DType t = type_of(g, arg(g, r, i))->dtype;
        int buf = k_buf(k, t, 1, K_IN);
        x[i] = k_load(k, buf, k_aff(0));
    }
    int out = k_buf(k, n->type.dtype, 1, K_OUT);
    k_store(k, out, k_aff(0), op->scalar(&e, r, x));
    k_finish(k);
    *known = (float)kernel_cost(k).flops + 1;
    return *known - 1;
}

static bool is_light(OpKind k)
{
    return k == OP_POINTWISE || k == OP_VIEW || k == OP_SOURCE;
}

static void count_reads(Build *b)
{
    const Graph *g = b->g;
    for (int i = 0; i < g->root.n; i++)
        b->reads[g->root.at[i].ref]++;
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        for (int i = 0; i < node(g, r)->n_args; i++)
            b->reader[arg(g, r, i)] = r;
    for (Ref r = (Ref)g->node.n; r-- > 1;) {
        const Op *op = optab[op_of(g, r)];
        bool through = op->kind == OP_VIEW;
        for (int i = 0; i < node(g, r)->n_args; i++) {
            Ref a = arg(g, r, i);
            b->reads[a] += through ? b->reads[r] : 1;
            b->contracts[a] += op->kind == OP_CONTRACT;
            if (type_of(g, r)->rank >= 0 && type_of(g, a)->rank >= 0 && through)
                b->expanded[a] |=
                    b->expanded[r] || type_elems(type_of(g, r)) >= 4 * type_elems(type_of(g, a));
        }
    }
}

static void find_guarded(Build *b)
{
    const Graph *g = b->g;
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        b->guarded[r] = true;
    for (int i = 0; i < g->root.n; i++)
        if (g->root.at[i].kind != ROOT_ASSIGN || !g->root.at[i].guarded)
            b->guarded[g->root.at[i].ref] = false;
    for (Ref r = (Ref)g->node.n; r-- > 1;)
        if (!b->guarded[r])
            for (int i = 0; i < node(g, r)->n_args; i++)
                b->guarded[arg(g, r, i)] = false;
}

/* The node below views, which is where a buffer does the most good. */
static Ref below_views(const Graph *g, Ref r)
{
    while (optab[op_of(g, r)]->kind == OP_VIEW && node(g, r)->n_args == 1)
        r = arg(g, r, 0);
    return r;
}

static void store(Build *b, Ref r)
{
    if (type_of(b->g, r)->rank >= 0)
        b->c->stored[r] = true;
}

/* Operands that must be in memory before the node's kernel runs, or are cheaper so. */
static void store_operands(Build *b, Ref r)
{
    const Graph *g = b->g;
    OpKind kind = optab[op_of(g, r)]->kind;
    for (int i = 0; i < node(g, r)->n_args; i++) {
        Ref a = arg(g, r, i);
        if (kind == OP_SCAN) {
            store(b, memory_of(g, b->c->stored, a));
        } else if (kind == OP_CONTRACT || kind == OP_OPAQUE) {
            Ref below = below_views(g, a);
            if (b->weight[a] > (float)b->c->caps->prologue_insts &&
                is_light(optab[op_of(g, below)]->kind))
                store(b, below);
        }
    }
}

static float expression_weight(const Build *b, Ref r)
{
    float w = 0;
    for (int i = 0; i < node(b->g, r)->n_args; i++) {
        Ref a = arg(b->g, r, i);
        if (!b->c->stored[a])
            w += b->weight[a];
    }
    return w;
}

/* A contraction's result that one node reads, and so on along a chain, is best finished
 * in its epilogue: the end of the chain is stored in place of its beginning. */
static bool ends_epilogue(Build *b, Ref r)
{
    const Graph *g = b->g;
    if (optab[op_of(g, r)]->kind != OP_POINTWISE)
        return false;
    for (int i = 0; i < node(g, r)->n_args; i++) {
        Ref a = arg(g, r, i);
        bool from = optab[op_of(g, a)]->kind == OP_CONTRACT || b->fresh[a];
        b->fresh[r] |= from && b->reads[a] == 1;
    }
    if (!b->fresh[r])
        return false;
    bool goes_on = b->reads[r] == 1 && b->reader[r] != NONE &&
                   optab[op_of(g, b->reader[r])]->kind == OP_POINTWISE;
    return !goes_on;
}

/* A reduction that another one of the same op goes on with: one walk, one accumulator. */
static bool walks_on(const Build *b, Ref r)
{
    const Graph *g = b->g;
    return optab[op_of(g, r)]->kind == OP_REDUCE && b->reads[r] == 1 && b->reader[r] != NONE &&
           op_of(g, b->reader[r]) == op_of(g, r) && !b->forced[r];
}

/* Several contractions read r, and nothing else reads an operand of its size that is in
 * memory: r can take that one's place, and each reader has less to read and to compute. */
static bool takes_place(const Build *b, Ref r)
{
    const Graph *g = b->g;
    for (int i = 0; i < node(g, r)->n_args && b->contracts[r] > 1; i++) {
        Ref a = memory_of(g, b->c->stored, arg(g, r, i));
        bool alike = type_elems(type_of(g, a)) == type_elems(type_of(g, r)) &&
                     type_of(g, a)->dtype == type_of(g, r)->dtype;
        if (b->c->stored[a] && !ref_is_source(g, a) && b->reads[a] == 1 && alike)
            return true;
    }
    return false;
}

static void choose_stored(Build *b)
{
    const Graph *g = b->g;
    Clusters *c = b->c;
    for (int i = 0; i < g->root.n; i++)
        if (!ref_is_source(g, g->root.at[i].ref) && g->root.at[i].kind != ROOT_ASSIGN)
            store(b, g->root.at[i].ref);
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        OpKind kind = optab[op_of(g, r)]->kind;
        bool pick = op_of(g, r) == OP_pick;
        if (walks_on(b, r))
            continue;
        if (ref_is_source(g, r) || kind == OP_CONTRACT || kind == OP_OPAQUE || kind == OP_REDUCE ||
            pick || b->forced[r])
            store(b, r);
        if (!is_light(kind) || c->stored[r]) {
            store_operands(b, r);
            continue;
        }
        b->weight[r] = expression_weight(b, r) + op_flops(b, r);
        if (ends_epilogue(b, r)) {
            store(b, r);
            continue;
        }
        float most = (float)(rank(g, r) == 0 ? SCALAR_MOST : INLINE_MOST);
        bool shared = b->reads[r] > 1 && b->weight[r] > (float)INLINE_SHARED;
        bool expanded = b->expanded[r] && b->weight[r] > (float)INLINE_EXPANDED;
        bool heavy = shared || expanded || b->weight[r] > most;
        if (kind == OP_POINTWISE && (heavy || takes_place(b, r)))
            store(b, r);
    }
}

/* ---- groups ------------------------------------------------------------ */

static GroupKind kind_of(const Graph *g, Ref r)
{
    switch (optab[op_of(g, r)]->kind) {
    case OP_CONTRACT:
        return GROUP_CONTRACT;
    case OP_OPAQUE:
        return GROUP_OPAQUE;
    case OP_SCAN:
        return GROUP_SCAN;
    default:
        return GROUP_LOOP;
    }
}

static void add_out(Clusters *c, Group *gr, Ref r, int32_t slot)
{
    GroupOut o = {.ref = r, .slot = slot};
    vec_push(c->arena, &gr->out, o);
}

static int new_group(Build *b, Ref r, int32_t slot)
{
    Clusters *c = b->c;
    Group gr = {.kind = kind_of(b->g, r), .anchor = r, .main = r, .guarded = b->guarded[r]};
    vec_push(c->arena, &c->group, gr);
    Group *at = &c->group.at[c->group.n - 1];
    if (slot >= 0 || c->stored[r])
        add_out(c, at, r, slot);
    return c->group.n - 1;
}

/* A group that copies what is in memory to a slot. */
static void copy_group(Build *b, Ref r, int32_t slot, bool guarded)
{
    Clusters *c = b->c;
    Group gr = {.kind = GROUP_LOOP, .anchor = r, .main = r, .guarded = guarded, .copies = true};
    vec_push(c->arena, &c->group, gr);
    add_out(c, &c->group.at[c->group.n - 1], r, slot);
}

/* The stored nodes that r's own computation reads. */
static void collect_leaves(Build *b, Ref r, Ref of, int32_t *seen)
{
    const Graph *g = b->g;
    for (int i = 0; i < node(g, r)->n_args; i++) {
        Ref a = arg(g, r, i);
        if (seen[a] == (int32_t)of)
            continue;
        seen[a] = (int32_t)of;
        if (b->c->stored[a])
            vec_push(b->c->arena, &b->leaf[of], a);
        else if (op_of(g, a) == OP_tuple || type_of(g, a)->rank < 0)
            vec_push(b->c->arena, &b->leaf[of], a);
        else
            collect_leaves(b, a, of, seen);
    }
}

static Ref highest(const Group *gr)
{
    Ref high = gr->anchor;
    for (int i = 0; i < gr->out.n; i++)
        if (gr->out.at[i].ref > high)
            high = gr->out.at[i].ref;
    for (int i = 0; i < gr->private.n; i++)
        if (gr->private.at[i] > high)
            high = gr->private.at[i];
    return high;
}

/* Does group `from` depend on group `on`? What a node reads has a smaller number than
 * the node, so a group of nodes below `floor` alone, the lowest of `on`, does not. */
static bool depends(Build *b, int from, int on, Ref floor)
{
    if (from == on)
        return true;
    if (from < 0 || b->stamp[from] == b->stamp_now)
        return false;
    b->stamp[from] = b->stamp_now;
    const Group *gr = &b->c->group.at[from];
    if (highest(gr) < floor)
        return false;
    for (int i = 0; i < gr->out.n + gr->private.n; i++) {
        Ref o = i < gr->out.n ? gr->out.at[i].ref : gr->private.at[i - gr->out.n];
        for (int j = 0; j < b->leaf[o].n; j++) {
            Ref l = b->leaf[o].at[j];
            if (depends(b, b->c->group_of[l], on, floor))
                return true;
        }
    }
    if (gr->out.n == 0 || gr->kind == GROUP_SCAN)
        for (int j = 0; j < b->leaf[gr->anchor].n; j++) {
            Ref l = b->leaf[gr->anchor].at[j];
            if (depends(b, b->c->group_of[l], on, floor))
                return true;
        }
    return false;
}

static Ref lowest(const Group *gr)
{
    Ref low = gr->anchor;
    for (int i = 0; i < gr->out.n; i++)
        if (gr->out.at[i].ref < low)
            low = gr->out.at[i].ref;
    for (int i = 0; i < gr->private.n; i++)
        if (gr->private.at[i] < low)
            low = gr->private.at[i];
    return low;
}

/* Merging `r` into group `into` would make a cycle: something else that r reads
 * depends on the group. */
static bool makes_cycle(Build *b, Ref r, int into)
{
    b->stamp_now++;
    Ref floor = lowest(&b->c->group.at[into]);
    for (int j = 0; j < b->leaf[r].n; j++) {
        Ref l = b->leaf[r].at[j];
        int gr = b->c->group_of[l];
        if (gr != into && depends(b, gr, into, floor))
            return true;
    }
    return false;
}

static const Trace *trace_of(Build *b, Ref r)
{
    if (!b->trace[r].done) {
        trace_node(b->c, r, &r, 1, &b->trace[r].t);
        b->trace[r].done = true;
    }
    return &b->trace[r].t;
}

/* Is q the element of its node in the row of r's loops: axis i at loop i? */
static bool is_row_read(const Build *b, const Trace *t, const Request *q)
{
    if (q->bounded)
        return false;
    const Type *type = type_of(b->g, q->ref);
    for (int a = 0; a < type->rank; a++) {
        if (type->dim[a] == 1)
            continue;
        if (a >= t->n_axes || t->axis[a].extent != type->dim[a])
            return false;
        KAff want = axis_index(&t->axis[a]);
        if (!k_aff_equal(&want, &q->idx[a]))
            return false;
    }
    return true;
}

/* Is q a walk along the row, by a reduction inside of it? Only what can be computed again
 * there may be read so: a value at each element, not a reduction. */
static bool is_walk_in_row(const Build *b, const Trace *t, const Request *q)
{
    const Type *type = type_of(b->g, q->ref);
    OpKind kind = optab[op_of(b->g, q->ref)]->kind;
    if (q->bounded || (kind != OP_POINTWISE && kind != OP_VIEW))
        return false;
    for (int a = 0; a + 1 < type->rank; a++) {
        KAff want = a < t->n_axes ? axis_index(&t->axis[a]) : k_aff(0);
        if (type->dim[a] != 1 && !k_aff_equal(&want, &q->idx[a]))
            return false;
    }
    return type->rank > 0;
}

/* Shape x can be stored from loops over shape y. */
static bool is_prefix(const Type *x, const Type *y)
{
    bool ended = false;
    for (int a = 0; a < x->rank; a++) {
        bool same = a < y->rank && x->dim[a] == y->dim[a];
        if (ended && x->dim[a] != 1)
            return false;
        if (!same && x->dim[a] != 1)
            return false;
        ended |= !same;
    }
    return true;
}

static int64_t row_elems(const Graph *g, Ref r, Ref reduced)
{
    int64_t n = 1;
    const Type *t = type_of(g, r), *row = type_of(g, reduced);
    for (int a = 0; a < t->rank; a++)
        if (a >= row->rank || row->dim[a] != t->dim[a])
            n *= t->dim[a];
    return n;
}

static bool has_reduce(const Graph *g, const Group *gr)
{
    for (int i = 0; i < gr->out.n; i++)
        if (optab[op_of(g, gr->out.at[i].ref)]->kind == OP_REDUCE)
            return true;
    return gr->private.n > 0;
}

/* May r join the loop group: does it read the group's values row by row only? */
static bool joins_rows(Build *b, Ref r, Group *gr, const Trace *t)
{
    const Graph *g = b->g;
    const Type *mine = type_of(g, r);
    bool taller = is_prefix(type_of(g, gr->main), mine);
    if (!taller && !is_prefix(mine, type_of(g, gr->main)))
        return false;
    Ref tall = taller ? r : gr->main;
    for (int i = 0; i < gr->out.n; i++)
        if (!is_prefix(type_of(g, gr->out.at[i].ref), type_of(g, tall)))
            return false;
    if (has_reduce(g, gr) || optab[op_of(g, r)]->kind == OP_REDUCE) {
        Ref low = taller ? gr->main : r;
        if (type_elems(type_of(g, low)) == 1 && row_elems(g, tall, low) > TOP_LEVEL_ELEMS)
            return false;
    }
    for (int i = 0; i < t->request.n; i++) {
        const Request *q = &t->request.at[i];
        if (b->c->group_of[q->ref] < 0 || !b->c->stored[q->ref])
            continue;
        if (&b->c->group.at[b->c->group_of[q->ref]] == gr && !is_row_read(b, t, q) &&
            !is_walk_in_row(b, t, q))
            return false;
    }
    return true;
}

/* May r be computed in the epilogue of a contraction: element by element at the
 * place of the sum? */
static bool joins_epilogue(Build *b, Ref r, Group *gr, const Trace *t)
{
    const Graph *g = b->g;
    if (optab[op_of(g, r)]->kind == OP_REDUCE || gr->out.n >= 8)
        return false;
    if (b->weight[r] > (float)b->c->caps->epilogue_insts)
        return false;
    if (type_elems(type_of(g, r)) != type_elems(type_of(g, gr->anchor)))
        return false;
    bool alone = gr->out.n == 1 && gr->out.at[0].ref == gr->anchor && gr->main == gr->anchor;
    if (!alone && !type_same(type_of(g, r), type_of(g, gr->main)) &&
        !(type_of(g, r)->rank == type_of(g, gr->main)->rank &&
          memcmp(type_of(g, r)->dim, type_of(g, gr->main)->dim,
                 sizeof(int64_t) * (size_t)type_of(g, r)->rank) == 0))
        return false;
    for (int i = 0; i < t->request.n; i++) {
        const Request *q = &t->request.at[i];
        if (!b->c->stored[q->ref] || b->c->group_of[q->ref] < 0 ||
            &b->c->group.at[b->c->group_of[q->ref]] != gr)
            continue;
        if (q->bounded)
            return false;
        /* the contraction's element may be anywhere, as long as each is met once: its
         * indices use each loop exactly once */
        int64_t reach = 1;
        for (int a = 0; a < rank(g, q->ref); a++)
            for (int j = 0; j < q->idx[a].n; j++) {
                const KInst *loop = &t->kernel->inst.at[q->idx[a].t[j].v];
                if (loop->op != KI_PAR)
                    return false;
                reach *= loop->imm.i;
            }
        if (reach != type_elems(type_of(g, q->ref)))
            return false;
        if (q->ref != gr->anchor || !alone)
            if (!is_row_read(b, t, q) && q->ref != gr->anchor)
                return false;
    }
    return true;
}

static void join(Build *b, Ref r, int32_t slot, int into)
{
    Clusters *c = b->c;
    Group *gr = &c->group.at[into];
    const Graph *g = b->g;
    bool alone = gr->out.n == 1 && gr->out.at[0].ref == gr->anchor && gr->main == gr->anchor;
    if (gr->kind == GROUP_CONTRACT ? alone : is_prefix(type_of(g, gr->main), type_of(g, r)))
        gr->main = r;
    add_out(c, gr, r, slot);
    c->group_of[r] = into;
}

/* The latest group that r reads and may join, or -1. */
static int find_host(Build *b, Ref r)
{
    const Trace *t = trace_of(b, r);
    if (t->trouble != FINE || optab[op_of(b->g, r)]->kind == OP_OPAQUE)
        return -1;
    int best = -1;
    for (int j = 0; j < b->leaf[r].n; j++) {
        int i = b->c->group_of[b->leaf[r].at[j]];
        if (i < 0 || i <= best)
            continue;
        Group *gr = &b->c->group.at[i];
        if (gr->guarded != b->guarded[r])
            continue;
        bool may = gr->kind == GROUP_LOOP       ? joins_rows(b, r, gr, t)
                   : gr->kind == GROUP_CONTRACT ? joins_epilogue(b, r, gr, t)
                                                : false;
        if (may && !makes_cycle(b, r, i))
            best = i;
    }
    return best;
}

static void place_node(Build *b, Ref r, int32_t slot)
{
    OpKind kind = optab[op_of(b->g, r)]->kind;
    int host = -1;
    if (kind != OP_CONTRACT && kind != OP_OPAQUE && kind != OP_SCAN && !b->alone[r])
        host = find_host(b, r);
    if (host >= 0)
        join(b, r, slot, host);
    else
        b->c->group_of[r] = new_group(b, r, slot);
}

/* Slots that node r is the new value of. */
static int next_assign(const Graph *g, Ref r, int from)
{
    for (int i = from; i < g->root.n; i++)
        if (g->root.at[i].kind == ROOT_ASSIGN && g->root.at[i].ref == r)
            return i;
    return -1;
}

static void make_groups(Build *b)
{
    const Graph *g = b->g;
    Clusters *c = b->c;
    int32_t *seen = NEW_ARRAY(c->arena, int32_t, g->node.n);
    bool *assigned = NEW_ARRAY(c->arena, bool, g->node.n);
    for (int i = 0; i < g->root.n; i++)
        if (g->root.at[i].kind == ROOT_ASSIGN)
            assigned[g->root.at[i].ref] = true;
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        c->group_of[r] = -1;
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        bool scan = optab[op_of(g, r)]->kind == OP_SCAN;
        if (!c->stored[r] && !scan && !assigned[r])
            continue;
        if (!ref_is_source(g, r))
            collect_leaves(b, r, r, seen);
        if (op_of(g, r) == OP_pick && c->stored[r]) {
            c->group_of[r] = c->group_of[arg(g, r, 0)];
            add_out(c, &c->group.at[c->group_of[r]], r, -1);
        } else if (!ref_is_source(g, r) && (c->stored[r] || scan)) {
            place_node(b, r, -1);
        }
        for (int i = next_assign(g, r, 0); i >= 0; i = next_assign(g, r, i + 1)) {
            int32_t slot = g->root.at[i].slot;
            if (c->stored[r] && (ref_is_source(g, r) || op_of(g, r) == OP_pick))
                copy_group(b, r, slot, b->guarded[r]);
            else if (c->stored[r])
                add_out(c, &c->group.at[c->group_of[r]], r, slot);
            else
                place_node(b, r, slot);
        }
    }
}

/* What only its own group reads needs no memory: a row's value is known once for the
 * row, an element of it is computed again where another pass over the row wants it. */
static void drop_private(Build *b)
{
    const Graph *g = b->g;
    Clusters *c = b->c;
    bool *outside = NEW_ARRAY(c->arena, bool, g->node.n);
    for (int i = 0; i < g->root.n; i++)
        if (g->root.at[i].kind != ROOT_ASSIGN)
            outside[g->root.at[i].ref] = true;
    for (int i = 0; i < c->group.n; i++) {
        Group *gr = &c->group.at[i];
        for (int j = 0; j < gr->out.n; j++)
            for (int l = 0; l < b->leaf[gr->out.at[j].ref].n; l++) {
                Ref leaf = b->leaf[gr->out.at[j].ref].at[l];
                outside[leaf] |= c->group_of[leaf] != i;
            }
        if (gr->kind == GROUP_SCAN)
            for (int l = 0; l < b->leaf[gr->anchor].n; l++)
                outside[b->leaf[gr->anchor].at[l]] = true;
    }
    for (int i = 0; i < c->group.n; i++) {
        Group *gr = &c->group.at[i];
        int n = 0;
        bool only_one = gr->out.n == 1;
        for (int j = 0; j < gr->out.n; j++) {
            GroupOut o = gr->out.at[j];
            bool inner = type_elems(type_of(g, o.ref)) < type_elems(type_of(g, gr->main)) ||
                         (gr->kind == GROUP_CONTRACT);
            bool row = gr->kind == GROUP_LOOP && has_reduce(g, gr);
            if (o.slot < 0 && !outside[o.ref] && !only_one && (inner || row) &&
                gr->kind != GROUP_SCAN && gr->kind != GROUP_OPAQUE)
                vec_push(c->arena, &gr->private, o.ref);
            else
                gr->out.at[n++] = o;
        }
        gr->out.n = n;
    }
}

/* Kernels of all groups; false if more nodes have to be stored first. */
static bool lower_groups(Build *b)
{
    bool again = false;
    for (int i = 0; i < b->c->group.n; i++) {
        Ref first = NONE;
        Group *gr = &b->c->group.at[i];
        if (group_lower(b->c, gr, &first) == FINE)
            continue;
        again = true;
        if (first != NONE && !b->c->stored[first]) {
            b->forced[first] = true;
            continue;
        }
        /* Each of its results can be computed, but not by one nest of loops. */
        assert(gr->out.n + gr->private.n > 1);
        for (int j = 0; j < gr->out.n; j++)
            b->alone[gr->out.at[j].ref] = true;
        for (int j = 0; j < gr->private.n; j++)
            b->alone[gr->private.at[j]] = true;
    }
    return !again;
}

/* ---- order ------------------------------------------------------------- */

typedef struct Edge {
    int from, to;
} Edge;

typedef struct Edges {
    VEC(Edge) e;
} Edges;

static void add_edge(Build *b, Edges *es, int from, int to)
{
    Edge e = {from, to};
    if (from >= 0 && to >= 0 && from != to)
        vec_push(b->c->arena, &es->e, e);
}

/* Group `reader` reads r: after the group that computes it, before the one that
 * overwrites it (`writer`, by slot). */
static void add_read(Build *b, Edges *es, const int *writer, Ref r, int reader)
{
    add_edge(b, es, b->c->group_of[r], reader);
    if (op_of(b->g, r) == OP_slot)
        add_edge(b, es, reader, writer[attr(b->g, r, 0)->i]);
}

static int slots_end(const Build *b)
{
    int64_t end = 0;
    for (Ref r = 1; r < (Ref)b->g->node.n; r++)
        if (op_of(b->g, r) == OP_slot && attr(b->g, r, 0)->i >= end)
            end = attr(b->g, r, 0)->i + 1;
    for (int i = 0; i < b->g->root.n; i++)
        if (b->g->root.at[i].slot >= end)
            end = b->g->root.at[i].slot + 1;
    return (int)end;
}

static void edges_of(Build *b, Edges *es)
{
    const Graph *g = b->g;
    Clusters *c = b->c;
    int n_slots = slots_end(b), *writer = NEW_ARRAY(c->arena, int, n_slots);
    for (int i = 0; i < n_slots; i++)
        writer[i] = -1;
    for (int i = 0; i < c->group.n; i++)
        for (int j = 0; j < c->group.at[i].out.n; j++)
            if (c->group.at[i].out.at[j].slot >= 0)
                writer[c->group.at[i].out.at[j].slot] = i;
    for (int i = 0; i < c->group.n; i++) {
        Group *gr = &c->group.at[i];
        for (int j = 0; j < gr->operand.n; j++)
            if (gr->operand.at[j].out < 0)
                add_read(b, es, writer, gr->operand.at[j].ref, i);
        if (gr->kind == GROUP_SCAN)
            for (int j = 0; j < node(g, gr->anchor)->n_args; j++)
                add_read(b, es, writer, memory_of(g, c->stored, arg(g, gr->anchor, j)), i);
    }
}

/* Kahn's algorithm; among what is ready, unguarded groups first, then the oldest. */
static bool order_groups(Build *b, bool **finished)
{
    Clusters *c = b->c;
    Edges es = {0};
    edges_of(b, &es);
    int n = c->group.n;
    int *wait = NEW_ARRAY(c->arena, int, n), *first = NEW_ARRAY(c->arena, int, n + 1);
    int *to = NEW_ARRAY(c->arena, int, es.e.n);
    for (int i = 0; i < es.e.n; i++) {
        wait[es.e.at[i].to]++;
        first[es.e.at[i].from + 1]++;
    }
    for (int i = 0; i < n; i++)
        first[i + 1] += first[i];
    int *fill = NEW_ARRAY(c->arena, int, n);
    for (int i = 0; i < es.e.n; i++) {
        int f = es.e.at[i].from;
        to[first[f] + fill[f]++] = es.e.at[i].to;
    }
    bool *done = *finished = NEW_ARRAY(c->arena, bool, n);
    c->order.n = 0;
    for (int guarded = 0; guarded < 2; guarded++) {
        bool moved = true;
        while (moved) {
            moved = false;
            for (int i = 0; i < n; i++) {
                if (done[i] || wait[i] > 0 || (c->group.at[i].guarded && !guarded))
                    continue;
                done[i] = true;
                moved = true;
                vec_push(c->arena, &c->order, i);
                for (int j = first[i]; j < first[i + 1]; j++)
                    wait[to[j]]--;
            }
        }
    }
    return c->order.n == n;
}

/* Groups that overwrite what the others still read, each the other's: one of them keeps
 * its results apart, and copies them when all have been read. */
static void defer_slots(Build *b, const bool *done)
{
    Clusters *c = b->c;
    int at = -1;
    for (int i = 0; i < c->group.n && at < 0; i++)
        for (int j = 0; j < c->group.at[i].out.n && !done[i]; j++)
            if (c->group.at[i].out.at[j].slot >= 0 && !c->group.at[i].copies)
                at = i;
    assert(at >= 0);
    int n = c->group.at[at].out.n;
    for (int j = 0; j < n; j++) {
        GroupOut o = c->group.at[at].out.at[j];
        if (o.slot < 0)
            continue;
        copy_group(b, o.ref, o.slot, c->group.at[at].guarded);
        bool stored = false;
        for (int k = 0; k < j; k++)
            stored |= c->group.at[at].out.at[k].ref == o.ref;
        c->group.at[at].out.at[j].slot = stored ? -2 : -1;
        c->stored[o.ref] = true;
        c->group_of[o.ref] = at;
    }
    Group *gr = &c->group.at[at];
    int kept = 0;
    for (int j = 0; j < gr->out.n; j++)
        if (gr->out.at[j].slot != -2)
            gr->out.at[kept++] = gr->out.at[j];
    gr->out.n = kept;
}

static void build_init(Build *b, Ctx *cx, Clusters *c)
{
    int n = c->g->node.n;
    b->cx = cx;
    b->c = c;
    b->g = c->g;
    b->weight = NEW_ARRAY(c->arena, float, n);
    b->reads = NEW_ARRAY(c->arena, int32_t, n);
    b->contracts = NEW_ARRAY(c->arena, int32_t, n);
    b->expanded = NEW_ARRAY(c->arena, bool, n);
    b->guarded = NEW_ARRAY(c->arena, bool, n);
    b->forced = NEW_ARRAY(c->arena, bool, n);
    b->alone = NEW_ARRAY(c->arena, bool, n);
    b->reader = NEW_ARRAY(c->arena, Ref, n);
    count_reads(b);
    find_guarded(b);
}

static void build_reset(Build *b)
{
    Clusters *c = b->c;
    int n = c->g->node.n;
    arena_free(c->scratch);
    c->group.n = 0;
    c->stored = NEW_ARRAY(c->arena, bool, n);
    c->group_of = NEW_ARRAY(c->arena, int32_t, n);
    b->stamp = NEW_ARRAY(c->arena, int32_t, n + 1);
    b->stamp_now = 0;
    b->fresh = NEW_ARRAY(c->arena, bool, n);
    b->leaf = arena_array(c->arena, (size_t)n, sizeof *b->leaf);
    b->trace = arena_array(c->scratch, (size_t)n, sizeof *b->trace);
}

static void cluster_bodies(Ctx *cx, Clusters *c)
{
    for (int i = 0; i < c->group.n; i++) {
        Group *gr = &c->group.at[i];
        if (gr->kind == GROUP_SCAN)
            gr->body = cluster(cx, attr(c->g, gr->anchor, SCAN_BODY)->body, c->caps, c->arena);
    }
}

Clusters *cluster(Ctx *cx, const Graph *g, const Caps *caps, Arena *arena)
{
    Clusters *c = NEW(arena, Clusters);
    c->arena = arena;
    c->g = g;
    c->caps = caps;
    Arena scratch = {0};
    c->scratch = &scratch;
    Build b = {0};
    build_init(&b, cx, c);
    do {
        build_reset(&b);
        choose_stored(&b);
        make_groups(&b);
        drop_private(&b);
    } while (!lower_groups(&b));
    cluster_bodies(cx, c);
    bool *done;
    while (!order_groups(&b, &done)) {
        defer_slots(&b, done);
        bool lowered = lower_groups(&b);
        assert(lowered);
        (void)lowered;
    }
    c->scratch = NULL;
    arena_free(&scratch);
    return c;
}
