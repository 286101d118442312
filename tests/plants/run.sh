#!/bin/sh
# Plants each bug of plants.txt in a copy of the tree (build-plants/tree) and asks the
# suite: unit tests first, then random models. Prints what caught it.
#
#   sh tests/plants/run.sh            all of them
#   sh tests/plants/run.sh WORD...    those whose names contain one of the words
set -u
cd "$(dirname "$0")/../.." || exit 3
. tests/setup.sh
. tests/tally.sh

home=$PWD/build-plants
models=${PLANT_MODELS:-40} # random models for each bug
tree=$home/tree
GRADC_CACHE=$home/kernels # of one bug: it may be in how they are compiled
export GRADC_CACHE

# files: all of the tree but what is built.
files() {
    find . \( -name 'build*' -o -name .git \) -type d -prune -o -type f -print
}

# What differs is copied anew (and so built anew), what is gone goes.
mkdir -p "$tree"
(cd "$tree" && files) | while read -r file; do
    [ -f "$file" ] || rm "$tree/$file"
done
files | while read -r file; do
    cmp -s "$file" "$tree/$file" && continue
    mkdir -p "$(dirname "$tree/$file")" && cp -p "$file" "$tree/$file" && touch "$tree/$file"
done
cd "$tree" || exit 3

# make_all: gradc, the unit tests and the random models of the copy.
make_all() {
    build "$home/build" Quick gradc gradc-tests gradc-smith >"$home/make.txt" 2>&1
}

# random: nothing is wrong with models that once failed, nor with the first of the others.
random() {
    rm -rf "$GRADC_CACHE"
    printf '%s\n' tests/smith/found/*.model |
        xargs -P "$(cores)" -n 1 "$home/build/gradc-smith" check 2>/dev/null |
        sed -n '/: none /!s/^/seed of /p' >"$home/random.txt"
    [ -s "$home/random.txt" ] && return 1
    timeout 300 "$home/build/gradc-smith" run --seed 1000000 --count "$models" \
        --jobs "$(cores)" --first >"$home/random.txt" 2>&1
}

# unseen SUITES [random]: nobody sees anything wrong, nor do random models where they are asked;
# otherwise `caught` says who did.
unseen() {
    known=$("$home/build/gradc-tests" --list 2>/dev/null)
    for suite in $1; do
        if [ "$suite" != "${suite#run/}" ]; then
            timeout 300 sh "tests/$suite.sh" "$home/build/gradc" >"$home/out.txt" 2>&1 && continue
            caught="$suite: $(grep -m 1 '^FAILED' "$home/out.txt" | cut -c 1-100)"
            return 1
        fi
        printf '%s\n' "$known" | grep -qx "$suite" || continue
        if ! timeout 300 "$home/build/gradc-tests" "$suite" >"$home/out.txt" 2>&1; then
            why=$(grep -m 1 -oE '[a-z_]+\.c:[0-9]+:[FE]:.*' "$home/out.txt" | cut -c 1-100)
            caught="unit test $suite: ${why:-$(tail -n 1 "$home/out.txt")}"
            return 1
        fi
    done
    [ -n "$2" ] || return 0
    random && return 0
    caught="random models: $(grep -m 1 '^seed' "$home/random.txt" | cut -c 1-120)"
    return 1
}

selected() {
    name=$1
    shift
    [ $# -eq 0 ] && return 0
    for word in "$@"; do
        case $name in *"$word"*) return 0 ;; esac
    done
    return 1
}

if ! make_all; then
    tail -n 20 "$home/make.txt"
    fail "the copy does not build"
    total
    exit
fi
caught=
grep -v '^#' tests/plants/plants.txt | while IFS='|' read -r name rest; do
    selected "${name% }" "$@" && printf '%s|%s\n' "$name" "$rest"
done >"$home/list.txt"
suites=$(sed -e 's/.*|//' -e 's/-//' "$home/list.txt" | tr ' ' '\n' | sort -u)
# The random models of the tree without a bug are those of stage 45.
if ! unseen "$suites" "${GRADC_FULL:+random}"; then
    fail "the suite fails without a planted bug ($caught)"
fi
while IFS='|' read -r name file command suites; do
    name=${name% } file=${file# } file=${file% } command=${command# } command=${command% }
    cp "$file" "$home/keep"
    sed "$command" "$home/keep" >"$file"
    if cmp -s "$file" "$home/keep"; then
        fail "$name: the line in $file has moved"
        continue
    fi
    if ! make_all; then
        fail "$name does not compile: $(grep -m 1 'error' "$home/make.txt")"
    elif unseen "${suites#* }" random; then
        fail "$name was not found"
    else
        say "$name: $caught"
        ok
    fi
    cp "$home/keep" "$file"
done <"$home/list.txt"
total
