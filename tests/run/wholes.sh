#!/bin/sh
# --cost measured with a budget: programs are timed as a whole, and the fastest is taken. What times
# are is not asserted, but that they are told, kept, used again, and never put more bytes after less.
#
#   sh tests/run/wholes.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch
model="tests/run/recurrent.model -D steps=24"
times=$scratch/times.json
measured="--cpu baseline --threads 1 --cost measured"

# says STATUS WORDS COMMAND...: how it ends, and what it says.
says() {
    wanted=$1 words=$2
    shift 2
    "$gradc" "$@" >"$scratch/out" 2>&1
    [ $? -eq "$wanted" ] && { [ -z "$words" ] || grep -qF -- "$words" "$scratch/out"; }
    verdict $? "$*: not status $wanted with \`$words\`: $(head -n 5 "$scratch/out")"
}

# planned BUDGET [OPTION...]: the step's plan, as JSON in $scratch/plan.
planned() {
    budget=$1
    shift
    # shellcheck disable=SC2086  # several words
    "$gradc" plan $model $measured --entry step --json --budget "$budget" "$@" >"$scratch/plans" &&
        sed '/"entry": "init"/,$d' "$scratch/plans" >"$scratch/plan"
}

# of KEY: of the step's plan.
of() {
    sed -n "s/^  \"$1\": \([0-9]*\),.*/\1/p" "$scratch/plan" | head -n 1
}

# ---- small to large: more bytes never cost more ----------------------------------------

planned min --cost-file "$times"
verdict $? "min: $(cat "$scratch/plans")"
least=$(of peak)
planned 100% --cost-file "$times"
top=$(of peak)
before=9223372036854775807
for part in 0 3 7; do
    planned $((least + (top - least) * part / 7)) --cost-file "$times" &&
        [ "$(of peak)" -le "$(of budget)" ] && [ "$(of cost_ns)" -le "$before" ]
    verdict $? "$(of budget) bytes: $(of peak), $(of cost_ns) ns after $before"
    before=$(of cost_ns)
done

# ---- what is kept, and used again -------------------------------------------------------

