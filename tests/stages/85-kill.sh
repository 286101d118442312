# Training that is killed at random moments goes on where it was.
. tests/stage.sh
need_gradc
run kill sh tests/kill.sh build/gradc "${KILLS:-20}"
finish
