#!/bin/sh
# The cache of kernels: however damaged, shared or out of reach it is, a build gives the same bytes.
#
#   sh tests/run/cache.sh GRADC
set -u
case ${1:-build/gradc} in
/*) gradc=${1:-build/gradc} ;;
*) gradc=$(pwd)/${1:-build/gradc} ;;
esac
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch
model=$(pwd)/examples/digits.model
cd "$scratch" || exit 3
export GRADC_CACHE="$scratch/cache"

# of NAME: a figure that the last build has told.
of() {
    sed -n "s/.*\"$1\": \([0-9.]*\).*/\1/p" told
}

# builds WHAT all|some|none [OPTION...]: digits again; the same bytes, with so many of the parts from
# the cache. What is said is $remark, which is a cache's that can't be written.
remark=
builds() {
    what=$1 from=$2
    shift 2
    rm -f d.o d.h
    "$gradc" build --json "$model" -o d.o "$@" >told 2>said
    verdict $? "$what: $(cat said)"
    cmp d.o want/d.o && cmp d.h want/d.h &&
        if [ -n "$remark" ]; then grep -q "$remark" said; else ! grep -q . said; fi
    verdict $? "$what: other bytes, or not \`$remark\` was said: $(cat said)"
    case $from in
    all) [ "$(of cached)" -eq "$(of parts)" ] ;;
    none) [ "$(of cached)" -eq 0 ] ;;
    some) [ "$(of cached)" -gt 0 ] && [ "$(of cached)" -lt "$(of parts)" ] ;;
    esac
    verdict $? "$what: $(of cached) of $(of parts) parts from the cache, not $from"
}

mkdir want
"$gradc" build -q --no-cache --jobs 1 "$model" -o want/d.o
verdict $? "a build without a cache"
check "no cache was made" [ ! -e cache ]
builds "no cache, all cores" none --no-cache
builds "no cache, 7 threads" none --no-cache -j 7
builds "the first build" none --jobs 1
builds "the second build" all
builds "another number of threads" all --jobs 5
builds "--no-cache" none --no-cache
ls cache >listed
check "a file a part" [ "$(wc -l <listed)" -ge "$(of parts)" ]

# Only entries, tables and messages are the model's own: kernels are shared.
sed 's/digits/figures/; s/^# Hand/# A comment more.\n&/' "$model" >figures.model
"$gradc" build --json figures.model -o f.o >told
[ "$(of cached)" -eq $(($(of parts) - 2)) ]
verdict $? "a model of another name: $(cat told)"
"$gradc" build --json "$model" --cpu baseline -o b.o >told
[ "$(of cached)" -lt $(($(of parts) / 2)) ]
verdict $? "another processor: $(cat told)"

# damage WHAT COMMAND: of the file $file, done to each.
damage() {
    for file in cache/*.gradc; do
        "$2" || fail "$1: $file"
    done
    harm=$1
    builds "files are $harm" "$expect"
    builds "files are no longer $harm" "$after"
}
cut_short() {
    head -c 100 "$file" >part && cat part >"$file"
}
flip() {
    size=$(wc -c <"$file")
    printf '\377\377' | dd of="$file" bs=1 seek=$((size - 9)) conv=notrunc 2>part
}
empty() {
    : >"$file"
}
lengthen() {
    echo more >>"$file"
}
replace() {
    cp want/d.o "$file"
}
exchange() {
    cp want/first "$file"
}
pipe() {
    rm "$file" && mkfifo "$file"
}
link() {
    mv "$file" moved && rm -f "$file" && ln -s "$scratch/moved" "$file"
}
folder() {
    rm -f "$file" && mkdir "$file"
}
# Only digits' own parts, so that each is written anew.
rm -rf cache
builds "a new cache" none
expect=none after=all
damage "cut short" cut_short
damage flipped flip
damage empty empty
damage longer lengthen
damage "something else" replace
damage pipes pipe
damage links link
expect=some
for file in cache/*.gradc; do
    cp "$file" want/first
    break
done
damage "one another's" exchange
expect=none after=none
damage folders folder
rm -rf cache

# Where there can be none.
: >file
remark="kernels are not kept for the next time: "
for place in file file/below /proc/none; do
    GRADC_CACHE=$place builds "a cache at $place" none
done
check "--quiet says nothing of it" [ -z "$(GRADC_CACHE=./file "$gradc" build -q "$model" -o x.o 2>&1)" ]
remark=
GRADC_CACHE='' builds "GRADC_CACHE is empty" none
check "still no cache" [ ! -e cache ]
if [ "$(id -u)" -ne 0 ]; then
    mkdir cache && chmod 555 cache
    remark="kernels are not kept for the next time: cache: Permission denied"
    builds "a folder that is read-only" none
    remark=
    chmod 755 cache && rmdir cache
else
    skip "a folder that is read-only: root writes everywhere"
fi
(
    unset GRADC_CACHE
    export XDG_CACHE_HOME="$scratch/xdg" HOME="$scratch/home"
    "$gradc" build -q "$model" -o x.o
    XDG_CACHE_HOME=relative "$gradc" build -q "$model" -o x.o
)
check "XDG_CACHE_HOME" [ -n "$(ls xdg/gradc)" ]
check "HOME" [ -n "$(ls home/.cache/gradc)" ]
check "nothing at a relative path" [ ! -e relative ]

# Many at once, of which some are killed.
for i in 1 2 3 4 5 6; do
    "$gradc" build -q "$model" -o "many$i.o" --jobs 2 &
    [ "$i" -gt 4 ] && sleep 0.05 && kill -9 $! 2>part
done 2>said
wait
for i in 1 2 3 4; do
    check "build $i of many" cmp "many$i.o" want/d.o
done
builds "after many" all

# What programs compile for themselves is the same.
"$gradc" run "$model" --json --in image=0 >out 2>&1
"$gradc" doctor --json >told
[ "$(of cache_files)" -gt 20 ] && [ "$(of cache_bytes)" -gt 10000 ]
verdict $? "doctor: $(cat told)"
"$gradc" doctor | grep -q "^cache .* parts, .* bytes in $scratch/cache\$"
verdict $? "doctor tells where the cache is: $("$gradc" doctor)"
echo mine >cache/mine
"$gradc" doctor --clear-cache >out
check "what is not the cache's is left" [ "$(ls cache)" = mine ]
builds "after --clear-cache" none

total
