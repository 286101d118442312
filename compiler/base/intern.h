/* Interned strings: equal text is the same pointer. */
#ifndef GRADC_BASE_INTERN_H
#define GRADC_BASE_INTERN_H

#include "arena.h"

typedef struct Interns {
    Arena *arena;
    const char **slot;
    uint32_t *hash;
    uint32_t n, cap; /* cap is a power of two */
} Interns;

const char *intern(Interns *t, const char *s);
const char *intern_n(Interns *t, const char *s, size_t n);

/* 64-bit FNV-1a, chained through `h` (start with HASH_START). */
#define HASH_START 0xcbf29ce484222325u
uint64_t hash_bytes(uint64_t h, const void *p, size_t n);
/* A well-mixed 64-bit value (splitmix64's finalizer). */
uint64_t hash_mix(uint64_t x);

#endif
