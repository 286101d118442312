#!/bin/sh
# Between a whole scan and one that is cut: within a budget the last steps of scans are kept, and
# the first ones run again. Bytes and steps are those that are said, more bytes never cost more
# time, and bits are those of the whole scan.
#
#   sh tests/run/kept.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
# shellcheck source=tests/bits.sh
. "$(dirname "$0")/../bits.sh"
make_scratch

# model NAME BODY: a model of `n` steps of the inputs x, with nn, and w of [width, width].
model() {
    cat >"$scratch/$1.model" <<E1
use nn
model recur(batch = 4, n = 97, width = 16) {
    input x : f32[n, batch, width]
    param w : f32[width, width] = normal(std = 0.3)
    zero = zeros([batch, width], f32)
    $2
}
train recur {
    optimizer sgd(lr = 0.1)
    ${3:-}
}
E1
}

# ends NAME OPTION...: the most and the least bytes that it takes; share PART: so many 64ths of the way
# from these to those.
ends() {
    high=$(largest "$@") low=$(largest "$@" --budget min)
}
share() {
    echo $((low + (high - low) * $1 / 64))
}

# keeps LEAST NAME OPTION...: five budgets between, in so many of which some steps are kept, and
# not all; in others, scans that are whole or cut are cheaper.
keeps() {
    wanted=$1 name=$2 found=0
    shift 2
    bits "$name" "$@"
    cp "$scratch/$name.bits" "$scratch/all"
    ends "$name" "$@"
    for part in 12 24 36 48 60; do
        limit=$(share $part)
        again=$(field "$name" scan_steps_again --budget "$limit" "$@")
        found=$((found + (${again:-0} > 0)))
        bits "$name" --budget "$limit" "$@"
        check "$name $* within $limit: the same bits" cmp "$scratch/all" "$scratch/$name.bits"
    done
    verdict $((found < wanted)) "$name $*: steps of scans are kept within $found budgets of five"
}

# falls NAME OPTION...: 24 budgets; more bytes never cost more time, and the peak is within.
falls() {
    name=$1
    shift
    last=0 points=0
    ends "$name" "$@"
    for part in $(seq 64 -3 1); do
        limit=$(share "$part")
        grad_plan "$name" --budget "$limit" "$@" >"$scratch/plan"
        peak=$(value peak "$scratch/plan") cost=$(value cost_ns "$scratch/plan")
        verdict $((peak > limit)) "$name $*: $peak bytes within $limit"
        verdict $((cost < last)) "$name $*: $cost ns within $limit, and $last within more"
        points=$((points + (cost > last)))
        last=$cost
    done
    verdict $((points < 12)) "$name $*: of 22 budgets only $points differ in time"
}

rnn='h = tanh(g + h @ w)
        emit h'
lstm='g = g @ weight + nn.dropout(h, 0.1) @ hidden
        i, f, u, o = split(g, 4, axis = -1)
        c = sigmoid(f) * c + sigmoid(i) * tanh(u)
        h = sigmoid(o) * tanh(c)
        emit h'
model plain 'h = scan g in x, axis = 0, h = zero {
        h = tanh(g + h @ w)
    }
    loss mean(h * h)'
model used "hs, h = scan g in x, axis = 0, h = zero {
        $rnn
    }
    loss mean(h * h) + mean(hs * hs * hs)"
model lstm "param weight : f32[width, 4 * width] = uniform_fan(fan = width)
    param hidden : f32[width, 4 * width] = uniform_fan(fan = width)
    hs, h, c = scan g in x @ w, axis = 0, h = zero, c = zero {
        $lstm
    }
    loss mean(h^2) + mean(nn.dropout(hs, 0.2)^3)" 'accumulate 2'
model layers "a, h = scan g in x, axis = 0, h = zero {
        h = tanh(g + nn.dropout(sigmoid(h @ w) * h, 0.3))
        emit h
    }
    b, k = scan g in nn.dropout(a, 0.1), axis = 0, k = zero {
        k = tanh(g @ w + sigmoid(k) * g)
        emit k * k
    }
    y = scan g in b[1:n], axis = 0, y = zero {
        y = sigmoid(g - tanh(y @ w) * y)
    }
    loss mean(h * y) + mean(a * b)"
model twice "hs, h = scan g in x, axis = 0, h = zero {
        h = tanh(g + h @ w)
        emit sin(h)
    }
    d = grad(mean(h^2) + mean(hs^3), x)
    loss mean(d^2) + mean(h)"
model nested "h = scan g in x, axis = 0, h = zero {
        k = scan i in 0..5, k = h {
            k = tanh(g + k @ w)
        }
        h = h + k
    }
    loss mean(h * h)"
model middle "hs, h = scan g in x, axis = 1, h = zeros([n, width], f32) {
        h = tanh(g + sigmoid(h @ w) * h)
        emit sin(h)
    }
    loss mean(h * h) + mean(hs * x) + mean(zero)"

# Of rows of 256 bytes one is gone for each step that runs again: what one run begins with is there.
all=$(field plain peak) limit=$(($(field plain peak) - 40 * 256))
again=$(field plain scan_steps_again --budget $limit)
kept=$(field plain scan_steps_kept --budget $limit)
peak=$(field plain peak --budget $limit)
check "plain: $kept and $again steps" [ $((kept + again)) -eq 97 ]
check "plain: of 97 steps 41 run again, or more, not $again" [ "$again" -ge 41 ]
check "plain: of 97 steps 43 run again at most, not $again" [ "$again" -le 43 ]
check "plain: $((all - peak)) bytes less for $again steps" [ $((all - peak)) -eq $((again * 256)) ]
"$gradc" plan "$scratch/plain.model" --entry grad --budget $limit >"$scratch/text"
check "plain: the text says so" grep -q \
    "of 97 steps of scans the last $kept are kept, and the first $again run again: +.* % of time" "$scratch/text"

"$gradc" explain "$scratch/plain.model" h --budget 60% >"$scratch/text" 2>&1
check "plain: gradc explain says so" grep -q \
    "entry grad: .*; of 97 steps of scans the last [0-9]* are kept, and the first [0-9]* run" "$scratch/text"
"$gradc" plan "$scratch/plain.model" --entry grad --pareto >"$scratch/text"
check "plain: the curve says so" [ "$(grep -c ' steps kept, .* again' "$scratch/text")" -ge 20 ]
falls plain
falls lstm
keeps 5 plain
threads=3
keeps 5 plain -D batch=3
for words in "lstm 2" "layers 1"; do # of layers, most budgets are met cheaper by scans that are cut
    name=${words% *}
    threads=1
    keeps 3 "$name"
    keeps "${words#* }" "$name" -D n=100
    threads=2
    keeps 3 "$name" --precision bf16
done
threads=1
for steps in 1 2 3 4 5 7 16; do
    bits used -D n=$steps
    cp "$scratch/used.bits" "$scratch/all"
    low=$(largest used -D n=$steps --budget min)
    bits used -D n=$steps --budget min
    check "used, $steps steps within $low: the same bits" cmp "$scratch/all" "$scratch/used.bits"
    bits used -D n=$steps --budget $((low + 512))
    check "used, $steps steps within a row more: the same bits" cmp "$scratch/all" "$scratch/used.bits"
done
budgets used
budgets twice
budgets nested
keeps 5 middle -D batch=29 -D n=4
total
