#!/bin/sh
# Everything that needs a GPU, from a clean tree, in at most 8 minutes; a table at the end.
#
#   sh tests/gpu.sh                 where there is none: "skipped: no GPU", and status 0
#   sh tests/gpu.sh --on-mock       the same on the mock driver, as far as that goes, to try this
#                                   script: nothing that it times says anything
#
# Needs what README.md names, NVRTC 12 or newer, and the driver. What it prints goes to
# tests/bench/results, with the device's name.
#
# Until that has been done, nothing of the target cuda has met hardware. What stands in for it:
#   kernels           compiled by g++ for the emulator of tests/cuda, in three orders of threads, and
#                     with sanitizers; what NVRTC makes of the same text is compiled, and its
#                     registers, spills and arguments are read, but no instruction of it has run
#   PTX               looked at for names alone: no driver has compiled it
#   the prelude       its branches under __CUDA_ARCH__ (asm of halves, shuffles, barriers): read alone
#   runtime/cuda*.c   every call on tests/cuda/mock.cpp, as the reference manual describes the driver:
#                     graphs, captures, events, pinned stages, a caller's stream, memory of a device
#   times             the model of compiler/target/cuda/gpu.h is on paper, its 2 us a launch and 90 % of
#                     the bandwidth, too; bench --profile has told the mock's clock alone
#   more than one GPU, and devices other than sm_80 and sm_90 but for compiling
set -u
cd "$(dirname "$0")/.." || exit 3
. tests/setup.sh
. tests/tally.sh
make_scratch
mock=
[ "${1:-}" = --on-mock ] && mock=1
mkdir -p build/log
if [ -z "$mock" ] && [ ! -e "${GRADC_LIBCUDA:-/dev/nvidiactl}" ]; then
    echo "skipped: no GPU"
    exit 0
fi
started=$(date +%s)

# ---- the build -----------------------------------------------------------------------------------
if ! build build Release gradc gradc-cuda-cases gradc-cuda-device >build/log/gpu.txt 2>&1; then
    tail -n 20 build/log/gpu.txt
    echo "FAILED: the build"
    exit 1
fi
gradc=build/gradc
steps=10000 suffix=
if [ -n "$mock" ]; then
    steps=20 suffix=" (mock)"
else
    "$gradc" doctor >"$scratch/doctor"
    arch=$(sed -n 's/^GPU 0 .*, \(sm_[0-9]*\), .*/\1/p' "$scratch/doctor" | head -n 1)
    if [ -z "$arch" ]; then
        grep -e CUDA -e NVRTC "$scratch/doctor"
        echo "skipped: no GPU"
        exit 0
    fi
    export GRADC_ON_GPU=1 GRADC_ARCH="$arch"
    grep -e CUDA -e '^GPU' -e NVRTC "$scratch/doctor"
fi

# ---- the rows of the table ------------------------------------------------------------------------
printf '%-34s %8s %8s %8s %8s\n' what passed failed skipped seconds >"$scratch/table"

# row WHAT COMMAND...: a runner, whose last line is counted.
row() {
    what=$1 from=$(date +%s)
    shift
    "$@" >"$scratch/out" 2>&1
    last=$(tail -n 1 "$scratch/out")
    grep -v '^passed=' "$scratch/out" | head -n 40
    before="$passed $failed $skipped"
    add "$last"
    # shellcheck disable=SC2086  # three numbers
    set -- $before
    printf '%-34s %8d %8d %8d %8d\n' "$what$suffix" $((passed - $1)) $((failed - $2)) \
        $((skipped - $3)) $(($(date +%s) - from)) >>"$scratch/table"
}

host() {
    sh tests/cuda/host.sh build "$@"
}

row "golden vectors of wrappers" host device words
if [ -n "$mock" ]; then # the NVRTC beside it makes images of few kernels
    row "kernels" host device few random:1:40
else
    row "types, operations" host device types operations
    row "shapes, contractions" host device shapes matmuls convolutions depthwise
    row "random kernels" host device random:1:200 wide:random:5000:50
fi
tiny=examples/chargpt.model:-D:layers=1:-D:width=32:-D:ctx=16:-D:batch=2:-D:heads=2:-D:vocab=40
if [ -n "$mock" ]; then
    row "examples beside the CPU" host train min "$tiny" tests/cuda/half.model
else
    row "examples beside the CPU" host train light,min "$tiny" tests/cuda/half.model \
        examples/digits.model examples/fashion.model examples/resnet8.model examples/chargpt.model
fi
row "graphs again and again" host replay "$steps"

# ---- compute-sanitizer ----------------------------------------------------------------------------
# sanitize TOOL: two steps of digits under it.
sanitize() {
    if ! command -v compute-sanitizer >/dev/null || [ -n "$mock" ]; then
        skip "compute-sanitizer $1: it is not here"
    else
        check "compute-sanitizer $1" compute-sanitizer --tool "$1" --error-exitcode 9 "$gradc" \
            train examples/digits.model --target cuda --data examples/data/digits.csv.gz --steps 2 -q
    fi
}
for tool in memcheck racecheck initcheck synccheck; do
    sanitize "$tool"
done

# ---- benchmarks -----------------------------------------------------------------------------------
# bench MODEL [OPTION...]
bench() {
    model=$1
    shift
    if "$gradc" bench "examples/$model.model" --target cuda --json "$@" >"$scratch/json" 2>"$scratch/err"; then
        ok
        printf '%-12s step %10.4f ms, device %s bytes, compiled in %.0f ms\n' "$model" \
            "$(sed -n 's/.*"step_ms": {"median": \([0-9.]*\).*/\1/p' "$scratch/json")" \
            "$(figure device_bytes "$scratch/json")" "$(figure compile_ms "$scratch/json")" \
            >>"$scratch/times"
    else
        fail "bench $model: $(cat "$scratch/err")"
    fi
}
: >"$scratch/times"
if [ -z "$mock" ]; then
    for model in digits fashion resnet8 chargpt; do
        bench "$model" --steps 100
    done
    bench gpt2 --steps 10
    check "a profile of gpt2" "$gradc" bench examples/gpt2.model --target cuda --steps 10 --profile
    head -n 30 "${checked:-$scratch/checked}" >>"$scratch/times"
else
    skip "benchmarks: on the mock they say nothing"
fi

cat "$scratch/table" "$scratch/times"
echo "all of it: $(($(date +%s) - started)) s"
total
