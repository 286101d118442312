#!/bin/sh
# Chains (compiler/target/cpu/chain.h): the training entries of a convolution network whose values no
# cache holds have some, on each of two processors, and so have those of a network of depthwise
# convolutions; a small one has none. Bits are the same with one lane and with several, and with
# other tiles and other chains. A profile, which has none, says so.
#
#   sh tests/run/chain.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
# shellcheck source=tests/bits.sh
. "$(dirname "$0")/../bits.sh"
make_scratch

cat >"$scratch/net.model" <<'E1'
use nn
model net(batch = 32, width = 16) {
    input x : f32[batch, 4, 32, 32]
    input y : i32[batch] in 0..10
    h = nn.conv2d(x, width, kernel = 3, padding = 1, bias = false) as first
    h = relu(nn.batch_norm(h) as norm)
    for i in 0..2 {
        z = nn.conv2d(h, width, kernel = 3, padding = 1, bias = false) as conv[i]
        h = h + relu(nn.batch_norm(z) as bn[i])
    }
    loss mean(nn.cross_entropy(nn.linear(nn.global_avg_pool(h), 10) as fc, y))
}
train net {
    optimizer sgd(lr = 0.1)
}
E1

# Windows within a channel: lanes along channels hand on to products, and take from them.
cat >"$scratch/separable.model" <<'E2'
use nn
model separable(batch = 16, width = 48) {
    input x : f32[batch, 8, 24, 24]
    input y : i32[batch] in 0..10
    h = clamp(nn.conv2d(x, width, kernel = 1) as wide, 0, 6)
    h = clamp(nn.conv2d(h, width, kernel = 3, padding = 1, groups = width) as depth, 0, 6)
    h = nn.conv2d(h, 8, kernel = 1) as narrow
    loss mean(nn.cross_entropy(nn.linear(nn.global_avg_pool(h), 10) as fc, y))
}
train separable {
    optimizer sgd(lr = 0.1)
}
E2

# chains MODEL CPU ENTRY OPTION...: how many the entry has.
chains() {
    name=$1 cpu=$2 of=$3
    shift 3
    "$gradc" build -q "$scratch/$name.model" --verify --cpu "$cpu" -o "$scratch/m.o" "$@" || return 1
    nm "$scratch/m.o" | grep -c "$name\.$of\.chain"
}

if [ "$(uname -m)" = x86_64 ]; then
    for cpu in x86-64-v3 sapphirerapids; do
        for entry in eval grad step; do
            n=$(chains net "$cpu" "$entry")
            wanted=2
            [ "$cpu" = sapphirerapids ] && wanted=5
            [ "$entry" = eval ] && wanted=0 # it has no sums over the batch
            [ "$n" -eq "$wanted" ]
            verdict $? "$cpu: $entry has $n chains, not $wanted"
        done
        n=$(chains net "$cpu" step -D batch=4)
        [ "$n" -eq 0 ]
        verdict $? "$cpu: a small step has $n chains"
    done
    for cpu in skylake-avx512 sapphirerapids; do
        for entry in grad step; do
            n=$(chains separable "$cpu" "$entry")
            [ "$n" -eq 1 ]
            verdict $? "$cpu: $entry of separable convolutions has $n chains, not 1"
        done
    done
fi

if grep -q -w avx2 /proc/cpuinfo 2>/dev/null; then
    profiled="bench $scratch/net.model --cpu x86-64-v3 --threads 1 --steps 1 --warmup 1 --profile"
    # shellcheck disable=SC2086  # several words
    "$gradc" $profiled >"$scratch/text" 2>&1 &&
        grep -q '^kernels ran one after another, to be timed; else those of 2 chains ' "$scratch/text"
    verdict $? "$(cat "$scratch/text")"
    # shellcheck disable=SC2086
    "$gradc" $profiled --json >"$scratch/text" 2>&1 && grep -q '"chains": 2, "steps"' "$scratch/text"
    verdict $? "$(cat "$scratch/text")"
else
    skip "a profile of x86-64-v3: this processor has no AVX2"
fi

for model in net separable; do
    same_bits $model
done
total
