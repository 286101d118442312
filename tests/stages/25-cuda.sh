# Kernels of the target cuda, run on an emulator: the bits are the exact interpreter's, in three
# orders of threads and blocks; no bound is passed and no race is seen; planted bugs are.
. tests/stage.sh
if ! build build Release gradc-cuda-cases >build/log/make-cuda.txt 2>&1; then
    grep -E -A 5 'error' build/log/make-cuda.txt
    fail "the build of gradc-cuda-cases"
    finish
fi
cases=$PWD/build/gradc-cuda-cases
run cuda-plain sh tests/cuda/run.sh "$cases" plain matmuls depthwise random:1:150
run cuda-address sh tests/cuda/run.sh "$cases" address shapes types operations convolutions \
    random:1000:60
run cuda-thread sh tests/cuda/run.sh "$cases" thread shapes convolutions random:2000:40
run cuda-plants sh tests/cuda/run.sh "$cases" plants
finish
