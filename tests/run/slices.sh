#!/bin/sh
# A model that writes its steps out, each on a slice of its own, has one kernel for all of them, and
# each call begins where its slice does (compiler/pass/share_kernels.c): 800 steps took 5 s to build.
# What the kernels give is what one operation over all slices gives.
#
#   sh tests/run/slices.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch

# NAME MOST: gradients, threads and bits; so many kernels at most, with 32 steps and with 48
few_kernels() {
    for t in 32 48; do
        "$gradc" build "$scratch/$1.model" -D t=$t -o "$scratch/m.o" >"$scratch/out" 2>&1
        n=$(sed -n 's/.*, \([0-9]*\) kernels,.*/\1/p' "$scratch/out")
        [ -n "$n" ] && [ "$n" -le "$2" ]
        verdict $? "$1 of $t steps has $n kernels of at most $2: $(cat "$scratch/out")"
    done
    "$gradc" test "$scratch/$1.model" --verify >"$scratch/out" 2>&1
    verdict $? "$1: differences, threads and bits: $(cat "$scratch/out")"
}

# Values and norms of the two models agree to 1e-5.
same_numbers() {
    for m in "$1" "$2"; do
        "$gradc" run -q "$scratch/$m.model" | sed 's/\[.*\]  shape/shape/' >"$scratch/$m.out"
    done
    awk 'NR == FNR { value[FNR] = $NF; n = FNR; next }
        { d = $NF - value[FNR]; if (d < 0) d = -d; if (d > 1e-5 * (1 + $NF)) bad = 1 }
        END { exit bad || FNR != n || n < 2 }' "$scratch/$1.out" "$scratch/$2.out"
    verdict $? "$1 gives what $2 does: $(cat "$scratch/$1.out" "$scratch/$2.out")"
}

cat >"$scratch/rnn.model" <<'E1'
model rnn(batch = 3, t = 32, w = 13) {
    input x : f32[batch, t, w]
    param a : f32[w, w] = normal(std = 0.3)
    param b : f32[w, w] = normal(std = 0.3)
    h = zeros([batch, w])
    hs = []
    for i in 0..t {
        h = tanh(x[:, i, :] @ a + h @ b)
        hs = hs + [h]
    }
    loss mean((stack(hs, 1) - x)^2)
}
E1
cat >"$scratch/scanned.model" <<'E1'
model scanned(batch = 3, t = 32, w = 13) {
    input x : f32[batch, t, w]
    param a : f32[w, w] = normal(std = 0.3)
    param b : f32[w, w] = normal(std = 0.3)
    hs, h = scan u in x, axis = 1, h = zeros([batch, w]) {
        h = tanh(u @ a + h @ b)
        emit h
    }
    loss mean((hs - x)^2)
}
E1
few_kernels rnn 12
same_numbers rnn scanned

# Parts of one matrix by columns, and products of them.
cat >"$scratch/heads.model" <<'E1'
model heads(batch = 2, places = 10, t = 16, w = 8) {
    input x : f32[batch, places, 3 * t * w]
    param o : f32[t * w, 5] = normal(std = 0.3)
    out = []
    for i in 0..t {
        q = x[:, :, w*i : w*i + w]
        k = x[:, :, t*w + w*i : t*w + w*i + w]
        v = x[:, :, 2*t*w + w*i : 2*t*w + w*i + w]
        p = softmax(q @ transpose(k, [0, 2, 1]), axis = -1)
        out = out + [p @ v]
    }
    loss mean((concat(out, 2) @ o)^2)
}
E1
cat >"$scratch/at_once.model" <<'E1'
model at_once(batch = 2, places = 10, t = 16, w = 8) {
    input x : f32[batch, places, 3 * t * w]
    param o : f32[t * w, 5] = normal(std = 0.3)
    y = transpose(reshape(x, [batch, places, 3, t, w]), [2, 0, 3, 1, 4])
    p = softmax(y[0] @ transpose(y[1], [0, 1, 3, 2]), axis = -1)
    out = transpose(p @ y[2], [0, 2, 1, 3])
    loss mean((reshape(out, [batch, places, t * w]) @ o)^2)
}
E1
few_kernels heads 14
same_numbers heads at_once

# Slices of parameters, of which matrices are laid out by the compiler, and windows of an input that
# lap over each other.
cat >"$scratch/layers.model" <<'E1'
model layers(batch = 5, t = 12, w = 32) {
    input x : f32[batch, 2 * t + w]
    param a : f32[t, w, w] = normal(std = 0.3)
    param b : f32[t, w] = normal(std = 0.3)
    s = 0
    for i in 0..t {
        s = s + sum(tanh(x[:, 2*i : 2*i + w] @ a[i] + b[i]), axis = 1)
    }
    loss mean(s * s)
}
train layers { optimizer adamw(lr = 0.1) }
E1
cat >"$scratch/grouped.model" <<'E1'
model grouped(batch = 5, t = 12, w = 32) {
    input x : f32[batch, 2 * t + w]
    param a : f32[t, w, w] = normal(std = 0.3)
    param b : f32[t, w] = normal(std = 0.3)
    u = []
    for i in 0..t { u = u + [x[:, 2*i : 2*i + w]] }
    s = sum(tanh(stack(u, 0) @ a + reshape(b, [t, 1, w])), axis = [0, 2])
    loss mean(s * s)
}
E1
few_kernels layers 26
same_numbers layers grouped
total
