/* Memory with a named lifetime. An Arena hands out zeroed memory and frees it
 * all at once; nothing else in the compiler calls malloc or free.
 *
 * Out of memory ends the program with one sentence and status 4: the compiler
 * writes its outputs at the very end and under temporary names, so nothing is
 * half written (the temporary files are removed by `arena_on_exhaustion`). */
#ifndef GRADC_BASE_ARENA_H
#define GRADC_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdarg.h>

typedef struct ArenaBlock ArenaBlock;

typedef struct Arena {
    ArenaBlock *block; /* newest first */
    size_t used;       /* bytes used of the newest block */
} Arena;

typedef struct ArenaMark {
    ArenaBlock *block;
    size_t used;
} ArenaMark;

/* Zeroed, aligned to 16 bytes. Never NULL. */
void *arena_alloc(Arena *a, size_t bytes);
/* Array of n elements; n*size is checked. n may be 0. */
void *arena_array(Arena *a, size_t n, size_t size);
/* Copies of text, NUL-terminated. */
char *arena_strdup(Arena *a, const char *s);
char *arena_strndup(Arena *a, const char *s, size_t n);
char *arena_printf(Arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(Arena *a, const char *format, va_list ap);

/* True when the allocation `at` of `old` bytes was the newest one and now has
 * `bytes` (more) in the same place; what was added is zeroed. */
bool arena_extend(Arena *a, void *at, size_t old, size_t bytes);

/* Scratch memory is taken between a mark and its reset. */
ArenaMark arena_mark(const Arena *a);
void arena_reset(Arena *a, ArenaMark m);
void arena_free(Arena *a);

/* Called once before the program ends for want of memory, with the size of the request: it
 * says so, and cleans up. Without one, a sentence goes to stderr. */
void arena_on_exhaustion(void (*end)(size_t bytes));

/* For fault tests: the n-th block that any arena asks of the system from now on
 * is refused (n = 1: the next one; 0: none is). */
void arena_fail_at(int64_t n);
/* How many blocks arenas have asked for so far. */
int64_t arena_blocks(void);

#define NEW(a, T)          ((T *)arena_alloc((a), sizeof(T)))
#define NEW_ARRAY(a, T, n) ((T *)arena_array((a), (size_t)(n), sizeof(T)))

/* Checked sizes: false when the result does not fit. */
bool mul_size(int64_t a, int64_t b, int64_t *out);
bool add_size(int64_t a, int64_t b, int64_t *out);
/* Greatest common divisor of x, y >= 0; of 0 and y it is y. */
int64_t common_divisor(int64_t x, int64_t y);
/* n rounded up to a multiple of `align`, a power of two. */
int64_t align_up(int64_t n, int64_t align);

#endif
