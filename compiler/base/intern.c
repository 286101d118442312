/* Interned strings in an open-addressed table, at most half full. */
#include "intern.h"

#include <string.h>

uint64_t hash_bytes(uint64_t h, const void *p, size_t n)
{
    const unsigned char *b = p;
    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * 0x100000001b3u;
    return h;
}

/* source: Steele, Lea, Flood, Fast Splittable Pseudorandom Number Generators
 * (OOPSLA 2014), with the constants of Stafford's variant 13. */
uint64_t hash_mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static void place(Interns *t, const char *s, uint32_t hash)
{
    uint32_t i = hash & (t->cap - 1);
    while (t->slot[i] != NULL)
        i = (i + 1) & (t->cap - 1);
    t->slot[i] = s;
    t->hash[i] = hash;
}

static void table_grow(Interns *t)
{
    Interns old = *t;
    t->cap = old.cap == 0 ? 64 : 2 * old.cap;
    t->slot = NEW_ARRAY(t->arena, const char *, t->cap);
    t->hash = NEW_ARRAY(t->arena, uint32_t, t->cap);
    for (uint32_t i = 0; i < old.cap; i++)
        if (old.slot[i] != NULL)
            place(t, old.slot[i], old.hash[i]);
}

const char *intern_n(Interns *t, const char *s, size_t n)
{
    if (2 * (t->n + 1) > t->cap)
        table_grow(t);
    uint32_t hash = (uint32_t)hash_mix(hash_bytes(HASH_START, s, n));
    for (uint32_t i = hash & (t->cap - 1); t->slot[i] != NULL; i = (i + 1) & (t->cap - 1))
        if (t->hash[i] == hash && strncmp(t->slot[i], s, n) == 0 && t->slot[i][n] == '\0')
            return t->slot[i];
    const char *copy = arena_strndup(t->arena, s, n);
    place(t, copy, hash);
    t->n++;
    return copy;
}

const char *intern(Interns *t, const char *s)
{
    return intern_n(t, s, strlen(s));
}
