"""Bytes of a training step beside those of PyTorch and JAX.

    python step_memory.py [ROW ...] [--gradc build/gradc] [--python PYTHON] [--peers ...]

Step memory is what a step takes besides parameters and optimizer state. gradc's is planned (the block
is that large), for one lane and for eight, and under `guard loss`, where parameters are updated while
the reverse pass goes on. `floor`: gradients, which the other guard holds until all of them are
known to be finite, and outputs. PyTorch's is the peak of its tensors by its profiler, XLA's the
scratch that its compiler says. No contraction is computed again in any of them; `light` is gradc's under
`--budget light`, where elementwise values are, as torch.compile's partitioner has it, and the percent of
time that this is predicted to take.
"""
import argparse
import os
import statistics
import sys

import bench

MIB = 2.0 ** 20


def plan(args, row, threads, *words):
    """The longest entry of a row: the step, or its gradients."""
    model = bench.model_of(row)
    for entry in ("step", "grad"):
        got = bench.command([args.gradc, "plan", model, "--entry", entry, "--json", "--threads-max",
                             str(threads), *words], 1, args.limit)
        for p in got or []:
            if p["entry"] == entry:
                return p
    sys.exit(f"step_memory.py: {row} has no step and no gradients")


def mine(args, row):
    """MiB with one lane, with eight, under guard loss with one, under a light budget; the floor; and
    the percent of time of that budget."""
    one, eight = plan(args, row, 1), plan(args, row, 8)
    light = plan(args, row, 1, "--budget", "light")
    role = one["by_role"]
    kept = role["parameters"] + role["optimizer"]
    early = one.get("guard_loss_peak") or one["peak"]
    floor = role["outputs"] + (role["parameters"] if one["entry"] == "step" else 0)
    more = round(100 * (light["cost_ns"] / light["cost_once_ns"] - 1), 1) + 0.0  # no -0.0
    return [(x - kept) / MIB for x in (one["peak"], eight["peak"], early, light["peak"])] + [floor / MIB, more]


def peer(args, row, who):
    words = ["--tensors"] if who != "jax" else []
    got = bench.command([args.python, os.path.join(bench.PEERS, "run.py"), row, "--peer",
                         *bench.PEER_WORDS[who], "--threads", "1", "--steps", "1", *words], 1, args.limit)
    return got and got.get("tensor_peak_mb", got.get("xla_temp_mb"))


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    a.add_argument("rows", nargs="*", metavar="ROW")
    a.add_argument("--gradc", default=os.path.join(bench.ROOT, "build", "gradc"))
    a.add_argument("--python", default=sys.executable, help="one that has torch and jax")
    a.add_argument("--peers", nargs="*", default=["torch-eager", "torch-compile", "jax"],
                   choices=list(bench.PEER_WORDS))
    a.add_argument("--limit", type=float, default=900, help="seconds for one measurement")
    args = a.parse_args()
    if set(args.rows) - set(bench.ROWS):
        a.error(f"no row {' '.join(sorted(set(args.rows) - set(bench.ROWS)))}")
    args.gradc = os.path.abspath(args.gradc)
    print("MiB of a step besides parameters and optimizer state; ratios: gradc, one lane / best peer")
    print(f"{'model':22} {'gradc':>8} {'8 lanes':>8} {'guard loss':>10} {'light':>8} {'time':>6} {'floor':>8}" +
          "".join(f" {p.removeprefix('torch-'):>9}" for p in args.peers) +
          f" {'ratio':>6} {'guard loss':>10} {'light':>6}")
    ratios, lights = [], []
    for row in args.rows or bench.ROWS:
        one, eight, early, light, floor, more = mine(args, row)
        others = [peer(args, row, who) for who in args.peers]
        known = [x for x in others if x]
        best = min(known) if known else None
        if best:
            ratios.append(one / best)
            lights.append(light / best)
        print(f"{row:22} {one:8.2f} {eight:8.2f} {early:10.2f} {light:8.2f} {more:+5.1f}% {floor:8.2f}" +
              "".join(f" {bench.show(x, '%9.2f'):>9}" for x in others) +
              f" {bench.show(best and one / best, '%6.2f'):>6} {bench.show(best and early / best, '%10.2f'):>10}"
              f" {bench.show(best and light / best, '%6.2f'):>6}", flush=True)
    if ratios:
        print(f"geometric mean {statistics.geometric_mean(ratios):.2f}, the most {max(ratios):.2f}; "
              f"light: {statistics.geometric_mean(lights):.2f}, {max(lights):.2f}")


if __name__ == "__main__":
    main()
