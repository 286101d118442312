/* Which stored nodes share a kernel. */
#include "cluster_build.h"

#include <assert.h>
#include <string.h>

enum {
    TOP_LEVEL_ELEMS = 8192, /* a row kernel without row loops: one lane does all of it */
    /* flops of an element, or nodes: compilers take minutes for one function of so many ... */
    CHAINS_MOST = 3000,
    LOOPS_MOST = 700, /* ... and seconds for several, whose values lie in memory in between */
    REDUCED_MOST = 16 /* ... and reductions, each of which is a loop or two over a row */
};

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

/* What it has a compiler do. */
static float weight_of(const Build *b, Ref r)
{
    return b->weight[r] > b->length[r] ? b->weight[r] : b->length[r];
}

static int new_group(Build *b, Ref r, int32_t slot)
{
    Clusters *c = b->c;
    Group gr = {.kind = kind_of(b->g, r),
                .anchor = r,
                .main = r,
                .guarded = b->guarded[r],
                .weight = weight_of(b, r)};
    vec_push(c->arena, &c->group, gr);
    Group *at = &c->group.at[c->group.n - 1];
    if (slot >= 0 || c->stored[r])
        add_out(c, at, r, slot);
    return c->group.n - 1;
}

/* A group that copies what is in memory to a slot. */
void copy_group(Build *b, Ref r, int32_t slot, bool guarded)
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

/* A group that depends on this one depends on what it depends on. */
static void raise_top(Build *b, int group, Ref top)
{
    if (top <= b->top[group])
        return;
    b->top[group] = top;
    for (int i = 0; i < b->users[group].n; i++)
        raise_top(b, b->users[group].at[i], top);
}

/* The group computes r, too. */
static void note_node(Build *b, Ref r, int group)
{
    for (int j = 0; j < b->leaf[r].n; j++) {
        int from = b->c->group_of[b->leaf[r].at[j]];
        if (from < 0 || from == group)
            continue;
        vec_push(b->c->arena, &b->users[from], group);
        raise_top(b, group, b->top[from]);
    }
    raise_top(b, group, r);
}

/* Does group `from` depend on group `on`? If it does, its highest node, its own or of one it
 * depends on, is no lower than that of `on`. */
static bool depends(Build *b, int from, int on)
{
    if (from == on)
        return true;
    if (from < 0 || b->stamp[from] == b->stamp_now)
        return false;
    b->stamp[from] = b->stamp_now;
    const Group *gr = &b->c->group.at[from];
    if (b->top[from] < b->top[on])
        return false;
    for (int i = 0; i < gr->out.n + gr->private.n; i++) {
        Ref o = i < gr->out.n ? gr->out.at[i].ref : gr->private.at[i - gr->out.n];
        for (int j = 0; j < b->leaf[o].n; j++) {
            Ref l = b->leaf[o].at[j];
            if (depends(b, b->c->group_of[l], on))
                return true;
        }
    }
    if (gr->out.n == 0 || gr->kind == GROUP_SCAN)
        for (int j = 0; j < b->leaf[gr->anchor].n; j++) {
            Ref l = b->leaf[gr->anchor].at[j];
            if (depends(b, b->c->group_of[l], on))
                return true;
        }
    return false;
}

bool group_depends(Build *b, int from, int on)
{
    b->stamp_now++;
    return depends(b, from, on);
}

/* Merging `r` into group `into` would make a cycle: something else that r reads
 * depends on the group. */
