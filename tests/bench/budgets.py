#!/usr/bin/env python3
"""Byte budgets beside storing everything: peaks, bits, and time against what was predicted.

For every model an object of the step is built without a budget, and one for each of so many
budgets from the least to what storing everything takes. All are loaded into this process, and
their calls alternate: the overhead is the median of the ratios of neighbouring calls, in time of
this thread on one lane, so that other work on the machine matters little. The measured peak is
the highest byte of a block full of a pattern that some calls have written, up to an alignment unit.

    python3 tests/bench/budgets.py [--gradc build/gradc] [--cost time|measured] [--points 20]
                                   [--pairs 15] [MODEL ...]

A model is a name of the list below. Peaks and bits are asserted, and that more bytes are not
predicted to be slower; times are printed, and with --pairs 0 not measured.
"""
import argparse
import ctypes
import json
import mmap
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

MODELS = {
    "chargpt": "examples/chargpt.model",
    "fashion": "examples/fashion.model",
    "resnet8": "examples/resnet8.model",
    "gpt2-small": "examples/gpt2.model -D layers=4 -D heads=4 -D width=128 -D vocab=2000 -D ctx=128"
                  " -D positions=128 -D batch=4",
    "lstm": "tests/run/recurrent.model -D steps=200 -D batch=16 -D inputs=64 -D width=128",
    "unet": "tests/bench/models/unet.model -D batch=4 -D size=64 -D width=16",
    "gpt2-124m": "examples/gpt2.model -D batch=4 -D ctx=256",
    "gpt2-guard-loss": "examples/gpt2.model -D batch=4 -D ctx=256",
    "gpt2-chunks-guard-loss": "examples/gpt2.model -D batch=4 -D ctx=256 --chunk 12000000",
}
# In shares of the activations that are there at the peak without a budget.
SHARES = {"gpt2-124m": [0.65, 0.8], "gpt2-guard-loss": [0.5],
          "gpt2-chunks-guard-loss": [0.25, 0.5]}
BLOCK_ALIGN, PATTERN = 64, 0xA5
HUGE_PAGE = 1 << 21  # all blocks begin at one, so that none has faster memory by chance


class Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int32), ("role", ctypes.c_int32),
                ("rank", ctypes.c_int32), ("reserved", ctypes.c_int32),
                ("shape", ctypes.c_int64 * 8), ("elems", ctypes.c_int64),
                ("bytes", ctypes.c_int64), ("offset", ctypes.c_int64), ("of", ctypes.c_int64),
                ("lo", ctypes.c_int64), ("hi", ctypes.c_int64)]


ENTRY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


class Options(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("abi", ctypes.c_uint32),
                ("threads", ctypes.c_int32), ("seed", ctypes.c_uint64),
                ("parallel_for", ctypes.c_void_p), ("context", ctypes.c_void_p)]


class Model(ctypes.Structure):
    _fields_ = [("abi", ctypes.c_uint32), ("struct_size", ctypes.c_uint32),
                ("name", ctypes.c_char_p), ("version", ctypes.c_char_p),
                ("hash", ctypes.c_char_p), ("target", ctypes.c_char_p),
                ("arena_bytes", ctypes.c_int64), ("arena_align", ctypes.c_int64),
                ("batch_rows", ctypes.c_int64), ("accumulate", ctypes.c_int64),
                ("threads_max", ctypes.c_int32), ("n_tensors", ctypes.c_int32),
                ("n_inputs", ctypes.c_int32), ("n_outputs", ctypes.c_int32),
                ("tensors", ctypes.POINTER(Tensor)), ("inputs", ctypes.POINTER(Tensor)),
                ("outputs", ctypes.POINTER(Tensor)),
                ("init", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t,
                                          ctypes.c_void_p, ctypes.c_void_p)),
                ("step", ENTRY), ("grad", ENTRY), ("eval", ENTRY),
                ("read", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int32,
                                          ctypes.c_void_p, ctypes.c_size_t))]


def input_bytes(tensor, draw):
    """Numbers for an input: floats between -1 and 1, integers in their range."""
    kinds = {0: ctypes.c_float, 1: ctypes.c_double, 4: ctypes.c_int32, 5: ctypes.c_int64,
             6: ctypes.c_uint8, 7: ctypes.c_uint8}
    data = (kinds[tensor.dtype] * tensor.elems)()
    for i in range(tensor.elems):
        if tensor.dtype <= 1:
            data[i] = draw.uniform(-1, 1)
        else:
            data[i] = draw.randrange(tensor.lo, tensor.hi) if tensor.hi > tensor.lo else 0
    return data


