#!/bin/sh
# Golden tests: text in, text out.
#
#   sh tests/golden.sh GRADC [STAGE ...]        UPDATE=1: write what is expected
#
# For every tests/golden/STAGE/NAME.model (and tests/run/NAME.model: the worked
# examples, STAGE is ../run), each file NAME.EXT beside it is what
# a command prints; EXT chooses the command:
#
#   .err  gradc check, messages            .gir     gradc show (whole graph)
#   .ast  gradc check --dump=ast           .plan    gradc plan
#   .fmt  gradc fmt                        .kernel  gradc build --emit kernels
#   .out  gradc run                        .cu      gradc build --emit cuda
#
# A folder may bring its own: STAGE/EXT.cmd is one line of shell, in which
# $gradc, $model and $args stand for the compiler, the file and the options that
# the model asks for by a comment "# args: -D batch=2 --backward". Commands run
# inside the folder. An exit status other than 0 is printed as a last line, and
# a model that says "# status: N" ends with that one, or the test fails.
set -u
[ $# -ge 1 ] || {
    echo "usage: golden.sh GRADC [STAGE ...]" >&2
    exit 2
}
case $1 in
/*) gradc=$1 ;;
*) gradc=$(pwd)/$1 ;;
esac
shift
cd "$(dirname "$0")/.." || exit 3
. tests/tally.sh
make_scratch
cd tests/golden || exit 3
top=$(pwd)
export gradc model args scratch

# The command for an extension; NAME.model files are inputs.
# shellcheck disable=SC2016  # expanded where the command runs
command_of() {
    if [ -f "$1.cmd" ]; then
        cat "$1.cmd"
        return
    fi
    case $1 in
    err) echo '"$gradc" check "$model" $args 2>&1 >/dev/null' ;;
    ast) echo '"$gradc" check "$model" $args --dump=ast' ;;
    fmt) echo '"$gradc" fmt "$model" $args' ;;
    gir) echo '"$gradc" show "$model" $args' ;;
    plan) echo '"$gradc" plan "$model" $args' ;;
    out) echo '"$gradc" run "$model" $args' ;;
    kernel) echo '"$gradc" build "$model" $args -o "$scratch/m.o" --emit kernels=-' ;;
    cu) echo '"$gradc" build "$model" $args -o "$scratch/m.o" --target cuda --emit cuda=-' ;;
    *) return 1 ;;
    esac
}

# golden FILE: one expectation, for the model of the same name.
golden() {
    expected=$1
    stem=${expected%.*}
    model=$stem.model
    args=$(sed -n 's/^# args: *//p' "$model")
    wanted=$(sed -n 's/^# status: *//p' "$model")
    line=$(command_of "${expected##*.}") || {
        fail "golden/$stage/$expected: nothing is known of .${expected##*.}"
        return
    }
    sh -c "$line" >"$scratch/got" 2>"$scratch/messages"
    status=$?
    [ "$status" -ne 0 ] && echo "exit status $status" >>"$scratch/got"
    if [ -n "$wanted" ] && [ "$status" -ne "$wanted" ]; then
        fail "golden/$stage/$model: status $status instead of $wanted"
    elif [ -n "${UPDATE:-}" ]; then
        cp "$scratch/got" "$expected"
        ok
    elif diff -u "$expected" "$scratch/got" >"$scratch/diff"; then
        ok
    else
        fail "golden/$stage/$expected"
        sed 1,2d "$scratch/diff" | head -n 40
        head -n 10 "$scratch/messages"
    fi
}

if [ $# -eq 0 ]; then
    for folder in */ ../run/; do
        [ -d "$folder" ] && set -- "$@" "${folder%/}"
    done
fi
for stage in "$@"; do
    cd "$stage" || exit 3
    for expected in *.*; do
        case $expected in
        *.model | *.cmd | *.md | *.sh | *.npy | *.safetensors | *'*'*) continue ;;
        esac
        if [ -f "${expected%.*}.model" ]; then
            golden "$expected"
        else
            fail "golden/$stage/$expected: it has no model"
        fi
    done
    cd "$top" || exit 3
done
total
