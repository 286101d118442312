#include "pass.h"

#include "../graph/op.h"

static void drop_roots(Graph *g, RootKind kept)
{
    int n = 0;
    for (int i = 0; i < g->root.n; i++)
        if (g->root.at[i].kind == kept)
            g->root.at[n++] = g->root.at[i];
    g->root.n = n;
}

/* Node r becomes the value of a slot; nodes after it need not know. */
static void become_slot(Graph *g, Ref r, int32_t slot)
{
    Ref value = g_slot(g, slot, *type_of(g, r));
    g->node.at[r].op = OP_slot;
    g->node.at[r].n_args = 0;
    g->node.at[r].attr = g->node.at[value].attr;
}

int freeze_stops(Graph *stored, Graph *frozen, Pinned *pinned)
{
    int n = 0;
    Ref end = (Ref)frozen->node.n;
    drop_roots(frozen, ROOT_LOSS);
    stored->root.n = 0;
    for (Ref r = 1; r < end; r++) {
        if (op_of(frozen, r) != OP_stop_gradient)
            continue;
        const char *name = arena_printf(pinned->arena, "stopped:%d", n++);
        int32_t slot =
            pinned_add(pinned, name, SLOT_STATE, *type_of(frozen, r), node(frozen, r)->origin);
        graph_root(stored, ROOT_ASSIGN, name, arg(stored, r, 0), slot, -1);
        become_slot(frozen, r, slot);
    }
    return n;
}
