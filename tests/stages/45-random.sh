# Random valid models (tests/smith): RANDOM_MODELS of them (250), from SEED; before them the reduced
# ones that gradc once got wrong, keys that are transposed before a scan, and sums in passing;
# WORK_MODELS (400) of matrices, whose kernels compute no sum for each element of what reads it; NETS
# (16) of ordinary layers and sizes, whose objects for other processors give the same bits, and those
# that did not (tests/smith/nets).
. tests/stage.sh
need_gradc

models=${RANDOM_MODELS:-250}
if ! build build Release gradc-smith >build/log/make-smith.txt 2>&1; then
    grep -E -A 5 'error|\*\*\*' build/log/make-smith.txt
    fail "the build of gradc-smith"
    finish
fi
set -- tests/smith/found/*.model tests/golden/chunk/keys.model tests/smith/side_sums*.model
# shellcheck disable=SC2016  # expanded by the inner shell
printf '%s\n' "$@" | sort -r | xargs -P "$(cores)" -I {} sh -c '
    said=build/log/found-$(basename "$1" .model)
    build/gradc-smith check "$1" >"$said.txt" 2>&1
    echo $? >"$said.status"' sh {}
for model in "$@"; do
    said=build/log/found-$(basename "$model" .model)
    # shellcheck disable=SC2016  # likewise
    check "$model" sh -c 'cat "$1.txt" && exit "$(cat "$1.status")"' sh "$said"
    rm -f "$said.txt" "$said.status"
done
run work build/gradc-smith work --seed "$((1000000 * ${SEED:-1}))" --count "${WORK_MODELS:-400}"
for model in tests/smith/nets/*.model; do
    check "$model" build/gradc-smith net "$model"
done
run nets build/gradc-smith nets --seed "$((1000000 * ${SEED:-1}))" --count "${NETS:-16}" \
    --jobs "$(cores)"
demand=
[ "$models" -ge 250 ] && demand=--demand
run random build/gradc-smith run --seed "$((1000000 * ${SEED:-1}))" --count "$models" \
    --jobs "$(cores)" --reduce ${demand:+"$demand"}
finish
