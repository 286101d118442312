#!/bin/sh
# What `--target cuda` writes, and what it says where it can't.
#
#   sh tests/run/cuda.sh GRADC
set -u
case ${1:-build/gradc} in
/*) gradc=${1:-build/gradc} ;;
*) gradc=$(pwd)/${1:-build/gradc} ;;
esac
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch
m=$scratch/m.model
object=$scratch/m.o
text=$scratch/m.cu

# ends STATUS WORDS OPTIONS...: how a command on the model ends, and what it says.
ends() {
    wanted=$1 words=$2 command=$3
    shift 3
    "$gradc" "$command" "$m" "$@" >"$scratch/out" 2>"$scratch/err"
    status=$?
    [ "$status" -eq "$wanted" ] && grep -qF -- "$words" "$scratch/err"
    verdict $? "$command $*: status $status instead of $wanted, and not \`$words\`: $(cat "$scratch/err")"
}

cat >"$m" <<'END'
model m {
    input x : f32[4, 8]
    param w : f32[8, 3] = normal(std = 1)
    loss sum(exp(x @ w))
}
train m { optimizer sgd(lr = 0.1) }
END
GRADC_LIBCUDA=$scratch/none.so ends 5 "there is no CUDA driver" run --target cuda
ends 2 "both of them are for build" run --target cpu,cuda
ends 2 "there is no target \`cpu,gpu\`" build --target cpu,gpu
ends 2 "--emit asm is for --target cpu" build --target cuda --emit asm
ends 2 "--emit cuda is for --target cuda" build --emit cuda
(cd "$scratch" && GRADC_NVRTC='' "$gradc" build "$m" --target cuda --emit cuda="$text" 2>"$scratch/err") &&
    grep -q kernels "$scratch/err"
verdict $? "kernels alone need an NVRTC: $(cat "$scratch/err")"

[ ! -e "$object" ] && [ ! -e "$scratch/m.h" ]
verdict $? "an object or a header was written"
for words in 'k[0-9]*_contract' 'DEVICE float exp_f32' '#line [34] ".*m.model"' \
    '^entry step' '^  guarded:' '<<<[0-9]*, [0-9]*>>>'; do
    grep -q "$words" "$text"
    verdict $? "nothing in the text is \`$words\`"
done
for words in '#include' 'atomic' 'asm volatile' '\.approx'; do
    ! grep -q "$words" "$text"
    verdict $? "\`$words\` is in the text"
done
"$gradc" build "$m" --target cuda --emit cuda=- -q >"$scratch/again"
cmp -s "$text" "$scratch/again"
verdict $? "the text is another one on standard output"

# ---- launches of an entry: chunks are few and large, and a graph without an end is refused -----
gpt2=$(dirname "$0")/../../examples/gpt2.model
GRADC_NVRTC='' "$gradc" show "$gpt2" -D batch=64 -D ctx=1024 --precision bf16 --kernels \
    --target cuda --gpu h200 --json >"$scratch/out" &&
    python3 - "$scratch/out" <<'PY'
import json, sys
k = json.load(open(sys.argv[1]))["kernels"]
assert sum(x["calls"] for x in k) < 4000, sum(x["calls"] for x in k)
# Nothing large is read by a few blocks: neither sums over 65536 rows of 768, nor one walk over all
# of the embedding.
few = [x for x in k if x["blocks"] < 24 and x["bytes_read"] > 1e7 and "scatter" not in x["kernel"]]
assert not few, few
PY
verdict $? "GPT-2 at 64 by 1024 is not of few launches"
for model in fashion resnet8; do
    GRADC_NVRTC='' "$gradc" show "$(dirname "$gpt2")/$model.model" --kernels --target cuda \
        --gpu h200 --json >"$scratch/out" &&
        python3 - "$scratch/out" <<'PY'
import json, sys
k = [x for x in json.load(open(sys.argv[1]))["kernels"] if "all" in x["kernel"]]
few = [x for x in k if x["blocks"] == 1 and x["bytes_read"] > 1e4]
assert k and not few, few
PY
    verdict $? "$model: all elements of a parameter are looked at by one block"
done
"$gradc" build -q "$gpt2" -D batch=64 -D ctx=1024 --chunk 100000 --target cuda -o "$object" \
    2>"$scratch/err"
[ $? -eq 5 ] && grep -q 'E0708.*more than 65536 launches' "$scratch/err" &&
    grep -q 'larger or no --chunk' "$scratch/err" && [ ! -e "$object" ]
verdict $? "a graph of too many launches: $(cat "$scratch/err")"

# ---- show --kernels ------------------------------------------------------------------------
# shows WORDS OPTIONS...: the table has a line of this form.
shows() {
    words=$1
    shift
    "$gradc" show "$m" --kernels "$@" >"$scratch/out" 2>"$scratch/err"
    verdict $? "show --kernels $*: $(cat "$scratch/err")"
    grep -q -- "$words" "$scratch/out"
    verdict $? "show --kernels $*: no \`$words\` in $(cat "$scratch/out")"
}
shows '^entry step: [0-9]* calls of [0-9]* kernels, '
shows ' 1 .* k[0-9]*_contract.* .*m\.model:4$'
shows '^H100 SXM 80 GB: 132 multiprocessors, 3350 GB/s, 67\.0 TFLOP/s' --target cuda
shows '^A100 SXM 40 GB: 108 ' --target cuda --gpu a100-40
shows '^entry eval: ' --target cuda --entry eval
export GRADC_NVRTC=
shows ' launch *1 *[0-9]*    -      -     -     -      1 .* k[0-9]*_contract' --target cuda
"$gradc" show "$m" --kernels --target cuda --gpu h200 --json >"$scratch/out" &&
    python3 - "$scratch/out" <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
assert d["gpu"] == "h200" and d["entry"] == "step", d
k = [k for k in d["kernels"] if "contract" in k["kernel"]]
assert k and k[0]["registers"] is None and k[0]["blocks"] == 1 and k[0]["ns"] > 2000, k
# x @ w of [4, 8] and [8, 3]: each element once, a fused multiply-add a term.
f = next(x for x in k if x["bytes_read"] == 4 * (4 * 8 + 8 * 3))
assert f["flops"] >= 2 * 4 * 8 * 3, f
PY
verdict $? "show --kernels as JSON: $(cat "$scratch/out")"
unset GRADC_NVRTC
ends 2 "--gpu knows a100, a100-40, h100, h200, not \`h1000\`" show --kernels --target cuda --gpu h1000
ends 2 "--gpu is for --target cuda" show --kernels --gpu h100
ends 2 "--gpu goes with --kernels" show --target cuda --gpu h100
ends 2 "--kernels is a table" show --kernels --format dot
cat >"$m" <<'END'
model m {
    input x : f32[4, 8]
    param w : f32[8, 8] = normal(std = 1)
    offload h = exp(x @ w)
    loss sum(exp(h @ w))
}
train m { optimizer sgd(lr = 0.1) }
END
ends 5 "E0707" build --target cuda -o "$object"
total
