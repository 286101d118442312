#!/bin/sh
# gradc plan --devices: figures that are counted by hand, and SPECs that can't be right.
#
#   sh tests/run/devices.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch

# Four layers of 16 by 16 and a last one of 16 by 4, on 8 rows, in f32: a layer has 256 + 16
# parameters (1088 bytes), the last one 64 + 4 (272 bytes).
cat >"$scratch/net.model" <<'E1'
use nn
model net(batch = 8) {
    input x : f32[batch, 16]
    input t : f32[batch, 4]
    h = x
    for i in 0..4 {
        h = tanh(nn.linear(h, 16) as layer[i])
    }
    loss mean((nn.linear(h, 4) as out - t)^2)
}
train net {
    optimizer adam(lr = 0.1)
}
E1
sed 's/lr = 0.1)/&\n    accumulate 4/' "$scratch/net.model" >"$scratch/net4.model"

# held MODEL SPEC STAGE KEY=BYTES...: what the JSON report says of the stage, the first being 1.
held() {
    model=$1 spec=$2 stage=$3
    shift 3
    "$gradc" plan "$scratch/$model.model" --devices "$spec" --json >"$scratch/json" 2>"$scratch/err"
    verdict $? "$model $spec: $(cat "$scratch/err")"
    grep '"first"' "$scratch/json" | sed -n "${stage}p" >"$scratch/stage"
    for figure in "$@"; do
        grep -q "\"${figure%=*}\": ${figure#*=}[,}]" "$scratch/stage"
        verdict $? "$model $spec, stage $stage: not $figure: $(cat "$scratch/stage")"
    done
}

# One device: five counters of 36 bytes; four values of tanh (512) and the difference (128).
# Most is there where a cotangent of 512 is made of another, and one value of tanh is read last.
held net data=1 1 parameters=4624 gradients=4624 optimizer=9248 state=36 kept_each=2176 \
    in_flight=1 inputs=640 data_all_reduce=0 tensor_all_reduce=0 pipe_send=0
# ZeRO: by 4, and what is whole for a moment: a gradient of 1024, a layer of 1088.
held net data=4 1 parameters=4624 gradients=4624 optimizer=9248 gathered=0 data_all_reduce=4624
held net data=4,zero=1 1 parameters=4624 gradients=4624 optimizer=2312 gathered=0 \
    data_all_reduce=0 data_reduce_scatter=4624 data_all_gather=4624
held net data=4,zero=2 1 parameters=4624 gradients=1156 optimizer=2312 gathered=1024
held net data=4,zero=3 1 parameters=1156 gradients=1156 optimizer=2312 gathered=2112 \
    data_reduce_scatter=4624 data_all_gather=9248
# Gradients are shared out after each micro-batch, parameters gathered before each pass.
held net4 data=4,zero=1 1 data_reduce_scatter=4624 data_all_gather=4624 inputs=2560
held net4 data=4,zero=3 1 data_reduce_scatter=18496 data_all_gather=36992
# Two tensor ranks: layers 0 and 2 by columns (544), 1 and 3 by rows, whose biases are whole (576),
# the last by columns (136). Of the values, those behind columns are halved.
held net tensor=2 1 parameters=2376 gradients=2376 optimizer=4752 kept_each=1600 inputs=640 \
    tensor_all_gather=0
# All-reduced: results of layers 1 and 3 (512 each), cotangents of what layer 2 and the last one
# read (512 each), and a sum of squares for each row (32).
held net tensor=2 1 tensor_all_reduce=2080
# Three do not divide 16 or 4: all is whole, and named.
held net tensor=3 1 parameters=4624 kept_each=2176 tensor_all_reduce=0
grep -q '"name": "layer.0.weight", "why": "16 is no multiple of 3"' "$scratch/json"
verdict $? "tensor=3: layer.0.weight is not named"
# Two stages: layers 0 and 1, the rest. The cotangent that comes back is behind tanh, so the second
# stage keeps the value of tanh before it.
held net4 pipe=2 1 parameters=2176 gradients=2176 optimizer=4352 kept_each=512 \
    in_flight=2 kept=1024 inputs=2048 pipe_send=2048
