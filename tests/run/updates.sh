#!/bin/sh
# `guard loss`: parameters are updated while the reverse pass goes on. Fewer bytes, the same
# bits, and a step whose loss is not finite changes nothing.
#
#   sh tests/run/updates.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch
cc=${CC:-cc}

# variant NAME OPTIMIZER [SETTING...]: NAME.model, which trains so.
variant() {
    to=$scratch/$1.model optimizer=$2
    shift 2
    sed '/^train/,$d' tests/run/updates.model >"$to"
    {
        echo "train updates {"
        for setting in "optimizer $optimizer" "$@"; do
            echo "    $setting"
        done
        echo "}"
    } >>"$to"
}

# trained NAME OPTION...: all parameters after some steps, in NAME.bits.
trained() {
    name=$1
    shift
    "$gradc" train "$scratch/$name.model" --quiet --verify --seed 5 --steps 4 --data "tokens=$scratch/tokens.csv" \
        --data "scale=$scratch/scale.csv" --data "next=$scratch/next.csv" --weights-out "$scratch/w" \
        "$@" >"$scratch/out" 2>&1
    verdict $? "$name $*: $(cat "$scratch/out")"
    tensors "$scratch/w" >"$scratch/$name.bits"
    rm -f "$scratch/w"
}

# same NAME OPTION...: the bits of late.bits.
same() {
    trained "$@"
    [ -s "$scratch/$1.bits" ] && cmp "$scratch/late.bits" "$scratch/$1.bits"
    verdict $? "$* $optimizer: other bits than with updates at the end"
}

# plan FILE OPTION...: of the step.
plan() {
    "$gradc" plan "$@" --entry step --threads-max 1
}

# peak FILE OPTION...: bytes of the step.
peak() {
    plan "$@" | sed -n 's/^entry step: .*(\([0-9,]*\) bytes).*/\1/p' | tr -d ,
}

# at_most BYTES PERCENT BYTES WHAT: the first takes at most so much of the second.
at_most() {
    [ "$1" -gt 0 ] && [ $((100 * $1)) -le $(($3 * $2)) ]
    verdict $? "$4: $1 bytes, more than $2 % of $3"
}

# interleaved FILE: steps of the reverse pass come after the first new parameter.
interleaved() {
    plan "$1" | awk '$3 ~ /B$/ && /_sub, guarded$/ { update = 1 }
                     $3 ~ /B$/ && /contract(_[a-z]*)?(, guarded)?$/ && !/_sub/ && update { later++ }
                     END { exit !(later > 3) }'
}

for name in tokens next; do
    awk 'BEGIN { for (r = 0; r < 32; r++) for (i = 0; i < 6; i++)
        printf "%d%s", (r * 31 + i * i * 7 + r * i) % 40, i < 5 ? "," : "\n" }' >"$scratch/$name.csv"
done
awk 'BEGIN { for (r = 0; r < 32; r++) for (i = 0; i < 96; i++)
    printf "%.3f%s", 1 + ((r * 13 + i * 29) % 17 - 8) / 10, i < 95 ? "," : "\n" }' >"$scratch/scale.csv"

# ---- bits ------------------------------------------------------------------------------------

for optimizer in 'sgd(lr = 0.1)' 'sgd(lr = 0.1, momentum = 0.9, nesterov = true)' \
    'adam(lr = 0.01)' 'adamw(lr = 0.01, weight_decay = 0.1)'; do
    variant late "$optimizer"
    trained late --threads 1
    for guard in loss off; do
        variant early "$optimizer" "guard $guard"
        same early --threads 1
        same early --threads 3
        same early --budget min
        same early --budget 90%
    done
done
for setting in 'accumulate 2' 'clip value(0.01)' 'clip global_norm(0.05)' 'freeze "up.1.*"' \
    'precision bf16'; do
    variant late 'adamw(lr = 0.01)' "$setting"
    trained late
    variant early 'adamw(lr = 0.01)' "$setting" 'guard loss'
    same early --threads 2
    same early --budget min
