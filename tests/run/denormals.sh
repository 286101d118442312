#!/bin/sh
# `--denormals flush`: refused where there is none, a class of numerics of its own, which the header,
# the plan and the cache tell from that which keeps denormals; bits of any threads and budgets.
#
#   sh tests/run/denormals.sh GRADC
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

# refuses STATUS WORDS OPTION...: one error, and no object.
refuses() {
    wanted=$1 words=$2
    shift 2
    "$gradc" build examples/digits.model -q -o "$scratch/no.o" "$@" >"$scratch/out" 2>&1
    got=$?
    check "$*: status $got, not $wanted" [ "$got" -eq "$wanted" ]
    check "$*: $(cat "$scratch/out")" grep -qF -- "$words" "$scratch/out"
    check "$*: more than one error" [ "$(grep -c '^gradc' "$scratch/out")" -eq 1 ]
    check "$*: an object" [ ! -e "$scratch/no.o" ]
}
refuses 2 "--denormals takes keep and flush, not \`zero\`" --denormals zero

# The interpreter, which folds constants, has the mode of x86-64 only.
if ! grep -q '^flags.* fma ' /proc/cpuinfo; then
    refuses 1 "error[E0709]: no constants can be folded with denormals flushed" --denormals flush
    skip "objects that flush denormals: this is no x86-64 with fma"
    total
    exit
fi
refuses 1 "error[E0709]: objects for \`aarch64-unknown-linux-gnu\` keep denormals" \
    --denormals flush --triple aarch64-linux-gnu --cpu baseline
refuses 1 "error[E0709]: objects for \`cuda\` keep denormals" --denormals flush --target cuda

# class OPTION...: of a digits model.
class() {
    "$gradc" build examples/digits.model -q -o "$scratch/digits.o" "$@"
    sed -n 's/.*_NUMERICS "\([^"]*\)".*/\1/p' "$scratch/digits.h"
}

# is CLASS OPTION...
is() {
    wanted=$1
    shift
    got=$(class "$@")
    check "$* is of class \`$got\`, not \`$wanted\`" [ "$got" = "$wanted" ]
}
is "fma, denormals flushed" --cpu x86-64-v3 --denormals flush
is "fma, denormals flushed" --cpu znver4 --denormals flush
is "fma, bf16 pairs, denormals flushed" --cpu znver4 --precision bf16 --denormals flush
is "mul-add, denormals flushed" --cpu baseline --denormals flush
is fma --cpu x86-64-v3 --denormals keep
cp "$scratch/digits.o" "$scratch/keep.o"
is fma --cpu x86-64-v3
check "kept without the option" cmp "$scratch/keep.o" "$scratch/digits.o"

plan() {
    "$gradc" plan examples/digits.model --entry eval "$@"
}
check "a plan" [ "$(plan --denormals flush | grep -c '^denormals are flushed')" -eq 2 ]
check "... in JSON" [ "$(plan --denormals flush --json | grep -c '"denormals": "flush"')" -eq 2 ]
check "... and of none" [ "$(plan | grep -c denormals)" -eq 0 ]

# A constant that is folded, one that is not, an input, a product, and the least that is kept.
cat >"$scratch/tiny.model" <<'END'
model tiny {
    input x : f32[4]
    folded = full([2], -1e-30, f32) * 1e-10
    output a = folded
    output b = x * 1e-10
    output c = -x
    output d = x + 1e-40
    output e = cast(cast(x, f64) * 1e-12, f32)
    loss sum(x)
}
END
# gives HOW NAME VALUES
gives() {
    "$gradc" run "$scratch/tiny.model" --in x=1e-30,-1e-30,1e-20,1e-40 --denormals "$1" >"$scratch/out" 2>&1
    check "denormals of $2, $1: not $3: $(grep "^$2" "$scratch/out")" \
        grep -q "^$2 .*\[$3\]" "$scratch/out"
}
gives keep a "-1e-40, -1e-40"
gives flush a "-0, -0"
gives keep b "1e-40, -1e-40, 1e-30, 0"
gives flush b "0, -0, 1e-30, 0"
gives keep c "-1e-30, 1e-30, -1e-20, -1e-40"
gives flush c "-1e-30, 1e-30, -1e-20, -0"
gives keep d "1e-30, -1e-30, 1e-20, 1.99999e-40"
gives flush d "1e-30, -1e-30, 1e-20, 0"
gives keep e "1e-42, -1e-42, 9.9999995e-33, 0"
gives flush e "0, -0, 9.9999995e-33, 0"

# Cotangents that decay through a scan until they are denormal.
cat >"$scratch/decay.model" <<'END'
model decay(batch = 5, width = 24) {
    input x : f32[300, batch, width] with grad
    param w : f32[width, width] = normal(std = 0.15)
    h = scan u in x, axis = 0, h = zeros([batch, width]) {
        h = tanh(u * 0.1 + h @ w)
    }
    loss mean(h^2)
}
train decay {
    optimizer adam(lr = 0.01)
}
END
for threads in 1 2 3; do
    bits decay --denormals flush
    [ $threads -gt 1 ] || cp "$scratch/decay.bits" "$scratch/first"
    check "decay on $threads threads: other bits" cmp "$scratch/first" "$scratch/decay.bits"
done
threads=1
budgets decay --denormals flush
bits decay --denormals keep
check "decay has denormals" [ "$(cmp "$scratch/first" "$scratch/decay.bits" | wc -l)" -eq 1 ]
"$gradc" test "$scratch/decay.model" --denormals flush >"$scratch/out" 2>&1
verdict $? "decay, gradients: $(cat "$scratch/out")"

# Kernels in the cache are of one class.
export GRADC_CACHE="$scratch/cache"
cached() {
    "$gradc" build --json "$scratch/decay.model" -o "$scratch/$1.o" --denormals "$2" >"$scratch/told"
    sed -n 's/.*"cached": \([0-9]*\).*/\1/p' "$scratch/told"
}
cached kept keep >"$scratch/n"
check "nothing of what keeps them is in what flushes them" [ "$(cached flushed flush)" -eq 0 ]
check "all is there again" [ "$(cached again flush)" -gt 0 ]
check "the same object" cmp "$scratch/flushed.o" "$scratch/again.o"
total
