/* exp, expm1 and tanh: 2^n times a polynomial on the rest, after Cody & Waite,
 * Software Manual for the Elementary Functions (1980), chapters 6 and 13. */
#include "coefficients.h"
#include "expand.h"

/* e^r = 1 + r + r^2 P(r). */
static Val exp_of_rest(const Fn *f, Val r)
{
    Val p = POLY(f, r, exp_poly), one = num(f, 1);
    p = fused(f, p, r, one);
    return fused(f, p, r, one);
}

/* 4^n e^r in f32 by SCALE, which has no overflow before the result's. 2n is rounded as n is by
 * fn_power_split, at twice the magic number. What rounds to zero, e^-104 < 2^-150 and all below, is
 * not left to SCALE, for the microcode's sake: see expand_exp. */
static Val exp_by_scale(const Fn *f, Val x)
{
    Val per = num(f, 0x1.71547652b82fep+0), magic = num(f, 2 * fn_magic(f));
    Val least = num(f, -104), high = num(f, -ln2_high(f)), low = num(f, -ln2_low(f));
    Val is_less = less(f, x, least), zero = num(f, 0);
    x = fn_at_most(f, x, 89);
    Val shifted = fused(f, x, per, magic), n2 = sub(f, shifted, magic);
    Val r = fused(f, n2, high, x);
    r = fused(f, n2, low, r);
    Val y = k_binary(f->k, KI_SCALE, exp_of_rest(f, r), n2);
    return choose(f, is_less, zero, y);
}

/* 4^n e^r: the scale is applied in two steps of 2^n, so that it neither overflows nor vanishes
 * before the result does, and only the last product rounds. What is far too small, as e^-inf of a
 * mask, stays so far below the least denormal that no processor takes it for nearly one: where that
 * is handled by microcode, it takes a hundred times as long. */
Val expand_exp(const Fn *f, Val x)
{
    if (f->exponents)
        return exp_by_scale(f, x);
    x = fn_at_most(f, x, single(f) ? 89 : 710);
    x = fn_at_least(f, x, single(f) ? -120 : -780);
    Power e = fn_power_split(f, x, 2);
    Val p = exp_of_rest(f, e.r), scale = float_of(f, e.field);
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
    Val scale = float_of(f, e.field);
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

/* tanh a for a = |x|, in f32, by one division, which near zero is by two. With
 * a = n 2 ln2 + r and s = 4^(2n), T = tanh r:
 *     tanh a = ((s - 1) + (s + 1) T) / ((s + 1) + (s - 1) T)
 *            = c + 2 (T - c) / ((s + 1) + (s - 1) T)    for n = 0, c = 0; else c = 1:
 * from n = 1 on, what is added to 1 is at most 0.4, and so are its errors. */
static Val tanh_single(const Fn *f, Val a)
{
    /* what is rounded are even numbers, 2n; the last bits are n + 32, so that
     * shifted left by 25 they are those of 2^(4n+1), 2s */
    Val per = num(f, 0x1.71547652b82fep+0), magic = num(f, 0x1.8p24 + 64);
    Val shifted = fused(f, a, per, magic), by = integer(f, fraction_bits(f) + 2);
    Val bits = bits_of(f, shifted);
    Val scale_bits = k_binary(f->k, KI_SHL, bits, by);
    Val scale = float_of(f, scale_bits), n2 = sub(f, shifted, magic);
    Val ln2 = num(f, -0x1.62e42fefa39efp-1);
    Val r = fused(f, n2, ln2, a);
    Val z = mul(f, r, r);
    Val p = fn_poly(f, z, tanh_poly_f32, (int)(sizeof tanh_poly_f32 / sizeof(double)));
    Val cube = mul(f, z, r), half = num(f, 0.5), one = num(f, 1), two = num(f, 2);
    Val t = fused(f, cube, p, r);
    Val c2 = fn_at_most(f, n2, 2);
    Val minus = negate(f, c2);
    Val above = fused(f, t, two, minus);
    Val more = fused(f, scale, half, one), minus_one = num(f, -1);
    Val fewer = fused(f, scale, half, minus_one);
    Val below = fused(f, t, fewer, more);
    Val q = quotient(f, above, below);
    return fused(f, c2, half, q);
}

/* In f64 t / (t + 2) for t = e^2a - 1; 1 from a = 10 (20) on. */
Val expand_tanh(const Fn *f, Val x)
{
    Val a = magnitude(f, x), r;
    if (single(f)) {
        a = fn_at_most(f, a, 10);
        r = tanh_single(f, a);
    } else {
        Val twice = add(f, a, a), q;
        Val v = fn_at_most(f, twice, 40);
        Val t = grow(f, v, false, &q), two = num(f, 2);
        Val below = add(f, t, two);
        r = quotient(f, t, below);
    }
    return fn_with_sign_of(f, r, x); /* -0 too */
}