static bool makes_cycle(Build *b, Ref r, int into)
{
    b->stamp_now++;
    for (int j = 0; j < b->leaf[r].n; j++) {
        Ref l = b->leaf[r].at[j];
        int gr = b->c->group_of[l];
        if (gr != into && depends(b, gr, into))
            return true;
    }
    return false;
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

/* Each pass over a row would draw it again. */
static bool has_drawn(const Build *b, const Group *gr)
{
    for (int i = 0; i < gr->out.n; i++)
        if (is_drawn(b, gr->out.at[i].ref))
            return true;
    return false;
}

static bool has_reduce(const Build *b, const Group *gr)
{
    for (int i = 0; i < gr->out.n; i++)
        if (is_reduced(b, gr->out.at[i].ref))
            return true;
    return gr->private.n > 0;
}

static int count_reduced(const Build *b, const Group *gr)
{
    int n = 0;
    for (int i = 0; i < gr->out.n; i++)
        n += is_reduced(b, gr->out.at[i].ref);
    return n;
}

/* May r join the loop group? */
static bool joins_rows(Build *b, Ref r, Group *gr, const Trace *t)
{
    const Graph *g = b->g;
    const Type *mine = type_of(g, r);
    if (b->long_chains && gr->weight + weight_of(b, r) > (float)LOOPS_MOST)
        return false;
    bool taller = is_prefix(type_of(g, gr->main), mine);
    if (!taller && !is_prefix(mine, type_of(g, gr->main)))
        return false;
    Ref tall = taller ? r : gr->main;
    for (int i = 0; i < gr->out.n; i++)
        if (!is_prefix(type_of(g, gr->out.at[i].ref), type_of(g, tall)))
            return false;
    if (has_reduce(b, gr) || is_reduced(b, r)) {
        if (is_drawn(b, r) || has_drawn(b, gr) || count_reduced(b, gr) >= REDUCED_MOST)
            return false;
        Ref low = taller ? gr->main : r;
        if (type_elems(type_of(g, low)) == 1 && row_elems(g, tall, low) > TOP_LEVEL_ELEMS)
            return false;
    }
    return reads_rows(b, t, gr);
}

/* The index goes from 0 to the end of its axis: a reader behind a `where` may ask for elements
 * that are not there, and leave out some that are. */
static bool covers(const Kernel *k, const KAff *index, int64_t dim)
{
    int64_t lo, hi;
    return k_aff_range(k, index, &lo, &hi) && lo == 0 && hi == dim - 1;
}

/* The contraction's group says of r only at its end whether it is true. */
static bool is_told(const Group *gr, Ref r)
{
    for (int i = 0; i < gr->out.n; i++)
        if (gr->out.at[i].ref == r && gr->out.at[i].all != NONE)
            return true;
    return false;
}

/* The same axes; same_shape() lets one have more of extent 1. */
static bool same_dims(const Graph *g, Ref x, Ref y)
{
    const Type *s = type_of(g, x), *t = type_of(g, y);
    return s->rank == t->rank && memcmp(s->dim, t->dim, sizeof *s->dim * (size_t)s->rank) == 0;
}

/* Nothing has joined the contraction: who does may read its element anywhere. */
static bool is_alone(const Group *gr)
{
    return gr->out.n == 1 && gr->out.at[0].ref == gr->anchor && gr->main == gr->anchor;
}

static bool reads_group(const Build *b, Ref r, int group)
{
    for (int i = 0; i < b->leaf[r].n; i++)
        if (b->c->group_of[b->leaf[r].at[i]] == group)
            return true;
    return false;
}

/* May r be computed in the epilogue of a contraction: element by element at the
 * place of the sum? */
static bool joins_epilogue(Build *b, Ref r, Group *gr, const Trace *t)
{
    const Graph *g = b->g;
    if (is_reduced(b, r) || gr->out.n >= 8)
        return false;
    if (b->weight[r] > (float)b->c->caps->epilogue_insts)
        return false;
    if (type_elems(type_of(g, r)) != type_elems(type_of(g, gr->anchor)))
        return false;
    bool alone = is_alone(gr);
    if (!alone && !same_dims(g, r, gr->main))
        return false;
    for (int i = 0; i < t->request.n; i++) {
        const Request *q = &t->request.at[i];
        Ref from = b->c->stored[q->ref] ? q->ref : memory_of(g, b->c->stored, q->ref);
        if (!b->c->stored[from] || b->c->group_of[from] < 0 ||
            &b->c->group.at[b->c->group_of[from]] != gr)
            continue;
        if (q->bounded || is_told(gr, from))
            return false;
        if (from != q->ref) /* a view of it; the element itself may be asked for as well */
            continue;
        /* the contraction's element may be anywhere, as long as each is met once: its
         * indices use each loop exactly once */
        int64_t reach = 1;
        for (int a = 0; a < rank(g, q->ref); a++)
            if (!covers(t->kernel, &q->idx[a], type_of(g, q->ref)->dim[a]))
                return false;
        for (int a = 0; a < rank(g, q->ref); a++)
            for (int j = 0; j < q->idx[a].n; j++) {
                const KInst *loop = &t->kernel->inst.at[q->idx[a].t[j].v];
                if (loop->op != KI_PAR)
                    return false;
                reach *= loop->imm.i;
            }
        if (reach != type_elems(type_of(g, q->ref)))
            return false;
        bool anywhere = q->ref == gr->anchor && (alone || gr->main != gr->anchor);
        if (!anywhere && !is_row_read(b, t, q))
            return false;
    }
    return true;
}

static void join(Build *b, Ref r, int32_t slot, int into)
{
    Clusters *c = b->c;
    Group *gr = &c->group.at[into];
    const Graph *g = b->g;
    /* What is computed beside the sum says nothing of where that is read. */
    bool leads = gr->kind == GROUP_CONTRACT ? is_alone(gr) && reads_group(b, r, into)
                                            : is_prefix(type_of(g, gr->main), type_of(g, r));
    if (leads)
        gr->main = r;
    add_out(c, gr, r, slot);
    c->group_of[r] = into;
    gr->weight += weight_of(b, r);
}

/* In a kernel of the forward pass a second computation, or what is made of it, would be done,
 * and kept, too early. */
static bool comes_too_early(const Build *b, Ref r, const Group *gr)
{
    const Origin *o = node(b->g, r)->origin;
    bool late = o != NULL && (o->memory == MEMORY_AGAIN || o->memory == MEMORY_LATE);
    return late && gr->anchor < b->g->n_primal;
}

/* The group computes a number that others may read, too, and r a new value of pinned storage:
 * that waits until the old one has been read, and they wait for the number. */
static bool holds_up(const Build *b, Ref r, const Group *gr)
{
    return b->assigned[r] && type_elems(type_of(b->g, r)) > 1 &&
           type_elems(type_of(b->g, gr->main)) == 1;
}

/* All that r reads of the group is computed again for contractions, and in memory for them: r can
 * wait until they have read it, and then be written over it. */
static bool can_wait(const Build *b, Ref r, int group)
{
    for (int i = 0; i < b->leaf[r].n; i++) {
        Ref l = b->leaf[r].at[i];
        const Origin *o = node(b->g, l)->origin;
        bool again = o != NULL && o->memory == MEMORY_AGAIN && b->contracts[l] > 0;
        if (b->c->group_of[l] == group && !again)
            return false;
    }
    return b->wide[r] > 1;
}

/* The contraction beside whose result it is read, if that can compute it in its epilogue; or -1.
 * Whether it joins a group that it reads is find_host()'s to say. */
static int find_beside(Build *b, Ref r, const Trace *t)
{
    int i = b->beside[r] != NONE ? b->c->group_of[b->beside[r]] : -1;
    Group *gr = i >= 0 ? &b->c->group.at[i] : NULL;
    bool may = gr != NULL && gr->anchor == b->beside[r] && gr->guarded == b->guarded[r] &&
               !reads_group(b, r, i) && joins_epilogue(b, r, gr, t) && !makes_cycle(b, r, i);
    return may ? i : -1;
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
        if (gr->guarded != b->guarded[r] || comes_too_early(b, r, gr) || holds_up(b, r, gr) ||
            can_wait(b, r, i))
            continue;
        bool may = gr->kind == GROUP_LOOP       ? joins_rows(b, r, gr, t)
                   : gr->kind == GROUP_CONTRACT ? joins_epilogue(b, r, gr, t)
                                                : false;
        if (may && !makes_cycle(b, r, i))
            best = i;
    }
    return best >= 0 ? best : find_beside(b, r, t);
}

