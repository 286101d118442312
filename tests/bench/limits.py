"""How near gradc's steps are to what the machine can do, and what the reverse pass costs.

    python limits.py [ROW ...] [--threads 1 2] [--gradc build/gradc] [--python PYTHON]

A row's roofline is computed from what this run measures: the arithmetic of its contractions at the
best rate of a product of two 1024 x 1024 matrices (by numpy, PyTorch or gradc), and the bytes that no
step can avoid (inputs read once, parameters and optimizer state read and written) at the bandwidth of
the level of memory that holds them. `peak`: its arithmetic in percent of what multiply-adds in
registers alone reach; `want`: the best peer's share on another machine, where its library knows the
processor, times how far ahead of it a row is to be. The reverse pass is the time of gradients,
without an update, over that of a forward pass. With --widths: that ratio over widths of a layer,
that is, over numbers of parameters.
"""
import argparse
import math
import os
import statistics
import sys
import tempfile

import bench

MIB = 2.0 ** 20
TYPE_BYTES = {"u8": 1, "bool": 1, "f16": 2, "bf16": 2, "i32": 4, "f32": 4, "i64": 8, "f64": 8}
# Percent of the FMA peak that the best peer reached with one and with two threads on an Intel Xeon
# (Emerald Rapids, AVX-512).
PEER_SHARES = {
    "mlp-784-500-10": (68, 56), "mlp-784-256-10": (37, 19), "gpt-tiny": (50, 43),
    "gpt2-124m-b4-t64": (58, 50), "gpt2-124m-b4-t256": (66, 67), "lenet": (14, 11), "resnet8": (44, 33),
    "conv-fashion": (41, 35), "mobilenetv2-b1-all": (5, 2), "mobilenetv2-b1-sparse": (3, 1),
    "mobilenetv2-b8-all": (14, 6), "mobilenetv2-b8-sparse": (10, 4), "rnn-1000": (35, 17),
    "attention-b4-t1024": (36, 34), "attention-b1-t4096": (46, 44)}
SQUARE = """model square {
    input a : f32[1024, 1024]
    input b : f32[1024, 1024]
    loss mean(a @ b)
}
"""
WIDTHS = (64, 128, 256, 512, 1024, 2048)
WIDE = os.path.join(bench.HERE, "models", "mlp-784-256-10.model")


def sgemm(args, threads):
    """Best GFLOP/s of a product on so many cores: by whom."""
    got = bench.command([args.python, os.path.join(bench.PEERS, "harness.py"), str(threads)], threads, 60)
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "square.model")
        with open(model, "w") as f:
            f.write(SQUARE)
        mine = bench.command([args.gradc, "bench", model, "--json", "--threads", str(threads), "--steps",
                              "200", "--entry", "eval", "--profile"], threads, args.limit)
    if mine is None:
        sys.exit(1)
    return dict(got or {}, gradc=max(s["flops"] / s["ns"] for s in mine["profile"]["steps"]))


def plan(args, model):
    return bench.command([args.gradc, "plan", model, "--entry", "step,grad", "--json", "--threads-max", "1"],
                         1, args.limit)


def measure(args, model, threads, steps, *words):
    return bench.command([args.gradc, "bench", model, "--entry", "eval,grad,step", "--json", "--threads",
                          str(threads), "--steps", str(steps), "--warmup", str(max(1, steps // 10)), *words],
                         threads, args.limit)


def middle(got, name):
    return got[name]["median"] if name in got else None


def bandwidth(roof, size):
    """GB/s of what holds so many bytes."""
    rates = roof["bytes_per_ns"]
    held = [int(limit) for limit in rates if limit != "memory" and size <= int(limit)]
    return rates[str(min(held))] if held else rates["memory"]


def input_bytes(args, model):
    graph = bench.command([args.gradc, "show", model, "--forward", "--json"], 1, args.limit)
    return sum(math.prod(n["attrs"]["shape"]) * TYPE_BYTES[n["attrs"]["dtype"]]
               for n in graph["nodes"] if n["op"] == "input")


def unavoidable(args, model):
    """Bytes that a step reads or writes whatever is done."""
    role = plan(args, model)[0]["by_role"]   # of what lasts every plan has as much
    return 2 * (role["parameters"] + role["optimizer"]) + input_bytes(args, model)


def measure_row(args, row, threads, rate):
    model = bench.model_of(row)
    steps = bench.STEPS.get(row, 200)
    got = measure(args, model, threads, steps, "--profile")
    if got is None:
        return
    profile = got["profile"]
    flops = sum(s["flops"] for s in profile["steps"] if "contract" in s["step"])
    moved = unavoidable(args, model)
    speed = bandwidth(profile["roof"], moved)
    roof = flops / rate / 1e6 + moved / speed / 1e6
    step, grad, forward = (middle(got, name) for name in ("step_ms", "grad_ms", "forward_ms"))
    step = step or grad
    share = 100 * flops / step / 1e6 / profile["roof"]["flops_per_ns"] / threads
    want = PEER_SHARES[row][threads - 1] * bench.GOALS[row][threads - 1] if threads <= 2 else None
    print(f"{row:22} {threads:3} {flops / 1e9:9.3f} {moved / MIB:9.2f} {speed:6.1f} {roof:9.3f} {step:9.3f} "
          f"{step / roof:6.2f} {share:5.0f} {bench.show(want, '%5.0f'):>5} {forward:9.3f} {grad:9.3f} {grad / forward:7.2f}", flush=True)
    return step / roof


def widths(args, threads):
    print(f"{'width':>6} {'parameters':>11} {'forward ms':>11} {'grad ms':>9} {'ratio':>6}")
    for width in WIDTHS:
        got = measure(args, WIDE, threads, 50, "-D", f"hidden={width}")
        forward, grad = middle(got, "forward_ms"), middle(got, "grad_ms")
        print(f"{width:6} {784 * width + width + width * 10 + 10:11,} {forward:11.3f} {grad:9.3f} "
              f"{grad / forward:6.2f}", flush=True)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    a.add_argument("rows", nargs="*", metavar="ROW")
    a.add_argument("--threads", type=int, nargs="+", default=[1])
    a.add_argument("--gradc", default=os.path.join(bench.ROOT, "build", "gradc"))
    a.add_argument("--python", default=sys.executable, help="one that has numpy")
    a.add_argument("--limit", type=float, default=600, help="seconds for one measurement")
    a.add_argument("--widths", action="store_true")
    args = a.parse_args()
    if set(args.rows) - set(bench.ROWS):
        a.error(f"no row {' '.join(sorted(set(args.rows) - set(bench.ROWS)))}")
    args.gradc = os.path.abspath(args.gradc)
    print(f"CPU: {bench.cpu()}")
    for threads in args.threads:
        if args.widths:
            widths(args, threads)
            continue
        rates = sgemm(args, threads)
        print(f"sgemm, {threads} threads, GFLOP/s:", ", ".join(f"{who} {r:.0f}" for who, r in rates.items()))
        print(f"{'model':22} {'thr':>3} {'GFLOP':>9} {'MiB':>9} {'GB/s':>6} {'roof ms':>9} {'step ms':>9} "
              f"{'times':>6} {'peak':>5} {'want':>5} {'forward':>9} {'grad ms':>9} {'over':>7}")
        found = [measure_row(args, row, threads, max(rates.values())) for row in args.rows or bench.ROWS]
        found = [x for x in found if x is not None]
        if found:
            print(f"geometric mean of step / roofline: {statistics.geometric_mean(found):.2f}")


if __name__ == "__main__":
    main()
