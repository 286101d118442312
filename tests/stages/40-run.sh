# Programs with known numbers that are more than one command: tests/run/*.sh,
# each a runner of its own (the .model files there are golden tests).
. tests/stage.sh
need_gradc
for script in tests/run/*.sh; do
    [ -f "$script" ] || continue
    run "$(basename "$script" .sh)" sh "$script" build/gradc
done
finish
