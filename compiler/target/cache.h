/* A cache on disk of what has been compiled: one file a part, named by the digest of all that its
 * bytes follow from. It may be damaged, full, shared by several processes, unwritable or not
 * there: then parts are compiled. cache_denied() tells why. */
#ifndef GRADC_TARGET_CACHE_H
#define GRADC_TARGET_CACHE_H

#include "../base/vec.h"
#include "../base/blake2b.h"

/* When a part has been stored, the files that were used longest ago are removed until
 * CACHE_KEEP_BYTES are left, if there are more than CACHE_MOST_BYTES. */
#define CACHE_MOST_BYTES (INT64_C(128) << 20)
#define CACHE_KEEP_BYTES (INT64_C(96) << 20)

typedef struct Cache {
    int folder; /* its descriptor, or -1: there is no cache */
} Cache;

typedef struct CacheSize {
    int64_t files, bytes;
} CacheSize;

/* `path` NULL: none. The folder, and those above it, are made where they lack. */
Cache cache_open(const char *path);
void cache_close(Cache *c);
/* An errno: why cache_open() gives none of this path, or nothing can be added to it. 0: neither. */
int cache_denied(const char *path);

/* The part as it was written, in `arena`; NULL: it is not there, or damaged, or of another owner.
 */
const unsigned char *cache_read(const Cache *c, const unsigned char key[DIGEST_BYTES], Arena *arena,
                                size_t *n);
/* Any thread, any process: a file is there as a whole or not at all. */
void cache_write(const Cache *c, const unsigned char key[DIGEST_BYTES], const unsigned char *bytes,
                 size_t n);
/* Keeps to the limit, and removes what writers that were killed have left. */
void cache_trim(const Cache *c);
CacheSize cache_size(const Cache *c);
/* Removes all parts, and no other file. */
void cache_clear(const Cache *c);

#endif
