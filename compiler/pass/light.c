/* Values that cost little to compute again are not kept from the forward to the reverse pass.
 *
 * What the reverse pass reads is kept, or made of what is kept by elementwise ops and views alone.
 * What to keep, so that it is the least bytes, is a minimum cut: each value is an edge that is
 * worth its bytes, contractions, reductions and scans are joined to the source, since they are not
 * computed again, and what the reverse pass reads is joined to the sink. Of several such cuts the
 * one nearest to the sink computes the least again.
 *
 * What it takes to compute a value again is an edge, too, from the source: so many bytes for a ns.
 * That price rises until all that is computed again stays within a share of the time of the whole
 * graph. Where values are kept as halves, steps in f32 between them have no price.
 *
 * The reverse pass also makes small things of what it reads, and of nothing else: which element of
 * a window is the largest, whether a value is positive. They may be made early, in the forward
 * pass, and kept in place of what they are made of. Where they are not, that is no second
 * computation, and costs nothing. An index is kept in a byte if it fits there, and truth values of
 * one value are bits of one byte.
 * source: the partitioner of PyTorch's functorch (min_cut_rematerialization_partition) for the
 *         idea of a cut; here, nothing on the source's side of it is computed twice. */
#include "../base/min_cut.h"
#include "graph_cost.h"
#include "pass.h"

enum { SOURCE, SINK }; /* the network's, in place of the two of NONE */

/* What a byte is worth. A value that no kernel would store, for it is part of a longer
 * expression, takes time to be stored, too; one that is early comes on top of what it is made of,
 * and takes time to be made. */
enum { BYTE = 32, BYTE_APART = 48, BYTE_EARLY = 96 };

enum { BITS = 8 }; /* truth values that are kept in one byte */

/* What a ns is worth, at first and at most. */
enum { PRICE_LEAST = 4, PRICE_MOST = 1 << 14 };

typedef struct Light {
    const Graph *g;
    Arena *arena;
    OpFlops *flops;
    Cut cut;
    int64_t price;    /* of a ns */
    int32_t *reads;   /* by node: how many of the forward pass do, ... */
    Ref *reader;      /* ... and the last of them */
    bool *fresh;      /* the epilogue of a contraction has it in registers */
    bool *stays;      /* the caller reads it at the end */
    bool *early;      /* of the reverse pass: it could be made in the forward pass */
    bool *constant;   /* nothing but constants, and views of them */
    bool *read;       /* what is neither of the forward pass nor early reads it */
    const bool *step; /* steps.c; NULL: none is */
    Ref *bits;        /* truth values that may share a byte: the first of them; else NONE, ... */
    int32_t *many;    /* ... and by the first: how many may */
} Light;

static int32_t enters(Ref r)
{
    return 2 * (int32_t)r;
}

static int32_t leaves(Ref r)
{
    return 2 * (int32_t)r + 1;
}

static bool is_asked_for(const Graph *g, Ref r)
{
    const Origin *o = node(g, r)->origin;
    return o != NULL && o->memory != MEMORY_PLANNED;
}

/* What the model itself asks of a value is left as it is. */
static bool is_light(const Graph *g, Ref r)
{
    OpKind kind = optab[op_of(g, r)]->kind;
    return (kind == OP_POINTWISE || kind == OP_VIEW) && !is_asked_for(g, r);
}

static void look_at(Light *l, Arena *a)
{
    const Graph *g = l->g;
    l->reads = NEW_ARRAY(a, int32_t, g->node.n);
    l->reader = NEW_ARRAY(a, Ref, g->node.n);
    l->fresh = NEW_ARRAY(a, bool, g->node.n);
    l->stays = NEW_ARRAY(a, bool, g->node.n);
    for (int i = 0; i < g->root.n; i++)
        l->stays[g->root.at[i].ref] = g->root.at[i].kind != ROOT_ASSIGN;
    for (Ref r = 1; r < g->n_primal; r++)
        for (int i = 0; i < node(g, r)->n_args; i++) {
            l->reads[arg(g, r, i)]++;
            l->reader[arg(g, r, i)] = r;
        }
    for (Ref r = 1; r < g->n_primal; r++)
        for (int i = 0; i < node(g, r)->n_args; i++) {
            Ref x = arg(g, r, i);
            bool is = optab[op_of(g, x)]->kind == OP_CONTRACT || l->fresh[x];
            l->fresh[r] |= is && l->reads[x] == 1 && optab[op_of(g, r)]->kind == OP_POINTWISE;
        }
}

