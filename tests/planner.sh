#!/bin/sh
# gradc plan --problem from the outside: reports, their check, statuses, messages.
#
#   sh tests/planner.sh GRADC
set -u
[ $# -eq 1 ] || {
    echo "usage: planner.sh GRADC" >&2
    exit 2
}
gradc=$1
cd "$(dirname "$0")/.." || exit 3
. tests/tally.sh
make_scratch

# expect STATUS TEXT COMMAND...: it ends with this status, and says this on stderr.
expect() {
    status=$1 text=$2
    shift 2
    "$@" >"$scratch/out" 2>"$scratch/err"
    got=$?
    if [ "$got" -eq "$status" ] && grep -qF -- "$text" "$scratch/out" "$scratch/err"; then
        ok
    else
        fail "$*: status $got instead of $status, or no \"$text\" in"
        head -n 3 "$scratch/out" "$scratch/err"
    fi
}

# has FILE TEXT
has() {
    if grep -qF -- "$2" "$1"; then
        ok
    else
        fail "$1 has no $2"
    fi
}

# A chain of three, whose last reads the first: a again is cheaper than keeping it.
cat >"$scratch/p.json" <<'END'
{"nodes": [
  {"name": "a", "cost": 1, "bytes": 100, "inputs": []},
  {"name": "b", "cost": 10, "bytes": 10, "inputs": [0]},
  {"name": "c", "cost": 10, "bytes": 90, "inputs": [1], "scratch": 5},
  {"name": "d", "cost": 10, "bytes": 1, "inputs": [2]},
  {"name": "e", "cost": 10, "bytes": 1, "inputs": [0, 3], "keep_until_end": true}],
 "pinned_bytes": 1000}
END
plan() {
    "$gradc" plan --problem "$scratch/p.json" "$@"
}
expect 0 '"overhead": 0,' plan --budget 2KiB --json
expect 0 '"budget": 1205,' plan --budget 100% --json
expect 0 '"cost_plan": 42,' plan --budget 1110 --json
expect 0 '"schedule": [0, 1, 2, 3, 0, 4],' plan --budget 1110 --json
expect 0 'overhead     2.4390 %, proved to be at least 2.4390 %' plan --budget 1110
expect 0 '"budget": 1110,' plan --budget min --json
expect 0 '"peak": 1110,' plan --budget min --json --plan-effort max
# shellcheck disable=SC2016  # these are no expansions
expect 4 'a budget of 1109 bytes is proved impossible: node 1 (`b`) needs 1110 bytes' \
    plan --budget 1109
expect 4 'the least budget found that works is 1110 bytes' plan --budget 1
expect 2 '--problem needs a --budget' plan
expect 2 '--budget wants bytes such as' plan --budget lots
expect 2 '--budget wants bytes such as' plan --budget=-3%
expect 2 '--plan-effort takes default and max' plan --budget min --plan-effort some
expect 2 'takes the place of a model' plan --budget min x.model
expect 3 'No such file' "$gradc" plan --problem "$scratch/none.json" --budget min

# As some editors write a file.
{
    printf '\357\273\277'
    sed 's/$/\r/' "$scratch/p.json"
} >"$scratch/marked.json"
expect 0 '"cost_plan": 42,' "$gradc" plan --problem "$scratch/marked.json" --budget 1110 --json

# A report in a file, and its check; one that was changed is refused.
expect 0 'extra cost 1, proved to be at least 1' sh -c "
    '$gradc' plan --problem '$scratch/p.json' --budget 1110 -q -o '$scratch/r.json' &&
    '$gradc' plan --problem '$scratch/p.json' --plan-in '$scratch/r.json'"
broken() {
    sed "$1" "$scratch/r.json" >"$scratch/broken.json"
    expect 1 "$2" "$gradc" plan --problem "$scratch/p.json" --plan-in "$scratch/broken.json"
}
broken 's/"budget": 1110/"budget": 1109/' 'is above the budget of 1109'
broken 's/"cost_bound": 42/"cost_bound": 43/' 'does not follow from the costs'
broken 's/"overhead": 0.02439/"overhead": 0.01439/' 'does not follow from the costs'
broken 's/"schedule": \[0, 1/"schedule": [1, 0/' 'which has not run'
broken 's/"need": \[\[\([0-9]*\),/"need": [[\1,1/' 'does not flow out'
broken 's/"keep": \[\[\([0-9]*\),-*[0-9]*/"keep": [[\1,-9223372036854775808/' 'too much is kept'
broken 's/"price": [0-9]*/"price": 0/' 'E0613'
broken 's/"retain": \[1/"retain": [0/' 'which is gone after'
# shellcheck disable=SC2016
broken 's/"offsets"/"offset"/' 'the plan needs an array `offsets`'

# Malformed ones; tests/unit/plan_problem.c has all messages.
echo '{"nodes": [' >"$scratch/bad.json"
expect 1 'bad.json:2:0:' "$gradc" plan --problem "$scratch/bad.json" --budget min
echo '{"nodes": []}' >"$scratch/bad.json"
expect 1 'error[E0610]' "$gradc" plan --problem "$scratch/bad.json" --budget min
head -c 200 "$scratch/p.json" >"$scratch/bad.json"
expect 1 'error[E0610]' "$gradc" plan --problem "$scratch/bad.json" --budget min
for code in E0610 E0611 E0612 E0613; do
    expect 0 "$code:" "$gradc" explain $code
done

# Graphs of known figures: bytes of the first convolution, the peak, plans that hold.
if command -v python3 >/dev/null; then
    python3 tests/bench/planner_graphs.py vgg16 >"$scratch/vgg16.json"
    has "$scratch/vgg16.json" '"bytes": 3288334336'
    expect 0 '"store_all": 15825108992' "$gradc" plan --problem "$scratch/vgg16.json" \
        --budget 100% --json
    for net in vgg16 unet mobilenet; do
        python3 tests/bench/planner_graphs.py $net >"$scratch/net.json"
        expect 0 'the plan holds' sh -c "
            '$gradc' plan --problem '$scratch/net.json' --budget 90% -q -o '$scratch/r.json' &&
            '$gradc' plan --problem '$scratch/net.json' --plan-in '$scratch/r.json'"
    done
else
    skip "networks from layer shapes: no python3 here"
fi
total
