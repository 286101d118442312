/* Search for a packing of at most a target height.
 *
 * A branch asks one section which item lies on its floor: each candidate in turn, or
 * none of them, which wastes bytes and is possible only where the target leaves some.
 * Asked is a section whose floor is lower than its neighbours', so that nothing is
 * left below what is put there, and of these one with few answers that has often been
 * the reason of a failure. Where the items that are left fall apart in time, the parts
 * are searched one by one, and parts that have failed are remembered: the same floors
 * arise from many orders of what lies below them.
 *
 * How long a search takes is a matter of luck in its first choices: it is begun again
 * and again, in other orders, with small limits that grow.
 *
 * source: sections with bounds, lowest offsets first, and the splitting in time are
 * MiniMalloc's (Moffitt & Feldman, ASPLOS 2023); it branches on the next item of all by
 * offset. Few answers and much blame first: Boussemart et al., Boosting systematic search
 * by weighting constraints (2004). Restarts: Gomes, Selman & Kautz (1998). */
#include "../base/intern.h"
#include "floors.h"

enum { FAILURES_LOG2 = 16, MANY_ITEMS = 3000, MOST_ITEMS = 5000, MOST_DEPTH = 5000 };

typedef struct Search {
    Floors f;
    Arena *lists;     /* candidates, as deep as the tree */
    uint64_t *failed; /* parts that have no packing, by hash */
    int32_t depth;
} Search;

static PackAnswer search_parts(Search *se, int32_t from, int32_t to);

/* ---- which section ----------------------------------------------------------------- */

/* A run of sections with one floor, lower than its neighbours: what lies on this
 * floor lies inside, with nothing below it. Returns its end; *basin: whether it is one. */
static int32_t run_of(const Floors *f, int32_t start, int32_t from, int32_t to, bool *basin)
{
    int64_t floor = f->floor[start];
    int32_t end = start;
    while (end < to && f->floor[end + 1] == floor)
        end++;
    *basin =
        (start == from || f->floor[start - 1] > floor) && (end == to || f->floor[end + 1] > floor);
    return end;
}

/* Of all sections in basins, one with few answers that has often been too full; the
 * single answer, where there is one, is no choice at all and comes first. */
static int32_t choose(const Floors *f, int32_t from, int32_t to)
{
    enum { SCALE = 1 << 20, CALM = 100 };
    int32_t best = -1;
    int64_t least = INT64_MAX;
    bool basin;
    for (int32_t start = from, end; start <= to; start = end + 1) {
        end = run_of(f, start, from, to, &basin);
        for (int32_t s = start; s <= end && basin; s++) {
            int64_t answers = f->candidates[s] + (floors_slack(f, s) > 0);
            int64_t choice = answers == 1 ? 0 : answers * SCALE / (CALM + f->blame[s]);
            if (choice >= least)
                continue;
            best = s;
            least = choice;
        }
    }
    return best;
}

/* ---- which answers ------------------------------------------------------------------- */

static bool covers(const FloorItem *it, int32_t s)
{
    return it->from <= s && s <= it->to;
}

/* The lowest that item i of section s can lie if not where it could: on something
 * that is not in s, for in s nothing is lower. */
static int64_t lifted(Floors *f, const FloorItem *it, int32_t s)
{
    int64_t low = INT64_MAX;
    for (int32_t j = f->head; j >= 0 && f->item[j].from <= it->to; j = f->item[j].next) {
        const FloorItem *other = &f->item[j];
        f->work--;
        if (other->to < it->from || covers(other, s))
            continue;
        int64_t top = other->low + other->least;
        top = top > it->low ? top : it->low + f->unit;
        low = top < low ? top : low;
    }
    return low;
}

/* The lowest floor of section s if nothing lies on the present one; INT64_MAX if
 * something must. */
static int64_t next_floor(Floors *f, int32_t s)
{
    int64_t next = INT64_MAX;
    for (int32_t i = f->head; i >= 0 && f->item[i].from <= s; i = f->item[i].next) {
        const FloorItem *it = &f->item[i];
        if (!covers(it, s))
            continue;
        int64_t low = it->low == f->floor[s] ? lifted(f, it, s) : it->low;
        next = low < next ? low : next;
    }
    return next;
}

