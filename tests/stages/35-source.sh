# The source itself: who includes whom, and the shell scripts.
. tests/stage.sh

check "includes follow the picture (tests/layers.sh)" sh tests/layers.sh
check "tests/layers.sh finds planted violations" sh tests/layers.sh --self-test
if command -v shellcheck >/dev/null 2>&1 || want shellcheck; then
    for script in $(find examples tests -name '*.sh' | sort); do
        check "shellcheck $script" shellcheck -x -s sh "$script"
    done
else
    skip "shell scripts: no shellcheck here"
fi
finish
