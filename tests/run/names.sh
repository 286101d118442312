#!/bin/sh
# Models whose names are no identifiers of C, or are words of it, run as others do, and their headers
# compile.
#
#   sh tests/run/names.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch
root=$(cd "$(dirname "$0")/../.." && pwd)

for name in double far int _x auto while; do
    cat >"$scratch/$name.model" <<END
model $name(batch = 2) {
    input x : f32[batch]
    param w : f32[1] = ones
    loss mean(w * x)
}
train $name {
    optimizer sgd(lr = 0.1)
}
END
    "$gradc" run -q "$scratch/$name.model" >"$scratch/text" 2>&1 && grep -q loss "$scratch/text"
    verdict $? "run $name: $(cat "$scratch/text")"
    "$gradc" bench -q "$scratch/$name.model" --steps 1 --profile >"$scratch/text" 2>&1
    verdict $? "profile of $name: $(cat "$scratch/text")"
    "$gradc" build -q "$scratch/$name.model" -o "$scratch/$name.o" >"$scratch/text" 2>&1 &&
        ${CC:-cc} -std=c11 -Wall -Werror -fsyntax-only -I"$root/runtime" -x c \
            "$scratch/$name.h" >>"$scratch/text" 2>&1
    verdict $? "header of $name: $(cat "$scratch/text")"
done
total
