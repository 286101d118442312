#!/bin/sh
# What a user gets for a number, a file or an output that can't be right.
#
#   sh tests/run/words.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch

# says STATUS WORDS COMMAND...: how it ends, and what it says on standard error.
says() {
    wanted=$1 words=$2
    shift 2
    "$@" >"${out:-$scratch/out}" 2>"$scratch/err"
    status=$?
    if [ "$status" -eq "$wanted" ] && { [ -z "$words" ] || grep -qF -- "$words" "$scratch/err"; }; then
        ok
    else
        fail "$*: status $status instead of $wanted, and not \`$words\`:"
        cat "$scratch/err"
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
says 1 "--in k: 9223372036854775808 is not a number of type i64" \
    "$gradc" run "$scratch/m.model" --in k=9223372036854775808
says 1 "--in k: 1e30 is not a number of type i64" "$gradc" run "$scratch/m.model" --in k=1e30
says 1 "--in k: nan is not a number of type i64" "$gradc" run "$scratch/m.model" --in k=nan
printf 'model m {\n    input x : f32\n    input h : f16\n    param w : f32 = 1\n    loss w * x * cast(h, f32)\n}\n' \
    >"$scratch/x.model"
says 0 "" "$gradc" run "$scratch/x.model" --in x=inf --in h=65504
says 1 "--in x: 3.5e38 is not a number of type f32" "$gradc" run "$scratch/x.model" --in x=3.5e38
says 1 "--in x: 1e400 is not a number of type f32" "$gradc" run "$scratch/x.model" --in x=1e400
says 1 "--in h: 65520 is not a number of type f16" "$gradc" run "$scratch/x.model" --in h=65520
printf 'model m {\n    input k : i64[4]\n    param w : f32 = 1\n    loss w\n    output k\n}\n' \
    >"$scratch/k.model"
says 0 "" "$gradc" run "$scratch/k.model" \
    --in k=9007199254740993,-9223372036854775808,9223372036854775807,1e3 --out "$scratch/k.safetensors"
# 2^53 + 1, -2^63, 2^63 - 1 and 1000, as bytes
od -An -v -tx1 "$scratch/k.safetensors" | tr -d ' \n' >"$scratch/bytes"
says 0 "" grep -q 010000000000200000000000000000 "$scratch/bytes"
says 0 "" grep -q 80ffffffffffffff7fe803000000000000 "$scratch/bytes"
says 2 "--rows wants a whole number from 1" "$gradc" run "$scratch/m.model" --rows 0
says 2 "--dump takes ast, primal, reverse, joint and all, not \`reversed\`" \
    "$gradc" check "$scratch/m.model" --dump reversed
# What belongs to another kind of plan.
says 2 "--output does not go with a model" "$gradc" plan "$scratch/m.model" -o "$scratch/plan"
says 2 "--capacity does not go with a model" "$gradc" plan "$scratch/m.model" --capacity 1KiB
says 2 "--plan-in does not go with a model" "$gradc" plan "$scratch/m.model" --plan-in x.json
says 2 "--pareto does not go with --problem" "$gradc" plan --problem x.json --pareto
says 2 "--placement does not go with --problem" "$gradc" plan --problem x.json --placement x.csv
says 2 "--budget does not go with --placement" "$gradc" plan --placement x.csv --budget 1KiB
# A loss without a derivative is no kink.
printf 'model m {\n    input x : f32[0]\n    param w : f32 = 1\n    loss sum(x)\n}\n' \
    >"$scratch/none.model"
says 1 "nothing was compared: the loss depends on nothing that has a gradient" \
    "$gradc" test "$scratch/none.model"
# One of two answers would be forgotten.
says 2 "--in is given twice: \`k=1\` and \`k=2\`" "$gradc" run "$scratch/m.model" --in k=1 --in k=2
says 2 "--seed is given twice: \`1\` and \`1\`" "$gradc" run "$scratch/m.model" --seed 1 --seed=1
says 2 "--define is given twice" "$gradc" check examples/line.model -D batch=2 -Dbatch=3
says 2 "--output is given twice" "$gradc" build "$scratch/m.model" -o "$scratch/m.o" -o "$scratch/n.o"
says 2 "--data is given twice" "$gradc" train examples/line.model --data a.csv --data b.csv
says 0 "" "$gradc" run "$scratch/m.model" --in k=1 --in i=1,2 -q -q
says 2 "x.gir: two outputs have this name" "$gradc" build "$scratch/m.model" -o "$scratch/m.o" \
    --emit "graph=$scratch/x.gir" --emit "plan=$scratch/x.gir"
set --
for i in $(seq 1 260); do
    set -- "$@" --emit "plan=$scratch/plan$i"
done
says 2 "262 outputs are too many: 256 is the most" "$gradc" build "$scratch/m.model" -o "$scratch/m.o" "$@"
says 0 "" "$gradc" build -q "$scratch/m.model" -o "$scratch/m.o" --emit graph=- --emit \
    "graph=$scratch/x.gir"
printf 'PK\003\004' >"$scratch/x.npz"
says 3 "x.npz: an archive (.npz): unpack it" "$gradc" run "$scratch/m.model" --in "i=$scratch/x.npz"
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
# Integers of a table are what is written there: 53 bits, or an error.
cat >"$scratch/i.model" <<'E1'
model m(batch = 2) {
    input k : i64[batch]
    param w : f32 = 1
    state most : i64 = 0
    most <- max(k)
    loss w * w + 0 * mean(cast(k, f32))
}
train m {
    optimizer sgd(lr = 0.5)
}
E1
printf '16777217\n16777219\n' >"$scratch/k.csv"
says 0 "" "$gradc" train "$scratch/i.model" --data "k=$scratch/k.csv" --epochs 1 \
    --checkpoint "$scratch/i.gck"
says 0 "" "$gradc" inspect "$scratch/i.gck"
grep -q '^most  *i64\[\]  16777219 .. 16777219$' "$scratch/out" || says 0 "most 16777219" cat "$scratch/out"
printf '7\n9007199254740993\n' >"$scratch/k.csv"
says 1 "k.csv: row 2 (the first is 1): a number of more than the 53 bits" \
    "$gradc" train "$scratch/i.model" --data "k=$scratch/k.csv" --epochs 1
# -inf, 1, NaN: what is not finite is counted, and is no end of the range but -inf.
{
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"
    printf '\000\000\200\377\000\000\200\077\000\000\300\177'
} >"$scratch/n.npy"
says 0 "" "$gradc" inspect "$scratch/n.npy"
grep -qF 'f32[3]  -inf .. 1  1 NaN, 1 infinite' "$scratch/out" || says 0 "-inf .. 1" cat "$scratch/out"
# A half is rounded once: this is above the tie.
cat >"$scratch/half.model" <<'E1'
model m {
    input h : f16
    param w : f32 = 1
    output same = h
    loss w
}
E1
says 0 "" "$gradc" run "$scratch/half.model" --in h=1.00048828125000000000001
grep -q '^same  *1.0009766$' "$scratch/out" || says 0 "same 1.0009766" cat "$scratch/out"
sed 's/input k : i64/input k : f16/; s/input k.*/&\n    input x : f64[batch]/; /most/d' "$scratch/i.model" >"$scratch/h.model"
printf '7,1\n70000,2\n' >"$scratch/k.csv"
says 1 "k.csv: row 2 (the first is 1): 70000 does not fit into f16, the type of input k" \
    "$gradc" train "$scratch/h.model" --data "$scratch/k.csv" --epochs 1
says 1 "is not a number of type i64" "$gradc" run "$scratch/i.model" --in k=9223372036854775808,0
says 1 "is not a number of type i64" "$gradc" run "$scratch/i.model" --in k=-9223372036854775809,0
# A parameter that the loss does not use has a gradient of zeros; a frozen one has none.
cat >"$scratch/u.model" <<'E1'
model m {
    param q : f32[2] = 1
    param w : f32[2] = [1, 2]
    param k : f32 = 1
    input x : f32 with grad
    loss sum(w^2) + x * k
    output sum = sum(q)
}
train m {
    optimizer sgd(lr = 0.5)
    freeze "k"
}
E1
says 0 "" "$gradc" run "$scratch/u.model" --in x=3 --grads-out "$scratch/g.safetensors"
grep '^d ' "$scratch/out" | tr -s ' ' >"$scratch/gradients"
printf '%s\n' "d q [0, 0] shape [2], norm 0 (the loss does not use it)" \
    "d w [2, 4] shape [2], norm 4.472136" "d x 1" >"$scratch/wanted"
says 0 "" diff "$scratch/wanted" "$scratch/gradients"
says 0 "" "$gradc" inspect "$scratch/g.safetensors"
grep -q '^q  *f32\[2\]  0 \.\. 0$' "$scratch/out" || says 0 "q f32[2] 0" cat "$scratch/out"
says 0 "" "$gradc" run "$scratch/u.model" --in x=3 --json
grep -qF '"gradients": {"q": {"shape": [2], "data": [0, 0]}, "w":' "$scratch/out" ||
    says 0 "zeros of q" cat "$scratch/out"
# What an input cannot take, by its place in the file.
cat >"$scratch/d.model" <<'E1'
model m(batch = 2) {
    input x : f32[batch]
    input k : i32[batch, 2] in 0..3
    param w : f32 = 1
    loss mean((w * x)^2) + 0 * mean(cast(k, f32))
}
train m {
    optimizer sgd(lr = 0.5)
}
E1
printf 'x,a,b\n1,0,1\n2,1,1\n3,2,2\n4,0,3\n5,0,0\n' >"$scratch/d.csv"
says 1 "d.csv: row 4, element 2 (the first is 1): 3 is outside of 0..3, the range of input k" \
    "$gradc" train "$scratch/d.model" --data "$scratch/d.csv" --seed 3
printf '1,0,1\n2,1,0.5\n3,2,2\n' >"$scratch/d.csv"
says 1 "d.csv: row 2, element 2 (the first is 1): 0.5 does not fit into i32, the type of input k" \
    "$gradc" train "$scratch/d.model" --data "$scratch/d.csv"
cat >"$scratch/w.model" <<'E1'
model m(batch = 2) {
    input t, n : i32[batch, 3] in 65..70
    param w : f32 = 1
    loss w * mean(cast(t + n, f32))
}
train m {
    optimizer sgd(lr = 0.5)
}
E1
printf 'ABCDEABCDZABC' >"$scratch/text"
says 1 "text: byte 10 (the first is 1) is 90, outside of 65..70, the range of input t" \
    "$gradc" train "$scratch/w.model" --data "text=$scratch/text"
printf 'ABCDEABCDABCZ' >"$scratch/text"
says 1 "text: byte 13 (the first is 1) is 90, outside of 65..70, the range of input n" \
    "$gradc" train "$scratch/w.model" --data "text=$scratch/text" --split 0
# Rows that are not there.
cat >"$scratch/r.model" <<'E1'
model r(batch = 4) {
    input x : f32[batch, 2]
    input y : f32[batch]
    param w : f32 = 1
    loss w * mean(sum(x, axis = 1) * y)
}
train r {
    optimizer sgd(lr = 0.5)
}
E1
printf 'x.0,x.1\n1,2\n3,4\n' >"$scratch/x.csv"
printf 'x.0,x.1,y\n1,2,3\n4,5,6\n7,8,9\n' >"$scratch/r.csv"
says 2 "--split 0.2 leaves none of 3 rows for validation" \
    "$gradc" train "$scratch/r.model" --data "$scratch/r.csv" --split 0.2
says 2 "input y has no data: --valid y=FILE" \
    "$gradc" train "$scratch/r.model" --data "$scratch/r.csv" --valid "x=$scratch/x.csv"
sed 's/(batch = 4)/(n = 4)/; s/\[batch/[n/' "$scratch/r.model" >"$scratch/n.model"
says 2 "--rows is of a batch, and the model has no argument \`batch\`" "$gradc" run "$scratch/n.model" --rows 2
# More than a buffer of output, and less.
if [ -c /dev/full ]; then
    out=/dev/full
    says 3 "cannot write to standard output" "$gradc" show examples/fashion.model
    says 3 "cannot write to standard output" "$gradc" --version
fi
total
