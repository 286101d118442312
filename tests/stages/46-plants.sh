# Bugs planted in a copy of the tree, one by one, and found (tests/plants): four in every
# run, all of them in tests/full.sh.
. tests/stage.sh
if [ -z "${GRADC_FULL:-}" ]; then
    skip "planted bugs: they need clean random models; in tests/full.sh only"
    finish
fi
need_gradc
if [ -n "${FULL:-}" ]; then
    run plants sh tests/plants/run.sh
else
    run plants sh tests/plants/run.sh swapped-operands lifetime lane-fold padding
fi
finish
