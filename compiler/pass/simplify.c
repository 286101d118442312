/* Value numbering, constants, identities, dead code: one walk over the nodes, in order, builds the
 * list anew; walks are repeated until one of them changes nothing. Each op knows its own
 * identities (`simple` in its row). A walk is linear in the nodes.
 * source: Click & Cooper, Combining analyses, combining optimizations (1995), for doing all of
 *         it in one walk. */
#include <assert.h>
#include <string.h>
#include "pass.h"

enum { MAX_WALKS = 50, BUFFER_ELEMS = 1 << 16 };

typedef struct Walk {
    Ctx *cx;
    Graph *g;
    Node *old; /* the nodes before, and their operands */
    Ref *old_arg;
    Ref n_old;
    bool *live; /* by old Ref */
    Ref *map;   /* by old Ref: the new one */
    Ref *slot;  /* hash table of new Refs */
    uint32_t mask;
    bool changed;
} Walk;

bool *graph_live(const Graph *g, Arena *a)
{
    bool *live = NEW_ARRAY(a, bool, g->node.n);
    for (int i = 0; i < g->root.n; i++)
        live[g->root.at[i].ref] = true;
    for (Ref r = (Ref)g->node.n - 1; r >= 1; r--)
        for (int i = 0; live[r] && i < node(g, r)->n_args; i++)
            live[arg(g, r, i)] = true;
    live[NONE] = false;
    return live;
}

/* ---- equal nodes -------------------------------------------------------------------- */

/* Storage is the same wherever it is read; other values stay within their block call, so
 * that all calls of a block look alike. */
static const Origin *instance_of(const Node *n)
{
    const Op *op = optab[n->op];
    bool storage = (op->kind == OP_SOURCE && op->elem == NULL) || n->op == OP_pick;
    return storage ? NULL : origin_instance(n->origin);
}

/* The word before the binding that made it, or none. */
static Memory word_of(const Origin *o)
{
    bool word = o != NULL && (o->memory == MEMORY_KEEP || o->memory == MEMORY_RECOMPUTE ||
                              o->memory == MEMORY_OFFLOAD);
    return word ? o->memory : MEMORY_PLANNED;
}

/* What is computed again is not the first computation, and what is kept stays what it is. But of
 * a graph without a reverse pass equal nodes are one whatever words are before them: cotangents are
 * added in the same order then, and bits are the same. And a result of a scan is one value, whoever
 * picks it: it is written to one memory. */
static Memory asked_of(const Graph *g, const Node *n)
{
    if (optab[n->op]->kind == OP_SOURCE || n->op == OP_pick || n->origin == NULL)
        return MEMORY_PLANNED;
    bool only_word = graph_is_primal(g) && word_of(n->origin) != MEMORY_PLANNED;
    return only_word ? MEMORY_PLANNED : n->origin->memory;
}

/* r, which equals n, takes the word of n: that it is kept, before that it is computed again. */
static void take_word(Graph *g, Ref r, const Node *n)
{
    Memory is = word_of(node(g, r)->origin), word = word_of(n->origin);
    bool more = word != MEMORY_PLANNED && word != is && !origin_is_kept(node(g, r)->origin);
    if (more && optab[n->op]->kind != OP_SOURCE)
        g->node.at[r].origin = n->origin;
}

static uint64_t hash_number(uint64_t h, uint64_t x)
{
    return hash_mix(h ^ x);
}

static uint64_t hash_map(uint64_t h, const MapDim *m)
{
    h = hash_number(h, (uint64_t)m->base);
    for (int t = 0; t < m->n; t++) {
        h = hash_number(h, (uint64_t)m->index[t]);
        h = hash_number(h, (uint64_t)m->coef[t]);
    }
    return h;
}

static uint64_t hash_attr(uint64_t h, const Attr *a)
{
    h = hash_number(h, (uint64_t)a->n);
    switch (a->kind) {
    case ATTR_INTS:
        for (int i = 0; i < a->n; i++)
            h = hash_number(h, (uint64_t)a->ints[i]);
        return h;
    case ATTR_MAP:
        for (int i = 0; i < a->n; i++)
            h = hash_map(h, &a->map[i]);
        return h;
    case ATTR_DATA:
        return hash_bytes(h, a->data, (size_t)a->n);
    case ATTR_BODY:
        return hash_number(h, (uint64_t)a->body->node.n);
    default:
        return hash_bytes(h, &a->i, sizeof a->i); /* the bits of f, a pointer to a name */
    }
}