class Step:
    """An object in this process, with a block that is full of a pattern at first."""

    loaded = 0  # a library of the same name would be the one that is there

    def __init__(self, path, name, json_path):
        Step.loaded += 1
        library = f"{path[:-2]}{Step.loaded}.so"
        subprocess.run(["cc", "-shared", "-o", library, path], check=True)
        self.library = ctypes.CDLL(library)
        self.model = Model.in_dll(self.library, name + "_model")
        with open(json_path) as f:
            self.plan = next(p for p in json.load(f) if p["entry"] == "step")
        m = self.model
        self.room = mmap.mmap(-1, m.arena_bytes + 2 * HUGE_PAGE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.room))
        self.block = (start + HUGE_PAGE - 1) // HUGE_PAGE * HUGE_PAGE
        self.n = m.arena_bytes + HUGE_PAGE
        self.room.madvise(mmap.MADV_HUGEPAGE)
        ctypes.memset(self.block, PATTERN, self.n)
        draw = random.Random(7)
        self.kept = [input_bytes(m.inputs[i], draw) for i in range(m.n_inputs)]
        self.given = (ctypes.c_int64 * (1 + max(1, m.n_inputs)))(
            0, *[ctypes.addressof(k) for k in self.kept])
        self.results = (ctypes.c_int64 * (1 + max(1, m.n_outputs)))()
        options = Options(ctypes.sizeof(Options), m.abi, 1, 3, None, None)
        self.handle = ctypes.c_void_p()
        status = m.init(self.block, m.arena_bytes, ctypes.byref(options), ctypes.byref(self.handle))
        assert status == 0, f"init of {path}: status {status}"

    def call(self):
        """One step, in ns of this thread."""
        start = time.clock_gettime_ns(time.CLOCK_THREAD_CPUTIME_ID)
        status = self.model.step(self.handle, ctypes.addressof(self.given),
                                 ctypes.addressof(self.results))
        took = time.clock_gettime_ns(time.CLOCK_THREAD_CPUTIME_ID) - start
        assert status == 0, f"step: status {status}"
        return took

    def written(self):
        """Bytes up to the highest that is no longer the pattern, in whole units."""
        end, piece = self.n, 1 << 24
        while end > 0:
            start = max(0, end - piece)
            text = ctypes.string_at(self.block + start, end - start).rstrip(bytes([PATTERN]))
            end = start + len(text)
            if text:
                break
        return (end + BLOCK_ALIGN - 1) // BLOCK_ALIGN * BLOCK_ALIGN

    def state(self):
        """Every tensor that lives between calls: parameters, moments (which hold the bits of the
        gradients), counters."""
        out = []
        for i in range(self.model.n_tensors):
            t = self.model.tensors[i]
            data = ctypes.create_string_buffer(max(1, t.bytes))
            if self.model.read(self.handle, i, data, t.bytes) == 0:
                out.append((t.name, data.raw))
        return out


