# Bugs planted in a copy of the tree, one by one, and found (tests/plants).
. tests/stage.sh
need_gradc
run plants sh tests/plants/run.sh
finish
