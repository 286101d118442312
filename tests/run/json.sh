#!/bin/sh
# What goes wrong is one JSON object a line under --json, whatever it is: diagnostics, usage,
# files, data, checkpoints. The status is the same as without.
#
#   sh tests/run/json.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch

# bad STATUS WORDS COMMAND...: how it ends with and without --json, which comes last; what is
# said then has the keys of a diagnostic, in their order, and no line of it is anything else.
bad() {
    wanted=$1 words=$2
    shift 2
    "$gradc" "$@" >/dev/null 2>"$scratch/text"
    status=$?
    "$gradc" "$@" --json >/dev/null 2>"$scratch/json"
    [ $? -eq "$wanted" ] && [ "$status" -eq "$wanted" ] && grep -qF -- "$words" "$scratch/text" &&
        grep -qF -- "$words" "$scratch/json" &&
        ! grep -qvE '^\{"severity":"(error|warning)","code":(null|"E[0-9]{4}"),"file":.*"message":".*","ranges":\[.*\],"notes":\[.*\],"calls":\[.*\],"help":(null|".*")\}$' "$scratch/json"
    verdict $? "$*: status $status instead of $wanted, or not \`$words\`: $(cat "$scratch/json")"
}

cat >"$scratch/m.model" <<'E1'
model m(batch = 2) {
    input x : f32[batch]
    input k : i32[batch] in 0..3
    param w : f32 = 1
    loss mean((w * x - cast(k, f32))^2)
}
train m {
    optimizer sgd(lr = 0.5)
}
E1
printf '1,0\n2,1\n3,7\n' >"$scratch/d.csv"
printf '1,0\n2,a\n' >"$scratch/bad.csv"
printf 'no checkpoint' >"$scratch/c.gck"
printf 'model m {\n    loss q\n}\n' >"$scratch/bad.model"
model=$scratch/m.model

bad 1 "there is no \`q\`" check "$scratch/bad.model"
bad 2 "there is no option --sed here; did you mean --seed?" run "$model" --sed=1
bad 2 "there is no command \`chekc\`; did you mean \`check\`?" chekc
bad 2 "build needs M.model" build
bad 2 "--seed wants a whole number" run "$model" --seed=x
bad 3 "nothing.model" check "$scratch/nothing.model"
bad 3 "nothing.safetensors" run "$model" --weights "$scratch/nothing.safetensors"
bad 1 "the model has no input \`y\`" run "$model" --in y=1
bad 3 "line 2, column 2: not a number" train "$model" --data "$scratch/bad.csv"
bad 1 "d.csv: row 3 (the first is 1): 7 is outside of 0..3" train "$model" --data "$scratch/d.csv"
printf '1,0\n2,1\n' >"$scratch/d.csv"
bad 3 "c.gck" train "$model" --data "$scratch/d.csv" --checkpoint "$scratch/c.gck" --resume
bad 2 "no definition of the library" explain nn.nothing
bad 3 "nothing.npy" inspect "$scratch/nothing.npy"
bad 4 "a budget of 64 B (64 bytes) is proved impossible" build "$model" --budget 64 -o "$scratch/m.o"

# The help of a usage error is a field of its own.
"$gradc" build --json 2>"$scratch/json"
# shellcheck disable=SC2016  # backticks of the text
grep -qF '"message":"build needs M.model","ranges":[],"notes":[],"calls":[],"help":"`gradc build --help`"' \
    "$scratch/json"
verdict $? "the help of a usage error: $(cat "$scratch/json")"

# A step has the learning rate that it took: of a schedule, after a resume, or none.
rates() {
    sed "s/sgd(lr = 0.5)/$1/" "$model" >"$scratch/rate.model"
    shift
    "$gradc" train "$scratch/rate.model" --data "$scratch/d.csv" --json "$@" |
        sed -n 's/.*"event":"step".*"lr":\([^,]*\),.*/\1/p' | tr '\n' ' '
}
printf '1,0\n2,1\n1,2\n3,2\n1,1\n' >"$scratch/d.csv"
got=$(rates "sgd(lr = 0.5)")
[ "$got" = "0.5 0.5 0.5 " ]
verdict $? "a constant rate: $got"
got=$(rates "adamw(lr = 8 * linear(0.25, 0, steps = 4))" --checkpoint "$scratch/r.gck")
[ "$got" = "2 1.5 1 " ]
verdict $? "a schedule: $got"
got=$(rates "adamw(lr = 8 * linear(0.25, 0, steps = 4))" --checkpoint "$scratch/r.gck" --resume --epochs 2)
[ "$got" = "0.5 0 0 " ]
verdict $? "a schedule, resumed: $got"

# The worst error of each gradient that was tested.
cat >"$scratch/g.model" <<'E1'
model m {
    input x : f32[2] with grad
    param w : f32[3] = 0.5
    param b : f32 = 2
    loss sum(w^3) * b + sum(sin(x))
}
E1
"$gradc" test "$scratch/g.model" --directions 2 --json >"$scratch/out"
number='[0-9.e+-]*'
grep -qE "\"checks\": 12, \"failed\": 0, \"redrawn\": 0, \"worst\": $number, \"threads_agree\": true, \"interpreter_agrees\": true, \"gradients\": \[\{\"name\": \"w\", \"of\": \"parameter\", \"by_element\": true, \"checks\": 5, \"redrawn\": 0, \"worst_absolute\": $number, \"worst_relative\": $number\}, \{\"name\": \"b\", \"of\": \"parameter\", \"by_element\": true, \"checks\": 3, .*\{\"name\": \"x\", \"of\": \"input\", \"by_element\": true, \"checks\": 4, " \
    "$scratch/out"
verdict $? "test --json: $(cat "$scratch/out")"

# NaN is the worst, whatever is finite behind it, and no number of JSON.
cat >"$scratch/n.model" <<'E1'
model m {
    param a : f32 = 0
    param b : f32 = 1
    loss 0 * sqrt(a) + b^2
}
E1
"$gradc" test "$scratch/n.model" --json >"$scratch/out"
[ $? -eq 1 ] && grep -qF '"worst": null' "$scratch/out" && ! grep -qi 'nan' "$scratch/out"
verdict $? "test --json of NaN: $(cat "$scratch/out")"

total
