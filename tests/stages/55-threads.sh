# The runtime's threads under the thread sanitizer: the suites that have
# thread, pool, train or parallel in their name.
. tests/stage.sh

suites=$(build/gradc-tests --list 2>/dev/null | grep -E 'thread|pool|train|parallel')
if [ -z "$suites" ]; then
    skip "thread sanitizer: there is no suite for threads"
    finish
fi
export GRADC_SHORT=1 CK_TIMEOUT_MULTIPLIER=10 # fewer cases where a test has many
export TSAN_OPTIONS=halt_on_error=1
if build build-tsan Tsan gradc-tests >build/log/make-tsan.txt 2>&1; then
    # shellcheck disable=SC2086  # a list of names
    unit_tests build-tsan $suites
else
    grep -E -A 5 'error|\*\*\*' build/log/make-tsan.txt
    fail "the thread sanitizer build"
fi
finish
