/* What the model asks of its values by `recompute`, or drop_light() does, is built into the graph:
 * the reverse pass reads second computations, which nothing in the forward pass reads, so that the
 * first ones need not be kept. Each stands before its first reader, and simplify() takes it for
 * another value than the first.
 *
 * Around a binding with the word, values are kept as ever. So an elementwise value that is made
 * of what is not kept, and read by the reverse pass, is stored, where fusion could have computed
 * it at each reader from what it is made of. A view of what is not kept is another such view.
 * A scan (the row chunks of what has the word, for one) gives all of its results or none again. */
#include "pass.h"

typedef struct Replay {
    Graph *to;
    const Graph *from;
    const bool *lost;  /* by node of `from`: of the forward pass, and not kept */
    const bool *early; /* of the reverse pass, made in the forward pass, and kept if not lost; NULL:
                        * none is */
    const Ref *bits;   /* by early truth value: the first of those that share a byte with it */
    bool *stored;   /* ... but for these; or a half that is kept, though what leads to it is lost */
    bool *read;     /* ... the reverse pass reads it, or what is computed again for that */
    bool *late;     /* of the reverse pass, and made of what is computed again */
    Ref *map;       /* its copy */
    Ref *again;     /* the copy that the reverse pass reads; NONE: not yet made */
    Ref *byte;      /* by the first of several truth values: those that are made, in one byte; */
    int32_t *many;  /* ... how many there are; and ... */
    int32_t *made;  /* ... are made */
    int32_t *place; /* by truth value: which bit it is */
    WalksOn *walks; /* by node of `from`; NULL: as before */
    Arena arena;
    VEC(Ref) pending;
} Replay;

static Memory asked_of(const Graph *g, Ref r)
{
    const Origin *o = node(g, r)->origin;
    return o == NULL || optab[op_of(g, r)]->kind == OP_SOURCE ? MEMORY_PLANNED : o->memory;
}

static bool is_asked(const Graph *g)
{
    for (Ref r = 1; r < g->n_primal; r++)
        if (asked_of(g, r) == MEMORY_RECOMPUTE)
            return true;
    return false;
}

/* May be computed where it is read, in place of being stored. */
static bool may_be_inlined(const Graph *g, Ref r)
{
    OpKind kind = optab[op_of(g, r)]->kind;
    return kind == OP_VIEW || kind == OP_POINTWISE;
}

/* What the words of the model lose, and what is made of it. */
static const bool *find_lost(const Graph *g, Arena *a)
{
    bool *lost = NEW_ARRAY(a, bool, g->node.n);
    for (Ref r = 1; r < g->n_primal; r++) {
        Memory memory = asked_of(g, r);
        lost[r] = memory == MEMORY_RECOMPUTE && (op_of(g, r) != OP_pick || lost[arg(g, r, 0)]);
        if (memory == MEMORY_PLANNED && may_be_inlined(g, r))
            for (int i = 0; i < node(g, r)->n_args; i++)
                lost[r] = lost[r] || lost[arg(g, r, i)];
    }
    return lost;
}

/* Not steps between halves: the half that they lead to is stored. */
static void find_stored(Replay *v)
{
    const bool *step = graph_steps(v->from, &v->arena);
    for (Ref r = 1; r < v->from->n_primal; r++)
        v->stored[r] = v->lost[r] && asked_of(v->from, r) == MEMORY_PLANNED && !step[r] &&
                       optab[op_of(v->from, r)]->kind == OP_POINTWISE;
}

/* A half that f32 values lead to which are lost, or made of those, is stored, and not one of them.
 */
static void find_stored_halves(Replay *v)
{
    const Graph *g = v->from;
    bool *of_lost = NEW_ARRAY(&v->arena, bool, g->node.n);
    for (Ref r = 1; r < g->n_primal; r++) {
        bool made = v->lost[r];
        for (int i = 0; optab[op_of(g, r)]->kind == OP_POINTWISE && i < node(g, r)->n_args; i++)
            made = made || of_lost[arg(g, r, i)];
        bool half = dtype_is_half(type_of(g, r)->dtype);
        of_lost[r] = made && !half;
        v->stored[r] = made && half && !v->lost[r] && asked_of(g, r) == MEMORY_PLANNED;
    }
}

static void find_late(Replay *v)
{
    for (Ref r = v->from->n_primal; r < (Ref)v->from->node.n; r++)
        v->late[r] = asked_of(v->from, r) == MEMORY_RECOMPUTE;
}

/* In a kernel of the forward pass it would be made of the first computations, and kept. */
static void find_made_of_lost(Replay *v)
{
    const Graph *g = v->from;
    for (Ref r = g->n_primal; r < (Ref)g->node.n; r++)
        for (int i = 0; i < node(g, r)->n_args; i++)
            v->late[r] = v->late[r] || v->lost[arg(g, r, i)] || v->late[arg(g, r, i)];
}

static void find_read(Replay *v)
{
    const Graph *g = v->from;
    for (Ref r = (Ref)g->node.n - 1; r >= 1; r--) {
        bool again = v->read[r] && v->lost[r] && !v->stored[r];
        for (int i = 0; (r >= g->n_primal || again) && i < node(g, r)->n_args; i++)
            v->read[arg(g, r, i)] = true;
    }
}

