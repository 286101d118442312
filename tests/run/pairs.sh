#!/bin/sh
# Sums of bf16 in pairs: a class of numerics of the processors whose dot products are quick, named in
# the header, under `precision bf16` alone; gradients agree with differences, and bits with those of
# other threads and budgets.
#
#   sh tests/run/pairs.sh GRADC
set -u
cd "$(dirname "$0")/../.." || exit 3
case ${1:-build/gradc} in
/*) gradc=$1 ;;
*) gradc=$(pwd)/${1:-build/gradc} ;;
esac
# shellcheck source=tests/tally.sh
. tests/tally.sh
make_scratch
# shellcheck source=tests/bits.sh
. tests/bits.sh

# class CPU PRECISION: of a digits model for it.
class() {
    "$gradc" build examples/digits.model --cpu "$1" --precision "$2" -q -o "$scratch/digits.o" \
        --emit kernels="$scratch/kernels"
    sed -n 's/.*_NUMERICS "\([^"]*\)".*/\1/p' "$scratch/digits.h"
}

# is CPU PRECISION CLASS KERNELS: of which so many go in pairs.
is() {
    got=$(class "$1" "$2")
    pairs=$(grep -c '^  pairs' "$scratch/kernels")
    check "$2 for $1 is of class \`$got\`, not \`$3\`" [ "$got" = "$3" ]
    check "$2 for $1 has $pairs kernels in pairs" [ $((pairs > 0)) -eq "$4" ]
}
is znver4 bf16 "fma, bf16 pairs" 1
is znver5 bf16 "fma, bf16 pairs" 1
is znver4 f32 fma 0
is znver4 f16 fma 0
is x86-64-v4 bf16 fma 0
is sapphirerapids bf16 fma 0 # where the instruction is slower than fma
is baseline bf16 mul-add 0

# The plan says so, too.
plan() {
    "$gradc" plan examples/digits.model --entry eval --precision bf16 "$@"
}
check "a plan of pairs" [ "$(plan --cpu znver4 | grep -c 'numerics .fma, bf16 pairs.')" -eq 1 ]
check "... in JSON" [ "$(plan --cpu znver4 --json | grep -c '"pairs": true')" -eq 1 ]
check "... and of none" [ "$(plan --cpu x86-64-v4 | grep -c pairs)" -eq 0 ]

# Halves that the model itself asks for are added as they always are.
cat >"$scratch/own.model" <<'END'
model own {
    input x : bf16[4, 6]
    input w : bf16[6, 5]
    loss sum(cast(x @ w, f32))
}
END
check "halves of a model in f32" "$gradc" build "$scratch/own.model" --cpu znver4 -q \
    -o "$scratch/own.o" --emit kernels="$scratch/kernels"
check "... are multiplied" grep -q '^contract' "$scratch/kernels"
check "... and added one by one" [ "$(grep -c '^  pairs' "$scratch/kernels")" -eq 0 ]

# A vector has no tile, whatever the other operand's rows; a matrix of one row has.
vector() {
    printf 'model m {\n    input x : f32[%s]\n    param w : f32[64, 5] = 0.1\n%s}\n' "$1" \
        '    loss sum((relu(x) @ w)^2)
' >"$scratch/vector.model"
    "$gradc" build "$scratch/vector.model" --cpu znver4 --precision bf16 --entry eval -q \
        -o "$scratch/vector.o" --emit kernels=- | grep -c '^  pairs'
}
check "a vector times a matrix is not in pairs" [ "$(vector 64)" -eq 0 ]
check "a row times a matrix is in pairs" [ "$(vector '1, 64')" -eq 1 ]

if ! grep -q avx512_bf16 /proc/cpuinfo; then
    skip "objects for znver4: this processor has no dot products of bf16"
    total
    exit
fi

# Odd numbers of terms, attention under a mask, a convolution.
cat >"$scratch/net.model" <<'END'
use nn
model net(batch = 6, t = 37, width = 12) {
    input x : f32[batch, 3, 13, 13]
    input q : f32[2, t, width] with grad
    param w : f32[847, 31] = normal(std = 0.05)
    param u : f32[31, 5] = normal(std = 0.2)
    h = relu(nn.conv2d(x, 7, 3) as c)
    y = relu(reshape(h, [batch, 847]) @ w) @ u
    row = iota([t, t], 0)
    s = softmax(where(iota([t, t], 1) <= row, q @ transpose(q), -inf), axis = -1)
    loss mean(y^2) + mean((s @ q)^2)
}
train net {
    optimizer adam(lr = 0.01)
    precision bf16
}
END
"$gradc" test "$scratch/net.model" --cpu znver4 >"$scratch/out" 2>&1
verdict $? "net, gradients in pairs: $(cat "$scratch/out")"
budgets net --cpu znver4
cp "$scratch/all" "$scratch/first"
for threads in 2 3; do
    bits net --cpu znver4
    check "net on $threads threads: other bits" cmp "$scratch/first" "$scratch/net.bits"
done
threads=1
total
