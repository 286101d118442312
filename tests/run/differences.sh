#!/bin/sh
# gradc test: what it compares, and that a wrong derivative is found. That an object of other bits than
# the interpreter's is found, is shown by planting one (tests/plants).
#
#   sh tests/run/differences.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch

# gradients STATUS NAME...: how `gradc test` ends for the model on standard input, and
# what it names as compared.
gradients() {
    wanted=$1
    shift
    cat >"$scratch/m.model"
    "$gradc" test "$scratch/m.model" >"$scratch/out" 2>&1
    status=$?
    for name in "$@"; do
        grep -q "^$name .*elements, worst" "$scratch/out" || status="$status, without $name"
    done
    if [ "$status" = "$wanted" ]; then
        ok
    else
        fail "gradc test: status $status instead of $wanted"
        cat "$scratch/m.model" "$scratch/out"
    fi
}

# agreed WORDS OPTION...: of a sum over more than a vector, whatever the object is for.
agreed() {
    words=$1
    shift
    cat >"$scratch/sum.model" <<'E1'
use nn
model sum_of_many(batch = 3) {
    input x : f32[batch, 77]
    param w : f32[77] = normal
    y = sum(nn.dropout(tanh(x * w), 0.25), axis = 1)
    output y
    loss mean(y^2)
}
E1
    "$gradc" test "$scratch/sum.model" "$@" >"$scratch/out" 2>&1
    check "gradc test $*: not \"$words\": $(cat "$scratch/out")" \
        grep -q "^the exact interpreter$words" "$scratch/out"
}
if [ "$(uname -m)" != x86_64 ]; then
    agreed ": the same bits"
elif grep -qw fma /proc/cpuinfo; then
    agreed ": the same bits"
    agreed ": the same bits" --denormals flush
    agreed ": the same bits" --cpu x86-64-v3 --precision bf16
    agreed " was not asked" --cpu baseline
else
    agreed " was not asked"
fi

# Straight through a rounding: differences hold what stop_gradient hides.
gradients 0 w v <<'E1'
model through {
    input x : f32[4]
    param w : f32[4] = normal(mean = 3)
    param v : f32[4] = normal(mean = 2)
    y = w * x
    loss sum(((y + stop_gradient(round(y) - y)) * v)^2)
}
E1
gradients 0 w x <<'E1'
model inputs(batch = 3) {
    input x : f32[batch, 4] with grad
    param w : f32[4] = normal(std = 0.5)
    loss mean(tanh(x * w))
}
train inputs {
    optimizer sgd(lr = 0.1)
    accumulate 2
}
E1
# What is hidden within steps of a scan, within micro-batches, and within both.
gradients 0 w u <<'E1'
model nested(batch = 2, steps = 3) {
    input x : f32[batch, steps, 4]
    param w : f32[4] = normal(mean = 1.5)
    param u : f32[4] = normal(mean = 2)
    h = scan xt in x, axis = 1, h = zeros([batch, 4], f32) {
        z = h * u + xt * w
        k = scan i in 0..2, k = zeros([batch, 4], f32) {
            k = k * 0.5 + z * w + stop_gradient(round(z * 4) - 4 * z)
        }
        h = tanh(z + stop_gradient(round(3 * z) - 3 * z) + 0.1 * k)
    }
    loss mean((h + stop_gradient(round(h) - h))^2)
}
train nested {
    optimizer sgd(lr = 0.1)
    accumulate 3
}
E1
# A rule that is half of the derivative.
gradients 1 w <<'E1'
fn square(x) {
    return x^2
} vjp(ct) {
    return ct * x
}
model wrong {
    param w : f32[3] = normal(mean = 1)
    loss sum(square(w))
}
E1
# A default that is made of another argument is an argument as well; a number is none, but what the
# rule returns for it may stand there.
gradients 0 w <<'E1'
fn by(x, y = x * 2) {
    return x * y
} vjp(ct) {
    return ct * y, ct * x
}
model defaults {
    param w : f32[3] = normal(mean = 1)
    param v : f32[3] = normal(mean = 1)
    loss sum(by(w)) + sum(by(w, v)) + sum(by(v, 3)) + sum(by(v, w * v))
}
E1
gradients 0 w <<'E1'
fn scaled(x, by = 2) {
    return x * by
} vjp(ct) {
    return ct * by
}
model numbers {
    param w : f32[3] = normal(mean = 1)
    loss sum(scaled(w)) + sum(scaled(w, 3))
}
E1
# Nothing but kinks: no check is no success.
gradients 1 w <<'E1'
model kinks {
    param w : f32[3] = zeros
    loss sum(abs(w))
}
E1
# Elements are moved one by one as long as that takes no more than 3e10 flops.
gradients 0 b <<'E1'
model dear {
    input x : f32[400, 400]
    param b : f32[64] = ones
    loss mean((x @ x)[0:64, 0] * b)
}
E1
check "gradc test: elements of a dear model: $(cat "$scratch/out")" \
    grep -qx "1 small tensors were not moved element by element: a loss takes 128 Mflop" "$scratch/out"
# A warning is said once.
gradients 0 w <<'E1'
model warned {
    param w : f32[3] = ones
    unused = w * 2
    loss sum(w^2)
}
E1
if [ "$(grep -c 'warning\[' "$scratch/out")" -eq 1 ]; then
    ok
else
    fail "gradc test: a warning is not said once"
    cat "$scratch/out"
fi
total
