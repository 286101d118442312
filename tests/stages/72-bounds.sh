# HiGHS as the independent judge of proven bounds: programs of moments solved by SciPy, which
# JAX's virtual environment has. BOUND_GRAPHS (12) graphs, from SEED.
. tests/stage.sh
need_gradc
if ! build/venv/bin/python -c 'import scipy' >/dev/null 2>&1; then
    skip "HiGHS: no SciPy in build/venv, which the stage before this one makes"
    finish
fi
run bounds build/venv/bin/python tests/bounds.py build/gradc \
    --graphs "${BOUND_GRAPHS:-12}" --seed "${SEED:-1}"
finish