/* What it takes to compute r again; steps between halves are, whatever it takes. */
static double value_ns(const Light *l, Ref r)
{
    return l->step != NULL && l->step[r] ? 0 : node_ns(l->flops, l->g, r);
}

/* ---- what could be made early ----------------------------------------------------------- */

static bool is_index(const Graph *g, Ref r)
{
    return op_of(g, r) == OP_argmax || op_of(g, r) == OP_argmin;
}

/* Truth values and integers, of float values that are not there in any case. */
static bool may_be_early(const Light *l, Ref r, bool *made)
{
    const Graph *g = l->g;
    OpKind kind = optab[op_of(g, r)]->kind;
    bool fits = kind == OP_POINTWISE || kind == OP_VIEW || is_index(g, r);
    if (!fits || is_asked_for(g, r) || dtype_is_float(type_of(g, r)->dtype))
        return false;
    for (int i = 0; i < node(g, r)->n_args; i++) {
        Ref x = arg(g, r, i);
        bool source = optab[op_of(g, x)]->kind == OP_SOURCE;
        if (x >= g->n_primal && !l->early[x] && !source)
            return false;
        made[r] = made[r] || made[x] || (x < g->n_primal && !source);
    }
    return true;
}

/* Views of constants that early values read are so, too. */
static bool is_constant(const Light *l, Ref r, const bool *constant)
{
    const Graph *g = l->g;
    OpKind kind = optab[op_of(g, r)]->kind;
    bool is = kind == OP_VIEW || (kind == OP_SOURCE && node(g, r)->n_args == 0);
    for (int i = 0; is && i < node(g, r)->n_args; i++)
        is = constant[arg(g, r, i)];
    return is && op_of(g, r) != OP_input && op_of(g, r) != OP_slot;
}

static void find_early(Light *l, Arena *a)
{
    const Graph *g = l->g;
    bool *made = NEW_ARRAY(a, bool, g->node.n);
    bool *constant = l->constant = NEW_ARRAY(a, bool, g->node.n);
    l->early = NEW_ARRAY(a, bool, g->node.n);
    l->read = NEW_ARRAY(a, bool, g->node.n);
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        constant[r] = is_constant(l, r, constant);
        l->early[r] = r >= g->n_primal && (constant[r] || may_be_early(l, r, made));
    }
    for (Ref r = (Ref)g->node.n - 1; r >= g->n_primal; r--)
        l->early[r] = l->early[r] && (constant[r] || made[r]);
    for (Ref r = g->n_primal; r < (Ref)g->node.n; r++)
        for (int i = 0; !l->early[r] && i < node(g, r)->n_args; i++)
            l->read[arg(g, r, i)] = true;
    for (int i = 0; i < g->root.n; i++)
        l->read[g->root.at[i].ref] |= g->root.at[i].ref >= g->n_primal;
}

/* By node: the last value of the forward pass that it is made of elementwise, or NONE. */
static Ref *find_made_of(const Light *l, Arena *a)
{
    const Graph *g = l->g;
    Ref *of = NEW_ARRAY(a, Ref, g->node.n);
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        bool light = l->early[r] || (r < g->n_primal && is_light(g, r));
        if (!light && r < g->n_primal && optab[op_of(g, r)]->kind != OP_SOURCE)
            of[r] = r;
        for (int i = 0; light && i < node(g, r)->n_args; i++)
            of[r] = of[arg(g, r, i)] > of[r] ? of[arg(g, r, i)] : of[r];
    }
    return of;
}

