#!/usr/bin/env python3
"""A planning problem by OR-tools CP-SAT: what a general solver finds in the same bytes.

    planner_graphs.py rl1 > rl1.json
    cpsat.py rl1.json --share 70 [--seconds 600] [--runs 2] [--workers 1] [--gradc build/gradc]

The model is that of intervals (Bartan et al., Moccasin, 2023): each node runs up to --runs times,
each run keeps its output for an interval, a reader must lie in an interval of each of its inputs,
and the bytes of all intervals at a moment are at most the budget. The order is free, as it is for
gradc. The budget is a share of the most bytes that live in the file's order; offsets, which
gradc finds as well, are left out of this model. One line is printed for each.
Needs the Python package ortools.
"""
import argparse
import json
import subprocess
import sys
import time

from ortools.sat.python import cp_model


def live_peak(nodes, pinned):
    """The most bytes that are there when every node runs once, in the file's order."""
    last = list(range(len(nodes)))
    for v, node in enumerate(nodes):
        for u in node["inputs"]:
            last[u] = v
    for v, node in enumerate(nodes):
        if node.get("keep_until_end"):
            last[v] = len(nodes) - 1
    change = [0] * (len(nodes) + 1)
    for v, node in enumerate(nodes):
        change[v] += node["bytes"]
        change[last[v] + 1] -= node["bytes"]
    most = live = 0
    for v, node in enumerate(nodes):
        live += change[v]
        most = max(most, live + node.get("scratch", 0))
    return most + pinned


def intervals(model, nodes, runs, horizon):
    """By node, its runs: (start, end, is there, interval of the output, interval of running)."""
    out = []
    for v, node in enumerate(nodes):
        mine = []
        for i in range(runs if node.get("pure", True) else 1):
            start = model.new_int_var(0, horizon - 1, f"start{v}.{i}")
            end = model.new_int_var(1, horizon, f"end{v}.{i}")
            size = model.new_int_var(1, horizon, f"size{v}.{i}")
            there = model.new_constant(1) if i == 0 else model.new_bool_var(f"there{v}.{i}")
            kept = model.new_optional_interval_var(start, size, end, there, f"kept{v}.{i}")
            run = model.new_optional_fixed_size_interval_var(start, 1, there, f"run{v}.{i}")
            if node.get("keep_until_end") and i == 0:
                model.add(end == horizon)
            if mine:
                model.add_implication(there, mine[-1][2])
                model.add(start >= mine[-1][1]).only_enforce_if(there)
            mine.append((start, end, there, kept, run))
        out.append(mine)
    return out


def solve(problem, budget, a):
    nodes = problem["nodes"]
    model = cp_model.CpModel()
    runs = intervals(model, nodes, a.runs, a.runs * len(nodes))
    model.add_no_overlap([r[4] for mine in runs for r in mine])
    model.add_cumulative([r[3] for mine in runs for r in mine] + [r[4] for mine in runs for r in mine],
                         [n["bytes"] for n, mine in zip(nodes, runs) for _ in mine] +
                         [n.get("scratch", 0) for n, mine in zip(nodes, runs) for _ in mine],
                         budget - problem.get("pinned_bytes", 0))
    for v, node in enumerate(nodes):
        for start, _, there, _, _ in runs[v]:
            for u in node["inputs"]:
                reads = []
                for from_, to, is_there, _, _ in runs[u]:
                    read = model.new_bool_var("")
                    model.add_implication(read, is_there)
                    model.add(start > from_).only_enforce_if(read)
                    model.add(start < to).only_enforce_if(read)
                    reads.append(read)
                model.add_bool_or(reads).only_enforce_if(there)
    model.minimize(sum(n["cost"] * r[2] for n, mine in zip(nodes, runs) for r in mine[1:]))
    for v, mine in enumerate(runs):
        model.add_hint(mine[0][0], v)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = a.seconds
    solver.parameters.num_workers = a.workers
    status = solver.solve(model)
    base = sum(n["cost"] for n in nodes)
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return (100 * solver.objective_value / base if found else None,
            100 * solver.best_objective_bound / base, solver.status_name(status))


def gradc(a, budget):
    start = time.monotonic()
    done = subprocess.run([a.gradc, "plan", "--problem", a.problem, "--budget", str(budget),
                           "--plan-effort", "max", "--json"], capture_output=True, text=True)
    took = time.monotonic() - start
    if done.returncode == 4:
        return "not found: " + done.stderr.split("help: ")[-1].strip(), took
    if done.returncode:
        sys.exit(done.stderr)
    report = json.loads(done.stdout)
    return "%.4f %% (at least %.4f %%)" % (100 * report["overhead"], 100 * report["lower_bound"]), took


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("problem")
    parser.add_argument("--share", type=float, default=80)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--gradc", default="build/gradc")
    a = parser.parse_args()
    with open(a.problem) as f:
        problem = json.load(f)
    peak = live_peak(problem["nodes"], problem.get("pinned_bytes", 0))
    budget = int(peak * a.share / 100)
    label = f"{a.problem} at {a.share:g} %, {budget} of {peak} bytes"
    text, took = gradc(a, budget)
    print(f"{label}: gradc {text}, {took:.1f} s", flush=True)
    start = time.monotonic()
    found, bound, status = solve(problem, budget, a)
    text = "nothing" if found is None else f"{found:.4f} %"
    print(f"{label}: CP-SAT {text} (at least {max(0, bound):.4f} %, {status}), "
          f"{time.monotonic() - start:.1f} s, {a.workers} worker(s)", flush=True)


if __name__ == "__main__":
    main()
