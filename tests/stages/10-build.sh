# The release build, without a warning; with what the stages beside each other run.
. tests/stage.sh

build build Release all >build/log/make.txt 2>&1
status=$?
grep -E 'error|warning|FAILED|\*\*\*' build/log/make.txt
if [ "$status" -eq 0 ]; then ok; else fail "the release build"; fi
if build build Release gradc-tests gradc-smith gradc-faults gradc-cuda-cases \
    gradc-cuda-steps gradc-cuda-nvrtc >build/log/make-tests.txt 2>&1; then
    ok
else
    grep -E -A 5 'error|warning' build/log/make-tests.txt
    fail "the build of the tests"
fi
if grep -q 'warning:' build/log/make.txt build/log/make-tests.txt; then
    fail "the compiler warned"
else
    ok
fi
finish
