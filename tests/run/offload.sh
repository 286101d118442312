#!/bin/sh
# Values that are out of the block meanwhile change no bit, whether the model or a budget asks for
# that; as many bytes are moved as the plan says; and what is asked wrongly is refused in words.
#
#   sh tests/run/offload.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch

# step FILE MODEL [OPTION...]: a training step, its gradients and weights.
step() {
    to=$1
    shift
    "$gradc" run "$@" --verify --seed 3 --step --grads-out "$to.grads" --weights-out "$to.weights" \
        >"$to.text" 2>"$to.err"
}

# The same plan for both kinds of store.
rate="--offload-rate 4GiB"

# same MODEL [OPTION...]: a step on one thread and in memory, or on two and in a file, gives the bits
# of $scratch/all, and leaves no file behind.
same() {
    # shellcheck disable=SC2086  # two words
    step "$scratch/some" "$@" $rate --offload host --threads 1 && unchanged &&
        step "$scratch/some" "$@" $rate --offload "$scratch/store" --threads 2 && unchanged
}

unchanged() {
    for kind in grads weights text; do
        cmp "$scratch/all.$kind" "$scratch/some.$kind" || return 1
    done
    [ ! -e "$scratch/store" ]
}

# counted MODEL [OPTION...]: what a step has moved is what the plan says, and is not nothing.
counted() {
    "$gradc" bench "$@" --json --warmup 1 --steps 2 --threads 2 >"$scratch/bench" || return 1
    "$gradc" plan "$@" --format json --verify >"$scratch/plan" || return 1
    out=$(figure out "$scratch/bench") in=$(figure in "$scratch/bench")
    [ "${out:-0}" -gt 0 ] && [ "$out" -eq "$(figure out_bytes "$scratch/plan")" ] &&
        [ "$in" -eq "$(figure in_bytes "$scratch/plan")" ] && [ "$in" -ge "$out" ] &&
        [ "$out" -eq "$(figure planned_out "$scratch/bench")" ] &&
        [ "$in" -eq "$(figure planned_in "$scratch/bench")" ]
}

# no_dearer BUDGET MODEL [OPTION...]: offloading is a choice: it costs no more time than none.
no_dearer() {
    limit=$1
    shift
    "$gradc" plan "$@" --entry step --budget "$limit" --format json >"$scratch/plan" || return 1
    without=$(figure overhead "$scratch/plan")
    "$gradc" plan "$@" --entry step --budget "$limit" --offload host --format json \
        >"$scratch/plan" || return 1
    awk "BEGIN { exit !($(figure overhead "$scratch/plan") <= $without) }"
}

# budgets MODEL [OPTION...]: the least, and half way from there to the least without offloading.
budgets() {
    name=$(basename "$1" .model)
    step "$scratch/all" "$@"
    "$gradc" plan "$@" --budget min --format json >"$scratch/plan"
    whole=$(figure budget "$scratch/plan")
    # shellcheck disable=SC2086  # two words
    "$gradc" plan "$@" --budget min --offload host $rate --verify --format json >"$scratch/plan"
    least=$(figure budget "$scratch/plan")
    check "$name: $least bytes are the least, no more than $whole" \
        test "${least:-0}" -gt 0 -a "${least:-0}" -le "$whole"
    check "$name within $least bytes" same "$@" --budget "$least"
    check "$name within $((least + (whole - least) / 2)) bytes" same "$@" \
        --budget $((least + (whole - least) / 2))
    check "$name within $whole bytes" no_dearer "$whole" "$@"
    echo "$name: at least $whole bytes, $least where values may be offloaded"
}

# words MODEL [OPTION...]: what the model offloads.
words() {
    name=$(basename "$1" .model)
    sed 's/^\( *\)offload \([a-z0-9]* =\)/\1\2/' "$1" >"$scratch/whole.model"
    from=$1
    shift
    step "$scratch/all" "$scratch/whole.model" "$@"
    check "$name: memory, 1 thread" word_step "$from" "$@" --threads 1
    check "$name: a file, 2 threads" word_step "$from" "$@" --offload "$scratch/store" --threads 2
    check "$name: bytes" counted "$from" "$@"
}

# Files of weights name the model's text, by its hash: their tensors are compared.
tensors() {
    "$gradc" inspect "$1" | grep -v '^#'
}

word_step() {
    step "$scratch/some" "$@" || return 1
    tensors "$scratch/all.weights" >"$scratch/all.tensors"
    tensors "$scratch/some.weights" >"$scratch/some.tensors"
    [ -s "$scratch/all.tensors" ] && [ ! -e "$scratch/store" ] &&
        cmp "$scratch/all.tensors" "$scratch/some.tensors" &&
        cmp "$scratch/all.grads" "$scratch/some.grads" &&
        cmp "$scratch/all.text" "$scratch/some.text"
}

# says STATUS WORDS COMMAND...: how it ends, and what it says on standard error.
says() {
    wanted=$1 words=$2
    shift 2
    "$@" >"$scratch/out" 2>"$scratch/err"
    status=$?
    [ "$status" -eq "$wanted" ] && { [ -z "$words" ] || grep -qF -- "$words" "$scratch/err"; } && ok &&
        return
    fail "$*: status $status instead of $wanted, and not \`$words\`:"
    cat "$scratch/err"
}

