# Bare planning problems: gradc plan --problem.
. tests/stage.sh
need_gradc
run planner sh tests/planner.sh build/gradc
finish
