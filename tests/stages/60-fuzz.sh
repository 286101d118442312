# Every tests/fuzz/fuzz_*.c (or those named in FUZZ_ONLY) for FUZZ_RUNS executions (20,000),
# from the inputs in tests/fuzz/corpus/NAME. New inputs that reach new code stay in
# build-fuzz/corpus; FUZZ_KEEP=1 copies a minimised set back into the tree.
. tests/stage.sh

runs=${FUZZ_RUNS:-20000}
seed=${SEED:-1}

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
build_sanitized fuzz $targets || finish
export LSAN_OPTIONS="suppressions=$PWD/tests/leaks.supp:print_suppressions=0"
export UBSAN_OPTIONS=print_stacktrace=1
# shellcheck disable=SC2086  # a list of names; the one that takes longest comes first
printf '%s\n' $targets | sort -r |
    xargs -P "$(cores)" -n 1 sh tests/fuzz/one.sh "$runs" "$seed"
for name in $targets; do
    verdict "$name"
done
finish