/* Truth values of one shape that are made of one value, and read as they are. */
static void find_bits(Light *l, Arena *a)
{
    const Graph *g = l->g;
    const Ref *of = find_made_of(l, a);
    Ref *first = NEW_ARRAY(a, Ref, g->node.n);
    l->bits = NEW_ARRAY(a, Ref, g->node.n);
    l->many = NEW_ARRAY(a, int32_t, g->node.n);
    for (Ref r = g->n_primal; r < (Ref)g->node.n; r++) {
        if (!l->early[r] || !l->read[r] || type_of(g, r)->dtype != BOOL || of[r] == NONE)
            continue;
        Ref f = first[of[r]];
        if (f == NONE || l->many[f] == BITS || !type_same(type_of(g, f), type_of(g, r)))
            f = first[of[r]] = r;
        l->bits[r] = f;
        l->many[f]++;
    }
}

/* ---- the network -------------------------------------------------------------------------- */

/* The forward pass has it in memory, whether it is kept or not. */
static bool is_stored(const Light *l, Ref r)
{
    bool ends = l->reads[r] == 1 && optab[op_of(l->g, l->reader[r])]->kind != OP_POINTWISE;
    bool sum = optab[op_of(l->g, r)]->kind == OP_CONTRACT;
    return (!is_light(l->g, r) && !sum) || l->reads[r] > 1 || ((l->fresh[r] || sum) && ends);
}

static int64_t worth(const Light *l, Ref r)
{
    const Type *t = type_of(l->g, r);
    int64_t bytes = is_index(l->g, r) ? type_elems(t) : type_bytes(t);
    if (l->early[r])
        return bytes * BYTE_EARLY / (l->bits[r] == NONE ? 1 : l->many[l->bits[r]]);
    return l->stays[r] ? 0 : bytes * (is_stored(l, r) ? BYTE : BYTE_APART);
}

/* Inputs, parameters and constants are there in any case: no edge leads to them. */
static void add_value(Light *l, Ref r)
{
    const Graph *g = l->g;
    bool light = is_light(g, r) || l->early[r];
    if (optab[op_of(g, r)]->kind == OP_SOURCE || type_of(g, r)->rank < 0)
        return;
    cut_edge(&l->cut, enters(r), leaves(r), worth(l, r));
    if (!light)
        cut_edge(&l->cut, SOURCE, enters(r), CUT_NEVER);
    else if (!l->early[r] && l->price > 0)
        cut_edge(&l->cut, SOURCE, enters(r), (int64_t)((double)l->price * value_ns(l, r)));
    for (int i = 0; light && i < node(g, r)->n_args; i++)
        cut_edge(&l->cut, leaves(arg(g, r, i)), enters(r), CUT_NEVER);
    if (l->read[r])
        cut_edge(&l->cut, leaves(r), SINK, CUT_NEVER);
}

/* By node: of the forward pass, the reverse pass reads another computation of it; of the reverse
 * pass, it is made where it stood. */
static bool *cut_at(Light *l, int64_t price, Arena *a)
{
    const Graph *g = l->g;
    l->price = price;
    l->cut = cut_open(a, 2 * (int32_t)g->node.n, SOURCE, SINK);
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        if (r < g->n_primal || l->early[r])
            add_value(l, r);
    const bool *behind = cut_solve(&l->cut);
    bool *lost = NEW_ARRAY(a, bool, g->node.n);
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        lost[r] = behind[enters(r)] && (is_light(g, r) || l->early[r]);
    return lost;
}

static double again_ns(const Light *l, const bool *lost)
{
    double ns = 0;
    for (Ref r = 1; r < l->g->n_primal; r++)
        ns += lost[r] ? value_ns(l, r) : 0;
    return ns;
}

/* ---- what becomes of it ------------------------------------------------------------------- */

enum {
    CHEAP = 8,  /* flops: what is made of inputs and constants alone is computed where it is read */
    SMALL = 256 /* so many times less than the largest need not be computed again */
};

