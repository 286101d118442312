/* Packing item by item, each into the gap that it fills best.
 *
 * A large net has thousands of items, and a look at each of them for each of them takes
 * longer than all else. What lies there is therefore kept in chunks of neighbours,
 * which mostly live and die together, and those that are dead or too low are passed
 * over as one. Too low is what ends in the solid heap under the item; and nothing
 * is looked at above a gap of exactly its size. */
#include "fill.h"

#include <string.h>

/* Each chunk but the first is half of a full one. */
static int32_t most_chunks(const Pack *k)
{
    return 1 + k->n / (FILL_CHUNK / 2);
}

Fill fill_new(const Pack *k)
{
    Fill f = {.pack = k};
    f.offset = NEW_ARRAY(k->arena, int64_t, k->n);
    f.chunk = NEW_ARRAY(k->arena, FillChunk *, most_chunks(k));
    f.sum = NEW_ARRAY(k->arena, FillSum, most_chunks(k));
    f.pool = NEW_ARRAY(k->arena, FillChunk, most_chunks(k));
    f.solid = NEW_ARRAY(k->arena, int64_t, k->n_sections);
    f.top = NEW_ARRAY(k->arena, int64_t, k->n_sections);
    return f;
}

/* ---- what lies there --------------------------------------------------------------- */

static void summarize(Fill *f, int32_t at)
{
    const FillChunk *c = f->chunk[at];
    FillSum sum = {.first = INT32_MAX, .last = -1, .low = c->span[0].offset};
    for (int32_t i = 0; i < c->n; i++) {
        int64_t end = c->span[i].offset + c->span[i].size;
        sum.first = c->from[i] < sum.first ? c->from[i] : sum.first;
        sum.last = c->to[i] > sum.last ? c->to[i] : sum.last;
        sum.end = end > sum.end ? end : sum.end;
    }
    f->sum[at] = sum;
}

