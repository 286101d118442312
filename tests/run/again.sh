#!/bin/sh
# What a kernel computes more than once: a sum that the elements of a row or of a column read is
# summed once for all of them, whatever else is summed beside it.
#
#   sh tests/run/again.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch

# flops_of LOSS [LINE]: of a step, per element of x; LINE is before the loss.
flops_of() {
    cat >"$scratch/net.model" <<E2
use nn
model net(n = 512) {
    input x : f32[n, n]
    param g : f32[n, n] = ones
    h = x * g
    ${2:-}
    loss $1
}
train net {
    optimizer sgd(lr = 0.1)
}
E2
    "$gradc" show "$scratch/net.model" --kernels 2>"$scratch/said" |
        awk '$1 == "entry" { printf "%d\n", $(NF - 1) * 1e9 / (512 * 512); exit }'
}

# once LOSS [LINE]: some operations, and not some for each of 512 rows.
once() {
    n=$(flops_of "$@")
    if [ "${n:-0}" -ge 5 ] && [ "$n" -lt 200 ]; then
        ok
    else
        fail "$1: $n operations for each element"
        cat "$scratch/said"
    fi
}

for axis in 0 1; do
    m="mean(h, axis = $axis, keep = true)"
    v="mean((h - $m)^2, axis = $axis, keep = true)"
    once "mean((h - $m) * rsqrt($v + 0.001) * x)"
    once "mean((h - insert_axis(a, $axis)) * rsqrt(insert_axis(b, $axis) + 0.001) * x)" \
        "a, b = moments(h, axis = $axis)"
    once "mean(((h - $m) * rsqrt($v + 0.001))^2) + sum($v)"
    once "mean((h - $m) / sqrt($v + 0.001) * sigmoid(h))"
    once "sum(h * exp(-sum(h^2, axis = $axis, keep = true)))"
    once "mean(softmax(h, axis = $axis) * x)"
    once "mean(abs(h - sum(abs(h) * $m, axis = $axis, keep = true)))"
    once "max(h - max(h, axis = $axis, keep = true) * $v)"
done
once "mean((h - a) * rsqrt(b + 0.001) * x)" "a, b = moments(h, axis = 0)"

# A sum that another one's terms read, before it; the place of a maximum in a column, whose shape is
# that of a row; all of a row's sums before the first of them that reads another one.
once "mean(t) + sum(v * v)" "t = x + g * 0.5
    v = mean(tanh(t) - mean(t^2, axis = 0, keep = true), axis = 0, keep = true)"
once "mean(tanh(t) * v) + mean(max(t, axis = 0))" "t = x + g * 0.5
    v = sum(t^2 - min(x^2, axis = 1, keep = true), axis = 1, keep = true)"
once "mean(max((v - insert_axis(a, 1)) * rsqrt(insert_axis(b, 1) + 0.1), axis = 1)) + sum(t * t)" \
    "t = x + g * 0.5
    v = t - sum(h * x, axis = 0, keep = true)
    a, b = moments(v, axis = 1)"
once "sum(v * v) + mean(h^2) + mean(max(v, axis = 0))" "t = x + g * 0.5
    v = t * (t - softmax(t, axis = 0))"

total
