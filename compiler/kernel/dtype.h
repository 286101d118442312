/* Element types, in the order of the public ABI (runtime/abi.h). */
#ifndef GRADC_KERNEL_DTYPE_H
#define GRADC_KERNEL_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum DType { F32, F64, F16, BF16, I32, I64, U8, BOOL, N_DTYPES } DType;

const char *dtype_name(DType t); /* "f32" */
bool dtype_find(const char *name, DType *t);
int dtype_bytes(DType t); /* 4, 8, 2, 2, 4, 8, 1, 1 */
static inline bool dtype_is_float(DType t)
{
    return t <= BF16;
}
static inline bool dtype_is_half(DType t)
{
    return t == F16 || t == BF16;
}
static inline bool dtype_is_int(DType t)
{
    return t >= I32 && t <= U8;
}

/* Element i of an array; i64 beyond 2^53 is rounded. */
double dtype_value(DType t, const void *x, int64_t i);
int64_t dtype_integer(DType t, const void *x, int64_t i); /* of integers or bool */
/* The first of n elements whose bits differ, or -1; which NaN it is, is no part of a kernel's
 * meaning. */
int64_t dtype_first_unlike(DType t, const void *x, const void *y, int64_t n);

/* Storage conversions, round to nearest even; integer code, the same anywhere. */
float f16_to_f32(uint16_t h);
uint16_t f32_to_f16(float x);
float bf16_to_f32(uint16_t h);
uint16_t f32_to_bf16(float x);
uint16_t f64_to_f16(double x); /* rounded once */
uint16_t f64_to_bf16(double x);
double dtype_round(DType t, double x); /* the nearest value of a float type */

#endif