static uint64_t hash_node(const Graph *g, Ref r)
{
    const Node *n = node(g, r);
    uint64_t h = hash_number((uint64_t)n->op, (uint64_t)(uintptr_t)instance_of(n));
    if (asked_of(g, n) != MEMORY_PLANNED)
        h = hash_number(h, (uint64_t)asked_of(g, n));
    for (int i = 0; i < n->n_args; i++)
        h = hash_number(h, arg(g, r, i));
    for (int i = 0; i < op_attrs(optab[n->op]); i++)
        h = hash_attr(h, &n->attr[i]);
    return h;
}

static bool same_map(const MapDim *x, const MapDim *y)
{
    bool same = x->base == y->base && x->n == y->n;
    for (int t = 0; same && t < x->n; t++)
        same = x->index[t] == y->index[t] && x->coef[t] == y->coef[t];
    return same;
}

static bool same_body(const Graph *x, const Graph *y);

static bool same_attr(const Attr *x, const Attr *y)
{
    bool same = x->kind == y->kind && x->n == y->n;
    if (!same)
        return false;
    switch (x->kind) {
    case ATTR_INTS:
        return x->n == 0 || memcmp(x->ints, y->ints, (size_t)x->n * sizeof *x->ints) == 0;
    case ATTR_MAP:
        for (int i = 0; same && i < x->n; i++)
            same = same_map(&x->map[i], &y->map[i]);
        return same;
    case ATTR_DATA:
        return x->n == 0 || memcmp(x->data, y->data, (size_t)x->n) == 0;
    case ATTR_BODY:
        return same_body(x->body, y->body);
    default:
        return memcmp(&x->i, &y->i, sizeof x->i) == 0;
    }
}

static bool same_node(const Graph *gx, Ref x, const Graph *gy, Ref y)
{
    const Node *nx = node(gx, x), *ny = node(gy, y);
    bool same = nx->op == ny->op && nx->n_args == ny->n_args && type_same(&nx->type, &ny->type);
    for (int i = 0; same && i < nx->n_args; i++)
        same = arg(gx, x, i) == arg(gy, y, i);
    for (int i = 0; same && i < op_attrs(optab[nx->op]); i++)
        same = same_attr(&nx->attr[i], &ny->attr[i]);
    return same;
}

static bool same_body(const Graph *x, const Graph *y)
{
    bool same = x->node.n == y->node.n && x->root.n == y->root.n;
    for (Ref r = 1; same && r < (Ref)x->node.n; r++)
        same = same_node(x, r, y, r);
    for (int i = 0; same && i < x->root.n; i++)
        same = x->root.at[i].ref == y->root.at[i].ref;
    return same;
}

/* The place of a node that equals r, or where r goes. */
static Ref *find_slot(const Walk *w, Ref r)
{
    const Graph *g = w->g;
    uint32_t i = (uint32_t)hash_node(g, r) & w->mask;
    const Node *n = node(g, r);
    for (; w->slot[i] != NONE; i = (i + 1) & w->mask) {
        const Node *found = node(g, w->slot[i]);
        if (same_node(g, w->slot[i], g, r) && instance_of(found) == instance_of(n) &&
            asked_of(g, found) == asked_of(g, n))
            break;
    }
    return &w->slot[i];
}

/* ---- one walk ---------------------------------------------------------------------------- */

static Ref append(Walk *w, const Node *n)
{
    Graph *g = w->g;
    Node copy = *n;
    copy.args = (uint32_t)g->arg.n;
    for (int i = 0; i < n->n_args; i++)
        vec_push(&g->arena, &g->arg, w->map[w->old_arg[n->args + (uint32_t)i]]);
    vec_push(&g->arena, &g->node, copy);
    return (Ref)(g->node.n - 1);
}

/* Drops r, the last node. */
static void take_back(Walk *w, Ref r)
{
    assert(r == (Ref)w->g->node.n - 1);
    w->g->arg.n = (int)node(w->g, r)->args;
    w->g->node.n--;
}

