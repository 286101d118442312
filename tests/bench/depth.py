#!/usr/bin/env python3
"""The least activation bytes of nets of 8 to 512 equal layers within 33 % of extra time.

    python3 tests/bench/depth.py [GRADC] > tests/bench/results/depth.txt

Counted is what the entry `grad` of residual.model takes besides pinned storage, the block less the
base: activations, and the gradients, which are 2 % of it where nothing runs again.
Times are those that are predicted; no step may run more than twice, which is one extra forward pass
at the most. For each depth budgets are bisected; the last line has the exponent of bytes over
layers, fitted in logarithms. Of wide layers a forward pass is a third of the time; of narrow ones
it is 39 %, so that a part of each layer has to be kept, and bytes grow as layers in the end.
"""
import math
import os
import sys
import time

import planned

GRADC = sys.argv[1] if len(sys.argv) > 1 else "build/gradc"
MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "models", "residual.model")
DEPTHS = [8, 16, 32, 64, 128, 256, 512]
SHAPES = [("wide", 256, 65536), ("narrow", 16, 8192)]
MOST_EXTRA = 0.33
ROUNDS = 10


def plan(shape, layers, budget=None):
    """The plan of `grad` as JSON, or None where the budget is refused."""
    defines = {"layers": layers, "width": shape[1], "batch": shape[2]}
    return planned.plan(GRADC, MODEL, "grad", defines, budget, ("--threads-max", "1"))


def is_enough(p, once):
    extra = p["cost_ns"] / once - 1
    return extra <= MOST_EXTRA and max(s["run"] for s in p["steps"]) <= 1


def least(shape, layers):
    """(bytes with every step once, least bytes, extra time of these, seconds a plan)"""
    all_once = plan(shape, layers)
    once, base = all_once["cost_ns"], all_once["base"]
    low, high, best = base, all_once["peak"], all_once
    began = time.time()
    for _ in range(ROUNDS):
        budget = int(base + math.sqrt(max(low - base, 4096) * (high - base)))
        p = plan(shape, layers, budget)
        if p is not None and is_enough(p, once):
            best, high = p, min(budget, p["peak"])
        else:
            low = budget
    seconds = (time.time() - began) / ROUNDS
    return all_once["peak"] - base, best["peak"] - base, best["cost_ns"] / once - 1, seconds


def exponent(points):
    """Slope of log bytes over log layers, by least squares."""
    x = [math.log(l) for l, _ in points]
    y = [math.log(b) for _, b in points]
    mx, my = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mx) * (b - my) for a, b in zip(x, y)) / sum((a - mx) ** 2 for a in x)


def show(shape):
    points = []
    print(f"{shape[0]}: width {shape[1]}, batch {shape[2]}")
    print(f"{'layers':>6} {'all once':>15} {'least':>13} {'part':>6} {'extra':>7}")
    for layers in DEPTHS:
        all_once, fewest, extra, seconds = least(shape, layers)
        points.append((layers, fewest))
        print(f"{layers:6d} {all_once:15,d} {fewest:13,d} {100 * fewest / all_once:5.1f}% "
              f"{100 * extra:6.2f}%", flush=True)
        print(f"{layers} layers: {seconds:.1f} s a plan", file=sys.stderr)
    print(f"exponent: {exponent(points):.3f}")


for shape in SHAPES:
    show(shape)
