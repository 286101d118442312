#include "sequence.h"

#include <assert.h>
#include <string.h>

static void find_retain(const Problem *p, Sequence *s, int32_t *latest)
{
    for (int32_t v = 0; v < p->n; v++)
        latest[v] = -1;
    for (int32_t t = 0; t < s->n; t++) {
        int32_t v = s->node[t];
        for (int32_t i = p->input_at[v]; i < p->input_at[v + 1]; i++) {
            assert(latest[p->input[i]] >= 0);
            s->retain[latest[p->input[i]]] = t;
        }
        latest[v] = t;
        s->retain[t] = t;
        s->cost += p->node[v].cost;
    }
    for (int32_t v = 0; v < p->n; v++)
        if (p->node[v].keep && latest[v] >= 0)
            s->retain[latest[v]] = s->n - 1;
}

/* Bytes that each execution saves by writing over an input that it reads last. */
static void find_over(const Problem *p, Sequence *s, int32_t *latest)
{
    for (int32_t t = 0; t < s->n; t++) {
        const ProblemNode *node = &p->node[s->node[t]];
        if (node->over_bytes > 0 && s->retain[latest[node->over]] == t)
            s->live[t] -= node->over_bytes;
        latest[s->node[t]] = t;
    }
}

static void find_live(const Problem *p, Sequence *s, int64_t *change)
{
    for (int32_t t = 0; t < s->n; t++) {
        change[t] += p->node[s->node[t]].bytes;
        change[s->retain[t] + 1] -= p->node[s->node[t]].bytes;
    }
    int64_t bytes = p->pinned;
    for (int32_t t = 0; t < s->n; t++) {
        bytes += change[t];
        s->live[t] += bytes + p->node[s->node[t]].scratch;
        s->max_live = s->live[t] > s->max_live ? s->live[t] : s->max_live;
    }
}

Sequence *sequence_of(const Problem *p, const int32_t *node, int32_t n, Arena *out)
{
    Sequence *s = NEW(out, Sequence);
    s->n = n;
    s->node = NEW_ARRAY(out, int32_t, n);
    s->retain = NEW_ARRAY(out, int32_t, n);
    s->live = NEW_ARRAY(out, int64_t, n);
    s->max_live = p->pinned;
    memcpy(s->node, node, (size_t)n * sizeof *node);
    ArenaMark mark = arena_mark(out);
    int32_t *latest = NEW_ARRAY(out, int32_t, p->n);
    find_retain(p, s, latest);
    find_over(p, s, latest);
    find_live(p, s, NEW_ARRAY(out, int64_t, n + 1));
    arena_reset(out, mark);
    s->arena = s->max_live;
    return s;
}

Sequence *sequence_base(const Problem *p, Arena *out)
{
    int32_t *node = NEW_ARRAY(out, int32_t, p->n);
    for (int32_t v = 0; v < p->n; v++)
        node[v] = v;
    return sequence_of(p, node, p->n, out);
}
