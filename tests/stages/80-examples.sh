# Every example, shortened: 20 steps, and gpt2 as small as its "# short:" line says.
. tests/stage.sh
need_gradc
for model in examples/*.model; do
    [ -f "$model" ] || continue
    name=$(basename "$model" .model)
    check "example $name" sh examples/run.sh --short "$name"
    tail -n 1 "$checked"
done
lines=$(wc -l <examples/digits.c)
check "examples/digits.c has $lines lines, under 40" test "$lines" -lt 40
finish
