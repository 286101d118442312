"""Time from the start of a process to the end of its first training step, cold, beside the peers.

    python first_step.py [ROW ...] [--rounds 3] [--threads 1] [--gradc build/gradc] [--python PYTHON]

gradc compiles the model and takes one step (`gradc run --step`); the peers start Python, import, compile, and take one step. No cache of compiled code is kept
between processes. Beside it: the time of `gradc build` and the size of its object. Medians of rounds
in turn, pinned to as many cores as there are threads.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import bench

ROWS = ["mlp-784-256-10", "gpt-tiny", "lenet", "gpt2-124m-b4-t64"]
PEERS = ["torch-eager", "torch-compile", "jax"]


def seconds(command, threads, folder):
    """Of the wall, with nothing that an earlier process may have left to read; None after a message."""
    cores = sorted(os.sched_getaffinity(0))[:threads]
    cold = {name: os.path.join(folder, "cache") for name in
            ("XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR")}
    shutil.rmtree(os.path.join(folder, "cache"), ignore_errors=True)
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, **cold),
                          preexec_fn=lambda: os.sched_setaffinity(0, cores))
    took = time.perf_counter() - begin
    if done.returncode:
        print(f"status {done.returncode}: {' '.join(command)}\n{done.stderr[-800:]}", file=sys.stderr)
        return None
    return took


def commands(args, row, folder):
    model, threads = bench.model_of(row), str(args.threads)
    yield "gradc", [args.gradc, "run", model, "--step", "--threads", threads, "-q", "--no-cache"]
    yield "build", [args.gradc, "build", model, "-q", "--no-cache", "-o", os.path.join(folder, "model.o")]
    for peer in args.peers:
        yield peer, [args.python, os.path.join(bench.PEERS, "run.py"), row, "--peer",
                     *bench.PEER_WORDS[peer], "--threads", threads, "--first"]


def measure(args, row, folder):
    took = {}
    for _ in range(args.rounds):
        for who, command in commands(args, row, folder):
            took.setdefault(who, []).append(seconds(command, args.threads, folder))
    return {who: statistics.median(t) if None not in t else None for who, t in took.items()}


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    a.add_argument("rows", nargs="*", metavar="ROW")
    a.add_argument("--rounds", type=int, default=3)
    a.add_argument("--threads", type=int, default=1)
    a.add_argument("--peers", nargs="*", default=PEERS, choices=list(bench.PEER_WORDS))
    a.add_argument("--gradc", default=os.path.join(bench.ROOT, "build", "gradc"))
    a.add_argument("--python", default=sys.executable, help="one that has torch and jax")
    args = a.parse_args()
    if set(args.rows) - set(bench.ROWS):
        a.error(f"no row {' '.join(sorted(set(args.rows) - set(bench.ROWS)))}")
    args.gradc = os.path.abspath(args.gradc)
    print(f"CPU: {bench.cpu()}; seconds, {args.threads} threads, medians of {args.rounds}")
    print(f"{'model':20} {'gradc':>8} {'build':>8} {'obj KiB':>8}" +
          "".join(f" {p.removeprefix('torch-'):>9} {'ratio':>6}" for p in args.peers))
    for row in args.rows or ROWS:
        with tempfile.TemporaryDirectory() as folder:
            took = measure(args, row, folder)
            path = os.path.join(folder, "model.o")
            size = os.path.getsize(path) / 1024 if os.path.exists(path) else None
        line = f"{row:20} {bench.show(took['gradc'], '%8.3f'):>8} {bench.show(took['build'], '%8.3f'):>8} " \
               f"{bench.show(size, '%8.0f'):>8}"
        for peer in args.peers:
            other, mine = took[peer], took["gradc"]
            line += f" {bench.show(other, '%9.2f'):>9} {bench.show(other and mine and other / mine, '%6.1f'):>6}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
