#!/bin/sh
# gradc explain: what every kind of tensor is, where it is, from when to when, and why.
#
#   sh tests/run/explain.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch

# says STATUS LINE ARGUMENT...: how `gradc explain` ends, and a line of what it prints (`*` stands
# for anything: numbers of steps and bytes).
says() {
    wanted=$1 line=$2
    shift 2
    pattern=$(printf '%s' "$line" | sed 's/[][?\\]/\\&/g')
    "$gradc" explain "$@" >"$scratch/out" 2>&1
    status=$?
    # shellcheck disable=SC2254  # a pattern
    case $(cat "$scratch/out") in
    *$pattern*) matches=0 ;;
    *) matches=1 ;;
    esac
    if [ "$status" -eq "$wanted" ] && [ "$matches" -eq 0 ]; then
        ok
    else
        fail "explain: $*: status $status instead of $wanted, or not \`$line\`:"
        cat "$scratch/out"
    fi
}

cat >"$scratch/m.model" <<'E1'
model m(batch = 4) {
    input x : f32[batch, 6] with grad
    input unread : f32[batch]
    param w : f32[6, 6] = 1
    param idle : f32 = 1
    state s : f32 = 0
    s <- s + 1
    y = tanh(x @ w)
    h = exp(y @ w)
    loss mean(h^2) + mean(y)
    output y, again = y, p = w
    metric top = max(y)
}
train m {
    optimizer sgd(lr = 0.1, momentum = 0.5)
}
E1
model=$scratch/m.model
after="because the caller reads it after the entry has run"
says 0 "x: input, f32[4,6], 96 bytes, $model:2
  the caller's memory; a call of fewer rows is copied to byte * of the block
  entry eval: one kernel reads it (contract_tanh)
  entry grad: 2 kernels read it, the first is contract_tanh" "$model" x
says 0 "x: gradient, f32[4,6], 96 bytes, $model:8
  entry grad: kept
    from step * to step *, at byte *
    $after" "$model" x
says 0 "unread: input, f32[4], 16 bytes, $model:3*entry step: no kernel reads it" "$model" unread
says 0 "scale: input, f32, 4 bytes, tests/object/wide.model:9
  the caller's memory
  entry eval: " tests/object/wide.model scale
says 0 "w: parameter, f32[6,6], 144 bytes, $model:4
  pinned at byte * of the block, because it lives between calls
  entry init: step * writes it
  entry eval: steps 0 (contract_tanh) and * read it
*  entry step: * steps read it, from 0 (contract_tanh) to *; step * writes it" "$model" w
says 0 "w: gradient, f32[6,6], 144 bytes, $model:8*
    $after" "$model" w
says 0 "idle: parameter, f32, 4 bytes, $model:5*entry step: no step reads it" "$model" idle
says 0 "s: state, f32, 4 bytes, $model:6*entry step: step * reads it; step * writes it" "$model" s
says 0 "sgd.velocity:w: state of the optimizer, f32[6,6], 144 bytes" "$model" sgd.velocity:w
says 0 "lr: number that the caller may set, f32, 4 bytes" "$model" lr
says 0 "loss: loss, f32, 4 bytes, $model:10*
    $after" "$model" loss
says 0 "y: output, f32[4,6], 96 bytes, $model:8
  entry eval: kept
    from step 0 (contract_tanh) to step *
    $after; before that *read it" "$model" y
says 0 "again: output, f32[4,6], 96 bytes, $model:8
  entry eval: a view of y; kept" "$model" again
says 0 "p: output, f32[6,6], 144 bytes, $model:4
  entry eval: a view of the parameter w; the caller reads it after" "$model" p
says 0 "top: metric, f32, 4 bytes, $model:12" "$model" top
name=$("$gradc" plan "$model" --entry grad 2>&1 | sed -n 's/.*  \(exp\.[0-9]*\)$/\1/p' | head -n 1)
says 0 "$name: value between steps, f32[4,6], 96 bytes, $model:9*because *read" "$model" "$name"
says 0 ", in place of " "$model" "$(
    "$gradc" plan "$model" --entry step 2>&1 | sed -n 's/.*  \([a-z_.0-9]*\), over .*/\1/p' | head -n 1
)"
says 1 "the model has no tensor \`unred\`; did you mean \`unread\`?" "$model" unred
says 1 "the model has no tensor \`velocity\`; did you mean \`sgd.velocity:w\`?" "$model" velocity
says 1 "the model has no tensor \`nothing\`; \`gradc plan\` lists the names" "$model" nothing

says 0 '[{"name": "w", "role": "parameter", "dtype": "f32", "shape": [6, 6], "bytes": 144, "line": "*m.model:4", "storage": "pinned", "offset": *, "entries": [{"entry": "init", "view_of": null, "reason": "step * writes it", "ranges": []}*{"name": "w", "role": "gradient", *"storage": "planned", "offset": null, "entries": [{"entry": "grad", *"ranges": [{"from": *, "from_label": "*", "to": *, "offset": *, "in_place_of": *, "reason": "the caller reads it' \
    "$model" w --json
says 0 '"storage": "caller"' "$model" x --json
says 0 '{"code": "E0203", "title": "sizes that*", "text": "In*"}' E0203 --json
says 0 '{"name": "nn.linear", "text": "# x*"}' nn.linear --json

# What the model binds: stored, computed where it is read, in the body of a loop.
cat >"$scratch/b.model" <<'E1'
model b(n = 4) {
    input x : f32[n, n]
    param w : f32[n, n] = ones
    h = tanh(x @ w)
    twice = h * 2
    y, z = split(sin(twice) + h, 2)
    s = scan row in y, s = zeros([n], f32) {
        inner = exp(row * 0.1)
        s = s + inner
    }
    loss sum(s) + sum(z)
}
E1
says 0 "h: bound at $scratch/b.model:4
  entry eval: inlined: it is computed where it is read
  entry grad: stored
    *tanh*, 64 bytes
      from step 0 (contract_*) to step *, at byte *
      because *; to compute it again would take *, of the reverse pass" "$scratch/b.model" h
says 0 "twice: bound at $scratch/b.model:5
  entry eval: inlined: it is computed where it is read
  entry grad: *" "$scratch/b.model" twice
says 0 "inner: bound at $scratch/b.model:8
  entry eval: in the body of a loop" "$scratch/b.model" inner
says 0 "s: bound at $scratch/b.model:7*s: bound at $scratch/b.model:9
  entry eval: in the body of a loop" "$scratch/b.model" s
says 0 '{"name": "h", "role": "binding", "line": "*b.model:4", "entries": [{"entry": "eval", "storage": "inlined", "values": []}, {"entry": "grad", "storage": "stored", "values": [{"name": "*", "bytes": 64, "reverse": false, "ranges": [{"from": 0, ' \
    "$scratch/b.model" h --json
says 0 '"storage": "inlined", "values": []}' "$scratch/b.model" twice --json
says 1 "the model has no tensor \`twic\`; did you mean \`twice\`" "$scratch/b.model" twic

# Whatever the plan names.
"$gradc" plan examples/digits.model >"$scratch/plan"
sed -n '/^lifetimes/,/^$/s/.*[0-9]  \([a-z][^ ,]*\).*/\1/p' "$scratch/plan" | sort -u >"$scratch/names"
[ "$(wc -l <"$scratch/names")" -gt 20 ] || says 0 "more names" nn.linear
while read -r name; do
    says 0 "because " examples/digits.model "$name" </dev/null
done <"$scratch/names"

total
