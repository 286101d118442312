# Bugs planted in a copy of the tree, one by one, and found (tests/plants): four in every
# run, all of them in tests/full.sh.
. tests/stage.sh
need_gradc
if [ -n "${FULL:-}" ]; then
    run plants sh tests/plants/run.sh
else
    run plants sh tests/plants/run.sh swapped-operands lifetime lane-fold padding
fi
finish
