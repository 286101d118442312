# Programs with known numbers that are more than one command: tests/run/*.sh,
# each a runner of its own (the .model files there are golden tests). As many at a time as there are
# cores, the longest first.
. tests/stage.sh
need_gradc
long="wholes budget kept cost split profile offload chunk updates light turns causal"

all=
for name in $long; do
    all="$all $name"
done
for script in tests/run/*.sh; do
    name=$(basename "$script" .sh)
    case " $long " in
    *" $name "*) ;;
    *) all="$all $name" ;;
    esac
done
# shellcheck disable=SC2086  # a list of names
printf '%s\n' $all | sed 's|.*|& sh tests/run/&.sh build/gradc|' | side_by_side
# shellcheck disable=SC2046,SC2086  # likewise
told $(printf '%s\n' $all | sort)
finish
