# The contract of the emitted object: arena, symbols, header, what it refuses.
. tests/stage.sh
need_gradc
run object sh tests/object/run.sh build/gradc
finish