/* Candidates of s by falling keys; of equal items only the first. */
static int32_t list_candidates(const Floors *f, int32_t s, int32_t *list)
{
    int32_t n = 0, class = -1;
    for (int32_t i = f->head; i >= 0 && f->item[i].from <= s; i = f->item[i].next) {
        const FloorItem *it = &f->item[i];
        if (!covers(it, s) || it->low != f->floor[s] || it->class == class)
            continue;
        class = it->class; /* equal ones are neighbours */
        int32_t at = n++;
        for (; at > 0 && f->item[list[at - 1]].key < it->key; at--)
            list[at] = list[at - 1];
        list[at] = i;
    }
    return n;
}

/* ---- the tree -------------------------------------------------------------------------- */

static uint64_t hash_part(const Floors *f, int32_t from, int32_t to)
{
    uint64_t h = HASH_START + (uint64_t)f->target;
    for (int32_t s = from; s <= to; s++)
        h = hash_mix(h + (uint64_t)f->floor[s]) ^ f->starting[s];
    return hash_mix(h) | 1; /* 0 is an empty place of the memory */
}

static uint64_t *memory_of(const Search *se, uint64_t hash)
{
    return &se->failed[hash >> (64 - FAILURES_LOG2)];
}

/* One child: `item` on the floor of s, or (-1) nothing. */
static PackAnswer try_answer(Search *se, int32_t from, int32_t to, int32_t s, int32_t item)
{
    Floors *f = &se->f;
    int32_t mark = f->undo.n;
    bool possible;
    if (item >= 0) {
        possible = floors_place(f, item);
    } else {
        int64_t next = next_floor(f, s);
        possible = next <= f->target && floors_raise(f, s, next);
    }
    se->depth++;
    PackAnswer a = possible ? search_parts(se, from, to) : PACK_IMPOSSIBLE;
    se->depth--;
    if (a != PACK_FOUND)
        floors_undo(f, mark);
    return a;
}

static bool hangs_together(const Floors *f, int32_t from, int32_t to)
{
    while (from < to && f->crossing[from] > 0)
        from++;
    return from == to && f->open[to] > 0;
}

/* Places what has no choice. Returns the section to ask, -1 if there is no packing, and
 * -2 if [from, to] has fallen apart. */
static int32_t place_forced(Search *se, int32_t from, int32_t to)
{
    Floors *f = &se->f;
    while (f->work >= 0) {
        f->work -= (to - from) + 10;
        int32_t s = choose(f, from, to), item;
        if (f->candidates[s] != 1 || floors_slack(f, s) > 0)
            return s;
        list_candidates(f, s, &item);
        if (!floors_place(f, item))
            return -1;
        if (!hangs_together(f, from, to))
            return -2;
    }
    return -1;
}

/* Sections [from, to] hang together. */
static PackAnswer search_part(Search *se, int32_t from, int32_t to)
{
    Floors *f = &se->f;
    if (se->depth > MOST_DEPTH)
        return PACK_GAVE_UP;
    int32_t s = place_forced(se, from, to);
    if (f->work < 0)
        return PACK_GAVE_UP;
    if (s < 0)
        return s == -1 ? PACK_IMPOSSIBLE : search_parts(se, from, to);
    f->work -= to - from;
    uint64_t hash = hash_part(f, from, to);
    if (*memory_of(se, hash) == hash)
        return PACK_IMPOSSIBLE;
    ArenaMark mark = arena_mark(se->lists);
    int32_t *list = NEW_ARRAY(se->lists, int32_t, f->candidates[s]);
    int32_t n = list_candidates(f, s, list);
    PackAnswer a = PACK_IMPOSSIBLE;
    for (int32_t i = 0; i < n && a == PACK_IMPOSSIBLE; i++)
        a = try_answer(se, from, to, s, list[i]);
    if (a == PACK_IMPOSSIBLE && floors_slack(f, s) > 0)
        a = try_answer(se, from, to, s, -1);
    if (a == PACK_IMPOSSIBLE)
        *memory_of(se, hash) = hash;
    arena_reset(se->lists, mark);
    return a;
}

