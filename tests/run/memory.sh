#!/bin/sh
# The words `keep` and `recompute` before a binding: they are obeyed, and change no bit.
#
#   sh tests/run/memory.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch

# layers FILE STATEMENT...: a transformer whose layers are these statements.
layers() {
    file=$scratch/$1.model
    shift
    {
        cat <<'E1'
use nn
model gpt(batch = 16, t = 32, width = 32, layers = 4) {
    input token, target : i32[batch, t] in 0..64
    h = nn.embedding(token, 64, width) as wte
    for i in 0..layers {
E1
        printf '        %s\n' "$@"
        cat <<'E1'
    }
    logits = nn.linear(nn.layer_norm(h) as ln, 64) as head
    loss mean(nn.cross_entropy(logits, target))
}
train gpt {
    optimizer adamw(lr = 1e-3)
    clip global_norm(1.0)
}
E1
    } >"$file"
}

# steps FILE STATEMENT: a recurrence with this statement in its body.
steps() {
    cat >"$scratch/$1.model" <<E1
model steps(batch = 4, n = 48, width = 16) {
    input x : f32[n, batch, width]
    param w : f32[width, width] = normal(std = 0.3)
    h = scan g in x, h = zeros([batch, width], f32) {
        $2
        h = a * sigmoid(a) + h * 0.5
    }
    loss mean(h^2)
}
train steps {
    optimizer sgd(lr = 0.1)
}
E1
}

# peak FILE OPTION...: bytes of the grad entry.
peak() {
    name=$1
    shift
    "$gradc" plan "$scratch/$name.model" --threads-max 1 "$@" |
        sed -n 's/^entry grad: .*(\([0-9,]*\) bytes).*/\1/p' | tr -d ,
}

# bits FILE OPTION...: what is printed, and all gradients and parameters after one step.
bits() {
    name=$1
    shift
    "$gradc" run "$scratch/$name.model" --seed 3 --step --weights-out "$scratch/w" \
        --grads-out "$scratch/g" "$@" >"$scratch/$name.out" 2>&1
    verdict $? "$name $*: $(cat "$scratch/$name.out")"
    grep -v '^wrote ' "$scratch/$name.out" >"$scratch/$name.bits"
    tensors "$scratch/w" >>"$scratch/$name.bits"
    tensors "$scratch/g" >>"$scratch/$name.bits"
}

# same FILE FILE OPTION...: the same bits, where the second is compiled so.
same() {
    one=$1 other=$2
    shift 2
    bits "$one"
    bits "$other" "$@"
    cmp "$scratch/$one.bits" "$scratch/$other.bits"
    verdict $? "$other $*: other bits than $one"
}

# below FILE BYTES FILE PERCENT: the first takes at most so much of the second.
below() {
    [ $((100 * $1)) -le $(($3 * $2)) ]
    verdict $? "$4: $1 bytes, more than $3 % of $2"
}

# Dropout draws the same again; rows in micro-batches are the same rows.
layers plain 'h = nn.block(h, 4, rate = 0.1) as h[i]'
layers again 'recompute h = nn.block(h, 4, rate = 0.1) as h[i]'
layers blocks 'recompute y = nn.block(h, 4, rate = 0.1) as h[i]' 'keep h = y'
layers inside 'recompute a = nn.dropout(nn.attention(nn.layer_norm(h) as ln[i], 4) as a[i], 0.1)' \
    'h = h + a' 'keep m = nn.linear(h, 128) as up[i]' 'recompute g = nn.gelu(m)' \
    'h = h + nn.linear(g, width) as down[i]'
sed -e 's/recompute //' -e 's/keep //' "$scratch/inside.model" >"$scratch/outside.model"
for name in again blocks; do
    same plain "$name"
    same plain "$name" --budget min
done
same outside inside
same outside inside --budget min
for name in plain blocks outside inside; do
    sed 's/clip global_norm.*/accumulate 2/' "$scratch/$name.model" >"$scratch/${name}_2.model"
done
same plain_2 blocks_2
same outside_2 inside_2

# Less is stored, in one pass and in a micro-batch.
plain=$(peak plain)
below "$(peak blocks)" "$plain" 46 blocks
below "$(peak blocks_2)" "$(peak plain_2)" 60 blocks_2
below "$(peak inside)" "$(peak outside)" 75 inside

# No step of the forward pass is there for the reverse pass alone: what is computed again is
# not live between the two.
"$gradc" plan "$scratch/inside.model" --threads-max 1 --json >"$scratch/plan"
grep -q 'again' "$scratch/plan"
verdict $? "inside: no step runs again"

# In a scan: not stacked over the steps, or stacked in any case.
steps whole 'a = tanh(g + h @ w)'
steps thrice 'recompute a = tanh(g + h @ w)'
steps kept 'keep a = tanh(g + h @ w)'
same whole thrice
same whole kept
same whole kept --budget min
same kept thrice --budget min
[ "$(peak thrice)" -lt "$(peak whole)" ]
verdict $? "a scan: as much is stacked as without the word"
less='scans are cut into runs\|steps of scans the last .* run again'
"$gradc" plan "$scratch/whole.model" --budget min | grep -q "$less"
verdict $? "a scan keeps all"
! "$gradc" plan "$scratch/kept.model" --budget min | grep -q "$less"
verdict $? "a scan keeps less, though \`keep\` stands in it"

# Where the model itself takes a gradient through a scan, its sums have the same order.
cat >"$scratch/second.model" <<'E1'
use nn
block stage(x, c) {
    y = relu(nn.batch_norm(nn.conv2d(x, c, 3, padding = 1) as conv) as bn)
    recompute z = nn.max_pool2d(y, 2)
    return nn.dropout(z, 0.2)
}
model second(batch = 4) {
    input x : f32[batch, 3, 8, 8] with grad
    input label : i32[batch] in 0..4
    recompute h = stage(x, 6) as s1
    keep g = stage(h, 8) as s2
    rows = transpose(reshape(g, [batch, 8, 4]), [2, 0, 1])
    recompute r = scan row in rows, r = zeros([batch, 8], f32) {
        q = nn.linear(r, 8) as cell
        r = tanh(row + q)
        recompute p = sigmoid(r * 2)
        r = r * p
    }
    logits = nn.linear(r, 4) as head
    gx = grad(mean(nn.cross_entropy(logits, label)), h)
    recompute penalty = sum(gx^2)
    loss mean(nn.cross_entropy(logits, label)) + 0.1 * penalty
}
train second {
    optimizer adam(lr = 1e-2)
    accumulate 2
}
E1
sed 's/recompute //' "$scratch/second.model" >"$scratch/bare.model"
same bare second
for name in second bare; do
    sed -i.old '/accumulate/d' "$scratch/$name.model"
done
same bare second --budget min

# What is kept makes no room, and is named where there is too little.
layers all 'keep h = nn.block(h, 4, rate = 0.1) as h[i]'
least=$("$gradc" plan "$scratch/all.model" --budget 1MiB 2>&1 >/dev/null |
    tee "$scratch/err" | sed -n 's/.*smallest budget .* is \([0-9]*\) bytes.*/\1/p')
grep -qF "all.model:6:18: note: \`keep\` holds 262,144 bytes, most of them here" "$scratch/err"
verdict $? "the note of \`keep\`: $(cat "$scratch/err")"
same plain all --budget "$least"

total
