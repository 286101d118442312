#!/bin/sh
# Row chunks: attention and logits some rows at a time give the same loss and the same gradients
# but for roundings; slices of them, under a budget, the same bits; and with 8,192 places no plan
# holds anything of the size of a score matrix.
#
#   sh tests/run/chunk.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch

# model FILE LINE...: a network over `t` places whose body is these lines.
model() {
    file=$scratch/$1.model
    shift
    {
        cat <<'E1'
use nn
model net(batch = 3, t = 40, width = 16, heads = 4, vocab = 96) {
    input token : i32[batch, t] in 0..vocab
    input target : i32[batch, t] in 0..vocab
    h = nn.embedding(token, vocab, width, std = 0.5) as wte
E1
        printf '    %s\n' "$@"
        cat <<'E1'
}
train net {
    optimizer adamw(lr = 1e-2)
    clip global_norm(1.0)
}
E1
    } >"$file"
}

plain='logits = nn.linear(h, vocab) as head'
loss='loss mean(nn.cross_entropy(logits, target))'
model causal 'h = h + nn.attention(h, heads) as attn' "$plain" "$loss"
model dropped 'h = h + nn.attention(h, heads, rate = 0.3) as attn' "$plain" "$loss"
model all 'h = h + nn.attention(h, heads, causal = false) as attn' "$plain" "$loss" 'metric accuracy = nn.accuracy(logits, target)'
model grouped 'h = nn.llama_block(h, heads, 2, 24) as block' "$plain" "$loss"
model weighted "$plain" 'loss mean(nn.cross_entropy(logits, target, smoothing = 0.1, ignore = 7, weight = cast(iota(vocab), f32) / 64))'
model shown 'h = h + nn.attention(h, heads) as attn' "$plain" "$loss" 'output logits'
model kept 'q = nn.heads_of(h, heads)' 'keep s = softmax(q @ transpose(q))' \
    'h = h + reshape(transpose(s @ q, [0, 2, 1, 3]), [batch, t, width])' "$plain" "$loss"
model biased 'q = nn.heads_of(h, heads)' 'param near : f32[heads, t, t] = normal(std = 0.3)' \
    's = softmax(q @ transpose(q) + near)' \
    'h = h + reshape(transpose(s @ q, [0, 2, 1, 3]), [batch, t, width])' "$plain" "$loss"
model heads "$plain" 'tail = nn.linear(h, vocab) as tail' \
    'loss mean(nn.cross_entropy(logits, target)) + 0.5 * mean(nn.cross_entropy(tail, target, smoothing = 0.1))'
model ranked 'q = nn.heads_of(h, heads)' 's = cumsum(relu(q @ transpose(q)), axis = -1)' \
    'h = h + reshape(transpose(s @ q, [0, 2, 1, 3]), [batch, t, width]) * 0.01' "$plain" "$loss"

model shared 'q = nn.heads_of(h, heads)' 's = relu(q @ transpose(q))' 's = s / sum(s, axis = -1, keep = true)' \
    'h = h + reshape(transpose(s @ q, [0, 2, 1, 3]), [batch, t, width])' "$plain" "$loss"
model placed 'q = nn.heads_of(h, heads)' 'param near : f32[2 * t - 1] = normal(std = 0.3)' \
    'far = iota([t, t], 0) - iota([t, t], 1)' 's = q @ transpose(q) + near[far + (t - 1)]' \
    's = softmax(where(far > -3, s, -inf))' \
    'h = h + reshape(transpose(s @ q, [0, 2, 1, 3]), [batch, t, width])' "$plain" "$loss"

# step FILE OPTION...: what is printed of a step, and its gradients as numbers, one a line.
step() {
    name=$1
    shift
    "$gradc" run "$scratch/$name.model" --seed 3 --step --grads-out "$scratch/g" "$@" \
        >"$scratch/out" 2>&1
    verdict $? "$name $*: $(cat "$scratch/out")"
    tensors "$scratch/g" | od -An -v -tf4 -w4
}

