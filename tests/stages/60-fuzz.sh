# Every tests/fuzz/fuzz_*.c (or those named in FUZZ_ONLY) for FUZZ_RUNS executions (20,000),
# from the inputs in tests/fuzz/corpus/NAME. New inputs that reach new code stay in
# build-fuzz/corpus; FUZZ_KEEP=1 copies a minimised set back into the tree.
. tests/stage.sh

runs=${FUZZ_RUNS:-20000}
seed=${SEED:-1}

# The newest clang that has libFuzzer.
find_clang() {
    echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' >build/log/probe.c
    for clang in clang-19 clang-18 clang-17 clang-16 clang clang-15 clang-14; do
        command -v "$clang" >/dev/null 2>&1 &&
            "$clang" -fsanitize=fuzzer,address,undefined build/log/probe.c \
                -o build/log/probe >/dev/null 2>&1 && return 0
    done
    return 1
}

# The clang that goes with the LLVM that the build has found.
get_clang() {
    find_clang && return 0
    for version in 19 18 17 16; do
        if has_llvm "$version" && want "clang-$version" "libclang-rt-$version-dev"; then
            find_clang && return 0
        fi
    done
    return 1
}

# verdict NAME: counts it, and says how far it came.
verdict() {
    log=build-fuzz/$1.txt
    done=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    rate=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
    covered=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
    if [ "$(cat "build-fuzz/$1.status")" -eq 0 ]; then
        say "$1: ${done:-0} executions, ${rate:-0}/s, ${covered:-0} edges"
        ok
        reached=$(sed -n 's/^shapes: \([0-9]*\) of .*/\1/p' "$log")
        if [ -n "$reached" ]; then
            say "$1: $reached inputs came as far as shapes"
            check "$1: less than half of the inputs came as far as shapes" \
                test "$((2 * reached))" -ge "${done:-0}"
        fi
    else
        tail -n 40 "$log"
        fail "$1 (input in build-fuzz/found/$1, seed $seed)"
    fi
    [ -z "${FUZZ_KEEP:-}" ] || "build-fuzz/$1" -set_cover_merge=1 -use_counters=0 \
        "tests/fuzz/corpus/$1" "build-fuzz/corpus/$1" >/dev/null 2>&1
}

targets=
for source in tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    case " ${FUZZ_ONLY:-$name} " in *" $name "*) targets="$targets $name" ;; esac
done
if [ -z "$targets" ]; then
    skip "fuzzing: there is no target yet"
    finish
fi
if ! get_clang; then
    skip "fuzzing: no clang with libFuzzer here"
    finish
fi
say "$clang, $runs executions each, seed $seed"
# shellcheck disable=SC2086  # a list of names
if ! CC=$clang build build-fuzz Fuzz $targets >build/log/make-fuzz.txt 2>&1; then
    grep -E -A 5 'error|\*\*\*' build/log/make-fuzz.txt
    fail "the fuzzing build"
    finish
fi
if grep -q 'warning:' build/log/make-fuzz.txt; then
    grep -A 5 'warning:' build/log/make-fuzz.txt
    fail "$clang warned"
fi
export LSAN_OPTIONS="suppressions=$PWD/tests/leaks.supp:print_suppressions=0"
export UBSAN_OPTIONS=print_stacktrace=1
# shellcheck disable=SC2086  # a list of names; the one that takes longest comes first
printf '%s\n' $targets | sort -r |
    xargs -P "$(cores)" -n 1 sh tests/fuzz/one.sh "$runs" "$seed"
for name in $targets; do
    verdict "$name"
done
finish
