# Programs with known numbers that are more than one command: tests/run/*.sh,
# each a runner of its own (the .model files there are golden tests).
. tests/stage.sh
need_gradc
measuring="cost profile" # alone; the others as many at a time as there are cores, the longest first
long="wholes budget kept split offload chunk updates light turns causal"

# shellcheck disable=SC2016  # expanded by the inner shell
one='. tests/stage.sh
apart "$(basename "$1" .sh)" sh "$1" build/gradc'
others=
for name in $long; do
    others="$others tests/run/$name.sh"
done
for script in tests/run/*.sh; do
    case " $measuring $long " in
    *" $(basename "$script" .sh) "*) ;;
    *) others="$others $script" ;;
    esac
done
for name in $measuring; do
    sh -c "$one" sh "tests/run/$name.sh"
done
# shellcheck disable=SC2086  # a list of names
printf '%s\n' $others | xargs -P "$(cores)" -I {} sh -c "$one" sh {}
for script in tests/run/*.sh; do
    told "$(basename "$script" .sh)"
done
finish
