/* log, log1p and pow: x = 2^e m with m near 1, after Cody & Waite (1980),
 * chapters 5 and 7. */
#include <math.h>
#include "coefficients.h"
#include "expand.h"

/* e * ln2 + log(1 + v) in f32, v + v^2 P(v): pairs of coefficients, then powers of
 * v^2, a chain half as long. ln2 rounded to float is right to 28 bits; `unit` is what
 * e counts. */
static Val log_single(const Fn *f, Val v, Val e, double unit)
{
    Val square = mul(f, v, v), p = 0;
    for (int i = (int)(sizeof log_poly_f32 / sizeof(double)) - 2; i >= 0; i -= 2) {
        Val even = num(f, log_poly_f32[i]), odd = num(f, log_poly_f32[i + 1]);
        Val pair = fused(f, odd, v, even);
        p = p != 0 ? fused(f, p, square, pair) : pair;
    }
    Val sum = fused(f, square, p, v), ln2 = num(f, 0x1.62e42fefa39efp-1 * unit);
    return fused(f, e, ln2, sum);
}

/* e * ln2 + log(1 + v), for the m = 1 + v and e of a split. */
static Val log_of(const Fn *f, Val v, Val e)
{
    if (single(f))
        return log_single(f, v, e, 0x1p-23);
    Val high = num(f, ln2_high(f)), low = num(f, ln2_low(f));
    Val rest = mul(f, e, low);
    /* with s = v/(2+v): log(1+v) = 2s + s^3 P(s^2) = v - s (v - s^2 P) */
    Val two = num(f, 2);
    Val below = add(f, v, two);
    Val s = quotient(f, v, below);
    Val z = mul(f, s, s);
    Val p = POLY(f, z, log_poly);
    Val zp = mul(f, z, p);
    Val inner = sub(f, v, zp), minus_s = negate(f, s);
    Val tail = fused(f, minus_s, inner, rest);
    Val sum = add(f, tail, v);
    return fused(f, e, high, sum);
}

/* 1; NaN if x is infinite or NaN. */
static Val one_if_finite(const Fn *f, Val x)
{
    Val zero = num(f, 0), one = num(f, 1);
    return fused(f, x, zero, one);
}

/* y = log(x) with what it is at 0, below, at infinity and NaN; y is NaN at the
 * latter two. The sum is infinite above 0, NaN elsewhere, and MIN gives it unless
 * y is less. */
static Val log_edges(const Fn *f, Val x, Val y)
{
    Val inf = num(f, INFINITY), zero = num(f, 0), minus_inf = num(f, -INFINITY);
    Val sum = fused(f, x, inf, inf), is_zero = equal(f, x, zero);
    Val r = k_binary(f->k, KI_MIN, y, sum);
    return choose(f, is_zero, minus_inf, r);
}

/* By instructions for e and m, whose results are such that log is what it has to be at 0,
 * below, at infinity and NaN. m is from 1 on: from 4/3 on, its half is that of a split. */
static Val log_by_exponent(const Fn *f, Val x)
{
    Val e = k_unary(f->k, KI_EXPONENT, x), m = k_unary(f->k, KI_FRACTION, x);
    Val most = num(f, 0x1.555556p+0), half = num(f, 0.5), one = num(f, 1);
    Val is_more = k_binary(f->k, KI_LE, most, m), halved = mul(f, m, half), next = add(f, e, one);
    m = choose(f, is_more, halved, m);
    e = choose(f, is_more, next, e);
    Val v = sub(f, m, one);
    return log_single(f, v, e, 1);
}

Val expand_log(const Fn *f, Val x)
{
    if (f->exponents)
        return log_by_exponent(f, x);
    Split s = fn_split(f, x, true);
    Val one = one_if_finite(f, x);
    Val v = sub(f, s.m, one);
    Val y = log_of(f, v, s.e);
    return log_edges(f, x, y);
}

/* log(u) for u = 1 + x rounded, with the rounding error c = x - (u - 1) added in
 * at the scale of u. */