static const Origin *asking(Replay *v, const Origin *from, Memory memory, WalksOn walks)
{
    if (from == NULL || (from->memory == memory && from->walks == walks))
        return from;
    Origin *o = NEW(&v->to->cx->perm, Origin);
    *o = *from;
    o->memory = memory;
    o->walks = walks;
    return o;
}

/* A reduction that another one goes on with has one accumulator with it, which is another order of
 * a sum: what readers second computations take over, or are, changes nothing in that. */
static void find_walks(Replay *v)
{
    const Graph *g = v->from;
    int32_t *reads = NEW_ARRAY(&v->arena, int32_t, g->node.n); /* as of count_reads() */
    v->walks = NEW_ARRAY(&v->arena, WalksOn, g->node.n);
    for (int i = 0; i < g->root.n; i++)
        reads[g->root.at[i].ref]++;
    for (Ref r = (Ref)g->node.n; r-- > 1;)
        for (int i = 0; i < node(g, r)->n_args; i++)
            reads[arg(g, r, i)] += optab[op_of(g, r)]->kind == OP_VIEW ? reads[r] : 1;
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        if (optab[op_of(g, r)]->kind == OP_REDUCE)
            v->walks[r] = reads[r] == 1 ? WALKS_ON : WALKS_NOT;
}

static Ref copy(Replay *v, Ref r, const Ref *map, Memory memory)
{
    Ref made = graph_copy_node(v->to, v->from, r, map);
    Node *n = &v->to->node.at[made];
    WalksOn before = n->origin == NULL ? WALKS_IF_ALONE : n->origin->walks;
    n->origin = asking(v, n->origin, memory, v->walks == NULL ? before : v->walks[r]);
    return made;
}

/* The copy of a node of the forward pass; the reverse pass reads it unless it is lost. */
static void copy_forward(Replay *v, Ref r)
{
    bool stored = v->stored[r];
    const Origin *o = node(v->from, r)->origin;
    Memory memory = stored && v->read[r] ? MEMORY_STORED : o == NULL ? MEMORY_PLANNED : o->memory;
    v->map[r] = copy(v, r, v->map, memory);
    if (!v->lost[r] || stored)
        v->again[r] = v->map[r];
}

/* What `r` of the reverse pass reads of lost values is computed again, operands first. */
static void compute_again(Replay *v, Ref r)
{
    for (int i = 0; i < node(v->from, r)->n_args; i++)
        vec_push(&v->arena, &v->pending, arg(v->from, r, i));
    while (v->pending.n > 0) {
        Ref x = v->pending.at[v->pending.n - 1];
        int n = v->pending.n;
        for (int i = 0; v->again[x] == NONE && i < node(v->from, x)->n_args; i++)
            if (v->again[arg(v->from, x, i)] == NONE)
                vec_push(&v->arena, &v->pending, arg(v->from, x, i));
        if (v->pending.n > n)
            continue;
        if (v->again[x] == NONE)
            v->again[x] = copy(v, x, v->again, MEMORY_AGAIN);
        v->pending.n--;
    }
}

static void copy_reverse(Replay *v, Ref r)
{
    Memory asked = asked_of(v->from, r), memory = v->late[r] ? MEMORY_LATE : MEMORY_PLANNED;
    compute_again(v, r);
    if (asked == MEMORY_AGAIN || asked == MEMORY_LATE) /* it has been copied before */
        memory = asked;
    v->map[r] = v->again[r] = copy(v, r, v->again, memory);
}

static bool is_early(const Replay *v, Ref r)
{
    return v->early != NULL && v->early[r];
}

/* An index that a byte can hold. */
static bool is_narrow(const Graph *g, Ref r)
{
    bool chosen = op_of(g, r) == OP_argmax || op_of(g, r) == OP_argmin;
    return chosen && dim(g, arg(g, r, 0), (int)attr(g, r, 0)->i) <= 256;
}

/* By node of the forward pass: the first of the early ones that can be made then and not before;
 * by early node: the next. */
typedef struct EarlyList {
    Ref *first, *next;
} EarlyList;

static EarlyList list_early(Replay *v)
{
    const Graph *g = v->from;
    Ref *from = NEW_ARRAY(&v->arena, Ref, g->node.n), *last = NEW_ARRAY(&v->arena, Ref, g->node.n);
    EarlyList l = {NEW_ARRAY(&v->arena, Ref, g->node.n), NEW_ARRAY(&v->arena, Ref, g->node.n)};
    for (Ref r = g->n_primal; r < (Ref)g->node.n; r++) {
        if (!is_early(v, r))
            continue;
        from[r] = 1;
        for (int i = 0; i < node(g, r)->n_args; i++) {
            Ref x = arg(g, r, i), at = x < g->n_primal ? x : from[x];
            from[r] = at > from[r] ? at : from[r];
        }
        *(last[from[r]] == NONE ? &l.first[from[r]] : &l.next[last[from[r]]]) = r;
        last[from[r]] = r;
    }
    return l;
}

