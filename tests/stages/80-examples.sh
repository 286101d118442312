# Every example, shortened.
. tests/stage.sh
need_gradc
for model in examples/*.model; do
    [ -f "$model" ] || continue
    name=$(basename "$model" .model)
    if grep -q "^# run by hand" "$model"; then
        skip "example $name: $(sed -n 's/^# run by hand:* *//p' "$model")"
    else
        check "example $name" sh examples/run.sh --short "$name"
    fi
done
finish
