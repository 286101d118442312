#!/bin/sh
# The comments above a definition or a declaration are in the header, beside what they say, and
# no comment ends the header's own or draws a warning.
#
#   sh tests/run/comments.sh GRADC
set -u
gradc=${1:-build/gradc}
# shellcheck source=tests/tally.sh
. "$(dirname "$0")/../tally.sh"
make_scratch

cat >"$scratch/m.model" <<'E1'
# not this

# A model.
# Of two lines.
model m {
    # what is given
    input x : f32[2] with grad
    # a factor,
    # of two lines
    param w : f32[2] = 1
    # how often
    state n : f32 = 0
    y = layer(x)
    n <- n + 1
    # to be small
    loss sum(w * y)
    # the largest
    metric top = max(y)
    # both parts
    output y, z = 2 * y
    param plain : f32 = 1 # not above
}
# in a block
block layer(x) {
    # of the layer
    param w : f32[2] = 1
    return x * w
}
# Slowly.
train m {
    optimizer adamw(lr = 0.1)
}
E1
"$gradc" build -q "$scratch/m.model" -o "$scratch/m.o" 2>"$scratch/said"
verdict $? "$(cat "$scratch/said")"

# shown COMMENT LINE: the comment, directly above the line that begins so.
shown() {
    grep -B1 -F -- "$2" "$scratch/m.h" | head -n 1 | sed 's/^ *//' >"$scratch/above"
    [ "$(cat "$scratch/above")" = "$1" ]
    verdict $? "above \`$2\`: $(cat "$scratch/above")"
}
shown "/* what is given */" "const float *x;"
shown "* of two lines */" "M_T_w = "
shown "/* how often */" "M_T_n = "
shown "/* of the layer */" "M_T_layer_w = "
shown "/* to be small */" "float *loss; /*"
shown "/* the largest */" "float *top;"
shown "/* both parts */" "float *y;"
shown "/* both parts */" "float *z;"
shown "* Of two lines. */" "#define M_ARENA_BYTES"
shown "/* Slowly. */" "/* One training step"
! grep -qE 'not this|not above|in a block' "$scratch/m.h"
verdict $? "comments that are of nothing"
[ "$(grep -c 'of two lines \*/' "$scratch/m.h")" -eq 1 ]
verdict $? "a comment of a parameter is there once, not for its gradient and moments"

# What would end the comment, or be read before comments are.
"$gradc" build -q tests/object/names.model -o "$scratch/names.o" 2>"$scratch/said"
verdict $? "$(cat "$scratch/said")"
printf '#include "names.h"\n' >"$scratch/c.c"
for standard in c99 c11 c++11; do
    case $standard in c++*) language=c++ ;; *) language=c ;; esac
    echo 'int x;' >"$scratch/probe.c"
    ${CC:-cc} -x$language -fsyntax-only "$scratch/probe.c" 2>/dev/null || continue
    ${CC:-cc} -x$language -std=$standard -Wall -Wextra -Wpedantic -Wcomment -Wtrigraphs -Werror \
        -fsyntax-only "-I$scratch" "$scratch/c.c" 2>"$scratch/said"
    verdict $? "names.h in $standard: $(head -n 5 "$scratch/said")"
done

total
