/* Arenas: a chain of blocks, filled from the front. Under the address sanitizer
 * every allocation is a block of its own, so that a step over its end is seen. */
#include "arena.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define ONE_BLOCK_EACH true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ONE_BLOCK_EACH true
#endif
#endif
#ifndef ONE_BLOCK_EACH
#define ONE_BLOCK_EACH false
#endif

enum { ALIGN = 16, FIRST_BLOCK = 16 << 10, LARGEST_BLOCK = 1 << 20 };

struct ArenaBlock {
    ArenaBlock *older;
    size_t size; /* of what follows this header */
};

static_assert(sizeof(ArenaBlock) % ALIGN == 0, "the first allocation is aligned");

static void (*on_exhaustion)(size_t bytes);
static _Atomic int64_t blocks_asked, blocks_until_failure; /* of the arenas of all threads */

void arena_on_exhaustion(void (*end)(size_t bytes))
{
    on_exhaustion = end;
}

void arena_fail_at(int64_t n)
{
    blocks_until_failure = n;
}

int64_t arena_blocks(void)
{
    return blocks_asked;
}

static _Noreturn void out_of_memory(size_t bytes)
{
    if (on_exhaustion != NULL)
        on_exhaustion(bytes);
    else
        fprintf(stderr, "gradc: out of memory: a request for %zu bytes was refused\n", bytes);
    fflush(stdout);
    _Exit(4); /* other threads may be at work with what exit() takes apart */
}

static ArenaBlock *block_new(ArenaBlock *older, size_t size)
{
    blocks_asked++;
    bool refuse = blocks_until_failure > 0 && --blocks_until_failure == 0;
    ArenaBlock *b = NULL;
    if (!refuse && size <= SIZE_MAX - sizeof *b)
        b = malloc(sizeof *b + size);
    if (b == NULL)
        out_of_memory(size);
    b->older = older;
    b->size = size;
    return b;
}

/* Blocks double, so that a small run stays small and a large one makes few. */
static size_t block_size(const Arena *a, size_t bytes)
{
    if (ONE_BLOCK_EACH)
        return bytes;
    size_t size = a->block == NULL ? FIRST_BLOCK : 2 * a->block->size;
    if (size > LARGEST_BLOCK)
        size = LARGEST_BLOCK;
    return size > bytes ? size : bytes;
}

static char *block_bytes(ArenaBlock *b)
{
    return (char *)(b + 1);
}

static size_t rounded(size_t bytes)
{
    if (bytes > SIZE_MAX - ALIGN)
        out_of_memory(bytes);
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

void *arena_alloc(Arena *a, size_t bytes)
{
    /* The sanitizer should see the true end. */
    size_t take = ONE_BLOCK_EACH ? bytes : rounded(bytes);
    if (a->block == NULL || ONE_BLOCK_EACH || take > a->block->size - a->used) {
        a->block = block_new(a->block, block_size(a, take));
        a->used = 0;
    }
    void *at = block_bytes(a->block) + a->used;
    a->used += take;
    memset(at, 0, bytes);
    return at;
}

void *arena_array(Arena *a, size_t n, size_t size)
{
    if (size != 0 && n > SIZE_MAX / size)
        out_of_memory(SIZE_MAX);
    return arena_alloc(a, n * size);
}

bool arena_extend(Arena *a, void *at, size_t old, size_t bytes)
{
    if (ONE_BLOCK_EACH || a->block == NULL || at == NULL)
        return false;
    size_t before = rounded(old), after = rounded(bytes);
    if (before > a->used || (char *)at != block_bytes(a->block) + a->used - before ||
        after - before > a->block->size - a->used)
        return false;
    a->used += after - before;
    memset((char *)at + old, 0, bytes - old);
    return true;
}

char *arena_strndup(Arena *a, const char *s, size_t n)
{
    if (n == SIZE_MAX)
        out_of_memory(n);
    char *copy = arena_alloc(a, n + 1);
    memcpy(copy, s, n);
    return copy;
}

char *arena_strdup(Arena *a, const char *s)
{
    return arena_strndup(a, s, strlen(s));
}

char *arena_vprintf(Arena *a, const char *format, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, format, ap);
    size_t bytes = n < 0 ? 0 : (size_t)n;
    char *s = arena_alloc(a, bytes + 1);
    if (n > 0)
        vsnprintf(s, bytes + 1, format, again);
    va_end(again);
    return s;
}

char *arena_printf(Arena *a, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    char *s = arena_vprintf(a, format, ap);
    va_end(ap);
    return s;
}

ArenaMark arena_mark(const Arena *a)
{
    return (ArenaMark){a->block, a->used};
}

void arena_reset(Arena *a, ArenaMark m)
{
    while (a->block != m.block) {
        ArenaBlock *older = a->block->older;
        free(a->block);
        a->block = older;
    }
    a->used = m.used;
}

void arena_free(Arena *a)
{
    arena_reset(a, (ArenaMark){0});
}

bool mul_size(int64_t a, int64_t b, int64_t *out)
{
    if (a < 0 || b < 0 || (b != 0 && a > INT64_MAX / b))
        return false;
    *out = a * b;
    return true;
}

bool add_size(int64_t a, int64_t b, int64_t *out)
{
    if (a < 0 || b < 0 || a > INT64_MAX - b)
        return false;
    *out = a + b;
    return true;
}

int64_t common_divisor(int64_t x, int64_t y)
{
    while (y != 0) {
        int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return x;
}

int64_t align_up(int64_t n, int64_t align)
{
    assert(n >= 0 && align > 0 && (align & (align - 1)) == 0 && n <= INT64_MAX - align);
    return (n + align - 1) & -align;
}
