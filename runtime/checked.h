/* checked.h: arithmetic on sizes that come from files or callers.
 *
 * Every product and sum of such sizes goes through here. Overflow is found by the compiler's own
 * builtins and never by a division (a dimension of 0 would trap). Each returns false, and leaves
 * *out alone, when the result is negative or does not fit. */
#ifndef GRADC_CHECKED_H
#define GRADC_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

static inline bool size_add(int64_t a, int64_t b, int64_t *out)
{
    int64_t r;
    if (__builtin_add_overflow(a, b, &r) || r < 0)
        return false;
    *out = r;
    return true;
}

static inline bool size_sub(int64_t a, int64_t b, int64_t *out)
{
    int64_t r;
    if (__builtin_sub_overflow(a, b, &r) || r < 0)
        return false;
    *out = r;
    return true;
}

static inline bool size_mul(int64_t a, int64_t b, int64_t *out)
{
    int64_t r;
    if (__builtin_mul_overflow(a, b, &r) || r < 0)
        return false;
    *out = r;
    return true;
}

/* The next multiple of `align`, a power of two. */
static inline bool size_align(int64_t a, int64_t align, int64_t *out)
{
    int64_t r;
    if (a < 0 || align <= 0 || (align & (align - 1)) != 0 || !size_add(a, align - 1, &r))
        return false;
    *out = r & ~(align - 1);
    return true;
}

/* Whether [first, first + count) lies in [0, limit). */
static inline bool range_inside(int64_t first, int64_t count, int64_t limit)
{
    int64_t end;
    return first >= 0 && count >= 0 && size_add(first, count, &end) && end <= limit;
}

#endif
