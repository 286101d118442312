"""Pinning, timing and memory of one measurement; imports no framework."""
import json
import os
import resource
import statistics
import sys
import time

MIB = 2.0 ** 20


def pin(threads):
    """To be called before any numeric library is imported."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(threads)
    cores = sorted(os.sched_getaffinity(0))[:threads]
    os.sched_setaffinity(0, cores)
    return cores


def resident_mb():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def forget_peak():
    """So that compilation does not show in the peak of the steps (where /proc allows it)."""
    try:
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")
    except OSError:
        pass


def rate(product, seconds):
    """Best GFLOP/s of a function that multiplies two 1024 x 1024 matrices."""
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        product()
        best = min(best, time.perf_counter() - begin)
    return round(2 * 1024 ** 3 / best / 1e9, 1)


def yardstick(seconds=0.25):
    """Best GFLOP/s of a 1024^3 sgemm in numpy: what the machine gives just now."""
    import numpy as np
    a = np.ones((1024, 1024), np.float32)
    c = np.matmul(a, a)
    return rate(lambda: np.matmul(a, a, out=c), seconds)


def torch_yardstick(threads, seconds):
    """As yardstick(), in PyTorch, whose library knows more processors; 0 without PyTorch."""
    try:
        import torch
    except ImportError:
        return 0
    torch.set_num_threads(threads)
    a = torch.ones(1024, 1024)
    c = a @ a
    return rate(lambda: torch.mm(a, a, out=c), seconds)


def summary(times_ms):
    t = sorted(times_ms)
    return dict(steps=len(t), median_ms=round(statistics.median(t), 4), min_ms=round(t[0], 4),
                p90_ms=round(t[min(len(t) - 1, int(0.9 * len(t)))], 4))


def measure(step, seconds, steps=None):
    """Warms up for a third of `seconds`, then times `steps`, or 20 and at least `seconds`."""
    begin = time.perf_counter()
    for warm in range(50):
        step()
        if steps or (warm >= 1 and time.perf_counter() - begin > seconds / 3):
            break
    before = peak_mb()
    forget_peak()
    times, begin = [], time.perf_counter()
    while True:
        t = time.perf_counter()
        step()
        now = time.perf_counter()
        times.append(1e3 * (now - t))
        if len(times) >= steps if steps else (len(times) >= 20 and now - begin >= seconds):
            break
    steady = peak_mb()
    return dict(summary(times), rss_peak_steady_mb=round(steady, 1),
                rss_peak_mb=round(max(before, steady), 1))


if __name__ == "__main__":      # python harness.py THREADS: the yardsticks alone
    pin(int(sys.argv[1]))
    print(json.dumps(dict(numpy=yardstick(2.0), torch=torch_yardstick(int(sys.argv[1]), 2.0))))
