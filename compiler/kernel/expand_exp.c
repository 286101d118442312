/* exp, expm1 and tanh: 2^n times a polynomial on the rest, after Cody & Waite,
 * Software Manual for the Elementary Functions (1980), chapters 6 and 13. */
#include "coefficients.h"
#include "expand.h"

/* 1 + r + r^2 P(r), times 4^n: the scale is applied in two steps of 2^n, so
 * that it neither overflows nor vanishes before the result does, and only the
 * last product rounds. What is far too small, as e^-inf of a mask, stays so far
 * below the least denormal that no processor takes it for nearly one: where that
 * is handled by microcode, it takes a hundred times as long. */
Val expand_exp(const Fn *f, Val x)
{
    x = fn_at_most(f, x, single(f) ? 89 : 710);
    x = fn_at_least(f, x, single(f) ? -120 : -780);
    Power e = fn_power_split(f, x, 2);
    Val p = POLY(f, e.r, exp_poly), one = num(f, 1);
    p = fused(f, p, e.r, one);
    p = fused(f, p, e.r, one);
    Val scale = fn_power_of_two(f, e.field);
    p = mul(f, p, scale);
    return mul(f, p, scale);
}

/* e^x - 1 for x in the range where 2^n does not overflow: with q = e^r - 1,
 * 2^n q + (2^n - 1), both parts of one sign or the second far larger. `halved`:
 * half of it, for n up to the largest exponent. *q: e^r - 1, exact for n = 0. */
static Val grow(const Fn *f, Val x, bool halved, Val *q)
{
    Power e = fn_power_split(f, x, 1);
    Val p = POLY(f, e.r, expm1_poly), square = mul(f, e.r, e.r);
    *q = fused(f, square, p, e.r);
    if (halved) {
        Val step = integer(f, INT64_C(1) << fraction_bits(f));
        e.field = sub(f, e.field, step);
    }
    Val scale = fn_power_of_two(f, e.field);
    Val unit = num(f, halved ? 0.5 : 1);
    Val offset = sub(f, scale, unit);
    return fused(f, *q, scale, offset);
}

Val expand_expm1(const Fn *f, Val x)
{
    Val v = fn_at_most(f, x, single(f) ? 89 : 710), q;
    v = fn_at_least(f, v, single(f) ? -30 : -60);
    Val half = grow(f, v, true, &q);
    Val whole = add(f, half, half);
    /* n = 0: halving would cost a denormal its last bit */
    Val limit = num(f, 0.3), size = magnitude(f, x);
    Val small = less(f, size, limit);
    Val r = choose(f, small, q, whole);
    Val zero = num(f, 0);
    Val is_zero = equal(f, x, zero);
    return choose(f, is_zero, x, r); /* -0 */
}

/* t / (t + 2) for t = e^2a - 1, a = |x|; 1 from 2a = 20 (40) on. Below 0.55 the
 * roundings of t and t + 2 would add up to more than 2 ulp: f32 has a polynomial
 * there. */
Val expand_tanh(const Fn *f, Val x)
{
    Val a = magnitude(f, x), q;
    Val twice = add(f, a, a);
    Val v = fn_at_most(f, twice, single(f) ? 20 : 40);
    Val t = grow(f, v, false, &q), two = num(f, 2);
    Val below = add(f, t, two);
    Val r = quotient(f, t, below);
    if (single(f)) {
        Val z = mul(f, a, a);
        Val p = fn_poly(f, z, tanh_poly_f32, (int)(sizeof tanh_poly_f32 / sizeof(double)));
        Val cube = mul(f, z, a), limit = num(f, 0.55);
        Val near = fused(f, cube, p, a), is_near = less(f, a, limit);
        r = choose(f, is_near, near, r);
    }
    return fn_with_sign_of(f, r, x); /* -0 too */
}
