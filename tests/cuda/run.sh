#!/bin/sh
# Kernels of the target cuda on a CPU: compiled with the emulator, run in three orders, compared
# with the exact interpreter bit for bit.
#
#   sh tests/cuda/run.sh BUILD MODE SET...     MODE: plain, address or thread (the sanitizers)
#   sh tests/cuda/run.sh BUILD plants [WORD]   each bug of plants.txt is seen
#   sh tests/cuda/run.sh BUILD nvrtc SET[@N]...   NVRTC compiles them, where there is one; up to N
#                                              kernels of the set may use a little local memory
#   sh tests/cuda/run.sh BUILD nvrtc-time FILE.model SECONDS   ... in so much time of one processor
#   sh tests/cuda/run.sh BUILD nvrtc-needs FILE.model...   what kernels need is what needs.txt says;
#                                              UPDATE=1: writes it
#
# NVRTC is what gradc finds, or the package of the Python index. SET of nvrtc is `ops`, too, and a
# model is compiled as `build` does it.
#
# BUILD is the folder with gradc-cuda-cases and gradc-cuda-steps. SET is one of cases.c, or
# FILE.model[:OPTION...]: whole training steps of a model, by steps.c; with --once
# one step, in one order of threads and blocks.
set -u
build=$1 cases=$1/gradc-cuda-cases steps=$1/gradc-cuda-steps mode=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/tally.sh
. "$here/../tally.sh"
make_scratch
export ASAN_OPTIONS=detect_stack_use_after_return=0:detect_leaks=0
export TSAN_OPTIONS=halt_on_error=1:exitcode=66
export UBSAN_OPTIONS=print_stacktrace=1

# Most of the time goes into compiling what runs three times.
flags() {
    case $1 in
    address) echo "-O0 -fsanitize=address,undefined -fno-sanitize-recover=undefined" ;;
    thread) echo "-O0 -fsanitize=thread" ;;
    *) echo "-O1" ;;
    esac
}

# can MODE: there is a compiler with this sanitizer, and its programs run here.
can() {
    echo 'int main() { return 0; }' >"$scratch/can.cpp"
    # shellcheck disable=SC2046  # several words
    g++ $(flags "$1") "$scratch/can.cpp" -o "$scratch/can" 2>/dev/null && "$scratch/can"
}

# compile FOLDER MODE [PROGRAM]: the emulator with the kernels that lie there.
compile() {
    # shellcheck disable=SC2046  # several words
    g++ -std=c++17 -g1 -ffp-contract=off -ftrivial-auto-var-init=pattern $(flags "$2") \
        -I"$here" -DKERNELS="\"$1/kernels.cu\"" -DCASE_LIST="\"$1/list.inc\"" \
        -DENTRIES="\"$1/entries.inc\"" "$here/${3:-run}.cpp" -o "$1/run" >"$1/messages" 2>&1
}

# write_set SET FOLDER: kernels and what is to come out of them.
write_set() {
    # shellcheck disable=SC2046  # several words
    case $1 in
    *.model*) "$steps" "${1%%:*}" "$2" $(echo "$1:" | cut -d: -f2- | tr : ' ') ;;
    *) "$cases" "$1" "$2" ;;
    esac >"$2/out" 2>&1
}

# emulate SET
emulate() {
    folder=$scratch/set
    rm -rf "$folder" && mkdir "$folder"
    case $1 in
    *.model*) program=run_steps data=$folder/steps.bin ;;
    *) program=run data=$folder/cases.bin ;;
    esac
    if ! write_set "$1" "$folder"; then
        cat "$folder/out"
        fail "cuda: $1: no cases"
    elif ! compile "$folder" "$mode" "$program"; then
        head -n 20 "$folder/messages"
        fail "cuda: $1, $mode: the kernels don't compile"
    else
        # shellcheck disable=SC2046  # a word, or none
        "$folder/run" "$data" $(echo "$1" | grep -o -e --once) >"$folder/out" 2>&1
        status=$?
        grep -v '^passed=' "$folder/out" | head -n 30
        before=$failed
        add "$(tail -n 1 "$folder/out")"
        [ "$status" -eq 0 ] || [ "$failed" -gt "$before" ] ||
            fail "cuda: $1, $mode: ended with status $status"
    fi
}

