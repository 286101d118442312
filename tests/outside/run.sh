#!/bin/sh
# Installs gradc under a prefix with a space in it, builds the program of this
# folder against it by CMake and by pkg-config, moves the prefix, and again.
set -u
cd "$(dirname "$0")/../.." || exit 3
root=$PWD
work=$root/build/outside
rm -rf "$work"
mkdir -p "$work"
passed=0 failed=0

# check NAME COMMAND...
check() {
    what=$1
    shift
    if "$@" >"$work/out.txt" 2>&1; then
        passed=$((passed + 1))
    else
        tail -n 30 "$work/out.txt"
        echo "FAILED: outside: $what"
        failed=$((failed + 1))
    fi
}

by_cmake() {
    rm -rf "$work/cmake"
    cmake -S tests/outside -B "$work/cmake" "-DCMAKE_PREFIX_PATH=$1" &&
        cmake --build "$work/cmake" &&
        "$work/cmake/by-runtime" && "$work/cmake/by-static"
}

# by_pkg_config PREFIX shared|static. pkg-config quotes for a shell: the prefix
# has a space in it.
by_pkg_config() {
    PKG_CONFIG_PATH=$(dirname "$(find "$1" -name gradc.pc)")
    export PKG_CONFIG_PATH
    mkdir -p "$work/plain"
    gradc='' libdir=''
    eval "gradc=$(pkg-config --variable=gradc gradc)"
    eval "libdir=$(pkg-config --variable=libdir gradc)"
    "$gradc" build tests/outside/outside.model -o "$work/plain/outside.o" || return 1
    flags=$(pkg-config --cflags --libs "--$2" gradc) || return 1
    if [ "$2" = static ]; then # both are there, and a linker prefers the shared one
        flags=$(printf '%s' "$flags" | sed 's/-lgradc/-l:libgradc.a/')
    fi
    eval "cc -Wall -Werror '-I$work/plain' tests/outside/outside.c '$work/plain/outside.o' $flags \
        -o '$work/plain/program'" || return 1
    LD_LIBRARY_PATH=$libdir "$work/plain/program"
}

headers() {
    for language in "cc -xc -std=c99" "cc -xc -std=c11" "c++ -xc++ -std=c++11" \
        "c++ -xc++ -std=c++20"; do
        command -v "${language%% *}" >/dev/null || continue
        printf '#include <gradc.h>\n#include "outside.h"\n' |
            $language -Wall -Wextra -Wpedantic -Wconversion -Werror -fsyntax-only \
                "-I$1/include/gradc" "-I$work/plain" - || return 1
    done
}

first="$work/a prefix"
check "install" cmake --install build --prefix "$first"
check "CMake package" by_cmake "$first"
check "pkg-config, shared" by_pkg_config "$first" shared
check "pkg-config, static" by_pkg_config "$first" static
check "headers as C99, C11, C++11, C++20" headers "$first"
mkdir -p "$work/elsewhere"
moved="$work/elsewhere/it moved"
mv "$first" "$moved"
check "CMake package, moved" by_cmake "$moved"
check "pkg-config, shared, moved" by_pkg_config "$moved" shared
echo "passed=$passed failed=$failed skipped=0"
[ "$failed" -eq 0 ]
