# The source itself: its form, who includes whom, and the shell scripts.
. tests/stage.sh

# shellcheck disable=SC2317 # called by check
formatted() {
    find compiler runtime tests examples -name '*.[ch]' -exec clang-format --dry-run -Werror {} +
}

# What a command has left behind is no part of the project.
# shellcheck disable=SC2317 # called by check
top_level() {
    others=$(git ls-files | cut -d/ -f1 | sort -u | grep -vxE '\.ci|\.clang-format|\.gitignore|CMakeLists\.txt|LICENSE|README\.md|SECURITY\.md|cmake|compiler|examples|grammar|runtime|tests')
    [ -z "$others" ] || { printf '%s\n' "$others"; return 1; }
}

if git ls-files >/dev/null 2>&1; then
    check "nothing on the top level but what belongs there" top_level
else
    skip "what is on the top level: no git, or no checkout"
fi
check "every diagnostic code has a test (tests/codes.sh)" sh tests/codes.sh
if clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
    check "formatted by .clang-format" formatted
else
    skip "the formatting of the source: it is that of clang-format 14, which is not here"
fi
check "includes follow the picture (tests/layers.sh)" sh tests/layers.sh
check "tests/layers.sh finds planted violations" sh tests/layers.sh --self-test
if command -v shellcheck >/dev/null 2>&1 || want shellcheck; then
    # SC2319, of later versions: `verdict $?` behind a condition means the condition.
    for script in $(find examples tests -name '*.sh' | sort); do
        check "shellcheck $script" shellcheck -x -s sh -e SC2319 "$script"
    done
else
    skip "shell scripts: no shellcheck here"
fi
finish
