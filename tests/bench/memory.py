#!/usr/bin/env python3
"""Memory against time, beside PyTorch's activation_memory_budget.

torch.compile steps at budgets 1, 0.8, ... 0, and a checkpoint for each block; after each of them gradc
within as many bytes as the peer's tensors took at their peak, and the least that gradc finds. Step
memory is what a step takes besides parameters and optimizer state.

    python3 tests/bench/memory.py [--gradc build/gradc] [--python PYTHON] [--threads 1] [--seconds 3]

PYTHON has torch and numpy (tests/bench/peers/requirements.txt). Results: text on stdout.
"""
import argparse
import json
import os
import platform
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MODEL = os.path.join(HERE, "models", "gpt-tiny.model")
MIB = 2.0 ** 20


def peer(a, model, how, budget=None):
    command = [a.python, os.path.join(HERE, "peers", "run.py"), model, "--peer", how, "--tensors",
               "--threads", str(a.threads), "--seconds", str(a.seconds)]
    if budget is not None:
        command += ["--budget", str(budget)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if done.returncode:
        sys.exit("%s: %s" % (" ".join(command), done.stderr[-800:]))
    return json.loads(done.stdout.splitlines()[-1])


def plan(a, *options):
    done = subprocess.run([a.gradc, "plan", MODEL, "--entry", "step", "--json", *options],
                          capture_output=True, text=True)
    return json.loads(done.stdout)[0] if done.returncode == 0 else None


def bench(a, *options):
    done = subprocess.run([a.gradc, "bench", MODEL, "--json", "--threads", str(a.threads), "--steps",
                           "30", *options], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--gradc", default="build/gradc")
    p.add_argument("--python", default=sys.executable)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seconds", type=float, default=3.0)
    a = p.parse_args()
    whole = plan(a)
    base = whole["base"]
    once = bench(a)["step_ms"]["median"]
    print("gpt-tiny, %d thread(s), %s, Python %s; without a budget gradc takes %.1f MiB and %.1f ms"
          % (a.threads, platform.machine(), platform.python_version(),
             (whole["peak"] - base) / MIB, once))
    print("%-24s %9s %9s %9s | %9s %9s %9s" % ("PyTorch", "MiB", "ms", "extra", "gradc MiB", "ms", "extra"))
    first = None
    cases = [("gpt-tiny", "torch-compile", x) for x in (1.0, 0.8, 0.6, 0.4, 0.2, 0.1, 0.0)]
    for model, how, budget in cases + [("gpt-tiny-ckpt", "torch-eager", None)]:
        row = peer(a, model, how, budget)
        ms, mib = row["median_ms"], row["tensor_peak_mb"]
        first = ms if first is None else first
        name = "compile, %g" % budget if budget is not None else "eager, checkpoints"
        bytes_ = base + int(mib * MIB)
        got = plan(a, "--budget", str(bytes_))
        ours = "not found"
        if got is not None:
            now, again = bench(a)["step_ms"]["median"], bench(a, "--budget", str(bytes_))
            ours = "%9.1f %9.1f %+8.1f%%" % ((again["arena_bytes"] - base) / MIB,
                                             again["step_ms"]["median"],
                                             100 * (again["step_ms"]["median"] / now - 1))
        print("%-24s %9.1f %9.1f %+8.1f%% | %s" % (name, mib, ms, 100 * (ms / first - 1), ours), flush=True)
    least = plan(a, "--budget", "min")
    again = bench(a, "--budget", "min")
    print("%-24s %9s %9s %9s | %9.1f %9.1f %+8.1f%%" % (
        "the least", "", "", "", (least["peak"] - base) / MIB, again["step_ms"]["median"],
        100 * (again["step_ms"]["median"] / once - 1)))


if __name__ == "__main__":
    main()
