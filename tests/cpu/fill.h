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
