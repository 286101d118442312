#!/bin/sh
# `budget BYTES { ... }` around parts of a model: what is kept of them is no more, whatever the
# --budget, and no bit of a gradient changes.
#
#   sh tests/run/parts.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch
model=tests/run/parts.model
infinite=1099511627776

# run FILE [OPTION...]: gradients and what is printed.
run() {
    to=$1
    shift
    "$gradc" run "$@" --threads 1 --threads-max 1 --verify --seed 5 --grads-out "$to.grads" \
        >"$to.text" 2>&1
}

# recount FILE: of every part of its plans the number, the budget, what it is said to keep, and
# what values and ranges say: bytes of its values that the reverse pass reads, and that are there
# after the last step of the forward pass.
recount() {
    python3 - "$1" <<'PYTHON'
import json, sys

for plan in json.load(open(sys.argv[1])):
    steps, values = plan["steps"], plan["values"]
    if not any(s.get("reverse") for s in steps):  # all of it lies in a loop over micro-batches
        for part in plan.get("parts", []):
            print(part["id"], part["budget"], part["kept"], part["kept"])
        continue
    first = min(i for i, s in enumerate(steps) if s["reverse"])
    last = max(i for i, s in enumerate(steps)
               if not s["reverse"] and not s["guarded"] and s["run"] == 0 and "transfer" not in s)
    outer = {p["id"]: p["in"] for p in plan.get("parts", [])}
    for part in plan.get("parts", []):
        most = 0
        for moment in range(min(last, first - 1), max(last, first - 1) + 1):
            kept = 0
            for r in plan["ranges"]:
                value = values[r["value"]]
                at = value.get("part", -1)
                while at >= 0 and at != part["id"]:
                    at = outer[at]
                reads = any(r["value"] in steps[s]["reads"] and steps[s]["reverse"]
                            for s in range(r["from"] + 1, r["to"] + 1))
                if at >= 0 and reads and r["from"] <= moment < r["to"]:
                    kept += (value["bytes"] + 63) // 64 * 64
            most = max(most, kept)
        print(part["id"], part["budget"], part["kept"], most)
PYTHON
}

# holds OPTION...: every part keeps what it may, and is said to keep what it does.
holds() {
    "$gradc" plan "$@" --verify --json >"$scratch/plan" || return 1
    recount "$scratch/plan" >"$scratch/parts"
    awk '$3 > $2 || $3 != $4 { bad = 1 } END { exit bad || NR == 0 }' "$scratch/parts"
}

# smaller OPTION...: with these, the bits are those of no budget at all, and parts hold.
smaller() {
    run "$scratch/some" "$@" || return 1
    cmp "$scratch/all.grads" "$scratch/some.grads" &&
        cmp "$scratch/all.text" "$scratch/some.text" && holds "$@"
}

check "no budgets to speak of" run "$scratch/all" $model
check "parts of a model are counted" holds $model
most=$(awk '$1 == 0 { print $3 }' "$scratch/parts" | head -n 1)
[ "${most:-0}" -gt 10000 ]
verdict $? "the part around the loop keeps $most bytes"

# Alone, nested, in turns of a loop, in a function and in a scan; with and without --budget.
for sizes in "$((most - 1)) $infinite $infinite" "$infinite 1024 $infinite" "$infinite 0 $infinite" \
    "$infinite $infinite 9000" "$infinite $infinite 0" "$((most / 2)) 3000 40000" "1024 0 0"; do
    # shellcheck disable=SC2086  # three words
    set -- $sizes
    for extra in "" "--budget min"; do
        # shellcheck disable=SC2086  # several words
        check "all=$1 each=$2 inner=$3 $extra" smaller $model -D all="$1" -D each="$2" -D inner="$3" \
            $extra
    done
done
# Less is kept where less is asked, and what is kept is used up: the half of it is more than a third.
holds $model -D all=$((most / 2))
kept=$(awk '$1 == 0 { print $3 }' "$scratch/parts" | head -n 1)
[ "$kept" -gt $((most / 3)) ]
verdict $? "of $((most / 2)) bytes $kept are used"
grep -q '"less": true' "$scratch/plan"
verdict $? "the plan does not say that the part keeps less"

