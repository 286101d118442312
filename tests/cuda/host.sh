#!/bin/sh
# The object of the target cuda, the runtime and the command line, on a mock driver that runs kernels
# on the emulator: what they compute, what they refuse, and each call of the driver failing.
#
#   sh tests/cuda/host.sh BUILD contract       a program linked with the object
#   sh tests/cuda/host.sh BUILD sweep          each call of the driver fails once, with four codes
#   sh tests/cuda/host.sh BUILD replay N       N queued steps, twice
#   sh tests/cuda/host.sh BUILD device SET...  kernels of cases.c through the driver
#   sh tests/cuda/host.sh BUILD machine        no driver, no device, an old one, too little memory
#   sh tests/cuda/host.sh BUILD train BUDGETS SET...
#                                              objects for CPU and GPU side by side, bit by bit
#   sh tests/cuda/host.sh BUILD random FROM N TRAINED
#                                              N models of gradc-smith compile; TRAINED of them are
#                                              trained likewise
#
# BUDGETS are those of --budget, beside none: "light,min". SET is FILE.model[:OPTION...] of gradc
# build. NVRTC is tests/cuda/fake_nvrtc.c. With GRADC_ON_GPU=1 replay, device and train take the
# driver and the NVRTC that are there, and compile for $GRADC_ARCH.
set -u
case $1 in
/*) build=$1 ;;
*) build=$(pwd)/$1 ;;
esac
part=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
gradc=$build/gradc
# shellcheck source=tests/tally.sh
. "$here/../tally.sh"
make_scratch
work=$scratch checked=$scratch/checked
cc=${CC:-cc}
warnings="-Wall -Wextra -Wconversion"
libraries="-lz -ljansson -lpthread -ldl -lm"

if ! command -v g++ >/dev/null; then
    skip "the host of CUDA objects: there is no g++"
    total
    exit
fi

# driver: the mock and the NVRTC in whose name images are made.
driver() {
    [ -n "${GRADC_ON_GPU:-}" ] && return
    check "the mock driver" g++ -std=c++17 -O1 -g1 -Wall -Wextra -shared -fPIC "$here/mock.cpp" \
        -o "$work/libcuda.so.1" -ldl
    check "the NVRTC" "$cc" -std=c11 -shared -fPIC "$here/fake_nvrtc.c" \
        "$here/../support/cubin_make.c" -o "$work/nvrtc.so"
    export GRADC_NVRTC="$work/nvrtc.so" GRADC_LIBCUDA="$work/libcuda.so.1"
    export GRADC_MOCK_KERNELS="$work/kernels.so"
}

# place MODEL: a path from the root of the tree, or one that is whole.
place() {
    case $1 in
    /*) echo "$1" ;;
    *) echo "$root/$1" ;;
    esac
}

# kernels MODEL [OPTION...]: the library of the model's kernels.
kernels() {
    [ -n "${GRADC_ON_GPU:-}" ] && return
    model=$1
    shift
    check "kernels of $model" "$gradc" build -q "$(place "$model")" --target cuda "$@" \
        --emit "cuda=$work/kernels.cu"
    library_of "$work/kernels.cu"
}

# library_of TEXT: the library that runs its kernels.
library_of() {
    grep -A 1 __global__ "$1" |
        sed -n 's/^\(k[0-9][a-z0-9_]*\)(.*/KERNEL(\1)/p' >"$work/list.inc"
    check "the library of kernels of $1" g++ -std=c++17 -O1 -g1 -shared -fPIC \
        -ffp-contract=off -ftrivial-auto-var-init=pattern -I"$here" \
        -DKERNELS="\"$1\"" -DKERNEL_LIST="\"$work/list.inc\"" \
        "$here/mock_kernels.cpp" -o "$work/kernels.so"
}

# objects MODEL [OPTION...]: NAME.o and NAME.cuda.o.
objects() {
    model=$1
    shift
    name=$(basename "$model" .model)
    check "objects of $model" "$gradc" build -q "$(place "$model")" --target cpu,cuda \
        --arch "${GRADC_ARCH:-sm_90,compute_80}" "$@" -o "$work/$name.o"
}

# counted COMMAND...: shows a program's output and adds its last line.
counted() {
    "$@" >"$work/out" 2>&1
    status=$?
    grep -v '^passed=' "$work/out" | head -n 40
    before=$failed
    add "$(tail -n 1 "$work/out")"
    [ "$status" -eq 0 ] || [ "$failed" -gt "$before" ] || fail "$1 ended with status $status"
}

