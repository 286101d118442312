#!/bin/sh
# One fuzz target of build-fuzz; what it says goes to build-fuzz/NAME.txt, how it ends
# to build-fuzz/NAME.status.
#
#   sh tests/fuzz/one.sh RUNS SEED NAME
set -u
runs=$1 seed=$2 name=$3
corpus=build-fuzz/corpus/$name
mkdir -p "$corpus" "build-fuzz/found/$name" "tests/fuzz/corpus/$name"
more=
[ -f "tests/fuzz/$name.dict" ] && more=-dict=tests/fuzz/$name.dict
# Text that is edited too much at once is no model any more.
[ "$name" = fuzz_shape ] && more=-mutate_depth=2
"build-fuzz/$name" "-runs=$runs" "-seed=$seed" -timeout=20 -rss_limit_mb=3000 \
    -max_len=4096 -print_final_stats=1 "-artifact_prefix=build-fuzz/found/$name/" \
    ${more:+"$more"} "$corpus" "tests/fuzz/corpus/$name" >"build-fuzz/$name.txt" 2>&1
echo $? >"build-fuzz/$name.status"
