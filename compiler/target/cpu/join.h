/* Several relocatable ELF objects as one, as `ld -r` would do it. */
#ifndef GRADC_TARGET_CPU_JOIN_H
#define GRADC_TARGET_CPU_JOIN_H

#include "../../base/vec.h"

typedef struct JoinPart {
    const unsigned char *bytes;
    size_t n;
    const char *defines; /* symbol that the part defines, and ... */
    const char *as;      /* ... its name in what is joined; NULL: the same */
    const char *path;    /* the source and the line of its code, or NULL */
    int line;
} JoinPart;

/* Where the lines of parts with a path go: a unit of debug information. NULL: nowhere. */
typedef struct JoinLines {
    const char *path, *producer;
} JoinLines;

/* The first part keeps all its debug information, the others what unwinds their frames. Hidden
 * symbols become local. The bytes depend on the arguments only.
 * gives: NULL; or what is wrong with the parts. */
const char *join_parts(const JoinPart *part, int n, const JoinLines *lines, Arena *arena,
                       const unsigned char **bytes, size_t *n_bytes);

#endif
