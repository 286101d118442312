/* Packing: rectangles with fixed times and free offsets, as low as can be.
 * Known to the files of this folder alone; knows nothing of plans.
 *
 * Time is cut into sections, numbered from 0; an item is alive from section `from`
 * to section `to`, inclusive, and takes bytes [offset, offset + size). An item whose
 * tail is freed early (a smaller value has taken over its storage) has parts: from
 * section part.from on it takes part.size bytes only, at the same offset. Sizes fall
 * from part to part, so that of two items the tallest common moment is the
 * first one. */
#ifndef GRADC_PLAN_PACK_H
#define GRADC_PLAN_PACK_H

#include "../base/arena.h"

typedef struct PackPart {
    int32_t from;
    int64_t size;
} PackPart;

typedef struct PackItem {
    int32_t from, to;
    int32_t n_parts;
    const PackPart *part; /* ascending */
    int64_t size;         /* in section `from` */
    int64_t offset;       /* the result */
} PackItem;

typedef struct Pack {
    Arena *arena; /* scratch */
    int32_t n, n_sections;
    PackItem *item;
    int64_t bound; /* most bytes alive in a section: no packing is lower */
    int64_t least; /* no packing is lower, as far as is known: the bound, or what a search proved */
    int64_t goal;  /* low enough: nothing is tried any more */
    int64_t height; /* of the offsets in item[]; INT64_MAX before the first */
    int64_t looks; /* limit of pack_quick() and of pack_greedy() for each; 0: a tenth of a second */
} Pack;

int64_t pack_size(const PackItem *it, int32_t section);

/* Bytes alive, by section; one more element than there are sections. In the arena. */
int64_t *pack_live(const Pack *k);

/* Sets bound from the items, and least and goal to it. */
void pack_bound(Pack *k);

/* Tries the orders that are exact for most nets, until one reaches the goal, and
 * keeps the lowest.
 * gives: item[].offset, height. Deterministic, as the others. */
void pack_quick(Pack *k);

/* Tries more orders, if the height is above the goal. */
void pack_greedy(Pack *k);

/* Packs again, those first with whom most bytes are alive: each at its wish (by item;
 * -1: none) if nothing lies there, else into a gap. Kept if it is lower. */
void pack_wishes(Pack *k, const int64_t *wish);

/* Lowers the height, if it is above the goal, by a search over the fullest sections
 * alone, as far as `work` goes in each of a few attempts. Good for large nets. */
void pack_core(Pack *k, int64_t work);

/* Lowers the height, if it is above the goal, by packing again with what ended too
 * high in front, as far as `work` elementary operations go. Good for large nets. */
void pack_repair(Pack *k, int64_t work);

/* Lowers the height, if it is above the goal, as long as `work` is enough for the next step down:
 * what ends too high goes where the least is in its way. Good for many items that live for all
 * kinds of times; not for those with parts. */
void pack_eject(Pack *k, int64_t work);

typedef enum PackAnswer { PACK_FOUND, PACK_IMPOSSIBLE, PACK_GAVE_UP } PackAnswer;

/* Fills the lowest sections first, if the height is above the goal, as far as `work`
 * goes. Good for many items that fit together. */
void pack_skyline(Pack *k, int64_t work);

/* Looks for a packing of at most `target`, as far as `work` goes, and keeps it; sets
 * least if there is none. Good for small and hard ones. */
PackAnswer pack_search(Pack *k, int64_t target, int64_t work);

/* All of the above, the quick ways first, until the height is the goal, or proved to be the
 * least, or the work is done. Heights closer than `grain` are as good as equal. */
void pack_lowest(Pack *k, int64_t work, int64_t grain);

#endif
