#!/bin/sh
# Rows that a partial batch lacks are the last one that it has: where slopes at 0 are infinite, its
# gradients are those of a smaller batch all the same, as bits, and training goes on.
#
#   sh tests/run/rows.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
# shellcheck source=tests/bits.sh
. "$(dirname "$0")/../bits.sh"
make_scratch

# model NAME LOSS
model() {
    cat >"$scratch/$1.model" <<E1
use nn
model net(batch = 4) {
    input x, y : f32[batch, 3]
    input label : i32[batch] in 3..7
    param w : f32[3] = uniform(1, 2)
    loss $2
}
train net {
    optimizer sgd(lr = 0.1)
}
E1
}
model quotient 'mean(sum(w * x, axis = 1) / sum(y, axis = 1))'
model root 'mean(sqrt(sum((x * w)^2, axis = 1)))'
model logarithm 'mean(log(w * x))'
model power 'mean(sum(abs(x * w)^0.3, axis = 1) / cast(label - 2, f32))'

x=1,2,0.5,3,0.25,1 y=2,1,4,0.5,3,1 label=3,5
for name in quotient root logarithm power; do
    "$gradc" run "$scratch/$name.model" -D batch=2 --seed 1 --in x=$x --in y=$y --in label=$label \
        --grads-out "$scratch/less" >"$scratch/out" 2>&1
    verdict $? "$name of two rows: $(cat "$scratch/out")"
    tensors "$scratch/less" >"$scratch/less.bits"
    for lanes in 1 3; do
        "$gradc" run "$scratch/$name.model" --threads $lanes --seed 1 --rows 2 --in x=$x,9,9,9,9,9,9 \
            --in y=$y,9,9,9,9,9,9 --in label=$label,6,6 --grads-out "$scratch/part" >"$scratch/out" 2>&1
        verdict $? "$name, $lanes lanes: $(cat "$scratch/out")"
        grep -q nan "$scratch/out" && nan=1 || nan=0
        check "$name, $lanes lanes: gradients are numbers" [ "$nan" -eq 0 ]
        tensors "$scratch/part" >"$scratch/part.bits"
        check "$name, $lanes lanes: the same bits" cmp "$scratch/part.bits" "$scratch/less.bits"
    done
    "$gradc" test "$scratch/$name.model" >"$scratch/out" 2>&1
    grep -q 'exact interpreter: the same bits' "$scratch/out"
    verdict $? "$name: $(cat "$scratch/out")"
done

# A step of two batches that lacks rows of the second one, and an entry that reads a part of a row.
model several 'mean(w * x / y)'
sed -i 's/    optimizer/    accumulate 2\n    optimizer/' "$scratch/several.model"
for rows in 3 4 5 8; do
    "$gradc" run "$scratch/several.model" --seed 1 --step --rows $rows --weights-out "$scratch/part" >"$scratch/out" 2>&1
    verdict $? "several, $rows rows: $(cat "$scratch/out")"
done
model corner 'mean(log(abs(w[0] * x[:, 0] / y[:, 1])))'
"$gradc" test "$scratch/corner.model" >"$scratch/out" 2>&1
verdict $? "corner: $(cat "$scratch/out")"

# Seven rows: a last batch of three.
{
    echo x.0,x.1,x.2,y.0,y.1,y.2,label
    for i in 1 2 3 4 5 6 7; do echo "$i,2,3,$i,5,6,4"; done
} >"$scratch/data.csv"
for name in quotient root logarithm power; do
    "$gradc" train "$scratch/$name.model" --data "$scratch/data.csv" --epochs 3 --seed 1 >"$scratch/out" 2>&1
    verdict $? "training $name: $(cat "$scratch/out")"
done

# Draws whose rows are mixed are no rows any more, and count as a whole; the rest of the batch does not.
cat >"$scratch/mixed.model" <<'E1'
model mixed(batch = 8) {
    input x : f32[batch, 3]
    param w : f32[3] = ones
    z = concat([normal([batch, 3]), uniform([batch, 3])], 0)
    y = scan u in normal([batch, 3]), h = zeros([3]) {
        v = normal([batch, 3]) * w
        h = h + u * w + mean(concat([v, v], 0), axis = 0)
    }
    loss mean((z * w)^2) + mean(x * w) + mean(reshape(normal([batch, 3]), [batch // 2, 6])^2) + mean(y)
    metric of_x = mean(x)
}
train mixed {
    optimizer sgd(lr = 0.1)
}
E1
"$gradc" run "$scratch/mixed.model" --seed 1 --rows 2 --in x=1,2,3,4,5,6,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9 >"$scratch/out" 2>&1
verdict $? "mixed: $(cat "$scratch/out")"
grep -q '^of_x  *3.5$' "$scratch/out"
verdict $? "mixed: rows of x: $(cat "$scratch/out")"
"$gradc" test "$scratch/mixed.model" >"$scratch/out" 2>&1
verdict $? "mixed: $(cat "$scratch/out")"
total
