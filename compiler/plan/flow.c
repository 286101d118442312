#include "flow.h"

#include <string.h>

void flow_init(Flow *f, int32_t n, int32_t max_pairs, int32_t source, int32_t sink, Arena *a)
{
    *f = (Flow){.n = n, .source = source, .sink = sink};
    f->to = NEW_ARRAY(a, int32_t, 2 * (int64_t)max_pairs);
    f->left = NEW_ARRAY(a, int64_t, 2 * (int64_t)max_pairs);
    f->out = NEW_ARRAY(a, int32_t, 2 * (int64_t)max_pairs);
    f->first = NEW_ARRAY(a, int32_t, n + 1);
    f->level = NEW_ARRAY(a, int32_t, n);
    f->current = NEW_ARRAY(a, int32_t, n);
    f->queue = NEW_ARRAY(a, int32_t, n);
    f->path = NEW_ARRAY(a, int32_t, n);
}

int32_t flow_arc(Flow *f, int32_t u, int32_t v)
{
    int32_t arc = f->n_arcs;
    f->to[arc] = v;
    f->to[arc + 1] = u;
    f->n_arcs += 2;
    return arc;
}

void flow_ready(Flow *f, Arena *a)
{
    int32_t *at = NEW_ARRAY(a, int32_t, f->n + 1);
    for (int32_t e = 0; e < f->n_arcs; e++)
        f->first[f->to[e ^ 1] + 1]++;
    for (int32_t v = 0; v < f->n; v++)
        f->first[v + 1] += f->first[v];
    memcpy(at, f->first, (size_t)(f->n + 1) * sizeof *at);
    for (int32_t e = 0; e < f->n_arcs; e++)
        f->out[at[f->to[e ^ 1]]++] = e;
}

/* Distances to the sink, as far as the source; whether it is reached. */
static bool find_levels(Flow *f, int64_t *work)
{
    for (int32_t v = 0; v < f->n; v++)
        f->level[v] = -1;
    int32_t n = 0;
    f->level[f->sink] = 0;
    f->queue[n++] = f->sink;
    for (int32_t i = 0; i < n; i++) {
        int32_t v = f->queue[i];
        *work -= f->first[v + 1] - f->first[v];
        for (int32_t j = f->first[v]; j < f->first[v + 1]; j++) {
            int32_t e = f->out[j], u = f->to[e];
            if (f->level[u] >= 0 || f->left[e ^ 1] == 0)
                continue;
            f->level[u] = f->level[v] + 1;
            f->queue[n++] = u;
        }
    }
    return f->level[f->source] >= 0;
}

/* Pushes along the path what fits; returns where the first full arc begins. */
static int32_t push(Flow *f, int32_t n, int64_t *total)
{
    int64_t amount = INT64_MAX;
    int32_t full = 0;
    for (int32_t i = 0; i < n; i++)
        amount = f->left[f->path[i]] < amount ? f->left[f->path[i]] : amount;
    for (int32_t i = n; i-- > 0;) {
        f->left[f->path[i]] -= amount;
        f->left[f->path[i] ^ 1] += amount;
        full = f->left[f->path[i]] == 0 ? i : full;
    }
    *total += amount;
    return full;
}

/* All paths that go down one level a step. */
static int64_t blocking_flow(Flow *f, int64_t *work)
{
    int64_t total = 0;
    int32_t n = 0, v = f->source;
    for (int32_t u = 0; u < f->n; u++)
        f->current[u] = f->first[u];
    for (;;) {
        if (v == f->sink) {
            n = push(f, n, &total);
            v = f->to[f->path[n] ^ 1];
        }
        int32_t *at = &f->current[v], end = f->first[v + 1];
        for (; *at < end; ++*at, --*work) {
            int32_t e = f->out[*at];
            if (f->left[e] > 0 && f->level[f->to[e]] == f->level[v] - 1)
                break;
        }
        if (*at < end) {
            f->path[n++] = f->out[*at];
            v = f->to[f->out[*at]];
        } else if (n > 0) {
            f->level[v] = -1;
            v = f->to[f->path[--n] ^ 1];
            f->current[v]++;
        } else {
            return total;
        }
    }
}

int64_t flow_run(Flow *f, int64_t *work)
{
    int64_t total = 0;
    while (*work >= 0 && find_levels(f, work))
        total += blocking_flow(f, work);
    return total;
}

void flow_reached(Flow *f, bool *reached)
{
    memset(reached, 0, (size_t)f->n * sizeof *reached);
    int32_t n = 0;
    reached[f->source] = true;
    f->queue[n++] = f->source;
    for (int32_t i = 0; i < n; i++) {
        int32_t v = f->queue[i];
        for (int32_t j = f->first[v]; j < f->first[v + 1]; j++) {
            int32_t e = f->out[j];
            if (f->left[e] == 0 || reached[f->to[e]])
                continue;
            reached[f->to[e]] = true;
            f->queue[n++] = f->to[e];
        }
    }
}
