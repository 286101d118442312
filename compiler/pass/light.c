/* Values that cost little to compute again are not kept from the forward to the reverse pass.
 *
 * What the reverse pass reads is kept, or made of what is kept by elementwise ops and views alone.
 * What to keep, so that it is the least bytes, is a minimum cut: each value is an edge that is
 * worth its bytes, contractions, reductions and scans are joined to the source, since they are not
 * computed again, and what the reverse pass reads is joined to the sink. Of several such cuts the
 * one nearest to the sink computes the least again.
 * source: the partitioner of PyTorch's functorch (min_cut_rematerialization_partition) for the
 *         idea of a cut; here, nothing on the source's side of it is computed twice. */
#include "../base/min_cut.h"
#include "pass.h"

enum { SOURCE, SINK }; /* the network's, in place of the two of NONE */

/* What a byte is worth. A value that no kernel would store, for it is part of a longer
 * expression, takes time to be stored, too. */
enum { BYTE = 2, BYTE_APART = 3 };

typedef struct Light {
    const Graph *g;
    Cut cut;
    int32_t *reads; /* by node: how many of the forward pass do, ... */
    Ref *reader;    /* ... and the last of them */
    bool *fresh;    /* the epilogue of a contraction has it in registers */
    bool *stays;    /* the caller reads it at the end */
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

/* The forward pass has it in memory, whether it is kept or not. */
static bool is_stored(const Light *l, Ref r)
{
    bool ends = l->reads[r] == 1 && optab[op_of(l->g, l->reader[r])]->kind != OP_POINTWISE;
    return !is_light(l->g, r) || l->reads[r] > 1 || (l->fresh[r] && ends);
}

static int64_t worth(const Light *l, Ref r)
{
    int64_t bytes = type_bytes(type_of(l->g, r));
    return l->stays[r] ? 0 : bytes * (is_stored(l, r) ? BYTE : BYTE_APART);
}

/* Inputs, parameters and constants are there in any case: no edge leads to them. */
static void add_value(Light *l, Ref r)
{
    const Graph *g = l->g;
    if (optab[op_of(g, r)]->kind == OP_SOURCE || type_of(g, r)->rank < 0)
        return;
    cut_edge(&l->cut, enters(r), leaves(r), worth(l, r));
    if (!is_light(g, r))
        cut_edge(&l->cut, SOURCE, enters(r), CUT_NEVER);
    for (int i = 0; is_light(g, r) && i < node(g, r)->n_args; i++)
        cut_edge(&l->cut, leaves(arg(g, r, i)), enters(r), CUT_NEVER);
}

/* By node of the forward pass: the reverse pass reads another computation of it. */
static bool *find_lost(const Graph *g, Arena *a)
{
    Light l = {.g = g, .cut = cut_open(a, 2 * (int32_t)g->node.n, SOURCE, SINK)};
    bool *lost = NEW_ARRAY(a, bool, g->node.n), *read = NEW_ARRAY(a, bool, g->node.n);
    look_at(&l, a);
    for (Ref r = g->n_primal; r < (Ref)g->node.n; r++)
        for (int i = 0; i < node(g, r)->n_args; i++)
            read[arg(g, r, i)] = true;
    for (Ref r = 1; r < g->n_primal; r++) {
        add_value(&l, r);
        if (read[r])
            cut_edge(&l.cut, leaves(r), SINK, CUT_NEVER);
    }
    const bool *behind = cut_solve(&l.cut);
    for (Ref r = 1; r < g->n_primal; r++)
        lost[r] = behind[enters(r)] && is_light(g, r);
    return lost;
}

Graph *drop_light(const Graph *g)
{
    Arena arena = {0};
    bool *lost = find_lost(g, &arena), any = false;
    for (Ref r = 1; r < g->n_primal; r++)
        any = any || (lost[r] && optab[op_of(g, r)]->kind == OP_POINTWISE);
    Graph *less = any ? replay_lost(g, lost) : NULL;
    arena_free(&arena);
    return less;
}
