/* What steps take, where somebody measures it: every kernel of every group is asked about. */
#include "compile.h"

/* Kernels that lie together: in loops, or outside of them. */
typedef struct Asked {
    VEC(Kernel *) kernel;
    VEC(Group *) group; /* whose kernel that is */
} Asked;

static void collect(Asked *asked, Arena *arena, Clusters *c, bool in_loop)
{
    for (int i = 0; i < c->order.n; i++) {
        Group *gr = &c->group.at[c->order.at[i]];
        if (gr->body != NULL)
            collect(asked, arena, gr->body, true);
        if (gr->kernel == NULL)
            continue;
        vec_push(arena, &asked[in_loop].kernel, gr->kernel);
        vec_push(arena, &asked[in_loop].group, gr);
    }
}

static int64_t stored_bytes(const Clusters *c)
{
    int64_t sum = 0;
    for (Ref r = 1; r < (Ref)c->g->node.n; r++)
        sum += c->stored[r] ? type_bytes(type_of(c->g, r)) : 0;
    return sum;
}

enum { LEAST_SPREAD = 1 << 16, MOST_SPREAD = 1 << 22 };

/* Most of what a kernel reads has just been stored, and lies in a cache; all of it, where the
 * entry stores little. With 4 MiB the times of the kernels of a step add up to that of the step.
 * Powers of two, so that a small change of a model is none of this. */
static int64_t spread_of(Clusters *const *c)
{
    int64_t most = 0, spread = LEAST_SPREAD;
    for (int e = 0; e < N_ENTRIES; e++) {
        int64_t bytes = c[e] == NULL ? 0 : stored_bytes(c[e]);
        most = bytes > most ? bytes : most;
    }
    while (spread < most && spread < MOST_SPREAD)
        spread *= 2;
    return spread;
}

bool compile_timed(Ctx *cx, const Options *o, Clusters *const *c)
{
    Arena arena = {0};
    Asked asked[2] = {0};
    if (o->timer == NULL)
        return true;
    for (int e = 0; e < N_ENTRIES; e++)
        if (c[e] != NULL)
            collect(asked, &arena, c[e], false);
    /* what a loop reads is mostly what its last step has read or made: in the nearest cache */
    const int64_t spread[2] = {spread_of(c), 0};
    bool ok = true;
    for (int k = 0; k < 2 && ok; k++) {
        const Asked *a = &asked[k];
        double *ns = NEW_ARRAY(&arena, double, a->kernel.n);
        ok = a->kernel.n == 0 ||
             o->timer->time(o->timer->of, cx, a->kernel.at, a->kernel.n, spread[k], ns);
        for (int i = 0; i < a->group.n && ok; i++)
            a->group.at[i]->ns = ns[i];
    }
    arena_free(&arena);
    return ok;
}
