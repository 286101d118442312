# Sourced by stages and by the runners that they call: what passed, failed and was skipped.
# A runner's last line is that of `total`.
# shellcheck shell=sh

passed=0 failed=0 skipped=0
runner=$(basename "$0" .sh)

ok() {
    passed=$((passed + 1))
}

# fail WHAT...: one failed test, with its reason.
fail() {
    printf 'FAILED: %s\n' "$*"
    failed=$((failed + 1))
}

# skip WHAT...: one test that can't run here, with its reason.
skip() {
    printf 'skipped: %s\n' "$*"
    skipped=$((skipped + 1))
}

# verdict STATUS WHAT...: one test, passed where the status is 0.
verdict() {
    if [ "$1" -eq 0 ]; then
        ok
    else
        shift
        fail "$runner: $*"
    fi
}

# check WHAT COMMAND...: one test, passed if the command does; shows its output if not.
check() {
    what=$1
    shift
    if "$@" >"${checked:-$scratch/checked}" 2>&1; then
        ok
    else
        tail -n 20 "${checked:-$scratch/checked}"
        fail "$what"
    fi
}

# add LINE: adds another runner's "passed=N failed=N skipped=N".
add() {
    case $1 in
    passed=*" failed="*" skipped="*)
        n=${1#passed=} && passed=$((passed + ${n%% *}))
        n=${1#*failed=} && failed=$((failed + ${n%% *}))
        n=${1#*skipped=} && skipped=$((skipped + ${n%% *}))
        ;;
    *) fail "a runner ended before it had counted: $1" ;;
    esac
}

# The last line; true where nothing failed.
total() {
    echo "passed=$passed failed=$failed skipped=$skipped"
    [ "$failed" -eq 0 ]
}

# make_scratch: a folder $scratch that is gone at the end.
make_scratch() {
    scratch=$(mktemp -d) || exit 3
    trap 'rm -rf "$scratch"' EXIT
}

# figure NAME FILE: the first figure of this name in JSON.
figure() {
    sed -n "s/.*\"$1\": *\([0-9.e+-]*\).*/\1/p" "$2" | head -n 1
}

# tensors FILE: a safetensors file without its header, which has the model's hash.
tensors() {
    header=$(od -An -tu8 -N8 "$1" | tr -d ' ')
    tail -c +$((header + 9)) "$1"
}

# busy TIMES: seconds of processors, all those that a shell has waited for, from a file of what its
# `times` has said; where it has said it twice, from then on.
busy() {
    awk -F '[ms ]+' '
        NR % 2 == 0 { last = used; used = $1 * 60 + $2 + $3 * 60 + $4 }
        END { printf "%.0f", used - last }' "$1"
}
