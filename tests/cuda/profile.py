"""A profile on the mock, whose clock is known: argv: bench's JSON, its trace, the least sum of calls."""
import json
import sys

bench = json.load(open(sys.argv[1]))
events = json.load(open(sys.argv[2]))["traceEvents"]
profile = bench["profile"]
steps = profile["steps"]
assert profile["device"] == "Mock 90" and profile["gpu"] == "h100", profile
assert profile["apart_ns"] == 1000 and profile["launch_ns"] == 2000, profile
assert steps == sorted(steps, key=lambda s: -s["ns"]), "not by time"
assert abs(sum(s["ns"] for s in steps) - profile["ns"]) < len(steps)
assert len(events) == sum(s["calls"] for s in steps) >= int(sys.argv[3]), len(events)
assert len({(s["step"], s["line"]) for s in steps}) > 3
for s in steps:
    # An event, a launch, and its blocks: whole us, and 4 at least.
    assert abs(s["ns"] - 1000 * round(s["ns"] / 1000)) < 2 * s["calls"], s
    assert s["ns"] >= 3999 * s["calls"] > 0, s
    assert s["model_ns"] >= 2000 * s["calls"] and s["limit"] in ("launch", "bytes", "flops"), s
    assert s["line"] is None or s["line"].rpartition(":")[2].isdigit(), s
last = 0
for e in events:
    assert e["ph"] == "X" and e["ts"] >= last - 0.01 and e["dur"] >= 3.99, e
    last = e["ts"] + e["dur"]
assert {e["name"] for e in events} >= {s["step"] for s in steps}
