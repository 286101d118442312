# The other versions of LLVM that gradc can be built with, as far as they are here or can be had:
# objects are loaded and compute what they should, and tiles spill nothing. Under GRADC_FULL.
. tests/stage.sh
need_gradc

if [ -z "${GRADC_FULL:-}" ]; then
    skip "other versions of LLVM: asked under GRADC_FULL"
    finish
fi

# others VERSION: all that depends on it.
others() {
    folder=build-llvm-$1 log=build/log/make-llvm-$1.txt
    if ! cmake -S . -B "$folder" "-DLLVM_CONFIG=$(command -v "llvm-config-$1")" >"$log" 2>&1 ||
        ! build "$folder" Quick gradc-tests gradc-smith >>"$log" 2>&1; then
        grep -i -E -A 5 'error|\*\*\*' "$log"
        fail "the build with LLVM $1"
        return
    fi
    if grep -q 'warning:' "$log"; then
        fail "the build with LLVM $1 warned"
    fi
    # shellcheck disable=SC2046  # a list of names
    unit_tests "$folder" $("$folder/gradc-tests" --list | grep '^cpu_')
    run "random-llvm-$1" "$folder/gradc-smith" run --seed "$((1000000 * ${SEED:-1}))" --count 40 \
        --jobs "$(cores)"
    run "nets-llvm-$1" "$folder/gradc-smith" nets --seed "$((1000000 * ${SEED:-1}))" --count 8 \
        --jobs "$(cores)"
}

ours=$(build/gradc doctor | sed -n 's/^LLVM *\([0-9]*\)\..*/\1/p')
for version in 16 17 18 19; do
    [ "$version" = "$ours" ] && continue
    if has_llvm "$version" || want "llvm-$version-dev"; then
        say "LLVM $version"
        others "$version"
    else
        skip "LLVM $version: not here, and can't be installed"
    fi
done
finish
