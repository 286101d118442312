/* Distances of rows: rows of scores that are a multiple of 4,096 bytes apart lie in one set of the
 * first cache, where a product that reads a tile's rows side by side, or sums over rows, keeps
 * none. What the steps of row chunks (chunk.c) store in such rows gets some lines more for each,
 * which nobody reads. Steps of other scans multiply weights, by rows that are packed: for those it
 * is 2 % slower (a recurrent net of 1,024 units). */
#include "pass.h"

#include "../kernel/panels.h"
#include "cluster_build.h"

/* Each row lies so many lines further on: the fewest with which sums over rows are as fast as with
 * more. */
enum { LINE = 64, LINES = 3 };

typedef struct Pitching {
    Clusters *c;
    Ref value;
    Panels as;
    const Kernel **kernel; /* by group: that for the new distances, or NULL */
} Pitching;

static Ref memory(const Clusters *c, Ref r)
{
    return memory_of(c->g, c->stored, r);
}

/* It, or a view of it, goes out of the body. */
static bool is_result(const Clusters *c, Ref value)
{
    for (int i = 0; i < c->g->root.n; i++)
        if (memory(c, c->g->root.at[i].ref) == value)
            return true;
    return false;
}

/* ... or to the steps of a scan within. */
static bool is_scanned(const Clusters *c, Ref value)
{
    for (int i = 0; i < c->group.n; i++) {
        const Group *gr = &c->group.at[i];
        for (int j = 0; gr->kind == GROUP_SCAN && j < node(c->g, gr->anchor)->n_args; j++)
            if (memory(c, arg(c->g, gr->anchor, j)) == value)
                return true;
    }
    return false;
}

static bool find_rows(Pitching *p, Ref r)
{
    const Clusters *c = p->c;
    const Type *t = type_of(c->g, r);
    if (!c->stored[r] || c->group_of[r] < 0 || t->rank < 2)
        return false;
    int64_t cols = t->dim[t->rank - 1], size = dtype_bytes(t->dtype);
    int64_t bytes = cols * size, all = type_elems(t);
    if (all == 0 || all == cols || bytes % c->caps->set_bytes != 0)
        return false;
    bool scans = c->group.at[c->group_of[r]].kind == GROUP_SCAN;
    if (scans || is_result(c, r) || is_scanned(c, r))
        return false;
    p->value = r;
    p->as = (Panels){all / cols, cols, cols, cols + LINES * LINE / size};
    return true;
}

/* The kernel of a group that reads or writes the value; false: it has to be as it is. */
static bool pitch_group(Pitching *p, int group)
{
    Clusters *c = p->c;
    const Group *gr = &c->group.at[group];
    Panels *of = NEW_ARRAY(c->arena, Panels, gr->operand.n);
    bool any = false;
    for (int i = 0; i < gr->operand.n; i++) {
        const GroupOperand *o = &gr->operand.at[i];
        if (memory(c, o->ref) != p->value)
            continue;
        if (memory_shift(c->g, c->stored, o->ref) != 0)
            return false;
        of[i] = p->as;
        any = true;
    }
    p->kernel[group] = any ? panels_kernel(c->arena, gr->kernel, of) : NULL;
    return !any || p->kernel[group] != NULL;
}

static bool pitch_value(Pitching *p)
{
    bool any = false;
    for (int i = 0; i < p->c->group.n; i++) {
        p->kernel[i] = NULL;
        if (p->c->group.at[i].kernel != NULL && !pitch_group(p, i))
            return false;
        any = any || p->kernel[i] != NULL;
    }
    for (int i = 0; i < p->c->group.n; i++)
        if (p->kernel[i] != NULL)
            p->c->group.at[i].kernel = (Kernel *)p->kernel[i];
    return any;
}

void pitch_rows(Clusters *c)
{
    Pitching p = {.c = c, .kernel = NEW_ARRAY(c->arena, const Kernel *, c->group.n)};
    c->pitch = NEW_ARRAY(c->arena, int64_t, c->g->node.n);
    for (Ref r = 1; r < (Ref)c->g->node.n; r++)
        if (find_rows(&p, r) && pitch_value(&p))
            c->pitch[r] = p.as.pitch;
}
