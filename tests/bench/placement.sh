#!/bin/sh
# Placement of every problem in a folder: name, capacity, height, whether it is proved to
# be the least, height / max live, seconds.
#
#   sh tests/bench/placement.sh FOLDER [GRADC]
#
# NAME.CAPACITY.csv has a capacity, any other NAME.csv none. Where no placement within the
# capacity is found, the height is that of the lowest one found.
set -u
[ $# -ge 1 ] || {
    echo "usage: placement.sh FOLDER [GRADC]" >&2
    exit 2
}
gradc=${2:-build/gradc}
report=$(mktemp) || exit 3
trap 'rm -f "$report"' EXIT

# of KEY: its value in the report.
of() {
    sed -n "s/.*\"$1\": \([^,}]*\).*/\1/p" "$report"
}

printf '%-28s %8s %12s %12s %12s %7s %8s %9s\n' name buffers capacity height "max live" ratio \
    proved seconds
for file in "$1"/*.csv; do
    name=$(basename "$file" .csv)
    capacity=${name##*.}
    case $capacity in
    '' | *[!0-9]*) capacity=none ;;
    esac
    if ! "$gradc" plan --placement "$file" --json >"$report"; then
        echo "$name: refused"
        continue
    fi
    printf '%-28s %8s %12s %12s %12s %7s %8s %9s\n' "${name%."$capacity"}" "$(of buffers)" \
        "$capacity" "$(of height)" "$(of max_live)" \
        "$(awk -v h="$(of height)" -v m="$(of max_live)" 'BEGIN { printf "%.4f", h / m }')" \
        "$(of proved)" "$(of seconds)"
done
