#!/bin/sh
# Checks every #include of compiler/, grammar/ and runtime/ against the picture
#
#   base -> kernel -> graph -> { ops, front, plan -> pass } -> compile.c -> main.c
#   base -> kernel -> target -> compile.c        runtime/abi.h, cuda_abi.h -> target
#
# (an arrow reads "is known by"; what is not drawn is forbidden), and prints the
# offending lines.  LLVM's headers belong to compiler/target/cpu, CUDA's to
# compiler/target/cuda and runtime/cuda*.c; the runtime includes nothing of the
# compiler.  compiler/cli holds the commands: it is part of main.c, and with it may
# use the runtime's header.
#
#   sh tests/layers.sh [ROOT]       sh tests/layers.sh --self-test
set -u

layers() {
    (
        cd "$1" || exit 3
        find compiler grammar runtime -name '*.[chyl]' -o -name '*.def' 2>/dev/null | sort |
            xargs awk "$program"
    )
}

# shellcheck disable=SC2016  # this is awk
program='
BEGIN {
    may["base"] = " base "
    may["kernel"] = " base kernel "
    may["graph"] = " base kernel graph "
    may["ops"] = " base kernel graph "
    may["front"] = " base kernel graph front embedded "
    may["pass"] = " base kernel graph plan pass "
    may["plan"] = " base kernel graph plan "
    may["target"] = " base kernel target abi embedded "
    may["compile"] = may["front"] "ops pass plan target abi compile "
    may["main"] = may["compile"] "main runtime "
    may["abi"] = " abi "
    may["runtime"] = " abi runtime "
}

function layer(path) {
    if (path ~ /^grammar\//) return "front"
    if (path ~ /^runtime\/(cuda_)?abi.h$/) return "abi"
    if (path ~ /^runtime\//) return "runtime"
    if (path ~ /^generated\/model\./) return "front"
    if (path ~ /^generated\//) return "embedded"
    if (path ~ /^compiler\/compile(_budget|_cost|_forms|_parts)?\.[ch]$/) return "compile"
    if (path ~ /^compiler\/(cli\/)?[^\/]*$/) return "main"
    sub(/^compiler\//, "", path)
    sub(/\/.*/, "", path)
    return path
}

function exists(path,   line, got) {
    if (path in known) return known[path]
    got = (getline line < path) >= 0
    close(path)
    return known[path] = got
}

# "a/b/../c" and "a/./c" without the dots
function tidy(path) {
    while (path ~ /\/\.\//) sub(/\/\.\//, "/", path)
    while (path ~ /[^\/.]+\/\.\.\//) sub(/[^\/.]+\/\.\.\//, "", path)
    return path
}

function resolve(name,   folder) {
    folder = FILENAME
    sub(/[^\/]*$/, "", folder)
    if (exists(tidy(folder name))) return tidy(folder name)
    if (exists(tidy("compiler/" name))) return tidy("compiler/" name)
    if (exists(tidy("runtime/" name))) return tidy("runtime/" name)
    if (exists(tidy(name))) return tidy(name)
    if (name ~ /^(model\.(tab|lex)|embedded)\.h$/) return "generated/" name
    return ""
}

function complain(why) {
    printf "%s:%d: %s: %s\n", FILENAME, FNR, $0, why
    bad = 1
}

/^[ \t]*#[ \t]*include[ \t]*"/ {
    name = $0
    sub(/^[^"]*"/, "", name)
    sub(/".*/, "", name)
    from = layer(FILENAME)
    path = resolve(name)
    if (path == "")
        complain("there is no such file")
    else if (!(from in may))
        complain("compiler/" from " is not in the picture")
    else if (index(may[from], " " layer(path) " ") == 0)
        complain(from " must not know " layer(path))
}

/^[ \t]*#[ \t]*include[ \t]*<llvm/ && FILENAME !~ /^compiler\/target\/cpu\// {
    complain("LLVM belongs to compiler/target/cpu")
}

/^[ \t]*#[ \t]*include[ \t]*<(cuda|nvrtc|cublas|nccl)/ &&
        FILENAME !~ /^(compiler\/target\/cuda\/|runtime\/cuda)/ {
    complain("CUDA belongs to compiler/target/cuda and runtime/cuda*.c")
}

END { exit bad }
'

# plant ROOT FILE LINE: a tree with one file in it that has this line.
plant() {
    mkdir -p "$1/$(dirname "$2")"
    printf '%s\n' "$3" >"$1/$2"
}

# found FILE LINE: planted in a clean tree, the line is complained about.
found() {
    plant "$trial" "$1" "$2"
    out=$(layers "$trial") && {
        echo "not found: $1: $2"
        missed=1
    }
    case $out in
    "$1:1: "*) ;;
    *)
        echo "not named: $1: $2: $out"
        missed=1
        ;;
    esac
    rm "$trial/$1"
}

self_test() {
    trial=$(mktemp -d) || exit 3
    trap 'rm -rf "$trial"' EXIT
    missed=0
    for file in cli/cli base/a graph/g kernel/k plan/p pass/s front/f target/target target/cpu/c compile; do
        plant "$trial" "compiler/$file.h" "/* nothing */"
    done
    plant "$trial" runtime/abi.h "/* nothing */"
    plant "$trial" runtime/gradc.h '#include "abi.h"'
    plant "$trial" grammar/model.y '#include "front/f.h"'
    plant "$trial" compiler/plan/p.c '#include "../graph/g.h"'
    plant "$trial" compiler/main.c '#include "compile.h"'
    plant "$trial" compiler/cli/train.c '#include "runtime/gradc.h"'
    plant "$trial" compiler/target/cpu/c.c '#include <llvm-c/Core.h>'
    layers "$trial" || missed=1
    found compiler/base/b.c '#include "kernel/k.h"'
    found compiler/kernel/x.c '#include "graph/g.h"'
    found compiler/graph/x.c '#include "plan/p.h"'
    found compiler/ops/x.c '#include "target/target.h"'
    found compiler/plan/x.c '#include "pass/s.h"'
    found compiler/target/cpu/x.c '#include "../../graph/g.h"'
    found compiler/target/x.c '#include <llvm-c/Core.h>'
    found compiler/pass/x.c '# include "runtime/abi.h"'
    found compiler/plan/y.c '#include "cli/cli.h"'
    found compiler/pass/y.c '#include "compile.h"'
    found compiler/compile.c '#include "runtime/gradc.h"'
    found runtime/x.c '#include "../compiler/base/a.h"'
    found runtime/y.c '#include <cuda.h>'
    found grammar/x.l '#include "plan/p.h"'
    found compiler/base/y.c '#include "nowhere.h"'
    found compiler/extra/x.c '#include "base/a.h"'
    [ "$missed" -eq 0 ] && echo "16 planted violations found"
    return "$missed"
}

case ${1:-} in
--self-test) self_test ;;
*) layers "${1:-$(dirname "$0")/..}" ;;
esac
