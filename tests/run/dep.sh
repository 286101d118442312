#!/bin/sh
# build --emit dep: what make reads is the names of the files, whatever they are.
#
#   sh tests/run/dep.sh GRADC
set -u
case ${1:-build/gradc} in
/*) gradc=${1:-build/gradc} ;;
*) gradc=$(pwd)/${1:-build/gradc} ;;
esac
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch
cd "$scratch" || exit 3

# dep NAME TEXT: of NAME.model, for NAME.o. Make rebuilds after the model has changed, not before.
dep() {
    printf 'model m {\n    param w : f32 = 1\n    loss w\n}\n' >"$1.model"
    "$gradc" build -q "$1.model" -o "$1.o" --emit dep=d
    printf '%s\n' "$2" >want
    diff want d
    verdict $? "$1: $(cat d)"
    command -v make >/dev/null 2>&1 || { skip "make is not here" && return; }
    touch -d '2001-01-01' "$1.model"
    touch -d '2002-01-01' "$1.o"
    target=$(sed 's/\.o:.*/.o/' d)
    printf 'all: %s\n%s\n\t@echo again\n' "$target" "$(cat d)" >Makefile
    before=$(make all 2>&1)
    touch "$1.model"
    after=$(make all 2>&1)
    case $before,$after in *again*,*) false ;; *,again) ;; *) false ;; esac
    verdict $? "$1: make said \`$before\`, then \`$after\`"
}

dep plain 'plain.o: plain.model'
dep 'a space' 'a\ space.o: a\ space.model'
dep 'hash#1' 'hash\#1.o: hash\#1.model'
# shellcheck disable=SC2016  # of names
dep 'dollar$1' 'dollar$$1.o: dollar$$1.model'
dep 'c:olon' 'c\:olon.o: c\:olon.model'
dep 'back\slash' 'back\slash.o: back\slash.model'
# shellcheck disable=SC1003  # a backslash at the end
dep 'both\ 1' 'both\\\ 1.o: both\\\ 1.model'

# Standard input is no file.
"$gradc" build -q - -o s.o --emit dep=- <plain.model >d
printf 's.o:\n' | cmp - d
verdict $? "standard input: $(cat d)"

total
