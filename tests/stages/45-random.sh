# Random valid models (tests/smith): RANDOM_MODELS of them (250), from SEED; before them
# the reduced ones that gradc once got wrong, and keys that are transposed before a scan.
. tests/stage.sh
need_gradc

models=${RANDOM_MODELS:-250}
if ! build build Release gradc-smith >build/log/make-smith.txt 2>&1; then
    grep -E -A 5 'error|\*\*\*' build/log/make-smith.txt
    fail "the build of gradc-smith"
    finish
fi
for model in tests/smith/found/*.model tests/golden/chunk/keys.model; do
    check "$model" build/gradc-smith check "$model"
done
demand=
[ "$models" -ge 250 ] && demand=--demand
run random build/gradc-smith run --seed "$((1000000 * ${SEED:-1}))" --count "$models" \
    --jobs "$(cores)" --reduce ${demand:+"$demand"}
finish
