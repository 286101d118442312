#!/usr/bin/env python3
"""Bounds of bare problems against a solver of integer programs (HiGHS, through SciPy).

Takes random graphs of bench/planner_graphs.py, plans each within some budgets, and solves the
program of the moment that the certificate names (compiler/plan/certificate.h) as it stands there.
gradc's bound must never be above the solver's optimum, and where there is a plan every moment must
have a solution. Where the bound is below, the cases of the proof were not closed: that is counted.

    bounds.py GRADC [--graphs 60] [--seed 1]
"""
import argparse
import collections
import json
import math
import os
import subprocess
import sys
import tempfile

import numpy as np
from scipy.optimize import LinearConstraint, milp

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "bench"))
import planner_graphs  # noqa: E402

SHARES = (10, 40, 70)  # of what lies between the least budget and running every node once


def reach(nodes, at, step):
    """All nodes that are reached from `at` by these steps."""
    seen, todo = set(), [at]
    while todo:
        for u in step[todo.pop()]:
            if u not in seen:
                seen.add(u)
                todo.append(u)
    return seen


class Moment:
    """The program of one moment: rows of k and r, by node outside of b and its descendants."""

    def __init__(self, problem, b, budget):
        nodes = problem["nodes"]
        inputs = [sorted(set(n["inputs"])) for n in nodes]
        readers = [[] for _ in nodes]
        for v, of in enumerate(inputs):
            for u in of:
                readers[u].append(v)
        before, after = reach(nodes, b, inputs), reach(nodes, b, readers)
        self.nodes, self.inputs, self.b = nodes, inputs, b
        self.free = [v for v in range(len(nodes)) if v != b and v not in after]
        self.at = {v: i for i, v in enumerate(self.free)}
        self.before = before
        self.need = [v for v in self.free
                     if nodes[v].get("keep_until_end") or any(w in after for w in readers[v])]
        held = sum(nodes[u]["bytes"] for u in inputs[b])
        self.room = (budget - problem.get("pinned_bytes", 0) - nodes[b]["bytes"] - held -
                     nodes[b].get("scratch", 0))

    def solve(self):
        """The least extra cost; None: there is no solution."""
        n = len(self.free)
        if self.room < 0:
            return None
        if n == 0:
            return 0
        rows, least, most = [], [], []

        def row(terms, low, high):
            line = np.zeros(2 * n)
            for i, x in terms:
                line[i] += x
            rows.append(line)
            least.append(low)
            most.append(high)

        for v in self.need:
            row([(self.at[v], 1), (n + self.at[v], 1)], 1, np.inf)
        for v in self.free:
            for u in self.inputs[v]:
                row([(self.at[u], 1), (n + self.at[u], 1), (n + self.at[v], -1)], 0, np.inf)
        row([(self.at[v], self.nodes[v]["bytes"]) for v in self.free
             if v not in self.inputs[self.b]], -np.inf, self.room)
        cost = np.zeros(2 * n)
        upper = np.ones(2 * n)
        for v in self.free:
            if v in self.before:
                cost[n + self.at[v]] = self.nodes[v]["cost"]
                upper[n + self.at[v]] = 1 if self.nodes[v].get("pure", True) else 0
        done = milp(cost, constraints=LinearConstraint(np.array(rows), least, most),
                    integrality=np.ones(2 * n), bounds=(np.zeros(2 * n), upper))
        if done.status == 2:
            return None
        if not done.success:
            sys.exit("HiGHS: " + done.message)
        return round(done.fun)


def plan(gradc, path, budget):
    done = subprocess.run([gradc, "plan", "--problem", path, "--budget", str(budget),
                           "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{path}: {done.stderr}")
    return json.loads(done.stdout)


def judge(problem, report, count):
    """What is wrong, or None."""
    nodes, budget = problem["nodes"], report["budget"]
    extra = report["cost_plan"] - report["cost_base"]
    bound = report["cost_bound"] - report["cost_base"]
    optima = [Moment(problem, b, budget).solve() for b in range(len(nodes))]
    if None in optima:
        return f"a plan, and none is allowed at the moment {optima.index(None)}"
    step = math.gcd(*(n["cost"] for n in nodes)) or 1
    rounded = [-(-x // step) * step for x in optima]
    mine = rounded[report["certificate"]["moment"]] if bound > 0 else 0
    if bound > mine or bound > extra:
        return f"the bound is {bound}, its moment's optimum {mine}, the plan costs {extra}"
    count["proofs"] += bound > 0
    count["equal"] += bound in (mine, extra)
    count["best"] += bound in (max(rounded), extra)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("gradc")
    parser.add_argument("--graphs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    a = parser.parse_args()
    count = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "graph.json")
        for seed in range(a.seed, a.seed + a.graphs):
            problem = planner_graphs.small(12 + seed % 19, seed)
            with open(path, "w") as f:
                json.dump(problem, f)
            least = plan(a.gradc, path, "min")
            for share in SHARES:
                low, high = least["budget"], least["store_all"]
                report = plan(a.gradc, path, low + (high - low) * share // 100)
                count["plans"] += 1
                wrong = judge(problem, report, count)
                if wrong:
                    print(f"FAILED: seed {seed}, budget {report['budget']}: {wrong}")
                    count["failed"] += 1
    print("{plans} plans, {proofs} with a bound above 0: {equal} bounds are the solver's optimum of "
          "their moment or the plan's own cost, {best} the highest of all moments".format_map(count))
    plans, failed = count["plans"], count["failed"]
    print(f"passed={plans - failed} failed={failed} skipped=0")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
