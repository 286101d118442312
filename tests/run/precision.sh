#!/bin/sh
# `precision bf16` and `precision f16`: training learns as in f32, what is kept takes half the bytes,
# and a loss scale that is too large costs a step.
#
#   sh tests/run/precision.sh GRADC
set -u
cd "$(dirname "$0")/../.." || exit 3
case ${1:-build/gradc} in
/*) gradc=$1 ;;
*) gradc=$(pwd)/${1:-build/gradc} ;;
esac
# shellcheck source=tests/tally.sh
. tests/tally.sh
make_scratch

# holds EXPRESSION WHAT: of numbers, by awk.
holds() {
    if awk "BEGIN { exit !($1) }"; then
        ok
    else
        fail "$2: not $1"
    fi
}

# says STATUS WORDS COMMAND...
says() {
    wanted=$1 words=$2
    shift 2
    "$@" >"$scratch/out" 2>&1
    status=$?
    if [ "$status" -eq "$wanted" ] && grep -qF -e "$words" "$scratch/out"; then
        ok
    else
        fail "status $status, and not \`$words\`: $*"
        cat "$scratch/out"
    fi
}

# The mean loss of the sixth epoch over the digits.
last_epoch() {
    "$gradc" train examples/digits.model --data examples/data/digits.csv.gz --epochs 6 --seed 1 \
        --json --precision "$1" |
        sed -n 's/.*"epoch":6,.*"loss":\([0-9.e-]*\),.*/\1/p' |
        awk '{ sum += $1 } END { print NR == 29 ? sum / NR : "nan" }'
}
f32=$(last_epoch f32)
holds "$f32 > 0.1 && $f32 < 0.3" "the loss in f32" # it begins at 2.3
# A rounding is 2^-9 of a number in bf16, 2^-12 in f16. Measured: 7e-4 and 2e-5 of the loss.
for type in "bf16 0.004" "f16 0.0005"; do
    loss=$(last_epoch "${type% *}")
    most="${type#* } * $f32"
    holds "$loss - $f32 < $most && $f32 - $loss < $most" "the loss in $type"
done

# Bytes of activations at the peak: half of those in f32, but for sums, which are f32 (rows that an
# index adds to a table's gradient, too).
activations() {
    "$gradc" plan "$@" --cpu baseline --entry step --format json |
        sed -n 's/.*"activations": *\([0-9]*\).*/\1/p' | head -n 1
}
for model in chargpt "gpt2 -D vocab=1024 -D batch=8 -D ctx=256 -D layers=2" \
    "resnet8 -D batch=32"; do # of more, values of 4 MiB are stored that halves are not
    # shellcheck disable=SC2086  # a name and its options
    {
        set -- $model
        name=$1
        shift
        full=$(activations "examples/$name.model" "$@")
        for type in bf16 f16; do # GPT-2's maxima and sums of scores are f32 in either, 0.5207 measured
            half=$(activations "examples/$name.model" "$@" --precision "$type")
            holds "$half > 0 && $half < 0.522 * $full" "$name, activations in $type"
        done
    }
done

# A transposed convolution of four phases is halves, whatever reads it, and goes back by one product
# for each operand: with x @ a and its gradient eight in all.
cat >"$scratch/up.model" <<END
model up(batch = 4) {
    input x : f32[batch, 8]
    param a : f32[8, 4 * 6 * 6] = normal(std = 0.1)
    param w : f32[4, 2, 4, 4] = normal(std = 0.1)
    h = reshape(x @ a, [batch, 4, 6, 6])
    loss mean(conv_transpose(h, w, stride = 2, padding = 1)^2)
}
train up { optimizer sgd(lr = 0.1) }
END
for type in f32 bf16 f16; do
    n=$("$gradc" show "$scratch/up.model" --joint --precision "$type" | grep -c "contract(.*: $type\[")
    holds "$n == 8" "products of $type"
    says 0 " 0 failed" "$gradc" test "$scratch/up.model" --precision "$type"
done

# The option is the word.
model() {
    cat >"$scratch/m.model" <<END
model m(batch = 2) {
    input x : f32[batch, 3]
    param w : f32[3, 2] = [[1, 2], [3, 4], [5, 6]]
    loss mean((x @ w)^2)
}
train m {
    optimizer sgd(lr = 0.1)
    $1
}
END
}
for type in bf16 f16; do
    model "precision $type"
    "$gradc" show "$scratch/m.model" >"$scratch/word"
    model ""
    "$gradc" show "$scratch/m.model" --precision "$type" >"$scratch/option"
    if cmp -s "$scratch/word" "$scratch/option" && grep -q "$type" "$scratch/word"; then
        ok
    else
        fail "--precision $type and precision $type differ"
    fi
    says 0 "0 failed" "$gradc" test "$scratch/m.model" --precision "$type"
    says 0 "$type values were not rounded for the differences" \
        "$gradc" test "$scratch/m.model" --precision "$type"
    "$gradc" build "$scratch/m.model" --precision "$type" -q -o "$scratch/m.o"
    says 0 "#define M_PRECISION \"$type\"" cat "$scratch/m.h"
done
says 0 "#define M_LOSS_SCALE 1024" cat "$scratch/m.h"
model "precision f16(scale = 8)"
"$gradc" build "$scratch/m.model" -q -o "$scratch/m.o"
says 0 "#define M_LOSS_SCALE 8 " cat "$scratch/m.h"
says 2 "--precision takes f32, bf16 and f16, not \`f8\`" "$gradc" show "$scratch/m.model" --precision f8

# The gradient of w is 0.5 x' x w: numbers that f16 has, times its scale. 65504 is its end.
says 0 "[0.5, 1, 1.5, 2, 0, 0]" "$gradc" run "$scratch/m.model" --in x=1,0,0,0,1,0
model "precision f16(scale = 65536)"
says 1 "the gradient w is NaN at element 0: nothing was changed" \
    "$gradc" run "$scratch/m.model" --step --in x=1,0,0,0,1,0

# What is rounded follows from the model alone: a word before a step of a chain, or an output of it
# beside, changes no bit.
chain() {
    cat >"$scratch/chain.model" <<E1
use nn
model m(batch = 32) {
    input x : f32[batch, 24]
    param w, v : f32[24, 24] = normal(std = 0.5)
    h = x @ w
    $1 y = nn.gelu(h)
    z = softmax(tanh(y * 2), axis = 1)
    loss mean((z @ v)^2)
    $2
}
E1
    "$gradc" run "$scratch/chain.model" --precision bf16 --seed 5 --grads-out "$scratch/$3" >"$scratch/out" 2>&1 ||
        fail "chain $1 $2: $(cat "$scratch/out")"
}
chain "" "" plain
for word in keep recompute offload; do
    chain $word "" word
    if cmp "$scratch/plain" "$scratch/word"; then ok; else fail "$word: other bits"; fi
done
chain "" "output y" output
if cmp "$scratch/plain" "$scratch/output"; then ok; else fail "an output: other bits"; fi

# Of values that are of the half type themselves: 1/15 is no such number, and where it stood for the
# gradient of a mean, all of that was off.
for type in bf16 f16; do
    cat >"$scratch/mean.model" <<E1
model m {
    input x : ${type}[3, 5]
    param w : ${type}[5] = ones
    loss cast(mean(tanh(x * w)), f32)
}
E1
    says 0 " 0 failed" "$gradc" test "$scratch/mean.model" --verify
done

total
