# Programs with known numbers that are more than one command: tests/run/*.sh,
# each a runner of its own (the .model files there are golden tests).
. tests/stage.sh
need_gradc
measuring="cost profile" # alone; the others as many at a time as there are cores

# shellcheck disable=SC2016  # expanded by the inner shell
one='. tests/stage.sh
apart "$(basename "$1" .sh)" sh "$1" build/gradc'
others=
for script in tests/run/*.sh; do
    case " $measuring " in
    *" $(basename "$script" .sh) "*) sh -c "$one" sh "$script" ;;
    *) others="$others $script" ;;
    esac
done
# shellcheck disable=SC2086  # a list of names
printf '%s\n' $others | sort -r | xargs -P "$(cores)" -I {} sh -c "$one" sh {}
for script in tests/run/*.sh; do
    told "$(basename "$script" .sh)"
done
finish
