#!/bin/sh
# Kernels of the target cuda on a CPU: compiled with the emulator, run in three orders, compared
# with the exact interpreter bit for bit.
#
#   sh tests/cuda/run.sh BUILD MODE SET...     MODE: plain, address or thread (the sanitizers)
#   sh tests/cuda/run.sh BUILD plants [WORD]   each bug of plants.txt is seen
#   sh tests/cuda/run.sh BUILD nvrtc SET...    NVRTC compiles them, where there is one
#
# NVRTC is $GRADC_NVRTC, what the loader knows, or the package of the Python index.
#
# BUILD is the folder with gradc-cuda-cases and gradc-cuda-steps. SET is one of cases.c, or
# FILE.model[:NAME=VALUE...]: whole training steps of a model, by steps.c.
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
        "$folder/run" "$data" >"$folder/out" 2>&1
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

# nvrtc_library: path of NVRTC, or nothing.
nvrtc_library() {
    [ -n "${GRADC_NVRTC:-}" ] && echo "$GRADC_NVRTC" && return
    known=$(ldconfig -p 2>/dev/null | sed -n 's/.*libnvrtc\.so.* => //p' | head -n 1)
    [ -n "$known" ] && echo "$known" && return
    find /usr/local/cuda*/ "$build" -name 'libnvrtc.so.*' 2>/dev/null | head -n 1
}

install_nvrtc() {
    python3 -m venv "$build/nvrtc" && "$build/nvrtc/bin/pip" install -q nvidia-cuda-nvrtc
}

nvrtc() {
    library=$(nvrtc_library)
    [ -n "$library" ] || install_nvrtc >"$scratch/pip" 2>&1
    library=$(nvrtc_library)
    if [ -z "$library" ]; then
        skip "kernels compiled by NVRTC: it is not here, and can't be installed"
        return
    fi
    for set in "$@"; do
        folder=$scratch/$(basename "${set%%:*}" .model)
        mkdir "$folder"
        write_set "$set" "$folder" || fail "cuda: $set: no cases"
        mv "$folder/kernels.cu" "$folder/$(basename "$folder").cu"
    done
    "$build/gradc-cuda-nvrtc" "$library" sm_80 sm_90 -- "$scratch"/*/*.cu >"$scratch/out" 2>&1
    grep -v '^passed=' "$scratch/out"
    add "$(tail -n 1 "$scratch/out")"
}

if [ "$mode" = nvrtc ]; then
    nvrtc "$@"
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
