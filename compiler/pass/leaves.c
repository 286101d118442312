/* Long sums with few results. The weight gradient of a first convolution sums over all places of
 * all pictures: one tile, which one thread computes and one block of a GPU. The slowest summed
 * index is cut into leaves, each of which is a product of its own, and their results are added up
 * in order. Those of other convolutions are a few tiles, and threads that share them out pack the
 * same operands, each of them: there are fewer leaves then, for their results are stored and read.
 * That is another order of sums, so it follows from shapes alone. */
#include "pass.h"

enum { FEW_RESULTS = 512, MANY_TERMS = 1 << 14, LEAVES_OF_FEW = 16 };
/* Of more results, up to what is tiles enough: elements to pack that are worth a call more, and how
 * little results of all leaves are beside them. A leaf of four still has whole pictures for each
 * thread's blocks. */
enum { MOST_RESULTS = 1 << 15, MANY_ELEMS = 1 << 19, MOST_LEAVES = 4, LITTLE = 16 };

/* The slowest summed index that moves, or 0. */
static int slowest(const Attr *extent, int n_out)
{
    for (int i = n_out; i < extent->n; i++)
        if (extent->ints[i] > 1)
            return i;
    return 0;
}

int64_t most_leaves(DType t, int64_t results, int64_t terms, int64_t read)
{
    bool wide = t == F32 || t == F64; /* parts of a sum are not rounded to halves */
    if (!wide || results <= 0 || results > MOST_RESULTS)
        return 1;
    if (results <= FEW_RESULTS && terms >= MANY_TERMS)
        return LEAVES_OF_FEW;
    int64_t most = read < MANY_ELEMS ? 1 : read / LITTLE / results;
    return most > MOST_LEAVES ? MOST_LEAVES : most < 1 ? 1 : most;
}

/* Leaves of the contraction's sums; 1: it stays as it is. Values of the forward pass have the bits
 * that they have without a reverse pass. */
static int64_t leaves_of(const Graph *g, Ref r)
{
    if (op_of(g, r) != OP_contract || r < g->n_primal || g->n_primal == NONE)
        return 1;
    const Attr *extent = attr(g, r, CONTRACT_EXTENT);
    int n_out = (int)attr(g, r, CONTRACT_N_OUT)->i, k = slowest(extent, n_out);
    int64_t terms = 1, results = type_elems(type_of(g, r));
    for (int i = n_out; i < extent->n; i++)
        terms *= extent->ints[i];
    bool room = extent->n < MAX_INDICES && n_out < MAX_RANK;
    if (k == 0 || !room)
        return 1;
    int64_t read = type_elems(type_of(g, arg(g, r, 0))) + type_elems(type_of(g, arg(g, r, 1)));
    int64_t leaves = most_leaves(type_of(g, r)->dtype, results, terms, read);
    while (extent->ints[k] % leaves != 0)
        leaves--;
    return leaves;
}

/* Index i is i + 1 now, and index k `each` times the leaf besides. */
static MapDim with_leaf(const MapDim *m, int k, int64_t each)
{
    MapDim to = map_const(m->base);
    to = map_term(to, 0, map_coef(m, k) * each);
    for (int t = 0; t < m->n; t++)
        to = map_term(to, m->index[t] + 1, m->coef[t]);
    return to;
}

static Ref in_leaves(Graph *to, const Graph *g, Ref r, int64_t leaves, const Ref *map)
{
    const Attr *extent = attr(g, r, CONTRACT_EXTENT);
    int n_out = (int)attr(g, r, CONTRACT_N_OUT)->i, k = slowest(extent, n_out);
    int64_t size[MAX_INDICES] = {leaves}, each = extent->ints[k] / leaves;
    MapDim m[2][MAX_RANK];
    for (int i = 0; i < extent->n; i++)
        size[i + 1] = i == k ? each : extent->ints[i];
    for (int f = 0; f < 2; f++) {
        const Attr *from = attr(g, r, CONTRACT_X + f);
        for (int d = 0; d < from->n; d++)
            m[f][d] = with_leaf(&from->map[d], k, each);
    }
    to->origin = node(g, r)->origin;
    Ref parts = g_contract(to, map[arg(g, r, 0)], map[arg(g, r, 1)], size, n_out + 1, extent->n + 1,
                           m[0], m[1]);
    return g_reduce(to, OP_sum, parts, 0, false);
}

Graph *sum_in_leaves(const Graph *g)
{
    bool any = false;
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        any = any || leaves_of(g, r) > 1;
    if (!any)
        return NULL;
    Arena scratch = {0};
    Graph *to = graph_new(g->cx, g->name);
    Ref *map = NEW_ARRAY(&scratch, Ref, g->node.n);
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        if (r == g->n_primal)
            to->n_primal = (Ref)to->node.n;
        int64_t leaves = leaves_of(g, r);
        map[r] = leaves > 1 ? in_leaves(to, g, r, leaves, map) : graph_copy_node(to, g, r, map);
    }
    graph_copy_roots(to, g, map);
    arena_free(&scratch);
    return to;
}
