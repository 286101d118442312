#!/bin/sh
# Turns of loops that carry nothing to one another: lanes take whole turns, each in a workspace of
# its own, where there is room for it and work enough; bits are those of one lane, however many
# there are and whatever the budget.
#
#   sh tests/run/turns.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
# shellcheck source=tests/bits.sh
. "$(dirname "$0")/../bits.sh"
make_scratch

# model NAME ATTEND: attention over 256 places, whose heads are 8 wide.
model() {
    cat >"$scratch/$1.model" <<E1
use nn
model net(batch = 1, heads = 6, t = 256, width = 48) {
    input x : f32[batch, t, width]
    q, k, v = split(nn.linear(x, 3 * width) as qkv, 3, axis = -1)
    y = $2
    y = reshape(transpose(y, [0, 2, 1, 3]), [batch, t, width])
    y = nn.mlp(y, [8 * width, width]) as mlp # its scratch is room for what turns pack
    loss mean((y - x)^2)
}
train net {
    optimizer adamw(lr = 0.01)
    ${3:-}
}
E1
}

three='nn.heads_of(q, heads), nn.heads_of(k, heads), nn.heads_of(v, heads)'
model causal "nn.attend($three)"
model all "nn.attend($three, causal = false)"
model dropped "nn.attend($three, rate = 0.1)"
model summed "nn.attend($three)" "accumulate 2"
model guarded "nn.attend($three)" "guard loss"

# at_once NAME OPTION...: loops of the step whose turns may run at once.
at_once() {
    name=$1
    shift
    "$gradc" build -q "$scratch/$name.model" --entry step --verify -o "$scratch/m.o" \
        --emit kernels=- "$@" 2>"$scratch/messages" | grep -c 'loop t[0-9] < [0-9]*, [0-9]* at once {$'
}

for name in causal all dropped summed guarded; do
    for batch in 1 3; do
        threads=1
        bits "$name" -D batch=$batch
        cp "$scratch/$name.bits" "$scratch/one"
        check "$name of $batch: turns run at once" [ "$(at_once "$name" -D batch=$batch)" -gt 0 ]
        check "$name of $batch, one lane: none do" \
            [ "$(at_once "$name" -D batch=$batch --threads-max 1)" -eq 0 ]
        for threads in 2 3 4 5 8; do
            bits "$name" -D batch=$batch
            check "$name of $batch, $threads lanes: the same bits" \
                cmp "$scratch/one" "$scratch/$name.bits"
        done
        threads=2
        bits "$name" -D batch=$batch --threads-max 2
        check "$name of $batch, two lanes at most: the same bits" \
            cmp "$scratch/one" "$scratch/$name.bits"
        bits "$name" -D batch=$batch --budget min
        check "$name of $batch, the least budget: the same bits" \
            cmp "$scratch/one" "$scratch/$name.bits"
        check "$name of $batch, a budget: each byte is the planner's" \
            [ "$(at_once "$name" -D batch=$batch --budget min)" -eq 0 ]
    done
done

# What it takes: a sixth at most.
for name in causal dropped; do
    for batch in 1 3 5; do
        all=$(field "$name" peak -D batch=$batch) one=$(field "$name" peak -D batch=$batch --budget 100%)
        check "$name of $batch: $all bytes where $one would do" [ "$all" -le $((one + one / 6)) ]
        check "$name of $batch: $all bytes are planned for turns" [ "$all" -ge "$one" ]
    done
done

# What is said is done: as many functions that run turns as loops that are to; plans that say so have
# loops that do. Among them inputs that turns read row by row, and kernels that want the scratch of
# several lanes.
root=$(dirname "$0")/../..
as_said() {
    plans=$("$gradc" plan "$@" | grep -c 'turns at once')
    "$gradc" build -q "$@" --verify -o "$scratch/m.o" --emit kernels=- >"$scratch/out" 2>&1
    verdict $? "build $*"
    loops=$(grep -c 'loop t[0-9] < [0-9]*, [0-9]* at once {$' "$scratch/out")
    functions=$(nm "$scratch/m.o" | grep -c '\.turns\.[0-9]*$')
    check "$*: $loops loops, $functions functions" [ "$loops" -eq "$functions" ]
    check "$*: $plans plans, $loops loops" [ "$plans" -le "$loops" ]
}
rows=$root/tests/bench/models/attention-b4-t1024.model
as_said "$rows" -D batch=12 -D heads=1 -D ctx=512
as_said "$rows" -D batch=12 -D heads=2 -D ctx=512
as_said "$rows" -D batch=2 -D heads=6 -D ctx=512
as_said "$root/tests/object/lacking.model" --chunk 64
as_said "$root/tests/object/turns.model"
as_said "$root/tests/object/turns.model" -D width=2 -D heads=1 -D batch=24 --chunk 64
as_said "$scratch/causal.model" -D batch=2

# A turn that starts from what the one before it gave.
cat >"$scratch/recur.model" <<'E1'
model recur(n = 64, width = 64) {
    input x : f32[n, width, width]
    param w : f32[width, width] = normal(std = 0.1)
    h = scan u in x, axis = 0, h = zeros([width, width]) {
        h = tanh(h @ w + u)
    }
    loss mean(h)
}
train recur { optimizer sgd(lr = 0.1) }
E1
bits recur
check "turns that carry run in order" [ "$(at_once recur)" -eq 0 ]
total