# host FLAG...: tests/cuda/host.c with the runtime as it is compiled by these.
host() {
    driver
    # shellcheck disable=SC2086  # lists of words
    kernels examples/digits.model $small
    # shellcheck disable=SC2086
    objects examples/digits.model $small
    # shellcheck disable=SC2086  # lists of words
    check "host.c" "$cc" -std=c11 -g -O1 "$@" $warnings -D_GNU_SOURCE "-I$work" \
        "-I$root/runtime" "$here"/host*.c "$root"/runtime/*.c "$work/digits.o" \
        "$work/digits.cuda.o" $libraries -o "$work/host"
}

small="-D batch=8 -D hidden=8"

# can FLAG...: programs compiled by these run here.
can() {
    echo 'int main(void) { return 0; }' >"$work/can.c"
    "$cc" "$@" "$work/can.c" -o "$work/can" 2>/dev/null && "$work/can"
}

memory="-fsanitize=address,undefined -fno-sanitize-recover=all"
host_checked() {
    export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=0
    # shellcheck disable=SC2086  # two flags
    if can $memory; then
        host $memory
    else
        skip "memory of the runtime: no sanitizers here"
        host
    fi
}

# says STATUS WORDS NAME=VALUE...: what `host open` prints with this in the environment.
says() {
    status=$1 words=$2
    shift 2
    env "$@" "$work/host" open >"$work/out" 2>&1
    grep -q "^$status .*$words" "$work/out"
    verdict $? "$*: not \`$status $words\` but \`$(cat "$work/out")\`"
}

# ends STATUS WORDS COMMAND...: how gradc ends, and what it says.
ends() {
    wanted=$1 words=$2
    shift 2
    "$@" >"$work/out" 2>"$work/err"
    status=$?
    [ "$status" -eq "$wanted" ] && grep -q -- "$words" "$work/err"
    verdict $? "$*: status $status instead of $wanted, and not \`$words\`: $(cat "$work/err")"
}

machine() {
    host
    says 0 ""
    says 14 "there is no CUDA driver: .*none.so" GRADC_LIBCUDA="$work/none.so"
    says 14 "libm.so.6 has no cuInit: it is too old, .* CUDA 11.4" GRADC_LIBCUDA=libm.so.6
    says 14 "there is no device 0: the driver (CUDA 13.0) has 0" GRADC_MOCK_DEVICES=0
    says 14 "the driver is for CUDA 11.2, and gradc .* CUDA 11.4" GRADC_MOCK_DRIVER=11020
    says 14 "digits_cuda needs a driver for CUDA 13.9; this one is for CUDA 12.4 (device 0" \
        GRADC_MOCK_DRIVER=12040
    says 14 "has code for cuda:sm_90,compute_80, and device 0 (Mock 75) is sm_75: .* --arch sm_75" \
        GRADC_MOCK_ARCH=75
    says 0 "" GRADC_MOCK_ARCH=80 GRADC_MOCK_DRIVER=13090
    says 14 "digits_cuda needs a driver for CUDA 13.9; this one is for CUDA 13.0" GRADC_MOCK_ARCH=80
    says 11 "needs [0-9]* bytes on device 0 (Mock 90), where 5000 of 5000 are free: [0-9]* are \
missing; a plan of at most [1-9][0-9]* bytes fits: .gradc build --budget [1-9][0-9]*.$" \
        GRADC_MOCK_MEMORY=5000
    says 11 "where 200 of 200 are free: [0-9]* are missing, and no plan fits$" GRADC_MOCK_MEMORY=200
    command_line
}

# cli COMMAND OPTION...
cli() {
    what=$1
    shift
    # shellcheck disable=SC2086  # a list of words
    "$gradc" "$what" "$root/examples/digits.model" $small --target cuda "$@"
}

command_line() {
    data="--data $root/examples/data/digits.csv.gz --steps 5 --json"
    # shellcheck disable=SC2086  # a list of words
    check "train" cli train $data
    losses <"$checked" >"$work/gpu"
    # shellcheck disable=SC2086  # a list of words
    check "train on the CPU" "$gradc" train "$root/examples/digits.model" $small $data
    losses <"$checked" >"$work/cpu"
    [ "$(grep -c . "$work/gpu")" -eq 5 ] && cmp -s "$work/gpu" "$work/cpu"
    verdict $? "losses of train differ: $(paste "$work/gpu" "$work/cpu" | head -n 3)"
    check "run" cli run
    check "bench" cli bench --steps 2
    # shellcheck disable=SC2086  # a list of words
    for command in run bench "train $data"; do
        GRADC_LIBCUDA=none.so ends 5 "there is no CUDA driver" cli $command
        GRADC_MOCK_DEVICES=0 ends 5 "there is no device 0" cli $command
        GRADC_MOCK_FAIL=200:700 ends 5 "illegal memory access" cli $command
        GRADC_MOCK_MEMORY=5000 ends 4 "are missing" cli $command
        grep -q "the least budget that is found is [0-9]* bytes, which needs" "$work/err"
        verdict $? "$command: no least budget: $(cat "$work/err")"
    done
    profiles
    GRADC_MOCK_DEVICES=2 check "doctor" "$gradc" doctor
    grep -q "^CUDA      a driver for CUDA 13.0$" "$checked" &&
        grep -q "^GPU 1     Mock 90, sm_90, 4294967296 bytes$" "$checked"
    verdict $? "doctor names no GPU: $(cat "$checked")"
    ends 2 "both of them are for build" "$gradc" run --target cpu,cuda "$root/examples/digits.model"
}

# judge_profile CALLS: of the JSON that has just been printed, and its trace: so many launches.
judge_profile() {
    if command -v python3 >/dev/null; then
        cp "$checked" "$work/bench"
        check "what bench --profile says" python3 "$here/profile.py" "$work/bench" "$work/trace" "$1"
    else
        skip "no python3 to read profiles with"
    fi
}

# profiles: bench --profile on the mock, whose clock is known: 1 us, and 2 us and 1 us a block.
profiles() {
    ends 2 "gpu knows a100" cli bench --profile --gpu h1000
    ends 2 "gpu goes with --profile" cli bench --gpu h100
    check "bench --profile" cli bench --steps 2 --profile
    grep -q "^entry step, 2 calls on Mock 90, .*" "$checked" &&
        grep -q "^them are 1.0 us apart; there is no model of this device" "$checked" &&
        grep -q ' -  -  .*digits.model:[0-9]*: ' "$checked"
    verdict $? "a profile without a model: $(cat "$checked")"
    GRADC_MOCK_NAME="NVIDIA H200" check "bench --profile, known" cli bench --steps 2 --profile
    grep -q "on NVIDIA H200" "$checked" && grep -q "as H200 SXM 141 GB would take" "$checked"
    verdict $? "a profile with the device's model: $(cat "$checked")"
    check "bench --profile --json" cli bench --steps 2 --profile --gpu h100 --json \
        --emit "trace=$work/trace"
    judge_profile 10
    GRADC_LIBCUDA=none.so ends 5 "there is no CUDA driver" cli bench --profile
    GRADC_MOCK_FAIL=400:700 ends 5 "illegal memory access" cli bench --profile --steps 1
    ends 2 "gpu is for --target cuda" "$gradc" bench "$root/examples/digits.model" --profile --gpu h100
    kernels tests/run/recurrent.model -D steps=24
    check "bench --profile of a loop" "$gradc" bench "$root/tests/run/recurrent.model" -D steps=24 \
        --target cuda --steps 2 --profile --gpu h100 --json --emit "trace=$work/trace"
    judge_profile 48
}

losses() {
    sed -n 's/.*"event":"step".*"loss":\([^,]*\),.*/\1/p'
}

