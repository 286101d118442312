#!/usr/bin/env python3
"""Placement problems whose least height is known: rectangles that fill a larger one.

    python3 tests/bench/tilings.py FOLDER [GRID]

writes FOLDER/KIND-TILES-SEED.CAPACITY.csv for straight cuts, pinwheels (which no straight
line divides) and both, of 10 to 10,000 tiles. GRID is the number of instants
(default 1048576, of which few are used twice). With `coarse` there are four times the root
of the number of tiles: many tiles begin and end together, which makes them hard.
"""
import random
import sys


def cut(r, tile, pinwheel):
    x0, x1, y0, y1 = tile
    if pinwheel and x1 - x0 > 2 and y1 - y0 > 2:
        a = r.randint(x0 + 1, x1 - 2)
        b = r.randint(a + 1, x1 - 1)
        c = r.randint(y0 + 1, y1 - 2)
        d = r.randint(c + 1, y1 - 1)
        return [(x0, b, y0, c), (b, x1, y0, d), (a, x1, d, y1), (x0, a, c, y1), (a, b, c, d)]
    if x1 - x0 > 1 and (y1 - y0 < 2 or r.random() < 0.5):
        a = r.randint(x0 + 1, x1 - 1)
        return [(x0, a, y0, y1), (a, x1, y0, y1)]
    if y1 - y0 > 1:
        c = r.randint(y0 + 1, y1 - 1)
        return [(x0, x1, y0, c), (x0, x1, c, y1)]
    return [tile]


def area(tile):
    return (tile[1] - tile[0]) * (tile[3] - tile[2])


def tiling(kind, n, seed, width, height):
    """The larger of two tiles is cut, again and again."""
    r = random.Random("%s %d %d" % (kind, n, seed))
    share = {"straight": 0, "pinwheel": 1, "mixed": 0.4}[kind]
    tiles = [(0, width, 0, height)]
    for _ in range(20 * n):
        if len(tiles) >= n:
            break
        i, j = r.randrange(len(tiles)), r.randrange(len(tiles))
        i = i if area(tiles[i]) > area(tiles[j]) else j
        tiles[i:i + 1] = cut(r, tiles[i], r.random() < share)
    r.shuffle(tiles)
    return tiles


def main(folder, grid):
    for kind in "straight", "pinwheel", "mixed":
        for n in 10, 30, 100, 200, 300, 500, 1000, 3000, 10000:
            for seed in 1, 2:
                width = max(16, int(4 * n ** 0.5)) if grid == "coarse" else int(grid)
                height = min(64 * width, 1 << 20)
                name = "%s/%s-%05d-%d.%d.csv" % (folder, kind, n, seed, height)
                with open(name, "w") as f:
                    f.write("id,lower,upper,size\n")
                    for i, t in enumerate(tiling(kind, n, seed, width, height)):
                        f.write("b%d,%d,%d,%d\n" % (i, t[0], t[1], t[3] - t[2]))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else 1 << 20)