# near FILE OPTION...: gradients are within 2e-6 of the global norm of those of whole values, both of
# a model of these $sizes.
sizes=
near() {
    name=$1
    shift
    # shellcheck disable=SC2086 # several options
    step "$name" $sizes --chunk 0 >"$scratch/whole"
    grep '^loss' "$scratch/out" >"$scratch/loss"
    # shellcheck disable=SC2086
    step "$name" $sizes "$@" >"$scratch/rows"
    grep '^loss' "$scratch/out" | cmp -s - "$scratch/loss"
    verdict $? "$name $*: another loss"
    paste "$scratch/whole" "$scratch/rows" | awk '
        { n += $1 * $1; d += ($1 - $2) * ($1 - $2) }
        END { exit !(NR > 0 && n > 0 && sqrt(d / n) < 2e-6) }'
    verdict $? "$name $*: other gradients"
}

# bytes FILE OPTION...: of the grad entry.
bytes() {
    name=$1
    shift
    "$gradc" plan "$scratch/$name.model" --entry grad --threads-max 1 "$@" |
        sed -n 's/^entry grad: .*(\([0-9,]*\) bytes).*/\1/p' | tr -d ,
}

for name in causal dropped all grouped weighted biased heads ranked kept shown; do
    near "$name" --chunk 512
    near "$name" --chunk 4000
    "$gradc" test "$scratch/$name.model" -D t=24 -D batch=2 --chunk 512 >"$scratch/out" 2>&1
    verdict $? "$name: $(cat "$scratch/out")"
done

# Of a prime number of rows the last chunk is filled up, with rows that are as finite as others.
for name in causal dropped all grouped weighted biased heads ranked kept shown shared placed; do
    sizes='-D t=257 -D batch=1 -D vocab=24' # scores
    near "$name"
    sizes='-D t=131 -D batch=1 -D vocab=131' # ... and logits
    near "$name" --chunk 17000
    "$gradc" test "$scratch/$name.model" -D t=131 -D batch=1 -D vocab=24 >"$scratch/out" 2>&1
    verdict $? "$name: $(cat "$scratch/out")"
done
sizes=

# Sums of chunks' sums are f32, whatever is stored: halves would stop growing.
model long 'logits = h @ w' 'loss mean(nn.cross_entropy(logits, target))'
sed -i 's/^    h = .*/&\n    param w : f32[width, vocab] = normal/' "$scratch/long.model"
step long --chunk 0 -D batch=64 -D t=128 -D width=8 -D vocab=64 >"$scratch/whole"
step long --chunk 4096 -D batch=64 -D t=128 -D width=8 -D vocab=64 --precision bf16 >"$scratch/rows"
paste "$scratch/whole" "$scratch/rows" | awk '
    { n += $1 * $1; d += ($1 - $2) * ($1 - $2) }
    END { exit !(n > 0 && sqrt(d / n) < 0.006) }'
verdict $? "bf16: sums of chunks are off"

# It saves what it is for; what is kept or an output stays whole.
for name in causal dropped all grouped weighted heads ranked; do
    [ $((10 * $(bytes "$name" --chunk 512))) -lt $((6 * $(bytes "$name" --chunk 0))) ]
    verdict $? "$name: chunks save less than 40 %: $(bytes "$name" --chunk 512) of $(bytes "$name" --chunk 0)"
done
whole=$(bytes kept --chunk 512)
[ "$whole" -gt $((3 * 4 * 40 * 40 * 4)) ]
verdict $? "kept: $whole bytes are not enough for the scores"

# Slices are the same bits at every budget.
for name in causal dropped all grouped ranked; do
    step "$name" --chunk 0 -D t=64 -D vocab=8 >"$scratch/whole"
    for budget in 80% 50% 30% min; do
        "$gradc" plan "$scratch/$name.model" --chunk 0 -D t=64 -D vocab=8 --entry step \
            --budget "$budget" >"$scratch/plan" 2>/dev/null || continue
        step "$name" --chunk 0 -D t=64 -D vocab=8 --budget "$budget" | cmp -s - "$scratch/whole"
        verdict $? "$name within $budget: other bits"
    done
    grep -q 'in [0-9]* slices' "$scratch/plan"
    verdict $? "$name: the least budget computes nothing in slices"
