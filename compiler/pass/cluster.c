/* Which nodes are stored, and which stored nodes share a kernel. Everything here
 * depends on the graph and its shapes alone, never on a budget: what is fused decides
 * the order of a row reduction's operands, and so the bits.
 *
 *   cluster_store.c   which nodes are stored
 *   cluster_across.c  ... as what reductions read across their lines
 *   cluster_group.c   which of them share a kernel
 *   cluster_rows.c    ... in which rows are computed
 *   cluster_order.c   in which order kernels run
 *   pitch.c           how far apart rows of what is stored are */
#include "cluster_build.h"
#include "tails.h"

#include <assert.h>
#include <string.h>

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

/* Of groups that have kernels, with other outs. */
static void lower_again(Build *b)
{
    bool lowered = lower_groups(b);
    assert(lowered);
    (void)lowered;
}

static void build_init(Build *b, Ctx *cx, Clusters *c)
{
    int n = c->g->node.n;
    b->cx = cx;
    b->c = c;
    b->g = c->g;
    b->weight = NEW_ARRAY(c->arena, float, n);
    b->length = NEW_ARRAY(c->arena, float, n);
    b->divides = NEW_ARRAY(c->arena, bool, n);
    b->draws = NEW_ARRAY(c->arena, bool, n);
    b->reads = NEW_ARRAY(c->arena, int32_t, n);
    b->uses = NEW_ARRAY(c->arena, int32_t, n);
    b->contracts = NEW_ARRAY(c->arena, int32_t, n);
    b->scanned = NEW_ARRAY(c->arena, bool, n);
    b->reduces = NEW_ARRAY(c->arena, int32_t, n);
    b->wide = NEW_ARRAY(c->arena, uint8_t, n);
    b->lies = NEW_ARRAY(c->arena, uint8_t, n);
    b->most_read = NEW_ARRAY(c->arena, int64_t, n);
    b->expanded = NEW_ARRAY(c->arena, bool, n);
    b->slid = NEW_ARRAY(c->arena, bool, n);
    b->guarded = NEW_ARRAY(c->arena, bool, n);
    b->assigned = NEW_ARRAY(c->arena, bool, n);
    b->forced = NEW_ARRAY(c->arena, bool, n);
    b->alone = NEW_ARRAY(c->arena, bool, n);
    b->reader = NEW_ARRAY(c->arena, Ref, n);
    for (int i = 0; i < c->g->root.n; i++)
        if (c->g->root.at[i].kind == ROOT_ASSIGN)
            b->assigned[c->g->root.at[i].ref] = true;
    count_reads(b);
    find_guarded(b);
    force_kept(b);
}

static void build_reset(Build *b)
{
    Clusters *c = b->c;
    int n = c->g->node.n, most_groups = n + c->g->root.n; /* a slot's copy is one */
    arena_free(c->scratch);
    c->group.n = 0;
    c->stored = NEW_ARRAY(c->arena, bool, n);
    c->group_of = NEW_ARRAY(c->arena, int32_t, n);
    b->stamp = NEW_ARRAY(c->arena, int32_t, most_groups);
    b->stamp_now = 0;
    b->walk = arena_array(c->arena, (size_t)n, sizeof *b->walk);
    b->fresh = NEW_ARRAY(c->arena, uint8_t, n);
    b->top = NEW_ARRAY(c->arena, Ref, most_groups);
    b->users = arena_array(c->arena, (size_t)most_groups, sizeof *b->users);
    b->leaf = arena_array(c->arena, (size_t)n, sizeof *b->leaf);
    b->beside = NEW_ARRAY(c->arena, Ref, n);
    b->update = NEW_ARRAY(c->arena, int32_t, n);
    b->sums = NEW_ARRAY(c->arena, int32_t, n);
    b->trace = arena_array(c->scratch, (size_t)n, sizeof *b->trace);
}

static Clusters *cluster_graph(Ctx *cx, const Graph *g, const Tails *tails, const Caps *caps,
                               Arena *arena);

static void cluster_bodies(Ctx *cx, Clusters *c)
{
    for (int i = 0; i < c->group.n; i++) {
        Group *gr = &c->group.at[i];
        if (gr->kind != GROUP_SCAN)
            continue;
        const Tails *t = tails_find(c->g, gr->anchor, c->arena);
        gr->body = cluster_graph(cx, attr(c->g, gr->anchor, SCAN_BODY)->body, t, c->caps, c->arena);
        if (c->caps->set_bytes > 0 && scan_of(c->g, gr->anchor).lean)
            pitch_rows(gr->body);
    }
}

/* What several loops of a kernel compute; in chunks of rows, which the caches hold, in outputs. */
static void let_rest(Clusters *c)
{
    for (int i = 0; i < c->group.n; i++) {
        Group *gr = &c->group.at[i];
        if (gr->kind != GROUP_LOOP || gr->kernel == NULL)
            continue;
        if (c->tails != NULL && c->caps->rests)
            gr->kernel = kernel_rest(c->arena, gr->kernel);
        gr->kernel = kernel_hold(c->arena, gr->kernel, c->caps->local_bytes);
    }
}

Clusters *cluster(Ctx *cx, const Graph *g, const Caps *caps, Arena *arena)
{
    return cluster_graph(cx, g, NULL, caps, arena);
}

static Clusters *cluster_graph(Ctx *cx, const Graph *g, const Tails *tails, const Caps *caps,
                               Arena *arena)
{
    Clusters *c = NEW(arena, Clusters);
    c->arena = arena;
    c->g = g;
    c->caps = caps;
    c->tails = tails;
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
    if (defer_overwrites(&b))
        lower_again(&b);
    for (int wrong = order_groups(&b); wrong >= 0; wrong = order_groups(&b)) {
        defer_group(&b, wrong);
        lower_again(&b);
    }
    if (tails != NULL)
        limit_stores(c);
    let_rest(c);
    c->scratch = NULL;
    arena_free(&scratch);
    return c;
}
