# Sourced by every stage: counts, and where things are. A stage ends by `finish`.
# shellcheck shell=sh
. tests/setup.sh
. tests/tally.sh
checked=build/log/check-$(basename "$0" .sh).out
mkdir -p build/log

# run NAME COMMAND...: shows a runner's output and adds its last line.
run() {
    out=build/log/$1.out run_name=$1 run_begin=$(date +%s)
    processors=build/log/processors-$1
    times >"$processors"
    shift
    "$@" >"$out" 2>&1
    status=$?
    times >>"$processors"
    took "$run_name" "$run_begin" "$processors"
    shown "$run_name" "$status" "$out"
}

# shown NAME STATUS OUTPUT: of a runner that has ended so.
shown() {
    grep -v '^passed=' "$3"
    before=$failed
    add "$(tail -n 1 "$3")"
    if [ "$2" -ne 0 ] && [ "$failed" -eq "$before" ]; then
        fail "$1 ended with status $2"
    fi
}

# took NAME BEGIN TIMES: notes in build/log/took.txt how many seconds of processors a runner took and
# how many have gone by since BEGIN. The file TIMES holds what `times` has said, before it and after
# it or after it alone; it goes.
took() {
    echo "$(busy "$3") of processors, $(($(date +%s) - $2)) by the clock: $1" >>build/log/took.txt
    rm -f "$3"
}

# apart NAME COMMAND...: runs a runner and shows nothing; told NAME...: what `run` would have shown of
# them. For chains of runners side by side.
apart() {
    apart_name=$1 apart_begin=$(date +%s)
    shift
    "$@" >"build/log/apart-$apart_name.txt" 2>&1
    echo $? >"build/log/apart-$apart_name.status"
    times >"build/log/apart-$apart_name.times"
    took "$apart_name" "$apart_begin" "build/log/apart-$apart_name.times"
}
told() {
    for told_name in "$@"; do
        apart=build/log/apart-$told_name out=build/log/$told_name.out
        mv "$apart.txt" "$out"
        shown "$told_name" "$(cat "$apart.status")" "$out"
        rm -f "$apart.status"
    done
}

# side_by_side: `apart` of each line "NAME COMMAND..." of standard input, as many at a time as there
# are cores. What takes longest comes first.
side_by_side() {
    # shellcheck disable=SC2016  # expanded by the inner shell
    xargs -P "$(cores)" -I {} sh -c '
        . tests/stage.sh
        set -f
        apart $1' sh {}
}

# longest_first SUITE...: the same names, those that take long before the others.
longest_first() {
    long="cpu_contract plan_problem cpu_random plan_deep cpu_flush cpu_asm plan_place"
    for suite in $long; do
        case " $* " in *" $suite "*) echo "$suite" ;; esac
    done
    for suite in "$@"; do
        case " $long " in *" $suite "*) ;; *) echo "$suite" ;; esac
    done
}

# unit_tests FOLDER [SUITE...]: the suites built there, as many at a time as there are
# cores. A line "skipped: ..." that a test prints takes it from the passed to the skipped.
unit_tests() {
    where=$1
    shift
    # shellcheck disable=SC2046  # a list of names
    [ $# -gt 0 ] || set -- $("$where/gradc-tests" --list)
    [ $# -gt 0 ] || fail "$where/gradc-tests has no suite"
    # shellcheck disable=SC2016  # expanded by the inner shell
    longest_first "$@" | xargs -P "$(cores)" -I {} sh -c '
        . tests/stage.sh
        begin=$(date +%s)
        "$1/gradc-tests" "$2" >"$1/unit-$2.txt" 2>&1
        echo $? >"$1/unit-$2.status"
        times >"$1/unit-$2.times"
        took "$1: $2" "$begin" "$1/unit-$2.times"' sh "$where" {}
    for suite in "$@"; do
        out=$where/unit-$suite.txt
        grep -v -e '^passed=' -e '^ ' -e '^Running suite' -e '^100%' "$out"
        gone=$(grep -c '^skipped: ' "$out")
        before=$failed
        add "$(tail -n 1 "$out")"
        passed=$((passed - gone)) skipped=$((skipped + gone))
        status=$(cat "$where/unit-$suite.status")
        if [ "$status" -ne 0 ] && [ "$failed" -eq "$before" ]; then
            fail "$where/gradc-tests $suite ended with status $status"
        fi
    done
}

# The newest clang that has libFuzzer.
find_clang() {
    probe=build/log/probe-$$
    echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' >"$probe.c"
    found=1
    for clang in clang-19 clang-18 clang-17 clang-16 clang clang-15 clang-14; do
        command -v "$clang" >/dev/null 2>&1 &&
            "$clang" -fsanitize=fuzzer,address,undefined "$probe.c" \
                -o "$probe" >/dev/null 2>&1 && found=0 && break
    done
    rm -f "$probe" "$probe.c"
    return $found
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

# build_sanitized WORD TARGET...: with both sanitizers, by the clang of get_clang; what is said goes to
# build/log/make-WORD.txt. Stages 50 and 60 have one build.
build_sanitized() {
    made=build/log/make-$1.txt
    shift
    if ! CC=$clang build build-fuzz Fuzz "$@" >"$made" 2>&1; then
        grep -E -A 5 'error|\*\*\*' "$made"
        fail "the build by $clang"
        return 1
    fi
    if grep -q 'warning:' "$made"; then
        grep -A 5 'warning:' "$made"
        fail "$clang warned"
    fi
}

# Stages that need the compiler end here where it has not been built.
need_gradc() {
    [ -x build/gradc ] && return 0
    if [ ! -f compiler/main.c ]; then
        skip "$(basename "$0" .sh): there is no compiler/main.c yet"
    else
        fail "build/gradc is missing"
    fi
    finish
}

finish() {
    total
    exit
}
