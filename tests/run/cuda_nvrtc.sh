#!/bin/sh
# NVRTC as gradc finds it: missing, old, failing in each call, answering with rubbish; and the cache
# of what it has made. A library of our own takes its place (tests/cuda/fake_nvrtc.c).
#
#   sh tests/run/cuda_nvrtc.sh GRADC
set -u
case ${1:-build/gradc} in
/*) gradc=${1:-build/gradc} ;;
*) gradc=$(pwd)/${1:-build/gradc} ;;
esac
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch
model=$(pwd)/examples/digits.model
for variant in "" -DWITHOUT_CUBIN; do
    # shellcheck disable=SC2086  # no word or one
    ${CC:-cc} -std=c11 -shared -fPIC $variant tests/cuda/fake_nvrtc.c tests/support/cubin_make.c \
        -o "$scratch/fake$variant.so" 2>"$scratch/said"
    verdict $? "the library does not compile: $(cat "$scratch/said")"
done
cd "$scratch" || exit 3
unset GRADC_CACHE
export GRADC_NVRTC="$scratch/fake.so" XDG_CACHE_HOME="$scratch/xdg" FAKE_LOG="$scratch/log"

# compiles [OPTION...]: images of digits, for two architectures and PTX.
compiles() {
    rm -f d.*
    "$gradc" build --target cuda --arch sm_80,sm_90,newest "$model" -o d.o --emit cubin \
        --emit ptx --json "$@" >told 2>said
}

# one STATUS WORDS WHAT: the last command ended so, with one error and no file.
one() {
    [ "$status" -eq "$1" ] && [ "$(grep -c '"severity":"error"' said)" -eq 1 ] &&
        grep -qF -- "$2" said && [ -z "$(ls d.* 2>/dev/null)" ]
    verdict $? "$3: status $status instead of $1, and not \`$2\`: $(cat said)"
}

# fails STATUS WORDS NAME=VALUE...: with this in the environment.
fails() {
    wanted=$1 words=$2
    shift 2
    (
        # shellcheck disable=SC2163  # NAME=VALUE
        export "$@"
        compiles --no-cache
    )
    status=$?
    one "$wanted" "$words" "$*"
}

compiles --no-cache
verdict $? "images: $(cat said)"
check "two cubins and PTX" [ "$(ls d.ptx d.*.cubin)" = "$(printf '%s\n' d.ptx d.sm_80.0.cubin \
    d.sm_80.1.cubin d.sm_80.2.cubin d.sm_90.0.cubin d.sm_90.1.cubin d.sm_90.2.cubin)" ]
check "PTX of all programs, of the newest" [ "$(grep -c '^.target sm_121' d.ptx)" -eq 3 ]
mkdir want && cp d.ptx d.*.cubin want

# ---- several kinds at once ---------------------------------------------------------------------
rm -f d.*
"$gradc" build -q --target cuda --arch sm_90,newest --no-cache "$model" -o d.o \
    --emit ptx,cubin,cuda=a,b.cu 2>said && cmp -s d.ptx want/d.ptx &&
    cmp -s d.sm_90.2.cubin want/d.sm_90.2.cubin && grep -q __global__ a,b.cu
verdict $? "--emit ptx,cubin,cuda=a,b.cu: $(cat said)"
for list in 'ptx,' ',ptx' 'ptx,foo' 'ptx,=d.ptx'; do
    rm -f d.*
    "$gradc" build --target cuda --json "$model" -o d.o --emit "$list" 2>said
    status=$?
    one 2 "--emit does not know" "--emit $list"
done

# ---- a grid that is too large ----------------------------------------------------------------
cat >vast.model <<'END'
model vast {
    input x : f32[1048576, 1048576]
    param w : f32[1] = ones
    output y = x * 2.0
    loss mean(x) * sum(w)
}
END
"$gradc" build --target cuda --arch sm_90 --entry eval --no-cache vast.model -o vast.o 2>said
status=$?
[ "$status" -eq 5 ] && [ ! -e vast.o ] && [ "$(grep -c E0708 said)" -eq 1 ] &&
    grep -q 'would need 4294967296 blocks, and 2147483647 can be' said
verdict $? "a grid of too many blocks: status $status: $(cat said)"

# ---- which library --------------------------------------------------------------------------
fails 5 E0703 GRADC_NVRTC=
fails 5 E0703 GRADC_NVRTC="$scratch/none.so"
fails 5 "GRADC_NVRTC names no NVRTC that can be loaded" GRADC_NVRTC="$model"
fails 5 "has no nvrtcGetCUBIN" GRADC_NVRTC="$scratch/fake-DWITHOUT_CUBIN.so"
fails 5 E0704 GRADC_NVRTC=libm.so.6
fails 5 "is NVRTC 11.8, and 12.0 is the oldest that will do" FAKE_VERSION=11.8
fails 5 E0704 FAKE_VERSION=-2147483648.-1
for version in 12.0 99.99; do
    FAKE_VERSION=$version compiles --no-cache
    verdict $? "NVRTC $version: $(cat said)"
done

# ---- calls that fail ---------------------------------------------------------------------------
for code in 1 2 3 4 5 6 7 8 9 10 11 12 -1 2147483647; do
    for call in Version GetNumSupportedArchs GetSupportedArchs; do
        fails 5 "nvrtc$call ends with NVRTC_ERROR_" FAKE_FAIL="nvrtc$call:$code"
    done
    for call in CreateProgram CompileProgram GetCUBINSize GetCUBIN GetPTXSize GetPTX \
        DestroyProgram; do
        fails 5 "nvrtc$call ends with NVRTC_ERROR_" FAKE_FAIL="nvrtc$call:$code"
    done
done
for call in GetProgramLogSize GetProgramLog; do # nobody needs what it says of a success
    FAKE_FAIL=nvrtc$call:3 compiles --no-cache && cmp -s d.ptx want/d.ptx
    verdict $? "nvrtc$call: $(cat said)"
done
fails 5 "13.9 does not compile k0_const to k11_contract_add for sm_80" FAKE_FAIL=nvrtcCompileProgram:6
for words in 'error: first of all' 'error: then' '4 errors'; do
    grep -q "$words" said
    verdict $? "\`$words\` of the log is not shown: $(cat said)"
done
! grep -q 'no more of this' said
verdict $? "all of a log is shown"

# ---- answers that can't be ----------------------------------------------------------------------
fails 5 "ends with an error (5)" FAKE_ODD=no_error FAKE_FAIL=nvrtcCompileProgram:5
fails 5 "0 architectures" FAKE_ODD=no_archs
fails 5 "1073741824 architectures" FAKE_ODD=many_archs
fails 5 "names no architecture" FAKE_ODD=wild_archs
fails 5 "no ELF file" FAKE_ODD=cubin
fails 5 "its cubin can't be read" FAKE_ODD=cubin_cut
fails 5 "its cubin is for sm_81" FAKE_ODD=cubin_arch
fails 5 "its cubin has no k" FAKE_ODD=cubin_kernel
fails 5 "pointers" FAKE_ODD=cubin_arguments
fails 5 "nvrtcGetCUBINSize gives 0 bytes" FAKE_ODD=cubin_empty
fails 5 "nvrtcGetCUBINSize gives" FAKE_ODD=cubin_huge
fails 5 E0706 FAKE_ODD=ptx
fails 5 "its PTX is no text" FAKE_ODD=ptx_zero
fails 5 "its PTX has no k0_const" FAKE_ODD=ptx_kernel
fails 5 "nvrtcCompileProgram" FAKE_ODD=log_huge FAKE_FAIL=nvrtcCompileProgram:6
check "nothing of that was kept" [ ! -e xdg ]

# ---- the architectures -----------------------------------------------------------------------
# asks STATUS WORDS LIST [OPTION...]
asks() {
    wanted=$1 words=$2 list=$3
    shift 3
    rm -f d.*
    "$gradc" build --target cuda --arch "$list" "$model" -o d.o --json --no-cache "$@" >told 2>said
    status=$?
    if [ "$wanted" -ne 0 ]; then
        one "$wanted" "$words" "--arch $list"
    else
        verdict $status "--arch $list: $(cat said)"
    fi
}
for list in sm_87 sm_ sm_9x sm_900000000 compute_100 '' ',' 'sm_80,' ',sm_80' 90 sm_90a newest2 'sm_80 sm_90'; do
    asks 1 E0705 "$list" --emit cubin
done
asks 1 "N is one of 80 86 90 121" sm_75 --emit cubin
asks 0 "" sm_90,sm_90,sm_90 --emit cubin
check "each architecture once" [ "$(echo d.sm*)" = "$(echo d.sm_90.[012].cubin)" ]
asks 0 "" compute_80,newest,compute_121 --emit ptx
check "PTX of two architectures" [ "$(grep -c '^.target' d.ptx)" -eq 6 ]
asks 2 "--emit ptx needs compute_N or newest in --arch" sm_90 --emit ptx
asks 2 "--emit sass needs sm_N in --arch" newest --emit sass
asks 2 "--emit cubin=- is for one cubin, and there are 3" sm_90 --emit cubin=-
"$gradc" build --arch sm_90 "$model" -o d.o --json 2>said
status=$?
one 2 "--arch is for --target cuda" "--arch without the target"
"$gradc" build --target cuda --cpu native "$model" -o d.o --json 2>said
status=$?
one 2 "--cpu is for --target cpu; --arch names GPUs" "--cpu of a GPU"
"$gradc" build -q --no-cache --target cpu,cuda --cpu baseline --arch sm_90 "$model" -o both.o
verdict $? "--cpu and --arch of both targets"

# ---- nvdisasm ------------------------------------------------------------------------------------
cat >dis <<'END'
#!/bin/sh
echo "asked: $1"
wc -c <"$2"
END
chmod +x dis
GRADC_NVDISASM=$scratch/dis asks 0 "" sm_80,sm_90 --emit sass
[ "$(grep -c '^asked: -c' d.sass)" -eq 6 ] && grep -q "^ *$(wc -c <want/d.sm_90.2.cubin)\$" d.sass
verdict $? "cubins as nvdisasm sees them: $(cat d.sass)"
GRADC_NVDISASM=$scratch/none asks 5 "--emit sass needs nvdisasm" sm_80 --emit sass
GRADC_NVDISASM=false asks 5 "ends with status 1" sm_80 --emit sass
cat >dis <<'END'
#!/bin/sh
kill -9 $$
END
GRADC_NVDISASM=$scratch/dis asks 5 "ends with signal 9" sm_80 --emit sass

# ---- the cache -------------------------------------------------------------------------------
# cached WHAT PARTS COMPILED [OPTION...]: the same images; so many from the cache, so many compiled.
cached() {
    what=$1 kept=$2 made=$3
    shift 3
    : >log
    compiles "$@"
    verdict $? "$what: $(cat said)"
    for file in want/*; do
        cmp -s "$file" "$(basename "$file")"
        verdict $? "$what: another $file"
    done
    [ "$(figure cached told)" -eq "$kept" ] && [ "$(wc -l <log)" -eq "$made" ]
    verdict $? "$what: $(figure cached told) cached, $(wc -l <log) compiled, not $kept and $made"
}
cached "no cache" 0 9 --no-cache
check "no cache was made" [ ! -e xdg ]
cached "the first time" 0 9
cached "the second time" 9 0
cached "other threads" 9 0 --jobs 7
cached "--no-cache" 0 9 --no-cache
mkdir there && cp "$model" there
model=$scratch/there/digits.model cached "the model elsewhere" 9 0
FAKE_VERSION=13.8 cached "another NVRTC" 0 9
FAKE_VERSION=13.8 cached "another NVRTC again" 9 0
"$gradc" build --target cuda --arch sm_86 "$model" -o d.o --json --emit cubin >told
[ "$(figure cached told)" -eq 0 ]
verdict $? "another architecture: $(cat told)"

# damage WHAT COMMAND: done to each file.
damage() {
    for file in xdg/gradc/*.gradc; do
        "$2" || fail "$1: $file"
    done
    cached "files are $1" 0 9
    cached "files were $1" 9 0
}
cut_short() { head -c 200 "$file" >part && cat part >"$file"; }
flip() { printf '\377' | dd of="$file" bs=1 seek=$(($(wc -c <"$file") - 9)) conv=notrunc 2>part; }
garbage() { head -c 5000 /dev/urandom >"$file"; }
empty() { : >"$file"; }
damage "cut short" cut_short
damage "flipped" flip
damage "garbage" garbage
damage "empty" empty
: >file
for place in file file/below /proc/none; do
    GRADC_CACHE=$place cached "a cache at $place" 0 9
done
if [ "$(id -u)" -ne 0 ]; then
    mkdir closed && chmod 555 closed
    GRADC_CACHE=closed cached "a folder that is read-only" 0 9
    chmod 755 closed
else
    skip "a folder of images that is read-only: root writes everywhere"
fi

# Several at once, of which some are killed.
rm -rf xdg
for i in 1 2 3 4 5 6; do
    FAKE_SLEEP=20 "$gradc" build -q --target cuda --arch sm_80,sm_90,newest "$model" -o "m$i.o" \
        --emit ptx --jobs 2 &
    [ "$i" -gt 4 ] && sleep 0.1 && kill -9 $! 2>part
done 2>said
wait
for i in 1 2 3 4; do
    check "build $i of many" cmp "m$i.ptx" want/d.ptx
done
cached "after many" 9 0
GRADC_NVRTC='' compiles
status=$?
one 5 E0703 "a cache and no NVRTC"

# ---- who says what is there ---------------------------------------------------------------------
"$gradc" doctor | grep -q '^NVRTC     13\.9, for sm 80 86 90 121, in .*fake\.so$'
verdict $? "doctor: $("$gradc" doctor)"
GRADC_NVRTC='' "$gradc" doctor | grep -q '^NVRTC     none: .*GRADC_NVRTC is empty$'
verdict $? "doctor without NVRTC: $("$gradc" doctor)"
"$gradc" doctor --json | python3 -c 'import json, sys
d = json.load(sys.stdin)
assert d["nvrtc"]["version"] == "13.9" and d["nvrtc"]["archs"] == [80, 86, 90, 121], d'
verdict $? "doctor --json: $("$gradc" doctor --json)"
total
