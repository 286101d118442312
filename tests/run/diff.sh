#!/bin/sh
# gradc plan --diff: what a budget changes in a plan; what is no plan is refused.
#
#   sh tests/run/diff.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch

# says STATUS WORDS ARGUMENT...: how it ends, and what it says.
says() {
    wanted=$1 words=$2
    shift 2
    "$gradc" plan "$@" >"$scratch/out" 2>&1
    [ $? -eq "$wanted" ] && grep -qF -- "$words" "$scratch/out"
    verdict $? "$*: not status $wanted with \`$words\`: $(cat "$scratch/out")"
}

a=$scratch/a.json b=$scratch/b.json
"$gradc" plan examples/chargpt.model -D batch=2 --cpu baseline --threads-max 1 --json >"$a"
"$gradc" plan examples/chargpt.model -D batch=2 --cpu baseline --threads-max 1 --budget 97% --json >"$b"

# peak FILE ENTRY
peak() {
    grep -A 1 "\"entry\": \"$2\"" "$1" | sed -n 's/.*"peak": \([0-9]*\),/\1/p'
}

says 0 "entry step" --diff "$a" "$b"
says 0 "$(peak "$a" step) -> $(peak "$b" step), -" --diff "$a" "$b"
says 0 ": computed again; steps " --diff "$a" "$b"
says 0 ": kept; steps " --diff "$b" "$a"
says 0 "  run again                      0 -> " --diff "$a" "$b"
says 0 "  peak, bytes      " --diff "$a" "$a"
! grep -q -e '->' -e '^  [-+~]' "$scratch/out"
verdict $? "a plan differs from itself: $(cat "$scratch/out")"
says 0 '"before": {"peak": '"$(peak "$a" step)" --diff "$a" "$b" --json
says 0 '"after": {"peak": '"$(peak "$b" step)" --diff "$a" "$b" --json
"$gradc" plan examples/digits.model --entry eval --json >"$scratch/eval.json"
says 0 "entry step is in $a alone" --diff "$a" "$scratch/eval.json"
says 0 "  - h.0.attn.c_attn.weight, parameters" --diff "$a" "$scratch/eval.json"
says 0 "  + wte, parameters, " --diff "$scratch/eval.json" "$a"

# bad WORDS TEXT: a file of this text.
bad() {
    printf '%s\n' "$2" >"$scratch/bad.json"
    says 1 "error[E0614]: $scratch/bad.json: $1" --diff "$a" "$scratch/bad.json"
}

bad "this is no list of plans" '{}'
bad "this is no list of plans" '[]'
bad "plan 0 is no object" '[1]'
bad "line 1, column " 'use nn'
bad "a plan needs a text \`entry\`" '[{"entry": 3}]'
bad "a plan needs a number \`peak\`" '[{"entry": "step", "peak": -1}]'
says 2 "--diff needs two files" --diff "$a"
says 2 "--diff needs two files" --diff "$a" "$b" "$a"
says 2 "--budget does not go with --diff" --diff "$a" "$b" --budget 1MiB
says 3 "nothing.json: No such file" --diff "$a" "$scratch/nothing.json"

# Cut anywhere, or with another number in it: one message, and never a crash.
bytes=$(wc -c <"$scratch/eval.json")
for i in $(seq 1 40); do
    head -c $((bytes * i / 41)) "$scratch/eval.json" >"$scratch/bad.json"
    says 1 "error[E0614]: $scratch/bad.json: line " --diff "$scratch/bad.json" "$a"
done
sed 's/"value": [0-9]*/"value": 100000/' "$scratch/eval.json" >"$scratch/bad.json"
says 1 "a plan needs a number \`value\`" --diff "$a" "$scratch/bad.json"

total