/* An early value that the reverse pass reads. */
static bool is_kept(const Replay *v, Ref r)
{
    return is_early(v, r) && !v->lost[r];
}

/* The first of several truth values that r is kept in one byte with, or NONE. */
static Ref first_bit(const Replay *v, Ref r)
{
    Ref first = is_kept(v, r) ? v->bits[r] : NONE;
    return first != NONE && v->many[first] > 1 ? first : NONE;
}

static void count_bits(Replay *v)
{
    v->byte = NEW_ARRAY(&v->arena, Ref, v->from->node.n);
    v->place = NEW_ARRAY(&v->arena, int32_t, v->from->node.n);
    v->made = NEW_ARRAY(&v->arena, int32_t, v->from->node.n);
    v->many = NEW_ARRAY(&v->arena, int32_t, v->from->node.n);
    for (Ref r = v->from->n_primal; r < (Ref)v->from->node.n; r++)
        if (is_kept(v, r) && v->bits[r] != NONE)
            v->many[v->bits[r]]++;
}

/* Adds r to its byte, which is stored when it has all of them. */
static void set_bit(Replay *v, Ref r, Ref first)
{
    Ref bit = g_cast(v->to, U8, v->map[r]), byte = v->byte[first];
    v->place[r] = v->made[first]++;
    if (byte != NONE) {
        bit = g_scale(v->to, bit, (double)(1 << v->place[r]));
        if (v->made[first] == v->many[first])
            v->to->origin = asking(v, v->to->origin, MEMORY_STORED, WALKS_IF_ALONE);
        bit = g_add(v->to, byte, bit);
    }
    v->byte[first] = bit;
}

static Ref get_bit(Replay *v, Ref r, Ref first)
{
    Ref byte = v->byte[first];
    const Type *t = type_of(v->to, byte);
    Ref least = g_full(v->to, *t, (double)(1 << v->place[r]));
    if (v->place[r] + 1 < v->many[first]) {
        Ref above = g_full(v->to, *t, (double)(2 << v->place[r]));
        byte = g_binary(v->to, OP_rem, byte, above);
    }
    return g_binary(v->to, OP_le, least, byte);
}

/* Indices are kept in bytes, and so are truth values, several in one. */
static void copy_early(Replay *v, Ref r)
{
    v->map[r] = copy(v, r, v->map, MEMORY_PLANNED);
    if (!is_kept(v, r))
        return;
    v->again[r] = v->map[r];
    v->to->origin = node(v->to, v->map[r])->origin;
    if (is_narrow(v->from, r))
        v->again[r] = g_cast(v->to, U8, v->map[r]);
    if (first_bit(v, r) != NONE)
        set_bit(v, r, first_bit(v, r));
}

/* ... and taken apart where the reverse pass reads them. */
static void widen_early(Replay *v)
{
    for (Ref r = v->from->n_primal; r < (Ref)v->from->node.n; r++) {
        if (!is_kept(v, r))
            continue;
        v->to->origin = node(v->to, v->map[r])->origin;
        if (is_narrow(v->from, r))
            v->again[r] = g_cast(v->to, I32, v->again[r]);
        if (first_bit(v, r) != NONE)
            v->again[r] = get_bit(v, r, first_bit(v, r));
    }
}

static void copy_all(Replay *v)
{
    const Graph *g = v->from;
    const EarlyList early = list_early(v);
    count_bits(v);
    find_read(v);
    for (Ref r = 1; r < g->n_primal; r++) {
        copy_forward(v, r);
        for (Ref e = early.first[r]; e != NONE; e = early.next[e])
            copy_early(v, e);
    }
    v->to->n_primal = (Ref)v->to->node.n;
    widen_early(v);
    for (Ref r = g->n_primal; r < (Ref)g->node.n; r++)
        if (!is_kept(v, r))
            copy_reverse(v, r);
    graph_copy_roots(v->to, g, v->map);
}

static Replay replay_open(const Graph *g)
{
    Replay v = {.from = g, .to = graph_new(g->cx, g->name)};
    v.stored = NEW_ARRAY(&v.arena, bool, g->node.n);
    v.read = NEW_ARRAY(&v.arena, bool, g->node.n);
    v.late = NEW_ARRAY(&v.arena, bool, g->node.n);
    v.map = NEW_ARRAY(&v.arena, Ref, g->node.n);
    v.again = NEW_ARRAY(&v.arena, Ref, g->node.n);
    return v;
}

Graph *replay(const Graph *g)
{
    if (!is_asked(g))
        return NULL;
    Replay v = replay_open(g);
    v.lost = find_lost(g, &v.arena);
    find_stored(&v);
    find_late(&v);
    find_walks(&v);
    copy_all(&v);
    arena_free(&v.arena);
    return v.to;
}

Graph *replay_lost(const Graph *g, const bool *lost, const bool *early, const Ref *bits)
{
    Replay v = replay_open(g);
    v.lost = lost;
    v.early = early;
    v.bits = bits;
    find_stored_halves(&v);
    find_made_of_lost(&v);
    copy_all(&v);
    arena_free(&v.arena);
    return v.to;
}