# plant NAME MODE WORDS COMMAND: the bug is seen, and for what it is.
plant() {
    folder=$scratch/$1
    mkdir -p "$folder"
    cp "$scratch/few/list.inc" "$folder"
    sed "$4" "$scratch/few/kernels.cu" >"$folder/kernels.cu"
    if cmp -s "$scratch/few/kernels.cu" "$folder/kernels.cu"; then
        fail "cuda: $1 changes nothing"
    elif ! can "$2"; then
        skip "the bug $1 in a kernel: g++ has no -fsanitize=$2 here"
    elif ! compile "$folder" "$2"; then
        head -n 20 "$folder/messages"
        fail "cuda: $1 does not compile"
    elif "$folder/run" "$scratch/few/cases.bin" >"$folder/out" 2>&1; then
        fail "cuda: nobody sees $1"
    elif ! grep -q "$3" "$folder/out"; then
        head -n 10 "$folder/out"
        fail "cuda: $1 is not seen for what it is: \`$3\`"
    else
        ok
    fi
    rm -rf "$folder"
}

plants() {
    mkdir "$scratch/few"
    "$cases" few "$scratch/few" >/dev/null || fail "cuda: no cases"
    grep -v '^#' "$here/plants.txt" | grep -e "${1:-}" >"$scratch/list"
    while IFS='|' read -r name mode rest; do
        words=${rest%% | *} command=${rest#* | }
        # what is said may have a bar of its own, behind a backslash
        plant "${name% }" "$(echo "$mode" | tr -d ' ')" "${words# }" "$command" </dev/null
    done <"$scratch/list"
}

has_nvrtc() {
    "$build/gradc" doctor | grep -q '^NVRTC     [0-9]'
}

# find_nvrtc: gradc finds NVRTC, or one is put into GRADC_NVRTC.
find_nvrtc() {
    has_nvrtc && return
    for try in find install; do
        [ "$try" = find ] || { python3 -m venv "$build/nvrtc" &&
            "$build/nvrtc/bin/pip" install -q nvidia-cuda-nvrtc; } >"$scratch/pip" 2>&1
        GRADC_NVRTC=$(find /usr/local/cuda*/ "$build/" "$build"/venv/ -name 'libnvrtc.so.1*' \
            2>/dev/null | head -n 1)
        export GRADC_NVRTC
        has_nvrtc && return
    done
    skip "kernels compiled by NVRTC: it is not here, and can't be installed"
    false
}

# nvrtc_set SET[@N]: to a file of its own, as many run at once. Under GRADC_FULL for three
# architectures; else for the newest, ops and models with options for the least, too. Other models
# are compiled for the two others by nvrtc-needs, but for line.model.
nvrtc_set() {
    set=${1%@*} local=0 archs=sm_80,sm_90,newest
    case $1 in *@*) local=${1##*@} ;; esac
    what=$set
    [ -n "${GRADC_FULL:-}" ] || case $set in
    examples/line.model) ;;
    ops | *.model:*) archs=sm_80,newest ;;
    *) archs=newest ;;
    esac
    case $set in
    ops | *.model*) ;;
    *)
        name=$(echo "$set" | tr : _)
        mkdir "$scratch/$name"
        write_set "$set" "$scratch/$name" || return
        what=$scratch/$name/$name.cu
        mv "$scratch/$name/kernels.cu" "$what"
        ;;
    esac
    "$build/gradc-cuda-nvrtc" "$archs" "--local=$local" "$what"
}

