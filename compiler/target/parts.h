/* What is compiled part by part: on several threads, beside the cache. A part's bytes follow from
 * what its key is the digest of, and from nothing else: so it may be compiled by any thread, in any
 * order, or be taken from the cache. */
#ifndef GRADC_TARGET_PARTS_H
#define GRADC_TARGET_PARTS_H

#include "cache.h"

typedef struct Part {
    unsigned char key[DIGEST_BYTES];
    size_t weight;              /* of its source; the heaviest are begun first */
    const unsigned char *bytes; /* what it is compiled to; NULL: not yet, or it was refused */
    size_t n_bytes;
    int32_t same; /* an earlier part of the same key, or -1 */
    bool kept;    /* it was in the cache */
    bool taken;   /* by a thread */
} Part;

/* What a thread keeps from part to part; zero at first. */
typedef struct PartWorker {
    void *at[2];
} PartWorker;

/* Both run on any thread, `make` on several at once. */
typedef struct PartMaker {
    const void *of;
    /* Sets bytes and n_bytes, which last until parts_close(), or leaves them. */
    void (*make)(const void *of, PartWorker *own, Part *part);
    void (*end)(PartWorker *own); /* of a thread that makes no more; or NULL */
} PartMaker;

typedef struct Parts Parts;

/* Begins to compile what is added, on `jobs` threads with the caller's, beside the cache in that
 * folder (NULL: none). All is kept in `arena`, which only the caller's thread uses. */
Parts *parts_open(const PartMaker *m, const char *cache, int32_t jobs, Arena *arena);
/* Adds a part, which stays where it is; gives its index.   requires: key and weight. */
int32_t parts_add(Parts *p, Part *part);
int32_t parts_count(const Parts *p);
Part *parts_at(const Parts *p, int32_t i);
/* Waits until all is compiled, or refused. */
void parts_finish(Parts *p);
void parts_close(Parts *p);

#endif
