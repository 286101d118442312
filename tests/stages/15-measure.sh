# Those of tests/run/*.sh that measure: they compare times, so that nothing else runs beside them.
. tests/stage.sh
need_gradc
# shellcheck disable=SC2013  # a list of words
for script in $(grep -l '^# measures: ' tests/run/*.sh); do
    run "$(basename "$script" .sh)" sh "$script" build/gradc
done
finish
