#!/bin/sh
# Elementwise chains of any length are cut into kernels that a compiler gets done with
# (compiler/pass/cluster_group.c): 1,000 sines and their slopes were one function, which took minutes,
# and more with the square of their number. Bits are those of the interpreter.
#
#   sh tests/run/cut.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch

cat >"$scratch/sines.model" <<'E1'
model sines(batch = 3, n = 1000) {
    input x : f32[batch, 37]
    param w : f32[37] = normal(std = 0.1)
    h = x * w
    for i in 0..n { h = h + 0.01 * sin(h) }
    loss mean(h * h)
}
train sines { optimizer sgd(lr = 0.1) }
E1

"$gradc" build -q "$scratch/sines.model" -o "$scratch/m.o" --emit kernels="$scratch/kernels"
verdict $? "1,000 sines are built"
longest=$(awk '/^# kernel/ { at = NR } { if (at && NR - at > most) most = NR - at } END { print most + 0 }' "$scratch/kernels")
[ "$longest" -ge 100 ] && [ "$longest" -le 1000 ]
verdict $? "the longest kernel has $longest lines"
"$gradc" test "$scratch/sines.model" --verify >"$scratch/out" 2>&1
verdict $? "differences, threads and bits: $(cat "$scratch/out")"
total
