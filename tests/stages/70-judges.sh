# JAX as the independent judge: losses and gradients of the same models from the
# same weights and data. The virtual environment is made in build/venv.
# JAX_MODELS (20) random ones, from SEED, and the examples.
# HiGHS as that of proven bounds: programs of moments solved by SciPy, which JAX's virtual
# environment has. BOUND_GRAPHS (12) graphs, from SEED.
. tests/stage.sh

venv() {
    [ -x build/venv/bin/python ] && build/venv/bin/python -c 'import jax, optax' \
        >/dev/null 2>&1 && return 0
    want python3 python3-venv || command -v python3 >/dev/null || return 1
    say "making build/venv with numpy, jax and optax"
    python3 -m venv build/venv >build/log/venv.txt 2>&1 &&
        build/venv/bin/python -m pip install -q -r tests/jax/requirements.txt \
            >>build/log/venv.txt 2>&1
}

# random_models SEED COUNT: in shares, one for each core.
random_models() {
    n=$(cores) each=$((($2 + $(cores) - 1) / $(cores)))
    for i in $(seq 1 "$n"); do
        part=build/log/jax-random-$i
        {
            build/gradc-smith export --seed "$(($1 + (i - 1) * each))" --count "$each" \
                >"$part.json" && build/venv/bin/python tests/smith/jax_check.py <"$part.json"
        } >"$part.txt" 2>&1 &
    done
    wait
    for i in $(seq 1 "$n"); do
        grep -v '^passed=' "build/log/jax-random-$i.txt"
        add "$(tail -n 1 "build/log/jax-random-$i.txt")"
    done
}

if ! venv; then
    tail -n 5 build/log/venv.txt 2>/dev/null
    skip "JAX, HiGHS: they can't be installed here"
    finish
fi
run jax-self build/venv/bin/python tests/jax/judge.py --self-test
need_gradc
if build build Release gradc-smith >build/log/make-smith.txt 2>&1; then
    random_models "$((1000000 * ${SEED:-1}))" "${JAX_MODELS:-20}"
else
    fail "the build of gradc-smith"
fi
examples() {
    build/venv/bin/python tests/jax/judge.py --gradc build/gradc --models "$1" \
        >"build/log/jax-$1.txt" 2>&1
    echo $? >"build/log/jax-$1.status"
}
for models in digits,fashion,chargpt resnet8; do
    examples "$models" &
done
wait
for models in digits,fashion,chargpt resnet8; do
    run "jax-$models" sh -c "cat build/log/jax-$models.txt; exit $(cat "build/log/jax-$models.status")"
done
run bounds build/venv/bin/python tests/bounds.py build/gradc \
    --graphs "${BOUND_GRAPHS:-12}" --seed "${SEED:-1}"
finish
