#!/bin/sh
# What `build --dump` prints is the graph that `show` does, however long it is.
#
#   sh tests/run/dump.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch
for model in examples/digits.model examples/chargpt.model examples/resnet8.model; do
    "$gradc" show "$model" --entry step --joint >"$scratch/shown"
    "$gradc" build "$model" -o "$scratch/m.o" --dump=joint 2>/dev/null |
        sed '1,/^# step, joint$/d; /^# /,$d' >"$scratch/dumped"
    cmp "$scratch/shown" "$scratch/dumped"
    verdict $? "dump: $model"
done
total
