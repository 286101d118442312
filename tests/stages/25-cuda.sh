# Kernels of the target cuda, and whole training steps, run on an emulator: the bits are the exact
# interpreter's, in three orders of threads and blocks; no bound is passed and no race is seen;
# planted bugs are; each function of the prelude gives its golden vectors. NVRTC compiles the kernels
# of all examples, ops and samples; what they need is in a table. Objects, the runtime and the
# commands run on a mock driver: the bits are those of the objects for CPUs, and each call of the
# driver fails once.
. tests/stage.sh
if ! build build Release gradc gradc-cuda-cases gradc-cuda-steps gradc-cuda-nvrtc gradc-smith \
    >build/log/make-cuda.txt 2>&1; then
    grep -E -A 5 'error' build/log/make-cuda.txt
    fail "the build of what stage 25 runs"
    finish
fi
half=tests/cuda/half.model

# GPT-2 in sizes that the emulator runs, and whose kernels have the code of those of its own sizes.
# With attention in chunks, as large batches have it, it takes a minute.
gpt=examples/gpt2.model large=
short=--once:layers=2:heads=3:width=192:vocab=97:positions=64:ctx=48:batch=2
deep=--once:layers=12:heads=2:width=32:vocab=97:positions=32:ctx=16:batch=2
halves=--precision=bf16:layers=2:batch=64:ctx=1024
chargpt=examples/chargpt.model:--once:layers=1:width=32:ctx=16:batch=2:heads=2:vocab=40
char=examples/chargpt.model:-D:layers=1:-D:width=32:-D:ctx=16:-D:batch=2:-D:heads=2:-D:vocab=40
draws="1 24 1"
[ -z "${GRADC_FULL:-}" ] || draws="${SEED:-1}00001 1000 100"
larger=
[ -z "${GRADC_FULL:-}" ] || larger="tiles depthwise examples/fashion.model:--once:batch=1 \
examples/resnet8.model:--once:batch=1"
long=--once:--wide=147456:layers=2:heads=3:width=192:vocab=1537:ctx=384:positions=384:batch=2
for shape in $short $deep $long; do
    [ -z "${GRADC_FULL:-}" ] || large="$large $gpt:--precision=bf16:$shape"
done

# Kernels alone (cuda/run.sh), objects and the runtime on the mock driver (cuda/host.sh).
side_by_side <<END
cuda-plain sh tests/cuda/run.sh build plain matmuls tiles depthwise random:1:80 \
wide:random:5000:30 $gpt:$short $gpt:$deep examples/digits.model examples/resnet8.model:batch=1 $large
cuda-address sh tests/cuda/run.sh build address shapes types words ops operations matmuls \
convolutions random:1000:30 wide:few $half examples/line.model examples/digits.model $chargpt \
$gpt:$short $larger
cuda-thread sh tests/cuda/run.sh build thread shapes convolutions random:2000:20 $half
cuda-train sh tests/cuda/host.sh build train light,min $char $char:--chunk:256 $half \
examples/digits.model:-D:batch=8:-D:hidden=16 tests/object/byrow.model tests/object/wide.model \
tests/object/lacking.model tests/object/shared.model
cuda-pictures sh tests/cuda/host.sh build train min examples/fashion.model:-D:batch=1 \
examples/resnet8.model:-D:batch=1
cuda-plants sh tests/cuda/run.sh build plants
cuda-random sh tests/cuda/host.sh build random $draws
cuda-contract sh tests/cuda/host.sh build contract
cuda-sweep sh tests/cuda/host.sh build sweep
cuda-machine sh tests/cuda/host.sh build machine
cuda-gpu sh tests/gpu.sh --on-mock
cuda-words sh tests/cuda/words.sh build
END
run cuda-variants sh tests/cuda/variants.sh build 100 "$gpt" tiles "$gpt:$short" "$gpt:$deep"
# shellcheck disable=SC2086  # a list of sets
[ -z "$large" ] || run cuda-variants sh tests/cuda/variants.sh build 85 \
    "$gpt:--precision=bf16:batch=64:ctx=1024" tiles $large
told cuda-plain cuda-address cuda-thread cuda-plants cuda-words cuda-contract cuda-sweep cuda-machine \
    cuda-train cuda-pictures cuda-random cuda-gpu

# Behind @: a kernel that uses a little local memory: lanes of a loop that is too long to be written
# out are an array.
run cuda-nvrtc sh tests/cuda/run.sh build nvrtc matmuls examples/resnet8.model depthwise \
    convolutions examples/gpt2.model "$gpt:$halves" random:1:80@1 ops examples/chargpt.model \
    examples/fashion.model "$half" shapes types words examples/digits.model \
    examples/line.model few wide:few
run cuda-needs sh tests/cuda/run.sh build nvrtc-needs examples/digits.model \
    examples/fashion.model examples/resnet8.model examples/chargpt.model "$half" \
    examples/gpt2.model:layers=1 tests/bench/models/attention-b1-t4096.model
run cuda-nvrtc-time sh tests/cuda/run.sh build nvrtc-time examples/gpt2.model 30
finish