# Micro-batches, halves, more lanes, a step.
sed 's/optimizer adam(lr = 0.001)/&\n    accumulate 2\n    clip global_norm(1.0)/' $model >"$scratch/acc.model"
run "$scratch/all" "$scratch/acc.model"
check "micro-batches" smaller "$scratch/acc.model" -D all=8192 -D inner=0
check "micro-batches within a budget" smaller "$scratch/acc.model" -D all=8192 -D each=0 --budget min
run "$scratch/all" $model --precision bf16
check "bf16" smaller $model --precision bf16 -D all=8192 -D each=2048 -D inner=1024
check "gradc test" "$gradc" test $model -D all=8192 -D each=2048 -D inner=4096 --directions 1

# A budget that is refused: where it stands, the least, status 4. The next byte is enough.
cat >"$scratch/kept.model" <<'MODEL'
model m(bytes = 8KiB) {
    input x : f32[64, 64]
    param w : f32[64, 64] = ones
    budget bytes {
        keep a = tanh(x @ w)
    }
    loss sum(a * a)
}
MODEL
"$gradc" plan "$scratch/kept.model" -D bytes=16383 >"$scratch/why" 2>&1
[ $? -eq 4 ] && grep -q 'kept.model:4:5: error\[E0603\]' "$scratch/why" &&
    grep -q "the least that was found to work is 16384 bytes; \`keep\` in it asks for 16384" "$scratch/why"
verdict $? "16383 bytes of 16384 that are kept: $(cat "$scratch/why")"
check "16384 bytes of 16384 that are kept" holds "$scratch/kept.model" -D bytes=16384

# A scan in a part runs again as a whole, but for one with `keep` or `offload` in its body: then
# what is stacked of it counts, and 24 times 512 bytes of v are no less.
cat >"$scratch/loop.model" <<'MODEL'
model m(bytes = 1TiB) {
    input x : f32[4, 24, 8]
    param w : f32[8, 32] = ones
    budget bytes {
        s = scan g in x, axis = 1, s = zeros([4, 8], f32) {
            u = tanh((s + g) @ w)
            keep v = sigmoid(u * 2)
            s = s * 0.9 + (u * v) @ transpose(w) * 0.1
        }
    }
    loss sum(s * s)
}
MODEL
run "$scratch/all" "$scratch/loop.model"
check "keep in a scan: 20000 bytes" smaller "$scratch/loop.model" -D bytes=20000
"$gradc" plan "$scratch/loop.model" -D bytes=20000 >"$scratch/text"
! grep -q 'scan, again' "$scratch/text"
verdict $? "keep in a scan: it runs again"
for word in keep offload; do
    sed "s/keep/$word/" "$scratch/loop.model" >"$scratch/$word.model"
    run "$scratch/all" "$scratch/$word.model"
    "$gradc" plan "$scratch/$word.model" -D bytes=1 >"$scratch/why" 2>&1
    verdict $(($? != 4)) "$word in a scan, 1 byte: $(cat "$scratch/why")"
    least=$(sed -n 's/.*found to work is \([0-9]*\) bytes.*/\1/p' "$scratch/why")
    if [ $word = offload ]; then # carries alone
        verdict $((least != 24 * 128 + 128)) "$word in a scan: the least is $least"
    fi
    check "$word in a scan: $least bytes" smaller "$scratch/$word.model" -D bytes="$least"
    "$gradc" plan "$scratch/$word.model" -D bytes=$((least - 1)) >"$scratch/why" 2>&1
    verdict $(($? != 4)) "$word in a scan, $((least - 1)) bytes are too few"
done
# A derivative of a derivative reads what a scan stacks in two passes; in a part that keeps less, both
# read the second computation.
slopes() {
    cat >"$scratch/slopes.model" <<E1
use nn
model net(b = 5, t = 24, n = 8) {
    input x : f32[b, t, 3]
    $1
        q = nn.gru(x, n) as g
    $2
    s = nn.linear(q[:, -1], 1) as f
    d = grad(sum(s), x)
    loss mean(s) + mean((norm(d, axis = (1, 2)) - 1)^2)
}
E1
    "$gradc" run "$scratch/slopes.model" --seed 3 --grads-out "$scratch/$3" >"$scratch/out" 2>&1
    verdict $? "slopes $1: $(cat "$scratch/out")"
}
slopes "" "" plain
slopes "budget 6KiB {" "}" part
check "slopes: the same bits in a part" cmp "$scratch/plain" "$scratch/part"
"$gradc" test "$scratch/slopes.model" >"$scratch/out" 2>&1
grep -q 'exact interpreter: the same bits' "$scratch/out"
verdict $? "slopes: $(cat "$scratch/out")"

total
