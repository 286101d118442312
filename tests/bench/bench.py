"""Times gradc beside PyTorch and JAX: one step of training, in the same run.

    python bench.py                         every row that takes under a second, 1 thread
    python bench.py lenet gpt-tiny --threads 1 2 --peers torch-eager torch-compile jax
    python bench.py --all --rounds 3        every row
    python bench.py --check                 losses only: the same weights and data as PyTorch

Every measurement is a process of its own, pinned to as many cores as it has threads; rounds
interleave gradc and its peers, and the median of the rounds' medians counts. A ratio above 1
means that gradc is faster; the last ones are of the best peer, beside the ratio that is wanted. The
column sgemm is what numpy's 1024^3 product gave meanwhile, in GFLOP/s: of two rows with different
ones the machine was disturbed in one. Lines of JSON go to --out (build/bench/results.jsonl).
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

# Libraries of the peers choose their kernels for this machine, whatever the environment says.
for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "MKL_ENABLE_INSTRUCTIONS"):
    os.environ.pop(name, None)
# What keeps each of them, and numpy of the yardstick, to AVX2, for the ratios of processors without AVX-512.
AVX2 = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell", "XLA_FLAGS": "--xla_cpu_max_isa=AVX2"}

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PEERS = os.path.join(HERE, "peers")

# The model of a row is models/ROW.model.
ROWS = ["mlp-784-500-10", "mlp-784-256-10", "lenet", "resnet8", "conv-fashion", "gpt-tiny",
        "gpt2-124m-b4-t64", "gpt2-124m-b4-t256", "mobilenetv2-b1-all", "mobilenetv2-b1-sparse",
        "mobilenetv2-b8-all", "mobilenetv2-b8-sparse", "rnn-1000", "attention-b4-t1024",
        "attention-b1-t4096"]
# Nets of other kinds, and what is no product: no goal is of them.
MORE = ["vgg", "densenet", "generator", "columns", "running", "textcnn", "gpt-short"]
# Timed steps where one takes long; else 200.
STEPS = {"gpt2-124m-b4-t64": 6, "gpt2-124m-b4-t256": 4, "attention-b4-t1024": 8,
         "attention-b1-t4096": 4, "resnet8": 30, "conv-fashion": 30, "gpt-tiny": 30, "rnn-1000": 30,
         "vgg": 15, "densenet": 8, "generator": 30, "columns": 30, "running": 30,
         "textcnn": 60}
LONG = [r for r in ROWS if r.startswith(("gpt2", "attention"))]
PICTURES = ("lenet", "resnet8", "conv-fashion", "mobilenetv2", "vgg", "densenet", "generator")  # rows that channels-last changes
# How far ahead of the best peer a row is to be, with one thread and with two.
GOALS = {"mlp-784-500-10": (1.2, 1.3), "mlp-784-256-10": (1.6, 2.0), "gpt-tiny": (1.5, 1.5),
         "gpt2-124m-b4-t64": (1.25, 1.3), "gpt2-124m-b4-t256": (1.2, 1.15), "lenet": (2.5, 2.5),
         "resnet8": (1.6, 1.8), "conv-fashion": (1.6, 1.7), "mobilenetv2-b1-all": (4, 5),
         "mobilenetv2-b1-sparse": (5, 6), "mobilenetv2-b8-all": (2.5, 4),
         "mobilenetv2-b8-sparse": (3.5, 5), "rnn-1000": (1.6, 2.0), "attention-b4-t1024": (1.6, 1.6),
         "attention-b1-t4096": (1.5, 1.5)}
# What runs a row: the peer of peers/run.py, and what else is said to it.
PEER_WORDS = {"torch-eager": ["torch-eager"], "torch-compile": ["torch-compile"], "jax": ["jax"],
              "torch-channels-last": ["torch-eager", "--channels-last"]}


def model_of(row):
    return os.path.join(HERE, "models", row + ".model")


def cpu():
    """The processor's name and its vector units."""
    name, flags = platform.processor() or platform.machine(), set()
    with open("/proc/cpuinfo") as f:
        for line in f:
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                name = value.strip()
            if key.strip() in ("flags", "Features"):
                flags = set(value.split())
    units = [u for u in ("avx2", "fma", "avx512f", "avx512_bf16", "amx_tile", "asimd", "sve") if u in flags]
    return f"{name} ({' '.join(units)})"


def command(args, threads, limit):
    """What a pinned process prints, or its last line, as JSON; None after a message."""
    cores = sorted(os.sched_getaffinity(0))[:threads]
    try:
        done = subprocess.run(args, capture_output=True, text=True, timeout=limit,
                              preexec_fn=lambda: os.sched_setaffinity(0, cores))
    except subprocess.TimeoutExpired:
        print(f"took longer than {limit} s: {' '.join(args)}", file=sys.stderr)
        return None
    if done.returncode or not done.stdout.strip():
        print(f"status {done.returncode}: {' '.join(args)}\n{done.stderr[-1500:]}", file=sys.stderr)
        return None
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        return json.loads(done.stdout.splitlines()[-1])


