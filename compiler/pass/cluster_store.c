/* Which nodes are stored, and which are computed where they are read. */
#include "cluster_build.h"

enum {
    INLINE_SHARED = 8,   /* flops: a value read in several places is stored above this */
    INLINE_EXPANDED = 4, /* ... read many times through a broadcast or window */
    SPREAD_WIDE = 4096,  /* ... so many times, where it has a division or a root */
    INLINE_FACTOR = 1,   /* ... by contractions in a chunk of rows, which the caches hold */
    INLINE_MOST = 400,   /* an expression of so many flops, or nodes, is cut */
    SCALAR_MOST = 32,    /* ... a scalar one: sums over all parameters share kernels */
    FEW_OF = 16          /* so many times less is few */
};

/* Rows that lie together in what has memory, whatever is stored besides. */
static bool is_rows(const Graph *g, Ref r)
{
    if (op_of(g, r) != OP_slice || attr(g, r, SLICE_AXIS)->i != 0 || attr(g, r, SLICE_STEP)->i != 1)
        return false;
    for (r = arg(g, r, 0); op_of(g, r) == OP_reshape;)
        r = arg(g, r, 0);
    return op_of(g, r) == OP_pick || op_of(g, r) == OP_input || op_of(g, r) == OP_arg;
}

Ref memory_of(const Graph *g, const bool *stored, Ref r)
{
    while (!stored[r] && (op_of(g, r) == OP_reshape || is_rows(g, r)))
        r = arg(g, r, 0);
    return r;
}

int64_t memory_shift(const Graph *g, const bool *stored, Ref r)
{
    int64_t shift = 0;
    for (Ref end = memory_of(g, stored, r); r != end; r = arg(g, r, 0))
        if (op_of(g, r) == OP_slice && dim(g, r, 0) > 0)
            shift += attr(g, r, SLICE_START)->i * (type_elems(type_of(g, r)) / dim(g, r, 0));
    return shift;
}

/* Both parts of what scans stack are in memory, and so was all of it before keep_steps(). */
static bool joins_stacks(const Graph *g, Ref r)
{
    if (op_of(g, r) != OP_concat || attr(g, r, 0)->i != 0)
        return false;
    for (int i = 0; i < node(g, r)->n_args; i++) {
        Ref x = arg(g, r, i);
        while (op_of(g, x) == OP_reshape)
            x = arg(g, x, 0);
        if (op_of(g, x) != OP_pick)
            return false;
    }
    return true;
}

static bool is_light(OpKind k)
{
    return k == OP_POINTWISE || k == OP_VIEW || k == OP_SOURCE;
}

/* View r reads a. */
static void expand(Build *b, Ref r, Ref a)
{
    int64_t elems = type_elems(type_of(b->g, r)), of = type_elems(type_of(b->g, a));
    int64_t most = b->most_read[r] > elems ? b->most_read[r] : elems;
    b->expanded[a] |= b->expanded[r] || elems >= 4 * of;
    b->most_read[a] = most > b->most_read[a] ? most : b->most_read[a];
}

/* Places of an axis of the contraction's operand i are met more than once: by windows. */
static bool has_windows(const Graph *g, Ref r, int i)
{
    const Attr *map = attr(g, r, i == 0 ? CONTRACT_X : CONTRACT_Y);
    const int64_t *extent = attr(g, r, CONTRACT_EXTENT)->ints;
    for (int d = 0; d < map->n; d++) {
        int64_t met = 1;
        for (int t = 0; t < map->map[d].n; t++)
            met *= extent[map->map[d].index[t]];
        if (met > dim(g, arg(g, r, i), d))
            return true;
    }
    return false;
}

