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

# ---- measured: each kernel, here -------------------------------------------------------

model=examples/digits.model
times=$scratch/times.json

# The file has every kernel once, and a second build asks for no other and gives the same bytes.
"$gradc" build $model --cpu baseline --threads 1 --cost measured --cost-file "$times" \
    --budget min -o "$scratch/a.o" --emit plan="$scratch/a.plan" >"$scratch/text" 2>&1
verdict $? "build --cost measured: $(cat "$scratch/text")"
cp "$times" "$scratch/first.json"
"$gradc" build $model --cpu baseline --threads 1 --cost measured --cost-file "$times" \
    --budget min -o "$scratch/b.o" --emit plan="$scratch/b.plan" >"$scratch/text" 2>&1 &&
    cmp "$times" "$scratch/first.json" && cmp "$scratch/a.o" "$scratch/b.o" &&
    cmp "$scratch/a.plan" "$scratch/b.plan"
verdict $? "the same file gives other bytes: $(cat "$scratch/text")"
grep -q "^times of steps: measured on .*, 1 thread, kept in $times" "$scratch/a.plan"
verdict $? "the plan does not say where its times come from"
[ "$(grep -c '"kernel": ' "$times")" -gt 5 ] &&
    [ "$(grep -o '"kernel": "[^"]*"' "$times" | sort | uniq -d | wc -l)" -eq 0 ]
verdict $? "kernels in $times: $(cat "$times")"

# Times are those of the file: the step as a whole takes what it says, with the budget as many
# times that; and with 1,000 ns for each kernel, a thousand times the steps that it has more.
even="plan examples/fashion.model -D batch=2 --cpu baseline --entry step --json --budget min \
    --cost measured --threads 1 --cost-file $scratch/even.json"
# shellcheck disable=SC2086  # several words
"$gradc" $even >"$scratch/even.plan"
sed -i.old -e '/"kernel": /s/"ns": [0-9.e+]*/"ns": 1000/' \
    -e '/"entry": /s/"ns": [0-9.e+]*/"ns": 7654321/' "$scratch/even.json"
# shellcheck disable=SC2086
"$gradc" $even >"$scratch/even.plan" # which is another plan
sed -i.old -e '/"plan": /s/"step": [0-9.e+]*/"step": 1.25/' "$scratch/even.json"
# shellcheck disable=SC2086
"$gradc" $even | sed '/"entry": "init"/,$d' >"$scratch/even.plan"
of() {
    sed -n "s/.*\"$1\": \([0-9]*\),.*/\1/p" "$scratch/even.plan" | head -n 1
}
# Within a budget, kernels are those of any other (of none, one tells that a gradient is finite).
# shellcheck disable=SC2046,SC2086
"$gradc" $(echo $even | sed 's/--budget min/--budget 100%/') | sed '/"entry": "init"/,$d' >"$scratch/once.plan"
more=$(($(grep -c '"run": [0-9]' "$scratch/even.plan") - $(grep -c '"run": [0-9]' "$scratch/once.plan")))
[ "$(of cost_once_ns)" -eq 7654321 ] && [ "$more" -gt 0 ] &&
    [ $(($(of cost_of_kernels_ns) - $(of cost_once_ns))) -eq $((1000 * more)) ]
verdict $? "$more steps of 1,000 ns more: $(of cost_of_kernels_ns) ns instead of $(of cost_once_ns)"
[ "$(of cost_ns)" -eq 9567901 ]
verdict $? "a ratio of 1.25: $(of cost_ns) ns instead of 9567901"
grep -q '"times": "measured on ' "$scratch/even.plan"
verdict $? "the JSON does not say where its times come from"

# Other lanes, another processor, another size: other kernels, which are added.
says 0 "2 threads, kept in" plan $model --cpu baseline --cost measured --threads 2 --cost-file "$times"
[ "$(grep -c '"threads": 2,' "$times")" -gt 5 ] && [ "$(grep -c '"threads": 1,' "$times")" -gt 5 ]
verdict $? "$times has not both: $(cat "$times")"

# No bit changes, whoever runs.
"$gradc" run examples/chargpt.model -D batch=8 -D layers=2 --threads 1 --threads-max 1 --budget 70% \
    --cost measured --seed 2 --step --grads-out "$scratch/g" >"$scratch/text" 2>&1
verdict $? "run --cost measured: $(cat "$scratch/text")"
cmp "$scratch/g" "$scratch/first"
verdict $? "measured: other gradients"
for command in test "bench --steps 1 --warmup 0"; do
    # shellcheck disable=SC2086  # several words
    says 0 "" $command $model --cpu baseline --budget min --threads 1 --cost measured \
        --cost-file "$scratch/also.json"
done
# Loops by what their bodies take, halves, and a batch of micro-batches.
for words in "tests/run/recurrent.model --budget 60%" "$model --precision bf16 --budget min" \
    "tests/run/recurrent.model --budget min --allow-split"; do
    # shellcheck disable=SC2086  # several words
    says 0 "times of steps: measured on" plan $words --cost measured --threads 1
done

says 2 "--cost-file keeps what --cost measured" plan $model --cost-file "$times"
says 2 "--threads is for --cost measured" plan $model --threads 2
says 2 "can't be both" plan $model --cost measured --cost-file -
says 1 "error[E0616]: kernels for the triple" build $model -o "$scratch/c.o" --cost measured \
    --threads 1 --triple aarch64-linux-gnu
sed 's/"measured_on": "[^"]*"/"measured_on": "a far machine"/' "$times" >"$scratch/far.json"
says 0 "measured on a far machine, 1 thread" plan $model --cpu baseline --cost measured --threads 1 \
    --cost-file "$scratch/far.json"
says 1 "error[E0616]: $scratch/far.json: measured on a far machine" plan $model --cpu baseline \
    --cost measured --threads 2 -D hidden=7 --cost-file "$scratch/far.json"
sed '/"entry": /d' "$scratch/far.json" >"$scratch/less.json"
says 1 "the model as a whole is missing in $scratch/less.json" plan $model --cpu baseline \
    --cost measured --threads 1 --cost-file "$scratch/less.json"
printf 'model m {\n    input x : f32[549755813888]\n    param w : f32 = 2\n    output y = x * w\n    loss w\n}\n' >"$scratch/huge.model"
says 4 "error[E0617]: timing " plan "$scratch/huge.model" --cost measured --threads 1
head -c 300 "$times" >"$scratch/cut.json"
says 1 "error[E0615]: $scratch/cut.json: line " plan $model --cost measured --cost-file "$scratch/cut.json"
for bad in 's/"ns": [0-9.]*/"ns": -1/' 's/"ns": [0-9.]*/"ns": 1e400/' 's/"ns": [0-9.]*/"ns": "x"/' \
    's/"kernel": "./"kernel": "/' 's/"kernel": "./"kernel": "Z/' 's/"threads": 1/"threads": 0/' \
    's/"spread"/"spreads"/' 's/"name"/"names"/' 's/"kernels"/"kernel"/' 's/"measured_on"/"on"/' \
    's/"entries": \[/"entries": 3, "x": [/' 's/"model": "./"model": "Z/' 's/"entry"/"entri"/' \
    's/{"kernel.*/3,/' 's/^  \({.*}\),$/  \1, \1,/'; do
    sed "$bad" "$times" >"$scratch/bad.json"
    says 1 "error[E0615]: $scratch/bad.json: " plan $model --cost measured --cost-file "$scratch/bad.json"
done
# A GPU that is not here: more bandwidth takes less time, and copies of a plan are copies.
cost_on() {
    "$gradc" plan examples/chargpt.model --target cuda --entry step --budget 90% --json --cost "$1" |
        sed -n 's/^ *"cost_ns": \([0-9]*\),$/\1/p' | head -n 1
}
says 0 "times of steps: by the model of an H100 SXM 80 GB" plan examples/chargpt.model \
    --target cuda --entry step --cost h100
h100=$(cost_on h100) h200=$(cost_on h200) a100=$(cost_on a100)
[ "${h200:-0}" -gt 0 ] && [ "$h200" -lt "$h100" ] && [ "$h100" -lt "$a100" ]
verdict $? "ns of a step on an H200, H100, A100: $h200, $h100, $a100"
says 2 "--cost h100 is for --target cuda" plan examples/chargpt.model --cost h100
says 3 "h300: No such file" plan examples/chargpt.model --target cuda --cost h300
says 3 "cannot write" plan $model --cost measured --threads 1 --cost-file "$scratch/no/where.json"

total
