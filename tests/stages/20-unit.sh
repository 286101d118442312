# Every suite of tests/unit and tests/*.c.
. tests/stage.sh
[ -x build/gradc-tests ] || { fail "build/gradc-tests is missing" && finish; }
unit_tests build
finish