void count_reads(Build *b)
{
    const Graph *g = b->g;
    for (int i = 0; i < g->root.n; i++) {
        b->reads[g->root.at[i].ref]++;
        b->uses[g->root.at[i].ref]++;
    }
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        for (int i = 0; i < node(g, r)->n_args; i++)
            b->reader[arg(g, r, i)] = r;
    for (Ref r = (Ref)g->node.n; r-- > 1;) {
        const Op *op = optab[op_of(g, r)];
        bool through = op->kind == OP_VIEW;
        for (int i = 0; i < node(g, r)->n_args; i++) {
            Ref a = arg(g, r, i);
            b->reads[a] += through ? b->reads[r] : 1;
            bool reshaped = op_of(g, r) == OP_reshape;
            b->contracts[a] += reshaped ? b->contracts[r] : op->kind == OP_CONTRACT;
            b->scanned[a] |= op->kind == OP_SCAN;
            b->slid[a] |=
                op->kind == OP_CONTRACT ? has_windows(g, r, i) : is_light(op->kind) && b->slid[r];
            b->uses[a]++;
            b->reduces[a] += op->kind == OP_REDUCE;
            if (type_of(g, r)->rank >= 0 && type_of(g, a)->rank >= 0 && through)
                expand(b, r, a);
        }
    }
}

void find_guarded(Build *b)
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

/* Another reduction of the same op reads r, and nothing else does but for second computations. */
static bool may_walk_on(const Build *b, Ref r)
{
    const Graph *g = b->g;
    const Origin *o = node(g, r)->origin;
    WalksOn walks = o == NULL ? WALKS_IF_ALONE : o->walks;
    bool alone = walks == WALKS_IF_ALONE ? b->reads[r] == 1 : walks == WALKS_ON;
    return optab[op_of(g, r)]->kind == OP_REDUCE && alone && b->reader[r] != NONE &&
           op_of(g, b->reader[r]) == op_of(g, r);
}

/* What the reductions of one op, of which r is the last, go through. */
static int64_t walked_elems(const Build *b, Ref r)
{
    Ref x = arg(b->g, r, 0);
    while (op_of(b->g, x) == op_of(b->g, r) && may_walk_on(b, x))
        x = arg(b->g, x, 0);
    return type_elems(type_of(b->g, x));
}

/* A reduction of some results, of which another one makes few: in two kernels both of them are
 * shared by more threads. That is no other value where the order of the operands is free. */
static bool in_two(const Build *b, Ref r)
{
    const Graph *g = b->g;
    int64_t few = b->c->caps->few_results, last = type_elems(type_of(g, b->reader[r]));
    return last < few && type_elems(type_of(g, r)) / FEW_OF >= last && walked_elems(b, r) >= few &&
           !dtype_is_float(type_of(g, r)->dtype);
}

/* A reduction over the batch of what long ones within its members give, as those of a batch norm:
 * each member has its own, so that it can be made as soon as the member is there
 * (target/cpu/chain.c), by any thread. Shorter ones were not tried. */
static bool reduces_members(const Build *b, Ref r)
{
    enum { MANY = 1 << 18, LONG = 256, MEMBERS = 16 };
    const Graph *g = b->g;
    const Type *t = type_of(g, r), *all = type_of(g, b->reader[r]);
    if (t->rank < 3 || all->rank != t->rank || t->dim[0] < MEMBERS || t->dim[t->rank - 1] != 1)
        return false;
    int64_t from = walked_elems(b, r), kept = type_elems(all);
    return kept > 1 && type_elems(t) == t->dim[0] * kept && from >= MANY &&
           from / type_elems(t) >= LONG;
}

/* A reduction that another one of the same op goes on with: one walk, one accumulator. */
static bool walks_on(const Build *b, Ref r)
{
    return may_walk_on(b, r) && !b->forced[r] && !in_two(b, r) && !reduces_members(b, r);
}

