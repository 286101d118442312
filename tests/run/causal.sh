#!/bin/sh
# Masks in chunks of rows: which kernels leave out the columns that a mask hides, and that loss and
# gradients are those of the whole matrix but for roundings, at every budget and number of threads the
# same bits.
#
#   sh tests/run/causal.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch

# model NAME LINE...: `p`, what rows of scores `s` weigh values with, by these lines.
model() {
    file=$scratch/$1.model
    shift
    {
        cat <<'E1'
use nn
model net(batch = 2, heads = 2, t = 40, width = 4) {
    input q, k, v : f32[batch, heads, t, width] with grad
    input ct      : f32[batch, heads, t, width]
    row = iota([t, t], 0)
    col = iota([t, t], 1)
    s = q @ transpose(k) / 2
E1
        printf '    %s\n' "$@"
        cat <<'E1'
    whole = sum((p @ v) * ct) # its square comes back as twice itself: the reverse pass waits for it
    loss whole * whole
}
E1
    } >"$file"
}

model causal 'p = softmax(where(col <= row, s, -inf), axis = -1)'
model offset 'p = softmax(where(col <= row + 3, s, -inf), axis = -1)'
model behind 'p = softmax(where(col - 2 <= row - 1, s, -inf), axis = -1)'
model strict 'p = where(col < row, exp(s), 0)'
model beyond 'p = softmax(where(row < col, -inf, s), axis = -1)'
model window 'near = (col <= row) and (row <= col + 8)' \
    'p = softmax(where(near, s, -inf), axis = -1)'
model negated 'p = softmax(where(not (row < col), s, -inf), axis = -1)'
model dropped 'p = nn.dropout(softmax(where(col <= row, s, -inf), axis = -1), 0.2)'
model twice 'w = softmax(where(col <= row, s, -inf), axis = -1)' 'p = w * (1 + w)'
model raw 'w = softmax(where(col <= row, s, -inf), axis = -1)' \
    'p = w * mean(s * s, axis = -1, keep = true)'
model all 'p = softmax(s, axis = -1)'
model before 'p = softmax(where(row <= col, s, -inf), axis = -1)'
model striped 'p = softmax(where(col // 4 <= row, s, -inf), axis = -1)'
model finite 'p = softmax(where(col <= row, s, -9), axis = -1)'
# Where it need not wait, chunks and their reverse are computed in one walk.
sed 's/    loss.*/    loss whole/' "$scratch/causal.model" >"$scratch/merged.model"
limited='causal merged offset behind strict beyond window negated dropped twice raw'
plain='all before striped'

# gradients NAME OPTION...: as numbers, one a line.
gradients() {
    name=$1
    shift
    "$gradc" run "$scratch/$name.model" --seed 3 --grads-out "$scratch/g" "$@" \
        >"$scratch/out" 2>&1
    verdict $? "$name $*: $(cat "$scratch/out")"
    tensors "$scratch/g" | od -An -v -tf4 -w4
}

# near NAME OPTION...: gradients are within 2e-6 of the global norm of those of whole values.
near() {
    name=$1
    shift
    gradients "$name" --chunk 0 "$@" >"$scratch/whole"
    gradients "$name" --chunk 1280 "$@" >"$scratch/rows"
    paste "$scratch/whole" "$scratch/rows" | awk '
        { n += $1 * $1; d += ($1 - $2) * ($1 - $2) }
        END { exit !(NR > 0 && n > 0 && sqrt(d / n) < 2e-6) }'
    verdict $? "$name $*: other gradients"
}

# kernels NAME: of the grad entry in chunks, as text.
kernels() {
    "$gradc" build -q "$scratch/$1.model" --chunk 1280 --entry grad --verify -o "$scratch/m.o" \
        --emit kernels=- 2>"$scratch/messages"
}

for name in $limited $plain finite; do
    near "$name"
    near "$name" -D t=42 # chunks of 14 or fewer rows
    "$gradc" test "$scratch/$name.model" -D batch=1 --chunk 1280 >"$scratch/out" 2>&1
    verdict $? "$name: $(cat "$scratch/out")"
    gradients "$name" --chunk 1280 >"$scratch/whole"
    gradients "$name" --chunk 1280 --budget min | cmp -s - "$scratch/whole"
    verdict $? "$name within the least budget: other bits"
done

for name in $limited; do
    kernels "$name" >"$scratch/text"
    grep -q 'dim k . < 40, limit$' "$scratch/text" && grep -q 'dim m . < 40, limit$' "$scratch/text"
    verdict $? "$name: nothing ends where the mask does"
done
for name in $plain; do
    kernels "$name" | grep -q limit
    [ $? -eq 1 ]
    verdict $? "$name: something ends where no mask does"
done

# The products with queries and values, of the forward and the reverse pass, end there, too; but
# not those whose other columns somebody reads.
[ "$(kernels causal | grep -c 'dim n . < 40, limit$')" -eq 3 ]
verdict $? "causal: products that end are $(kernels causal | grep -c 'dim n . < 40, limit$')"
[ "$(kernels merged | grep -c 'dim n . < 40, limit$')" -eq 2 ]
verdict $? "merged: products that end are $(kernels merged | grep -c 'dim n . < 40, limit$')"
[ "$(kernels raw | grep -c 'dim n . < 40, limit$')" -lt 3 ]
verdict $? "raw: scores that are read are not computed"
kernels strict | grep -q 'limit b[0-9]*\[[0-9]*\] + 0 mean'
verdict $? "strict: the diagonal is computed"
kernels offset | grep -q 'limit b[0-9]*\[[0-9]*\] + 4 mean'
verdict $? "offset: another limit"

# Weights that two products of a chunk read are stored, not what they are made of.
kernels merged | awk '/^(contract|loop) / { con = $1 == "contract" } con && / = div / { n++ }
    END { exit n > 0 }'
verdict $? "merged: a product divides"

# What is hidden is not multiplied: a NaN in the last row of values is seen by no chunk before.
model hidden 'p = softmax(where(col <= row, s, -inf), axis = -1)'
sed -i 's/    loss.*/    w = where(iota([t, width], 0) < t - 1, v, 0 * v \/ 0)\n    y = p @ w\n    loss sum(where(iota([t, width], 0) < 8, y * ct, 0))/' "$scratch/hidden.model"
"$gradc" run "$scratch/hidden.model" --seed 3 --chunk 1280 >"$scratch/out" 2>&1
grep -q '^loss  *-\{0,1\}[0-9]' "$scratch/out"
verdict $? "hidden: $(cat "$scratch/out")"
"$gradc" run "$scratch/hidden.model" --seed 3 --chunk 0 >"$scratch/out" 2>&1
grep -q '^loss  *-\{0,1\}nan' "$scratch/out"
verdict $? "hidden, whole: $(cat "$scratch/out")"
total
