#include "segments.h"

#include "decode.h"

/* Executions of all schedules that are tried, for cuts of each kind. */
enum { MOST_RUNS = 8000000 };

/* A part of the room for a segment, by which that grows. */
enum { FINER = 16 };

/* Segments in one: with fewer, one level takes as little. */
enum { LEAST_NESTED = 4 };

typedef struct Forward {
    const Problem *p;
    int32_t moment;   /* the last node */
    int64_t *written; /* by node: bytes of all outputs up to it */
    int64_t *cross;   /* by node: bytes behind it that nodes up to the moment still read */
    int32_t *last;    /* by node: its last reader up to the moment, or itself */
    bool *kept;
    bool *crossing; /* by node: some segment reads it that does not write it */
    int32_t *part;  /* by node: its segment; -1 behind the moment */
    int32_t *cut;   /* by segment: the last node */
    int32_t n_cuts;
} Forward;

static int32_t most_live(const Sequence *base)
{
    int32_t at = 0;
    for (int32_t t = 1; t < base->n; t++)
        if (base->live[t] > base->live[at])
            at = t;
    return base->node[at];
}

static void measure(Forward *f, Arena *arena)
{
    const Problem *p = f->p;
    int32_t n = f->moment + 1;
    f->written = NEW_ARRAY(arena, int64_t, n);
    f->cross = NEW_ARRAY(arena, int64_t, n + 1);
    f->last = NEW_ARRAY(arena, int32_t, n);
    f->kept = NEW_ARRAY(arena, bool, p->n);
    f->crossing = NEW_ARRAY(arena, bool, p->n);
    f->part = NEW_ARRAY(arena, int32_t, p->n);
    f->cut = NEW_ARRAY(arena, int32_t, n);
    for (int32_t v = 0; v < n; v++) {
        f->last[v] = v;
        f->written[v] = p->node[v].bytes + (v > 0 ? f->written[v - 1] : 0);
        for (int32_t i = p->input_at[v]; i < p->input_at[v + 1]; i++)
            f->last[p->input[i]] = v;
    }
    for (int32_t v = 0; v < n; v++) {
        f->cross[v] += p->node[v].bytes;
        f->cross[f->last[v]] -= p->node[v].bytes;
    }
    for (int32_t v = 1; v < n; v++)
        f->cross[v] += f->cross[v - 1];
}

/* Where the least crosses, within a half of a segment around `goal` bytes written. */
static int32_t find_cut(const Forward *f, int32_t from, int64_t goal, int64_t reach)
{
    int32_t best = -1;
    for (int32_t v = from; v < f->moment && f->written[v] <= goal + reach; v++)
        if (f->written[v] >= goal - reach && (best < 0 || f->cross[v] < f->cross[best]))
            best = v;
    return best;
}

/* False: two segments would be one. */
static bool cut_into(Forward *f, int32_t segments)
{
    int64_t all = f->written[f->moment], each = all / segments;
    int32_t from = 0;
    f->n_cuts = 0;
    for (int32_t i = 1; i < segments; i++) {
        int32_t cut = find_cut(f, from, each * i, each / 2);
        if (cut < 0)
            return false;
        f->cut[f->n_cuts++] = cut;
        from = cut + 1;
    }
    return true;
}

/* Bytes of [from, cut] that are read behind the cut. */
static int64_t kept_of(const Forward *f, int32_t from, int32_t cut)
{
    int64_t bytes = 0;
    for (int32_t v = from; v <= cut; v++)
        bytes += f->last[v] > cut ? f->p->node[v].bytes : 0;
    return bytes;
}

/* What is kept for the segments before one is there while that is at work, and gone for those
 * before it: the first segments have the most room. False: what crosses takes all of it. */
static bool cut_within(Forward *f, int64_t room)
{
    int32_t from = 0;
    int64_t before = 0;
    f->n_cuts = 0;
    while (room < f->written[f->moment] - before) {
        int32_t cut = find_cut(f, from, before + room - room / 8, room / 8);
        if (cut < 0)
            return false;
        room -= kept_of(f, from, cut);
        before = f->written[cut];
        f->cut[f->n_cuts++] = cut;
        from = cut + 1;
    }
    return f->n_cuts > 0;
}

/* Marks what crosses every k-th cut. */
static void find_crossing(const Forward *f, int32_t k, bool *crossing)
{
    for (int32_t v = 0; v < f->p->n; v++)
        crossing[v] = false;
    int32_t from = 0;
    for (int32_t i = k - 1; i < f->n_cuts; i += k)
        for (; from <= f->cut[i]; from++)
            crossing[from] = f->last[from] > f->cut[i];
}