/* What is kept, unless no reverse pass reads it, but another reduction goes on with it. */
void force_kept(Build *b)
{
    for (Ref r = 1; r < b->g->n_primal; r++) {
        const Origin *o = node(b->g, r)->origin;
        if (origin_is_kept(o) || (o != NULL && o->memory == MEMORY_STORED)) {
            Ref below = below_views(b->g, r);
            bool forced = !ref_is_source(b->g, below) && !walks_on(b, below);
            b->forced[below] = b->forced[below] || forced;
        }
    }
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

/* `of` the operands that are computed where r is. */
static float sum_inlined(const Build *b, Ref r, const float *of)
{
    float w = 0;
    for (int i = 0; i < node(b->g, r)->n_args; i++) {
        Ref a = arg(b->g, r, i);
        if (!b->c->stored[a])
            w += of[a];
    }
    return w;
}

/* An operand that is computed where r is has it. */
static bool has_inlined(const Build *b, Ref r, const bool *has)
{
    for (int i = 0; i < node(b->g, r)->n_args; i++) {
        Ref a = arg(b->g, r, i);
        if (!b->c->stored[a] && has[a])
            return true;
    }
    return false;
}

/* Its expression has a division or a root, which take as long as many other operations. */
static bool divides(const Build *b, Ref r)
{
    OpId op = op_of(b->g, r);
    return op == OP_div || op == OP_sqrt || op == OP_rsqrt || op == OP_pow ||
           has_inlined(b, r, b->divides);
}

/* Its expression has a draw, which takes as long as a hundred other operations. */
static bool draws(const Build *b, Ref r)
{
    OpId op = op_of(b->g, r);
    bool is = op == OP_uniform || op == OP_normal || op == OP_random_bits;
    return is || has_inlined(b, r, b->draws);
}

static int elem_bytes(const Graph *g, Ref r)
{
    return dtype_bytes(type_of(g, r)->dtype);
}

/* The only reader is a transposition that a scan reads: that is stored. */
static bool is_turned(const Build *b, Ref r)
{
    Ref t = b->reader[r];
    return t != NONE && b->uses[r] == 1 && op_of(b->g, t) == OP_transpose && b->scanned[t];
}

/* A contraction's result that one node reads, and so on along a chain, is best finished
 * in its epilogue: the end of the chain is stored in place of its beginning. Unless its
 * elements are wider: a half is stored, and its casts are computed where they are read. */
static bool ends_epilogue(Build *b, Ref r)
{
    const Graph *g = b->g;
    if (optab[op_of(g, r)]->kind != OP_POINTWISE)
        return false;
    for (int i = 0; i < node(g, r)->n_args; i++) {
        Ref a = arg(g, r, i);
        int from = optab[op_of(g, a)]->kind == OP_CONTRACT ? elem_bytes(g, a) : b->fresh[a];
        if (b->reads[a] == 1 && from > b->fresh[r])
            b->fresh[r] = (uint8_t)from;
    }
    if (b->fresh[r] == 0)
        return false;
    bool goes_on = b->reads[r] == 1 && b->reader[r] != NONE &&
                   optab[op_of(g, b->reader[r])]->kind == OP_POINTWISE;
    goes_on = goes_on || is_turned(b, r);
    return !goes_on && elem_bytes(g, r) <= b->fresh[r];
}

/* An index that is kept in fewer bytes, and read nowhere else. */
static bool is_narrowed(const Build *b, Ref r)
{
    OpId op = op_of(b->g, r);
    Ref cast = b->uses[r] == 1 ? b->reader[r] : NONE;
    return (op == OP_argmax || op == OP_argmin) && cast != NONE && op_of(b->g, cast) == OP_cast &&
           elem_bytes(b->g, cast) < elem_bytes(b->g, r) && !b->forced[r];
}

static bool narrows(const Build *b, Ref r)
{
    return op_of(b->g, r) == OP_cast && is_narrowed(b, arg(b->g, r, 0));
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

/* Values of r's size in memory that its expression reads, each as often as it does: none, one or
 * more. What r is put together of counts likewise: each element asks which part it is in. */
static uint8_t wide_operands(const Build *b, Ref r)
{
    const Graph *g = b->g;
    bool parts = op_of(g, r) == OP_concat || op_of(g, r) == OP_pad;
    int n = 0;
    for (int i = 0; i < node(g, r)->n_args; i++) {
        Ref a = memory_of(g, b->c->stored, arg(g, r, i));
        if (is_drawn(b, a))
            continue;
        if (parts || type_elems(type_of(g, a)) >= type_elems(type_of(g, r)))
            n += b->c->stored[a] ? 1 : b->wide[a];
    }
    return n > 2 ? 2 : (uint8_t)n;
}

/* Several contractions, or one and a reduction, read what is made of several wide values; or many
 * others do, and no cache holds them: each would read all of them. Not so in the forward pass,
 * where what is stored may be there until the reverse pass reads it. */
static bool saves_reads(const Build *b, Ref r)
{
    enum { MANY = 4, FAR_BYTES = 4 << 20 };
    bool several = b->contracts[r] > 0 && b->contracts[r] + b->reduces[r] > 1;
    bool far = type_elems(type_of(b->g, r)) * elem_bytes(b->g, r) >= FAR_BYTES;
    return r >= b->g->n_primal && b->wide[r] > 1 && (several || (far && b->reads[r] >= MANY));
}

/* A contraction reads what is computed again, and made of something that is stored for that as
 * well: r is stored in place of both, and can be so over one that ends here. */
static bool replaces_operands(const Build *b, Ref r)
{
    const Origin *o = node(b->g, r)->origin;
    return o != NULL && o->memory == MEMORY_AGAIN && b->contracts[r] > 0 && b->wide[r] > 1;
}

/* Few elements of what a kernel of a body has computed, by an index: while they are not read, all
 * of it has to be there. Elsewhere the most is live when what is made of it is read in turn. */
static bool takes_few(const Graph *g, Ref r)
{
    Ref from = op_of(g, r) == OP_take_along ? below_views(g, arg(g, r, 0)) : NONE;
    return from != NONE && g->outer != NULL && !ref_is_source(g, from) &&
           type_elems(type_of(g, from)) >= FEW_OF * type_elems(type_of(g, r));
}

/* Rows of a table that windows slide over: each element would be asked for by its index as often as
 * windows meet it, one at a time. */
static bool gathers_for_windows(const Build *b, Ref r)
{
    return op_of(b->g, r) == OP_gather && b->slid[r];
}

static void choose_node(Build *b, Ref r)
{
    const Graph *g = b->g;
    Clusters *c = b->c;
    OpKind kind = optab[op_of(g, r)]->kind;
    bool pick = op_of(g, r) == OP_pick;
    if (kind == OP_REDUCE)
        store_across_lines(b, r);
    if (walks_on(b, r) || is_narrowed(b, r))
        return;
    if (ref_is_source(g, r) || kind == OP_CONTRACT || kind == OP_OPAQUE || kind == OP_REDUCE ||
        pick || b->forced[r] || joins_stacks(g, r) || takes_few(g, r) || narrows(b, r) ||
        gathers_for_windows(b, r))
        store(b, r);
    if (!is_light(kind) || c->stored[r]) {
        store_operands(b, r);
        return;
    }
    b->weight[r] = sum_inlined(b, r, b->weight) + op_flops(&b->op_flops, g, r);
    b->length[r] = sum_inlined(b, r, b->length) + !ref_is_source(g, r);
    b->wide[r] = wide_operands(b, r);
    b->draws[r] = draws(b, r);
    if (ends_epilogue(b, r)) {
        store(b, r);
        return;
    }
    float most = (float)(rank(g, r) == 0 ? SCALAR_MOST : INLINE_MOST);
    b->divides[r] = divides(b, r);
    bool shared = b->reads[r] > 1 && (is_drawn(b, r) || b->weight[r] > (float)INLINE_SHARED);
    bool slow = c->tails == NULL && b->divides[r] && rank(g, r) > 0 && /* a scalar is hoisted */
                b->most_read[r] / SPREAD_WIDE >= type_elems(type_of(g, r));
    bool expanded = b->expanded[r] && (slow || b->weight[r] > (float)INLINE_EXPANDED);
    bool factor = c->tails != NULL && b->contracts[r] > 1 && b->weight[r] >= (float)INLINE_FACTOR;
    bool heavy =
        factor || shared || expanded || b->weight[r] > most || b->length[r] > (float)INLINE_MOST;
    if ((kind == OP_POINTWISE || op_of(g, r) == OP_concat) &&
        (heavy || takes_place(b, r) || saves_reads(b, r) || replaces_operands(b, r)))
        store(b, r);
}

void choose_stored(Build *b)
{
    const Graph *g = b->g;
    for (int i = 0; i < g->root.n; i++)
        if (!ref_is_source(g, g->root.at[i].ref) && g->root.at[i].kind != ROOT_ASSIGN)
            store(b, g->root.at[i].ref);
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        choose_node(b, r);
        find_lies(b, r);
    }
}
