/* A relu before a maximum is one behind it.
 *
 * relu rises nowhere but where x does: the largest of relus is the relu of the largest, and what it
 * is chosen from is either the same element or one of a window without a positive one, which gets
 * no cotangent either way. Behind a pooling the relu has fewer elements, its derivative asks a
 * value that the next op keeps in any case, and of what lies before it the reverse pass needs
 * nothing but which element was chosen. Values are the same but for the sign of a zero. */
#include <math.h>

#include "pass.h"

enum { WINDOW_DILATION = 3, WINDOW_LO = 4, WINDOW_HI = 5, WINDOW_FILL = 6 };

typedef struct Pools {
    const Graph *g;
    int32_t *reads;
    Ref *reader; /* the last of them */
    Ref *from;   /* by Ref: the relu that is to stand behind it, or NONE */
    bool *moves; /* by Ref: a relu that is to stand elsewhere */
} Pools;

/* No window lies in the padding alone, which is less than all there is. */
static bool is_pooled(const Graph *g, Ref r)
{
    const Attr *a = node(g, r)->attr;
    bool pads = a[WINDOW_LO].i > 0 || a[WINDOW_HI].i > 0;
    int axis = (int)a[0].i;
    int64_t size = dim(g, r, axis + 1);
    bool whole = a[WINDOW_DILATION].i == 1 && a[WINDOW_LO].i < size && a[WINDOW_HI].i < size;
    return !pads || (whole && isinf(a[WINDOW_FILL].f) && a[WINDOW_FILL].f < 0);
}

static bool goes_through(const Graph *g, Ref r)
{
    OpId op = op_of(g, r);
    return op == OP_reduce_max || op == OP_reshape || (op == OP_window && is_pooled(g, r));
}

static bool may_move(const Graph *g, Ref r)
{
    const Origin *o = node(g, r)->origin;
    return dtype_is_float(type_of(g, r)->dtype) && (o == NULL || o->memory == MEMORY_PLANNED);
}

/* The last maximum that r goes into, and nothing else does in between; or NONE. */
static Ref last_max(const Pools *p, Ref r)
{
    Ref last = NONE;
    bool has_window = false;
    while (p->reads[r] == 1 && p->reader[r] != NONE && goes_through(p->g, p->reader[r])) {
        r = p->reader[r];
        has_window = has_window || op_of(p->g, r) == OP_window;
        if (op_of(p->g, r) == OP_reduce_max && has_window)
            last = r;
    }
    return last;
}

static bool find(Pools *p, Arena *a)
{
    const Graph *g = p->g;
    bool any = false;
    p->reads = NEW_ARRAY(a, int32_t, g->node.n);
    p->reader = NEW_ARRAY(a, Ref, g->node.n);
    p->from = NEW_ARRAY(a, Ref, g->node.n);
    p->moves = NEW_ARRAY(a, bool, g->node.n);
    for (int i = 0; i < g->root.n; i++)
        p->reads[g->root.at[i].ref]++;
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        for (int i = 0; i < node(g, r)->n_args; i++) {
            p->reads[arg(g, r, i)]++;
            p->reader[arg(g, r, i)] = r;
        }
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        Ref to = op_of(g, r) == OP_relu && may_move(g, r) ? last_max(p, r) : NONE;
        if (to == NONE)
            continue;
        p->from[to] = r;
        p->moves[r] = any = true;
    }
    return any;
}

Graph *relus_behind_pools(const Graph *g)
{
    Arena arena = {0};
    Pools p = {.g = g};
    Graph *to = NULL;
    if (find(&p, &arena)) {
        Ref *map = NEW_ARRAY(&arena, Ref, g->node.n);
        to = graph_new(g->cx, g->name);
        for (Ref r = 1; r < (Ref)g->node.n; r++) {
            map[r] = p.moves[r] ? map[arg(g, r, 0)] : graph_copy_node(to, g, r, map);
            if (p.from[r] == NONE)
                continue;
            to->origin = node(g, p.from[r])->origin;
            map[r] = g_node(to, OP_relu, &map[r], 1, NULL);
        }
        graph_copy_roots(to, g, map);
    }
    arena_free(&arena);
    return to;
}