static void find_parts(Forward *f)
{
    int32_t part = 0;
    for (int32_t v = 0; v < f->p->n; v++) {
        f->part[v] = v <= f->moment ? part : -1;
        part += part < f->n_cuts && v == f->cut[part];
    }
}

static bool dominates(const Sequence *a, const Sequence *b)
{
    return a->max_live <= b->max_live && a->cost <= b->cost;
}

/* False: there is one already that is no worse. */
static bool offer(Segmented *to, const Sequence *base, Sequence *s)
{
    if (s == NULL || s->max_live >= base->max_live)
        return false;
    int32_t n = 0;
    for (int32_t i = 0; i < to->n; i++)
        if (dominates(to->at[i], s))
            return false;
    for (int32_t i = 0; i < to->n; i++)
        if (!dominates(s, to->at[i]))
            to->at[n++] = to->at[i];
    to->n = n;
    if (n == MOST_SEGMENTED)
        return false;
    to->at[to->n++] = s;
    return true;
}

/* What is there when the reverse pass begins need not run again for it: of the last segment all,
 * and of the last k all that crosses their cuts. */
static void keep_last(Forward *f, int32_t k)
{
    int32_t outer = f->n_cuts - f->n_cuts % k, from = outer > 0 ? f->cut[outer - 1] + 1 : 0;
    for (int32_t i = outer; i < f->n_cuts; i++)
        for (; from <= f->cut[i]; from++)
            f->kept[from] = f->last[from] > f->cut[i];
    for (; from <= f->moment; from++)
        f->kept[from] = true;
}

/* Schedules for the cuts that have been found: nothing runs again that need not, or what runs again
 * goes at once, which may take less. */
static void offer_all(Segmented *to, Forward *f, const Sequence *base, Arena *out)
{
    KeepSet keep = {.moment = f->moment, .kept = f->kept};
    for (int how = RUN_ONCE_MORE; how <= (int)RUN_FOR_EACH; how++) {
        ArenaMark mark = arena_mark(out);
        find_crossing(f, 1, f->kept);
        if (how == RUN_ONCE_MORE)
            keep_last(f, 1);
        if (!offer(to, base, decode(f->p, base->node, &keep, (DecodeHow)how, out)))
            arena_reset(out, mark);
    }
}

/* Every k-th cut is one of the outer segments, and as many of those hold as many inner ones. */
static void offer_nested(Segmented *to, Forward *f, const Sequence *base, Arena *out)
{
    DecodeParts parts = {.part = f->part, .crossing = f->crossing};
    KeepSet keep = {.moment = f->moment, .kept = f->kept};
    int32_t k = 2;
    while (k * k < f->n_cuts)
        k++;
    if (k < LEAST_NESTED)
        return;
    find_crossing(f, k, f->kept);
    keep_last(f, k);
    find_crossing(f, 1, f->crossing);
    find_parts(f);
    ArenaMark mark = arena_mark(out);
    if (!offer(to, base, decode_parts(f->p, base->node, &keep, &parts, out)))
        arena_reset(out, mark);
}

/* As many cuts for equal segments, again and again; with segments of segments. */
static void try_equal(Segmented *to, Forward *f, const Sequence *base, Arena *out)
{
    int64_t runs = 0;
    for (int32_t n = 2; n <= f->moment / 3 && runs < MOST_RUNS; n += n < 4 ? 1 : n / 4) {
        if (!cut_into(f, n))
            break;
        offer_all(to, f, base, out);
        offer_nested(to, f, base, out);
        runs += 7 * (int64_t)f->p->n;
    }
}

/* As much room for each segment with what is kept for those before it; the least first. */
static void try_rooms(Segmented *to, Forward *f, const Sequence *base, Arena *out)
{
    int64_t runs = 0, most = f->written[f->moment], room = most;
    while (room > FINER && cut_within(f, room - room / FINER))
        room -= room / FINER;
    for (; room < most && runs < MOST_RUNS; room += room / FINER + 1) {
        if (cut_within(f, room))
            offer_all(to, f, base, out);
        runs += 4 * (int64_t)f->p->n;
    }
}

Segmented segmented(const Problem *p, const Sequence *base, Arena *out)
{
    Segmented to = {0};
    Arena scratch = {0};
    Forward f = {.p = p, .moment = p->n > 0 ? most_live(base) : -1};
    if (f.moment >= 0) {
        measure(&f, &scratch);
        try_rooms(&to, &f, base, out);
        try_equal(&to, &f, base, out);
    }
    arena_free(&scratch);
    return to;
}

Sequence *segmented_within(const Segmented *s, int64_t budget)
{
    Sequence *best = NULL;
    for (int32_t i = 0; i < s->n; i++)
        if (s->at[i]->max_live <= budget && (best == NULL || s->at[i]->cost < best->cost))
            best = s->at[i];
    return best;
}
