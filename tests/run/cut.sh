#!/bin/sh
# Chains of any length are cut into kernels that a compiler gets done with
# (compiler/pass/cluster_group.c): 1,000 sines and their slopes were one function, which took minutes,
# and more with the square of their number. Of softmaxes and norms of the same rows each loop computed
# all links before it again (compiler/kernel/hold.c), and over twenty were more loops than an assertion
# allowed. Bits are those of the interpreter.
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

rows() { # NAME STATEMENT LINKS
    cat >"$scratch/$1.model" <<E2
use nn
model rows(batch = 3) {
    input x : f32[batch, 37]
    param w : f32[37] = normal(std = 0.1)
    h = x * w
    for i in 0..$3 { $2 }
    loss mean(h * h)
}
train rows { optimizer sgd(lr = 0.1) }
E2
    "$gradc" build -q "$scratch/$1.model" -o "$scratch/m.o" --emit kernels="$scratch/$1"
    verdict $? "$1: $3 links are built"
}

exps() { # NAME
    grep -c '= exp ' "$scratch/$1"
}

rows softmax10 "h = softmax(h) + x" 10
rows softmax40 "h = softmax(h) + x" 40
[ "$(exps softmax40)" -le $((5 * $(exps softmax10))) ]
verdict $? "four times the links have $(exps softmax40) exponentials, in place of $(exps softmax10)"
rows norm30 "h = nn.layer_norm(h) as norm[i]" 30
longest=$(awk '/^# kernel/ { at = NR } { if (at && NR - at > most) most = NR - at } END { print most + 0 }' "$scratch/norm30")
[ "$longest" -ge 100 ] && [ "$longest" -le 700 ]
verdict $? "the longest kernel of norms has $longest lines"
for name in softmax40 norm30; do
    "$gradc" test "$scratch/$name.model" --verify >"$scratch/out" 2>&1
    verdict $? "$name: differences, threads and bits: $(cat "$scratch/out")"
done
total
