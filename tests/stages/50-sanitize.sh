# The unit and golden tests under the address and undefined-behaviour sanitizers.
. tests/stage.sh

export GRADC_SHORT=1 CK_TIMEOUT_MULTIPLIER=10 # fewer cases where a test has many
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS=print_stacktrace=1
export LSAN_OPTIONS="suppressions=$PWD/tests/leaks.supp:print_suppressions=0"
if get_clang; then
    sanitized=build-fuzz
    build_sanitized sanitize all gradc-tests || finish
else
    say "no clang with libFuzzer here: by ${CC:-cc}"
    sanitized=build-sanitize
    if ! build $sanitized Sanitize all gradc-tests >build/log/make-sanitize.txt 2>&1; then
        grep -E -A 5 'error|\*\*\*' build/log/make-sanitize.txt
        fail "the sanitizer build"
        finish
    fi
fi
unit_tests $sanitized
if [ -x $sanitized/gradc ]; then
    run golden-sanitize sh tests/golden.sh $sanitized/gradc
fi
finish
