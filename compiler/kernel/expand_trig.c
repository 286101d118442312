/* sin and cos for every finite argument.
 *
 * The remainder of x by pi/2 is found from the bits of 2/pi alone (Payne & Hanek,
 * SIGNUM Newsletter 18, 1983): |x| = m 2^q with an integer m, and only those
 * bits of 2/pi count whose product with m is neither a multiple of 4 nor below
 * the precision wanted. They are picked from a constant of 7 (38) words by a
 * tree of SELECTs, as vectors have no cheap gather; the product modulo 4 is
 * integer arithmetic, and exact but for its end. */
#include <math.h>
#include "coefficients.h"
#include "expand.h"

/* 32 bits of 2/pi, the first being worth 2^(-1-from). */
static uint32_t pi_word(int from)
{
    uint32_t w = 0;
    for (int i = from; i < from + 32; i++) {
        uint32_t bit = i < 0 ? 0 : two_over_pi[i / 32] >> (31 - i % 32) & 1;
        w = w << 1 | bit;
    }
    return w;
}

static Val shift_right(const Fn *f, Val x, int by)
{
    Val c = k_const_int(f->k, f->i, by);
    return k_binary(f->k, KI_SHR, x, c);
}

/* `n` words of 2/pi (as i64 below 2^32) from bit `at` on, counted from the bit
 * `first`; at < 32 << levels. */
static void window(const Fn *f, Val at, int first, int levels, Val *word, int n)
{
    Kernel *k = f->k;
    Val w[64];
    int have = n + (1 << levels);
    for (int i = 0; i < have; i++)
        w[i] = k_const_int(k, I64, pi_word(first + 32 * i));
    for (int level = levels - 1; level >= 0; level--) {
        Val mask = k_const_int(k, I64, INT64_C(32) << level), zero = k_const_int(k, I64, 0);
        Val bit = k_binary(k, KI_AND, at, mask);
        Val set = k_binary(k, KI_NE, bit, zero);
        have -= 1 << level;
        for (int i = 0; i < have; i++)
            w[i] = k_select(k, set, w[i + (1 << level)], w[i]);
    }
    Val low5 = k_const_int(k, I64, 31), c32 = k_const_int(k, I64, 32);
    Val mask = k_const_int(k, I64, 0xffffffff);
    Val by = k_binary(k, KI_AND, at, low5);
    Val back = k_binary(k, KI_SUB, c32, by);
    for (int i = 0; i < n; i++) {
        Val upper = k_binary(k, KI_SHL, w[i], by), lower = k_binary(k, KI_SHR, w[i + 1], back);
        Val joined = k_binary(k, KI_OR, upper, lower);
        word[i] = k_binary(k, KI_AND, joined, mask);
    }
}

/* x = n pi/2 + r with |r| <= pi/4; only the low two bits of n are meant. */
typedef struct Reduced {
    Val r, n; /* r: magnitude's remainder, of f->t; n: i64 */
} Reduced;

/* The product's two leading words, worth 2 and below: quadrant and signed rest.
 * `top` is i64 in [0, 2^32). Gives the rest of `top` in [-2^29, 2^29). */
static Val quadrant(const Fn *f, Val top, Val *n)
{
    Kernel *k = f->k;
    Val half = k_const_int(k, I64, INT64_C(1) << 29), c30 = k_const_int(k, I64, 30);
    Val up = k_binary(k, KI_ADD, top, half);
    *n = k_binary(k, KI_SHR, up, c30);
    Val whole = k_binary(k, KI_SHL, *n, c30);
    return k_binary(k, KI_SUB, top, whole);
}

/* An i64 in (-2^51, 2^51) as f64, without the conversion that only AVX-512 has. */
static Val small_to_f64(Kernel *k, Val x)
{
    Val base = k_const_int(k, I64, INT64_C(0x4338000000000000)), c = k_const(k, F64, 0x1.8p52);
    Val sum = k_binary(k, KI_ADD, x, base);
    Val moved = k_bitcast(k, F64, sum);
    return k_binary(k, KI_SUB, moved, c);
}

/* f32: |x| = m 2^q, m < 2^24, q in [-24, 104]; bits from 2^(1-q) down. */
static Reduced reduce_single(const Fn *f, Val a)
{
    Kernel *k = f->k;
    Val bits = bits_of(f, a), exponent = shift_right(f, bits, 23);
    Val fraction = integer(f, 0x7fffff), implicit = integer(f, 0x800000);
    Val m = both(f, bits, fraction);
    m = k_binary(k, KI_OR, m, implicit);
    /* q = 104 is taken as 103 and 2m: one level of SELECTs less */
    Val lowest = integer(f, 126), most = integer(f, 127);
    Val offset = sub(f, exponent, lowest);
    Val at = k_binary(k, KI_MIN, offset, most);
    Val extra = sub(f, offset, at);
    m = k_binary(k, KI_SHL, m, extra);
    Val m64 = k_cast(k, I64, m), at64 = k_cast(k, I64, at), w[3];
    window(f, at64, -26, 2, w, 3);
    Val c32 = k_const_int(k, I64, 32), mask = k_const_int(k, I64, 0xffffffff);
    Val p0 = k_binary(k, KI_MUL, m64, w[0]), p1 = k_binary(k, KI_MUL, m64, w[1]);
    Val p2 = k_binary(k, KI_MUL, m64, w[2]);
    p0 = k_binary(k, KI_SHL, p0, c32);
    p2 = k_binary(k, KI_SHR, p2, c32);
    Val p = k_binary(k, KI_ADD, p0, p1);
    p = k_binary(k, KI_ADD, p, p2);
    Reduced out;
    Val top = k_binary(k, KI_SHR, p, c32), low = k_binary(k, KI_AND, p, mask);
    Val rest = quadrant(f, top, &out.n);
    Val high = small_to_f64(k, rest);
    Val low_f = small_to_f64(k, low), two32 = k_const(k, F64, 0x1p32);
    Val sum = k_fma(k, high, two32, low_f), scale = k_const(k, F64, 0x1.921fb54442d18p-62);
    Val r = k_binary(k, KI_MUL, sum, scale);
    out.r = k_cast(k, F32, r);
    return out;
}

