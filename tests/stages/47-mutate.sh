# Single edits of the examples (tests/mutate): MUTATIONS of them (500), from SEED.
. tests/stage.sh
need_gradc

mkdir -p build/mutate
if ! gcc -std=c11 -D_XOPEN_SOURCE=700 -O1 -Wall -Wextra -Wconversion tests/mutate/mutate.c \
    -o build/mutate/mutate >build/log/make-mutate.txt 2>&1; then
    cat build/log/make-mutate.txt
    fail "the build of tests/mutate"
    finish
fi
rm -f build/mutate/*.model
run mutations build/mutate/mutate build/gradc "${MUTATIONS:-500}" "${SEED:-1}" build/mutate \
    examples/*.model
finish
