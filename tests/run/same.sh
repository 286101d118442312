#!/bin/sh
# A word before a binding changes no bit of what a model computes, and any value may have one: each
# model here as it is, and without its words. Where equal nodes were two because of their words,
# cotangents were added in another order.
#
#   sh tests/run/same.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch

# same NAME: with `keep`, `offload` and `recompute` in place of WORD, bits are those of no word.
same() {
    name=$1
    sed 's/WORD //' "$scratch/$name.text" >"$scratch/plain.model"
    "$gradc" run "$scratch/plain.model" --grads-out "$scratch/plain.grads" >"$scratch/plain.out" 2>&1
    verdict $? "$name: $(cat "$scratch/plain.out")"
    for word in keep offload recompute; do
        sed "s/WORD/$word/" "$scratch/$name.text" >"$scratch/$name.model"
        "$gradc" run -q "$scratch/$name.model" --grads-out "$scratch/grads" >"$scratch/out" 2>"$scratch/err"
        verdict $? "$word in $name: $(cat "$scratch/err")"
        cmp "$scratch/plain.grads" "$scratch/grads" && cmp "$scratch/plain.out" "$scratch/out"
        verdict $? "$word in $name changes bits"
    done
}

cat >"$scratch/product.text" <<'E1'
model m {
    input x : f32[7, 5]
    param w : f32[5] = normal
    WORD a = sin(x * w)
    loss mean((a * w)^2)
}
E1
cat >"$scratch/slope.text" <<'E2'
model m {
    input x : f32[2, 8]
    param w : f32[8, 17] = normal(std = 0.35)
    v = x @ w
    WORD y = tanh(v)
    d = grad(mean(y^3), x)
    loss mean(d^2)
}
E2
cat >"$scratch/body.text" <<'E3'
model m(b = 2, t = 3, d = 3) {
    input k : f32[t, b, d] with grad
    s = scan kk in k, axis = 0, s = ones([b, d, d]) {
        q = insert_axis(kk, 1)
        WORD old = sum(s * q, axis = 2)
        s = s - insert_axis(old, 2) * q
    }
    loss mean(s^2)
}
E3
cat >"$scratch/equal.text" <<'E4'
model m {
    input x : f32[6, 8]
    param w : f32[8, 5] = normal(std = 0.35)
    u = x @ w
    WORD v = x @ w
    loss mean(sin(u) * v) + mean(tanh(v))
}
E4
# What is stacked of a scan twice, with the word and for the reverse pass, is one value.
cat >"$scratch/emitted.text" <<'E5'
model m {
    param p : f32 = 0.5
    WORD e, f = scan k in 0..4, c = p {
        emit c
        c = sin(c)
    }
    loss sum(e^3) + f^2
}
E5
sed 's/loss .*/loss grad(sum(e^3), p)/' "$scratch/emitted.text" >"$scratch/emitted_slope.text"
# A reduction that another one of the same op goes on with is one walk with it, or two, whatever is
# asked of either.
cat >"$scratch/summed.text" <<'E7'
model m {
    input x, y : f32[64, 33]
    param w : f32[33, 33] = normal(std = 0.2)
    WORD l = sum((x @ w - y)^2, axis = 1)
    loss mean(l)
}
E7
cat >"$scratch/multiplied.text" <<'E8'
model m(batch = 6) {
    input x : f32[batch, 5, 33] with grad
    param p : f32 = 1
    WORD b = prod(1 + 0.1 * tanh(x), axis = [1, 2])
    loss p * mean(sqrt(b^2 + 0.1))
}
E8
sed 's/WORD b = prod(\(.*\), axis.*/a = sum(\1, axis = 2)\n    WORD b = sum(a, axis = 1)/' "$scratch/multiplied.text" >"$scratch/outer.text"
sed 's/WORD b = prod(\(.*\), axis.*/WORD a = sum(\1, axis = 2)\n    b = sum(a, axis = 1)/' "$scratch/multiplied.text" >"$scratch/inner.text"
# What is kept of attention does not keep it from being computed some rows at a time.
cat >"$scratch/attention.text" <<'E9'
use nn
model m(batch = 2, t = 160, c = 16) {
    input x : f32[batch, t, c] with grad
    param wq, wk, wv : f32[c, c] = normal(std = 0.3)
    q = nn.heads_of(x @ wq, 2)
    k = nn.heads_of(x @ wk, 2)
    v = nn.heads_of(x @ wv, 2)
    WORD y = nn.attend(q, k, v)
    loss mean(y^2)
}
E9
for name in product slope body equal emitted emitted_slope summed multiplied outer inner attention; do
    same "$name"
done

# In a part whose scan runs again, one within it that keeps something does not: what is picked of
# it is stacked, too.
cat >"$scratch/within.model" <<'E6'
model m(bytes = 1GiB) {
    input x : f32[4, 5]
    param p : f32[5] = normal
    budget bytes {
        f = scan s in x, c = p {
            e, g = scan t in 0..3, h = c {
                keep h = sin(h * s)
                emit h
            }
            c = g + sum(e, axis = 0)
        }
    }
    loss mean(f^2)
}
E6
"$gradc" run -q "$scratch/within.model" --grads-out "$scratch/all" >"$scratch/out" 2>&1
verdict $? "keep within a part: $(cat "$scratch/out")"
"$gradc" run -q "$scratch/within.model" -D bytes=0 >"$scratch/out" 2>"$scratch/err"
[ $? -eq 4 ] && grep -q E0603 "$scratch/err"
verdict $? "no bytes for what is kept within a part: $(cat "$scratch/err")"
least=$(sed -n 's/.*found to work is \([0-9]*\) bytes.*/\1/p' "$scratch/err")
"$gradc" run -q "$scratch/within.model" -D bytes="${least:-0}" --grads-out "$scratch/some" >"$scratch/out" 2>&1
verdict $? "$least bytes for what is kept within a part: $(cat "$scratch/out")"
cmp "$scratch/all" "$scratch/some"
verdict $? "$least bytes for what is kept within a part change bits"

bytes() { "$gradc" plan "$1" --entry grad --threads-max 1 | sed -n 's/^entry grad: .*(\([0-9,]*\) bytes).*/\1/p' | tr -d ,; }
sed 's/WORD /keep /' "$scratch/attention.text" >"$scratch/keep.model"
sed 's/WORD //' "$scratch/attention.text" >"$scratch/plain.model"
[ "$(bytes "$scratch/keep.model")" = "$(bytes "$scratch/plain.model")" ]
verdict $? "attention whose result is kept takes $(bytes "$scratch/keep.model") bytes, not $(bytes "$scratch/plain.model")"
total