/* What r tells to be true everywhere, or NONE. */
static Ref all_of(const Build *b, Ref r)
{
    const Graph *g = b->g;
    if (op_of(g, r) != OP_all || type_elems(type_of(g, r)) != 1)
        return NONE;
    Ref x = arg(g, r, 0);
    while (op_of(g, x) == OP_all && !b->c->stored[x])
        x = arg(g, x, 0);
    return b->c->stored[x] ? NONE : x;
}

/* What the contraction's group has to say of `all`, it can say where it stores elements: `all` is
 * of its main node's shape, and made from elements of that node at the same place. */
static bool can_tell(Build *b, const Group *gr, Ref all)
{
    const Graph *g = b->g;
    if (gr->kind != GROUP_CONTRACT || gr->out.n >= 8 || !same_dims(g, all, gr->main) ||
        type_elems(type_of(g, all)) <= 1)
        return false;
    for (int i = 0; i < gr->out.n; i++)
        if (gr->out.at[i].all != NONE)
            return false;
    const Trace *trace = trace_of(b, all);
    for (int i = 0; i < trace->request.n; i++) {
        const Request *q = &trace->request.at[i];
        Ref from = memory_of(g, b->c->stored, q->ref);
        bool ours = b->c->stored[from] && b->c->group_of[from] >= 0 &&
                    &b->c->group.at[b->c->group_of[from]] == gr;
        if (ours && (q->bounded || q->ref != gr->main || !is_row_read(b, trace, q)))
            return false;
    }
    return trace->trouble == FINE;
}

