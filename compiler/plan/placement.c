/* From buffers to a packing (pack.h) and back.
 *
 * Sizes are rounded up to the common alignment, so that every sum of them is an offset
 * that suits all; of different alignments that asks more than need be, and what the
 * search finds impossible is then no proof. */
#include "placement.h"

#include <stdlib.h>

typedef struct Solver {
    Placement *p;
    Pack pack;
    int64_t *time; /* where a section begins, and one more: the end */
    bool exact;    /* rounding has changed no size */
} Solver;

/* ---- sections ---------------------------------------------------------------------------- */

typedef struct Event {
    int64_t time;
    bool begins;
} Event;

/* What ends at a time ends before others begin. */
static int by_time(const void *a, const void *b)
{
    const Event *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (int)x->begins - (int)y->begins;
}

/* A section begins with the first buffer that begins after another one has ended. */
static void cut_sections(Solver *s)
{
    const Placement *p = s->p;
    Event *event = NEW_ARRAY(s->pack.arena, Event, 2 * p->n);
    s->time = NEW_ARRAY(s->pack.arena, int64_t, 2 * p->n + 1);
    for (int32_t i = 0; i < p->n; i++) {
        event[2 * i] = (Event){p->buffer[i].lower, true};
        event[2 * i + 1] = (Event){p->buffer[i].upper, false};
    }
    qsort(event, (size_t)(2 * p->n), sizeof *event, by_time);
    bool ended = true;
    for (int32_t i = 0; i < 2 * p->n; i++) {
        if (event[i].begins && ended)
            s->time[s->pack.n_sections++] = event[i].time;
        ended = !event[i].begins;
    }
}

/* The last section that begins at `time` or before. */
static int32_t section_at(const Solver *s, int64_t time)
{
    int32_t low = 1, high = s->pack.n_sections;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (s->time[middle] <= time)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

/* ---- items ------------------------------------------------------------------------------- */

static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

static void make_items(Solver *s, bool rounded)
{
    Placement *p = s->p;
    for (int32_t i = 0; i < p->n; i++) {
        const PlacedBuffer *b = &p->buffer[i];
        PackItem *it = &s->pack.item[i];
        *it = (PackItem){.from = section_at(s, b->lower), .to = section_at(s, b->upper - 1)};
        it->size = rounded ? round_up(b->size, p->alignment) : b->size;
        s->exact = s->exact && it->size == b->size;
    }
}

static Solver solver_new(Placement *p, Arena *scratch)
{
    Solver s = {.p = p, .pack = {.arena = scratch, .n = p->n}, .exact = true};
    s.pack.item = NEW_ARRAY(scratch, PackItem, p->n);
    cut_sections(&s);
    make_items(&s, false);
    pack_bound(&s.pack);
    p->max_live = s.pack.bound;
    make_items(&s, true);
    pack_bound(&s.pack);
    s.pack.height = INT64_MAX;
    return s;
}

/* ---- all of it --------------------------------------------------------------------------- */

static int64_t take_offsets(Solver *s)
{
    int64_t height = 0;
    for (int32_t i = 0; i < s->p->n; i++) {
        PlacedBuffer *b = &s->p->buffer[i];
        b->offset = s->pack.item[i].offset;
        height = b->offset + b->size > height ? b->offset + b->size : height;
    }
    return height;
}

/* The goal in rounded sizes. What lies highest need not be rounded, so that a capacity
 * may be kept to from above; only the whole capacity is asked for. */
static void set_goal(Solver *s, int64_t capacity)
{
    int64_t goal = capacity / s->p->alignment * s->p->alignment;
    if (goal > s->pack.goal)
        s->pack.goal = goal;
}

Placed placement_solve(Placement *p, int64_t capacity, int64_t work, Arena *scratch)
{
    Solver s = solver_new(p, scratch);
    set_goal(&s, capacity);
    bool hopeless = capacity > 0 && p->max_live > capacity;
    pack_lowest(&s.pack, hopeless ? 0 : work, p->alignment);
    Placed r = {.height = take_offsets(&s)};
    int64_t least = s.exact ? s.pack.least : p->max_live;
    r.proved = r.height == least;
    if (capacity == 0 || r.height <= capacity)
        r.answer = PLACEMENT_FOUND;
    else
        r.answer = least > capacity ? PLACEMENT_IMPOSSIBLE : PLACEMENT_NOT_FOUND;
    return r;
}

/* ---- check ------------------------------------------------------------------------------- */

static int by_lower(const void *a, const void *b)
{
    const PlacedBuffer *const *x = a, *const *y = b;
    if ((*x)->lower != (*y)->lower)
        return (*x)->lower < (*y)->lower ? -1 : 1;
    return (*x > *y) - (*x < *y);
}

static const char *name(const PlacedBuffer *b, Arena *a)
{
    return arena_strndup(a, b->id, (size_t)b->id_bytes);
}

static const char *check_one(const PlacedBuffer *b, int64_t height, Arena *a)
{
    if (b->offset < 0 || b->offset % b->alignment != 0)
        return arena_printf(a, "`%s` lies at %lld", name(b, a), (long long)b->offset);
    if (b->offset + b->size > height)
        return arena_printf(a, "`%s` ends above the height", name(b, a));
    return NULL;
}

const char *placement_check(const Placement *p, int64_t height, Arena *a)
{
    const PlacedBuffer **sorted = NEW_ARRAY(a, const PlacedBuffer *, p->n);
    for (int32_t i = 0; i < p->n; i++)
        sorted[i] = &p->buffer[i];
    qsort(sorted, (size_t)p->n, sizeof(PlacedBuffer *), by_lower);
    for (int32_t i = 0; i < p->n; i++) {
        const PlacedBuffer *x = sorted[i];
        const char *wrong = check_one(x, height, a);
        for (int32_t j = i + 1; wrong == NULL && j < p->n && sorted[j]->lower < x->upper; j++) {
            const PlacedBuffer *y = sorted[j];
            if (x->offset < y->offset + y->size && y->offset < x->offset + x->size)
                wrong = arena_printf(a, "`%s` and `%s` overlap", name(x, a), name(y, a));
        }
        if (wrong != NULL)
            return wrong;
    }
    return NULL;
}

/* ---- output ------------------------------------------------------------------------------ */

void placement_write(const Placement *p, Text *to)
{
    bool aligned = p->alignment > 1;
    text_add(to, "id,lower,upper,size,%soffset\n", aligned ? "alignment," : "");
    for (int32_t i = 0; i < p->n; i++) {
        const PlacedBuffer *b = &p->buffer[i];
        text_put(to, b->id, (size_t)b->id_bytes);
        text_add(to, ",%lld,%lld,%lld,", (long long)b->lower, (long long)b->upper,
                 (long long)b->size);
        if (aligned)
            text_add(to, "%lld,", (long long)b->alignment);
        text_add(to, "%lld\n", (long long)b->offset);
    }
}
