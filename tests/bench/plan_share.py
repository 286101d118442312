#!/usr/bin/env python3
"""What planning for a budget adds to a build, of every example and bench model.

    python3 tests/bench/plan_share.py [GRADC] > tests/bench/results/plan-share.txt

Planning is what `gradc plan` takes more with a budget than without, the rest what `gradc build` takes
without one: seconds of the processor, the least of three runs. Budgets are 50 % of what is not
pinned, which many refuse, and the least that is found. The goal is at most 50 ms, or
20 % of the rest; lines above it end in `over`, and then the exit status is 1.
"""
import glob
import os
import resource
import subprocess
import sys
import tempfile

GRADC = sys.argv[1] if len(sys.argv) > 1 else "build/gradc"
HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = glob.glob(os.path.join(HERE, "..", "..", "examples", "*.model"))
MODELS += glob.glob(os.path.join(HERE, "models", "*.model"))
MOST_SECONDS, MOST_SHARE = 0.050, 0.20
RUNS = 3


def run(*words):
    """(seconds of the processor, exit status)"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([GRADC, *words], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 4):
        sys.exit(f"{' '.join(words)}: {done.stderr}")
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return seconds, done.returncode


def least(*words):
    runs = [run(*words) for _ in range(RUNS)]
    return min(r[0] for r in runs), runs[0][1]


def show(model, where):
    rest, _ = least("build", model, "-o", where, "-q")
    alone, _ = least("plan", model)
    is_over = False
    for budget in ("50%", "min"):
        seconds, status = least("plan", model, "--budget", budget)
        planning = max(seconds - alone, 0)
        over = planning > max(MOST_SECONDS, MOST_SHARE * rest)
        is_over = is_over or over
        print(f"{os.path.basename(model)[:-6]:20} {budget:>4} {'refused' if status else 'met':>8} "
              f"{1000 * planning:8.0f} ms {1000 * rest:8.0f} ms {100 * planning / rest:6.1f}%"
              + (" over" if over else ""), flush=True)
    return is_over


print(f"{'model':20} {'budget':>4} {'':>8} {'planning':>11} {'the rest':>11} {'share':>7}")
with tempfile.TemporaryDirectory() as folder:
    over = [show(m, os.path.join(folder, "m.o")) for m in sorted(MODELS, key=os.path.basename)]
sys.exit(any(over))
