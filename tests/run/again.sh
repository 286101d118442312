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
    "$gradc" show "$scratch/net.model" --kernels |
        awk '$1 == "entry" { printf "%d\n", $(NF - 1) * 1e9 / (512 * 512); exit }'
}

# once LOSS [LINE]: some operations, and not some for each of 512 rows.
once() {
    n=$(flops_of "$@")
    if [ "${n:-0}" -ge 5 ] && [ "$n" -lt 200 ]; then
        ok
    else
        fail "$1: $n operations for each element"
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

total
