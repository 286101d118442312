# A program outside the tree, by the installed package.
. tests/stage.sh
need_gradc
run outside sh tests/outside/run.sh
finish
