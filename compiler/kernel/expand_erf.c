/* erf: x + x P(x^2) near zero; elsewhere 1 - erfc(|x|), where erfc is e^G(|x|) in
 * f32, and e^(-x^2) T((|x|-2)/(|x|+2)) / (1 + 2|x|) in f64 (the substitution of
 * Shepherd & Laframboise, Math. Comp. 36, 1981). */
#include "coefficients.h"
#include "expand.h"

/* 1 - e^t scale for t in [-40, 0]. */
static Val one_less_exp(const Fn *f, Val t, Val factor)
{
    Power e = fn_power_split(f, t, 1);
    Val p = POLY(f, e.r, expm1_poly), one = num(f, 1);
    p = fused(f, p, e.r, one);
    p = fused(f, p, e.r, one);
    Val scale = float_of(f, e.field);
    if (factor != 0)
        scale = mul(f, scale, factor);
    Val minus = negate(f, p);
    return fused(f, minus, scale, one);
}

static Val far_single(const Fn *f, Val a)
{
    Val g = fn_poly(f, a, erfc_log_f32, (int)(sizeof erfc_log_f32 / sizeof(double)));
    return one_less_exp(f, g, 0);
}

static Val far_double(const Fn *f, Val a)
{
    Val two = num(f, 2), one = num(f, 1);
    Val above = sub(f, a, two), below = add(f, a, two);
    Val t = quotient(f, above, below);
    Val p = fn_poly(f, t, erfc_poly_f64, (int)(sizeof erfc_poly_f64 / sizeof(double)));
    Val twice = fused(f, a, two, one);
    Val factor = quotient(f, p, twice), minus = negate(f, a);
    Val square = mul(f, minus, a);
    return one_less_exp(f, square, factor);
}

Val expand_erf(const Fn *f, Val x)
{
    Val size = magnitude(f, x);
    Val a = fn_at_most(f, size, single(f) ? 3.95 : 6);
    Val far = single(f) ? far_single(f, a) : far_double(f, a);
    Val signed_far = fn_with_sign_of(f, far, x);
    Val z = mul(f, a, a);
    Val p = POLY(f, z, erf_poly), near = fused(f, x, p, x);
    Val limit = num(f, single(f) ? 0.9 : 1.0);
    Val is_near = less(f, size, limit);
    return choose(f, is_near, near, signed_far);
}