static bool is_empty_value(const Graph *g, Ref r)
{
    double value;
    return rank(g, r) >= 0 && node(g, r)->n_args > 0 && type_elems(type_of(g, r)) == 0 &&
           !const_value(g, r, &value);
}

/* A sum over nothing. */
static bool is_empty_sum(const Graph *g, Ref r)
{
    if (op_of(g, r) != OP_sum && op_of(g, r) != OP_contract)
        return false;
    for (int i = 0; i < node(g, r)->n_args; i++)
        if (type_elems(type_of(g, arg(g, r, i))) == 0)
            return true;
    return false;
}

/* Many zeros are where sums begin: each of them is memory of its own, which is then written. */
static bool is_buffer(const Graph *g, Ref r)
{
    return op_of(g, r) == OP_broadcast && const_is_zero(g, r, false) &&
           type_elems(type_of(g, r)) >= BUFFER_ELEMS;
}

/* A simpler value that equals r, or NONE. */
static Ref simpler(Walk *w, Ref r)
{
    Graph *g = w->g;
    const Op *op = optab[op_of(g, r)];
    Type t = *type_of(g, r);
    if (is_empty_value(g, r) || is_empty_sum(g, r))
        return g_zeros(g, &t);
    Ref s = op->simple == NULL ? NONE : op->simple(g, r);
    if (s == NONE)
        s = fold_constant(w->cx, g, r);
    assert(s == NONE || type_same(type_of(g, s), &t));
    return s;
}

static Ref rewrite(Walk *w, const Node *n)
{
    Graph *g = w->g;
    Ref r = append(w, n);
    Ref *slot = find_slot(w, r);
    if (*slot != NONE && !is_buffer(g, r)) {
        take_back(w, r);
        w->changed = true;
        take_word(g, *slot, n);
        return *slot;
    }
    g->origin = n->origin;
    Ref s = simpler(w, r);
    if (s == NONE) {
        *slot = r;
        return r;
    }
    w->changed = true;
    if (origin_is_kept(n->origin))
        g->node.at[s].origin = n->origin;
    if (r == (Ref)g->node.n - 1)
        take_back(w, r);
    return s;
}

static void walk_start(Walk *w)
{
    Graph *g = w->g;
    Arena *a = &w->cx->scratch;
    w->n_old = (Ref)g->node.n;
    w->live = graph_live(g, a);
    w->old = NEW_ARRAY(a, Node, w->n_old);
    w->old_arg = NEW_ARRAY(a, Ref, g->arg.n);
    w->map = NEW_ARRAY(a, Ref, w->n_old);
    memcpy(w->old, g->node.at, (size_t)w->n_old * sizeof *w->old);
    if (g->arg.n > 0)
        memcpy(w->old_arg, g->arg.at, (size_t)g->arg.n * sizeof *w->old_arg);
    uint32_t slots = 16;
    while (slots < 2 * w->n_old)
        slots *= 2;
    w->slot = NEW_ARRAY(a, Ref, slots);
    w->mask = slots - 1;
    g->node.n = 1;
    g->arg.n = 0;
}

/* True if anything has changed. */
static bool walk(Ctx *cx, Graph *g)
{
    ArenaMark mark = arena_mark(&cx->scratch);
    const Origin *origin = g->origin;
    Walk w = {.cx = cx, .g = g};
    Ref n_primal = g->n_primal;
    walk_start(&w);
    for (Ref r = 1; r < w.n_old; r++) {
        if (r == n_primal)
            g->n_primal = (Ref)g->node.n;
        if (w.live[r])
            w.map[r] = rewrite(&w, &w.old[r]);
        else
            w.changed = true;
    }
    if (n_primal >= w.n_old)
        g->n_primal = (Ref)g->node.n;
    for (int i = 0; i < g->root.n; i++)
        g->root.at[i].ref = w.map[g->root.at[i].ref];
    g->origin = origin;
    arena_reset(&cx->scratch, mark);
    return w.changed;
}

void simplify(Ctx *cx, Graph *g)
{
    bool more = true;
    for (int i = 0; more && i < MAX_WALKS; i++) {
        more = walk(cx, g);
        more = simplify_scans(cx, g) || more;
    }
}
