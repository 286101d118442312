#!/bin/sh
# What a user gets for a number, a file or an output that can't be right.
#
#   sh tests/run/words.sh GRADC
set -u
gradc=${1:-build/gradc}
scratch=$(mktemp -d) || exit 3
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

# says STATUS WORDS COMMAND...: how it ends, and what it says on standard error.
says() {
    wanted=$1 words=$2
    shift 2
    "$@" >"${out:-$scratch/out}" 2>"$scratch/err"
    status=$?
    if [ "$status" -eq "$wanted" ] && { [ -z "$words" ] || grep -qF -- "$words" "$scratch/err"; }; then
        passed=$((passed + 1))
    else
        echo "FAILED: $*: status $status instead of $wanted, and not \`$words\`:"
        cat "$scratch/err"
        failed=$((failed + 1))
    fi
}

cat >"$scratch/m.model" <<'E1'
model m {
    input i : i32[2]
    input k : i64 in 0..3
    param w : f32 = 1
    loss w * cast(sum(i), f32)
}
E1
says 0 "" "$gradc" run "$scratch/m.model" --in i=-2147483648,2147483647 --in k=2
says 1 "--in i: 1.5 is not a number of type i32" "$gradc" run "$scratch/m.model" --in i=1.5,2
says 1 "--in i: 2147483648 is not a number of type i32" \
    "$gradc" run "$scratch/m.model" --in i=1,2147483648
says 1 "--in k: 1e30 is not a number of type i64" "$gradc" run "$scratch/m.model" --in k=1e30
says 1 "--in k: nan is not a number of type i64" "$gradc" run "$scratch/m.model" --in k=nan
says 0 "" "$gradc" explain nn.linear
grep -q '^block linear(x, out' "$scratch/out" || says 0 "block linear" cat "$scratch/out"
says 2 "no definition of the library" "$gradc" explain nn.nothing
# A step says what its gradients were; a file of tensors may have any name.
cat >"$scratch/t.model" <<'E1'
model m {
    param w : f32[2] = [1, 2]
    loss sum(w^2)
}
train m {
    optimizer sgd(lr = 0.5)
}
E1
says 0 "" "$gradc" run "$scratch/t.model" --step --weights-out "$scratch/some.thing"
grep -q '^d w  *\[2, 4\]' "$scratch/out" || says 0 "d w [2, 4]" cat "$scratch/out"
says 0 "" "$gradc" inspect "$scratch/some.thing"
grep -q '^w  *f32\[2\]  0 \.\. 0' "$scratch/out" || says 0 "w f32[2]" cat "$scratch/out"
if grep -q '^flags' /proc/cpuinfo 2>/dev/null && ! grep -q avx512f /proc/cpuinfo; then
    says 1 "lacks avx512f" "$gradc" run "$scratch/t.model" --cpu x86-64-v4
fi
# Before anything is read or trained.
says 3 "/nonexistent/: No such file or directory" "$gradc" train examples/line.model \
    --data x=no.npy --checkpoint /nonexistent/c.gck
says 3 "--checkpoint /dev/null: this is not a regular file" "$gradc" train examples/line.model \
    --data x=no.npy --checkpoint /dev/null
# More than a buffer of output, and less.
if [ -c /dev/full ]; then
    out=/dev/full
    says 3 "cannot write to standard output" "$gradc" show examples/fashion.model
    says 3 "cannot write to standard output" "$gradc" --version
fi
echo "passed=$passed failed=$failed skipped=0"
[ "$failed" -eq 0 ]