/* The contraction that is to say whether r, an `all` of its results, is true, or -1. In a body
 * sums may go to a limit alone. */
static int find_teller(Build *b, Ref r, Ref all)
{
    const Clusters *c = b->c;
    if (c->caps->tells_from <= 0 || all == NONE || b->g->outer != NULL || b->assigned[r] ||
        b->alone[r] || b->leaf[r].n != 1 || b->weight[all] > (float)c->caps->epilogue_insts)
        return -1;
    Ref of = b->leaf[r].at[0];
    int i = c->group_of[of];
    if (i < 0 || type_bytes(type_of(b->g, of)) < c->caps->tells_from)
        return -1;
    const Group *gr = &c->group.at[i];
    bool may = gr->guarded == b->guarded[r] && !comes_too_early(b, r, gr) && can_tell(b, gr, all);
    return may ? i : -1;
}

static bool same_shape(const Graph *g, Ref x, Ref y)
{
    return is_prefix(type_of(g, x), type_of(g, y)) && is_prefix(type_of(g, y), type_of(g, x));
}

/* A new value of each element of a slot, which nothing else reads but perhaps one more such. */
static bool is_update(const Build *b, Ref r)
{
    if (!b->assigned[r] || b->alone[r] || optab[op_of(b->g, r)]->kind == OP_REDUCE)
        return false;
    if (!b->c->stored[r])
        return true;
    Ref x = b->uses[r] == 2 ? b->reader[r] : NONE; /* the slot, and the reader */
    while (x != NONE && !b->assigned[x])
        x = b->uses[x] == 1 ? b->reader[x] : NONE;
    return x != NONE && same_shape(b->g, x, r);
}

/* Another update of as many elements that reads what r reads: the moments of a parameter and the
 * parameter itself are made of one pass over its gradient. Or -1. */
static int find_sibling(Build *b, Ref r)
{
    if (!is_update(b, r) || trace_of(b, r)->trouble != FINE)
        return -1;
    for (int j = 0; j < b->leaf[r].n; j++) {
        Ref l = b->leaf[r].at[j];
        int i = type_elems(type_of(b->g, l)) == type_elems(type_of(b->g, r)) ? b->update[l] : -1;
        const Group *gr = i < 0 ? NULL : &b->c->group.at[i];
        if (gr != NULL && gr->kind == GROUP_LOOP && gr->guarded == b->guarded[r] &&
            !has_reduce(b, gr) && same_shape(b->g, gr->main, r) && !makes_cycle(b, r, i))
            return i;
    }
    return -1;
}

static void note_update(Build *b, Ref r)
{
    if (is_update(b, r))
        for (int j = 0; j < b->leaf[r].n; j++)
            b->update[b->leaf[r].at[j]] = b->c->group_of[r];
}

/* A reduction of l to few values, each of many elements: those of a member of the batch, at least
 * (cluster_store.c, reduces_members). */
