# Lines of the compiler and the runtime that the fuzzing corpus reaches: in
# tests/full.sh only, and where the fuzzing stage has left its clang.
. tests/stage.sh

if [ -z "${GRADC_FULL:-}" ]; then
    say "in tests/full.sh only"
    finish
fi
clang=$(sed -n 's/^CMAKE_C_COMPILER:.*=//p' build-fuzz/CMakeCache.txt 2>/dev/null)
version=$(basename "${clang:-clang}" | sed -n 's/^clang//p')
tools="llvm-profdata$version llvm-cov$version"
for tool in ${clang:-clang} $tools; do
    command -v "$tool" >/dev/null 2>&1 || {
        skip "coverage of the corpus: no $tool here"
        finish
    }
done
targets=
for source in tests/fuzz/fuzz_*.c; do
    [ -f "$source" ] && targets="$targets $(basename "$source" .c)"
done
# shellcheck disable=SC2086  # a list of names
if ! CC=$clang build build-coverage Coverage $targets >build/log/make-coverage.txt 2>&1; then
    grep -E -A 5 'error|\*\*\*' build/log/make-coverage.txt
    fail "the coverage build"
    finish
fi
objects=
for name in $targets; do
    find "build-fuzz/corpus/$name" "tests/fuzz/corpus/$name" -type f -print0 2>/dev/null |
        LLVM_PROFILE_FILE=build-coverage/$name-%p.profraw \
            xargs -0 -n 2000 "build-coverage/$name" >/dev/null 2>&1
    objects="$objects ${objects:+-object} build-coverage/$name"
done
"llvm-profdata$version" merge -sparse build-coverage/*.profraw -o build-coverage/all.profdata
# shellcheck disable=SC2086
if "llvm-cov$version" report $objects -instr-profile build-coverage/all.profdata \
    -sources compiler runtime >build-coverage/report.txt 2>&1; then
    cat build-coverage/report.txt
    ok
else
    tail -n 5 build-coverage/report.txt
    fail "the coverage report"
fi
finish
