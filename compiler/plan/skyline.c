/* Packing along the skyline: the lowest run of sections gets, of the items that live
 * inside of it, the one that suits it best; if there is none, it is filled up to the
 * lower of its neighbours. For many items of mixed lives and sizes, where nothing is
 * nested and gaps are few.
 *
 * source: the best-fit heuristic of Burke, Kendall & Whitwell (2004), for items that
 * can't be moved sideways; then again with some of the choices at random. */
#include "../base/intern.h"
#include "pack.h"

typedef struct Skyline {
    const Pack *k;
    int64_t *floor;  /* by section; INT64_MAX where no item is left */
    int32_t *left;   /* by section: items that are not placed */
    int32_t *order;  /* items by start */
    int32_t *begin;  /* by section, and one more: the first in order that starts there or later */
    bool *placed;    /* by item */
    int64_t *offset; /* by item */
    int64_t work;
    bool by_size;  /* the largest first, not the one that lives longest */
    uint64_t seed; /* 0: nothing is at random */
} Skyline;

enum { MOST_ROUNDS = 64 };

/* ---- runs ------------------------------------------------------------------------------ */

typedef struct SkylineRun {
    int32_t from, to;
    int64_t left, right; /* floors beside it */
} SkylineRun;

static SkylineRun lowest_run(Skyline *s)
{
    int32_t n = s->k->n_sections, from = 0;
    for (int32_t i = 1; i < n; i++)
        from = s->floor[i] < s->floor[from] ? i : from;
    SkylineRun r = {.from = from, .to = from};
    while (r.to + 1 < n && s->floor[r.to + 1] == s->floor[from])
        r.to++;
    r.left = from > 0 ? s->floor[from - 1] : INT64_MAX;
    r.right = r.to + 1 < n ? s->floor[r.to + 1] : INT64_MAX;
    s->work -= n / 4 + r.to - r.from;
    return r;
}

/* An item beside a wall leaves one hole less, and none where it is as high as the wall;
 * of these the one that lives longest, or is largest. */
typedef struct Suits {
    int32_t walls;
    int64_t first, second;
} Suits;

static Suits suits(const Skyline *s, int32_t item, const SkylineRun *r)
{
    const PackItem *it = &s->k->item[item];
    int64_t top = s->floor[r->from] + it->size, life = it->to - it->from + 1;
    int32_t walls = (it->from == r->from) + (it->to == r->to);
    walls += (it->from == r->from && top == r->left) + (it->to == r->to && top == r->right);
    int64_t noise = 16 + (int64_t)(hash_mix(s->seed ^ (uint64_t)item) % 16) * (s->seed > 0);
    int64_t size = it->size < INT64_MAX / 32 ? it->size * noise : it->size;
    return s->by_size ? (Suits){walls, size, life} : (Suits){walls, life * noise, it->size};
}

static bool is_better(Suits a, Suits b)
{
    if (a.walls != b.walls)
        return a.walls > b.walls;
    return a.first != b.first ? a.first > b.first : a.second > b.second;
}

static int32_t choose_item(Skyline *s, const SkylineRun *r)
{
    int32_t best = -1;
    Suits most = {0};
    for (int32_t i = s->begin[r->from]; i < s->begin[r->to + 1]; i++) {
        int32_t item = s->order[i];
        const PackItem *it = &s->k->item[item];
        if (s->placed[item] || it->to > r->to)
            continue;
        Suits here = suits(s, item, r);
        if (best >= 0 && !is_better(here, most))
            continue;
        best = item;
        most = here;
    }
    s->work -= s->begin[r->to + 1] - s->begin[r->from];
    return best;
}

/* ---- packing ----------------------------------------------------------------------------- */

static int64_t put(Skyline *s, int32_t item)
{
    const PackItem *it = &s->k->item[item];
    int64_t at = s->floor[it->from];
    for (int32_t i = it->from; i <= it->to; i++)
        s->floor[i] = --s->left[i] > 0 ? at + pack_size(it, i) : INT64_MAX;
    s->offset[item] = at;
    s->placed[item] = true;
    return at + it->size;
}

static void clear(Skyline *s)
{
    const Pack *k = s->k;
    for (int32_t i = 0; i < k->n_sections; i++)
        s->left[i] = 0;
    for (int32_t i = 0; i < k->n; i++) {
        s->placed[i] = false;
        for (int32_t j = k->item[i].from; j <= k->item[i].to; j++)
            s->left[j]++;
    }
    for (int32_t i = 0; i < k->n_sections; i++)
        s->floor[i] = s->left[i] > 0 ? 0 : INT64_MAX;
}

/* The height; INT64_MAX where the work does not suffice. */
static int64_t pack_along(Skyline *s)
{
    int64_t height = 0;
    clear(s);
    for (int32_t n = 0; n < s->k->n;) {
        SkylineRun r = lowest_run(s);
        if (s->work < 0)
            return INT64_MAX;
        int32_t item = choose_item(s, &r);
        if (item >= 0) {
            int64_t top = put(s, item);
            height = top > height ? top : height;
            n++;
            continue;
        }
        int64_t to = r.left < r.right ? r.left : r.right;
        for (int32_t i = r.from; i <= r.to; i++)
            s->floor[i] = to;
    }
    return height;
}

static void sort_by_start(Skyline *s)
{
    const Pack *k = s->k;
    for (int32_t i = 0; i < k->n; i++)
        s->begin[k->item[i].from + 1]++;
    for (int32_t i = 0; i < k->n_sections; i++)
        s->begin[i + 1] += s->begin[i];
    int32_t *next = NEW_ARRAY(k->arena, int32_t, k->n_sections);
    for (int32_t i = 0; i < k->n; i++) {
        int32_t from = k->item[i].from;
        s->order[s->begin[from] + next[from]++] = i;
    }
}

void pack_skyline(Pack *k, int64_t work)
{
    if (k->height <= k->goal)
        return;
    ArenaMark mark = arena_mark(k->arena);
    Skyline s = {.k = k, .work = work};
    s.floor = NEW_ARRAY(k->arena, int64_t, k->n_sections);
    s.left = NEW_ARRAY(k->arena, int32_t, k->n_sections);
    s.order = NEW_ARRAY(k->arena, int32_t, k->n);
    s.begin = NEW_ARRAY(k->arena, int32_t, k->n_sections + 1);
    s.placed = NEW_ARRAY(k->arena, bool, k->n);
    s.offset = NEW_ARRAY(k->arena, int64_t, k->n);
    sort_by_start(&s);
    for (uint64_t i = 0; i < MOST_ROUNDS && s.work >= 0 && k->height > k->goal; i++) {
        s.by_size = i % 2 == 1;
        s.seed = i / 2 == 0 ? 0 : hash_mix(i / 2);
        int64_t height = pack_along(&s);
        for (int32_t j = 0; j < k->n && height < k->height; j++)
            k->item[j].offset = s.offset[j];
        k->height = height < k->height ? height : k->height;
    }
    arena_reset(k->arena, mark);
}
