#!/bin/sh
# Installs what is missing, builds, and runs every stage of tests/stages.
#
#   sh tests/run.sh              all stages
#   sh tests/run.sh fuzz golden  those whose names contain one of the words
#
# A stage is a script tests/stages/NN-name.sh, run from the root of the tree. It sources
# tests/stage.sh, and the last line that it prints is "passed=N failed=N skipped=N". The first one
# builds; the others run in the order of their numbers, two at a time, so that one computes while the
# other waits for its last runner: none reads what another one leaves. One that fails, or takes
# longer than STAGE_MINUTES, does not stop the others. ".. NN-name" says that one begins; what it
# prints is shown when it ends, and is in build/log/NN-name.txt; the seconds of each runner are
# in build/log/took.txt.
set -u
cd "$(dirname "$0")/.." || exit 3
. tests/setup.sh

need_build
need check g++ binutils
# A locale with a decimal comma, made here and for the tests only.
if [ ! -d build/locale/de_DE.UTF-8 ] && want locales; then
    mkdir -p build/locale
    localedef -i de_DE -f UTF-8 "$PWD/build/locale/de_DE.UTF-8"
fi
[ -d build/locale/de_DE.UTF-8 ] && export LOCPATH="$PWD/build/locale"
if [ -n "${CI:-}" ]; then
    say "machine: $(uname -srm), $(cores) cores"
fi
mkdir -p build/log
rm -f build/log/[0-9]* build/log/took.txt

selected() {
    [ $# -eq 1 ] && return 0
    stage=$1
    shift
    for word in "$@"; do
        case $stage in *"$word"*) return 0 ;; esac
    done
    return 1
}

# stages MANY NAME...: runs them, so many at a time; prints the name of each that has ended.
stages() {
    many=$1
    shift
    [ $# -gt 0 ] || return 0
    # shellcheck disable=SC2016  # expanded by the inner shell
    printf '%s\n' "$@" | xargs -P "$many" -I {} sh -c '
        . tests/tally.sh
        begin=$(date +%s)
        echo ".. $1" >&2
        timeout "${STAGE_MINUTES:-40}m" sh "tests/stages/$1.sh" >"build/log/$1.txt" 2>&1
        status=$?
        times >"build/log/$1.times"
        echo "$status $(($(date +%s) - begin)) $(busy "build/log/$1.times")" >"build/log/$1.ended"
        echo "$1"' sh {}
}

# count KEY LINE: the number after KEY= in a stage's last line.
count() {
    number=${2##*"$1"=}
    printf '%s' "${number%% *}"
}

# report NAME...: shows each stage whose name is read, and the sum of all; true where nothing failed
# and all of these have ended.
report() {
    passed=0 failed=0 skipped=0 broken=
    while read -r name; do
        say ""
        say "== $name"
        log=build/log/$name.txt
        cat "$log"
        read -r status seconds busy <"build/log/$name.ended"
        line=$(grep -aE '^passed=[0-9]+ failed=[0-9]+ skipped=[0-9]+$' "$log" | tail -n 1)
        if [ -z "$line" ]; then
            say "$name ended with status $status before it had counted"
            line="passed=0 failed=1 skipped=0"
        fi
        p=$(count passed "$line") f=$(count failed "$line") s=$(count skipped "$line")
        if [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; then
            say "$name ended with status $status"
            f=1
        fi
        [ "$f" -gt 0 ] && broken="$broken $name"
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
        say "-- $name: $p passed, $f failed, $s skipped in $seconds s, $busy of processors"
    done
    for name in "$@"; do
        [ -f "build/log/$name.ended" ] && continue
        say "$name was killed, or never began"
        broken="$broken $name" failed=$((failed + 1))
    done
    say ""
    say "took $(($(date +%s) - begin)) s"
    cat build/log/[0-9]*.txt 2>/dev/null | grep -a '^skipped: ' | sort -u
    [ -n "$broken" ] && say "failed in:$broken"
    if [ $((passed + failed)) -eq 0 ]; then
        say "no test ran"
        failed=1
    fi
    say "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
}

begin=$(date +%s)
first='' others=''
for script in tests/stages/[0-9]*.sh; do
    name=$(basename "$script" .sh)
    selected "$name" "$@" || continue
    case $name in
    1*) first="$first $name" ;;
    *) others="$others $name" ;;
    esac
done
# The large counts: the report of coverage reads what the stage before it leaves.
at_once=2
[ -n "${GRADC_FULL:-}" ] && at_once=1
# shellcheck disable=SC2086  # lists of names
{
    stages 1 $first
    stages "$at_once" $others
} | report $first $others
