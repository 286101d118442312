/* Elements of buffers at random, and lists of kernels. */
#ifndef GRADC_TESTS_CPU_FILL_H
#define GRADC_TESTS_CPU_FILL_H

#include <stdio.h>
#include <stdlib.h>
#include "kernel/kernel.h"

/* splitmix64 */
static inline uint64_t draw(uint64_t *s)
{
    uint64_t z = *s += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline double draw_real(uint64_t *s)
{
    return (double)(draw(s) >> 11) * 0x1p-53 * 4 - 2;
}

static inline void fill_element(DType t, void *p, int64_t i, uint64_t *s)
{
    double x = draw_real(s);
    switch (t) {
    case F32:
        ((float *)p)[i] = (float)x;
        break;
    case F64:
        ((double *)p)[i] = x;
        break;
    case F16:
        ((uint16_t *)p)[i] = f32_to_f16((float)x);
        break;
    case BF16:
        ((uint16_t *)p)[i] = f32_to_bf16((float)x);
        break;
    case I32:
        ((int32_t *)p)[i] = (int32_t)(draw(s) % 7) - 3;
        break;
    case I64:
        ((int64_t *)p)[i] = (int64_t)(draw(s) % 7) - 3;
        break;
    case U8:
        ((uint8_t *)p)[i] = (uint8_t)draw(s);
        break;
    default:
        ((uint8_t *)p)[i] = draw(s) & 1;
        break;
    }
}

typedef void Fill(DType t, void *p, int64_t i, uint64_t *s);

/* Halves and floats whose products are about as small as numbers get; few that are none. */
static inline void fill_edges(DType t, void *p, int64_t i, uint64_t *s)
{
    static const uint16_t special[] = {0,      0x8000, 1,      0x8001, 0x7f,   0x807f,
                                       0x80,   0x8080, 0x3f80, 0xbf80, 0x7f7f, 0xff7f,
                                       0x7f80, 0xff80, 0x7fc0, 0x7f81, 0xffc1};
    enum { N = sizeof special / sizeof *special, NONE = 5 }; /* the last ones are no numbers */
    if (t != BF16 && t != F32) {
        fill_element(t, p, i, s);
        return;
    }
    uint64_t x = draw(s);
    uint16_t half = (uint16_t)((x & 0x8000) | (62 + (x >> 16 & 3)) << 7);
    half |= (x >> 20 & 1) != 0 ? (uint16_t)(x & 0x7f) : 0;
    if ((x >> 24) % 8 == 0)
        half = special[(x >> 32) % ((x >> 40) % 256 == 0 ? N : N - NONE - 4)];
    if (t == BF16)
        ((uint16_t *)p)[i] = half;
    else
        ((float *)p)[i] = bf16_to_f32(half) * (1 + (float)((x >> 50) & 3) * 0x1p-9F);
}

/* Floats whose products vanish, but for their sign, or are about the least denormal; zeros. */
static inline void fill_vanishing(DType t, void *p, int64_t i, uint64_t *s)
{
    if (t != F32) {
        fill_element(t, p, i, s);
        return;
    }
    uint64_t x = draw(s);
    float size = (x >> 8) % 4 == 0 ? 0 : (1 + (float)((x >> 16) & 7) * 0x1p-3F) * 0x1p-76F;
    size *= (x >> 24) % 64 == 0 ? 4 : 1;
    ((float *)p)[i] = (x & 1) != 0 ? -size : size;
}

typedef VEC(Kernel *) Kernels;

/* Appends a kernel, which has to be valid. */
static inline void add_kernel(Arena *arena, Kernels *s, Kernel *k)
{
    const char *wrong = kernel_verify(k, arena);
    if (wrong != NULL) {
        fprintf(stderr, "%s: %s\n", k->name, wrong);
        abort();
    }
    vec_push(arena, s, k);
}

#endif
