# `gradc build` without memory, and with files that fail (tests/mutate/faults.c).
. tests/stage.sh
need_gradc

if ! build build Release gradc-faults >build/log/make-faults.txt 2>&1; then
    grep -E -A 5 'error|\*\*\*' build/log/make-faults.txt
    fail "the build of gradc-faults"
    finish
fi
mkdir -p build/faults
run faults build/gradc-faults examples/line.model build/faults
finish
