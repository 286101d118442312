/* Denormals flushed: a class of numerics of x86-64 (FTZ and DAZ of MXCSR), in which a float below
 * 2^-126 (2^-1022 of f64) is a zero of its sign.
 *
 * In that mode no value of a kernel is denormal: results of arithmetic are flushed by the hardware,
 * and f32, f64 and bf16 numbers where they are loaded, a constant, or made of bits. So it does not
 * show that some instructions flush what they give and others, that may take their place, do not
 * (MINPS, and a comparison with a blend). Denormals of f16 are numbers like others: f32 has them.
 */
#ifndef GRADC_KERNEL_DENORMALS_H
#define GRADC_KERNEL_DENORMALS_H

#include "dtype.h"

/* Whether the interpreter can: it needs the mode, and fma in hardware, which heeds it. */
bool denormals_can_flush(void);
/* The calling thread flushes from now on, and K_EXACT on it computes so, if `flush` is set and it
 * can; gives what denormals_end() wants, which restores the mode. */
uint32_t denormals_begin(bool flush);
void denormals_end(uint32_t before);
/* Does the calling thread flush? */
bool denormals_flushed(void);

/* x, or a zero of its sign if it is denormal as a t. */
float flush_f32(float x);
double flush_f64(double x);
double flush_const(DType t, double x);

#endif
