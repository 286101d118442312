#!/usr/bin/env python3
"""The largest batch of a network that trains within so much memory and one extra forward pass.

    python3 tests/bench/max_batch.py [--gradc build/gradc] [--gib 16] [NETWORK ...]

By bisection over the networks of planner_graphs.py, whose sizes are those of the published graphs
(activations and their gradients; no parameters) and whose costs are flops. The extra cost may be
that of all layers once. Printed beside the largest batch that runs without computing anything again.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import planner_graphs

NETWORKS = ("vgg19", "unet", "fcn8", "segnet", "resnet50", "mobilenet")


def plan(gradc, path, budget):
    done = subprocess.run([gradc, "plan", "--problem", path, "--budget", str(budget), "--json"],
                          capture_output=True, text=True)
    if done.returncode not in (0, 4):
        sys.exit(done.stderr)
    return json.loads(done.stdout) if done.returncode == 0 else None


def fits(a, name, batch, path, extra):
    """Within the memory, and at most `extra` of one forward pass more than once."""
    make, _ = planner_graphs.NETS[name]
    problem = make(batch)
    with open(path, "w") as f:
        json.dump(problem, f)
    report = plan(a.gradc, path, a.gib << 30)
    if report is None:
        return False
    forward = sum(n["cost"] for n in problem["nodes"] if not is_gradient(n))
    return report["cost_plan"] - report["cost_base"] <= extra * forward


def is_gradient(node):
    return node["name"].startswith("d_")


def largest(a, name, path, extra):
    low, high = 0, 16
    while fits(a, name, high, path, extra):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if fits(a, name, middle, path, extra):
            low = middle
        else:
            high = middle
    return low


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--gradc", default="build/gradc")
    parser.add_argument("--gib", type=int, default=16)
    a = parser.parse_args()
    print(f"{'network':<10} {'once':>6} {'one extra forward':>18} {'seconds':>8}")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "graph.json")
        for name in a.networks:
            once = largest(a, name, path, 0)
            start = time.monotonic()
            more = largest(a, name, path, 1)
            print(f"{name:<10} {once:>6} {more:>18} {time.monotonic() - start:>8.1f}", flush=True)


if __name__ == "__main__":
    main()