Val expand_log1p(const Fn *f, Val x)
{
    Val one = num(f, 1);
    Val u = add(f, x, one);
    Val u_less = sub(f, u, one), u_rest = sub(f, u, x);
    Val c_small = sub(f, x, u_less), c_large = sub(f, one, u_rest);
    Val is_small = less(f, x, one);
    Val c = choose(f, is_small, c_small, c_large);
    Split s = fn_split(f, u, false);
    /* beyond 2^100 c is far below the last bit */
    Val most = integer(f, INT64_C(100) << fraction_bits(f)), base = integer(f, one_bits(f));
    Val field = k_binary(f->k, KI_MIN, s.field, most);
    Val scale_bits = sub(f, base, field); /* 2^-e */
    Val scale = float_of(f, scale_bits), finite_one = one_if_finite(f, x);
    Val m_less = sub(f, s.m, finite_one);
    Val v = fused(f, c, scale, m_less);
    Val y = log_of(f, v, s.e);
    y = log_edges(f, u, y);
    Val zero = num(f, 0);
    Val is_zero = equal(f, x, zero);
    return choose(f, is_zero, x, y); /* -0 */
}

/* ---- pow ------------------------------------------------------------------------- */

/* |x|^y for finite |x| > 0 and finite y, in double: rounding to float at the
 * end is the only error that shows, so one short polynomial each does. */
static Val pow_single(const Fn *f, Val x, Val y, Val unbounded)
{
    Fn d = {f->k, F64, I64, false};
    Val xd = k_cast(f->k, F64, x), yd = k_cast(f->k, F64, y);
    Split s = fn_split(&d, xd, false);
    Val one = num(&d, 1), log2e = num(&d, 0x1.71547652b82fep+0);
    Val v = sub(&d, s.m, one), below = add(&d, s.m, one);
    Val q = quotient(&d, v, below);
    Val z = mul(&d, q, q), two = num(&d, 2);
    Val p = fn_poly(&d, z, pow_log_f64, (int)(sizeof pow_log_f64 / sizeof(double)));
    p = fused(&d, z, p, two);
    p = mul(&d, p, q);
    Val log2 = fused(&d, p, log2e, s.e);
    Val unbounded_d = k_cast(f->k, F64, unbounded), zero = num(&d, 0);
    Val is_bounded = equal(&d, unbounded_d, zero);
    log2 = choose(&d, is_bounded, log2, unbounded_d);
    Val is_one = equal(&d, xd, one);
    Val t = mul(&d, yd, log2);
    t = choose(&d, is_one, zero, t);
    t = fn_at_most(&d, t, 200);
    t = fn_at_least(&d, t, -200);
    Val c = num(&d, fn_magic(&d));
    Val shifted = add(&d, t, c), field;
    Val n = fn_nearest_integer(&d, shifted, &field);
    Val r = sub(&d, t, n);
    Val e = fn_poly(&d, r, pow_exp_f64, (int)(sizeof pow_exp_f64 / sizeof(double)));
    Val scale = float_of(&d, field);
    Val result = mul(&d, e, scale);
    return k_cast(f->k, F32, result);
}

/* A sum of two doubles, the second at most half an ulp of the first. */
typedef struct Pair {
    Val high, low;
} Pair;

/* x + y for |x| >= |y| or x = 0. Dekker, Numer. Math. 18 (1971). */
static Pair fast_sum(const Fn *f, Val x, Val y)
{
    Pair s;
    s.high = add(f, x, y);
    Val taken = sub(f, s.high, x);
    s.low = sub(f, y, taken);
    return s;
}

/* (a + a') (b + b'), to about 2^-104 relative. */
static Pair pair_product(const Fn *f, Pair a, Pair b)
{
    Val p = mul(f, a.high, b.high), minus = negate(f, p);
    Val low = fused(f, a.high, b.high, minus);
    low = fused(f, a.high, b.low, low);
    low = fused(f, a.low, b.high, low);
    return fast_sum(f, p, low);
}

/* log(x) as a pair: with s = (m-1)/(m+1),
 * e ln2 + 2s + s^3 (2/3 + s^2 Q(s^2)), all but Q in pairs. */
