#!/usr/bin/env python3
"""Writes compiler/kernel/coefficients.h: minimax polynomials for expand.c.

Each polynomial minimises the largest weighted error  |w (f - p)|  on its
interval by Lawson's algorithm (Rice & Usow, The Lawson algorithm and extensions,
Mathematics of Computation 22, 1968). Coefficients are rounded to their type one after the other, lowest
power first, and those that remain are fitted again.

    python3 coefficients.py > ../../compiler/kernel/coefficients.h    (needs mpmath)
"""
import struct
from mpmath import (mp, mpf, matrix, lu_solve, exp, log, log1p, sin, cos, tanh, erf, erfc,
                    sqrt, pi, ln)

mp.dps = 50


def f32(x):
    """x rounded to float, to nearest."""
    return mpf(struct.unpack("f", struct.pack("f", float(x)))[0])


def f64(x):
    return mpf(float(x))


def minimax(f, w, n, lo, hi, fixed):
    """Coefficients of x^k..x^n after the fixed ones, by Lawson's algorithm: least
    squares whose weights grow where the error is large."""
    k, m = len(fixed), n + 1 - len(fixed)
    count = 4 * (n + 3)
    xs = [(lo + hi) / 2 - (hi - lo) / 2 * cos(pi * (i + mpf(1) / 2) / count) for i in range(count)]
    ws = [w(x) for x in xs]
    rows = [[wx * x ** (j + k) for j in range(m)] for x, wx in zip(xs, ws)]
    rhs = [wx * (f(x) - sum(c * x ** j for j, c in enumerate(fixed))) for x, wx in zip(xs, ws)]
    u, best = [mpf(1)] * count, None
    for _ in range(40 if k == 0 else 20):
        a, b = matrix(m, m), matrix(m, 1)
        for r, y, ux in zip(rows, rhs, u):
            for i in range(m):
                t = ux * r[i]
                b[i] += t * y
                for j in range(i, m):
                    a[i, j] += t * r[j]
        for i in range(m):
            for j in range(i):
                a[i, j] = a[j, i]
        s = lu_solve(a, b)
        e = [abs(y - sum(s[j] * r[j] for j in range(m))) for r, y in zip(rows, rhs)]
        worst = max(e)
        if best is None or worst < best[0]:
            best = (worst, [s[j] for j in range(m)])
        u = [ux * (ex / worst + mpf("1e-3")) for ux, ex in zip(u, e)]
        total = sum(u) / count
        u = [ux / total for ux in u]
    return list(fixed) + best[1]


def fit(name, kind, f, w, n, lo, hi, comment):
    """Prints the table of a polynomial of degree n, lowest power first."""
    rounded = {"f32": f32, "f64": f64}[kind]
    lo, hi = mpf(lo), mpf(hi)
    c = []
    while len(c) <= n:
        full = minimax(f, w, n, lo, hi, c)
        if len(c) == (n if kind == "f32" else 2): # what follows is too small to matter
            c = c + [rounded(x) for x in full[len(c):]]
        else:
            c.append(rounded(full[len(c)]))
    pts = [lo + (hi - lo) * i / 997 for i in range(998)]
    worst = max(abs(w(x) * (f(x) - sum(a * x ** j for j, a in enumerate(c)))) for x in pts)
    print("/* %s, [%s, %s]: 2^%.1f */" % (comment, mp.nstr(lo, 5), mp.nstr(hi, 5), log(worst, 2)))
    print("static const double %s_%s[] = {" % (name, kind))
    row = "   "
    for a in c:
        item = " " + float(a).hex() + ","
        if len(row) + len(item) > 96:
            print(row)
            row = "   "
        row += item
    print(row + "\n};")


def near(closed, small, limit=mpf("1e-6")):
    return lambda x: small(x) if abs(x) < limit else closed(x)


one = lambda x: mpf(1)
LN2 = ln(2)

# (e^r - 1 - r) / r^2 = 1/2 + r/6 + ...
exp_tail = near(lambda r: (exp(r) - 1 - r) / r ** 2,
                lambda r: mpf(1) / 2 + r / 6 + r ** 2 / 24 + r ** 3 / 120 + r ** 4 / 720)
# (log(1+f) - f) / f^2 = -1/2 + f/3 - ...
log_tail = near(lambda f: (log1p(f) - f) / f ** 2,
                lambda f: sum(-(-f) ** i / (i + 2) for i in range(10)))


def atanh_tail(z):
    """(log((1+s)/(1-s)) - 2s) / (s z), z = s^2:  2/3 + 2/5 z + ..."""
    if z < mpf("1e-8"):
        return sum(2 * z ** i / (2 * i + 3) for i in range(7))
    s = sqrt(z)
    return (log((1 + s) / (1 - s)) - 2 * s) / (s * z)


def sin_tail(z):
    """(sin x - x) / (x z), z = x^2:  -1/6 + z/120 - ..."""
    if z < mpf("1e-8"):
        return -mpf(1) / 6 + z / 120 - z ** 2 / 5040 + z ** 3 / 362880 - z ** 4 / 39916800
    x = sqrt(z)
    return (sin(x) - x) / (x * z)


def cos_tail(z):
    """(cos x - 1 + z/2) / z^2, z = x^2:  1/24 - z/720 + ..."""
    if z < mpf("1e-8"):
        return mpf(1) / 24 - z / 720 + z ** 2 / 40320 - z ** 3 / 3628800 + z ** 4 / 479001600
    x = sqrt(z)
    return (cos(x) - 1 + z / 2) / z ** 2


def erf_ratio(z):
    """erf(x)/x - 1, z = x^2."""
    if z < mpf("1e-12"):
        return 2 / sqrt(pi) * (1 - z / 3 + z ** 2 / 10 - z ** 3 / 42) - 1
    x = sqrt(z)
    return erf(x) / x - 1


