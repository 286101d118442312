#!/bin/sh
# A byte budget is kept or refused, and changes no bit: each model at budgets from the
# least that works to what storing everything takes.
#
#   sh tests/run/budget.sh GRADC
set -u
gradc=${1:-build/gradc}
scratch=$(mktemp -d) || exit 3
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

check() {
    what=$1
    shift
    if "$@" >"$scratch/why" 2>&1; then
        passed=$((passed + 1))
    else
        echo "FAILED: $what"
        head -n 5 "$scratch/why"
        failed=$((failed + 1))
    fi
}

# bytes FILE: of the largest entry of a JSON plan.
bytes() {
    grep -o '"peak": *[0-9]*' "$1" | grep -o '[0-9]*$' | sort -n | tail -n 1
}

# gradients BUDGET FILE MODEL [OPTION...]
gradients() {
    limit=$1 to=$2
    shift 2
    "$gradc" run "$@" --budget "$limit" --verify --seed 3 --step --grads-out "$to.grads" \
        --weights-out "$to.weights" >"$to.text" 2>&1
}

# kept BUDGET MODEL [OPTION...]: the plan is within it, and the bits are those of no budget.
kept() {
    limit=$1
    shift
    "$gradc" plan "$@" --verify --budget "$limit" --format json >"$scratch/plan" || return 1
    [ "$(bytes "$scratch/plan")" -le "$limit" ] || return 1
    gradients "$limit" "$scratch/some" "$@" || return 1
    cmp "$scratch/all.grads" "$scratch/some.grads" &&
        cmp "$scratch/all.weights" "$scratch/some.weights" &&
        cmp "$scratch/all.text" "$scratch/some.text"
}

# refused BUDGET MODEL [OPTION...]: status 4, and the least that works.
refused() {
    limit=$1
    shift
    "$gradc" plan "$@" --budget "$limit" >"$scratch/why" 2>&1
    [ $? -eq 4 ] && grep -q 'E0601' "$scratch/why"
}

# budgets MODEL [OPTION...]
budgets() {
    name=$(basename "$1" .model)
    "$gradc" plan "$@" --format json >"$scratch/plan"
    all=$(bytes "$scratch/plan")
    gradients "$all" "$scratch/all" "$@"
    "$gradc" plan "$@" --budget 1 >"$scratch/why" 2>&1
    least=$(sed -n 's/.*smallest budget that [a-z ]* \([0-9]*\) bytes.*/\1/p' \
        "$scratch/why")
    if [ -z "$least" ]; then
        check "$name: a budget of 1 byte says what works" false
        return
    fi
    check "$name: $((least - 1)) bytes are refused" refused $((least - 1)) "$@"
    for part in 0 5; do
        limit=$((least + (all - least) * part / 8))
        check "$name within $limit bytes" kept "$limit" "$@"
    done
    echo "$name: $all bytes, at least $least"
}

budgets examples/digits.model
budgets examples/fashion.model -D batch=4
budgets examples/chargpt.model -D layers=3 -D width=32 -D heads=2 -D ctx=16 -D batch=3
budgets examples/resnet8.model -D batch=2
budgets tests/object/wide.model
budgets tests/bench/models/rnn-1000.model -D steps=20
echo "passed=$passed failed=$failed skipped=0"
[ "$failed" -eq 0 ]