# In as many processes as there are processors; each set's words stay together.
nvrtc() {
    turn=0 most=$(nproc 2>/dev/null || echo 1)
    for set in "$@"; do
        turn=$((turn + 1))
        nvrtc_set "$set" >"$scratch/nvrtc.$turn" 2>&1 &
        [ $((turn % most)) -ne 0 ] || wait
    done
    wait
    for i in $(seq "$turn"); do
        grep -v '^passed=' "$scratch/nvrtc.$i"
        add "$(tail -n 1 "$scratch/nvrtc.$i")"
    done
}

# nvrtc_time MODEL SECONDS: images for three architectures, by one thread and from no cache.
nvrtc_time() {
    (
        "$build/gradc" build -q --target cuda --arch sm_80,sm_90,newest --jobs 1 --no-cache "$1" \
            --emit cubin="$scratch/m.cubin" --emit ptx="$scratch/m.ptx" -o "$scratch/m.o" || exit
        times >"$scratch/times"
    )
    verdict $? "$1 is not compiled"
    seconds=$(tail -n 1 "$scratch/times" |
        awk '{ for (i = 1; i <= 2; i++) { split($i, t, "[ms]"); s += 60 * t[1] + t[2] } print s }')
    echo "$(basename "$1"): three architectures in $seconds s of one processor"
    awk "BEGIN { exit !($seconds <= $2) }"
    verdict $? "$1 takes $seconds s of one processor, more than $2"
}

# needs_table: of lines of gradc-cuda-nvrtc --list, a line for all kernels of one name, block and
# shared memory; the registers of each of them, for each architecture.
needs_table() {
    awk '
    {
        sub(/\.model/, "", $2)
        key = sprintf("%-28s %-20s %4d %6d", $2, $3, $4, $8)
        has[key] = 1
        n[key, $5, $6]++
    }
    END {
        for (key in has) {
            printf "%s", key
            for (a = 80; a <= 90; a += 10) {
                printf "  sm_%d", a
                for (r = 0; r < 256; r++) {
                    many = n[key, "sm_" a, r]
                    if (many > 0)
                        printf(" %d%s", r, many > 1 ? "*" many : "")
                }
            }
            print ""
        }
    }' | LC_ALL=C sort
}

# nvrtc_needs MODEL...: no local memory, and what can be launched, whatever NVRTC is here; to the
# register where it is the one that the table is of.
nvrtc_needs() {
    "$build/gradc-cuda-nvrtc" sm_80,sm_90 --list "$@" >"$scratch/list"
    grep -v -e '^kernel ' -e '^nvrtc ' -e '^passed=' "$scratch/list"
    add "$(tail -n 1 "$scratch/list")"
    version=$(sed -n 's/^nvrtc //p' "$scratch/list")
    sed -n '/^nvrtc /q;p' "$here/needs.txt" >"$scratch/needs"
    {
        echo "nvrtc $version"
        grep '^kernel ' "$scratch/list" | needs_table
    } >>"$scratch/needs"
    if [ -n "${UPDATE:-}" ]; then
        cp "$scratch/needs" "$here/needs.txt"
    elif ! grep -qx "nvrtc $version" "$here/needs.txt"; then
        skip "registers of each kernel: the table is of another NVRTC than $version"
    else
        check "tests/cuda/needs.txt is not what kernels need (UPDATE=1 writes it)" \
            diff "$here/needs.txt" "$scratch/needs"
    fi
}

if [ "$mode" = nvrtc ]; then
    find_nvrtc && nvrtc "$@"
elif [ "$mode" = nvrtc-time ]; then
    find_nvrtc && nvrtc_time "$@"
elif [ "$mode" = nvrtc-needs ]; then
    find_nvrtc && nvrtc_needs "$@"
elif ! command -v g++ >/dev/null; then
    skip "kernels on the emulator: there is no g++"
elif [ "$mode" = plants ]; then
    plants "$@"
elif ! can "$mode"; then
    skip "kernels on the emulator: g++ has no -fsanitize=$mode here"
else
    for set in "$@"; do
        emulate "$set"
    done
fi
total
