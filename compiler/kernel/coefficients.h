/* Minimax polynomials, lowest power first; 2^x is the largest error relative to
 * the function. Written by tests/math/coefficients.py. */
#ifndef GRADC_KERNEL_COEFFICIENTS_H
#define GRADC_KERNEL_COEFFICIENTS_H

#include <stdint.h>

/* (e^r - 1 - r) / r^2, [-0.69384, 0.69384]: 2^-26.0 */
static const double exp_poly_f32[] = {
    0x1.00000c0000000p-1, 0x1.5555120000000p-3,  0x1.5549dc0000000p-5,
    0x1.1127200000000p-7, 0x1.71c4a20000000p-10, 0x1.9bb1060000000p-13,
};
/* (e^r - 1 - r) / r^2, [-0.69384, 0.69384]: 2^-56.4 */
static const double exp_poly_f64[] = {
    0x1.ffffffffffff3p-2,  0x1.55555555555b7p-3,  0x1.555555555694ap-5,  0x1.11111111081c2p-7,
    0x1.6c16c169bfc18p-10, 0x1.a01a01b23e9cep-13, 0x1.a01a0582f96c3p-16, 0x1.71de2a079e10ap-19,
    0x1.27e1c9333af5bp-22, 0x1.ae7120e0c7e9ap-26, 0x1.217b02c0257f3p-29, 0x1.5e77344490c68p-33,
};
/* (e^r - 1 - r) / r^2, [-0.34692, 0.34692]: 2^-26.1 */
static const double expm1_poly_f32[] = {
    0x1.0000000000000p-1, 0x1.5554b00000000p-3,  0x1.5554da0000000p-5,
    0x1.1227b60000000p-7, 0x1.6d5d5e0000000p-10,
};
/* (e^r - 1 - r) / r^2, [-0.34692, 0.34692]: 2^-55.6 */
static const double expm1_poly_f64[] = {
    0x1.0000000000005p-1,  0x1.555555555555cp-3,  0x1.55555555520eep-5,  0x1.111111110e804p-7,
    0x1.6c16c17f3f315p-10, 0x1.a01a01b57fa7ep-13, 0x1.a019a660330f3p-16, 0x1.71ddeaae9520cp-19,
    0x1.28a2db2356cabp-22, 0x1.af75c2e259391p-26,
};
/* (log(1+f) - f) / f^2, [-0.33333, 0.33333]: 2^-25.1 */
static const double log_poly_f32[] = {
    -0x1.ffffd60000000p-2, 0x1.5554fc0000000p-2, -0x1.00144a0000000p-2, 0x1.99d3ee0000000p-3,
    -0x1.50396e0000000p-3, 0x1.1ea46a0000000p-3, -0x1.3b09020000000p-3, 0x1.1f39860000000p-3,
};
/* (log((1+s)/(1-s)) - 2s) / s^3, in s^2, [0.0, 0.029467]: 2^-59.5 */
static const double log_poly_f64[] = {
    0x1.5555555555593p-1, 0x1.999999997faa8p-2, 0x1.249249421ae4dp-2, 0x1.c71c51e70887ep-3,
    0x1.7466462d1e4d9p-3, 0x1.39a0f7c8248e9p-3, 0x1.2f0d612d14ad4p-3,
};
/* (sin x - x) / x^3, in x^2, [0.0, 0.61747]: 2^-28.0 */
static const double sin_poly_f32[] = {
    -0x1.5555460000000p-3,
    0x1.11077e0000000p-7,
    -0x1.9956900000000p-13,
};
/* (sin x - x) / x^3, in x^2, [0.0, 0.61747]: 2^-58.0 */
static const double sin_poly_f64[] = {
    -0x1.5555555555549p-3, 0x1.111111110f89cp-7,   -0x1.a01a019c14550p-13,
    0x1.71de35793ea45p-19, -0x1.ae5e66efdda85p-26, 0x1.5d9318a3e194ap-33,
};
/* (cos x - 1 + x^2/2) / x^4, in x^2, [0.0, 0.61747]: 2^-33.1 */
static const double cos_poly_f32[] = {
    0x1.55554a0000000p-5,
    -0x1.6c0c1a0000000p-10,
    0x1.99e0e60000000p-16,
};
/* (cos x - 1 + x^2/2) / x^4, in x^2, [0.0, 0.61747]: 2^-64.1 */
static const double cos_poly_f64[] = {
    0x1.555555555554cp-5,   -0x1.6c16c16c15215p-10, 0x1.a01a019cbe042p-16,
    -0x1.27e4f8119adc8p-22, 0x1.1ee9f0888e3eap-29,  -0x1.8fb0c5c3beb8ap-37,
};
/* (tanh(x)/x - 1) / x^2, in x^2, [0.0, 0.48093]: 2^-30.6 */
static const double tanh_poly_f32[] = {
    -0x1.5555500000000p-2, 0x1.110f5e0000000p-3,  -0x1.b9be480000000p-5,
    0x1.61a1bc0000000p-6,  -0x1.0332bc0000000p-7, 0x1.f64e380000000p-10,
};
/* erf(x)/x - 1, in x^2, [0.0, 0.81]: 2^-25.9 */
static const double erf_poly_f32[] = {
    0x1.06eba60000000p-3,  -0x1.8126f00000000p-2, 0x1.ce1cac0000000p-4,
    -0x1.b6b1300000000p-6, 0x1.4831ba0000000p-8,  -0x1.3e55c80000000p-11,
};
/* log(erfc x), [0.9, 3.95]: 2^-29.0 */
static const double erfc_log_f32[] = {
    -0x1.7d68100000000p-13, -0x1.20b3000000000p+0, -0x1.4630be0000000p-1, -0x1.aa06a00000000p-4,
    0x1.6cc6100000000p-6,   -0x1.90135a0000000p-9, 0x1.9cd1f40000000p-13,
};
/* erf(x)/x - 1, in x^2, [0.0, 1.0]: 2^-55.7 */
static const double erf_poly_f64[] = {
    0x1.06eba8214db69p-3,  -0x1.812746b037a27p-2,  0x1.ce2f21a045b8bp-4,  -0x1.b82ce31366348p-6,
    0x1.565bcd2fa3461p-8,  -0x1.c02db9e062dabp-11, 0x1.f9a3cf678a3a4p-14, -0x1.f4dec0792e24bp-17,
    0x1.ba81fa672cb4ap-20, -0x1.647058600c268p-23, 0x1.180df7c6642aap-26, -0x1.e46dd7089c41dp-30,
    0x1.67fd4759af360p-33,
};
/* e^(x^2) erfc(x) (1 + 2x), in (x-2)/(x+2), [-0.33333, 0.5]: 2^-53.3 */
static const double erfc_poly_f64[] = {
    0x1.46e80e2277953p+0,   -0x1.7bf5ec1700606p-4,  -0x1.5407bebf31864p-3,  0x1.4ffa1e14e0323p-3,
    -0x1.bc2b956373defp-5,  -0x1.074233f09ff60p-7,  0x1.1dd2ee55f729fp-7,   0x1.4d45f53545b71p-10,
    -0x1.7de6c2c55666ep-10, -0x1.dc542f31ef9a5p-12, 0x1.b18ec64b5af38p-13,  0x1.39b3d5d3abafep-13,
    -0x1.1459e81a2106ep-18, -0x1.695c7d4c1775fp-16, -0x1.7a2b32e5cac6dp-17, -0x1.32688546bef1fp-14,
    0x1.3b5c9a44ea393p-14,  0x1.2169fac1d637ap-13,  -0x1.1e29e03f53350p-12, 0x1.141b3e915b54ap-13,
};
/* as log_poly, for pow in f32, [0.0, 0.029467]: 2^-44.9 */
static const double pow_log_f64[] = {
    0x1.555555562080dp-1, 0x1.999996a285b8ap-2, 0x1.249414e80b66ap-2,
    0x1.c62a159fb951dp-3, 0x1.912405006fc9dp-3,
};
/* 2^r, for pow in f32, [-0.501, 0.501]: 2^-34.5 */
static const double pow_exp_f64[] = {
    0x1.ffffffffa5cc3p-1, 0x1.62e42fef70622p-1,  0x1.ebfbe0ac0cfa6p-3,  0x1.c6b08dffe9daep-5,
    0x1.3b29d702b0774p-7, 0x1.5d871ca63f23dp-10, 0x1.446ddc66d94bcp-13, 0x1.00f3c46e137eep-16,
};
/* (log((1+s)/(1-s)) - 2s - 2/3 s^3) / s^5, in s^2, [0.0, 0.029467]: 2^-66.2 */
static const double pow_poly_f64[] = {
    0x1.9999999999b30p-2, 0x1.2492492457c1cp-2, 0x1.c71c722d8dd97p-3, 0x1.745ce9d421482p-3,
    0x1.3b1eeef264715p-3, 0x1.0f7fa34e4b260p-3, 0x1.0e454fe774925p-3,
};

/* The fraction of 2/pi, 32 bits a word, the first bit being worth 1/2. */
static const uint32_t two_over_pi[] = {
    0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB, 0xDEBBC561,
    0xB7246E3A, 0x424DD2E0, 0x06492EEA, 0x09D1921C, 0xFE1DEB1C, 0xB129A73E, 0xE88235F5, 0x2EBB4484,
    0xE99C7026, 0xB45F7E41, 0x3991D639, 0x835339F4, 0x9C845F8B, 0xBDF9283B, 0x1FF897FF, 0xDE05980F,
    0xEF2F118B, 0x5A0A6D1F, 0x6D367ECF, 0x27CB09B7, 0x4F463F66, 0x9E5FEA2D, 0x7527BAC7, 0xEBE5F17B,
    0x3D0739F7, 0x8A5292EA, 0x6BFB5FB1, 0x1F8D5D08, 0x56033046, 0xFC7B6BAB, 0xF0CFBC20, 0x9AF4361D,
};

#endif
