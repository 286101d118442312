#!/bin/sh
# The worked examples of the textbooks: what gradc run prints, rounded to the digits
# that are published, and line.model against the normal equations.
#
#   sh tests/run/worked.sh GRADC
#
# The models say in a comment where the numbers come from and which inputs they
# are for. Arithmetic is in f32; the .out files beside the models hold its every bit.
set -u
gradc=${1:-build/gradc}
cd "$(dirname "$0")/../.." || exit 3
. tests/tally.sh
make_scratch

# same MODEL NAME NUMBER...: the line "NAME ... " of MODEL has these numbers.
same() {
    model=$1 name=$2
    shift 2
    if awk -v name="$name" -v wanted="$*" '
        index($0, name " ") == 1 {
            line = substr($0, length(name) + 1)
            sub(/\].*/, "", line)
            gsub(/[\[,]/, " ", line)
            n = split(line, got, " ")
            m = split(wanted, want, " ")
            bad = n != m
            for (i = 1; i <= m; i++) {
                decimals = index(want[i], ".") ? length(want[i]) - index(want[i], ".") : 0
                off = got[i] - want[i]
                if (off * off > (0.5 * 10 ^ -decimals) ^ 2 * 1.0000001)
                    bad = 1
            }
            found = 1
        }
        END { exit !found || bad }' "$scratch/$model.txt"; then
        ok
    else
        fail "worked: $model: $name should be $*"
        grep -F -- "$name " "$scratch/$model.txt"
    fi
}

# worked MODEL: runs it with the inputs that it names.
worked() {
    # shellcheck disable=SC2046  # a list of options
    "$gradc" run "tests/run/$1.model" $(sed -n 's/^# args: *//p' "tests/run/$1.model") \
        >"$scratch/$1.txt" || {
        fail "worked: $1: gradc run ended with status $?"
    }
}

worked square
same square loss 49
same square "d W" 42
same square "d x" 28
same square "d b" 14

worked chain
same chain loss 0.25
same chain "d w1" -4
same chain "d w2" -1
same chain "d shift" -2 # da

worked net231
same net231 y -0.14
same net231 loss 0.6498
same net231 "d W2" 0 -1.824 -0.912
same net231 "d b2" -1.14
same net231 "d b1" 0 0.57 -0.798
same net231 "d W1" 0 0 0.57 1.14 -0.798 -1.596

worked fork
same fork loss 18
same fork "d w" 18
same fork "d x" 13.5

# A transposed convolution, with and without overlap (the first eight of its elements).
worked upsample
same upsample apart 1 10 2 20 100 1000 200 2000 ...
same upsample overlap 1 12 20 103 1234 2040 300 3400 ...
same upsample "d w" 10 10 10 10
same upsample "d x" 1111 1111 1111 1111

# One sigmoid neuron, w = (0.8, 0.4), b = -0.1, x = (1.5, -2), target 1, in closed form.
worked neuron
closed() {
    awk 'BEGIN {
        z = 0.8 * 1.5 + 0.4 * -2 - 0.1
        p = 1 / (1 + exp(-z))
        printf "loss=%.6f p=%.6f dw0=%.6f dw1=%.6f db=%.6f\n",
            -log(p), p, (p - 1) * 1.5, (p - 1) * -2, p - 1
    }'
}
loss='' p='' dw0='' dw1='' db=''
eval "$(closed)"
same neuron loss "$loss"
same neuron p "$p"
same neuron "d w" "$dw0" "$dw1"
same neuron "d b" "$db"

# The program ends with a message where the fit is off by more than 1e-6.
library=$(dirname "$gradc")/libgradc.a
if "$gradc" build -q examples/line.model -o "$scratch/line.o" &&
    "${CC:-cc}" -std=c11 -Wall -Wextra -Wconversion -Wpedantic -Werror "-I$scratch" -Iruntime \
        examples/line.c "$scratch/line.o" "$library" -lz -ljansson -pthread -lm -ldl \
        -o "$scratch/line" && "$scratch/line" examples/data; then
    ok
else
    fail "worked: line against the normal equations"
fi

total
