#include "min_cut.h"

Cut cut_open(Arena *arena, int32_t n, int32_t source, int32_t sink)
{
    Cut c = {.arena = arena, .n = n, .source = source, .sink = sink};
    c.first = NEW_ARRAY(arena, int32_t, n);
    for (int32_t i = 0; i < n; i++)
        c.first[i] = -1;
    return c;
}

static void add_half(Cut *c, int32_t from, int32_t to, int64_t capacity)
{
    vec_push(c->arena, &c->edge, ((CutEdge){to, c->first[from], capacity}));
    c->first[from] = c->edge.n - 1;
}

void cut_edge(Cut *c, int32_t from, int32_t to, int64_t capacity)
{
    add_half(c, from, to, capacity);
    add_half(c, to, from, 0);
}

/* Steps from each node to the sink, along edges with something left; -1: there is no way. */
static bool find_layers(const Cut *c, int32_t *layer, int32_t *queue)
{
    for (int32_t i = 0; i < c->n; i++)
        layer[i] = -1;
    int32_t head = 0, tail = 0;
    layer[c->sink] = 0;
    queue[tail++] = c->sink;
    while (head < tail) {
        int32_t at = queue[head++];
        for (int32_t e = c->first[at]; e >= 0; e = c->edge.at[e].next) {
            int32_t from = c->edge.at[e].to;
            if (c->edge.at[e ^ 1].left == 0 || layer[from] >= 0)
                continue;
            layer[from] = layer[at] + 1;
            queue[tail++] = from;
        }
    }
    return layer[c->source] >= 0;
}

/* Sends along the path of edges what its narrowest has left; gives how much of the path is before
 * the first that is full. */
static int32_t send(Cut *c, const int32_t *path, int32_t n)
{
    int64_t most = CUT_NEVER;
    int32_t full = 0;
    for (int32_t i = 0; i < n; i++)
        most = c->edge.at[path[i]].left < most ? c->edge.at[path[i]].left : most;
    for (int32_t i = n; i-- > 0;) {
        c->edge.at[path[i]].left -= most;
        c->edge.at[path[i] ^ 1].left += most;
        full = c->edge.at[path[i]].left == 0 ? i : full;
    }
    return full;
}

/* Sends along ways from layer to layer until there is none. at: by node, the next edge to try. */
static void send_all(Cut *c, const int32_t *layer, int32_t *at, int32_t *path)
{
    int32_t n = 0, here = c->source;
    for (int32_t i = 0; i < c->n; i++)
        at[i] = c->first[i];
    while (true) {
        if (here == c->sink) {
            n = send(c, path, n);
            here = c->edge.at[path[n] ^ 1].to;
            continue;
        }
        int32_t e = at[here];
        while (e >= 0 && (c->edge.at[e].left == 0 || layer[c->edge.at[e].to] != layer[here] - 1))
            e = c->edge.at[e].next;
        at[here] = e;
        if (e >= 0) {
            path[n++] = e;
            here = c->edge.at[e].to;
        } else if (n > 0) {
            e = path[--n]; /* a dead end */
            here = c->edge.at[e ^ 1].to;
            at[here] = c->edge.at[e].next;
        } else {
            return;
        }
    }
}

const bool *cut_solve(Cut *c)
{
    int32_t *layer = NEW_ARRAY(c->arena, int32_t, c->n);
    int32_t *at = NEW_ARRAY(c->arena, int32_t, c->n);
    int32_t *path = NEW_ARRAY(c->arena, int32_t, c->n);
    bool *side = NEW_ARRAY(c->arena, bool, c->n);
    while (find_layers(c, layer, path))
        send_all(c, layer, at, path);
    for (int32_t i = 0; i < c->n; i++)
        side[i] = layer[i] >= 0;
    return side;
}
