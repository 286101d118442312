#!/usr/bin/env python3
"""A recurrence of 1,000 steps: bytes of a step against its time, beside PyTorch and JAX.

PyTorch and JAX's scan, whole and with a checkpoint for each 32 steps, and gradc within budgets, of
which those of the peers' bytes are some; each round runs all of them once. Of times there are the
median of the rounds' medians and the shortest step of all rounds, which on a busy machine is what
can be compared. Then gradc alone over 10,000 steps, within budgets of a root of the steps and
of their logarithm. Bytes are what a step takes besides parameters and the inputs' copy: tensors of
PyTorch at their peak, XLA's scratch, gradc's block from the first byte that is planned on.

    python3 tests/bench/recurrence.py [--gradc build/gradc] [--python PYTHON] [--rounds 3]

PYTHON has torch, jax and numpy (tests/bench/peers/requirements.txt). Results: text on stdout. Exit
status 1: gradc is behind a peer that takes as many bytes or more.
"""
import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MODEL = os.path.join(HERE, "models", "rnn-inner.model")
MIB = 2.0 ** 20
ROW = 16 * 128 * 4  # what a step carries
PEERS = [("JAX scan", "rnn-1000", "jax"), ("JAX scan, chunks of 32", "rnn-1000-ckpt", "jax"),
         ("PyTorch", "rnn-1000", "torch-eager"),
         ("PyTorch, chunks of 32", "rnn-1000-ckpt", "torch-eager")]
# MiB; those of the peers are among them
SWEEP = [23.6, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.3, 1.6, 1.2, 1.0, 0.8, 0.69, 0.6]


def run(command, limit=900):
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    if done.returncode:
        sys.exit("%s: %s" % (" ".join(command), done.stderr[-800:]))
    return done.stdout


def peer(a, model, how):
    row = json.loads(run([a.python, os.path.join(HERE, "peers", "run.py"), model, "--peer", how,
                          "--tensors", "--threads", "1", "--seconds", str(a.seconds)]).splitlines()[-1])
    return row["xla_temp_mb" if how == "jax" else "tensor_peak_mb"], row["median_ms"], row["min_ms"]


def plan(a, steps, budget=None):
    options = ["--budget", str(budget)] if budget is not None else []
    return json.loads(run([a.gradc, "plan", MODEL, "-D", "steps=%d" % steps, "--entry", "step",
                           "--json"] + options))[0]


def time(a, steps, budget, count):
    options = ["--budget", str(budget)] if budget is not None else []
    got = json.loads(run([a.gradc, "bench", MODEL, "-D", "steps=%d" % steps, "--json", "--threads",
                          "1", "--steps", str(count), "--warmup", "3"] + options))["step_ms"]
    return got["median"], got["min"]


def gradc(a, steps, budget, count):
    """The same figures of gradc; budget: bytes of a step, None or "min"."""
    if isinstance(budget, int):
        budget += plan(a, steps)["base"]
    p = plan(a, steps, budget)
    return ((p["peak"] - p["base"]) / MIB, *time(a, steps, budget, count))


def measure(a, cases):
    """Rounds that run all cases in turn: {name: (MiB, median ms, least ms)}."""
    found = {}
    for _ in range(a.rounds):
        for name, case in cases:
            found.setdefault(name, []).append(case())
    return {name: (rows[0][0], statistics.median(r[1] for r in rows), min(r[2] for r in rows))
            for name, rows in found.items()}


def table(title, found, whole):
    print("%-28s %9s %9s %9s %8s" % (title, "MiB", "median ms", "least ms", "time"))
    for name, (mib, ms, least) in found.items():
        print("%-28s %9.2f %9.1f %9.1f %7.2fx" % (name, mib, ms, least, least / found[whole(name)][2]),
              flush=True)


def behind(found, names):
    """Peers that no plan of gradc is as small as and as fast as."""
    ours = [found[n] for n in found if n not in names]
    return [n for n in names if n in found and
            not any(mib <= found[n][0] and ms <= found[n][2] for mib, _, ms in ours)]


def thousand(a):
    names = [name for name, _, _ in PEERS]
    cases = [(name, lambda m=model, h=how: peer(a, m, h)) for name, model, how in PEERS]
    cases += [("gradc", lambda: gradc(a, 1000, None, 20))]
    cases += [("gradc within %.1f MiB" % mib, lambda b=int(mib * MIB): gradc(a, 1000, b, 20))
              for mib in SWEEP]
    cases += [("gradc, the least", lambda: gradc(a, 1000, "min", 20))]
    found = measure(a, cases)
    table("1,000 steps", found, lambda name: name.split(",")[0].split(" within")[0])
    return behind(found, names)


def ten_thousand(a):
    n = 10000
    bounds = [("2 sqrt(n) + 25 carries", int((2 * math.sqrt(n) + 25) * ROW)),
              ("6.1 log2(n) + 4 carries", int((6.1 * math.log2(n) + 4) * ROW))]
    cases = [("gradc", lambda: gradc(a, n, None, 3))]
    cases += [(name, lambda b=budget: gradc(a, n, b, 3)) for name, budget in bounds]
    table("10,000 steps", measure(a, cases), lambda name: "gradc")


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--gradc", default="build/gradc")
    p.add_argument("--python", default=sys.executable)
    p.add_argument("--seconds", type=float, default=2.0)
    p.add_argument("--rounds", type=int, default=3)
    a = p.parse_args()
    print("width 128, batch 16, one core of %s, Python %s, %d rounds"
          % (platform.machine(), platform.python_version(), a.rounds))
    slow = thousand(a)
    ten_thousand(a)
    for name in slow:
        print("gradc is behind: " + name)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