sweep() {
    host_checked
    for code in 2 100 700 999; do
        counted "$work/host" sweep "$code"
    done
    counted "$work/host" hollow
}

# train_one SET: with and without budgets, which change no bit.
train_one() {
    model=${1%%:*}
    options=$(echo "$1:" | cut -d: -f2- | tr : ' ')
    name=$(basename "$model" .model)
    for budget in "" $budgets; do
        budget=${budget:+--budget $budget}
        # shellcheck disable=SC2086  # lists of words
        kernels "$model" $options $budget
        # shellcheck disable=SC2086
        objects "$model" $options $budget
        # shellcheck disable=SC2086
        check "same.c of $name" "$cc" -std=c11 -g -O1 $warnings "-DNAME=$name" \
            "-I$root/runtime" "$here/same.c" "$work/$name.o" "$work/$name.cuda.o" \
            "$build/libgradc.a" $libraries -o "$work/same"
        counted "$work/same"
    done
}

# random_model SEED: builds it; nothing is offloaded.
random_model() {
    "$build/gradc-smith" show "$1" | sed 's/^\( *\)offload /\1/' >"$work/m.model"
    check "an object of gradc-smith show $1" "$gradc" build -q --target cuda --arch sm_90 \
        "$work/m.model" -o "$work/built.o"
}

# device_set SET: of cases.c.
device_set() {
    mkdir -p "$work/set"
    check "cases $1" "$build/gradc-cuda-cases" "$1" "$work/set"
    if [ "$1" = words ]; then
        check "tests/cuda/words.txt is not what the interpreter gives" \
            diff "$here/words.txt" "$work/set/golden.txt"
    fi
    [ -n "${GRADC_ON_GPU:-}" ] || library_of "$work/set/kernels.cu"
    counted "$build/gradc-cuda-device" "$work/set"
}

case $part in
replay)
    host -O2
    counted "$work/host" replay "$1"
    ;;
device)
    driver
    for set in "$@"; do
        device_set "$set"
    done
    ;;
contract)
    host_checked
    counted "$work/host" contract
    ;;
sweep) sweep ;;
machine) machine ;;
random)
    driver
    budgets=min
    for seed in $(seq "$1" $(($1 + $2 - 1))); do
        random_model "$seed"
        [ "$seed" -ge $(($1 + $3)) ] || train_one "$work/m.model"
    done
    ;;
train)
    budgets=$(echo "$1" | tr , ' ')
    shift
    driver
    for set in "$@"; do
        train_one "$set"
    done
    ;;
*)
    echo "contract, sweep, replay, device, machine, train or random, not $part" >&2
    exit 2
    ;;
esac
total
