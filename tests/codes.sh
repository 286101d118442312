#!/bin/sh
# Every diagnostic code is asked for by a test: by the expected messages of a bad model,
# by a unit test or by a stage. Those of faults inside gradc can't be: no input leads to them.
#
#   sh tests/codes.sh
set -u
cd "$(dirname "$0")/.." || exit 3
inner="E0702 E0990"
missing=0
codes=$(sed -n 's/^CODE(\([EW][0-9]*\).*/\1/p' compiler/base/codes.def)
for code in $codes; do
    case " $inner " in *" $code "*) continue ;; esac
    grep -rqw "$code" tests/golden/*/*.err tests/unit tests/run tests/stages || {
        echo "no test expects $code"
        missing=1
    }
done
exit "$missing"
