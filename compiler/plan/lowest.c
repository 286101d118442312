/* All ways to pack, one after the other.
 *
 * Most nets are packed without a hole by the quick ones; what is small and hard is for
 * the search, what is large for orders and their repair. Where the goal is not reached,
 * heights between it and the lowest found are asked for, one by one. */
#include "pack.h"

/* So many questions may stay open, and so many be asked. */
enum { MOST_OPEN = 6, MOST_ASKED = 24 };

/* Between a height that is not reached and one that is. */
static void bisect(Pack *k, int64_t work, int64_t grain)
{
    int64_t low = k->least > k->goal ? k->least - 1 : k->goal;
    int32_t open = 0;
    for (int32_t i = 0; i < MOST_ASKED && open < MOST_OPEN && k->height - low > grain; i++) {
        int64_t target = low + (k->height - low) / 2;
        PackAnswer a = pack_search(k, target, work / MOST_OPEN);
        open += a == PACK_GAVE_UP;
        if (a == PACK_IMPOSSIBLE)
            low = k->least - 1;
        else if (a == PACK_GAVE_UP)
            low = target;
    }
}

/* The search is complete: what is impossible for it is so. */
static bool is_done(const Pack *k)
{
    return k->height <= k->goal || k->height == k->least;
}

void pack_lowest(Pack *k, int64_t work, int64_t grain)
{
    pack_quick(k);
    pack_core(k, work / 64);
    pack_greedy(k);
    pack_skyline(k, work);
    PackAnswer a = PACK_FOUND;
    if (!is_done(k))
        a = pack_search(k, k->goal, work / 16);
    pack_repair(k, work);
    if (!is_done(k) && a == PACK_GAVE_UP)
        pack_search(k, k->goal, work / 2);
    if (!is_done(k))
        bisect(k, work / 2, grain);
}
