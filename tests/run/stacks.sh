#!/bin/sh
# Old and new values of a scan's carry are stacked once: bytes, and bits like those of two stacks.
#
#   sh tests/run/stacks.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
# shellcheck source=tests/bits.sh
. "$(dirname "$0")/../bits.sh"
make_scratch

# model NAME FIRST BODY LOSS [TRAIN]: a recurrence over slices of x; FIRST: results and carries.
model() {
    results=${2%%:*} first=${2#*:}
    cat >"$scratch/$1.model" <<E1
use nn
model recur(batch = 4, n = 24, width = 16) {
    input x : f32[n, batch, width]
    param w : f32[width, width] = normal(std = 0.3)
    zero = zeros([batch, width], f32)
    $results = scan g in x, axis = 0, $first {
        $3
    }
    $4
}
train recur {
    optimizer sgd(lr = 0.1)
    ${5:-}
}
E1
}

# rows NAME OPTION...: how many carries (of 256 bytes) 24 more steps take, besides the inputs' copy.
rows() {
    name=$1
    shift
    a=$(($(field "$name" peak "$@") - $(field "$name" base "$@")))
    b=$(($(field "$name" peak -D n=48 "$@") - $(field "$name" base -D n=48 "$@")))
    echo $(((b - a) / 256))
}

# takes ROWS NAME OPTION...: 24 more steps take so many.
takes() {
    wanted=$1
    shift
    got=$(rows "$@")
    [ "$got" -eq "$wanted" ]
    verdict $? "$*: $got carries for 24 steps, not $wanted"
}

# same NAME OTHER OPTION...: both have these bits; the other has two stacks.
same() {
    one=$1 two=$2
    shift 2
    bits "$one" "$@"
    bits "$two" "$@"
    check "$one, $two $*: the same bits" cmp "$scratch/$one.bits" "$scratch/$two.bits"
}

# What is emitted and an output has memory of its own: a twin with two stacks.
rnn='h = tanh(g + h @ w)
        emit h'
loss='loss mean(h * h)'
model plain 'h:h = zero' 'h = tanh(g + h @ w)' "$loss"
model twin 'hs, h:h = zero' "$rnn" "output out = hs
    $loss"
model used 'hs, h:h = zero' "$rnn" 'loss mean(h * h) + mean(hs * hs * hs)'
model half 'h:h = zero' 'h = tanh(g + nn.dropout(h, 0.1) @ w)' "$loss" 'accumulate 2'
model two 'hs, a, b:a = zero, b = zero + 1' 'k = tanh(g + a @ w + b)
        b = tanh(b @ w - a)
        a = k
        emit k' 'loss mean(a * b) + mean(hs^3)'
model apart 'hs, ks, a, b, c:a = zero, b = zero + 1, c = zero + 1' 'k = tanh(g + a @ w) * b * c
        c = b
        b = a
        a = k
        emit k, k' 'loss mean(a^2) + mean(b * hs[3]) + mean(ks^2) + mean(c)'
model twice 'hs, h:h = zero' 'h = tanh(g + h @ w)
        emit sin(h)' 'd = grad(mean(h^2) + mean(hs^3), x)
    loss mean(d^2)'

# A derivative through what a scan emits, of which one row is read.
cat >"$scratch/slopes.model" <<'E1'
model slopes(b = 3, t = 11) {
    input x : f32[b, t, 1]
    param wi : f32[2, 1] = [[0.9], [-0.7]]
    param wh : f32[2] = [0.8, -1.1]
    hs, h = scan g in x @ transpose(wi), axis = 1, h = zeros([b, 1], f32) {
        a = g + h * wh
        z = sigmoid(a[:, :1])
        h = (1 - z) * tanh(a[:, 1:]) + z * h
        emit h
    }
    d = grad(sum(hs[:, -1]^2), x)
    loss sum(d^2)
}
train slopes {
    optimizer sgd(lr = 0.1)
}
E1

# A scan over two stacks, of which one has a row more: nothing may come to lie over the other one a
# row further on than was asked for.
cat >"$scratch/shifts.model" <<'E2'
model shifts(b = 2, t = 6, n = 3) {
    input x : f32[b, t, n]
    param w : f32[n, n] = normal
    e, p, q, h = scan g in x, axis = 1, h = zeros([b, n], f32) {
        o = h
        h = tanh(g + h @ w)
        emit sigmoid(h), o, h
    }
    r, l = scan a, c in (e, q), axis = 1, s = zeros([b, n], f32) {
        s = s + c
        emit a * c
    }
    loss mean(r^2) + mean(p^2) + mean(l)
}
E2
cat >"$scratch/further.model" <<'E3'
model further {
    param w : f32 = 0.3
    f, g = scan k in 0..2, a = 0.4, b = 0.5 {
        a = tanh(w + a)
        recompute b = tanh(a + b)
    }
    loss grad(g, w)
}
E3

takes 24 plain
takes 48 twin
takes 24 plain --precision bf16
takes 48 used # and the cotangents of what is emitted
takes 72 two
same plain twin
threads=3
same plain twin
threads=1
same plain twin -D n=1
same plain twin -D n=2
one=$(field apart peak)
check "apart: $one bytes, and one memory for both would take a row more" [ "$one" -eq 51264 ]
for name in plain used half two apart; do
    budgets "$name"
    budgets "$name" --precision bf16
done
for t in 11 24; do # cut: rows of a run are a part of all rows
    budgets slopes -D t=$t
done
budgets twice -D n=36 # cut: cotangents of what is emitted are added in the order of the whole
for name in plain used half two apart twice slopes shifts further; do
    "$gradc" test "$scratch/$name.model" --verify >"$scratch/out" 2>&1
    verdict $? "differences, and threads, of $name: $(cat "$scratch/out")"
done
total
