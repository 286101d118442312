#!/bin/sh
# How many variants of a model's kernels are among what the emulator has run of smaller ones.
#
#   sh tests/cuda/variants.sh BUILD PERCENT WHOLE SET...
#
# WHOLE is FILE.model[:OPTION...] with its true sizes, which is not run; SETs are what run.sh has run.
# PERCENT of the variants have to be among theirs, and each tile. A variant is the text of a kernel
# without numbers: sizes, offsets, literals; only the threads of a fold count. A tile of a contraction
# is the elements of C that a block and a thread have, whose numbers say how code is written out.
set -u
build=$1 least=$2 whole=$3
shift 3
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/tally.sh
. "$here/../tally.sh"
make_scratch

# text SET: its kernels.
text() {
    # shellcheck disable=SC2046  # several words
    case $1 in
    *.model*)
        "$build/gradc-cuda-steps" "${1%%:*}" "$scratch" --text $(echo "$1:" | cut -d: -f2- | tr : ' ')
        ;;
    *) "$build/gradc-cuda-cases" "$1" "$scratch" ;;
    esac >"$scratch/out" 2>&1 || fail "no kernels of $1: $(cat "$scratch/out")"
    sed -n '/---- kernels ----/,$p' "$scratch/kernels.cu"
}

# variants: of a text, "code NAME|TEXT" and "tile NAME|TILE" of each kernel.
variants() {
    grep -v '^#line' | sed 's/, \([0-9]*\)>/, L\1>/g' | awk '
    /^\/\*.* a block has / {
        tile = $0
        sub(/.* a block has /, "", tile)
        sub(/ \*\/.*/, "", tile)
    }
    /^extern "C" __global__/ {
        getline
        name = $0
        sub(/\(.*/, "", name)
        sub(/^[^(]*/, "")
        inside = 1
        text = ""
    }
    inside { text = text " " $0 }
    inside && /^}/ {
        print "code " name "|" text
        if (tile != "")
            print "tile " name "|" tile
        tile = inside = ""
    }' | sed -e '/^code/s/\([^A-Za-z0-9_.]\)[0-9][0-9.]*\(e[-+]*[0-9]*\)*\(ll\|f\)*/\1#/g' \
        -e 's/  */ /g'
}

# share KIND: prints how many variants of the kind there are, and are run; their percentage.
share() {
    sed -n "s/^$1 [^|]*|//p" "$scratch/whole" | sort -u >"$scratch/all"
    sed -n "s/^$1 [^|]*|//p" "$scratch/run" | sort -u >"$scratch/ours"
    comm -23 "$scratch/all" "$scratch/ours" >"$scratch/others"
    all=$(wc -l <"$scratch/all") others=$(wc -l <"$scratch/others")
    percent=$((all > 0 ? 100 * (all - others) / all : 0))
    names=
    [ "$others" -eq 0 ] || names=$(grep -F -f "$scratch/others" "$scratch/whole" |
        sed -n "s/^$1 \([^|]*\)|.*/ \1/p" | head -n 20 | tr -d '\n')
    echo "$whole: $((all - others)) of $all kinds of $1 run on the emulator${names:+; not$names}"
}

text "$whole" | variants >"$scratch/whole"
for set in "$@"; do
    text "$set" | variants
done >"$scratch/run"
share code
[ "$percent" -ge "$least" ]
verdict $? "only $percent % of the variants of $whole are run"
share tile
[ "$percent" -eq 100 ]
verdict $? "tiles of $whole that are not run: $(tr '\n' ';' <"$scratch/others")"
total
