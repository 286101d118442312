# Bare placement problems: gradc plan --placement, its statuses and what it writes.
. tests/stage.sh
need_gradc
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gradc=$PWD/build/gradc
data=$PWD/tests/data/minimalloc
cd "$work" || exit 3
mkdir -p build/log

# fits OFFSETS CAPACITY: every pair of buffers lies apart, and all below the capacity.
# shellcheck disable=SC2317  # check calls it
fits() {
    awk -F, -v capacity="$2" '
        NR == 1 { if ($0 != "id,lower,upper,size,offset") { print "header: " $0; bad = 1 }; next }
        {
            n++; id[n] = $1; lower[n] = $2; upper[n] = $3; size[n] = $4; at[n] = $5
            if ($5 < 0 || $5 + $4 > capacity) { print $1 " is outside"; bad = 1 }
            for (i = 1; i < n; i++)
                if (lower[i] < $3 && $2 < upper[i] && at[i] < $5 + $4 && $5 < at[i] + size[i]) {
                    print id[i] " and " $1 " overlap"; bad = 1
                }
        }
        END { exit bad || n == 0 }' "$1"
}

# refused STATUS MESSAGE FILE [OPTION...]: one error, with a place in the file.
refused() {
    status=$1 message=$2 file=$3
    shift 3
    "$gradc" plan --placement "$file" "$@" -o never.csv >out 2>err
    got=$?
    if [ $got -eq "$status" ] && grep -qF "$message" err && [ "$(grep -c 'error\[' err)" -eq 1 ] &&
        [ ! -s out ] && [ ! -e never.csv ]; then
        ok
    else
        cat err
        fail "$file: status $got, not $status with: $message"
    fi
}

for file in "$data"/*.csv; do
    capacity=${file%.csv}
    capacity=${capacity##*.}
    name=$(basename "$file" .csv)
    check "$name" "$gradc" plan --placement "$file" --capacity "$capacity" --json -o offsets.csv
    "$gradc" plan --placement "$file" --capacity "$capacity" --json >report.json
    check "$name: report" grep -qE "^\{\"buffers\": [0-9]+, \"capacity\": $capacity, \"height\": [0-9]+, \"max_live\": [0-9]+, \"proved\": true, \"seconds\": [0-9.]+\}\$" report.json
    check "$name: offsets" fits offsets.csv "$capacity"
    cut -d, -f1-4 offsets.csv | sort >written
    tr -d '\r' <"$file" | sort >given
    check "$name: what is written is what was read" cmp given written
done

toy=$data/input.12.csv
refused 4 "error[E0621]: proved impossible: no placement keeps to a capacity of 11" "$toy" --capacity 11
printf 'id,lower,upper,size,alignment\na,0,9,1,64\nb,0,9,1,1\nc,0,9,1,1\n' >aligned.csv
refused 4 "error[E0622]: not found: no placement within a capacity of 3" aligned.csv --capacity 3

printf 'id,lower,upper\na,0,1\n' >column.csv
refused 1 "column.csv:1:1: error[E0620]: the header has no column \`size\`" column.csv
printf 'id,lower,upper,size\na,0,1,4\nb,0,1,-4\n' >negative.csv
refused 1 "negative.csv:3:7: error[E0620]: the size -4 is not positive" negative.csv
printf 'id,lower,upper,size\r\na,0,1,4\r\nb,1,1,4\r\n' >never.in.csv
refused 1 "never.in.csv:3:5: error[E0620]: the buffer is never alive" never.in.csv
printf 'id,lower,upper,size\na,0,1,4\nb,0,1' >short.csv
refused 1 "short.csv:3:1: error[E0620]: the line has 3 fields" short.csv
printf 'id,lower,upper,size\na,0,1,4\000\n' >nul.csv
refused 1 "nul.csv:2:8: error[E0620]: the file has a NUL byte" nul.csv
: >empty.csv
refused 1 "empty.csv:1:1: error[E0620]: the file is empty" empty.csv
printf 'id,lower,upper,size\na,0,1,4\na,1,2,4\n' >twice.csv
refused 1 "twice.csv:3:1: error[E0620]: there are two buffers \`a\`" twice.csv
head -c 4096 "$gradc" >binary.csv
refused 1 "binary.csv:1:8: error[E0620]: the file has a NUL byte" binary.csv

"$gradc" plan --placement missing.csv >out 2>err
check "a file that is not there" test $? -eq 3
"$gradc" plan --placement "$toy" --capacity none >out 2>err
check "a capacity that is none" test $? -eq 2
"$gradc" plan --placement "$toy" other.model >out 2>err
check "a model beside it" test $? -eq 2

cp "$toy" in.csv
check "from standard input, out to standard output" sh -c \
    "'$gradc' plan -q --placement - -o - <in.csv >piped.csv"
check "piped offsets" fits piped.csv 12
check "what was written can be read" "$gradc" plan --placement piped.csv --capacity 12
finish
