#!/bin/sh
# The contract of the emitted object: its arena, what it refuses, its symbols, its
# header in four languages, other machines, and what many layers cost.
#
#   sh tests/object/run.sh GRADC
set -u
gradc=${1:-build/gradc}
case $gradc in
/*) ;;
*) gradc=$(pwd)/$gradc ;;
esac
cd "$(dirname "$0")/../.." || exit 3
root=$PWD
. tests/tally.sh
make_scratch
work=$scratch checked=$scratch/out
cc=${CC:-cc}
warnings="-Wall -Wextra -Wpedantic -Wconversion -Werror"
libraries="-lz -ljansson -lpthread -lm"

# counted COMMAND...: shows a program's output and adds its last line.
counted() {
    "$@" >"$work/out" 2>&1
    grep -v '^passed=' "$work/out"
    add "$(grep '^passed=' "$work/out" | tail -n 1)"
}

upper() {
    printf '%s' "$1" | tr '[:lower:]' '[:upper:]'
}

# The model of this name, here or among the examples.
source_of() {
    if [ -f "tests/object/$1.model" ]; then
        echo "tests/object/$1.model"
    else
        echo "examples/$1.model"
    fi
}

# Of plans as JSON: bytes at the end of the block that are scratch of lanes, which kernels need not
# fill, where a step has it there.
# shellcheck disable=SC2016  # awk's
scratch_at_end='
function number(key) {
    if (!match($0, "\"" key "\": [0-9]+"))
        return 0
    return substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 4) + 0
}
/^ *"peak": / { peak = number("peak"); if (peak > most) most = peak }
/"workspace_offset": / {
    lanes = number("lanes") * number("lane_bytes")
    end = number("workspace_offset") + int((number("workspace") + 63) / 64) * 64 + lanes
    if (lanes > at[end]) at[end] = lanes
}
END { print at[most] + 0 }'

# model NAME [OPTION...]: NAME.o, NAME.h, and NAME.scratch: bytes as above.
model() {
    name=$1
    shift
    check "gradc build $name" "$gradc" build -q --verify "$(source_of "$name")" "$@" \
        -o "$work/$name.o"
    "$gradc" plan -q --json --entry init,eval,grad,step "$(source_of "$name")" "$@" |
        awk "$scratch_at_end" >"$work/$name.scratch"
}

# contract NAME [FLAG...]: tests/object/contract.c over it.
contract() {
    name=$1
    shift
    # shellcheck disable=SC2086  # a list of flags
    check "contract.c for $name" "$cc" -std=c11 -O1 $warnings "$@" "-I$work" "-DNAME=$name" \
        "-DARENA=$(upper "$name")_ARENA_BYTES" "-DSCRATCH=$(cat "$work/$name.scratch")" \
        "-DHEADER=\"$name.h\"" tests/object/contract.c \
        "$work/$name.o" -o "$work/contract" && counted "$work/contract"
}

# symbols NAME: what the object needs and what the linker must do to it.
symbols() {
    object=$work/$1.o
    undefined=$(nm -u "$object" | awk '{ print $2 }' |
        grep -v -x -e memcpy -e memmove -e memset -e memcmp -e _GLOBAL_OFFSET_TABLE_)
    check "$1.o needs $undefined" test -z "$undefined"
    foreign=$(nm -g --defined-only "$object" | awk -v name="$1_" 'index($3, name) != 1')
    check "$1.o exports $foreign" test -z "$foreign"
    check "$1.o has no text relocations" "$cc" -shared -nostdlib -Wl,-z,text \
        -Wl,--fatal-warnings "$object" -o "$work/$1.so"
    stack=$(readelf -lW "$work/$1.so" | awk '$1 == "GNU_STACK" && / RWE /')
    check "$1.o has no executable stack" test -z "$stack"
    # Names, sizes and flags of sections; data that relocations fill is read-only later.
    changing=$(readelf -SW "$object" | sed 's/^ *\[ *[0-9]*\] *//' |
        awk '$7 ~ /W/ && $5 !~ /^0+$/ && $1 !~ /^\.data\.rel\.ro/ { print $1 }')
    check "$1.o has variables: $changing" test -z "$changing"
}

# lines NAME: kernels are code of lines of the model, to debuggers and profilers; but for a few, as
# what counts steps, which no line asks for.
lines() {
    nm "$work/$1.o" | awk '$3 ~ /\.k[0-9]+_/ { print $1 }' >"$work/kernels"
    addr2line -e "$work/$1.o" -j .text <"$work/kernels" >"$work/lines"
    all=$(wc -l <"$work/kernels") known=$(grep -c "$1\.model:[1-9]" "$work/lines")
    check "$1.o: $known of $all kernels have lines" test $((known * 10)) -ge $((all * 9))
    wrong=$(readelf --debug-dump=frames,info,decodedline "$work/$1.o" 2>&1 >"$work/dump" | head -n 3)
    check "$1.o: debug information: $wrong" test -z "$wrong"
    frames=$(grep -c 'FDE' "$work/dump") functions=$(nm "$work/$1.o" | grep -c -i ' t ')
    check "$1.o: $frames of $functions functions can be unwound" test "$frames" -eq "$functions"
}