def number(value, key="median"):
    """step_ms is a number, or an object with median, min and p90."""
    return value.get(key) if isinstance(value, dict) else value


def time_gradc(args, row, threads):
    steps = STEPS.get(row, 200)
    got = command([args.gradc, "bench", model_of(row), "--threads", str(threads), "--json",
                   "--steps", str(steps), "--warmup", str(max(1, steps // 10)),
                   "--no-cache", "--jobs", str(threads),
                   *(["--denormals", "flush"] if args.flush else []),
                   *(["--cpu", "x86-64-v3"] if args.isa == "avx2" else [])], threads, args.limit)
    if got is None:
        return None
    step = got.get("step_ms", got.get("grad_ms"))   # without a train block: the gradients
    if step is None:
        print(f"{row}: gradc bench has timed neither step nor grad", file=sys.stderr)
        return None
    return dict(got, model=row, peer="gradc", threads=threads, median_ms=number(step),
                min_ms=number(step, "min"), p90_ms=number(step, "p90"),
                rss_peak_mb=round(got["peak_rss_bytes"] / 2 ** 20, 1))


def time_peer(args, row, threads, peer):
    return command([args.python, os.path.join(PEERS, "run.py"), row, "--peer", *PEER_WORDS[peer],
                    "--threads", str(threads), "--seconds", str(args.seconds),
                    *(["--flush"] if args.flush else [])], threads, args.limit)


def runs(row, who):
    return who != "torch-channels-last" or row.startswith(PICTURES)


def measure(args):
    """All rounds of all rows: (row, threads, who) -> measurements."""
    found = {}
    os.makedirs(os.path.dirname(args.out), exist_ok=True)
    with open(args.out, "a") as out:
        for n in range(args.rounds):
            for row in args.rows:
                for threads in args.threads:
                    for who in filter(lambda who: runs(row, who), args.who):
                        begin = time.time()
                        got = time_gradc(args, row, threads) if who == "gradc" else \
                            time_peer(args, row, threads, who)
                        if got is None:
                            continue
                        found.setdefault((row, threads, who), []).append(got)
                        out.write(json.dumps(dict(got, round=n)) + "\n")
                        out.flush()
                        if args.verbose:
                            print(f"round {n + 1} {row} {threads} {who}: {got['median_ms']} ms "
                                  f"({time.time() - begin:.0f} s)", file=sys.stderr)
    return found


def middle(measurements, key):
    values = [m[key] for m in measurements or [] if m.get(key) is not None]
    return statistics.median(values) if values else None


def show(value, form):
    return form % value if value is not None else "-"


def sgemm(found, row, threads):
    """GFLOP/s of numpy's product beside a row's measurements: the median."""
    rates = [m[key] for (r, t, _), some in found.items() for m in some
             for key in ("gemm_gflops_before", "gemm_gflops_after") if (r, t) == (row, threads) and key in m]
    return statistics.median(rates) if rates else None


def best_ratio(args, found, row, threads):
    """The best peer's time over gradc's; None: one of them is missing."""
    mine = middle(found.get((row, threads, "gradc")), "median_ms")
    peers = [middle(found.get((row, threads, p)), "median_ms") for p in args.who if p != "gradc"]
    peers = [ms for ms in peers if ms is not None]
    return min(peers) / mine if peers and mine else None


def goal(row, threads):
    return GOALS[row][threads - 1] if row in GOALS and threads <= 2 else None


def line_of(args, found, row, threads):
    mine = found.get((row, threads, "gradc"))
    step, size = middle(mine, "median_ms"), middle(mine, "object_bytes")
    arena = middle(mine, "arena_bytes")
    line = f"{row:22} {threads:3} {show(step, '%9.3f'):>9} {show(middle(mine, 'min_ms'), '%9.3f'):>9} " \
           f"{show(middle(mine, 'p90_ms'), '%9.3f'):>9} {show(arena and arena / 2 ** 20, '%9.2f'):>9} " \
           f"{show(size and size / 1024, '%7.0f'):>7} {show(middle(mine, 'compile_ms'), '%8.0f'):>8} " \
           f"{show(sgemm(found, row, threads), '%6.0f'):>6}"
    for peer in args.who[1:]:
        other = middle(found.get((row, threads, peer)), "median_ms")
        ratio = other / step if other and step else None
        line += f" {show(other, '%13.3f'):>13} {show(ratio, '%6.2f'):>6}"
    return line + f" {show(best_ratio(args, found, row, threads), '%6.2f'):>6}" \
                  f" {show(goal(row, threads), '%5.2f'):>5}"


def summary(args, found, threads):
    """How far ahead of each row's best peer, taken together."""
    ratios = {row: best_ratio(args, found, row, threads) for row in args.rows}
    ratios = {row: r for row, r in ratios.items() if r is not None}
    if not ratios:
        return f"{threads} threads: nothing to compare with"
    short = [row for row, r in ratios.items() if goal(row, threads) and r < goal(row, threads)]
    return (f"{threads} thread{'s' * (threads > 1)}: {len(ratios)} rows, geometric mean of best peer / gradc "
            f"{statistics.geometric_mean(ratios.values()):.2f}, the least {min(ratios.values()):.2f} "
            f"({min(ratios, key=ratios.get)}); short of what is wanted: {', '.join(short) or 'none'}")


def lacking(args, found):
    """What was asked for and gave no time (it failed, or took too long): the best may be among these."""
    gone = [f"{who} of {row} at {threads}" for row in args.rows for threads in args.threads for who in args.who
            if middle(found.get((row, threads, who)), "median_ms") is None]
    return f"not measured (--verbose tells why): {', '.join(gone)}" if gone else None


def table(args, found):
    """The text that is printed: a line a row and thread count."""
    versions = {w: m[0].get("version") for (_, _, w), m in found.items()}
    kept = ", kept to AVX2" if args.isa == "avx2" else ""
    print(f"CPU: {cpu()}{kept}, {' and '.join(map(str, args.threads))} threads of "
          f"{len(os.sched_getaffinity(0))} cores")
    print("gradc " + subprocess.run([args.gradc, "--version"], capture_output=True,
                                    text=True).stdout.strip().removeprefix("gradc "))
    for peer in args.who[1:]:
        print(f"{peer} {versions.get(peer, '-')}")
    print(f"{args.rounds} rounds, interleaved; ms of one training step (median, min, p90); "
          "ratio: peer / gradc" + ("; denormals are flushed" if args.flush else ""))
    head = f"{'model':22} {'thr':>3} {'gradc':>9} {'min':>9} {'p90':>9} {'arena MiB':>9} {'obj KiB':>7} " \
           f"{'compile':>8} {'sgemm':>6}"
    print(head + "".join(f" {p.removeprefix('torch-'):>13} {'ratio':>6}" for p in args.who[1:]) +
          f" {'best':>6} {'goal':>5}")
    for row in args.rows:
        for threads in args.threads:
            print(line_of(args, found, row, threads))
    for threads in args.threads:
        print(summary(args, found, threads))
    if lacking(args, found):
        print(lacking(args, found))


def check(args):
    """The first loss of every row from the same weights and data as PyTorch's."""
    passed = failed = skipped = 0
    for row in args.rows:
        if row.startswith("attention"):
            print(f"skipped: {row}: the peers have no loss there")
            skipped += 1
            continue
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([args.python, os.path.join(PEERS, "run.py"), row, "--peer", "torch-eager",
                            "--export", folder], check=True)
            inputs = []
            for name in sorted(os.listdir(folder)):
                path = os.path.join(folder, name)
                inputs += ["--weights", path] if name == "weights.safetensors" else \
                    ["--in", f"{name.removesuffix('.npy')}={path}"]
            mine = command([args.gradc, "run", model_of(row), *inputs, "--json"], 1, args.limit)
        other = command([args.python, os.path.join(PEERS, "run.py"), row, "--peer", "torch-eager",
                         "--first"], 1, args.limit)
        good = False
        if mine and other:
            a, b = mine["loss"], other["loss_first"]
            good = abs(a - b) <= 1e-5 * abs(b)
            print(f"{row}: loss {a}, PyTorch {b}")
        passed, failed = passed + good, failed + (not good)
        if not good:
            print(f"FAILED: {row}")
    print(f"passed={passed} failed={failed} skipped={skipped}")
    return 1 if failed else 0


def arguments():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    a.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(ROWS + MORE))
    a.add_argument("--all", action="store_true", help="the rows that take long, too")
    a.add_argument("--threads", type=int, nargs="+", default=[1])
    a.add_argument("--peers", nargs="*", default=["torch-eager"],
                   choices=list(PEER_WORDS))
    a.add_argument("--rounds", type=int, default=3)
    a.add_argument("--seconds", type=float, default=2.0, help="of timed steps of a peer")
    a.add_argument("--limit", type=float, default=400, help="seconds for one measurement")
    a.add_argument("--gradc", default=os.path.join(ROOT, "build", "gradc"))
    a.add_argument("--python", default=sys.executable, help="one that has torch and jax")
    a.add_argument("--out", default=os.path.join(ROOT, "build", "bench", "results.jsonl"))
    a.add_argument("--flush", action="store_true",
                   help="denormals are zeros: gradc bench --denormals flush, torch.set_flush_denormal(True);\n"
                        "JAX flushes them anyway (of rnn-1000 most of the time goes into them elsewhere)")
    a.add_argument("--isa", choices=["native", "avx2"], default="native",
                   help="avx2: gradc --cpu x86-64-v3, and peers kept to it, on a processor that has more")
    a.add_argument("--check", action="store_true")
    a.add_argument("--verbose", action="store_true")
    args = a.parse_args()
    unknown = set(args.rows) - set(ROWS + MORE)
    if unknown:
        a.error(f"no row {' '.join(sorted(unknown))}")
    args.rows = args.rows or [r for r in ROWS if args.all or r not in LONG]
    args.gradc = os.path.abspath(args.gradc)
    args.who = ["gradc", *args.peers]
    if args.isa == "avx2":
        os.environ.update(AVX2)
    return args


def main():
    args = arguments()
    if args.check:
        return check(args)
    table(args, measure(args))
    return 0


if __name__ == "__main__":
    sys.exit(main())