static bool sums_much(const Build *b, Ref r, Ref l)
{
    enum { MANY = 256, LARGE = 1 << 18 };
    int64_t from = type_elems(type_of(b->g, l)), to = type_elems(type_of(b->g, r));
    return optab[op_of(b->g, r)]->kind == OP_REDUCE && from >= LARGE && to > 1 && from / to >= MANY;
}

/* Another reduction, to the same shape, of what r reduces, too: for each result the second one
 * finds in the caches what the first one has read. Where results are too few for a machine, its
 * reductions stay apart. Or -1. */
static int find_sum(Build *b, Ref r)
{
    if (b->c->caps->few_results > 0 || b->assigned[r] || b->alone[r])
        return -1;
    for (int j = 0; j < b->leaf[r].n; j++) {
        Ref l = b->leaf[r].at[j];
        int i = sums_much(b, r, l) ? b->sums[l] : -1;
        const Group *gr = i < 0 ? NULL : &b->c->group.at[i];
        if (gr != NULL && gr->guarded == b->guarded[r] && same_shape(b->g, gr->main, r) &&
            trace_of(b, r)->trouble == FINE && reads_rows(b, trace_of(b, r), gr) &&
            !comes_too_early(b, r, gr) && !makes_cycle(b, r, i))
            return i;
    }
    return -1;
}

static void note_sum(Build *b, Ref r)
{
    int i = b->c->group_of[r];
    for (int j = 0; j < b->leaf[r].n; j++)
        if (sums_much(b, r, b->leaf[r].at[j]) && b->c->group.at[i].kind == GROUP_LOOP)
            b->sums[b->leaf[r].at[j]] = i;
}

static void place_node(Build *b, Ref r, int32_t slot)
{
    OpKind kind = optab[op_of(b->g, r)]->kind;
    Ref all = all_of(b, r);
    int host = find_teller(b, r, all);
    if (host >= 0) {
        GroupOut out = {.ref = r, .slot = slot, .all = all};
        vec_push(b->c->arena, &b->c->group.at[host].out, out);
        b->c->group_of[r] = host;
        note_node(b, r, host);
        return;
    }
    if (kind != OP_CONTRACT && kind != OP_OPAQUE && kind != OP_SCAN && !b->alone[r])
        host = find_host(b, r);
    if (host < 0)
        host = find_sibling(b, r);
    if (host < 0)
        host = find_sum(b, r);
    if (host >= 0)
        join(b, r, slot, host);
    else
        b->c->group_of[r] = new_group(b, r, slot);
    note_node(b, r, b->c->group_of[r]);
    note_update(b, r);
    note_sum(b, r);
}

/* Slots that node r is the new value of. */
static int next_assign(const Graph *g, Ref r, int from)
{
    for (int i = from; i < g->root.n; i++)
        if (g->root.at[i].kind == ROOT_ASSIGN && g->root.at[i].ref == r)
            return i;
    return -1;
}

/* A new value of a slot that no kernel can write there: it is there already, or the kernel
 * is the op's own and has one output. */
static bool is_copied(const Graph *g, Ref r)
{
    return ref_is_source(g, r) || op_of(g, r) == OP_pick || optab[op_of(g, r)]->kind == OP_OPAQUE;
}

static bool is_again(const Graph *g, Ref r)
{
    const Origin *o = node(g, r)->origin;
    return o != NULL && o->memory == MEMORY_AGAIN;
}

/* r reads it element by element, at its own place. */
static bool reads_in_place(Build *b, Ref r, Ref from)
{
    const Trace *t = trace_of(b, r);
    bool some = false;
    for (int i = 0; i < t->request.n; i++) {
        const Request *q = &t->request.at[i];
        if (memory_of(b->g, b->c->stored, q->ref) != from)
            continue;
        if (q->ref != from || !is_row_read(b, t, q))
            return false;
        some = true;
    }
    return some && t->trouble == FINE;
}

/* What it is made of lies as it does: where that ends here, it can be written over. */
static bool goes_along(Build *b, Ref r)
{
    const Trace *t = trace_of(b, r);
    for (int i = 0; i < t->request.n; i++) {
        const Request *q = &t->request.at[i];
        if (type_elems(type_of(b->g, q->ref)) >= type_elems(type_of(b->g, r)) &&
            !is_row_read(b, t, q))
            return false;
    }
    return t->trouble == FINE;
}