/* The last chunk that begins at `offset` or below; the first if none does. */
static int32_t chunk_of(const Fill *f, int64_t offset)
{
    int32_t low = 1, high = f->n_chunks;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (f->sum[middle].low <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

static void split(Fill *f, int32_t i)
{
    enum { HALF = FILL_CHUNK / 2 };
    FillChunk *low = f->chunk[i], *high = &f->pool[f->n_made++];
    memcpy(high->from, low->from + HALF, HALF * sizeof *low->from);
    memcpy(high->to, low->to + HALF, HALF * sizeof *low->to);
    memcpy(high->span, low->span + HALF, HALF * sizeof *low->span);
    low->n = high->n = HALF;
    size_t above = (size_t)(f->n_chunks - i - 1);
    memmove(&f->chunk[i + 2], &f->chunk[i + 1], above * sizeof(FillChunk *));
    memmove(&f->sum[i + 2], &f->sum[i + 1], above * sizeof(FillSum));
    f->chunk[i + 1] = high;
    f->n_chunks++;
    summarize(f, i);
    summarize(f, i + 1);
}

static void insert(Fill *f, int32_t item, int64_t at)
{
    const PackItem *it = &f->pack->item[item];
    int32_t i = chunk_of(f, at);
    if (f->chunk[i]->n == FILL_CHUNK) {
        split(f, i);
        i = chunk_of(f, at);
    }
    FillChunk *c = f->chunk[i];
    int32_t j = c->n++;
    for (; j > 0 && c->span[j - 1].offset > at; j--) {
        c->from[j] = c->from[j - 1];
        c->to[j] = c->to[j - 1];
        c->span[j] = c->span[j - 1];
    }
    c->from[j] = it->from;
    c->to[j] = it->to;
    c->span[j] = (FillSpan){at, it->size, item, it->n_parts};
    FillSum *sum = &f->sum[i];
    sum->first = it->from < sum->first ? it->from : sum->first;
    sum->last = it->to > sum->last ? it->to : sum->last;
    sum->low = c->span[0].offset;
    sum->end = at + it->size > sum->end ? at + it->size : sum->end;
}

/* The heap grows, and what is on top of it. */
static void cover(Fill *f, const PackItem *it, int64_t at)
{
    int64_t size = it->size;
    for (int32_t s = it->from, i = 0; s <= it->to; s++) {
        for (; i < it->n_parts && it->part[i].from == s; i++)
            size = it->part[i].size;
        if (f->solid[s] == at)
            f->solid[s] = at + size;
        if (f->top[s] < at + size)
            f->top[s] = at + size;
    }
}

static void clear(Fill *f)
{
    size_t bytes = (size_t)f->pack->n_sections * sizeof *f->top;
    memset(f->solid, 0, bytes);
    memset(f->top, 0, bytes);
    f->chunk[0] = &f->pool[0];
    f->chunk[0]->n = 0;
    summarize(f, 0);
    f->n_chunks = f->n_made = 1;
}

/* ---- gaps ------------------------------------------------------------------------------ */

static bool chunk_meets(const FillSum *c, const PackItem *it, int64_t low)
{
    return c->end > low && c->first <= it->to && c->last >= it->from;
}

static bool meets(const FillChunk *c, int32_t i, const PackItem *it)
{
    return c->from[i] <= it->to && c->to[i] >= it->from;
}

/* Where the i-th ends when `it` and it are first alive together. */
static int64_t end_of(const Fill *f, const FillChunk *c, int32_t i, const PackItem *it)
{
    const FillSpan *p = &c->span[i];
    int64_t size = p->size;
    if (p->n_parts > 0 && it->from > c->from[i])
        size = pack_size(&f->pack->item[p->item], it->from);
    return p->offset + size;
}

static int64_t least_of(const int64_t *a, int32_t from, int32_t to)
{
    int64_t least = a[from];
    for (int32_t s = from + 1; s <= to; s++)
        least = a[s] < least ? a[s] : least;
    return least;
}

static int64_t most_of(const int64_t *a, int32_t from, int32_t to)
{
    int64_t most = a[from];
    for (int32_t s = from + 1; s <= to; s++)
        most = a[s] > most ? a[s] : most;
    return most;
}

typedef struct Gap {
    int64_t low; /* all that has been seen ends here or below */
    int64_t at, size;
} Gap;

static void gaps_of(Fill *f, const FillChunk *c, const PackItem *it, Gap *g)
{
    f->looks += c->n;
    for (int32_t i = 0; i < c->n; i++) {
        if (!meets(c, i, it))
            continue;
        const FillSpan *p = &c->span[i];
        int64_t gap = p->offset - g->low;
        int64_t end = p->n_parts > 0 ? end_of(f, c, i, it) : p->offset + p->size;
        if (gap >= it->size && gap < g->size) {
            g->size = gap;
            g->at = g->low;
        }
        g->low = end > g->low ? end : g->low;
    }
}

/* The gap that `it` fills best; on top of everything if it fits in none. */
static int64_t find_gap(Fill *f, const PackItem *it)
{
    Gap g = {least_of(f->solid, it->from, it->to), -1, INT64_MAX};
    int64_t top = most_of(f->top, it->from, it->to);
    for (int32_t i = 0; g.low < top && g.size > it->size; i++)
        if (chunk_meets(&f->sum[i], it, g.low))
            gaps_of(f, f->chunk[i], it, &g);
    f->looks += f->n_chunks / 2;
    return g.at >= 0 ? g.at : g.low;
}

static bool is_free(Fill *f, const PackItem *it, int64_t at)
{
    for (int32_t i = 0; i < f->n_chunks; i++) {
        const FillChunk *c = f->chunk[i];
        if (!chunk_meets(&f->sum[i], it, at))
            continue;
        f->looks += c->n;
        for (int32_t j = 0; j < c->n && c->span[j].offset < at + it->size; j++)
            if (meets(c, j, it) && end_of(f, c, j, it) > at)
                return false;
    }
    return true;
}

int64_t fill_gaps(Fill *f, const int32_t *order, const int64_t *wish, int64_t limit)
{
    int64_t height = 0;
    clear(f);
    for (int32_t i = 0; i < f->pack->n && height < limit; i++) {
        const PackItem *it = &f->pack->item[order[i]];
        int64_t at = wish == NULL ? -1 : wish[order[i]];
        if (at < 0 || !is_free(f, it, at))
            at = find_gap(f, it);
        insert(f, order[i], at);
        cover(f, it, at);
        f->offset[order[i]] = at;
        height = at + it->size > height ? at + it->size : height;
    }
    return height;
}