# headers FILE...: each alone and all together, in the languages that promise it.
headers() {
    for header in "$@"; do
        echo "#include \"$header\"" >"$work/one.c"
        cat "$work/one.c" >>"$work/all.c"
        languages "$header" "$work/one.c"
    done
    languages "all headers together" "$work/all.c"
}

# languages NAME FILE: what it says, with every compiler here.
languages() {
    for compiler in gcc clang clang-19 clang-16; do
        command -v $compiler >/dev/null 2>&1 || continue
        for standard in c99 c11 c++11 c++20; do
            case $standard in c++*) x=c++ ;; *) x=c ;; esac
            # An old compiler may not know c++20 by this name.
            echo 'int x;' >"$work/probe.c"
            $compiler -x$x -std=$standard -fsyntax-only "$work/probe.c" 2>/dev/null || continue
            # shellcheck disable=SC2086
            check "$1 in $standard by $compiler" $compiler -x$x -std=$standard $warnings \
                -Wshadow -Wundef -fsyntax-only "-I$work" "$2"
        done
    done
}

# fewer NAME ROWS [OPTION...]: the model against a compile for ROWS rows.
fewer() {
    name=$1 few=$2
    shift 2
    sed -e "s/^model $name/model ${name}_few/" -e "s/^train $name/train ${name}_few/" \
        "$(source_of "$name")" >"$work/few.model"
    check "gradc build $name for $few rows" "$gradc" build -q "$work/few.model" "$@" \
        -D "batch=$few" -o "$work/${name}_few.o"
    # shellcheck disable=SC2086
    check "partial.c for $name" "$cc" -std=c11 -O1 $warnings -Iruntime "-DBIG=${name}_model" \
        "-DSMALL=${name}_few_model" tests/object/partial.c "$work/$name.o" \
        "$work/${name}_few.o" -lm -o "$work/partial" && counted "$work/partial"
}

# magic TRIPLE BYTES: the first bytes of the object for that machine.
magic() {
    "$gradc" build -q examples/digits.model --triple "$1" --cpu baseline -o "$work/other.o" \
        >"$work/out" 2>&1
    bytes=$(od -An -tx1 -N20 "$work/other.o" 2>/dev/null | tr -d ' \n')
    # shellcheck disable=SC2254  # a pattern
    case $bytes in
    $2*) ok ;;
    *) cat "$work/out" && fail "an object for $1 begins with $bytes" ;;
    esac
    rm -f "$work/other.o"
}

# bits FOLDER CC [RUNNER]: digits there, 20 steps, into FOLDER/bits.
bits() {
    "$2" -std=c11 -O1 -static "-I$1" tests/object/bits.c "$1/digits.o" -o "$1/program" &&
        ${3:+"$3"} "$1/program" >"$1/bits"
}

numerics() {
    sed -n 's/.*_NUMERICS "\([^"]*\)".*/\1/p' "$1/digits.h"
}

# on TRIPLE CPU FOLDER: digits for that machine.
on() {
    mkdir -p "$work/$3"
    "$gradc" build -q examples/digits.model --triple "$1" --cpu "$2" -o "$work/$3/digits.o"
}

aarch64() {
    qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64)
    if [ -z "$qemu" ] || ! command -v aarch64-linux-gnu-gcc >/dev/null 2>&1; then
        skip "digits on aarch64: no aarch64-linux-gnu-gcc or no qemu-aarch64 here"
        return
    fi
    on aarch64-linux-gnu baseline arm &&
        check "digits runs on aarch64" bits "$work/arm" aarch64-linux-gnu-gcc "$qemu"
    if [ "$(numerics "$work/arm")" = "$(numerics "$work/here")" ]; then
        check "aarch64 and $(uname -m) give the same bits" cmp "$work/arm/bits" "$work/here/bits"
        echo "digits on aarch64 ends in $(tail -n 1 "$work/arm/bits"), here in" \
            "$(tail -n 1 "$work/here/bits")"
    else
        skip "aarch64 against this machine: another class of numerics"
    fi
}

# A processor that this one is not: init names what is missing, and nothing crashes.
foreign_cpu() {
    [ "$(uname -m)" = x86_64 ] || {
        skip "processors: this is no x86-64"
        return
    }
    for cpu in skylake-avx512 sapphirerapids znver4; do
        on x86_64-linux-gnu $cpu cpu || continue
        "$cc" -std=c11 -DREFUSED "-I$work/cpu" tests/object/bits.c "$work/cpu/digits.o" \
            -o "$work/cpu/program" || continue
        if "$work/cpu/program" >"$work/out"; then
            echo "$cpu: $(cat "$work/out")"
            ok
            return
        fi
        grep -q . "$work/out" && fail "$cpu: $(cat "$work/out")" && return
    done
    skip "processors: this one has all that was tried"
}

