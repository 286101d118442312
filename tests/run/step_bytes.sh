#!/bin/sh
# Bytes of a step besides parameters and optimizer state, and those that its kernels read and write,
# of models that are measured beside others.
#
#   sh tests/run/step_bytes.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch

# most MODEL BYTES OPTION...: a step takes no more than that, and little less: else the figure is old.
most() {
    name=$1 limit=$2
    shift 2
    "$gradc" plan "tests/bench/models/$name.model" --entry step --cpu x86-64-v3 --threads-max 1 \
        --verify --json "$@" >"$scratch/plan"
    bytes=$(awk '/"entry": "step"/ { here = 1 }
        here && /"peak":/ { gsub(/[^0-9]/, ""); peak = $0 }
        here && /"by_role":/ {
            match($0, /"parameters": [0-9]*/); p = substr($0, RSTART + 14, RLENGTH - 14)
            match($0, /"optimizer": [0-9]*/); o = substr($0, RSTART + 13, RLENGTH - 13)
            print peak - p - o; exit
        }' "$scratch/plan")
    [ "${bytes:-0}" -le "$limit" ] && [ "${bytes:-0}" -ge $((limit * 97 / 100)) ]
    verdict $? "$name $*: a step takes $bytes bytes, and not about $limit"
}

# moved MODEL KB: the kernels of a step read and write no more than that, and little less.
moved() {
    "$gradc" show "tests/bench/models/$1.model" --entry step --cpu x86-64-v3 --kernels >"$scratch/kernels"
    kb=$(sed -n 's/^entry step: .*, \([0-9]*\)\.\([0-9]*\) MB, .*/\1\2/p' "$scratch/kernels")
    [ "${kb:-0}" -le "$2" ] && [ "${kb:-0}" -ge $(($2 * 97 / 100)) ]
    verdict $? "$1: the kernels of a step move $kb KB, and not about $2"
}

# A mean that was taken twice, and a sum of what reaches x by way of the variance's mean: 372 MB.
moved resnet8 319600
most lenet 2161000
most resnet8 25390000
most conv-fashion 21705000
most gpt-tiny 24036000
most gpt-tiny 23970000 --budget light
most gpt2-124m-b4-t64 498771000
most gpt2-124m-b4-t256 707266000
most mobilenetv2-b1-all 2234000
most mobilenetv2-b8-all 18175000
most mobilenetv2-b1-sparse 1189000
most mobilenetv2-b8-sparse 9920000
most rnn-1000 8461000
most llama 52136000 -D layers=4 -D width=256 -D hidden=688 -D heads=4 -D kv=4 -D vocab=512 -D ctx=256 -D batch=4
total
