#!/bin/sh
# --cost: what running a step again costs decides which ones do; gradc doctor --calibrate.
#
#   sh tests/run/cost.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch

# says STATUS WORDS COMMAND...: how it ends, and what it says.
says() {
    wanted=$1 words=$2
    shift 2
    "$gradc" "$@" >"$scratch/out" 2>&1
    [ $? -eq "$wanted" ] && { [ -z "$words" ] || grep -qF -- "$words" "$scratch/out"; }
    verdict $? "$*: not status $wanted with \`$words\`: $(cat "$scratch/out")"
}

# planned COST...: predicted time of running every step once, in ns.
planned() {
    "$gradc" plan examples/digits.model --cpu baseline --entry step --json "$@" |
        sed -n 's/.*"cost_once_ns": \([0-9]*\),/\1/p'
}

# One flop a ns, and nothing else: the flops of all steps.
flops=$("$gradc" plan examples/digits.model --cpu baseline --entry step --json |
    grep -o '"flops": [0-9]*' | awk '{ sum += $2 } END { printf "%.0f", sum }')
# The init entry is planned as well, and is the smaller.
[ "$(planned --cost flops | sort -n | tail -n 1)" -le "$flops" ] &&
    [ "$(planned --cost flops | awk '{ sum += $1 } END { printf "%.0f", sum }')" -eq "$flops" ]
verdict $? "flops: $(planned --cost flops | tr '\n' ' ') instead of $flops"
[ "$(planned)" = "$(planned --cost time)" ]
verdict $? "time is not the default"
echo '{"flops_per_ns": 50, "bytes_per_ns": 20, "call_ns": 50}' >"$scratch/same.json"
[ "$(planned)" = "$(planned --cost "$scratch/same.json")" ]
verdict $? "a file with the default's numbers plans otherwise"
echo '{"flops_per_ns": 1e9, "bytes_per_ns": 1e9, "call_ns": 1000}' >"$scratch/calls.json"
calls=$(planned --cost "$scratch/calls.json" | tail -n 1)
[ $((calls % 1000)) -eq 0 ] && [ "$calls" -gt 0 ]
verdict $? "calls alone: $calls ns"

# A budget is kept whatever the cost, and no bit changes.
for cost in time flops "$scratch/calls.json"; do
    "$gradc" run examples/chargpt.model -D batch=8 -D layers=2 --threads 1 --threads-max 1 --budget 70% \
        --cost "$cost" --seed 2 --step \
        --grads-out "$scratch/g" >"$scratch/text" 2>&1
    verdict $? "$cost: $(cat "$scratch/text")"
    [ -f "$scratch/first" ] || cp "$scratch/g" "$scratch/first"
    cmp "$scratch/g" "$scratch/first"
    verdict $? "$cost: other gradients"
done

says 0 '"flops_per_ns": ' doctor --calibrate
says 0 "" doctor --calibrate -o "$scratch/machine.json"
says 0 "entry step" plan examples/digits.model --cost "$scratch/machine.json"
says 2 "--output goes with --calibrate" doctor -o "$scratch/machine.json"
says 3 "nothing.json: No such file" plan examples/digits.model --cost "$scratch/nothing.json"
printf '{"flops_per_ns": 50, "bytes_per_ns"' >"$scratch/cut.json"
says 1 "error[E0615]: $scratch/cut.json: line 1, column " plan examples/digits.model --cost "$scratch/cut.json"
for bad in '{}' '[]' '3' '{"flops_per_ns": 50, "bytes_per_ns": -1, "call_ns": 5}' \
    '{"flops_per_ns": 50, "bytes_per_ns": "fast", "call_ns": 5}' \
    '{"flops_per_ns": 50, "bytes_per_ns": 20, "call_ns": 0}'; do
    echo "$bad" >"$scratch/bad.json"
    says 1 "error[E0615]: $scratch/bad.json: " plan examples/digits.model --cost "$scratch/bad.json"
done

total
