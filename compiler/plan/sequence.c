#include "sequence.h"

#include <assert.h>
#include <string.h>

#include "pack.h"

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

static void find_live(const Problem *p, Sequence *s, int64_t *change)
{
    for (int32_t t = 0; t < s->n; t++) {
        change[t] += p->node[s->node[t]].bytes;
        change[s->retain[t] + 1] -= p->node[s->node[t]].bytes;
    }
    int64_t bytes = p->pinned;
    for (int32_t t = 0; t < s->n; t++) {
        bytes += change[t];
        s->live[t] = bytes + p->node[s->node[t]].scratch;
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
    find_retain(p, s, NEW_ARRAY(out, int32_t, p->n));
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

/* ---- offsets ------------------------------------------------------------------------ */

/* One item for each output, then one for each scratch; of what has no bytes, none. */
static void make_items(const Problem *p, const Sequence *s, Pack *k)
{
    for (int32_t t = 0; t < s->n; t++)
        if (p->node[s->node[t]].bytes > 0)
            k->item[k->n++] =
                (PackItem){.from = t, .to = s->retain[t], .size = p->node[s->node[t]].bytes};
    for (int32_t t = 0; t < s->n; t++)
        if (p->node[s->node[t]].scratch > 0)
            k->item[k->n++] = (PackItem){.from = t, .to = t, .size = p->node[s->node[t]].scratch};
}

static void set_offsets(const Problem *p, Sequence *s, const Pack *k)
{
    int32_t i = 0;
    for (int32_t t = 0; t < s->n; t++) {
        bool some = p->node[s->node[t]].bytes > 0;
        s->offset[t] = p->pinned + (some ? k->item[i++].offset : 0);
    }
    for (int32_t t = 0; t < s->n; t++) {
        bool some = p->node[s->node[t]].scratch > 0;
        s->scratch_offset[t] = some ? p->pinned + k->item[i++].offset : -1;
    }
}

static void pack(Pack *k, int64_t work)
{
    pack_bound(k);
    pack_greedy(k);
    if (k->height > k->bound)
        pack_search(k, k->bound, work / 4);
    pack_repair(k, work);
    int64_t low = k->bound;
    for (int i = 0; i < 6 && k->height > low; i++) {
        int64_t target = low + (k->height - low) / 2;
        if (pack_search(k, target, work / 16) != PACK_FOUND)
            low = target + 1;
    }
}

void sequence_place(const Problem *p, Sequence *s, int64_t work, Arena *out)
{
    s->offset = NEW_ARRAY(out, int64_t, s->n);
    s->scratch_offset = NEW_ARRAY(out, int64_t, s->n);
    ArenaMark mark = arena_mark(out);
    Pack k = {.arena = out, .n_sections = s->n};
    k.item = NEW_ARRAY(out, PackItem, 2 * s->n);
    make_items(p, s, &k);
    if (k.n > 0)
        pack(&k, work);
    set_offsets(p, s, &k);
    s->arena = p->pinned + (k.n > 0 ? k.height : 0);
    arena_reset(out, mark);
}
