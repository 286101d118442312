/* Rectangles that fill a larger one without a hole: packings whose height is known. */
#ifndef GRADC_TESTS_TILINGS_H
#define GRADC_TESTS_TILINGS_H

#include <stdlib.h>

#include "unit/pack_make.h"

typedef enum TilingKind { TILING_STRAIGHT, TILING_PINWHEEL, TILING_MIXED } TilingKind;

typedef struct Tile {
    int32_t from, to; /* instants [from, to) */
    int32_t low, high;
} Tile;

/* n of [from, to). */
static inline int32_t between(PackMake *m, int32_t from, int32_t to)
{
    return from + draw(m, to - from);
}

/* Two by a straight line, or five in a pinwheel, that no straight line divides; 0 if the
 * tile is too small. */
static inline int32_t cut_tile(PackMake *m, Tile t, TilingKind kind, Tile out[5])
{
    int32_t width = t.to - t.from, height = t.high - t.low;
    bool pinwheel = kind == TILING_PINWHEEL || (kind == TILING_MIXED && draw(m, 5) < 2);
    if (pinwheel && width > 2 && height > 2) {
        int32_t a = between(m, t.from + 1, t.to - 1), b = between(m, a + 1, t.to);
        int32_t c = between(m, t.low + 1, t.high - 1), d = between(m, c + 1, t.high);
        out[0] = (Tile){t.from, b, t.low, c};
        out[1] = (Tile){b, t.to, t.low, d};
        out[2] = (Tile){a, t.to, d, t.high};
        out[3] = (Tile){t.from, a, c, t.high};
        out[4] = (Tile){a, b, c, d};
        return 5;
    }
    bool upright = width > 1 && (height < 2 || draw(m, 2) == 0);
    out[0] = out[1] = t;
    if (upright)
        out[0].to = out[1].from = between(m, t.from + 1, t.to);
    else if (height > 1)
        out[0].high = out[1].low = between(m, t.low + 1, t.high);
    return upright || height > 1 ? 2 : 0;
}

static inline int compare_instants(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static inline int32_t instant_index(const int32_t *sorted, int32_t n, int32_t t)
{
    int32_t low = 0, high = n;
    while (low + 1 < high) {
        int32_t middle = (low + high) / 2;
        if (sorted[middle] <= t)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Instants that nothing begins or ends at are left out. */
static inline void add_tiles(PackMake *m, const Tile *tile, int32_t n)
{
    int32_t *time = NEW_ARRAY(m->arena, int32_t, 2 * n), times = 0;
    for (int32_t i = 0; i < n; i++) {
        time[2 * i] = tile[i].from;
        time[2 * i + 1] = tile[i].to;
    }
    qsort(time, (size_t)(2 * n), sizeof *time, compare_instants);
    for (int32_t i = 0; i < 2 * n; i++)
        if (i == 0 || time[i] != time[times - 1])
            time[times++] = time[i];
    for (int32_t i = 0; i < n; i++)
        add_item(m, instant_index(time, times, tile[i].from),
                 instant_index(time, times, tile[i].to) - 1, tile[i].high - tile[i].low);
}

/* About `tiles` tiles of a grid of so many instants and 64 times as many bytes (at most
 * 2^20): the larger of two is cut again and again. Returns the height. */
static inline int64_t make_tiling(PackMake *m, TilingKind kind, int32_t tiles, int32_t grid)
{
    VEC(Tile) t = {0};
    int32_t height = grid < 1 << 14 ? 64 * grid : 1 << 20;
    Tile all = {0, grid, 0, height};
    vec_push(m->arena, &t, all);
    for (int32_t tries = 0; t.n < tiles && tries < 20 * tiles; tries++) {
        int32_t x = draw(m, t.n), y = draw(m, t.n);
        Tile *a = &t.at[x], *b = &t.at[y];
        double first = (double)(a->to - a->from) * (a->high - a->low);
        double second = (double)(b->to - b->from) * (b->high - b->low);
        int32_t chosen = first > second ? x : y;
        Tile out[5];
        int32_t n = cut_tile(m, t.at[chosen], kind, out);
        for (int32_t i = 0; i < n; i++) {
            if (i == 0)
                t.at[chosen] = out[i];
            else
                vec_push(m->arena, &t, out[i]);
        }
    }
    add_tiles(m, t.at, t.n);
    return height;
}

#endif
