# Kernels of the target cuda, and whole training steps, run on an emulator: the bits are the exact
# interpreter's, in three orders of threads and blocks; no bound is passed and no race is seen;
# planted bugs are; each function of the prelude gives its golden vectors. NVRTC compiles the kernels
# of all examples, ops and samples; what they need is in a table. Objects, the runtime and the
# commands run on a mock driver: the bits are those of the objects for CPUs, and each call of the
# driver fails once.
. tests/stage.sh
if ! build build Release gradc gradc-cuda-cases gradc-cuda-steps gradc-cuda-nvrtc \
    >build/log/make-cuda.txt 2>&1; then
    grep -E -A 5 'error' build/log/make-cuda.txt
    fail "the build of what stage 25 runs"
    finish
fi
half=tests/cuda/half.model

# Kernels alone.
kernels() {
    gpt=examples/chargpt.model:layers=1:width=32:ctx=16:batch=2:heads=2:vocab=40
    apart cuda-plain sh tests/cuda/run.sh build plain matmuls depthwise random:1:80 \
        wide:random:5000:30 "$gpt" examples/digits.model examples/resnet8.model:batch=1
    apart cuda-address sh tests/cuda/run.sh build address shapes types words convolutions \
        random:1000:30 wide:few "$half"
    apart cuda-thread sh tests/cuda/run.sh build thread shapes convolutions random:2000:20 "$half"
    apart cuda-plants sh tests/cuda/run.sh build plants
    apart cuda-words sh tests/cuda/words.sh build
}

# Objects and the runtime on the mock driver.
objects() {
    gpt=examples/chargpt.model:-D:layers=1:-D:width=32:-D:ctx=16:-D:batch=2:-D:heads=2:-D:vocab=40
    apart cuda-contract sh tests/cuda/host.sh build contract
    apart cuda-sweep sh tests/cuda/host.sh build sweep
    apart cuda-machine sh tests/cuda/host.sh build machine
    apart cuda-train sh tests/cuda/host.sh build train light,min "$gpt" "$gpt:--chunk:256" "$half" \
        examples/digits.model:-D:batch=8:-D:hidden=16 tests/object/byrow.model \
        tests/object/wide.model tests/object/lacking.model
    apart cuda-pictures sh tests/cuda/host.sh build train min examples/fashion.model:-D:batch=1 \
        examples/resnet8.model:-D:batch=1
    apart cuda-gpu sh tests/gpu.sh --on-mock
}

objects &
kernels
wait
told cuda-plain cuda-address cuda-thread cuda-plants cuda-words

# Behind @: a kernel that uses a little local memory: lanes of a loop that is too long to be written
# out are an array.
run cuda-nvrtc sh tests/cuda/run.sh build nvrtc matmuls examples/resnet8.model depthwise \
    convolutions examples/gpt2.model random:1:80@1 ops examples/chargpt.model \
    examples/fashion.model "$half" shapes types words examples/digits.model \
    examples/line.model few wide:few
run cuda-needs sh tests/cuda/run.sh build nvrtc-needs examples/digits.model \
    examples/fashion.model examples/resnet8.model examples/chargpt.model "$half" \
    examples/gpt2.model:layers=1 tests/bench/models/attention-b1-t4096.model
run cuda-nvrtc-time sh tests/cuda/run.sh build nvrtc-time examples/gpt2.model 30
told cuda-contract cuda-sweep cuda-machine cuda-train cuda-pictures cuda-gpu
finish