done

# ---- order and bytes --------------------------------------------------------------------------

variant late 'adamw(lr = 0.01)'
variant early 'adamw(lr = 0.01)' 'guard loss'
variant clipped 'adamw(lr = 0.01)' 'guard loss' 'clip global_norm(1)'
interleaved "$scratch/early.model"
verdict $? "guard loss: updates wait for the end of the reverse pass"
! interleaved "$scratch/clipped.model"
verdict $? "clip global_norm: an update does not wait for all gradients"
wide="-D width=64 -D layers=6"
# shellcheck disable=SC2086  # several words
{
    late=$(peak "$scratch/late.model" $wide)
    at_most "$(peak "$scratch/early.model" $wide)" 90 "$late" "guard loss"
    at_most "$(peak "$scratch/clipped.model" $wide)" 102 "$late" "guard loss and global_norm"
    at_most "$(peak "$scratch/early.model" $wide --budget min)" 95 \
        "$(peak "$scratch/late.model" $wide --budget min)" "guard loss within the least"
}
# GPT-2, 124 million parameters: 75 % of the activations are too few where all gradients have to be
# there before anything is changed, and 82 % of them are not: logits alone are half of the least, of
# which scores are no part any more.
sed 's/^\( *\)optimizer.*/&\n\1guard loss/' examples/gpt2.model >"$scratch/gpt2.model"
at_most "$(peak "$scratch/gpt2.model")" 87 "$(peak examples/gpt2.model)" "GPT-2 124M"
plan "$scratch/gpt2.model" -D ctx=256 --budget 65% >"$scratch/out" 2>&1
verdict $? "GPT-2 124M within 65 %: $(head -n 3 "$scratch/out")"
plan examples/gpt2.model -D ctx=256 --budget 82% >"$scratch/out" 2>&1
verdict $? "GPT-2 124M within 82 %, updates at the end: $(head -n 3 "$scratch/out")"
plan examples/gpt2.model -D ctx=256 --budget 75% >"$scratch/out" 2>&1
[ $? -eq 4 ]
verdict $? "GPT-2 124M within 75 %, updates at the end: it is not refused"

at_most "$(peak examples/gpt2.model -D ctx=256 --budget min)" 100 2056000000 "the least of GPT-2 124M"
at_most "$(peak "$scratch/gpt2.model" -D ctx=256 --budget min)" 100 1877000000 \
    "the least of GPT-2 124M with guard loss"

# What it would save is told where updates wait, and nowhere else.
early=$(peak "$scratch/early.model")
plan "$scratch/late.model" | grep -qF "with \`guard loss\` it would take $(echo "$early" |
    sed ':a; s/\([0-9]\)\([0-9]\{3\}\)\($\|,\)/\1,\2\3/; ta') bytes: "
verdict $? "what guard loss would save is not told: $(plan "$scratch/late.model" | sed -n 1,3p)"
plan "$scratch/late.model" --json | grep -q "\"guard_loss_peak\": $early,"
verdict $? "guard_loss_peak"
for name in early clipped; do
    ! plan "$scratch/$name.model" | grep -q 'guard loss'
    verdict $? "$name: it tells what it would save"
done

# ---- what is not finite ---------------------------------------------------------------------

# contract OPTION...: nothing but the counter changes in a step that is refused.
contract() {
    "$gradc" build -q "$scratch/early.model" "$@" -o "$scratch/updates.o" &&
        "$cc" -std=c11 -O1 "-I$scratch" -DNAME=updates -DARENA=UPDATES_ARENA_BYTES \
            '-DHEADER="updates.h"' -DSCRATCH=0 -DSAME_EVAL tests/object/contract.c "$scratch/updates.o" \
            -o "$scratch/contract"
    verdict $? "contract.c $*"
    "$scratch/contract" >"$scratch/out" 2>&1
    grep -v '^passed=' "$scratch/out"
    add "$(tail -n 1 "$scratch/out")"
}
contract
contract --budget min

total
