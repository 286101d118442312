# Text in, text out, for every stage of the compiler.
. tests/stage.sh
need_gradc
run golden sh tests/golden.sh build/gradc
finish