held net4 pipe=2 2 parameters=2448 kept_each=1664 in_flight=1 kept=1664 inputs=512 pipe_send=2048
# Five stages are the five block calls; of four micro-batches the first keeps as many.
held net4 pipe=5 1 parameters=1088 in_flight=4
held net4 pipe=5 5 parameters=272 in_flight=1

# Tied weights lie on both stages, and their gradients are added.
cat >"$scratch/tied.model" <<'E1'
use nn
model tied(batch = 2) {
    input x : i32[batch, 3] in 0..10
    param wte : f32[10, 4] = normal
    h = wte[x]
    for i in 0..2 {
        h = h + tanh(nn.linear(h, 4) as layer[i])
    }
    loss mean(nn.cross_entropy(h @ transpose(wte), x))
}
E1
held tied pipe=2 1 parameters=240 tied_all_reduce=160 optimizer=0
held tied pipe=2 2 parameters=240 tied_all_reduce=160
# Half of the table's rows (80); layer 0 by columns (40), which leaves h split; so layer 1 by rows
# (32), and its bias is whole (16).
held tied tensor=2 1 parameters=168

# says STATUS WORDS OPTION...
says() {
    wanted=$1 words=$2
    shift 2
    "$gradc" plan "$@" >"$scratch/out" 2>&1
    status=$?
    [ "$status" -eq "$wanted" ] && grep -qF -- "$words" "$scratch/out"
    verdict $? "$*: status $status instead of $wanted, and not \`$words\`: $(cat "$scratch/out")"
}
net=$scratch/net.model
says 0 "64 devices: 8 data x 4 tensor x 2 pipeline, ZeRO 1" "$net" \
    --devices data=8,tensor=4,pipe=2,zero=1
says 0 "stage 2 of 2: layer." "$net" --devices pipe=2
says 2 "--devices takes data, tensor, pipe and zero, not \`\`" "$net" --devices ""
says 2 "not \`dat\`; did you mean \`data\`?" "$net" --devices dat=2
says 2 "not \`\`" "$net" --devices data=2,
says 2 "--devices wants data=N, a whole number from 1 to 1048576, not \`data\`" "$net" --devices data
says 2 "not \`data=0\`" "$net" --devices data=0
says 2 "not \`tensor=2x\`" "$net" --devices tensor=2x
says 2 "not \`tensor=99999999999999999999\`" "$net" --devices tensor=99999999999999999999
says 2 "a whole number from 1 to 64, not \`pipe=65\`" "$net" --devices pipe=65
says 2 "a whole number from 0 to 3, not \`zero=4\`" "$net" --devices data=2,zero=4
says 2 "--devices has data twice" "$net" --devices data=2,data=2
says 2 "zero=1 shares out what data ranks have, and data is 1" "$net" --devices zero=1
says 2 "the model has 5 parts in a row, too few for 6 stages" "$net" --devices pipe=6
says 2 "it goes without --pareto" "$net" --devices data=2 --pareto
says 2 "it goes without --entry" "$net" --devices data=2 --entry grad
says 2 "--format does not know \`svg\`" "$net" --devices data=2 --format svg
says 2 "--devices does not go with --diff" --diff --devices data=2 a.json b.json
# A model for many devices is planned in seconds: 96 layers of width 12288.
# shellcheck disable=SC2086  # several words
says 0 "stage 16 of 16: h.90 to ln_f; 6.6 % of the time" examples/gpt2.model -D layers=96 -D width=12288 -D heads=96 -D ctx=2048 \
    -D positions=2048 -D vocab=50304 -D batch=1 --devices data=8,tensor=8,pipe=16,zero=1
total
