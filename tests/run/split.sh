#!/bin/sh
# --allow-split: a budget is kept or refused as ever, more of it is never slower, the interface is
# that of the whole batch, and so are the gradients, but for rounding.
#
#   sh tests/run/split.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch

# most KEY FILE: the largest of its values.
most() {
    sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" "$2" | sort -n | tail -n 1
}

# near FILE FILE: float gradients, of which all together differ by less than 1e-6 of their norm.
near() {
    python3 - "$1" "$2" <<'E1'
import json, struct, sys
def load(path):
    data = open(path, 'rb').read()
    n = struct.unpack('<Q', data[:8])[0]
    head, body = json.loads(data[8:8 + n]), data[8 + n:]
    at = {k: v['data_offsets'] for k, v in head.items() if k != '__metadata__'}
    return {k: struct.unpack('<%df' % ((j - i) // 4), body[i:j]) for k, (i, j) in at.items()}
a, b = load(sys.argv[1]), load(sys.argv[2])
norm = sum(x * x for t in a.values() for x in t) ** 0.5
error = sum((x - y) ** 2 for k in a for x, y in zip(a[k], b[k])) ** 0.5
print('off by %.2g of %g' % (error / norm, norm))
sys.exit(not (a.keys() == b.keys() and norm > 0 and error < 1e-6 * norm))
E1
}

# within BUDGET MODEL [OPTION...]: the plan, the object's block and the gradients.
within() {
    limit=$1
    shift
    "$gradc" plan "$@" --verify --allow-split --budget "$limit" --json >"$scratch/plan" || return 1
    [ "$(most peak "$scratch/plan")" -le "$limit" ] || return 1
    "$gradc" build "$@" --verify --allow-split --budget "$limit" -o "$scratch/m.o" --json \
        >"$scratch/built" 2>"$scratch/err" || return 1
    [ "$(figure arena_bytes "$scratch/built")" -eq "$(most peak "$scratch/plan")" ] || return 1
    # the block apart, the header is the same
    diff "$scratch/whole.h" "$scratch/m.h" | grep '^[<>]' | grep -v '_BYTES ' && return 1
    "$gradc" run "$@" --allow-split --budget "$limit" --seed 3 --grads-out "$scratch/b" \
        >"$scratch/out" 2>&1 || return 1
    command -v python3 >/dev/null || return 0
    near "$scratch/a" "$scratch/b"
}

# says STATUS WORDS COMMAND...: how it ends, and what it says on either stream.
says() {
    wanted=$1 words=$2
    shift 2
    "$@" >"$scratch/out" 2>&1
    status=$?
    [ "$status" -eq "$wanted" ] && grep -qF -- "$words" "$scratch/out"
    verdict $? "$*: status $status instead of $wanted, and not \`$words\`: $(head -n 5 "$scratch/out")"
}

# more_is_not_slower FROM TO MODEL [OPTION...]: of all entries together; never slower than without.
more_is_not_slower() {
    from=$1 to=$2 before=9e18
    shift 2
    for part in 0 1 2 3 4 5 6 7; do
        limit=$((from + (to - from) * part / 7))
        "$gradc" plan "$@" --allow-split --budget "$limit" --json >"$scratch/plan" || return 1
        now=$(sed -n 's/.*"cost_ns": \([0-9]*\),/\1/p' "$scratch/plan" | awk '{ s += $1 } END { printf "%.0f", s }')
        echo "$limit: $now ns"
        awk "BEGIN { exit !($now <= $before) }" || return 1
        before=$now
        "$gradc" plan "$@" --budget "$limit" --json >"$scratch/plan" 2>/dev/null || continue
        whole=$(sed -n 's/.*"cost_ns": \([0-9]*\),/\1/p' "$scratch/plan" | awk '{ s += $1 } END { printf "%.0f", s }')
        [ "$now" -le "$whole" ] || return 1
    done
}

# budgets MODEL [OPTION...]
budgets() {
    name=$(basename "$1" .model)
    "$gradc" plan "$@" --json >"$scratch/plan"
    all=$(most peak "$scratch/plan")
    "$gradc" plan "$@" --allow-split --budget min --json >"$scratch/plan"
    least=$(figure budget "$scratch/plan")
    splits=$(figure micro_batches "$scratch/plan")
    "$gradc" build "$@" -o "$scratch/whole.o" -q
    "$gradc" run "$@" --seed 3 --grads-out "$scratch/a" >"$scratch/out"
    check "$name: $((least - 64)) bytes are refused" \
        sh -c '! "$@" 2>/dev/null >&2' - "$gradc" plan "$@" --allow-split --budget $((least - 64))
    for part in 0 3 7; do
        limit=$((least + (all - least) * part / 8))
        check "$name within $limit bytes" within "$limit" "$@"
    done
    check "$name: more bytes are not slower" more_is_not_slower "$least" "$all" "$@"
    echo "$name: $all bytes as a whole, $least in $splits micro-batches"
}

budgets examples/digits.model
budgets examples/chargpt.model -D layers=3 -D width=32 -D heads=2 -D ctx=16 -D batch=12
cat >"$scratch/steps.model" <<'E1'
use nn
model steps(batch = 6, n = 36, width = 16) {
    input x : f32[batch, n, width]
    hs = nn.gru(x, width) as rnn
    loss mean((hs - x)^2)
    output hs
}
train steps {
    optimizer sgd(lr = 0.1)
}
E1
budgets "$scratch/steps.model"
says 0 "of 36 steps of scans the last 6 are kept, and the first 30 run again" \
    "$gradc" plan "$scratch/steps.model" --budget min --allow-split

says 2 "--allow-split is for a --budget" "$gradc" build examples/digits.model --allow-split
set -- examples/digits.model -D batch=256 --cpu baseline --budget 90% --allow-split
says 0 "the batch of 256 is taken as 2 micro-batches of 128: +" \
    "$gradc" build "$@" -o "$scratch/m.o"
says 0 "as a whole it does not fit" "$gradc" plan "$@"
says 0 '"micro_batches": 2,' "$gradc" plan "$@" --json
says 0 "In micro-batches: the batch of 256" "$gradc" plan "$@" --format html
says 0 "the batch is not split: the loss is not linear in a sum or mean over the rows of the batch, in \`bn1\`" \
    "$gradc" plan examples/resnet8.model -D batch=4 --budget min --allow-split
says 0 '"unsplit": "the loss is not linear' \
    "$gradc" plan examples/resnet8.model -D batch=4 --budget min --allow-split --json
says 4 "; the batch is not split: the loss is not linear" \
    "$gradc" plan examples/resnet8.model -D batch=4 --budget 1 --allow-split
says 0 "threads: the same bits" \
    "$gradc" test examples/digits.model -D batch=4 --budget min --allow-split --directions 1

# A step of four batches of its own is one of eight, a partial one too.
cat >"$scratch/four.model" <<'E1'
use nn
model four(batch = 4) {
    input x : f32[batch, 16] with grad
    input label : i32[batch] in 0..3
    h = nn.linear(relu(nn.linear(x, 64) as fc1), 3) as fc2
    loss mean(nn.cross_entropy(h, label, weight = [1, 2, 3]))
    output h
}
train four {
    optimizer sgd(lr = 0.1 * batch)
    accumulate 4
}
E1
for rows in 16 5; do
    for how in "" "--budget min --allow-split"; do
        # shellcheck disable=SC2086  # several words
        "$gradc" run "$scratch/four.model" --seed 3 --rows $rows $how --step \
            --grads-out "$scratch/g${#how}" --weights-out "$scratch/w${#how}" >"$scratch/out" 2>&1
        verdict $? "four $how: $(cat "$scratch/out")"
    done
    grep -q 'the batch of 4 is taken as 2 micro-batches of 2' "$scratch/out"
    verdict $? "four: the batch is not split"
    if command -v python3 >/dev/null; then
        check "four: gradients of $rows rows" near "$scratch/g0" "$scratch/g${#how}"
        check "four: parameters after $rows rows" near "$scratch/w0" "$scratch/w${#how}"
    else
        skip "gradients of micro-batches: no python3 here"
    fi
done
total
