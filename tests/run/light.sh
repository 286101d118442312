#!/bin/sh
# --budget light: elementwise values are computed again in the reverse pass, so that fewer bytes are
# kept; no contraction, convolution or scan runs twice, and no bit changes.
#
#   sh tests/run/light.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
# shellcheck source=tests/bits.sh
. "$(dirname "$0")/../bits.sh"
make_scratch

# model NAME LINE...: a network of these lines, which give logits of 10 classes.
model() {
    name=$1
    shift
    {
        cat <<E1
use nn
model net(batch = 256, width = 24) {
    input x : f32[batch, 3, 12, 12]
    input tokens : i32[batch, 16] in 0..10
    input y : i32[batch] in 0..10
E1
        printf '    %s\n' "$@"
        cat <<E1
    loss mean(nn.cross_entropy(logits, y))
}
train net {
    optimizer adamw(lr = 0.01)
    clip global_norm(1.0)
}
E1
    } >"$scratch/$name.model"
}

flat='flat = reshape(x, [batch, 432])'
deep='for i in 0..4 {'
model perceptron "$flat" 'h = nn.linear(flat, 96) as fc1' "$deep" 'h = nn.gelu(nn.linear(h, 96) as fc[i])' '}' \
    'logits = nn.linear(h, 10) as head'
model swish "$flat" 'h = nn.linear(flat, 96) as fc1' "$deep" 'h = h * sigmoid(nn.linear(h, 96) as fc[i])' '}' \
    'logits = nn.linear(h, 10) as head'
model norms 'h = nn.embedding(tokens, 10, width) as wte' 'h = nn.block(h, heads = 2) as b0' \
    'h = nn.block(h, heads = 2) as b1' 'logits = nn.linear(mean(h, axis = 1), 10) as head'
model residual 'h = nn.conv2d(x, 8, 3, padding = 1) as c0' 'h = relu(nn.batch_norm(h) as n0)' \
    'g = relu(nn.batch_norm(nn.conv2d(h, 8, 3, padding = 1) as c1) as n1)' \
    'h = relu(h + (nn.batch_norm(nn.conv2d(g, 8, 3, padding = 1) as c2) as n2))' \
    'logits = nn.linear(reshape(h, [batch, 8 * 144]), 10) as head'
model dropped "$flat" 'h = nn.linear(flat, 96) as fc1' "$deep" \
    'h = nn.dropout(sin(nn.linear(h, 96) as fc[i]), 0.3)' '}' 'logits = nn.linear(h, 10) as head'
model asked "$flat" 'recompute h = nn.gelu(nn.linear(flat, 96) as fc1)' \
    'keep g = nn.gelu(nn.linear(h, 96) as fc2)' 'logits = nn.linear(g, 10) as head'
model recurrent 's = scan t in transpose(nn.embedding(tokens, 10, width) as wte, [1, 0, 2]), axis = 0, s = zeros([batch, width]) {' \
    '    s = tanh(s + t)' '}' 'logits = nn.linear(nn.gelu(nn.linear(s, 96) as fc), 10) as head'

# runs NAME OPTION...: how often contractions and scans run in a call of `grad`.
runs() {
    name=$1
    shift
    "$gradc" plan "$scratch/$name.model" --entry grad --json "$@" |
        grep -o '"label": "[^"]*\(contract\|scan\)[^"]*"' | wc -l
}

# made_again NAME OPTION...: steps of the reverse pass that make values again, each once.
made_again() {
    name=$1
    shift
    field "$name" peak "$@" >"$scratch/peak"
    grep -o '"label": "[^"]*, again", "run": 0' "$scratch/json" | wc -l
}

# same NAME LESS OPTION...: the bits, as many contractions, and at most LESS percent of the bytes that are live, but for pinned ones.
same() {
    name=$1 less=$2
    shift 2
    bits "$name" "$@"
    cp "$scratch/$name.bits" "$scratch/all"
    bits "$name" --budget light "$@"
    check "$name $*: the same bits" cmp "$scratch/all" "$scratch/$name.bits"
    [ "$(runs "$name" "$@")" = "$(runs "$name" --budget light "$@")" ]
    verdict $? "$name $*: $(runs "$name" "$@") contractions, $(runs "$name" --budget light "$@") with light"
    all=$(($(field "$name" live_peak "$@") - $(field "$name" base "$@")))
    light=$(field "$name" live_peak --budget light "$@")
    light=$((light - $(field "$name" base --budget light "$@")))
    [ $((100 * light)) -le $((less * all)) ]
    verdict $? "$name $*: $light bytes, over $less % of $all"
    check "$name $*: it is told" grep -q '"light": true' "$scratch/json"
    few=$(made_again "$name" "$@") many=$(made_again "$name" --budget light "$@")
    [ "$few" -lt "$many" ] && remade=true || remade=false
    check "$name $*: $few and $many values made again, and remade is not $remade" \
        grep -q "\"remade\": $remade" "$scratch/json"
}

# The plan that field() has asked for last is the light one.
field() {
    name=$1 key=$2
    shift 2
    "$gradc" plan "$scratch/$name.model" --verify --entry grad --json "$@" >"$scratch/json"
    grep -o "\"$key\": *[0-9]*" "$scratch/json" | head -n 1 | grep -o '[0-9]*$'
}

same perceptron 85
same swish 100
same norms 95
same residual 100
same dropped 85
same asked 100
same recurrent 100
# So many rows that values are more than the scratch of one lane, which has products of pairs. What
# is f32 between halves is made again in any case (light.c).
same perceptron 100 --precision bf16 --threads-max 1 -D batch=1024
same norms 95 --chunk 64
threads=3
same residual 100
same norms 95 -D batch=25

# What it costs is told beside the program that keeps all.
"$gradc" plan "$scratch/perceptron.model" --entry grad --budget light >"$scratch/out"
check "its cost is told" grep -q 'contractions are not.*: +[0-9.]* % of time, as predicted$' "$scratch/out"

# The whole is right, and is what a build writes.
"$gradc" test "$scratch/norms.model" --budget light -D batch=2 -D width=8 >"$scratch/out" 2>&1
verdict $? "gradc test: $(cat "$scratch/out")"
"$gradc" build -q "$scratch/norms.model" --budget light -o "$scratch/light.o"
verdict $? "gradc build"

"$gradc" plan "$scratch/perceptron.model" --budget light --allow-split >"$scratch/out" 2>&1
status=$?
check "a batch is not split for it" [ $status -eq 2 ] && grep -q 'no --allow-split' "$scratch/out"
! "$gradc" plan "$scratch/perceptron.model" --entry init --budget light | grep -q 'computed again'
verdict $? "init computes nothing again"
"$gradc" plan --problem "$scratch/none.json" --budget light >"$scratch/out" 2>&1
check "a problem has no contractions" [ $? -ne 0 ]
total