[ "$(grep -c '"plan": ' "$times")" -gt 1 ] &&
    [ "$(grep -o '"plan": "[^"]*"' "$times" | sort | uniq -d | wc -l)" -eq 0 ] &&
    awk '/"plan": / { n++ }
         /"plan": .*"threads": 1, "budget": [0-9]+, "peak": [0-9]+,.*"ratio": \{"step": [0-9.]+\}/ {
             budget = peak = $0
             sub(/.*"budget": /, "", budget)
             sub(/.*"peak": /, "", peak)
             good += peak + 0 <= budget + 0
         }
         END { exit !(n > 1 && good == n) }' "$times"
verdict $? "plans in $times: $(sed -n '/"plans"/,$p' "$times")"
for budget in min 60% 100%; do
    for at in first a b; do # the first may have something to add
        cp "$times" "$scratch/first.json"
        # shellcheck disable=SC2086  # several words
        "$gradc" build $model $measured --entry step --budget $budget --cost-file "$times" \
            -o "$scratch/$at.o" --emit plan="$scratch/$at.plan" >"$scratch/text" 2>&1
        verdict $? "build --budget $budget: $(cat "$scratch/text")"
    done
    cmp "$times" "$scratch/first.json" && cmp "$scratch/a.o" "$scratch/b.o" &&
        cmp "$scratch/a.plan" "$scratch/b.plan"
    verdict $? "$budget: a file that has it all gives other bytes, or is added to"
done
# shellcheck disable=SC2086  # several words
says 0 "as measured beside the program without a budget; " plan $model $measured --entry step \
    --budget min --cost-file "$times"

# Everything that was timed may win, whoever planned it: what the least takes is far less now.
edit() {
    awk -v least="\"peak\": $least," -v ratio="$1" '/"plan": / && index($0, least) {
        sub(/"step": [0-9.e+-]*/, "\"step\": " ratio) } { print }' "$times"
}
edit 0.5 >"$scratch/fast.json"
planned 90% --cost-file "$scratch/fast.json" && [ "$(of peak)" -eq "$least" ] &&
    [ "$(of planned_for)" -eq "$least" ] &&
    [ "$(of cost_ns)" -eq $((($(of cost_once_ns) + 1) / 2)) ]
verdict $? "the plan of $least bytes does not win: $(of peak) bytes, $(of cost_ns) ns"
# ... and where every step may run once, and a bound is still of the budget that was asked for.
planned 100% --cost-file "$scratch/fast.json" && [ "$(of peak)" -eq "$least" ] &&
    grep -q '"lower_bound": 0,' "$scratch/plan"
verdict $? "at $top bytes: $(of peak)"
# shellcheck disable=SC2086
says 0 "which was measured to be faster" plan $model $measured --entry step --budget 90% \
    --cost-file "$scratch/fast.json"
# No bit of a result changes: of the plan of the least for 90 %, and of that for 90 % itself.
step="run $model $measured --seed 2 --step --cost-file $scratch/run.json --budget"
for budget in min 90% 100%; do
    # shellcheck disable=SC2086
    "$gradc" $step $budget --weights-out "$scratch/$budget.w" >"$scratch/text" 2>&1 &&
        cmp "$scratch/min.w" "$scratch/$budget.w"
    verdict $? "run --budget $budget: $(cat "$scratch/text")"
done
sed -i.old '/"plan": /s/"\(eval\|grad\|step\)": [0-9.e+-]*/"\1": 0.5/g' "$scratch/run.json"
# shellcheck disable=SC2086
"$gradc" $step 100% --weights-out "$scratch/other.w" >"$scratch/text" 2>&1 &&
    cmp "$scratch/min.w" "$scratch/other.w"
verdict $? "run with another budget's plan: $(cat "$scratch/text")"
# What is no longer made of a budget is left alone.
sed '/"plan": /s/"plan": "......../"plan": "00000000/' "$scratch/fast.json" >"$scratch/stale.json"
planned 90% --cost-file "$scratch/stale.json" && [ "$(of peak)" -le "$(of budget)" ] &&
    [ "$(of cost_ns)" -gt "$(of cost_once_ns)" ]
verdict $? "a plan that is not made any more wins: $(of cost_ns) ns"

# ---- what is not timed ------------------------------------------------------------------

sed '/"entry": /s/"ns": [0-9.e+]*/"ns": 3e9/' "$times" >"$scratch/slow.json"
sed -i.old '/"plan": /d' "$scratch/slow.json"
# shellcheck disable=SC2086
says 0 "is not timed: a call of each entry takes 3.0 s" plan $model $measured --entry step \
    --budget min --cost-file "$scratch/slow.json"
grep -q ' of time, as predicted' "$scratch/out" && ! grep -q '"plan": ' "$scratch/slow.json"
verdict $? "$(cat "$scratch/out")"
# shellcheck disable=SC2086
says 0 "is not timed: what is offloaded is the caller's to move" plan examples/chargpt.model \
    -D batch=4 -D layers=2 $measured --entry step --budget 60% --offload host
# shellcheck disable=SC2086
says 0 '"untimed": "what is offloaded' plan examples/chargpt.model -D batch=4 -D layers=2 \
    $measured --entry step --budget 60% --offload host --json

# ---- damage, and files that can't be kept -----------------------------------------------

for bad in 's/"plans": \[/"plans": 3, "x": [/' 's/"plan": "./"plan": "/' \
    '/"plan"/s/"model": "./"model": "Z/' '/"plan"/s/"threads": 1/"threads": 0/' \
    's/"budget": /"budget": -/' 's/"peak"/"peaks"/' 's/"scan_levels": ./"scan_levels": 99/' \
    's/"slices": ./"slices": "x"/' 's/"keeps_light": [0-9]*/"keeps_light": 3/' \
    's/"micro_batches": ./"micro_batches": -1/' \
    's/"step": [0-9.]*}/"step": 0}/' 's/"step": [0-9.]*}/"step": "x"}/' \
    's/"step": [0-9.]*}/"init": 1}/' 's/"step": [0-9.]*}/"step": 1, "leap": 1}/' \
    's/"ratio": {.*}}/"ratio": {}}/' 's/^  {"plan": .*}},/3,/' \
    '/"plan"/s/^  \({.*}\),$/  \1, \1,/'; do
    sed "$bad" "$times" >"$scratch/bad.json"
    # shellcheck disable=SC2086
    says 1 "error[E0615]: $scratch/bad.json: " plan $model $measured --entry step \
        --budget min --cost-file "$scratch/bad.json"
done
# A file without plans is one of before: it is added to. One of another machine can't be.
sed '/^"plans"/,$d; /^],$/d' "$times" >"$scratch/old.json"
echo ']}' >>"$scratch/old.json"
sed 's/"measured_on": "[^"]*"/"measured_on": "a far machine"/' "$scratch/old.json" >"$scratch/far.json"
planned min --cost-file "$scratch/old.json" && [ "$(grep -c '"plan": ' "$scratch/old.json")" -eq 1 ]
verdict $? "$(cat "$scratch/plans" "$scratch/old.json")"
# shellcheck disable=SC2086
says 1 "error[E0616]: $scratch/far.json: measured on a far machine" plan $model $measured \
    --entry step --budget min --cost-file "$scratch/far.json"
sed 's/"measured_on": "[^"]*"/"measured_on": "a far machine"/' "$times" >"$scratch/far.json"
planned min --cost-file "$scratch/far.json" && [ "$(of cost_ns)" -gt 0 ]
verdict $? "a far machine's file that has it all: $(cat "$scratch/plans")"

# ---- all kinds of models -----------------------------------------------------------------

printf 'model still {\n    param w : f32[64, 64] = 0.01\n    h = tanh(w @ w)\n    y = tanh(h @ h)\n    loss sum(tanh(y @ h) @ y)\n}\n' >"$scratch/still.model"
for words in "$scratch/still.model --entry grad --budget min" \
    "$scratch/still.model --entry eval --budget min" "examples/digits.model --budget min" \
    "examples/digits.model --budget min --precision bf16" \
    "$model --budget min --allow-split"; do
    # shellcheck disable=SC2086
    says 0 "measured on" plan $words --cpu baseline --cost measured --threads 1
done
# shellcheck disable=SC2086
says 0 "measured on" plan examples/digits.model $measured --budget 90% --allow-split
grep -qF '% of time as measured' "$scratch/out"
verdict $? "$(cat "$scratch/out")"
says 0 "2 threads" plan examples/digits.model --cpu baseline --threads 2 --cost measured --budget min
total
