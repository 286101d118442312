#!/bin/sh
# A step that meets NaN or infinity says in which tensor, and where.
#
#   sh tests/run/nonfinite.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch

# model DTYPE LOSS [SETTING]: f.model, whose parameter w has a zero in its second element.
model() {
    cat >"$scratch/f.model" <<EOF
model f(batch = 4) {
    input x : $1[batch, 4]
    param a : $1[3] = ones
    param w : $1[4] = [1, 0, 1, 1]
    loss $2
}
train f {
    optimizer sgd(lr = 0.1)
    ${3:-}
}
EOF
}

# refused WORDS COMMAND...: it ends with a message of these words.
refused() {
    words=$1
    shift
    "$@" >"$scratch/out" 2>&1
    status=$?
    if [ "$status" -eq 1 ] && grep -qF "$words: nothing was changed" "$scratch/out"; then
        ok
    else
        fail "status $status, and not \`$words\`:"
        cat "$scratch/f.model" "$scratch/out"
    fi
}

says() {
    words=$1
    shift
    refused "$words" "$gradc" run "$scratch/f.model" --step "$@"
}

ones="--in x=1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"
kink='mean(sum(a) + sqrt(w * w) @ transpose(x))'
for type in f32 f64; do
    # shellcheck disable=SC2086  # an option and its value
    {
        model "$type" "$kink"
        says "the gradient w is NaN at element 1" $ones
        model "$type" "$kink" "clip global_norm(1)"
        says "the gradient w is NaN at element 1" $ones
        model "$type" "$kink" "accumulate 2"
        says "the gradient w is NaN at element 1" $ones,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0
        model "$type" "$kink" "guard loss"
        if "$gradc" run "$scratch/f.model" --step $ones >"$scratch/out" 2>&1; then
            ok
        else
            fail "a guard of the loss looks at gradients"
        fi
        model "$type" "sum(a) + mean(sqrt(w) @ transpose(x))"
        says "the gradient w is infinite at element 1" $ones
        model "$type" "sum(a) / sum(w[1:2]) + 0 * mean(x)"
        says "the loss is infinite" $ones
        model "$type" "sum(a) - mean(log(w - 1) @ transpose(x))"
        says "the loss is NaN" $ones
    }
done
# Training names it, too.
model f32 'mean(sum(a) + sqrt(w * w) @ transpose(x))'
for _ in 1 2 3 4; do echo "1,1,1,1"; done >"$scratch/x.csv"
refused "the gradient w is NaN at element 1" \
    "$gradc" train "$scratch/f.model" --data "x=$scratch/x.csv"
# No gradient is infinite, but the sum of their squares is.
model f32 "1e30 * sum(a) + mean(w @ transpose(x))" "clip global_norm(1)"
# shellcheck disable=SC2086
says "the norm of all gradients is infinite" $ones


# Updates that are finite add up to what is not, in a row of a table that is read twice; with and
# without a product in the table's gradient.
for product in "0" "sum(x @ transpose(table))"; do
    cat >"$scratch/f.model" <<EOF
model f(batch = 2, words = 50) {
    input token : i32[batch] in 0..words
    param table : f32[words, 33] = zeros
    x = gather(table, token)
    loss sum(x * 2e38) + $product
}
train f {
    optimizer sgd(lr = 0.1)
}
EOF
    says "the gradient table is infinite at element 231" --in token=7,7
    if "$gradc" run "$scratch/f.model" --step --in token=7,8 >"$scratch/out" 2>&1; then
        ok
    else
        fail "finite gradients are refused:"
        cat "$scratch/out"
    fi
done

# One element of what a product gives, the last of a shape that no tile divides, whatever lane of
# two computes it.
cat >"$scratch/f.model" <<EOF
model f(batch = 2, rows = 801, columns = 83) {
    input x : f32[batch, rows]
    input y : f32[batch, columns]
    param w : f32[rows, columns] = zeros
    loss sum(x @ w * y)
}
train f {
    optimizer sgd(lr = 0.1)
}
EOF
for big in 1e19 3e19; do
    for column in x:801 y:83; do
        awk -v n="${column#*:}" -v big=$big 'BEGIN {
            for (row = 0; row < 2; row++)
                for (i = 1; i <= n; i++)
                    printf "%s%s", i < n ? "1" : big, i < n ? "," : "\n"
        }' >"$scratch/${column%:*}.csv"
    done
    for threads in 1 2; do
        if [ $big = 3e19 ]; then
            refused "the gradient w is infinite at element 66482" "$gradc" train \
                "$scratch/f.model" --data "x=$scratch/x.csv" --data "y=$scratch/y.csv" -t $threads
        elif "$gradc" train "$scratch/f.model" --data "x=$scratch/x.csv" \
            --data "y=$scratch/y.csv" -t $threads --steps 1 >"$scratch/out" 2>&1; then
            ok
        else
            fail "finite gradients are refused:"
            cat "$scratch/out"
        fi
    done
done
total
