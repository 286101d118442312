#!/bin/sh
# Gradients of biases that products of gradients of weights sum up in passing
# (compiler/target/cpu/side_sums.h): how many do, on processors with long vectors and short ones, and
# that none do without masked loads; bits are the same with one lane and with several, and with other
# tiles. That they are the interpreter's is for gradc-smith check to say (stage 45).
#
#   sh tests/run/side_sums.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
# shellcheck source=tests/bits.sh
. "$(dirname "$0")/../bits.sh"
make_scratch
cp "$(dirname "$0")"/../smith/side_sums*.model "$scratch"

# sums MODEL CPU: kernels of products that have some, in a pass of gradients.
sums() {
    "$gradc" build -q "$scratch/$1.model" --verify --cpu "$2" --entry grad -o "$scratch/m.o" ||
        return 1
    nm "$scratch/m.o" | grep -c '\.k[0-9]*_contract[a-z_]*_sum$'
}

if [ "$(uname -m)" = x86_64 ]; then
    while read -r model cpu wanted; do
        n=$(sums "$model" "$cpu")
        [ "$n" -eq "$wanted" ]
        verdict $? "$cpu: $n products of $model sum up a side, not $wanted"
    done <<END
side_sums sapphirerapids 4
side_sums znver4 4
side_sums x86-64-v3 4
side_sums x86-64 0
side_sums_pictures sapphirerapids 2
side_sums_pictures x86-64-v3 3
side_sums_far sapphirerapids 3
side_sums_far x86-64-v3 3
END
fi

"$gradc" bench -q "$scratch/side_sums.model" --threads 1 --steps 2 --profile >"$scratch/text" 2>&1
n=$(grep -c ': contract[a-z_]*_sum$' "$scratch/text")
[ "$n" -gt 0 ] || ! grep -q avx2 /proc/cpuinfo
verdict $? "a profile names no product that sums up a side: $(cat "$scratch/text")"

for model in side_sums side_sums_pictures side_sums_far; do
    same_bits $model
done
total
