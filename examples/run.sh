#!/bin/sh
# Installs what is missing, builds gradc, compiles examples/fashion.model and the
# C program beside it, and trains it on Fashion-MNIST.
#
#   sh examples/run.sh                 fashion, all of it
#   sh examples/run.sh NAME            another example
#   sh examples/run.sh --short NAME    only the first steps of one, and as small as
#                                      its "# short:" line says
#
# An example is NAME.model and NAME.c; its program takes the folder of its data
# and, when asked to be short, the number of steps: NAME DATA [STEPS].
# FASHION_MNIST names a folder with the four Fashion-MNIST files, if not Debian's.
set -u
cd "$(dirname "$0")/.." || exit 3
. tests/setup.sh

short=
if [ "${1:-}" = --short ]; then
    short=20
    shift
fi
name=${1:-fashion}
set -- # from here on the options of gradc build
[ -f "examples/$name.model" ] || die "there is no examples/$name.model"
train_images=train-images-idx3-ubyte.gz

# Where Debian's package keeps the pictures; empty without it.
packaged() {
    dpkg -L dataset-fashion-mnist 2>/dev/null | sed -n "s|/$train_images\$||p" | head -n 1
}

# Sets `data`: the folder of Fashion-MNIST.
fashion_mnist() {
    data=${FASHION_MNIST:-$(packaged)}
    if [ -z "$data" ] && want dataset-fashion-mnist; then
        data=$(packaged)
    fi
    [ -n "$data" ] && [ -f "$data/$train_images" ]
}

need_build
data=examples/data
if { [ "$name" = fashion ] || [ "$name" = resnet8 ]; } && ! fashion_mnist; then
    say "Fashion-MNIST is not here: it comes with the package dataset-fashion-mnist of"
    say "Debian and Ubuntu (universe), or FASHION_MNIST=FOLDER names its four files."
    [ -n "$short" ] && exit 3
    say "Training the digits of examples/data instead."
    name=digits
    data=examples/data
fi

mkdir -p build
say "building gradc in build/"
build build Release gradc runtime-static >build/examples.log 2>&1 || {
    tail -n 30 build/examples.log
    die "the build failed; all of it: build/examples.log"
}

out=build/examples
mkdir -p "$out"
# Runs a command and shows it, for it is what a user would type.
show() {
    printf '$ %s\n' "$*"
    "$@"
}
# shellcheck disable=SC2046  # a list of options
[ -n "$short" ] && set -- $(sed -n 's/^# short: *//p' "examples/$name.model")
show build/gradc build "examples/$name.model" "$@" -o "$out/$name.o" || exit
show "${CC:-cc}" -O2 "-I$out" -Iruntime "examples/$name.c" "$out/$name.o" build/libgradc.a \
    -lz -ljansson -pthread -lm -ldl -o "$out/$name" || exit
# shellcheck disable=SC2086  # no third argument unless short
show "$out/$name" "$data" $short