# ---- words of the model -------------------------------------------------------------------

words tests/object/offload.model
words tests/object/offload.model --precision bf16
words tests/object/offload.model --budget min
cat >"$scratch/micro.model" <<'E1'
use nn
model micro(batch = 8) {
    input x : f32[batch, 32]
    input y : f32[batch, 32]
    offload a = tanh(nn.linear(x, 64))
    offload b = tanh(nn.linear(a, 64))
    c = tanh(nn.linear(b, 64))
    loss mean((nn.linear(c, 32) - y)^2)
}
train micro {
    optimizer adam(lr = 0.01)
    accumulate 4
}
E1
words "$scratch/micro.model"
sed 's/accumulate 4/guard off/' "$scratch/micro.model" >"$scratch/unguarded.model"
words "$scratch/unguarded.model"
check "gradients of what is offloaded" "$gradc" test tests/object/offload.model -D batch=2 -D width=6

# ---- budgets ------------------------------------------------------------------------------

budgets tests/object/offload.model
budgets examples/chargpt.model -D layers=3 -D width=32 -D heads=2 -D ctx=16 -D batch=3
cat >"$scratch/deep.model" <<'E1'
use nn
model deep(batch = 256, width = 48) {
    input x : f32[batch, width]
    input y : f32[batch, width]
    h = x
    for i in 0..8 {
        h = h + nn.gelu(nn.linear(nn.dropout(h, 0.1), width) as l[i])
    }
    loss mean((h - y)^2)
}
train deep {
    optimizer sgd(lr = 0.1)
}
E1
budgets "$scratch/deep.model"
budgets tests/run/recurrent.model
check "bytes within a budget" counted "$scratch/deep.model" --budget min --offload host
check "gradients within a budget" "$gradc" test examples/chargpt.model -D layers=1 -D width=8 \
    -D heads=1 -D ctx=4 -D batch=1 --budget min --offload host

# ---- what is said --------------------------------------------------------------------------

"$gradc" explain tests/object/offload.model c >"$scratch/said" 2>&1
check "explain says from where to where" grep -q \
    'offloaded: with step [0-9]* its 24576 bytes begin to go to byte [0-9]* of the store' \
    "$scratch/said"
check "explain says when it is back" grep -q 'it comes back from byte [0-9]* of the store' \
    "$scratch/said"
"$gradc" build -q tests/object/offload.model -o "$scratch/offload.o"
check "the header has the bytes of the store" grep -q '^#define OFFLOAD_OFFLOAD_BYTES [1-9]' \
    "$scratch/offload.h"
"$gradc" build -q "$scratch/whole.model" -o "$scratch/whole.o"
check "the header of others has none" test -z "$(grep 'define [A-Z]*_OFFLOAD' "$scratch/whole.h")"
sed 's/^\( *\)h = h + .*/\1offload g = nn.linear(h, width) as l[i]\n\1h = h + g * g/' "$scratch/deep.model" \
    >"$scratch/out.model"
sed 's/^\( *\)offload \([a-z]* =\)/\1\2/' "$scratch/out.model" >"$scratch/whole.model"
"$gradc" plan "$scratch/out.model" --entry step --format json >"$scratch/a.json"
"$gradc" plan "$scratch/whole.model" --entry step --format json >"$scratch/b.json"
"$gradc" plan --diff "$scratch/b.json" "$scratch/a.json" >"$scratch/said"
check "a difference of plans says it" grep -q 'bytes: offloaded; steps' "$scratch/said"

# ---- what is wrong -------------------------------------------------------------------------

says 2 "--offload wants host or a file" "$gradc" plan tests/object/offload.model --offload ""
says 2 "--offload-rate wants bytes a second such as 500MiB or 2GiB, or measured, not \`fast\`" \
    "$gradc" plan tests/object/offload.model --offload-rate fast
says 2 "--offload-rate wants bytes a second" "$gradc" plan tests/object/offload.model \
    --offload-rate 0
says 2 "--offload does not go with --problem" "$gradc" plan --problem x.json --offload host
says 2 "--offload-rate does not go with --placement" "$gradc" plan --placement x.csv \
    --offload-rate 1GiB
says 3 "cannot make /nonexistent/store" "$gradc" run tests/object/offload.model \
    --offload /nonexistent/store
: >"$scratch/mine"
says 3 "cannot make $scratch/mine" "$gradc" run tests/object/offload.model \
    --offload "$scratch/mine"
check "a file that was there is there" test -f "$scratch/mine"
says 3 "cannot make $scratch/mine" "$gradc" plan tests/object/offload.model \
    --offload "$scratch/mine" --offload-rate measured
says 0 "" "$gradc" plan tests/object/offload.model --offload host --offload-rate measured
cat >"$scratch/none.model" <<'E1'
model none {
    input x : f32[8]
    param w : f32[8] = 1
    offload v = w
    offload b = sum(sin(w) * x)
    loss b + sum(v)
}
E1
says 0 "none.model:4:5: warning[E0602]: \`offload\` has no effect: nothing is computed here" \
    "$gradc" run "$scratch/none.model" --in x=1,2,3,4,5,6,7,8
says 0 "none.model:5:17: warning[E0602]: \`offload\` has no effect here: no reverse pass reads" \
    "$gradc" run "$scratch/none.model" --in x=1,2,3,4,5,6,7,8
total
