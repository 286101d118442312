#!/bin/sh
# What lanes share out: an update that is worth it among large products is not where most of a step
# is too small to be, for what it reads and writes would go from core to core.
#
#   sh tests/run/grain.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
# shellcheck source=tests/bits.sh
. "$(dirname "$0")/../bits.sh"
make_scratch

cat >"$scratch/net.model" <<E1
use nn
model net(batch = 4, width = 512, layers = 0) {
    input x : f32[batch, width]
    y = relu(nn.linear(x, width) as wide)
    z = y[:, :64]
    for i in 0..layers { z = tanh(nn.linear(z, 64) as n[i]) }
    loss mean(z^2) + mean(y)
}
train net {
    optimizer sgd(lr = 0.1)
}
E1

# shared LAYERS: updates that are several pieces, as called or in the table of a run of calls.
shared() {
    "$gradc" build -q "$scratch/net.model" --cpu x86-64-v4 -D batch=32 -D layers="$1" \
        -o "$scratch/m.o" --emit llvm-ir="$scratch/m.ll" &&
        grep -oE '@net.k[0-9]*_sub, (ptr %[0-9]*, )?i64 [0-9]*, i(32|64) [0-9]*' "$scratch/m.ll" |
        grep -vc ' 1$'
}

if [ "$(uname -m)" = x86_64 ]; then
    check "an update among large products is shared out" [ "$(shared 0)" -gt 0 ]
    check "... beside many small layers it is not" [ "$(shared 60)" = 0 ]
else
    skip "what is shared out: figures are those of x86-64"
fi
for layers in 0 60; do
    threads=1
    bits net -D layers=$layers
    cp "$scratch/net.bits" "$scratch/one"
    threads=3
    bits net -D layers=$layers
    check "$layers layers, three lanes: the same bits" cmp "$scratch/one" "$scratch/net.bits"
done
total
