# Sourced by examples/run.sh, tests/run.sh and the stages (the caller stands in
# the root of the tree). What the system must have, and how to get it: Debian 12
# and Ubuntu 24.04 by apt; elsewhere the packages' counterparts by hand.
# shellcheck shell=sh

build_packages="gcc libc6-dev make cmake bison flex pkgconf zlib1g-dev libjansson-dev"
export LC_ALL=C.UTF-8
export GRADC_CACHE="${GRADC_CACHE-$PWD/build/cache}" # not among what the user keeps

say() {
    printf '%s\n' "$*"
}

die() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 3
}

cores() {
    nproc 2>/dev/null || echo 2
}

has_apt() {
    command -v dpkg-query >/dev/null 2>&1 && command -v apt-get >/dev/null 2>&1
}

installed() {
    case $(dpkg-query -W -f='${Status}' "$1" 2>/dev/null) in
    *"ok installed") return 0 ;;
    esac
    return 1
}

# in_turn FILE COMMAND...: not while another process does the same with this file, where that can
# be asked.
in_turn() {
    mkdir -p "$(dirname "$1")"
    (
        if command -v flock >/dev/null 2>&1; then flock 9; fi
        shift
        "$@"
    ) 9>"$1"
}

# as_root COMMAND...: by sudo where this is not root.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        sudo "$@"
    else
        return 1
    fi
}

apt_get() {
    in_turn build/apt.lock as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get -q -o DPkg::Lock::Timeout=600 "$@"
}

# install PACKAGE...: quiet unless it fails.
install() {
    say "installing with apt: $*"
    apt_output=$(apt_get install -y --no-install-recommends "$@" 2>&1) && return 0
    printf '%s\n' "$apt_output" | tail -n 20
    return 1
}

# Once per run, and only when something is to be installed.
apt_update() {
    [ -n "${apt_updated:-}" ] && return 0
    say "updating the list of packages (apt-get update)"
    apt_get update >/dev/null || return 1
    apt_updated=1
}

# available PACKAGE: apt could install it.
available() {
    apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [^(]'
}

# missing PACKAGE...: prints those that are not installed.
missing() {
    for package in "$@"; do
        installed "$package" || printf '%s ' "$package"
    done
}

# need PACKAGE...: installs what is missing, or ends with a message.
need() {
    has_apt || return 0
    absent=$(missing "$@")
    [ -z "$absent" ] && return 0
    # shellcheck disable=SC2086  # a list of words
    apt_update && install $absent && return 0
    die "can't install $absent
this needs root (or sudo) and a package source. As root:
    apt-get install $absent"
}

# want PACKAGE...: the same, but false with a message where it can't be had.
want() {
    has_apt || return 1
    absent=$(missing "$@")
    [ -z "$absent" ] && return 0
    apt_update || return 1
    for package in $absent; do
        available "$package" || {
            say "no package $package here"
            return 1
        }
    done
    # shellcheck disable=SC2086
    install $absent
}

# has_llvm VERSION: its tools and its C headers are there.
has_llvm() {
    command -v "llvm-config-$1" >/dev/null 2>&1 &&
        [ -f "$("llvm-config-$1" --includedir)/llvm-c/Core.h" ]
}

# The newest LLVM from 19 to 16: one that is installed, else one that can be.
need_llvm() {
    for version in 19 18 17 16; do
        has_llvm "$version" && return 0
    done
    has_apt || return 0
    apt_update || true
    for version in 19 18 17 16; do
        available "llvm-$version-dev" && {
            need "llvm-$version-dev"
            return 0
        }
    done
    die "no LLVM from 16 to 19 is packaged here; see README.md"
}

need_build() {
    if ! has_apt; then
        say "no apt here; taken as installed: $build_packages, LLVM 16 to 19"
    fi
    # shellcheck disable=SC2086
    need $build_packages
    need_llvm
}

# build FOLDER TYPE [TARGET...]: configures once, then makes what has changed.
# Other compilers by CC.
build() {
    in_turn "build/$(basename "$1").lock" build_now "$@"
}

build_now() {
    folder=$1
    type=$2
    shift 2
    if [ -f "$folder/CMakeCache.txt" ] &&
        ! grep -q "^CMAKE_HOME_DIRECTORY:INTERNAL=$(pwd -P)\$" "$folder/CMakeCache.txt"; then
        rm -rf "$folder" # a build of another checkout
    fi
    mkdir -p "$folder"
    cmake -S . -B "$folder" "-DCMAKE_BUILD_TYPE=$type" >"$folder/configure.log" 2>&1 || {
        cat "$folder/configure.log"
        return 1
    }
    if [ $# -eq 0 ]; then
        cmake --build "$folder" -j "$(cores)"
    else
        cmake --build "$folder" -j "$(cores)" --target "$@"
    fi
}
