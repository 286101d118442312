/* What run.cpp and run_steps.cpp share: files, memory of their own for buffers, comparison. */
#ifndef GRADC_TESTS_CUDA_READ_HPP
#define GRADC_TESTS_CUDA_READ_HPP

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

enum DType { F32, F64, F16, BF16, I32, I64, U8, BOOL };
enum { ALIGN = 64 };

static inline void read_bytes(FILE *f, void *to, size_t n)
{
    if (n > 0 && fread(to, 1, n, f) != n) {
        fprintf(stderr, "the file ends too early\n");
        exit(3);
    }
}

static inline unsigned char *room(int64_t bytes)
{
    void *p = nullptr;
    if (posix_memalign(&p, ALIGN, bytes > 0 ? (size_t)bytes : 1) != 0)
        exit(4);
    return (unsigned char *)p;
}

/* A NaN equals any other: IEEE 754 leaves its sign and payload open. */
static inline bool is_nan(int64_t dtype, const unsigned char *p, int64_t bytes)
{
    uint64_t u = 0;
    memcpy(&u, p, (size_t)bytes);
    switch (dtype) {
    case F32:
        return (u & 0x7fffffff) > 0x7f800000;
    case F64:
        return (u & 0x7fffffffffffffff) > 0x7ff0000000000000;
    case F16:
        return (u & 0x7fff) > 0x7c00;
    case BF16:
        return (u & 0x7fff) > 0x7f80;
    default:
        return false;
    }
}

/* The first of n elements that differs, or -1. */
static inline int64_t first_difference(int64_t dtype, int64_t each, int64_t n,
                                       const unsigned char *x, const unsigned char *y)
{
    for (int64_t i = 0; i < n; i++, x += each, y += each)
        if (memcmp(x, y, (size_t)each) != 0 && !(is_nan(dtype, x, each) && is_nan(dtype, y, each)))
            return i;
    return -1;
}

#endif
