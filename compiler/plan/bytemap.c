/* Segments in a sorted array: a write replaces the segments that it covers, so that
 * their number grows by two at most. */
#include "bytemap.h"

#include <assert.h>
#include <string.h>

void bytemap_init(ByteMap *m, Arena *arena)
{
    *m = (ByteMap){.arena = arena};
    vec_push(arena, &m->seg, ((Segment){0, NOBODY}));
}

/* Index of the segment that holds the byte. */
static int32_t segment_of(const ByteMap *m, int64_t byte)
{
    int32_t low = 0, high = m->seg.n;
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (m->seg.at[middle].start <= byte)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Makes a segment begin at the byte; returns its index. */
static int32_t cut(ByteMap *m, int64_t byte)
{
    int32_t i = segment_of(m, byte);
    if (m->seg.at[i].start == byte)
        return i;
    int32_t behind = m->seg.n - (i + 1);
    vec_push(m->arena, &m->seg, ((Segment){0}));
    Segment *at = &m->seg.at[i + 1];
    memmove(at + 1, at, (size_t)behind * sizeof *at);
    *at = (Segment){byte, m->seg.at[i].writer};
    return i + 1;
}

void bytemap_write(ByteMap *m, int64_t from, int64_t to, int32_t writer)
{
    assert(from >= 0 && from < to);
    int32_t first = cut(m, from);
    int32_t end = cut(m, to);
    m->seg.at[first].writer = writer;
    memmove(&m->seg.at[first + 1], &m->seg.at[end], (size_t)(m->seg.n - end) * sizeof *m->seg.at);
    m->seg.n -= end - (first + 1);
}

int32_t bytemap_next(const ByteMap *m, int64_t from, int64_t to, int32_t *at)
{
    int32_t i = *at < 0 ? segment_of(m, from) : *at;
    bool more = i + 1 < m->seg.n && m->seg.at[i + 1].start < to;
    *at = more ? i + 1 : -1;
    return m->seg.at[i].writer;
}
