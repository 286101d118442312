#!/bin/sh
# README.md: its example commands print what it says, the code that it shows is in the
# files that it names, the files and folders that it names are there.
#
#   sh tests/run/readme.sh GRADC
set -u
gradc=${1:-build/gradc}
case $gradc in
/*) ;;
*) gradc=$(pwd)/$gradc ;;
esac
root=$(cd "$(dirname "$0")/../.." && pwd) || exit 3
readme=$root/README.md
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch

# Where the commands run: build/ has the compiler that is tested.
mkdir "$scratch/build"
ln -s "$gradc" "$scratch/build/gradc"
ln -s "$(dirname "$gradc")/libgradc.a" "$scratch/build/libgradc.a"
for folder in examples runtime tests; do
    ln -s "$root/$folder" "$scratch/$folder"
done
cd "$scratch" || exit 3

# "    $ COMMAND" and the indented lines after it, as far as the next command.
sed -n 's/^    \$ //p' "$readme" >commands
while read -r command; do
    awk -v command="    \$ $command" '
        $0 == command { on = 1; next }
        /^    \$ / || !/^    / { on = 0 }
        on { print substr($0, 5) }' "$readme" >expected
    sh -c "$command" >printed 2>messages
    diff expected printed && [ ! -s messages ]
    verdict $? "$command"
    cat messages
done <commands

# Fenced blocks, each in one of the files that the text before has named.
awk -v scratch="$scratch" '
    /^```/ { open = !open; if (open) n++; next }
    open { print > (scratch "/block." n) }' "$readme"
for block in block.*; do
    found=1
    for file in tests/run/square.model examples/digits.model examples/digits.c; do
        # Lines of the block, in order and in one piece; comments of the file apart.
        if grep -v -e '^# args' -e '^# source' "$file" |
            awk -v block="$block" '
                BEGIN { while ((getline line < block) > 0) want = want line "\n" }
                { all = all $0 "\n" }
                END { exit index(all, want) == 0 }'; then
            found=0
        fi
    done
    verdict $found "a block is in no file: $(head -n 1 "$block")"
done

# Names in backticks that look like paths of the tree.
lines=$(wc -l <"$readme")
test "$lines" -le 200
verdict $? "README.md has $lines lines, more than 200"
# shellcheck disable=SC2016  # backticks of the text
for name in $(grep -v '^    ' "$readme" | grep -o '`[a-z0-9_/.]*`' | tr -d '`' |
    grep -e '/' -e '\.[chly]$' -e '\.md$' -e '\.model$' | sort -u); do
    case $name in
    build/ | gradc.h | digits.h ) continue ;; # written by a build, or beside its folder
    esac
    test -e "$root/$name" || test -e "$root/compiler/$name" || test -e "$root/runtime/$name"
    verdict $? "there is no $name"
done

total