/* Searches the parts into which the items of [from, to] fall, one by one. */
static PackAnswer search_parts(Search *se, int32_t from, int32_t to)
{
    const Floors *f = &se->f;
    int32_t mark = f->undo.n;
    PackAnswer a = PACK_FOUND;
    for (int32_t s = from; s <= to && a == PACK_FOUND; s++) {
        if (f->open[s] == 0)
            continue;
        int32_t end = s;
        while (f->crossing[end] > 0)
            end++;
        a = search_part(se, s, end);
        s = end;
    }
    if (a != PACK_FOUND)
        floors_undo(&se->f, mark);
    return a;
}

/* ---- attempts ---------------------------------------------------------------------------- */

enum { N_KEYS = 4 };

/* Logarithm to base 2 times 1024, near enough. */
static int64_t logarithm(int64_t n)
{
    int64_t log = 0, from = 1;
    while (from <= n / 2) {
        from *= 2;
        log += 1024;
    }
    return log + (n - from) * 1024 / from;
}

/* Candidates are tried by life, by size, by both, or at random; each a little at
 * random, and more so after the first attempts. */
static void set_keys(Floors *f, int32_t attempt)
{
    int32_t kind = attempt % N_KEYS;
    uint64_t noise = attempt < N_KEYS - 1 ? 16 : 4096;
    for (int32_t i = 0; i < f->n; i++) {
        FloorItem *it = &f->item[i];
        int64_t life = logarithm(it->to - it->from + 1), size = logarithm(it->size / f->unit);
        it->key = kind == 0 ? life : kind == 1 ? size : kind == 2 ? life + size : 0;
        it->key += (int64_t)(hash_mix((uint64_t)attempt << 32 ^ (uint64_t)it->pack) % noise);
    }
}

static void keep(const Floors *f, Pack *k)
{
    k->height = 0;
    for (int32_t i = 0; i < f->n; i++) {
        const FloorItem *it = &f->item[i];
        k->item[it->pack].offset = it->low;
        k->height = it->low + it->size > k->height ? it->low + it->size : k->height;
    }
}

/* One descent; its offsets are kept if it gets below the target. */
static PackAnswer descend(Search *se, Pack *k, int64_t target, int64_t work)
{
    se->f.target = target;
    se->f.work = work;
    PackAnswer a = search_parts(se, 0, k->n_sections - 1);
    if (a == PACK_FOUND)
        keep(&se->f, k);
    floors_undo(&se->f, 0);
    return a;
}

/* What failed long ago, below other choices, says little. */
static void forgive(Floors *f)
{
    for (int32_t s = 0; s < f->n_sections; s++)
        f->blame[s] /= 2;
}

/* A limit gives a few descents without a wrong turn, and doubles after this many. */
enum { ATTEMPTS_OF_A_LIMIT = 128 };

static int64_t first_limit(const Pack *k)
{
    return 2000 * (int64_t)k->n + 4 * (int64_t)k->n * k->n;
}

static PackAnswer reach(Search *se, Pack *k, int64_t target, int64_t work)
{
    int64_t limit = first_limit(k);
    PackAnswer a = PACK_GAVE_UP;
    for (int32_t i = 0; work > 0 && a == PACK_GAVE_UP; i++) {
        int64_t now = limit < work ? limit : work;
        set_keys(&se->f, i);
        forgive(&se->f);
        a = descend(se, k, target, now);
        work -= now - se->f.work;
        if (i % ATTEMPTS_OF_A_LIMIT == ATTEMPTS_OF_A_LIMIT - 1)
            limit *= 2;
    }
    return a;
}

PackAnswer pack_search(Pack *k, int64_t target, int64_t work)
{
    if (target < k->least)
        return PACK_IMPOSSIBLE;
    if (work <= 0 || k->n > MOST_ITEMS || (k->n > MANY_ITEMS && work < first_limit(k)))
        return PACK_GAVE_UP;
    ArenaMark mark = arena_mark(k->arena);
    Arena lists = {0};
    Search se = {.lists = &lists};
    floors_init(&se.f, k, k->arena);
    se.failed = NEW_ARRAY(k->arena, uint64_t, 1 << FAILURES_LOG2);
    PackAnswer a = reach(&se, k, target, work);
    if (a == PACK_IMPOSSIBLE && k->least <= target)
        k->least = (target / se.f.unit + 1) * se.f.unit; /* heights are multiples of it */
    arena_free(&lists);
    arena_reset(k->arena, mark);
    return a;
}