/* By node: an input or a parameter is all that it is made of, and it takes next to nothing. */
static bool *find_trivial(const Light *l, Arena *a)
{
    const Graph *g = l->g;
    bool *trivial = NEW_ARRAY(a, bool, g->node.n);
    for (Ref r = 1; r < g->n_primal; r++) {
        OpKind kind = optab[op_of(g, r)]->kind;
        trivial[r] = kind == OP_SOURCE || kind == OP_VIEW ||
                     (kind == OP_POINTWISE && op_flops(l->flops, g, r) <= (float)CHEAP);
        for (int i = 0; i < node(g, r)->n_args; i++)
            trivial[r] = trivial[r] && trivial[arg(g, r, i)];
    }
    return trivial;
}

/* Only what saves bytes is computed again, and what that is made of: the rest of what lies behind
 * the cut no kernel would store, or is too small. */
static bool keep_rest(const Light *l, bool *lost, Arena *a)
{
    const Graph *g = l->g;
    const bool *trivial = find_trivial(l, a);
    bool *worthy = NEW_ARRAY(a, bool, g->node.n), *needed = NEW_ARRAY(a, bool, g->node.n);
    int64_t most = 0;
    bool any = false;
    for (Ref r = 1; r < g->n_primal; r++)
        if (lost[r] && optab[op_of(g, r)]->kind == OP_POINTWISE && !trivial[r])
            most = type_bytes(type_of(g, r)) > most ? type_bytes(type_of(g, r)) : most;
    for (Ref r = 1; r < g->n_primal; r++) {
        bool view = optab[op_of(g, r)]->kind == OP_VIEW;
        worthy[r] = lost[r] && !view && !trivial[r] && type_bytes(type_of(g, r)) > most / SMALL;
        for (int i = 0; view && lost[r] && i < node(g, r)->n_args; i++)
            worthy[r] = worthy[r] || worthy[arg(g, r, i)];
        any = any || worthy[r];
    }
    for (Ref r = g->n_primal - 1; r >= 1; r--) {
        needed[r] = lost[r] && (needed[r] || worthy[r]);
        for (int i = 0; needed[r] && i < node(g, r)->n_args; i++)
            needed[arg(g, r, i)] = true;
        lost[r] = needed[r];
    }
    return any;
}

/* Early values that are kept, or that those are made of; the others stay in the reverse pass, which
 * makes what is lost of the latter once more. */
static bool keep_early(Light *l, const bool *lost)
{
    const Graph *g = l->g;
    bool *kept = l->read; /* no longer needed: by node, something behind the cut reads it; ... */
    bool *needed = NEW_ARRAY(l->arena, bool, g->node.n); /* ... an early value that is made does */
    bool any = false;
    for (Ref r = g->n_primal; r < (Ref)g->node.n; r++)
        for (int i = 0; i < node(g, r)->n_args; i++)
            kept[arg(g, r, i)] = kept[arg(g, r, i)] || (lost[r] && l->early[r]);
    for (Ref r = g->n_primal; r < (Ref)g->node.n; r++)
        kept[r] = kept[r] && !l->constant[r];
    for (Ref r = (Ref)g->node.n - 1; r >= g->n_primal; r--) {
        l->early[r] = l->early[r] && ((!lost[r] && kept[r]) || needed[r]);
        for (int i = 0; l->early[r] && i < node(g, r)->n_args; i++)
            needed[arg(g, r, i)] = true;
        any = any || l->early[r];
    }
    return any;
}

Graph *drop_light(const Graph *g, double share, bool halves)
{
    Arena arena = {0};
    Light l = {.g = g, .arena = &arena, .flops = NEW(&arena, OpFlops)};
    look_at(&l, &arena);
    l.step = halves ? graph_steps(g, &arena) : NULL;
    find_early(&l, &arena);
    find_bits(&l, &arena);
    double most = share * graph_ns(l.flops, g);
    int64_t price = share < 1 ? PRICE_LEAST : 0;
    bool *lost = cut_at(&l, price, &arena);
    while (share < 1 && price < PRICE_MOST && again_ns(&l, lost) > most)
        lost = cut_at(&l, price *= 2, &arena);
    bool early = keep_early(&l, lost), again = keep_rest(&l, lost, &arena);
    Graph *less = early || again ? replay_lost(g, lost, l.early, l.bits) : NULL;
    arena_free(&arena);
    return less;
}
