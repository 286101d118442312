#!/bin/sh
# The set `words` of cases.c on the emulator, beside its golden vectors.
#
#   sh tests/cuda/words.sh BUILD       UPDATE=1: writes tests/cuda/words.txt, of the exact interpreter
#
# Golden vectors are what the interpreter gives, so that a change of it is seen, too; kernels are
# compared with them bit for bit. Every function of prelude.cuh, by its types, has to be in a kernel
# of the set, and each of the bugs of words-plants.txt has to be seen.
set -u
build=$1
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/tally.sh
. "$here/../tally.sh"
make_scratch
set=$scratch/set

# compile FOLDER: the emulator with the kernels that lie there; functions stay what they are called.
compile() {
    g++ -std=c++17 -O0 -ffp-contract=off -ftrivial-auto-var-init=pattern -I"$here" \
        -DKERNELS="\"$1/kernels.cu\"" -DCASE_LIST="\"$1/list.inc\"" "$here/run.cpp" -o "$1/run"
}

# wanted TEXT: a pattern for each function of the prelude, as `nm -C` prints it.
wanted() {
    sed -e '/---- functions ----/q' "$1" | awk '
    function plain(type) {
        sub(/^i64/, "long long", type)
        sub(/^u64/, "unsigned long long", type)
        sub(/^u32/, "unsigned int", type)
        sub(/^u16/, "unsigned short", type)
        sub(/^u8/, "unsigned char", type)
        return type
    }
    /^struct/ { inside = $2 "::" }
    /^};/ { inside = "" }
    /DEVICE / && !/^#/ {
        template = /template/
        sub(/.*DEVICE /, "")
        sub(/\).*/, "")
        split($0, half, "(")
        from = index($0, "(")
        n = split(substr($0, from + 1), param, ", ")
        words = split(half[1], word, " ")
        gives = plain(word[1])
        name = inside word[words]
        list = ""
        for (i = 1; i <= n; i++) {
            sub(/ [^ ]*$/, "", param[i])
            list = list (i > 1 ? ", " : "") plain(param[i])
        }
        if (!template)
            print "^" name "[(]" list "[)]$"
        else if ($0 ~ /\(&/)
            print " " name "<.*[(]&[)]"
        else if ($0 ~ / T /)
            print " " name "<"
        else
            print "^" gives " " name "<.*[(]" list "[)]$"
    }'
}

# missing FOLDER: functions of the prelude that none of its kernels has.
missing() {
    nm -C "$1/run" | sed -n 's/^[0-9a-f]* [tW] //p' >"$scratch/has"
    wanted "$1/kernels.cu" | while read -r pattern; do
        grep -q -e "$pattern" "$scratch/has" || echo "$pattern"
    done
}

golden() {
    check "the kernels of words" "$build/gradc-cuda-cases" words "$set"
    if [ -n "${UPDATE:-}" ]; then
        cp "$set/golden.txt" "$here/words.txt"
    else
        check "tests/cuda/words.txt is not what the interpreter gives (UPDATE=1 writes it)" \
            diff "$here/words.txt" "$set/golden.txt"
    fi
}

emulate() {
    check "kernels of words don't compile" compile "$set"
    "$set/run" "$set/cases.bin" >"$scratch/out" 2>&1
    grep -v '^passed=' "$scratch/out" | head -n 20
    add "$(tail -n 1 "$scratch/out")"
}

covered() {
    [ "$(wanted "$set/kernels.cu" | wc -l)" -gt 60 ]
    verdict $? "few functions are found in prelude.cuh"
    missing "$set" >"$scratch/missing"
    [ ! -s "$scratch/missing" ]
    verdict $? "functions of prelude.cuh without a vector: $(tr '\n' ' ' <"$scratch/missing")"
}

# plants: all bugs at once, each of which spoils a kernel that no other one does; and a new function.
plants() {
    bad=$scratch/bad
    mkdir "$bad"
    cp "$set/list.inc" "$bad"
    cp "$set/kernels.cu" "$bad/kernels.cu"
    grep -v '^#' "$here/words-plants.txt" >"$scratch/list"
    while IFS='|' read -r name _ command; do
        cp "$bad/kernels.cu" "$scratch/before"
        sed "$command" "$scratch/before" >"$bad/kernels.cu"
        ! cmp -s "$scratch/before" "$bad/kernels.cu"
        verdict $? "$name changes nothing"
    done <"$scratch/list"
    sed '/^DEVICE float bf16_value/i DEVICE u8 next_after(u8 x, int by) { return (u8)(x + by); }' \
        "$bad/kernels.cu" >"$scratch/before"
    cp "$scratch/before" "$bad/kernels.cu"
    check "planted kernels don't compile" compile "$bad"
    "$bad/run" "$set/cases.bin" >"$scratch/out" 2>&1
    while IFS='|' read -r name kernel _; do
        grep -q "(${kernel# }, order\|(${kernel# }), order" "$scratch/out"
        verdict $? "nobody sees $name in $kernel"
    done <"$scratch/list"
    [ "$(missing "$bad")" = '^next_after[(]unsigned char, int[)]$' ]
    verdict $? "nobody sees a function without a vector: $(missing "$bad")"
}

mkdir "$set"
golden
if command -v g++ >/dev/null && command -v nm >/dev/null; then
    emulate
    covered
    plants
else
    skip "words on the emulator: there is no g++ or no nm"
fi
total