/* f64: |x| = m 2^q, m < 2^53, q in [-53, 971]. The product of m (two words) and six
 * words of 2/pi, four words of it kept: column i holds what is worth 2^(1-32 i)
 * at its top. */
static Reduced reduce_double(const Fn *f, Val a)
{
    Kernel *k = f->k;
    Val bits = bits_of(f, a), exponent = shift_right(f, bits, 52);
    Val fraction = integer(f, INT64_C(0xfffffffffffff)), implicit = integer(f, INT64_C(1) << 52);
    Val m = both(f, bits, fraction);
    m = k_binary(k, KI_OR, m, implicit);
    Val lowest = integer(f, 1022), most = integer(f, 1023);
    Val offset = sub(f, exponent, lowest);
    Val zero = integer(f, 0);
    offset = k_binary(k, KI_MAX, offset, zero);
    Val at = k_binary(k, KI_MIN, offset, most);
    Val extra = sub(f, offset, at);
    m = k_binary(k, KI_SHL, m, extra);
    Val w[6], mask = integer(f, 0xffffffff);
    window(f, at, -55, 5, w, 6);
    Val m_low = both(f, m, mask), m_high = shift_right(f, m, 32);
    /* from the last column up: low halves of the products here, high halves and
     * carries from the column below */
    Val column[5], carry = zero;
    for (int i = 4; i >= 0; i--) {
        Val p = mul(f, m_low, w[i]), q = mul(f, m_high, w[i + 1]);
        Val p_low = both(f, p, mask), q_low = both(f, q, mask);
        Val sum = add(f, p_low, q_low);
        sum = add(f, sum, carry);
        column[i] = both(f, sum, mask);
        Val p_high = shift_right(f, p, 32), q_high = shift_right(f, q, 32);
        carry = shift_right(f, sum, 32);
        carry = add(f, carry, p_high);
        carry = add(f, carry, q_high);
    }
    Reduced out;
    Val rest = quadrant(f, column[0], &out.n), two32 = num(f, 0x1p32);
    Val sum = small_to_f64(k, rest);
    for (int i = 1; i < 4; i++) {
        Val c = small_to_f64(k, column[i]);
        sum = fused(f, sum, two32, c);
    }
    Val scale = num(f, 0x1.921fb54442d18p-126);
    out.r = mul(f, sum, scale);
    return out;
}

/* sin (quarter 0) or cos (quarter 1) of |x|, as f(r) of the right quadrant. */
static Val sine(const Fn *f, Val x, int quarter)
{
    Kernel *k = f->k;
    Val a = magnitude(f, x), pi_4 = num(f, 0x1.921fb54442d18p-1);
    Reduced d = single(f) ? reduce_single(f, a) : reduce_double(f, a);
    Val small = less(f, a, pi_4), none = k_const_int(k, I64, 0);
    Val r = choose(f, small, a, d.r), n = k_select(k, small, none, d.n);
    Val shift = k_const_int(k, I64, quarter);
    n = k_binary(k, KI_ADD, n, shift);

    Val z = mul(f, r, r), one = num(f, 1), minus_half = num(f, -0.5);
    Val s = POLY(f, z, sin_poly), rz = mul(f, r, z);
    s = fused(f, rz, s, r);
    Val c = POLY(f, z, cos_poly);
    c = fused(f, c, z, minus_half);
    c = fused(f, c, z, one);

    Val bit0 = k_const_int(k, I64, 1), bit1 = k_const_int(k, I64, 2);
    Val odd = k_binary(k, KI_AND, n, bit0), second = k_binary(k, KI_AND, n, bit1);
    Val use_cos = k_binary(k, KI_NE, odd, none), negative = k_binary(k, KI_NE, second, none);
    Val y = choose(f, use_cos, c, s), minus = negate(f, y);
    y = choose(f, negative, minus, y);
    if (quarter == 0)
        y = fn_with_sign_of(f, y, x);
    Val inf = num(f, INFINITY), nan = num(f, NAN);
    Val finite = less(f, a, inf);
    return choose(f, finite, y, nan);
}

Val expand_sin(const Fn *f, Val x)
{
    return sine(f, x, 0);
}

Val expand_cos(const Fn *f, Val x)
{
    return sine(f, x, 1);
}