/* The contraction of the reverse pass, computed once, whose result r reads in place; or the one
 * that it is beside. */
static Ref contraction_of(Build *b, Ref r)
{
    const Graph *g = b->g;
    for (int i = 0; i < b->leaf[r].n; i++) {
        Ref l = b->leaf[r].at[i];
        if (op_of(g, l) == OP_contract && l >= g->n_primal && !is_again(g, l) &&
            same_dims(g, l, r) && reads_in_place(b, r, l))
            return l;
    }
    return b->beside[r];
}

/* What is computed again and then met with a contraction's result, element by element, as is the
 * activation behind a layer: the epilogue has both in registers, and one way through memory less.
 * Readers come first and hand on to what they read. */
static void mark_besides(Build *b)
{
    const Graph *g = b->g;
    for (Ref r = (Ref)g->node.n; b->c->caps->joins_again && r-- > g->n_primal;) {
        if (!b->c->stored[r] || optab[op_of(g, r)]->kind != OP_POINTWISE)
            continue;
        Ref con = NONE;
        for (int i = 0; i < b->leaf[r].n; i++) {
            Ref l = b->leaf[r].at[i];
            if (optab[op_of(g, l)]->kind != OP_POINTWISE || !is_again(g, l) || !same_dims(g, l, r))
                continue;
            con = con != NONE ? con : contraction_of(b, r);
            if (con != NONE && l > con && goes_along(b, l))
                b->beside[l] = con;
        }
    }
}

static bool has_group(const Build *b, Ref r)
{
    return b->c->stored[r] || b->assigned[r] || optab[op_of(b->g, r)]->kind == OP_SCAN;
}

void make_groups(Build *b)
{
    const Graph *g = b->g;
    Clusters *c = b->c;
    int32_t *seen = NEW_ARRAY(c->arena, int32_t, g->node.n);
    float weight = 0;
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        c->group_of[r] = b->update[r] = b->sums[r] = -1;
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        if (!ref_is_source(g, r) && has_group(b, r)) {
            collect_leaves(b, r, r, seen);
            weight += weight_of(b, r);
        }
    b->long_chains = weight > (float)CHAINS_MOST;
    mark_besides(b);
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        bool scan = optab[op_of(g, r)]->kind == OP_SCAN;
        if (!has_group(b, r))
            continue;
        if (op_of(g, r) == OP_pick && c->stored[r]) {
            c->group_of[r] = c->group_of[arg(g, r, 0)];
            add_out(c, &c->group.at[c->group_of[r]], r, -1);
            raise_top(b, c->group_of[r], r);
        } else if (!ref_is_source(g, r) && (c->stored[r] || scan)) {
            place_node(b, r, -1);
        }
        for (int i = next_assign(g, r, 0); i >= 0; i = next_assign(g, r, i + 1)) {
            int32_t slot = g->root.at[i].slot;
            if (c->stored[r] && is_copied(g, r))
                copy_group(b, r, slot, b->guarded[r]);
            else if (c->stored[r])
                add_out(c, &c->group.at[c->group_of[r]], r, slot);
            else
                place_node(b, r, slot);
        }
    }
}

/* ---- values that need no memory ------------------------------------------ */

/* By Ref: a root or another group reads it. */
static bool *read_outside(Build *b)
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
    return outside;
}

/* What its readers in the kernel have in a register, at the element that they are at. */
static bool may_be_private(const Group *gr, const GroupOut *o)
{
    return o->slot < 0 && (gr->kind == GROUP_LOOP || gr->kind == GROUP_CONTRACT);
}

void drop_private(Build *b)
{
    Clusters *c = b->c;
    bool *outside = read_outside(b);
    for (int i = 0; i < c->group.n; i++) {
        Group *gr = &c->group.at[i];
        int n = 0, all = gr->out.n;
        for (int j = 0; j < all; j++) {
            GroupOut o = gr->out.at[j];
            if (all > 1 && !outside[o.ref] && may_be_private(gr, &o))
                vec_push(c->arena, &gr->private, o.ref);
            else
                gr->out.at[n++] = o;
        }
        gr->out.n = n;
    }
}