# of JSON NAME: a figure of `gradc build --json`.
of() {
    sed -n "s/.*\"$2\": \([0-9.]*\).*/\1/p" "$1"
}

# Layers of one kind share their kernels.
layers() {
    for n in 12 48; do
        check "$1 with $n layers" "$gradc" build --json --no-cache "examples/$1.model" -D "layers=$n" \
            -D heads=2 -D width=16 -D vocab=32 -D ctx=8 -D batch=2 -o "$work/layers.o"
        cp "$work/out" "$work/layers.$n"
    done
    few=$(of "$work/layers.12" kernels) many=$(of "$work/layers.48" kernels)
    echo "$1: 12 layers: $few kernels, $(of "$work/layers.12" compile_ms) ms;" \
        "48 layers: $many kernels, $(of "$work/layers.48" compile_ms) ms"
    check "$1: as many kernels for 48 layers as for 12" test "$few" -eq "$many"
}

model digits
model line
model fashion -D batch=4
model chargpt -D layers=2 -D width=32 -D heads=2 -D ctx=16 -D batch=3
model resnet8 -D batch=2
# shellcheck disable=SC2046  # a list of options
model gpt2 $(sed -n 's/^# short: *//p' examples/gpt2.model)
model wide
model turns

contract digits -DSAME_EVAL
contract line -DSAME_EVAL
contract fashion
contract chargpt -DSAME_EVAL
contract resnet8
contract gpt2 -DSAME_EVAL
contract wide
contract turns -DSAME_EVAL
# Eval without inputs that have no copy, where what is planned lies close.
for budget in "" "--budget min" "--budget light"; do
    # shellcheck disable=SC2086  # two words
    model lacking --chunk 64 $budget && contract lacking
done
model wide --budget min
contract wide
for name in digits line fashion chargpt resnet8 gpt2 wide turns lacking; do
    symbols "$name"
done
lines digits
lines resnet8

# Denormals flushed.
if grep -q '^flags.* fma ' /proc/cpuinfo 2>/dev/null; then
    model wide --denormals flush
    contract wide
    symbols wide
    model wide
else
    skip "wide with denormals flushed: this is no x86-64 with fma"
fi

# offloaded OPTION [OPTION...]: beside the same model with nothing offloaded, which is built with
# the first option alone.
offloaded() {
    both=$1
    shift
    sed 's/^\( *\)offload \([a-z] =\)/\1\2/; s/^\(model\|train\) offload/\1 whole/' \
        tests/object/offload.model >"$work/whole.model"
    model offload "$both" "$@"
    check "gradc build whole" "$gradc" build -q "$work/whole.model" "$both" -o "$work/whole.o"
    # shellcheck disable=SC2086  # lists of flags
    check "offload.c $both $*" "$cc" -std=c11 -O1 $warnings "-I$work" -Iruntime tests/object/offload.c \
        "$work/offload.o" "$work/whole.o" "$(dirname "$gradc")/libgradc.a" $libraries \
        -o "$work/offloaded" && counted "$work/offloaded" "$work/store"
    symbols offload
}
offloaded --precision=f32
offloaded --precision=bf16
offloaded --precision=f32 --budget min --offload host

text=$(size -A "$work/digits.o" | awk '$1 ~ /^\.text/ { n += $2 } END { print n }')
echo "digits: $text bytes of text"
check "digits.o has $text bytes of text, more than 64 KiB" test "$text" -le 65536

# shellcheck disable=SC2086
check "two models in one program" "$cc" -std=c11 -O1 $warnings "-I$work" tests/object/two.c \
    "$work/digits.o" "$work/line.o" -o "$work/two" && counted "$work/two"

fewer digits 37
fewer line 100
model fashion -D batch=4 -D drop=0
fewer fashion 3 -D drop=0
fewer chargpt 2 -D layers=2 -D width=32 -D heads=2 -D ctx=16
fewer resnet8 1
fewer wide 5
fewer turns 5
model byrow --chunk 64
fewer byrow 3 --chunk 64

check "names that C has taken" "$gradc" build -q tests/object/names.model -o "$work/names.o"
headers digits.h line.h fashion.h chargpt.h resnet8.h gpt2.h wide.h names.h

magic aarch64-linux-gnu 7f454c460201010000000000000000000100b700
magic x86_64-linux-gnu 7f454c4602010100000000000000000001003e00
magic x86_64-pc-windows-msvc 6486
magic aarch64-pc-windows-msvc 64aa
magic x86_64-apple-macos11 cffaedfe07000001
magic arm64-apple-macos11 cffaedfe0c000001

mkdir "$work/here" && cp "$work/digits.o" "$work/digits.h" "$work/here"
check "digits runs here" bits "$work/here" "$cc"
aarch64
foreign_cpu
layers chargpt

cd "$root" || exit 3
total