static Pair log_pair(const Fn *f, Val x)
{
    Split sp = fn_split(f, x, true);
    Val one = num(f, 1), two = num(f, 2);
    Val v = sub(f, sp.m, one), below = add(f, sp.m, one);
    Val below_less = sub(f, below, one); /* exact; then what rounding m+1 has lost */
    Val below_low = sub(f, sp.m, below_less);
    Pair s = {.high = quotient(f, v, below)};
    Val minus = negate(f, s.high);
    Val left = fused(f, minus, below, v);
    left = fused(f, minus, below_low, left);
    s.low = quotient(f, left, below);
    Pair z = pair_product(f, s, s);
    Val q = fn_poly(f, z.high, pow_poly_f64, (int)(sizeof pow_poly_f64 / sizeof(double)));
    Val zq = mul(f, z.high, q);
    Val third = num(f, 2.0 / 3), third_low = num(f, 0x1.5555555555555p-55);
    Pair c = fast_sum(f, third, zq);
    c.low = add(f, c.low, third_low);
    Pair cube = pair_product(f, z, s);
    Pair tail = pair_product(f, cube, c);
    Val s2 = mul(f, s.high, two), s2_low = mul(f, s.low, two);
    Pair sum = fast_sum(f, s2, tail.high);
    Val low = add(f, tail.low, s2_low);
    sum.low = add(f, sum.low, low);
    /* e ln2: 42 bits of ln2 times e is exact, then the rest */
    Val ln2_high = num(f, 0x1.62e42fefa38p-1), ln2_low = num(f, 0x1.ef35793c7673p-45);
    Val e_high = mul(f, sp.e, ln2_high);
    Pair r = fast_sum(f, e_high, sum.high);
    Val rest = fused(f, sp.e, ln2_low, sum.low);
    rest = add(f, r.low, rest);
    return fast_sum(f, r.high, rest);
}

/* e^(t.high + t.low), |t.high| <= 800. */
static Val exp_pair(const Fn *f, Pair t)
{
    Power e = fn_power_split(f, t.high, 2);
    Val r = add(f, e.r, t.low), one = num(f, 1);
    Val p = POLY(f, r, exp_poly);
    p = fused(f, p, r, one);
    p = fused(f, p, r, one);
    Val scale = float_of(f, e.field);
    p = mul(f, p, scale);
    return mul(f, p, scale);
}

/* |x|^y as e^(y log x) with the logarithm and the product in pairs. */
static Val pow_double(const Fn *f, Val x, Val y, Val unbounded)
{
    Pair l = log_pair(f, x);
    Val zero = num(f, 0), one = num(f, 1);
    Val is_bounded = equal(f, unbounded, zero);
    Pair t;
    l.high = choose(f, is_bounded, l.high, unbounded);
    t.high = mul(f, y, l.high);
    Val is_one = equal(f, x, one);
    t.high = choose(f, is_one, zero, t.high);
    Val minus = negate(f, t.high);
    Val low = fused(f, y, l.high, minus);
    t.low = fused(f, y, l.low, low);
    /* beyond the range, and where the rest is no number, only the sign counts */
    Val size = magnitude(f, t.high), most = num(f, 800);
    Val in_range = less(f, size, most);
    t.low = choose(f, in_range, t.low, zero);
    t.low = choose(f, is_one, zero, t.low);
    t.high = fn_at_most(f, t.high, 800);
    t.high = fn_at_least(f, t.high, -800);
    return exp_pair(f, t);
}

/* C's pow, special operands included. */
Val expand_pow(const Fn *f, Val x, Val y)
{
    Kernel *k = f->k;
    Val a = magnitude(f, x), zero = num(f, 0), inf = num(f, INFINITY);
    Val minus_inf = num(f, -INFINITY), one = num(f, 1);
    /* log|x| where it is not finite; 0 elsewhere */
    Val is_zero = equal(f, a, zero), finite = less(f, a, inf);
    Val unbounded = choose(f, finite, zero, a);
    unbounded = choose(f, is_zero, minus_inf, unbounded);
    Val r = single(f) ? pow_single(f, a, y, unbounded) : pow_double(f, a, y, unbounded);

    Val half = num(f, 0.5);
    Val y_half = mul(f, y, half), y_floor = k_unary(k, KI_FLOOR, y);
    Val half_floor = k_unary(k, KI_FLOOR, y_half);
    Val whole = equal(f, y_floor, y), odd = k_binary(k, KI_NE, half_floor, y_half);
    odd = both(f, whole, odd);
    Val signed_r = fn_with_sign_of(f, r, x);
    r = choose(f, odd, signed_r, r);

    Val negative = less(f, x, zero), above = less(f, minus_inf, x);
    Val fraction = k_binary(k, KI_NE, y_floor, y), nan = num(f, NAN);
    Val undefined = both(f, negative, above);
    undefined = both(f, undefined, fraction);
    r = choose(f, undefined, nan, r);
    Val y_zero = equal(f, y, zero);
    return choose(f, y_zero, one, r);
}
