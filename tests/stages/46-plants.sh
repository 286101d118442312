# Bugs planted in a copy of the tree, one by one, and found (tests/plants): four of several
# kinds in every run, all of them in tests/full.sh.
. tests/stage.sh
need_gradc
few="wrong-sign lifetime lane-fold"
# shellcheck disable=SC2086  # a list of words
if [ -n "${GRADC_FULL:-}" ]; then
    run plants sh tests/plants/run.sh
else
    PLANT_MODELS=8
    export PLANT_MODELS # unit tests see these; the stages before have run more models
    run plants sh tests/plants/run.sh $few
fi
finish
