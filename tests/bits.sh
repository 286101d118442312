# Sourced after tally.sh by runners of $gradc whose models are $scratch/NAME.model: bytes of their
# plans, and bits of what they compute.
# shellcheck shell=sh disable=SC2154

# grad_plan NAME OPTION...: of the grad entry, as JSON. value KEY FILE: its first number of this key.
grad_plan() {
    name=$1
    shift
    "$gradc" plan "$scratch/$name.model" --verify --entry grad --json "$@"
}
value() {
    grep -o "\"$1\": *[0-9]*" "$2" | head -n 1 | grep -o '[0-9]*$'
}

# field NAME KEY OPTION...: of the plan of the grad entry.
field() {
    name=$1 key=$2
    shift 2
    grad_plan "$name" "$@" >"$scratch/field"
    value "$key" "$scratch/field"
}

# largest NAME OPTION...: the peak of the entry that takes most.
largest() {
    name=$1
    shift
    "$gradc" plan "$scratch/$name.model" --json "$@" | grep -o '"peak": *[0-9]*' |
        grep -o '[0-9]*$' | sort -n | tail -n 1
}

# bits NAME OPTION...: loss, gradients and parameters after a step on $threads lanes, in
# $scratch/NAME.bits.
threads=1
bits() {
    name=$1
    shift
    "$gradc" run "$scratch/$name.model" --verify --seed 3 --step --threads $threads --weights-out "$scratch/w" \
        --grads-out "$scratch/g" "$@" >"$scratch/out" 2>&1
    verdict $? "$name $*: $(cat "$scratch/out")"
    { grep '^loss' "$scratch/out" && tensors "$scratch/w" && tensors "$scratch/g"; } >"$scratch/$name.bits"
}

# budgets NAME OPTION...: five from the least to all leave the bits.
budgets() {
    name=$1
    shift
    bits "$name" "$@"
    cp "$scratch/$name.bits" "$scratch/all"
    high=$(largest "$name" "$@") low=$(largest "$name" --budget min "$@")
    check "$name $*: less is possible" [ "$low" -lt "$high" ]
    for part in 0 1 2 3 4; do
        limit=$((low + (high - low) * part / 4))
        bits "$name" --budget $limit "$@"
        check "$name $* within $limit: the same bits" cmp "$scratch/all" "$scratch/$name.bits"
    done
}

# grads MODEL NAME OPTION...: writes loss and gradients to scratch/NAME.
grads() {
    of=$scratch/$1.model to=$scratch/$2
    shift 2
    "$gradc" run -q "$of" "$@" --grads-out "$to" >"$to.txt" 2>&1 ||
        { cat "$to.txt" && return 1; }
}

# same_bits MODEL: with several lanes and with other tiles, too.
same_bits() {
    grads "$1" one --threads 1
    verdict $? "$1: one lane"
    for lanes in 2 3 8; do
        grads "$1" "lanes$lanes" --threads "$lanes" && cmp "$scratch/one" "$scratch/lanes$lanes"
        verdict $? "$1, $lanes lanes: other bits"
    done
    if grep -q -w avx512f /proc/cpuinfo 2>/dev/null; then
        grads "$1" narrow --threads 2 --cpu x86-64-v3 && cmp "$scratch/one" "$scratch/narrow"
        verdict $? "$1, x86-64-v3: other bits"
    else
        skip "other tiles: this processor has no AVX-512"
    fi
}
