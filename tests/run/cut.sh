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

# A stack of 8 MiB was too little for expressions of so many nodes, 10 GiB for the sums, and minutes
# for the network.
long() { # NAME STATEMENTS STEPS
    cat >"$scratch/$1.model" <<E3
model long(n = $3) {
    input x : f32[4, 8]
    input k : i32[4] in 0..8
    param w : f32[8] = ones
    h = x * w
    j = k
    c = k > 3
    s = sum(w)
    for i in 0..n {
        $2
    }
    loss mean(h^2) + sum(cast(j, f32)) + sum(cast(c, f32)) + s
}
train long { optimizer sgd(lr = 0.01) }
E3
    # shellcheck disable=SC3045 # dash and bash have it
    (ulimit -v 4000000; "$gradc" build -q "$scratch/$1.model" -o "$scratch/m.o") >"$scratch/out" 2>&1
    verdict $? "$1: $3 steps are built: $(cat "$scratch/out")"
}

long integers "j = (j * 3 + i) % 7" 1000
long bools "c = (c and k > i) or not c" 2000
long scalars "s = s * 0.999 + x[0, 0] * 0.001" 3000
long sums "h = 0.5 * h + 0.1 * sum(h, axis = 1, keep = true)" 40
long maxima "h = 0.5 * h + 0.4 * max(h, axis = 1, keep = true)" 40
long taken "h = 0.5 * h + 0.1 * insert_axis(take_along(h, k, axis = 1), 1)" 80
network='h = concat([min(h[:, ::2], h[:, 1::2]), max(h[:, ::2], h[:, 1::2])], axis = 1)'
long network "$network" 20
for name in sums taken network; do
    sed 's/n = [0-9]*/n = 6/' "$scratch/$name.model" >"$scratch/short.model"
    "$gradc" test "$scratch/short.model" --verify >"$scratch/out" 2>&1
    verdict $? "$name: differences, threads and bits: $(cat "$scratch/out")"
done
total