def build(gradc, words, name, to, options):
    command = [gradc, "build", "-q", *words, "--entry", "step", "--threads-max", "1", "-o", to + ".o",
               "--emit", f"json={to}.json", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(" ".join(command) + "\n" + done.stderr)
    return Step(to + ".o", name, to + ".json")


def predicted(step):
    p = step.plan
    return 100 * (p["cost_ns"] / p["cost_once_ns"] - 1) if "budget" in p else 0.0


def least_of(gradc, words, to, options):
    """The plan of the least budget: without an object."""
    done = subprocess.run([gradc, "plan", *words, "--entry", "step", "--threads-max", "1",
                           "--budget", "min", "--json", *options], capture_output=True, text=True,
                          check=True)
    return max(p["peak"] for p in json.loads(done.stdout))


def compare(whole, some, pairs):
    """The median of the ratios of calls side by side, in turns; the first pair does not count. Of
    short steps some calls in a row are one, of 20 ms together."""
    if pairs == 0:
        return float("nan")
    ratios = []
    calls = max(1, round(20e6 / max(1, whole.call())))
    for i in range(-1, pairs):
        first, second = (whole, some) if i % 2 else (some, whole)
        a, b = sum(first.call() for _ in range(calls)), sum(second.call() for _ in range(calls))
        if i >= 0:
            ratios.append(b / a if first is whole else a / b)
    return 100 * (statistics.median(ratios) - 1)


def ranks(values):
    order = sorted(values)
    return [statistics.mean(i for i, x in enumerate(order) if x == v) for v in values]


def correlation(x, y):
    """Spearman's: that of the ranks, those of equals being their mean."""
    a, b = ranks(x), ranks(y)
    if len(set(a)) < 2 or len(set(b)) < 2:
        return float("nan")
    return statistics.correlation(a, b)


def with_guard_loss(path, folder):
    """A copy of the model whose parameters are updated as soon as their gradients are there."""
    with open(path) as f:
        text = f.read()
    assert "    optimizer " in text, path
    copy = os.path.join(folder, os.path.basename(path))
    with open(copy, "w") as f:
        f.write(text.replace("    optimizer ", "    guard loss\n    optimizer ", 1))
    return copy


def run_model(args, label, folder):
    words = MODELS[label].split()
    if label.endswith("guard-loss"):
        words[0] = with_guard_loss(words[0], folder)
    name = os.path.basename(words[0]).removesuffix(".model")
    options = ["--cost", args.cost]
    if args.cost == "measured":
        options += ["--threads", "1", "--cost-file", os.path.join(folder, "times.json")]
    whole = build(args.gradc, words, name, os.path.join(folder, "whole"), options)
    top = whole.plan["peak"]
    if label in SHARES:
        activations = whole.plan["by_role"]["activations"]
        budgets = [int(top - (1 - x) * activations) for x in SHARES[label]]
    else:
        low = least_of(args.gradc, words, folder, options)
        n = args.points
        budgets = sorted({low + (top - low) * i // max(1, n - 1) for i in range(n)})
    points, failures, before = [], 0, None
    print(f"\n{label}: {MODELS[label]}; {top:,} bytes without a budget")
    print(f"{'budget':>14} {'peak':>14} {'written':>14} {'predicted %':>12} {'measured %':>11}"
          f" {'off':>7}")
    for budget in budgets:
        some = build(args.gradc, words, name, os.path.join(folder, "some"),
                     [*options, "--budget", str(budget)])
        whole_state, base = None, Step(os.path.join(folder, "whole.o"), name,
                                       os.path.join(folder, "whole.json"))
        for step in (base, some):
            step.call()
            step.call()
            state = step.state()
            if whole_state is not None and state != whole_state:
                print(f"FAILED: other bits at {budget}")
                failures += 1
            whole_state = state
        peak, guess = some.plan["peak"], predicted(some)
        written = some.written()
        limit = some.plan.get("budget", top)
        if peak > limit or written != peak:
            print(f"FAILED: {written} bytes written, {peak} planned, {limit} allowed")
            failures += 1
        if before is not None and guess > before + 1e-9:
            print("FAILED: more bytes are predicted to be slower")
            failures += 1
        before = guess
        took = compare(base, some, args.pairs)
        points.append((guess, took))
        print(f"{limit:>14,} {peak:>14,} {written:>14,} {guess:>12.2f} {took:>11.2f}"
              f" {took - guess:>7.2f}", flush=True)
    return points, failures


def share(points, within):
    return 100 * sum(abs(a - b) <= within for a, b in points) / len(points)


def summary(points):
    """The rank correlation is that of different plans: budgets that have one plan are one."""
    plans = {}
    for guess, took in points:
        plans.setdefault(guess, []).append(took)
    ranked = correlation(list(plans), [statistics.mean(took) for took in plans.values()])
    return (", ".join(f"{share(points, n):.0f} % within {n} points" for n in (3, 8, 10)) +
            f"; rank correlation of {len(plans)} plans {ranked:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--gradc", default="build/gradc")
    parser.add_argument("--cost", default="time")
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=15)
    args = parser.parse_args()
    everything, failures = [], 0
    for label in args.models or MODELS:
        if label not in MODELS:
            sys.exit(f"budgets.py: there is no {label}; known: {' '.join(MODELS)}")
        with tempfile.TemporaryDirectory() as folder:
            points, failed = run_model(args, label, folder)
        everything += points
        failures += failed
        if args.pairs > 0:
            print(f"{label}: {summary(points)}", flush=True)
    print(f"\nall, --cost {args.cost}: {summary(everything) if args.pairs > 0 else 'not timed'}; "
          f"{len(everything)} points, {failures} failed")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
