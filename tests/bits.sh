# shellcheck shell=sh disable=SC2154 # the test sets them
# Sourced by tests of what kernels compute, behind tally.sh: models in $scratch, run by $gradc.

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