done

# The gradient of a table that is read by an index, too, is one value: chunks add up in it, within
# one another, and then the rows that the index names.
cat >"$scratch/tied.model" <<'E1'
use nn
model tied(batch = 3, t = 40, width = 64, vocab = 4000) {
    input token : i32[batch, t] in 0..vocab
    input target : i32[batch, t] in 0..vocab
    param table : f32[vocab, width] = normal(std = 0.1)
    loss mean(nn.cross_entropy(table[token] @ transpose(table), target))
}
train tied {
    optimizer sgd(lr = 1e-2)
    guard loss
}
E1
took=$("$gradc" plan "$scratch/tied.model" --entry step --threads-max 1 --chunk 20000 |
    sed -n 's/^entry step: .*(\([0-9,]*\) bytes).*/\1/p' | tr -d ,)
[ "${took:-0}" -gt $((2 * 4 * 4000 * 64)) ] && [ "$took" -lt $((10 * 4000 * 64)) ]
verdict $? "tied table: $took bytes, where it and its gradient take $((2 * 4 * 4000 * 64))"
"$gradc" test "$scratch/tied.model" -D vocab=90 -D t=7 --chunk 60 >"$scratch/out" 2>&1
verdict $? "tied table: $(cat "$scratch/out")"

# A prime number of rows has no divisor: a row at a time would take six times as long.
cat >"$scratch/prime.model" <<'E1'
use nn
model prime(batch = 2, ctx = 2003, width = 768, vocab = 50257) {
    input x : f32[batch, ctx, width]
    input next : i32[batch, ctx] in 0..vocab
    param table : f32[vocab, width] = normal(std = 0.02)
    loss mean(nn.cross_entropy(x @ transpose(table), next))
}
E1
# took OPTION...: nanoseconds that a place is predicted to take.
took() {
    "$gradc" plan "$scratch/prime.model" --entry grad --json "$@" |
        sed -n 's/.*"cost_ns": \([0-9]*\).*/\1/p' | head -n 1
}
prime=$(($(took) / 2003)) even=$(($(took -D ctx=2048) / 2048))
[ "$even" -gt 0 ] && [ $((10 * prime)) -lt $((11 * even)) ]
verdict $? "a place of 2,003 takes $prime ns, of 2,048 $even"

# The elements of the largest value, or workspace, of a plan.
largest() {
    "$gradc" plan "$@" --json >"$scratch/plan"
    verdict $? "plan $*"
    grep -o '"\(bytes\|workspace\|turns\)": [0-9]*' "$scratch/plan" | awk '
        /workspace/ { all = $2; next } # of all turns that run at once
        { bytes = /turns/ ? all / $2 : $2 }
        bytes > most { most = bytes }
        END { printf "%d\n", most / 4 }'
}

# No value of 8,192 * 8,192 / 8 elements or more.
root=$(dirname "$0")/../..
for options in 'layers=4' 'heads=8' 'heads=1 -D layers=1'; do
    # shellcheck disable=SC2086
    n=$(largest "$root/examples/chargpt.model" -D ctx=8192 -D batch=1 -D $options)
    [ "${n:-0}" -gt 0 ] && [ "$n" -lt $((8192 * 8192 / 8)) ]
    verdict $? "chargpt, 8,192 places, $options: $n elements"
done
n=$(largest "$scratch/dropped.model" -D t=8192 -D batch=1 -D vocab=50257)
[ "${n:-0}" -gt 0 ] && [ "$n" -lt $((8192 * 8192 / 8)) ]
verdict $? "dropout and 50,257 logits, 8,192 places: $n elements"
n=$(largest "$scratch/grouped.model" -D t=8192 -D batch=1 -D vocab=32000 -D width=64)
[ "${n:-0}" -gt 0 ] && [ "$n" -lt $((8192 * 8192 / 8)) ]
verdict $? "grouped queries, 8,192 places: $n elements"
total
