/* Operands that products transpose in every turn of a scan. Scores of attention, some rows of them
 * in a turn, multiply queries by all keys of a head, and the sum goes along the lines of those:
 * such a product packs the keys, in every turn. Where there are many turns, they are transposed
 * before the first one, and a product reads them where they lie: with places a whole number of
 * lines more than a power of 2 apart, so that no set of the first cache has more than a few. */
#include <string.h>
#include "pass.h"

enum { OFTEN = 32, MANY_ROWS = 256 };
enum { LINE = 64, LINES = 3, ALIASED = 1024 }; /* bytes; lines; bytes that places are not apart */

/* Of one scan, by operand. */
typedef struct Turned {
    Scan is;
    int n_args;
    bool *is_so;  /* it is to be transposed */
    int *operand; /* its number as a new operand */
    Type *type;   /* ... and its type */
} Turned;

static int index_of(const MapDim *m)
{
    bool plain = m->n == 1 && m->coef[0] == 1 && m->base == 0;
    return plain ? m->index[0] : -1;
}

/* The operand of the scan that factor f of contraction r of its body is, if the sum goes along its
 * lines and its rows are many results; else -1. */
static int factor_of(const Graph *body, Ref r, int f, const Scan *is)
{
    Ref x = arg(body, r, f);
    const Type *t = type_of(body, x);
    if (op_of(body, r) != OP_contract || op_of(body, x) != OP_arg || t->rank < 2)
        return -1;
    int operand = (int)attr(body, x, 0)->i;
    const Attr *extent = attr(body, r, CONTRACT_EXTENT), *map = attr(body, r, CONTRACT_X + f);
    int rows = index_of(&map->map[t->rank - 2]), cols = index_of(&map->map[t->rank - 1]);
    int n_out = (int)attr(body, r, CONTRACT_N_OUT)->i;
    bool along = rows >= 0 && rows < n_out && cols >= n_out;
    bool fixed = operand >= is->carries + is->sequences && t->dtype == F32;
    if (!along || !fixed || extent->ints[rows] < MANY_ROWS ||
        extent->ints[rows] != t->dim[t->rank - 2] || extent->ints[cols] != t->dim[t->rank - 1])
        return -1;
    return operand;
}

static Turned find_turned(const Graph *g, Ref scan, Arena *a)
{
    Turned t = {.is = scan_of(g, scan), .n_args = node(g, scan)->n_args};
    const Graph *body = attr(g, scan, SCAN_BODY)->body;
    t.is_so = NEW_ARRAY(a, bool, t.n_args);
    t.operand = NEW_ARRAY(a, int, t.n_args);
    t.type = NEW_ARRAY(a, Type, t.n_args);
    for (Ref r = 1; r < (Ref)body->node.n && t.is.count >= OFTEN; r++)
        for (int f = 0; op_of(body, r) == OP_contract && f < 2; f++) {
            int i = factor_of(body, r, f, &t.is);
            if (i >= 0)
                t.is_so[i] = true;
        }
    int n = t.n_args;
    for (int i = 0; i < t.n_args; i++)
        t.operand[i] = t.is_so[i] ? n++ : -1;
    return t;
}

static bool any_turned(const Graph *g)
{
    Arena scratch = {0};
    bool any = false;
    for (Ref r = 1; r < (Ref)g->node.n && !any; r++) {
        if (op_of(g, r) != OP_scan)
            continue;
        Turned t = find_turned(g, r, &scratch);
        for (int i = 0; i < t.n_args; i++)
            any = any || t.is_so[i];
        any = any || any_turned(attr(g, r, SCAN_BODY)->body);
    }
    arena_free(&scratch);
    return any;
}

static Ref transposed(Graph *to, Ref x)
{
    Ref y = g_swap_last(to, x);
    const Type *t = type_of(to, y);
    int last = t->rank - 1;
    int64_t size = dtype_bytes(t->dtype);
    return t->dim[last] * size % ALIASED == 0 ? g_pad(to, y, last, 0, LINES * LINE / size, 0) : y;
}

/* Contraction r of a body with factors that are transposed, and the others as they were. */
static Ref contraction(Graph *to, const Graph *body, Ref r, const Turned *t, const Ref *map,
                       const Ref *turned)
{
    const Attr *extent = attr(body, r, CONTRACT_EXTENT);
    MapDim m[2][MAX_RANK];
    Ref x[2];
    for (int f = 0; f < 2; f++) {
        const Attr *from = attr(body, r, CONTRACT_X + f);
        int i = factor_of(body, r, f, &t->is), last = from->n - 1;
        memcpy(m[f], from->map, (size_t)from->n * sizeof *from->map);
        x[f] = i < 0 ? map[arg(body, r, f)] : turned[i];
        if (i >= 0) {
            m[f][last] = from->map[last - 1];
            m[f][last - 1] = from->map[last];
        }
    }
    to->origin = node(body, r)->origin;
    return g_contract(to, x[0], x[1], extent->ints, (int)attr(body, r, CONTRACT_N_OUT)->i,
                      extent->n, m[0], m[1]);
}

static Ref copy_scan(Graph *to, const Graph *g, Ref scan, const Ref *map, Arena *a);

/* A copy of g, the body of a scan that has more operands now, if t is not NULL. */
static void copy_into(Graph *to, const Graph *g, const Turned *t, Arena *a)
{
    Ref *map = NEW_ARRAY(a, Ref, g->node.n);
    Ref *turned = NEW_ARRAY(a, Ref, t == NULL ? 0 : t->n_args);
    for (int i = 0; t != NULL && i < t->n_args; i++)
        turned[i] = t->is_so[i] ? g_body_arg(to, t->operand[i], t->type[i]) : NONE;
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        if (r == g->n_primal)
            to->n_primal = (Ref)to->node.n;
        if (op_of(g, r) == OP_scan)
            map[r] = copy_scan(to, g, r, map, a);
        else if (t != NULL && op_of(g, r) == OP_contract)
            map[r] = contraction(to, g, r, t, map, turned);
        else
            map[r] = graph_copy_node(to, g, r, map);
    }
    graph_copy_roots(to, g, map);
}

static Ref copy_scan(Graph *to, const Graph *g, Ref scan, const Ref *map, Arena *a)
{
    Turned t = find_turned(g, scan, a);
    Ref *args = NEW_ARRAY(a, Ref, 2 * t.n_args);
    int n = t.n_args;
    to->origin = node(g, scan)->origin;
    for (int i = 0; i < t.n_args; i++) {
        args[i] = map[arg(g, scan, i)];
        if (!t.is_so[i])
            continue;
        args[n++] = transposed(to, args[i]);
        t.type[i] = *type_of(to, args[n - 1]);
    }
    Graph *body = g_body(to);
    copy_into(body, attr(g, scan, SCAN_BODY)->body, &t, a);
    to->origin = node(g, scan)->origin;
    return g_scan(to, body, args, n, t.is);
}

Graph *transpose_once(const Graph *g)
{
    if (!any_turned(g))
        return NULL;
    Arena scratch = {0};
    Graph *to = graph_new(g->cx, g->name);
    copy_into(to, g, NULL, &scratch);
    arena_free(&scratch);
    return to;
}
