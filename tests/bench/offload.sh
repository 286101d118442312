#!/bin/sh
# What of the transfers to disks of several speeds computing hides.
#
#   sh tests/bench/offload.sh [GRADC [STEPS]]
#
# The plan is told the disk's speed, and computing on one thread with --cost, as
# `gradc doctor --calibrate` measures it here.
set -u
gradc=${1:-build/gradc} steps=${2:-10}
here=$(dirname "$0")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
"$gradc" doctor --calibrate -o "$work/cost.json" || exit 1
echo "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), one thread, $(date +%Y-%m-%d)"
for rate in 250000000 500000000 1000000000 2000000000; do
    "$gradc" build -q "$here/models/offload.model" --cost "$work/cost.json" --offload-rate "$rate" \
        -o "$work/offload.o" &&
        "${CC:-cc}" -O2 "-I$work" "-I$here/../../runtime" "$here/offload.c" "$work/offload.o" \
            "$(dirname "$gradc")/libgradc.a" -lz -ljansson -lpthread -lm -o "$work/offload" &&
        "$work/offload" "$rate" "$steps" || exit 1
done
sed 's/^\( *\)offload \([a-z] =\)/\1\2/' "$here/models/offload.model" >"$work/whole.model"
"$gradc" bench "$work/whole.model" --threads 1 --steps "$steps" | grep -E '^(step_ms|arena)' |
    sed 's/^/nothing offloaded: /'
