#!/bin/sh
# gradc bench --profile and --emit trace: every step of an entry is there, with its line, as often
# as it runs, in loops and guards, on one thread and on two.
#
#   sh tests/run/profile.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch

cat >"$scratch/judge.py" <<'E1'
"""A profile and its trace belong together: argv: bench's JSON, the trace, the least sum of calls."""
import json
import sys

bench = json.load(open(sys.argv[1]))
events = json.load(open(sys.argv[2]))["traceEvents"]
profile = bench["profile"]
steps = profile["steps"]
assert len(events) == sum(s["calls"] for s in steps) >= int(sys.argv[3]), (len(events), steps)
assert len({(s["step"], s["line"]) for s in steps}) > 3
assert steps == sorted(steps, key=lambda s: -s["ns"]), "not by time"
assert 0 < sum(s["ns"] for s in steps) <= profile["ns"] * 1.5
for s in steps:
    assert s["limit"] in ("flops", "math", "bytes", "calls") and s["roof_ns"] >= 0
    assert s["line"] is None or s["line"].rpartition(":")[2].isdigit()
assert all(v > 0 for k, v in profile["roof"].items() if k != "bytes_per_ns")
assert all(v > 0 for v in profile["roof"]["bytes_per_ns"].values())
last = 0
for e in events:
    assert e["ph"] == "X" and e["ts"] >= last - 0.002 and e["dur"] >= 0, e
    last = e["ts"] + e["dur"]
named = {e["name"] for e in events}
assert named >= {s["step"] for s in steps}
print("transfers", sum(e["cat"] == "transfer" for e in events))
E1

# profiled CALLS FILE OPTION...: so many calls at least.
profiled() {
    calls=$1
    shift
    "$gradc" bench "$@" --steps 3 --warmup 1 --json --profile --emit "trace=$scratch/trace" \
        >"$scratch/bench" 2>"$scratch/err" &&
        python3 "$scratch/judge.py" "$scratch/bench" "$scratch/trace" "$calls" >"$scratch/said" 2>&1
    verdict $? "$*: $(cat "$scratch/err" "$scratch/said")"
}

if command -v python3 >/dev/null; then
    profiled 48 tests/run/recurrent.model -D steps=24 --threads 1
    profiled 48 tests/run/recurrent.model -D steps=24 --threads 2
    profiled 72 tests/run/recurrent.model -D steps=24 --budget min --threads 1
    profiled 9 examples/line.model --threads 1
    profiled 20 tests/bench/models/offload.model -D batch=16 -D width=16 -D layers=3 --offload host
    grep -q 'transfers [1-9]' "$scratch/said"
    verdict $? "offload.model: no transfer in the trace"
else
    skip "no python3 to read profiles with"
fi

# The text has the same, and where nothing is asked nothing is told.
"$gradc" bench examples/line.model --steps 2 --profile >"$scratch/text" 2>&1 &&
    grep -q 'GFLOP/s, .* GB/s of memory' "$scratch/text" && grep -q 'examples/line.model:[0-9]*: ' "$scratch/text" &&
    grep -q 'call of the entry' "$scratch/text"
verdict $? "no table: $(cat "$scratch/text")"
"$gradc" bench examples/line.model --steps 2 --json >"$scratch/text" 2>&1 && ! grep -q profile "$scratch/text"
verdict $? "a profile that nobody asked for: $(cat "$scratch/text")"

# More lanes than blocks have scratch for by default: the probes' too.
# What is not as it is where nobody looks is said.
for threads in 1 2; do
    "$gradc" bench tests/bench/models/attention-b4-t1024.model -D ctx=512 --steps 1 --warmup 1 \
        --entry grad --threads $threads --profile >"$scratch/text" 2>&1
    verdict $? "attention, $threads threads: $(cat "$scratch/text")"
    said=$(grep -c '^turns of loops ran one after another' "$scratch/text")
    check "attention, $threads threads: turns are mentioned $said times" [ "$said" -eq $((threads - 1)) ]
done

"$gradc" bench examples/line.model --steps 2 --threads 9 --profile >"$scratch/text" 2>&1 &&
    grep -q '9 threads' "$scratch/text"
verdict $? "nine lanes: $(cat "$scratch/text")"

# Files are named as the model where that is from standard input.
program=$(cd "$(dirname "$gradc")" && pwd)/$(basename "$gradc")
model=$PWD/tests/run/square.model
(cd "$scratch" && "$program" bench - --steps 2 --emit trace <"$model" && "$program" build -q - <"$model" &&
    [ -s square.trace ] && [ -s square.o ] && [ -s square.h ]) >"$scratch/text" 2>&1
verdict $? "from standard input: $(cat "$scratch/text")"

# A model that is not trained.
printf 'model m {\n    input x : f32[64]\n    loss sum(exp(x))\n}\n' >"$scratch/m.model"
"$gradc" bench "$scratch/m.model" --steps 2 --profile >"$scratch/text" 2>&1 &&
    grep -q '^entry [eg]' "$scratch/text" && grep -q 'm.model:3: ' "$scratch/text"
verdict $? "forward only: $(cat "$scratch/text")"

# What is timed: the step and the forward pass; with --entry what it names, and the forward pass.
timed() {
    want=$1
    shift
    "$gradc" bench examples/line.model --steps 2 "$@" >"$scratch/text" 2>&1 &&
        [ "$(sed -n 's/_ms .*//p' "$scratch/text" | tr '\n' ' ')" = "$want " ]
    verdict $? "times of $want: $(cat "$scratch/text")"
}
timed 'step forward'
timed 'step grad forward' --entry eval,grad,step
timed 'grad forward' --entry grad
timed 'forward' --entry init

# refused STATUS WORDS OPTION...
refused() {
    wanted=$1 words=$2
    shift 2
    "$gradc" bench examples/line.model --steps 1 "$@" >"$scratch/text" 2>&1
    [ $? -eq "$wanted" ] && grep -qF -- "$words" "$scratch/text"
    verdict $? "$*: $(cat "$scratch/text")"
}
refused 2 'bench --emit takes trace and trace=PATH, not ' --emit graph
refused 2 'bench --emit takes trace and trace=PATH, not ' --emit traces
refused 2 'bench writes one trace, not ' --emit trace --emit "trace=$scratch/t"
refused 3 "$scratch/none/t" --emit "trace=$scratch/none/t"
"$gradc" build examples/line.model -o "$scratch/l.o" --emit trace >"$scratch/text" 2>&1
[ $? -eq 2 ] && grep -q 'does not know .trace' "$scratch/text"
verdict $? "build --emit trace: $(cat "$scratch/text")"
total