def erfc_scaled(lo, hi):
    """exp(x^2) erfc(x) (1 + 2x) in t = (x - 2) / (x + 2)."""
    def f(t):
        x = 2 * (1 + t) / (1 - t)
        return exp(x * x) * erfc(x) * (1 + 2 * x)
    return f, (mpf(lo) - 2) / (mpf(lo) + 2), (mpf(hi) - 2) / (mpf(hi) + 2)


def tanh_tail(z):
    """(tanh(x)/x - 1) / z, z = x^2:  -1/3 + 2/15 z - ..."""
    if z < mpf("1e-8"):
        return -mpf(1) / 3 + 2 * z / 15 - 17 * z ** 2 / 315 + 62 * z ** 3 / 2835
    x = sqrt(z)
    return (tanh(x) / x - 1) / z


def tables():
    h = LN2 / 2 * mpf("1.001")
    s2 = ((sqrt(mpf(2)) - 1) / (sqrt(mpf(2)) + 1)) ** 2 * mpf("1.001")
    q = (pi / 4) ** 2 * mpf("1.001")

    print("/* Minimax polynomials, lowest power first; 2^x is the largest error relative to\n"
          " * the function. Written by tests/math/coefficients.py. */")
    print("#ifndef GRADC_KERNEL_COEFFICIENTS_H\n#define GRADC_KERNEL_COEFFICIENTS_H\n\n"
          "#include <stdint.h>\n")
    exp_w = lambda r: r * r / exp(r) + mpf("1e-9")
    fit("exp_poly", "f32", exp_tail, exp_w, 5, -2 * h, 2 * h, "(e^r - 1 - r) / r^2")
    fit("exp_poly", "f64", exp_tail, exp_w, 11, -2 * h, 2 * h, "(e^r - 1 - r) / r^2")
    expm1_w = lambda r: abs(r) + mpf("1e-9")
    fit("expm1_poly", "f32", exp_tail, expm1_w, 4, -h, h, "(e^r - 1 - r) / r^2")
    fit("expm1_poly", "f64", exp_tail, expm1_w, 9, -h, h, "(e^r - 1 - r) / r^2")
    log_w = lambda f: abs(f) if abs(f) < mpf("1e-9") else f * f / abs(log1p(f))
    fit("log_poly", "f32", log_tail, log_w, 7, -mpf(1) / 3, mpf(1) / 3, "(log(1+f) - f) / f^2")
    atanh_w = lambda z: z / 2 + mpf("1e-9")
    fit("log_poly", "f64", atanh_tail, atanh_w, 6, 0, s2, "(log((1+s)/(1-s)) - 2s) / s^3, in s^2")
    fit("sin_poly", "f32", sin_tail, lambda z: z + mpf("1e-9"), 2, 0, q, "(sin x - x) / x^3, in x^2")
    fit("sin_poly", "f64", sin_tail, lambda z: z + mpf("1e-9"), 5, 0, q, "(sin x - x) / x^3, in x^2")
    fit("cos_poly", "f32", cos_tail, lambda z: z * z + mpf("1e-9"), 2, 0, q, "(cos x - 1 + x^2/2) / x^4, in x^2")
    fit("cos_poly", "f64", cos_tail, lambda z: z * z + mpf("1e-9"), 5, 0, q, "(cos x - 1 + x^2/2) / x^4, in x^2")
    tanh_w = lambda z: z if z < mpf("1e-9") else z * sqrt(z) / tanh(sqrt(z))
    fit("tanh_poly", "f32", tanh_tail, tanh_w, 5, 0, (LN2 * mpf("1.0005")) ** 2,
        "(tanh(x)/x - 1) / x^2, in x^2")
    small = mpf("0.9") ** 2
    fit("erf_poly", "f32", erf_ratio, one, 5, 0, small, "erf(x)/x - 1, in x^2")
    fit("erfc_log", "f32", lambda x: log(erfc(x)), erfc, 6, mpf("0.9"), mpf("3.95"), "log(erfc x)")
    fit("erf_poly", "f64", erf_ratio, one, 12, 0, 1, "erf(x)/x - 1, in x^2")
    f, lo, hi = erfc_scaled(1, 6)
    fit("erfc_poly", "f64", f, one, 19, lo, hi, "e^(x^2) erfc(x) (1 + 2x), in (x-2)/(x+2)")
    fit("pow_log", "f64", atanh_tail, atanh_w, 4, 0, s2, "as log_poly, for pow in f32")
    fit("pow_exp", "f64", lambda r: exp(r * LN2), one, 7, -0.501, 0.501, "2^r, for pow in f32")

    # (log((1+s)/(1-s)) - 2s - 2/3 s^3) / s^5: what follows the double-double part.
    def tail2(z):
        if z < mpf("1e-8"):
            return sum(2 * z ** i / (2 * i + 5) for i in range(7))
        return (atanh_tail(z) - mpf(2) / 3) / z
    fit("pow_poly", "f64", tail2, lambda z: z * z / 2 + mpf("1e-9"), 6, 0, s2,
        "(log((1+s)/(1-s)) - 2s - 2/3 s^3) / s^5, in s^2")

    print("\n/* The fraction of 2/pi, 32 bits a word, the first bit being worth 1/2. */")
    print("static const uint32_t two_over_pi[] = {")
    mp.prec = 1600
    v, words = 2 / pi, []
    for _ in range(40):
        v = v * 2 ** 32
        words.append(int(v))
        v -= int(v)
    for i in range(0, len(words), 8):
        print("    " + " ".join("0x%08X," % w for w in words[i:i + 8]))
    print("};\n\n#endif")


tables()
