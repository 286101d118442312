#!/bin/sh
# What `--target cuda` writes, and what it says where it can't.
#
#   sh tests/run/cuda.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch
m=$scratch/m.model
object=$scratch/m.o
text=$scratch/m.cu

# ends STATUS WORDS OPTIONS...: how a command on the model ends, and what it says.
ends() {
    wanted=$1 words=$2 command=$3
    shift 3
    "$gradc" "$command" "$m" "$@" >"$scratch/out" 2>"$scratch/err"
    status=$?
    [ "$status" -eq "$wanted" ] && grep -qF -- "$words" "$scratch/err"
    verdict $? "$command $*: status $status instead of $wanted, and not \`$words\`: $(cat "$scratch/err")"
}

cat >"$m" <<'END'
model m {
    input x : f32[4, 8]
    param w : f32[8, 3] = normal(std = 1)
    loss sum(exp(x @ w))
}
train m { optimizer sgd(lr = 0.1) }
END
ends 5 "E0707" build --target cuda -o "$object"
ends 5 "E0707" run --target cuda
ends 2 "--emit asm is for --target cpu" build --target cuda --emit asm
ends 2 "--emit cuda is for --target cuda" build --emit cuda
ends 0 "kernels" build --target cuda --emit cuda="$text" -o "$object"

[ ! -e "$object" ] && [ ! -e "$scratch/m.h" ]
verdict $? "an object or a header was written"
for words in 'k[0-9]*_contract' 'DEVICE float exp_f32' '#line [34] ".*m.model"' \
    '^entry step' '^  guarded:' '<<<[0-9]*, [0-9]*>>>'; do
    grep -q "$words" "$text"
    verdict $? "nothing in the text is \`$words\`"
done
for words in '#include' 'atomic' 'asm volatile' '\.approx'; do
    ! grep -q "$words" "$text"
    verdict $? "\`$words\` is in the text"
done
"$gradc" build "$m" --target cuda --emit cuda=- -q >"$scratch/again"
cmp -s "$text" "$scratch/again"
verdict $? "the text is another one on standard output"
total
