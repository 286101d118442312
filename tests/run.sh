#!/bin/sh
# Installs what is missing, builds, and runs every stage of tests/stages.
#
#   sh tests/run.sh              all stages
#   sh tests/run.sh fuzz golden  those whose names contain one of the words
#
# A stage is a script tests/stages/NN-name.sh, run from the root of the tree in
# the order of its number. It sources tests/stage.sh, and the last line that it
# prints is "passed=N failed=N skipped=N". A stage that fails, or takes longer
# than STAGE_MINUTES, does not stop the others. Logs: build/log/NN-name.txt; how many seconds their
# runners took: build/log/took.txt.
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
rm -f build/log/[0-9]*.txt build/log/took.txt

passed=0 failed=0 skipped=0 broken=
selected() {
    [ $# -eq 1 ] && return 0
    stage=$1
    shift
    for word in "$@"; do
        case $stage in *"$word"*) return 0 ;; esac
    done
    return 1
}

# count KEY LINE: the number after KEY= in a stage's last line.
count() {
    number=${2##*"$1"=}
    printf '%s' "${number%% *}"
}

begin=$(date +%s)
for script in tests/stages/[0-9]*.sh; do
    name=$(basename "$script" .sh)
    selected "$name" "$@" || continue
    say ""
    say "== $name"
    log=build/log/$name.txt
    stage_begin=$(date +%s)
    {
        timeout "${STAGE_MINUTES:-20}m" sh "$script"
        echo $? >build/log/status
    } 2>&1 | tee "$log"
    status=$(cat build/log/status)
    line=$(grep -E '^passed=[0-9]+ failed=[0-9]+ skipped=[0-9]+$' "$log" | tail -n 1)
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
    say "-- $name: $p passed, $f failed, $s skipped in $(($(date +%s) - stage_begin)) s"
done

say ""
say "took $(($(date +%s) - begin)) s"
cat build/log/[0-9]*.txt 2>/dev/null | grep '^skipped: ' | sort -u
[ -n "$broken" ] && say "failed in:$broken"
if [ $((passed + failed)) -eq 0 ]; then
    say "no test ran"
    failed=1
fi
say "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
